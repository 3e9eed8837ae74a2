use super::*;
use crate::packet::{Ecn, FlowId};
use crate::rng::Streams;
use crate::testing::Numbered;
use crate::units::Rate;

/// A queue and a clock.
struct World {
    queue: DualPi2<Numbered>,
    rng: Rng,
    now: Instant,
    number: u32,
}

impl World {
    fn new(config: &Config, limit: Limit) -> Self {
        config.validate().unwrap();
        let queue = DualPi2::new(config, &LinkFacts { rate: Rate::from_bps(8_000_000), limit });
        Self { queue, rng: Streams::new(1).get("unused"), now: Instant::ZERO, number: 0 }
    }

    fn plain() -> Self {
        Self::new(&Config::default(), Limit::Packets(10_000))
    }

    fn arrive(&mut self, ecn: Ecn) -> Enqueued {
        self.number += 1;
        self.queue.enqueue(
            Numbered::new(self.number.into(), FlowId(0), Bytes::new(1000)).with_ecn(ecn),
            self.now,
            &mut self.rng,
            &mut (),
        )
    }

    fn depart(&mut self) -> Option<Numbered> {
        self.queue.dequeue(self.now, &mut self.rng, &mut ())
    }

    fn wait_us(&mut self, us: u64) {
        self.now += Span::from_micros(us);
    }

    /// Which of `n` departures, counted from 1, have what `sign` looks for.
    fn departures(&mut self, n: u32, sign: impl Fn(&Numbered) -> bool) -> Vec<u32> {
        (1..=n).filter(|_| self.depart().is_some_and(|packet| sign(&packet))).collect()
    }

    fn probability(&self) -> f64 {
        self.queue.timer.law.0.prob
    }

    fn set_probability(&mut self, prob: f64) {
        self.queue.timer.law.0.prob = prob;
    }
}

fn near(seen: f64, expected: f64) {
    assert!((seen - expected).abs() < 1e-12, "{seen}, expected {expected}");
}

/// min(15, 100 / 3) ms; 0.1 * 0.015 / 0.01; 0.3 / 0.1.
#[test]
fn the_gains_are_the_rfcs() {
    let config = Config::default();
    assert_eq!(config.tupdate(), Span::from_millis(15));
    near(config.alpha(), 0.15);
    near(config.beta(), 3.0);
    let given = Config { tupdate: Some(Span::from_millis(16)), alpha: Some(0.2), beta: Some(3.2), ..config };
    assert_eq!((given.tupdate(), given.alpha(), given.beta()), (Span::from_millis(16), 0.2, 3.2));
}

#[test]
fn l4s_traffic_overtakes_classic() {
    let mut world = World::plain();
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        world.arrive(ecn);
    }
    let order: Vec<u64> = std::iter::from_fn(|| world.depart()).map(|packet| packet.number).collect();
    assert_eq!(order, [3, 4, 1, 2]);
}

/// While both wait: 10 % of the bytes. Credit begins at 1514 (2 * 10 - 100) = -121120 and gains 10000 with each L
/// packet, so 13 of those go first. A C packet costs 90000, so nine L packets go between two of them: 14, 24, ..., 994.
#[test]
fn the_classic_queue_gets_its_weight_while_both_wait() {
    let mut world = World::plain();
    for _ in 0..2000 {
        world.arrive(Ecn::Ect1);
        world.arrive(Ecn::NotEct);
    }
    let classic = world.departures(1000, |packet| packet.ecn == Ecn::NotEct);
    assert_eq!((&classic[..4], classic.len()), (&[14, 24, 34, 44][..], 99));
}

#[test]
fn an_emptied_queue_owes_nothing() {
    let mut world = World::plain();
    for _ in 0..5 {
        world.arrive(Ecn::Ect1);
        world.arrive(Ecn::NotEct);
    }
    while world.depart().is_some() {}
    assert_eq!(world.queue.scheduler, Scheduler::new(10, Bytes::new(1514)));
}

#[test]
fn the_ramp_goes_from_800_to_1200_us() {
    let ramp = Ramp { min_th: Span::from_micros(800), range: Span::from_micros(400), th_len: 1 };
    for (us, p) in [(0, 0.0), (800, 0.0), (900, 0.25), (1000, 0.5), (1100, 0.75), (1200, 1.0), (90_000, 1.0)] {
        near(ramp.at(Span::from_micros(us), 2), p);
        near(ramp.at(Span::from_micros(us), 1), 0.0);
    }
    // Without a range it is a step.
    let step = Ramp { range: Span::ZERO, ..ramp };
    near(step.at(Span::from_micros(800), 2), 0.0);
    near(step.at(Span::from_nanos(800_001), 2), 1.0);
}

/// 1/4: the sum is 1 after four, above it after five, and 1/4 is left; so every fourth from the fifth on.
#[test]
fn recur_spaces_events_evenly() {
    let mut recur = Recur(0.0);
    let strikes: Vec<u32> = (1..=14).filter(|_| recur.strikes(0.25)).collect();
    assert_eq!(strikes, [5, 9, 13]);
}

/// 1 ms in the L queue is half way up the ramp: with 1/2 the sum is above 1 after three, then after every second. The
/// last has no other behind it.
#[test]
fn a_delay_in_the_l_queue_marks() {
    let mut world = World::plain();
    for _ in 0..8 {
        world.arrive(Ecn::Ect1);
    }
    world.wait_us(1000);
    assert_eq!(world.departures(8, |packet| packet.ecn == Ecn::Ce), [3, 5, 7]);
}

/// p' = 1/4: L4S packets are marked with 1/2, classic ones meet 1/16.
#[test]
fn the_classic_queue_is_coupled_into_the_marks_of_the_other() {
    for (ecn, signals) in [(Ecn::Ect1, vec![3, 5, 7, 9, 11, 13, 15, 17]), (Ecn::Ect0, vec![17])] {
        let mut world = World::plain();
        world.set_probability(0.25);
        for _ in 0..18 {
            world.arrive(ecn);
        }
        assert_eq!(world.departures(18, |packet| packet.ecn == Ecn::Ce), signals);
    }
    let mut world = World::plain();
    world.set_probability(0.25);
    for _ in 0..18 {
        world.arrive(Ecn::NotEct);
    }
    assert_eq!(world.departures(18, |packet| packet.number == 18), [17], "the 17th was dropped on the way");
    assert_eq!(world.queue.stats().dropped_dequeue.packets, 1);
}

/// p' = 1/2, k p' = 1: 1/4 of everything is dropped, the fifth first, and L4S packets that stay are marked.
#[test]
fn overload_drops_from_both_queues() {
    for (ecn, marked) in [(Ecn::Ect1, 6), (Ecn::Ect0, 0)] {
        let mut world = World::plain();
        world.set_probability(0.5);
        for _ in 0..9 {
            world.arrive(ecn);
        }
        let sent: Vec<u64> = std::iter::from_fn(|| world.depart()).map(|packet| packet.number).collect();
        assert_eq!(sent, [1, 2, 3, 4, 6, 7, 8], "{ecn:?}");
        assert_eq!((world.queue.stats().dropped_dequeue.packets, world.queue.stats().marked.packets), (2, marked));
    }
}

/// The head came at 0. At 15 ms: 0.15 * 0 + 3 * 0.015 = 0.045. At 30 ms: 0.15 * 0.015 + 3 * 0.015 = 0.04725 more.
#[test]
fn the_delay_is_that_of_the_older_head_at_the_update() {
    for first in [Ecn::NotEct, Ecn::Ect1] {
        let mut world = World::plain();
        world.arrive(first);
        world.wait_us(5000);
        world.arrive(if first == Ecn::Ect1 { Ecn::NotEct } else { Ecn::Ect1 });
        for (us, prob) in [(9_999, 0.0), (1, 0.045), (14_999, 0.045), (1, 0.092_25)] {
            world.wait_us(us);
            world.queue.on_wakeup(world.now);
            near(world.probability(), prob);
        }
    }
}

#[test]
fn no_timer_is_needed() {
    let mut lazy = World::plain();
    lazy.arrive(Ecn::NotEct);
    lazy.wait_us(200_000);
    lazy.depart();
    let mut timed = lazy.queue.timer.clone();
    for ms in 201..=60_000 {
        timed.catch_up(None, Instant::ZERO + Span::from_millis(ms));
    }
    assert!(lazy.probability() > 0.5);
    assert_eq!(lazy.queue.next_wakeup(), None);
    lazy.wait_us(59_800_000);
    lazy.arrive(Ecn::NotEct);
    assert_eq!(lazy.queue.timer, timed);
}

#[test]
fn both_queues_share_one_limit() {
    let mut world = World::new(&Config::default(), Limit::Bytes(Bytes::new(2000)));
    assert_eq!(world.arrive(Ecn::NotEct), Enqueued::Queued);
    assert_eq!(world.arrive(Ecn::Ect1), Enqueued::Queued);
    assert_eq!(world.arrive(Ecn::Ect1), Enqueued::Dropped(DropReason::Overflow));
}

#[test]
fn parameters_that_cannot_work_are_refused_by_name() {
    let wrong = [
        ("rtt_max", Config { rtt_max: Span::ZERO, ..Config::default() }),
        ("target", Config { target: Span::ZERO, tupdate: Some(Span::from_millis(1)), ..Config::default() }),
        ("tupdate", Config { tupdate: Some(Span::ZERO), ..Config::default() }),
        ("beta", Config { beta: Some(-1.0), ..Config::default() }),
        ("coupling", Config { coupling: 0.0, ..Config::default() }),
        ("classic_weight", Config { classic_weight: 100, ..Config::default() }),
        ("mtu", Config { mtu: Bytes::ZERO, ..Config::default() }),
        ("step_thresh", Config { step_thresh: Span::ZERO, ..Config::default() }),
        ("drop_overload", Config { drop_overload: false, ..Config::default() }),
        ("memory_limit", Config { memory_limit: Some(Bytes::new(9000)), ..Config::default() }),
    ];
    for (key, config) in wrong {
        assert_eq!(config.validate().unwrap_err().key, key, "{config:?}");
    }
}
