//! Weights of classes in the notation of TEMPEST: `20::20,10::20,1::60`.
//!
//! Source: document 002 §4.3.2.6, `-flowsets [weight]::num_flows[, ...]`; a weight that is left out is 1.

use super::Weight;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// So many classes can be written.
const MOST: usize = 1 << 20;

/// Sets of classes with one weight each, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct FlowSets(Vec<(Weight, u32)>);

impl Default for FlowSets {
    /// One class of weight 1.
    fn default() -> Self {
        Self(vec![(Weight::ONE, 1)])
    }
}

impl FlowSets {
    /// How many classes they are.
    pub fn classes(&self) -> usize {
        self.0.iter().map(|(_, count)| *count as usize).sum()
    }

    /// The weight of each class.
    pub fn weights(&self) -> Vec<Weight> {
        self.0.iter().flat_map(|(weight, count)| std::iter::repeat_n(*weight, *count as usize)).collect()
    }

    /// The weights of so many classes: those of the sets, again and again.
    pub fn repeated(&self, classes: usize) -> Vec<Weight> {
        self.weights().into_iter().cycle().take(classes).collect()
    }
}

/// What cannot be read, and how it is written.
fn mistake(text: &str) -> String {
    format!("{text:?} is no set of flows; write weight::number, such as \"20::20,10::20,1::60\"")
}

impl FromStr for FlowSets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let set = |part: &str| {
            let (weight, count) = part.trim().split_once("::").ok_or_else(|| mistake(part))?;
            let weight = if weight.is_empty() { 1 } else { weight.parse().map_err(|_| mistake(part))? };
            let count: u32 = count.parse().map_err(|_| mistake(part))?;
            if count == 0 {
                return Err(format!("{part:?} has no flows; the number must be at least 1"));
            }
            Ok((Weight::new(weight).map_err(|error| error.to_string())?, count))
        };
        let sets = Self(text.split(',').map(set).collect::<Result<_, String>>()?);
        if sets.classes() > MOST {
            return Err(format!("{text:?} has more than {MOST} flows"));
        }
        Ok(sets)
    }
}

impl TryFrom<String> for FlowSets {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
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
            assert!(error.contains(says), "{error}");
        }
    }
}
