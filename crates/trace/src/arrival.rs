//! What a replay needs to know of a packet, and the table that numbers flows and nodes.

use penstock_core::packet::{Ecn, Ern, FlowId, NodeId};
use penstock_core::units::{Bytes, Instant};
use penstock_core::wire::{End, HostKey};
#[expect(clippy::disallowed_types, reason = "keys are looked up, and never iterated")]
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

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
    /// Whose flow it is, if that is known and asked for: the same for all packets of the flow, dense likewise.
    pub node: Option<NodeId>,
    /// The packet without its link header.
    pub size: Bytes,
    /// Its ECN field.
    pub ecn: Ecn,
    /// What it tells of its flow's rate.
    pub ern: Ern,
}

/// The number of each key.
#[expect(clippy::disallowed_types, reason = "keys are looked up, and never iterated")]
type Known<K> = HashMap<K, u32>;

/// Numbers flows 0, 1, 2, ... in order of first appearance.
#[derive(Debug, Clone)]
pub struct FlowTable<K> {
    known: Known<K>,
}

impl<K> Default for FlowTable<K> {
    fn default() -> Self {
        Self { known: Known::new() }
    }
}

impl<K: Hash + Eq> FlowTable<K> {
    /// The number of the flow `key`.
    pub fn id(&mut self, key: K) -> FlowId {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        FlowId(*self.known.entry(key).or_insert(next))
    }
}

/// Numbers nodes likewise: a flow is of the host at one end of its first packet.
#[derive(Debug, Clone)]
pub struct Nodes {
    end: End,
    hosts: FlowTable<HostKey>,
    /// By the number of the flow.
    owners: Vec<NodeId>,
}

impl Nodes {
    /// Hosts at this end of the first packet of each flow.
    pub fn new(end: End) -> Self {
        Self { end, hosts: FlowTable::default(), owners: Vec::new() }
    }

    /// The node of a flow, one of whose packets went from `source` to `destination`.
    pub fn of(&mut self, flow: FlowId, source: IpAddr, destination: IpAddr) -> NodeId {
        if let Some(node) = self.owners.get(flow.0 as usize) {
            return *node;
        }
        let host = if self.end == End::Source { source } else { destination };
        let node = HostKey::at(host).map_or(NodeId::NOBODY, |host| NodeId(self.hosts.id(host).0));
        self.owners.push(node);
        node
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

    #[test]
    fn a_flow_is_of_the_host_at_one_end_of_its_first_packet() {
        let host = |n: u8| IpAddr::from([10, 0, 0, n]);
        let of = |end| {
            let mut nodes = Nodes::new(end);
            // Two flows of host 1, the answer of the first, a flow of host 2 to host 1, which sends its second packet.
            let packets = [(0, 1, 9), (1, 1, 8), (0, 9, 1), (2, 2, 1), (1, 1, 8)];
            packets.map(|(flow, from, to)| nodes.of(FlowId(flow), host(from), host(to)).0)
        };
        assert_eq!(of(End::Source), [0, 0, 0, 1, 0]);
        assert_eq!(of(End::Destination), [0, 1, 0, 2, 1]);
        let link_local = IpAddr::from([169, 254, 0, 1]);
        assert_eq!(Nodes::new(End::Source).of(FlowId(0), link_local, host(1)), NodeId::NOBODY);
    }
}
