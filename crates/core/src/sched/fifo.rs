//! FIFO: packets leave in the order of their arrival, whatever their class. There is no isolation between classes.
//!
//! Source: the scheduler with which others are compared (002 §4.3.3.1). The order of classes is a ring of indices, 4
//! bytes for each packet that waits. Weights have no effect. Cost: O(1), the lowest of all schedulers.

use super::{Scheduler, SchedulerConfig, Setup, Weight, no_class};
use crate::config::ConfigError;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// FIFO has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl SchedulerConfig for Config {
    type Scheduler = Fifo;

    fn scheduler(&self, setup: &Setup<'_>) -> Fifo {
        Fifo::new(setup.weights.len(), setup.max_packet)
    }
}

/// The FIFO scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Fifo {
    classes: usize,
    max_packet: Bytes,
    order: VecDeque<u32>,
}

impl Fifo {
    /// Creates a scheduler for the classes `0..classes`.
    pub fn new(classes: usize, max_packet: Bytes) -> Self {
        Self { classes, max_packet, order: VecDeque::new() }
    }
}

impl Scheduler for Fifo {
    fn classes(&self) -> usize {
        self.classes
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    #[inline]
    fn enqueue(&mut self, class: u32, _: Bytes, _: bool) {
        self.order.push_back(class);
    }

    #[inline]
    fn dequeue(&mut self) -> Option<u32> {
        self.order.front().copied()
    }

    #[inline]
    fn served(&mut self, _: u32, _: Bytes, _: Option<Bytes>) {
        self.order.pop_front();
    }

    fn set_weight(&mut self, class: u32, _: Weight) -> Result<(), ConfigError> {
        if (class as usize) < self.classes { Ok(()) } else { Err(no_class(class, self.classes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, Scheduled};
    use super::*;

    #[test]
    fn the_order_of_arrival_is_kept_across_classes() {
        let mut queues = Scheduled::new(Fifo::new(3, Bytes::new(1500)), Limits::default());
        let classes = [2, 0, 0, 1, 2, 1];
        for (packet, class) in classes.into_iter().enumerate() {
            queues.enqueue(class, Bytes::new(100), packet).unwrap();
        }
        let order: Vec<_> =
            std::iter::from_fn(|| queues.dequeue()).map(|served| (served.packet, served.class)).collect();
        assert_eq!(order, [(0, 2), (1, 0), (2, 0), (3, 1), (4, 2), (5, 1)]);
        queues.check().unwrap();
    }
}
