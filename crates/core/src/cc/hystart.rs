//! HyStart++: slow start that ends when round trip times rise, before the queue is full.
//!
//! Source: RFC 9406. An option of CUBIC for its first slow start.
//!
//! ```text
//! a round ends when the flight at its first ACK and as much as that ACK covered are acknowledged   §4.2
//! RttThresh = lastRoundMinRTT / 8, within 4 ms and 16 ms
//! slow start: cwnd += min(N, L SMSS);  with 8 samples in this round
//!   currentRoundMinRTT >= lastRoundMinRTT + RttThresh: enter CSS, cssBaselineMinRtt = currentRoundMinRTT
//! conservative slow start (CSS): cwnd += min(N, L SMSS) / 4;  with 8 samples in this round
//!   currentRoundMinRTT < cssBaselineMinRtt: back to slow start
//!   5 rounds: ssthresh = cwnd
//! ```
//!
//! The round in which CSS begins is the first of the five. Constants: §4.3; L = 8, the value for a sender without
//! pacing. Cost: O(1).

use super::Ack;
use super::window::Round;
use crate::units::Span;

// Constants of RFC 9406 §4.3, with its names.
const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;
/// Segments by which one ACK may open the window.
const L: f64 = 8.0;

/// State of conservative slow start (CSS).
#[derive(Debug, Clone, PartialEq)]
struct Css {
    /// cssBaselineMinRtt.
    baseline: Span,
    /// Rounds completed in CSS.
    rounds: u32,
}

/// State of HyStart++ for one connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HyStart {
    round: Round,
    /// lastRoundMinRTT; [`Span::MAX`] before the end of the first round.
    last_min: Span,
    /// currentRoundMinRTT; [`Span::MAX`] before the first sample of the round.
    current_min: Span,
    /// Samples of the round trip time in this round: rttSampleCount.
    samples: u32,
    /// Set in conservative slow start.
    css: Option<Css>,
}

/// RttThresh, the rise of the round trip time that ends slow start (RFC 9406 §4.2).
fn threshold(last_min: Span) -> Span {
    last_min.div(MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

impl HyStart {
    /// Creates the state at the beginning of slow start.
    pub fn new() -> Self {
        Self { round: Round::default(), last_min: Span::MAX, current_min: Span::MAX, samples: 0, css: None }
    }

    /// Takes an ACK in slow start. Returns the segments by which the window opens, or `None` when slow start is over.
    pub fn on_ack(&mut self, ack: &Ack, segments_acked: f64) -> Option<f64> {
        if self.round.ends(ack) && self.end_round() {
            return None;
        }
        if let Some(rtt) = ack.rtt {
            self.current_min = self.current_min.min(rtt);
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE {
            self.judge();
        }
        let opened = segments_acked.min(L);
        Some(if self.css.is_some() { opened / CSS_GROWTH_DIVISOR } else { opened })
    }

    /// Begins a new round. True if the round that ended was the last of conservative slow start.
    fn end_round(&mut self) -> bool {
        (self.last_min, self.current_min, self.samples) = (self.current_min, Span::MAX, 0);
        let Some(css) = &mut self.css else { return false };
        css.rounds += 1;
        css.rounds >= CSS_ROUNDS
    }

    /// Enters CSS when the round trip time rose by RttThresh, and leaves it when the rise turns out to be spurious.
    fn judge(&mut self) {
        match &self.css {
            None if self.last_min < Span::MAX && self.current_min >= self.last_min + threshold(self.last_min) => {
                self.css = Some(Css { baseline: self.current_min, rounds: 0 });
            }
            Some(css) if self.current_min < css.baseline => self.css = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    /// A round of `segments` ACKs with the same round trip time: the segments by which each opened the window.
    fn round(hystart: &mut HyStart, segments: u64, rtt_ms: u64) -> Vec<Option<f64>> {
        let ack = Ack { in_flight: segments * MSS, ..driver::ack(MSS, rtt_ms) };
        (0..segments).map(|_| hystart.on_ack(&ack, 1.0)).collect()
    }

    #[test]
    fn the_threshold_is_an_eighth_within_4_and_16_ms() {
        for (rtt, expected) in [(8, 4), (40, 5), (80, 10), (128, 16), (600, 16)] {
            assert_eq!(threshold(MS(rtt)), MS(expected), "{rtt} ms");
        }
    }

    /// 80 ms, then 90: an eighth more. Seven samples are too few, the eighth begins conservative slow start.
    #[test]
    fn a_rise_by_an_eighth_slows_it_down_after_eight_samples() {
        let mut hystart = HyStart::new();
        assert_eq!(round(&mut hystart, 10, 80), [Some(1.0); 10]);
        let mut expected = vec![Some(1.0); 7];
        expected.extend([Some(0.25); 3]);
        assert_eq!(round(&mut hystart, 10, 90), expected);
        let mut steady = HyStart::new();
        round(&mut steady, 10, 80);
        assert_eq!(round(&mut steady, 10, 89), [Some(1.0); 10], "9 ms are not an eighth");
    }

    #[test]
    fn a_fall_below_the_baseline_returns_to_slow_start() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 10, 80);
        round(&mut hystart, 10, 90);
        let back = round(&mut hystart, 10, 89);
        assert_eq!((back[6], back[7]), (Some(0.25), Some(1.0)));
    }

    /// The first ACK after five rounds ends slow start.
    #[test]
    fn five_rounds_of_conservative_slow_start_end_it() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 10, 80);
        round(&mut hystart, 10, 90);
        for _ in 0..4 {
            assert!(round(&mut hystart, 10, 90).iter().all(|opened| *opened == Some(0.25)));
        }
        assert_eq!(round(&mut hystart, 10, 90)[0], None);
    }

    #[test]
    fn one_ack_opens_by_eight_segments_at_most() {
        let mut hystart = HyStart::new();
        assert_eq!(hystart.on_ack(&driver::ack(20 * MSS, 80), 20.0), Some(8.0));
    }

    /// Few samples per round, or none: slow start goes on.
    #[test]
    fn small_windows_are_not_judged() {
        let mut hystart = HyStart::new();
        for rtt in [80, 120, 200, 400] {
            assert_eq!(round(&mut hystart, 7, rtt), [Some(1.0); 7]);
        }
    }
}
