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
//! [left]                        # and [right]
//! netns = "a"
//! address = "10.77.0.1/24"
//!
//! [subscribers]                 # hosts that count as one
//! house = ["10.1.0.0/28", "2001:db8:1::/56"]
//! ```
//!
//! An option that is given has precedence over the file.

use crate::nodes::Side;
use crate::tun::Cidr;
use penstock_core::config::ConfigError;
use penstock_core::foreign::Library;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Rate, Span};
use penstock_flows::{Named, Prefix};
use penstock_grammar::link::{self, Link};
use penstock_grammar::named::Disciplines;
use penstock_grammar::source::Table;
use penstock_grammar::{Diagnosis, Source, fields};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The content of a file; what the file leaves out is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct File {
    /// The table `[link]`.
    pub link: Option<Link>,
    /// The keys of `[link]` which concern only the direction from right to left.
    pub reverse: ReverseKeys,
    /// The disciplines of the two directions, forward first.
    pub aqm: [Option<AnyConfig>; 2],
    /// The ends of the link, left first.
    pub ends: [EndKeys; 2],
    /// The keys of the whole run.
    pub run: RunKeys,
    /// The table `[subscribers]`.
    pub subscribers: Vec<Named>,
}

/// The keys of `[link]` for the direction from right to left, besides `reverse_limit`, which every [`Link`] has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct ReverseKeys {
    /// Rate from right to left; `None` for that of the link.
    #[serde(rename = "reverse_rate")]
    pub rate: Option<Rate>,
    /// Delay from right to left; `None` for that of the link.
    #[serde(rename = "reverse_delay")]
    pub delay: Option<Span>,
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
    #[serde(default)]
    subscribers: BTreeMap<String, Vec<Prefix>>,
}

impl File {
    /// Reads the text of a file; `name` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns the first mistake with its line and column.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnosis> {
        Self::parse_with(text, name, &())
    }

    /// Reads the text of a file whose disciplines may be those of a library.
    ///
    /// # Errors
    /// Returns the first mistake with its line and column.
    pub fn parse_with(text: &str, name: &str, library: &dyn Library) -> Result<Self, Diagnosis> {
        let source = Source::parse(text, name)?;
        let table = source.table(source.root(), &[fields::of::<RunKeys>(), fields::of::<Tables>()])?;
        let Tables { left, right, subscribers, .. } = table.part()?;
        for (end, keys) in [("left", &left), ("right", &right)] {
            if keys.port.is_some() && (keys.interface.is_some() || keys.address.is_some()) {
                let what = "a `port` is there already: `interface` and `address` are of interfaces that are made";
                return Err(table.invalid(&ConfigError::new(end, what)));
            }
        }
        let subscribers = named(subscribers).map_err(|e| table.invalid(&e))?;
        let run = run(&table)?;
        let (link, reverse) = link_of(&source)?;
        let aqm = |key| source.get(&[key]).map(|value| source.named(value, &Disciplines(library))).transpose();
        Ok(Self { link, reverse, aqm: [aqm("aqm")?, aqm("reverse_aqm")?], ends: [left, right], run, subscribers })
    }
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

fn link_of(source: &Source<'_>) -> Result<(Option<Link>, ReverseKeys), Diagnosis> {
    let Some(value) = source.get(&["link"]) else { return Ok((None, ReverseKeys::default())) };
    let table = source.table(value, &[fields::of::<Link>(), fields::of::<ReverseKeys>()])?;
    let (link, reverse): (Link, ReverseKeys) = (table.part()?, table.part()?);
    let checked = link.validate().and_then(|()| match (reverse.rate, reverse.delay) {
        (Some(rate), _) if rate > link::MAX_RATE => link::rate("reverse_rate", rate),
        (_, Some(delay)) => link::delay("reverse_delay", delay),
        _ => Ok(()),
    });
    checked.map_err(|e| table.invalid(&e))?;
    Ok((Some(link), reverse))
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
        assert_eq!((file.reverse.rate, file.reverse.delay), (Some(Rate::from_bps(1_000_000)), None));
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
        let side = mistake("\"right\"", "\"rigth\"");
        assert!(side.line == 3 && side.what.contains("did you mean `right`?"), "{side}");
    }

    #[test]
    fn the_example_is_a_right_one() {
        let file = File::parse(include_str!("../../../examples/emulate/codel.toml"), "codel.toml").unwrap();
        assert_eq!(file.aqm[0].as_ref().map(AnyConfig::name), Some("codel"));
        assert_eq!(file.reverse.rate, Some(Rate::from_bps(2_000_000)));
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
