//! The bottleneck's rate: told, estimated, and partly reserved.

use super::path::*;
use super::*;

const ROUND: u64 = 100;

fn estimated(start: Rate) -> Path {
    Path::new(|c| (c.rate, c.rate_from) = (Some(start), RateFrom::Estimated), LINK, greedy(8))
}

#[test]
fn a_rate_believed_too_high_is_put_right_within_ten_round_trips() {
    let mut path = estimated(Rate::from_bps(13_000_000));
    path.run_until(at_ms(60 * ROUND));
    let wait = path.wait_at(0.9, at_ms(10 * ROUND), at_ms(60 * ROUND));
    let used = path.utilization(at_ms(10 * ROUND), at_ms(60 * ROUND), LINK);
    assert!(wait < Span::from_millis(10), "{wait}");
    assert!(used > 0.95, "{used}");
    // Believed, it is 30 % of a bandwidth-delay product that stands in the queue.
    let mut told = Path::new(|c| c.rate = Some(Rate::from_bps(13_000_000)), LINK, greedy(8));
    told.run_until(at_ms(60 * ROUND));
    assert!(told.wait_at(0.9, at_ms(10 * ROUND), at_ms(60 * ROUND)) > Span::from_millis(20));
}

#[test]
fn a_rate_believed_too_low_is_put_right_within_twenty_round_trips() {
    let mut path = estimated(Rate::from_bps(7_000_000));
    path.run_until(at_ms(60 * ROUND));
    let used = path.utilization(at_ms(20 * ROUND), at_ms(60 * ROUND), LINK);
    let wait = path.wait_at(0.9, at_ms(20 * ROUND), at_ms(60 * ROUND));
    assert!(used > 0.95, "{used}");
    assert!(wait < Span::from_millis(10), "{wait}");
    let mut told = Path::new(|c| c.rate = Some(Rate::from_bps(7_000_000)), LINK, greedy(8));
    told.run_until(at_ms(60 * ROUND));
    assert!(told.utilization(at_ms(20 * ROUND), at_ms(60 * ROUND), LINK) < 0.72);
}

#[test]
fn a_rate_that_halves_and_doubles_is_followed() {
    let half = Rate::from_bps(5_000_000);
    for (from, told) in [(RateFrom::Estimated, false), (RateFrom::Told, true)] {
        let mut path = Path::new(|c| c.rate_from = from, LINK, greedy(8));
        for k in 1..=5 {
            path.change(at_ms(10_000 * k), if k % 2 == 1 { half } else { LINK });
        }
        path.run_until(at_ms(60_000));
        let part = |k: u64| {
            let rate = if k % 2 == 1 { half } else { LINK };
            path.utilization(at_ms(10_000 * k), at_ms(10_000 * (k + 1)), rate)
        };
        // Of six parts of ten seconds, half at 10 Mbit/s.
        let used = (0..6).map(|k| part(k) * if k % 2 == 1 { 1.0 } else { 2.0 }).sum::<f64>() / 9.0;
        let wait = path.wait_at(0.99, at_ms(1000), at_ms(60_000));
        assert!(used >= 0.9, "told {told}: {used}");
        assert!(wait <= Span::from_millis(ROUND), "told {told}: {wait}");
    }
}

#[test]
fn without_a_queue_the_estimate_climbs_until_there_is_one() {
    // One flow, evenly paced by its ACKs: no two packets meet in the queue.
    let start = Rate::from_bps(2_000_000);
    let mut path = Path::new(|c| (c.rate, c.rate_from) = (Some(start), RateFrom::Estimated), LINK, greedy(1));
    path.run_until(at_ms(60 * ROUND));
    let used = path.utilization(at_ms(40 * ROUND), at_ms(60 * ROUND), LINK);
    assert!(used > 0.93, "{used} at {}", path.pink().rate());
    assert!(path.wait_at(0.9, at_ms(20 * ROUND), at_ms(60 * ROUND)) < Span::from_millis(10));
}

#[test]
fn an_idle_link_does_not_make_the_estimate_climb() {
    let host = |i: u64| Host { app: Some(20_000), ..Host::new(at_ms(i * 10), Span::from_millis(100)) };
    let mut path = Path::new(|c| c.rate_from = RateFrom::Estimated, LINK, (0..4).map(host).collect());
    path.run_until(at_ms(20_000));
    let rate = path.pink().rate().as_bps();
    assert!((9_000_000..=12_500_000).contains(&rate), "{rate} after 0.64 Mbit/s of load");
}

#[test]
fn a_reserve_is_kept_out_of_the_shares() {
    let mut gate = Gate::new(|c| (c.window, c.reserve) = (Window::Literal, Some(Rate::from_bps(2_000_000))));
    gate.open(0..4, None, None);
    assert_eq!(gate.acked(0, ISN + 1, 65_535), 24_700); // 8 Mbit/s: 98800 / 4
}

#[test]
fn shares_follow_the_rate_that_is_told_unless_one_is_configured() {
    let windows = |rate| {
        let mut gate = Gate::new(|c| (c.window, c.rate) = (Window::Literal, rate));
        gate.open(0..2, None, None);
        let before = gate.acked(0, ISN + 1, 65_535);
        gate.pink.on_fact(&Fact::Rate(Rate::from_bps(12_000_000)), gate.now);
        (before, gate.acked(0, ISN + 1001, 65_535))
    };
    assert_eq!(windows(None), (61_750, 65_535), "74005, but the field ends there");
    // A segment takes 1 ms there: 1e6 B/s * 0.1042 s * 0.95 / 2.
    assert_eq!(windows(Some(Rate::from_bps(8_000_000))), (49_495, 49_495));
}
