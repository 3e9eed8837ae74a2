//! BBR as the Linux kernel computes it (`net/ipv4/tcp_bbr.c`, Linux 6.12): whole segments, and rates in segments per
//! microsecond times 2^24.
//!
//! ```text
//! bw         largest of the last 10 rounds of delivered / interval                        bbr_update_bw
//! min_rtt    smallest round trip time of the last 10 s                                    bbr_update_min_rtt
//! pace       0.99 pacing_gain bw mss                                                      bbr_bw_to_pacing_rate
//! budget(w)  w + 3 tso_segs, rounded up to an even number, 2 more in the phase that probes    bbr_quantization_budget
//! target     budget(ceil(cwnd_gain bw min_rtt) + extra_acked)                              bbr_set_cwnd
//! cwnd       min(cwnd + acked, target) once the pipe was full, else cwnd + acked
//! losses     those that an ACK reveals are taken off cwnd; those that a timer finds are not
//! recovery   its first round conserves packets: cwnd >= in flight + acked                 bbr_set_cwnd_to_recover_or_restore
//! timeout    cwnd = in flight + 1                                                          tcp_enter_loss
//! ```
//!
//! Beyond version 1 of the draft the kernel has an allowance for aggregated ACKs (`extra_acked`), and asks what will be in the
//! network when the next segment departs (`bbr_packets_in_net_at_edt`). A function here has the name that it has there, without
//! `bbr_`.
//!
//! `acked` of an ACK is what it newly acknowledges or SACKs. An ACK that delivers nothing changes nothing.
//!
//! DIFFERENCE: in ProbeRTT the kernel marks what is sent as limited by the application; here samples of what was sent then are
//! treated so. Pinned by `what_was_sent_in_probe_rtt_is_no_measure`.

mod long_term;

use super::super::linux::{microseconds, ticks};
use super::super::notice::{Delivered, Notice};
use super::super::{Ack, CongestionControl, Loss, Requirements, Setup};
use super::Mode;
use super::filter::WindowedMax;
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Rate, Span};
use long_term::LongTerm;

/// Rates are in segments per microsecond times this.
const BW_UNIT: u64 = 1 << 24;
/// Gains are multiples of 1/256.
const BBR_UNIT: u64 = 256;
const HIGH_GAIN: u64 = BBR_UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = BBR_UNIT * 1000 / 2885;
const CWND_GAIN: u64 = 2 * BBR_UNIT;
/// Gains of the phases of ProbeBW.
const CYCLE: [u64; 8] = [320, 192, 256, 256, 256, 256, 256, 256];
const BW_ROUNDS: u64 = 10;
const MIN_RTT_TICKS: u64 = 10_000;
const PROBE_RTT_TICKS: u64 = 200;
const MIN_CWND: u64 = 4;
const INITIAL_CWND: u64 = 10;
const FULL_BW: (u64, u32) = (BBR_UNIT * 5 / 4, 3);
/// Below this pacing rate in bytes per second segments leave one by one.
const MIN_TSO_RATE: u64 = 1_200_000 / 8;
const EXTRA_ACKED_ROUNDS: u32 = 5;
const EXTRA_ACKED_MAX_US: u64 = 100_000;
const EPOCH_RESET: u64 = 1 << 20;

/// States of the sender that matter here: `TCP_CA_Open` and those below Recovery, `TCP_CA_Recovery`, `TCP_CA_Loss`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum State {
    Open,
    Recovery,
    Loss,
}

/// The BBR control of one connection, as in the kernel. Counts are in segments.
#[derive(Debug, Clone, PartialEq)]
pub struct BbrLinux {
    mss: u64,
    /// What chance decides.
    seed: u64,
    cwnd: u64,
    prior_cwnd: u64,
    /// `sk_pacing_rate`, bytes per second.
    pacing: u64,
    has_seen_rtt: bool,
    /// Microseconds; [`u64::MAX`] before the first sample.
    min_rtt: u64,
    /// Ticks.
    min_rtt_stamp: u64,
    probe_rtt_done: Option<u64>,
    probe_rtt_round: bool,
    /// What was delivered when ProbeRTT began, and until which count what is sent counts as limited by the application.
    probe_rtt_sent: (u64, u64),
    bw: WindowedMax,
    round: u64,
    next_round: u64,
    round_start: bool,
    mode: Mode,
    state: State,
    prev_state: State,
    conserving: bool,
    idle_restart: bool,
    full: bool,
    full_bw: u64,
    full_rounds: u32,
    phase: usize,
    phase_at: Instant,
    pacing_gain: u64,
    cwnd_gain: u64,
    long_term: LongTerm,
    epoch_at: Instant,
    epoch_acked: u64,
    extra_acked: [u64; 2],
    extra_rounds: u32,
    extra_index: usize,
    /// Segments delivered, and marked as lost, since the connection began.
    delivered: u64,
    delivered_at: Instant,
    lost: u64,
    /// Losses that were found at one time, and this time.
    found: (u64, Instant),
}

impl BbrLinux {
    /// Creates a control in Startup.
    pub(in crate::cc) fn new(setup: &Setup) -> Self {
        let mss = setup.mss.get().max(1);
        let mut cc = Self {
            mss,
            seed: setup.seed,
            cwnd: (setup.initial_window.get() / mss).max(1),
            prior_cwnd: 0,
            pacing: 0,
            has_seen_rtt: false,
            min_rtt: u64::MAX,
            min_rtt_stamp: 0,
            probe_rtt_done: None,
            probe_rtt_round: false,
            probe_rtt_sent: (0, 0),
            bw: WindowedMax::new(BW_ROUNDS),
            round: 0,
            next_round: 0,
            round_start: false,
            mode: Mode::Startup,
            state: State::Open,
            prev_state: State::Open,
            conserving: false,
            idle_restart: false,
            full: false,
            full_bw: 0,
            full_rounds: 0,
            phase: 0,
            phase_at: Instant::ZERO,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            long_term: LongTerm::default(),
            epoch_at: Instant::ZERO,
            epoch_acked: 0,
            extra_acked: [0; 2],
            extra_rounds: 0,
            extra_index: 0,
            delivered: 0,
            delivered_at: Instant::ZERO,
            lost: 0,
            found: (0, Instant::ZERO),
        };
        cc.init_pacing_rate_from_rtt(Span::ZERO);
        cc
    }

    fn segments(&self, bytes: Bytes) -> u64 {
        bytes.get().div_ceil(self.mss)
    }

    fn max_bw(&self) -> u64 {
        self.bw.get() as u64
    }

    fn bw(&self) -> u64 {
        if self.long_term.in_use { self.long_term.bw } else { self.max_bw() }
    }

    fn bw_to_pacing_rate(&self, bw: u64, gain: u64) -> u64 {
        let rate = u128::from(bw * self.mss * gain / BBR_UNIT) * (1_000_000 / 100 * 99);
        (rate / u128::from(BW_UNIT)) as u64
    }

    fn init_pacing_rate_from_rtt(&mut self, srtt: Span) {
        self.has_seen_rtt = srtt > Span::ZERO;
        let rtt = if self.has_seen_rtt { microseconds(srtt).max(1) } else { 1000 };
        self.pacing = self.bw_to_pacing_rate(self.cwnd * BW_UNIT / rtt, HIGH_GAIN);
    }

    fn set_pacing_rate(&mut self, bw: u64, gain: u64, srtt: Option<Span>) {
        let rate = self.bw_to_pacing_rate(bw, gain);
        if let Some(srtt) = srtt.filter(|_| !self.has_seen_rtt) {
            self.init_pacing_rate_from_rtt(srtt);
        }
        if self.full || rate > self.pacing {
            self.pacing = rate;
        }
    }

    fn tso_segs_goal(&self) -> u64 {
        let least = if self.pacing < MIN_TSO_RATE { 1 } else { 2 };
        // GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER
        ((self.pacing >> 10).min(65_536 - 1 - 320) / self.mss).max(least).min(0x7f)
    }

    fn save_cwnd(&mut self) {
        let good = self.prev_state < State::Recovery && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if good { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        if self.min_rtt == u64::MAX {
            return INITIAL_CWND;
        }
        (bw * self.min_rtt * gain / BBR_UNIT).div_ceil(BW_UNIT)
    }

    fn quantization_budget(&self, cwnd: u64) -> u64 {
        let even = (cwnd + 3 * self.tso_segs_goal() + 1) & !1;
        even + if self.mode == Mode::ProbeBw && self.phase == 0 { 2 } else { 0 }
    }

    fn inflight(&self, bw: u64, gain: u64) -> u64 {
        self.quantization_budget(self.bdp(bw, gain))
    }

    fn packets_in_net_at_edt(&self, inflight: u64, sample: &Delivered) -> u64 {
        let left_us = microseconds(sample.departs.since(sample.now));
        let departing = if self.pacing_gain > BBR_UNIT { self.tso_segs_goal() } else { 0 };
        (inflight + departing).saturating_sub(self.bw() * left_us / BW_UNIT)
    }

    fn ack_aggregation_cwnd(&self) -> u64 {
        if !self.full {
            return 0;
        }
        (self.bw() * EXTRA_ACKED_MAX_US / BW_UNIT).min(self.extra_acked[0].max(self.extra_acked[1]))
    }

    /// True if packets are conserved.
    fn set_cwnd_to_recover_or_restore(&mut self, in_flight: u64, acked: u64, losses: u64) -> bool {
        if losses > 0 {
            self.cwnd = self.cwnd.saturating_sub(losses).max(1);
        }
        if self.state == State::Recovery && self.prev_state != State::Recovery {
            self.conserving = true;
            self.next_round = self.delivered;
            self.cwnd = in_flight + acked;
        } else if self.prev_state >= State::Recovery && self.state < State::Recovery {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.conserving = false;
        }
        self.prev_state = self.state;
        if self.conserving {
            self.cwnd = self.cwnd.max(in_flight + acked);
        }
        self.conserving
    }

    fn set_cwnd(&mut self, sample: &Delivered, losses: u64) {
        let (in_flight, acked) = (self.segments(sample.in_flight), self.segments(sample.newly_acked));
        if acked > 0 && !self.set_cwnd_to_recover_or_restore(in_flight, acked, losses) {
            let target = self.bdp(self.bw(), self.cwnd_gain) + self.ack_aggregation_cwnd();
            let target = self.quantization_budget(target);
            if self.full {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || self.delivered < INITIAL_CWND {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(MIN_CWND);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_CWND);
        }
    }

    fn is_next_cycle_phase(&self, sample: &Delivered, losses: u64) -> bool {
        let full_length = microseconds(sample.now.since(self.phase_at)) > self.min_rtt;
        if self.pacing_gain == BBR_UNIT {
            return full_length;
        }
        let inflight = self.packets_in_net_at_edt(self.segments(sample.prior_in_flight), sample);
        let bw = self.max_bw();
        if self.pacing_gain > BBR_UNIT {
            return full_length && (losses > 0 || inflight >= self.inflight(bw, self.pacing_gain));
        }
        full_length || inflight <= self.inflight(bw, BBR_UNIT)
    }

    fn advance_cycle_phase(&mut self, now: Instant) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_at = now;
    }

    fn reset_probe_bw_mode(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw;
        let random = Rng::split_mix(self.seed ^ now.as_nanos()).below(CYCLE.len() as u64 - 1);
        self.phase = CYCLE.len() - 1 - random as usize;
        self.advance_cycle_phase(now);
    }

    fn reset_mode(&mut self, now: Instant) {
        if self.full {
            self.reset_probe_bw_mode(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// True if the sample counts: its interval is at least the smallest round trip time.
    fn is_valid(sample: &Delivered) -> bool {
        microseconds(sample.interval) > 0
    }

    /// `is_app_limited` of the kernel's sample: the newest segment was sent with too little to send, or in ProbeRTT.
    fn app_limited(&self, sample: &Delivered) -> bool {
        let (begun, until) = self.probe_rtt_sent;
        sample.app_limited || (until > 0 && (begun..=until).contains(&self.segments(sample.prior_delivered)))
    }

    fn update_bw(&mut self, sample: &Delivered, losses: u64) {
        self.round_start = false;
        if !Self::is_valid(sample) {
            return;
        }
        let prior = self.segments(sample.prior_delivered);
        if prior >= self.next_round {
            self.next_round = self.delivered;
            self.round += 1;
            (self.round_start, self.conserving) = (true, false);
        }
        let low = self.app_limited(sample);
        self.lt_bw_sampling(sample.now, low, losses);
        let bw = (self.delivered - prior) * BW_UNIT / microseconds(sample.interval);
        if !low || bw >= self.max_bw() {
            self.bw.update(self.round, bw as f64);
        }
    }

    fn update_ack_aggregation(&mut self, sample: &Delivered) {
        let acked = self.segments(sample.newly_acked);
        if acked == 0 || !Self::is_valid(sample) {
            return;
        }
        if self.round_start {
            self.extra_rounds = (self.extra_rounds + 1).min(0x1f);
            if self.extra_rounds >= EXTRA_ACKED_ROUNDS {
                self.extra_rounds = 0;
                self.extra_index = 1 - self.extra_index;
                self.extra_acked[self.extra_index] = 0;
            }
        }
        let mut expected = self.bw() * microseconds(sample.now.since(self.epoch_at)) / BW_UNIT;
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_RESET {
            (self.epoch_acked, self.epoch_at, expected) = (0, sample.now, 0);
        }
        self.epoch_acked = (self.epoch_acked + acked).min(EPOCH_RESET - 1);
        let extra = (self.epoch_acked - expected).min(self.cwnd);
        let largest = &mut self.extra_acked[self.extra_index];
        *largest = extra.max(*largest);
    }

    fn check_full_bw_reached(&mut self, app_limited: bool) {
        if self.full || !self.round_start || app_limited {
            return;
        }
        if self.max_bw() >= self.full_bw * FULL_BW.0 / BBR_UNIT {
            (self.full_bw, self.full_rounds) = (self.max_bw(), 0);
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_BW.1;
    }

    fn check_drain(&mut self, sample: &Delivered) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain {
            let inflight = self.packets_in_net_at_edt(self.segments(sample.in_flight), sample);
            if inflight <= self.inflight(self.max_bw(), BBR_UNIT) {
                self.reset_probe_bw_mode(sample.now);
            }
        }
    }

    fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt_done.is_some_and(|done| ticks(now) > done) {
            self.min_rtt_stamp = ticks(now);
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.reset_mode(now);
        }
    }

    fn update_min_rtt(&mut self, sample: &Delivered) {
        let now = ticks(sample.now);
        let expired = now > self.min_rtt_stamp + MIN_RTT_TICKS;
        if let Some(rtt) = sample.rtt.map(microseconds)
            && (rtt < self.min_rtt || expired)
        {
            (self.min_rtt, self.min_rtt_stamp) = (rtt, now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done = None;
            self.probe_rtt_sent.0 = self.delivered;
        }
        if self.mode == Mode::ProbeRtt {
            let in_flight = self.segments(sample.in_flight);
            self.probe_rtt_sent.1 = self.delivered + in_flight;
            if self.probe_rtt_done.is_none() && in_flight <= MIN_CWND {
                self.probe_rtt_done = Some(now + PROBE_RTT_TICKS);
                self.probe_rtt_round = false;
                self.next_round = self.delivered;
            } else if self.probe_rtt_done.is_some() {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round {
                    self.check_probe_rtt_done(sample.now);
                }
            }
        }
        self.idle_restart = false;
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.in_use => (BBR_UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (BBR_UNIT, BBR_UNIT),
        };
    }

    /// `bbr_main`.
    fn take(&mut self, sample: &Delivered) {
        self.delivered = self.segments(sample.delivered);
        self.delivered_at = sample.now;
        let losses = if self.found.1 == sample.now { self.found.0 } else { 0 };
        self.found.0 = 0;
        self.update_bw(sample, losses);
        self.update_ack_aggregation(sample);
        if self.mode == Mode::ProbeBw && self.is_next_cycle_phase(sample, losses) {
            self.advance_cycle_phase(sample.now);
        }
        self.check_full_bw_reached(self.app_limited(sample));
        self.check_drain(sample);
        self.update_min_rtt(sample);
        self.update_gains();
        self.set_pacing_rate(self.bw(), self.pacing_gain, sample.rtt);
        self.set_cwnd(sample, losses);
    }
}

impl CongestionControl for BbrLinux {
    super::super::without!(bursts, advice);

    #[inline]
    fn cwnd(&self) -> Bytes {
        Bytes::new(self.cwnd * self.mss)
    }

    /// None: BBR has no use for it.
    #[inline]
    fn ssthresh(&self) -> Bytes {
        Bytes::MAX
    }

    /// An endpoint that tells no segments: the ACK stands for the sample of what it acknowledges.
    fn on_ack(&mut self, ack: &Ack) {
        match Delivered::of(ack, Bytes::ZERO) {
            Some(sample) => self.take(&sample),
            None if ack.cwnd_limited => self.cwnd += self.segments(ack.acked).min(2),
            None => {}
        }
    }

    fn on_recovery_ack(&mut self, ack: &Ack) {
        self.on_ack(ack);
    }

    /// `bbr_ssthresh`.
    fn on_loss(&mut self, loss: &Loss) {
        self.save_cwnd();
        if !loss.ecn {
            self.state = State::Recovery;
        }
    }

    fn on_recovered(&mut self, _: Instant) {
        self.state = State::Open;
    }

    /// `tcp_enter_loss` and `bbr_set_state`.
    fn on_rto(&mut self, loss: &Loss) {
        if self.state != State::Recovery {
            self.save_cwnd(); // in recovery it was, when that began
        }
        self.cwnd = self.segments(loss.in_flight) + 1;
        (self.state, self.prev_state) = (State::Loss, State::Loss);
        (self.full_bw, self.round_start) = (0, true);
        self.lt_bw_sampling(loss.now, false, 1);
    }

    fn on_idle(&mut self, _: Instant, _: Bytes) {}

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(8 * self.pacing))
    }

    fn requirements(&self) -> Requirements {
        Requirements { own_recovery: true, segments: true, kernel: true, ..Requirements::default() }
    }

    fn on_notice(&mut self, notice: &Notice) {
        match notice {
            // `bbr_init`: the round trip time of the handshake is the first sample.
            Notice::Begin(begin) => {
                self.init_pacing_rate_from_rtt(begin.srtt);
                self.min_rtt = if self.has_seen_rtt { microseconds(begin.srtt) } else { u64::MAX };
                self.min_rtt_stamp = ticks(begin.now);
            }
            Notice::Delivered(sample) => self.take(sample),
            Notice::Lost(segment) => {
                let size = self.segments(segment.size);
                self.lost += size;
                let before = if self.found.1 == segment.now { self.found.0 } else { 0 };
                self.found = (before + size, segment.now);
            }
            // `bbr_cwnd_event` with CA_EVENT_TX_START.
            Notice::Restart(now) => {
                self.idle_restart = true;
                (self.epoch_at, self.epoch_acked) = (*now, 0);
                match self.mode {
                    Mode::ProbeBw => self.set_pacing_rate(self.bw(), BBR_UNIT, None),
                    Mode::ProbeRtt => self.check_probe_rtt_done(*now),
                    _ => {}
                }
            }
            // `bbr_undo_cwnd`.
            Notice::Spurious(_) => {
                (self.full_bw, self.full_rounds) = (0, 0);
                self.reset_lt_bw_sampling();
            }
        }
    }
}

#[cfg(test)]
mod tests;
