//! Groups, slots and bitmaps: the data structure with which QFQ and QFQ+ find the entity to serve in a fixed number of
//! steps.
//!
//! Source: Checconi, Rizzo, Valente, "QFQ: efficient packet scheduling with tight guarantees", IEEE/ACM ToN 21(3), 2013.
//! An entity is a class in QFQ and an aggregate in QFQ+. It belongs to the group i with the smallest slot 2^i of
//! virtual time which holds its largest packet. Its start time is rounded down to a multiple of the slot. A group takes
//! its start time S from its earliest entity:
//!
//! ```text
//! group:      S = that of its first entity, rounded down;  F = S + 2 slots
//! eligible    S <= V                    ready     no eligible group of higher index has an earlier F
//! ER, IR, EB, IB: eligible or ineligible, ready or blocked: one bitmap each, a bit for each group
//! serve       the lowest group in ER: among eligible groups it has the least F
//! ```
//!
//! The entities of a group wait in 32 lists, one for each slot from the group's S on.
//!
//! DIFFERENCE: in the source a group turns eligible when the bit of V flips that belongs to its slot size. Here the
//! groups are compared with V when V reaches the earliest S of all ineligible groups. The result is equal while weights
//! stay, exact when they change, and costs less. Pinned by `a_group_ahead_of_the_clock_stays_there`.
//! DIFFERENCE: a group that becomes ready blocks the groups of lower index which finish later. In QFQ there are no such
//! groups. In QFQ+ an aggregate comes back from service with a start time from before other aggregates were inserted,
//! so there can be some; the source serves these first. Pinned by
//! `a_group_that_comes_late_goes_before_those_that_finish_later` and by the twin.

use super::virtual_time::{ONE, before};
use crate::units::Bytes;

/// Number of slot lists of a group. A start time is at most 2 slots ahead of the group's S, or 30 after changes of
/// weights.
const SLOTS: u32 = 32;
/// Index of the group with the largest slots, which holds the classes of weight 1.
const MAX_INDEX: u32 = 24;
/// Number of places for groups: a power of two, so that an index needs no bounds check.
const GROUPS: u32 = 32;
const NONE: u32 = u32::MAX;

/// Indices of the four bitmaps of groups: eligible or ineligible, ready or blocked.
const ER: usize = 0;
const IR: usize = 1;
const EB: usize = 2;
const IB: usize = 3;

/// The timestamps and the group of an entity.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stamp {
    /// S, the virtual start time.
    pub start: u64,
    /// F, the virtual finish time of the packets to send next, or of those sent last while the entity is idle.
    pub finish: u64,
    /// 1 / weight, in units of virtual time per byte.
    pub inverse: u64,
    /// The next entity in the list of the slot.
    next: u32,
    pub group: u8,
    /// True after the weight was changed, until the entity takes the new weight.
    pub renew: bool,
}

impl Stamp {
    /// Sets F for `size` bytes which start at S.
    #[inline]
    pub fn extend(&mut self, size: u64) {
        self.finish = self.start.wrapping_add(size * self.inverse);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(32))]
struct Group {
    start: u64,
    finish: u64,
    shift: u32,
    /// Bit n is set if the n-th slot from `start` on has entities.
    full: u32,
}

impl Group {
    #[inline]
    fn round_down(&self, at: u64) -> u64 {
        at >> self.shift << self.shift
    }

    #[inline]
    fn begin_at(&mut self, start: u64) {
        self.start = start;
        self.finish = start.wrapping_add(2 << self.shift);
    }
}

/// The list of the entities in one slot.
#[derive(Debug, Clone, Copy, PartialEq)]
struct List {
    head: u32,
    tail: u32,
}

/// All groups with the lists of their slots.
#[derive(Debug, Clone, PartialEq)]
#[repr(C)]
struct Table {
    groups: [Group; GROUPS as usize],
    lists: [[List; SLOTS as usize]; GROUPS as usize],
}

impl Table {
    #[inline]
    fn group(&self, index: u32) -> &Group {
        &self.groups[(index % GROUPS) as usize]
    }

    #[inline]
    fn group_mut(&mut self, index: u32) -> &mut Group {
        &mut self.groups[(index % GROUPS) as usize]
    }

    /// The list of the slot which contains the time `at` in the group `index`.
    #[inline]
    fn list(&mut self, index: u32, at: u64) -> &mut List {
        let slot = at >> self.group(index).shift;
        &mut self.lists[(index % GROUPS) as usize][slot as usize % SLOTS as usize]
    }

    /// The first entity of a group which is not empty.
    #[inline]
    fn head(&self, index: u32) -> u32 {
        let group = self.group(index);
        self.lists[(index % GROUPS) as usize][(group.start >> group.shift) as usize % SLOTS as usize].head
    }
}

/// The groups, the stamps of their entities and the clock V.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Groups {
    pub stamps: Vec<Stamp>,
    /// V, the virtual time.
    pub now: u64,
    /// A lower bound of S over all ineligible groups. Meaningless while every group is eligible.
    due: u64,
    min_shift: u32,
    bitmaps: [u32; 4],
    table: Box<Table>,
}

/// The bits of `bitmap` from bit `from` on; `from` is less than 32.
#[inline]
fn mask_from(bitmap: u32, from: u32) -> u32 {
    bitmap & u32::MAX.wrapping_shl(from)
}

/// A mask of the bits below bit `to`; `to` is less than 32.
#[inline]
fn mask_below(to: u32) -> u32 {
    1u32.wrapping_shl(to) - 1
}

impl Groups {
    /// Creates the groups for packets up to `max_packet`, without entities.
    pub fn new(max_packet: Bytes) -> Self {
        let min_shift = ONE.ilog2() + max_packet.get().next_power_of_two().ilog2() - MAX_INDEX;
        let groups = std::array::from_fn(|index| Group {
            start: 0,
            finish: 0,
            shift: min_shift + (index as u32).min(MAX_INDEX),
            full: 0,
        });
        let lists = [[List { head: NONE, tail: NONE }; SLOTS as usize]; GROUPS as usize];
        let table = Box::new(Table { groups, lists });
        Self { stamps: Vec::new(), now: 0, due: 0, min_shift, bitmaps: [0; 4], table }
    }

    /// Sets V and the finish times of all entities to `now`, before the first entity is scheduled.
    #[cfg(test)]
    pub fn begin(&mut self, now: u64) {
        self.now = now;
        self.stamps.iter_mut().for_each(|stamp| stamp.finish = now);
    }

    /// Creates the stamp of an entity that sends at most `largest` bytes under one stamp.
    pub fn stamp(&self, largest: Bytes, inverse: u64) -> Stamp {
        Stamp { start: 0, finish: 0, inverse, next: NONE, group: self.group_of(largest, inverse), renew: false }
    }

    /// The group with the smallest slot which holds `largest` / weight.
    pub fn group_of(&self, largest: Bytes, inverse: u64) -> u8 {
        let bits = (largest.get() * inverse).next_power_of_two().ilog2();
        bits.saturating_sub(self.min_shift).min(MAX_INDEX) as u8
    }

    /// True if no entity is scheduled.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bitmaps == [0; 4]
    }

    /// The entity to serve next: the first of the lowest group in ER.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        let ready = self.bitmaps[ER];
        (ready != 0).then(|| self.table.head(ready.trailing_zeros()))
    }

    /// Removes the entity to serve next and returns it.
    #[inline]
    pub fn take_first(&mut self) -> Option<u32> {
        let first = self.first()?;
        self.leave_first(first, self.bitmaps[ER].trailing_zeros());
        Some(first)
    }

    /// Removes `entity`, which [`Groups::first`] returned.
    #[inline]
    pub fn remove_first(&mut self, entity: u32) {
        let index = u32::from(self.stamps[entity as usize].group);
        self.leave_first(entity, index);
    }

    /// Sets the start time of an entity that was idle. max(F, V) could be later than the finish time of a ready group
    /// of higher index, which must not happen to a group that this group blocked (the source, §IV-D).
    pub fn restart(&mut self, entity: u32) {
        let stamp = &self.stamps[entity as usize];
        let group = self.table.group(stamp.group.into());
        let (finish, limit) =
            (group.round_down(stamp.finish), group.round_down(self.now).wrapping_add(1 << group.shift));
        // F is kept only if V < F <= V + 1 slot (rounded); otherwise the entity was idle for too long.
        let is_stale = !before(self.now, stamp.finish) || before(limit, finish);
        let blocking = mask_from(self.bitmaps[ER], stamp.group.into());
        let start = if !is_stale {
            stamp.finish
        } else if blocking == 0 {
            self.now
        } else {
            // The F of the nearest ready group limits S if the old F is later (`qfq_update_start` in Linux).
            let other = self.table.group(blocking.trailing_zeros()).finish;
            match (before(other, finish), before(other, limit)) {
                (false, _) => self.now,
                (true, true) => other,
                (true, false) => limit,
            }
        };
        self.stamps[entity as usize].start = start;
    }

    /// Inserts an entity with a valid stamp. `idle` is true if no entity is in service.
    #[inline(always)]
    pub fn schedule(&mut self, entity: u32, idle: bool) {
        let Stamp { start, group: index, .. } = self.stamps[entity as usize];
        let group = self.table.group(index.into());
        let is_later = (group.full != 0) & !before(start, group.start);
        let at = if is_later { start } else { self.begin_group(index.into(), start, idle) };
        self.insert(entity, index.into(), at);
    }

    /// Makes a group begin at the slot of `start`, if there is a free slot for it. Returns the start time of the group.
    fn begin_group(&mut self, index: u32, start: u64, idle: bool) -> u64 {
        let group = self.table.group_mut(index);
        let rounded = group.round_down(start);
        if group.full == 0 {
            if idle && self.bitmaps[ER] == 0 && before(self.now, rounded) {
                self.now = rounded;
            }
            group.begin_at(rounded);
        } else {
            // The group already has entities: free slots are added before the first one.
            let slots =
                (group.start.wrapping_sub(rounded) >> group.shift).min(group.full.leading_zeros().into()) as u32;
            group.full = group.full.checked_shl(slots).unwrap_or(0);
            let earlier = group.start.wrapping_sub(u64::from(slots) << group.shift);
            group.begin_at(earlier);
            self.bitmaps.iter_mut().for_each(|bitmap| *bitmap &= !(1 << index));
        }
        if self.place(index) == ER {
            self.block_below(index);
        }
        self.table.group(index).start
    }

    /// Puts an entity into the slot of its group that contains `at`, or into the last slot if `at` is beyond it. The
    /// group must not begin later than `at`.
    #[inline]
    fn insert(&mut self, entity: u32, index: u32, mut at: u64) {
        let stamp = &mut self.stamps[entity as usize];
        let group = self.table.group_mut(index);
        let last = u64::from(SLOTS - 2);
        let mut slot = at.wrapping_sub(group.start) >> group.shift;
        if slot > last {
            let back = (slot - last) << group.shift;
            stamp.start = stamp.start.wrapping_sub(back);
            stamp.finish = stamp.finish.wrapping_sub(back);
            (at, slot) = (at.wrapping_sub(back), last);
        }
        stamp.next = NONE;
        let was_full = group.full & 1 << slot != 0;
        group.full |= 1 << slot;
        let list = self.table.list(index, at);
        let tail = std::mem::replace(&mut list.tail, entity);
        if was_full {
            self.stamps[tail as usize].next = entity;
        } else {
            list.head = entity;
        }
    }

    /// Reinserts the entity to serve, whose new stamp keeps the group and does not start earlier than the old one.
    #[inline]
    pub fn requeue_first(&mut self, entity: u32) {
        let Stamp { start, group, .. } = self.stamps[entity as usize];
        let index = u32::from(group);
        let group = self.table.group(index);
        if start.wrapping_sub(group.start) >> group.shift != 0 {
            let is_empty = self.unlink_first(entity, index);
            self.insert(entity, index, start);
            if is_empty {
                self.renew(index);
            }
        }
    }

    /// Removes the first entity from the first slot of its group and returns true if the slot is empty now.
    #[inline]
    fn unlink_first(&mut self, entity: u32, index: u32) -> bool {
        let next = self.stamps[entity as usize].next;
        let begin = self.table.group(index).start;
        self.table.list(index, begin).head = next;
        if next == NONE {
            self.table.group_mut(index).full &= !1;
        }
        next == NONE
    }

    /// Removes the entity to serve from its ready group.
    #[inline]
    fn leave_first(&mut self, entity: u32, index: u32) {
        if self.unlink_first(entity, index) {
            self.renew(index);
        }
    }

    /// Handles an empty first slot of a ready group: the group begins at its next slot with entities, or leaves the
    /// bitmaps, and may stop blocking other groups.
    #[inline]
    fn renew(&mut self, index: u32) {
        let group = self.table.group_mut(index);
        let finish = group.finish;
        self.bitmaps[ER] &= !(1 << index);
        if group.full != 0 {
            let empty = group.full.trailing_zeros();
            group.full >>= empty;
            let start = group.start.wrapping_add(u64::from(empty) << group.shift);
            group.begin_at(start);
            self.place(index);
        }
        self.unblock(index, finish);
    }

    /// The bitmap that a group belongs to: eligible or ineligible by V, ready or blocked by a ready group of higher
    /// index.
    #[inline]
    fn state(&self, index: u32) -> usize {
        let group = self.table.group(index);
        let ineligible = before(self.now, group.start);
        let above = mask_from(self.bitmaps[ER], index);
        let blocked = above != 0 && before(self.table.group(above.trailing_zeros()).finish, group.finish);
        usize::from(ineligible) | usize::from(blocked) << 1
    }

    /// Adds a group to the bitmap of its state and returns the state.
    #[inline]
    fn place(&mut self, index: u32) -> usize {
        let state = self.state(index);
        if state & IR != 0 {
            let start = self.table.group(index).start;
            if self.bitmaps[IR] | self.bitmaps[IB] == 0 || before(start, self.due) {
                self.due = start;
            }
        }
        self.bitmaps[state] |= 1 << index;
        state
    }

    fn move_groups(&mut self, mask: u32, from: usize, to: usize) {
        self.bitmaps[to] |= self.bitmaps[from] & mask;
        self.bitmaps[from] &= !mask;
    }

    /// The group `index`, which had the finish time `finish`, got a later one or left: groups of lower index may be
    /// ready now.
    #[inline]
    fn unblock(&mut self, index: u32, finish: u64) {
        let mut bits = (self.bitmaps[EB] | self.bitmaps[IB]) & mask_below(index);
        if bits == 0 {
            return;
        }
        let above = mask_from(self.bitmaps[ER], index + 1);
        if above != 0 && !before(finish, self.table.group(above.trailing_zeros()).finish) {
            return;
        }
        while bits != 0 {
            let group = bits.ilog2();
            self.bitmaps[EB] &= !(1 << group);
            self.bitmaps[IB] &= !(1 << group);
            self.place(group);
            bits &= !(1 << group);
        }
    }

    /// The group `index` became ready: it blocks the groups of lower index that finish later.
    #[inline]
    fn block_below(&mut self, index: u32) {
        let finish = self.table.group(index).finish;
        let (mut bits, mut later) = ((self.bitmaps[ER] | self.bitmaps[IR]) & mask_below(index), 0);
        while bits != 0 {
            let group = bits.trailing_zeros();
            if before(finish, self.table.group(group).finish) {
                later |= 1 << group;
            }
            bits &= bits - 1;
        }
        self.move_groups(later, ER, EB);
        self.move_groups(later, IR, IB);
    }

    /// Makes the groups eligible whose S the clock has reached. If no group is eligible, moves the clock to the
    /// earliest S.
    #[inline]
    pub fn update_eligible(&mut self) {
        self.look();
        self.ensure_eligible();
    }

    /// If no ready group is eligible, moves the clock to the earliest S of the other groups and makes those eligible.
    #[inline]
    pub fn ensure_eligible(&mut self) {
        if self.bitmaps[ER] == 0 {
            self.catch_up(self.bitmaps[IR] | self.bitmaps[IB]);
            self.look();
        }
    }

    /// Makes the groups eligible whose S is not later than V.
    #[inline]
    pub fn look(&mut self) {
        let waiting = self.bitmaps[IR] | self.bitmaps[IB];
        if (waiting != 0) & !before(self.now, self.due) {
            self.make_eligible(waiting);
        }
    }

    /// Moves V to the earliest S of the groups in `waiting`, if that is later.
    fn catch_up(&mut self, waiting: u32) {
        let mut bits = waiting;
        let mut least = None;
        while bits != 0 {
            let start = self.table.group(bits.trailing_zeros()).start;
            least = Some(least.map_or(start, |least| if before(start, least) { start } else { least }));
            bits &= bits - 1;
        }
        if let Some(least) = least
            && before(self.now, least)
        {
            self.now = least;
        }
    }

    fn make_eligible(&mut self, waiting: u32) {
        let (mut bits, mut due, mut later) = (waiting, 0, None);
        while bits != 0 {
            let index = bits.trailing_zeros();
            let start = self.table.group(index).start;
            if !before(self.now, start) {
                due |= 1 << index;
            } else if later.is_none_or(|later| before(start, later)) {
                later = Some(start);
            }
            bits &= bits - 1;
        }
        self.due = later.unwrap_or(self.due);
        let mut ready = due & self.bitmaps[IR];
        self.move_groups(due, IR, ER);
        self.move_groups(due, IB, EB);
        while ready != 0 {
            self.block_below(ready.trailing_zeros());
            ready &= ready - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_least_slot_that_holds_the_largest_packet() {
        let groups = Groups::new(Bytes::new(1500));
        let of = |largest, weight| groups.group_of(Bytes::new(largest), ONE / weight);
        // 2048 B of weight 1 is the last group; each doubling of the weight is one group lower.
        assert_eq!(
            [of(2048, 1), of(1025, 1), of(1024, 1), of(1500, 2), of(1500, 3), of(1, 1 << 20)],
            [24, 24, 23, 23, 22, 0]
        );
    }

    /// Slots of 2^0 B, one group, weight 1. An entity whose start time lies far ahead stays ineligible although V
    /// crosses the beginning of a slot.
    #[test]
    fn a_group_ahead_of_the_clock_stays_there() {
        let mut groups = Groups::new(Bytes::new(1));
        groups.stamps = vec![groups.stamp(Bytes::new(1), ONE), groups.stamp(Bytes::new(1), ONE / 2)];
        groups.schedule(0, true);
        groups.stamps[1].start = 10 * ONE;
        groups.schedule(1, true);
        groups.now = 3 * ONE;
        groups.update_eligible();
        assert_eq!(groups.take_first(), Some(0));
        assert_eq!(groups.first(), None);
        groups.update_eligible();
        assert_eq!((groups.take_first(), groups.now), (Some(1), 10 * ONE));
        assert!(groups.is_empty());
    }

    /// Slots of 2^0 and 2^-1 B. The group of lower index starts at 3 and finishes at 4; that of higher index comes back
    /// with 1 and 3.
    #[test]
    fn a_group_that_comes_late_goes_before_those_that_finish_later() {
        let mut groups = Groups::new(Bytes::new(1));
        groups.stamps = vec![groups.stamp(Bytes::new(1), ONE / 2), groups.stamp(Bytes::new(1), ONE)];
        groups.now = 3 * ONE;
        for (entity, start) in [(0, 3), (1, 1)] {
            groups.stamps[entity as usize].start = start * ONE;
            groups.schedule(entity, false);
        }
        assert_eq!(groups.take_first(), Some(1));
        assert_eq!(groups.first(), Some(0));
    }

    /// An entity that starts before all others of its group gets a slot before theirs.
    #[test]
    fn slots_are_put_before_the_first() {
        let mut groups = Groups::new(Bytes::new(1));
        groups.stamps = vec![groups.stamp(Bytes::new(1), ONE); 3];
        for (entity, start) in [(0, 5), (1, 3), (2, 40)] {
            groups.stamps[entity as usize].start = start * ONE;
            groups.schedule(entity, false);
        }
        groups.update_eligible();
        let order: Vec<u32> = std::iter::from_fn(|| {
            let first = groups.take_first()?;
            groups.update_eligible();
            Some(first)
        })
        .collect();
        assert_eq!(order, [1, 0, 2]);
        // A start time of 40 would be slot 37 from 3 on. The last slot is slot 30, which begins at 33.
        assert_eq!(groups.stamps[2].start, 33 * ONE);
    }

    /// The group starts at 100, and an entity in slot 30 takes the last slot. One slot is free before the first; an
    /// entity that starts at 98 takes that of 99, since there is none for 98. Then no slot is free, and an entity that
    /// starts at 90 waits behind the one of 98.
    #[test]
    fn the_slot_before_the_first_is_used_until_none_is_free() {
        let mut groups = Groups::new(Bytes::new(1));
        groups.stamps = vec![groups.stamp(Bytes::new(1), ONE); 4];
        groups.now = 200 * ONE;
        for (entity, start) in [(0, 100), (1, 130), (2, 98), (3, 90)] {
            groups.stamps[entity as usize].start = start * ONE;
            groups.schedule(entity, false);
        }
        let order: Vec<u32> = std::iter::from_fn(|| groups.take_first()).collect();
        assert_eq!(order, [2, 3, 0, 1]);
    }

    /// An entity up to the last slot keeps its start time; for an entity beyond it the start time is moved back to the
    /// last slot.
    #[test]
    fn the_last_slot_is_the_thirtieth_after_the_first() {
        for (start, kept) in [(29, 29), (30, 30), (31, 30), (32, 30)] {
            let mut groups = Groups::new(Bytes::new(1));
            groups.stamps = vec![groups.stamp(Bytes::new(1), ONE); 2];
            for (entity, at) in [(0, 0), (1, start)] {
                groups.stamps[entity as usize].start = at * ONE;
                groups.schedule(entity, false);
            }
            assert_eq!(groups.stamps[1].start, kept * ONE, "begins at {start}");
        }
    }

    #[test]
    fn each_power_of_two_of_weight_has_a_group_of_its_own() {
        let groups = Groups::new(Bytes::new(1500));
        let of_weights: Vec<u8> = (0..=20).map(|bit| groups.group_of(Bytes::new(1500), ONE >> bit)).collect();
        assert_eq!(of_weights, (4..=24).rev().collect::<Vec<u8>>());
    }
}
