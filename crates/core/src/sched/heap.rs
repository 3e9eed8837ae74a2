//! Classes sorted by a timestamp: a heap with four children per node, so that no entry of 32 768 is more than eight
//! steps below the root and the children of a node share a cache line.

use super::virtual_time::before;

const CHILDREN: usize = 4;

/// A class and its timestamp. Of equal timestamps the lower class comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub at: u64,
    pub class: u32,
}

impl Entry {
    #[inline]
    fn precedes(&self, other: &Self) -> bool {
        before(self.at, other.at) || (self.at == other.at && self.class < other.class)
    }
}

/// The heap; the entry with the earliest timestamp is at the root.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Heap {
    entries: Vec<Entry>,
}

impl Heap {
    pub fn with_capacity(classes: usize) -> Self {
        Self { entries: Vec::with_capacity(classes) }
    }

    #[inline]
    pub fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.rise(self.entries.len() - 1, entry);
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        let first = self.first()?;
        if let Some(last) = self.entries.pop()
            && !self.entries.is_empty()
        {
            self.sink(last);
        }
        Some(first)
    }

    /// Replaces the first entry by another one, which costs less than a `pop` and a `push`.
    #[inline]
    pub fn replace_first(&mut self, entry: Entry) {
        if !self.entries.is_empty() {
            self.sink(entry);
        }
    }

    #[inline]
    fn rise(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if !entry.precedes(&self.entries[parent]) {
                break;
            }
            self.entries[place] = self.entries[parent];
            place = parent;
        }
        self.entries[place] = entry;
    }

    /// Inserts `entry` at the root and moves it down to its place.
    #[inline]
    fn sink(&mut self, entry: Entry) {
        let mut place = 0;
        loop {
            let begin = place * CHILDREN + 1;
            let children = self.entries.get(begin..(begin + CHILDREN).min(self.entries.len())).unwrap_or_default();
            let Some((mut least, mut at)) = children.first().map(|first| (*first, begin)) else { break };
            for (n, child) in children.iter().enumerate().skip(1) {
                if child.precedes(&least) {
                    (least, at) = (*child, begin + n);
                }
            }
            if entry.precedes(&least) {
                break;
            }
            self.entries[place] = least;
            place = at;
        }
        self.entries[place] = entry;
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
