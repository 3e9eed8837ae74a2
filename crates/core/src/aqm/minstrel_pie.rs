//! Minstrel PIE: PIE whose target moves between 5 and 15 ms. The target falls while the link is busy, so that
//! unresponsive flows get more drops, and rises when packets leave the queue at a lower rate.
//!
//! Source: thesis 004 §4.2, Algorithm 6. Before each of PIE's updates:
//!
//! ```text
//! maxavg_dq_rate = max(maxavg_dq_rate, avg_dq_rate)
//! qdelay_ref = qdelay_ref + |qdelay_ref - cur_delay| / 2     avg_dq_rate <= 0.9 maxavg_dq_rate
//!              cur_delay                                     else, cur_delay < qdelay_ref
//!              qdelay_ref - |qdelay_ref - cur_delay| / 2     else
//! qdelay_ref within 5..15 ms
//! ```
//!
//! All else is `pie.rs`, with `qdelay_ref` in the place of PIE's target, in the safeguards as well.
//!
//! With the "departure-rate" estimator `avg_dq_rate` is PIE's: dq_threshold / avg_dq_time. The thesis leaves open where
//! the rate comes from with timestamps (§6.2). Here it is the rate of the bytes that left between two updates, averaged
//! with Linux's weights (7/8 old, 1/8 new; the first rate above zero starts the average). An idle link therefore counts
//! as underused, and its target returns to 15 ms.
//!
//! DIFFERENCE: rates are whole bytes per second, and 0.9 is 9/10 of whole numbers, so that the state of an idle queue
//! stops changing. Pinned by `ninety_percent_is_exact`.
//! DIFFERENCE: "departure-rate" averages times as RFC 8033 does; the thesis averages rates as Linux does (eq. 2.5).
//! Pinned by `the_rate_of_departures_is_pies_own`.
//!
//! Cost: that of PIE.

use super::pie::delay::Delay;
use super::pie::{self, Estimator, Reference, Rfc};
use super::{Aqm, Compat, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, FlowQueues, LinkFacts, Overflow};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A new rate counts 1/8 in the average (thesis eq. 2.5).
const RATE_WEIGHT: u64 = 8;

/// Parameters of Minstrel PIE. Defaults are those of thesis 004 and of PIE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Initial and largest target of the queueing delay (004 §4.2.2: 15ms).
    pub target: Span,
    /// Least target of the queueing delay (004 §4.2.2: 5ms).
    pub min_target: Span,
    /// Time between updates (004 Algorithm 6: 16ms).
    pub tupdate: Span,
    /// Gain on the distance from the target, in 1/s (RFC 8033 §4.2: 0.125).
    pub alpha: f64,
    /// Gain on the change of the delay, in 1/s (RFC 8033 §4.2: 1.25).
    pub beta: f64,
    /// For how long a burst passes after an idle time (RFC 8033 §4.4: 150ms).
    pub max_burst: Span,
    /// Mean packet size; nothing is dropped while at most two such packets wait (ns-3: 1000B).
    pub mean_packet: Bytes,
    /// How the delay is measured: "timestamps" or "departure-rate".
    pub estimator: Estimator,
    /// Bytes of a measurement cycle of "departure-rate" (RFC 8033 §5.2: 16 KiB).
    pub dq_threshold: Bytes,
    /// Space drops evenly by an accumulated probability (RFC 8033 §5.4).
    pub derandomize: bool,
    /// Scale the probability of packets below mean_packet by their size (RFC 8033 §4.1).
    pub bytemode: bool,
    /// Above this delay each update adds 2 % to the probability (Linux: 250ms).
    pub high_delay: Span,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Probability from which on ECN-capable packets are dropped as well (RFC 8033 §5.1: 0.1).
    pub ecn_threshold: f64,
}

impl Default for Config {
    fn default() -> Self {
        let pie = pie::Config::default();
        Self {
            target: Span::from_millis(15),
            min_target: Span::from_millis(5),
            tupdate: Span::from_millis(16),
            alpha: pie.alpha,
            beta: pie.beta,
            max_burst: pie.max_burst,
            mean_packet: pie.mean_packet,
            estimator: pie.estimator,
            dq_threshold: pie.dq_threshold,
            derandomize: pie.derandomize,
            bytemode: pie.bytemode,
            high_delay: pie.high_delay,
            ecn: pie.ecn,
            ecn_threshold: pie.ecn_threshold,
        }
    }
}

impl Config {
    /// Returns the configuration of the PIE inside, without `min_target`.
    fn pie(&self) -> pie::Config {
        pie::Config {
            target: self.target,
            tupdate: self.tupdate,
            alpha: self.alpha,
            beta: self.beta,
            max_burst: self.max_burst,
            mean_packet: self.mean_packet,
            estimator: self.estimator,
            dq_threshold: self.dq_threshold,
            derandomize: self.derandomize,
            bytemode: self.bytemode,
            high_delay: self.high_delay,
            ecn: self.ecn,
            ecn_threshold: self.ecn_threshold,
            compat: Compat::Source,
        }
    }
}

impl AqmConfig for Config {
    type Aqm = MinstrelPie;

    fn validate(&self) -> Result<(), ConfigError> {
        AqmConfig::validate(&self.pie())?;
        if self.min_target == Span::ZERO || self.min_target > self.target {
            let message = format!("must be above 0 and at most target ({})", self.target);
            return Err(ConfigError::new("min_target", message));
        }
        Ok(())
    }

    fn aqm(&self, _: &LinkFacts) -> MinstrelPie {
        MinstrelPie(Rfc::new(&self.pie(), Moving::new(self)))
    }

    /// As in FQ-PIE.
    fn per_flow_in_linux(queues: &mut FlowQueues) {
        queues.overflow = Overflow::Arrival;
    }
}

/// The state of Minstrel PIE: a PIE with a moving target.
#[derive(Debug, Clone, PartialEq)]
pub struct MinstrelPie(Rfc<Moving>);

/// `qdelay_ref` and the rates that move it.
#[derive(Debug, Clone, PartialEq)]
struct Moving {
    qdelay_ref: f64,
    lowest: f64,
    highest: f64,
    tupdate: Span,
    /// Bytes that left since the last update.
    departed: u64,
    /// Average rate of departures in bytes per second.
    avg_dq_rate: u64,
    /// Largest average rate so far in bytes per second.
    maxavg_dq_rate: u64,
}

impl Moving {
    fn new(config: &Config) -> Self {
        Self {
            qdelay_ref: config.target.as_secs_f64(),
            lowest: config.min_target.as_secs_f64(),
            highest: config.target.as_secs_f64(),
            tupdate: config.tupdate,
            departed: 0,
            avg_dq_rate: 0,
            maxavg_dq_rate: 0,
        }
    }

    /// Returns the average of the rates between updates, the rate up to this update included.
    fn rate_between_updates(&self) -> u64 {
        let rate = (u128::from(self.departed) * 1_000_000_000 / u128::from(self.tupdate.as_nanos())) as u64;
        match self.avg_dq_rate {
            0 => rate,
            avg => avg - avg / RATE_WEIGHT + rate / RATE_WEIGHT,
        }
    }

    /// Returns true if avg_dq_rate <= 0.9 maxavg_dq_rate, in exact integers.
    fn is_underused(&self) -> bool {
        u128::from(self.avg_dq_rate) * 10 <= u128::from(self.maxavg_dq_rate) * 9
    }
}

impl Reference for Moving {
    #[inline]
    fn target(&self) -> f64 {
        self.qdelay_ref
    }

    #[inline]
    fn departed(&mut self, size: Bytes) {
        self.departed += size.get();
    }

    /// Moves `qdelay_ref` by Algorithm 6, lines 2 to 16.
    fn adapt(&mut self, qdelay: f64, delay: &Delay) {
        self.avg_dq_rate = match delay {
            Delay::DepartureRate(measured) => measured.bytes_per_sec(),
            Delay::Timestamps { .. } => self.rate_between_updates(),
        };
        self.departed = 0;
        self.maxavg_dq_rate = self.maxavg_dq_rate.max(self.avg_dq_rate);
        let half = (self.qdelay_ref - qdelay).abs() / 2.0;
        if self.is_underused() {
            self.qdelay_ref += half;
        } else if qdelay < self.qdelay_ref {
            self.qdelay_ref = qdelay;
        } else {
            self.qdelay_ref -= half;
        }
        self.qdelay_ref = self.qdelay_ref.clamp(self.lowest, self.highest);
    }
}

impl Aqm for MinstrelPie {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.0.arrival(packet, backlog, now, rng)
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        self.0.departure(packet, sojourn, backlog, now);
        Verdict::Pass
    }

    fn on_overflow(&mut self, _: Instant) {
        self.0.overflow();
    }

    fn on_shed(&mut self, backlog: Backlog, now: Instant) {
        self.on_wakeup(backlog, now);
        self.on_overflow(now);
    }

    /// Catches up the updates due by now, like the method of [`Pie`](super::pie::Pie).
    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        self.0.catch_up(backlog, now);
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl AckPath for MinstrelPie {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use crate::units::{Limit, Rate};

    const PACKET: Meta = Meta { size: Bytes::new(2000), ecn: Ecn::NotEct, flow: FlowId(0) };
    const FULL: Backlog = Backlog { packets: 100, bytes: 200_000 };

    fn minstrel(config: &Config) -> MinstrelPie {
        config.validate().unwrap();
        config.aqm(&LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) })
    }

    fn near(seen: f64, expected: f64) {
        assert!((seen - expected).abs() < 1e-12, "{seen}, expected {expected}");
    }

    fn timestamps() -> Delay {
        Delay::Timestamps { sojourn: Span::ZERO }
    }

    /// A rate of departures that never changes: busy.
    fn busy() -> Moving {
        Moving { avg_dq_rate: 1000, maxavg_dq_rate: 1000, departed: 16, ..Moving::new(&Config::default()) }
    }

    #[test]
    fn a_busy_link_lowers_the_target_by_half_the_distance() {
        // 16 B in 16 ms are 1000 B/s: 1000 - 125 + 125 = 1000. 1 ms above 15 ms: to 14.5 ms; then 1.5 ms above: 13.75.
        let mut moving = busy();
        moving.adapt(0.016, &timestamps());
        near(moving.qdelay_ref, 0.0145);
        moving.departed = 16;
        moving.adapt(0.016, &timestamps());
        near(moving.qdelay_ref, 0.013_75);
    }

    #[test]
    fn a_delay_below_the_target_becomes_the_target() {
        let mut moving = busy();
        moving.adapt(0.008, &timestamps());
        near(moving.qdelay_ref, 0.008);
    }

    #[test]
    fn the_target_stays_within_5_and_15_ms() {
        let mut moving = busy();
        moving.adapt(0.001, &timestamps());
        near(moving.qdelay_ref, 0.005);
        // A large delay pulls it down by more than it has.
        moving.qdelay_ref = 0.006;
        moving.departed = 16;
        moving.adapt(0.1, &timestamps());
        near(moving.qdelay_ref, 0.005);
        // Nothing left: 1000 - 125 = 875 <= 900, underused; 5 + 95 / 2 ms is above 15.
        moving.adapt(0.1, &timestamps());
        assert_eq!(moving.avg_dq_rate, 875);
        near(moving.qdelay_ref, 0.015);
    }

    #[test]
    fn an_underused_link_raises_the_target_by_half_the_distance() {
        let mut moving = Moving { qdelay_ref: 0.008, ..busy() };
        moving.departed = 0;
        moving.adapt(0.002, &timestamps());
        near(moving.qdelay_ref, 0.011);
    }

    #[test]
    fn ninety_percent_is_exact() {
        let at = |avg_dq_rate| Moving { avg_dq_rate, maxavg_dq_rate: 1000, ..busy() }.is_underused();
        assert_eq!([at(900), at(901)], [true, false]);
        assert!(Moving::new(&Config::default()).is_underused(), "0 <= 0.9 * 0: the target is not lowered at the start");
    }

    /// 2000 B every 2 ms are 1 MB/s; eight leave in each 16 ms. The delay stays at 20 ms, the link busy: the target
    /// goes from 15 to 5 ms in steps of half the distance, 15 - 2.5 = 12.5, 12.5 - 3.75 = 8.75, 8.75 - 5.625 < 5.
    #[test]
    fn with_timestamps_the_rate_is_that_between_updates() {
        let (mut aqm, mut rng) = (minstrel(&Config::default()), Streams::new(1).get("unused"));
        let mut seen = Vec::new();
        for step in 0..=32 {
            let now = Instant::ZERO + Span::from_millis(2 * step);
            aqm.on_dequeue(&PACKET, Span::from_millis(20), FULL, now, &mut rng);
            if step % 8 == 0 {
                seen.push(aqm.0.control().reference().qdelay_ref);
            }
        }
        // The first update, at 16 ms, sees the eight packets that left from 0 to 14 ms.
        assert_eq!(aqm.0.control().reference().maxavg_dq_rate, 1_000_000);
        for (seen, expected) in seen.iter().zip([0.015, 0.0125, 0.008_75, 0.005, 0.005]) {
            near(*seen, expected);
        }
    }

    /// A cycle of 16384 B begins at 0 and ends with the ninth packet after that, 18 ms later: 16384 / 0.018 = 910222
    /// B/s.
    #[test]
    fn the_rate_of_departures_is_pies_own() {
        let config = Config { estimator: Estimator::DepartureRate, ..Config::default() };
        let (mut aqm, mut rng) = (minstrel(&config), Streams::new(1).get("unused"));
        for step in 0..=16 {
            let now = Instant::ZERO + Span::from_millis(2 * step);
            aqm.on_dequeue(&PACKET, Span::ZERO, FULL, now, &mut rng);
        }
        assert_eq!(aqm.0.control().reference().avg_dq_rate, 910_222);
    }

    #[test]
    fn an_idle_queue_needs_no_timer_and_comes_back_to_15_ms() {
        let (mut aqm, mut rng) = (minstrel(&Config::default()), Streams::new(1).get("unused"));
        for step in 0..40 {
            let now = Instant::ZERO + Span::from_millis(2 * step);
            aqm.on_dequeue(&PACKET, Span::from_millis(20), FULL, now, &mut rng);
        }
        aqm.on_dequeue(
            &PACKET,
            Span::from_millis(20),
            Backlog::default(),
            Instant::ZERO + Span::from_millis(80),
            &mut rng,
        );
        let mut timed = aqm.clone();
        for update in 6..=10_000 {
            timed.on_wakeup(Backlog::default(), Instant::ZERO + Span::from_millis(16 * update));
        }
        assert_ne!(aqm, timed);
        aqm.on_wakeup(Backlog::default(), Instant::ZERO + Span::from_millis(160_000));
        assert_eq!(aqm, timed);
        near(aqm.0.control().reference().qdelay_ref, 0.015);
    }

    #[test]
    fn a_least_target_above_the_target_is_refused() {
        let config = Config { min_target: Span::from_millis(16), ..Config::default() };
        assert_eq!(AqmConfig::validate(&config).unwrap_err().key, "min_target");
    }
}
