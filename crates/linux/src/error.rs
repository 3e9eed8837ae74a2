//! What the operating system refuses; each message says what to do.

use std::fmt::Display;
use std::io;

/// What a part of the operating system refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user can correct it, as the sentence says.
    #[error("{0}")]
    Refused(String),
    /// A call of the system failed during the run.
    #[error("{0}: {1}")]
    Io(&'static str, #[source] io::Error),
}

impl Error {
    /// Returns the exit code: 1 for a failure during the run, 2 for what the user can correct.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Io(..) => 1,
            Self::Refused(_) => 2,
        }
    }

    /// Creates the error for a failed action `what`; for `map_err`.
    pub fn io<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Io(what, source.into())
    }

    /// Creates the error for what was refused, with what to do about it, or else the advice `otherwise`; for `map_err`.
    pub fn refused<E: Into<io::Error>>(what: impl Display, otherwise: &str) -> impl Fn(E) -> Self {
        move |source| {
            let source = source.into();
            Self::Refused(format!("{what}: {source}{}", advice(&source, otherwise)))
        }
    }
}

/// Returns what to do about an error of the system.
fn advice(source: &io::Error, otherwise: &str) -> String {
    let advice = match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "run as root or with CAP_NET_ADMIN and CAP_SYS_ADMIN",
        Some(libc::EMFILE | libc::ENFILE) => "too few file descriptors: raise the limit of `ulimit -n`",
        Some(libc::EBUSY) => "an interface of this name exists already: choose another name or remove it",
        Some(libc::EINVAL) if otherwise.is_empty() => "is the name, the address or the MTU one an interface may have?",
        _ => otherwise,
    };
    if advice.is_empty() { String::new() } else { format!("; {advice}") }
}
