//! The state of each segment in flight, for controls that model the path segment by segment.
//!
//! Source: draft-ietf-ccwg-bbr-06 §4.1.2 (delivery rate samples), §2.2 and §2.3 (what is in flight, delivered and lost).
//!
//! Each segment keeps what was delivered, lost and in flight when it was sent last. An ACK reports segments one by one:
//! what SACK reported before is not reported again. The newest of them, the one sent last, makes the sample. Nothing is
//! allocated per segment, and each segment is looked at a constant number of times: when it is sent, delivered, lost.
//!
//! A recovery is needless if the first ACK of new data in it answers an original and not a retransmission (the timestamp it
//! echoes is older: the Eifel detection, RFC 3522 §3.2), or if D-SACK reports every retransmission as a duplicate (RFC
//! 3708 §3).
//!
//! An ACK whose timestamp shows that it answers the original of a segment that was sent again gives no rate (§4.1.3.5, the
//! second approach): counted from the retransmission, the time would be too short.
//!
//! DIFFERENCE: a segment that is retransmitted though nothing marked it as lost, as without SACK, counts as lost then.
//! Pinned by `what_is_sent_again_was_lost`.

use super::sequence::is_before;
use penstock_core::cc::{Delivered, LostSegment};
use penstock_core::units::{Bytes, Instant, Span};
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    InFlight,
    Delivered,
    Lost,
}

/// Why a segment is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// It holds new data.
    New,
    /// Its data was lost.
    Again,
    /// Its data may have been lost.
    Spare,
}

/// Per-packet state (§4.1.2.1.2).
#[derive(Debug, Clone, Copy)]
struct Packet {
    start: u64,
    end: u64,
    at: Instant,
    first_sent: Instant,
    delivered: u64,
    delivered_at: Instant,
    lost: u64,
    tx_in_flight: u64,
    app_limited: bool,
    again: bool,
    fate: Fate,
}

/// A retransmission in the recovery that goes on, for the detection of needless ones.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Episode {
    /// When the first retransmission was sent; `None` before it.
    first: Option<Instant>,
    /// Retransmissions that no D-SACK has reported.
    unreported: u64,
    /// New data was acknowledged: the Eifel detection is over.
    judged: bool,
}

/// What the endpoint knows at an ACK.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub now: Instant,
    /// The echoed timestamp in microseconds; `None` without timestamps.
    pub echo: Option<u32>,
    pub min_rtt: Span,
    /// Bytes in flight after the ACK and the losses that it revealed, and before both.
    pub in_flight: u64,
    pub prior_in_flight: u64,
    /// When the pace lets the next segment leave.
    pub departs: Instant,
    /// The endpoint is the kernel's, which counts what was sent again as sent then, whichever transmission the ACK is of
    /// (`tcp_rate_skb_delivered`).
    pub kernel: bool,
}

/// The segments in flight, and the counters of the connection (§4.1.2.1.1).
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    packets: VecDeque<Packet>,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    lost: u64,
    /// C.app_limited: 0 if the application has enough to send.
    app_limited: u64,
    /// Until so much is delivered, the window was in full use within the last round trip.
    limited_until: u64,
    /// The newest segment that this ACK reports, and the bytes of all of them.
    newest: Option<Packet>,
    newly_acked: u64,
    /// Losses that the control was not told yet.
    found: VecDeque<LostSegment>,
    /// The end of the segment that was lost last.
    last_lost: u64,
    /// No segment below this number will be lost but by a timeout.
    lost_edge: u64,
    /// All below this number is acknowledged.
    una: u64,
    episode: Episode,
    begun: bool,
}

impl Ledger {
    /// Returns the number of bytes on the heap, with those of the state itself.
    pub fn bytes(&self) -> usize {
        let found = self.found.capacity() * size_of::<LostSegment>();
        size_of::<Self>() + self.packets.capacity() * size_of::<Packet>() + found
    }

    /// True once, when the first data is sent.
    pub fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.begun, true)
    }

    /// True if a segment that is sent now ends an idle time (HandleRestartFromIdle of §5.4.1).
    pub fn restarts(&self, pipe: u64) -> bool {
        pipe == 0 && self.app_limited > 0
    }

    /// Records that there is nothing to send although the window is open (MarkConnectionAppLimited of §4.1.2.4).
    pub fn nothing_to_send(&mut self, pipe: u64) {
        self.app_limited = (self.delivered + pipe).max(1);
    }

    /// Records that the window is in full use (C.is_cwnd_limited of §2.2).
    pub fn window_is_full(&mut self, pipe: u64) {
        self.limited_until = self.delivered + pipe;
    }

    /// Begins the intervals of rate samples anew, before a segment is sent while nothing is under way.
    pub fn restart_clock(&mut self, now: Instant) {
        (self.first_sent, self.delivered_at) = (now, now);
    }

    /// OnPacketSent() of §4.1.2.2, after [`Ledger::restart_clock`] if there is need; `pipe` is the number of bytes in flight before.
    pub fn sent(&mut self, bytes: Range<u64>, why: Sending, pipe: u64, now: Instant) {
        if why == Sending::Again {
            self.episode.first = self.episode.first.or(Some(now));
            self.episode.unreported += 1;
            self.mark_lost(bytes.clone(), now);
        }
        let packet = Packet {
            start: bytes.start,
            end: bytes.end,
            at: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            tx_in_flight: pipe + (bytes.end - bytes.start),
            app_limited: self.app_limited > 0,
            again: why != Sending::New,
            fate: Fate::InFlight,
        };
        let mut place = self.packets.partition_point(|known| known.end <= bytes.start);
        if place == self.packets.len() {
            self.packets.push_back(packet);
            return;
        }
        while let Some(known) = self.packets.get_mut(place).filter(|known| known.start < bytes.end) {
            if known.fate != Fate::Delivered {
                *known = Packet { start: known.start, end: known.end, ..packet };
            }
            place += 1;
        }
    }

    /// Takes bytes that SACK reports for the first time.
    pub fn sacked(&mut self, bytes: Range<u64>, now: Instant) {
        let mut place = self.packets.partition_point(|known| known.start < bytes.start);
        while let Some(packet) = self.packets.get_mut(place).filter(|known| known.end <= bytes.end) {
            place += 1;
            if packet.fate != Fate::Delivered {
                packet.fate = Fate::Delivered;
                let packet = *packet;
                self.arrived(&packet, now);
            }
        }
    }

    /// Takes a cumulative ACK.
    pub fn acked(&mut self, una: u64, now: Instant) {
        while let Some(packet) = self.packets.front().copied().filter(|known| known.end <= una) {
            self.packets.pop_front();
            if packet.fate != Fate::Delivered {
                self.arrived(&packet, now);
            }
        }
        self.lost_edge = self.lost_edge.max(una);
        self.una = self.una.max(una);
    }

    /// Takes bytes that a duplicate ACK reports where SACK is emulated by counting; nobody knows which they are.
    pub fn counted(&mut self, bytes: u64) {
        self.delivered += bytes;
        self.newly_acked += bytes;
    }

    /// Takes off what a cumulative ACK covers and was counted before.
    pub fn uncounted(&mut self, bytes: u64) {
        self.delivered = self.delivered.saturating_sub(bytes);
        self.newly_acked = self.newly_acked.saturating_sub(bytes);
    }

    /// UpdateRateSample() of §4.1.2.3.
    fn arrived(&mut self, packet: &Packet, now: Instant) {
        let size = packet.end - packet.start;
        self.delivered += size;
        self.newly_acked += size;
        self.delivered_at = now;
        if self.newest.is_none_or(|newest| (packet.at, packet.end) > (newest.at, newest.end)) {
            self.newest = Some(*packet);
        }
    }

    /// Marks what is in flight below this edge as lost, if it was sent once.
    pub fn lost_below(&mut self, edge: u64, now: Instant) {
        let from = self.lost_edge;
        if from < edge {
            self.lost_edge = edge;
            let mut place = self.packets.partition_point(|known| known.end <= from);
            while let Some(packet) = self.packets.get(place).copied().filter(|known| known.end <= edge) {
                if !packet.again {
                    self.lose(place, now);
                }
                place += 1;
            }
        }
    }

    /// Marks segments of this range as lost that are in flight.
    pub fn mark_lost(&mut self, bytes: Range<u64>, now: Instant) {
        let mut place = self.packets.partition_point(|known| known.end <= bytes.start);
        while self.packets.get(place).is_some_and(|known| known.start < bytes.end) {
            self.lose(place, now);
            place += 1;
        }
    }

    fn lose(&mut self, place: usize, now: Instant) {
        let packet = &mut self.packets[place];
        if packet.fate != Fate::InFlight {
            return;
        }
        packet.fate = Fate::Lost;
        let size = packet.end - packet.start;
        self.lost += size;
        self.found.push_back(LostSegment {
            now,
            size: Bytes::new(size),
            delivered: Bytes::new(self.delivered),
            prior_delivered: Bytes::new(packet.delivered),
            tx_in_flight: Bytes::new(packet.tx_in_flight),
            lost: Bytes::new(self.lost - packet.lost),
            app_limited: packet.app_limited,
            apart: packet.start != self.last_lost,
        });
        self.last_lost = packet.end;
    }

    /// Returns the next loss that the control was not told.
    pub fn next_found(&mut self) -> Option<LostSegment> {
        self.found.pop_front()
    }

    /// GenerateRateSample() of §4.1.2.3; `None` if this ACK delivered nothing.
    pub fn sample(&mut self, arrival: &Arrival) -> Option<Delivered> {
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let now = arrival.now;
        let newly_acked = std::mem::take(&mut self.newly_acked);
        let Some(newest) = self.newest.take() else {
            return (newly_acked > 0).then(|| self.without_newest(newly_acked, arrival));
        };
        self.first_sent = newest.at;
        let interval = newest.at.since(newest.first_sent).max(now.since(newest.delivered_at));
        // The ACK may be of the first transmission, unless its timestamp says otherwise.
        let ambiguous = newest.again && arrival.echo.is_none_or(|echo| is_before(echo, newest.at));
        // SACK reports segments with the timestamp of another one, which tells nothing of them.
        let original = ambiguous && !arrival.kernel && arrival.echo.is_some() && newest.end <= self.una;
        let unreliable = original || interval < arrival.min_rtt;
        Some(Delivered {
            now,
            rtt: (!ambiguous).then(|| now.since(newest.at)),
            delivered: Bytes::new(self.delivered),
            newly_acked: Bytes::new(newly_acked),
            prior_delivered: Bytes::new(newest.delivered),
            interval: if unreliable { Span::ZERO } else { interval },
            app_limited: newest.app_limited,
            tx_in_flight: Bytes::new(newest.tx_in_flight),
            lost: Bytes::new(self.lost - newest.lost),
            in_flight: Bytes::new(arrival.in_flight),
            prior_in_flight: Bytes::new(arrival.prior_in_flight),
            departs: arrival.departs,
            cwnd_limited: self.delivered <= self.limited_until,
        })
    }

    /// The sample of an ACK that reports data without saying which: it is no measure of the rate.
    fn without_newest(&mut self, newly_acked: u64, arrival: &Arrival) -> Delivered {
        self.delivered_at = arrival.now;
        Delivered {
            now: arrival.now,
            rtt: None,
            delivered: Bytes::new(self.delivered),
            newly_acked: Bytes::new(newly_acked),
            prior_delivered: Bytes::new(self.delivered),
            interval: Span::ZERO,
            app_limited: self.app_limited > 0,
            tx_in_flight: Bytes::new(arrival.in_flight),
            lost: Bytes::ZERO,
            in_flight: Bytes::new(arrival.in_flight),
            prior_in_flight: Bytes::new(arrival.prior_in_flight),
            departs: arrival.departs,
            cwnd_limited: self.delivered <= self.limited_until,
        }
    }

    /// Begins a recovery, in which nothing was retransmitted yet. What the recovery before has sent again and is in flight still
    /// belongs to the question whether it was needless: its ACK echoes an older timestamp than the retransmissions to come, and
    /// answers no original (`tcp_retrans_stamp_cleanup` of Linux).
    pub fn recovery_begins(&mut self) {
        let out = self.packets.iter().filter(|known| known.again && known.fate == Fate::InFlight).count() as u64;
        let first = self.episode.first.filter(|_| out > 0);
        self.episode = Episode { first, unreported: out, judged: false };
    }

    /// Takes back that segments are lost, after a needless timeout.
    pub fn nothing_is_lost(&mut self, una: u64) {
        self.lost_edge = una;
        self.packets.iter_mut().filter(|known| known.fate == Fate::Lost).for_each(|known| known.fate = Fate::InFlight);
    }

    /// True once, if this ACK shows that the recovery was needless. `advanced`: it acknowledges new data; `twice`: it reports
    /// a segment that arrived twice.
    pub fn was_needless(&mut self, arrival: &Arrival, advanced: bool, twice: bool) -> bool {
        let Some(first) = self.episode.first else { return false };
        let original = advanced
            && !std::mem::replace(&mut self.episode.judged, true)
            && arrival.echo.is_some_and(|echo| is_before(echo, first));
        if twice {
            self.episode.unreported = self.episode.unreported.saturating_sub(1);
        }
        let needless = original || (twice && self.episode.unreported == 0);
        if needless {
            self.episode = Episode::default();
        }
        needless
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    fn arrival(ms: u64, in_flight: u64) -> Arrival {
        Arrival {
            now: at(ms),
            echo: None,
            min_rtt: MS(100),
            in_flight,
            prior_in_flight: in_flight,
            departs: at(ms),
            kernel: false,
        }
    }

    /// Segments of 1000 bytes, all sent at time 0.
    fn flight(segments: u64) -> Ledger {
        let mut ledger = Ledger::default();
        (0..segments).for_each(|n| ledger.sent(n * 1000..(n + 1) * 1000, Sending::New, n * 1000, at(0)));
        ledger
    }

    /// §4.1.2.3: what SACK reported is not reported again, and the newest segment makes the sample.
    #[test]
    fn each_segment_is_delivered_once() {
        let mut ledger = flight(4);
        ledger.sacked(1000..3000, at(110));
        let sample = ledger.sample(&arrival(110, 2000)).expect("a sample");
        assert_eq!((sample.newly_acked.get(), sample.delivered.get(), sample.tx_in_flight.get()), (2000, 2000, 3000));
        assert_eq!((sample.rtt, sample.interval, sample.prior_delivered.get()), (Some(MS(110)), MS(110), 0));
        ledger.acked(4000, at(150));
        let sample = ledger.sample(&arrival(150, 0)).expect("a sample");
        assert_eq!((sample.newly_acked.get(), sample.delivered.get(), sample.tx_in_flight.get()), (2000, 4000, 4000));
        assert_eq!(ledger.sample(&arrival(151, 0)), None, "nothing new");
    }

    /// Of two segments that an ACK reports, one was sent again at 120 ms: it is the newest, and its round trip time is known
    /// only by the timestamp.
    #[test]
    fn the_segment_sent_last_makes_the_sample() {
        for (echo, rtt) in [(None, None), (Some(119_000), None), (Some(120_000), Some(MS(110)))] {
            let mut ledger = flight(2);
            ledger.sacked(1000..2000, at(110));
            ledger.sample(&arrival(110, 1000));
            ledger.mark_lost(0..1000, at(110));
            ledger.restart_clock(at(120));
            ledger.sent(0..1000, Sending::Again, 0, at(120));
            ledger.acked(2000, at(230));
            let sample = ledger.sample(&Arrival { echo, ..arrival(230, 0) }).expect("a sample");
            assert_eq!((sample.rtt, sample.prior_delivered.get(), sample.lost.get()), (rtt, 1000, 0));
        }
    }

    /// §4.1.3.5: a segment is sent at 0 ms, again at 200 ms, and acknowledged at 310 ms. If the ACK echoes 0 ms, the rate is
    /// unknown, but to the kernel; else it is 1000 bytes in 110 ms. A SACK echoes what arrived before the gap.
    #[test]
    fn the_ack_of_an_original_tells_no_rate() {
        for (echo, sacks, kernel, interval) in [
            (Some(0), false, false, Span::ZERO),
            (Some(0), false, true, MS(110)),
            (Some(200_000), false, false, MS(110)),
            (None, false, false, MS(110)),
            (Some(0), true, false, MS(110)),
        ] {
            let mut ledger = flight(2);
            ledger.mark_lost(0..2000, at(200));
            ledger.restart_clock(at(200));
            ledger.sent(0..1000, Sending::Again, 0, at(200));
            ledger.sent(1000..2000, Sending::Again, 1000, at(200));
            if sacks {
                ledger.sacked(1000..2000, at(310))
            } else {
                ledger.acked(1000, at(310))
            }
            let sample = ledger.sample(&Arrival { echo, kernel, ..arrival(310, 0) }).expect("a sample");
            assert_eq!((sample.interval, sample.delivered.get()), (interval, 1000), "{echo:?} {sacks}");
        }
    }

    /// Losses since a segment was sent: of the first of three lost segments one, of the third three; the third lies apart.
    #[test]
    fn a_lost_segment_tells_what_was_in_flight_and_lost() {
        let mut ledger = flight(6);
        ledger.sacked(2000..3000, at(110));
        ledger.sacked(4000..6000, at(110));
        ledger.lost_below(4000, at(110));
        let found: Vec<_> = std::iter::from_fn(|| ledger.next_found())
            .map(|lost| (lost.tx_in_flight.get(), lost.lost.get(), lost.apart))
            .collect();
        assert_eq!(found, [(1000, 1000, false), (2000, 2000, false), (4000, 3000, true)]);
        let sample = ledger.sample(&arrival(110, 0)).expect("a sample");
        assert_eq!((sample.lost.get(), sample.newly_acked.get()), (3000, 3000));
        ledger.lost_below(4000, at(120));
        assert_eq!(ledger.next_found(), None, "once");
    }

    #[test]
    fn what_is_sent_again_was_lost() {
        let mut ledger = flight(2);
        ledger.sent(0..1000, Sending::Again, 2000, at(200));
        assert_eq!(ledger.next_found().map(|lost| lost.lost.get()), Some(1000));
        assert_eq!(ledger.next_found(), None);
    }

    /// RFC 3522: the ACK echoes 90 ms, the retransmission was sent at 200 ms. RFC 3708: the only retransmission is reported
    /// as a duplicate.
    #[test]
    fn a_needless_recovery_shows_by_an_old_timestamp_or_by_duplicates() {
        let again = || {
            let mut ledger = flight(3);
            ledger.recovery_begins();
            ledger.sent(0..1000, Sending::Again, 3000, at(200));
            ledger
        };
        let echo = |us| Arrival { echo: Some(us), ..arrival(210, 0) };
        assert!(again().was_needless(&echo(90_000), true, false));
        assert!(!again().was_needless(&echo(200_000), true, false));
        assert!(!again().was_needless(&echo(90_000), false, false), "it acknowledges nothing new");
        let mut ledger = again();
        assert!(!ledger.was_needless(&echo(200_000), true, false));
        assert!(!ledger.was_needless(&echo(90_000), true, false), "only the first");
        assert!(ledger.was_needless(&echo(200_000), true, true));
        assert!(!ledger.was_needless(&echo(200_000), true, true), "once");
    }

    #[test]
    fn the_window_was_in_full_use_for_a_round_trip() {
        let mut ledger = flight(3);
        ledger.window_is_full(3000);
        for (n, limited) in [(1, true), (2, true), (3, true), (4, false)] {
            ledger.sent((n + 2) * 1000..(n + 3) * 1000, Sending::New, 2000, at(50));
            ledger.acked(n * 1000, at(100 + n));
            assert_eq!(ledger.sample(&arrival(100 + n, 3000)).map(|s| s.cwnd_limited), Some(limited), "{n}");
        }
    }

    /// Of two retransmissions D-SACK reports one: ACKs that report none do not count.
    #[test]
    fn each_retransmission_is_reported_for_itself() {
        let mut ledger = flight(3);
        ledger.recovery_begins();
        ledger.sent(0..2000, Sending::Again, 3000, at(200));
        ledger.sent(2000..3000, Sending::Again, 3000, at(200));
        assert!(!ledger.was_needless(&arrival(210, 0), true, false));
        assert!(!ledger.was_needless(&arrival(211, 0), false, true), "one of two");
        assert!(ledger.was_needless(&arrival(212, 0), false, true), "both");
    }

    /// The ACK of what an earlier recovery sent again echoes a time before the first retransmission of this one; that of an
    /// original, a time before both.
    #[test]
    fn what_an_earlier_recovery_sent_again_is_no_original() {
        for (echo, needless) in [(200, false), (100, true)] {
            let mut ledger = flight(3);
            ledger.recovery_begins();
            ledger.sent(0..1000, Sending::Again, 3000, at(200));
            ledger.recovery_begins();
            ledger.sent(1000..2000, Sending::Again, 3000, at(250));
            ledger.acked(1000, at(300));
            let echo = Some(super::super::sequence::timestamp(at(echo)));
            assert_eq!(ledger.was_needless(&Arrival { echo, ..arrival(300, 0) }, true, false), needless);
        }
    }

    /// Twenty segments in flight, each of which was lost, and nobody was told.
    #[test]
    fn the_memory_of_a_ledger_has_room_for_all_it_keeps() {
        let mut ledger = flight(20);
        ledger.mark_lost(0..20_000, at(100));
        assert!(ledger.bytes() >= size_of::<Ledger>() + 20 * (size_of::<Packet>() + size_of::<LostSegment>()));
    }
}
