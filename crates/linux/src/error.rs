//! What the operating system refuses; each message says what to do.

use std::io;
use std::path::PathBuf;

/// What a part of the operating system refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The namespace does not exist.
    #[error("there is no network namespace {}{hint}; create one with `ip netns add NAME`, or give a path such as /proc/PID/ns/net", .path.display())]
    NoNamespace {
        /// Path where the namespace was expected.
        path: PathBuf,
        /// Namespaces that exist, as a part of the message.
        hint: String,
    },
    /// The namespace cannot be entered.
    #[error("cannot enter the network namespace {namespace}: {source}{}", advice(.source, "is it a network namespace?"))]
    Namespace {
        /// Name of the namespace, as it was given.
        namespace: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The system has no TUN devices.
    #[error("/dev/net/tun is missing; load the module with `modprobe tun`, or give the container this device")]
    NoTun,
    /// The interface cannot be created or configured.
    #[error("cannot make the interface {name} in {namespace}: {source}{}", advice(.source, ""))]
    Tun {
        /// Name of the interface.
        name: String,
        /// Namespace of the interface.
        namespace: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The interface does not exist.
    #[error("there is no interface {name:?}{hint}; `ip link` lists them")]
    NoInterface {
        /// Name of the interface.
        name: String,
        /// The nearest name, as a part of the message.
        hint: String,
    },
    /// An interface cannot be a port.
    #[error("{0}")]
    Port(String),
    /// Another process has the queue of the kernel.
    #[error("another program has the queue {queue} of netfilter (port {owner}); end it, or choose another `queue`")]
    QueueTaken {
        /// Number of the queue.
        queue: u16,
        /// The netlink port of the process.
        owner: u32,
    },
    /// The kernel does not give a queue.
    #[error("cannot take charge of the queue {queue} of netfilter: {source}{}", advice(.source, "has this kernel NFQUEUE (`modprobe nfnetlink_queue`)?"))]
    Queue {
        /// Number of the queue.
        queue: u16,
        /// Error of the system.
        source: io::Error,
    },
    /// There is too little memory to begin with.
    #[error("there is too little memory: {} MiB are needed at the start; see `ulimit -v`", .0 >> 20)]
    Memory(usize),
    /// The system refused `--realtime`.
    #[error("--realtime: {0}; run as root or with CAP_SYS_NICE, or leave the option away")]
    Realtime(io::Error),
    /// A call of the system failed during the run.
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
            Self::Io { .. } => 1,
            _ => 2,
        }
    }

    /// Creates the error for a failed action `what`; for `map_err`.
    pub fn io<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> Self {
        move |source| Self::Io { what, source: source.into() }
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
