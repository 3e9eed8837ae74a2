//! A run in numbers. Every time is of one packet: an enqueue and a dequeue together.

use serde::Serialize;

/// What a run found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The scheduler.
    pub alg: String,
    /// `single`, `integrated` or `double`.
    pub mode: &'static str,
    /// How many flows.
    pub flows: usize,
    /// Enqueues and dequeues together.
    pub events: u64,
    /// Of these, enqueues.
    pub enqueues: u64,
    /// And dequeues.
    pub dequeues: u64,
    /// The seed of the bursts.
    pub seed: u64,
    /// Time of a packet with the harness; the least of the repetitions. It and what follows from it are absent from a run
    /// that measures fairness only.
    pub ns_per_packet: Option<f64>,
    /// Of this, the harness: the same arrivals without a scheduler, the least of the repetitions.
    pub ns_harness: Option<f64>,
    /// The difference: the scheduler.
    pub ns_scheduler: Option<f64>,
    /// Millions of packets per second, harness included.
    pub mpps: Option<f64>,
    /// What the processor's counters say of a packet, in the run that took the least time.
    pub counters: Counters,
    /// What a packet costs in energy.
    pub energy: Option<Energy>,
    /// Share of the sent packets that were not lost on the way (002 §4.3.2.5). A wire loses none. Absent from
    /// a run over a channel that measures time only.
    pub throughput: Option<f64>,
    /// Each flow. Empty in a run that measures time only.
    pub flows_detail: Vec<FlowReport>,
    /// Over all flows. Absent from a run that measures time only.
    pub worst: Option<Worst>,
    /// The relative fairness index in packets over relative weight; absent when there are too many flows to follow each
    /// pair, and from a run that measures time only.
    pub rfi: Option<f64>,
    /// Where it lies in any case.
    pub rfi_between: Option<(f64, f64)>,
}

/// One flow. Its indices are those of a single flow in 002 §4.3.2.5.
#[derive(Debug, Clone, Serialize)]
pub struct FlowReport {
    /// Its weight.
    pub weight: u32,
    /// Packets that left.
    pub packets: u64,
    /// How far it fell behind its share, in packets.
    pub b_wfi_packets: Option<f64>,
    /// The same since the flow was last without packets: its service lag.
    pub lag_packets: Option<f64>,
    /// How much later than in a fair system a packet left, in packets on the link.
    pub t_wfi_packets: Option<f64>,
    /// The same in time.
    pub t_wfi_ms: Option<f64>,
    /// The longest wait, in departures of any flow.
    pub max_delay_dequeues: Option<u64>,
    /// The worst of its pairs.
    pub rfi: Option<f64>,
    /// The station it goes to, in a wireless container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub station: Option<usize>,
    /// How much of what is sent to it is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}

/// The worst of all flows.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "as in each flow")]
pub struct Worst {
    pub b_wfi_packets: Option<f64>,
    pub t_wfi_ms: Option<f64>,
    pub max_delay_dequeues: Option<u64>,
}

/// The processor's counters.
#[derive(Debug, Clone, Serialize)]
pub struct Counters {
    /// Instructions of a packet, with the harness.
    pub instructions: Option<f64>,
    /// And without it.
    pub instructions_scheduler: Option<f64>,
    /// Cycles of a packet, with the harness.
    pub cycles: Option<f64>,
    /// Why there are none.
    pub missing: Option<String>,
}

/// Energy of a packet. The two kinds cannot be compared with each other.
#[derive(Debug, Clone, Serialize)]
pub struct Energy {
    /// `rapl` or `time`.
    pub kind: &'static str,
    /// Nanojoules with the harness, for the whole processor package; absent for `time`.
    pub nanojoules: Option<f64>,
    /// What stands for it in comparisons of schedulers on one machine.
    pub proxy_ns: Option<f64>,
    /// In words.
    pub note: &'static str,
}
