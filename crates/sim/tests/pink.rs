//! What PINK promises (document 000 §4, §6.1, §6.3), held on the paper's two testbeds with 2 to 64 flows that start at
//! once or within a second: the queue stays below the bandwidth-delay product at every instant, nothing is dropped,
//! goodput is steady and near the limit, round trips stay near the base, flows share alike.
//!
//! The queue has twice the room it should need, so that the invariant and not the limit is what holds.

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};

const C: f64 = 0.95;
/// Payload of a full segment, and its packet with headers and timestamps.
const MSS: f64 = 1000.0;
const FRAME: f64 = 1052.0;
const FLOWS: [u32; 6] = [2, 4, 8, 16, 32, 64];

struct Testbed {
    rate_bps: f64,
    delay: &'static str,
    bdp: &'static str,
    room: &'static str,
    duration: &'static str,
    warmup: &'static str,
}

/// Table 2.
const DSL: Testbed =
    Testbed { rate_bps: 10e6, delay: "50ms", bdp: "125kB", room: "250kB", duration: "60s", warmup: "10s" };
/// Table 3.
const SAT: Testbed =
    Testbed { rate_bps: 4e6, delay: "350ms", bdp: "350kB", room: "700kB", duration: "120s", warmup: "30s" };

fn run(testbed: &Testbed, flows: u32, spread: &str) -> Summary {
    let Testbed { rate_bps, delay, bdp, room, duration, warmup } = testbed;
    let text = format!(
        r#"
duration = "{duration}"
warmup = "{warmup}"
topology = {{ kind = "dumbbell", rate = "{rate_bps}bit/s", delay = "{delay}", limit = "{room}", access_rate = "100Mbit/s", access_delay = "1.45ms" }}
aqm = {{ name = "pink", c = {C} }}
tcp = {{ cc = "newreno", mss = "1000B", ack_every_segment = true }}
flows = [{{ kind = "bulk", count = {flows}, start_spread = "{spread}" }}]
invariants = {{ max_queue = "{bdp}", no_drops = true }}
"#
    );
    let scenario = Scenario::parse(&text, "pink.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap_or_else(|broken| panic!("{flows} flows within {spread}: {broken}"));
    simulation.summary()
}

/// Steady within 2 % from the 10th to the 90th percentile, and the mean within 3 % of what can be had.
fn assert_goodput(testbed: &Testbed, flows: u32, summary: &Summary) {
    let goodput = &summary.goodput_1s_bps;
    assert!(goodput.p10 >= 0.98 * goodput.p90, "{flows} flows: {goodput:?}");
    let possible = testbed.rate_bps * C.min(MSS / FRAME);
    assert!((goodput.mean / possible - 1.0).abs() <= 0.03, "{flows} flows: {} of {possible}", goodput.mean);
}

fn assert_dsl(spread: &str) {
    for flows in FLOWS {
        let summary = run(&DSL, flows, spread);
        assert_goodput(&DSL, flows, &summary);
        let rtt = &summary.rtt_ms;
        assert!(rtt.p90 - rtt.min <= 5.0, "{flows} flows: {rtt:?}");
        assert!(summary.jain.worst_1s >= 0.95, "{flows} flows: {:?}", summary.jain);
    }
}

#[test]
fn dsl_all_at_once() {
    assert_dsl("0s");
}

#[test]
fn dsl_within_a_second() {
    assert_dsl("1s");
}

#[test]
fn satellite_all_at_once_and_within_a_second() {
    for flows in FLOWS {
        for spread in ["0s", "1s"] {
            let summary = run(&SAT, flows, spread);
            assert_goodput(&SAT, flows, &summary);
            assert!(summary.jain.overall >= 0.99, "{flows} flows: {:?}", summary.jain);
        }
    }
}
