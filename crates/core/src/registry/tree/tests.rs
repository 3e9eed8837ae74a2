use super::*;
use crate::allocation::{Ask, allocate};
use crate::rng::{Rng, Streams};
use crate::sched::Weight;
use crate::sched::tree::{Branch, guaranteed};
use crate::testing::Numbered;
use crate::units::{Bytes, Span};
use proptest::prelude::*;

const LINK: Rate = Rate::from_bps(10_000_000);
const LARGEST: u64 = 1500;

fn named(name: &str) -> AnyConfig {
    AnyConfig::default_of(name).unwrap()
}

/// A member under `parent` with a weight, and a guarantee and a ceiling in kbit/s; 0 is none.
fn member(at: usize, parent: Option<usize>, weight: u32, kbps: [u64; 2], leaf: bool) -> Member {
    let [guaranteed, ceiling] = kbps.map(|kbps| (kbps > 0).then(|| Rate::from_bps(1000 * kbps)));
    let branch = Branch { parent, weight: Weight::new(weight).unwrap(), guaranteed, ceiling };
    Member { name: format!("m{at}"), branch, queue: leaf.then(|| (NodeId(at as u32 + 1), named("droptail"))) }
}

fn config(members: Vec<Member>) -> Config {
    let config = Config { members, others: named("droptail") };
    config.check(LINK).unwrap();
    config
}

/// A tree before a link, in virtual time.
struct Bench {
    tree: Tree<Numbered>,
    rng: Rng,
    now: Instant,
    next: u64,
    /// Bytes that were sent of each subscriber, by time.
    sent: Vec<Vec<(Instant, u64)>>,
    last: Vec<u64>,
}

impl Bench {
    fn new(config: &Config) -> Self {
        let link = LinkFacts { rate: LINK, limit: Limit::Packets(1000) };
        let n = config.members.len() + 1;
        let mut tree = config.build(&link);
        for (flow, member) in (0..).zip(&config.members) {
            if let Some((node, _)) = member.queue {
                tree.on_fact(&Fact::Owner { flow: FlowId(flow), node }, Instant::ZERO);
            }
        }
        let rng = Streams::new(1).get("tree");
        Self { tree, rng, now: Instant::ZERO, next: 0, sent: vec![Vec::new(); n], last: vec![0; n] }
    }

    fn offer(&mut self, member: usize, size: u64) {
        self.next += 1;
        let packet = Numbered::new(self.next, FlowId(member as u32), Bytes::new(size));
        self.tree.enqueue(packet, self.now, &mut self.rng, &mut ());
    }

    fn waiting(&self, member: usize) -> u64 {
        self.tree.queues[member].as_ref().map_or(0, |queue| queue.backlog.packets)
    }

    /// Sends a packet, or waits until one may be sent; returns whose it was, and `None` after a wait.
    fn step(&mut self) -> Option<usize> {
        let Some(packet) = self.tree.dequeue(self.now, &mut self.rng, &mut ()) else {
            let wakeup = self.tree.next_wakeup().expect("packets wait, so a ceiling holds them");
            assert!(wakeup > self.now);
            self.now = wakeup;
            self.tree.on_wakeup(self.now);
            return None;
        };
        let member = packet.flow.0 as usize;
        assert!(packet.number > self.last[member], "a packet was overtaken");
        self.last[member] = packet.number;
        self.sent[member].push((self.now, packet.size.get()));
        self.now += LINK.time_for(packet.size);
        self.tree.stats().check(self.tree.backlog()).unwrap();
        Some(member)
    }

    /// Keeps these members busy for a time, with packets of sizes of their own.
    fn keep_busy(&mut self, busy: &[(usize, u64)], span: Span) {
        let end = self.now + span;
        while self.now < end {
            for (member, size) in busy {
                while self.waiting(*member) < 3 {
                    self.offer(*member, *size);
                }
            }
            self.step();
        }
    }

    fn bytes(&self, member: usize, from: Instant, to: Instant) -> u64 {
        self.sent[member].iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, size)| size).sum()
    }

    /// The largest amount by which the bytes of any interval between two packets exceed a rate, and the largest by which
    /// they fall short of it.
    fn excess(&self, member: usize, rate: Rate) -> [f64; 2] {
        let (mut total, mut low, mut high, mut most) = (0.0, 0.0f64, 0.0f64, [0.0f64; 2]);
        for (at, size) in &self.sent[member] {
            let fluid = at.as_secs_f64() * rate.bytes_per_sec();
            most[1] = most[1].max(high - (total - fluid));
            low = low.min(total - fluid);
            total += *size as f64;
            most[0] = most[0].max(total - fluid - low);
            high = high.max(total - fluid);
        }
        most
    }
}

/// What each member gets of a link in the long run, by the definition: its guarantee, and of what is left a part by weight.
fn fluid(members: &[Member], busy: &[(usize, u64)]) -> Vec<u64> {
    let branches: Vec<Branch> = members.iter().map(|member| member.branch).collect();
    let promised = guaranteed(&branches);
    // What a member can use, from the leaves up; parents come before their members here.
    let mut usable = vec![0u64; members.len()];
    for at in (0..members.len()).rev() {
        if members[at].queue.is_some() {
            usable[at] = if busy.iter().any(|(leaf, _)| *leaf == at) { u64::MAX } else { 0 };
        }
        usable[at] = usable[at].min(branches[at].ceiling.map_or(u64::MAX, Rate::as_bps));
        if let Some(parent) = branches[at].parent {
            usable[parent] = usable[parent].saturating_add(usable[at]);
        }
    }
    let mut gets = vec![0u64; members.len()];
    for parent in std::iter::once(None).chain((0..members.len()).map(Some)) {
        let here: Vec<usize> = (0..members.len()).filter(|at| branches[*at].parent == parent).collect();
        let own: Vec<u64> = here.iter().map(|at| promised[*at].min(usable[*at])).collect();
        let capacity = parent.map_or(LINK.as_bps(), |parent| gets[parent]);
        let left = capacity.saturating_sub(own.iter().sum());
        let ask = |(at, own): (&usize, &u64)| Ask {
            class: 0,
            weight: branches[*at].weight.get().into(),
            floor: 0,
            claim: usable[*at].saturating_sub(*own),
        };
        let asks: Vec<Ask> = here.iter().zip(&own).map(ask).collect();
        let shares = allocate::<1>(left, 0, &asks);
        here.iter().zip(own).zip(shares).for_each(|((at, own), share)| gets[*at] = own + share);
    }
    gets
}

prop_compose! {
    /// Groups and subscribers, groups first, in up to three levels. Guarantees fit.
    fn a_tree()(
        groups in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), 1..9u32, 0..2u64), 0..4),
        leaves in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), 1..9u32, 0..900u64, 0..3u64), 1..9),
    ) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        for (above, top, weight, capped) in &groups {
            let parent = (!top && !members.is_empty()).then(|| above.index(members.len()));
            members.push(member(members.len(), parent, *weight, [0, capped * 9000], false));
        }
        for (above, top, weight, kbps, capped) in &leaves {
            let parent = (!top && !groups.is_empty()).then(|| above.index(groups.len()));
            // A third has no guarantee; a third has no ceiling, others one above their guarantee.
            let kbps = if kbps % 3 == 0 { 0 } else { *kbps };
            members.push(member(members.len(), parent, *weight, [kbps, capped * (kbps + 150)], true));
        }
        members
    }
}

/// Picks the leaves that are busy, at least one, and the size of their packets.
fn some(members: &[Member], which: &[(bool, u64)]) -> Vec<(usize, u64)> {
    let leaves = members.iter().enumerate().filter(|(_, member)| member.queue.is_some()).map(|(at, _)| at);
    let mut all: Vec<_> = leaves.zip(which).map(|(at, (busy, size))| (at, *size, *busy)).collect();
    all[0].2 = true;
    all.into_iter().filter(|(_, _, busy)| *busy).map(|(at, size, _)| (at, size)).collect()
}

/// What a subscriber could have, in bits per second.
fn part(bench: &Bench, member: usize) -> u64 {
    bench.tree.budget_of(FlowId(member as u32)).unwrap().as_bps()
}

/// One has 4 of 10 Mbit/s guaranteed, and the weights are 1, 1, 2: what the idle leave is for the others, and a guarantee holds
/// in any case.
#[test]
fn a_part_is_what_the_tree_gives() {
    let m = |at, weight, kbps| member(at, None, weight, kbps, true);
    let config = config(vec![m(0, 1, [4000, 0]), m(1, 1, [0, 0]), m(2, 2, [0, 3000])]);
    let mut bench = Bench::new(&config);
    assert_eq!([0, 1, 2].map(|member| part(&bench, member)), [10_000_000, 10_000_000, 3_000_000], "nobody sends");
    let close = |bench: &Bench, expected: [u64; 3]| {
        let got = [0, 1, 2].map(|member| part(bench, member));
        let near = got.iter().zip(expected).all(|(got, expected)| got.abs_diff(expected) * 50 <= expected);
        assert!(near, "{got:?} {expected:?}");
    };
    bench.keep_busy(&[(1, 1500)], Span::from_millis(4100));
    // Of 10 Mbit/s: 4 and half of the rest; what one alone has; the ceiling.
    close(&bench, [7_000_000, 10_000_000, 3_000_000]);
    bench.keep_busy(&[(0, 1500), (1, 1500)], Span::from_millis(4100));
    close(&bench, [7_000_000, 3_000_000, 3_000_000]);
    bench.keep_busy(&[(0, 1500), (1, 1500), (2, 1500)], Span::from_millis(4100));
    // Of the 6 that are not guaranteed the third could have half, which is its ceiling; the others halve what is left.
    close(&bench, [5_500_000, 1_500_000, 3_000_000]);
    bench.tree.on_fact(&Fact::Rate(Rate::from_bps(2_000_000)), bench.now);
    assert!(part(&bench, 0) >= 2_000_000 && part(&bench, 1) < 200_000, "guarantees are cut to the link");
}

/// Who sends one packet a second is there, and takes nothing.
#[test]
fn who_is_there_and_idle_takes_nothing() {
    let config = config((0..9).map(|at| member(at, None, 1, [0, 0], true)).collect());
    let mut bench = Bench::new(&config);
    for _ in 0..4 {
        (1..9).for_each(|member| bench.offer(member, 100));
        bench.keep_busy(&[(0, 1500)], Span::from_millis(1100));
    }
    let least = 10_000_000 - 8 * 900;
    assert!(
        part(&bench, 0) >= least && part(&bench, 1).abs_diff(5_000_000) < 10_000,
        "{} {}",
        part(&bench, 0),
        part(&bench, 1)
    );
}

fn which() -> impl Strategy<Value = Vec<(bool, u64)>> {
    prop::collection::vec((any::<bool>(), 64..=LARGEST), 9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whoever is busy can have what it gets, and whoever is idle what it would get by the definition if it were not.
    #[test]
    fn parts_are_as_defined(members in a_tree(), busy in which()) {
        let mut bench = Bench::new(&config(members.clone()));
        let busy = some(&members, &busy);
        bench.keep_busy(&busy, Span::from_millis(5100));
        for at in (0..members.len()).filter(|at| members[*at].queue.is_some()) {
            let others = busy.iter().filter(|(leaf, _)| *leaf != at).copied();
            let expected = fluid(&members, &others.chain([(at, LARGEST)]).collect::<Vec<_>>())[at] as f64;
            let ratio = part(&bench, at) as f64 / expected;
            prop_assert!((0.85..=1.15).contains(&ratio), "{at}: {ratio} of {expected}");
        }
    }

    /// Whoever is busy gets what the definition gives, whatever happened before.
    #[test]
    fn guarantees_weights_and_ceilings_are_as_defined(members in a_tree(), first in which(), second in which()) {
        let config = config(members.clone());
        let mut bench = Bench::new(&config);
        bench.keep_busy(&some(&members, &first), Span::from_millis(700));
        let busy = some(&members, &second);
        // What the first left behind goes within its ceilings.
        while (0..members.len()).any(|at| bench.waiting(at) > 0) {
            bench.step();
        }
        let begin = bench.now;
        bench.keep_busy(&busy, Span::from_secs(4));
        let expected = fluid(&members, &busy);
        let packets = (3 * busy.len()).max(6); // by so much is each above its ceiling at most, see below
        for (at, _) in &busy {
            let got = bench.bytes(*at, begin, bench.now) as f64;
            let wanted = bench.now.since(begin).as_secs_f64() * expected[*at] as f64 / 8.0;
            prop_assert!((got - wanted).abs() < packets as f64 * LARGEST as f64 + 0.002 * wanted, "{at}: {got} of {wanted}, {members:?}");
        }
    }

    /// In any interval: no more than the ceiling and three packets, no less than the guarantee and a few packets, while the
    /// others come and go.
    #[test]
    fn no_interval_is_above_a_ceiling_or_below_a_guarantee(
        members in a_tree(), phases in prop::collection::vec((which(), 5..200u64), 2..12)
    ) {
        let config = config(members.clone());
        let mut bench = Bench::new(&config);
        let always = (members.len() - 1, LARGEST);
        for (which, ms) in &phases {
            let mut busy = some(&members, which);
            busy.retain(|(at, _)| *at != always.0);
            busy.push(always);
            bench.keep_busy(&busy, Span::from_millis(*ms));
        }
        for (at, Member { branch, .. }) in members.iter().enumerate() {
            if let Some(ceiling) = branch.ceiling.filter(|_| members[at].queue.is_some()) {
                let above = bench.excess(at, ceiling)[0];
                prop_assert!(above <= 3.0 * 1514.0 + 1.0, "{at}: {above} bytes above {ceiling}");
            }
        }
        if let Some(own) = members[always.0].branch.guaranteed {
            let below = bench.excess(always.0, own)[1];
            // A packet at each of up to four levels, one of its own, and the pause of ceilings above.
            prop_assert!(below <= 8.0 * 1514.0, "{below} bytes below {own}");
        }
    }

    /// Siblings that are always busy and have neither guarantee nor ceiling differ by at most a packet each, by weight.
    #[test]
    fn weights_hold_within_a_packet_of_each(weights in prop::collection::vec((1..20u32, 64..=LARGEST), 2..8), ms in 20..400u64) {
        let members: Vec<Member> =
            weights.iter().enumerate().map(|(at, (weight, _))| member(at, None, *weight, [0, 0], true)).collect();
        let busy: Vec<_> = weights.iter().enumerate().map(|(at, (_, size))| (at, *size)).collect();
        let mut bench = Bench::new(&config(members));
        bench.keep_busy(&busy, Span::from_millis(ms));
        let of = |at: usize| bench.bytes(at, Instant::ZERO, bench.now) as f64 / f64::from(weights[at].0);
        let lag = |at: usize| weights[at].1 as f64 / f64::from(weights[at].0);
        for (one, other) in (0..weights.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
            prop_assert!((of(one) - of(other)).abs() <= lag(one) + lag(other) + 1e-6);
        }
    }

    /// For any packets, facts and changes of the settings: none is lost or made twice, those of a flow stay in order while it
    /// stays with its subscriber, and the link is idle only while ceilings hold all.
    #[test]
    fn packets_survive_any_change_of_the_settings(
        trees in prop::collection::vec((a_tree(), prop::sample::select(vec!["droptail", "fq-codel", "pie", "sfq"])), 1..5),
        steps in prop::collection::vec((0..9usize, 64..=LARGEST, 0..12u8), 1..300),
    ) {
        let mut trees = trees.into_iter().map(|(mut members, name)| {
            for (at, (_, discipline)) in members.iter_mut().enumerate().filter_map(|(at, m)| Some((at, m.queue.as_mut()?))) {
                if at % 2 == 0 { *discipline = named(name); }
            }
            config(members)
        }).cycle_of();
        let first = trees.next();
        let link = LinkFacts { rate: LINK, limit: Limit::Packets(5) };
        let (mut tree, mut rng, mut now) = (first.build(&link), Streams::new(1).get("tree"), Instant::ZERO);
        let (mut fates, mut sent) = (Fates::default(), 0);
        for (number, (flow, size, what)) in steps.into_iter().enumerate() {
            now += Span::from_micros(300);
            match what {
                0 => tree.change(&trees.next(), Limit::Packets(5), now),
                1 => tree.on_fact(&Fact::Owner { flow: FlowId(flow as u32), node: NodeId(1 + size as u32 % 12) }, now),
                2 => tree.on_fact(&Fact::Rate(Rate::from_bps(1_000_000 + 10_000 * size)), now),
                3..=5 => {
                    tree.next_wakeup().filter(|at| *at <= now).into_iter().for_each(|_| tree.on_wakeup(now));
                    sent += u64::from(tree.dequeue(now, &mut rng, &mut fates).is_some());
                }
                _ => { tree.enqueue(Numbered::new(number as u64, FlowId(flow as u32), Bytes::new(size)), now, &mut rng, &mut fates); }
            }
            tree.stats().check(tree.backlog()).unwrap();
            let held = tree.queues.iter().flatten().map(|queue| queue.backlog.packets).sum::<u64>();
            prop_assert_eq!(held, tree.backlog().packets);
        }
        for _ in 0..20_000 {
            if tree.dequeue(now, &mut rng, &mut fates).is_some() {
                sent += 1;
            } else if tree.backlog().packets > 0 {
                now = tree.next_wakeup().expect("packets wait, so a ceiling holds them").max(now);
                tree.on_wakeup(now);
            }
        }
        prop_assert_eq!((tree.backlog().packets, sent + fates.dropped), (0, tree.stats().arrived.packets));
    }
}

/// Goes round a list.
struct Round(Vec<Config>, usize);

trait CycleOf {
    fn cycle_of(self) -> Round;
}

impl<I: Iterator<Item = Config>> CycleOf for I {
    fn cycle_of(self) -> Round {
        Round(self.collect(), 0)
    }
}

impl Round {
    fn next(&mut self) -> Config {
        self.1 += 1;
        self.0[(self.1 - 1) % self.0.len()].clone()
    }
}

#[derive(Default)]
struct Fates {
    dropped: u64,
}

impl PacketObserver<Numbered> for Fates {
    fn dropped(&mut self, _: Numbered, _: DropReason, _: Instant) {
        self.dropped += 1;
    }
    fn marked(&mut self, _: &Numbered, _: Instant) {}
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let wrong = |members: Vec<Member>| {
        let wrong = Config { members, others: named("droptail") }.check(LINK).unwrap_err();
        (wrong.member, wrong.key, wrong.what)
    };
    let (at, key, what) = wrong(vec![member(0, None, 1, [6000, 0], true), member(1, None, 1, [5000, 0], true)]);
    assert!((at, key) == (1, "guaranteed") && what.contains("11Mbit/s") && what.contains("10Mbit/s"), "{what}");
    let group = |kbps| member(0, None, 1, kbps, false);
    let (at, key, what) = wrong(vec![group([0, 3000]), member(1, Some(0), 1, [4000, 0], true)]);
    assert!((at, key) == (0, "ceiling") && what.contains("4Mbit/s"), "{what}");
    let (at, key, _) = wrong(vec![group([1000, 0]), member(1, Some(0), 1, [4000, 0], true)]);
    assert_eq!((at, key), (0, "guaranteed"));
    assert_eq!(wrong(vec![member(0, None, 1, [4000, 3000], true)]).1, "ceiling");
    assert_eq!(wrong(vec![member(0, Some(1), 1, [0, 0], false), member(1, Some(0), 1, [0, 0], false)]).1, "parent");
    let pink = Member { queue: Some((NodeId(1), named("pink"))), ..member(0, None, 1, [0, 0], true) };
    let (_, key, what) = wrong(vec![pink]);
    assert!(key == "discipline" && what.contains("fq-codel"), "{what}");
}

#[test]
fn guarantees_are_cut_in_proportion_if_the_link_is_slower() {
    let members = vec![member(0, None, 1, [6000, 0], true), member(1, None, 1, [3000, 0], true)];
    let mut bench = Bench::new(&config(members));
    // As if only half of the link were there: the order alone decides.
    bench.tree.on_fact(&Fact::Rate(Rate::from_bps(4_500_000)), bench.now);
    for _ in 0..3000 {
        (0..2).for_each(|at| bench.offer(at, 1500));
        bench.step();
        bench.now += LINK.time_for(Bytes::new(1833)); // 1500 B at 4.5 Mbit/s
    }
    let [one, other] = [0, 1].map(|at| bench.bytes(at, Instant::ZERO, bench.now) as f64);
    assert!((one / other - 2.0).abs() < 0.02, "{one} {other}");
}

/// A packet takes 12 s of a ceiling or of a guarantee. A tenth of a second later it has another one, and nothing is left of them.
#[test]
fn nothing_is_left_of_a_rate_that_held_for_a_second() {
    let after = |slow: [u64; 2], fast: [u64; 2]| {
        let members = |kbps| vec![member(0, None, 1, kbps, true), member(1, None, 1, [0, 0], true)];
        let mut bench = Bench::new(&config(members(slow)));
        bench.keep_busy(&[(0, 1500), (1, 1500)], Span::from_millis(100));
        bench.tree.change(&config(members(fast)), Limit::Packets(1000), bench.now);
        let begin = bench.now;
        bench.keep_busy(&[(0, 1500), (1, 1500)], Span::from_secs(1));
        bench.bytes(0, begin, bench.now) as f64 / bench.bytes(1, begin, bench.now) as f64
    };
    // 2 Mbit/s of 10; then 6 of 10, and half of what is left.
    let (held, kept) = (after([0, 1], [0, 2000]), after([1, 0], [6000, 0]));
    assert!((held - 2.0 / 8.0).abs() < 0.02 && (kept - 8.0 / 2.0).abs() < 0.1, "{held} {kept}");
}

/// A flood of one subscriber fills its own queue. With 100 floods all together keep to 16 limits, and whoever came last finds
/// room as the others drain, and gets its part.
#[test]
fn a_newcomer_finds_room() {
    let members = (0..100).map(|at| member(at, None, 1, [0, 0], true)).collect();
    let mut bench = Bench::new(&config(members));
    (0..5000).for_each(|_| bench.offer(0, 1500));
    assert_eq!(bench.waiting(0), 1000);
    (0..5000).for_each(|n| bench.offer(n % 99, 1500));
    let mut begin = bench.now;
    for n in 0..40_000 {
        (0..3).for_each(|m| bench.offer((3 * n + m) % 100, 1500));
        bench.step();
        begin = if n == 20_000 { bench.now } else { begin };
        assert!(bench.tree.backlog().packets <= 16_000);
    }
    let part = bench.bytes(99, begin, bench.now) as f64 / (20_000.0 * 1500.0);
    assert!((part - 0.01).abs() < 0.001, "{part}");
}

/// A ceiling holds over changes as it does without them, whether the subscriber waits for it or the link does.
#[test]
fn a_ceiling_holds_over_changes() {
    let with = |n: usize| {
        let mut members = vec![member(0, None, 1, [0, 3000], true), member(1, None, 1, [6000, 0], true)];
        members.push(Member { name: format!("x{}", n % 3), ..member(2, None, 1, [0, 0], true) });
        config(members)
    };
    for busy in [vec![0], vec![0, 1], vec![0, 1, 2]] {
        let mut bench = Bench::new(&with(0));
        let mut n = 0;
        while bench.now < Instant::ZERO + Span::from_secs(5) {
            for at in &busy {
                while bench.waiting(*at) < 3 {
                    bench.offer(*at, 528);
                }
            }
            bench.last[2] = 0; // several subscribers have this flow
            bench.step();
            n += 1;
            if n % 10 == 0 {
                bench.tree.change(&with(n / 10), Limit::Packets(1000), bench.now);
            }
        }
        let above = bench.excess(0, Rate::from_bps(3_000_000))[0];
        assert!(above <= 3.0 * 1514.0, "{busy:?}: {above}");
    }
}

#[test]
fn nobody_who_stays_loses_a_packet_or_a_turn_when_others_change() {
    let with = |weight: u32, last: usize| {
        let mut members = vec![member(0, None, 2, [2000, 0], true), member(1, None, weight, [0, 0], true)];
        members.push(Member { name: format!("x{last}"), ..member(2, None, 1, [0, 0], true) });
        config(members)
    };
    let mut bench = Bench::new(&with(1, 0));
    let end = Instant::ZERO + Span::from_secs(5);
    let mut n = 0;
    while bench.now < end {
        for at in 0..3 {
            while bench.waiting(at) < 3 {
                bench.offer(at, 1500);
            }
        }
        bench.step();
        n += 1;
        bench.tree.change(&with(1, n % 2), Limit::Packets(1000), bench.now);
        bench.last[2] = 0;
    }
    let got = bench.bytes(0, Instant::ZERO, bench.now) as f64 * 8.0 / 5.0;
    // 2 guaranteed, and of 8 that are left 2 parts of 5: two subscribers of weight 1, and one who is leaving.
    assert!((got - 5.2e6).abs() < 0.1e6, "{got}");
    assert_eq!(bench.tree.stats().dropped_overflow.packets, 0);
}
