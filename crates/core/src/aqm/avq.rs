//! AVQ: a virtual queue with a smaller, adapted capacity overflows first; each of its losses is a signal.
//!
//! Source: Kunniyur and Srikant, "Analysis and design of an adaptive virtual queue (AVQ) algorithm for active queue
//! management", SIGCOMM 2001, §3, in its form as a token bucket. At each arrival of b bytes, t - s after the one
//! before:
//!
//! ```text
//! VQ = max(VQ - C~ (t - s), 0)
//! if VQ + b > B: mark or drop, else VQ = VQ + b
//! C~ = max(min(C~ + alpha gamma C (t - s), C) - alpha b, 0)
//! ```
//!
//! C is the rate of the link and B the size of its queue; the state of the real queue plays no part. C~ is in
//! equilibrium if bytes arrive at the rate gamma C, so the link settles below full use with its queue nearly empty.
//!
//! The paper marks packets. If a signal is a drop, the paper still lets every arrival change C~, so that senders which
//! do not react drive C~ to 0, and then nothing passes. In ns-2 a dropped arrival does not change C~: `adapt_on_drop =
//! false`. The test `without_reaction_the_paper_starves_and_ns2_passes_gamma_c` shows both.
//!
//! The paper leaves two things open, in which this file follows ns-2: C~ starts at `initial` C with the first arrival,
//! and a limit in packets counts `mean_packet` bytes for each packet.
//! Draws no random numbers. State: two clocks, VQ, C~. Cost: O(1).

use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of AVQ. Defaults are those of the paper (§4) and of ns-2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Speed at which the virtual capacity adapts, alpha, in 1/s (§4: 0.15).
    pub alpha: f64,
    /// Part of the link that is to be used, gamma (§4: 0.98).
    pub gamma: f64,
    /// Virtual capacity at the start, as a part of the link's rate (ns-2: 0.8).
    pub initial: f64,
    /// Bytes that count for one packet if the limit of the queue is in packets (ns-2: 1000 B).
    pub mean_packet: Bytes,
    /// Whether an arrival that is dropped changes the virtual capacity (paper: true, ns-2: false).
    pub adapt_on_drop: bool,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 0.15, gamma: 0.98, initial: 0.8, mean_packet: Bytes::new(1000), adapt_on_drop: true, ecn: false }
    }
}

impl AqmConfig for Config {
    type Aqm = Avq;

    fn validate(&self) -> Result<(), ConfigError> {
        if !(self.alpha > 0.0 && self.alpha <= 1000.0) {
            return Err(ConfigError::new("alpha", "must be above 0 and at most 1000"));
        }
        if !(self.gamma > 0.0 && self.gamma <= 1.0) {
            return Err(ConfigError::new("gamma", "must be above 0 and at most 1"));
        }
        if !(self.initial >= 0.0 && self.initial <= 1.0) {
            return Err(ConfigError::new("initial", "must be from 0 to 1"));
        }
        if self.mean_packet == Bytes::ZERO {
            return Err(ConfigError::new("mean_packet", "must be above 0B"));
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> Avq {
        Avq::new(self, link)
    }
}

/// The times of the last updates of the virtual queue and of the virtual capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Clocks {
    queue: Instant,
    capacity: Instant,
}

/// The state of AVQ. Capacities are in bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub struct Avq {
    alpha: f64,
    gamma: f64,
    initial: f64,
    adapt_on_drop: bool,
    ecn: bool,
    /// Rate C of the link.
    link: f64,
    /// Size B of the queue in bytes.
    buffer: f64,
    /// Virtual capacity C~.
    capacity: f64,
    /// Virtual queue VQ in bytes.
    queue: f64,
    /// Times of the last updates; `None` before the first arrival.
    clocks: Option<Clocks>,
}

impl Avq {
    /// Creates the state before the first arrival, with an empty virtual queue.
    pub fn new(config: &Config, link: &LinkFacts) -> Self {
        let buffer = match link.limit {
            Limit::Packets(n) => n as f64 * config.mean_packet.get() as f64,
            Limit::Bytes(bytes) => bytes.get() as f64,
        };
        Self {
            alpha: config.alpha,
            gamma: config.gamma,
            initial: config.initial,
            adapt_on_drop: config.adapt_on_drop,
            ecn: config.ecn,
            link: link.rate.bytes_per_sec(),
            buffer,
            capacity: config.initial * link.rate.bytes_per_sec(),
            queue: 0.0,
            clocks: None,
        }
    }

    /// Returns the virtual capacity C~ in bytes per second.
    pub fn capacity_bytes_per_sec(&self) -> f64 {
        self.capacity
    }

    /// Returns the virtual queue VQ in bytes, as of the last update.
    pub fn virtual_queue_bytes(&self) -> f64 {
        self.queue
    }

    /// Lets the virtual queue drain until `now`.
    fn drain(&mut self, clocks: &mut Clocks, now: Instant) {
        self.queue = (self.queue - self.capacity * now.since(clocks.queue).as_secs_f64()).max(0.0);
        clocks.queue = now;
    }

    /// Increases the virtual capacity for the time until `now`: C~ + alpha gamma C (t - s), at most C.
    fn earn(&mut self, clocks: &mut Clocks, now: Instant) {
        let earned = self.alpha * self.gamma * self.link * now.since(clocks.capacity).as_secs_f64();
        self.capacity = (self.capacity + earned).min(self.link);
        clocks.capacity = now;
    }
}

impl Aqm for Avq {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, _: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        let mut clocks = self.clocks.unwrap_or(Clocks { queue: now, capacity: now });
        let b = packet.size.get() as f64;
        self.drain(&mut clocks, now);
        // A packet which the virtual queue has no room for is a signal; the real queue still takes it if it is marked.
        let verdict = if self.queue + b <= self.buffer {
            self.queue += b;
            Verdict::Pass
        } else if self.ecn && packet.ecn.is_capable() {
            Verdict::Mark
        } else {
            Verdict::Drop
        };
        if verdict != Verdict::Drop || self.adapt_on_drop {
            self.earn(&mut clocks, now);
            self.capacity = (self.capacity - self.alpha * b).max(0.0); // §3: every byte that arrives costs alpha
        }
        self.clocks = Some(clocks);
        verdict
    }

    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        let Fact::Rate(rate) = *fact else { return };
        let link = rate.bytes_per_sec();
        self.capacity = match self.clocks {
            None => self.initial * link,
            // Time before the change counts at the old rate.
            Some(mut clocks) => {
                self.drain(&mut clocks, now);
                self.earn(&mut clocks, now);
                self.clocks = Some(clocks);
                self.capacity.min(link)
            }
        };
        self.link = link;
    }
}

impl AckPath for Avq {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use crate::units::Rate;
    use crate::units::Span;

    /// 1 MB/s and a queue of 10 kB.
    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(10) };

    fn arrive(avq: &mut Avq, ecn: Ecn, us: u64) -> Verdict {
        let packet = Meta { size: Bytes::new(1000), ecn, flow: FlowId(0) };
        let now = Instant::ZERO + Span::from_micros(us);
        avq.on_enqueue(&packet, Backlog::default(), now, &mut Streams::new(1).get("unused"))
    }

    fn assert_close(seen: f64, expected: f64) {
        assert!((seen - expected).abs() < 1e-6, "{seen}, by hand {expected}");
    }

    /// C~ = 800,000 - 0.15 * 1000; a millisecond later 799.85 B are gone, and 0.15 * 0.98 * 1000 - 150 = - 3 is earned.
    #[test]
    fn queue_and_capacity_follow_the_papers_lines() {
        let mut avq = Avq::new(&Config::default(), &LINK);
        for (us, queue, capacity) in [(5_000, 1000.0, 799_850.0), (6_000, 1200.15, 799_847.0)] {
            assert_eq!(arrive(&mut avq, Ecn::NotEct, us), Verdict::Pass);
            assert_close(avq.virtual_queue_bytes(), queue);
            assert_close(avq.capacity_bytes_per_sec(), capacity);
        }
        // Ten idle seconds would earn more than is missing: C~ = C - 150.
        arrive(&mut avq, Ecn::NotEct, 10_006_000);
        assert_close(avq.virtual_queue_bytes(), 1000.0);
        assert_close(avq.capacity_bytes_per_sec(), 999_850.0);
    }

    /// Ten packets of a burst fit into the virtual queue exactly. What is signalled does not enter it.
    #[test]
    fn a_virtual_overflow_is_a_signal() {
        for limit in [Limit::Packets(10), Limit::Bytes(Bytes::new(10_000))] {
            for (ecn, signal) in [(false, Verdict::Drop), (true, Verdict::Mark)] {
                let mut avq = Avq::new(&Config { ecn, ..Config::default() }, &LinkFacts { limit, ..LINK });
                let verdicts: Vec<_> = (0..12).map(|_| arrive(&mut avq, Ecn::Ect0, 0)).collect();
                assert_eq!(verdicts[..10], [Verdict::Pass; 10]);
                assert_eq!(verdicts[10..], [signal; 2]);
                assert_close(avq.virtual_queue_bytes(), 10_000.0);
                assert_close(avq.capacity_bytes_per_sec(), 800_000.0 - 12.0 * 150.0);
            }
        }
    }

    #[test]
    fn a_packet_that_cannot_be_marked_is_dropped() {
        let mut avq = Avq::new(&Config { ecn: true, ..Config::default() }, &LINK);
        (0..10).for_each(|_| assert_eq!(arrive(&mut avq, Ecn::NotEct, 0), Verdict::Pass));
        assert_eq!(arrive(&mut avq, Ecn::NotEct, 0), Verdict::Drop);
    }

    /// 1.5 C offered for a minute. By the paper C~ falls to 0 and the full virtual queue never drains. In ns-2 the
    /// accepted rate moves C~, which can only rest where that is gamma C: 980 of 1500 packets a second.
    #[test]
    fn without_reaction_the_paper_starves_and_ns2_passes_gamma_c() {
        for (adapt_on_drop, expected) in [(true, 0.0..=0.0), (false, 975.0..=985.0)] {
            let mut avq = Avq::new(&Config { adapt_on_drop, ..Config::default() }, &LINK);
            let mut passed = 0;
            for second in 0..60u64 {
                let verdicts = (0..1500).map(|k| arrive(&mut avq, Ecn::NotEct, second * 1_000_000 + k * 2000 / 3));
                let of_this = verdicts.filter(|v| *v == Verdict::Pass).count();
                passed += if second >= 50 { of_this } else { 0 };
            }
            let rate = passed as f64 / 10.0;
            assert!(expected.contains(&rate), "{rate} packets a second pass, adapt_on_drop = {adapt_on_drop}");
        }
    }

    /// C~ = 799,850 at 0; a millisecond drains 799.85 B and earns 147 B/s, 99 more earn 14,553. Then C is 500 kB/s,
    /// which bounds C~.
    #[test]
    fn a_new_rate_bounds_the_capacity() {
        let mut avq = Avq::new(&Config::default(), &LINK);
        avq.on_fact(&Fact::Rate(Rate::from_bps(80_000_000)), Instant::ZERO);
        assert_close(avq.capacity_bytes_per_sec(), 8_000_000.0);
        avq.on_fact(&Fact::Rate(LINK.rate), Instant::ZERO);
        arrive(&mut avq, Ecn::NotEct, 0);
        avq.on_fact(&Fact::Rate(LINK.rate), Instant::ZERO + Span::from_millis(1));
        assert_close(avq.virtual_queue_bytes(), 200.15);
        assert_close(avq.capacity_bytes_per_sec(), 799_997.0);
        avq.on_fact(&Fact::Rate(LINK.rate), Instant::ZERO + Span::from_millis(100));
        assert_close(avq.capacity_bytes_per_sec(), 814_550.0);
        avq.on_fact(&Fact::Rate(Rate::from_bps(4_000_000)), Instant::ZERO + Span::from_millis(200));
        assert_close(avq.capacity_bytes_per_sec(), 500_000.0);
    }

    #[test]
    fn values_that_cannot_work_are_refused_by_name() {
        for (config, key) in [
            (Config { alpha: 0.0, ..Config::default() }, "alpha"),
            (Config { gamma: 1.01, ..Config::default() }, "gamma"),
            (Config { initial: f64::NAN, ..Config::default() }, "initial"),
            (Config { mean_packet: Bytes::ZERO, ..Config::default() }, "mean_packet"),
        ] {
            assert_eq!(config.validate().unwrap_err().key, key);
        }
    }
}
