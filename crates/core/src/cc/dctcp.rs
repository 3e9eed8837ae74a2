//! DCTCP: a mark reduces the window in proportion to the part of the packets that were marked.
//!
//! Source: RFC 8257. Windows are in segments.
//!
//! ```text
//! once per window of data: M = bytes marked / bytes acknowledged, alpha = (1 - g) alpha + g M    §3.3 (6), (7)
//! a mark, once per window: cwnd = cwnd (1 - alpha/2)                                              §3.3 (9)
//! a loss                   ssthresh = flight / 2                                                  §3.5
//! growth                   as NewReno, by ACKs without a mark
//! ```
//!
//! Parameters: g = 1/16 (§4.2), alpha = 1 at the start (§3.3). The least window is two segments. The queue must mark
//! above a small threshold instead of dropping. The sender must learn of every mark, so the endpoint echoes marks per
//! segment ([`Requirements::accurate_ecn`]). Invariants: `0 <= alpha <= 1`; `ssthresh >= 2`. Cost: O(1).
//!
//! DIFFERENCE: the receiver acknowledges every segment, so the two states of a receiver with delayed ACKs (§3.2) are
//! not needed. Pinned by `it_wants_an_ack_per_segment_with_its_mark`.
//! DIFFERENCE: ACKs during loss recovery do not count in `alpha`; the endpoint does not report them. Pinned by
//! `acks_in_recovery_do_not_count`.

use super::check::{fraction, within};
use super::window::{Round, Window, plain_window};
use super::{Ack, CongestionControl, ControlConfig, Loss, Requirements, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of DCTCP.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// g: weight of a new measurement in alpha, the moving average of the marked part (§4.2: 1/16).
    pub g: f64,
    /// alpha before the first measurement (§3.3: 1).
    pub alpha: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { g: 1.0 / 16.0, alpha: 1.0 }
    }
}

impl ControlConfig for Config {
    type Control = Dctcp;

    fn validate(&self) -> Result<(), ConfigError> {
        fraction("g", self.g)?;
        within("alpha", self.alpha, 0.0, 1.0)
    }

    fn control(&self, setup: &Setup) -> Dctcp {
        Dctcp::new(self, setup)
    }
}

/// Moving average of the part of the acknowledged bytes that were marked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Marks {
    /// The average, from 0 to 1.
    pub alpha: f64,
    /// Weight of a new measurement.
    g: f64,
    /// Bytes acknowledged since the last average.
    acked: Bytes,
    /// Marked bytes acknowledged since the last average.
    marked: Bytes,
}

impl Marks {
    /// Creates the average with an initial value.
    pub fn new(g: f64, alpha: f64) -> Self {
        Self { alpha, g, acked: Bytes::ZERO, marked: Bytes::ZERO }
    }

    /// Counts the bytes and the marked bytes of an ACK.
    #[inline]
    pub fn count(&mut self, ack: &Ack) {
        self.acked += ack.acked;
        self.marked += ack.marked.min(ack.acked);
    }

    /// Averages what was counted since the last call (RFC 8257 §3.3 (6), (7)); without an ACK nothing changes.
    pub fn average(&mut self) {
        if self.acked > Bytes::ZERO {
            let m = self.marked.as_f64() / self.acked.as_f64();
            self.alpha = (1.0 - self.g) * self.alpha + self.g * m;
            (self.acked, self.marked) = (Bytes::ZERO, Bytes::ZERO);
        }
    }
}

/// The control of one connection: DCTCP.
#[derive(Debug, Clone, PartialEq)]
pub struct Dctcp {
    window: Window,
    marks: Marks,
    round: Round,
}

impl Dctcp {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self { window: Window::new(setup), marks: Marks::new(config.g, config.alpha), round: Round::default() }
    }

    /// Moving average of the marked part of the acknowledged bytes, from 0 to 1.
    pub fn alpha(&self) -> f64 {
        self.marks.alpha
    }
}

impl CongestionControl for Dctcp {
    plain_window!();
    without!(pacing, recovery, bursts);

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.marks.count(ack);
        if self.round.ends(ack) {
            self.marks.average();
        }
        // An ACK with a mark does not open the window.
        if ack.marked == Bytes::ZERO {
            self.window.grow(ack, |_| 1.0);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.ecn {
            // §3.3 (9)
            self.window.reduce_to(self.window.cwnd * (1.0 - self.marks.alpha / 2.0));
        } else {
            self.window.reduce(loss, 0.5);
        }
    }

    fn on_recovered(&mut self, _: Instant) {
        self.window.recovered();
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.window.time_out(loss, 0.5);
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.window.idle(initial_window);
    }

    fn requirements(&self) -> Requirements {
        Requirements { ack_per_segment: true, accurate_ecn: true, ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    fn window(cc: &mut Dctcp, segments: u64, marked: u64) {
        for i in 0..segments {
            let mark = if i < marked { MSS } else { Bytes::ZERO };
            cc.on_ack(&Ack { in_flight: segments * MSS, marked: mark, ..driver::ack(MSS, 100) });
        }
    }

    /// alpha = 15/16 alpha + M/16, from 1: without a mark 0.9375, 0.87890625; then half of the bytes marked
    /// 15/16 0.87890625 + 1/32 = 0.855224609375.
    #[test]
    fn alpha_is_the_average_by_hand() {
        let mut marks = Marks::new(1.0 / 16.0, 1.0);
        for (marked, expected) in [(0, 0.9375), (0, 0.878_906_25), (5, 0.855_224_609_375)] {
            for i in 0..10 {
                marks.count(&Ack { marked: if i < marked { MSS } else { Bytes::ZERO }, ..driver::ack(MSS, 100) });
            }
            marks.average();
            assert_eq!(marks.alpha, expected);
        }
        marks.average();
        assert_eq!(marks.alpha, 0.855_224_609_375, "nothing acknowledged tells nothing");
    }

    #[test]
    fn alpha_is_averaged_once_per_window() {
        let mut cc = Dctcp::new(&Config::default(), &driver::SETUP);
        window(&mut cc, 10, 0);
        assert_eq!(cc.alpha(), 1.0);
        window(&mut cc, 10, 0); // its first ACK is for a segment sent after the first ACK came
        assert_eq!(cc.alpha(), 0.9375);
    }

    /// The first mark finds alpha = 1 and halves; with alpha = 1/4 an eighth goes.
    #[test]
    fn a_mark_takes_half_of_alpha() {
        let mut cc = Dctcp::new(&Config::default(), &Setup { initial_window: 80 * MSS, ..driver::SETUP });
        let mark = Loss { ecn: true, ..driver::loss(80 * MSS) };
        cc.on_loss(&mark);
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (40 * MSS, 40 * MSS));
        cc.marks.alpha = 0.25;
        cc.on_loss(&mark);
        cc.on_recovered(Instant::ZERO);
        assert_eq!(cc.cwnd(), 35 * MSS);
        cc.marks.alpha = 0.0;
        cc.on_loss(&mark);
        cc.on_recovered(Instant::ZERO);
        assert_eq!(cc.cwnd(), 35 * MSS);
    }

    #[test]
    fn a_loss_halves_the_flight_whatever_alpha() {
        let mut cc = Dctcp::new(&Config::default(), &driver::SETUP);
        cc.marks.alpha = 0.0;
        cc.on_loss(&driver::loss(30 * MSS));
        cc.on_recovered(Instant::ZERO);
        assert_eq!(cc.cwnd(), 15 * MSS);
        driver::round_trip(&mut cc, 100);
        assert!((15_960..=16_000).contains(&cc.cwnd().get()), "Reno's growth: {}", cc.cwnd());
        cc.on_rto(&driver::loss(2 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (MSS, 2 * MSS));
    }

    #[test]
    fn a_marked_ack_opens_nothing() {
        let mut cc = Dctcp::new(&Config::default(), &driver::SETUP);
        window(&mut cc, 10, 10);
        assert_eq!(cc.cwnd(), 10 * MSS);
    }

    #[test]
    fn acks_in_recovery_do_not_count() {
        let mut cc = Dctcp::new(&Config::default(), &driver::SETUP);
        let before = cc.clone();
        cc.on_recovery_ack(&Ack { marked: MSS, ..driver::ack(MSS, 100) });
        assert_eq!(cc, before);
        assert!(!cc.requirements().rate, "nor is it told of them");
    }

    #[test]
    fn it_wants_an_ack_per_segment_with_its_mark() {
        let requirements = Dctcp::new(&Config::default(), &driver::SETUP).requirements();
        assert!(requirements.ack_per_segment && requirements.accurate_ecn && !requirements.ect1);
    }

    /// A step at K segments marks the last window of each sawtooth (Alizadeh et al., SIGCOMM 2010, §3.3): with BDP + K
    /// = W* alpha comes to about sqrt(2/W*), and the window swings by W* alpha/2: at W* = 200, 0.1 and 10 segments.
    #[test]
    fn behind_a_step_the_window_swings_little() {
        let mut cc = Dctcp::new(&Config::default(), &Setup { initial_window: 100 * MSS, ..driver::SETUP });
        cc.on_loss(&driver::loss(200 * MSS));
        cc.on_recovered(Instant::ZERO);
        let (mut low, mut high, mut sum) = (f64::MAX, 0f64, 0.0);
        for i in 0..4000 {
            let segments = cc.cwnd() / MSS;
            let marked = if segments >= 200 { segments } else { 0 };
            window(&mut cc, segments, marked);
            if marked > 0 {
                cc.on_loss(&Loss { ecn: true, ..driver::loss(segments * MSS) });
                cc.on_recovered(Instant::ZERO);
            }
            if i >= 2000 {
                (low, high) = (low.min(cc.window.cwnd), high.max(cc.window.cwnd));
                sum += cc.alpha();
            }
        }
        let alpha = sum / 2000.0;
        assert!((alpha / 0.1 - 1.0).abs() < 0.3, "{alpha}");
        assert!(high - low < 2.0 * 10.0 && high < 202.0, "{low} to {high}");
    }
}
