//! Turns of equal bytes among members that come and go: those who have not had their quantum in this round go first.
//!
//! ```text
//! a member comes:   deficit = min(quantum, deficit + max(quantum * rounds that it was away, least)); to the end of the new list
//! turn:             first of the new list, else first of the old one
//!   deficit <= 0:   in the old list deficit += quantum; to the end of the old list; the next one's turn
//!   it sends:       deficit -= size
//!   it is empty:    it leaves, with its deficit
//! a round ends when all who were in the old list at its beginning had their turn, or when both lists are empty
//! ```
//!
//! RFC 8290 gives an emptied queue its place behind all old ones, so that it cannot be new again at once, and a flow that
//! sends a packet now and then loses its priority for a round. Here a member keeps what it is owed when it leaves, and one that
//! owes something stays in the old list, empty or not, until it has paid. So none gets more than a quantum and a packet in a
//! round, whether it stays or comes and goes. `least` is what a member may send first for the time that it was away, however
//! long a round takes. Cost: O(1) per turn.

use std::mem;

pub(super) const NONE: u32 = u32::MAX;

/// Where a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Away,
    New,
    Old,
}

/// A member's place and deficit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    deficit: i64,
    next: u32,
    round: u32,
    place: Place,
}

impl Default for Member {
    fn default() -> Self {
        Self { deficit: 0, next: NONE, round: 0, place: Place::Away }
    }
}

impl Member {
    /// Notes that the member sent `size` bytes.
    #[inline]
    pub fn spend(&mut self, size: u64) {
        self.deficit -= size as i64;
    }

    /// True while the member is in a list.
    #[inline]
    pub fn is_here(&self) -> bool {
        self.place != Place::Away
    }
}

/// Finds the [`Member`] in what is scheduled.
pub(super) trait Scheduled {
    fn member(&mut self) -> &mut Member;
}

/// A first-in first-out list through [`Member::next`].
#[derive(Debug, Clone, Copy)]
struct Chain {
    head: u32,
    tail: u32,
}

impl Chain {
    const EMPTY: Self = Self { head: NONE, tail: NONE };

    #[inline]
    fn push<S: Scheduled>(&mut self, all: &mut [S], at: u32) {
        all[at as usize].member().next = NONE;
        match self.tail {
            NONE => self.head = at,
            tail => all[tail as usize].member().next = at,
        }
        self.tail = at;
    }

    #[inline]
    fn pop<S: Scheduled>(&mut self, all: &mut [S]) {
        self.head = all[self.head as usize].member().next;
        if self.head == NONE {
            self.tail = NONE;
        }
    }
}

/// The two lists, and the round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    new: Chain,
    old: Chain,
    round: u32,
    /// Members of the old list, and those of them whose turn in this round is still to come.
    olds: u32,
    left: u32,
}

impl Default for Turns {
    fn default() -> Self {
        Self { new: Chain::EMPTY, old: Chain::EMPTY, round: 1, olds: 0, left: 0 }
    }
}

impl Turns {
    /// True if a member is in one of the lists.
    #[inline]
    fn is_busy(&self) -> bool {
        self.new.head != NONE || self.old.head != NONE
    }

    /// Notes that the member `at` has something to send. For the time that it was away it gets `least` bytes at least.
    #[inline]
    pub fn come<S: Scheduled>(&mut self, all: &mut [S], at: u32, quantum: i64, least: i64) {
        let round = self.round;
        let member = all[at as usize].member();
        if member.is_here() {
            return;
        }
        let rounds = i64::from(round.wrapping_sub(mem::replace(&mut member.round, round)));
        let more = quantum.saturating_mul(rounds).max(least);
        member.deficit = member.deficit.saturating_add(more).min(quantum);
        member.place = Place::New;
        self.new.push(all, at);
    }

    fn join_old<S: Scheduled>(&mut self, all: &mut [S], at: u32) {
        all[at as usize].member().place = Place::Old;
        self.old.push(all, at);
        self.olds += 1;
        if self.olds == 1 {
            self.left = 1;
        }
    }

    /// Returns the member whose turn it is; `None` if none is here. `quantum` tells that of a member.
    #[inline]
    pub fn turn<S: Scheduled>(&mut self, all: &mut [S], quantum: impl Fn(u32) -> i64) -> Option<u32> {
        loop {
            if self.new.head != NONE {
                let at = self.new.head;
                if all[at as usize].member().deficit > 0 {
                    return Some(at);
                }
                self.new.pop(all);
                self.join_old(all, at);
                continue;
            }
            let at = self.old.head;
            if at == NONE {
                return None;
            }
            let member = all[at as usize].member();
            if member.deficit > 0 {
                return Some(at);
            }
            member.deficit += quantum(at);
            self.old.pop(all);
            self.old.push(all, at);
            self.had_turn();
            all[at as usize].member().round = self.round;
        }
    }

    /// One of the old list had its turn.
    #[inline]
    fn had_turn(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.round = self.round.wrapping_add(1);
            self.left = self.olds;
        }
    }

    /// Notes that the member whose turn it is, `at`, has nothing to send.
    #[inline]
    pub fn leave<S: Scheduled>(&mut self, all: &mut [S], at: u32) {
        let member = all[at as usize].member();
        let place = mem::take(&mut member.place);
        if place == Place::New {
            self.new.pop(all);
        } else {
            self.old.pop(all);
            self.olds -= 1;
            self.had_turn();
        }
        if !self.is_busy() {
            self.round = self.round.wrapping_add(1);
            self.left = 0;
        }
    }
}
