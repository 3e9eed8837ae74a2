//! Throughput advice at a network element: which rate a flow of QUIC is told by SCONE, and how often.
//!
//! Source: draft-ietf-scone-protocol, sections "Monitoring Period", "Applying Throughput Advice Signals", "Fake SCONE
//! Packets" and "Damage to Other Protocols". The packets are those of [`scone`](crate::wire::scone).
//!
//! A flow that sends SCONE packets is a member of the same allocation as the flows that a discipline divides its rate
//! among, so its advice is what one of them would have:
//!
//! ```text
//! level  = (rate - claims) / good                     allocation::Members::level, with the members of both
//! advice = the highest signal that is not above it    never above what the packet says already
//! ```
//!
//! | discipline | rate and members beside the flows with advice |
//! |---|---|
//! | PINK | what it shares out, and the flows of TCP that count ([`AckPath::shares`]); it is told of those with advice |
//! | QRM, a tree of subscribers | what the flow's node can have ([`AckPath::budget_of`]), divided among its flows with advice |
//! | PINK before QRM | the smaller of both |
//! | any other | the rate of the link, nobody |
//!
//! A flow claims an eighth more than it used in the last second, and lacks (leaves the rest to others) if that is less than
//! its level and than three quarters of the lowest advice that it had in a period: a flow that its advice holds back could use
//! more. So a flow that is idle, or a forged one, takes nothing from anybody.
//!
//! A flow gets at most [`FEW`] signals in a monitoring period, and one more when its advice has changed, at most one in
//! a second. At most [`MOST_FLOWS`] flows are known and [`MOST_PACKETS`] packets are read in a second: what is beyond
//! them keeps its signal.
//!
//! Cost: a search in at most [`MOST_FLOWS`] flows for each packet, and no allocation after the start.

use crate::ack_path::AckPath;
use crate::allocation::Members;
use crate::packet::{FlowId, NodeId};
use crate::units::{Bytes, Instant, Rate, Span};
use crate::wire::scone::Signal;
use serde::Serialize;

/// The monitoring period: for so long advice holds.
pub const PERIOD: Span = Span::from_secs(67);
/// A flow gets so many signals in a monitoring period, if its advice does not change.
pub const FEW: u8 = 6;
/// Number of flows that are known at a time.
pub const MOST_FLOWS: usize = 512;
/// Number of SCONE packets that are read in a second.
pub const MOST_PACKETS: u32 = 1000;
/// How often it is found out what flows use, and the shortest time between two changes of a signal.
const TICK: Span = Span::from_secs(1);
/// Claims below this rate, in bits per second, are none.
const LEAST_CLAIM: u64 = 1000;

/// The counters of advice in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct AdviceStats {
    /// SCONE packets that came.
    pub seen: u64,
    /// Those whose signal was lowered.
    pub lowered: u64,
    /// Those whose signal was as low already.
    pub kept: u64,
    /// Those that were left alone because their flow has had its signals, or because there are too many of them.
    pub spared: u64,
    /// Flows that are known now.
    pub flows: u64,
    /// Those of them that use their part now.
    pub busy: u64,
}

/// A flow that has sent a SCONE packet in the last monitoring period.
#[derive(Debug, Clone, Copy)]
struct Known {
    flow: FlowId,
    node: NodeId,
    /// When its last SCONE packet came.
    seen: Instant,
    /// When the monitoring period began in which it had `signals`.
    begun: Instant,
    signals: u8,
    /// Its last signal, and when it got it.
    told: Option<(Signal, Instant)>,
    /// The lowest signal of a monitoring period, to which it keeps, and when it got it last.
    lowest: Option<(Signal, Instant)>,
    /// What it sent since the last tick.
    sent: Bytes,
    /// Bits per second that it can use.
    claim: u64,
    lacks: bool,
}

impl Known {
    fn new(flow: FlowId, node: NodeId, now: Instant) -> Self {
        Self {
            flow,
            node,
            seen: now,
            begun: now,
            signals: 0,
            told: None,
            lowest: None,
            sent: Bytes::ZERO,
            claim: 0,
            lacks: true,
        }
    }

    /// Returns whether it may get this signal now, and counts it.
    fn may_have(&mut self, signal: Signal, now: Instant) -> bool {
        if now.since(self.begun) >= PERIOD {
            (self.begun, self.signals) = (now, 0);
        }
        let news = self.told.is_none_or(|(told, at)| told != signal && now.since(at) >= TICK);
        let may = news || self.signals < FEW;
        if may {
            self.signals = self.signals.saturating_add(1);
            self.told = Some((signal, now));
            if self.lowest.is_none_or(|(lowest, at)| signal <= lowest || now.since(at) >= PERIOD) {
                self.lowest = self.told;
            }
        }
        may
    }

    fn member(&self) -> Members {
        let (lacking, claims) = if self.lacks { (1, self.claim) } else { (0, 0) };
        Members { n: 1, lacking, claims }
    }

    /// Takes what was sent in `span`; `level` are the bits per second that it could have.
    fn settle(&mut self, level: u64, span: Span) {
        let held = self.lowest.and_then(|(signal, _)| signal.rate()).map_or(u64::MAX, |rate| rate.as_bps() / 4 * 3);
        let level = level.min(held);
        let nanos = u128::from(span.as_nanos().max(1));
        let used = (u128::from(self.sent.get()) * 9_000_000_000 / nanos) as u64; // 8 bits, and an eighth more
        self.sent = Bytes::ZERO;
        self.lacks = used < level;
        // Applications send in bursts, so a claim falls slowly.
        self.claim = used.max(self.claim - self.claim / 4);
        if self.claim < LEAST_CLAIM {
            self.claim = 0;
        }
        self.lacks &= self.claim < level;
    }
}

/// Gives advice to the flows of one direction.
#[derive(Debug, Clone)]
pub struct Advisor {
    /// In the order of their numbers.
    flows: Vec<Known>,
    /// The sums of all flows.
    members: Members,
    /// What the discipline was told last.
    told: Members,
    ticked: Instant,
    /// SCONE packets read since the last tick.
    read: u32,
    stats: AdviceStats,
}

impl Default for Advisor {
    fn default() -> Self {
        Self::new()
    }
}

impl Advisor {
    /// Creates one that has seen no packet.
    pub fn new() -> Self {
        Self {
            flows: Vec::with_capacity(MOST_FLOWS),
            members: Members::default(),
            told: Members::default(),
            ticked: Instant::ZERO,
            read: 0,
            stats: AdviceStats::default(),
        }
    }

    /// Returns the counters.
    pub fn stats(&self) -> AdviceStats {
        let Members { n, lacking, .. } = self.members;
        AdviceStats { flows: n, busy: n - lacking, ..self.stats }
    }

    /// Counts a packet towards what its flow uses.
    #[inline]
    pub fn count(&mut self, flow: FlowId, size: Bytes) {
        if let Ok(at) = self.place(flow) {
            self.flows[at].sent += size;
        }
    }

    /// A SCONE packet of a flow has come with the signal `is`. Returns the signal to which it is to be lowered; `None` if it
    /// stays. `link` is the rate of the link, `queue` the discipline before it.
    pub fn advise(
        &mut self,
        (flow, node): (FlowId, NodeId),
        is: Signal,
        link: Rate,
        queue: &impl AckPath,
        now: Instant,
    ) -> Option<Signal> {
        self.stats.seen += 1;
        self.read = self.read.saturating_add(1);
        let place = if self.read > MOST_PACKETS { None } else { self.learn(flow, node, now) };
        let Some(at) = place else {
            self.stats.spared += 1;
            return None;
        };
        let signal = Signal::of(Rate::from_bps(self.level(&self.flows[at], link, queue)));
        if is <= signal {
            self.stats.kept += 1;
            return None;
        }
        if !self.flows[at].may_have(signal, now) {
            self.stats.spared += 1;
            return None;
        }
        self.stats.lowered += 1;
        Some(signal)
    }

    /// Finds out once a second what flows use. Returns the members of which the discipline is to be told
    /// ([`Fact::Advised`](crate::fact::Fact::Advised)), if they are others than before.
    pub fn tick(&mut self, link: Rate, queue: &impl AckPath, now: Instant) -> Option<Members> {
        let span = now.since(self.ticked);
        if span < TICK {
            return None;
        }
        (self.ticked, self.read) = (now, 0);
        self.flows.retain(|known| now.since(known.seen) < PERIOD);
        self.sum();
        for at in 0..self.flows.len() {
            let known = self.flows[at];
            let level = if known.sent == Bytes::ZERO { u64::MAX } else { self.level(&known, link, queue) };
            self.flows[at].settle(level, span);
        }
        self.sum();
        let told = std::mem::replace(&mut self.told, self.members);
        (told != self.told).then_some(self.told)
    }

    fn sum(&mut self) {
        self.members = self.flows.iter().fold(Members::default(), |all, known| all.and(known.member()));
    }

    fn place(&self, flow: FlowId) -> Result<usize, usize> {
        self.flows.binary_search_by_key(&flow, |known| known.flow)
    }

    /// Returns the place of a flow, which gets one if it has none; `None` if all places are of flows that use something.
    fn learn(&mut self, flow: FlowId, node: NodeId, now: Instant) -> Option<usize> {
        if let Ok(at) = self.place(flow) {
            (self.flows[at].seen, self.flows[at].node) = (now, node);
            return Some(at);
        }
        if self.flows.len() == MOST_FLOWS {
            let idle = self.flows.iter().enumerate().filter(|(_, known)| known.claim == 0 && known.sent == Bytes::ZERO);
            let (oldest, _) = idle.min_by_key(|(_, known)| known.seen)?;
            self.flows.remove(oldest);
        }
        let at = self.place(flow).unwrap_or_else(|at| at);
        self.flows.insert(at, Known::new(flow, node, now));
        self.sum();
        Some(at)
    }

    /// Returns the bits per second that a flow could have if it used them.
    fn level(&self, known: &Known, link: Rate, queue: &impl AckPath) -> u64 {
        let own = known.lacks.then_some(known.claim);
        let of_link = |rate: Rate, members: Members| members.and(self.members).level(rate.as_bps(), own);
        let of_node = |rate: Rate| {
            let same = self.flows.iter().filter(|other| other.node == known.node);
            same.fold(Members::default(), |all, other| all.and(other.member())).level(rate.as_bps(), own)
        };
        match (queue.shares(), queue.budget_of(known.flow)) {
            (Some((rate, members)), None) => of_link(rate, members),
            (Some((rate, members)), Some(budget)) => of_link(rate, members).min(of_node(budget)),
            (None, Some(budget)) => of_node(budget),
            (None, None) => of_link(link, Members::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LinkFacts;
    use crate::fact::Fact;
    use crate::packet::{TcpFlags, TcpView, Timestamps};
    use crate::qdisc::Qdisc;
    use crate::registry::{AnyConfig, AnyQdisc};
    use crate::settings::config_from_settings;
    use crate::testing::Numbered;
    use crate::units::Limit;

    const LINK: Rate = Rate::from_bps(10_000_000);
    const MS: u64 = 1_000_000;

    /// A discipline that divides nothing.
    struct Nothing;
    impl AckPath for Nothing {}

    /// One that gives each node so much.
    struct Budgets(u64);
    impl AckPath for Budgets {
        fn budget_of(&self, _: FlowId) -> Option<Rate> {
            Some(Rate::from_bps(self.0))
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * MS)
    }

    fn of(flow: u32) -> (FlowId, NodeId) {
        (FlowId(flow), NodeId(flow / 10))
    }

    fn rate(bps: u64) -> Option<Signal> {
        Some(Signal::of(Rate::from_bps(bps)))
    }

    /// Flows with the rates that they use, in bits per second, are known and have sent for ten seconds.
    fn known(rates: &[(u32, u64)], queue: &impl AckPath) -> Advisor {
        let mut advisor = Advisor::new();
        for (flow, _) in rates {
            advisor.advise(of(*flow), Signal::UNKNOWN, LINK, queue, at(0));
        }
        for second in 1..=10 {
            rates.iter().for_each(|(flow, bps)| advisor.count(FlowId(*flow), Bytes::new(bps / 8)));
            advisor.tick(LINK, queue, at(1000 * second));
        }
        advisor
    }

    #[test]
    fn a_flow_alone_has_the_link_and_a_second_one_that_sends_halves_it() {
        let mut advisor = known(&[(1, 10_000_000)], &Nothing);
        assert_eq!(advisor.advise(of(1), Signal::UNKNOWN, LINK, &Nothing, at(10_000)), rate(10_000_000));
        assert_eq!(advisor.advise(of(2), Signal::UNKNOWN, LINK, &Nothing, at(10_000)), rate(5_000_000));
        assert_eq!(advisor.stats(), AdviceStats { seen: 3, lowered: 3, flows: 2, busy: 1, ..AdviceStats::default() });
    }

    /// Who is idle takes nothing, who sends little only that and an eighth of it.
    #[test]
    fn what_flows_leave_is_for_others() {
        let mut advisor = known(&[(1, 8_000_000), (2, 1_000_000), (3, 0), (4, 0)], &Nothing);
        assert_eq!(advisor.advise(of(1), Signal::UNKNOWN, LINK, &Nothing, at(10_000)), rate(10_000_000 - 1_125_000));
        assert_eq!(
            advisor.advise(of(3), Signal::UNKNOWN, LINK, &Nothing, at(10_000)),
            rate((10_000_000 - 1_125_000) / 2)
        );
        assert_eq!(advisor.advise(of(9), Signal::new(30), LINK, &Nothing, at(10_000)), None, "3.2 Mbit/s are less");
        assert_eq!((advisor.stats().kept, advisor.stats().busy), (1, 1));
    }

    /// Two flows keep to 5 Mbit/s because they were told to. When the link has twice as much, each is told 10 and not 15, which
    /// is what the other leaves.
    #[test]
    fn a_flow_that_its_advice_holds_back_leaves_nothing() {
        let mut advisor = known(&[(1, 10_000_000), (2, 10_000_000)], &Nothing);
        for flow in [1, 2] {
            assert_eq!(advisor.advise(of(flow), Signal::UNKNOWN, LINK, &Nothing, at(10_500)), rate(5_000_000));
        }
        let double = Rate::from_bps(20_000_000);
        for second in 11..20 {
            [1, 2].into_iter().for_each(|flow| advisor.count(FlowId(flow), Bytes::new(4_400_000 / 8)));
            advisor.tick(double, &Nothing, at(1000 * second));
        }
        assert_eq!(advisor.stats().busy, 2);
        for flow in [1, 2] {
            assert_eq!(advisor.advise(of(flow), Signal::UNKNOWN, double, &Nothing, at(20_000)), rate(10_000_000));
        }
    }

    #[test]
    fn the_flows_of_a_node_share_its_budget() {
        let mut advisor = known(&[(1, 10_000_000), (2, 10_000_000), (11, 10_000_000)], &Budgets(4_000_000));
        for (flow, part) in [(1, 2_000_000), (2, 2_000_000), (11, 4_000_000)] {
            let told = advisor.advise(of(flow), Signal::UNKNOWN, LINK, &Budgets(4_000_000), at(11_000));
            assert_eq!(told, rate(part), "flow {flow}");
        }
    }

    /// Of many packets at once few are changed; of a change each flow hears at once, but not more than once in a second.
    #[test]
    fn a_flow_gets_few_signals_in_a_period() {
        let mut advisor = Advisor::new();
        let mut ask = |link: u64, ms| advisor.advise(of(1), Signal::UNKNOWN, Rate::from_bps(link), &Nothing, at(ms));
        let told = (0..60_000).step_by(100).filter(|ms| ask(10_000_000, *ms).is_some()).count();
        assert_eq!(told, usize::from(FEW));
        assert_eq!(ask(1_000_000, 60_100), rate(1_000_000));
        assert_eq!(ask(2_000_000, 60_200), None, "half a second later");
        assert_eq!(ask(2_000_000, 61_200), rate(2_000_000));
        assert_eq!(ask(2_000_000, 66_900), None);
        assert_eq!(ask(2_000_000, 67_000), rate(2_000_000), "another period");
    }

    /// Forged packets of any number of flows neither fill the table for others nor change what they get.
    #[test]
    fn a_flood_of_forged_packets_takes_nothing() {
        let mut advisor = known(&[(7_000_000, 10_000_000)], &Nothing);
        for forged in 0..100_000 {
            advisor.advise(of(forged), Signal::UNKNOWN, LINK, &Nothing, at(10_000 + u64::from(forged) / 100));
            advisor.tick(LINK, &Nothing, at(10_000 + u64::from(forged) / 100));
            advisor.count(FlowId(7_000_000), Bytes::new(1250));
        }
        let AdviceStats { flows, busy, seen, spared, .. } = advisor.stats();
        assert_eq!((flows, busy, seen), (MOST_FLOWS as u64, 1, 100_001));
        assert!(spared > 80_000, "at most {MOST_PACKETS} in a second are read: {spared}");
        let told = advisor.advise(of(7_000_000), Signal::UNKNOWN, LINK, &Nothing, at(20_900));
        assert_eq!(told, None, "the packets of this second are too many");
        advisor.tick(LINK, &Nothing, at(21_500));
        assert_eq!(advisor.advise(of(7_000_000), Signal::UNKNOWN, LINK, &Nothing, at(21_500)), rate(10_000_000));
        assert_eq!(advisor.flows.capacity(), MOST_FLOWS, "no place was added");
        let none = (0..5).fold(0, |_, n| {
            advisor.tick(LINK, &Nothing, at(90_000 + 1000 * n));
            advisor.stats().flows
        });
        assert_eq!(none, 0, "a period without a packet is the end");
    }

    /// A segment of a flow whose SYN was missed, which counts in n of PINK while it sends data.
    struct Data(FlowId);
    impl TcpView for Data {
        fn flow(&self) -> FlowId {
            self.0
        }
        fn flags(&self) -> TcpFlags {
            TcpFlags::ACK
        }
        fn seq(&self) -> u32 {
            1
        }
        fn ack(&self) -> u32 {
            1
        }
        fn payload_len(&self) -> u32 {
            1000
        }
        fn window(&self) -> u16 {
            1000
        }
        fn set_window(&mut self, _: u16) {}
        fn window_scale(&self) -> Option<u8> {
            None
        }
        fn mss(&self) -> Option<u16> {
            None
        }
        fn timestamps(&self) -> Option<Timestamps> {
            None
        }
    }

    fn built(config: &AnyConfig) -> AnyQdisc<Numbered> {
        config.build(&LinkFacts { rate: LINK, limit: Limit::Packets(100) })
    }

    /// Three flows of TCP and one of QUIC have a quarter each, and PINK hears that it has one member more.
    #[test]
    fn advice_is_a_part_of_what_pink_shares_out() {
        let mut pink = built(&config_from_settings("pink", &["queue=fq".into()]).unwrap());
        let send = |pink: &mut AnyQdisc<Numbered>| {
            (0..3).for_each(|flow| pink.outbound(&mut Data(FlowId(flow)), at(9_900)));
        };
        let mut advisor = known(&[(100, 10_000_000)], &pink);
        send(&mut pink);
        assert_eq!(pink.shares(), Some((LINK, Members { n: 3, lacking: 0, claims: 0 })));
        assert_eq!(advisor.advise(of(100), Signal::UNKNOWN, LINK, &pink, at(10_000)), rate(2_500_000));
        pink.on_fact(&Fact::Advised(Members { n: 1, lacking: 0, claims: 0 }), at(10_000));
        assert_eq!(pink.shares(), Some((LINK, Members { n: 3, lacking: 0, claims: 0 })), "only its own flows");
        assert_eq!(pink.report().unwrap()["active"], 3);
    }

    /// QRM without told budgets: a node is a flow that sends, and each has an even part.
    #[test]
    fn advice_is_the_part_that_qrm_accepts() {
        let mut qrm = built(&AnyConfig::default_of("qrm").unwrap());
        let mut rng = crate::rng::Streams::new(1).get("test");
        for number in 0..2 {
            qrm.enqueue(Numbered::new(number, FlowId(number as u32), Bytes::new(1000)), at(0), &mut rng, &mut ());
        }
        let mut advisor = Advisor::new();
        let mut ask = |flow, node| advisor.advise((FlowId(flow), NodeId(node)), Signal::UNKNOWN, LINK, &qrm, at(1));
        assert_eq!(ask(0, 0), rate(5_000_000));
        assert_eq!(ask(1, 1), rate(5_000_000));
    }
}
