//! The configuration file of `penstock-emulate`: the same settings as the options, in tables which have the form of
//! scenarios (docs/emulate.md). An option that is given has precedence over the file. A file may have several wires, each in
//! a table of `[[wire]]` with the same tables and keys; what is of all wires then stands before them.

use crate::changes::{self, Course};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use penstock_appliance::live::in_real_time;
use penstock_appliance::socket::place::is_name;
use penstock_conntrack::{Named, Prefix};
use penstock_core::config::ConfigError;
use penstock_core::foreign::Library;
use penstock_core::impair::Impairments;
use penstock_core::link_layer::LinkLayer;
use penstock_core::qdisc::DropReason;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Limit, Rate, Span};
use penstock_grammar::impair::{self, ImpairmentKeys};
use penstock_grammar::link::{LayerKeys, Link};
use penstock_grammar::named::Disciplines;
use penstock_grammar::source::{Table, Value};
use penstock_grammar::stations::StationSpec;
use penstock_grammar::{Diagnosis, Source, fields};
use penstock_linux::tun::Cidr;
use penstock_shaper::nodes::Side;
use penstock_shaper::numbered::{self, Host};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

/// Largest number of wires in a file.
const MOST_WIRES: usize = 128;
/// The names of TUN interfaces that have none in the file, left first.
pub const INTERFACES: [&str; 2] = ["penstock0", "penstock1"];
/// The keys of all wires together, and those of tables that are read by themselves.
const SHARED: [&str; 5] = ["duration", "spin", "realtime", "seed", "wire"];
const OWN: [&str; 4] = ["link", "aqm", "reverse_aqm", "changes"];

/// A wire of a file: the only one, or a table of `[[wire]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Wire {
    /// Its name, which no other wire has; `None` if it is the only one.
    pub name: Option<String>,
    /// Path of its control socket; `None` for the usual one.
    pub socket: Option<PathBuf>,
    /// Its settings, with those of all wires.
    pub file: File,
    /// Its bytes in the file.
    pub span: Range<usize>,
}

/// The content of a file with one wire, or of one of several: pairs have the left end or the way forward first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct File {
    pub link: Option<LinkKeys>,
    pub aqm: [Option<AnyConfig>; 2],
    pub ends: [EndKeys; 2],
    pub through: [Option<ThroughKeys>; 2],
    /// How the link changes during the run.
    pub changes: Vec<Course>,
    pub run: RunKeys,
    pub hosts: Vec<Host>,
    pub subscribers: Vec<Named>,
}

/// What `[link]` says. Loss and stations are those of the way from left to right.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkKeys {
    pub rate: Rate,
    pub delay: Span,
    pub limits: [Limit; 2],
    pub loss: f64,
    pub reverse: ReverseKeys,
    pub layers: [LinkLayer; 2],
    pub impairments: [Impairments; 2],
    pub stations: Vec<StationSpec>,
}

/// What `[link]` says of the direction from right to left alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReverseKeys {
    pub rate: Option<Rate>,
    pub delay: Option<Span>,
}

/// The keys of `[link]` for a wireless one.
#[derive(Debug, Deserialize)]
struct RadioKeys {
    #[serde(default)]
    stations: Vec<StationSpec>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndKeys {
    /// Name of the TUN interface, which is made.
    pub interface: Option<String>,
    /// Name of an interface of Ethernet that is there, whose frames are read and written.
    pub port: Option<String>,
    pub netns: Option<String>,
    pub address: Option<Cidr>,
}

/// A queue of the kernel that packets pass before that of the emulator: the keys of `through` and `reverse_through`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThroughKeys {
    pub netns: String,
    /// How its discipline drops, which the kernel does not tell of each packet.
    #[serde(default)]
    pub drops: Drops,
}

/// The keys of the whole run, which are options as well.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, serde::Serialize, clap::Args)]
pub struct RunKeys {
    /// MTU of both interfaces [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..=65_535))]
    pub mtu: Option<u16>,
    /// Side whose hosts share the link, for disciplines with shares per host (qrm). A host is an IPv4 address or a /64 prefix
    /// of IPv6 [default: left]
    #[arg(long, value_parser = side(), value_name = "SIDE")]
    #[serde(serialize_with = "given")]
    pub nodes: Option<Side>,
    /// Seed of all random numbers [default: 1]. If it is given, hashes of connections are repeatable as well; otherwise
    /// their keys are random
    #[arg(long)]
    pub seed: Option<u64>,
    /// Stop after this time [default: at Ctrl-C or SIGTERM]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Span>,
    /// Poll instead of sleeping. This keeps one CPU core busy and disables CPU idle states. Use it only on a machine with an
    /// idle core: on a busy machine it increases delays
    #[arg(long)]
    #[serde(default)]
    pub spin: bool,
    /// Run with real-time priority (SCHED_FIFO) and disable CPU idle states, which needs more power
    #[arg(long, conflicts_with = "spin")]
    #[serde(default)]
    pub realtime: bool,
    /// Write what happened to each packet to this CSV file
    #[arg(long, value_name = "FILE")]
    pub packets: Option<PathBuf>,
    /// Write the headers (up to 128 bytes) of each packet, and what happened to it, to this pcapng file
    #[arg(long, value_name = "FILE")]
    pub pcapng: Option<PathBuf>,
    /// Write a log of the link from left to right to this file, in the format of Mahimahi's mm-link
    #[arg(long, value_name = "FILE")]
    pub uplink_log: Option<PathBuf>,
    /// Write a log of the link from right to left to this file
    #[arg(long, value_name = "FILE")]
    pub downlink_log: Option<PathBuf>,
}

/// The keys that a wire has only if there may be others.
#[derive(Debug, Deserialize)]
struct WireKeys {
    name: String,
    socket: Option<PathBuf>,
}

/// The other tables of a configuration file.
#[derive(Debug, Deserialize)]
struct Tables {
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

fn side() -> impl TypedValueParser<Value = Side> {
    PossibleValuesParser::new(["left", "right", "none"]).map(|word| match word.as_str() {
        "right" => Side::Right,
        "none" => Side::None,
        _ => Side::Left,
    })
}

/// Writes only whether there is a value.
pub fn given<T, S: serde::Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(value.is_some())
}

impl RunKeys {
    /// Returns these keys, and those of `other` where these say nothing.
    pub fn over(&self, other: &Self) -> Self {
        let spin = !self.realtime && (self.spin || other.spin);
        let path = |own: &Option<PathBuf>, other: &Option<PathBuf>| own.clone().or_else(|| other.clone());
        Self {
            mtu: self.mtu.or(other.mtu),
            nodes: self.nodes.or(other.nodes),
            seed: self.seed.or(other.seed),
            duration: self.duration.or(other.duration),
            spin,
            realtime: !spin && (self.realtime || other.realtime),
            packets: path(&self.packets, &other.packets),
            pcapng: path(&self.pcapng, &other.pcapng),
            uplink_log: path(&self.uplink_log, &other.uplink_log),
            downlink_log: path(&self.downlink_log, &other.downlink_log),
        }
    }
}

impl Wire {
    /// Reads the text of a file whose disciplines may be those of a library, or returns the first mistake with its line and
    /// column; `name` is the name of the file in messages.
    pub fn all(text: &str, name: &str, library: &dyn Library) -> Result<Vec<Self>, Diagnosis> {
        let source = Source::parse(text, name)?;
        if source.get(&["wire"]).is_some() {
            return several(&source, library);
        }
        let table = source.table(source.root(), &[fields::of::<RunKeys>(), fields::of::<Tables>(), &OWN])?;
        let file = File::read(&source, &table, library)?;
        Ok(vec![Self { name: None, socket: None, file, span: table.span() }])
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
        let changes = table.get("changes").map_or(Ok(Vec::new()), |value| changes::read(source, value))?;
        Ok(Self { link, aqm, ends: [left, right], through, changes, run, hosts, subscribers })
    }

    /// Returns the namespace and the name of the interface at an end; 0 is the left one.
    fn place(&self, at: usize) -> (Option<&str>, &str) {
        let EndKeys { interface, port, netns, .. } = &self.ends[at];
        (netns.as_deref(), port.as_deref().or(interface.as_deref()).unwrap_or(INTERFACES[at]))
    }
}

/// Reads the tables of `[[wire]]`, and what stands before them.
fn several(source: &Source<'_>, library: &dyn Library) -> Result<Vec<Wire>, Diagnosis> {
    let root = source.table(source.root(), &[&SHARED])?;
    let shared = run(&root)?;
    let list = root.get("wire").map_or(Ok(&[][..]), |value| source.list(value))?;
    if list.is_empty() || list.len() > MOST_WIRES {
        return Err(root.invalid(&ConfigError::new("wire", format!("a file has 1 to {MOST_WIRES} wires"))));
    }
    let mut wires: Vec<Wire> = Vec::with_capacity(list.len());
    for (number, value) in list.iter().enumerate() {
        let known = [fields::of::<WireKeys>(), fields::of::<RunKeys>(), fields::of::<Tables>(), &OWN];
        let table = source.table(value, &known)?;
        let invalid = |key, what: String| Err(table.invalid(&ConfigError::new(key, what)));
        let WireKeys { name, socket } = table.part()?;
        if !is_name(&name) || wires.iter().any(|other| other.name.as_ref() == Some(&name)) {
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
                let (other, (_, interface)) = (other.name.as_deref().unwrap_or_default(), file.place(at));
                let what = format!("the wire {other:?} has the interface {interface} in this namespace already");
                return invalid(key, format!("{what}; give another `interface` or `port`"));
            }
        }
        let RunKeys { duration, spin, realtime, .. } = shared;
        // Each wire draws random numbers of its own.
        let seed = file.run.seed.or(shared.seed.map(|seed| seed.wrapping_add(number as u64)));
        file.run = RunKeys { duration, spin, realtime, seed, ..file.run };
        wires.push(Wire { name: Some(name), socket, file, span: table.span() });
    }
    Ok(wires)
}

/// Returns the subscribers in the order of their names. Each needs a prefix, none that another has, and no hardware address.
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
    if run.spin && run.realtime {
        return Err(table.invalid(&ConfigError::new("realtime", "`spin` and `realtime` exclude each other")));
    }
    Ok(run)
}

fn link_of<'a>(source: &Source<'a>, value: &Value<'a>) -> Result<LinkKeys, Diagnosis> {
    let keys = [fields::of::<Link>(), fields::of::<LayerKeys>(), fields::of::<RadioKeys>()];
    let table = source.table(value, &[&keys[..], &[fields::of::<ImpairmentKeys>()]].concat())?;
    let link: Link = table.part()?;
    let RadioKeys { stations } = table.part()?;
    link.validate().and_then(|()| in_real_time(&stations)).map_err(|e| table.invalid(&e))?;
    let layers = table.part::<LayerKeys>()?.layers().map_err(|e| table.invalid(&e))?;
    let impairments = impair::read(&table)?;
    // A key that the emulator does not have is refused here, at its place.
    let Link { rate, delay, reverse_rate, reverse_delay, limit, reverse_limit, loss } = link;
    let reverse = ReverseKeys { rate: reverse_rate, delay: reverse_delay };
    Ok(LinkKeys { rate, delay, limits: [limit, reverse_limit], loss, reverse, layers, impairments, stations })
}

/// How a queue of the kernel drops packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, Deserialize, serde::Serialize)]
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
    /// Returns this as a reason.
    pub fn reason(self) -> DropReason {
        match self {
            Self::Overflow => DropReason::Overflow,
            Self::Early => DropReason::Early,
            Self::Dequeue => DropReason::Dequeue,
        }
    }
}
