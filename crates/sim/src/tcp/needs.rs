//! Services of the sender which only some controls need: rate samples, pacing and bursts.
//!
//! Sources: draft-cheng-iccrg-delivery-rate-estimation (rate samples), RFC 9002 §7.7 in spirit (a pacer with a
//! departure time).
//!
//! A record for each segment in flight says how much had been delivered when the segment was sent. An ACK selects the
//! newest record that it covers. The rate sample is the amount delivered since then, over the longer of the time to
//! send it and the time to acknowledge it.

use super::ledger::Ledger;
use penstock_core::cc::{RateSample, Requirements};
use penstock_core::units::{Bytes, Instant, Rate, Span};
use std::collections::VecDeque;
use std::ops::Range;

/// A segment in flight, with the state of delivery when it was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    end: u64,
    at: Instant,
    first_sent: Instant,
    delivered: u64,
    delivered_at: Instant,
    app_limited: bool,
}

/// What an ACK says, and what it leaves in flight.
#[derive(Debug, Clone, Copy)]
pub struct Acked {
    /// Everything below this number has arrived.
    pub una: u64,
    /// The same with what was SACKed: the number of the first byte plus the bytes delivered.
    pub delivered: u64,
    /// Bytes in flight.
    pub pipe: Bytes,
}

/// What the pace of the kernel depends on.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub rate: Option<Rate>,
    pub min_rtt: Span,
    pub mss: u64,
    /// Segments for which the window has room; no more than half a window (`tcp_cwnd_test`).
    pub room: u64,
    /// Bytes that may leave together: those for which the peer's window has room, or those that were lost together.
    pub usable: u64,
}

impl Pace {
    /// Segments that leave together at this rate, two at least from 1.2 Mbit/s on (`bbr_min_tso_segs`).
    fn segments(&self, rate: Rate) -> u64 {
        let least = if rate.as_bps() < 1_200_000 { 1 } else { 2 };
        together(rate, self.min_rtt, self.mss).max(least)
    }
}

/// Segments that leave together at this rate: those of 1/1024 s, and more on short paths (`tcp_tso_autosize`).
pub fn together(rate: Rate, min_rtt: Span, mss: u64) -> u64 {
    let short = (min_rtt.as_nanos() / 1000) >> 9;
    let more = if short < 32 { 65_536 >> short } else { 0 };
    ((rate.as_bps() / 8 / 1024) + more).min(65_535) / mss.max(1)
}

/// Segments that leave together, as a packet which the kernel segments late (GSO).
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    at: Instant,
    /// Segments of it that have not left, and where the next one begins.
    left: u64,
    next: u64,
    /// Segments that were sent; the kernel does not pace the first ten.
    sent: u64,
}

/// The state of these services; kept only for controls that need one of them.
#[derive(Debug, Clone)]
pub struct Needs {
    pub requirements: Requirements,
    /// When a segment that was held back may be sent; `Instant::MAX` means never.
    pub wake: Instant,
    /// Earliest time at which the next segment may leave.
    depart: Instant,
    group: Group,
    records: VecDeque<Sent>,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    /// Data below this count of delivered bytes was sent while the application had too little to send; 0 if there is
    /// none.
    app_limited: u64,
    /// Number of bytes that were retransmitted because they were lost.
    pub lost: u64,
    /// End of the newest data that the current ACK reports as SACKed.
    pub sacked_end: u64,
    /// Each segment in flight, for controls that require them.
    pub ledger: Option<Box<Ledger>>,
}

impl Needs {
    /// Creates the state for a sender whose first byte has the number `first`.
    pub fn new(requirements: Requirements, first: u64) -> Self {
        Self {
            requirements,
            wake: Instant::MAX,
            depart: Instant::ZERO,
            group: Group::default(),
            records: VecDeque::new(),
            delivered: first,
            delivered_at: Instant::ZERO,
            first_sent: Instant::ZERO,
            app_limited: 0,
            lost: 0,
            sacked_end: 0,
            ledger: requirements.segments.then(Box::default),
        }
    }

    /// Returns the number of bytes on the heap, with those of the state itself.
    pub fn bytes(&self) -> usize {
        let ledger = self.ledger.as_ref().map_or(0, |ledger| ledger.bytes());
        size_of::<Self>() + self.records.capacity() * size_of::<Sent>() + ledger
    }

    /// True if pacing forbids to send at `now`; the wake-up is then set to the time at which sending is allowed.
    pub fn held(&mut self, now: Instant) -> bool {
        if self.group.at != now {
            self.group.left = 0;
        }
        let held = now < self.depart && self.group.left == 0;
        if held {
            self.wake = self.depart;
        }
        held
    }

    /// Records that a segment leaves: the next one may leave after the time that this one takes at the pacing rate.
    pub fn paced(&mut self, now: Instant, bytes: u64, rate: Option<Rate>) {
        if let Some(rate) = rate {
            self.depart = self.depart.max(now) + rate.time_for(Bytes::new(bytes));
        }
    }

    /// Records that a segment leaves, at the pace of the kernel: the time of a group counts when its first segment leaves,
    /// and is shorter by as much as that is late, down to its half (`tcp_update_skb_after_send`).
    pub fn paced_in_groups(&mut self, now: Instant, segment: Range<u64>, pace: &Pace) {
        let group = &mut self.group;
        group.sent += 1;
        let goes_on = group.left > 0 && (group.at, group.next) == (now, segment.start);
        group.next = segment.end;
        if goes_on {
            group.left -= 1;
            return;
        }
        let Some(rate) = pace.rate.filter(|rate| rate.as_bps() > 0) else { return };
        let most = pace.segments(rate).min(pace.room).max(1);
        let bytes = (most * pace.mss).min(pace.usable).max(segment.end - segment.start);
        let segments = bytes.div_ceil(pace.mss).max(1);
        (group.at, group.left) = (now, segments - 1);
        if group.sent + segments > 10 {
            let time = rate.time_for(Bytes::new(bytes));
            let leaves = self.depart.max(now);
            self.depart = leaves + (time - leaves.since(self.depart).min(time.div(2)));
        }
    }

    /// True if segments of a group are still to leave.
    pub fn is_within_group(&self) -> bool {
        self.group.left > 0
    }

    /// Returns when the pace lets the next segment leave.
    pub fn departs(&self) -> Instant {
        self.depart
    }

    /// Begins the intervals of rate samples anew, before data is sent while nothing is under way.
    pub fn restart_clock(&mut self, now: Instant) {
        (self.first_sent, self.delivered_at) = (now, now);
        if let Some(ledger) = &mut self.ledger {
            ledger.restart_clock(now);
        }
    }

    /// Records that data up to `end` was sent or retransmitted, after [`Needs::restart_clock`] if there is need.
    pub fn sent(&mut self, end: u64, now: Instant) {
        if !self.requirements.rate {
            return;
        }
        let record = Sent {
            end,
            at: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            app_limited: self.app_limited > 0,
        };
        let position = self.records.partition_point(|sent| sent.end < end);
        match self.records.get_mut(position) {
            Some(again) => *again = Sent { end: again.end, ..record },
            None => self.records.push_back(record),
        }
    }

    /// Records that there was no data to send although the window was open.
    pub fn nothing_to_send(&mut self, pipe: Bytes) {
        self.app_limited = (self.delivered + pipe.get()).max(1);
    }

    /// Takes an ACK and returns its rate sample, if it gives one.
    pub fn sample(&mut self, acked: Acked, min_rtt: Span, now: Instant) -> Option<RateSample> {
        let Acked { una, delivered, pipe } = acked;
        if !self.requirements.rate {
            return None;
        }
        let mut newest: Option<Sent> = None;
        let newer = |newest: &Option<Sent>, sent: &Sent| newest.is_none_or(|n| sent.delivered >= n.delivered);
        while let Some(sent) = self.records.front().filter(|sent| sent.end <= una) {
            if newer(&newest, sent) {
                newest = Some(*sent);
            }
            self.records.pop_front();
        }
        let position = self.records.partition_point(|sent| sent.end < self.sacked_end);
        if let Some(sent) = self.records.get(position).filter(|_| self.sacked_end > una)
            && newer(&newest, sent)
        {
            newest = Some(*sent);
        }
        self.sacked_end = 0;
        if delivered > self.delivered {
            (self.delivered, self.delivered_at) = (delivered, now);
        }
        if self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let sent = newest?;
        self.first_sent = sent.at;
        let interval = sent.at.since(sent.first_sent).max(now.since(sent.delivered_at));
        // §3.3: an interval shorter than a round trip comes from two ACKs that arrived together.
        (interval >= min_rtt).then_some(RateSample {
            prior_delivered: Bytes::new(sent.delivered),
            interval,
            app_limited: sent.app_limited,
            in_flight: pipe,
            lost: Bytes::new(self.lost),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    fn acked(una: u64, delivered: u64, pipe: u64) -> Acked {
        Acked { una, delivered, pipe: Bytes::new(pipe) }
    }

    fn needs() -> Needs {
        Needs::new(Requirements { rate: true, ..Requirements::default() }, 0)
    }

    /// Ten segments are sent at once and acknowledged every 10 ms from 100 ms on: the fourth ACK acknowledges the
    /// fourth segment at 130 ms.
    #[test]
    fn a_sample_is_what_was_delivered_since_the_segment_was_sent() {
        let mut needs = needs();
        for i in 0..10 {
            needs.sent((i + 1) * 1000, at(0));
        }
        for i in 0..10 {
            let una = (i + 1) * 1000;
            let sample = needs.sample(acked(una, una, 9000 - i * 1000), MS(100), at(100 + 10 * i)).expect("a sample");
            assert_eq!((sample.prior_delivered.get(), sample.interval), (0, MS(100 + 10 * i)));
            needs.sent(11_000 + i * 1000, at(100 + 10 * i));
        }
        // A segment sent after the first ACK, at 100 ms when 1000 bytes were delivered, is acknowledged at 200 ms.
        let sample = needs.sample(acked(11_000, 11_000, 9000), MS(100), at(200)).expect("a sample");
        assert_eq!((sample.prior_delivered.get(), sample.interval, sample.in_flight.get()), (1000, MS(100), 9000));
    }

    /// Two ACKs arrive compressed: data that took long to send did not travel faster than it was sent.
    #[test]
    fn the_longer_of_sending_and_acknowledging_counts() {
        let mut needs = needs();
        needs.sent(1000, at(0));
        needs.sent(2000, at(80));
        assert_eq!(needs.sample(acked(1000, 1000, 1000), MS(100), at(180)).map(|s| s.interval), Some(MS(180)));
        assert_eq!(needs.sample(acked(2000, 2000, 0), MS(100), at(180)).map(|s| s.interval), Some(MS(180)));
    }

    #[test]
    fn sacked_data_is_a_sample_and_what_is_sent_again_begins_anew() {
        let mut needs = needs();
        for i in 0..4 {
            needs.sent((i + 1) * 1000, at(i));
        }
        needs.sacked_end = 3000;
        let sample = needs.sample(acked(0, 2000, 2000), MS(100), at(110)).expect("a sample");
        assert_eq!((sample.prior_delivered.get(), sample.interval), (0, MS(110)));
        needs.lost += 1000;
        needs.sent(1000, at(120));
        let sample = needs.sample(acked(4000, 4000, 0), MS(100), at(220)).expect("a sample");
        assert_eq!((sample.prior_delivered.get(), sample.lost.get()), (2000, 1000), "of the newest transmission");
    }

    #[test]
    fn a_sample_knows_that_the_application_had_too_little() {
        let mut needs = needs();
        needs.sent(1000, at(0));
        needs.nothing_to_send(Bytes::new(1000));
        needs.sent(2000, at(50));
        assert_eq!(needs.sample(acked(1000, 1000, 1000), MS(100), at(100)).map(|s| s.app_limited), Some(false));
        assert_eq!(needs.sample(acked(2000, 2000, 0), MS(100), at(150)).map(|s| s.app_limited), Some(true));
        needs.restart_clock(at(200));
        needs.sent(3000, at(200));
        assert_eq!(needs.sample(acked(3000, 3000, 0), MS(100), at(300)).map(|s| s.app_limited), Some(false));
    }

    /// tcp_tso_autosize and bbr_min_tso_segs by hand, for segments of 1000 bytes: 1 below 1.2 Mbit/s, then 2; 9 in a millisecond (1/1024
    /// s) of 80 Mbit/s; on a path of 6 ms 65536 / 2^11 = 32 bytes more, on one of 1 ms 65536 / 2 more.
    #[test]
    fn a_group_is_a_millisecond_of_the_pace() {
        let groups = |mbps: f64, rtt_us: u64| {
            let pace = Pace { rate: None, min_rtt: Span::from_micros(rtt_us), mss: 1000, room: 99, usable: u64::MAX };
            pace.segments(Rate::from_bps((mbps * 1e6) as u64))
        };
        assert_eq!([groups(1.1, 40_000), groups(1.3, 40_000), groups(80.0, 40_000)], [1, 2, 9]);
        assert_eq!([groups(80.0, 6_000), groups(80.0, 1_000)], [9, 42]);
    }

    /// tcp_update_skb_after_send by hand: at 8 Mbit/s a group of two segments takes 2 ms; one that leaves 0.5 ms late leaves its next
    /// 1.5 ms, one that leaves 10 ms late leaves it a half. The first ten segments are not paced.
    #[test]
    fn a_group_that_leaves_late_brings_the_next_one_forward() {
        let mut needs = needs();
        let pace =
            Pace { rate: Some(Rate::from_bps(8_000_000)), min_rtt: MS(40), mss: 1000, room: 99, usable: u64::MAX };
        let us = |us: u64| Instant::ZERO + Span::from_micros(us);
        let mut next = 0;
        let mut two = |needs: &mut Needs, now: Instant| {
            for _ in 0..2 {
                assert!(!needs.held(now));
                needs.paced_in_groups(now, next..next + 1000, &pace);
                next += 1000;
            }
            needs.departs()
        };
        (0..4).for_each(|_| assert_eq!(two(&mut needs, us(0)), us(0)));
        assert_eq!(two(&mut needs, us(0)), us(2000), "the tenth segment");
        assert!(needs.held(us(1999)));
        assert_eq!(two(&mut needs, us(2500)), us(2500 + 1500));
        assert_eq!(two(&mut needs, us(14_000)), us(14_000 + 1000));
        needs.paced_in_groups(us(15_000), 90_000..90_400, &Pace { usable: 400, ..pace });
        assert_eq!(needs.departs(), us(15_400), "what is there");
    }

    /// 1000 bytes at 800 kbit/s take 10 ms.
    #[test]
    fn segments_leave_no_faster_than_the_pace() {
        let mut needs = needs();
        let rate = Some(Rate::from_bps(800_000));
        assert!(!needs.held(at(5)));
        needs.paced(at(5), 1000, rate);
        assert!(needs.held(at(14)) && needs.wake == at(15));
        assert!(!needs.held(at(15)));
        needs.paced(at(40), 1000, rate);
        assert!(needs.held(at(49)) && !needs.held(at(50)), "time that was not used is lost");
        needs.paced(at(60), 1000, None);
        assert!(!needs.held(at(60)));
    }
}
