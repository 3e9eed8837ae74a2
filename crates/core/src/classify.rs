//! The queue of a flow: a keyed hash, optionally with a set of queues to choose from.
//!
//! With one way the hash selects the queue, and two flows may share one (RFC 8290 §4.1). With `ways` above 1 the hash
//! selects a set of that many queues, and a flow that collides with another one takes an idle queue of the set, as in
//! cake.
//!
//! DIFFERENCE: if no queue of a set is idle, cake gives the flow the queue of its hash and assigns that queue to it, so
//! that later packets of either flow may go to another queue and be reordered. Here such a queue is shared until it is
//! idle: a flow with packets stays in the queue of its packets. Pinned by `a_flow_stays_where_its_packets_are`.

use crate::packet::FlowId;
use crate::rng::Rng;

/// The finalizer of splitmix64: each bit of the input changes each bit of the output with a probability near 1/2.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The 32-bit hash of a number with a key.
pub(crate) fn hash32(number: u64, key: u64) -> u32 {
    (mix(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key) >> 32) as u32
}

/// The hash of a flow with a key, scaled to `0..queues`.
pub(crate) fn hashed(flow: FlowId, key: u64, queues: u32) -> usize {
    ((u64::from(hash32(flow.0.into(), key)) * u64::from(queues)) >> 32) as usize
}

/// Draws the key of a hash from the branch `hash` of a discipline's stream.
pub(crate) fn drawn_key(rng: &Rng) -> u64 {
    rng.branch("hash").bits() >> 11
}

#[derive(Debug, Clone)]
pub(crate) struct Classifier {
    queues: u32,
    ways: usize,
    /// The key of the hash, unless it was given `None` until the first use: it then comes from a stream of its own.
    key: Option<u64>,
    /// For each queue, the flow that took it last; empty with one way.
    owner: Vec<Option<FlowId>>,
    /// For each queue, whether flows besides its owner are in it.
    shared: Vec<bool>,
}

impl Classifier {
    pub fn new(queues: u32, ways: u32, key: Option<u64>) -> Self {
        let kept = if ways > 1 { queues as usize } else { 0 };
        Self { queues, ways: ways as usize, key, owner: vec![None; kept], shared: vec![false; kept] }
    }

    /// The queue of `flow`; `active` tells whether a queue is in use.
    #[inline]
    pub fn queue_of(&mut self, flow: FlowId, rng: &Rng, active: impl Fn(usize) -> bool) -> usize {
        let key = *self.key.get_or_insert_with(|| drawn_key(rng));
        let home = hashed(flow, key, self.queues);
        if self.ways == 1 || (self.owner[home] == Some(flow) && !self.shared[home]) {
            return home;
        }
        self.queue_in_set(flow, home, active)
    }

    fn queue_in_set(&mut self, flow: FlowId, home: usize, active: impl Fn(usize) -> bool) -> usize {
        let first = home - home % self.ways;
        let in_turn = |i: usize| first + (home - first + i) % self.ways;
        if let Some(own) = (0..self.ways).map(in_turn).find(|q| self.owner[*q] == Some(flow)) {
            self.shared[own] &= active(own);
            return own;
        }
        if self.shared[home] && active(home) {
            return home;
        }
        match (0..self.ways).map(in_turn).find(|q| !active(*q)) {
            Some(idle) => {
                self.owner[idle] = Some(flow);
                self.shared[idle] = false;
                idle
            }
            None => {
                self.shared[home] = true;
                home
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    #[test]
    fn the_hash_spreads_dense_flows_evenly() {
        let mut counts = [0u32; 64];
        for flow in 0..64_000 {
            counts[hashed(FlowId(flow), 12345, 64)] += 1;
        }
        // The mean is 1000 and the standard deviation 31.4: all 64 counts stay within 5 deviations.
        assert!(counts.iter().all(|n| (843..=1157).contains(n)), "{counts:?}");
    }

    #[test]
    fn another_key_gives_other_collisions() {
        let pairs = |key| {
            let queue = |flow| hashed(FlowId(flow), key, 1024);
            let collides = |(a, b): &(u32, u32)| queue(*a) == queue(*b);
            (0..100).flat_map(|a| (a + 1..100).map(move |b| (a, b))).filter(collides).collect::<Vec<_>>()
        };
        // 4950 pairs / 1024 queues: about 5 collisions.
        assert!(!pairs(1).is_empty() && pairs(1) != pairs(2));
    }

    #[test]
    fn the_key_comes_from_a_stream_of_its_own_unless_it_is_given() {
        let rng = Streams::new(1).get("fq");
        let queue = |key| Classifier::new(1 << 16, 1, key).queue_of(FlowId(0), &rng, |_| false);
        assert_eq!(queue(Some(7)), hashed(FlowId(0), 7, 1 << 16));
        assert_eq!(queue(None), hashed(FlowId(0), rng.branch("hash").bits() >> 11, 1 << 16));
    }

    /// Eight flows in one set of eight ways, some of which the hash alone would put into one queue.
    #[test]
    fn flows_of_a_set_get_queues_of_their_own() {
        let rng = Streams::new(1).get("fq");
        let (mut classifier, mut used) = (Classifier::new(8, 8, Some(1)), [false; 8]);
        for flow in 0..8 {
            let queue = classifier.queue_of(FlowId(flow), &rng, |q| used[q]);
            assert!(!std::mem::replace(&mut used[queue], true), "flow {flow} shares queue {queue}");
        }
        let again: Vec<usize> = (0..8).map(|flow| classifier.queue_of(FlowId(flow), &rng, |q| used[q])).collect();
        let mut sorted = again.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<_>>(), "{again:?}: each flow finds its own queue again");
    }

    #[test]
    fn a_flow_stays_where_its_packets_are() {
        let rng = Streams::new(1).get("fq");
        let mut classifier = Classifier::new(8, 8, Some(1));
        let mut used = [false; 8];
        for flow in 0..8 {
            used[classifier.queue_of(FlowId(flow), &rng, |q| used[q])] = true;
        }
        // A ninth flow has to share a queue. It does not move to an idle queue while its packets wait.
        let shared = classifier.queue_of(FlowId(8), &rng, |q| used[q]);
        let idle = (0..8).find(|q| *q != shared).unwrap();
        used[idle] = false;
        assert_eq!(classifier.queue_of(FlowId(8), &rng, |q| used[q]), shared);
        let owner = classifier.owner[shared].unwrap();
        assert_eq!(classifier.queue_of(owner, &rng, |q| used[q]), shared, "the owner stays, too");
        used[shared] = false;
        let own = classifier.queue_of(FlowId(8), &rng, |q| used[q]);
        assert_eq!(classifier.owner[own], Some(FlowId(8)), "when it is gone, the flow may have one of its own");
    }
}
