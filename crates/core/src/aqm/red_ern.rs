//! RED-ERN: RED that marks each flow in proportion to its rate. Senders tell their windows and round trip times once
//! per round trip ([`Ern`]).
//!
//! Source: Boudi and Loudini, "Active queue management exploiting the rate information in TCP-IP networks", 2018
//! (document 003), §III.B; §V for the variants without header bits and with estimated rates (`estimate.rs`). Its
//! equation numbers:
//!
//! ```text
//! (3)  pb   = max_p (avg - min) / (max - min)       per category, once per round trip time of the category
//! (4)  fair = 0.98 fair + 0.02 rate_i               on each packet that tells a rate, rate_i = cwnd_i / rtt_i
//! (6)  pa   = pb rate_i / fair                      takes the place of RED's spacing by `count`
//! ```
//!
//! | category | 1 | 2 | 3 | 4 | 5 |
//! |---|---|---|---|---|---|
//! | round trip time in ms | below 40 | below 80 | below 160 | below 320 | all others |
//! | time between updates | 40 | 80 | 160 | 320 | `last_period` |
//!
//! | packet | what is done |
//! |---|---|
//! | of a flow that is not ERN-capable, or in slow start (its sender then clears the bits) | plain RED |
//! | of an ERN-capable flow, without a rate | counts in the average and passes |
//! | of an ERN-capable flow, with its rate | (4), then marked with probability pa |
//!
//! With `rates = "estimated"` the gateway tells the sorts of packets apart by what it measured of their flows.
//!
//! All flows share one queue and one average. Invariants: probabilities are within 0 and 1; there is no state per flow,
//! except with estimated rates. Cost: O(1). One random number is drawn per rate with 0 < pa < 1, and those of RED for
//! the other packets.
//!
//! The document leaves open, and this file chooses: the first rate is the first value of the average, since an average
//! that starts at 0 would multiply the first probabilities by 50. A category's time between updates is its longest
//! round trip time; that of the last category continues the doubling (640 ms). An update comes with the first rate
//! after that time.
//!
//! DIFFERENCE: eq. (3) ends at `max`. From there on pb is that of RED: the gentle slope, or 1. Every rate at or above
//! the fair rate is therefore marked before the queue is full. Pinned by
//! `above_the_thresholds_the_probability_is_that_of_red`. `over_max = "linear"` is eq. (3) as it is written, without an
//! upper end, for the plain RED as well. Pinned by `eq_3_as_written_has_no_upper_end`.
//! DIFFERENCE: a packet with a rate which cannot be marked (not ECT) is dropped where it would be marked. Pinned by
//! `a_rate_that_cannot_be_marked_is_dropped`.

mod estimate;

use super::red::{self, OverMax, Red};
use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::packet::{Ecn, Ern, Packet, RateNotice, TcpView};
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Span};
use estimate::Estimator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Upper bounds of the round trip times of categories 1 to 4, in milliseconds.
const BOUNDS_MS: [u16; 4] = [40, 80, 160, 320];

/// How packets of ERN-capable flows, and those with a rate, are recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Identify {
    /// By the header bits ERC and ENR (§III.A).
    #[default]
    Bits,
    /// By ECT(1); packets with ECT(1) or CE may have a rate (§V).
    Ect1,
}

/// Where the rates of flows come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rates {
    /// Senders announce them (§III.A).
    #[default]
    Announced,
    /// The gateway estimates them, with state for each flow (§V). What senders announce is ignored.
    Estimated,
}

/// Parameters of RED-ERN. Defaults are those of document 003 and of RED.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Average queue below which nothing is marked or dropped (as in red).
    pub min_threshold: Limit,
    /// Average queue at which the probability is max_probability (as in red).
    pub max_threshold: Limit,
    /// Probability at max_threshold, max_p (§III.B: 0.1).
    pub max_probability: f64,
    /// Weight of the newest queue length in the average (as in red).
    pub weight: f64,
    /// Mean packet size, which converts thresholds and gives the time unit of idle compensation.
    pub mean_packet: Bytes,
    /// Let the probability rise to 1 between max_threshold and twice max_threshold.
    pub gentle: bool,
    /// Weight of the newest rate in the fair rate (§III.B: 0.02).
    pub rate_weight: f64,
    /// Time between updates of the probability for round trip times of 320 ms and more.
    pub last_period: Span,
    /// How ERN-capable flows are recognized: by the header "bits", or by "ect1".
    pub identify: Identify,
    /// Where rates come from: "announced" by senders, or "estimated" by the gateway from what passes, for each flow.
    pub rates: Rates,
    /// Mark ECN-capable packets of other flows instead of dropping them early; packets with a rate are always marked.
    pub ecn: bool,
    /// What is done above the hard limit (as in red); "linear" is eq. (3) without an upper end.
    pub over_max: OverMax,
}

impl Default for Config {
    fn default() -> Self {
        let red = red::Config::default();
        Self {
            min_threshold: red.min_threshold,
            max_threshold: red.max_threshold,
            max_probability: 0.1,
            weight: red.weight,
            mean_packet: red.mean_packet,
            gentle: red.gentle,
            rate_weight: 0.02,
            last_period: Span::from_millis(640),
            identify: Identify::Bits,
            rates: Rates::Announced,
            ecn: false,
            over_max: red.over_max,
        }
    }
}

impl Config {
    /// Returns the configuration of the RED for flows which are not ERN-capable.
    fn red(&self) -> red::Config {
        red::Config {
            min_threshold: self.min_threshold,
            max_threshold: self.max_threshold,
            max_probability: self.max_probability,
            weight: self.weight,
            mean_packet: self.mean_packet,
            gentle: self.gentle,
            ecn: self.ecn,
            over_max: self.over_max,
            ..red::Config::default()
        }
    }
}

impl AqmConfig for Config {
    type Aqm = RedErn;

    fn validate(&self) -> Result<(), ConfigError> {
        AqmConfig::validate(&self.red())?;
        if !(self.rate_weight > 0.0 && self.rate_weight <= 1.0) {
            return Err(ConfigError::new("rate_weight", "must be above 0 and at most 1"));
        }
        if self.last_period < Span::from_millis(BOUNDS_MS[3].into()) {
            return Err(ConfigError::new(
                "last_period",
                "must be at least 320ms, the shortest of its round trip times",
            ));
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> RedErn {
        RedErn::new(self, link)
    }

    fn watches(&self) -> bool {
        self.rates == Rates::Estimated
    }
}

/// The three sorts of packets: of flows that are not ERN-capable, of ERN-capable flows without a rate, and with a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Plain,
    Capable,
    Rate(RateNotice),
}

/// A category: the flows whose round trip times are in one range.
#[derive(Debug, Clone, PartialEq)]
struct Category {
    period: Span,
    update_at: Instant,
    probability: f64,
    rates: u64,
    flows: u64,
}

impl Category {
    fn new(period: Span) -> Self {
        Self { period, update_at: Instant::ZERO, probability: 0.0, rates: 0, flows: 0 }
    }

    /// Counts a rate, and updates the probability if the period is over. Each flow tells one rate per round trip, so
    /// the number of rates in a period is about that of the flows.
    fn take_rate(&mut self, probability: f64, now: Instant) {
        if now >= self.update_at {
            self.update_at = now + self.period;
            self.probability = probability;
            self.flows = std::mem::take(&mut self.rates);
        }
        self.rates += 1;
    }
}

/// The state of RED-ERN.
#[derive(Debug, Clone, PartialEq)]
pub struct RedErn {
    red: Red,
    identify: Identify,
    estimator: Option<Estimator>,
    rate_weight: f64,
    /// Average of the told rates in bytes per millisecond; `None` before the first rate.
    fair_rate: Option<f64>,
    categories: [Category; 5],
}

/// Computes the rate of eq. (1), cwnd / rtt, in bytes per millisecond.
fn rate(notice: RateNotice) -> f64 {
    notice.cwnd().get() as f64 / f64::from(notice.rtt_ms())
}

/// Computes the fair rate of eq. (4).
fn averaged(fair: f64, rate: f64, weight: f64) -> f64 {
    fair * (1.0 - weight) + rate * weight
}

/// Computes pa of eq. (6), clipped to 1. A flow that tells a rate of 0 is not marked.
fn mark_probability(pb: f64, rate: f64, fair: f64) -> f64 {
    if rate > 0.0 { (pb * (rate / fair)).min(1.0) } else { 0.0 }
}

/// Returns the index of the category of a round trip time.
fn category(rtt_ms: u16) -> usize {
    BOUNDS_MS.iter().filter(|bound| rtt_ms >= **bound).count()
}

impl RedErn {
    /// Creates the state of an empty, idle queue before the first rate.
    pub fn new(config: &Config, link: &LinkFacts) -> Self {
        let [a, b, c, d] = BOUNDS_MS.map(|ms| Span::from_millis(ms.into()));
        Self {
            red: Red::new(&config.red(), link),
            identify: config.identify,
            estimator: config.watches().then(Estimator::default),
            rate_weight: config.rate_weight,
            fair_rate: None,
            categories: [a, b, c, d, config.last_period].map(Category::new),
        }
    }

    /// Returns the average of the told rates in bytes per millisecond; `None` before the first rate.
    pub fn fair_rate(&self) -> Option<f64> {
        self.fair_rate
    }

    /// Number of bytes of state per flow with estimated rates.
    pub const BYTES_PER_FLOW: usize = Estimator::BYTES_PER_FLOW;

    /// Returns the memory allocated for flows, unused places included; none with announced rates.
    pub fn memory(&self) -> Bytes {
        self.estimator.as_ref().map_or(Bytes::ZERO, Estimator::memory)
    }

    /// Returns the number of rates of each category in its last whole period, which is about the number of its flows.
    pub fn flows(&self) -> [u64; 5] {
        self.categories.each_ref().map(|category| category.flows)
    }

    fn sort<P: Packet>(&mut self, packet: &P) -> Sort {
        match &mut self.estimator {
            Some(estimator) => estimator.sort(packet.flow()),
            None => self.announced(packet.ecn(), packet.explicit_rate()),
        }
    }

    fn announced(&self, ecn: Ecn, said: Ern) -> Sort {
        let (capable, rate) = match (self.identify, ecn) {
            (Identify::Bits, _) => (said.capable, said.rate.filter(|_| said.capable && said.tells_rate)),
            (Identify::Ect1, Ecn::Ect1 | Ecn::Ce) => (ecn == Ecn::Ect1, said.rate),
            (Identify::Ect1, _) => (false, None),
        };
        match rate {
            Some(rate) => Sort::Rate(rate),
            None if capable => Sort::Capable,
            None => Sort::Plain,
        }
    }

    /// Updates the state with a rate and returns the probability `pa` of its packet.
    fn take_rate(&mut self, notice: RateNotice, now: Instant) -> f64 {
        let category = &mut self.categories[category(notice.rtt_ms())];
        category.take_rate(self.red.probability(), now);
        let (pb, rate) = (category.probability, rate(notice));
        let fair = self.fair_rate.map_or(rate, |fair| averaged(fair, rate, self.rate_weight));
        self.fair_rate = Some(fair);
        mark_probability(pb, rate, fair)
    }

    fn judge_rate(&mut self, notice: RateNotice, ecn: Ecn, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.red.observe(backlog, now);
        let pa = self.take_rate(notice, now);
        if pa <= 0.0 || (pa < 1.0 && rng.uniform() >= pa) {
            return Verdict::Pass;
        }
        if ecn.is_capable() {
            return Verdict::Mark;
        }
        self.red.refused(backlog, now);
        Verdict::Drop
    }
}

impl Aqm for RedErn {
    #[inline]
    fn on_arrival<P: Packet>(&mut self, packet: &P, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        match self.sort(packet) {
            Sort::Plain => self.red.on_enqueue(&Meta::of(packet), backlog, now, rng),
            Sort::Capable => {
                self.red.observe(backlog, now);
                Verdict::Pass
            }
            Sort::Rate(notice) => self.judge_rate(notice, packet.ecn(), backlog, now, rng),
        }
    }

    /// Judges a packet of which only [`Meta`] is known: as one of a flow that is not ERN-capable.
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.red.on_enqueue(packet, backlog, now, rng)
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, waited: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.red.on_dequeue(packet, waited, backlog, now, rng)
    }

    fn was_forced(&self) -> bool {
        self.red.was_forced()
    }

    fn on_overflow(&mut self, now: Instant) {
        self.red.on_overflow(now);
    }

    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        if let Some(estimator) = &mut self.estimator {
            estimator.on_fact(fact);
        }
    }
}

/// Segments are watched only to estimate rates.
impl AckPath for RedErn {
    fn watches(&self) -> bool {
        self.estimator.is_some()
    }

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        if let Some(estimator) = &mut self.estimator {
            estimator.outbound(segment, now);
        }
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        if let Some(estimator) = &mut self.estimator {
            estimator.inbound(segment, now);
        }
    }
}

#[cfg(test)]
mod tests;
