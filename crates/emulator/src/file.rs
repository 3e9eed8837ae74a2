//! The configuration file of `penstock-emulate`: the same settings as the options, in tables which have the form of
//! scenarios.
//!
//! ```toml
//! mtu = 1500
//!
//! [link]                        # as in a scenario
//! rate = "10Mbit/s"
//! delay = "20ms"
//! limit = "1000p"
//! reverse_rate = "2Mbit/s"      # the other direction; without it, as there
//!
//! [aqm]                         # as in a scenario
//! name = "codel"
//! target = "10ms"
//!
//! [[hosts]]                     # the packets of this host are in class 0, but for
//!                               # the class that is written
//! address = "10.2.0.1"
//! class = 3
//!
//! [left]                        # and [right]
//! netns = "a"
//! address = "10.77.0.1/24"
//!
//! [subscribers]                 # hosts that count as one
//! house = ["10.1.0.0/28", "2001:db8:1::/56"]
//! ```
//!
//! An option that is given has precedence over the file.
//!
//! A file may have several wires, each in a table of `[[wire]]` with the tables and keys above; `duration`, `spin`,
//! `realtime` and `seed` then stand before them:
//!
//! ```toml
//! [[wire]]
//! name = "first"
//! link = { rate = "10Mbit/s", delay = "5ms" }
//! left = { netns = "a", interface = "out" }
//! right = { netns = "b", interface = "in" }
//! ```

use penstock_appliance::live::in_real_time;
use penstock_appliance::socket::place::is_name;
use penstock_conntrack::{Named, Prefix};
use penstock_core::config::ConfigError;
use penstock_core::foreign::Library;
use penstock_core::qdisc::DropReason;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Limit, Rate, Span};
use penstock_grammar::link::Link;
use penstock_grammar::named::Disciplines;
use penstock_grammar::source::{Table, Value};
use penstock_grammar::stations::StationSpec;
use penstock_grammar::{Diagnosis, Source, fields};
use penstock_linux::tun::Cidr;
use penstock_shaper::nodes::Side;
use penstock_shaper::numbered::{self, Host};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

/// Largest number of wires in a file.
pub const MOST_WIRES: usize = 128;
/// The names of TUN interfaces that have none in the file, left first.
pub const INTERFACES: [&str; 2] = ["penstock0", "penstock1"];

/// What a file is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Contents {
    /// One wire, which options may change.
    One(Box<File>),
    /// The tables of `[[wire]]`.
    Several(Vec<Wire>),
}

/// A table of `[[wire]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Wire {
    /// Its name, which no other wire has.
    pub name: String,
    /// Path of its control socket; `None` for the usual one.
    pub socket: Option<PathBuf>,
    /// Its settings, with those of all wires.
    pub file: File,
    /// Its bytes in the file.
    pub span: Range<usize>,
}

/// The content of a file with one wire, or of one of several; what is left out is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct File {
    /// The table `[link]`.
    pub link: Option<LinkKeys>,
    /// The disciplines of the two directions, forward first.
    pub aqm: [Option<AnyConfig>; 2],
    /// The ends of the link, left first.
    pub ends: [EndKeys; 2],
    /// The queues of the kernel before those of the two directions, forward first.
    pub through: [Option<ThroughKeys>; 2],
    /// The keys of the whole run.
    pub run: RunKeys,
    /// The tables `[[hosts]]`.
    pub hosts: Vec<Host>,
    /// The table `[subscribers]`.
    pub subscribers: Vec<Named>,
}

/// What `[link]` says.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkKeys {
    /// Rate from left to right.
    pub rate: Rate,
    /// Delay from left to right.
    pub delay: Span,
    /// Limits of the queues, from left to right and back.
    pub limits: [Limit; 2],
    /// Probability that the wire from left to right loses a packet.
    pub loss: f64,
    /// What is different from right to left.
    pub reverse: ReverseKeys,
    /// The channels of the stations behind the wire from left to right.
    pub stations: Vec<StationSpec>,
}

/// What `[link]` says of the direction from right to left alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReverseKeys {
    /// Rate from right to left; `None` for that of the link.
    pub rate: Option<Rate>,
    /// Delay from right to left; `None` for that of the link.
    pub delay: Option<Span>,
}

/// The keys of `[link]` for a wireless one.
#[derive(Debug, Deserialize)]
struct RadioKeys {
    #[serde(default)]
    stations: Vec<StationSpec>,
}

/// The keys of `[left]` and `[right]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndKeys {
    /// Name of the TUN interface, which is made.
    pub interface: Option<String>,
    /// Name of an interface of Ethernet that is there, whose frames are read and written.
    pub port: Option<String>,
    /// Namespace of the interface.
    pub netns: Option<String>,
    /// Address of the interface, with its prefix.
    pub address: Option<Cidr>,
}

/// The keys of `through` and `reverse_through`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThroughKeys {
    /// Namespace whose kernel has the queue.
    pub netns: String,
    /// How the discipline there drops; `None` for the default.
    pub drops: Option<Drops>,
}

/// The keys of the whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct RunKeys {
    /// Largest IP packet on both interfaces, in bytes.
    pub mtu: Option<u16>,
    /// The side whose hosts are the nodes.
    pub nodes: Option<Side>,
    /// Seed of every random stream.
    pub seed: Option<u64>,
    /// Duration of the run.
    pub duration: Option<Span>,
    /// True if the loop never sleeps.
    pub spin: Option<bool>,
    /// True for real-time scheduling (SCHED_FIFO).
    pub realtime: Option<bool>,
    /// File to which the fate of each packet is written.
    pub packets: Option<PathBuf>,
    /// File to which the headers and the fate of each packet are written.
    pub pcapng: Option<PathBuf>,
    /// File for a log of the link from left to right in the form of Mahimahi.
    pub uplink_log: Option<PathBuf>,
    /// File for a log of the link from right to left.
    pub downlink_log: Option<PathBuf>,
}

/// The keys that a wire has only if there may be others.
#[derive(Debug, Deserialize)]
struct WireKeys {
    name: String,
    socket: Option<PathBuf>,
}

/// The keys of all wires together.
#[derive(Debug, Deserialize)]
struct SharedKeys {
    #[serde(rename = "duration")]
    _duration: Option<IgnoredAny>,
    #[serde(rename = "spin")]
    _spin: Option<IgnoredAny>,
    #[serde(rename = "realtime")]
    _realtime: Option<IgnoredAny>,
    #[serde(rename = "seed")]
    _seed: Option<IgnoredAny>,
    #[serde(rename = "wire")]
    _wire: Option<IgnoredAny>,
}

/// The tables of a configuration file.
#[derive(Debug, Deserialize)]
struct Tables {
    #[serde(rename = "link")]
    _link: Option<IgnoredAny>,
    #[serde(rename = "aqm")]
    _aqm: Option<IgnoredAny>,
    #[serde(rename = "reverse_aqm")]
    _reverse_aqm: Option<IgnoredAny>,
    #[serde(default)]
    left: EndKeys,
    #[serde(default)]
    right: EndKeys,
    through: Option<ThroughKeys>,
    reverse_through: Option<ThroughKeys>,
    #[serde(default)]
    hosts: Vec<Host>,
    #[serde(default)]
    subscribers: BTreeMap<String, Vec<Prefix>>,
}

impl Contents {
    /// Reads the text of a file whose disciplines may be those of a library; `name` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns the first mistake with its line and column.
    pub fn parse(text: &str, name: &str, library: &dyn Library) -> Result<Self, Diagnosis> {
        let source = Source::parse(text, name)?;
        if source.get(&["wire"]).is_some() {
            return several(&source, library).map(Self::Several);
        }
        let table = source.table(source.root(), &[fields::of::<RunKeys>(), fields::of::<Tables>()])?;
        File::read(&source, &table, library).map(|file| Self::One(Box::new(file)))
    }
}

impl File {
    fn read<'a>(source: &Source<'a>, table: &Table<'_, 'a>, library: &dyn Library) -> Result<Self, Diagnosis> {
        let Tables { left, right, through, reverse_through, hosts, subscribers, .. } = table.part()?;
        for (end, keys) in [("left", &left), ("right", &right)] {
            if keys.port.is_some() && (keys.interface.is_some() || keys.address.is_some()) {
                let what = "a `port` is there already: `interface` and `address` are of interfaces that are made";
                return Err(table.invalid(&ConfigError::new(end, what)));
            }
        }
        let subscribers = named(subscribers).map_err(|e| table.invalid(&e))?;
        numbered::validate(&hosts).map_err(|what| table.invalid(&ConfigError::new("hosts", what)))?;
        let run = run(table)?;
        let link = table.get("link").map(|value| link_of(source, value)).transpose()?;
        let aqm = |key| table.get(key).map(|value| source.named(value, &Disciplines(library))).transpose();
        let aqm = [aqm("aqm")?, aqm("reverse_aqm")?];
        let through = [through, reverse_through];
        Ok(Self { link, aqm, ends: [left, right], through, run, hosts, subscribers })
    }

    /// Returns the namespace and the name of the interface at an end; 0 is the left one.
    fn place(&self, at: usize) -> (Option<&str>, &str) {
        let EndKeys { interface, port, netns, .. } = &self.ends[at];
        (netns.as_deref(), port.as_deref().or(interface.as_deref()).unwrap_or(INTERFACES[at]))
    }
}

/// Reads the tables of `[[wire]]`, and what stands before them.
fn several(source: &Source<'_>, library: &dyn Library) -> Result<Vec<Wire>, Diagnosis> {
    let root = source.table(source.root(), &[fields::of::<SharedKeys>()])?;
    let shared = run(&root)?;
    let list = root.get("wire").map_or(Ok(&[][..]), |value| source.list(value))?;
    if list.is_empty() || list.len() > MOST_WIRES {
        return Err(root.invalid(&ConfigError::new("wire", format!("a file has 1 to {MOST_WIRES} wires"))));
    }
    let mut wires: Vec<Wire> = Vec::with_capacity(list.len());
    for (number, value) in list.iter().enumerate() {
        let known = [fields::of::<WireKeys>(), fields::of::<RunKeys>(), fields::of::<Tables>()];
        let table = source.table(value, &known)?;
        let invalid = |key, what: String| Err(table.invalid(&ConfigError::new(key, what)));
        let WireKeys { name, socket } = table.part()?;
        if !is_name(&name) || wires.iter().any(|other| other.name == name) {
            let what = "is no name, or that of another wire; allowed are up to 64 letters, digits, '-', '_' and '.'";
            return invalid("name", format!("{name:?} {what}, which is not the first"));
        }
        for key in ["duration", "realtime", "spin"] {
            if table.get(key).is_some() {
                return invalid(key, format!("`{key}` is of all wires: it stands before the first [[wire]]"));
            }
        }
        let mut file = File::read(source, &table, library)?;
        if file.link.is_none() {
            return invalid("link", format!("the wire {name:?} needs a `link` with `rate` and `delay`"));
        }
        for (at, key) in ["left", "right"].into_iter().enumerate() {
            let same = |other: &&Wire| (0..2).any(|there| other.file.place(there) == file.place(at));
            if let Some(other) = wires.iter().find(same) {
                let (_, interface) = file.place(at);
                let what = format!("the wire {:?} has the interface {interface} in this namespace already", other.name);
                return invalid(key, format!("{what}; give another `interface` or `port`"));
            }
        }
        let RunKeys { duration, spin, realtime, .. } = shared;
        // Each wire draws random numbers of its own.
        let seed = file.run.seed.or(shared.seed.map(|seed| seed.wrapping_add(number as u64)));
        file.run = RunKeys { duration, spin, realtime, seed, ..file.run };
        wires.push(Wire { name, socket, file, span: table.span() });
    }
    Ok(wires)
}

/// Returns the subscribers in the order of their names.
///
/// # Errors
/// Fails if a subscriber has no prefix, one that another has, or a hardware address.
fn named(table: BTreeMap<String, Vec<Prefix>>) -> Result<Vec<Named>, ConfigError> {
    let mut known = Vec::new();
    for (name, prefixes) in &table {
        if prefixes.iter().any(|prefix| prefix.is_hardware()) {
            let what = format!("{name:?} has a hardware address; the emulator knows hosts by their IP addresses");
            return Err(ConfigError::new("subscribers", what));
        }
        if prefixes.is_empty() || prefixes.iter().any(|prefix| known.contains(prefix)) {
            let what = format!("{name:?} needs at least one prefix, and none that another subscriber has");
            return Err(ConfigError::new("subscribers", what));
        }
        known.extend(prefixes);
    }
    Ok(table.into_iter().map(|(name, prefixes)| Named { name, prefixes }).collect())
}

fn run(table: &Table<'_, '_>) -> Result<RunKeys, Diagnosis> {
    let run: RunKeys = table.part()?;
    if run.mtu.is_some_and(|mtu| mtu < 576) {
        return Err(table.invalid(&ConfigError::new("mtu", "an MTU has 576 to 65535 bytes")));
    }
    if run.spin == Some(true) && run.realtime == Some(true) {
        return Err(table.invalid(&ConfigError::new("realtime", "`spin` and `realtime` exclude each other")));
    }
    Ok(run)
}

fn link_of<'a>(source: &Source<'a>, value: &Value<'a>) -> Result<LinkKeys, Diagnosis> {
    let table = source.table(value, &[fields::of::<Link>(), fields::of::<RadioKeys>()])?;
    let link: Link = table.part()?;
    let RadioKeys { stations } = table.part()?;
    link.validate().and_then(|()| in_real_time(&stations)).map_err(|e| table.invalid(&e))?;
    // A key that the emulator does not have is refused here, at its place.
    let Link { rate, delay, reverse_rate, reverse_delay, limit, reverse_limit, loss } = link;
    let reverse = ReverseKeys { rate: reverse_rate, delay: reverse_delay };
    Ok(LinkKeys { rate, delay, limits: [limit, reverse_limit], loss, reverse, stations })
}

/// How a queue of the kernel drops packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Drops {
    /// Drops on arrival because the queue is full
    #[default]
    Overflow,
    /// Drops on arrival by the decision of an AQM
    Early,
    /// Drops from the queue
    Dequeue,
}

impl Drops {
    pub(crate) fn reason(self) -> DropReason {
        match self {
            Self::Overflow => DropReason::Overflow,
            Self::Early => DropReason::Early,
            Self::Dequeue => DropReason::Dequeue,
        }
    }
}

#[cfg(test)]
impl File {
    /// Reads the text of a file with one wire.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnosis> {
        Self::parse_with(text, name, &())
    }

    /// Reads the text of a file with one wire, whose disciplines may be those of a library.
    pub fn parse_with(text: &str, name: &str, library: &dyn Library) -> Result<Self, Diagnosis> {
        match Contents::parse(text, name, library)? {
            Contents::One(file) => Ok(*file),
            Contents::Several(wires) => panic!("{} wires", wires.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"seed = 7
duration = "10s"
nodes = "right"

[link]
rate = "10Mbit/s"
delay = "20ms"
limit = "125kB"
reverse_rate = "1Mbit/s"

[aqm]
name = "codel"
target = "10ms"

[left]
netns = "a"
address = "10.0.0.1/24"
"#;

    fn mistake(piece: &str, by: &str) -> Diagnosis {
        assert_eq!(GOOD.matches(piece).count(), 1, "{piece:?} is there once");
        File::parse(&GOOD.replacen(piece, by, 1), "some/emulate.toml").unwrap_err()
    }

    #[test]
    fn what_a_file_says_is_read_and_the_rest_is_left_open() {
        let file = File::parse(GOOD, "f").unwrap();
        let link = file.link.unwrap();
        assert_eq!((link.rate, link.delay), (Rate::from_bps(10_000_000), Span::from_millis(20)));
        assert_eq!((link.reverse.rate, link.reverse.delay), (Some(Rate::from_bps(1_000_000)), None));
        assert_eq!(file.aqm[0].as_ref().map(AnyConfig::name), Some("codel"));
        assert_eq!((&file.aqm[1], file.run.seed, file.run.nodes), (&None, Some(7), Some(Side::Right)));
        assert_eq!(file.ends[0].netns.as_deref(), Some("a"));
        assert_eq!(file.ends[1], EndKeys::default());
        assert_eq!(File::parse("", "f").unwrap(), File::default());
    }

    #[test]
    fn subscribers_have_names_and_prefixes_of_their_own() {
        let table = "[subscribers]\nyard = [\"10.2.0.0/16\"]\nhouse = [\"10.1.0.0/28\", \"2001:db8:1::/56\"]\n";
        let file = File::parse(table, "f").unwrap();
        let named: Vec<_> = file.subscribers.iter().map(|n| (n.name.as_str(), n.prefixes.len())).collect();
        assert_eq!(named, [("house", 2), ("yard", 1)]);
        let refused = |from: &str, to: &str| File::parse(&table.replace(from, to), "f").unwrap_err();
        let prefix = refused("10.1.0.0/28", "10.1.0.1/28");
        assert!(prefix.line == 3 && prefix.what.contains("2001:db8:1::/48"), "{prefix}");
        assert_eq!(refused("2001:db8:1::/56", "2001:db8:1::/65").line, 3, "longer than a host");
        let twice = refused("10.1.0.0/28", "10.2.0.0/16");
        assert!(twice.what.contains("that another subscriber has"), "{twice}");
        assert!(refused("\"10.2.0.0/16\"", "").what.contains("at least one prefix"));
        assert!(refused("10.2.0.0/16", "02:00:5e:00:53:01").what.contains("knows hosts by their IP addresses"));
    }

    #[test]
    fn stations_and_hosts_are_those_of_a_scenario() {
        let text = GOOD.replace("limit = ", "stations = [0.0, { technology = \"wifi\", snr_db = 9 }]\nlimit = ");
        let text = format!("{text}\n[[hosts]]\naddress = \"10.2.0.1\"\nclass = 3\n[[hosts]]\naddress = \"10.2.0.2\"\n");
        let file = File::parse(&text, "f").unwrap();
        let hosts: Vec<_> = file.hosts.iter().map(|host| (host.address.to_string(), host.class)).collect();
        assert_eq!(hosts, [("10.2.0.1".into(), Some(3)), ("10.2.0.2".into(), None)]);
        assert_eq!(file.link.unwrap().stations.len(), 2);
        let refused = |from: &str, to: &str| File::parse(&text.replace(from, to), "f").unwrap_err().what;
        assert!(refused("10.2.0.2", "10.2.0.1").contains("10.2.0.1 is that of an earlier host"));
        assert!(refused("[0.0,", "[7,").contains("a station's loss is 7"));
    }

    #[test]
    fn a_mistake_is_told_with_line_column_and_suggestion() {
        let name = mistake("\"codel\"", "\"codle\"");
        assert_eq!((name.line, name.column), (12, 8));
        assert!(name.to_string().contains("some/emulate.toml:12:8"), "{name}");
        assert!(name.what.contains("did you mean \"codel\"?"), "{name}");
        let key = mistake("delay =", "delya =");
        assert_eq!((key.line, key.column), (7, 1));
        assert!(key.what.contains("did you mean `delay`?"), "{key}");
        let table = mistake("[left]", "[lfet]");
        assert!(table.what.contains("did you mean `left`?"), "{table}");
        let unit = mistake("\"10s\"", "10");
        assert!(unit.line == 2 && unit.what.contains("a time in quotes with its unit"), "{unit}");
        let address = mistake("10.0.0.1/24", "10.0.0.1");
        assert!(address.line == 17 && address.what.contains("10.77.0.1/24"), "{address}");
        let how = mistake("[left]", "[through]\nnetns = \"q\"\ndrops = \"erly\"\n[left]");
        assert!(how.line == 17 && how.what.contains("did you mean `early`?"), "{how}");
        let side = mistake("\"right\"", "\"rigth\"");
        assert!(side.line == 3 && side.what.contains("did you mean `right`?"), "{side}");
    }

    const WIRES: &str = r#"seed = 7
realtime = true

[[wire]]
name = "first"
mtu = 1400
link = { rate = "10Mbit/s", delay = "5ms" }
left = { netns = "a", interface = "out" }
right = { netns = "b", interface = "in" }

[[wire]]
name = "second"
socket = "/run/second.sock"
aqm = { name = "codel", target = "10ms" }
left = { netns = "b", interface = "out" }
right = { netns = "c", interface = "in" }
[wire.link]
rate = "5Mbit/s"
delay = "0ms"
"#;

    fn wires(text: &str) -> Result<Vec<Wire>, Diagnosis> {
        match Contents::parse(text, "lot.toml", &())? {
            Contents::Several(wires) => Ok(wires),
            Contents::One(file) => panic!("{file:?}"),
        }
    }

    #[test]
    fn a_file_may_have_several_wires() {
        let [first, second] = wires(WIRES).unwrap().try_into().unwrap();
        assert_eq!((first.name.as_str(), second.name.as_str()), ("first", "second"));
        assert_eq!((first.socket, second.socket), (None, Some("/run/second.sock".into())));
        assert_eq!((first.file.run.realtime, second.file.run.realtime), (Some(true), Some(true)));
        assert_eq!((first.file.run.seed, second.file.run.seed), (Some(7), Some(8)), "other random numbers");
        assert_eq!((first.file.run.mtu, second.file.run.mtu), (Some(1400), None));
        let rate = |file: &File| file.link.as_ref().map(|link| link.rate.as_bps());
        assert_eq!((rate(&first.file), rate(&second.file)), (Some(10_000_000), Some(5_000_000)));
        assert_eq!(second.file.aqm[0].as_ref().map(AnyConfig::name), Some("codel"));
        assert!(WIRES[first.span].starts_with("[[wire]]"));
    }

    #[test]
    fn a_mistake_in_a_wire_is_told_with_line_column_and_suggestion() {
        let mistake = |piece: &str, by: &str| {
            assert_eq!(WIRES.matches(piece).count(), 1, "{piece:?} is there once");
            wires(&WIRES.replacen(piece, by, 1)).unwrap_err()
        };
        let name = mistake("\"codel\"", "\"codle\"");
        assert_eq!((name.line, name.column), (14, 16));
        assert!(name.what.contains("did you mean \"codel\"?") && name.to_string().contains("lot.toml:14:16"), "{name}");
        let key = mistake("socket =", "sokcet =");
        assert!(key.line == 13 && key.what.contains("did you mean `socket`?"), "{key}");
        let twice = mistake("\"second\"", "\"first\"");
        assert!(twice.line == 12 && twice.what.contains("another wire"), "{twice}");
        let end = mistake("netns = \"c\", interface = \"in\"", "netns = \"b\", interface = \"in\"");
        assert!(end.line == 16 && end.what.contains("\"first\" has the interface in"), "{end}");
        let all = mistake("mtu = 1400", "spin = false");
        assert!(all.line == 6 && all.what.contains("of all wires"), "{all}");
        let link = mistake("link = { rate = \"10Mbit/s\", delay = \"5ms\" }", "");
        assert!(link.line == 4 && link.what.contains("needs a `link`"), "{link}");
        let rate = mistake("\"5Mbit/s\"", "\"5Mbps\"");
        assert_eq!((rate.line, rate.column), (18, 8));
        let one = wires(&WIRES.replace("seed = 7", "mtu = 1500")).unwrap_err();
        assert!(one.line == 1 && one.what.contains("unknown field `mtu`"), "{one}");
        assert_eq!(wires("wire = []").unwrap_err().what, "a file has 1 to 128 wires");
        assert!(wires("wire = 5").unwrap_err().what.contains("expected a list of tables"));
        let no_name = wires("[[wire]]\n").unwrap_err();
        assert!(no_name.line == 1 && no_name.what.contains("missing field `name`"), "{no_name}");
    }

    #[test]
    fn the_examples_are_right_ones() {
        let lot = include_str!("../../../examples/emulate/parking-lot.toml");
        assert_eq!(wires(lot).unwrap().len(), 2);
        let file = File::parse(include_str!("../../../examples/emulate/codel.toml"), "codel.toml").unwrap();
        assert_eq!(file.aqm[0].as_ref().map(AnyConfig::name), Some("codel"));
        assert_eq!(file.link.unwrap().reverse.rate, Some(Rate::from_bps(2_000_000)));
    }

    #[test]
    fn values_that_cannot_work_are_refused_where_they_stand() {
        assert_eq!(mistake("\"1Mbit/s\"", "\"2Tbit/s\"").line, 9);
        assert_eq!(mistake("\"20ms\"", "\"2h\"").line, 7);
        let loss = mistake("limit = \"125kB\"", "loss = 1.5");
        assert!(loss.line == 8 && loss.what.contains("a probability"), "{loss}");
        assert_eq!(mistake("seed = 7", "mtu = 100").what, "an MTU has 576 to 65535 bytes");
        let both = mistake("seed = 7", "spin = true\nrealtime = true");
        assert!(both.line == 2 && both.what.contains("exclude each other"), "{both}");
    }
}
