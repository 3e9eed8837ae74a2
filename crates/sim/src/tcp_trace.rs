//! The windows of chosen connections over time.
//!
//! Sampling is done from outside: the run is brought to the time of each sample and looked at, so a run that is not traced
//! pays nothing, and one that is has the same results.

use crate::run::{Broken, Simulation};
use crate::table::{Column, Table};
use crate::tcp::{Growth, Snapshot};
use penstock_core::qdisc::Qdisc;
use penstock_core::units::{Instant, Rate, Span};

/// What the numbers of the column `state` mean. A connection is `closed` before its handshake and after its end.
pub const STATES: [&str; 5] = ["closed", "slow_start", "congestion_avoidance", "recovery", "loss"];

/// Connections that are traced if none is named.
const DEFAULT_FLOWS: usize = 8;
/// Rows of the table of flows: what fits into memory with ease.
const MAX_ROWS: u64 = 20_000_000;

/// What stands for "none" in columns of whole numbers: no threshold yet, no pace.
pub const NONE: u64 = u64::MAX;

/// Why flows cannot be traced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotTrace {
    /// None was named, and none could be.
    #[error("no flow has a TCP connection that lasts: bulk and transfer flows have")]
    NoConnection,
    /// The interval is zero.
    #[error("the interval is 0: it must be longer")]
    NoInterval,
    /// As many samples as this do not fit into memory with ease.
    #[error("{0} samples; at most {MAX_ROWS} are taken: fewer flows or a longer interval")]
    TooManySamples(u64),
    /// A flow does not exist.
    #[error("there is no flow {id}; they are 0 to {last}")]
    NoFlow {
        /// The flow.
        id: u32,
        /// The last flow that exists.
        last: usize,
    },
    /// A flow has no connection of its own.
    #[error("flow {id} is {kind}: bulk and transfer flows have a TCP connection that lasts")]
    OtherKind {
        /// The flow.
        id: u32,
        /// The kind of its traffic.
        kind: &'static str,
    },
}

/// Samples of connections and of the queues that are looked at.
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
    /// Traces these flows, or the first eight connections if none is named, every `interval`.
    ///
    /// # Errors
    /// A flow that does not exist or has no connection of its own, an interval of zero, too many samples.
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

    /// The flows that are traced.
    pub fn flows(&self) -> &[u32] {
        &self.flows
    }

    /// As [`Simulation::advance`], with a look at every sample's time.
    ///
    /// # Errors
    /// Those of [`Simulation::advance`].
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
            let Some(queue) = &sim.world.links[bottleneck.link.index()].queue else { continue };
            let stats = queue.qdisc.stats();
            self.of_queues.t_s.push(t_s);
            self.of_queues.queue.push(id);
            self.of_queues.bytes.push(queue.qdisc.backlog().bytes);
            self.of_queues.drops.push(stats.dropped_by_aqm() + stats.dropped_overflow.packets);
            self.of_queues.marks.push(stats.marked.packets);
        }
    }

    /// The samples, as `tcp_trace` and `queue_trace`; drops and marks count from the start.
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

/// The place in [`STATES`].
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
