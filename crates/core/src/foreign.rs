//! Algorithms from outside this crate, looked up by name.
//!
//! A [`Library`] is asked for names that are not in the registry and returns factories. This module does not depend on
//! the language in which a library is written. Each kind of algorithm has its traits beside the built-in ones: congestion
//! controls in [`cc::foreign`](crate::cc::foreign), AQMs in [`aqm::foreign`](crate::aqm::foreign), packet schedulers in
//! [`sched::foreign`](crate::sched::foreign), elements on the ACK path in [`ack::foreign`](crate::ack::foreign),
//! whole transport stacks in [`stack`].
//! [`Own`] is the library of somebody's own crate: its types implement the traits of the built-in algorithms.

mod own;

pub use crate::ack::foreign as ack_path;
pub use crate::aqm::foreign::{AnyForeignAqm, Config, ForeignAqm, MakeAqm};
pub use crate::cc::foreign::{Control, ForeignCc, MakeCc, Running};
pub use crate::sched::foreign as scheduler;
pub use own::Own;

use crate::stack;
use serde_json::{Map, Value};

/// Why a library cannot provide an algorithm whose name it knows. The library writes the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LibraryError(pub String);

/// The kind of an algorithm that can stand where a discipline is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It judges the packets of one queue.
    Aqm,
    /// It picks the class to serve.
    Scheduler,
    /// It lowers windows before a discipline.
    AckPath,
}

/// Finds names that are not in the registry, and files that a scenario names. The library `()` knows none.
pub trait Library {
    /// The congestion control of this name with these parameters; `None` if the library does not know the name, an
    /// error if the control cannot be used.
    fn control(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Control, LibraryError>>;
    /// The AQM of this name with these parameters; `None` if the library does not know the name, an error if the AQM
    /// cannot be used.
    fn aqm(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Config, LibraryError>>;
    /// The packet scheduler of this name with these parameters; `None` if the library does not know the name, an error
    /// if the scheduler cannot be used.
    fn scheduler(
        &self,
        name: &str,
        parameters: &Map<String, Value>,
    ) -> Option<Result<scheduler::Config, LibraryError>> {
        let _ = (name, parameters);
        None
    }
    /// The element on the ACK path of this name with these parameters; `None` if the library does not know the name, an
    /// error if the element cannot be used.
    fn ack_path(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<ack_path::Config, LibraryError>> {
        let _ = (name, parameters);
        None
    }
    /// The kind of the algorithm of this name, where a discipline is named; `None` if the library does not know the name
    /// or cannot tell, so that [`Library::aqm`] answers.
    fn kind(&self, name: &str) -> Option<Kind> {
        let _ = name;
        None
    }
    /// The transport stack of this name; `None` if the library does not know the name, an error if the stack cannot be used.
    fn stack(&self, name: &str) -> Option<Result<stack::Config, LibraryError>> {
        let _ = name;
        None
    }
    /// The text of the file of this name; `None` if this library has no files, an error if the file cannot be read.
    fn file(&self, name: &str) -> Option<Result<String, LibraryError>> {
        let _ = name;
        None
    }
}

impl Library for () {
    fn control(&self, _: &str, _: &Map<String, Value>) -> Option<Result<Control, LibraryError>> {
        None
    }
    fn aqm(&self, _: &str, _: &Map<String, Value>) -> Option<Result<Config, LibraryError>> {
        None
    }
}
