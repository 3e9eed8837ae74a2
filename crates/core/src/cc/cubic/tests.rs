use super::super::driver::{self, MSS};
use super::super::newreno::{self, NewReno};
use super::*;
use crate::units::Span;

const BETA: f64 = 0.7;
const C: f64 = 0.4;
const HYSTART: Config = Config {
    beta: BETA,
    c: C,
    fast_convergence: true,
    tcp_friendliness: true,
    hystart: true,
    search: false,
    resume_cwnd: None,
    resume_rtt: None,
};

fn w_cubic(t: f64, k: f64, w_max: f64) -> f64 {
    Config::default().w_cubic(t, k, w_max)
}

fn k(w_max: f64, cwnd_epoch: f64) -> f64 {
    Config::default().k(w_max, cwnd_epoch)
}

/// The control after it lost with a window of `segments`: W_max = `segments`, cwnd = 0.7 of it.
fn after_loss(segments: u64) -> Cubic {
    let mut cc = Cubic::new(&Config::default(), &Setup { initial_window: segments * MSS, ..driver::SETUP });
    cc.on_loss(&driver::loss(segments * MSS));
    cc.on_recovered(Instant::ZERO);
    cc
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn ack_at(ms: u64, rtt_ms: u64) -> Ack {
    Ack { now: at(ms), ..driver::ack(MSS, rtt_ms) }
}

fn close(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-9, "{got} is not {expected}");
}

/// W_max = 100, cwnd = 70: K = cbrt(30 / 0.4) = cbrt(75) = 4.2172 s.
#[test]
fn the_curve_passes_through_the_points_of_the_rfc() {
    let k = k(100.0, 70.0);
    close(k, 4.217_163_326_508_746);
    close(w_cubic(0.0, k, 100.0), 70.0);
    close(w_cubic(k, k, 100.0), 100.0);
    close(w_cubic(2.0 * k, k, 100.0), 130.0);
}

/// 200 ms round trips: here the curve is above Reno's line. The window is W_cubic one round trip ahead, reached one
/// round trip later, through the concave region (K = 4.2 s) into the convex one.
#[test]
fn the_window_follows_the_curve() {
    let mut cc = after_loss(100);
    assert_eq!(cc.cwnd(), 70 * MSS);
    let mut now = Instant::ZERO;
    for round in 1..=35 {
        now = driver::round_trip_from(&mut cc, now, 200);
        let expected = w_cubic(now.as_secs_f64(), k(100.0, 70.0), 100.0);
        if round >= 3 {
            assert!((cc.cwnd - expected).abs() < 1.5, "{} at {} s, not {expected}", cc.cwnd, now.as_secs_f64());
        }
    }
    assert!(cc.cwnd > 105.0, "beyond the plateau the window probes for more: {}", cc.cwnd);
}

/// By hand, second ACK at t = 1 s with RTT = 0.5 s and K = cbrt(75): target = W_cubic(1.5) = 91.97570, so
/// cwnd = 70.00756 + (target - 70.00756) / 70.00756 = 70.32136. The first ACK, at t = 0, adds alpha/70 = 0.00756.
#[test]
fn one_ack_adds_the_way_to_the_target_divided_by_the_window() {
    let mut cc = after_loss(100);
    cc.on_ack(&ack_at(0, 500));
    close(cc.cwnd, 70.0 + (9.0 / 17.0) / 70.0);
    cc.on_ack(&ack_at(1000, 500));
    assert!((cc.cwnd - 70.321_36).abs() < 1e-5, "{}", cc.cwnd);
}

/// §4.2: long after the plateau W_cubic is far away, and a round trip still opens the window by half at most.
#[test]
fn the_target_is_at_most_half_a_window_away() {
    let mut cc = after_loss(100);
    cc.on_ack(&ack_at(0, 100));
    let before = cc.cwnd;
    cc.on_ack(&ack_at(60_000, 100));
    close(cc.cwnd, before + 0.5);
}

/// §4.3: alpha is 9/17 below cwnd_prior and 1 from there on. With a round trip of 1 ms the curve stands still.
#[test]
fn reno_s_estimate_grows_faster_once_it_is_where_it_was() {
    let mut cc = after_loss(10);
    driver::round_trip(&mut cc, 1);
    let slow = cc.cwnd - 7.0;
    assert!((slow - 9.0 / 17.0).abs() < 0.02, "{slow}");
    cc.cwnd_prior = 7.0;
    let before = cc.cwnd;
    (0..7).for_each(|_| cc.on_ack(&driver::ack(MSS, 1)));
    let fast = (cc.cwnd - before) / (7.0 / before);
    assert!((fast - 1.0).abs() < 0.08, "{fast}");
}

#[test]
fn an_ack_never_lowers_the_window() {
    let mut cc = after_loss(100);
    cc.on_ack(&ack_at(0, 100));
    cc.cwnd = 90.0; // above both W_est = 70.01 and W_cubic(0.01 s)
    cc.on_ack(&ack_at(0, 100));
    close(cc.cwnd, 90.0);
    cc.on_ack(&ack_at(10, 100));
    close(cc.cwnd, 90.0);
}

#[test]
fn an_ack_that_fills_a_hole_counts_for_one_window() {
    let mut cc = after_loss(100);
    cc.on_ack(&Ack { acked: 5000 * MSS, ..ack_at(0, 100) });
    close(cc.cwnd, 70.0 + 9.0 / 17.0);
    let target = w_cubic(2.1, k(100.0, 70.0), 100.0);
    cc.on_ack(&Ack { acked: 5000 * MSS, ..ack_at(2000, 100) });
    close(cc.cwnd, target);
}

#[test]
fn fast_convergence_gives_up_part_of_the_share() {
    let mut cc = after_loss(100);
    cc.on_loss(&driver::loss(70 * MSS));
    close(cc.w_max, 70.0 * 0.85);
    assert_eq!(cc.ssthresh(), 49 * MSS);
}

#[test]
fn a_window_above_the_last_one_is_the_new_plateau() {
    let mut cc = after_loss(100);
    cc.cwnd = 120.0;
    cc.on_loss(&driver::loss(120 * MSS));
    close(cc.w_max, 120.0);
    close(cc.cwnd_prior, 120.0);
    assert_eq!(cc.ssthresh(), 84 * MSS);
}

/// §4.6: 0.7 of two segments is 1.4; a loss leaves two segments, an ECN echo 1.4, and ssthresh is two for both.
#[test]
fn a_loss_leaves_two_segments_and_an_ecn_echo_may_leave_less() {
    for (ecn, in_flight, window) in [(false, 2, 2000), (true, 2, 1400), (true, 1, 1000)] {
        let mut cc = Cubic::new(&Config::default(), &driver::SETUP);
        cc.on_loss(&Loss { ecn, ..driver::loss(in_flight * MSS) });
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (Bytes::new(window), 2 * MSS));
    }
}

/// §4.8: one segment, slow start to 0.7 of the flight, then the curve from there with K = 0.
#[test]
fn after_a_timeout_the_curve_begins_where_slow_start_ends() {
    let mut cc = after_loss(100);
    cc.on_rto(&driver::loss(20 * MSS));
    assert_eq!((cc.cwnd(), cc.ssthresh()), (MSS, 14 * MSS));
    cc.on_ack(&Ack { acked: 8 * MSS, ..driver::ack(MSS, 100) });
    assert_eq!(cc.cwnd(), 2 * MSS, "RFC 3465: one segment per ACK after a timeout");
    while cc.cwnd < cc.ssthresh {
        cc.on_ack(&driver::ack(MSS, 100));
    }
    cc.on_ack(&driver::ack(MSS, 100));
    let epoch = cc.epoch.clone().expect("congestion avoidance has begun");
    close(cc.w_max, 14.0);
    close(epoch.k, 0.0);
    close(epoch.w_est, 14.0 + (9.0 / 17.0) / 14.0); // from cwnd_epoch; cwnd_prior is 70
}

/// A loss between the timeout and congestion avoidance begins a stage of its own, with a plateau.
#[test]
fn a_loss_after_a_timeout_has_its_plateau() {
    let mut cc = Cubic::new(&Config::default(), &Setup { initial_window: 100 * MSS, ..driver::SETUP });
    cc.on_rto(&driver::loss(100 * MSS));
    (0..39).for_each(|_| cc.on_ack(&driver::ack(MSS, 100)));
    assert_eq!(cc.cwnd(), 40 * MSS);
    cc.on_loss(&driver::loss(40 * MSS));
    cc.on_recovered(Instant::ZERO);
    cc.on_ack(&driver::ack(MSS, 100));
    // Fast convergence from W_max = 100: 40 * 0.85 = 34; K = cbrt((34 - 28) / 0.4) = cbrt(15).
    close(cc.w_max, 34.0);
    close(cc.epoch.clone().expect("congestion avoidance has begun").k, 2.466_212_074_330_470_3);
}

#[test]
fn slow_start_is_that_of_rfc_5681() {
    let mut cc = Cubic::new(&Config::default(), &driver::SETUP);
    assert_eq!(cc.ssthresh(), Bytes::MAX);
    for expected in [20, 40, 80] {
        driver::round_trip(&mut cc, 100);
        assert_eq!(cc.cwnd(), expected * MSS);
    }
    cc.on_ack(&Ack { acked: 8 * MSS, ..driver::ack(MSS, 100) });
    assert_eq!(cc.cwnd(), 82 * MSS);
}

#[test]
fn a_reduced_window_is_in_congestion_avoidance() {
    let mut cc = after_loss(100);
    cc.on_ack(&driver::ack(MSS, 100));
    assert!(cc.cwnd < 70.01 && cc.epoch.is_some());
}

/// §5.8: after ten minutes in which the application sent little, the window goes on where it was.
#[test]
fn time_without_use_of_the_window_does_not_count() {
    let (mut busy, mut paused) = (after_loss(100), after_loss(100));
    for ms in 0..2000 {
        busy.on_ack(&ack_at(ms, 100));
        paused.on_ack(&ack_at(ms, 100));
    }
    for ms in (2999..=601_999).step_by(1000) {
        paused.on_ack(&Ack { cwnd_limited: false, ..ack_at(ms, 100) });
    }
    assert_eq!(paused.cwnd(), busy.cwnd());
    for ms in 2000..3000 {
        busy.on_ack(&ack_at(ms, 100));
        paused.on_ack(&ack_at(ms + 600_000, 100));
    }
    assert_eq!(paused.cwnd(), busy.cwnd());
}

#[test]
fn an_idle_connection_restarts_from_the_initial_window_at_most() {
    let mut cc = after_loss(100);
    cc.on_ack(&ack_at(0, 100));
    cc.on_idle(at(5000), 10 * MSS);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (10 * MSS, 70 * MSS));
    let mut cc = after_loss(10);
    cc.on_ack(&ack_at(0, 100));
    cc.on_idle(at(5000), 10 * MSS);
    assert_eq!(cc.epoch.clone().expect("the stage goes on").start, at(5000));
}

#[test]
fn the_end_of_a_recovery_without_a_signal_changes_nothing() {
    let mut cc = Cubic::new(&Config::default(), &driver::SETUP);
    cc.on_recovered(Instant::ZERO);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (10 * MSS, Bytes::MAX));
}

/// RFC 9438 §5.1, with one loss per 1/p segments: (C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4) segments.
fn response_function(p: f64, rtt_ms: u64) -> f64 {
    let rtt = rtt_ms as f64 / 1000.0;
    (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25) * (rtt / p).powf(0.75)
}

/// The formula supposes that each period ends at W_max, so the mean over the concave curve is (3 + beta)/4 of W_max.
/// From a little less than that W_max (a little more sets off fast convergence) the mean must be the formula's. The
/// RFC's Table 1 gives 187 and 1054 segments.
#[test]
fn the_mean_window_is_that_of_the_response_function() {
    for (p, rtt_ms, table) in [(1e-4, 100, 187.0), (1e-5, 100, 1054.0)] {
        let law = response_function(p, rtt_ms);
        driver::assert_close(law, table, 0.003);
        let w_max = law * 4.0 / (3.0 + BETA);
        let mut cc = after_loss((w_max * 0.985) as u64);
        driver::assert_close(driver::mean_window_after(0, &mut cc, p, rtt_ms), law, 0.02);
    }
}

/// From slow start the flow comes to that mean from below (fast convergence keeps it there), and slowly: a period that
/// ends d seconds beyond K raises W_max by C d^3 only.
#[test]
fn a_flow_comes_to_the_response_function_from_below() {
    let law = response_function(1e-4, 100);
    let [early, late] = [20, 1000].map(|losses| {
        driver::mean_window_after(losses, &mut Cubic::new(&Config::default(), &driver::SETUP), 1e-4, 100)
    });
    assert!(driver::reno_law(1e-4) < early && early < late && late < law, "{early}, {late}, {law}");
    driver::assert_close(late, law, 0.03);
}

/// §4.3, and Table 2 of §5.1 (120 segments at p = 1e-4): at short round trips the mean window is Reno's.
#[test]
fn at_short_round_trips_it_is_as_fast_as_reno() {
    for (p, rtt_ms) in [(1e-3, 5), (1e-4, 10), (1e-4, 2)] {
        let mean = driver::mean_window(&mut Cubic::new(&Config::default(), &driver::SETUP), p, rtt_ms);
        driver::assert_close(mean, driver::reno_law(p), 0.01);
        driver::assert_close(
            mean,
            driver::mean_window(&mut NewReno::new(&newreno::Config::default(), &driver::SETUP), p, rtt_ms),
            0.03,
        );
    }
}

/// RFC 9406 with 100 segments in flight: a rise from 80 to 90 ms slows slow start down to a quarter, and five rounds
/// later it ends where it is; the curve then begins there, with K = 0.
#[test]
fn with_hystart_slow_start_ends_when_round_trip_times_rise() {
    let setup = Setup { initial_window: 100 * MSS, ..driver::SETUP };
    let (mut cc, mut plain) = (Cubic::new(&HYSTART, &setup), Cubic::new(&Config::default(), &setup));
    let mut windows = vec![];
    for rtt_ms in [80, 90, 90, 90, 90, 90, 90, 90] {
        driver::round_trip(&mut cc, rtt_ms);
        driver::round_trip(&mut plain, rtt_ms);
        windows.push(cc.cwnd() / MSS);
    }
    assert_eq!(windows[0], 200);
    assert!(windows[1] < 270, "a quarter more, and seven ACKs: {windows:?}");
    assert!(cc.ssthresh() < Bytes::MAX && cc.hystart.is_none(), "{windows:?}");
    assert_eq!(plain.cwnd(), 25_600 * MSS);
    cc.on_ack(&ack_at(1000, 90));
    let epoch = cc.epoch.clone().expect("congestion avoidance has begun");
    close(epoch.k, 0.0);
}

#[test]
fn a_loss_ends_hystart() {
    let mut cc = Cubic::new(&HYSTART, &driver::SETUP);
    cc.on_loss(&driver::loss(10 * MSS));
    assert_eq!(cc.hystart, None);
}
