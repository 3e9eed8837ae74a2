//! SFQ: stochastic fairness queueing. Classes are hashed to buckets, and buckets take turns.
//!
//! Source: McKenney, "Stochastic fairness queueing", INFOCOM 1990; turns in bytes with a deficit as in Linux sch_sfq.
//! The algorithm was designed to need no state for each flow; here the classes take the place of the flows. The classes
//! of one bucket share its turn in the order of their packets. The key of the hash changes every `perturb` packets, so
//! that no two classes share a bucket for long.
//!
//! ```text
//! bucket = hash(class, key)
//! a bucket begins:     to the end of the round, deficit = quantum
//! its turn:            sends while deficit > 0, deficit -= size; then deficit += quantum and to the end of the round
//! ```
//!
//! Packets of a class stay in order: a bucket keeps the order of classes, and the queue of each class keeps the order
//! of its packets. After a change of the key a class may be in two buckets for a while and have two turns. Weights have
//! no effect. Cost: O(1).

use super::chunks::{Chunks, List};
use super::round::{Linked, NONE, Round};
use super::{Scheduler, SchedulerConfig, Setup, Weight, no_class};
use crate::config::ConfigError;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of SFQ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Number of buckets (Linux: 1024).
    pub buckets: u32,
    /// Bytes per turn; the default is the largest packet.
    pub quantum: Option<Bytes>,
    /// Number of packets after which the key of the hash changes; 0 means never.
    pub perturb: u64,
    /// The initial key of the hash.
    pub key: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { buckets: 1024, quantum: None, perturb: 0, key: 0 }
    }
}

const MAX_BUCKETS: u32 = 1 << 20;

impl SchedulerConfig for Config {
    type Scheduler = Sfq;

    fn validate(&self, setup: &Setup<'_>) -> Result<(), ConfigError> {
        setup.validate()?;
        if !(1..=MAX_BUCKETS).contains(&self.buckets) {
            return Err(ConfigError::new("buckets", format!("must be 1 to {MAX_BUCKETS}")));
        }
        if self.quantum.is_some_and(|quantum| quantum == Bytes::ZERO || quantum.get() > 1 << 30) {
            return Err(ConfigError::new("quantum", "must be 1B to 2^30B"));
        }
        Ok(())
    }

    fn scheduler(&self, setup: &Setup<'_>) -> Sfq {
        Sfq {
            classes: setup.weights.len(),
            max_packet: setup.max_packet,
            quantum: self.quantum.unwrap_or(setup.max_packet).get() as i64,
            perturb: self.perturb,
            key: self.key,
            until_perturb: self.perturb,
            buckets: vec![Bucket { order: List::default(), deficit: 0, next: NONE }; self.buckets as usize],
            order: Chunks::default(),
            round: Round::default(),
        }
    }
}

#[derive(Debug, Clone)]
struct Bucket {
    /// The classes of the packets in this bucket, in the order of arrival.
    order: List,
    deficit: i64,
    next: u32,
}

impl Linked for Bucket {
    #[inline]
    fn next(&self) -> u32 {
        self.next
    }
    #[inline]
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

/// The SFQ scheduler.
#[derive(Debug, Clone)]
pub struct Sfq {
    classes: usize,
    max_packet: Bytes,
    quantum: i64,
    perturb: u64,
    key: u64,
    until_perturb: u64,
    buckets: Vec<Bucket>,
    order: Chunks,
    /// The buckets that have packets.
    round: Round,
}

/// The bucket of a class: a multiplicative hash of class and key, whose upper bits are scaled to the number of buckets.
fn bucket_of(class: u32, key: u64, buckets: usize) -> usize {
    let mixed = (u64::from(class) ^ key.rotate_left(32)).wrapping_add(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (((mixed >> 32) * buckets as u64) >> 32) as usize
}

impl Scheduler for Sfq {
    fn classes(&self) -> usize {
        self.classes
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    #[inline]
    fn enqueue(&mut self, class: u32, _: Bytes, _: bool) {
        let at = bucket_of(class, self.key, self.buckets.len());
        let bucket = &mut self.buckets[at];
        let was_empty = bucket.order.is_empty();
        self.order.push(&mut bucket.order, class);
        if was_empty {
            bucket.deficit = self.quantum;
            self.round.push(&mut self.buckets, at);
        }
    }

    #[inline]
    fn dequeue(&mut self) -> Option<u32> {
        self.order.first(&self.buckets[self.round.first()?].order)
    }

    #[inline]
    fn served(&mut self, _: u32, size: Bytes, _: Option<Bytes>) {
        let Some(at) = self.round.first() else { return };
        let bucket = &mut self.buckets[at];
        self.order.pop(&mut bucket.order);
        bucket.deficit -= size.get() as i64;
        if bucket.order.is_empty() {
            self.round.pop(&self.buckets);
        } else {
            while self.buckets[at].deficit <= 0 {
                self.buckets[at].deficit += self.quantum;
                self.round.pop(&self.buckets);
                self.round.push(&mut self.buckets, at);
            }
        }
        if self.perturb > 0 {
            self.until_perturb -= 1;
            if self.until_perturb == 0 {
                (self.key, self.until_perturb) = (self.key.wrapping_add(1), self.perturb);
            }
        }
    }

    fn set_weight(&mut self, class: u32, _: Weight) -> Result<(), ConfigError> {
        if (class as usize) < self.classes { Ok(()) } else { Err(no_class(class, self.classes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Queues, queues};
    use super::*;

    fn sfq(config: &Config, classes: usize) -> Queues<Sfq> {
        queues(config, &vec![1; classes])
    }

    #[test]
    fn a_class_that_does_not_exist_has_no_weight() {
        let mut queues = sfq(&Config::default(), 2);
        let known = [0, 1, 2].map(|class| queues.queues.scheduler_mut().set_weight(class, Weight::ONE).is_ok());
        assert_eq!(known, [true, true, false]);
    }

    /// Two classes that do not collide take turns; with one bucket both form a FIFO.
    #[test]
    fn buckets_take_turns_and_within_one_the_first_goes_first() {
        let apart = (0..).find(|class| bucket_of(*class, 0, 1024) != bucket_of(0, 0, 1024)).unwrap();
        for (buckets, due) in [(1024, [0, apart, 0, apart, 0, apart]), (1, [0, 0, 0, apart, apart, apart])] {
            let mut queues = sfq(&Config { buckets, ..Config::default() }, apart as usize + 1);
            queues.offer(0, &[1500; 3]);
            queues.offer(apart, &[1500; 3]);
            assert_eq!(queues.serve(), due);
        }
    }

    /// Two classes share one of two buckets, and the first class sends its four packets. Then the key changes and moves
    /// `a` but not `b` to the other bucket: the next packets of `a` take turns with those that `b` has in the old
    /// bucket.
    #[test]
    fn another_key_parts_classes_that_shared_a_bucket() {
        let stays = |class: u32| bucket_of(class, 0, 2) == bucket_of(class, 1, 2);
        let a = (0..).find(|a| !stays(*a)).unwrap();
        let b = (0..).find(|b| stays(*b) && bucket_of(*b, 0, 2) == bucket_of(a, 0, 2)).unwrap();
        for (perturb, due) in [(4, [b, a, b, a, b, a, b, a]), (0, [b, b, b, b, a, a, a, a])] {
            let mut queues = sfq(&Config { buckets: 2, perturb, ..Config::default() }, 1 + a.max(b) as usize);
            queues.offer(a, &[1500; 4]);
            queues.offer(b, &[1500; 4]);
            assert_eq!(queues.serve_n(4), [a; 4]);
            queues.offer(a, &[1500; 4]);
            assert_eq!(queues.serve(), due);
        }
    }

    #[test]
    fn the_hash_spreads_classes_evenly() {
        let (classes, buckets) = (10_000u32, 100usize);
        for key in 0..4 {
            let mut counts = vec![0u32; buckets];
            (0..classes).for_each(|class| counts[bucket_of(class, key, buckets)] += 1);
            let chi: f64 = counts.iter().map(|count| (f64::from(*count) - 100.0).powi(2) / 100.0).sum();
            // For 99 degrees of freedom the mean is 99 and 170 is five standard deviations above it.
            assert!(chi < 170.0, "{chi} with key {key}");
        }
    }

    #[test]
    fn turns_are_counted_in_bytes() {
        let apart = (0..).find(|class| bucket_of(*class, 0, 1024) != bucket_of(0, 0, 1024)).unwrap();
        let mut queues = sfq(&Config::default(), apart as usize + 1);
        queues.offer(0, &[500; 9]);
        queues.offer(apart, &[1500; 3]);
        assert_eq!(queues.serve(), [0, 0, 0, apart, 0, 0, 0, apart, 0, 0, 0, apart]);
    }

    #[test]
    fn values_that_cannot_work_are_refused() {
        let setup = Setup { weights: &[Weight::ONE], max_packet: Bytes::new(1500) };
        assert!(Config { buckets: 0, ..Config::default() }.validate(&setup).is_err());
        assert!(Config { quantum: Some(Bytes::ZERO), ..Config::default() }.validate(&setup).is_err());
    }
}
