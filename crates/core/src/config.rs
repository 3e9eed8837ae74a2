//! What the configuration of an algorithm is: parameters that validate themselves and build what they describe.

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

/// A parameter whose value cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// The parameter, as it is written in a scenario.
    pub key: &'static str,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl ConfigError {
    /// `key` is wrong because of `message`.
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }
}

/// Whose rules an algorithm follows where its source and what runs in the field differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// The source's: document or RFC.
    #[default]
    #[serde(alias = "rfc", alias = "paper")]
    Source,
    /// Those of the Linux kernel.
    Linux,
}

/// What a discipline is told of the link it feeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkFacts {
    /// The rate of the link.
    pub rate: Rate,
    /// How much the queue may hold.
    pub limit: Limit,
}

/// The configuration of a discipline is its factory.
pub trait Discipline: Default + Clone + Serialize + DeserializeOwned + JsonSchema {
    /// What it builds.
    type Queue<P: Packet>: Qdisc<P> + AckPath;

    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Builds the discipline for a link. Call only after [`Discipline::validate`].
    fn build<P: Packet>(&self, link: &LinkFacts) -> Self::Queue<P>;
}

/// The configuration of an [`Aqm`] is its factory. Alone it is the discipline of one [`Fifo`].
pub trait AqmConfig: Default + Clone + Serialize + DeserializeOwned + JsonSchema {
    /// What it makes.
    type Aqm: Aqm + Clone;

    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Makes the algorithm for a queue before `link`. Call only after [`AqmConfig::validate`].
    fn aqm(&self, link: &LinkFacts) -> Self::Aqm;

    /// The defaults as the AQM of each flow queue, where the source has others than alone. May change those of the
    /// `queues` as well.
    fn per_flow(queues: &mut FlowQueues) -> Self {
        let _ = queues;
        Self::default()
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
