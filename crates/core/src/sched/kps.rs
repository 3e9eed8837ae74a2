//! KPS: WF²Q+ whose two priority queues are timer wheels, one pair for each stratum of classes.
//!
//! Source: Karsten, "SI-WF2Q: WF2Q approximation with small constant execution overhead", INFOCOM 2006; "Approximation
//! of generalized processor sharing with interleaved stratified timer wheels", IEEE/ACM ToN 18(3), 2010. 002 §4.3.2.4
//! names it KPS. Neither the full texts nor the code were available: the algorithm below is reconstructed from the
//! abstracts and from papers that cite them.
//!
//! ```text
//! stratum i:         classes whose largest packet takes at most 2^i of virtual time, and more than half of it
//! S, F, V:           as in WF²Q+; V counts a packet as it is sent
//! start wheel:       slots of 2^i, S rounded down; a slot is released when V reaches its beginning
//! deadline wheel:    slots of 2^i, F rounded up to an odd multiple of 2^(i - 1): no two strata share a deadline
//! dequeue:           the earliest deadline of all strata; if none is released: V = the earliest start
//! ```
//!
//! "Interleaved": in the order of deadlines, one stratum has every second place, the next one every fourth, and so on,
//! so that deadlines never tie. S is at most one slot early and F at most one slot late. With shares that fit the link
//! a packet is therefore sent by F + 1 slot + L, and the worst-case fairness index is at most 3 phi_k sigma + 2 phi_k
//! L, as for QFQ; `tests/schedulers.rs` checks it. Cost: O(1). A slot of a start wheel keeps its classes in three
//! lists, one for each possible deadline, so that a release joins three lists; at most 25 strata are compared. State
//! for each class: 24 bytes.
//!
//! DIFFERENCE: the source finds the earliest stratum by the pattern of interleaving; here the deadlines of the strata
//! with packets are compared. Pinned by `strata_come_by_turns`.

use super::round::{Linked, NONE, Round};
use super::virtual_time::{Clock, ONE, before, later, span};
use super::{Scheduler, SchedulerConfig, Setup, Weight, no_class};
use crate::config::ConfigError;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of slots of a wheel. Timestamps span 3 slots, and more only after changes of weights.
const SLOTS: u64 = 64;
/// Index of the last stratum, which holds the classes of weight 1.
const MAX_STRATUM: u32 = 24;

/// KPS has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}

impl SchedulerConfig for Config {
    type Scheduler = Kps;

    fn scheduler(&self, setup: &Setup<'_>) -> Kps {
        let least = ONE.ilog2() + setup.max_packet.get().next_power_of_two().ilog2() - MAX_STRATUM;
        let stratum = |index| Stratum { starts: Wheel::new(least + index), deadlines: Wheel::new(least + index) };
        Kps {
            max_packet: setup.max_packet,
            clock: Clock::new(setup.weights),
            last_finish: 0,
            classes: setup.weights.iter().map(|w| Class::new(*w, setup.max_packet, least)).collect(),
            strata: (0..=MAX_STRATUM).map(stratum).collect(),
            least,
            waiting: 0,
            released: 0,
            chosen: 0,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Class {
    /// F of the packet at the head, or of the packet sent last while the class is idle.
    finish: u64,
    weight: Weight,
    /// The next class in the list of the slot.
    next: u32,
    stratum: u8,
}

impl Class {
    fn new(weight: Weight, max_packet: Bytes, least: u32) -> Self {
        Self { finish: 0, weight, next: NONE, stratum: stratum_of(weight, max_packet, least) }
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

/// The stratum with the smallest slot which holds the largest packet of a class.
fn stratum_of(weight: Weight, max_packet: Bytes, least: u32) -> u8 {
    let bits = span(max_packet, weight).max(1).next_power_of_two().ilog2();
    bits.saturating_sub(least).min(MAX_STRATUM) as u8
}

/// A timer wheel with `N` lists of classes for each slot. Slots are numbered from virtual time 0, modulo 2^64 / slot.
#[derive(Debug, Clone, PartialEq)]
struct Wheel<const N: usize> {
    shift: u32,
    /// The number of the first slot that has classes; meaningless while the wheel is empty.
    first: u64,
    /// Bit n is set if the n-th slot after the first has classes.
    full: u64,
    slots: Vec<[Round; N]>,
}

impl<const N: usize> Wheel<N> {
    fn new(shift: u32) -> Self {
        Self { shift, first: 0, full: 0, slots: vec![[Round::default(); N]; SLOTS as usize] }
    }

    /// The distance of a slot from the first one, in slots; negative if it lies before the first.
    fn behind(&self, slot: u64) -> i64 {
        let shift = self.shift;
        (slot.wrapping_sub(self.first) << shift) as i64 >> shift
    }

    /// The virtual time at which the first slot begins.
    #[inline]
    fn begin(&self) -> u64 {
        self.first << self.shift
    }

    /// The lists of the slot into which a class is to be put; the nearest possible slot if `slot` is outside the wheel.
    #[inline]
    fn slot(&mut self, slot: u64) -> &mut [Round; N] {
        if self.full == 0 {
            self.first = slot;
        }
        let mut behind = self.behind(slot);
        if behind < 0 {
            let room = i64::from(self.full.leading_zeros()).min(-behind);
            self.first = self.first.wrapping_sub(room as u64);
            self.full = self.full.checked_shl(room as u32).unwrap_or(0);
            behind = 0;
        }
        let place = (behind as u64).min(SLOTS - 1);
        self.full |= 1 << place;
        &mut self.slots[(self.first.wrapping_add(place) % SLOTS) as usize]
    }

    /// The lists of the first slot.
    #[inline]
    fn front(&mut self) -> &mut [Round; N] {
        &mut self.slots[(self.first % SLOTS) as usize]
    }

    /// Moves on from the first slot, which is empty now, to the next slot with classes.
    #[inline]
    fn advance(&mut self) {
        self.full &= !1;
        if self.full != 0 {
            let empty = self.full.trailing_zeros();
            self.full >>= empty;
            self.first = self.first.wrapping_add(empty.into());
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Stratum {
    /// A packet's deadline is in the slot of its start or in one of the next two slots: one list for each case.
    starts: Wheel<3>,
    deadlines: Wheel<1>,
}

impl Stratum {
    /// The deadline of the first slot, which is the middle of that slot.
    #[inline]
    fn deadline(&self) -> u64 {
        self.deadlines.begin().wrapping_add(1 << self.deadlines.shift >> 1)
    }
}

/// The KPS scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Kps {
    max_packet: Bytes,
    clock: Clock,
    last_finish: u64,
    classes: Vec<Class>,
    strata: Vec<Stratum>,
    least: u32,
    /// Bit set of the strata with classes in their start wheel.
    waiting: u32,
    /// Bit set of the strata with classes in their deadline wheel.
    released: u32,
    /// The stratum of the class that `dequeue` chose last.
    chosen: u8,
}

impl Kps {
    /// Stamps the packet of `size` whose virtual start is `start` and puts its class into a wheel.
    #[inline]
    fn schedule(&mut self, class: u32, start: u64, size: Bytes) {
        let state = &mut self.classes[class as usize];
        state.finish = start.wrapping_add(span(size, state.weight));
        self.last_finish = later(self.last_finish, state.finish);
        let (index, finish) = (state.stratum, state.finish);
        let Stratum { starts, deadlines } = &mut self.strata[index as usize];
        let slot = start >> starts.shift;
        let deadline = finish.wrapping_add((1 << starts.shift >> 1) - 1) >> starts.shift;
        if self.clock.has_reached(slot << starts.shift) {
            deadlines.slot(deadline)[0].push(&mut self.classes, class as usize);
            self.released |= 1 << index;
        } else {
            let behind = (deadline.wrapping_sub(slot) << starts.shift >> starts.shift).min(2) as usize;
            starts.slot(slot)[behind].push(&mut self.classes, class as usize);
            self.waiting |= 1 << index;
        }
    }

    /// Releases all slots that V has reached, each by joining three lists, however many classes it has.
    #[inline]
    fn release_due(&mut self) {
        let mut bits = self.waiting;
        while bits != 0 {
            let index = bits.trailing_zeros();
            let Stratum { starts, deadlines } = &mut self.strata[index as usize];
            while starts.full != 0 && self.clock.has_reached(starts.begin()) {
                let slot = starts.first;
                for (behind, list) in std::mem::take(starts.front()).into_iter().enumerate() {
                    if list.first().is_some() {
                        let deadline = slot.wrapping_add(behind as u64);
                        deadlines.slot(deadline)[0].append(&mut self.classes, list);
                    }
                }
                starts.advance();
                self.released |= 1 << index;
            }
            if starts.full == 0 {
                self.waiting &= !(1 << index);
            }
            bits &= bits - 1;
        }
    }

    /// The stratum among `strata` whose `time` is earliest, with that time.
    #[inline]
    fn earliest(&self, strata: u32, time: impl Fn(&Stratum) -> u64) -> Option<(u8, u64)> {
        let (mut bits, mut least) = (strata, None);
        while bits != 0 {
            let index = bits.trailing_zeros();
            let at = time(&self.strata[index as usize]);
            if least.is_none_or(|(_, earliest)| before(at, earliest)) {
                least = Some((index as u8, at));
            }
            bits &= bits - 1;
        }
        least
    }
}

impl Scheduler for Kps {
    fn classes(&self) -> usize {
        self.classes.len()
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    #[inline]
    fn enqueue(&mut self, class: u32, size: Bytes, idle: bool) {
        if idle {
            let finish = self.classes[class as usize].finish;
            // A packet is released at most one slot early, and a slot is less than the time of two packets.
            let at = self.clock.start(class, finish, 3 * span(self.max_packet, Weight::ONE));
            self.schedule(class, at, size);
        }
    }

    #[inline]
    fn dequeue(&mut self) -> Option<u32> {
        self.clock.finish();
        if self.released == 0 {
            // No slot is released: V jumps to the earliest start, so that the link does not idle. Without packets it is
            // idle, and V is at least every F.
            let Some((_, start)) = self.earliest(self.waiting, |stratum| stratum.starts.begin()) else {
                self.clock.at_least(self.last_finish);
                return None;
            };
            self.clock.at_least(start);
        }
        self.release_due();
        let (stratum, _) = self.earliest(self.released, Stratum::deadline)?;
        self.chosen = stratum;
        self.strata[stratum as usize].deadlines.front()[0].first().map(|class| class as u32)
    }

    #[inline]
    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>) {
        self.clock.advance(class, size);
        let wheel = &mut self.strata[self.chosen as usize].deadlines;
        let list = &mut wheel.front()[0];
        list.pop(&self.classes);
        if list.first().is_none() {
            wheel.advance();
            if wheel.full == 0 {
                self.released &= !(1 << self.chosen);
            }
        }
        if let Some(head) = head {
            self.schedule(class, self.classes[class as usize].finish, head);
        }
    }

    #[inline]
    fn progress(&mut self, sent: Bytes) {
        self.clock.progress(sent);
    }

    /// A class with packets is served once more by its old stamp.
    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        let known = self.classes.len();
        let state = self.classes.get_mut(class as usize).ok_or_else(|| no_class(class, known))?;
        self.clock.change(state.weight, weight)?;
        (state.weight, state.stratum) = (weight, stratum_of(weight, self.max_packet, self.least));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SHORTLY_BEFORE_THE_END, queues, same_order};
    use super::*;

    /// Packets of 1024 of at most 1500, sum 4, so V moves by 256. Class 0 (weight 1): slots of 2048, class 1 (weight 3):
    /// slots of 512, F = 341 1/3 a packet.
    /// V=0: deadlines 1024 (of F = 1024) and 768 (of 341): class 1. S = 341 is in slot 0: F = 683, deadline 768: class 1,
    /// V = 512. S = 683 in the slot of 512: F = 1024 1/3.. rounded down 1023, deadline 1280 > 1024: class 0, V = 768.
    /// Its S = 1024 is in slot 0 of 2048, F = 2048, deadline 3072. Class 1 (1280), V = 1024; S = 1023, F = 1365, deadline
    /// 1792, V = 1280; S = 1365, slot 1024, F = 1706, deadline 1792, V = 1536; S = 1706, slot 1536, 2047, 2304, V = 1792;
    /// then S = 2047 is in the slot of 1536: F = 2389, deadline 2816; V = 2048: S = 2389 waits for 2048: deadline 2816.
    #[test]
    fn three_to_one_by_hand() {
        let mut queues = queues(&Config::default(), &[1, 3]);
        queues.offer(0, &[1024; 3]);
        queues.offer(1, &[1024; 9]);
        assert_eq!(queues.serve_n(10), [1, 1, 0, 1, 1, 1, 1, 1, 1, 0]);
    }

    /// Deadlines of strata with slots 2048, 1024, 512 are 1024 + 2048 n, 512 + 1024 n, 256 + 512 n: of eight places four
    /// belong to the last, two to the second, one to the first.
    #[test]
    fn strata_come_by_turns() {
        let mut queues = queues(&Config::default(), &[1, 2, 4]);
        let deadlines: Vec<u64> = {
            let strata = &mut queues.queues.scheduler_mut().strata;
            let mut all = Vec::new();
            for (index, per_round) in [(24, 1), (23, 2), (22, 4)] {
                for n in 0..per_round {
                    strata[index].deadlines.first = n;
                    all.push(strata[index].deadline() / ONE);
                }
                strata[index].deadlines.first = 0;
            }
            all
        };
        assert_eq!(deadlines, [1024, 512, 1536, 256, 768, 1280, 1792]);
    }

    #[test]
    fn shares_are_those_of_the_weights() {
        let mut queues = queues(&Config::default(), &[1, 2, 5]);
        (0..3).for_each(|class| queues.offer(class, &[1000; 200]));
        let order = queues.serve_n(160);
        for (class, due) in [(0, 20i64), (1, 40), (2, 100)] {
            let got = order.iter().filter(|served| **served == class).count() as i64;
            assert!((got - due).abs() <= 2, "class {class}: {got} of {due}");
        }
    }

    #[test]
    fn a_new_weight_counts_from_the_next_packet() {
        let mut queues = queues(&Config::default(), &[1, 1]);
        queues.offer(0, &[1000; 400]);
        queues.offer(1, &[1000; 400]);
        queues.serve_n(10);
        for (weight, due) in [(9, 180i64), (1, 100)] {
            queues.queues.scheduler_mut().set_weight(0, Weight::new(weight).unwrap()).unwrap();
            let share = queues.serve_n(200).iter().filter(|class| **class == 0).count() as i64;
            assert!((share - due).abs() <= 5, "{share} of 200 with weight {weight}");
        }
        assert!(queues.queues.scheduler_mut().set_weight(2, Weight::ONE).is_err());
    }

    #[test]
    fn time_that_wraps_changes_no_order() {
        let weights = [1, 2, 8, 8, 30, 1, 5];
        let (one, mut other) = (queues(&Config::default(), &weights), queues(&Config::default(), &weights));
        let scheduler = other.queues.scheduler_mut();
        scheduler.clock.begin(SHORTLY_BEFORE_THE_END);
        scheduler.last_finish = SHORTLY_BEFORE_THE_END;
        scheduler.classes.iter_mut().for_each(|class| class.finish = SHORTLY_BEFORE_THE_END);
        same_order(one, &mut other);
        assert!(other.queues.scheduler().clock.now < 1 << 60, "time has not wrapped");
    }
}
