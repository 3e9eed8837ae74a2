//! The default: shares by demand, and windows whose mean over time is the share.

use super::super::flow::{Flight, Flow, GROWS, LACKING, SPLITTER, beat};
use super::path::*;
use super::*;

fn default_gate() -> Gate {
    Gate::new(|c| *c = Config { sampling: Sampling::AfterDrop, ..Config::default() })
}

/// The flow sends `bytes`, and they are acknowledged a WAN half later.
fn says(gate: &mut Gate, flow: u32, seq: u32, bytes: u32) -> u16 {
    gate.out(Seg::data(flow, seq, bytes));
    gate.wait(WAN);
    gate.back(Seg::ack(flow, seq + bytes, 65_535))
}

/// 100 bytes in 104 ms are 961 bytes per second. A round trip later the other flow has all the rest.
#[test]
fn who_has_nothing_more_to_send_leaves_its_share_with_the_next_ack() {
    let mut gate = default_gate();
    gate.open(0..2, Some(2), Some(2));
    says(&mut gate, 1, ISN + 1, 100);
    assert_eq!((gate.pink.shares.lacking, gate.pink.shares.claims), (1, 961));
    assert_eq!(gate.pink.shares.level(None, WAN + LAN + Span::from_micros(800)), 123_400, "123500 - 100");
    // A short segment that fills the window is no sign of that.
    let mut gate = default_gate();
    gate.open(0..2, Some(2), Some(2));
    let room = gate.pink.flows[1].held().unwrap() as u32;
    gate.out(Seg::data(1, ISN + 1, room - 100));
    says(&mut gate, 1, ISN + 1 + room - 100, 100);
    assert_eq!(gate.pink.shares.lacking, 0);
}

/// A flow that sends 100 bytes at once and nothing more counts for what it sends: 100 bytes in 104 ms, before any ACK.
#[test]
fn a_flow_of_one_short_segment_takes_from_others_what_it_sends() {
    let mut gate = default_gate();
    gate.open(0..2, Some(2), Some(2));
    gate.out(Seg::data(0, ISN + 1, 1000));
    assert_eq!(gate.pink.shares.lacking, 0, "a full segment");
    gate.out(Seg::data(1, ISN + 1, 100));
    assert_eq!((gate.pink.shares.lacking, gate.pink.shares.claims), (1, 961));
    assert_eq!(gate.pink.level_of(0, 1000, WAN + LAN + Span::from_micros(800)), 123_400, "123500 - 100");
}

/// A flow that sent its first data unseen, as the owner of a table of half-open connections hides them, does not count any more
/// when it wakes. 100 bytes in 104 ms are 961 bytes per second also then, before any ACK: others keep their windows.
#[test]
fn who_wakes_with_one_short_segment_takes_from_others_what_it_sends() {
    let mut gate = Gate::new(|c| *c = Config { sampling: Sampling::Always, ..Config::default() });
    gate.open(1..2, Some(2), Some(2));
    gate.pink.flows[1].probe.pass_unseen(ISN + 101, FAR_ISN + 1);
    gate.back(Seg::ack(1, ISN + 101, 65_535));
    gate.wait(Span::from_secs(20));
    gate.open(0..1, Some(2), Some(2));
    says(&mut gate, 0, ISN + 1, 1000);
    assert_eq!((gate.pink.active(), gate.pink.stats.expired), (1, 1), "it was not heard of");
    gate.out(Seg::data(1, ISN + 101, 100));
    assert_eq!((gate.pink.active(), gate.pink.shares.lacking, gate.pink.shares.claims), (2, 1, 961));
    assert_eq!(gate.pink.level_of(0, 1000, WAN + LAN + Span::from_micros(800)), 123_400, "123500 - 100");
}

/// A FIN says that nothing follows, whatever the size of the segment before it, and comes before the ACK of that segment.
#[test]
fn who_sent_a_fin_leaves_its_share_when_its_data_are_acknowledged() {
    let mut gate = default_gate();
    gate.open(0..2, Some(2), Some(2));
    gate.out(Seg::data(1, ISN + 1, 1000));
    gate.out(Seg { flags: TcpFlags::FIN.with(TcpFlags::ACK), ..Seg::data(1, ISN + 1001, 0) });
    assert_eq!(gate.pink.shares.lacking, 0);
    gate.wait(WAN);
    gate.back(Seg::ack(1, ISN + 1001, 65_535));
    assert_eq!((gate.pink.shares.lacking, gate.pink.shares.claims), (1, 9615), "1000 bytes in 104 ms");
    gate.back(Seg::ack(1, ISN + 1002, 65_535));
    assert_eq!(gate.pink.shares, Shares { n: 1, ..Shares::new(gate.pink.shares.capacity) });
}

/// Of half of the bandwidth-delay product, 61750 bytes, the first may keep a half, the next a sixth, a twelfth...
#[test]
fn what_idle_flows_may_send_at_once_is_bounded_for_all_together() {
    let mut gate = default_gate();
    let (n, mut held) = (30, 0);
    for flow in 0..n {
        gate.open(flow..flow + 1, Some(2), Some(2));
        says(&mut gate, flow, ISN + 1, 100);
        held += gate.pink.flows[flow as usize].held().unwrap();
        let most = 61_750 + 2004 * u64::from(flow + 1) + 4 * u64::from(flow + 1); // two segments in units of 4 bytes
        assert!(held <= most, "{} flows hold {held}, more than {most}", flow + 1);
    }
    assert_eq!(gate.pink.shares.lacking, u64::from(n));
    // They are remembered when they no longer count.
    for poke in 0..3 {
        gate.wait(Span::from_secs(61)); // what is due is noticed with the next segment
        gate.out(Seg::data(0, ISN + 101 + 100 * poke, 100));
    }
    assert_eq!((gate.pink.active(), gate.pink.census.asleep), (1, u64::from(n) - 1));
    gate.pink.flows[1..].iter().for_each(|flow| assert!(flow.listed.is_none()));
    for flow in 1..n {
        gate.back(Seg::ack(flow, ISN + 101, 65_535).with(TcpFlags::RST));
    }
    assert_eq!(gate.pink.census.asleep, 0, "a flow that ended holds nothing");
}

#[test]
fn a_flow_that_fills_its_window_gets_its_share_with_the_next_ack() {
    let mut gate = default_gate();
    gate.open(0..2, Some(2), Some(2));
    says(&mut gate, 1, ISN + 1, 100);
    let held = gate.pink.flows[1].held().unwrap() as u32;
    gate.wait(Span::from_secs(2));
    gate.out(Seg::data(0, ISN + 1, 1000));
    assert_eq!(gate.pink.shares.lacking, 1, "quiet");
    gate.out(Seg::data(1, ISN + 101, held));
    assert_eq!(gate.pink.shares.lacking, 0);
}

#[test]
fn each_gets_what_it_can_use_and_the_rest_in_equal_parts() {
    let mut hosts = greedy(6);
    hosts[0].app = Some(62_500); // 0.5 Mbit/s
    hosts[1].cwnd_limit = 15_000; // ten segments per 100 ms: 1.16 Mbit/s
    let demand = |c: &mut Config| (c.reallocation, c.window) = (Reallocation::Demand, Window::Steady);
    let mut path = Path::new(demand, LINK, hosts);
    path.run_until(at_ms(5000));
    path.take_received();
    path.run_until(at_ms(25_000));
    let rates: Vec<f64> = path.take_received().iter().map(|bytes| *bytes as f64 * 8.0 / 20e6).collect();
    let rest = 9.5 - 0.5 - 1.16;
    for (rate, expected) in rates.iter().zip([0.5, 1.16].into_iter().chain([rest / 4.0; 4])) {
        assert!((rate / expected - 1.0).abs() < 0.07, "{rates:?}");
    }
}

/// A share of 10 kB in 100 ms, and a round that took 140 ms because an ACK was delayed: 14 kB are due. With 20 ms of
/// waiting in the queue beyond what is borne, 12 kB. Over 500 ms, half of what a round took longer counts.
#[test]
fn what_is_due_follows_the_time_that_a_round_took() {
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    let mut flow = Flow::default();
    flow.place.round_at = beat(at(1000));
    let due = |rtt, ms, beyond| flow.due(10_000, Span::from_millis(rtt), Span::from_millis(beyond), at(ms));
    let near = |value: u64, expected: u64| assert!(value.abs_diff(expected) <= 53, "{value} instead of {expected}");
    near(due(100, 1140, 0), 14_000);
    near(due(100, 1140, 20), 12_000);
    near(due(100, 1100, 0), 10_000);
    assert_eq!(due(100, 9000, 0), 40_000, "a flow that paused is owed four rounds at most");
    assert_eq!(due(100, 1000, 0), 5000);
    near(due(500, 1600, 0), 11_000);
}

/// Whenever a flow begins, and however long it is silent before its first data: in the round of its first flight its share
/// is due, and nothing for the time before.
#[test]
fn nothing_is_owed_for_the_time_before_the_first_flight() {
    let mut flow = Flow::default();
    flow.set_flight(Flight::First);
    for ms in [150, 9000, 17_100] {
        let now = Instant::ZERO + Span::from_millis(ms);
        assert_eq!(flow.due(10_000, Span::from_millis(100), Span::ZERO, now), 10_000);
    }
}

/// A flow of two segments' window that was idle for 30 s: what its share was meanwhile is not owed to it, and its next
/// round begins with the ACK of what it sends now.
#[test]
fn nothing_is_owed_for_a_pause() {
    let mut gate = default_gate();
    gate.open(0..2, Some(2), Some(2));
    says(&mut gate, 1, ISN + 1, 100);
    gate.pink.flows[1].credit = 900;
    let held = gate.pink.flows[1].held().unwrap() as u32;
    gate.wait(Span::from_secs(30));
    gate.out(Seg::data(1, ISN + 101, held));
    let flow = &gate.pink.flows[1];
    assert_eq!((flow.credit, flow.round_end, flow.flight()), (0, ISN + 101, Flight::First));
    gate.wait(WAN);
    gate.back(Seg::ack(1, ISN + 101 + held, 65_535));
    let flow = &gate.pink.flows[1];
    assert_eq!((flow.credit, flow.flight()), (0, Flight::Later), "the first round after the pause settles nothing");
}

/// The other flow falls silent; a flow that grows into its share, and one that leaves its share to others, are owed nothing.
#[test]
fn who_grows_or_lacks_is_owed_nothing() {
    for mark in [GROWS, LACKING] {
        let mut flow = Flow { acked: 0, edge: 10_000, round_end: 5000, ..Flow::default() };
        flow.set_flight(Flight::Later);
        flow.set(mark, true);
        assert_eq!(flow.turn_round(6000, 1000, true, at_ms(1), |_| 8000), Some(8000));
        assert_eq!((flow.credit, flow.round_end), (0, 10_000));
        assert_eq!(flow.turn_round(11_000, 1000, false, at_ms(2), |_| 800), Some(800), "10000 to 10000 were given");
        assert_eq!(flow.credit, 800);
        assert_eq!(flow.turn_round(9000, 1000, false, at_ms(2), |_| 800), None, "amid a round");
    }
}

#[test]
fn a_sender_that_splits_segments_gets_no_room_for_a_tail() {
    let mut gate = default_gate();
    gate.open(0..1, Some(7), Some(7));
    let end = gate.pink.flows[0].probe.outbound_end().unwrap();
    let mut flow = gate.pink.flows[0].clone();
    let cut = |flow: &Flow, granted, unit| flow.without_tail(end, granted, 1000, unit);
    assert_eq!(cut(&flow, 2048, 128), 2048, "it sends whole segments only");
    flow.mark(SPLITTER, true);
    assert_eq!(cut(&flow, 2048, 128), 1920, "a tail of 48 bytes");
    assert_eq!(cut(&flow, 1920, 128), 1920, "920 bytes are no tail");
    assert_eq!(cut(&flow, 1024, 128), 1024, "never below one segment");
    assert_eq!(cut(&flow, 2040, 1), 2040, "a scale of zero has no tails");
}

/// Theorem 1 for the default: what is in flight and what idle flows may send at once.
#[test]
fn theorem_1_with_flows_that_pause_and_wake() {
    let mut hosts = greedy(20);
    hosts[10..].iter_mut().for_each(|host| (host.app, host.stretch) = (Some(0), 2));
    let demand = |c: &mut Config| (c.reallocation, c.window) = (Reallocation::Demand, Window::Steady);
    let mut path = Path::new(demand, LINK, hosts);
    let mut longest = Span::ZERO;
    for turn in 1..=20u64 {
        path.run_until(at_ms(3000 * turn));
        let wakes = turn % 2 == 1;
        for flow in 10..20 {
            path.hosts[flow].app = if wakes { None } else { Some(0) };
            if wakes {
                path.kick(flow as u32);
            }
        }
    }
    longest = longest.max(path.wait_at(1.0, Instant::ZERO, at_ms(60_000)));
    // 1.5 times the bandwidth-delay product of 100 ms, and two segments of 1.2 ms for each of ten flows.
    assert!(longest <= Span::from_millis(150 + 24), "{longest}");
}
