//! BLUE: a drop probability that lost packets raise and idle times of the link lower.
//!
//! Source: Feng, Shin, Kandlur, Saha, "The BLUE active queue management algorithms", IEEE/ACM Transactions on
//! Networking 10(4), 2002, §III; first as CSE-TR-387-99. The length of a queue says little of the load; loss and
//! idleness do.
//!
//! ```text
//! a packet is lost (or q > L):  if now - last_update > freeze_time:  pm = pm + d1, last_update = now
//! the link is idle:             if now - last_update > freeze_time:  pm = pm - d2, last_update = now
//! ```
//!
//! Arrivals are dropped, or marked, with probability pm. One random number is drawn per arrival with 0 < pm < 1.
//!
//! The defaults are one of the four sets that the paper compares (freeze_time of 10 or 100 ms; d1, d2 of 0.0025,
//! 0.00025 or 0.02, 0.002). The paper leaves open, and this file chooses:
//! - While the link stays idle, pm falls again after each freeze_time until it is 0. These updates are caught up at the
//!   next arrival, so no timer runs. (The ALTQ port lowers pm once, and resets it after a second.)
//! - An update that would leave pm at 0 does not count as one: after an idle time, the first loss raises pm at once.
//! - An early drop is not a lost packet and does not raise pm.
//!
//! The link is idle from the end of its last transmission, computed from its rate and the departure of the last packet.
//! A queue that is empty while the link still transmits is not idle, even if the next packet arrives just as the
//! transmission ends. Cost: O(1).
//!
//! DIFFERENCE: an update may follow the one before after exactly freeze_time, where the paper requires more. Pinned by
//! `updates_keep_their_distance`.

use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Instant, Limit, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of BLUE. Defaults are one of the sets of values that the paper compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What a loss adds to the probability, d1 (one of the paper's sets: 0.0025).
    pub increment: f64,
    /// What an idle link takes from the probability, d2; well below increment (one of the paper's sets: 0.00025).
    pub decrement: f64,
    /// Least time between two changes of the probability (one of the paper's sets: 100 ms).
    pub freeze_time: Span,
    /// Queue length L above which an arrival counts as a loss; by default only a full queue counts.
    pub threshold: Option<Limit>,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { increment: 0.0025, decrement: 0.00025, freeze_time: Span::from_millis(100), threshold: None, ecn: false }
    }
}

impl AqmConfig for Config {
    type Aqm = Blue;

    fn validate(&self) -> Result<(), ConfigError> {
        if !(self.increment > 0.0 && self.increment <= 1.0) {
            return Err(ConfigError::new("increment", "must be above 0 and at most 1"));
        }
        if !(self.decrement > 0.0 && self.decrement <= 1.0) {
            return Err(ConfigError::new("decrement", "must be above 0 and at most 1"));
        }
        if self.freeze_time == Span::ZERO {
            return Err(ConfigError::new("freeze_time", "must be above 0"));
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> Blue {
        Blue::new(self.clone(), link)
    }
}

/// The state of BLUE.
#[derive(Debug, Clone, PartialEq)]
pub struct Blue {
    config: Config,
    rate: Rate,
    pm: f64,
    last_update: Option<Instant>,
    /// When the link becomes idle if no packet arrives: the end of the transmission after which the queue was empty.
    idle_from: Instant,
}

impl Blue {
    /// Creates the state of an idle link, with pm = 0.
    pub fn new(config: Config, link: &LinkFacts) -> Self {
        Self { config, rate: link.rate, pm: 0.0, last_update: None, idle_from: Instant::ZERO }
    }

    /// Returns the probability pm of a drop or mark, as of its last update.
    pub fn probability(&self) -> f64 {
        self.pm
    }

    /// Returns the time from which on pm may change again.
    fn thawed(&self) -> Instant {
        self.last_update.map_or(Instant::ZERO, |last| last + self.config.freeze_time)
    }

    fn on_loss(&mut self, now: Instant) {
        if now >= self.thawed() {
            self.pm = (self.pm + self.config.increment).min(1.0);
            self.last_update = Some(now);
        }
    }

    /// Lowers pm for the time in which the link was idle until `now`: once per freeze_time.
    fn make_up_for_idleness(&mut self, now: Instant) {
        let first = self.idle_from.max(self.thawed());
        // With pm at 0 there is no update, so the next loss need not wait for freeze_time.
        if self.pm <= 0.0 || self.idle_from >= now || first > now {
            return;
        }
        let more = now.since(first).as_nanos() / self.config.freeze_time.as_nanos();
        self.pm = (self.pm - (more + 1) as f64 * self.config.decrement).max(0.0);
        self.last_update = Some(first + self.config.freeze_time * more);
    }

    fn is_above_threshold(&self, backlog: Backlog) -> bool {
        match self.config.threshold {
            None => false,
            Some(Limit::Packets(n)) => backlog.packets > n,
            Some(Limit::Bytes(n)) => backlog.bytes > n.get(),
        }
    }
}

impl Aqm for Blue {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        if backlog.packets == 0 {
            self.make_up_for_idleness(now);
        } else if self.is_above_threshold(backlog) {
            self.on_loss(now);
        }
        if self.pm <= 0.0 || (self.pm < 1.0 && rng.uniform() >= self.pm) {
            return Verdict::Pass;
        }
        if self.config.ecn && packet.ecn.is_capable() { Verdict::Mark } else { Verdict::Drop }
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, _: Span, backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        if backlog.packets == 0 {
            self.idle_from = now + self.rate.time_for(packet.size);
        }
        Verdict::Pass
    }

    fn on_overflow(&mut self, now: Instant) {
        self.on_loss(now);
    }

    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        if let Fact::Rate(rate) = *fact {
            self.rate = rate;
        }
    }
}

impl AckPath for Blue {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use crate::units::Bytes;

    /// A packet of 1000 B takes a millisecond.
    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(100) };

    fn packet(ecn: Ecn) -> Meta {
        Meta { size: Bytes::new(1000), ecn, flow: FlowId(0) }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn arrive(blue: &mut Blue, queued: u64, ms: u64) -> Verdict {
        let backlog = Backlog { packets: queued, bytes: queued * 1000 };
        blue.on_enqueue(&packet(Ecn::NotEct), backlog, at(ms), &mut Streams::new(1).get("unused"))
    }

    /// The last packet leaves the queue.
    fn empty(blue: &mut Blue, ms: u64) {
        let mut rng = Streams::new(1).get("unused");
        blue.on_dequeue(&packet(Ecn::NotEct), Span::ZERO, Backlog::default(), at(ms), &mut rng);
    }

    fn assert_close(blue: &Blue, expected: f64) {
        assert!((blue.probability() - expected).abs() < 1e-12, "{}, by hand {expected}", blue.probability());
    }

    #[test]
    fn updates_keep_their_distance() {
        let mut blue = Blue::new(Config::default(), &LINK);
        for (ms, pm) in [(10, 0.0025), (11, 0.0025), (109, 0.0025), (110, 0.005), (300, 0.0075)] {
            blue.on_overflow(at(ms));
            assert_close(&blue, pm);
        }
    }

    /// The last loss is at 0 and the link idle from 21 ms: pm falls at 100, 200 and 300 ms.
    #[test]
    fn an_idle_link_lowers_it_once_per_freeze_time() {
        for (ms, falls) in [(21, 0), (99, 0), (100, 1), (199, 1), (300, 3), (305, 3)] {
            let mut blue = Blue { pm: 0.0075, ..Blue::new(Config::default(), &LINK) };
            blue.on_overflow(at(0));
            empty(&mut blue, 20);
            arrive(&mut blue, 0, ms);
            assert_close(&blue, 0.01 - 0.00025 * f64::from(falls));
        }
    }

    /// The same until 305 ms: the last fall was at 300 ms, so that a loss counts from 400 ms on.
    #[test]
    fn after_falls_made_up_for_a_loss_waits_for_freeze_time() {
        for (ms, rises) in [(399, 0), (400, 1)] {
            let mut blue = Blue { pm: 0.0075, ..Blue::new(Config::default(), &LINK) };
            blue.on_overflow(at(0));
            empty(&mut blue, 20);
            arrive(&mut blue, 0, 305);
            blue.on_overflow(at(ms));
            assert_close(&blue, 0.00925 + 0.0025 * f64::from(rises));
        }
    }

    /// Idle again at 251 ms, long after the last loss: it falls there and then, and at 351 ms.
    #[test]
    fn a_link_that_falls_idle_lowers_it_at_once() {
        let mut blue = Blue { pm: 0.01, ..Blue::new(Config::default(), &LINK) };
        empty(&mut blue, 250);
        arrive(&mut blue, 0, 251);
        assert_close(&blue, 0.01);
        arrive(&mut blue, 0, 252);
        assert_close(&blue, 0.00975);
        // What was dropped at an empty queue does not end the idle time.
        arrive(&mut blue, 0, 350);
        assert_close(&blue, 0.00975);
        arrive(&mut blue, 0, 351);
        assert_close(&blue, 0.0095);
        blue.on_overflow(at(450));
        assert_close(&blue, 0.0095);
    }

    #[test]
    fn a_busy_link_is_not_idle() {
        let mut blue = Blue { pm: 0.01, ..Blue::new(Config::default(), &LINK) };
        for ms in 0..1000 {
            arrive(&mut blue, u64::from(ms == 0), ms);
            empty(&mut blue, ms);
        }
        assert_close(&blue, 0.01);
    }

    /// At a tenth of the rate the last packet takes 10 ms: the link is idle from 260 ms.
    #[test]
    fn a_new_rate_moves_the_end_of_transmissions() {
        let mut blue = Blue { pm: 0.01, ..Blue::new(Config::default(), &LINK) };
        blue.on_fact(&Fact::Rate(Rate::from_bps(800_000)), at(0));
        empty(&mut blue, 250);
        arrive(&mut blue, 0, 260);
        assert_close(&blue, 0.01);
        arrive(&mut blue, 0, 261);
        assert_close(&blue, 0.00975);
    }

    #[test]
    fn after_a_long_idle_time_the_first_loss_counts() {
        let mut blue = Blue::new(Config::default(), &LINK);
        arrive(&mut blue, 0, 12_345);
        blue.on_overflow(at(12_345));
        assert_close(&blue, 0.0025);
        arrive(&mut blue, 0, 60_000);
        assert_eq!(blue.probability(), 0.0);
    }

    #[test]
    fn a_queue_above_the_threshold_counts_as_a_loss() {
        for threshold in [Limit::Packets(50), Limit::Bytes(Bytes::new(50_000))] {
            let mut blue = Blue::new(Config { threshold: Some(threshold), ..Config::default() }, &LINK);
            arrive(&mut blue, 50, 0);
            assert_close(&blue, 0.0);
            arrive(&mut blue, 51, 0);
            assert_close(&blue, 0.0025);
        }
    }

    /// 10,000 arrivals at 0.25: 2500 signals, with a deviation of 43. At 1 all, at 0 none.
    #[test]
    fn arrivals_die_at_that_rate_or_are_marked() {
        let mut rng = Streams::new(1).get("t");
        let full = Backlog { packets: 9, bytes: 9000 };
        for (ecn, field, signal) in [(false, Ecn::Ect0, Verdict::Drop), (true, Ecn::Ect0, Verdict::Mark)] {
            for (pm, expected) in [(0.0, 0..=0), (0.25, 2285..=2715), (1.0, 10_000..=10_000)] {
                let mut blue = Blue { pm, ..Blue::new(Config { ecn, ..Config::default() }, &LINK) };
                let judge = |_: &u32| blue.on_enqueue(&packet(field), full, at(0), &mut rng) == signal;
                let signals = (0..10_000).filter(judge).count();
                assert!(expected.contains(&signals), "{signals} at {pm}");
            }
        }
        let mut blue = Blue { pm: 1.0, ..Blue::new(Config { ecn: true, ..Config::default() }, &LINK) };
        assert_eq!(blue.on_enqueue(&packet(Ecn::NotEct), full, at(0), &mut rng), Verdict::Drop);
    }

    #[test]
    fn values_that_cannot_work_are_refused_by_name() {
        for (config, key) in [
            (Config { increment: 0.0, ..Config::default() }, "increment"),
            (Config { decrement: f64::NAN, ..Config::default() }, "decrement"),
            (Config { freeze_time: Span::ZERO, ..Config::default() }, "freeze_time"),
        ] {
            assert_eq!(config.validate().unwrap_err().key, key);
        }
    }

    /// At pm = 0 and at pm = 1 there is nothing to decide by chance: the stream of random numbers stays where it is.
    #[test]
    fn a_certain_fate_takes_no_random_number() {
        for (losses, verdict) in [(0, Verdict::Pass), (1, Verdict::Drop)] {
            let mut blue = Blue::new(Config { increment: 1.0, ..Config::default() }, &LINK);
            (0..losses).for_each(|_| blue.on_overflow(at(1000)));
            let mut rng = Streams::new(1).get("blue");
            let before = rng.clone();
            assert_eq!(
                blue.on_enqueue(&packet(Ecn::NotEct), Backlog { packets: 1, bytes: 1000 }, at(1001), &mut rng),
                verdict
            );
            assert_eq!(rng, before, "pm = {}", blue.probability());
        }
    }
}
