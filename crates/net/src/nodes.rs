//! The owner of each flow: the host on one side of the link, by its address.
//!
//! The host on the left is the source of packets that travel forward and the destination of packets in reverse; so a
//! connection has the same node whatever the direction of its first packet, and both disciplines agree on it. Flows
//! without a number - because the table is full, or because the packet is not an IP packet - belong to one common node.
//! A flow of an address that is no host ([`HostKey::at`]) has no owner.
//!
//! A node is forgotten together with its last flow: both tables have the same size and the same idle time, and a packet
//! of a flow keeps its node. So there is room for the node of every flow that has a number.

use crate::direction::Direction;
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::units::{Instant, Span};
use penstock_core::wire::flows::SipHash;
use penstock_core::wire::{End, Headers, HostKey, NodeTable, Tracking};

/// The common node of flows without a number, and of hosts for which the table has no room. The hosts of the table have
/// the numbers after it.
pub const STRANGERS: NodeId = NodeId(0);

/// The side whose hosts are the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The hosts on the left, where clients usually are.
    #[default]
    Left,
    /// The hosts on the right.
    Right,
    /// No hosts: each flow is a node of its own.
    None,
}

impl Side {
    /// Returns which end of a packet is on this side, if the packet travels in this direction; `None` for
    /// [`Side::None`].
    fn end(self, direction: Direction) -> Option<End> {
        match (self, direction) {
            (Self::None, _) => None,
            (Self::Left, Direction::Forward) | (Self::Right, Direction::Reverse) => Some(End::Source),
            (Self::Left, Direction::Reverse) | (Self::Right, Direction::Forward) => Some(End::Destination),
        }
    }
}

/// The node which owns a flow. Disciplines must be told of it before the first packet of the flow arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowOwner {
    /// Number of the flow.
    pub flow: FlowId,
    /// The node to which the flow belongs.
    pub node: NodeId,
    /// True if the number of the node was free or that of another host until now, so that what is known of it is void.
    pub fresh: bool,
}

/// The nodes of all flows of a classifier.
#[derive(Debug)]
pub struct Nodes {
    side: Side,
    hosts: NodeTable,
    /// The node of each flow, by the index of the flow.
    owners: Vec<NodeId>,
    /// True if disciplines have been told that flows without a number belong to [`STRANGERS`].
    told: bool,
}

impl Nodes {
    /// Creates the nodes for the flows of a table with this capacity and this idle time.
    pub fn new(side: Side, capacity: u32, idle: Span, hash: SipHash) -> Self {
        Self { side, hosts: NodeTable::new(capacity, idle, hash), owners: Vec::new(), told: false }
    }

    /// Returns the owner of the flow of this packet if disciplines have not been told of it. The flow is that of
    /// `tracking`, or `untracked`.
    pub fn note(
        &mut self,
        packet: &ParsedPacket<'_>,
        tracking: Tracking,
        untracked: FlowId,
        now: Instant,
    ) -> Option<FlowOwner> {
        let end = self.side.end(packet.direction)?;
        match tracking {
            Tracking::Untracked if std::mem::replace(&mut self.told, true) => None,
            Tracking::Untracked => Some(FlowOwner { flow: untracked, node: STRANGERS, fresh: false }),
            Tracking::Tracked { flow, fresh: true, .. } => {
                Some(self.learn(flow, HostKey::of(packet.bytes, packet.headers, end), now))
            }
            Tracking::Tracked { flow, .. } => {
                let owner = self.owners.get(flow.0 as usize).filter(|node| **node != NodeId::NOBODY);
                let host = owner.and_then(|node| node.0.checked_sub(1));
                host.into_iter().for_each(|host| self.hosts.touch(NodeId(host), now));
                None
            }
        }
    }

    fn learn(&mut self, flow: FlowId, host: Option<HostKey>, now: Instant) -> FlowOwner {
        let (node, fresh) = match host.map(|host| self.hosts.number(host, now)) {
            Some(Some((host, fresh))) => (NodeId(host.0 + 1), fresh),
            Some(None) => (STRANGERS, false),
            None => (NodeId::NOBODY, false),
        };
        let index = flow.0 as usize;
        if index >= self.owners.len() {
            self.owners.resize(index + 1, NodeId::NOBODY);
        }
        self.owners[index] = node;
        FlowOwner { flow, node, fresh }
    }
}

/// A packet as it was read from an interface, with its parsed headers.
#[derive(Debug, Clone, Copy)]
pub struct ParsedPacket<'a> {
    /// Direction in which the packet travels.
    pub direction: Direction,
    /// Bytes of the packet from the IP header on.
    pub bytes: &'a [u8],
    /// Where each header begins, and what the headers say.
    pub headers: &'a Headers,
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::wire::FlowTable;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const IDLE: Span = Span::from_secs(10);
    const UNTRACKED: FlowId = FlowId(1000);

    /// A classifier's flows and nodes, with small tables.
    struct Bench {
        flows: FlowTable<SipHash>,
        nodes: Nodes,
    }

    impl Bench {
        fn new(side: Side, capacity: u32) -> Self {
            let flows = FlowTable::new(capacity, IDLE, SipHash(1, 2));
            Self { flows, nodes: Nodes::new(side, capacity, IDLE, SipHash(3, 4)) }
        }

        /// Handles a datagram from 10.0.0.`source` to 10.0.0.`to`.
        fn udp(&mut self, direction: Direction, source: (u8, u8), to: (u8, u8), s: u64) -> (FlowId, Option<FlowOwner>) {
            let mut bytes = [0; 28];
            (bytes[0], bytes[3], bytes[9]) = (0x45, 28, 17);
            bytes[12..20].copy_from_slice(&[10, 0, 0, source.0, 10, 0, 0, to.0]);
            (bytes[21], bytes[23], bytes[25]) = (source.1, to.1, 8);
            self.packet(direction, &bytes, Instant::ZERO + Span::from_secs(s))
        }

        fn packet(&mut self, direction: Direction, bytes: &[u8], now: Instant) -> (FlowId, Option<FlowOwner>) {
            let headers = Headers::parse(bytes);
            let tracking = self.flows.lookup(bytes, &headers, now);
            let flow = match tracking {
                Tracking::Tracked { flow, .. } => flow,
                Tracking::Untracked => UNTRACKED,
            };
            (flow, self.nodes.note(&ParsedPacket { direction, bytes, headers: &headers }, tracking, UNTRACKED, now))
        }
    }

    fn owner(flow: u32, node: u32, fresh: bool) -> Option<FlowOwner> {
        Some(FlowOwner { flow: FlowId(flow), node: NodeId(node), fresh })
    }

    #[test]
    fn flows_of_a_host_are_of_one_node_whoever_opens_them() {
        use Direction::{Forward, Reverse};
        let mut left = Bench::new(Side::Left, 8);
        assert_eq!(left.udp(Forward, (1, 1), (9, 53), 0).1, owner(0, 1, true));
        assert_eq!(left.udp(Forward, (1, 2), (9, 53), 0).1, owner(1, 1, false), "another port of the same host");
        assert_eq!(left.udp(Reverse, (9, 53), (1, 1), 0).1, None, "the answer is of a flow that is known");
        assert_eq!(left.udp(Forward, (2, 1), (9, 53), 0).1, owner(2, 2, true), "another host");
        assert_eq!(left.udp(Reverse, (9, 7), (2, 7), 0).1, owner(3, 2, false), "opened from the right");
        let mut right = Bench::new(Side::Right, 8);
        assert_eq!(right.udp(Forward, (1, 1), (9, 53), 0).1, owner(0, 1, true));
        assert_eq!(right.udp(Forward, (2, 1), (9, 53), 0).1, owner(1, 1, false), "both are flows of 10.0.0.9");
        let mut none = Bench::new(Side::None, 8);
        assert_eq!(none.udp(Forward, (1, 1), (9, 53), 0), (FlowId(0), None));
    }

    #[test]
    fn a_number_that_comes_back_is_told_anew() {
        let mut bench = Bench::new(Side::Left, 2);
        let mut udp = |host, port, s| bench.udp(Direction::Forward, (host, port), (9, 53), s).1;
        assert_eq!(udp(1, 1, 0), owner(0, 1, true));
        assert_eq!(udp(2, 1, 5), owner(1, 2, true));
        assert_eq!(udp(3, 1, 6), owner(UNTRACKED.0, STRANGERS.0, false), "no room");
        assert_eq!(udp(4, 1, 6), None, "as was told");
        // The first flow was idle for 11 s: its number and its node are given to others.
        assert_eq!(udp(3, 1, 11), owner(0, 1, true));
        // The second flow sends at 12 s. At 22 s the flow of host 3 is idle, and another flow of host 2 gets its
        // number.
        assert_eq!(udp(2, 1, 12), None);
        assert_eq!(udp(2, 2, 22), owner(0, 2, false));
    }

    #[test]
    fn what_is_no_packet_is_a_strangers() {
        let mut bench = Bench::new(Side::Left, 2);
        let told = bench.packet(Direction::Forward, &[0xff; 60], Instant::ZERO);
        assert_eq!(told, (UNTRACKED, owner(UNTRACKED.0, 0, false)));
    }

    #[test]
    fn what_kernels_say_to_their_link_is_nobodys() {
        // A router solicitation: fe80::1 to ff02::2.
        let mut bytes = [0; 48];
        (bytes[0], bytes[5], bytes[6], bytes[7], bytes[40]) = (0x60, 8, 58, 255, 133);
        (bytes[8], bytes[9], bytes[23]) = (0xfe, 0x80, 1);
        (bytes[24], bytes[25], bytes[39]) = (0xff, 2, 2);
        for direction in Direction::BOTH {
            let mut bench = Bench::new(Side::Left, 2);
            assert_eq!(bench.packet(direction, &bytes, Instant::ZERO).1, owner(0, NodeId::NOBODY.0, false));
            assert_eq!(bench.packet(direction, &bytes, Instant::ZERO).1, None);
            assert_eq!(bench.nodes.hosts.len(), 0);
        }
    }

    proptest! {
        /// For any packets at any times, the owner that was told last for a flow is its host, compared with a plain
        /// map.
        #[test]
        fn each_flow_is_known_as_its_hosts(
            packets in prop::collection::vec((0..6u8, 0..3u8, any::<bool>(), 0..5u64), 1..300),
            capacity in 1..8u32,
        ) {
            let mut bench = Bench::new(Side::Left, capacity);
            let (mut told, mut hosts) = (BTreeMap::new(), BTreeMap::new());
            let mut s = 0;
            for (host, port, forward, wait) in packets {
                s += wait;
                let (flow, owner) = match forward {
                    true => bench.udp(Direction::Forward, (host, port), (9, 53), s),
                    false => bench.udp(Direction::Reverse, (9, 53), (host, port), s),
                };
                if let Some(owner) = owner {
                    prop_assert_eq!(owner.flow, flow);
                    if owner.fresh {
                        hosts.insert(owner.node, host);
                    }
                    told.insert(flow, owner.node);
                }
                let node = told[&flow];
                prop_assert_eq!(node == STRANGERS, flow == UNTRACKED, "there is a node for every flow with a number");
                prop_assert!(node == STRANGERS || hosts[&node] == host);
                prop_assert!(node.0 <= capacity && bench.nodes.hosts.len() <= capacity as usize);
            }
        }
    }
}
