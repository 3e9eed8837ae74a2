//! PI2: the proportional integral controller of PIE without its heuristics. Its output p' is squared for classic
//! traffic, whose rate is proportional to 1/sqrt(p), and multiplied by k for scalable traffic, whose rate is
//! proportional to 1/p.
//!
//! Source: De Schepper, Bondarenko, Tsang, Briscoe, "PI2: A Linearized AQM for both Classic and Scalable TCP", CoNEXT
//! 2016, §4 and Table 1. Overload after RFC 9332 §4.2.
//!
//! ```text
//! p'  = p' + alpha (qdelay - target) + beta (qdelay - qdelay_old), within 0..1, every tupdate
//! p_C = p'^2        two random numbers below p'; classic: not-ECT, ECT(0)
//! p_L = k p'        scalable: ECT(1), CE
//! ```
//!
//! The square has the effect of the divisors in PIE's table, so the gains need not depend on the probability.
//!
//! Packets are judged on arrival. Without `ecn` all traffic is classic and is dropped. With `ecn`, ECN-capable traffic
//! is marked until k p' reaches 1 (overload): then every packet is dropped with p_C, and scalable packets which are not
//! dropped are marked. A packet passes if at most two mean packets wait before it, as in PIE and in Linux's `dualpi2`.
//! Random numbers: none with p' = 0; one for a scalable packet; one or two for a classic packet, the second only if the
//! first is below p'.
//!
//! DIFFERENCE: the paper writes p' for the scalable probability and (p'/k)^2 for the classic one; here, as in RFC 9332,
//! they are k p' and p'^2, and the gains are those of Table 1 for classic traffic. Pinned by
//! `scalable_traffic_is_marked_k_times_the_root_of_classic`.
//!
//! Updates come at multiples of `tupdate`, without wakeups: see `control.rs`. Cost: O(1) per packet.

use super::control::{Law, Periodic, Pi, before_departure};
use super::pie::delay::{self, Delay};
use super::pie::{Estimator, validate_controller};
use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::packet::Ecn;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of PI2. Defaults are those of the paper's Table 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Queueing delay to hold (Table 1: 20ms).
    pub target: Span,
    /// Time between updates (Table 1: 32ms).
    pub tupdate: Span,
    /// Gain on the distance from the target, in 1/s (Table 1: 5/16).
    pub alpha: f64,
    /// Gain on the change of the delay, in 1/s (Table 1: 50/16).
    pub beta: f64,
    /// Coupling factor k: scalable traffic is marked with k p' (§4: 2).
    pub coupling: f64,
    /// Mean packet size; nothing is dropped while at most two such packets wait (ns-3: 1000B).
    pub mean_packet: Bytes,
    /// How the delay is measured: "timestamps" or "departure-rate".
    pub estimator: Estimator,
    /// Bytes of a measurement cycle of "departure-rate" (RFC 8033 §5.2: 16 KiB).
    pub dq_threshold: Bytes,
    /// Mark ECN-capable packets instead of dropping them, and treat ECT(1) and CE as scalable traffic.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Span::from_millis(20),
            tupdate: Span::from_millis(32),
            alpha: 0.3125,
            beta: 3.125,
            coupling: 2.0,
            mean_packet: Bytes::new(1000),
            estimator: Estimator::Timestamps,
            dq_threshold: Bytes::new(1 << 14),
            ecn: false,
        }
    }
}

/// Checks that a coupling factor is within 1 and 255.
pub(super) fn validate_coupling(coupling: f64) -> Result<(), ConfigError> {
    if (1.0..=255.0).contains(&coupling) {
        return Ok(());
    }
    Err(ConfigError::new("coupling", "must be from 1 to 255"))
}

impl AqmConfig for Config {
    type Aqm = Pi2;

    fn validate(&self) -> Result<(), ConfigError> {
        validate_controller(self.target, self.tupdate, [("alpha", self.alpha), ("beta", self.beta)])?;
        validate_coupling(self.coupling)?;
        if self.mean_packet == Bytes::ZERO {
            return Err(ConfigError::new("mean_packet", "must be above 0B"));
        }
        delay::validate_threshold(self.dq_threshold)
    }

    fn aqm(&self, _: &LinkFacts) -> Pi2 {
        let control = Control {
            delay: Delay::new(self.estimator, self.dq_threshold),
            base: Base::new(self.alpha, self.beta, self.target, self.coupling),
        };
        Pi2 {
            timer: Periodic::new(control, self.tupdate, self.tupdate),
            spared: 2 * self.mean_packet.get(),
            ecn: self.ecn,
        }
    }
}

/// The controller of the base probability p', and the probabilities that follow from it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Base {
    pi: Pi,
    target: f64,
    coupling: f64,
    /// The base probability p', 0 to 1.
    pub(super) prob: f64,
}

impl Base {
    pub(super) fn new(alpha: f64, beta: f64, target: Span, coupling: f64) -> Self {
        Self { pi: Pi::new(alpha, beta), target: target.as_secs_f64(), coupling, prob: 0.0 }
    }

    /// Makes one update, with a queueing delay in seconds.
    pub(super) fn update(&mut self, qdelay: f64) {
        self.prob = (self.prob + self.pi.step(qdelay, self.target)).clamp(0.0, 1.0);
    }

    /// Returns k p', which may be above 1.
    pub(super) fn scalable(&self) -> f64 {
        self.coupling * self.prob
    }

    /// Returns true in overload: marking every scalable packet does not suffice (RFC 9332 §4.2).
    pub(super) fn is_overloaded(&self) -> bool {
        self.scalable() >= 1.0
    }
}

/// Returns true for a packet of scalable traffic: ECT(1) or CE (RFC 9331 §4.1).
pub(super) const fn is_scalable(ecn: Ecn) -> bool {
    matches!(ecn, Ecn::Ect1 | Ecn::Ce)
}

/// The state of PI2.
#[derive(Debug, Clone, PartialEq)]
pub struct Pi2 {
    timer: Periodic<Control>,
    /// Nothing is dropped while at most this many bytes wait: two mean packets.
    spared: u64,
    ecn: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Control {
    delay: Delay,
    base: Base,
}

impl Law for Control {
    type Queue = Backlog;

    fn update(&mut self, backlog: Backlog, _: Instant) {
        self.base.update(self.delay.of(backlog.bytes));
    }
}

impl Pi2 {
    fn judge(&self, ecn: Ecn, rng: &mut Rng) -> Verdict {
        let base = &self.timer.law.base;
        let (marks, overloaded) = (self.ecn && ecn.is_capable(), base.is_overloaded());
        let scalable = marks && is_scalable(ecn);
        if scalable && !overloaded {
            return if rng.uniform() < base.scalable() { Verdict::Mark } else { Verdict::Pass };
        }
        // p_C = p'^2: both of two random numbers are below p'.
        match rng.uniform() < base.prob && rng.uniform() < base.prob {
            true if marks && !overloaded => Verdict::Mark,
            true => Verdict::Drop,
            false if scalable => Verdict::Mark,
            false => Verdict::Pass,
        }
    }
}

impl Aqm for Pi2 {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.timer.catch_up(backlog, now);
        if backlog.bytes <= self.spared || self.timer.law.base.prob == 0.0 {
            return Verdict::Pass;
        }
        self.judge(packet.ecn, rng)
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        self.timer.catch_up(before_departure(backlog, packet.size), now);
        self.timer.law.delay.departed(packet.size, sojourn, backlog.bytes, now);
        Verdict::Pass
    }

    fn on_shed(&mut self, backlog: Backlog, now: Instant) {
        self.on_wakeup(backlog, now);
        self.on_overflow(now);
    }

    /// Catches up the updates due by now, like the method of [`Pie`](super::pie::Pie).
    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        self.timer.catch_up(backlog, now);
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl AckPath for Pi2 {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowId;
    use crate::rng::Streams;
    use crate::units::{Limit, Rate};

    const FULL: Backlog = Backlog { packets: 100, bytes: 100_000 };

    fn pi2(config: &Config) -> Pi2 {
        config.validate().unwrap();
        config.aqm(&LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) })
    }

    fn packet(ecn: Ecn) -> Meta {
        Meta { size: Bytes::new(1000), ecn, flow: FlowId(0) }
    }

    /// How many of 100,000 arrivals at the base probability `prob` were (dropped, marked), in percent.
    fn shares(prob: f64, ecn: Ecn, marks: bool) -> (f64, f64) {
        let (mut pi2, mut rng) = (pi2(&Config { ecn: marks, ..Config::default() }), Streams::new(1).get("shares"));
        pi2.timer.law.base.prob = prob;
        let mut counts = (0.0, 0.0);
        for _ in 0..100_000 {
            match pi2.on_enqueue(&packet(ecn), FULL, Instant::ZERO, &mut rng) {
                Verdict::Drop => counts.0 += 0.001,
                Verdict::Mark => counts.1 += 0.001,
                Verdict::Pass => {}
            }
        }
        counts
    }

    /// The deviation of a share of 100,000 is at most 0.16 percentage points; the bound is four of them.
    fn near(seen: (f64, f64), expected: (f64, f64)) {
        let off = (seen.0 - expected.0).abs().max((seen.1 - expected.1).abs());
        assert!(off < 0.64, "{seen:?}, expected {expected:?}");
    }

    #[test]
    fn scalable_traffic_is_marked_k_times_the_root_of_classic() {
        near(shares(0.2, Ecn::NotEct, true), (4.0, 0.0));
        near(shares(0.2, Ecn::Ect0, true), (0.0, 4.0));
        near(shares(0.2, Ecn::Ect1, true), (0.0, 40.0));
        near(shares(0.2, Ecn::Ce, true), (0.0, 40.0));
        near(shares(0.2, Ecn::Ect1, false), (4.0, 0.0));
    }

    /// At p' = 0.6, k p' = 1.2: 36 % of all are dropped, ECN-capable or not.
    #[test]
    fn overload_drops_what_it_would_mark() {
        near(shares(0.6, Ecn::NotEct, true), (36.0, 0.0));
        near(shares(0.6, Ecn::Ect0, true), (36.0, 0.0));
        near(shares(0.6, Ecn::Ect1, true), (36.0, 64.0));
    }

    /// 10 ms above the target, from 0: 0.3125 * 0.01 + 3.125 * 0.03 = 0.096875; then steady, 0.003125 more each 32 ms.
    #[test]
    fn an_update_weighs_distance_and_change() {
        let (mut pi2, mut rng) = (pi2(&Config::default()), Streams::new(1).get("unused"));
        pi2.on_dequeue(&packet(Ecn::NotEct), Span::from_millis(30), FULL, Instant::ZERO, &mut rng);
        for (ms, prob) in [(31, 0.0), (32, 0.096_875), (63, 0.096_875), (64, 0.1)] {
            pi2.on_wakeup(FULL, Instant::ZERO + Span::from_millis(ms));
            assert!((pi2.timer.law.base.prob - prob).abs() < 1e-12, "{} at {ms} ms", pi2.timer.law.base.prob);
        }
    }

    #[test]
    fn a_short_queue_passes_unseen() {
        let (mut pi2, mut rng) = (pi2(&Config::default()), Streams::new(1).get("short"));
        pi2.timer.law.base.prob = 1.0;
        let before = rng.clone();
        let two = Backlog { packets: 2, bytes: 2000 };
        assert_eq!(pi2.on_enqueue(&packet(Ecn::NotEct), two, Instant::ZERO, &mut rng), Verdict::Pass);
        assert_eq!(rng, before);
        let more = Backlog { packets: 3, bytes: 2001 };
        assert_eq!(pi2.on_enqueue(&packet(Ecn::NotEct), more, Instant::ZERO, &mut rng), Verdict::Drop);
    }

    #[test]
    fn a_coupling_below_one_is_refused() {
        assert_eq!(AqmConfig::validate(&Config { coupling: 0.9, ..Config::default() }).unwrap_err().key, "coupling");
    }
}
