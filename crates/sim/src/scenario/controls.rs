//! The congestion control of a flow: its name, or a table of its name and parameters.

use super::{Check, Checker};
use penstock_core::cc::{AnyControlConfig, NAMES, unknown};
use serde_json::Map;
use toml::{Table, Value};

impl Checker<'_> {
    /// `"cubic"` or `{ name = "cubic", beta = 0.8 }`; `place` tells where keys of the flow's TCP are written. `hystart` is
    /// the old spelling of a parameter: it counts for controls which have it, unless the parameter itself is written.
    pub(super) fn control(
        &self,
        cc: Option<Value>,
        hystart: Option<Value>,
        place: &dyn Fn(&str) -> Vec<String>,
    ) -> Check<Option<AnyControlConfig>> {
        if hystart.as_ref().is_some_and(|value| !value.is_bool()) {
            return Err(self.source.at_owned(&place("hystart"), "`hystart` is a boolean, true or false"));
        }
        let (name, mut parameters, name_at) = match cc {
            None if hystart.is_none() => return Ok(None),
            None => ("cubic".to_owned(), Table::new(), place("cc")),
            Some(Value::String(name)) => (name, Table::new(), place("cc")),
            Some(Value::Table(table)) => self.named(table, &place("cc"))?,
            Some(_) => {
                let message = "write the name of a control, or a table with `name` and parameters";
                return Err(self.source.at_owned(&place("cc"), message));
            }
        };
        let Some(defaults) = AnyControlConfig::default_of(&name) else {
            return self.foreign_control(&name, &parameters, &name_at).map(Some);
        };
        if let Some(hystart) = hystart.filter(|_| defaults.parameters().contains_key("hystart")) {
            parameters.entry("hystart").or_insert(hystart);
        }
        self.built_in(&name, &defaults, &parameters, &place("cc")).map(Some)
    }

    /// Name, parameters and the place of the name in a table.
    fn named(&self, mut table: Table, path: &[String]) -> Check<(String, Table, Vec<String>)> {
        match table.remove("name") {
            Some(Value::String(name)) => Ok((name, table, with(path, "name"))),
            _ => Err(self.source.at_owned(path, &format!("`name` is missing; it is one of {NAMES:?}"))),
        }
    }

    fn built_in(
        &self,
        name: &str,
        defaults: &AnyControlConfig,
        parameters: &Table,
        path: &[String],
    ) -> Check<AnyControlConfig> {
        let known = defaults.parameters();
        if let Some(key) = parameters.keys().find(|key| !known.contains_key(*key)) {
            let known: Vec<&str> = known.keys().map(String::as_str).collect();
            let path = with(path, key);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            return Err(self.source.unknown(&path, &format!("parameter of {name}"), key, &known));
        }
        let read =
            |table: Table| AnyControlConfig::deserialize(name, Value::Table(table)).unwrap_or(Ok(defaults.clone()));
        let config = read(parameters.clone()).map_err(|e| {
            let alone = |(key, value): &(&String, &Value)| {
                read(Table::from_iter([((*key).clone(), (*value).clone())])).is_err()
            };
            let key = parameters.iter().find(alone).map_or("name", |(key, _)| key);
            self.source.at_owned(&with(path, key), &format!("{name}: {}", e.message()))
        })?;
        config.validate().map_err(|e| self.source.at_owned(&with(path, e.key), &format!("{name}: {e}")))?;
        Ok(config)
    }

    /// A name that is not in the table of controls may be one of the library.
    fn foreign_control(&self, name: &str, parameters: &Table, path: &[String]) -> Check<AnyControlConfig> {
        let values = match serde_json::to_value(parameters) {
            Ok(serde_json::Value::Object(values)) => values,
            _ => Map::new(),
        };
        match self.library.control(name, &values) {
            Some(Ok(control)) => Ok(AnyControlConfig::Foreign(control)),
            Some(Err(error)) => Err(self.source.at_owned(path, &error.to_string())),
            None => Err(self.source.at_owned(path, &unknown(name))),
        }
    }
}

fn with(path: &[String], key: &str) -> Vec<String> {
    path.iter().cloned().chain([key.to_owned()]).collect()
}
