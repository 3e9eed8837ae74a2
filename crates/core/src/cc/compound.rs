//! Compound TCP: the sum of Reno's window and of a second window, which queueing delay controls.
//!
//! Source: Tan, Song, Zhang, Sridharan, "A Compound TCP Approach for High-speed and Long Distance Networks", INFOCOM
//! 2006. Windows are in segments.
//!
//! ```text
//! win = cwnd + dwnd
//! cwnd += 1/win per segment acknowledged                                             eq. (2)
//! per round trip: diff = win (1 - BaseRTT/RTT)                                       §III.B
//!   diff < gamma    dwnd += max(alpha win^k - 1, 0)                                  eq. (8)
//!   diff >= gamma   dwnd  = max(dwnd - zeta diff, 0)
//!   loss            cwnd = cwnd/2, dwnd = max(win (1 - beta) - cwnd/2, 0)
//! slow start and timeout: as in Reno, with dwnd = 0
//! ```
//!
//! | parameter | value |
//! |---|---|
//! | alpha, beta, k | 1/8, 1/2, 0.75 |
//! | gamma | 30 segments |
//! | zeta | 1 |
//!
//! While the path is not full the window grows by `alpha win^k` per round trip, as that of HighSpeed TCP. Once `gamma`
//! segments wait in the queue, `dwnd` decreases, and finally only Reno's window is left. RTT is the lowest of each
//! round, as in the Linux module for ns-2.
//!
//! Invariants: `dwnd >= 0`; `dwnd = 0` in slow start; `ssthresh >= 2`. Cost: O(1), two square roots per round trip.
//!
//! DIFFERENCE: a loss halves the flight (RFC 5681 eq. (4)), not the window. Pinned by
//! `a_loss_halves_both_windows`.
//!
//! Not implemented: the tuning of gamma (Tan, Song, Zhang, Sridharan, PFLDnet 2006), which adapts it to small buffers.

use super::check::{fraction, positive, within};
use super::window::{QueueShare, Window};
use super::{Ack, Advice, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of Compound TCP.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Factor of the growth of dwnd: alpha win^k segments per round trip (§III.B: 1/8).
    pub alpha: f64,
    /// Part of the data in flight which a loss takes (§III.B: 1/2).
    pub beta: f64,
    /// Exponent of the growth of dwnd: alpha win^k segments per round trip (§III.B: 0.75).
    pub k: f64,
    /// Segments in the queue from which on dwnd decreases (§III.B: 30).
    pub gamma: f64,
    /// Segments by which dwnd decreases per round trip, for each segment in the queue (1).
    pub zeta: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 0.125, beta: 0.5, k: 0.75, gamma: 30.0, zeta: 1.0 }
    }
}

impl ControlConfig for Config {
    type Control = Compound;

    fn validate(&self) -> Result<(), ConfigError> {
        positive("alpha", self.alpha)?;
        fraction("beta", self.beta)?;
        within("k", self.k, 0.0, 1.0)?;
        within("gamma", self.gamma, 0.0, 1e6)?;
        within("zeta", self.zeta, 0.0, 1e6)
    }

    fn control(&self, setup: &Setup) -> Compound {
        Compound::new(self, setup)
    }
}

impl Config {
    /// alpha win^k. For k = 3/4 it takes two square roots, which are fast and correctly rounded on every machine.
    fn scalable_growth(&self, win: f64) -> f64 {
        if self.k == 0.75 {
            let root = win.sqrt();
            return self.alpha * root * root.sqrt();
        }
        self.alpha * libm::pow(win, self.k)
    }

    /// dwnd after a round trip without a loss: Tan et al. eq. (8).
    fn next_dwnd(&self, dwnd: f64, win: f64, diff: f64) -> f64 {
        if diff < self.gamma {
            dwnd + (self.scalable_growth(win) - 1.0).max(0.0)
        } else {
            (dwnd - self.zeta * diff).max(0.0)
        }
    }
}

/// The control of one connection: Compound TCP.
#[derive(Debug, Clone, PartialEq)]
pub struct Compound {
    config: Config,
    /// Reno's window, which losses control. Its `ssthresh` is the threshold of the sum `win`.
    window: Window,
    /// The window that delay controls, in segments.
    dwnd: f64,
    queue: QueueShare,
}

impl Compound {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self { config: *config, window: Window::new(setup), dwnd: 0.0, queue: QueueShare::default() }
    }

    /// The sum of both windows in segments.
    #[inline]
    fn win(&self) -> f64 {
        self.window.cwnd + self.dwnd
    }

    /// Adjusts dwnd once per round trip; `share` is the part of the window that waits in queues.
    fn adjust(&mut self, share: f64, cwnd_limited: bool) {
        let win = self.win();
        if win < self.window.ssthresh {
            return;
        }
        let next = self.config.next_dwnd(self.dwnd, win, win * share);
        self.dwnd = if cwnd_limited { next } else { next.min(self.dwnd) };
    }
}

impl CongestionControl for Compound {
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.window.bytes(self.win())
    }

    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.window.bytes(self.window.ssthresh)
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(share) = self.queue.at_end_of_round(ack) {
            self.adjust(share, ack.cwnd_limited);
        }
        if !ack.cwnd_limited {
            return;
        }
        let win = self.win();
        if win < self.window.ssthresh {
            self.window.cwnd += self.window.slow_start_segments(ack.acked);
        } else {
            // Eq. (2): one segment per `win` acknowledged, not per `cwnd`.
            self.window.cwnd += self.window.share_of(ack.acked, win);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss, 1.0 - self.config.beta);
    }

    fn on_recovered(&mut self, _: Instant) {
        let left = self.window.ssthresh;
        if left.is_finite() {
            self.window.cwnd = (self.window.cwnd / 2.0).min(left);
            self.dwnd = left - self.window.cwnd;
            // The sum may be rounded to less than `ssthresh`; that must not begin a slow start.
            self.window.ssthresh = left.min(self.win());
        }
        self.queue.restart();
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.window.cwnd = self.win();
        self.dwnd = 0.0;
        self.window.time_out(loss, 1.0 - self.config.beta);
        self.queue.restart();
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        let most = self.window.segments(initial_window);
        if self.win() > most {
            (self.window.cwnd, self.dwnd) = (most, 0.0);
        }
        self.queue.restart();
    }

    fn advise(&mut self, advice: Advice) {
        let Advice::Adopt { cwnd, ssthresh } = advice else { return };
        if self.cwnd() != cwnd {
            let win = self.window.segments(cwnd);
            self.dwnd = self.dwnd.min(win);
            self.window.cwnd = win - self.dwnd;
        }
        self.window.ssthresh = self.window.segments(ssthresh).max(2.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    /// In congestion avoidance with a window of `segments`, all of it Reno's.
    fn avoiding(segments: u64) -> Compound {
        let mut cc = Compound::new(&Config::default(), &driver::SETUP);
        cc.window.cwnd = 2.0 * segments as f64;
        cc.on_loss(&driver::loss(2 * segments * MSS));
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.cwnd(), cc.dwnd), (segments * MSS, 0.0));
        cc
    }

    /// By hand: 16^(3/4)/8 = 1, 81^(3/4)/8 = 3.375, 256^(3/4)/8 = 8, 10^4^(3/4)/8 = 125.
    #[test]
    fn growth_is_an_eighth_of_the_window_to_three_quarters() {
        for (win, expected) in [(16.0, 1.0), (81.0, 3.375), (256.0, 8.0), (10_000.0, 125.0)] {
            assert!((Config::default().scalable_growth(win) - expected).abs() < 1e-9, "{win}");
        }
    }

    /// 256 segments, of which 20 are dwnd. At 110 ms over a path of 100, 23.3 wait, less than 30: dwnd grows by 8 - 1;
    /// at 114 ms 31.4 wait and dwnd falls by as many, but not below nothing.
    #[test]
    fn the_delay_window_grows_below_thirty_waiting_segments_and_gives_way_above() {
        let diff = |rtt: f64| 256.0 * (1.0 - 100.0 / rtt);
        assert!((Config::default().next_dwnd(20.0, 256.0, diff(110.0)) - 27.0).abs() < 1e-9);
        assert!((Config::default().next_dwnd(50.0, 256.0, diff(114.0)) - (50.0 - 31.438_596)).abs() < 1e-5);
        assert_eq!(Config::default().next_dwnd(20.0, 256.0, diff(114.0)), 0.0);
        assert_eq!(
            Config::default().next_dwnd(20.0, 10.0, 0.0),
            20.0,
            "a small window leaves the growth to Reno's part"
        );
    }

    #[test]
    fn a_round_trip_adds_alpha_win_to_the_k() {
        let mut cc = avoiding(256);
        (0..2).for_each(|_| driver::round_trip(&mut cc, 100)); // the first ACK of the second ends the first
        assert!((cc.dwnd - 7.0).abs() < 0.03, "{}", cc.dwnd);
        assert!((cc.window.cwnd - 258.0).abs() < 0.1, "Reno's part: {}", cc.window.cwnd);
    }

    #[test]
    fn slow_start_is_reno_s() {
        let mut cc = Compound::new(&Config::default(), &driver::SETUP);
        for expected in [20, 40, 80] {
            driver::round_trip(&mut cc, 100);
            assert_eq!((cc.cwnd(), cc.dwnd), (expected * MSS, 0.0));
        }
    }

    /// cwnd 60, dwnd 40: half of 100 are left, 30 of them Reno's.
    #[test]
    fn a_loss_halves_both_windows() {
        let mut cc = avoiding(60);
        cc.dwnd = 40.0;
        cc.on_loss(&driver::loss(100 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (100 * MSS, 50 * MSS));
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.window.cwnd, cc.dwnd), (30.0, 20.0));
        cc.on_loss(&driver::loss(20 * MSS));
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.window.cwnd, cc.dwnd), (10.0, 0.0), "the flight was small");
        cc.dwnd = 5.0;
        cc.on_rto(&driver::loss(15 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh(), cc.dwnd), (MSS, Bytes::new(7500), 0.0));
    }

    #[test]
    fn an_idle_connection_restarts_without_its_delay_window() {
        let mut cc = avoiding(60);
        cc.dwnd = 40.0;
        cc.on_idle(Instant::ZERO, 10 * MSS);
        assert_eq!((cc.cwnd(), cc.dwnd), (10 * MSS, 0.0));
    }

    /// Without a queue the window obeys dw = w^(3/4)/8 per round trip and is halved every 1/p segments. From W/2 to W
    /// that are n = (8/1.25)(1 - 2^-1.25) W^1.25 segments in 32 (1 - 2^-0.25) W^0.25 round trips: at p = 1e-4 W = 555
    /// and the mean is 404 segments, Reno's being 122.
    #[test]
    fn without_a_queue_the_mean_window_is_that_of_the_growth_law() {
        for p in [1e-4, 1e-5f64] {
            let w = (1.25 / (8.0 * p * (1.0 - 2f64.powf(-1.25)))).powf(0.8);
            let mean = 1.0 / p / (32.0 * (1.0 - 2f64.powf(-0.25)) * w.powf(0.25));
            driver::assert_close(
                driver::mean_window_after(40, &mut Compound::new(&Config::default(), &driver::SETUP), p, 100),
                mean,
                0.05,
            );
        }
    }

    /// What is left after a loss is two numbers, whose sum may be less by one unit in the last place. Congestion
    /// avoidance goes on with the part of a segment that Eq. (2) gives, and not with slow start's whole one.
    #[test]
    fn a_sum_that_is_rounded_down_does_not_begin_slow_start() {
        for n in 17..4000u32 {
            let mut cc = avoiding(60);
            (cc.window.cwnd, cc.dwnd) = (f64::from(n) / 7.1, 1000.0 / 3.0);
            cc.on_loss(&driver::loss(u64::from(n) * MSS + Bytes::new(7)));
            cc.on_recovered(Instant::ZERO);
            let before = cc.win();
            cc.on_ack(&driver::ack(MSS, 100));
            assert!(cc.win() - before < 0.6, "{n}: from {before} to {}", cc.win());
        }
    }

    /// Two windows of one segment each: an ACK of two segments is for all of them, and brings one.
    #[test]
    fn an_ack_counts_for_one_window_of_the_sum() {
        let mut cc = avoiding(2);
        (cc.window.cwnd, cc.dwnd) = (1.0, 1.0);
        cc.on_ack(&driver::ack(2 * MSS, 100));
        assert_eq!((cc.window.cwnd, cc.dwnd), (2.0, 1.0));
        cc.on_ack(&driver::ack(60 * MSS, 100));
        assert_eq!(cc.window.cwnd, 3.0);
    }

    /// A sender that does not fill its window learns nothing from a short queue, but a long one makes the delay window give
    /// way all the same.
    #[test]
    fn a_window_that_is_not_filled_may_shrink_and_not_grow() {
        for (limited, share, grows) in [(true, 0.0, true), (false, 0.0, false), (false, 0.5, false)] {
            let mut cc = avoiding(256);
            cc.dwnd = 200.0;
            let expected = cc.config.next_dwnd(200.0, 456.0, 456.0 * share);
            cc.adjust(share, limited);
            assert_eq!(cc.dwnd > 200.0, grows);
            assert_eq!(cc.dwnd, if limited || share > 0.0 { expected } else { 200.0 });
        }
    }
}
