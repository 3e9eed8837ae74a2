use super::super::super::driver::{self, MSS};
use super::super::super::notice::{Begin, LostSegment};
use super::*;

const MS: fn(u64) -> Span = Span::from_millis;

fn at(ms: u64) -> Instant {
    Instant::ZERO + MS(ms)
}

/// An ACK at this time for the segments up to `delivered`, of which it reports `acked`; the newest was sent 100 ms before, when
/// `prior` were delivered, and `in_flight` segments are in flight after it.
fn ack(ms: u64, delivered: u64, acked: u64, prior: u64, in_flight: u64) -> Delivered {
    Delivered {
        now: at(ms),
        rtt: Some(MS(100)),
        delivered: delivered * MSS,
        newly_acked: acked * MSS,
        prior_delivered: prior * MSS,
        interval: MS(100),
        app_limited: false,
        tx_in_flight: in_flight * MSS,
        lost: Bytes::ZERO,
        in_flight: in_flight * MSS,
        prior_in_flight: (in_flight + acked) * MSS,
        departs: at(ms),
        cwnd_limited: true,
    }
}

fn lost(ms: u64) -> Notice {
    Notice::Lost(LostSegment {
        now: at(ms),
        size: MSS,
        delivered: Bytes::ZERO,
        prior_delivered: Bytes::ZERO,
        tx_in_flight: Bytes::ZERO,
        lost: MSS,
        app_limited: false,
        apart: true,
    })
}

fn begun() -> BbrLinux {
    let mut cc = BbrLinux::new(&driver::SETUP);
    cc.on_notice(&Notice::Begin(Begin { now: at(0), srtt: MS(100), sack: true }));
    cc
}

/// In ProbeBW with 100 segments per round trip of 100 ms, in a phase that cruises.
fn settled() -> BbrLinux {
    let mut cc = begun();
    let bw = 100 * BW_UNIT / 100_000;
    cc.bw.update(1, bw as f64);
    (cc.round, cc.min_rtt, cc.full, cc.mode, cc.phase) = (1, 100_000, true, Mode::ProbeBw, 3);
    (cc.phase_at, cc.min_rtt_stamp, cc.next_round) = (at(950), 900, 1_000_000);
    (cc.cwnd, cc.delivered, cc.epoch_at) = (100, 1000, at(900));
    cc.update_gains();
    cc.pacing = cc.bw_to_pacing_rate(bw, BBR_UNIT);
    cc
}

/// bbr_init_pacing_rate_from_rtt by hand: 10 * 2^24 / 100000 = 1677; 1677 * 1000 * 739 / 256 = 4841027; * 990000 / 2^24.
#[test]
fn the_first_pace_is_that_of_the_initial_window() {
    assert_eq!(begun().pacing_rate(), Some(Rate::from_bps(8 * 285_662)));
    // Without a round trip time it is that of a millisecond: 167772 * 1000 * 739 / 256 = 484310578; * 990000 / 2^24.
    assert_eq!(BbrLinux::new(&driver::SETUP).pacing, 28_578_488);
}

/// bbr_bdp and bbr_quantization_budget by hand: 16777 * 100000 / 2^24 = 99.998, so 100 segments at a gain of one; a rate of 990
/// kB/s has groups of two, so 6 more; in the phase that probes another two.
#[test]
fn the_target_has_three_groups_more_and_two_where_it_probes() {
    let mut cc = settled();
    assert_eq!((cc.inflight(cc.bw(), BBR_UNIT), cc.inflight(cc.bw(), CWND_GAIN)), (106, 206));
    cc.phase = 0;
    assert_eq!(cc.inflight(cc.bw(), BBR_UNIT), 108);
    cc.pacing = 149_999;
    assert_eq!(cc.inflight(cc.bw(), BBR_UNIT), 106, "100 + 3, even, + 2: below 1.2 Mbit/s segments leave one by one");
    cc.pacing = 10_000_000;
    assert_eq!(cc.inflight(cc.bw(), BBR_UNIT), 130, "9 segments in a millisecond: 100 + 27, even, + 2");
}

/// bbr_set_cwnd_to_recover_or_restore: losses are taken off, then the first round of recovery conserves packets.
#[test]
fn losses_that_an_ack_reveals_are_taken_off_and_those_of_a_timer_are_not() {
    let mut cc = settled();
    cc.on_notice(&lost(1000));
    cc.on_notice(&lost(1000));
    cc.on_notice(&Notice::Delivered(ack(1000, 1001, 1, 901, 97)));
    assert_eq!(cc.cwnd(), 99 * MSS, "100 - 2 + 1");
    cc.on_notice(&lost(1005));
    cc.on_notice(&Notice::Delivered(ack(1010, 1002, 1, 902, 97)));
    assert_eq!((cc.cwnd(), cc.lost), (100 * MSS, 3));
}

#[test]
fn the_first_round_of_recovery_conserves_packets_and_its_end_restores_the_window() {
    let mut cc = settled();
    cc.on_loss(&driver::loss(100 * MSS));
    cc.on_notice(&lost(1000));
    cc.on_notice(&Notice::Delivered(ack(1000, 1001, 1, 901, 60)));
    assert_eq!(cc.cwnd(), 61 * MSS, "what is in flight and what was delivered");
    cc.on_notice(&Notice::Delivered(ack(1010, 1003, 2, 902, 59)));
    assert_eq!(cc.cwnd(), 61 * MSS, "conserved");
    cc.on_notice(&Notice::Delivered(ack(1100, 1061, 1, 1001, 59)));
    assert_eq!(cc.cwnd(), 62 * MSS, "a round later the window grows by what is delivered");
    cc.on_recovered(at(1200));
    cc.on_notice(&Notice::Delivered(ack(1200, 1062, 1, 1002, 59)));
    assert_eq!(cc.cwnd(), 101 * MSS, "the window before recovery, and what was delivered");
}

/// tcp_enter_loss: what is in flight and one more; bbr_set_state: the pipe may be found full again.
#[test]
fn a_timeout_leaves_what_is_in_flight_and_one_more() {
    let mut cc = settled();
    cc.full_bw = 7;
    cc.on_rto(&driver::loss(3 * MSS));
    assert_eq!((cc.cwnd(), cc.full_bw), (4 * MSS, 0));
    cc.on_recovered(at(1200));
    cc.on_notice(&Notice::Delivered(ack(1200, 1001, 1, 901, 3)));
    assert_eq!(cc.cwnd(), 101 * MSS);
}

/// bbr_update_ack_aggregation by hand: 50 segments in an instant, where none were expected, are 50 more than expected; the
/// allowance is at most what arrives in 100 ms, and the window.
#[test]
fn aggregated_acks_are_allowed_for() {
    let mut cc = settled();
    cc.on_notice(&Notice::Delivered(ack(1000, 1050, 50, 950, 50)));
    assert_eq!(cc.ack_aggregation_cwnd(), 50);
    cc.extra_acked = [500, 0];
    assert_eq!(cc.ack_aggregation_cwnd(), 99, "16777 * 100000 / 2^24");
    cc.full = false;
    assert_eq!(cc.ack_aggregation_cwnd(), 0, "not before the pipe was full");
}

/// bbr_packets_in_net_at_edt: what is delivered until the next segment may leave is not in the network any more.
#[test]
fn what_is_delivered_until_the_next_departure_is_taken_off() {
    let mut cc = settled();
    let sample = Delivered { departs: at(1010), ..ack(1000, 1001, 1, 901, 60) };
    assert_eq!(cc.packets_in_net_at_edt(60, &sample), 51, "9.99 of them, in whole segments");
    cc.pacing_gain = CYCLE[0];
    assert_eq!(cc.packets_in_net_at_edt(60, &sample), 53, "and the group that departs");
}

#[test]
fn what_was_sent_in_probe_rtt_is_no_measure() {
    let mut cc = settled();
    cc.min_rtt = 50_000;
    cc.on_notice(&Notice::Delivered(ack(20_000, 1001, 1, 901, 60)));
    assert_eq!((cc.mode, cc.cwnd()), (Mode::ProbeRtt, 4 * MSS));
    assert!(!cc.app_limited(&ack(20_010, 1002, 1, 902, 60)), "sent before");
    assert!(cc.app_limited(&ack(20_100, 1062, 1, 1001, 4)));
    cc.on_notice(&Notice::Delivered(ack(20_100, 1062, 1, 1001, 4)));
    assert_eq!(cc.mode, Mode::ProbeRtt);
    cc.on_notice(&Notice::Delivered(ack(20_301, 1070, 1, 1066, 4)));
    assert_eq!((cc.mode, cc.cwnd() >= 100 * MSS), (Mode::ProbeBw, true), "200 ms and a round later, with its window");
}

/// tcp_enter_loss asks for a threshold, and thus saves the window (bbr_save_cwnd), unless a recovery has done so before.
#[test]
fn a_timeout_in_recovery_leaves_the_saved_window() {
    for (state, saved) in [(State::Open, 100), (State::Recovery, 20)] {
        let mut cc = settled();
        (cc.state, cc.prev_state, cc.prior_cwnd) = (state, state, 20);
        cc.on_rto(&driver::loss(3 * MSS));
        assert_eq!((cc.prior_cwnd, cc.cwnd), (saved, 4), "{state:?}");
    }
}

/// bbr_reset_probe_bw_mode: any phase but the second, which is 7 - n with n below 7, and one further.
#[test]
fn probing_begins_anywhere_but_in_the_phase_that_drains() {
    let phases = |seed| {
        let mut cc = settled();
        cc.seed = seed;
        let mut counts = [0; 8];
        for ms in 0..7000 {
            cc.reset_probe_bw_mode(at(ms));
            counts[cc.phase] += 1;
        }
        counts
    };
    // 7000 draws of one in seven: a thousand of each, with a standard deviation of 29.
    let counts = phases(1);
    assert_eq!(counts[1], 0, "the phase that drains");
    assert!(counts.iter().enumerate().all(|(phase, n)| phase == 1 || (880..1120).contains(n)), "{counts:?}");
    assert_ne!(counts, phases(2), "each connection has its own");
}

/// bbr_lt_bw_sampling: two intervals of four rounds with a fifth lost and the same rate are a policer.
#[test]
fn two_lossy_intervals_of_one_rate_are_a_policer() {
    let mut cc = settled();
    (cc.mode, cc.lost) = (Mode::ProbeBw, 0);
    for interval in 1..=3 {
        assert!(!cc.long_term.in_use);
        for _ in 0..4 {
            cc.round_start = true;
            cc.lt_bw_sampling(at(0), false, 0);
        }
        (cc.lost, cc.delivered) = (cc.lost + 30, cc.delivered + 100);
        cc.delivered_at = at(1000 * interval);
        cc.round_start = false;
        cc.lt_bw_sampling(at(0), false, 1);
    }
    assert!(cc.long_term.in_use);
    assert_eq!(cc.bw(), 100 * BW_UNIT / 1_000_000);
}
