use super::*;
use crate::config::{Compat, Discipline};
use crate::packet::FlowId;
use crate::rng::Streams;
use crate::testing::Numbered;
use crate::units::Rate;

/// Queues and a clock.
struct World {
    queue: LinuxDualPi2<Numbered>,
    rng: Rng,
    now: Instant,
    number: u64,
}

fn config() -> Config {
    Config { compat: Compat::Linux, ..Config::default() }
}

impl World {
    fn new(config: &Config, limit: Limit) -> Self {
        config.validate().unwrap();
        let queue = LinuxDualPi2::new(config, &LinkFacts { rate: Rate::from_bps(8_000_000), limit });
        Self { queue, rng: Streams::new(1).get("dualpi2"), now: Instant::ZERO, number: 0 }
    }

    /// A queue with `packets` of 1000 B, whose controller has the probability `prob`.
    fn full(config: &Config, prob: u32, ecn: Ecn, packets: u64) -> Self {
        let mut world = Self::new(config, Limit::Packets(1 << 20));
        world.queue.timer.law.prob = prob;
        (0..packets).for_each(|_| assert_eq!(world.arrive(ecn), Enqueued::Queued));
        world
    }

    fn arrive(&mut self, ecn: Ecn) -> Enqueued {
        self.number += 1;
        self.queue.enqueue(
            Numbered::new(self.number, FlowId(0), Bytes::new(1000)).with_ecn(ecn),
            self.now,
            &mut self.rng,
            &mut (),
        )
    }

    fn depart(&mut self) -> Option<Numbered> {
        self.queue.dequeue(self.now, &mut self.rng, &mut ())
    }

    fn empty(&mut self) {
        while self.depart().is_some() {}
    }

    fn prob(&self) -> u32 {
        self.queue.timer.law.prob
    }
}

/// dualpi2_scale_alpha_beta(): 41 (2^32 - 1) / 4 / 10^9 = 44.02, 819 of that are 879.39. 0.16 and 3.2 are these defaults.
#[test]
fn the_gains_are_the_kernels() {
    for config in [config(), Config { alpha: Some(0.16), beta: Some(3.2), ..config() }] {
        let law = Pi2::new(&config);
        assert_eq!((law.alpha, law.beta, law.target), (44, 879, 15_000_000));
        assert_eq!(tupdate(&config), Span::from_millis(16));
    }
}

/// The head came at 0. At 16 ms: (1 ms * 44 + 16 ms * 879) / 64 = 220,437,500. At 32 ms: (17 ms * 44 + 16 ms * 879) / 64
/// = 231,437,500 more. Then the queue is empty: at 48 ms (-15 ms * 44 - 32 ms * 879) / 64 = -449,812,500; at 64 ms
/// -15 ms * 44 / 64 more, which is less than there is.
#[test]
fn an_update_weighs_distance_and_change_in_units_of_the_kernel() {
    let mut world = World::full(&config(), 0, Ecn::NotEct, 1);
    for (ms, prob) in [(15, 0), (16, 220_437_500), (31, 220_437_500), (32, 451_875_000)] {
        world.now = Instant::ZERO + Span::from_millis(ms);
        world.queue.catch_up(world.now);
        assert_eq!(world.prob(), prob, "at {ms} ms");
    }
    world.empty();
    for (ms, prob) in [(48, 2_062_500), (64, 0), (80, 0)] {
        world.queue.catch_up(Instant::ZERO + Span::from_millis(ms));
        assert_eq!(world.prob(), prob, "at {ms} ms");
    }
}

/// 2^32 - 1 is the largest probability, and 1/k of it where overload does not drop.
#[test]
fn the_probability_has_32_bits() {
    for (drop_overload, most) in [(true, u32::MAX), (false, u32::MAX / 2)] {
        let mut law = Pi2::new(&Config { drop_overload, ..config() });
        law.prob = u32::MAX / 2;
        (0..100).for_each(|_| law.calculate_probability(10_000_000_000));
        assert_eq!(law.prob, most);
    }
}

/// 3028 B are two MTU. With the probability 1 every packet is signalled that leaves at least so many behind.
#[test]
fn less_than_two_mtu_are_not_signalled() {
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
        let mut world = World::full(&config(), u32::MAX, ecn, 6);
        world.empty();
        // 5000 and 4000 B stay behind the first two; 3000 B are too few.
        let stats = world.queue.stats;
        assert_eq!((stats.dropped_dequeue.packets, stats.sent.packets, stats.marked.packets), (2, 4, 0), "{ecn:?}");
    }
}

/// How many of 100,000 packets are dropped and marked, in percent, at this probability.
fn shares(config: &Config, prob: f64, ecn: Ecn) -> (f64, f64) {
    let mut world = World::full(config, (prob * f64::from(u32::MAX)) as u32, ecn, 100_000);
    world.empty();
    let stats = world.queue.stats;
    (stats.dropped_dequeue.packets as f64 / 1000.0, stats.marked.packets as f64 / 1000.0)
}

/// C: p^2. L: k p; in overload, p = 0.6 and k p = 1.2, p^2 are dropped and the others marked. The deviation is at most
/// 0.16 percentage points; the bound is four of them.
#[test]
fn rolls_have_the_probabilities_of_the_two_queues() {
    let no_drops = Config { drop_overload: false, ..config() };
    for (config, prob, ecn, (drops, marks)) in [
        (&config(), 0.3, Ecn::NotEct, (9.0, 0.0)),
        (&config(), 0.3, Ecn::Ect0, (0.0, 9.0)),
        (&config(), 0.3, Ecn::Ect1, (0.0, 60.0)),
        (&config(), 0.3, Ecn::Ce, (0.0, 60.0)),
        (&config(), 0.6, Ecn::NotEct, (36.0, 0.0)),
        (&config(), 0.6, Ecn::Ect0, (36.0, 0.0)),
        (&config(), 0.6, Ecn::Ect1, (36.0, 64.0)),
        (&no_drops, 0.6, Ecn::Ect1, (0.0, 100.0)),
        (&Config { any_ect: true, ..config() }, 0.3, Ecn::Ect0, (0.0, 60.0)),
    ] {
        let seen = shares(config, prob, ecn);
        assert!((seen.0 - drops).abs() < 0.64 && (seen.1 - marks).abs() < 0.64, "{ecn:?} at {prob}: {seen:?}");
    }
}

/// do_step_aqm(): longer than, not as long as, the threshold; the packet itself no longer counts as one in the queue.
#[test]
fn the_step_is_of_time_or_of_packets() {
    for (us, marked) in [(1000, 0), (1001, 3)] {
        let mut world = World::full(&config(), 0, Ecn::Ect1, 3);
        world.now += Span::from_micros(us);
        world.empty();
        assert_eq!(world.queue.stats.marked.packets, marked, "{us} us");
    }
    let mut world = World::full(&Config { step_packets: Some(1), ..config() }, 0, Ecn::Ect1, 4);
    world.empty();
    assert_eq!(world.queue.stats.marked.packets, 2, "behind the first two wait three and two");
    let mut world = World::full(&Config { min_qlen_step: 2, ..config() }, 0, Ecn::Ect1, 5);
    world.now += Span::from_millis(2);
    world.empty();
    assert_eq!(world.queue.stats.marked.packets, 3, "the first two found too few");
}

/// The fourth and the fifth find 3000 B and 4000 B: only the fifth is judged.
#[test]
fn packets_may_be_judged_on_arrival() {
    let mut world = World::full(&Config { drop_early: true, ..config() }, u32::MAX, Ecn::NotEct, 4);
    assert_eq!(world.arrive(Ecn::NotEct), Enqueued::Dropped(DropReason::Early));
    world.empty();
    assert_eq!((world.queue.stats.sent.packets, world.queue.stats.dropped_dequeue.packets), (4, 0));
}

/// dequeue_packet(): the credit starts anew when the link finds nothing, not before.
#[test]
fn the_credit_is_reset_when_the_link_asks_in_vain() {
    let mut world = World::full(&config(), 0, Ecn::Ect1, 1);
    world.arrive(Ecn::NotEct);
    let start = world.queue.scheduler.clone();
    assert!(world.depart().is_some() && world.depart().is_some());
    assert_ne!(world.queue.scheduler, start);
    assert!(world.depart().is_none());
    assert_eq!(world.queue.scheduler, start);
}

/// A limit of 2 packets allows 2 * 2 * 1514 = 6056 B; `memory_limit` sets another number.
#[test]
fn both_queues_share_one_limit_in_linux() {
    let mut world = World::new(&config(), Limit::Packets(2));
    assert_eq!(world.arrive(Ecn::NotEct), Enqueued::Queued);
    assert_eq!(world.arrive(Ecn::Ect1), Enqueued::Queued);
    assert_eq!(world.arrive(Ecn::Ect1), Enqueued::Dropped(DropReason::Overflow));
    assert_eq!(world.queue.memory_limit, Bytes::new(6056));
    let mut small = World::new(&Config { memory_limit: Some(Bytes::new(1999)), ..config() }, Limit::Packets(9));
    assert_eq!(small.arrive(Ecn::NotEct), Enqueued::Queued);
    assert_eq!(small.arrive(Ecn::NotEct), Enqueued::Dropped(DropReason::Overflow));
    small.empty();
    small.queue.stats.check(small.queue.backlog()).unwrap();
}

#[test]
fn what_linux_has_not_is_refused_by_name() {
    for (key, config) in [
        ("rtt_max", Config { rtt_max: Span::from_millis(50), ..config() }),
        ("min_th", Config { min_th: Span::from_millis(1), ..config() }),
        ("range", Config { range: Span::ZERO, ..config() }),
        ("th_len", Config { th_len: 0, ..config() }),
        ("alpha", Config { alpha: Some(0.001), ..config() }),
        ("coupling", Config { coupling: 1.5, ..config() }),
        ("memory_limit", Config { memory_limit: Some(Bytes::ZERO), ..config() }),
        ("classic_weight", Config { classic_weight: 100, ..config() }),
    ] {
        assert_eq!(config.validate().unwrap_err().key, key, "{config:?}");
    }
}
