//! Properties of every discipline of the registry, for any packets and segments in any order.

use penstock_core::ack::AckPath;
use penstock_core::config::LinkFacts;
use penstock_core::fact::Fact;
use penstock_core::packet::{Ecn, Ern, FlowId, NodeId, Packet, PlainSegment, RateNotice, TcpFlags, Timestamps};
use penstock_core::qdisc::{DropReason, Enqueued, PacketObserver, Qdisc};
use penstock_core::registry::{AnyAqmConfig, AnyConfig, AnyQdisc, NAMES};
use penstock_core::rng::{Rng, Streams};
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct TestPacket {
    number: u64,
    size: Bytes,
    ecn: Ecn,
    segment: PlainSegment,
}

impl Packet for TestPacket {
    type Tcp = PlainSegment;

    fn size(&self) -> Bytes {
        self.size
    }
    fn flow(&self) -> FlowId {
        self.segment.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        assert!(self.ecn.is_capable(), "a packet that is not ECN-capable was marked");
        self.ecn = Ecn::Ce;
    }
    fn tcp(&mut self) -> Option<&mut PlainSegment> {
        Some(&mut self.segment)
    }
    /// The notice is derived from the numbers of the segment, which are random.
    fn explicit_rate(&self) -> Ern {
        let PlainSegment { seq, ack, window, .. } = self.segment;
        Ern::new(seq as u8, RateNotice::from_bytes(ack.wrapping_add(window.into()).to_be_bytes()))
    }
}

/// One step of a random test.
#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Arrive { size: u64, ecn: u8, segment: PlainSegment },
    Depart,
    Inbound(PlainSegment),
    TakeOut(u32),
    Tell(Fact),
}

/// Segments with few different values, so that segments of a flow acknowledge each other now and then.
fn segments() -> impl Strategy<Value = PlainSegment> {
    let number = prop_oneof![0..20u32, (0..20u32).prop_map(|n| u32::MAX - n), any::<u32>()];
    let flags = prop_oneof![Just(0x02u8), Just(0x12), Just(0x10), Just(0x10), Just(0x11), any::<u8>()];
    let times = prop::option::of((0..20u32, 0..20u32));
    let lengths = prop_oneof![Just(0u32), 1..5u32, Just(1448)];
    (0..6u32, flags, number.clone(), number, lengths, any::<u16>(), prop::option::of(0..=14u8), times).prop_map(
        |(flow, flags, seq, ack, payload_len, window, window_scale, times)| {
            let (mss, timestamps) = (window_scale.map(|_| 1448), times.map(|(val, ecr)| Timestamps { val, ecr }));
            let plain = PlainSegment::new(FlowId(flow), TcpFlags(flags));
            PlainSegment { seq, ack, payload_len, window, window_scale, mss, timestamps, ..plain }
        },
    )
}

/// All kinds of facts, about the few flows, nodes and stations of the test and about some that do not exist.
fn facts() -> impl Strategy<Value = Fact> {
    let nodes = || prop_oneof![4 => (0..3u32).prop_map(NodeId), 1 => Just(NodeId::NOBODY)];
    let rates = || prop_oneof![Just(1u64), 10_000..100_000_000u64, Just(u64::MAX)].prop_map(Rate::from_bps);
    prop_oneof![
        rates().prop_map(Fact::Rate),
        (0..6u32, 0.0..=1.0f64).prop_map(|(station, loss)| Fact::Channel { station, loss }),
        (0..6u32, nodes()).prop_map(|(flow, node)| Fact::Owner { flow: FlowId(flow), node }),
        (0..6u32, 0..10u32).prop_map(|(flow, class)| Fact::Class { flow: FlowId(flow), class }),
        (nodes(), prop::option::of(rates())).prop_map(|(node, budget)| Fact::Budget { node, budget }),
        nodes().prop_map(Fact::Gone),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let waits = prop_oneof![Just(0u64), 1..2_000_000u64, 1_000_000..500_000_000u64, Just(20_000_000_000)];
    let arrival = (1..=1600u64, 0..4u8, segments());
    let step = prop_oneof![
        3 => waits.prop_map(Step::Wait),
        6 => arrival.prop_map(|(size, ecn, segment)| Step::Arrive { size, ecn, segment }),
        4 => Just(Step::Depart),
        2 => segments().prop_map(Step::Inbound),
        1 => (0..6u32).prop_map(Step::TakeOut),
        3 => facts().prop_map(Step::Tell),
    ];
    prop::collection::vec(step, 0..400)
}

fn links() -> impl Strategy<Value = LinkFacts> {
    let limit = prop_oneof![
        (1..40u64).prop_map(Limit::Packets),
        (1..40_000u64).prop_map(|n| Limit::Bytes(Bytes::new(n))),
        Just(Limit::Packets(u64::MAX)),
    ];
    (prop_oneof![Just(1u64), 10_000..100_000_000u64, Just(u64::MAX)], limit)
        .prop_map(|(bps, limit)| LinkFacts { rate: Rate::from_bps(bps), limit })
}

/// All that the observer reported of packets, in order.
#[derive(Debug, Default, PartialEq)]
struct Told {
    dropped: Vec<(u64, DropReason)>,
    marked: Vec<u64>,
    sent: Vec<(u64, u32, Ecn)>,
    taken_out: Vec<(u64, u32)>,
}

impl PacketObserver<TestPacket> for Told {
    fn dropped(&mut self, packet: TestPacket, reason: DropReason, _: Instant) {
        self.dropped.push((packet.number, reason));
    }
    fn marked(&mut self, packet: &TestPacket, _: Instant) {
        self.marked.push(packet.number);
    }
}

/// A discipline with its clock, its random numbers and its observer.
struct World {
    queue: AnyQdisc<TestPacket>,
    link: LinkFacts,
    rng: Rng,
    now: Instant,
    arrived: u64,
    /// The flow of each packet that arrived.
    flows: Vec<u32>,
    told: Told,
}

impl World {
    fn new(config: &AnyConfig, link: LinkFacts) -> Self {
        config.validate().expect("the configuration is valid");
        let rng = Streams::new(1).get("property");
        Self {
            queue: config.build(&link),
            link,
            rng,
            now: Instant::ZERO,
            arrived: 0,
            flows: Vec::new(),
            told: Told::default(),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Wait(ns) => self.wait(Span::from_nanos(*ns))?,
            Step::Arrive { size, ecn, segment } => self.arrive(*size, *ecn, *segment)?,
            Step::Depart => self.depart()?,
            Step::Inbound(segment) => self.inbound(*segment)?,
            Step::TakeOut(flow) => self.take_out(*flow)?,
            Step::Tell(fact) => self.tell(fact),
        }
        self.check()
    }

    /// Lets time pass and fires timers, each at its time. Fails if timers fire without end.
    fn wait(&mut self, span: Span) -> Result<(), TestCaseError> {
        let until = self.now + span;
        let mut calls_now = 0;
        while let Some(due) = self.queue.next_wakeup().filter(|due| *due <= until) {
            calls_now = if due > self.now { 0 } else { calls_now + 1 };
            prop_assert!(calls_now < 1000, "it asks for ever to be woken at {} ns", self.now.as_nanos());
            self.now = self.now.max(due);
            self.queue.on_wakeup(self.now);
        }
        self.now = until;
        Ok(())
    }

    fn arrive(&mut self, size: u64, ecn: u8, mut segment: PlainSegment) -> Result<(), TestCaseError> {
        if self.queue.sees_segments() {
            self.queue.outbound(&mut segment, self.now);
        }
        // All packets of a flow are either L4S or classic: DualPI2 has a queue for each kind, and order holds within a
        // queue.
        let ecn = Ecn::from_bits(ecn & 2 | segment.flow.0 as u8 & 1);
        let packet = TestPacket { number: self.arrived, size: Bytes::new(size), ecn, segment };
        let before = self.told.dropped.len();
        self.arrived += 1;
        self.flows.push(segment.flow.0);
        let answer = self.queue.enqueue(packet, self.now, &mut self.rng, &mut self.told);
        if let Enqueued::Dropped(reason) = answer {
            let told = &self.told.dropped[before..];
            prop_assert!(told.contains(&(self.arrived - 1, reason)), "a drop was answered but not told");
        }
        Ok(())
    }

    fn depart(&mut self) -> Result<(), TestCaseError> {
        if let Some(packet) = self.queue.dequeue(self.now, &mut self.rng, &mut self.told) {
            self.told.sent.push((packet.number, packet.segment.flow.0, packet.ecn));
        }
        Ok(())
    }

    /// Reports a fact. The class of a flow is set only while none of its packets waits, because they might be
    /// reordered.
    fn tell(&mut self, fact: &Fact) {
        if !matches!(fact, Fact::Class { flow, .. } if self.waits(flow.0)) {
            self.queue.on_fact(fact, self.now);
        }
    }

    /// True if packets of the flow are in the queue.
    fn waits(&self, flow: u32) -> bool {
        let gone = |number: &u64| {
            self.told.sent.iter().any(|sent| sent.0 == *number)
                || self.told.dropped.iter().any(|dropped| dropped.0 == *number)
                || self.told.taken_out.iter().any(|taken| taken.0 == *number)
        };
        (0..self.arrived).filter(|number| self.flows[*number as usize] == flow).any(|number| !gone(&number))
    }

    /// Takes a flow with all of its packets out of the discipline, as when it moves to another path; it may have none.
    fn take_out(&mut self, flow: u32) -> Result<(), TestCaseError> {
        let (mut taken, before) = (Vec::new(), self.queue.backlog().packets);
        self.queue.take_out(FlowId(flow), &mut taken);
        prop_assert!(taken.iter().all(|packet| packet.segment.flow.0 == flow), "others were taken out");
        prop_assert_eq!(self.queue.backlog().packets + taken.len() as u64, before);
        prop_assert!(taken.is_empty() || self.queue.gives_up());
        self.told.taken_out.extend(taken.iter().map(|packet| (packet.number, flow)));
        Ok(())
    }

    /// An element may reduce the window of an incoming segment, and must not change anything else.
    fn inbound(&mut self, before: PlainSegment) -> Result<(), TestCaseError> {
        if self.queue.sees_segments() {
            let mut after = before;
            self.queue.inbound(&mut after, self.now);
            prop_assert!(after.window <= before.window, "a window was raised");
            prop_assert_eq!(PlainSegment { window: before.window, ..after }, before);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let (backlog, stats) = (self.queue.backlog(), self.queue.stats());
        stats.check(backlog).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let told = (self.arrived, self.told.sent.len(), self.told.marked.len(), self.told.dropped.len());
        let dropped = stats.dropped_by_aqm() + stats.dropped_overflow.packets;
        let counted =
            (stats.arrived.packets, stats.sent.packets as usize, stats.marked.packets as usize, dropped as usize);
        prop_assert_eq!(counted, told, "arrived, sent, marked, dropped: counted and told");
        match self.link.limit {
            Limit::Packets(n) => prop_assert!(backlog.packets <= n, "{} packets, limit {n}", backlog.packets),
            Limit::Bytes(n) => prop_assert!(backlog.bytes <= n.get(), "{} bytes, limit {n}", backlog.bytes),
        }
        Ok(())
    }

    /// No packet is sent or dropped twice, and the packets of a flow leave in the order of their arrival.
    fn check_end(&self) -> Result<(), TestCaseError> {
        let mut ended: Vec<u64> = self.told.sent.iter().map(|sent| sent.0).collect();
        ended.extend(self.told.dropped.iter().map(|dropped| dropped.0));
        ended.extend(self.told.taken_out.iter().map(|taken| taken.0));
        let all = ended.len();
        ended.sort_unstable();
        ended.dedup();
        prop_assert_eq!(ended.len(), all, "a packet ended twice");
        for flow in 0..6 {
            let of_flow = self.told.sent.iter().filter(|sent| sent.1 == flow).map(|sent| sent.0);
            prop_assert!(of_flow.is_sorted(), "flow {} was reordered", flow);
            let taken = self.told.taken_out.iter().filter(|taken| taken.1 == flow).map(|taken| taken.0);
            prop_assert!(taken.is_sorted(), "flow {} was reordered", flow);
        }
        Ok(())
    }
}

/// The default configuration, configurations with `ecn`, `compat`, QRM behind and a shaper where such parameters exist, and
/// flow queueing with every AQM that may judge a single flow.
fn configurations(name: &str) -> Vec<AnyConfig> {
    let read = |parameters| AnyConfig::deserialize(name, parameters).and_then(Result::ok);
    let mut all = vec![AnyConfig::default_of(name).expect("every name has a default")];
    all.extend(read(serde_json::json!({ "ecn": true })));
    all.extend(read(serde_json::json!({ "compat": "linux" })));
    all.extend(read(serde_json::json!({ "compat": "linux", "ecn": true })));
    all.extend(read(serde_json::json!({ "queue": "qrm" })));
    all.extend(read(serde_json::json!({ "rates": "estimated" })));
    let shaper = serde_json::json!({ "bandwidth": "2Mbit/s", "ack_filter": "aggressive", "ingress": true });
    all.extend(read(shaper));
    for aqm in AnyAqmConfig::NAMES {
        all.extend(read(serde_json::json!({ "per_flow": aqm, "flows": 4 })).filter(|config| config.validate().is_ok()));
    }
    all
}

#[test]
fn every_aqm_that_sees_no_acks_may_judge_one_flow() {
    let per_flow = configurations("fq").len();
    let refused = ["green", "qrm"].len();
    // The default, the one with `compat`, and one for each AQM except those refused.
    assert_eq!(per_flow, 2 + AnyAqmConfig::NAMES.len() - refused);
}

/// Runs the steps and returns what happened to the packets.
fn live(config: &AnyConfig, link: LinkFacts, life: &[Step]) -> Result<Told, TestCaseError> {
    let mut world = World::new(config, link);
    for step in life {
        world.step(step)?;
    }
    world.check_end()?;
    Ok(world.told)
}

proptest! {
    #[test]
    fn conserves_packets_keeps_its_limit_and_its_order(link in links(), life in steps()) {
        for name in NAMES {
            for config in configurations(name) {
                live(&config, link, &life).map_err(|e| TestCaseError::fail(format!("{name}: {e}")))?;
            }
        }
    }

    #[test]
    fn does_the_same_again(link in links(), life in steps()) {
        for name in NAMES {
            for config in configurations(name) {
                prop_assert_eq!(live(&config, link, &life)?, live(&config, link, &life)?, "{}", name);
            }
        }
    }
}

/// A standing queue makes each AQM act. Ten flows send packets of 1500 B at twice the rate of the link for ten seconds,
/// without handshakes.
#[test]
fn every_aqm_signals_when_a_queue_stands() {
    let link = LinkFacts { rate: Rate::from_bps(12_000_000), limit: Limit::Packets(1000) };
    for name in [
        "red",
        "ared",
        "feng-red",
        "nonlinear-red",
        "an-aqm",
        "red-ern",
        "codel",
        "green",
        "pi",
        "rem",
        "avq",
        "blue",
        "sfb",
        "choke",
        "modified-codel",
        "cobalt",
        "pie",
        "minstrel-pie",
        "fq-codel",
        "fq-cobalt",
        "fq-pie",
        "fq-minstrel-pie",
        "cake",
    ] {
        for config in configurations(name) {
            let mut world = World::new(&config, link);
            for tick in 0..20_000u32 {
                let segment = PlainSegment { window: 0, ..PlainSegment::new(FlowId(tick % 10), TcpFlags::ACK) };
                world.step(&Step::Arrive { size: 1500, ecn: 2, segment }).unwrap();
                if tick % 2 == 0 {
                    world.step(&Step::Depart).unwrap();
                }
                world.step(&Step::Wait(500_000)).unwrap();
            }
            let stats = world.queue.stats();
            let signals = stats.dropped_by_aqm() + stats.marked.packets;
            assert!(signals > 0, "{name} with {config:?} never signalled");
        }
    }
}
