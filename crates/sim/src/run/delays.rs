//! Distributions as tables: of delays in each measured queue, of round trips, and of what people feel of each flow.

use super::Simulation;
use crate::actors::application::Feeling;
use crate::flow::Flow;
use crate::table::{Column, Table};
use std::collections::BTreeMap;

/// Rows of a distribution: of what it is, a time in milliseconds, and how many times there are up to it.
#[derive(Default)]
struct Rows {
    of: Vec<u32>,
    ms: Vec<f64>,
    count: Vec<u64>,
}

impl Rows {
    fn add(&mut self, of: u32, counted: impl IntoIterator<Item = (u64, u64)>) {
        counted.into_iter().for_each(|(ns, count)| self.push(of, ns as f64 / 1e6, count));
    }

    fn push(&mut self, of: u32, value: f64, count: u64) {
        self.of.push(of);
        self.ms.push(value);
        self.count.push(count);
    }

    fn table(self, name: &'static str, [of, ms, count]: [&'static str; 3]) -> Table {
        let columns = vec![(of, Column::U32(self.of)), (ms, Column::F64(self.ms)), (count, Column::U64(self.count))];
        Table { name, columns }
    }
}

/// Returns the tables `queue_delays` and `round_trips`.
///
/// In both, a row has the number of times above that of the row before and up to its own. Rows of the same queue or group
/// of several runs can be put together: that adds their distributions.
pub(super) fn tables(sim: &Simulation) -> Vec<Table> {
    let delays = queues(sim).table("queue_delays", ["queue", "delay_ms", "packets"]);
    let trips = round_trips(&sim.actors.flows).table("round_trips", ["flow", "rtt_ms", "samples"]);
    [delays, trips].into_iter().chain(felt(&sim.actors.flows)).collect()
}

/// Returns the tables of what people feel of each flow; none of what no flow has.
fn felt(flows: &[Flow]) -> Vec<Table> {
    let mut found: BTreeMap<Feeling, Rows> = BTreeMap::new();
    for (id, flow) in (0..).zip(flows) {
        for one in flow.application.get().felt() {
            let rows = found.entry(one.what).or_default();
            one.counted.into_iter().for_each(|(value, count)| rows.push(id, value, count));
        }
    }
    let filled = found.into_iter().filter(|(_, rows)| !rows.of.is_empty());
    filled.map(|(what, rows)| rows.table(name(what).0, name(what).1)).collect()
}

/// Returns the name of a table and those of its columns.
fn name(what: Feeling) -> (&'static str, [&'static str; 3]) {
    match what {
        Feeling::CallDelay => ("call_delays", ["flow", "delay_ms", "packets"]),
        Feeling::CallScore => ("call_scores", ["flow", "mos", "parts"]),
        Feeling::PageTime => ("page_times", ["flow", "took_ms", "pages"]),
        Feeling::Gap => ("gaps", ["flow", "gap_ms", "gaps"]),
    }
}

fn queues(sim: &Simulation) -> Rows {
    let mut rows = Rows::default();
    for (id, bottleneck) in (0..).zip(&sim.measured.bottlenecks) {
        if let Some(probe) = &sim.world.links[bottleneck.link.index()].queue.probe {
            rows.add(id, probe.delay.distribution());
        }
    }
    rows
}

/// Returns the round trips of each group of flows with the same kind of traffic and control, under its first flow.
fn round_trips(flows: &[Flow]) -> Rows {
    let mut groups: BTreeMap<_, (u32, BTreeMap<u64, u64>)> = BTreeMap::new();
    for (id, flow) in (0..).zip(flows) {
        let group = (flow.kind, flow.application.get().cc());
        let (_, counts) = groups.entry(group).or_insert_with(|| (id, BTreeMap::new()));
        flow.rtt.distribution().for_each(|(rtt, count)| *counts.entry(rtt.as_nanos()).or_default() += count);
    }
    let mut in_order: Vec<_> = groups.into_values().collect();
    in_order.sort_by_key(|(first, _)| *first);
    let mut rows = Rows::default();
    in_order.into_iter().for_each(|(first, counts)| rows.add(first, counts));
    rows
}
