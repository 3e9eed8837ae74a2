//! The JSON Schema of scenario files, for editors. It says which keys exist and of what type they are; ranges, and which
//! keys fit together, are checked only when a scenario is read.

use super::Keys;
use super::estimates::EstimateKeys;
use super::flows::FlowKeys;
use super::topology::{AccessKeys, EdgeKeys, RadioKeys};
use crate::actors::Traffic;
use crate::tcp::TcpConfig;
use penstock_core::cc::AnyControlConfig;
use penstock_core::registry::AnyConfig;
use penstock_grammar::impair::ImpairmentKeys;
use penstock_grammar::link::{LayerKeys, Link};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// Returns the schema of scenario files.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut file = Form::default().with::<Keys>(&mut generator);
    let (discipline, tcp) = (generator.subschema_for::<AnyConfig>(), json!({ "$ref": "#/$defs/Tcp" }));
    let tcp_keys = tcp_keys(&mut generator);
    file = file.needs("topology", json!({ "oneOf": topologies(&mut generator) }));
    file = file.has("aqm", discipline.to_value()).has("tcp", tcp.clone());
    let flows = flows(&mut generator, &tcp);
    file = file.needs("flows", json!({ "type": "array", "items": { "oneOf": flows } }));
    let mut schema = file.close();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Scenario of Penstock".into();
    schema["$defs"] = Value::Object(generator.take_definitions(true));
    schema["$defs"]["Tcp"] = tcp_keys;
    schema
}

/// A table whose keys come from several structs.
#[derive(Default)]
struct Form {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Form {
    /// Adds the keys of a struct.
    fn with<T: JsonSchema>(self, generator: &mut SchemaGenerator) -> Self {
        self.with_schema(&T::json_schema(generator))
    }

    fn with_schema(mut self, schema: &Schema) -> Self {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            self.properties.extend(properties.clone());
        }
        if let Some(required) = schema.get("required").and_then(Value::as_array) {
            self.required.extend(required.iter().filter(|key| **key != "kind").cloned());
        }
        self
    }

    fn has(mut self, key: &str, schema: Value) -> Self {
        self.properties.insert(key.to_owned(), schema);
        self
    }

    fn needs(mut self, key: &str, schema: Value) -> Self {
        self.required.push(key.into());
        self.has(key, schema)
    }

    fn close(self) -> Value {
        let Self { properties, required } = self;
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }
}

fn kind(word: &str) -> Value {
    json!({ "const": word })
}

fn link(generator: &mut SchemaGenerator) -> Form {
    let form = Form::default().with::<Link>(generator).with::<LayerKeys>(generator).with::<RadioKeys>(generator);
    form.with::<ImpairmentKeys>(generator).with::<EstimateKeys>(generator)
}

fn topologies(generator: &mut SchemaGenerator) -> Vec<Value> {
    let discipline = generator.subschema_for::<AnyConfig>().to_value();
    let list = |of: Form| json!({ "type": "array", "items": of.close(), "minItems": 1 });
    let dumbbell = link(generator).has("reverse_aqm", discipline.clone());
    let hops = list(link(generator).has("aqm", discipline.clone()));
    let edge = link(generator).with::<EdgeKeys>(generator);
    let links = list(edge.has("aqm", discipline.clone()).has("reverse_aqm", discipline));
    let forms = [
        ("dumbbell", dumbbell),
        ("parking-lot", Form::default().needs("hops", hops)),
        ("graph", Form::default().needs("links", links)),
    ];
    let with_hosts = |(word, form): (_, Form)| form.with::<AccessKeys>(generator).needs("kind", kind(word)).close();
    forms.map(with_hosts).into()
}

/// Returns the schema of `[tcp]`, with the profile of hosts and the old form of a parameter of controls.
fn tcp_keys(generator: &mut SchemaGenerator) -> Value {
    let about = "The profile whose values the keys of hosts have that the file does not give.";
    let profile = json!({ "type": "string", "description": about });
    let keys = Form::default().with::<TcpConfig>(generator).has("profile", profile);
    keys.has("hystart", json!({ "type": "boolean" })).close()
}

fn flows(generator: &mut SchemaGenerator, tcp: &Value) -> Vec<Value> {
    let common = FlowKeys::json_schema(generator);
    let control = generator.subschema_for::<AnyControlConfig>().to_value();
    let of_kind = |(word, keys): (&str, Schema)| {
        let mut form = Form::default().with_schema(&common).with_schema(&keys).needs("kind", kind(word));
        form.required.extend(Traffic::needed_by(word).iter().map(|key| Value::from(*key)));
        form.required.sort_by_key(ToString::to_string);
        form.required.dedup();
        form.has("cc", control.clone()).has("tcp", tcp.clone()).close()
    };
    Traffic::schemas(generator).into_iter().map(of_kind).collect()
}
