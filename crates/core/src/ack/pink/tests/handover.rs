//! What the owner of the table of flows tells: an index passes on, a connection was opened unseen.

use super::*;
use crate::fact::{Greeting, Opening};

fn tell(gate: &mut Gate, fact: Fact) {
    gate.pink.on_fact(&fact, gate.now);
    gate.pink.stats.check().unwrap();
}

/// Without the fact the SYN would be one of a connection that sends, hence a forged one, and the scale that of before.
#[test]
fn a_connection_that_takes_over_an_index_begins_anew() {
    let mut gate = Gate::literal();
    gate.open(0..1, Some(7), Some(7));
    assert_eq!(u64::from(gate.acked(0, ISN + 1, 65_535)) << 7, SHARE_OF_ONE / 128 * 128);
    tell(&mut gate, Fact::FlowGone(FlowId(0)));
    assert_eq!((gate.pink.active(), gate.pink.stats.ended), (0, 1));
    gate.out(Seg { seq: ISN + 500_000, ..Seg::syn(0, Some(2)) });
    gate.wait(WAN);
    gate.back(Seg { ack: ISN + 500_001, ..Seg::syn_ack(0, Some(2)) });
    gate.wait(LAN);
    gate.out(Seg::data(0, ISN + 500_001, 0));
    assert_eq!(u64::from(gate.acked(0, ISN + 500_001, 65_535)) << 2, SHARE_OF_ONE);
    assert_eq!((gate.pink.active(), gate.pink.stats.implausible), (1, 0));
}

#[test]
fn a_syn_whose_index_passes_on_was_one_without_data() {
    let mut gate = Gate::new(|c| c.sampling = Sampling::Always);
    for flow in 0..1000 {
        gate.out(Seg::syn(flow % 10, None));
        tell(&mut gate, Fact::FlowGone(FlowId(flow % 10)));
    }
    // (63/64)^1000 of the belief is left: no newcomer makes room for them.
    (0..10).for_each(|flow| gate.out(Seg::syn(flow, None)));
    assert_eq!((gate.pink.census.expected(), gate.pink.stats.waiting), (0, 10));
    tell(&mut gate, Fact::FlowGone(FlowId(70_000)));
}

fn opening(from_inside: bool) -> Opening {
    let inside = Greeting { isn: ISN, end: ISN + 1001, window_scale: Some(5), mss: Some(1000) };
    let outside = Greeting { isn: FAR_ISN, end: FAR_ISN + 1, window_scale: Some(2), mss: None };
    let (opener, other) = if from_inside { (inside, outside) } else { (outside, inside) };
    let (asked, answered) = if from_inside { (WAN, LAN) } else { (LAN, WAN) };
    Opening { flow: FlowId(3), from_inside, opener, other, asked: Some(asked), answered: Some(answered) }
}

#[test]
fn a_flow_that_is_handed_over_gets_what_one_gets_that_was_seen() {
    for from_inside in [true, false] {
        let mut gate = Gate::literal();
        tell(&mut gate, Fact::Opened(opening(from_inside)));
        assert_eq!(gate.pink.stats.started, 1);
        let first = gate.back(Seg::ack(3, ISN + 1001, 65_535));
        assert_eq!(u64::from(first) << 2, SHARE_OF_ONE, "of 104 ms, in the scale of the far side");
        assert_eq!(u64::from(gate.acked(3, ISN + 1001, 65_535)) << 2, SHARE_OF_ONE);
        assert_eq!((gate.pink.active(), gate.pink.stats.implausible, gate.pink.stats.left_alone), (1, 0, 0));
    }
}

#[test]
fn no_scale_counts_if_one_side_has_none_and_without_times_the_window_is_the_receivers() {
    let mut told = opening(true);
    told.opener.window_scale = None;
    (told.asked, told.answered) = (None, None);
    let mut gate = Gate::literal();
    tell(&mut gate, Fact::Opened(told));
    assert_eq!(gate.back(Seg::ack(3, ISN + 1001, 30_000)), 30_000);
    gate.out(Seg::data(3, ISN + 1001, 1000));
    gate.wait(WAN);
    // The WAN half is known now, and with it 100 ms: 118750 bytes, unscaled.
    assert_eq!(gate.back(Seg::ack(3, ISN + 2001, 65_535)), 65_535);
}

/// What was seen of the handshake stays: the first flight, the scale, the round trip time, and that the sender has nothing
/// more to send once its next short segment is acknowledged.
#[test]
fn a_flow_whose_first_data_alone_were_hidden_keeps_what_is_known() {
    let mut gate = Gate::new(|c| (c.reallocation, c.sampling) = (Reallocation::Demand, Sampling::Always));
    gate.open(0..1, Some(5), Some(2));
    let told = Opening { flow: FlowId(0), ..opening(true) };
    tell(&mut gate, Fact::Opened(told));
    assert_eq!((gate.pink.stats.started, gate.pink.active(), gate.pink.stats.implausible), (1, 0, 0));
    assert!(gate.back(Seg::ack(0, ISN + 1001, 65_535)) < 65_535, "limited, and credible");
    gate.out(Seg::data(0, ISN + 1001, 100));
    assert_eq!((gate.pink.active(), gate.pink.stats.lacking), (1, 0));
    gate.wait(WAN);
    gate.back(Seg::ack(0, ISN + 1101, 65_535));
    assert_eq!((gate.pink.stats.lacking, gate.pink.stats.implausible), (1, 0), "it leaves the rest to others");
}
