//! The file of a gateway. Its tables `[link]`, `[discipline]` and `[subscribers]` have the form that they have elsewhere.
//!
//! ```toml
//! name = "gateway"            # of the control socket
//!
//! [interfaces]
//! wan = "eth0"
//!
//! [link]
//! rate = "20Mbit/s"           # from the WAN to the LAN
//! reverse_rate = "2Mbit/s"    # from the LAN to the WAN
//! limit = "1000p"
//!
//! [discipline]
//! name = "fq-codel"
//! target = "5ms"
//! ```

use crate::rules::Firewall;
use penstock_control::place::is_name;
use penstock_core::config::ConfigError;
use penstock_core::registry::AnyConfig;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Limit, Rate, Span};
use penstock_flows::{Named, Prefix};
use penstock_grammar::link;
use penstock_grammar::named::Disciplines;
use penstock_grammar::range::within;
use penstock_grammar::source::Table;
use penstock_grammar::{Diagnosis, Source, fields};
use penstock_net::bottleneck::Config;
use penstock_net::file::named;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where changes are noted unless the file says another place.
pub const LOG: &str = "/var/log/penstock/gateway.jsonl";

/// The settings of a gateway, which are valid.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// The keys outside of tables.
    pub keys: Keys,
    /// The interfaces between which packets are governed.
    pub interfaces: Interfaces,
    /// What packets meet from the WAN to the LAN, and from the LAN to the WAN.
    pub bottlenecks: [Config; 2],
    /// The subscribers with names.
    pub subscribers: Vec<Named>,
}

/// The keys outside of tables.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Keys {
    /// The name of the control socket.
    pub name: String,
    /// How packets come to this process.
    pub mode: Mode,
    /// Who shapes and edits packets.
    pub datapath: Datapath,
    /// The number of the queue of netfilter from WAN to LAN; the next number is the other direction's.
    pub queue: u16,
    /// After this time without a sign of life the guard lets packets pass.
    pub patience: Span,
    /// The program that writes the rules; without it, the first that works.
    pub firewall: Option<Firewall>,
    /// True if everything is measured and nothing is changed.
    pub observe: bool,
    /// True for real-time scheduling (SCHED_FIFO).
    pub realtime: bool,
    /// The file that gets a line for each change.
    pub log: PathBuf,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            name: "gateway".into(),
            mode: Mode::Router,
            datapath: Datapath::User,
            queue: 7010,
            patience: Span::from_millis(80),
            firewall: None,
            observe: false,
            realtime: false,
            log: LOG.into(),
        }
    }
}

/// How packets come to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The kernel routes, and its firewall hands packets over.
    Router,
    /// A transparent bridge; not there yet.
    Bridge,
}

/// Who shapes and edits packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Datapath {
    /// This process.
    User,
    /// Programs in the kernel.
    Kernel,
}

/// The table `[interfaces]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interfaces {
    /// The interface to the link that is governed.
    pub wan: String,
    /// Governs only what is forwarded between this interface and `wan`. Without it, all that passes `wan` is governed,
    /// what the router itself sends and receives included.
    pub lan: Option<String>,
}

/// The table `[link]`.
#[derive(Debug, Clone, Copy, Deserialize)]
struct LinkKeys {
    rate: Rate,
    #[serde(default = "link::thousand_packets")]
    limit: Limit,
    reverse_rate: Option<Rate>,
    reverse_limit: Option<Limit>,
}

/// The tables of the file.
#[derive(Debug, Deserialize)]
struct Tables {
    #[serde(rename = "interfaces")]
    _interfaces: Option<IgnoredAny>,
    #[serde(rename = "link")]
    _link: Option<IgnoredAny>,
    #[serde(rename = "discipline")]
    _discipline: Option<IgnoredAny>,
    #[serde(rename = "reverse_discipline")]
    _reverse: Option<IgnoredAny>,
    #[serde(default)]
    subscribers: BTreeMap<String, Vec<Prefix>>,
}

impl File {
    /// Reads the text of a file; `name` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns the first mistake with its line and column.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnosis> {
        let source = Source::parse(text, name)?;
        let table = source.table(source.root(), &[fields::of::<Keys>(), fields::of::<Tables>()])?;
        let keys: Keys = table.part()?;
        check(&keys, &table, &source)?;
        let Tables { subscribers, .. } = table.part()?;
        let subscribers = named(subscribers).map_err(|e| table.invalid(&e))?;
        let wanted = |key: &str, example: &str| {
            let message = format!("the table [{key}] is missing; write for example\n[{key}]\n{example}");
            source.get(&[key]).ok_or_else(|| source.at(&[], &message))
        };
        let interfaces: Interfaces = source.read(wanted("interfaces", "wan = \"eth0\"")?)?;
        let link = wanted("link", "rate = \"20Mbit/s\"  # from the WAN to the LAN\nreverse_rate = \"2Mbit/s\"")?;
        let link = source.table(link, &[fields::of::<LinkKeys>()])?;
        let bottlenecks = bottlenecks(&source, &link, keys.datapath)?;
        if keys.datapath == Datapath::Kernel {
            in_the_kernel(&source, &interfaces, &bottlenecks)?;
        }
        Ok(Self { keys, interfaces, bottlenecks, subscribers })
    }
}

/// Checks the keys outside of tables.
fn check(keys: &Keys, table: &Table<'_, '_>, source: &Source<'_>) -> Result<(), Diagnosis> {
    if keys.mode == Mode::Bridge {
        return Err(source.at(&["mode"], "a transparent bridge is not there yet; allowed is \"router\""));
    }
    let invalid = |key, message: &str| Err(ConfigError::new(key, message));
    let checked = if !is_name(&keys.name) {
        invalid("name", "a name has up to 64 letters, digits, '-', '_' and '.', which is not the first")
    } else if !(1..u16::MAX).contains(&keys.queue) {
        invalid("queue", "a queue has a number from 1 to 65534; the next number is used as well")
    } else {
        within("patience", &keys.patience, Span::from_millis(20)..=Span::from_secs(10))
    };
    checked.map_err(|e| table.invalid(&e))
}

/// Checks what the programs of the kernel do not have.
fn in_the_kernel(source: &Source<'_>, interfaces: &Interfaces, bottlenecks: &[Config; 2]) -> Result<(), Diagnosis> {
    if interfaces.lan.is_some() {
        let message =
            "the kernel data path governs all that passes `wan`; leave `lan` out, or write datapath = \"user\"";
        return Err(source.at(&["interfaces", "lan"], message));
    }
    for (key, config) in ["discipline", "reverse_discipline"].into_iter().zip(bottlenecks) {
        let at = if source.get(&[key]).is_some() { key } else { "discipline" };
        crate::kernel::parameters(&config.aqm).map_err(|message| source.at(&[at], &message))?;
    }
    Ok(())
}

fn bottlenecks(source: &Source<'_>, table: &Table<'_, '_>, datapath: Datapath) -> Result<[Config; 2], Diagnosis> {
    let link: LinkKeys = table.part()?;
    let reverse_rate = link.reverse_rate.unwrap_or(link.rate);
    let rates = link::rate("rate", link.rate).and_then(|()| link::rate("reverse_rate", reverse_rate));
    rates.map_err(|e| table.invalid(&e))?;
    let discipline =
        |key: &str| source.get(&[key]).map(|value| source.named(value, &Disciplines::built_in())).transpose();
    let forward = match discipline("discipline")? {
        Some(config) => config,
        None => default_discipline(datapath).map_err(|e| source.at(&[], &e))?,
    };
    let reverse = discipline("reverse_discipline")?.unwrap_or_else(|| forward.clone());
    let config = |aqm, rate, limit| Config { aqm, rate, delay: Span::ZERO, limit };
    let reverse_limit = link.reverse_limit.unwrap_or(link.limit);
    Ok([config(forward, link.rate, link.limit), config(reverse, reverse_rate, reverse_limit)])
}

/// Returns PINK before a queue for each flow: what PINK cannot govern has a queue of its own. In the kernel there is none.
fn default_discipline(datapath: Datapath) -> Result<AnyConfig, String> {
    let queue = if datapath == Datapath::User { "queue=fq" } else { "queue=fifo" };
    config_from_settings("pink", &[queue.to_owned()]).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"queue = 7100
patience = "100ms"

[interfaces]
wan = "eth0"
lan = "eth1"

[link]
rate = "20Mbit/s"
reverse_rate = "2Mbit/s"
limit = "125kB"

[reverse_discipline]
name = "codel"
target = "10ms"

[subscribers]
house = ["10.1.0.0/28"]
"#;

    fn mistake(piece: &str, by: &str) -> Diagnosis {
        assert_eq!(GOOD.matches(piece).count(), 1, "{piece:?} is there once");
        File::parse(&GOOD.replacen(piece, by, 1), "some/gateway.toml").unwrap_err()
    }

    #[test]
    fn what_a_file_says_is_read() {
        let file = File::parse(GOOD, "f").unwrap();
        let [down, up] = &file.bottlenecks;
        assert_eq!((down.aqm.name(), up.aqm.name()), ("pink", "codel"));
        assert_eq!((down.rate, up.rate), (Rate::from_bps(20_000_000), Rate::from_bps(2_000_000)));
        assert_eq!((down.limit, up.limit), ("125kB".parse().unwrap(), "125kB".parse().unwrap()));
        assert_eq!((file.keys.queue, file.keys.patience), (7100, Span::from_millis(100)));
        assert_eq!((file.keys.observe, file.keys.name.as_str()), (false, "gateway"));
        assert_eq!(file.subscribers[0].name, "house");
    }

    #[test]
    fn the_file_of_what_if_needs_its_interfaces_only() {
        let written =
            "[link]\nrate = \"3.8Mbit/s\"\nlimit = \"60kB\"\n\n[discipline]\nname = \"fq-codel\"\ntarget = \"5ms\"\n";
        let missing = File::parse(written, "f").unwrap_err();
        assert!(missing.what.contains("[interfaces]\nwan"), "{missing}");
        let file = File::parse(&format!("{written}\n[interfaces]\nwan = \"ppp0\"\n"), "f").unwrap();
        assert_eq!(file.bottlenecks[0], file.bottlenecks[1], "the other direction is the same");
        assert_eq!(file.bottlenecks[1].aqm.name(), "fq-codel");
    }

    #[test]
    fn the_example_is_a_right_one() {
        let file = File::parse(include_str!("../../../examples/gateway/dsl.toml"), "dsl.toml").unwrap();
        let names: Vec<&str> = file.bottlenecks.iter().map(|config| config.aqm.name()).collect();
        assert_eq!((names.as_slice(), file.subscribers.len()), (&["pink", "fq-codel"][..], 2));
    }

    #[test]
    fn mistakes_are_told_with_line_column_and_suggestion() {
        let key = mistake("patience =", "patence =");
        assert_eq!((key.line, key.column), (2, 1));
        assert!(key.what.contains("did you mean `patience`?"), "{key}");
        let name = mistake("\"codel\"", "\"codle\"");
        assert!(name.line == 14 && name.what.contains("did you mean \"codel\"?"), "{name}");
        let rate = mistake("\"20Mbit/s\"", "20");
        assert!(rate.line == 9 && rate.what.contains("quotes with its unit"), "{rate}");
        let interface = mistake("wan =", "wann =");
        assert!(interface.line == 5 && interface.what.contains("did you mean `wan`?"), "{interface}");
        let link = mistake("limit =", "delay =");
        assert!(link.line == 11 && link.what.contains("`reverse_rate`"), "{link}");
        assert_eq!(mistake("\"100ms\"", "\"1ms\"").line, 2);
        assert_eq!(mistake("queue = 7100", "queue = 0").line, 1);
        assert_eq!(mistake("queue = 7100", "name = \"a/b\"").line, 1);
        assert_eq!(mistake("queue = 7100", "queue = 65535").line, 1);
    }

    #[test]
    fn what_is_not_there_yet_is_refused_with_a_sentence() {
        let bridge = mistake("queue = 7100", "mode = \"bridge\"");
        assert!(bridge.line == 1 && bridge.what.contains("not there yet"), "{bridge}");
        let kernel = mistake("queue = 7100", "datapath = \"kernel\"");
        assert!(kernel.line == 6 && kernel.what.contains("leave `lan` out"), "{kernel}");
        let mode = mistake("queue = 7100", "mode = \"ruoter\"");
        assert!(mode.what.contains("did you mean `router`?"), "{mode}");
    }
}
