//! The control parameters of draft-ietf-ccwg-bbr-06 §5.6: pacing rate, send quantum and congestion window.

use super::{Bbr3, Delivered, State};
use crate::units::{Bytes, Span};

/// Largest quantum in bytes (§5.6.3).
const MAX_QUANTUM: f64 = 64.0 * 1024.0;

impl Bbr3 {
    /// InitPacingRate() (§5.6.2).
    pub(super) fn init_pacing_rate(&mut self, srtt: Span) {
        let srtt = if srtt == Span::ZERO { Span::from_millis(1) } else { srtt };
        self.pacing_rate = Some(self.config.startup_pacing_gain * self.initial_cwnd / srtt.as_secs_f64());
    }

    /// SetPacingRateWithGain() (§5.6.2).
    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bw * self.config.pacing_margin;
        if self.full_bw_reached || self.pacing_rate.is_none_or(|old| rate > old) {
            self.pacing_rate = Some(rate);
        }
    }

    /// SetPacingRate() (§5.6.2).
    pub(super) fn set_pacing_rate(&mut self) {
        self.set_pacing_rate_with_gain(self.pacing_gain());
    }

    /// SetSendQuantum() (§5.6.3): a millisecond of the pacing rate, two segments at least.
    pub(super) fn send_quantum(&self) -> f64 {
        (self.pacing_rate.unwrap_or(0.0) / 1000.0).min(MAX_QUANTUM).max(2.0 * self.smss)
    }

    /// BBR.MinPipeCwnd (§2.8).
    pub(super) fn min_pipe_cwnd(&self) -> f64 {
        self.config.min_segments as f64 * self.smss
    }

    /// BBR.bdp (§2.9.2).
    pub(super) fn bdp(&self) -> f64 {
        self.bdp_multiple(self.bw, 1.0)
    }

    /// BDPMultiple() (§5.6.4.2).
    pub(super) fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt.is_infinite() { self.initial_cwnd } else { gain * bw * self.min_rtt }
    }

    /// QuantizationBudget() (§5.6.4.2), with UpdateOffloadBudget() (§5.5.8.1).
    pub(super) fn quantization_budget(&self, inflight_cap: f64) -> f64 {
        let cap = inflight_cap.max(3.0 * self.send_quantum()).max(self.min_pipe_cwnd());
        if self.state == State::Up { cap + 2.0 * self.smss } else { cap }
    }

    /// Inflight() (§5.6.4.2).
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// UpdateMaxInflight() (§5.6.4.2).
    pub(super) fn max_inflight(&self) -> f64 {
        self.quantization_budget(self.bdp_multiple(self.bw, self.cwnd_gain()) + self.extra_acked())
    }

    /// OnEnterRTO() (§5.6.4.4); `in_flight` is what is not lost.
    pub(super) fn on_enter_rto(&mut self, in_flight: Bytes) {
        self.save_cwnd();
        self.save_state_upon_loss();
        self.recovering = true;
        self.recovery_delivered = f64::INFINITY; // it is no fast recovery
        self.cwnd = in_flight.as_f64() + self.smss;
    }

    /// OnEnterFastRecovery() (§5.6.4.4).
    pub(super) fn on_enter_fast_recovery(&mut self) {
        self.save_cwnd();
        self.save_state_upon_loss();
        self.recovering = true;
        self.recovery_delivered = self.delivered;
    }

    /// SaveCwnd() (§5.6.4.4).
    pub(super) fn save_cwnd(&mut self) {
        let reduced = self.recovering || self.state == State::ProbeRtt;
        self.prior_cwnd = if reduced { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// RestoreCwnd() (§5.6.4.4).
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// ProbeRTTCwnd() (§5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw, self.config.probe_rtt_cwnd_gain).max(self.min_pipe_cwnd())
    }

    /// SetCwnd() (§5.6.4.6), with BoundCwndForProbeRTT() (§5.6.4.5).
    pub(super) fn set_cwnd(&mut self, rs: &Delivered) {
        let max_inflight = self.max_inflight();
        let opened = self.cwnd + rs.newly_acked.as_f64();
        if self.full_bw_reached {
            self.cwnd = opened.min(max_inflight);
        } else if self.cwnd < max_inflight || rs.delivered.as_f64() < self.initial_cwnd {
            self.cwnd = opened;
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// BoundCwndForModel() (§5.6.4.7).
    pub(super) fn bound_cwnd_for_model(&mut self) {
        let longterm = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Down | State::Refill | State::Up => self.inflight_longterm,
        };
        self.cwnd = self.cwnd.min(longterm.min(self.inflight_shortterm).max(self.min_pipe_cwnd()));
    }
}
