//! QFQ: timestamps as in WF²Q+, rounded so that the class to serve is found in a fixed number of steps.
//!
//! Source: Checconi, Rizzo, Valente, "QFQ: efficient packet scheduling with tight guarantees", IEEE/ACM ToN 21(3), 2013;
//! constants as in Linux 3.6, net/sched/sch_qfq.c. Groups, slots and bitmaps are in `groups.rs`.
//!
//! ```text
//! a class comes:     S = F if V < F <= V + 1 slot, rounded; else V (or the F of the ready group that blocks its own)
//! its next packet:   S = F,   F = S + size / weight
//! dequeue:           of the groups with S <= V that with the least F; of its first slot the class that came first
//! after a packet:    V += size / (sum of all weights);  if no group has S <= V: V = the least S
//! ```
//!
//! Worst-case fairness index in bytes: 3 phi_k sigma + 2 phi_k L, with phi_k the class's share, sigma its slot (less
//! than twice L / weight, as bytes of the link) and L the largest packet: about 5 packets. `tests/schedulers.rs` checks
//! it. Cost: O(1). State for each class: 32 bytes, which is all that serving one of its packets reads.
//!
//! DIFFERENCE: virtual time has 36 bits below the byte and 25 groups (Linux 3.6: 30 and 20), so that weights up to 2^20
//! have groups of their own (`each_power_of_two_of_weight_has_a_group_of_its_own`). V advances by the true sum of
//! weights, as in Linux since 3.8; older Linux and FreeBSD's dummynet use a constant sum. Pinned by
//! `virtual_time_goes_on_with_the_true_sum_of_weights`.
//! DIFFERENCE: classes of one slot are served in the order in which they joined it; Linux serves the latest first. The
//! source leaves the order open. Pinned by `the_least_rounded_finish_is_served_first`.

use super::groups::{Groups, Stamp};
use super::virtual_time::{ONE, changed, total};
use super::{Scheduler, SchedulerConfig, Setup, Weight, no_class};
use crate::config::ConfigError;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// QFQ has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl SchedulerConfig for Config {
    type Scheduler = Qfq;

    fn scheduler(&self, setup: &Setup<'_>) -> Qfq {
        let mut groups = Groups::new(setup.max_packet);
        let stamp = |weight: &Weight| groups.stamp(setup.max_packet, ONE / u64::from(weight.get()));
        groups.stamps = setup.weights.iter().map(stamp).collect();
        let total = total(setup.weights);
        Qfq { max_packet: setup.max_packet, groups, total, inverse: ONE / total, weights: setup.weights.to_vec() }
    }
}

/// The QFQ scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Qfq {
    max_packet: Bytes,
    groups: Groups,
    total: u64,
    /// 1 / (sum of weights), in units of virtual time per byte.
    inverse: u64,
    /// Weights as they were set last; a class with packets takes its new weight with its next packet.
    weights: Vec<Weight>,
}

impl Qfq {
    /// Gives a class that is in no slot the weight that was set last.
    fn renew_weight(&mut self, class: u32) {
        let inverse = ONE / u64::from(self.weights[class as usize].get());
        let group = self.groups.group_of(self.max_packet, inverse);
        let stamp = &mut self.groups.stamps[class as usize];
        (stamp.inverse, stamp.group) = (inverse, group);
    }

    #[inline]
    fn stamp(&mut self, class: u32) -> &mut Stamp {
        &mut self.groups.stamps[class as usize]
    }
}

impl Scheduler for Qfq {
    fn classes(&self) -> usize {
        self.weights.len()
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    #[inline]
    fn enqueue(&mut self, class: u32, size: Bytes, idle: bool) {
        if idle {
            if self.groups.stamps[class as usize].renew {
                self.renew_weight(class);
            }
            self.groups.restart(class);
            self.stamp(class).extend(size.get());
            self.groups.schedule(class, true);
        }
    }

    #[inline]
    fn dequeue(&mut self) -> Option<u32> {
        self.groups.first()
    }

    #[inline]
    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>) {
        self.groups.now = self.groups.now.wrapping_add(size.get() * self.inverse);
        let stamp = &mut self.groups.stamps[class as usize];
        stamp.start = stamp.finish;
        match head {
            None => self.groups.remove_first(class),
            Some(head) if stamp.renew => {
                self.groups.remove_first(class);
                self.renew_weight(class);
                self.stamp(class).extend(head.get());
                self.groups.schedule(class, true);
            }
            Some(head) => {
                stamp.extend(head.get());
                self.groups.requeue_first(class);
            }
        }
        self.groups.update_eligible();
    }

    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        let known = self.weights.len();
        let old = self.weights.get_mut(class as usize).ok_or_else(|| no_class(class, known))?;
        self.total = changed(self.total, *old, weight)?;
        self.inverse = ONE / self.total;
        *old = weight;
        self.stamp(class).renew = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Queues, SHORTLY_BEFORE_THE_END, queues, same_order};
    use super::*;

    fn qfq(weights: &[u32]) -> Queues<Qfq> {
        queues(&Config::default(), weights)
    }

    fn shares(order: &[u32], classes: u32) -> Vec<usize> {
        (0..classes).map(|class| order.iter().filter(|served| **served == class).count()).collect()
    }

    /// Packets of 1024, sum 8, so V moves by 128. Classes 0 and 1 (weight 2, 1500 / 2) have slots of 1024, class 2
    /// (weight 4) of 512. A slot's F is two slots on: 2048 and 1024, so class 2 goes first. Its S = 256 is still in the
    /// first slot; then S = 512 is ahead of V = 256. Of classes 0 and 1 that which came first: S = 512, again, S = 1024.
    /// V = 512: class 2 has F = 512 + 1024 < 2048 and goes twice; then class 1 twice; V = 1024: class 2.
    #[test]
    fn the_least_rounded_finish_is_served_first() {
        let mut queues = qfq(&[2, 2, 4]);
        (0..3).for_each(|class| queues.offer(class, &[1024; 8]));
        assert_eq!(queues.serve_n(10), [2, 2, 0, 0, 2, 2, 1, 1, 2, 2]);
    }

    #[test]
    fn shares_are_those_of_the_weights() {
        let mut queues = qfq(&[1, 2, 5]);
        (0..3).for_each(|class| queues.offer(class, &[1000; 200]));
        let shares = shares(&queues.serve_n(160), 3);
        assert!(shares.iter().zip([20i64, 40, 100]).all(|(got, due)| (*got as i64 - due).abs() <= 2), "{shares:?}");
    }

    #[test]
    fn one_class_alone_has_the_link() {
        let mut queues = qfq(&[1, 1000]);
        queues.offer(0, &[1500; 50]);
        assert_eq!(queues.serve(), [0; 50]);
        queues.offer(1, &[40; 9]);
        assert_eq!(queues.serve(), [1; 9]);
    }

    #[test]
    fn a_new_weight_counts_from_the_next_packet() {
        let mut queues = qfq(&[1, 1]);
        queues.offer(0, &[1000; 400]);
        queues.offer(1, &[1000; 400]);
        queues.queues.scheduler_mut().set_weight(0, Weight::new(9).unwrap()).unwrap();
        let share = shares(&queues.serve_n(200), 2)[0];
        assert!((175..=185).contains(&share), "{share} of 200");
        assert!(queues.queues.scheduler_mut().set_weight(2, Weight::ONE).is_err());
    }

    #[test]
    fn time_that_wraps_changes_no_order() {
        let weights = [1, 2, 8, 8, 30, 1, 5];
        let (one, mut other) = (qfq(&weights), qfq(&weights));
        let scheduler = other.queues.scheduler_mut();
        scheduler.groups.begin(SHORTLY_BEFORE_THE_END);
        same_order(one, &mut other);
        assert!(other.queues.scheduler().groups.now < 1 << 60, "time has not wrapped");
    }

    /// 1000 B move V by 1000 / 8, and by 1000 / 11 after the weight of one class has grown from 1 to 4.
    #[test]
    fn virtual_time_goes_on_with_the_true_sum_of_weights() {
        let mut queues = qfq(&[1, 2, 5]);
        queues.offer(2, &[1000; 9]);
        let mut moved = || {
            let before = queues.queues.scheduler().groups.now;
            queues.serve_n(1);
            (queues.queues.scheduler().groups.now - before) / (ONE / 1000)
        };
        assert_eq!((moved(), moved()), (125_000, 125_000));
        queues.queues.scheduler_mut().set_weight(0, Weight::new(4).unwrap()).unwrap();
        assert_eq!(queues.queues.scheduler().inverse, ONE / 11);
    }
}
