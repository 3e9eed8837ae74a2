//! Helpers which the tests of the schedulers share.

use super::{Limits, Scheduled, Scheduler, SchedulerConfig, Setup, Weight};
use crate::rng::Streams;
use crate::units::Bytes;

/// Queues whose packets are numbered in the order of their arrival.
pub(super) struct Queues<S> {
    pub queues: Scheduled<u64, S>,
    next: u64,
    /// For each class, the number of the packet that left last.
    last: Vec<Option<u64>>,
}

/// Creates queues for classes with these weights; the largest packet has 1500 B.
pub(super) fn queues<C: SchedulerConfig>(config: &C, weights: &[u32]) -> Queues<C::Scheduler> {
    let weights: Vec<Weight> = weights.iter().map(|w| Weight::new(*w).unwrap()).collect();
    let setup = Setup { weights: &weights, max_packet: Bytes::new(1500) };
    config.validate(&setup).unwrap();
    let queues = Scheduled::new(config.scheduler(&setup), Limits::default());
    Queues { queues, next: 0, last: vec![None; weights.len()] }
}

impl<S: Scheduler> Queues<S> {
    pub fn offer(&mut self, class: u32, sizes: &[u64]) {
        for size in sizes {
            self.queues.enqueue(class, Bytes::new(*size), self.next).unwrap();
            self.next += 1;
        }
    }

    /// The classes of the next `n` packets. Checks that the packets of each class leave in order.
    pub fn serve_n(&mut self, n: usize) -> Vec<u32> {
        let mut order = Vec::new();
        while order.len() < n {
            let Some(served) = self.queues.dequeue() else { break };
            let last = self.last[served.class as usize].replace(served.packet);
            assert!(last < Some(served.packet), "a packet of class {} was overtaken", served.class);
            order.push(served.class);
        }
        self.queues.check().unwrap();
        order
    }

    /// The classes of all packets that wait.
    pub fn serve(&mut self) -> Vec<u32> {
        self.serve_n(usize::MAX)
    }
}

/// Checks that two schedulers serve the classes in the same order while packets arrive and leave at random.
pub(super) fn same_order<S: Scheduler>(mut one: Queues<S>, other: &mut Queues<S>) {
    let (mut random, classes) = (Streams::new(1).get("order"), one.last.len() as u64);
    for _ in 0..2000 {
        if random.below(2) == 0 {
            let (class, size) = (random.below(classes) as u32, 1 + random.below(1500));
            let sizes = vec![size; 1 + random.below(5) as usize];
            one.offer(class, &sizes);
            other.offer(class, &sizes);
        } else {
            let n = 1 + random.below(5) as usize;
            assert_eq!(one.serve_n(n), other.serve_n(n));
        }
    }
    assert_eq!(one.serve(), other.serve());
}

/// A time 2^50 before virtual time wraps to 0. Slots of packets of 1500 B begin there, and time wraps after some
/// thousand packets.
pub(super) const SHORTLY_BEFORE_THE_END: u64 = 0u64.wrapping_sub(1 << 50);
