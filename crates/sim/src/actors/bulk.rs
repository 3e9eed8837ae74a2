//! One TCP connection: an endless stream, or a file.

use super::settings::{FlowFacts, Settings, file_size};
use penstock_core::config::ConfigError;
use penstock_core::units::Bytes;
use serde::{Deserialize, Serialize};

/// As much as TCP lets it send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bulk;

/// One file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Its bytes.
    pub size: Bytes,
}

/// Keys of `kind = "bulk"`: none.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct BulkKeys {}

impl Settings for Bulk {
    type Keys = BulkKeys;

    fn read(_: BulkKeys, _: &FlowFacts) -> Result<Self, ConfigError> {
        Ok(Self)
    }
    fn keys(&self) -> BulkKeys {
        BulkKeys {}
    }
}

/// Keys of `kind = "transfer"`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct TransferKeys {
    size: Bytes,
}

impl Settings for Transfer {
    type Keys = TransferKeys;
    const NEEDED: &'static [&'static str] = &["size"];

    fn read(keys: TransferKeys, flow: &FlowFacts) -> Result<Self, ConfigError> {
        if flow.stop.is_some() {
            return Err(ConfigError::new("stop", "a transfer stops by itself; leave `stop` out"));
        }
        file_size("size", keys.size).map(|size| Self { size })
    }
    fn keys(&self) -> TransferKeys {
        TransferKeys { size: self.size }
    }
}
