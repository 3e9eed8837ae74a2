//! Classes sorted by a timestamp: a tournament. Each class has a leaf in a binary tree, each node holds the earlier one of
//! the two below it, and so the root holds the earliest class.
//!
//! When the timestamp of a class changes, its matches are played again from its leaf to the root: one comparison per
//! level, with a node whose place follows from the class alone. The processor therefore reads all of them at once. A
//! heap has half as many levels, but each of its steps down goes where the comparison before it says, and compares more.

use super::virtual_time::before;

const NOBODY: Entry = Entry { at: 0, class: u32::MAX };

/// A class and its timestamp. Of equal timestamps the lower class comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub at: u64,
    pub class: u32,
}

impl Entry {
    /// Without branches: which of two classes is earlier cannot be predicted.
    #[inline]
    fn precedes(&self, other: &Self) -> bool {
        let (here, alone) = (self.class != NOBODY.class, other.class == NOBODY.class);
        here & (alone | before(self.at, other.at) | ((self.at == other.at) & (self.class < other.class)))
    }
}

/// The tournament. The parent of the node at place p is at p / 2, the root is at 1, and the leaves come last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tournament {
    nodes: Vec<Entry>,
    classes: usize,
}

impl Tournament {
    /// Creates a tournament for this number of classes, none of which takes part yet.
    pub fn new(classes: usize) -> Self {
        Self { nodes: vec![NOBODY; 2 * classes.max(1)], classes: classes.max(1) }
    }

    /// The earliest class; `None` if no class takes part.
    #[inline]
    pub fn first(&self) -> Option<Entry> {
        Some(self.nodes[1]).filter(|first| first.class != NOBODY.class)
    }

    /// True if no class takes part.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.nodes[1].class == NOBODY.class
    }

    /// Sets the timestamp of a class, which takes part from now on.
    #[inline]
    pub fn set(&mut self, class: u32, at: u64) {
        self.play(class, Entry { at, class });
    }

    /// Takes a class out of the tournament.
    #[inline]
    pub fn remove(&mut self, class: u32) {
        self.play(class, NOBODY);
    }

    #[inline]
    fn play(&mut self, class: u32, entry: Entry) {
        let (mut place, mut winner) = (self.classes + class as usize, entry);
        self.nodes[place] = winner;
        while place > 1 {
            let other = self.nodes[place ^ 1];
            winner = if other.precedes(&winner) { other } else { winner };
            place /= 2;
            self.nodes[place] = winner;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The first of a tournament is the first of a sorted list, for any number of classes.
        #[test]
        fn the_first_is_the_least(
            classes in 1..70u32, start in any::<u64>(), steps in prop::collection::vec((0..70u32, prop::option::of(0..20u64)), 1..300)
        ) {
            let (mut tournament, mut known) = (Tournament::new(classes as usize), BTreeMap::new());
            for (class, ahead) in steps {
                let class = class % classes;
                match ahead {
                    Some(ahead) => {
                        tournament.set(class, start.wrapping_add(ahead));
                        known.insert(class, ahead);
                    }
                    None => {
                        tournament.remove(class);
                        known.remove(&class);
                    }
                }
                let least = known.iter().map(|(class, ahead)| (*ahead, *class)).min();
                let first = tournament.first().map(|first| (first.at.wrapping_sub(start), first.class));
                prop_assert_eq!(first, least);
                prop_assert_eq!(tournament.is_empty(), known.is_empty());
            }
        }
    }
}
