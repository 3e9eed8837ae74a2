//! What a replay needs to know of a packet, and the table that numbers flows.

use penstock_core::packet::{Ecn, Ern, FlowId};
use penstock_core::units::{Bytes, Instant};
use std::collections::HashMap;
use std::hash::Hash;

/// The largest packet a trace may hold: sixteen IP packets of full length, as receive offload joins them.
pub const MAX_SIZE: Bytes = Bytes::new(65_535 * 16);

/// The latest time a trace may hold, about eleven days after its start. Algorithms with timers are stepped through
/// the time of the trace, so a time in nanoseconds since 1970 would keep them busy for hours.
pub const MAX_TIME: Instant = Instant::from_nanos(1_000_000 * 1_000_000_000);

/// A packet that arrives at a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When, since the start of the trace.
    pub t: Instant,
    /// Its flow: dense, in order of first appearance. Both directions of a connection share one.
    pub flow: FlowId,
    /// The flow as the trace calls it: the number in a CSV file; for captures the same as `flow`.
    pub label: u64,
    /// The packet without its link header.
    pub size: Bytes,
    /// Its ECN field.
    pub ecn: Ecn,
    /// What it tells of its flow's rate.
    pub ern: Ern,
}

/// Numbers flows 0, 1, 2, ... in order of first appearance.
#[derive(Debug, Clone)]
pub struct FlowTable<K> {
    known: HashMap<K, u32>,
}

impl<K> Default for FlowTable<K> {
    fn default() -> Self {
        Self { known: HashMap::new() }
    }
}

impl<K: Hash + Eq> FlowTable<K> {
    /// The number of the flow `key`.
    pub fn id(&mut self, key: K) -> FlowId {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        FlowId(*self.known.entry(key).or_insert(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_numbered_in_order_of_first_appearance() {
        let mut table = FlowTable::default();
        let ids: Vec<u32> = ["b", "a", "b", "c", "a"].map(|key| table.id(key).0).to_vec();
        assert_eq!(ids, [0, 1, 0, 2, 1]);
    }
}
