//! Algorithms that are not in this crate: where they are found by name.
//!
//! A [`Library`] is asked when a name is not in the registry; what it gives is a factory. Nothing here knows a language.
//! Congestion controls from outside are in [`cc::foreign`](crate::cc::foreign), AQMs in
//! [`aqm::foreign`](crate::aqm::foreign).

pub use crate::aqm::foreign::{AnyForeignAqm, Config, ForeignAqm, MakeAqm};
pub use crate::cc::foreign::{Control, ForeignCc, MakeCc, Running};
use serde_json::{Map, Value};

/// A library knows a name and cannot give what is called so. The sentence is the library's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LibraryError(pub String);

/// Where names are looked up that are not in the registry, and files that a scenario names. `()` knows none.
pub trait Library {
    /// The control of this name with these parameters: `None` if it is none of this library's, a sentence if it cannot be
    /// used.
    fn control(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Control, LibraryError>>;
    /// The AQM of this name with these parameters, likewise.
    fn aqm(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Config, LibraryError>>;
    /// The text of the file of this name: `None` if this library has no files, an error if it cannot be read.
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
