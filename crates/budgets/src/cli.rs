//! The verbs and options of `penstock-agent`.

use crate::guard;
use clap::{Args, Parser, Subcommand};
use penstock_appliance::cli::{Ask, Described, Support};
use std::path::PathBuf;

/// The options.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "penstock-agent",
    version,
    about = "Limits the TCP connections of this host to the rate budget that its gateway assigns",
    after_help = "Examples:\n  penstock-agent check agent.toml\n  penstock-agent enrol agent.toml --token token.txt\n  \
                  penstock-agent run agent.toml\n  penstock-agent status\n\ndocs/hosts.md is the guide."
)]
pub struct Options {
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// Register this host at a gateway with a one-time token
    #[command(after_help = "Examples:\n  penstock-agent enrol agent.toml --token token.txt\n  \
                            ssh gateway penstock-gateway invite gateway.toml | penstock-agent enrol agent.toml")]
    Enrol(Enrol),
    /// Start the agent and limit this host to its budget, until SIGTERM or Ctrl-C
    #[command(after_help = "Example:\n  penstock-agent run agent.toml")]
    Run(Described),
    /// Check a configuration file; exit code 2 if it has an error
    #[command(after_help = "Example:\n  penstock-agent check agent.toml")]
    Check(Described),
    /// Print what `run` would do, and which requirements this host does not meet
    #[command(after_help = "Example:\n  penstock-agent explain agent.toml")]
    Explain(Described),
    /// Print the budget, the session and the number of limited connections
    #[command(after_help = "Example:\n  penstock-agent status --json")]
    Status(Ask),
    /// Announce the rates of TCP connections of cgroups to RED-ERN queues, without a gateway, until SIGTERM or Ctrl-C
    #[command(after_help = "Examples:\n  penstock-agent announce /sys/fs/cgroup/senders\n  \
                            penstock-agent announce --check")]
    Announce(Announce),
    /// Write an archive for a bug report, without secrets
    #[command(after_help = "Example:\n  penstock-agent support agent.toml --out support.tar.gz")]
    Support(Support),
    /// Internal: the guard process of `run`
    #[command(hide = true)]
    Guard(guard::Options),
}

/// Whose connections announce their rates.
#[derive(Debug, Clone, Args)]
pub struct Announce {
    /// Directories of cgroups (version 2), such as /sys/fs/cgroup/senders
    #[arg(required_unless_present = "check", conflicts_with = "check", value_name = "CGROUP")]
    pub cgroups: Vec<PathBuf>,
    /// Only check whether this kernel supports it; exit code 1 if not
    #[arg(long)]
    pub check: bool,
}

/// How to enrol.
#[derive(Debug, Clone, Args)]
pub struct Enrol {
    /// The agent's file and how to print the result.
    #[command(flatten)]
    pub described: Described,
    /// File with the token [default: standard input, because other users can see arguments]
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Name of this host in the status of the gateway [default: its hostname]
    #[arg(long, value_name = "NAME")]
    pub called: Option<String>,
}
