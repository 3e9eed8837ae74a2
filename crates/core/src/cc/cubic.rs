//! CUBIC: the window as a cubic function of the time since the last reduction.
//!
//! Source: RFC 9438. Symbols are the RFC's; windows are in segments, times in seconds.
//!
//! ```text
//! W_cubic(t) = C (t - K)^3 + W_max                         eq. (1)
//! K = cbrt((W_max - cwnd_epoch) / C)                       eq. (2)
//! target = W_cubic(t + RTT), within [cwnd, 1.5 cwnd]       §4.2
//! cwnd += (target - cwnd) / cwnd per segment acked         §4.4, §4.5
//! W_est += alpha segments_acked / cwnd                     eq. (4), from cwnd_epoch
//! alpha = 3 (1 - beta)/(1 + beta), 1 from cwnd_prior       §4.3
//! cwnd = W_est where W_cubic(t) < W_est                    §4.3 (the Reno-friendly region)
//! ssthresh = max(beta flight_size, 2)                      §4.6; cwnd likewise, but after an ECN echo at least 1
//! W_max = cwnd, or cwnd (1 + beta)/2 if cwnd < W_max       §4.7 (fast convergence)
//! timeout: ssthresh as for a loss, cwnd = 1; then K = 0, W_max = cwnd_epoch   §4.8
//! ```
//!
//! | parameter | value | source |
//! |---|---|---|
//! | c, C | 0.4 | §5.1 |
//! | beta | 0.7 | §4.6 |
//! | fast_convergence | true | §4.7 |
//! | tcp_friendliness | true | §4.3 |
//! | hystart | false | §4.10 |
//! | search, resume_cwnd, resume_rtt | off | `search`, `careful_resume` |
//!
//! Time during which the window is not in use does not count towards `t` (§4.2, §5.8). State: the fields of [`Cubic`]
//! and of its epoch. Invariants: congestion avoidance never lowers `cwnd`; `ssthresh >= 2`. Cost: O(1), one cube root
//! per epoch.
//!
//! DIFFERENCE: HyStart++ (§4.10: should) is an option, off by default. Without it slow start is that of RFC 5681 with
//! the byte limits of `newreno`, and ends with a loss. Pinned by `slow_start_is_that_of_rfc_5681`. With the option the
//! first slow start is that of `hystart`, and congestion avoidance follows it without a plateau (K = 0).
//! DIFFERENCE: congestion avoidance begins at `cwnd = ssthresh` (RFC 5681 leaves this open; §4.10 says slow start), so
//! that the curve follows each reduction. Pinned by `a_reduced_window_is_in_congestion_avoidance`.
//! DIFFERENCE: the Reno-friendly region raises `cwnd` to `W_est` but never lowers it, since an ACK is not a congestion
//! signal. Pinned by `an_ack_never_lowers_the_window`.
//! DIFFERENCE: an ACK counts for at most one window and never takes `cwnd` beyond `target`. After a timeout, the ACK of
//! a retransmission that fills a hole covers many windows of data which left the network long before. Pinned by
//! `an_ack_that_fills_a_hole_counts_for_one_window`.
//! DIFFERENCE: fast convergence is also on for a flow which is alone on the path (§4.7: should be off there). Pinned by
//! `fast_convergence_gives_up_part_of_the_share`.
//!
//! Not implemented: undoing spurious reductions (§4.9, optional); [`CongestionControl`] has no event for them.

use super::check::{fraction, positive};
use super::hystart::HyStart;
use super::newreno::L;
use super::start::{self, Start};
use super::{Ack, Advice, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of CUBIC.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Part of the data in flight that stays after a loss (§4.6: 0.7).
    pub beta: f64,
    /// C, how fast the curve rises, in segments per cubic second (§5.1: 0.4).
    pub c: f64,
    /// Fast convergence: a flow which has a loss below its last W_max releases part of its share (§4.7).
    pub fast_convergence: bool,
    /// The window is at least the estimate of Reno's window, W_est (§4.3, the Reno-friendly region).
    pub tcp_friendliness: bool,
    /// The first slow start is HyStart++ (§4.10, RFC 9406).
    pub hystart: bool,
    /// The first slow start ends by SEARCH (draft-chung-ccwg-search-09), in place of HyStart++.
    pub search: bool,
    /// The window that an earlier connection had on this path, for Careful Resume (RFC 9959: saved_cwnd); null is none.
    pub resume_cwnd: Option<Bytes>,
    /// The smallest round trip time of that connection (saved_rtt).
    pub resume_rtt: Option<Span>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            beta: 0.7,
            c: 0.4,
            fast_convergence: true,
            tcp_friendliness: true,
            hystart: false,
            search: false,
            resume_cwnd: None,
            resume_rtt: None,
        }
    }
}

impl ControlConfig for Config {
    type Control = Cubic;

    fn validate(&self) -> Result<(), ConfigError> {
        fraction("beta", self.beta)?;
        positive("c", self.c)?;
        start::validate(self.resume_cwnd, self.resume_rtt)
    }

    fn control(&self, setup: &Setup) -> Cubic {
        Cubic::new(self, setup)
    }

    fn start(&self) -> Start {
        Start::of(self.search, self.resume_cwnd, self.resume_rtt)
    }
}

impl Config {
    /// W_cubic(t): RFC 9438 eq. (1).
    fn w_cubic(&self, t: f64, k: f64, w_max: f64) -> f64 {
        let d = t - k;
        self.c * d * d * d + w_max
    }

    /// K, the time from the beginning of an epoch to its plateau: RFC 9438 eq. (2).
    fn k(&self, w_max: f64, cwnd_epoch: f64) -> f64 {
        libm::cbrt((w_max - cwnd_epoch) / self.c)
    }

    /// Growth of W_est per window: with it the mean window of AIMD(alpha, beta) is that of Reno (RFC 9438 §4.3).
    fn alpha(&self) -> f64 {
        3.0 * (1.0 - self.beta) / (1.0 + self.beta)
    }

    /// W_max after a loss at `cwnd`, with fast convergence if it is on (RFC 9438 §4.7).
    fn next_w_max(&self, cwnd: f64, w_max: f64) -> f64 {
        if self.fast_convergence && cwnd < w_max { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd }
    }
}

/// One stage of congestion avoidance, which begins with the first ACK after a reduction.
#[derive(Debug, Clone, PartialEq)]
struct Epoch {
    /// t_epoch, plus the time during which the window was not in use.
    start: Instant,
    /// K in seconds.
    k: f64,
    /// W_est, the estimate of Reno's window, in segments.
    w_est: f64,
    /// Time of the last ACK; it tells how long the window was not in use.
    last_ack: Instant,
}

/// The control of one connection: CUBIC.
#[derive(Debug, Clone, PartialEq)]
pub struct Cubic {
    config: Config,
    /// alpha of the Reno-friendly region (§4.3), computed once.
    alpha: f64,
    /// Segment size in bytes.
    mss: f64,
    /// Congestion window in segments.
    cwnd: f64,
    /// Slow start threshold in segments; infinite before the first signal if [`Setup`] has none.
    ssthresh: f64,
    /// Window after the recovery: `ssthresh`, or less after an ECN echo (§4.6); infinite before the first signal.
    reduced: f64,
    /// W_max in segments: the plateau of the curve.
    w_max: f64,
    /// Window before the last reduction, in segments; from there on W_est grows by one segment per window (§4.3).
    cwnd_prior: f64,
    /// The current stage of congestion avoidance; `None` until its first ACK.
    epoch: Option<Epoch>,
    /// A timeout occurred, and neither congestion avoidance nor a loss has followed it.
    after_timeout: bool,
    /// HyStart++ during the first slow start; `None` after it, or if the option is off.
    hystart: Option<Box<HyStart>>,
}

impl Epoch {
    /// Moves t_epoch, so that the time since the last ACK, in which the window was not in use, does not count (RFC 9438
    /// §4.2, §5.8).
    fn stand_still(&mut self, now: Instant) {
        self.start += now.since(self.last_ack);
        self.last_ack = now;
    }
}

impl Cubic {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        let mss = setup.mss.max(Bytes::new(1)).as_f64();
        Self {
            config: *config,
            alpha: config.alpha(),
            mss,
            cwnd: setup.initial_window.as_f64() / mss,
            ssthresh: setup.first_threshold(mss),
            reduced: f64::INFINITY,
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            after_timeout: false,
            hystart: (config.hystart && !config.search).then(|| Box::new(HyStart::new())),
        }
    }

    /// Converts segments to bytes. Rounds to the nearest byte, so that a sum of fractions which is ten segments but for
    /// its rounding errors is not one byte less.
    #[inline]
    fn bytes(&self, segments: f64) -> Bytes {
        Bytes::new((segments * self.mss + 0.5) as u64)
    }

    /// Reduces `ssthresh` and sets the plateau of the next epoch (RFC 9438 §4.6, §4.7).
    fn reduce(&mut self, loss: &Loss) {
        let ssthresh = loss.in_flight.as_f64() / self.mss * self.config.beta;
        self.w_max = self.config.next_w_max(self.cwnd, self.w_max);
        self.cwnd_prior = self.cwnd;
        self.ssthresh = ssthresh.max(2.0);
        self.reduced = ssthresh.max(if loss.ecn { 1.0 } else { 2.0 });
        self.epoch = None;
        self.hystart = None;
    }

    /// Begins a stage of congestion avoidance with the current window as cwnd_epoch.
    fn begin_epoch(&mut self, now: Instant) {
        // After a timeout W_max is cwnd_epoch, hence K = 0 (§4.8). A window above W_max has no plateau to reach either.
        self.w_max = if self.after_timeout { self.cwnd } else { self.w_max.max(self.cwnd) };
        self.after_timeout = false;
        self.epoch =
            Some(Epoch { start: now, k: self.config.k(self.w_max, self.cwnd), w_est: self.cwnd, last_ack: now });
    }

    /// Slow start (§4.10): HyStart++ (RFC 9406) if it is on, else RFC 5681 with the limits of RFC 3465 §2.3.
    #[inline]
    fn slow_start(&mut self, ack: &Ack, segments_acked: f64) {
        if let Some(hystart) = &mut self.hystart {
            match hystart.on_ack(ack, segments_acked) {
                Some(opened) => self.cwnd += opened,
                None => {
                    self.ssthresh = self.cwnd;
                    self.hystart = None;
                }
            }
            return;
        }
        let limit = if self.after_timeout { 1.0 } else { L as f64 };
        self.cwnd += segments_acked.min(limit);
    }

    /// Congestion avoidance: the larger of W_est and the curve (§4.2 to §4.5).
    #[inline]
    fn avoid_congestion(&mut self, now: Instant, rtt: f64, segments_acked: f64) {
        if self.epoch.is_none() {
            self.begin_epoch(now);
        }
        let Some(epoch) = &mut self.epoch else { return };
        epoch.last_ack = now;
        let t = now.since(epoch.start).as_secs_f64();
        let share = (segments_acked / self.cwnd).min(1.0);
        // eq. (4): from cwnd_prior on, the estimate has regained what the reduction took, and alpha is 1.
        epoch.w_est += share * if epoch.w_est >= self.cwnd_prior { 1.0 } else { self.alpha };
        if self.config.tcp_friendliness && self.config.w_cubic(t, epoch.k, self.w_max) < epoch.w_est {
            self.cwnd = self.cwnd.max(epoch.w_est); // §4.3, the Reno-friendly region
        } else {
            let target = self.config.w_cubic(t + rtt, epoch.k, self.w_max).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += (target - self.cwnd) * share;
        }
    }
}

impl CongestionControl for Cubic {
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.bytes(self.cwnd)
    }

    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.bytes(self.ssthresh)
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let segments_acked = ack.acked.as_f64() / self.mss;
        if !ack.cwnd_limited {
            if let Some(epoch) = &mut self.epoch {
                epoch.stand_still(ack.now);
            }
        } else if self.cwnd < self.ssthresh {
            self.slow_start(ack, segments_acked);
        } else {
            self.avoid_congestion(ack.now, ack.srtt.as_secs_f64(), segments_acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.reduce(loss);
        self.after_timeout = false;
    }

    fn on_recovered(&mut self, _: Instant) {
        // Without an earlier signal there is no threshold, and the window stays.
        if self.reduced.is_finite() {
            self.cwnd = self.reduced;
        }
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.reduce(loss);
        self.cwnd = 1.0;
        self.after_timeout = true;
    }

    fn on_idle(&mut self, now: Instant, initial_window: Bytes) {
        let restart = initial_window.as_f64() / self.mss;
        if self.cwnd > restart {
            self.cwnd = restart;
            self.epoch = None;
        } else if let Some(epoch) = &mut self.epoch {
            epoch.stand_still(now);
        }
    }

    fn advise(&mut self, advice: Advice) {
        let Advice::Adopt { cwnd, ssthresh } = advice else { return };
        if self.bytes(self.cwnd) != cwnd {
            self.cwnd = cwnd.as_f64() / self.mss;
            self.epoch = None; // the curve of this epoch began at another window
        }
        self.ssthresh = (ssthresh.as_f64() / self.mss).max(2.0);
    }
}

#[cfg(test)]
mod tests;
