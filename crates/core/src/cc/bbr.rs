//! BBR, version 1: window and pacing rate follow from a model of the path.
//!
//! Source: Cardwell, Cheng, Gunn, Yeganeh, Jacobson, "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00; Linux (`tcp_bbr.c`, version 1) where both leave details open.
//!
//! ```text
//! BtlBw  = largest delivery rate of the last 10 round trips        draft §4.1.1
//! RTprop = smallest round trip time of the last 10 s               draft §4.1.2
//! pace   = 0.99 pacing_gain BtlBw                                  §4.2.1
//! cwnd  -> cwnd_gain BtlBw RTprop + 3 quanta                       §4.2.3
//! ```
//!
//! | state | pacing gain | cwnd gain | leaves when |
//! |---|---|---|---|
//! | Startup | 2.885 | 2.885 | BtlBw grew by less than 25 % in 3 rounds |
//! | Drain | 1/2.885 | 2.885 | the flight is BtlBw RTprop |
//! | ProbeBW | 1.25, 0.75, 1 six times; a phase lasts RTprop | 2 | RTprop is 10 s old |
//! | ProbeRTT | 1; cwnd is 4 segments | 1 | 200 ms and a round trip with 4 segments in flight |
//!
//! Two intervals with the same rate and a loss of 20 % identify a policer: see `policer.rs`. Otherwise losses do not
//! change the model.
//!
//! Invariants: `cwnd >= 4` segments except after a timeout. Cost: O(1). The endpoint must pace and give rate samples
//! ([`Requirements::rate`]).
//!
//! In recovery the window is that of draft §4.2.3.4 ([`Requirements::own_recovery`]), with the losses of
//! [`RateSample::lost`].
//!
//! DIFFERENCE: the first phase of ProbeBW is not random but follows from the clock, its microseconds modulo 7.
//! Pinned by `probing_begins_anywhere_but_in_the_phase_that_drains`.
//! DIFFERENCE: the target of the flight is an even number of segments and a quantum is a whole number of segments, as
//! in Linux (for ACKs of two segments); the draft counts bytes. Pinned by `the_flight_is_an_even_number_of_segments`.
//! DIFFERENCE: an ACK without a rate sample opens the window as slow start does, so that the control also works with an
//! endpoint which gives no samples. Pinned by `without_samples_it_is_slow_start`.
//!
//! Not implemented: the allowance for aggregated ACKs, which Linux added in 2019, and ECN, which version 1 ignores.

pub(super) mod filter;
pub(super) mod linux;
mod policer;

use super::check::{above_zero, within};
use super::linux::{Form, constants};
use super::{Ack, CongestionControl, ControlConfig, Loss, RateSample, Requirements, Setup};
use crate::config::{Compat, ConfigError};
use crate::units::{Bytes, Instant, Rate, Span};
use filter::WindowedMax;
use policer::Policer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of phases in a cycle of ProbeBW.
const PHASES: usize = 8;
/// Rate in bits per second from which on a quantum is at least two segments (draft §4.2.2).
const PAIRS_FROM: f64 = 1.2e6;
/// Largest quantum in bytes (draft §4.2.2).
const MAX_QUANTUM: f64 = 64.0 * 1024.0;

/// Parameters of BBR.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Pacing and window gain of Startup; Drain paces with its inverse (2/ln 2 = 2.885).
    pub high_gain: f64,
    /// Window gain of ProbeBW (2).
    pub cwnd_gain: f64,
    /// Pacing gain of the phase of ProbeBW that probes for more (1.25).
    pub probe_gain: f64,
    /// Pacing gain of the phase after probing, which drains the queue that probing built (0.75).
    pub drain_gain: f64,
    /// Length in round trips of the maximum filter of BtlBw (draft §4.1.1: 10).
    pub bw_rounds: u64,
    /// Length of the minimum filter of RTprop (draft §4.1.2: 10 s).
    pub min_rtt_window: Span,
    /// Least duration of ProbeRTT (200 ms).
    pub probe_rtt_time: Span,
    /// Least window in segments, and the window of ProbeRTT (4).
    pub min_segments: u64,
    /// Factor by which BtlBw must grow for Startup to continue (1.25).
    pub full_bw_growth: f64,
    /// Rounds without such growth that end Startup (3).
    pub full_bw_rounds: u32,
    /// Pacing rate as a part of pacing_gain BtlBw; below 1 queues drain (Linux: 0.99).
    pub pacing_margin: f64,
    /// Whose rules apply: those of the "source", or those of Linux 6.12 ("linux").
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            high_gain: 2.885,
            cwnd_gain: 2.0,
            probe_gain: 1.25,
            drain_gain: 0.75,
            bw_rounds: 10,
            min_rtt_window: Span::from_secs(10),
            probe_rtt_time: Span::from_millis(200),
            min_segments: 4,
            full_bw_growth: 1.25,
            full_bw_rounds: 3,
            pacing_margin: 0.99,
            compat: Compat::Source,
        }
    }
}

impl ControlConfig for Config {
    type Control = Form<Bbr, Box<linux::BbrLinux>>;

    fn validate(&self) -> Result<(), ConfigError> {
        within("high_gain", self.high_gain, 1.0, 100.0)?;
        within("cwnd_gain", self.cwnd_gain, 1.0, 100.0)?;
        within("probe_gain", self.probe_gain, 1.0, 100.0)?;
        within("drain_gain", self.drain_gain, 0.01, 1.0)?;
        within("bw_rounds", self.bw_rounds as f64, 1.0, 1e6)?;
        above_zero("min_rtt_window", self.min_rtt_window)?;
        above_zero("probe_rtt_time", self.probe_rtt_time)?;
        within("min_segments", self.min_segments as f64, 1.0, 1e4)?;
        within("full_bw_growth", self.full_bw_growth, 1.0, 100.0)?;
        within("full_bw_rounds", self.full_bw_rounds.into(), 1.0, 1e3)?;
        within("pacing_margin", self.pacing_margin, 0.01, 1.0)?;
        let all = Self { compat: Compat::Linux, ..Self::default() } == *self;
        if self.compat == Compat::Linux { constants(&[("compat", all)]) } else { Ok(()) }
    }

    fn control(&self, setup: &Setup) -> Self::Control {
        match self.compat {
            Compat::Source => Form::Source(Bbr::new(self, setup)),
            Compat::Linux => Form::Linux(Box::new(linux::BbrLinux::new(setup))),
        }
    }
}

impl Config {
    /// Pacing gain of a phase of ProbeBW.
    fn cycle(&self, phase: usize) -> f64 {
        match phase {
            0 => self.probe_gain,
            1 => self.drain_gain,
            _ => 1.0,
        }
    }
}

/// States of the control: see the table in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The BBR control of one connection. Rates are in bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub struct Bbr {
    config: Config,
    mss: Bytes,
    initial_window: Bytes,
    mode: Mode,
    cwnd: Bytes,
    ssthresh: Bytes,
    /// Window before ProbeRTT, a loss or a timeout, which the control restores afterwards.
    prior_cwnd: Bytes,
    /// Pacing rate; `None` before the first round trip time.
    pacing: Option<f64>,
    /// BtlBw.
    btl_bw: WindowedMax,
    /// RTprop; [`Span::MAX`] before the first sample.
    min_rtt: Span,
    /// Time of the sample which is RTprop, or of the end of the last ProbeRTT.
    min_rtt_at: Instant,
    /// Number of round trips so far.
    round: u64,
    /// The round ends with a sample whose `prior_delivered` is at least this.
    round_ends: Bytes,
    /// True for the ACK that began a round.
    round_started: bool,
    /// Startup: BtlBw when it last grew by `full_bw_growth`.
    full_bw: f64,
    /// Startup: rounds since then.
    full_bw_rounds: u32,
    /// Startup found the rate of the bottleneck ("full pipe").
    filled: bool,
    /// ProbeBW: the current phase of the cycle.
    phase: usize,
    /// ProbeBW: when the current phase began.
    phase_at: Instant,
    /// ProbeRTT: earliest end, once the flight is small enough.
    probe_rtt_until: Option<Instant>,
    /// ProbeRTT: a round trip passed with the small flight.
    probe_rtt_round: bool,
    /// Samples whose `prior_delivered` is at most this are of data sent in ProbeRTT or before it.
    probe_rtt_sent: Bytes,
    /// True after idle time until the next sample, which does not begin ProbeRTT (draft §4.3.5).
    idle_restart: bool,
    policer: Policer,
    /// [`RateSample::lost`] at the last sample.
    lost: Bytes,
    recovery: Recovery,
    /// From a loss to the end of its recovery.
    recovering: bool,
}

/// The window of BBR in recovery (draft §4.2.3.4, Linux' `bbr_set_cwnd_to_recover_or_restore`).
#[derive(Debug, Clone, Copy, PartialEq)]
enum Recovery {
    /// No recovery, or packets are no longer conserved.
    Free,
    /// Recovery began with the loss that was told last.
    Begun,
    /// Each packet delivered lets one go, for a round trip: until an ACK of data that was sent when more than this was
    /// delivered.
    Conserving(Bytes),
}

impl Bbr {
    /// Creates a control in Startup.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self {
            config: *config,
            mss: setup.mss.max(Bytes::new(1)),
            initial_window: setup.initial_window,
            mode: Mode::Startup,
            cwnd: setup.initial_window,
            ssthresh: Bytes::MAX,
            prior_cwnd: Bytes::ZERO,
            pacing: None,
            btl_bw: WindowedMax::new(config.bw_rounds),
            min_rtt: Span::MAX,
            min_rtt_at: Instant::ZERO,
            round: 0,
            round_ends: Bytes::ZERO,
            round_started: false,
            full_bw: 0.0,
            full_bw_rounds: 0,
            filled: false,
            phase: 0,
            phase_at: Instant::ZERO,
            probe_rtt_until: None,
            probe_rtt_round: false,
            probe_rtt_sent: Bytes::ZERO,
            idle_restart: false,
            policer: Policer::default(),
            lost: Bytes::ZERO,
            recovery: Recovery::Free,
            recovering: false,
        }
    }

    /// Estimated rate of the bottleneck in bytes per second: the rate of a policer if one was found, else BtlBw.
    pub fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.btl_bw.get())
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => self.config.high_gain,
            Mode::Drain => 1.0 / self.config.high_gain,
            Mode::ProbeBw if self.policer.rate().is_some() => 1.0,
            Mode::ProbeBw => self.config.cycle(self.phase),
            Mode::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => self.config.high_gain,
            Mode::ProbeBw => self.config.cwnd_gain,
            Mode::ProbeRtt => 1.0,
        }
    }

    /// Target of the flight at this gain (draft §4.2.3.2), with three quanta for the aggregation of sender and
    /// receiver. It is an even number of segments.
    fn inflight(&self, bandwidth: f64, gain: f64) -> Bytes {
        if self.min_rtt == Span::MAX {
            return self.initial_window;
        }
        let bdp = (gain * bandwidth * self.min_rtt.as_secs_f64() / self.mss.as_f64()).ceil() as u64;
        (bdp + 3 * self.quantum()).next_multiple_of(2) * self.mss
    }

    /// Quantum: segments that may leave at once, those of a millisecond of the pacing rate (draft §4.2.2).
    fn quantum(&self) -> u64 {
        let pace = self.pacing.unwrap_or(0.0);
        let millisecond = (pace / 1000.0).min(MAX_QUANTUM) as u64 / self.mss.get();
        millisecond.max(if 8.0 * pace < PAIRS_FROM { 1 } else { 2 })
    }

    /// Updates the model and the state with a sample, in the order of Linux (bbr_update_model). Returns the bytes lost since
    /// the sample before.
    fn update_model(&mut self, ack: &Ack, sample: &RateSample) -> Bytes {
        let losses = sample.lost.saturating_sub(self.lost);
        self.lost = sample.lost;
        self.update_bandwidth(ack, sample, losses > Bytes::ZERO);
        self.update_phase(ack, sample.in_flight + ack.acked, losses > Bytes::ZERO);
        self.check_full(sample.app_limited);
        self.check_drained(ack.now, sample.in_flight);
        self.update_min_rtt(ack, sample);
        losses
    }

    /// Counts rounds and updates BtlBw (draft §4.1.1).
    fn update_bandwidth(&mut self, ack: &Ack, sample: &RateSample, losses: bool) {
        self.round_started = false;
        if sample.interval == Span::ZERO || ack.delivered <= sample.prior_delivered {
            return;
        }
        if sample.prior_delivered >= self.round_ends {
            self.round_ends = ack.delivered;
            self.round += 1;
            self.round_started = true;
        }
        let probing = self.mode == Mode::ProbeBw;
        if self.policer.sample(ack, sample, losses, self.round_started, probing) {
            self.enter_probe_bw(ack.now);
        }
        let rate = (ack.delivered - sample.prior_delivered).as_f64() / sample.interval.as_secs_f64();
        // A flight of four segments does not measure the bottleneck. The last samples of such a flight arrive after
        // ProbeRTT, and on a short path ProbeRTT takes more round trips than the filter of BtlBw covers.
        let four = self.mode == Mode::ProbeRtt || sample.prior_delivered <= self.probe_rtt_sent;
        let low = sample.app_limited || four;
        // A low sample counts only if it raises BtlBw (draft §4.1.1).
        if !low || rate >= self.btl_bw.get() {
            self.btl_bw.update(self.round, rate);
        }
    }

    /// Moves ProbeBW to its next phase when the current one is over (draft §4.3.4.1). `flight` is the flight before the
    /// ACK.
    fn update_phase(&mut self, ack: &Ack, flight: Bytes, losses: bool) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let full_length = ack.now.since(self.phase_at) > self.min_rtt;
        let gain = self.pacing_gain();
        // Probing lasts until the queue shows by losses or by the flight; draining ends early once the queue is empty.
        let over = if gain > 1.0 {
            full_length && (losses || flight >= self.inflight(self.btl_bw.get(), gain))
        } else {
            full_length || (gain < 1.0 && flight <= self.inflight(self.btl_bw.get(), 1.0))
        };
        if over {
            self.phase = (self.phase + 1) % PHASES;
            self.phase_at = ack.now;
        }
    }

    /// Startup is over when BtlBw did not grow for some rounds (draft §4.3.2).
    fn check_full(&mut self, app_limited: bool) {
        if self.filled || !self.round_started || app_limited {
            return;
        }
        if self.btl_bw.get() >= self.full_bw * self.config.full_bw_growth {
            self.full_bw = self.btl_bw.get();
            self.full_bw_rounds = 0;
            return;
        }
        self.full_bw_rounds += 1;
        self.filled = self.full_bw_rounds >= self.config.full_bw_rounds;
    }

    /// Leaves Startup for Drain, and Drain when the flight is the BDP (draft §4.3.3).
    fn check_drained(&mut self, now: Instant, in_flight: Bytes) {
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && in_flight <= self.inflight(self.btl_bw.get(), 1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// Begins ProbeBW in any phase but the one that drains, since there is no queue from probing yet.
    fn enter_probe_bw(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw;
        let skip = (now.as_nanos() / 1000 % 7) as usize;
        self.phase = (PHASES - skip) % PHASES;
        self.phase_at = now;
    }

    /// Updates RTprop, and begins ProbeRTT when it is too old (draft §4.1.2.3, §4.3.5).
    fn update_min_rtt(&mut self, ack: &Ack, sample: &RateSample) {
        let expired = ack.now.since(self.min_rtt_at) > self.config.min_rtt_window;
        if let Some(rtt) = ack.rtt
            && (rtt <= self.min_rtt || expired)
        {
            (self.min_rtt, self.min_rtt_at) = (rtt, ack.now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_until = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(ack, sample.in_flight);
        }
        self.idle_restart = false;
    }

    /// ProbeRTT waits until the flight is small, then for `probe_rtt_time` and a round trip (draft §4.3.5).
    fn probe_rtt(&mut self, ack: &Ack, in_flight: Bytes) {
        self.probe_rtt_sent = ack.delivered + in_flight;
        match self.probe_rtt_until {
            None if in_flight <= self.config.min_segments * self.mss => {
                self.probe_rtt_until = Some(ack.now + self.config.probe_rtt_time);
                self.probe_rtt_round = false;
                self.round_ends = ack.delivered;
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round |= self.round_started;
                if self.probe_rtt_round && ack.now > until {
                    self.leave_probe_rtt(ack.now);
                }
            }
        }
    }

    /// Restores the window, and returns to ProbeBW, or to Startup if that was not over.
    fn leave_probe_rtt(&mut self, now: Instant) {
        self.min_rtt_at = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.filled {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Remembers the window before a reduction; in recovery and in ProbeRTT the larger one.
    fn save_cwnd(&mut self) {
        let reduced = self.recovering || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if reduced { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// Sets the pacing rate (draft §4.2.1). The first one follows from the window and the first round trip time.
    fn set_pace(&mut self, srtt: Span) {
        if self.pacing.is_none() && srtt > Span::ZERO {
            self.pacing =
                Some(self.config.pacing_margin * self.config.high_gain * self.cwnd.as_f64() / srtt.as_secs_f64());
        }
        let pace = self.config.pacing_margin * self.pacing_gain() * self.bandwidth();
        // Startup never lowers the pacing rate, since early samples are of a window which was too small.
        if pace > 0.0 && (self.filled || self.pacing.is_none_or(|old| pace > old)) {
            self.pacing = Some(pace);
        }
    }

    /// Moves the window towards its target by the bytes acknowledged (draft §4.2.3.6).
    fn set_cwnd(&mut self, ack: &Ack) {
        let target = self.inflight(self.bandwidth(), self.cwnd_gain());
        let opened = self.cwnd + ack.acked;
        if self.filled {
            self.cwnd = opened.min(target);
        } else if self.cwnd < target || ack.delivered < self.initial_window {
            self.cwnd = opened;
        }
        self.cwnd = self.cwnd.max(self.config.min_segments * self.mss);
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.config.min_segments * self.mss);
        }
    }
}

impl Bbr {
    /// Sets the window of an ACK in recovery (draft §4.2.3.4): losses are taken off, and in the first round trip, which begins
    /// with the first ACK, packets are conserved; then the window is that of the model again.
    fn modulate(&mut self, ack: &Ack, sample: &RateSample, losses: Bytes) {
        let conserved = sample.in_flight + ack.acked;
        if self.recovery == Recovery::Begun {
            (self.cwnd, self.recovery) = (conserved, Recovery::Conserving(ack.delivered));
            self.round_ends = ack.delivered;
        }
        self.cwnd = self.cwnd.saturating_sub(losses).max(self.mss);
        match self.recovery {
            Recovery::Conserving(before) if sample.prior_delivered < before => self.cwnd = self.cwnd.max(conserved),
            _ => {
                self.recovery = Recovery::Free;
                self.set_cwnd(ack);
            }
        }
    }
}

impl CongestionControl for Bbr {
    without!(bursts, advice, notices);

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    /// The window before the last loss, so that recovery does not reduce it; [`Bytes::MAX`] before the first loss.
    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    fn on_ack(&mut self, ack: &Ack) {
        let Some(sample) = &ack.rate else {
            if ack.cwnd_limited {
                self.cwnd += ack.acked.min(2 * self.mss);
            }
            return;
        };
        self.update_model(ack, sample);
        self.set_pace(ack.srtt);
        self.set_cwnd(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if !loss.ecn {
            self.save_cwnd();
            self.ssthresh = self.cwnd.max(2 * self.mss);
            (self.recovery, self.recovering) = (Recovery::Begun, true);
        }
    }

    fn on_recovered(&mut self, _: Instant) {
        (self.recovery, self.recovering) = (Recovery::Free, false);
        if self.mode != Mode::ProbeRtt {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.prior_cwnd = Bytes::ZERO;
        }
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.on_loss(loss);
        (self.recovery, self.recovering) = (Recovery::Free, false);
        self.cwnd = self.mss;
        self.full_bw = 0.0; // as in Linux: BtlBw may grow from here on
    }

    fn on_idle(&mut self, _: Instant, _: Bytes) {
        self.idle_restart = true;
        if self.mode == Mode::ProbeBw {
            self.pacing = Some(self.config.pacing_margin * self.bandwidth());
        }
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing.map(|bytes| Rate::from_bps((8.0 * bytes) as u64))
    }

    fn requirements(&self) -> Requirements {
        Requirements { rate: true, own_recovery: true, ..Requirements::default() }
    }

    fn on_recovery_ack(&mut self, ack: &Ack) {
        if let Some(sample) = &ack.rate {
            let losses = self.update_model(ack, sample);
            self.set_pace(ack.srtt);
            self.modulate(ack, sample, losses);
        }
    }
}

#[cfg(test)]
mod tests;
