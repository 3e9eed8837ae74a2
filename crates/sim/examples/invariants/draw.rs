//! Draws scenarios: from the space of `penstock verify break` (python/penstock/adversary/spaces/), from `more.toml`, and
//! from the parameters of the algorithm.

use penstock_core::listing::Entry;
use penstock_core::registry::AnyAqmConfig;
use penstock_core::rng::Rng;
use std::collections::BTreeMap;
use toml::{Table, Value};

const MORE: &str = include_str!("more.toml");
/// The name for which the algorithm stands.
const SUBJECT: &str = "SUBJECT";
/// Times of the spaces are those of a run of this many seconds.
const LONG_S: f64 = 10.0;
/// A run is as long as the link takes for so many packets of this size, within these bounds.
const PACKETS: (f64, f64) = (30.0, 300.0);
const PACKET_BITS: f64 = 12_000.0;
const DURATION_S: (f64, f64) = (0.2, 2.0);
/// Keys that are times of the scenario and not of what happens in it.
const TIMES: [&str; 4] = ["start", "stop", "at", "start_spread"];
/// Options of hosts that are refused without ECN.
const NEED_ECN: [&str; 2] = ["tcp.ecn_retransmits", "tcp.ern"];
/// How often a key, a part and a key of it differ from the defaults.
const KEYS: f64 = 0.2;
const PARTS: f64 = 0.15;
const KEYS_OF_PARTS: f64 = 0.6;
/// How often a number is at an end of its range.
const ENDS: f64 = 0.2;
/// Parameters of an algorithm are varied by this factor in both directions.
const WIDE: f64 = 4.0;
const LEAST_LIMIT: f64 = 3028.0; // bytes: room for two packets

/// The keys that differ from the defaults, by name.
pub type Settings = BTreeMap<String, Value>;

/// The values that a key may have.
#[derive(Debug, Clone)]
enum Values {
    List(Vec<Value>),
    Range { low: f64, high: f64, unit: &'static str, log: bool, whole: bool },
}

#[derive(Debug, Clone)]
struct Part {
    name: String,
    list: String,
    table: Table,
    keys: Vec<(String, Values)>,
}

/// All scenarios that may be drawn for one algorithm.
#[derive(Debug, Clone)]
pub struct Space {
    scenario: Table,
    keys: Vec<(String, Values)>,
    parts: Vec<Part>,
    parameters: Vec<(String, Values)>,
    subject: String,
    is_control: bool,
}

impl Space {
    /// Reads the file of a space, for an algorithm with these parameters.
    ///
    /// # Panics
    /// If the text is no space.
    pub fn new(text: &str, subject: &str, entry: Option<&Entry>) -> Self {
        let mut given: Table = text.parse().expect("a space is TOML");
        let more: Table = MORE.parse().expect("more.toml is TOML");
        let scenario = given.remove("scenario").expect("a space has a scenario");
        let (mut keys, mut parts) = (Vec::new(), Vec::new());
        for table in [&given, &more] {
            keys.extend(
                table["vary"].as_table().into_iter().flatten().map(|(key, given)| (key.clone(), values(given))),
            );
            parts.extend(table["parts"].as_array().into_iter().flatten().map(part));
        }
        // What the space has of a key comes before what is added to it.
        let mut known = std::collections::BTreeSet::new();
        keys.retain(|(key, _)| known.insert(key.clone()));
        let parameters = entry.map_or_else(Vec::new, parameters);
        let is_control = given.get("kind").and_then(Value::as_str) == Some("control");
        let scenario = scenario.as_table().expect("a scenario is a table").clone();
        Self { scenario, keys, parts, parameters, subject: subject.to_owned(), is_control }
    }

    /// Draws settings.
    pub fn draw(&self, draws: &mut Rng) -> Settings {
        let mut found = Settings::new();
        let packets = PACKETS.0 * (PACKETS.1 / PACKETS.0).powf(draws.uniform());
        found.insert("packets_all".into(), Value::Integer(packets as i64));
        for (key, values) in &self.keys {
            if draws.uniform() < KEYS {
                found.insert(key.clone(), values.draw(draws));
            }
        }
        self.make_legal(&mut found);
        for part in &self.parts {
            if draws.uniform() < PARTS {
                found.insert(part.name.clone(), Value::Boolean(true));
                for (key, values) in &part.keys {
                    if draws.uniform() < KEYS_OF_PARTS {
                        found.insert(format!("{}.{key}", part.name), values.draw(draws));
                    }
                }
            }
        }
        if draws.below(2) == 1 {
            let often = (2.0 / self.parameters.len().max(1) as f64).clamp(0.1, 0.5);
            for (key, values) in &self.parameters {
                if draws.uniform() < often {
                    found.insert(format!("parameter.{key}"), values.draw(draws));
                }
            }
        }
        found
    }

    /// Adds what a key needs beside it, so that few scenarios are refused.
    fn make_legal(&self, found: &mut Settings) {
        let has_ecn = self.keys.iter().any(|(key, _)| key == "tcp.ecn");
        if has_ecn && NEED_ECN.iter().any(|key| found.contains_key(*key)) {
            found.insert("tcp.ecn".into(), Value::Boolean(true));
        }
        if found.contains_key("tcp.rack") {
            found.remove("tcp.sack");
        }
    }

    /// Writes the scenario with these settings.
    pub fn text(&self, settings: &Settings, name: &str, seed: u64) -> String {
        let mut tree = self.scenario.clone();
        for part in self.parts.iter().filter(|part| settings.contains_key(&part.name)) {
            let mut table = part.table.clone();
            let own = settings.range(format!("{}.", part.name)..).take_while(|(key, _)| key.starts_with(&part.name));
            own.for_each(|(key, value)| put(&mut table, &key[part.name.len() + 1..], value.clone()));
            let list = tree.entry(part.list.clone()).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().expect("a list").push(Value::Table(table));
        }
        let mut own = Table::new();
        for (key, value) in settings {
            let head = key.split('.').next().unwrap_or(key);
            match head {
                "parameter" => drop(own.insert(key["parameter.".len()..].to_owned(), value.clone())),
                "buffer" | "packets" | "packets_all" => {}
                _ if self.parts.iter().any(|part| part.name == head) => {}
                _ => put(&mut tree, key, value.clone()),
            }
        }
        self.limit(&mut tree, settings);
        shorten(&mut tree, settings);
        self.place(&mut tree, &own);
        let mut whole = Table::new();
        whole.insert("name".into(), Value::String(name.to_owned()));
        whole.insert("seed".into(), Value::Integer(seed as i64));
        whole.extend(tree);
        toml::to_string(&whole).expect("a table is TOML")
    }

    fn limit(&self, tree: &mut Table, settings: &Settings) {
        let topology = tree["topology"].as_table_mut().expect("a topology");
        if let Some(packets) = settings.get("packets").and_then(Value::as_integer) {
            topology.insert("limit".into(), Value::String(format!("{packets}p")));
            return;
        }
        let of = |key: &str| topology.get(key).and_then(quantity).map_or(0.0, |(number, _)| number);
        let product = of("rate") * 2.0 * (of("delay") + 2.0 * of("access_delay")) / 8.0;
        let buffer = settings.get("buffer").and_then(quantity).map_or(2.0, |(number, _)| number);
        topology.insert("limit".into(), shown((buffer * product).max(LEAST_LIMIT), "B", false));
    }

    /// Puts the algorithm, with its parameters, where its name is wanted.
    fn place(&self, tree: &mut Table, own: &Table) {
        let mut named = Table::from_iter([("name".to_owned(), Value::String(self.subject.clone()))]);
        named.extend(own.clone());
        let subject = if own.is_empty() { Value::String(self.subject.clone()) } else { Value::Table(named) };
        let other = if self.is_control { Value::String("fq-codel".into()) } else { subject.clone() };
        let topology = tree["topology"].as_table_mut().expect("a topology");
        topology.iter_mut().filter(|(_, value)| value.as_str() == Some(SUBJECT)).for_each(|(_, v)| *v = other.clone());
        tree.iter_mut().filter(|(_, value)| value.as_str() == Some(SUBJECT)).for_each(|(_, v)| *v = subject.clone());
        for flow in tree["flows"].as_array_mut().into_iter().flatten().filter_map(Value::as_table_mut) {
            flow.iter_mut()
                .filter(|(_, value)| value.as_str() == Some(SUBJECT))
                .for_each(|(_, v)| *v = subject.clone());
        }
    }
}

/// Sets the duration, and lets everything happen within it.
fn shorten(tree: &mut Table, settings: &Settings) {
    let packets = settings.get("packets_all").and_then(Value::as_integer).unwrap_or(PACKETS.0 as i64) as f64;
    let rate = tree["topology"].get("rate").and_then(quantity).map_or(1e7, |(rate, _)| rate);
    let duration = (packets * PACKET_BITS / rate).clamp(DURATION_S.0, DURATION_S.1);
    tree.insert("duration".into(), shown(duration, "s", false));
    tree.insert("warmup".into(), shown(duration / 5.0, "s", false));
    for list in ["flows", "changes"] {
        for table in tree.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            for key in TIMES {
                let Some(value) = table.get_mut(key) else { continue };
                if let Some((seconds, _)) = quantity(value) {
                    *value = shown(seconds * duration / LONG_S, "s", false);
                }
            }
        }
    }
}

/// Sets the value at a path such as `flows.0.count`.
fn put(table: &mut Table, path: &str, value: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return;
    };
    match table.entry(first.to_owned()).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => put(inner, rest, value),
        Value::Array(items) => {
            let (index, rest) = rest.split_once('.').expect("a key of an item");
            let item = index.parse().ok().and_then(|index: usize| items.get_mut(index));
            put(item.and_then(Value::as_table_mut).expect("an item"), rest, value);
        }
        other => panic!("{path} is below {other}"),
    }
}

fn part(given: &Value) -> Part {
    let word = |key: &str| given.get(key).and_then(Value::as_str).map(str::to_owned);
    let keys = given.get("vary").and_then(Value::as_table).into_iter().flatten();
    Part {
        name: word("name").expect("a part has a name"),
        list: word("to").unwrap_or_else(|| "flows".into()),
        table: given["table"].as_table().expect("a part has a table").clone(),
        keys: keys.map(|(key, given)| (key.clone(), values(given))).collect(),
    }
}

fn values(given: &Value) -> Values {
    if let Some(list) = given.as_array() {
        return Values::List(list.clone());
    }
    let end = |key: &str| quantity(&given[key]).expect("an end of a range");
    let ((low, unit), (high, _)) = (end("from"), end("to"));
    let log = given.get("scale").and_then(Value::as_str) == Some("log");
    Values::Range { low, high, unit, log, whole: given["from"].is_integer() }
}

fn parameters(entry: &Entry) -> Vec<(String, Values)> {
    let found = entry.parameters.iter().filter_map(|one| {
        let default = Value::try_from(&one.default).ok();
        let values = match (one.name.as_str(), default) {
            ("compat", _) => Values::List(vec![Value::String("linux".into())]),
            ("per_flow", _) => Values::List(AnyAqmConfig::NAMES.iter().map(|n| Value::String((*n).into())).collect()),
            (_, Some(Value::Boolean(on))) => Values::List(vec![Value::Boolean(!on)]),
            (_, Some(value)) => around(&value)?,
            (_, None) => return None,
        };
        Some((one.name.clone(), values))
    });
    found.collect()
}

/// Returns the range around the default of a parameter; `None` if it is no number above zero.
fn around(default: &Value) -> Option<Values> {
    let (number, unit) = quantity(default).filter(|(number, _)| *number > 0.0)?;
    let whole = default.is_integer() || unit == "p";
    let low = if whole { (number / WIDE).max(1.0) } else { number / WIDE };
    Some(Values::Range { low, high: number * WIDE, unit, log: true, whole })
}

impl Values {
    fn draw(&self, draws: &mut Rng) -> Value {
        match self {
            Self::List(list) => list[draws.below(list.len() as u64) as usize].clone(),
            Self::Range { low, high, unit, log, whole } => {
                let place = match draws.uniform() {
                    x if x < ENDS / 2.0 => 0.0,
                    x if x < ENDS => 1.0,
                    _ => draws.uniform(),
                };
                let number = if *log { low * (high / low).powf(place) } else { low + (high - low) * place };
                shown(number.clamp(*low, *high), unit, *whole)
            }
        }
    }
}

const UNITS: [(&str, f64, &str); 15] = [
    ("Gbit/s", 1e9, "bit/s"),
    ("Mbit/s", 1e6, "bit/s"),
    ("kbit/s", 1e3, "bit/s"),
    ("bit/s", 1.0, "bit/s"),
    ("MiB", 1_048_576.0, "B"),
    ("KiB", 1024.0, "B"),
    ("MB", 1e6, "B"),
    ("kB", 1e3, "B"),
    ("B", 1.0, "B"),
    ("ns", 1e-9, "s"),
    ("us", 1e-6, "s"),
    ("ms", 1e-3, "s"),
    ("s", 1.0, "s"),
    ("p", 1.0, "p"),
    ("", 1.0, ""),
];

/// Reads a number with a unit; returns it in the unit of its kind.
fn quantity(value: &Value) -> Option<(f64, &'static str)> {
    match value {
        Value::Integer(number) => Some((*number as f64, "")),
        Value::Float(number) => Some((*number, "")),
        Value::String(text) => UNITS.iter().find_map(|(unit, factor, base)| {
            let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
            Some((number * factor, *base))
        }),
        _ => None,
    }
}

/// Writes a number with three digits and its unit.
fn shown(number: f64, unit: &str, whole: bool) -> Value {
    let rounded = |number: f64| {
        let step = 10f64.powf(number.abs().max(1e-12).log10().floor() - 2.0);
        (number / step).round() * step
    };
    match unit {
        "" if whole => Value::Integer(number.round() as i64),
        "" => Value::Float(format!("{:.3e}", number).parse().unwrap_or(number)),
        "s" => match rounded(number * 1e9).round() as u64 {
            ns if ns % 1_000_000 == 0 => Value::String(format!("{}ms", ns / 1_000_000)),
            ns if ns % 1000 == 0 => Value::String(format!("{}us", ns / 1000)),
            ns => Value::String(format!("{ns}ns")),
        },
        "p" => Value::String(format!("{}p", number.round() as u64)),
        unit => Value::String(format!("{}{unit}", rounded(number).round() as u64)),
    }
}
