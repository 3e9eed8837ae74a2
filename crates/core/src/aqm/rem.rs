//! REM: a price grows while the input rate is above that of the link, or the queue above its target; the drop
//! probability follows from the price.
//!
//! Source: Athuraliya, Low, Li, Yin, "REM: active queue management", IEEE Network 15(3), 2001, eq. (1), (2). What the
//! article leaves open follows ns-2's `rem.cc`, by two of the authors. In each period of length T:
//!
//! ```text
//! x     = (1 - w) x + w n                               n packets arrived in the period, lost ones included
//! price = max(0, price + gamma (x + alpha (q - b*) - c))    c packets of the mean size fit into the period
//! p     = 1 - phi^-price
//! ```
//!
//! The price is in equilibrium only at x = c and q = b*: the link is fully used, with a queue that does not depend on
//! the load. Because p is exponential, the end-to-end probability of a path depends on the sum of its prices.
//!
//! With `ecn`, ECN-capable packets are marked when they *leave*, as in ns-2; other packets are dropped on arrival. One
//! random number is drawn per packet with p > 0, when the packet is judged.
//!
//! No timer runs: updates are made later, at the next arrival or departure, with the state that they would have seen
//! (see `ticks.rs`). The test `updates_made_late_are_the_same` compares with a clock that misses no update.
//!
//! DIFFERENCE: with `ecn`, ns-2 lets packets that are not ECN-capable pass; here they are dropped. Pinned by
//! `capable_packets_are_marked_when_they_leave`.

use super::ticks::Ticks;
use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of REM. Defaults are those of the article and of ns-2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Step size of the price, gamma (article: 0.001).
    pub gamma: f64,
    /// Base of the exponential, phi, above 1 (article: 1.001).
    pub phi: f64,
    /// Weight of the queue against the rate, alpha (article: 0.1).
    pub alpha: f64,
    /// Queue to hold, b*; if it is in bytes, the queue is counted in bytes / mean_packet (article: 20 packets).
    pub target: Limit,
    /// Time between updates, T (ns-2: 2 ms).
    pub interval: Span,
    /// Weight w of the newest period in the input rate (ns-2: 1, no average).
    pub weight: f64,
    /// Mean packet size, which converts the rate of the link to packets (ns-2: 1000 B).
    pub mean_packet: Bytes,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            gamma: 0.001,
            phi: 1.001,
            alpha: 0.1,
            target: Limit::Packets(20),
            interval: Span::from_millis(2),
            weight: 1.0,
            mean_packet: Bytes::new(1000),
            ecn: false,
        }
    }
}

impl AqmConfig for Config {
    type Aqm = Rem;

    fn validate(&self) -> Result<(), ConfigError> {
        if !(self.gamma > 0.0 && self.gamma <= 1.0) {
            return Err(ConfigError::new("gamma", "must be above 0 and at most 1"));
        }
        if !(self.phi > 1.0 && self.phi <= 10.0) {
            return Err(ConfigError::new("phi", "must be above 1 and at most 10"));
        }
        if !(self.alpha >= 0.0 && self.alpha <= 10.0) {
            return Err(ConfigError::new("alpha", "must be 0 or more and at most 10"));
        }
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            return Err(ConfigError::new("weight", "must be above 0 and at most 1"));
        }
        if self.interval == Span::ZERO {
            return Err(ConfigError::new("interval", "must be above 0"));
        }
        if self.mean_packet == Bytes::ZERO {
            return Err(ConfigError::new("mean_packet", "must be above 0B"));
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> Rem {
        Rem::new(self.clone(), link)
    }
}

/// The state of REM.
#[derive(Debug, Clone, PartialEq)]
pub struct Rem {
    config: Config,
    target: f64,
    /// Bytes that count as one packet; `None` when packets are counted.
    unit: Option<f64>,
    /// Packets of the mean size that the link carries in a period, c.
    capacity: f64,
    ticks: Ticks,
    /// Arrivals since the last update.
    arrived: Backlog,
    x: f64,
    price: f64,
    p: f64,
    /// What has waited since the last event, for the updates before a change of the rate.
    waiting: Backlog,
    /// Size of the last arrival. If it finds no room, it is taken out of `waiting` again.
    last: Bytes,
}

/// Computes c: the packets of the mean size that a link of `rate` carries in a period.
fn capacity(config: &Config, rate: Rate) -> f64 {
    config.interval.as_secs_f64() * (rate.as_bps() as f64 / (8.0 * config.mean_packet.get() as f64))
}

impl Rem {
    /// Creates the state of an empty queue, with a price of 0.
    pub fn new(config: Config, link: &LinkFacts) -> Self {
        let mean = config.mean_packet.get() as f64;
        let (target, unit) = match config.target {
            Limit::Packets(n) => (n as f64, None),
            Limit::Bytes(bytes) => (bytes.get() as f64 / mean, Some(mean)),
        };
        Self {
            target,
            unit,
            capacity: capacity(&config, link.rate),
            ticks: Ticks::every(config.interval),
            arrived: Backlog::default(),
            x: 0.0,
            price: 0.0,
            p: 0.0,
            waiting: Backlog::default(),
            last: Bytes::ZERO,
            config,
        }
    }

    /// Returns the price as of the last update that was made.
    pub fn price(&self) -> f64 {
        self.price
    }

    /// Returns the drop probability as of the last update that was made, 0 to 1.
    pub fn probability(&self) -> f64 {
        self.p
    }

    /// Converts a backlog to packets, or its bytes to packets of the mean size.
    fn measure(&self, of: Backlog) -> f64 {
        match self.unit {
            None => of.packets as f64,
            Some(mean) => of.bytes as f64 / mean,
        }
    }

    /// Makes one update, eq. (1), with `n` arrivals and a queue of `q` packets. Returns false if nothing changed.
    fn update(&mut self, n: f64, q: f64) -> bool {
        let Config { gamma, alpha, weight, .. } = self.config;
        let x = (1.0 - weight) * self.x + weight * n;
        let price = (self.price + gamma * (x + alpha * (q - self.target) - self.capacity)).max(0.0);
        let moved = x != self.x || price != self.price;
        (self.x, self.price) = (x, price);
        moved
    }

    /// Makes the updates due up to `now`, all of which see this queue. Only the first one sees arrivals.
    #[inline]
    fn catch_up(&mut self, backlog: Backlog, now: Instant) {
        let due = self.ticks.due(now);
        if due == 0 {
            return;
        }
        let (n, q) = (self.measure(self.arrived), self.measure(backlog));
        self.arrived = Backlog::default();
        self.update(n, q);
        for _ in 1..due {
            if !self.update(0.0, q) {
                break;
            }
        }
        // Eq. (2)
        self.p = 1.0 - libm::pow(self.config.phi, -self.price);
    }

    fn happens(&self, rng: &mut Rng) -> bool {
        self.p > 0.0 && rng.uniform() < self.p
    }
}

impl Aqm for Rem {
    const WAKES: bool = true;

    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.catch_up(backlog, now);
        self.arrived.add(packet.size);
        self.waiting = backlog;
        if !(self.config.ecn && packet.ecn.is_capable()) && self.happens(rng) {
            return Verdict::Drop;
        }
        self.waiting.add(packet.size);
        self.last = packet.size;
        Verdict::Pass
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, _: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        let mut before = backlog;
        before.add(packet.size);
        self.catch_up(before, now);
        self.waiting = backlog;
        if self.config.ecn && packet.ecn.is_capable() && self.happens(rng) { Verdict::Mark } else { Verdict::Pass }
    }

    fn on_overflow(&mut self, _: Instant) {
        self.waiting.remove(self.last);
    }

    fn on_shed(&mut self, backlog: Backlog, now: Instant) {
        self.catch_up(backlog, now);
        self.waiting = backlog;
    }

    fn next_wakeup(&self) -> Option<Instant> {
        (self.price > 0.0 || self.x > 0.0 || self.arrived.packets > 0).then(|| self.ticks.latest())
    }

    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        self.catch_up(backlog, now);
    }

    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        if let Fact::Rate(rate) = *fact {
            self.catch_up(self.waiting, now);
            self.capacity = capacity(&self.config, rate);
        }
    }
}

impl AckPath for Rem {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    /// 10 Mbit/s: 2.5 packets of 1000 B in 2 ms.
    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(10_000_000), limit: Limit::Packets(1000) };

    fn packet(ecn: Ecn) -> Meta {
        Meta { size: Bytes::new(1000), ecn, flow: FlowId(0) }
    }

    fn queue(packets: u64) -> Backlog {
        Backlog { packets, bytes: packets * 1000 }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn assert_close(seen: f64, expected: f64) {
        assert!((seen - expected).abs() < 1e-12, "{seen}, by hand {expected}");
    }

    /// c = 2.5. Five arrive, 100 wait: 0.001 (5 + 0.1 (100 - 20) - 2.5) = 0.0105; then none arrive: + 0.001 (8 - 2.5);
    /// an empty queue: - 0.001 (2 + 2.5) each time, and never below 0.
    #[test]
    fn the_price_follows_the_equation() {
        for target in [Limit::Packets(20), Limit::Bytes(Bytes::new(20_000))] {
            let (mut rem, mut rng) =
                (Rem::new(Config { target, ..Config::default() }, &LINK), Streams::new(1).get("t"));
            for waiting in 95..100 {
                rem.on_enqueue(&packet(Ecn::NotEct), queue(waiting), at(1), &mut rng);
            }
            for (ms, waiting, price) in [(2, 100, 0.0105), (4, 100, 0.016), (6, 0, 0.0115), (8, 0, 0.007), (12, 0, 0.0)]
            {
                rem.on_wakeup(queue(waiting), at(ms));
                assert_close(rem.price(), price);
            }
        }
    }

    /// 1.001^-693.5 is 0.49999...: ln 2 / ln 1.001 = 693.4936.
    #[test]
    fn the_probability_is_exponential_in_the_price() {
        let mut rem = Rem::new(Config::default(), &LINK);
        rem.price = std::f64::consts::LN_2 / 1.001f64.ln();
        // At the target with as much as the link carries, the price rests.
        rem.arrived = queue(5);
        rem.capacity = 5.0;
        rem.on_wakeup(queue(20), at(2));
        assert!((rem.probability() - 0.5).abs() < 1e-12, "{}", rem.probability());
    }

    #[test]
    fn the_input_rate_is_averaged() {
        let mut rem = Rem::new(Config { weight: 0.25, ..Config::default() }, &LINK);
        for (ms, arrived, x) in [(2, 8, 2.0), (4, 8, 3.5), (6, 0, 2.625)] {
            rem.arrived = queue(arrived);
            rem.on_wakeup(queue(0), at(ms));
            assert_close(rem.x, x);
        }
    }

    /// 10,000 packets at p = 0.5, five deviations are 250. Without ECN they die on arrival.
    #[test]
    fn capable_packets_are_marked_when_they_leave() {
        let mut rng = Streams::new(1).get("t");
        for (ecn, field, at_arrival, at_departure) in [
            (true, Ecn::Ect0, Verdict::Pass, Verdict::Mark),
            (true, Ecn::NotEct, Verdict::Drop, Verdict::Pass),
            (false, Ecn::Ect0, Verdict::Drop, Verdict::Pass),
        ] {
            let mut rem = Rem { p: 0.5, ..Rem::new(Config { ecn, ..Config::default() }, &LINK) };
            let (mut came, mut left) = (0, 0);
            for _ in 0..10_000 {
                came += u32::from(rem.on_enqueue(&packet(field), queue(1), at(0), &mut rng) != Verdict::Pass);
                left +=
                    u32::from(rem.on_dequeue(&packet(field), Span::ZERO, queue(1), at(0), &mut rng) != Verdict::Pass);
            }
            for (signals, verdict) in [(came, at_arrival), (left, at_departure)] {
                let expected = if verdict == Verdict::Pass { 0..=0 } else { 4750..=5250 };
                assert!(expected.contains(&signals), "{signals} with ecn {ecn}, {field:?}");
            }
        }
    }

    #[test]
    fn arrivals_that_are_lost_count() {
        let (mut rem, mut rng) = (Rem::new(Config::default(), &LINK), Streams::new(1).get("t"));
        rem.p = 1.0;
        (0..4).for_each(|_| {
            rem.on_enqueue(&packet(Ecn::NotEct), queue(20), at(0), &mut rng);
        });
        rem.on_wakeup(queue(20), at(2));
        assert_close(rem.price(), 0.001 * (4.0 - 2.5));
    }

    /// Updates before the change are made with the old rate, although nobody asked for them until then.
    #[test]
    fn a_new_rate_counts_from_when_it_is_told() {
        let (mut rem, mut rng) = (Rem::new(Config::default(), &LINK), Streams::new(1).get("t"));
        rem.on_enqueue(&packet(Ecn::NotEct), queue(119), at(1), &mut rng);
        rem.on_enqueue(&packet(Ecn::NotEct), queue(120), at(1), &mut rng);
        rem.on_overflow(at(1));
        rem.on_fact(&Fact::Rate(Rate::from_bps(40_000_000)), at(5));
        // Two arrived and 120 wait: 0.001 (2 + 10 - 2.5) + 0.001 (10 - 2.5).
        assert_close(rem.price(), 0.017);
        rem.on_wakeup(queue(120), at(6));
        assert_close(rem.price(), 0.017);
        rem.on_wakeup(queue(140), at(8));
        assert_close(rem.price(), 0.019);
    }

    proptest! {
        /// Steps are (time to the next, packets that come or go at it); the reference updates at every tick.
        #[test]
        fn updates_made_late_are_the_same(
            steps in prop::collection::vec((0..200_000u64, -3..40i64), 0..60),
            interval_us in 1..20_000u64,
            weight in prop::sample::select(vec![1.0, 0.5, 0.01]),
        ) {
            let interval = Span::from_micros(interval_us);
            let config = Config { interval, weight, ..Config::default() };
            let (mut late, mut rng) = (Rem::new(config.clone(), &LINK), Streams::new(1).get("t"));
            let (mut now, mut tick) = (Instant::ZERO, Instant::ZERO);
            let (mut packets, mut arrived, mut x, mut price) = (0u64, 0u64, 0.0, 0.0f64);
            for (wait_us, change) in steps {
                now += Span::from_micros(wait_us);
                while tick + interval <= now {
                    tick += interval;
                    x = (1.0 - weight) * x + weight * arrived as f64;
                    price = (price + 0.001 * (x + 0.1 * (packets as f64 - 20.0) - capacity(&config, LINK.rate))).max(0.0);
                    arrived = 0;
                }
                if change < 0 && packets > 0 {
                    packets -= 1;
                    late.on_dequeue(&packet(Ecn::NotEct), Span::ZERO, queue(packets), now, &mut rng);
                } else {
                    late.on_enqueue(&packet(Ecn::NotEct), queue(packets), now, &mut rng);
                    arrived += 1;
                    packets += change.max(0) as u64;
                }
                prop_assert_eq!((late.x, late.price()), (x, price));
            }
        }
    }

    /// While the price is zero and nothing came, an update changes nothing, so REM asks for none; a packet makes one due.
    #[test]
    fn a_price_of_nothing_needs_no_wakeup_until_a_packet_comes() {
        let (mut rem, mut rng) = (Rem::new(Config::default(), &LINK), Streams::new(1).get("t"));
        assert_eq!(rem.next_wakeup(), None);
        rem.on_enqueue(&packet(Ecn::NotEct), queue(0), at(1), &mut rng);
        assert!(rem.next_wakeup().is_some());
    }
}
