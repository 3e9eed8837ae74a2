//! Links that police without a buffer, release packets in bursts, or let some be overtaken.

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};

fn run(text: &str) -> Summary {
    let scenario = Scenario::parse(text, "impaired.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let again = Scenario::parse(&scenario.resolved(), "resolved.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scenario.links, again.links, "the resolved form says the same");
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap();
    simulation.summary()
}

fn network(keys: &str, flows: &str) -> String {
    format!(
        "duration = \"21s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"100Mbit/s\"\ndelay = \"30ms\"\nlimit = \"1000p\"\n\
         {keys}\n{flows}"
    )
}

/// Packets of 1250 B at 12 Mbit/s for 8 s: 9600 of them, of which the bucket lets 50 kB and 5 Mbit/s pass.
#[test]
fn a_policer_passes_its_burst_and_its_rate() {
    let flow = "[[flows]]\nkind = \"cbr\"\nrate = \"12Mbit/s\"\npacket_size = \"1222B\"\nstop = \"8s\"\n";
    let summary = run(&network("police = { rate = \"5Mbit/s\", burst = \"50kB\" }", flow));
    let link = &summary.bottlenecks[0];
    assert_eq!(link.packets_all + link.policed.unwrap(), 9600, "none is lost or made");
    assert_eq!(link.drops_overflow + link.lost, 0);
    // From the first packet to the last 8 s less a packet's gap pass.
    let most = 50e3 + 5e6 / 8.0 * (8.0 - 1250.0 * 8.0 / 12e6);
    let passed = link.packets_all as f64 * 1250.0;
    assert!(passed <= most && most - passed < 1250.0, "{passed} of {most} B");
    assert_eq!(summary.flows[0].delivered_bytes, link.packets_all * 1222);
}

#[test]
fn who_keeps_to_the_rate_is_not_policed() {
    let flow = "[[flows]]\nkind = \"cbr\"\nrate = \"5Mbit/s\"\npacket_size = \"1222B\"\n";
    let summary = run(&network("police = { rate = \"5Mbit/s\", burst = \"1500B\" }", flow));
    assert_eq!(summary.bottlenecks[0].policed, Some(0));
}

/// One direction of a call: a datagram every 20 ms, 1000 of them. Returns the mean delay beyond that without impairment, and
/// the summary.
fn call(keys: &str, flow: &str) -> (f64, Summary) {
    let flow = format!("[[flows]]\nkind = \"voip\"\nstop = \"20s\"\n{flow}");
    let (plain, impaired) = (run(&network("", &flow)), run(&network(keys, &flow)));
    let [before, after] = [&plain, &impaired].map(|summary| &summary.flows[0].measures.voip().unwrap().delivery);
    assert_eq!((after.sent, after.received, after.lost), (before.sent, before.sent, 0), "none is lost or made");
    let bottleneck = |summary: &Summary| summary.bottlenecks[0].packets_all;
    assert_eq!(bottleneck(&plain), bottleneck(&impaired));
    (after.delay_ms.mean - before.delay_ms.mean, impaired)
}

/// Of three datagrams of a burst of 50 ms the first waits for 50 ms, the second for 30, the third for 10.
#[test]
fn a_burst_is_released_an_interval_after_its_first_packet() {
    let (delay_ms, summary) = call("aggregate = { interval = \"50ms\" }", "");
    assert!((delay_ms - 30.0).abs() < 0.05, "{delay_ms} ms");
    assert_eq!(summary.bottlenecks[0].bursts, Some(334)); // 333 of three and one of one
    let voip = &summary.flows[0].measures.voip().unwrap().delivery;
    assert!((voip.delay_ms.max - voip.delay_ms.p10 - 40.0).abs() < 1.0, "{:?}", voip.delay_ms);
}

/// The first of two waits for the second, 20 ms.
#[test]
fn a_full_burst_is_released_at_once() {
    let (delay_ms, summary) = call("aggregate = { interval = \"50ms\", packets = 2 }", "");
    assert!((delay_ms - 10.0).abs() < 0.05, "{delay_ms} ms");
    assert_eq!(summary.bottlenecks[0].bursts, Some(500));
}

#[test]
fn each_direction_has_its_impairments() {
    let (delay_ms, _) = call("reverse_aggregate = { interval = \"50ms\" }", "");
    assert_eq!(delay_ms, 0.0);
    let (delay_ms, _) = call("reverse_aggregate = { interval = \"50ms\" }", "direction = \"reverse\"\n");
    assert!((delay_ms - 30.0).abs() < 0.05, "{delay_ms} ms");
}

/// The delayed ones come 50 ms later, behind two or three others.
#[test]
fn the_share_that_is_reordered_is_delayed() {
    let (delay_ms, summary) = call("reorder = { share = 0.2, by = \"50ms\" }", "");
    let reordered = summary.bottlenecks[0].reordered.unwrap();
    // Binomial: mean 200, standard deviation 12.6; the bound is five of them.
    assert!(reordered.abs_diff(200) < 63, "{reordered}");
    assert!((delay_ms - reordered as f64 / 1000.0 * 50.0).abs() < 0.05, "{delay_ms} ms of {reordered}");
}

/// A transfer passes all of them completely, and the segments that are overtaken look like losses.
#[test]
fn a_transfer_is_complete_behind_each_impairment() {
    for keys in [
        "police = { rate = \"20Mbit/s\", burst = \"20kB\" }",
        "aggregate = { interval = \"10ms\", packets = 20 }\nreverse_aggregate = { interval = \"5ms\" }",
        "reorder = { share = 0.01, by = \"10ms\" }\nreverse_reorder = { share = 0.1, by = \"3ms\" }",
        "reverse_police = { rate = \"100kbit/s\", burst = \"2kB\" }",
        "duplicate = 0.05\nreverse_duplicate = 0.3",
        "jitter = { by = \"3ms\", correlation = 0.5 }\nreverse_jitter = { by = \"20ms\", distribution = \"pareto\" }",
        "gilbert = { to_bad = 0.01, to_good = 0.4 }\nreverse_gilbert = { to_bad = 0.1, to_good = 0.5, bad = 0.5 }",
    ] {
        let flow = "[[flows]]\nkind = \"transfer\"\nsize = \"1MB\"\n";
        let summary = run(&network(keys, flow));
        let (flow, link) = (&summary.flows[0], &summary.bottlenecks[0]);
        assert_eq!((flow.delivered_bytes, flow.completion_s.is_some()), (1_000_000, true), "{keys}");
        let overtaken = link.reordered.is_some_and(|reordered| reordered > 0) || keys.starts_with("jitter");
        let lost = link.lost > 0;
        let policed = link.policed.is_some_and(|policed| policed > 0);
        assert_eq!(flow.retransmits > 0, overtaken || policed || lost, "{keys}");
    }
}

/// A call is told that nothing is lost, and each datagram counts once, however many come twice.
#[test]
fn a_copy_is_no_datagram_more() {
    let (delay_ms, summary) = call("duplicate = 0.3", "");
    assert_eq!(delay_ms, 0.0);
    // Binomial: mean 300, standard deviation 14.5; the bound is five of them.
    assert!(summary.bottlenecks[0].duplicated.unwrap().abs_diff(300) < 73);
    let flow = "[[flows]]\nkind = \"cbr\"\nrate = \"12Mbit/s\"\npacket_size = \"1222B\"\nstop = \"8s\"\n";
    let summary = run(&network("duplicate = 0.3", flow));
    assert_eq!(summary.flows[0].delivered_bytes, 9600 * 1222);
}

/// The delay of a call varies between 20 and 40 ms, and is 30 ms on average; the standard error of the mean is
/// 10 ms / sqrt(3 x 1000) = 0.18 ms.
#[test]
fn jitter_is_about_the_delay_of_the_link() {
    let (delay_ms, summary) = call("jitter = { by = \"10ms\" }", "");
    assert!(delay_ms.abs() < 0.9, "{delay_ms} ms");
    let delay = &summary.flows[0].measures.voip().unwrap().delivery.delay_ms;
    // A tenth of them is up to 8 ms early, and a tenth 8 ms late or more.
    let [low, high] = [delay.p10 - delay.mean + 8.0, delay.p90 - delay.mean - 8.0];
    assert!(low.abs() < 0.9 && high.abs() < 0.9 && delay.max < delay.mean + 10.9, "{delay:?}");
}

/// The wire loses `0.02 / (0.02 + 0.18)` of the packets. Rows of mean length 5.6 make the variance of their number about
/// (2 x 5.6 - 1) times that of independent losses: a standard deviation of 97 of 960.
#[test]
fn a_wire_may_lose_packets_in_a_row() {
    let flow = "[[flows]]\nkind = \"cbr\"\nrate = \"12Mbit/s\"\npacket_size = \"1222B\"\nstop = \"8s\"\n";
    let summary = run(&network("gilbert = { to_bad = 0.02, to_good = 0.18 }", flow));
    let link = &summary.bottlenecks[0];
    assert!(link.lost.abs_diff(960) < 485, "{}", link.lost);
    assert_eq!(link.packets_all, 9600, "they take their time on the wire");
    assert_eq!(summary.flows[0].delivered_bytes, (9600 - link.lost) * 1222);
}

/// What changes while packets are in flight loses none and lets those behind overtake.
#[test]
fn impairments_change_during_a_run() {
    use penstock_core::impair::{Aggregate, Impairments, Reorder};
    let flow = "[[flows]]\nkind = \"voip\"\nstop = \"20s\"\n";
    let mut simulation = Simulation::new(&Scenario::parse(&network("", flow), "a.toml").unwrap());
    let hold = Aggregate { interval: Span::from_secs(1), packets: None };
    let overtake = Reorder { share: 1.0, by: Span::from_millis(100) };
    let steps = [
        Impairments { aggregate: Some(hold), ..Default::default() },
        Impairments { reorder: Some(overtake), ..Default::default() },
        Impairments::default(),
    ];
    for (step, impairments) in steps.iter().cycle().take(12).enumerate() {
        simulation.advance(Span::from_millis(700 + 10 * step as u64)).unwrap();
        simulation.impair(0, false, impairments).unwrap();
    }
    simulation.advance(Span::MAX).unwrap();
    let summary = simulation.summary();
    let voip = &summary.flows[0].measures.voip().unwrap().delivery;
    assert_eq!((voip.sent, voip.received), (1000, 1000));
    assert!(voip.delay_ms.max > 1000.0, "the first of a burst waits for a second: {:?}", voip.delay_ms);
    assert!(voip.delay_ms.p10 < 35.0, "others do not: {:?}", voip.delay_ms);
}

#[test]
fn impossible_impairments_are_refused_where_they_stand() {
    for (keys, expected) in [
        ("jitter = { by = \"5ms\", correlation = 1.5 }", "correlation is 1.5; allowed are 0 to 1"),
        ("duplicate = 1.5", "duplicate is 1.5; allowed is a probability from 0 to 1"),
        ("gilbert = { to_bad = 2, to_good = 1 }", "to_bad is 2; allowed is a probability from 0 to 1"),
        ("aggregate = { interval = \"5ms\" }\njitter = { by = \"5ms\" }", "not both; two links can"),
        ("police = { rate = \"5Mbit/s\", burst = \"100B\" }", "burst is 100B; allowed are 1.5kB to 1GB"),
        ("aggregate = { interval = \"0ms\" }", "interval is 0ns; allowed are 1us to 10s"),
        ("reverse_aggregate = { interval = \"5ms\", packets = 1 }", "packets is 1; allowed are 2 to 1000000"),
        ("reorder = { share = 1.5, by = \"5ms\" }", "share is 1.5; allowed is a probability from 0 to 1"),
        ("reorder = { share = 0.5 }", "missing field `by`"),
        ("police = { rate = \"5Mbit/s\", burst = \"2kB\", size = 3 }", "size"),
        ("reorder = { share = 0.1, by = \"5ms\" }\naggregate = { interval = \"5ms\" }", "not both; two links can"),
    ] {
        let flow = "[[flows]]\nkind = \"bulk\"\n";
        let message = Scenario::parse(&network(keys, flow), "a.toml").unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert!(message.contains(":8") || message.contains(":7") || message.contains(":9"), "the line: {message}");
    }
}
