//! The fattest queue of cake: a heap of all queues by their bytes, which lives only while packets are dropped for want of
//! room.
//!
//! Source: `cake_heapify()`, `cake_heapify_up()` and `cake_drop()` of sch_cake.c. A heap is made when a packet must be
//! dropped and there is none, and is kept for 65535 departures after the last such drop. Which of several queues with
//! the same bytes is on top follows from the order in which they moved, as in the kernel.
//!
//! In the kernel a queue that has shrunk sinks by one level, or further only past queues that are larger than the one which
//! took its place: `cake_heapify()` goes on comparing with the bytes of that one. So the queue on top is not always the
//! fattest. This is so here with `compat = "linux"`; otherwise a queue sinks as far as it has to.

use super::{MOST_TINS, QUEUES};
use crate::config::Compat;

/// Number of queues in the heap.
const ALL: usize = MOST_TINS * QUEUES;
/// For how many departures the heap is kept after a drop.
const KEPT: u16 = u16::MAX;

/// All queues by their bytes.
#[derive(Debug, Clone)]
pub(super) struct Fattest {
    /// Bytes of each queue.
    bytes: Vec<u64>,
    /// The queues; the parent of place n is at (n - 1) / 2.
    heap: Vec<u16>,
    /// The place of each queue in the heap.
    place: Vec<u16>,
    /// For how many departures the heap is kept; 0 if there is none.
    kept: u16,
    compat: Compat,
}

impl Fattest {
    pub fn new(compat: Compat) -> Self {
        // The queues of all tins in turn.
        let heap: Vec<u16> = (0..ALL).map(|at| (at % MOST_TINS * QUEUES + at / MOST_TINS) as u16).collect();
        let mut place = vec![0; ALL];
        heap.iter().enumerate().for_each(|(at, queue)| place[usize::from(*queue)] = at as u16);
        Self { bytes: vec![0; ALL], heap, place, kept: 0, compat }
    }

    /// Bytes in a queue.
    #[cfg(test)]
    pub fn bytes_of(&self, queue: usize) -> u64 {
        self.bytes[queue]
    }

    /// Notes a packet that came to a queue.
    #[inline]
    pub fn add(&mut self, queue: usize, bytes: u64) {
        self.bytes[queue] += bytes;
    }

    /// Notes a packet that left a queue; the heap is not told.
    #[inline]
    pub fn remove(&mut self, queue: usize, bytes: u64) {
        self.bytes[queue] -= bytes;
    }

    /// Lets a queue that may have grown rise in the heap.
    #[inline]
    pub fn grew(&mut self, queue: usize) {
        if self.kept > 0 {
            self.rise(self.place[queue].into());
        }
    }

    /// Lets a queue that has become smaller sink in the heap.
    #[inline]
    pub fn shrank(&mut self, queue: usize) {
        if self.kept > 0 {
            self.sink(self.place[queue].into());
        }
    }

    /// Counts a departure.
    #[inline]
    pub fn departed(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// Returns the queue on top, after making a heap if there is none.
    pub fn top(&mut self) -> usize {
        if self.kept == 0 {
            (0..ALL / 2).rev().for_each(|at| self.sink(at));
        }
        self.kept = KEPT;
        self.heap[0].into()
    }

    /// Forgets the heap, because the queue on top was empty.
    pub fn went_wrong(&mut self) {
        self.kept = 0;
    }

    fn at(&self, place: usize) -> u64 {
        self.bytes[usize::from(self.heap[place])]
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[usize::from(self.heap[a])] = a as u16;
        self.place[usize::from(self.heap[b])] = b as u16;
    }

    fn sink(&mut self, mut place: usize) {
        let mut bytes = self.at(place);
        loop {
            // The first child wins over an equal second one, and the place itself over both.
            let mut most = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < ALL && self.at(child) > bytes {
                    (most, bytes) = (child, self.at(child));
                }
            }
            if most == place {
                return;
            }
            self.swap(place, most);
            place = most;
            if self.compat == Compat::Source {
                bytes = self.at(place);
            }
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.at(place) <= self.at(parent) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    /// Against a search through all queues, while they grow and shrink at random.
    #[test]
    fn the_fattest_queue_is_on_top() {
        let (mut fattest, mut rng) = (Fattest::new(Compat::Source), Streams::new(1).get("heap"));
        for _ in 0..5000 {
            let (queue, bytes) = (rng.below(ALL as u64) as usize, rng.below(1500));
            fattest.add(queue, bytes);
            fattest.grew(queue);
            let top = fattest.top();
            assert_eq!(fattest.bytes_of(top), *fattest.bytes.iter().max().unwrap());
            if rng.below(2) == 0 {
                fattest.remove(top, fattest.bytes_of(top) / 2);
                fattest.shrank(top);
            }
            fattest.departed();
        }
        assert_eq!(fattest.kept, KEPT - 1);
    }

    /// Tins take turns in the first heap; of equal queues the one that stood first stays on top.
    #[test]
    fn equal_queues_stay_in_their_order() {
        let mut fattest = Fattest::new(Compat::Source);
        assert_eq!((fattest.heap[1], fattest.heap[8]), (QUEUES as u16, 1));
        [3, QUEUES + 2, 5].into_iter().for_each(|queue| fattest.add(queue, 1000));
        assert_eq!(fattest.top(), QUEUES + 2, "place 17 comes up before places 24 and 40");
    }
    /// Places 1, 3 and 7 are above each other: queues with 900, 800 and 700 B under one of 1000 B. When that one has 100 B
    /// left, 900 B come up. In the kernel it stays above 800 and 700 B, and so 100 B come up next, when 900 B are gone.
    #[test]
    fn in_the_kernel_a_queue_sinks_by_one_level() {
        for (compat, next) in [(Compat::Source, 800), (Compat::Linux, 100)] {
            let mut fattest = Fattest::new(compat);
            for (place, bytes) in [(0, 1000), (1, 900), (3, 800), (7, 700)] {
                fattest.add(fattest.heap[place].into(), bytes);
            }
            for (left, top) in [(100, 1000), (0, 900)] {
                let queue = fattest.top();
                assert_eq!(fattest.bytes_of(queue), top);
                fattest.remove(queue, top - left);
                fattest.shrank(queue);
            }
            let queue = fattest.top();
            assert_eq!(fattest.bytes_of(queue), next, "{compat:?}");
        }
    }
}
