//! The event queue: a hierarchical timing wheel in the exact order of (time, source).
//!
//! Every source of events (a link, a timer, an application) owns one id and has at most one pending event, so the queue
//! is a set of intrusive lists over an array: it allocates nothing, has no comparison tree, and moves an event in O(1).
//! A source that acts for several others (a lane of access links) says with each event for which one: the event then has
//! the place of that one in the order.
//! It has six levels of 512 slots, which fit into the L1 cache. A slot of the finest level keeps its few events sorted.
//! The time that a slot spans is chosen from the expected time between events, so that few events pass through coarser
//! levels.

use penstock_core::units::{Instant, Span};

/// Number of a source of events.
pub type SourceId = u32;

const NONE: u32 = u32::MAX;
const NOWHERE: u16 = u16::MAX;
/// A tick is a power of two: 2^6 ns to 2^20 ns (1 ms).
const TICK_BITS: std::ops::RangeInclusive<u32> = 6..=20;
const SLOT_BITS: u32 = 9;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 6;

#[derive(Debug, Clone)]
struct Entry {
    time: u64,
    /// The source in whose place it comes among events of the same time.
    key: SourceId,
    prev: u32,
    next: u32,
    /// `level * SLOTS + slot`, or `NOWHERE` if no event is pending.
    place: u16,
}

impl Entry {
    const NONE: Self = Self { time: 0, key: NONE, prev: NONE, next: NONE, place: NOWHERE };
}

/// One level of the wheel: the head of each slot's list, and bitmaps of the slots in use.
#[derive(Debug, Clone)]
struct Level {
    heads: Box<[u32; SLOTS]>,
    used: [u64; SLOTS / 64],
    summary: u64,
}

impl Level {
    fn new() -> Self {
        Self { heads: Box::new([NONE; SLOTS]), used: [0; SLOTS / 64], summary: 0 }
    }

    fn set(&mut self, slot: usize) {
        self.used[slot / 64] |= 1 << (slot % 64);
        self.summary |= 1 << (slot / 64);
    }

    fn clear(&mut self, slot: usize) {
        self.used[slot / 64] &= !(1 << (slot % 64));
        if self.used[slot / 64] == 0 {
            self.summary &= !(1 << (slot / 64));
        }
    }

    /// Returns the first slot in use at or after `from`.
    #[inline]
    fn first_from(&self, from: usize) -> Option<usize> {
        if from >= SLOTS {
            return None;
        }
        let (word, bit) = (from / 64, from % 64);
        let here = self.used[word] & (u64::MAX << bit);
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros() as usize);
        }
        let later = self.summary & u64::MAX.checked_shl(word as u32 + 1).unwrap_or(0);
        (later != 0).then(|| {
            let word = later.trailing_zeros() as usize;
            word * 64 + self.used[word].trailing_zeros() as usize
        })
    }
}

/// The pending events of all sources, at most one for each.
#[derive(Debug, Clone)]
pub struct EventQueue {
    entries: Vec<Entry>,
    levels: [Level; LEVELS],
    tick_bits: u32,
    /// The current tick: coarser slots have been spread up to it, and no pending event is before it.
    tick: u64,
}

impl EventQueue {
    /// Bytes of memory that one source takes.
    pub const BYTES_PER_SOURCE: usize = size_of::<Entry>();

    /// Creates a queue for sources `0..sources`, without events. `gap` is the expected mean time between two events; a
    /// wrong value costs time but changes no order.
    pub fn new(sources: usize, gap: Span) -> Self {
        let tick_bits = gap.as_nanos().max(1).ilog2().clamp(*TICK_BITS.start(), *TICK_BITS.end());
        Self { entries: vec![Entry::NONE; sources], levels: std::array::from_fn(|_| Level::new()), tick_bits, tick: 0 }
    }

    /// Makes room for sources `0..sources`; never removes a source.
    pub fn grow_to(&mut self, sources: usize) {
        if sources > self.entries.len() {
            self.entries.resize(sources, Entry::NONE);
        }
    }

    /// Returns when the event of `id` is due; `None` if it has none.
    pub fn due(&self, id: SourceId) -> Option<Instant> {
        let entry = &self.entries[id as usize];
        (entry.place != NOWHERE).then(|| Instant::from_nanos(entry.time))
    }

    /// Sets the event of `id` to `at` and replaces the one it had. Events at the same time come in the order of their
    /// sources, whatever the order in which they were set. `at` must not be before the last event taken.
    pub fn set(&mut self, id: SourceId, at: Instant) {
        self.set_as(id, id, at);
    }

    /// Sets the event of `id` like [`EventQueue::set`], but in the place of `key` among events of the same time. If two
    /// events have the same time and key, that of the smaller source comes first.
    #[inline(never)]
    pub fn set_as(&mut self, id: SourceId, key: SourceId, at: Instant) {
        if self.entries[id as usize].place != NOWHERE {
            return self.move_to(id, key, at);
        }
        self.link(id, key, at.as_nanos());
    }

    // Not inlined, like other rare cases below, so that the common case needs no stack frame.
    #[inline(never)]
    fn move_to(&mut self, id: SourceId, key: SourceId, at: Instant) {
        self.unlink(id);
        self.link(id, key, at.as_nanos());
    }

    /// Sets the event of `id` to `at`, unless its event is due no later. The owner of an earlier event is expected to
    /// set it again when it is due (a lazy timer).
    #[inline]
    pub fn set_at_latest(&mut self, id: SourceId, at: Instant) {
        self.set_at_latest_as(id, id, at);
    }

    /// Sets the event of `id` like [`EventQueue::set_at_latest`], but in the place of `key` among events of the same time.
    #[inline]
    pub fn set_at_latest_as(&mut self, id: SourceId, key: SourceId, at: Instant) {
        if self.due(id).is_none_or(|due| due > at) {
            self.set_as(id, key, at);
        }
    }

    /// Takes the next event that is due at or before `limit`; `None` if there is none.
    #[inline]
    pub fn pop_until(&mut self, limit: Instant) -> Option<(SourceId, Instant)> {
        loop {
            if let Some(slot) = self.levels[0].first_from((self.tick & (SLOTS as u64 - 1)) as usize) {
                let id = self.levels[0].heads[slot];
                let time = self.entries[id as usize].time;
                if time > limit.as_nanos() {
                    return None;
                }
                self.tick = time >> self.tick_bits;
                self.take_head(slot, id);
                return Some((id, Instant::from_nanos(time)));
            }
            if !self.spread_next(limit) {
                return None;
            }
        }
    }

    /// Moves the events of the next coarse slot in use to finer slots; returns false if no such slot begins by `limit`.
    fn spread_next(&mut self, limit: Instant) -> bool {
        for level in 1..LEVELS {
            let shift = SLOT_BITS * level as u32;
            let here = (self.tick >> shift) & (SLOTS as u64 - 1);
            if let Some(slot) = self.levels[level].first_from(here as usize + 1) {
                let start = (((self.tick >> shift) & !(SLOTS as u64 - 1)) | slot as u64) << shift;
                if start << self.tick_bits > limit.as_nanos() {
                    return false;
                }
                self.tick = start;
                self.spread(level, slot);
                return true;
            }
        }
        false
    }

    fn spread(&mut self, level: usize, slot: usize) {
        let mut id = std::mem::replace(&mut self.levels[level].heads[slot], NONE);
        self.levels[level].clear(slot);
        while id != NONE {
            let Entry { time, key, next, .. } = self.entries[id as usize];
            self.link(id, key, time);
            id = next;
        }
    }

    /// Puts an event into the finest level whose current frame contains its time.
    #[inline]
    fn link(&mut self, id: SourceId, key: SourceId, time: u64) {
        let tick = (time >> self.tick_bits).max(self.tick);
        let distance = tick ^ self.tick;
        if distance >= SLOTS as u64 {
            return self.link_far(id, key, time, tick, distance);
        }
        let slot = (tick & (SLOTS as u64 - 1)) as usize;
        let head = self.levels[0].heads[slot];
        if head != NONE {
            return self.link_in_order(id, key, time, slot, head);
        }
        self.entries[id as usize] = Entry { time, key, prev: id, next: NONE, place: slot as u16 };
        self.levels[0].heads[slot] = id;
        self.levels[0].set(slot);
    }

    /// Inserts an event into a slot of the finest level, which is kept sorted. The search begins at the tail, which is
    /// the `prev` of the head.
    #[inline(never)]
    fn link_in_order(&mut self, id: SourceId, key: SourceId, time: u64, slot: usize, head: SourceId) {
        let tail = self.entries[head as usize].prev;
        let (mut after, mut next) = (tail, NONE);
        let turn = |id: SourceId, entry: &Entry| (entry.time, entry.key, id);
        while turn(after, &self.entries[after as usize]) > (time, key, id) {
            if after == head {
                self.entries[id as usize] = Entry { time, key, prev: tail, next: head, place: slot as u16 };
                self.entries[head as usize].prev = id;
                self.levels[0].heads[slot] = id;
                return;
            }
            (after, next) = (self.entries[after as usize].prev, after);
        }
        self.entries[id as usize] = Entry { time, key, prev: after, next, place: slot as u16 };
        self.entries[after as usize].next = id;
        self.entries[if next == NONE { head } else { next } as usize].prev = id;
    }

    /// Inserts an event into a coarser level, whose lists are not sorted. An event beyond the coarsest frame (36 years
    /// with the smallest tick) is never due.
    #[inline(never)]
    fn link_far(&mut self, id: SourceId, key: SourceId, time: u64, tick: u64, distance: u64) {
        let level = (1..LEVELS).find(|l| distance >> (SLOT_BITS * (*l as u32 + 1)) == 0);
        let (level, slot) = match level {
            Some(level) => (level, ((tick >> (SLOT_BITS * level as u32)) & (SLOTS as u64 - 1)) as usize),
            None => (LEVELS - 1, SLOTS - 1),
        };
        let head = self.levels[level].heads[slot];
        let place = (level * SLOTS + slot) as u16;
        let entry = &mut self.entries[id as usize];
        (entry.time, entry.key, entry.place, entry.next) = (time, key, place, NONE);
        if head == NONE {
            entry.prev = id;
            self.levels[level].heads[slot] = id;
            self.levels[level].set(slot);
            return;
        }
        let tail = std::mem::replace(&mut self.entries[head as usize].prev, id);
        self.entries[id as usize].prev = tail;
        self.entries[tail as usize].next = id;
    }

    /// Removes the head of a slot of the finest level.
    #[inline]
    fn take_head(&mut self, slot: usize, id: SourceId) {
        let Entry { prev, next, .. } = self.entries[id as usize];
        self.entries[id as usize].place = NOWHERE;
        self.levels[0].heads[slot] = next;
        if next == NONE {
            self.levels[0].clear(slot);
        } else {
            self.entries[next as usize].prev = prev;
        }
    }

    #[inline]
    fn unlink(&mut self, id: SourceId) {
        let Entry { prev, next, place, .. } = self.entries[id as usize];
        self.entries[id as usize].place = NOWHERE;
        let (level, slot) = (place as usize / SLOTS, place as usize % SLOTS);
        let head = self.levels[level].heads[slot];
        if head == id {
            self.levels[level].heads[slot] = next;
            if next == NONE {
                self.levels[level].clear(slot);
            } else {
                self.entries[next as usize].prev = prev;
            }
            return;
        }
        self.entries[prev as usize].next = next;
        let before_next = if next == NONE { head } else { next };
        self.entries[before_next as usize].prev = prev;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const END: Instant = Instant::MAX;
    const GAP: Span = Span::from_micros(16);

    #[test]
    fn events_at_the_same_time_come_in_the_order_of_their_sources() {
        let mut queue = EventQueue::new(3, GAP);
        for id in [2, 0, 1] {
            queue.set(id, Instant::from_nanos(5));
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_until(END)).map(|(id, _)| id).collect();
        assert_eq!(order, [0, 1, 2]);
    }

    #[test]
    fn a_lazy_timer_keeps_its_earlier_event() {
        let mut queue = EventQueue::new(1, GAP);
        queue.set(0, Instant::from_nanos(10));
        queue.set_at_latest(0, Instant::from_nanos(20));
        assert_eq!(queue.pop_until(END), Some((0, Instant::from_nanos(10))));
        queue.set_at_latest(0, Instant::from_nanos(20));
        assert_eq!(queue.pop_until(END), Some((0, Instant::from_nanos(20))));
    }

    #[test]
    fn nothing_is_taken_beyond_the_limit_and_nothing_is_lost_by_looking() {
        let mut queue = EventQueue::new(2, GAP);
        queue.set(0, Instant::from_nanos(1 << 40));
        assert_eq!(queue.pop_until(Instant::from_nanos((1 << 40) - 1)), None);
        queue.set(1, Instant::from_nanos((1 << 40) - 1));
        assert_eq!(queue.pop_until(END).map(|(id, _)| id), Some(1));
        assert_eq!(queue.pop_until(END).map(|(id, _)| id), Some(0));
    }

    #[test]
    fn an_event_has_the_place_of_the_source_for_which_it_is() {
        let mut queue = EventQueue::new(4, GAP);
        for (id, key) in [(0, 3), (1, 2), (2, 2), (3, 1)] {
            queue.set_as(id, key, Instant::from_nanos(5));
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_until(END)).map(|(id, _)| id).collect();
        assert_eq!(order, [3, 1, 2, 0]);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Set(u32, u32, u64),
        PopUntil(u64),
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// The queue agrees with a sorted list, for spans from nanoseconds to days.
        #[test]
        fn order_is_that_of_a_sorted_list(gap in 0..40u32, steps in prop::collection::vec(prop_oneof![
            (0..40u32, 0..9u32, 0..47u32, any::<u64>())
                .prop_map(|(id, key, bits, r)| Step::Set(id, key, r & ((1 << bits) - 1))),
            (0..47u32, any::<u64>()).prop_map(|(bits, r)| Step::PopUntil(r & ((1 << bits) - 1))),
        ], 1..200)) {
            let mut queue = EventQueue::new(40, Span::from_nanos(1 << gap));
            let mut model: Vec<(u64, u32, u32)> = Vec::new();
            let mut now = 0u64;
            for step in steps {
                match step {
                    Step::Set(id, key, ahead) => {
                        model.retain(|(.., other)| *other != id);
                        model.push((now + ahead, key, id));
                        queue.set_as(id, key, Instant::from_nanos(now + ahead));
                    }
                    Step::PopUntil(ahead) => {
                        let limit = now + ahead;
                        loop {
                            model.sort_unstable();
                            let expected = model.first().filter(|(t, ..)| *t <= limit).copied();
                            let got = queue.pop_until(Instant::from_nanos(limit));
                            prop_assert_eq!(got, expected.map(|(t, _, id)| (id, Instant::from_nanos(t))));
                            let Some((t, ..)) = expected else { break };
                            prop_assert!(t >= now);
                            model.remove(0);
                        }
                        now = limit;
                    }
                }
            }
        }
    }
}
