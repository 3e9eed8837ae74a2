//! The results of a run. Every time is for one packet: an enqueue and a dequeue together.

use serde::Serialize;

/// The results of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Name of the scheduler.
    pub alg: String,
    /// `single`, `integrated` or `double`.
    pub mode: &'static str,
    /// Number of flows.
    pub flows: usize,
    /// Number of enqueues and dequeues together.
    pub events: u64,
    /// Number of enqueues.
    pub enqueues: u64,
    /// Number of dequeues.
    pub dequeues: u64,
    /// The seed of the random numbers for the bursts.
    pub seed: u64,
    /// Nanoseconds per packet with the harness, the smallest of the repetitions. Absent from a run that measures only
    /// fairness, as are all times and costs derived from it.
    pub ns_per_packet: Option<f64>,
    /// Nanoseconds per packet of the harness alone: equal arrivals without a scheduler, the smallest of the
    /// repetitions.
    pub ns_harness: Option<f64>,
    /// Nanoseconds per packet of the scheduler: the time with the harness less that of the harness alone.
    pub ns_scheduler: Option<f64>,
    /// Millions of packets per second, with the harness.
    pub mpps: Option<f64>,
    /// The processor's counters per packet, in the run that took the least time.
    pub counters: Counters,
    /// The energy per packet.
    pub energy: Option<Energy>,
    /// The part of the sent packets that was not lost on the channel (002 §4.3.2.5). A wired link loses none. Absent
    /// from a run over a channel that measures only time.
    pub throughput: Option<f64>,
    /// The measures of each flow. Empty in a run that measures only time.
    pub flows_detail: Vec<FlowReport>,
    /// The worst measures of all flows. Absent from a run that measures only time.
    pub worst: Option<Worst>,
    /// The relative fairness index in packets per relative weight. Absent if there are too many flows to track each
    /// pair, and from a run that measures only time.
    pub rfi: Option<f64>,
    /// A lower and an upper bound of the relative fairness index, also if it is not exact.
    pub rfi_between: Option<(f64, f64)>,
}

/// The measures of one flow. The indices are those of a single flow in 002 §4.3.2.5.
#[derive(Debug, Clone, Serialize)]
pub struct FlowReport {
    /// Weight of the flow.
    pub weight: u32,
    /// Number of packets that left.
    pub packets: u64,
    /// The B-WFI: by how much the flow fell behind its share in any interval of a busy period, in packets.
    pub b_wfi_packets: Option<f64>,
    /// The service lag: by how much the flow fell behind its share since the start of a busy period, in packets.
    pub lag_packets: Option<f64>,
    /// The T-WFI: how much later a packet left than in a fair system, in transmission times of a packet.
    pub t_wfi_packets: Option<f64>,
    /// The T-WFI in milliseconds.
    pub t_wfi_ms: Option<f64>,
    /// The longest wait of a packet, in departures of any flow.
    pub max_delay_dequeues: Option<u64>,
    /// The largest relative fairness index of the flow's pairs, in packets per relative weight.
    pub rfi: Option<f64>,
    /// The station of the flow, in a wireless container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub station: Option<usize>,
    /// The probability that a packet to the station is lost, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}

/// The worst measures of all flows.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "as in each flow")]
pub struct Worst {
    pub b_wfi_packets: Option<f64>,
    pub t_wfi_ms: Option<f64>,
    pub max_delay_dequeues: Option<u64>,
}

/// The processor's counters per packet.
#[derive(Debug, Clone, Serialize)]
pub struct Counters {
    /// Instructions per packet, with the harness.
    pub instructions: Option<f64>,
    /// Instructions per packet, without the harness.
    pub instructions_scheduler: Option<f64>,
    /// Cycles per packet, with the harness.
    pub cycles: Option<f64>,
    /// Why the counters are missing; absent if they are not.
    pub missing: Option<String>,
}

/// The energy per packet. The two kinds of values cannot be compared with each other.
#[derive(Debug, Clone, Serialize)]
pub struct Energy {
    /// The kind of value: `rapl` (measured) or `time` (a substitute).
    pub kind: &'static str,
    /// Nanojoules per packet with the harness, for the whole processor package; absent for `time`.
    pub nanojoules: Option<f64>,
    /// The substitute for energy in comparisons of schedulers on one machine, in nanoseconds per packet.
    pub proxy_ns: Option<f64>,
    /// Explanation of the kind of value.
    pub note: &'static str,
}
