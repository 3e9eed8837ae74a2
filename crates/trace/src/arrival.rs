//! What a replay must know of a packet, and the tables that number flows and nodes.

use penstock_core::packet::{Ecn, Ern, FlowId, NodeId};
use penstock_core::units::{Bytes, Instant};
use penstock_core::wire::{End, HostKey};
#[expect(clippy::disallowed_types, reason = "keys are looked up, and never iterated")]
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

/// The largest packet that a trace may hold: sixteen IP packets of full length, which receive offload may join.
pub const MAX_SIZE: Bytes = Bytes::new(65_535 * 16);

/// The latest time that a trace may hold, about eleven days after its start. Algorithms with timers are stepped through
/// the time of the trace, so a time in nanoseconds since 1970 would take them hours.
pub const MAX_TIME: Instant = Instant::from_nanos(1_000_000 * 1_000_000_000);

/// The arrival of a packet at a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Time since the start of the trace.
    pub t: Instant,
    /// Flow of the packet. In a capture flows are numbered 0, 1, 2, ... in order of first appearance, and both
    /// directions of a connection are one flow. In CSV they keep their numbers if these are below 65,536.
    pub flow: FlowId,
    /// Number of the flow in the trace: that of a CSV file, whatever its size; for captures equal to `flow`.
    pub label: u64,
    /// Node that owns the flow; `None` if it is not known or was not asked for. Nodes are numbered 0, 1, 2, ..., and
    /// all packets of a flow have the same node.
    pub node: Option<NodeId>,
    /// Size of the packet without its link header.
    pub size: Bytes,
    /// ECN field of the packet.
    pub ecn: Ecn,
    /// Explicit rate notification in the packet's headers.
    pub ern: Ern,
    /// Diffserv codepoint of the packet; `None` in a trace without headers.
    pub dscp: Option<u8>,
}

/// The number of each key that has appeared.
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
    /// Returns the number of the flow `key`, which is a new one when the key first appears.
    pub fn id(&mut self, key: K) -> FlowId {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        FlowId(*self.known.entry(key).or_insert(next))
    }
}

/// Numbers nodes 0, 1, 2, ... in order of first appearance. A flow belongs to the host at one end of its first packet.
#[derive(Debug, Clone)]
pub struct Nodes {
    end: End,
    hosts: FlowTable<HostKey>,
    /// The node of each flow, by the number of the flow.
    owners: Vec<NodeId>,
}

impl Nodes {
    /// Creates an empty table; the nodes are the hosts at this end of the first packet of each flow.
    pub fn new(end: End) -> Self {
        Self { end, hosts: FlowTable::default(), owners: Vec::new() }
    }

    /// Returns the node of a flow, one of whose packets went from `source` to `destination`.
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
            // Two flows of host 1, the answer to the first one, and a flow from host 2 to host 1, whose host sends a
            // second packet.
            let packets = [(0, 1, 9), (1, 1, 8), (0, 9, 1), (2, 2, 1), (1, 1, 8)];
            packets.map(|(flow, from, to)| nodes.of(FlowId(flow), host(from), host(to)).0)
        };
        assert_eq!(of(End::Source), [0, 0, 0, 1, 0]);
        assert_eq!(of(End::Destination), [0, 1, 0, 2, 1]);
        let link_local = IpAddr::from([169, 254, 0, 1]);
        assert_eq!(Nodes::new(End::Source).of(FlowId(0), link_local, host(1)), NodeId::NOBODY);
    }
}
