//! A token bucket that drops what exceeds its rate (Flach et al., SIGCOMM 2016) looks like a fast path with losses. Two
//! intervals in a row, each of 4 round trips at least, ending with a loss, with 20 % lost, and at rates within an eighth
//! or 4 kbit/s of each other, tell it apart; for 48 round trips BBR then sends at that rate. As in Linux (`lt_bw`).

use super::{Ack, RateSample};
use crate::units::{Bytes, Instant};

const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// 50/256.
const LOSS: f64 = 50.0 / 256.0;
const RATIO: f64 = 1.0 / 8.0;
/// 4 kbit/s, in bytes per second.
const DIFFERENCE: f64 = 500.0;
const USE_ROUNDS: u32 = 48;

#[derive(Debug, Clone, PartialEq, Default)]
struct Interval {
    begin: Instant,
    delivered: Bytes,
    lost: Bytes,
    rounds: u32,
}

/// The detector.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Policer {
    interval: Option<Interval>,
    /// The rate of the last interval in bytes per second, or of the policer.
    last: Option<f64>,
    policed: bool,
    /// Rounds since the policer was found.
    used: u32,
}

impl Policer {
    /// The rate of the policer, if one was found.
    pub fn rate(&self) -> Option<f64> {
        self.last.filter(|_| self.policed)
    }

    /// Takes a sample; true when the rate of the policer was used for long enough and probing begins anew.
    pub fn sample(&mut self, ack: &Ack, sample: &RateSample, losses: bool, round: bool, probing: bool) -> bool {
        if self.policed {
            self.used += u32::from(probing && round);
            let over = self.used >= USE_ROUNDS;
            if over {
                *self = Self::default();
            }
            return over;
        }
        if self.interval.is_none() && losses {
            // The tokens are spent: before the first loss the rate was that of the bucket's filling.
            self.begin(ack, sample);
        }
        if let Some(interval) = &mut self.interval {
            interval.rounds += u32::from(round);
            if sample.app_limited || interval.rounds > MAX_ROUNDS {
                *self = Self::default();
            } else if losses && interval.rounds >= MIN_ROUNDS {
                self.end_interval(ack, sample);
            }
        }
        false
    }

    fn begin(&mut self, ack: &Ack, sample: &RateSample) {
        self.interval = Some(Interval { begin: ack.now, delivered: ack.delivered, lost: sample.lost, rounds: 0 });
    }

    fn end_interval(&mut self, ack: &Ack, sample: &RateSample) {
        let Some(interval) = &self.interval else { return };
        let delivered = ack.delivered.saturating_sub(interval.delivered).as_f64();
        let lost = sample.lost.saturating_sub(interval.lost).as_f64();
        let time = ack.now.since(interval.begin).as_secs_f64();
        if delivered == 0.0 || lost < LOSS * delivered || time < 1e-3 {
            return;
        }
        let rate = delivered / time;
        match self.last {
            Some(last) if (rate - last).abs() <= (RATIO * last).max(DIFFERENCE) => {
                *self = Self { interval: None, last: Some((rate + last) / 2.0), policed: true, used: 0 };
            }
            _ => {
                self.last = Some(rate);
                self.begin(ack, sample);
            }
        }
    }
}
