//! Throughput advice in whole runs: flows that stand for QUIC keep to the part that a network element tells them.

use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};

fn run(text: &str) -> Summary {
    let scenario = Scenario::parse(text, "scone.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut simulation = Simulation::new(&scenario);
    let whole = simulation.duration();
    simulation.advance(whole).unwrap();
    simulation.summary()
}

/// Flows over 10 Mbit/s and 40 ms before a deep FIFO.
fn scenario(link: &str, rest: &str) -> String {
    format!(
        "duration = \"60s\"\nwarmup = \"10s\"\n{rest}\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit/s\"\n\
         delay = \"20ms\"\nlimit = \"1000p\"\n{link}\n"
    )
}

const ASKS: &str = "[tcp]\nscone = \"20s\"\n";

fn four(link: &str, tcp: &str) -> Summary {
    run(&scenario(link, &format!("flows = [{{ kind = \"bulk\", count = 4 }}]\n{tcp}")))
}

/// Each has the highest signal that is not above a quarter, 10^(27/20) x 100 kbit/s, and so nothing is lost.
#[test]
fn flows_keep_to_their_part() {
    let often = "[tcp]\nscone = \"1s\"\n";
    let (advised, alone) = (four("scone = true", often), four("", often));
    for flow in &advised.flows {
        assert_eq!(flow.advised_bps, Some(2_238_721));
        // Seven whole segments of 7.5 in a round trip, of which the last waits for its ACK.
        assert!((1.6e6..2.24e6).contains(&flow.goodput_bps), "{}", flow.goodput_bps);
    }
    let (link, without) = (&advised.bottlenecks[0], &alone.bottlenecks[0]);
    let told = link.scone.unwrap();
    // Three at the begin and one in each second, of which few are changed.
    assert!((240..=252).contains(&told.seen) && told.lowered + told.spared == told.seen, "{told:?}");
    assert!((4 * 6..4 * 12).contains(&told.lowered), "{told:?}");
    assert_eq!((told.flows, told.busy), (4, 4));
    // In the first second nobody knows of the others.
    assert!(link.drops_overflow == 0 && link.queue_delay_ms.p90 < 10.0, "{:?}", link.queue_delay_ms);
    assert!(without.scone.is_none() && alone.flows[0].advised_bps.is_none());
    assert!(without.drops_overflow > 0 && without.queue_delay_ms.p90 > 500.0, "{:?}", without.queue_delay_ms);
}

/// A fall is told with the next SCONE packet, at most 20 s later; a rise holds 67 s after the last low signal.
#[test]
fn a_fall_is_heard_within_an_interval_and_a_rise_after_a_period() {
    let change =
        |at: u32, rate: u32| format!("[[changes]]\nlink = \"bottleneck\"\nat = \"{at}s\"\nrate = \"{rate}Mbit/s\"\n");
    let text = |seconds: u32| {
        scenario("scone = true", &format!("flows = [{{ kind = \"bulk\" }}]\n{ASKS}{}{}", change(30, 5), change(50, 10)))
            .replace("60s", &format!("{seconds}s"))
    };
    let advised = |seconds| run(&text(seconds)).flows[0].advised_bps;
    // SCONE packets leave at about 0, 20, 40, 60, 80 and 100 s.
    assert_eq!(advised(39), Some(10_000_000), "not heard yet");
    let low = Some(4_466_836);
    assert_eq!([advised(42), advised(62), advised(105)], [low; 3]);
    assert_eq!(advised(109), Some(10_000_000), "67 s after the signal of about 40 s");
}

/// PINK counts flows that keep to advice, so flows of TCP leave them their part and both have the same.
#[test]
fn tcp_behind_pink_leaves_room_for_quic() {
    let flows = "flows = [{ kind = \"bulk\", count = 3 }, { kind = \"bulk\", tcp = { scone = \"20s\" } }]\n";
    let summary =
        run(&scenario("scone = true", &format!("{flows}aqm = {{ name = \"pink\", queue = \"fq\", c = 0.965 }}\n")));
    let quic = summary.flows[3].goodput_bps;
    assert_eq!(summary.flows[3].advised_bps, Some(2_238_721), "a quarter of 10 Mbit/s, rounded down");
    for tcp in &summary.flows[..3] {
        // The window of QUIC holds for the shortest round trip, and packets wait for those of the others.
        assert!((0.9..1.6).contains(&(tcp.goodput_bps / quic)), "{} beside {quic}", tcp.goodput_bps);
    }
    let link = &summary.bottlenecks[0];
    let active = link.algorithm.as_ref().unwrap()["active"].as_u64();
    assert_eq!((active, link.drops_overflow), (Some(3), 0), "no segment of QUIC is one of TCP");
    assert!(link.queue_delay_ms.p90 < 20.0, "{:?}", link.queue_delay_ms);
}

/// Flows that pause leave their part to others.
#[test]
fn idle_flows_take_nothing() {
    let idle = "{ kind = \"http\", count = 20, size = \"1kB\", idle = \"30s\", connection = \"same\" }";
    let text = scenario("scone = true", &format!("flows = [{{ kind = \"bulk\" }}, {idle}]\n{ASKS}"));
    let summary = run(&text);
    assert!(summary.bottlenecks[0].scone.unwrap().flows >= 20);
    assert!(summary.flows[0].advised_bps >= Some(8_912_509), "{:?}", summary.flows[0].advised_bps);
}

/// What a scenario says is written as it was read.
#[test]
fn its_keys_are_written() {
    let text = scenario("scone = true\nreverse_scone = true", &format!("flows = [{{ kind = \"bulk\" }}]\n{ASKS}"));
    let resolved = Scenario::parse(&text, "f").unwrap().resolved();
    assert!(resolved.contains("\nscone = true") && resolved.contains("reverse_scone = true"), "{resolved}");
    assert!(resolved.contains("scone = \"20s\""), "{resolved}");
    assert_eq!(Scenario::parse(&resolved, "g").unwrap().resolved(), resolved);
    let mistake = Scenario::parse(&text.replace("20s", "40s"), "f").unwrap_err().to_string();
    assert!(mistake.contains("33.5s"), "{mistake}");
}
