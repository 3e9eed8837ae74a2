//! The text form of Q, the size of the MAC-SAL: a limit such as `100p`, or `0p`.

use crate::units::{Limit, UnitError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Q, the limit of the MAC-SAL; unlike the limit of a queue it may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Buffer(pub Limit);

impl Buffer {
    /// There is no MAC-SAL: the scheduler of flows feeds the link.
    pub const NONE: Self = Self(Limit::Packets(0));
}

impl FromStr for Buffer {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.trim() {
            "0p" | "0B" => Ok(Self::NONE),
            other => other.parse().map(Self),
        }
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for Buffer {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl From<Buffer> for String {
    fn from(buffer: Buffer) -> Self {
        buffer.to_string()
    }
}
