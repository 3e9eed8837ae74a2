//! QFQ+: QFQ among aggregates of classes of equal weight, DRR within an aggregate. Most packets cost as little as in
//! DRR.
//!
//! Source: Valente, "Reducing the execution time of fair-queueing packet schedulers", Computer Communications 47, 2014;
//! rules as in Linux since 3.8, net/sched/sch_qfq.c. Groups, slots and bitmaps are in `groups.rs`.
//!
//! ```text
//! aggregate:       up to M classes of one weight; budget = n * L, weight = n * weight of a class, n of them now
//! in service:      until its classes have no packet or the budget is smaller than the next; DRR with quantum L inside
//! it ends:         F = S + what it was sent / weight; if it still has packets S = F, F = S + budget / weight, wait
//! then:            the aggregate that QFQ serves next gets a full budget
//! it gets packets: S as in QFQ, F = S + budget / weight;  if none is in service: V = S, it is served
//! after a packet:  V += size / (sum of all weights)
//! ```
//!
//! Worst-case fairness index of a class: the index of QFQ for its aggregate, shared by its n classes, plus what DRR
//! adds. It is at most 3 phi_k sigma + 2 phi_k M L + 3 L with M = 8, and equal to that of QFQ with M = 1.
//! `tests/schedulers.rs` checks both. The share of an idle class goes to the other classes of its aggregate first:
//! `an_idle_class_leaves_its_share_to_its_mates`. Cost: O(1); the steps of QFQ are taken once per budget. State: 16
//! bytes for each class, 64 for each aggregate.
//!
//! DIFFERENCE: one largest packet for all classes (Linux: one for each class, which splits aggregates further). Virtual
//! time as in `qfq.rs`. Pinned by `test_every_packet_has_the_fate_that_the_twin_gives_it` of
//! `tests/test_twins_schedulers.py`.
//! DIFFERENCE: a class with packets changes its weight at the end of its turn (Linux: at once, with a search through
//! lists). Pinned by `a_new_weight_counts_from_the_next_turn`.
//! DIFFERENCE: groups that V has reached turn eligible before an aggregate is inserted; in Linux only when the next
//! aggregate is chosen. Pinned by `test_every_packet_has_the_fate_that_the_twin_gives_it` as well.

use super::groups::Groups;
use super::round::{Linked, NONE, Round};
use super::virtual_time::{ONE, changed, total};
use super::{Scheduler, SchedulerConfig, Setup, Weight, no_class};
use crate::config::ConfigError;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parameters of QFQ+.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The largest number of classes in an aggregate (source and Linux: 8); with 1 it is QFQ with full budgets.
    pub aggregate: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { aggregate: 8 }
    }
}

/// The largest value of `aggregate`: a budget must fit 32 bits.
const MAX_AGGREGATE: u32 = 1024;

impl SchedulerConfig for Config {
    type Scheduler = QfqPlus;

    fn validate(&self, setup: &Setup<'_>) -> Result<(), ConfigError> {
        setup.validate()?;
        if !(1..=MAX_AGGREGATE).contains(&self.aggregate) {
            return Err(ConfigError::new("aggregate", format!("must be 1 to {MAX_AGGREGATE}")));
        }
        Ok(())
    }

    fn scheduler(&self, setup: &Setup<'_>) -> QfqPlus {
        let total = total(setup.weights);
        let mut scheduler = QfqPlus {
            max_packet: setup.max_packet,
            most: self.aggregate,
            groups: Groups::new(setup.max_packet),
            aggregates: Vec::new(),
            classes: vec![Class::default(); setup.weights.len()],
            in_service: NONE,
            total,
            inverse: ONE / total,
            weights: setup.weights.to_vec(),
            to_move: 0,
            open: BTreeMap::new(),
            unused: Vec::new(),
        };
        for (class, weight) in setup.weights.iter().enumerate() {
            scheduler.join(class, *weight);
        }
        scheduler
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Class {
    deficit: u32,
    /// Size of the packet at the head of the queue, 0 without packets.
    head: u32,
    next: u32,
    aggregate: u32,
}

impl Default for Class {
    fn default() -> Self {
        Self { deficit: 0, head: 0, next: NONE, aggregate: NONE }
    }
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

/// A set of classes of equal weight, which QFQ schedules as one entity. Its timestamps are in [`Groups`]. The alignment
/// keeps it within half a cache line.
#[derive(Debug, Clone, PartialEq)]
#[repr(align(32))]
struct Aggregate {
    weight: Weight,
    classes: u32,
    /// The full budget: one largest packet for each class, and at least one for an aggregate without classes.
    capacity: u32,
    budget: u32,
    /// The budget with which the current service began.
    full: u32,
    /// The round of the classes with packets.
    active: Round,
}

/// The QFQ+ scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct QfqPlus {
    max_packet: Bytes,
    most: u32,
    groups: Groups,
    aggregates: Vec<Aggregate>,
    classes: Vec<Class>,
    /// The aggregate in service, or [`NONE`].
    in_service: u32,
    total: u64,
    /// 1 / (sum of weights), in units of virtual time per byte.
    inverse: u64,
    /// Weights as they were set last.
    weights: Vec<Weight>,
    /// Number of classes whose weight was changed and which are still in an aggregate of the old weight.
    to_move: usize,
    /// Aggregates with room for another class, by weight.
    open: BTreeMap<Weight, Vec<u32>>,
    /// Aggregates without classes, which are reused.
    unused: Vec<u32>,
}

impl QfqPlus {
    /// Adds a class without packets to an aggregate of its weight.
    fn join(&mut self, class: usize, weight: Weight) {
        let open = self.open.get(&weight).and_then(|open| open.last().copied());
        let at = open.unwrap_or_else(|| self.new_aggregate(weight));
        self.classes[class].aggregate = at;
        self.aggregates[at as usize].classes += 1;
        self.resize(at);
        if self.aggregates[at as usize].classes == self.most {
            self.close(at);
        }
    }

    /// Removes a class without packets from its aggregate.
    fn leave(&mut self, class: usize) {
        let at = self.classes[class].aggregate;
        let aggregate = &mut self.aggregates[at as usize];
        let weight = aggregate.weight;
        aggregate.classes -= 1;
        let left = aggregate.classes;
        aggregate.capacity = self.max_packet.get() as u32 * left.max(1);
        if left + 1 == self.most {
            self.open.entry(weight).or_default().push(at);
        }
        if left > 0 {
            self.resize(at);
        } else if self.in_service != at {
            self.retire(at);
        }
    }

    /// Keeps an aggregate which has no classes and is not in service for reuse with another weight.
    #[cold]
    fn retire(&mut self, at: u32) {
        self.close(at);
        self.unused.push(at);
    }

    fn new_aggregate(&mut self, weight: Weight) -> u32 {
        let aggregate = Aggregate { weight, classes: 0, capacity: 0, budget: 0, full: 0, active: Round::default() };
        let mut stamp = self.groups.stamp(self.max_packet, ONE / u64::from(weight.get()));
        stamp.finish = self.groups.now;
        let at = if let Some(at) = self.unused.pop() {
            self.aggregates[at as usize] = aggregate;
            self.groups.stamps[at as usize] = stamp;
            at
        } else {
            self.aggregates.push(aggregate);
            self.groups.stamps.push(stamp);
            (self.aggregates.len() - 1) as u32
        };
        self.open.entry(weight).or_default().push(at);
        at
    }

    /// Removes an aggregate, which is full or retired, from those with room.
    fn close(&mut self, at: u32) {
        let weight = self.aggregates[at as usize].weight;
        if let Some(open) = self.open.get_mut(&weight) {
            open.retain(|other| *other != at);
            if open.is_empty() {
                self.open.remove(&weight);
            }
        }
    }

    /// Adjusts the capacity and the weight of an aggregate after its number of classes changed.
    fn resize(&mut self, at: u32) {
        let Aggregate { weight, classes, ref mut capacity, .. } = self.aggregates[at as usize];
        *capacity = self.max_packet.get() as u32 * classes;
        self.groups.stamps[at as usize].inverse = ONE / (u64::from(weight.get()) * u64::from(classes));
    }

    /// Adds a class that now has packets to the round of its aggregate, and schedules the aggregate if it was idle.
    fn activate(&mut self, class: usize) {
        self.classes[class].deficit = self.max_packet.get() as u32;
        let at = self.classes[class].aggregate;
        let active = &mut self.aggregates[at as usize].active;
        let is_first = active.first().is_none();
        active.push(&mut self.classes, class);
        if !is_first || self.in_service == at {
            return;
        }
        self.groups.look();
        self.groups.restart(at);
        let aggregate = &mut self.aggregates[at as usize];
        (aggregate.budget, aggregate.full) = (aggregate.capacity, aggregate.capacity);
        self.groups.stamps[at as usize].extend(aggregate.capacity.into());
        // If no aggregate is in service, V becomes S and this one is served at once.
        if self.in_service == NONE {
            self.in_service = at;
            self.groups.now = self.groups.stamps[at as usize].start;
        } else {
            self.groups.schedule(at, false);
        }
    }

    /// Ends the service of the aggregate `at` and begins that of the next one. Returns the first class of the next
    /// aggregate, `None` if there is none.
    fn next_aggregate(&mut self, at: u32) -> Option<u32> {
        self.groups.look();
        let aggregate = &mut self.aggregates[at as usize];
        let stamp = &mut self.groups.stamps[at as usize];
        // F counts the bytes that were sent, which may be fewer than the budget.
        let sent = aggregate.capacity.min(aggregate.full - aggregate.budget);
        stamp.extend(sent.into());
        if aggregate.active.first().is_some() {
            stamp.start = stamp.finish;
            (aggregate.budget, aggregate.full) = (aggregate.capacity, aggregate.capacity);
            stamp.extend(aggregate.capacity.into());
            self.groups.schedule(at, false);
        } else {
            if aggregate.classes == 0 {
                self.retire(at);
            }
            if self.groups.is_empty() {
                self.in_service = NONE;
                return None;
            }
        }
        self.groups.ensure_eligible();
        self.in_service = self.groups.take_first().unwrap_or(NONE);
        self.aggregates.get(self.in_service as usize)?.active.first().map(|class| class as u32)
    }

    /// Ends the turn of a class while some weights are not yet applied.
    #[cold]
    fn end_turn_and_move(&mut self, class: usize) {
        let at = self.classes[class].aggregate;
        self.aggregates[at as usize].active.pop(&self.classes);
        self.change_aggregate(class);
        if self.classes[class].head > 0 {
            self.activate(class);
        }
    }

    /// Moves a class whose turn has ended to an aggregate of its new weight.
    #[cold]
    fn change_aggregate(&mut self, class: usize) {
        let weight = self.weights[class];
        if self.aggregates[self.classes[class].aggregate as usize].weight == weight {
            return;
        }
        self.leave(class);
        self.join(class, weight);
        self.to_move -= 1;
    }
}

impl Scheduler for QfqPlus {
    fn classes(&self) -> usize {
        self.classes.len()
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    #[inline(always)]
    fn enqueue(&mut self, class: u32, size: Bytes, idle: bool) {
        if idle {
            self.classes[class as usize].head = size.get() as u32;
            self.activate(class as usize);
        }
    }

    #[inline]
    fn dequeue(&mut self) -> Option<u32> {
        let aggregate = self.aggregates.get(self.in_service as usize)?;
        match aggregate.active.first() {
            Some(class) if self.classes[class].head <= aggregate.budget => Some(class as u32),
            _ => self.next_aggregate(self.in_service),
        }
    }

    // Inlined: `served` runs once for each packet and is called from one place, so a call would only move registers.
    #[inline(always)]
    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>) {
        let class = class as usize;
        self.groups.now = self.groups.now.wrapping_add(size.get() * self.inverse);
        let size = size.get() as u32;
        let Some(aggregate) = self.aggregates.get_mut(self.in_service as usize) else { return };
        let state = &mut self.classes[class];
        aggregate.budget = aggregate.budget.saturating_sub(size);
        state.head = head.map_or(0, |head| head.get() as u32);
        state.deficit = state.deficit.saturating_sub(size);
        let ends = state.head == 0 || state.head > state.deficit;
        if !ends {
            return;
        }
        if self.to_move > 0 {
            self.end_turn_and_move(class);
        } else if head.is_none() {
            aggregate.active.pop(&self.classes);
        } else {
            state.deficit += self.max_packet.get() as u32;
            aggregate.active.rotate(&mut self.classes);
        }
    }

    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        let (class, known) = (class as usize, self.classes.len());
        let old = self.weights.get_mut(class).ok_or_else(|| no_class(class as u32, known))?;
        self.total = changed(self.total, *old, weight)?;
        self.inverse = ONE / self.total;
        let was_waiting = self.aggregates[self.classes[class].aggregate as usize].weight != *old;
        *old = weight;
        let is_waiting = self.aggregates[self.classes[class].aggregate as usize].weight != weight;
        self.to_move = self.to_move + usize::from(is_waiting) - usize::from(was_waiting);
        if is_waiting && self.classes[class].head == 0 {
            self.change_aggregate(class);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Queues, SHORTLY_BEFORE_THE_END, queues, same_order};
    use super::*;

    fn qfq_plus(aggregate: u32, weights: &[u32]) -> Queues<QfqPlus> {
        queues(&Config { aggregate }, weights)
    }

    fn shares(order: &[u32], classes: u32) -> Vec<usize> {
        (0..classes).map(|class| order.iter().filter(|served| **served == class).count()).collect()
    }

    /// Two aggregates of two classes: 0 and 1 have weight 1 and a budget of 3000 B, 2 and 3 have weight 3. Classes 0
    /// and 1 came first, are in service and send one packet each. Then 2 and 3 send until they have used three budgets.
    #[test]
    fn an_aggregate_is_served_until_its_budget_is_used() {
        let mut queues = qfq_plus(2, &[1, 1, 3, 3]);
        (0..4).for_each(|class| queues.offer(class, &[1500; 6]));
        let order = queues.serve_n(8);
        assert_eq!(order[..4], [0, 1, 2, 3]);
        assert_eq!(shares(&queues.serve(), 4).iter().sum::<usize>(), 16);
    }

    #[test]
    fn with_one_class_each_shares_are_those_of_the_weights() {
        for most in [1, 8] {
            let mut queues = qfq_plus(most, &[1, 2, 5]);
            (0..3).for_each(|class| queues.offer(class, &[1500; 200]));
            let shares = shares(&queues.serve_n(160), 3);
            assert!(shares.iter().zip([20i64, 40, 100]).all(|(got, due)| (*got as i64 - due).abs() <= 2), "{shares:?}");
        }
    }

    /// Classes 0 and 1 of weight 1 share an aggregate, class 2 has weight 2. While 1 is idle, its aggregate keeps the
    /// weight 2 and class 0 gets half of the link. With M = 1 class 0 gets a third.
    #[test]
    fn an_idle_class_leaves_its_share_to_its_mates() {
        for (most, due) in [(8, 150), (1, 100)] {
            let mut queues = qfq_plus(most, &[1, 1, 2]);
            [0, 2].into_iter().for_each(|class| queues.offer(class, &[1500; 300]));
            let share = shares(&queues.serve_n(300), 3)[0];
            assert!(share.abs_diff(due) <= 2, "{share} of 300 with M = {most}");
        }
    }

    #[test]
    fn a_new_weight_counts_from_the_next_turn() {
        let mut queues = qfq_plus(8, &[1, 1, 1]);
        (0..3).for_each(|class| queues.offer(class, &[1500; 600]));
        assert_eq!(shares(&queues.serve_n(30), 3), [10, 10, 10]);
        queues.queues.scheduler_mut().set_weight(1, Weight::new(8).unwrap()).unwrap();
        let shares = shares(&queues.serve_n(500), 3);
        assert!(shares.iter().zip([50i64, 400, 50]).all(|(got, due)| (*got as i64 - due).abs() <= 12), "{shares:?}");
    }

    /// Weights change among many values: aggregates are reused, and all packets are served.
    #[test]
    fn aggregates_without_classes_are_used_again() {
        let mut queues = qfq_plus(2, &[1; 8]);
        for round in 0..2000u32 {
            let (class, weight) = (round * 5 % 8, Weight::new(1 + round * 37 % 1000).unwrap());
            queues.queues.scheduler_mut().set_weight(class, weight).unwrap();
            queues.offer(round % 8, &[300; 2]);
            queues.serve_n(1);
        }
        queues.serve();
        let made = queues.queues.scheduler().aggregates.len();
        assert!(made <= 24, "{made} aggregates for 8 classes");
        assert_eq!(queues.queues.backlog().packets, 0);
    }

    /// M = 2: two aggregates of two classes. Class 0 leaves for another weight and returns to the place it left, as in the
    /// kernel, where an aggregate that is no longer full takes classes again (qfq_update_agg).
    #[test]
    fn a_class_that_returns_finds_the_room_it_left() {
        let mut queues = qfq_plus(2, &[1; 4]);
        for weight in [5, 1] {
            queues.queues.scheduler_mut().set_weight(0, Weight::new(weight).unwrap()).unwrap();
        }
        let of = |class: usize| queues.queues.scheduler().classes[class].aggregate;
        assert_eq!((of(0), of(2)), (of(1), of(3)));
        assert_ne!(of(0), of(2));
    }

    /// A class that waits to move counts once, however often its weight changes, and no longer once it has moved or its old
    /// weight is back.
    #[test]
    fn classes_that_wait_to_move_are_counted() {
        let mut queues = qfq_plus(2, &[1; 4]);
        queues.offer(0, &[1500; 4]);
        for (weight, waiting) in [(5, 1), (7, 1), (1, 0), (3, 1), (9, 1)] {
            queues.queues.scheduler_mut().set_weight(0, Weight::new(weight).unwrap()).unwrap();
            assert_eq!(queues.queues.scheduler().to_move, waiting, "weight {weight}");
        }
        queues.serve();
        assert_eq!(queues.queues.scheduler().to_move, 0);
    }

    #[test]
    fn sizes_of_aggregates_are_limited() {
        let setup = Setup { weights: &[Weight::ONE], max_packet: Bytes::new(1500) };
        for aggregate in [0, 1025] {
            assert!(Config { aggregate }.validate(&setup).unwrap_err().to_string().contains("1 to 1024"));
        }
    }

    #[test]
    fn time_that_wraps_changes_no_order() {
        let weights = [1, 2, 8, 8, 30, 1, 5];
        let (one, mut other) = (qfq_plus(2, &weights), qfq_plus(2, &weights));
        let scheduler = other.queues.scheduler_mut();
        scheduler.groups.begin(SHORTLY_BEFORE_THE_END);
        same_order(one, &mut other);
        assert!(other.queues.scheduler().groups.now < 1 << 60, "time has not wrapped");
    }
}
