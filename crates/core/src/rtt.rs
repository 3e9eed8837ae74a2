//! Round trip times seen from a gateway: the smallest WAN half, the smallest LAN half, and their sum, per flow.
//!
//! A gateway in the middle of a path sees two loops. The *WAN half* starts when a segment passes outbound and ends when
//! the answer passes inbound; the *LAN half* starts inbound and ends outbound. A sender's round trip time is their sum.
//!
//! A sample starts at a segment and ends at the first answer that proves its receipt. Samples come from:
//! - the handshake (SYN to SYN-ACK, SYN-ACK to ACK), from whichever side it is opened, by sequence number;
//! - afterwards timestamps (RFC 7323 §4.1): the first segment with a new TSval to the first TSecr that reached it;
//! - without timestamps, new data to the ACK that covers it.
//!
//! A half has at most one sample in flight, and a retransmission ends it (Karn's rule, RFC 6298 §3): the answer to it
//! could be the answer to the original. Only segments never seen before start a sample, so a sample is never shorter
//! than the path; delayed ACKs, queues and applications make it longer, hence only the minimum is kept. The minimum
//! lasts for the whole connection, so a route that becomes longer is not noticed. A SYN with a new sequence number
//! starts another connection and discards all state. If the handshake of a connection was not seen, the first segment
//! in each direction only tells the current sequence number.
//!
//! State: 64 bytes per flow. Cost: O(1) per segment. Segments with RST are ignored: a middlebox may have sent them.

use crate::packet::{TcpFlags, TcpView};
use crate::units::{Instant, Span};
use std::num::NonZeroU64;

/// The round trip times of one flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RttProbe {
    wan: Half,
    lan: Half,
}

impl RttProbe {
    /// Creates the probe of a flow whose begin others saw: its halves, and the sequence numbers after what was sent outbound
    /// and inbound.
    pub fn continued(wan: Option<Span>, lan: Option<Span>, outbound_end: u32, inbound_end: u32) -> Self {
        let half = |min: Option<Span>, end| Half {
            min: min.and_then(|min| NonZeroU64::new(min.as_nanos())),
            newest_seq: end,
            knows_seq: true,
            untimed: true,
            ..Half::default()
        };
        Self { wan: half(wan, outbound_end), lan: half(lan, inbound_end) }
    }

    /// Notes that segments passed unseen, up to these sequence numbers outbound and inbound.
    pub fn pass_unseen(&mut self, outbound_end: u32, inbound_end: u32) {
        for (half, end) in [(&mut self.wan, outbound_end), (&mut self.lan, inbound_end)] {
            advance(&mut half.newest_seq, &mut half.knows_seq, end);
        }
    }

    /// Shows a segment that leaves through the bottleneck.
    pub fn outbound<S: TcpView>(&mut self, segment: &S, now: Instant) {
        if Self::opens_another(&self.wan, segment) {
            *self = Self::default();
        }
        let _ = Self::pass(&mut self.wan, &mut self.lan, segment, now);
    }

    /// Shows a segment that comes from the far side of the bottleneck. Returns the sample of the WAN half that it ends.
    pub fn inbound<S: TcpView>(&mut self, segment: &S, now: Instant) -> Option<Span> {
        if Self::opens_another(&self.lan, segment) {
            *self = Self::default();
        }
        Self::pass(&mut self.lan, &mut self.wan, segment, now)
    }

    /// Returns the smallest time from an outbound segment to its answer; `None` before the first sample.
    pub fn wan(&self) -> Option<Span> {
        self.wan.min()
    }

    /// Returns the smallest time from an inbound segment to its answer; `None` before the first sample.
    pub fn lan(&self) -> Option<Span> {
        self.lan.min()
    }

    /// Returns the sum of both halves: the sender's base round trip time. `None` until both halves are known.
    pub fn whole(&self) -> Option<Span> {
        Some(self.wan()? + self.lan()?)
    }

    /// Returns the sequence number after the last one seen outbound; `None` before the first segment.
    pub fn outbound_end(&self) -> Option<u32> {
        self.wan.knows_seq.then_some(self.wan.newest_seq)
    }

    /// Returns the sequence number after the last one seen inbound; `None` before the first segment.
    pub fn inbound_end(&self) -> Option<u32> {
        self.lan.knows_seq.then_some(self.lan.newest_seq)
    }

    /// Returns a lower bound of the WAN half while there is no sample of it: the time since the last segment that could
    /// have started one. After a retransmitted SYN that is the newest SYN. If the answer belongs to an older SYN it has
    /// taken longer, so the bound is never above the true time. `None` before the first segment and once there is a
    /// sample.
    pub fn wan_at_least(&self, now: Instant) -> Option<Span> {
        (self.wan.min.is_none() && self.wan.knows_seq && !self.wan.untimed).then(|| now.since(self.wan.started))
    }

    #[inline]
    fn pass<S: TcpView>(starts: &mut Half, ends: &mut Half, segment: &S, now: Instant) -> Option<Span> {
        if segment.flags().has(TcpFlags::RST) {
            return None;
        }
        let sample = ends.answered(segment, now);
        starts.sent(segment, now);
        sample
    }

    /// Returns true for a SYN which opens another connection: this half already knows another sequence number.
    fn opens_another<S: TcpView>(half: &Half, segment: &S) -> bool {
        let flags = segment.flags();
        let opens = flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK) && !flags.has(TcpFlags::RST);
        opens && half.knows_seq && half.newest_seq != segment.seq().wrapping_add(1)
    }
}

/// What proves the receipt of the segment that started the current sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Proof {
    /// There is no current sample.
    #[default]
    Nothing,
    /// An acknowledgment number that reached `expected`.
    Ack,
    /// A timestamp echo that reached `expected`.
    Echo,
}

/// One loop: segments in one direction start samples, answers in the other direction end them. Optional numbers are
/// kept as a value and a flag, so that the type has 32 bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Half {
    /// The smallest sample in nanoseconds, at least 1; `None` before the first sample.
    min: Option<NonZeroU64>,
    started: Instant,
    expected: u32,
    newest_seq: u32,
    newest_tsval: u32,
    proof: Proof,
    knows_seq: bool,
    knows_tsval: bool,
    /// Others saw the segments so far, so `started` says nothing.
    untimed: bool,
}

impl Half {
    fn min(&self) -> Option<Span> {
        self.min.map(|ns| Span::from_nanos(ns.get()))
    }

    fn start(&mut self, proof: Proof, expected: u32, now: Instant) {
        (self.proof, self.expected, self.started, self.untimed) = (proof, expected, now, false);
    }

    /// Takes a segment that may start a sample.
    fn sent<S: TcpView>(&mut self, segment: &S, now: Instant) {
        if segment.flags().has(TcpFlags::SYN) {
            return self.sent_syn(segment, now);
        }
        let tsval = segment.timestamps().map(|stamps| stamps.val);
        let new_seq = self.note_sequence(segment);
        let new_tsval = tsval.is_some_and(|tsval| advance(&mut self.newest_tsval, &mut self.knows_tsval, tsval));
        if self.proof == Proof::Nothing {
            match tsval {
                Some(tsval) if new_tsval => self.start(Proof::Echo, tsval, now),
                None if new_seq => self.start(Proof::Ack, end_of(segment), now),
                _ => {}
            }
        }
    }

    /// Takes a SYN. Its sample ends by acknowledgment number, since timestamps are not agreed on before the handshake
    /// ends.
    #[cold]
    fn sent_syn<S: TcpView>(&mut self, segment: &S, now: Instant) {
        let first = !self.knows_seq;
        // Data in a SYN (RFC 7413) is not waited for: the answer may leave it unacknowledged, and a retransmitted SYN
        // has none.
        let after_syn = segment.seq().wrapping_add(1);
        advance(&mut self.newest_seq, &mut self.knows_seq, after_syn); // a late copy does not move it back
        self.knows_tsval = false;
        if let Some(stamps) = segment.timestamps() {
            (self.newest_tsval, self.knows_tsval) = (stamps.val, true);
        }
        self.start(if first { Proof::Ack } else { Proof::Nothing }, after_syn, now);
    }

    /// Follows the sequence numbers; returns true if all of the segment is new. A retransmission ends the current
    /// sample.
    fn note_sequence<S: TcpView>(&mut self, segment: &S) -> bool {
        let end = end_of(segment);
        if end == segment.seq() {
            advance(&mut self.newest_seq, &mut self.knows_seq, end); // all before it was sent, seen or not
            return false;
        }
        let overlaps = self.knows_seq && is_before(segment.seq(), self.newest_seq);
        if overlaps {
            self.proof = Proof::Nothing;
        }
        advance(&mut self.newest_seq, &mut self.knows_seq, end) && !overlaps
    }

    /// Takes a segment of the other direction, which may end the current sample. Returns the sample that ends.
    fn answered<S: TcpView>(&mut self, segment: &S, now: Instant) -> Option<Span> {
        if !segment.flags().has(TcpFlags::ACK) {
            return None;
        }
        let proven = match self.proof {
            Proof::Nothing => false,
            Proof::Ack => !is_before(segment.ack(), self.expected),
            Proof::Echo => segment.timestamps().is_some_and(|stamps| !is_before(stamps.ecr, self.expected)),
        };
        if !proven {
            return None;
        }
        let sample = NonZeroU64::new((now - self.started).as_nanos()).unwrap_or(NonZeroU64::MIN);
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
        self.proof = Proof::Nothing;
        Some(Span::from_nanos(sample.get()))
    }
}

/// Returns the sequence number after a segment that is not a SYN; a FIN counts as one byte (RFC 9293 §3.4).
fn end_of<S: TcpView>(segment: &S) -> u32 {
    let fin = u32::from(segment.flags().has(TcpFlags::FIN));
    segment.seq().wrapping_add(segment.payload_len()).wrapping_add(fin)
}

/// Returns true if `a` is before `b` in a number space that wraps around (RFC 9293 §3.4, RFC 7323 §5.2).
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Moves `newest` forward to `value`; returns true if `newest` was known and moved.
fn advance(newest: &mut u32, known: &mut bool, value: u32) -> bool {
    let moved = *known && is_before(*newest, value);
    if moved || !*known {
        (*newest, *known) = (value, true);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{FlowId, PlainSegment, Timestamps};

    fn segment(flags: TcpFlags, seq: u32, ack: u32, payload_len: u32) -> PlainSegment {
        PlainSegment { seq, ack, payload_len, ..PlainSegment::new(FlowId(0), flags) }
    }
    fn syn(seq: u32) -> PlainSegment {
        segment(TcpFlags::SYN, seq, 0, 0)
    }
    fn syn_ack(seq: u32, ack: u32) -> PlainSegment {
        segment(TcpFlags::SYN.with(TcpFlags::ACK), seq, ack, 0)
    }
    fn data(seq: u32, len: u32) -> PlainSegment {
        segment(TcpFlags::ACK, seq, 501, len)
    }
    fn ack(ack: u32) -> PlainSegment {
        segment(TcpFlags::ACK, 501, ack, 0)
    }

    /// Adds timestamps to a segment of a ladder: `ack(1100).ts(7, 5)`.
    trait Stamp {
        fn ts(self, val: u32, ecr: u32) -> Self;
    }
    impl Stamp for PlainSegment {
        fn ts(self, val: u32, ecr: u32) -> Self {
            Self { timestamps: Some(Timestamps { val, ecr }), ..self }
        }
    }

    enum Way {
        Out,
        In,
    }
    use Way::{In, Out};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// Shows a ladder of (milliseconds, direction, segment).
    fn after(ladder: &[(u64, Way, PlainSegment)]) -> RttProbe {
        let mut probe = RttProbe::default();
        for (ms, way, segment) in ladder {
            match way {
                Out => probe.outbound(segment, at(*ms)),
                In => {
                    probe.inbound(segment, at(*ms));
                }
            }
        }
        probe
    }

    fn ms(span: Option<Span>) -> Option<u64> {
        span.map(|s| s.as_nanos() / 1_000_000)
    }

    #[test]
    fn state_is_compact() {
        assert!(size_of::<RttProbe>() <= 64, "{}", size_of::<RttProbe>());
    }

    #[test]
    fn an_outbound_handshake_gives_both_halves() {
        let probe = after(&[(0, Out, syn(99)), (80, In, syn_ack(500, 100)), (83, Out, ack(501))]);
        assert_eq!((ms(probe.wan()), ms(probe.lan()), ms(probe.whole())), (Some(80), Some(3), Some(83)));
    }

    #[test]
    fn the_end_of_what_was_sent_counts_the_syn_and_ignores_retransmissions() {
        assert_eq!(RttProbe::default().outbound_end(), None);
        let sent = after(&[(0, Out, syn(99)), (90, Out, data(100, 10)), (91, Out, data(100, 5))]);
        assert_eq!(sent.outbound_end(), Some(110));
    }

    #[test]
    fn an_inbound_handshake_gives_the_lan_half_first() {
        let half_way = [(0, In, syn(99)), (3, Out, syn_ack(500, 100))];
        let probe = after(&half_way);
        assert_eq!((ms(probe.wan()), ms(probe.lan()), probe.whole()), (None, Some(3), None));
        let probe = after(&[(0, In, syn(99)), (3, Out, syn_ack(500, 100)), (83, In, ack(501))]);
        assert_eq!((ms(probe.wan()), ms(probe.whole())), (Some(80), Some(83)));
    }

    #[test]
    fn a_retransmitted_syn_or_syn_ack_is_not_sampled() {
        let syn_twice =
            after(&[(0, Out, syn(99)), (1000, Out, syn(99)), (1010, In, syn_ack(500, 100)), (1012, Out, ack(501))]);
        assert_eq!((syn_twice.wan(), ms(syn_twice.lan())), (None, Some(2)));
        let with_data = segment(TcpFlags::SYN, 99, 0, 50); // RFC 7413; repeated without the data
        let fast_open = after(&[(0, Out, with_data), (1000, Out, syn(99)), (1010, In, syn_ack(500, 150))]);
        assert_eq!(fast_open.wan(), None);
        let syn_ack_twice = after(&[
            (0, Out, syn(99)),
            (80, In, syn_ack(500, 100)),
            (1080, In, syn_ack(500, 100)),
            (1081, Out, ack(501)),
        ]);
        assert_eq!((ms(syn_ack_twice.wan()), syn_ack_twice.lan()), (Some(80), None));
    }

    #[test]
    fn an_answer_without_the_right_number_is_no_answer() {
        let probe = after(&[(0, Out, syn(99)), (5, In, ack(99)), (80, In, syn_ack(500, 100))]);
        assert_eq!(ms(probe.wan()), Some(80));
        let refused = segment(TcpFlags::RST.with(TcpFlags::ACK), 0, 100, 0);
        assert_eq!(after(&[(0, Out, syn(99)), (5, In, refused)]).wan(), None);
    }

    #[test]
    fn timestamps_refresh_both_halves_and_the_minimum_is_kept() {
        let probe = after(&[
            (0, Out, data(100, 10).ts(1000, 1)), // first seen: shows where the clocks stand
            (1, In, ack(100).ts(70, 900)),
            (10, Out, data(110, 10).ts(1010, 1)),   // starts the WAN half
            (15, Out, data(120, 10).ts(1015, 1)),   // one sample in flight
            (100, In, ack(120).ts(80, 1010)),       // WAN 90; starts the LAN half
            (104, Out, data(130, 10).ts(1104, 80)), // LAN 4; starts the WAN half
            (200, In, ack(140).ts(180, 1104)),      // WAN 96: longer
        ]);
        assert_eq!((ms(probe.wan()), ms(probe.lan())), (Some(90), Some(4)));
    }

    #[test]
    fn a_coarse_clock_does_not_shorten_a_sample() {
        // Two segments in one tick: the echo at 90 answers the first, so the second must not have started a sample.
        let probe = after(&[
            (0, Out, data(100, 10).ts(1, 0)),
            (10, Out, data(110, 10).ts(2, 0)),
            (90, In, ack(120).ts(7, 2)),
            (91, Out, data(120, 10).ts(2, 7)),
            (95, In, ack(130).ts(7, 2)),
        ]);
        assert_eq!(ms(probe.wan()), Some(80));
    }

    #[test]
    fn timestamps_and_sequence_numbers_wrap() {
        let probe = after(&[
            (0, Out, data(u32::MAX - 20, 10).ts(u32::MAX - 1, 0)),
            (10, Out, data(u32::MAX - 10, 20).ts(3, 0)),
            (60, In, ack(9).ts(7, 3)),
        ]);
        assert_eq!(ms(probe.wan()), Some(50));
        let plain = after(&[
            (0, Out, data(u32::MAX - 20, 10)),
            (10, Out, data(u32::MAX - 10, 20)),
            (20, In, ack(u32::MAX - 10)),
            (60, In, ack(9)),
        ]);
        assert_eq!(ms(plain.wan()), Some(50));
    }

    #[test]
    fn without_timestamps_new_data_is_timed_and_a_retransmission_ends_the_sample() {
        let opened = || [(0, Out, syn(99)), (80, In, syn_ack(500, 100)), (83, Out, data(100, 0))];
        let timed = [(90, Out, data(100, 10)), (91, Out, data(110, 10)), (160, In, ack(110))];
        let probe = after(&opened().into_iter().chain(timed).collect::<Vec<_>>());
        assert_eq!(ms(probe.wan()), Some(70));
        let lost = [
            (90, Out, data(100, 10)),
            (120, Out, data(100, 10)),
            (121, In, ack(110)), // answers the original: neither 31 nor 1 is taken
        ];
        let probe = after(&opened().into_iter().chain(lost).collect::<Vec<_>>());
        assert_eq!(ms(probe.wan()), Some(80));
    }

    #[test]
    fn a_segment_that_repeats_some_old_data_starts_no_sample() {
        let probe = after(&[
            (0, Out, data(100, 10)),
            (10, Out, data(105, 10)), // five bytes old, five new
            (11, In, ack(115)),
        ]);
        assert_eq!(probe.wan(), None);
    }

    #[test]
    fn another_connection_with_the_same_addresses_starts_afresh() {
        let probe = after(&[
            (0, Out, syn(99)),
            (10, In, syn_ack(500, 100)),
            (11, Out, ack(501)),
            (5000, Out, syn(77_000)),
            (5080, In, syn_ack(9000, 77_001)),
        ]);
        assert_eq!((ms(probe.wan()), probe.lan()), (Some(80), None));
    }
}
