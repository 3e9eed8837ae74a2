//! Expected numbers are computed by hand from the equations in the header of `autorate.rs`.

use super::super::{AnyEstimator, Law};
use super::*;
use crate::packet::NoTcp;

/// Delays of 10 ms in both directions.
const QUIET: [u64; 2] = [10_000; 2];
/// In the order of [`Way`].
const NO_LOAD: [u64; 2] = [0; 2];

/// A law with its packets and probes, whose answers come at once and tell what the test wants.
struct Line {
    law: Autorate,
    /// Milliseconds since the start.
    ms: u64,
}

impl Line {
    /// Begins with 2 s without load and delays of 10 ms, after which all baselines are 10 ms.
    fn settled(params: Params) -> Self {
        let mut line = Self { law: Autorate::new(params), ms: 0 };
        line.run(2000, NO_LOAD, QUIET);
        assert!(line.law.baselines_us.iter().all(|baselines| *baselines == [10_000; 2]));
        line
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Span::from_millis(self.ms)
    }

    /// Lets so many milliseconds pass with a load in kbit/s, and delays in microseconds.
    fn run(&mut self, ms: u64, load_kbps: [u64; 2], delays_us: [u64; 2]) {
        for _ in 0..ms {
            self.pass(load_kbps);
            if self.now() >= self.law.next_ping() {
                self.law.sent(self.now());
                self.law.ping(delays_us.map(Span::from_micros), self.now());
            }
            self.ms += 1;
        }
    }

    /// Lets the packets of a millisecond pass.
    fn pass(&mut self, load_kbps: [u64; 2]) {
        for (way, kbps) in Way::BOTH.into_iter().zip(load_kbps).filter(|(_, kbps)| *kbps > 0) {
            self.law.pass::<NoTcp>(way, 1, Bytes::new(kbps / 8), None, self.now());
        }
    }

    /// Answers the next probe with a delta of the direction in, in microseconds, above a baseline of 10 ms.
    fn answer(&mut self, delta_us: u64) {
        self.run(50, NO_LOAD, [10_000 + delta_us, 10_000]);
    }

    /// The rates in kbit/s, in the order of [`Way`].
    fn kbps(&self) -> [u64; 2] {
        self.law.capacity().map(|rate| rate.as_bps() / 1000)
    }

    /// The rate in kbit/s of the direction in.
    fn inward(&self) -> u64 {
        self.kbps()[0]
    }
}

/// The defaults with baselines that do not rise, so that deltas stay what they are.
fn flat() -> Params {
    Params { alpha_baseline_increase: 0.0, ..Params::default() }
}

/// The defaults with other rates in kbit/s in both directions.
fn rates(first: u64, lowest: u64) -> Params {
    let [first, lowest, highest] = [first, lowest, 80_000].map(|kbps| Rate::from_bps(1000 * kbps));
    Params::of([Known { first, lowest, highest }; 2])
}

#[test]
fn high_load_without_delay_grows_by_four_percent_for_each_measurement() {
    let mut line = Line::settled(Params::default());
    let load = [18_000, 0];
    line.run(1, load, QUIET);
    // 20000 * 1.04, and so on, rounded down, while 18 Mbit/s are more than 75 percent of the rate: they are 90, 86, 83, 80 and 76.
    for kbps in [20_800, 21_632, 22_497, 23_396, 24_331] {
        line.run(200, load, QUIET);
        assert_eq!(line.kbps(), [kbps, 20_000]);
    }
    // And 73 percent of 24331.
    line.run(800, load, QUIET);
    assert_eq!(line.inward(), 24_331);
}

#[test]
fn the_larger_the_mean_delta_the_less_growth() {
    let mut line = Line::settled(flat());
    line.run(300, NO_LOAD, [30_600, 10_000]);
    line.ms = 2400;
    line.run(1, [20_000, 0], [30_600, 10_000]);
    // P = 600 us, avg = 20.6 ms is half-way between 30.6 and 10.6 ms: half of 4 percent.
    line.run(200, [20_000, 0], [30_600, 10_000]);
    assert_eq!(line.inward(), 20_400);
    // P = 588 us, g = 1000 * 9988 / 20000 = 499: 20400 * 1.01996 = 20807.2.
    line.run(200, [20_000, 0], [30_600, 10_000]);
    assert_eq!(line.inward(), 20_807);
}

#[test]
fn a_mean_delta_at_the_threshold_ends_growth() {
    let mut line = Line::settled(flat());
    line.run(300, NO_LOAD, [40_600, 10_000]); // a delta of 30.6 ms is not above the threshold
    line.ms = 2400;
    line.run(1000, [20_000, 0], [40_600, 10_000]);
    assert_eq!(line.law.ways[0].load, Load::High);
    assert_eq!(line.kbps(), [20_000, 20_000]);
}

/// Its versions up to 3.2 do not know (7).
#[test]
fn with_equal_factors_growth_does_not_depend_on_the_delta() {
    let mut line = Line::settled(Params { shaper_rate_min_adjust_up_load_high: 1.04, ..flat() });
    line.run(300, NO_LOAD, [40_600, 10_000]);
    line.ms = 2400;
    line.run(201, [20_000, 0], [40_600, 10_000]);
    assert_eq!(line.inward(), 20_800);
}

#[test]
fn bufferbloat_cuts_by_what_the_mean_delta_gives_and_then_waits() {
    let mut line = Line::settled(flat());
    line.answer(45_600);
    line.answer(45_600);
    assert_eq!(line.kbps(), [20_000, 20_000]);
    assert_eq!(line.law.measured(), [false, false]);
    // avg = (3 * 45.6 + 3 * 0) / 6 = 22.8 ms, below the threshold of 30.6 ms: the smallest cut.
    line.answer(45_600);
    assert_eq!(line.kbps(), [19_800, 20_000]);
    assert_eq!(line.law.measured(), [true, false]);
    // Six answers within 300 ms change nothing.
    for _ in 0..6 {
        line.answer(45_600);
        assert_eq!(line.inward(), 19_800);
    }
    // P = 606 us, f = 1000 * (45600 - 30606) / 30000 = 499: 19800 * (0.99 - 0.499 * 0.24) = 17230.8.
    line.answer(45_600);
    assert_eq!(line.inward(), 17_230);
    // P = 696 us, f = 1000 * (45600 - 30696) / 30000 = 496: 17230 * (0.99 - 0.496 * 0.24) = 15006.6.
    (0..7).for_each(|_| line.answer(45_600));
    assert_eq!(line.inward(), 15_006);
}

#[test]
fn a_mean_delta_beyond_60_ms_cuts_by_a_quarter() {
    let mut line = Line::settled(flat());
    (0..3).for_each(|_| line.answer(200_000)); // avg = 3 * 200 / 6 = 100 ms
    assert_eq!(line.kbps(), [15_000, 20_000]);
}

#[test]
fn after_a_cut_high_load_does_not_grow_for_300_ms() {
    let mut line = Line::settled(flat());
    let load = [18_000, 0];
    line.run(101, load, [41_000, 10_000]); // three answers with 31 ms, the third at 2100 ms
    assert_eq!(line.inward(), 19_800);
    line.run(300, load, QUIET); // measured at 2200 and 2400 ms
    assert_eq!(line.inward(), 19_800);
    // The window has no delays any more at 2450 ms: 19800 * 1.04, once, although there were two measurements.
    line.run(50, load, QUIET);
    assert_eq!(line.inward(), 20_592);
    line.run(100, load, QUIET);
    assert_eq!(line.inward(), 20_592);
}

#[test]
fn three_of_six_answers_are_bufferbloat_and_two_are_none() {
    let mut line = Line::settled(flat());
    let late = 31_000;
    for delta in [late, late, 0, 0, 0, 0, late, late, 0, 0, 0] {
        line.answer(delta);
        assert_eq!(line.inward(), 20_000);
    }
    line.answer(late); // of the last six: late, late, 0, 0, 0, late
    assert_eq!(line.inward(), 19_800);
}

#[test]
fn without_load_the_rate_decays_to_the_base_rate_from_both_sides() {
    let mut line = Line::settled(Params::default());
    line.law.ways[0].rate_kbps = 20_300;
    line.law.ways[1].rate_kbps = 19_700;
    for direction in &mut line.law.ways {
        direction.last_decay = Instant::ZERO + Span::from_millis(2000);
    }
    line.run(1001, NO_LOAD, QUIET); // until 3000 ms, which is not more than a second later
    assert_eq!(line.kbps(), [20_300, 19_700]);
    line.run(50, NO_LOAD, QUIET);
    assert_eq!(line.kbps(), [20_097, 19_897]); // 0.99 and 1.01
    line.run(1000, NO_LOAD, QUIET);
    assert_eq!(line.kbps(), [20_097, 19_897]);
    line.run(50, NO_LOAD, QUIET);
    assert_eq!(line.kbps(), [20_000, 20_000]);
}

#[test]
fn rates_stay_within_their_bounds() {
    let mut line = Line::settled(flat());
    line.run(10_000, NO_LOAD, [300_000, 10_000]);
    assert_eq!(line.kbps(), [5_000, 20_000]);
    let mut line = Line::settled(flat());
    line.run(10_000, [80_000, 80_000], QUIET); // 20 * 1.04^36 = 82
    assert_eq!(line.kbps(), [80_000, 35_000]);
}

#[test]
fn a_baseline_falls_at_once_and_rises_slowly() {
    let params = Params { no_pingers: 1, sustained_idle_sleep_thr: Span::MAX, ..Params::default() };
    let mut line = Line { law: Autorate::new(params), ms: 0 };
    let mut after = |delay_us: u64, answers: u64| {
        line.run(300 * answers, NO_LOAD, [delay_us; 2]);
        line.law.baselines_us[0]
    };
    // 0.9 * 10000 + 0.1 * 100000, and so on.
    for baseline in [19_000, 10_900, 10_090, 10_009, 10_000] {
        assert_eq!(after(10_000, 1), [baseline; 2]);
    }
    // 0.001 * 20000 + 0.999 * 10000, then 0.999 * 10010.
    assert_eq!(after(20_000, 1), [10_010; 2]);
    assert_eq!(after(20_000, 1), [10_019; 2]);
    // Less than a millisecond more is rounded off.
    assert_eq!(after(11_018, 1000), [10_019; 2]);
    // The last millisecond is as well; 1000 (1 + 1/2 + ... + 1/9) = 2829 answers are enough for the others.
    assert_eq!(after(20_000, 3000), [19_001; 2]);
}

#[test]
fn each_reflector_has_a_baseline() {
    let mut line = Line { law: Autorate::new(Params::default()), ms: 0 };
    for answer in 0..42 {
        line.run(50, NO_LOAD, [10_000 * (1 + answer % 6); 2]);
    }
    let expected = [10_000, 20_000, 30_000, 40_000, 50_000, 60_000].map(|baseline| [baseline; 2]);
    assert_eq!(line.law.baselines_us, expected);
    assert_eq!(line.law.ways[0].average_us(), 0);
}

#[test]
fn a_reflector_that_is_farther_is_kept() {
    let params = Params { sustained_idle_sleep_thr: Span::MAX, ..Params::default() };
    let mut line = Line { law: Autorate::new(params), ms: 0 };
    for answer in 0..2400 {
        let delay = if answer % 6 == 5 { 90_000 } else { 10_000 };
        line.run(50, NO_LOAD, [delay; 2]);
    }
    // The source replaces a reflector after a minute if its baselines are 20 ms longer; a new one begins with 100 ms.
    assert_eq!(line.law.baselines_us[5], [90_000; 2]);
    assert_eq!(line.ms, 120_000);
}

#[test]
fn a_delay_of_an_hour_is_a_delay() {
    let mut line = Line::settled(Params::default());
    let reflector = line.law.turn;
    line.run(50, NO_LOAD, [3_600_000_000, 10_000]);
    // 0.001 * 3600 s + 0.999 * 10 ms; the source begins anew with 3600 s.
    assert_eq!(line.law.baselines_us[reflector], [3_609_990, 10_000]);
}

#[test]
fn answers_in_a_row_are_all_judged() {
    let mut line = Line::settled(flat());
    let now = line.now();
    (0..3).for_each(|_| line.law.ping([Span::from_millis(800), Span::from_millis(10)], now));
    assert_eq!(line.kbps(), [15_000, 20_000]);
}

#[test]
fn round_trips_cut_both_directions() {
    let bloated = [90_000, 10_000];
    let mut one_way = Line::settled(flat());
    one_way.run(101, NO_LOAD, bloated);
    // avg = 3 * 80 / 6 = 40 ms: f = 1000 * (40000 - 30600) / 30000 = 313: 20000 * (0.99 - 0.313 * 0.24) = 18297.6.
    assert_eq!(one_way.kbps(), [18_297, 20_000]);
    let mut halves = Line::settled(Params { pinger: Pinger::RoundTrips, ..flat() });
    halves.run(101, NO_LOAD, bloated);
    // Both have 50 ms, so deltas of 40 ms, which are 20 ms in the mean: the smallest cut.
    assert_eq!(halves.kbps(), [19_800, 19_800]);
}

#[test]
fn at_low_rates_a_full_packet_is_no_delay() {
    let mut params = rates(1_000, 1_000);
    params.alpha_baseline_increase = 0.0;
    let mut line = Line::settled(params);
    // P = 12 ms, so the threshold is 42 ms.
    (0..6).for_each(|_| line.answer(42_000));
    assert_eq!(line.law.measured(), [false, false]);
    (0..3).for_each(|_| line.answer(42_001));
    assert_eq!(line.law.measured(), [true, false]);
}

#[test]
fn at_low_rates_the_achieved_rate_is_measured_over_more_time() {
    assert_eq!(Params::default().monitored(), Span::from_millis(200));
    // Ten times 12 ms of each direction.
    assert_eq!(rates(1_000, 1_000).monitored(), Span::from_millis(240));
}

#[test]
fn load_is_told_from_idleness_at_low_rates() {
    for (lowest, load) in [(5_000, Load::Idle), (1_000, Load::Low)] {
        let mut line = Line::settled(rates(20_000, lowest));
        line.run(400, [1_600, 0], QUIET);
        assert_eq!(line.law.ways[0].achieved_kbps, 1_600);
        assert_eq!(line.law.ways[0].load, load);
    }
}

#[test]
fn downloads_count_as_they_arrive() {
    let mut line = Line::settled(Params::default());
    line.run(201, [32_000, 0], QUIET);
    assert_eq!(line.law.ways[0].achieved_kbps, 32_000); // the shaper passes 20 Mbit/s
}

#[test]
fn a_late_measurement_counts_each_interval_alone() {
    let mut line = Line::settled(Params::default());
    line.run(200, [16_000, 0], QUIET);
    line.ms += 70; // nobody asks meanwhile
    line.law.step(Default::default(), line.now());
    assert_eq!(line.law.ways[0].achieved_kbps, 16_000);
    line.ms += 1000;
    line.law.step(Default::default(), line.now());
    assert_eq!(line.law.ways[0].achieved_kbps, 0);
    assert_eq!(line.law.due(), Instant::ZERO + Span::from_millis(3400));
}

#[test]
fn a_stall_leaves_the_rates() {
    let mut line = Line::settled(flat());
    let next = line.law.next_ping();
    line.ms += 1000;
    line.law.step(Default::default(), line.now());
    assert!(line.law.stalled);
    assert_eq!((line.kbps(), line.law.next_ping()), ([20_000, 20_000], next));
    // The first answer ends it, and is not judged itself.
    let late = [Span::from_millis(100), Span::from_millis(10)];
    line.law.ping(late, line.now());
    assert_eq!((line.law.stalled, line.law.ways[0].average_us()), (false, 0));
    line.law.ping(late, line.now());
    assert_eq!(line.law.ways[0].average_us(), 15_000); // 90 ms / 6
}

#[test]
fn without_answers_but_with_load_in_both_directions_nothing_is_stalled() {
    for (load, stalled) in [([80, 80], false), ([80, 8], true)] {
        let mut line = Line::settled(Params::default());
        for _ in 0..1000 {
            line.pass(load);
            line.ms += 1;
        }
        assert_eq!(line.law.stalled, stalled);
    }
}

#[test]
fn probes_are_sent_each_50_ms() {
    let mut law = Autorate::new(Params::default());
    let at = |ms| Instant::ZERO + Span::from_millis(ms);
    for (sent, next) in [(0, 50), (50, 100), (117, 150), (150, 200), (1000, 1050)] {
        law.sent(at(sent));
        assert_eq!(law.next_ping(), at(next));
    }
}

#[test]
fn after_a_minute_without_load_probes_rest_until_there_is_load() {
    let mut line = Line::settled(Params::default());
    line.run(58_001, NO_LOAD, QUIET); // the last answer was at 60 s, which is not more than a minute after the first
    assert_ne!(line.law.next_ping(), Instant::MAX);
    line.run(50, NO_LOAD, QUIET);
    assert_eq!(line.law.next_ping(), Instant::MAX);
    line.run(949, NO_LOAD, QUIET);
    // A late answer wakes nobody.
    line.law.ping([Span::from_millis(10); 2], line.now());
    assert_eq!(line.law.next_ping(), Instant::MAX);
    let woken = line.now() + Span::from_millis(200);
    assert_eq!(line.ms % 200, 0);
    line.run(201, [4_000, 0], QUIET);
    assert_eq!(line.law.next_ping(), woken + Span::from_millis(50)); // the first was sent at once
    line.run(500, [4_000, 0], QUIET);
    assert!(!line.law.stalled);
}

#[test]
fn a_step_is_due_after_each_answer_and_each_measurement() {
    let mut line = Line { law: Autorate::new(Params::default()), ms: 0 };
    assert_eq!(line.law.due(), Instant::ZERO + Span::from_millis(200));
    line.law.ping([Span::from_millis(10); 2], line.now());
    assert_eq!(line.law.due(), Instant::ZERO);
    assert_eq!(line.law.step(Default::default(), line.now()), [Rate::from_bps(20_000_000); 2]);
    assert_eq!(line.law.due(), Instant::ZERO + Span::from_millis(200));
}

#[test]
fn no_value_is_too_large() {
    let most = Rate::from_bps(u64::MAX);
    let mut line =
        Line { law: Autorate::new(Params::of([Known { first: most, lowest: most, highest: most }; 2])), ms: 0 };
    (0..4).for_each(|_| line.law.ping([Span::MAX, Span::ZERO], line.now()));
    line.law.pass::<NoTcp>(Way::In, 1, Bytes::MAX, None, Instant::ZERO);
    line.law.pass::<NoTcp>(Way::In, 1, Bytes::MAX, None, Instant::ZERO);
    line.law.step(Default::default(), Instant::from_nanos(u64::MAX / 2));
    line.law.ping([Span::MAX, Span::ZERO], Instant::from_nanos(u64::MAX / 2));
    assert_eq!(line.law.capacity().map(Rate::as_bps), [1_000_000_000_000_000; 2]);
}

#[test]
fn only_this_law_sends_probes() {
    let known = Params::default().known;
    let mut autorate = AnyEstimator::new(Law::Autorate, known, Span::ZERO);
    assert_eq!(autorate.next_ping(), Instant::ZERO);
    autorate.sent(Instant::ZERO);
    assert_eq!(autorate.next_ping(), Instant::ZERO + Span::from_millis(50));
    let later = Instant::ZERO + Span::from_secs(1);
    // After three answers with 500 ms above a baseline of 100 ms, of which the first only ends a stall: 20 * 0.75.
    (0..4).for_each(|_| autorate.ping([Span::from_millis(600), Span::from_millis(100)], later));
    assert_eq!(autorate.capacity(), [15_000_000, 20_000_000].map(Rate::from_bps));
    assert_eq!(autorate.measured(), [true, false]);
    assert_eq!(AnyEstimator::new(Law::Estimate, known, Span::ZERO).next_ping(), Instant::MAX);
}
