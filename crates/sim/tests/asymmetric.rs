//! Links with another rate and delay in the reverse direction.

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Column, Scenario, Simulation};

fn parse(text: &str) -> Scenario {
    let scenario = Scenario::parse(text, "asymmetric.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let again = Scenario::parse(&scenario.resolved(), "resolved.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scenario.links, again.links, "the resolved form says the same");
    scenario
}

fn simulate(text: &str) -> Simulation {
    let mut simulation = Simulation::new(&parse(text));
    simulation.advance(Span::MAX).unwrap();
    simulation
}

fn run(text: &str) -> Summary {
    simulate(text).summary()
}

fn dumbbell(link: &str, flows: &str) -> String {
    format!(
        "duration = \"20s\"\ntopology = {{ kind = \"dumbbell\", limit = \"20p\", reverse_limit = \"20p\", {link} }}\n{flows}"
    )
}

/// Datagrams have no way back, so the two directions are two links with one direction each: what arrives, how late and
/// how much is lost is the same in every byte.
#[test]
fn both_directions_are_two_links_with_one_direction_each() {
    let flows = |direction: &str| {
        format!(
            "{{ kind = \"voip\", {direction} }}, {{ kind = \"onoff\", rate = \"2Mbit/s\", mean_on = \"1s\", mean_off = \"1s\", {direction} }}"
        )
    };
    let (there, back) = (flows("direction = \"forward\""), flows("direction = \"reverse\""));
    let (up, down) = ("rate = \"1Mbit/s\", delay = \"7ms\"", "rate = \"1500kbit/s\", delay = \"19ms\"");
    let both = "rate = \"1Mbit/s\", reverse_rate = \"1500kbit/s\", delay = \"7ms\", reverse_delay = \"19ms\"";
    // All groups are there in each run, so that random streams are the same; those of no interest begin too late.
    let never = |flows: &str| flows.replace("kind", "start = \"19999999us\", kind");
    let lines =
        |link: &str, there: &str, back: &str| run(&dumbbell(link, &format!("flows = [{there}, {back}]\n"))).flows;
    let found = lines(both, &there, &back);
    let (one, other) = (lines(up, &there, &never(&back)), lines(down, &never(&there), &back));
    assert_eq!(format!("{:?}", &found[..2]), format!("{:?}", &one[..2]));
    assert_eq!(format!("{:?}", &found[2..]), format!("{:?}", &other[2..]));
    assert!(found.iter().all(|flow| flow.delivered_bytes > 0));
}

/// RFC 3449 section 2.1: a way back that carries fewer ACKs than segments go there limits the sender to one segment for
/// each ACK. 100 kbit/s are 240.4 ACKs of 52 bytes in a second, each for 1448 bytes: 2.785 Mbit/s of the 10. No ACK is
/// dropped, because at most 100 segments are on the way.
#[test]
fn a_slow_way_back_gives_the_sender_its_clock() {
    let found = run("duration = \"60s\"\n\
         topology = { kind = \"dumbbell\", rate = \"10Mbit/s\", reverse_rate = \"100kbit/s\", delay = \"10ms\", limit = \"1000p\" }\n\
         tcp = { cc = \"newreno\", ack_every_segment = true, receive_buffer = \"144800B\" }\n\
         flows = [{ kind = \"bulk\" }]\n");
    let goodput = found.flows[0].goodput_bps;
    let clock = 1448.0 * 8.0 * 100e3 / (52.0 * 8.0);
    assert!((goodput / clock - 1.0).abs() < 0.01, "{goodput} beside {clock}");
    assert!(found.bottlenecks[0].utilization < 0.3, "{:?}", found.bottlenecks[0]);
}

/// The round trip of a flow with one segment on the way is that of the segment and its ACK: two delays, the segment's transmission at one rate and the
/// ACK's at the other, and those on four access links.
#[test]
fn a_round_trip_has_the_delay_and_the_rate_of_each_direction() {
    let found = run(&dumbbell(
        "rate = \"12Mbit/s\", reverse_rate = \"416kbit/s\", delay = \"3ms\", reverse_delay = \"11ms\", access_rate = \"1Tbit/s\"",
        "tcp = { ack_every_segment = true, receive_buffer = \"1448B\" }\nflows = [{ kind = \"bulk\" }]\n",
    ));
    // 1500 bytes at 12 Mbit/s take 1 ms, and 52 at 416 kbit/s as well.
    let usual = found.flows[0].rtt_ms.p50;
    assert!((usual / 16.0 - 1.0).abs() < 0.02, "{usual}"); // round trips are counted in classes of 1.6 %
}

/// The path of a flow is the shortest in its direction, and its ACKs take the same links back.
#[test]
fn the_shortest_path_counts_the_delay_of_its_direction() {
    let text = r#"
        duration = "1s"
        flows = [{ kind = "bulk", from = "a", to = "b" }, { kind = "bulk", from = "b", to = "a" }]
        [topology]
        kind = "graph"
        links = [
          { name = "one", a = "a", b = "b", rate = "1Mbit/s", delay = "1ms", reverse_delay = "9ms" },
          { name = "two", a = "a", b = "b", rate = "1Mbit/s", delay = "2ms" },
        ]
    "#;
    let simulation = Simulation::new(&parse(text));
    let paths: Vec<Vec<(usize, bool)>> =
        simulation.paths().map(|path| path.iter().map(|step| (step.link, step.reverse)).collect()).collect();
    assert_eq!(paths, [vec![(0, false)], vec![(1, true)]]);
}

/// A step of one direction leaves the other; the table of changes begins with what each direction has.
#[test]
fn a_change_of_one_direction_leaves_the_other() {
    let text = dumbbell(
        "rate = \"2Mbit/s\", reverse_rate = \"8Mbit/s\", delay = \"3ms\", reverse_delay = \"5ms\"",
        "flows = [{ kind = \"bulk\" }]\n[[changes]]\nlink = \"bottleneck\"\nat = \"1s\"\nloss = 0.1\n",
    );
    let simulation = simulate(&text);
    let tables = simulation.tables();
    let changes = tables.iter().find(|table| table.name == "link_changes").expect("a run with series");
    let column =
        |name: &str| changes.columns.iter().find(|(found, _)| *found == name).map(|(_, column)| column.clone());
    let rates = vec![2_000_000, 2_000_000, 8_000_000, 8_000_000];
    assert_eq!(column("rate_bps"), Some(Column::U64(rates)));
    assert_eq!(column("delay_s"), Some(Column::F64(vec![0.003, 0.003, 0.005, 0.005])));
}

/// Traffic with `load` is measured by the slowest link in its direction.
#[test]
fn a_load_is_that_of_its_direction() {
    let of = |direction: &str| {
        let flows = format!("flows = [{{ kind = \"web\", load = 0.5, direction = \"{direction}\" }}]\n");
        parse(&dumbbell("rate = \"1Mbit/s\", reverse_rate = \"10Mbit/s\", delay = \"1ms\"", &flows)).flows[0]
            .traffic
            .clone()
    };
    let shown = |direction| format!("{:?}", of(direction));
    assert_ne!(shown("forward"), shown("reverse"));
}

#[test]
fn a_mistake_stands_at_its_key() {
    for (keys, place, words) in [
        ("reverse_rate = \"2Tbit/s\"", ":2:", "reverse_rate is 2000Gbit/s"),
        ("reverse_delay = \"2h\"", ":2:", "reverse_delay is 7200s"),
    ] {
        let text = dumbbell(&format!("rate = \"1Mbit/s\", delay = \"1ms\", {keys}"), "flows = [{ kind = \"bulk\" }]\n");
        let mistake = Scenario::parse(&text, "asymmetric.toml").unwrap_err().to_string();
        assert!(mistake.contains(place) && mistake.contains(words), "{mistake}");
    }
}
