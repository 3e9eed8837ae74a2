//! BIC: a binary search for the window at which the last loss happened.
//!
//! Source: Xu, Harfoush, Rhee, "Binary Increase Congestion Control for Fast Long-Distance Networks", INFOCOM 2004;
//! constants and the smooth part of the search are those of Linux (`tcp_bic.c`). Windows are in segments.
//!
//! ```text
//! per round trip, in congestion avoidance, with d = (W_max - cwnd) / B:
//!   cwnd <= low_window            1                          as Reno
//!   cwnd < W_max                  S_max      if d > S_max    additive increase
//!                                 B/smooth   if d <= 1       the last steps to W_max
//!                                 d          otherwise       binary search
//!   cwnd < W_max + B              B/smooth                   the first steps beyond it
//!   cwnd < W_max + S_max (B - 1)  (cwnd - W_max) / (B - 1)   slow start beyond it
//!   else                          S_max                      max probing
//!   and cwnd/20 at least, before the first loss
//! loss: W_max = cwnd, or cwnd (1 + beta)/2 if cwnd < W_max (fast convergence)
//!       ssthresh = beta flight, or flight/2 if cwnd <= low_window
//! timeout: W_max and ssthresh as for a loss; cwnd = 1
//! ```
//!
//! | parameter | value | paper | Linux |
//! |---|---|---|---|
//! | beta | 819/1024 | 0.875 | 819/1024 |
//! | s_max, S_max | 16 | 32 | 16 |
//! | low_window | 14 | 14 | 14 |
//! | b, B: 1/B of the distance per round trip | 4 | 2 | 4 |
//! | smooth, rounds of the last steps | 20 | none, S_min = 0.01 | 20 |
//! | fast_convergence | true | true | true |
//!
//! Invariants: an ACK never lowers `cwnd`; `ssthresh >= 2`. Cost: O(1).
//!
//! DIFFERENCE: windows are real numbers and growth counts bytes, so the delayed-ACK ratio with which Linux corrects its
//! count of ACKs is not needed. Pinned by `delayed_acks_do_not_slow_it_down`.
//! DIFFERENCE: a timeout keeps `W_max`. Linux resets it and then probes by S_max from `ssthresh` on, which ends in the
//! next timeout on a path of about fifty segments. Pinned by `a_timeout_keeps_the_plateau`.
//! DIFFERENCE: `ssthresh` is computed from the flight (RFC 5681 eq. (4)) and `W_max` from the window; Linux computes
//! both from the window. Pinned by `a_loss_keeps_four_fifths_of_the_flight`.
//!
//! With `compat = "linux"` the rules are those of the kernel: see `bic/linux.rs`.

mod linux;

use super::check::{fraction, within};
use super::linux::{Form, Linux};
use super::window::{Window, plain_window};
use super::{Ack, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::{Compat, ConfigError};
use crate::units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Least growth per round trip before the first loss, as a part of the window (Linux: 1/20).
const BLIND: f64 = 1.0 / 20.0;

/// Parameters of BIC.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Part of the data in flight that stays after a loss (Linux: 819/1024; the paper: 0.875).
    pub beta: f64,
    /// S_max, the most segments by which the window grows per round trip (Linux: 16; the paper: 32).
    pub s_max: f64,
    /// Segments up to which growth and reduction are those of Reno (14).
    pub low_window: f64,
    /// B: the search covers 1/B of the distance to W_max per round trip (Linux: 4; the paper: 2).
    pub b: f64,
    /// Round trips per B segments when the window is within B segments of W_max (Linux: 20).
    pub smooth: f64,
    /// Fast convergence: a flow which has a loss below its last W_max releases part of its share.
    pub fast_convergence: bool,
    /// Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            beta: 819.0 / 1024.0,
            s_max: 16.0,
            low_window: 14.0,
            b: 4.0,
            smooth: 20.0,
            fast_convergence: true,
            compat: Compat::Source,
        }
    }
}

impl ControlConfig for Config {
    type Control = Form<Bic, Box<Linux<linux::Bic>>>;

    fn validate(&self) -> Result<(), ConfigError> {
        fraction("beta", self.beta)?;
        within("s_max", self.s_max, 1.0, 1e6)?;
        within("low_window", self.low_window, 0.0, 1e6)?;
        within("b", self.b, 1.5, 1e3)?;
        within("smooth", self.smooth, 1.0, 1e6)?;
        match self.compat {
            Compat::Source => Ok(()),
            Compat::Linux => linux::validate(self),
        }
    }

    fn control(&self, setup: &Setup) -> Self::Control {
        Form::new(self.compat, setup, || Bic::new(self, setup), || linux::Bic::new(self))
    }
}

impl Config {
    /// Growth in segments per round trip.
    fn increment(&self, cwnd: f64, w_max: f64) -> f64 {
        let Self { s_max, b, smooth, .. } = *self;
        if cwnd <= self.low_window {
            return 1.0;
        }
        if cwnd < w_max {
            // Binary search, at most S_max per round trip; the last steps to W_max are smooth.
            let way = (w_max - cwnd) / b;
            return if way <= 1.0 { b / smooth } else { way.min(s_max) };
        }
        // Max probing, the mirror image of the search.
        if cwnd < w_max + b { b / smooth } else { ((cwnd - w_max) / (b - 1.0)).min(s_max) }
    }
}

/// The control of one connection: BIC.
#[derive(Debug, Clone, PartialEq)]
pub struct Bic {
    config: Config,
    window: Window,
    /// W_max in segments.
    w_max: f64,
    /// True after the first loss.
    searching: bool,
}

impl Bic {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self { config: *config, window: Window::new(setup), w_max: 0.0, searching: false }
    }

    /// Sets W_max after a loss. Returns the part of the flight that stays.
    fn note_loss(&mut self) -> f64 {
        let cwnd = self.window.cwnd;
        let Config { beta, low_window, fast_convergence, .. } = self.config;
        self.w_max = if fast_convergence && cwnd < self.w_max { cwnd * (1.0 + beta) / 2.0 } else { cwnd };
        self.searching = true;
        if cwnd <= low_window { 0.5 } else { beta }
    }
}

impl CongestionControl for Bic {
    plain_window!();
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let (config, w_max, searching) = (self.config, self.w_max, self.searching);
        self.window.grow(ack, |cwnd| {
            let increment = config.increment(cwnd, w_max);
            if searching { increment } else { increment.max(BLIND * cwnd) }
        });
    }

    fn on_loss(&mut self, loss: &Loss) {
        let keep = self.note_loss();
        self.window.reduce(loss, keep);
    }

    fn on_recovered(&mut self, _: Instant) {
        self.window.recovered();
    }

    fn on_rto(&mut self, loss: &Loss) {
        let keep = self.note_loss();
        self.window.time_out(loss, keep);
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.window.idle(initial_window);
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    /// The control after it lost with a window of `segments`.
    fn after_loss(segments: u64) -> Bic {
        let mut cc = Bic::new(&Config::default(), &Setup { initial_window: segments * MSS, ..driver::SETUP });
        cc.on_loss(&driver::loss(segments * MSS));
        cc.on_recovered(Instant::ZERO);
        cc
    }

    /// By hand, W_max = 1000: a quarter of the way, at most 16, 0.2 within four segments of it; then the mirror image,
    /// a third of the distance from W_max + 4 on, 16 from W_max + 48 on.
    #[test]
    fn growth_per_round_trip_is_that_of_the_search() {
        let by_hand = [
            (10.0, 1.0),
            (14.0, 1.0),
            (15.0, 16.0),
            (936.0, 16.0),
            (960.0, 10.0),
            (992.0, 2.0),
            (996.0, 0.2),
            (999.0, 0.2),
            (1000.0, 0.2),
            (1003.9, 0.2),
            (1006.0, 2.0),
            (1030.0, 10.0),
            (1048.0, 16.0),
            (2000.0, 16.0),
        ];
        for (cwnd, expected) in by_hand {
            let increment = Config::default().increment(cwnd, 1000.0);
            assert!((increment - expected).abs() < 1e-12, "at {cwnd}: {increment}");
        }
    }

    /// 819/1024 of 100 is 79.98; the way to 100 is 20.02 segments, a quarter of it 5.005, and an ACK of one segment
    /// brings 5.005/79.98 = 0.06258.
    #[test]
    fn one_ack_adds_its_share_of_the_growth() {
        let mut cc = after_loss(100);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (Bytes::new(79_980), Bytes::new(79_980)));
        cc.on_ack(&driver::ack(MSS, 100));
        assert!((cc.window.cwnd - (79.980_468_75 + 0.062_576_3)).abs() < 1e-6, "{}", cc.window.cwnd);
    }

    #[test]
    fn delayed_acks_do_not_slow_it_down() {
        let (mut every, mut second) = (after_loss(1000), after_loss(1000));
        (0..10).for_each(|_| every.on_ack(&driver::ack(MSS, 100)));
        (0..5).for_each(|_| second.on_ack(&driver::ack(2 * MSS, 100)));
        assert!((every.window.cwnd - second.window.cwnd).abs() < 0.001);
    }

    #[test]
    fn a_loss_keeps_four_fifths_of_the_flight() {
        let mut cc = after_loss(1000);
        cc.on_loss(&driver::loss(512 * MSS));
        assert_eq!(cc.ssthresh(), Bytes::new(409_500));
        assert!((cc.w_max - 799.8 * (1.0 + 819.0 / 1024.0) / 2.0).abs() < 0.1, "fast convergence: {}", cc.w_max);
        let small = after_loss(14);
        assert_eq!((small.ssthresh(), small.w_max), (7 * MSS, 14.0), "a small window is halved, as Reno's");
    }

    #[test]
    fn a_timeout_keeps_the_plateau() {
        let mut cc = after_loss(1000);
        cc.window.cwnd = 1000.0;
        cc.on_rto(&driver::loss(512 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh(), cc.w_max), (MSS, Bytes::new(409_500), 1000.0));
    }

    /// Without a loss there is nothing to search for, and 16 segments per round trip would be little for a large
    /// window: each of its 1000 segments brings a twentieth.
    #[test]
    fn before_the_first_loss_it_grows_by_a_twentieth_at_least() {
        let mut cc = Bic::new(&Config::default(), &Setup { initial_window: 1000 * MSS, ..driver::SETUP });
        cc.window.ssthresh = 800.0; // as if slow start had ended
        driver::round_trip(&mut cc, 100);
        assert!((cc.window.cwnd - 1050.0).abs() < 0.1, "{}", cc.window.cwnd);
    }

    /// Losses at the same window: from 0.8 W = 800 it is 16 per round trip up to 936, then a quarter of the way, to
    /// 996 in ln(64/4)/ln(4/3) = 9.6 rounds if a round is a step, and 0.2 from there. In small steps the way shrinks by
    /// e^(-1/4) per round: 136/16 + 4 ln(16) + 4/0.2 = 8.5 + 11.1 + 20 rounds.
    #[test]
    fn it_is_back_at_the_plateau_after_forty_rounds() {
        let mut cc = after_loss(1000);
        let rounds = (1..100).find(|_| {
            driver::round_trip(&mut cc, 100);
            cc.window.cwnd >= 1000.0
        });
        assert!(rounds.is_some_and(|n| (39..=41).contains(&n)), "{rounds:?}");
    }
}
