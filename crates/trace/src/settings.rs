//! `key=value` texts, as a command line gives them, become the configuration of an algorithm.

use crate::error::Diagnosis;
use penstock_core::registry::{AnyConfig, NAMES, entries, nearest};
use toml::{Table, Value};

/// Builds the configuration of the algorithm `name` from its defaults and these settings, and validates it. A value
/// that is a whole number, a decimal number, `true` or `false` is taken as such, any other as text.
///
/// # Errors
/// An unknown algorithm or key, with the known ones and the nearest; a key that is set twice; a value that cannot be.
pub fn config_from_settings(name: &str, settings: &[(String, String)]) -> Result<AnyConfig, Diagnosis> {
    let Some(entry) = entries().into_iter().find(|entry| entry.name == name) else {
        return Err(Diagnosis::new(unknown("algorithm", name, NAMES)));
    };
    let known: Vec<&str> = entry.parameters.iter().map(|p| p.name.as_str()).collect();
    let mut table = Table::new();
    for (key, text) in settings {
        if !known.contains(&key.as_str()) {
            let what =
                if known.is_empty() { format!("{key:?}: it has no parameters") } else { unknown("key", key, &known) };
            return Err(Diagnosis::new(format!("{name}: {what}")));
        }
        if table.insert(key.clone(), value_of(text)).is_some() {
            return Err(Diagnosis::new(format!("{name}: {key} is set twice")));
        }
        // Alone among defaults, a value that cannot be read is at fault itself.
        let alone = Table::from_iter([(key.clone(), value_of(text))]);
        deserialize(name, alone).map_err(|e| Diagnosis::new(format!("{name}: {key} = {text:?}: {e}")))?;
    }
    let config = deserialize(name, table).map_err(|e| Diagnosis::new(format!("{name}: {e}")))?;
    config.validate().map_err(|e| Diagnosis::new(format!("{name}: {e}")))?;
    Ok(config)
}

/// Splits `key=value` at the first equals sign.
///
/// # Errors
/// A text without one.
pub fn parse_setting(text: &str) -> Result<(String, String), Diagnosis> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(Diagnosis::new(format!("{text:?} is not a setting; write key=value, such as target=5ms"))),
    }
}

fn deserialize(name: &str, table: Table) -> Result<AnyConfig, String> {
    match AnyConfig::deserialize(name, Value::Table(table)) {
        Some(result) => result.map_err(|e| e.message().trim_end().to_owned()),
        None => Err(unknown("algorithm", name, NAMES)),
    }
}

fn value_of(text: &str) -> Value {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    if let Ok(value) = text.parse() {
        return Value::Boolean(value);
    }
    match (text.parse(), text.parse()) {
        (Ok(value), _) => Value::Integer(value),
        (_, Ok(value)) if is_number => Value::Float(value),
        _ => Value::String(text.to_owned()),
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let near = nearest(name, known);
    let hint = if near.is_empty() { String::new() } else { format!(" Did you mean {}?", near.join(" or ")) };
    format!("there is no {what} {name:?}.{hint} Known: {}.", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::aqm::codel;
    use penstock_core::units::Span;

    fn set(name: &str, settings: &[&str]) -> Result<AnyConfig, Diagnosis> {
        let settings: Result<Vec<_>, _> = settings.iter().map(|text| parse_setting(text)).collect();
        config_from_settings(name, &settings?)
    }

    fn message(name: &str, settings: &[&str]) -> String {
        set(name, settings).unwrap_err().to_string()
    }

    #[test]
    fn no_settings_give_the_defaults() {
        for name in NAMES {
            assert_eq!(set(name, &[]).unwrap(), AnyConfig::default_of(name).unwrap());
        }
    }

    /// Every default, written as a setting, is read back as itself.
    #[test]
    fn every_parameter_can_be_set() {
        for entry in entries() {
            let mut all = Vec::new();
            for parameter in &entry.parameters {
                match &parameter.default {
                    serde_json::Value::String(text) => all.push((parameter.name.clone(), text.clone())),
                    number_or_bool @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_)) => {
                        all.push((parameter.name.clone(), number_or_bool.to_string()));
                    }
                    _ => {}
                }
            }
            let config = config_from_settings(entry.name, &all).unwrap();
            assert_eq!(config, AnyConfig::default_of(entry.name).unwrap());
        }
    }

    #[test]
    fn settings_change_what_they_name() {
        let AnyConfig::Codel(config) = set("codel", &["target=7ms", " ecn = true "]).unwrap() else { panic!() };
        assert_eq!((config.target, config.ecn), (Span::from_millis(7), true));
        assert_eq!(config.interval, codel::Config::default().interval);
    }

    #[test]
    fn mistakes_in_a_value_name_its_key() {
        let without_unit = message("codel", &["interval=100ms", "target=7"]);
        assert!(without_unit.starts_with("codel: target = \"7\": "), "{without_unit}");
        assert!(without_unit.contains("with its unit"), "{without_unit}");
        let misspelt = message("codel", &["tarjet=7ms"]);
        assert!(misspelt.contains("no key \"tarjet\". Did you mean target? Known: "), "{misspelt}");
        assert!(misspelt.contains("interval"), "{misspelt}");
        let impossible = message("codel", &["target=0ms"]);
        assert!(impossible.starts_with("codel: target: "), "{impossible}");
        assert_eq!(message("codel", &["target=7ms", "target=8ms"]), "codel: target is set twice");
    }

    #[test]
    fn mistakes_say_what_is_known() {
        let misspelt = message("droptial", &[]);
        assert!(misspelt.contains("no algorithm \"droptial\". Did you mean droptail?"), "{misspelt}");
        assert!(misspelt.contains("Known: "), "{misspelt}");
        assert!(message("droptail", &["target=5ms"]).contains("has no parameters"));
        assert!(message("droptail", &["target"]).contains("write key=value"));
    }

    #[test]
    fn texts_become_the_values_they_look_like() {
        for (text, value) in [
            ("5ms", Value::String("5ms".into())),
            ("0.25", Value::Float(0.25)),
            ("1e-3", Value::Float(0.001)),
            ("12", Value::Integer(12)),
            ("-1", Value::Integer(-1)),
            ("true", Value::Boolean(true)),
            ("nan", Value::String("nan".into())),
            ("inf", Value::String("inf".into())),
        ] {
            assert_eq!(value_of(text), value, "{text}");
        }
    }
}
