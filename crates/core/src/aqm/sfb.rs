//! SFB: approximates one BLUE for each flow with a few bins; flows which do not react share a small allowance.
//!
//! Source: Feng, Kandlur, Saha, Shin, "Stochastic fair BLUE: a queue management algorithm for enforcing fairness",
//! INFOCOM 2001, and §IV of the BLUE article of 2002. The numbers are those of Linux's `sch_sfb`.
//!
//! L levels of N bins; each level hashes a flow into one of its bins by a hash of its own. For an arrival, in its bins:
//!
//! ```text
//! nothing queued in the bin:     p -= d2
//! bin_size or more queued:       p += d1
//! p_min = the least p of its L bins; drop or mark with probability p_min
//! ```
//!
//! A flow which does not react raises p to 1 in all its bins. A flow which reacts has some of these bins, but hardly
//! all of them, so its p_min stays low. With p_min = 1 a flow is in the penalty box, which lets `penalty_rate` packets
//! per second pass for all its flows together.
//!
//! *Moving hashes*: a flow which reacts but has all its bins in common with flows which do not is punished until the
//! hashes change, every `rehash`. To keep the unresponsive flows from being free then, the next set of hashes is warmed
//! up during the last `warmup` of the current period: flows of the penalty box, and no others, are counted in both sets
//! of bins. The next bins see only packets which the penalty box let pass, so their p grows only if those packets queue
//! up.
//!
//! A rule of Linux is included: if each bin of a packet holds `bin_limit` packets or more, the packet is dropped. One
//! random number is drawn per arrival with 0 < p_min < 1; two at the first arrival and one at each change of hashes, as
//! keys.
//!
//! The bins of each waiting packet are remembered in order of arrival, so the queue must be a FIFO which loses packets
//! only by the verdicts of SFB and by overflow. Cost: L bins per arrival and departure, and twice as many in the
//! penalty box during the warm-up.
//!
//! DIFFERENCE: a set of bins resets its p when its hashes change; Linux keeps the old values, which belonged to other
//! flows. Pinned by `new_hashes_begin_with_what_was_warmed_up`.
//! DIFFERENCE: above p_min = 1/2 Linux drops a growing part of the packets that it could mark; the paper does not.
//! Pinned by `capable_packets_are_marked`.
//! DIFFERENCE: the bucket of the penalty box fills all the time; in Linux only once it is empty. Pinned by
//! `the_penalty_box_lets_its_rate_through`.

use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::packet::FlowId;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Parameters of SFB. Defaults are those of Linux's sch_sfb.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of levels, L (Linux: 8).
    pub levels: u32,
    /// Number of bins of each level, N; a power of two (Linux: 16).
    pub bins: u32,
    /// Packets queued in a bin at which its probability grows (Linux: 20).
    pub bin_size: u32,
    /// Packets queued in each bin of a packet at which it is dropped; above bin_size (Linux: 25).
    pub bin_limit: u32,
    /// What a full bin adds to its probability, d1 (Linux: 0.001).
    pub increment: f64,
    /// What an empty bin takes from its probability, d2 (Linux: 1/6000).
    pub decrement: f64,
    /// Time between changes of the hashes; "0s" means never (Linux: 600 s).
    pub rehash: Span,
    /// Time before a change of the hashes during which the next ones are warmed up; at most rehash (Linux: 60 s).
    pub warmup: Span,
    /// Packets per second that all flows of the penalty box together may send (Linux: 10).
    pub penalty_rate: f64,
    /// Packets that all flows of the penalty box together may send at once (Linux: 20).
    pub penalty_burst: u32,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            levels: 8,
            bins: 16,
            bin_size: 20,
            bin_limit: 25,
            increment: 0.001,
            decrement: 1.0 / 6000.0,
            rehash: Span::from_secs(600),
            warmup: Span::from_secs(60),
            penalty_rate: 10.0,
            penalty_burst: 20,
            ecn: false,
        }
    }
}

impl Config {
    /// Returns the number of bits of a hash that choose the bin of one level.
    fn bits(&self) -> u32 {
        self.bins.trailing_zeros()
    }

    fn validate_bins(&self) -> Result<(), ConfigError> {
        if !(self.bins.is_power_of_two() && (2..=65_536).contains(&self.bins)) {
            return Err(ConfigError::new("bins", "must be a power of two from 2 to 65536"));
        }
        if !(1..=64).contains(&self.levels) || self.levels * self.bits() > 64 {
            let most = 64 / self.bits();
            return Err(ConfigError::new("levels", format!("must be from 1 to {most} with {} bins", self.bins)));
        }
        if self.bin_size == 0 {
            return Err(ConfigError::new("bin_size", "must be above 0"));
        }
        if self.bin_limit <= self.bin_size {
            return Err(ConfigError::new("bin_limit", format!("must be above bin_size ({})", self.bin_size)));
        }
        Ok(())
    }
}

impl AqmConfig for Config {
    type Aqm = Sfb;

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate_bins()?;
        for (key, value) in [("increment", self.increment), ("decrement", self.decrement)] {
            if !(value > 0.0 && value <= 1.0) {
                return Err(ConfigError::new(key, "must be above 0 and at most 1"));
            }
        }
        if self.warmup > self.rehash {
            return Err(ConfigError::new("warmup", format!("must be at most rehash ({})", self.rehash)));
        }
        if !(self.penalty_rate >= 0.0 && self.penalty_rate <= 1e9) {
            return Err(ConfigError::new("penalty_rate", "must be from 0 to 1e9 packets per second"));
        }
        Ok(())
    }

    fn aqm(&self, _: &LinkFacts) -> Sfb {
        Sfb::new(self.clone())
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Bin {
    p: f64,
    queued: u32,
}

/// One set of bins and the key of its hashes.
#[derive(Debug, Clone, PartialEq)]
struct Bins {
    key: u64,
    /// The N bins of the first level, then those of the second, and so on.
    bins: Vec<Bin>,
}

/// Hashes a flow; the result is never 0. Some bits for each level choose the bins of the flow's packets in one set.
fn hash(flow: FlowId, key: u64) -> u64 {
    // The finalizer of MurmurHash3: every bit of the input changes about half of the output's.
    let mut h = u64::from(flow.0) ^ key;
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (h ^ (h >> 33)).max(1)
}

impl Bins {
    /// Calls `each` with the bin of every level.
    #[inline]
    fn of(&mut self, hash: u64, bits: u32, mut each: impl FnMut(&mut Bin)) {
        let mask = (1usize << bits) - 1;
        let mut rest = hash;
        for level in self.bins.chunks_exact_mut(mask + 1) {
            each(&mut level[rest as usize & mask]);
            rest = rest.checked_shr(bits).unwrap_or(0);
        }
    }

    /// Takes a new key and resets the probabilities. Waiting packets keep the hashes by which they were counted.
    fn renew(&mut self, key: u64) {
        self.key = key;
        self.bins.iter_mut().for_each(|bin| bin.p = 0.0);
    }
}

/// A token bucket for packets of flows which do not react.
#[derive(Debug, Clone, PartialEq)]
struct PenaltyBox {
    tokens: f64,
    filled: Instant,
}

impl PenaltyBox {
    fn lets_pass(&mut self, config: &Config, now: Instant) -> bool {
        let earned = config.penalty_rate * now.since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + earned).min(f64::from(config.penalty_burst));
        self.filled = now;
        let pass = self.tokens >= 1.0;
        self.tokens -= if pass { 1.0 } else { 0.0 };
        pass
    }
}

/// The hashes by which a packet is counted in each set of bins; 0 for a set in which it is not counted.
type Counted = [u64; 2];

/// The state of SFB.
#[derive(Debug, Clone, PartialEq)]
pub struct Sfb {
    config: Config,
    sets: [Bins; 2],
    /// Index of the set of bins in use.
    active: usize,
    /// When that set came into use; `None` before the first arrival, when the hashes have no keys yet.
    since: Option<Instant>,
    penalty: PenaltyBox,
    /// The hashes of the waiting packets, in order of arrival.
    counted: VecDeque<Counted>,
}

impl Sfb {
    /// Creates the state of an empty queue, with empty bins.
    pub fn new(config: Config) -> Self {
        let bins = Bins { key: 0, bins: vec![Bin::default(); (config.levels * config.bins) as usize] };
        Self {
            sets: [bins.clone(), bins],
            active: 0,
            since: None,
            penalty: PenaltyBox { tokens: f64::from(config.penalty_burst), filled: Instant::ZERO },
            counted: VecDeque::new(),
            config,
        }
    }

    /// Returns the probability with which a packet of `flow` would be dropped or marked; at 1 the flow is in the
    /// penalty box.
    pub fn probability(&self, flow: FlowId) -> f64 {
        let mut set = self.sets[self.active].clone();
        let (hash, mut p_min) = (hash(flow, set.key), 1.0f64);
        set.of(hash, self.config.bits(), |bin| p_min = p_min.min(bin.p));
        p_min
    }

    /// Changes the hashes if it is time; returns true if the next hashes are being warmed up.
    fn move_hashes(&mut self, now: Instant, rng: &mut Rng) -> bool {
        let Some(since) = self.since else {
            self.sets.iter_mut().for_each(|set| set.renew(rng.bits()));
            self.since = Some(now);
            return false;
        };
        let (age, rehash, warmup) = (now.since(since), self.config.rehash, self.config.warmup);
        if rehash == Span::ZERO {
            return false;
        }
        if age >= rehash {
            self.sets[self.active].renew(rng.bits());
            self.active ^= 1;
            self.since = Some(now);
            return false;
        }
        age >= rehash.saturating_sub(warmup)
    }

    /// Moves the probabilities of a packet's bins; returns the least probability and the least number queued.
    #[inline]
    fn update(&mut self, set: usize, hash: u64) -> (f64, u32) {
        let (config, mut least) = (&self.config, (1.0f64, u32::MAX));
        self.sets[set].of(hash, config.bits(), |bin| {
            if bin.queued == 0 {
                bin.p = (bin.p - config.decrement).max(0.0);
            } else if bin.queued >= config.bin_size {
                bin.p = (bin.p + config.increment).min(1.0);
            }
            least = (least.0.min(bin.p), least.1.min(bin.queued));
        });
        least
    }

    /// Judges an arrival and sets `counted` to the hashes by which the packet is to be counted.
    fn judge(&mut self, packet: &Meta, counted: &mut Counted, now: Instant, rng: &mut Rng) -> Verdict {
        let warming = self.move_hashes(now, rng);
        let (active, next) = (self.active, self.active ^ 1);
        counted[active] = hash(packet.flow, self.sets[active].key);
        let (p_min, queued) = self.update(active, counted[active]);
        if queued >= self.config.bin_limit {
            return Verdict::Drop;
        }
        if p_min >= 1.0 {
            if warming {
                counted[next] = hash(packet.flow, self.sets[next].key);
                self.update(next, counted[next]);
            }
            return if self.penalty.lets_pass(&self.config, now) { Verdict::Pass } else { Verdict::Drop };
        }
        if p_min <= 0.0 || rng.uniform() >= p_min {
            return Verdict::Pass;
        }
        if self.config.ecn && packet.ecn.is_capable() { Verdict::Mark } else { Verdict::Drop }
    }

    /// Applies `change` to the number queued in each bin of a packet.
    #[inline]
    fn count(&mut self, counted: Counted, change: impl Fn(&mut u32)) {
        let bits = self.config.bits();
        for (set, hash) in self.sets.iter_mut().zip(counted) {
            if hash != 0 {
                set.of(hash, bits, |bin| change(&mut bin.queued));
            }
        }
    }

    fn count_out(&mut self, counted: Option<Counted>) {
        if let Some(counted) = counted {
            self.count(counted, |queued| *queued = queued.saturating_sub(1));
        }
    }
}

impl Aqm for Sfb {
    const COUNTS: bool = true;

    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, _: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        let mut counted = [0; 2];
        let verdict = self.judge(packet, &mut counted, now, rng);
        if verdict != Verdict::Drop {
            self.count(counted, |queued| *queued = queued.saturating_add(1));
            self.counted.push_back(counted);
        }
        verdict
    }

    #[inline]
    fn on_dequeue(&mut self, _: &Meta, _: Span, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
        let head = self.counted.pop_front();
        self.count_out(head);
        Verdict::Pass
    }

    fn on_overflow(&mut self, _: Instant) {
        let last = self.counted.pop_back();
        self.count_out(last);
    }

    fn on_shed(&mut self, _: Backlog, _: Instant) {
        let head = self.counted.pop_front();
        self.count_out(head);
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl AckPath for Sfb {}

#[cfg(test)]
mod tests;
