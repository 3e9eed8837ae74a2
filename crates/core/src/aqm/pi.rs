//! PI: a proportional-integral controller steers the drop probability so that the queue settles at a reference length.
//!
//! Source: Hollot, Misra, Towsley, Gong, "On designing improved controllers for AQM routers supporting TCP flows",
//! INFOCOM 2001, §IV. With RED the queue length depends on the load. The integral part removes that dependence: p is in
//! equilibrium only at q = q_ref.
//!
//! ```text
//! p(kT) = p((k-1)T) + a (q(kT) - q_ref) - b (q((k-1)T) - q_ref), within [0, 1]        T = 1/160 s
//! ```
//!
//! Arrivals are dropped, or marked, with probability p; q is the current queue and not an average. One random number is
//! drawn per arrival with 0 < p < 1.
//!
//! The coefficients a and b are computed for T: the paper samples at 160 Hz (`interval` 6.25 ms). ns-2 uses these
//! coefficients as well, but samples at 170 Hz (5.882353 ms). q_ref = 50 packets is the default of ns-2.
//!
//! No timer runs. Samples are taken later, at the next arrival or departure, with the queue that they would have seen
//! (see `ticks.rs`). The test `samples_taken_late_are_the_same` compares with a clock that misses no sample. A sample
//! takes a few nanoseconds; once a sample changes nothing (p at 0 or 1), all further ones are skipped.

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

/// Parameters of PI. Defaults are those of the paper (§V) and of ns-2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Weight of the newest sample, per packet (§V: 1.822e-5).
    pub a: f64,
    /// Weight of the previous sample, per packet; below a (§V: 1.816e-5).
    pub b: f64,
    /// Queue length to hold, q_ref; if it is in bytes, the queue is counted in bytes / mean_packet (ns-2: 50 packets).
    pub reference: Limit,
    /// Time between samples, T (§V: 1/160 s; ns-2: 1/170 s).
    pub interval: Span,
    /// Bytes that count as one packet if reference is in bytes (ns-2: 500 B).
    pub mean_packet: Bytes,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            a: 1.822e-5,
            b: 1.816e-5,
            reference: Limit::Packets(50),
            interval: Span::from_micros(6250),
            mean_packet: Bytes::new(500),
            ecn: false,
        }
    }
}

impl AqmConfig for Config {
    type Aqm = Pi;

    fn validate(&self) -> Result<(), ConfigError> {
        if !(self.a > 0.0 && self.a <= 1.0) {
            return Err(ConfigError::new("a", "must be above 0 and at most 1"));
        }
        if !(self.b >= 0.0 && self.b < self.a) {
            return Err(ConfigError::new("b", format!("must be 0 or more and below a ({})", self.a)));
        }
        if self.interval == Span::ZERO {
            return Err(ConfigError::new("interval", "must be above 0"));
        }
        if self.mean_packet == Bytes::ZERO {
            return Err(ConfigError::new("mean_packet", "must be above 0B"));
        }
        Ok(())
    }

    fn aqm(&self, _: &LinkFacts) -> Pi {
        Pi::new(self)
    }
}

/// The state of PI.
#[derive(Debug, Clone, PartialEq)]
pub struct Pi {
    a: f64,
    b: f64,
    reference: f64,
    /// Bytes that count as one packet; `None` when packets are counted.
    unit: Option<f64>,
    ecn: bool,
    ticks: Ticks,
    p: f64,
    /// Queue length at the last sample, in packets.
    q_old: f64,
}

impl Pi {
    /// Creates the state of an empty queue, with p = 0.
    pub fn new(config: &Config) -> Self {
        let mean = config.mean_packet.get() as f64;
        let (reference, unit) = match config.reference {
            Limit::Packets(n) => (n as f64, None),
            Limit::Bytes(bytes) => (bytes.get() as f64 / mean, Some(mean)),
        };
        Self {
            a: config.a,
            b: config.b,
            reference,
            unit,
            ecn: config.ecn,
            ticks: Ticks::every(config.interval),
            p: 0.0,
            q_old: 0.0,
        }
    }

    /// Returns the drop probability as of the last sample that was taken, 0 to 1.
    pub fn probability(&self) -> f64 {
        self.p
    }

    /// Takes one sample of a queue of `q` packets. Returns false if nothing changed, so that no further sample of this
    /// queue will change anything.
    fn sample(&mut self, q: f64) -> bool {
        let change = self.a * (q - self.reference) - self.b * (self.q_old - self.reference);
        let p = (self.p + change).clamp(0.0, 1.0);
        let moved = p != self.p || q != self.q_old;
        (self.p, self.q_old) = (p, q);
        moved
    }

    /// Takes the samples due up to `now`, all of which see this queue.
    #[inline]
    fn catch_up(&mut self, backlog: Backlog, now: Instant) {
        let due = self.ticks.due(now);
        if due == 0 {
            return;
        }
        let q = match self.unit {
            None => backlog.packets as f64,
            Some(mean) => backlog.bytes as f64 / mean,
        };
        for _ in 0..due {
            if !self.sample(q) {
                break;
            }
        }
    }
}

impl Aqm for Pi {
    const WAKES: bool = true;

    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.catch_up(backlog, now);
        if self.p <= 0.0 || (self.p < 1.0 && rng.uniform() >= self.p) {
            return Verdict::Pass;
        }
        if self.ecn && packet.ecn.is_capable() { Verdict::Mark } else { Verdict::Drop }
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, _: Span, mut backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        backlog.add(packet.size); // samples due by now saw the queue before this departure
        self.catch_up(backlog, now);
        Verdict::Pass
    }

    fn next_wakeup(&self) -> Option<Instant> {
        (self.p > 0.0 || self.q_old > 0.0).then(|| self.ticks.latest())
    }

    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        self.catch_up(backlog, now);
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl AckPath for Pi {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    fn packet(ecn: Ecn) -> Meta {
        Meta { size: Bytes::new(500), ecn, flow: FlowId(0) }
    }

    fn queue(packets: u64) -> Backlog {
        Backlog { packets, bytes: packets * 500 }
    }

    fn at_sample(k: u64) -> Instant {
        Instant::ZERO + Span::from_micros(6250) * k
    }

    /// 150 packets: 1.822e-5 * 100 + 1.816e-5 * 50 = 0.00273; still 150: + 6e-8 * 100; then none: - 1.822e-5 * 50 -
    /// 1.816e-5 * 100 = - 0.002727; still none: - 6e-8 * 50 each time, and never below 0.
    #[test]
    fn samples_follow_the_equation() {
        for reference in [Limit::Packets(50), Limit::Bytes(Bytes::new(25_000))] {
            let mut pi = Pi::new(&Config { reference, ..Config::default() });
            let seen = [(150, 0.00273), (150, 0.002736), (0, 9e-6), (0, 6e-6), (0, 3e-6), (0, 0.0), (0, 0.0)];
            for (k, (packets, p)) in (1..).zip(seen) {
                pi.on_wakeup(queue(packets), at_sample(k));
                assert!((pi.probability() - p).abs() < 1e-12, "sample {k}: {} instead of {p}", pi.probability());
            }
        }
    }

    #[test]
    fn the_probability_stays_within_0_and_1() {
        let mut pi = Pi::new(&Config { a: 0.02, b: 0.01, ..Config::default() });
        pi.on_wakeup(queue(1_000_000), at_sample(1));
        assert_eq!(pi.probability(), 1.0);
        pi.on_wakeup(queue(0), at_sample(2));
        assert_eq!(pi.probability(), 0.0);
    }

    /// Between samples p is constant: 10,000 arrivals at p = 0.25 give 2500 signals, with a deviation of 43.
    #[test]
    fn arrivals_die_at_that_rate_or_are_marked() {
        let mut rng = Streams::new(1).get("t");
        for (ecn, field, signal) in [(false, Ecn::Ect0, Verdict::Drop), (true, Ecn::Ect0, Verdict::Mark)] {
            let mut pi = Pi { p: 0.25, ..Pi::new(&Config { ecn, ..Config::default() }) };
            let judge = |_: &u32| pi.on_enqueue(&packet(field), queue(50), Instant::ZERO, &mut rng) == signal;
            let signals = (0..10_000).filter(judge).count();
            assert!((2285..=2715).contains(&signals), "{signals}");
        }
        let mut pi = Pi { p: 1.0, ..Pi::new(&Config { ecn: true, ..Config::default() }) };
        assert_eq!(pi.on_enqueue(&packet(Ecn::NotEct), queue(50), Instant::ZERO, &mut rng), Verdict::Drop);
    }

    #[test]
    fn an_idle_queue_asks_for_nothing() {
        let mut pi = Pi::new(&Config::default());
        assert_eq!(pi.next_wakeup(), None);
        pi.on_wakeup(queue(150), at_sample(1));
        assert_eq!(pi.next_wakeup(), Some(at_sample(1 + 4096)));
        // 0.00273 is worn off by 3e-6 a sample, after 911 of them.
        pi.on_wakeup(queue(0), at_sample(1 + 4096));
        assert_eq!(pi.next_wakeup(), None);
    }

    /// After 150 packets twice and none once p is 9e-6, see `samples_follow_the_equation`: it still falls, though the queue
    /// is empty and was when it was last seen.
    #[test]
    fn an_empty_queue_asks_while_its_probability_falls() {
        let mut pi = Pi::new(&Config::default());
        for (k, packets) in (1..).zip([150, 150, 0]) {
            pi.on_wakeup(queue(packets), at_sample(k));
        }
        assert_eq!(pi.next_wakeup(), Some(at_sample(3 + 4096)));
    }

    proptest! {
        /// Steps are (time to the next, packets that come or go at it); the reference samples at every tick.
        #[test]
        fn samples_taken_late_are_the_same(
            steps in prop::collection::vec((0..200_000u64, -3..40i64), 0..60),
            interval_us in 1..20_000u64,
            strength in 1.0..2000.0f64,
        ) {
            let interval = Span::from_micros(interval_us);
            let config = Config { a: 1.822e-5 * strength, b: 1.816e-5 * strength, interval, ..Config::default() };
            let (mut late, mut rng) = (Pi::new(&config), Streams::new(1).get("t"));
            let (mut now, mut packets, mut tick, mut p, mut q_old) = (Instant::ZERO, 0u64, Instant::ZERO, 0.0f64, 0.0);
            for (wait_us, change) in steps {
                now += Span::from_micros(wait_us);
                while tick + interval <= now {
                    tick += interval;
                    let q = packets as f64;
                    p = (p + (config.a * (q - 50.0) - config.b * (q_old - 50.0))).clamp(0.0, 1.0);
                    q_old = q;
                }
                if change < 0 && packets > 0 {
                    packets -= 1;
                    late.on_dequeue(&packet(Ecn::NotEct), Span::ZERO, queue(packets), now, &mut rng);
                } else {
                    late.on_enqueue(&packet(Ecn::NotEct), queue(packets), now, &mut rng);
                    packets += change.max(0) as u64;
                }
                prop_assert_eq!(late.probability(), p);
            }
        }
    }
}
