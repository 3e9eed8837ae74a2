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
