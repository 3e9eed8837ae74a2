//! Reading of `[topology]`: the links of a dumbbell, of the hops of a parking lot and of a graph, and the access links
//! of hosts.
//!
//! [`Link`] has the keys of a link that other programs share; the keys here are only for simulated links.

use super::estimates::EstimateKeys;
use super::{Check, Checker};
use crate::scenario::{Access, LinkSpec, QueueSpec, StationSpec};
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Rate, Span};
use penstock_grammar::fields;
use penstock_grammar::impair::{self, ImpairmentKeys};
use penstock_grammar::link::{self, LayerKeys, Link};
use penstock_grammar::named::Disciplines;
use penstock_grammar::source::{Table, Value};
use penstock_grammar::stations;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeSet;

const KINDS: &[&str] = &["dumbbell", "parking-lot", "graph"];
const MAX_LINKS: usize = 10_000;

/// The keys of access links, in every kind of topology.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct AccessKeys {
    /// Rate of the access links of hosts.
    #[serde(default = "access_rate")]
    access_rate: Rate,
    /// One-way delay of the access links of hosts.
    #[serde(default)]
    access_delay: Span,
}

fn access_rate() -> Rate {
    Rate::from_bps(1_000_000_000)
}

/// The keys of every link besides those of [`Link`].
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct RadioKeys {
    /// The channels to the stations behind a wireless link.
    #[serde(default)]
    stations: Vec<StationSpec>,
    /// A network element before the queue gives throughput advice (SCONE), from the first end to the second.
    #[serde(default)]
    scone: bool,
    /// The same from the second end to the first.
    #[serde(default)]
    reverse_scone: bool,
}

/// The keys of a link of a graph.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct EdgeKeys {
    /// Name of the link.
    name: Option<String>,
    /// Router at the first end.
    a: String,
    /// Router at the second end.
    b: String,
    /// True if the queue is measured.
    bottleneck: Option<bool>,
}

/// The keys of a parking lot.
#[derive(Debug, Deserialize)]
struct HopsKeys {
    hops: Vec<IgnoredAny>,
}

/// The keys of a graph.
#[derive(Debug, Deserialize)]
struct LinksKeys {
    links: Vec<IgnoredAny>,
}

/// Returns the keys of every link, and these more.
fn keys<'k>(more: &[&'k [&'k str]]) -> Vec<&'k [&'k str]> {
    let link = [fields::of::<Link>(), fields::of::<LayerKeys>(), fields::of::<RadioKeys>()];
    [&link[..], &[fields::of::<ImpairmentKeys>(), fields::of::<EstimateKeys>()], more].concat()
}

impl Checker<'_> {
    pub(super) fn topology(&self) -> Check<(Vec<LinkSpec>, Access)> {
        let Some(value) = self.source.get(&["topology"]) else {
            return Err(self.source.at(&[], "missing field `topology`"));
        };
        let kind = self.topology_kind()?;
        let (table, links) = match kind {
            "dumbbell" => self.dumbbell(value)?,
            "parking-lot" => self.parking_lot(value)?,
            _ => self.graph(value)?,
        };
        if links.is_empty() || links.len() > MAX_LINKS {
            let message = format!("a topology has 1 to {MAX_LINKS} links; this one has {}", links.len());
            return Err(self.source.at(&["topology", "kind"], &message));
        }
        self.distinct_names(&links)?;
        if kind != "dumbbell" && self.source.get(&["aqm"]).is_some() {
            let message = "[aqm] belongs to a dumbbell; here each hop or link has its own `aqm`";
            return Err(self.source.at(&["aqm"], message));
        }
        let AccessKeys { access_rate, access_delay } = table.part()?;
        self.placed(&["topology"], link::rate("access_rate", access_rate))?;
        self.placed(&["topology"], link::delay("access_delay", access_delay))?;
        Ok((links, Access { rate: access_rate, delay: access_delay }))
    }

    /// Returns the kind of the topology, one of [`KINDS`].
    pub(super) fn topology_kind(&self) -> Check<&str> {
        let path = ["topology", "kind"];
        let Some(kind) = self.source.get(&path) else {
            return Err(self.source.at(&path, &format!("`kind` is missing; it is one of {}", KINDS.join(", "))));
        };
        match kind.get_ref().as_str() {
            Some(word) if KINDS.contains(&word) => Ok(word),
            Some(word) => Err(self.source.unknown(&path, "kind", word, KINDS)),
            None => Err(self.source.at(&path, &format!("`kind` is a text, one of {KINDS:?}"))),
        }
    }

    /// Reads a dumbbell: one link between the routers "left" and "right".
    fn dumbbell<'s>(&'s self, value: &Value<'s>) -> Check<(Table<'s, 's>, Vec<LinkSpec>)> {
        let table = self.source.table(value, &keys(&[&["kind", "reverse_aqm"], fields::of::<AccessKeys>()]))?;
        let edge =
            EdgeKeys { name: Some("bottleneck".into()), a: "left".into(), b: "right".into(), bottleneck: Some(true) };
        let mut spec = self.link(&["topology"], &["aqm"], &table, edge)?;
        // Of a link whose rates are estimated both directions are looked at.
        spec.reverse_queue.looked_at = spec.estimate.is_some();
        Ok((table, vec![spec]))
    }

    /// Reads a parking lot: links from `r0` to `r1`, from `r1` to `r2`, and so on.
    fn parking_lot<'s>(&'s self, value: &Value<'s>) -> Check<(Table<'s, 's>, Vec<LinkSpec>)> {
        let table = self.source.table(value, &[&["kind", "hops"], fields::of::<AccessKeys>()])?;
        let HopsKeys { hops } = table.part()?;
        let hop = |i: usize| {
            let path = ["topology", "hops", &i.to_string()];
            let Some(value) = self.source.get(&path) else { return Err(self.source.at(&path, "no hop")) };
            let table = self.source.table(value, &keys(&[&["aqm"]]))?;
            let (name, a, b) = (Some(format!("hop{i}")), format!("r{i}"), format!("r{}", i + 1));
            let edge = EdgeKeys { name, a, b, bottleneck: Some(true) };
            self.link(&path, &[&path[..], &["aqm"]].concat(), &table, edge)
        };
        let links = (0..hops.len()).map(hop).collect::<Check<_>>()?;
        Ok((table, links))
    }

    /// Reads a graph: links between the routers which they name.
    fn graph<'s>(&'s self, value: &Value<'s>) -> Check<(Table<'s, 's>, Vec<LinkSpec>)> {
        let table = self.source.table(value, &[&["kind", "links"], fields::of::<AccessKeys>()])?;
        let LinksKeys { links } = table.part()?;
        let link = |i: usize| {
            let path = ["topology", "links", &i.to_string()];
            let Some(value) = self.source.get(&path) else { return Err(self.source.at(&path, "no link")) };
            let table = self.source.table(value, &keys(&[fields::of::<EdgeKeys>(), &["aqm", "reverse_aqm"]]))?;
            let edge: EdgeKeys = table.part()?;
            if edge.a == edge.b {
                return Err(self.source.at(&path, &format!("a link from {:?} to itself", edge.a)));
            }
            self.link(&path, &[&path[..], &["aqm"]].concat(), &table, edge)
        };
        let links = (0..links.len()).map(link).collect::<Check<_>>()?;
        Ok((table, links))
    }

    /// Reads the link whose table is at `path` and whose discipline is at `aqm`.
    fn link(&self, path: &[&str], aqm: &[&str], table: &Table<'_, '_>, edge: EdgeKeys) -> Check<LinkSpec> {
        let link: Link = table.part()?;
        self.placed(path, link.validate())?;
        let [layer, reverse_layer] = self.placed(path, table.part::<LayerKeys>()?.layers())?;
        let RadioKeys { stations, scone, reverse_scone } = table.part()?;
        self.placed(path, stations::validate(&stations))?;
        let [forward, backward] = impair::read(table)?;
        let estimate = self.estimate(path, table, &link)?;
        let reverse_aqm = [path, &["reverse_aqm"]].concat();
        let looked_at = edge.bottleneck.unwrap_or(self.source.get(aqm).is_some());
        Ok(LinkSpec {
            name: edge.name.unwrap_or_else(|| format!("{}-{}", edge.a, edge.b)),
            a: edge.a,
            b: edge.b,
            link,
            estimate,
            queue: QueueSpec {
                config: self.discipline(aqm)?,
                stations,
                advice: scone,
                layer,
                impairments: forward,
                looked_at,
            },
            reverse_queue: QueueSpec {
                config: self.discipline(&reverse_aqm)?,
                stations: Vec::new(),
                advice: reverse_scone,
                layer: reverse_layer,
                impairments: backward,
                looked_at: looked_at && self.source.get(&reverse_aqm).is_some(),
            },
        })
    }

    /// Reads the discipline at a path; without one it is a tail-drop queue.
    fn discipline(&self, path: &[&str]) -> Check<AnyConfig> {
        match self.source.get(path) {
            Some(value) => {
                let completed = self.profile.as_ref().map(|profile| profile.completed("aqm", value));
                self.source.named(completed.as_ref().unwrap_or(value), &Disciplines(self.library))
            }
            None => Ok(AnyConfig::default_of("droptail").expect("droptail is in the registry")),
        }
    }

    /// Checks that captured queues are measured.
    pub(super) fn captures(&self, links: &[LinkSpec]) -> Check<()> {
        let forward = links.iter().filter(|l| l.queue.looked_at).map(|l| l.name.clone());
        let reverse = links.iter().filter(|l| l.reverse_queue.looked_at).map(LinkSpec::reverse_name);
        let known: Vec<String> = forward.chain(reverse).collect();
        match self.keys.output.pcapng.iter().find(|name| !known.contains(name)) {
            Some(name) => Err(self
                .source
                .at(&["output", "pcapng"], &format!("no bottleneck {name:?}; there are {}", known.join(", ")))),
            None => Ok(()),
        }
    }

    /// Checks that no two links have the same name, because a name identifies a queue in summaries, captures and random
    /// streams.
    fn distinct_names(&self, links: &[LinkSpec]) -> Check<()> {
        let mut taken = BTreeSet::new();
        for (i, link) in links.iter().enumerate() {
            for name in [link.name.clone(), link.reverse_name()] {
                if !taken.insert(name.clone()) {
                    let message = format!(
                        "two links have the name {name:?}; give each link between {:?} and {:?} a `name`",
                        link.a, link.b
                    );
                    return Err(self.source.at(&["topology", "links", &i.to_string(), "name"], &message));
                }
            }
        }
        Ok(())
    }
}
