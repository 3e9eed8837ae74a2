//! The state of one flow of PINK: its windows, its rounds, the habits of its sender and receiver, and the rate that it
//! is measured to use.

use super::config::{Shrink, Window};
use super::place::Place;
use super::share::{MAX_WINDOW, rate_of};
use super::steps::stride;
use crate::allocation::ratio;
use crate::packet::{TcpFlags, TcpView};
use crate::rtt::RttProbe;
use crate::units::{Instant, Span};

pub(super) const DEFAULT_MSS: u16 = 536; // RFC 9293 §3.7.1
/// Least size of a full segment, whatever the MSS option says: the least MSS that Linux accepts from a peer.
const MIN_MSS: u16 = 48;
/// Largest number of bytes of TCP options: a payload so close to the MSS is that of a full segment.
const MAX_OPTIONS: u16 = 40;
const TIMESTAMPS_OPTION: u16 = 12; // RFC 7323 appendix A
const MAX_SCALE: u8 = 14; // RFC 7323 §2.3
/// 2^32 divided by the golden ratio. Its multiples, modulo 2^32, are spread evenly, however many there are.
const GOLDEN: u32 = 0x9e37_79b9;
/// From this round trip time on, windows are not in steps of two segments: a delayed ACK waits for 40 ms or more, which
/// matters little in a round trip ten times as long.
const LONG_ROUND_TRIP: Span = Span::from_millis(400);
/// An RST further than this from the data seen is not credible. The range covers most windows and is 1 in 2048 of all
/// sequence numbers.
const RST_REACH: u32 = 1 << 20;

/// What is known of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Unseen,
    Stranger,
    Opening,
    Open,
    Closed,
}

/// How far the windows of a flow have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Flight {
    /// No window was let through.
    #[default]
    None,
    /// A window was let through, but no data sent in it were acknowledged.
    First,
    /// Data were acknowledged: the flow has rounds, which settle its windows.
    Later,
}

/// The list in which a flow is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// The flow has sent no data yet.
    Silent = 0,
    /// The flow sends data.
    Busy = 1,
    /// The flow sent data, but not lately, so others use its share ("demand" and "max-min").
    Quiet = 2,
    /// The flow sends data over a long round trip ("demand" only).
    Far = 3,
}

/// With half of the LAN half, by how much later data may pass than the least LAN half after the ACK that lets them go.
const MOST_LATE: Span = Span::from_millis(1);
/// A round counts as at most so many round trips: a flow that paused is not owed what it did not ask for.
const LONGEST_ROUND: u64 = 4;
/// Binary logarithm of the units in which the time of rounds is kept, in nanoseconds.
const BEAT: u32 = 18;

/// A unit of the window field is coarse if it is more than this part of a segment.
pub(super) const COARSE: u64 = 3;

/// A window that grows does so by at least an eighth of what is acknowledged, even without room for a burst.
const SLOWEST: u64 = 8;

// Marks. Of the four lowest bits, two are the habits of this round and two those of the round before.
/// The sender ends a window which is not a whole number of segments with a short segment.
pub(super) const SPLITS: u16 = 1;
/// The receiver acknowledges several segments at once.
pub(super) const STRETCHES: u16 = 1 << 1;
const HABITS: u16 = 0b1111;
/// The side that sends through the bottleneck opened the connection.
pub(super) const FROM_INSIDE: u16 = 1 << 4;
/// The FIN of the flow's sender was seen.
pub(super) const FIN_SENT: u16 = 1 << 5;
/// The flow cannot use its share: the paper's state *bad*.
pub(super) const LACKING: u16 = 1 << 6;
/// A measurement interval has begun.
const MEASURING: u16 = 1 << 7;
/// In this interval it is not known yet whether the sender fills its window.
const ASKED: u16 = 1 << 8;
/// In this interval the sender filled its window.
const FILLED: u16 = 1 << 9;
/// The window of this interval was written by PINK and not by the receiver.
const OURS: u16 = 1 << 10;
/// The flow's share at the last ACK was below one segment.
pub(super) const SMALL: u16 = 1 << 11;
/// The handshake of the flow was seen.
pub(super) const KNOWN: u16 = 1 << 12;
/// The flow's window is growing to a larger share.
pub(super) const GROWS: u16 = 1 << 13;

/// Where [`Flight`] is in the marks.
const FLIGHT: u32 = 14;

// Further marks, in the high half of `scale_and_more`.
/// The sender was seen to split segments.
pub(super) const SPLITTER: u8 = 1 << 4;
/// The last data were a segment which was not full although the window had room for half a segment more: the sender had
/// nothing more to send.
pub(super) const SHORT: u8 = 1 << 5;
/// PINK's share, and not the receiver's window, limits the last window that was let through.
pub(super) const HELD: u8 = 1 << 6;
/// The flow is open and idle, and in no list.
pub(super) const ASLEEP: u8 = 1 << 7;

/// The state of one flow. It fills two adjacent cache lines, which processors fetch as a pair.
#[derive(Debug, Clone, Default, PartialEq)]
#[repr(align(128))]
pub(super) struct Flow {
    pub probe: RttProbe,
    pub place: Place,
    /// Highest acknowledgment number seen.
    pub acked: u32,
    /// Rightmost right edge that was let through.
    pub edge: u32,
    /// The round ends when data beyond this number are acknowledged.
    pub round_end: u32,
    /// Rate in bytes per second of the data in flight beyond the share.
    pub surplus: u32,
    /// Sequence number of the opener's SYN.
    pub isn: u32,
    /// Bytes per second that the flow is measured to use; part of the sum of claims while the flow is lacking and
    /// counts.
    pub claim: u32,
    /// When the measurement interval began, or the flow was closed; see [`coarse`].
    pub since: u32,
    /// Highest acknowledgment number at the beginning of the measurement interval.
    pub since_acked: u32,
    /// Right edge at the beginning of the measurement interval.
    pub since_edge: u32,
    /// Bytes the flow was given too little (or, negative, too much) in past rounds.
    pub credit: i16,
    pub mss: u16,
    /// Largest payload not above `mss`.
    pub largest: u16,
    pub marks: u16,
    /// The low half: window scale of the far side (while opening: that of the opener) plus one; zero without the option.
    /// The high half: further marks.
    pub scale_and_more: u8,
    pub phase: Phase,
    /// The list in which the flow is; `None` if the flow neither counts nor is expected to send.
    pub listed: Option<List>,
}

/// Converts a time to units of 4096 ns modulo 2^32, for differences up to 4.8 hours.
pub(super) fn coarse(now: Instant) -> u32 {
    (now.as_nanos() >> 12) as u32
}

/// Returns a time in units of 2^18 ns (262 us), modulo 2^16, for rounds of up to 17 s.
pub(super) fn beat(now: Instant) -> u16 {
    (now.as_nanos() >> BEAT) as u16
}

/// Converts a span to units of 4096 ns, at most 2^29 - 1 of them.
fn coarse_span(span: Span) -> u32 {
    (span.as_nanos() >> 12).min(u64::from(u32::MAX >> 3)) as u32
}

/// Returns true if `a` is after `b` in sequence space.
pub(super) fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Rounds `bytes` up to a multiple of `unit`, which is a power of two.
pub(super) fn up(bytes: u64, unit: u64) -> u64 {
    down(bytes + (unit - 1), unit)
}

/// Rounds `bytes` down to a multiple of `unit`, which is a power of two.
pub(super) fn down(bytes: u64, unit: u64) -> u64 {
    bytes & !(unit - 1)
}

/// Returns the largest window of whole segments up to `bytes`, at least one segment, rounded to units of the window
/// field. If a unit is a segment or more, windows are whole units.
#[inline]
pub(super) fn whole_segments(bytes: i64, segment: u64, unit: u64, flow: &Flow) -> u64 {
    let step = if flow.wants_pairs() && unit < segment { 2 * segment } else { segment.max(unit) };
    let window = (bytes.div_euclid(step as i64).max(0) as u64 * step).max(segment);
    in_units(window, segment, unit, flow)
}

/// Rounds a window of whole segments to units of the window field.
pub(super) fn in_units(window: u64, segment: u64, unit: u64, flow: &Flow) -> u64 {
    let less = down(window, unit);
    if flow.had(SPLITS) && less >= segment { less } else { up(window, unit) }
}

impl Flow {
    /// Returns the bytes of a step of one segment of this flow.
    pub fn stride(&self, segment: u64, unit: u64) -> u64 {
        stride(segment, unit, self.had(SPLITS))
    }

    pub fn has(&self, mark: u16) -> bool {
        self.marks & mark != 0
    }

    pub fn set(&mut self, mark: u16, to: bool) {
        self.marks = if to { self.marks | mark } else { self.marks & !mark };
    }

    pub fn is(&self, mark: u8) -> bool {
        self.scale_and_more & mark != 0
    }

    pub fn mark(&mut self, mark: u8, to: bool) {
        self.scale_and_more = if to { self.scale_and_more | mark } else { self.scale_and_more & !mark };
    }

    pub fn flight(&self) -> Flight {
        match self.marks >> FLIGHT {
            0 => Flight::None,
            1 => Flight::First,
            _ => Flight::Later,
        }
    }

    pub fn set_flight(&mut self, flight: Flight) {
        self.marks = self.marks & ((1 << FLIGHT) - 1) | (flight as u16) << FLIGHT;
    }

    /// Returns true if the flow sends data.
    pub fn is_busy(&self) -> bool {
        matches!(self.listed, Some(List::Busy | List::Far))
    }

    /// Returns true if all that the flow sent is acknowledged by `ack`, and it had nothing more to send.
    pub fn is_done(&self, ack: u32) -> bool {
        let ended = self.has(FIN_SENT);
        let data_end = self.probe.outbound_end().map(|end| end.wrapping_sub(ended.into()));
        (ended || self.is(SHORT)) && data_end == Some(ack)
    }

    /// Returns true if the flow has sent all that its window lets it send, and the window was written by PINK.
    pub fn is_held(&self, stamped: bool) -> bool {
        let end = self.probe.outbound_end().unwrap_or(self.acked);
        self.is(HELD) && after(end.wrapping_add(self.segment(stamped) as u32), self.edge)
    }

    pub fn scale(&self) -> Option<u8> {
        (self.scale_and_more & 0xf).checked_sub(1)
    }

    pub fn set_scale(&mut self, scale: Option<u8>) {
        self.scale_and_more = self.scale_and_more & 0xf0 | scale.map_or(0, |s| s.min(MAX_SCALE) + 1);
    }

    /// Returns the payload of a full segment: the largest payload seen if that is near the MSS option, otherwise the
    /// option less the timestamps if they are used.
    pub fn segment(&self, stamped: bool) -> u64 {
        let full = if self.largest.saturating_add(MAX_OPTIONS) >= self.mss {
            self.largest
        } else if stamped {
            self.mss.saturating_sub(TIMESTAMPS_OPTION)
        } else {
            self.mss
        };
        u64::from(full.max(MIN_MSS))
    }

    pub fn note_mss(&mut self, option: Option<u16>) {
        if let Some(mss) = option {
            self.mss = if self.mss == 0 { mss } else { self.mss.min(mss) };
        }
    }

    /// Takes scale and MSS from the answer to the opener's SYN (RFC 7323 §2.2: windows are scaled by both sides or
    /// none).
    pub fn settle<S: TcpView>(&mut self, answer: &S) {
        let theirs = answer.window_scale();
        let far = if self.has(FROM_INSIDE) { theirs } else { self.scale() };
        self.set_scale(far.filter(|_| theirs.is_some() && self.scale().is_some()));
        self.note_mss(answer.mss());
        if self.mss == 0 {
            self.mss = DEFAULT_MSS;
        }
        self.phase = Phase::Open;
        self.set(KNOWN, true);
    }

    /// Notes data of the flow: their size, whether the sender splits segments, and whether it fills the measured
    /// window.
    pub fn note_data<S: TcpView>(&mut self, segment: &S, exact: bool, now: Instant) {
        let payload = segment.payload_len().min(u16::MAX.into()) as u16;
        if payload <= self.mss {
            self.largest = self.largest.max(payload); // a larger one is several that were merged
        }
        let full = self.segment(segment.timestamps().is_some());
        let short = u64::from(payload) < full;
        if short && !segment.flags().has(TcpFlags::FIN) {
            self.marks |= SPLITS;
            self.mark(SPLITTER, true);
        }
        let end = segment.seq().wrapping_add(segment.payload_len());
        let room = self.edge.wrapping_sub(end) as i32;
        self.mark(SHORT, short && room >= i32::from(self.mss / 2));
        if self.has(ASKED) {
            self.look(segment, full, exact, now);
        }
    }

    /// Sets edge and round at the first window. The initial errors of the flows are spread over one segment, so that
    /// flows which open together do not step up at once.
    pub fn begin(&mut self, ack: u32, segment: u64, id: usize) {
        self.set_flight(Flight::First);
        (self.acked, self.edge, self.round_end) = (ack, ack, ack);
        let phase = (id as u32).wrapping_mul(GOLDEN);
        self.credit = ((u64::from(phase) * segment) >> 32).min(i16::MAX as u64) as i16;
    }

    /// Follows the acknowledgment number; returns the bytes that are newly acknowledged.
    pub fn note_ack(&mut self, ack: u32, segment: u64) -> u64 {
        if after(ack, self.acked.wrapping_add(segment as u32)) {
            self.marks |= STRETCHES;
        }
        let newly = if after(ack, self.acked) { ack.wrapping_sub(self.acked) } else { 0 };
        self.acked = self.acked.wrapping_add(newly);
        u64::from(newly)
    }

    /// Returns the current window in bytes; `None` before the first window.
    pub fn held(&self) -> Option<u64> {
        (self.flight() != Flight::None).then(|| u64::from(self.edge.wrapping_sub(self.acked)))
    }

    /// Returns the bytes by which the window `before` may grow towards `target`, at an ACK of `newly` bytes. What is
    /// missing in this round is spread over the data which the round will still acknowledge, so that data arrive at the
    /// rate of the new share from the first of these ACKs on. The limit is `burst` per round, or `newly` / [`SLOWEST`]
    /// if that is more.
    pub fn unclocked(&self, before: u64, newly: u64, target: u64, burst: u64) -> u64 {
        let given = u64::from(self.edge.wrapping_sub(self.round_end));
        let left = (u64::from(self.round_end.wrapping_sub(self.acked)) + newly).min(before).max(1);
        let owed = target.saturating_sub(given).saturating_sub(left);
        let most = (newly / SLOWEST).max(newly * burst.min(MAX_WINDOW) / before.max(1));
        (newly * owed / left).min(owed).min(most)
    }

    /// Returns the bytes in flight beyond `allowed` at an ACK.
    pub fn beyond(&self, ack: u32, allowed: u64) -> u64 {
        let sent = self.probe.outbound_end().filter(|end| after(*end, ack));
        sent.map_or(0, |end| u64::from(end.wrapping_sub(ack)).saturating_sub(allowed))
    }

    /// Returns the bytes that are due in a round which ends now: what the rate of the share gives in the time that the
    /// round took, less the wait in the queue here beyond what is borne. A round takes longer than the round trip if the
    /// receiver delays ACKs. In the round of a first flight it is the share: before it, the flow may have waited.
    ///
    /// Over a long round trip what the queue was when the round began is long past, and half of the time is added.
    pub fn due(&self, share: u64, rtt: Span, beyond: Span, now: Instant) -> u64 {
        if self.flight() == Flight::First {
            return share;
        }
        let nanos = rtt.as_nanos().max(1);
        let took = u64::from(beat(now).wrapping_sub(self.place.round_at)) << BEAT;
        let took = took.saturating_sub(beyond.as_nanos()).clamp(nanos / 2, LONGEST_ROUND * nanos);
        ratio(share, if rtt >= LONG_ROUND_TRIP { took.midpoint(nanos) } else { took }, nanos)
    }

    /// Ends the round if data beyond its first edge are acknowledged, and carries over the error of the round, at most `most`
    /// bytes, unless `settled`. Returns what was due in the round.
    pub fn turn_round(
        &mut self,
        ack: u32,
        most: u64,
        settled: bool,
        now: Instant,
        due: impl Fn(&mut Self) -> u64,
    ) -> Option<u64> {
        if !after(ack, self.round_end) {
            return None;
        }
        let due = due(self);
        self.place.round_at = beat(now);
        if self.flight() == Flight::Later && !settled {
            let given = i64::from(self.edge.wrapping_sub(self.round_end) as i32);
            let bound = (most as i64).min(i16::MAX.into());
            self.credit = (i64::from(self.credit) + due as i64 - given).clamp(-bound, bound) as i16;
        }
        self.set_flight(Flight::Later);
        self.round_end = self.edge;
        self.marks = (self.marks & !HABITS) | ((self.marks << 2) & 0b1100);
        Some(due)
    }

    /// Begins anew after a pause: nothing is owed for it.
    pub fn wake(&mut self) {
        self.forget_interval();
        self.set_flight(Flight::First);
        (self.round_end, self.credit) = (self.acked, 0);
    }

    /// Returns the whole round trip time; before it is known, its WAN half.
    pub fn round_trip(&self) -> Option<Span> {
        self.probe.whole().or(self.probe.wan())
    }

    /// Returns true if windows in steps of two segments avoid the wait for delayed ACKs.
    pub fn wants_pairs(&self) -> bool {
        self.had(STRETCHES) && self.round_trip().is_some_and(|rtt| rtt < LONG_ROUND_TRIP)
    }

    /// Returns true if the flow sends data, or did so until its timeout.
    pub fn sends(&self) -> bool {
        self.listed.is_some_and(|list| list != List::Silent)
    }

    /// Returns true if the sender or receiver showed this habit in the round before.
    pub fn had(&self, habit: u16) -> bool {
        (self.marks & HABITS) >> 2 & habit != 0
    }

    /// Remembers the right edge of a window that is let through.
    pub fn let_through(&mut self, ack: u32, window: u64) {
        let edge = ack.wrapping_add(window as u32);
        if after(edge, self.edge) {
            self.edge = edge;
        }
    }

    /// Follows ACKs after the end of the flow: if the flow turns out to be open, its right edge must be known.
    pub fn pass_closed<S: TcpView>(&mut self, segment: &S) {
        let scale = if segment.flags().has(TcpFlags::SYN) { 0 } else { self.scale().unwrap_or(0) };
        if self.flight() != Flight::None && self.believes_ack(segment) {
            self.note_ack(segment.ack(), u64::from(u32::MAX >> 1));
            self.let_through(segment.ack(), u64::from(segment.window()) << scale);
        }
    }

    /// Returns false for an acknowledgment of data that never passed. A SYN-ACK may acknowledge data of a SYN (RFC
    /// 7413).
    pub fn believes_ack<S: TcpView>(&self, segment: &S) -> bool {
        let flags = segment.flags();
        !flags.has(TcpFlags::ACK)
            || flags.has(TcpFlags::SYN)
            || self.probe.outbound_end().is_some_and(|end| !after(segment.ack(), end))
    }

    /// Returns true for an RST which the other side may accept (RFC 9293 §3.10.7): it refuses a SYN, or is near the
    /// data.
    pub fn believes_rst<S: TcpView>(&self, segment: &S, outbound: bool) -> bool {
        if self.phase == Phase::Opening && self.has(FROM_INSIDE) != outbound {
            return segment.flags().has(TcpFlags::ACK) && segment.ack() == self.isn.wrapping_add(1);
        }
        let end = if outbound { self.probe.outbound_end() } else { self.probe.inbound_end() };
        end.is_none_or(|end| segment.seq().wrapping_sub(end.wrapping_sub(RST_REACH)) <= 2 * RST_REACH)
    }

    /// Returns true for data which prove that a closed flow is open: they are new, and sent after its sender knew the
    /// end.
    pub fn reopens<S: TcpView>(&self, segment: &S, now: Instant) -> bool {
        let end = segment.seq().wrapping_add(segment.payload_len());
        let new = segment.payload_len() > 0 && self.probe.outbound_end().is_none_or(|seen| after(end, seen));
        let rtt = self.round_trip().unwrap_or(Span::from_secs(1));
        new && coarse(now).wrapping_sub(self.since) > coarse_span(rtt)
    }
}

/// Measuring what a flow uses, and whether PINK's window is what holds it back.
///
/// An interval begins with an ACK that acknowledges `since_acked` and opens the window up to `since_edge`. The data
/// which that ACK lets go passes the gateway a LAN half later. If by then the flow has sent up to the edge, but for a
/// segment or two, the window holds it back. Later would be too late: then data of later windows are seen as well, and
/// a sender with a smaller window of its own that sends in bursts seems to fill this one. If jitter makes it too early,
/// the rate still shows: a flow that uses what it gets, less an eighth, is not lacking.
impl Flow {
    fn elapsed(&self, now: Instant) -> u32 {
        coarse(now).wrapping_sub(self.since)
    }

    fn look<S: TcpView>(&mut self, segment: &S, full: u64, exact: bool, now: Instant) {
        let Some(lan) = self.probe.lan().filter(|lan| self.elapsed(now) >= coarse_span(*lan)) else { return };
        let end = segment.seq().wrapping_add(segment.payload_len());
        if exact && self.probe.outbound_end() != Some(end) {
            return; // a retransmission tells nothing of the window
        }
        let filled = if exact {
            after(segment.seq().wrapping_add(full as u32), self.since_edge)
        } else {
            let end = self.probe.outbound_end().unwrap_or(self.since_edge);
            !after(self.since_edge, end.wrapping_add(2 * full as u32))
        };
        // The least LAN half is that of small packets: what was sent before the ACK may pass a little later.
        let late = (lan.div(2) + MOST_LATE).min(self.round_trip().map_or(Span::ZERO, |rtt| rtt.div(16)));
        if exact && !filled && self.elapsed(now) < coarse_span(lan + late) {
            return;
        }
        self.set(ASKED, false);
        self.set(FILLED, filled);
    }

    pub fn is_measuring(&self) -> bool {
        self.has(MEASURING)
    }

    /// Begins an interval with the ACK just dealt with; `ours` if its window was written by PINK.
    ///
    /// With `before`, the edge before this ACK, the answer is exact: the first data that the ACK lets go begin where the
    /// sender had stopped. Without it, the answer is that of "max-min".
    pub fn ask(&mut self, before: Option<u32>, ours: bool, now: Instant) {
        (self.since, self.since_acked, self.since_edge) = (coarse(now), self.acked, before.unwrap_or(self.edge));
        self.marks = (self.marks & !(FILLED | OURS)) | MEASURING | ASKED;
        self.set(OURS, ours);
    }

    /// Returns the window `granted`, made smaller by less than a segment if it would let a sender that splits segments
    /// send a tail of less than half a segment.
    pub fn without_tail(&self, ack: u32, granted: u64, segment: u64, unit: u64) -> u64 {
        let end = self.probe.outbound_end().unwrap_or(ack);
        let right = ack.wrapping_add(granted as u32);
        let far = self.round_trip().is_none_or(|rtt| rtt >= LONG_ROUND_TRIP); // a tail is little of a long round
        if unit == 1 || far || !self.is(SPLITTER) || !after(right, end) {
            return granted;
        }
        let tail = u64::from(right.wrapping_sub(end)) % segment;
        let less = granted.saturating_sub(up(tail, unit));
        if tail == 0 || 2 * tail >= segment || less < segment { granted } else { less }
    }

    /// Discards the interval: after a pause it would measure the pause.
    pub fn forget_interval(&mut self) {
        self.marks &= !(MEASURING | ASKED | FILLED | OURS);
    }

    /// What the interval shows, if it is over: the bytes per second that were acknowledged, and
    /// whether the flow could use more.
    pub fn answer(&self, full: u64, rtt: Span, now: Instant) -> Option<(u32, bool)> {
        if !self.has(MEASURING) {
            return None;
        }
        let (elapsed, round) = (self.elapsed(now), coarse_span(rtt).max(1));
        if elapsed < round + round / 4 || self.has(ASKED) && elapsed < 4 * round {
            return None;
        }
        let used =
            rate_of(self.acked.wrapping_sub(self.since_acked).into(), Span::from_nanos(u64::from(elapsed) << 12));
        // By a quarter, as in start-up, and by more than the segment that chance puts into this interval or the next.
        let growing = u64::from(used) * 4 > (u64::from(self.claim) + u64::from(rate_of(full, rtt))) * 5;
        Some((used, self.marks & (FILLED | OURS) == FILLED | OURS || growing))
    }
}

impl Window {
    /// Returns the window for a flow's share at this ACK: a multiple of `unit`, at least one segment.
    #[inline]
    pub(super) fn grant(self, flow: &Flow, share: u64, segment: u64, unit: u64) -> u64 {
        match self {
            Self::Literal if down(share, unit) < segment => up(segment, unit),
            Self::Literal => down(share, unit),
            Self::Dither | Self::Steady => {
                let share = if flow.flight() == Flight::First { share / 2 } else { share };
                whole_segments(share as i64 + i64::from(flow.credit), segment, unit, flow)
            }
        }
    }
}

impl Shrink {
    /// Returns `granted`, or a larger window if the right edge would otherwise move left.
    pub(super) fn allow(self, flow: &Flow, ack: u32, granted: u64, segment: u64, unit: u64) -> u64 {
        if self == Self::Immediate || !after(flow.edge, ack) {
            return granted;
        }
        let held = u64::from(flow.edge.wrapping_sub(ack));
        let coarse = 2 * unit > segment;
        granted.max(if coarse { down(held, unit) } else { up(held, unit) })
    }
}
