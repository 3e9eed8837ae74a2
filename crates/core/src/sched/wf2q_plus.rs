//! WF²Q+: of the packets that a fluid system would have started by now, the one that it would finish first is sent.
//!
//! Source: Bennett and Zhang, "Hierarchical packet fair queueing algorithms", IEEE/ACM ToN 5(5), 1997, §IV.
//!
//! ```text
//! a class comes:     S = max(F, V),  F = S + size / weight
//! its next packet:   S = F,          F = S + size / weight; also one that comes while its last is being sent
//! dequeue:           if no class has S <= V: V = the least S
//!                    of the classes with S <= V the one with the least F (then: the lowest index)
//! at any time:       V += (bytes sent since) / (sum of all weights), also within a packet                 eq. (27)
//! the link is idle:  V = the latest F of all, so that earlier service does not count
//! ```
//!
//! Bounds, with L_k the largest packet of the class, L the largest of all, r the rate of the link and r_k the class's
//! part of it; `tests/schedulers.rs` checks them with arrivals at any time:
//! - *lateness*: a packet has left L / r after its guaranteed finish at the latest, which is the later of its arrival and
//!   the guaranteed finish of the packet before it, plus size / r_k;
//! - *worst-case fairness index* in bytes: L_k + (L - L_k) * weight / sum (Theorem 4 of the source); it is one packet if
//!   all are equal.
//!
//! There is no bound beside GPS itself: a class that took what others left is behind GPS when they return (WF²Q has
//! that bound, at a cost of O(n) for GPS). Pinned by `no_bound_beside_gps`.
//!
//! Two heaps keep the eligible classes (S <= V) sorted by F and the other classes sorted by S. Cost: O(log n) per packet.
//! State for each class: 16 bytes and an entry of 16 bytes in one heap.
//!
//! DIFFERENCE: a caller that does not tell what was sent of a packet ([`Scheduler::progress`]) leaves V at the begin of
//! the packet until it has been sent. S is then at most L / sum early, and both bounds hold as they do.
//! Pinned by `wf2q_plus_is_a_packet_late_and_a_packet_behind`.
//! DIFFERENCE: `compat = "dummynet"` counts a packet when its transmission begins, as FreeBSD's dummynet does, and takes
//! empty queues for an idle link. A class that comes during a transmission is then up to two packets late. Pinned by
//! `a_packet_counts_as_far_as_it_was_sent`.
//! DIFFERENCE: the sum of weights includes all classes, backlogged or not, as in the source, where rates are reserved.
//! FreeBSD's dummynet divides by the weights of the classes with packets. Pinned by
//! `idle_classes_keep_the_clock_slow_but_not_the_link`.

use super::heap::{Entry, Heap};
use super::virtual_time::{Clock, later, span};
use super::{Scheduler, SchedulerConfig, Setup, Weight, no_class};
use crate::config::ConfigError;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When virtual time counts a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Wf2qPlusCompat")]
pub enum Compat {
    /// As it is sent, as in the source.
    #[default]
    #[serde(alias = "paper")]
    Source,
    /// As a whole when its transmission begins, as in FreeBSD's dummynet.
    Dummynet,
}

/// Parameters of WF²Q+.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// When virtual time counts a packet: as it is sent ("source"), or as a whole when its transmission begins
    /// ("dummynet"), with which a packet may be up to two packets late.
    pub compat: Compat,
}

impl SchedulerConfig for Config {
    type Scheduler = Wf2qPlus;

    fn scheduler(&self, setup: &Setup<'_>) -> Wf2qPlus {
        let class = |weight: &Weight| Class { finish: 0, weight: *weight };
        Wf2qPlus {
            max_packet: setup.max_packet,
            classes: setup.weights.iter().map(class).collect(),
            clock: Clock::new(setup.weights),
            at_once: self.compat == Compat::Dummynet,
            last_finish: 0,
            eligible: Heap::with_capacity(setup.weights.len()),
            waiting: Heap::with_capacity(setup.weights.len()),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Class {
    /// F of the packet at the head, or of the packet sent last while the class is idle.
    finish: u64,
    weight: Weight,
}

/// The WF²Q+ scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Wf2qPlus {
    max_packet: Bytes,
    classes: Vec<Class>,
    /// V, the virtual time.
    clock: Clock,
    /// Whether V counts a packet when its transmission begins.
    at_once: bool,
    /// The latest F of all packets so far.
    last_finish: u64,
    /// Classes with S <= V, sorted by F.
    eligible: Heap,
    /// Classes with packets whose S was later than V at the last check, sorted by S.
    waiting: Heap,
}

impl Wf2qPlus {
    /// Stamps the packet of `size` whose virtual start is `start`, and returns the class's entry for the heap of
    /// eligible classes.
    #[inline]
    fn stamp(&mut self, class: u32, start: u64, size: Bytes) -> Entry {
        let state = &mut self.classes[class as usize];
        state.finish = start.wrapping_add(span(size, state.weight));
        self.last_finish = later(self.last_finish, state.finish);
        Entry { at: state.finish, class }
    }

    /// Moves the classes with S <= V to the heap of eligible classes.
    #[inline]
    fn release(&mut self) {
        while let Some(first) = self.waiting.first()
            && self.clock.has_reached(first.at)
        {
            self.waiting.pop();
            self.eligible.push(Entry { at: self.classes[first.class as usize].finish, class: first.class });
        }
    }
}

impl Scheduler for Wf2qPlus {
    fn classes(&self) -> usize {
        self.classes.len()
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    #[inline]
    fn enqueue(&mut self, class: u32, size: Bytes, idle: bool) {
        if !idle {
            return;
        }
        if self.at_once && self.eligible.is_empty() && self.waiting.is_empty() {
            self.clock.at_least(self.last_finish);
        }
        let finish = self.classes[class as usize].finish;
        let start = self.clock.start(class, finish, span(self.max_packet, Weight::ONE));
        let finish = self.stamp(class, start, size);
        if self.clock.has_reached(start) {
            self.eligible.push(finish);
        } else {
            self.waiting.push(Entry { at: start, class });
        }
    }

    #[inline]
    fn dequeue(&mut self) -> Option<u32> {
        self.clock.finish();
        if self.eligible.is_empty() {
            // No class has S <= V: V jumps to the smallest S, so that the link does not idle. Without packets it is
            // idle: V is at least every F, so that earlier service does not count in the next busy period.
            let Some(first) = self.waiting.first() else {
                self.clock.at_least(self.last_finish);
                return None;
            };
            self.clock.at_least(first.at);
        }
        self.release();
        self.eligible.first().map(|first| first.class)
    }

    #[inline]
    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>) {
        self.clock.advance(class, size);
        if self.at_once {
            self.clock.finish();
        }
        let Some(head) = head else {
            self.eligible.pop();
            return;
        };
        let start = self.classes[class as usize].finish;
        let finish = self.stamp(class, start, head);
        if self.clock.has_reached(start) {
            self.eligible.replace_first(finish);
            return;
        }
        match self.waiting.first() {
            Some(first) if self.clock.has_reached(first.at) => {
                self.waiting.replace_first(Entry { at: start, class });
                let finish = self.classes[first.class as usize].finish;
                self.eligible.replace_first(Entry { at: finish, class: first.class });
            }
            _ => {
                self.eligible.pop();
                self.waiting.push(Entry { at: start, class });
            }
        }
    }

    #[inline]
    fn progress(&mut self, sent: Bytes) {
        self.clock.progress(sent);
    }

    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        let known = self.classes.len();
        let state = self.classes.get_mut(class as usize).ok_or_else(|| no_class(class, known))?;
        self.clock.change(state.weight, weight)?;
        state.weight = weight;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Queues, SHORTLY_BEFORE_THE_END, queues, same_order};
    use super::*;

    fn wf2q(weights: &[u32]) -> Queues<Wf2qPlus> {
        queues(&Config::default(), weights)
    }

    /// Bennett and Zhang's Figure 1: one class of half the link and ten of a twentieth, 11 packets in the first. By
    /// finish times alone it would send ten at once; here it takes every second turn, as in the fluid system.
    #[test]
    fn a_heavy_class_is_interleaved_and_not_sent_at_once() {
        let mut queues = wf2q(&[10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        queues.offer(0, &[100; 11]);
        (1..=10).for_each(|class| queues.offer(class, &[100]));
        let order = queues.serve();
        assert!(order.iter().step_by(2).all(|class| *class == 0), "{order:?}");
        assert_eq!(order.len(), 21);
    }

    /// Weights 3 and 1, sum 4, packets of 4 bytes, so V moves by 1 each.
    /// V=0: S=0 F=4/3 and S=0 F=4: class 0, then S=4/3. V=1: only class 1 has S<=1. V=2: class 0 (F=8/3), S=8/3. V=3:
    /// class 0 (F=4), S=4; class 1 has S=4 too. V=4: 0 has F=16/3, 1 has F=8: class 0 and so on.
    #[test]
    fn three_to_one_by_hand() {
        let mut queues = wf2q(&[3, 1]);
        queues.offer(0, &[4; 6]);
        queues.offer(1, &[4; 2]);
        assert_eq!(queues.serve(), [0, 1, 0, 0, 0, 1, 0, 0]);
    }

    /// The sum of weights is 1000, and two classes of weight 1 have packets: V would move by 1/1000 for each byte, but
    /// it jumps to the smallest S. A class of weight 998 which then becomes backlogged starts at V, where the packet in
    /// service began, and has its share at once.
    #[test]
    fn idle_classes_keep_the_clock_slow_but_not_the_link() {
        let mut queues = wf2q(&[1, 1, 998]);
        queues.offer(0, &[1000; 10]);
        queues.offer(1, &[1000; 10]);
        assert_eq!(queues.serve_n(7), [0, 1, 0, 1, 0, 1, 0]);
        queues.offer(2, &[1000; 3]);
        assert_eq!(queues.serve_n(5), [2, 2, 2, 1, 0]);
    }

    /// Weights of 4 in all. 1000 B of class 0 are in service from V = 0 to 250. After 100 B, V is 25: a packet of class 1
    /// has F = 1025, before that of class 2 with 1100. If the whole packet counts, it has F = 1250.
    #[test]
    fn a_packet_counts_as_far_as_it_was_sent() {
        for (compat, told, order) in [
            (Compat::Source, 100, [1, 2]),
            (Compat::Source, 0, [1, 2]),
            (Compat::Source, 500, [2, 1]),
            (Compat::Dummynet, 100, [2, 1]),
        ] {
            let mut queues = queues(&Config { compat }, &[1; 4]);
            queues.offer(0, &[1000]);
            queues.offer(2, &[1100]);
            assert_eq!(queues.serve_n(1), [0]);
            queues.queues.enqueue_during(1, Bytes::new(1000), 9, || Bytes::new(told)).unwrap();
            assert_eq!(queues.serve_n(2), order, "{compat:?} after {told} B");
        }
    }

    /// A packet of class 0 is on the link, which is not idle though no packet waits: class 0 does not begin anew.
    #[test]
    fn a_busy_period_ends_with_the_last_transmission() {
        for (compat, order) in [(Compat::Source, [1, 0]), (Compat::Dummynet, [0, 1])] {
            let mut queues = queues(&Config { compat }, &[1, 1]);
            queues.offer(0, &[1000]);
            assert_eq!(queues.serve_n(1), [0]);
            queues.offer(0, &[1000]);
            queues.offer(1, &[1000]);
            assert_eq!(queues.serve(), order, "{compat:?}");
        }
    }

    /// Weights of 6 in all: 1200 B move V by 200. While a packet of class 1 begins, at V = 0, packets of classes 0 and 2 come,
    /// F = 300 and 650. That of class 0 is sent from V = 200 to 400; at its end class 0 is behind, because V is later than F.
    /// Its next packet, which comes before that, has S = 300 and F = 600 and goes first. Had it begun at V, F would be 700.
    #[test]
    fn what_a_class_in_service_is_behind_is_not_lost() {
        for (compat, next) in [(Compat::Source, 0), (Compat::Dummynet, 2)] {
            let mut queues = queues(&Config { compat }, &[4, 1, 1]);
            queues.offer(1, &[1200]);
            assert_eq!(queues.serve_n(1), [1]);
            queues.offer(0, &[1200]);
            queues.offer(2, &[650]);
            assert_eq!(queues.serve_n(1), [0]);
            queues.queues.enqueue_during(0, Bytes::new(1200), 9, || Bytes::new(1199)).unwrap();
            assert_eq!(queues.serve_n(1), [next], "{compat:?}");
        }
    }

    /// Class 0 has 100 of 10,000 parts, and fifty others one each. In GPS the second packet of class 0 has left after three
    /// packets, because 9,850 parts are idle. V does not know that: the packet is not eligible before all others have
    /// gone. What is guaranteed to class 0 is a packet in 100.
    #[test]
    fn no_bound_beside_gps() {
        let mut queues = wf2q(&[[100u32].as_slice(), &[1; 50], &[9850]].concat());
        queues.offer(0, &[1000; 2]);
        (1..=50).for_each(|class| queues.offer(class, &[1000]));
        let order = queues.serve();
        assert_eq!((order[0], order[51]), (0, 0), "{order:?}");
    }

    #[test]
    fn a_new_busy_period_begins_anew() {
        let mut queues = wf2q(&[1, 1]);
        queues.offer(0, &[1500]);
        assert_eq!(queues.serve(), [0]);
        queues.offer(0, &[100]);
        queues.offer(1, &[100]);
        assert_eq!(queues.serve(), [0, 1]);
    }

    #[test]
    fn a_new_weight_counts_from_the_next_packet() {
        let mut queues = wf2q(&[1, 1]);
        queues.offer(0, &[100; 8]);
        queues.offer(1, &[100; 8]);
        queues.queues.scheduler_mut().set_weight(0, Weight::new(3).unwrap()).unwrap();
        let order = queues.serve_n(9);
        assert_eq!(order.iter().filter(|class| **class == 0).count(), 6, "{order:?}");
        assert!(queues.queues.scheduler_mut().set_weight(2, Weight::ONE).is_err());
    }

    /// Weights 1 and 1, sum 2. Class 1 sends 100 bytes, V=50; class 0 sends 1500, F=1500, V=800. With weight 10 its next
    /// packet starts at F nevertheless. Class 1 has S=100, 200, ..., 1400 before that, and the later F at S=1500.
    #[test]
    fn a_larger_weight_does_not_forget_what_was_sent() {
        let mut queues = wf2q(&[1, 1]);
        queues.offer(0, &[1500]);
        queues.offer(1, &[100; 20]);
        assert_eq!(queues.serve_n(2), [1, 0]);
        queues.queues.scheduler_mut().set_weight(0, Weight::new(10).unwrap()).unwrap();
        queues.offer(0, &[100]);
        assert_eq!(queues.serve_n(15), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn time_that_wraps_changes_no_order() {
        let weights = [1, 2, 8, 8, 30, 1, 5];
        let (one, mut other) = (wf2q(&weights), wf2q(&weights));
        let scheduler = other.queues.scheduler_mut();
        scheduler.clock.begin(SHORTLY_BEFORE_THE_END);
        scheduler.last_finish = SHORTLY_BEFORE_THE_END;
        scheduler.classes.iter_mut().for_each(|class| class.finish = SHORTLY_BEFORE_THE_END);
        same_order(one, &mut other);
        assert!(other.queues.scheduler().clock.now < 1 << 60, "time has not wrapped");
    }
}
