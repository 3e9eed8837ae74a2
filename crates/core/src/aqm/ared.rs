//! Adaptive RED: RED that keeps its average queue in the middle of its thresholds by adapting max_p.
//!
//! Source: Floyd, Gummadi, Shenker, "Adaptive RED: an algorithm for increasing the robustness of RED's active queue
//! management", 2001, §3 and Figure 2; automatic parameters §3.3.
//!
//! ```text
//! every 0.5 s:  avg > min + 0.6 (max - min), max_p <= 0.5:   max_p += min(0.01, max_p / 4)
//!               avg < min + 0.4 (max - min), max_p >= 0.01:  max_p *= 0.9
//! min = max(5, target C / 2), max = 3 min, w = 1 - exp(-1 / C)    C the link's rate in mean packets per second
//! ```
//!
//! All else is RED in packets, in its gentle form, with the current max_p in both slopes.
//!
//! DIFFERENCE: whether 0.5 s have passed is checked at arrivals, as in ns-2, and not by a timer: max_p matters only to
//! arrivals. Pinned by `max_p_moves_once_in_half_a_second`.
//! DIFFERENCE: ns-2 and ns-3 keep the initial max_p in the gentle slope, so their probability jumps at `max` once max_p
//! has moved; here the probability is continuous. Pinned by `the_probability_is_continuous_at_the_threshold`. With
//! `gentle_slope = "initial"` it is theirs. Pinned by `the_slope_of_the_simulators_begins_at_the_initial_probability`.

use super::red::{self, Red};
use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figure 2: above this value max_p does not grow.
const TOP: f64 = 0.5;
/// Figure 2: below this value max_p does not shrink.
const BOTTOM: f64 = 0.01;
/// Figure 2: largest step by which max_p grows; the step is at most a quarter of max_p.
const ALPHA: f64 = 0.01;
/// Figure 2: factor by which max_p shrinks.
const BETA: f64 = 0.9;
/// §3.3: least value of the lower threshold, in packets.
const LEAST_MIN_THRESHOLD: f64 = 5.0;

/// Parameters of Adaptive RED. Thresholds and weight follow from the link (§3.3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Target mean queueing delay, which determines the thresholds (ns-2: 5ms).
    pub target: Span,
    /// Time between adaptations of max_p (§3: 500ms).
    pub interval: Span,
    /// Initial value of max_p, 0.01 to 0.5 (1997 note on RED: 0.1).
    pub max_probability: f64,
    /// Mean packet size, which converts the rate of the link to packets per second.
    pub mean_packet: Bytes,
    /// Mark ECN-capable packets instead of dropping them early.
    pub ecn: bool,
    /// Space drops at least 1/pb apart, as ns-2 and ns-3 do by default.
    pub wait: bool,
    /// The max_p at which the slope above the upper threshold begins: the "current" one, or the "initial" one as in ns-2
    /// and ns-3.
    pub gentle_slope: GentleSlope,
    /// Number of packets that wait at least where one is dropped (as in red); 2 in ns-2 and ns-3.
    pub least_waiting: u64,
}

/// The max_p at which the slope above the upper threshold begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GentleSlope {
    /// The current one, so that the probability is continuous.
    #[default]
    Current,
    /// The first one, as ns-2 and ns-3 compute it once.
    Initial,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(500),
            max_probability: 0.1,
            mean_packet: Bytes::new(1000),
            ecn: false,
            wait: false,
            gentle_slope: GentleSlope::Current,
            least_waiting: 0,
        }
    }
}

impl AqmConfig for Config {
    type Aqm = Ared;

    fn validate(&self) -> Result<(), ConfigError> {
        if self.target == Span::ZERO {
            return Err(ConfigError::new("target", "must be above 0"));
        }
        if self.interval == Span::ZERO {
            return Err(ConfigError::new("interval", "must be above 0"));
        }
        if !(BOTTOM..=TOP).contains(&self.max_probability) {
            return Err(ConfigError::new("max_probability", format!("must be within {BOTTOM} and {TOP}")));
        }
        if self.mean_packet == Bytes::ZERO {
            return Err(ConfigError::new("mean_packet", "must be above 0B"));
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> Ared {
        Ared::new(self, link)
    }
}

/// The state of Adaptive RED: a RED, and when its max_p was last adapted.
#[derive(Debug, Clone, PartialEq)]
pub struct Ared {
    red: Red,
    /// Lower end of the target range of the average, in packets.
    low: f64,
    /// Upper end of the target range of the average, in packets.
    high: f64,
    interval: Span,
    /// Time of the last adaptation of max_p.
    adapted: Instant,
}

impl Ared {
    /// Creates the state of an empty, idle queue, with thresholds and weight that follow from the link (§3.3).
    pub fn new(config: &Config, link: &LinkFacts) -> Self {
        let c = link.rate.bytes_per_sec() / config.mean_packet.get() as f64;
        let min = (config.target.as_secs_f64() * c / 2.0).max(LEAST_MIN_THRESHOLD);
        let max = 3.0 * min;
        let base = red::Config {
            max_probability: config.max_probability,
            weight: 1.0 - libm::exp(-1.0 / c),
            mean_packet: config.mean_packet,
            ecn: config.ecn,
            wait: config.wait,
            least_waiting: config.least_waiting,
            ..red::Config::default()
        };
        let mut red = Red::new(&base, link);
        if config.gentle_slope == GentleSlope::Initial {
            red = red.with_slope_from(config.max_probability);
        }
        red.set_thresholds(min, max);
        let part = 0.4 * (max - min);
        Self { red, low: min + part, high: max - part, interval: config.interval, adapted: Instant::ZERO }
    }

    /// Moves max_p once (Figure 2): additive increase, multiplicative decrease.
    fn adapt(&mut self) {
        let avg = self.red.average();
        let max_p = self.red.max_p_mut();
        if avg > self.high && *max_p <= TOP {
            *max_p += ALPHA.min(*max_p / 4.0);
        } else if avg < self.low && *max_p >= BOTTOM {
            *max_p *= BETA;
        }
    }
}

impl Aqm for Ared {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        if now.since(self.adapted) >= self.interval {
            self.adapted = now;
            self.adapt();
        }
        self.red.on_enqueue(packet, backlog, now, rng)
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.red.on_dequeue(packet, sojourn, backlog, now, rng)
    }

    fn was_forced(&self) -> bool {
        self.red.was_forced()
    }

    fn on_overflow(&mut self, now: Instant) {
        self.red.on_overflow(now);
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl AckPath for Ared {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use crate::units::{Limit, Rate};

    fn ared(rate_bps: u64) -> Ared {
        Ared::new(&Config::default(), &LinkFacts { rate: Rate::from_bps(rate_bps), limit: Limit::Packets(10_000) })
    }

    /// Feeds a constant queue for `ms`, one packet per millisecond, from `from`.
    fn feed(ared: &mut Ared, queued: u64, from: u64, ms: u64) {
        let (mut rng, packet) =
            (Streams::new(1).get("t"), Meta { size: Bytes::new(1000), ecn: Ecn::NotEct, flow: FlowId(0) });
        for t in from..from + ms {
            let backlog = Backlog { packets: queued, bytes: queued * 1000 };
            ared.on_enqueue(&packet, backlog, Instant::ZERO + Span::from_millis(t), &mut rng);
        }
    }

    #[test]
    fn thresholds_follow_the_target_delay() {
        // 10 Mbit/s: 1250 packets/s; 5 ms of them are 6.25, half of it is below the least threshold of 5.
        let slow = ared(10_000_000);
        assert!((slow.low - 9.0).abs() < 1e-9 && (slow.high - 11.0).abs() < 1e-9);
        // 1 Gbit/s: 125,000 packets/s, min = 312.5, max = 937.5, zone 562.5 to 687.5.
        let fast = ared(1_000_000_000);
        assert!((fast.low - 562.5).abs() < 1e-9 && (fast.high - 687.5).abs() < 1e-9);
    }

    #[test]
    fn max_p_moves_once_in_half_a_second() {
        let mut ared = ared(1_000_000);
        feed(&mut ared, 14, 0, 2000); // C = 125/s: the average is 14 after a few tens of packets
        // Adapted at 500, 1000 and 1500 ms: three steps of 0.01 from 0.1.
        assert!((*ared.red.max_p_mut() - 0.13).abs() < 1e-12);
        feed(&mut ared, 0, 2000, 1001); // at 2000 once more up, then the average is gone: at 2500 and 3000 down
        assert!((*ared.red.max_p_mut() - 0.14 * 0.81).abs() < 1e-12);
    }

    #[test]
    fn max_p_stays_within_its_range() {
        let mut ared = ared(1_000_000);
        feed(&mut ared, 14, 0, 100_000);
        assert!((TOP..=TOP + ALPHA).contains(ared.red.max_p_mut()));
        feed(&mut ared, 0, 100_000, 100_000);
        assert!((BOTTOM * BETA..=BOTTOM).contains(ared.red.max_p_mut()));
    }

    #[test]
    fn the_probability_is_continuous_at_the_threshold() {
        let mut ared = ared(1_000_000);
        feed(&mut ared, 14, 0, 5000);
        let max_p = *ared.red.max_p_mut();
        assert!(max_p > 0.15);
        let below = ared.red.probability_at(15.0 - 1e-9);
        let above = ared.red.probability_at(15.0 + 1e-9);
        assert!((below - max_p).abs() < 1e-6 && (above - max_p).abs() < 1e-6, "{below} and {above}, not {max_p}");
    }

    /// max_p rises from 0.1 in steps of 0.01; the slope between 15 and 30 packets is at 0.1 + 0.9 (22.5 - 15) / 15 = 0.55
    /// in its middle all the while, and jumps down to 0.1 at its beginning.
    #[test]
    fn the_slope_of_the_simulators_begins_at_the_initial_probability() {
        let link = LinkFacts { rate: Rate::from_bps(1_000_000), limit: Limit::Packets(10_000) };
        let mut ared = Ared::new(&Config { gentle_slope: GentleSlope::Initial, ..Config::default() }, &link);
        feed(&mut ared, 14, 0, 5000);
        let max_p = *ared.red.max_p_mut();
        assert!(max_p > 0.15);
        assert!((ared.red.probability_at(22.5) - 0.55).abs() < 1e-12);
        let (below, above) = (ared.red.probability_at(15.0 - 1e-9), ared.red.probability_at(15.0));
        assert!((below - max_p).abs() < 1e-6 && (above - 0.1).abs() < 1e-12, "{below} and {above}");
    }

    /// The average stands at 10 of 5 to 15 packets, in the middle, where max_p does not move: pb = 0.05. With `wait` gaps
    /// are uniform in 1/pb..2/pb - 1, whose mean is 29.5; else in 1..1/pb - 1, whose mean is 10.
    #[test]
    fn with_wait_no_two_drops_are_near() {
        for (wait, shortest, mean) in [(true, 20, 29.5), (false, 1, 10.0)] {
            let link = LinkFacts { rate: Rate::from_bps(8000), limit: Limit::Packets(1000) };
            let mut ared = Ared::new(&Config { wait, ..Config::default() }, &link);
            let packet = Meta { size: Bytes::new(1000), ecn: Ecn::NotEct, flow: FlowId(0) };
            let (mut rng, mut gap, mut gaps) = (Streams::new(1).get("t"), 0, Vec::new());
            for ms in 0..200_000 {
                let (backlog, now) = (Backlog { packets: 10, bytes: 10_000 }, Instant::ZERO + Span::from_millis(ms));
                gap += 1;
                if ared.on_enqueue(&packet, backlog, now, &mut rng) == Verdict::Drop {
                    gaps.push(std::mem::take(&mut gap));
                }
            }
            let settled = &gaps[20..];
            let seen = f64::from(settled.iter().sum::<i32>()) / settled.len() as f64;
            // A rounding error of the average may push the end of the forbidden range by one packet.
            assert!(settled.iter().min().is_some_and(|gap| (shortest..=shortest + 1).contains(gap)), "wait = {wait}");
            assert!((seen / mean - 1.0).abs() < 0.05, "wait = {wait}: a mean gap of {seen}, {mean} by theory");
        }
    }

    /// The automatic weight is 1 - exp(-1/C) for C packets per second: the average forgets in a second. At 1 Gbit/s C is
    /// 125,000, so that the first of 1000 waiting packets counts 1000 / 125000 to six digits.
    #[test]
    fn the_weight_is_that_of_a_second() {
        let mut ared = ared(1_000_000_000);
        feed(&mut ared, 1000, 0, 2); // the first finds the link idle
        assert!((ared.red.average() - 0.008).abs() < 1e-7, "{}", ared.red.average());
    }
}
