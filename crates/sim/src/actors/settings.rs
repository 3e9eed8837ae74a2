//! The settings of a kind of traffic, made of its keys in `[[flows]]` and written back as them.

use penstock_core::config::ConfigError;
use penstock_core::units::{Bytes, Rate, Span};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::RangeInclusive;

/// What the settings of a kind may depend on beside its own keys: facts of the flow and of its path.
#[derive(Debug, Clone, Copy)]
pub struct FlowFacts {
    /// How many equal flows the table stands for.
    pub count: u64,
    /// When they stop, if they are told to.
    pub stop: Option<Span>,
    /// The largest payload of their segments.
    pub mss: Bytes,
    /// The rate of the slowest link on their path.
    pub slowest: Rate,
}

/// The settings of a kind of traffic, made of its keys in `[[flows]]`.
pub trait Settings: Sized {
    /// The keys as they are written; those that may be left out are `Option`s or have a default.
    type Keys: Serialize + DeserializeOwned;

    /// Keys without which the kind means nothing.
    const NEEDED: &'static [&'static str] = &[];

    /// Checks the keys and makes settings of them.
    ///
    /// # Errors
    /// The first key that cannot be, with a sentence that says what is allowed.
    fn read(keys: Self::Keys, flow: &FlowFacts) -> Result<Self, ConfigError>;

    /// The keys that give these settings when they are read.
    fn keys(&self) -> Self::Keys;
}

/// Sizes that a file may have.
const SIZES: RangeInclusive<u64> = 1..=1 << 50;

/// Refuses a size that no file has.
pub(super) fn file_size(key: &'static str, size: Bytes) -> Result<Bytes, ConfigError> {
    if SIZES.contains(&size.get()) { Ok(size) } else { Err(ConfigError::new(key, "a transfer has 1B to 1PB")) }
}
