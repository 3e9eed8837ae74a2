//! The command line of `penstock-emulate`.

use crate::changes::Course;
use crate::end::Interface;
use crate::error::Error;
use crate::file::{Drops, EndKeys, File, INTERFACES, RunKeys, ThroughKeys, Wire, given};
use crate::settings::{Settings, Way};
use clap::{Parser, Subcommand};
use penstock_appliance::cli::{Applied, Ask, Change, Record, Support, Top};
use penstock_appliance::socket::message::Refusal;
use penstock_core::config::ConfigError;
use penstock_core::foreign::Library;
use penstock_core::impair::Impairments;
use penstock_core::link_layer::LinkLayer;
use penstock_core::registry::{AnyConfig, entries};
use penstock_core::settings::{config_from_library, config_over};
use penstock_core::units::{Limit, Rate, Span};
use penstock_grammar::impair;
use penstock_grammar::link::{LayerKeys, thousand_packets};
use penstock_grammar::{Diagnosis, Source};
use penstock_linux::tun::{self, Cidr};
use penstock_shaper::bottleneck::Config;
use penstock_shaper::direction::Direction;
use penstock_shaper::nodes::Side;
use serde::Serialize;
use serde_json::Value;
use std::fmt::{self, Write as _};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ip netns add a; ip netns add b
  penstock-emulate --left-netns a --right-netns b --rate 10Mbit/s --delay 20ms --limit 1000p --aqm codel
  ip netns exec b iperf3 -s -1 &
  ip netns exec a iperf3 -c 10.77.0.2 -t 10

  A satellite link of 2 Mbit/s with PINK, for one minute, with the report as JSON:
  penstock-emulate --left-netns a --right-netns b --rate 2Mbit/s --delay 300ms --limit 150kB \\
      --aqm pink --set c=0.95 --duration 60s --json

  A bottleneck from a file, with another rate; --check only validates the settings:
  penstock-emulate --config examples/emulate/codel.toml --rate 4Mbit/s
  penstock-emulate --config examples/emulate/codel.toml --check

  Several links in one process, each with its own report and control socket:
  penstock-emulate --config examples/emulate/parking-lot.toml --json
  penstock-emulate set --name emulate-second rate=2Mbit/s

  A link between two existing interfaces, without addresses:
  penstock-emulate --left-port eth1 --right-port eth2 --rate 100Mbit/s --delay 10ms --aqm fq-codel

  A lossy link whose delay varies, as with `tc netem delay 20ms 5ms 25% loss gemodel 1% 30% duplicate 1%`:
  penstock-emulate --left-netns a --right-netns b --rate 10Mbit/s --delay 20ms --impair duplicate=0.01 \\
      --impair jitter=by=5ms,correlation=0.25 --impair gilbert=to_bad=0.01,to_good=0.3

  The rates of a recorded cellular link, as with `mm-link up.trace down.trace`:
  penstock-emulate --left-netns a --right-netns b --trace up.trace --reverse-trace down.trace --delay 20ms

  While it runs, from another terminal:
  penstock-emulate status
  penstock-emulate top --by node
  penstock-emulate set rate=2Mbit/s loss=0.01
  kill -USR1 PID                                    # prints the report and continues

Exit codes: 0 after a run (by --duration, or SIGINT, SIGTERM, SIGHUP, SIGQUIT), 1 if it ended for another reason or not
all of its output could be written, 2 for a mistake in the options, the file or the set-up. The report is printed in
the first two cases.";

/// Emulates a bottleneck link between two network namespaces, with any queue discipline of Penstock.
///
/// Creates a TUN interface in each namespace, or uses two existing Ethernet interfaces (ports). A packet that is sent through
/// the left interface is queued, transmitted at the rate, and delivered at the right interface after the delay. The
/// reverse direction has its own queue, rate and delay. Needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN.
#[derive(Debug, Clone, Parser, Serialize)]
#[command(
    name = "penstock-emulate",
    version,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Options {
    /// Command for a running emulator; without one, a new emulator is started
    #[command(subcommand)]
    #[serde(skip)]
    pub command: Option<Command>,

    /// Read settings from this TOML file; options override it; docs/emulate.md lists its keys
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the options and the file, print the settings, and exit
    #[arg(long)]
    pub check: bool,

    /// Name of the interface on the left [default: penstock0]
    #[arg(long, value_name = "NAME")]
    pub left: Option<String>,
    /// Name of the interface on the right [default: penstock1]
    #[arg(long, value_name = "NAME")]
    pub right: Option<String>,
    /// Use this existing Ethernet interface as the left end; --right-port is then required
    #[arg(long, value_name = "NAME", conflicts_with_all = ["left", "left_address", "mtu"])]
    pub left_port: Option<String>,
    /// Use this existing Ethernet interface as the right end
    #[arg(long, value_name = "NAME", conflicts_with_all = ["right", "right_address", "mtu"])]
    pub right_port: Option<String>,
    /// Namespace of the left interface: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NS")]
    pub left_netns: Option<String>,
    /// Namespace of the right interface [default: the current one]
    #[arg(long, value_name = "NS")]
    pub right_netns: Option<String>,
    /// Address of the left interface [default: 10.77.0.1/24]
    #[arg(long, value_name = "CIDR")]
    #[serde(serialize_with = "given")]
    pub left_address: Option<Cidr>,
    /// Address of the right interface [default: 10.77.0.2/24]
    #[arg(long, value_name = "CIDR")]
    #[serde(serialize_with = "given")]
    pub right_address: Option<Cidr>,

    /// What is set of the link.
    #[command(flatten)]
    #[serde(flatten)]
    pub link: LinkOptions,

    /// Send packets from left to right through the kernel of this namespace first, for a discipline of `tc`. The program
    /// creates the interfaces `in` and `out` there; you configure routes and the discipline of `out` [default: none]
    #[arg(long, value_name = "NS")]
    pub through: Option<String>,
    /// The same as --through, from right to left
    #[arg(long, value_name = "NS")]
    pub reverse_through: Option<String>,
    /// How to count the drops of that discipline [default: overflow]
    #[arg(long, value_name = "HOW", value_enum, requires = "through")]
    pub drops: Option<Drops>,
    /// The same as --drops, from right to left
    #[arg(long, value_name = "HOW", value_enum, requires = "reverse_through")]
    pub reverse_drops: Option<Drops>,

    /// What is said of the run.
    #[command(flatten)]
    #[serde(flatten)]
    pub run: RunKeys,
    /// Forward packets without queue, rate and delay, to measure the overhead of reading and writing
    #[arg(long)]
    pub bare: bool,
    /// Name of this instance for `status`, `top` and `set` [default: emulate, or emulate-PID if that name is in use]
    #[arg(long, value_name = "NAME", value_parser = penstock_appliance::cli::name, conflicts_with = "socket")]
    pub name: Option<String>,
    /// Path of the control socket [default: /run/penstock/NAME.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Print the report as a JSON object
    #[arg(long)]
    pub json: bool,
    /// Do not print a message when the interfaces are ready
    #[arg(long)]
    pub quiet: bool,
    /// List all algorithms with their parameters and exit
    #[arg(long)]
    pub list: bool,
}

/// The options of the link.
#[derive(Debug, Clone, Default, clap::Args, Serialize)]
pub struct LinkOptions {
    /// Rate from left to right, counted in bits of IP packets: 10Mbit/s
    #[arg(long, required_unless_present_any = ["list", "config", "trace"])]
    pub rate: Option<Rate>,
    /// One-way propagation delay: 20ms [default: 0ms]
    #[arg(long)]
    pub delay: Option<Span>,
    /// Queue limit from left to right: 1000p (packets) or 125kB [default: 1000p]
    #[arg(long)]
    pub limit: Option<Limit>,
    /// Packet loss probability from left to right, after the queue [default: 0]
    #[arg(long, value_name = "PROBABILITY", value_parser = probability)]
    pub loss: Option<f64>,
    /// What the link does to packets from left to right: jitter=5ms, duplicate=0.01, gilbert=to_bad=0.01,to_good=0.3,
    /// reorder=share=0.01,by=5ms, aggregate=interval=4ms, police=rate=5Mbit/s,burst=20kB. Repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub impair: Vec<String>,
    /// Play the rate from left to right from this file in Mahimahi's format
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Queue discipline from left to right [default: droptail]
    #[arg(long, value_name = "NAME")]
    pub aqm: Option<String>,
    /// Parameter of the discipline: target=5ms. Repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Rate from right to left [default: --rate]
    #[arg(long, value_name = "RATE")]
    pub reverse_rate: Option<Rate>,
    /// One-way propagation delay from right to left [default: --delay]
    #[arg(long, value_name = "DELAY")]
    pub reverse_delay: Option<Span>,
    /// Queue limit from right to left [default: 1000p]
    #[arg(long, value_name = "LIMIT")]
    pub reverse_limit: Option<Limit>,
    /// What the link does to packets from right to left. Repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub reverse_impair: Vec<String>,
    /// Play the rate from right to left from this file in Mahimahi's format
    #[arg(long, value_name = "FILE")]
    pub reverse_trace: Option<PathBuf>,
    /// Queue discipline from right to left [default: droptail]
    #[arg(long, value_name = "NAME")]
    pub reverse_aqm: Option<String>,
    /// Parameter of the discipline from right to left. Repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub reverse_set: Vec<String>,

    /// What the link adds to packets: overhead=44, mpu=84, framing=atm, link_layer=pppoe-ptm. Repeatable
    #[arg(long = "layer", value_name = "KEY=VALUE", value_parser = layer_key)]
    pub layer: Vec<(String, String)>,
    /// What it adds from right to left, beside that [default: --layer]. Repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = layer_key)]
    pub reverse_layer: Vec<(String, String)>,
}

/// The options that a run of several wires takes.
const OF_ALL: [&str; 9] = ["config", "duration", "spin", "realtime", "bare", "name", "json", "quiet", "check"];

/// Commands for a running emulator.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Print the counters of the running emulator
    Status(Ask),
    /// List the flows or hosts with the highest rates; a terminal is refreshed every second
    Top(Top),
    /// Change parameters of the running emulator: rate, delay, loss, jitter, duplicate, limit, aqm.PARAMETER (right to left:
    /// reverse_rate, ...)
    #[command(after_help = "Examples:\n  penstock-emulate set rate=2Mbit/s loss=0.01\n  \
                            penstock-emulate set rate=1Mbit/s --confirm 1min\n  penstock-emulate set --keep")]
    Set(Change),
    /// Apply a configuration file to the running emulator; a change that needs a restart is refused
    #[command(
        after_help = "Examples:\n  penstock-emulate apply emulate.toml\n  penstock-emulate apply emulate.toml --for 2h"
    )]
    Apply(Applied),
    /// Undo the last change of the running emulator
    #[command(after_help = "Example:\n  penstock-emulate rollback")]
    Rollback(Ask),
    /// Record packet headers at the left interface, as a capture that `penstock what-if` reads
    #[command(after_help = "Examples:\n  penstock-emulate record 10min\n  \
                            penstock-emulate record 10min --interface eth0 --netns a --out before.pcap\n  penstock what-if before.pcap")]
    Record(Record),
    /// Write an archive for a bug report, without secrets
    #[command(after_help = "Example:\n  penstock-emulate support emulate.toml --out support.tar.gz")]
    Support(Support),
}

/// The validated meaning of [`Options`] for one wire. Pairs have the left end or the way forward first.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name, if the file has several; `None` if it is the only one.
    pub wire: Option<String>,
    /// Number of wires in this process.
    pub wires: usize,
    /// Path of its control socket in the file; `None` for that of the options.
    pub socket: Option<PathBuf>,
    /// The interfaces.
    pub interfaces: [Interface; 2],
    /// What can be changed meanwhile.
    pub settings: Settings,
    /// What the options and the file say of all else.
    pub file: File,
    /// True to forward each packet at once.
    pub bare: bool,
    /// True for reports as JSON.
    pub json: bool,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = &self.interfaces;
        if let Some(wire) = &self.wire {
            write!(f, "{wire}: ")?;
        }
        write!(f, "{left} -> {right}")?;
        for (word, Way { config, .. }) in ["there", "back"].into_iter().zip(&self.settings.0) {
            write!(f, "; {word} {} {} {} {}", config.rate, config.delay, config.aqm.name(), config.limit)?;
        }
        Ok(())
    }
}

impl Plan {
    /// Returns the seed of every random stream.
    pub fn seed(&self) -> u64 {
        self.file.run.seed.unwrap_or(1)
    }

    /// Returns the side whose hosts are the nodes.
    pub fn nodes(&self) -> Side {
        self.file.run.nodes.unwrap_or_default()
    }

    /// Returns what a file says for this wire, which began with these options; refuses a mistake, and what needs a new start.
    pub fn again(&self, options: &Options, name: &str, text: &str) -> Result<Settings, Refusal> {
        // What the file says counts, and no option with which the run began.
        let options = Options { link: LinkOptions::default(), ..options.clone() };
        let plans = options.plans_of(text, name, &()).map_err(|e| Refusal::of(&e))?;
        let Some(new) = plans.into_iter().find(|one| one.wire == self.wire) else {
            let wire = self.wire.as_deref().unwrap_or("this one");
            return Err(Refusal::new(format!("{name} has no wire {wire:?}; end the run, and start it with this file")));
        };
        let Some(key) = self.fixed(&new) else { return Ok(new.settings) };
        let what = format!("`{key}` cannot change while the emulator runs; end it, and start it with this file");
        let place = Source::parse(text, name).map(|source| source.at(&[key], &what));
        Err(place.map_or_else(|_| Refusal::new(format!("{name}: {what}")), |mistake| Refusal::of(&mistake)))
    }

    /// Returns the first key that differs and needs a new start.
    fn fixed(&self, new: &Self) -> Option<&'static str> {
        let (old, other) = (&self.file, &new.file);
        let end = |at: usize| self.interfaces[at] != new.interfaces[at] || old.ends[at].netns != other.ends[at].netns;
        [
            ("left", end(0)),
            ("right", end(1)),
            ("changes", old.changes != other.changes),
            ("through", old.through[0] != other.through[0]),
            ("reverse_through", old.through[1] != other.through[1]),
            ("nodes", self.nodes() != new.nodes()),
            ("hosts", old.hosts != other.hosts),
            ("subscribers", old.subscribers != other.subscribers),
            ("link", self.settings.0[0].stations.len() != new.settings.0[0].stations.len()),
            ("seed", old.run.seed != other.run.seed),
            ("duration", old.run.duration != other.run.duration),
            ("spin", old.run.spin != other.run.spin),
            ("realtime", old.run.realtime != other.run.realtime),
            ("packets", old.run.packets != other.run.packets),
            ("pcapng", old.run.pcapng != other.run.pcapng),
            ("uplink_log", old.run.uplink_log != other.run.uplink_log),
            ("downlink_log", old.run.downlink_log != other.run.downlink_log),
        ]
        .into_iter()
        .find_map(|(key, differs)| differs.then_some(key))
    }
}

impl Options {
    /// Reads the configuration file, if there is one, and applies the options over it; disciplines may be those of a
    /// library. Returns the only wire, or all that the file has. The error is the first mistake in the file or in the
    /// options.
    pub fn plans(&self, library: &dyn Library) -> Result<Vec<Plan>, Error> {
        let Some(path) = &self.config else { return Ok(vec![self.plan_with(&File::default(), library)?]) };
        let failed = |e| Error::User(format!("cannot read the configuration {}: {e}", path.display()));
        self.plans_of(&std::fs::read_to_string(path).map_err(failed)?, &path.to_string_lossy(), library)
    }

    /// Does this with the text of a file.
    fn plans_of(&self, text: &str, name: &str, library: &dyn Library) -> Result<Vec<Plan>, Error> {
        let wires = Wire::all(text, name, library).map_err(Box::new)?;
        if wires[0].name.is_some()
            && let Some(option) = self.of_one_wire()
        {
            let message = format!(
                "{option} is for one wire, and {name} has several; allowed are --duration, --spin, --realtime, --bare, \
                 --name, --json, --quiet and --check"
            );
            return Err(Error::User(message));
        }
        let count = wires.len();
        let plan = |wire: Wire| {
            let plan = self.plan_with(&wire.file, library).map_err(|error| match error {
                Error::User(what) if wire.name.is_some() => {
                    Box::new(Diagnosis::new(text, name, wire.span.clone(), &what)).into()
                }
                other => other,
            })?;
            Ok(Plan { wire: wire.name, wires: count, socket: wire.socket, ..plan })
        };
        wires.into_iter().map(plan).collect()
    }

    /// Returns an option that was given and has a meaning only for one wire; `None` without one.
    fn of_one_wire(&self) -> Option<String> {
        let options = serde_json::to_value(self).unwrap_or_default();
        let given = |value: &Value| ![Value::Null, Value::Bool(false), Value::Array(Vec::new())].contains(value);
        let mut options = options.as_object().into_iter().flatten();
        let (option, _) = options.find(|(key, value)| given(value) && !OF_ALL.contains(&key.as_str()))?;
        Some(format!("--{}", option.replace('_', "-")))
    }

    /// Merges the options with the file: an option has precedence over the file.
    fn plan_with(&self, file: &File, library: &dyn Library) -> Result<Plan, Error> {
        let (run, ends) = (self.run.over(&file.run), self.ends(file));
        let through = [
            through(self.through.as_ref(), self.drops, file.through[0].as_ref()),
            through(self.reverse_through.as_ref(), self.reverse_drops, file.through[1].as_ref()),
        ];
        let interfaces = interfaces(&ends, run.mtu)?;
        let changes = self.link.changes(file)?;
        let settings = self.settings(file, &changes, library)?;
        let file = File { run, ends, through, changes, link: None, aqm: [None, None], ..file.clone() };
        let (wire, wires, socket) = (None, 1, None);
        Ok(Plan { wire, wires, socket, interfaces, settings, file, bare: self.bare, json: self.json })
    }

    fn ends(&self, file: &File) -> [EndKeys; 2] {
        let text = |option: &Option<String>, key: &Option<String>| option.clone().or_else(|| key.clone());
        let end = |[interface, port, netns]: [&Option<String>; 3], address: Option<Cidr>, keys: &EndKeys| EndKeys {
            // An interface that an option has made takes the place of a port.
            port: text(port, &keys.port.clone().filter(|_| interface.is_none())),
            interface: text(interface, &keys.interface),
            netns: text(netns, &keys.netns),
            address: address.or(keys.address),
        };
        [
            end([&self.left, &self.left_port, &self.left_netns], self.left_address, &file.ends[0]),
            end([&self.right, &self.right_port, &self.right_netns], self.right_address, &file.ends[1]),
        ]
    }

    fn settings(&self, file: &File, changes: &[Course], library: &dyn Library) -> Result<Settings, Error> {
        let (own, link) = (&self.link, file.link.as_ref());
        let first = |direction| changes.iter().find_map(|course| course.first_rate(direction));
        let Some(rate) = own.rate.or(link.map(|link| link.rate)).or_else(|| first(Direction::Forward)) else {
            let message = "the rate is missing; try --rate 10Mbit/s, or [link] with a `rate` in the file";
            return Err(Error::User(message.into()));
        };
        let delay = own.delay.or(link.map(|link| link.delay)).unwrap_or_default();
        let limits = link.map_or_else(|| [thousand_packets(), thousand_packets()], |link| link.limits);
        let reverse = link.map(|link| link.reverse).unwrap_or_default();
        let [layer, reverse_layer] = layers(own, link.map(|link| link.layers))?;
        let there = Config {
            aqm: discipline("--aqm", &own.aqm, &own.set, &file.aqm[0], library)?,
            rate,
            layer,
            delay,
            limit: own.limit.unwrap_or(limits[0]),
        };
        let back = Config {
            aqm: discipline("--reverse-aqm", &own.reverse_aqm, &own.reverse_set, &file.aqm[1], library)?,
            rate: own.reverse_rate.or(reverse.rate).unwrap_or(rate),
            layer: reverse_layer,
            delay: own.reverse_delay.or(reverse.delay).unwrap_or(delay),
            limit: own.reverse_limit.unwrap_or(limits[1]),
        };
        let loss = own.loss.or(link.map(|link| link.loss)).unwrap_or_default();
        let impairments = link.map(|link| link.impairments).unwrap_or_default();
        let there = Way {
            config: there,
            loss,
            stations: link.map(|link| link.stations.clone()).unwrap_or_default(),
            impairments: impaired("--impair", impairments[0], &own.impair)?,
        };
        let back = Way {
            config: back,
            loss: 0.0,
            stations: Vec::new(),
            impairments: impaired("--reverse-impair", impairments[1], &own.reverse_impair)?,
        };
        Ok(Settings([there, back]))
    }
}

fn interfaces(ends: &[EndKeys; 2], mtu: Option<u16>) -> Result<[Interface; 2], Error> {
    match ends.each_ref().map(|end| end.port.clone()) {
        [None, None] => tuns(ends, mtu.unwrap_or(1500)).map(|tuns| tuns.map(Interface::Tun)),
        [Some(_), Some(_)] if mtu.is_some() => {
            Err(Error::User("`mtu` is for interfaces that are made; ports have their own: ip link set NAME mtu".into()))
        }
        [Some(left), Some(right)] => Ok([left, right].map(Interface::Port)),
        _ => Err(Error::User(
            "both ends must be ports, or none: frames of a port have headers of Ethernet, which packets of a TUN interface \
             lack; give --left-port and --right-port"
                .into(),
        )),
    }
}

fn tuns(ends: &[EndKeys; 2], mtu: u16) -> Result<[tun::Config; 2], Error> {
    let tuns = [0, 1].map(|at| {
        let name = ends[at].interface.clone().unwrap_or_else(|| INTERFACES[at].into());
        let default = Cidr { address: [10, 77, 0, at as u8 + 1].into(), prefix: 24 };
        tun::Config { name, address: ends[at].address.unwrap_or(default), mtu }
    });
    let [here, there] = tuns.each_ref().map(|tun| tun.address.address);
    if here == there || here.is_ipv4() != there.is_ipv4() {
        let message = "--left-address and --right-address must be two addresses of one family";
        return Err(Error::User(message.into()));
    }
    Ok(tuns)
}

fn through(netns: Option<&String>, drops: Option<Drops>, file: Option<&ThroughKeys>) -> Option<ThroughKeys> {
    let netns = netns.or(file.map(|keys| &keys.netns))?.clone();
    Some(ThroughKeys { netns, drops: drops.or(file.map(|keys| keys.drops)).unwrap_or_default() })
}

impl LinkOptions {
    /// Returns how the link changes: by the file, and by traces that options name in place of changes of the file.
    fn changes(&self, file: &File) -> Result<Vec<Course>, Error> {
        let traces = [(Direction::Forward, &self.trace), (Direction::Reverse, &self.reverse_trace)];
        let given: Vec<_> =
            traces.into_iter().filter_map(|(direction, path)| Some((direction, path.as_ref()?))).collect();
        if given.is_empty() {
            return Ok(file.changes.clone());
        }
        if !file.changes.is_empty() {
            let message =
                "the file has [[changes]] of the link; take them out, or leave out --trace and --reverse-trace";
            return Err(Error::User(message.into()));
        }
        given.into_iter().map(|(direction, path)| Course::of_trace(direction, path).map_err(Error::User)).collect()
    }
}

/// Returns impairments after those of the options, which have the form KEY=VALUE.
fn impaired(option: &str, present: Impairments, written: &[String]) -> Result<Impairments, Error> {
    written.iter().try_fold(present, |present, text| {
        let set = text.split_once('=').map(|(key, value)| impair::set(present, key.trim(), value.trim()));
        let form = || Err(format!("is not KEY=VALUE with one of the keys {}", Impairments::KEYS.join(", ")));
        set.unwrap_or_else(form).map_err(|what| Error::User(format!("{option} {text}: {what}")))
    })
}

/// Returns what the link adds, by the options and else by the file.
fn layers(own: &LinkOptions, file: Option<[LinkLayer; 2]>) -> Result<[LinkLayer; 2], Error> {
    let read = |written: &[(String, String)]| {
        let mut keys = LayerKeys::default();
        written.iter().filter_map(|(key, value)| keys.set(key, value)).collect::<Result<(), ConfigError>>()?;
        Ok(keys)
    };
    let user = |option: &'static str| move |e: ConfigError| Error::User(format!("{option} {}: {}", e.key, e.message));
    let there = read(&own.layer).and_then(|keys| keys.over(file.map_or_else(LinkLayer::default, |both| both[0])));
    let there = there.map_err(user("--layer"))?;
    let otherwise = file.filter(|_| own.layer.is_empty()).map_or(there, |both| both[1]);
    let back = read(&own.reverse_layer).and_then(|keys| keys.over(otherwise)).map_err(user("--reverse-layer"))?;
    Ok([there, back])
}

fn layer_key(text: &str) -> Result<(String, String), String> {
    let allowed = || format!("allowed is KEY=VALUE with one of {}", LayerKeys::KEYS.join(", "));
    let (key, value) = text.split_once('=').ok_or_else(allowed)?;
    if LayerKeys::KEYS.contains(&key) { Ok((key.into(), value.into())) } else { Err(allowed()) }
}

fn probability(text: &str) -> Result<f64, String> {
    let value = text.parse().map_err(|_| format!("{text:?} is no number; allowed is a probability such as 0.01"))?;
    penstock_grammar::link::loss("loss", value).map(|()| value).map_err(|e| e.to_string())
}

/// Returns the discipline that an option names, or without one that of the file, with the parameters of the options.
fn discipline(
    option: &'static str,
    name: &Option<String>,
    set: &[String],
    file: &Option<AnyConfig>,
    library: &dyn Library,
) -> Result<AnyConfig, Error> {
    let config = match (name, file) {
        (Some(name), _) => config_from_library(name, set, library),
        (None, Some(config)) => config_over(config, set, library),
        (None, None) => config_from_library("droptail", set, library),
    };
    config.map_err(|e| Error::User(format!("{option}: {e}; `--list` shows every algorithm with its parameters")))
}

/// Returns a text that lists every algorithm with its parameters.
pub fn listing() -> String {
    let mut text = String::new();
    for entry in entries() {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{}: {} ({})", entry.name, entry.about, entry.source);
        for parameter in entry.parameters {
            let default = match &parameter.default {
                serde_json::Value::Null => "from the link".to_owned(),
                serde_json::Value::String(value) => value.clone(),
                value => value.to_string(),
            };
            let _ = writeln!(text, "    {} [{default}]  {}", parameter.name, parameter.about);
        }
    }
    text
}
