use super::*;
use crate::packet::Ecn;
use crate::rng::Streams;
use crate::units::Bytes;
use proptest::prelude::{prop, prop_assert_eq, proptest};

/// A queue before a link that is served by hand.
struct World {
    sfb: Sfb,
    rng: Rng,
    now: Instant,
}

impl World {
    fn new(config: Config) -> Self {
        config.validate().unwrap();
        Self { sfb: Sfb::new(config), rng: Streams::new(1).get("sfb"), now: Instant::ZERO }
    }

    fn packet(flow: u32) -> Meta {
        Meta { size: Bytes::new(1000), ecn: Ecn::Ect0, flow: FlowId(flow) }
    }

    fn arrive(&mut self, flow: u32) -> Verdict {
        self.sfb.on_enqueue(&Self::packet(flow), Backlog::default(), self.now, &mut self.rng)
    }

    /// So many arrivals; how many there were of this verdict.
    fn arrivals(&mut self, flow: u32, count: u32, of: Verdict) -> usize {
        (0..count).filter(|_| self.arrive(flow) == of).count()
    }

    fn depart(&mut self) {
        self.sfb.on_dequeue(&Self::packet(0), Span::ZERO, Backlog::default(), self.now, &mut self.rng);
    }

    /// Serves until so many are left.
    fn leave(&mut self, packets: usize) {
        while self.sfb.counted.len() > packets {
            self.depart();
        }
    }

    fn p(&self, flow: u32) -> f64 {
        self.sfb.probability(FlowId(flow))
    }

    /// Brings a flow into the penalty box and leaves some packets, so that its bins are neither full nor empty.
    fn condemn(&mut self, flow: u32) {
        self.arrivals(flow, 1100, Verdict::Pass);
        assert_eq!(self.p(flow), 1.0);
        self.leave(5);
    }
}

fn assert_close(seen: f64, expected: f64) {
    assert!((seen - expected).abs() < 1e-9, "{seen}, by hand {expected}");
}

/// The first 20 find fewer than 20 queued. The next find 20, 21, ... 24 and raise p by 0.001 each; further ones find
/// 25 if none of these was dropped at random, are dropped and raise p as well.
#[test]
fn full_bins_raise_and_empty_bins_lower_the_probability() {
    let mut world = World::new(Config::default());
    assert_eq!(world.arrivals(7, 20, Verdict::Pass), 20);
    assert_close(world.p(7), 0.0);
    world.arrivals(7, 30, Verdict::Pass);
    assert_close(world.p(7), 0.030);
    assert!(world.sfb.counted.len() <= 25, "{}", world.sfb.counted.len());
    world.leave(0);
    // One arrival finds its bins empty, the next does not.
    for (arrivals, p) in [(1, 0.030 - 1.0 / 6000.0), (10, 0.030 - 1.0 / 6000.0)] {
        (0..arrivals).for_each(|_| {
            world.arrive(7);
        });
        assert_close(world.p(7), p);
    }
}

#[test]
fn no_bin_takes_more_than_its_limit() {
    let mut world = World::new(Config { increment: 1e-9, ..Config::default() });
    assert_eq!(world.arrivals(7, 100, Verdict::Pass), 25);
}

/// With 8 levels of 16 bins, the chance that a flow shares all its bins with the other is 16^-8.
#[test]
fn a_flood_leaves_others_alone() {
    let mut world = World::new(Config::default());
    world.condemn(0);
    for flow in 1..100 {
        assert_eq!(world.p(flow), 0.0, "flow {flow}");
    }
    assert_eq!(world.arrivals(1, 10, Verdict::Pass), 10);
}

/// Twenty at once and ten a second: 20 + 10 * 10 in ten seconds. Then ten idle seconds fill the bucket, but with no more
/// than the burst.
#[test]
fn the_penalty_box_lets_its_rate_through() {
    let mut world = World::new(Config::default());
    world.condemn(0);
    let mut passed = 0;
    for _ in 0..1000 {
        world.now += Span::from_millis(10);
        passed += world.arrivals(0, 1, Verdict::Pass);
        world.leave(5);
    }
    assert!((119..=120).contains(&passed), "{passed}");
    world.now += Span::from_secs(10);
    let passed: usize = (0..100)
        .map(|_| {
            let passed = world.arrivals(0, 1, Verdict::Pass);
            world.leave(5);
            passed
        })
        .sum();
    assert_eq!(passed, 20);
}

/// Of 10,000 arrivals at p = 3/4. Linux would drop half of them, for being above 1/2.
#[test]
fn capable_packets_are_marked() {
    for (ecn, signal) in [(true, Verdict::Mark), (false, Verdict::Drop)] {
        let config = Config { ecn, bin_size: 1, bin_limit: 1_000_000, increment: 1e-9, ..Config::default() };
        let mut world = World::new(config);
        world.arrive(0);
        world.sfb.sets[0].bins.iter_mut().for_each(|bin| bin.p = 0.75);
        let signals = world.arrivals(0, 10_000, signal);
        assert!((7283..=7717).contains(&signals), "7500 expected, five deviations are 217: {signals}");
    }
}

/// A large allowance: in the warm-up 1100 of its packets queue, all but 20 of which find full bins of the next hashes.
#[test]
fn new_hashes_begin_with_what_was_warmed_up() {
    for (warmup, p) in [(60, 1.0), (0, 0.0)] {
        let warmup = Span::from_secs(warmup);
        let mut world = World::new(Config {
            warmup,
            bin_limit: 10_000,
            penalty_burst: 2000,
            penalty_rate: 0.0,
            ..Config::default()
        });
        world.condemn(0);
        let before = world.sfb.sets[0].key;
        world.now += Span::from_secs(541);
        assert_eq!(world.arrivals(0, 1100, Verdict::Pass), 1100);
        world.leave(5);
        world.now += Span::from_secs(60);
        world.arrive(1);
        assert_eq!(world.sfb.active, 1);
        assert_close(world.p(0), p);
        assert_ne!(world.sfb.sets[0].key, before);
        assert!(world.sfb.sets[0].bins.iter().all(|bin| bin.p == 0.0), "the old hashes are forgotten");
    }
}

/// The last 60 of 600 seconds begin at 540: from then on a flow of the penalty box is counted by the next hashes too.
#[test]
fn the_warm_up_is_the_end_of_the_period() {
    for (ns, warming) in [(539_999_999_999, false), (540_000_000_000, true)] {
        let mut world = World::new(Config::default());
        world.condemn(0);
        world.now = Instant::from_nanos(ns);
        assert_eq!(world.arrive(0), Verdict::Pass);
        assert_eq!(world.sfb.counted.back().map(|counted| counted[1] != 0), Some(warming), "at {ns} ns");
    }
}

#[test]
fn hashes_may_stay_for_ever() {
    let mut world = World::new(Config { rehash: Span::ZERO, warmup: Span::ZERO, ..Config::default() });
    world.arrive(0);
    let key = world.sfb.sets[0].key;
    world.now += Span::from_secs(100_000);
    world.arrive(0);
    assert_eq!((world.sfb.active, world.sfb.sets[0].key), (0, key));
}

/// Each level has 4096 flows in 16 bins: 256 of each, with a deviation of 15.5.
#[test]
fn each_level_spreads_flows_evenly_and_by_its_own_hash() {
    let mut world = World::new(Config { bin_size: 100_000, bin_limit: 200_000, ..Config::default() });
    assert_eq!((0..4096).filter(|flow| world.arrive(*flow) == Verdict::Pass).count(), 4096);
    for (n, bin) in world.sfb.sets[0].bins.iter().enumerate() {
        assert!((178..=334).contains(&bin.queued), "bin {n} has {}", bin.queued);
    }
    assert_ne!(world.sfb.sets[0].bins[..16], world.sfb.sets[0].bins[16..32]);
}

#[test]
fn values_that_cannot_work_are_refused_by_name() {
    for (config, key) in [
        (Config { bins: 12, ..Config::default() }, "bins"),
        (Config { bins: 1, ..Config::default() }, "bins"),
        (Config { levels: 17, ..Config::default() }, "levels"),
        (Config { levels: u32::MAX, ..Config::default() }, "levels"),
        (Config { bin_size: 0, ..Config::default() }, "bin_size"),
        (Config { bin_limit: 20, ..Config::default() }, "bin_limit"),
        (Config { decrement: 0.0, ..Config::default() }, "decrement"),
        (Config { rehash: Span::from_secs(1), ..Config::default() }, "warmup"),
        (Config { penalty_rate: f64::NAN, ..Config::default() }, "penalty_rate"),
    ] {
        assert_eq!(config.validate().unwrap_err().key, key);
    }
    // All 64 bits of the hash.
    let mut world = World::new(Config { levels: 4, bins: 65_536, ..Config::default() });
    world.arrive(1);
    assert_eq!(world.sfb.sets[0].bins.iter().filter(|bin| bin.queued == 1).count(), 4);
}

/// The packet that finds no room is the last that was let pass, not the one that waits longest.
#[test]
fn what_overflows_is_not_counted() {
    let mut world = World::new(Config::default());
    world.arrive(0);
    let before = world.sfb.sets[0].bins.clone();
    world.arrive(1);
    assert_ne!(world.sfb.sets[0].bins, before);
    world.sfb.on_overflow(world.now);
    assert_eq!(world.sfb.sets[0].bins, before);
}

proptest! {
    /// Whatever comes and goes while hashes move, the bins hold what waits, and nothing when nothing waits.
    #[test]
    fn bins_hold_what_waits(steps in prop::collection::vec((0..8u32, 0..3u32, 0..3_000u64), 0..300)) {
        let config = Config {
            bin_size: 2,
            bin_limit: 6,
            increment: 0.2,
            rehash: Span::from_secs(20),
            warmup: Span::from_secs(10),
            penalty_rate: 1000.0,
            ..Config::default()
        };
        let mut world = World::new(config);
        for (flow, action, wait_ms) in steps {
            world.now += Span::from_millis(wait_ms);
            match action {
                0 => world.depart(),
                1 => assert_ne!(world.arrive(flow), Verdict::Mark),
                _ => {
                    if world.arrive(flow) != Verdict::Drop {
                        world.sfb.on_overflow(world.now);
                    }
                }
            }
            for set in 0..2 {
                let waiting = world.sfb.counted.iter().filter(|counted| counted[set] != 0).count() as u32;
                for level in world.sfb.sets[set].bins.chunks(16) {
                    prop_assert_eq!(level.iter().map(|bin| bin.queued).sum::<u32>(), waiting);
                }
            }
        }
        world.leave(0);
        prop_assert_eq!(world.sfb.sets.iter().flat_map(|set| &set.bins).map(|bin| bin.queued).max(), Some(0));
    }
}
