//! PINK, passive inverse feedback: writes smaller windows into passing ACKs, so that senders never fill the queue.
//!
//! Source: Casoni, Grazia, Klapez, Patriciello, "How to avoid TCP congestion without dropping packets: an effective AQM
//! called PINK", Computer Communications 103 (2017), §3 (eq. 1) and §4. Window semantics: RFC 9293 §3.8.6, RFC 7323 §2.
//!
//! A sender has at most one advertised window in flight per round trip. The gateway knows the link, counts the flows and
//! sees their round trip times, so it can tell each flow the window that is exactly its share:
//!
//! ```text
//! B_i = floor(BW * RTT_i_min * c / n)                                                              (eq. 1)
//! ```
//!
//! BW is the rate of the link, RTT_i_min the smallest *whole* round trip (WAN half + LAN half), n the number of flows that
//! count, c the part of the link for payload. The sum of all B_i is at most the bandwidth-delay product, so the queue
//! stays below it (Theorem 1) and nothing need be dropped. Packets are never judged: only ACKs are edited.
//!
//! | phase | enters on | windows | counts in n |
//! |---|---|---|---|
//! | Unseen | - | untouched | no |
//! | Stranger | a segment of a flow whose SYN was missed: its window scale is unknown | untouched | no |
//! | Opening | SYN without ACK, from either side | SYN untouched | yes |
//! | Open | SYN-ACK: both options known | clamped, from the SYN-ACK on | while it is listed |
//! | Closed | RST, or the outbound FIN acknowledged (no more data can come) | untouched | no |
//!
//! A flow is listed from its SYN. It leaves the list after `silent_timeout` if it never sent data (a SYN flood), after
//! `idle_timeout` since its last data otherwise; it is clamped all the same, and its next data list it again. This is
//! §4's cure for SYN floods: only flows that transmit in the current period count.
//!
//! *Whole segments.* With a window of 1.45 segments a sender either sends short segments or loses a third of its share.
//! Windows are therefore whole segments whose mean over rounds is B_i. A round ends when data is acknowledged that was
//! beyond the right edge when it began, hence one round trip later. The right edge then has advanced by what the flow
//! could send in that round trip, and the difference to B_i is carried over (Bresenham's error). Rounding to the window
//! scale, short segments and stretched ACKs all show in the advance of the edge, so none of them biases the mean.
//! The window field may count in units that do not divide a segment. Rounding up keeps the number of segments of a sender
//! that sends whole ones only, but makes one that splits segments (Linux) add a tiny packet per round trip, whose header
//! costs the link more than it carries. So rounding is down for a sender that was seen to split in the last round.
//! A receiver that delays ACKs answers every second segment at once and a single one after tens of milliseconds, which
//! eq. 1 does not know of. So windows of a flow whose ACKs were seen to cover more than a segment go in steps of two,
//! unless its round trip is so long that this matters little.
//!
//! *First flight.* Until its first data are acknowledged a flow gets half its share. Flows that open together would
//! otherwise send c * BW * RTT back to back, one whole bandwidth-delay product, into a queue of that size or smaller;
//! half of it leaves room, and the second half is clocked by the ACKs of the first. No more is needed when flows of one
//! round trip time join each other: n counts a flow from its SYN, the others' ACKs of the following round trip all carry
//! the smaller share, and its own first window comes at the end of that round trip.
//!
//! *Cuts of longer round trips.* What others had in flight before a cut takes their round trip to drain, which may be
//! longer. Until then a new share is not free yet: a window may only grow to its share less the *surplus*, the rate at
//! which others' data beyond their shares still come in. The surplus is a sum kept per flow and brought up to date by its
//! ACKs; one that is not renewed for a round trip of its flow is not waited for.
//!
//! *Growth.* When a flow leaves, the shares of the others jump, and a long round trip makes that a burst larger than a
//! queue. So a window that is further from what it should be than dithering takes it grows by half of what each ACK
//! acknowledges: by half in a round trip, more gently than slow start, and never in a burst.
//!
//! Invariants: no window is raised, zeroed, or cut below one segment; with `shrink = "advance"` no right edge moves left
//! (see `coarse` below); n is the number of listed flows; `started + woken = active + ended + expired`.
//! Complexity: O(1) per segment (expiry amortized), 128 bytes per flow, no allocation except when the table of flows grows.
//! The other direction is another instance with `outbound` and `inbound` exchanged.
//!
//! DIFFERENCE: the whole RTT replaces the gateway's WAN half, which is too small by the LAN half
//! (`the_share_is_that_of_the_whole_round_trip`). Only the SYN-ACK is clamped by the WAN half: no more is known then.
//! DIFFERENCE: a cut takes effect as ACKs advance; `shrink = "immediate"` is the paper's
//! (`a_cut_takes_effect_as_acks_advance`, `an_immediate_cut_moves_the_edge_left`).
//! DIFFERENCE: windows are whole segments, first flights are half; `window = "literal"` is eq. 1 as is
//! (`windows_dither_between_whole_segments`, `the_first_flight_is_half_the_share`, `literal_windows_are_eq_1`).
//! DIFFERENCE: with "dither" windows grow by half of what is acknowledged, and not into what others have yet to give up
//! (`a_share_that_jumps_is_given_out_as_acks_come`, `a_newcomer_waits_for_cuts_of_longer_round_trips`).
//! DIFFERENCE: no window below one segment: it would starve the flow. n too large for the link is counted in the stats
//! instead (`a_share_below_one_segment_is_counted`).
//! DIFFERENCE: a FIN counts only when acknowledged, and one of the data direction is enough
//! (`a_flow_ends_when_its_fin_is_acknowledged`). Idle and silent flows do not count
//! (`a_flow_that_never_sends_stops_counting`, `an_idle_flow_stops_counting_and_its_data_bring_it_back`).
//! DIFFERENCE: `coarse`: where the window field counts in more than half a segment, an edge that could only stay or jump
//! right would never let a cut happen; there it moves left by less than one unit of the field, which RFC 7323
//! §2.4 obliges senders to bear (`a_coarse_scale_still_lets_a_cut_happen`).

use super::AckPath;
use super::rtt::RttProbe;
use crate::aqm::Aqm;
use crate::packet::{TcpFlags, TcpView};
use crate::recency::Recency;
use crate::registry::{AqmConfig, ConfigError, LinkFacts};
use crate::units::{Instant, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

const DEFAULT_MSS: u16 = 536; // RFC 9293 §3.7.1
/// No option makes a segment smaller than this count: Linux' floor for what a peer may ask.
const MIN_MSS: u16 = 48;
/// Most bytes of TCP options: payload this close to the MSS is that of full segments.
const MAX_OPTIONS: u16 = 40;
const TIMESTAMPS_OPTION: u16 = 12; // RFC 7323 appendix A
const MAX_SCALE: u8 = 14; // RFC 7323 §2.3
/// The largest window there is.
const MAX_WINDOW: u64 = 0xffff << MAX_SCALE;
/// 2^32 divided by the golden ratio: multiples of it, modulo 2^32, are spread evenly however many there are.
const GOLDEN: u32 = 0x9e37_79b9;
/// A delayed ACK waits for 40 ms or more; in a round trip ten times as long that is not worth coarser steps.
const LONG_ROUND_TRIP: Span = Span::from_millis(400);
/// Denominator of `c` as an integer, so that eq. 1 has one exact floor.
const C_UNIT: f64 = 1e9;

/// Segments that a flow may be owed, or owe. A step of two, and rounding that takes nearly one: less would be forgotten
/// before it is used.
const CREDIT: u64 = 3;

// The lists of flows that count.
const SILENT: usize = 0;
const BUSY: usize = 1;

/// How a smaller share takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shrink {
    /// As ACKs advance: the right edge of the window never moves left.
    #[default]
    Advance,
    /// At once, as in the paper.
    Immediate,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// Whole segments whose mean over round trips is the share.
    #[default]
    Dither,
    /// The share in bytes, as in the paper.
    Literal,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Part of the link that is given out as payload, the paper's exploitation parameter c; the rest is for headers.
    pub c: f64,
    /// Bottleneck rate BW; default: that of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How a smaller share takes effect: "advance" (no right edge moves left) or "immediate" (the paper's).
    pub shrink: Shrink,
    /// What is written: "dither" (whole segments, on average the share) or "literal" (the share in bytes).
    pub window: Window,
    /// A flow that sent no data for this long stops counting until it does. 60 s is the least that RFC 6298 §2.5 lets a
    /// retransmission timeout be capped at: who is quiet for longer has nothing to send.
    pub idle_timeout: Span,
    /// The same for a flow that never sent data. 3 s leave room for one lost SYN (RFC 6298 §2.1: 1 s) and a long path.
    pub silent_timeout: Span,
    /// Flows with a higher index are left alone; bounds the memory (128 bytes each).
    pub max_flows: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            c: 0.95, // 000 §6.5: 0.92 to 0.97; with a 1000-byte MSS in 1052-byte frames the link is full at 0.9506
            rate: None,
            shrink: Shrink::Advance,
            window: Window::Dither,
            idle_timeout: Span::from_secs(60),
            silent_timeout: Span::from_secs(3),
            max_flows: 65_536,
        }
    }
}

impl AqmConfig for Config {
    type Aqm = Pink;

    fn validate(&self) -> Result<(), ConfigError> {
        if !(self.c > 0.0 && self.c <= 1.0) {
            return Err(ConfigError::new("c", format!("{} is not above 0 and at most 1", self.c)));
        }
        for (key, span) in [("idle_timeout", self.idle_timeout), ("silent_timeout", self.silent_timeout)] {
            if span < Span::from_secs(1) {
                return Err(ConfigError::new(key, format!("{span} is shorter than 1s, the first retransmission")));
            }
        }
        if !(1..=1 << 24).contains(&self.max_flows) {
            return Err(ConfigError::new("max_flows", format!("{} is not within 1 and 16777216", self.max_flows)));
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> Pink {
        Pink::new(self, link.rate)
    }
}

/// Counters of PINK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PinkStats {
    /// Flows that count now: n.
    pub active: u64,
    /// Of these, flows whose SYN is not answered yet.
    pub opening: u64,
    /// Flows that began to count with a SYN.
    pub started: u64,
    /// Flows that began to count again with data.
    pub woken: u64,
    /// Flows that stopped counting with FIN or RST, or because another connection took their index.
    pub ended: u64,
    /// Flows that stopped counting because they sent no data.
    pub expired: u64,
    /// ACKs whose window was made smaller.
    pub rewritten: u64,
    /// Flows left alone because their SYN was not seen: their window scale is unknown.
    pub left_alone: u64,
    /// Segments left alone because the index of their flow is beyond the table.
    pub beyond_table: u64,
    /// ACKs of flows whose share is below one segment: the window cannot hold them back any further.
    pub below_one_segment: u64,
}

impl PinkStats {
    /// Conservation: started + woken = active + ended + expired.
    ///
    /// # Errors
    /// A sentence with the numbers when they do not add up.
    pub fn check(&self) -> Result<(), String> {
        let (came, went) = (self.started + self.woken, self.ended + self.expired);
        if came == self.active + went && self.opening <= self.active {
            return Ok(());
        }
        Err(format!("PINK's flows do not add up: {came} came, {went} went, {} count", self.active))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Unseen,
    Stranger,
    Opening,
    Open,
    Closed,
}

/// How far the windows of a flow have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Flight {
    /// None was let through.
    #[default]
    None,
    /// No data of it was acknowledged.
    First,
    /// In rounds.
    Later,
}

/// State of one flow.
#[derive(Debug, Clone, Default, PartialEq)]
struct Flow {
    probe: RttProbe,
    /// The newest acknowledgment.
    acked: u32,
    /// The rightmost edge let through.
    edge: u32,
    /// The round is over when more than this is acknowledged.
    round_end: u32,
    /// Bytes the flow was given too little (or, negative, too much) in past rounds.
    credit: i32,
    /// Bytes per second in flight beyond the share.
    surplus: u32,
    /// Number of the opener's SYN.
    isn: u32,
    /// What an ACK of the outbound FIN says.
    fin: u32,
    mss: u16,
    /// Largest payload not above `mss`.
    largest: u16,
    /// Of the far side. While opening: the opener's.
    scale: Option<u8>,
    phase: Phase,
    flight: Flight,
    /// While it counts: true in the busy list, false in the silent one.
    listed: Option<bool>,
    from_inside: bool,
    fin_sent: bool,
    /// Habits of the two ends seen in this round (low bits) and in the round before (high bits).
    habits: u8,
}

/// The sender fills a window that is no whole number of segments with a short one.
const SPLITS: u8 = 0b01;
/// The receiver acknowledges several segments at once.
const STRETCHES: u8 = 0b10;

/// The algorithm.
#[derive(Debug, Clone)]
pub struct Pink {
    /// BW * c, in bits per second times [`C_UNIT`].
    capacity: u128,
    config: Config,
    flows: Vec<Flow>,
    recency: Recency<2>,
    /// That of all flows together.
    surplus: u64,
    /// When it has drained.
    surplus_until: Instant,
    stats: PinkStats,
}

/// PINK eq. 1 in integers: `capacity` is BW * c as above.
fn share(capacity: u128, rtt: Span, n: u64) -> u64 {
    let bits_per_byte_and_units = 8 * 1_000_000_000 * C_UNIT as u128;
    let share = capacity.saturating_mul(rtt.as_nanos().into()) / (bits_per_byte_and_units * u128::from(n.max(1)));
    share.min(MAX_WINDOW.into()) as u64
}

/// The window of whole segments closest below `bytes`, at least one, in units of the window field. Where such a unit is
/// a segment or more, units take the place of segments.
fn whole_segments(bytes: i64, segment: u64, unit: u64, flow: &Flow) -> u64 {
    let step = if flow.wants_pairs() && unit < segment { 2 * segment } else { segment.max(unit) };
    let window = (bytes.div_euclid(step as i64).max(0) as u64 * step).max(segment);
    let down = window / unit * unit;
    if flow.had(SPLITS) && down >= segment { down } else { window.next_multiple_of(unit) }
}

/// `a` is after `b` in sequence space.
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Flow {
    /// What a full segment carries: the largest payload seen if that is near the MSS option, else the option, less the
    /// timestamps if they are used.
    fn segment(&self, stamped: bool) -> u64 {
        let full = if self.largest.saturating_add(MAX_OPTIONS) >= self.mss {
            self.largest
        } else if stamped && self.largest > 0 {
            self.mss.saturating_sub(TIMESTAMPS_OPTION)
        } else {
            self.mss
        };
        u64::from(full.max(MIN_MSS))
    }

    fn note_mss(&mut self, option: Option<u16>) {
        if let Some(mss) = option {
            self.mss = if self.mss == 0 { mss } else { self.mss.min(mss) };
        }
    }

    /// The answer to the opener's SYN is here: scale and MSS are settled (RFC 7323 §2.2: both sides or none).
    fn settle<S: TcpView>(&mut self, answer: &S) {
        let theirs = answer.window_scale();
        let far = if self.from_inside { theirs } else { self.scale };
        self.scale = far.filter(|_| theirs.is_some() && self.scale.is_some()).map(|s| s.min(MAX_SCALE));
        self.note_mss(answer.mss());
        if self.mss == 0 {
            self.mss = DEFAULT_MSS;
        }
        self.phase = Phase::Open;
    }

    /// The edge and the round, at the first window: the error of flows that open together is spread over one segment,
    /// or all of them would step up at once.
    fn begin(&mut self, ack: u32, segment: u64, id: usize) {
        self.flight = Flight::First;
        (self.acked, self.edge, self.round_end) = (ack, ack, ack);
        let phase = (id as u32).wrapping_mul(GOLDEN);
        self.credit = ((u64::from(phase) * segment) >> 32) as i32;
    }

    /// Follows the acknowledgment number; the bytes that are newly acknowledged.
    fn note_ack(&mut self, ack: u32, segment: u64) -> u64 {
        if after(ack, self.acked.wrapping_add(segment as u32)) {
            self.habits |= STRETCHES;
        }
        let newly = if after(ack, self.acked) { ack.wrapping_sub(self.acked) } else { 0 };
        self.acked = self.acked.wrapping_add(newly);
        u64::from(newly)
    }

    /// The window in force; `None` if there was none.
    fn held(&self) -> Option<u64> {
        (self.flight != Flight::None).then(|| u64::from(self.edge.wrapping_sub(self.acked)))
    }

    /// How much of the window `wanted` may be given now. `before` is the window before this ACK, if there was one, which
    /// acknowledges `newly`; `free` is the share less the surplus of others, if there is any.
    fn room(before: Option<u64>, newly: u64, wanted: u64, free: Option<u64>, segment: u64) -> u64 {
        match (before, free) {
            (None, None) => wanted,
            (None, Some(free)) => free,
            (Some(before), Some(free)) => before.max(free.min(before + newly / 2)),
            (Some(before), None) if wanted <= before + 2 * CREDIT * segment => wanted,
            (Some(before), None) => before + newly / 2,
        }
    }

    /// Bytes in flight beyond `allowed`, seen from an ACK.
    fn beyond(&self, ack: u32, allowed: u64) -> u64 {
        let sent = self.probe.outbound_end().filter(|end| after(*end, ack));
        sent.map_or(0, |end| u64::from(end.wrapping_sub(ack)).saturating_sub(allowed))
    }

    /// Ends the round if data beyond its first edge is acknowledged, and carries over what it gave too little.
    fn turn_round(&mut self, ack: u32, share: u64, quantum: u64) {
        if !after(ack, self.round_end) {
            return;
        }
        if self.flight == Flight::Later {
            let given = i64::from(self.edge.wrapping_sub(self.round_end) as i32);
            let bound = (CREDIT * quantum) as i64;
            self.credit = (i64::from(self.credit) + share as i64 - given).clamp(-bound, bound) as i32;
        }
        self.flight = Flight::Later;
        self.round_end = self.edge;
        self.habits = (self.habits << 2) & 0b1100;
    }

    /// The whole round trip; before it is known, its WAN half.
    fn round_trip(&self) -> Option<Span> {
        self.probe.whole().or(self.probe.wan())
    }

    /// True if steps of two segments spare the flow the wait of delayed ACKs.
    fn wants_pairs(&self) -> bool {
        self.had(STRETCHES) && self.round_trip().is_some_and(|rtt| rtt < LONG_ROUND_TRIP)
    }

    /// True if the habit showed in the round before.
    fn had(&self, habit: u8) -> bool {
        self.habits >> 2 & habit != 0
    }

    /// Remembers the edge of a window that goes through.
    fn let_through(&mut self, ack: u32, window: u64) {
        let edge = ack.wrapping_add(window as u32);
        if after(edge, self.edge) {
            self.edge = edge;
        }
    }
}

impl Pink {
    /// PINK for a link of `rate`, unless the configuration says another.
    pub fn new(config: &Config, rate: Rate) -> Self {
        let bps = config.rate.unwrap_or(rate).as_bps();
        Self {
            capacity: u128::from(bps) * (config.c * C_UNIT + 0.5) as u128,
            config: config.clone(),
            flows: Vec::new(),
            recency: Recency::new(),
            surplus: 0,
            surplus_until: Instant::ZERO,
            stats: PinkStats::default(),
        }
    }

    /// Counters since the start.
    pub fn stats(&self) -> &PinkStats {
        &self.stats
    }

    /// The number of flows that count: n of eq. 1.
    pub fn active(&self) -> u64 {
        self.stats.active
    }

    /// The flow of a segment; the table grows when a new index first appears.
    fn index<S: TcpView>(&mut self, segment: &S) -> Option<usize> {
        let id = segment.flow().0;
        if id >= self.config.max_flows {
            self.stats.beyond_table += 1;
            return None;
        }
        let id = id as usize;
        if id >= self.flows.len() {
            self.flows.resize_with(id + 1, Flow::default);
        }
        Some(id)
    }

    /// What both directions have in common: expiry, opening, RST. The flow, if it is to be dealt with further.
    fn arrive<S: TcpView>(&mut self, segment: &S, outbound: bool, now: Instant) -> Option<usize> {
        self.expire(now);
        let id = self.index(segment)?;
        let flags = segment.flags();
        let opens = flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK) && !flags.has(TcpFlags::RST);
        if opens {
            self.on_syn(id, segment, outbound, now);
        }
        match self.flows[id].phase {
            Phase::Unseen => {
                self.flows[id].phase = Phase::Stranger;
                self.stats.left_alone += 1;
                None
            }
            Phase::Stranger | Phase::Closed => None,
            _ if flags.has(TcpFlags::RST) => {
                self.end(id);
                None
            }
            _ => Some(id),
        }
    }

    /// A SYN without ACK: a new connection, the same one again, or the answer of a simultaneous open.
    fn on_syn<S: TcpView>(&mut self, id: usize, segment: &S, from_inside: bool, now: Instant) {
        let flow = &self.flows[id];
        let known = matches!(flow.phase, Phase::Opening | Phase::Open);
        if known && flow.from_inside == from_inside && flow.isn == segment.seq() {
            return;
        }
        if flow.phase == Phase::Opening && flow.from_inside != from_inside {
            self.answer(id, segment);
            return;
        }
        self.end(id);
        let mut flow = Flow { phase: Phase::Opening, from_inside, isn: segment.seq(), ..Flow::default() };
        flow.scale = segment.window_scale();
        flow.note_mss(segment.mss());
        self.flows[id] = flow;
        self.list(id, SILENT, now);
        self.stats.started += 1;
    }

    /// The opener's SYN is answered.
    fn answer<S: TcpView>(&mut self, id: usize, segment: &S) {
        if self.flows[id].listed.is_some() {
            self.stats.opening -= 1;
        }
        self.flows[id].settle(segment);
    }

    /// A SYN-ACK of the side that did not open.
    fn note_answer<S: TcpView>(&mut self, id: usize, segment: &S, outbound: bool) {
        let answers = segment.flags().has(TcpFlags::SYN.with(TcpFlags::ACK));
        if answers && self.flows[id].phase == Phase::Opening && self.flows[id].from_inside != outbound {
            self.answer(id, segment);
        }
    }

    fn list(&mut self, id: usize, list: usize, now: Instant) {
        self.flows[id].listed = Some(list == BUSY);
        self.recency.push(list, id as u32, now);
        self.stats.active += 1;
        self.stats.opening += u64::from(self.flows[id].phase == Phase::Opening);
    }

    /// Stops counting a flow; false if it did not count.
    fn unlist(&mut self, id: usize) -> bool {
        let Some(busy) = self.flows[id].listed.take() else { return false };
        self.recency.remove(usize::from(busy), id as u32);
        self.stats.active -= 1;
        self.stats.opening -= u64::from(self.flows[id].phase == Phase::Opening);
        true
    }

    fn end(&mut self, id: usize) {
        if self.unlist(id) {
            self.stats.ended += 1;
        }
        self.set_surplus(id, 0);
        self.flows[id].phase = Phase::Closed;
    }

    fn expire(&mut self, now: Instant) {
        for (list, timeout) in [(SILENT, self.config.silent_timeout), (BUSY, self.config.idle_timeout)] {
            while let Some(id) = self.recency.expired(list, now, timeout) {
                self.unlist(id as usize);
                self.set_surplus(id as usize, 0);
                self.stats.expired += 1;
            }
        }
    }

    /// The flow sends data: it counts, and its time begins anew.
    fn on_data<S: TcpView>(&mut self, id: usize, segment: &S, now: Instant) {
        let woken = !self.unlist(id);
        self.list(id, BUSY, now);
        self.stats.woken += u64::from(woken);
        let flow = &mut self.flows[id];
        let payload = segment.payload_len().min(u16::MAX.into()) as u16;
        if payload <= flow.mss {
            flow.largest = flow.largest.max(payload); // a larger one is several that were merged
        }
        let full = flow.segment(segment.timestamps().is_some());
        if u64::from(payload) < full && !segment.flags().has(TcpFlags::FIN) {
            flow.habits |= SPLITS;
        }
    }

    /// The share of a flow: of those that count, and of one that would if it sent now.
    fn share_of(&self, flow: &Flow) -> Option<u64> {
        let rtt = flow.round_trip()?;
        Some(share(self.capacity, rtt, self.stats.active + u64::from(flow.listed.is_none())))
    }

    fn set_surplus(&mut self, id: usize, rate: u32) {
        let old = std::mem::replace(&mut self.flows[id].surplus, rate);
        self.surplus = self.surplus - u64::from(old) + u64::from(rate);
    }

    /// Brings the surplus of a flow up to date, and tells that of the others, in bytes of its round trip.
    fn note_surplus(&mut self, id: usize, ack: u32, allowed: u64, now: Instant) -> u64 {
        let flow = &self.flows[id];
        let rtt = flow.round_trip().unwrap_or(Span::ZERO);
        let ns = u128::from(rtt.as_nanos().max(1));
        let rate = u128::from(flow.beyond(ack, allowed)) * 1_000_000_000 / ns;
        self.set_surplus(id, rate.min(u32::MAX.into()) as u32);
        if rate > 0 {
            self.surplus_until = self.surplus_until.max(now + rtt);
        }
        if now >= self.surplus_until {
            return 0;
        }
        let others = u128::from(self.surplus - u64::from(self.flows[id].surplus));
        (others * ns / 1_000_000_000).min(MAX_WINDOW.into()) as u64
    }

    /// Clamps the window of an inbound segment that acknowledges something.
    fn clamp<S: TcpView>(&mut self, id: usize, segment: &mut S, now: Instant) {
        let share = self.share_of(&self.flows[id]);
        let full = self.flows[id].segment(segment.timestamps().is_some());
        let allowed = share.unwrap_or(0) + CREDIT * full;
        let surplus = self.note_surplus(id, segment.ack(), allowed, now);
        let flow = &mut self.flows[id];
        let syn = segment.flags().has(TcpFlags::SYN);
        let scale = if syn { 0 } else { flow.scale.unwrap_or(0) }; // RFC 7323 §2.2: never in a SYN
        let (ack, field) = (segment.ack(), segment.window());
        let (unit, told) = (1u64 << scale, u64::from(field) << scale);
        let before = flow.held();
        if before.is_none() {
            flow.begin(ack, full, id);
        }
        let newly = flow.note_ack(ack, full);
        flow.let_through(ack, 0); // a probe may go beyond the edge
        let Some(share) = share.filter(|_| told > 0) else {
            return flow.let_through(ack, told);
        };
        self.stats.below_one_segment += u64::from(share < full);
        flow.turn_round(ack, share, full.max(unit));
        let mut granted = self.config.window.grant(flow, share, full, unit);
        if self.config.window == Window::Dither {
            let free = (surplus > 0).then(|| share.saturating_sub(surplus));
            let room = Flow::room(before, newly, granted, free, full);
            granted = granted.min(room.max(full).next_multiple_of(unit));
        }
        let allowed = self.config.shrink.allow(flow, ack, granted, full, unit);
        let written = allowed.min(told);
        if written < told {
            segment.set_window((written >> scale) as u16);
            self.stats.rewritten += 1;
        }
        flow.let_through(ack, written);
    }
}

impl Window {
    /// The window a flow's share comes to now: a multiple of `unit`, at least one segment.
    fn grant(self, flow: &Flow, share: u64, segment: u64, unit: u64) -> u64 {
        match self {
            Self::Literal if share / unit * unit < segment => segment.next_multiple_of(unit),
            Self::Literal => share / unit * unit,
            Self::Dither => {
                let share = if flow.flight == Flight::First { share / 2 } else { share };
                whole_segments(share as i64 + i64::from(flow.credit), segment, unit, flow)
            }
        }
    }
}

impl Shrink {
    /// `granted`, or more if the right edge would move left.
    fn allow(self, flow: &Flow, ack: u32, granted: u64, segment: u64, unit: u64) -> u64 {
        if self == Self::Immediate || !after(flow.edge, ack) {
            return granted;
        }
        let held = u64::from(flow.edge.wrapping_sub(ack));
        let coarse = 2 * unit > segment;
        granted.max(if coarse { held / unit * unit } else { held.next_multiple_of(unit) })
    }
}

impl AckPath for Pink {
    const ACTIVE: bool = true;

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let Some(id) = self.arrive(segment, true, now) else { return };
        self.flows[id].probe.outbound(segment, now);
        self.note_answer(id, segment, true);
        if segment.payload_len() > 0 {
            self.on_data(id, segment, now);
        }
        if segment.flags().has(TcpFlags::FIN) {
            self.flows[id].fin = segment.seq().wrapping_add(segment.payload_len()).wrapping_add(1);
            self.flows[id].fin_sent = true;
        }
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let Some(id) = self.arrive(segment, false, now) else { return };
        self.flows[id].probe.inbound(segment, now);
        self.note_answer(id, segment, false);
        let flow = &self.flows[id];
        if !segment.flags().has(TcpFlags::ACK) || flow.phase != Phase::Open {
            return;
        }
        if flow.fin_sent && !after(flow.fin, segment.ack()) {
            return self.end(id);
        }
        self.clamp(id, segment, now);
    }
}

impl Aqm for Pink {}
