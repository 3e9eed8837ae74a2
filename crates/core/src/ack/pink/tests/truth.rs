//! What PINK believes: resets, SYNs and acknowledgments that are not what they seem; both directions at once.

use super::*;

#[test]
fn a_forged_reset_frees_a_share_only_until_the_next_round_trip_of_data() {
    let mut gate = Gate::literal();
    gate.open(0..2, None, None);
    gate.acked(0, ISN + 1, 65_535);
    gate.acked(1, ISN + 1, 65_535);
    gate.back(Seg::ack(0, ISN + 1001, 65_535).with(TcpFlags::RST));
    assert_eq!((gate.pink.active(), gate.pink.stats.ended), (1, 1));
    gate.out(Seg::data(0, ISN + 1001, 1000));
    assert_eq!(gate.pink.active(), 1, "may have been under way when the reset came");
    assert_eq!(gate.back(Seg::ack(0, ISN + 1001, 65_535)), 65_535, "a closed flow is not touched");
    gate.wait(WAN + LAN + Span::from_millis(1));
    gate.out(Seg::data(0, ISN + 2001, 1000));
    assert_eq!((gate.pink.active(), gate.pink.stats.woken), (2, 1));
    gate.wait(WAN);
    // The edge of the window that passed is respected, and then the share.
    let edge = ISN + 1001 + 65_535;
    assert_eq!(gate.ack_of_sent(0, ISN + 3001, 65_535), (edge - (ISN + 3001)) as u16);
    assert_eq!(gate.ack_of_sent(0, ISN + 30_001, 65_535), 61_750, "123500 / 2");
}

#[test]
fn a_storm_of_resets_far_from_the_data_changes_nothing() {
    let mut gate = Gate::literal();
    gate.open(0..2, None, None);
    gate.acked(0, ISN + 1, 65_535);
    for k in 1..1000u32 {
        let seq = (FAR_ISN + 1).wrapping_add((1 << 20) + 1 + k * 1_000_000);
        gate.back(Seg { seq, ..Seg::ack(0, ISN + 1001, 65_535).with(TcpFlags::RST) });
        gate.out(Seg::data(1, (ISN + 1).wrapping_sub((1 << 20) + 1 + k), 0).with(TcpFlags::RST));
    }
    assert_eq!((gate.pink.active(), gate.pink.stats.ended, gate.pink.stats.implausible), (2, 0, 2 * 999));
}

#[test]
fn only_an_answer_to_its_syn_refuses_a_connection() {
    let mut gate = Gate::new(|_| {});
    gate.out(Seg::syn(0, None));
    gate.back(Seg::ack(0, ISN + 77, 0).with(TcpFlags::RST));
    assert_eq!((gate.pink.active(), gate.pink.stats.implausible), (1, 1));
    gate.back(Seg::ack(0, ISN + 1, 0).with(TcpFlags::RST));
    assert_eq!(gate.pink.active(), 0);
}

#[test]
fn a_syn_amid_data_is_not_another_connection() {
    let mut gate = Gate::literal();
    gate.open(0..2, Some(3), Some(3));
    gate.acked(0, ISN + 1, 65_535);
    gate.back(Seg { seq: 123, ..Seg::syn(0, Some(0)) });
    gate.out(Seg { seq: 456, ..Seg::syn(0, Some(0)) });
    assert_eq!(gate.pink.stats.implausible, 2);
    assert_eq!(gate.acked(0, ISN + 1001, 65_535), 61_750 >> 3, "its scale and its round trip are kept");
    // After a pause a host may have started anew.
    gate.wait(Span::from_secs(2));
    gate.out(Seg { seq: 456, ..Seg::syn(0, None) });
    assert_eq!((gate.pink.stats.started, gate.pink.stats.opening), (3, 1));
}

#[test]
fn an_acknowledgment_of_data_never_sent_changes_nothing() {
    let mut gate = Gate::literal();
    gate.open(0..4, None, None);
    gate.acked(0, ISN + 1, 65_535);
    let before = gate.pink.flows[0].clone();
    assert_eq!(gate.back(Seg::ack(0, ISN + 1002, 65_535)), 65_535);
    assert_eq!(gate.pink.flows[0], before, "neither edge nor round trip");
    assert_eq!(gate.pink.stats.implausible, 1);
    assert_eq!(gate.acked(0, ISN + 1001, 65_535), 30_875);
}

#[test]
fn the_syn_ack_after_a_retransmitted_syn_is_clamped_by_the_newest_syn() {
    let mut gate = Gate::literal();
    (0..4).for_each(|f| gate.out(Seg::syn(f, None)));
    gate.wait(Span::from_secs(1));
    gate.out(Seg::syn(0, None));
    gate.wait(WAN);
    assert_eq!(gate.back(Seg::syn_ack(0, None)), 29_687, "100 ms of a fourth, as if it answered that one");
    // If it answered the first, the second is only an instant old: too little, which costs a round trip, not a queue.
    gate.out(Seg::syn(1, None));
    assert_eq!(gate.back(Seg::syn_ack(1, None)), 1000);
    // Before a sample is there, the window opens by no more than half of what is acknowledged.
    gate.wait(LAN);
    gate.out(Seg::data(1, ISN + 1, 500));
    gate.out(Seg::data(1, ISN + 1, 500)); // not timed
    assert_eq!(gate.back(Seg::ack(1, ISN + 501, 65_535)), 1250);
}

#[test]
fn a_late_copy_of_a_handshake_segment_changes_nothing() {
    let mut gate = Gate::literal();
    gate.open(0..2, None, None);
    gate.acked(0, ISN + 1, 65_535);
    let rtt = gate.pink.flows[0].round_trip();
    gate.out(Seg::syn(0, None));
    gate.back(Seg::syn_ack(0, None));
    assert_eq!(gate.pink.flows[0].round_trip(), rtt);
    assert_eq!(gate.pink.flows[0].probe.outbound_end(), Some(ISN + 1001));
    assert_eq!(gate.acked(0, ISN + 1001, 65_535), 61_750);
}

#[test]
fn a_fin_in_the_middle_of_data_does_not_end_a_flow_for_good() {
    let mut gate = Gate::literal();
    gate.open(0..1, None, None);
    gate.out(Seg::data(0, ISN + 1, 1000));
    gate.out(Seg::data(0, ISN + 1001, 0).with(TcpFlags::FIN)); // forged
    gate.back(Seg::ack(0, ISN + 1002, 65_535));
    assert_eq!(gate.pink.active(), 0);
    gate.wait(Span::from_millis(200));
    gate.out(Seg::data(0, ISN + 1001, 1000));
    assert_eq!(gate.pink.active(), 1);
}

#[test]
fn the_part_of_acks_and_the_flows_below_one_segment_are_told() {
    let mut gate = Gate::literal();
    gate.open(0..200, None, None); // 617 bytes each
    assert_eq!((gate.pink.stats.below_now, gate.pink.stats.below_fraction()), (200, 1.0));
    (2..200).for_each(|f| drop_flow(&mut gate, f));
    assert_eq!(gate.pink.stats.below_now, 2, "until their next ACK");
    (0..2).for_each(|f| assert_eq!(gate.acked(f, ISN + 1, 65_535), 61_750));
    assert_eq!((gate.pink.stats.below_now, gate.pink.stats.below_one_segment, gate.pink.stats.acks), (0, 200, 202));
    assert!((gate.pink.stats.below_fraction() - 200.0 / 202.0).abs() < 1e-12);
}

fn drop_flow(gate: &mut Gate, flow: u32) {
    gate.back(Seg::ack(flow, ISN + 1, 0).with(TcpFlags::RST));
}

/// One instance per direction of the link, each with its own sight of what is outbound.
struct Both {
    up: Pink,
    down: Pink,
}

impl Both {
    /// From the side that opens.
    fn forth(&mut self, mut segment: Seg, now: Instant) -> u16 {
        self.down.inbound(&mut segment, now);
        self.up.outbound(&mut segment, now);
        segment.window
    }
    fn back(&mut self, mut segment: Seg, now: Instant) -> u16 {
        self.up.inbound(&mut segment, now);
        self.down.outbound(&mut segment, now);
        segment.window
    }
}

#[test]
fn a_flow_that_sends_both_ways_is_regulated_both_ways_on_its_data() {
    let config = Config { window: Window::Literal, ..paper() };
    let slow = Rate::from_bps(2_000_000);
    let mut both = Both { up: Pink::new(&config, slow), down: Pink::new(&config, LINK) };
    let mut now = Instant::ZERO;
    both.forth(Seg::syn(0, Some(2)), now);
    now += WAN;
    // 2 Mbit/s * 0.95 * 103.2 ms = 24510 bytes, by the WAN half of this side; a full segment takes 4 ms.
    assert_eq!(both.back(Seg::syn_ack(0, Some(4)), now), 24_510);
    now += LAN;
    both.forth(Seg::data(0, ISN + 1, 0), now);
    // Both send a segment at a time, each acknowledging the other's: their ACKs ride on data.
    for k in 0..3u32 {
        let (near, far) = (ISN + 1 + 1000 * k, FAR_ISN + 1 + 1000 * k);
        let forth = Seg { seq: near, ack: far, payload_len: 1000, ..Seg::ack(0, 0, 65_535) };
        let written = both.forth(forth, now);
        if k > 0 {
            assert_eq!(
                u32::from(written),
                123_500 >> 2,
                "the down link's share in the opener's scale: 10 Mbit/s, 104 ms"
            );
        }
        now += WAN;
        let back = Seg { seq: far, ack: near + 1000, payload_len: 1000, ..Seg::ack(0, 0, 65_535) };
        assert_eq!(both.back(back, now), 25_460 >> 4, "the up link's share in the other's scale: 2 Mbit/s, 107.2 ms");
        now += LAN;
    }
    assert_eq!((both.up.active(), both.down.active()), (1, 1));
}
