//! Scalable TCP: growth and reduction in proportion to the window.
//!
//! Source: Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", CCR 33(2), 2003; the rule for
//! small windows is that of Linux (`tcp_scalable.c`). Windows are in segments.
//!
//! ```text
//! cwnd += max(a, 1 / cwnd) per segment acknowledged      a = 0.01: Reno's growth below 100 segments
//! ssthresh = (1 - b) of the flight                       b = 1/8
//! ```
//!
//! After a loss the window recovers its size in ln(8/7)/0.01 = 13 round trips, whatever the size. Invariants: `ssthresh
//! >= 2`. Cost: O(1).
//!
//! DIFFERENCE: a loss reduces the flight (RFC 5681 eq. (4)); Linux reduces the window. Pinned by
//! `a_loss_takes_an_eighth_of_the_flight`.
//!
//! With `compat = "linux"` the rules are those of the kernel: see `scalable/linux.rs`.

mod linux;

use super::check::{fraction, positive};
use super::linux::{Form, Linux, constants};
use super::window::{Window, plain_window};
use super::{Ack, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::{Compat, ConfigError};
use crate::units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of Scalable TCP.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Segments by which each acknowledged segment opens the window (the paper: 0.01).
    pub a: f64,
    /// Part of the data in flight which a loss takes (the paper: 1/8).
    pub b: f64,
    /// Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self { a: 0.01, b: 0.125, compat: Compat::Source }
    }
}

impl ControlConfig for Config {
    type Control = Form<Scalable, Box<Linux<linux::Scalable>>>;

    fn validate(&self) -> Result<(), ConfigError> {
        positive("a", self.a)?;
        fraction("b", self.b)?;
        match self.compat {
            Compat::Source => Ok(()),
            Compat::Linux => constants(&[("a", self.a == 0.01), ("b", self.b == 0.125)]),
        }
    }

    fn control(&self, setup: &Setup) -> Self::Control {
        Form::new(self.compat, setup, || Scalable::new(self, setup), || linux::Scalable)
    }
}

/// The control of one connection: Scalable TCP.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalable {
    config: Config,
    window: Window,
}

impl Scalable {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self { config: *config, window: Window::new(setup) }
    }
}

impl CongestionControl for Scalable {
    plain_window!();
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let a = self.config.a;
        self.window.grow(ack, |cwnd| (a * cwnd).max(1.0));
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss, 1.0 - self.config.b);
    }

    fn on_recovered(&mut self, _: Instant) {
        self.window.recovered();
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.window.time_out(loss, 1.0 - self.config.b);
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.window.idle(initial_window);
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    fn after_loss(segments: u64) -> Scalable {
        let mut cc = Scalable::new(&Config::default(), &Setup { initial_window: segments * MSS, ..driver::SETUP });
        cc.on_loss(&driver::loss(segments * MSS));
        cc.on_recovered(Instant::ZERO);
        cc
    }

    #[test]
    fn a_loss_takes_an_eighth_of_the_flight() {
        let mut cc = after_loss(800);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (700 * MSS, 700 * MSS));
        cc.on_loss(&driver::loss(400 * MSS));
        assert_eq!(cc.ssthresh(), 350 * MSS);
        cc.on_rto(&driver::loss(80 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (MSS, 70 * MSS));
    }

    #[test]
    fn a_large_window_grows_by_a_hundredth_of_each_segment() {
        let mut cc = after_loss(800);
        cc.on_ack(&driver::ack(MSS, 100));
        assert_eq!(cc.cwnd(), 700 * MSS + Bytes::new(10));
        cc.on_ack(&driver::ack(2 * MSS, 100));
        assert_eq!(cc.cwnd(), 700 * MSS + Bytes::new(30));
    }

    #[test]
    fn a_small_window_grows_as_reno_does() {
        let mut cc = after_loss(40); // 35 left
        cc.on_ack(&driver::ack(MSS, 100));
        assert_eq!(cc.cwnd(), 35 * MSS + Bytes::new(29)); // 1000/35 = 28.6
    }

    /// 700 (1.01)^n = 800 at n = ln(8/7)/0.01 = 13.4, for any window.
    #[test]
    fn it_is_back_after_thirteen_round_trips() {
        for segments in [800, 8000] {
            let mut cc = after_loss(segments);
            let rounds = (1..100).find(|_| {
                driver::round_trip(&mut cc, 100);
                cc.window.cwnd >= segments as f64
            });
            assert_eq!(rounds, Some(14));
        }
    }

    /// With a loss per n = 1/p segments the window rises by 0.01 n between losses, which is an eighth of the window at
    /// a loss; over that time its mean is 0.01 n / ln(8/7) = 0.0749/p.
    #[test]
    fn the_mean_window_is_in_proportion_to_one_over_p() {
        for p in [1e-4, 1e-5] {
            let mean = driver::mean_window_after(80, &mut Scalable::new(&Config::default(), &driver::SETUP), p, 100);
            driver::assert_close(mean, 0.01 / (p * (8f64 / 7.0).ln()), 0.02);
        }
    }
}
