//! The sizes of the table.

use crate::subscribers::Named;
use penstock_core::units::Span;

/// Sizes and times of a table. Numbers of lines are rounded up to powers of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Number of connections that can have a line; 64 bytes each, with 8 in the heads of sets.
    pub entries: u32,
    /// Number of half-open connections that can be remembered; 72 bytes each. At 100,000 forged SYNs per second the
    /// default remembers each for 1.3 s.
    pub half_open: u32,
    /// Number of half-open connections that are shown to elements from their SYN on. The others are shown once their data
    /// are acknowledged.
    pub shown: u32,
    /// Number of hosts without a name that have a number.
    pub hosts: u32,
    /// Number of indices of packets that are not shown.
    pub others: u32,
    /// Largest number of entries of one subscriber.
    pub quota: u32,
    /// An entry that was silent for longer is freed. RFC 5382 §5 (REQ-5) asks for at least 2 h 4 min, so that the probes of
    /// keep-alive come in time.
    pub idle: Span,
    /// A half-open connection that was silent for longer is freed, unless its opener has acknowledged the answer. SYNs are
    /// sent again after 1, 2, 4, 8 and 16 s.
    pub opening: Span,
    /// Subscribers with names.
    pub subscribers: Vec<Named>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            entries: 65_536,
            half_open: 131_072,
            shown: 1024,
            hosts: 65_536,
            others: 65_536,
            quota: 32_768,
            idle: Span::from_secs(7440),
            opening: Span::from_secs(30),
            subscribers: Vec::new(),
        }
    }
}
