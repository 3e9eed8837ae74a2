//! The clients of a gateway, in a hash table of fixed size, so that memory does not depend on how many clients come.
//!
//! An entry is what a TCP connection would keep if the protocol were carried by TCP: the number of the last message.
//! With it a repeated message has no effect.

use crate::coop::policy::Assessment;
use crate::coop::state::{NodeId, Share};
use crate::siphash::SipHash;
use crate::units::Instant;

/// The number of places that are probed before the table counts as full. At half load longer runs do not occur in
/// practice.
const REACH: usize = 64;

/// What the gateway stores of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub node: NodeId,
    pub share: Share,
    /// The status and the claim of the client. `None` after it left: its entry stays so that its old messages are
    /// recognised.
    pub assessment: Option<Assessment>,
    /// The sequence number of the state that the client was sent last.
    pub seq: u64,
    /// The sequence number of the state in the request that was answered with `seq`.
    pub before: u64,
    /// The time at which the entry is removed.
    pub until: Instant,
}

/// An open-addressing hash table of clients.
#[derive(Debug, Clone)]
pub(super) struct Table {
    entries: Vec<Option<Entry>>,
    /// With a key, nobody outside knows which ids are neighbours.
    key: Option<[u64; 2]>,
}

impl Table {
    /// Creates a table for `clients` clients at half load.
    pub fn new(clients: u32) -> Self {
        let size = (u64::from(clients) * 2).next_power_of_two().max(REACH as u64);
        Self { entries: vec![None; size as usize], key: None }
    }

    /// Places nodes by a hash with this key. The table must be empty.
    pub fn set_key(&mut self, key: [u64; 2]) {
        self.key = Some(key);
    }

    /// Size of the table in bytes, which is constant.
    pub fn memory(&self) -> usize {
        std::mem::size_of_val(self.entries.as_slice())
    }

    /// The place of a node's entry, or a free place for it; `None` if neither is within reach.
    pub fn find(&mut self, node: NodeId) -> Option<&mut Option<Entry>> {
        let (mask, start) = (self.entries.len() - 1, self.key.map_or_else(|| spread(node), |key| keyed(node, key)));
        let mut free = None;
        for at in (start..start + REACH).map(|at| at & mask) {
            match &self.entries[at] {
                Some(entry) if entry.node == node => return Some(&mut self.entries[at]),
                None if free.is_none() => free = Some(at),
                _ => {}
            }
        }
        free.map(|at| &mut self.entries[at])
    }

    /// Removes the entries whose time has passed, and passes those that still held a budget to `gone`.
    pub fn sweep(&mut self, now: Instant, mut gone: impl FnMut(&Entry)) {
        for place in &mut self.entries {
            if let Some(entry) = place.as_ref().filter(|entry| entry.until < now) {
                gone(entry);
                *place = None;
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }
}

/// A hash that spreads ids of any pattern: the finalizer of MurmurHash3, in which each bit of the id changes half of
/// the result.
fn spread(node: NodeId) -> usize {
    let mut x = node.0;
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    (x ^ (x >> 16)) as usize
}

fn keyed(node: NodeId, [k0, k1]: [u64; 2]) -> usize {
    SipHash(k0, k1).of(&node.0.to_le_bytes()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coop::policy::Assessment;
    use proptest::prelude::*;

    fn entry(node: NodeId, until: Instant) -> Entry {
        Entry { node, share: Share::default(), assessment: Some(Assessment::GOOD), seq: 1, before: 0, until }
    }

    /// Consecutive ids, ids at equal distances and random ids all find a place.
    #[test]
    fn everyone_finds_a_place() {
        let anyhow = |i: u32| i.wrapping_mul(i).wrapping_mul(2_654_435_761) ^ i;
        for id in [(|i| i) as fn(u32) -> u32, |i| i << 8, |i| i.wrapping_mul(4096), anyhow] {
            let mut table = Table::new(10_000);
            for i in 0..10_000 {
                let place = table.find(NodeId(id(i))).expect("a place");
                *place = Some(entry(NodeId(id(i)), Instant::MAX));
            }
            assert!((0..10_000).all(|i| table.find(NodeId(id(i))).is_some_and(|found| found.is_some())));
        }
    }

    proptest! {
        #[test]
        fn what_was_put_in_is_found_until_its_time(steps in prop::collection::vec((0u32..60, 1u64..50), 1..300)) {
            let mut table = Table::new(50);
            let mut known = std::collections::BTreeMap::new();
            for (t, (node, life)) in steps.into_iter().enumerate() {
                let now = Instant::from_nanos(t as u64);
                let until = Instant::from_nanos(t as u64 + life);
                if let Some(place) = table.find(NodeId(node)) {
                    *place = Some(entry(NodeId(node), until));
                    known.insert(node, until);
                }
                let mut gone = Vec::new();
                table.sweep(now, |entry| gone.push(entry.node.0));
                prop_assert!(gone.iter().all(|node| known[node] < now));
                known.retain(|_, until| now <= *until);
                prop_assert_eq!(table.iter().count(), known.len());
                for (node, until) in &known {
                    prop_assert_eq!(table.find(NodeId(*node)).and_then(|e| *e), Some(entry(NodeId(*node), *until)));
                }
            }
        }
    }
}
