//! Packet schedulers written in Python.

use super::{Maker, Trouble, method, state};
use penstock_core::config::ConfigError;
use penstock_core::foreign::scheduler::{Config, Fault, ForeignScheduler, MakeScheduler};
use penstock_core::sched::{Scheduler, Setup, Weight};
use penstock_core::units::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Returns the factory of the schedulers that `maker` creates.
pub(super) fn factory(
    maker: Bound<'_, PyAny>,
    name: &str,
    parameters: Map<String, Value>,
    trouble: &Arc<Trouble>,
) -> Config {
    Config::new(name, parameters, Arc::new(Maker::new(maker, name, trouble)))
}

impl MakeScheduler for Maker {
    fn make(&self, setup: &Setup<'_>) -> Box<dyn ForeignScheduler> {
        Box::new(PyScheduler {
            name: self.name.clone(),
            trouble: self.trouble.clone(),
            maker: Python::attach(|py| self.maker.clone_ref(py)),
            weights: setup.weights.iter().map(|weight| weight.get()).collect(),
            max_packet: setup.max_packet,
            object: None,
        })
    }
}

/// A Python object with its methods and the lists that it shares with this file, which are looked up once.
#[derive(Debug)]
struct Instance {
    object: Py<PyAny>,
    /// The sizes of the packets that wait, a `deque` for each class.
    queues: Py<PyList>,
    weights: Py<PyList>,
    good: Py<PyList>,
    arrive: Option<Py<PyAny>>,
    depart: Option<Py<PyAny>>,
    on_weight: Option<Py<PyAny>>,
    on_channel: Option<Py<PyAny>>,
}

impl Instance {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let list = |name| -> PyResult<Py<PyList>> { Ok(object.getattr(name)?.cast_into::<PyList>()?.unbind()) };
        Ok(Self {
            queues: list("queues")?,
            weights: list("weights")?,
            good: list("good")?,
            arrive: method(object, "arrive")?,
            depart: method(object, "depart")?,
            on_weight: method(object, "on_weight")?,
            on_channel: method(object, "on_channel")?,
            object: object.clone().unbind(),
        })
    }
}

/// A scheduler. Its object is created when the first packet arrives, so that schedulers which are only checked cost
/// nothing.
#[derive(Debug)]
struct PyScheduler {
    name: Arc<str>,
    trouble: Arc<Trouble>,
    maker: Py<PyAny>,
    weights: Vec<u32>,
    max_packet: Bytes,
    object: Option<Arc<Instance>>,
}

impl PyScheduler {
    fn attempt<T>(&self, what: &str, act: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        self.trouble.attempt(what, &self.name, act)
    }

    fn instantiate(&mut self) -> Option<Arc<Instance>> {
        if self.object.is_none() {
            self.object = self.attempt("__init__", |py| {
                let made = (self.weights.clone(), self.max_packet.get());
                Instance::new(&self.maker.bind(py).call_method1("make", made)?).map(Arc::new)
            });
        }
        self.object.clone()
    }
}

/// Reads the answer of `depart`.
fn class(answer: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    if answer.is_none() {
        return Ok(None);
    }
    let found: Option<u32> = answer.extract().ok();
    found.map(Some).ok_or_else(|| {
        let shown = answer.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        PyValueError::new_err(format!("the answer is {shown}: it must be the number of a class, or None"))
    })
}

impl Scheduler for PyScheduler {
    fn classes(&self) -> usize {
        self.weights.len()
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    fn enqueue(&mut self, class: u32, size: Bytes, _: bool) {
        let Some(instance) = self.instantiate() else { return };
        self.attempt("arrive", |py| {
            let queue = instance.queues.bind(py).get_item(class as usize)?;
            queue.call_method1(intern!(py, "append"), (size.get(),))?;
            instance.arrive.as_ref().map_or(Ok(()), |arrive| arrive.bind(py).call1((class, size.get())).map(|_| ()))
        });
    }

    fn dequeue(&mut self) -> Option<u32> {
        let instance = self.object.clone()?;
        let depart = instance.depart.as_ref()?;
        self.attempt("depart", |py| class(&depart.bind(py).call0()?)).flatten()
    }

    fn served(&mut self, class: u32, _: Bytes, _: Option<Bytes>) {
        let Some(instance) = self.object.clone() else { return };
        self.attempt("depart", |py| {
            let queue = instance.queues.bind(py).get_item(class as usize)?;
            queue.call_method0(intern!(py, "popleft")).map(|_| ())
        });
    }

    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        self.weights[class as usize] = weight.get();
        let Some(instance) = self.object.clone() else { return Ok(()) };
        self.attempt("on_weight", |py| {
            instance.weights.bind(py).set_item(class as usize, weight.get())?;
            instance.on_weight.as_ref().map_or(Ok(()), |told| told.bind(py).call1((class, weight.get())).map(|_| ()))
        });
        Ok(())
    }

    fn set_channel(&mut self, class: u32, good: bool) {
        let Some(instance) = self.instantiate() else { return };
        self.attempt("on_channel", |py| {
            instance.good.bind(py).set_item(class as usize, good)?;
            instance.on_channel.as_ref().map_or(Ok(()), |told| told.bind(py).call1((class, good)).map(|_| ()))
        });
    }
}

impl ForeignScheduler for PyScheduler {
    fn copy(&self) -> Box<dyn ForeignScheduler> {
        let copied = self.object.as_ref().and_then(|instance| {
            self.attempt("a copy", |py| {
                Instance::new(&py.import("copy")?.call_method1("deepcopy", (&instance.object,))?).map(Arc::new)
            })
        });
        Box::new(Self {
            name: self.name.clone(),
            trouble: self.trouble.clone(),
            maker: Python::attach(|py| self.maker.clone_ref(py)),
            weights: self.weights.clone(),
            max_packet: self.max_packet,
            object: copied,
        })
    }

    fn chooser(&self) -> &'static str {
        "depart"
    }

    /// A fault after an exception follows from it, and the exception is what is told.
    fn broke(&mut self, fault: &Fault) {
        let raised = Python::attach(|py| {
            let kind = py.import("penstock.own")?.getattr("BrokenRule")?;
            Ok(PyErr::from_value(kind.call1((fault.to_string(),))?))
        });
        self.trouble.tell(raised.unwrap_or_else(|error| error), format!("in depart of {}", self.name));
    }

    fn state(&self) -> String {
        state(self.object.as_ref().map(|instance| &instance.object))
    }
}
