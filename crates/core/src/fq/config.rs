//! The parameters of flow queueing and those of its AQM in one flat table, as in `tc`.

use super::FlowQueue;
use crate::config::tables::{read_two, written};
use crate::config::{AqmConfig, CompatVersion, ConfigError, Discipline, FlowQueues as Parameters, LinkFacts};
use crate::packet::Packet;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Flow queueing with the AQM that `C` builds for each queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Config<C> {
    /// Parameters of the flow queues.
    pub queues: Parameters,
    /// Parameters of the AQM in each queue.
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
        if self.aqm.watches() {
            return Err(ConfigError::new("name", "looks at the ACKs of all flows, so it cannot be the AQM of one"));
        }
        self.aqm.validate()
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> FlowQueue<P, C::Aqm> {
        FlowQueue::new(link.limit, &self.queues, self.aqm.aqm(link))
    }
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
        let Self { mut queues, aqm } = Self::default();
        let told = Map::deserialize(deserializer)?;
        if told
            .get("compat")
            .cloned()
            .is_some_and(|told| serde_json::from_value(told).is_ok_and(CompatVersion::is_linux))
        {
            C::per_flow_in_linux(&mut queues);
        }
        let (queues, aqm) = read_two(&queues, &aqm, Value::Object(told)).map_err(D::Error::custom)?;
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
