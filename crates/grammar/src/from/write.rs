//! What was read, as TOML: the file of a gateway, and the link of a scenario.

use super::{Description, Key, Way, clipped, quoted};
use penstock_core::link_layer::LinkLayer;
use penstock_core::units::Rate;
use std::fmt::Write;

/// The rate of a direction that no line tells: hardly anything waits before it.
const UNTOLD: Rate = Rate::from_bps(10_000_000_000);
/// The prefix of keys of the way back.
const REVERSE: &str = "reverse_";

/// Writes a key, with where it comes from.
fn line(out: &mut String, key: &str, value: &str, from: &str) {
    let comment = if from.is_empty() { String::new() } else { format!("  # {}", clipped(from)) };
    let _ = writeln!(out, "{key} = {value}{comment}");
}

/// Writes what a link adds to packets, there and back.
fn layers(out: &mut String, [there, back]: [&Way; 2]) {
    let mut write = |prefix: &str, way: &Way| {
        let LinkLayer { overhead, mpu, framing } = way.layer;
        let keys =
            [("overhead", overhead.to_string()), ("mpu", mpu.to_string()), ("framing", quoted(&framing.to_string()))];
        for (key, value) in keys {
            line(out, &format!("{prefix}{key}"), &value, &way.layer_from);
        }
    };
    if !there.layer.is_plain() {
        write("", there);
    }
    if back.layer != there.layer {
        write(REVERSE, back);
    }
}

fn discipline(out: &mut String, keys: &[Key]) {
    for key in keys {
        line(out, key.key, &key.value, &key.from);
    }
}

/// The keys of a discipline without comments.
fn inline(keys: &[Key]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("{} = {}", key.key, key.value)).collect();
    format!("{{ {} }}", keys.join(", "))
}

fn plain_queue(way: &Way) -> Vec<Key> {
    let none = || vec![Key { key: "name", value: quoted("droptail"), from: "no line tells another".into() }];
    if way.discipline.is_empty() { none() } else { way.discipline.clone() }
}

fn limits(out: &mut String, [there, back]: [&Way; 2]) {
    for (prefix, way) in [("", there), (REVERSE, back)] {
        let default = Key { key: "limit", value: quoted("1000p"), from: String::new() };
        let limit = way.limit.as_ref().unwrap_or(&default);
        line(out, &format!("{prefix}limit"), &limit.value, &limit.from);
    }
}

impl Description {
    fn header(&self, what: &str) -> String {
        format!("# {what}, from {}: {}\n", self.format, clipped(&self.files.join(", ")))
    }

    /// Writes the file of a gateway.
    pub fn gateway(&self) -> String {
        let [down, up] = &self.ways;
        let mut out = self.header("The file of a gateway");
        out.push_str("#   penstock-gateway check FILE      whether it is right\n#   penstock-gateway explain FILE    what a run installs\n");
        out.push_str("\n[interfaces]\n");
        let wan = if self.wan.1.is_empty() { "no line tells it: write the interface to the link" } else { &self.wan.1 };
        line(&mut out, "wan", &quoted(&self.wan.0), wan);
        out.push_str("\n[link]\n");
        for (key, way) in [("rate", down), ("reverse_rate", up)] {
            let untold = (UNTOLD, "no line tells it: write the rate of the link".to_owned());
            let (rate, from) = way.rate.as_ref().unwrap_or(&untold);
            line(&mut out, key, &quoted(&rate.to_string()), from);
        }
        limits(&mut out, [down, up]);
        layers(&mut out, [down, up]);
        out.push_str("\n[discipline]  # of downloads");
        let shapes = |way: &Way| {
            let is_cake = way.discipline.first().is_some_and(|name| name.value == "\"cake\"");
            is_cake && way.discipline.iter().any(|key| key.key == "bandwidth")
        };
        if self.ways.iter().any(shapes) {
            out.push_str("; a change of `rate` must change `bandwidth` as well");
        }
        out.push('\n');
        discipline(&mut out, &plain_queue(down));
        out.push_str("\n[reverse_discipline]  # of uploads\n");
        discipline(&mut out, &plain_queue(up));
        self.subscribers(&mut out);
        out
    }

    fn subscribers(&self, out: &mut String) {
        for member in &self.members {
            let _ = writeln!(out, "\n[subscribers.{}]  # {}", quoted(&member.name), clipped(&member.about));
            if !member.prefixes.is_empty() {
                let prefixes: Vec<String> = member.prefixes.iter().map(|prefix| quoted(&prefix.to_string())).collect();
                let _ = writeln!(out, "prefixes = [{}]", prefixes.join(", "));
            }
            if let Some(parent) = member.parent {
                let _ = writeln!(out, "parent = {}", quoted(&self.members[parent].name));
            }
            if let Some(weight) = member.weight {
                let _ = writeln!(out, "weight = {weight}");
            }
            for (rates, prefix) in member.rates.iter().zip(["", REVERSE]) {
                for (rate, key) in rates.iter().zip(["guaranteed", "ceiling"]) {
                    if let Some(bps) = rate {
                        let _ = writeln!(out, "{prefix}{key} = {}", quoted(&Rate::from_bps(*bps).to_string()));
                    }
                }
            }
            if !member.discipline.is_empty() {
                let _ = writeln!(out, "discipline = {}", inline(&member.discipline));
            }
        }
    }

    /// Writes the tables of a scenario that describe its link: `[topology]` and `[aqm]`. Uploads go forward.
    pub fn link(&self) -> String {
        let [down, up] = &self.ways;
        let mut out = String::from(
            "[topology]\nkind = \"dumbbell\"              # hosts of the home on the left, hosts on the right, one bottleneck between\n",
        );
        let (told, from) = match &self.busiest {
            Some((rates, from)) => (*rates, [from.clone(), from.clone()]),
            None => {
                let of = |way: &Way| way.rate.as_ref().map(|(rate, _)| *rate);
                let from = |way: &Way| way.rate.as_ref().map_or_else(String::new, |(_, from)| from.clone());
                ([of(down), of(up)], [from(down), from(up)])
            }
        };
        // As in the scenario that `penstock new scenario` writes.
        let defaults = [Rate::from_bps(50_000_000), Rate::from_bps(10_000_000)];
        let mut rates = defaults;
        for (key, way) in [("rate", 1), ("reverse_rate", 0)] {
            rates[way] = told[way].unwrap_or(defaults[way]);
            let untold = if told[way].is_none() { "no line tells it: write the rate of the link" } else { &from[way] };
            line(&mut out, key, &quoted(&rates[way].to_string()), untold);
        }
        self.wires(&mut out);
        limits(&mut out, [up, down]);
        layers(&mut out, [up, down]);
        let fastest = rates.iter().map(|rate| rate.as_bps()).max().unwrap_or_default();
        let access = fastest.saturating_mul(10).clamp(100_000_000, crate::link::MAX_RATE.as_bps());
        line(&mut out, "access_rate", &quoted(&Rate::from_bps(access).to_string()), "each host's own link");
        out.push_str("\n[topology.reverse_aqm]         # of downloads\n");
        discipline(&mut out, &plain_queue(down));
        out.push_str("\n[aqm]                          # of uploads\n");
        discipline(&mut out, &plain_queue(up));
        out
    }

    /// Writes delays, losses and the like of both directions.
    fn wires(&self, out: &mut String) {
        let [down, up] = &self.ways;
        if down.wire.is_empty() && up.wire.is_empty() {
            line(out, "delay", "\"20ms\"", "one way; no line tells it");
            return;
        }
        for (prefix, way) in [("", up), (REVERSE, down)] {
            if !way.wire.iter().any(|key| key.key == "delay") {
                line(out, &format!("{prefix}delay"), "\"0s\"", "no line tells it");
            }
            for Key { key, value, from } in &way.wire {
                if *key == "loss" && !prefix.is_empty() {
                    // Links have no key for independent losses on the way back: a state that remembers nothing is the same.
                    let part: f64 = value.parse().unwrap_or(0.0);
                    let other = ((1.0 - part) * 1e12).round() / 1e12;
                    line(out, "reverse_gilbert", &format!("{{ to_bad = {part}, to_good = {other} }}"), from);
                    continue;
                }
                line(out, &format!("{prefix}{key}"), value, from);
            }
        }
    }
}
