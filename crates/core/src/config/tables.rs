//! Two configurations in one flat table, as `tc` has the parameters of a discipline and those of its AQM.
//!
//! `serde(flatten)` cannot tell an unknown key, so the table is read as a map: each key goes to the part that knows it,
//! to both if both do (`compat`), and is an error if none does.

use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What serializes as a table, as that table.
pub(crate) fn table<T: Serialize>(of: &T) -> Map<String, Value> {
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
