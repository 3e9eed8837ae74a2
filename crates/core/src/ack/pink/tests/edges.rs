//! The last value on each side of a rule.

use super::*;
use crate::ack::pink::rate::Estimator;
use crate::units::Bytes;

/// RFC 9293 §3.10.7 lets a receiver believe an RST within its window; PINK, which does not know it, within 2^20 bytes of
/// the end of the flow's data on both sides.
#[test]
fn an_rst_is_believed_up_to_a_mebibyte_from_the_end_of_the_data() {
    let reach: i32 = 1 << 20;
    for (distance, believed) in [(-reach - 1, false), (-reach, true), (reach, true), (reach + 1, false)] {
        let mut gate = Gate::literal();
        gate.open(0..1, None, None);
        let end = gate.pink.flows[0].probe.outbound_end().unwrap();
        gate.out(Seg { payload_len: 0, ..Seg::data(0, end.wrapping_add_signed(distance), 0) }.with(TcpFlags::RST));
        assert_eq!(gate.pink.active() == 0, believed, "an RST {distance} bytes from the end");
    }
}

/// 2.3: what a flow uses is what it was given and took, so a pause says nothing of it. The first ACK after one begins an
/// interval and ends none.
#[test]
fn a_pause_is_not_an_interval_of_measuring() {
    let mut gate = Gate::new(|c| (c.reallocation, c.window) = (Reallocation::MaxMin, Window::Literal));
    gate.open(0..2, None, None);
    for i in 0..20 {
        gate.acked(0, ISN + 1 + 1000 * i, 65_535);
        gate.wait(LAN);
    }
    gate.wait(Span::from_secs(5));
    gate.acked(0, ISN + 20_001, 65_535);
    assert_eq!(gate.pink.flows[0].claim, 0, "the pause counts as nothing used until the flow is measured again");
    assert!(gate.pink.flows[0].is_measuring());
}

/// A queue that stands for a round trip of 100 ms: half of its 40000 B in a round trip are 1.6 Mbit/s. No more than a
/// quarter of the rate is held back for it.
#[test]
fn a_standing_queue_drains_by_half_in_a_round_trip() {
    for (standing, shared) in [(0, 8_000_000), (40_000, 6_400_000), (50_000, 6_000_000), (90_000, 6_000_000)] {
        let mut estimator = Estimator::new(Rate::from_bps(8_000_000));
        estimator.note_round_trip(Span::from_millis(100));
        let now = Instant::ZERO + Span::from_millis(100);
        assert!(estimator.note_departure(Bytes::new(1000), standing, 1.0, now));
        assert_eq!(estimator.rate(), Rate::from_bps(shared), "{standing} B stand");
    }
}

/// The table of the estimator: without pairs and with three quarters of what is given out in use, the rate climbs by
/// 1/64, 1/32, 1/16, 1/8 and 1/8; with a byte less it stays.
#[test]
fn the_rate_climbs_in_doubling_steps_while_the_load_follows() {
    let after = |size: u64, rounds: u64| {
        let mut estimator = Estimator::new(Rate::from_bps(8_000_000));
        estimator.note_round_trip(Span::from_millis(100));
        for round in 1..=rounds {
            let now = Instant::ZERO + Span::from_millis(100 * round);
            assert!(estimator.note_departure(Bytes::new(size), 0, 1.0, now));
        }
        estimator.rate().as_bps() as f64 / 8e6
    };
    let mut climbed = 1.0;
    for (rounds, step) in (1..).zip([64.0, 32.0, 16.0, 8.0, 8.0]) {
        climbed *= 1.0 + 1.0 / step;
        assert!((after(200_000, rounds) / climbed - 1.0).abs() < 1e-6, "after {rounds} round trips");
    }
    // 8 Mbit/s are 100000 B in a round trip.
    assert!((after(75_000, 1) - 65.0 / 64.0).abs() < 1e-6);
    assert_eq!(after(74_999, 1), 1.0);
}

/// The table of flows grows to the newest index and an eighth of it; by doubling it would hold twice what it needs.
#[test]
fn the_table_of_flows_has_an_eighth_to_spare() {
    let mut gate = Gate::literal();
    for newest in [800u32, 901, 5000] {
        gate.out(Seg::syn(newest, None));
        assert_eq!(gate.pink.flows.len(), newest as usize + 1);
        assert_eq!(gate.pink.flows.capacity(), (newest + 1 + newest / 8) as usize);
    }
}

/// The table grows to an eighth more than it needs: 1001 flows and 125 more.
#[test]
fn the_table_has_room_for_an_eighth_more_flows() {
    let mut gate = Gate::literal();
    gate.pink.index_of(FlowId(1000));
    let room = gate.pink.flows.capacity();
    assert_eq!(gate.pink.flows.len(), 1001);
    assert!((1126..1200).contains(&room), "room for {room} flows");
}

/// A segment is short because the sender has nothing more to send if the window had room for half a segment more;
/// otherwise the window may have made it short.
#[test]
fn a_short_segment_is_the_last_one_if_half_a_segment_more_had_room() {
    for (room, last) in [(499, false), (500, true)] {
        let mut flow = Flow { mss: 1000, edge: 10_000, ..Flow::default() };
        flow.note_data(&Seg::data(0, 10_000 - room - 300, 300), false, Instant::ZERO);
        assert_eq!(flow.is(super::super::flow::SHORT), last, "room for {room} B more");
    }
}

/// The table of the estimator, with pairs of 1000 B and 8 Mbit/s believed, in a round trip of 100 ms: upwards by half at
/// most; downwards at once if the link was busy for half the time, and else a quarter of the way; with three pairs and
/// little load not at all.
#[test]
fn a_measured_rate_counts_in_full_if_the_link_was_busy() {
    for (pairs, apart_us, mbps) in
        [(4, 800, 10), (4, 500, 12), (25, 2000, 4), (24, 2000, 7), (4, 2000, 7), (3, 2000, 8)]
    {
        let mut estimator = Estimator::new(Rate::from_bps(8_000_000));
        estimator.note_round_trip(Span::from_millis(100));
        for n in 0..=pairs {
            let now = Instant::ZERO + Span::from_micros(apart_us * n);
            assert!(!estimator.note_departure(Bytes::new(1000), if n < pairs { 1000 } else { 0 }, 1.0, now));
        }
        let end = Instant::ZERO + Span::from_millis(100);
        assert!(estimator.note_departure(Bytes::new(40), 0, 1.0, end));
        assert_eq!(estimator.rate(), Rate::from_bps(mbps * 1_000_000), "{pairs} pairs, {apart_us} us apart");
    }
}

/// The receiver's window is less than the flow's share, and its node's budget just as much as its share: it is not the
/// budget that holds it back, so it leaves the rest to others and is owed nothing.
#[test]
fn a_budget_that_is_just_the_share_holds_nobody_back() {
    let mut gate = Gate::new(|c| c.window = Window::Steady);
    gate.open(0..1, None, None);
    for round in 0..5 {
        gate.out(Seg::data(0, ISN + 1 + 20_000 * round, 20_000));
        gate.wait(WAN);
        let mut ack = Seg::ack(0, ISN + 20_001 + 20_000 * round, 20_000);
        gate.pink.inbound_within(&mut ack, Some(LINK), gate.now);
        gate.wait(LAN);
    }
    let flow = &gate.pink.flows[0];
    assert!(flow.has(LACKING) && flow.flight() == Flight::Later);
    assert_eq!(flow.credit, 0);
}
