//! The parameters of the classes and of the scheduler or schedulers that serve them, in one flat table.

use super::{Arrangement, Classful};
use crate::config::tables::{read_two, written};
use crate::config::{ConfigError, Discipline, LinkFacts};
use crate::csi::GOOD_LOSS;
use crate::packet::Packet;
use crate::sched::flowsets::FlowSets;
use crate::sched::{Setup, Weight};
use crate::units::{Bytes, Limit};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The largest number of classes.
const MOST_FLOWS: u32 = 65_536;
/// By default one class may use 1 / `CLASS_SHARE` of the limit of the link's queue.
const CLASS_SHARE: u64 = 8;

/// How the class of a flow is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Classify {
    /// By the index of the flow: flow i is in class i modulo the number of classes.
    #[default]
    Index,
    /// By a keyed hash, as in the discipline `fq`.
    Hash,
}

/// Parameters of the classes, independent of the scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Classes {
    /// Number of classes.
    pub flows: u32,
    /// How the class of a flow is found: by its "index", or by a keyed "hash".
    pub classify: Classify,
    /// Weights of the classes as weight::number, repeated as often as needed: "20::20,10::20,1::60" is 20 classes of
    /// weight 20, 20 of weight 10 and 60 of weight 1.
    pub weights: FlowSets,
    /// Number of stations behind a wireless link: class i belongs to station i modulo this number.
    pub stations: u32,
    /// The largest loss, 0 to 1, at which the channel to a station is good, for schedulers which know good and bad ones.
    pub good_loss: f64,
    /// The limit of each class, in packets or bytes; null is an eighth of the limit of the link's queue.
    pub class_limit: Option<Limit>,
    /// The largest packet; a larger packet is scheduled as if it had this size.
    pub max_packet: Bytes,
    /// Key of the hash; null draws a key when the first packet arrives.
    pub perturbation: Option<u64>,
}

impl Default for Classes {
    fn default() -> Self {
        Self {
            flows: 1000,
            classify: Classify::Index,
            weights: FlowSets::default(),
            stations: 20,
            good_loss: GOOD_LOSS,
            class_limit: None,
            max_packet: Bytes::new(1700),
            perturbation: None,
        }
    }
}

impl Classes {
    /// Refuses parameters that do not work.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(1..=MOST_FLOWS).contains(&self.flows) {
            return Err(ConfigError::new("flows", format!("must be within 1 and {MOST_FLOWS}")));
        }
        if !(1..=MOST_FLOWS).contains(&self.stations) {
            return Err(ConfigError::new("stations", format!("must be within 1 and {MOST_FLOWS}")));
        }
        if !(0.0..=1.0).contains(&self.good_loss) {
            return Err(ConfigError::new("good_loss", "must be a probability, 0 to 1"));
        }
        if self.weights.classes() > self.flows as usize {
            let message = format!("are those of {} classes, but there are {}", self.weights.classes(), self.flows);
            return Err(ConfigError::new("weights", message));
        }
        if matches!(self.class_limit, Some(Limit::Packets(0) | Limit::Bytes(Bytes::ZERO))) {
            return Err(ConfigError::new("class_limit", "must be above 0"));
        }
        Ok(())
    }

    /// The weight of each class.
    pub(super) fn class_weights(&self) -> Vec<Weight> {
        self.weights.repeated(self.flows as usize)
    }

    /// The limit of each class in the queue of `link`.
    pub(super) fn limit_of_class(&self, link: &LinkFacts) -> Limit {
        self.class_limit.unwrap_or(match link.limit {
            Limit::Packets(n) => Limit::Packets((n / CLASS_SHARE).max(1)),
            Limit::Bytes(n) => Limit::Bytes(Bytes::new((n.get() / CLASS_SHARE).max(self.max_packet.get()))),
        })
    }
}

/// Parameters of the classes and of the arrangement `A` of schedulers that serves them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config<A> {
    /// Parameters of the classes.
    pub classes: Classes,
    /// The scheduler or schedulers, with their parameters.
    pub arrangement: A,
}

impl<A: Arrangement> Discipline for Config<A> {
    type Queue<P: Packet> = Classful<P, A::Container<P>>;

    fn validate(&self) -> Result<(), ConfigError> {
        self.classes.validate()?;
        let weights = self.classes.class_weights();
        let setup = Setup { weights: &weights, max_packet: self.classes.max_packet };
        setup.validate()?;
        self.arrangement.validate(&setup, self.classes.stations)
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> Self::Queue<P> {
        let weights = self.classes.class_weights();
        let setup = Setup { weights: &weights, max_packet: self.classes.max_packet };
        let per_class = self.classes.limit_of_class(link);
        let container = self.arrangement.build(&setup, self.classes.stations, per_class);
        Classful::new(link, &self.classes, container)
    }
}

impl<A: Arrangement> Serialize for Config<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = written(&self.classes);
        all.append(&mut written(&self.arrangement));
        all.serialize(serializer)
    }
}

impl<'de, A: Arrangement> Deserialize<'de> for Config<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Self { classes, arrangement } = Self::default();
        let (classes, arrangement) = read_two(&classes, &arrangement, deserializer)?;
        Ok(Self { classes, arrangement })
    }
}

impl<A: Arrangement> JsonSchema for Config<A> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Classful_{}", A::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (classes, arrangement) = (Classes::json_schema(generator), A::json_schema(generator));
        let properties = |schema: &Schema| schema.get("properties").and_then(Value::as_object).cloned();
        let mut all = properties(&arrangement).unwrap_or_default();
        all.extend(properties(&classes).unwrap_or_default());
        schemars::json_schema!({ "type": "object", "properties": all, "additionalProperties": false })
    }
}
