//! The errors of the emulator; each message says what to do.

use penstock_grammar::Diagnosis;
use penstock_linux::error::Error as System;
use std::io;

/// The reasons for which the emulator stopped or did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    System(#[from] System),
    /// An appliance cannot be asked.
    #[error(transparent)]
    Ask(#[from] penstock_appliance::error::Error),
    /// There is a mistake in the configuration file; the message shows its line.
    #[error("{0}")]
    File(#[from] Box<Diagnosis>),
    /// The user can correct it, as the sentence says.
    #[error("{0}")]
    User(String),
}

impl Error {
    /// Returns the exit code: 1 for a failure during the run, 2 for what the user can correct.
    pub fn exit_code(&self) -> u8 {
        if let Self::System(error) = self { error.exit_code() } else { 2 }
    }

    /// Creates the error for a failed action `what`; for `map_err`.
    pub fn io<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::System(System::io(what)(source))
    }
}
