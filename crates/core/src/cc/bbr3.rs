//! BBR, version 3: window and pacing rate follow from a model of the path, which losses bound.
//!
//! Source: draft-ietf-ccwg-bbr-06 (Cardwell, Swett, Beshay; ietf-wg-ccwg/draft-ietf-ccwg-bbr at c82a6a1). Every function is
//! that of the draft's pseudocode; its comment names the section. Rates are in bytes per second, volumes in bytes.
//!
//! ```text
//! max_bw       = largest delivery rate of this cycle of ProbeBW and the one before                     §5.5.3
//! min_rtt      = smallest round trip time of the last 10 s                                             §5.5.7
//! bw           = min(max_bw, bw_shortterm)                                                             §5.5.10
//! pace         = 0.99 pacing_gain bw                                                                   §5.6.2
//! max_inflight = cwnd_gain bw min_rtt + extra_acked, 3 quanta or 4 segments at least                   §5.6.4.2
//! cwnd        -> max_inflight, at most inflight_longterm (less 15 % of headroom), inflight_shortterm   §5.6.4.7
//! ```
//!
//! | state | pacing gain | cwnd gain | leaves when |
//! |---|---|---|---|
//! | Startup | 2.77 | 2 | the rate grew by less than 25 % in 3 rounds, or a round lost more than 2 % in 6 places |
//! | Drain | 0.5 | 2 | the flight is the BDP, or after 3 rounds |
//! | ProbeBW_DOWN | 0.9 | 2 | the flight is the BDP and leaves headroom, or it is time to probe |
//! | ProbeBW_CRUISE | 1 | 2 | 2 to 3 s, or as many rounds as segments in flight, at most 63, since the last probe |
//! | ProbeBW_REFILL | 1 | 2 | a round |
//! | ProbeBW_UP | 1.25 | 2.25 | the rate stays, more than 2 % are lost, or the limit of the last loss is reached |
//! | ProbeRTT | 1 | 0.5 | 200 ms and a round |
//!
//! After a round with losses, except in Startup, REFILL and UP: `bw_shortterm` and `inflight_shortterm` become what was
//! delivered in this round, at least 0.7 of what they were (§5.5.10.3). A loss of more than 2 % while probing sets
//! `inflight_longterm` (§5.5.10.2).
//!
//! Files: `bbr3/states.rs` (§5.3), `bbr3/model.rs` (§5.5), `bbr3/window.rs` (§5.6).
//! Invariants: `cwnd >= 4` segments except after a timeout. Cost: O(1). The endpoint must pace and tell each segment's
//! fate ([`Requirements::segments`]); in recovery the control's own window holds.
//!
//! DIFFERENCE: IsRenoCoexistenceProbeTime() compares rounds with TargetInflight(), which the draft's pseudocode has in
//! bytes and its text (§5.3.3.8.2) as a number of packets; here it is in segments. Pinned by
//! `a_small_flight_probes_as_often_as_reno_would`.
//! DIFFERENCE: the random numbers of PickProbeWait() are SplitMix64 of the time, so that a run repeats. Pinned by
//! `the_wait_for_a_probe_is_two_to_three_seconds`.
//! DIFFERENCE: the draft says that CE marks are congestion, and not how to respond (§3.7). A mark is a loss in its round
//! (NoteLoss), and while probing the flight is too high. Pinned by `a_mark_is_a_loss_in_its_round`.
//! DIFFERENCE: CheckStartupHighLoss() is text only (§5.3.1.3). It is asked at the end of each round of losses, as in
//! Linux; it sets full_bw_now as A.2 says. Pinned by `startup_ends_with_losses_in_six_places_of_a_round`.
//! DIFFERENCE: an ACK without a sample opens the window as slow start does, so that the control also works with an
//! endpoint which gives no samples. Pinned by `without_samples_it_is_slow_start`.
//! DIFFERENCE: OnInit() does not name probe_rtt_min_delay and probe_rtt_min_stamp; they begin as min_rtt does. The times of
//! the segments are the endpoint's, since a segment leaves when it is sent. So it is in the twin.

mod model;
mod states;
mod window;

use super::bbr::filter::WindowedMax;
use super::check::{above_zero, fraction, within};
use super::notice::{Begin, Delivered, LostSegment, Notice};
use super::{Ack, CongestionControl, ControlConfig, Loss, Requirements, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Instant, Rate, Span};
use model::MaxBw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of BBR, version 3: the constants of the draft.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Pacing gain of Startup: StartupPacingGain (4 ln 2 = 2.77).
    pub startup_pacing_gain: f64,
    /// Pacing gain of Drain: DrainPacingGain (0.5).
    pub drain_pacing_gain: f64,
    /// Pacing gain of ProbeBW_DOWN (0.9).
    pub down_pacing_gain: f64,
    /// Pacing gain of ProbeBW_UP (1.25).
    pub up_pacing_gain: f64,
    /// Window gain of all states but two: DefaultCwndGain (2).
    pub cwnd_gain: f64,
    /// Window gain of ProbeBW_UP (2.25).
    pub up_cwnd_gain: f64,
    /// Window gain of ProbeRTT: ProbeRTTCwndGain (0.5).
    pub probe_rtt_cwnd_gain: f64,
    /// Part of a round that may be lost while probing: LossThresh (0.02).
    pub loss_threshold: f64,
    /// Part of the short-term limits that remains at least after a round with losses: Beta (0.7).
    pub beta: f64,
    /// Part of inflight_longterm that is left to others: Headroom (0.15).
    pub headroom: f64,
    /// Least window in segments: MinPipeCwnd (4).
    pub min_segments: u64,
    /// Length of the minimum filter of min_rtt: MinRTTFilterLen (10 s).
    pub min_rtt_window: Span,
    /// Time without a new smallest round trip time that begins ProbeRTT: ProbeRTTInterval (5 s).
    pub probe_rtt_interval: Span,
    /// Least duration of ProbeRTT: ProbeRTTDuration (200 ms).
    pub probe_rtt_time: Span,
    /// Factor by which the delivery rate must grow for the pipe not to be full (1.25).
    pub full_bw_growth: f64,
    /// Rounds without such growth that end Startup and ProbeBW_UP (3).
    pub full_bw_rounds: u32,
    /// Lost ranges in a round that may end Startup: StartupFullLossCnt (6).
    pub full_loss_ranges: u32,
    /// Rounds that extra_acked remembers after Startup: ExtraAckedFilterLen (10).
    pub extra_acked_rounds: u64,
    /// Pacing rate as a part of pacing_gain bw: 1 less PacingMarginPercent (0.99).
    pub pacing_margin: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            startup_pacing_gain: 2.77,
            drain_pacing_gain: 0.5,
            down_pacing_gain: 0.9,
            up_pacing_gain: 1.25,
            cwnd_gain: 2.0,
            up_cwnd_gain: 2.25,
            probe_rtt_cwnd_gain: 0.5,
            loss_threshold: 0.02,
            beta: 0.7,
            headroom: 0.15,
            min_segments: 4,
            min_rtt_window: Span::from_secs(10),
            probe_rtt_interval: Span::from_secs(5),
            probe_rtt_time: Span::from_millis(200),
            full_bw_growth: 1.25,
            full_bw_rounds: 3,
            full_loss_ranges: 6,
            extra_acked_rounds: 10,
            pacing_margin: 0.99,
        }
    }
}

impl ControlConfig for Config {
    type Control = Bbr3;

    fn validate(&self) -> Result<(), ConfigError> {
        within("startup_pacing_gain", self.startup_pacing_gain, 1.0, 100.0)?;
        within("drain_pacing_gain", self.drain_pacing_gain, 0.01, 1.0)?;
        within("down_pacing_gain", self.down_pacing_gain, 0.01, 1.0)?;
        within("up_pacing_gain", self.up_pacing_gain, 1.0, 100.0)?;
        within("cwnd_gain", self.cwnd_gain, 1.0, 100.0)?;
        within("up_cwnd_gain", self.up_cwnd_gain, 1.0, 100.0)?;
        within("probe_rtt_cwnd_gain", self.probe_rtt_cwnd_gain, 0.01, 1.0)?;
        fraction("loss_threshold", self.loss_threshold)?;
        fraction("beta", self.beta)?;
        fraction("headroom", self.headroom)?;
        within("min_segments", self.min_segments as f64, 1.0, 1e4)?;
        above_zero("min_rtt_window", self.min_rtt_window)?;
        above_zero("probe_rtt_interval", self.probe_rtt_interval)?;
        above_zero("probe_rtt_time", self.probe_rtt_time)?;
        within("full_bw_growth", self.full_bw_growth, 1.0, 100.0)?;
        within("full_bw_rounds", self.full_bw_rounds.into(), 1.0, 1e6)?;
        within("full_loss_ranges", self.full_loss_ranges.into(), 1.0, 1e6)?;
        within("extra_acked_rounds", self.extra_acked_rounds as f64, 1.0, 1e6)?;
        within("pacing_margin", self.pacing_margin, 0.01, 1.0)
    }

    fn control(&self, setup: &Setup) -> Bbr3 {
        Bbr3::new(self, setup)
    }
}

/// BBR.state: see the table in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// BBR.ack_phase: which part of a probe for bandwidth the ACKs tell of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The limits before a loss, in case it was none (§5.5.11.1).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Undo {
    state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// The BBR control of one connection. Fields are called as in the draft.
#[derive(Debug, Clone, PartialEq)]
pub struct Bbr3 {
    config: Config,
    /// C.SMSS, C.InitialCwnd, C.has_selective_acks, C.cwnd, C.pacing_rate.
    smss: f64,
    initial_cwnd: f64,
    sack: bool,
    cwnd: f64,
    pacing_rate: Option<f64>,
    ssthresh: Bytes,
    state: State,
    /// From a loss or a timeout to the end of its recovery (InLossRecovery).
    recovering: bool,
    /// C.delivered when fast recovery began; infinite outside of it.
    recovery_delivered: f64,
    // Rounds (§5.5.1).
    next_round_delivered: f64,
    round_start: bool,
    /// C.delivered at the last notice.
    delivered: f64,
    round_count: u64,
    drain_start_round: u64,
    // The rate (§5.5.2).
    max_bw_filter: MaxBw,
    max_bw: f64,
    bw_shortterm: f64,
    bw: f64,
    // The round trip time (§5.3.4.3, §5.5.7).
    min_rtt: f64,
    min_rtt_stamp: Instant,
    probe_rtt_min_delay: f64,
    probe_rtt_min_stamp: Instant,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Instant>,
    probe_rtt_round_done: bool,
    /// Segments sent when more than the first and not more than the second was delivered were sent in ProbeRTT, which
    /// marks the connection as application-limited.
    probe_rtt_limited: (f64, f64),
    prior_cwnd: f64,
    idle_restart: bool,
    // The volume (§5.5.9, §5.5.10).
    extra_acked_filter: WindowedMax,
    extra_acked_interval_start: Instant,
    extra_acked_delivered: f64,
    inflight_longterm: f64,
    inflight_shortterm: f64,
    bw_latest: f64,
    inflight_latest: f64,
    loss_round_delivered: f64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    /// Ranges of lost data in this round.
    lost_ranges: u32,
    undo: Undo,
    // The full pipe (§5.3.1.2).
    full_bw: f64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    // The cycle of ProbeBW (§5.3.3).
    ack_phase: AckPhase,
    cycle_stamp: Instant,
    bw_probe_wait: Span,
    rounds_since_probe_up: u64,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    is_bw_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    /// C.lost at the last ACK of an endpoint that tells no segments.
    lost: Bytes,
}

impl Bbr3 {
    /// OnInit() (§5.2.1), but for what [`Begin`] tells.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self {
            config: *config,
            smss: setup.mss.max(Bytes::new(1)).as_f64(),
            initial_cwnd: setup.initial_window.as_f64(),
            sack: true,
            cwnd: setup.initial_window.as_f64(),
            pacing_rate: None,
            ssthresh: Bytes::MAX,
            state: State::Startup,
            recovering: false,
            recovery_delivered: f64::INFINITY,
            next_round_delivered: 0.0,
            round_start: false,
            delivered: 0.0,
            round_count: 0,
            drain_start_round: 0,
            max_bw_filter: MaxBw::default(),
            max_bw: 0.0,
            bw_shortterm: f64::INFINITY,
            bw: 0.0,
            min_rtt: f64::INFINITY,
            min_rtt_stamp: Instant::ZERO,
            probe_rtt_min_delay: f64::INFINITY,
            probe_rtt_min_stamp: Instant::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            probe_rtt_limited: (f64::INFINITY, 0.0),
            prior_cwnd: 0.0,
            idle_restart: false,
            extra_acked_filter: WindowedMax::new(1),
            extra_acked_interval_start: Instant::ZERO,
            extra_acked_delivered: 0.0,
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_delivered: 0.0,
            loss_round_start: false,
            is_loss_in_round: false,
            lost_ranges: 0,
            undo: Undo::default(),
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            ack_phase: AckPhase::Init,
            cycle_stamp: Instant::ZERO,
            bw_probe_wait: Span::ZERO,
            rounds_since_probe_up: 0,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            lost: Bytes::ZERO,
        }
    }

    /// The rest of OnInit(): what depends on the time and the handshake.
    fn begin(&mut self, begin: &Begin) {
        if begin.srtt > Span::ZERO {
            self.min_rtt = begin.srtt.as_secs_f64();
        }
        (self.min_rtt_stamp, self.probe_rtt_min_stamp) = (begin.now, begin.now);
        self.extra_acked_interval_start = begin.now;
        self.probe_rtt_min_delay = self.min_rtt;
        self.sack = begin.sack;
        self.init_pacing_rate(begin.srtt);
    }

    /// UpdateOnACK() (§5.2.3). GenerateRateSample() is the endpoint's.
    fn update_on_ack(&mut self, sample: &Delivered) {
        let mut rs = *sample;
        rs.app_limited |= self.sent_in_probe_rtt(rs.prior_delivered);
        self.update_model_and_state(&rs);
        self.set_pacing_rate();
        self.set_cwnd(&rs);
    }

    /// UpdateModelAndState() (§5.2.3).
    fn update_model_and_state(&mut self, rs: &Delivered) {
        self.update_latest_delivery_signals(rs);
        self.update_congestion_signals(rs);
        self.update_ack_aggregation(rs);
        self.check_full_bw_reached(rs);
        self.check_startup_done(rs);
        self.check_drain_done(rs);
        self.update_probe_bw_cycle_phase(rs);
        self.update_min_rtt(rs);
        self.check_probe_rtt(rs);
        self.advance_latest_delivery_signals(rs);
        self.bound_bw_for_model();
    }

    /// HandleRestartFromIdle() (§5.4.1).
    fn handle_restart_from_idle(&mut self, now: Instant) {
        self.idle_restart = true;
        self.extra_acked_interval_start = now;
        if self.is_in_a_probe_bw_state() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}

impl CongestionControl for Bbr3 {
    super::without!(bursts, advice);

    #[inline]
    fn cwnd(&self) -> Bytes {
        Bytes::new(self.cwnd as u64)
    }

    /// The window before the last loss, so that recovery does not reduce it; [`Bytes::MAX`] before the first loss.
    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    fn on_ack(&mut self, ack: &Ack) {
        let lost = ack.rate.map_or(Bytes::ZERO, |sample| sample.lost.saturating_sub(self.lost));
        let Some(sample) = Delivered::of(ack, lost) else {
            if ack.cwnd_limited {
                self.cwnd += ack.acked.as_f64().min(2.0 * self.smss);
            }
            return;
        };
        if self.pacing_rate.is_none() {
            self.begin(&Begin { now: ack.now, srtt: ack.srtt, sack: true });
        }
        self.lost += lost;
        self.update_on_ack(&sample);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.ecn {
            self.note_mark(loss);
            return;
        }
        self.ssthresh = self.cwnd().max(Bytes::new(2 * self.smss as u64));
        self.on_enter_fast_recovery();
    }

    fn on_recovered(&mut self, _: Instant) {
        if self.recovering {
            (self.recovering, self.recovery_delivered) = (false, f64::INFINITY);
            self.restore_cwnd();
        }
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.ssthresh = self.cwnd().max(Bytes::new(2 * self.smss as u64));
        self.on_enter_rto(loss.in_flight);
    }

    fn on_idle(&mut self, now: Instant, _: Bytes) {
        self.handle_restart_from_idle(now);
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate.map(|bytes| Rate::from_bps((8.0 * bytes) as u64))
    }

    fn requirements(&self) -> Requirements {
        Requirements { own_recovery: true, segments: true, ..Requirements::default() }
    }

    fn on_recovery_ack(&mut self, ack: &Ack) {
        if ack.rate.is_some() {
            self.on_ack(ack);
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice {
            Notice::Begin(begin) => self.begin(begin),
            Notice::Delivered(sample) => self.update_on_ack(sample),
            Notice::Lost(segment) => self.handle_lost_packet(segment),
            Notice::Restart(now) => self.handle_restart_from_idle(*now),
            Notice::Spurious(_) => self.handle_spurious_loss_detection(),
        }
    }
}

#[cfg(test)]
mod tests;
