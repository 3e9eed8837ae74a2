//! What can be changed while a gateway runs.

use crate::link::source::{From, Settings as Source};
use crate::subscribers::Subscribers;
use penstock_appliance::live::{self, Present, Words};
use penstock_appliance::settings;
use penstock_appliance::socket::message::Refusal;
use penstock_core::impair::Impairments;
use penstock_core::packet::NodeId;
use penstock_core::units::Rate;
use penstock_shaper::bottleneck::Config;
use penstock_shaper::direction::Direction;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What can be changed while a gateway runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Both directions.
    pub ways: [Config; 2],
    /// Where the rates come from.
    pub source: Source,
    /// True while rates hold that somebody has set: their source waits.
    pub by_hand: bool,
    /// Who counts as one, and what each gets.
    pub subscribers: Arc<Subscribers>,
}

impl Settings {
    /// Returns what a direction meets; `number` tells the number of a subscriber by its name.
    pub fn way(&self, direction: Direction, number: impl Fn(&str) -> NodeId) -> Config {
        let way = &self.ways[direction.index()];
        Config { aqm: self.subscribers.discipline(direction, &way.aqm, number), ..way.clone() }
    }

    /// Returns these settings with other values; `keep_connections` tells of each direction whether its discipline keeps
    /// state of connections. Refuses the first value that cannot be set, with what is allowed.
    pub(crate) fn with(&self, values: &[(String, String)], keep_connections: [bool; 2]) -> Result<Self, Refusal> {
        let present = Direction::BOTH.map(|d| Present {
            config: &self.ways[d.index()],
            keeps_connections: keep_connections[d.index()],
            stations: 0,
            impairments: Impairments::default(),
            words: Words::GATEWAY,
        });
        let mut wanted = self.clone();
        for (config, changes) in wanted.ways.iter_mut().zip(live::read(values, &present)?) {
            changes.over(config);
        }
        wanted.by_hand |= values.iter().any(|(key, _)| ["rate", "reverse_rate"].contains(&key.as_str()));
        Ok(wanted)
    }

    /// Returns each value by its key; a discipline with its parameters if they are `wanted`.
    fn values(&self, wanted: bool) -> Map<String, Value> {
        let mut values = Map::new();
        for (prefix, Config { aqm, rate, layer, limit, .. }) in ["", "reverse_"].into_iter().zip(&self.ways) {
            let parameters = Some(json!(aqm)).filter(|all| wanted && all.is_object());
            let parameters = parameters.map_or_else(String::new, |all| format!(" {all}"));
            let discipline = format!("{}{parameters}", aqm.name());
            for (key, value) in [("rate", rate.to_string()), ("limit", limit.to_string()), ("discipline", discipline)] {
                values.insert(format!("{prefix}{key}"), value.into());
            }
            if !layer.is_plain() {
                values.insert(format!("{prefix}link_layer"), layer.to_string().into());
            }
        }
        values
    }

    /// Returns the rates of both directions.
    pub fn rates(&self) -> [Rate; 2] {
        self.ways.each_ref().map(|way| way.rate)
    }
}

impl settings::Settings for Settings {
    fn difference(&self, new: &Self) -> Map<String, Value> {
        let mut set = settings::changed(&self.values(true), new.values(true));
        if self.subscribers != new.subscribers {
            set.insert("subscribers".into(), self.subscribers.difference(&new.subscribers).into());
        }
        // Rates of the file are told above.
        let others = self.source != new.source || self.by_hand != new.by_hand;
        let of_files = [&self.source, &new.source].iter().all(|source| source.from == From::File);
        if others && (!of_files || self.by_hand && set.is_empty()) {
            set.insert("source".into(), json!(new.source.from));
        }
        set
    }

    fn told(&self) -> Map<String, Value> {
        self.values(false)
    }
}
