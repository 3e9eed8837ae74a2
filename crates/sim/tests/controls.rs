//! Every congestion control over whole connections: its known properties, on paths where the result follows from its
//! rule.

use penstock_core::cc::NAMES;
use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};

fn run(text: &str) -> Summary {
    let scenario = Scenario::parse(text, "controls.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap();
    simulation.summary()
}

/// One flow over 10 Mbit/s with a round trip time of 40 ms: 50 kB fill the path.
fn path(cc: &str, buffer: &str, more: &str) -> String {
    format!(
        r#"
        duration = "30s"
        warmup = "10s"
        topology = {{ kind = "dumbbell", rate = "10Mbit/s", delay = "20ms", limit = "{buffer}", access_rate = "100Mbit/s" }}
        tcp = {{ cc = "{cc}", mss = "1000B", initial_window = 20 }}
        flows = [{{ kind = "bulk" }}]
        {more}
        output = {{ series = false }}"#
    )
}

/// With a buffer of one bandwidth-delay product every control keeps the link busy. The exception is Noordwijk, which is
/// not made for losses: its delta divides 19 gaps by 20, so it sends 5 % too much, fills 50 kB in a second, and then
/// needs two trains, another second, to find its timer again. It has a path of its own below. After a loss Prague paces
/// half a window per round trip of the full buffer, which is a quarter of the rate until the queue is gone: 0.9 of the
/// link is left to it. LEDBAT++ spends a tenth of the time in slowdowns.
#[test]
fn every_control_fills_a_path_with_a_buffer_of_its_size() {
    for cc in NAMES.iter().filter(|cc| **cc != "noordwijk") {
        let summary = run(&path(cc, "50kB", ""));
        let (utilization, flow) = (summary.bottlenecks[0].utilization, &summary.flows[0]);
        println!("{cc}: {utilization:.3}, {} retransmits, {} timeouts", flow.retransmits, flow.timeouts);
        assert!(utilization > if ["prague", "ledbat-pp"].contains(cc) { 0.9 } else { 0.93 }, "{cc}: {utilization}");
        assert_eq!(flow.cc, *cc);
    }
}

/// The buffer is ten bandwidth-delay products, 500 kB or 400 ms. Controls that react to losses fill it; those that
/// react to delay or model the path do not. BBR's window is two bandwidth-delay products, so at most one of them waits,
/// 40 ms, and some quanta.
#[test]
fn delay_and_models_keep_a_large_buffer_empty() {
    let queue = |cc: &str| run(&path(cc, "500kB", "")).bottlenecks[0].queue_delay_ms.p50;
    for cc in ["newreno", "cubic", "bic", "highspeed", "scalable", "hybla"] {
        assert!(queue(cc) > 150.0, "{cc}: {}", queue(cc));
    }
    assert!(queue("bbr") < 40.0, "bbr: {}", queue("bbr"));
    // Two to four segments of 0.84 ms wait or are being sent.
    let vegas = run(&path("vegas", "500kB", "").replace("initial", "ack_every_segment = true, initial"));
    assert!((0.84..3.4).contains(&vegas.bottlenecks[0].queue_delay_ms.p50), "{:?}", vegas.bottlenecks[0]);
}

/// LEDBAT++ keeps about its 60 ms alone, though the buffer holds 400 ms; beside a NewReno flow, which fills the buffer, it
/// stays at its least window most of the time.
#[test]
fn background_transfers_give_way() {
    let alone = run(&path("ledbat-pp", "500kB", ""));
    let queue = &alone.bottlenecks[0].queue_delay_ms;
    assert!((20.0..75.0).contains(&queue.p50) && queue.p90 < 80.0, "{queue:?}");
    assert!(alone.bottlenecks[0].utilization > 0.85, "{}", alone.bottlenecks[0].utilization);
    let both = "flows = [{ kind = \"bulk\" }, { kind = \"bulk\", cc = \"newreno\" }]";
    let beside = run(&path("ledbat-pp", "500kB", "").replace("flows = [{ kind = \"bulk\" }]", both));
    let rates: Vec<f64> = beside.flows.iter().map(|flow| flow.goodput_bps).collect();
    println!("alone {:.3}, {queue:?}; beside NewReno {rates:?}", alone.bottlenecks[0].utilization);
    assert!(rates[0] < 0.03 * rates[1], "{rates:?}");
    assert!(rates[0] + rates[1] > 9e6, "{rates:?}");
}

/// A flow that begins when another one has the link: with slowdowns both see the path without a queue and share it; LEDBAT
/// without them leaves most to the latecomer, which takes the queue of the first for the path.
#[test]
fn slowdowns_let_background_transfers_share() {
    let shares = |factor: &str| {
        let text =
            path("X", "500kB", "").replace("\"X\"", &format!("{{ name = \"ledbat-pp\", slowdown_factor = {factor} }}"));
        let flows = "flows = [{ kind = \"bulk\" }, { kind = \"bulk\", start = \"20s\" }]";
        let text = text
            .replace("flows = [{ kind = \"bulk\" }]", flows)
            .replace("\"30s\"", "\"150s\"")
            .replace("\"10s\"", "\"60s\"");
        let summary = run(&text);
        summary.flows[0].goodput_bps / summary.flows[1].goodput_bps
    };
    let (with, without) = (shares("9"), shares("1e6"));
    println!("the first has {with:.2} of the second with slowdowns, {without:.2} with none");
    assert!((0.6..1.7).contains(&with), "{with}");
    assert!(without < 0.5, "{without}");
}

/// The dissertation's satellite link (Modena, 2.2.2): 1 Mbit/s, 300 ms one way, MSS 500, a buffer of 4 MB, bursts of 20.
/// Two trains of ACKs, 1.7 s, find the dispersion; from there on the link is full.
#[test]
fn noordwijk_fills_the_satellite_link_it_was_made_for() {
    let goodput = |cc: &str| {
        let text = path(cc, "4MB", "").replace("10Mbit", "1Mbit").replace("20ms", "300ms").replace("1000B", "500B");
        run(&text.replace("\"10s\"", "\"0s\"")).bottlenecks[0].utilization
    };
    let noordwijk = goodput("noordwijk");
    println!("noordwijk {noordwijk:.3}, newreno {:.3}", goodput("newreno"));
    assert!(noordwijk > 0.9, "{noordwijk}");
}

/// The smallest transfers with losses: every control delivers all data over a path that loses one packet in a hundred,
/// with SACK and without.
#[test]
fn every_control_brings_a_transfer_to_its_end_over_a_lossy_path() {
    for cc in NAMES {
        for (sack, size) in [(true, "300kB"), (false, "300kB"), (true, "1B")] {
            let summary = run(&format!(
                r#"
                duration = "300s"
                topology = {{ kind = "dumbbell", rate = "10Mbit/s", delay = "20ms", limit = "50kB", loss = 0.01 }}
                tcp = {{ cc = "{cc}", mss = "1000B", sack = {sack} }}
                flows = [{{ kind = "transfer", size = "{size}" }}]
                output = {{ series = false }}"#
            ));
            assert!(summary.flows[0].completion_s.is_some(), "{cc}, sack = {sack}, {size}: {:?}", summary.flows[0]);
        }
    }
}

/// Random losses are no sign of congestion. At one loss in a hundred and 40 ms Reno's law gives 1.22/sqrt(0.01) = 12
/// segments per round trip, 2.4 Mbit/s. BBR's model ignores losses, and Westwood+ measures the path as wide as before.
#[test]
fn random_losses_cost_a_model_little() {
    let goodput = |cc: &str| {
        let text = path(cc, "100kB", "").replace("access_rate", "loss = 0.01, access_rate");
        run(&text).flows[0].goodput_bps / 1e6
    };
    let (reno, westwood, bbr) = (goodput("newreno"), goodput("westwood"), goodput("bbr"));
    println!("newreno {reno:.2}, westwood {westwood:.2}, bbr {bbr:.2} Mbit/s");
    assert!(reno < 4.0 && westwood > 1.3 * reno && bbr > 8.0, "{reno} {westwood} {bbr}");
}

/// With one loss in 250 segments Reno's law gives 1.31 MSS/(RTT sqrt(p)) = 1.66 Mbit/s over 100 ms. Hybla has the rate
/// of a path of 25 ms: four times as much.
#[test]
fn hybla_does_on_a_long_path_what_reno_does_on_a_short_one() {
    let goodput = |cc: &str| {
        let text = path(cc, "150kB", "").replace("20ms", "50ms").replace("access_rate", "loss = 0.004, access_rate");
        run(&text.replace("\"30s\"", "\"300s\"")).flows[0].goodput_bps
    };
    let (law, hybla) = (1.31 * 8000.0 / (0.1 * 0.004f64.sqrt()), goodput("hybla"));
    println!("the law {law:.0}, newreno {:.0}, hybla {hybla:.0} bit/s", goodput("newreno"));
    assert!((goodput("newreno") / law - 1.0).abs() < 0.2);
    assert!((hybla / (4.0 * law) - 1.0).abs() < 0.2, "{hybla}");
}

const STEP: &str = r#"aqm = { name = "red", min_threshold = "15p", max_threshold = "16p", max_probability = 1.0, weight = 1.0, ecn = true }"#;

/// A queue marks all packets above 15 kB, which is 12 ms: DCTCP and Prague stay there without a loss, and fill the
/// link.
#[test]
fn behind_a_step_of_marks_scalable_controls_keep_a_short_queue_and_a_full_link() {
    for cc in ["dctcp", "prague"] {
        let summary = run(&path(cc, "500kB", STEP).replace("initial_window", "ecn = true, initial_window"));
        let queue = &summary.bottlenecks[0];
        println!("{cc}: {:.3}, p99 {} ms", queue.utilization, queue.queue_delay_ms.p99);
        assert!(queue.utilization > 0.97, "{cc}: {}", queue.utilization);
        assert!(queue.queue_delay_ms.p99 < 16.0, "{cc}: {}", queue.queue_delay_ms.p99);
        assert!(queue.marks > 100 && queue.drops_aqm + queue.drops_overflow == 0, "{cc}: {queue:?}");
    }
}

/// Marks of a classic queue ask for half of the window, and Prague's are few, so it takes a multiple of CUBIC's part; with
/// the fallback both get about the same. Behind DualPI2, whose delay is short and steady, nothing changes. The single
/// queue of PI2 marks Prague as it should be, but its delay is that of a classic queue: there the fallback gives too much
/// away, as its authors say of long delays.
#[test]
fn prague_shares_a_classic_queue_with_cubic_if_it_may_fall_back() {
    let ratio = |aqm: &str, classic_fallback: bool| {
        let flows = format!(
            r#"flows = [
              {{ kind = "bulk", tcp = {{ cc = {{ name = "prague", classic_fallback = {classic_fallback} }} }} }},
              {{ kind = "bulk" }}]"#
        );
        let text = path("cubic", "2MB", &format!("aqm = {{ name = {aqm:?}, ecn = true }}"))
            .replace("10Mbit/s", "40Mbit/s")
            .replace("initial_window", "ecn = true, initial_window")
            .replace("flows = [{ kind = \"bulk\" }]", &flows);
        let text = if aqm == "dualpi2" { text.replace(", ecn = true }\n", " }\n") } else { text };
        let summary = run(&text);
        let ratio = summary.flows[0].goodput_bps / summary.flows[1].goodput_bps;
        println!("{aqm}, fallback {classic_fallback}: {ratio:.2}");
        ratio
    };
    for aqm in ["codel", "pie"] {
        let (without, with) = (ratio(aqm, false), ratio(aqm, true));
        assert!(without > 4.0 && (0.75..1.33).contains(&with), "{aqm}: {without}, {with}");
    }
    assert_eq!(ratio("dualpi2", false), ratio("dualpi2", true));
    let (without, with) = (ratio("pi2", false), ratio("pi2", true));
    assert!((0.75..1.5).contains(&without) && with < 0.5, "{without}, {with}");
}

/// 48 segments fill the path, another 665 the buffer. Slow start doubles the window until the buffer overflows. HyStart
/// notices the queue by the lowest round trip time of the third round, after one round has doubled a window of at most
/// 48 to 96 and the next one to 192; then five rounds that grow by a quarter give 192 1.25^5 = 586 segments.
#[test]
fn hystart_avoids_the_losses_of_slow_start() {
    let losses = |hystart: bool| {
        let text = path("cubic", "700kB", "").replace("\"30s\"", "\"5s\"").replace("\"10s\"", "\"0s\"");
        let old = run(&text.replace("initial_window = 20", &format!("initial_window = 10, hystart = {hystart}")));
        let table = format!("cc = {{ name = \"cubic\", hystart = {hystart} }}");
        let new = run(&text.replace("initial_window = 20", "initial_window = 10").replace("cc = \"cubic\"", &table));
        assert_eq!(old, new, "both spellings mean the same");
        (old.bottlenecks[0].drops_overflow, old.flows[0].goodput_bps)
    };
    let ((plain, _), (hystart, goodput)) = (losses(false), losses(true));
    assert!(plain > 20 && hystart == 0, "{plain} {hystart}");
    assert!(goodput > 8e6, "{goodput}");
}

/// An ACK of two segments allows two more. Without pacing they leave back to back, and the second waits 0.42 ms at the
/// first link. BBR sends them 0.84 ms apart, at the rate of the second link.
#[test]
fn paced_segments_do_not_wait_for_each_other() {
    let first_queue = |cc: &str| {
        let summary = run(&format!(
            r#"
            duration = "30s"
            topology = {{ kind = "parking-lot", hops = [
                {{ rate = "20Mbit/s", delay = "1ms", limit = "1MB" }},
                {{ rate = "10Mbit/s", delay = "19ms", limit = "50kB" }},
            ] }}
            tcp = {{ cc = "{cc}", mss = "1000B" }}
            flows = [{{ kind = "bulk", from = "r0", to = "r2" }}]
            output = {{ series = false }}"#
        ));
        summary.bottlenecks[0].queue_delay_ms.p90
    };
    let (reno, bbr) = (first_queue("newreno"), first_queue("bbr"));
    assert!(reno > 0.3 && bbr < 0.1, "{reno} {bbr}");
}
