//! Why an appliance cannot be asked, or cannot be started.

use std::io;

/// Why an appliance cannot be asked, or cannot be started; each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user can correct it, as the sentence says.
    #[error("{0}")]
    User(String),
    /// The system refused something.
    #[error(transparent)]
    System(#[from] penstock_linux::error::Error),
}

impl Error {
    /// Returns the exit code: 1 for a failure during the run, 2 for what the user can correct.
    pub fn exit_code(&self) -> u8 {
        if let Self::System(error) = self { error.exit_code() } else { 2 }
    }

    /// Creates the error for a failed action `what`; for `map_err`.
    pub fn io<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::System(penstock_linux::error::Error::io(what)(source))
    }
}
