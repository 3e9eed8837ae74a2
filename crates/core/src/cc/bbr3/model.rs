//! The model of the path of draft-ietf-ccwg-bbr-06 §5.5.

use super::{Bbr3, Delivered, LostSegment, State, Undo};
use crate::cc::Loss;
use crate::units::{Bytes, Instant};

/// BBR.max_bw_filter: the largest rate of this cycle of ProbeBW and of the one before (§5.5.6).
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct MaxBw {
    /// BBR.cycle_count.
    pub cycle_count: u64,
    /// The cycle of the last sample.
    sampled: u64,
    /// The largest rate of that cycle.
    now: f64,
    /// The largest rate of the cycle before; zero without a sample.
    before: f64,
}

impl MaxBw {
    /// Takes a sample of this cycle; returns the largest of two cycles.
    pub fn update(&mut self, rate: f64) -> f64 {
        let cycle = self.cycle_count;
        if cycle != self.sampled {
            self.before = if cycle == self.sampled + 1 { self.now } else { 0.0 };
            (self.sampled, self.now) = (cycle, 0.0);
        }
        self.now = self.now.max(rate);
        self.now.max(self.before)
    }
}

impl Bbr3 {
    /// UpdateRound() (§5.5.1).
    pub(super) fn update_round(&mut self, rs: &Delivered) {
        self.round_start = rs.prior_delivered.as_f64() >= self.next_round_delivered;
        if self.round_start {
            self.next_round_delivered = rs.delivered.as_f64();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
        }
    }

    /// StartRound() (§5.5.1). C.delivered is that of the last ACK.
    pub(super) fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    /// UpdateMaxBw() (§5.5.5).
    pub(super) fn update_max_bw(&mut self, rs: &Delivered) {
        self.update_round(rs);
        let rate = rs.rate();
        if rate > 0.0 && (rate >= self.max_bw || !rs.app_limited) {
            self.max_bw = self.max_bw_filter.update(rate);
        }
    }

    /// UpdateMinRTT() (§5.3.4.3).
    pub(super) fn update_min_rtt(&mut self, rs: &Delivered) {
        self.probe_rtt_expired = rs.now > self.probe_rtt_min_stamp + self.config.probe_rtt_interval;
        if let Some(rtt) = rs.rtt {
            let rtt = rtt.as_secs_f64();
            if rtt < self.probe_rtt_min_delay || self.probe_rtt_expired {
                (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (rtt, rs.now);
            }
        }
        let min_rtt_expired = rs.now > self.min_rtt_stamp + self.config.min_rtt_window;
        if self.probe_rtt_min_delay < self.min_rtt || min_rtt_expired {
            (self.min_rtt, self.min_rtt_stamp) = (self.probe_rtt_min_delay, self.probe_rtt_min_stamp);
        }
    }

    /// UpdateACKAggregation() (§5.5.9).
    pub(super) fn update_ack_aggregation(&mut self, rs: &Delivered) {
        let interval = rs.now.since(self.extra_acked_interval_start).as_secs_f64();
        let mut expected_delivered = self.bw * interval;
        if self.extra_acked_delivered <= expected_delivered {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_interval_start = rs.now;
            expected_delivered = 0.0;
        }
        self.extra_acked_delivered += rs.newly_acked.as_f64();
        let extra = (self.extra_acked_delivered - expected_delivered).min(self.cwnd);
        let rounds = if self.full_bw_reached { self.config.extra_acked_rounds } else { 1 };
        self.extra_acked_filter.set_window(rounds);
        self.extra_acked_filter.update(self.round_count, extra);
    }

    /// BBR.extra_acked (§5.5.9).
    pub(super) fn extra_acked(&self) -> f64 {
        self.extra_acked_filter.get()
    }

    /// UpdateLatestDeliverySignals() (§5.5.10.3).
    pub(super) fn update_latest_delivery_signals(&mut self, rs: &Delivered) {
        self.delivered = rs.delivered.as_f64();
        self.bw_latest = self.bw_latest.max(rs.rate());
        self.inflight_latest = self.inflight_latest.max(rs.since_sent().as_f64());
        self.loss_round_start = rs.prior_delivered.as_f64() >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = rs.delivered.as_f64();
        }
    }

    /// AdvanceLatestDeliverySignals() (§5.5.10.3).
    pub(super) fn advance_latest_delivery_signals(&mut self, rs: &Delivered) {
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (rs.rate(), rs.since_sent().as_f64());
        }
    }

    /// ResetCongestionSignals() (§5.5.10.3).
    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// UpdateCongestionSignals() (§5.5.10.3).
    pub(super) fn update_congestion_signals(&mut self, rs: &Delivered) {
        self.update_max_bw(rs);
        if !self.loss_round_start {
            return;
        }
        self.adapt_lower_bounds_from_congestion();
        self.is_loss_in_round = false;
    }

    /// AdaptLowerBoundsFromCongestion(), InitLowerBounds() and LossLowerBounds() (§5.5.10.3).
    pub(super) fn adapt_lower_bounds_from_congestion(&mut self) {
        if self.is_probing_bw() || !self.is_loss_in_round {
            return;
        }
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = self.max_bw;
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = self.cwnd;
        }
        self.bw_shortterm = self.bw_latest.max(self.config.beta * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(self.config.beta * self.inflight_shortterm);
    }

    /// ResetShortTermModel() (§5.5.10.3).
    pub(super) fn reset_short_term_model(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }

    /// BoundBWForModel() (§5.5.10.3).
    pub(super) fn bound_bw_for_model(&mut self) {
        self.bw = self.max_bw.min(self.bw_shortterm);
    }

    /// IsInflightTooHigh() (§5.5.10.2).
    pub(super) fn is_inflight_too_high(&self, lost: Bytes, tx_in_flight: Bytes) -> bool {
        lost.as_f64() > tx_in_flight.as_f64() * self.config.loss_threshold || (lost > Bytes::ZERO && !self.sack)
    }

    /// HandleInflightTooHigh() (§5.5.10.2).
    pub(super) fn handle_inflight_too_high(&mut self, tx_in_flight: f64, app_limited: bool, now: Instant) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !app_limited {
            self.inflight_longterm = tx_in_flight.max(self.target_inflight() * self.config.beta);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_probe_bw_down(now);
        }
    }

    /// NoteLoss() (§5.5.10.2).
    pub(super) fn note_loss(&mut self) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_state_upon_loss();
        }
        self.is_loss_in_round = true;
    }

    /// HandleLostPacket() (§5.5.10.2).
    pub(super) fn handle_lost_packet(&mut self, p: &LostSegment) {
        self.delivered = p.delivered.as_f64();
        self.note_loss();
        self.lost_ranges += u32::from(p.apart);
        if !self.is_bw_probe_sample {
            return;
        }
        if self.is_inflight_too_high(p.lost, p.tx_in_flight) {
            let app_limited = p.app_limited || self.sent_in_probe_rtt(p.prior_delivered);
            self.handle_inflight_too_high(self.inflight_at_loss(p), app_limited, p.now);
        }
    }

    /// InflightAtLoss() (§5.5.10.2).
    pub(super) fn inflight_at_loss(&self, p: &LostSegment) -> f64 {
        let size = p.size.as_f64();
        let inflight_prev = p.tx_in_flight.as_f64() - size;
        let lost_prev = p.lost.as_f64() - size;
        let threshold = self.config.loss_threshold;
        inflight_prev + (threshold * inflight_prev - lost_prev) / (1.0 - threshold)
    }

    /// A CE mark is congestion (§3.7): a loss in its round, and a flight that is too high while probing.
    pub(super) fn note_mark(&mut self, mark: &Loss) {
        self.note_loss();
        if self.is_bw_probe_sample {
            self.handle_inflight_too_high(mark.in_flight.as_f64(), false, mark.now);
        }
    }

    /// True for data that was sent while ProbeRTT marked the connection as application-limited.
    pub(super) fn sent_in_probe_rtt(&self, prior_delivered: Bytes) -> bool {
        let (first, last) = self.probe_rtt_limited;
        (first..=last).contains(&prior_delivered.as_f64())
    }

    /// SaveStateUponLoss() (§5.5.11.1).
    pub(super) fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    /// HandleSpuriousLossDetection() (§5.5.11.2).
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
        self.undo.state = None;
    }
}
