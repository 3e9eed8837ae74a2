//! The queue that gives way when there is no room: one of those with the most bytes, within a factor of two.
//!
//! Queues with packets are in a list for each power of two of their bytes, so that the search reads one word. Cost: O(1).

use super::turns::NONE;

const LISTS: usize = 64;

/// A queue's neighbours in its list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighed {
    before: u32,
    after: u32,
    /// Which list; [`NONE`] outside all.
    list: u32,
}

impl Default for Weighed {
    fn default() -> Self {
        Self { before: NONE, after: NONE, list: NONE }
    }
}

/// Finds the neighbours of a queue.
pub(super) trait Heavy {
    fn weighed(&mut self) -> &mut Weighed;
}

/// The lists.
#[derive(Debug, Clone)]
pub(super) struct Fattest {
    heads: [u32; LISTS],
    used: u64,
}

impl Default for Fattest {
    fn default() -> Self {
        Self { heads: [NONE; LISTS], used: 0 }
    }
}

impl Fattest {
    /// Notes that queue `at` holds `bytes`.
    #[inline]
    pub fn note<H: Heavy>(&mut self, all: &mut [H], at: u32, bytes: u64) {
        let list = if bytes == 0 { NONE } else { bytes.ilog2() };
        if all[at as usize].weighed().list != list {
            self.unlink(all, at);
            self.link(all, at, list);
        }
    }

    fn unlink<H: Heavy>(&mut self, all: &mut [H], at: u32) {
        let Weighed { before, after, list } = *all[at as usize].weighed();
        if list == NONE {
            return;
        }
        match before {
            NONE => self.heads[list as usize] = after,
            before => all[before as usize].weighed().after = after,
        }
        if after != NONE {
            all[after as usize].weighed().before = before;
        }
        if self.heads[list as usize] == NONE {
            self.used &= !(1 << list);
        }
    }

    fn link<H: Heavy>(&mut self, all: &mut [H], at: u32, list: u32) {
        *all[at as usize].weighed() = Weighed { list, ..Weighed::default() };
        if list == NONE {
            return;
        }
        let head = std::mem::replace(&mut self.heads[list as usize], at);
        all[at as usize].weighed().after = head;
        if head != NONE {
            all[head as usize].weighed().before = at;
        }
        self.used |= 1 << list;
    }

    /// Returns a queue that holds more than half of what the fattest one holds; `None` if all are empty.
    pub fn top(&self) -> Option<u32> {
        (self.used != 0).then(|| self.heads[self.used.ilog2() as usize])
    }
}
