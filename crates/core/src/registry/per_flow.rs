//! Flow queueing with any AQM of the registry, chosen by name.
//!
//! `per_flow = "red"`, `per_flow = "red min_threshold=3p max_threshold=9p"`, or in a file
//! `per_flow = { name = "red", min_threshold = "3p" }`.

use super::{AnyAqm, AnyAqmConfig};
use crate::aqm::foreign;
use crate::config::tables::{table, written};
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::foreign::Library;
use crate::key_value::{split_setting, value_of};
use schemars::JsonSchema;
use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The configuration of the AQM in each flow queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PerFlow {
    /// The AQM of each flow queue: its name, such as "codel", or with parameters "codel target=10ms".
    #[serde(serialize_with = "write_choice", deserialize_with = "read_choice")]
    #[schemars(schema_with = "name_or_table")]
    pub per_flow: AnyAqmConfig,
}

impl Default for PerFlow {
    fn default() -> Self {
        Self { per_flow: AnyAqmConfig::per_flow("droptail").expect("droptail is in the registry") }
    }
}

impl PerFlow {
    /// Looks in a library for an AQM that is not in the registry.
    ///
    /// # Errors
    /// The library has the AQM, and it cannot be used.
    pub fn find_foreign(&mut self, library: &dyn Library) -> Result<(), ConfigError> {
        if let AnyAqmConfig::Foreign(named) = &self.per_flow
            && let Some(found) = library.aqm(named.name(), named.parameters())
        {
            let found = found.map_err(|error| ConfigError::new("per_flow", error.to_string()))?;
            self.per_flow = AnyAqmConfig::Foreign(found);
        }
        Ok(())
    }
}

impl AqmConfig for PerFlow {
    type Aqm = AnyAqm;

    fn validate(&self) -> Result<(), ConfigError> {
        let name = self.per_flow.name();
        if matches!(&self.per_flow, AnyAqmConfig::Foreign(config) if !config.is_known()) {
            return Err(ConfigError::new("per_flow", format!("there is no AQM {name:?}; {}", choices())));
        }
        if self.per_flow.is_ack_path() {
            let message =
                format!("{name} looks at the ACKs of all flows, so it cannot be the AQM of one; {}", choices());
            return Err(ConfigError::new("per_flow", message));
        }
        self.per_flow.validate().map_err(|e| ConfigError::new("per_flow", format!("{name}: {e}")))
    }

    fn aqm(&self, link: &LinkFacts) -> AnyAqm {
        self.per_flow.aqm(link)
    }
}

fn name_or_table(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": ["string", "object"] })
}

/// The names of the AQMs that can be chosen, as text.
fn choices() -> String {
    let per_flow = |name: &&str| AnyAqmConfig::per_flow(name).is_some_and(|config| !config.is_ack_path());
    format!("it may be {}", AnyAqmConfig::NAMES.iter().copied().filter(per_flow).collect::<Vec<_>>().join(", "))
}

fn write_choice<S: Serializer>(choice: &AnyAqmConfig, serializer: S) -> Result<S::Ok, S::Error> {
    let mut all = Map::from_iter([("name".to_owned(), Value::from(choice.name()))]);
    all.append(&mut written(choice));
    all.serialize(serializer)
}

fn read_choice<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AnyAqmConfig, D::Error> {
    let (name, parameters) = match Value::deserialize(deserializer)? {
        Value::String(text) => from_text(&text)?,
        Value::Object(mut parameters) => match parameters.remove("name") {
            Some(Value::String(name)) => (name, parameters),
            _ => return Err(D::Error::custom(format!("`name` is missing; {}", choices()))),
        },
        other => return Err(D::Error::custom(format!("{other} is not the name of an AQM; {}", choices()))),
    };
    let Some(default) = AnyAqmConfig::per_flow(&name) else {
        return Ok(AnyAqmConfig::Foreign(foreign::Config::unknown(&name, parameters)));
    };
    let mut all = table(&default);
    for (key, value) in parameters {
        if all.insert(key.clone(), value).is_none() {
            return Err(D::Error::custom(format!("{name} has no parameter {key:?}")));
        }
    }
    default.read_as_this(Value::Object(all)).map_err(|e| D::Error::custom(format!("{name}: {e}")))
}

/// Splits a text into a name and the `key=value` settings after it.
fn from_text<E: Error>(text: &str) -> Result<(String, Map<String, Value>), E> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default().to_owned();
    let mut parameters = Map::new();
    for word in words {
        let (key, value) = split_setting(word).map_err(E::custom)?;
        parameters.insert(key, value_of(&value));
    }
    Ok((name, parameters))
}
