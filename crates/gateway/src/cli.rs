//! The verbs and options of `penstock-gateway`.

use crate::guard;
use clap::{Args, Parser, Subcommand};
use penstock_appliance::cli::{Ask, Record, Support, Top, lasting};
use penstock_budgets::roster::{LONGEST_TOKEN, MOST_USES};
use penstock_core::coop::Floor;
use penstock_core::units::Span;
use std::path::PathBuf;

/// The options.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "penstock-gateway",
    version,
    about = "A queue discipline before the link of a Linux router or bridge: short queues, fair shares",
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
    /// Govern the link that the file describes, until SIGTERM or Ctrl-C
    #[command(after_help = "Example:\n  penstock-gateway run gateway.toml --observe")]
    Run {
        /// The gateway's file, such as gateway.toml
        file: PathBuf,
        /// Measure everything and change nothing
        #[arg(long)]
        observe: bool,
        /// Print the last status as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Check a file; exit code 2 and the line of the first mistake if there is one
    #[command(after_help = "Example:\n  penstock-gateway check gateway.toml")]
    Check(Described),
    /// Print what a run would install: rules, queues, memory
    #[command(after_help = "Example:\n  penstock-gateway explain gateway.toml")]
    Explain(Described),
    /// Print what the gateway does, what passed, and what is wrong
    #[command(after_help = "Example:\n  penstock-gateway status --json")]
    Status(Ask),
    /// Print who carries most; on a terminal, every second until Ctrl-C
    #[command(after_help = "Example:\n  penstock-gateway top --by node --most 5")]
    Top(Top),
    /// Change a gateway that runs: rate, limit, discipline.PARAMETER, and the same with reverse_ before it
    #[command(after_help = "Examples:\n  penstock-gateway set rate=15Mbit/s reverse_rate=1Mbit/s\n  \
                            penstock-gateway set rate=5Mbit/s --for 2h\n  \
                            penstock-gateway set rate=5Mbit/s --confirm 60s && penstock-gateway set --keep")]
    Set(Change),
    /// Make what a file says what holds, without a new start; what needs one is refused with its line
    #[command(after_help = "Examples:\n  penstock-gateway apply gateway.toml\n  \
                            penstock-gateway apply new.toml --confirm 60s && penstock-gateway set --keep")]
    Apply(Applied),
    /// Return to the values before the last change
    #[command(after_help = "Example:\n  penstock-gateway rollback")]
    Rollback(Ask),
    /// Record the headers of what passes the WAN, as a capture that `penstock what-if` reads
    #[command(after_help = "Examples:\n  penstock-gateway record 10min\n  \
                            penstock-gateway record 10min --interface eth0 --out before.pcap\n  penstock what-if before.pcap")]
    Record(Record),
    /// Write one archive with what is needed to find out what is wrong, without secrets
    #[command(after_help = "Example:\n  penstock-gateway support gateway.toml --out support.tar.gz")]
    Support(Support),
    /// Print a one-time token with which hosts become nodes (`penstock-agent enrol`)
    #[command(after_help = "Examples:\n  penstock-gateway invite gateway.toml > token.txt\n  \
                            penstock-gateway invite gateway.toml --class 0 --weight 4 --uses 20 --for 1h")]
    Invite(Invite),
    /// The guard of a run, which the run starts
    #[command(hide = true)]
    Guard(guard::Options),
    /// The page of a run, which the run starts
    #[command(hide = true)]
    Page {
        /// The gateway's file
        file: PathBuf,
    },
}

/// A file, and how to print what it means.
#[derive(Debug, Clone, Args)]
pub struct Described {
    /// The gateway's file, such as gateway.toml
    pub file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What a token gives.
#[derive(Debug, Clone, Args)]
pub struct Invite {
    /// The gateway's file, and how to print the token.
    #[command(flatten)]
    pub described: Described,
    /// The priority class of nodes that enrol with it: 0 goes first, 3 last
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub class: u8,
    /// The weight of nodes that enrol with it, within their class
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub weight: u16,
    /// The rate that each has before weights divide the rest, or "none" [default: that of its class in the file]
    #[arg(long, value_name = "RATE")]
    pub floor: Option<Floor>,
    /// How many nodes may enrol with it
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_USES)))]
    pub uses: u32,
    /// For how long it is valid
    #[arg(long = "for", value_name = "TIME", default_value = "24h", value_parser = valid)]
    pub duration: Span,
}

fn valid(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|e: penstock_core::units::UnitError| e.to_string())?;
    let allowed = (Span::from_secs(1)..=LONGEST_TOKEN).contains(&span);
    if allowed { Ok(span) } else { Err(format!("{span} is not within 1s and {LONGEST_TOKEN}")) }
}

/// A change of a gateway that runs, or the order to keep the last one.
#[derive(Debug, Clone, Args)]
pub struct Change {
    /// Which gateway to ask.
    #[command(flatten)]
    pub ask: Ask,
    /// What to set: rate=2Mbit/s
    #[arg(value_name = "KEY=VALUE", required_unless_present = "keep")]
    pub values: Vec<String>,
    /// The former values return after this time: 2h
    #[arg(long = "for", value_name = "TIME", value_parser = lasting)]
    pub duration: Option<Span>,
    /// The former values return after this time, unless `set --keep` comes before
    #[arg(long, value_name = "TIME", value_parser = lasting, conflicts_with = "duration")]
    pub confirm: Option<Span>,
    /// The last change stays, which was set with --for or --confirm
    #[arg(long, conflicts_with_all = ["values", "duration", "confirm"])]
    pub keep: bool,
}

/// A file whose settings are to hold.
#[derive(Debug, Clone, Args)]
pub struct Applied {
    /// Which gateway to ask.
    #[command(flatten)]
    pub ask: Ask,
    /// The gateway's file, such as gateway.toml
    pub file: PathBuf,
    /// The former values return after this time: 2h
    #[arg(long = "for", value_name = "TIME", value_parser = lasting)]
    pub duration: Option<Span>,
    /// The former values return after this time, unless `set --keep` comes before
    #[arg(long, value_name = "TIME", value_parser = lasting, conflicts_with = "duration")]
    pub confirm: Option<Span>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_is_well_formed_and_every_verb_has_an_example() {
        Options::command().debug_assert();
        for verb in Options::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("penstock-gateway {}", verb.get_name())), "{}", verb.get_name());
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let parse = |words: &str| Options::try_parse_from(format!("penstock-gateway {words}").split(' '));
        assert!(parse("set rate=1Mbit/s --for 2h").is_ok() && parse("set --keep").is_ok());
        for wrong in ["set", "set rate=1Mbit/s --keep", "set a=b --for 2h --confirm 1s", "set a=b --for 0s", "run"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
