//! Writing of scenarios as TOML with all defaults, which reads as the same scenario.

mod changes;

use super::{Cooperation, FlowSpec, Handover, Lie, LinkSpec, NodeSpec, QueueSpec, Scenario};
use penstock_grammar::impair::ImpairmentKeys;
use penstock_grammar::link::LayerKeys;
use serde::Serialize;
use toml::{Table, Value};

/// Writes the scenario as TOML with all defaults. Every topology is written as a graph or a dumbbell.
pub(super) fn write(scenario: &Scenario) -> String {
    let mut root = Table::new();
    root.insert("name".into(), scenario.name.clone().into());
    root.insert("duration".into(), text(scenario.duration));
    root.insert("seed".into(), "SEED".into());
    root.insert("warmup".into(), text(scenario.warmup));
    root.insert("output".into(), output(scenario));
    root.insert("invariants".into(), invariants(scenario));
    let mut topology = Table::new();
    let dumbbell = is_dumbbell(scenario);
    topology.insert("kind".into(), if dumbbell { "dumbbell" } else { "graph" }.into());
    topology.insert("access_rate".into(), text(scenario.access.rate));
    topology.insert("access_delay".into(), text(scenario.access.delay));
    if dumbbell {
        let link = &scenario.links[0];
        topology.extend(keys(&link.link));
        topology.extend(layers(link));
        topology.insert("reverse_aqm".into(), algorithm(&link.reverse_queue));
        topology.extend(impairments(link));
        topology.extend(estimate(link));
        topology.extend(stations(&link.queue).map(|stations| ("stations".to_owned(), stations)));
        root.insert("aqm".into(), algorithm(&link.queue));
    } else {
        topology.insert("links".into(), Value::Array(scenario.links.iter().map(link).collect()));
    }
    root.insert("topology".into(), Value::Table(topology));
    root.insert("flows".into(), Value::Array(scenario.flows.iter().map(|f| flow(f, dumbbell)).collect()));
    if !scenario.changes.is_empty() {
        let changes = scenario.changes.iter().map(|c| changes::change(c, &scenario.links[c.link].name)).collect();
        root.insert("changes".into(), Value::Array(changes));
    }
    if !scenario.handovers.is_empty() {
        let handovers = scenario.handovers.iter().map(handover).collect();
        root.insert("handovers".into(), Value::Array(handovers));
    }
    if let Some(spec) = &scenario.cooperation {
        root.insert("cooperation".into(), cooperation(spec, &scenario.links));
    }
    toml::to_string(&root).unwrap_or_default().replacen("seed = \"SEED\"", "seed = SEED", 1)
}

/// True if the topology can be written as a dumbbell; a graph with a queue that is not measured cannot.
fn is_dumbbell(scenario: &Scenario) -> bool {
    let [link] = scenario.links.as_slice() else { return false };
    let named = link.name == "bottleneck" && link.a == "left" && link.b == "right";
    let looked_at = link.queue.looked_at && link.reverse_queue.looked_at == link.estimate.is_some();
    named && looked_at
}

pub(super) fn text(value: impl ToString) -> Value {
    Value::String(value.to_string())
}

fn output(scenario: &Scenario) -> Value {
    let names = scenario.output.pcapng.iter().map(|n| Value::String(n.clone())).collect();
    Value::Table(Table::from_iter([
        ("series".to_owned(), Value::Boolean(scenario.output.series)),
        ("pcapng".to_owned(), Value::Array(names)),
    ]))
}

fn invariants(scenario: &Scenario) -> Value {
    let mut table = Table::from_iter([("no_drops".to_owned(), Value::Boolean(scenario.invariants.no_drops))]);
    if let Some(bytes) = scenario.invariants.max_queue {
        table.insert("max_queue".into(), text(bytes));
    }
    Value::Table(table)
}

/// Writes a configuration as a table. Parameters that are derived from the link have no value and are left out.
fn algorithm(queue: &QueueSpec) -> Value {
    let mut table = Table::from_iter([("name".to_owned(), Value::String(queue.config.name().into()))]);
    table.extend(keys(&queue.config));
    Value::Table(table)
}

/// Writes the keys of a value which serializes as a table; keys without a value are left out.
fn keys(value: &impl Serialize) -> Table {
    match Value::try_from(value) {
        Ok(Value::Table(table)) => table,
        _ => Table::new(),
    }
}

/// Returns the impairments that a link has, and whether it gives advice, in both directions.
fn impairments(spec: &LinkSpec) -> Table {
    let both = [&spec.queue, &spec.reverse_queue];
    let mut table = keys(&ImpairmentKeys::of(both.map(|queue| queue.impairments)));
    let advised = ["scone", "reverse_scone"].into_iter().zip(both).filter(|(_, queue)| queue.advice);
    table.extend(advised.map(|(key, _)| (key.to_owned(), Value::Boolean(true))));
    table
}

/// Returns what a link adds to packets, in both directions.
fn layers(spec: &LinkSpec) -> Table {
    keys(&LayerKeys::of([spec.queue.layer, spec.reverse_queue.layer]))
}

/// Returns what the gateway of a link begins with; nothing if it is told the rates.
fn estimate(spec: &LinkSpec) -> Table {
    let Some(estimate) = &spec.estimate else { return Table::new() };
    let mut table = Table::new();
    table.extend(Value::try_from(estimate.law).ok().map(|law| ("rate_from".to_owned(), law)));
    for (prefix, known) in ["", "reverse_"].into_iter().zip(&estimate.known) {
        for (key, rate) in [("first_rate", known.first), ("lowest", known.lowest), ("highest", known.highest)] {
            table.insert(format!("{prefix}{key}"), text(rate));
        }
    }
    for (key, limit) in ["modem_limit", "provider_limit"].into_iter().zip(estimate.limits) {
        table.insert(key.to_owned(), text(limit));
    }
    table
}

/// Writes the stations behind a link; `None` if there are none.
fn stations(queue: &QueueSpec) -> Option<Value> {
    Value::try_from(&queue.stations).ok().filter(|_| !queue.stations.is_empty())
}

fn link(spec: &LinkSpec) -> Value {
    let mut table = Table::from_iter([
        ("name".to_owned(), Value::String(spec.name.clone())),
        ("a".to_owned(), Value::String(spec.a.clone())),
        ("b".to_owned(), Value::String(spec.b.clone())),
    ]);
    table.extend(keys(&spec.link));
    table.extend(layers(spec));
    table.extend(impairments(spec));
    table.extend(estimate(spec));
    table.insert("aqm".into(), algorithm(&spec.queue));
    table.insert("bottleneck".into(), spec.queue.looked_at.into());
    table.extend(stations(&spec.queue).map(|stations| ("stations".to_owned(), stations)));
    // A queue of the reverse direction whose discipline is named in the file is measured.
    if spec.reverse_queue.looked_at || !spec.queue.looked_at {
        table.insert("reverse_aqm".into(), algorithm(&spec.reverse_queue));
    }
    Value::Table(table)
}

fn flow(spec: &FlowSpec, dumbbell: bool) -> Value {
    let mut table = Table::from_iter([
        ("kind".to_owned(), Value::String(spec.traffic.name().into())),
        ("count".to_owned(), Value::Integer(spec.count as i64)),
        ("start".to_owned(), text(spec.start)),
        ("start_step".to_owned(), text(spec.start_step)),
        ("start_spread".to_owned(), text(spec.start_spread)),
    ]);
    let mut add = |key: &str, value| table.insert(key.to_owned(), value);
    if let Some(stop) = spec.stop {
        add("stop", text(stop));
    }
    if let Some(delay) = spec.access_delay {
        add("access_delay", text(delay));
    }
    if dumbbell && spec.from != "left" {
        add("direction", text("reverse"));
    }
    if let Some(node) = &spec.node {
        add("node", Value::String(node.clone()));
        add("weight", Value::Integer(spec.weight.into()));
    }
    if let Some(class) = spec.class {
        add("class", Value::Integer(class.into()));
    }
    if !dumbbell {
        add("from", Value::String(spec.from.clone()));
        add("to", Value::String(spec.to.clone()));
    }
    if spec.traffic.uses_tcp() {
        add("tcp", Value::try_from(&spec.tcp).unwrap_or(Value::Table(Table::new())));
    }
    table.extend(keys(&spec.traffic));
    Value::Table(table)
}

fn handover(handover: &Handover) -> Value {
    let flows = handover.flows.iter().map(|flow| Value::Integer((*flow).into())).collect();
    Value::Table(Table::from_iter([
        ("at".to_owned(), text(handover.at)),
        ("from".to_owned(), Value::String(handover.from.clone())),
        ("to".to_owned(), Value::String(handover.to.clone())),
        ("procedure".to_owned(), Value::String(handover.procedure.name().into())),
        ("interruption".to_owned(), text(handover.interruption)),
        ("flows".to_owned(), Value::Array(flows)),
    ]))
}

fn cooperation(spec: &Cooperation, links: &[LinkSpec]) -> Value {
    let sharing = Value::try_from(spec.policy.sharing).unwrap_or(Value::Boolean(false));
    let mut table = Table::from_iter([
        ("link".to_owned(), Value::String(links[spec.link].name.clone())),
        ("sharing".to_owned(), sharing),
        ("literal".to_owned(), Value::Boolean(spec.policy.literal)),
        ("lease".to_owned(), text(spec.lease)),
        ("advertise".to_owned(), text(spec.advertise)),
    ]);
    table.extend(spec.silent_from.map(|at| ("silent_from".to_owned(), text(at))));
    if !spec.policy.floors.is_empty() {
        let floors = Vec::from(spec.policy.floors).into_iter().map(text).collect();
        table.insert("floors".to_owned(), Value::Array(floors));
    }
    let node = |node: &NodeSpec| {
        let mut table = Table::from_iter([("name".to_owned(), Value::String(node.name.clone()))]);
        table.extend(node.csi.map(|link| ("csi".to_owned(), Value::String(links[link].name.clone()))));
        let word = Lie::ALL.iter().find(|(_, lie)| node.lie == Some(*lie)).map(|(word, _)| *word);
        table.extend(word.map(|word| ("lie".to_owned(), Value::String(word.into()))));
        if let Some(share) = node.share {
            table.insert("class".to_owned(), Value::Integer(share.class.into()));
            table.insert("weight".to_owned(), Value::Integer(share.weight.into()));
            table.extend((!share.floor.is_of_class()).then(|| ("floor".to_owned(), text(share.floor))));
        }
        Value::Table(table)
    };
    if !spec.nodes.is_empty() {
        table.insert("nodes".to_owned(), Value::Array(spec.nodes.iter().map(node).collect()));
    }
    Value::Table(table)
}
