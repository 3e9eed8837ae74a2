//! The parameters of flow queueing, whatever the AQM of the queues. The source of an AQM may give other values for them
//! ([`AqmConfig::per_flow`](super::AqmConfig::per_flow)), so they stand below the AQMs.

use super::{Compat, ConfigError};
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Linux: the most queues.
const MOST_FLOWS: u32 = 65_536;
/// Linux (`tc`): the least quantum. A packet of n quanta needs n turns.
const LEAST_QUANTUM: Bytes = Bytes::new(256);
/// Linux: the most packets' memory.
const MOST_MEMORY: Bytes = Bytes::new(1 << 31);

/// Who pays when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The queue with most bytes, from its head, in batches (RFC 8290 §4.1).
    #[default]
    Fattest,
    /// The packet that comes (Patil 2020, Algorithm 7).
    Arrival,
}

/// Parameters of flow queueing, whatever the AQM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Number of flow queues (RFC 8290 §5.2: 1024).
    pub flows: u32,
    /// Queues a flow may choose from; 1 is plain hashing, 8 is cake's.
    pub ways: u32,
    /// Bytes per turn (§5.2: the largest packet, 1514B).
    pub quantum: Bytes,
    /// Bytes all queues may hold together, beside the limit of the link's queue (Linux: 32MiB).
    pub memory_limit: Bytes,
    /// Who pays when there is no room: "fattest" queue or "arrival".
    pub overflow: Overflow,
    /// The most packets to drop from the fattest queue at once (Linux: 64).
    pub drop_batch: u32,
    /// Key of the hash; null draws one when the first packet comes.
    pub perturbation: Option<u64>,
    /// "source", or "linux" for what sch_fq_codel and sch_fq_pie do otherwise, here and in the AQM.
    pub compat: Compat,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            flows: 1024,
            ways: 1,
            quantum: Bytes::new(1514),
            memory_limit: Bytes::new(32 << 20),
            overflow: Overflow::Fattest,
            drop_batch: 64,
            perturbation: None,
            compat: Compat::Source,
        }
    }
}

impl Parameters {
    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(1..=MOST_FLOWS).contains(&self.flows) {
            return Err(ConfigError::new("flows", format!("must be within 1 and {MOST_FLOWS}")));
        }
        if self.ways == 0 || !self.flows.is_multiple_of(self.ways) {
            return Err(ConfigError::new("ways", format!("must divide flows ({}); 1 is plain hashing", self.flows)));
        }
        if self.quantum < LEAST_QUANTUM || self.quantum > MOST_MEMORY {
            return Err(ConfigError::new("quantum", format!("must be within {LEAST_QUANTUM} and {MOST_MEMORY}")));
        }
        if self.memory_limit == Bytes::ZERO || self.memory_limit > MOST_MEMORY {
            return Err(ConfigError::new("memory_limit", format!("must be above 0B and at most {MOST_MEMORY}")));
        }
        if self.drop_batch == 0 {
            return Err(ConfigError::new("drop_batch", "must be at least 1"));
        }
        Ok(())
    }
}
