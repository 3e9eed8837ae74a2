//! Detection of policers. A policer is a token bucket that drops packets above its rate (Flach et al., SIGCOMM 2016);
//! BBR would take it for a fast path with losses. Two consecutive intervals identify a policer if each has at least 4
//! round trips, ends with a loss and lost 20 %, and if their rates differ by at most an eighth or 4 kbit/s. BBR then
//! sends at that rate for 48 round trips. As in Linux (`lt_bw`).

use super::{Ack, RateSample};
use crate::units::{Bytes, Instant};

/// Least round trips of an interval.
const MIN_ROUNDS: u32 = 4;
/// Most round trips of an interval; a longer one is dropped.
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// Least loss of an interval, as a part of the bytes delivered (Linux: 50/256).
const LOSS: f64 = 50.0 / 256.0;
/// Largest difference of two rates as a part of the first.
const RATIO: f64 = 1.0 / 8.0;
/// Difference of two rates that is always allowed: 4 kbit/s, in bytes per second.
const DIFFERENCE: f64 = 500.0;
/// Number of round trips for which BBR sends at the rate of a policer which it has found.
const USE_ROUNDS: u32 = 48;

/// An interval being measured.
#[derive(Debug, Clone, PartialEq, Default)]
struct Interval {
    begin: Instant,
    /// [`Ack::delivered`] at its beginning.
    delivered: Bytes,
    /// [`RateSample::lost`] at its beginning.
    lost: Bytes,
    /// Round trips since its beginning.
    rounds: u32,
}

/// The detector of one connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Policer {
    interval: Option<Interval>,
    /// Rate of the last interval, or of the policer if one was found, in bytes per second.
    last: Option<f64>,
    /// A policer was found.
    policed: bool,
    /// Round trips of ProbeBW since the policer was found.
    used: u32,
}

impl Policer {
    /// Rate of the policer in bytes per second, if one was found.
    pub fn rate(&self) -> Option<f64> {
        self.last.filter(|_| self.policed)
    }

    /// Takes a sample. True when the rate of the policer was used for long enough, and probing begins again.
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
            // The bucket is empty now. Before the first loss the rate was above that of the tokens.
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

    /// Begins an interval.
    fn begin(&mut self, ack: &Ack, sample: &RateSample) {
        self.interval = Some(Interval { begin: ack.now, delivered: ack.delivered, lost: sample.lost, rounds: 0 });
    }

    /// Ends an interval with enough losses: a second one with the same rate identifies a policer.
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
