//! Networks: packets take the right paths, counters balance in every scenario, and invariants stop a run.

#[path = "networks/watching.rs"]
mod watching;

use penstock_core::cc;
use penstock_core::registry::NAMES;
use penstock_core::units::{Bytes, Span};
use penstock_sim::summary::{BottleneckSummary, Delivery, FlowSummary, Summary};
use penstock_sim::{Broken, Scenario, Simulation};
use proptest::prelude::*;

fn try_run(text: &str) -> Result<Summary, Broken> {
    let scenario = Scenario::parse(text, "network.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX)?;
    Ok(simulation.summary())
}

fn run(text: &str) -> Summary {
    try_run(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn queue<'a>(summary: &'a Summary, name: &str) -> &'a BottleneckSummary {
    summary.bottlenecks.iter().find(|b| b.name == name).unwrap_or_else(|| panic!("{name} is not in the summary"))
}

/// Datagrams of 1250 B with headers for a second, one every 10 ms: at 0, 10, ..., 990 ms.
fn cbr(from: &str, to: &str) -> String {
    format!(
        r#"[[flows]]
kind = "cbr"
rate = "1Mbit/s"
packet_size = "1222B"
stop = "1s"
from = "{from}"
to = "{to}"
"#
    )
}

const DATAGRAMS: u64 = 100;

fn parking_lot(flows: &str) -> String {
    format!(
        r#"
duration = "2s"
[topology]
kind = "parking-lot"
hops = [
  {{ rate = "10Mbit/s", delay = "5ms" }},
  {{ rate = "8Mbit/s", delay = "7ms", aqm = {{ name = "codel" }} }},
  {{ rate = "6Mbit/s", delay = "9ms" }},
]
{flows}"#
    )
}

#[test]
fn flows_of_a_parking_lot_cross_the_hops_between_their_routers() {
    let flows = [("r0", "r3"), ("r0", "r1"), ("r1", "r3"), ("r2", "r3")].map(|(from, to)| cbr(from, to));
    let summary = run(&parking_lot(&flows.concat()));
    let crossing = |name: &str| queue(&summary, name).packets_all / DATAGRAMS;
    assert_eq!((crossing("hop0"), crossing("hop1"), crossing("hop2")), (2, 2, 3));
    for flow in &summary.flows {
        assert_eq!(flow.delivered_bytes, DATAGRAMS * 1222, "all is delivered: {flow:?}");
    }
}

#[test]
fn a_reversed_flow_sends_its_data_against_the_hops_and_only_acks_along() {
    let flow = "[[flows]]\nkind = \"bulk\"\nfrom = \"r3\"\nto = \"r1\"\n";
    let summary = run(&parking_lot(flow));
    assert_eq!(queue(&summary, "hop0").packets_all, 0, "r1 is the end of the path");
    for hop in ["hop1", "hop2"] {
        let hop = queue(&summary, hop);
        assert!(hop.packets == 0 && hop.packets_all > 100, "ACKs alone go forward: {hop:?}");
    }
    assert!(summary.flows[0].goodput_bps > 4e6, "{:?}", summary.flows[0]);
}

/// Links with these delays, all measured in both directions, and one flow.
fn graph(links: &[(&str, &str, &str, &str)], from: &str, to: &str) -> String {
    let mut text = String::from("duration = \"2s\"\n[topology]\nkind = \"graph\"\n");
    for (name, a, b, delay) in links {
        text += &format!(
            "[[topology.links]]\nname = \"{name}\"\na = \"{a}\"\nb = \"{b}\"\nrate = \"1Gbit/s\"\ndelay = \"{delay}\"\n\
             aqm = {{ name = \"droptail\" }}\nreverse_aqm = {{ name = \"droptail\" }}\n"
        );
    }
    text + &format!("[[flows]]\nkind = \"transfer\"\nsize = \"1MB\"\nfrom = \"{from}\"\nto = \"{to}\"\n")
}

/// Checks which links a flow uses, that packets return on the same links, and the smallest round trip time.
fn takes(summary: &Summary, links: &[(&str, bool)], rtt_ms: f64) {
    for (link, used) in links {
        for direction in ["", "-reverse"] {
            let queue = queue(summary, &format!("{link}{direction}"));
            assert_eq!(queue.packets_all > 0, *used, "{queue:?}");
        }
    }
    let least = summary.flows[0].rtt_ms.min;
    assert!((least - rtt_ms).abs() < 0.01 * rtt_ms, "{least} ms");
    assert_eq!(summary.flows[0].delivered_bytes, 1_000_000);
}

#[test]
fn routes_are_shortest_by_delay_not_by_links() {
    let links = [("direct", "x", "y", "10ms"), ("in", "x", "w", "4ms"), ("out", "w", "y", "5ms")];
    for (from, to) in [("x", "y"), ("y", "x")] {
        takes(&run(&graph(&links, from, to)), &[("direct", false), ("in", true), ("out", true)], 18.0);
    }
}

#[test]
fn of_equal_delays_the_fewest_links_win_and_then_those_listed_first() {
    let longer_first = [("in", "x", "w", "4ms"), ("out", "w", "y", "6ms"), ("direct", "x", "y", "10ms")];
    takes(&run(&graph(&longer_first, "x", "y")), &[("direct", true), ("in", false), ("out", false)], 20.0);
    let parallel = [("first", "x", "y", "10ms"), ("second", "y", "x", "10ms")];
    for (from, to) in [("x", "y"), ("y", "x")] {
        takes(&run(&graph(&parallel, from, to)), &[("first", true), ("second", false)], 20.0);
    }
}

/// Seen from the other end, the other branch would be listed first; an element on the ACK path must still see both ways.
#[test]
fn the_way_back_is_the_same_path() {
    let links = [("xa", "x", "a", "5ms"), ("xb", "x", "b", "5ms"), ("by", "b", "y", "5ms"), ("ay", "a", "y", "5ms")];
    let summary = run(&graph(&links, "x", "y"));
    takes(&summary, &[("xa", true), ("ay", true), ("xb", false), ("by", false)], 20.0);
}

#[test]
fn access_delays_add_up_and_a_flow_may_have_its_own() {
    let text = r#"
        duration = "3s"
        topology = { kind = "dumbbell", rate = "1Gbit/s", delay = "10ms", access_delay = "3ms" }
        flows = [{ kind = "bulk" }, { kind = "bulk", access_delay = "20ms", start = "1s" }]"#;
    let summary = run(text);
    let least: Vec<f64> = summary.flows.iter().map(|f| f.rtt_ms.min.round()).collect();
    assert_eq!(least, [32.0, 66.0], "2 (3 + 10 + 3) and 2 (20 + 10 + 3) ms");
}

#[test]
fn a_wire_loses_its_share_and_the_books_of_the_queue_do_not_notice() {
    let lossy = parking_lot(&cbr("r0", "r1")).replace("delay = \"5ms\" }", "delay = \"5ms\", loss = 0.3 }");
    let summary = run(&lossy);
    let hop = queue(&summary, "hop0");
    assert_eq!(hop.packets_all, DATAGRAMS, "sent, whether lost or not");
    assert_eq!(hop.drops_overflow + hop.drops_aqm, 0);
    assert_eq!(summary.flows[0].delivered_bytes, (DATAGRAMS - hop.lost) * 1222);
    // The count is binomial with mean 30 and standard deviation 4.6; the bound is four of them.
    assert!((12..=48).contains(&hop.lost), "{}", hop.lost);
}

// Invariants.

const OVERLOAD: &str = r#"
duration = "4s"
topology = { kind = "dumbbell", rate = "2Mbit/s", delay = "20ms", limit = "30kB" }
tcp = { mss = "1000B" }
flows = [{ kind = "bulk", count = 2 }]
[invariants]
"#;

#[test]
fn a_queue_beyond_its_invariant_stops_the_run_with_a_sentence() {
    assert!(try_run(&format!("{OVERLOAD}max_queue = \"30kB\"")).is_ok(), "the limit of the queue holds");
    let sentence = try_run(&format!("{OVERLOAD}max_queue = \"20kB\"")).unwrap_err().to_string();
    // The invariant was violated by the first packet of 1052 B beyond 20 kB.
    let bytes = sentence.strip_prefix("invariant max_queue: ").and_then(|s| s.split(' ').next()).unwrap();
    assert!((20_001..=21_052).contains(&bytes.parse::<u64>().unwrap()), "{sentence}");
    assert!(sentence.contains("bytes waited at \"bottleneck\" at "), "{sentence}");
    // The violation cannot come before the first round trip, 40 ms, nor later than slow start takes to send 30 kB.
    let at = sentence.rsplit("at ").next().and_then(|s| s.strip_suffix(" s")).unwrap();
    assert!((0.04..1.0).contains(&at.parse::<f64>().unwrap()), "{sentence}");
}

#[test]
fn a_forbidden_drop_stops_the_run_with_a_sentence() {
    let sentence = try_run(&format!("{OVERLOAD}no_drops = true")).unwrap_err().to_string();
    let drops = run(OVERLOAD).bottlenecks[0].drops_overflow;
    assert_eq!(sentence, format!("invariant no_drops: {drops} packets were dropped at \"bottleneck\""));
    let roomy = OVERLOAD.replace("limit = \"30kB\"", "limit = \"60MB\"");
    assert!(try_run(&format!("{roomy}no_drops = true")).is_ok());
    let lossy = OVERLOAD.replace("limit = \"30kB\"", "limit = \"60MB\", loss = 0.01");
    let summary = try_run(&format!("{lossy}no_drops = true")).unwrap();
    assert!(summary.bottlenecks[0].lost > 0, "what a wire loses is not a drop of the queue");
}

// Any scenario.

const TRANSFER: u64 = 30_000;

fn queue_table() -> impl Strategy<Value = String> {
    let limit = prop_oneof!["[1-9]p", "[1-9][0-9]p", "[2-9]kB", "[2-9]0kB"];
    let rate = prop_oneof!["[1-9]00kbit/s", "[1-9]Mbit/s", "[1-9]0Mbit/s"];
    let loss = prop_oneof![3 => Just(0.0), 1 => 0.0..0.3];
    (limit, rate, 0u64..30, proptest::sample::select(NAMES), loss).prop_map(|(limit, rate, delay, aqm, loss)| {
        format!(
            "rate = \"{rate}\", delay = \"{delay}ms\", limit = \"{limit}\", loss = {loss}, aqm = {{ name = \"{aqm}\" }}"
        )
    })
}

/// A chain of routers `n0`, `n1`, ..., each with a link from an earlier one, so that all are connected, and some more
/// links.
fn links() -> impl Strategy<Value = (usize, String)> {
    let chain = proptest::collection::vec((queue_table(), any::<prop::sample::Index>()), 1..4);
    let more = proptest::collection::vec((queue_table(), any::<[prop::sample::Index; 2]>()), 0..3);
    (chain, more).prop_map(|(chain, more)| {
        let nodes = chain.len() + 1;
        let tree = chain.iter().enumerate().map(|(i, (table, from))| (from.index(i + 1), i + 1, table));
        let extra =
            more.iter().map(|(table, [a, b])| (a.index(nodes), b.index(nodes), table)).filter(|(a, b, _)| a != b);
        let rows = tree.chain(extra).enumerate();
        let text =
            rows.map(|(i, (a, b, table))| format!("  {{ name = \"l{i}\", a = \"n{a}\", b = \"n{b}\", {table} }},\n"));
        (nodes, text.collect())
    })
}

fn flow(nodes: usize) -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        Just("kind = \"bulk\"".to_owned()),
        Just("kind = \"bulk\"\nstop = \"500ms\"".to_owned()),
        Just(format!("kind = \"transfer\"\nsize = \"{TRANSFER}B\"")),
        Just("kind = \"cbr\"\nrate = \"700kbit/s\"".to_owned()),
        Just("kind = \"onoff\"\nrate = \"2Mbit/s\"\nmean_on = \"50ms\"\nmean_off = \"20ms\"".to_owned()),
        Just("kind = \"cbr\"\nrate = \"700kbit/s\"\npacket_size = [\"40B\", \"1kB\"]".to_owned()),
        Just("kind = \"http\"\nsize = \"9kB\"\nidle = \"20ms\"\nconnection = \"same\"\nstop = \"800ms\"".to_owned()),
        Just("kind = \"http\"\npackets = 4\nidle = \"10ms\"\nidle_distribution = \"exponential\"".to_owned()),
        Just("kind = \"web\"\nload = 0.7\nmean_size = \"3kB\"\nmax_size = \"300kB\"".to_owned()),
        Just("kind = \"voip\"\nmean_on = \"100ms\"".to_owned()),
        Just("kind = \"video\"\nrate = \"600kbit/s\"\nspread = 0.7\ngop = 8".to_owned()),
    ];
    let ends = (0..nodes, 1..nodes).prop_map(move |(from, distance)| (from, (from + distance) % nodes));
    let tcp = (any::<[bool; 7]>(), 64u64..3000, 0..cc::NAMES.len());
    (kind, 1u64..3, 0u64..300, ends, tcp).prop_map(|(kind, count, start, (from, to), (options, mss, control))| {
        let names = ["sack", "prr", "limited_transmit", "timestamps", "window_scaling", "ecn", "ack_every_segment"];
        let cc = cc::NAMES[control];
        let needed = |name: &str| name == "ecn" && cc::needs_ecn(cc);
        let options = names.iter().zip(options).map(|(name, on)| format!("{name} = {}, ", on || needed(name)));
        let options: String = options.collect();
        let udp = ["rate", "voip"].iter().any(|word| kind.contains(word));
        let tcp = if udp { String::new() } else { format!("tcp = {{ {options}mss = \"{mss}B\", cc = \"{cc}\" }}\n") };
        format!("[[flows]]\n{kind}\ncount = {count}\nstart = \"{start}ms\"\nfrom = \"n{from}\"\nto = \"n{to}\"\n{tcp}")
    })
}

fn scenario() -> impl Strategy<Value = String> {
    links()
        .prop_flat_map(|(nodes, links)| {
            (Just(links), proptest::collection::vec(flow(nodes), 1..5), 0u64..1000, 300u64..1500)
        })
        .prop_map(|(links, flows, seed, ms)| {
            let flows = flows.concat();
            format!("duration = \"{ms}ms\"\nseed = {seed}\n[topology]\nkind = \"graph\"\nlinks = [\n{links}]\n{flows}")
        })
}

/// Conditions that hold in any run. That arrived = dropped + sent + waiting at every queue, in packets and in bytes, is
/// checked by the run itself.
fn check(summary: &Summary, scenario: &Scenario) {
    for (bottleneck, link) in summary.bottlenecks.iter().zip(&scenario.links) {
        assert!(bottleneck.utilization <= 1.0, "{bottleneck:?}");
        assert!(bottleneck.lost <= bottleneck.packets_all && bottleneck.packets <= bottleneck.packets_all);
        assert!(bottleneck.queue_bytes.mean <= bottleneck.queue_bytes.max as f64);
        assert!(link.link.loss > 0.0 || bottleneck.lost == 0, "{bottleneck:?}");
    }
    for flow in &summary.flows {
        let done = flow.kind == "transfer" && flow.delivered_bytes == TRANSFER;
        let stopped = flow.kind == "bulk" && flow.delivered_bytes > 0; // and all that it had sent may have arrived
        assert!(if flow.completion_s.is_some() { done || stopped } else { !done }, "{flow:?}");
        assert!(flow.kind != "transfer" || flow.delivered_bytes <= TRANSFER, "{flow:?}");
        check_application(flow);
    }
    assert!(summary.jain.worst_1s.is_nan() || (0.0..=1.0).contains(&summary.jain.worst_1s), "{:?}", summary.jain);
}

fn check_application(flow: &FlowSummary) {
    if let Some(transfers) = flow.measures.transfers() {
        assert!(transfers.bytes <= flow.delivered_bytes, "{flow:?}");
        assert!(transfers.count + transfers.failed <= transfers.started, "{flow:?}");
        let by_size: u64 = transfers.by_size.iter().map(|class| class.count).sum();
        assert!(flow.kind == "http" || by_size == transfers.count, "{flow:?}");
    }
    // What is missing is so because no packet arrived, or for the rating because none was sent.
    let share = |part: f64, of: u64| if of == 0 { part.is_nan() } else { (0.0..=1.0).contains(&part) };
    let packets = |d: &Delivery| assert!(d.received + d.lost <= d.sent && share(d.loss, d.received), "{d:?}");
    if let Some(voip) = flow.measures.voip() {
        packets(&voip.delivery);
        let rated = (1.0..=4.5).contains(&voip.mos) && voip.r <= 93.2;
        let d = &voip.delivery;
        assert!((rated || d.sent == 0 && voip.mos.is_nan()) && share(voip.late, d.received), "{voip:?}");
    }
    if let Some(video) = flow.measures.video() {
        packets(&video.delivery);
        let frames = &video.frames;
        assert!(frames.played + frames.late + frames.lost <= frames.sent, "{frames:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_scenario_runs_and_conserves(text in scenario()) {
        let scenario = Scenario::parse(&text, "any.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut simulation = Simulation::new(&scenario);
        while !simulation.advance(Span::from_millis(100)).unwrap() {}
        let summary = simulation.summary();
        check(&summary, &scenario);
        let resolved = Scenario::parse(&scenario.resolved(), "any.toml").unwrap();
        prop_assert_eq!(&resolved, &scenario);
        let mut again = Simulation::new(&resolved);
        again.advance(Span::MAX).unwrap();
        prop_assert_eq!(again.summary(), summary);
    }

    /// For any file, reading gives a scenario or a message.
    #[test]
    fn no_text_panics(text in scenario(), at in any::<prop::sample::Index>(), junk in "\\PC{0,4}", cut in 0usize..8) {
        let start = (0..=at.index(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap();
        let end = (start + cut).min(text.len());
        let broken = format!("{}{junk}{}", &text[..start], &text[end..]);
        let _ = Scenario::parse(&broken, "any.toml").map_err(|e| e.to_string());
    }
}
