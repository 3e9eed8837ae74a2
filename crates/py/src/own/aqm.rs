//! AQMs written in Python.

use super::{Maker, Trouble, method, seconds, state};
use penstock_core::aqm::Meta;
use penstock_core::config::LinkFacts;
use penstock_core::fact::Fact;
use penstock_core::foreign::{Config, ForeignAqm, MakeAqm};
use penstock_core::qdisc::{Backlog, Verdict};
use penstock_core::rng::Rng;
use penstock_core::units::{Instant, Limit, Span};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A packet that an AQM judges, and the state of the queue when it does.
#[pyclass(frozen, get_all, module = "penstock._penstock")]
pub(crate) struct Packet {
    now_s: f64,
    size: u64,
    flow: u32,
    ecn_capable: bool,
    sojourn_s: f64,
    queue_packets: u64,
    queue_bytes: u64,
}

/// Returns the factory of the AQMs that `maker` creates.
pub(super) fn factory(
    maker: Bound<'_, PyAny>,
    name: &str,
    parameters: Map<String, Value>,
    trouble: &Arc<Trouble>,
) -> Config {
    Config::new(name, parameters, Arc::new(Maker::new(maker, name, trouble)))
}

impl MakeAqm for Maker {
    fn make(&self, link: &LinkFacts) -> Box<dyn ForeignAqm> {
        let maker = Python::attach(|py| self.maker.clone_ref(py));
        let (name, trouble) = (self.name.clone(), self.trouble.clone());
        Box::new(PyAqm { name, trouble, maker, link: *link, object: None, wakeup: None })
    }
}

/// A Python object with its methods, which are looked up once.
#[derive(Debug)]
struct Instance {
    object: Py<PyAny>,
    on_enqueue: Option<Py<PyAny>>,
    on_dequeue: Option<Py<PyAny>>,
    on_overflow: Option<Py<PyAny>>,
    on_empty: Option<Py<PyAny>>,
    on_timer: Option<Py<PyAny>>,
}

impl Instance {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            on_enqueue: method(object, "on_enqueue")?,
            on_dequeue: method(object, "on_dequeue")?,
            on_overflow: method(object, "on_overflow")?,
            on_empty: method(object, "on_empty")?,
            on_timer: method(object, "on_timer")?,
            object: object.clone().unbind(),
        })
    }
}

/// An AQM. Its object is created when the first packet arrives, because the random numbers of the queue are not
/// available before.
#[derive(Debug)]
struct PyAqm {
    name: Arc<str>,
    trouble: Arc<Trouble>,
    maker: Py<PyAny>,
    link: LinkFacts,
    object: Option<Arc<Instance>>,
    /// When `on_timer` is due: the attribute `timer_s` as it was after the last call.
    wakeup: Option<Instant>,
}

impl PyAqm {
    fn attempt<T>(&self, what: &str, act: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        self.trouble.attempt(what, &self.name, act)
    }

    fn instantiate(&mut self, rng: &mut Rng) {
        if self.object.is_none() {
            let (bps, seed) = (self.link.rate.as_bps(), rng.bits());
            let (packets, bytes) = match self.link.limit {
                Limit::Packets(n) => (Some(n), None),
                Limit::Bytes(n) => (None, Some(n.get())),
            };
            self.object = self.attempt("__init__", |py| {
                let made = self.maker.bind(py).call_method1("make", (bps, packets, bytes, seed))?;
                Instance::new(&made).map(Arc::new)
            });
        }
    }

    fn judge(
        &mut self,
        what: &str,
        which: fn(&Instance) -> &Option<Py<PyAny>>,
        packet: Packet,
        now: Instant,
    ) -> Verdict {
        let Some(instance) = self.object.clone() else { return Verdict::Pass };
        let Some(method) = which(&instance) else { return Verdict::Pass };
        let judged = self.attempt(what, |py| verdict(&method.bind(py).call1((packet,))?));
        self.read_timer(&instance, now);
        judged.unwrap_or(Verdict::Pass)
    }

    fn tell_time(&mut self, what: &str, which: fn(&Instance) -> &Option<Py<PyAny>>, now: Instant) {
        let Some(instance) = self.object.clone() else { return };
        if let Some(method) = which(&instance) {
            self.attempt(what, |py| method.bind(py).call1((seconds(now),)).map(|_| ()));
            self.read_timer(&instance, now);
        }
    }

    /// Reads when the object wants its next call of `on_timer`, if it has that method.
    fn read_timer(&mut self, instance: &Instance, now: Instant) {
        if instance.on_timer.is_some() {
            let before = self.wakeup;
            let read = self.attempt("timer_s", |py| {
                timer(&instance.object.bind(py).getattr(intern!(py, "timer_s"))?, before, now)
            });
            self.wakeup = read.flatten();
        }
    }
}

/// A time at which a timer is due: that which was set `before`, or one later than `now`, so that time goes on.
fn timer(value: &Bound<'_, PyAny>, before: Option<Instant>, now: Instant) -> PyResult<Option<Instant>> {
    if value.is_none() {
        return Ok(None);
    }
    let found: Option<f64> = value.extract().ok();
    let due = found.filter(|s| *s > 0.0 && *s <= 1e9).map(|s| Instant::ZERO + Span::from_secs_f64(s));
    match due {
        Some(due) if due > now || before == Some(due) => Ok(Some(due)),
        _ => Err(PyValueError::new_err(format!(
            "self.timer_s is {}: it must be None or a time in seconds after now, which is {}",
            value.repr()?,
            seconds(now)
        ))),
    }
}

fn packet(packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant) -> Packet {
    Packet {
        now_s: seconds(now),
        size: packet.size.get(),
        flow: packet.flow.0,
        ecn_capable: packet.ecn.is_capable(),
        sojourn_s: sojourn.as_secs_f64(),
        queue_packets: backlog.packets,
        queue_bytes: backlog.bytes,
    }
}

fn verdict(answer: &Bound<'_, PyAny>) -> PyResult<Verdict> {
    if answer.is_none() {
        return Ok(Verdict::Pass);
    }
    let word = answer.cast::<PyString>().ok().map(|text| text.to_cow()).transpose()?;
    match word.as_deref() {
        Some("drop") => Ok(Verdict::Drop),
        Some("mark") => Ok(Verdict::Mark),
        _ => Err(PyValueError::new_err(format!(
            "the answer is {}: it must be \"drop\", \"mark\" or None",
            answer.repr()?
        ))),
    }
}

impl ForeignAqm for PyAqm {
    fn on_enqueue(&mut self, meta: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.instantiate(rng);
        self.judge("on_enqueue", |instance| &instance.on_enqueue, packet(meta, Span::ZERO, backlog, now), now)
    }

    fn on_dequeue(&mut self, meta: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.instantiate(rng);
        self.judge("on_dequeue", |instance| &instance.on_dequeue, packet(meta, sojourn, backlog, now), now)
    }

    fn on_overflow(&mut self, now: Instant) {
        self.tell_time("on_overflow", |instance| &instance.on_overflow, now);
    }

    fn on_empty(&mut self, now: Instant) {
        self.tell_time("on_empty", |instance| &instance.on_empty, now);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.wakeup
    }

    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        let Some(instance) = self.object.clone() else { return };
        self.wakeup = None;
        if let Some(method) = &instance.on_timer {
            let told = (seconds(now), backlog.packets, backlog.bytes);
            // The timer must be set anew, so that a class which forgets it is not called for ever.
            self.attempt("on_timer", |py| {
                instance.object.setattr(py, intern!(py, "timer_s"), py.None())?;
                method.bind(py).call1(told).map(|_| ())
            });
            self.read_timer(&instance, now);
        }
    }

    fn state(&self) -> String {
        state(self.object.as_ref().map(|instance| &instance.object))
    }

    /// An AQM in Python has no method for facts. It learns what it needs of the link when it is created.
    fn on_fact(&mut self, _: &Fact, _: Instant) {}

    fn copy(&self) -> Box<dyn ForeignAqm> {
        let copied = self.object.as_ref().and_then(|instance| {
            self.attempt("a copy", |py| {
                Instance::new(&py.import("copy")?.call_method1("deepcopy", (&instance.object,))?).map(Arc::new)
            })
        });
        let maker = Python::attach(|py| self.maker.clone_ref(py));
        let (name, trouble) = (self.name.clone(), self.trouble.clone());
        Box::new(Self { name, trouble, maker, link: self.link, object: copied, wakeup: self.wakeup })
    }
}
