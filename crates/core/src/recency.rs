//! Lists of small indices in order of last use: the oldest index is found, and any index is moved or removed, in O(1).

use crate::units::{Instant, Span};

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    older: u32,
    newer: u32,
    last: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Ends {
    oldest: u32,
    newest: u32,
}

/// `LISTS` lists over one range of indices. An index is in at most one list, and the caller knows in which. 16 bytes
/// per index.
#[derive(Debug, Clone)]
pub(crate) struct Recency<const LISTS: usize> {
    nodes: Vec<Node>,
    ends: [Ends; LISTS],
}

impl<const LISTS: usize> Recency<LISTS> {
    pub(crate) fn new() -> Self {
        Self { nodes: Vec::new(), ends: [Ends { oldest: NONE, newest: NONE }; LISTS] }
    }

    /// Adds `id` to `list` as the newest. It must be in no list, and `now` must not be before the time of the newest
    /// index.
    pub(crate) fn push(&mut self, list: usize, id: u32, now: Instant) {
        let needed = id as usize + 1;
        if self.nodes.len() < needed {
            self.nodes.resize(needed, Node { older: NONE, newer: NONE, last: Instant::ZERO });
        }
        let ends = &mut self.ends[list];
        self.nodes[id as usize] = Node { older: ends.newest, newer: NONE, last: now };
        match ends.newest {
            NONE => ends.oldest = id,
            newest => self.nodes[newest as usize].newer = id,
        }
        ends.newest = id;
    }

    /// Removes `id` from `list`, which must contain it.
    pub(crate) fn remove(&mut self, list: usize, id: u32) {
        let Node { older, newer, .. } = self.nodes[id as usize];
        match older {
            NONE => self.ends[list].oldest = newer,
            _ => self.nodes[older as usize].newer = newer,
        }
        match newer {
            NONE => self.ends[list].newest = older,
            _ => self.nodes[newer as usize].older = older,
        }
    }

    /// The oldest index of `list`, if it was last used more than `idle` before `now`.
    pub(crate) fn expired(&self, list: usize, now: Instant, idle: Span) -> Option<u32> {
        let oldest = self.ends[list].oldest;
        (oldest != NONE && now.since(self.nodes[oldest as usize].last) > idle).then_some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The lists behave as plain vectors do.
        #[test]
        fn the_oldest_is_found_whatever_was_moved(steps in prop::collection::vec((0..8u32, 0..3usize), 1..100)) {
            let mut recency: Recency<2> = Recency::new();
            let mut lists: [Vec<u32>; 2] = Default::default();
            for (step, (id, to)) in steps.into_iter().enumerate() {
                let now = Instant::from_nanos(step as u64);
                for (list, members) in lists.iter_mut().enumerate() {
                    if let Some(at) = members.iter().position(|m| *m == id) {
                        members.remove(at);
                        recency.remove(list, id);
                    }
                }
                if to < 2 {
                    lists[to].push(id);
                    recency.push(to, id, now);
                }
                let later = Instant::from_nanos(step as u64 + 1);
                for (list, members) in lists.iter().enumerate() {
                    prop_assert_eq!(recency.expired(list, later, Span::ZERO), members.first().copied());
                    prop_assert_eq!(recency.expired(list, now, Span::from_secs(1)), None);
                }
            }
        }
    }
}
