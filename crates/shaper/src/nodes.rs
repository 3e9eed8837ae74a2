//! The node of each flow: the host on one side of the link, by its address, or the subscriber with a name to which it
//! belongs.
//!
//! The host on the left is the source of packets that travel forward and the destination of packets in reverse; so a
//! connection has the same node whatever the direction of its first packet, and both disciplines agree on it. The table of
//! connections numbers hosts (`penstock-conntrack`). A flow of an address that is no host
//! ([`HostKey::at`](penstock_core::wire::HostKey::at)) has no owner, and what is no IP packet belongs to one common node.

use crate::direction::Direction;
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::wire::End;

/// The side whose hosts are the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
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
    /// Returns which end of a packet is on this side, if the packet travels in this direction; for [`Side::None`] that on
    /// the left, whose hosts then have quotas but are no nodes.
    pub fn end(self, direction: Direction) -> End {
        match (self, direction) {
            (Self::Left | Self::None, Direction::Forward) | (Self::Right, Direction::Reverse) => End::Source,
            (Self::Left | Self::None, Direction::Reverse) | (Self::Right, Direction::Forward) => End::Destination,
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

/// The nodes that disciplines were told.
#[derive(Debug, Default)]
pub(crate) struct Nodes(Vec<Option<NodeId>>);

impl Nodes {
    /// Forgets what was told of a flow whose index another connection takes over.
    pub fn forget(&mut self, flow: FlowId) {
        self.0.get_mut(flow.0 as usize).into_iter().for_each(|told| *told = None);
    }

    /// Forgets what was told of all flows.
    pub fn forget_all(&mut self) {
        self.0.fill(None);
    }

    /// Returns the node of a flow whose packet was noted.
    pub fn of(&self, flow: FlowId) -> NodeId {
        self.0.get(flow.0 as usize).copied().flatten().unwrap_or(NodeId::NOBODY)
    }

    /// Notes the node of a packet with this flow. Returns what disciplines must be told: packets of several hosts may have
    /// one index, if they are not shown.
    pub fn note(&mut self, flow: FlowId, node: NodeId, fresh: bool) -> Option<FlowOwner> {
        let index = flow.0 as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, None);
        }
        let known = self.0[index].replace(node) == Some(node);
        (fresh || !known).then_some(FlowOwner { flow, node, fresh })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Classifier;
    use crate::keys::Keys;
    use crate::pool::Pool;
    use penstock_conntrack::{Config, Named, STRANGERS};
    use penstock_core::packet::Packet;
    use penstock_core::units::{Instant, Span};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    struct Bench {
        classifier: Classifier,
        pool: Pool,
    }

    impl Bench {
        fn new(side: Side, config: Config) -> Self {
            Self { classifier: Classifier::new(config, Keys::from_seed(1), side), pool: Pool::new(100) }
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
            let mut buffer = self.pool.take();
            buffer[..bytes.len()].copy_from_slice(bytes);
            let (packet, facts) = self.classifier.packet(direction, buffer, bytes.len(), now, &mut self.pool);
            (packet.flow(), facts.owner())
        }
    }

    #[test]
    fn flows_of_a_host_are_of_one_node_whoever_opens_them() {
        use Direction::{Forward, Reverse};
        let mut left = Bench::new(Side::Left, Config::default());
        let (flow, first) = left.udp(Forward, (1, 1), (9, 53), 0);
        let first = first.unwrap();
        assert!(first.flow == flow && first.fresh && first.node != STRANGERS);
        let another = left.udp(Forward, (1, 2), (9, 53), 0).1.unwrap();
        assert_eq!((another.node, another.fresh), (first.node, false), "another port of the same host");
        assert_eq!(left.udp(Reverse, (9, 53), (1, 1), 0), (flow, None), "the answer is of a flow that is known");
        let other = left.udp(Forward, (2, 1), (9, 53), 0).1.unwrap();
        assert!(other.node != first.node && other.fresh, "another host");
        let opened = left.udp(Reverse, (9, 7), (2, 7), 0).1.unwrap();
        assert_eq!((opened.node, opened.fresh), (other.node, false), "opened from the right");
        let mut right = Bench::new(Side::Right, Config::default());
        let [one, two] = [1, 2].map(|host| right.udp(Forward, (host, 1), (9, 53), 0).1.unwrap());
        assert!(one.node == two.node && one.fresh && !two.fresh, "both are flows of 10.0.0.9");
        assert_eq!(Bench::new(Side::None, Config::default()).udp(Forward, (1, 1), (9, 53), 0).1, None);
    }

    #[test]
    fn a_named_subscriber_is_one_node_with_all_its_prefixes() {
        let prefixes = ["10.0.0.0/30", "10.0.0.8/32"].map(|prefix| prefix.parse().unwrap()).into();
        let subscribers = vec![Named { name: "house".into(), prefixes }];
        let mut bench = Bench::new(Side::Left, Config { subscribers, ..Config::default() });
        let mut node = |host| bench.udp(Direction::Forward, (host, 1), (9, 53), 0).1.unwrap();
        for host in [1, 2, 3, 8] {
            assert_eq!((node(host).node, node(host + 100).fresh), (NodeId(1), true));
        }
        assert!(node(4).node.0 > 1 && node(7).node != node(5).node, "hosts of their own");
    }

    #[test]
    fn what_is_no_packet_is_a_strangers() {
        let mut bench = Bench::new(Side::Left, Config::default());
        let (flow, told) = bench.packet(Direction::Forward, &[0xff; 60], Instant::ZERO);
        assert_eq!(told, Some(FlowOwner { flow, node: STRANGERS, fresh: false }));
    }

    #[test]
    fn what_kernels_say_to_their_link_is_nobodys() {
        // A router solicitation: fe80::1 to ff02::2.
        let mut bytes = [0; 48];
        (bytes[0], bytes[5], bytes[6], bytes[7], bytes[40]) = (0x60, 8, 58, 255, 133);
        (bytes[8], bytes[9], bytes[23]) = (0xfe, 0x80, 1);
        (bytes[24], bytes[25], bytes[39]) = (0xff, 2, 2);
        for direction in Direction::BOTH {
            let mut bench = Bench::new(Side::Left, Config::default());
            let (flow, told) = bench.packet(direction, &bytes, Instant::ZERO);
            assert_eq!(told, Some(FlowOwner { flow, node: NodeId::NOBODY, fresh: false }));
            assert_eq!(bench.packet(direction, &bytes, Instant::ZERO).1, None);
        }
    }

    /// 200,000 forged hosts later, an honest newcomer has a number that nobody else has.
    #[test]
    fn a_newcomer_has_a_node_of_its_own_however_many_were_forged() {
        let mut bench = Bench::new(Side::Left, Config::default());
        let mut bytes = [0; 28];
        (bytes[0], bytes[3], bytes[9], bytes[25]) = (0x45, 28, 17, 8);
        let mut nodes = BTreeMap::new();
        for forged in 0..200_000u32 {
            bytes[12..16].copy_from_slice(&(0x0b00_0000 + forged).to_be_bytes());
            let owner = bench.packet(Direction::Forward, &bytes, Instant::ZERO).1.unwrap();
            assert!(owner.fresh && owner.node != STRANGERS);
            nodes.insert(owner.node, forged);
        }
        assert!(nodes.len() <= 65_536);
        let newcomer = bench.udp(Direction::Forward, (1, 1), (9, 53), 1).1.unwrap();
        assert!(newcomer.fresh && newcomer.node != STRANGERS);
    }

    proptest! {
        /// For any packets at any times, the owner that was told last for a flow is its host, compared with a plain
        /// map, and a number that another host takes over is told as fresh.
        #[test]
        fn each_flow_is_known_as_its_hosts(
            packets in prop::collection::vec((0..60u8, 0..3u8, any::<bool>(), 0..5u64), 1..300),
        ) {
            let mut bench = Bench::new(Side::Left, Config { hosts: 8, others: 4, ..Config::default() });
            let (mut told, mut hosts) = (BTreeMap::new(), BTreeMap::new());
            let mut s = 0;
            for (host, port, forward, wait) in packets {
                s += wait;
                let (flow, owner) = match forward {
                    true => bench.udp(Direction::Forward, (host, port), (99, 53), s),
                    false => bench.udp(Direction::Reverse, (99, 53), (host, port), s),
                };
                if let Some(owner) = owner {
                    prop_assert_eq!(owner.flow, flow);
                    if owner.fresh {
                        hosts.insert(owner.node, host);
                    }
                    told.insert(flow, owner.node);
                }
                let node = told[&flow];
                prop_assert!(node != STRANGERS && hosts[&node] == host);
            }
        }
    }
}
