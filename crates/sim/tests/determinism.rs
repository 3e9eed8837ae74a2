//! The same scenario and seed give the same bytes: in two runs, in threads, in steps, from the resolved file, in any
//! build.

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation, Table};
use std::path::Path;

/// A scenario with something of everything: two bottlenecks, three algorithms, random loss, all kinds of traffic.
const MIXED: &str = r#"
name = "mixed"
duration = "8s"
seed = 7
warmup = "1s"

[topology]
kind = "parking-lot"
access_delay = "1ms"
hops = [
  { rate = "2Mbit/s", delay = "10ms", limit = "60p", aqm = { name = "red", ecn = true }, loss = 0.002 },
  { rate = "3Mbit/s", delay = "5ms", limit = "90kB", aqm = { name = "codel" } },
]

[[flows]]
kind = "bulk"
count = 3
start_spread = "500ms"
from = "r0"
to = "r2"
tcp = { cc = "newreno", ecn = true }

[[flows]]
kind = "bulk"
count = 2
start_step = "100ms"
stop = "6s"
from = "r1"
to = "r2"

[[flows]]
kind = "transfer"
size = "200kB"
start = "1s"
from = "r2"
to = "r0"

[[flows]]
kind = "onoff"
rate = "1Mbit/s"
mean_on = "200ms"
mean_off = "300ms"
from = "r0"
to = "r1"

[[flows]]
kind = "cbr"
rate = "200kbit/s"
packet_size = "160B"
from = "r1"
to = "r2"
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "mixed.toml").unwrap_or_else(|e| panic!("{e}"))
}

/// Runs in steps; returns the written summary and the tables.
fn run_in_steps(scenario: &Scenario, step: Span) -> (String, Vec<Table>) {
    let mut simulation = Simulation::new(scenario);
    while !simulation.advance(step).unwrap() {}
    (serde_json::to_string(&simulation.summary()).unwrap(), simulation.tables())
}

fn run(scenario: &Scenario) -> (String, Vec<Table>) {
    run_in_steps(scenario, Span::MAX)
}

/// Checks that something happened in each part that the other tests compare.
#[test]
fn the_mixed_scenario_exercises_what_it_names() {
    let mut simulation = Simulation::new(&parse(MIXED));
    simulation.advance(Span::MAX).unwrap();
    let summary = simulation.summary();
    let [first, second] = summary.bottlenecks.as_slice() else { panic!("two hops are looked at") };
    assert!(first.drops_aqm > 0 && first.marks > 0 && first.lost > 0, "{first:?}");
    assert!(second.drops_aqm > 0 && second.lost == 0, "{second:?}");
    assert!(summary.flows.iter().all(|f| f.delivered_bytes > 0), "{:?}", summary.flows);
    assert!(summary.flows.iter().any(|f| f.completion_s.is_some()), "the transfer ends");
}

#[test]
fn twice_the_same_bytes() {
    assert_eq!(run(&parse(MIXED)), run(&parse(MIXED)));
}

#[test]
fn threads_do_not_matter() {
    let alone = run(&parse(MIXED));
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| run(&parse(MIXED)))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(together.iter().all(|one| *one == alone));
}

#[test]
fn another_seed_is_another_run() {
    let mut other = parse(MIXED);
    other.seed = 8;
    let without_seed = |json: String| json.replacen("\"seed\":8", "\"seed\":7", 1);
    assert_ne!(without_seed(run(&other).0), run(&parse(MIXED)).0);
}

#[test]
fn the_resolved_file_is_the_same_scenario() {
    let mut scenario = parse(MIXED);
    let resolved = parse(&scenario.resolved());
    assert_eq!(resolved, scenario);
    assert_eq!(resolved.resolved(), scenario.resolved(), "resolving is done once");
    assert_eq!(run(&resolved), run(&scenario));
    scenario.seed = 99;
    assert_eq!(parse(&scenario.resolved()).seed, 99, "a seed that was set by hand is written");
}

#[test]
fn every_form_of_topology_survives_being_resolved() {
    let dumbbell = r#"
        duration = "1s"
        topology = { kind = "dumbbell", rate = "1Mbit/s", delay = "5ms", loss = 0.25, reverse_aqm = { name = "codel" } }
        aqm = { name = "pink" }
        flows = [{ kind = "bulk" }]
        invariants = { max_queue = "80kB" }
        output = { series = false, pcapng = ["bottleneck"] }"#;
    let reversed = r#"
        duration = "1s"
        flows = [{ kind = "bulk", from = "right", to = "left" }]
        [topology]
        kind = "graph"
        links = [{ name = "bottleneck", a = "left", b = "right", rate = "1Mbit/s", delay = "5ms", loss = 0.25,
                   aqm = { name = "red" } }]"#;
    let both_ways = reversed.replace("aqm =", "reverse_aqm = { name = \"codel\" }, aqm =");
    let unnamed =
        reversed.replace("aqm = { name = \"red\" }", "bottleneck = false, reverse_aqm = { name = \"codel\" }");
    for text in [dumbbell, reversed, &both_ways, &unnamed] {
        let scenario = parse(text);
        let resolved = scenario.resolved();
        assert_eq!(parse(&resolved), scenario, "{resolved}");
    }
}

#[test]
fn small_steps_equal_one_big_step() {
    let whole = run(&parse(MIXED));
    for step in [Span::from_millis(37), Span::from_secs(1), Span::from_nanos(1_234_567)] {
        assert!(run_in_steps(&parse(MIXED), step) == whole, "steps of {step} change the run");
    }
}

/// A golden file holds the scenario and, after a line `# summary`, its result, which must be the same in debug and
/// release builds and on every machine. After an intended change: `PENSTOCK_GOLDEN=write cargo test -p penstock-sim`.
#[test]
fn the_golden_summary_stands() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/summary.txt");
    let golden = std::fs::read_to_string(&path).unwrap();
    let (config, expected) = golden.split_once("\n# summary\n").expect("the file has two parts");
    let mut simulation = Simulation::new(&parse(config));
    simulation.advance(Span::MAX).unwrap();
    // The number of events is a property of the simulator and not a result.
    let summary = Summary { events: 0, ..simulation.summary() };
    let actual = serde_json::to_string_pretty(&summary).unwrap();
    if std::env::var_os("PENSTOCK_GOLDEN").is_some_and(|v| v == "write") {
        std::fs::write(&path, format!("{config}\n# summary\n{actual}\n")).unwrap();
        return;
    }
    assert_eq!(actual, expected.trim_end(), "{} says how to write it anew", path.display());
}

/// Connections of pages and of a flood have numbers behind those of the flows, and disciplines hash and draw by them.
/// Flows of any kind that begin after the end of the run, at the end of the list, change nothing for the others.
#[test]
fn flows_after_the_end_of_the_run_change_nothing() {
    const LATE: &str = r#"
[[flows]]
kind = "cbr"
rate = "1Mbit/s"
start = "100s"
class = 3
count = 3
[[flows]]
kind = "web"
per_second = 5
start = "4s"
start_step = "1s"
[[flows]]
kind = "synflood"
per_second = 50
start = "3001ms"
node = "late"
[[flows]]
kind = "bulk"
start = "3001ms"
direction = "reverse"
"#;
    for (name, seed) in penstock_core::registry::NAMES.iter().zip(1..) {
        let node = if seed % 2 == 0 { "node = \"first\"" } else { "" };
        let text = format!(
            r#"
duration = "3s"
seed = {seed}
aqm = "{name}"
[topology]
kind = "dumbbell"
rate = "4Mbit/s"
delay = "20ms"
limit = "40p"
[[flows]]
kind = "bulk"
count = 2
start_spread = "100ms"
{node}
[[flows]]
kind = "web"
per_second = 8
count = 3
[[flows]]
kind = "synflood"
per_second = 20
[[flows]]
kind = "bulk"
start = "3s"
"#
        );
        let of = |text: &str| {
            let mut simulation = Simulation::new(&parse(text));
            while !simulation.advance(Span::MAX).unwrap() {}
            let summary = simulation.summary();
            let drops: Vec<_> = summary.bottlenecks.iter().map(|b| (b.drops_aqm, b.drops_overflow, b.marks)).collect();
            (summary.flows, drops)
        };
        let ((alone, drops), (mut with_late, drops_with_late)) = (of(&text), of(&(text.clone() + LATE)));
        let late = with_late.split_off(alone.len());
        assert!(late.len() == 6 && late.iter().all(|flow| flow.delivered_bytes == 0), "{name}: {late:?}");
        assert_eq!((with_late, drops_with_late), (alone, drops), "{name}");
    }
}
