//! The result of a run: totals as one JSON object, and tables stored by column.

pub use crate::actors::Measures;
pub use crate::actors::cooperation::Summary as CooperationSummary;
pub use crate::actors::handovers::Counters as HandoverCounters;
pub use crate::actors::media::{Delivery, Jitter};
pub use crate::actors::sessions::{SizeClass, Transfers};
pub use crate::actors::stack::StackSummary;
pub use crate::actors::video::{Frames, VideoSummary};
pub use crate::actors::voip::VoipSummary;
pub use crate::quantiles::{MISSING, Quantiles, round};
pub use crate::seconds::jain;

use crate::digest::Digest;
use crate::flow::Flow;
use crate::network::Bottleneck;
use crate::probe::{QueueProbe, TimeHistogram};
use crate::quantiles::{equal_as_written, equal_or_missing};
use crate::run::Simulation;
use crate::tcp::{Counters, EcnUse};
use penstock_core::advice::AdviceStats;
use penstock_core::qdisc::Qdisc;
use penstock_core::units::Instant;
use serde::Serialize;

/// Bytes waiting in a queue.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct QueueBytes {
    /// Mean over time, in bytes.
    pub mean: f64,
    /// Largest number of bytes.
    pub max: u64,
}

/// What a gateway thinks of the rate of its link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Estimated {
    /// The rate in bits per second.
    pub bps: u64,
    /// True if a full link was seen; otherwise the rate is a lower bound, or the first one.
    pub measured: bool,
}

/// Totals of one bottleneck over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct BottleneckSummary {
    /// Name of the link and direction.
    pub name: String,
    /// Name of the queue discipline.
    pub aqm: String,
    /// Bits sent, with those of packets lost on the link, divided by the bits that the link could have sent. It is at
    /// most 1: of a packet in transmission only the bits that have left count.
    pub utilization: f64,
    /// Bits sent per second, headers included, counted as for `utilization`.
    pub throughput_bps: f64,
    /// Payload in bits per second which the flows that cross this bottleneck delivered to applications.
    pub goodput_bps: f64,
    /// Number of TCP segments with payload and UDP datagrams sent.
    pub packets: u64,
    /// Number of packets of any kind sent.
    pub packets_all: u64,
    /// Number of bytes of these packets; the one that is being transmitted counts whole.
    pub bytes_all: u64,
    /// Number of packets dropped because there was no room.
    pub drops_overflow: u64,
    /// Number of packets dropped by the AQM.
    pub drops_aqm: u64,
    /// Of those, the packets that were forced: RED's above its upper threshold, where no packet passes.
    pub drops_forced: u64,
    /// Number of bytes dropped, for any reason.
    pub dropped_bytes: u64,
    /// Number of packets marked CE.
    pub marks: u64,
    /// Number of packets which were sent and lost on the wire.
    pub lost: u64,
    /// Number of packets which a policer dropped before the queue; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policed: Option<u64>,
    /// What the gateway estimates of the link at the end; absent if it is told the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimated>,
    /// Throughput advice that was given; absent without `scone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scone: Option<AdviceStats>,
    /// Number of bursts in which the link released packets; absent if it does not aggregate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bursts: Option<u64>,
    /// Number of packets which the link delayed, so that others overtake them; absent if it does not reorder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// Number of packets which arrived twice; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicated: Option<u64>,
    /// Numbers that the algorithm reports of itself; absent if it reports none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<serde_json::Value>,
    /// Queueing delay of the packets sent, in milliseconds.
    pub queue_delay_ms: Quantiles,
    /// Bytes waiting, without the packet on the wire.
    pub queue_bytes: QueueBytes,
}

/// Round trip times in milliseconds; all are missing if none was measured, as of datagrams, which have no answers.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct RttSummary {
    /// Smallest round trip time.
    #[schemars(with = "Option<f64>")]
    pub min: f64,
    /// Mean round trip time.
    #[schemars(with = "Option<f64>")]
    pub mean: f64,
    /// 10th percentile.
    #[schemars(with = "Option<f64>")]
    pub p10: f64,
    /// Median.
    #[schemars(with = "Option<f64>")]
    pub p50: f64,
    /// 90th percentile.
    #[schemars(with = "Option<f64>")]
    pub p90: f64,
    /// 99th percentile.
    #[schemars(with = "Option<f64>")]
    pub p99: f64,
}

equal_or_missing!(RttSummary: min, mean, p10, p50, p90, p99);

impl RttSummary {
    /// The summary of no round trips.
    pub const MISSING: Self =
        Self { min: MISSING, mean: MISSING, p10: MISSING, p50: MISSING, p90: MISSING, p99: MISSING };
}

/// Totals of one flow.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct FlowSummary {
    /// Number of the flow.
    pub id: u32,
    /// Name of the kind of traffic: `bulk`, `transfer`, and so on.
    pub kind: &'static str,
    /// Name of the congestion control, or of the hosted stack; empty for other UDP.
    pub cc: String,
    /// When the flow began, in seconds.
    pub start_s: f64,
    /// Payload delivered per second while the flow was active, in bits per second. A flow is active from its start until
    /// it has delivered everything or is stopped; what was on the way when it was stopped is delivered later, and the
    /// flow is active until then. It is missing if the flow never began.
    #[schemars(with = "Option<f64>")]
    pub goodput_bps: f64,
    /// Payload delivered, in bytes.
    pub delivered_bytes: u64,
    /// Seconds from the start until all was delivered, for a stopped stream all that it had sent; `null` if it was not,
    /// or if the flow has no end.
    pub completion_s: Option<f64>,
    /// Number of segments retransmitted.
    pub retransmits: u64,
    /// Number of retransmission timeouts.
    pub timeouts: u64,
    /// Which of the flow's connections use ECN.
    #[serde(flatten)]
    pub ecn: EcnUse,
    /// The rate in bits per second to which the flow keeps at the end because it was advised to; absent without such a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised_bps: Option<u64>,
    /// Round trip times as the flow's sender measured them.
    pub rtt_ms: RttSummary,
    /// What the application measured of itself, under the name of its kind of measures.
    #[serde(flatten, skip_serializing_if = "Measures::is_none")]
    pub measures: Measures,
}

equal_as_written!(FlowSummary);

/// Jain's fairness index, computed in three ways, of the connections that last as long as their flows: TCP's and those of
/// hosted stacks. An index is missing where none of them had a goodput.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct JainSummary {
    /// Index of the goodput of these connections, each over the time it was active.
    #[schemars(with = "Option<f64>")]
    pub overall: f64,
    /// Mean of the indices of the seconds after the warm-up.
    #[schemars(with = "Option<f64>")]
    pub mean_1s: f64,
    /// Lowest index of a second after the warm-up.
    #[schemars(with = "Option<f64>")]
    pub worst_1s: f64,
}

equal_or_missing!(JainSummary: overall, mean_1s, worst_1s);

impl JainSummary {
    /// Returns the indices of the whole run, and of its seconds.
    pub fn of(overall: Option<f64>, seconds: &[f64]) -> Self {
        let (count, sum) = (seconds.len() as f64, seconds.iter().sum::<f64>());
        Self {
            overall: round(overall.unwrap_or(MISSING)),
            mean_1s: if seconds.is_empty() { MISSING } else { round(sum / count) },
            worst_1s: round(seconds.iter().copied().reduce(f64::min).unwrap_or(MISSING)),
        }
    }
}

/// The result of a whole run: the same bytes for the same scenario and seed.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// Name of the scenario.
    pub name: String,
    /// Simulated time in seconds.
    pub duration_s: f64,
    /// Seconds at the beginning which the statistics by seconds leave out.
    pub warmup_s: f64,
    /// Seed of the run.
    pub seed: u64,
    /// Number of events handled.
    pub events: u64,
    /// The queues which are measured.
    pub bottlenecks: Vec<BottleneckSummary>,
    /// The flows, in the order of their numbers.
    pub flows: Vec<FlowSummary>,
    /// Fairness among the connections.
    pub jain: JainSummary,
    /// Goodput of all flows together in bits per second, by seconds after the warm-up.
    pub goodput_1s_bps: Quantiles,
    /// Round trip times of all flows together.
    pub rtt_ms: RttSummary,
    /// What became of the packets of hosts that moved; absent without `[[handovers]]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handovers: Option<HandoverCounters>,
    /// Counters of the gateway and its clients; absent without `[cooperation]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooperation: Option<CooperationSummary>,
}

/// Returns the JSON Schema of summaries.
pub fn schema() -> serde_json::Value {
    let generator = schemars::generate::SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<Summary>().to_value()
}

impl Simulation {
    /// Returns the results up to now.
    pub fn summary(&self) -> Summary {
        let (now, plan, actors, measured) = (self.now(), &self.plan, &self.actors, &self.measured);
        let mut of_connections = vec![Counters::default(); actors.flows.len()];
        actors.connections.add_counters(&mut of_connections);
        let mut ecn = vec![EcnUse::default(); actors.flows.len()];
        actors.connections.add_ecn_use(&mut ecn);
        let flows = (0..).zip(&actors.flows).zip(of_connections.into_iter().zip(ecn));
        Summary {
            name: plan.name.clone(),
            duration_s: now.as_secs_f64(),
            warmup_s: plan.warmup.as_secs_f64(),
            seed: plan.seed,
            events: measured.events,
            bottlenecks: measured.bottlenecks.iter().filter_map(|b| bottleneck(self, b)).collect(),
            flows: flows.map(|((id, flow), open)| flow_summary(id, flow, open, now)).collect(),
            jain: fairness(self),
            goodput_1s_bps: Quantiles::of(&measured.seconds.goodput_bps),
            rtt_ms: all_rtts(&measured.rtt),
            handovers: actors.handovers.as_ref().map(|handovers| handovers.counters),
            cooperation: actors.cooperation.as_ref().map(|cooperation| cooperation.summary()),
        }
    }
}

fn bottleneck(sim: &Simulation, b: &Bottleneck) -> Option<BottleneckSummary> {
    let link = &sim.world.links[b.link.index()];
    let queue = &link.queue;
    let probe = queue.probe.as_ref()?;
    let (stats, backlog, now) = (queue.qdisc.stats(), queue.qdisc.backlog(), sim.now());
    let seconds = now.as_secs_f64().max(1e-9);
    let (carrier, shaped) = (&sim.world.links[b.carrier.index()], sim.world.estimate_of(b.link));
    let sent = carrier.sent_bits(now);
    let payload: u64 = b.flows.iter().map(|f| sim.actors.flows[*f as usize].delivered()).sum();
    let dropped = stats.dropped_early.bytes + stats.dropped_overflow.bytes + stats.dropped_dequeue.bytes;
    Some(BottleneckSummary {
        name: b.name.clone(),
        aqm: b.aqm.clone(),
        utilization: round(sent / carrier.capacity_bits(now).max(1.0)),
        throughput_bps: round(sent / seconds),
        goodput_bps: round((payload * 8) as f64 / seconds),
        packets: probe.data_packets,
        packets_all: stats.sent.packets,
        bytes_all: stats.sent.bytes,
        drops_overflow: stats.dropped_overflow.packets,
        drops_aqm: stats.dropped_by_aqm(),
        drops_forced: stats.dropped_forced.packets,
        dropped_bytes: dropped,
        marks: stats.marked.packets,
        lost: queue.loss.lost,
        policed: queue.policer.as_ref().map(|policer| policer.dropped),
        estimate: shaped.map(|(capacity, measured)| Estimated { bps: capacity.as_bps(), measured }),
        scone: queue.advice.as_ref().map(|element| element.stats()),
        bursts: queue.behind.as_ref().map(|behind| behind.bursts).filter(|bursts| *bursts > 0),
        reordered: queue.behind.as_ref().map(|behind| behind.reordered).filter(|reordered| *reordered > 0),
        duplicated: queue.behind.as_ref().map(|behind| behind.duplicated).filter(|copies| *copies > 0),
        algorithm: queue.qdisc.report(),
        queue_delay_ms: delay(probe),
        queue_bytes: QueueBytes { mean: round(probe.mean_bytes(backlog, now)), max: probe.max_bytes },
    })
}

fn delay(probe: &QueueProbe) -> Quantiles {
    if probe.delay.count() == 0 {
        return Quantiles::MISSING;
    }
    let at = |q: f64| round(probe.delay.quantile_ns(q) as f64 / 1e6);
    Quantiles {
        mean: round(probe.delay.mean_ns() / 1e6),
        p10: at(0.1),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        max: round(probe.delay.max_ns() as f64 / 1e6),
    }
}

/// Returns the payload delivered per second while a flow was active ([`Flow::active`]), in bits per second; missing if it
/// never was.
fn goodput(flow: &Flow, now: Instant) -> f64 {
    let active = flow.active(now).as_secs_f64();
    if active > 0.0 { round((flow.delivered() * 8) as f64 / active) } else { MISSING }
}

/// Summarizes a flow. `open` are the counters of its connections that are still open, `ecn` tells of all connections that
/// it opened.
fn flow_summary(id: u32, flow: &Flow, (open, ecn): (Counters, EcnUse), now: Instant) -> FlowSummary {
    let application = flow.application.get();
    let mut counters = application.counters();
    counters += open;
    FlowSummary {
        id,
        kind: flow.kind,
        cc: application.cc().to_owned(),
        start_s: flow.start.as_secs_f64(),
        goodput_bps: goodput(flow, now),
        delivered_bytes: flow.delivered(),
        completion_s: (flow.completed != Instant::MAX).then(|| flow.completed.since(flow.start).as_secs_f64()),
        retransmits: counters.retransmits,
        timeouts: counters.timeouts.into(),
        ecn: flow.tcp().map_or(ecn, |tcp| tcp.client.ecn_use()),
        advised_bps: flow.tcp().and_then(|tcp| tcp.client.advised(now)).map(penstock_core::units::Rate::as_bps),
        rtt_ms: rtt_summary(&flow.rtt),
        measures: application.measures(),
    }
}

fn rtt_summary(rtt: &Digest) -> RttSummary {
    if rtt.count() == 0 {
        return RttSummary::MISSING;
    }
    let ms = |span: penstock_core::units::Span| round(span.as_millis_f64());
    RttSummary {
        min: ms(rtt.min()),
        mean: ms(rtt.mean()),
        p10: ms(rtt.quantile(0.1)),
        p50: ms(rtt.quantile(0.5)),
        p90: ms(rtt.quantile(0.9)),
        p99: ms(rtt.quantile(0.99)),
    }
}

fn all_rtts(rtt: &TimeHistogram) -> RttSummary {
    if rtt.count() == 0 {
        return RttSummary::MISSING;
    }
    let at = |q: f64| round(rtt.quantile_ns(q) as f64 / 1e6);
    let min = round(rtt.min_ns() as f64 / 1e6);
    RttSummary { min, mean: round(rtt.mean_ns() / 1e6), p10: at(0.1), p50: at(0.5), p90: at(0.9), p99: at(0.99) }
}

/// Computes the fairness of the run.
fn fairness(sim: &Simulation) -> JainSummary {
    let tcp = sim.actors.flows.iter().filter(|flow| flow.fills_a_window() && flow.start < sim.now());
    let overall = jain(tcp.map(|flow| goodput(flow, sim.now())));
    JainSummary::of(overall, &sim.measured.seconds.jain)
}
