//! Algorithms from outside this crate, looked up by name.
//!
//! A [`Library`] is asked for names that are not in the registry and returns factories. This module does not depend on
//! the language in which a library is written. Foreign congestion controls are in [`cc::foreign`](crate::cc::foreign),
//! foreign AQMs in [`aqm::foreign`](crate::aqm::foreign).

pub use crate::aqm::foreign::{AnyForeignAqm, Config, ForeignAqm, MakeAqm};
pub use crate::cc::foreign::{Control, ForeignCc, MakeCc, Running};
use serde_json::{Map, Value};

/// Why a library cannot provide an algorithm whose name it knows. The library writes the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LibraryError(pub String);

/// Finds names that are not in the registry, and files that a scenario names. The library `()` knows none.
pub trait Library {
    /// The congestion control of this name with these parameters; `None` if the library does not know the name, an
    /// error if the control cannot be used.
    fn control(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Control, LibraryError>>;
    /// The AQM of this name with these parameters; `None` if the library does not know the name, an error if the AQM
    /// cannot be used.
    fn aqm(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Config, LibraryError>>;
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
