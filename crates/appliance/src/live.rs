//! What can be set while packets pass: rate, delay, loss and limit of each direction, and the parameters of its
//! discipline.
//!
//! A discipline gets other parameters, or another limit, by a new one in its place
//! ([`Bottleneck::replace`](penstock_shaper::bottleneck::Bottleneck::replace)): packets that wait leave under the old parameters.
//! Disciplines that keep state of connections (PINK, QRM, GREEN) would forget it, so their parameters are refused.
//! Appliances differ in their [`Words`].

use crate::socket::message::Refusal;
use penstock_core::config::ConfigError;
use penstock_core::registry::{AnyConfig, entries};
use penstock_core::settings::config_over;
use penstock_core::units::{Limit, Rate, Span};
use penstock_grammar::link;
use penstock_grammar::stations::{self, StationSpec};
use penstock_shaper::bottleneck::Config;
use penstock_shaper::direction::Direction;
use std::str::FromStr;

/// The shortest mean time of a state of a channel: a second with nothing to send is then a thousand changes.
const SHORTEST: Span = Span::from_millis(1);

/// New values for one direction; `None` where nothing changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// The rate of the wire.
    pub rate: Option<Rate>,
    /// The one-way delay.
    pub delay: Option<Span>,
    /// The probability of loss.
    pub loss: Option<f64>,
    /// The channels of the stations behind the wire.
    pub stations: Option<Vec<StationSpec>>,
    /// The limit of the queue.
    pub limit: Option<Limit>,
    /// The discipline with its new parameters.
    pub aqm: Option<AnyConfig>,
}

/// The state of one direction before a change.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// The settings of the bottleneck.
    pub config: &'a Config,
    /// True if the discipline keeps state of connections, so that it cannot be replaced.
    pub keeps_connections: bool,
    /// Number of stations behind the wire.
    pub stations: usize,
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
}

impl Words {
    /// Those of the emulator.
    pub const EMULATOR: Self = Self { table: "aqm", wire: true };
    /// Those of the gateway, which has no wire of its own.
    pub const GATEWAY: Self = Self { table: "discipline", wire: false };
}

/// Reads all values; nothing has to be changed if one of them is refused.
///
/// # Errors
/// Returns the first value that is refused, with what is allowed.
pub fn read(values: &[(String, String)], present: &[Present<'_>; 2]) -> Result<[Changes; 2], Refusal> {
    let mut changes: [Changes; 2] = Default::default();
    let mut parameters: [Vec<String>; 2] = Default::default();
    for (key, value) in values {
        let (direction, own) = match key.strip_prefix("reverse_") {
            Some(own) => (Direction::Reverse, own),
            None => (Direction::Forward, key.as_str()),
        };
        let at = direction.index();
        if !own_keys(&present[at]).iter().any(|allowed| allowed == own) {
            return Err(unknown(key, own, present));
        }
        match own.split_once('.').map(|(_, parameter)| parameter) {
            Some(parameter) => parameters[at].push(format!("{parameter}={value}")),
            None => changes[at].read(key, own, value, present[at].stations)?,
        }
    }
    for ((changes, parameters), present) in changes.iter_mut().zip(&parameters).zip(present) {
        if !parameters.is_empty() {
            let aqm = config_over(&present.config.aqm, parameters, &());
            changes.aqm = Some(aqm.map_err(|e| Refusal::new(e.to_string()))?);
        }
    }
    Ok(changes)
}

impl Changes {
    /// Returns whether the discipline gets a successor.
    pub fn replaces(&self) -> bool {
        self.limit.is_some() || self.aqm.is_some()
    }

    fn read(&mut self, key: &str, own: &str, value: &str, known: usize) -> Result<(), Refusal> {
        let refuse = |why: String| Refusal::new(format!("{key}: {why}"));
        match own {
            "rate" => {
                let rate: Rate = parse(key, value)?;
                link::rate("rate", rate).map_err(|e| refuse(e.message))?;
                if rate.as_bps() == 0 {
                    return Err(refuse("a rate of zero would stop the link; allowed is from 1bit/s to 1Tbit/s".into()));
                }
                self.rate = Some(rate);
            }
            "delay" => {
                let delay: Span = parse(key, value)?;
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
                if given.len() != known {
                    return Err(refuse(format!("the link has {known} stations, and this gives {}", given.len())));
                }
                in_real_time(&given).map_err(|e| refuse(e.message))?;
                self.stations = Some(given);
            }
            _ => self.limit = Some(parse(key, value)?),
        }
        Ok(())
    }
}

/// Checks the channels of stations that a machine is to follow.
///
/// # Errors
/// Refuses what no link may have, and states that last less than a millisecond on average.
pub fn in_real_time(stations: &[StationSpec]) -> Result<(), ConfigError> {
    stations::validate(stations)?;
    match stations.iter().filter_map(StationSpec::shortest).find(|mean| *mean < SHORTEST) {
        Some(mean) => {
            let what = format!("a state that lasts {mean}; allowed is a mean of {SHORTEST} or more in real time");
            Err(ConfigError::new("stations", what))
        }
        None => Ok(()),
    }
}

fn parse<T: FromStr<Err: std::fmt::Display>>(key: &str, value: &str) -> Result<T, Refusal> {
    value.parse().map_err(|e| Refusal::new(format!("{key}: {e}")))
}

/// Returns the keys of a direction, without the prefix.
fn own_keys(present: &Present<'_>) -> Vec<String> {
    let Words { table, wire } = present.words;
    let mut keys: Vec<String> = ["rate", "delay", "loss"].map(str::to_owned).to_vec();
    keys.truncate(if wire { 3 } else { 1 });
    if present.stations > 0 {
        keys.push("stations".into());
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::settings::config_from_settings;

    fn config(aqm: &str, settings: &[&str]) -> Config {
        let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
        Config {
            aqm: config_from_settings(aqm, &settings).unwrap(),
            rate: Rate::from_bps(1_000_000),
            delay: Span::ZERO,
            limit: Limit::Packets(100),
        }
    }

    fn read_for(values: &[(&str, &str)]) -> Result<[Changes; 2], Refusal> {
        let values: Vec<_> = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let (codel, pink) = (config("codel", &["interval=200ms"]), config("pink", &[]));
        let words = Words::EMULATOR;
        let present = [
            Present { config: &codel, keeps_connections: false, stations: 2, words },
            Present { config: &pink, keeps_connections: true, stations: 0, words },
        ];
        read(&values, &present)
    }

    #[test]
    fn a_gateway_has_no_wire_and_calls_its_table_discipline() {
        let codel = config("codel", &[]);
        let present = Present { config: &codel, keeps_connections: false, stations: 0, words: Words::GATEWAY };
        let set = |key: &str, value: &str| read(&[(key.to_owned(), value.to_owned())], &[present, present]);
        let [_, reverse] = set("reverse_discipline.target", "7ms").unwrap();
        assert_eq!(reverse.aqm, Some(config("codel", &["target=7ms"]).aqm));
        for key in ["delay", "loss", "aqm.target", "reverse_delay"] {
            let refused = set(key, "1").unwrap_err();
            assert!(refused.allowed.contains(&"discipline.target".into()), "{key}: {refused}");
        }
    }

    #[test]
    fn each_direction_has_its_values() {
        let [forward, reverse] =
            read_for(&[("rate", "5Mbit/s"), ("reverse_delay", "10ms"), ("loss", "0.01"), ("limit", "50p")]).unwrap();
        let expected = Changes {
            rate: Some(Rate::from_bps(5_000_000)),
            loss: Some(0.01),
            limit: Some(Limit::Packets(50)),
            ..Changes::default()
        };
        assert_eq!(forward, expected);
        assert_eq!(reverse, Changes { delay: Some(Span::from_millis(10)), ..Changes::default() });
    }

    #[test]
    fn stations_get_other_channels() {
        let [forward, _] = read_for(&[("stations", r#"[0.5, { "technology": "wifi", "snr_db": 3 }]"#)]).unwrap();
        assert_eq!(forward.stations.map(|stations| stations.len()), Some(2));
        let refused = |key, value| read_for(&[(key, value)]).unwrap_err().to_string();
        assert!(refused("stations", "[0.5]").contains("the link has 2 stations, and this gives 1"));
        assert!(refused("stations", "[0.5, 2]").contains("a station's loss is 2"));
        let fast = r#"[0.5, { "good": 0, "bad": 1, "mean_good": "1us", "mean_bad": "1s" }]"#;
        assert!(refused("stations", fast).contains("a mean of 1ms or more"), "{}", refused("stations", fast));
        assert!(refused("stations", "half").contains("such as [0.1, 0.02]"));
        assert!(refused("reverse_stations", "[]").contains("no parameter"), "there are none");
    }

    #[test]
    fn a_parameter_leaves_the_others_as_they_are() {
        let [forward, _] = read_for(&[("aqm.target", "7ms")]).unwrap();
        assert_eq!(forward.aqm, Some(config("codel", &["interval=200ms", "target=7ms"]).aqm));
    }

    #[test]
    fn mistakes_are_refused_with_what_is_allowed() {
        let refused = |key, value| read_for(&[("rate", "1Mbit/s"), (key, value)]).unwrap_err();
        let key = refused("dealy", "1ms");
        assert!(key.what.contains("did you mean \"delay\"?"), "{key}");
        let allowed = |word: &str| key.allowed.iter().any(|allowed| allowed == word);
        assert!(allowed("aqm.target") && allowed("reverse_rate") && !allowed("reverse_limit"), "{key}");
        let pink = refused("reverse_aqm.c", "0.9");
        assert!(pink.what.contains("pink keeps state") && pink.allowed.contains(&"reverse_loss".into()), "{pink}");
        for (key, value, expected) in [
            ("delay", "5", "5ms"),
            ("rate", "0bit/s", "rate"),
            ("rate", "2Tbit/s", "1Tbit/s"),
            ("delay", "1h", "delay"),
            ("loss", "1.5", "0 to 1"),
            ("loss", "many", "0 to 1"),
            ("limit", "many", "limit"),
            ("aqm.interval", "0ms", "interval"),
        ] {
            let message = refused(key, value).to_string();
            assert!(message.contains(expected), "{key}={value}: {message}");
        }
    }
}
