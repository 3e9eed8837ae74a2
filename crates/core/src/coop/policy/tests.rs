use super::*;
use crate::allocation::{Ask, allocate};
use crate::coop::state::budget;
use proptest::prelude::*;

const ONE: Share = Share { class: 0, weight: 1, floor: Floor::NONE };
const MBIT: u64 = 1_000_000;

/// A policy and its clients; the policy itself stores no clients.
struct Room {
    budgets: Budgets,
    clients: Vec<(Share, Assessment)>,
}

impl Room {
    fn new(policy: Policy, bps: u64) -> Self {
        policy.validate().expect("a valid policy");
        Self { budgets: Budgets::new(policy, Rate::from_bps(bps)), clients: Vec::new() }
    }

    fn of(sharing: Sharing, bps: u64, clients: usize) -> Self {
        Self::new(Policy::of(sharing), bps).with(clients)
    }

    fn with(mut self, clients: usize) -> Self {
        (0..clients).for_each(|_| self.join(ONE));
        self
    }

    fn join(&mut self, share: Share) {
        let share = self.budgets.counted(share);
        let assessment = self.budgets.join(share, Assessment::GOOD);
        self.clients.push((share, assessment));
    }

    fn leave(&mut self, at: usize) {
        let (share, assessment) = self.clients.remove(at);
        self.budgets.leave(share, assessment);
    }

    fn used(&mut self, at: usize, bps: u64) {
        let (share, assessment) = self.clients[at];
        self.clients[at].1 = self.budgets.used(share, assessment, Claim::bps(bps));
    }

    /// The budget of each client, in bits per second.
    fn given(&mut self) -> Vec<u64> {
        let (levels, kept) = (self.budgets.levels(), self.budgets.kept());
        let of = |(share, assessment): &(Share, Assessment)| {
            budget(*share, assessment.claim, levels[usize::from(share.class)], kept)
        };
        self.clients.iter().map(of).collect()
    }

    fn sum(&mut self) -> u64 {
        self.given().iter().sum()
    }
}

/// The max-min fair rates of `claims` (weight, claim), computed by sorting.
fn max_min(capacity: u64, claims: &[(u64, u64)]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|i| claims[*i].1 / claims[*i].0);
    let (mut left, mut weight) = (capacity, claims.iter().map(|(w, _)| w).sum::<u64>());
    let mut given = vec![0; claims.len()];
    for i in order {
        let (w, claim) = claims[i];
        given[i] = claim.min(left / weight * w);
        left -= given[i];
        weight -= w;
    }
    given
}

#[test]
fn unweighted_fair_is_bw_over_n() {
    let mut room = Room::of(Sharing::UnweightedFair, 10 * MBIT, 4);
    assert_eq!(room.given(), [2_500_000; 4]);
    room.leave(0);
    assert_eq!(room.given(), [3_333_333; 3]);
    room.used(0, MBIT);
    assert_eq!(room.given(), [3_333_333; 3], "this policy does not listen to claims");
}

#[test]
fn weights_are_proportions() {
    let mut room = Room::of(Sharing::Weighted, 12 * MBIT, 0);
    for weight in [1, 2, 3] {
        room.join(Share { class: 2, weight, ..ONE });
    }
    assert_eq!(room.given(), [2 * MBIT, 4 * MBIT, 6 * MBIT]);
}

#[test]
fn lower_classes_get_the_reserve_and_what_is_left() {
    let mut room = Room::of(Sharing::Priority, 10 * MBIT, 2);
    room.join(Share { class: 3, weight: 1, ..ONE });
    assert_eq!(room.given(), [4_500_000, 4_500_000, 1_000_000], "a tenth is kept for those below");
    room.used(0, 1_048_576); // 2^20: a value that is not rounded
    room.used(1, 1_048_576);
    assert_eq!(room.given(), [1_048_576, 1_048_576, 7_902_848]);
    room.leave(2);
    room.used(0, u64::MAX);
    assert_eq!(room.given(), [8_951_424, 1_048_576]);
}

/// The testbed of 2.3.3: 10 clients on 20 Mbit/s; at 15 s half of them can use only 0.5 Mbit/s.
#[test]
fn dybra_gives_what_bad_clients_leave_to_good_ones() {
    let mut room = Room::of(Sharing::Dybra, 20 * MBIT, 10);
    assert_eq!(room.given(), [2 * MBIT; 10]);
    (0..5).for_each(|at| room.used(at, MBIT / 2));
    // S_eff = 20 - 5 * 0.5 = 17.5 for five: 3.5 Mbit/s each.
    assert_eq!(room.given(), [[MBIT / 2; 5], [7 * MBIT / 2; 5]].concat());
    (0..5).for_each(|at| room.used(at, 20 * MBIT));
    assert_eq!(room.given(), [2 * MBIT; 10]);
}

/// Figure 2.33: the claim of a bad client takes effect if it changes by 20 %, up or down, but not by 19 %.
#[test]
fn small_changes_of_bad_clients_do_not_count() {
    let mut room = Room::of(Sharing::Dybra, 10 * MBIT, 2);
    room.used(0, MBIT);
    room.used(0, 1_190_000);
    assert_eq!(room.given(), [MBIT, 9 * MBIT]);
    room.used(0, 1_200_000);
    assert_eq!(room.given(), [1_200_000, 8_800_000]);
    room.used(0, 960_000);
    assert_eq!(room.given(), [960_000, 9_040_000]);
}

/// Figure 2.32: four clients of 10 Mbit/s; one had 1, the others 3 each. When it returns, the figure adds
/// S_eff / (n - bad) = 9 / 4 = 2.25 to the 9 instead of the 1 it held: 11.25 Mbit/s are given out.
#[test]
fn the_literal_form_gives_out_more_than_there_is() {
    for (literal, sum) in [(true, 11_250_000), (false, 10 * MBIT)] {
        let policy = Policy { literal, ..Policy::of(Sharing::Dybra) };
        let mut room = Room::new(policy, 10 * MBIT).with(4);
        room.used(0, MBIT);
        assert_eq!(room.given(), [MBIT, 3 * MBIT, 3 * MBIT, 3 * MBIT]);
        room.used(0, 10 * MBIT);
        assert_eq!(room.sum(), sum);
    }
}

#[test]
fn all_clients_can_be_bad() {
    let mut room = Room::of(Sharing::Dybra, 10 * MBIT, 2);
    room.used(0, MBIT);
    room.used(1, 2 * MBIT);
    assert_eq!(room.given(), [MBIT, 2 * MBIT]);
    room.join(ONE);
    assert_eq!(room.given(), [MBIT, 2 * MBIT, 7 * MBIT]);
    room.used(0, 10 * MBIT);
    assert_eq!(room.given(), [4 * MBIT, 2 * MBIT, 4 * MBIT]);
}

#[test]
fn good_clients_keep_an_equal_share_when_the_bandwidth_falls() {
    let mut room = Room::of(Sharing::Dybra, 20 * MBIT, 4);
    room.used(0, 4 * MBIT);
    room.used(1, 4 * MBIT);
    room.budgets.set_bandwidth(Rate::from_bps(8 * MBIT));
    assert_eq!(room.given(), [2 * MBIT; 4], "claims of 8 Mbit/s would leave nothing for the others");
}

/// The chain of Theorem 1: bw = 1 among n; c_0 falls to nothing, and each client in turn gets a little more than it can
/// use and leaves that to the rest. BW is n! so that all its products are whole numbers.
#[test]
fn one_event_can_take_n_steps_to_settle() {
    for n in [4u64, 8, 12] {
        let bw: u64 = (1..=n).product::<u64>();
        // Eq. 2.3: c_i = sum over j = 1..i of prod over k = 0..j-1 of 1 / (n - k).
        let bound = |i: u64| (1..=i).map(|j| bw / (0..j).map(|k| n - k).product::<u64>()).sum::<u64>();
        let chain = |sharing, threshold_percent| {
            let policy = Policy { threshold_percent, ..Policy::of(sharing) };
            let mut room = Room::new(policy, bw).with(n as usize);
            // Clients also report what they can use when they lack nothing, as they do to renew their leases.
            (1..n).for_each(|i| room.used(i as usize, bound(i)));
            room.used(0, 0);
            let mut events = 0;
            loop {
                let given = room.given();
                let lacks = |i: &u64| bound(*i) * 100 < given[*i as usize] * (100 - u64::from(threshold_percent));
                let Some(i) = (1..n).find(lacks) else { return (events, given) };
                room.used(i as usize, bound(i));
                events += 1;
            }
        };
        // Event e_0 causes e_1 to e_(n-1): all clients are bad in the end.
        let (events, given) = chain(Sharing::Dybra, 0);
        assert_eq!(events, n - 1, "n = {n}");
        assert!((1..n).all(|i| given[i as usize] == bound(i)));
        // Max-min fairness knows what each client can use, so no further event is needed.
        assert_eq!(chain(Sharing::MaxMin, 0).0, 0, "n = {n}");
        // Client 1 lacks 1 / (n - 1) - 1 / n, which is 1 / n of what it has: less than 20 % of it if n > 5.
        if n > 5 {
            assert_eq!(chain(Sharing::Dybra, 20).0, 0, "n = {n}");
        }
    }
}

/// DyBRA beside water-filling with equal claims, each reported once. After the further reports that DyBRA asks for,
/// both reach one level.
#[test]
fn dybra_comes_to_where_water_filling_is_at_once() {
    let claims: Vec<u64> = (0..10).map(|i| MBIT << (i / 2)).map(|c| c / MBIT * (1 << 20)).collect();
    let bw = 40 * (1 << 20);
    let plain: Vec<(u64, u64)> = claims.iter().map(|c| (1, *c)).collect();
    let expected = max_min(bw, &plain);
    let mut at_once = Room::of(Sharing::MaxMin, bw, 10);
    claims.iter().enumerate().for_each(|(at, c)| at_once.used(at, *c));
    assert_eq!(at_once.given(), expected);
    let mut stepwise = Room::of(Sharing::Dybra, bw, 10);
    claims.iter().enumerate().for_each(|(at, c)| stepwise.used(at, *c));
    for _ in 0..10 {
        let given = stepwise.given();
        for (at, c) in claims.iter().enumerate() {
            let bad = stepwise.clients[at].1.status == Status::Bad;
            let level = stepwise.budgets.levels()[0];
            if (bad && *c >= level) || *c < given[at] {
                stepwise.used(at, *c);
            }
        }
    }
    assert_eq!(stepwise.given(), expected);
}

fn floor(bps: u64) -> Floor {
    Floor::own((bps > 0).then_some(Rate::from_bps(bps))).expect("three digits")
}

/// 10 Mbit/s for a client with a floor of 4, one with weight 3, and one with weight 1: the floor is served first where
/// its client would get less, and the rest is shared by weight.
#[test]
fn weights_divide_what_floors_leave() {
    for (sharing, given) in [
        (Sharing::UnweightedFair, [4 * MBIT, 3 * MBIT, 3 * MBIT]),
        (Sharing::Weighted, [4 * MBIT, 4_500_000, 1_500_000]),
        (Sharing::Dybra, [4 * MBIT, 4_500_000, 1_500_000]),
        (Sharing::MaxMin, [4 * MBIT, 4_500_000, 1_500_000]),
        (Sharing::Priority, [4 * MBIT, 4_500_000, 1_500_000]),
    ] {
        let mut room = Room::of(sharing, 10 * MBIT, 0);
        [(1, 4 * MBIT), (3, 0), (1, 0)]
            .into_iter()
            .for_each(|(weight, bps)| room.join(Share { weight, floor: floor(bps), ..ONE }));
        assert_eq!(room.given(), given, "{sharing:?}");
        room.leave(1);
        assert_eq!(room.given(), [5 * MBIT; 2], "{sharing:?}: the floor is below the level");
    }
}

/// 2 Mbit/s for floors of 1.5 in class 0 and of 1 and 3 in class 3: class 0 has its own, and a half is cut to an eighth.
#[test]
fn floors_beyond_the_bandwidth_are_cut_class_by_class() {
    for sharing in SHARINGS {
        let mut room = Room::of(sharing, 2 * MBIT, 0);
        [(0, 1_500_000), (3, MBIT), (3, 3 * MBIT), (0, 0)]
            .into_iter()
            .for_each(|(class, bps)| room.join(Share { class, floor: floor(bps), ..ONE }));
        assert_eq!(room.given(), [1_500_000, 125_000, 375_000, 0], "{sharing:?}");
        room.budgets.set_bandwidth(Rate::from_bps(MBIT / 2));
        assert_eq!(room.given()[1..], [0; 3], "{sharing:?}");
        room.budgets.set_bandwidth(Rate::from_bps(55 * MBIT / 10));
        assert_eq!(room.given(), [1_500_000, MBIT, 3 * MBIT, 0], "{sharing:?}: they just fit");
    }
}

#[test]
fn a_floor_that_is_not_claimed_goes_to_others() {
    for sharing in [Sharing::Dybra, Sharing::MaxMin, Sharing::Priority] {
        let mut room = Room::of(sharing, 10 * (1 << 20), 0);
        [9 * MBIT, 0].into_iter().for_each(|bps| room.join(Share { floor: floor(bps), ..ONE }));
        room.used(0, 1 << 20);
        assert_eq!(room.given(), [1 << 20, 9 * (1 << 20)], "{sharing:?}");
        room.used(0, u64::MAX);
        assert_eq!(room.given(), [9 * MBIT, 10 * (1 << 20) - 9 * MBIT], "{sharing:?}");
    }
}

/// Floors of a lower class come before what a higher class gets by weight, and a tenth of what they leave is the reserve.
#[test]
fn lower_classes_have_their_floors_and_the_reserve() {
    for (bps, given) in [(3 * MBIT, [6_300_000, 3 * MBIT, 700_000]), (MBIT / 2, [8_550_000, 725_000, 725_000])] {
        let mut room = Room::of(Sharing::Priority, 10 * MBIT, 1);
        [bps, 0].into_iter().for_each(|bps| room.join(Share { class: 1, floor: floor(bps), ..ONE }));
        assert_eq!(room.given(), given);
    }
}

#[test]
fn a_class_has_a_floor_for_those_without_their_own() {
    let floors = Floors::try_from(vec![Floor::NONE, floor(4 * MBIT)]).unwrap();
    let policy = Policy { floors, ..Policy::of(Sharing::MaxMin) };
    let mut room = Room::new(policy, 9 * MBIT);
    for (class, own) in [(1, Floor::NONE), (1, floor(0)), (1, floor(3 * MBIT)), (0, Floor::NONE)] {
        room.join(Share { class, floor: own, ..ONE });
    }
    assert_eq!(room.given(), [4 * MBIT, MBIT, 3 * MBIT, MBIT]);
    let shares = [(1, Floor::NONE), (1, floor(3 * MBIT))].map(|(class, floor)| Share { class, floor, ..ONE });
    assert!(policy.check_floors(Rate::from_bps(7 * MBIT), shares).is_ok());
    let refused = policy.check_floors(Rate::from_bps(6_999_999), shares).unwrap_err();
    assert!(refused.to_string().contains("7Mbit/s"), "{refused}");
    let literal = Policy { literal: true, floors, ..Policy::of(Sharing::Dybra) };
    assert_eq!(literal.validate().unwrap_err().key, "floors");
}

/// An event in a test.
#[derive(Debug, Clone)]
enum Event {
    Join(u8, u16, u64),
    Leave(usize),
    Used(usize, u64),
    Bandwidth(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let rate = (0u32..45).prop_flat_map(|bits| 0..1u64 << bits);
    let event = prop_oneof![
        3 => (0u8..4, 1u16..=1000, prop_oneof![Just(0), 1..40u64]).prop_map(|(class, weight, floor)| {
            Event::Join(class, weight, floor * MBIT / 10)
        }),
        1 => any::<usize>().prop_map(Event::Leave),
        4 => (any::<usize>(), prop_oneof![rate.clone(), Just(u64::MAX)]).prop_map(|(at, c)| Event::Used(at, c)),
        1 => rate.prop_map(Event::Bandwidth),
    ];
    prop::collection::vec(event, 1..200)
}

const SHARINGS: [Sharing; 5] =
    [Sharing::UnweightedFair, Sharing::Weighted, Sharing::Priority, Sharing::Dybra, Sharing::MaxMin];

fn sharings() -> impl Strategy<Value = Sharing> {
    prop::sample::select(SHARINGS.to_vec())
}

proptest! {
    #[test]
    fn budgets_never_exceed_the_bandwidth(sharing in sharings(), threshold_percent in 0u8..=99, events in events()) {
        let policy = Policy { threshold_percent, ..Policy::of(sharing) };
        let mut room = Room::new(policy, 10 * MBIT);
        for event in events {
            let n = room.clients.len();
            match event {
                Event::Join(class, weight, bps) => room.join(Share { class, weight, floor: floor(bps) }),
                Event::Leave(at) if n > 0 => room.leave(at % n),
                Event::Used(at, c) if n > 0 => room.used(at % n, c),
                Event::Bandwidth(bps) => room.budgets.set_bandwidth(Rate::from_bps(bps)),
                _ => {}
            }
            let bandwidth = room.budgets.bandwidth().as_bps();
            prop_assert!(room.sum() <= bandwidth);
            let floors: Vec<u64> =
                room.clients.iter().map(|(share, held)| super::floor(*share, held.claim)).collect();
            prop_assert_eq!(room.budgets.floors(), floors.iter().sum::<u64>());
            if room.budgets.floors() <= bandwidth {
                prop_assert!(room.given().iter().zip(floors).all(|(given, floor)| *given >= floor));
            }
        }
        while !room.clients.is_empty() {
            room.leave(0);
        }
        prop_assert_eq!(room.budgets.levels()[0], room.budgets.bandwidth().as_bps(), "nothing is lost");
        prop_assert_eq!((room.budgets.floors(), room.budgets.kept()), (0, Kept::ALL));
    }

    /// All clients use what they get: nothing is left but what rounding takes, and who has a larger floor or a higher
    /// bandwidth gets no less.
    #[test]
    fn all_is_given_and_more_is_never_less(
        sharing in sharings(), bw in 1u64..100,
        shares in prop::collection::vec((0u8..4, 1u16..=10, 0u64..90), 1..20)
    ) {
        let share = |(class, weight, tenths)| Share { class, weight, floor: floor(tenths * MBIT / 10) };
        let shares: Vec<Share> = shares.into_iter().map(share).collect();
        let given = |bw: u64, shares: &[Share]| {
            let mut room = Room::of(sharing, bw * MBIT, 0);
            shares.iter().for_each(|share| room.join(*share));
            room.given()
        };
        let before = given(bw, &shares);
        // A bit for each unit of weight, and 2^-24 of what is given of floors.
        prop_assert!(before.iter().sum::<u64>() + 10 * shares.len() as u64 + 20 >= bw * MBIT, "{before:?}");
        let richer = given(bw + 7, &shares);
        prop_assert!(before.iter().zip(&richer).all(|(a, b)| a <= b), "{before:?} {richer:?}");
        let mut more = shares.clone();
        more[0].floor = floor(more[0].floor.as_bps() + MBIT);
        prop_assert!(given(bw, &more)[0] + 8 >= before[0], "but for 2^-24 of it");
    }

    /// Sums give what the rule gives that looks at each client.
    #[test]
    fn sums_give_what_the_rule_gives(
        priority: bool, bw in 1u64..60,
        shares in prop::collection::vec((0u8..4, 1u16..=10, 0u64..90, prop_oneof![Just(64), 10u32..26]), 1..20)
    ) {
        let sharing = if priority { Sharing::Priority } else { Sharing::MaxMin };
        let mut room = Room::of(sharing, bw * MBIT, 0);
        let mut asks = Vec::new();
        for (at, (class, weight, tenths, bits)) in shares.into_iter().enumerate() {
            room.join(Share { class, weight, floor: floor(tenths * MBIT / 10) });
            // Powers of two per unit of weight, which are not rounded.
            let claim = 1u64.checked_shl(bits).map_or(u64::MAX, |each| each * u64::from(weight));
            room.used(at, claim);
            asks.push(Ask { class: class.into(), weight: weight.into(), floor: tenths * MBIT / 10, claim });
        }
        // Where classes do not count for levels, they do for floors that are cut.
        if !priority && room.budgets.kept() == Kept::ALL {
            asks.iter_mut().for_each(|ask| ask.class = 0);
        }
        prop_assert_eq!(room.given(), allocate::<CLASSES>(bw * MBIT, 10, &asks));
    }

    #[test]
    fn max_min_is_what_sorting_finds(claims in prop::collection::vec((1u64..=1000, 1u32..30), 1..50), bw in 1u64..1 << 40) {
        // Powers of two per unit of weight, which are not rounded.
        let claims: Vec<(u64, u64)> = claims.into_iter().map(|(w, bits)| (w, w << bits)).collect();
        let mut room = Room::new(Policy::of(Sharing::MaxMin), bw);
        for (at, (weight, claim)) in claims.iter().enumerate() {
            room.join(Share { class: 0, weight: *weight as u16, ..ONE });
            room.used(at, *claim);
        }
        let total: u64 = claims.iter().map(|(w, _)| w).sum();
        for (given, expected) in room.given().iter().zip(max_min(bw, &claims)) {
            prop_assert!(given.abs_diff(expected) <= total * 1000, "{given} and {expected}: but for whole bits");
        }
    }

    #[test]
    fn nobody_is_left_with_nothing(sharing in sharings(), shares in prop::collection::vec((0u8..4, 1u16..=10), 1..100)) {
        let mut room = Room::of(sharing, 10 * MBIT, 0);
        shares.iter().for_each(|(class, weight)| room.join(Share { class: *class, weight: *weight, ..ONE }));
        // The last class gets at least a tenth of a tenth of a tenth, shared by at most 100 clients of weight 10.
        prop_assert!(room.given().iter().all(|bps| *bps >= 10));
    }
}

/// Figure 2.33: a bad client that can use more takes it from S_eff, which gets back what it held. 10 Mbit/s for two: one
/// uses 1 and leaves 9, then 2 and leaves 8, to the letter as in the mended form.
#[test]
fn the_literal_form_follows_a_bad_client() {
    for literal in [true, false] {
        let mut room = Room::new(Policy { literal, ..Policy::of(Sharing::Dybra) }, 10 * MBIT).with(2);
        for claim in [MBIT, 2 * MBIT, MBIT] {
            room.used(0, claim);
            assert_eq!(room.given(), [claim, 10 * MBIT - claim]);
        }
    }
}

/// Only max-min and priority keep sums of claims beyond the value itself: a weight for each value of each class.
#[test]
fn what_a_policy_keeps_is_counted() {
    let memory = |sharing| Budgets::new(Policy::of(sharing), Rate::from_bps(MBIT)).memory();
    for sharing in [Sharing::MaxMin, Sharing::Priority] {
        assert!(memory(sharing) >= CLASSES * 900 * size_of::<u64>(), "{sharing:?}: {} B", memory(sharing));
    }
}
