//! The results of a model, in the form of a simulated run's: the same keys and the same tables.

use crate::model::{Class, Control, Model};
use crate::run::{Run, Totals};
use penstock_sim::Scenario;
use penstock_sim::scenario::FlowSpec;
use penstock_sim::summary::{
    BottleneckSummary, FlowSummary, JainSummary, MISSING, Quantiles, QueueBytes, RttSummary, Summary, jain, round,
};
use penstock_sim::{Column, Table};

/// Time between the rows of the table `fluid_state`, in seconds.
const SAMPLE: f64 = 0.01;

/// The results of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The totals.
    pub summary: Summary,
    /// The tables of a run, and `fluid_state` with the state every 10 ms.
    pub tables: Vec<Table>,
}

/// Values with weights.
#[derive(Debug, Clone, Default)]
struct Weighted(Vec<(f64, f64)>);

impl Weighted {
    fn sorted(mut self) -> Self {
        self.0.sort_by(|a, b| a.0.total_cmp(&b.0));
        self
    }

    fn sum(&self) -> f64 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|(value, weight)| value * weight).sum::<f64>() / self.sum().max(1e-300)
    }

    /// Returns quantiles of sorted values; all are missing without values.
    fn quantiles(&self) -> Quantiles {
        let Some((max, _)) = self.0.last() else { return Quantiles::MISSING };
        let all = self.sum();
        let at = |q: f64| {
            let mut below = 0.0;
            let found = self.0.iter().find(|(_, weight)| {
                below += weight;
                below >= q * all
            });
            round(found.map_or(*max, |(value, _)| *value))
        };
        Quantiles {
            mean: round(self.mean()),
            p10: at(0.1),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: round(*max),
        }
    }
}

/// One row of a table for each second.
#[derive(Debug, Default)]
struct Seconds {
    begin: f64,
    passed: Vec<f64>,
    sent: f64,
    bytes: f64,
    delay: f64,
    most: f64,
    steps: f64,
    flow: FlowRows,
    queue: QueueRows,
    jain: Vec<f64>,
    goodput: Vec<f64>,
}

/// The columns of the table `flow_seconds`.
#[derive(Debug, Default)]
struct FlowRows {
    time: Vec<f64>,
    flow: Vec<u32>,
    bps: Vec<f64>,
    window: Vec<u64>,
}

/// The columns of the table `queue_seconds`.
#[derive(Debug, Default)]
struct QueueRows {
    time: Vec<f64>,
    bps: Vec<f64>,
    most: Vec<u64>,
    bytes: Vec<f64>,
    delay: Vec<f64>,
}

/// The columns of the table `fluid_state`.
#[derive(Debug, Default)]
struct State {
    time: Vec<f64>,
    bytes: Vec<f64>,
    delay: Vec<f64>,
    average: Vec<f64>,
    probability: Vec<f64>,
    window: Vec<f64>,
}

/// Solves a model for as long as the scenario lasts.
pub fn outcome(scenario: &Scenario, model: Model) -> Outcome {
    let (duration, step) = (scenario.duration.as_secs_f64(), model.step().min(scenario.duration.as_secs_f64()));
    let (rate, packet) = (model.rate, model.mean_packet());
    let mut run = Run::new(model, step);
    let classes = run.classes().to_vec();
    let mut seconds = Seconds { passed: vec![0.0; classes.len()], ..Seconds::default() };
    let (mut delays, mut state, mut sent, mut waiting) = (Weighted::default(), State::default(), 0.0, 0.0);
    let steps = (duration / step).round() as u64;
    let every = ((SAMPLE / step).round() as u64).max(1);
    for n in 1..=steps {
        let now = run.step();
        let bytes = now.output * step;
        sent += bytes;
        waiting += now.queue;
        if bytes > 0.0 {
            delays.0.push((now.sojourn * 1e3, bytes / packet));
        }
        seconds.steps += 1.0;
        seconds.sent += bytes;
        seconds.bytes += now.queue;
        seconds.delay += now.sojourn * 1e3;
        seconds.most = seconds.most.max(now.queue);
        let windows: Vec<f64> = (0..classes.len()).map(|class| now.window(class)).collect();
        if n % every == 0 {
            sample(&mut state, &now, &classes, &windows);
        }
        if now.t - seconds.begin >= 1.0 - step / 2.0 || n == steps {
            let t = now.t;
            seconds.close(t, &classes, &windows, &run.totals, scenario.warmup.as_secs_f64());
        }
    }
    let delays = delays.sorted();
    let measured = Measured { sent, waiting: waiting / steps.max(1) as f64, steps, rate, packet };
    let summary = summary(scenario, &run, &delays, &seconds, &measured);
    let series = scenario.output.series;
    let tables = if series { tables(scenario, &seconds, state, &delays, &classes) } else { Vec::new() };
    Outcome { summary, tables }
}

/// What was measured over the whole run.
struct Measured {
    sent: f64,
    waiting: f64,
    steps: u64,
    rate: f64,
    packet: f64,
}

fn sample(state: &mut State, now: &crate::run::Moment<'_>, classes: &[Class], windows: &[f64]) {
    let flows: f64 = classes.iter().map(|class| class.count).sum();
    let all: f64 = classes.iter().zip(windows).map(|(class, window)| class.count * window).sum();
    state.time.push(round(now.t));
    state.bytes.push(round(now.queue));
    state.delay.push(round(now.sojourn * 1e3));
    state.average.push(round(now.average));
    state.probability.push(now.probability);
    state.window.push(round(all / flows.max(1.0)));
}

impl Seconds {
    /// Closes the second that ends at `now`.
    fn close(&mut self, now: f64, classes: &[Class], windows: &[f64], totals: &[Totals], warmup: f64) {
        let long = now - self.begin;
        let (mut rates, mut all, mut id) = (Vec::new(), 0.0, 0);
        for (index, class) in classes.iter().enumerate() {
            let bytes = totals[index].passed - self.passed[index];
            self.passed[index] = totals[index].passed;
            let bps = round(bytes / class.count * class.payload / class.packet * 8.0 / long);
            let is_tcp = !matches!(class.control, Control::Constant(_));
            for _ in 0..class.count as u64 {
                all += bps;
                if is_tcp && class.start <= self.begin && class.stop >= now {
                    rates.push(bps);
                }
                if class.start < now {
                    self.flow.time.push(round(now));
                    self.flow.flow.push(id);
                    self.flow.bps.push(bps);
                    self.flow.window.push(if is_tcp { (windows[index] * class.payload) as u64 } else { 0 });
                }
                id += 1;
            }
        }
        if self.begin >= warmup && long > 0.999 {
            self.goodput.push(round(all));
            self.jain.extend(jain(rates.into_iter()));
        }
        let steps = self.steps.max(1.0);
        self.queue.time.push(round(now));
        self.queue.bps.push(round(self.sent * 8.0 / long));
        self.queue.most.push(self.most as u64);
        self.queue.bytes.push(round(self.bytes / steps));
        self.queue.delay.push(if self.sent > 0.0 { round(self.delay / steps) } else { MISSING });
        (self.begin, self.sent, self.bytes, self.delay, self.most, self.steps) = (now, 0.0, 0.0, 0.0, 0.0, 0.0);
    }
}

fn summary(scenario: &Scenario, run: &Run, delays: &Weighted, seconds: &Seconds, measured: &Measured) -> Summary {
    let flows = flows(scenario, run, delays);
    let rtts = Weighted(
        run.classes()
            .iter()
            .filter(|class| is_tcp(class))
            .flat_map(|class| delays.0.iter().map(|(ms, weight)| (ms + class.base_rtt * 1e3, weight * class.count)))
            .collect(),
    );
    let tcp = flows.iter().filter(|flow| !flow.cc.is_empty() && !flow.goodput_bps.is_nan());
    let tcp = tcp.map(|flow| flow.goodput_bps);
    Summary {
        name: scenario.name.clone(),
        duration_s: scenario.duration.as_secs_f64(),
        warmup_s: scenario.warmup.as_secs_f64(),
        seed: scenario.seed,
        events: measured.steps,
        bottlenecks: vec![bottleneck(scenario, run, delays, &flows, measured)],
        jain: JainSummary::of(jain(tcp), &seconds.jain),
        flows,
        goodput_1s_bps: Quantiles::of(&seconds.goodput),
        rtt_ms: rtt(&rtts.sorted(), 0.0),
        handovers: None,
        cooperation: None,
    }
}

fn rtt(delays: &Weighted, base_ms: f64) -> RttSummary {
    let Some((min, _)) = delays.0.first() else { return RttSummary::MISSING };
    let q = delays.quantiles();
    let at = |ms: f64| round(ms + base_ms);
    RttSummary { min: at(*min), mean: at(q.mean), p10: at(q.p10), p50: at(q.p50), p90: at(q.p90), p99: at(q.p99) }
}

fn bottleneck(
    scenario: &Scenario,
    run: &Run,
    delays: &Weighted,
    flows: &[FlowSummary],
    measured: &Measured,
) -> BottleneckSummary {
    let (link, seconds) = (&scenario.links[0], scenario.duration.as_secs_f64());
    let packets = (measured.sent / measured.packet).round() as u64;
    let payload: u64 = flows.iter().map(|flow| flow.delivered_bytes).sum();
    BottleneckSummary {
        name: link.name.clone(),
        aqm: link.queue.config.name().to_owned(),
        utilization: round((measured.sent / (measured.rate * seconds)).min(1.0)),
        throughput_bps: round(measured.sent * 8.0 / seconds),
        goodput_bps: round(payload as f64 * 8.0 / seconds),
        packets,
        packets_all: packets,
        bytes_all: measured.sent.round() as u64,
        drops_overflow: run.overflowed.round() as u64,
        drops_aqm: run.dropped.round() as u64,
        drops_forced: 0,
        dropped_bytes: ((run.overflowed + run.dropped) * measured.packet).round() as u64,
        marks: run.marked.round() as u64,
        lost: 0,
        policed: None,
        estimate: None,
        scone: None,
        bursts: None,
        reordered: None,
        duplicated: None,
        algorithm: None,
        queue_delay_ms: delays.quantiles(),
        queue_bytes: QueueBytes { mean: round(measured.waiting), max: run.most.round() as u64 },
    }
}

fn flows(scenario: &Scenario, run: &Run, delays: &Weighted) -> Vec<FlowSummary> {
    let mut flows = Vec::new();
    for (class, totals) in run.classes().iter().zip(&run.totals) {
        for _ in 0..class.count as u64 {
            let id = flows.len() as u32;
            flows.push(flow(id, class, totals, &scenario.flows[class.group], scenario.duration.as_secs_f64(), delays));
        }
    }
    flows
}

/// True for the flows whose senders measure round trips.
fn is_tcp(class: &Class) -> bool {
    !matches!(class.control, Control::Constant(_))
}

fn flow(id: u32, class: &Class, totals: &Totals, spec: &FlowSpec, duration: f64, delays: &Weighted) -> FlowSummary {
    let payload = totals.passed / class.count * class.payload / class.packet;
    let active = (class.stop.min(duration) - class.start).max(0.0);
    let is_tcp = is_tcp(class);
    FlowSummary {
        id,
        kind: spec.traffic.name(),
        cc: if is_tcp { spec.tcp.cc.name().to_owned() } else { String::new() },
        start_s: class.start,
        goodput_bps: if active > 0.0 { round(payload * 8.0 / active) } else { MISSING },
        delivered_bytes: payload.max(0.0).round() as u64,
        completion_s: None,
        retransmits: if is_tcp { (totals.dropped / class.count).round() as u64 } else { 0 },
        timeouts: 0,
        ecn: penstock_sim::tcp::EcnUse {
            asked: u64::from(spec.tcp.ecn),
            used: u64::from(spec.tcp.ecn),
            ..Default::default()
        },
        advised_bps: None,
        rtt_ms: if is_tcp { rtt(delays, class.base_rtt * 1e3) } else { RttSummary::MISSING },
        measures: Default::default(),
    }
}

fn tables(scenario: &Scenario, seconds: &Seconds, state: State, delays: &Weighted, classes: &[Class]) -> Vec<Table> {
    let (f, q) = (&seconds.flow, &seconds.queue);
    let table = |name, columns| Table { name, columns };
    vec![
        table(
            "flow_seconds",
            vec![
                ("t_s", Column::F64(f.time.clone())),
                ("flow", Column::U32(f.flow.clone())),
                ("goodput_bps", Column::F64(f.bps.clone())),
                ("cwnd_bytes", Column::U64(f.window.clone())),
            ],
        ),
        table(
            "queue_seconds",
            vec![
                ("t_s", Column::F64(q.time.clone())),
                ("queue", Column::U32(vec![0; q.time.len()])),
                ("throughput_bps", Column::F64(q.bps.clone())),
                ("queue_bytes_max", Column::U64(q.most.clone())),
                ("queue_bytes_mean", Column::F64(q.bytes.clone())),
                ("queue_delay_ms_mean", Column::F64(q.delay.clone())),
            ],
        ),
        distribution("queue_delays", ["queue", "delay_ms", "packets"], &[(0, 0.0)], delays),
        distribution("round_trips", ["flow", "rtt_ms", "samples"], &kinds(scenario, classes), delays),
        table(
            "fluid_state",
            vec![
                ("t_s", Column::F64(state.time)),
                ("queue_bytes", Column::F64(state.bytes)),
                ("queue_delay_ms", Column::F64(state.delay)),
                ("average", Column::F64(state.average)),
                ("probability", Column::F64(state.probability)),
                ("window_packets", Column::F64(state.window)),
            ],
        ),
    ]
}

/// Returns the first flow of each kind of traffic and control, with its round trip without a queue in milliseconds.
fn kinds(scenario: &Scenario, classes: &[Class]) -> Vec<(u32, f64)> {
    let (mut known, mut found, mut id) = (Vec::new(), Vec::new(), 0);
    for class in classes {
        let spec = &scenario.flows[class.group];
        let kind = (spec.traffic.name(), spec.tcp.cc.name().to_owned());
        if !known.contains(&kind) {
            known.push(kind);
            found.push((id, class.base_rtt * 1e3));
        }
        id += class.count as u32;
    }
    found
}

/// Returns a distribution of delays in 200 rows of equal weight for each of `of`, whose delays have `base` added.
fn distribution(name: &'static str, columns: [&'static str; 3], of: &[(u32, f64)], delays: &Weighted) -> Table {
    let (mut ids, mut ms, mut count) = (Vec::new(), Vec::new(), Vec::new());
    let part = delays.sum() / 200.0;
    for (id, base) in of {
        let mut gathered = 0.0;
        for (index, (value, weight)) in delays.0.iter().enumerate() {
            gathered += weight;
            if gathered >= part || index + 1 == delays.0.len() {
                ids.push(*id);
                ms.push(round(value + base));
                count.push(gathered.round() as u64);
                gathered = 0.0;
            }
        }
    }
    let columns = vec![(columns[0], Column::U32(ids)), (columns[1], Column::F64(ms)), (columns[2], Column::U64(count))];
    Table { name, columns }
}
