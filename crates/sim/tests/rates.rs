//! What every rate in a result is: bits or bytes of a known time, over that time. Random networks and traffic.

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Column, Scenario, Simulation, Table};
use proptest::prelude::*;

fn run(text: &str) -> (Summary, Vec<Table>) {
    let scenario = Scenario::parse(text, "rates.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap_or_else(|e| panic!("{e}\n{text}"));
    (simulation.summary(), simulation.tables())
}

fn numbers(tables: &[Table], table: &str, column: &str) -> Vec<f64> {
    let table = tables.iter().find(|t| t.name == table).expect("the table exists");
    match &table.columns.iter().find(|(name, _)| *name == column).expect("the column exists").1 {
        Column::F64(values) => values.clone(),
        Column::U32(values) => values.iter().map(|v| f64::from(*v)).collect(),
        Column::U64(values) => values.iter().map(|v| *v as f64).collect(),
    }
}

/// Sums rate times width over the rows of each number in `of`; a row begins where the one before it ends.
fn totals(tables: &[Table], table: &str, of: &str, rate: &str, count: usize) -> Vec<f64> {
    let mut total = vec![0.0; count];
    let (times, ids, rates) = (numbers(tables, table, "t_s"), numbers(tables, table, of), numbers(tables, table, rate));
    for ((t, id), rate) in times.iter().zip(ids).zip(rates) {
        let begin = t.ceil() - 1.0;
        total[id as usize] += rate * (t - begin);
    }
    total
}

/// A flow that never began has carried nothing in no time: its goodput is missing, and the fairness is that of the others.
#[test]
fn a_flow_that_never_began_has_no_goodput() {
    let flows = "[[flows]]\nkind = \"bulk\"\n[[flows]]\nkind = \"bulk\"\nstart = \"2s\"\n[[flows]]\nkind = \"voip\"\nstart = \"9s\"";
    let link = "kind = \"dumbbell\"\nrate = \"4Mbit/s\"\ndelay = \"10ms\"\nlimit = \"20p\"";
    let (summary, _) = run(&format!("duration = \"2s\"\naqm = \"droptail\"\n[topology]\n{link}\n{flows}"));
    let told = serde_json::to_value(&summary).unwrap();
    let goodput = |flow: usize| &told["flows"][flow]["goodput_bps"];
    assert!(goodput(0).as_f64().unwrap() > 1e6 && goodput(1).is_null() && goodput(2).is_null(), "{told}");
    assert_eq!(summary.jain.overall, 1.0);
    assert_eq!(summary.clone(), summary, "missing numbers are equal");
}

fn traffic(kind: u8, start: u16, stop: Option<u16>) -> String {
    let what = match kind % 6 {
        0 => r#"kind = "bulk", count = 2, start_spread = "100ms""#,
        1 => r#"kind = "cbr", rate = "700kbit/s", packet_size = "1000B""#,
        2 => r#"kind = "onoff", rate = "3Mbit/s", mean_on = "200ms", mean_off = "300ms", packet_size = "500B""#,
        3 => r#"kind = "web", per_second = 5, mean_size = "30kB""#,
        4 => r#"kind = "http", size = "40kB", idle = "100ms""#,
        _ => r#"kind = "transfer", size = "100kB""#,
    };
    let stop = stop.filter(|_| kind % 6 != 5).map(|after| format!(", stop = \"{}ms\"", start + after));
    format!("{{ {what}, start = \"{start}ms\"{} }},\n", stop.unwrap_or_default())
}

fn scenario() -> impl Strategy<Value = (String, f64)> {
    let flow = (any::<u8>(), 0u16..2500, prop::option::of(1u16..2500));
    let flows = prop::collection::vec(flow, 1..5)
        .prop_map(|flows| flows.into_iter().map(|(kind, start, stop)| traffic(kind, start, stop)).collect::<String>());
    let aqm = prop::sample::select(vec!["droptail", "red", "codel", "pie", "fq-codel", "sfq", "pink"]);
    let control = prop::sample::select(vec!["newreno", "cubic", "bbr", "dctcp"]);
    let rate = prop_oneof![30u32..300, 300u32..20_000].prop_map(|k| k * 1000 + k % 7);
    let change = prop::option::of((100u16..4000, 50u32..9000, any::<bool>())); // a step, or at random times
    (rate, 1u16..200, 2u16..80, 1000u16..6000, (aqm, control), flows, change, 0u8..3, any::<u32>()).prop_map(
        |(rate, delay, limit, duration, (aqm, control), flows, change, loss, seed)| {
            let most = change.map_or(rate, |(_, kbit, _)| rate.max(kbit * 1000));
            let changes = change.map_or(String::new(), |(at, kbit, step)| {
                let course = match step {
                    true => format!("at = \"{at}ms\"\nrate = \"{kbit}kbit/s\""),
                    false => format!(
                        "states = [{{ lasts = \"{at}ms\", rate = \"{rate}bit/s\" }}, {{ lasts = \"100ms\", rate = \"{kbit}kbit/s\" }}]"
                    ),
                };
                format!("[[changes]]\nlink = \"bottleneck\"\n{course}\n")
            });
            let ecn = control == "dctcp";
            let text = format!(
                r#"
                duration = "{duration}ms"
                seed = {seed}
                topology = {{ kind = "dumbbell", rate = "{rate}bit/s", delay = "{delay}ms", limit = "{limit}p", access_delay = "1ms", loss = 0.0{loss} }}
                aqm = {{ name = "{aqm}" }}
                tcp = {{ cc = "{control}", ecn = {ecn} }}
                flows = [{flows}]
                {changes}"#
            );
            (text, f64::from(most))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn no_rate_exceeds_that_of_the_link((text, rate) in scenario()) {
        let (summary, tables) = run(&text);
        let link = &summary.bottlenecks[0];
        prop_assert!(link.utilization <= 1.0, "{link:?}\n{text}");
        prop_assert!(link.throughput_bps <= rate && link.goodput_bps <= link.throughput_bps, "{link:?}\n{text}");
        for throughput in numbers(&tables, "queue_seconds", "throughput_bps") {
            prop_assert!(throughput <= rate, "{throughput} at {rate}\n{text}");
        }
        for flow in &summary.flows {
            let never_began = flow.start_s >= summary.duration_s;
            prop_assert!(never_began || flow.goodput_bps <= rate, "{flow:?}\n{text}");
        }
    }

    #[test]
    fn the_rows_add_up_to_the_totals((text, _) in scenario()) {
        let (summary, tables) = run(&text);
        let sent = summary.bottlenecks[0].throughput_bps * summary.duration_s;
        let rows = totals(&tables, "queue_seconds", "queue", "throughput_bps", 1)[0];
        prop_assert!((sent - rows).abs() < 1e-3, "{sent} bits in all, {rows} in rows\n{text}");
        let flows = totals(&tables, "flow_seconds", "flow", "goodput_bps", summary.flows.len());
        for (flow, rows) in summary.flows.iter().zip(flows) {
            let delivered = flow.delivered_bytes as f64 * 8.0;
            prop_assert!((delivered - rows).abs() < 1e-3, "{rows} bits in rows\n{flow:?}\n{text}");
        }
        let last = numbers(&tables, "queue_seconds", "t_s").pop();
        prop_assert_eq!(last, Some(summary.duration_s), "the part of a second at the end has its row");
    }
}

/// At 186,004 bit/s the division of a packet's time leaves a part of a nanosecond, which must not be forgotten when the
/// rate changes while the packet is transmitted: the last second had 186,004.000139 bit/s.
#[test]
fn a_change_of_the_rate_forgets_nothing_of_the_packet_before_it() {
    let steps = (1960..1995).map(|at| (186_004.0, 1995, format!("at = \"{at}ms\"\nrate = \"50kbit/s\"")));
    let walk = "states = [{ lasts = \"70ms\", rate = \"186001bit/s\" }, { lasts = \"30ms\", rate = \"186002bit/s\" }]";
    for (rate, duration, course) in steps.chain([(186_002.0, 20_000, walk.to_owned())]) {
        let (_, tables) = run(&format!(
            r#"
            duration = "{duration}ms"
            topology = {{ kind = "dumbbell", rate = "186004bit/s", delay = "61ms", limit = "20p" }}
            flows = [{{ kind = "cbr", rate = "1Mbit/s", packet_size = "1000B" }}]
            [[changes]]
            link = "bottleneck"
            {course}"#
        ));
        let rows = numbers(&tables, "queue_seconds", "throughput_bps");
        assert!(rows.iter().all(|row| *row <= rate && *row > 0.95 * rate), "{rows:?} at {rate}");
    }
}

/// 1 Mbit/s, and ten times as much offered for a second: the queue of 5 MB empties after 8.75 s more... until then the
/// flow is active, and its goodput is the payload's share of the link: 972 of 1000 bytes.
#[test]
fn a_stopped_flow_is_active_until_its_last_packet() {
    let (summary, _) = run(r#"
        duration = "20s"
        topology = { kind = "dumbbell", rate = "1Mbit/s", delay = "1ms", limit = "5MB", access_delay = "0ms" }
        flows = [{ kind = "cbr", rate = "10Mbit/s", packet_size = "1000B", stop = "1s" }]"#);
    let flow = &summary.flows[0];
    assert!((flow.goodput_bps / 972_000.0 - 1.0).abs() < 0.01, "{flow:?}");
    assert_eq!(flow.completion_s, None, "nobody knows how much a sender of datagrams would have sent");
}

/// Slow start at 1 Mbit/s fills 400 kB within a second or two; after the stop they take 3.2 s to be delivered.
#[test]
fn a_stopped_stream_is_complete_when_all_it_sent_is_delivered() {
    let (summary, _) = run(r#"
        duration = "20s"
        topology = { kind = "dumbbell", rate = "1Mbit/s", delay = "10ms", limit = "400kB" }
        tcp = { cc = "newreno" }
        flows = [{ kind = "bulk", stop = "1s" }, { kind = "bulk", start = "14s", stop = "19.9s" }, { kind = "bulk", start = "15s" }, { kind = "bulk", start = "19s", stop = "19.1s" }]"#);
    let [first, cut, endless, late] = summary.flows.as_slice() else { panic!("four flows") };
    let took = first.completion_s.expect("it has delivered all");
    assert!(took > 1.0, "{first:?}");
    // The segments arrive one after another, 1448 of 1500 bytes of each; the handshake takes 0.04 s.
    let expected = first.delivered_bytes as f64 * 8.0 / 1e6 * 1500.0 / 1448.0;
    assert!((took - expected).abs() < 0.1, "{took} s, {expected} s on the wire");
    assert!((first.goodput_bps - first.delivered_bytes as f64 * 8.0 / took).abs() < 1.0, "{first:?}");
    assert!(cut.delivered_bytes > 0 && cut.completion_s.is_none(), "cut by the end of the run: {cut:?}");
    assert_eq!(endless.completion_s, None, "has no end");
    assert_eq!((late.delivered_bytes, late.completion_s), (0, None), "was stopped before it was connected");
}

/// A packet of 1250 B takes 100 ms at 100 kbit/s. At 2.55 s the 26th is half sent. It was counted whole before, which
/// made a utilization of 1.02, and 1.08 in a second.
#[test]
fn a_packet_counts_over_the_time_it_is_sent() {
    let (summary, tables) = run(r#"
        duration = "2.55s"
        topology = { kind = "dumbbell", rate = "100kbit/s", delay = "1ms", limit = "100p", access_delay = "0ms", access_rate = "1Tbit/s" }
        flows = [{ kind = "cbr", rate = "200kbit/s", packet_size = "1222B" }]"#);
    let link = &summary.bottlenecks[0];
    assert_eq!((link.packets, link.utilization.round()), (26, 1.0));
    assert!((link.throughput_bps - 100_000.0).abs() < 1e-3 * 100_000.0 / 2.55, "{link:?}");
    let rows = numbers(&tables, "queue_seconds", "throughput_bps");
    assert_eq!(numbers(&tables, "queue_seconds", "t_s"), [1.0, 2.0, 2.55]);
    assert!(rows.iter().all(|row| (row - 100_000.0).abs() < 0.1 && *row <= 100_000.0), "{rows:?}");
}

/// 8 Mbit/s arrive at a shaper of 4 Mbit/s before a link of 10 Mbit/s for one second: 973 packets of 1028 B take 2.056 ms
/// each. When no packet arrives any more, nothing but its timer makes the link ask again; the backlog leaves at 4 Mbit/s.
#[test]
fn a_shaper_sends_at_its_rate_before_an_idle_link() {
    let (summary, tables) = run(r#"
        duration = "5s"
        topology = { kind = "dumbbell", rate = "10Mbit/s", delay = "10ms", limit = "1000p" }
        aqm = { name = "cake", bandwidth = "4Mbit/s" }
        flows = [{ kind = "cbr", rate = "8Mbit/s", packet_size = "1000B", stop = "1s" }]"#);
    let link = &summary.bottlenecks[0];
    let rows = numbers(&tables, "queue_seconds", "throughput_bps");
    assert!((rows[0] / 4e6 - 1.0).abs() < 0.003, "{rows:?}");
    assert!(rows[1] > 1e6 && rows[1] < 4.001e6 && rows[4] == 0.0, "the backlog leaves: {rows:?}");
    let arrived = link.packets_all + link.drops_aqm + link.drops_overflow;
    assert!((972..=974).contains(&arrived), "all are sent or dropped: {link:?}");
}
