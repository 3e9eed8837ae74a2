//! The long-term estimate of the rate, which detects policers (`bbr_lt_bw_sampling` and what it calls).

use super::{BBR_UNIT, BW_UNIT, BbrLinux, Mode, ticks};
use crate::units::Instant;

const LT_MIN_ROUNDS: u32 = 4;
const LT_LOSS: u64 = 50;
const LT_RATIO: u64 = BBR_UNIT / 8;
const LT_DIFFERENCE: u64 = 4000 / 8;
const LT_MAX_ROUNDS: u32 = 48;

/// The long-term estimate, which detects policers (`lt_*`).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct LongTerm {
    pub(super) sampling: bool,
    pub(super) rounds: u32,
    pub(super) in_use: bool,
    pub(super) bw: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Milliseconds.
    pub(super) stamp: u64,
}

impl BbrLinux {
    fn reset_lt_bw_sampling_interval(&mut self) {
        let lt = &mut self.long_term;
        (lt.stamp, lt.delivered) = (ticks(self.delivered_at), self.delivered);
        (lt.lost, lt.rounds) = (self.lost, 0);
    }

    pub(super) fn reset_lt_bw_sampling(&mut self) {
        self.long_term = LongTerm::default();
        self.reset_lt_bw_sampling_interval();
    }

    fn lt_bw_interval_done(&mut self, bw: u64) {
        let last = self.long_term.bw;
        if last > 0 {
            let difference = bw.abs_diff(last);
            if difference * BBR_UNIT <= LT_RATIO * last || self.bw_to_pacing_rate(difference, BBR_UNIT) <= LT_DIFFERENCE
            {
                let lt = &mut self.long_term;
                (lt.bw, lt.in_use, lt.rounds) = (u64::midpoint(bw, last), true, 0);
                self.pacing_gain = BBR_UNIT;
                return;
            }
        }
        self.long_term.bw = bw;
        self.reset_lt_bw_sampling_interval();
    }

    pub(super) fn lt_bw_sampling(&mut self, now: Instant, app_limited: bool, losses: u64) {
        if self.long_term.in_use {
            if self.mode == Mode::ProbeBw && self.round_start {
                self.long_term.rounds += 1;
                if self.long_term.rounds >= LT_MAX_ROUNDS {
                    self.reset_lt_bw_sampling();
                    self.reset_probe_bw_mode(now);
                }
            }
            return;
        }
        if !self.long_term.sampling {
            if losses == 0 {
                return;
            }
            self.reset_lt_bw_sampling_interval();
            self.long_term.sampling = true;
        }
        if app_limited {
            self.reset_lt_bw_sampling();
            return;
        }
        self.long_term.rounds += u32::from(self.round_start);
        if self.long_term.rounds < LT_MIN_ROUNDS {
            return;
        }
        if self.long_term.rounds > 4 * LT_MIN_ROUNDS {
            self.reset_lt_bw_sampling();
            return;
        }
        if losses > 0 {
            self.end_lt_bw_interval();
        }
    }

    /// Ends an interval with a loss, if enough was lost in it.
    fn end_lt_bw_interval(&mut self) {
        let lost = self.lost - self.long_term.lost;
        let delivered = self.delivered - self.long_term.delivered;
        if delivered == 0 || (lost << 8) < LT_LOSS * delivered {
            return;
        }
        let time = ticks(self.delivered_at).saturating_sub(self.long_term.stamp);
        if time >= 1 {
            self.lt_bw_interval_done(delivered * BW_UNIT / (1000 * time));
        }
    }
}
