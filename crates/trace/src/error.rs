//! What can be wrong with a trace or its replay. Each message says where and what is allowed.

use penstock_core::config::ConfigError;

/// A trace that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Reading stopped.
    #[error("reading stopped after byte {offset}: {source}")]
    Io {
        /// Bytes read before.
        offset: u64,
        /// Why.
        source: std::io::Error,
    },
    /// The file is none of the formats.
    #[error("{0}; a trace is a pcap or pcapng capture, or CSV with the columns t_ns,flow,size,ecn")]
    Format(String),
    /// A capture that breaks its format.
    #[error("{format}: packet {packet}, at byte {offset}: {what}")]
    Capture {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// The packet that was being read, counted from 1.
        packet: u64,
        /// Where its record or block begins.
        offset: u64,
        /// What is wrong and what is allowed.
        what: String,
    },
    /// A table that breaks its format.
    #[error("CSV line {line}: {what}")]
    Table {
        /// The line, counted from 1.
        line: u64,
        /// The column, what is wrong and what is allowed.
        what: String,
    },
}

/// A replay that cannot be finished.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The trace could not be read to its end.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// A parameter cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Arrivals are not in order of time.
    #[error("packet {id} arrives at {t_ns} ns, before its predecessor; sort the arrivals by time")]
    Backwards {
        /// The packet, counted from 0.
        id: u64,
        /// Its time.
        t_ns: u64,
    },
    /// An arrival that no trace may hold.
    #[error("packet {id}: a size of 1 to 1048560 bytes and a time of at most 10^15 ns are allowed")]
    OutOfRange {
        /// The packet, counted from 0.
        id: u64,
    },
    /// The discipline broke its contract.
    #[error("{name} broke the contract of a queue discipline: {what}")]
    Broken {
        /// The algorithm.
        name: String,
        /// What it did.
        what: String,
    },
}
