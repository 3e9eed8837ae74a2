//! The parameters of flow queueing, for any AQM of the queues. The source of an AQM may give other defaults for them
//! ([`AqmConfig::per_flow`](super::AqmConfig::per_flow)), so this module is one on which the AQMs depend.

use super::{CompatVersion, ConfigError};
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of flow queues (Linux).
const MOST_FLOWS: u32 = 65_536;
/// Least quantum (Linux, `tc`). A packet of n quanta needs n turns.
const LEAST_QUANTUM: Bytes = Bytes::new(256);
/// Largest memory limit for the packets of all queues (Linux).
const MOST_MEMORY: Bytes = Bytes::new(1 << 31);

/// Which packets are dropped if there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// Packets at the head of the queue with the most bytes, in batches (RFC 8290 §4.1).
    #[default]
    Fattest,
    /// The packet that arrives (Patil 2020, Algorithm 7; Linux in sch_fq_pie).
    Arrival,
}

/// Parameters of flow queueing, for any AQM. The defaults are those of RFC 8290 §5.2 and of Linux.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Number of flow queues (RFC 8290 §5.2: 1024).
    pub flows: u32,
    /// Number of queues from which a flow may take a free one; must divide flows. 1 is plain hashing (cake: 8).
    pub ways: u32,
    /// Bytes that a queue may send in each turn (RFC 8290 §5.2: the largest packet, 1514B).
    pub quantum: Bytes,
    /// Bytes that all queues together may hold, in addition to the limit of the link's queue (Linux: 32MiB).
    pub memory_limit: Bytes,
    /// What is dropped if there is no room: the head of the "fattest" queue, or the "arrival", which is the default of
    /// fq-pie and fq-minstrel-pie with compat = "linux".
    pub overflow: Overflow,
    /// Largest number of packets dropped from the fattest queue at once (Linux: 64; cake, with compat = "linux": 1).
    pub drop_batch: u32,
    /// Key of the hash; with null a random key is drawn when the first packet arrives.
    pub perturbation: Option<u64>,
    /// "source", or "linux" for the rules of sch_fq_codel and sch_fq_pie of Linux 6.18, in the flow queues and in their AQM;
    /// with CoDel also "linux-7.0".
    pub compat: CompatVersion,
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
            compat: CompatVersion::Source,
        }
    }
}

impl Parameters {
    /// Checks that every parameter is within its range.
    ///
    /// # Errors
    /// Returns the first parameter that is out of its range.
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
