//! What one direction of a link does to packets besides queueing, transmitting and losing them: it may police them
//! without a buffer, release them in bursts, or let some of them be overtaken.
//!
//! A policer stands before the queue: a packet above its rate is dropped when it comes, and takes no time on the wire.
//! Bursts and reordering come behind the wire, after the propagation delay. They change only when a packet arrives.

use penstock_core::config::ConfigError;
use penstock_core::rng::Rng;
use penstock_core::units::{Bytes, Instant, Rate, Span};
use penstock_grammar::link;
use penstock_grammar::range::within;
use serde::{Deserialize, Serialize};

/// The smallest burst of a policer, a packet of Ethernet: with less no full packet ever conforms.
const LEAST_BURST: Bytes = Bytes::new(1500);
const MOST_BURST: Bytes = Bytes::new(1_000_000_000);
const MOST_PACKETS: u32 = 1_000_000;
const LEAST_TIME: Span = Span::from_micros(1);
const MOST_TIME: Span = Span::from_secs(10);
/// A token bucket counts in billionths of a bit, which are nanoseconds times bits per second.
const BILLIONTHS_PER_BYTE: u128 = 8_000_000_000;

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

/// Gives a mistake within a table the name of the table's key.
fn named(key: &'static str, checked: Result<(), ConfigError>) -> Result<(), ConfigError> {
    checked.map_err(|mistake| ConfigError::new(key, mistake.message))
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
}

impl Impairments {
    /// Checks that all values are allowed.
    ///
    /// # Errors
    /// Returns the first key whose value is not allowed, without the prefix of the reverse direction.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Some(Police { rate, burst }) = self.police {
            named("police", link::rate("rate", rate))?;
            named("police", within("burst", &burst, LEAST_BURST..=MOST_BURST))?;
        }
        if let Some(Aggregate { interval, packets }) = self.aggregate {
            named("aggregate", within("interval", &interval, LEAST_TIME..=MOST_TIME))?;
            named("aggregate", within("packets", &packets.unwrap_or(2), 2..=MOST_PACKETS))?;
        }
        if let Some(Reorder { share, by }) = self.reorder {
            named("reorder", link::loss("share", share))?;
            named("reorder", within("by", &by, LEAST_TIME..=MOST_TIME))?;
        }
        if self.aggregate.is_some() && self.reorder.is_some() {
            let message = "a direction of a link aggregates or reorders, not both; two links can";
            return Err(ConfigError::new("reorder", message.to_owned()));
        }
        Ok(())
    }

    /// Returns the key of the first impairment; `None` if there is none.
    pub fn key(&self) -> Option<&'static str> {
        let there = [self.police.is_some(), self.aggregate.is_some(), self.reorder.is_some()];
        ["police", "aggregate", "reorder"].into_iter().zip(there).find(|(_, there)| *there).map(|(key, _)| key)
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
        let form = match (self.aggregate, self.reorder) {
            (Some(aggregate), _) => Form::Bursts(Bursts { aggregate, held: 0, release: Instant::ZERO }),
            (None, Some(reorder)) => Form::Overtaking(reorder),
            (None, None) => return None,
        };
        Some(Behind { form, rng, bursts: 0, reordered: 0 })
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

#[derive(Debug)]
enum Form {
    /// Nothing any more: packets arrive when the wire delivers them, before others that were delayed earlier.
    Straight,
    Bursts(Bursts),
    Overtaking(Reorder),
}

/// When a packet arrives which the wire delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When the packet arrives.
    pub at: Instant,
    /// The time at which packets that were to arrive at `.0` arrive instead, with this one.
    pub earlier: Option<(Instant, Instant)>,
}

/// What comes behind the wire.
#[derive(Debug)]
pub struct Behind {
    form: Form,
    rng: Rng,
    /// Number of bursts so far.
    pub bursts: u64,
    /// Number of packets delayed so far.
    pub reordered: u64,
}

impl Behind {
    /// Decides when a packet arrives that the wire delivers at `at`.
    pub fn arrival(&mut self, at: Instant) -> Arrival {
        match &mut self.form {
            Form::Straight => Arrival { at, earlier: None },
            Form::Overtaking(Reorder { share, by }) => {
                let delayed = self.rng.uniform() < *share;
                self.reordered += u64::from(delayed);
                Arrival { at: if delayed { at + *by } else { at }, earlier: None }
            }
            Form::Bursts(bursts) => {
                if bursts.held == 0 || at > bursts.release {
                    (bursts.held, bursts.release) = (0, at + bursts.aggregate.interval);
                    self.bursts += 1;
                }
                bursts.held += 1;
                if Some(bursts.held) != bursts.aggregate.packets {
                    return Arrival { at: bursts.release, earlier: None };
                }
                bursts.held = 0;
                Arrival { at, earlier: Some((bursts.release, at)) }
            }
        }
    }

    /// Takes over the counters of what came behind the wire until now.
    pub fn follow(&mut self, before: &Self) {
        (self.bursts, self.reordered) = (before.bursts, before.reordered);
    }

    /// From now on does nothing to packets.
    pub fn end(&mut self) {
        self.form = Form::Straight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::rng::Streams;
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
        let mut at = |t| behind.arrival(ms(t));
        assert_eq!(at(5), Arrival { at: ms(15), earlier: None });
        assert_eq!(at(15), Arrival { at: ms(15), earlier: None }); // the last time at which it joins
        assert_eq!(at(16), Arrival { at: ms(26), earlier: None });
        assert_eq!(at(17), Arrival { at: ms(26), earlier: None });
        assert_eq!(at(18), Arrival { at: ms(18), earlier: Some((ms(26), ms(18))) }); // the third releases all
        assert_eq!(at(18), Arrival { at: ms(28), earlier: None });
        assert_eq!(behind.bursts, 3);
    }

    #[test]
    fn as_many_are_delayed_as_the_share_says() {
        let reorder = Reorder { share: 0.1, by: Span::from_millis(7) };
        let impairments = Impairments { reorder: Some(reorder), ..Default::default() };
        let mut behind = impairments.behind(Streams::new(1).get("x")).expect("reordering");
        let delayed = (0..100_000).filter(|t| behind.arrival(ms(*t)).at == ms(t + 7)).count() as f64;
        assert_eq!(delayed, behind.reordered as f64);
        // Binomial: mean 10,000, standard deviation 94.9; the bound is five of them.
        assert!((delayed - 10_000.0).abs() < 475.0, "{delayed}");
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
