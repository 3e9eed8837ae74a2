use super::*;
use crate::packet::{Ecn, PlainSegment};
use crate::rng::Rng;
use crate::rng::Streams;
use proptest::prelude::*;

const MBIT: Rate = Rate::from_bps(1_000_000);

fn segment(flow: u32, flags: TcpFlags, seq: u32, ack: u32) -> PlainSegment {
    PlainSegment { seq, ack, ..PlainSegment::new(FlowId(flow), flags) }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn span(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Without tolerance, so that numbers are round.
fn exact() -> Config {
    Config { tolerance: 0.0, ..Config::default() }
}

struct Bench {
    qrm: Qrm,
    rng: Rng,
}

impl Bench {
    /// A link of 8 Mbit/s: a byte takes a microsecond.
    fn new(config: Config) -> Self {
        AqmConfig::validate(&config).unwrap();
        Self { qrm: Qrm::new(&config, Rate::from_bps(8_000_000)), rng: Streams::new(1).get("t") }
    }

    /// A datagram of 1000 bytes.
    fn packet(&mut self, flow: u32, now: Instant) -> bool {
        self.sized(flow, 1000, now)
    }

    fn sized(&mut self, flow: u32, size: u64, now: Instant) -> bool {
        let meta = Meta { size: Bytes::new(size), ecn: Ecn::NotEct, flow: FlowId(flow) };
        self.qrm.on_enqueue(&meta, Backlog::default(), now, &mut self.rng) == Verdict::Pass
    }

    fn outbound(&mut self, mut segment: PlainSegment, now: Instant) {
        self.qrm.outbound(&mut segment, now);
        assert_eq!(segment.window, u16::MAX, "QRM edits nothing");
    }

    fn inbound(&mut self, mut segment: PlainSegment, now: Instant) {
        self.qrm.inbound(&mut segment, now);
        assert_eq!(segment.window, u16::MAX, "QRM edits nothing");
    }

    fn segment(&mut self, segment: PlainSegment, now: Instant) -> bool {
        self.outbound(segment, now);
        self.sized(segment.flow.0, 40 + u64::from(segment.payload_len), now)
    }

    /// SYN at `now`, its answer after the WAN half, the ACK of that after the LAN half.
    fn handshake(&mut self, flow: u32, now: Instant, wan: u64, lan: u64) -> bool {
        let syn = segment(flow, TcpFlags::SYN, 99, 0);
        let passed = self.segment(syn, now);
        let answer = segment(flow, TcpFlags::SYN.with(TcpFlags::ACK), 499, 100);
        self.inbound(answer, now + span(wan));
        let ack = segment(flow, TcpFlags::ACK, 100, 500);
        self.outbound(ack, now + span(wan + lan));
        passed
    }

    fn own(&mut self, flows: &[(u32, u32)]) {
        flows.iter().for_each(|(flow, node)| {
            self.qrm.on_fact(&Fact::Owner { flow: FlowId(*flow), node: NodeId(*node) }, Instant::ZERO)
        });
    }

    fn tell(&mut self, node: u32, budget: Option<Rate>, now: Instant) {
        self.qrm.on_fact(&Fact::Budget { node: NodeId(node), budget }, now);
    }
}

/// 1 Mbit/s and 80 + 20 ms are 12,500 bytes: twelve packets of 1000 at once, then one each 8 ms.
#[test]
fn a_node_sends_a_window_at_once_and_then_at_its_budget() {
    let mut bench = Bench::new(exact());
    bench.own(&[(5, 0), (6, 1)]);
    bench.tell(0, Some(MBIT), at(0));
    assert!(bench.handshake(5, at(0), 80, 20));
    let burst = (0..20).filter(|_| bench.packet(5, at(1000))).count();
    assert_eq!(burst, 12);
    assert!(!bench.packet(5, at(1003)), "500 bytes were left, 375 drained since");
    assert!(bench.packet(5, at(1004)), "500 more");
    let later = (0..100).filter(|i| bench.packet(5, at(1012 + 8 * i))).count();
    assert_eq!(later, 100);
    assert_eq!(bench.qrm.stats().over_budget, 20 - 12 + 1);
}

#[test]
fn tolerance_is_room_for_a_longer_burst_and_not_for_more() {
    let mut bench = Bench::new(Config { tolerance: 0.2, ..Config::default() });
    bench.own(&[(5, 0)]);
    bench.tell(0, Some(MBIT), at(0));
    bench.handshake(5, at(0), 80, 20);
    assert_eq!((0..30).filter(|_| bench.packet(5, at(1000))).count(), 15, "12,500 and a fifth");
    // In 8 s 1 Mbit/s is 1000 packets, whatever the tolerance.
    let sent = (1..=8000).filter(|ms| bench.packet(5, at(1000 + ms))).count();
    assert_eq!(sent, 1000);
}

/// A node of 0.1 Mbit/s and 100 ms has 1250 bytes: one packet. Windows of one and two in turn need room for a second.
#[test]
fn slack_is_room_for_whole_packets_where_budgets_are_small() {
    let burst = |config| {
        let mut bench = Bench::new(config);
        bench.own(&[(5, 0)]);
        bench.tell(0, Some(Rate::from_bps(100_000)), at(0));
        bench.handshake(5, at(0), 80, 20);
        assert_eq!(bench.qrm.stats().bound_bytes, 1250 + bench.qrm.config.slack.get());
        let burst = (0..20).filter(|_| bench.packet(5, at(1000))).count();
        let rest = (1..=80_000).filter(|ms| bench.packet(5, at(1000 + ms))).count();
        assert_eq!(rest, 1000, "0.1 Mbit/s for 80 s, whatever the slack");
        burst
    };
    assert_eq!(burst(exact()), 1);
    assert_eq!(burst(Config { slack: Bytes::new(3000), ..exact() }), 4);
    let window = Config { slack: Bytes::new(3000), account: Account::Window, ..exact() };
    let mut bench = Bench::new(window);
    bench.own(&[(5, 0)]);
    bench.tell(0, Some(Rate::from_bps(100_000)), at(0));
    bench.handshake(5, at(0), 80, 20);
    assert_eq!((0..20).filter(|_| bench.packet(5, at(1000))).count(), 5, "4250 bytes, and the packet that crosses it");
}

#[test]
fn who_is_not_listed_gets_nothing_but_a_syn() {
    let mut bench = Bench::new(exact());
    bench.own(&[(0, 0), (1, 1)]);
    bench.tell(0, Some(MBIT), at(0));
    assert!(bench.packet(0, at(1)));
    assert!(!bench.packet(1, at(1)));
    assert!(!bench.packet(7, at(1)), "of no node");
    assert!(bench.handshake(1, at(2), 80, 20), "a node may open before it registers");
    assert_eq!(bench.qrm.stats().unlisted, 2);
    bench.tell(1, Some(MBIT), at(200));
    assert!(bench.packet(1, at(201)));
    bench.tell(1, None, at(300));
    assert!(!bench.packet(1, at(301)));
}

/// 8 Mbit/s, of which a node has 6: two strangers have 1 Mbit/s each (a packet each 8 ms), one alone has 2.
#[test]
fn who_is_not_listed_shares_what_the_gateway_leaves() {
    let mut bench = Bench::new(exact());
    bench.own(&[(0, 0), (1, 1), (2, 2)]);
    bench.tell(0, Some(Rate::from_bps(6_000_000)), at(0));
    bench.qrm.on_fact(&Fact::Rest(Rate::from_bps(2_000_000)), at(0));
    let mut sent = |flows: &[u32], from: u64| {
        let mut sent = [0; 3];
        for ms in from..from + 4000 {
            flows.iter().for_each(|flow| sent[*flow as usize] += u32::from(bench.packet(*flow, at(ms))));
        }
        sent
    };
    let [listed, one, other] = sent(&[0, 1, 2], 0);
    // Accounts hold 100 ms, and an empty one a packet.
    assert!((3000..=3076).contains(&listed), "{listed}");
    assert!((500..=513).contains(&one) && (500..=513).contains(&other), "{one} {other}");
    let [_, alone, _] = sent(&[1], 20_000);
    assert!((1000..=1026).contains(&alone), "{alone}");
    // With a budget of its own it is no stranger any more, without one it is again.
    bench.tell(1, Some(MBIT), at(30_000));
    assert_eq!((bench.qrm.active, bench.qrm.budget_of(FlowId(2))), (0, Some(Rate::from_bps(2_000_000))));
    bench.tell(1, None, at(30_001));
    assert!(bench.packet(1, at(30_002)) && bench.qrm.active == 1);
    bench.qrm.on_fact(&Fact::Rest(Rate::from_bps(0)), at(30_003));
    assert!(bench.packet(1, at(40_000)) && !bench.packet(1, at(50_000)), "a packet, and 1 bit/s");
}

/// All flows of a node draw on one account.
#[test]
fn many_flows_get_no_more_than_one() {
    let mut bench = Bench::new(exact());
    bench.own(&[(0, 0), (1, 0), (2, 0), (3, 1)]);
    bench.tell(0, Some(MBIT), at(0));
    bench.tell(1, Some(MBIT), at(0));
    (0..4).for_each(|flow| {
        bench.handshake(flow, at(0), 80, 20);
    });
    let sent =
        |bench: &mut Bench, flows: &[u32]| (0..30).filter(|i| bench.packet(flows[i % flows.len()], at(1000))).count();
    assert_eq!(sent(&mut bench, &[0, 1, 2]), 12);
    assert_eq!(sent(&mut bench, &[3]), 12);
}

/// The WAN half of the first flow is 80 ms, of the second 50: the smaller counts. 8 Mbit/s, 50 + 20 ms: 70 packets.
#[test]
fn the_smallest_round_trip_time_of_all_flows_counts() {
    let mut bench = Bench::new(exact());
    bench.own(&[(0, 0), (1, 0)]);
    bench.tell(0, Some(Rate::from_bps(8_000_000)), at(0));
    bench.handshake(0, at(0), 80, 20);
    bench.handshake(1, at(500), 50, 20);
    assert_eq!((0..200).filter(|_| bench.packet(0, at(1000))).count(), 70);
}

/// 1000 ms of LAN half count for 500: 1 Mbit/s, 80 + 500 ms, 72,500 bytes.
/// A SYN from outside after 0 ms, its answer after 20 ms, the ACK of that after 100 ms.
#[test]
fn a_connection_from_outside_is_measured_from_its_syn_on() {
    let mut bench = Bench::new(exact());
    bench.own(&[(5, 0)]);
    let syn_ack = TcpFlags::SYN.with(TcpFlags::ACK);
    bench.inbound(segment(5, TcpFlags::SYN, 99, 0), at(0));
    bench.outbound(segment(5, syn_ack, 499, 100), at(20));
    bench.inbound(segment(5, TcpFlags::ACK, 100, 500), at(100));
    assert_eq!(bench.qrm.nodes[0].rtt, Some(span(100)));
}

#[test]
fn who_answers_late_does_not_get_longer_bursts() {
    let mut bench = Bench::new(exact());
    bench.own(&[(0, 0)]);
    bench.tell(0, Some(MBIT), at(0));
    bench.handshake(0, at(0), 80, 1000);
    assert_eq!((0..200).filter(|_| bench.packet(0, at(5000))).count(), 72);
}

/// Two nodes share 8 Mbit/s, 500 bytes per ms each. One stops; after the idle time the other has all.
#[test]
fn without_a_gateway_those_who_send_share_evenly() {
    let mut bench = Bench::new(exact());
    let mut rate_of = |flow: u32, other: Option<u32>, from: u64| {
        let mut sent = 0;
        for ms in from..from + 4000 {
            (0..2).for_each(|_| sent += u64::from(bench.packet(flow, at(ms))));
            if let Some(other) = other {
                (0..2).for_each(|_| _ = bench.packet(other, at(ms)));
            }
        }
        sent as f64 / 4000.0
    };
    assert!((rate_of(0, Some(1), 0) - 0.5).abs() < 0.02, "half, and a bucket of 100 ms at first");
    assert!((rate_of(0, None, 4000) - 0.5).abs() < 0.02, "the other still counts");
    assert!((rate_of(0, None, 20_000) - 1.0).abs() < 0.03, "it no longer does");
}

/// A host 70 ms away has 70 packets of 8 Mbit/s. Another gets its number: nothing is known of it, so 100 ms count.
#[test]
fn a_number_that_comes_back_is_another_host() {
    let mut bench = Bench::new(exact());
    bench.own(&[(0, 0), (1, 1)]);
    bench.handshake(0, at(0), 50, 20);
    assert_eq!((0..200).filter(|_| bench.packet(0, at(1000))).count(), 70);
    assert!(bench.packet(1, at(1500)));
    assert_eq!(bench.qrm.stats().nodes, 2, "half of the link each");
    bench.qrm.on_fact(&Fact::Gone(NodeId(0)), Instant::ZERO);
    assert_eq!(bench.qrm.stats().nodes, 1);
    bench.own(&[(0, 0)]);
    assert_eq!((0..200).filter(|_| bench.packet(1, at(2000))).count(), 100, "all of the link");
    bench.qrm.on_fact(&Fact::Gone(NodeId(1)), Instant::ZERO);
    bench.qrm.on_fact(&Fact::Gone(NodeId(7)), Instant::ZERO);
    assert_eq!((0..200).filter(|_| bench.packet(0, at(3000))).count(), 100);
}

/// A flow's number becomes another connection's, of another host: it draws on that account.
#[test]
fn a_flow_may_pass_to_another_node() {
    let mut bench = Bench::new(exact());
    bench.own(&[(0, 0), (1, 1)]);
    bench.tell(0, Some(MBIT), at(0));
    bench.tell(1, Some(MBIT), at(0));
    assert_eq!((0..30).filter(|_| bench.packet(0, at(0))).count(), 12);
    bench.own(&[(0, 1)]);
    assert_eq!((0..30).filter(|_| bench.packet(0, at(0))).count(), 12);
    assert!(!bench.packet(1, at(0)));
}

/// A flow which belongs to no node is refused, and has no share.
#[test]
fn a_flow_of_nobody_is_no_node() {
    let mut bench = Bench::new(exact());
    bench.own(&[(0, 0), (1, NodeId::NOBODY.0)]);
    assert!(!bench.packet(1, at(0)));
    assert_eq!((0..200).filter(|_| bench.packet(0, at(0))).count(), 100, "all of the link");
    assert_eq!(bench.qrm.stats().unlisted, 1);
    assert_eq!(bench.qrm.stats().nodes, 1);
}

#[test]
fn syns_are_limited_by_node() {
    let mut bench = Bench::new(Config { syn_rate: 10, ..exact() });
    bench.own(&[(0, 0), (1, 1)]);
    let syn = |flow, seq| segment(flow, TcpFlags::SYN, seq, 0);
    let flood = (0..100).filter(|i| bench.segment(syn(0, *i), at(0))).count();
    assert_eq!(flood, 10, "those of a second");
    assert!(bench.segment(syn(1, 0), at(0)), "another node has its own");
    let forged = (0..100).filter(|i| bench.segment(syn(1000 + i, 0), at(0))).count();
    assert_eq!(forged, 10, "all together");
    assert!(bench.segment(syn(1500, 0), at(100)) && !bench.segment(syn(1501, 0), at(100)), "one each 100 ms");
    assert_eq!(bench.qrm.stats().syns, 90 + 90 + 1);
}

#[test]
fn what_comes_back_is_only_looked_at() {
    let mut bench = Bench::new(exact());
    bench.own(&[(0, 0)]);
    bench.tell(1, Some(MBIT), at(0));
    bench.inbound(segment(0, TcpFlags::ACK, 1, 1), at(1));
    assert_eq!(bench.qrm.stats(), QrmStats { nodes: 1, bound_bytes: 12_500, ..QrmStats::default() });
}

/// A sender keeps a window of 12 packets in flight over 100 ms, paced or in bursts: nothing is refused.
#[test]
fn the_window_of_an_obedient_sender_passes() {
    for group in [1, 2, 4, 12] {
        let mut bench = Bench::new(exact());
        bench.own(&[(0, 0)]);
        bench.tell(0, Some(MBIT), at(0));
        bench.handshake(0, at(0), 80, 20);
        for packet in 0..1200u64 {
            let turn = packet / 12 * 100 + packet % 12 / group * group * 8;
            assert!(bench.packet(0, at(1000 + turn)), "packet {packet} in groups of {group}");
        }
    }
}

/// With a change to half the budget, what was sent before does not count against the new one.
#[test]
fn a_cut_does_not_strike_who_obeyed_before_it() {
    let mut bench = Bench::new(exact());
    bench.own(&[(0, 0)]);
    bench.tell(0, Some(MBIT), at(0));
    bench.handshake(0, at(0), 80, 20);
    (0..12).for_each(|_| assert!(bench.packet(0, at(1000))));
    bench.tell(0, Some(Rate::from_bps(500_000)), at(1001));
    assert_eq!((0..12).filter(|_| bench.packet(0, at(1100))).count(), 6);
}

/// The longest queue in bytes of a link of 8 Mbit/s at which each of eight nodes sends so many packets at those times,
/// or as many as it can.
fn longest_queue(account: Account, sends: &[(u64, u64)]) -> u64 {
    let mut bench = Bench::new(Config { account, ..exact() });
    let nodes = 8;
    for node in 0..nodes {
        bench.own(&[(node, node)]);
        bench.tell(node, Some(MBIT), at(0));
        bench.handshake(node, at(0), 80, 20);
    }
    let (mut queue, mut longest, mut last) = (0u64, 0, 0);
    for (ms, most) in sends {
        queue = queue.saturating_sub(1000 * (ms - last)); // 8 Mbit/s are 1000 bytes per ms
        last = *ms;
        for node in 0..nodes {
            queue += (0..*most).take_while(|_| bench.packet(node, at(1000 + ms))).count() as u64 * 1000;
        }
        longest = longest.max(queue);
    }
    longest
}

/// BW RTT is 8 Mbit/s 100 ms = 100,000 bytes. With resets: one packet of each node starts its timer; at its end each
/// may send twelve more (the check is before the packet), a ms later thirteen: 96,000 - 1000 + 104,000 bytes.
#[test]
fn a_counter_with_resets_breaks_theorem_2_and_a_bucket_does_not() {
    let around_the_reset = [(0, 1), (99, 50), (100, 50)];
    assert_eq!(longest_queue(Account::Window, &around_the_reset), 199_000);
    assert!(longest_queue(Account::Bucket, &around_the_reset) <= 100_000);
    let always: Vec<(u64, u64)> = (0..500).map(|ms| (ms, 50)).collect();
    assert!(longest_queue(Account::Bucket, &always) <= 100_000);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let refused = |config: Config| AqmConfig::validate(&config).unwrap_err().key;
    assert_eq!(refused(Config { tolerance: -0.1, ..exact() }), "tolerance");
    assert_eq!(refused(Config { tolerance: f64::NAN, ..exact() }), "tolerance");
    assert_eq!(refused(Config { rtt: Span::ZERO, ..exact() }), "rtt");
    assert_eq!(refused(Config { max_lan: Span::MAX, ..exact() }), "max_lan");
    assert_eq!(refused(Config { idle: Span::ZERO, ..exact() }), "idle");
    assert_eq!(refused(Config { syn_rate: 0, ..exact() }), "syn_rate");
}

proptest! {
    /// Theorem 2: whoever sends what, when and how large, what was accepted and not yet carried by the link is at most
    /// the sum of BW_i RTT_i, if those budgets add up to no more than the link. RTT_i differ.
    #[test]
    fn the_queue_is_never_longer_than_theorem_2_says(
        lans in prop::collection::vec(1..100u64, 4),
        arrivals in prop::collection::vec((0..4u32, 40..1500u64, 0..3_000u64), 1..2000),
    ) {
        let mut bench = Bench::new(exact());
        let budget = Rate::from_bps(2_000_000);
        for (node, lan) in (0..).zip(&lans) {
            bench.own(&[(node, node)]);
            bench.tell(node, Some(budget), at(0));
            bench.handshake(node, at(0), 80, *lan);
        }
        let bound: u64 = lans.iter().map(|lan| budget.bytes_in(span(80 + lan)).get()).sum();
        prop_assert_eq!(bench.qrm.stats().bound_bytes, bound);
        // In byte-nanoseconds: a byte takes 1000 ns.
        let (mut now, mut queue_ns) = (at(1000), 0u64);
        for (node, size, gap_us) in arrivals {
            now += Span::from_micros(gap_us / 4);
            queue_ns = queue_ns.saturating_sub(gap_us / 4 * 1000);
            if bench.sized(node, size, now) {
                queue_ns += size * 1000;
            }
            prop_assert!(queue_ns <= bound * 1000, "{} bytes wait, {} are the bound", queue_ns / 1000, bound);
        }
    }
}

/// The table of owners is indexed by flows, so there is an end to it: 2^24 flows have an owner, the next has none.
#[test]
fn a_flow_beyond_the_table_has_no_owner() {
    let mut qrm = Qrm::new(&exact(), MBIT);
    for beyond in [1 << 24, u32::MAX] {
        qrm.on_fact(&Fact::Owner { flow: FlowId(beyond), node: NodeId(0) }, at(0));
        assert!(qrm.owners.as_ref().is_none_or(Vec::is_empty), "flow {beyond} is remembered");
    }
}

#[test]
fn an_index_that_passes_on_has_no_owner_and_a_flow_that_is_a_node_is_gone() {
    let mut qrm = Qrm::new(&Config::default(), MBIT);
    qrm.on_fact(&Fact::FlowGone(FlowId(0)), Instant::ZERO);
    assert_eq!(qrm.judge(qrm.owner(FlowId(0)), Bytes::new(100), false, Instant::ZERO), Verdict::Pass);
    assert_eq!(qrm.active, 1);
    qrm.on_fact(&Fact::FlowGone(FlowId(0)), Instant::ZERO);
    assert_eq!(qrm.active, 0, "each flow was a node");
    qrm.on_fact(&Fact::Owner { flow: FlowId(0), node: NodeId(7) }, Instant::ZERO);
    assert_eq!(qrm.owner(FlowId(0)), Some(7));
    qrm.node(7).followed = 0;
    qrm.on_fact(&Fact::FlowGone(FlowId(0)), Instant::ZERO);
    assert_eq!((qrm.owner(FlowId(0)), qrm.nodes[7].followed), (None, NOBODY));
}
