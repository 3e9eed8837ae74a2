//! Scenarios: what is simulated, as the files describe it.
//!
//! The format is described in `docs/reference/scenarios.md`. The types are here and in the files which have the names of the
//! tables; they do not depend on the file format. `read.rs` and its folder read them from TOML and report a mistake
//! with its line, `write.rs` writes a scenario with all defaults, and `paths` finds the paths between routers.

mod handovers;
pub(crate) mod paths;
mod profiles;
mod read;
mod write;

pub use handovers::{Handover, Procedure};
pub use penstock_grammar::Diagnosis;
pub use penstock_grammar::link::{LayerKeys, Link};
pub use penstock_grammar::stations::StationSpec;
pub use read::schema;

pub use crate::actors::Traffic;
pub use crate::actors::changes::{Change, Course, Way};
pub use crate::actors::cooperation::{Lie, NodeSpec, Spec as Cooperation};

use crate::tcp::TcpConfig;
use penstock_core::estimate::{Known, Law};
use penstock_core::impair::Impairments;
use penstock_core::link_layer::LinkLayer;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Bytes, Limit, Rate, Span};

/// One queue of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSpec {
    /// The discipline with its parameters.
    pub config: AnyConfig,
    /// The stations behind the link; empty for a link that is not wireless.
    pub stations: Vec<StationSpec>,
    /// True if a network element before the queue gives throughput advice.
    pub advice: bool,
    /// What the link adds to each packet.
    pub layer: LinkLayer,
    /// What the link does to packets before and behind the queue.
    pub impairments: Impairments,
    /// True if the queue is measured and appears in summaries.
    pub looked_at: bool,
}

/// What stands at both ends of a link whose rates nobody tells the gateway at its first end. The disciplines are in the gateway,
/// before a shaper in each direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The law by which the gateway estimates the rates.
    pub law: Law,
    /// What it knows of the rates to the second end and back.
    pub known: [Known; 2],
    /// Limits of the queues that are not in the gateway: that of the modem at the first end, that of the provider at the second.
    pub limits: [Limit; 2],
}

/// A duplex link between two routers.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSpec {
    /// Name of the link.
    pub name: String,
    /// Router at the first end.
    pub a: String,
    /// Router at the second end.
    pub b: String,
    /// Rate, delay, limits and loss.
    pub link: Link,
    /// What the gateway at `a` does to know the rates; `None` if it is told.
    pub estimate: Option<Estimate>,
    /// The queue from `a` to `b`.
    pub queue: QueueSpec,
    /// The queue from `b` to `a`.
    pub reverse_queue: QueueSpec,
}

impl LinkSpec {
    /// Returns the name of the queue from `b` to `a`.
    pub fn reverse_name(&self) -> String {
        format!("{}-reverse", self.name)
    }

    /// Returns the names of the queues that are not in the gateway, if the link has them: of the modem and of the provider.
    pub fn names_behind(&self) -> Option<[String; 2]> {
        self.estimate.as_ref().map(|_| ["modem", "provider"].map(|whose| format!("{}-{whose}", self.name)))
    }
}

/// The access links of hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Access {
    /// Rate in both directions.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Span,
}

/// A group of equal flows.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSpec {
    /// The kind of their traffic.
    pub traffic: Traffic,
    /// Number of flows.
    pub count: u64,
    /// When the first flow starts.
    pub start: Span,
    /// Time between the starts of two consecutive flows.
    pub start_step: Span,
    /// Upper bound of the random time that is added to each start.
    pub start_spread: Span,
    /// When the flows stop; `None` if they do not.
    pub stop: Option<Span>,
    /// Delay of the client's access link; `None` for that of [`Access`].
    pub access_delay: Option<Span>,
    /// Name of the node to which the flows belong; with `None` each flow is a node of its own.
    pub node: Option<String>,
    /// Class of the flows in disciplines with classes; with `None` the discipline derives it from the flow's number.
    pub class: Option<u32>,
    /// Weight of each flow among the flows of its node: its part of the node's budget is proportional to it.
    pub weight: u32,
    /// Router to which the clients are attached.
    pub from: String,
    /// Router to which the servers are attached.
    pub to: String,
    /// TCP settings; the default for traffic that does not use TCP.
    pub tcp: TcpConfig,
}

/// Conditions that must hold throughout a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Invariants {
    /// Largest number of bytes that may wait at any bottleneck; `None` without a bound.
    pub max_queue: Option<Bytes>,
    /// True if no packet may be dropped at any bottleneck.
    pub no_drops: bool,
}

/// What a run records.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// True if tables by seconds are kept.
    pub series: bool,
    /// Names of the queues to capture; empty for all bottlenecks.
    pub pcapng: Vec<String>,
}

/// A checked scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// Simulated time.
    pub duration: Span,
    /// Seed of all random streams.
    pub seed: u64,
    /// Time at the beginning which the statistics by seconds leave out.
    pub warmup: Span,
    /// Links between routers.
    pub links: Vec<LinkSpec>,
    /// Access links of hosts.
    pub access: Access,
    /// Groups of flows.
    pub flows: Vec<FlowSpec>,
    /// Changes of links, in the order of the file.
    pub changes: Vec<Change>,
    /// Moves of hosts, in the order of their times.
    pub handovers: Vec<Handover>,
    /// The gateway that grants budgets; `None` without `[cooperation]`.
    pub cooperation: Option<Cooperation>,
    /// Conditions that must hold throughout a run.
    pub invariants: Invariants,
    /// What a run records.
    pub output: Output,
    resolved: String,
}

impl Scenario {
    /// Returns the scenario as TOML with every default written out, which reads as the same scenario.
    pub fn resolved(&self) -> String {
        self.resolved.replacen("seed = SEED", &format!("seed = {}", self.seed), 1)
    }
}
