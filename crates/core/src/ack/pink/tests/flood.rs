//! SYN floods: 1000 SYNs per second of forged sources beside eight transfers over 100 Mbit/s and 100 ms.

use super::path::*;
use super::*;

const FAST: Rate = Rate::from_bps(100_000_000);

/// Payload of the transfers in the ten seconds after two of flood.
fn received(sampling: Sampling, flooded: bool) -> f64 {
    let mut path = Path::new(|c| c.sampling = sampling, FAST, greedy(8));
    if flooded {
        path.flood(at_ms(3000), 1000);
    }
    path.run_until(at_ms(5000));
    path.take_received();
    path.run_until(at_ms(15_000));
    path.take_received().iter().sum::<u64>() as f64
}

#[test]
fn a_flood_costs_the_capacity_it_occupies_and_no_more() {
    let (quiet, flooded) = (received(Sampling::Always, false), received(Sampling::Always, true));
    let occupied = 1000.0 * 52.0 * 8.0 / 100e6; // packets of 52 bytes here
    eprintln!("flood: {}", flooded / quiet);
    assert!(flooded >= quiet * (1.0 - occupied - 0.01), "{flooded} of {quiet}");
}

#[test]
fn counting_every_syn_gives_the_link_to_the_flood() {
    // 12,000 SYNs by the end: 1/12008 of 1.25 MB is less than a segment, so one segment per round trip each.
    let (quiet, flooded) = (received(Sampling::Off, false), received(Sampling::Off, true));
    assert!(flooded < 0.05 * quiet, "{flooded} of {quiet}");
    // With the timeout of 3 s alone there are 3000 of them.
    assert!(received(Sampling::AfterDrop, true) < 0.05 * quiet);
}

#[test]
fn after_a_drop_only_flows_that_transmit_count() {
    let mut gate = Gate::new(|c| c.window = Window::Literal);
    gate.open(0..2, None, None);
    gate.out(Seg::data(0, ISN + 1, 1000));
    (2..100).for_each(|f| gate.out(Seg::syn(f, None)));
    assert_eq!(gate.pink.active(), 100);
    gate.pink.on_overflow(gate.now);
    assert_eq!((gate.pink.active(), gate.pink.stats.waiting), (1, 99));
    gate.out(Seg::data(1, ISN + 1, 1000));
    assert_eq!(gate.pink.active(), 2);
    // A minute without a drop, and SYNs count again.
    gate.wait(Span::from_secs(61));
    gate.out(Seg::syn(200, None));
    assert_eq!(gate.pink.active(), 1);
}

#[test]
fn after_many_empty_syns_newcomers_are_not_asked_to_make_room_for_more() {
    let mut gate = Gate::new(|c| (c.sampling, c.window) = (Sampling::Always, Window::Literal));
    // The first 1000 SYNs without data are believed: a newcomer's first window is one segment.
    (1..1000).for_each(|f| gate.out(Seg::syn(f, None)));
    gate.open(0..1, None, None);
    assert_eq!((gate.pink.active(), gate.pink.stats.waiting), (0, 1000));
    gate.wait(Span::from_secs(4));
    gate.out(Seg::syn(2000, None));
    (1000..1900).for_each(|f| gate.out(Seg::syn(f, None)));
    gate.wait(WAN);
    // 1000 came to nothing: of a flow in 64 that is remembered, (63/64)^1000 is nothing.
    assert_eq!(gate.back(Seg::syn_ack(2000, None)), 65_535, "its share alone is 118750");
}
