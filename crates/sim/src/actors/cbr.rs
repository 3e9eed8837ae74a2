//! Datagrams at a constant rate, all the time or during on-times.

use super::settings::{FlowFacts, Settings};
use super::sizes::OneOrMore;
use penstock_core::config::ConfigError;
use penstock_core::units::{Bytes, Rate, Span};
use penstock_grammar::link;
use serde::{Deserialize, Serialize};

/// UDP at a constant rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Cbr {
    /// Rate of the IP packets.
    pub rate: Rate,
    /// Payload of the packets: one size, or several.
    pub packet_size: Vec<Bytes>,
    /// How often each of these sizes is sent, in proportion to the others.
    pub packet_weights: Vec<f64>,
}

/// UDP at a constant rate during exponential on-times.
#[derive(Debug, Clone, PartialEq)]
pub struct OnOff {
    /// What is sent during an on-time.
    pub on: Cbr,
    /// Mean of on-times.
    pub mean_on: Span,
    /// Mean of off-times.
    pub mean_off: Span,
}

/// Keys of `kind = "cbr"`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CbrKeys {
    rate: Rate,
    packet_size: Option<OneOrMore>,
    packet_weights: Option<Vec<f64>>,
}

impl Settings for Cbr {
    type Keys = CbrKeys;
    const NEEDED: &'static [&'static str] = &["rate"];

    fn read(keys: CbrKeys, _: &FlowFacts) -> Result<Self, ConfigError> {
        link::rate("rate", keys.rate)?;
        let sizes = keys.packet_size.map_or(vec![Bytes::new(1200)], |sizes| sizes.0);
        if sizes.is_empty() || sizes.iter().any(|size| !(1..=65_000).contains(&size.get())) {
            return Err(ConfigError::new("packet_size", "a packet carries 1B to 65kB"));
        }
        let weights = keys.packet_weights.unwrap_or_else(|| vec![1.0; sizes.len()]);
        if weights.len() != sizes.len() {
            let message = format!("{} weights for {} sizes; give one for each", weights.len(), sizes.len());
            return Err(ConfigError::new("packet_weights", message));
        }
        if weights.iter().any(|weight| !(1e-9..=1e9).contains(weight)) {
            return Err(ConfigError::new("packet_weights", "a weight is above 0, up to 1e9"));
        }
        Ok(Self { rate: keys.rate, packet_size: sizes, packet_weights: weights })
    }
    fn keys(&self) -> CbrKeys {
        let several = self.packet_size.len() > 1;
        CbrKeys {
            rate: self.rate,
            packet_size: Some(OneOrMore(self.packet_size.clone())),
            packet_weights: several.then(|| self.packet_weights.clone()),
        }
    }
}

/// Keys of `kind = "onoff"`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OnOffKeys {
    rate: Rate,
    packet_size: Option<OneOrMore>,
    packet_weights: Option<Vec<f64>>,
    mean_on: Span,
    mean_off: Span,
}

impl Settings for OnOff {
    type Keys = OnOffKeys;
    const NEEDED: &'static [&'static str] = &["rate", "mean_on", "mean_off"];

    fn read(keys: OnOffKeys, flow: &FlowFacts) -> Result<Self, ConfigError> {
        let OnOffKeys { rate, packet_size, packet_weights, mean_on, mean_off } = keys;
        let on = Cbr::read(CbrKeys { rate, packet_size, packet_weights }, flow)?;
        Ok(Self { on, mean_on, mean_off })
    }
    fn keys(&self) -> OnOffKeys {
        let CbrKeys { rate, packet_size, packet_weights } = self.on.keys();
        OnOffKeys { rate, packet_size, packet_weights, mean_on: self.mean_on, mean_off: self.mean_off }
    }
}
