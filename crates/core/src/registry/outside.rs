//! Disciplines of a library by name, and the algorithms of a library that the parameters of a discipline name.

use super::before::{self, QUEUE};
use super::{AnyAqmConfig, AnyConfig, NAMES};
use crate::ack;
use crate::config::ConfigError;
use crate::foreign::{Kind, Library, LibraryError};
use crate::sched::classful::foreign as scheduled;
use crate::suggest::unknown_name;
use serde_json::{Map, Value};

impl AnyConfig {
    /// Returns the discipline that a library has under this name: an AQM with one queue, a scheduler with the queues of
    /// its classes, or an element on the ACK path before another discipline. `None` if the library does not know it.
    ///
    /// Parameters of the classes stand among those of a scheduler, and the key `queue` among those of an element.
    pub fn foreign(
        library: &dyn Library,
        name: &str,
        parameters: &Map<String, Value>,
    ) -> Option<Result<Self, LibraryError>> {
        match library.kind(name) {
            Some(Kind::Scheduler) => Some(scheduler(library, name, parameters)),
            Some(Kind::AckPath) => Some(element(library, name, parameters)),
            _ => Some(library.aqm(name, parameters)?.map(Self::Foreign)),
        }
    }

    /// Returns true if the discipline, or an algorithm that its parameters name, is from outside this crate.
    pub fn is_foreign(&self) -> bool {
        match self {
            Self::Foreign(_) | Self::ForeignScheduler(_) | Self::ForeignAckPath(_) => true,
            Self::Fq(config) => matches!(config.aqm.per_flow, AnyAqmConfig::Foreign(_)),
            Self::Modular(config) => config.arrangement.foreign.iter().any(Option::is_some),
            _ => false,
        }
    }

    /// Looks in a library for the algorithms that the parameters name: the AQM of each flow queue, the two schedulers of
    /// `modular`. Call it before validation, which refuses names that were not found.
    ///
    /// # Errors
    /// Names the parameter whose algorithm cannot be used.
    pub fn find_foreign(&mut self, library: &dyn Library) -> Result<(), ConfigError> {
        match self {
            Self::Fq(config) => config.aqm.find_foreign(library),
            Self::Modular(config) => config.arrangement.find_foreign(|name| library.scheduler(name, &Map::new())),
            _ => Ok(()),
        }
    }
}

/// A discipline that cannot stand behind an element on the ACK path.
#[derive(Debug, thiserror::Error)]
enum BehindError {
    #[error("`name` is missing; it is one of {}", NAMES.join(", "))]
    NoName,
    #[error("{0} is no discipline: write its name, or a table with `name`")]
    NoDiscipline(Value),
    #[error("{}", unknown_name("algorithm", .0, NAMES))]
    Unknown(String),
    #[error(transparent)]
    Parameters(#[from] serde_json::Error),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error("{name}: {source}")]
    Config { name: String, source: ConfigError },
}

/// The library said that it has an algorithm, and does not have it.
fn gone(name: &str) -> LibraryError {
    LibraryError(format!("{name} was not found"))
}

fn scheduler(library: &dyn Library, name: &str, parameters: &Map<String, Value>) -> Result<AnyConfig, LibraryError> {
    let (classes, own) = scheduled::split(parameters).map_err(|error| LibraryError(format!("{name}: {error}")))?;
    let scheduler = library.scheduler(name, &own).unwrap_or_else(|| Err(gone(name)))?;
    Ok(AnyConfig::ForeignScheduler(scheduled::Config { classes, scheduler }))
}

fn element(library: &dyn Library, name: &str, parameters: &Map<String, Value>) -> Result<AnyConfig, LibraryError> {
    let mut own = parameters.clone();
    let queue = match own.remove(QUEUE) {
        None => AnyConfig::default_of("droptail").ok_or_else(|| gone("droptail"))?,
        Some(queue) => behind(library, queue).map_err(|error| LibraryError(format!("{name}: {QUEUE}: {error}")))?,
    };
    let element: ack::foreign::Config = library.ack_path(name, &own).unwrap_or_else(|| Err(gone(name)))?;
    Ok(AnyConfig::ForeignAckPath(Box::new(before::Config { element, queue })))
}

/// Reads the discipline behind an element: its name, or a table of its name and its parameters.
fn behind(library: &dyn Library, queue: Value) -> Result<AnyConfig, BehindError> {
    let (name, parameters) = match queue {
        Value::String(name) => (name, Map::new()),
        Value::Object(mut table) => match table.remove("name") {
            Some(Value::String(name)) => (name, table),
            _ => return Err(BehindError::NoName),
        },
        other => return Err(BehindError::NoDiscipline(other)),
    };
    let mut found = match AnyConfig::deserialize(&name, Value::Object(parameters.clone())) {
        Some(read) => read?,
        None => match AnyConfig::foreign(library, &name, &parameters) {
            Some(found) => found?,
            None => return Err(BehindError::Unknown(name)),
        },
    };
    let checked = found.find_foreign(library).and_then(|()| found.validate());
    checked.map_err(|source| BehindError::Config { name, source })?;
    Ok(found)
}
