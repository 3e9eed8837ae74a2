//! The description of an algorithm in listings: its name, its source and its parameters, read from its configuration.

use schemars::{JsonSchema, Schema, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The description of one algorithm in a listing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The name of the algorithm in scenarios, options and results.
    pub name: &'static str,
    /// The kind of the algorithm: `aqm`, `ack-path`, `flow-queueing`, `scheduler` or `cc`.
    pub kind: &'static str,
    /// What the algorithm does, in one line.
    pub about: &'static str,
    /// The document with its section, or the RFC, from which the algorithm is written.
    pub source: &'static str,
    /// The parameters of the algorithm, ordered by key.
    pub parameters: Vec<Parameter>,
}

/// One parameter of an algorithm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// The key of the parameter in a scenario.
    pub name: String,
    /// The default as JSON; `null` if the parameter is unset or derived from others or from the link.
    pub default: serde_json::Value,
    /// What the parameter means, with its unit and its source.
    pub about: String,
}

/// Lists the parameters of a configuration, from its doc comments and its defaults.
pub(crate) fn parameters<C: Default + Serialize + JsonSchema>() -> Vec<Parameter> {
    let schema = schemars::schema_for!(C);
    let defaults = serde_json::to_value(C::default()).unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(|p| p.as_object()) else { return Vec::new() };
    properties
        .iter()
        .map(|(name, property)| Parameter {
            name: name.clone(),
            default: defaults.get(name).cloned().unwrap_or_default(),
            about: property.get("description").and_then(|d| d.as_str()).unwrap_or_default().replace('\n', " "),
        })
        .collect()
}

/// The names of algorithms from outside, such as `mine.py:Step`.
const FOREIGN: &str = ":";

/// Returns the schema of a choice among algorithms with these parameters: the name alone, or a table of the name and
/// parameters. An algorithm from outside may have any parameters.
pub(crate) fn choice(algorithms: Vec<(&'static str, Schema)>) -> Schema {
    let names: Vec<&str> = algorithms.iter().map(|(name, _)| *name).collect();
    let outside = json!({ "type": "string", "pattern": FOREIGN });
    let mut forms = vec![json!({ "enum": names }), outside.clone()];
    forms.extend(algorithms.into_iter().map(|(name, schema)| with_name(name, schema)));
    forms.push(json!({ "type": "object", "properties": { "name": outside }, "required": ["name"] }));
    json_schema!({ "anyOf": forms })
}

/// Adds the key `name`, which has one value, to the schema of the parameters of an algorithm.
fn with_name(name: &str, schema: Schema) -> Value {
    let mut properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    properties.insert("name".to_owned(), json!({ "const": name }));
    json!({ "type": "object", "properties": properties, "required": ["name"], "additionalProperties": false })
}
