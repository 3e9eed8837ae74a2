//! Two configurations in one flat table: the parameters of a discipline and those of its AQM, as on a command line of
//! `tc`.
//!
//! `serde(flatten)` cannot report an unknown key, so the table is read as a map. Each key goes to the configuration
//! that has it, to both if both have it (`compat`), and is an error if neither has it.

use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Converts a value that serializes as a table into that table; any other value gives an empty table.
pub(crate) fn table<T: Serialize>(of: &T) -> Map<String, Value> {
    match serde_json::to_value(of) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// Converts a value into the table as it is written to TOML, which has no null: a key with the value null is left out.
pub(crate) fn written<T: Serialize>(of: &T) -> Map<String, Value> {
    table(of).into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// Sets `key` if the table has it; returns whether the table has it.
fn set(table: &mut Map<String, Value>, key: &str, value: &Value) -> bool {
    table.get_mut(key).map(|place| *place = value.clone()).is_some()
}

fn read<T: DeserializeOwned, E: Error>(table: Map<String, Value>) -> Result<T, E> {
    serde_json::from_value(Value::Object(table)).map_err(E::custom)
}

/// Reads one table into two configurations. Keys that the table lacks keep their values of `a` and `b`.
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
