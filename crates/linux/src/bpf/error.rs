//! What can go wrong, and what to do about it.

/// The reasons for which the programs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This build has no programs.
    #[error(
        "this build has no programs of the kernel: {0}; install clang and build again (`cargo clean -p penstock-linux && cargo \
         build --release`), or do without them: mode = \"router\" and datapath = \"user\""
    )]
    NotBuilt(&'static str),
    /// The kernel refused a program or a map.
    #[error(
        "the kernel refuses {0}: {1}; it needs Linux 5.17 or newer, root or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    Refused(&'static str, String),
    /// The kernel attaches no program by TCX.
    #[error(
        "the kernel attaches no program to {0} by TCX: {1}; this needs Linux 6.6 or newer, and root or CAP_BPF, \
         CAP_PERFMON and CAP_NET_ADMIN"
    )]
    NoTcx(String, String),
}

impl Error {
    /// True if the kernel made the maps and its verifier refused a program. Then the right is there, and the program or the age
    /// of the kernel is to blame.
    pub fn is_of_verifier(&self) -> bool {
        matches!(self, Self::Refused("a program", _))
    }

    /// Makes the error for what the kernel refused; for `map_err`.
    pub(crate) fn refused<E: std::error::Error>(what: &'static str) -> impl Fn(E) -> Self {
        move |error| {
            let mut why = error.to_string();
            let mut source = error.source();
            while let Some(inner) = source {
                why = format!("{why}: {inner}");
                source = inner.source();
            }
            Self::Refused(what, why)
        }
    }
}
