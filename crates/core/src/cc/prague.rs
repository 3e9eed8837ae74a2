//! Prague: a scalable control for L4S queues.
//!
//! Source: draft-briscoe-iccrg-prague-congestion-control, and the requirements of RFC 9331 §4.3. Windows are in
//! segments.
//!
//! ```text
//! RTT_virt = max(srtt, reference_rtt), reference_rtt = 25 ms
//! once per RTT_virt: alpha = (1 - g) alpha + g (bytes marked / bytes acknowledged), g = 1/16      as in DCTCP
//! a mark, once per round trip: cwnd = cwnd (1 - alpha/2)
//! no mark: cwnd += (srtt / RTT_virt)^2 per window of segments without a mark
//! a loss: ssthresh = flight / 2, as in Reno
//! pacing: cwnd / srtt, twice that in slow start
//! the peer has no ECN: Reno, without pacing
//! with classic_fallback, behind a queue that looks classic: alpha is raised when a mark comes
//! ```
//!
//! On paths shorter than 25 ms, growth per unit of time is that of a round trip time of 25 ms. An L4S queue adds little
//! delay, so flows of different path lengths get similar shares by this rule. Segments carry ECT(1). Before the first
//! mark alpha is 1 and is not averaged, so the first mark halves the window and ends slow start.
//!
//! Invariants: `0 <= alpha <= 1`; `ssthresh >= 2`. Cost: O(1).
//!
//! DIFFERENCE: the least window is two segments; the draft allows a fraction of a segment by pacing. Pinned by
//! `two_segments_stay`.
//! DIFFERENCE: the reduction happens at once and is not spread over the round trip. The window grows with every ACK
//! without a mark, also right after a reduction, as in the draft. Pinned by `a_mark_takes_half_of_alpha`.
//!
//!
//! `classic` tells a classic queue from an L4S queue.

mod classic;

use self::classic::Classic;
use super::check::{above_zero, fraction, within};
use super::dctcp::Marks;
use super::window::{Window, plain_window};
use super::{Ack, Advice, CongestionControl, ControlConfig, Loss, Requirements, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Instant, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of Prague.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// g: weight of a new measurement in alpha, the moving average of the marked part (1/16).
    pub g: f64,
    /// alpha until the first mark; with 1 the first mark halves the window.
    pub alpha: f64,
    /// Least RTT_virt: on shorter paths, growth per second is that of this round trip time (25 ms).
    pub reference_rtt: Span,
    /// Reduces as a classic control does at the marks of a queue that looks classic, by its delay and by how that varies.
    /// Off, as in Linux.
    pub classic_fallback: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { g: 1.0 / 16.0, alpha: 1.0, reference_rtt: Span::from_millis(25), classic_fallback: false }
    }
}

impl ControlConfig for Config {
    type Control = Prague;

    fn validate(&self) -> Result<(), ConfigError> {
        fraction("g", self.g)?;
        within("alpha", self.alpha, 0.0, 1.0)?;
        above_zero("reference_rtt", self.reference_rtt)
    }

    fn control(&self, setup: &Setup) -> Prague {
        Prague::new(self, setup)
    }
}

/// The control of one connection: Prague.
#[derive(Debug, Clone, PartialEq)]
pub struct Prague {
    config: Config,
    window: Window,
    marks: Marks,
    /// True after the first mark.
    marked: bool,
    /// When alpha was last averaged.
    averaged: Instant,
    /// Smoothed round trip time at the last ACK; zero before the first.
    srtt: Span,
    /// What tells a classic queue; `None` if nobody asks.
    classic: Option<Classic>,
    /// The peer has no ECN.
    without_ecn: bool,
}

impl Prague {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self {
            config: *config,
            window: Window::new(setup),
            marks: Marks::new(config.g, config.alpha),
            marked: false,
            averaged: Instant::ZERO,
            srtt: Span::ZERO,
            classic: config.classic_fallback.then(Classic::default),
            without_ecn: false,
        }
    }

    /// Moving average of the marked part of the acknowledged bytes, from 0 to 1.
    pub fn alpha(&self) -> f64 {
        self.marks.alpha
    }

    /// How much the bottleneck looks like a classic queue, from 0 (L4S) to 1; 0 without
    /// [`Config::classic_fallback`].
    pub fn classic(&self) -> f64 {
        self.classic.as_ref().map_or(0.0, Classic::degree)
    }

    /// The part of the window that a mark takes, twice.
    fn response(&self) -> f64 {
        self.classic.as_ref().map_or(self.marks.alpha, |classic| classic.raised(self.marks.alpha))
    }

    /// Counts the marks of an ACK, and averages alpha once per `period` after the first mark.
    #[inline]
    fn average(&mut self, ack: &Ack, period: Span) {
        if let Some(classic) = &mut self.classic {
            classic.measure(ack);
        }
        self.marked |= ack.marked > Bytes::ZERO;
        if !self.marked {
            return;
        }
        self.marks.count(ack);
        if ack.now.since(self.averaged) >= period {
            self.averaged = ack.now;
            self.marks.average();
            if let Some(classic) = &mut self.classic {
                classic.judge(ack.min_rtt);
            }
        }
    }
}

impl CongestionControl for Prague {
    plain_window!(read);
    without!(recovery, bursts);

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if self.without_ecn {
            self.window.grow(ack, |_| 1.0);
            return;
        }
        self.srtt = ack.srtt;
        let virt = ack.srtt.max(self.config.reference_rtt);
        self.average(ack, virt);
        if ack.marked == Bytes::ZERO {
            // Short paths grow by (srtt / RTT_virt)^2 per window, as much per second as a path of RTT_virt.
            let ratio = ack.srtt.as_nanos() as f64 / virt.as_nanos() as f64;
            self.window.grow(ack, |_| ratio * ratio);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if let Some(classic) = &mut self.classic {
            classic.adapt(self.window.ssthresh);
        }
        if loss.ecn {
            if !self.marked {
                (self.marked, self.averaged) = (true, loss.now);
            }
            self.window.reduce_to(self.window.cwnd * (1.0 - self.response() / 2.0));
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

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        if self.srtt == Span::ZERO {
            return None;
        }
        let gain = if self.window.in_slow_start() { 2.0 } else { 1.0 };
        let bits = gain * self.window.cwnd * self.window.mss * 8.0;
        Some(Rate::from_bps((bits / self.srtt.as_secs_f64()) as u64))
    }

    fn advise(&mut self, advice: Advice) {
        self.without_ecn |= advice == Advice::WithoutEcn;
        self.window.adopt(advice);
    }

    fn requirements(&self) -> Requirements {
        Requirements { ack_per_segment: true, accurate_ecn: true, ect1: true, ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    fn marked_ack_at(ms: u64, rtt_ms: u64) -> Ack {
        Ack { now: Instant::ZERO + Span::from_millis(ms), marked: MSS, ..driver::ack(MSS, rtt_ms) }
    }

    fn avoiding(segments: u64) -> Prague {
        let mut cc = Prague::new(&Config::default(), &driver::SETUP);
        cc.on_loss(&driver::loss(2 * segments * MSS));
        cc.on_recovered(Instant::ZERO);
        cc
    }

    /// One segment per round trip from 25 ms on; at 5 ms (5/25)^2 = 0.04, which per second is as much.
    #[test]
    fn growth_per_second_is_that_of_25_ms() {
        for (rtt_ms, growth) in [(5, 0.04), (12, 0.2304), (25, 1.0), (100, 1.0)] {
            let mut cc = avoiding(40);
            cc.on_ack(&driver::ack(MSS, rtt_ms));
            assert!(((cc.window.cwnd - 40.0) * 40.0 - growth).abs() < 1e-9, "{rtt_ms} ms: {}", cc.window.cwnd);
        }
    }

    #[test]
    fn a_mark_takes_half_of_alpha() {
        let mut cc = Prague::new(&Config::default(), &Setup { initial_window: 80 * MSS, ..driver::SETUP });
        let mark = Loss { ecn: true, ..driver::loss(80 * MSS) };
        cc.on_loss(&mark);
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (40 * MSS, 40 * MSS), "the first mark halves");
        cc.marks.alpha = 0.25;
        cc.on_loss(&mark);
        cc.on_recovered(Instant::ZERO);
        assert_eq!(cc.cwnd(), 35 * MSS);
    }

    /// alpha stays 1 until a mark comes; then it is averaged every 25 ms at a round trip of 5 ms: all marked keeps it,
    /// none takes a sixteenth.
    #[test]
    fn alpha_is_averaged_per_virtual_round_trip_once_a_mark_came() {
        let mut cc = Prague::new(&Config::default(), &driver::SETUP);
        (0..100).for_each(|i| cc.on_ack(&Ack { marked: Bytes::ZERO, ..marked_ack_at(i, 5) }));
        assert_eq!(cc.alpha(), 1.0);
        cc.on_loss(&Loss { ecn: true, now: Instant::ZERO + Span::from_millis(100), in_flight: 10 * MSS });
        cc.on_ack(&marked_ack_at(100, 5));
        cc.on_ack(&Ack { marked: Bytes::ZERO, ..marked_ack_at(124, 5) });
        assert_eq!(cc.alpha(), 1.0);
        cc.on_ack(&Ack { marked: Bytes::ZERO, ..marked_ack_at(125, 5) });
        assert_eq!(cc.alpha(), 15.0 / 16.0 + 1.0 / 48.0, "one of three was marked");
        cc.on_ack(&Ack { marked: Bytes::ZERO, ..marked_ack_at(150, 5) });
        assert_eq!(cc.alpha(), (15.0 / 16.0 + 1.0 / 48.0) * 15.0 / 16.0);
    }

    /// 10 segments of 1000 bytes per 100 ms are 800 kbit/s; twice that while slow start doubles.
    #[test]
    fn it_paces_a_window_per_round_trip() {
        let mut cc = avoiding(10);
        assert_eq!(cc.pacing_rate(), None);
        cc.on_ack(&Ack { cwnd_limited: false, ..driver::ack(MSS, 100) });
        assert_eq!(cc.pacing_rate(), Some(Rate::from_bps(800_000)));
        let mut cc = Prague::new(&Config::default(), &driver::SETUP);
        cc.on_ack(&Ack { cwnd_limited: false, ..driver::ack(MSS, 100) });
        assert_eq!(cc.pacing_rate(), Some(Rate::from_bps(1_600_000)));
    }

    #[test]
    fn two_segments_stay() {
        let mut cc = Prague::new(&Config::default(), &Setup { initial_window: 2 * MSS, ..driver::SETUP });
        cc.on_loss(&Loss { ecn: true, ..driver::loss(2 * MSS) });
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (2 * MSS, 2 * MSS));
        cc.on_rto(&driver::loss(2 * MSS));
        assert_eq!(cc.cwnd(), MSS);
    }

    #[test]
    fn it_wants_ect1_and_marks_told_per_segment() {
        let requirements = Prague::new(&Config::default(), &driver::SETUP).requirements();
        assert!(requirements.ack_per_segment && requirements.accurate_ecn && requirements.ect1 && !requirements.rate);
    }

    /// 5 ms after 25 ms would be (5/25)^2 per window; Reno adds a segment.
    #[test]
    fn without_ecn_it_is_reno() {
        let mut cc = avoiding(40);
        cc.advise(Advice::WithoutEcn);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (40 * MSS, 40 * MSS), "nothing else is advised");
        cc.on_ack(&driver::ack(MSS, 5));
        assert!(((cc.window.cwnd - 40.0) * 40.0 - 1.0).abs() < 1e-9, "{}", cc.window.cwnd);
        assert_eq!(cc.pacing_rate(), None);
        cc.on_loss(&driver::loss(40 * MSS));
        assert_eq!(cc.ssthresh(), 20 * MSS);
    }

    /// Round trips of 10 to 26 ms at random: mdev comes to some milliseconds, above 750 us, so after some rounds a mark
    /// takes 0.625/2 of the window though hardly any segment is marked. At 10.0 to 10.2 ms alpha alone decides.
    #[test]
    fn a_queue_that_varies_is_classic_if_somebody_asks() {
        let reduced = |classic_fallback: bool, spread_us: u64| {
            let config = Config { classic_fallback, ..Config::default() };
            let mut cc = Prague::new(&config, &Setup { initial_window: 80 * MSS, ..driver::SETUP });
            (0..2).for_each(|_| cc.on_loss(&Loss { ecn: true, ..driver::loss(80 * MSS) }));
            cc.on_recovered(Instant::ZERO);
            (0..4000).for_each(|i| {
                let rtt = Span::from_micros(10_000 + i * 7919 % spread_us);
                let ack = marked_ack_at(i, 10);
                cc.on_ack(&Ack { marked: Bytes::ZERO, rtt: Some(rtt), min_rtt: Span::from_millis(10), ..ack });
            });
            let window = cc.window.cwnd;
            cc.on_loss(&Loss { ecn: true, ..driver::loss(80 * MSS) });
            (cc.classic(), 2.0 * (1.0 - cc.window.ssthresh / window))
        };
        let (degree, part) = reduced(true, 16_000);
        assert!(degree == 1.0 && (part - 0.625).abs() < 1e-9, "{degree}, {part}");
        for (asked, spread_us) in [(true, 200), (false, 16_000)] {
            let (degree, part) = reduced(asked, spread_us);
            assert!(degree == 0.0 && part < 0.01, "{asked}: {degree}, {part}");
        }
    }
}
