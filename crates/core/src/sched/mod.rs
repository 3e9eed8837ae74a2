//! Scheduling: whose turn it is. A scheduler knows classes by index and packets by size, and owns no packet.
//!
//! [`Scheduled`] owns the packets: one queue for each class, all in one array. It tells a [`Scheduler`] what comes and
//! asks it who goes. [`table`] has every scheduler by name. [`new_old`] are the rounds of flow queueing
//! ([`fq`](crate::fq)), which puts an AQM into each queue and therefore serves itself.

pub mod classful;
pub mod drr;
pub mod fifo;
pub mod flowsets;
mod groups;
mod heap;
pub mod kps;
pub mod lte_bearers;
pub mod modular;
pub mod new_old;
pub mod prio;
pub mod qfq;
pub mod qfq_plus;
mod round;
mod scheduled;
pub mod sfq;
pub mod stfq;
pub mod table;
#[cfg(test)]
mod testing;
mod virtual_time;
pub mod w2f2q;
pub mod wf2q_plus;

pub use scheduled::{Limits, Reason, Refused, Scheduled, Served};

use crate::config::ConfigError;
use crate::units::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Decides whose turn it is among classes `0..classes()`.
///
/// The calls come in this order: `enqueue` at any time; `dequeue`, and if it named a class, `served` at once. Sizes are
/// at least 1 and at most [`Scheduler::max_packet`]. A class without packets costs nothing but its memory.
pub trait Scheduler {
    /// How many classes there are.
    fn classes(&self) -> usize;

    /// The largest packet it can account for.
    fn max_packet(&self) -> Bytes;

    /// A packet of `size` joined the queue of `class`; `idle` tells that the class had none before.
    fn enqueue(&mut self, class: u32, size: Bytes, idle: bool);

    /// The class to serve next; `None` when no class has packets or (wireless) none that has may be served.
    fn dequeue(&mut self) -> Option<u32>;

    /// The packet of `size` at the head of `class`, the class just chosen, was taken; `head` is the size of its next.
    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>);

    /// Changes the weight of a class, be it idle or not. Packets that wait may still be served by the old one.
    ///
    /// # Errors
    /// No such class, or a weight that does not fit to the others.
    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError>;

    /// The channel of `class` turned good or bad. Only wireless schedulers care.
    fn set_channel(&mut self, class: u32, good: bool) {
        let _ = (class, good);
    }
}

/// How much of the link a class is to have, in proportion to the others: 1 to 2^20.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Weight(u32);

impl Weight {
    /// The least weight.
    pub const ONE: Self = Self(1);
    /// The largest weight: flows whose weights are the powers of two up to 2^20 can be told apart.
    pub const MAX: Self = Self(1 << 20);

    /// A weight.
    ///
    /// # Errors
    /// 0, or more than [`Weight::MAX`].
    pub fn new(weight: u32) -> Result<Self, ConfigError> {
        match weight {
            1..=0x10_0000 => Ok(Self(weight)),
            _ => Err(ConfigError::new("weight", format!("{weight} must be 1 to {}", Self::MAX))),
        }
    }

    /// As a number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for Weight {
    type Error = ConfigError;

    fn try_from(weight: u32) -> Result<Self, ConfigError> {
        Self::new(weight)
    }
}

impl From<Weight> for u32 {
    fn from(weight: Weight) -> Self {
        weight.0
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a scheduler is made for.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The weight of each class; there are as many classes as weights.
    pub weights: &'a [Weight],
    /// The largest packet there will be.
    pub max_packet: Bytes,
}

impl Setup<'_> {
    /// Largest packet that can be asked for.
    pub const MAX_PACKET: Bytes = Bytes::new(1 << 20);
    /// Sum of weights that can be asked for; above it the unit of virtual time would be too coarse.
    pub const MAX_TOTAL: u64 = 1 << 30;

    /// Refuses what no scheduler can do.
    ///
    /// # Errors
    /// No class, too many, too large a sum of weights or a largest packet out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.weights.is_empty() || self.weights.len() >= u32::MAX as usize {
            return Err(ConfigError::new("weights", "there must be at least one class and fewer than 2^32 - 1"));
        }
        if self.total() > Self::MAX_TOTAL {
            return Err(ConfigError::new("weights", "their sum must be at most 2^30"));
        }
        if self.max_packet == Bytes::ZERO || self.max_packet > Self::MAX_PACKET {
            return Err(ConfigError::new("max_packet", format!("must be 1B to {}", Self::MAX_PACKET)));
        }
        Ok(())
    }

    /// The sum of the weights.
    pub fn total(&self) -> u64 {
        self.weights.iter().map(|weight| u64::from(weight.0)).sum()
    }
}

/// The configuration of a scheduler is its factory.
pub trait SchedulerConfig: Default + Clone + Serialize + DeserializeOwned + schemars::JsonSchema {
    /// What it makes.
    type Scheduler: Scheduler;

    /// Refuses values that cannot work with these classes.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    fn validate(&self, setup: &Setup<'_>) -> Result<(), ConfigError> {
        setup.validate()
    }

    /// Makes the scheduler. Call only after [`SchedulerConfig::validate`].
    fn scheduler(&self, setup: &Setup<'_>) -> Self::Scheduler;
}

fn no_class(class: u32, known: usize) -> ConfigError {
    ConfigError::new("class", format!("{class} must be less than {known}, the number of classes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_at_least_1() {
        assert!(Weight::new(0).unwrap_err().to_string().contains("1 to 1048576"));
        assert!(Weight::new((1 << 20) + 1).is_err());
        assert_eq!(serde_json::from_str::<Weight>("20").unwrap(), Weight::new(20).unwrap());
        assert!(serde_json::from_str::<Weight>("0").is_err());
    }
}
