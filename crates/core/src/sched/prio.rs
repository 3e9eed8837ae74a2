//! Strict priority: the class with the largest weight goes first; classes of equal weight take turns, one packet each.
//!
//! Source: RFC 3290 §7.1.2; Linux sch_prio, which numbers the bands instead. A class is served only when no class of
//! higher priority has packets. Its waiting time therefore has no bound, and it may starve. Cost: O(1) plus a search
//! for the first band with packets, 64 bands per step. State for each class: 8 bytes.

use super::round::{Linked, NONE, Round};
use super::{Scheduler, SchedulerConfig, Setup, Weight, no_class};
use crate::config::ConfigError;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Strict priority has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl SchedulerConfig for Config {
    type Scheduler = Prio;

    fn scheduler(&self, setup: &Setup<'_>) -> Prio {
        let mut prio = Prio {
            max_packet: setup.max_packet,
            classes: vec![Class { next: NONE, band: 0 }; setup.weights.len()],
            weights: setup.weights.to_vec(),
            bands: Vec::new(),
            waiting: Vec::new(),
        };
        prio.make_bands();
        prio
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Class {
    next: u32,
    band: u32,
}

impl Linked for Class {
    #[inline]
    fn next(&self) -> u32 {
        self.next
    }
    #[inline]
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

/// The strict priority scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Prio {
    max_packet: Bytes,
    classes: Vec<Class>,
    weights: Vec<Weight>,
    /// Classes with packets, one band for each weight, the band of the largest weight first.
    bands: Vec<Round>,
    /// Bit set of the bands that have classes, 64 bands per word.
    waiting: Vec<u64>,
}

impl Prio {
    /// Rebuilds the bands, one for each weight. Classes with packets keep their order within a band.
    fn make_bands(&mut self) {
        let mut backlogged = Vec::new();
        for band in &mut self.bands {
            backlogged.extend(std::iter::from_fn(|| band.pop(&self.classes)));
        }
        let mut weights: Vec<Reverse<Weight>> = self.weights.iter().map(|weight| Reverse(*weight)).collect();
        weights.sort_unstable();
        weights.dedup();
        for (class, weight) in self.classes.iter_mut().zip(&self.weights) {
            class.band = weights.partition_point(|other| *other < Reverse(*weight)) as u32;
        }
        self.bands = vec![Round::default(); weights.len()];
        self.waiting = vec![0; weights.len().div_ceil(64)];
        backlogged.into_iter().for_each(|class| self.push(class));
    }

    #[inline]
    fn push(&mut self, class: usize) {
        let band = self.classes[class].band as usize;
        self.bands[band].push(&mut self.classes, class);
        self.waiting[band / 64] |= 1 << (band % 64);
    }
}

impl Scheduler for Prio {
    fn classes(&self) -> usize {
        self.classes.len()
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    #[inline]
    fn enqueue(&mut self, class: u32, _: Bytes, idle: bool) {
        if idle {
            self.push(class as usize);
        }
    }

    #[inline]
    fn dequeue(&mut self) -> Option<u32> {
        let (at, bits) = self.waiting.iter().enumerate().find(|(_, bits)| **bits != 0)?;
        let band = at * 64 + bits.trailing_zeros() as usize;
        self.bands[band].first().map(|class| class as u32)
    }

    #[inline]
    fn served(&mut self, class: u32, _: Bytes, head: Option<Bytes>) {
        let class = class as usize;
        let band = self.classes[class].band as usize;
        let round = &mut self.bands[band];
        round.pop(&self.classes);
        if head.is_some() {
            round.push(&mut self.classes, class);
        } else if round.first().is_none() {
            self.waiting[band / 64] &= !(1 << (band % 64));
        }
    }

    /// Rebuilds all bands, which visits every class.
    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        let known = self.weights.len();
        *self.weights.get_mut(class as usize).ok_or_else(|| no_class(class, known))? = weight;
        self.make_bands();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::queues;
    use super::*;

    #[test]
    fn a_larger_weight_goes_first_and_equal_ones_take_turns() {
        let mut queues = queues(&Config::default(), &[1, 5, 5, 20]);
        (0..4).for_each(|class| queues.offer(class, &[100; 2]));
        assert_eq!(queues.serve_n(3), [3, 3, 1]);
        queues.offer(3, &[100]);
        assert_eq!(queues.serve(), [3, 2, 1, 2, 0, 0]);
    }

    #[test]
    fn a_new_weight_counts_at_once() {
        let mut queues = queues(&Config::default(), &[1, 2, 3]);
        (0..3).for_each(|class| queues.offer(class, &[100; 2]));
        assert_eq!(queues.serve_n(1), [2]);
        queues.queues.scheduler_mut().set_weight(0, Weight::new(9).unwrap()).unwrap();
        assert_eq!(queues.serve(), [0, 0, 2, 1, 1]);
        assert!(queues.queues.scheduler_mut().set_weight(3, Weight::ONE).is_err());
    }

    #[test]
    fn more_bands_than_bits_of_a_word() {
        let weights: Vec<u32> = (1..=200).collect();
        let mut queues = queues(&Config::default(), &weights);
        (0..200).for_each(|class| queues.offer(class, &[100]));
        assert!(queues.serve().into_iter().eq((0..200).rev()));
    }
}
