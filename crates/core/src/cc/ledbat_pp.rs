//! LEDBAT++: transfers in the background, which give way to everybody else and share equally among themselves.
//!
//! Source: draft-irtf-iccrg-ledbat-plus-plus-02; the filters of delays are those of RFC 6817 (LEDBAT). Windows are in
//! segments; `delay` is the queueing delay: the smallest of the last four round trip times, less the smallest of the last
//! ten minutes (`base`).
//!
//! ```text
//! gain                  1 / min(16, ceil(2 target / base))
//! congestion avoidance  delay <= target: cwnd + gain per round trip
//!                       delay > target:  cwnd + max(gain - constant cwnd (delay/target - 1), -cwnd/2) per round trip
//! slow start            cwnd + gain per segment; the first one ends at delay > 3/4 target
//! slowdown              ssthresh = cwnd, cwnd = 2 for two round trips, then slow start up to ssthresh
//!                       first two round trips after the first slow start, then nine times as long after each one as it took
//! loss                  half of the flight
//! ```
//!
//! | parameter | value |
//! |---|---|
//! | target, constant | 60 ms, 1 |
//! | slowdown_factor | 9: a tenth of the time at most is spent in slowdowns |
//!
//! Invariants: `cwnd >= 2` outside of timeouts. Cost: O(1).
//!
//! DIFFERENCE: an ACK opens the window in slow start by `gain` for two segments at most, as with the other controls here
//! (RFC 3465); the draft has no such limit. Pinned by `slow_start_grows_by_the_gain_for_two_segments_at_most`.

use super::check::{above_zero, within};
use super::window::{Window, plain_window};
use super::{Ack, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Samples of which the smallest is the present delay (`CURRENT_FILTER` of RFC 6817 §2.5).
const FILTER: usize = 4;
/// Minutes in which the smallest sample is the delay without a queue (`BASE_HISTORY` of RFC 6817 §2.5).
const MINUTES: usize = 10;
const MINUTE: Span = Span::from_secs(60);
/// The part of the target at which the first slow start ends (draft §4.4).
const EXIT: f64 = 0.75;
/// The least window, and that of a slowdown.
const LEAST: f64 = 2.0;
/// Round trips from the end of the first slow start to the first slowdown, and those of its least window (draft §4.5).
const ROUNDS: u64 = 2;

/// Parameters of LEDBAT++.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Queueing delay above which the window shrinks (60 ms).
    pub target: Span,
    /// How fast it shrinks: segments per round trip and segment of the window, at twice the target (1).
    pub constant: f64,
    /// Time between two slowdowns, in durations of the first of them (9).
    pub slowdown_factor: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { target: Span::from_millis(60), constant: 1.0, slowdown_factor: 9.0 }
    }
}

impl ControlConfig for Config {
    type Control = LedbatPp;

    fn validate(&self) -> Result<(), ConfigError> {
        above_zero("target", self.target)?;
        within("constant", self.constant, 0.0, 1e6)?;
        within("slowdown_factor", self.slowdown_factor, 1.0, 1e6)
    }

    fn control(&self, setup: &Setup) -> LedbatPp {
        LedbatPp::new(self, setup)
    }
}

/// The delays that a flow has seen.
#[derive(Debug, Clone, PartialEq)]
struct Delays {
    /// The newest samples, in a ring.
    newest: [Span; FILTER],
    next: usize,
    /// The smallest sample of each of the last minutes, in a ring; [`Span::MAX`] of a minute without one.
    minutes: [Span; MINUTES],
    /// Number of the present minute since the start of the clock.
    minute: u64,
}

impl Delays {
    const NONE: Self = Self { newest: [Span::MAX; FILTER], next: 0, minutes: [Span::MAX; MINUTES], minute: 0 };

    fn take(&mut self, now: Instant, rtt: Span) {
        let minute = now.since(Instant::ZERO).as_nanos() / MINUTE.as_nanos();
        for passed in (self.minute + 1..=minute).rev().take(MINUTES) {
            self.minutes[(passed % MINUTES as u64) as usize] = Span::MAX;
        }
        self.minute = minute;
        let least = &mut self.minutes[(minute % MINUTES as u64) as usize];
        *least = rtt.min(*least);
        self.newest[self.next] = rtt;
        self.next = (self.next + 1) % FILTER;
    }

    /// The smallest round trip time of the last minutes; [`Span::MAX`] before the first sample.
    fn base(&self) -> Span {
        self.minutes.iter().copied().min().unwrap_or(Span::MAX)
    }

    /// The queueing delay; zero before the first sample.
    fn queueing(&self) -> Span {
        self.newest.iter().copied().min().unwrap_or(Span::MAX).saturating_sub(self.base())
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    SlowStart,
    Avoidance,
    /// A slowdown with the least window.
    Frozen {
        until: Instant,
    },
}

/// The control of one connection: LEDBAT++.
#[derive(Debug, Clone, PartialEq)]
pub struct LedbatPp {
    config: Config,
    window: Window,
    delays: Delays,
    phase: Phase,
    /// This is the first slow start, which a delay may end.
    first: bool,
    /// When the present slowdown began.
    began: Option<Instant>,
    /// When the next slowdown begins; [`Instant::MAX`] if none is planned.
    next: Instant,
}

impl LedbatPp {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self {
            config: *config,
            window: Window::new(setup),
            delays: Delays::NONE,
            phase: Phase::SlowStart,
            first: true,
            began: None,
            next: Instant::MAX,
        }
    }

    /// Segments per round trip by which the window grows below the target.
    fn gain(&self) -> f64 {
        let ratio = 2.0 * self.config.target.as_nanos() as f64 / self.delays.base().as_nanos().max(1) as f64;
        1.0 / ratio.ceil().clamp(1.0, 16.0)
    }

    /// The queueing delay in targets.
    fn in_targets(&self) -> f64 {
        self.delays.queueing().as_nanos() as f64 / self.config.target.as_nanos() as f64
    }

    fn slow_start(&mut self, ack: &Ack) {
        if self.first && self.in_targets() > EXIT {
            self.window.ssthresh = self.window.cwnd;
        } else if ack.cwnd_limited && self.window.in_slow_start() {
            let more = self.gain() * self.window.slow_start_segments(ack.acked);
            self.window.cwnd = (self.window.cwnd + more).min(self.window.ssthresh);
        }
        if self.window.in_slow_start() {
            return;
        }
        (self.phase, self.first) = (Phase::Avoidance, false);
        if let Some(began) = self.began.take() {
            let pause = ack.now.since(began).as_secs_f64() * self.config.slowdown_factor;
            self.next = ack.now + Span::from_secs_f64(pause);
        } else if self.next == Instant::MAX {
            self.next = ack.now + ack.srtt * ROUNDS;
        }
    }

    fn avoid_congestion(&mut self, ack: &Ack) {
        let (cwnd, gain, delay) = (self.window.cwnd, self.gain(), self.in_targets());
        let per_round =
            if delay <= 1.0 { gain } else { (gain - self.config.constant * cwnd * (delay - 1.0)).max(-cwnd / 2.0) };
        if per_round < 0.0 || ack.cwnd_limited {
            self.window.cwnd = (cwnd + per_round * self.window.share(ack.acked)).max(LEAST);
        }
    }

    fn slow_down(&mut self, ack: &Ack) {
        self.window.ssthresh = self.window.cwnd;
        self.window.cwnd = LEAST;
        (self.began, self.next) = (Some(ack.now), Instant::MAX);
        self.phase = Phase::Frozen { until: ack.now + ack.srtt * ROUNDS };
    }
}

impl CongestionControl for LedbatPp {
    plain_window!();
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.delays.take(ack.now, rtt);
        }
        match self.phase {
            Phase::Frozen { until } if ack.now < until => {}
            Phase::Avoidance if ack.now >= self.next => self.slow_down(ack),
            Phase::Avoidance => self.avoid_congestion(ack),
            Phase::SlowStart | Phase::Frozen { .. } => {
                self.phase = Phase::SlowStart;
                self.slow_start(ack);
            }
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
        (self.phase, self.first) = (Phase::SlowStart, false);
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.window.idle(initial_window);
    }
}

#[cfg(test)]
mod tests;
