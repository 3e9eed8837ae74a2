//! The two directions in which packets cross the emulated link.

use serde::Serialize;

/// The direction in which a packet travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the left interface to the right one.
    Forward,
    /// From the right interface to the left one.
    Reverse,
}

impl Direction {
    /// Both directions, forward first.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Reverse];

    /// The place of this direction in an array of two: 0 for forward, 1 for reverse.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns the opposite direction.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}
