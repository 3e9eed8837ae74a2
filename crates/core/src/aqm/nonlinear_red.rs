//! Nonlinear RED: RED whose probability rises with the square of the average, so that it is lower than RED's at light
//! load and higher at heavy load.
//!
//! Source: Zhou, Yeung, Li, "Nonlinear RED: a simple yet efficient active queue management scheme", Computer Networks
//! 50(18), 2006.
//!
//! ```text
//! pb = max_p' ((avg - min) / (max - min))^2     min <= avg < max
//! max_p' = 1.5 max_p                            the area under the curve is that of RED with max_p
//! ```
//!
//! The areas are equal because max_p' / 3 = max_p / 2. All else is RED in packets, and not gentle: at `max` every
//! packet is dropped.
//!
//! DIFFERENCE: with `gentle`, an option that the paper does not have, the slope above `max` starts from max_p'. ns-3
//! starts it from max_p, below the value that the square reaches at `max`. Pinned by
//! `the_gentle_slope_starts_where_the_square_ends`.
//!
//! Cost: that of RED.

use super::red::{self, Curve, Red};
use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ratio max_p' / max_p.
const SCALE: f64 = 1.5;

/// Parameters of Nonlinear RED. Defaults are those of RED.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Average queue below which nothing is dropped (1997 note on RED: 5 packets).
    pub min_threshold: Limit,
    /// Average queue at which the probability is 1.5 max_probability (1997 note: three times min_threshold).
    pub max_threshold: Limit,
    /// The max_p of a RED with an equal mean probability; at most 2/3 (1997 note: 0.1).
    pub max_probability: f64,
    /// Weight of the newest queue length in the average (RED: 0.002).
    pub weight: f64,
    /// Mean packet size, which converts thresholds and gives the time unit of idle compensation.
    pub mean_packet: Bytes,
    /// Let the probability rise to 1 between max_threshold and twice max_threshold.
    pub gentle: bool,
    /// Space drops at least 1/pb apart, as ns-2 does by default.
    pub wait: bool,
    /// Mark ECN-capable packets instead of dropping them early.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        let red = red::Config::default();
        Self {
            min_threshold: red.min_threshold,
            max_threshold: red.max_threshold,
            max_probability: red.max_probability,
            weight: red.weight,
            mean_packet: red.mean_packet,
            gentle: false,
            wait: false,
            ecn: false,
        }
    }
}

impl Config {
    /// Returns the configuration of the RED with max_p'.
    fn red(&self) -> red::Config {
        red::Config {
            min_threshold: self.min_threshold,
            max_threshold: self.max_threshold,
            max_probability: SCALE * self.max_probability,
            weight: self.weight,
            mean_packet: self.mean_packet,
            gentle: self.gentle,
            wait: self.wait,
            ecn: self.ecn,
            ..red::Config::default()
        }
    }
}

impl AqmConfig for Config {
    type Aqm = NonlinearRed;

    fn validate(&self) -> Result<(), ConfigError> {
        if !(self.max_probability > 0.0 && SCALE * self.max_probability <= 1.0) {
            return Err(ConfigError::new("max_probability", "must be above 0 and at most 2/3"));
        }
        AqmConfig::validate(&self.red())
    }

    fn aqm(&self, link: &LinkFacts) -> NonlinearRed {
        NonlinearRed::new(self, link)
    }
}

/// The state of Nonlinear RED: a RED with a quadratic curve.
#[derive(Debug, Clone, PartialEq)]
pub struct NonlinearRed(Red);

impl NonlinearRed {
    /// Creates the state of an empty, idle queue.
    pub fn new(config: &Config, link: &LinkFacts) -> Self {
        Self(Red::new(&config.red(), link).with_curve(Curve::Quadratic))
    }
}

impl Aqm for NonlinearRed {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.0.on_enqueue(packet, backlog, now, rng)
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.0.on_dequeue(packet, sojourn, backlog, now, rng)
    }

    fn was_forced(&self) -> bool {
        self.0.was_forced()
    }

    fn on_overflow(&mut self, now: Instant) {
        self.0.on_overflow(now);
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl AckPath for NonlinearRed {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use crate::units::Rate;

    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) };

    fn nonlinear(config: Config) -> NonlinearRed {
        config.validate().unwrap();
        NonlinearRed::new(&config, &LINK)
    }

    /// Thresholds 5 and 15, max_p 0.1: 0.15 / 4 in the middle, 0.15 / 100 a tenth of the way, 1 at the threshold.
    #[test]
    fn the_probability_is_the_papers_square() {
        let red = nonlinear(Config::default()).0;
        for (avg, p) in [(5.0, 0.0), (6.0, 0.0015), (10.0, 0.0375), (14.0, 0.1215), (15.0, 1.0)] {
            assert!((red.probability_at(avg) - p).abs() < 1e-12, "{} at {avg}", red.probability_at(avg));
        }
    }

    /// Both curves cover the same area, by the midpoint rule.
    #[test]
    fn the_mean_probability_is_that_of_red() {
        let square = nonlinear(Config::default()).0;
        let line = Red::new(&red::Config::default(), &LINK);
        let mean = |red: &Red| {
            (0..10_000).map(|i| red.probability_at(5.0 + 10.0 * (f64::from(i) + 0.5) / 10_000.0)).sum::<f64>()
                / 10_000.0
        };
        assert!((mean(&square) - 0.05).abs() < 1e-8);
        assert!((mean(&line) - 0.05).abs() < 1e-8);
    }

    #[test]
    fn the_gentle_slope_starts_where_the_square_ends() {
        let red = nonlinear(Config { gentle: true, ..Config::default() }).0;
        assert!((red.probability_at(15.0 - 1e-9) - 0.15).abs() < 1e-6);
        assert!((red.probability_at(15.0) - 0.15).abs() < 1e-12);
        assert!((red.probability_at(22.5) - 0.575).abs() < 1e-12);
    }

    /// At an average of 10 pb is 0.0375; gaps are uniform, 1/(2 pb) = 13.3 on average, where RED's would be 10.
    #[test]
    fn drops_come_at_that_rate() {
        let mut aqm = nonlinear(Config { weight: 1.0, ..Config::default() });
        let mut rng = Streams::new(3).get("rate");
        let packet = Meta { size: Bytes::new(1000), ecn: Ecn::NotEct, flow: FlowId(0) };
        let mut drops = 0u32;
        for packets in std::iter::once(0).chain(std::iter::repeat_n(10, 200_000)) {
            let backlog = Backlog { packets, bytes: packets * 1000 };
            drops += u32::from(aqm.on_enqueue(&packet, backlog, Instant::ZERO, &mut rng) == Verdict::Drop);
        }
        // Gaps of 1..25 have the probability pb / (1 - pb) = 1/25.67 each, 26 has the rest: the mean is 13.34, the
        // deviation 7.5, that of the mean of 15,000 gaps 0.06.
        let mean = 200_000.0 / f64::from(drops);
        assert!((mean - 13.34).abs() < 0.3, "mean gap {mean}");
    }

    #[test]
    fn a_probability_that_would_pass_1_is_refused() {
        let config = Config { max_probability: 0.7, ..Config::default() };
        assert_eq!(config.validate().unwrap_err().key, "max_probability");
    }
}
