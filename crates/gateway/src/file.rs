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

use crate::link::keys;
use crate::link::source::Settings as Source;
use crate::subscribers::Subscribers;
use penstock_appliance::page::keys::{PageKeys, Settings as PageSettings};
use penstock_appliance::socket::place::is_name;
use penstock_budgets::served::Keys as C2ml;
use penstock_core::ack::pink::{self, Behind};
use penstock_core::config::ConfigError;
use penstock_core::registry::AnyConfig;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Limit, Rate, Span};
use penstock_grammar::link::{self, Link};
use penstock_grammar::named::Disciplines;
use penstock_grammar::range::within;
use penstock_grammar::source::{Table, Value};
use penstock_grammar::{Diagnosis, Source as Text, fields};
use penstock_shaper::bottleneck::Config;
use serde::Deserialize;
use serde::de::IgnoredAny;
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
    /// The subscribers with names, and what each gets.
    pub subscribers: Subscribers,
    /// Where the rates of the link come from.
    pub source: Source,
    /// The page, if the file has one.
    pub page: Option<PageSettings>,
    /// What gives budgets to hosts, if anything does.
    pub c2ml: Option<C2ml>,
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
    /// True if flows of QUIC are told their part by SCONE.
    pub scone: bool,
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
            scone: false,
        }
    }
}

/// The programs that write rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Firewall {
    /// `iptables-legacy` and `ip6tables-legacy`.
    IptablesLegacy,
    /// `iptables` and `ip6tables`, whatever they write to.
    Iptables,
}

impl Firewall {
    /// Returns the name of the file's key.
    pub fn name(self) -> &'static str {
        if self == Self::IptablesLegacy { "iptables-legacy" } else { "iptables" }
    }
}

/// How packets come to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The kernel routes, and its firewall hands packets over.
    Router,
    /// The kernel bridges, and this process takes what is to wait from both ports.
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

impl LinkKeys {
    /// Returns rate and limit from WAN to LAN, and from LAN to WAN.
    fn directions(self) -> Result<[(Rate, Limit); 2], ConfigError> {
        let Self { rate, limit, reverse_rate, reverse_limit } = self;
        // What has no key here belongs to the real link, and is refused as unknown.
        let (delay, reverse_delay, loss) = (Span::ZERO, None, 0.0);
        let reverse_limit = reverse_limit.unwrap_or(limit);
        let link = Link { rate, delay, reverse_rate, reverse_delay, limit, reverse_limit, loss };
        link.validate()?;
        let [down, up] = link.rates();
        Ok([(down, link.limit), (up, link.reverse_limit)])
    }
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
    #[serde(rename = "page")]
    _page: Option<IgnoredAny>,
    #[serde(rename = "c2ml")]
    _c2ml: Option<IgnoredAny>,
    #[serde(rename = "subscribers")]
    _subscribers: Option<IgnoredAny>,
}

/// A gateway that gives budgets to hosts and does not touch packets: a file with `[c2ml]` and without `[interfaces]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alone {
    /// The name of the control socket.
    pub name: String,
    /// The rate that is shared.
    pub upload: Rate,
    /// The table `[c2ml]`.
    pub c2ml: C2ml,
    /// The page, if the file has one.
    pub page: Option<PageSettings>,
}

/// A file, by what it is for.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A machine before a link, which governs what passes.
    Link(Box<File>),
    /// Budgets only.
    Alone(Box<Alone>),
}

impl Kind {
    /// Reads the text of a file; `name` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns the first mistake with its line and column.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnosis> {
        let source = Text::parse(text, name)?;
        if source.get(&["interfaces"]).is_some() || source.get(&["c2ml"]).is_none() {
            return File::parse(text, name).map(|file| Self::Link(Box::new(file)));
        }
        let table = source.table(source.root(), &[fields::of::<AloneKeys>()])?;
        let AloneKeys { name, .. } = table.part()?;
        let link = source.get(&["link"]).unwrap_or(source.root());
        let link: LinkKeys = source.table(link, &[fields::of::<LinkKeys>()])?.part()?;
        if !is_name(&name) {
            return Err(source.at(&["name"], NAMES));
        }
        let [_, (upload, _)] = link.directions().map_err(|e| source.at(&["link"], &e.to_string()))?;
        let c2ml = c2ml(&source, upload)?.unwrap_or_default();
        if c2ml.enforce {
            return Err(
                source.at(&["c2ml", "enforce"], "without [interfaces] no packet is touched, so nothing is enforced")
            );
        }
        let page = source.get(&["page"]).map(|value| page(&source, value)).transpose()?;
        Ok(Self::Alone(Box::new(Alone { name, upload, c2ml, page })))
    }

    /// The name of the control socket.
    pub fn name(&self) -> &str {
        match self {
            Self::Link(file) => &file.keys.name,
            Self::Alone(alone) => &alone.name,
        }
    }

    /// The page, if the file has one.
    pub fn page(&self) -> Option<&PageSettings> {
        match self {
            Self::Link(file) => file.page.as_ref(),
            Self::Alone(alone) => alone.page.as_ref(),
        }
    }
}

/// The keys of a file of budgets only.
#[derive(Debug, Deserialize)]
struct AloneKeys {
    #[serde(default = "default_name")]
    name: String,
    #[serde(rename = "link")]
    _link: IgnoredAny,
    #[serde(rename = "c2ml")]
    _c2ml: IgnoredAny,
    #[serde(rename = "page")]
    _page: Option<IgnoredAny>,
}

fn default_name() -> String {
    Keys::default().name
}

/// Reads the table `[c2ml]` for an upload of this rate.
fn c2ml(source: &Text<'_>, upload: Rate) -> Result<Option<C2ml>, Diagnosis> {
    let Some(value) = source.get(&["c2ml"]) else { return Ok(None) };
    let table = source.table(value, &[fields::of::<C2ml>()])?;
    let keys: C2ml = table.part()?;
    keys.validate().and_then(|()| keys.check_floors(upload)).map_err(|e| table.invalid(&e))?;
    Ok(Some(keys))
}

const NAMES: &str = "a name has up to 64 letters, digits, '-', '_' and '.', which is not the first";

impl File {
    /// Reads the text of a file; `name` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns the first mistake with its line and column.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnosis> {
        let source = Text::parse(text, name)?;
        let table = source.table(source.root(), &[fields::of::<Keys>(), fields::of::<Tables>()])?;
        let keys: Keys = table.part()?;
        check(&keys, &table, &source)?;
        let subscribers = Subscribers::read(&source)?;
        let wanted = |key: &str, example: &str| {
            let message = format!("the table [{key}] is missing; write for example\n[{key}]\n{example}");
            source.get(&[key]).ok_or_else(|| source.at(&[], &message))
        };
        let interfaces: Interfaces = source.read(wanted("interfaces", "wan = \"eth0\"")?)?;
        let link = wanted("link", "rate = \"20Mbit/s\"  # from the WAN to the LAN\nreverse_rate = \"2Mbit/s\"")?;
        let link = source.table(link, &[fields::of::<LinkKeys>(), fields::of::<keys::Keys>()])?;
        let plain = default_discipline(keys.datapath, subscribers.is_tree()).map_err(|e| source.at(&[], &e))?;
        let bottlenecks = bottlenecks(&source, &link, plain)?;
        let rates = [bottlenecks[0].rate, bottlenecks[1].rate];
        subscribers.check(&source, rates, [&bottlenecks[0].aqm, &bottlenecks[1].aqm])?;
        let told = link.part::<keys::Keys>()?.settings(rates).map_err(|e| link.invalid(&e))?;
        let page = source.get(&["page"]).map(|value| page(&source, value)).transpose()?;
        let c2ml = c2ml(&source, rates[1])?;
        if c2ml.is_some() {
            subscribers.refuse_hardware(&source, "budgets of [c2ml] are given to IP addresses; write prefixes")?;
        }
        if interfaces.lan.is_none() && keys.datapath == Datapath::User {
            let why = "frames of the LAN are seen with its interface; write `lan` beside `wan` in [interfaces]";
            subscribers.refuse_hardware(&source, why)?;
        }
        if keys.datapath == Datapath::Kernel {
            in_the_kernel(&source, keys.scone, &interfaces, &bottlenecks, c2ml.as_ref())?;
        } else if c2ml.as_ref().is_some_and(|c2ml| c2ml.enforce) && !takes_budgets(&bottlenecks[1].aqm) {
            let message = format!(
                "the discipline of the upload is {}, which takes no budgets; write name = \"qrm\", or name = \"pink\" with \
                 queue = \"qrm\", in [discipline] or [reverse_discipline]",
                bottlenecks[1].aqm.name()
            );
            return Err(source.at(&["c2ml", "enforce"], &message));
        }
        Ok(Self { keys, interfaces, bottlenecks, subscribers, source: told, page, c2ml })
    }
}

/// Returns whether a discipline holds nodes to budgets that it is told.
fn takes_budgets(aqm: &AnyConfig) -> bool {
    match aqm {
        AnyConfig::Qrm(_) => true,
        AnyConfig::Pink(pink) => pink.queue == Behind::Qrm,
        _ => false,
    }
}

fn page(source: &Text<'_>, value: &Value<'_>) -> Result<PageSettings, Diagnosis> {
    let table = source.table(value, &[fields::of::<PageKeys>()])?;
    table.part::<PageKeys>()?.settings().map_err(|e| table.invalid(&e))
}

/// Checks the keys outside of tables.
fn check(keys: &Keys, table: &Table<'_, '_>, source: &Text<'_>) -> Result<(), Diagnosis> {
    if keys.mode == Mode::Bridge {
        on_a_bridge(keys, source)?;
    }
    let invalid = |key, message: &str| Err(ConfigError::new(key, message));
    let checked = if !is_name(&keys.name) {
        invalid("name", NAMES)
    } else if !(1..u16::MAX).contains(&keys.queue) {
        invalid("queue", "a queue has a number from 1 to 65534; the next number is used as well")
    } else {
        within("patience", &keys.patience, Span::from_millis(20)..=Span::from_secs(10))
    };
    checked.map_err(|e| table.invalid(&e))
}

/// Returns PINK's parameters of a discipline if the programs have it in this form.
///
/// # Errors
/// Returns what they have not, and what is allowed.
pub fn parameters(aqm: &AnyConfig) -> Result<&pink::Config, String> {
    let AnyConfig::Pink(config) = aqm else {
        return Err(format!("the kernel data path has no {}; allowed is \"pink\"", aqm.name()));
    };
    let plain = pink::Config::default();
    let same = pink::Config { c: config.c, rate: config.rate, reserve: config.reserve, ..plain.clone() };
    if *config == same {
        return Ok(config);
    }
    Err("the kernel data path has PINK with its default parameters; only c, rate and reserve can differ. The queue is that \
         of the kernel or of the link"
        .into())
}

/// Checks what a bridge needs and does not have.
fn on_a_bridge(keys: &Keys, source: &Text<'_>) -> Result<(), Diagnosis> {
    for key in ["queue", "firewall"] {
        if source.get(&[key]).is_some() {
            let message =
                format!("a bridge hands nothing to the firewall; leave `{key}` out, or write mode = \"router\"");
            return Err(source.at(&[key], &message));
        }
    }
    if keys.datapath == Datapath::Kernel {
        return Err(
            source.at(&["datapath"], "on a bridge packets are shaped by this process; write datapath = \"user\"")
        );
    }
    if source.get(&["interfaces"]).is_some() && source.get(&["interfaces", "lan"]).is_none() {
        let message = "a bridge has two ports: write `lan` beside `wan`, such as lan = \"eth1\"";
        return Err(source.at(&["interfaces"], message));
    }
    Ok(())
}

/// Checks what the programs of the kernel do not have.
fn in_the_kernel(
    source: &Text<'_>,
    scone: bool,
    interfaces: &Interfaces,
    bottlenecks: &[Config; 2],
    c2ml: Option<&C2ml>,
) -> Result<(), Diagnosis> {
    let enforces = c2ml.is_some_and(|c2ml| c2ml.enforce);
    if interfaces.lan.is_some() && !enforces {
        let message =
            "the kernel data path governs all that passes `wan`; leave `lan` out, or write datapath = \"user\"";
        return Err(source.at(&["interfaces", "lan"], message));
    }
    if interfaces.lan.is_none() && enforces {
        let message =
            "in the kernel hosts are held to budgets at the interface of the LAN: write lan = \"eth1\" in [interfaces]";
        return Err(source.at(&["c2ml", "enforce"], message));
    }
    let sources = fields::of::<keys::Keys>().iter().map(|key| vec!["link", *key]);
    let off = |place: &[&str]| place == ["scone"] && !scone;
    for place in sources.chain([vec!["page"], vec!["subscribers"], vec!["scone"]]) {
        if source.get(&place).is_some() && !off(&place) {
            return Err(source.at(&place, "the kernel data path does not have this yet; write datapath = \"user\""));
        }
    }
    for (key, config) in ["discipline", "reverse_discipline"].into_iter().zip(bottlenecks) {
        let at = if source.get(&[key]).is_some() { key } else { "discipline" };
        parameters(&config.aqm).map_err(|message| source.at(&[at], &message))?;
    }
    Ok(())
}

fn bottlenecks(source: &Text<'_>, table: &Table<'_, '_>, plain: AnyConfig) -> Result<[Config; 2], Diagnosis> {
    let directions = table.part::<LinkKeys>()?.directions().map_err(|e| table.invalid(&e))?;
    let discipline =
        |key: &str| source.get(&[key]).map(|value| source.named(value, &Disciplines::built_in())).transpose();
    let forward = discipline("discipline")?.unwrap_or(plain);
    let reverse = discipline("reverse_discipline")?.unwrap_or_else(|| forward.clone());
    let config = |aqm, (rate, limit)| Config { aqm, rate, delay: Span::ZERO, limit };
    Ok([config(forward, directions[0]), config(reverse, directions[1])])
}

/// Returns PINK before a queue for each flow that does not keep to its window. In the kernel there is none. In a
/// tree, where nobody has the rate of the link, it is FQ-CoDel.
fn default_discipline(datapath: Datapath, tree: bool) -> Result<AnyConfig, String> {
    let (name, settings) = match datapath {
        _ if tree => ("fq-codel", vec![]),
        Datapath::User => ("pink", vec!["queue=fq-others".to_owned()]),
        Datapath::Kernel => ("pink", vec!["queue=fifo".to_owned()]),
    };
    config_from_settings(name, &settings).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::source::From;

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
        assert_eq!(file.subscribers.named()[0].name, "house");
    }

    /// Each key that all links have changes what packets meet, or is refused at its line.
    #[test]
    fn no_key_of_links_is_ignored() {
        const PLAIN: &str = "[interfaces]\nwan = \"eth0\"\n[link]\n";
        let text = |keys: &str| File::parse(&format!("{PLAIN}{keys}\n"), "f");
        let plain = "rate = \"2Mbit/s\"";
        let values = |key: &str| match key {
            "rate" => "rate = \"3Mbit/s\"".to_owned(),
            "reverse_rate" => format!("{plain}\n{key} = \"1Mbit/s\""),
            "limit" | "reverse_limit" => format!("{plain}\n{key} = \"9p\""),
            other => format!("{plain}\n{other} = 0.01"),
        };
        let mut refused = Vec::new();
        for key in fields::of::<Link>() {
            match text(&values(key)) {
                Ok(read) => assert_ne!(read.bottlenecks, text(plain).unwrap().bottlenecks, "{key}"),
                Err(wrong) => {
                    assert!(wrong.line == 5 && wrong.what.contains(&format!("unknown field `{key}`")), "{wrong}");
                    refused.push(*key);
                }
            }
        }
        assert_eq!(refused, ["delay", "reverse_delay", "loss"]);
    }

    #[test]
    fn hardware_addresses_are_refused_where_they_cannot_be_known() {
        let list = "house = [\"10.1.0.0/28\", \"02:00:5e:00:53:01\"]\n";
        let with = GOOD.replace("house = [\"10.1.0.0/28\"]\n", list);
        assert_eq!(File::parse(&with, "f").unwrap().subscribers.named()[0].prefixes.len(), 2);
        let kernel =
            with.replace("[interfaces]", "datapath = \"kernel\"\n[interfaces]").replace("lan = \"eth1\"\n", "");
        let line = 18;
        for (file, line, column, said) in [
            (with.replace("lan = \"eth1\"\n", ""), line - 1, 25, "write `lan` beside `wan`"),
            (format!("{with}[c2ml]\n"), line, 25, "budgets of [c2ml]"),
            (kernel, line - 1, 1, "the kernel data path does not have this yet"),
        ] {
            let wrong = File::parse(&file, "f").unwrap_err();
            assert!(wrong.line == line && wrong.column == column && wrong.what.contains(said), "{wrong}");
        }
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
    fn where_rates_come_from_is_read() {
        let with = |lines: &str| GOOD.replace("limit = \"125kB\"", lines);
        let source = |lines: &str| File::parse(&with(lines), "f").unwrap().source;
        assert_eq!(source("").from, From::File);
        let table = source("timetable = { \"06:00\" = \"8Mbit/s\", \"22:00\" = \"50Mbit/s\" }");
        assert_eq!((table.from, table.timetables[0].at(12, 0)), (From::Timetable, Some(Rate::from_bps(8_000_000))));
        let command = source("command = [\"modem\", \"-r\"]\nlowest = \"1Mbit/s\"\nplain_after = \"1h\"");
        assert_eq!((command.from, command.command.len()), (From::Command, 2));
        assert_eq!(command.lowest.map(Rate::as_bps), [1_000_000, 100_000], "a twentieth of `reverse_rate`");
        assert_eq!(source("rate_from = \"estimate\"").from, From::Estimate);
        let mistake = |lines: &str| File::parse(&with(lines), "f").unwrap_err();
        for (lines, said) in [
            ("rate_from = \"comand\"", "did you mean `command`?"),
            ("rate_from = \"command\"", "the key `command` is missing"),
            ("rate_from = \"timetable\"", "the key `timetable` is missing"),
            ("rate_from = \"file\"\ncommand = [\"x\"]", "another source"),
            ("timetable = { \"24:00\" = \"8Mbit/s\" }", "is no time of day"),
            ("timetable = { \"06:00\" = \"0bit/s\" }", "is not a rate above zero"),
            ("lowest = \"30Mbit/s\"", "allowed are `lowest` to `highest`"),
            ("every = \"2min\"", "stale_after is 60s; allowed are 120s"),
            ("stale_afer = \"2min\"", "did you mean `stale_after`?"),
        ] {
            let mistake = mistake(lines);
            assert!(mistake.line >= 8, "{lines}: {mistake}");
            assert!(mistake.what.contains(said), "{lines}: {mistake}");
        }
    }

    #[test]
    fn budgets_for_hosts_are_a_table_of_a_router_or_a_file_of_their_own() {
        let with = format!("{GOOD}\n[c2ml]\nsharing = \"priority\"\nlease = \"2s\"\n");
        let Kind::Link(file) = Kind::parse(&with, "f").unwrap() else { panic!("a link") };
        assert_eq!(file.c2ml.unwrap().settings(Rate::from_bps(1_000_000)).lease, Span::from_secs(2));
        let alone = "[link]\nrate = \"20Mbit/s\"\nreverse_rate = \"2Mbit/s\"\n[c2ml]\npercent = 95\n";
        let Kind::Alone(alone) = Kind::parse(alone, "f").unwrap() else { panic!("budgets only") };
        assert_eq!((alone.upload, alone.c2ml.shared(alone.upload).as_bps()), (Rate::from_bps(2_000_000), 1_900_000));
        let wrong =
            |text: &str| Kind::parse(&format!("[link]\nrate = \"2Mbit/s\"\n[c2ml]\n{text}\n"), "f").unwrap_err();
        for (text, expected) in [
            ("sharring = \"dybra\"", "did you mean `sharing`?"),
            ("sharing = \"dibra\"", "dybra"),
            ("percent = 0", "1 to 100"),
            ("lease = \"2h\"", "1min"),
            ("most = 0", "1 to 1048576"),
            ("percent = 50\nfloors = [\"none\", \"1.1Mbit/s\"]", "class 1 has a floor of 1.1Mbit/s, but 1Mbit/s"),
            ("floors = [\"5\"]", "three digits"),
            ("floors = \"5Mbit/s\"", "sequence"),
            ("listen = \"here\"", "socket address"),
            ("percent = 90\nenforce = true", "without [interfaces]"),
            ("enforce = true", "1 to 99"),
        ] {
            let mistake = wrong(text);
            assert!((3..=5).contains(&mistake.line) && mistake.to_string().contains(expected), "{mistake}");
        }
    }

    #[test]
    fn budgets_are_enforced_by_a_discipline_that_takes_them() {
        let with = |discipline: &str| {
            let text = GOOD.replace("name = \"codel\"\ntarget = \"10ms\"", discipline);
            Kind::parse(&format!("{text}\n[c2ml]\nenforce = true\npercent = 90\n"), "f")
        };
        for right in ["name = \"qrm\"", "name = \"pink\"\nqueue = \"qrm\""] {
            let Ok(Kind::Link(file)) = with(right) else { panic!("{right}") };
            assert!(file.c2ml.unwrap().enforce);
        }
        for wrong in ["name = \"codel\"", "name = \"pink\""] {
            let mistake = with(wrong).unwrap_err();
            assert!(mistake.what.contains("takes no budgets") && mistake.line > 15, "{mistake}");
        }
    }

    #[test]
    fn what_is_not_there_yet_is_refused_with_a_sentence() {
        let queue = mistake("queue = 7100", "mode = \"bridge\"\nqueue = 7100");
        assert!(queue.line == 2 && queue.what.contains("hands nothing to the firewall"), "{queue}");
        let datapath = mistake("queue = 7100", "mode = \"bridge\"\ndatapath = \"kernel\"");
        assert!(datapath.line == 2 && datapath.what.contains("shaped by this process"), "{datapath}");
        let bridge = GOOD.replace("queue = 7100", "mode = \"bridge\"");
        assert_eq!(File::parse(&bridge, "f").unwrap().keys.mode, Mode::Bridge);
        let alone = File::parse(&bridge.replace("lan = \"eth1\"\n", ""), "f").unwrap_err();
        assert!(alone.line == 4 && alone.what.contains("two ports"), "{alone}");
        let kernel = mistake("queue = 7100", "datapath = \"kernel\"");
        assert!(kernel.line == 6 && kernel.what.contains("leave `lan` out"), "{kernel}");
        let without_lan =
            GOOD.replace("lan = \"eth1\"\n", "").replace("queue = 7100", "datapath = \"kernel\"\nscone = true");
        let scone = File::parse(without_lan.split("[reverse").next().unwrap(), "f").unwrap_err();
        assert!(scone.line == 2 && scone.what.contains("does not have this yet"), "{scone}");
        let off = without_lan.replace("scone = true", "scone = false");
        assert!(!File::parse(off.split("[reverse").next().unwrap(), "f").unwrap().keys.scone);
        let mode = mistake("queue = 7100", "mode = \"ruoter\"");
        assert!(mode.what.contains("did you mean `router`?"), "{mode}");
    }

    #[test]
    fn a_file_of_budgets_alone_has_a_name_as_one_of_a_link_has() {
        let link = "[interfaces]\nwan = \"eth0\"\n";
        for before in [link, "[c2ml]\n"] {
            let parse = |name: &str| Kind::parse(&format!("{name}{before}[link]\nrate = \"20Mbit/s\"\n"), "f").unwrap();
            assert_eq!(parse("name = \"cellar\"\n").name(), "cellar", "{before}");
            assert_eq!(parse("").name(), "gateway", "{before}");
        }
    }
}
