//! Vegas: a few segments in the queue, no more and no fewer.
//!
//! Source: Brakmo, Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", JSAC 13(8), 1995; the
//! use of the lowest sample per round trip and the window after slow start are those of Linux (`tcp_vegas.c`). Windows
//! are in segments.
//!
//! ```text
//! once per round trip: diff = cwnd (1 - BaseRTT/RTT)              the segments that wait in queues
//! slow start            grows as Reno in every second round; the other rounds only measure
//!                       diff > gamma: cwnd = min(cwnd, cwnd BaseRTT/RTT + 1), and it ends
//! congestion avoidance  diff < alpha: cwnd + 1;  diff > beta: cwnd - 1
//! loss                  ssthresh = flight / 2
//! ```
//!
//! | parameter | value |
//! |---|---|
//! | alpha, beta, gamma | 2, 4, 1 |
//!
//! Invariants: `cwnd >= 2` in congestion avoidance; `ssthresh >= 2`. Cost: O(1).
//!
//! DIFFERENCE: every loss halves the flight, as in Linux; the paper reduces by a quarter if its fine-grained timeouts
//! detect the loss. Pinned by `a_loss_halves_the_flight`.
//!
//! Not implemented: the retransmission rules of the paper; the endpoint detects losses.

use super::check::within;
use super::window::{QueueShare, Window, plain_window};
use super::{Ack, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of Vegas.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Segments in the queue below which the window grows (2).
    pub alpha: f64,
    /// Segments in the queue above which the window shrinks (4).
    pub beta: f64,
    /// Segments in the queue with which slow start ends (1).
    pub gamma: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 2.0, beta: 4.0, gamma: 1.0 }
    }
}

impl ControlConfig for Config {
    type Control = Vegas;

    fn validate(&self) -> Result<(), ConfigError> {
        within("alpha", self.alpha, 0.0, 1e6)?;
        within("beta", self.beta, self.alpha, 1e6)?;
        within("gamma", self.gamma, 0.0, 1e6)
    }

    fn control(&self, setup: &Setup) -> Vegas {
        Vegas::new(self, setup)
    }
}

/// The control of one connection: Vegas.
#[derive(Debug, Clone, PartialEq)]
pub struct Vegas {
    config: Config,
    window: Window,
    queue: QueueShare,
    /// In slow start: this round only measures, and the window does not grow.
    measuring: bool,
}

impl Vegas {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self { config: *config, window: Window::new(setup), queue: QueueShare::default(), measuring: true }
    }

    /// Adjusts the window once per round trip; `share` is the part of the window that waits in queues.
    fn adjust(&mut self, share: f64, cwnd_limited: bool) {
        let window = &mut self.window;
        let diff = window.cwnd * share;
        if window.in_slow_start() {
            self.measuring = !self.measuring; // the window grows in every second round only
            // A queue of gamma segments ends slow start with the window that fills the path, and a segment.
            if diff > self.config.gamma {
                window.cwnd = window.cwnd.min(window.cwnd - diff + 1.0).max(2.0);
                window.ssthresh = window.cwnd;
            }
        } else if diff > self.config.beta {
            window.cwnd = (window.cwnd - 1.0).max(2.0);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if diff < self.config.alpha && cwnd_limited {
            window.cwnd += 1.0;
        }
    }
}

impl CongestionControl for Vegas {
    plain_window!();
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(share) = self.queue.at_end_of_round(ack) {
            self.adjust(share, ack.cwnd_limited);
        }
        if self.window.in_slow_start() && !self.measuring {
            self.window.grow(ack, |_| 0.0);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss, 0.5);
    }

    fn on_recovered(&mut self, _: Instant) {
        self.window.recovered();
        self.queue.restart();
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.window.time_out(loss, 0.5);
        self.queue.restart();
        self.measuring = true;
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.window.idle(initial_window);
        self.queue.restart();
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;
    use crate::units::Span;

    fn avoiding(segments: u64) -> Vegas {
        let mut cc = Vegas::new(&Config::default(), &driver::SETUP);
        cc.on_loss(&driver::loss(2 * segments * MSS));
        cc.on_recovered(Instant::ZERO);
        cc.queue.base = Some(Span::from_millis(100));
        cc
    }

    /// One window of ACKs over a path of 100 ms, each with a sample of `rtt_ms`.
    fn round(cc: &mut Vegas, rtt_ms: u64) {
        let cwnd = cc.cwnd();
        for _ in 0..cwnd / MSS {
            cc.on_ack(&Ack { in_flight: cwnd, ..driver::ack(MSS, rtt_ms) });
        }
    }

    /// By hand, 40 segments: RTT 100 ms, nothing waits; 105 ms, 40 (1 - 100/105) = 1.90; 108 ms, 2.96; 111 ms, 3.96;
    /// 112 ms, 4.29.
    #[test]
    fn two_to_four_segments_wait_in_the_queue() {
        for (rtt_ms, expected) in [(100, 41), (105, 41), (108, 40), (111, 40), (112, 39), (200, 39)] {
            let mut cc = avoiding(40);
            cc.adjust(1.0 - 100.0 / rtt_ms as f64, true);
            assert_eq!(cc.cwnd(), expected * MSS, "{rtt_ms} ms");
            let mut unused = avoiding(40);
            unused.adjust(1.0 - 100.0 / rtt_ms as f64, false);
            assert_eq!(unused.cwnd(), expected.min(40) * MSS, "a window not in use does not grow");
        }
    }

    #[test]
    fn the_window_moves_by_one_segment_per_round_trip() {
        let mut cc = avoiding(40);
        round(&mut cc, 105);
        assert_eq!(cc.cwnd(), 40 * MSS);
        round(&mut cc, 105); // its first ACK is for a segment sent after the first ACK came
        assert_eq!(cc.cwnd(), 41 * MSS);
        round(&mut cc, 120);
        assert_eq!(cc.cwnd(), 42 * MSS);
        (0..3).for_each(|_| round(&mut cc, 120));
        assert_eq!(cc.cwnd(), 39 * MSS);
    }

    /// 10 segments: a round to measure, a round that doubles, and so on.
    #[test]
    fn slow_start_doubles_every_second_round_trip() {
        let mut cc = Vegas::new(&Config::default(), &driver::SETUP);
        for expected in [10, 20, 20, 40, 40, 80] {
            round(&mut cc, 100);
            assert_eq!(cc.cwnd(), expected * MSS);
        }
    }

    /// 20 segments at 110 ms: 20 (1 - 100/110) = 1.82 wait, so the window falls to 20 100/110 + 1 = 19.18.
    #[test]
    fn slow_start_ends_when_a_segment_waits() {
        let mut cc = Vegas::new(&Config::default(), &driver::SETUP);
        cc.window.cwnd = 20.0;
        cc.adjust(1.0 - 100.0 / 110.0, true);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (Bytes::new(19_182), Bytes::new(19_182)));
        assert!(!cc.window.in_slow_start());
    }

    #[test]
    fn a_loss_halves_the_flight() {
        let mut cc = avoiding(50);
        cc.on_loss(&driver::loss(30 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (50 * MSS, 15 * MSS));
        cc.on_rto(&driver::loss(3 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (MSS, 2 * MSS));
    }

    /// A link of 400 segments/s and a path of 100 ms: 40 segments fill it, the rest of the window waits. From 60
    /// segments and from 30 the window comes to 42 to 44.
    #[test]
    fn it_settles_where_two_to_four_segments_wait() {
        for start in [30, 60] {
            let mut cc = avoiding(start);
            for _ in 0..60 {
                let rtt = (cc.window.cwnd / 400.0 * 1000.0).max(100.0) as u64;
                round(&mut cc, rtt);
            }
            assert!((41.0..=45.0).contains(&cc.window.cwnd), "{}", cc.window.cwnd);
        }
    }
}
