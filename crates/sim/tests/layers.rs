//! Links that add bytes to packets.

use penstock_core::registry::NAMES;
use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};

fn run(text: &str) -> Summary {
    let scenario = Scenario::parse(text, "layers.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let again = Scenario::parse(&scenario.resolved(), "resolved.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scenario.links, again.links, "the resolved form says the same");
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap();
    simulation.summary()
}

/// Packets of `size` bytes, with the 28 of IP and UDP, for a second, at 10 Mbit/s, through this discipline before a link of 8 Mbit/s.
fn datagrams(link: &str, aqm: &str, size: u32) -> Summary {
    run(&format!(
        "duration = \"1s\"\n\
         topology = {{ kind = \"dumbbell\", rate = \"8Mbit/s\", delay = \"1ms\", limit = \"50p\", {link} }}\n\
         aqm = {{ name = \"{aqm}\" }}\n\
         flows = [{{ kind = \"cbr\", rate = \"10Mbit/s\", packet_size = \"{}B\" }}]\n",
        size - 28
    ))
}

/// The packets that arrive take the part of the link that is said to be used, whatever the discipline: 1749 of 1500 bytes with
/// 44 bytes over ATM, and 106 of 40. A full link carries 8 Mbit/s of those and not of packets.
#[test]
fn every_discipline_stands_before_a_link_that_adds_bytes() {
    for (size, on_wire) in [(1500, 1749.0), (40, 106.0)] {
        for aqm in NAMES {
            let found = datagrams("overhead = 44, framing = \"atm\"", aqm, size);
            let (link, flow) = (&found.bottlenecks[0], &found.flows[0]);
            let bits = flow.delivered_bytes as f64 / f64::from(size - 28) * on_wire * 8.0;
            let flight = 8000.0 + 2.0 * on_wire * 8.0; // what the link sent in its last millisecond, which is its delay
            assert!((link.utilization * 8e6 - bits).abs() <= flight, "{aqm}, {size} B: {link:?}");
            assert!(link.utilization <= 1.0, "{aqm}: {link:?}");
        }
    }
    let found = datagrams("overhead = 44, framing = \"atm\"", "droptail", 1500);
    assert!(found.bottlenecks[0].utilization > 0.997, "{:?}", found.bottlenecks[0]);
    let packets = found.flows[0].delivered_bytes / 1472;
    assert!((569..=572).contains(&packets), "8 Mbit are 571.8 packets of 1749 bytes: {packets}");
}

/// The way back has a layer of its own: 30 bytes and 65 for 64 there, nothing here.
#[test]
fn each_direction_has_its_layer() {
    let packets = |direction: &str, layer: &str| {
        let found = run(&format!(
            "duration = \"10s\"\n\
             topology = {{ kind = \"dumbbell\", rate = \"8Mbit/s\", delay = \"1ms\", limit = \"50p\", {layer} }}\n\
             flows = [{{ kind = \"cbr\", rate = \"10Mbit/s\", packet_size = \"972B\", direction = \"{direction}\" }}]\n"
        ));
        found.flows[0].delivered_bytes / 972
    };
    let both = "link_layer = \"pppoe-ptm\"";
    let there = "link_layer = \"pppoe-ptm\", reverse_overhead = 0, reverse_framing = \"ethernet\"";
    // 1030 bytes are 17 blocks: 1047 in all.
    let of = |bytes: u64| 10_000_000 / bytes - 2..=10_000_000 / bytes;
    for (direction, layer, bytes) in
        [("forward", both, 1047), ("reverse", both, 1047), ("forward", there, 1047), ("reverse", there, 1000)]
    {
        let found = packets(direction, layer);
        assert!(of(bytes).contains(&found), "{direction}, {layer}: {found}");
    }
}

/// PINK shares out what packets can use of the link, so no queue stands: with the rate of the line, four uploads over ATM would be
/// given windows a sixth too large.
#[test]
fn disciplines_reckon_with_the_rate_of_packets() {
    let found = |link: &str| {
        run(&format!(
            "duration = \"30s\"\nwarmup = \"10s\"\ntcp = {{ profile = \"linux\" }}\n\
             topology = {{ kind = \"dumbbell\", rate = \"8Mbit/s\", delay = \"20ms\", limit = \"500p\", {link} }}\n\
             aqm = {{ name = \"pink\" }}\n\
             flows = [{{ kind = \"bulk\", count = 4, start_spread = \"1s\" }}]\n"
        ))
        .bottlenecks
        .swap_remove(0)
    };
    let [plain, atm] = ["", "overhead = 44, framing = \"atm\""].map(found);
    let delays = [plain.queue_delay_ms.p90, atm.queue_delay_ms.p90];
    assert!(plain.utilization > 0.93 && atm.utilization > 0.93, "{} {}", plain.utilization, atm.utilization);
    assert!(delays[1] < 2.0 * delays[0] + 2.0, "{delays:?}");
}

#[test]
fn a_mistake_is_told_with_its_place() {
    let text = "duration = \"1s\"\ntopology = { kind = \"dumbbell\", rate = \"1Mbit/s\", delay = \"1ms\", reverse_mpu = 300 }\n\
                flows = [{ kind = \"bulk\" }]\n";
    let mistake = Scenario::parse(text, "x.toml").unwrap_err().to_string();
    assert!(mistake.contains("x.toml:2") && mistake.contains("at most 256"), "{mistake}");
}
