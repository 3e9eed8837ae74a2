//! Recovery converges, whatever the control and however a host detects and repairs losses.

#[path = "paths/mod.rs"]
mod paths;

use paths::{EXEMPT, Path, Queue, Repair, repairs};
use penstock_core::cc::NAMES;
use penstock_core::units::Span;
use penstock_sim::tcp_trace::NONE;
use penstock_sim::{Column, Scenario, Simulation, TcpTrace};

/// The defaults of a host, with delayed ACKs and RACK as asked for.
fn host(rack: bool) -> Repair {
    Repair { sack: true, rack, prr: true, delayed_acks: true }
}

/// A part of the grid of `examples/verify_recovery.rs` that takes seconds: every control meets every way of repair, over
/// links, delays and queues that change from one to the next.
#[test]
fn losses_are_those_of_the_control_and_the_link_is_used() {
    let links = [(5.0, 40.0), (10.0, 100.0), (20.0, 40.0), (10.0, 200.0), (5.0, 400.0)];
    let queues = [Queue::DropTail(1.0), Queue::CoDel, Queue::DropTail(0.25), Queue::Pie];
    let controls = NAMES.iter().filter(|name| EXEMPT.iter().all(|(exempt, _)| exempt != *name));
    let mut n = 0;
    for cc in controls {
        for repair in repairs() {
            let ((mbit, rtt_ms), queue) = (links[n % links.len()], queues[n % queues.len()]);
            let flows = if n.is_multiple_of(3) { 1 } else { 4 };
            n += 1;
            let path = Path { cc, repair, flows, mbit, rtt_ms, queue, calm: false };
            let found = path.judge(1);
            let open = found.broken().filter(|broken| path.beyond_law(broken).is_none());
            assert!(open.is_none(), "{path}: {}", open.unwrap());
        }
    }
    assert!(n >= 90, "{n} paths");
}

/// What parts from the law is explained by a run in which it does not: slow start that overflows a small buffer, a burst without
/// PRR, a retransmission that is lost where nothing but a timeout can tell.
#[test]
fn what_parts_from_the_law_has_a_twin_that_does_not() {
    let part = |cc, repair, flows, (mbit, rtt_ms), queue| {
        let path = Path { cc, repair, flows, mbit, rtt_ms, queue, calm: false };
        let broken = path.judge(1).broken().unwrap_or_else(|| panic!("{path} holds"));
        path.beyond_law(&broken).unwrap_or_else(|| panic!("{path}: {broken}"))
    };
    let plain = Repair { sack: true, rack: false, prr: false, delayed_acks: false };
    let quarter = Queue::DropTail(0.25);
    let why = part("newreno", Repair { prr: true, ..plain }, 1, (50.0, 200.0), quarter);
    assert!(why.contains("begun calmly"), "{why}");
    let why = part("newreno", Repair { delayed_acks: true, ..plain }, 4, (100.0, 400.0), quarter);
    assert!(why.contains("with PRR"), "{why}");
    let why = part("hybla", plain, 1, (20.0, 400.0), quarter);
    assert!(why.contains("with RACK"), "{why}");
    let why = part("vegas", plain, 4, (5.0, 40.0), Queue::DropTail(1.0));
    assert!(why.contains("four packets"), "{why}");
}

/// Four flows of Vegas want up to `beta` packets each in a buffer of 16, and more where the smallest round trip that they saw had
/// a queue in it. With two packets each, nothing is lost but at the start.
#[test]
fn vegas_loses_where_its_flows_fill_the_buffer() {
    let repair = Repair { sack: true, rack: false, prr: false, delayed_acks: false };
    let path =
        Path { cc: "vegas", repair, flows: 4, mbit: 5.0, rtt_ms: 40.0, queue: Queue::DropTail(1.0), calm: false };
    let loses = |beta: f64| {
        let control = format!("cc = {{ name = \"vegas\", beta = {beta:?} }}");
        let text = path.scenario(1).replace("cc = \"vegas\"", &control);
        let scenario = Scenario::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
        let mut simulation = Simulation::new(&scenario);
        simulation.advance(Span::MAX).unwrap();
        simulation.summary().bottlenecks[0].drops_overflow
    };
    let (four, two) = (loses(4.0), loses(2.0));
    assert!(two * 5 < four, "{two} with two, {four} with four");
}

/// Compound hears of the queue a round trip late: in a buffer of 42 packets it goes from below its 30 to full in that time.
#[test]
fn a_law_hears_of_the_queue_a_round_trip_late() {
    let path = Path {
        cc: "compound",
        repair: host(true),
        flows: 1,
        mbit: 10.0,
        rtt_ms: 200.0,
        queue: Queue::DropTail(0.25),
        calm: false,
    };
    let found = path.judge(1);
    let law = found.law_use.expect("drop-tail has a law");
    assert!((law - found.link_use).abs() < 0.07 && law < 0.85, "{law} by law, {} in the run", found.link_use);
}

/// What RACK made a storm of retransmissions: with and without it, losses are of the same order.
#[test]
fn rack_makes_no_storm() {
    for cc in ["newreno", "cubic", "cubic-linux", "bic", "highspeed", "scalable", "hybla"] {
        for (flows, mbit, rtt_ms, queue) in
            [(4, 10.0, 100.0, Queue::DropTail(1.0)), (1, 20.0, 200.0, Queue::DropTail(0.5))]
        {
            let run = |rack| Path { cc, repair: host(rack), flows, mbit, rtt_ms, queue, calm: false }.judge(1).loss;
            let (with, without) = (run(true), run(false));
            assert!(with < 1.5 * without + 0.005, "{cc}: {with:.4} with RACK, {without:.4} without");
        }
    }
}

/// Slow start that ends in PIE: the drops of the whole run, per flow's first second and after it.
#[test]
fn slow_start_that_ends_in_pie_is_over_after_a_few_round_trips() {
    for (cc, flows, mbit, rtt_ms) in [("newreno", 16, 30.0, 60.0), ("cubic", 2, 5.0, 200.0)] {
        let found = Path { cc, repair: host(true), flows, mbit, rtt_ms, queue: Queue::Pie, calm: false }.judge(1);
        assert!(found.loss < 0.03, "{cc}: {:.4}", found.loss);
    }
}

/// A few per cent of buffer do not decide over a link: neighbours from 0.8 to 2 products differ by less than 3 % in use,
/// slow start and the recovery at its end included.
#[test]
fn neighbouring_buffers_use_the_link_alike() {
    for (cc, rack, mbit, rtt_ms) in [
        ("newreno", false, 100.0, 80.0),
        ("newreno", true, 20.0, 200.0),
        ("cubic", false, 20.0, 100.0),
        ("cubic", true, 50.0, 80.0),
    ] {
        let uses: Vec<f64> = (0..25)
            .map(|step| {
                let queue = Queue::DropTail(0.8 + 0.05 * f64::from(step));
                Path { cc, repair: host(rack), flows: 1, mbit, rtt_ms, queue, calm: false }.use_from_the_start(30.0)
            })
            .collect();
        for (step, pair) in uses.windows(2).enumerate() {
            assert!((pair[0] - pair[1]).abs() < 0.03, "{cc}, {mbit} Mbit/s, {rtt_ms} ms, step {step}: {pair:?}");
        }
        assert!(uses.iter().all(|used| *used > 0.85), "{cc}: {uses:?}");
    }
}

/// BBR has no threshold before its first loss, and none is told to it within a window that was marked: its window in
/// recovery was the largest number and three segments, which wrapped to less than three segments.
#[test]
fn a_control_without_a_threshold_keeps_its_window_in_recovery() {
    let text = r#"
duration = "310ms"
seed = 821
aqm = { name = "feng-red", ecn = true }
topology = { kind = "dumbbell", rate = "10Mbit/s", delay = "20ms", access_rate = "1Gbit/s", limit = "105kB", reverse_aqm = "fq-codel" }
tcp = { cc = "bbr", ecn = true, sack = false, timestamps = false }
flows = [{ kind = "bulk", count = 2 }, { kind = "bulk", count = 12, stop = "155ms" }]
"#;
    let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut simulation = Simulation::new(&scenario);
    simulation.audit(&scenario);
    simulation.advance(Span::MAX).unwrap(); // where a sum overflows, which ends a test
    assert!(simulation.summary().flows.iter().map(|flow| flow.retransmits).sum::<u64>() > 0, "there is a recovery");
    assert_eq!(simulation.end_audit().violations, []);
}

/// One BBR flow in Linux form without SACK, whose timeouts decide over its goodput.
fn timeouts_without_sack(seed: u64, seconds: u32) -> Simulation {
    let text = format!(
        r#"
duration = "{seconds}s"
seed = {seed}
aqm = {{ name = "droptail" }}
topology = {{ kind = "dumbbell", rate = "7Mbit/s", delay = "11ms", limit = "12p" }}
tcp = {{ cc = {{ name = "bbr", compat = "linux" }}, sack = false, rack = false, without_sack = "linux", acknowledging = "linux" }}
flows = [{{ kind = "bulk" }}]
"#
    );
    Simulation::new(&Scenario::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}")))
}

/// The ACK that follows a timeout covers all that had arrived before. Counted from the timeout on it would be a rate of 20 times
/// the link's; the kernel counts from the last delivery before it (`tcp_rate_skb_sent`). The largest paces of three runs of
/// Linux 6.12 on this path are 23, 29 and 38 Mbit/s.
#[test]
fn what_a_timeout_reveals_is_no_rate_of_the_link() {
    let mut simulation = timeouts_without_sack(1, 6);
    let mut trace = TcpTrace::new(&simulation, &[], Span::from_millis(5)).unwrap();
    while !trace.advance(&mut simulation, Span::from_secs(1)).unwrap() {}
    assert!(simulation.summary().flows[0].timeouts > 0, "there is a timeout");
    let tables = trace.tables();
    let (_, pace) = tables[0].columns.iter().find(|(name, _)| *name == "pacing_bps").unwrap();
    let Column::U64(pace) = pace else { panic!("rates are whole numbers") };
    let largest = pace.iter().filter(|pace| **pace != NONE).max().unwrap();
    assert!(*largest < 70_000_000, "{largest} bit/s on a link of 7 Mbit/s");
}

/// The kernel counts the losses of a timeout before its control hears of it (`tcp_enter_loss`), which finds a policer then and
/// loses its retransmissions. Seven runs of Linux 6.12 have 2.4 to 5.2 Mbit/s in 20 s; told in the other order it is 6.3.
#[test]
fn losses_of_a_timeout_count_before_it() {
    for seed in 1..=3 {
        let mut simulation = timeouts_without_sack(seed, 20);
        simulation.advance(Span::MAX).unwrap();
        let goodput = simulation.summary().flows[0].goodput_bps / 1e6;
        assert!((2.0..5.6).contains(&goodput), "seed {seed}: {goodput} Mbit/s");
    }
}
