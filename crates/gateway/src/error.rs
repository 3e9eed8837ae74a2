//! What can go wrong, and what to do about it.

use penstock_grammar::Diagnosis;
use std::io;
use std::path::PathBuf;

/// The reasons for which the gateway stopped or did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is a mistake in the file; the message shows its line.
    #[error("{0}")]
    File(#[from] Box<Diagnosis>),
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    NoFile {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// An interface of the file is not there.
    #[error("`{key}`: {source}")]
    NoInterface {
        /// The key of the file.
        key: &'static str,
        /// What is missing.
        source: penstock_linux::error::Error,
    },
    /// No program of the firewall works here.
    #[error(
        "neither iptables-legacy nor iptables works here ({0}); install one (`apt install iptables`), and run as root or \
         with CAP_NET_ADMIN and CAP_NET_RAW"
    )]
    NoFirewall(String),
    /// A program of the firewall refused.
    #[error("{program}: {said}")]
    Rules {
        /// The program.
        program: String,
        /// What it said.
        said: String,
    },
    /// The rules that were read back are not those that were meant.
    #[error("the rules of the firewall are not those that were written; missing: {0}")]
    ReadBack(String),
    /// The programs of the kernel cannot be used.
    #[error("{0}")]
    Bpf(#[from] penstock_linux::bpf::Error),
    /// The file asks for what the programs of the kernel do not have.
    #[error("{0}")]
    Kernel(String),
    /// The interfaces are not those of a bridge behind which this process can stand.
    #[error("mode = \"bridge\": {0}")]
    Bridge(String),
    /// Budgets for hosts cannot be given.
    #[error("[c2ml]: {0}")]
    Hosts(String),
    /// The system refused something.
    #[error("{0}")]
    System(#[from] penstock_linux::error::Error),
    /// A gateway cannot be asked, or its control socket not be opened.
    #[error("{0}")]
    Ask(#[from] penstock_appliance::error::Error),
    /// A call of the system failed.
    #[error("{what}: {source}")]
    Io {
        /// The action that failed.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

impl Error {
    /// Returns the exit code: 1 for a failure during the run, 2 for what the user can correct.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Io { .. } | Self::ReadBack(_) => 1,
            Self::System(error) => error.exit_code(),
            Self::Ask(error) => error.exit_code(),
            _ => 2,
        }
    }

    /// Creates the error for a failed action `what`; for `map_err`.
    pub(crate) fn io<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Io { what, source: source.into() }
    }
}
