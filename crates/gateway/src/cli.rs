//! The verbs and options of `penstock-gateway`.

use crate::guard;
use clap::{Args, Parser, Subcommand};
pub use penstock_appliance::cli::Described;
use penstock_appliance::cli::{Applied, Ask, Change, Record, Support, Top, within};
use penstock_budgets::roster::{LONGEST_TOKEN, MOST_USES};
use penstock_core::coop::Floor;
use penstock_core::units::Span;
use std::path::PathBuf;

/// The options.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "penstock-gateway",
    version,
    about = "Shapes the traffic of a Linux router or bridge, with short queues and fair shares",
    after_help = "Examples:\n  penstock-gateway check gateway.toml\n  penstock-gateway explain gateway.toml\n  \
                  penstock-gateway run gateway.toml\n  penstock-gateway status\n  \
                  penstock-gateway set rate=15Mbit/s --for 2h\n\ndocs/gateway.md is the guide."
)]
pub struct Options {
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// Start the gateway and shape the traffic of the link, until SIGTERM or Ctrl-C
    #[command(after_help = "Example:\n  penstock-gateway run gateway.toml --observe")]
    Run {
        /// Configuration file of the gateway, such as gateway.toml
        file: PathBuf,
        /// Measure the traffic without shaping it
        #[arg(long)]
        observe: bool,
        /// Print the final status as a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Check a configuration file, or what becomes of other tools' files; exit code 2 if it has an error
    #[command(after_help = "Examples:\n  penstock-gateway check gateway.toml\n  \
                            penstock-gateway check --from shaper.sh --out gateway.toml\n  \
                            penstock-gateway check --from <(tc qdisc show) > gateway.toml\n  \
                            penstock-gateway check --from ShapedDevices.csv --from network.json")]
    Check(Checked),
    /// Print the firewall rules, queues and memory that `run` would use
    #[command(after_help = "Example:\n  penstock-gateway explain gateway.toml")]
    Explain(Described),
    /// Print the state, the counters and the problems of the running gateway
    #[command(after_help = "Example:\n  penstock-gateway status --json")]
    Status(Ask),
    /// List the flows or hosts with the highest rates; a terminal is refreshed every second
    #[command(after_help = "Example:\n  penstock-gateway top --by node --most 5")]
    Top(Top),
    /// Change parameters of the running gateway: rate, limit, discipline.PARAMETER (upload: reverse_rate, ...)
    #[command(after_help = "Examples:\n  penstock-gateway set rate=15Mbit/s reverse_rate=1Mbit/s\n  \
                            penstock-gateway set rate=5Mbit/s --for 2h\n  \
                            penstock-gateway set rate=5Mbit/s --confirm 60s && penstock-gateway set --keep")]
    Set(Change),
    /// Apply a configuration file to the running gateway; a change that needs a restart is refused
    #[command(after_help = "Examples:\n  penstock-gateway apply gateway.toml\n  \
                            penstock-gateway apply new.toml --confirm 60s && penstock-gateway set --keep")]
    Apply(Applied),
    /// Undo the last change; up to 32 changes can be undone, one by one
    #[command(after_help = "Example:\n  penstock-gateway rollback")]
    Rollback(Ask),
    /// Record packet headers at the WAN interface, as a capture that `penstock what-if` reads
    #[command(after_help = "Examples:\n  penstock-gateway record 10min\n  \
                            penstock-gateway record 10min --interface eth0 --out before.pcap\n  penstock what-if before.pcap")]
    Record(Record),
    /// Write an archive for a bug report, without secrets
    #[command(after_help = "Example:\n  penstock-gateway support gateway.toml --out support.tar.gz")]
    Support(Support),
    /// Create a one-time token that hosts need for `penstock-agent enrol`
    #[command(after_help = "Examples:\n  penstock-gateway invite gateway.toml > token.txt\n  \
                            penstock-gateway invite gateway.toml --class 0 --weight 4 --uses 20 --for 1h")]
    Invite(Invite),
    /// Internal: the guard process of `run`
    #[command(hide = true)]
    Guard(guard::Options),
    /// Internal: the web page process of `run`
    #[command(hide = true)]
    Page {
        /// The gateway's file
        file: PathBuf,
    },
}

/// What is checked.
#[derive(Debug, Clone, Args)]
pub struct Checked {
    /// Configuration file
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub file: Option<PathBuf>,
    /// Make a configuration file of lines of tc, or of ShapedDevices.csv and network.json of LibreQoS, or of their
    /// directory; and list what has no counterpart
    #[arg(long, value_name = "FILE")]
    pub from: Vec<PathBuf>,
    /// With --from: write it to this file, which must not exist yet [default: print it]
    #[arg(short, long, value_name = "FILE", requires = "from")]
    pub out: Option<PathBuf>,
    /// Print the result as a JSON object
    #[arg(long)]
    pub json: bool,
}

/// What a token gives.
#[derive(Debug, Clone, Args)]
pub struct Invite {
    /// The gateway's file, and how to print the token.
    #[command(flatten)]
    pub described: Described,
    /// Priority class of hosts that enrol with this token: 0 is the highest, 3 the lowest
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub class: u8,
    /// Weight of these hosts within their class
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub weight: u16,
    /// Guaranteed rate of each host, or "none" [default: the floor of its class in the file]
    #[arg(long, value_name = "RATE")]
    pub floor: Option<Floor>,
    /// Number of hosts that may enrol with this token
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_USES)))]
    pub uses: u32,
    /// Lifetime of the token
    #[arg(long = "for", value_name = "TIME", default_value = "24h",
          value_parser = |text: &str| within(text, LONGEST_TOKEN))]
    pub duration: Span,
}
