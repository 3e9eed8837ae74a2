//! The weights of stations in the MAC-SAL, by the quality of their channels.
//!
//! Source: document 002 §4.2.4.2 and §4.3.2.6 (`-wdistr`). Stations are sorted by loss, the largest first.
//!
//! | policy | weight of the station in place i of n, with loss p |
//! |---|---|
//! | constant | 1 |
//! | linear | i |
//! | exponential | 2^i |
//! | analogical | (1 - p) * 1000 |
//!
//! DIFFERENCE: places count from 1, because a weight of 0 would mean no service; for the same reason an analogical
//! weight is at least 1. Pinned by `weights_are_those_of_the_table`.
//! DIFFERENCE: with more than 20 stations only the best 20 get powers of two and the others get 1, because a weight is
//! at most 2^20. Pinned by `only_the_best_twenty_have_powers_of_two`.

use crate::sched::Weight;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The analogical weight of a station without loss.
const WHOLE: f64 = 1000.0;
/// The exponent of the largest exponential weight.
const MOST: usize = 20;

/// How the weights of stations follow from their losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weighting {
    /// All weights are equal: losses have no effect.
    Constant,
    /// The weight is the place in the list.
    Linear,
    /// The weight doubles from place to place.
    Exponential,
    /// The weight is proportional to the probability of success.
    #[default]
    Analogical,
}

impl Weighting {
    /// All policies, in the order of `-wdistr`.
    pub const ALL: [Self; 4] = [Self::Constant, Self::Linear, Self::Exponential, Self::Analogical];

    /// The name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Linear => "linear",
            Self::Exponential => "exponential",
            Self::Analogical => "analogical",
        }
    }

    /// The policy of this name; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// The weight of each station. Stations of equal loss keep their order in the list.
    pub fn weights(self, losses: &[f64]) -> Vec<Weight> {
        let mut weights = vec![Weight::ONE; losses.len()];
        let mut list: Vec<usize> = (0..losses.len()).collect();
        list.sort_by(|a, b| losses[*b].total_cmp(&losses[*a]));
        for (before, station) in list.into_iter().enumerate() {
            let place = before + 1;
            let weight = match self {
                Self::Constant => 1,
                Self::Linear => place as u64,
                Self::Exponential => 1 << (place + MOST.min(losses.len())).saturating_sub(losses.len()),
                Self::Analogical => ((1.0 - losses[station]) * WHOLE).round().max(1.0) as u64,
            };
            weights[station] = clamped(weight);
        }
        weights
    }

    /// The largest weight that any of `stations` stations can get.
    pub fn largest(self, stations: usize) -> Weight {
        clamped(match self {
            Self::Constant => 1,
            Self::Linear => stations as u64,
            Self::Exponential => 1 << stations.min(MOST),
            Self::Analogical => WHOLE as u64,
        })
    }
}

fn clamped(weight: u64) -> Weight {
    Weight::new(weight.clamp(1, Weight::MAX.get().into()) as u32).unwrap_or(Weight::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(policy: Weighting, losses: &[f64]) -> Vec<u32> {
        policy.weights(losses).into_iter().map(Weight::get).collect()
    }

    #[test]
    fn weights_are_those_of_the_table() {
        let losses = [0.2, 1.0, 0.0001, 0.5];
        assert_eq!(weights(Weighting::Constant, &losses), [1, 1, 1, 1]);
        assert_eq!(weights(Weighting::Linear, &losses), [3, 1, 4, 2]);
        assert_eq!(weights(Weighting::Exponential, &losses), [8, 2, 16, 4]);
        assert_eq!(weights(Weighting::Analogical, &losses), [800, 1, 1000, 500]);
    }

    #[test]
    fn only_the_best_twenty_have_powers_of_two() {
        let losses: Vec<f64> = (0..23).map(|i| 1.0 - f64::from(i) / 23.0).collect();
        let weights = weights(Weighting::Exponential, &losses);
        assert_eq!(weights[..5], [1, 1, 1, 2, 4]);
        assert_eq!(weights[22], 1 << 20);
    }

    #[test]
    fn no_weight_is_above_the_largest() {
        for policy in Weighting::ALL {
            for stations in [1, 4, 20, 30] {
                let losses: Vec<f64> = (0..stations).map(|i| f64::from(i) / f64::from(stations)).collect();
                let largest = policy.largest(losses.len());
                assert!(policy.weights(&losses).into_iter().all(|weight| weight <= largest), "{policy:?} {stations}");
            }
        }
    }

    #[test]
    fn policies_have_names() {
        for policy in Weighting::ALL {
            assert_eq!(Weighting::by_name(policy.name()), Some(policy));
            assert_eq!(serde_json::to_value(policy).unwrap(), policy.name());
        }
        assert_eq!(Weighting::by_name("geometric"), None);
    }
}
