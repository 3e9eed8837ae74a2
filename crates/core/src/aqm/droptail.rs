//! DropTail: no management at all. Packets wait in order of arrival and die only for want of room.
//!
//! Source: the baseline of every document; Linux calls it `pfifo` and `bfifo`. The limit, in packets or bytes, is
//! that of the queue it judges. State: none. Cost: O(1).

use super::Aqm;
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::units::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters: none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// The algorithm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DropTail;

impl AqmConfig for Config {
    type Aqm = DropTail;

    fn validate(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    fn aqm(&self, _: &LinkFacts) -> DropTail {
        DropTail
    }
}

impl Aqm for DropTail {
    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}
impl AckPath for DropTail {}
