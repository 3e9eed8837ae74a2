//! PIE: drops arrivals with a probability that a proportional integral controller sets to hold the delay at a target.
//!
//! Source: RFC 8033 §4, §5, Appendices A and B. Every `tupdate` the probability moves by how far the delay is from the
//! target and by how much it changed. The smaller the probability, the smaller the step, so that the controller is
//! neither slow at high rates nor unstable at low ones.
//!
//! ```text
//! p     = alpha (qdelay - target) + beta (qdelay - qdelay_old)                                             §4.2
//! p     = p / 2048, 512, 128, 32, 8, 2      drop_prob < 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1                  §4.2
//! p     = 0.02 if above that                drop_prob >= 0.1                                               §5.5
//! p     = p + 0.02                          qdelay > high_delay
//! drop_prob = drop_prob + p, times 0.98 if qdelay = qdelay_old = 0, within 0..1                            §4.2
//! burst     = burst - tupdate; max_burst again if drop_prob = 0, qdelay and qdelay_old < target / 2        §4.4
//! accu      = accu + drop_prob; below 0.85 pass, from 8.5 drop, in between drop with drop_prob; 0 after a drop  §5.4
//! qdelay    = sojourn time of the last departure, or backlog * avg_dq_time / dq_threshold                  §4.3, §5.2
//! ```
//!
//! A packet passes without further test while `burst` lasts, if `qdelay_old < target / 2` and `drop_prob < 0.2`, or if
//! at most two mean packets wait (§4.1, §4.4). With `ecn`, a capable packet is marked while `drop_prob < ecn_threshold`
//! (§5.1). One random number is drawn for each packet that neither these rules nor `accu` decide.
//!
//! The RFC does not say when the timer starts. Updates come at whole multiples of `tupdate`; one at 0, as in ns-3,
//! would find an empty queue and change nothing. No wakeups are needed: see `control.rs`.
//!
//! With `compat = "linux"` the arithmetic is that of the kernel: see `pie/linux.rs`.
//!
//! DIFFERENCE: `high_delay` is Linux's rule; a long span turns it off. Pinned by `above_250_ms_two_percent_more`.
//! DIFFERENCE: a departure that leaves the queue empty makes the timestamp delay zero, as in Linux and ns-3. The RFC
//! does not say so, and the last delay would then last for ever. Pinned by `an_empty_queue_has_no_delay`.
//! DIFFERENCE: in the RFC a full queue refuses a packet without judging it; here the packet is judged first, so it may
//! count as an early drop. The further state is equal, since both restart `accu`. Pinned by
//! `an_overflow_restarts_the_accumulation`.
//!
//! Cost: O(1) per packet; an update every `tupdate`.

use super::control::{Law, Periodic, Pi, before_departure};
use super::{Aqm, Compat, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, FlowQueues, LinkFacts, Overflow};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Span};
use delay::Delay;
pub use delay::Estimator;
use linux::Linux;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) mod delay;
mod linux;
#[cfg(test)]
mod tests;

/// Shortest `tupdate` of the algorithms with a periodic update.
pub(super) const MIN_TUPDATE: Span = Span::from_micros(100);
/// §4.1: nothing is dropped while the probability is below this and the delay below half the target.
const LOW_PROBABILITY: f64 = 0.2;
/// §5.5: steps are capped from this probability on.
const CAP_FROM: f64 = 0.1;
/// §5.5: the largest step; also what a delay above `high_delay` adds.
const CAP: f64 = 0.02;
/// §4.2: factor of the probability at an update of an idle queue.
const DECAY: f64 = 0.98;
/// §5.4: no drop below this accumulated probability.
const ACCU_LOW: f64 = 0.85;
/// §5.4: from this accumulated probability on, a packet is dropped.
const ACCU_HIGH: f64 = 8.5;

/// Parameters of PIE. Defaults are those of RFC 8033, of Linux and of ns-3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Queueing delay to hold, QDELAY_REF (RFC 8033 §4.2: 15ms).
    pub target: Span,
    /// Time between updates, T_UPDATE (§4.2: 15ms).
    pub tupdate: Span,
    /// Gain on the distance from the target, in 1/s (§4.2: 0.125).
    pub alpha: f64,
    /// Gain on the change of the delay, in 1/s (§4.2: 1.25).
    pub beta: f64,
    /// For how long a burst passes after an idle time, MAX_BURST (§4.4: 150ms).
    pub max_burst: Span,
    /// Mean packet size, MEAN_PKTSIZE; nothing is dropped while at most two such packets wait (ns-3: 1000B).
    pub mean_packet: Bytes,
    /// How the delay is measured: "timestamps" or "departure-rate" (§4.3; Linux and ns-3: timestamps).
    pub estimator: Estimator,
    /// Bytes of a measurement cycle of "departure-rate", DQ_THRESHOLD (§5.2: 16 KiB).
    pub dq_threshold: Bytes,
    /// Space drops evenly by an accumulated probability (§5.4).
    pub derandomize: bool,
    /// Scale the probability of packets below mean_packet by their size (§4.1).
    pub bytemode: bool,
    /// Above this delay each update adds 2 % to the probability (Linux: 250ms).
    pub high_delay: Span,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Probability from which on ECN-capable packets are dropped as well, mark_ecnth (§5.1: 0.1).
    pub ecn_threshold: f64,
    /// Whose arithmetic is used: that of the "rfc", or that of Linux 6.18 ("linux").
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            tupdate: Span::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Span::from_millis(150),
            mean_packet: Bytes::new(1000),
            estimator: Estimator::Timestamps,
            dq_threshold: Bytes::new(1 << 14),
            derandomize: true,
            bytemode: false,
            high_delay: Span::from_millis(250),
            ecn: false,
            ecn_threshold: 0.1,
            compat: Compat::Source,
        }
    }
}

/// Checks the parameters that all controllers of delay have: target, time between updates and gains.
pub(super) fn validate_controller(
    target: Span,
    tupdate: Span,
    gains: [(&'static str, f64); 2],
) -> Result<(), ConfigError> {
    if target == Span::ZERO {
        return Err(ConfigError::new("target", "must be above 0"));
    }
    if tupdate < MIN_TUPDATE {
        return Err(ConfigError::new("tupdate", format!("must be at least {MIN_TUPDATE}")));
    }
    for (key, gain) in gains {
        if !(gain > 0.0 && gain <= 1000.0) {
            return Err(ConfigError::new(key, "must be above 0 and at most 1000 (1/s)"));
        }
    }
    Ok(())
}

impl AqmConfig for Config {
    type Aqm = Pie;

    fn validate(&self) -> Result<(), ConfigError> {
        validate_controller(self.target, self.tupdate, [("alpha", self.alpha), ("beta", self.beta)])?;
        if self.mean_packet == Bytes::ZERO {
            return Err(ConfigError::new("mean_packet", "must be above 0B"));
        }
        delay::validate_threshold(self.dq_threshold)?;
        if !(0.0..=1.0).contains(&self.ecn_threshold) {
            return Err(ConfigError::new("ecn_threshold", "must be from 0 to 1"));
        }
        match self.compat {
            Compat::Source => Ok(()),
            Compat::Linux => linux::validate(self),
        }
    }

    fn aqm(&self, _: &LinkFacts) -> Pie {
        match self.compat {
            Compat::Source => Pie(Arithmetic::Rfc(Rfc::new(self, Fixed(self.target.as_secs_f64())))),
            Compat::Linux => Pie(Arithmetic::Linux(Linux::new(self))),
        }
    }

    /// sch_fq_pie refuses the packet that finds no room (Patil 2020, Algorithm 7).
    fn per_flow_in_linux(queues: &mut FlowQueues) {
        queues.overflow = Overflow::Arrival;
    }
}

/// The state of PIE, in the arithmetic of the RFC or of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Pie(Arithmetic);

#[derive(Debug, Clone, PartialEq)]
enum Arithmetic {
    /// Floating point, with the rules of the RFC.
    Rfc(Rfc<Fixed>),
    /// PIE in fixed point, by the rules of the Linux kernel.
    Linux(Linux),
}

/// The target of the queueing delay, which may move.
pub(super) trait Reference: Clone + PartialEq {
    /// Returns the target in seconds.
    fn target(&self) -> f64;
    /// Notes that a packet of `size` left the queue.
    fn departed(&mut self, size: Bytes);
    /// Moves the target before an update with a delay of `qdelay` seconds.
    fn adapt(&mut self, qdelay: f64, delay: &Delay);
}

/// PIE's target, which does not move.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fixed(f64);

impl Reference for Fixed {
    #[inline]
    fn target(&self) -> f64 {
        self.0
    }
    #[inline]
    fn departed(&mut self, _: Bytes) {}
    fn adapt(&mut self, _: f64, _: &Delay) {}
}

/// PIE by the RFC, with a fixed or moving target.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rfc<R> {
    timer: Periodic<Control<R>>,
}

/// The state of PIE, with the names of the RFC.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Control<R> {
    reference: R,
    delay: Delay,
    pi: Pi,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: Span,
    tupdate: Span,
    max_burst: Span,
    high_delay: f64,
    ecn_threshold: f64,
    mean_packet: u64,
    derandomize: bool,
    bytemode: bool,
    ecn: bool,
}

/// Returns the divisor of the step at this probability (§4.2).
fn auto_tune(drop_prob: f64) -> f64 {
    match drop_prob {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

impl<R: Reference> Rfc<R> {
    /// Creates the state before the first packet. `config` gives all parameters but the target.
    pub(super) fn new(config: &Config, reference: R) -> Self {
        let control = Control {
            reference,
            delay: Delay::new(config.estimator, config.dq_threshold),
            pi: Pi::new(config.alpha, config.beta),
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: Span::ZERO,
            tupdate: config.tupdate,
            max_burst: config.max_burst,
            high_delay: config.high_delay.as_secs_f64(),
            ecn_threshold: config.ecn_threshold,
            mean_packet: config.mean_packet.get(),
            derandomize: config.derandomize,
            bytemode: config.bytemode,
            ecn: config.ecn,
        };
        Self { timer: Periodic::new(control, config.tupdate, config.tupdate) }
    }

    /// The state, to read it.
    #[cfg(test)]
    pub(super) fn control(&self) -> &Control<R> {
        &self.timer.law
    }
}

impl<R: Reference> Law for Control<R> {
    type Queue = Backlog;

    /// Makes one update: `calculate_drop_prob()` of Appendix A.
    fn update(&mut self, backlog: Backlog, _: Instant) {
        let (qdelay, qdelay_old) = (self.delay.of(backlog.bytes), self.pi.qdelay_old);
        self.reference.adapt(qdelay, &self.delay);
        let mut p = self.pi.step(qdelay, self.reference.target()) / auto_tune(self.drop_prob);
        // §5.5: at a high probability the step is small, so that the probability does not overshoot.
        if self.drop_prob >= CAP_FROM && p > CAP {
            p = CAP;
        }
        // Linux: a very long delay raises the probability at once.
        if qdelay > self.high_delay {
            p += CAP;
        }
        let mut drop_prob = self.drop_prob + p;
        // §4.2: the probability decays exponentially while there is no congestion.
        if qdelay == 0.0 && qdelay_old == 0.0 {
            drop_prob *= DECAY;
        }
        self.drop_prob = drop_prob.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(self.tupdate);
    }
}

impl<R: Reference> Control<R> {
    /// Returns the target, to read its state.
    #[cfg(test)]
    pub(super) fn reference(&self) -> &R {
        &self.reference
    }

    /// Judges an arrival: `enque()` of Appendix B, without the tail drop.
    #[inline]
    fn judge(&mut self, packet: &Meta, backlog: Backlog, rng: &mut Rng) -> Verdict {
        let half = self.reference.target() / 2.0;
        let calm = self.pi.qdelay_old < half;
        // §4.4: without congestion the next burst may pass again.
        if self.drop_prob == 0.0 && calm && self.delay.of(backlog.bytes) < half {
            self.burst_allowance = self.max_burst;
        }
        let spared = self.burst_allowance > Span::ZERO
            || (calm && self.drop_prob < LOW_PROBABILITY)
            || backlog.bytes <= 2 * self.mean_packet;
        if spared || !self.drop_early(packet.size, rng) {
            return Verdict::Pass;
        }
        self.accu_prob = 0.0;
        let mark = self.ecn && packet.ecn.is_capable() && self.drop_prob < self.ecn_threshold;
        if mark { Verdict::Mark } else { Verdict::Drop }
    }

    /// Draws whether to drop or mark: `drop_early()` of Appendix B, without its safeguards.
    #[inline]
    fn drop_early(&mut self, size: Bytes, rng: &mut Rng) -> bool {
        let mut p = self.drop_prob;
        if self.bytemode && size.get() <= self.mean_packet {
            p = size.get() as f64 * p / self.mean_packet as f64;
        }
        if self.derandomize {
            self.accu_prob = if self.drop_prob == 0.0 { 0.0 } else { self.accu_prob + p };
            if self.accu_prob < ACCU_LOW {
                return false;
            }
            if self.accu_prob >= ACCU_HIGH {
                return true;
            }
        }
        rng.uniform() < p
    }
}

impl<R: Reference> Rfc<R> {
    #[inline]
    pub(super) fn arrival(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.timer.catch_up(backlog, now);
        self.timer.law.judge(packet, backlog, rng)
    }

    #[inline]
    pub(super) fn departure(&mut self, packet: &Meta, sojourn: Span, left: Backlog, now: Instant) {
        self.timer.catch_up(before_departure(left, packet.size), now);
        let control = &mut self.timer.law;
        control.delay.departed(packet.size, sojourn, left.bytes, now);
        control.reference.departed(packet.size);
    }

    pub(super) fn overflow(&mut self) {
        self.timer.law.accu_prob = 0.0;
    }

    pub(super) fn catch_up(&mut self, backlog: Backlog, now: Instant) {
        self.timer.catch_up(backlog, now);
    }
}

impl Aqm for Pie {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        match &mut self.0 {
            Arithmetic::Rfc(pie) => pie.arrival(packet, backlog, now, rng),
            Arithmetic::Linux(pie) => pie.arrival(packet, backlog, now, rng),
        }
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        match &mut self.0 {
            Arithmetic::Rfc(pie) => pie.departure(packet, sojourn, backlog, now),
            Arithmetic::Linux(pie) => pie.departure(packet, sojourn, backlog, now),
        }
        Verdict::Pass
    }

    fn on_overflow(&mut self, _: Instant) {
        match &mut self.0 {
            Arithmetic::Rfc(pie) => pie.overflow(),
            Arithmetic::Linux(pie) => pie.overflow(),
        }
    }

    fn on_shed(&mut self, backlog: Backlog, now: Instant) {
        self.on_wakeup(backlog, now);
        self.on_overflow(now);
    }

    /// Catches up the updates due by now. PIE needs no wakeups, but an owner that is about to change the queue by other
    /// means than arrivals and departures (a drop from its head, for example) calls this first, so that updates due
    /// until then see the queue as it was.
    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        match &mut self.0 {
            Arithmetic::Rfc(pie) => pie.catch_up(backlog, now),
            Arithmetic::Linux(pie) => pie.catch_up(backlog, now),
        }
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl AckPath for Pie {}
