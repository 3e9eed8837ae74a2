use super::chains::Set;
use super::*;
use crate::config::{Compat, Discipline};
use crate::link_layer::Framing;
use crate::packet::{Ecn, PlainSegment, TcpFlags, Timestamps};
use crate::rng::Streams;
use crate::testing::Numbered;
use crate::units::{Rate, Span};
use crate::wire::RealPacket;
use etherparse::{Ipv4Header, PacketBuilder};

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn config() -> Config {
    Config { perturbation: Some(1), ..Config::default() }
}

/// CAKE with its clock and its random numbers.
struct World<P> {
    cake: Cake<P>,
    rng: Rng,
    now: Instant,
}

impl<P: Packet> World<P> {
    fn new(config: &Config) -> Self {
        config.validate().unwrap();
        Self { cake: Cake::new(config, Limit::Packets(u64::MAX)), rng: Streams::new(1).get("cake"), now: at(1) }
    }

    fn send(&mut self, packet: P) -> Enqueued {
        self.cake.enqueue(packet, self.now, &mut self.rng, &mut ())
    }

    fn take(&mut self) -> Option<P> {
        self.cake.dequeue(self.now, &mut self.rng, &mut ())
    }

    /// The next packet, after as many wake-ups as that takes.
    fn wait(&mut self) -> Option<P> {
        loop {
            if let Some(packet) = self.take() {
                return Some(packet);
            }
            self.now = self.cake.next_wakeup()?;
            self.cake.on_wakeup(self.now);
        }
    }

    fn tell(&mut self, fact: Fact) {
        self.cake.on_fact(&fact, self.now);
    }
}

impl World<Numbered> {
    fn send_of(&mut self, flow: u32, number: u64, size: u64) -> Enqueued {
        self.send(Numbered::new(number, FlowId(flow), Bytes::new(size)))
    }
}

/// Node 1 has flows 0 to 3, node 2 has flow 4; each has 600 packets of 1000 B, of which 1000 are sent.
fn sent_by_flow(isolation: Isolation, nodes: &[Option<u32>; 5]) -> [u64; 5] {
    let mut world = World::new(&Config { isolation, tins: Tins::BestEffort, ..config() });
    for (flow, node) in (0..).zip(nodes) {
        if let Some(node) = node {
            world.tell(Fact::Owner { flow: FlowId(flow), node: NodeId(*node) });
        }
        (0..600).for_each(|n| assert_eq!(world.send_of(flow, n, 1000), Enqueued::Queued));
    }
    let mut sent = [0; 5];
    (0..1000).for_each(|_| sent[world.take().unwrap().flow.0 as usize] += 1);
    sent
}

/// A host gets half of the link whether it has one flow or four. The quantum of a flow of four is 378.5 B on average, so
/// shares are within some packets of 500 and 125. Without isolation of hosts each flow gets a fifth; in the modes that
/// have one queue for each host, the node is the flow.
#[test]
fn flows_of_a_node_share_what_one_host_gets() {
    let nodes = [Some(1), Some(1), Some(1), Some(1), Some(2)];
    for isolation in [Isolation::TripleIsolate, Isolation::DualSrchost, Isolation::DualDsthost] {
        let sent = sent_by_flow(isolation, &nodes);
        assert!((490..=510).contains(&sent[4]), "{isolation:?}: {sent:?}");
        assert!(sent[..4].iter().all(|n| (120..=130).contains(n)), "{isolation:?}: {sent:?}");
    }
    let sent = sent_by_flow(Isolation::Flows, &nodes);
    assert!(sent.iter().all(|n| (195..=205).contains(n)), "{sent:?}");
    for isolation in [Isolation::Srchost, Isolation::Dsthost, Isolation::Hosts] {
        let sent = sent_by_flow(isolation, &nodes);
        assert!((490..=510).contains(&sent[4]), "{isolation:?}: {sent:?}");
        assert_eq!(sent[0] + sent[4], 1000, "{isolation:?}: one queue, in the order of arrival: {sent:?}");
    }
    assert_eq!(sent_by_flow(Isolation::Flowblind, &nodes), [600, 400, 0, 0, 0]);
}

#[test]
fn a_flow_without_a_node_is_a_host_of_its_own() {
    let sent = sent_by_flow(Isolation::TripleIsolate, &[None, Some(1), None, None, Some(1)]);
    // Four hosts with a quarter each: three flows alone, and two flows of one node.
    for (flow, packets) in [(0, 250), (1, 125), (2, 250), (3, 250), (4, 125)] {
        assert!(sent[flow].abs_diff(packets) <= 8, "{sent:?}");
    }
    // The node of a connection is void when another one takes over its index.
    let mut world = World::<Numbered>::new(&config());
    world.tell(Fact::Owner { flow: FlowId(3), node: NodeId(7) });
    world.tell(Fact::Class { flow: FlowId(3), class: 46 });
    assert_eq!((world.cake.known(FlowId(3)).node, world.cake.known(FlowId(3)).tin), (NodeId(7), Some(2)));
    world.tell(Fact::FlowGone(FlowId(3)));
    assert_eq!((world.cake.known(FlowId(3)).node, world.cake.known(FlowId(3)).tin), (NodeId::NOBODY, None));
}

#[test]
fn the_class_of_a_flow_is_its_codepoint() {
    let mut world = World::new(&config());
    for (flow, class) in [(0, 46), (1, 8), (2, 0), (3, 64), (4, 48)] {
        world.tell(Fact::Class { flow: FlowId(flow), class });
    }
    (0..6).for_each(|flow| assert_eq!(world.send_of(flow, 0, 1000), Enqueued::Queued));
    (0..6).for_each(|_| assert!(world.take().is_some()));
    let sent: Vec<u64> = world.cake.tins.iter().map(|tin| tin.counts.sent).collect();
    assert_eq!(sent, [3, 1, 2], "2, 64 and the one without a class are best effort, 8 is bulk, 46 and 48 are voice");
    assert_eq!(world.cake.report().unwrap()["tins"][2]["sent"], 2);
}

/// A datagram of 28 bytes with this codepoint, ECT(0), of IPv4 or IPv6.
fn marked(v6: bool, dscp: u8) -> RealPacket {
    let builder = if v6 { PacketBuilder::ipv6([1; 16], [2; 16], 9) } else { PacketBuilder::ipv4([1; 4], [2; 4], 9) };
    let mut bytes = Vec::new();
    builder.udp(1, 2).write(&mut bytes, &[]).unwrap();
    let word = u16::from_be_bytes([bytes[0], bytes[1]]) | (u16::from(dscp << 2 | 2) << if v6 { 4 } else { 0 });
    bytes[..2].copy_from_slice(&word.to_be_bytes());
    if !v6 {
        let sum = Ipv4Header::from_slice(&bytes).unwrap().0.calc_header_checksum();
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    RealPacket::new(bytes, FlowId(u32::from(dscp)))
}

/// What somebody wrote of a flow holds before what its packets say: flow 46 is told to be best effort.
#[test]
fn a_packet_goes_into_the_tin_of_its_codepoint() {
    let mut world = World::new(&config());
    world.tell(Fact::Class { flow: FlowId(46), class: 0 });
    for (v6, dscp) in [(false, 44), (true, 44), (false, 8), (true, 0), (false, 46), (true, 46)] {
        assert_eq!(world.send(marked(v6, dscp)), Enqueued::Queued);
        assert_eq!(marked(v6, dscp).dscp(), Some(dscp));
    }
    let left = std::iter::from_fn(|| world.take()).map(|packet| packet.dscp().unwrap());
    let mut left: Vec<u8> = left.collect();
    left.sort_unstable();
    assert_eq!(left, [0, 8, 44, 44, 46, 46], "codepoints stay as they are");
    assert_eq!(world.cake.tins.iter().map(|tin| tin.counts.sent).collect::<Vec<_>>(), [3, 1, 2]);
}

#[test]
fn washing_clears_the_codepoint_once_it_has_chosen_the_tin() {
    let mut world = World::new(&Config { wash: true, ..config() });
    [false, true].into_iter().for_each(|v6| assert_eq!(world.send(marked(v6, 46)), Enqueued::Queued));
    for _ in 0..2 {
        let packet = world.take().unwrap();
        assert_eq!((packet.dscp(), packet.ecn()), (Some(0), Ecn::Ect0));
        if packet.bytes()[0] >> 4 == 4 {
            let header = Ipv4Header::from_slice(packet.bytes()).unwrap().0;
            assert_eq!(header.header_checksum, header.calc_header_checksum());
        }
    }
    assert_eq!(world.cake.tins[2].counts.sent, 2);
}

/// 1 Mbit/s are 125 B/ms, and 1 B takes 8 us. A packet of 962 B and 38 B more takes 8 ms; over ATM it is 21 cells of 53 B,
/// which are 8.904 ms. What is smaller than `mpu` is as large as that.
#[test]
fn the_shaper_charges_overhead_and_cells() {
    for (framing, size, ns) in [
        (Framing::None, 962, 8_000_000),
        (Framing::Atm, 962, 8_904_000),
        (Framing::Ptm, 962, 8_128_000),
        (Framing::None, 40, 672_000),
    ] {
        let bandwidth = Some(Rate::from_bps(1_000_000));
        let mut world = World::new(&Config { bandwidth, overhead: 38, mpu: 84, framing, ..config() });
        (0..4).for_each(|n| assert_eq!(world.send_of(0, n, size), Enqueued::Queued));
        let times: Vec<u64> =
            (0..4).map(|_| world.wait().map(|_| world.now.since(at(1)).as_nanos()).unwrap()).collect();
        assert_eq!(times, [0, ns, 2 * ns, 3 * ns], "{framing:?}");
        assert_eq!((world.take(), world.cake.next_wakeup()), (None, None));
    }
}

/// Five packets of flow 0 and two of flow 1 are 7000 B; one more of flow 1 makes room at the head of flow 0.
#[test]
fn room_is_made_at_the_head_of_the_fattest_queue() {
    for compat in [Compat::Source, Compat::Linux] {
        let memory_limit = Some(Bytes::new(7000));
        let mut world = World::new(&Config { memory_limit, compat, ..config() });
        (0..5).for_each(|n| assert_eq!(world.send_of(0, n, 1000), Enqueued::Queued));
        (5..8).for_each(|n| assert_eq!(world.send_of(1, n, 1000), Enqueued::Queued));
        assert_eq!(world.cake.stats().dropped_overflow, Backlog { packets: 1, bytes: 1000 });
        let mut left: Vec<u64> = std::iter::from_fn(|| world.take()).map(|packet| packet.number).collect();
        left.sort_unstable();
        assert_eq!(left, [1, 2, 3, 4, 5, 6, 7]);
    }
}

/// A packet that is larger than the memory is dropped itself, after all others.
#[test]
fn a_packet_without_room_is_dropped_itself() {
    let mut world = World::new(&Config { memory_limit: Some(Bytes::new(1500)), ..config() });
    assert_eq!(world.send_of(0, 0, 1000), Enqueued::Queued);
    assert_eq!(world.send_of(1, 1, 2000), Enqueued::Dropped(DropReason::Overflow));
    assert_eq!(world.cake.backlog(), Backlog { packets: 1, bytes: 1000 });
}

/// Packets without bytes are never fat, but a limit in packets holds for them as well.
#[test]
fn packets_without_bytes_make_room() {
    let mut world = World::new(&Config { tins: Tins::BestEffort, ..config() });
    world.cake.limit = Limit::Packets(3);
    (0..3).for_each(|n| assert_eq!(world.send_of(n, n.into(), 0), Enqueued::Queued));
    (3..6).for_each(|n| assert_eq!(world.send_of(9, n, 0), Enqueued::Queued));
    assert_eq!((world.cake.backlog().packets, world.cake.stats().dropped_overflow.packets), (3, 3));
}

/// What `cake_reconfigure()` computes: four times 100 ms at 10 Mbit/s are 500 kB, less than 4 MiB; at 200 Mbit/s 10 MB; at
/// 1 Gbit/s 50 MB, more than 10240 packets of 1514 B.
#[test]
fn memory_follows_from_rate_and_round_trip_time() {
    let of = |mbit: u64| Config { bandwidth: Some(Rate::from_bps(mbit * 1_000_000)), ..config() }.memory();
    assert_eq!([of(10), of(200), of(1000)], [4 << 20, 10_000_000, 15_503_360]);
    assert_eq!(config().memory(), 15_503_360);
    assert_eq!(Config { memory_limit: Some(Bytes::new(9)), ..config() }.memory(), 9);
}

/// The bulk tin of 1 Mbit/s has 62.5 kbit/s, which are 7812 B/s: 1514 B take 193.804 ms, the target is 1.5 times that and
/// the interval twice the target. Best effort: 12.112 ms, 18.168 ms, 100 + 13.168 ms. An rtt of 20 ms has a target of 1 ms.
#[test]
fn slow_tins_get_a_larger_target() {
    let tins = |config: &Config| {
        let ms = |ns: u64| (ns as f64 / 1e5).round() / 10.0;
        let cake = Cake::<Numbered>::new(config, Limit::Packets(9));
        cake.tins.iter().map(|tin| (ms(tin.params.target), ms(tin.params.interval))).collect::<Vec<_>>()
    };
    let slow = Config { bandwidth: Some(Rate::from_bps(1_000_000)), ..config() };
    assert_eq!(tins(&slow), [(18.2, 113.2), (290.7, 581.4), (72.7, 167.7)]);
    assert_eq!(tins(&Config { rtt: Span::from_millis(20), ..config() })[0], (1.0, 20.0));
    let target = Some(Span::from_millis(7));
    assert_eq!(tins(&Config { target, ..config() })[0], (7.0, 100.0));
}

/// The number of packets of each of three flows, in the tins best effort, bulk and voice, of 800 that are sent.
fn sent_by_tin(bandwidth: Option<Rate>) -> [u64; 3] {
    let mut world = World::new(&Config { bandwidth, ..config() });
    for (flow, class) in [(0, 0), (1, 8), (2, 46)] {
        world.tell(Fact::Class { flow: FlowId(flow), class });
        (0..800).for_each(|n| assert_eq!(world.send_of(flow, n, 1000), Enqueued::Queued));
    }
    let mut sent = [0; 3];
    (0..800).for_each(|_| sent[world.wait().unwrap().flow.0 as usize] += 1);
    sent
}

/// Without a bandwidth, tins share by their quanta of 1024, 64 and 256 B: 609.5, 38.1 and 152.4 of 800 packets.
#[test]
fn tins_share_by_their_quanta() {
    let sent = sent_by_tin(None);
    for (tin, packets) in [(0, 609), (1, 38), (2, 152)] {
        assert!(sent[tin].abs_diff(packets) <= 20, "{sent:?}");
    }
}

/// With a bandwidth, voice has priority up to a quarter of it and bulk up to a sixteenth: 200 and 50 of 800 packets.
#[test]
fn tins_have_priority_up_to_their_thresholds() {
    let sent = sent_by_tin(Some(Rate::from_bps(10_000_000)));
    for (tin, packets) in [(0, 550), (1, 50), (2, 200)] {
        assert!(sent[tin].abs_diff(packets) <= 4, "{sent:?}");
    }
}

/// 10 Mbit/s are 1.25 MB/s, which are 305 B in a 4096th of a second; 100 Mbit/s have 3051 B, more than a packet.
#[test]
fn the_quantum_of_a_flow_follows_from_the_rate() {
    for (mbit, quantum) in [(1, 300), (10, 305), (100, 1514)] {
        let bandwidth = Some(Rate::from_bps(mbit * 1_000_000));
        let cake = Cake::<Numbered>::new(&Config { bandwidth, ..config() }, Limit::Packets(9));
        assert_eq!(cake.tins[0].flow_quantum, quantum);
    }
    assert_eq!(Cake::<Numbered>::new(&config(), Limit::Packets(9)).tins[0].flow_quantum, 1514);
}

#[test]
fn the_rate_of_the_link_does_not_matter() {
    for bandwidth in [None, Some(Rate::from_bps(1_000_000))] {
        let fresh = World::<Numbered>::new(&Config { bandwidth, ..config() });
        let mut told = World::<Numbered>::new(&Config { bandwidth, ..config() });
        told.tell(Fact::Rate(Rate::from_bps(64_000)));
        assert_eq!(format!("{:?}", told.cake), format!("{:?}", fresh.cake));
    }
}

/// A TCP segment of 40 B that acknowledges `number`.
#[derive(Debug, Clone, Copy)]
struct Ack(PlainSegment);

impl Packet for Ack {
    type Tcp = PlainSegment;

    fn size(&self) -> Bytes {
        Bytes::new(40 + u64::from(self.0.payload_len))
    }
    fn flow(&self) -> FlowId {
        self.0.flow
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {}
    fn tcp(&mut self) -> Option<&mut PlainSegment> {
        Some(&mut self.0)
    }
}

fn ack(number: u32) -> PlainSegment {
    PlainSegment { ack: number, ..PlainSegment::new(FlowId(1), TcpFlags::ACK) }
}

/// The numbers that are left of these segments, which arrive at once.
fn left(ack_filter: AckFilter, segments: &[PlainSegment]) -> Vec<u32> {
    let mut world = World::new(&Config { ack_filter, isolation: Isolation::Flowblind, ..config() });
    segments.iter().for_each(|segment| assert_eq!(world.send(Ack(*segment)), Enqueued::Queued));
    let left: Vec<u32> = std::iter::from_fn(|| world.take()).map(|packet| packet.0.ack).collect();
    let stats = world.cake.stats();
    stats.check(world.cake.backlog()).unwrap();
    assert_eq!(stats.dropped_dequeue.packets, segments.len() as u64 - left.len() as u64);
    assert_eq!(world.cake.report().unwrap()["tins"][0]["acks_filtered"], stats.dropped_dequeue.packets);
    left
}

/// Of five ACKs the form `yes` keeps the newest two and the one that makes them redundant, the aggressive form the last.
#[test]
fn the_ack_filter_keeps_two_redundant_acks_or_none() {
    let five: Vec<PlainSegment> = (1..=5).map(|n| ack(n * 1448)).collect();
    let numbers = |of: &[u32]| of.iter().map(|n| n * 1448).collect::<Vec<u32>>();
    assert_eq!(left(AckFilter::No, &five), numbers(&[1, 2, 3, 4, 5]));
    assert_eq!(left(AckFilter::Yes, &five), numbers(&[4, 5]));
    assert_eq!(left(AckFilter::Aggressive, &five), numbers(&[5]));
}

#[test]
fn the_ack_filter_goes_by_the_number() {
    // The same number again is a duplicate ACK, and all of them count; a lower one does not make a higher one redundant.
    assert_eq!(left(AckFilter::Aggressive, &[ack(10), ack(10), ack(10)]), [10, 10, 10]);
    assert_eq!(left(AckFilter::Aggressive, &[ack(20), ack(10)]), [20, 10]);
    // Numbers are a circle.
    assert_eq!(left(AckFilter::Aggressive, &[ack(u32::MAX - 5), ack(5)]), [5]);
    assert_eq!(left(AckFilter::Aggressive, &[ack(5), ack(u32::MAX - 5)]), [5, u32::MAX - 5]);
}

#[test]
fn the_ack_filter_keeps_what_says_more_than_a_number() {
    let with = |change: &dyn Fn(&mut PlainSegment)| {
        let mut first = ack(10);
        change(&mut first);
        left(AckFilter::Aggressive, &[first, ack(20)]).len()
    };
    assert_eq!(with(&|_| {}), 1);
    assert_eq!(with(&|first| first.payload_len = 1), 2, "data");
    for flag in [TcpFlags::FIN, TcpFlags::SYN, TcpFlags::RST, TcpFlags::PSH, TcpFlags(0x20)] {
        assert_eq!(with(&|first| first.flags = TcpFlags::ACK.with(flag)), 2, "{flag:?}");
    }
    assert_eq!(with(&|first| first.mss = Some(1448)), 2);
    assert_eq!(with(&|first| first.window_scale = Some(7)), 2);
    assert_eq!(with(&|first| first.flow = FlowId(2)), 2, "another flow in the same queue");
    assert_eq!(with(&|first| first.timestamps = Some(Timestamps { val: 1, ecr: 0 })), 2, "later than none");
    assert_eq!(with(&|first| first.timestamps = Some(Timestamps { val: 0, ecr: 0 })), 1);
    assert_eq!(with(&|first| first.flags = TcpFlags(0x11)), 2, "FIN");
}

/// The last ACK before a change of ECE is kept, since it tells that there was a change.
#[test]
fn the_ack_filter_keeps_changes_of_ece() {
    let echo = |number| PlainSegment { flags: TcpFlags::ACK.with(TcpFlags::ECE), ..ack(number) };
    assert_eq!(left(AckFilter::Aggressive, &[ack(10), echo(20)]), [10, 20]);
    assert_eq!(left(AckFilter::Aggressive, &[echo(10), echo(20), echo(30)]), [30]);
    assert_eq!(left(AckFilter::Yes, &[ack(10), echo(20), ack(30), echo(40), ack(50)]), [10, 20, 30, 40, 50]);
    // 10 and 20 are redundant when 30 comes, and alike.
    assert_eq!(left(AckFilter::Yes, &[ack(10), ack(20), echo(30)]), [20, 30]);
}

/// Nine flows of one set of eight: the ninth takes the queue of its hash, which its owner loses.
#[test]
fn a_ninth_flow_of_a_set_takes_a_queue_of_another() {
    let queue = |flow: u32| Hashes::of(Isolation::Flows, FlowId(flow), NodeId::NOBODY, 1).flow as usize % QUEUES;
    let flows: Vec<u32> = (0..100_000).filter(|flow| queue(*flow) / 8 == 5).take(9).collect();
    let mut world = World::new(&Config { isolation: Isolation::Flows, tins: Tins::BestEffort, ..config() });
    flows.iter().for_each(|flow| assert_eq!(world.send_of(*flow, 0, 1000), Enqueued::Queued));
    let found = world.cake.tins[0].owners.found;
    assert_eq!((found.misses, found.collisions), (8, 1));
    let active: Vec<usize> = (0..QUEUES).filter(|at| world.cake.tins[0].queues[*at].set != Set::None).collect();
    assert_eq!(active, (40..48).collect::<Vec<_>>());
    let shared = world.cake.fattest.bytes_of(queue(flows[8]));
    assert_eq!(shared, 2000);
}
