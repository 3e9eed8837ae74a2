use super::super::driver::{self, MSS};
use super::*;

const MS: fn(u64) -> Span = Span::from_millis;
const IW: Bytes = Bytes::new(10_000);

fn at(ms: u64) -> Instant {
    Instant::ZERO + MS(ms)
}

/// An ACK of `acked` bytes at `ms`, after which `left` bytes are in flight.
fn ack(ms: u64, acked: u64, left: u64, rtt_ms: u64) -> Ack {
    Ack { now: at(ms), in_flight: Bytes::new(acked + left), ..driver::ack(Bytes::new(acked), rtt_ms) }
}

/// A path of 100 ms: an ACK each 35 ms, the duration of a bin. `sent` bytes have been sent and `acked` acknowledged by the end of
/// each bin.
fn bins(sent: impl Fn(usize) -> u64, acked: impl Fn(usize) -> u64, count: usize) -> Bins {
    let mut bins = Bins::new(MS(100), at(0), acked(0), sent(0)).unwrap();
    for i in 1..=count {
        assert!(bins.update(at(35 * i as u64) + Span::from_nanos(1), acked(i), sent(i)));
    }
    bins
}

/// §3: 3.5 round trips in ten bins.
#[test]
fn a_bin_is_a_tenth_of_three_and_a_half_round_trips() {
    let mut search = Search::new(IW);
    assert_eq!(search.on_ack(&ack(600, 1000, 9000, 600)), None);
    let bins = search.bins.unwrap();
    assert_eq!((bins.duration, bins.end), (MS(210), at(810)));
    assert_eq!((bins.acked(0), bins.sent(0)), (1000, 10_000));
}

/// Only an ACK that passes the end of a bin counts, and a bin without an ACK holds what the one before it held.
#[test]
fn bins_in_which_no_ack_came_hold_what_was_known() {
    let mut search = Search::new(IW);
    for (ms, acked) in [(100, 1000), (110, 1000), (135, 1000), (206, 1000)] {
        search.on_ack(&ack(ms, acked, 9000, 100));
    }
    let bins = search.bins.unwrap();
    assert_eq!((bins.index, bins.end), (3, at(240)));
    assert_eq!([0, 1, 2, 3].map(|i| bins.acked(i)), [1000, 1000, 1000, 4000]);
    assert_eq!([0, 2, 3].map(|i| bins.sent(i)), [10_000, 10_000, 13_000]);
}

/// 6 GB in a bin, of which 32 bits would hold the rest of a division.
#[test]
fn a_bin_holds_more_than_32_bits() {
    let mut search = Search::new(IW);
    search.on_ack(&ack(100, 1000, 9000, 100));
    search.on_ack(&ack(136, 6_000_000_000, 9000, 100));
    let bins = search.bins.unwrap();
    assert_eq!((bins.index, bins.acked(1), bins.sent(1)), (1, 6_000_001_000, 6_000_010_000));
}

/// W bins may pass, 350 ms; after one more the state begins anew, with the round trip time of the next ACK.
#[test]
fn a_pause_of_more_than_a_window_begins_anew() {
    for (ms, index) in [(135 + 349, Some(10)), (135 + 351, None)] {
        let mut search = Search::new(IW);
        search.on_ack(&ack(100, 1000, 9000, 100));
        search.on_ack(&ack(ms, 1000, 9000, 100));
        assert_eq!(search.bins.as_ref().map(|bins| bins.index), index, "{ms} ms");
        search.on_ack(&ack(ms + 1, 1000, 9000, 200));
        if index.is_none() {
            assert_eq!(search.bins.as_ref().map(|bins| (bins.index, bins.duration)), Some((0, MS(70))));
        }
    }
}

/// 1000 bytes are sent in each bin, except for 4000 in bin 12. A round trip of 100 ms is 2 bins and 6/7: with 15 bins, the window
/// ends 6/7 of a bin before bin 13, of whose two windows one holds bin 12 and the other as well; with 14 bins, before bin 12, where
/// only a seventh counts.
#[test]
fn what_was_sent_is_taken_between_two_bins() {
    let sent = |i: usize| 1000 * i as u64 + if i >= 12 { 3000 } else { 0 };
    let found = |count| bins(sent, sent, count).prev_sent(MS(100)).unwrap();
    assert!((found(15) - 13_000.0).abs() < 1e-6, "{}", found(15));
    assert!((found(14) - (10_000.0 + 3000.0 / 7.0)).abs() < 1e-6, "{}", found(14));
}

/// prev_idx > W: 12 bins are too few for two bins back, 13 are enough. curr_idx - prev_idx < EXTRA_BINS: a round trip of 14 bins can
/// be looked back, 15 cannot.
#[test]
fn the_bins_must_reach_back_a_round_trip_and_a_window() {
    let sent = |i: usize| 1000 * i as u64;
    assert_eq!(bins(sent, sent, 12).prev_sent(MS(100)), None);
    assert!(bins(sent, sent, 13).prev_sent(MS(100)).is_some());
    let long = bins(sent, sent, 40);
    assert!(long.prev_sent(MS(35 * 15 - 1)).is_some());
    assert_eq!(long.prev_sent(MS(35 * 15)), None);
}

/// §4: slow start ends at a difference of 0.26, not below it.
#[test]
fn a_difference_of_a_quarter_is_not_enough() {
    for (delivered, full) in [(7500, false), (7401, false), (7400, true), (5000, true), (20_000, false)] {
        let sent = |i: usize| 1000 * i as u64;
        let acked = |i: usize| if i >= 20 { delivered } else { 0 };
        assert_eq!(bins(sent, acked, 20).is_full(MS(70)), full, "{delivered}");
    }
    assert_eq!(norm_diff(0.0, 10), None);
    assert_eq!(norm_diff(10_000.0, 7400), Some(0.26));
}

/// A window that doubles each round trip without a limit is never judged: what is delivered is what was sent.
#[test]
fn a_path_that_is_never_full_never_ends_slow_start() {
    let doubling = |i: usize| (1000.0 * (i as f64 * 0.35).exp2()) as u64;
    let delivered = |i: usize| (1000.0 * (i as f64 * 0.35 - 1.0).exp2()) as u64;
    for count in 13..40 {
        assert!(!bins(doubling, delivered, count).is_full(MS(100)), "{count}");
    }
}

/// Three segments are acknowledged for each one that leaves: a flight of 30 falls by two in three ACKs down to the target.
#[test]
fn the_drain_lets_one_segment_of_three_go_until_the_target() {
    let mut drain = Drain { target: 20 * MSS, credit: Bytes::ZERO };
    let (mut flight, mut cwnd, mut windows) = (30, 40 * MSS, Vec::new());
    while cwnd > drain.target {
        let sample = Ack { in_flight: flight * MSS, ..driver::ack(MSS, 100) };
        cwnd = drain.on_ack(&sample, cwnd, MSS);
        flight = cwnd / MSS;
        windows.push(flight);
    }
    assert_eq!(windows, [29, 28, 28, 27, 26, 26, 25, 24, 24, 23, 22, 22, 21, 20]);
    let sample = Ack { in_flight: 5 * MSS, ..driver::ack(MSS, 100) };
    assert_eq!(drain.on_ack(&sample, 8 * MSS, MSS), 8 * MSS, "it never grows");
}

/// What the target says is never less than a connection begins with.
#[test]
fn the_target_is_at_least_the_initial_window() {
    let mut search = Search::new(IW);
    search.bins = Some(bins(|i| 1000 * i as u64, |_| 0, 20));
    let drain = search.on_ack(&ack(35 * 21 + 1, 100, 9000, 70)).unwrap();
    assert_eq!(drain.target, IW);
}
