//! The errors of reading a trace and of replaying it. Each message says where the mistake is and what is allowed.

use penstock_core::config::ConfigError;

/// A trace that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// Path of the file.
        path: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// An error of the system while reading.
    #[error("reading stopped after byte {offset}: {source}")]
    Io {
        /// Number of bytes read before.
        offset: u64,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The file has none of the supported formats.
    #[error("{0}; a trace is a pcap or pcapng capture, or CSV with the columns t_ns,flow,size,ecn")]
    Format(String),
    /// The trace holds no packet that can be read.
    #[error("{0}; read are IP packets behind Ethernet, PPP, PPPoE, MPLS, Linux cooked headers, BSD loopback, and none")]
    Nothing(String),
    /// The table has a header row and nothing else.
    #[error("the table has no rows below its header")]
    NoRows,
    /// A capture violates its format.
    #[error("{format}: packet {packet}, at byte {offset}: {what}")]
    Capture {
        /// Format of the capture: `pcap` or `pcapng`.
        format: &'static str,
        /// Number of the packet that was being read, beginning with 1.
        packet: u64,
        /// Offset at which its record or block begins.
        offset: u64,
        /// What is wrong, and what is allowed.
        what: String,
    },
    /// A capture ends within a packet. What was read before is whole.
    #[error("{format}: packet {packet}, at byte {offset}: {what}")]
    Cut {
        /// Format of the capture: `pcap` or `pcapng`.
        format: &'static str,
        /// Number of the packet that was being read, beginning with 1.
        packet: u64,
        /// Offset at which its record or block begins.
        offset: u64,
        /// What is missing.
        what: String,
    },
    /// A line of a file of random numbers is no number.
    #[error("draws line {line}: {text:?}; one number from 0 to 18446744073709551615 per line is allowed")]
    Draws {
        /// Number of the line, beginning with 1.
        line: u64,
        /// What stands there.
        text: String,
    },
    /// A table violates its format.
    #[error("CSV line {line}: {what}")]
    Table {
        /// Number of the line, beginning with 1.
        line: u64,
        /// The column, what is wrong, and what is allowed.
        what: String,
    },
}

/// A replay that cannot be completed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace could not be read to its end.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// A parameter is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The arrivals are not in order of time.
    #[error("packet {id} arrives at {t_ns} ns, before its predecessor; sort the arrivals by time")]
    Backwards {
        /// Number of the packet, beginning with 0.
        id: u64,
        /// Time of its arrival in nanoseconds.
        t_ns: u64,
    },
    /// An arrival has a size or a time that no trace may hold.
    #[error("packet {id}: a size of 1 to 1048560 bytes and a time of at most 10^15 ns are allowed")]
    OutOfRange {
        /// Number of the packet, beginning with 0.
        id: u64,
    },
    /// The random numbers that were given have run out.
    #[error(
        "packet {id}: the draws have run out: the discipline asked for {asked} by then, and there are {given}; give more"
    )]
    Draws {
        /// Number of the packet that was arriving, beginning with 0; that of the last packet and one while the queue
        /// was drained.
        id: u64,
        /// How many numbers there were.
        given: usize,
        /// How many the discipline had asked for.
        asked: usize,
    },
    /// The discipline violated the contract of queue disciplines.
    #[error("{name} broke the contract of a queue discipline: {what}")]
    Broken {
        /// Name of the discipline.
        name: String,
        /// What the discipline did.
        what: String,
    },
}
