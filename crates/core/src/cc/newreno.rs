//! NewReno: slow start and additive increase, halving on loss.
//!
//! Source: RFC 5681 §3.1 and §4.1, RFC 6582 (recovery, in the endpoint), RFC 3465 (byte counting, L = 2).
//!
//! ```text
//! slow start            cwnd += min(N, L SMSS)          RFC 5681 eq. (2), RFC 3465 §2.2
//! congestion avoidance  cwnd += SMSS per cwnd bytes     RFC 3465 §2.1
//! loss                  ssthresh = max(FlightSize/2, 2 SMSS)   RFC 5681 eq. (4)
//! timeout               the same, and cwnd = 1 SMSS
//! ```
//!
//! State: `cwnd`, `ssthresh`, bytes acknowledged towards the next increment. Cost: O(1).

use super::{Ack, CongestionControl, Loss, Setup};
use crate::units::Instant;

/// L of RFC 3465: most segments by which one ACK may open the window in slow start.
const SLOW_START_LIMIT: u64 = 2;

/// The control.
#[derive(Debug, Clone, PartialEq)]
pub struct NewReno {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
    acked: u64,
}

impl NewReno {
    /// A control that begins in slow start.
    pub fn new(setup: &Setup) -> Self {
        Self { mss: setup.mss, cwnd: setup.initial_window, ssthresh: u64::MAX, acked: 0 }
    }

    fn halve(&mut self, in_flight: u64) {
        self.ssthresh = (in_flight / 2).max(2 * self.mss); // RFC 5681 eq. (4)
        self.acked = 0;
    }
}

/// Slow start of RFC 5681 with the byte limit of RFC 3465; never beyond `ssthresh` by more than one increment.
pub(super) fn slow_start(cwnd: u64, acked: u64, mss: u64) -> u64 {
    cwnd + acked.min(SLOW_START_LIMIT * mss)
}

impl CongestionControl for NewReno {
    #[inline]
    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    #[inline]
    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.cwnd_limited {
            return;
        }
        if self.cwnd < self.ssthresh {
            self.cwnd = slow_start(self.cwnd, ack.acked, self.mss);
            return;
        }
        self.acked += ack.acked;
        if self.acked >= self.cwnd {
            self.acked -= self.cwnd;
            self.cwnd += self.mss;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.halve(loss.in_flight);
    }

    fn on_recovered(&mut self, _: Instant) {
        self.cwnd = self.ssthresh;
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.halve(loss.in_flight);
        self.cwnd = self.mss;
    }

    fn on_idle(&mut self, _: Instant, initial_window: u64) {
        self.cwnd = self.cwnd.min(initial_window); // RFC 5681 §4.1
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    #[test]
    fn slow_start_doubles_each_round_trip_and_avoidance_adds_one_segment() {
        let mut cc = NewReno::new(&driver::SETUP);
        driver::round_trip(&mut cc, 100);
        assert_eq!(cc.cwnd(), 20 * MSS);
        cc.on_loss(&driver::loss(20 * MSS));
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (10 * MSS, 10 * MSS));
        driver::round_trip(&mut cc, 100);
        assert_eq!(cc.cwnd(), 11 * MSS);
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_the_threshold_is_at_least_two() {
        let mut cc = NewReno::new(&driver::SETUP);
        cc.on_rto(&driver::loss(3 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (MSS, 2 * MSS));
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut cc = NewReno::new(&driver::SETUP);
        cc.on_ack(&Ack { cwnd_limited: false, ..driver::ack(MSS, 100) });
        assert_eq!(cc.cwnd(), 10 * MSS);
    }

    /// AIMD(1, 1/2) with one loss per 1/p segments: the window runs from W/2 to W in W/2 round trips, 3/8 W^2
    /// segments, so W = sqrt(8/(3p)) and the mean is 3/4 W.
    #[test]
    fn the_mean_window_is_that_of_the_square_root_law() {
        let p = 1.0 / 2400.0;
        let mean = driver::mean_window(&mut NewReno::new(&driver::SETUP), p, 100);
        let law = 0.75 * (8.0 / (3.0 * p) as f64).sqrt();
        assert!((mean / law - 1.0).abs() < 0.03, "{mean} segments, the law says {law}");
    }
}
