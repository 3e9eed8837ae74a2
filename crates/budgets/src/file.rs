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
    /// Reads the text of a file; `name` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns the first mistake with its line and column.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnosis> {
        let source = Source::parse(text, name)?;
        let table = source.table(source.root(), &[fields::of::<Self>()])?;
        let file: Self = table.part()?;
        file.check().map_err(|e| table.invalid(&e))?;
        Ok(file)
    }

    /// The cgroup whose TCP connections are limited.
    ///
    /// # Errors
    /// Fails if the host has no cgroups of version 2.
    pub fn limited(&self) -> Result<PathBuf, String> {
        let none = || "this host has no cgroups of version 2; `mount -t cgroup2 none /mnt` makes them".to_owned();
        self.cgroup.clone().or_else(limit::hierarchy).ok_or_else(none)
    }

    fn check(&self) -> Result<(), ConfigError> {
        if !is_name(&self.name) {
            return Err(ConfigError::new("name", "must be a name of a file: letters, digits, - _ . and not the first"));
        }
        if self.gateways.is_empty() || self.gateways.len() > 16 {
            return Err(ConfigError::new(
                "gateways",
                "`gateways` must be 1 to 16 addresses, such as [\"192.0.2.1:7443\"]",
            ));
        }
        if self.gateways.iter().any(|gateway| gateway.port() == 0 || gateway.ip().is_unspecified()) {
            return Err(ConfigError::new(
                "gateways",
                "must be addresses and ports of gateways, such as 192.0.2.1:7443",
            ));
        }
        if self.apply == Apply::Nothing && self.others == OfOthers::Police {
            return Err(ConfigError::new("others", "needs apply = \"kernel\""));
        }
        if self.apply == Apply::Nothing && self.control.is_some() {
            return Err(ConfigError::new("control", "needs apply = \"kernel\""));
        }
        if self.apply == Apply::Nothing && self.announce_rates {
            return Err(ConfigError::new("announce_rates", "needs apply = \"kernel\""));
        }
        if self.weights.len() > MOST_WEIGHTS || !self.weights.values().all(|weight| (1..=100).contains(weight)) {
            let message = format!("must be at most {MOST_WEIGHTS} weights of 1 to 100");
            return Err(ConfigError::new("weights", message));
        }
        if self.usable.is_some() && self.usable_command.is_some() {
            return Err(ConfigError::new("usable", "and usable_command cannot both be there"));
        }
        if self.usable_command.as_ref().is_some_and(Vec::is_empty) {
            return Err(ConfigError::new("usable_command", "must be a program with its arguments"));
        }
        within("usable_every", &self.usable_every, Span::from_secs(1)..=Span::from_secs(3600))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "name = \"truck\"\ngateways = [\"192.0.2.1:7443\", \"[2001:db8::1]:7443\"]\nusable = \"5Mbit/s\"\n";

    fn mistake(piece: &str, by: &str) -> Diagnosis {
        assert_eq!(GOOD.matches(piece).count(), 1, "{piece:?} is there once");
        File::parse(&GOOD.replacen(piece, by, 1), "agent.toml").unwrap_err()
    }

    #[test]
    fn what_a_file_says_is_read_and_mistakes_have_their_place() {
        let file = File::parse(GOOD, "agent.toml").unwrap();
        assert_eq!((file.gateways.len(), file.usable, file.apply), (2, Some(Rate::from_bps(5_000_000)), Apply::Kernel));
        let key = mistake("gateways", "gatways");
        assert!(key.line == 2 && key.what.contains("did you mean `gateways`?"), "{key}");
        assert_eq!(mistake("\"5Mbit/s\"", "5").line, 3);
        assert_eq!(mistake("truck", "../x").line, 1);
        assert_eq!(mistake(":7443\", ", ":0\", ").line, 2);
        let both = mistake("usable =", "usable_command = [\"x\"]\nusable =");
        assert!(both.what.contains("cannot both"), "{both}");
        let police = "others = \"police\"\nusable =";
        let file = File::parse(&GOOD.replace("usable =", police), "f").unwrap();
        assert_eq!(file.others, OfOthers::Police);
        let control = mistake("usable =", "control = \"cubic\"\nusable =");
        assert!(control.line == 3 && control.to_string().contains("c2ml_cubic"), "{control}");
        let control = File::parse(&GOOD.replace("usable =", "control = \"c2ml_cubic\"\nusable ="), "f").unwrap();
        assert_eq!((control.control, file.control), (Some(Control::Cubic), None));
        let alone = mistake("usable =", "apply = \"nothing\"\ncontrol = \"c2ml_reno\"\nusable =");
        assert!(alone.line == 4 && alone.what.contains("apply"), "{alone}");
        let rates = "announce_rates = true\nusable =";
        assert!(File::parse(&GOOD.replace("usable =", rates), "f").unwrap().announce_rates && !file.announce_rates);
        let alone = mistake("usable =", &format!("apply = \"nothing\"\n{rates}"));
        assert!(alone.line == 4 && alone.what.contains("apply"), "{alone}");
        let weighted = |lines: &str| File::parse(&format!("{GOOD}[weights]\n{lines}\n"), "f");
        let weights = weighted("7 = 3\n0x10 = 100").unwrap().weights;
        assert_eq!(weights, BTreeMap::from([(Mark(7), 3), (Mark(16), 100)]));
        for wrong in ["7 = 0", "7 = 101", "seven = 1", "7 = \"3\""] {
            let mistake = weighted(wrong).unwrap_err();
            assert!((4..=5).contains(&mistake.line), "{wrong}: {mistake}");
        }
        let alone = mistake("usable =", &format!("apply = \"nothing\"\n{police}"));
        assert!(alone.line == 4 && alone.what.contains("apply"), "{alone}");
        let empty = File::parse("", "f").unwrap_err();
        assert!(empty.to_string().contains("gateways"), "{empty}");
    }

    #[test]
    fn the_example_is_a_right_one() {
        let file = File::parse(include_str!("../../../examples/gateway/agent.toml"), "agent.toml").unwrap();
        assert_eq!(file.gateways.len(), 1);
    }
}
