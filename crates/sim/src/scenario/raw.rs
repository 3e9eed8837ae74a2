//! The file as it is written, before anything is checked.

use super::changes::{self, RawChange};
use super::stations::StationSpec;
use super::{Lie, LinkSpec, QueueSpec, Scenario, cooperation, handovers, traffic};
use penstock_core::coop::policy::Sharing;
use penstock_core::units::{Bytes, Limit, Rate, Span};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use toml::{Table, Value};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawScenario<Topology = RawTopology> {
    pub name: Option<String>,
    pub duration: Span,
    #[serde(default = "one")]
    pub seed: u64,
    #[serde(default)]
    pub warmup: Span,
    pub topology: Topology,
    pub aqm: Option<Table>,
    #[serde(default)]
    pub tcp: Table,
    #[serde(default)]
    pub flows: Vec<RawFlow>,
    #[serde(default)]
    pub changes: Vec<RawChange>,
    #[serde(default)]
    pub handovers: Vec<RawHandover>,
    pub cooperation: Option<RawCooperation>,
    #[serde(default)]
    pub output: RawOutput,
    #[serde(default)]
    pub invariants: RawInvariants,
}

fn one() -> u64 {
    1
}

impl<T: DeserializeOwned> RawScenario<T> {
    fn read(text: &str, into: fn(T) -> RawTopology) -> Result<RawScenario, toml::de::Error> {
        let raw: Self = toml::from_str(text)?;
        Ok(RawScenario {
            name: raw.name,
            duration: raw.duration,
            seed: raw.seed,
            warmup: raw.warmup,
            topology: into(raw.topology),
            aqm: raw.aqm,
            tcp: raw.tcp,
            flows: raw.flows,
            changes: raw.changes,
            handovers: raw.handovers,
            cooperation: raw.cooperation,
            output: raw.output,
            invariants: raw.invariants,
        })
    }
}

/// The kinds of topologies, as [`read`] knows them.
pub const KINDS: &[&str] = &["dumbbell", "parking-lot", "graph"];

/// Reads a file whose topology is of this kind; `None` if there is no such kind. An enum tagged by `kind` would do the
/// same, but its errors do not know their place in the file.
pub fn read(text: &str, kind: &str) -> Option<Result<RawScenario, toml::de::Error>> {
    match kind {
        "dumbbell" => Some(RawScenario::read(text, RawTopology::Dumbbell)),
        "parking-lot" => Some(RawScenario::read(text, RawTopology::ParkingLot)),
        "graph" => Some(RawScenario::read(text, RawTopology::Graph)),
        _ => None,
    }
}

#[derive(Debug, Clone)]
pub enum RawTopology {
    Dumbbell(RawDumbbell),
    ParkingLot(RawParkingLot),
    Graph(RawGraph),
}

impl RawTopology {
    pub fn access_rate(&self) -> Rate {
        match self {
            Self::Dumbbell(d) => d.access_rate,
            Self::ParkingLot(p) => p.access_rate,
            Self::Graph(g) => g.access_rate,
        }
    }
    pub fn access_delay(&self) -> Span {
        match self {
            Self::Dumbbell(d) => d.access_delay,
            Self::ParkingLot(p) => p.access_delay,
            Self::Graph(g) => g.access_delay,
        }
    }
}

fn access_rate() -> Rate {
    Rate::from_bps(1_000_000_000)
}

fn thousand_packets() -> Limit {
    Limit::Packets(1000)
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawDumbbell {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    pub rate: Rate,
    pub delay: Span,
    #[serde(default = "thousand_packets")]
    pub limit: Limit,
    #[serde(default = "thousand_packets")]
    pub reverse_limit: Limit,
    pub reverse_aqm: Option<Table>,
    #[serde(default)]
    pub loss: f64,
    #[serde(default)]
    pub stations: Vec<StationSpec>,
    #[serde(default = "access_rate")]
    pub access_rate: Rate,
    #[serde(default)]
    pub access_delay: Span,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawParkingLot {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    pub hops: Vec<RawHop>,
    #[serde(default = "access_rate")]
    pub access_rate: Rate,
    #[serde(default)]
    pub access_delay: Span,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawHop {
    rate: Rate,
    delay: Span,
    #[serde(default = "thousand_packets")]
    limit: Limit,
    aqm: Option<Table>,
    #[serde(default)]
    loss: f64,
    #[serde(default)]
    stations: Vec<StationSpec>,
}

impl RawHop {
    /// The hop as the link from `r<i>` to the next router.
    pub fn on_route(&self, i: usize) -> RawLink {
        RawLink {
            name: Some(format!("hop{i}")),
            a: format!("r{i}"),
            b: format!("r{}", i + 1),
            rate: self.rate,
            delay: self.delay,
            limit: self.limit,
            reverse_limit: thousand_packets(),
            aqm: self.aqm.clone(),
            reverse_aqm: None,
            loss: self.loss,
            stations: self.stations.clone(),
            bottleneck: Some(true),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawGraph {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    pub links: Vec<RawLink>,
    #[serde(default = "access_rate")]
    pub access_rate: Rate,
    #[serde(default)]
    pub access_delay: Span,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLink {
    pub name: Option<String>,
    pub a: String,
    pub b: String,
    pub rate: Rate,
    pub delay: Span,
    #[serde(default = "thousand_packets")]
    pub limit: Limit,
    #[serde(default = "thousand_packets")]
    pub reverse_limit: Limit,
    pub aqm: Option<Table>,
    pub reverse_aqm: Option<Table>,
    #[serde(default)]
    pub loss: f64,
    #[serde(default)]
    pub stations: Vec<StationSpec>,
    pub bottleneck: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawFlow {
    pub kind: String,
    #[serde(default = "one")]
    pub count: u64,
    #[serde(default)]
    pub start: Span,
    #[serde(default)]
    pub start_step: Span,
    #[serde(default)]
    pub start_spread: Span,
    pub stop: Option<Span>,
    pub size: Option<Bytes>,
    pub rate: Option<Rate>,
    pub packet_size: Option<RawSizes>,
    pub packet_weights: Option<Vec<f64>>,
    pub per_second: Option<f64>,
    pub load: Option<f64>,
    pub mean_size: Option<Bytes>,
    pub max_size: Option<Bytes>,
    pub shape: Option<f64>,
    pub packets: Option<u64>,
    pub idle: Option<Span>,
    pub idle_distribution: Option<String>,
    pub connection: Option<String>,
    pub talk_spurts: Option<bool>,
    pub fps: Option<f64>,
    pub gop: Option<u32>,
    pub i_frame_ratio: Option<f64>,
    pub spread: Option<f64>,
    pub deadline: Option<Span>,
    pub direction: Option<String>,
    pub mean_on: Option<Span>,
    pub mean_off: Option<Span>,
    pub access_delay: Option<Span>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub node: Option<String>,
    pub class: Option<u32>,
    pub weight: Option<u32>,
    pub cc: Option<Value>,
    #[serde(default)]
    pub tcp: Table,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawCooperation {
    pub link: String,
    pub sharing: Option<Sharing>,
    #[serde(default)]
    pub literal: bool,
    pub lease: Option<Span>,
    pub advertise: Option<Span>,
    pub silent_from: Option<Span>,
    #[serde(default)]
    pub nodes: Vec<RawNode>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawNode {
    pub name: String,
    pub csi: Option<String>,
    pub lie: Option<Lie>,
}

/// One size, or a list of them.
#[derive(Debug, Clone)]
pub struct RawSizes(pub Vec<Bytes>);

impl<'de> Deserialize<'de> for RawSizes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMore;
        impl<'de> serde::de::Visitor<'de> for OneOrMore {
            type Value = RawSizes;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a size in quotes with its unit, like \"1200B\", or a list of sizes")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawSizes, E> {
                text.parse().map(|size| RawSizes(vec![size])).map_err(E::custom)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<RawSizes, A::Error> {
                let mut sizes = Vec::new();
                while let Some(size) = list.next_element()? {
                    sizes.push(size);
                }
                Ok(RawSizes(sizes))
            }
        }
        deserializer.deserialize_any(OneOrMore)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawHandover {
    pub at: Span,
    pub from: String,
    pub to: String,
    pub procedure: String,
    pub interruption: Option<Span>,
    pub flows: Option<Vec<u32>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawOutput {
    pub series: bool,
    pub pcapng: Vec<String>,
}

impl Default for RawOutput {
    fn default() -> Self {
        Self { series: true, pcapng: Vec::new() }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawInvariants {
    pub max_queue: Option<Bytes>,
    pub no_drops: bool,
}

/// The scenario as TOML with every default written out. Every topology is written as a graph or a dumbbell.
pub fn write(scenario: &Scenario) -> String {
    let mut root = Table::new();
    root.insert("name".into(), scenario.name.clone().into());
    root.insert("duration".into(), text(scenario.duration));
    root.insert("seed".into(), "SEED".into());
    root.insert("warmup".into(), text(scenario.warmup));
    root.insert("output".into(), output(scenario));
    root.insert("invariants".into(), invariants(scenario));
    let mut topology = Table::new();
    let dumbbell = is_dumbbell(scenario);
    topology.insert("kind".into(), if dumbbell { "dumbbell" } else { "graph" }.into());
    topology.insert("access_rate".into(), text(scenario.access.rate));
    topology.insert("access_delay".into(), text(scenario.access.delay));
    if dumbbell {
        let link = &scenario.links[0];
        topology.insert("rate".into(), text(link.rate));
        topology.insert("delay".into(), text(link.delay));
        topology.insert("limit".into(), text(link.queue.limit));
        topology.insert("reverse_limit".into(), text(link.reverse_queue.limit));
        topology.insert("reverse_aqm".into(), algorithm(&link.reverse_queue));
        topology.insert("loss".into(), link.queue.loss.into());
        topology.extend(stations(&link.queue).map(|stations| ("stations".to_owned(), stations)));
        root.insert("aqm".into(), algorithm(&link.queue));
    } else {
        topology.insert("links".into(), Value::Array(scenario.links.iter().map(link).collect()));
    }
    root.insert("topology".into(), Value::Table(topology));
    root.insert("flows".into(), Value::Array(scenario.flows.iter().map(|f| flow(f, dumbbell)).collect()));
    if !scenario.changes.is_empty() {
        let changes = scenario.changes.iter().map(|c| changes::write(c, &scenario.links[c.link].name)).collect();
        root.insert("changes".into(), Value::Array(changes));
    }
    if !scenario.handovers.is_empty() {
        let handovers = scenario.handovers.iter().map(handovers::write).collect();
        root.insert("handovers".into(), Value::Array(handovers));
    }
    if let Some(spec) = &scenario.cooperation {
        root.insert("cooperation".into(), cooperation::write(spec, &scenario.links));
    }
    toml::to_string(&root).unwrap_or_default().replacen("seed = \"SEED\"", "seed = SEED", 1)
}

/// A graph may look like a dumbbell and yet be none: a queue that is not looked at.
fn is_dumbbell(scenario: &Scenario) -> bool {
    let [link] = scenario.links.as_slice() else { return false };
    let named = link.name == "bottleneck" && link.a == "left" && link.b == "right";
    let looked_at = link.queue.looked_at && !link.reverse_queue.looked_at;
    named && looked_at
}

pub fn text(value: impl ToString) -> Value {
    Value::String(value.to_string())
}

fn output(scenario: &Scenario) -> Value {
    let names = scenario.output.pcapng.iter().map(|n| Value::String(n.clone())).collect();
    Value::Table(Table::from_iter([
        ("series".to_owned(), Value::Boolean(scenario.output.series)),
        ("pcapng".to_owned(), Value::Array(names)),
    ]))
}

fn invariants(scenario: &Scenario) -> Value {
    let mut table = Table::from_iter([("no_drops".to_owned(), Value::Boolean(scenario.invariants.no_drops))]);
    if let Some(bytes) = scenario.invariants.max_queue {
        table.insert("max_queue".into(), text(bytes));
    }
    Value::Table(table)
}

/// A configuration as a table; parameters that are derived from the link have no value and are left out.
fn algorithm(queue: &QueueSpec) -> Value {
    let mut table = Table::from_iter([("name".to_owned(), Value::String(queue.config.name().into()))]);
    if let Ok(Value::Table(parameters)) = Value::try_from(&queue.config) {
        table.extend(parameters);
    }
    Value::Table(table)
}

/// The stations behind a link, if there are any.
fn stations(queue: &QueueSpec) -> Option<Value> {
    Value::try_from(&queue.stations).ok().filter(|_| !queue.stations.is_empty())
}

fn link(spec: &LinkSpec) -> Value {
    let mut table = Table::from_iter([
        ("name".to_owned(), Value::String(spec.name.clone())),
        ("a".to_owned(), Value::String(spec.a.clone())),
        ("b".to_owned(), Value::String(spec.b.clone())),
        ("rate".to_owned(), text(spec.rate)),
        ("delay".to_owned(), text(spec.delay)),
        ("limit".to_owned(), text(spec.queue.limit)),
        ("reverse_limit".to_owned(), text(spec.reverse_queue.limit)),
        ("aqm".to_owned(), algorithm(&spec.queue)),
        ("loss".to_owned(), Value::Float(spec.queue.loss)),
        ("bottleneck".to_owned(), Value::Boolean(spec.queue.looked_at)),
    ]);
    table.extend(stations(&spec.queue).map(|stations| ("stations".to_owned(), stations)));
    // To name the discipline of the way back is to look at it.
    if spec.reverse_queue.looked_at || !spec.queue.looked_at {
        table.insert("reverse_aqm".into(), algorithm(&spec.reverse_queue));
    }
    Value::Table(table)
}

fn flow(spec: &super::FlowSpec, dumbbell: bool) -> Value {
    let mut table = Table::from_iter([
        ("kind".to_owned(), Value::String(spec.traffic.name().into())),
        ("count".to_owned(), Value::Integer(spec.count as i64)),
        ("start".to_owned(), text(spec.start)),
        ("start_step".to_owned(), text(spec.start_step)),
        ("start_spread".to_owned(), text(spec.start_spread)),
    ]);
    let mut add = |key: &str, value| table.insert(key.to_owned(), value);
    if let Some(stop) = spec.stop {
        add("stop", text(stop));
    }
    if let Some(delay) = spec.access_delay {
        add("access_delay", text(delay));
    }
    if dumbbell && spec.from != "left" {
        add("direction", text("reverse"));
    }
    if let Some(node) = &spec.node {
        add("node", Value::String(node.clone()));
        add("weight", Value::Integer(spec.weight.into()));
    }
    if let Some(class) = spec.class {
        add("class", Value::Integer(class.into()));
    }
    if !dumbbell {
        add("from", Value::String(spec.from.clone()));
        add("to", Value::String(spec.to.clone()));
    }
    traffic::write(spec, &mut table);
    Value::Table(table)
}
