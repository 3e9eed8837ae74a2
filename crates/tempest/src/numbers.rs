//! Numbers in the notation of the command line: `10M`, `32k`, `30n`, and sets of flows such as `20::20,10::20,1::60`.

use penstock_core::sched::Weight;
use std::str::FromStr;

/// Why a text cannot be the value of its flag; the message ends with the allowed values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?}: {1}")]
pub struct NumberError(pub(crate) String, pub(crate) String);

const COUNT: &str = "must be a whole number, with k for thousands or M for millions: 300, 32k, 10M";
const DEPTH: &str = "must be a whole number of packets, or one followed by n for packets per flow: 300, 30n";
const SET: &str = "must be weight::flows, several of them with commas between: 20::20,10::20,1::60";

/// An integer with an optional suffix; `k` is a thousand and `M` a million.
pub(crate) fn count(text: &str) -> Result<u64, NumberError> {
    let said = text.trim();
    let (digits, unit) = match said.as_bytes().last() {
        Some(b'k' | b'K') => (&said[..said.len() - 1], 1_000),
        Some(b'M' | b'm') => (&said[..said.len() - 1], 1_000_000),
        _ => (said, 1),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = plain.then(|| digits.parse::<u64>().ok()?.checked_mul(unit)).flatten();
    number.ok_or_else(|| NumberError(text.to_owned(), COUNT.to_owned()))
}

/// A backlog: a number of packets in total, or a number of packets for each flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Depth {
    number: u64,
    per_flow: bool,
}

impl Depth {
    /// The number of packets in total, for this number of flows.
    pub(crate) fn packets(self, flows: usize) -> u64 {
        if self.per_flow { self.number.saturating_mul(flows as u64) } else { self.number }
    }
}

impl FromStr for Depth {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Self, NumberError> {
        let said = text.trim();
        let (number, per_flow) = said.strip_suffix('n').map_or((said, false), |number| (number, true));
        let number = count(number).map_err(|_| NumberError(text.to_owned(), DEPTH.to_owned()))?;
        Ok(Self { number, per_flow })
    }
}

/// The weight of each flow, in the order of the sets.
pub(crate) fn weights(text: &str, most_flows: usize) -> Result<Vec<Weight>, NumberError> {
    let mut all = Vec::new();
    for set in text.split(',') {
        let (weight, flows) = one_set(set).ok_or_else(|| NumberError(text.to_owned(), SET.to_owned()))?;
        let wrong = |what: &str| NumberError(text.to_owned(), format!("in {:?}: {what}", set.trim()));
        let weight = u32::try_from(weight).ok().and_then(|weight| Weight::new(weight).ok());
        let weight = weight.ok_or_else(|| wrong(&format!("a weight is from 1 to {}", Weight::MAX)))?;
        if flows == 0 || flows > (most_flows - all.len()) as u64 {
            return Err(wrong(&format!("a set has at least 1 flow, and all sets together at most {most_flows}")));
        }
        all.resize(all.len() + flows as usize, weight);
    }
    Ok(all)
}

/// Splits `weight::flows`, `weight:flows`, `::flows` or `flows`; the default weight is 1.
fn one_set(set: &str) -> Option<(u64, u64)> {
    let (weight, flows) = match set.split_once("::").or_else(|| set.split_once(':')) {
        Some((weight, flows)) => (weight.trim(), flows),
        None => ("", set),
    };
    let weight = if weight.is_empty() { 1 } else { count(weight).ok()? };
    Some((weight, count(flows).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_thousands_and_millions() {
        assert_eq!(count("300"), Ok(300));
        assert_eq!(count("32k"), Ok(32_000));
        assert_eq!(count("10M"), Ok(10_000_000));
        for wrong in ["", "k", "-1", "1.5k", "10G", "99999999999999999999", "99999999999999999M"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_depth_may_be_per_flow() {
        let depth = |text: &str| text.parse::<Depth>().map(|depth| depth.packets(20));
        assert_eq!(depth("300"), Ok(300));
        assert_eq!(depth("30n"), Ok(600));
        assert!(depth("n").is_err() && depth("3nn").is_err());
    }

    #[test]
    fn sets_are_weight_and_flows() {
        let numbers = |text| weights(text, 100).unwrap().into_iter().map(Weight::get).collect::<Vec<_>>();
        assert_eq!(numbers("20::2,10::1,1::3"), [20, 20, 10, 1, 1, 1]);
        assert_eq!(numbers("::2,3:1"), [1, 1, 3]);
        assert_eq!(numbers("4"), [1; 4]);
        assert_eq!(weights("1::1k", 1000).unwrap().len(), 1000);
    }

    #[test]
    fn a_wrong_set_is_named() {
        for (text, part) in [("0::5", "from 1 to"), ("1::0", "at least 1 flow"), ("5::200", "at most 100")] {
            let said = weights(text, 100).unwrap_err().to_string();
            assert!(said.contains(part) && said.contains(text), "{said}");
        }
        for text in ["", "1::", "a::3", "1::2::3", "1::2,"] {
            assert!(weights(text, 100).unwrap_err().to_string().contains("weight::flows"), "{text}");
        }
    }
}
