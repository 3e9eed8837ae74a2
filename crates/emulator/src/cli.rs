//! The command line of `penstock-emulate`.

use crate::end::Interface;
use crate::error::Error;
use crate::file::{Contents, Drops, EndKeys, File, INTERFACES, ThroughKeys};
use crate::through;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use penstock_appliance::cli::{Applied, Ask, Change, Record, Support, Top};
use penstock_conntrack::Named;
use penstock_core::foreign::Library;
use penstock_core::registry::{AnyConfig, entries};
use penstock_core::settings::{config_from_library, config_over};
use penstock_core::units::{Limit, Rate, Span};
use penstock_grammar::Diagnosis;
use penstock_grammar::link::thousand_packets;
use penstock_grammar::stations::StationSpec;
use penstock_linux::tun::{self, Cidr};
use penstock_shaper::bottleneck;
use penstock_shaper::nodes::Side;
use penstock_shaper::numbered::Host;
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
#[derive(Debug, Clone, Parser)]
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
    pub left_address: Option<Cidr>,
    /// Address of the right interface [default: 10.77.0.2/24]
    #[arg(long, value_name = "CIDR")]
    pub right_address: Option<Cidr>,
    /// MTU of both interfaces [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..=65_535))]
    pub mtu: Option<u16>,

    /// Rate from left to right, counted in bits of IP packets: 10Mbit/s
    #[arg(long, required_unless_present_any = ["list", "config"])]
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
    /// Queue discipline from right to left [default: droptail]
    #[arg(long, value_name = "NAME")]
    pub reverse_aqm: Option<String>,
    /// Parameter of the discipline from right to left. Repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub reverse_set: Vec<String>,

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

    /// Side whose hosts share the link, for disciplines with shares per host (qrm). A host is an IPv4 address or a /64 prefix
    /// of IPv6 [default: left]
    #[arg(long, value_parser = side(), value_name = "SIDE")]
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
    pub spin: bool,
    /// Run with real-time priority (SCHED_FIFO) and disable CPU idle states, which needs more power
    #[arg(long, conflicts_with = "spin")]
    pub realtime: bool,
    /// Forward packets without queue, rate and delay, to measure the overhead of reading and writing
    #[arg(long)]
    pub bare: bool,
    /// Name of this instance for `status`, `top` and `set` [default: emulate, or emulate-PID if that name is in use]
    #[arg(long, value_name = "NAME", value_parser = penstock_appliance::cli::name, conflicts_with = "socket")]
    pub name: Option<String>,
    /// Path of the control socket [default: /run/penstock/NAME.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
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

/// Commands for a running emulator.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Print the counters of the running emulator
    Status(Ask),
    /// List the flows or hosts with the highest rates; a terminal is refreshed every second
    Top(Top),
    /// Change parameters of the running emulator: rate, delay, loss, limit, aqm.PARAMETER (right to left: reverse_rate, ...)
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

/// Reads a side.
fn side() -> impl TypedValueParser<Value = Side> {
    PossibleValuesParser::new(["left", "right", "none"]).map(|word| match word.as_str() {
        "right" => Side::Right,
        "none" => Side::None,
        _ => Side::Left,
    })
}

/// The validated meaning of [`Options`] for one wire.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name, if the file has several; `None` if it is the only one.
    pub wire: Option<String>,
    /// Number of wires in this process.
    pub wires: usize,
    /// Path of its control socket in the file; `None` for that of the options.
    pub socket: Option<PathBuf>,
    /// The left and the right interface.
    pub interfaces: [Interface; 2],
    /// The namespaces of the left and the right interface; `None` is the current one.
    pub netns: [Option<String>; 2],
    /// The forward and the reverse bottleneck.
    pub bottlenecks: [bottleneck::Config; 2],
    /// The queues of the kernel before them; `None` without one.
    pub through: [Option<through::Config>; 2],
    /// The probability with which the wire loses a packet from left to right.
    pub loss: f64,
    /// The side whose hosts are the nodes.
    pub nodes: Side,
    /// Seed of every random stream.
    pub seed: u64,
    /// The seed of the keys of hashes: the seed, if one was given; otherwise they are drawn from the system.
    pub keys: Option<u64>,
    /// The channels of the stations behind the wire from left to right; empty without stations.
    pub stations: Vec<StationSpec>,
    /// Hosts that have the numbers of flows; empty if connections have them.
    pub hosts: Vec<Host>,
    /// Subscribers with names.
    pub subscribers: Vec<Named>,
    /// Duration of the run; `None` to run until a signal comes.
    pub duration: Option<Span>,
    /// True if the loop never sleeps.
    pub spin: bool,
    /// True for real-time scheduling (SCHED_FIFO).
    pub realtime: bool,
    /// True to forward each packet at once.
    pub bare: bool,
    /// The file for the journal of packets; `None` without one.
    pub packets: Option<PathBuf>,
    /// The file for the headers of packets; `None` without one.
    pub pcapng: Option<PathBuf>,
    /// The files for the logs of the links, forward first; `None` without one.
    pub logs: [Option<PathBuf>; 2],
    /// True for reports as JSON.
    pub json: bool,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = &self.interfaces;
        let [forward, reverse] = &self.bottlenecks;
        if let Some(wire) = &self.wire {
            write!(f, "{wire}: ")?;
        }
        write!(f, "{left} -> {right}")?;
        for (way, b) in [("there", forward), ("back", reverse)] {
            write!(f, "; {way} {} {} {} {}", b.rate, b.delay, b.aqm.name(), b.limit)?;
        }
        Ok(())
    }
}

impl Options {
    /// Reads the configuration file, if there is one, and applies the options over it; disciplines may be those of a
    /// library. Returns the only wire, or all that the file has.
    ///
    /// # Errors
    /// Returns the first mistake in the file or in the options.
    pub fn plans(&self, library: &dyn Library) -> Result<Vec<Plan>, Error> {
        let Some(path) = &self.config else { return Ok(vec![self.plan_with(&File::default(), library)?]) };
        let text = std::fs::read_to_string(path).map_err(|source| Error::NoFile { path: path.clone(), source })?;
        self.plans_of(&text, &path.to_string_lossy(), library)
    }

    /// Returns the only wire of a text, or all that it has.
    ///
    /// # Errors
    /// Returns the first mistake in the text or in the options.
    pub fn plans_of(&self, text: &str, name: &str, library: &dyn Library) -> Result<Vec<Plan>, Error> {
        let wires = match Contents::parse(text, name, library).map_err(Box::new)? {
            Contents::One(file) => return Ok(vec![self.plan_with(&file, library)?]),
            Contents::Several(wires) => wires,
        };
        if let Some(option) = self.of_one_wire() {
            let message = format!(
                "{option} is for one wire, and {name} has several; allowed are --duration, --spin, --realtime, --bare, \
                 --name, --json, --quiet and --check"
            );
            return Err(Error::Options(message));
        }
        let count = wires.len();
        let plan = |wire: crate::file::Wire| {
            let plan = self.plan_with(&wire.file, library).map_err(|error| match error {
                Error::Options(what) => Box::new(Diagnosis::new(text, name, wire.span.clone(), &what)).into(),
                other => other,
            })?;
            Ok(Plan { wire: Some(wire.name), wires: count, socket: wire.socket, ..plan })
        };
        wires.into_iter().map(plan).collect()
    }

    /// Returns an option that was given and has a meaning only for one wire; `None` without one.
    fn of_one_wire(&self) -> Option<&'static str> {
        let given = [
            ("--left", self.left.is_some()),
            ("--right", self.right.is_some()),
            ("--left-port", self.left_port.is_some()),
            ("--right-port", self.right_port.is_some()),
            ("--left-netns", self.left_netns.is_some()),
            ("--right-netns", self.right_netns.is_some()),
            ("--left-address", self.left_address.is_some()),
            ("--right-address", self.right_address.is_some()),
            ("--mtu", self.mtu.is_some()),
            ("--rate", self.rate.is_some()),
            ("--delay", self.delay.is_some()),
            ("--limit", self.limit.is_some()),
            ("--loss", self.loss.is_some()),
            ("--aqm", self.aqm.is_some()),
            ("--set", !self.set.is_empty()),
            ("--reverse-rate", self.reverse_rate.is_some()),
            ("--reverse-delay", self.reverse_delay.is_some()),
            ("--reverse-limit", self.reverse_limit.is_some()),
            ("--reverse-aqm", self.reverse_aqm.is_some()),
            ("--reverse-set", !self.reverse_set.is_empty()),
            ("--through", self.through.is_some()),
            ("--reverse-through", self.reverse_through.is_some()),
            ("--nodes", self.nodes.is_some()),
            ("--seed", self.seed.is_some()),
            ("--socket", self.socket.is_some()),
            ("--packets", self.packets.is_some()),
            ("--pcapng", self.pcapng.is_some()),
            ("--uplink-log", self.uplink_log.is_some()),
            ("--downlink-log", self.downlink_log.is_some()),
        ];
        given.into_iter().find_map(|(option, is)| is.then_some(option))
    }

    /// Merges the options with the file: an option has precedence over the file.
    fn plan_with(&self, file: &File, library: &dyn Library) -> Result<Plan, Error> {
        let run = &file.run;
        let spin = !self.realtime && (self.spin || run.spin.unwrap_or_default());
        Ok(Plan {
            wire: None,
            wires: 1,
            socket: None,
            interfaces: self.interfaces(file)?,
            netns: [
                self.left_netns.clone().or_else(|| file.ends[0].netns.clone()),
                self.right_netns.clone().or_else(|| file.ends[1].netns.clone()),
            ],
            bottlenecks: self.bottlenecks(file, library)?,
            through: [
                through(self.through.as_ref(), self.drops, file.through[0].as_ref()),
                through(self.reverse_through.as_ref(), self.reverse_drops, file.through[1].as_ref()),
            ],
            loss: self.loss.or(file.link.as_ref().map(|link| link.loss)).unwrap_or_default(),
            nodes: self.nodes.or(run.nodes).unwrap_or_default(),
            seed: self.seed.or(run.seed).unwrap_or(1),
            keys: self.seed.or(run.seed),
            stations: file.link.as_ref().map(|link| link.stations.clone()).unwrap_or_default(),
            hosts: file.hosts.clone(),
            subscribers: file.subscribers.clone(),
            duration: self.duration.or(run.duration),
            spin,
            realtime: !spin && (self.realtime || run.realtime.unwrap_or_default()),
            bare: self.bare,
            packets: self.packets.clone().or_else(|| run.packets.clone()),
            pcapng: self.pcapng.clone().or_else(|| run.pcapng.clone()),
            logs: [
                self.uplink_log.clone().or_else(|| run.uplink_log.clone()),
                self.downlink_log.clone().or_else(|| run.downlink_log.clone()),
            ],
            json: self.json,
        })
    }

    fn interfaces(&self, file: &File) -> Result<[Interface; 2], Error> {
        let port = |option: &Option<String>, tun: &Option<String>, keys: &EndKeys| {
            option.clone().or_else(|| keys.port.clone().filter(|_| tun.is_none()))
        };
        let left = port(&self.left_port, &self.left, &file.ends[0]);
        let right = port(&self.right_port, &self.right, &file.ends[1]);
        match (left, right) {
            (None, None) => self.tuns(file).map(|tuns| tuns.map(Interface::Tun)),
            (Some(_), Some(_)) if self.mtu.or(file.run.mtu).is_some() => {
                Err(Error::Options("`mtu` is for interfaces that are made; ports have their own: ip link set NAME mtu".into()))
            }
            (Some(left), Some(right)) => Ok([left, right].map(Interface::Port)),
            _ => Err(Error::Options(
                "both ends must be ports, or none: frames of a port have headers of Ethernet, which packets of a TUN interface \
                 lack; give --left-port and --right-port"
                    .into(),
            )),
        }
    }

    fn tuns(&self, file: &File) -> Result<[tun::Config; 2], Error> {
        let mtu = self.mtu.or(file.run.mtu).unwrap_or(1500);
        let interface = |name: &Option<String>, address: Option<Cidr>, keys: &EndKeys, default: (&str, [u8; 4])| {
            let name = name.clone().or_else(|| keys.interface.clone()).unwrap_or_else(|| default.0.into());
            let address = address.or(keys.address).unwrap_or(Cidr { address: default.1.into(), prefix: 24 });
            tun::Config { name, address, mtu }
        };
        let left = interface(&self.left, self.left_address, &file.ends[0], (INTERFACES[0], [10, 77, 0, 1]));
        let right = interface(&self.right, self.right_address, &file.ends[1], (INTERFACES[1], [10, 77, 0, 2]));
        let (here, there) = (left.address.address, right.address.address);
        if here == there || here.is_ipv4() != there.is_ipv4() {
            let message = "--left-address and --right-address must be two addresses of one family";
            return Err(Error::Options(message.into()));
        }
        Ok([left, right])
    }

    fn bottlenecks(&self, file: &File, library: &dyn Library) -> Result<[bottleneck::Config; 2], Error> {
        let link = file.link.as_ref();
        let Some(rate) = self.rate.or(link.map(|link| link.rate)) else {
            let message = "the rate is missing; try --rate 10Mbit/s, or [link] with a `rate` in the file";
            return Err(Error::Options(message.into()));
        };
        let delay = self.delay.or(link.map(|link| link.delay)).unwrap_or_default();
        let limit = self.limit.or(link.map(|link| link.limits[0])).unwrap_or_else(thousand_packets);
        let reverse_limit = self.reverse_limit.or(link.map(|link| link.limits[1]));
        let reverse = link.map(|link| link.reverse).unwrap_or_default();
        let [there, back] = &file.aqm;
        Ok([
            bottleneck::Config { aqm: discipline("--aqm", &self.aqm, &self.set, there, library)?, rate, delay, limit },
            bottleneck::Config {
                aqm: discipline("--reverse-aqm", &self.reverse_aqm, &self.reverse_set, back, library)?,
                rate: self.reverse_rate.or(reverse.rate).unwrap_or(rate),
                delay: self.reverse_delay.or(reverse.delay).unwrap_or(delay),
                limit: reverse_limit.unwrap_or_else(thousand_packets),
            },
        ])
    }
}

fn through(netns: Option<&String>, drops: Option<Drops>, file: Option<&ThroughKeys>) -> Option<through::Config> {
    let netns = netns.or(file.map(|keys| &keys.netns))?.clone();
    let drops = drops.or(file.and_then(|keys| keys.drops)).unwrap_or_default().reason();
    Some(through::Config { netns, drops })
}

fn probability(text: &str) -> Result<f64, String> {
    let value = text.parse().map_err(|_| format!("{text:?} is no number; allowed is a probability such as 0.01"))?;
    penstock_grammar::link::loss("loss", value).map(|()| value).map_err(|e| e.to_string())
}

/// Returns the discipline that an option names, with the parameters of the options. Without such an option, returns the
/// discipline of the file with these parameters over its own.
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
    config.map_err(|source| Error::Settings { option, source })
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

#[cfg(test)]
impl Options {
    /// Returns the plan of the only wire.
    pub fn plan(&self) -> Result<Plan, Error> {
        self.plans(&()).map(|mut plans| plans.remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use penstock_core::aqm::codel;
    use penstock_core::foreign::Own;
    use penstock_core::qdisc::DropReason;
    use penstock_core::registry::NAMES;
    use penstock_core::settings::config_from_settings;
    use penstock_grammar::fields;
    use penstock_grammar::link::Link;

    fn parse(extra: &[&str]) -> Result<Options, clap::Error> {
        Options::try_parse_from([&["penstock-emulate", "--rate", "10Mbit/s"], extra].concat())
    }

    fn plan_error(extra: &[&str]) -> String {
        parse(extra).unwrap().plan().unwrap_err().to_string()
    }

    #[test]
    fn the_command_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn the_way_back_is_like_the_way_there_unless_told() {
        let plan = parse(&["--delay", "20ms", "--aqm", "codel"]).unwrap().plan().unwrap();
        let [forward, reverse] = &plan.bottlenecks;
        assert_eq!((forward.aqm.name(), reverse.aqm.name()), ("codel", "droptail"));
        assert_eq!((reverse.rate, reverse.delay), (forward.rate, forward.delay));
        let plan = parse(&["--reverse-rate", "1Mbit/s", "--reverse-delay", "1ms"]).unwrap().plan().unwrap();
        assert_eq!(plan.bottlenecks[1].rate, Rate::from_bps(1_000_000));
        assert_eq!(plan.bottlenecks[1].delay, Span::from_millis(1));
    }

    #[test]
    fn the_wire_loses_packets_if_told_by_option_or_file() {
        assert_eq!(parse(&[]).unwrap().plan().unwrap().loss, 0.0);
        assert_eq!(parse(&["--loss", "0.01"]).unwrap().plan().unwrap().loss, 0.01);
        let lossy = FILE.replace("[link]\n", "[link]\nloss = 0.02\n");
        assert_eq!((planned(&lossy, &[]).loss, planned(&lossy, &["--loss", "0"]).loss), (0.02, 0.0));
        let message = parse(&["--loss", "1.5"]).unwrap_err().to_string();
        assert!(message.contains("--loss") && message.contains("a probability from 0"), "{message}");
    }

    #[test]
    fn nodes_are_the_hosts_on_the_left_unless_told() {
        let side = |extra: &[&str]| parse(extra).unwrap().plan().unwrap().nodes;
        assert_eq!(side(&[]), Side::Left);
        assert_eq!((side(&["--nodes", "right"]), side(&["--nodes", "none"])), (Side::Right, Side::None));
    }

    #[test]
    fn keys_come_from_the_system_unless_a_seed_is_given() {
        let keys = |extra: &[&str]| parse(extra).unwrap().plan().unwrap().keys;
        assert_eq!((keys(&[]), keys(&["--seed", "1"])), (None, Some(1)));
        assert_eq!(planned(FILE, &[]).keys, Some(7));
        let named = planned(&format!("{FILE}[subscribers]\nhouse = [\"10.1.0.0/28\"]\n"), &[]).subscribers;
        assert_eq!(named[0].name, "house");
    }

    #[test]
    fn mistakes_name_the_option_and_what_is_allowed() {
        let unit = parse(&["--delay", "20"]).unwrap_err().to_string();
        assert!(unit.contains("--delay") && unit.contains("\"5ms\""), "{unit}");
        let aqm = plan_error(&["--aqm", "codle"]);
        assert!(aqm.contains("--aqm") && aqm.contains("did you mean \"codel\""), "{aqm}");
        let key = plan_error(&["--aqm", "codel", "--set", "traget=5ms"]);
        assert!(key.contains("did you mean `target`"), "{key}");
        let side = parse(&["--nodes", "middle"]).unwrap_err().to_string();
        assert!(side.contains("--nodes") && side.contains("left, right, none"), "{side}");
        let same = plan_error(&["--left-address", "10.77.0.2/24"]);
        assert!(same.contains("two addresses"), "{same}");
    }

    fn planned(file: &str, options: &[&str]) -> Plan {
        let options = Options::try_parse_from([&["penstock-emulate", "--config", "f"], options].concat()).unwrap();
        options.plan_with(&File::parse(file, "f").unwrap(), &()).unwrap()
    }

    const FILE: &str = "seed = 7\nspin = true\n[link]\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nreverse_rate = \"1Mbit/s\"\n\
                        [aqm]\nname = \"codel\"\ntarget = \"10ms\"\ninterval = \"200ms\"\n[left]\nnetns = \"a\"\n";

    #[test]
    fn a_file_says_what_options_say() {
        let by_file = planned(FILE, &[]);
        let extra = ["--delay", "20ms", "--reverse-rate", "1Mbit/s", "--aqm", "codel", "--set", "target=10ms"];
        let more = ["--set", "interval=200ms", "--left-netns", "a", "--seed", "7", "--spin"];
        assert_eq!(by_file, parse(&[&extra[..], &more].concat()).unwrap().plan().unwrap());
    }

    /// Each key that all links have changes the plan, or is refused at its line.
    #[test]
    fn no_key_of_links_is_ignored() {
        let link = |keys: &str| File::parse(&format!("[link]\n{keys}\n"), "f");
        let plain = "rate = \"2Mbit/s\"\ndelay = \"1ms\"";
        for key in fields::of::<Link>() {
            let other = match *key {
                "rate" => plain.replace('2', "3"),
                "delay" => plain.replace('1', "5"),
                "limit" | "reverse_limit" => format!("{plain}\n{key} = \"9p\""),
                "reverse_rate" => format!("{plain}\n{key} = \"3Mbit/s\""),
                "reverse_delay" => format!("{plain}\n{key} = \"5ms\""),
                "loss" => format!("{plain}\nloss = 0.01"),
                other => panic!("write a value of `{other}` here, other than its default"),
            };
            match link(&other) {
                Ok(_) => assert_ne!(
                    planned(&format!("[link]\n{other}"), &[]),
                    planned(&format!("[link]\n{plain}"), &[]),
                    "{key}"
                ),
                Err(wrong) => assert!(wrong.line == 4 && wrong.what.contains(key), "{wrong}"),
            }
        }
    }

    #[test]
    fn several_wires_take_no_option_of_one() {
        let text = "[[wire]]\nname = \"a\"\nlink = { rate = \"1Mbit/s\", delay = \"0ms\" }\n[[wire]]\nname = \"b\"\n\
                    link = { rate = \"2Mbit/s\", delay = \"0ms\" }\nleft.netns = \"c\"\nright.netns = \"d\"\n";
        let plans = |text: &str, words: &[&str]| {
            let words = [&["penstock-emulate", "--config", "f"], words].concat();
            Options::try_parse_from(words).unwrap().plans_of(text, "f", &())
        };
        let found = plans(text, &["--duration", "1s", "--spin"]).unwrap();
        let named: Vec<_> = found.iter().map(|plan| (plan.wire.as_deref().unwrap(), plan.spin)).collect();
        assert_eq!(named, [("a", true), ("b", true)]);
        assert_eq!(
            found[1].to_string(),
            "b: penstock0 10.77.0.1 -> penstock1 10.77.0.2; there 2Mbit/s 0ns droptail 1000p; back 2Mbit/s 0ns droptail 1000p"
        );
        for option in [["--rate", "1Mbit/s"], ["--seed", "1"], ["--aqm", "codel"], ["--packets", "p"]] {
            let error = plans(text, &option).unwrap_err().to_string();
            assert!(error.contains(option[0]) && error.contains("--duration"), "{error}");
        }
        let mixed = text.replace("left.netns = \"c\"", "left.port = \"eth0\"");
        let Error::File(mistake) = plans(&mixed, &[]).unwrap_err() else { panic!("with its place") };
        assert!(mistake.line == 4 && mistake.what.contains("both ends must be ports"), "{mistake}");
    }

    #[test]
    fn an_option_counts_instead_of_the_file() {
        let plan = planned(FILE, &["--rate", "5Mbit/s", "--seed", "9", "--realtime", "--left-netns", "b"]);
        let [forward, reverse] = &plan.bottlenecks;
        assert_eq!((forward.rate, reverse.rate), (Rate::from_bps(5_000_000), Rate::from_bps(1_000_000)));
        assert_eq!((plan.seed, plan.spin, plan.realtime), (9, false, true));
        assert_eq!(plan.netns, [Some("b".into()), None]);
    }

    #[test]
    fn set_changes_the_discipline_of_the_file_and_aqm_replaces_it() {
        let aqm = |options: &[&str]| planned(FILE, options).bottlenecks[0].aqm.clone();
        let codel = |settings: &[&str]| {
            config_from_settings("codel", &settings.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(aqm(&["--set", "target=7ms"]), codel(&["target=7ms", "interval=200ms"]));
        assert_eq!(aqm(&["--aqm", "codel", "--set", "target=7ms"]), codel(&["target=7ms"]));
        assert_eq!(aqm(&["--aqm", "pie"]).name(), "pie");
    }

    #[test]
    fn each_direction_may_go_through_a_kernel() {
        let plan = parse(&["--through", "q", "--drops", "dequeue", "--reverse-through", "r"]).unwrap().plan().unwrap();
        let through = |netns: &str, drops| Some(through::Config { netns: netns.into(), drops });
        assert_eq!(plan.through, [through("q", DropReason::Dequeue), through("r", DropReason::Overflow)]);
        assert_eq!(parse(&[]).unwrap().plan().unwrap().through, [None, None]);
        let file = format!("through = {{ netns = \"q\", drops = \"early\" }}\n{FILE}");
        assert_eq!(planned(&file, &[]).through, [through("q", DropReason::Early), None]);
        assert_eq!(planned(&file, &["--through", "r"]).through[0], through("r", DropReason::Early));
        assert!(parse(&["--drops", "early"]).unwrap_err().to_string().contains("--through"));
    }

    #[test]
    fn a_file_without_a_link_needs_the_rate_from_an_option() {
        let options = Options::try_parse_from(["penstock-emulate", "--config", "f"]).unwrap();
        let message = options.plan_with(&File::default(), &()).unwrap_err().to_string();
        assert!(message.contains("--rate 10Mbit/s") && message.contains("[link]"), "{message}");
        let missing = Options { config: Some("/nowhere/emulate.toml".into()), ..options }.plan().unwrap_err();
        assert!(missing.to_string().contains("/nowhere/emulate.toml") && missing.exit_code() == 2, "{missing}");
    }

    #[test]
    fn a_program_with_algorithms_of_its_own_names_them_in_options_and_files() {
        let own = Own::new().with_aqm::<codel::Config>("mine");
        let planned = |words: &[&str], file: &str| {
            let options = Options::try_parse_from([&["x", "--rate", "1Mbit/s"], words].concat()).unwrap();
            options.plan_with(&File::parse_with(file, "f", &own).unwrap(), &own)
        };
        let target = |plan: Plan| serde_json::to_value(&plan.bottlenecks[0].aqm).unwrap()["target"].clone();
        assert_eq!(target(planned(&["--aqm", "mine", "--set", "target=7ms"], "").unwrap()), "7ms");
        let file = "[aqm]\nname = \"mine\"\ntarget = \"6ms\"\n";
        assert_eq!(target(planned(&[], file).unwrap()), "6ms");
        let over = planned(&["--set", "target=8ms"], file).unwrap();
        assert_eq!((over.bottlenecks[0].aqm.name().to_owned(), target(over)), ("mine".to_owned(), "8ms".into()));
        let wrong = planned(&["--aqm", "mine", "--set", "traget=7ms"], "").unwrap_err().to_string();
        assert!(wrong.contains("--aqm") && wrong.contains("unknown field `traget`"), "{wrong}");
        assert!(plan_error(&["--aqm", "mine"]).contains("no algorithm \"mine\""), "only in that program");
    }

    #[test]
    fn the_listing_names_every_algorithm() {
        let text = listing();
        for name in NAMES {
            assert!(text.lines().any(|line| line.starts_with(&format!("{name}: "))), "{name} is missing");
        }
    }
}
