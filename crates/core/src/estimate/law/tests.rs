use super::*;

const MBIT: f64 = 1e6;

fn govern(way: Way, first: f64) -> Govern {
    Govern::new(way, &Known::around(Rate::from_bps((first * MBIT) as u64)))
}

/// A step of 25 ms after the one before, in which `bytes` left, and whose last packet waited for `queue` ms.
struct Play {
    law: Govern,
    now: Instant,
    bytes: u64,
}

impl Play {
    fn new(way: Way, first: f64) -> Self {
        Self { law: govern(way, first), now: Instant::ZERO, bytes: 0 }
    }

    fn step(&mut self, bytes: u64, queue: f64, busy: f64) -> Option<Span> {
        self.now += Span::from_millis(25);
        self.bytes += bytes;
        let sample = Some(Sample { queue: (queue * 1e6) as i64, at: self.now, bytes: self.bytes });
        let trip = Some(Span::from_secs_f64(0.04 + queue / 1e3));
        let (now, span, bytes) = (self.now, Span::from_millis(25), self.bytes);
        self.law.step(&Step { now, span, sample, busy, bytes, trip })
    }

    fn capacity(&self) -> f64 {
        self.law.capacity().as_bps() as f64 / MBIT
    }
}

/// 25 kB leave in each 25 ms, which is 8 Mbit/s, and the queue grows by 15 ms meanwhile: what left in 25 ms arrives within 40,
/// so the link has 5 Mbit/s.
#[test]
fn what_leaves_faster_than_the_link_counts_by_the_time_in_which_it_arrives() {
    let mut play = Play::new(Way::Out, 8.0);
    for step in 1..=20 {
        play.step(25_000, 15.0 * f64::from(step), 1.0);
    }
    assert!((play.capacity() - 5.0).abs() < 0.05, "{}", play.capacity());
    assert!(
        play.law.measured() && play.law.rate().as_bps() as f64 <= 0.31 * 5.0 * MBIT,
        "a queue of 300 ms is drained"
    );
}

/// A path that becomes longer by 30 ms looks like a queue. It stays while we send less, so it is none, and nothing is lost.
#[test]
fn a_queue_that_does_not_fall_while_we_send_less_is_a_longer_path() {
    let mut play = Play::new(Way::Out, 10.0);
    let send = |play: &mut Play, queue: f64| play.step(play.law.rate().as_bps() / 8 / 40, queue, 1.0);
    for step in 0..200 {
        // The link of 10 Mbit/s and a small queue that moves.
        send(&mut play, 3.6 + 0.5 * f64::from(step % 2));
    }
    let before = play.capacity();
    let longer: Vec<Span> = (0..80).filter_map(|_| send(&mut play, 33.6)).take(1).collect();
    let [longer] = longer[..] else { panic!("the path was not found to be longer") };
    assert!((longer.as_millis_f64() - 33.6).abs() < 1.0, "{longer}");
    assert!(play.capacity() >= 0.99 * before, "{} after {before}", play.capacity());
}

/// Applications send 2 Mbit/s over a link of 10: nothing waits, and what passes is no measure of the link.
#[test]
fn applications_that_send_little_lower_nothing() {
    for queue in [0.0, 3.9, 9.0] {
        let mut play = Play::new(Way::Out, 10.0);
        for _ in 0..400 {
            play.step(6_250, queue, 0.2);
        }
        assert!(
            play.capacity() >= 10.0 && play.law.rate().as_bps() as f64 >= 9.0 * MBIT,
            "{queue} ms: {play:?}",
            play = play.law
        );
    }
}

/// While our shaper is all that holds traffic back, the rate doubles, and with it what the link is known to carry.
#[test]
fn a_link_that_is_faster_is_found_within_round_trips() {
    let mut play = Play::new(Way::Out, 5.0);
    let rate = |play: &Play| play.law.rate().as_bps() as f64 / MBIT;
    let mut steps = 0;
    while play.capacity() < 50.0 && steps < 1000 {
        let bytes = play.law.rate().as_bps() / 8 / 40;
        play.step(bytes, 0.0, 1.0);
        steps += 1;
    }
    assert!(steps <= 80, "ten times the rate after {steps} steps of 25 ms: {} Mbit/s", rate(&play));
}

#[test]
fn the_rate_stays_within_its_bounds_and_nothing_changes_without_answers() {
    let known = Known {
        first: Rate::from_bps(10_000_000),
        lowest: Rate::from_bps(8_000_000),
        highest: Rate::from_bps(12_000_000),
    };
    let mut play = Play { law: Govern::new(Way::In, &known), now: Instant::ZERO, bytes: 0 };
    let silent = |play: &Play, now| Step {
        now,
        span: Span::from_millis(25),
        sample: None,
        busy: 0.0,
        bytes: play.bytes,
        trip: None,
    };
    for ms in 1..100 {
        let step = silent(&play, Instant::ZERO + Span::from_millis(25 * ms));
        play.law.step(&step);
        assert_eq!((play.law.rate(), play.law.capacity(), play.law.measured()), (known.first, known.first, false));
    }
    play.now = Instant::ZERO + Span::from_secs(10);
    for _ in 0..400 {
        play.step(62_500, 0.0, 1.0);
    }
    assert_eq!(play.law.rate(), known.highest);
    for step in 0..400 {
        play.step(2_500, 300.0 + 10.0 * f64::from(step % 2), 1.0);
    }
    assert_eq!(play.law.rate(), known.lowest);
}
