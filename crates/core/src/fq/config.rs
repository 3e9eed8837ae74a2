//! The parameters of flow queueing and those of its AQM in one flat table, as `tc` has them.
//!
//! `serde(flatten)` cannot tell an unknown key, so the table is read as a map: each key goes to the part that knows it,
//! to both if both do (`compat`), and is an error if none does.

use super::FlowQueue;
use crate::ack::AckPath;
use crate::aqm::Compat;
use crate::packet::Packet;
use crate::registry::{AqmConfig, ConfigError, Discipline, LinkFacts};
use crate::units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

/// Flow queueing with the AQM that `C` makes for each queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Config<C> {
    /// The queues.
    pub queues: Parameters,
    /// Their AQM.
    pub aqm: C,
}

impl<C: AqmConfig> Default for Config<C> {
    fn default() -> Self {
        let mut queues = Parameters::default();
        let aqm = C::per_flow(&mut queues);
        Self { queues, aqm }
    }
}

impl<C: AqmConfig> Discipline for Config<C> {
    type Queue<P: Packet> = FlowQueue<P, C::Aqm>;

    fn validate(&self) -> Result<(), ConfigError> {
        self.queues.validate()?;
        if <C::Aqm as AckPath>::ACTIVE {
            return Err(ConfigError::new("name", "looks at the ACKs of all flows, so it cannot be the AQM of one"));
        }
        self.aqm.validate()
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> FlowQueue<P, C::Aqm> {
        FlowQueue::new(link.limit, &self.queues, self.aqm.aqm(link))
    }
}

/// What serializes as a table, as that table.
pub(super) fn table<T: Serialize>(of: &T) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// The table as it is written: TOML has no null, and a key left out means the same.
pub(crate) fn written<T: Serialize>(of: &T) -> Map<String, Value> {
    table(of).into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// Sets a key the table has; tells whether it has it.
fn set(table: &mut Map<String, Value>, key: &str, value: &Value) -> bool {
    table.get_mut(key).map(|place| *place = value.clone()).is_some()
}

fn read<T: DeserializeOwned, E: Error>(table: Map<String, Value>) -> Result<T, E> {
    serde_json::from_value(Value::Object(table)).map_err(E::custom)
}

/// Reads one table into two parts, beginning with these values of each.
pub(crate) fn read_two<'de, A, B, D>(a: &A, b: &B, deserializer: D) -> Result<(A, B), D::Error>
where
    A: Serialize + DeserializeOwned,
    B: Serialize + DeserializeOwned,
    D: Deserializer<'de>,
{
    let (mut a, mut b) = (table(a), table(b));
    for (key, value) in Map::deserialize(deserializer)? {
        if !(set(&mut a, &key, &value) | set(&mut b, &key, &value)) {
            let known: Vec<&str> = a.keys().chain(b.keys()).map(String::as_str).collect();
            return Err(D::Error::custom(format!("unknown field `{key}`, expected one of {}", known.join(", "))));
        }
    }
    Ok((read(a)?, read(b)?))
}

impl<C: AqmConfig> Serialize for Config<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = written(&self.queues);
        all.append(&mut written(&self.aqm));
        all.serialize(serializer)
    }
}

impl<'de, C: AqmConfig> Deserialize<'de> for Config<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Self { queues, aqm } = Self::default();
        let (queues, aqm) = read_two(&queues, &aqm, deserializer)?;
        Ok(Self { queues, aqm })
    }
}

impl<C: AqmConfig> JsonSchema for Config<C> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("FlowQueueing_{}", C::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (queues, aqm) = (Parameters::json_schema(generator), C::json_schema(generator));
        let properties = |schema: &Schema| schema.get("properties").and_then(Value::as_object).cloned();
        let mut all = properties(&aqm).unwrap_or_default();
        all.extend(properties(&queues).unwrap_or_default());
        schemars::json_schema!({ "type": "object", "properties": all, "additionalProperties": false })
    }
}
