//! Which clients are there: a table of fixed size, so that a gateway's memory does not depend on how many come.
//!
//! An entry is what a session of TCP would hold, had the protocol been carried by TCP: which message was the last. It
//! makes a message that comes twice harmless.

use crate::coop::policy::Lot;
use crate::coop::state::{NodeId, Share};
use crate::units::Instant;

/// Entries looked at before the table is taken to be full. At half load a longer run does not occur in practice.
const REACH: usize = 64;

/// What is remembered of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub node: NodeId,
    pub share: Share,
    /// What it holds. None once it has gone: it is only remembered so that its old messages stay old.
    pub lot: Option<Lot>,
    /// The state it was sent last.
    pub seq: u64,
    /// The state it sent to get that one.
    pub before: u64,
    /// When it is forgotten.
    pub until: Instant,
}

/// The table.
#[derive(Debug, Clone)]
pub(super) struct Table {
    entries: Vec<Option<Entry>>,
}

impl Table {
    /// Room for `clients`, at half load.
    pub fn new(clients: u32) -> Self {
        let size = (u64::from(clients) * 2).next_power_of_two().max(REACH as u64);
        Self { entries: vec![None; size as usize] }
    }

    /// Bytes, whoever is there.
    pub fn memory(&self) -> usize {
        std::mem::size_of_val(self.entries.as_slice())
    }

    /// The entry of a node, or else the place where it may be put.
    pub fn find(&mut self, node: NodeId) -> Option<&mut Option<Entry>> {
        let (mask, start) = (self.entries.len() - 1, spread(node));
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

    /// Forgets those whose time has passed, and shows each that was still there.
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

/// Neighbouring ids far apart: multiplication by an odd constant (the golden ratio's bits) is one to one.
fn spread(node: NodeId) -> usize {
    (node.0.wrapping_mul(0x9e37_79b9) >> 4) as usize
}
