//! DropTail: no active queue management. Packets wait in order of arrival and are dropped only if there is no room.
//!
//! Source: the baseline of every document; Linux calls it `pfifo` and `bfifo`. The limit, in packets or bytes, belongs
//! to the queue. State: none. Cost: O(1).

use super::Aqm;
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::units::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// DropTail has no parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// The AQM that passes every packet.
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
