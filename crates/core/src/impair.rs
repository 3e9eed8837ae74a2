//! What one direction of a link does to packets besides queueing and transmitting them: it may police them without a
//! buffer, release them in bursts, delay them unevenly, let some be overtaken, duplicate some, and lose several in a row.
//!
//! A policer stands before the queue: a packet above its rate is dropped when it comes, and takes no time on the wire.
//! All else comes behind the wire, during the propagation delay, and changes only when a packet arrives. Simulator and
//! emulator have this code in common.
//!
//! The keys are those of tc-netem(8), and so is the model of losses in a row (`loss gemodel`).
//! DIFFERENCE: netem mixes a new uniform number with the last one for `correlation`, by which delays come nearer to their
//! mean; here delays have the distribution that is asked for, whatever their correlation
//! (`correlated_delays_have_the_same_distribution`).
//! DIFFERENCE: netem duplicates a packet before its queue; here a copy arrives directly behind the packet
//! (`a_share_of_the_packets_arrives_twice`).

use crate::rng::Rng;
use crate::units::{Bytes, Instant, Rate, Span};
use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_1_SQRT_2, PI, TAU};

/// A token bucket counts in billionths of a bit, which are nanoseconds times bits per second.
const BILLIONTHS_PER_BYTE: u128 = 8_000_000_000;
/// The exponent of the Pareto distribution of delays, with its mean and its standard deviation. netem has the same one.
const PARETO: (f64, f64, f64) = (3.0, 1.5, 0.866_025_403_784_438_6);

/// A token bucket that drops what does not conform.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Police {
    /// Rate at which tokens come.
    pub rate: Rate,
    /// Size of the bucket, which is full at the beginning.
    pub burst: Bytes,
}

/// A link that releases packets in bursts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aggregate {
    /// Time from the first packet of a burst to its release.
    pub interval: Span,
    /// Number of packets with which a burst is released earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
}

/// A link on which some packets are overtaken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Part of the packets that are delayed.
    pub share: f64,
    /// Delay of each of them, besides that of the link.
    pub by: Span,
}

/// How a delay varies about that of the link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// From `by` less to `by` more, each with the same probability.
    #[default]
    Uniform,
    /// The normal distribution with standard deviation `by`.
    Normal,
    /// The Pareto distribution with exponent 3 and standard deviation `by`: many are a little early, some are very late.
    Pareto,
}

/// A link whose delay varies from packet to packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// By how much delays differ from that of the link. No packet arrives before its transmission ends.
    pub by: Span,
    /// Correlation of the delays of two packets that follow each other, 0 to 1.
    #[serde(default)]
    pub correlation: f64,
    /// The distribution of the delays.
    #[serde(default)]
    pub distribution: Distribution,
    /// True if packets stay in order: one that would overtake others arrives with them.
    #[serde(default)]
    pub keep_order: bool,
}

/// A wire that loses several packets in a row: the model of Gilbert and Elliott. In each of two states it loses packets
/// with a probability, and after each packet it may change to the other state. It begins in the good one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gilbert {
    /// Probability to change from the good to the bad state after a packet.
    pub to_bad: f64,
    /// Probability to change from the bad to the good state after a packet; losses in a row are `1 / to_good` on average.
    pub to_good: f64,
    /// Probability to lose a packet in the bad state.
    #[serde(default = "always")]
    pub bad: f64,
    /// Probability to lose a packet in the good state.
    #[serde(default)]
    pub good: f64,
}

fn always() -> f64 {
    1.0
}

/// The impairments of one direction of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Impairments {
    /// The policer before the queue.
    pub police: Option<Police>,
    /// Bursts behind the wire.
    pub aggregate: Option<Aggregate>,
    /// Packets that others overtake behind the wire.
    pub reorder: Option<Reorder>,
    /// Delays that vary.
    pub jitter: Option<Jitter>,
    /// Part of the packets that arrive twice, without any if it is 0.
    pub duplicate: f64,
    /// Losses in a row on the wire.
    pub gilbert: Option<Gilbert>,
}

impl Impairments {
    /// The keys of the impairments.
    pub const KEYS: [&str; 6] = ["police", "aggregate", "reorder", "jitter", "duplicate", "gilbert"];

    /// Returns the key of the first impairment; `None` if there is none.
    pub fn key(&self) -> Option<&'static str> {
        let Self { police, aggregate, reorder, jitter, duplicate, gilbert } = self;
        let behind = [aggregate.is_some(), reorder.is_some(), jitter.is_some(), *duplicate > 0.0, gilbert.is_some()];
        let there = std::iter::once(police.is_some()).chain(behind);
        Self::KEYS.into_iter().zip(there).find(|(_, there)| *there).map(|(key, _)| key)
    }

    /// Returns the state of the policer; `None` without one.
    pub fn policer(&self) -> Option<Policer> {
        self.police.map(Policer::new)
    }

    /// Returns the state of a policer that begins at `now`, with a full bucket; `None` without one.
    pub fn policer_from(&self, now: Instant) -> Option<Policer> {
        self.policer().map(|policer| Policer { at: now, ..policer })
    }

    /// Returns the state of what comes behind the wire; `None` if that is nothing. `rng` is a random stream of its own.
    pub fn behind(&self, rng: Rng) -> Option<Behind> {
        let bursts = |aggregate| Bursts { aggregate, held: 0, release: Instant::ZERO };
        let varied = |jitter| Varied { jitter, rng: rng.branch("jitter"), deviation: None, latest: Instant::ZERO };
        let behind = Behind {
            aggregate: self.aggregate.map(bursts),
            reorder: self.reorder,
            jitter: self.jitter.map(varied),
            duplicate: self.duplicate,
            second: rng.branch("duplicate"),
            rng,
            bursts: 0,
            reordered: 0,
            duplicated: 0,
        };
        let does = behind.aggregate.is_some() || behind.reorder.is_some() || behind.jitter.is_some();
        (does || behind.duplicate > 0.0).then_some(behind)
    }
}

/// A token bucket without a queue.
#[derive(Debug)]
pub struct Policer {
    police: Police,
    /// Tokens at `at`, in billionths of a bit.
    tokens: u128,
    at: Instant,
    /// Number of packets dropped so far.
    pub dropped: u64,
}

impl Policer {
    fn new(police: Police) -> Self {
        let tokens = u128::from(police.burst.get()) * BILLIONTHS_PER_BYTE;
        Self { police, tokens, at: Instant::ZERO, dropped: 0 }
    }

    /// Decides whether a packet that comes at `now` conforms, and takes its tokens.
    pub fn conforms(&mut self, size: Bytes, now: Instant) -> bool {
        let full = u128::from(self.police.burst.get()) * BILLIONTHS_PER_BYTE;
        let earned = u128::from(now.since(self.at).as_nanos()) * u128::from(self.police.rate.as_bps());
        self.tokens = (self.tokens + earned).min(full);
        self.at = now;
        let needed = u128::from(size.get()) * BILLIONTHS_PER_BYTE;
        let conforms = self.tokens >= needed;
        match conforms {
            true => self.tokens -= needed,
            false => self.dropped += 1,
        }
        conforms
    }
}

#[derive(Debug)]
struct Bursts {
    aggregate: Aggregate,
    /// Number of packets of the burst that is held.
    held: u32,
    /// When it is released.
    release: Instant,
}

impl Bursts {
    fn arrival(&mut self, at: Instant, begun: &mut u64) -> Arrival {
        if self.held == 0 || at > self.release {
            (self.held, self.release) = (0, at + self.aggregate.interval);
            *begun += 1;
        }
        self.held += 1;
        if Some(self.held) != self.aggregate.packets {
            return Arrival { at: self.release, earlier: None, twice: false };
        }
        self.held = 0;
        Arrival { at, earlier: Some((self.release, at)), twice: false }
    }
}

/// Delays that vary.
#[derive(Debug)]
struct Varied {
    jitter: Jitter,
    rng: Rng,
    /// The standard normal number of the packet before; `None` at the beginning.
    deviation: Option<f64>,
    /// When the latest packet arrives.
    latest: Instant,
}

impl Varied {
    /// Draws when a packet arrives whose transmission ends at `end`.
    fn arrival(&mut self, end: Instant, delay: Span) -> Instant {
        let by = self.jitter.by.as_secs_f64() * self.draw();
        let varied = Span::from_secs_f64((delay.as_secs_f64() + by).max(0.0));
        if !self.jitter.keep_order {
            return end + varied;
        }
        self.latest = self.latest.max(end + varied);
        self.latest
    }

    /// Draws the deviation of a delay, in units of `by`. Normal numbers of a first-order autoregression are mapped to the
    /// distribution, so that it does not depend on the correlation.
    fn draw(&mut self) -> f64 {
        let Jitter { correlation, distribution, .. } = self.jitter;
        if correlation == 0.0 {
            return match distribution {
                Distribution::Uniform => 2.0 * self.rng.uniform() - 1.0,
                Distribution::Normal => normal(&mut self.rng),
                Distribution::Pareto => pareto(1.0 - self.rng.uniform()),
            };
        }
        let rho = match distribution {
            // Uniform numbers made of normal ones with this correlation have the one that is asked for (Pearson, 1907).
            Distribution::Uniform => 2.0 * libm::sin(PI * correlation / 6.0),
            Distribution::Normal | Distribution::Pareto => correlation,
        };
        let new = normal(&mut self.rng);
        let z = self.deviation.map_or(new, |before| rho * before + libm::sqrt(1.0 - rho * rho) * new);
        self.deviation = Some(z);
        // The probability of a greater number.
        let above = 0.5 * libm::erfc(z * FRAC_1_SQRT_2);
        match distribution {
            Distribution::Uniform => 1.0 - 2.0 * above,
            Distribution::Normal => z,
            Distribution::Pareto => pareto(above),
        }
    }
}

/// Draws from the standard normal distribution, by the method of Box and Muller.
fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.uniform()));
    radius * libm::cos(TAU * rng.uniform())
}

/// Returns the number of the Pareto distribution, with mean 0 and standard deviation 1, that greater ones exceed with
/// probability `above`.
fn pareto(above: f64) -> f64 {
    let (exponent, mean, deviation) = PARETO;
    (libm::pow(above.max(f64::MIN_POSITIVE), -1.0 / exponent) - mean) / deviation
}

/// When a packet arrives which the wire delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When the packet arrives.
    pub at: Instant,
    /// The time at which packets that were to arrive at `.0` arrive instead, with this one.
    pub earlier: Option<(Instant, Instant)>,
    /// True if it arrives twice, the second time directly behind the first.
    pub twice: bool,
}

/// What comes behind the wire.
#[derive(Debug)]
pub struct Behind {
    aggregate: Option<Bursts>,
    reorder: Option<Reorder>,
    jitter: Option<Varied>,
    duplicate: f64,
    /// Decides which packets are delayed by `reorder`.
    rng: Rng,
    /// Decides which packets arrive twice.
    second: Rng,
    /// Number of bursts so far.
    pub bursts: u64,
    /// Number of packets delayed so far.
    pub reordered: u64,
    /// Number of packets that arrive twice so far.
    pub duplicated: u64,
}

impl Behind {
    /// Decides when a packet arrives whose transmission ends at `end`, on a link with this delay.
    pub fn arrival(&mut self, end: Instant, delay: Span) -> Arrival {
        let mut at = self.jitter.as_mut().map_or(end + delay, |varied| varied.arrival(end, delay));
        if let Some(Reorder { share, by }) = self.reorder {
            let delayed = self.rng.uniform() < share;
            self.reordered += u64::from(delayed);
            at = if delayed { at + by } else { at };
        }
        let twice = self.duplicate > 0.0 && self.second.uniform() < self.duplicate;
        self.duplicated += u64::from(twice);
        match &mut self.aggregate {
            Some(bursts) => Arrival { twice, ..bursts.arrival(at, &mut self.bursts) },
            None => Arrival { at, earlier: None, twice },
        }
    }

    /// Takes over the counters of what came behind the wire until now.
    pub fn follow(&mut self, before: &Self) {
        (self.bursts, self.reordered, self.duplicated) = (before.bursts, before.reordered, before.duplicated);
    }

    /// From now on does nothing to packets: they arrive when the wire delivers them, before others that were delayed
    /// earlier.
    pub fn end(&mut self) {
        (self.aggregate, self.reorder, self.jitter, self.duplicate) = (None, None, None, 0.0);
    }
}

/// Losses in a row on a wire.
#[derive(Debug)]
pub struct Losses {
    model: Gilbert,
    is_bad: bool,
    rng: Rng,
}

impl Losses {
    /// Creates a wire in its good state. `rng` is a random stream of its own.
    pub fn new(model: Gilbert, rng: Rng) -> Self {
        Self { model, is_bad: false, rng }
    }

    /// Decides whether the next packet is lost, and goes on to the next state.
    pub fn strikes(&mut self) -> bool {
        let Gilbert { to_bad, to_good, bad, good } = self.model;
        let (changes, loss) = if self.is_bad { (to_good, bad) } else { (to_bad, good) };
        let lost = self.rng.uniform() < loss;
        self.is_bad ^= self.rng.uniform() < changes;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;
    use proptest::prelude::*;

    fn ms(value: u64) -> Instant {
        Instant::ZERO + Span::from_millis(value)
    }

    /// 8 Mbit/s are 1000 bytes in a millisecond; the bucket has 3000 bytes.
    #[test]
    fn the_bucket_is_full_at_first_and_fills_with_the_rate() {
        let mut policer = Policer::new(Police { rate: Rate::from_bps(8_000_000), burst: Bytes::new(3000) });
        let at = |policer: &mut Policer, t, n| policer.conforms(Bytes::new(n), ms(t));
        assert!(at(&mut policer, 0, 3000)); // all of it
        assert!(!at(&mut policer, 0, 1));
        assert!(!at(&mut policer, 1, 1001)); // 1000 tokens, none of which a dropped packet takes
        assert!(at(&mut policer, 1, 1000));
        assert!(at(&mut policer, 100, 3000)); // never more than the bucket
        assert!(!at(&mut policer, 100, 1));
        assert_eq!(policer.dropped, 3);
    }

    #[test]
    fn a_burst_leaves_after_the_interval_or_when_it_is_full() {
        let aggregate = Aggregate { interval: Span::from_millis(10), packets: Some(3) };
        let impairments = Impairments { aggregate: Some(aggregate), ..Default::default() };
        let mut behind = impairments.behind(Streams::new(1).get("x")).expect("bursts");
        let mut at = |t| behind.arrival(ms(t), Span::ZERO);
        let held = |at| Arrival { at, earlier: None, twice: false };
        assert_eq!(at(5), held(ms(15)));
        assert_eq!(at(15), held(ms(15))); // the last time at which it joins
        assert_eq!(at(16), held(ms(26)));
        assert_eq!(at(17), held(ms(26)));
        assert_eq!(at(18), Arrival { earlier: Some((ms(26), ms(18))), ..held(ms(18)) }); // the third releases all
        assert_eq!(at(18), held(ms(28)));
        assert_eq!(behind.bursts, 3);
    }

    #[test]
    fn as_many_are_delayed_as_the_share_says() {
        let reorder = Reorder { share: 0.1, by: Span::from_millis(7) };
        let impairments = Impairments { reorder: Some(reorder), ..Default::default() };
        let mut behind = impairments.behind(Streams::new(1).get("x")).expect("reordering");
        let delayed = (0..100_000).filter(|t| behind.arrival(ms(*t), Span::ZERO).at == ms(t + 7)).count() as f64;
        assert_eq!(delayed, behind.reordered as f64);
        // Binomial: mean 10,000, standard deviation 94.9; the bound is five of them.
        assert!((delayed - 10_000.0).abs() < 475.0, "{delayed}");
    }

    /// The delays of `n` packets in units of `by`, which is far below the delay of the link.
    fn delays(n: u64, jitter: Jitter) -> Vec<f64> {
        let impairments = Impairments { jitter: Some(jitter), ..Default::default() };
        let mut behind = impairments.behind(Streams::new(3).get("x")).expect("jitter");
        let delay = Span::from_secs(10);
        let one = |t| behind.arrival(ms(t), delay).at.since(ms(t)).as_secs_f64() - 10.0;
        (0..n).map(|t| t * 100).map(one).map(|late| late / jitter.by.as_secs_f64()).collect()
    }

    fn jitter(distribution: Distribution, correlation: f64) -> Jitter {
        Jitter { by: Span::from_millis(10), correlation, distribution, keep_order: false }
    }

    /// The largest distance between the share of numbers up to x and a distribution function, of Kolmogorov and Smirnov.
    fn distance(mut found: Vec<f64>, function: impl Fn(f64) -> f64) -> f64 {
        found.sort_by(f64::total_cmp);
        let n = found.len() as f64;
        let step = |(i, x): (usize, &f64)| {
            let p = function(*x);
            (p - i as f64 / n).max((i + 1) as f64 / n - p)
        };
        found.iter().enumerate().map(step).fold(0.0, f64::max)
    }

    /// The distribution functions as the books have them; of a Pareto variable with minimum 1 and exponent 3 the mean is 3/2
    /// and the variance 3/4.
    fn function(distribution: Distribution) -> fn(f64) -> f64 {
        match distribution {
            Distribution::Uniform => |x| (x.clamp(-1.0, 1.0) + 1.0) / 2.0,
            Distribution::Normal => |x| 0.5 * (1.0 + libm::erf(x / 2f64.sqrt())),
            Distribution::Pareto => |x| {
                let value = x * 0.75f64.sqrt() + 1.5;
                if value < 1.0 { 0.0 } else { 1.0 - value.powi(-3) }
            },
        }
    }

    const DISTRIBUTIONS: [Distribution; 3] = [Distribution::Uniform, Distribution::Normal, Distribution::Pareto];

    /// 1.95 / sqrt(n) is exceeded by chance once in a thousand times.
    #[test]
    fn delays_have_the_distribution_that_is_asked_for() {
        let n = 100_000;
        for distribution in DISTRIBUTIONS {
            let apart = distance(delays(n, jitter(distribution, 0.0)), function(distribution));
            assert!(apart < 1.95 / (n as f64).sqrt(), "{distribution:?}: {apart}");
        }
    }

    /// Every fiftieth delay with a correlation of 0.75 from one to the next: they are independent then (0.75^50 < 1e-6).
    #[test]
    fn correlated_delays_have_the_same_distribution() {
        for distribution in DISTRIBUTIONS {
            let all = delays(1_000_000, jitter(distribution, 0.75));
            let apart = distance(all.iter().copied().step_by(50).collect(), function(distribution));
            assert!(apart < 1.95 / 20_000f64.sqrt(), "{distribution:?}: {apart}");
        }
    }

    /// The standard error is below sqrt((1 + r^2) / (1 - r^2) / n) = 0.0042 for r = 0.8; the bound is five of them.
    #[test]
    fn delays_are_correlated_as_much_as_is_asked_for() {
        for (distribution, asked) in
            [(Distribution::Uniform, 0.8), (Distribution::Normal, 0.8), (Distribution::Uniform, 0.25)]
        {
            let all = delays(250_000, jitter(distribution, asked));
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let variance: f64 = all.iter().map(|x| (x - mean).powi(2)).sum();
            let product: f64 = all.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
            assert!((product / variance - asked).abs() < 0.021, "{distribution:?} {asked}: {}", product / variance);
        }
    }

    /// A correlation of 1 keeps the first deviation for ever.
    #[test]
    fn a_full_correlation_is_one_delay() {
        for distribution in DISTRIBUTIONS {
            let all = delays(100, jitter(distribution, 1.0));
            assert!(all.iter().all(|one| (one - all[0]).abs() < 1e-6), "{all:?}");
        }
    }

    /// A packet each 100 us, and delays from 0 to 20 ms.
    #[test]
    fn packets_overtake_unless_their_order_is_kept() {
        for keep_order in [false, true] {
            let jitter = Jitter { keep_order, ..jitter(Distribution::Uniform, 0.0) };
            let impairments = Impairments { jitter: Some(jitter), ..Default::default() };
            let mut behind = impairments.behind(Streams::new(1).get("x")).expect("jitter");
            let end = |n: u64| Instant::ZERO + Span::from_micros(100 * n);
            let at: Vec<_> = (0..10_000).map(|n| behind.arrival(end(n), jitter.by).at).collect();
            assert_eq!(at.is_sorted(), keep_order);
            assert!((0..).zip(&at).all(|(n, at)| *at >= end(n) && *at < end(n + 201)), "within the bounds");
        }
    }

    #[test]
    fn no_packet_arrives_before_its_transmission_ends() {
        let impairments = Impairments { jitter: Some(jitter(Distribution::Normal, 0.5)), ..Default::default() };
        let mut behind = impairments.behind(Streams::new(1).get("x")).expect("jitter");
        let early = (0..10_000).filter(|t| behind.arrival(ms(*t), Span::from_millis(1)).at == ms(*t)).count();
        assert!(early > 4000, "a delay of 1 ms less a deviation of 10 ms: {early}");
    }

    #[test]
    fn a_share_of_the_packets_arrives_twice() {
        let impairments = Impairments { duplicate: 0.02, ..Default::default() };
        let mut behind = impairments.behind(Streams::new(1).get("x")).expect("copies");
        let twice = (0..100_000).map(ms).filter(|t| behind.arrival(*t, Span::ZERO).twice).count() as f64;
        assert_eq!(twice, behind.duplicated as f64);
        // Binomial: mean 2000, standard deviation 44.3; the bound is five of them.
        assert!((twice - 2000.0).abs() < 222.0, "{twice}");
    }

    /// In the long run a part `to_bad / (to_bad + to_good)` of the packets meets the bad state, and losses in a row are
    /// geometric with mean `1 / to_good`.
    #[test]
    fn losses_come_in_rows_of_the_mean_length() {
        let model = Gilbert { to_bad: 0.01, to_good: 0.25, bad: 1.0, good: 0.0 };
        let mut losses = Losses::new(model, Streams::new(1).get("x"));
        let n = 1_000_000;
        let struck: Vec<bool> = (0..n).map(|_| losses.strikes()).collect();
        let lost = struck.iter().filter(|lost| **lost).count() as f64;
        let rows = struck.windows(2).filter(|two| !two[0] && two[1]).count() as f64;
        assert!((lost / n as f64 - 0.01 / 0.26).abs() < 0.001, "{lost}");
        // A geometric length of mean 4 has a standard deviation of 3.46; the bound is five standard errors.
        assert!((lost / rows - 4.0).abs() < 5.0 * 3.46 / rows.sqrt(), "{lost} in {rows} rows");
    }

    /// Both states lose: the part is the mean of the two probabilities by how often the states are met.
    #[test]
    fn each_state_has_its_probability() {
        let model = Gilbert { to_bad: 0.1, to_good: 0.3, bad: 0.4, good: 0.02 };
        let mut losses = Losses::new(model, Streams::new(1).get("x"));
        let part = (0..1_000_000).filter(|_| losses.strikes()).count() as f64 / 1e6;
        assert!((part - (0.25 * 0.4 + 0.75 * 0.02)).abs() < 0.003, "{part}");
    }

    proptest! {
        /// What passes conforms: over every interval at most the bucket and what its rate brings; and a packet is dropped
        /// only if it would break this.
        #[test]
        fn the_rate_and_the_burst_hold_over_every_interval(
            bps in 1_000u64..1_000_000_000, burst in 1500u64..100_000,
            packets in prop::collection::vec((0u64..5_000_000, 40u64..1500), 1..80),
        ) {
            let mut policer = Policer::new(Police { rate: Rate::from_bps(bps), burst: Bytes::new(burst) });
            let (mut now, mut passed) = (0u64, Vec::<(u64, u64)>::new());
            let fits = |passed: &[(u64, u64)], now: u64, size: u64| {
                let mut bytes = size;
                let all = passed.iter().rev().map(|(t, size)| { bytes += size; (now - t, bytes) });
                let mut all = std::iter::once((0, size)).chain(all);
                all.all(|(ns, bytes)| {
                    let most = u128::from(burst) * BILLIONTHS_PER_BYTE + u128::from(ns) * u128::from(bps);
                    u128::from(bytes) * BILLIONTHS_PER_BYTE <= most
                })
            };
            for (gap, size) in packets {
                now += gap;
                let expected = fits(&passed, now, size);
                prop_assert_eq!(policer.conforms(Bytes::new(size), Instant::from_nanos(now)), expected);
                if expected {
                    passed.push((now, size));
                }
            }
        }
    }
}
