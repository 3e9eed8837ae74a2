//! How connections start: SEARCH and Careful Resume over whole connections.

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::tcp_trace::STATES;
use penstock_sim::{Column, Scenario, Simulation, Table, TcpTrace};

/// A transfer over 10 Mbit/s and a round trip of 600 ms, 750 kB, with this buffer.
fn satellite(cc: &str, buffer: &str, size: &str, more: &str) -> String {
    format!(
        r#"
        duration = "120s"
        topology = {{ kind = "dumbbell", rate = "10Mbit/s", delay = "300ms", limit = "{buffer}", access_rate = "1Gbit/s" }}
        tcp = {{ cc = {{ {cc} }}, receive_buffer = "100MB", send_buffer = "100MB" {more} }}
        flows = [{{ kind = "transfer", size = "{size}" }}]"#
    )
}

fn run(text: &str) -> Summary {
    let scenario = Scenario::parse(text, "start.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap();
    simulation.summary()
}

fn traced(text: &str, interval: Span) -> Vec<Table> {
    let scenario = Scenario::parse(text, "start.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut simulation = Simulation::new(&scenario);
    let mut trace = TcpTrace::new(&simulation, &[0], interval).unwrap();
    while !trace.advance(&mut simulation, Span::MAX).unwrap() {}
    trace.tables()
}

fn numbers(tables: &[Table], name: &str) -> Vec<u64> {
    let table = tables.iter().find(|table| table.name == "tcp_trace").unwrap();
    match &table.columns.iter().find(|(column, _)| *column == name).unwrap().1 {
        Column::U64(values) => values.clone(),
        Column::U32(values) => values.iter().map(|v| u64::from(*v)).collect(),
        Column::F64(values) => values.iter().map(|v| v.round() as u64).collect(),
    }
}

const FORMS: [&str; 4] = [
    r#"name = "newreno""#,
    r#"name = "newreno", compat = "linux""#,
    r#"name = "cubic""#,
    r#"name = "cubic-linux", hystart = true"#,
];
const RESUME: &str = r#", resume_cwnd = "750kB", resume_rtt = "600ms""#;

/// The theory is in core's tests: the window is 4.9 times what the path holds when SEARCH ends slow start, so that a buffer of eight
/// times that overflows without it and does not with it. The queue drains, and what remains in it is less than a tenth.
#[test]
fn search_ends_slow_start_before_a_large_buffer_is_full() {
    for form in &FORMS[..3] {
        let drops = |search: &str| {
            let summary = run(&satellite(&format!("{form}{search}"), "6MB", "25MB", ""));
            (summary.bottlenecks[0].drops_overflow, summary.flows[0].completion_s.unwrap())
        };
        let ((plain, plain_s), (search, search_s)) = (drops(""), drops(", search = true"));
        assert!(plain > 2000 && search == 0, "{form}: {plain} {search}");
        assert!(search_s < plain_s + 0.1, "{form}: {search_s} {plain_s}");
    }
}

/// draft-chung-ccwg-search §2: no data beyond the window leaves (MUST NOT), also while the window drains. It drains to the 750 kB of
/// the path, and what is still in flight only arrives.
#[test]
fn search_2_no_data_leaves_beyond_a_window_that_drains() {
    for form in &FORMS[..3] {
        let tables = traced(&satellite(&format!("{form}, search = true"), "6MB", "20MB", ""), Span::from_millis(20));
        let (cwnd, flight) = (numbers(&tables, "cwnd_bytes"), numbers(&tables, "in_flight_bytes"));
        let mut drained = false;
        for i in 1..cwnd.len() {
            assert!(flight[i] <= cwnd[i] || flight[i] <= flight[i - 1], "{form}: {} {} at {i}", flight[i], cwnd[i]);
            drained |= cwnd[i] < cwnd[i - 1];
        }
        assert!(drained, "{form}");
    }
}

/// RFC 9959 §3.3: unvalidated packets are paced. Half of what the path holds, 375 kB, leaves within a round trip, at half of the rate
/// of the link: 300 kB make no queue of their own. At once they would wait for 240 ms.
#[test]
fn rfc9959_3_3_a_jump_makes_no_queue() {
    for form in FORMS {
        let (plain, resumed) = (
            run(&satellite(form, "800kB", "300kB", "")),
            run(&satellite(&format!("{form}{RESUME}"), "800kB", "300kB", "")),
        );
        let (before, after) = (plain.flows[0].completion_s.unwrap(), resumed.flows[0].completion_s.unwrap());
        assert!(after + 1.2 < before, "{form}: {after} {before}");
        assert!(
            resumed.bottlenecks[0].queue_delay_ms.max < 20.0,
            "{form}: {:?}",
            resumed.bottlenecks[0].queue_delay_ms
        );
    }
}

/// RFC 9959 §3.5: half of what was validated holds at once (no proportional reduction, §4.5), and does not grow in Safe Retreat. What
/// was saved is four times the path, and the buffer holds 30 kB.
#[test]
fn rfc9959_3_5_safe_retreat_drains_the_path_at_once() {
    let wrong = RESUME.replace("750kB", "3MB");
    for form in FORMS {
        let tables = traced(&satellite(&format!("{form}{wrong}"), "30kB", "4MB", ""), Span::from_millis(10));
        let states: Vec<&str> = numbers(&tables, "state").into_iter().map(|state| STATES[state as usize]).collect();
        let (cwnd, flight) = (numbers(&tables, "cwnd_bytes"), numbers(&tables, "in_flight_bytes"));
        let begin = states.iter().position(|state| *state == "recovery").expect("recovery");
        let end = begin + states[begin..].iter().position(|state| *state != "recovery").expect("its end");
        assert!(cwnd[begin] < cwnd[begin - 1] / 2, "{form}: {} {}", cwnd[begin - 1], cwnd[begin]);
        assert!(cwnd[begin..end].iter().all(|window| *window == cwnd[begin]), "{form}");
        // Until the flight is below the window, it only falls; then it stays there.
        for i in begin + 1..end {
            assert!(flight[i] <= flight[i - 1].max(cwnd[i]), "{form}: {} {}", flight[i - 1], flight[i]);
        }
    }
}

/// What was saved on another path changes nothing: on a path of 10 ms, where the saved round trip was 600, and on one of 1500 ms,
/// where it was 100.
#[test]
fn a_round_trip_of_another_path_leaves_the_control_as_it_is() {
    for (delay, saved) in [("5ms", "600ms"), ("750ms", "100ms")] {
        for form in FORMS {
            let text = |more: &str| satellite(&format!("{form}{more}"), "800kB", "2MB", "").replace("300ms", delay);
            let resume = RESUME.replace("600ms", saved);
            assert_eq!(run(&text("")).flows, run(&text(&resume)).flows, "{form}: {delay}");
        }
    }
}

/// An application that never fills the first window, 10 kB every 700 ms, never jumps.
#[test]
fn an_application_that_sends_little_never_jumps() {
    for form in FORMS {
        let text = |more: &str| {
            let flow = r#"kind = "http", connection = "same", size = "10kB", idle = "700ms""#;
            satellite(&format!("{form}{more}"), "4MB", "1MB", "").replace(r#"kind = "transfer", size = "1MB""#, flow)
        };
        assert_eq!(run(&text("")).bottlenecks, run(&text(RESUME)).bottlenecks, "{form}");
    }
}

/// Whatever the path does, the transfer ends, twice in the same way: a buffer of one packet, losses, reordering, marks, delays that
/// vary, and hosts without SACK, timestamps or proportional reduction.
#[test]
fn a_transfer_ends_on_any_path() {
    let paths = [
        ("\"1p\"", "", ""),
        ("\"4MB\", loss = 0.02", "", ""),
        ("\"4MB\", reorder = { share = 0.1, by = \"40ms\" }", "", ""),
        ("\"4MB\", jitter = { by = \"100ms\" }", "", ""),
        ("\"1MB\"", ", sack = false", ""),
        ("\"1MB\"", ", timestamps = false, prr = false", ""),
        ("\"1MB\"", ", ecn = true, rack = true", "aqm = \"codel\""),
    ];
    for (limit, tcp, aqm) in paths {
        for form in FORMS {
            for start in [", search = true".to_owned(), RESUME.to_owned(), format!(", search = true{RESUME}")] {
                let text = satellite(&format!("{form}{start}"), "4MB", "300kB", tcp);
                let text = text.replace("\"4MB\"", limit).replace("300ms", "100ms");
                let text = format!("{aqm}\n{}", text.replace("\"120s\"", "\"400s\""));
                let summary = run(&text);
                assert!(summary.flows[0].completion_s.is_some(), "{form}{start}: {limit}{tcp}{aqm}");
                assert_eq!(summary, run(&text), "{form}{start}: {limit}{tcp}{aqm}");
            }
        }
    }
}

/// A scenario that is written with all defaults reads as the same one, with and without a start: TOML has no null.
#[test]
fn a_start_survives_writing() {
    for form in FORMS {
        for start in ["", RESUME, ", search = true"] {
            let scenario =
                Scenario::parse(&satellite(&format!("{form}{start}"), "1MB", "1MB", ""), "start.toml").unwrap();
            let again =
                Scenario::parse(&scenario.resolved(), "again.toml").unwrap_or_else(|e| panic!("{form}{start}: {e}"));
            assert_eq!(again.flows[0].tcp.cc, scenario.flows[0].tcp.cc, "{form}{start}");
        }
    }
}
