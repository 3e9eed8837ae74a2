//! The configuration of an algorithm: parameters which validate themselves and build the algorithm.

mod flow_queues;
pub(crate) mod tables;

pub use flow_queues::{Overflow, Parameters as FlowQueues};

use crate::ack_path::AckPath;
use crate::judge::Aqm;
use crate::packet::Packet;
use crate::qdisc::Qdisc;
use crate::queue::Fifo;
use crate::units::{Limit, Rate};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A parameter has a value outside of what the algorithm allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// The key of the parameter, as it is written in a scenario.
    pub key: &'static str,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl ConfigError {
    /// Creates the error of the parameter `key`; `message` says what is wrong and what is allowed.
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }
}

/// Whose rules an algorithm follows where its source and its implementation in the Linux kernel differ.
///
/// "linux" is always the same version, 6.18, so that results stay as they are. Where a later kernel has other rules, it has
/// a name of its own ([`CompatVersion`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// The rules of the source: a document or an RFC.
    #[default]
    #[serde(alias = "rfc", alias = "paper")]
    Source,
    /// The rules of the Linux kernel 6.18.
    #[serde(alias = "linux-6.18")]
    Linux,
}

/// As [`Compat`], for an algorithm that has the rules of two versions of the Linux kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum CompatVersion {
    /// The rules of the source: a document or an RFC.
    #[default]
    #[serde(rename = "source", alias = "rfc", alias = "paper")]
    Source,
    /// The rules of the Linux kernel 6.18.
    #[serde(rename = "linux", alias = "linux-6.18")]
    Linux,
    /// The rules of the Linux kernel 7.0.
    #[serde(rename = "linux-7.0")]
    Linux70,
}

impl CompatVersion {
    /// True for the rules of any version of the kernel.
    pub const fn is_linux(self) -> bool {
        matches!(self, Self::Linux | Self::Linux70)
    }
}

/// The properties of a link on which the discipline before it depends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkFacts {
    /// The rate of the link.
    pub rate: Rate,
    /// How much the queue before the link may hold.
    pub limit: Limit,
}

/// The configuration of a queue discipline, which is also its factory.
pub trait Discipline: Default + Clone + Serialize + DeserializeOwned + JsonSchema {
    /// The discipline that [`Discipline::build`] creates.
    type Queue<P: Packet>: Qdisc<P> + AckPath;

    /// Checks that every parameter is within its range.
    ///
    /// # Errors
    /// Returns the first parameter that is out of its range.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Builds the discipline for a link. Call only after [`Discipline::validate`].
    fn build<P: Packet>(&self, link: &LinkFacts) -> Self::Queue<P>;
}

/// The configuration of an [`Aqm`], which is also its factory. As a [`Discipline`] it builds one [`Fifo`] with that
/// AQM.
pub trait AqmConfig: Default + Clone + Serialize + DeserializeOwned + JsonSchema {
    /// The algorithm that [`AqmConfig::aqm`] creates.
    type Aqm: Aqm + Clone;

    /// Checks that every parameter is within its range.
    ///
    /// # Errors
    /// Returns the first parameter that is out of its range.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Creates the algorithm for a queue before `link`. Call only after [`AqmConfig::validate`].
    fn aqm(&self, link: &LinkFacts) -> Self::Aqm;

    /// True if the algorithm wants to see the segments of both directions ([`AckPath::watches`]).
    fn watches(&self) -> bool {
        <Self::Aqm as AckPath>::ACTIVE
    }

    /// Returns the defaults for use as the AQM of each flow queue, which may differ from those for a single queue. May
    /// also change the defaults of the flow `queues`.
    fn per_flow(queues: &mut FlowQueues) -> Self {
        let _ = queues;
        Self::default()
    }

    /// Changes the defaults of the flow `queues` that differ with `compat = "linux"`.
    fn per_flow_in_linux(queues: &mut FlowQueues) {
        let _ = queues;
    }
}

impl<C: AqmConfig> Discipline for C {
    type Queue<P: Packet> = Fifo<P, C::Aqm>;

    fn validate(&self) -> Result<(), ConfigError> {
        AqmConfig::validate(self)
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> Self::Queue<P> {
        Fifo::new(link.limit, self.aqm(link))
    }
}
