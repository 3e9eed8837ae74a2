//! Compares a gateway that estimates the rate of its link with one that is told: `estimate_grid [KEY=VALUE,VALUE...]...`.
//!
//! Prints a row for each link: use, the 95th percentile of the queue that is not in the gateway, and the delay of a call, all after 50 round trips, and at
//! least 10 s. [`KEYS`] are the keys with their values by default.

use penstock_core::units::Span;
use penstock_sim::{Column, Scenario, Simulation};
use std::collections::BTreeMap;
use std::fmt::Write;

/// One link and what it carries.
#[derive(Debug, Clone, PartialEq)]
struct Case {
    mbit: f64,
    rtt_ms: f64,
    up: u32,
    down: u32,
    aqm: String,
    first: f64,
    fifo_ms: f64,
    form: String,
    law: String,
    cc: String,
    seed: u64,
    trace: bool,
}

#[derive(Debug, Default, Clone)]
struct Found {
    /// Use of the way out and in, as parts.
    used: [f64; 2],
    /// 95th percentiles of the queues of modem and provider, in milliseconds.
    behind: [f64; 2],
    /// 90th and 99th percentiles of the calls, out and in.
    call: [[f64; 2]; 2],
}

impl Case {
    fn settle(&self) -> f64 {
        (50.0 * self.rtt_ms / 1e3).max(10.0)
    }

    fn seconds(&self) -> f64 {
        self.settle() + if self.form == "constant" { 30.0 } else { 120.0 }
    }

    /// Changes of the link, from a small generator of numbers of its own.
    fn changes(&self) -> String {
        let mut state = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1_u32 << 31)
        };
        let mut out = String::new();
        let mut add = |at: f64, rate: f64, delay: Option<f64>| {
            let delay = delay.map(|ms| format!("delay = \"{ms:.3}ms\"\n")).unwrap_or_default();
            let _ = writeln!(
                out,
                "[[changes]]\nlink = \"home\"\nat = \"{at:.3}s\"\nrate = \"{:.0}bit/s\"\n{delay}",
                rate * 1e6
            );
        };
        let end = self.seconds();
        match self.form.as_str() {
            "beams" => {
                let mut at = 15.0;
                while at < end {
                    add(at, 40.0 + 80.0 * draw(), Some(10.0 + 20.0 * draw()));
                    at += 15.0;
                }
            }
            "lte" => {
                let (mut at, mut rate, mut out_until) = (0.1, 10.0_f64, 0.0);
                while at < end {
                    rate = (rate * (1.0 + 0.25 * (draw() - 0.5))).clamp(1.0, 25.0);
                    if draw() < 0.003 {
                        out_until = at + 0.2 + 0.8 * draw();
                    }
                    add(at, if at < out_until { 0.05 } else { rate }, None);
                    at += 0.1;
                }
            }
            "rain" => {
                let mut at = 1.0;
                while at < end {
                    let part = |since: f64| ((at % 120.0 - since) / 60.0).clamp(0.0, 1.0);
                    add(at, self.mbit * (1.0 - 0.6 * part(10.0) + 0.6 * part(60.0)), None);
                    at += 1.0;
                }
            }
            "dsl" => {
                for (place, part) in [(30.0, 0.5), (60.0, 1.2), (90.0, 0.8), (120.0, 1.0)] {
                    add(place, 0.01, None);
                    add(place + 5.0, self.mbit * part, None);
                }
            }
            _ => {}
        }
        out
    }

    fn scenario(&self, told: bool) -> String {
        let fifo = (self.fifo_ms * self.mbit * 125.0).max(15_140.0);
        let known = if told {
            String::new()
        } else {
            let first = self.mbit * self.first * 1e6;
            format!(
                "rate_from = \"{}\"\nmodem_limit = \"{fifo:.0}B\"\nprovider_limit = \"{fifo:.0}B\"\n\
                 first_rate = \"{first:.0}bit/s\"\nreverse_first_rate = \"{first:.0}bit/s\"\n",
                self.law
            )
        };
        let mut flows = String::new();
        for (count, from, to) in [(self.up, "lan", "wan"), (self.down, "wan", "lan")] {
            if count > 0 {
                let _ = writeln!(
                    flows,
                    "[[flows]]\nkind = \"bulk\"\ncount = {count}\nstart_spread = \"500ms\"\nfrom = \"{from}\"\nto = \"{to}\"\n"
                );
            }
            let _ = writeln!(
                flows,
                "[[flows]]\nkind = \"voip\"\ntalk_spurts = false\nstart = \"{}s\"\nfrom = \"{from}\"\nto = \"{to}\"\n",
                self.settle()
            );
        }
        format!(
            "duration = \"{}s\"\nseed = {}\n[topology]\nkind = \"graph\"\naccess_rate = \"10Gbit/s\"\n\
             [[topology.links]]\nname = \"home\"\na = \"lan\"\nb = \"wan\"\nrate = \"{:.0}bit/s\"\ndelay = \"{}ms\"\nlimit = \"10000p\"\n\
             reverse_limit = \"10000p\"\naqm = \"{}\"\nreverse_aqm = \"{}\"\nbottleneck = true\n{known}\n[tcp]\nprofile = \"linux\"\n{}{flows}{}",
            self.seconds(),
            self.seed,
            self.mbit * 1e6,
            self.rtt_ms / 2.0,
            self.aqm,
            self.aqm,
            if self.cc.is_empty() { String::new() } else { format!("cc = \"{}\"\n", self.cc) },
            self.changes(),
        )
    }

    fn play(&self, told: bool) -> Found {
        let text = self.scenario(told);
        let scenario = Scenario::parse(&text, "grid.toml").unwrap_or_else(|e| panic!("{e}"));
        let mut run = Simulation::new(&scenario);
        run.advance(Span::from_secs_f64(self.settle())).unwrap();
        let (begun, waited) = (sent(&run), waits(&run));
        if self.trace && !told {
            self.follow(&mut run);
        }
        run.advance(Span::MAX).unwrap();
        let (summary, waited_all) = (run.summary(), waits(&run));
        let ended = sent(&run);
        let mut found = Found::default();
        for (way, name) in ["home", "home-reverse"].into_iter().enumerate() {
            let could = ended[name][1] - begun[name][1];
            found.used[way] = (ended[name][0] - begun[name][0]) / could;
        }
        for (way, name) in ["home-modem", "home-provider"].into_iter().enumerate() {
            if let Some(all) = waited_all.get(name) {
                found.behind[way] = percentile(all, waited.get(name), 0.95);
            }
        }
        let calls: Vec<[f64; 2]> = summary
            .flows
            .iter()
            .filter(|flow| flow.kind == "voip")
            .map(|flow| {
                let value = serde_json::to_value(flow).expect("plain data");
                ["p90", "p99"].map(|q| find(&value, "delay_ms").and_then(|d| d[q].as_f64()).unwrap_or(f64::NAN))
            })
            .collect();
        found.call = [calls[0], calls[1]];
        found
    }

    /// Prints a row for each 100 ms.
    fn follow(&self, run: &mut Simulation) {
        let mut before = sent(run);
        while !run.advance(Span::from_millis(100)).unwrap() {
            let now = sent(run);
            let part = |name: &str| (now[name][0] - before[name][0]) / (now[name][1] - before[name][1]).max(1.0);
            let summary = run.summary();
            let of = |at: usize| summary.bottlenecks[at].estimate.map_or(0.0, |one| one.bps as f64 / 1e6);
            println!(
                "{:.1}: used {:.3} {:.3}, capacity {:.3} {:.3}, thought {:.3} {:.3}",
                run.now().as_secs_f64(),
                part("home"),
                part("home-reverse"),
                (now["home"][1] - before["home"][1]) / 1e5,
                (now["home-reverse"][1] - before["home-reverse"][1]) / 1e5,
                of(0),
                of(1),
            );
            before = now;
        }
    }
}

/// Bits sent and that could have been, of each queue.
fn sent(run: &Simulation) -> BTreeMap<String, [f64; 2]> {
    let summary = run.summary();
    let of = |b: &penstock_sim::summary::BottleneckSummary| {
        let bits = b.throughput_bps * summary.duration_s;
        (b.name.clone(), [bits, bits / b.utilization.max(1e-12)])
    };
    summary.bottlenecks.iter().map(of).collect()
}

/// The distribution of the delays of each queue.
fn waits(run: &Simulation) -> BTreeMap<String, BTreeMap<u64, u64>> {
    let names: Vec<String> = run.summary().bottlenecks.iter().map(|b| b.name.clone()).collect();
    let tables = run.tables();
    let table = tables.iter().find(|table| table.name == "queue_delays").expect("a run with series");
    let [Column::U32(queues), Column::F64(delays), Column::U64(packets)] =
        [0, 1, 2].map(|at| table.columns[at].1.clone())
    else {
        panic!("columns of delays: {:?}", table.columns.iter().map(|(name, _)| name).collect::<Vec<_>>())
    };
    let mut found: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    for ((queue, delay), count) in queues.into_iter().zip(delays).zip(packets) {
        *found.entry(names[queue as usize].clone()).or_default().entry((delay * 1e3) as u64).or_default() += count;
    }
    found
}

/// The percentile of the times of `all` that are not among those of `before`, in milliseconds. The steps of distributions
/// move a little as they grow, so that the difference is one of cumulative counts.
fn percentile(all: &BTreeMap<u64, u64>, before: Option<&BTreeMap<u64, u64>>, part: f64) -> f64 {
    let empty = BTreeMap::new();
    let before = before.unwrap_or(&empty);
    let total = all.values().sum::<u64>() - before.values().sum::<u64>();
    let mut below = 0;
    for (us, count) in all {
        below += count;
        let earlier: u64 = before.range(..=us).map(|(_, count)| count).sum();
        if below as f64 - earlier as f64 >= part * total as f64 {
            return *us as f64 / 1e3;
        }
    }
    0.0
}

fn find<'a>(value: &'a serde_json::Value, key: &str) -> Option<&'a serde_json::Value> {
    value.get(key).or_else(|| value.as_object()?.values().find_map(|inner| find(inner, key)))
}

/// The keys and their values by default.
const KEYS: [(&str, &str); 12] = [
    ("mbit", "0.5,1,2,5,20,100"),
    ("rtt", "10,40,100,600"),
    // Uploads and downloads: "4u1d" are four and one.
    ("load", "1u,4u,8u,1d,4d,8d"),
    ("aqm", "fq-codel"),
    // What the gateway is told at first, as a multiple.
    ("first", "1"),
    // The queues behind the gateway in milliseconds, or "bdp".
    ("fifo", "250"),
    // Or "beams", "lte", "rain", "dsl".
    ("form", "constant"),
    // Or "autorate".
    ("law", "estimate"),
    ("cc", ""),
    ("seed", "1"),
    // With any value: what happens in each 100 ms.
    ("trace", ""),
    ("told", "yes"),
];

/// Returns the values of each key.
fn given() -> BTreeMap<&'static str, Vec<String>> {
    let list = |values: &str| values.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut keys: BTreeMap<&str, Vec<String>> = KEYS.map(|(key, values)| (key, list(values))).into();
    for arg in std::env::args().skip(1) {
        let (key, values) = arg.split_once('=').unwrap_or_else(|| panic!("{arg}: not KEY=VALUE"));
        *keys.get_mut(key).unwrap_or_else(|| panic!("{key}: no such key")) = list(values);
    }
    keys
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text}: no number"))
}

/// Returns the number before a letter: the 4 of "4u1d" before "u".
fn count(load: &str, way: char) -> u32 {
    let before = load.find(way).map_or("", |end| &load[..end]);
    before.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Lists each combination of values.
fn combinations(keys: &BTreeMap<&'static str, Vec<String>>) -> Vec<BTreeMap<&'static str, String>> {
    let mut all = vec![BTreeMap::new()];
    // Those that change only what the gateway begins with come last, so that one told run serves all of them.
    for key in ["form", "aqm", "mbit", "rtt", "load", "seed", "cc", "trace", "told", "law", "first", "fifo"] {
        let with = |one: &BTreeMap<&'static str, String>, value: &String| {
            let mut one = one.clone();
            one.insert(key, value.clone());
            one
        };
        all = all.iter().flat_map(|one| keys[key].iter().map(move |value| with(one, value))).collect();
    }
    all
}

fn main() {
    println!(
        "link, rtt, load, aqm, first, fifo, form | use told | use | behind p95 | call told p90 p99 | call p90 p99"
    );
    let (mut misses, mut told) = (0, None);
    let all = combinations(&given());
    for one in &all {
        let rtt_ms = number(&one["rtt"]);
        let case = Case {
            mbit: number(&one["mbit"]),
            rtt_ms,
            up: count(&one["load"], 'u'),
            down: count(&one["load"], 'd'),
            aqm: one["aqm"].clone(),
            first: number(&one["first"]),
            fifo_ms: if one["fifo"] == "bdp" { rtt_ms } else { number(&one["fifo"]) },
            form: one["form"].clone(),
            law: one["law"].clone(),
            cc: one["cc"].clone(),
            seed: number(&one["seed"]) as u64,
            trace: !one["trace"].is_empty(),
        };
        let text = case.scenario(true);
        if one["told"] == "yes" && told.as_ref().is_none_or(|(known, _)| *known != text) {
            told = Some((text, case.play(true)));
        }
        let found = case.play(false);
        misses += usize::from(row(&case, &one["load"], told.as_ref().map(|(_, told)| told), &found));
    }
    println!("{misses} of {} miss a bar", all.len());
}

/// Prints a row; returns true if it misses a bar.
fn row(case: &Case, load: &str, told: Option<&Found>, found: &Found) -> bool {
    let told = told.cloned().unwrap_or_default();
    let room = 15.0 + 3.0 * 1514.0 * 8.0 / (case.mbit * 1e3);
    let mut marks = String::new();
    for (way, flows, name) in [(0, case.up, "up"), (1, case.down, "down")] {
        if flows > 0 && found.used[way] < 0.95 * told.used[way] {
            let _ = write!(marks, " USE-{name}");
        }
        if flows > 0 && case.form == "constant" && found.behind[way] > room {
            let _ = write!(marks, " BEHIND-{name}");
        }
        if flows > 0 && case.form == "constant" && found.call[way][0] > told.call[way][0] + room {
            let _ = write!(marks, " CALL-{name}");
        } else if flows > 0 && case.form == "constant" && found.call[way][1] > told.call[way][1] + room {
            let _ = write!(marks, " (call-{name})");
        }
    }
    let pair = |two: [f64; 2], digits: usize| format!("{:.digits$}/{:.digits$}", two[0], two[1]);
    let ways: Vec<usize> = [(0, case.up), (1, case.down)].iter().filter(|(_, n)| *n > 0).map(|(way, _)| *way).collect();
    let of = |f: &dyn Fn(usize) -> String| ways.iter().map(|way| f(*way)).collect::<Vec<_>>().join(" ");
    println!(
        "{:>5} {:>4} {load:>5} {} x{} {} {} | {} | {} | {} | {} | {} |{marks}",
        case.mbit,
        case.rtt_ms,
        case.aqm,
        case.first,
        case.fifo_ms,
        case.form,
        of(&|way| format!("{:.3}", told.used[way])),
        of(&|way| format!("{:.3}", found.used[way])),
        of(&|way| format!("{:.1}", found.behind[way])),
        of(&|way| pair(told.call[way], 0)),
        of(&|way| pair(found.call[way], 0)),
    );
    marks.contains("-") && !marks.trim_start().starts_with('(')
}
