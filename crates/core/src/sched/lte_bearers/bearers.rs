//! Bearers written as text, such as `1:100kbit/s,6,9`.

use crate::units::{Rate, UnitError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The known QoS class identifiers: number, whether a bit rate is guaranteed, and ten times the priority (the smallest
/// goes first). TS 23.203 Table 6.1.7: those of Release 8, and those of Release 12 for public safety.
const KNOWN: [(u8, bool, u8); 14] = [
    (1, true, 20),
    (2, true, 40),
    (3, true, 30),
    (4, true, 50),
    (5, false, 10),
    (6, false, 60),
    (7, false, 70),
    (8, false, 80),
    (9, false, 90),
    (65, true, 7),
    (66, true, 20),
    (67, true, 15),
    (69, false, 5),
    (70, false, 55),
];
/// The largest number of bearers that a text may list.
const MOST: usize = 256;

/// A QoS class identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qci {
    number: u8,
    guarantees: bool,
    priority: u8,
}

impl Qci {
    /// The class identifier of this number; `None` if it is unknown.
    pub fn new(number: u8) -> Option<Self> {
        let known = KNOWN.iter().find(|known| known.0 == number);
        known.map(|(number, guarantees, priority)| Self {
            number: *number,
            guarantees: *guarantees,
            priority: *priority,
        })
    }

    /// Ten times the priority of TS 23.203; the smallest value goes first.
    pub fn priority(&self) -> u8 {
        self.priority
    }

    /// The order among bearers that are not behind their rates: traffic beyond a guaranteed bit rate comes last.
    pub(super) fn after_guarantees(&self) -> (bool, u8) {
        (self.guarantees, self.priority)
    }
}

/// A list of bearers: a class identifier each, optionally with a rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written", into = "String")]
#[schemars(with = "String")]
pub struct Bearers(Vec<(Qci, Option<Rate>)>);

impl Bearers {
    /// Creates a list from class identifiers and rates in bits per second, which must be valid.
    pub(super) fn new(all: &[(u8, Option<u64>)]) -> Self {
        let bearer = |(qci, bps): &(u8, Option<u64>)| Some((Qci::new(*qci)?, bps.map(Rate::from_bps)));
        Self(all.iter().filter_map(bearer).collect())
    }

    /// The class identifier and the rate of each bearer, in the order of their classes.
    pub fn kinds(&self) -> &[(Qci, Option<Rate>)] {
        &self.0
    }
}

/// Why a text cannot be read as a list of bearers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BearersError {
    /// A class identifier is not in the table.
    #[error("{text:?} has no known QCI; there are {}", known())]
    UnknownQci {
        /// The text of the bearer.
        text: String,
    },
    /// A rate cannot be read.
    #[error(transparent)]
    Rate(#[from] UnitError),
    /// A rate is missing although the class guarantees a bit rate.
    #[error("QCI {qci} guarantees a bit rate: write it, such as \"{qci}:100kbit/s\"")]
    NoRate {
        /// The number of the class identifier.
        qci: u8,
    },
    /// The list has too many bearers.
    #[error("there are more than {MOST} bearers")]
    TooMany,
}

fn known() -> String {
    KNOWN.iter().map(|known| known.0.to_string()).collect::<Vec<_>>().join(", ")
}

fn bearer(text: &str) -> Result<(Qci, Option<Rate>), BearersError> {
    let text = text.trim();
    let (number, rate) = text.split_once(':').map_or((text, None), |(number, rate)| (number, Some(rate)));
    let Some(qci) = number.trim().parse().ok().and_then(Qci::new) else {
        return Err(BearersError::UnknownQci { text: text.to_owned() });
    };
    let rate = rate.map(|rate| rate.trim().parse::<Rate>()).transpose()?;
    if rate.is_none() && qci.guarantees {
        return Err(BearersError::NoRate { qci: qci.number });
    }
    Ok((qci, rate))
}

impl FromStr for Bearers {
    type Err = BearersError;

    fn from_str(text: &str) -> Result<Self, BearersError> {
        let all = Self(text.split(',').map(bearer).collect::<Result<_, BearersError>>()?);
        if all.0.len() > MOST { Err(BearersError::TooMany) } else { Ok(all) }
    }
}

/// A list of bearers as text, or a single class identifier as a number, which a command line passes.
#[derive(Deserialize)]
#[serde(untagged, expecting = "bearers are a text, such as \"1:100kbit/s,6,9\"")]
enum Written {
    Text(String),
    Number(u64),
}

impl TryFrom<Written> for Bearers {
    type Error = BearersError;

    fn try_from(written: Written) -> Result<Self, BearersError> {
        match written {
            Written::Text(text) => text.parse(),
            Written::Number(qci) => qci.to_string().parse(),
        }
    }
}

impl From<Bearers> for String {
    fn from(bearers: Bearers) -> Self {
        bearers.to_string()
    }
}

impl fmt::Display for Bearers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (qci, rate)) in self.0.iter().enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { "," }, qci.number)?;
            rate.map_or(Ok(()), |rate| write!(f, ":{rate}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearers_are_read_and_written() {
        let bearers: Bearers = "1:100kbit/s, 6 ,9:0.5Mbit/s".parse().unwrap();
        assert_eq!(bearers.to_string(), "1:100kbit/s,6,9:500kbit/s");
        assert_eq!(bearers.to_string().parse::<Bearers>().unwrap(), bearers);
        assert_eq!(bearers.kinds().iter().map(|(qci, _)| qci.priority()).collect::<Vec<_>>(), [20, 60, 90]);
    }

    #[test]
    fn a_single_one_may_be_a_number() {
        assert_eq!(serde_json::from_str::<Bearers>("70").unwrap().to_string(), "70");
        let error = |text| serde_json::from_str::<Bearers>(text).unwrap_err().to_string();
        assert!(error("1").contains("guarantees a bit rate"));
        assert!(error("[9]").contains("bearers are a text, such as"));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, says) in [
            ("", "no known QCI"),
            ("10", "there are 1, 2, 3"),
            ("nine", "no known QCI"),
            ("1", "write it, such as \"1:100kbit/s\""),
            ("9:fast", "a rate"),
            ("9:0bit/s", "above zero"),
        ] {
            let error = text.parse::<Bearers>().unwrap_err();
            assert!(error.to_string().contains(says), "{text}: {error}");
        }
        let many = vec!["9"; 257].join(",");
        assert!(many.parse::<Bearers>().unwrap_err().to_string().contains("more than 256"));
    }
}
