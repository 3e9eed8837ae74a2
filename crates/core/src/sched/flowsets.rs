//! Weights of classes in the notation of TEMPEST: `20::20,10::20,1::60`.
//!
//! Source: document 002 §4.3.2.6, `-flowsets [weight]::num_flows[, ...]`; the default of `weight` is 1.

use super::Weight;
use crate::config::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The largest number of classes that a text may describe.
const MOST: usize = 1 << 20;

/// Sets of classes, in order; the classes of one set have one weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct FlowSets(Vec<(Weight, u32)>);

impl Default for FlowSets {
    /// The default is one class of weight 1.
    fn default() -> Self {
        Self(vec![(Weight::ONE, 1)])
    }
}

impl FlowSets {
    /// The number of classes in all sets.
    pub fn classes(&self) -> usize {
        self.0.iter().map(|(_, count)| *count as usize).sum()
    }

    /// The weight of each class, in the order of the sets.
    pub fn weights(&self) -> Vec<Weight> {
        self.0.iter().flat_map(|(weight, count)| std::iter::repeat_n(*weight, *count as usize)).collect()
    }

    /// Weights for `classes` classes: the weights of the sets, repeated as often as needed.
    pub fn repeated(&self, classes: usize) -> Vec<Weight> {
        self.weights().into_iter().cycle().take(classes).collect()
    }
}

/// Why a text cannot be read as sets of classes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowSetsError {
    /// A part is not of the form `weight::number`.
    #[error("{0:?} is no set of flows; write weight::number, such as \"20::20,10::20,1::60\"")]
    NotASet(String),
    /// A set has no classes.
    #[error("{0:?} has no flows; the number must be at least 1")]
    NoFlows(String),
    /// A weight is out of range.
    #[error(transparent)]
    Weight(#[from] ConfigError),
    /// All sets together have too many classes.
    #[error("{0:?} has more than {MOST} flows")]
    TooMany(String),
}

impl FromStr for FlowSets {
    type Err = FlowSetsError;

    fn from_str(text: &str) -> Result<Self, FlowSetsError> {
        let set = |part: &str| {
            let mistake = || FlowSetsError::NotASet(part.to_owned());
            let (weight, count) = part.trim().split_once("::").ok_or_else(mistake)?;
            let weight = if weight.is_empty() { 1 } else { weight.parse().map_err(|_| mistake())? };
            let count: u32 = count.parse().map_err(|_| mistake())?;
            if count == 0 {
                return Err(FlowSetsError::NoFlows(part.to_owned()));
            }
            Ok((Weight::new(weight)?, count))
        };
        let sets = Self(text.split(',').map(set).collect::<Result<_, FlowSetsError>>()?);
        if sets.classes() > MOST {
            return Err(FlowSetsError::TooMany(text.to_owned()));
        }
        Ok(sets)
    }
}

impl TryFrom<String> for FlowSets {
    type Error = FlowSetsError;

    fn try_from(text: String) -> Result<Self, FlowSetsError> {
        text.parse()
    }
}

impl From<FlowSets> for String {
    fn from(sets: FlowSets) -> Self {
        sets.to_string()
    }
}

impl fmt::Display for FlowSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sets: Vec<String> = self.0.iter().map(|(weight, count)| format!("{weight}::{count}")).collect();
        f.write_str(&sets.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_and_written() {
        let sets: FlowSets = "20::2,10::1, ::3".parse().unwrap();
        assert_eq!(sets.weights().into_iter().map(Weight::get).collect::<Vec<_>>(), [20, 20, 10, 1, 1, 1]);
        assert_eq!((sets.classes(), sets.to_string().as_str()), (6, "20::2,10::1,1::3"));
        assert_eq!(sets.repeated(8)[6..].iter().map(|w| w.get()).collect::<Vec<_>>(), [20, 20]);
        assert_eq!(serde_json::from_str::<FlowSets>("\"5::1\"").unwrap().to_string(), "5::1");
    }

    #[test]
    fn mistakes_are_told() {
        for (text, says) in [
            ("20", "write weight::number"),
            ("x::3", "write weight::number"),
            ("1::-3", "write weight::number"),
            ("1::0", "at least 1"),
            ("0::3", "1 to 1048576"),
            ("1::4294967295,1::4294967295", "more than"),
        ] {
            let error = text.parse::<FlowSets>().unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
