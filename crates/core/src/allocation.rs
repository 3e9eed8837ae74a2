//! Who gets what of a rate: shares with claims, weights, floors and classes.
//!
//! A member asks for a *claim*, the most that it can use, and has a *weight* within its class and a *floor*. It gets
//!
//! ```text
//! grant_i = max(floor_i, min(claim_i, w_i * level of its class))                             without floors: max-min
//! ```
//!
//! The level of a class is the largest for which all grants fit into what reaches the class (max-min fairness: nobody
//! can get more without taking from one who has less per unit of weight). Class 0 goes first; what it cannot use goes to
//! class 1, and so on. Of what reaches a class with members, the floors of the classes below it are kept for these, and a
//! part of what all floors leave. If the floors exceed the capacity, there is nothing but floors: those of class 0 come
//! first, and those of the class for which not enough is left are cut in proportion ([`Kept`]).
//!
//! [`allocate`] is the rule as a pure function, and `tests/allocation.json` has test vectors for it to which any other
//! implementation can be held. `pour`, `by_class` and `rest` are its steps. Those who allocate for each packet or
//! message call the steps with sums that they keep:
//!
//! | who | step | sums |
//! |---|---|---|
//! | PINK (eq. 2) | `rest` | number of members, those who cannot use their share, and what these claim |
//! | QRM without told budgets, shares without claims | `rest` | number of members |
//! | DyBRA | `pour` | the sums of `rest`, and weights and floors at each level from which weights count |
//! | max-min, weighted, unweighted | `pour` | weights at each value of a claim, and floors as above |
//! | priority | `by_class` | the same for each class |
//!
//! All numbers are integers in any unit of rate; levels and grants are rounded down.

/// What one member asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Class; 0 goes first.
    pub class: usize,
    /// Weight within the class, at least 1.
    pub weight: u64,
    /// What the member gets in any case, if the capacity suffices and it claims so much.
    pub floor: u64,
    /// The most that the member can use; `u64::MAX` if it can use whatever it gets.
    pub claim: u64,
}

impl Ask {
    /// Returns what the member gets at this level of its class, apart from its floor.
    fn at(&self, level: u64) -> u64 {
        self.claim.min(level.saturating_mul(self.weight))
    }
}

/// a * b / c, at most `u64::MAX`. The product usually fits 64 bits, in which case the division is several times faster.
pub(crate) fn ratio(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => (u128::from(a) * u128::from(b) / u128::from(c)).min(u64::MAX.into()) as u64,
    }
}

/// Returns the capacity for the members that can use their share and the number of these members, if `lacking` of the
/// `n` members can use `claims` in total. Their quotient is the level. The lacking members hold at most an equal share
/// each on average; otherwise claims from before a fall of the capacity would starve the others.
pub(crate) fn rest(capacity: u64, n: u64, lacking: u64, claims: u64) -> (u64, u64) {
    if lacking == 0 {
        return (capacity, n);
    }
    let equal = ratio(capacity, lacking, n.max(1));
    (capacity - claims.min(equal), n - lacking)
}

/// Members with a floor that count by their weight from the same level on: from there the level gives them more than
/// their floors, which is the level `floor / weight`, rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Floored {
    /// The level from which they count by their weight.
    pub from: u64,
    /// The sum of their floors.
    pub floor: u64,
    /// The sum of their weights.
    pub weight: u64,
}

impl Floored {
    /// Returns the level from which a member with this floor, which is at most its claim, counts by its weight.
    pub(crate) fn from(floor: u64, weight: u64) -> u64 {
        floor.div_ceil(weight.max(1))
    }
}

/// Returns the level per unit of weight at which members use up `capacity`, and the part of the capacity that is used.
/// `groups` are (claim, weight) of members or of groups of like members, in ascending order of claim per weight, and
/// `total` is the sum of their weights. `floors` are those of them that have one, in ascending order of `from`; their
/// sum is at most `capacity`. If all claims are met, the level is the one that the members with the largest claim per
/// weight could have.
pub(crate) fn pour(
    capacity: u64,
    total: u64,
    floors: impl Iterator<Item = Floored> + Clone,
    groups: impl IntoIterator<Item = (u64, u64)>,
) -> (u64, u64) {
    // Below its level `from` a member holds its floor and counts as met.
    let (mut met, mut above) = floors.clone().fold((0, total), |(met, above), f| (met + f.floor, above - f.weight));
    let mut floors = floors.peekable();
    for (claim, weight) in groups {
        let top = if claim == u64::MAX { u64::MAX } else { claim.div_ceil(weight) };
        while let Some(next) = floors.next_if(|next| next.from <= top) {
            let (held, sharing) = (met - next.floor, above + next.weight);
            if capacity - held < sharing.saturating_mul(next.from) {
                return ((next.from - 1).min((capacity - met).checked_div(above).unwrap_or(u64::MAX)), capacity);
            }
            (met, above) = (held, sharing);
        }
        let level = (capacity - met) / above;
        if claim >= level.saturating_mul(weight) {
            return (level, capacity);
        }
        met += claim; // below level * weight, so within the capacity
        if weight == above && floors.peek().is_none() {
            return (level, met);
        }
        above -= weight;
    }
    (capacity, 0)
}

/// Returns the level of each class. `total` tells the sum of the weights of a class, `floors` is the sum of its floors,
/// and `pour` is `pour` for it. The floors of the classes below a class stay for these, and `reserve_percent` of what
/// floors leave if they have members. All floors together are at most `capacity`.
pub(crate) fn by_class<const N: usize>(
    capacity: u64,
    reserve_percent: u8,
    floors: [u64; N],
    total: impl Fn(usize) -> u64,
    pour: impl Fn(usize, u64) -> (u64, u64),
) -> [u64; N] {
    let mut left = capacity;
    let mut below: u64 = floors.iter().sum();
    std::array::from_fn(|class| {
        below -= floors[class];
        let lower = (class + 1..N).any(|lower| total(lower) > 0);
        let rest = left - below - floors[class];
        let reserve = if lower { (u128::from(rest) * u128::from(reserve_percent) / 100) as u64 } else { 0 };
        let (level, used) = pour(class, left - below - reserve);
        left -= used;
        level
    })
}

/// How much of the floors is given where they exceed the capacity: all in the first classes, a part in the next one, and
/// nothing in the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kept(u32);

impl Kept {
    /// A whole class.
    const ONE: u32 = 1 << 24;
    /// All floors are given.
    pub const ALL: Self = Self(u32::MAX);

    /// Returns what is given of floors with these sums, in the order of classes.
    pub fn of(capacity: u64, sums: impl IntoIterator<Item = u64>) -> Self {
        let (mut left, mut kept) = (capacity, 0u32);
        for sum in sums {
            if sum > left {
                return Self(kept + ratio(left, Self::ONE.into(), sum) as u32); // less than one
            }
            left -= sum;
            kept += Self::ONE;
        }
        Self::ALL
    }

    /// Returns what is given of a floor in this class, rounded down.
    pub fn part(self, class: usize, floor: u64) -> u64 {
        let part = u64::from(self.0).saturating_sub(class as u64 * u64::from(Self::ONE));
        if part >= Self::ONE.into() { floor } else { ratio(floor, part, Self::ONE.into()) }
    }

    /// The number that stands for this in a message: classes times 2^24.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Returns what a number in a message stands for.
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// Returns what each of `asks` gets of `capacity`. Of what floors leave of what reaches a class, `reserve_percent`
/// stay for the classes below it, if these have members. Members of class `N` or more, and those without a weight, get
/// their floor alone; they come after the others.
pub fn allocate<const N: usize>(capacity: u64, reserve_percent: u8, asks: &[Ask]) -> Vec<u64> {
    let class_of = |ask: &Ask| if ask.weight == 0 { N } else { ask.class.min(N) };
    let mut classes: [Vec<Ask>; N] = std::array::from_fn(|_| Vec::new());
    let (mut floors, mut outside) = ([0u64; N], 0u64);
    for ask in asks.iter().map(|ask| Ask { floor: ask.floor.min(ask.claim), ..*ask }) {
        let sum = floors.get_mut(class_of(&ask)).unwrap_or(&mut outside);
        *sum = sum.saturating_add(ask.floor);
        classes.get_mut(class_of(&ask)).into_iter().for_each(|class| class.push(ask));
    }
    let kept = Kept::of(capacity, floors.into_iter().chain([outside]));
    if kept != Kept::ALL {
        return asks.iter().map(|ask| kept.part(class_of(ask), ask.floor.min(ask.claim))).collect();
    }
    let total = |class: usize| classes[class].iter().map(|ask| ask.weight).sum();
    let levels = by_class(capacity - outside, reserve_percent, floors, total, |class, reach| {
        pour_all(reach, total(class), &classes[class])
    });
    let grant = |ask: &Ask| {
        let level = levels.get(class_of(ask)).copied().unwrap_or(0);
        ask.at(level).max(ask.floor.min(ask.claim))
    };
    asks.iter().map(grant).collect()
}

/// [`pour`] for the members of one class.
fn pour_all(capacity: u64, total: u64, members: &[Ask]) -> (u64, u64) {
    let wide = u128::from;
    let mut groups: Vec<(u64, u64)> = members.iter().map(|ask| (ask.claim, ask.weight)).collect();
    groups.sort_by(|a, b| (wide(a.0) * wide(b.1)).cmp(&(wide(b.0) * wide(a.1))));
    let floored =
        |ask: &Ask| Floored { from: Floored::from(ask.floor, ask.weight), floor: ask.floor, weight: ask.weight };
    let mut floors: Vec<Floored> = members.iter().filter(|ask| ask.floor > 0).map(floored).collect();
    floors.sort_by_key(|floored| floored.from);
    pour(capacity, total, floors.into_iter(), groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    const CLASSES: usize = 3;
    const VECTORS: &str = include_str!("../tests/allocation.json");

    fn number(value: &Value) -> u64 {
        value.as_u64().unwrap_or(u64::MAX) // null: whatever it gets
    }

    /// The vectors are made by `tests/test_allocation.py` from the definition alone: levels are found by trial.
    #[test]
    fn the_vectors_hold() {
        let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
        assert!(vectors.len() >= 100);
        for vector in vectors {
            let asks: Vec<Ask> = vector["asks"]
                .as_array()
                .unwrap()
                .iter()
                .map(|ask| Ask {
                    class: number(&ask["class"]) as usize,
                    weight: number(&ask["weight"]),
                    floor: number(&ask["floor"]),
                    claim: number(&ask["claim"]),
                })
                .collect();
            let expected: Vec<u64> = vector["grants"].as_array().unwrap().iter().map(number).collect();
            let capacity = number(&vector["capacity"]);
            let reserve = u8::try_from(number(&vector["reserve_percent"])).unwrap();
            assert_eq!(allocate::<CLASSES>(capacity, reserve, &asks), expected, "{vector}");
        }
    }

    #[test]
    fn nothing_overflows_and_nothing_is_divided_by_zero() {
        assert_eq!(allocate::<CLASSES>(u64::MAX, 10, &[]), Vec::<u64>::new());
        let ask = Ask { class: 0, weight: u64::MAX, floor: 0, claim: u64::MAX };
        assert_eq!(allocate::<CLASSES>(u64::MAX, 10, &[ask]), [u64::MAX]);
        assert_eq!(
            allocate::<CLASSES>(100, 10, &[Ask { class: 9, floor: 5, ..ask }, Ask { weight: 0, ..ask }]),
            [5, 0]
        );
    }

    prop_compose! {
        fn an_ask()(class in 0..CLASSES, weight in 1..9u64, floor in 0..200u64, claim in 0..2000u64, all: bool) -> Ask {
            Ask { class, weight, floor: if floor < 100 { 0 } else { floor }, claim: if all { u64::MAX } else { claim } }
        }
    }

    proptest! {
        #[test]
        fn what_is_given_is_there_and_floors_are_kept(
            capacity in 0..10_000u64, asks in prop::collection::vec(an_ask(), 0..12)
        ) {
            let grants = allocate::<CLASSES>(capacity, 10, &asks);
            prop_assert!(grants.iter().sum::<u64>() <= capacity);
            let promised: u64 = asks.iter().map(|ask| ask.floor.min(ask.claim)).sum();
            for (ask, grant) in asks.iter().zip(&grants) {
                prop_assert!(*grant <= ask.claim);
                prop_assert!(promised > capacity || *grant >= ask.floor.min(ask.claim));
            }
        }

        /// The sums that PINK and DyBRA keep give the level of the rule, if those who lack claim less than an equal share.
        #[test]
        fn the_rest_of_those_who_lack_is_the_level(capacity in 1..100_000u64, claims in prop::collection::vec(0..2000u64, 0..8), good in 1..8u64) {
            let n = claims.len() as u64 + good;
            let small: Vec<u64> = claims.into_iter().map(|claim| claim.min((capacity / n).saturating_sub(1))).collect();
            let (rate, sharing) = rest(capacity, n, small.len() as u64, small.iter().sum());
            let all = [u64::MAX].repeat(good as usize);
            let asks: Vec<Ask> =
                small.iter().chain(&all).map(|claim| Ask { class: 0, weight: 1, floor: 0, claim: *claim }).collect();
            prop_assert_eq!(allocate::<CLASSES>(capacity, 0, &asks)[small.len()], rate / sharing);
        }
    }
}
