//! Algorithms by name with their parameters, from any table of algorithms: disciplines, congestion controls,
//! schedulers.
//!
//! An algorithm is written as a table, `{ name = "codel", target = "5ms" }`, or as its name alone, `"codel"`, if all
//! its parameters have a default.

use crate::diagnosis::Diagnosis;
use crate::source::{Source, Value, kind};
use penstock_core::cc::{self, AnyControlConfig};
use penstock_core::config::ConfigError;
use penstock_core::foreign::{Library, LibraryError};
use penstock_core::registry::{AnyConfig, NAMES};
use penstock_core::suggest::{plain, unknown_name};
use serde::Deserializer;
use serde_json::Map;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// A table of algorithms which files can name.
pub trait Registry {
    /// The configuration of an algorithm of this table.
    type Config;

    /// Returns what messages call such an algorithm, for example "algorithm".
    fn what(&self) -> &'static str;

    /// Returns the names of all algorithms.
    fn names(&self) -> &[&str];

    /// Returns the sentence which says that there is no algorithm of this name.
    fn unknown(&self, name: &str) -> String {
        unknown_name(self.what(), name, self.names())
    }

    /// Reads the parameters of the algorithm `name`; `None` if there is no such algorithm.
    ///
    /// # Errors
    /// Returns the error of the deserializer, with its positions.
    fn read<'de, D: Deserializer<'de>>(&self, name: &str, parameters: D) -> Option<Result<Self::Config, D::Error>>;

    /// Checks that the parameters are allowed and fit together.
    ///
    /// # Errors
    /// Returns the first parameter whose value is not allowed.
    fn validate(&self, config: &Self::Config) -> Result<(), ConfigError>;

    /// Looks up the algorithms that the parameters of a configuration name and that are not in the table, before it is
    /// checked.
    ///
    /// # Errors
    /// Returns the first parameter whose algorithm cannot be used.
    fn find_foreign(&self, config: &mut Self::Config) -> Result<(), ConfigError> {
        let _ = config;
        Ok(())
    }

    /// Creates an algorithm of a library, with its parameters as JSON: `None` if there is no such algorithm, an error
    /// if it cannot be used.
    fn foreign(
        &self,
        name: &str,
        parameters: &Map<String, serde_json::Value>,
    ) -> Option<Result<Self::Config, LibraryError>> {
        let _ = (name, parameters);
        None
    }
}

/// The queue disciplines of the registry and of a library.
#[derive(Clone, Copy)]
pub struct Disciplines<'a>(pub &'a dyn Library);

impl Disciplines<'_> {
    /// Returns the disciplines of the registry alone.
    pub fn built_in() -> Self {
        Self(&())
    }
}

impl Registry for Disciplines<'_> {
    type Config = AnyConfig;

    fn what(&self) -> &'static str {
        "algorithm"
    }
    fn names(&self) -> &[&str] {
        NAMES
    }
    fn read<'de, D: Deserializer<'de>>(&self, name: &str, parameters: D) -> Option<Result<AnyConfig, D::Error>> {
        AnyConfig::deserialize(name, parameters)
    }
    fn validate(&self, config: &AnyConfig) -> Result<(), ConfigError> {
        config.validate()
    }
    fn find_foreign(&self, config: &mut AnyConfig) -> Result<(), ConfigError> {
        config.find_foreign(self.0)
    }
    fn foreign(
        &self,
        name: &str,
        parameters: &Map<String, serde_json::Value>,
    ) -> Option<Result<AnyConfig, LibraryError>> {
        AnyConfig::foreign(self.0, name, parameters)
    }
}

/// The congestion controls of the core and of a library.
#[derive(Clone, Copy)]
pub struct Controls<'a>(pub &'a dyn Library);

impl Registry for Controls<'_> {
    type Config = AnyControlConfig;

    fn what(&self) -> &'static str {
        "control"
    }
    fn names(&self) -> &[&str] {
        cc::NAMES
    }
    fn unknown(&self, name: &str) -> String {
        cc::unknown(name)
    }
    fn read<'de, D: Deserializer<'de>>(&self, name: &str, parameters: D) -> Option<Result<AnyControlConfig, D::Error>> {
        AnyControlConfig::deserialize(name, parameters)
    }
    fn validate(&self, config: &AnyControlConfig) -> Result<(), ConfigError> {
        config.validate()
    }
    fn foreign(
        &self,
        name: &str,
        parameters: &Map<String, serde_json::Value>,
    ) -> Option<Result<AnyControlConfig, LibraryError>> {
        Some(self.0.control(name, parameters)?.map(AnyControlConfig::Foreign))
    }
}

/// A name and its parameters, as they are in the file.
struct Written<'a> {
    name: &'a str,
    name_at: Range<usize>,
    parameters: DeTable<'a>,
    whole: Range<usize>,
}

impl<'a> Source<'a> {
    /// Reads an algorithm with its parameters.
    ///
    /// # Errors
    /// Fails if there is no such name, if a parameter does not exist or has a wrong value, or if the parameters do not
    /// fit together; each error is at the place of the name or parameter.
    pub fn named<R: Registry>(&self, value: &Value<'a>, registry: &R) -> Result<R::Config, Diagnosis> {
        let written = self.written(value, registry)?;
        let Written { name, parameters, whole, .. } = &written;
        let mut config = match registry.read(name, deserializer(parameters.clone(), whole.clone())) {
            Some(config) => config.map_err(|e| self.parameter(&written, &e, registry))?,
            None => self.foreign(&written, registry)?,
        };
        registry.find_foreign(&mut config).and_then(|()| registry.validate(&config)).map_err(|e| {
            let place = parameters.get(e.key).map_or(whole.clone(), Spanned::span);
            self.span(place, &format!("{name}: {e}"))
        })?;
        Ok(config)
    }

    fn written<'v, R: Registry>(&self, value: &'v Value<'a>, registry: &R) -> Result<Written<'v>, Diagnosis>
    where
        'a: 'v,
    {
        let missing = |what: &str| {
            let names = registry.names();
            let message = format!("{what}; it is one of {}", names.join(", "));
            self.span(value.span(), &message).with_allowed(names.iter().copied())
        };
        match value.get_ref() {
            DeValue::String(name) => {
                Ok(Written { name, name_at: value.span(), parameters: DeTable::default(), whole: value.span() })
            }
            DeValue::Table(table) => {
                let found = table.get("name").and_then(|name| Some((name.get_ref().as_str()?, name.span())));
                let Some((name, name_at)) = found else { return Err(missing("`name` is missing")) };
                let mut parameters = table.clone();
                parameters.remove("name");
                Ok(Written { name, name_at, parameters, whole: value.span() })
            }
            other => Err(missing(&format!(
                "{} is no {}: write its name, or a table with `name` and parameters",
                kind(other),
                registry.what()
            ))),
        }
    }

    /// Finds the place of a wrong parameter. Some configurations are read by way of a buffer that loses positions; then
    /// the parameter is found by its name in the message, or as the first one that cannot be read alone.
    fn parameter<R: Registry>(&self, written: &Written<'_>, error: &toml::de::Error, registry: &R) -> Diagnosis {
        let Written { name, parameters, whole, name_at } = written;
        let named = parameters.iter().find(|(key, _)| error.message().contains(&format!("`{}`", key.get_ref())));
        let alone = || {
            parameters.iter().find(|(key, value)| {
                let one = DeTable::from_iter([((*key).clone(), (*value).clone())]);
                registry.read(name, deserializer(one, whole.clone())).is_some_and(|read| read.is_err())
            })
        };
        let exact = error.span().filter(|span| span != whole && *span != (0..0));
        let place = exact.or_else(|| named.or_else(alone).map(|(_, value)| value.span()));
        self.toml_at(place.unwrap_or(name_at.clone()), &format!("{name}: {}", error.message()))
    }

    /// Creates an algorithm of the library, after the name was not found among the built-in ones.
    fn foreign<R: Registry>(&self, written: &Written<'_>, registry: &R) -> Result<R::Config, Diagnosis> {
        let parameters: DeTable<'_> = written.parameters.clone();
        let whole = deserializer(parameters, written.whole.clone());
        let values = match serde::Deserialize::deserialize(whole) {
            Ok(serde_json::Value::Object(values)) => values,
            _ => Map::new(),
        };
        match registry.foreign(written.name, &values) {
            Some(Ok(config)) => Ok(config),
            Some(Err(error)) => Err(self.span(written.name_at.clone(), &plain(&error.to_string()))),
            None => {
                let mistake = self.span(written.name_at.clone(), &registry.unknown(written.name));
                Err(mistake.with_allowed(registry.names().iter().copied()))
            }
        }
    }
}

fn deserializer(table: DeTable<'_>, span: Range<usize>) -> ValueDeserializer<'_> {
    ValueDeserializer::from(Spanned::new(span, DeValue::Table(table)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AnyConfig, Diagnosis> {
        let source = Source::parse(text, "f.toml").unwrap();
        source.named(source.get(&["aqm"]).unwrap(), &Disciplines::built_in())
    }

    fn mistake(text: &str) -> Diagnosis {
        read(text).unwrap_err()
    }

    #[test]
    fn a_name_alone_means_the_defaults() {
        assert_eq!(read("aqm = \"codel\"").unwrap(), AnyConfig::default_of("codel").unwrap());
        assert_eq!(read("[aqm]\nname = \"codel\"").unwrap(), AnyConfig::default_of("codel").unwrap());
    }

    #[test]
    fn every_discipline_reads_its_own_parameters_back() {
        for name in NAMES {
            let config = AnyConfig::default_of(name).unwrap();
            let parameters = toml::to_string(&config).unwrap();
            assert_eq!(read(&format!("[aqm]\nname = {name:?}\n{parameters}")).unwrap(), config, "{name}");
        }
    }

    #[test]
    fn mistakes_are_told_at_the_name_or_the_parameter() {
        let name = mistake("[aqm]\nname = \"codle\"");
        assert_eq!((name.line, name.column), (2, 8));
        assert!(name.what.contains("no algorithm \"codle\" (did you mean \"codel\"?)"), "{name}");
        assert!(name.allowed.iter().any(|name| name == "droptail"));
        let key = mistake("[aqm]\nname = \"codel\"\ntraget = \"5ms\"");
        assert_eq!((key.line, key.column), (3, 1));
        assert!(key.what.starts_with("codel: unknown field `traget` (did you mean `target`?)"), "{key}");
        let unit = mistake("aqm = { name = \"codel\", target = 5 }");
        assert_eq!((unit.line, unit.column), (1, 34));
        let range = mistake("[aqm]\nname = \"codel\"\n\ninterval = \"0ms\"");
        assert_eq!(range.line, 4);
        let missing = mistake("[aqm]\ntarget = \"5ms\"");
        assert!(missing.what.starts_with("`name` is missing; it is one of"), "{missing}");
        assert!(mistake("aqm = 3").what.starts_with("a number is no algorithm"));
    }

    /// Flow queueing reads its table by way of a map that loses positions.
    #[test]
    fn a_configuration_without_positions_finds_its_parameter() {
        let value = mistake("[aqm]\nname = \"fq-codel\"\nflows = 64\nquantum = 300");
        assert_eq!(value.line, 4, "{value}");
        let key = mistake("[aqm]\nname = \"fq-codel\"\nflows = 64\nquantun = \"300B\"");
        assert_eq!(key.line, 4, "{key}");
        assert!(key.what.contains("quantun"), "{key}");
    }
}
