use super::super::driver::{self, MSS};
use super::*;

fn new() -> LedbatPp {
    LedbatPp::new(&Config::default(), &driver::SETUP)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// An ACK of a segment at `ms` with a round trip of `rtt_ms`.
fn ack(ms: u64, rtt_ms: u64) -> Ack {
    Ack { now: at(ms), ..driver::ack(MSS, rtt_ms) }
}

/// In congestion avoidance with `segments`, a path of `base_ms` and a queue of `delay_ms`; no slowdown is planned.
fn avoiding(segments: f64, base_ms: u64, delay_ms: u64) -> LedbatPp {
    let mut cc = new();
    (cc.phase, cc.first, cc.next) = (Phase::Avoidance, false, at(1 << 40));
    (cc.window.cwnd, cc.window.ssthresh) = (segments, segments);
    cc.delays.take(Instant::ZERO, Span::from_millis(base_ms));
    (0..FILTER).for_each(|_| cc.delays.take(Instant::ZERO, Span::from_millis(base_ms + delay_ms)));
    cc
}

/// 2 x 60 ms / base: 120/7 = 17.1, at most 16; 120/10 = 12; 120/50 = 2.4; 120/100 = 1.2; 120/120 = 1; below 1 above.
#[test]
fn the_gain_is_smaller_on_short_paths() {
    for (base_ms, parts) in [(1, 16.0), (7, 16.0), (8, 15.0), (10, 12.0), (50, 3.0), (100, 2.0), (120, 1.0), (600, 1.0)]
    {
        assert_eq!(avoiding(10.0, base_ms, 0).gain(), 1.0 / parts, "{base_ms} ms");
    }
    assert_eq!(new().gain(), 1.0, "before the first sample");
}

/// By hand, 20 segments, 100 ms (gain 1/2), per round trip: up to 60 ms +0.5; 66 ms 0.5 - 20 0.1 = -1.5; 75 ms
/// 0.5 - 20 0.25 = -4.5; 90 ms 0.5 - 10 = -9.5; 120 ms 0.5 - 20, at most half: -10.
#[test]
fn above_the_target_the_window_shrinks_in_proportion_and_by_half_at_most() {
    for (delay_ms, expected) in
        [(0, 0.5), (59, 0.5), (60, 0.5), (66, -1.5), (75, -4.5), (90, -9.5), (120, -10.0), (900, -10.0)]
    {
        let mut cc = avoiding(20.0, 100, delay_ms);
        cc.avoid_congestion(&Ack { acked: 20 * MSS, ..ack(0, 100 + delay_ms) });
        assert!((cc.window.cwnd - 20.0 - expected).abs() < 1e-9, "{delay_ms} ms: {}", cc.window.cwnd);
        let mut idle = avoiding(20.0, 100, delay_ms);
        idle.avoid_congestion(&Ack { acked: 20 * MSS, cwnd_limited: false, ..ack(0, 100 + delay_ms) });
        assert!((idle.window.cwnd - 20.0 - expected.min(0.0)).abs() < 1e-9, "a window not in use does not grow");
    }
    let mut least = avoiding(2.5, 100, 900);
    least.avoid_congestion(&Ack { acked: 20 * MSS, ..ack(0, 1000) });
    assert_eq!(least.window.cwnd, 2.0);
}

/// The gain of 100 ms is 1/2: ACKs of one, two and eight segments open by 0.5, 1 and 1.
#[test]
fn slow_start_grows_by_the_gain_for_two_segments_at_most() {
    for (segments, expected) in [(1, 10.5), (2, 11.0), (8, 11.0)] {
        let mut cc = new();
        cc.on_ack(&Ack { acked: segments * MSS, ..ack(0, 100) });
        assert_eq!(cc.window.cwnd, expected);
    }
}

/// The smallest of four samples counts, so the delay is 46 ms only with the fourth of them; 45 ms is three quarters.
#[test]
fn the_first_slow_start_ends_above_three_quarters_of_the_target_and_later_ones_do_not() {
    for (rtt_ms, ends) in [(145, false), (146, true)] {
        let mut cc = new();
        cc.on_ack(&ack(0, 100));
        for _ in 0..3 {
            cc.on_ack(&ack(1, rtt_ms));
            assert_eq!(cc.phase, Phase::SlowStart);
        }
        cc.on_ack(&ack(2, rtt_ms));
        assert_eq!(cc.phase == Phase::Avoidance, ends, "{rtt_ms} ms");
        assert_eq!(cc.ssthresh() == cc.cwnd(), ends);
    }
    let mut later = avoiding(40.0, 100, 50);
    later.on_rto(&driver::loss(40 * MSS));
    assert_eq!((later.cwnd(), later.ssthresh()), (MSS, 20 * MSS));
    (0..8).for_each(|_| later.on_ack(&ack(1, 150)));
    assert_eq!(later.phase, Phase::SlowStart);
    assert_eq!(later.window.cwnd, 5.0);
}

/// The first slow start ends at 0 s with a round trip of 100 ms: slowdown at 200 ms, two segments up to 400 ms; then 40
/// ACKs of half a segment lead to 22 again. It took from 200 to 440 ms, so the next begins 9 x 240 ms later.
#[test]
fn a_slowdown_comes_after_two_round_trips_and_then_nine_times_as_long_after_each_one_as_it_took() {
    let mut cc = new();
    (cc.window.cwnd, cc.window.ssthresh) = (22.0, 22.0);
    cc.on_ack(&ack(0, 100));
    assert_eq!((cc.phase, cc.next), (Phase::Avoidance, at(200)));
    cc.on_ack(&ack(199, 100));
    assert!(cc.window.cwnd > 22.0);
    cc.window.cwnd = 22.0;
    for ms in [200, 300, 399] {
        cc.on_ack(&ack(ms, 100));
        assert_eq!((cc.window.cwnd, cc.window.ssthresh), (2.0, 22.0), "{ms} ms");
        assert_eq!(cc.phase, Phase::Frozen { until: at(400) });
    }
    for ms in 401..=440 {
        assert_ne!(cc.phase, Phase::Avoidance, "{ms} ms");
        cc.on_ack(&ack(ms, 100));
    }
    assert_eq!((cc.phase, cc.window.cwnd, cc.next), (Phase::Avoidance, 22.0, at(440 + 9 * 240)));
    cc.on_ack(&ack(2599, 100));
    assert_eq!(cc.phase, Phase::Avoidance);
    cc.on_ack(&ack(2600, 100));
    assert_eq!(cc.phase, Phase::Frozen { until: at(2800) });
}

#[test]
fn a_loss_halves_the_flight_and_ends_a_slow_start() {
    let mut cc = new();
    cc.on_loss(&driver::loss(30 * MSS));
    cc.on_recovered(Instant::ZERO);
    cc.on_ack(&ack(5, 100));
    assert_eq!((cc.cwnd(), cc.phase, cc.next), (15 * MSS, Phase::Avoidance, at(205)));
    cc.on_loss(&driver::loss(3 * MSS));
    assert_eq!((cc.cwnd(), cc.ssthresh()), (15 * MSS, 2 * MSS));
}

/// A path that becomes longer is a queue for ten minutes, and then it is the path.
#[test]
fn the_base_delay_is_that_of_the_last_ten_minutes() {
    let mut cc = avoiding(10.0, 100, 0);
    for (minute, queueing_ms) in [(1, 150), (9, 150), (10, 0), (11, 0), (500, 0)] {
        (0..FILTER).for_each(|_| cc.delays.take(at(60_000 * minute), Span::from_millis(250)));
        assert_eq!(cc.delays.queueing(), Span::from_millis(queueing_ms), "{minute} min");
    }
    cc.delays.take(at(60_000 * 501), Span::from_millis(400));
    assert_eq!(cc.delays.base(), Span::from_millis(250));
}
