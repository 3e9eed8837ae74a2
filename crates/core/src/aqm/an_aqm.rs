//! AN-AQM: an adaptive neuron turns the error of the queue and of the arrival rate into a drop probability.
//!
//! Source: Sun and Zukerman, "An adaptive neuron AQM for a stable Internet", NETWORKING 2007; inputs, eq. (1) and
//! (2), and the target ratio from 001 §2 and Table 2.
//!
//! ```text
//! e(k) = q(k) - Q_t                             error of the queue in packets           001 eq. (1)
//! y(k) = r(k) / C - 1                           normalized error of the arrival rate    001 eq. (2)
//! x    = (e, De, DDe, y, Dy, DDy)               D: difference to the sample before; DD: difference of differences
//! p(k) = p(k-1) + K sum(w_i x_i) / sum(w_i)     within [0, 1]
//! w_i  = w_i + d_i e(k) p(k) x_i(k)             Hebbian, with e as the teacher
//! ```
//!
//! The paper itself was not available. Document 001 describes the six inputs and their errors; the equations of p and
//! w_i are those of the supervised Hebbian neuron of control engineering, on which the paper builds. The paper's K,
//! d_i, first weights and sampling time are unknown, so this file derives its values as follows.
//!
//! DIFFERENCE: the neuron starts as the PI controller of Hollot et al. 2001 (a, b, 160 Hz) and learns from there.
//! Between two samples the queue changes by B y packets, B = C T in packets, so the proportional part b is shared
//! evenly by De and B y: gains g = (a - b, b/2, 0, B b/2, 0, 0), K = sum(g), w(0) = g / K. Pinned by
//! `it_begins_as_pi`.
//! DIFFERENCE: the learning rates are scaled by s = (a - b, b/2, b/2, B b/2, B b/2, B b/2) / K: d_i = d s_i / Q_t^2 for
//! the inputs of the queue and d s_i / Q_t for the inputs of the rate, so that d has no unit. Pinned by
//! `weights_follow_hebbs_rule`.
//! DIFFERENCE: weights stay within 0 and 5 s_i. By the rule alone the weight of e can only grow (e p e >= 0), until the
//! controller oscillates, and others can turn negative. Pinned by `weights_stay_within_their_range`.
//! DIFFERENCE: a change of the rate of the link changes C in eq. (2), but not K and the weights. Pinned by
//! `a_new_rate_changes_the_rate_error`.
//!
//! Arrivals are dropped or marked with probability p; one random number is drawn per arrival with 0 < p < 1. No timer
//! runs: samples are taken later, with the result that they would have had (see `ticks.rs`). Cost: O(1); a sample takes
//! about 50 operations.

use super::ticks::Ticks;
use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const INPUTS: usize = 6;
/// The largest value of a weight, in units of its scale s_i.
const MOST_WEIGHT: f64 = 5.0;

/// Parameters of AN-AQM. Defaults are those of 001 and of PI; the learning rate is derived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Queue to hold, as a part of the queue's limit (001 Table 2: 0.3).
    pub target_ratio: f64,
    /// Time between samples (PI: 1/160 s; the paper's is not known).
    pub interval: Span,
    /// Weight of the newest error in the PI controller as which the neuron starts, per packet (PI: 1.822e-5).
    pub a: f64,
    /// Weight of the previous error in that controller, per packet; below a (PI: 1.816e-5).
    pub b: f64,
    /// Learning rate d, without a unit; 0 keeps the PI controller unchanged (the paper's value is not known).
    pub learning: f64,
    /// Mean packet size, for the link's rate in packets, and for a queue limited in bytes.
    pub mean_packet: Bytes,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target_ratio: 0.3,
            interval: Span::from_micros(6250),
            a: 1.822e-5,
            b: 1.816e-5,
            learning: 0.1,
            mean_packet: Bytes::new(1000),
            ecn: false,
        }
    }
}

impl AqmConfig for Config {
    type Aqm = AnAqm;

    fn validate(&self) -> Result<(), ConfigError> {
        if !(self.target_ratio > 0.0 && self.target_ratio <= 1.0) {
            return Err(ConfigError::new("target_ratio", "must be above 0 and at most 1"));
        }
        if self.interval == Span::ZERO {
            return Err(ConfigError::new("interval", "must be above 0"));
        }
        if !(self.a > 0.0 && self.a <= 1.0) {
            return Err(ConfigError::new("a", "must be above 0 and at most 1"));
        }
        if !(self.b >= 0.0 && self.b < self.a) {
            return Err(ConfigError::new("b", format!("must be 0 or more and below a ({})", self.a)));
        }
        if !(0.0..=1000.0).contains(&self.learning) {
            return Err(ConfigError::new("learning", "must be within 0 and 1000"));
        }
        if self.mean_packet == Bytes::ZERO {
            return Err(ConfigError::new("mean_packet", "must be above 0B"));
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> AnAqm {
        AnAqm::new(self, link)
    }
}

/// The adaptive neuron: its weights and how they learn.
#[derive(Debug, Clone, PartialEq)]
struct Neuron {
    k: f64,
    weights: [f64; INPUTS],
    /// Learning rates d_i of the weights.
    rates: [f64; INPUTS],
    /// Largest values of the weights.
    most: [f64; INPUTS],
}

/// The last two values of an error: one and two samples ago.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Past {
    one: f64,
    two: f64,
}

/// The state of AN-AQM.
#[derive(Debug, Clone, PartialEq)]
pub struct AnAqm {
    neuron: Neuron,
    ticks: Ticks,
    interval: Span,
    /// Target queue Q_t in packets.
    target: f64,
    /// Bytes that count as one packet; `None` when packets are counted.
    unit: Option<f64>,
    /// Bytes that the link carries between two samples, C T.
    capacity: f64,
    ecn: bool,
    p: f64,
    e: Past,
    y: Past,
    /// Bytes that arrived since the last sample.
    arrived: u64,
    /// True if the last sample changed nothing, so that no sample will before the next packet arrives or leaves.
    at_rest: bool,
}

impl Neuron {
    /// Creates the neuron of the header, with the link's `packets` per sample (B) and a `target` in packets.
    fn new(config: &Config, packets: f64, target: f64) -> Self {
        let (integral, half) = (config.a - config.b, config.b / 2.0);
        let rate = packets * half;
        let k = integral + half + rate;
        let scales = [integral, half, half, rate, rate, rate].map(|gain| gain / k);
        let (queue, flow) = (config.learning / (target * target), config.learning / target);
        let units = [queue, queue, queue, flow, flow, flow];
        Self {
            k,
            weights: [scales[0], scales[1], 0.0, scales[3], 0.0, 0.0],
            rates: std::array::from_fn(|i| scales[i] * units[i]),
            most: scales.map(|scale| MOST_WEIGHT * scale),
        }
    }

    /// Returns the change of p: K sum(w_i x_i) / sum(w_i).
    fn output(&self, x: &[f64; INPUTS]) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for (w, x) in self.weights.iter().zip(x) {
            sum += w * x;
            total += w;
        }
        self.k * sum / total
    }

    /// Updates the weights by Hebb's rule and keeps them within their ranges.
    fn learn(&mut self, e: f64, p: f64, x: &[f64; INPUTS]) {
        for (i, w) in self.weights.iter_mut().enumerate() {
            *w = (*w + self.rates[i] * e * p * x[i]).clamp(0.0, self.most[i]);
        }
    }
}

impl Past {
    /// Returns the value `now` and its first two differences, and remembers the value.
    fn differences(&mut self, now: f64) -> [f64; 3] {
        let inputs = [now, now - self.one, now - 2.0 * self.one + self.two];
        *self = Self { one: now, two: self.one };
        inputs
    }
}

impl AnAqm {
    /// Creates the state of an empty queue before the first arrival, with p = 0.
    pub fn new(config: &Config, link: &LinkFacts) -> Self {
        let mean = config.mean_packet.get() as f64;
        let (most, unit) = match link.limit {
            Limit::Packets(n) => (n as f64, None),
            Limit::Bytes(bytes) => (bytes.get() as f64 / mean, Some(mean)),
        };
        let target = config.target_ratio * most;
        let capacity = link.rate.bytes_per_sec() * config.interval.as_secs_f64();
        Self {
            neuron: Neuron::new(config, capacity / mean, target),
            ticks: Ticks::every(config.interval),
            interval: config.interval,
            target,
            unit,
            capacity,
            ecn: config.ecn,
            p: 0.0,
            e: Past { one: -target, two: -target },
            y: Past { one: -1.0, two: -1.0 },
            arrived: 0,
            at_rest: true,
        }
    }

    /// Returns the drop probability as of the last sample that was taken, 0 to 1.
    pub fn probability(&self) -> f64 {
        self.p
    }

    /// Takes one sample of a queue of `q` packets. Returns false if nothing changed, so that no further sample of this
    /// queue will change anything.
    fn sample(&mut self, q: f64) -> bool {
        let before = (self.p, self.e, self.y, self.neuron.weights);
        let arrived = std::mem::take(&mut self.arrived);
        let e = q - self.target;
        let y = arrived as f64 / self.capacity - 1.0;
        let ([x1, x2, x3], [x4, x5, x6]) = (self.e.differences(e), self.y.differences(y));
        let x = [x1, x2, x3, x4, x5, x6];
        self.p = (self.p + self.neuron.output(&x)).clamp(0.0, 1.0);
        // The rule uses p(k), so the weights learn after p has moved.
        self.neuron.learn(e, self.p, &x);
        arrived > 0 || before != (self.p, self.e, self.y, self.neuron.weights)
    }

    /// Takes the samples due up to `now`, all of which see this queue. The first sample counts all arrivals since the
    /// last.
    #[inline]
    fn catch_up(&mut self, backlog: Backlog, now: Instant) {
        let due = self.ticks.due(now);
        if due > 0 {
            self.take_samples(due, backlog);
        }
    }

    fn take_samples(&mut self, due: u64, backlog: Backlog) {
        let q = match self.unit {
            None => backlog.packets as f64,
            Some(mean) => backlog.bytes as f64 / mean,
        };
        for _ in 0..due {
            self.at_rest = !self.sample(q);
            if self.at_rest {
                break;
            }
        }
    }
}

impl Aqm for AnAqm {
    const WAKES: bool = true;

    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.catch_up(backlog, now);
        self.arrived += packet.size.get();
        self.at_rest = false;
        if self.p <= 0.0 || (self.p < 1.0 && rng.uniform() >= self.p) {
            return Verdict::Pass;
        }
        if self.ecn && packet.ecn.is_capable() { Verdict::Mark } else { Verdict::Drop }
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, _: Span, mut backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        backlog.add(packet.size); // samples due by now saw the queue before this departure
        self.catch_up(backlog, now);
        self.at_rest = false;
        Verdict::Pass
    }

    fn next_wakeup(&self) -> Option<Instant> {
        (!self.at_rest).then(|| self.ticks.latest())
    }

    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        self.catch_up(backlog, now);
    }

    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        if let Fact::Rate(rate) = *fact {
            self.capacity = rate.bytes_per_sec() * self.interval.as_secs_f64();
        }
    }
}

impl AckPath for AnAqm {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use crate::units::Rate;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    /// B = 10 packets of 1000 B in 6.25 ms; Q_t = 30.
    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(12_800_000), limit: Limit::Packets(100) };

    fn neuron(learning: f64) -> AnAqm {
        let config = Config { learning, ..Config::default() };
        config.validate().unwrap();
        AnAqm::new(&config, &LINK)
    }

    fn packet(ecn: Ecn) -> Meta {
        Meta { size: Bytes::new(1000), ecn, flow: FlowId(0) }
    }

    fn queue(packets: u64) -> Backlog {
        Backlog { packets, bytes: packets * 1000 }
    }

    /// Sample `k`, which sees a queue and what arrived, both in packets.
    fn sample(aqm: &mut AnAqm, k: u64, packets: u64, arrived: u64) {
        aqm.arrived = arrived * 1000;
        aqm.on_wakeup(queue(packets), Instant::ZERO + Span::from_micros(6250) * k);
    }

    /// 40 packets after none: e = 10, De = 40. 20 arrived where 10 can be sent: y = 1. By hand
    ///
    /// ```text
    /// 6e-8 * 10 + 0.908e-5 * 40 + 10 * 0.908e-5 * 1  = 4.546e-4
    /// 50, 20 arrived: 6e-8 * 20 + 0.908e-5 * 10 + 0.908e-4 * 1 = 1.828e-4, which is PI's a 20 - b 10
    /// 50, 10 arrived: 6e-8 * 20 = 1.2e-6, PI's too
    /// ```
    #[test]
    fn it_begins_as_pi() {
        let mut aqm = neuron(0.0);
        let mut p = 0.0;
        let seen = [(40, 20, 4.546e-4), (50, 20, 1.828e-4), (50, 10, 1.2e-6)];
        for (k, (packets, arrived, change)) in (1..).zip(seen) {
            p += change;
            sample(&mut aqm, k, packets, arrived);
            assert!((aqm.probability() - p).abs() < 1e-12, "sample {k}: {} instead of {p}", aqm.probability());
        }
        assert!((1.822e-5f64 * 20.0 - 1.816e-5 * 10.0 - 1.828e-4).abs() < 1e-15);
    }

    /// The first sample above again: e / Q_t = 1/3, p = 4.546e-4; x / unit = 1/3, 4/3, 4/3 (DDe = 10 + 60 - 30 = 40),
    /// 1, 2, 2 (DDy = 1 + 2 - 1). Each weight grows by d p / 3 of its scale, times that.
    #[test]
    fn weights_follow_hebbs_rule() {
        let mut aqm = neuron(100.0);
        let before = aqm.neuron.clone();
        sample(&mut aqm, 1, 40, 20);
        for (i, x) in [1.0 / 3.0, 4.0 / 3.0, 4.0 / 3.0, 1.0, 2.0, 2.0].into_iter().enumerate() {
            let scale = before.most[i] / 5.0;
            let grown = (aqm.neuron.weights[i] - before.weights[i]) / scale;
            assert!((grown - 100.0 * 4.546e-4 / 3.0 * x).abs() < 1e-9, "weight {i} grew by {grown}");
        }
        // K = 6e-8 + 0.908e-5 + 9.08e-5.
        assert!((before.k - 9.994e-5).abs() < 1e-15);
        assert!((before.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    /// The change is K times a weighted mean, so it does not depend on the scale of the weights.
    #[test]
    fn only_proportions_of_weights_count() {
        let mut neuron = neuron(0.1).neuron;
        let x = [1.0, -2.0, 3.0, 4.0, -5.0, 6.0];
        let change = neuron.output(&x);
        neuron.weights.iter_mut().for_each(|w| *w *= 8.0);
        assert!(change != 0.0 && (neuron.output(&x) - change).abs() < 1e-15 * change.abs());
        neuron.weights = [2.0; INPUTS];
        assert!((neuron.output(&x) - neuron.k * 7.0 / 6.0).abs() < 1e-15, "K times the mean of the inputs");
    }

    /// The queue is held while exactly the link's rate arrives: with Dx = 0 and y = 0, p moves by the integral part
    /// only, up above the target and down below it, and rests at it.
    #[test]
    fn p_rests_only_at_the_target() {
        for (packets, sign) in [(60, 1.0), (30, 0.0), (20, -1.0)] {
            let mut aqm = neuron(0.1);
            aqm.p = 0.5;
            sample(&mut aqm, 1, packets, 10);
            sample(&mut aqm, 2, packets, 10);
            let before = aqm.probability();
            sample(&mut aqm, 3, packets, 10);
            let change = aqm.probability() - before;
            assert!(if sign == 0.0 { change == 0.0 } else { change * sign > 0.0 }, "{change} at {packets}");
        }
    }

    #[test]
    fn a_limit_in_bytes_gives_a_target_in_bytes() {
        let link = LinkFacts { limit: Limit::Bytes(Bytes::new(100_000)), ..LINK };
        let mut in_bytes = AnAqm::new(&Config { learning: 0.0, ..Config::default() }, &link);
        sample(&mut in_bytes, 1, 40, 20);
        assert!((in_bytes.probability() - 4.546e-4).abs() < 1e-12);
    }

    /// Between samples p is constant: 10,000 arrivals at p = 0.25 give 2500 signals, with a deviation of 43.
    #[test]
    fn arrivals_die_at_that_rate_or_are_marked() {
        let mut rng = Streams::new(1).get("t");
        for (ecn, signal) in [(false, Verdict::Drop), (true, Verdict::Mark)] {
            let mut aqm = AnAqm { p: 0.25, ecn, ..neuron(0.1) };
            let judge = |_: &u32| aqm.on_enqueue(&packet(Ecn::Ect0), queue(50), Instant::ZERO, &mut rng) == signal;
            let signals = (0..10_000).filter(judge).count();
            assert!((2285..=2715).contains(&signals), "{signals}");
        }
    }

    #[test]
    fn an_idle_queue_comes_to_rest() {
        let mut aqm = neuron(0.1);
        assert_eq!(aqm.next_wakeup(), None);
        sample(&mut aqm, 1, 90, 30);
        assert!(aqm.probability() > 0.0);
        let due = aqm.next_wakeup().unwrap();
        aqm.on_wakeup(queue(0), due);
        assert_eq!((aqm.probability(), aqm.next_wakeup()), (0.0, None));
    }

    /// Three equal samples at p = 0 leave the state as it is, but the fourth sees that nothing more comes.
    #[test]
    fn steady_arrivals_are_no_rest() {
        let mut aqm = neuron(0.0);
        for k in 1..=4 {
            sample(&mut aqm, k, 1, 5);
        }
        assert_eq!(aqm.probability(), 0.0);
        assert!(aqm.next_wakeup().is_some());
        sample(&mut aqm, 5, 1, 0);
        assert_eq!(aqm.y.one, -1.0);
    }

    #[test]
    fn a_new_rate_changes_the_rate_error() {
        let mut aqm = neuron(0.0);
        aqm.on_fact(&Fact::Rate(Rate::from_bps(25_600_000)), Instant::ZERO);
        sample(&mut aqm, 1, 40, 20);
        // y = 0 now: 6e-8 * 10 + 0.908e-5 * 40.
        assert!((aqm.probability() - 3.638e-4).abs() < 1e-12);
    }

    #[test]
    fn values_that_cannot_work_are_refused_by_name() {
        let d = Config::default;
        for (config, key) in [
            (Config { target_ratio: 0.0, ..d() }, "target_ratio"),
            (Config { interval: Span::ZERO, ..d() }, "interval"),
            (Config { a: f64::NAN, ..d() }, "a"),
            (Config { b: 1.0, ..d() }, "b"),
            (Config { learning: -0.1, ..d() }, "learning"),
            (Config { mean_packet: Bytes::ZERO, ..d() }, "mean_packet"),
        ] {
            assert_eq!(config.validate().unwrap_err().key, key);
        }
    }

    proptest! {
        #[test]
        fn weights_stay_within_their_range(
            life in prop::collection::vec((0u64..100, 0u64..50), 1..300),
            learning in 0.0..1000.0f64,
        ) {
            let mut aqm = neuron(learning);
            for (k, (packets, arrived)) in (1..).zip(life) {
                sample(&mut aqm, k, packets, arrived);
                prop_assert!((0.0..=1.0).contains(&aqm.probability()));
                let weights = aqm.neuron.weights;
                prop_assert!(weights[0] > 0.0);
                for (w, most) in weights.iter().zip(aqm.neuron.most) {
                    prop_assert!((0.0..=most).contains(w), "{weights:?}");
                }
            }
        }

        /// A clock that never misses a sample, and one that takes them late. Steps are (time to the next, packets that
        /// come, or go if negative).
        #[test]
        fn samples_taken_late_are_the_same(steps in prop::collection::vec((0..100_000u64, -3..10i64), 0..60)) {
            let (mut late, mut exact, mut rng) = (neuron(100.0), neuron(100.0), Streams::new(1).get("t"));
            let (mut now, mut packets, mut tick) = (Instant::ZERO, 0u64, Instant::ZERO + Span::from_micros(6250));
            for (wait_us, change) in steps {
                now += Span::from_micros(wait_us);
                while tick <= now {
                    exact.on_wakeup(queue(packets), tick);
                    tick += Span::from_micros(6250);
                }
                let mut seen = false;
                for _ in 0..change.unsigned_abs() {
                    if change < 0 && packets == 0 {
                        break;
                    }
                    seen = true;
                    packets -= u64::from(change < 0);
                    for aqm in [&mut late, &mut exact] {
                        if change > 0 {
                            aqm.on_enqueue(&packet(Ecn::NotEct), queue(packets), now, &mut rng);
                        } else {
                            aqm.on_dequeue(&packet(Ecn::NotEct), Span::ZERO, queue(packets), now, &mut rng);
                        }
                    }
                    packets += u64::from(change > 0);
                }
                if !seen {
                    continue;
                }
                prop_assert_eq!(late.probability(), exact.probability());
                prop_assert_eq!(&late.neuron, &exact.neuron);
            }
        }
    }

    /// Equation 2: K times the mean of the inputs with their weights. Of equal inputs the mean is any of them, whatever the
    /// neuron has learnt.
    #[test]
    fn the_output_is_k_times_the_weighted_mean_of_the_inputs() {
        let mut neuron = Neuron::new(&Config::default(), 10.0, 30.0);
        for _ in 0..4 {
            assert!((neuron.output(&[2.0; INPUTS]) / (2.0 * neuron.k) - 1.0).abs() < 1e-12);
            neuron.learn(30.0, 0.5, &[5.0; INPUTS]);
        }
        assert!((neuron.weights.iter().sum::<f64>() - 1.0).abs() > 1e-3, "what it learnt changed the weights");
    }
}
