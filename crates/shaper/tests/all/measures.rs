//! What is measured of packets, their buffers, and the keys of hashes.

use penstock_conntrack::SipHash;
use penstock_core::units::{Bytes, Instant, Rate, Span};
use penstock_shaper::emissions::Stopwatch;
use penstock_shaper::histogram::{Spans, shown};
use penstock_shaper::intake::Intake;
use penstock_shaper::keys::Keys;
use penstock_shaper::pool::{LARGEST, Pool};

#[test]
fn percentiles_of_a_ramp_are_its_steps() {
    let mut spans = Spans::default();
    (1..=1000).for_each(|ms| spans.record(Span::from_millis(ms)));
    let got = spans.percentiles(Span::from_millis(1));
    for (value, expected) in
        [(got.mean, 500.5), (got.p50, 500.0), (got.p90, 900.0), (got.p99, 990.0), (got.max, 1000.0)]
    {
        assert!((value / expected - 1.0).abs() < 0.001, "{value} is not {expected}");
    }
}

#[test]
fn spans_are_counted_up_to_bounds() {
    let mut spans = Spans::default();
    (1..=100).for_each(|ms| spans.record(Span::from_millis(ms)));
    // A thousandth more than the bound may count as the bound.
    assert_eq!(spans.up_to([10, 49, 1000].map(|ms| Span::from_micros(1000 * ms + 500))), [10, 49, 100]);
    assert_eq!((spans.up_to([Span::ZERO]), spans.sum_s()), ([0], 5.05));
}

#[test]
fn of_no_spans_all_is_missing_and_not_zero() {
    let none = serde_json::to_value(Spans::default().percentiles(Span::from_millis(1))).unwrap();
    let keys: Vec<_> = none.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["max", "mean", "p50", "p90", "p99"]);
    assert!(none.as_object().unwrap().values().all(serde_json::Value::is_null), "{none}");
    let mut spans = Spans::default();
    spans.record(Span::ZERO);
    assert_eq!(spans.percentiles(Span::from_millis(1)).max, 0.0, "a packet that did not wait has waited for 0 ms");
}

#[test]
fn a_missing_number_is_a_dash_in_a_table() {
    assert_eq!(shown([1.25, f64::NAN, 0.0], 1, "ms"), "1.2 ms, -, 0.0 ms");
}

/// 1250 B take 1 ms at 10 Mbit/s, so the budget is 500 us.
#[test]
fn the_budget_is_half_of_the_time_on_the_wire() {
    let read = |us: u64| {
        let mut watch = Stopwatch::default();
        watch.add(Span::from_micros(us - 100));
        watch.arrived(Span::from_micros(100));
        watch.read(Bytes::new(1250), Rate::from_bps(10_000_000))
    };
    assert_eq!(read(200).budget_us, 500.0);
    assert!((read(200).packet_us.mean - 200.0).abs() < 1.0, "what was between two arrivals counts for the second");
    assert!(!read(490).is_over() && read(510).is_over());
    let none = Stopwatch::default().read(Bytes::ZERO, Rate::from_bps(10_000_000));
    assert!(none.budget_us.is_nan() && !none.is_over(), "without a packet there is no budget: {none:?}");
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

#[test]
fn a_wire_starves_while_it_is_idle_and_a_packet_waits() {
    let starved = |idle_since, came: Option<u64>, now| {
        let mut intake = Intake::default();
        intake.note_empty(at(10));
        intake.note_idle(at(idle_since), came.map(at), at(now));
        intake.starved
    };
    let ms = Span::from_millis;
    assert_eq!(starved(0, Some(17), 20), ms(3), "the process had no processor for 3 ms");
    assert_eq!(starved(18, Some(17), 20), ms(2), "the wire was busy before");
    assert_eq!(starved(0, Some(5), 20), ms(10), "there was nothing to read before");
    assert_eq!(starved(0, None, 20), ms(10), "the process was busy");
    assert_eq!(starved(0, Some(19), 20), Span::ZERO, "waking up takes as long");
    assert_eq!(starved(0, Some(20), 20), Span::ZERO, "the packet was read when it came");
}

#[test]
fn keys_differ_as_their_bytes_and_seeds_do() {
    let bytes: [u8; 48] = std::array::from_fn(|n| n as u8);
    let keys = Keys::from_random(&bytes);
    assert_eq!(keys.connections, SipHash(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908));
    assert!(keys.connections != keys.hosts && keys.hosts != keys.talkers);
    assert_eq!(Keys::from_seed(7), Keys::from_seed(7));
    assert_ne!(Keys::from_seed(7), Keys::from_seed(8));
}

#[test]
fn buffers_grow_to_the_largest_packet_and_small_ones_go() {
    let mut pool = Pool::new(1500);
    let small = pool.take();
    pool.grow(1500);
    assert_eq!(pool.size(), 1500);
    pool.grow(3000);
    pool.give(small);
    assert_eq!((pool.size(), pool.try_take().unwrap().len()), (4096, 4096), "the small one is gone");
    pool.grow(65_535);
    assert!(pool.size() >= 65_535);
    pool.grow(LARGEST);
    assert_eq!(pool.size(), LARGEST);
}
