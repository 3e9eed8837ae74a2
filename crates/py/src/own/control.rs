//! Congestion controls written in Python.

use super::{Trouble, method, seconds, state};
use penstock_core::cc::{self, Advice, CongestionControl, Requirements, Setup};
use penstock_core::foreign::{Control, ForeignCc, MakeCc};
use penstock_core::rng::Streams;
use penstock_core::units::{Bytes, Instant, Rate, Span};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The round trip time of a connection that has no sample yet, which happens when its SYN or its first data was sent again
/// without timestamps: the initial timeout of RFC 6298 §2.1. With it `srtt_s` and `min_rtt_s` are numbers that a control
/// may divide by.
const ASSUMED_RTT: Span = Span::from_secs(1);

/// The largest window and threshold, with which sums stay far below the limit of 64 bits.
const MOST: f64 = (1u64 << 50) as f64;

/// What a control learns from an ACK.
#[pyclass(frozen, get_all, module = "penstock._penstock")]
pub(crate) struct Ack {
    now_s: f64,
    acked: u64,
    rtt_s: Option<f64>,
    srtt_s: f64,
    min_rtt_s: f64,
    in_flight: u64,
    cwnd_limited: bool,
    delivered: u64,
    marked: u64,
    delivery_rate_bps: Option<f64>,
}

/// A signal of congestion.
#[pyclass(frozen, get_all, module = "penstock._penstock")]
pub(crate) struct Loss {
    now_s: f64,
    in_flight: u64,
}

impl Ack {
    fn of(ack: &cc::Ack) -> Self {
        let rate = ack.rate.filter(|rate| rate.interval > Span::ZERO).map(|rate| {
            ack.delivered.saturating_sub(rate.prior_delivered).as_f64() * 8.0 / rate.interval.as_secs_f64()
        });
        let known = |rtt: Span| if rtt > Span::ZERO && rtt < Span::MAX { rtt } else { ASSUMED_RTT }.as_secs_f64();
        Self {
            now_s: seconds(ack.now),
            acked: ack.acked.get(),
            rtt_s: ack.rtt.map(Span::as_secs_f64),
            srtt_s: known(ack.srtt),
            min_rtt_s: known(ack.min_rtt),
            in_flight: ack.in_flight.get(),
            cwnd_limited: ack.cwnd_limited,
            delivered: ack.delivered.get(),
            marked: ack.marked.get(),
            delivery_rate_bps: rate,
        }
    }
}

/// The settings of a Python control, a `penstock.own.ControlMaker`.
#[derive(Debug)]
struct Maker {
    maker: Py<PyAny>,
    name: Arc<str>,
    requirements: Requirements,
    trouble: Arc<Trouble>,
}

/// Returns the factory of the controls that `maker` creates.
pub(super) fn factory(
    maker: &Bound<'_, PyAny>,
    name: &str,
    parameters: Map<String, Value>,
    trouble: &Arc<Trouble>,
) -> PyResult<Control> {
    let (ack_per_segment, accurate_ecn, ect1) = maker.getattr("requirements")?.extract()?;
    // Rate samples cost little compared with the interpreter, so every control gets them.
    let requirements = Requirements { rate: true, ack_per_segment, accurate_ecn, ect1, ..Requirements::default() };
    let maker = Maker { maker: maker.clone().unbind(), name: name.into(), requirements, trouble: trouble.clone() };
    Ok(Control::new(name, parameters, Arc::new(maker)))
}

impl MakeCc for Maker {
    fn make(&self, setup: &Setup, seed: u64) -> Box<dyn ForeignCc> {
        let mss = setup.mss.max(Bytes::new(1));
        let mut control = PyControl {
            name: self.name.clone(),
            trouble: self.trouble.clone(),
            object: None,
            requirements: self.requirements,
            mss,
            cwnd: setup.initial_window,
            ssthresh: setup.initial_ssthresh,
            pacing: None,
        };
        let first_threshold = Some(setup.initial_ssthresh).filter(|size| *size < Bytes::MAX).map(Bytes::get);
        let seed = Streams::new(seed).of_algorithm("", &self.name).bits();
        control.attempt("__init__", |control, py| {
            let made = self
                .maker
                .bind(py)
                .call_method1("make", (mss.get(), setup.initial_window.get(), first_threshold, seed))?;
            control.take_over(&made)
        });
        Box::new(control)
    }

    fn requirements(&self) -> Requirements {
        self.requirements
    }
}

/// The methods of a Python object, which are looked up once.
#[derive(Debug)]
struct Methods {
    on_ack: Option<Py<PyAny>>,
    on_recovery_ack: Option<Py<PyAny>>,
    on_loss: Option<Py<PyAny>>,
    on_ecn: Option<Py<PyAny>>,
    on_recovered: Option<Py<PyAny>>,
    on_rto: Option<Py<PyAny>>,
    on_idle: Option<Py<PyAny>>,
    adopt: Py<PyAny>,
}

/// A control with its last windows and pacing rate, which are kept because they are read far more often than they
/// change.
#[derive(Debug)]
struct PyControl {
    name: Arc<str>,
    trouble: Arc<Trouble>,
    /// The object and its methods; `None` if it could not be created.
    object: Option<(Py<PyAny>, Arc<Methods>)>,
    requirements: Requirements,
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    pacing: Option<Rate>,
}

impl PyControl {
    /// Runs `act` with the interpreter, unless an exception was raised before.
    fn attempt(&mut self, what: &str, act: impl FnOnce(&mut Self, Python<'_>) -> PyResult<()>) {
        if self.trouble.happened() {
            return;
        }
        if let Err(error) = Python::attach(|py| act(self, py)) {
            self.trouble.tell(error, format!("in {what} of {}", self.name));
        }
    }

    fn take_over(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let methods = Methods {
            on_ack: method(object, "on_ack")?,
            on_recovery_ack: method(object, "on_recovery_ack")?,
            on_loss: method(object, "on_loss")?,
            on_ecn: method(object, "on_ecn")?,
            on_recovered: method(object, "on_recovered")?,
            on_rto: method(object, "on_rto")?,
            on_idle: method(object, "on_idle")?,
            adopt: object.getattr("adopt")?.unbind(),
        };
        self.object = Some((object.clone().unbind(), Arc::new(methods)));
        self.read(object)
    }

    /// Reads the windows and the pacing rate of the object.
    fn read(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        self.cwnd = bytes(&object.getattr(intern!(py, "cwnd"))?, "cwnd")?.max(self.mss);
        self.ssthresh = bytes(&object.getattr(intern!(py, "ssthresh"))?, "ssthresh")?.max(2 * self.mss);
        let pace = object.getattr(intern!(py, "pacing_bps"))?;
        self.pacing = if pace.is_none() { None } else { Some(rate(&pace)?) };
        Ok(())
    }

    fn call(
        &mut self,
        what: &str,
        which: fn(&Methods) -> &Option<Py<PyAny>>,
        argument: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>>,
    ) {
        let Some((_, methods)) = &self.object else { return };
        let methods = methods.clone();
        let Some(method) = which(&methods) else { return };
        self.attempt(what, |control, py| {
            method.bind(py).call1((argument(py)?,))?;
            let object = control.object.as_ref().map(|(object, _)| object.clone_ref(py));
            object.map_or(Ok(()), |object| control.read(object.bind(py)))
        });
    }

    fn tell_time(&mut self, what: &str, which: fn(&Methods) -> &Option<Py<PyAny>>, now: Instant) {
        self.call(what, which, |py| Ok(seconds(now).into_pyobject(py)?.into_any()));
    }
}

fn loss<'py>(py: Python<'py>, loss: &cc::Loss) -> PyResult<Bound<'py, PyAny>> {
    Ok(Bound::new(py, Loss { now_s: seconds(loss.now), in_flight: loss.in_flight.get() })?.into_any())
}

impl CongestionControl for PyControl {
    cc::without!(notices);

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }
    fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing
    }
    fn requirements(&self) -> Requirements {
        self.requirements
    }
    fn on_ack(&mut self, ack: &cc::Ack) {
        self.call("on_ack", |m| &m.on_ack, |py| Ok(Bound::new(py, Ack::of(ack))?.into_any()));
    }
    fn on_recovery_ack(&mut self, ack: &cc::Ack) {
        self.call("on_recovery_ack", |m| &m.on_recovery_ack, |py| Ok(Bound::new(py, Ack::of(ack))?.into_any()));
    }
    fn on_loss(&mut self, signal: &cc::Loss) {
        if signal.ecn {
            self.call("on_ecn", |m| &m.on_ecn, |py| loss(py, signal));
        } else {
            self.call("on_loss", |m| &m.on_loss, |py| loss(py, signal));
        }
    }
    fn on_rto(&mut self, signal: &cc::Loss) {
        self.call("on_rto", |m| &m.on_rto, |py| loss(py, signal));
    }
    fn on_recovered(&mut self, now: Instant) {
        self.tell_time("on_recovered", |m| &m.on_recovered, now);
    }
    fn on_idle(&mut self, now: Instant, _: Bytes) {
        self.tell_time("on_idle", |m| &m.on_idle, now);
    }
    fn next_burst(&self) -> Instant {
        Instant::MAX
    }
    fn on_burst(&mut self, _: Instant, _: Bytes) {}
    /// Applies an advice. A window that does not change keeps its fraction of a byte.
    fn advise(&mut self, advice: Advice) {
        let Advice::Adopt { cwnd, ssthresh } = advice else { return };
        if (cwnd, ssthresh) == (self.cwnd, self.ssthresh) {
            return;
        }
        let Some((object, methods)) = &self.object else { return };
        let methods = methods.clone();
        let object = Python::attach(|py| object.clone_ref(py));
        self.attempt("adopt", |control, py| {
            let object = object.bind(py);
            let own = object.getattr(intern!(py, "cwnd"))?;
            let window = if cwnd == control.cwnd { own } else { cwnd.get().into_pyobject(py)?.into_any() };
            methods.adopt.bind(py).call1((window, ssthresh.get()))?;
            control.read(object)
        });
    }
}

impl ForeignCc for PyControl {
    fn copy(&self) -> Box<dyn ForeignCc> {
        let mut copy = Self { object: None, name: self.name.clone(), trouble: self.trouble.clone(), ..*self };
        copy.attempt("a copy", |copy, py| {
            let Some((object, _)) = &self.object else { return Ok(()) };
            copy.take_over(&py.import("copy")?.call_method1("deepcopy", (object,))?)
        });
        Box::new(copy)
    }

    fn state(&self) -> String {
        state(self.object.as_ref().map(|(object, _)| object))
    }
}

fn number(value: &Bound<'_, PyAny>, name: &str, allowed: &str) -> PyResult<f64> {
    let found: Option<f64> = value.extract().ok().filter(|x: &f64| !x.is_nan() && *x >= 0.0);
    found.ok_or_else(|| {
        let shown = value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        PyValueError::new_err(format!("self.{name} is {shown}: it must be {allowed}"))
    })
}

fn bytes(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Bytes> {
    let found = number(value, name, "a number of bytes, 0 or more")?;
    let is_threshold = name == "ssthresh";
    if found > MOST && !is_threshold {
        return Err(PyValueError::new_err(format!("self.{name} is {found:e}: it must be at most 2^50 bytes")));
    }
    // Infinity means that there is no threshold: the endpoint then knows that there was no signal yet.
    let none = found.is_infinite() && is_threshold;
    Ok(if none { Bytes::MAX } else { Bytes::new(found.min(MOST) as u64) })
}

fn rate(value: &Bound<'_, PyAny>) -> PyResult<Rate> {
    let allowed = "None or a number of bits per second above 0";
    let found = number(value, "pacing_bps", allowed)?;
    if found < 1.0 {
        return Err(PyValueError::new_err(format!("self.pacing_bps is {found}: it must be {allowed}")));
    }
    Ok(Rate::from_bps(found.min(1e12) as u64))
}
