//! STFQ: start-time fair queueing. The packet with the smallest virtual start goes first.
//!
//! Source: Goyal, Vin, Cheng, "Start-time fair queueing: a scheduling algorithm for integrated services packet switching
//! networks", SIGCOMM 1996.
//!
//! ```text
//! a packet comes:    S = max(F of the one before it, V),  F = S + size / weight
//! dequeue:           the least S (then: the lowest class);  V = its S
//! the link is idle:  V = the largest F there was
//! ```
//!
//! V needs no weights and no rate, so the scheduler suits links whose rate changes. For two classes that stay
//! backlogged, the normalized service (bytes sent / weight) differs by at most L_j / w_j + L_k / w_k (Theorem 1 of the
//! source). A packet has left when its guaranteed rate would have begun it, and a largest packet of each other class and
//! itself were sent, at the latest (Theorem 4); so the waiting time grows with the number of classes.
//! `tests/schedulers.rs` checks both bounds, with arrivals at any time. The F
//! of a backlogged class is later than V, so only the packets at the heads need a stamp: one tournament of classes by
//! S. Cost: O(log n). State for each class: 16 bytes and two nodes of 16 bytes in the tournament.

use super::tournament::{Entry, Tournament};
use super::virtual_time::{later, span, start};
use super::{Scheduler, SchedulerConfig, Setup, Weight, no_class};
use crate::config::ConfigError;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// STFQ has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl SchedulerConfig for Config {
    type Scheduler = Stfq;

    fn scheduler(&self, setup: &Setup<'_>) -> Stfq {
        Stfq {
            max_packet: setup.max_packet,
            classes: setup.weights.iter().map(|weight| Class { finish: 0, weight: *weight }).collect(),
            now: 0,
            last_finish: 0,
            waiting: Tournament::new(setup.weights.len()),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Class {
    /// F of the packet that was sent last.
    finish: u64,
    weight: Weight,
}

/// The STFQ scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Stfq {
    max_packet: Bytes,
    classes: Vec<Class>,
    /// V, the virtual time.
    now: u64,
    /// The latest F of all packets so far.
    last_finish: u64,
    /// Classes with packets, sorted by S.
    waiting: Tournament,
}

impl Scheduler for Stfq {
    fn classes(&self) -> usize {
        self.classes.len()
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    #[inline]
    fn enqueue(&mut self, class: u32, _: Bytes, idle: bool) {
        if idle {
            let finish = self.classes[class as usize].finish;
            let at = start(finish, self.now, span(self.max_packet, Weight::ONE));
            self.waiting.set(class, at);
        }
    }

    #[inline]
    fn dequeue(&mut self) -> Option<u32> {
        if self.waiting.is_empty() {
            // The busy period is over: V is at least every F, so that what was sent does not count in the next.
            self.now = later(self.now, self.last_finish);
        }
        self.waiting.first().map(|first| first.class)
    }

    #[inline]
    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>) {
        let Some(Entry { at: start, .. }) = self.waiting.first() else { return };
        self.now = start;
        let state = &mut self.classes[class as usize];
        state.finish = start.wrapping_add(span(size, state.weight));
        self.last_finish = later(self.last_finish, state.finish);
        let finish = state.finish;
        if head.is_some() {
            self.waiting.set(class, finish);
        } else {
            self.waiting.remove(class);
        }
    }

    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        let known = self.classes.len();
        self.classes.get_mut(class as usize).ok_or_else(|| no_class(class, known))?.weight = weight;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHORTLY_BEFORE_THE_END, queues, same_order};
    use super::*;

    /// Weights 1 and 2. S of class 0: 0, 100, 200; S of class 1: 0, 50, 100, 150, 200, 250. Of equal starts the lower
    /// class goes first.
    #[test]
    fn the_least_start_goes_first() {
        let mut queues = queues(&Config::default(), &[1, 2]);
        queues.offer(0, &[100; 3]);
        queues.offer(1, &[100; 6]);
        assert_eq!(queues.serve(), [0, 1, 1, 0, 1, 1, 0, 1, 1]);
    }

    /// After 3 packets of class 0, V = 200 and class 1 starts there: it is not compensated for the time in which it was
    /// idle.
    #[test]
    fn a_class_that_comes_begins_at_the_start_of_the_packet_in_service() {
        let mut queues = queues(&Config::default(), &[1, 1]);
        queues.offer(0, &[100; 6]);
        assert_eq!(queues.serve_n(3), [0, 0, 0]);
        queues.offer(1, &[100; 3]);
        assert_eq!(queues.serve(), [1, 0, 1, 0, 1, 0]);
    }

    /// Class 0 sent 1500 B alone. If V stayed at 0, class 1 would now send all of its packets first.
    #[test]
    fn a_busy_period_that_ended_is_forgotten() {
        let mut queues = queues(&Config::default(), &[1, 1]);
        queues.offer(0, &[1500]);
        assert_eq!(queues.serve(), [0]);
        queues.offer(0, &[100]);
        queues.offer(1, &[100; 2]);
        assert_eq!(queues.serve(), [0, 1, 1]);
    }

    /// A packet of class 0 is on the link, V = 0. Its next one starts at 1000, that of class 1 at 0.
    #[test]
    fn a_busy_period_ends_with_the_last_transmission() {
        let mut queues = queues(&Config::default(), &[1, 1]);
        queues.offer(0, &[1000]);
        assert_eq!(queues.serve_n(1), [0]);
        queues.offer(0, &[1000]);
        queues.offer(1, &[1000]);
        assert_eq!(queues.serve(), [1, 0]);
    }

    #[test]
    fn a_new_weight_counts_from_the_packet_that_is_sent_next() {
        let mut queues = queues(&Config::default(), &[1, 1]);
        queues.offer(0, &[100; 9]);
        queues.offer(1, &[100; 9]);
        queues.queues.scheduler_mut().set_weight(1, Weight::new(4).unwrap()).unwrap();
        assert_eq!(queues.serve_n(10), [0, 1, 1, 1, 1, 0, 1, 1, 1, 1]);
        assert!(queues.queues.scheduler_mut().set_weight(2, Weight::ONE).is_err());
    }

    #[test]
    fn time_that_wraps_changes_no_order() {
        let weights = [1, 2, 8, 8, 30, 1, 5];
        let (one, mut other) = (queues(&Config::default(), &weights), queues(&Config::default(), &weights));
        let scheduler = other.queues.scheduler_mut();
        (scheduler.now, scheduler.last_finish) = (SHORTLY_BEFORE_THE_END, SHORTLY_BEFORE_THE_END);
        scheduler.classes.iter_mut().for_each(|class| class.finish = SHORTLY_BEFORE_THE_END);
        same_order(one, &mut other);
        assert!(other.queues.scheduler().now < 1 << 60, "time has not wrapped");
    }
}
