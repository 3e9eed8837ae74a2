use super::super::driver::{self, MSS};
use super::*;

const MS: fn(u64) -> Span = Span::from_millis;

/// B0 = 20, as in the dissertation.
fn control() -> Noordwijk {
    Noordwijk::new(&Config::default(), &Setup { initial_window: 20 * MSS, ..driver::SETUP })
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + MS(ms)
}

/// A train of `size` ACKs from `begin` ms on, `gap` ms apart; the round trip times rise from 600 ms by `step` ms.
fn train(cc: &mut Noordwijk, size: u64, begin: u64, gap: u64, step: u64) {
    for i in 0..size {
        cc.on_ack(&Ack { now: at(begin + i * gap), ..driver::ack(MSS, 600 + i * step) });
    }
}

#[test]
fn a_burst_leaves_every_timer() {
    let mut cc = control();
    assert!(cc.next_burst() <= at(0), "the first at once");
    cc.on_burst(at(0), Bytes::ZERO);
    assert_eq!((cc.cwnd(), cc.next_burst()), (20 * MSS, at(500)));
    cc.on_burst(at(500), 20 * MSS);
    assert_eq!((cc.cwnd(), cc.next_burst()), (40 * MSS, at(1000)));
}

#[test]
fn between_bursts_acks_open_nothing() {
    let mut cc = control();
    cc.on_burst(at(0), Bytes::ZERO);
    for left in (0..20).rev() {
        cc.on_ack(&driver::ack(MSS, 600));
        assert_eq!(cc.cwnd(), left * MSS, "what is in flight");
    }
}

/// 20 ACKs 4 ms apart (a segment of 500 bytes at 1 Mbit/s): D = 76 ms, delta = 3.8 ms, TX_TMR = 20 delta = 76 ms. The
/// round trip times vary by 19 4 = 76 ms, below 200: rate tracking, and the burst is at B0 already.
#[test]
fn tracking_makes_the_timer_the_time_of_a_burst() {
    let mut cc = control();
    (0..2).for_each(|_| cc.on_burst(at(0), Bytes::ZERO));
    train(&mut cc, 20, 600, 4, 4);
    assert_eq!(cc.burst(), (20, MS(500)), "two trains make an evaluation");
    train(&mut cc, 20, 1100, 4, 4);
    assert_eq!(cc.burst(), (20, MS(76)));
}

/// Gaps of 20 ms: D = 380 ms, delta = 19 ms; the round trip times vary by 19 20 = 380 ms, above 200: BURST = 20 380/760
/// = 10, TX_TMR = 20 19 = 380 ms. Then tracking: 10 + 5 = 15, 15 + 2.5 = 18 rounded up, 19, 20.
#[test]
fn adjustment_cuts_the_burst_and_tracking_brings_it_back() {
    let mut cc = control();
    (0..2).for_each(|_| cc.on_burst(at(0), Bytes::ZERO));
    (0..2).for_each(|i| train(&mut cc, 20, 600 + 500 * i, 20, 20));
    assert_eq!(cc.burst(), (10, MS(380)));
    for expected in [15, 18, 19, 20, 20] {
        let (size, _) = cc.burst();
        (0..2).for_each(|_| cc.on_burst(at(2000), Bytes::ZERO));
        (0..2).for_each(|i| train(&mut cc, size, 3000 + 500 * i, 4, 1));
        assert_eq!(cc.burst().0, expected);
    }
}

/// BURST = 20 19/(19 + 380) = 0.95: three segments at least, and TX_TMR = 2 20 0.95 = 38 ms, as lambda is 2.
#[test]
fn a_small_burst_doubles_the_timer() {
    let mut cc = control();
    (0..2).for_each(|_| cc.on_burst(at(0), Bytes::ZERO));
    (0..2).for_each(|i| train(&mut cc, 20, 600 + 500 * i, 1, 20));
    assert_eq!(cc.burst(), (3, MS(38)));
}

/// delta = 95 ms makes 1.9 s of 20 segments: half of it, and half of the burst.
#[test]
fn a_timer_above_a_second_is_halved_with_its_burst() {
    let mut cc = control();
    (0..2).for_each(|_| cc.on_burst(at(0), Bytes::ZERO));
    (0..2).for_each(|i| train(&mut cc, 20, 600 + 5000 * i, 100, 1));
    assert_eq!(cc.burst(), (10, MS(950)));
}

/// delta of a smaller burst does not replace that of a full one: a queue drains while it is sent.
#[test]
fn the_dispersion_is_that_of_the_last_full_burst() {
    let mut cc = control();
    (0..2).for_each(|_| cc.on_burst(at(0), Bytes::ZERO));
    (0..2).for_each(|i| train(&mut cc, 20, 600 + 500 * i, 20, 20));
    (0..2).for_each(|_| cc.on_burst(at(2000), Bytes::ZERO));
    (0..2).for_each(|i| train(&mut cc, 10, 3000 + 500 * i, 1, 1));
    assert_eq!(cc.burst(), (15, MS(380)));
}

/// Of two bursts of 20, an ACK is lost at the end of the first: the next one covers two segments, one of each burst. The
/// trains have 20 ACKs nevertheless, the second one from 676 to 752 ms: delta 3.8 ms, TX_TMR 76 ms.
#[test]
fn an_ack_may_end_one_train_and_begin_the_next() {
    let mut cc = control();
    (0..2).for_each(|_| cc.on_burst(at(0), Bytes::ZERO));
    train(&mut cc, 19, 600, 4, 4);
    cc.on_ack(&Ack { now: at(676), ..driver::ack(2 * MSS, 676) });
    train(&mut cc, 19, 680, 4, 4);
    assert_eq!((cc.burst(), cc.bursts.len), ((20, MS(76)), 0));
}

/// The receiver's window leaves room for 9.5 segments of the second burst: its train has so many, as m_bytesTransmitted has
/// in the author's code. Ten ACKs end it, and the evaluation takes delta = 3.8 ms from the train before, that of B0.
#[test]
fn a_burst_that_the_window_cuts_is_measured_as_far_as_it_was_sent() {
    let mut cc = control();
    cc.on_burst(at(0), Bytes::ZERO);
    cc.on_burst(at(500), 20 * MSS);
    train(&mut cc, 20, 600, 4, 4);
    let sent = 9 * MSS + MSS / 2;
    cc.on_burst(at(1000), sent);
    assert_eq!((cc.bursts.len, cc.bursts.first()), (2, Some(sent)), "20 of 40 are acknowledged");
    train(&mut cc, 9, 1100, 4, 4);
    cc.on_ack(&Ack { now: at(1136), ..driver::ack(MSS / 2, 640) });
    assert_eq!((cc.burst(), cc.bursts.first()), ((20, MS(76)), Some(20 * MSS)));
}

/// What is in flight beyond 16 bursts is one train, from which only the unsent part of the last burst is taken.
#[test]
fn a_burst_that_is_cut_shortens_a_common_train_by_its_own_part() {
    let mut cc = control();
    (0..17).for_each(|i| cc.on_burst(at(500 * i), 20 * i * MSS));
    cc.on_burst(at(8500), 16 * 20 * MSS + 5 * MSS);
    assert_eq!(cc.bursts.sizes[15], (20 + 5 + 20) * MSS);
}

#[test]
fn a_loss_restores_the_first_burst_and_a_timeout_doubles_the_timer() {
    let mut cc = control();
    (0..2).for_each(|_| cc.on_burst(at(0), Bytes::ZERO));
    (0..2).for_each(|i| train(&mut cc, 20, 600 + 500 * i, 20, 20));
    cc.on_loss(&driver::loss(30 * MSS));
    assert_eq!((cc.burst(), cc.ssthresh()), ((20, MS(500)), 20 * MSS));
    cc.on_recovered(at(2000));
    assert_eq!(cc.cwnd(), Bytes::ZERO, "the next burst goes at its time");
    cc.on_burst(at(2100), Bytes::ZERO);
    assert_eq!(cc.cwnd(), 19 * MSS, "less the segment that was sent again");
    for expected in [1000, 900, 900] {
        cc.on_rto(&driver::loss(20 * MSS));
        assert_eq!((cc.burst(), cc.cwnd()), ((20, MS(expected)), MSS));
    }
    cc.on_burst(at(5000), Bytes::ZERO);
    assert_eq!((cc.cwnd(), cc.next_burst()), (17 * MSS, at(5900)));
}

#[test]
fn a_recovery_forgets_the_trains() {
    let mut cc = control();
    (0..2).for_each(|_| cc.on_burst(at(0), Bytes::ZERO));
    train(&mut cc, 20, 600, 4, 4);
    train(&mut cc, 10, 1100, 4, 4);
    cc.on_loss(&driver::loss(10 * MSS));
    cc.on_recovered(at(1500));
    train(&mut cc, 20, 2000, 4, 4);
    assert_eq!(cc.burst(), (20, MS(500)), "nothing was measured");
}

#[test]
fn the_seventeenth_burst_in_flight_is_measured_with_the_sixteenth() {
    let mut cc = control();
    (0..17).for_each(|_| cc.on_burst(at(0), Bytes::ZERO));
    assert_eq!((cc.bursts.len, cc.bursts.sizes[0], cc.bursts.sizes[15]), (16, 20 * MSS, 40 * MSS));
}

#[test]
fn after_idle_time_the_burst_goes_at_once() {
    let mut cc = control();
    cc.on_burst(at(0), Bytes::ZERO);
    cc.on_idle(at(5), 20 * MSS);
    assert_eq!(cc.next_burst(), at(5));
    assert!(cc.requirements().ack_per_segment && !cc.requirements().rate);
}
