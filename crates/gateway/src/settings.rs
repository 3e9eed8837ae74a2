//! What can be changed while a gateway runs.

use crate::file::File;
use crate::link::source::{From, Settings as Source};
use crate::subscribers::Subscribers;
use penstock_appliance::live::{self, Present, Words};
use penstock_appliance::settings;
use penstock_appliance::socket::message::Refusal;
use penstock_core::packet::NodeId;
use penstock_core::units::Rate;
use penstock_shaper::bottleneck::Config;
use penstock_shaper::direction::Direction;
use serde_json::{Map, Value};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// What can be changed while a gateway runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Both directions.
    pub ways: [Config; 2],
    /// Where the rates come from.
    pub source: Source,
    /// Who counts as one, and what each gets.
    pub subscribers: Arc<Subscribers>,
}

impl Settings {
    /// Returns what a direction meets; `number` tells the number of a subscriber by its name.
    pub fn way(&self, direction: Direction, number: impl Fn(&str) -> NodeId) -> Config {
        let way = &self[direction.index()];
        Config { aqm: self.subscribers.discipline(direction, &way.aqm, number), ..way.clone() }
    }

    /// Those of a file.
    pub fn of(file: &File) -> Self {
        let subscribers = Arc::new(file.subscribers.clone());
        Self { ways: file.bottlenecks.clone(), source: file.source.clone(), subscribers }
    }

    /// Returns these settings with other values; `keep_connections` tells of each direction whether its discipline keeps
    /// state of connections.
    ///
    /// # Errors
    /// Refuses the first value that cannot be set, with what is allowed.
    pub fn with(&self, values: &[(String, String)], keep_connections: [bool; 2]) -> Result<Self, Refusal> {
        let present = Direction::BOTH.map(|d| Present {
            config: &self[d.index()],
            keeps_connections: keep_connections[d.index()],
            stations: 0,
            words: Words::GATEWAY,
        });
        let mut wanted = self.clone();
        for (config, changes) in wanted.ways.iter_mut().zip(live::read(values, &present)?) {
            changes.over(config);
        }
        Ok(wanted)
    }

    /// Returns the rates of both directions.
    pub fn rates(&self) -> [Rate; 2] {
        self.ways.each_ref().map(|way| way.rate)
    }
}

impl Index<usize> for Settings {
    type Output = Config;

    fn index(&self, at: usize) -> &Config {
        &self.ways[at]
    }
}

impl IndexMut<usize> for Settings {
    fn index_mut(&mut self, at: usize) -> &mut Config {
        &mut self.ways[at]
    }
}

impl settings::Settings for Settings {
    fn difference(&self, new: &Self) -> Map<String, Value> {
        let mut set = Map::new();
        for (at, prefix) in ["", "reverse_"].into_iter().enumerate() {
            let (old, new) = (&self[at], &new[at]);
            let mut tell = |differs: bool, key: &str, value: String| {
                if differs {
                    set.insert(format!("{prefix}{key}"), value.into());
                }
            };
            tell(old.rate != new.rate, "rate", new.rate.to_string());
            tell(old.limit != new.limit, "limit", new.limit.to_string());
            let parameters = serde_json::to_value(&new.aqm).unwrap_or_default();
            let parameters = if parameters.is_object() { parameters.to_string() } else { String::new() };
            tell(old.aqm != new.aqm, "discipline", format!("{} {parameters}", new.aqm.name()).trim_end().to_owned());
        }
        if self.subscribers != new.subscribers {
            set.insert("subscribers".into(), self.subscribers.difference(&new.subscribers).into());
        }
        // Rates of the file are told above.
        if self.source != new.source && [&self.source, &new.source].iter().any(|source| source.from != From::File) {
            set.insert("source".into(), serde_json::to_value(new.source.from).unwrap_or_default());
        }
        set
    }

    fn told(&self) -> Map<String, Value> {
        let mut told = Map::new();
        for (prefix, way) in ["", "reverse_"].into_iter().zip(&self.ways) {
            told.insert(format!("{prefix}rate"), way.rate.to_string().into());
            told.insert(format!("{prefix}limit"), way.limit.to_string().into());
            told.insert(format!("{prefix}discipline"), way.aqm.name().into());
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::settings::Settings as _;
    use super::*;
    use crate::file::File;
    use serde_json::json;

    fn settings(text: &str) -> Settings {
        let text = format!("[interfaces]\nwan = \"w0\"\n[link]\n{text}");
        Settings::of(&File::parse(&text, "f").unwrap())
    }

    /// Only what differs is told, with its direction.
    #[test]
    fn a_file_is_told_by_what_is_another_in_it() {
        let old = settings("rate = \"10Mbit/s\"\nlimit = \"100p\"\n");
        let told = |text: &str| Value::from(old.difference(&settings(text)));
        assert_eq!(told("rate = \"10Mbit/s\"\nlimit = \"100p\"\n"), json!({}));
        assert_eq!(
            told("rate = \"20Mbit/s\"\nreverse_rate = \"10Mbit/s\"\nlimit = \"100p\"\n"),
            json!({"rate": "20Mbit/s"})
        );
        assert_eq!(
            told("rate = \"10Mbit/s\"\nreverse_rate = \"5Mbit/s\"\nlimit = \"50p\"\n"),
            json!({"limit": "50p", "reverse_rate": "5Mbit/s", "reverse_limit": "50p"})
        );
        let other = told("rate = \"10Mbit/s\"\nlimit = \"100p\"\n[discipline]\nname = \"codel\"\n");
        let keys: Vec<&String> = other.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["discipline", "reverse_discipline"]);
        assert!(other["discipline"].as_str().unwrap().starts_with("codel"), "{other}");
    }

    #[test]
    fn all_that_is_set_is_told_for_both_directions() {
        let settings = settings("rate = \"10Mbit/s\"\nreverse_rate = \"2Mbit/s\"\nlimit = \"100p\"\n");
        let told = json!({"rate": "10Mbit/s", "limit": "100p", "discipline": "pink", "reverse_rate": "2Mbit/s",
            "reverse_limit": "100p", "reverse_discipline": "pink"});
        assert_eq!(Value::from(settings.told()), told);
        assert_eq!(settings.rates().map(|rate| rate.as_bps()), [10_000_000, 2_000_000]);
    }
}
