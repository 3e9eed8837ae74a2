//! Elements on the ACK path written in Python.

use super::{Maker, Trouble, method, seconds, state};
use penstock_core::config::LinkFacts;
use penstock_core::foreign::ack_path::{self, Config, Fault, ForeignElement, MakeElement};
use penstock_core::packet::{TcpFlags, TcpView};
use penstock_core::units::{Instant, Limit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A TCP segment at a gateway. Its window may be lowered.
#[pyclass(module = "penstock._penstock")]
pub(crate) struct Segment {
    #[pyo3(get)]
    now_s: f64,
    #[pyo3(get)]
    flow: u32,
    #[pyo3(get)]
    seq: u32,
    #[pyo3(get)]
    ack: Option<u32>,
    #[pyo3(get)]
    payload: u32,
    #[pyo3(get)]
    syn: bool,
    #[pyo3(get)]
    fin: bool,
    #[pyo3(get)]
    rst: bool,
    #[pyo3(get)]
    window: u16,
    #[pyo3(get)]
    shift: Option<u8>,
    #[pyo3(get)]
    mss: Option<u16>,
    #[pyo3(get)]
    timestamps: Option<(u32, u32)>,
    #[pyo3(get)]
    queue_packets: u64,
    #[pyo3(get)]
    queue_bytes: u64,
    came_with: u16,
}

impl Segment {
    fn of(segment: &ack_path::Segment, now: Instant) -> Self {
        let flags = segment.flags();
        Self {
            now_s: seconds(now),
            flow: segment.flow().0,
            seq: segment.seq(),
            ack: flags.has(TcpFlags::ACK).then(|| segment.ack()),
            payload: segment.payload_len(),
            syn: flags.has(TcpFlags::SYN),
            fin: flags.has(TcpFlags::FIN),
            rst: flags.has(TcpFlags::RST),
            window: segment.window(),
            shift: segment.shift(),
            mss: segment.mss(),
            timestamps: segment.timestamps().map(|stamps| (stamps.val, stamps.ecr)),
            queue_packets: segment.backlog().packets,
            queue_bytes: segment.backlog().bytes,
            came_with: segment.came_with(),
        }
    }

    fn refused(&self, what: &str, value: &Bound<'_, PyAny>, most: u64) -> PyErr {
        let shown = value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        PyValueError::new_err(format!(
            "{what} of flow {} cannot be set to {shown}: the segment came with {most}, and a window is lowered, never \
             raised, never zeroed",
            self.flow
        ))
    }
}

#[pymethods]
impl Segment {
    /// Lowers the window field.
    #[setter]
    fn set_window(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let least = self.came_with.min(1);
        let found: Option<u16> = value.extract().ok().filter(|window| (least..=self.came_with).contains(window));
        self.window = found.ok_or_else(|| self.refused("the window", value, self.came_with.into()))?;
        Ok(())
    }

    /// The window in bytes; `None` if its shift is not known, because a SYN of the connection was not seen.
    #[getter]
    fn window_bytes(&self) -> Option<u64> {
        self.shift.map(|shift| u64::from(self.window) << shift.min(14))
    }

    /// Lowers the window to this number of bytes, rounded down to what the field can hold; to its smallest step if that
    /// would be zero.
    #[setter]
    fn set_window_bytes(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(shift) = self.shift.map(|shift| shift.min(14)) else {
            return Err(PyValueError::new_err(format!(
                "the window of flow {} in bytes is not known, because a SYN of it was not seen: window_bytes is None",
                self.flow
            )));
        };
        let most = u64::from(self.came_with) << shift;
        let found: Option<f64> = value.extract().ok().filter(|bytes| *bytes > 0.0 && *bytes <= most as f64);
        let bytes = found.ok_or_else(|| self.refused("the window in bytes", value, most))? as u64;
        self.window = ((bytes >> shift) as u16).max(1);
        Ok(())
    }
}

/// Returns the factory of the elements that `maker` creates.
pub(super) fn factory(
    maker: Bound<'_, PyAny>,
    name: &str,
    parameters: Map<String, Value>,
    trouble: &Arc<Trouble>,
) -> Config {
    Config::new(name, parameters, Arc::new(Maker::new(maker, name, trouble)))
}

impl MakeElement for Maker {
    fn make(&self, link: &LinkFacts) -> Box<dyn ForeignElement> {
        let (packets, bytes) = match link.limit {
            Limit::Packets(n) => (Some(n), None),
            Limit::Bytes(n) => (None, Some(n.get())),
        };
        let mut element = PyElement { name: self.name.clone(), trouble: self.trouble.clone(), object: None };
        element.object = element.attempt("__init__", |py| {
            let made = self.maker.bind(py).call_method1("make", (link.rate.as_bps(), packets, bytes))?;
            Instance::new(&made).map(Arc::new)
        });
        Box::new(element)
    }
}

/// A Python object with its methods, which are looked up once.
#[derive(Debug)]
struct Instance {
    object: Py<PyAny>,
    outbound: Option<Py<PyAny>>,
    inbound: Option<Py<PyAny>>,
}

impl Instance {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            outbound: method(object, "outbound")?,
            inbound: method(object, "inbound")?,
            object: object.clone().unbind(),
        })
    }
}

#[derive(Debug)]
struct PyElement {
    name: Arc<str>,
    trouble: Arc<Trouble>,
    /// The object; `None` if it could not be created.
    object: Option<Arc<Instance>>,
}

impl PyElement {
    fn attempt<T>(&self, what: &str, act: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        self.trouble.attempt(what, &self.name, act)
    }

    fn show(
        &self,
        what: &str,
        which: fn(&Instance) -> &Option<Py<PyAny>>,
        segment: &mut ack_path::Segment,
        now: Instant,
    ) {
        let Some(method) = self.object.as_ref().and_then(|instance| which(instance).as_ref()) else { return };
        let window = self.attempt(what, |py| {
            let shown = Bound::new(py, Segment::of(segment, now))?;
            method.bind(py).call1((&shown,))?;
            let window = shown.borrow().window;
            Ok(window)
        });
        if let Some(window) = window.filter(|window| *window != segment.window()) {
            segment.set_window(window);
        }
    }
}

impl ForeignElement for PyElement {
    fn outbound(&mut self, segment: &mut ack_path::Segment, now: Instant) {
        self.show("outbound", |instance| &instance.outbound, segment, now);
    }

    fn inbound(&mut self, segment: &mut ack_path::Segment, now: Instant) {
        self.show("inbound", |instance| &instance.inbound, segment, now);
    }

    fn copy(&self) -> Box<dyn ForeignElement> {
        let copied = self.object.as_ref().and_then(|instance| {
            self.attempt("a copy", |py| {
                Instance::new(&py.import("copy")?.call_method1("deepcopy", (&instance.object,))?).map(Arc::new)
            })
        });
        Box::new(Self { name: self.name.clone(), trouble: self.trouble.clone(), object: copied })
    }

    /// The segment refuses a wrong window before this is reached.
    fn broke(&mut self, fault: &Fault) {
        self.trouble.tell(PyValueError::new_err(fault.to_string()), format!("in {}", self.name));
    }

    fn state(&self) -> String {
        state(self.object.as_ref().map(|instance| &instance.object))
    }
}
