//! Hosts that move from cell to cell: which packets are forwarded, held or lost, and when.

use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};
use proptest::prelude::*;

/// Two cells of 10 Mbit/s and 5 ms, 1 ms apart, each 50 ms from the core.
const CELLS: &str = r#"duration = "6s"
[topology]
kind = "graph"
links = [
  { name = "cell1", a = "ue1", b = "enb1", rate = "10Mbit/s", delay = "5ms", limit = "9999p", reverse_limit = "9999p", aqm = AQM },
  { name = "cell2", a = "ue2", b = "enb2", rate = "10Mbit/s", delay = "5ms", limit = "9999p", reverse_limit = "9999p", aqm = AQM },
  { name = "x2", a = "enb1", b = "enb2", rate = "100Mbit/s", delay = "1ms", limit = "9999p", reverse_limit = "9999p" },
  { name = "s1-1", a = "enb1", b = "core", rate = "100Mbit/s", delay = "50ms", limit = "9999p", reverse_limit = "9999p" },
  { name = "s1-2", a = "enb2", b = "core", rate = "100Mbit/s", delay = "50ms", limit = "9999p", reverse_limit = "9999p" },
]
"#;
/// A third cell, nearer to the core and without an X2 link.
const THIRD: &str = r#"  { name = "cell3", a = "ue3", b = "enb3", rate = "10Mbit/s", delay = "7ms", limit = "9999p", reverse_limit = "9999p", aqm = AQM },
  { name = "s1-3", a = "enb3", b = "core", rate = "100Mbit/s", delay = "20ms", limit = "9999p", reverse_limit = "9999p" },
"#;
const UP: &str = "from = \"ue1\"\nto = \"core\"\n";
const DOWN: &str = "from = \"core\"\nto = \"ue1\"\n";
const DROPTAIL: &str = "{ name = \"droptail\" }";
const BEARERS: &str = "{ name = \"lte-bearers\" }";

fn text(aqm: &str, flows: &[&str], handovers: &[&str]) -> String {
    let flows: String = flows.iter().map(|flow| format!("[[flows]]\n{flow}")).collect();
    let handovers: String = handovers.iter().map(|handover| format!("[[handovers]]\n{handover}\n")).collect();
    CELLS.replace("AQM", aqm) + &flows + &handovers
}

fn run(text: &str) -> Summary {
    let scenario = Scenario::parse(text, "cells.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut simulation = Simulation::new(&scenario);
    while !simulation.advance(scenario.duration).unwrap() {}
    simulation.summary()
}

fn to_cell2(at: &str, procedure: &str) -> String {
    format!("at = \"{at}\"\nfrom = \"ue1\"\nto = \"ue2\"\nprocedure = \"{procedure}\"")
}

fn back(at: &str, procedure: &str) -> String {
    format!("at = \"{at}\"\nfrom = \"ue2\"\nto = \"ue1\"\nprocedure = \"{procedure}\"")
}

fn delivered(summary: &Summary) -> Vec<u64> {
    summary.flows.iter().map(|flow| flow.delivered_bytes).collect()
}

/// 12 Mbit/s for a second into cells of 10: at 0.9 s hundreds of packets wait on either side.
fn overloads() -> [String; 2] {
    [UP, DOWN].map(|way| format!("kind = \"cbr\"\nrate = \"12Mbit/s\"\npacket_size = \"1000B\"\nstop = \"1s\"\n{way}"))
}

#[test]
fn a_lossless_handover_loses_nothing_that_waits_flies_or_comes_later() {
    let [up, down] = overloads();
    for aqm in [DROPTAIL, BEARERS] {
        let stays = run(&text(aqm, &[&up, &down], &[]));
        assert_eq!(stays.handovers, None);
        for procedure in ["x2-lossless", "s1"] {
            let moves = run(&text(aqm, &[&up, &down], &[&to_cell2("900ms", procedure)]));
            assert_eq!(delivered(&moves), delivered(&stays), "{aqm} {procedure}");
            let counted = moves.handovers.unwrap();
            assert_eq!((counted.moves, counted.lost_in_air), (2, 0));
            // 1459 packets a second come and 1216 go: 206 wait downlink; until 1027.5 ms, 50 ms after the core has
            // learnt of it, 186 come. From the host, 217 wait and 40 more come within 27.5 ms. Over X2 the 206, and
            // 1 ms less than 27.5 ms of others, are there before it has attached; through the core nothing is.
            let held = if procedure == "s1" { 217 + 40 } else { 217 + 40 + 206 + 38 };
            assert!(counted.forwarded.abs_diff(206 + 186) <= 4, "{procedure} {counted:?}");
            assert!(counted.held.abs_diff(held) <= 6, "{procedure} {counted:?}");
        }
    }
}

/// A packet of 1028 B takes 0.8224 ms; in 5 ms and while it is sent there are 6 or 7 in the air, each way.
#[test]
fn a_seamless_handover_loses_what_is_in_the_air() {
    let [up, down] = overloads();
    let stays: u64 = delivered(&run(&text(DROPTAIL, &[&up, &down], &[]))).iter().sum();
    let moves = run(&text(DROPTAIL, &[&up, &down], &[&to_cell2("900ms", "x2-seamless")]));
    let lost = moves.handovers.unwrap().lost_in_air;
    assert!((12..=14).contains(&lost), "{lost}");
    assert_eq!(delivered(&moves).iter().sum::<u64>() + 1000 * lost, stays);
}

fn call(way: &str) -> String {
    format!("kind = \"voip\"\n{way}")
}

fn slowest_ms(summary: &Summary) -> f64 {
    summary.flows[0].measures.voip().unwrap().delivery.delay_ms.max
}

/// A packet is sent every 20 ms. From 1001 to 1051 ms the host has no cell: the packets of 1020 and 1040 ms wait, the
/// first one for 31 ms. Besides the 55 ms of the path there are only microseconds of transmission.
#[test]
fn what_a_host_sends_meanwhile_waits_for_the_new_cell() {
    let handover = to_cell2("1001ms", "x2-lossless") + "\ninterruption = \"50ms\"";
    let moves = run(&text(DROPTAIL, &[&call(UP)], &[&handover]));
    let counted = moves.handovers.unwrap();
    assert_eq!((counted.held, counted.forwarded), (2, 0));
    assert!((slowest_ms(&moves) - 86.0).abs() < 1.0, "{}", slowest_ms(&moves));
    let call = &moves.flows[0].measures.voip().unwrap().delivery;
    assert!(call.sent - call.received <= 3, "only those that are under way at the end are missing");
}

/// A cell of 40 kbit/s takes 40 ms for a packet of 200 B of a call, which come each 20 ms from 100 ms on, as each access takes
/// 100 ms. When the host moves at 1001 ms, the 23rd packet, sent at 440 ms, is under way until 1020 ms and arrives 155 ms later,
/// 735 ms old. Those behind it go on at 1028.5 ms from the queue, and not from the host, 100 ms further away: they are younger.
#[test]
fn what_waits_at_the_old_cell_goes_on_from_there() {
    let handover = to_cell2("1001ms", "x2-lossless");
    let slow = text(DROPTAIL, &[&call(UP)], &[&handover]).replacen("10Mbit/s", "40kbit/s", 1);
    let moves = run(&slow.replace("kind = \"graph\"", "kind = \"graph\"\naccess_delay = \"100ms\""));
    assert!((slowest_ms(&moves) - 735.0).abs() < 3.0, "{}", slowest_ms(&moves));
}

/// There is no interruption. The core learns of the new route at 1051 ms; until then it sends to the old cell, where
/// packets arrive 50 ms later: those of 960 to 1040 ms are forwarded. Over X2 that takes 1 ms more, through the core
/// 100 ms more.
#[test]
fn forwarding_takes_the_way_of_the_procedure() {
    for (procedure, slowest) in [("x2-lossless", 56.0), ("x2-seamless", 56.0), ("s1", 155.0)] {
        let handover = to_cell2("1001ms", procedure) + "\ninterruption = \"0ms\"";
        let moves = run(&text(DROPTAIL, &[&call(DOWN)], &[&handover]));
        let counted = moves.handovers.unwrap();
        assert_eq!((counted.forwarded, counted.held, counted.lost_in_air), (5, 0, 0), "{procedure}");
        assert!((slowest_ms(&moves) - slowest).abs() < 1.0, "{procedure}: {}", slowest_ms(&moves));
    }
}

#[test]
fn a_host_may_go_to_and_fro() {
    let bulk = |way: &str| format!("kind = \"bulk\"\n{way}");
    let turns: Vec<String> = (0..8)
        .map(|n| {
            let at = format!("{}ms", 1000 + 200 * n);
            let procedure = ["x2-lossless", "s1", "x2-seamless"][n % 3];
            if n % 2 == 0 { to_cell2(&at, procedure) } else { back(&at, procedure) }
        })
        .collect();
    let turns: Vec<&str> = turns.iter().map(String::as_str).collect();
    for aqm in [DROPTAIL, BEARERS] {
        let moves = run(&text(aqm, &[&bulk(UP), &bulk(DOWN)], &turns));
        assert_eq!(moves.handovers.unwrap().moves, 16);
        for flow in &moves.flows {
            assert!(flow.goodput_bps > 2e6, "{aqm}: a connection stood still after a handover: {flow:?}");
        }
    }
}

#[test]
fn news_that_were_overtaken_do_not_count() {
    // The core learns of cell 2 at 1050 ms and of the return at 1060 ms. If the older message took effect last, packets
    // would be forwarded.
    let there = to_cell2("1000ms", "x2-lossless") + "\ninterruption = \"0ms\"";
    let again = back("1010ms", "x2-lossless") + "\ninterruption = \"0ms\"";
    let moves = run(&text(DROPTAIL, &[&call(DOWN)], &[&there, &again]));
    assert!(moves.handovers.unwrap().forwarded <= 5, "{:?}", moves.handovers);
    let call = &moves.flows[0].measures.voip().unwrap().delivery;
    assert!(call.sent - call.received <= 3);
}

/// A second phone behind the first one: the path to its cell leads over the cell that was left.
#[test]
fn the_way_to_a_cell_may_lead_over_the_one_that_was_left() {
    let [up, down] = overloads();
    let behind = |handovers: &[&str]| {
        let link = "\n  { name = \"bridge\", a = \"ue2\", b = \"ue1\", rate = \"50Mbit/s\", delay = \"1ms\" },\n  { name = \"cell2\", a = \"ue3\"";
        text(DROPTAIL, &[&up, &down], handovers).replace("\n  { name = \"cell2\", a = \"ue2\"", link)
    };
    let stays = run(&behind(&[]));
    let there = to_cell2("900ms", "x2-lossless");
    for (turns, moved) in
        [(vec![there.clone()], 2), (vec![there, back("940ms", "s1"), to_cell2("980ms", "x2-lossless")], 6)]
    {
        let turns: Vec<&str> = turns.iter().map(String::as_str).collect();
        let moves = run(&behind(&turns));
        assert_eq!(moves.handovers.unwrap().moves, moved);
        assert_eq!(delivered(&moves), delivered(&stays));
    }
}

#[test]
fn pages_go_on_after_a_handover() {
    let pages = format!("kind = \"http\"\nsize = \"100kB\"\nidle = \"100ms\"\nclass = 0\n{DOWN}");
    let one = format!("kind = \"http\"\nsize = \"100kB\"\nidle = \"100ms\"\nconnection = \"same\"\n{DOWN}");
    let moves = run(&text(BEARERS, &[&pages, &one], &[&to_cell2("2s", "s1"), &back("4s", "x2-lossless")]));
    for flow in &moves.flows {
        let transfers = flow.measures.transfers().unwrap();
        assert!(transfers.count > 6 && transfers.failed == 0, "{transfers:?}");
    }
}

#[test]
fn only_those_that_are_named_move() {
    let handover = to_cell2("1s", "x2-lossless") + "\nflows = [1]";
    let moves = run(&text(DROPTAIL, &[&call(UP), &call(UP)], &[&handover]));
    assert_eq!(moves.handovers.unwrap().moves, 1);
    let sent = |queue: usize| moves.bottlenecks[queue].packets;
    assert_eq!(sent(0) + sent(1), 600);
    assert!(sent(1).abs_diff(250) <= 2, "one of them is in cell 2 for 5 of 6 s");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// However a host moves, every packet that was sent arrives, except for those that the summary counts as lost in
    /// the air.
    #[test]
    fn every_packet_arrives_once_or_was_lost_in_the_air(
        moves in prop::collection::vec((1..400_000u64, 0..60_000u64, 0..3usize, 0..2usize), 0..8),
        rate_kbps in 1000..12_000u64,
        bearers: bool,
    ) {
        let (mut here, mut at, mut handovers) = (0, 100_000, Vec::new());
        for (wait, interruption, procedure, step) in moves {
            let (from, there) = (here, (here + 1 + step) % 3);
            (here, at) = (there, at + wait);
            let procedure = ["x2-lossless", "x2-seamless", "s1"][procedure];
            handovers.push(format!(
                "at = \"{at}us\"\nfrom = \"ue{}\"\nto = \"ue{}\"\nprocedure = \"{procedure}\"\ninterruption = \"{interruption}us\"",
                from + 1, there + 1
            ));
            at += interruption;
        }
        let flows = [UP, DOWN].map(|way| {
            format!("kind = \"cbr\"\nrate = \"{rate_kbps}kbit/s\"\npacket_size = \"500B\"\nstop = \"4s\"\n{way}")
        });
        let aqm = if bearers { BEARERS } else { DROPTAIL };
        let of = |handovers: &[&str]| {
            run(&text(aqm, &flows.each_ref().map(String::as_str), handovers).replace("]\n[[flows]]", &format!("{}]\n[[flows]]", THIRD.replace("AQM", aqm))))
        };
        let stays: u64 = delivered(&of(&[])).iter().sum();
        let moves = of(&handovers.iter().map(String::as_str).collect::<Vec<_>>());
        let lost = moves.handovers.map_or(0, |counted| counted.lost_in_air);
        prop_assert_eq!(delivered(&moves).iter().sum::<u64>() + 500 * lost, stays);
    }
}

#[test]
fn it_is_the_same_again_and_written_back() {
    let text = text(BEARERS, &overloads().each_ref().map(String::as_str), &[&to_cell2("900ms", "s1")]);
    let scenario = Scenario::parse(&text, "cells.toml").unwrap();
    let again = Scenario::parse(&scenario.resolved(), "cells.toml").unwrap();
    assert_eq!(again.handovers, scenario.handovers);
    assert_eq!(again.handovers[0].flows, [0, 1]);
    assert_eq!(run(&text), run(&scenario.resolved()).clone_named("cells"));
}

/// Returns the summary with another name.
trait Named {
    fn clone_named(self, name: &str) -> Self;
}

impl Named for Summary {
    fn clone_named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }
}

#[test]
fn mistakes_say_what_is_allowed() {
    let up = call(UP);
    let good = to_cell2("1s", "s1");
    let refused = |aqm: &str, flows: &[&str], handovers: &[&str], says: &str| {
        let error = Scenario::parse(&text(aqm, flows, handovers), "cells.toml").unwrap_err().to_string();
        assert!(error.contains(says), "{says:?} is not in\n{error}");
        assert!(error.contains("cells.toml:"), "{error}");
    };
    refused(DROPTAIL, &[&up], &[&to_cell2("1s", "x3")], "no procedure \"x3\"");
    refused(DROPTAIL, &[&up], &[&good.replace("\"ue2\"", "\"ue9\"")], "no router \"ue9\"");
    refused(DROPTAIL, &[&up], &[&good.replace("\"ue2\"", "\"ue1\"")], "not from \"ue1\" to itself");
    refused(DROPTAIL, &[&up], &[&good.replace("\"ue2\"", "\"core\"")], "would go from \"core\" to itself");
    let to_the_core = back("2s", "s1").replace("\"ue1\"", "\"core\"");
    refused(DROPTAIL, &[&up], &[&good, &to_the_core], "would go from \"core\" to itself");
    refused(DROPTAIL, &[&up], &[&back("1s", "s1")], "nobody is at \"ue2\" at 1s");
    refused(
        DROPTAIL,
        &[&up],
        &[&(good.clone() + "\nflows = [1]")],
        "there is no flow 1; they are numbered from 0 to 0",
    );
    refused(
        DROPTAIL,
        &[&up],
        &[&good, &(to_cell2("2s", "s1") + "\nflows = [0]")],
        "flow 0 has no host at \"ue1\" at 2s",
    );
    refused(DROPTAIL, &[&up], &[&(good.clone() + "\nflows = []")], "name a flow, or leave `flows` out");
    refused(DROPTAIL, &[&up], &[&(good.clone() + "\ninterruption = \"2min\"")], "interruption is 120s");
    refused(DROPTAIL, &[&up], &[&good, &back("1010ms", "s1")], "on its way to another cell until 1027.5ms");
    refused("{ name = \"fq-codel\" }", &[&up], &[&good], "cannot give up a flow that moves");
    refused("{ name = \"sfb\" }", &[&up], &[&good], "cannot give up a flow that moves");
    refused(
        DROPTAIL,
        &["kind = \"synflood\"\nper_second = 1\nfrom = \"ue1\"\nto = \"core\"\n"],
        &[&good],
        "is a flood",
    );
}
