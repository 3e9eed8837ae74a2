use super::super::driver::{self, MSS};
use super::*;

const SEG: f64 = MSS.as_f64();

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(1000 + ms)
}

fn segments(n: f64) -> Bytes {
    Bytes::new((n * SEG) as u64)
}

fn new() -> Bbr3 {
    let mut cc = Bbr3::new(&Config::default(), &driver::SETUP);
    cc.on_notice(&Notice::Begin(Begin { now: at(0), srtt: Span::from_millis(40), sack: true }));
    cc
}

/// A control with a model: `bdp` segments in 100 ms, and the pipe was full.
fn with_model(state: State, bdp: f64) -> Bbr3 {
    let bw = bdp * SEG / 0.1;
    let cwnd = 2.0 * bdp * SEG;
    let pacing_rate = Some(bw);
    let filter = |cc: &mut Bbr3| cc.max_bw = cc.max_bw_filter.update(bw);
    let mut cc = Bbr3 { state, bw, min_rtt: 0.1, cwnd, pacing_rate, full_bw_reached: true, ..new() };
    filter(&mut cc);
    cc
}

/// A sample: a segment arrives after 100 ms, `rate` in segments per second.
fn sample(cc: &Bbr3, rate: f64) -> Delivered {
    Delivered {
        now: at(100),
        rtt: Some(Span::from_millis(100)),
        delivered: Bytes::new(cc.delivered as u64) + segments(rate / 10.0),
        newly_acked: MSS,
        prior_delivered: Bytes::new(cc.delivered as u64),
        interval: Span::from_millis(100),
        app_limited: false,
        tx_in_flight: segments(10.0),
        lost: Bytes::ZERO,
        in_flight: segments(10.0),
        prior_in_flight: segments(11.0),
        departs: at(100),
        cwnd_limited: false,
    }
}

fn lost(lost: f64, tx_in_flight: f64) -> LostSegment {
    LostSegment {
        now: at(100),
        size: MSS,
        delivered: Bytes::ZERO,
        prior_delivered: Bytes::ZERO,
        tx_in_flight: segments(tx_in_flight),
        lost: segments(lost),
        app_limited: false,
        apart: true,
    }
}

/// The table of §5.6.1 and the constants of §2.
#[test]
fn the_gains_are_those_of_the_draft() {
    let gains = |state| {
        let cc = Bbr3 { state, ..new() };
        (cc.pacing_gain(), cc.cwnd_gain())
    };
    use State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
    let all = [Startup, Drain, Down, Cruise, Refill, Up, ProbeRtt].map(gains);
    let draft = [(2.77, 2.0), (0.5, 2.0), (0.9, 2.0), (1.0, 2.0), (1.0, 2.0), (1.25, 2.25), (1.0, 0.5)];
    assert_eq!(all, draft);
    let config = Config::default();
    assert!((config.startup_pacing_gain - 4.0 * 2f64.ln()).abs() < 0.003);
    assert_eq!((config.loss_threshold, config.beta, config.headroom, config.min_segments), (0.02, 0.7, 0.15, 4));
    assert_eq!((config.min_rtt_window, config.probe_rtt_interval), (Span::from_secs(10), Span::from_secs(5)));
    assert_eq!((config.probe_rtt_time, config.full_loss_ranges), (Span::from_millis(200), 6));
    assert_eq!((config.full_bw_growth, config.full_bw_rounds, config.extra_acked_rounds), (1.25, 3, 10));
    assert_eq!(config.pacing_margin, 0.99);
}

/// §5.6.2: 2.77 windows of 10 000 bytes per round trip of 40 ms, or of 1 ms if none is known; no margin.
#[test]
fn the_first_pace_is_that_of_the_first_window() {
    let pace = |srtt| {
        let mut cc = Bbr3::new(&Config::default(), &driver::SETUP);
        cc.begin(&Begin { now: at(0), srtt, sack: true });
        cc.pacing_rate().map_or(0, Rate::as_bps)
    };
    assert_eq!(pace(Span::from_millis(40)), 5_540_000);
    assert_eq!(pace(Span::ZERO), 221_600_000);
}

/// §5.3.1.2: three rounds with less than a quarter more, application-limited rounds not counted.
#[test]
fn the_pipe_is_full_after_three_rounds_without_growth() {
    let mut cc = new();
    for (rate, app_limited, full) in [
        (100.0, false, false),
        (120.0, false, false),
        (124.0, false, false),
        (125.0, false, false), // a quarter more
        (125.0, false, false),
        (125.0, true, false),
        (150.0, false, false),
        (156.0, false, true),
    ] {
        cc.round_start = true;
        let rs = Delivered { app_limited, ..sample(&cc, rate) };
        cc.check_full_bw_reached(&rs);
        assert_eq!((cc.full_bw_now, cc.full_bw_reached), (full, full), "at {rate}");
    }
    cc.check_startup_done(&sample(&cc, 100.0));
    assert_eq!(cc.state, State::Drain);
}

/// §5.3.1.3: a whole round of fast recovery, more than 2 % lost, in six places.
#[test]
fn startup_ends_with_losses_in_six_places_of_a_round() {
    for (places, part, recovering, ends) in
        [(6, 0.03, true, true), (5, 0.03, true, false), (6, 0.02, true, false), (6, 0.03, false, false)]
    {
        let mut cc = Bbr3 { bw: 1e6, min_rtt: 0.04, inflight_latest: 30_000.0, ..new() };
        if recovering {
            cc.on_loss(&driver::loss(100 * MSS));
        }
        (0..places).for_each(|_| cc.on_notice(&Notice::Lost(lost(1.0, 100.0))));
        cc.loss_round_start = true;
        let rs = Delivered { lost: segments(100.0 * part), tx_in_flight: segments(100.0), ..sample(&cc, 100.0) };
        cc.check_startup_done(&rs);
        assert_eq!((cc.full_bw_now, cc.full_bw_reached), (ends, ends), "{places} places, {part}");
        assert_eq!(cc.state == State::Drain, ends);
        assert_eq!(cc.lost_ranges, 0, "the round is over");
        // max(BBR.bdp, BBR.inflight_latest): 40 000 bytes.
        assert_eq!(
            (cc.inflight_longterm, cc.undo.state),
            if ends { (4e4, Some(State::Startup)) } else { (f64::INFINITY, None) }
        );
    }
}

/// §5.3.1.3: without SACK any loss in fast recovery ends it.
#[test]
fn startup_ends_with_one_loss_without_sack() {
    let mut cc = Bbr3 { sack: false, ..new() };
    cc.on_loss(&driver::loss(10 * MSS));
    cc.on_notice(&Notice::Lost(lost(1.0, 10.0)));
    cc.check_startup_done(&sample(&cc, 100.0));
    assert_eq!(cc.state, State::Drain);
}

/// §5.3.2: the flight is the BDP, or more than three rounds are over.
#[test]
fn drain_ends_by_the_flight_or_after_three_rounds() {
    for (flight, rounds, ends) in [(10.0, 0, true), (10.1, 3, false), (10.1, 4, true)] {
        let mut cc = with_model(State::Startup, 10.0);
        cc.enter_drain();
        cc.round_count += rounds;
        cc.check_drain_done(&Delivered { in_flight: segments(flight), ..sample(&cc, 100.0) });
        assert_eq!(cc.state == State::Down, ends, "{flight} segments after {rounds} rounds");
    }
}

/// §5.3.3.8: rounds since the last probe, as many as segments in flight and at most 63.
#[test]
fn a_small_flight_probes_as_often_as_reno_would() {
    for (bdp, rounds) in [(10.0, 10), (62.5, 63), (500.0, 63)] {
        let mut cc = with_model(State::Cruise, bdp);
        cc.rounds_since_probe_up = rounds - 1;
        assert!(!cc.is_reno_coexistence_probe_time(), "{bdp}");
        cc.rounds_since_probe_up = rounds;
        assert!(cc.is_reno_coexistence_probe_time(), "{bdp}");
    }
}

/// §5.3.3.8: 0 or 1 rounds, and 2 s to 3 s, evenly.
#[test]
fn the_wait_for_a_probe_is_two_to_three_seconds() {
    let (mut ones, mut sum) = (0, 0.0);
    for ns in 0..1000 {
        let mut cc = new();
        cc.pick_probe_wait(Instant::from_nanos(ns));
        assert!(cc.rounds_since_probe_up <= 1 && (2.0..3.0).contains(&cc.bw_probe_wait.as_secs_f64()));
        ones += cc.rounds_since_probe_up;
        sum += cc.bw_probe_wait.as_secs_f64();
    }
    assert!((400..600).contains(&ones) && (sum - 2500.0).abs() < 40.0, "{ones}, {sum}");
    let mut cc = with_model(State::Cruise, 500.0);
    (cc.cycle_stamp, cc.bw_probe_wait, cc.rounds_since_probe_up) = (at(0), Span::from_millis(100), 0);
    cc.update_probe_bw_cycle_phase(&sample(&cc, 100.0));
    assert_eq!(cc.state, State::Cruise, "not later than the wait");
    cc.update_probe_bw_cycle_phase(&Delivered { now: at(101), ..sample(&cc, 100.0) });
    assert_eq!(cc.state, State::Refill);
}

/// §5.3.3.9, IsTimeToCruise(): the flight is the BDP and leaves headroom of 15 %, a segment at least, of a known limit.
#[test]
fn down_ends_when_the_flight_leaves_headroom() {
    for (longterm, flight, ends) in
        [(f64::INFINITY, 100.0, true), (f64::INFINITY, 100.1, false), (80.0, 68.0, true), (80.0, 68.1, false)]
    {
        let mut cc = with_model(State::Down, 100.0);
        (cc.cycle_stamp, cc.bw_probe_wait, cc.inflight_longterm) = (at(0), Span::from_secs(2), longterm * SEG);
        cc.update_probe_bw_cycle_phase(&Delivered {
            in_flight: segments(flight),
            tx_in_flight: segments(1.0),
            ..sample(&cc, 100.0)
        });
        assert_eq!(cc.state == State::Cruise, ends, "{longterm} {flight}");
    }
    let headroom = |longterm| Bbr3 { inflight_longterm: longterm * SEG, ..new() }.inflight_with_headroom() / SEG;
    assert_eq!([headroom(100.0), headroom(6.0), headroom(4.5)], [85.0, 5.0, 4.0]);
}

/// §5.3.3.3 to §5.3.3.7: REFILL lasts a round, and UP ends when the rate stays for three.
#[test]
fn refill_lasts_a_round_and_up_until_the_rate_stays() {
    let mut cc = with_model(State::Cruise, 100.0);
    (cc.bw_shortterm, cc.inflight_shortterm) = (1.0, 1.0);
    cc.start_probe_bw_refill();
    assert_eq!((cc.bw_shortterm, cc.inflight_shortterm), (f64::INFINITY, f64::INFINITY), "§5.3.3.3");
    cc.round_start = false;
    cc.update_probe_bw_cycle_phase(&sample(&cc, 1000.0));
    assert_eq!((cc.state, cc.is_bw_probe_sample), (State::Refill, false));
    cc.round_start = true;
    cc.update_probe_bw_cycle_phase(&sample(&cc, 1000.0));
    assert_eq!((cc.state, cc.is_bw_probe_sample, cc.full_bw), (State::Up, true, 1000.0 * SEG));
    for n in 1..=3 {
        cc.round_start = true;
        let rs = sample(&cc, 1100.0);
        cc.check_full_bw_reached(&rs);
        assert_eq!(cc.state, State::Up, "{n}");
        cc.update_probe_bw_cycle_phase(&rs);
    }
    assert_eq!(cc.state, State::Down);
    // The window is limited by inflight_longterm: the plateau says nothing (§5.3.3.7, 1).
    let mut cc = with_model(State::Up, 100.0);
    (cc.full_bw_now, cc.inflight_longterm) = (true, cc.cwnd);
    let rs = Delivered { cwnd_limited: true, ..sample(&cc, 1000.0) };
    assert!(!cc.is_time_to_go_down(&rs) && !cc.full_bw_now);
}

/// §5.3.3.5: in each round trip inflight_longterm grows by 1, 2, 4, 8 segments.
#[test]
fn the_limit_grows_by_twice_as_much_each_round() {
    let mut cc = with_model(State::Up, 32.0);
    cc.inflight_longterm = cc.cwnd;
    cc.raise_inflight_longterm_slope();
    let mut round = || {
        let mut grown = 0.0;
        for ack in 0..64 {
            cc.round_start = ack == 63;
            cc.inflight_longterm = cc.cwnd;
            let rs = Delivered { cwnd_limited: true, ..sample(&cc, 1000.0) };
            cc.probe_inflight_longterm_upward(&rs);
            grown += (cc.inflight_longterm - cc.cwnd) / SEG;
        }
        grown
    };
    assert_eq!([round(), round(), round(), round()], [1.0, 2.0, 4.0, 8.0]);
}

/// §5.5.10.2, by hand: of 100 segments in flight three are lost. Before the last of them 99 were in flight and 2 lost; the
/// part of it that could be lost is (0.02 99 - 2) / 0.98 = -0.0204 of a segment.
#[test]
fn a_loss_while_probing_sets_the_limit_to_what_was_in_flight() {
    let mut cc = with_model(State::Up, 100.0);
    cc.is_bw_probe_sample = true;
    cc.on_notice(&Notice::Lost(lost(2.0, 100.0)));
    assert_eq!((cc.state, cc.inflight_longterm), (State::Up, f64::INFINITY), "2 % is not too much");
    cc.on_notice(&Notice::Lost(lost(3.0, 100.0)));
    assert_eq!((cc.state, cc.prev_probe_too_high, cc.undo.state), (State::Down, true, Some(State::Up)));
    assert!((cc.inflight_longterm / SEG - 98.979_592).abs() < 1e-6, "{}", cc.inflight_longterm);
    // Beta bounds it: 0.7 of the BDP of 100 segments.
    let mut cc = Bbr3 { is_bw_probe_sample: true, ..with_model(State::Refill, 100.0) };
    cc.on_notice(&Notice::Lost(lost(3.0, 50.0)));
    assert_eq!((cc.state, cc.inflight_longterm / SEG), (State::Refill, 70.0));
    // Application-limited: the limit stays.
    let mut cc = Bbr3 { is_bw_probe_sample: true, ..with_model(State::Up, 100.0) };
    cc.on_notice(&Notice::Lost(LostSegment { app_limited: true, ..lost(3.0, 100.0) }));
    assert_eq!((cc.state, cc.inflight_longterm), (State::Down, f64::INFINITY));
}

/// §5.3.3.6: after a probe with too many losses the next one ends at their flight, and if that goes well the pipe is
/// filled again at once.
#[test]
fn a_probe_after_losses_is_precautionary() {
    let mut cc = with_model(State::Up, 100.0);
    (cc.prev_probe_too_high, cc.inflight_longterm) = (true, 110.0 * SEG);
    let below = Delivered { in_flight: segments(109.0), ..sample(&cc, 1000.0) };
    cc.update_probe_bw_cycle_phase(&below);
    assert_eq!(cc.state, State::Up);
    cc.update_probe_bw_cycle_phase(&Delivered { in_flight: segments(110.0), ..below });
    assert_eq!((cc.state, cc.prev_probe_precautionary, cc.prev_probe_too_high), (State::Down, true, false));
    cc.round_start = true;
    cc.update_probe_bw_cycle_phase(&below);
    assert_eq!((cc.state, cc.max_bw_filter.cycle_count), (State::Refill, 1));
}

/// §5.5.10.3: once per round with losses, and not while probing; Beta bounds both.
#[test]
fn losses_reduce_the_short_term_limits_once_per_round() {
    let mut cc = with_model(State::Cruise, 100.0);
    cc.on_notice(&Notice::Lost(lost(1.0, 100.0)));
    cc.loss_round_start = true;
    (cc.bw_latest, cc.inflight_latest) = (0.9 * cc.max_bw, 0.9 * cc.cwnd);
    let expected = (cc.bw_latest, cc.inflight_latest);
    cc.update_congestion_signals(&sample(&cc, 500.0));
    assert_eq!((cc.bw_shortterm, cc.inflight_shortterm), expected, "what was delivered");
    cc.update_congestion_signals(&sample(&cc, 500.0));
    assert_eq!((cc.bw_shortterm, cc.inflight_shortterm), expected, "no loss in this round");
    cc.on_notice(&Notice::Lost(lost(1.0, 100.0)));
    (cc.bw_latest, cc.inflight_latest, cc.loss_round_start) = (0.0, 0.0, true);
    cc.update_congestion_signals(&sample(&cc, 500.0));
    assert_eq!((cc.bw_shortterm, cc.inflight_shortterm), (0.7 * expected.0, 0.7 * expected.1));
    cc.bound_bw_for_model();
    assert_eq!(cc.bw, cc.bw_shortterm);
    for state in [State::Startup, State::Refill, State::Up] {
        let mut cc = with_model(state, 100.0);
        cc.on_notice(&Notice::Lost(lost(1.0, 100.0)));
        cc.loss_round_start = true;
        cc.update_congestion_signals(&sample(&cc, 500.0));
        assert!(cc.bw_shortterm.is_infinite() && cc.inflight_shortterm.is_infinite());
    }
}

/// §3.7.
#[test]
fn a_mark_is_a_loss_in_its_round() {
    let mark = Loss { ecn: true, ..driver::loss(120 * MSS) };
    let mut cc = with_model(State::Cruise, 100.0);
    cc.on_loss(&mark);
    cc.on_recovered(at(100));
    assert!(cc.is_loss_in_round && !cc.recovering);
    let mut cc = Bbr3 { is_bw_probe_sample: true, ..with_model(State::Up, 100.0) };
    cc.on_loss(&mark);
    assert_eq!((cc.state, cc.inflight_longterm / SEG), (State::Down, 120.0));
}

/// §5.6.4.7: the volume caps of the table in §5.6.1.
#[test]
fn each_state_has_its_volume_cap() {
    use State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
    for (state, cap) in
        [(Startup, 200.0), (Drain, 200.0), (Down, 60.0), (Cruise, 51.0), (Refill, 60.0), (Up, 60.0), (ProbeRtt, 50.0)]
    {
        let mut cc = Bbr3 { inflight_longterm: 60.0 * SEG, ..with_model(state, 100.0) };
        cc.set_cwnd(&sample(&cc, 1000.0));
        assert_eq!(cc.cwnd / SEG, cap, "{state:?}");
        cc.inflight_shortterm = 20.0 * SEG;
        cc.set_cwnd(&sample(&cc, 1000.0));
        assert_eq!(cc.cwnd / SEG, 20.0, "{state:?}");
        cc.inflight_shortterm = 2.0 * SEG;
        cc.set_cwnd(&sample(&cc, 1000.0));
        assert_eq!(cc.cwnd / SEG, 4.0, "MinPipeCwnd");
    }
}

/// §5.6.4.2: three quanta, four segments, and two more in UP. A quantum is a millisecond of the pace, at least two segments
/// and at most 64 KiB (§5.6.3).
#[test]
fn the_flight_allows_three_quanta() {
    let flight = |state, bdp: f64, pace: f64| {
        let cc = Bbr3 { pacing_rate: Some(pace), ..with_model(state, bdp) };
        cc.inflight(cc.bw, 1.0) / SEG
    };
    assert_eq!(
        [flight(State::Cruise, 1.0, 1e3), flight(State::Up, 1.0, 1e3), flight(State::Cruise, 50.0, 1e3)],
        [6.0, 8.0, 50.0]
    );
    assert_eq!([flight(State::Cruise, 1.0, 5e6), flight(State::Cruise, 1.0, 1e9)], [15.0, 196.608]);
}

/// §5.5.5, §5.5.6: the larger of this cycle and the one before; application-limited samples count only if they are larger.
#[test]
fn the_rate_is_the_largest_of_two_cycles() {
    let mut filter = MaxBw::default();
    let found = [(0, 50.0), (0, 40.0), (1, 30.0), (1, 45.0), (2, 20.0), (3, 10.0), (5, 5.0)].map(|(cycle, rate)| {
        filter.cycle_count = cycle;
        filter.update(rate)
    });
    assert_eq!(found, [50.0, 50.0, 50.0, 50.0, 45.0, 20.0, 5.0]);
    let mut cc = with_model(State::Cruise, 100.0);
    cc.max_bw_filter.cycle_count = 5;
    let limited = |cc: &Bbr3, rate| Delivered { app_limited: true, ..sample(cc, rate) };
    cc.update_on_ack(&limited(&cc, 500.0));
    assert_eq!(cc.max_bw, 1000.0 * SEG);
    cc.update_on_ack(&limited(&cc, 1200.0));
    assert_eq!(cc.max_bw, 1200.0 * SEG);
}

/// §5.5.9: what an ACK delivers beyond bw over the time since the begin of the interval.
#[test]
fn extra_acked_is_what_comes_beyond_the_rate() {
    let mut cc = with_model(State::Cruise, 100.0);
    cc.extra_acked_interval_start = at(100);
    cc.update_ack_aggregation(&Delivered { newly_acked: segments(30.0), ..sample(&cc, 1000.0) });
    assert_eq!(cc.extra_acked() / SEG, 30.0, "no time has passed");
    cc.update_ack_aggregation(&Delivered { now: at(110), newly_acked: segments(30.0), ..sample(&cc, 1000.0) });
    assert!((cc.extra_acked() / SEG - 50.0).abs() < 1e-9, "60 came, 10 were expected");
    cc.update_ack_aggregation(&Delivered { now: at(300), newly_acked: segments(1.0), ..sample(&cc, 1000.0) });
    assert_eq!(cc.extra_acked_delivered, SEG, "too few came: a new interval");
    cc.extra_acked_interval_start = at(300);
    cc.update_ack_aggregation(&Delivered { now: at(300), newly_acked: segments(900.0), ..sample(&cc, 1000.0) });
    assert_eq!(cc.extra_acked(), cc.cwnd, "at most the window");
}

/// §5.3.4.3: after 5 s without a smaller round trip time, at half the BDP, for 200 ms and a round; the window returns.
#[test]
fn the_round_trip_time_is_probed_at_half_the_product() {
    let mut cc = with_model(State::Cruise, 100.0);
    (cc.probe_rtt_min_delay, cc.probe_rtt_min_stamp) = (0.1, at(0));
    let ack = |cc: &Bbr3, ms, flight| Delivered {
        now: at(ms),
        rtt: Some(Span::from_millis(110)),
        in_flight: segments(flight),
        ..sample(cc, 1000.0)
    };
    (cc.cycle_stamp, cc.bw_probe_wait) = (at(0), Span::from_secs(60));
    cc.on_notice(&Notice::Delivered(ack(&cc, 5000, 100.0)));
    assert_eq!(cc.state, State::Cruise, "not later than 5 s");
    cc.on_notice(&Notice::Delivered(ack(&cc, 5001, 100.0)));
    assert_eq!((cc.state, cc.cwnd / SEG), (State::ProbeRtt, 50.0));
    assert_eq!((cc.min_rtt, cc.probe_rtt_min_delay), (0.1, 0.11), "min_rtt is remembered for 10 s");
    cc.on_notice(&Notice::Delivered(ack(&cc, 5100, 51.0)));
    assert_eq!(cc.probe_rtt_done_stamp, None);
    cc.on_notice(&Notice::Delivered(ack(&cc, 5110, 50.0)));
    assert_eq!(cc.probe_rtt_done_stamp, Some(at(5310)));
    cc.on_notice(&Notice::Delivered(ack(&cc, 5310, 50.0)));
    assert_eq!(cc.state, State::ProbeRtt, "not before 200 ms are over");
    assert!(cc.sent_in_probe_rtt(Bytes::new(cc.delivered as u64)), "it is application-limited");
    cc.on_notice(&Notice::Delivered(ack(&cc, 5311, 50.0)));
    assert_eq!((cc.state, cc.cwnd / SEG), (State::Cruise, 201.0), "two products, and extra_acked of a segment");
    // Without a full pipe it returns to Startup.
    let mut cc = Bbr3 { full_bw_reached: false, ..with_model(State::ProbeRtt, 100.0) };
    cc.probe_rtt_done_stamp = Some(at(0));
    cc.check_probe_rtt_done(at(1));
    assert_eq!(cc.state, State::Startup);
}

/// §5.4.1: exactly bw, no ProbeRTT at the first sample after the idle time, and none of its ACKs is extra.
#[test]
fn after_an_idle_time_the_pace_is_the_rate_of_the_path() {
    let mut cc = with_model(State::Down, 100.0);
    cc.on_notice(&Notice::Restart(at(9000)));
    assert_eq!(cc.pacing_rate, Some(0.99 * cc.bw), "less the margin of SetPacingRateWithGain()");
    assert_eq!((cc.idle_restart, cc.extra_acked_interval_start), (true, at(9000)));
    cc.on_notice(&Notice::Delivered(Delivered { now: at(9100), ..sample(&cc, 1000.0) }));
    assert!(cc.state != State::ProbeRtt && !cc.idle_restart);
    // It ends a ProbeRTT whose time is over.
    let mut cc = Bbr3 { probe_rtt_done_stamp: Some(at(0)), ..with_model(State::ProbeRtt, 100.0) };
    cc.on_notice(&Notice::Restart(at(1)));
    assert_eq!(cc.state, State::Cruise);
}

/// §5.5.11: the limits, the window and the state return.
#[test]
fn a_loss_that_was_none_is_taken_back() {
    let mut cc = with_model(State::Up, 100.0);
    cc.is_bw_probe_sample = true;
    let before = cc.cwnd;
    cc.on_loss(&driver::loss(100 * MSS));
    cc.on_notice(&Notice::Lost(lost(3.0, 100.0)));
    (cc.cwnd, cc.bw_shortterm, cc.inflight_shortterm) = (SEG, 1.0, 1.0);
    cc.on_recovered(at(200));
    cc.on_notice(&Notice::Spurious(at(200)));
    assert_eq!((cc.state, cc.cwnd, cc.inflight_longterm), (State::Refill, before, f64::INFINITY));
    assert!(cc.bw_shortterm.is_infinite() && cc.inflight_shortterm.is_infinite());
    let mut cc = with_model(State::Drain, 100.0);
    cc.undo.state = Some(State::Startup);
    cc.on_notice(&Notice::Spurious(at(200)));
    assert_eq!((cc.state, cc.full_bw_reached, cc.undo.state), (State::Startup, false, None));
    // ProbeRTT goes on; after it comes the state that was taken back.
    for (undo, full) in [(State::Up, true), (State::Startup, false)] {
        let mut cc = with_model(State::ProbeRtt, 100.0);
        cc.undo.state = Some(undo);
        cc.on_notice(&Notice::Spurious(at(200)));
        assert_eq!((cc.state, cc.full_bw_reached), (State::ProbeRtt, full));
    }
}

/// §5.6.4.4: one segment beside what is in flight, and the window before at the end.
#[test]
fn a_timeout_leaves_one_segment_and_its_end_the_window() {
    let mut cc = with_model(State::Cruise, 100.0);
    cc.on_rto(&driver::loss(3 * MSS));
    assert_eq!(cc.cwnd(), 4 * MSS);
    cc.on_rto(&driver::loss(Bytes::ZERO));
    assert_eq!(cc.cwnd(), MSS);
    // RFC 5681 §3.1, eq. (4): ssthresh is never less than two segments.
    let mut other = Bbr3 { cwnd: SEG, ..new() };
    other.on_rto(&driver::loss(Bytes::ZERO));
    assert_eq!(other.ssthresh(), 2 * MSS);
    cc.on_recovered(at(1000));
    assert_eq!(cc.cwnd(), 200 * MSS);
}

#[test]
fn without_samples_it_is_slow_start() {
    let mut cc = Bbr3::new(&Config::default(), &driver::SETUP);
    (0..10).for_each(|_| cc.on_ack(&driver::ack(MSS, 100)));
    assert_eq!(cc.cwnd(), 20 * MSS);
}
