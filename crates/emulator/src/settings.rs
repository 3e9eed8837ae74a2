//! What can be changed while an emulator runs, and what `apply` reads of a file.

use crate::cli::{Options, Plan};
use penstock_appliance::live::{self, Present, Words};
use penstock_appliance::settings;
use penstock_appliance::socket::message::Refusal;
use penstock_grammar::Source;
use penstock_grammar::stations::StationSpec;
use penstock_shaper::bottleneck::Config;
use penstock_shaper::direction::Direction;
use serde_json::{Map, Value};

/// What can be changed while an emulator runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Rate, delay, discipline and limit of both directions, forward first.
    pub ways: [Config; 2],
    /// The probabilities with which the wires lose a packet.
    pub loss: [f64; 2],
    /// The channels of the stations behind the wires; empty without stations.
    pub stations: [Vec<StationSpec>; 2],
}

/// What is known of a direction when values are set.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// True if its discipline keeps state of connections.
    pub keeps_connections: bool,
    /// Number of stations behind its wire.
    pub stations: usize,
}

impl Settings {
    /// Those of a plan.
    pub fn of(plan: &Plan) -> Self {
        Self { ways: plan.bottlenecks.clone(), loss: [plan.loss, 0.0], stations: [plan.stations.clone(), Vec::new()] }
    }

    /// Returns these settings with other values.
    ///
    /// # Errors
    /// Refuses the first value that cannot be set, with what is allowed.
    pub fn with(&self, values: &[(String, String)], ways: [Way; 2]) -> Result<Self, Refusal> {
        let present = Direction::BOTH.map(|d| Present {
            config: &self.ways[d.index()],
            keeps_connections: ways[d.index()].keeps_connections,
            stations: ways[d.index()].stations,
            words: Words::EMULATOR,
        });
        let mut wanted = self.clone();
        for (at, changes) in live::read(values, &present)?.into_iter().enumerate() {
            let way = &mut wanted.ways[at];
            way.rate = changes.rate.unwrap_or(way.rate);
            way.delay = changes.delay.unwrap_or(way.delay);
            way.limit = changes.limit.unwrap_or(way.limit);
            way.aqm = changes.aqm.unwrap_or_else(|| way.aqm.clone());
            wanted.loss[at] = changes.loss.unwrap_or(wanted.loss[at]);
            wanted.stations[at] = changes.stations.unwrap_or_else(|| std::mem::take(&mut wanted.stations[at]));
        }
        Ok(wanted)
    }

    /// Returns whether a direction gets another queue.
    pub fn replaces(&self, new: &Self, direction: Direction) -> bool {
        let (old, new) = (&self.ways[direction.index()], &new.ways[direction.index()]);
        old.aqm != new.aqm || old.limit != new.limit
    }

    /// Returns each value by its key.
    fn values(&self) -> Map<String, Value> {
        let mut values = Map::new();
        for (at, prefix) in ["", "reverse_"].into_iter().enumerate() {
            let way = &self.ways[at];
            let parameters = serde_json::to_value(&way.aqm).ok().filter(Value::is_object);
            let parameters = parameters.map_or_else(String::new, |one| format!(" {one}"));
            let mut add = |key: &str, value: String| values.insert(format!("{prefix}{key}"), value.into());
            add("rate", way.rate.to_string());
            add("delay", way.delay.to_string());
            add("loss", self.loss[at].to_string());
            add("limit", way.limit.to_string());
            add("aqm", format!("{}{parameters}", way.aqm.name()));
            if !self.stations[at].is_empty() {
                add("stations", format!("{:?}", self.stations[at]));
            }
        }
        values
    }
}

impl settings::Settings for Settings {
    fn difference(&self, new: &Self) -> Map<String, Value> {
        let old = self.values();
        new.values().into_iter().filter(|(key, value)| old.get(key) != Some(value)).collect()
    }

    fn told(&self) -> Map<String, Value> {
        self.values()
    }
}

/// Returns the settings of a file for the wire of `plan`, which began with these options.
///
/// # Errors
/// Refuses a mistake, and what needs a new start.
pub fn read(name: &str, text: &str, options: &Options, plan: &Plan) -> Result<Settings, Refusal> {
    let refuse = |what: &dyn std::fmt::Display| {
        let said = what.to_string();
        Refusal::new(said.strip_prefix("error: ").unwrap_or(&said))
    };
    // What the file says counts, and no option with which the run began.
    let options = Options {
        rate: None,
        delay: None,
        limit: None,
        loss: None,
        aqm: None,
        set: Vec::new(),
        reverse_rate: None,
        reverse_delay: None,
        reverse_limit: None,
        reverse_aqm: None,
        reverse_set: Vec::new(),
        ..options.clone()
    };
    let plans = options.plans_of(text, name, &()).map_err(|e| refuse(&e))?;
    let new = plans.into_iter().find(|one| one.wire == plan.wire);
    let Some(new) = new else {
        let wire = plan.wire.as_deref().unwrap_or("this one");
        return Err(Refusal::new(format!("{name} has no wire {wire:?}; end the run, and start it with this file")));
    };
    match fixed(plan, &new) {
        None => Ok(Settings::of(&new)),
        Some(key) => {
            let what = format!("`{key}` cannot change while the emulator runs; end it, and start it with this file");
            let place = Source::parse(text, name).map(|source| source.at(&[key], &what));
            Err(place.map_or_else(|_| Refusal::new(format!("{name}: {what}")), |mistake| refuse(&mistake)))
        }
    }
}

/// Returns the first key that differs and needs a new start.
fn fixed(old: &Plan, new: &Plan) -> Option<&'static str> {
    [
        ("left", old.interfaces[0] != new.interfaces[0] || old.netns[0] != new.netns[0]),
        ("right", old.interfaces[1] != new.interfaces[1] || old.netns[1] != new.netns[1]),
        ("through", old.through[0] != new.through[0]),
        ("reverse_through", old.through[1] != new.through[1]),
        ("nodes", old.nodes != new.nodes),
        ("hosts", old.hosts != new.hosts),
        ("subscribers", old.subscribers != new.subscribers),
        ("link", old.stations.len() != new.stations.len()),
        ("seed", (old.seed, old.keys) != (new.seed, new.keys)),
        ("duration", old.duration != new.duration),
        ("spin", old.spin != new.spin),
        ("realtime", old.realtime != new.realtime),
        ("packets", old.packets != new.packets),
        ("pcapng", old.pcapng != new.pcapng),
        ("uplink_log", old.logs[0] != new.logs[0]),
        ("downlink_log", old.logs[1] != new.logs[1]),
    ]
    .into_iter()
    .find_map(|(key, differs)| differs.then_some(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use penstock_appliance::settings::Settings as _;

    const FILE: &str =
        "seed = 3\n[link]\nrate = \"10Mbit/s\"\ndelay = \"5ms\"\n[aqm]\nname = \"codel\"\n[left]\nnetns = \"a\"\n";

    fn options() -> Options {
        Options::parse_from(["penstock-emulate", "--rate", "10Mbit/s"])
    }

    fn plan() -> Plan {
        let options = Options { rate: None, ..options() };
        options.plans_of(FILE, "f.toml", &()).unwrap().remove(0)
    }

    fn read_of(text: &str) -> Result<Settings, Refusal> {
        read("f.toml", text, &options(), &plan())
    }

    #[test]
    fn a_file_changes_what_can_change() {
        let before = Settings::of(&plan());
        let after =
            read_of(&FILE.replace("10Mbit/s", "2Mbit/s").replace("5ms", "30ms").replace("codel", "pie")).unwrap();
        let told = before.difference(&after);
        let keys: Vec<&str> = told.keys().map(String::as_str).collect();
        assert_eq!(keys, ["aqm", "delay", "rate", "reverse_delay", "reverse_rate"]);
        assert_eq!(told["rate"], "2Mbit/s");
        assert!(before.difference(&before).is_empty() && before.told()["limit"] == "1000p");
    }

    #[test]
    fn what_needs_a_new_start_is_refused_with_its_line() {
        for (from, to, said) in [
            ("seed = 3", "seed = 4", "f.toml:1:"),
            ("netns = \"a\"", "netns = \"b\"", "f.toml:7:"),
            ("[left]", "[right]\nnetns = \"c\"\n[left]", "f.toml:7:"),
            ("[left]", "[[hosts]]\naddress = \"10.0.0.1\"\n[left]", "f.toml:7:"),
        ] {
            let refused = read_of(&FILE.replace(from, to)).unwrap_err().what;
            assert!(refused.contains("cannot change while the emulator runs") && refused.contains(said), "{refused}");
        }
        assert!(read_of("[link]\nrate = 5\n").unwrap_err().what.contains("f.toml:2:"));
    }

    #[test]
    fn stations_are_told_where_there_are_some() {
        let with = |stations: &str| {
            let text = FILE.replace("delay = \"5ms\"", &format!("delay = \"5ms\"\nstations = [{stations}]"));
            let options = Options { rate: None, ..options() };
            Settings::of(&options.plans_of(&text, "f.toml", &()).unwrap().remove(0))
        };
        let none = Settings::of(&plan()).told();
        assert!(!none.contains_key("stations") && !none.contains_key("reverse_stations"));
        let (one, other) = (with("0.0, 0.25"), with("0.0, 0.5"));
        assert!(one.told().contains_key("stations") && !one.told().contains_key("reverse_stations"));
        let told = one.difference(&other);
        assert_eq!(told.keys().collect::<Vec<_>>(), ["stations"]);
    }
}
