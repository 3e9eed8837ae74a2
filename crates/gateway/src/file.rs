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
use crate::settings::Settings;
use crate::subscribers::Subscribers;
use penstock_appliance::page::keys::{PageKeys, Settings as PageSettings};
use penstock_appliance::socket::place::is_name;
use penstock_budgets::served::Keys as C2ml;
use penstock_core::ack::pink::{self, Behind};
use penstock_core::config::ConfigError;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Limit, Rate, Span};
use penstock_grammar::link::{self, Link};
use penstock_grammar::named::Disciplines;
use penstock_grammar::range::within;
use penstock_grammar::source::{Table, Value};
use penstock_grammar::{Diagnosis, Source as Text, fields};
use penstock_shaper::bottleneck::Config;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// Where changes are noted unless the file says another place.
pub const LOG: &str = "/var/log/penstock/gateway.jsonl";

/// The settings of a gateway, which are valid.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// The keys outside of tables.
    pub keys: Keys,
    /// The interfaces between which packets are governed.
    pub interfaces: Interfaces,
    /// What can change while the gateway runs.
    pub settings: Settings,
    /// The page, if the file has one.
    pub page: Option<PageSettings>,
    /// What gives budgets to hosts, if anything does.
    pub c2ml: Option<C2ml>,
}

/// The keys outside of tables.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The kernel routes, and its firewall hands packets over.
    Router,
    /// The kernel bridges, and this process takes what is to wait from both ports.
    Bridge,
}

/// Who shapes and edits packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Datapath {
    /// This process.
    User,
    /// Programs in the kernel.
    Kernel,
}

/// The table `[interfaces]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
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
        let (delay, loss, reverse_limit) = (Span::ZERO, 0.0, reverse_limit.unwrap_or(limit));
        let link = Link { rate, delay, limit, reverse_limit, loss };
        link.validate()?;
        let reverse_rate = reverse_rate.unwrap_or(rate);
        link::rate("reverse_rate", reverse_rate)?;
        Ok([(link.rate, link.limit), (reverse_rate, link.reverse_limit)])
    }
}

/// The tables of the file.
const TABLES: [&str; 7] = ["interfaces", "link", "discipline", "reverse_discipline", "page", "c2ml", "subscribers"];
/// What a file of budgets only has.
const ALONE: [&str; 4] = ["name", "link", "c2ml", "page"];
const NAMES: &str = "a name has up to 64 letters, digits, '-', '_' and '.', which is not the first";

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
        source.table(source.root(), &[&ALONE])?;
        let name = source.get(&["name"]).map(|name| source.read(name)).transpose()?;
        let name = name.unwrap_or_else(|| Keys::default().name);
        let link: LinkKeys = source.table(link_of(&source)?, &[fields::of::<LinkKeys>()])?.part()?;
        if !is_name(&name) {
            return Err(source.at(&["name"], NAMES));
        }
        let [_, (upload, _)] = link.directions().map_err(|e| source.at(&["link"], &e.to_string()))?;
        let c2ml = c2ml(&source, upload)?.unwrap_or_default();
        if c2ml.enforce {
            let what = "without [interfaces] no packet is touched, so nothing is enforced";
            return Err(source.at(&["c2ml", "enforce"], what));
        }
        let page = page(&source)?;
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

/// Returns a table that every file has.
fn wanted<'v, 'a>(source: &'v Text<'a>, key: &str, example: &str) -> Result<&'v Value<'a>, Diagnosis> {
    let missing = || source.at(&[], &format!("the table [{key}] is missing; write for example\n[{key}]\n{example}"));
    source.get(&[key]).ok_or_else(missing)
}

fn link_of<'v, 'a>(source: &'v Text<'a>) -> Result<&'v Value<'a>, Diagnosis> {
    wanted(source, "link", "rate = \"20Mbit/s\"  # from the WAN to the LAN\nreverse_rate = \"2Mbit/s\"")
}

/// Reads the table `[c2ml]` for an upload of this rate.
fn c2ml(source: &Text<'_>, upload: Rate) -> Result<Option<C2ml>, Diagnosis> {
    let Some(value) = source.get(&["c2ml"]) else { return Ok(None) };
    let table = source.table(value, &[fields::of::<C2ml>()])?;
    let keys: C2ml = table.part()?;
    keys.validate().and_then(|()| keys.check_floors(upload)).map_err(|e| table.invalid(&e))?;
    Ok(Some(keys))
}

impl File {
    /// Reads the text of a file; `name` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns the first mistake with its line and column.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnosis> {
        let source = Text::parse(text, name)?;
        let table = source.table(source.root(), &[fields::of::<Keys>(), &TABLES])?;
        let keys: Keys = table.part()?;
        check(&keys, &table, &source)?;
        let subscribers = Subscribers::read(&source)?;
        let interfaces: Interfaces = source.read(wanted(&source, "interfaces", "wan = \"eth0\"")?)?;
        let link = source.table(link_of(&source)?, &[fields::of::<LinkKeys>(), fields::of::<keys::Keys>()])?;
        let ways = bottlenecks(&source, &link, default_discipline(keys.datapath, subscribers.tree))?;
        let rates = ways.each_ref().map(|way| way.rate);
        subscribers.check(&source, rates, ways.each_ref().map(|way| &way.aqm))?;
        let told = link.part::<keys::Keys>()?.settings(rates).map_err(|e| link.invalid(&e))?;
        let settings = Settings { ways, source: told, subscribers: Arc::new(subscribers) };
        let (page, c2ml) = (page(&source)?, c2ml(&source, rates[1])?);
        let file = Self { keys, interfaces, settings, page, c2ml };
        file.check(&source)?;
        Ok(file)
    }

    /// True if hosts are held to budgets.
    pub fn enforces(&self) -> bool {
        self.c2ml.as_ref().is_some_and(|c2ml| c2ml.enforce)
    }

    /// Checks that what the tables say fits together.
    fn check(&self, source: &Text<'_>) -> Result<(), Diagnosis> {
        if self.c2ml.is_some() {
            let why = "budgets of [c2ml] are given to IP addresses; write prefixes";
            self.settings.subscribers.refuse_hardware(source, why)?;
        }
        if self.keys.datapath == Datapath::Kernel {
            return self.check_in_the_kernel(source);
        }
        if self.interfaces.lan.is_none() {
            let why = "frames of the LAN are seen with its interface; write `lan` beside `wan` in [interfaces]";
            self.settings.subscribers.refuse_hardware(source, why)?;
        }
        let upload = &self.settings.ways[1].aqm;
        if !self.enforces() || takes_budgets(upload) {
            return Ok(());
        }
        let message = format!(
            "the discipline of the upload is {}, which takes no budgets; write name = \"qrm\", or name = \"pink\" with \
             queue = \"qrm\", in [discipline] or [reverse_discipline]",
            upload.name()
        );
        Err(source.at(&["c2ml", "enforce"], &message))
    }

    /// Checks what the programs of the kernel do not have.
    fn check_in_the_kernel(&self, source: &Text<'_>) -> Result<(), Diagnosis> {
        let wrong = |place: &[&str], what: &str| Err(source.at(place, what));
        match (&self.interfaces.lan, self.enforces()) {
            (Some(_), false) => {
                let what =
                    "the kernel data path governs all that passes `wan`; leave `lan` out, or write datapath = \"user\"";
                return wrong(&["interfaces", "lan"], what);
            }
            (None, true) => {
                let what = "in the kernel hosts are held to budgets at the interface of the LAN: write lan = \"eth1\" in [interfaces]";
                return wrong(&["c2ml", "enforce"], what);
            }
            _ => {}
        }
        let sources = fields::of::<keys::Keys>().iter().map(|key| vec!["link", *key]);
        let off = |place: &[&str]| place == ["scone"] && !self.keys.scone;
        for place in sources.chain([vec!["page"], vec!["subscribers"], vec!["scone"]]) {
            if source.get(&place).is_some() && !off(&place) {
                return wrong(&place, "the kernel data path does not have this yet; write datapath = \"user\"");
            }
        }
        for (key, config) in ["discipline", "reverse_discipline"].into_iter().zip(&self.settings.ways) {
            let at = if source.get(&[key]).is_some() { key } else { "discipline" };
            parameters(&config.aqm).map_err(|message| source.at(&[at], &message))?;
        }
        Ok(())
    }
}

/// Returns whether a discipline holds nodes to budgets that it is told.
fn takes_budgets(aqm: &AnyConfig) -> bool {
    matches!(aqm, AnyConfig::Qrm(_)) || matches!(aqm, AnyConfig::Pink(pink) if pink.queue == Behind::Qrm)
}

/// Reads the table `[page]`, if there is one.
fn page(source: &Text<'_>) -> Result<Option<PageSettings>, Diagnosis> {
    let Some(value) = source.get(&["page"]) else { return Ok(None) };
    let table = source.table(value, &[fields::of::<PageKeys>()])?;
    table.part::<PageKeys>()?.settings().map(Some).map_err(|e| table.invalid(&e))
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
    let wrong = |place: &[&str], what: &str| Err(source.at(place, what));
    let has = |place: &[&str]| source.get(place).is_some();
    if let Some(key) = ["queue", "firewall"].into_iter().find(|key| has(&[*key])) {
        let what = format!("a bridge hands nothing to the firewall; leave `{key}` out, or write mode = \"router\"");
        return wrong(&[key], &what);
    }
    if keys.datapath == Datapath::Kernel {
        return wrong(&["datapath"], "on a bridge packets are shaped by this process; write datapath = \"user\"");
    }
    if has(&["interfaces"]) && !has(&["interfaces", "lan"]) {
        return wrong(&["interfaces"], "a bridge has two ports: write `lan` beside `wan`, such as lan = \"eth1\"");
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
fn default_discipline(datapath: Datapath, tree: bool) -> AnyConfig {
    let before = |queue| AnyConfig::Pink(pink::Config { queue, ..pink::Config::default() });
    match datapath {
        _ if tree => AnyConfig::FqCodel(Default::default()),
        Datapath::User => before(Behind::FqOthers),
        Datapath::Kernel => before(Behind::Fifo),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::source::From;
    use jiff::civil::time;

    const GOOD: &str = r#"queue = 7100
patience = '100ms'

[interfaces]
wan = 'eth0'
lan = 'eth1'

[link]
rate = '20Mbit/s'
reverse_rate = '2Mbit/s'
limit = '125kB'

[reverse_discipline]
name = 'codel'
target = '10ms'

[subscribers]
house = ['10.1.0.0/28']
"#;

    fn mistake(piece: &str, by: &str) -> Diagnosis {
        assert_eq!(GOOD.matches(piece).count(), 1, "{piece:?} is there once");
        File::parse(&GOOD.replacen(piece, by, 1), "some/gateway.toml").unwrap_err()
    }

    #[test]
    fn what_a_file_says_is_read() {
        let file = File::parse(GOOD, "f").unwrap();
        let [down, up] = &file.settings.ways;
        assert_eq!((down.aqm.name(), up.aqm.name()), ("pink", "codel"));
        assert_eq!((down.rate, up.rate), (Rate::from_bps(20_000_000), Rate::from_bps(2_000_000)));
        assert_eq!((down.limit, up.limit), ("125kB".parse().unwrap(), "125kB".parse().unwrap()));
        assert_eq!((file.keys.queue, file.keys.patience), (7100, Span::from_millis(100)));
        assert_eq!((file.keys.observe, file.keys.name.as_str()), (false, "gateway"));
        assert_eq!(file.settings.subscribers.named()[0].name, "house");
    }

    /// Each key that all links have changes what packets meet, or is refused at its line.
    #[test]
    fn no_key_of_links_is_ignored() {
        const PLAIN: &str = "[interfaces]\nwan = 'eth0'\n[link]\n";
        let text = |keys: &str| File::parse(&format!("{PLAIN}{keys}\n"), "f");
        let plain = "rate = '2Mbit/s'";
        let values = |key: &str| match key {
            "rate" => "rate = '3Mbit/s'".to_owned(),
            "limit" | "reverse_limit" => format!("{plain}\n{key} = '9p'"),
            other => format!("{plain}\n{other} = 0.01"),
        };
        let mut refused = Vec::new();
        for key in fields::of::<Link>() {
            match text(&values(key)) {
                Ok(read) => assert_ne!(read.settings.ways, text(plain).unwrap().settings.ways, "{key}"),
                Err(wrong) => {
                    assert!(wrong.line == 5 && wrong.what.contains(&format!("unknown field `{key}`")), "{wrong}");
                    refused.push(*key);
                }
            }
        }
        assert_eq!(refused, ["delay", "loss"]);
    }

    #[test]
    fn hardware_addresses_are_refused_where_they_cannot_be_known() {
        let with = GOOD.replace("['10.1.0.0/28']", "['10.1.0.0/28', '02:00:5e:00:53:01']");
        assert_eq!(File::parse(&with, "f").unwrap().settings.subscribers.named()[0].prefixes.len(), 2);
        let kernel = with.replace("lan = 'eth1'", "").replace("patience = '100ms'", "datapath = 'kernel'");
        for (file, line, column, said) in [
            (with.replace("lan = 'eth1'", ""), 18, 25, "write `lan` beside `wan`"),
            (format!("{with}[c2ml]\n"), 18, 25, "budgets of [c2ml]"),
            (kernel, 17, 1, "the kernel data path does not have this yet"),
        ] {
            let wrong = File::parse(&file, "f").unwrap_err();
            assert!(wrong.line == line && wrong.column == column && wrong.what.contains(said), "{wrong}");
        }
    }

    #[test]
    fn the_file_of_what_if_needs_its_interfaces_only() {
        let written = "[link]\nrate = '3.8Mbit/s'\nlimit = '60kB'\n\n[discipline]\nname = 'fq-codel'\ntarget = '5ms'\n";
        let missing = File::parse(written, "f").unwrap_err();
        assert!(missing.what.contains("[interfaces]\nwan"), "{missing}");
        let file = File::parse(&format!("{written}\n[interfaces]\nwan = 'ppp0'\n"), "f").unwrap();
        assert_eq!(file.settings.ways[0], file.settings.ways[1], "the other direction is the same");
        assert_eq!(file.settings.ways[1].aqm.name(), "fq-codel");
    }

    #[test]
    fn the_example_is_a_right_one() {
        let file = File::parse(include_str!("../../../examples/gateway/dsl.toml"), "dsl.toml").unwrap();
        let names: Vec<&str> = file.settings.ways.iter().map(|config| config.aqm.name()).collect();
        assert_eq!((names.as_slice(), file.settings.subscribers.list.len()), (&["pink", "fq-codel"][..], 2));
    }

    #[test]
    fn mistakes_and_what_is_not_there_yet_are_told_with_line_and_suggestion() {
        for (piece, by, line, said) in [
            ("patience =", "patence =", 2, "did you mean `patience`?"),
            ("'codel'", "'codle'", 14, "did you mean \"codel\"?"),
            ("'20Mbit/s'", "20", 9, "quotes with its unit"),
            ("wan =", "wann =", 5, "did you mean `wan`?"),
            ("limit =", "delay =", 11, "`reverse_rate`"),
            ("'100ms'", "'1ms'", 2, "20ms"),
            ("queue = 7100", "queue = 0", 1, "1 to 65534"),
            ("queue = 7100", "queue = 65535", 1, "1 to 65534"),
            ("queue = 7100", "name = 'a/b'", 1, "up to 64 letters"),
            ("queue = 7100", "mode = 'bridge'\nqueue = 7100", 2, "hands nothing to the firewall"),
            ("queue = 7100", "mode = 'bridge'\ndatapath = 'kernel'", 2, "shaped by this process"),
            ("queue = 7100", "datapath = 'kernel'", 6, "leave `lan` out"),
            ("queue = 7100", "mode = 'ruoter'", 1, "did you mean `router`?"),
        ] {
            let mistake = mistake(piece, by);
            assert!(mistake.line == line && mistake.what.contains(said), "{by}: {mistake}");
        }
        assert_eq!(mistake("patience =", "patence =").column, 1);
        let bridge = GOOD.replace("queue = 7100", "mode = 'bridge'");
        assert_eq!(File::parse(&bridge, "f").unwrap().keys.mode, Mode::Bridge);
        let alone = File::parse(&bridge.replace("lan = 'eth1'\n", ""), "f").unwrap_err();
        assert!(alone.line == 4 && alone.what.contains("two ports"), "{alone}");
        let (kernel, _) = GOOD.split_once("[reverse").unwrap();
        let kernel = kernel.replace("lan = 'eth1'\n", "").replace("queue = 7100", "datapath = 'kernel'\nscone = true");
        let scone = File::parse(&kernel, "f").unwrap_err();
        assert!(scone.line == 2 && scone.what.contains("does not have this yet"), "{scone}");
        assert!(!File::parse(&kernel.replace("= true", "= false"), "f").unwrap().keys.scone);
    }

    #[test]
    fn where_rates_come_from_is_read() {
        let with = |lines: &str| GOOD.replace("limit = '125kB'", lines);
        let source = |lines: &str| File::parse(&with(lines), "f").unwrap().settings.source;
        assert_eq!(source("").from, From::File);
        let table = source("timetable = { '06:00' = '8Mbit/s', '22:00' = '50Mbit/s' }");
        let noon = table.keys.timetable.at(time(12, 0, 0, 0));
        assert_eq!((table.from, noon), (From::Timetable, Some(Rate::from_bps(8_000_000))));
        let command = source("command = ['modem', '-r']\nlowest = '1Mbit/s'\nplain_after = '1h'");
        assert_eq!((command.from, command.keys.command.len()), (From::Command, 2));
        let lowest = command.bounds.map(|bounds| bounds.start().as_bps());
        assert_eq!(lowest, [1_000_000, 100_000], "a twentieth of `reverse_rate`");
        assert_eq!(source("rate_from = 'estimate'").from, From::Estimate);
        for (lines, said) in [
            ("rate_from = 'comand'", "did you mean `command`?"),
            ("rate_from = 'command'", "the key `command` is missing"),
            ("rate_from = 'timetable'", "the key `timetable` is missing"),
            ("rate_from = 'file'\ncommand = ['x']", "another source"),
            ("timetable = { '24:00' = '8Mbit/s' }", "is no time of day"),
            ("timetable = { '06:00' = '0bit/s' }", "is not a rate above zero"),
            ("lowest = '30Mbit/s'", "allowed are `lowest` to `highest`"),
            ("every = '2min'", "stale_after is 60s; allowed are 120s"),
            ("stale_afer = '2min'", "did you mean `stale_after`?"),
        ] {
            let mistake = File::parse(&with(lines), "f").unwrap_err();
            assert!(mistake.line >= 8 && mistake.what.contains(said), "{lines}: {mistake}");
        }
    }

    #[test]
    fn budgets_for_hosts_are_a_table_of_a_router_or_a_file_of_their_own() {
        let with = format!("{GOOD}\n[c2ml]\nsharing = 'priority'\nlease = '2s'\n");
        let Kind::Link(file) = Kind::parse(&with, "f").unwrap() else { panic!("a link") };
        assert_eq!(file.c2ml.unwrap().settings(Rate::from_bps(1_000_000)).lease, Span::from_secs(2));
        let alone = "[link]\nrate = '20Mbit/s'\nreverse_rate = '2Mbit/s'\n[c2ml]\npercent = 95\n";
        let Kind::Alone(alone) = Kind::parse(alone, "f").unwrap() else { panic!("budgets only") };
        assert_eq!((alone.upload, alone.c2ml.shared(alone.upload).as_bps()), (Rate::from_bps(2_000_000), 1_900_000));
        for (text, expected) in [
            ("sharring = 'dybra'", "did you mean `sharing`?"),
            ("sharing = 'dibra'", "dybra"),
            ("percent = 0", "1 to 100"),
            ("lease = '2h'", "1min"),
            ("most = 0", "1 to 1048576"),
            ("percent = 50\nfloors = ['none', '1.1Mbit/s']", "class 1 has a floor of 1.1Mbit/s, but 1Mbit/s"),
            ("floors = ['5']", "three digits"),
            ("floors = '5Mbit/s'", "sequence"),
            ("listen = 'here'", "socket address"),
            ("percent = 90\nenforce = true", "without [interfaces]"),
            ("enforce = true", "1 to 99"),
        ] {
            let text = format!("[link]\nrate = '2Mbit/s'\n[c2ml]\n{text}\n");
            let mistake = Kind::parse(&text, "f").unwrap_err();
            assert!((3..=5).contains(&mistake.line) && mistake.to_string().contains(expected), "{mistake}");
        }
    }

    #[test]
    fn budgets_are_enforced_by_a_discipline_that_takes_them() {
        let with = |discipline: &str| {
            let text = GOOD.replace("name = 'codel'\ntarget = '10ms'", discipline);
            Kind::parse(&format!("{text}\n[c2ml]\nenforce = true\npercent = 90\n"), "f")
        };
        for right in ["name = 'qrm'", "name = 'pink'\nqueue = 'qrm'"] {
            assert!(matches!(with(right), Ok(Kind::Link(file)) if file.enforces()), "{right}");
        }
        for wrong in ["name = 'codel'", "name = 'pink'"] {
            let mistake = with(wrong).unwrap_err();
            assert!(mistake.what.contains("takes no budgets") && mistake.line > 15, "{mistake}");
        }
    }

    #[test]
    fn a_file_of_budgets_alone_has_a_name_as_one_of_a_link_has() {
        let link = "[interfaces]\nwan = 'eth0'\n";
        for before in [link, "[c2ml]\n"] {
            let parse = |name: &str| Kind::parse(&format!("{name}{before}[link]\nrate = '20Mbit/s'\n"), "f").unwrap();
            assert_eq!(parse("name = 'cellar'\n").name(), "cellar", "{before}");
            assert_eq!(parse("").name(), "gateway", "{before}");
        }
    }
}
