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

/// The state of these services; kept only for controls that need one of them.
#[derive(Debug, Clone)]
pub struct Needs {
    pub requirements: Requirements,
    /// When a segment that was held back may be sent; `Instant::MAX` means never.
    pub wake: Instant,
    /// Earliest time at which the next segment may leave.
    depart: Instant,
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
        let held = now < self.depart;
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

    /// Records that data up to `end` was sent or retransmitted; `pipe` is the number of bytes in flight before.
    pub fn sent(&mut self, end: u64, pipe: Bytes, now: Instant) {
        if !self.requirements.rate {
            return;
        }
        if pipe == Bytes::ZERO {
            (self.first_sent, self.delivered_at) = (now, now);
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
            needs.sent((i + 1) * 1000, Bytes::new(i * 1000), at(0));
        }
        for i in 0..10 {
            let una = (i + 1) * 1000;
            let sample = needs.sample(acked(una, una, 9000 - i * 1000), MS(100), at(100 + 10 * i)).expect("a sample");
            assert_eq!((sample.prior_delivered.get(), sample.interval), (0, MS(100 + 10 * i)));
            needs.sent(11_000 + i * 1000, Bytes::new(9000 - i * 1000), at(100 + 10 * i));
        }
        // A segment sent after the first ACK, at 100 ms when 1000 bytes were delivered, is acknowledged at 200 ms.
        let sample = needs.sample(acked(11_000, 11_000, 9000), MS(100), at(200)).expect("a sample");
        assert_eq!((sample.prior_delivered.get(), sample.interval, sample.in_flight.get()), (1000, MS(100), 9000));
    }

    /// Two ACKs arrive compressed: data that took long to send did not travel faster than it was sent.
    #[test]
    fn the_longer_of_sending_and_acknowledging_counts() {
        let mut needs = needs();
        needs.sent(1000, Bytes::new(0), at(0));
        needs.sent(2000, Bytes::new(1000), at(80));
        assert_eq!(needs.sample(acked(1000, 1000, 1000), MS(100), at(180)).map(|s| s.interval), Some(MS(180)));
        assert_eq!(needs.sample(acked(2000, 2000, 0), MS(100), at(180)).map(|s| s.interval), Some(MS(180)));
    }

    #[test]
    fn sacked_data_is_a_sample_and_what_is_sent_again_begins_anew() {
        let mut needs = needs();
        for i in 0..4 {
            needs.sent((i + 1) * 1000, Bytes::new(i * 1000), at(i));
        }
        needs.sacked_end = 3000;
        let sample = needs.sample(acked(0, 2000, 2000), MS(100), at(110)).expect("a sample");
        assert_eq!((sample.prior_delivered.get(), sample.interval), (0, MS(110)));
        needs.lost += 1000;
        needs.sent(1000, Bytes::new(1000), at(120));
        let sample = needs.sample(acked(4000, 4000, 0), MS(100), at(220)).expect("a sample");
        assert_eq!((sample.prior_delivered.get(), sample.lost.get()), (2000, 1000), "of the newest transmission");
    }

    #[test]
    fn a_sample_knows_that_the_application_had_too_little() {
        let mut needs = needs();
        needs.sent(1000, Bytes::new(0), at(0));
        needs.nothing_to_send(Bytes::new(1000));
        needs.sent(2000, Bytes::new(1000), at(50));
        assert_eq!(needs.sample(acked(1000, 1000, 1000), MS(100), at(100)).map(|s| s.app_limited), Some(false));
        assert_eq!(needs.sample(acked(2000, 2000, 0), MS(100), at(150)).map(|s| s.app_limited), Some(true));
        needs.sent(3000, Bytes::new(0), at(200));
        assert_eq!(needs.sample(acked(3000, 3000, 0), MS(100), at(300)).map(|s| s.app_limited), Some(false));
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
