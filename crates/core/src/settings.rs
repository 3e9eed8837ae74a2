//! Builds the configuration of a discipline or a congestion control from `key=value` texts, as on a command line.
//!
//! ```
//! use penstock_core::settings::config_from_settings;
//! let config = config_from_settings("codel", &["target=10ms".to_owned()]).unwrap();
//! assert_eq!(config.name(), "codel");
//! let error = config_from_settings("codle", &[]).unwrap_err();
//! assert!(error.to_string().contains("did you mean \"codel\"?"));
//! ```

use crate::cc::{self, AnyControlConfig};
use crate::config::ConfigError;
use crate::config::tables::written;
use crate::foreign::{Library, LibraryError};
use crate::key_value::{NotASetting, split_setting, value_of};
use crate::listing::Entry;
use crate::registry::{self, AnyConfig};
use crate::suggest::{plain, unknown_key, unknown_name};
use serde_json::{Map, Value};

/// Why settings were refused; each message names the allowed values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// There is no algorithm with this name.
    #[error("{}", unknown_name(.kind, .name, .known))]
    UnknownAlgorithm {
        /// The kind of algorithm: `algorithm` for a discipline, or `congestion control`.
        kind: &'static str,
        /// The name as it was given.
        name: String,
        /// The known names.
        known: &'static [&'static str],
    },
    /// The text has no equals sign, or no key before it.
    #[error(transparent)]
    NotASetting(#[from] NotASetting),
    /// The algorithm has no parameter of this name.
    #[error("{name}: {}", unknown_key(.key, &.allowed.iter().map(String::as_str).collect::<Vec<_>>()))]
    UnknownKey {
        /// Name of the algorithm.
        name: &'static str,
        /// The key as it was given.
        key: String,
        /// The keys of the algorithm.
        allowed: Vec<String>,
    },
    /// A parameter is set twice.
    #[error("{name}: {key} is set twice")]
    Twice {
        /// Name of the algorithm.
        name: &'static str,
        /// The key that is set twice.
        key: String,
    },
    /// The value cannot be read as a value of this parameter.
    #[error("{name}: {key}={value}: {message}")]
    BadValue {
        /// Name of the algorithm.
        name: &'static str,
        /// The key of the parameter.
        key: String,
        /// The value as it was given.
        value: String,
        /// The reason, in words.
        message: String,
    },
    /// Each value can be read, but the configuration does not work.
    #[error("{name}: {source}")]
    Invalid {
        /// Name of the algorithm.
        name: &'static str,
        /// The parameter at fault, with the reason.
        source: ConfigError,
    },
    /// A library has the algorithm, and it cannot be used.
    #[error(transparent)]
    Foreign(#[from] LibraryError),
    /// The configuration of an algorithm of a library does not work.
    #[error("{name}: {source}")]
    InvalidForeign {
        /// Name of the algorithm.
        name: String,
        /// The parameter at fault, with the reason.
        source: ConfigError,
    },
}

/// Builds and validates the configuration of the discipline `name` from its defaults and `key=value` texts.
///
/// A value that is an integer, a decimal number, `true` or `false` is used as such, any other value as text.
///
/// # Errors
/// The first setting that is not allowed, with what is allowed instead.
pub fn config_from_settings(name: &str, settings: &[String]) -> Result<AnyConfig, SettingsError> {
    config_from_pairs(name, &pairs(settings)?)
}

/// Builds and validates the configuration of the discipline `name` from its defaults and pairs of key and value.
///
/// # Errors
/// Those of [`config_from_settings`].
pub fn config_from_pairs(name: &str, pairs: &[(String, String)]) -> Result<AnyConfig, SettingsError> {
    set(name, Map::new(), pairs, &())
}

/// Builds and validates the configuration of the discipline `name`, which may be one of a library, as may be the
/// algorithms that its settings name.
///
/// # Errors
/// Those of [`config_from_settings`], and those of the library.
pub fn config_from_library(name: &str, settings: &[String], library: &dyn Library) -> Result<AnyConfig, SettingsError> {
    let pairs = pairs(settings)?;
    if !registry::NAMES.contains(&name)
        && let Some(found) = AnyConfig::foreign(library, name, &parameters(&pairs))
    {
        let config = found?;
        config.validate().map_err(|source| SettingsError::InvalidForeign { name: name.to_owned(), source })?;
        return Ok(config);
    }
    set(name, Map::new(), &pairs, library)
}

/// Builds and validates the configuration of the congestion control `name`, which may be one of a library.
///
/// # Errors
/// Those of [`control_from_settings`], and those of the library.
pub fn control_from_library(
    name: &str,
    settings: &[String],
    library: &dyn Library,
) -> Result<AnyControlConfig, SettingsError> {
    let pairs = pairs(settings)?;
    if !cc::NAMES.contains(&name)
        && let Some(found) = library.control(name, &parameters(&pairs))
    {
        return Ok(AnyControlConfig::Foreign(found?));
    }
    set(name, Map::new(), &pairs, library)
}

fn pairs(settings: &[String]) -> Result<Vec<(String, String)>, NotASetting> {
    settings.iter().map(|text| split_setting(text)).collect()
}

/// Settings as the parameters of an algorithm of a library.
fn parameters(pairs: &[(String, String)]) -> Map<String, Value> {
    pairs.iter().map(|(key, text)| (key.clone(), value_of(text))).collect()
}

/// Builds and validates a configuration from another one and `key=value` texts, which replace its values. What the other
/// one leaves at its default counts as not set: the texts may change the default. The configuration may be one of a
/// library.
///
/// # Errors
/// Those of [`config_from_library`].
pub fn config_over(config: &AnyConfig, settings: &[String], library: &dyn Library) -> Result<AnyConfig, SettingsError> {
    let (name, pairs) = (config.name(), pairs(settings)?);
    let Some(default) = AnyConfig::default_of(name) else { return foreign_over(config, &pairs, library) };
    let default = serde_json::to_value(default).ok();
    let is_default = |key: &str, value: &Value| default.as_ref().is_some_and(|default| default.get(key) == Some(value));
    let values = written(config).into_iter().filter(|(key, value)| !is_default(key, value)).collect();
    set(name, values, &pairs, library)
}

/// Asks the library again, with the values of `config` and those that replace them.
fn foreign_over(
    config: &AnyConfig,
    pairs: &[(String, String)],
    library: &dyn Library,
) -> Result<AnyConfig, SettingsError> {
    if pairs.is_empty() {
        return Ok(config.clone());
    }
    let (name, mut values) = (config.name(), written(config));
    values.extend(parameters(pairs));
    let found = AnyConfig::foreign(library, name, &values);
    let found = found.unwrap_or_else(|| Err(LibraryError(format!("{name}: its parameters cannot be changed here"))))?;
    found.validate().map_err(|source| SettingsError::InvalidForeign { name: name.to_owned(), source })?;
    Ok(found)
}

/// Builds and validates the configuration of the congestion control `name` from its defaults and `key=value` texts.
///
/// # Errors
/// Those of [`config_from_settings`].
pub fn control_from_settings(name: &str, settings: &[String]) -> Result<AnyControlConfig, SettingsError> {
    set(name, Map::new(), &pairs(settings)?, &())
}

/// A table of algorithms with their names and parameters.
trait Table: Sized {
    const KIND: &'static str;
    const NAMES: &'static [&'static str];
    fn entries() -> Vec<Entry>;
    fn read(name: &str, parameters: Value) -> Option<Result<Self, serde_json::Error>>;
    /// Looks up the algorithms of a library that the parameters name.
    fn find(&mut self, library: &dyn Library) -> Result<(), ConfigError> {
        let _ = library;
        Ok(())
    }
    fn check(&self) -> Result<(), ConfigError>;
}

impl Table for AnyConfig {
    const KIND: &'static str = "algorithm";
    const NAMES: &'static [&'static str] = registry::NAMES;
    fn entries() -> Vec<Entry> {
        registry::entries()
    }
    fn read(name: &str, parameters: Value) -> Option<Result<Self, serde_json::Error>> {
        Self::deserialize(name, parameters)
    }
    fn find(&mut self, library: &dyn Library) -> Result<(), ConfigError> {
        self.find_foreign(library)
    }
    fn check(&self) -> Result<(), ConfigError> {
        self.validate()
    }
}

impl Table for AnyControlConfig {
    const KIND: &'static str = "congestion control";
    const NAMES: &'static [&'static str] = cc::NAMES;
    fn entries() -> Vec<Entry> {
        cc::entries()
    }
    fn read(name: &str, parameters: Value) -> Option<Result<Self, serde_json::Error>> {
        Self::deserialize(name, parameters)
    }
    fn check(&self) -> Result<(), ConfigError> {
        self.validate()
    }
}

/// The configuration of `name` with the parameters `all`, in which `pairs` replace values.
fn set<T: Table>(
    name: &str,
    mut all: Map<String, Value>,
    pairs: &[(String, String)],
    library: &dyn Library,
) -> Result<T, SettingsError> {
    let Some(entry) = T::entries().into_iter().find(|entry| entry.name == name) else {
        return Err(SettingsError::UnknownAlgorithm { kind: T::KIND, name: name.to_owned(), known: T::NAMES });
    };
    let name = entry.name;
    for (place, (key, text)) in pairs.iter().enumerate() {
        if !entry.parameters.iter().any(|p| p.name == *key) {
            let allowed = entry.parameters.iter().map(|p| p.name.clone()).collect();
            return Err(SettingsError::UnknownKey { name, key: key.clone(), allowed });
        }
        if pairs[..place].iter().any(|(before, _)| before == key) {
            return Err(SettingsError::Twice { name, key: key.clone() });
        }
        all.insert(key.clone(), value_of(text));
        // Test the value alone among the defaults: if it cannot be read there, it is at fault itself.
        let alone = Map::from_iter([(key.clone(), value_of(text))]);
        read::<T>(name, alone).map_err(|e| bad_value(name, key.clone(), text.clone(), &e))?;
    }
    let mut config = read::<T>(name, all).map_err(|e| {
        let all = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ");
        bad_value(name, "settings".to_owned(), all, &e)
    })?;
    let checked = config.find(library).and_then(|()| config.check());
    checked.map_err(|source| SettingsError::Invalid { name, source })?;
    Ok(config)
}

fn bad_value(name: &'static str, key: String, value: String, error: &serde_json::Error) -> SettingsError {
    SettingsError::BadValue { name, key, value, message: plain(&error.to_string()) }
}

/// Reads the configuration of `name`, which must be in the table.
fn read<T: Table>(name: &str, values: Map<String, Value>) -> Result<T, serde_json::Error> {
    T::read(name, Value::Object(values)).expect("the name was found in the table")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{NAMES, entries};

    fn configured(name: &str, settings: &[&str]) -> Result<AnyConfig, SettingsError> {
        config_from_settings(name, &settings.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
    }

    fn message(name: &str, settings: &[&str]) -> String {
        configured(name, settings).unwrap_err().to_string()
    }

    #[test]
    fn no_settings_give_the_defaults() {
        for name in NAMES {
            assert_eq!(configured(name, &[]).unwrap(), AnyConfig::default_of(name).unwrap());
        }
    }

    /// Every default value, written as a setting, is read back unchanged.
    #[test]
    fn every_parameter_can_be_set() {
        for entry in entries() {
            let texts: Vec<String> = (entry.parameters.iter())
                .filter_map(|parameter| match &parameter.default {
                    Value::String(text) => Some(format!("{}={text}", parameter.name)),
                    plain @ (Value::Number(_) | Value::Bool(_)) => Some(format!("{}={plain}", parameter.name)),
                    _ => None,
                })
                .collect();
            let config = config_from_settings(entry.name, &texts).unwrap();
            assert_eq!(config, AnyConfig::default_of(entry.name).unwrap());
        }
    }

    #[test]
    fn a_value_that_was_set_is_the_one_that_is_used() {
        let AnyConfig::Codel(config) = configured("codel", &["target=7ms"]).unwrap() else { panic!("not codel") };
        assert_eq!(config.target, crate::units::Span::from_millis(7));
    }

    #[test]
    fn settings_over_a_configuration_leave_its_other_parameters() {
        let base = configured("codel", &["target=7ms", "interval=300ms"]).unwrap();
        let both =
            |settings: &[&str]| config_over(&base, &settings.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(), &());
        assert_eq!(both(&[]).unwrap(), base);
        assert_eq!(both(&["target=9ms"]).unwrap(), configured("codel", &["target=9ms", "interval=300ms"]).unwrap());
        assert!(matches!(both(&["target=9ms", "target=8ms"]), Err(SettingsError::Twice { .. })));
        for name in NAMES {
            let default = AnyConfig::default_of(name).unwrap();
            assert_eq!(config_over(&default, &[], &()).unwrap(), default, "{name}");
        }
    }

    #[test]
    fn mistakes_say_what_is_known() {
        let misspelt = message("droptial", &[]);
        assert!(misspelt.contains("no algorithm \"droptial\" (did you mean \"droptail\"?)"), "{misspelt}");
        assert!(misspelt.contains("there are droptail, red, "), "{misspelt}");
        assert!(message("droptail", &["target=5ms"]).ends_with("there are no keys"));
        assert!(message("codel", &["traget=5ms"]).contains("did you mean `target`?"));
        assert!(message("codel", &["target"]).contains("write key=value"));
        assert!(message("codel", &["=5ms"]).contains("write key=value"));
        assert!(message("codel", &["target=5ms", "target=6ms"]).contains("set twice"));
        let unit = message("codel", &["target=5"]);
        assert!(unit.contains("target=5") && unit.contains("\"5ms\""), "{unit}");
    }

    #[test]
    fn a_configuration_that_cannot_work_is_refused() {
        assert!(matches!(configured("codel", &["interval=0ms"]), Err(SettingsError::Invalid { name: "codel", .. })));
    }

    #[test]
    fn the_parameters_of_a_control_are_set_alike() {
        let set = |name: &str, settings: &[&str]| {
            control_from_settings(name, &settings.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
        };
        let cubic = set("cubic", &["beta=0.5", "hystart=true"]).unwrap();
        assert_eq!(
            (cubic.parameters()["beta"].clone(), cubic.parameters()["hystart"].clone()),
            (0.5.into(), true.into())
        );
        let message = |name, settings: &[&str]| set(name, settings).unwrap_err().to_string();
        assert!(message("cubci", &[]).contains("no congestion control \"cubci\" (did you mean \"cubic\"?)"));
        assert!(message("vegas", &["alhpa=1"]).contains("did you mean `alpha`?"));
        assert!(message("bbr", &["min_rtt_window=5"]).contains("\"5ms\""));
        assert!(message("cubic", &["beta=1.5"]).contains("below 1"));
        for entry in cc::entries() {
            let texts = entry.parameters.iter().filter_map(|parameter| match &parameter.default {
                Value::Null => None, // it has no value unless it is given
                Value::String(text) => Some(format!("{}={text}", parameter.name)),
                plain => Some(format!("{}={plain}", parameter.name)),
            });
            let config = control_from_settings(entry.name, &texts.collect::<Vec<_>>());
            assert_eq!(config.unwrap(), AnyControlConfig::default_of(entry.name).unwrap());
        }
    }
}
