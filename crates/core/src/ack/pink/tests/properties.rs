//! PINK's number of active flows and its windows, compared with a simple model on random sequences of segments. Each
//! sequence also runs as bytes of real packets. CI runs 256 sequences; `PROPTEST_CASES=1000000` runs more.

use super::super::census::GRAIN;
use super::*;
use crate::wire::RealPacket;
use crate::wire::tests::assert_checksums;
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    SynOut(u32),
    SynIn(u32),
    SynAckIn(u32),
    SynAckOut(u32),
    Data(u32, u32),
    Ack(u32, u32, u16),
    /// An acknowledgment of data which were never sent.
    WildAck(u32, u32),
    Fin(u32),
    FinAck(u32),
    /// Flow, outbound, forged.
    Rst(u32, bool, bool),
    Drop,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flow = || 0..4u32;
    let step = prop_oneof![
        2 => flow().prop_map(Step::SynOut),
        1 => flow().prop_map(Step::SynIn),
        3 => flow().prop_map(Step::SynAckIn),
        1 => flow().prop_map(Step::SynAckOut),
        6 => (flow(), 1..1500u32).prop_map(|(f, n)| Step::Data(f, n)),
        12 => (flow(), 0..5000u32, any::<u16>()).prop_map(|(f, n, w)| Step::Ack(f, n, w)),
        1 => (flow(), 1..5000u32).prop_map(|(f, n)| Step::WildAck(f, n)),
        1 => flow().prop_map(Step::Fin),
        1 => flow().prop_map(Step::FinAck),
        1 => (flow(), any::<bool>(), any::<bool>()).prop_map(|(f, out, forged)| Step::Rst(f, out, forged)),
        1 => Just(Step::Drop),
        3 => (1..2000u64).prop_map(Step::Wait),
        1 => (2000..70_000u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..200)
}

/// A naive model of whether a flow counts. Times are in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Plain {
    /// Seen at all; by its SYN; answered; over.
    seen: bool,
    known: bool,
    answered: bool,
    over: Option<u64>,
    from_inside: bool,
    isn: u32,
    sent_data: bool,
    fin: bool,
    /// Counts, or is waited for.
    here: bool,
    last: u64,
    /// Past the newest data, outbound and inbound.
    end: Option<u32>,
    far_end: Option<u32>,
}

fn advance(end: &mut Option<u32>, to: u32) {
    *end = Some(end.filter(|end| !after(to, *end)).unwrap_or(to));
}

/// Flows which follow the protocol, with their sequence numbers.
#[derive(Debug, Default)]
struct Model {
    flows: [Plain; 4],
    acked: [u32; 4],
    sent: [u32; 4],
    /// Connections so far, for a new ISN each.
    generation: [u32; 4],
    now: u64,
    sampled_until: Option<u64>,
}

impl Model {
    fn segment(&mut self, step: Step) -> Option<(Seg, bool)> {
        let isn = |m: &Self, f: u32| m.generation[f as usize] * 1_000_000;
        let syn = |m: &Self, f: u32| Seg { seq: isn(m, f), ..Seg::syn(f, Some(3)) };
        Some(match step {
            Step::SynOut(f) => (syn(self, f), true),
            Step::SynIn(f) => (syn(self, f), false),
            Step::SynAckIn(f) => (Seg { ack: self.acked[f as usize], ..Seg::syn_ack(f, Some(3)) }, false),
            Step::SynAckOut(f) => (Seg::syn_ack(f, Some(3)), true),
            Step::Data(f, n) => {
                let seq = self.sent[f as usize];
                self.sent[f as usize] = seq.wrapping_add(n);
                (Seg::data(f, seq, n), true)
            }
            Step::Ack(f, n, w) => {
                let i = f as usize;
                self.acked[i] = self.acked[i].wrapping_add(n.min(self.sent[i].wrapping_sub(self.acked[i])));
                (Seg::ack(f, self.acked[i], w), false)
            }
            Step::WildAck(f, n) => (Seg::ack(f, self.sent[f as usize].wrapping_add(n), 65_535), false),
            Step::Fin(f) => (Seg::data(f, self.sent[f as usize], 0).with(TcpFlags::FIN), true),
            Step::FinAck(f) => (Seg::ack(f, self.sent[f as usize].wrapping_add(1), 9000), false),
            Step::Rst(f, out, forged) => {
                let flow = &self.flows[f as usize];
                let end = if out { flow.end } else { flow.far_end };
                let seq = end.unwrap_or(0).wrapping_add(if forged { 1 << 30 } else { 0 });
                let ack = flow.isn.wrapping_add(1 + u32::from(forged));
                (Seg { ack, ..Seg::data(f, seq, 0).with(TcpFlags::RST) }, out)
            }
            Step::Drop => {
                self.sampled_until = Some(self.now + 60_000);
                return None;
            }
            Step::Wait(ms) => {
                self.now += ms;
                return None;
            }
        })
    }

    fn n(&self, sampling: Sampling) -> u64 {
        let sampled = match sampling {
            Sampling::Always => true,
            Sampling::AfterDrop => self.sampled_until.is_some_and(|until| self.now <= until),
            Sampling::Off => false,
        };
        self.flows.iter().filter(|f| f.here && (f.sent_data || !sampled)).count() as u64
    }

    fn expire(&mut self) {
        for flow in &mut self.flows {
            let timeout = if flow.sent_data { 60_000 } else { 3000 };
            flow.here &= self.now - flow.last <= timeout;
        }
    }

    /// `rtt` is the flow's round trip before the segment.
    fn follow(&mut self, segment: &Seg, out: bool, rtt: Option<Span>) {
        let (now, i) = (self.now, segment.flow.0 as usize);
        let flow = &mut self.flows[i];
        let has = |f| segment.flags.has(f);
        let opens = has(TcpFlags::SYN) && !has(TcpFlags::ACK);
        if has(TcpFlags::RST) {
            let refuses = flow.known && !flow.answered && flow.from_inside != out;
            let end = if out { flow.end } else { flow.far_end };
            let near = end.is_none_or(|end| end.abs_diff(segment.seq) <= 1 << 20);
            if flow.seen && flow.over.is_none() && if refuses { segment.ack == flow.isn + 1 } else { near } {
                (flow.here, flow.over) = (false, Some(now));
            }
            return;
        }
        if opens {
            let live = flow.known && flow.over.is_none();
            let same = flow.from_inside == out && flow.isn == segment.seq;
            if live && flow.answered && (same || flow.here && flow.sent_data && now - flow.last < 1000) {
                return;
            }
            if live && !flow.answered && flow.from_inside != out {
                flow.answered = true;
            } else if !(live && same) {
                let (known, here, from_inside) = (true, true, out);
                *flow = Plain { seen: true, known, here, from_inside, isn: segment.seq, last: now, ..Plain::default() };
            }
        }
        if opens && (if out { flow.end } else { flow.far_end }).is_some_and(|end| end != segment.seq + 1) {
            (flow.end, flow.far_end) = (None, None); // another space of numbers
        }
        flow.seen = true;
        let end = segment.seq.wrapping_add(segment.payload_len + u32::from(has(TcpFlags::SYN) || has(TcpFlags::FIN)));
        if let Some(over) = flow.over {
            let new = out
                && segment.payload_len > 0
                && flow.end.is_none_or(|seen| after(end.wrapping_sub(u32::from(has(TcpFlags::FIN))), seen));
            // To the grain in which PINK keeps that time, 4096 ns.
            let units = |ms: u64| (ms * 1_000_000) >> 12;
            if !new || units(now) - units(over) <= rtt.unwrap_or(Span::from_secs(1)).as_nanos() >> 12 {
                return;
            }
            (flow.over, flow.fin, flow.known) = (None, false, flow.answered); // never answered: a stranger
        }
        if !out {
            let believed =
                !has(TcpFlags::ACK) || has(TcpFlags::SYN) || flow.end.is_some_and(|end| !after(segment.ack, end));
            if flow.known && !believed {
                return;
            }
            advance(&mut flow.far_end, end);
            flow.answered |= flow.known && has(TcpFlags::SYN.with(TcpFlags::ACK)) && flow.from_inside;
            if has(TcpFlags::ACK) && flow.fin && flow.end == Some(segment.ack) {
                (flow.here, flow.over) = (false, Some(now));
            }
            return;
        }
        advance(&mut flow.end, end);
        flow.answered |= flow.known && has(TcpFlags::SYN.with(TcpFlags::ACK)) && !flow.from_inside;
        if segment.payload_len > 0 {
            let busy = flow.here && flow.sent_data;
            if !busy || now - flow.last >= GRAIN.as_nanos() / 1_000_000 {
                flow.last = now;
            }
            (flow.here, flow.sent_data) = (true, true);
        }
        flow.fin |= has(TcpFlags::FIN);
    }
}

fn reallocations() -> impl Strategy<Value = Reallocation> {
    use Reallocation::{Demand, MaxMin, Off, Paper};
    prop_oneof![Just(Demand), Just(Off), Just(Paper), Just(MaxMin)]
}

fn windows() -> impl Strategy<Value = Window> {
    prop_oneof![Just(Window::Steady), Just(Window::Dither), Just(Window::Literal)]
}

fn samplings() -> impl Strategy<Value = Sampling> {
    prop_oneof![Just(Sampling::Always), Just(Sampling::AfterDrop)]
}

/// What the sums say is what the flows say, and what is free or used is all there is.
fn assert_sums(pink: &Pink) -> Result<(), TestCaseError> {
    prop_assert_eq!(pink.surplus, pink.flows.iter().map(|f| u64::from(f.surplus)).sum::<u64>());
    prop_assert_eq!(pink.growing, pink.flows.iter().filter(|f| f.has(super::super::flow::GROWS)).count() as u64);
    let lacking = || pink.flows.iter().filter(|f| f.has(LACKING));
    prop_assert!(lacking().all(|f| pink.counts(f)), "only flows that count lend their share");
    let asleep = pink.flows.iter().filter(|f| f.is(super::super::flow::ASLEEP)).count() as u64;
    prop_assert_eq!(pink.census.asleep, asleep);
    let shares = &pink.shares;
    prop_assert_eq!(shares.lacking, lacking().count() as u64);
    prop_assert_eq!(shares.claims, lacking().map(|f| u64::from(f.claim)).sum::<u64>());
    prop_assert_eq!(shares.n, pink.flows.iter().filter(|f| pink.counts(f)).count() as u64);
    let good = shares.n - shares.lacking;
    if good > 0 {
        let second = Span::from_secs(1);
        let level = shares.level(None, second);
        // Bad flows hold what they can use, and as a group no more than eq. 1 gives them.
        let used = shares.claims.min(shares.lacking * shares.equal(second));
        let given = level * good + used;
        let all = shares.capacity / MILLI;
        prop_assert!(given <= all + shares.n && given + 2 * shares.n >= all, "{given} of {all}: {shares:?}");
        prop_assert!(level + 1 >= shares.equal(second), "eq. 2 is less than eq. 1");
    }
    Ok(())
}

proptest! {
    /// Random segments of random flows, as values and as bytes of real packets.
    #[test]
    fn windows_only_shrink_edges_only_advance_and_n_is_right(steps in steps(), window in windows(), restart in 0..20u32,
                                                             reallocation in reallocations(), sampling in samplings()) {
        let mut gate = Gate::new(|c| {
            (c.window, c.reallocation, c.sampling) = (window, reallocation, sampling);
        });
        let mut real = gate.pink.clone();
        let mut model = Model::default();
        let mut edges = [None::<u32>; 4];
        for (at, step) in steps.into_iter().enumerate() {
            if let Step::SynOut(f) | Step::SynIn(f) = step {
                model.generation[f as usize] += u32::from(at as u32 % 20 == restart);
            }
            let segment = model.segment(step);
            gate.now = Instant::ZERO + Span::from_millis(model.now);
            if let Step::Drop = step {
                gate.pink.on_overflow(gate.now);
                real.on_overflow(gate.now);
            }
            let Some((segment, out)) = segment else { continue };
            model.expire();
            let i = segment.flow.0 as usize;
            let known = gate.pink.flows.get(i).map(|f| (f.phase, f.isn));
            model.follow(&segment, out, gate.pink.flows.get(i).and_then(Flow::round_trip));
            let implausible = gate.pink.stats.implausible;
            let mut packet = RealPacket::new(segment.bytes(), segment.flow);
            let tcp = packet.tcp().unwrap();
            if out {
                gate.out(segment);
                real.outbound(tcp, gate.now);
                prop_assert_eq!(tcp.window(), segment.window, "outbound segments are not edited");
            } else {
                let window = gate.back(segment);
                real.inbound(tcp, gate.now);
                prop_assert_eq!(tcp.window(), window, "bytes and values agree");
                prop_assert!(window <= segment.window, "raised");
                prop_assert_eq!(window == 0, segment.window == 0, "zeroed");
                let flow = &gate.pink.flows[i];
                let scale = if segment.flags.has(TcpFlags::SYN) { 0 } else { flow.scale().unwrap_or(0) };
                let (told, left) = (u64::from(segment.window) << scale, u64::from(window) << scale);
                prop_assert!(left >= told.min(flow.segment(false)), "below one segment: {} of {}", left, told);
                let same = known == Some((Phase::Open, flow.isn)) && flow.phase == Phase::Open;
                if !same {
                    edges[i] = None;
                }
                let believed = gate.pink.stats.implausible == implausible;
                if flow.phase == Phase::Open && segment.flags.has(TcpFlags::ACK) && believed {
                    let edge = segment.ack.wrapping_add(left as u32);
                    if let Some(before) = edges[i].filter(|_| window < segment.window) {
                        // With "demand" it may, if the sender had nothing more to send.
                        let done = reallocation == Reallocation::Demand && flow.is_done(segment.ack);
                        prop_assert!(done || !after(before, edge), "the edge moved left from {} to {}", before, edge);
                    }
                    let done = reallocation == Reallocation::Demand && flow.is_done(segment.ack);
                    edges[i] = Some(edges[i].filter(|e| after(*e, edge) && !done).unwrap_or(edge));
                }
                if !believed {
                    prop_assert_eq!(window, segment.window, "what cannot be true passes untouched");
                }
            }
            assert_checksums(packet.bytes());
            if !matches!(reallocation, Reallocation::Demand | Reallocation::MaxMin) {
                prop_assert_eq!(gate.pink.active(), model.n(sampling));
            }
            prop_assert!(gate.pink.stats.check().is_ok());
            prop_assert_eq!(gate.pink.stats(), real.stats());
            assert_sums(&gate.pink)?;
        }
    }

    /// Segments that make no sense at all.
    #[test]
    fn nonsense_never_panics(raw in prop::collection::vec((0..3u32, any::<u8>(), any::<u32>(), any::<u32>(), 0..70_000u32,
                             any::<u16>(), any::<Option<u8>>(), any::<Option<u16>>(), any::<bool>(), 0..5000u64), 0..100)) {
        let mut gate = Gate::new(|c| *c = Config::default());
        for (flow, flags, seq, ack, len, window, scale, mss, out, ms) in raw {
            gate.wait(Span::from_millis(ms));
            let plain = Seg::new(FlowId(flow), TcpFlags(flags));
            let segment = Seg { seq, ack, payload_len: len, window, window_scale: scale, mss, ..plain };
            if out {
                gate.out(segment);
            } else {
                let written = gate.back(segment);
                prop_assert!(written <= window && (written == 0) == (window == 0));
            }
            prop_assert!(gate.pink.stats.check().is_ok());
            assert_sums(&gate.pink)?;
        }
    }
}
