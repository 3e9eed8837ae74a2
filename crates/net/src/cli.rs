//! The command line of `penstock-emulate`.

use crate::bottleneck;
use crate::error::Error;
use crate::nodes::Side;
use crate::tun::{self, Cidr};
use clap::Parser;
use penstock_core::registry::entries;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Limit, Rate, Span};
use std::fmt::{self, Write as _};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ip netns add a; ip netns add b
  penstock-emulate --left-netns a --right-netns b --rate 10Mbit/s --delay 20ms --limit 1000p --aqm codel
  ip netns exec b iperf3 -s -1 &
  ip netns exec a iperf3 -c 10.77.0.2 -t 10

  A thin satellite link whose queue never drops, for one minute, with the report as JSON:
  penstock-emulate --left-netns a --right-netns b --rate 2Mbit/s --delay 300ms --limit 150kB \\
      --aqm pink --set c=0.95 --duration 60s --json

Exit codes: 0 after a run, 1 for a failure while running, 2 for a mistake that you can put right.";

/// A bottleneck between two network namespaces, with any queue discipline of Penstock before it.
///
/// Makes a TUN interface in each namespace. What the left one sends waits in the queue, is transmitted at the rate, and
/// comes out of the right one after the delay; and back. Needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN.
#[derive(Debug, Clone, Parser)]
#[command(name = "penstock-emulate", version, after_help = EXAMPLES)]
pub struct Options {
    /// Name of the interface on the left
    #[arg(long, default_value = "penstock0", value_name = "NAME")]
    pub left: String,
    /// Name of the interface on the right
    #[arg(long, default_value = "penstock1", value_name = "NAME")]
    pub right: String,
    /// Namespace of the left interface: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NS")]
    pub left_netns: Option<String>,
    /// Namespace of the right interface [default: the current one]
    #[arg(long, value_name = "NS")]
    pub right_netns: Option<String>,
    /// Address of the left interface
    #[arg(long, default_value = "10.77.0.1/24", value_name = "CIDR")]
    pub left_address: Cidr,
    /// Address of the right interface
    #[arg(long, default_value = "10.77.0.2/24", value_name = "CIDR")]
    pub right_address: Cidr,
    /// Largest IP packet on both interfaces
    #[arg(long, default_value_t = 1500, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..=65_535))]
    pub mtu: u16,

    /// Rate from left to right, in bits of IP packets: 10Mbit/s
    #[arg(long, required_unless_present = "list")]
    pub rate: Option<Rate>,
    /// One-way delay after transmission: 20ms
    #[arg(long, default_value = "0ms")]
    pub delay: Span,
    /// What the queue may hold: 1000p (packets) or 125kB
    #[arg(long, default_value = "1000p")]
    pub limit: Limit,
    /// Queue discipline from left to right
    #[arg(long, default_value = "droptail", value_name = "NAME")]
    pub aqm: String,
    /// A parameter of the discipline, as often as needed: target=5ms
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Rate from right to left [default: --rate]
    #[arg(long, value_name = "RATE")]
    pub reverse_rate: Option<Rate>,
    /// Delay from right to left [default: --delay]
    #[arg(long, value_name = "DELAY")]
    pub reverse_delay: Option<Span>,
    /// What the queue on the right may hold
    #[arg(long, default_value = "1000p", value_name = "LIMIT")]
    pub reverse_limit: Limit,
    /// Queue discipline from right to left
    #[arg(long, default_value = "droptail", value_name = "NAME")]
    pub reverse_aqm: String,
    /// A parameter of the reverse discipline
    #[arg(long, value_name = "KEY=VALUE")]
    pub reverse_set: Vec<String>,

    /// Whose hosts are the nodes of disciplines that divide the link among nodes (qrm), each with all its flows. A host is
    /// an IPv4 address or a /64 of IPv6
    #[arg(long, value_enum, default_value_t, value_name = "SIDE")]
    pub nodes: Side,

    /// Seed of every random stream
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Stop after this time [default: at Ctrl-C or SIGTERM]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Span>,
    /// Never sleep: keeps one core busy. Only for machines with an idle core; on a busy one it makes lateness worse
    #[arg(long)]
    pub spin: bool,
    /// Run before all ordinary processes (SCHED_FIFO)
    #[arg(long, conflicts_with = "spin")]
    pub realtime: bool,
    /// Write what became of each packet to this file, as CSV, at the end
    #[arg(long, value_name = "FILE")]
    pub packets: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Say nothing when the interfaces are ready
    #[arg(long)]
    pub quiet: bool,
    /// List every algorithm with its parameters and exit
    #[arg(long)]
    pub list: bool,
}

/// What [`Options`] mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Left and right interface.
    pub interfaces: [tun::Config; 2],
    /// Forward and reverse bottleneck.
    pub bottlenecks: [bottleneck::Config; 2],
    /// The side whose hosts are the nodes.
    pub nodes: Side,
    /// Seed.
    pub seed: u64,
    /// Stop after this time.
    pub duration: Option<Span>,
    /// Never sleep.
    pub spin: bool,
    /// SCHED_FIFO.
    pub realtime: bool,
    /// Where to write what became of each packet.
    pub packets: Option<PathBuf>,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = &self.interfaces;
        let [forward, reverse] = &self.bottlenecks;
        write!(f, "ready: {} {} -> {} {}", left.name, left.address.address, right.name, right.address.address)?;
        for (way, b) in [("there", forward), ("back", reverse)] {
            write!(f, "; {way} {} {} {} {}", b.rate, b.delay, b.aqm.name(), b.limit)?;
        }
        Ok(())
    }
}

impl Options {
    /// Checks what clap cannot.
    ///
    /// # Errors
    /// The first mistake.
    pub fn plan(&self) -> Result<Plan, Error> {
        let Some(rate) = self.rate else { return Err(Error::Options("--rate is missing; try --rate 10Mbit/s".into())) };
        let (left, right) = (self.left_address.address, self.right_address.address);
        if left == right || left.is_ipv4() != right.is_ipv4() {
            let message = "--left-address and --right-address must be two addresses of one family";
            return Err(Error::Options(message.into()));
        }
        let interface = |name: &str, address| tun::Config { name: name.to_owned(), address, mtu: self.mtu };
        let settings = |option| move |source| Error::Settings { option, source };
        Ok(Plan {
            interfaces: [interface(&self.left, self.left_address), interface(&self.right, self.right_address)],
            bottlenecks: [
                bottleneck::Config {
                    aqm: config_from_settings(&self.aqm, &self.set).map_err(settings("--aqm"))?,
                    rate,
                    delay: self.delay,
                    limit: self.limit,
                },
                bottleneck::Config {
                    aqm: config_from_settings(&self.reverse_aqm, &self.reverse_set)
                        .map_err(settings("--reverse-aqm"))?,
                    rate: self.reverse_rate.unwrap_or(rate),
                    delay: self.reverse_delay.unwrap_or(self.delay),
                    limit: self.reverse_limit,
                },
            ],
            nodes: self.nodes,
            seed: self.seed,
            duration: self.duration,
            spin: self.spin,
            realtime: self.realtime,
            packets: self.packets.clone(),
        })
    }
}

/// Every algorithm with its parameters, as text.
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
mod tests {
    use super::*;
    use clap::CommandFactory;
    use penstock_core::registry::NAMES;

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
    fn nodes_are_the_hosts_on_the_left_unless_told() {
        let side = |extra: &[&str]| parse(extra).unwrap().plan().unwrap().nodes;
        assert_eq!(side(&[]), Side::Left);
        assert_eq!((side(&["--nodes", "right"]), side(&["--nodes", "none"])), (Side::Right, Side::None));
    }

    #[test]
    fn mistakes_name_the_option_and_what_is_allowed() {
        let unit = parse(&["--delay", "20"]).unwrap_err().to_string();
        assert!(unit.contains("--delay") && unit.contains("\"5ms\""), "{unit}");
        let aqm = plan_error(&["--aqm", "codle"]);
        assert!(aqm.contains("--aqm") && aqm.contains("did you mean codel"), "{aqm}");
        let key = plan_error(&["--aqm", "codel", "--set", "traget=5ms"]);
        assert!(key.contains("did you mean target"), "{key}");
        let side = parse(&["--nodes", "middle"]).unwrap_err().to_string();
        assert!(side.contains("--nodes") && side.contains("left, right, none"), "{side}");
        let same = plan_error(&["--left-address", "10.77.0.2/24"]);
        assert!(same.contains("two addresses"), "{same}");
    }

    #[test]
    fn the_listing_names_every_algorithm() {
        let text = listing();
        for name in NAMES {
            assert!(text.lines().any(|line| line.starts_with(&format!("{name}: "))), "{name} is missing");
        }
    }
}
