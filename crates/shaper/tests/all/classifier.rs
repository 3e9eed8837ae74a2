//! The classifier: from the bytes of packets to flows, to the nodes that own them, and to the classes of hosts.

use penstock_conntrack::{Config, Gauges, Named, STRANGERS};
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, NodeId, Packet};
use penstock_core::units::{Instant, Span};
use penstock_core::wire::RealPacket;
use penstock_shaper::classify::{Classifier, PacketFacts, Unclassified};
use penstock_shaper::direction::Direction::{self, Forward, Reverse};
use penstock_shaper::keys::Keys;
use penstock_shaper::nodes::{FlowOwner, Side};
use penstock_shaper::numbered::{Host, validate};
use penstock_shaper::pool::Pool;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// A host of 10.0.0.0/24 and its port.
type At = (u8, u8);

/// A datagram without data.
fn datagram(from: At, to: At) -> [u8; 28] {
    let mut bytes = [0; 28];
    (bytes[0], bytes[3], bytes[9]) = (0x45, 28, 17);
    bytes[12..20].copy_from_slice(&[10, 0, 0, from.0, 10, 0, 0, to.0]);
    (bytes[21], bytes[23], bytes[25]) = (from.1, to.1, 8);
    bytes
}

/// A TCP segment with one byte of data and without checksums.
fn segment(from: At, to: At, flags: u8) -> [u8; 41] {
    let mut bytes = [0; 41];
    bytes[..28].copy_from_slice(&datagram(from, to));
    (bytes[3], bytes[9], bytes[25], bytes[32], bytes[33]) = (41, 6, 0, 0x50, flags);
    bytes
}

struct Bench {
    classifier: Classifier,
    pool: Pool,
}

impl Bench {
    fn new(side: Side, config: Config) -> Self {
        Self { classifier: Classifier::new(config, Keys::from_seed(1), side), pool: Pool::new(1500) }
    }

    fn left() -> Self {
        Self::new(Side::Left, Config::default())
    }

    fn with_hosts(hosts: &[Host]) -> Self {
        let Self { classifier, pool } = Self::left();
        Self { classifier: classifier.with_hosts(hosts), pool }
    }

    fn packet(&mut self, direction: Direction, bytes: &[u8], now: Instant) -> (RealPacket, PacketFacts) {
        let mut buffer = self.pool.take();
        buffer[..bytes.len()].copy_from_slice(bytes);
        self.classifier.packet(direction, buffer, bytes.len(), now, &mut self.pool)
    }

    /// Handles a packet and takes its buffer back; returns its flow, and the owner that is to be told.
    fn owner(&mut self, direction: Direction, bytes: &[u8], s: u64) -> (FlowId, Option<FlowOwner>) {
        let (packet, facts) = self.packet(direction, bytes, Instant::ZERO + Span::from_secs(s));
        let flow = packet.flow();
        self.pool.give(packet.into_bytes());
        assert!(facts.owner().is_none_or(|owner| owner.flow == flow));
        (flow, facts.owner())
    }

    /// Handles a packet; returns its flow, and the classes that are told, without and with codepoints.
    fn classes(&mut self, direction: Direction, bytes: &[u8]) -> (u32, [Option<u32>; 2]) {
        let (packet, facts) = self.packet(direction, bytes, Instant::ZERO);
        let told = [false, true].map(|codepoints| {
            facts.told(direction, codepoints).find_map(|fact| match fact {
                Fact::Class { flow, class } => Some((assert_eq!(flow, packet.flow()), class).1),
                _ => None,
            })
        });
        (packet.flow().0, told)
    }
}

#[test]
fn a_packet_ends_where_its_header_says_and_not_with_its_buffer() {
    let mut packet = Bench::left().packet(Forward, &segment((1, 1), (2, 2), SYN), Instant::ZERO).0;
    assert_eq!(packet.size().get(), 41);
    assert!(packet.tcp().is_some(), "the SYN of a connection is shown");
    assert_eq!(packet.into_bytes().len(), 1500, "the buffer itself was used");
}

/// A connection met in the middle; then a signed SYN, and signed segments on the ends of a connection without signatures.
#[test]
fn what_has_no_start_or_a_signature_is_forwarded_but_not_shown() {
    let mut bench = Bench::left();
    let mut is_shown = |bytes: &[u8]| bench.packet(Forward, bytes, Instant::ZERO).0.tcp().is_some();
    let signed = |flags: u8| {
        let mut bytes = segment((1, 3), (2, 2), flags).to_vec();
        (bytes[3], bytes[32]) = (61, 0xa0);
        bytes.splice(40..40, [1, 1, 19, 18].into_iter().chain([7; 16]));
        bytes
    };
    assert!(!is_shown(&segment((1, 1), (2, 2), ACK)) && !is_shown(&signed(SYN)));
    assert_eq!(bench.classifier.table.gauges().half_open, 0, "no connection of the table");
    let mut is_shown = |bytes: &[u8]| bench.packet(Forward, bytes, Instant::ZERO).0.tcp().is_some();
    assert!(is_shown(&segment((1, 3), (2, 2), SYN)) && !is_shown(&signed(ACK)));
    let counted = Unclassified { not_from_syn: 1, signed: 2, ..Unclassified::default() };
    assert_eq!(bench.classifier.unclassified(), counted);
}

#[test]
fn stale_bytes_of_a_buffer_never_leave_with_a_broken_packet() {
    let mut bench = Bench::left();
    bench.pool.give(vec![0xaa; 1500].into_boxed_slice());
    // The header claims 41 bytes, but only 30 arrived.
    let cut = &segment((1, 1), (2, 2), SYN)[..30];
    assert_eq!(bench.packet(Forward, cut, Instant::ZERO).0.bytes(), cut);
    assert_eq!(bench.classifier.unclassified().malformed, 1);
    assert_eq!(bench.pool.allocated(), 0, "the pooled buffer was reused");
}

/// SYNs of 200,000 forged addresses: none has an entry, as many as may are shown, and each has a node of its own.
#[test]
fn forged_addresses_are_nodes_and_no_connections() {
    let mut bench = Bench::left();
    let mut hidden = 0;
    for forged in 0..200_000u32 {
        let mut bytes = segment((1, 1), (2, 2), SYN);
        bytes[12..16].copy_from_slice(&(0x0b00_0000 + forged).to_be_bytes());
        let (mut packet, facts) = bench.packet(Forward, &bytes, Instant::ZERO);
        hidden += u64::from(packet.tcp().is_none());
        assert!(packet.is_syn(), "QRM limits SYNs that are hidden as well");
        let owner = facts.owner().unwrap();
        assert!(owner.node != STRANGERS && owner.fresh && owner.flow == packet.flow());
        bench.pool.give(packet.into_bytes());
    }
    let Gauges { entries, half_open_most, overwritten, refused, .. } = bench.classifier.table.gauges();
    assert_eq!((entries, refused), (0, 0));
    assert_eq!(u64::from(half_open_most) + overwritten, 200_000, "no SYN was refused");
    // The ring has 131,072 places; few sets are full before most others.
    assert!((120_000..=131_072).contains(&half_open_most), "{half_open_most}");
    let shown = 200_000 - hidden;
    assert!((1024..10_000).contains(&shown) && bench.classifier.unclassified().untracked == hidden, "{shown}");
}

/// 65,536 ports in one direction and the answers: no connection, a range of indices of their own, one node.
#[test]
fn a_sweep_of_datagrams_makes_no_state() {
    let mut bench = Bench::left();
    let (mut flows, mut nodes, mut told) = (BTreeSet::new(), BTreeSet::new(), 0);
    for port in 0..=u16::MAX {
        let mut bytes = datagram((1, 0), (2, 0));
        bytes[22..24].copy_from_slice(&port.to_be_bytes());
        let (flow, owner) = bench.owner(Forward, &bytes, 0);
        told += usize::from(owner.is_some());
        nodes.extend(owner.map(|owner| owner.node));
        flows.insert(flow.0);
    }
    let gauges = bench.classifier.table.gauges();
    assert_eq!((gauges.entries, gauges.half_open, nodes.len()), (0, 0, 1));
    // 65,536 throws into as many boxes hit 1 - 1/e of them: 41,427, with a standard deviation of 76.
    assert!((41_047..41_807).contains(&flows.len()) && told == flows.len(), "{} {told}", flows.len());
    assert!(flows.first().is_some_and(|first| *first >= gauges.capacity), "apart from connections");
}

#[test]
fn flows_of_a_host_are_of_one_node_whoever_opens_them() {
    let udp = |bench: &mut Bench, direction, from, to| bench.owner(direction, &datagram(from, to), 0);
    let left = &mut Bench::left();
    let (flow, first) = udp(left, Forward, (1, 1), (9, 53));
    let first = first.unwrap();
    assert!(first.fresh && first.node != STRANGERS);
    let another = udp(left, Forward, (1, 2), (9, 53)).1.unwrap();
    assert_eq!((another.node, another.fresh), (first.node, false), "another port of the same host");
    assert_eq!(udp(left, Reverse, (9, 53), (1, 1)), (flow, None), "the answer is of a flow that is known");
    let other = udp(left, Forward, (2, 1), (9, 53)).1.unwrap();
    assert!(other.node != first.node && other.fresh, "another host");
    let opened = udp(left, Reverse, (9, 7), (2, 7)).1.unwrap();
    assert_eq!((opened.node, opened.fresh), (other.node, false), "opened from the right");
    let right = &mut Bench::new(Side::Right, Config::default());
    let [one, two] = [1, 2].map(|host| udp(right, Forward, (host, 1), (9, 53)).1.unwrap());
    assert!(one.node == two.node && one.fresh && !two.fresh, "both are flows of 10.0.0.9");
    assert_eq!(udp(&mut Bench::new(Side::None, Config::default()), Forward, (1, 1), (9, 53)).1, None);
}

#[test]
fn a_named_subscriber_is_one_node_with_all_its_prefixes() {
    let prefixes = ["10.0.0.0/30", "10.0.0.8/32"].map(|prefix| prefix.parse().unwrap()).into();
    let subscribers = vec![Named { name: "house".into(), prefixes }];
    let mut bench = Bench::new(Side::Left, Config { subscribers, ..Config::default() });
    let mut node = |host| bench.owner(Forward, &datagram((host, 1), (9, 53)), 0).1.unwrap();
    for host in [1, 2, 3, 8] {
        assert_eq!((node(host).node, node(host + 100).fresh), (NodeId(1), true));
    }
    assert!(node(4).node.0 > 1 && node(7).node != node(5).node, "hosts of their own");
}

#[test]
fn what_is_no_packet_is_a_strangers() {
    let (flow, told) = Bench::left().owner(Forward, &[0xff; 60], 0);
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
        let mut bench = Bench::left();
        let (flow, told) = bench.owner(direction, &bytes, 0);
        assert_eq!(told, Some(FlowOwner { flow, node: NodeId::NOBODY, fresh: false }));
        assert_eq!(bench.owner(direction, &bytes, 0).1, None);
    }
}

/// 200,000 forged hosts later, an honest newcomer has a number that nobody else has.
#[test]
fn a_newcomer_has_a_node_of_its_own_however_many_were_forged() {
    let mut bench = Bench::left();
    let mut bytes = datagram((1, 0), (2, 0));
    let mut nodes = BTreeSet::new();
    for forged in 0..200_000u32 {
        bytes[12..16].copy_from_slice(&(0x0b00_0000 + forged).to_be_bytes());
        let owner = bench.owner(Forward, &bytes, 0).1.unwrap();
        assert!(owner.fresh && owner.node != STRANGERS);
        nodes.insert(owner.node);
    }
    assert!(nodes.len() <= 65_536);
    let newcomer = bench.owner(Forward, &datagram((1, 1), (9, 53)), 1).1.unwrap();
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
                true => bench.owner(Forward, &datagram((host, port), (99, 53)), s),
                false => bench.owner(Reverse, &datagram((99, 53), (host, port)), s),
            };
            if let Some(owner) = owner {
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

fn host(last: u8, class: Option<u32>) -> Host {
    Host { address: [10, 0, 0, last].into(), class }
}

#[test]
fn datagrams_of_a_host_are_one_flow_in_its_class() {
    let mut bench = Bench::with_hosts(&[host(7, None), host(9, Some(3))]);
    let udp = |bench: &mut Bench, direction, from, to| bench.classes(direction, &datagram(from, to));
    assert_eq!(udp(&mut bench, Forward, (1, 1), (7, 53)), (0, [Some(0), None]));
    assert_eq!(udp(&mut bench, Reverse, (9, 53), (2, 1)), (1, [Some(3), Some(3)]));
    for port in 1..100 {
        assert_eq!(udp(&mut bench, Reverse, (7, 53), (1, port)), (0, [None, None]), "it was told");
        assert_eq!(udp(&mut bench, Forward, (2, port), (9, 53)), (1, [None, None]));
    }
    assert_eq!(udp(&mut bench, Forward, (9, 1), (7, 1)).0, 0, "it is of the host to which it goes");
    let (other, [class, codepoint]) = udp(&mut bench, Forward, (1, 1), (2, 1));
    assert!(other > 1 && class == Some(other) && codepoint.is_none(), "other hosts come behind");
    bench.classifier.tell_again();
    assert_eq!(udp(&mut bench, Forward, (1, 1), (7, 53)), (0, [Some(0), None]), "to a new discipline");
}

#[test]
fn connections_of_a_host_are_flows_of_their_own_in_its_class() {
    let mut bench = Bench::with_hosts(&[host(7, None), host(9, Some(3))]);
    let mut syn = |to| bench.classes(Forward, &segment((1, 1), to, SYN));
    let [one, two, three] = [(7, 80), (7, 81), (9, 80)].map(&mut syn);
    assert!(one.0 != two.0 && two.0 != three.0 && [one, two, three].iter().all(|(flow, _)| *flow > 1));
    assert_eq!([one.1, two.1, three.1], [[Some(0), None], [Some(0), None], [Some(3), Some(3)]]);
    assert_eq!(syn((7, 80)), (one.0, [None, None]));
}

#[test]
fn hosts_have_addresses_of_their_own() {
    assert_eq!(validate(&[host(1, None), host(2, None)]), Ok(()));
    let refused = |hosts: &[Host]| validate(hosts).unwrap_err();
    assert!(refused(&[host(1, None), host(2, None), host(1, Some(1))]).contains("10.0.0.1 is that of an earlier"));
    let at = |text: &str| Host { address: text.parse().unwrap(), class: None };
    assert!(refused(&[at("169.254.0.1")]).contains("of no host"), "of one link");
    assert!(refused(&[at("::ffff:10.0.0.1")]).contains("of no host"), "not on any wire");
    assert!(refused(&[at("2001:db8::1"), at("2001:db8::2")]).contains("/64"));
    assert!(refused(&vec![host(1, None); 10_001]).contains("allowed are 10000"));
}
