//! The errors of the emulator; each message says what to do.

use penstock_core::settings::SettingsError;
use penstock_grammar::Diagnosis;
use penstock_linux::error::Error as System;
use std::io;
use std::path::PathBuf;

/// The reasons for which the emulator stopped or did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    System(#[from] System),
    /// An appliance cannot be asked.
    #[error(transparent)]
    Ask(#[from] penstock_appliance::error::Error),
    /// An algorithm does not exist, or one of its parameters is wrong.
    #[error("{option}: {source}; `--list` shows every algorithm with its parameters")]
    Settings { option: &'static str, source: SettingsError },
    /// There is a mistake in the configuration file; the message shows its line.
    #[error("{0}")]
    File(#[from] Box<Diagnosis>),
    #[error("cannot read the configuration {}: {source}", .path.display())]
    NoFile { path: PathBuf, source: io::Error },
    /// Options contradict each other.
    #[error("{0}")]
    Options(String),
    /// A file of packets cannot be written.
    #[error("{option} {}: {source}{}", .path.display(), pipe(.source))]
    Packets { option: &'static str, path: PathBuf, source: io::Error },
}

impl Error {
    /// Returns the exit code: 1 for a failure during the run, 2 for what the user can correct.
    pub fn exit_code(&self) -> u8 {
        if let Self::System(error) = self { error.exit_code() } else { 2 }
    }

    /// Creates the error for a failed action `what`; for `map_err`.
    pub fn io<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::System(System::Io { what, source: source.into() })
    }
}

fn pipe(source: &io::Error) -> &'static str {
    if source.raw_os_error() == Some(libc::ENXIO) { "; nobody reads this pipe: start its reader first" } else { "" }
}
