//! Hybla: a long path grows as fast as a short one.
//!
//! Source: Caini, Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", Int. J. Satell. Commun.
//! Network. 22, 2004. Windows are in segments.
//!
//! ```text
//! rho = max(RTT / RTT0, 1), RTT0 = 25 ms
//! slow start            cwnd += 2^rho - 1 per segment acknowledged
//! congestion avoidance  cwnd += rho^2 / cwnd per segment acknowledged
//! loss                  ssthresh = flight / 2
//! ```
//!
//! In both phases the rate grows per unit of time as that of a Reno flow with a round trip time of RTT0. Invariants:
//! `ssthresh >= 2`; slow start ends at `ssthresh`, not beyond it. Cost: O(1); the power is computed only when `rho`
//! changes.
//!
//! DIFFERENCE: RTT is the smallest round trip time of the connection, as in Linux, not a smoothed one. Otherwise the
//! queueing delay that a flow causes would speed up the flow. Pinned by `only_the_smallest_round_trip_time_counts`.
//! DIFFERENCE: in slow start an ACK opens the window by at most 2^16 - 1 segments, as in Linux, and the window never
//! exceeds 2^16 segments. Pinned by `slow_start_has_a_ceiling`.
//! DIFFERENCE: the endpoint sets the initial window and the initial `ssthresh`. They are not multiplied by `rho`, which
//! is not known at that time. Pinned by the test of all controls,
//! `every_name_builds_its_control_and_no_other_name_does`.
//!
//! Not implemented: packet spacing and the estimate of the first `ssthresh`, which are options in the paper.
//!
//! With `compat = "linux"` the rules are those of the kernel: see `hybla/linux.rs`.

mod linux;

use super::check;
use super::linux::{Form, Linux};
use super::window::{Window, plain_window};
use super::{Ack, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::{Compat, ConfigError};
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest exponent rho in slow start (Linux: 16).
const MAX_EXPONENT: f64 = 16.0;
/// Largest window of slow start in segments: 2^16.
const MAX_SLOW_START: f64 = 65_536.0;

/// Parameters of Hybla.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// RTT0: a flow grows as Reno would with this round trip time (the paper: 25 ms).
    pub rtt0: Span,
    /// Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self { rtt0: Span::from_millis(25), compat: Compat::Source }
    }
}

impl ControlConfig for Config {
    type Control = Form<Hybla, Box<Linux<linux::Hybla>>>;

    fn validate(&self) -> Result<(), ConfigError> {
        match self.compat {
            Compat::Source => check::above_zero("rtt0", self.rtt0),
            Compat::Linux => linux::validate(self),
        }
    }

    fn control(&self, setup: &Setup) -> Self::Control {
        Form::new(self.compat, setup, || Hybla::new(self, setup), || linux::Hybla::new(self))
    }
}

impl Config {
    /// 2^rho - 1 and rho^2 for a round trip time.
    fn increments(&self, rtt: Span) -> (f64, f64) {
        let rho = (rtt.as_nanos() as f64 / self.rtt0.as_nanos() as f64).max(1.0);
        (libm::exp2(rho.min(MAX_EXPONENT)) - 1.0, rho * rho)
    }
}

/// The control of one connection: Hybla.
#[derive(Debug, Clone, PartialEq)]
pub struct Hybla {
    config: Config,
    window: Window,
    /// Round trip time from which `slow_start` and `avoidance` were computed.
    rtt: Span,
    /// Segments per acknowledged segment in slow start: 2^rho - 1.
    slow_start: f64,
    /// Segments per round trip in congestion avoidance: rho^2.
    avoidance: f64,
}

impl Hybla {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self { config: *config, window: Window::new(setup), rtt: config.rtt0, slow_start: 1.0, avoidance: 1.0 }
    }

    /// Opens the window in slow start, at most to `ssthresh`.
    fn slow_start(&mut self, acked: Bytes) {
        let opened = self.window.cwnd + self.slow_start * self.window.slow_start_segments(acked);
        self.window.cwnd = opened.min(self.window.ssthresh.min(MAX_SLOW_START)).max(self.window.cwnd);
    }
}

impl CongestionControl for Hybla {
    plain_window!();
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if ack.min_rtt != self.rtt {
            self.rtt = ack.min_rtt;
            (self.slow_start, self.avoidance) = self.config.increments(self.rtt);
        }
        if ack.cwnd_limited && self.window.in_slow_start() {
            self.slow_start(ack.acked);
        } else {
            let avoidance = self.avoidance;
            self.window.grow(ack, |_| avoidance);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss, 0.5);
    }

    fn on_recovered(&mut self, _: Instant) {
        self.window.recovered();
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.window.time_out(loss, 0.5);
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.window.idle(initial_window);
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    fn avoiding(segments: u64) -> Hybla {
        let mut cc = Hybla::new(&Config::default(), &driver::SETUP);
        cc.on_loss(&driver::loss(2 * segments * MSS));
        cc.on_recovered(Instant::ZERO);
        cc
    }

    /// rho of 10, 25, 50, 100 and 600 ms is 1, 1, 2, 4 and 24: 2^rho - 1 = 1, 1, 3, 15 and, at 16, 65535.
    #[test]
    fn rho_is_the_round_trip_time_over_25_ms() {
        let by_hand = [(10, 1.0, 1.0), (25, 1.0, 1.0), (50, 3.0, 4.0), (100, 15.0, 16.0), (600, 65_535.0, 576.0)];
        for (ms, slow_start, avoidance) in by_hand {
            assert_eq!(Config::default().increments(Span::from_millis(ms)), (slow_start, avoidance), "{ms} ms");
        }
    }

    #[test]
    fn one_ack_in_slow_start_opens_by_two_to_the_rho_less_one() {
        let mut cc = Hybla::new(&Config::default(), &driver::SETUP);
        cc.on_ack(&driver::ack(MSS, 100));
        assert_eq!(cc.cwnd(), 25 * MSS);
        cc.on_ack(&driver::ack(8 * MSS, 100));
        assert_eq!(cc.cwnd(), 55 * MSS, "two segments at most count (RFC 3465)");
    }

    #[test]
    fn a_round_trip_of_congestion_avoidance_adds_rho_squared() {
        let mut cc = avoiding(1000);
        driver::round_trip(&mut cc, 100);
        assert!((cc.window.cwnd - 1016.0).abs() < 0.2, "{}", cc.window.cwnd);
        cc.on_ack(&driver::ack(MSS, 10));
        assert!((cc.window.cwnd - 1016.0).abs() < 0.2, "below 25 ms it is Reno");
    }

    /// A queue of 75 ms makes round trips of 100 ms out of 25, and changes nothing.
    #[test]
    fn only_the_smallest_round_trip_time_counts() {
        let mut cc = avoiding(100);
        let ack = Ack { min_rtt: Span::from_millis(25), ..driver::ack(MSS, 100) };
        cc.on_ack(&ack);
        assert_eq!(cc.cwnd(), 100 * MSS + Bytes::new(10));
    }

    #[test]
    fn slow_start_has_a_ceiling() {
        let mut cc = Hybla::new(&Config::default(), &driver::SETUP);
        (0..3).for_each(|_| cc.on_ack(&driver::ack(MSS, 600)));
        assert_eq!(cc.cwnd(), 65_536 * MSS);
        let mut cc = avoiding(30);
        cc.window.cwnd = 60.0;
        cc.on_rto(&driver::loss(60 * MSS));
        (0..2).for_each(|_| cc.on_ack(&driver::ack(MSS, 100)));
        assert_eq!(cc.cwnd(), 30 * MSS, "1 + 15 + 15 is beyond ssthresh");
    }

    #[test]
    fn a_loss_halves_the_flight() {
        let mut cc = avoiding(50);
        cc.on_loss(&driver::loss(30 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (50 * MSS, 15 * MSS));
        cc.on_rto(&driver::loss(3 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (MSS, 2 * MSS));
    }

    /// AIMD(rho^2, 1/2) has the mean window rho sqrt(3/(2p)), so that the rate does not depend on the round trip time.
    #[test]
    fn the_rate_is_that_of_reno_at_25_ms() {
        for rtt_ms in [25, 100, 300] {
            let mean = driver::mean_window(&mut Hybla::new(&Config::default(), &driver::SETUP), 1e-4, rtt_ms);
            driver::assert_close(mean, rtt_ms as f64 / 25.0 * driver::reno_law(1e-4), 0.05);
        }
    }
}
