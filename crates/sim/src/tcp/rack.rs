//! RACK detects lost segments by the times at which they were sent. TLP probes for losses at the end of a flight.
//!
//! Source: RFC 8985. It is an alternative to the counting rule of RFC 6675 in [`scoreboard`](super::scoreboard).
//!
//! ```text
//! newest    the segment sent last among those delivered; RACK.rtt its round trip time              §6.2 step 2
//! reo_wnd   0 in recovery or with three SACKed segments, if no reordering was seen;
//!           else min(m min_RTT / 4, SRTT), m = 1, one more in each round trip with a D-SACK,
//!           1 again after 16 recoveries without                                                    §6.2 step 4
//! lost      sent before `newest`, and RACK.rtt + reo_wnd ago or longer                             §6.2 step 5
//! PTO       2 SRTT, and 200 ms more with one segment in flight; 1 s without SRTT; no later than the RTO   §7.2
//! probe     new data if there is any, else the last segment again; one at a time                   §7.3
//! ```
//!
//! | state of a segment | is counted as in flight |
//! |---|---|
//! | sent | yes |
//! | SACKed | no |
//! | lost | no |
//! | sent again | yes, from its new time on |
//!
//! Invariants: the records cover `una..nxt` without gaps; `lost` and `sacked` are the sums of the bytes of lost and of
//! SACKed segments; every segment that is neither has an entry in `order` with the time of its last transmission. Cost:
//! each transmission is looked at once when it is delivered, overtaken or lost, O(log flight), and again with each ACK
//! while the reordering window holds it.
//!
//! DIFFERENCE: min_RTT is the minimum over the whole connection, not over a window of time (§6.2 step 1 allows both).
//! Pinned by `the_smallest_sample_is_that_of_the_whole_connection`.

use penstock_core::units::{Instant, Span};
use std::collections::VecDeque;
use std::ops::Range;

const DUP_THRESH: u32 = 3; // §6.2 step 4
const PERSIST: u32 = 16; // recoveries; §6.2 step 4
const MAX_ACK_DELAY: Span = Span::from_millis(200); // §7.2 TLP.max_ack_delay; Linux's
const PTO_WITHOUT_SAMPLE: Span = Span::from_secs(1); // §7.2

/// A segment in flight and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sent {
    start: u64,
    end: u64,
    at: Instant,
    again: bool,
    sacked: bool,
    lost: bool,
    /// It was lost and has not been delivered since, also if it was sent again (`TCPCB_LOST` of Linux).
    marked: bool,
}

impl Sent {
    fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Returns the key of RACK_sent_after (§6.2): the segment with the larger key was sent later; of two sent at the
    /// same time, that with the higher end.
    fn key(&self) -> (Instant, u64) {
        (self.at, self.end)
    }
}

/// A transmission, in the order of time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Transmission {
    /// The number after the last byte of its segment.
    end: u64,
    at: Instant,
}

/// What RACK learns from an ACK besides sequence numbers.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub now: Instant,
    /// The echoed timestamp in microseconds; `None` without timestamps.
    pub echo: Option<u32>,
    pub srtt: Span,
    pub min_rtt: Span,
    /// True during fast recovery and after a timeout.
    pub recovering: bool,
}

/// How many segments of the flight are in which state, and what was overtaken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    pub out: u64,
    pub sacked: u64,
    /// Lost and not delivered since, also if sent again (`lost_out`).
    pub lost: u64,
    /// Sent again and on the way (`retrans_out`).
    pub again: u64,
    /// How often a segment was overtaken (`reord_seen`), and by how many bytes at most.
    pub disorders: u64,
    pub overtaken: u64,
}

impl Counted {
    /// Returns `reordering` of Linux, with segments of `mss` bytes.
    pub fn reordering(&self, mss: u64) -> u64 {
        self.overtaken.div_ceil(mss.max(1)).clamp(DUP_THRESH.into(), 300)
    }
}

/// State of the tail loss probe.
#[derive(Debug, Clone, PartialEq)]
struct Tail {
    at: Instant,
    due: bool,
    /// The end of the flight when the probe was sent; `None` if no probe is outstanding.
    end: Option<u64>,
    again: bool,
}

/// The state of RACK and TLP.
#[derive(Debug, Clone, PartialEq)]
pub struct Rack {
    flight: VecDeque<Sent>,
    /// The transmissions that may have to be declared lost, and some that are over.
    order: VecDeque<Transmission>,
    /// No segment below this number is lost.
    lost_from: u64,
    lost: u64,
    /// Segments that are marked (`lost_out`).
    marked: u32,
    sacked: u64,
    segments_sacked: u32,
    newest: Option<(Instant, u64)>,
    rtt: Span,
    /// End of the highest segment delivered (RACK.fack).
    highest: u64,
    reordered: bool,
    /// How often an ACK reported what was overtaken, by how many bytes at most, and the lowest such number of this ACK.
    disorders: u32,
    overtaken: u32,
    late: u64,
    /// The reordering window in quarters of the minimum round trip time (RACK.reo_wnd_mult).
    patience: u32,
    /// Number of recoveries until `patience` returns to 1 (RACK.reo_wnd_persist).
    persist: u32,
    /// The end of the flight when a D-SACK last increased `patience`, until that end is acknowledged; otherwise 0.
    grown_at: u64,
    /// Segments were declared lost since [`Rack::take_found_losses`].
    found_losses: bool,
    /// The latest time at which a retransmission was sent that is lost now; `None` if none is, or after
    /// [`Rack::take_lost_again`].
    lost_again: Option<Instant>,
    /// The lowest end of a segment that was delivered since [`Rack::take_original`] and was never retransmitted; `u64::MAX`
    /// if there is none.
    original: u64,
    /// When the first and the last segment were sent that the newest ACK covers; `None` if one of them was sent again.
    acked: Option<(Instant, Instant)>,
    /// When the first segment was sent that SACK reported since [`Rack::take_original`] and that was sent once.
    first_sacked: Option<Instant>,
    /// When further segments may have to be declared lost; `Instant::MAX` means never.
    check_at: Instant,
    tail: Tail,
    /// The segments declared lost since [`Rack::next_declared`] returned them; `None` if nobody asks.
    declared: Option<VecDeque<(u64, u64)>>,
}

impl Rack {
    /// Creates the state of a sender whose first byte has the number `first`.
    pub fn new(first: u64) -> Self {
        Self {
            flight: VecDeque::new(),
            order: VecDeque::new(),
            lost_from: 0,
            lost: 0,
            marked: 0,
            sacked: 0,
            segments_sacked: 0,
            newest: None,
            rtt: Span::ZERO,
            highest: first,
            reordered: false,
            disorders: 0,
            overtaken: 0,
            late: u64::MAX,
            patience: 1,
            persist: 0,
            grown_at: 0,
            found_losses: false,
            lost_again: None,
            original: u64::MAX,
            acked: None,
            first_sacked: None,
            check_at: Instant::MAX,
            tail: Tail { at: Instant::MAX, due: false, end: None, again: false },
            declared: None,
        }
    }

    /// From now on remembers which segments are declared lost.
    pub fn remember_declared(&mut self) {
        self.declared = Some(VecDeque::new());
    }

    /// Returns a segment that was declared lost and not returned yet.
    pub fn next_declared(&mut self) -> Option<(u64, u64)> {
        self.declared.as_mut()?.pop_front()
    }

    /// Takes back that segments are lost. They are on their way again, and may be declared lost by what was sent after them.
    pub fn nothing_is_lost(&mut self) {
        let lost = self.flight.iter().filter(|sent| sent.lost);
        self.order.extend(lost.map(|sent| Transmission { end: sent.end, at: sent.at }));
        self.order.make_contiguous().sort_unstable_by_key(|sent| (sent.at, sent.end));
        self.flight.iter_mut().for_each(|sent| (sent.lost, sent.marked) = (false, false));
        self.marked = 0;
        (self.lost, self.found_losses, self.lost_again) = (0, false, None);
    }

    /// Ends what one ACK reports: notes by how much it was overtaken (`tcp_check_sack_reordering`).
    pub fn note_overtaken(&mut self) {
        let late = std::mem::replace(&mut self.late, u64::MAX);
        if late < self.highest {
            self.disorders += 1;
            self.overtaken = self.overtaken.max((self.highest - late) as u32);
        }
    }

    /// Counts the segments of the flight.
    pub fn counted(&self) -> Counted {
        let count = |which: fn(&Sent) -> bool| self.flight.iter().filter(|sent| which(sent)).count() as u64;
        Counted {
            out: self.flight.len() as u64,
            sacked: self.segments_sacked.into(),
            lost: self.marked.into(),
            again: count(|sent| sent.again && !sent.lost && !sent.sacked),
            disorders: self.disorders.into(),
            overtaken: self.overtaken.into(),
        }
    }

    /// Returns the number of bytes on the heap, with those of the state itself.
    pub fn bytes(&self) -> usize {
        let order = self.order.capacity() * size_of::<Transmission>();
        size_of::<Self>() + self.flight.capacity() * size_of::<Sent>() + order
    }

    /// Returns when the earliest timer is due; `Instant::MAX` means never.
    pub fn deadline(&self) -> Instant {
        self.check_at.min(self.tail.at)
    }

    /// Returns how many bytes of the flight are still on their way.
    pub fn pipe(&self, flight: Range<u64>) -> u64 {
        flight.end - flight.start - self.sacked - self.lost
    }

    /// True if some segment is lost and was not retransmitted.
    pub fn any_lost(&self) -> bool {
        self.lost > 0
    }

    /// True if some segment was lost and has not been delivered since.
    pub fn any_marked(&self) -> bool {
        self.marked > 0
    }

    /// True once after segments were declared lost.
    pub fn take_found_losses(&mut self) -> bool {
        std::mem::take(&mut self.found_losses)
    }

    /// Returns once when the last of those retransmissions was sent that were declared lost.
    pub fn take_lost_again(&mut self) -> Option<Instant> {
        self.lost_again.take()
    }

    /// Returns once the lowest end of a delivered segment that was never retransmitted.
    pub fn take_original(&mut self) -> u64 {
        self.first_sacked = None;
        std::mem::replace(&mut self.original, u64::MAX)
    }

    /// Returns the bytes of the lost segments from `start` on that follow each other and left at the same time.
    pub fn lost_run(&self, start: u64) -> u64 {
        let from = self.flight.partition_point(|sent| sent.end <= start);
        let Some(at) = self.flight.get(from).map(|sent| sent.at) else { return 0 };
        self.flight.range(from..).take_while(|sent| sent.lost && sent.at == at).map(Sent::len).sum()
    }

    /// Returns once when the first segment was sent that SACK reported and that was sent once, and when the first of the flight was
    /// sent last.
    pub fn take_first_sacked(&mut self) -> Option<(Instant, Instant)> {
        Some((self.first_sacked.take()?, self.flight.front()?.at))
    }

    /// Returns when the first and the last segment were sent that the newest ACK covers, unless one of them was sent again
    /// (`tcp_clean_rtx_queue`).
    pub fn acked(&self) -> Option<(Instant, Instant)> {
        self.acked
    }

    /// Returns the first segment that is lost and was not retransmitted.
    pub fn next_lost(&mut self) -> Option<(u64, u64)> {
        if self.lost == 0 {
            return None;
        }
        let from = self.flight.partition_point(|sent| sent.end <= self.lost_from);
        let sent = self.flight.range(from..).find(|sent| sent.lost)?;
        self.lost_from = sent.start;
        Some((sent.start, sent.end))
    }

    /// Returns the first segment that was not SACKed.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.flight.iter().find(|sent| !sent.sacked).map(|sent| (sent.start, sent.end))
    }

    /// Returns when the oldest segment of the flight was last sent; `None` if nothing is in flight.
    pub fn oldest(&self) -> Option<Instant> {
        self.flight.front().map(|sent| sent.at)
    }

    /// Records that new data was sent.
    pub fn sent(&mut self, Range { start, end }: Range<u64>, now: Instant) {
        self.flight.push_back(Sent { start, end, at: now, again: false, sacked: false, lost: false, marked: false });
        self.order.push_back(Transmission { end, at: now });
    }

    /// Records that the segment which begins at `start` was retransmitted.
    pub fn sent_again(&mut self, start: u64, now: Instant) {
        let position = self.flight.partition_point(|sent| sent.end <= start);
        let Some(sent) = self.flight.get_mut(position) else { return };
        self.lost -= if sent.lost { sent.len() } else { 0 };
        (sent.at, sent.again, sent.lost) = (now, true, false);
        self.order.push_back(Transmission { end: sent.end, at: now });
    }

    /// Handles a cumulative ACK: everything below `una` arrived (§6.2 steps 2 and 3).
    pub fn advance(&mut self, una: u64, arrival: &Arrival) {
        self.acked = None;
        let mut again = false;
        while let Some(mut sent) = self.flight.front().copied().filter(|sent| sent.start < una) {
            let part = sent.end.min(una) - sent.start;
            self.lost -= if sent.lost { part } else { 0 };
            self.sacked -= if sent.sacked { part } else { 0 };
            if sent.end > una {
                sent.start = una;
                self.flight[0] = sent;
                return;
            }
            self.flight.pop_front();
            self.marked -= u32::from(sent.marked);
            self.segments_sacked -= u32::from(sent.sacked);
            again |= sent.again;
            if !again && !sent.sacked {
                self.acked = Some((self.acked.map_or(sent.at, |(first, _)| first), sent.at));
            } else if again {
                self.acked = None;
            }
            if !sent.sacked {
                self.delivered(&sent, arrival);
            }
        }
    }

    /// Handles a SACK block (§6.2 steps 2 and 3).
    pub fn sack(&mut self, Range { start, end }: Range<u64>, arrival: &Arrival) {
        let mut position = self.flight.partition_point(|sent| sent.start < start);
        while let Some(sent) = self.flight.get_mut(position).filter(|sent| sent.end <= end) {
            position += 1;
            if sent.sacked {
                continue;
            }
            self.lost -= if sent.lost { sent.len() } else { 0 };
            self.marked -= u32::from(sent.marked);
            (sent.sacked, sent.lost, sent.marked) = (true, false, false);
            self.sacked += sent.len();
            self.segments_sacked += 1;
            let sent = *sent;
            if !sent.again && self.first_sacked.is_none() {
                self.first_sacked = Some(sent.at);
            }
            self.delivered(&sent, arrival);
        }
    }

    fn delivered(&mut self, sent: &Sent, arrival: &Arrival) {
        if !sent.again {
            self.original = self.original.min(sent.end);
        }
        if sent.end > self.highest {
            self.highest = sent.end;
        } else if sent.end < self.highest && !sent.again {
            self.reordered = true;
            self.late = self.late.min(sent.start);
        }
        let rtt = arrival.now.since(sent.at);
        if sent.again {
            // The ACK may be of the first transmission: it is ignored if its timestamp is older than the
            // retransmission.
            let before = |echo: u32| (echo.wrapping_sub(super::sequence::timestamp(sent.at)) as i32) < 0;
            if arrival.echo.is_some_and(before) || rtt < arrival.min_rtt {
                return;
            }
        }
        self.rtt = rtt;
        self.newest = self.newest.max(Some(sent.key()));
    }

    /// Returns the reordering window (§6.2 step 4).
    fn reordering_window(&self, arrival: &Arrival) -> Span {
        if !self.reordered && (arrival.recovering || self.segments_sacked >= DUP_THRESH) {
            return Span::ZERO;
        }
        (arrival.min_rtt * u64::from(self.patience)).div(4).min(arrival.srtt)
    }

    /// Handles an ACK up to the begin of the flight; `twice` is true if it reports a segment that arrived twice. Then the
    /// window grows, at most once per round trip (§6.2 step 4).
    pub fn note_twice(&mut self, flight: Range<u64>, twice: bool) {
        if flight.start >= self.grown_at {
            self.grown_at = 0;
        }
        if twice && self.grown_at == 0 {
            self.grown_at = flight.end;
            self.patience = self.patience.saturating_add(1);
            self.persist = PERSIST;
        }
    }

    /// Ends a recovery; after 16 of them the reordering window returns to its initial size (§6.2 step 4).
    pub fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.patience = 1;
        }
    }

    /// Declares segments lost whose time is over, and sets the timer for those whose time will come (§6.2 step 5).
    pub fn detect(&mut self, arrival: &Arrival) {
        self.check_at = Instant::MAX;
        let Some(newest) = self.newest else { return };
        let patience = self.rtt + self.reordering_window(arrival);
        let mut kept = 0;
        while let Some(sent) = self.order.get(kept).copied().filter(|sent| (sent.at, sent.end) < newest) {
            let due = sent.at + patience;
            if let Some(place) = self.place(&sent) {
                if due > arrival.now {
                    self.check_at = if self.check_at == Instant::MAX { due } else { due.max(self.check_at) };
                    kept += 1;
                    continue;
                }
                self.declare_lost(place);
            }
            // What is kept is as much as a reordering window holds: nothing, as a rule.
            self.order.remove(kept);
        }
    }

    /// Returns the place of the segment of this transmission, if it was neither delivered, nor declared lost, nor sent
    /// again.
    fn place(&self, sent: &Transmission) -> Option<usize> {
        let front = self.flight.front()?;
        if sent.end <= front.start {
            return None;
        }
        let place = self.flight.partition_point(|record| record.end < sent.end);
        let record = self.flight.get(place)?;
        (record.end == sent.end && record.at == sent.at && !record.sacked && !record.lost).then_some(place)
    }

    fn declare_lost(&mut self, place: usize) {
        let record = &mut self.flight[place];
        self.marked += u32::from(!record.marked);
        (record.lost, record.marked) = (true, true);
        self.lost += record.len();
        self.lost_from = self.lost_from.min(record.start);
        self.found_losses = true;
        self.lost_again = self.lost_again.max(record.again.then_some(record.at));
        if let Some(declared) = &mut self.declared {
            declared.push_back((record.start, record.end));
        }
    }

    /// Handles a retransmission timeout: the first segment is lost, and all that were sent long enough ago (§6.3).
    pub fn timed_out(&mut self, arrival: &Arrival) {
        let patience = self.rtt + self.reordering_window(arrival);
        let mut first = true;
        for sent in self.flight.iter_mut().filter(|sent| !sent.sacked) {
            if (std::mem::take(&mut first) || sent.at + patience <= arrival.now) && !sent.lost {
                self.marked += u32::from(!sent.marked);
                (sent.lost, sent.marked) = (true, true);
                self.lost += sent.len();
                self.lost_from = self.lost_from.min(sent.start);
                if let Some(declared) = &mut self.declared {
                    declared.push_back((sent.start, sent.end));
                }
            }
        }
        self.forget_probe();
    }

    /// Sets the timer of the probe, after new data was sent or acknowledged outside of recovery (§7.2).
    pub fn schedule_probe(&mut self, in_flight: u64, mss: u64, srtt: Span, rto_at: Instant, now: Instant) {
        if self.tail.end.is_some() || self.sacked > 0 || in_flight == 0 {
            self.tail.at = Instant::MAX;
            return;
        }
        let alone = if in_flight <= mss { MAX_ACK_DELAY } else { Span::ZERO };
        let timeout = if srtt == Span::ZERO { PTO_WITHOUT_SAMPLE } else { srtt * 2 + alone };
        self.tail.at = (now + timeout).min(rto_at);
    }

    /// Returns true once when the timer of the probe is due.
    pub fn probe_timer_fires(&mut self, now: Instant) -> bool {
        let fires = self.tail.at <= now;
        if fires {
            self.tail.at = Instant::MAX;
            self.tail.due = true;
        }
        fires
    }

    /// Returns true once when a probe must be sent.
    pub fn take_due_probe(&mut self) -> bool {
        std::mem::take(&mut self.tail.due)
    }

    /// Records that new data up to `end` serves as the probe (§7.3).
    pub fn probed_with_new_data(&mut self, end: u64) {
        (self.tail.end, self.tail.again) = (Some(end), false);
    }

    /// Returns the last segment, to be retransmitted as the probe because there is no new data (§7.3).
    pub fn probe_last(&mut self, now: Instant) -> Option<(u64, u64)> {
        let last = *self.flight.back()?;
        self.sent_again(last.start, now);
        (self.tail.end, self.tail.again) = (Some(last.end), true);
        Some((last.start, last.end))
    }

    /// Returns true if the probe repaired the loss of the last segment, which no other event would reveal (§7.4.2).
    /// `twice` is the end of the segment which a D-SACK reports.
    pub fn probe_repaired(&mut self, ack: u64, twice: Option<u64>, duplicate: bool) -> bool {
        let Some(end) = self.tail.end.filter(|end| ack >= *end) else { return false };
        let needless = twice == Some(end);
        let repaired = self.tail.again && !needless && ack > end;
        if !self.tail.again || needless || repaired || duplicate {
            self.tail.end = None;
        }
        repaired
    }

    /// Forgets an outstanding probe, because recovery begins and retransmits all lost segments.
    pub fn forget_probe(&mut self) {
        self.tail = Tail { at: Instant::MAX, due: false, end: None, again: false };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;
    const MS: fn(u64) -> Span = Span::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    /// An ACK at this time, on a path with a round trip time of 100 ms.
    fn arrival(ms: u64) -> Arrival {
        Arrival { now: at(ms), echo: None, srtt: MS(100), min_rtt: MS(100), recovering: false }
    }

    /// Ten segments, one sent each millisecond from 0 ms on.
    fn rack() -> Rack {
        let mut rack = Rack::new(0);
        (0..10).for_each(|n| rack.sent(n * MSS..(n + 1) * MSS, at(n)));
        rack
    }

    #[test]
    fn what_was_sent_before_the_newest_that_arrived_is_lost_after_a_quarter_of_the_round_trip() {
        let mut rack = rack();
        rack.sack(MSS..2 * MSS, &arrival(101)); // the second, sent at 1 ms: RACK.rtt is 100 ms
        rack.detect(&arrival(101));
        assert!(!rack.any_lost());
        assert_eq!(rack.deadline(), at(125), "the first, of 0 ms, with 100 + 25 ms of patience");
        rack.detect(&arrival(125));
        assert_eq!(rack.next_lost(), Some((0, MSS)));
        assert_eq!(rack.pipe(0..10 * MSS), 8 * MSS);
    }

    #[test]
    fn three_sacked_segments_need_no_patience_while_no_reordering_was_seen() {
        let mut rack = rack();
        rack.sack(MSS..4 * MSS, &arrival(103));
        rack.detect(&arrival(103));
        assert_eq!(rack.next_lost(), Some((0, MSS)));
        assert_eq!(rack.deadline(), Instant::MAX);
    }

    #[test]
    fn reordering_once_seen_makes_it_patient() {
        let mut rack = rack();
        rack.sack(MSS..2 * MSS, &arrival(101));
        rack.advance(2 * MSS, &arrival(102)); // the first arrived after all
        rack.sack(3 * MSS..6 * MSS, &arrival(105)); // three beyond the third
        rack.detect(&arrival(105));
        assert!(!rack.any_lost(), "three SACKed segments alone no longer count");
        assert_eq!(rack.deadline(), at(2 + 100 + 25));
    }

    /// The counting rule cannot detect this loss: nothing above the segment is SACKed between its two losses.
    #[test]
    fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
        let mut rack = rack();
        rack.sack(MSS..4 * MSS, &arrival(103));
        rack.detect(&arrival(103));
        rack.sent_again(0, at(103));
        assert!(!rack.any_lost());
        rack.sent(10 * MSS..11 * MSS, at(104));
        let later = Arrival { recovering: true, ..arrival(204) };
        rack.sack(4 * MSS..11 * MSS, &later);
        rack.detect(&later);
        assert_eq!(rack.next_lost(), Some((0, MSS)), "sent again at 103 ms, what was sent at 104 ms is here");
    }

    #[test]
    fn an_ack_sooner_than_the_round_trip_is_for_the_first_transmission() {
        let mut rack = rack();
        rack.sent_again(0, at(90));
        rack.advance(MSS, &arrival(100));
        rack.detect(&arrival(100));
        assert_eq!(rack.newest, None, "ten milliseconds are no round trip here");
    }

    #[test]
    fn an_echo_from_before_tells_the_first_transmission_too() {
        let mut rack = rack();
        rack.sent_again(0, at(90));
        rack.advance(MSS, &Arrival { echo: Some(0), ..arrival(300) });
        assert_eq!(rack.newest, None);
    }

    #[test]
    fn a_timeout_takes_the_first_and_what_is_old() {
        let mut rack = rack();
        rack.sack(2 * MSS..3 * MSS, &arrival(102)); // RACK.rtt is 100 ms
        rack.timed_out(&Arrival { recovering: true, ..arrival(103) });
        // In recovery the reordering window is 0: at 103 ms the segments sent by 3 ms are lost, which are 0, 1 and 3;
        // 2 was SACKed.
        assert_eq!(rack.pipe(0..10 * MSS), 6 * MSS);
    }

    /// The timeout was needless for all but the first segment. What was sent after that one and arrived tells that it is lost.
    #[test]
    fn what_was_taken_back_can_be_declared_lost_again() {
        let mut rack = rack();
        rack.sack(MSS..2 * MSS, &arrival(101));
        rack.timed_out(&arrival(400));
        rack.detect(&arrival(400));
        assert_eq!(rack.pipe(0..10 * MSS), 0, "all are lost but the second, which arrived");
        rack.nothing_is_lost();
        assert_eq!((rack.pipe(0..10 * MSS), rack.any_lost()), (9 * MSS, false));
        rack.detect(&arrival(401));
        assert_eq!((rack.pipe(0..10 * MSS), rack.next_lost()), (8 * MSS, Some((0, MSS))));
    }

    /// The reordering window is 25 ms for each of two, three and four quarters, and then SRTT, which is 100 ms.
    #[test]
    fn each_round_trip_in_which_something_arrived_twice_adds_a_quarter_to_its_patience() {
        let mut rack = rack();
        let waits = [1, 2, 3, 4, 5].map(|round| {
            rack.note_twice(round * MSS..(round + 1) * MSS, true);
            rack.note_twice(round * MSS..(round + 1) * MSS, true); // the same round trip
            rack.reordering_window(&arrival(100))
        });
        assert_eq!(waits, [50, 75, 100, 100, 100].map(MS));
    }

    #[test]
    fn sixteen_recoveries_without_make_it_forget() {
        let mut rack = rack();
        rack.note_twice(MSS..2 * MSS, true);
        (0..15).for_each(|_| rack.recovered());
        assert_eq!(rack.reordering_window(&arrival(100)), MS(50));
        rack.recovered();
        assert_eq!(rack.reordering_window(&arrival(100)), MS(25));
    }

    #[test]
    fn an_ack_within_a_segment_keeps_the_rest() {
        let mut rack = rack();
        rack.advance(1500, &arrival(101));
        assert_eq!(rack.first(), Some((1500, 2000)));
        assert_eq!(rack.pipe(1500..10 * MSS), 8500);
    }

    #[test]
    fn the_memory_has_room_for_every_segment_in_flight() {
        assert!(rack().bytes() >= size_of::<Rack>() + 10 * size_of::<Sent>());
    }

    /// tcp_clean_rtx_queue: the first and the last segment of an ACK are timed, unless one of them was sent again.
    #[test]
    fn an_ack_of_originals_times_its_first_and_its_last() {
        let mut rack = rack();
        rack.advance(3 * MSS, &arrival(103));
        assert_eq!(rack.acked(), Some((at(0), at(2))));
        rack.sack(4 * MSS..5 * MSS, &arrival(104));
        rack.advance(5 * MSS, &arrival(105));
        assert_eq!(rack.acked(), Some((at(3), at(3))), "the other had arrived");
        rack.sent_again(5 * MSS, at(110));
        rack.advance(7 * MSS, &arrival(210));
        assert_eq!(rack.acked(), None);
    }

    /// tcp_check_sack_reordering by hand: the eighth segment arrives before the fifth, by three segments, and then the first two.
    #[test]
    fn what_was_overtaken_is_counted() {
        let mut rack = rack();
        let one = |rack: &mut Rack, segment: u64| {
            rack.sack(segment * MSS..(segment + 1) * MSS, &arrival(110));
            rack.note_overtaken();
            let counted = rack.counted();
            (counted.disorders, counted.reordering(MSS))
        };
        assert_eq!(one(&mut rack, 7), (0, 3));
        assert_eq!(one(&mut rack, 5), (1, 3));
        assert_eq!(one(&mut rack, 1), (2, 7));
    }
}
