//! WEIR has no parameters. Parts can be left out, to see what each is for.

use super::Weir;
use crate::config::{ConfigError, Discipline, LinkFacts};
use crate::packet::Packet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of WEIR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Hosts first: without it each connection counts as a host.
    Hosts,
    /// Windows for TCP: without it all is judged by the AQM.
    Windows,
    /// One queue for all segments that keep to their windows: without it they wait in the queues of their flows.
    Common,
    /// What windows leave to traffic that they do not govern.
    Others,
    /// The room that a connection has until its first 32 kB are acknowledged.
    Young,
    /// What a host may always send first, however many hosts there are.
    Floor,
    /// The rate that departures show, where another one was told.
    Pace,
    /// What windows give out beyond the link while it is idle.
    Gain,
}

/// There is nothing to set. `without` is for ablations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Parts that are left out, to measure what each is for: "hosts", "windows", "common", "others",
    /// "young", "floor", "pace", "gain".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Part>,
}

/// The parts that are left out.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Parts(u8);

impl Parts {
    #[inline]
    pub fn without(self, part: Part) -> bool {
        self.0 & 1 << part as u8 != 0
    }
}

impl Config {
    pub(super) fn parts(&self) -> Parts {
        Parts(self.without.iter().fold(0, |parts, part| parts | 1 << *part as u8))
    }
}

impl Discipline for Config {
    type Queue<P: Packet> = Weir<P>;

    fn validate(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> Weir<P> {
        Weir::new(self, link)
    }
}
