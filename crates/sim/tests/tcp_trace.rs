//! Windows over time, in cases where the result can be computed by hand.

use penstock_core::units::Span;
use penstock_sim::tcp_trace::{NONE, STATES};
use penstock_sim::{Column, Scenario, Simulation, Table, TcpTrace};

/// One NewReno flow over 100 Mbit/s and a round trip of 100 ms, an ACK per segment, segments of 1000 bytes.
const SLOW_START: &str = r#"
    duration = "1s"
    topology = { kind = "dumbbell", rate = "100Mbit/s", delay = "50ms", limit = "1000p", access_rate = "10Gbit/s" }
    tcp = { cc = "newreno", mss = "1000B", initial_window = 10, ack_every_segment = true }
    flows = [{ kind = "bulk" }, { kind = "cbr", rate = "8kbit/s" }]"#;

fn run(text: &str, flows: &[u32], interval: Span) -> (Vec<Table>, String) {
    let scenario = Scenario::parse(text, "trace.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut simulation = Simulation::new(&scenario);
    let mut trace = TcpTrace::new(&simulation, flows, interval).unwrap();
    while !trace.advance(&mut simulation, Span::from_millis(37)).unwrap() {}
    let summary = serde_json::to_string(&simulation.summary()).unwrap();
    (trace.tables(), summary)
}

fn column<'a>(tables: &'a [Table], table: &str, column: &str) -> &'a Column {
    let table = tables.iter().find(|t| t.name == table).unwrap();
    &table.columns.iter().find(|(name, _)| *name == column).unwrap().1
}

fn numbers(tables: &[Table], table: &str, name: &str) -> Vec<u64> {
    match column(tables, table, name) {
        Column::U64(values) => values.clone(),
        Column::U32(values) => values.iter().map(|v| u64::from(*v)).collect(),
        Column::F64(values) => values.iter().map(|v| v.round() as u64).collect(),
    }
}

/// The handshake takes 100 ms and some transmission times; from then on every round trip doubles the window of ten
/// segments. A sample halfway through a round trip sees the windows 10, 20, 40, 80, 160.
#[test]
fn slow_start_doubles_each_round_trip() {
    let (tables, _) = run(SLOW_START, &[], Span::from_millis(50));
    let cwnd = numbers(&tables, "tcp_trace", "cwnd_bytes");
    let at = |ms: usize| cwnd[ms / 50 - 1];
    assert_eq!([150, 250, 350, 450, 550].map(at), [10_000, 20_000, 40_000, 80_000, 160_000]);
    let state = numbers(&tables, "tcp_trace", "state");
    let named = |ms: usize| STATES[state[ms / 50 - 1] as usize];
    assert_eq!([50, 150, 550].map(named), ["closed", "slow_start", "slow_start"]);
    assert!(numbers(&tables, "tcp_trace", "flow").iter().all(|flow| *flow == 0), "the other has no connection");
    assert_eq!(numbers(&tables, "tcp_trace", "in_flight_bytes")[150 / 50 - 1], 10_000, "all of the first window");
    assert_eq!(numbers(&tables, "tcp_trace", "srtt_ms")[150 / 50 - 1], 100);
    assert_eq!(numbers(&tables, "tcp_trace", "ssthresh_bytes")[150 / 50 - 1], NONE);
    assert_eq!(numbers(&tables, "tcp_trace", "pacing_bps")[150 / 50 - 1], NONE);
}

/// A window overflows the queue: recovery is visible, the threshold is half of the flight, and then growth is linear.
#[test]
fn a_loss_is_seen_as_recovery_and_half_the_window() {
    let text = SLOW_START.replace("1000p", "100p").replace("\"1s\"", "\"10s\"").replace("100Mbit", "10Mbit");
    let (tables, _) = run(&text, &[0], Span::from_millis(10));
    let state = numbers(&tables, "tcp_trace", "state");
    let (cwnd, ssthresh) =
        (numbers(&tables, "tcp_trace", "cwnd_bytes"), numbers(&tables, "tcp_trace", "ssthresh_bytes"));
    let recovery = state.iter().position(|s| *s == 3).expect("recovery");
    assert_eq!(ssthresh[recovery - 1], NONE);
    let after = recovery + state[recovery..].iter().position(|s| *s != 3).expect("its end");
    // The flight is the window, and at most two segments which limited transmit allows beyond it (RFC 3042).
    assert!((cwnd[recovery]..=cwnd[recovery] + 2000).contains(&(2 * ssthresh[recovery])), "half of the flight");
    assert!(cwnd[after].abs_diff(ssthresh[after]) <= 1000 && STATES[state[after] as usize] == "congestion_avoidance");
    let drops = numbers(&tables, "queue_trace", "dropped_packets");
    assert_eq!(drops[recovery - 20], 0);
    assert!(drops[recovery] > 0, "the drop comes before the recovery");
    assert!(drops.is_sorted());
}

#[test]
fn a_run_that_is_traced_has_the_same_results() {
    let text = SLOW_START.replace("\"1s\"", "\"5s\"").replace("100Mbit", "5Mbit");
    let scenario = Scenario::parse(&text, "trace.toml").unwrap();
    let mut plain = Simulation::new(&scenario);
    plain.advance(Span::MAX).unwrap();
    let (_, traced) = run(&text, &[0], Span::from_millis(3));
    assert_eq!(serde_json::to_string(&plain.summary()).unwrap(), traced);
}

#[test]
fn what_cannot_be_traced_is_refused() {
    let scenario = Scenario::parse(SLOW_START, "trace.toml").unwrap();
    let simulation = Simulation::new(&scenario);
    let refused = |flows: &[u32], interval| TcpTrace::new(&simulation, flows, interval).unwrap_err().to_string();
    assert!(refused(&[2], Span::from_millis(1)).contains("no flow 2; they are 0 to 1"));
    assert!(refused(&[1], Span::from_millis(1)).contains("flow 1 is cbr"));
    assert!(refused(&[0], Span::ZERO).contains("interval"));
    assert!(refused(&[0], Span::from_nanos(1)).contains("at most"));
}

/// DCTCP (RFC 8257) and Prague need ECN: a scenario that names them without `ecn` gets it, and `ecn = false` is
/// refused.
#[test]
fn controls_that_count_marks_bring_ecn_with_them() {
    let text = |tcp: &str| SLOW_START.replace("cc = \"newreno\"", tcp);
    for cc in ["dctcp", "prague"] {
        let scenario = Scenario::parse(&text(&format!("cc = \"{cc}\"")), "ecn.toml").unwrap();
        assert!(scenario.flows[0].tcp.ecn, "{cc}");
        assert_eq!(Scenario::parse(&scenario.resolved(), "resolved.toml").unwrap().flows, scenario.flows);
        let refused = Scenario::parse(&text(&format!("ecn = false, cc = \"{cc}\"")), "ecn.toml").unwrap_err();
        assert!(refused.to_string().contains(&format!("ecn: {cc} goes by marks")), "{refused}");
    }
    assert!(!Scenario::parse(SLOW_START, "ecn.toml").unwrap().flows[0].tcp.ecn);
}
