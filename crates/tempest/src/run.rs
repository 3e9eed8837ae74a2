//! Carries out a run: without a scheduler, with it for the time, and with it for the measures.
//!
//! All three parts have equal arrivals, drawn from equal random numbers; each starts with a new scheduler. Memory is
//! allocated before time is measured. Time is measured as often as requested, alternating between the harness alone and
//! the whole, and the smallest of each counts, because disturbances only make a run longer.

use crate::container::{Bare, Cascade, Container, Target};
use crate::controller::{Done, Stuck, drive};
use crate::meter::{Fairness, Given, Meter};
use crate::mistake::Mistake;
use crate::plan::{Algorithm, Layers, Measure, Mode, Plan};
use crate::probe::{Cost, Probe};
use crate::queues::Queues;
use crate::report::{Counters, Energy, FlowReport, Report, Worst};
use penstock_core::rng::{Rng, Streams};
use penstock_core::sched::modular::{self, Modular, Weighting};
use penstock_core::sched::table::{AnySchedulerConfig, WithScheduler};
use penstock_core::sched::{Scheduler, SchedulerConfig};
use penstock_core::units::Limit;

/// Why a run gives no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The request is not allowed.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// No packet may arrive and no packet may leave.
    #[error("the run stands still: {0}")]
    Stuck(String),
}

impl From<Stuck> for RunError {
    fn from(stuck: Stuck) -> Self {
        Self::Stuck(stuck.to_string())
    }
}

/// Carries out a plan.
///
/// # Errors
/// The scheduler refuses its weights, or stops serving packets.
pub fn run(plan: &Plan) -> Result<Report, RunError> {
    let refused = |error| Mistake::new("-alg", &plan.name, error);
    match &plan.alg {
        Algorithm::One(config) => config.build_with(&plan.setup(), Alone { plan }).map_err(refused)?,
        Algorithm::Two(layers) => layers.qos.build_with(&plan.setup(), Above { plan, layers }).map_err(refused)?,
    }
}

/// Builds a single or integrated container when the type of the scheduler is known.
struct Alone<'a> {
    plan: &'a Plan,
}

impl WithScheduler for Alone<'_> {
    type Out = Result<Report, RunError>;

    fn with<S: Scheduler + Clone>(self, mut scheduler: S) -> Self::Out {
        let plan = self.plan;
        if plan.mode == Mode::Integrated {
            for flow in 0..plan.weights.len() {
                scheduler.set_channel(flow as u32, plan.is_served(flow));
            }
        }
        plan.judge(&OneLayer { plan, scheduler })
    }
}

/// Builds a double container when the type of the upper scheduler is known. The type of the lower scheduler is known
/// for the pairs that the document measures; otherwise each of its calls has a branch, which avoids an instance for
/// every pair of types.
struct Above<'a> {
    plan: &'a Plan,
    layers: &'a Layers,
}

impl WithScheduler for Above<'_> {
    type Out = Result<Report, RunError>;

    fn with<Q: Scheduler + Clone>(self, qos: Q) -> Self::Out {
        let setup = self.plan.mac_setup(self.layers);
        match &self.layers.mac {
            AnySchedulerConfig::Drr(config) => self.judge(qos, config.scheduler(&setup)),
            AnySchedulerConfig::QfqPlus(config) => self.judge(qos, config.scheduler(&setup)),
            other => {
                let mac = other.build(&setup).map_err(|error| Mistake::new("-mac", other.name(), error))?;
                self.judge(qos, mac)
            }
        }
    }
}

impl Above<'_> {
    fn judge<Q: Scheduler + Clone, M: Scheduler + Clone>(&self, qos: Q, mac: M) -> Result<Report, RunError> {
        let plan = self.plan;
        let station = |flow| plan.station(flow).unwrap_or(0) as u32;
        let arrangement = modular::Plan {
            stations: (0..plan.weights.len()).map(station).collect(),
            buffer: Limit::Packets(self.layers.buffer),
            weighting: Weighting::default(), // the weights are those with which `mac` was made
            per_class: None,
        };
        let layers = Modular::new(qos, mac, arrangement);
        let layers = layers.map_err(|error| Mistake::new("-qmac", self.layers.buffer, error))?;
        plan.judge(&TwoLayers { plan, layers })
    }
}

/// The subject of a measurement, built anew for each run.
trait Subject {
    type Target<M: Meter>: Target;
    fn target<M: Meter>(&self, meter: M) -> Self::Target<M>;
    fn meter<M: Meter>(target: Self::Target<M>) -> M;
}

struct OneLayer<'a, S> {
    plan: &'a Plan,
    scheduler: S,
}

impl<S: Scheduler + Clone> Subject for OneLayer<'_, S> {
    type Target<M: Meter> = Container<S, M>;

    fn target<M: Meter>(&self, meter: M) -> Container<S, M> {
        Container::new(self.scheduler.clone(), meter, self.plan.queues(), self.plan.size)
    }
    fn meter<M: Meter>(target: Container<S, M>) -> M {
        target.meter
    }
}

struct TwoLayers<'a, Q, M> {
    plan: &'a Plan,
    layers: Modular<u32, Q, M>,
}

impl<Q: Scheduler + Clone, L: Scheduler + Clone> Subject for TwoLayers<'_, Q, L> {
    type Target<M: Meter> = Cascade<Q, L, M>;

    fn target<M: Meter>(&self, meter: M) -> Cascade<Q, L, M> {
        Cascade::new(self.layers.clone(), meter, self.plan.capacity(), self.plan.size)
    }
    fn meter<M: Meter>(target: Cascade<Q, L, M>) -> M {
        target.meter
    }
}

/// The measured costs, each the smallest of the repetitions.
struct Times {
    done: Done,
    bare: Cost,
    whole: Option<Cost>,
    missing: Option<String>,
}

/// The measures of fairness.
struct Measured {
    done: Done,
    flows: Vec<Given>,
    rfi: (f64, f64),
}

impl Plan {
    fn judge<S: Subject>(&self, subject: &S) -> Result<Report, RunError> {
        let times = if self.measure == Measure::Fairness { None } else { Some(self.times(subject)?) };
        let serves = matches!(self.measure, Measure::All | Measure::Fairness);
        let measured = if serves { Some(self.measured(subject)?) } else { None };
        Ok(self.report(times.as_ref(), measured.as_ref()))
    }

    fn numbers(&self) -> Vec<u32> {
        self.weights.iter().map(|weight| weight.get()).collect()
    }

    fn queues(&self) -> Queues {
        Queues::new(self.weights.len(), self.capacity())
    }

    fn rng(&self) -> Rng {
        Streams::new(self.seed).get("tempest/arrivals")
    }

    fn times<S: Subject>(&self, subject: &S) -> Result<Times, RunError> {
        let mut probe = Probe::new();
        let mut best = self.once(subject, &mut probe)?;
        for _ in 1..self.repeat {
            best = best.better(self.once(subject, &mut probe)?);
        }
        Ok(best)
    }

    fn once<S: Subject>(&self, subject: &S, probe: &mut Probe) -> Result<Times, RunError> {
        let weights = self.numbers();
        let (mut alone, mut rng) = (Bare::new(self.queues(), weights.len()), self.rng());
        let (done, bare) = probe.measure(|| drive(&mut alone, &self.pattern, &weights, &mut rng));
        let mut times = Times { done: done?, bare, whole: None, missing: probe.missing.clone() };
        if self.measure != Measure::Harness {
            let (mut target, mut rng) = (subject.target(()), self.rng());
            let (done, whole) = probe.measure(|| drive(&mut target, &self.pattern, &weights, &mut rng));
            (times.done, times.whole) = (done?, Some(whole));
        }
        Ok(times)
    }

    fn measured<S: Subject>(&self, subject: &S) -> Result<Measured, RunError> {
        let weights = self.numbers();
        let mut target = subject.target(Fairness::new(&weights, self.capacity()));
        let done = drive(&mut target, &self.pattern, &weights, &mut self.rng())?;
        let (flows, indices) = S::meter(target).finish();
        Ok(Measured { done, flows, rfi: (indices.at_least, indices.at_most) })
    }

    fn report(&self, times: Option<&Times>, measured: Option<&Measured>) -> Report {
        let done = times.map(|times| times.done).or(measured.map(|measured| measured.done)).unwrap_or_default();
        let packets = self.pattern.events as f64 / 2.0;
        let whole = times.and_then(|times| times.whole).map(|cost| cost.ns / packets);
        let bare = times.map(|times| times.bare.ns / packets);
        let rfi = measured.map(|measured| measured.rfi).filter(|_| self.weights.len() > 1);
        Report {
            alg: self.name.clone(),
            mode: self.mode.name(),
            flows: self.weights.len(),
            events: self.pattern.events,
            enqueues: done.arrived,
            dequeues: done.left,
            seed: self.seed,
            ns_per_packet: whole,
            ns_harness: bare,
            ns_scheduler: whole.zip(bare).map(|(whole, bare)| whole - bare),
            mpps: whole.map(|ns| 1e3 / ns),
            counters: counters(times, packets),
            energy: times.and_then(|times| times.whole).map(|cost| energy(&cost, packets)),
            throughput: self.throughput(measured),
            worst: measured.map(|measured| self.worst(&measured.flows)),
            flows_detail: measured.map_or_else(Vec::new, |measured| self.details(&measured.flows)),
            rfi: rfi.filter(|(least, most)| least == most).map(|(least, _)| least),
            rfi_between: rfi,
        }
    }

    /// The transmission time of a packet in milliseconds.
    fn packet_ms(&self) -> f64 {
        self.size.get() as f64 * 8e3 / self.rate.as_bps() as f64
    }

    fn details(&self, flows: &[Given]) -> Vec<FlowReport> {
        let detail = |(k, flow): (usize, &Given)| FlowReport {
            weight: flow.weight,
            packets: flow.packets,
            b_wfi_packets: flow.b_wfi,
            lag_packets: flow.lag,
            t_wfi_packets: flow.t_wfi,
            t_wfi_ms: flow.t_wfi.map(|packets| packets * self.packet_ms()),
            max_delay_dequeues: flow.delay,
            rfi: flow.rfi,
            station: self.station(k),
            loss: self.station(k).map(|station| self.losses[station]),
        };
        flows.iter().enumerate().map(detail).collect()
    }

    fn worst(&self, flows: &[Given]) -> Worst {
        let most = |values: &mut dyn Iterator<Item = f64>| values.max_by(f64::total_cmp);
        Worst {
            b_wfi_packets: most(&mut flows.iter().filter_map(|flow| flow.b_wfi)),
            t_wfi_ms: most(&mut flows.iter().filter_map(|flow| flow.t_wfi)).map(|packets| packets * self.packet_ms()),
            max_delay_dequeues: flows.iter().filter_map(|flow| flow.delay).max(),
        }
    }

    /// Normalized throughput: the part of the sent packets that arrives. It is 1 without a channel, and missing if no packet
    /// was sent over a channel.
    fn throughput(&self, measured: Option<&Measured>) -> Option<f64> {
        if self.losses.is_empty() {
            return Some(1.0);
        }
        let flows = &measured?.flows;
        let arrives = |k| 1.0 - self.station(k).map_or(0.0, |station| self.losses[station]);
        let sent: u64 = flows.iter().map(|flow| flow.packets).sum();
        let arrived: f64 = flows.iter().enumerate().map(|(k, flow)| flow.packets as f64 * arrives(k)).sum();
        (sent > 0).then(|| arrived / sent as f64)
    }
}

impl Times {
    /// The smaller of each cost, whichever repetition it is from.
    fn better(self, other: Self) -> Self {
        let least = |a: Cost, b: Cost| if b.ns < a.ns { b } else { a };
        let whole = self.whole.zip(other.whole).map(|(a, b)| least(a, b));
        Self { bare: least(self.bare, other.bare), whole, ..self }
    }
}

fn counters(times: Option<&Times>, packets: f64) -> Counters {
    let whole = times.and_then(|times| times.whole);
    let instructions = whole.and_then(|cost| cost.instructions).map(|n| n as f64 / packets);
    let bare = times.and_then(|times| times.bare.instructions).map(|n| n as f64 / packets);
    Counters {
        instructions,
        instructions_scheduler: instructions.zip(bare).map(|(whole, bare)| whole - bare),
        cycles: whole.and_then(|cost| cost.cycles).map(|n| n as f64 / packets),
        missing: times.map_or(Some("no time was measured".to_owned()), |times| times.missing.clone()),
    }
}

/// If energy cannot be read, time is the substitute, as in the document (002 §4.3.2.5).
fn energy(cost: &Cost, packets: f64) -> Energy {
    match cost.microjoules {
        Some(microjoules) => Energy {
            kind: "rapl",
            nanojoules: Some(microjoules * 1e3 / packets),
            proxy_ns: None,
            note: "measured for the whole processor package, with whatever else ran on it",
        },
        None => Energy {
            kind: "time",
            nanojoules: None,
            proxy_ns: Some(cost.ns / packets),
            note: "not measured: no energy counter can be read here; on one machine energy goes with time (002 §4.3.2.5)",
        },
    }
}

#[cfg(test)]
mod tests;
