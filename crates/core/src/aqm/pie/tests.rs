use super::*;
use crate::packet::{Ecn, FlowId};
use crate::rng::Streams;
use crate::units::{Limit, Rate};

const FULL: Backlog = Backlog { packets: 100, bytes: 100_000 };
const EMPTY: Backlog = Backlog { packets: 0, bytes: 0 };

fn packet(ecn: Ecn) -> Meta {
    Meta { size: Bytes::new(1000), ecn, flow: FlowId(0) }
}

fn pie(config: &Config) -> Pie {
    AqmConfig::validate(config).unwrap();
    config.aqm(&LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) })
}

fn rfc(config: &Config) -> Rfc<Fixed> {
    match pie(config).0 {
        Arithmetic::Rfc(rfc) => rfc,
        Arithmetic::Linux(_) => panic!("the RFC's arithmetic was asked for"),
    }
}

fn linux(config: Config) -> Linux {
    match pie(&Config { compat: Compat::Linux, ..config }).0 {
        Arithmetic::Linux(linux) => linux,
        Arithmetic::Rfc(_) => panic!("the kernel's arithmetic was asked for"),
    }
}

/// A controller that was at `drop_prob` and at a delay of `old` seconds, with `last` as the delay now.
fn control(drop_prob: f64, old: f64, last: f64) -> Control<Fixed> {
    let mut control = rfc(&Config::default()).timer.law;
    let delay = Delay::Timestamps { sojourn: Span::from_secs_f64(last) };
    (control.drop_prob, control.pi.qdelay_old, control.delay) = (drop_prob, old, delay);
    control
}

/// The probability after one update.
fn updated(drop_prob: f64, old: f64, last: f64) -> f64 {
    let mut control = control(drop_prob, old, last);
    control.update(FULL, at(0));
    control.drop_prob
}

fn near(seen: f64, expected: f64) {
    assert!((seen - expected).abs() < 1e-12, "{seen}, expected {expected}");
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// 5 ms above the target and steady: alpha * 0.005 = 0.000625, divided by the divisor of the tier.
#[test]
fn each_tier_has_its_step() {
    let tiers = [
        (0.0, 2048.0),
        (0.999e-6, 2048.0),
        (1e-6, 512.0),
        (0.999e-5, 512.0),
        (1e-5, 128.0),
        (0.999e-4, 128.0),
        (1e-4, 32.0),
        (0.999e-3, 32.0),
        (1e-3, 8.0),
        (0.999e-2, 8.0),
        (1e-2, 2.0),
        (0.0999, 2.0),
        (0.1, 1.0),
        (0.9, 1.0),
    ];
    for (drop_prob, divisor) in tiers {
        near(updated(drop_prob, 0.02, 0.02) - drop_prob, 0.000_625 / divisor);
    }
}

/// From 0 to 200 ms: 0.125 * 0.185 + 1.25 * 0.2 = 0.273125.
#[test]
fn from_ten_percent_on_a_step_is_at_most_two_percent() {
    near(updated(0.1, 0.0, 0.2), 0.12);
    near(updated(0.09, 0.0, 0.2), 0.09 + 0.273_125 / 2.0);
    // Down there is no cap: 0.125 * (0 - 0.015) + 1.25 * (0 - 0.2) = -0.251875.
    near(updated(0.5, 0.2, 0.0), 0.5 - 0.251_875);
}

/// Steady at 250 ms: 0.125 * 0.235 = 0.029375, capped at 0.02. A nanosecond more adds another 0.02.
#[test]
fn above_250_ms_two_percent_more() {
    near(updated(0.5, 0.25, 0.25), 0.52);
    near(updated(0.5, 0.250_000_001, 0.250_000_001), 0.54);
}

/// -0.125 * 0.015 = -0.001875; then 0.98 of what is left.
#[test]
fn an_idle_queue_decays_by_two_percent() {
    near(updated(0.5, 0.0, 0.0), (0.5 - 0.001_875) * 0.98);
    // Not while there was a delay at one of the two updates: 1 us ago adds 1.25 * 1e-6.
    near(updated(0.5, 0.000_001, 0.0), 0.5 - 0.001_875 - 0.000_001_25);
}

#[test]
fn a_probability_stays_within_0_and_1() {
    near(updated(0.99, 0.3, 0.3), 1.0);
    near(updated(1e-7, 0.0, 0.0), 0.0);
}

/// Sojourn times of 100 ms from 0 on. The first packet sets 150 ms, ten updates of 15 ms use them up.
#[test]
fn a_burst_of_150_ms_passes() {
    let (mut pie, mut rng) = (rfc(&Config { derandomize: false, ..Config::default() }), Streams::new(1).get("burst"));
    let arrive = |pie: &mut Rfc<Fixed>, ms, rng: &mut Rng| pie.arrival(&packet(Ecn::NotEct), FULL, at(ms), rng);
    assert_eq!(arrive(&mut pie, 0, &mut rng), Verdict::Pass);
    assert_eq!(pie.control().burst_allowance, Span::from_millis(150));
    let before = rng.clone();
    for ms in 1..150 {
        pie.departure(&packet(Ecn::NotEct), Span::from_millis(100), FULL, at(ms));
        // Even a probability of 1 does not matter.
        pie.timer.law.drop_prob = 1.0;
        assert_eq!(arrive(&mut pie, ms, &mut rng), Verdict::Pass, "at {ms} ms");
    }
    assert_eq!(rng, before, "no random number is drawn for what passes unseen");
    assert_eq!(arrive(&mut pie, 150, &mut rng), Verdict::Drop);
}

#[test]
fn the_burst_allowance_comes_back_with_an_empty_queue() {
    let mut control = control(0.0, 0.0, 0.0074);
    let mut rng = Streams::new(1).get("unused");
    control.judge(&packet(Ecn::NotEct), FULL, &mut rng);
    assert_eq!(control.burst_allowance, Span::from_millis(150));
    for (drop_prob, old, last) in [(1e-9, 0.0, 0.0), (0.0, 0.0075, 0.0), (0.0, 0.0, 0.0075)] {
        let mut control = self::control(drop_prob, old, last);
        control.judge(&packet(Ecn::NotEct), FULL, &mut rng);
        assert_eq!(control.burst_allowance, Span::ZERO, "{drop_prob} {old} {last}");
    }
}

/// At 1/8 the sum is 0.75 after six packets and 0.875 after seven; 8.5 is 68 packets. Beyond the first six the gaps are
/// geometric, so their mean is 6 + 8 = 14.
#[test]
fn derandomized_drops_are_from_0_85_to_8_5_apart() {
    let (mut control, mut rng) = (control(0.125, 0.02, 0.02), Streams::new(1).get("gaps"));
    let (mut gap, mut gaps) = (0u32, Vec::new());
    for _ in 0..200_000 {
        gap += 1;
        if control.judge(&packet(Ecn::NotEct), FULL, &mut rng) == Verdict::Drop {
            gaps.push(std::mem::take(&mut gap));
        }
    }
    assert_eq!(gaps.iter().min(), Some(&7));
    assert!(gaps.iter().all(|gap| *gap <= 68), "longest {:?}", gaps.iter().max());
    // The deviation of a gap is 7.5; of the mean of 14,000 it is 0.063.
    let mean = gaps.iter().map(|gap| f64::from(*gap)).sum::<f64>() / gaps.len() as f64;
    assert!((mean - 14.0).abs() < 0.3, "mean gap {mean}");
    let before = rng.clone();
    control.accu_prob = 8.375;
    assert_eq!(control.judge(&packet(Ecn::NotEct), FULL, &mut rng), Verdict::Drop, "8.375 + 0.125 forces a drop");
    assert_eq!((control.accu_prob, rng == before), (0.0, true));
}

#[test]
fn an_overflow_restarts_the_accumulation() {
    let mut pie = rfc(&Config::default());
    pie.timer.law.accu_prob = 0.8;
    pie.overflow();
    assert_eq!(pie.control().accu_prob, 0.0);
}

#[test]
fn nothing_is_dropped_from_a_calm_or_short_queue() {
    let mut rng = Streams::new(1).get("safeguards");
    let two_packets = Backlog { packets: 2, bytes: 2000 };
    let three_packets = Backlog { packets: 3, bytes: 2001 };
    // With drop_prob 1 and accu_prob 8.5 whatever is not spared is dropped.
    for (drop_prob, old, backlog, verdict) in [
        (0.19, 0.0074, FULL, Verdict::Pass),
        (0.2, 0.0074, FULL, Verdict::Drop),
        (0.19, 0.0075, FULL, Verdict::Drop),
        (1.0, 0.1, two_packets, Verdict::Pass),
        (1.0, 0.1, three_packets, Verdict::Drop),
    ] {
        let mut control = control(drop_prob, old, 0.1);
        control.accu_prob = 8.5;
        assert_eq!(control.judge(&packet(Ecn::NotEct), backlog, &mut rng), verdict, "{drop_prob} {old} {backlog:?}");
    }
}

#[test]
fn marks_take_the_place_of_drops_below_ten_percent() {
    let mut rng = Streams::new(1).get("ecn");
    let fates = [
        (0.0999, Ecn::Ect0, true, Verdict::Mark),
        (0.0999, Ecn::NotEct, true, Verdict::Drop),
        (0.0999, Ecn::Ect0, false, Verdict::Drop),
        (0.1, Ecn::Ect0, true, Verdict::Drop),
    ];
    for (drop_prob, ecn, marks, verdict) in fates {
        let mut control = control(drop_prob, 0.02, 0.02);
        (control.ecn, control.accu_prob) = (marks, 8.5);
        assert_eq!(control.judge(&packet(ecn), FULL, &mut rng), verdict);
        assert_eq!(control.accu_prob, 0.0, "a mark is a signal as a drop is");
    }
}

/// 500 B of 1000 B at 0.2: half the probability goes into the sum. 1001 B count as they are.
#[test]
fn small_packets_are_dropped_less_in_bytemode() {
    let mut rng = Streams::new(1).get("unused");
    for (size, sum) in [(500, 0.1), (1000, 0.2), (1001, 0.2)] {
        let mut control = control(0.2, 0.02, 0.02);
        control.bytemode = true;
        control.judge(&Meta { size: Bytes::new(size), ..packet(Ecn::NotEct) }, FULL, &mut rng);
        near(control.accu_prob, sum);
    }
}

/// 1000 B packets, one every millisecond. A cycle begins at 0 with what is left behind; the 17th packet after it makes
/// 17000 B >= 16384 B, 17 ms later. Then one every 2 ms: the next cycle takes 34 ms, and counts 16384 / 65536 = 1/4.
#[test]
fn the_rate_of_departures_is_measured_in_cycles_of_16_kib() {
    let mut delay = Delay::new(Estimator::DepartureRate, Bytes::new(16_384));
    let mut now = at(0);
    let mut depart = |delay: &mut Delay, ms, packets: u64, left| {
        for _ in 0..packets {
            delay.departed(Bytes::new(1000), Span::ZERO, left, now);
            now += Span::from_millis(ms);
        }
    };
    depart(&mut delay, 1, 17, 16_384);
    assert_eq!(delay.of(16_384), 0.0, "the first cycle is under way");
    depart(&mut delay, 2, 17, 16_384);
    near(delay.of(16_384), 0.017);
    depart(&mut delay, 2, 1, 0);
    near(delay.of(16_384), 0.034 * 0.25 + 0.017 * 0.75);
    // Too little was left to begin another cycle: the rate stays as it is.
    depart(&mut delay, 50, 40, 16_383);
    near(delay.of(32_768), 2.0 * 0.021_25);
}

#[test]
fn an_empty_queue_has_no_delay() {
    let mut delay = Delay::new(Estimator::Timestamps, Bytes::new(16_384));
    delay.departed(Bytes::new(1000), Span::from_millis(80), 1000, at(0));
    near(delay.of(1000), 0.08);
    delay.departed(Bytes::new(1000), Span::from_millis(80), 0, at(1));
    assert_eq!(delay.of(0), 0.0);
}

/// A departure at 14.9 ms is seen by the update at 15 ms, one at 15 ms is not.
#[test]
fn the_first_update_is_one_tupdate_after_the_start() {
    for (at_ns, seen) in [(14_999_999, 0.02), (15_000_000, 0.0)] {
        let mut pie = rfc(&Config::default());
        let left = Instant::from_nanos(at_ns);
        pie.departure(&packet(Ecn::NotEct), Span::from_millis(20), FULL, left);
        pie.catch_up(FULL, at(29));
        near(pie.control().pi.qdelay_old, seen);
    }
}

#[test]
fn an_idle_queue_needs_no_timer() {
    for compat in [Compat::Source, Compat::Linux] {
        let config = Config { compat, ..Config::default() };
        let (mut lazy, mut rng) = (pie(&config), Streams::new(1).get("unused"));
        for ms in 0..2000 {
            lazy.on_enqueue(&packet(Ecn::NotEct), FULL, at(ms), &mut rng);
            lazy.on_dequeue(&packet(Ecn::NotEct), Span::from_millis(200), FULL, at(ms), &mut rng);
        }
        lazy.on_dequeue(&packet(Ecn::NotEct), Span::from_millis(200), EMPTY, at(2000), &mut rng);
        let mut timed = lazy.clone();
        for ms in 2001..=61_000 {
            timed.on_wakeup(EMPTY, at(ms));
        }
        assert_eq!(lazy.next_wakeup(), None);
        assert_ne!(lazy, timed);
        lazy.on_wakeup(EMPTY, at(61_000));
        assert_eq!(lazy, timed, "{compat:?}");
    }
}

/// Backlog, and with it the delay by Little's law, is that before the arrival or departure which makes up for the
/// updates.
#[test]
fn updates_made_up_for_see_the_queue_as_it_was() {
    let config = Config { estimator: Estimator::DepartureRate, ..Config::default() };
    let mut rng = Streams::new(1).get("unused");
    let mut start = pie(&config);
    for ms in 0..20 {
        start.on_dequeue(&packet(Ecn::NotEct), Span::ZERO, FULL, at(ms), &mut rng);
    }
    let mut timed = start.clone();
    timed.on_wakeup(FULL, at(30));
    let left = Backlog { packets: 99, bytes: 99_000 };
    for pie in [&mut start, &mut timed] {
        pie.on_dequeue(&packet(Ecn::NotEct), Span::ZERO, left, at(31), &mut rng);
    }
    assert_eq!(start, timed);
}

// The kernel's arithmetic.

fn vars(prob: u64, old_ms: u64, last_ms: u64) -> linux::Vars {
    let mut vars = linux(Config::default()).vars().clone();
    vars.set(prob, Span::from_millis(old_ms), Span::from_millis(last_ms));
    vars
}

/// 2^56 - 1 in 15625000 ticks per second is 4611686018; 2/16 of it 576460752, >> 11 is 281474. 5 ms are 78125 ticks.
#[test]
fn the_kernels_first_step_is_281474_times_the_distance() {
    let mut vars = vars(0, 20, 20);
    vars.update(FULL, at(0));
    assert_eq!(vars.prob, 281_474 * 78_125);
}

/// The kernel's tiers: the gains of 576460752 shifted by 11, 9, 7, 5, 3, 1, 0.
#[test]
fn the_kernels_tiers_are_the_rfcs() {
    for (power, below, from) in
        [(1_000_000, 11, 9), (100_000, 9, 7), (10_000, 7, 5), (1_000, 5, 3), (100, 3, 1), (10, 1, 0)]
    {
        for (prob, shift) in [(linux::MAX_PROB / power - 1, below), (linux::MAX_PROB / power, from)] {
            let mut vars = vars(prob, 20, 20);
            vars.update(FULL, at(0));
            assert_eq!(vars.prob - prob, (576_460_752 >> shift) * 78_125, "1/{power}, shift {shift}");
        }
    }
}

/// Steady at 300 ms from 1: 2 % of the cap and 2 % of the high delay go on top, although 1 is reached.
#[test]
fn the_kernels_probability_goes_beyond_one() {
    let mut vars = vars(linux::MAX_PROB, 300, 300);
    for _ in 0..25 {
        vars.update(FULL, at(0));
    }
    assert_eq!(vars.prob, linux::MAX_PROB + 25 * (linux::MAX_PROB / 100 * 2 + linux::MAX_PROB / 50));
}

#[test]
fn the_kernels_probability_falls_back_to_one_when_64_bits_are_full() {
    let mut vars = vars(u64::MAX - 1000, 300, 300);
    vars.update(FULL, at(0));
    assert_eq!(vars.prob, linux::MAX_PROB);
}

/// -576460752 * 234375 = -135107988750000, then 63/64 of it, or not, with a backlog and yet no delay.
#[test]
fn the_kernels_idle_decay_is_a_64th() {
    let half = linux::MAX_PROB / 2;
    let stepped = half - 135_107_988_750_000;
    for (backlog, expected) in [(EMPTY, stepped - stepped / 64), (FULL, stepped)] {
        let mut vars = vars(half, 0, 0);
        vars.update(backlog, at(0));
        assert_eq!(vars.prob, expected);
    }
}

/// Departures 10 ms apart from 600 ms on. Until then the update at 500 ms has set 150 ms anew.
#[test]
fn the_kernels_burst_time_shrinks_at_departures() {
    let (mut pie, mut rng) = (linux(Config::default()), Streams::new(1).get("unused"));
    pie.arrival(&packet(Ecn::NotEct), FULL, at(599), &mut rng);
    for step in 0..=14 {
        pie.departure(&packet(Ecn::NotEct), Span::from_millis(100), FULL, at(600 + 10 * step));
    }
    // The first departure only starts the clock: 14 intervals of 10 ms. Ticks are 64 ns.
    assert_eq!(pie.vars().burst_left(), Span::from_millis(10));
    pie.departure(&packet(Ecn::NotEct), Span::from_millis(100), FULL, at(750));
    assert_eq!(pie.vars().burst_left(), Span::ZERO);
}

#[test]
fn the_kernels_first_update_is_at_500_ms() {
    let mut pie = linux(Config::default());
    pie.departure(&packet(Ecn::NotEct), Span::from_millis(20), FULL, at(100));
    pie.catch_up(FULL, Instant::from_nanos(499_999_999));
    assert_eq!(pie.vars().prob, 0);
    pie.catch_up(FULL, at(500));
    // From 0 to 20 ms: 281474 * 78125 + (5764607522 >> 11) * 312500.
    assert_eq!(pie.vars().prob, 281_474 * 78_125 + 2_814_749 * 312_500);
}

/// Steady at 20 ms: each update adds 281474 * 78125, at 500, 515 and 530 ms, after the one that sees the change.
#[test]
fn the_kernels_updates_are_tupdate_apart() {
    let mut pie = linux(Config::default());
    pie.departure(&packet(Ecn::NotEct), Span::from_millis(20), FULL, at(100));
    pie.catch_up(FULL, at(500));
    let first = pie.vars().prob;
    for (ms, updates) in [(514, 0), (515, 1), (529, 1), (530, 2)] {
        pie.catch_up(FULL, at(ms));
        // The first update brought it to 1.25e-5, where the gain is shifted by 7 instead of 11.
        assert_eq!(pie.vars().prob - first, updates * (576_460_752 >> 7) * 78_125, "at {ms} ms");
    }
}

#[test]
fn the_kernels_accumulation_is_not_restarted_by_a_forced_mark() {
    let mut rng = Streams::new(1).get("unused");
    for (ecn, verdict, restarted) in [(Ecn::Ect0, Verdict::Mark, false), (Ecn::NotEct, Verdict::Drop, true)] {
        let mut vars = linux(Config { ecn: true, ..Config::default() }).vars().clone();
        vars.set(linux::MAX_PROB / 10, Span::from_millis(20), Span::from_millis(20));
        vars.force();
        assert_eq!(vars.judge(&packet(ecn), FULL, &mut rng), verdict);
        assert_eq!(vars.accumulated() == 0, restarted);
    }
}

/// 20 packets of 1000 B, 1 ms (15625 ticks) apart: the packet that begins the cycle counts, so it ends with the 17th,
/// 16 intervals later: 17000 << 8 / 250000 = 17. A backlog of 10000 B is then 10000 << 8 / 17 = 150588 ticks.
#[test]
fn the_kernels_rate_counts_256_bytes_per_tick() {
    let mut pie = linux(Config { estimator: Estimator::DepartureRate, ..Config::default() });
    for ms in 0..17 {
        pie.departure(&packet(Ecn::NotEct), Span::ZERO, FULL, at(ms));
    }
    pie.catch_up(Backlog { packets: 10, bytes: 10_000 }, at(500));
    assert_eq!(pie.vars().delay_ticks(), 150_588);
}

#[test]
fn parameters_that_cannot_work_are_refused_by_name() {
    let linux = Config { compat: Compat::Linux, ..Config::default() };
    let wrong = [
        ("target", Config { target: Span::ZERO, ..Config::default() }),
        ("tupdate", Config { tupdate: Span::from_micros(99), ..Config::default() }),
        ("alpha", Config { alpha: f64::NAN, ..Config::default() }),
        ("beta", Config { beta: 0.0, ..Config::default() }),
        ("mean_packet", Config { mean_packet: Bytes::ZERO, ..Config::default() }),
        ("dq_threshold", Config { dq_threshold: Bytes::new(65_537), ..Config::default() }),
        ("ecn_threshold", Config { ecn_threshold: 1.1, ..Config::default() }),
        ("alpha", Config { alpha: 0.1, ..linux.clone() }),
        ("derandomize", Config { derandomize: false, ..linux.clone() }),
        ("max_burst", Config { max_burst: Span::ZERO, ..linux }),
    ];
    for (key, config) in wrong {
        assert_eq!(AqmConfig::validate(&config).unwrap_err().key, key, "{config:?}");
    }
}

/// RFC 8033 §5.2: until the first cycle of DQ_THRESHOLD bytes ends there is no rate, and nothing is known of the delay.
#[test]
fn there_is_no_departure_rate_before_the_first_cycle_ends() {
    let mut estimate = delay::Delay::new(Estimator::DepartureRate, Bytes::new(10_000));
    let rate = |estimate: &delay::Delay| match estimate {
        delay::Delay::DepartureRate(rate) => rate.bytes_per_sec(),
        delay::Delay::Timestamps { .. } => panic!("a rate was asked for"),
    };
    for ms in 0..=10 {
        assert_eq!((rate(&estimate), estimate.of(10_000)), (0, 0.0), "{ms} packets of 1000 B left");
        estimate.departed(Bytes::new(1000), Span::ZERO, 50_000, at(ms));
    }
    assert_eq!(rate(&estimate), 1_000_000);
}

/// `pie_drop_early()`: nothing is dropped while the burst lasts, while the delay is below half the target and the
/// probability below a fifth, or while less than two packets of 1514 B wait. Each of them is enough.
#[test]
fn each_safeguard_of_the_kernel_is_enough() {
    let mut rng = Streams::new(1).get("unused");
    let fifth = linux::MAX_PROB / 5;
    let queue = |bytes| Backlog { packets: 2, bytes };
    for (prob, delay_ms, backlog, verdict) in [
        (fifth - 1, 7, FULL, Verdict::Pass),
        (fifth, 7, FULL, Verdict::Drop),
        (fifth - 1, 8, FULL, Verdict::Drop),
        (fifth, 8, queue(3027), Verdict::Pass),
        (fifth, 8, queue(3028), Verdict::Drop),
    ] {
        let mut vars = vars(prob, delay_ms, delay_ms);
        vars.force();
        let seen = vars.judge(&packet(Ecn::NotEct), backlog, &mut rng);
        assert_eq!(seen, verdict, "{prob} of 2^56, {delay_ms} ms, {backlog:?}");
    }
    let mut vars = vars(linux::MAX_PROB, 20, 20);
    for _ in 0..20 {
        assert_eq!(vars.judge(&packet(Ecn::NotEct), FULL, &mut rng), Verdict::Pass, "the burst lasts");
    }
}

/// As in the first cycle, at another time of day: the rate of a cycle is 17000 B, << 8, over its ticks, and the average
/// is 7/8 of the old and 1/8 of the new, each eighth rounded down. Every 0.5 ms (7812 or 7813 ticks) a packet: the second
/// cycle begins with the end of the first, so it has 17 intervals: 4352000 / 132812 = 32, and 17 - 2 + 4 = 19. 10000 B are
/// then 2560000 / 19 = 134736 ticks.
#[test]
fn the_kernels_rate_is_averaged_over_cycles_whenever_they_begin() {
    let mut pie = linux(Config { estimator: Estimator::DepartureRate, ..Config::default() });
    let begin = at(400);
    let waiting = Backlog { packets: 10, bytes: 10_000 };
    for ms in 0..17 {
        pie.departure(&packet(Ecn::NotEct), Span::ZERO, FULL, begin + Span::from_millis(ms));
    }
    for half_ms in 1..=17 {
        let now = begin + Span::from_millis(16) + Span::from_micros(500 * half_ms);
        pie.departure(&packet(Ecn::NotEct), Span::ZERO, FULL, now);
    }
    pie.catch_up(waiting, at(500));
    assert_eq!(pie.vars().delay_ticks(), 134_736);
}

/// `pie_calculate_probability()`: a probability of nothing and two delays below half the target begin a new burst; with
/// the estimator of rates only once there is a rate.
#[test]
fn a_calm_queue_of_the_kernel_begins_a_new_burst() {
    let burst = Span::from_millis(150);
    for (old_ms, last_ms, left) in [(1, 1, burst), (1, 8, Span::ZERO), (8, 1, Span::ZERO)] {
        let mut vars = vars(0, old_ms, last_ms);
        vars.force();
        vars.update(FULL, at(0));
        assert_eq!(vars.burst_left(), left, "{old_ms} ms, then {last_ms} ms");
    }
    let mut vars = linux(Config { estimator: Estimator::DepartureRate, ..Config::default() }).vars().clone();
    vars.force();
    vars.update(Backlog::default(), at(0));
    assert_eq!(vars.burst_left(), Span::ZERO, "no rate was measured");
}

/// Steady at the target both terms are 0, and the probability stays where it is.
#[test]
fn at_the_target_the_probability_stays() {
    near(updated(0.3, 0.015, 0.015), 0.3);
    for prob in [1, linux::MAX_PROB / 1000, linux::MAX_PROB / 2] {
        let mut vars = vars(prob, 15, 15);
        vars.update(FULL, at(0));
        assert_eq!(vars.prob, prob);
    }
}

/// RFC 8033 Appendix B, `drop_early()`: a probability of 0 restarts the accumulation.
#[test]
fn without_a_probability_nothing_is_accumulated() {
    let mut control = control(0.0, 0.1, 0.1);
    control.accu_prob = 0.8;
    let verdict = control.judge(&packet(Ecn::NotEct), FULL, &mut Streams::new(1).get("unused"));
    assert_eq!((verdict, control.accu_prob), (Verdict::Pass, 0.0));
}

/// `pie_drop_early()`: a packet is dropped if the random number of 56 bits, the lowest three of them zero here, is below
/// the probability, and not if it is equal. Both are above 0.9, so that the packet after a forced drop is judged by lot.
#[test]
fn the_kernels_lot_is_below_the_probability() {
    let mut rng = Streams::new(1).get("lot");
    let (before, number) = loop {
        let before = rng.clone();
        let number = rng.bits() >> 11 << 3;
        if number > linux::MAX_PROB / 10 * 9 {
            break (before, number);
        }
    };
    for (prob, verdict) in [(number, Verdict::Pass), (number + 1, Verdict::Drop)] {
        let (mut vars, mut rng) = (vars(prob, 20, 20), before.clone());
        vars.force();
        assert_eq!(vars.judge(&packet(Ecn::NotEct), FULL, &mut rng), Verdict::Drop, "forced");
        assert_eq!(vars.judge(&packet(Ecn::NotEct), FULL, &mut rng), verdict, "{number} of {prob}");
    }
}

/// `pie_process_dequeue()`: a cycle that leaves less than 16384 B is followed by none until a departure leaves as much;
/// else the next one begins at once, and here lasts over a pause. Two cycles of 16 ms are 17 each, as above, and the
/// average is 17 - 2 + 2; the one from 16 ms to 216 ms is 4352000 / 3125000 = 1, and 17 - 2 + 0 = 15. 10000 B are then
/// 2560000 / 17 = 150588 or 2560000 / 15 = 170666 ticks.
#[test]
fn the_kernels_cycles_need_a_queue() {
    for (left, ticks) in [(16_383, 150_588), (16_384, 170_666)] {
        let mut pie = linux(Config { estimator: Estimator::DepartureRate, ..Config::default() });
        for ms in (0..17).chain(200..217) {
            let left = if ms == 16 { Backlog { packets: 17, bytes: left } } else { FULL };
            pie.departure(&packet(Ecn::NotEct), Span::ZERO, left, at(ms));
        }
        pie.catch_up(Backlog { packets: 10, bytes: 10_000 }, at(500));
        assert_eq!(pie.vars().delay_ticks(), ticks, "{left} B were left");
    }
}
