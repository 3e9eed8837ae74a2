//! Feng's self-configuring RED: RED that scales max_p each time its average crosses a threshold.
//!
//! Source: Feng, Kandlur, Saha, Shin, "A self-configuring RED gateway", INFOCOM 1999, the algorithm's figure, with
//! its alpha = 3 and beta = 2. It is the first of the adaptive REDs: if RED drops too little, the average oscillates
//! around max; if RED drops too much, around min.
//!
//! ```text
//! at each arrival, after the average:
//!   min < avg < max                    status = Between
//!   avg < min and status is not Below  status = Below,  max_p = max_p / alpha
//!   avg > max and status is not Above  status = Above,  max_p = max_p beta
//! ```
//!
//! All else is RED in packets. The gentle form is off by default, since it is younger than the source.
//!
//! DIFFERENCE: the initial status is Below, because the queue is empty at first, so max_p starts as it is configured.
//! ns-3 starts with Above, so that its first packet divides max_p. Pinned by `the_first_packet_leaves_max_p_alone`.
//! DIFFERENCE: max_p stays within 1e-6 and 1. Without bounds it can rise above 1, or reach 0, which no factor can
//! change. Pinned by `max_p_stays_within_its_range`.
//!
//! Cost: that of RED.

use super::red::{self, Red};
use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Least value of max_p.
const LEAST_MAX_P: f64 = 1e-6;

/// Parameters of Feng's RED. Defaults are those of the 1999 paper and of the 1997 note on RED.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Average queue below which nothing is dropped and max_p becomes smaller (1997 note on RED: 5 packets).
    pub min_threshold: Limit,
    /// Average queue above which max_p becomes larger (1997 note: three times min_threshold).
    pub max_threshold: Limit,
    /// Initial value of max_p (1997 note: 0.1).
    pub max_probability: f64,
    /// Divisor of max_p each time the average falls below min_threshold, 1 or more (1999 paper: 3).
    pub alpha: f64,
    /// Factor of max_p each time the average rises above max_threshold, 1 or more (1999 paper: 2).
    pub beta: f64,
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
            alpha: 3.0,
            beta: 2.0,
            weight: red.weight,
            mean_packet: red.mean_packet,
            gentle: false,
            wait: false,
            ecn: false,
        }
    }
}

impl Config {
    /// Returns the configuration of the RED with the initial max_p.
    fn red(&self) -> red::Config {
        red::Config {
            min_threshold: self.min_threshold,
            max_threshold: self.max_threshold,
            max_probability: self.max_probability,
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
    type Aqm = FengRed;

    fn validate(&self) -> Result<(), ConfigError> {
        AqmConfig::validate(&self.red())?;
        if self.max_probability < LEAST_MAX_P {
            return Err(ConfigError::new("max_probability", format!("must be within {LEAST_MAX_P} and 1")));
        }
        for (key, factor) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(factor >= 1.0 && factor.is_finite()) {
                return Err(ConfigError::new(key, "must be 1 or more"));
            }
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> FengRed {
        FengRed::new(self, link)
    }
}

/// Where the average last was: an average that equals a threshold does not change the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Below,
    Between,
    Above,
}

/// The state of Feng's RED: a RED whose max_p moves.
#[derive(Debug, Clone, PartialEq)]
pub struct FengRed {
    red: Red,
    alpha: f64,
    beta: f64,
    status: Status,
}

impl FengRed {
    /// Creates the state of an empty, idle queue.
    pub fn new(config: &Config, link: &LinkFacts) -> Self {
        let red = Red::new(&config.red(), link);
        Self { red, alpha: config.alpha, beta: config.beta, status: Status::Below }
    }

    /// Returns the current max_p.
    pub fn max_probability(&self) -> f64 {
        self.red.max_p()
    }

    /// Moves max_p if the average crossed a threshold since the status was last set.
    fn adapt(&mut self) {
        let (avg, (min, max), max_p) = (self.red.average(), self.red.thresholds(), self.red.max_p_mut());
        if min < avg && avg < max {
            self.status = Status::Between;
        } else if avg < min && self.status != Status::Below {
            self.status = Status::Below;
            *max_p = (*max_p / self.alpha).max(LEAST_MAX_P);
        } else if avg > max && self.status != Status::Above {
            self.status = Status::Above;
            *max_p = (*max_p * self.beta).min(1.0);
        }
    }
}

impl Aqm for FengRed {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.red.observe(backlog, now);
        self.adapt();
        self.red.decide(packet, backlog, now, rng)
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

impl AckPath for FengRed {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use crate::units::Rate;

    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) };

    /// Weight 1: the average is the queue, thresholds 5 and 15.
    fn feng(max_probability: f64) -> FengRed {
        let config = Config { weight: 1.0, max_probability, ..Config::default() };
        config.validate().unwrap();
        let mut feng = FengRed::new(&config, &LINK);
        see(&mut feng, &[0]); // ends the idle time
        feng
    }

    /// Packets arrive and find these queues.
    fn see(feng: &mut FengRed, queues: &[u64]) {
        let mut rng = Streams::new(1).get("t");
        let packet = Meta { size: Bytes::new(1000), ecn: Ecn::NotEct, flow: FlowId(0) };
        for packets in queues {
            let backlog = Backlog { packets: *packets, bytes: packets * 1000 };
            feng.on_enqueue(&packet, backlog, Instant::ZERO, &mut rng);
        }
    }

    #[test]
    fn the_first_packet_leaves_max_p_alone() {
        assert_eq!(feng(0.1).max_probability(), 0.1);
    }

    /// 0.24 / 3 = 0.08, * 2 = 0.16: one step for each crossing, none for staying, none at the thresholds themselves.
    #[test]
    fn max_p_is_scaled_once_for_each_crossing() {
        let mut feng = feng(0.24);
        for (queues, max_p) in [
            (&[4, 3][..], 0.24), // still below
            (&[10, 14], 0.24),   // between
            (&[4, 2, 4], 0.08),  // below
            (&[5, 4], 0.08),     // at the threshold: not between
            (&[16, 20, 16], 0.16),
            (&[15, 16], 0.16), // at the threshold: still above
            (&[10, 16], 0.32),
            (&[3], 0.32 / 3.0), // from above to below at once
        ] {
            see(&mut feng, queues);
            assert!((feng.max_probability() - max_p).abs() < 1e-12, "{} after {queues:?}", feng.max_probability());
        }
    }

    #[test]
    fn max_p_stays_within_its_range() {
        let mut feng = feng(0.5);
        see(&mut feng, &[16, 10, 16, 10, 16]);
        assert_eq!(feng.max_probability(), 1.0);
        for _ in 0..100 {
            see(&mut feng, &[10, 4]);
        }
        assert_eq!(feng.max_probability(), LEAST_MAX_P);
    }

    #[test]
    fn values_that_cannot_work_are_refused_by_name() {
        for (config, key) in [
            (Config { alpha: 0.5, ..Config::default() }, "alpha"),
            (Config { beta: f64::INFINITY, ..Config::default() }, "beta"),
            (Config { max_probability: 1e-9, ..Config::default() }, "max_probability"),
            (Config { min_threshold: Limit::Packets(15), ..Config::default() }, "max_threshold"),
        ] {
            assert_eq!(config.validate().unwrap_err().key, key);
        }
    }
}
