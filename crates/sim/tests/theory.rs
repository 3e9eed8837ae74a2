//! The simulator against the theory of TCP: numbers that follow from a formula, not from a run.
//!
//! The square-root law (Mathis, Semke, Mahdavi, Ott: The macroscopic behavior of the TCP congestion avoidance
//! algorithm, 1997): goodput = C MSS / (RTT sqrt(p)). With an ACK per segment the window grows by one segment per round
//! trip. If the losses are periodic, it goes from W/2 to W over W/2 round trips and carries 3/8 W^2 = 1/p segments, so
//! C = sqrt(3/2) = 1.22. With independent losses the window of segments `w`, as a fluid, obeys
//!
//! ```text
//! per segment:  w += 1/w;   with probability p:  w = w/2
//! v = w^2/2 grows by 1 per segment and falls to v/4, so over n segments v_k = sum_j n_j / 4^j
//! ```
//!
//! with intervals `n_j` that are exponential with mean 1/p. The time of a segment is RTT/w, so goodput is 1/E[1/w] per
//! RTT, with E over segments. [`constant_for_random_losses`] finds it numerically: 1.31, the constant that the paper
//! and Ott, Kemperman, Mathis (1996) give for this case.

use penstock_core::rng::Streams;
use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};

fn run(text: &str, seed: u64) -> Summary {
    let mut scenario = Scenario::parse(text, "theory.toml").unwrap_or_else(|e| panic!("{e}"));
    scenario.seed = seed;
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap();
    simulation.summary()
}

/// 1/E[1/w] sqrt(p), for the fluid above with p = 1: w = sqrt(2 v), E over the segments between two losses.
fn constant_for_random_losses() -> f64 {
    let mut rng = Streams::new(1).get("theory/intervals");
    let (mut v, mut segments, mut round_trips) = (1.0f64, 0.0, 0.0);
    for _ in 0..200_000 {
        let interval = rng.exponential(1.0);
        // The integral of 1/sqrt(2 (v + x)) over the interval.
        round_trips += (2.0 * (v + interval)).sqrt() - (2.0 * v).sqrt();
        segments += interval;
        v = (v + interval) / 4.0;
    }
    segments / round_trips
}

/// The published constant and the derivation agree, so the test below rests on both.
#[test]
fn the_constant_of_random_losses_follows_from_the_fluid() {
    let c = constant_for_random_losses();
    assert!((c - 1.31).abs() < 0.01, "{c}");
}

const RTT_S: f64 = 0.1;
const MSS: f64 = 1000.0;

/// A link so fast and a queue so long that only random losses limit the flow.
fn lossy(p: f64, seconds: u64) -> String {
    format!(
        r#"
        duration = "{seconds}s"
        topology = {{ kind = "dumbbell", rate = "1Gbit/s", delay = "50ms", limit = "100MB", loss = {p}, access_rate = "10Gbit/s" }}
        tcp = {{ cc = "newreno", mss = "1000B", ack_every_segment = true, receive_buffer = "16MB" }}
        flows = [{{ kind = "bulk" }}]
        output = {{ series = false }}"#
    )
}

#[test]
fn newreno_follows_the_square_root_law() {
    for (p, seconds) in [(0.0005, 2000), (0.001, 1500), (0.003, 1000)] {
        let seeds = 1..=3;
        let n = seeds.clone().count() as f64;
        let runs: Vec<Summary> = seeds.map(|seed| run(&lossy(p, seconds), seed)).collect();
        let goodput = runs.iter().map(|r| r.flows[0].goodput_bps).sum::<f64>() / n;
        let law = 1.31 * MSS * 8.0 / (RTT_S * p.sqrt());
        let queue = &runs[0].bottlenecks[0];
        assert_eq!((queue.drops_overflow, queue.drops_aqm), (0, 0), "only the wire loses");
        let seen = queue.lost as f64 / queue.packets_all as f64;
        println!("p = {p}: {:.3} of the law; lost {seen:.5}", goodput / law);
        assert!((goodput / law - 1.0).abs() < 0.1, "p = {p}: {goodput:.0} bit/s, the law says {law:.0}");
    }
}

/// 50 kB per round trip; the link could carry 25 times as much. The window is full from the fourth round trip on.
#[test]
fn a_flow_limited_by_its_window_sends_one_window_per_round_trip() {
    let text = r#"
        duration = "100s"
        topology = { kind = "dumbbell", rate = "100Mbit/s", delay = "50ms", access_rate = "10Gbit/s" }
        tcp = { mss = "1000B", ack_every_segment = true, receive_buffer = "50kB", window_scaling = false }
        flows = [{ kind = "bulk" }]"#;
    let summary = run(text, 1);
    // The round trip of a segment: twice 50 ms, 1052 B at 100 Mbit/s and the ACK's 52 B, and little on access links.
    let rtt = 0.1 + (1052.0 + 52.0) * 8.0 / 100e6 + 2.0 * (1052.0 + 52.0) * 8.0 / 10e9;
    let expected = 50_000.0 * 8.0 / rtt;
    let goodput = summary.flows[0].goodput_bps;
    assert!((goodput / expected - 1.0).abs() < 0.01, "{goodput} against {expected}");
    assert!((summary.flows[0].rtt_ms.p50 - rtt * 1e3).abs() < 1.0, "{:?}", summary.flows[0].rtt_ms);
}

/// The rule of thumb for routers: with a buffer of one BDP the halved window still fills the pipe. With an eighth of
/// it, the window goes from 9/16 to 9/8 of the BDP; while it is below, the link is idle part of the time.
#[test]
fn a_buffer_of_one_bdp_keeps_the_link_busy_and_a_smaller_one_does_not() {
    let dumbbell = |limit: &str| {
        format!(
            r#"
            duration = "200s"
            topology = {{ kind = "dumbbell", rate = "10Mbit/s", delay = "50ms", limit = "{limit}", access_rate = "1Gbit/s" }}
            tcp = {{ cc = "newreno", mss = "1000B", ack_every_segment = true }}
            flows = [{{ kind = "bulk" }}]"#
        )
    };
    // 10 Mbit/s in 100 ms.
    let full = run(&dumbbell("125kB"), 1).bottlenecks[0].utilization;
    assert!(full > 0.99 && full <= 1.0, "{full}");
    // Mean over the sawtooth: the window w (in BDPs) grows by a constant per round trip of max(1, w) base RTTs. Work
    // per period: integral of w dw from 9/16 to 9/8; time: 7/16 while w < 1, then the integral of w dw to 9/8.
    let work = (81.0 / 64.0 - 81.0 / 256.0) / 2.0;
    let time = 7.0 / 16.0 + (81.0 / 64.0 - 1.0) / 2.0;
    let expected: f64 = work / time;
    let eighth = run(&dumbbell("15625B"), 1).bottlenecks[0].utilization;
    assert!((eighth / expected - 1.0).abs() < 0.05, "{eighth} against {expected}");
}

/// With equal round trip times, equal windows and one queue, no flow gets much more than another in a long run.
#[test]
fn two_equal_flows_share_equally() {
    let text = r#"
        duration = "300s"
        topology = { kind = "dumbbell", rate = "10Mbit/s", delay = "20ms", limit = "50kB" }
        aqm = { name = "red" }
        tcp = { cc = "newreno" }
        flows = [{ kind = "bulk", count = 2, start_spread = "1s" }]"#;
    let summary = run(text, 1);
    assert!(summary.jain.overall > 0.98, "{:?}", summary.jain);
}

/// Constant bit rate below capacity: everything arrives, at the rate of the source, with no wait longer than one packet.
#[test]
fn a_source_below_capacity_loses_nothing_and_never_waits() {
    let text = r#"
        duration = "10s"
        topology = { kind = "dumbbell", rate = "10Mbit/s", delay = "5ms" }
        flows = [{ kind = "cbr", rate = "5Mbit/s", packet_size = "1222B" }]"#;
    let summary = run(text, 1);
    let bottleneck = &summary.bottlenecks[0];
    // 1250 B with headers, every 2 ms; the rate is that of IP packets.
    assert!((bottleneck.utilization - 0.5).abs() < 0.001, "{bottleneck:?}");
    assert!(bottleneck.queue_bytes.max <= 1250, "{bottleneck:?}");
    assert_eq!((bottleneck.drops_overflow, bottleneck.lost), (0, 0));
    // Sent at 0, 2, ..., 10000 ms; those of the last 7 ms are under way at the end.
    let sent_in_time = (10_000 - 7) / 2 + 1;
    assert_eq!(summary.flows[0].delivered_bytes, sent_in_time * 1222);
}
