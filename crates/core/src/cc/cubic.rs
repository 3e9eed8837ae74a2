//! CUBIC: the window as a cubic function of the time since the last reduction.
//!
//! Source: RFC 9438. Symbols are the RFC's; windows are in segments, times in seconds.
//!
//! ```text
//! W_cubic(t) = C (t - K)^3 + W_max                         eq. (1)
//! K = cbrt((W_max - cwnd_epoch) / C)                       eq. (2)
//! target = W_cubic(t + RTT), within [cwnd, 1.5 cwnd]       §4.2
//! cwnd += (target - cwnd) / cwnd per segment acked         §4.4, §4.5
//! W_est += alpha segments_acked / cwnd                     eq. (4); alpha = 3 (1 - beta)/(1 + beta), 1 from cwnd_prior
//! ssthresh = beta flight, cwnd = ssthresh                  §4.6
//! W_max = cwnd (1 + beta)/2 if cwnd < W_max                §4.7 (fast convergence)
//! ```
//!
//! | constant | value | source |
//! |---|---|---|
//! | C | 0.4 | §5 |
//! | beta_cubic | 0.7 | §4.6 |
//!
//! DIFFERENCE: no HyStart (RFC 9438 §4.10 recommends it); slow start is RFC 5681's. Pinned by
//! `slow_start_is_that_of_rfc_5681`.
//!
//! Time during which the window is not in use does not count towards `t` (§5.8). K is computed once per epoch.
//! Cost: O(1), no root per ACK.

use super::newreno::slow_start;
use super::{Ack, CongestionControl, Loss, Setup};
use crate::units::Instant;

const C: f64 = 0.4;
const BETA: f64 = 0.7;
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA); // eq. (4), §4.3

/// One stage of growth: it begins with the first ACK in congestion avoidance after a reduction.
#[derive(Debug, Clone, PartialEq)]
struct Epoch {
    start: Instant,
    k: f64,
    w_est: f64,
    last_ack: Instant,
}

/// The control.
#[derive(Debug, Clone, PartialEq)]
pub struct Cubic {
    mss: f64,
    /// Segments.
    cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// Eq. (2).
fn k(w_max: f64, cwnd_epoch: f64) -> f64 {
    libm::cbrt((w_max - cwnd_epoch) / C)
}

/// Eq. (1).
fn w_cubic(t: f64, k: f64, w_max: f64) -> f64 {
    let d = t - k;
    C * d * d * d + w_max
}

impl Cubic {
    /// A control that begins in slow start.
    pub fn new(setup: &Setup) -> Self {
        let mss = setup.mss as f64;
        let cwnd = setup.initial_window as f64 / mss;
        Self { mss, cwnd, ssthresh: f64::INFINITY, w_max: 0.0, cwnd_prior: 0.0, epoch: None }
    }

    /// §4.6, §4.7.
    fn reduce(&mut self, in_flight: u64) {
        self.epoch = None;
        self.cwnd_prior = self.cwnd;
        // §4.7: with fast convergence a shrinking flow gives up some of its share.
        self.w_max = if self.cwnd < self.w_max { self.cwnd * (1.0 + BETA) / 2.0 } else { self.cwnd };
        self.ssthresh = (in_flight as f64 / self.mss * BETA).max(2.0);
    }

    fn begin_epoch(&mut self, now: Instant) -> Epoch {
        if self.w_max < self.cwnd {
            // §4.8: after a timeout, or without any loss before, growth begins from here.
            self.w_max = self.cwnd;
        }
        Epoch { start: now, k: k(self.w_max, self.cwnd), w_est: self.cwnd, last_ack: now }
    }

    fn avoid_congestion(&mut self, ack: &Ack) {
        let mut epoch = match self.epoch.take() {
            Some(epoch) => epoch,
            None => self.begin_epoch(ack.now),
        };
        let segments = ack.acked as f64 / self.mss;
        let t = ack.now.since(epoch.start).as_secs_f64();
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
        epoch.w_est += alpha * segments / self.cwnd;
        if w_cubic(t, epoch.k, self.w_max) < epoch.w_est {
            self.cwnd = self.cwnd.max(epoch.w_est); // §4.3: the Reno-friendly region
        } else {
            let target = w_cubic(t + ack.srtt.as_secs_f64(), epoch.k, self.w_max).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += (target - self.cwnd) / self.cwnd * segments;
        }
        epoch.last_ack = ack.now;
        self.epoch = Some(epoch);
    }
}

impl CongestionControl for Cubic {
    #[inline]
    fn cwnd(&self) -> u64 {
        (self.cwnd * self.mss) as u64
    }

    #[inline]
    fn ssthresh(&self) -> u64 {
        (self.ssthresh * self.mss) as u64
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.cwnd_limited {
            // §5.8: the clock of the epoch stands still.
            if let Some(epoch) = &mut self.epoch {
                epoch.start += ack.now.since(epoch.last_ack);
                epoch.last_ack = ack.now;
            }
        } else if self.cwnd < self.ssthresh {
            self.cwnd = slow_start((self.cwnd * self.mss) as u64, ack.acked, self.mss as u64) as f64 / self.mss;
        } else {
            self.avoid_congestion(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.reduce(loss.in_flight);
    }

    fn on_recovered(&mut self, _: Instant) {
        self.cwnd = self.ssthresh;
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.reduce(loss.in_flight);
        self.w_max = 0.0; // §4.8: the window grows from what slow start reaches
        self.cwnd = 1.0;
    }

    fn on_idle(&mut self, _: Instant, initial_window: u64) {
        self.cwnd = self.cwnd.min(initial_window as f64 / self.mss);
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    /// A window of 100 segments that lost: W_max = 100, cwnd = 70, K = cbrt(30 / 0.4) = 4.217 s.
    fn after_loss() -> Cubic {
        let mut cc = Cubic::new(&Setup { mss: MSS, initial_window: 100 * MSS });
        cc.on_loss(&driver::loss(100 * MSS));
        cc.on_recovered(Instant::ZERO);
        cc
    }

    #[test]
    fn the_curve_passes_through_the_points_of_the_rfc() {
        let k = k(100.0, 70.0);
        assert!((k - 4.217_163_326_508_746).abs() < 1e-12, "{k}");
        assert!((w_cubic(0.0, k, 100.0) - 70.0).abs() < 1e-9);
        assert!((w_cubic(k, k, 100.0) - 100.0).abs() < 1e-9);
        assert!((w_cubic(2.0 * k, k, 100.0) - 130.0).abs() < 1e-9);
    }

    #[test]
    fn the_window_follows_the_curve() {
        let mut cc = after_loss();
        assert_eq!(cc.cwnd(), 70 * MSS);
        // 200 ms round trips: at such times the cubic curve is above Reno's line of 0.53 segments per round trip
        // from 1 s on. The window is that of the curve one round trip ahead, reached within one round trip.
        let mut now = Instant::ZERO;
        for _ in 0..30 {
            now = driver::round_trip_from(&mut cc, now, 200);
        }
        let expected = w_cubic(now.as_secs_f64(), k(100.0, 70.0), 100.0);
        let got = cc.cwnd() as f64 / MSS as f64;
        assert!((got - expected).abs() < 1.0, "{got} segments at {} s, the curve says {expected}", now.as_secs_f64());
    }

    #[test]
    fn fast_convergence_gives_up_part_of_the_share() {
        let mut cc = after_loss();
        cc.on_loss(&driver::loss(70 * MSS));
        assert!((cc.w_max - 70.0 * 0.85).abs() < 1e-9);
        assert_eq!(cc.ssthresh(), 49 * MSS);
    }

    #[test]
    fn slow_start_is_that_of_rfc_5681() {
        let mut cc = Cubic::new(&driver::SETUP);
        driver::round_trip(&mut cc, 100);
        assert_eq!(cc.cwnd(), 20 * MSS);
    }

    /// RFC 9438 §5.1: with one loss per 1/p segments in the cubic region the mean window is
    /// (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4).
    #[test]
    fn the_mean_window_is_that_of_the_response_function() {
        let p: f64 = 1e-4;
        let law = (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25) * 0.2f64.powf(0.75) / p.powf(0.75);
        let mean = driver::mean_window(&mut Cubic::new(&driver::SETUP), p, 200);
        assert!((mean / law - 1.0).abs() < 0.05, "{mean} segments, the RFC says {law}");
    }

    /// §4.3: at short round trips the mean window is Reno's.
    #[test]
    fn at_short_round_trips_it_is_as_fast_as_reno() {
        let p = 1.0 / 2400.0;
        let law = 0.75 * (8.0 / (3.0 * p) as f64).sqrt();
        let mean = driver::mean_window(&mut Cubic::new(&driver::SETUP), p, 5);
        assert!((mean / law - 1.0).abs() < 0.1, "{mean} segments, Reno's law says {law}");
    }
}
