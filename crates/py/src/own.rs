//! Algorithms written in Python: the core's foreign traits implemented over Python objects. Files that a scenario names
//! are read in the same way.
//!
//! `python/penstock/own.py` finds and creates the objects; this file calls them. A run with such algorithms holds the
//! interpreter all the time, because acquiring it for every call would cost more than the call. The first exception is
//! kept, no object is called after it, and the run stops at the end of its current step.

mod aqm;
mod control;
mod element;
mod scheduler;

pub(crate) use aqm::Packet;
pub(crate) use control::{Ack, Loss};
pub(crate) use element::Segment;

use penstock_core::foreign::{Config, Control, Kind, Library, LibraryError, ack_path, scheduler as schedulers};
use penstock_core::stack;
use penstock_core::units::Instant;
use penstock_stacks::child::Child;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What makes the AQMs, schedulers or elements of a Python class: a maker of `penstock.own`, such as `AqmMaker`.
#[derive(Debug)]
struct Maker {
    maker: Py<PyAny>,
    name: Arc<str>,
    trouble: Arc<Trouble>,
}

impl Maker {
    fn new(maker: Bound<'_, PyAny>, name: &str, trouble: &Arc<Trouble>) -> Self {
        Self { maker: maker.unbind(), name: name.into(), trouble: trouble.clone() }
    }
}

/// The first exception of any Python algorithm in a run, and the call that raised it.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    happened: AtomicBool,
    first: Mutex<Option<(PyErr, String)>>,
}

impl Trouble {
    fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    /// Keeps an exception, if it is the first. `what` is the end of a sentence: "in on_ack of my.py:MyCc".
    fn tell(&self, error: PyErr, what: String) {
        if !self.happened.swap(true, Ordering::Relaxed) {
            *self.first.lock().unwrap_or_else(PoisonError::into_inner) = Some((error, what));
        }
    }

    /// Runs `act` with the interpreter, unless an exception was raised before; keeps its exception. `what` is the method of
    /// the algorithm `name` that is called.
    fn attempt<T>(&self, what: &str, name: &str, act: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.happened() {
            return None;
        }
        match Python::attach(act) {
            Ok(done) => Some(done),
            Err(error) => {
                self.tell(error, format!("in {what} of {name}"));
                None
            }
        }
    }

    fn take(&self) -> Option<(PyErr, String)> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A `penstock.own.Library`, or nothing.
pub(crate) struct PyLibrary {
    object: Option<Py<PyAny>>,
    trouble: Arc<Trouble>,
    /// True if an algorithm was found in the library.
    used: AtomicBool,
}

impl PyLibrary {
    pub fn new(object: Option<Py<PyAny>>) -> Self {
        Self { object, trouble: Arc::default(), used: AtomicBool::new(false) }
    }

    /// Runs `step`, and lets other Python threads run at the same time if no algorithm needs the interpreter. An
    /// exception of an algorithm has precedence over any other error, because it may be the cause.
    pub fn run<T: Send>(&self, py: Python<'_>, step: impl FnOnce() -> PyResult<T> + Send) -> PyResult<T> {
        let done = if self.used.load(Ordering::Relaxed) { step() } else { py.detach(step) };
        match self.failure(py) {
            Some(error) => Err(error),
            None => done,
        }
    }

    /// Returns the exception of an algorithm, which must be raised; `None` if there was none.
    pub fn failure(&self, py: Python<'_>) -> Option<PyErr> {
        let (error, what) = self.trouble.take()?;
        let explained =
            py.import("penstock.own").and_then(|own| own.call_method1("explained", (error.into_value(py), what)));
        Some(explained.map_or_else(|other| other, PyErr::from_value))
    }

    /// Calls the library's method `find` with `name`; returns what it found, or why that cannot be used.
    fn find<'py>(
        &self,
        py: Python<'py>,
        find: &str,
        arguments: (&str, &str),
    ) -> Option<Result<Bound<'py, PyAny>, LibraryError>> {
        let found = self.ask(py, find, arguments)?;
        self.used.fetch_or(found.is_ok(), Ordering::Relaxed);
        Some(found)
    }

    /// Calls the library's method `find` without noting that an algorithm is in use: for what is never called in a run.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        find: &str,
        arguments: (&str, &str),
    ) -> Option<Result<Bound<'py, PyAny>, LibraryError>> {
        match self.object.as_ref()?.call_method1(py, find, arguments) {
            Ok(found) if found.is_none(py) => None,
            Ok(found) => Some(Ok(found.into_bound(py))),
            Err(error) => {
                let message = error.value(py).to_string();
                if !is_mistake(py, &error) {
                    self.trouble.tell(error, format!("while {} was looked up", arguments.0));
                }
                Some(Err(LibraryError(message)))
            }
        }
    }
}

impl Library for PyLibrary {
    fn control(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Control, LibraryError>> {
        let values = serde_json::to_string(parameters).unwrap_or_default();
        Python::attach(|py| {
            let made = |maker: Bound<'_, PyAny>| control::factory(&maker, name, parameters.clone(), &self.trouble);
            let told = |error: PyErr| LibraryError(error.to_string());
            Some(self.find(py, "control", (name, &values))?.and_then(|maker| made(maker).map_err(told)))
        })
    }

    fn aqm(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Config, LibraryError>> {
        let values = serde_json::to_string(parameters).unwrap_or_default();
        Python::attach(|py| {
            let maker = self.find(py, "aqm", (name, &values))?;
            Some(maker.map(|maker| aqm::factory(maker, name, parameters.clone(), &self.trouble)))
        })
    }

    fn scheduler(
        &self,
        name: &str,
        parameters: &Map<String, Value>,
    ) -> Option<Result<schedulers::Config, LibraryError>> {
        let values = serde_json::to_string(parameters).unwrap_or_default();
        Python::attach(|py| {
            let found = self.find(py, "scheduler", (name, &values))?;
            let made = |maker| scheduler::factory(maker, name, parameters.clone(), &self.trouble);
            Some(found.map(made))
        })
    }

    fn ack_path(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<ack_path::Config, LibraryError>> {
        let values = serde_json::to_string(parameters).unwrap_or_default();
        Python::attach(|py| {
            let found = self.find(py, "ack_path", (name, &values))?;
            let made = |maker| element::factory(maker, name, parameters.clone(), &self.trouble);
            Some(found.map(made))
        })
    }

    fn stack(&self, name: &str) -> Option<Result<stack::Config, LibraryError>> {
        let program = || {
            Python::attach(|py| {
                let command = self.ask(py, "stack", (name, ""))?;
                let read =
                    |found: Bound<'_, PyAny>| found.extract().map_err(|error: PyErr| LibraryError(error.to_string()));
                Some(command.and_then(read).map(|words| stack::Config::new(name, Arc::new(Child::new(words)))))
            })
        };
        penstock_stacks::released(name).or_else(program)
    }

    fn kind(&self, name: &str) -> Option<Kind> {
        Python::attach(|py| {
            let word: String = self.ask(py, "kind", (name, ""))?.ok()?.extract().ok()?;
            match word.as_str() {
                "aqm" => Some(Kind::Aqm),
                "scheduler" => Some(Kind::Scheduler),
                "ack-path" => Some(Kind::AckPath),
                _ => None,
            }
        })
    }

    fn file(&self, name: &str) -> Option<Result<String, LibraryError>> {
        Python::attach(|py| {
            let text =
                |found: Bound<'_, PyAny>| found.extract().map_err(|error: PyErr| LibraryError(error.to_string()));
            Some(self.ask(py, "text", (name, ""))?.and_then(text))
        })
    }
}

/// True if the exception is a refusal of the library, whose sentence is shown at the line of the scenario.
fn is_mistake(py: Python<'_>, error: &PyErr) -> bool {
    let kind = py.import("penstock.mistake").and_then(|module| module.getattr("MistakeError"));
    kind.is_ok_and(|kind| error.is_instance(py, &kind))
}

/// Returns a method of an object if its class overrides that of the base class; otherwise there is nothing to call.
fn method(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Py<PyAny>>> {
    let own = object.py().import("penstock.own")?;
    let found = own.call_method1("overridden", (object, name))?;
    Ok((!found.is_none()).then(|| found.unbind()))
}

/// Returns the state of an object as `penstock.own.state_of` writes it.
fn state(object: Option<&Py<PyAny>>) -> String {
    let Some(object) = object else { return "not created yet".to_owned() };
    let told = |py: Python<'_>| py.import("penstock.own")?.call_method1("state_of", (object,))?.extract();
    Python::attach(told).unwrap_or_else(|error: PyErr| format!("its method `state` failed: {error}"))
}

fn seconds(now: Instant) -> f64 {
    now.as_secs_f64()
}
