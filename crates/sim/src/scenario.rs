//! Scenarios: what is to be simulated, as the files say it.
//!
//! The format is described in `docs/scenarios.md`. The types are here and in the files of the same names as the tables;
//! they know nothing of files. `read.rs` and its folder make them of TOML and answer a mistake with the line it is on,
//! `write.rs` writes a scenario back with every default; [`paths`] tells who can reach whom.

mod handovers;
pub mod paths;
mod read;
mod stations;
mod write;

pub use handovers::{Handover, Procedure};
pub use penstock_grammar::Diagnosis;
pub use penstock_grammar::link::Link;
pub use stations::StationSpec;

pub use crate::actors::changes::{Change, Course, Way};
pub use crate::actors::cooperation::{Lie, NodeSpec, Spec as Cooperation};

use crate::actors::Traffic;
use crate::tcp::TcpConfig;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Bytes, Rate, Span};

/// One queue of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSpec {
    /// Its discipline.
    pub config: AnyConfig,
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
    /// Rate, delay, limits and loss.
    pub link: Link,
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
    /// The scenario with every default written out, as TOML that reads as the same scenario.
    pub fn resolved(&self) -> String {
        self.resolved.replacen("seed = SEED", &format!("seed = {}", self.seed), 1)
    }
}
