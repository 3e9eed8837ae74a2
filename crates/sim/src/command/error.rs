//! What a user can do wrong with a program that has algorithms of its own.

use super::USAGE;
use crate::Broken;
use penstock_core::config::ConfigError;
use penstock_core::foreign::LibraryError;
use penstock_core::settings::SettingsError;
use penstock_grammar::Diagnosis;
use penstock_trace::error::{ReadError, ReplayError};
use std::num::ParseIntError;
use std::string::FromUtf8Error;

/// A command that was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("{USAGE}")]
    NoCommand,
    #[error("{0}: there is no such option; {USAGE}")]
    UnknownFlag(String),
    #[error("{option}: there is no such option; there are --set, {known}")]
    UnknownOption { option: String, known: String },
    #[error("{0}: give it a value")]
    NoValue(String),
    #[error("give one file; given are {0}")]
    Files(usize),
    #[error("{option} {text}: {message}")]
    Value { option: String, text: String, message: String },
    #[error("{0} is missing")]
    Missing(String),
    #[error("{option} is missing: this program has no {wanted}")]
    NoAlgorithm { option: String, wanted: String },
    #[error("--alg {0}: this program has no such scheduler")]
    UnknownScheduler(String),
    #[error("--state-at {0}: write the packet and the nanosecond, 12:345")]
    StateAt(String),
    #[error("--weights: {0}; write 1,2,4")]
    Weights(ParseIntError),
    #[error("{file}: cannot be read: {source}")]
    Unreadable { file: String, source: std::io::Error },
    #[error("{file}: line {line}: write event,class,value")]
    Row { file: String, line: usize },
    #[error("{file}: {source}")]
    Trace { file: String, source: ReadError },
    #[error("{file}: {source}")]
    Replay { file: String, source: ReplayError },
    #[error(transparent)]
    State(ReplayError),
    #[error(transparent)]
    Scenario(#[from] Diagnosis),
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Schedule(#[from] ConfigError),
    #[error(transparent)]
    Summary(#[from] serde_json::Error),
    #[error(transparent)]
    Fates(#[from] FromUtf8Error),
}
