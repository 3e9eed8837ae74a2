//! Counters of the table.

use serde::Serialize;

/// How full the table is and was, and what became of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Gauges {
    /// Number of lines of the table.
    pub capacity: u32,
    /// Connections that have a line now.
    pub entries: u32,
    /// Most connections that had a line at once.
    pub entries_most: u32,
    /// Half-open connections that are remembered now.
    pub half_open: u32,
    /// Most half-open connections that were remembered at once.
    pub half_open_most: u32,
    /// Connections that got a line because data were acknowledged.
    pub promoted: u64,
    /// Of those, the ones that were not shown to elements from their SYN on, because too many were half-open.
    pub promoted_unseen: u64,
    /// Connections that lost their line to another one of the same subscriber, which had its quota.
    pub evicted_quota: u64,
    /// Connections that lost their line because there was no room: of the subscriber with most lines.
    pub evicted_full: u64,
    /// Connections that lost their line because another one with the same addresses and ports took their place.
    pub replaced: u64,
    /// Connections that ended with FINs.
    pub closed_fin: u64,
    /// Connections that ended with an RST.
    pub closed_rst: u64,
    /// Connections that were silent for too long.
    pub expired: u64,
    /// Half-open connections that were overwritten by newer ones.
    pub overwritten: u64,
    /// Half-open connections that ended, or were not answered in time.
    pub abandoned: u64,
    /// Segments whose numbers do not fit their connection.
    pub implausible: u64,
    /// Connections that got no line although data were acknowledged. There are none: the least valuable one goes instead.
    pub refused: u64,
}
