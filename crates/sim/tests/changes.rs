//! Links that change during a run, and floods of SYNs.

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Column, Scenario, Simulation};

fn simulate(text: &str) -> Simulation {
    let scenario = Scenario::parse(text, "changes.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let again = Scenario::parse(&scenario.resolved(), "resolved.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((&scenario.changes, &scenario.flows), (&again.changes, &again.flows), "the resolved form says the same");
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap();
    simulation
}

fn run(text: &str) -> Summary {
    simulate(text).summary()
}

/// Datagrams of 1250 B with headers at 12 Mbit/s into 10 Mbit/s: the link is always busy.
fn busy(changes: &str) -> String {
    format!(
        r#"
duration = "8s"
[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "20ms"
limit = "20p"
[[flows]]
kind = "cbr"
rate = "12Mbit/s"
packet_size = "1222B"
{changes}"#
    )
}

/// Returns a column of the table of queues by seconds.
fn column(simulation: &Simulation, name: &str) -> Vec<f64> {
    let tables = simulation.tables();
    let table = tables.iter().find(|t| t.name == "queue_seconds").unwrap();
    let (_, column) = table.columns.iter().find(|(column, _)| *column == name).unwrap();
    let Column::F64(values) = column else { panic!("{name} is a float") };
    values.clone()
}

/// Returns the rate in Mbit/s at which the bottleneck sent in each second.
fn by_second(simulation: &Simulation) -> Vec<f64> {
    column(simulation, "throughput_bps").iter().map(|bps| (bps / 1e5).round() / 10.0).collect()
}

/// Little's law: the number waiting is the rate of departures times the delay. There are 20 packets of 1250 B, except
/// between a departure and the next arrival: each packet waits for 19 or 20 transmissions of 1 ms. At half the rate it
/// waits twice as long.
#[test]
fn the_mean_queue_is_its_rate_times_its_delay() {
    let simulation = simulate(&busy("[[changes]]\nlink = \"bottleneck\"\nat = \"4s\"\nrate = \"5Mbit/s\"\n"));
    let (bytes, delay_ms) = (column(&simulation, "queue_bytes_mean"), column(&simulation, "queue_delay_ms_mean"));
    for (second, rate) in [(2, 10e6), (3, 10e6), (6, 5e6), (7, 5e6)] {
        let (bytes, delay_ms) = (bytes[second], delay_ms[second]);
        assert!((19.0 * 1250.0..=20.0 * 1250.0).contains(&bytes), "{bytes} B in second {second}");
        let little = rate / 8.0 * delay_ms / 1e3;
        assert!((little / bytes - 1.0).abs() < 0.01, "{little} B by Little's law, {bytes} B in second {second}");
    }
}

/// The rate is halved in every second pair of seconds. The first packet needs time on its access link, hence about
/// 9.99.
#[test]
fn a_busy_link_sends_what_its_rate_of_the_moment_allows() {
    let changes = r#"
[[changes]]
link = "bottleneck"
at = "2s"
every = "4s"
rate = "5Mbit/s"
[[changes]]
link = "bottleneck"
at = "4s"
every = "4s"
rate = "10Mbit/s"
"#;
    let simulation = simulate(&busy(changes));
    assert_eq!(by_second(&simulation), [10.0, 10.0, 5.0, 5.0, 10.0, 10.0, 5.0, 5.0]);
    let utilization = simulation.summary().bottlenecks[0].utilization;
    assert!((0.999..=1.001).contains(&utilization), "of what it could have sent: {utilization}");
}

#[test]
fn only_the_named_direction_changes() {
    let changes = "[[changes]]\nlink = \"bottleneck\"\nat = \"1s\"\nrate = \"1Mbit/s\"\ndirection = \"reverse\"\n";
    assert_eq!(by_second(&simulate(&busy(changes))), [10.0; 8]);
}

#[test]
fn a_wire_that_begins_to_lose_loses_from_then_on() {
    let changes = "[[changes]]\nlink = \"bottleneck\"\nat = \"4s\"\nloss = 0.5\ndirection = \"forward\"\n";
    let summary = run(&busy(changes));
    let (lost, sent) = (summary.bottlenecks[0].lost as f64, summary.bottlenecks[0].packets_all as f64);
    // Half of the packets of the second half are lost; the binomial count with n = 4000 has a standard deviation of 32,
    // and the bound is five of them.
    assert!((lost - sent / 4.0).abs() < 160.0, "{lost} of {sent}");
}

const TRANSFER: &str = r#"
duration = "20s"
[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "100ms"
limit = "1000p"
[tcp]
mss = "1000B"
receive_buffer = "200kB"
[[flows]]
kind = "bulk"
"#;

/// If packets overtook each other, the receiver would report gaps and the sender would retransmit.
#[test]
fn packets_do_not_overtake_each_other_when_a_path_becomes_shorter() {
    let changes = "[[changes]]\nlink = \"bottleneck\"\nat = \"5s\"\nevery = \"2s\"\ndelay = \"10ms\"\n\
                   [[changes]]\nlink = \"bottleneck\"\nat = \"6s\"\nevery = \"2s\"\ndelay = \"100ms\"\n";
    let summary = run(&format!("{TRANSFER}{changes}"));
    assert_eq!(summary.flows[0].retransmits, 0);
    // The base round trip times are 200 ms before the change and 20 ms after it.
    assert!(summary.flows[0].rtt_ms.min < 25.0, "{:?}", summary.flows[0].rtt_ms.min);
    let before = run(TRANSFER);
    assert!(summary.flows[0].delivered_bytes > before.flows[0].delivered_bytes, "a shorter path lets more through");
}

#[test]
fn what_changes_does_not_depend_on_the_steps_of_a_run() {
    let changes = "[[changes]]\nlink = \"bottleneck\"\nat = \"1s\"\nevery = \"300ms\"\nrate = \"3Mbit/s\"\n\
                   [[changes]]\nlink = \"bottleneck\"\nat = \"1s\"\nevery = \"700ms\"\nrate = \"9Mbit/s\"\ndelay = \"30ms\"\n";
    let text = format!("{TRANSFER}{changes}");
    let scenario = Scenario::parse(&text, "changes.toml").unwrap();
    let mut simulation = Simulation::new(&scenario);
    while !simulation.advance(Span::from_millis(17)).unwrap() {}
    let whole = serde_json::to_string(&run(&text)).unwrap();
    assert_eq!(serde_json::to_string(&simulation.summary()).unwrap(), whole);
}

/// 100 SYNs of 52 B (MSS, SACK-permitted and scale, 4 B each) are sent in 10 s, and each is answered once in the other
/// direction.
#[test]
fn a_flood_sends_syns_that_are_answered_and_go_no_further() {
    let text = r#"
duration = "10s"
[topology]
kind = "graph"
links = [{ a = "x", b = "y", rate = "1Mbit/s", delay = "10ms", aqm = { name = "droptail" }, reverse_aqm = { name = "droptail" } }]
[[flows]]
kind = "synflood"
per_second = 10
from = "x"
to = "y"
"#;
    let summary = run(text);
    let sent = |i: usize| (summary.bottlenecks[i].packets_all, summary.bottlenecks[i].throughput_bps);
    assert_eq!(sent(0), (100, 100.0 * 52.0 * 8.0 / 10.0));
    assert_eq!(sent(1), sent(0));
    assert_eq!((summary.flows[0].kind, summary.flows[0].delivered_bytes), ("synflood", 0));
}
