//! ECN over whole connections: controls that need it behind a step, and flows that lose it.

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::tcp::EcnLost;
use penstock_sim::{Scenario, Simulation};

fn run(text: &str, seed: u64) -> Summary {
    let mut scenario = Scenario::parse(text, "ecn.toml").unwrap_or_else(|e| panic!("{e}"));
    scenario.seed = seed;
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap();
    simulation.summary()
}

/// RED as a step: by the kernel, which marks without limit, and by the paper with `gentle`, which drops from twice the
/// upper threshold on.
const BY_LINUX: &str =
    r#"min_threshold = "40p", max_threshold = "41p", weight = 1.0, max_probability = 1.0, compat = "linux""#;
const BY_PAPER: &str = r#"min_threshold = "40p", max_threshold = "41p", weight = 1.0, max_probability = 1.0"#;

/// Four flows at 1 Gbit/s with a round trip time of 200 us, 25 kB, behind a step at 40 packets; they begin within 10 ms,
/// so that later SYNs meet the queue of the first flows.
fn data_centre(cc: &str, step: &str) -> String {
    format!(
        r#"
        duration = "1s"
        topology = {{ kind = "dumbbell", rate = "1Gbit/s", delay = "80us", limit = "1000p", access_rate = "10Gbit/s", access_delay = "10us" }}
        aqm = {{ name = "red", ecn = true, mean_packet = "1500B", {step} }}
        tcp = {{ cc = "{cc}", ecn = true }}
        flows = [{{ kind = "bulk", count = 4, start_spread = "10ms" }}]
        output = {{ series = false }}"#
    )
}

#[test]
fn dctcp_shares_a_step_with_every_seed() {
    for seed in 1..=20 {
        let summary = run(&data_centre("dctcp", BY_LINUX), seed);
        let link = &summary.bottlenecks[0];
        println!("seed {seed}: Jain {:.3}, {link:?}", summary.jain.overall);
        assert!(summary.jain.overall > 0.95, "seed {seed}: {:?}", summary.flows);
        assert!(link.utilization > 0.95 && link.marks > 1000 && link.drops_aqm == 0, "seed {seed}: {link:?}");
        // 40 packets of 1500 B wait 480 us, and a flow sends at most two windows beyond them.
        assert!((0.2..0.8).contains(&link.queue_delay_ms.p50), "seed {seed}: {link:?}");
        assert!(summary.flows.iter().all(|flow| flow.ecn.used == 1 && flow.timeouts == 0), "{:?}", summary.flows);
    }
}

/// By the paper, the same step drops every packet from 82 on, ECN-capable or not, and without `gentle` from 41 on.
#[test]
fn by_the_paper_a_step_drops_above_its_hard_limit() {
    let gentle = run(&data_centre("dctcp", BY_PAPER), 1);
    assert!(gentle.bottlenecks[0].marks > 1000, "{:?}", gentle.bottlenecks[0]);
    assert!(gentle.bottlenecks[0].queue_bytes.max <= 82 * 1500, "{:?}", gentle.bottlenecks[0]);
    let plain = run(&data_centre("dctcp", &format!("{BY_PAPER}, gentle = false")), 1);
    assert!(plain.bottlenecks[0].drops_aqm > 100, "{:?}", plain.bottlenecks[0]);
    assert!(plain.bottlenecks[0].queue_bytes.max <= 41 * 1500, "{:?}", plain.bottlenecks[0]);
}

/// Three flows, whose SYNs find an empty queue, and a limit of 8 packets that overflows when they begin. RED signals with
/// every packet behind the second: it marks what is ECN-capable and drops retransmissions.
#[test]
fn retransmissions_are_ecn_capable_only_where_that_is_asked_for() {
    let text = |more: &str| {
        format!(
            r#"
            duration = "20s"
            topology = {{ kind = "dumbbell", rate = "1Mbit/s", delay = "20ms", limit = "8p" }}
            aqm = {{ name = "red", ecn = true, weight = 1.0, min_threshold = "1p", max_threshold = "2p", max_probability = 1.0, over_max = "mark" }}
            tcp = {{ cc = "newreno", ecn = true{more} }}
            flows = [{{ kind = "bulk", count = 3 }}]
            output = {{ series = false }}"#
        )
    };
    for (more, dropped) in [("", true), (", ecn_retransmits = true", false)] {
        let summary = run(&text(more), 1);
        let link = &summary.bottlenecks[0];
        assert!(summary.flows.iter().all(|flow| flow.ecn.used == 1), "no SYN is lost");
        assert!(link.drops_overflow > 0 && summary.flows.iter().any(|flow| flow.retransmits > 0), "{link:?}");
        assert_eq!(link.drops_aqm > 0, dropped, "{link:?}");
    }
}

/// A queue of two packets that a flow of UDP keeps full loses some of the first SYNs. RFC 3168 §6.1.1.1: their
/// retransmissions offer no ECN.
#[test]
fn a_flow_that_lost_ecn_says_so() {
    let text = r#"
        duration = "20s"
        topology = { kind = "dumbbell", rate = "1Mbit/s", delay = "10ms", limit = "2p" }
        tcp = { cc = "newreno", ecn = true }
        flows = [
          { kind = "cbr", rate = "2Mbit/s", packet_size = "1000B", stop = "2s" },
          { kind = "bulk", count = 8, start = "500ms", start_spread = "3s" },
          { kind = "bulk", start = "5s", tcp = { ecn = false } },
          { kind = "bulk", start = "20s" },
          { kind = "http", size = "20kB", idle = "1s", idle_distribution = "constant", connection = "new", start = "500ms" },
        ]
        output = { series = false }"#;
    let summary = run(text, 1);
    let ecn = |id: usize| summary.flows[id].ecn;
    let numbers = |id: usize| (ecn(id).asked, ecn(id).used, ecn(id).lost);
    assert_eq!((numbers(0), ecn(0).why), ((0, 0, 0), None), "UDP has no connection");
    let lost = (1..=8).filter(|id| ecn(*id).lost == 1).count();
    assert!((1..8).contains(&lost), "{lost} of 8 lost ECN");
    for id in 1..=8 {
        assert_eq!((ecn(id).asked, ecn(id).used + ecn(id).lost), (1, 1), "{:?}", summary.flows[id]);
        assert_eq!(ecn(id).why, (ecn(id).lost == 1).then_some(EcnLost::SynRetransmitted));
        // The SYN is lost at least once, and the first timeout is 1 s.
        assert_eq!(ecn(id).lost == 1, summary.flows[id].rtt_ms.min > 0.0 && ecn(id).used == 0);
    }
    assert_eq!((numbers(9), ecn(9).why), ((0, 0, 0), None), "did not ask");
    assert_eq!((numbers(10), ecn(10).why), ((1, 0, 0), None), "has no handshake behind it");
    let (asked, used, lost) = numbers(11);
    assert!(asked > 1 && used > 0 && used + lost <= asked && asked - used - lost <= 1, "{:?}", summary.flows[11]);
    let json = serde_json::to_value(&summary.flows).unwrap();
    let said = |id: usize, key: &str| json[id][key].clone();
    assert_eq!((said(9, "ecn_asked"), said(9, "ecn_lost_why")), (0.into(), serde_json::Value::Null));
    assert!((1..=8).any(|id| said(id, "ecn_lost_why") == "syn-retransmitted" && said(id, "ecn_used") == 0));
}
