//! The file of an agent.
//!
//! ```toml
//! name = "agent"                     # of the control socket
//! gateways = ["192.0.2.1:7443"]      # tried one after the other
//! directory = "/var/lib/penstock/agent"
//! cgroup = "/sys/fs/cgroup/user.slice" # whose TCP connections are limited; without this key, all of the host
//! usable = "5Mbit/s"                 # what this node can use at most, if that is known
//! ```

use penstock_appliance::socket::place::is_name;
use penstock_core::config::ConfigError;
use penstock_core::units::{Rate, Span};
use penstock_grammar::range::within;
use penstock_grammar::{Diagnosis, Source, fields};
use penstock_linux::limit::{self, Control};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Largest number of marks with a weight.
const MOST_WEIGHTS: usize = 1000;

/// The settings of an agent, which are valid.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct File {
    /// The name of the control socket.
    pub name: String,
    /// The gateways, which are tried one after the other.
    pub gateways: Vec<SocketAddr>,
    /// The directory with the identity of this node.
    pub directory: PathBuf,
    /// The cgroup of version 2 whose TCP connections are limited; without it, those of the whole host.
    pub cgroup: Option<PathBuf>,
    /// How the budget is applied.
    pub apply: Apply,
    /// The congestion control that connections get; without it they keep their own, below a limit.
    pub control: Option<Control>,
    /// What becomes of packets that are not TCP.
    pub others: OfOthers,
    /// True if connections with ECN announce their rates in an option, for a queue that marks by rates (RED-ERN).
    pub announce_rates: bool,
    /// The weights of connections by the mark of their socket (SO_MARK); a connection without one has the weight 1.
    pub weights: BTreeMap<Mark, u32>,
    /// The rate that this node can use at most.
    pub usable: Option<Rate>,
    /// A command that prints the rate that this node can use, such as `4.5Mbit/s`, or `all`.
    pub usable_command: Option<Vec<String>>,
    /// How often the command is asked.
    pub usable_every: Span,
    /// The file with what happened.
    pub log: PathBuf,
}

/// How the budget is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Apply {
    /// By a program of the kernel at each TCP connection of the cgroup.
    Kernel,
    /// Not at all: the budget is only shown.
    Nothing,
}

/// What becomes of packets that are not TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OfOthers {
    /// They are lost as on a full link where TCP leaves them no part of the budget.
    Police,
    /// Nothing: they are not limited.
    Nothing,
}

/// The mark of a socket, written as `"7"` or `"0x7"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Mark(pub u32);

impl TryFrom<String> for Mark {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mark = match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => text.parse(),
        };
        mark.map(Self).map_err(|_| format!("{text:?} is no mark of a socket; write for example 7 or 0x7"))
    }
}

impl Default for File {
    fn default() -> Self {
        Self {
            name: "agent".into(),
            gateways: Vec::new(),
            directory: "/var/lib/penstock/agent".into(),
            cgroup: None,
            apply: Apply::Kernel,
            control: None,
            others: OfOthers::Nothing,
            announce_rates: false,
            weights: BTreeMap::new(),
            usable: None,
            usable_command: None,
            usable_every: Span::from_secs(5),
            log: "/var/log/penstock/agent.jsonl".into(),
        }
    }
}

impl File {
    /// Reads the text of a file; `name` is the name of the file in messages. The error is the first mistake, with its line
    /// and column.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnosis> {
        let source = Source::parse(text, name)?;
        let table = source.table(source.root(), &[fields::of::<Self>()])?;
        let file: Self = table.part()?;
        file.check().map_err(|e| table.invalid(&e))?;
        Ok(file)
    }

    /// The cgroup whose TCP connections are limited. Fails if the host has no cgroups of version 2.
    pub fn limited(&self) -> Result<PathBuf, String> {
        let none = || "this host has no cgroups of version 2; `mount -t cgroup2 none /mnt` makes them".to_owned();
        self.cgroup.clone().or_else(limit::hierarchy).ok_or_else(none)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let (kernel, gateways) = (self.apply == Apply::Kernel, &self.gateways);
        let weights = self.weights.len() <= MOST_WEIGHTS && self.weights.values().all(|one| (1..=100).contains(one));
        let needs = "needs apply = \"kernel\"";
        let rules = [
            (is_name(&self.name), "name", "must be a name of a file: letters, digits, - _ . and not the first"),
            (
                (1..=16).contains(&gateways.len()),
                "gateways",
                "`gateways` must be 1 to 16 addresses, such as [\"192.0.2.1:7443\"]",
            ),
            (
                gateways.iter().all(|gateway| gateway.port() != 0 && !gateway.ip().is_unspecified()),
                "gateways",
                "must be addresses and ports of gateways, such as 192.0.2.1:7443",
            ),
            (kernel || self.others == OfOthers::Nothing, "others", needs),
            (kernel || self.control.is_none(), "control", needs),
            (kernel || !self.announce_rates, "announce_rates", needs),
            (weights, "weights", "must be at most 1000 weights of 1 to 100"),
            (
                self.usable.is_none() || self.usable_command.is_none(),
                "usable",
                "and usable_command cannot both be there",
            ),
            (
                self.usable_command.as_ref().is_none_or(|words| !words.is_empty()),
                "usable_command",
                "must be a program with its arguments",
            ),
        ];
        if let Some((_, key, message)) = rules.into_iter().find(|(holds, ..)| !holds) {
            return Err(ConfigError::new(key, message));
        }
        within("usable_every", &self.usable_every, Span::from_secs(1)..=Span::from_secs(3600))
    }
}
