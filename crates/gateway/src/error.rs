//! What can go wrong, and what to do about it.

use penstock_grammar::Diagnosis;
use penstock_linux::error::Error as System;
use std::io;
use std::path::Path;

/// The reasons for which the gateway stopped or did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is a mistake in the file; the message shows its line.
    #[error("{0}")]
    File(#[from] Box<Diagnosis>),
    /// The user can correct it, as the sentence says.
    #[error("{0}")]
    User(String),
    /// It may come right without a change of the file, as the sentence says.
    #[error("{0}")]
    Surroundings(String),
    /// The programs of the kernel cannot be used.
    #[error("{0}")]
    Bpf(#[from] penstock_linux::bpf::Error),
    /// The system refused something.
    #[error("{0}")]
    System(#[from] System),
    /// A gateway cannot be asked, or its control socket not be opened.
    #[error("{0}")]
    Ask(#[from] penstock_appliance::error::Error),
}

impl Error {
    /// Returns the exit code: 1 for a failure during the run, 2 for what the user can correct, 3 for what may come
    /// right by itself, so that a service manager tries again.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::System(error) => error.exit_code(),
            Self::Ask(error) => error.exit_code(),
            Self::Surroundings(_) => 3,
            _ => 2,
        }
    }

    /// Creates the error for a failed action `what`; for `map_err`.
    pub fn io<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::System(System::io(what)(source))
    }

    /// Budgets for hosts cannot be given.
    pub fn budgets(why: impl std::fmt::Display) -> Self {
        Self::User(format!("[c2ml]: {why}"))
    }
}

/// Returns the text of a file.
pub fn text_of(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|e| Error::User(format!("cannot read {}: {e}", path.display())))
}
