//! DRR++, the rounds of flow queueing: classes take turns, and the bytes by which a turn exceeded its quantum are taken
//! from the next turn.
//!
//! Source: Shreedhar and Varghese, "Efficient fair queuing using deficit round robin", 1996; with two lists, "DRR++",
//! as in RFC 8290 §4.2. All lists are indices into arrays that are allocated once.
//!
//! ```text
//! a class begins:   to the end of the new list, deficit = quantum
//! turn:             first of the new list, else first of the old one
//!   deficit <= 0:   deficit += quantum, to the end of the old list; the next one's turn
//!   it sends:       deficit -= size
//!   it is empty:    from the new list to the end of the old one, if that has any; else it leaves
//! ```
//!
//! One class may have another quantum, and joins the end of the old list at once: it is a class of many flows, which are
//! not new.
//!
//! An empty new class moves to the end of the old list because otherwise a class with a packet now and then would be
//! new each time, and the old classes would starve (§4.2). For two backlogged classes the bytes sent differ by at most
//! quantum + 2 largest packets. Cost: O(1) per turn; a packet of n quanta needs n turns.

use super::round::{Linked, NONE, Round};
use crate::units::Bytes;

/// A class in the rounds: its deficit and the next class of its list, next to each other because a turn reads both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Class {
    deficit: i64,
    next: u32,
    active: bool,
}

impl Default for Class {
    fn default() -> Self {
        Self { deficit: 0, next: NONE, active: false }
    }
}

impl Linked for Class {
    fn next(&self) -> u32 {
        self.next
    }
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

/// Two rounds over the classes `0..n`: the classes of the new list go before those of the old one.
#[derive(Debug, Clone)]
pub struct NewOld {
    quantum: i64,
    /// The class that has another quantum; one that there is not if none has.
    crowd: usize,
    crowd_quantum: i64,
    classes: Vec<Class>,
    new: Round,
    old: Round,
}

impl NewOld {
    /// Creates the rounds for `classes` classes, none of them active. A quantum of 0 B is taken as 1 B.
    pub fn new(classes: usize, quantum: Bytes) -> Self {
        Self {
            quantum: i64::try_from(quantum.get()).unwrap_or(i64::MAX).max(1),
            crowd: usize::MAX,
            crowd_quantum: 0,
            classes: vec![Class::default(); classes],
            new: Round::default(),
            old: Round::default(),
        }
    }

    /// Makes room for the classes `0..classes`.
    pub fn grow_to(&mut self, classes: usize) {
        if classes > self.classes.len() {
            self.classes.resize(classes, Class::default());
        }
    }

    /// Gives a class the turns of `flows` classes.
    pub fn crowd(&mut self, class: usize, flows: u64) {
        self.crowd = class;
        self.crowd_quantum = self.quantum.saturating_mul(i64::try_from(flows).unwrap_or(i64::MAX).max(1));
    }

    /// True while a class is in one of the lists, with or without packets.
    #[inline]
    pub fn is_active(&self, class: usize) -> bool {
        self.classes[class].active
    }

    /// Reports that `class` has a packet: if the class is in no list, it joins the new list, or the old one if it is a crowd,
    /// with a deficit of one quantum.
    #[inline]
    pub fn activate(&mut self, class: usize) {
        let Class { deficit, active, .. } = &mut self.classes[class];
        if !*active {
            *active = true;
            if class == self.crowd {
                *deficit = self.crowd_quantum;
                self.old.push(&mut self.classes, class);
            } else {
                *deficit = self.quantum;
                self.new.push(&mut self.classes, class);
            }
        }
    }

    /// The class whose turn it is; `None` if both lists are empty. The caller must continue with [`NewOld::spend`] or
    /// [`NewOld::found_empty`].
    #[inline]
    pub fn turn(&mut self) -> Option<usize> {
        loop {
            let list = if self.new.first().is_some() { &mut self.new } else { &mut self.old };
            let class = list.first()?;
            let deficit = &mut self.classes[class].deficit;
            if *deficit > 0 {
                return Some(class);
            }
            // RFC 8290 §4.2: a turn is used up, the class gets a quantum and joins the end of the old list.
            *deficit += if class == self.crowd { self.crowd_quantum } else { self.quantum };
            list.pop(&self.classes);
            self.old.push(&mut self.classes, class);
        }
    }

    /// Reports that `class`, whose turn it is, sends `size` bytes.
    #[inline]
    pub fn spend(&mut self, class: usize, size: Bytes) {
        self.classes[class].deficit -= i64::try_from(size.get()).unwrap_or(i64::MAX);
    }

    /// Reports that the class whose turn it is has no packet: it moves from the new to the old list, or becomes
    /// inactive.
    #[inline]
    pub fn found_empty(&mut self) {
        // RFC 8290 §4.2: an empty new class joins the old list, so that it cannot be new again at once.
        if let Some(class) = self.new.pop(&self.classes) {
            if self.old.first().is_some() {
                self.old.push(&mut self.classes, class);
            } else {
                self.classes[class].active = false;
            }
        } else if let Some(class) = self.old.pop(&self.classes) {
            self.classes[class].active = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Serves queues of packets of these sizes and returns the classes in order, until all queues are empty or `turns`
    /// were given.
    fn serve(drr: &mut NewOld, queues: &mut [VecDeque<u64>], turns: usize) -> Vec<usize> {
        let mut served = Vec::new();
        while served.len() < turns {
            let Some(class) = drr.turn() else { break };
            match queues[class].pop_front() {
                Some(size) => {
                    drr.spend(class, Bytes::new(size));
                    served.push(class);
                }
                None => drr.found_empty(),
            }
        }
        served
    }

    fn arrive(drr: &mut NewOld, queues: &mut [VecDeque<u64>], class: usize, size: u64) {
        queues[class].push_back(size);
        drr.activate(class);
    }

    /// Quantum 1000. Class 0: 600 600 600 600, class 1: 1000 1000 1000.
    /// 0 sends 600 (400 left), 600 (-200); 1 sends 1000 (0). Both get a quantum and are old: 0 has 800, sends 600,
    /// 600 (-400); 1 has 1000, sends one (0); 0 gets 600 and is empty; 1 gets 1000 and sends the last.
    #[test]
    fn deficits_carry_over() {
        let (mut drr, mut queues) = (NewOld::new(2, Bytes::new(1000)), vec![VecDeque::new(); 2]);
        (0..4).for_each(|_| arrive(&mut drr, &mut queues, 0, 600));
        (0..3).for_each(|_| arrive(&mut drr, &mut queues, 1, 1000));
        assert_eq!(serve(&mut drr, &mut queues, 99), [0, 0, 1, 0, 0, 1, 1]);
        assert!(!drr.is_active(0) && !drr.is_active(1));
    }

    #[test]
    fn a_new_class_goes_before_old_ones() {
        let (mut drr, mut queues) = (NewOld::new(3, Bytes::new(1000)), vec![VecDeque::new(); 3]);
        for class in [0, 1] {
            (0..5).for_each(|_| arrive(&mut drr, &mut queues, class, 1000));
        }
        assert_eq!(serve(&mut drr, &mut queues, 2), [0, 1]);
        arrive(&mut drr, &mut queues, 2, 100);
        assert_eq!(serve(&mut drr, &mut queues, 3), [2, 0, 1]);
    }

    /// RFC 8290 §4.2: the sparse class 1 gets one packet each time it is asked for none. Were it new each time, class 0
    /// would never be served.
    #[test]
    fn a_class_that_comes_and_goes_cannot_starve_an_old_one() {
        let (mut drr, mut queues) = (NewOld::new(2, Bytes::new(1000)), vec![VecDeque::new(); 2]);
        (0..9).for_each(|_| arrive(&mut drr, &mut queues, 0, 1000));
        assert_eq!(serve(&mut drr, &mut queues, 1), [0]);
        let mut served = Vec::new();
        for _ in 0..6 {
            arrive(&mut drr, &mut queues, 1, 1000);
            served.extend(serve(&mut drr, &mut queues, 1));
        }
        // 1 is new and sends, gets its quantum and waits behind 0; 0 sends; 1 sends its second; 0; 1; 0.
        assert_eq!(served, [1, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn a_packet_of_many_quanta_is_paid_for() {
        let (mut drr, mut queues) = (NewOld::new(2, Bytes::new(300)), vec![VecDeque::new(); 2]);
        (0..2).for_each(|_| arrive(&mut drr, &mut queues, 0, 1500));
        (0..9).for_each(|_| arrive(&mut drr, &mut queues, 1, 300));
        // 0 sends 1500 of its 300 and owes 1200; 1 sends one per turn until 0 has been given 5 quanta.
        assert_eq!(serve(&mut drr, &mut queues, 7), [0, 1, 1, 1, 1, 1, 0]);
    }

    /// A flow queue that becomes active again has one quantum (RFC 8290 §4.2), whatever deficit it left with. Class 0
    /// leaves with 400 of 1000, or with 500: then it was 500 in debt and got a quantum at its next turn. With a deficit
    /// below 501 it would send one packet of 500, and not two, before the turn of class 1.
    #[test]
    fn a_class_that_left_begins_with_one_quantum() {
        for first in [600, 1500] {
            let (mut drr, mut queues) = (NewOld::new(2, Bytes::new(1000)), vec![VecDeque::new(); 2]);
            arrive(&mut drr, &mut queues, 0, first);
            assert_eq!(serve(&mut drr, &mut queues, 99), [0]);
            assert!(!drr.is_active(0));
            (0..4).for_each(|_| arrive(&mut drr, &mut queues, 0, 500));
            arrive(&mut drr, &mut queues, 1, 500);
            assert_eq!(serve(&mut drr, &mut queues, 99), [0, 0, 1, 0, 0], "after {first} B");
        }
    }
}
