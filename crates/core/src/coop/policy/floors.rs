//! The sums of floors: what members hold below the level from which they count by their weight.

use super::floor;
use crate::allocation::Floored;
use crate::coop::state::{Claim, Share};
use std::collections::BTreeMap;

/// The floors of members, by the level from which they count by their weight.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sums {
    by: BTreeMap<u64, Floored>,
    total: u64,
}

impl Sums {
    pub fn add(&mut self, share: Share, claim: Claim) {
        let (floor, weight) = (floor(share, claim), u64::from(share.weight));
        if floor > 0 {
            let from = Floored::from(floor, weight);
            let at = self.by.entry(from).or_insert(Floored { from, floor: 0, weight: 0 });
            (at.floor, at.weight, self.total) = (at.floor + floor, at.weight + weight, self.total + floor);
        }
    }

    pub fn remove(&mut self, share: Share, claim: Claim) {
        let (floor, weight) = (floor(share, claim), u64::from(share.weight));
        if let Some(at) = self.by.get_mut(&Floored::from(floor, weight)).filter(|_| floor > 0) {
            (at.floor, at.weight, self.total) = (at.floor - floor, at.weight - weight, self.total - floor);
            if at.weight == 0 {
                self.by.remove(&Floored::from(floor, weight));
            }
        }
    }

    /// The floors in the order of their levels.
    pub fn iter(&self) -> impl Iterator<Item = Floored> + Clone {
        self.by.values().copied()
    }

    /// The sum of all floors, in bits per second.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Memory in bytes, about.
    pub fn memory(&self) -> usize {
        self.by.len() * size_of::<(u64, Floored)>()
    }
}
