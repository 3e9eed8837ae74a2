//! Schedulers: which class is served next. A scheduler knows classes by index and packets by size, and owns no packet.
//!
//! [`Scheduled`] owns the packets: one queue for each class, all in one array. It reports arrivals and departures to a
//! [`Scheduler`] and asks it which class to serve. [`table`] lists every scheduler by name. `new_old` implements the
//! rounds of flow queueing ([`fq`](crate::fq)), which puts an AQM into each queue and therefore does not use
//! [`Scheduled`].

mod chunks;
pub mod classful;
pub mod drr;
pub mod fifo;
pub mod flowsets;
pub mod foreign;
mod groups;
mod heap;
pub mod kps;
pub mod lte_bearers;
pub mod modular;
pub(crate) mod new_old;
pub mod prio;
pub mod qfq;
pub mod qfq_plus;
mod round;
mod scheduled;
pub mod script;
pub mod sfq;
pub mod stfq;
pub mod table;
#[cfg(test)]
mod testing;
mod tournament;
pub mod tree;
mod virtual_time;
pub mod w2f2q;
pub mod wf2q_plus;

pub use scheduled::{Limits, Reason, Refused, Scheduled, Served};
pub(crate) use tournament::Tournament;

use crate::config::ConfigError;
use crate::units::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Decides which of the classes `0..classes()` is served next.
///
/// `enqueue` may be called at any time. When `dequeue` names a class, `served` must be the next call. `dequeue` is
/// called when the packet served last has been sent, and if it has no packet to name, the link is idle. Sizes are at
/// least 1 byte and at most [`Scheduler::max_packet`]. A class without packets costs nothing but its memory.
pub trait Scheduler {
    /// Number of classes.
    fn classes(&self) -> usize;

    /// The largest packet that the scheduler can account for, in bytes.
    fn max_packet(&self) -> Bytes;

    /// Reports that a packet of `size` joined the queue of `class`; `idle` is true if that queue was empty before.
    fn enqueue(&mut self, class: u32, size: Bytes, idle: bool);

    /// The class to serve next; `None` when no class has packets or, in a wireless scheduler, when the channels of all
    /// classes with packets are bad.
    fn dequeue(&mut self) -> Option<u32>;

    /// Reports that the packet of `size` at the head of `class` was taken, where `class` is the answer of the last
    /// `dequeue`; `head` is the size of the next packet of this class, `None` if its queue is empty now.
    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>);

    /// Reports before an arrival how much of the packet served last has been sent. Schedulers whose virtual time runs
    /// with the service use this. A caller that does not know it need not call: such a scheduler then takes the packet
    /// as not begun until the next `dequeue`.
    fn progress(&mut self, sent: Bytes) {
        let _ = sent;
    }

    /// Changes the weight of a class, idle or not. Packets that already wait may still be served by the old weight.
    ///
    /// # Errors
    /// There is no such class, or the weight does not fit the weights of the other classes.
    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError>;

    /// Reports that the channel of `class` turned good or bad. Only wireless schedulers use this.
    fn set_channel(&mut self, class: u32, good: bool) {
        let _ = (class, good);
    }
}

/// The share of the link that a class gets in proportion to the other classes: 1 to 2^20.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Weight(u32);

impl Weight {
    /// The smallest weight, 1.
    pub const ONE: Self = Self(1);
    /// The largest weight, 2^20: flows whose weights are the powers of two up to 2^20 can be told apart.
    pub const MAX: Self = Self(1 << 20);

    /// Creates a weight from a number.
    ///
    /// # Errors
    /// The number is 0 or more than [`Weight::MAX`].
    pub fn new(weight: u32) -> Result<Self, ConfigError> {
        match weight {
            1..=0x10_0000 => Ok(Self(weight)),
            _ => Err(ConfigError::new("weight", format!("{weight} must be 1 to {}", Self::MAX))),
        }
    }

    /// The weight as a number.
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

/// What a scheduler is built for: the weights of its classes and the size of their packets.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The weight of each class; there are as many classes as weights.
    pub weights: &'a [Weight],
    /// The largest packet that will be enqueued, in bytes.
    pub max_packet: Bytes,
}

impl Setup<'_> {
    /// The largest value that [`Setup::max_packet`] may have.
    pub const MAX_PACKET: Bytes = Bytes::new(1 << 20);
    /// The largest sum of weights. With a larger one the unit of virtual time would be too coarse.
    pub const MAX_TOTAL: u64 = 1 << 30;

    /// Refuses a setup that no scheduler supports.
    ///
    /// # Errors
    /// There is no class, there are too many classes, the sum of the weights is too large, or the largest packet is out
    /// of range.
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

/// The configuration of a scheduler, which is also its factory.
pub trait SchedulerConfig: Default + Clone + Serialize + DeserializeOwned + schemars::JsonSchema {
    /// The type of the scheduler that this configuration builds.
    type Scheduler: Scheduler;

    /// Refuses parameters that do not work with the classes of `setup`.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    fn validate(&self, setup: &Setup<'_>) -> Result<(), ConfigError> {
        setup.validate()
    }

    /// Builds the scheduler. Call it only after [`SchedulerConfig::validate`].
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
