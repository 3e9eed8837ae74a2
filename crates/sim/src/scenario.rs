//! Scenario files: TOML in, a checked [`Scenario`] out, or a diagnosis that shows the line and says what is allowed.
//!
//! The format is described in `docs/scenarios.md`. Reading has two steps: `raw.rs` mirrors the file, then this module
//! turns it into links and flows and checks what the types cannot.

mod changes;
mod controls;
mod cooperation;
mod courses;
mod diagnosis;
mod handovers;
pub mod paths;
mod raw;
mod stations;
mod traffic;

pub use diagnosis::Diagnosis;
pub use handovers::{Handover, Procedure};
pub use stations::StationSpec;

pub use crate::actors::changes::{Change, Course, Way};
pub use crate::actors::cooperation::{Lie, NodeSpec, Spec as Cooperation};

use crate::actors::Traffic;
use crate::tcp::TcpConfig;
use diagnosis::Source;
use penstock_core::foreign::Library;
use penstock_core::registry::{AnyConfig, NAMES};
use penstock_core::units::{Bytes, Limit, Rate, Span};
use raw::{RawFlow, RawLink, RawScenario, RawTopology};
use serde::Deserialize as _;
use std::collections::BTreeSet;

/// Longest run: the books are kept in 64 bits of nanoseconds, and nobody waits that long.
const MAX_DURATION: Span = Span::from_secs(24 * 3600);
const MAX_FLOWS: u64 = 200_000;
const MAX_LINKS: usize = 10_000;
const MAX_RATE_BPS: u64 = 1_000_000_000_000;
const MAX_DELAY: Span = Span::from_secs(600);

/// One queue of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSpec {
    /// How much it holds.
    pub limit: Limit,
    /// Its discipline.
    pub config: AnyConfig,
    /// Probability with which the wire behind it loses a packet.
    pub loss: f64,
    /// The stations behind it, if the link is wireless.
    pub stations: Vec<StationSpec>,
    /// It appears in summaries.
    pub looked_at: bool,
}

/// A duplex link between two routers.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSpec {
    /// Its name.
    pub name: String,
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Rate, each way.
    pub rate: Rate,
    /// Delay, one way.
    pub delay: Span,
    /// The queue from `a` to `b`.
    pub queue: QueueSpec,
    /// The queue from `b` to `a`.
    pub reverse_queue: QueueSpec,
}

impl LinkSpec {
    /// The name of the queue from `b` to `a`.
    pub fn reverse_name(&self) -> String {
        format!("{}-reverse", self.name)
    }
}

/// The links of hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Access {
    /// Rate.
    pub rate: Rate,
    /// Delay, one way.
    pub delay: Span,
}

/// A group of equal flows.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSpec {
    /// What their applications do.
    pub traffic: Traffic,
    /// How many.
    pub count: u64,
    /// Start of the first.
    pub start: Span,
    /// Distance between starts.
    pub start_step: Span,
    /// Random spread of each start.
    pub start_spread: Span,
    /// When they stop.
    pub stop: Option<Span>,
    /// Delay of the client's access link.
    pub access_delay: Option<Span>,
    /// The node whose sockets they are; each its own if there is none.
    pub node: Option<String>,
    /// The class they are of, where a discipline has classes; their numbers if there is none.
    pub class: Option<u32>,
    /// Their part of the node's budget is in proportion to this.
    pub weight: u32,
    /// Router of the clients.
    pub from: String,
    /// Router of the servers.
    pub to: String,
    /// Their TCP.
    pub tcp: TcpConfig,
}

/// What must hold at every instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Invariants {
    /// Most bytes waiting at any bottleneck.
    pub max_queue: Option<Bytes>,
    /// No packet is dropped at any bottleneck.
    pub no_drops: bool,
}

/// What is written down.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Tables per flow and second.
    pub series: bool,
    /// Queues to capture.
    pub pcapng: Vec<String>,
}

/// A checked scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Simulated time.
    pub duration: Span,
    /// The seed of all randomness.
    pub seed: u64,
    /// Seconds left out of per-second statistics.
    pub warmup: Span,
    /// Links between routers.
    pub links: Vec<LinkSpec>,
    /// Links of hosts.
    pub access: Access,
    /// Groups of flows.
    pub flows: Vec<FlowSpec>,
    /// What changes on the links.
    pub changes: Vec<Change>,
    /// Hosts that move, in the order of their times.
    pub handovers: Vec<Handover>,
    /// The gateway that gives out budgets.
    pub cooperation: Option<Cooperation>,
    /// What must hold.
    pub invariants: Invariants,
    /// What is written down.
    pub output: Output,
    resolved: String,
}

impl Scenario {
    /// Reads a scenario; `file` is the name used in messages.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse(text: &str, file: &str) -> Result<Self, Diagnosis> {
        Self::parse_with(text, file, &())
    }

    /// Reads a scenario whose algorithms may also be those of a library, and which may name files that it reads.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse_with(text: &str, file: &str, library: &dyn Library) -> Result<Self, Diagnosis> {
        let source = Source::new(text, file);
        let kind = source.topology_kind().transpose()?.unwrap_or(raw::KINDS[0]);
        let raw =
            raw::read(text, kind).ok_or_else(|| source.unknown(&["topology", "kind"], "kind", kind, raw::KINDS))?;
        let raw = raw.map_err(|e| source.toml(&e))?;
        Checker { source: &source, raw: &raw, library }.scenario(file)
    }

    /// The scenario with every default written out, as TOML that parses to the same scenario.
    pub fn resolved(&self) -> String {
        self.resolved.replacen("seed = SEED", &format!("seed = {}", self.seed), 1)
    }
}

struct Checker<'a> {
    source: &'a Source<'a>,
    raw: &'a RawScenario,
    library: &'a dyn Library,
}

type Check<T> = Result<T, Diagnosis>;

impl Checker<'_> {
    fn scenario(&self, file: &str) -> Check<Scenario> {
        let raw = self.raw;
        self.within_span("duration", &["duration"], raw.duration, Span::from_nanos(1), MAX_DURATION)?;
        if raw.warmup >= raw.duration {
            return Err(self
                .source
                .at(&["warmup"], &format!("warmup must be shorter than duration ({})", raw.duration)));
        }
        let (links, access) = self.topology()?;
        let mut flows = Vec::new();
        for (i, flow) in raw.flows.iter().enumerate() {
            flows.push(self.flow(i, flow, &links)?);
        }
        let total: u64 = flows.iter().map(|f| f.count).fold(0, u64::saturating_add);
        if flows.is_empty() || total > MAX_FLOWS {
            let message =
                format!("a scenario has 1 to {MAX_FLOWS} flows; this one has {total}: write [[flows]] tables");
            return Err(self.source.at(&["flows"], &message));
        }
        self.captures(&links)?;
        let changes = self.changes(&links)?;
        let cooperation = self.cooperation(&links, &flows)?;
        let handovers = self.handovers(&links, &flows, cooperation.as_ref())?;
        let stem = std::path::Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = raw.name.clone().or(stem).unwrap_or_else(|| "scenario".into());
        let mut scenario = Scenario {
            name,
            duration: raw.duration,
            seed: raw.seed,
            warmup: raw.warmup,
            links,
            access,
            flows,
            changes,
            handovers,
            cooperation,
            invariants: Invariants { max_queue: raw.invariants.max_queue, no_drops: raw.invariants.no_drops },
            output: Output { series: raw.output.series, pcapng: raw.output.pcapng.clone() },
            resolved: String::new(),
        };
        scenario.resolved = raw::write(&scenario);
        Ok(scenario)
    }

    fn within_span(&self, what: &str, path: &[&str], value: Span, low: Span, high: Span) -> Check<()> {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(self.source.at(path, &format!("{what} is {value}; allowed are {low} to {high}")))
    }

    fn topology(&self) -> Check<(Vec<LinkSpec>, Access)> {
        let at = |key: &str, message: &str| self.source.at(&["topology", key], message);
        let topology = &self.raw.topology;
        let access = Access { rate: topology.access_rate(), delay: topology.access_delay() };
        self.rate(&["topology", "access_rate"], access.rate)?;
        self.within_span("access_delay", &["topology", "access_delay"], access.delay, Span::ZERO, MAX_DELAY)?;
        let links = match topology {
            RawTopology::Dumbbell(d) => {
                let aqm = self.raw.aqm.as_ref();
                let config = self.algorithm(aqm, &["aqm"])?;
                let reverse = self.algorithm(d.reverse_aqm.as_ref(), &["topology", "reverse_aqm"])?;
                self.rate_and_delay(&["topology"], d.rate, d.delay)?;
                vec![LinkSpec {
                    name: "bottleneck".into(),
                    a: "left".into(),
                    b: "right".into(),
                    rate: d.rate,
                    delay: d.delay,
                    queue: QueueSpec {
                        limit: d.limit,
                        config,
                        loss: self.loss(&["topology"], d.loss)?,
                        stations: self.stations(&["topology"], &d.stations)?,
                        looked_at: true,
                    },
                    reverse_queue: QueueSpec {
                        limit: d.reverse_limit,
                        config: reverse,
                        loss: 0.0,
                        stations: Vec::new(),
                        looked_at: false,
                    },
                }]
            }
            RawTopology::ParkingLot(p) => {
                let hops = p.hops.iter().enumerate().map(|(i, hop)| self.link("hops", i, &hop.on_route(i)));
                hops.collect::<Check<_>>()?
            }
            RawTopology::Graph(g) => {
                g.links.iter().enumerate().map(|(i, link)| self.link("links", i, link)).collect::<Check<_>>()?
            }
        };
        if links.is_empty() || links.len() > MAX_LINKS {
            return Err(at("kind", &format!("a topology has 1 to {MAX_LINKS} links; this one has {}", links.len())));
        }
        self.distinct_names(&links)?;
        if !matches!(topology, RawTopology::Dumbbell(_)) && self.raw.aqm.is_some() {
            return Err(self
                .source
                .at(&["aqm"], "[aqm] belongs to a dumbbell; here each hop or link has its own `aqm`"));
        }
        Ok((links, access))
    }

    /// Captured queues must be looked at.
    fn captures(&self, links: &[LinkSpec]) -> Check<()> {
        let forward = links.iter().filter(|l| l.queue.looked_at).map(|l| l.name.clone());
        let reverse = links.iter().filter(|l| l.reverse_queue.looked_at).map(LinkSpec::reverse_name);
        let known: Vec<String> = forward.chain(reverse).collect();
        match self.raw.output.pcapng.iter().find(|name| !known.contains(name)) {
            Some(name) => {
                Err(self.source.at(&["output", "pcapng"], &format!("no bottleneck {name:?}; there are {known:?}")))
            }
            None => Ok(()),
        }
    }

    /// A name stands for a queue in summaries and captures, and for its random numbers.
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

    fn rate(&self, path: &[&str], rate: Rate) -> Check<()> {
        let key = path.last().copied().unwrap_or_default();
        let message = || format!("{key} is {rate}; allowed is up to 1Tbit/s");
        if rate.as_bps() > MAX_RATE_BPS { Err(self.source.at(path, &message())) } else { Ok(()) }
    }

    fn rate_and_delay(&self, path: &[&str], rate: Rate, delay: Span) -> Check<()> {
        let with = |key| path.iter().copied().chain([key]).collect::<Vec<&str>>();
        self.rate(&with("rate"), rate)?;
        self.within_span("delay", &with("delay"), delay, Span::ZERO, MAX_DELAY)
    }

    fn loss(&self, path: &[&str], loss: f64) -> Check<f64> {
        if (0.0..1.0).contains(&loss) {
            return Ok(loss);
        }
        let path: Vec<&str> = path.iter().copied().chain(["loss"]).collect();
        Err(self.source.at(&path, &format!("loss is {loss}; allowed is a probability from 0 to less than 1")))
    }

    fn link(&self, key: &str, i: usize, raw: &RawLink) -> Check<LinkSpec> {
        let index = i.to_string();
        let base = ["topology", key, index.as_str()];
        self.rate_and_delay(&base, raw.rate, raw.delay)?;
        let with = |last| [base[0], base[1], base[2], last];
        let config = self.algorithm(raw.aqm.as_ref(), &with("aqm"))?;
        let reverse = self.algorithm(raw.reverse_aqm.as_ref(), &with("reverse_aqm"))?;
        if raw.a == raw.b {
            return Err(self.source.at(&base, &format!("a link from {:?} to itself", raw.a)));
        }
        let looked_at = raw.bottleneck.unwrap_or(raw.aqm.is_some());
        Ok(LinkSpec {
            name: raw.name.clone().unwrap_or_else(|| format!("{}-{}", raw.a, raw.b)),
            a: raw.a.clone(),
            b: raw.b.clone(),
            rate: raw.rate,
            delay: raw.delay,
            queue: QueueSpec {
                limit: raw.limit,
                config,
                loss: self.loss(&base, raw.loss)?,
                stations: self.stations(&base, &raw.stations)?,
                looked_at,
            },
            reverse_queue: QueueSpec {
                limit: raw.reverse_limit,
                config: reverse,
                loss: 0.0,
                stations: Vec::new(),
                looked_at: looked_at && raw.reverse_aqm.is_some(),
            },
        })
    }

    /// `{ name = "red", ... }` to a configuration.
    fn algorithm(&self, table: Option<&toml::Table>, path: &[&str]) -> Check<AnyConfig> {
        let Some(table) = table else {
            return Ok(AnyConfig::default_of("droptail").expect("droptail is in the registry"));
        };
        let mut parameters = table.clone();
        let name = parameters.remove("name");
        let Some(name) = name.as_ref().and_then(|n| n.as_str()) else {
            return Err(self.source.at(path, &format!("`name` is missing; it is one of {NAMES:?}")));
        };
        let sub = |key: &str| path.iter().map(|p| (*p).to_owned()).chain([key.to_owned()]).collect::<Vec<_>>();
        let Some(config) = AnyConfig::deserialize(name, toml::Value::Table(parameters.clone())) else {
            return self.foreign_aqm(name, &parameters, &sub("name"));
        };
        let config = config.map_err(|e| {
            let named = parameters.keys().find(|k| e.message().contains(&format!("`{k}`")));
            let key = named.cloned().or_else(|| self.offending(name, &parameters));
            let where_ = key.map_or_else(|| sub("name"), |k| sub(&k));
            self.source.at_owned(&where_, &format!("{name}: {}", e.message()))
        })?;
        config.validate().map_err(|e| self.source.at_owned(&sub(e.key), &format!("{name}: {e}")))?;
        Ok(config)
    }

    /// A name that is not in the registry may be one of the library.
    fn foreign_aqm(&self, name: &str, parameters: &toml::Table, path: &[String]) -> Check<AnyConfig> {
        let values = match serde_json::to_value(parameters) {
            Ok(serde_json::Value::Object(values)) => values,
            _ => serde_json::Map::new(),
        };
        match self.library.aqm(name, &values) {
            Some(Ok(config)) => Ok(AnyConfig::Foreign(config)),
            Some(Err(error)) => Err(self.source.at_owned(path, &error.to_string())),
            None => {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                Err(self.source.unknown(&path, "algorithm", name, NAMES))
            }
        }
    }

    /// The first parameter that alone cannot be read.
    fn offending(&self, name: &str, parameters: &toml::Table) -> Option<String> {
        parameters.iter().find_map(|(key, value)| {
            let alone = toml::Table::from_iter([(key.clone(), value.clone())]);
            let failed = AnyConfig::deserialize(name, toml::Value::Table(alone)).is_some_and(|r| r.is_err());
            failed.then(|| key.clone())
        })
    }

    fn flow(&self, i: usize, raw: &RawFlow, links: &[LinkSpec]) -> Check<FlowSpec> {
        let index = i.to_string();
        let at = |key: &str, message: &str| self.source.at(&["flows", &index, key], message);
        let spans = [("start", raw.start), ("start_step", raw.start_step), ("start_spread", raw.start_spread)];
        for (key, span) in spans {
            self.within_span(key, &["flows", &index, key], span, Span::ZERO, MAX_DURATION)?;
        }
        if raw.stop.is_some_and(|stop| stop <= raw.start) {
            return Err(at("stop", &format!("stop must be after start ({})", raw.start)));
        }
        let (from, to) = self.ends(&index, raw)?;
        self.route(&index, &from, &to, links)?;
        let flow = traffic::Flow { check: self, index: &index, raw };
        let checked = flow.keys_belong()?;
        let tcp = self.tcp(&index, raw)?;
        if let Some(delay) = raw.access_delay {
            self.within_span("access_delay", &["flows", &index, "access_delay"], delay, Span::ZERO, MAX_DELAY)?;
        }
        let traffic = flow.traffic(checked, &tcp, links, [&from, &to])?;
        Ok(FlowSpec {
            count: raw.count,
            start: raw.start,
            start_step: raw.start_step,
            start_spread: raw.start_spread,
            stop: raw.stop,
            access_delay: raw.access_delay,
            node: raw.node.clone(),
            class: raw.class,
            weight: self.weight(&index, raw)?,
            from,
            to,
            // Of others nothing is written back, so that there is nothing to compare.
            tcp: if traffic.uses_tcp() { tcp } else { TcpConfig::default() },
            traffic,
        })
    }

    fn weight(&self, index: &str, raw: &RawFlow) -> Check<u32> {
        let weight = raw.weight.unwrap_or(1);
        if (1..=1000).contains(&weight) && (raw.weight.is_none() || raw.node.is_some()) {
            return Ok(weight);
        }
        let message = "`weight` is 1 to 1000, among the flows of one `node`";
        Err(self.source.at(&["flows", index, "weight"], message))
    }

    /// The routers at which a flow's hosts are: named, or in a dumbbell told by its direction.
    fn ends(&self, index: &str, raw: &RawFlow) -> Check<(String, String)> {
        let at = |key: &str, message: &str| self.source.at(&["flows", index, key], message);
        let dumbbell = matches!(self.raw.topology, RawTopology::Dumbbell(_));
        let (left, right) = match raw.direction.as_deref() {
            Some(_) if !dumbbell => return Err(at("direction", "`direction` is for a dumbbell; name `from` and `to`")),
            None | Some("forward") => ("left", "right"),
            Some("reverse") => ("right", "left"),
            Some(other) => {
                let known = ["forward", "reverse"];
                return Err(self.source.unknown(&["flows", index, "direction"], "direction", other, &known));
            }
        };
        let end = |key: &str, value: &Option<String>, default: &str| match (dumbbell, value) {
            (true, None) => Ok(default.to_owned()),
            (true, Some(_)) => {
                let message = "a dumbbell's flows go from left to right, or back with `direction = \"reverse\"`; \
                               leave `from` and `to` out";
                Err(at(key, message))
            }
            (false, Some(node)) => Ok(node.clone()),
            (false, None) => Err(at("kind", &format!("`{key}` is missing: name the router of the flow's hosts"))),
        };
        Ok((end("from", &raw.from, left)?, end("to", &raw.to, right)?))
    }

    fn route(&self, index: &str, from: &str, to: &str, links: &[LinkSpec]) -> Check<()> {
        let at = |key: &str, message: &str| Err(self.source.at(&["flows", index, key], message));
        let routers: BTreeSet<&str> = links.iter().flat_map(|l| [l.a.as_str(), l.b.as_str()]).collect();
        for (key, router) in [("from", from), ("to", to)] {
            if !routers.contains(router) {
                let known: Vec<&str> = routers.into_iter().collect();
                return Err(self.source.unknown(&["flows", index, key], "router", router, &known));
            }
        }
        if from == to {
            return at("to", &format!("a flow goes from one router to another, not from {from:?} to itself"));
        }
        if paths::slowest(links, from, to).is_none() {
            return at("to", &format!("no path from {from:?} to {to:?}; add links between them"));
        }
        Ok(())
    }

    /// The scenario's `[tcp]` with the flow's `tcp` and `cc` over it.
    fn tcp(&self, index: &str, raw: &RawFlow) -> Check<TcpConfig> {
        let mut merged = self.raw.tcp.clone();
        merged.extend(raw.tcp.clone());
        if let Some(cc) = &raw.cc {
            merged.insert("cc".into(), cc.clone());
        }
        let place = |key: &str| -> Vec<String> {
            if key == "cc" && raw.cc.is_some() {
                return ["flows", index, "cc"].map(String::from).to_vec();
            }
            let mut path = if raw.tcp.contains_key(key) { vec!["flows", index, "tcp"] } else { vec!["tcp"] };
            path.push(key);
            path.into_iter().map(String::from).collect()
        };
        let cc = self.control(merged.remove("cc"), merged.remove("hystart"), &place)?;
        let mut config = TcpConfig::deserialize(toml::Value::Table(merged.clone())).map_err(|e| {
            let alone = |k: &&String| {
                let one = toml::Table::from_iter([((*k).clone(), merged[*k].clone())]);
                TcpConfig::deserialize(toml::Value::Table(one)).is_err()
            };
            let key = merged.keys().find(alone).map_or("", String::as_str);
            self.source.at_owned(&place(key), e.message())
        })?;
        config.cc = cc.unwrap_or(config.cc);
        // As Linux does (TCP_CONG_NEEDS_ECN): who chooses a control that counts marks has chosen ECN.
        config.ecn |= config.needs_ecn() && !merged.contains_key("ecn");
        config.validate().map_err(|e| self.source.at_owned(&place(e.key), &e.to_string()))?;
        Ok(config)
    }
}
