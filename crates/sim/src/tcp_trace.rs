//! Samples of the congestion windows of chosen connections over time.
//!
//! Sampling happens outside of the run: the run advances to the time of each sample and its state is read. A run
//! without samples pays nothing, and a sampled run has the same results.

use crate::run::{Broken, Simulation};
use crate::table::{Column, Table};
use crate::tcp::{Growth, Snapshot};
use penstock_core::qdisc::Qdisc;
use penstock_core::units::{Instant, Rate, Span};

/// The names of the numbers in the column `state`. A connection is `closed` before its handshake and after its end.
pub const STATES: [&str; 5] = ["closed", "slow_start", "congestion_avoidance", "recovery", "loss"];

/// Number of connections that are traced if no flow is named.
const DEFAULT_FLOWS: usize = 8;
/// Largest number of rows of the table of flows, which fits into memory easily.
const MAX_ROWS: u64 = 20_000_000;

/// The value for "none" in columns of whole numbers: no threshold yet, or no pacing.
pub const NONE: u64 = u64::MAX;

/// The reasons for which flows cannot be traced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotTrace {
    /// No flow was named, and the run has no flow that could be traced.
    #[error("no flow has a TCP connection that lasts: bulk and transfer flows have")]
    NoConnection,
    /// The interval is zero.
    #[error("the interval is 0: it must be longer")]
    NoInterval,
    /// This number of samples is too large for the memory.
    #[error("{0} samples; at most {MAX_ROWS} are taken: fewer flows or a longer interval")]
    TooManySamples(u64),
    /// The run has no flow with this number.
    #[error("there is no flow {id}; they are 0 to {last}")]
    NoFlow {
        /// Number of the flow that was asked for.
        id: u32,
        /// Number of the last flow that exists.
        last: usize,
    },
    /// The flow has no connection of its own.
    #[error("flow {id} is {kind}: bulk and transfer flows have a TCP connection that lasts")]
    OtherKind {
        /// Number of the flow.
        id: u32,
        /// Name of its kind of traffic.
        kind: &'static str,
    },
}

/// Samples of connections and of the measured queues.
#[derive(Debug, Clone)]
pub struct TcpTrace {
    flows: Vec<u32>,
    interval: Span,
    next: Instant,
    of_flows: FlowColumns,
    of_queues: QueueColumns,
}

#[derive(Debug, Clone, Default)]
struct FlowColumns {
    t_s: Vec<f64>,
    flow: Vec<u32>,
    cwnd: Vec<u64>,
    ssthresh: Vec<u64>,
    srtt_ms: Vec<f64>,
    pacing: Vec<u64>,
    in_flight: Vec<u64>,
    state: Vec<u32>,
    retransmits: Vec<u64>,
    timeouts: Vec<u64>,
}

#[derive(Debug, Clone, Default)]
struct QueueColumns {
    t_s: Vec<f64>,
    queue: Vec<u32>,
    bytes: Vec<u64>,
    drops: Vec<u64>,
    marks: Vec<u64>,
}

impl TcpTrace {
    /// Creates a trace of these flows every `interval`; if none is named, of the first eight flows that have a
    /// connection.
    ///
    /// # Errors
    /// Fails if a flow does not exist or has no connection of its own, if the interval is zero, or with too many
    /// samples.
    pub fn new(sim: &Simulation, flows: &[u32], interval: Span) -> Result<Self, CannotTrace> {
        let chosen = if flows.is_empty() { first_connections(sim) } else { flows.to_vec() };
        for flow in &chosen {
            check_flow(sim, *flow)?;
        }
        if chosen.is_empty() {
            return Err(CannotTrace::NoConnection);
        }
        if interval == Span::ZERO {
            return Err(CannotTrace::NoInterval);
        }
        let rows = (sim.duration().as_nanos() / interval.as_nanos()).saturating_mul(chosen.len() as u64);
        if rows > MAX_ROWS {
            return Err(CannotTrace::TooManySamples(rows));
        }
        let next = sim.now() + interval;
        Ok(Self { flows: chosen, interval, next, of_flows: Default::default(), of_queues: Default::default() })
    }

    /// Returns the numbers of the traced flows.
    pub fn flows(&self) -> &[u32] {
        &self.flows
    }

    /// Advances the run as [`Simulation::advance`] does, and takes every sample at its time.
    ///
    /// # Errors
    /// Returns the errors of [`Simulation::advance`].
    pub fn advance(&mut self, sim: &mut Simulation, by: Span) -> Result<bool, Broken> {
        let until = sim.now() + by;
        while self.next <= until {
            let due = self.next;
            let over = sim.advance(due.since(sim.now()))?;
            if sim.now() == due {
                self.look(sim);
                self.next = due + self.interval;
            }
            if over {
                return Ok(true);
            }
        }
        sim.advance(until.since(sim.now()))
    }

    fn look(&mut self, sim: &Simulation) {
        let t_s = sim.now().as_secs_f64();
        for flow in &self.flows {
            let Some(tcp) = sim.actors.flows[*flow as usize].tcp() else { continue };
            self.of_flows.push(t_s, *flow, tcp.client.snapshot().filter(|_| !tcp.client.is_done()));
        }
        for (id, bottleneck) in (0..).zip(&sim.measured.bottlenecks) {
            let queue = &sim.world.links[bottleneck.link.index()].queue;
            let stats = queue.qdisc.stats();
            self.of_queues.t_s.push(t_s);
            self.of_queues.queue.push(id);
            self.of_queues.bytes.push(queue.qdisc.backlog().bytes);
            self.of_queues.drops.push(stats.dropped_by_aqm() + stats.dropped_overflow.packets);
            self.of_queues.marks.push(stats.marked.packets);
        }
    }

    /// Returns the samples as the tables `tcp_trace` and `queue_trace`; drops and marks are counted from the start of
    /// the run.
    pub fn tables(self) -> Vec<Table> {
        let (flows, queues) = (self.of_flows, self.of_queues);
        let tcp = vec![
            ("t_s", Column::F64(flows.t_s)),
            ("flow", Column::U32(flows.flow)),
            ("state", Column::U32(flows.state)),
            ("cwnd_bytes", Column::U64(flows.cwnd)),
            ("ssthresh_bytes", Column::U64(flows.ssthresh)),
            ("srtt_ms", Column::F64(flows.srtt_ms)),
            ("pacing_bps", Column::U64(flows.pacing)),
            ("in_flight_bytes", Column::U64(flows.in_flight)),
            ("retransmitted_segments", Column::U64(flows.retransmits)),
            ("timeouts", Column::U64(flows.timeouts)),
        ];
        let queue = vec![
            ("t_s", Column::F64(queues.t_s)),
            ("queue", Column::U32(queues.queue)),
            ("queue_bytes", Column::U64(queues.bytes)),
            ("dropped_packets", Column::U64(queues.drops)),
            ("marked_packets", Column::U64(queues.marks)),
        ];
        vec![Table { name: "tcp_trace", columns: tcp }, Table { name: "queue_trace", columns: queue }]
    }
}

impl FlowColumns {
    fn push(&mut self, t_s: f64, flow: u32, seen: Option<Snapshot>) {
        self.t_s.push(t_s);
        self.flow.push(flow);
        self.state.push(seen.map_or(0, |s| code(s.state)));
        self.cwnd.push(seen.map_or(0, |s| s.cwnd));
        self.ssthresh.push(seen.map_or(NONE, |s| s.ssthresh));
        self.srtt_ms.push(seen.map_or(0.0, |s| s.srtt.as_millis_f64()));
        self.pacing.push(seen.and_then(|s| s.pacing).map_or(NONE, Rate::as_bps));
        self.in_flight.push(seen.map_or(0, |s| s.in_flight));
        self.retransmits.push(seen.map_or(0, |s| s.counters.retransmits));
        self.timeouts.push(seen.map_or(0, |s| s.counters.timeouts.into()));
    }
}

/// Returns the index of a state in [`STATES`].
fn code(state: Growth) -> u32 {
    match state {
        Growth::SlowStart => 1,
        Growth::CongestionAvoidance => 2,
        Growth::Recovery => 3,
        Growth::Loss => 4,
    }
}

fn first_connections(sim: &Simulation) -> Vec<u32> {
    let lasting = (0..).zip(&sim.actors.flows).filter(|(_, flow)| flow.tcp().is_some());
    lasting.map(|(id, _)| id).take(DEFAULT_FLOWS).collect()
}

fn check_flow(sim: &Simulation, id: u32) -> Result<(), CannotTrace> {
    let Some(flow) = sim.actors.flows.get(id as usize) else {
        return Err(CannotTrace::NoFlow { id, last: sim.actors.flows.len().saturating_sub(1) });
    };
    if flow.tcp().is_some() {
        return Ok(());
    }
    Err(CannotTrace::OtherKind { id, kind: flow.kind })
}
