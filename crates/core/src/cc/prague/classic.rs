//! How Prague tells a classic queue with ECN from an L4S queue, and what it does then.
//!
//! A classic queue marks packets at the rate at which it would drop them, so it expects that a mark halves the window.
//! Prague would take most of such a link. What gives the queue away is its delay: that of an L4S queue is short and
//! steady, that of a classic queue is long and varies.
//!
//! Source: Briscoe and Ahmed, "TCP Prague Fall-back on Detection of a Classic ECN AQM" (arXiv:1911.00710), version 2 of
//! the design; gains, weights and limits as in Linux (`prague_ecn_fallback = 1`).
//!
//! ```text
//! each round trip sample m:  srtt += (m - srtt) / 2^s
//!                            mdev += (|m - srtt| - mdev) / 2^(s+1)       with srtt before this sample
//! each loss or mark:         s = min(lg + lg/2 + 1, 18) in integers, lg = floor(log2(ssthresh)); 18 before the first
//! each average of alpha:     score += V log2(mdev / 750 us) + D max(log2((srtt - min_rtt) / 2 ms), 0)
//!                            0 <= score <= 17, V = D = 1/2
//! a mark:                    alpha = max(alpha, 0.625 min(score - 8, 1))
//! ```
//!
//! Below a score of 8 the queue counts as L4S, from 9 on as classic; 0.625 takes about as much of a window as CUBIC.
//!
//! DIFFERENCE: logarithms are those of real numbers. The kernel adds integer ones and carries what they leave over to the
//! next round. Pinned by `the_score_follows_the_published_rule`.
//!
//! Not implemented: the third term of the score, for a flow that its application limits. It is off in Linux, too.

use super::super::Ack;
use crate::units::Span;

/// Weight of the variation of the delay.
const V: f64 = 0.5;
/// Weight of the depth of the queue.
const D: f64 = 0.5;
/// Variation of the delay, in microseconds, at which the score stays.
const V0: f64 = 750.0;
/// Depth of the queue, in microseconds, above which the score rises.
const D0: f64 = 2000.0;
/// Score up to which the queue counts as L4S, and beyond 1 + this the score that keeps a classic queue.
const STICKY: f64 = 8.0;
/// Least alpha behind a queue which is classic for certain.
const CLASSIC_ALPHA: f64 = 0.625;
/// Exponent of the gain of srtt before the first signal, and its upper limit.
const SLOWEST: i32 = 18;

/// The state of the detection. Times are in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Classic {
    srtt: Option<f64>,
    mdev: f64,
    /// The gain of srtt is 2 to the power of minus this.
    slow: i32,
    score: f64,
}

impl Default for Classic {
    fn default() -> Self {
        Self { srtt: None, mdev: 1.0, slow: SLOWEST, score: 0.0 }
    }
}

impl Classic {
    /// Takes the round trip time sample of an ACK, if it has one.
    #[inline]
    pub fn measure(&mut self, ack: &Ack) {
        let Some(sample) = ack.rtt.map(micros) else { return };
        let Some(srtt) = self.srtt else {
            self.srtt = Some(sample);
            return;
        };
        let error = sample - srtt;
        self.srtt = Some(srtt + error * libm::exp2(f64::from(-self.slow)));
        self.mdev += (error.abs() - self.mdev) * libm::exp2(f64::from(-self.slow - 1));
    }

    /// Fits the gains to a slow start threshold of so many segments, before a signal changes it.
    pub fn adapt(&mut self, ssthresh: f64) {
        let lg = libm::log2(ssthresh.max(1.0)).min(f64::from(SLOWEST)) as i32;
        self.slow = (lg + lg / 2 + 1).min(SLOWEST);
    }

    /// Moves the score, once per average of alpha.
    pub fn judge(&mut self, min_rtt: Span) {
        let Some(srtt) = self.srtt else { return };
        let varies = V * libm::log2(self.mdev.max(1.0) / V0);
        let depth = (srtt - micros(min_rtt)).max(D0);
        self.score = (self.score + varies + D * libm::log2(depth / D0)).clamp(0.0, 2.0 * STICKY + 1.0);
    }

    /// From 0, an L4S queue, to 1, a classic queue.
    pub fn degree(&self) -> f64 {
        (self.score - STICKY).clamp(0.0, 1.0)
    }

    /// The alpha to reduce by at a mark.
    pub fn raised(&self, alpha: f64) -> f64 {
        alpha.max(CLASSIC_ALPHA * self.degree())
    }
}

fn micros(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::super::super::driver::{self, MSS};
    use super::*;

    fn sample(us: u64) -> Ack {
        Ack { rtt: Some(Span::from_micros(us)), ..driver::ack(MSS, 10) }
    }

    /// lg 2 = 1: 1 + 0 + 1 = 2; lg 40 = 5: 5 + 2 + 1 = 8; lg 1000 = 9: 9 + 4 + 1 = 14; the limit is 18.
    #[test]
    fn gains_follow_the_threshold() {
        let mut classic = Classic::default();
        for (ssthresh, slow) in [(f64::INFINITY, 18), (2.0, 2), (40.0, 8), (1000.0, 14), (1e6, 18), (0.0, 1)] {
            classic.adapt(ssthresh);
            assert_eq!(classic.slow, slow, "{ssthresh} segments");
        }
    }

    /// With s = 2, from 10 ms: a sample of 14 ms gives 10 + 4/4 = 11 ms and 1 + (4000 - 1)/8 us; the next one of 7 ms gives
    /// 11 - 4/4 = 10 ms.
    #[test]
    fn averages_take_a_part_of_each_error() {
        let mut classic = Classic::default();
        classic.adapt(2.0);
        classic.measure(&sample(10_000));
        classic.measure(&sample(14_000));
        assert_eq!((classic.srtt, classic.mdev), (Some(11_000.0), 1.0 + 3_999.0 / 8.0));
        classic.measure(&Ack { rtt: None, ..sample(1) });
        classic.measure(&sample(7_000));
        assert_eq!(classic.srtt, Some(10_000.0));
    }

    /// A variation of 3 ms is two doublings of 750 us, a depth of 16 ms three of 2 ms: 1 + 1.5 per round. A depth below
    /// 2 ms counts nothing; a variation of 187.5 us takes 1 per round.
    #[test]
    fn the_score_follows_the_published_rule() {
        let base = Span::from_millis(10);
        let mut classic = Classic { srtt: Some(26_000.0), mdev: 3_000.0, ..Classic::default() };
        let rises: Vec<f64> = (0..8)
            .map(|_| {
                classic.judge(base);
                classic.score
            })
            .collect();
        assert_eq!(rises, [2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.0, 17.0]);
        (classic.srtt, classic.mdev) = (Some(10_100.0), 187.5);
        (0..8).for_each(|_| classic.judge(base));
        assert_eq!(classic.score, 9.0, "it stays classic for eight rounds");
        (0..20).for_each(|_| classic.judge(base));
        assert_eq!(classic.score, 0.0);
    }

    #[test]
    fn a_classic_queue_raises_alpha_and_never_lowers_it() {
        for (score, alpha, raised) in [
            (0.0, 0.1, 0.1),
            (8.0, 0.1, 0.1),
            (8.5, 0.1, 0.3125),
            (9.0, 0.1, 0.625),
            (17.0, 0.1, 0.625),
            (17.0, 0.9, 0.9),
        ] {
            assert_eq!(Classic { score, ..Classic::default() }.raised(alpha), raised, "{score}");
        }
    }

    #[test]
    fn without_a_sample_nothing_is_judged() {
        let mut classic = Classic::default();
        classic.judge(Span::from_millis(10));
        assert_eq!(classic, Classic::default());
    }
}
