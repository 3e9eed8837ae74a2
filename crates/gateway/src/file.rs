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

use crate::link::source::Keys as SourceKeys;
use crate::settings::Settings;
use crate::subscribers::Subscribers;
use penstock_appliance::live::Words;
use penstock_appliance::page::keys::{PageKeys, Settings as PageSettings};
use penstock_appliance::socket::place::is_name;
use penstock_budgets::served::Keys as C2ml;
use penstock_core::ack::pink::{self, Behind};
use penstock_core::config::ConfigError;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Limit, Rate, Span};
use penstock_grammar::link::{self, LayerKeys, Link};
use penstock_grammar::named::Disciplines;
use penstock_grammar::range::within;
use penstock_grammar::source::{Table, Value};
use penstock_grammar::{Diagnosis, Source as Text, fields};
use penstock_shaper::bottleneck::Config;
use serde::de::DeserializeOwned;
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
    pub(crate) interfaces: Interfaces,
    /// What can change while the gateway runs.
    pub settings: Settings,
    pub(crate) page: Option<PageSettings>,
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
    /// True for real-time scheduling (SCHED_FIFO), where the system allows it.
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
            realtime: true,
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
pub(crate) struct Interfaces {
    /// That to the link.
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
        Words::GATEWAY.rate("rate", down).and_then(|()| Words::GATEWAY.rate("reverse_rate", up))?;
        Ok([(down, link.limit), (up, link.reverse_limit)])
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
    /// Reads the text of a file; `name` is the name of the file in messages. The error is the first mistake, with its line
    /// and column.
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
        let [_, (upload, _)] = link.directions().map_err(|e| source.at(&["link", e.key], &e.to_string()))?;
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
}

/// Returns a table that every file has.
fn wanted<'v, 'a>(source: &'v Text<'a>, key: &str, example: &str) -> Result<&'v Value<'a>, Diagnosis> {
    let missing = || source.at(&[], &format!("the table [{key}] is missing; write for example\n[{key}]\n{example}"));
    source.get(&[key]).ok_or_else(missing)
}

fn link_of<'v, 'a>(source: &'v Text<'a>) -> Result<&'v Value<'a>, Diagnosis> {
    wanted(source, "link", "rate = \"20Mbit/s\"  # from the WAN to the LAN\nreverse_rate = \"2Mbit/s\"")
}

/// Reads a table that a file need not have.
fn optional<K: DeserializeOwned, T>(
    source: &Text<'_>,
    key: &str,
    read: impl Fn(K) -> Result<T, ConfigError>,
) -> Result<Option<T>, Diagnosis> {
    let Some(value) = source.get(&[key]) else { return Ok(None) };
    let table = source.table(value, &[fields::of::<K>()])?;
    read(table.part()?).map(Some).map_err(|e| table.invalid(&e))
}

fn page(source: &Text<'_>) -> Result<Option<PageSettings>, Diagnosis> {
    optional(source, "page", PageKeys::settings)
}

/// Reads the table `[c2ml]` for an upload of this rate.
fn c2ml(source: &Text<'_>, upload: Rate) -> Result<Option<C2ml>, Diagnosis> {
    optional(source, "c2ml", |keys: C2ml| keys.validate().and_then(|()| keys.check_floors(upload)).map(|()| keys))
}

impl File {
    /// Reads the text of a file; `name` is the name of the file in messages. The error is the first mistake, with its line
    /// and column.
    pub fn parse(text: &str, name: &str) -> Result<Self, Diagnosis> {
        let source = Text::parse(text, name)?;
        let table = source.table(source.root(), &[fields::of::<Keys>(), &TABLES])?;
        let keys: Keys = table.part()?;
        check(&keys, &table, &source)?;
        let subscribers = Subscribers::read(&source)?;
        let interfaces: Interfaces = source.read(wanted(&source, "interfaces", "wan = \"eth0\"")?)?;
        let link = source.table(
            link_of(&source)?,
            &[fields::of::<LinkKeys>(), fields::of::<LayerKeys>(), fields::of::<SourceKeys>()],
        )?;
        let ways = bottlenecks(&source, &link, default_discipline(keys.datapath, subscribers.tree))?;
        let rates = ways.each_ref().map(|way| way.rate);
        subscribers.check(&source, rates, ways.each_ref().map(|way| &way.aqm))?;
        let told = link.part::<SourceKeys>()?.settings(rates).map_err(|e| link.invalid(&e))?;
        let settings = Settings { ways, source: told, by_hand: false, subscribers: Arc::new(subscribers) };
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
        let sources = fields::of::<SourceKeys>().iter().map(|key| vec!["link", *key]);
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

/// Returns PINK's parameters of a discipline if the programs have it in this form, or else what is allowed.
pub(crate) fn parameters(aqm: &AnyConfig) -> Result<&pink::Config, String> {
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
    let layers = table.part::<LayerKeys>()?.layers().map_err(|e| table.invalid(&e))?;
    let config = |aqm, (rate, limit), layer| Config { aqm, rate, layer, delay: Span::ZERO, limit };
    let ways = [config(forward, directions[0], layers[0]), config(reverse, directions[1], layers[1])];
    shapers(source, &ways)?;
    Ok(ways)
}

/// Checks that no discipline shapes to more than the rate of its link: the queue would be behind it.
fn shapers(source: &Text<'_>, ways: &[Config; 2]) -> Result<(), Diagnosis> {
    let of_both = source.get(&["reverse_discipline"]).is_none();
    for (way, (table, name)) in ways.iter().zip([("discipline", "download"), ("reverse_discipline", "upload")]) {
        let AnyConfig::Cake(cake) = &way.aqm else { continue };
        let Some(bandwidth) = cake.bandwidth.filter(|bandwidth| *bandwidth > way.rate) else { continue };
        let (rate, key) = (way.rate, if of_both { "discipline" } else { table });
        let what = format!(
            "the shaper of the {name} has {bandwidth}, which is above the rate of its link, {rate}: write one that is not \
             above it, or leave `bandwidth` out, or write a [reverse_discipline]"
        );
        return Err(source.at(&[key, "bandwidth"], &what));
    }
    Ok(())
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
