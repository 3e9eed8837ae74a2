//! What listings say of an algorithm: its name, its source and its parameters, read from its configuration.

use schemars::JsonSchema;
use serde::Serialize;

/// What a listing says of an algorithm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The name used everywhere.
    pub name: &'static str,
    /// `aqm`, `ack-path`, `flow-queueing`, `scheduler` or `cc`.
    pub kind: &'static str,
    /// One line.
    pub about: &'static str,
    /// Document and section, or RFC.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
}

/// One parameter of an algorithm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// Its key.
    pub name: String,
    /// Its default, as JSON; `null` means derived from the link.
    pub default: serde_json::Value,
    /// What it means.
    pub about: String,
}

/// The parameters of a configuration, from its doc comments and its defaults.
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
