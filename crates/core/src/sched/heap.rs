//! Classes sorted by a timestamp: a heap with four children per node. The children of a node fill one cache line, so that a step
//! down reads one line; no entry of 87,381 is more than eight steps below the root.

use super::virtual_time::before;

const CHILDREN: usize = 4;

/// A class and its timestamp. Of equal timestamps the lower class comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub at: u64,
    pub class: u32,
}

impl Entry {
    /// Without branches: which of two entries is earlier cannot be predicted.
    #[inline]
    fn precedes(&self, other: &Self) -> bool {
        before(self.at, other.at) | ((self.at == other.at) & (self.class < other.class))
    }
}

/// A place that is not in use.
const VACANT: Entry = Entry { at: 0, class: u32::MAX };

/// The children of one node.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
struct Line([Entry; CHILDREN]);

impl Line {
    /// The index of the earliest of the first `n` entries, of which there must be one.
    #[inline]
    fn earliest(&self, n: usize) -> usize {
        let Self(entries) = self;
        if n < CHILDREN {
            return (1..n).fold(0, |least, i| if entries[i].precedes(&entries[least]) { i } else { least });
        }
        let a = usize::from(entries[1].precedes(&entries[0]));
        let b = 2 + usize::from(entries[3].precedes(&entries[2]));
        if entries[b].precedes(&entries[a]) { b } else { a }
    }
}

/// The place of the root, the last one in its line: then the children of the node at place p are all of line p - 2.
const ROOT: usize = CHILDREN - 1;

/// The heap; the entry with the earliest timestamp is at the root.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Heap {
    lines: Vec<Line>,
    /// The place after the last entry.
    end: usize,
}

impl Default for Heap {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl Heap {
    pub fn with_capacity(classes: usize) -> Self {
        Self { lines: Vec::with_capacity((ROOT + classes).div_ceil(CHILDREN)), end: ROOT }
    }

    #[inline]
    pub fn first(&self) -> Option<Entry> {
        (!self.is_empty()).then(|| self.lines[0].0[ROOT])
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.end == ROOT
    }

    #[inline]
    fn at(&mut self, place: usize) -> &mut Entry {
        &mut self.lines[place / CHILDREN].0[place % CHILDREN]
    }

    #[inline]
    pub fn push(&mut self, entry: Entry) {
        if self.end / CHILDREN == self.lines.len() {
            self.lines.push(Line([VACANT; CHILDREN]));
        }
        self.end += 1;
        self.rise(self.end - 1, entry);
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        let first = self.first()?;
        self.end -= 1;
        let last = std::mem::replace(self.at(self.end), VACANT);
        if !self.is_empty() {
            self.sink(last);
        }
        Some(first)
    }

    /// Replaces the first entry by another one, which costs less than a `pop` and a `push`.
    #[inline]
    pub fn replace_first(&mut self, entry: Entry) {
        if !self.is_empty() {
            self.sink(entry);
        }
    }

    #[inline]
    fn rise(&mut self, mut place: usize, entry: Entry) {
        while place > ROOT {
            let parent = place / CHILDREN + 2;
            let above = *self.at(parent);
            if !entry.precedes(&above) {
                break;
            }
            *self.at(place) = above;
            place = parent;
        }
        *self.at(place) = entry;
    }

    /// Inserts `entry` at the root and moves it down to its place.
    #[inline]
    fn sink(&mut self, entry: Entry) {
        let mut place = ROOT;
        loop {
            let line = place - 2;
            let begin = line * CHILDREN;
            if begin >= self.end {
                break;
            }
            let children = &self.lines[line];
            let least = children.earliest((self.end - begin).min(CHILDREN));
            let child = children.0[least];
            if entry.precedes(&child) {
                break;
            }
            *self.at(place) = child;
            place = begin + least;
        }
        *self.at(place) = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The heap gives the order of a sorted list.
        #[test]
        fn the_first_is_the_least(steps in prop::collection::vec((0u8..3, 0u64..50), 1..300)) {
            let (mut heap, mut sorted) = (Heap::default(), Vec::<(u64, u32)>::new());
            for (class, (step, at)) in steps.into_iter().enumerate() {
                let entry = Entry { at, class: class as u32 };
                match step {
                    0 => prop_assert_eq!(heap.pop().map(|e| (e.at, e.class)), (!sorted.is_empty()).then(|| sorted.remove(0))),
                    1 if !sorted.is_empty() => {
                        heap.replace_first(entry);
                        sorted[0] = (at, entry.class);
                    }
                    _ => {
                        heap.push(entry);
                        sorted.push((at, entry.class));
                    }
                }
                sorted.sort_unstable();
                prop_assert_eq!(heap.first().map(|e| (e.at, e.class)), sorted.first().copied());
                prop_assert_eq!(heap.is_empty(), sorted.is_empty());
            }
        }
    }
}
