//! The settings of a kind of traffic, which are read from the keys of `[[flows]]` and written back as these keys.

use penstock_core::config::ConfigError;
use penstock_core::foreign::Library;
use penstock_core::units::{Bytes, Rate, Span};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::RangeInclusive;

/// Facts of a flow and of its path on which the settings of its kind may depend.
#[derive(Clone, Copy)]
pub struct FlowFacts<'a> {
    /// Number of equal flows for which the table stands.
    pub count: u64,
    /// When the flows stop; `None` if they do not.
    pub stop: Option<Span>,
    /// Largest payload of their TCP segments.
    pub mss: Bytes,
    /// Rate of the slowest link on their path.
    pub slowest: Rate,
    /// Where names of stacks are looked up.
    pub library: &'a dyn Library,
}

/// The settings of a kind of traffic.
pub trait Settings: Sized {
    /// The keys in the form of the file; a key that may be left out is an `Option` or has a default.
    type Keys: Serialize + DeserializeOwned + schemars::JsonSchema;

    /// The keys that the kind must have.
    const NEEDED: &'static [&'static str] = &[];

    /// Checks the keys and makes settings of them.
    ///
    /// # Errors
    /// Returns the first key whose value is not allowed, with a sentence that says what is allowed.
    fn read(keys: Self::Keys, flow: &FlowFacts<'_>) -> Result<Self, ConfigError>;

    /// Returns the keys which give these settings when they are read.
    fn keys(&self) -> Self::Keys;
}

/// The sizes in bytes that a file may have.
const SIZES: RangeInclusive<u64> = 1..=1 << 50;

/// Checks that a file may have this size.
pub(super) fn file_size(key: &'static str, size: Bytes) -> Result<Bytes, ConfigError> {
    if SIZES.contains(&size.get()) { Ok(size) } else { Err(ConfigError::new(key, "a transfer has 1B to 1PB")) }
}
