//! What can be changed while an emulator runs.

use penstock_appliance::live::{self, Present, Words};
use penstock_appliance::settings;
use penstock_appliance::socket::message::Refusal;
use penstock_core::impair::Impairments;
use penstock_grammar::impair::ImpairmentKeys;
use penstock_grammar::stations::StationSpec;
use penstock_shaper::bottleneck::Config;
use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// Rate, delay, discipline and limit.
    pub config: Config,
    pub loss: f64,
    /// The channels of the stations behind the wire; empty without stations.
    pub stations: Vec<StationSpec>,
    /// What the link does to packets besides.
    pub impairments: Impairments,
}

/// What can be changed while an emulator runs, forward first.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings(pub [Way; 2]);

impl Way {
    /// Returns whether the direction gets another queue.
    pub fn replaces(&self, new: &Self) -> bool {
        self.config.aqm != new.config.aqm || self.config.limit != new.config.limit
    }
}

impl Settings {
    /// Returns these settings with other values, or refuses the first that cannot be set. `keeps` tells of each direction
    /// whether its discipline keeps state of connections.
    pub fn with(&self, values: &[(String, String)], keeps: [bool; 2]) -> Result<Self, Refusal> {
        let present = [0, 1].map(|at| {
            let Way { config, stations, impairments, .. } = &self.0[at];
            Present {
                config,
                keeps_connections: keeps[at],
                stations: stations.len(),
                impairments: *impairments,
                words: Words::EMULATOR,
            }
        });
        let mut wanted = self.clone();
        for (way, changes) in wanted.0.iter_mut().zip(live::read(values, &present)?) {
            way.loss = changes.loss.unwrap_or(way.loss);
            way.impairments = changes.impairments;
            way.stations = changes.stations.clone().unwrap_or_else(|| way.stations.clone());
            changes.over(&mut way.config);
        }
        Ok(wanted)
    }
}

impl settings::Settings for Settings {
    fn told(&self) -> Map<String, Value> {
        let mut values = Map::new();
        for (prefix, Way { config, loss, stations, impairments }) in ["", "reverse_"].into_iter().zip(&self.0) {
            let parameters = serde_json::to_value(&config.aqm).ok().filter(Value::is_object);
            let parameters = parameters.map_or_else(String::new, |one| format!(" {one}"));
            let mut add = |key: &str, value: String| values.insert(format!("{prefix}{key}"), value.into());
            add("rate", config.rate.to_string());
            if !config.layer.is_plain() {
                add("link_layer", config.layer.to_string());
            }
            add("delay", config.delay.to_string());
            add("loss", loss.to_string());
            add("limit", config.limit.to_string());
            add("aqm", format!("{}{parameters}", config.aqm.name()));
            for (key, value) in ImpairmentKeys::of([*impairments, Impairments::default()]).told() {
                add(&key, value);
            }
            if !stations.is_empty() {
                add("stations", serde_json::json!(stations).to_string());
            }
        }
        values
    }
}
