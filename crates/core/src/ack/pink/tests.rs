//! PINK as stories. The link is 10 Mbit/s and the MSS 1000 bytes, which take 0.8 ms on it. A small packet has a WAN
//! half of 99.2 ms and a LAN half of 4 ms, unless a test says otherwise: eq. 1 then gives 1.25e6 B/s * 0.104 s * 0.95 /
//! n = 123500 / n bytes. Every SYN counts ("after-drop", and nothing is dropped), unless a test says otherwise, so a
//! story need not send data to have flows.

use super::flow::{SPLITS, STRETCHES, after, whole_segments};
use super::*;
use crate::config::AqmConfig;
use crate::packet::{FlowId, Packet, PlainSegment as Seg};
use etherparse::{PacketBuilder, TcpOptionElement};
use std::collections::VecDeque;

mod before_qrm;
mod demand;
mod edges;
mod flood;
mod gate;
mod handover;
mod others;
mod path;
mod properties;
mod rate;
mod reallocation;
mod truth;

const LINK: Rate = Rate::from_bps(10_000_000);
const SHARE_OF_ONE: u64 = 123_500;
const WAN: Span = Span::from_micros(99_200);
/// The WAN half with the transmission time of a full segment.
const WAN_OF_DATA: Span = Span::from_millis(100);
const LAN: Span = Span::from_millis(4);
const ISN: u32 = 999;
const FAR_ISN: u32 = 4999;

impl Seg {
    fn syn(flow: u32, window_scale: Option<u8>) -> Self {
        Self { seq: ISN, window_scale, mss: Some(1000), ..Self::new(FlowId(flow), TcpFlags::SYN) }
    }
    fn syn_ack(flow: u32, window_scale: Option<u8>) -> Self {
        let flags = TcpFlags::SYN.with(TcpFlags::ACK);
        Self { seq: FAR_ISN, ack: ISN + 1, window_scale, mss: Some(1000), ..Self::new(FlowId(flow), flags) }
    }
    fn data(flow: u32, seq: u32, payload_len: u32) -> Self {
        Self { seq, ack: FAR_ISN + 1, payload_len, ..Self::new(FlowId(flow), TcpFlags::ACK) }
    }
    fn ack(flow: u32, ack: u32, window: u16) -> Self {
        Self { seq: FAR_ISN + 1, ack, window, ..Self::new(FlowId(flow), TcpFlags::ACK) }
    }
    fn with(mut self, flags: TcpFlags) -> Self {
        self.flags = self.flags.with(flags);
        self
    }

    /// The same segment as bytes of an IPv4 packet.
    fn bytes(&self) -> Vec<u8> {
        let mut options = vec![];
        options.extend(self.mss.map(TcpOptionElement::MaximumSegmentSize));
        options.extend(self.window_scale.map(TcpOptionElement::WindowScale));
        let has = |flag| self.flags.has(flag);
        let mut tcp = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1, 2, self.seq, self.window);
        tcp = if has(TcpFlags::ACK) { tcp.ack(self.ack) } else { tcp };
        tcp = if has(TcpFlags::SYN) { tcp.syn() } else { tcp };
        tcp = if has(TcpFlags::FIN) { tcp.fin() } else { tcp };
        tcp = if has(TcpFlags::RST) { tcp.rst() } else { tcp };
        let mut bytes = Vec::new();
        tcp.options(&options).unwrap().write(&mut bytes, &vec![0; self.payload_len as usize]).unwrap();
        bytes
    }
}

/// The form of the paper, with whole segments.
fn paper() -> Config {
    Config { reallocation: Reallocation::Paper, window: Window::Dither, ..Config::default() }
}

/// A gateway with PINK and a clock.
struct Gate {
    pink: Pink,
    now: Instant,
}

impl Gate {
    fn new(edit: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config { sampling: Sampling::AfterDrop, ..paper() };
        edit(&mut config);
        config.check().unwrap();
        Self { pink: Pink::new(&config, LINK), now: Instant::ZERO }
    }
    fn literal() -> Self {
        Self::new(|c| c.window = Window::Literal)
    }
    fn wait(&mut self, span: Span) {
        self.now += span;
    }
    fn out(&mut self, mut segment: Seg) {
        self.pink.outbound(&mut segment, self.now);
    }
    /// The window field with which the segment leaves PINK.
    fn back(&mut self, mut segment: Seg) -> u16 {
        self.pink.inbound(&mut segment, self.now);
        self.pink.stats.check().unwrap();
        segment.window
    }
    /// Opens flows together from inside; the scales are those of the inner and of the far side.
    fn open(&mut self, flows: std::ops::Range<u32>, near: Option<u8>, far: Option<u8>) {
        flows.clone().for_each(|f| self.out(Seg::syn(f, near)));
        self.wait(WAN);
        for f in flows.clone() {
            self.back(Seg::syn_ack(f, far));
        }
        self.wait(LAN);
        flows.for_each(|f| self.out(Seg::data(f, ISN + 1, 0)));
    }
    /// The window of an ACK up to `ack`, all of which was sent some time ago.
    fn ack_of_sent(&mut self, flow: u32, ack: u32, field: u16) -> u16 {
        let end = self.pink.flows[flow as usize].probe.outbound_end().unwrap();
        if after(ack, end) {
            let data = Seg::data(flow, end, ack.wrapping_sub(end));
            self.out(data);
            self.out(data); // what is sent twice is not timed
        }
        self.back(Seg::ack(flow, ack, field))
    }
    /// The window after the ACK of its `segments`th segment; the scale is 2.
    fn window_after(&mut self, flow: u32, segments: u32) -> u32 {
        u32::from(self.ack_of_sent(flow, ISN + 1 + 1000 * segments, 65_535)) << 2
    }
    /// The flow sends a full segment at `seq` and it is acknowledged: the window of that ACK.
    fn acked(&mut self, flow: u32, seq: u32, field: u16) -> u16 {
        self.out(Seg::data(flow, seq, 1000));
        self.wait(WAN);
        self.back(Seg::ack(flow, seq + 1000, field))
    }
}

#[test]
fn eq_1_by_hand() {
    let capacity = |config: Config, link| Pink::new(&config, link).shares.capacity;
    let share = window_of;
    let full = Config { c: 1.0, ..paper() };
    // 10 Mbit/s, 100 ms, c = 0.95, 4 flows: 1.25e6 * 0.1 * 0.95 / 4 = 29687.5
    assert_eq!(share(capacity(paper(), LINK), WAN_OF_DATA, 4), 29_687);
    // The SAT testbed: 4 Mbit/s, 700 ms, 2 flows: 350 kB / 2.
    let sat = Rate::from_bps(4_000_000);
    assert_eq!(share(capacity(full.clone(), sat), Span::from_millis(700), 2), 175_000);
    let overridden = Config { rate: Some(sat), ..full };
    assert_eq!(share(capacity(overridden, LINK), Span::from_millis(700), 2), 175_000);
    assert_eq!(share(u64::MAX, Span::MAX, 1), 65_535 << 14, "never more than TCP can say");
}

#[test]
fn the_share_is_that_of_the_whole_round_trip() {
    let mut gate = Gate::literal();
    gate.open(0..4, None, None);
    assert_eq!(gate.acked(0, ISN + 1, 65_535), 30_875); // 123500 / 4
}

#[test]
fn the_syn_ack_is_clamped_by_the_wan_half_and_unscaled() {
    let mut gate = Gate::literal();
    (0..4).for_each(|f| gate.out(Seg::syn(f, Some(7))));
    gate.wait(WAN);
    assert_eq!(gate.back(Seg::syn_ack(0, Some(7))), 29_687);
}

#[test]
fn literal_windows_are_eq_1() {
    let mut gate = Gate::literal();
    gate.open(0..10, Some(0), Some(0));
    assert_eq!(gate.acked(3, ISN + 1, 65_535), 12_350);
    assert_eq!(gate.pink.stats.rewritten, 11, "ten SYN-ACKs and one ACK");
}

#[test]
fn the_first_flight_is_half_the_share() {
    let mut gate = Gate::new(|_| {});
    gate.out(Seg::syn(0, None));
    (1..4).for_each(|f| gate.out(Seg::syn(f, None)));
    gate.wait(WAN);
    // Flow 0 has no error to start with: half of 29687 is 14 segments.
    assert_eq!(gate.back(Seg::syn_ack(0, None)), 14_000);
    gate.wait(LAN);
    gate.out(Seg::data(0, ISN + 1, 0));
    // Sixteen segments more are due by the end of the round, which acknowledges fourteen.
    assert_eq!(gate.acked(0, ISN + 1, 65_535), 15_142, "14000 + 16000 / 14");
    let window = gate.ack_of_sent(0, ISN + 60_001, 65_535);
    assert!(
        (26_000..=33_000).contains(&window),
        "{window} is not 123500 / 4, three segments more or less, in steps of two"
    );
}

#[test]
fn the_window_scale_counts_only_if_both_sides_offered_it() {
    let window = |near, far| {
        let mut gate = Gate::literal();
        gate.open(0..4, near, far);
        gate.acked(0, ISN + 1, 65_535)
    };
    assert_eq!(window(Some(2), Some(5)), 30_875 >> 5, "the far side's scale");
    assert_eq!(window(Some(2), None), 30_875);
    assert_eq!(window(None, Some(5)), 30_875);
    assert_eq!(window(Some(0), Some(20)), 30_875 >> 14, "RFC 7323 2.3: at most 14");
}

#[test]
fn a_flow_opened_from_outside_is_clamped_as_well() {
    let mut gate = Gate::literal();
    (0..4).for_each(|f| assert_eq!(gate.back(Seg::syn(f, Some(3))), 65_535, "no round trip time is known"));
    assert_eq!((gate.pink.stats.active, gate.pink.stats.opening), (4, 4));
    gate.wait(LAN);
    gate.out(Seg { ack: ISN + 1, ..Seg::syn(0, Some(9)).with(TcpFlags::ACK) });
    assert_eq!(gate.pink.stats.opening, 3);
    gate.wait(WAN);
    assert_eq!(gate.back(Seg::ack(0, ISN + 1, 65_535)), 30_875 >> 3, "the opener's scale, the whole round trip");
}

#[test]
fn unknown_scale_means_hands_off() {
    let mut gate = Gate::literal();
    gate.out(Seg::data(0, 1, 1000));
    assert_eq!(gate.back(Seg::ack(0, 1001, 65_535)), 65_535);
    assert_eq!(gate.back(Seg::syn_ack(1, Some(7))), 65_535, "a SYN-ACK without its SYN");
    assert_eq!((gate.pink.stats.left_alone, gate.pink.active()), (2, 1));
    assert_eq!(gate.pink.stats.strangers, 1, "data of unknown flows take their share all the same");
    gate.wait(Span::from_secs(2));
    gate.open(0..1, None, None);
    assert_eq!((gate.pink.active(), gate.pink.stats.strangers), (1, 0), "its next SYN makes it known");
}

#[test]
fn a_flow_beyond_the_table_is_left_alone() {
    let mut gate = Gate::new(|c| c.max_flows = 2);
    gate.open(0..3, None, None);
    assert_eq!(gate.acked(2, ISN + 1, 65_535), 65_535);
    assert_eq!((gate.pink.active(), gate.pink.stats.beyond_table, gate.pink.flows.len()), (2, 5, 2));
}

#[test]
fn smaller_windows_and_zero_stay_as_they_are() {
    let mut gate = Gate::new(|_| {});
    gate.open(0..4, None, None);
    for window in [0, 1, 999, 14_000] {
        assert_eq!(gate.back(Seg::ack(0, ISN + 1, window)), window);
    }
}

#[test]
fn a_share_below_one_segment_is_counted() {
    let mut gate = Gate::literal();
    gate.open(0..200, None, None); // 617 bytes each
    let before = gate.pink.stats.below_one_segment;
    assert_eq!(gate.acked(0, ISN + 1, 65_535), 1000);
    assert_eq!(gate.pink.stats.below_one_segment, before + 1);
    let mut dither = Gate::new(|_| {});
    dither.open(0..200, None, None);
    assert_eq!(dither.acked(0, ISN + 1, 65_535), 1000);
}

/// A sender that the window alone holds back, in round trips: sends what it may, gets all ACKs, and so on.
struct Sender {
    una: u32,
    nxt: u32,
    edge: u32,
    flight: VecDeque<u32>,
    scale: u8,
    segment: u32,
    /// Sends one short segment when none is in flight (Minshall); otherwise only full ones.
    splits: bool,
    short_end: u32,
    /// Acknowledges every so many segments, and the last.
    stretch: usize,
}

impl Sender {
    fn new(first_window: u16, scale: u8, segment: u32, splits: bool, stretch: usize) -> Self {
        let una = ISN + 1;
        let edge = una + u32::from(first_window);
        Self { una, nxt: una, edge, flight: VecDeque::new(), scale, segment, splits, short_end: una, stretch }
    }
    fn send(&mut self, gate: &mut Gate, flow: u32) {
        while after(self.edge, self.nxt) {
            let usable = self.edge.wrapping_sub(self.nxt);
            let short_allowed = self.splits && !after(self.short_end, self.una);
            if usable < self.segment && !short_allowed {
                break;
            }
            let len = usable.min(self.segment);
            gate.out(Seg::data(flow, self.nxt, len));
            self.nxt = self.nxt.wrapping_add(len);
            if len < self.segment {
                self.short_end = self.nxt;
            }
            self.flight.push_back(self.nxt);
        }
    }
    /// The ACKs of one round trip; the flow's bytes that they acknowledge.
    fn round(&mut self, gate: &mut Gate, flow: u32) -> u64 {
        let before = self.una;
        let acks: Vec<u32> = self.flight.drain(..).collect();
        for (i, ack) in acks.iter().enumerate() {
            if (i + 1) % self.stretch == 0 || i + 1 == acks.len() {
                let window = gate.back(Seg::ack(flow, *ack, 65_535));
                (self.una, self.edge) = (*ack, ack.wrapping_add(u32::from(window) << self.scale));
                self.send(gate, flow);
            }
        }
        u64::from(self.una.wrapping_sub(before))
    }
}

/// Bytes per round trip of flow 0 among `n`, on average over `rounds` after a few to settle.
fn mean_of_a_window_limited_sender(n: u32, scale: u8, splits: bool, stretch: usize, rounds: u64) -> f64 {
    let mut gate = Gate::new(|c| c.silent_timeout = Span::from_secs(86_400));
    gate.open(0..n, Some(scale), Some(scale));
    let mut sender = Sender::new(1000, scale, 1000, splits, stretch);
    sender.send(&mut gate, 0);
    let mut total = 0;
    for round in 0..rounds + 10 {
        gate.wait(WAN + LAN);
        let bytes = sender.round(&mut gate, 0);
        total += if round < 10 { 0 } else { bytes };
    }
    total as f64 / rounds as f64
}

#[test]
fn windows_dither_between_whole_segments() {
    for n in [2, 3, 7, 17, 50, 64, 85] {
        let share = SHARE_OF_ONE as f64 / f64::from(n);
        let rounds = 400;
        let mean = mean_of_a_window_limited_sender(n, 0, false, 1, rounds);
        // The error is at most two segments at either end of the average.
        assert!((mean - share).abs() <= 4.0 * 1000.0 / rounds as f64, "n = {n}: {mean} instead of {share}");
    }
}

#[test]
fn scaling_short_segments_and_stretched_acks_do_not_bias_the_mean() {
    for scale in [0, 7, 9] {
        for splits in [false, true] {
            for stretch in [1, 2, 5] {
                for n in [3, 40, 64] {
                    let share = SHARE_OF_ONE as f64 / f64::from(n);
                    let rounds = 1000;
                    let mean = mean_of_a_window_limited_sender(n, scale, splits, stretch, rounds);
                    let what = format!("scale {scale}, splits {splits}, stretch {stretch}, n {n}: {mean} for {share}");
                    assert!((mean - share).abs() <= 0.01 * share, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_segment_longer_than_the_units_of_the_field_is_never_lost_to_rounding() {
    let plain = Flow::default();
    for (bytes, segment, unit) in [(1999, 1000, 128), (1448, 1448, 1024), (5000, 1000, 16), (900, 1000, 128)] {
        let window = whole_segments(bytes, segment, unit, &plain);
        let whole = (bytes as u64 / segment).max(1);
        assert_eq!(window / segment, whole, "{bytes} {segment} {unit}");
        assert_eq!(window % unit, 0);
    }
    assert_eq!(whole_segments(40_000, 1448, 16_384, &plain), 32_768, "units in place of segments");
    assert_eq!(whole_segments(-1, 1448, 16_384, &plain), 16_384);
}

/// A flow of these habits whose handshake took `rtt`, with half of it on either side.
fn with_rtt(habits: u16, rtt: Span) -> Flow {
    let mut gate = Gate::new(|_| {});
    gate.out(Seg::syn(0, None));
    gate.wait(rtt.div(2));
    gate.back(Seg::syn_ack(0, None));
    gate.wait(rtt.div(2));
    gate.out(Seg::data(0, ISN + 1, 0));
    let mut flow = gate.pink.flows[0].clone();
    flow.marks = flow.marks & !0b1111 | habits << 2;
    flow
}

/// A receiver that waits for the second segment of a pair may make rounds longer than windows are due for: the flow gets
/// less than its share by each, and its window has to step up, also from one step beyond what is due.
#[test]
fn a_flow_that_gets_less_than_is_due_steps_up_whatever_its_step() {
    for (habits, unit, step) in [
        (0, 128, 1448),
        (STRETCHES, 128, 2896),
        (SPLITS, 1024, 2048),
        (SPLITS | STRETCHES, 1024, 4096),
        (STRETCHES, 1024, 2896),
    ] {
        let segment = steps::stride(1448, unit, habits & SPLITS != 0);
        let (due, before) = (8 * step + step / 10, 9 * step);
        let mut flow = with_rtt(habits, WAN);
        flow.set_flight(Flight::Later);
        let mut rounds = 0;
        while flow.step(&Step { share: due, due: Some(due), before, segment, crowded: false }, 512).1 <= before {
            flow.marks |= habits;
            (flow.round_end, flow.edge) = (flow.edge, flow.edge.wrapping_add((due - 300) as u32));
            let most = flow.most_owed(segment).max(CREDIT * 1448.max(unit));
            flow.turn_round(flow.edge, most, false, Instant::ZERO, |_| due).unwrap();
            rounds += 1;
            assert!(rounds < 40, "{habits} {unit}: {} bytes are owed", flow.credit);
        }
        assert!(rounds * 300 >= 2 * step, "not before it is owed much");
    }
}

#[test]
fn rounding_and_steps_follow_the_habits_of_the_ends() {
    let habit = |habits| with_rtt(habits, WAN);
    assert_eq!(whole_segments(2999, 1000, 128, &habit(SPLITS)), 1920, "down for a sender that splits: 15 * 128");
    assert_eq!(whole_segments(1999, 1000, 128, &habit(SPLITS)), 1024, "but never below one segment");
    assert_eq!(whole_segments(5999, 1000, 1, &habit(STRETCHES)), 4000, "pairs for a receiver that delays ACKs");
    assert_eq!(whole_segments(1999, 1000, 1, &habit(STRETCHES)), 1000);
    let satellite = with_rtt(STRETCHES, Span::from_millis(700));
    assert_eq!(whole_segments(5999, 1000, 1, &satellite), 5000, "40 ms are little of 700");
    // What was seen counts in the next round, and only there.
    let mut flow = Flow::default();
    flow.set_flight(Flight::Later);
    flow.note_ack(1001, 1000);
    assert!(!flow.had(STRETCHES));
    flow.turn_round(1001, 1000, false, Instant::ZERO, |_| 5000);
    assert!(flow.had(STRETCHES));
    flow.let_through(1001, 5000);
    flow.note_ack(2001, 1000);
    flow.turn_round(2001, 1000, false, Instant::ZERO, |_| 5000);
    assert!(!flow.had(STRETCHES));
}

#[test]
fn flows_that_open_together_do_not_step_up_together() {
    let mut gate = Gate::new(|_| {});
    let n = 85; // 1452 bytes each: 45 % of the flows get two segments
    gate.open(0..n, None, None);
    (0..n).for_each(|f| gate.out(Seg::data(f, ISN + 1, 1000)));
    gate.wait(WAN);
    let windows: Vec<u16> = (0..n).map(|f| gate.back(Seg::ack(f, ISN + 1001, 65_535))).collect();
    let double = windows.iter().filter(|w| **w == 2000).count();
    assert!(windows.iter().all(|w| [1000, 2000].contains(w)), "{windows:?}");
    assert!((36..=40).contains(&double), "{double} of 85 instead of 38"); // 0.452 * 85 = 38.4
}

#[test]
fn the_segment_is_what_full_segments_carry() {
    let flow = |mss, largest| Flow { mss, largest, ..Flow::default() };
    assert_eq!(flow(1460, 0).segment(true), 1448, "nothing seen yet, and the option counts no timestamps (RFC 6691)");
    assert_eq!(flow(1460, 0).segment(false), 1460);
    assert_eq!(flow(1460, 1448).segment(true), 1448, "a Linux host with timestamps");
    assert_eq!(flow(1000, 1000).segment(true), 1000);
    assert_eq!(flow(1460, 20).segment(true), 1448, "short messages say nothing of the segment size");
    assert_eq!(flow(1460, 20).segment(false), 1460);
    assert_eq!(flow(0, 0).segment(false), 48, "an absurd option");
}

#[test]
fn the_mss_is_the_smaller_option_and_536_without_any() {
    let mut gate = Gate::new(|_| {});
    gate.out(Seg { mss: None, ..Seg::syn(0, None) });
    gate.back(Seg { mss: None, ..Seg::syn_ack(0, None) });
    gate.out(Seg { mss: Some(1360), ..Seg::syn(1, None) });
    gate.back(Seg { mss: Some(1460), ..Seg::syn_ack(1, None) });
    assert_eq!((gate.pink.flows[0].mss, gate.pink.flows[1].mss), (536, 1360));
}

#[test]
fn a_cut_takes_effect_as_acks_advance() {
    let mut gate = Gate::literal();
    gate.open(0..2, None, None);
    assert_eq!(gate.acked(0, ISN + 1, 65_535), 61_750); // 123500 / 2: the edge is ISN + 1001 + 61750
    (2..4).for_each(|f| gate.out(Seg::syn(f, None)));
    for acked in [1000, 20_000, 30_000] {
        let window = gate.ack_of_sent(0, ISN + 1001 + acked as u32, 65_535);
        assert_eq!(window, 61_750 - acked, "the edge stands still");
    }
    assert_eq!(gate.ack_of_sent(0, ISN + 1001 + 35_000, 65_535), 30_875, "the new share");
    assert_eq!(gate.ack_of_sent(0, ISN + 1001 + 36_000, 65_535), 30_875);
}

/// Four flows in rounds; the window of flow 0 after 100 of its segments, and the ACKs that follow.
fn four_in_rounds(room: Limit) -> (Gate, u32) {
    let mut gate = Gate::new(|_| {});
    gate.pink.room = room;
    gate.open(0..4, Some(2), Some(2));
    gate.acked(0, ISN + 1, 65_535);
    (2..=100).for_each(|k| _ = gate.window_after(0, k));
    let window = gate.window_after(0, 101);
    assert!((27_000..=34_000).contains(&window), "{window} is not 123500 / 4, three segments more or less");
    (gate, window)
}

fn leave(gate: &mut Gate, flows: std::ops::Range<u32>) {
    flows.for_each(|f| _ = gate.back(Seg::ack(f, ISN + 1, 65_535).with(TcpFlags::RST)));
}

/// One of four leaves: 41167 in place of 30875. At each ACK the edge moves by a third more than what is acknowledged,
/// so that data come at the new pace from the first on; a round later the window is the new share.
#[test]
fn a_larger_share_is_given_out_at_its_own_pace() {
    let (mut gate, before) = four_in_rounds(Limit::Packets(u64::MAX));
    leave(&mut gate, 3..4);
    let round = before / 1000;
    let mut window = before;
    for k in 1..=round {
        let next = gate.window_after(0, 101 + k);
        let even = f64::from(before) + (41_167.0 - f64::from(before)) * f64::from(k) / f64::from(round);
        // Whole segments, of which dithering takes or gives up to three; the last six at once.
        assert!((f64::from(next) - even).abs() <= 6000.0, "{next} after {k} ACKs, not {even}");
        assert!(next <= window + 6000 && next + 1000 >= window, "from {window} to {next} at once");
        window = next;
    }
    assert!((38_000..=45_000).contains(&window), "{window} is not 123500 / 3, three segments more or less");
}

/// Three of four leave and the share of flow 0 is four times what it was. In its next round it is given half the
/// product more, 61.75 kB, or half of a queue of 62 kB, 31 kB; or less than that, for the window grows meanwhile.
#[test]
fn who_grow_share_half_the_product_or_half_the_queue() {
    for (room, half) in [(Limit::Packets(u64::MAX), 61_750), (Limit::Bytes(Bytes::new(62_000)), 31_000)] {
        let (mut gate, mut window) = four_in_rounds(room);
        leave(&mut gate, 1..4);
        let (first, round) = (window, window / 1000);
        for k in 1..=300 {
            let next = gate.window_after(0, 101 + k);
            let most = (1000 * half / window).max(125) + 4; // a unit of the window field
            let dithers = next >= 117_000; // the last six segments at once
            assert!(dithers || next <= window + most, "from {window} to {next} with an ACK of 1000");
            window = next;
            if k == round {
                let grown = window - first;
                assert!(grown <= half && grown >= half / 2, "{grown} in a round, half of the room is {half}");
            }
        }
        assert!((120_000..=127_000).contains(&window), "{window} is not 123500, three segments more or less");
        assert_eq!(gate.pink.growing, 0);
    }
    // Two who grow have half of it each.
    let (mut gate, _) = four_in_rounds(Limit::Bytes(Bytes::new(124_000)));
    gate.acked(1, ISN + 1, 65_535);
    leave(&mut gate, 2..4);
    gate.acked(1, ISN + 1001, 65_535);
    gate.window_after(0, 102);
    assert_eq!(gate.pink.growing, 2);
    assert_eq!(gate.pink.burst(1000, Span::from_millis(104)), 123_500 / 4);
    leave(&mut gate, 1..2);
    assert_eq!(gate.pink.growing, 1, "who is gone does not grow");
}

/// At 0.5 Mbit/s a payload of 1000 bytes takes 16 ms. The handshake took 103.2 ms; full segments take 119.2 ms, and
/// less than 62500 B/s * 0.1192 s * 0.95 = 7077 in flight would leave the link idle.
#[test]
fn the_round_trip_is_that_of_a_full_segment() {
    let mut gate = Gate::new(|c| (c.window, c.rate) = (Window::Literal, Some(Rate::from_bps(500_000))));
    gate.open(0..1, None, None);
    assert_eq!(gate.acked(0, ISN + 1, 65_535), 7077);
}

/// Flow 0 has 300 segments in flight over 500 ms when nine others open, over 100 ms. Its share falls to 59375 bytes, so
/// 237 kB too many come in over its round trip: 47 kB in one of theirs, of which the share is 11875.
fn with_a_long_flow() -> Gate {
    let mut gate = Gate::new(|_| {});
    gate.out(Seg::syn(0, Some(4)));
    gate.wait(Span::from_millis(500));
    gate.back(Seg::syn_ack(0, Some(4)));
    (0..300).for_each(|k| gate.out(Seg::data(0, ISN + 1 + 1000 * k, 1000)));
    gate.wait(Span::from_millis(400));
    (1..10).for_each(|f| gate.out(Seg::syn(f, None)));
    gate.wait(WAN);
    gate.back(Seg::ack(0, ISN + 1001, 65_535));
    gate
}

#[test]
fn a_newcomer_waits_for_cuts_of_longer_round_trips() {
    let mut gate = with_a_long_flow();
    assert_eq!(gate.back(Seg::syn_ack(1, None)), 1000);
    assert_eq!(gate.acked(1, ISN + 1, 65_535), 1000, "still in flight");
    gate.back(Seg::ack(0, ISN + 250_001, 65_535));
    assert_eq!(gate.pink.surplus, 0);
    assert!(gate.acked(1, ISN + 1001, 65_535) > 1000);
}

#[test]
fn a_cut_that_nobody_acknowledges_is_not_waited_for() {
    let mut gate = with_a_long_flow();
    gate.wait(Span::from_millis(501));
    // 601 ms after its SYN: half of 71368 and the error it starts with, 618.
    let window = gate.back(Seg::syn_ack(1, None));
    assert!((35_000..=36_000).contains(&window), "{window}");
    let mut gone = with_a_long_flow();
    gone.back(Seg::ack(0, ISN + 1001, 65_535).with(TcpFlags::RST));
    assert_eq!(gone.pink.surplus, 0);
}

#[test]
fn an_immediate_cut_moves_the_edge_left() {
    let mut gate = Gate::new(|c| (c.window, c.shrink) = (Window::Literal, Shrink::Immediate));
    gate.open(0..2, None, None);
    assert_eq!(gate.acked(0, ISN + 1, 65_535), 61_750);
    (2..4).for_each(|f| gate.out(Seg::syn(f, None)));
    assert_eq!(gate.ack_of_sent(0, ISN + 2001, 65_535), 30_875);
}

#[test]
fn a_coarse_scale_still_lets_a_cut_happen() {
    let mut gate = Gate::new(|_| {});
    let scale = 11; // units of 2048 bytes, more than a segment
    gate.open(0..2, Some(scale), Some(scale));
    let mut edge = {
        let window = gate.acked(0, ISN + 1, 65_535);
        ISN + 1001 + (u32::from(window) << scale)
    };
    (2..12).for_each(|f| gate.out(Seg::syn(f, None)));
    let mut last = 0;
    for i in 1..=80 {
        let ack = ISN + 1001 + i * 1000;
        last = u32::from(gate.ack_of_sent(0, ack, 65_535)) << scale;
        assert!(ack + last + (1 << scale) > edge, "left by a whole unit or more");
        edge = edge.max(ack + last);
    }
    assert!(last <= 123_500 / 12 + 2 * 2048, "{last} is not the share of twelve");
}

#[test]
fn a_retransmitted_syn_counts_once() {
    let mut gate = Gate::new(|_| {});
    (0..3).for_each(|_| gate.out(Seg::syn(0, None)));
    assert_eq!((gate.pink.active(), gate.pink.stats.opening), (1, 1));
    gate.back(Seg::syn_ack(0, None));
    gate.out(Seg::syn(0, None)); // late
    gate.back(Seg::syn_ack(0, None));
    assert_eq!((gate.pink.active(), gate.pink.stats.opening, gate.pink.stats.started), (1, 0, 1));
}

#[test]
fn another_connection_on_an_old_index_starts_afresh() {
    let mut gate = Gate::literal();
    gate.open(0..1, Some(7), Some(7));
    gate.out(Seg { seq: 77_777, ..Seg::syn(0, None) });
    assert_eq!((gate.pink.active(), gate.pink.stats.opening, gate.pink.stats.ended), (1, 1, 1));
    assert_eq!(gate.pink.flows[0].scale(), None);
    assert_eq!(gate.pink.flows[0].probe.wan(), None);
}

#[test]
fn a_simultaneous_open_is_one_flow() {
    let mut gate = Gate::new(|_| {});
    gate.out(Seg::syn(0, Some(2)));
    gate.back(Seg::syn(0, Some(5)));
    assert_eq!((gate.pink.active(), gate.pink.stats.opening), (1, 0));
    assert_eq!(gate.pink.flows[0].scale(), Some(5), "the far side's");
}

#[test]
fn a_flow_ends_when_its_fin_is_acknowledged() {
    let mut gate = Gate::new(|_| {});
    gate.open(0..1, None, None);
    gate.back(Seg::ack(0, ISN + 1, 65_535).with(TcpFlags::FIN));
    assert_eq!(gate.pink.active(), 1, "the far side closed, our data may go on");
    gate.out(Seg::data(0, ISN + 1, 1000).with(TcpFlags::FIN));
    gate.back(Seg::ack(0, ISN + 1001, 65_535));
    assert_eq!(gate.pink.active(), 1, "the FIN is not acknowledged");
    assert_eq!(gate.back(Seg::ack(0, ISN + 1002, 65_535)), 65_535);
    assert_eq!((gate.pink.active(), gate.pink.stats.ended), (0, 1));
    assert_eq!(gate.back(Seg::ack(0, ISN + 1002, 65_000)), 65_000, "untouched after the end");
}

#[test]
fn a_reset_from_either_side_ends_a_flow() {
    let mut gate = Gate::new(|_| {});
    gate.open(0..2, None, None);
    gate.out(Seg::data(0, ISN + 1, 0).with(TcpFlags::RST));
    gate.back(Seg::ack(1, ISN + 1, 0).with(TcpFlags::RST));
    assert_eq!((gate.pink.active(), gate.pink.stats.ended), (0, 2));
    gate.out(Seg::syn(2, None));
    gate.back(Seg::ack(2, ISN + 1, 0).with(TcpFlags::RST));
    assert_eq!((gate.pink.active(), gate.pink.stats.opening), (0, 0), "a refused connection");
}

#[test]
fn a_flow_that_never_sends_stops_counting() {
    let mut gate = Gate::literal();
    gate.open(0..1, None, None);
    gate.out(Seg::data(0, ISN + 1, 1000));
    (1..1000).for_each(|f| gate.out(Seg::syn(f, None)));
    assert_eq!(gate.pink.active(), 1000);
    gate.wait(Span::from_millis(3001));
    gate.out(Seg::data(0, ISN + 1001, 1000));
    assert_eq!((gate.pink.active(), gate.pink.stats.expired, gate.pink.stats.opening), (1, 999, 0));
    assert_eq!(gate.back(Seg::ack(0, ISN + 1001, 65_535)), 65_535, "the whole link again: 123500");
}

#[test]
fn an_idle_flow_stops_counting_and_its_data_bring_it_back() {
    let mut gate = Gate::literal();
    gate.open(0..3, None, None);
    (0..3).for_each(|f| gate.out(Seg::data(f, ISN + 1, 1000)));
    gate.wait(Span::from_secs(59));
    gate.out(Seg::data(0, ISN + 1001, 1000));
    gate.wait(Span::from_secs(2));
    gate.back(Seg::ack(0, ISN + 1, 0));
    assert_eq!((gate.pink.active(), gate.pink.stats.expired), (1, 2));
    assert_eq!(gate.back(Seg::ack(1, ISN + 1001, 65_535)), 61_750, "its share if it sent now: one of two");
    gate.out(Seg::data(1, ISN + 1001, 1000));
    assert_eq!((gate.pink.active(), gate.pink.stats.woken), (2, 1));
}

#[test]
fn state_is_small() {
    let (bytes, allowed) = (Pink::BYTES_PER_FLOW, 128);
    assert!(bytes <= allowed, "{bytes}");
}

#[test]
fn impossible_parameters_are_refused() {
    let refused = |edit: fn(&mut Config)| {
        let mut config = paper();
        edit(&mut config);
        config.check().unwrap_err().key
    };
    assert_eq!(refused(|c| c.c = 0.0), "c");
    assert_eq!(refused(|c| c.c = 1.01), "c");
    assert_eq!(refused(|c| c.c = f64::NAN), "c");
    assert_eq!(refused(|c| c.idle_timeout = Span::ZERO), "idle_timeout");
    assert_eq!(refused(|c| c.silent_timeout = Span::from_millis(999)), "silent_timeout");
    assert_eq!(refused(|c| c.max_flows = 0), "max_flows");
    assert_eq!(refused(|c| (c.rate, c.reserve) = (Some(LINK), Some(LINK))), "reserve");
}

#[test]
fn a_scenario_file_can_say_it_all() {
    let text = "c = 0.9\nrate = \"4Mbit/s\"\nshrink = \"immediate\"\nwindow = \"literal\"\nidle_timeout = \"30s\"";
    let config: Config = toml::from_str(text).unwrap();
    assert_eq!((config.rate, config.shrink), (Some(Rate::from_bps(4_000_000)), Shrink::Immediate));
    assert_eq!((config.window, config.idle_timeout), (Window::Literal, Span::from_secs(30)));
    assert!(toml::from_str::<Config>("cc = 1").is_err());
    let text =
        "rate_from = \"estimated\"\nreserve = \"1Mbit/s\"\nreallocation = \"max-min\"\nsampling = \"after-drop\"";
    let config: Config = toml::from_str(text).unwrap();
    assert_eq!((config.rate_from, config.reserve), (RateFrom::Estimated, Some(Rate::from_bps(1_000_000))));
    assert_eq!((config.reallocation, config.sampling), (Reallocation::MaxMin, Sampling::AfterDrop));
}
