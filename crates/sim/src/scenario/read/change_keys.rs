//! The keys of `[[changes]]`, with those of orbits and of states.

use crate::orbit::Orbit;
use crate::scenario::Way;
use penstock_core::units::{Rate, Span};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;

/// Time between two steps of an orbit, unless the file says otherwise.
pub const STEP: Span = Span::from_secs(10);

/// The keys of one table `[[changes]]`.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeKeys {
    /// Name of the link.
    pub link: String,
    /// When the step happens, or the series begins.
    pub at: Option<Span>,
    /// After this time the step is repeated, or the `table` begins again.
    pub every: Option<Span>,
    /// "both", "forward" or "reverse".
    #[serde(default = "both")]
    pub direction: String,
    /// The new rate.
    pub rate: Option<Rate>,
    /// The new one-way delay.
    pub delay: Option<Span>,
    /// The new probability of loss.
    pub loss: Option<f64>,
    /// The new losses of the stations.
    pub stations: Option<Vec<f64>>,
    /// An orbit, which gives the delay.
    pub orbit: Option<OrbitKeys>,
    /// A file of packet opportunities, as Mahimahi records them.
    pub trace: Option<String>,
    /// Shortest interval of constant rate in a trace.
    pub bin: Option<Span>,
    /// A CSV file with `t_s` and at least one of `rate_mbit_s`, `delay_ms` and `loss`.
    pub table: Option<String>,
    /// States between which the link changes at random.
    pub states: Option<Vec<StateKeys>>,
    /// How much later the disciplines are told of the change.
    #[serde(default)]
    pub tell_after: Span,
    /// False if the disciplines are not told of the change.
    #[serde(default = "yes")]
    pub told: bool,
}

fn both() -> String {
    Way::Both.name().into()
}

fn yes() -> bool {
    true
}

/// The word of a well-known orbit, or the numbers of an orbit.
#[derive(Debug, Clone)]
pub enum OrbitKeys {
    Known(String),
    Of(RingKeys),
}

/// The keys of an orbit: its satellites and the ground stations.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RingKeys {
    pub altitude_km: f64,
    #[serde(default = "one")]
    pub satellites: u32,
    #[serde(default)]
    pub latitude: f64,
    #[serde(default)]
    pub apart: f64,
    #[serde(default = "processing")]
    pub processing: Span,
    #[serde(default = "step")]
    pub step: Span,
    #[serde(default)]
    pub served: Span,
}

fn one() -> u32 {
    1
}

fn processing() -> Span {
    Orbit::PROCESSING
}

fn step() -> Span {
    STEP
}

impl schemars::JsonSchema for OrbitKeys {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OrbitKeys".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "anyOf": [{ "type": "string" }, generator.subschema_for::<RingKeys>()] })
    }
}

impl<'de> Deserialize<'de> for OrbitKeys {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrTable;
        impl<'de> serde::de::Visitor<'de> for WordOrTable {
            type Value = OrbitKeys;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("\"geo\", \"meo\", \"leo\", or a table like { altitude_km = 8063, satellites = 8 }")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OrbitKeys, E> {
                Ok(OrbitKeys::Known(text.to_owned()))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<OrbitKeys, A::Error> {
                RingKeys::deserialize(MapAccessDeserializer::new(map)).map(OrbitKeys::Of)
            }
        }
        deserializer.deserialize_any(WordOrTable)
    }
}

/// The keys of one state of a link which has several states.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateKeys {
    pub rate: Option<Rate>,
    pub delay: Option<Span>,
    pub loss: Option<f64>,
    pub lasts: Span,
}
