//! A set of sequence numbers as ordered, disjoint, non-adjacent ranges.

use std::ops::Range;

/// Room for this many ranges stays when a set becomes empty: most losses make one or two. A slow start that overshoots makes
/// dozens once, and every flow would keep their memory.
const KEPT: usize = 2;

/// A set of half-open ranges `[start, end)` in ascending order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranges {
    list: Vec<(u64, u64)>,
    total: u64,
}

impl Ranges {
    /// Returns the number of bytes of memory on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.list.capacity() * size_of::<(u64, u64)>()
    }

    /// Returns the number of bytes in the set.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the ranges in ascending order.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.list
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a range; returns how many of its bytes are new.
    pub fn insert(&mut self, Range { start, end }: Range<u64>) -> u64 {
        if start >= end {
            return 0;
        }
        let first = self.list.partition_point(|(_, e)| *e < start);
        let last = first + self.list[first..].partition_point(|(s, _)| *s <= end);
        let touched = &self.list[first..last];
        let covered: u64 = touched.iter().map(|(s, e)| (*e).min(end).saturating_sub((*s).max(start))).sum();
        if touched.is_empty() {
            if self.list.capacity() == 0 {
                self.list.reserve_exact(1); // `Vec` begins with four, and most flows never need a second one
            }
            self.list.insert(first, (start, end));
        } else {
            let merged = (touched[0].0.min(start), touched[touched.len() - 1].1.max(end));
            self.list[first] = merged;
            self.list.drain(first + 1..last);
        }
        let new = end - start - covered;
        self.total += new;
        new
    }

    /// Removes everything below `bound`; returns how many bytes were removed.
    pub fn remove_below(&mut self, bound: u64) -> u64 {
        if self.list.first().is_none_or(|(s, _)| *s >= bound) {
            return 0;
        }
        let mut removed = 0;
        let gone = self.list.partition_point(|(_, e)| *e <= bound);
        removed += self.list.drain(..gone).map(|(s, e)| e - s).sum::<u64>();
        if let Some((start, _)) = self.list.first_mut()
            && *start < bound
        {
            removed += bound - *start;
            *start = bound;
        }
        self.total -= removed;
        if self.list.is_empty() && self.list.capacity() > KEPT {
            self.list = Vec::new();
        }
        removed
    }

    /// Returns the range that contains `at`; `None` if `at` is not in the set.
    pub fn containing(&self, at: u64) -> Option<(u64, u64)> {
        let i = self.list.partition_point(|(_, e)| *e <= at);
        self.list.get(i).copied().filter(|(s, _)| *s <= at)
    }

    /// Returns the first number at or after `from` that is not in the set, and the begin of the next range after it, if
    /// there is one.
    pub fn gap_from(&self, from: u64) -> (u64, Option<u64>) {
        let i = self.list.partition_point(|(_, e)| *e <= from);
        match self.list.get(i) {
            Some((s, e)) if *s <= from => (*e, self.list.get(i + 1).map(|r| r.0)),
            other => (from, other.map(|r| r.0)),
        }
    }

    /// Returns the number of bytes of the set at and above `bound`.
    pub fn bytes_from(&self, bound: u64) -> u64 {
        self.list.iter().rev().take_while(|(_, e)| *e > bound).map(|(s, e)| e - (*s).max(bound)).sum()
    }

    /// Returns the number of bytes of the set below `bound`.
    pub fn bytes_below(&self, bound: u64) -> u64 {
        self.list.iter().take_while(|(s, _)| *s < bound).map(|(s, e)| (*e).min(bound) - s).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set_of_numbers(steps in prop::collection::vec((0..60u64, 0..12u64, any::<bool>()), 0..40)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (start, len, remove) in steps {
                if remove {
                    let below = set.range(..start).count() as u64;
                    set = set.split_off(&start);
                    prop_assert_eq!(ranges.remove_below(start), below);
                } else {
                    let new = (start..start + len).filter(|n| set.insert(*n)).count() as u64;
                    prop_assert_eq!(ranges.insert(start..start + len), new);
                }
                prop_assert_eq!(ranges.total(), set.len() as u64);
                prop_assert!(ranges.as_slice().windows(2).all(|w| w[0].1 < w[1].0));
                for n in 0..75 {
                    prop_assert_eq!(ranges.containing(n).is_some(), set.contains(&n));
                    let gap = (n..).find(|m| !set.contains(m)).unwrap();
                    prop_assert_eq!(ranges.gap_from(n), (gap, set.range(gap..).next().copied()));
                    prop_assert_eq!(ranges.bytes_below(n), set.range(..n).count() as u64);
                }
            }
        }
    }
}
