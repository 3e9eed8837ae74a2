//! A SYN flood (`synflood`): SYNs from forged sources, whose handshakes are never completed. The victim answers each of
//! them; the answers are ignored.

use super::AnyApplication;
use super::application::{Application, Host, Setup};
use super::settings::{FlowFacts, Settings};
use crate::numbers::FORGED;
use crate::segment::{Segment, SynOptions};
use penstock_core::config::ConfigError;
use penstock_core::packet::TcpFlags;
use penstock_core::units::{Instant, Span};
use serde::{Deserialize, Serialize};

/// The settings of a SYN flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynFlood {
    /// Number of SYNs per second.
    pub per_second: u32,
}

/// The keys of `kind = "synflood"`.
#[derive(Debug, Clone, Copy, Deserialize, schemars::JsonSchema)]
pub struct Keys {
    per_second: f64,
}

/// Writes a whole number without a decimal point.
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

impl SynFlood {
    /// Creates the source of SYNs and its victim.
    pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
        let gap = Span::from_nanos(1_000_000_000 / u64::from(self.per_second.max(1)));
        AnyApplication::other(Flood { gap, first: setup.forged, sent: 0 })
    }
}

/// The options of a SYN that a real host would send.
const OPTIONS: SynOptions = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };

/// A source of SYNs, each of a connection of its own, and the victim.
#[derive(Debug)]
struct Flood {
    gap: Span,
    /// Number of the first forged connection, which no flow has.
    first: u32,
    sent: u32,
}

impl Application for Flood {
    fn wake(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        let mut syn = Segment::tcp(self.first + self.sent % FORGED, true, TcpFlags::SYN);
        syn.seq = self.sent.wrapping_mul(64_000); // spread like initial sequence numbers
        syn.set_syn_options(OPTIONS);
        syn.window = u16::MAX;
        self.sent = self.sent.wrapping_add(1);
        host.send(syn);
        Some(host.now + self.gap)
    }

    fn receive(&mut self, syn: &Segment, host: &mut Host<'_>) {
        if !syn.from_client() {
            return;
        }
        let mut answer = Segment::tcp(syn.flow, false, TcpFlags::SYN.with(TcpFlags::ACK));
        (answer.seq, answer.ack) = (!syn.seq, syn.seq.wrapping_add(1));
        answer.set_syn_options(OPTIONS);
        answer.window = u16::MAX;
        host.answer(answer);
    }

    fn delivered(&self) -> u64 {
        0
    }

    fn forges(&self) -> bool {
        true
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}
