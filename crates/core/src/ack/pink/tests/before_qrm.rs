//! PINK before QRM: windows are those of budgets. 10 Mbit/s, 104 ms, c = 0.95, literal windows: a whole link is 123,500
//! B.

use super::super::flow::after;
use super::*;
use crate::ack::gate::Gate as Before;
use crate::config::{Discipline, LinkFacts};
use crate::packet::NodeId;
use crate::qdisc::Qdisc;
use crate::rng::{Rng, Streams};
use crate::units::Limit;

struct Bench {
    gate: Before<Pink, Queue<Seg>>,
    rng: Rng,
    now: Instant,
}

impl Bench {
    /// Flow i is of node `owners[i]`.
    fn new(edit: impl FnOnce(&mut Config), owners: &[u32]) -> Self {
        let mut config = Config { queue: Behind::Qrm, window: Window::Literal, ..paper() };
        edit(&mut config);
        let link = LinkFacts { rate: LINK, limit: Limit::Packets(1000) };
        let mut gate: Before<Pink, Queue<Seg>> = config.build(&link);
        (0..).zip(owners).for_each(|(flow, node)| {
            gate.on_fact(&Fact::Owner { flow: FlowId(flow), node: NodeId(*node) }, Instant::ZERO)
        });
        Self { gate, rng: Streams::new(1).get("t"), now: Instant::ZERO }
    }

    fn tcp(&mut self, mut segment: Seg) {
        self.gate.outbound(&mut segment, self.now);
        self.udp(segment);
    }

    /// A packet that PINK is not shown as a segment.
    fn udp(&mut self, packet: Seg) {
        let _ = self.gate.enqueue(packet, self.now, &mut self.rng, &mut ());
        while self.gate.dequeue(self.now, &mut self.rng, &mut ()).is_some() {}
    }

    fn back(&mut self, mut segment: Seg) -> u16 {
        self.gate.inbound(&mut segment, self.now);
        self.gate.element().stats().check().unwrap();
        segment.window
    }

    /// Each opens, sends a segment and has it acknowledged.
    fn open(&mut self, flows: &[u32]) {
        flows.iter().for_each(|f| self.tcp(Seg::syn(*f, None)));
        self.now += WAN;
        for f in flows {
            self.back(Seg::syn_ack(*f, None));
        }
        self.now += LAN;
        flows.iter().for_each(|f| self.tcp(Seg::data(*f, ISN + 1, 1000)));
        self.now += WAN;
        for f in flows {
            self.back(Seg::ack(*f, ISN + 1001, 65_535));
        }
    }

    /// The window of another ACK.
    fn window(&mut self, flow: u32) -> u16 {
        self.back(Seg::ack(flow, ISN + 1001, 65_535))
    }
}

/// Plays a round in which a flow sends `says(flow)` of its window in segments of 1000 B, or 100 B if that is `None`, and all of
/// it is acknowledged.
fn play(bench: &mut Bench, sent: &mut [u32], says: impl Fn(usize) -> Option<f64>) {
    for (flow, sent) in sent.iter_mut().enumerate() {
        let Some(part) = says(flow) else {
            bench.tcp(Seg::data(flow as u32, *sent, 100));
            *sent += 100;
            continue;
        };
        let state = &bench.gate.element().flows[flow];
        let window = (f64::from(state.edge.wrapping_sub(state.acked)) * part) as u32;
        let edge = state.acked.wrapping_add(window);
        while !after(sent.wrapping_add(1000), edge) {
            bench.tcp(Seg::data(flow as u32, *sent, 1000));
            *sent += 1000;
        }
    }
    bench.now += WAN;
    for (flow, sent) in sent.iter().enumerate() {
        bench.back(Seg::ack(flow as u32, *sent, 65_535));
    }
    bench.now += LAN;
}

/// Plays sixty rounds; returns the smallest window of flow 0 after the first twenty.
fn least_window(bench: &mut Bench, flows: usize, says: impl Fn(usize, u64) -> Option<f64>) -> u64 {
    let mut sent = vec![ISN + 1001; flows];
    let mut least = u64::MAX;
    for round in 0..60 {
        play(bench, &mut sent, |flow| says(flow, round));
        if round >= 20 {
            least = least.min(bench.gate.element().flows[0].held().unwrap());
        }
    }
    least
}

/// Two flows and a node that floods are three nodes for QRM. PINK counts two flows; each of them would get half of the
/// link, of which QRM takes a third: 123,500 / 3.
#[test]
fn a_node_without_tcp_has_its_part_too() {
    let mut bench = Bench::new(|c| c.shrink = Shrink::Immediate, &[0, 1, 2]);
    bench.open(&[0, 1]);
    assert_eq!(bench.window(0), 61_750, "123,500 / 2");
    bench.udp(Seg::data(2, 1, 1000));
    assert_eq!((bench.window(0), bench.window(1)), (41_166, 41_166));
    assert_eq!(bench.gate.element().active(), 2);
    // After 10 s without a packet QRM does not count it any more.
    bench.now += Span::from_secs(9);
    bench.tcp(Seg::data(0, ISN + 1001, 1000));
    bench.tcp(Seg::data(1, ISN + 1001, 1000));
    bench.now += Span::from_millis(1100);
    bench.tcp(Seg::data(0, ISN + 2001, 1000));
    bench.now += WAN;
    assert_eq!(bench.back(Seg::ack(0, ISN + 3001, 65_535)), 61_750);
}

/// The third node's number becomes another's, which has sent nothing yet.
#[test]
fn a_node_that_is_gone_has_no_part() {
    let mut bench = Bench::new(|c| c.shrink = Shrink::Immediate, &[0, 1, 2]);
    bench.open(&[0, 1]);
    bench.udp(Seg::data(2, 1, 1000));
    assert_eq!(bench.window(0), 41_166);
    bench.gate.on_fact(&Fact::Gone(NodeId(2)), Instant::ZERO);
    bench.gate.on_fact(&Fact::Owner { flow: FlowId(2), node: NodeId(2) }, Instant::ZERO);
    assert_eq!((bench.window(0), bench.window(1)), (61_750, 61_750));
}

/// QRM has no other limit than PINK here: two nodes, half of the link each. One has three flows, whose windows are a
/// sixth of the link each, and not a quarter as for four flows of equal right.
#[test]
fn flows_of_a_node_share_its_budget() {
    let mut bench = Bench::new(|c| c.shrink = Shrink::Immediate, &[0, 0, 0, 1]);
    bench.open(&[0, 1, 2, 3]);
    assert_eq!([0, 1, 2].map(|f| bench.window(f)), [20_583; 3], "123,500 / 6");
    // What the three leave, 61,750 of 123,500, is the fourth's: its level rises to its budget.
    let window = bench.window(3);
    assert!((61_740..=61_750).contains(&window), "{window}");
    // One of the three ends: the two others have a quarter each.
    bench.tcp(Seg::data(2, ISN + 1001, 0).with(TcpFlags::FIN));
    bench.now += WAN;
    bench.back(Seg::ack(2, ISN + 1002, 65_535));
    assert_eq!([0, 1].map(|f| bench.window(f)), [30_875; 2], "123,500 / 4");
}

/// With the default as well: two nodes, one with eight flows that fill their windows of a sixteenth of the link. They
/// leave the other node's flow nothing of their node's part, but what is beyond it: half of the link.
#[test]
fn flows_that_the_budget_of_their_node_holds_back_leave_the_rest_to_others() {
    let mut owners = [0; 9];
    owners[8] = 1;
    let edit = |c: &mut Config| (c.shrink, c.reallocation) = (Shrink::Immediate, Reallocation::Demand);
    let mut bench = Bench::new(edit, &owners);
    let flows: Vec<u32> = (0..9).collect();
    bench.open(&flows);
    let mut sent = [ISN + 1001; 9];
    (0..8).for_each(|_| play(&mut bench, &mut sent, |_| Some(1.0)));
    let pink = bench.gate.element();
    assert!(pink.flows[..8].iter().all(|flow| flow.has(LACKING)), "{:?}", pink.stats());
    let window = pink.flows[8].held().unwrap();
    assert!(window > 55_000, "{window} of 61,750; by flows it would be 13,722");
    assert!(pink.flows[..8].iter().all(|flow| flow.held().unwrap() >= 7000), "123,500 / 16 = 7718");
}

/// Two nodes with half of the link each. One has a flow that fills its windows and nine that say a little now and then, as the
/// applications of a phone do: the one flow has what they leave of the half.
#[test]
fn idle_flows_take_nothing_from_their_node() {
    let mut owners = [0; 11];
    owners[10] = 1;
    let edit = |c: &mut Config| (c.shrink, c.reallocation) = (Shrink::Immediate, Reallocation::Demand);
    let mut bench = Bench::new(edit, &owners);
    bench.open(&(0..11).collect::<Vec<u32>>());
    let least = least_window(&mut bench, 11, |flow, round| match flow {
        1..10 if round % 10 == flow as u64 => None,
        1..10 => Some(0.0),
        _ => Some(1.0),
    });
    let other = bench.gate.element().flows[10].held().unwrap();
    assert!(least > 58_000 && other > 55_000, "{least} and {other} of 61,750; a tenth of the half would be 6175");
}

/// A gateway tells budgets: 2 Mbit/s of 10 are a fifth of 123,500, and the others have what that leaves.
#[test]
fn told_budgets_are_windows() {
    let mut bench = Bench::new(|c| c.shrink = Shrink::Immediate, &[0, 1]);
    bench.gate.on_fact(&Fact::Budget { node: NodeId(0), budget: Some(Rate::from_bps(2_000_000)) }, Instant::ZERO);
    bench.gate.on_fact(&Fact::Budget { node: NodeId(1), budget: Some(Rate::from_bps(8_000_000)) }, Instant::ZERO);
    bench.open(&[0, 1]);
    assert_eq!(bench.window(0), 24_700);
    let window = bench.window(1);
    assert_eq!(u64::from(window).min(98_800), 65_535, "more than the field can say without a scale");
}

/// The flow of a node with 2 of 10 Mbit/s sends half of its window in some rounds, as one does whose sender paces, or
/// whose ACKs are late. What it left would be for nobody, so its windows stay those of the budget, 24,700 B. As one that
/// cannot use more it had 4000, beside the eight idle flows of another node.
#[test]
fn a_flow_that_is_alone_with_a_budget_keeps_it() {
    let edit = |c: &mut Config| (c.reallocation, c.window) = (Reallocation::Demand, Window::Steady);
    let mut owners = [1; 9];
    owners[0] = 0;
    let mut bench = Bench::new(edit, &owners);
    for (node, bps) in [(0, 2_000_000), (1, 8_000_000)] {
        let budget = Some(Rate::from_bps(bps));
        bench.gate.on_fact(&Fact::Budget { node: NodeId(node), budget }, Instant::ZERO);
    }
    bench.open(&(0..9).collect::<Vec<u32>>());
    let halves = |flow: usize, round: u64| (flow == 0).then_some(if round % 7 < 2 { 0.5 } else { 1.0 });
    let least = least_window(&mut bench, 9, halves);
    assert!(least >= 23_000, "{least}");
}

/// A node has 7 of 10 Mbit/s and one flow, another has 1 and four flows, each of which sends little in some rounds and
/// fills its windows in others. When it does so again it claims no more of the link than it did: the window of the first
/// stays that of its budget, 86,450 B. It fell to 26,000 when those counted as if they could use all of the link.
#[test]
fn who_can_use_more_of_a_budget_again_takes_nothing_from_other_nodes() {
    let edit = |c: &mut Config| (c.reallocation, c.window) = (Reallocation::Demand, Window::Steady);
    let mut bench = Bench::new(edit, &[0, 1, 1, 1, 1]);
    for (node, bps) in [(0, 7_000_000), (1, 1_000_000)] {
        let budget = Some(Rate::from_bps(bps));
        bench.gate.on_fact(&Fact::Budget { node: NodeId(node), budget }, Instant::ZERO);
    }
    bench.open(&[0, 1, 2, 3, 4]);
    let least = least_window(&mut bench, 5, |flow, round| (flow == 0 || round % 4 < 2).then_some(1.0));
    assert!(least >= 64_000, "{least}: the receiver's window is 65,535");
}

/// If no owners are told, or the discipline is not QRM, windows follow eq. 1.
#[test]
fn without_nodes_each_flow_is_one() {
    let mut bench = Bench::new(|c| c.shrink = Shrink::Immediate, &[]);
    bench.open(&[0, 1, 2, 3]);
    assert_eq!([0, 1, 2, 3].map(|f| bench.window(f)), [30_875; 4]);
    let mut fifo = Bench::new(|c| (c.shrink, c.queue) = (Shrink::Immediate, Behind::Fifo), &[0, 0, 0, 1]);
    fifo.open(&[0, 1, 2, 3]);
    fifo.udp(Seg::data(7, 1, 1000));
    assert_eq!([0, 1, 2, 3].map(|f| fifo.window(f)), [30_875; 4]);
}

/// Three nodes begin to flood: the budget falls to a quarter, 30,875. The right edge does not move left.
#[test]
fn a_smaller_budget_takes_effect_as_acks_advance() {
    let mut bench = Bench::new(|_| {}, &[0, 1, 2, 3]);
    bench.open(&[0]);
    assert_eq!(bench.window(0), 65_535);
    (1..4).for_each(|node| bench.udp(Seg::data(node, 1, 1000)));
    assert_eq!(bench.window(0), 65_535, "nothing new is acknowledged");
    let mut window = 0;
    for k in 1..=4 {
        bench.tcp(Seg::data(0, ISN + 1001 + 10_000 * (k - 1), 10_000));
        bench.now += WAN;
        window = bench.back(Seg::ack(0, ISN + 1001 + 10_000 * k, 65_535));
        assert_eq!(window, (65_535 - 10_000 * k as u16).max(30_875), "after {k}");
    }
    assert_eq!(window, 30_875);
}

/// For any order of facts and segments, the number of flows of a node is that of its sending flows.
#[test]
fn the_flows_of_a_node_are_counted_as_they_come_and_go() {
    let mut rng = Streams::new(3).get("steps");
    for reallocation in [Reallocation::Paper, Reallocation::MaxMin, Reallocation::Demand] {
        let mut owners = [0, 0, 1, 1, 2, 2];
        let mut bench = Bench::new(|c| c.reallocation = reallocation, &owners);
        let mut most = 0;
        for _ in 0..5000 {
            let flow = rng.below(6) as u32;
            match rng.below(8) {
                0 => bench.tcp(Seg::syn(flow, None)),
                1 => _ = bench.back(Seg::syn_ack(flow, None)),
                2 => bench.tcp(Seg::data(flow, ISN + 1, 0).with(TcpFlags::RST)),
                3 => bench.now += Span::from_secs(rng.below(30)),
                4 => {
                    owners[flow as usize] = rng.below(3) as u32;
                    bench.gate.on_fact(
                        &Fact::Owner { flow: FlowId(flow), node: NodeId(owners[flow as usize]) },
                        Instant::ZERO,
                    );
                }
                _ => bench.tcp(Seg::data(flow, ISN + 1, 1000)),
            }
            let pink = bench.gate.element();
            for (id, flow) in pink.flows.iter().enumerate() {
                let of_node = |other: &usize| owners[*other] == owners[id] && pink.flows[*other].sends();
                let count = (0..pink.flows.len()).filter(of_node).count() as u64;
                let demands = reallocation == Reallocation::Demand;
                let lacks = |other: &usize| demands && *other != id && of_node(other) && pink.wants_less(*other);
                let claims = (0..pink.flows.len()).filter(lacks).map(|other| u64::from(pink.flows[other].claim));
                let (lacking, claims) = claims.fold((0, 0), |(n, sum), claim| (n + 1, sum + claim));
                let (all, budget) = (count + u64::from(!flow.sends()), 1_000_000_000);
                let (rate, good) = crate::allocation::rest(budget, all, lacking, claims * MILLI);
                assert_eq!(pink.owners.sharing(id, flow.sends(), budget), (rate, good.max(1)));
                most = most.max(count);
            }
        }
        assert!(most >= 4, "{most}");
    }
}
