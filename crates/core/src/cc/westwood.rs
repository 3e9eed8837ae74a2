//! Westwood+: a loss leaves what the path carries, by an estimate of the bandwidth.
//!
//! Source: Grieco, Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion
//! control", CCR 34(2), 2004; the filter and its constants as in Linux (`tcp_westwood.c`). Windows are in segments.
//!
//! ```text
//! growth    as NewReno's
//! sample    b = bytes delivered / D, once per D >= max(RTT, min_interval = 50 ms)
//! filter    f1 = (1 - g) f1 + g b,  f2 = (1 - g) f2 + g f1,  g = 1/8;  the first sample is the value of both
//! loss      ssthresh = f2 RTT_min, two segments at least
//! timeout   ssthresh as for a loss, cwnd = 1; RTT_min is measured anew
//! ```
//!
//! At a loss which congestion did not cause (radio), `f2 RTT_min` is near the window, and the reduction is small. A
//! full buffer is drained, since RTT_min does not include its delay. Invariants: `ssthresh >= 2`. Cost: O(1).
//!
//! DIFFERENCE: without a sample of bandwidth and RTT a loss halves the flight; Linux would leave two segments. Pinned
//! by `without_a_sample_a_loss_halves_the_flight`.
//! DIFFERENCE: ACKs during recovery do not end a sample and give no RTT_min, since the endpoint reports them only to
//! controls that require rate samples; Linux measures with every ACK. The data delivered in recovery counts in the
//! sample that the first ACK after it ends. Pinned by `recovery_is_part_of_the_sample_that_ends_after_it`.
//!
//! With `compat = "linux"` the rules are those of the kernel: see `westwood/linux.rs`.

mod linux;

use super::check::{above_zero, fraction};
use super::linux::{Form, Linux, constants};
use super::window::{Window, plain_window};
use super::{Ack, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::{Compat, ConfigError};
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of Westwood+.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Part of a sample in each of the two filters of the bandwidth, g (Linux: 1/8).
    pub gain: f64,
    /// Shortest time over which a sample of the bandwidth is taken (Linux: 50 ms).
    pub min_interval: Span,
    /// Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self { gain: 0.125, min_interval: Span::from_millis(50), compat: Compat::Source }
    }
}

impl ControlConfig for Config {
    type Control = Form<Westwood, Box<Linux<linux::Westwood>>>;

    fn validate(&self) -> Result<(), ConfigError> {
        fraction("gain", self.gain)?;
        above_zero("min_interval", self.min_interval)?;
        let kernels = Self::default();
        match self.compat {
            Compat::Source => Ok(()),
            Compat::Linux => constants(&[
                ("gain", self.gain == kernels.gain),
                ("min_interval", self.min_interval == kernels.min_interval),
            ]),
        }
    }

    fn control(&self, setup: &Setup) -> Self::Control {
        Form::new(self.compat, setup, || Westwood::new(self, setup), linux::Westwood::new)
    }
}

/// The Westwood+ control of one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Westwood {
    config: Config,
    window: Window,
    /// The current sample: when it began, and the bytes delivered by then; `None` before the first ACK and after idle
    /// time.
    since: Option<(Instant, Bytes)>,
    /// f1 and f2 in bytes per second; `None` before the first sample.
    filters: Option<(f64, f64)>,
    /// RTT_min since the start or the last timeout; [`Span::MAX`] before the first sample.
    rtt_min: Span,
}

impl Westwood {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        let window = Window::new(setup);
        Self { config: *config, window, since: None, filters: None, rtt_min: Span::MAX }
    }

    /// Ends the current sample if it is long enough, and begins the next one.
    #[inline]
    fn measure(&mut self, ack: &Ack) {
        let Some((begin, delivered)) = self.since else {
            self.since = Some((ack.now, ack.delivered));
            return;
        };
        let interval = ack.now.since(begin);
        if interval >= ack.srtt.max(self.config.min_interval) {
            self.filter(ack.delivered.saturating_sub(delivered).as_f64() / interval.as_secs_f64());
            self.since = Some((ack.now, ack.delivered));
        }
    }

    /// Passes a sample in bytes per second through both low-pass filters.
    fn filter(&mut self, sample: f64) {
        let gain = self.config.gain;
        let low_pass = |old: f64, new: f64| (1.0 - gain) * old + gain * new;
        self.filters = Some(match self.filters {
            None => (sample, sample),
            Some((first, second)) => {
                let first = low_pass(first, sample);
                (first, low_pass(second, first))
            }
        });
    }

    /// Sets `ssthresh` to f2 RTT_min, or to half of the flight if one of them was not measured yet.
    fn reduce(&mut self, loss: &Loss) {
        match self.filters {
            Some((_, bandwidth)) if self.rtt_min < Span::MAX => {
                self.window.reduce_to(bandwidth * self.rtt_min.as_secs_f64() / self.window.mss);
            }
            _ => self.window.reduce(loss, 0.5),
        }
    }
}

impl CongestionControl for Westwood {
    plain_window!();
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = self.rtt_min.min(rtt);
        }
        self.measure(ack);
        self.window.grow(ack, |_| 1.0);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.reduce(loss);
    }

    fn on_recovered(&mut self, _: Instant) {
        self.window.recovered();
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.reduce(loss);
        self.window.timed_out();
        self.rtt_min = Span::MAX; // as in Linux: the path may have changed
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.window.idle(initial_window);
        self.since = None; // a sample over the idle time would be far too low
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    fn ack_at(ms: u64, delivered: u64, rtt_ms: u64) -> Ack {
        let now = Instant::ZERO + Span::from_millis(ms);
        Ack { now, delivered: delivered * MSS, ..driver::ack(MSS, rtt_ms) }
    }

    /// By hand, RTT 100 ms: from 0 to 100 ms 10 segments (100 kB/s, the value of both filters), to 200 ms 26
    /// (260 kB/s): f1 = 7/8 100 + 260/8 = 120, f2 = 7/8 100 + 120/8 = 102.5; to 350 ms, 1.5 round trips, 30
    /// (200 kB/s): f1 = 130, f2 = 105.9375. ssthresh = 105.9375 kB/s 100 ms = 10.59375 segments.
    #[test]
    fn the_filter_by_hand() {
        let mut cc = Westwood::new(&Config::default(), &driver::SETUP);
        let expected = [
            (0, 1, None),
            (50, 6, None),
            (99, 10, None),
            (100, 11, Some((100e3, 100e3))),
            (150, 24, Some((100e3, 100e3))),
            (200, 37, Some((120e3, 102.5e3))),
            (299, 40, Some((120e3, 102.5e3))),
            (350, 67, Some((130e3, 105.9375e3))),
        ];
        for (ms, delivered, filters) in expected {
            cc.on_ack(&ack_at(ms, delivered, 100));
            match (cc.filters, filters) {
                (Some((a, b)), Some((x, y))) => {
                    assert!((a - x).abs() < 1e-6 && (b - y).abs() < 1e-6, "{ms} ms: {a}, {b}");
                }
                other => assert_eq!(other, (None, None), "{ms} ms"),
            }
        }
        cc.on_loss(&driver::loss(80 * MSS));
        assert_eq!(cc.ssthresh(), Bytes::new(10_594));
    }

    /// Short round trips are measured over 50 ms: 5 segments in 50 ms are 100 kB/s, which with 10 ms is one segment.
    #[test]
    fn a_sample_takes_fifty_ms_at_least_and_two_segments_stay() {
        let mut cc = Westwood::new(&Config::default(), &driver::SETUP);
        cc.on_ack(&ack_at(0, 1, 10));
        cc.on_ack(&ack_at(49, 5, 10));
        assert_eq!(cc.filters, None);
        cc.on_ack(&ack_at(50, 6, 10));
        assert_eq!(cc.filters, Some((100e3, 100e3)));
        cc.on_loss(&driver::loss(80 * MSS));
        assert_eq!(cc.ssthresh(), 2 * MSS);
    }

    /// 400 segments/s over a path of 100 ms is 40 segments, whatever the queue made of the round trip time.
    #[test]
    fn a_full_buffer_is_drained_and_a_random_loss_costs_nothing() {
        for (rtt_ms, flight) in [(200, 80), (100, 40)] {
            let mut cc = Westwood::new(&Config::default(), &driver::SETUP);
            cc.on_ack(&ack_at(0, 1, 100));
            (1..20).for_each(|i| cc.on_ack(&ack_at(i * 500, 1 + i * 200, rtt_ms)));
            cc.on_loss(&driver::loss(flight * MSS));
            assert_eq!(cc.ssthresh(), 40 * MSS);
        }
    }

    #[test]
    fn without_a_sample_a_loss_halves_the_flight() {
        let mut cc = Westwood::new(&Config::default(), &driver::SETUP);
        cc.on_ack(&ack_at(0, 1, 100));
        cc.on_loss(&driver::loss(30 * MSS));
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (15 * MSS, 15 * MSS));
        driver::round_trip(&mut cc, 100);
        assert!((15_960..=16_000).contains(&cc.cwnd().get()), "{}", cc.cwnd());
    }

    /// A timeout may mean another path: the smallest round trip time is measured anew.
    #[test]
    fn a_timeout_forgets_the_smallest_round_trip_time() {
        let mut cc = Westwood::new(&Config::default(), &driver::SETUP);
        cc.on_ack(&ack_at(0, 1, 100));
        cc.on_ack(&ack_at(100, 41, 100));
        cc.on_rto(&driver::loss(40 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh(), cc.rtt_min), (MSS, 40 * MSS, Span::MAX));
        cc.on_rto(&driver::loss(30 * MSS));
        assert_eq!(cc.ssthresh(), 15 * MSS, "there is no RTT to multiply with");
        cc.on_ack(&ack_at(300, 42, 150));
        assert_eq!(cc.rtt_min, Span::from_millis(150));
    }

    /// 21 segments by 100 ms (the ACK at 0 has the first): 200 kB/s, and the smallest round trip time is 100 ms. Then a
    /// recovery of 300 ms, whose ACKs do not reach the control, and which have round trip times of 50 ms. The
    /// first ACK after it, at 500 ms, ends a sample of 400 ms: 81 - 21 segments are 150 kB/s. f1 = 7/8 200 + 150/8 =
    /// 193.75 kB/s.
    #[test]
    fn recovery_is_part_of_the_sample_that_ends_after_it() {
        let mut cc = Westwood::new(&Config::default(), &driver::SETUP);
        cc.on_ack(&ack_at(0, 1, 100));
        cc.on_ack(&ack_at(100, 21, 100));
        assert_eq!(cc.filters, Some((200e3, 200e3)));
        assert!(!cc.requirements().rate, "the endpoint reports ACKs in recovery only to controls that require rates");
        cc.on_loss(&driver::loss(20 * MSS));
        let before = cc.clone();
        (1..4).for_each(|i| cc.on_recovery_ack(&ack_at(100 + 100 * i, 21 + 20 * i, 50)));
        assert_eq!(cc, before);
        cc.on_recovered(Instant::ZERO);
        cc.on_ack(&ack_at(500, 81, 100));
        let (first, _) = cc.filters.expect("there were samples");
        assert!((first - 193_750.0).abs() < 1e-6, "{first}");
        assert_eq!(cc.rtt_min, Span::from_millis(100));
    }

    /// An idle time is no sample: it would read as a slow path.
    #[test]
    fn an_idle_time_is_not_measured() {
        let mut cc = Westwood::new(&Config::default(), &driver::SETUP);
        cc.on_ack(&ack_at(0, 1, 100));
        cc.on_idle(Instant::ZERO, 4 * MSS);
        cc.on_ack(&ack_at(60_000, 2, 100));
        assert_eq!((cc.filters, cc.cwnd()), (None, 5 * MSS));
    }
}
