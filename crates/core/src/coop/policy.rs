//! Budget policies: who gets how much of the bottleneck (2.2.3.2, 2.3.2).
//!
//! ```text
//! budget of client i = min(claim_i, weight_i * level of its class)
//! ```
//!
//! A policy says what the level is, and what becomes of a claim. It keeps sums and counts, never a client: what is
//! known of a client is handed in. Whatever comes, the sum of all budgets is at most BW; that is the source's invariant,
//! and each policy has it as a property test.
//!
//! | policy | level |
//! |---|---|
//! | unweighted fair | BW / n |
//! | weighted | BW / sum of weights |
//! | priority | as max-min, class by class; a lower class gets what the ones above leave, and a reserve |
//! | DyBRA | S_eff / (n - bad) |
//! | max-min | the one at which all budgets together are BW, or all claims are met |

mod dybra;
mod fill;

use super::state::{CLASSES, Claim, Share, Status};
use crate::config::ConfigError;
use crate::units::Rate;
use dybra::Dybra;
use fill::Fill;
use serde::{Deserialize, Serialize};

/// The rule by which a bottleneck is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// BW / n for each (2.2.3.2).
    #[default]
    UnweightedFair,
    /// In proportion to the weights.
    Weighted,
    /// Class 0 first; what it cannot use, and a reserve, goes to class 1; and so on.
    Priority,
    /// What clients cannot use goes to the others, event by event (2.3).
    Dybra,
    /// What clients cannot use goes to the others, at once.
    MaxMin,
}

/// A policy: the rule and its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// The rule.
    pub sharing: Sharing,
    /// DyBRA: a bad client's budget follows what it can use only when that changes by this much, in percent.
    pub threshold_percent: u8,
    /// Priority: what the classes below one that is present get at least of what reached it, in percent.
    pub reserve_percent: u8,
    /// DyBRA: Figures 2.31 to 2.33 to the letter, which can give out more than there is.
    pub literal: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self { sharing: Sharing::UnweightedFair, threshold_percent: 20, reserve_percent: 10, literal: false }
    }
}

impl Policy {
    /// This rule with the parameters of the source.
    pub fn of(sharing: Sharing) -> Self {
        Self { sharing, ..Self::default() }
    }

    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
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
        Ok(())
    }

    fn honours_claims(&self) -> bool {
        !matches!(self.sharing, Sharing::UnweightedFair | Sharing::Weighted)
    }

    /// The share as this policy sees it.
    fn seen(&self, share: Share) -> Share {
        let weight = if self.sharing == Sharing::UnweightedFair { 1 } else { share.weight };
        let class = if self.sharing == Sharing::Priority { share.class } else { 0 };
        Share { class, weight }
    }
}

/// How a client is assessed: its status and what it may use at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assessment {
    /// Good or bad.
    pub status: Status,
    /// At most this much.
    pub claim: Claim,
}

impl Assessment {
    /// What a client holds that uses whatever it is given.
    pub const GOOD: Self = Self { status: Status::Good, claim: Claim::ALL };
}

/// The sums of a policy.
#[derive(Debug, Clone)]
pub struct Budgets {
    policy: Policy,
    capacity: u64,
    sums: Sums,
}

#[derive(Debug, Clone)]
enum Sums {
    Fill(Box<Fill>),
    Dybra(Dybra),
}

impl Budgets {
    /// Nobody is there yet. Call only with a policy that validates.
    pub fn new(policy: Policy, bandwidth: Rate) -> Self {
        let sums = match policy.sharing {
            Sharing::Dybra => Sums::Dybra(Dybra::new(bandwidth.as_bps(), &policy)),
            _ => Sums::Fill(Box::new(Fill::new(bandwidth.as_bps(), policy.reserve_percent))),
        };
        Self { policy, capacity: bandwidth.as_bps(), sums }
    }

    /// BW.
    pub fn bandwidth(&self) -> Rate {
        Rate::from_bps(self.capacity)
    }

    /// The bottleneck has another rate now.
    pub fn set_bandwidth(&mut self, bandwidth: Rate) {
        self.capacity = bandwidth.as_bps();
        match &mut self.sums {
            Sums::Fill(fill) => fill.set_capacity(self.capacity),
            Sums::Dybra(dybra) => dybra.set_capacity(self.capacity),
        }
    }

    /// A client comes, with what it held under an earlier gateway, or [`Assessment::GOOD`].
    pub fn join(&mut self, share: Share, assessment: Assessment) -> Assessment {
        let seen = self.policy.seen(share);
        match &mut self.sums {
            Sums::Fill(fill) => fill.join(seen),
            Sums::Dybra(dybra) => dybra.join(seen),
        }
        self.used(share, Assessment::GOOD, assessment.claim)
    }

    /// A client goes.
    pub fn leave(&mut self, share: Share, assessment: Assessment) {
        let seen = self.policy.seen(share);
        match &mut self.sums {
            Sums::Fill(fill) => fill.leave(seen, assessment.claim),
            Sums::Dybra(dybra) => dybra.leave(seen, assessment),
        }
    }

    /// A client that holds `assessment` can use `claim`: what it holds from now on.
    pub fn used(&mut self, share: Share, assessment: Assessment, claim: Claim) -> Assessment {
        let seen = self.policy.seen(share);
        if !self.policy.honours_claims() {
            return Assessment::GOOD;
        }
        match &mut self.sums {
            Sums::Fill(fill) => fill.used(seen, assessment.claim, claim),
            Sums::Dybra(dybra) => dybra.used(seen, assessment, claim),
        }
    }

    /// The level of each class, per unit of weight.
    pub fn levels(&mut self) -> [u64; CLASSES] {
        match &mut self.sums {
            Sums::Fill(fill) if self.policy.sharing == Sharing::Priority => fill.levels(),
            Sums::Fill(fill) => [fill.levels()[0]; CLASSES],
            Sums::Dybra(dybra) => [dybra.level(); CLASSES],
        }
    }

    /// Bytes beyond the value itself; clients do not add to them.
    pub(super) fn memory(&self) -> usize {
        if matches!(self.sums, Sums::Fill(_)) { size_of::<Fill>() } else { 0 }
    }

    /// The share that counts: what [`super::state::budget`] is to be asked with.
    pub fn counted(&self, share: Share) -> Share {
        Share { class: share.class, ..self.policy.seen(share) }
    }
}

#[cfg(test)]
mod tests;
