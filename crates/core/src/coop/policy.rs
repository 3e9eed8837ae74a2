//! Budget policies: how the bottleneck is shared among the clients (2.2.3.2, 2.3.2).
//!
//! ```text
//! budget of client i = max(floor_i, min(claim_i, weight_i * level of its class))        no more of a floor than the claim
//! ```
//!
//! A policy computes the level of each class and processes claims. It keeps sums and counts, but no clients: the caller
//! passes in the state of a client. The sum of all budgets is at most BW at any time; this is the source's invariant,
//! and each policy has it as a property test.
//!
//! | policy | level |
//! |---|---|
//! | unweighted fair | BW / n |
//! | weighted | BW / sum of weights |
//! | priority | as max-min, class by class; a lower class gets what the ones above leave, and a reserve |
//! | DyBRA | S_eff / (n - bad) |
//! | max-min | the one at which all budgets together are BW, or all claims are met |
//!
//! With floors, BW / n and the others are the level at which the budgets add up to the same as without. If the floors
//! exceed BW, all levels are zero, and floors are cut as [`Kept`] says, in each policy by class.

mod dybra;
mod fill;
mod floors;

use super::floor::{Floor, Floors};
use super::state::{CLASSES, Claim, Share, Status};
use crate::allocation::Kept;
use crate::config::ConfigError;
use crate::units::Rate;
use dybra::Dybra;
use fill::Fill;
use serde::{Deserialize, Serialize};

/// The rule by which a bottleneck is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// An equal share BW / n for each client (2.2.3.2).
    #[default]
    UnweightedFair,
    /// Shares in proportion to the weights.
    Weighted,
    /// Class 0 goes first; what it cannot use, and a reserve, goes to class 1, and so on.
    Priority,
    /// What clients cannot use is redistributed to the others, one step per event (2.3).
    Dybra,
    /// What clients cannot use is redistributed to the others at once (max-min fairness).
    MaxMin,
}

/// A policy: the rule and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// The rule by which the bottleneck is shared.
    pub sharing: Sharing,
    /// DyBRA: the budget of a bad client follows its claim only if the claim changes by at least this much, in percent.
    pub threshold_percent: u8,
    /// Priority: the least part of what reaches a class with clients that the classes below it get, in percent.
    pub reserve_percent: u8,
    /// DyBRA: follow Figures 2.31 to 2.33 literally, which may grant more than BW.
    pub literal: bool,
    /// The floors of clients that have none of their own, by class.
    pub floors: Floors,
}

impl Default for Policy {
    fn default() -> Self {
        let (sharing, floors) = (Sharing::UnweightedFair, Floors::default());
        Self { sharing, threshold_percent: 20, reserve_percent: 10, literal: false, floors }
    }
}

impl Policy {
    /// Creates the policy with this rule and the parameters of the source.
    pub fn of(sharing: Sharing) -> Self {
        Self { sharing, ..Self::default() }
    }

    /// Refuses parameters that do not work.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.threshold_percent > 99 {
            return Err(ConfigError::new("threshold_percent", "must be 0 to 99; the source has 20"));
        }
        if !(1..=50).contains(&self.reserve_percent) {
            return Err(ConfigError::new("reserve_percent", "must be 1 to 50: with less, lower classes would starve"));
        }
        if self.literal && self.sharing != Sharing::Dybra {
            return Err(ConfigError::new("literal", "only DyBRA has a literal form: set sharing = \"dybra\""));
        }
        if self.literal && !self.floors.is_empty() {
            return Err(ConfigError::new("floors", "the literal form of DyBRA has no floors"));
        }
        Ok(())
    }

    fn honours_claims(&self) -> bool {
        !matches!(self.sharing, Sharing::UnweightedFair | Sharing::Weighted)
    }

    /// The share as this policy counts it: the weight is 1 for the unweighted rule.
    fn seen(&self, share: Share) -> Share {
        let weight = if self.sharing == Sharing::UnweightedFair { 1 } else { share.weight };
        let class = if self.sharing == Sharing::Priority { share.class } else { 0 };
        Share { class, weight, floor: self.floor(share) }
    }

    /// The floor that counts: its own, or that of its class.
    fn floor(&self, share: Share) -> Floor {
        if self.literal { Floor::NONE } else { share.floor.within(self.floors.of(share.class)) }
    }

    /// Refuses floors that do not fit. `own` are the shares of all clients.
    ///
    /// # Errors
    /// Says how much they are.
    pub fn check_floors(&self, bandwidth: Rate, shares: impl IntoIterator<Item = Share>) -> Result<(), ConfigError> {
        let sum = shares.into_iter().fold(0u64, |sum, share| sum.saturating_add(self.floor(share).as_bps()));
        if sum > bandwidth.as_bps() {
            let sum = Rate::from_bps(sum);
            return Err(ConfigError::new("floors", format!("add up to {sum}, but the link has {bandwidth}")));
        }
        Ok(())
    }
}

/// The assessment of a client: its status and the most that it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assessment {
    /// Whether the client can use its share (good) or not (bad).
    pub status: Status,
    /// The most that the client may use.
    pub claim: Claim,
}

impl Assessment {
    /// The assessment of a client that uses whatever it is given.
    pub const GOOD: Self = Self { status: Status::Good, claim: Claim::ALL };
}

/// The sums of a policy over all clients.
#[derive(Debug, Clone)]
pub struct Budgets {
    policy: Policy,
    capacity: u64,
    sums: Sums,
    /// The sums of floors, by class.
    floors: [u64; CLASSES],
}

#[derive(Debug, Clone)]
enum Sums {
    Fill(Box<Fill>),
    Dybra(Dybra),
}

impl Budgets {
    /// Creates sums without clients. The policy must be valid.
    pub fn new(policy: Policy, bandwidth: Rate) -> Self {
        let sums = match policy.sharing {
            Sharing::Dybra => Sums::Dybra(Dybra::new(bandwidth.as_bps(), &policy)),
            _ => Sums::Fill(Box::new(Fill::new(bandwidth.as_bps(), policy.reserve_percent))),
        };
        Self { policy, capacity: bandwidth.as_bps(), sums, floors: [0; CLASSES] }
    }

    /// BW, the rate of the bottleneck.
    pub fn bandwidth(&self) -> Rate {
        Rate::from_bps(self.capacity)
    }

    /// Sets the rate of the bottleneck.
    pub fn set_bandwidth(&mut self, bandwidth: Rate) {
        self.capacity = bandwidth.as_bps();
        match &mut self.sums {
            Sums::Fill(fill) => fill.set_capacity(self.capacity),
            Sums::Dybra(dybra) => dybra.set_capacity(self.capacity),
        }
    }

    /// Adds a client with the assessment it had under an earlier gateway, or [`Assessment::GOOD`]. Returns its
    /// assessment.
    pub fn join(&mut self, share: Share, assessment: Assessment) -> Assessment {
        let seen = self.policy.seen(share);
        match &mut self.sums {
            Sums::Fill(fill) => fill.join(seen),
            Sums::Dybra(dybra) => dybra.join(seen),
        }
        self.floors[usize::from(share.class)] += floor(seen, Claim::ALL);
        self.used(share, Assessment::GOOD, assessment.claim)
    }

    /// Removes a client.
    pub fn leave(&mut self, share: Share, assessment: Assessment) {
        let seen = self.policy.seen(share);
        self.floors[usize::from(share.class)] -= floor(seen, assessment.claim);
        match &mut self.sums {
            Sums::Fill(fill) => fill.leave(seen, assessment.claim),
            Sums::Dybra(dybra) => dybra.leave(seen, assessment),
        }
    }

    /// Processes the claim of a client that holds `assessment`, and returns its new assessment.
    pub fn used(&mut self, share: Share, assessment: Assessment, claim: Claim) -> Assessment {
        let seen = self.policy.seen(share);
        if !self.policy.honours_claims() {
            return Assessment::GOOD;
        }
        let after = match &mut self.sums {
            Sums::Fill(fill) => fill.used(seen, assessment.claim, claim),
            Sums::Dybra(dybra) => dybra.used(seen, assessment, claim),
        };
        let floors = &mut self.floors[usize::from(share.class)];
        *floors = *floors - floor(seen, assessment.claim) + floor(seen, after.claim);
        after
    }

    /// What is given of floors.
    pub fn kept(&self) -> Kept {
        Kept::of(self.capacity, self.floors)
    }

    /// The sum of all floors, in bits per second.
    pub fn floors(&self) -> u64 {
        self.floors.iter().sum()
    }

    /// The level of each class, in bits per second for each unit of weight.
    pub fn levels(&mut self) -> [u64; CLASSES] {
        match &mut self.sums {
            Sums::Fill(fill) if self.policy.sharing == Sharing::Priority => fill.levels(),
            Sums::Fill(fill) => [fill.levels()[0]; CLASSES],
            Sums::Dybra(dybra) => [dybra.level(); CLASSES],
        }
    }

    /// Memory in bytes beyond the value itself. It depends on the number of different floors, but not on that of clients.
    pub(super) fn memory(&self) -> usize {
        match &self.sums {
            Sums::Fill(fill) => size_of::<Fill>() + fill.memory(),
            Sums::Dybra(dybra) => dybra.memory(),
        }
    }

    /// The share as this policy counts it, for [`super::state::budget`].
    pub fn counted(&self, share: Share) -> Share {
        Share { class: share.class, ..self.policy.seen(share) }
    }
}

/// What counts of a client's floor if this is its claim.
fn floor(share: Share, claim: Claim) -> u64 {
    share.floor.as_bps().min(claim.as_bps())
}

#[cfg(test)]
mod tests;
