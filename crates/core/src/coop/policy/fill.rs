//! Max-min fairness by water-filling, class by class: the level rises until all claims are met or the capacity is used.
//!
//! ```text
//! sum over clients of max(floor_i, min(claim_i, w_i * level)) = capacity
//! ```
//!
//! Claims per unit of weight are rounded down to a finite set of values, sixteen per octave, so a client loses at most
//! 1/17 of what it could use. Only the sum of weights at each value is kept: memory does not grow with the number of
//! clients, and one event needs one step, where DyBRA needs up to n (the source's remark after Theorem 1: with a finite
//! number of values the convergence is O(1)).

use super::Assessment;
use super::floors::Sums;
use crate::allocation::{by_class, pour};
use crate::coop::state::{CLASSES, Claim, Share, Status};

/// Number of values per octave.
const STEPS: u64 = 16;
const BITS: u32 = STEPS.ilog2();
/// Number of values that a claim can have; the last one stands for an unlimited claim.
const VALUES: usize = (64 - BITS as usize + 1) * STEPS as usize + 1;
const EVERYTHING: usize = VALUES - 1;
const WORDS: usize = VALUES.div_ceil(64);

/// The index of the largest value that is not above `x`.
fn index(x: u64) -> usize {
    if x == u64::MAX {
        return EVERYTHING;
    }
    if x < STEPS {
        return x as usize;
    }
    let shift = x.ilog2() - BITS;
    (u64::from(shift + 1) * STEPS + ((x >> shift) & (STEPS - 1))) as usize
}

/// The value at an index.
fn value(index: usize) -> u64 {
    let (octave, step) = (index as u64 / STEPS, index as u64 % STEPS);
    match octave {
        _ if index == EVERYTHING => u64::MAX,
        0 => step,
        _ => (STEPS + step) << (octave - 1),
    }
}

/// The clients of one class: the sum of weights at each value of a claim.
#[derive(Debug, Clone)]
struct Class {
    weights: [u64; VALUES],
    /// Bit set of the values that at least one client claims.
    occupied: [u64; WORDS],
    /// The sum of all weights.
    total: u64,
    floors: Sums,
}

impl Class {
    fn add(&mut self, at: usize, weight: u64) {
        self.weights[at] += weight;
        self.occupied[at / 64] |= 1 << (at % 64);
        self.total += weight;
    }

    fn remove(&mut self, at: usize, weight: u64) {
        self.weights[at] -= weight;
        self.total -= weight;
        if self.weights[at] == 0 {
            self.occupied[at / 64] &= !(1 << (at % 64));
        }
    }

    /// The indices of the values that are claimed, in ascending order.
    fn claimed(&self) -> impl Iterator<Item = usize> {
        self.occupied.iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let at = (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(at)
            })
        })
    }

    /// The level that uses up `capacity`, and the rate used. If all claims are met, the level is the one that the
    /// client with the largest claim could have.
    fn pour(&self, capacity: u64) -> (u64, u64) {
        let groups = self.claimed().map(|at| (value(at).saturating_mul(self.weights[at]), self.weights[at]));
        pour(capacity, self.total, self.floors.iter(), groups)
    }
}

/// All classes with their levels.
#[derive(Debug, Clone)]
pub(super) struct Fill {
    capacity: u64,
    reserve_percent: u8,
    classes: [Class; CLASSES],
    levels: Option<[u64; CLASSES]>,
}

impl Fill {
    pub fn new(capacity: u64, reserve_percent: u8) -> Self {
        let empty = Class { weights: [0; VALUES], occupied: [0; WORDS], total: 0, floors: Sums::default() };
        let classes = std::array::from_fn(|_| empty.clone());
        Self { capacity, reserve_percent, classes, levels: None }
    }

    pub fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.levels = None;
    }

    fn class(&mut self, share: Share) -> &mut Class {
        self.levels = None;
        &mut self.classes[usize::from(share.class).min(CLASSES - 1)]
    }

    pub fn join(&mut self, share: Share) {
        let class = self.class(share);
        class.add(EVERYTHING, share.weight.into());
        class.floors.add(share, Claim::ALL);
    }

    pub fn leave(&mut self, share: Share, claim: Claim) {
        let class = self.class(share);
        class.remove(place(share, claim), share.weight.into());
        class.floors.remove(share, claim);
    }

    pub fn used(&mut self, share: Share, before: Claim, claim: Claim) -> Assessment {
        let (weight, from, to) = (u64::from(share.weight), place(share, before), place(share, claim));
        let claim = Claim::bps(value(to).saturating_mul(weight));
        if from != to {
            let class = self.class(share);
            class.remove(from, weight);
            class.add(to, weight);
            class.floors.remove(share, before);
            class.floors.add(share, claim);
        }
        let given = self.levels()[usize::from(share.class)].saturating_mul(weight).max(share.floor.as_bps());
        let lacks = claim.as_bps() < given;
        Assessment { status: if lacks { Status::Bad } else { Status::Good }, claim }
    }

    pub fn levels(&mut self) -> [u64; CLASSES] {
        if let Some(levels) = self.levels {
            return levels;
        }
        let floors = std::array::from_fn(|class| self.classes[class].floors.total());
        if floors.iter().sum::<u64>() > self.capacity {
            return *self.levels.insert([0; CLASSES]);
        }
        let total = |class: usize| self.classes[class].total;
        let pour = |class: usize, capacity| self.classes[class].pour(capacity);
        *self.levels.insert(by_class(self.capacity, self.reserve_percent, floors, total, pour))
    }

    /// Memory in bytes beyond the value itself.
    pub fn memory(&self) -> usize {
        self.classes.iter().map(|class| class.floors.memory()).sum()
    }
}

/// The index of a client's claim per unit of weight.
fn place(share: Share, claim: Claim) -> usize {
    if claim == Claim::ALL { EVERYTHING } else { index(claim.as_bps() / u64::from(share.weight)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_and_indices_belong_together() {
        for at in 0..VALUES {
            assert_eq!(index(value(at)), at);
        }
        assert_eq!((value(15), value(16), value(31), value(32), value(33)), (15, 16, 31, 32, 34));
    }

    proptest! {
        #[test]
        fn rounding_loses_at_most_a_seventeenth(x: u64) {
            let kept = value(index(x));
            prop_assert!(kept <= x && x - kept <= x / 17);
        }
    }
}
