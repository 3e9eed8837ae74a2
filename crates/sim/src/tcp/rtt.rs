//! The estimator of the round trip time and the retransmission timeout (RFC 6298).
//!
//! DIFFERENCE: the backoff ends with the first ACK of new data, as in Linux. RFC 6298 §5 keeps it until a new sample,
//! and without timestamps an ACK of retransmitted data gives no sample. Pinned by the ladder `an ACK of what was sent
//! again ends the backoff`.
//! DIFFERENCE: after a lost SYN the timeout of the first data is one second; RFC 6298 §5.7 says three seconds. Pinned
//! by the ladder `a lost SYN leaves the first timeout at one second`.

//!
//! An endpoint of a control in the kernel's form estimates as `tcp_rtt_estimator` of `net/ipv4/tcp_input.c` (Linux 6.12): the
//! variation is the largest of the last round trips and falls by a quarter of the excess in each; an error below zero counts
//! an eighth. So the timeout does not shrink to the variation between two ACKs of one flight.

use penstock_core::units::{Instant, Span};

const INITIAL_RTO: Span = Span::from_secs(1); // RFC 6298 §2.1
const MAX_RTO: Span = Span::from_secs(60); // RFC 6298 §2.5
const MAX_BACKOFF: u32 = 15;

/// SRTT, RTTVAR and the retransmission timeout that follows from them.
#[derive(Debug, Clone)]
pub struct RttEstimator {
    srtt: Span,
    rttvar: Span,
    min: Span,
    /// When the path changed, as long as `min` is a sample of the old path; otherwise `Instant::MAX`.
    changed: Instant,
    granularity_us: u32,
    min_rto_us: u32,
    backoff: u32,
    kernel: Option<Box<Kernel>>,
}

/// The kernel's estimator of the variation, in nanoseconds. All but the number are four times the mean deviation.
#[derive(Debug, Clone, Copy, Default)]
struct Kernel {
    mdev: u64,
    /// The largest `mdev` of this round trip.
    mdev_max: u64,
    rttvar: u64,
    /// The end of the flight when this round trip began.
    rtt_seq: u64,
}

impl Kernel {
    /// Takes the error of a sample, with the first number that is not acknowledged and the next to be sent.
    fn sample(&mut self, error: i64, (una, nxt): (u64, u64), least: u64) {
        let mut change = error.abs() - (self.mdev >> 2) as i64;
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev = self.mdev.saturating_add_signed(change);
        self.mdev_max = self.mdev_max.max(self.mdev);
        self.rttvar = self.rttvar.max(self.mdev_max);
        if una > self.rtt_seq {
            self.rttvar -= self.rttvar.saturating_sub(self.mdev_max) >> 2;
            (self.rtt_seq, self.mdev_max) = (nxt, least);
        }
    }
}

impl RttEstimator {
    /// Creates an estimator without samples, whose timeout is one second.
    pub fn new(min_rto: Span, granularity: Span) -> Self {
        let us = |span: Span| u32::try_from(span.as_nanos() / 1000).unwrap_or(u32::MAX);
        let (granularity_us, min_rto_us) = (us(granularity), us(min_rto));
        Self {
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            min: Span::MAX,
            changed: Instant::MAX,
            granularity_us,
            min_rto_us,
            backoff: 0,
            kernel: None,
        }
    }

    /// Estimates as the kernel from now on.
    pub fn follow_kernel(&mut self) {
        self.kernel = Some(Box::default());
    }

    /// Takes a sample as [`RttEstimator::sample`]; `flight` is the first number that is not acknowledged, and the next to be
    /// sent.
    pub fn sample_of(&mut self, r: Span, flight: (u64, u64), now: Instant) {
        let before = self.srtt;
        self.sample(r, now);
        let least = u64::from(self.granularity_us) * 1000;
        let Some(kernel) = &mut self.kernel else { return };
        if before == Span::ZERO {
            let mdev = 2 * r.as_nanos();
            **kernel = Kernel { mdev, mdev_max: mdev.max(least), rttvar: mdev.max(least), rtt_seq: flight.1 };
        } else {
            kernel.sample(r.as_nanos() as i64 - before.as_nanos() as i64, flight, least);
        }
    }

    /// Takes a sample from a segment that was not retransmitted, or from timestamps. The caller implements Karn's
    /// algorithm.
    pub fn sample(&mut self, r: Span, now: Instant) {
        if self.changed == Instant::MAX {
            self.min = self.min.min(r);
        } else if r <= now.since(self.changed) {
            // The segment was sent on the new path, because segments sent before the change that arrive now have taken
            // longer than this.
            (self.min, self.changed) = (r, Instant::MAX);
        } else if self.min == Span::MAX {
            self.min = r;
        }
        if self.srtt == Span::ZERO {
            (self.srtt, self.rttvar) = (r, r.div(2)); // §2.2
        } else {
            let error = self.srtt.as_nanos().abs_diff(r.as_nanos());
            // §2.3 with alpha = 1/8, beta = 1/4, in this order.
            self.rttvar = Span::from_nanos((3 * self.rttvar.as_nanos() + error) / 4);
            self.srtt = Span::from_nanos((7 * self.srtt.as_nanos() + r.as_nanos()) / 8);
        }
    }

    /// Tells that the path changed at `now`: the smallest sample must from now on be one of the new path.
    pub fn path_changed(&mut self, now: Instant) {
        self.changed = now;
    }

    /// Returns SRTT; zero before the first sample.
    pub fn srtt(&self) -> Span {
        self.srtt
    }

    /// Returns the smallest sample of the current path, or of the old path until there is one; zero before the first
    /// sample.
    pub fn min_rtt(&self) -> Span {
        if self.min == Span::MAX { Span::ZERO } else { self.min }
    }

    /// Returns the timeout with its backoff (RFC 6298 §2.3, §2.4, §5.5).
    pub fn rto(&self) -> Span {
        let base = if self.srtt == Span::ZERO {
            INITIAL_RTO
        } else {
            let us = |us: u32| Span::from_micros(us.into());
            let var = self.kernel.as_ref().map_or(self.rttvar * 4, |kernel| Span::from_nanos(kernel.rttvar));
            (self.srtt + us(self.granularity_us).max(var)).max(us(self.min_rto_us))
        };
        (base * (1 << self.backoff)).min(MAX_RTO)
    }

    /// Doubles the timeout after the timer has fired.
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// Ends the backoff after new data was acknowledged.
    pub fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Returns how often the timer has fired since the last ACK of new data.
    pub fn backoff(&self) -> u32 {
        self.backoff
    }
}

#[cfg(test)]
mod tests {
    /// tcp_rtt_estimator by hand, in ms: a first sample of 100 gives mdev 200, so a timeout of 300. Samples of 100 in one round
    /// trip lower mdev by a quarter each, and leave the timeout; the first of the next round trip begins to lower it, by a
    /// quarter of 200 - 200. Then one of 500 ms adds 400 - mdev/4.
    #[test]
    fn the_kernel_keeps_the_largest_variation_of_a_round_trip() {
        let mut rtt = RttEstimator::new(Span::from_millis(200), Span::from_millis(200));
        rtt.follow_kernel();
        let mut take = |ms, una, nxt| {
            rtt.sample_of(Span::from_millis(ms), (una, nxt), Instant::ZERO);
            rtt.rto().as_nanos() / 1_000_000
        };
        assert_eq!(take(100, 0, 10), 300);
        assert_eq!([1, 2, 3].map(|una| take(100, una, 10)), [300; 3]);
        // mdev is 200 (3/4)^3 = 84.375; the sample of 500 makes it 84.375 + 400 - 21.09 = 463.28, and SRTT 150.
        assert_eq!(take(500, 4, 10), 613);
        // An error below zero counts an eighth: 50 - 115.8 is below zero, so mdev is 397.5; SRTT is 143.75.
        assert_eq!(take(100, 5, 10), 607);
        // The next round trip: the largest of the last stays, since mdev_max was 463.28.
        assert_eq!(take(100, 11, 20), 601);
        // mdev is 341.8 and now 294.66, the largest of this round trip: 463.28 - (463.28 - 294.66) / 4 = 421.13; SRTT is 133.5.
        assert_eq!(take(100, 21, 30), 554);
    }

    use super::*;
    const MS: fn(u64) -> Span = Span::from_millis;

    #[test]
    fn rfc_6298_by_hand() {
        let mut rtt = RttEstimator::new(Span::from_secs(1), MS(1));
        assert_eq!(rtt.rto(), Span::from_secs(1));
        let sample = |rtt: &mut RttEstimator, ms| rtt.sample(MS(ms), Instant::ZERO + MS(5000));
        sample(&mut rtt, 800);
        assert_eq!((rtt.srtt(), rtt.rto()), (MS(800), MS(800 + 4 * 400)));
        sample(&mut rtt, 400); // RTTVAR = 3/4 400 + 1/4 400 = 400, SRTT = 7/8 800 + 1/8 400 = 750
        assert_eq!((rtt.srtt(), rtt.rto()), (MS(750), MS(750 + 1600)));
        assert_eq!(rtt.min_rtt(), MS(400));
    }

    /// At 1 s the round trip time changes from 30 to 500 ms. A segment sent before the change gives a sample of 60 ms,
    /// over both paths; segments sent after it give 520 and 500 ms.
    #[test]
    fn the_smallest_sample_is_one_of_the_way() {
        let mut rtt = RttEstimator::new(Span::from_secs(1), MS(1));
        let mut min_after = |at_ms, ms| {
            if at_ms == 1000 {
                rtt.path_changed(Instant::ZERO + MS(at_ms));
            } else {
                rtt.sample(MS(ms), Instant::ZERO + MS(at_ms));
            }
            rtt.min_rtt()
        };
        let samples = [(900, 30), (1000, 0), (1040, 60), (1521, 520), (1600, 500), (1700, 600)];
        assert_eq!(samples.map(|(at, ms)| min_after(at, ms)), [30, 30, 30, 520, 500, 500].map(MS));
    }

    #[test]
    fn the_timeout_has_a_floor_doubles_and_has_a_ceiling() {
        let mut rtt = RttEstimator::new(Span::from_secs(1), MS(1));
        rtt.sample(MS(10), Instant::ZERO + MS(10));
        assert_eq!(rtt.rto(), Span::from_secs(1));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::from_secs(4));
        (0..30).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), Span::from_secs(60));
        rtt.reset_backoff();
        assert_eq!(rtt.rto(), Span::from_secs(1));
    }

    /// min_RTT of RACK (RFC 8985 §6.2 step 1).
    #[test]
    fn the_smallest_sample_is_that_of_the_whole_connection() {
        let mut rtt = RttEstimator::new(Span::from_secs(1), MS(1));
        rtt.sample(MS(30), Instant::ZERO + MS(30));
        (1..=3600).for_each(|second| rtt.sample(MS(100), Instant::ZERO + Span::from_secs(second)));
        assert_eq!(rtt.min_rtt(), MS(30));
    }

    /// RFC 6298 §5.5: each time the timer fires, RTO = 2 RTO. §2.3: a later sample computes RTO anew from SRTT and
    /// RTTVAR; the caller ends the backoff.
    #[test]
    fn a_sample_is_not_a_part_of_the_backoff() {
        let mut rtt = RttEstimator::new(MS(200), MS(1));
        rtt.sample(MS(100), Instant::ZERO + MS(100)); // RTO = 100 + 4 * 50
        let fired = [300, 600, 1200, 2400].map(|ms| {
            let now = rtt.rto();
            rtt.back_off();
            (now, MS(ms))
        });
        assert!(fired.iter().all(|(got, due)| got == due), "{fired:?}");
        rtt.sample(MS(100), Instant::ZERO + MS(100)); // RTTVAR = 3/4 50 = 37.5, RTO = 250
        assert_eq!(rtt.rto(), MS(250) * 16);
        rtt.reset_backoff();
        assert_eq!(rtt.rto(), MS(250));
    }
}
