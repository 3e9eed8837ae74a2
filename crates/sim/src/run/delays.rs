//! Distributions of delays as tables: of packets in each measured queue, and of round trips.

use super::Simulation;
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
        for (ns, count) in counted {
            self.of.push(of);
            self.ms.push(ns as f64 / 1e6);
            self.count.push(count);
        }
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
    vec![
        queues(sim).table("queue_delays", ["queue", "delay_ms", "packets"]),
        round_trips(&sim.actors.flows).table("round_trips", ["flow", "rtt_ms", "samples"]),
    ]
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
        flow.rtt.buckets().for_each(|(rtt, count)| *counts.entry(rtt.as_nanos()).or_default() += count);
    }
    let mut in_order: Vec<_> = groups.into_values().collect();
    in_order.sort_by_key(|(first, _)| *first);
    let mut rows = Rows::default();
    in_order.into_iter().for_each(|(first, counts)| rows.add(first, counts));
    rows
}
