//! The state machine of draft-ietf-ccwg-bbr-06 §5.3, and the gains of its states (§5.6.1).

use super::{AckPhase, Bbr3, Delivered, State};
use crate::rng::Rng;
use crate::units::{Instant, Span};

/// The most rounds between two probes for bandwidth (§5.3.3.8).
const MOST_PROBE_ROUNDS: f64 = 63.0;
/// The rounds after which Drain ends in any case (§5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// The limit of bw_probe_up_rounds (§5.3.3.9).
const MOST_UP_ROUNDS: u32 = 30;

impl Bbr3 {
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.startup_pacing_gain,
            State::Drain => self.config.drain_pacing_gain,
            State::Down => self.config.down_pacing_gain,
            State::Up => self.config.up_pacing_gain,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
        }
    }

    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => self.config.up_cwnd_gain,
            State::ProbeRtt => self.config.probe_rtt_cwnd_gain,
            _ => self.config.cwnd_gain,
        }
    }

    /// EnterStartup() (§5.3.1.1).
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// CheckStartupDone() (§5.3.1.1).
    pub(super) fn check_startup_done(&mut self, rs: &Delivered) {
        self.check_startup_high_loss(rs);
        if self.state == State::Startup && self.full_bw_reached {
            self.enter_drain();
        }
    }

    /// ResetFullBW() (§5.3.1.2).
    pub(super) fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0.0, 0, false);
    }

    /// CheckFullBWReached() (§5.3.1.2).
    pub(super) fn check_full_bw_reached(&mut self, rs: &Delivered) {
        if self.full_bw_now || !self.round_start || rs.app_limited {
            return;
        }
        if rs.rate() >= self.full_bw * self.config.full_bw_growth {
            self.reset_full_bw();
            self.full_bw = rs.rate();
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= self.config.full_bw_rounds;
        if self.full_bw_now {
            self.full_bw_reached = true;
        }
    }

    /// CheckStartupHighLoss() (§5.3.1.3): with SACK at the end of a round of losses, after a whole round of fast recovery.
    pub(super) fn check_startup_high_loss(&mut self, rs: &Delivered) {
        if self.state == State::Startup && !self.full_bw_reached && self.recovering {
            let a_round = rs.prior_delivered.as_f64() >= self.recovery_delivered;
            let ranges = self.lost_ranges >= self.config.full_loss_ranges;
            let high =
                self.loss_round_start && a_round && ranges && self.is_inflight_too_high(rs.lost, rs.tx_in_flight);
            if high || (!self.sack && self.lost_ranges > 0) {
                self.undo.state = Some(State::Startup);
                (self.full_bw_now, self.full_bw_reached) = (true, true);
                self.inflight_longterm = self.bdp().max(self.inflight_latest);
            }
        }
        if self.loss_round_start {
            self.lost_ranges = 0;
        }
    }

    /// EnterDrain() (§5.3.2).
    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_start_round = self.round_count;
    }

    /// CheckDrainDone() (§5.3.2).
    pub(super) fn check_drain_done(&mut self, rs: &Delivered) {
        if self.state == State::Drain
            && (rs.in_flight.as_f64() <= self.inflight(self.bw, 1.0)
                || self.round_count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_probe_bw_down(rs.now); // EnterProbeBW() (§5.3.3.9)
        }
    }

    /// IsTimeToProbeBW() (§5.3.3.8).
    pub(super) fn is_time_to_probe_bw(&mut self, rs: &Delivered) -> bool {
        let is_time = self.has_elapsed_in_phase(self.bw_probe_wait, rs.now) || self.is_reno_coexistence_probe_time();
        if is_time {
            self.start_probe_bw_refill();
        }
        is_time
    }

    /// PickProbeWait() (§5.3.3.8).
    pub(super) fn pick_probe_wait(&mut self, now: Instant) {
        let mut random = Rng::split_mix(now.as_nanos());
        self.rounds_since_probe_up = random.below(2);
        self.bw_probe_wait = Span::from_secs_f64(2.0 + random.uniform());
    }

    /// IsRenoCoexistenceProbeTime() (§5.3.3.8), in segments.
    pub(super) fn is_reno_coexistence_probe_time(&self) -> bool {
        let reno_rounds = self.target_inflight() / self.smss;
        self.rounds_since_probe_up as f64 >= reno_rounds.min(MOST_PROBE_ROUNDS)
    }

    /// TargetInflight() (§5.3.3.8).
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp().min(self.cwnd)
    }

    /// StartProbeBW_DOWN() (§5.3.3.9).
    pub(super) fn start_probe_bw_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait(now);
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::Down;
    }

    /// StartProbeBW_CRUISE() (§5.3.3.9).
    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.state = State::Cruise;
    }

    /// StartProbeBW_REFILL() (§5.3.3.9).
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    /// StartProbeBW_UP() (§5.3.3.9).
    pub(super) fn start_probe_bw_up(&mut self, rs: &Delivered) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = rs.rate();
        self.state = State::Up;
        self.raise_inflight_longterm_slope();
    }

    /// UpdateProbeBWCyclePhase() (§5.3.3.9).
    #[expect(clippy::collapsible_match, reason = "these questions change the state, which a guard should not")]
    pub(super) fn update_probe_bw_cycle_phase(&mut self, rs: &Delivered) {
        if !self.full_bw_reached || self.adapt_long_term_model(rs) {
            return;
        }
        match self.state {
            State::Down => {
                if !self.is_time_to_probe_bw(rs) && self.is_time_to_cruise(rs) {
                    self.start_probe_bw_cruise();
                }
            }
            State::Cruise => {
                self.is_time_to_probe_bw(rs);
            }
            State::Refill if self.round_start => {
                self.is_bw_probe_sample = true;
                self.start_probe_bw_up(rs);
            }
            State::Up => {
                if self.is_time_to_go_down(rs) {
                    self.prev_probe_too_high = false;
                    self.start_probe_bw_down(rs.now);
                }
            }
            _ => {}
        }
    }

    /// IsInAProbeBWState() (§5.3.3.9).
    pub(super) fn is_in_a_probe_bw_state(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// IsTimeToCruise() (§5.3.3.9).
    pub(super) fn is_time_to_cruise(&self, rs: &Delivered) -> bool {
        let in_flight = rs.in_flight.as_f64();
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bw, 1.0)
    }

    /// IsTimeToGoDown() (§5.3.3.9).
    pub(super) fn is_time_to_go_down(&mut self, rs: &Delivered) -> bool {
        if self.prev_probe_too_high && rs.in_flight.as_f64() >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if rs.cwnd_limited && self.cwnd >= self.inflight_longterm {
            self.reset_full_bw();
            self.full_bw = rs.rate();
            return false;
        }
        self.full_bw_now
    }

    /// IsProbingBW() (§5.3.3.9).
    pub(super) fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    /// HasElapsedInPhase() (§5.3.3.9).
    pub(super) fn has_elapsed_in_phase(&self, interval: Span, now: Instant) -> bool {
        now > self.cycle_stamp + interval
    }

    /// InflightWithHeadroom() (§5.3.3.9).
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = self.smss.max(self.config.headroom * self.inflight_longterm);
        (self.inflight_longterm - headroom).max(self.min_pipe_cwnd())
    }

    /// RaiseInflightLongtermSlope() (§5.3.3.9).
    pub(super) fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = f64::from(1u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(MOST_UP_ROUNDS);
        self.probe_up_acked_per_inc = (self.cwnd / growth_this_round).max(self.smss);
    }

    /// ProbeInflightLongtermUpward() (§5.3.3.9).
    pub(super) fn probe_inflight_longterm_upward(&mut self, rs: &Delivered) {
        if !rs.cwnd_limited || self.cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += rs.newly_acked.as_f64();
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta * self.smss;
        }
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// AdaptLongTermModel() (§5.3.3.9). True if it decided a state transition.
    pub(super) fn adapt_long_term_model(&mut self, rs: &Delivered) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.is_in_a_probe_bw_state() && !rs.app_limited {
                self.max_bw_filter.cycle_count += 1; // AdvanceMaxBwFilter() (§5.5.6)
            }
            if self.is_in_a_probe_bw_state() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if !self.is_inflight_too_high(rs.lost, rs.tx_in_flight) {
            if self.inflight_longterm.is_infinite() {
                return false;
            }
            self.inflight_longterm = self.inflight_longterm.max(rs.tx_in_flight.as_f64());
            if self.state == State::Up {
                self.probe_inflight_longterm_upward(rs);
            }
        }
        false
    }

    /// CheckProbeRTT() (§5.3.4.3).
    pub(super) fn check_probe_rtt(&mut self, rs: &Delivered) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt; // EnterProbeRTT()
            self.save_cwnd();
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(rs);
        }
        if rs.since_sent().get() > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT() (§5.3.4.3).
    pub(super) fn handle_probe_rtt(&mut self, rs: &Delivered) {
        self.mark_connection_app_limited(rs);
        if self.probe_rtt_done_stamp.is_none() && rs.in_flight.as_f64() <= self.probe_rtt_cwnd() {
            self.probe_rtt_done_stamp = Some(rs.now + self.config.probe_rtt_time);
            self.probe_rtt_round_done = false;
            self.start_round();
        } else if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(rs.now);
            }
        }
    }

    /// MarkConnectionAppLimited() (§4.1.2.4), for the data that is sent from now on.
    pub(super) fn mark_connection_app_limited(&mut self, rs: &Delivered) {
        let delivered = rs.delivered.as_f64();
        if delivered > self.probe_rtt_limited.1 {
            self.probe_rtt_limited.0 = delivered;
        }
        self.probe_rtt_limited.1 = delivered + rs.in_flight.as_f64();
    }

    /// CheckProbeRTTDone() (§5.3.4.3).
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt_done_stamp.is_some_and(|done| now > done) {
            self.probe_rtt_min_stamp = now;
            self.restore_cwnd();
            self.exit_probe_rtt(now);
        }
    }

    /// ExitProbeRTT() (§5.3.4.4).
    pub(super) fn exit_probe_rtt(&mut self, now: Instant) {
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }
}
