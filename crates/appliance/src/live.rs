//! What can be set while packets pass: rate, delay, loss and limit of each direction, what its link adds to packets and what it
//! does to them besides, and the parameters of its discipline.
//!
//! A discipline gets other parameters, or another limit, by a new one in its place
//! ([`Bottleneck::replace`](penstock_shaper::bottleneck::Bottleneck::replace)): packets that wait leave under the old parameters.
//! Disciplines that keep state of connections (PINK, QRM, GREEN) would forget it, so their parameters are refused.
//! Appliances differ in their [`Words`].

use crate::socket::message::Refusal;
use penstock_core::config::ConfigError;
use penstock_core::impair::Impairments;
use penstock_core::link_layer::LinkLayer;
use penstock_core::registry::{AnyConfig, entries};
use penstock_core::settings::config_over;
use penstock_core::units::{Limit, Rate, Span};
use penstock_grammar::impair;
use penstock_grammar::link::{self, LayerKeys};
use penstock_grammar::stations::{self, StationSpec};
use penstock_shaper::bottleneck::Config;
use std::str::FromStr;

/// The shortest mean time of a state of a channel: a second with nothing to send is then a thousand changes.
const SHORTEST: Span = Span::from_millis(1);

/// New values for one direction; `None` where nothing changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    rate: Option<Rate>,
    delay: Option<Span>,
    layer: LinkLayer,
    limit: Option<Limit>,
    aqm: Option<AnyConfig>,
    /// The probability of loss.
    pub loss: Option<f64>,
    /// The channels of the stations behind the wire.
    pub stations: Option<Vec<StationSpec>>,
    /// What the link does to packets besides.
    pub impairments: Impairments,
}

/// The state of one direction before a change.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// The settings of the bottleneck.
    pub config: &'a Config,
    /// True if the discipline keeps state of connections, so that its parameters are not set alone.
    pub keeps_connections: bool,
    /// Number of stations behind the wire.
    pub stations: usize,
    /// What the link does to packets besides.
    pub impairments: Impairments,
    /// What this appliance calls its keys.
    pub words: Words,
}

/// The keys that an appliance takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// The table of the discipline: its parameters are `aqm.target` or `discipline.target`.
    pub table: &'static str,
    /// True if the delay and the loss of the wire can be set.
    pub wire: bool,
    /// The least rate of a link.
    pub least: Rate,
}

impl Words {
    /// Those of the emulator.
    pub const EMULATOR: Self = Self { table: "aqm", wire: true, least: Rate::from_bps(0) };
    /// Those of the gateway, which has no wire of its own. It sends a packet of 1500 bytes in a second at least: at
    /// less it would stand in the way of what it is to help, and not even the connection that sets another rate would
    /// pass.
    pub const GATEWAY: Self = Self { table: "discipline", wire: false, least: Rate::from_bps(12_000) };

    /// Checks the rate of a link. The error names `key` and says what is allowed.
    pub fn rate(self, key: &'static str, rate: Rate) -> Result<(), ConfigError> {
        if rate >= self.least {
            return link::rate(key, rate);
        }
        let what = format!("{key} is {rate}; allowed is {} or more, a packet in a second", self.least);
        Err(ConfigError::new(key, what))
    }
}

/// Reads all values, or refuses the first that is wrong, with what is allowed.
pub fn read(values: &[(String, String)], present: &[Present<'_>; 2]) -> Result<[Changes; 2], Refusal> {
    let mut changes = present.map(|Present { config, impairments, .. }| Changes {
        layer: config.layer,
        impairments,
        ..Changes::default()
    });
    let mut layers: [LayerKeys; 2] = Default::default();
    let mut parameters: [Vec<String>; 2] = Default::default();
    for (key, value) in values {
        let (at, own) = key.strip_prefix("reverse_").map_or((0, key.as_str()), |own| (1, own));
        if !own_keys(&present[at]).iter().any(|allowed| allowed == own) {
            return Err(unknown(key, own, present));
        }
        if let Some(set) = layers[at].set(own, value) {
            set.map_err(|e| Refusal::new(format!("{key}: {}", e.message)))?;
            continue;
        }
        match own.split_once('.').map(|(_, parameter)| parameter) {
            Some(parameter) => parameters[at].push(format!("{parameter}={value}")),
            None => changes[at].read(key, own, value, &present[at])?,
        }
    }
    for (changes, layer) in changes.iter_mut().zip(&layers) {
        changes.layer = layer.over(changes.layer).map_err(|e| Refusal::of(&e))?;
    }
    for ((changes, parameters), present) in changes.iter_mut().zip(&parameters).zip(present) {
        if !parameters.is_empty() {
            let aqm = config_over(&present.config.aqm, parameters, &());
            changes.aqm = Some(aqm.map_err(|e| Refusal::of(&e))?);
        }
    }
    Ok(changes)
}

impl Changes {
    /// Changes the settings of a bottleneck.
    pub fn over(self, config: &mut Config) {
        config.rate = self.rate.unwrap_or(config.rate);
        config.delay = self.delay.unwrap_or(config.delay);
        config.layer = self.layer;
        config.limit = self.limit.unwrap_or(config.limit);
        config.aqm = self.aqm.unwrap_or_else(|| config.aqm.clone());
    }

    fn read(&mut self, key: &str, own: &str, value: &str, present: &Present<'_>) -> Result<(), Refusal> {
        let refuse = |why: String| Refusal::new(format!("{key}: {why}"));
        match own {
            "rate" => {
                let rate: Rate = parse(key, value)?;
                present.words.rate("rate", rate).map_err(|e| refuse(e.message))?;
                self.rate = Some(rate);
            }
            "delay" => {
                let delay = parse(key, value)?;
                link::delay("delay", delay).map_err(|e| refuse(e.message))?;
                self.delay = Some(delay);
            }
            "loss" => {
                let loss = value.parse().map_err(|_| refuse(format!("{value:?} is no number; allowed is 0 to 1")))?;
                link::loss("loss", loss).map_err(|e| refuse(e.message))?;
                self.loss = Some(loss);
            }
            "stations" => {
                let given: Vec<StationSpec> =
                    serde_json::from_str(value).map_err(|e| refuse(format!("{e}; give a list such as [0.1, 0.02]")))?;
                let known = present.stations;
                if given.len() != known {
                    return Err(refuse(format!("the link has {known} stations, and this gives {}", given.len())));
                }
                in_real_time(&given).map_err(|e| refuse(e.message))?;
                self.stations = Some(given);
            }
            key if Impairments::KEYS.contains(&key) => {
                self.impairments = impair::set(self.impairments, key, value).map_err(refuse)?;
            }
            _ => self.limit = Some(parse(key, value)?),
        }
        Ok(())
    }
}

/// Checks the channels of stations that a machine is to follow: refuses what no link may have, and states that last less than
/// a millisecond on average.
pub fn in_real_time(stations: &[StationSpec]) -> Result<(), ConfigError> {
    stations::validate(stations)?;
    let shortest = stations.iter().filter_map(StationSpec::shortest).find(|mean| *mean < SHORTEST);
    shortest.map_or(Ok(()), |mean| {
        let what = format!("a state that lasts {mean}; allowed is a mean of {SHORTEST} or more in real time");
        Err(ConfigError::new("stations", what))
    })
}

fn parse<T: FromStr<Err: std::fmt::Display>>(key: &str, value: &str) -> Result<T, Refusal> {
    value.parse().map_err(|e| Refusal::new(format!("{key}: {e}")))
}

/// Returns the keys of a direction, without the prefix.
fn own_keys(present: &Present<'_>) -> Vec<String> {
    let Words { table, wire, .. } = present.words;
    let keys = [("rate", true), ("delay", wire), ("loss", wire), ("stations", present.stations > 0)];
    let mut keys: Vec<String> = keys.into_iter().filter(|(_, is)| *is).map(|(key, _)| key.to_owned()).collect();
    keys.extend(Impairments::KEYS.into_iter().filter(|_| wire).map(str::to_owned));
    keys.extend(LayerKeys::KEYS.map(str::to_owned));
    if !present.keeps_connections {
        keys.push("limit".into());
        let entry = entries().into_iter().find(|entry| entry.name == present.config.aqm.name());
        keys.extend(entry.into_iter().flat_map(|e| e.parameters).map(|p| format!("{table}.{}", p.name)));
    }
    keys
}

/// Refuses a key; says why if it exists but its discipline cannot be replaced.
fn unknown(key: &str, own: &str, present: &[Present<'_>; 2]) -> Refusal {
    let mut allowed = own_keys(&present[0]);
    allowed.extend(own_keys(&present[1]).iter().map(|key| format!("reverse_{key}")));
    let at = usize::from(key.starts_with("reverse_"));
    if present[at].keeps_connections
        && (own == "limit" || own.split_once('.').is_some_and(|(table, _)| table == present[at].words.table))
    {
        let name = present[at].config.aqm.name();
        let what = format!("{key} cannot change while packets pass: {name} keeps state of each connection");
        return Refusal { what, allowed };
    }
    Refusal::unknown("parameter", key, &allowed.iter().map(String::as_str).collect::<Vec<_>>())
}
