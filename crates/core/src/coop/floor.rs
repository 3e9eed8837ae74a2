//! The floor of a client: the rate that it has before weights divide the rest.
//!
//! A floor has two bytes in a state, so it is a number up to 4095 times a power of ten: three digits are always exact.
//!
//! | bit | meaning |
//! |---|---|
//! | 15 | set if the floor is the client's own, and not that of its class |
//! | 12 to 14 | e |
//! | 0 to 11 | m: the floor is m * 10^e * 100 bit/s |

use crate::units::Rate;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Number of priority classes.
pub const CLASSES: usize = 4;

const OWN: u16 = 1 << 15;
const DIGITS: u16 = (1 << 12) - 1;
/// The smallest floor and step, in bits per second.
const STEP: u64 = 100;
const NOTHING: &str = "none";
const ALLOWED: &str =
    "a floor is \"none\", or a rate of at most three digits from 100bit/s to 4Tbit/s, such as \"1.25Mbit/s\"";

/// The rate that a client has before weights divide the rest: its own, or that of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Floor(u16);

impl Floor {
    /// The client has the floor of its class, which is nothing unless the policy says otherwise.
    pub const NONE: Self = Self(0);

    /// Makes the own floor of a client; `None` stands for nothing, whatever its class has.
    ///
    /// # Errors
    /// Fails if the rate has too many digits.
    pub fn own(rate: Option<Rate>) -> Result<Self, FloorError> {
        let Some(rate) = rate else { return Ok(Self(OWN)) };
        let (mut units, mut exponent) = (rate.as_bps() / STEP, 0);
        if rate.as_bps() % STEP != 0 {
            return Err(FloorError);
        }
        while units > DIGITS.into() && units % 10 == 0 {
            (units, exponent) = (units / 10, exponent + 1);
        }
        let fits = units <= DIGITS.into() && exponent < 8;
        if fits { Ok(Self(OWN | exponent << 12 | units as u16)) } else { Err(FloorError) }
    }

    /// The floor in bits per second; zero if there is none.
    pub fn as_bps(self) -> u64 {
        u64::from(self.0 & DIGITS) * STEP * 10u64.pow(u32::from(self.0 >> 12 & 7))
    }

    /// True if the client has the floor of its class and none of its own.
    pub fn is_of_class(&self) -> bool {
        self.0 & OWN == 0
    }

    /// Returns the floor that counts for a client whose class has the floor `class`.
    #[must_use]
    pub fn within(self, class: Self) -> Self {
        if self.is_of_class() { Self(class.0 & !OWN) } else { self }
    }

    /// The number that stands for this in a state.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Returns what a number in a state stands for.
    pub fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

/// A text or a rate that is no floor; the message says what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{ALLOWED}")]
pub struct FloorError;

impl FromStr for Floor {
    type Err = FloorError;

    fn from_str(text: &str) -> Result<Self, FloorError> {
        if text == NOTHING {
            return Self::own(None);
        }
        Self::own(Some(text.parse().map_err(|_| FloorError)?))
    }
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_bps() {
            0 => f.write_str(NOTHING),
            bps => Rate::from_bps(bps).fmt(f),
        }
    }
}

impl Serialize for Floor {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Floor {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Floor {
    fn schema_name() -> Cow<'static, str> {
        "Floor".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": ALLOWED })
    }
}

/// The floors of the classes, class 0 first; classes that are not named have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, schemars::JsonSchema)]
#[serde(try_from = "Vec<Floor>", into = "Vec<Floor>")]
#[schemars(with = "Vec<Floor>")]
pub struct Floors([Floor; CLASSES]);

impl Floors {
    /// The floor of a class.
    pub fn of(&self, class: u8) -> Floor {
        self.0.get(usize::from(class)).copied().unwrap_or_default()
    }

    /// True if no class has a floor.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|floor| floor.as_bps() == 0)
    }
}

impl TryFrom<Vec<Floor>> for Floors {
    type Error = String;

    fn try_from(floors: Vec<Floor>) -> Result<Self, String> {
        if floors.len() > CLASSES {
            return Err(format!("there are {CLASSES} classes, so at most {CLASSES} floors"));
        }
        Ok(Self(std::array::from_fn(|class| floors.get(class).copied().unwrap_or_default())))
    }
}

impl From<Floors> for Vec<Floor> {
    fn from(floors: Floors) -> Self {
        let last = floors.0.iter().rposition(|floor| floor.as_bps() > 0).map_or(0, |last| last + 1);
        floors.0[..last].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_what_was_written() {
        for text in ["100bit/s", "2Mbit/s", "1.25Mbit/s", "409.5kbit/s", "999Gbit/s", "none"] {
            let floor: Floor = text.parse().unwrap();
            assert_eq!((floor.to_string(), floor.is_of_class()), (text.to_owned(), false));
            assert_eq!(Floor::from_bits(floor.bits()), floor);
        }
        for wrong in ["50bit/s", "1.2345Mbit/s", "5Tbit/s", "2", "0Mbit/s", ""] {
            assert_eq!(wrong.parse::<Floor>(), Err(FloorError), "{wrong}");
        }
        assert_eq!("1.25Mbit/s".parse::<Floor>().unwrap().as_bps(), 1_250_000);
    }

    #[test]
    fn who_has_no_own_floor_has_that_of_the_class() {
        let [own, class, none] = ["2Mbit/s", "5Mbit/s", "none"].map(|text| text.parse::<Floor>().unwrap());
        assert_eq!(Floor::NONE.within(class).as_bps(), 5_000_000);
        assert_eq!([own.within(class), none.within(class)], [own, none]);
        let before = Floor::NONE.within(class);
        assert_eq!(before.within(own).as_bps(), 2_000_000, "the class has another one now");
        assert_eq!(before.within(Floor::NONE), Floor::NONE);
    }

    #[test]
    fn floors_are_those_of_the_first_classes() {
        let floors: Floors = serde_json::from_str(r#"["2Mbit/s", "none", "1Mbit/s"]"#).unwrap();
        assert_eq!([0, 1, 2, 3, 9].map(|class| floors.of(class).as_bps()), [2_000_000, 0, 1_000_000, 0, 0]);
        assert_eq!(serde_json::to_string(&floors).unwrap(), r#"["2Mbit/s","none","1Mbit/s"]"#);
        assert!(serde_json::from_str::<Floors>(r#"["none","none","none","none","none"]"#).is_err());
        assert!(Floors::default().is_empty() && !floors.is_empty());
    }
}
