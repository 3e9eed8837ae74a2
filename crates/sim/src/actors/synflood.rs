//! SYNs of forged sources, never followed by anything.

use super::settings::{FlowFacts, Settings};
use penstock_core::config::ConfigError;
use serde::{Deserialize, Serialize};

/// A flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynFlood {
    /// SYNs per second.
    pub per_second: u32,
}

/// Keys of `kind = "synflood"`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Keys {
    per_second: f64,
}

/// A whole number is written as one.
impl Serialize for Keys {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("per_second", self.per_second as u64)])
    }
}

impl Settings for SynFlood {
    type Keys = Keys;
    const NEEDED: &'static [&'static str] = &["per_second"];

    fn read(keys: Keys, _: &FlowFacts) -> Result<Self, ConfigError> {
        let n = keys.per_second;
        if (1.0..=1e6).contains(&n) && n.fract() == 0.0 {
            return Ok(Self { per_second: n as u32 });
        }
        Err(ConfigError::new("per_second", "a flood has 1 to 1000000 SYNs per second, a whole number"))
    }
    fn keys(&self) -> Keys {
        Keys { per_second: self.per_second.into() }
    }
}
