//! UDP datagrams at a constant rate, all the time (`cbr`) or during exponential on-times (`onoff`).

use super::AnyApplication;
use super::application::{Application, Host, Setup};
use super::media::Seen;
use super::settings::{FlowFacts, Settings};
use super::sizes::{Mix, OneOrMore};
use crate::segment::{Payload, Segment};
use penstock_core::config::ConfigError;
use penstock_core::packet::Packet;
use penstock_core::rng::Rng;
use penstock_core::units::{Bytes, Instant, Rate, Serializer, Span};
use penstock_grammar::link;
use serde::{Deserialize, Serialize};

/// The settings of `cbr`: datagrams at a constant rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Cbr {
    /// Rate of the IP packets, headers included.
    pub rate: Rate,
    /// Payload sizes of the packets; at least one.
    pub packet_size: Vec<Bytes>,
    /// Weights of these sizes: each size is sent in proportion to its weight.
    pub packet_weights: Vec<f64>,
}

/// The settings of `onoff`: datagrams at a constant rate during exponential on-times.
#[derive(Debug, Clone, PartialEq)]
pub struct OnOff {
    /// The datagrams of an on-time.
    pub on: Cbr,
    /// Mean duration of on-times.
    pub mean_on: Span,
    /// Mean duration of off-times.
    pub mean_off: Span,
}

/// The keys of `kind = "cbr"`.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
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

/// The keys of `kind = "onoff"`.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
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

impl Cbr {
    /// Creates the source of datagrams and its sink.
    pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
        AnyApplication::other(Datagrams::new(self, None, setup))
    }
}

impl OnOff {
    /// Creates the source of datagrams and its sink.
    pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
        AnyApplication::other(Datagrams::new(&self.on, Some((self.mean_on, self.mean_off)), setup))
    }
}

/// A source of datagrams and the sink at the other end.
#[derive(Debug)]
struct Datagrams {
    clock: Serializer,
    /// Payload of each packet, unless there is a mix of sizes.
    payload: u16,
    mix: Option<Mix>,
    /// Mean durations of on-times and of off-times; with `None` datagrams are sent all the time.
    times: Option<(Span, Span)>,
    rng: Rng,
    /// End of the current on-time; zero before the first one.
    on_until: Instant,
    next_seq: u32,
    received: u64,
    seen: Seen,
}

impl Datagrams {
    fn new(config: &Cbr, times: Option<(Span, Span)>, setup: &Setup<'_>) -> Self {
        let sizes: Vec<u16> = config.packet_size.iter().map(|size| size.get() as u16).collect();
        let mix = || Mix::new(&sizes, &config.packet_weights, setup.stream("sizes"));
        Self {
            clock: Serializer::new(config.rate),
            payload: sizes.first().copied().unwrap_or_default(),
            mix: (sizes.len() > 1).then(mix),
            times,
            rng: setup.stream("onoff"),
            on_until: Instant::ZERO,
            next_seq: 0,
            received: 0,
            seen: Seen::default(),
        }
    }

    fn draw(&mut self, mean: Span) -> Span {
        // At least one nanosecond, so that time advances in every chain of on-times and off-times.
        Span::from_secs_f64(self.rng.exponential(mean.as_secs_f64())).max(Span::from_nanos(1))
    }
}

impl Application for Datagrams {
    fn wake(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        if let Some((on, _)) = self.times
            && self.on_until == Instant::ZERO
        {
            self.on_until = host.now + self.draw(on);
        }
        let payload = self.mix.as_mut().map_or(self.payload, Mix::draw);
        let packet = Segment::udp(host.flow, true, Payload { seq: self.next_seq, len: payload });
        self.next_seq = self.next_seq.wrapping_add(1);
        host.send(packet);
        let mut next = host.now + self.clock.send(packet.size());
        if let Some((on, off)) = self.times {
            while next >= self.on_until {
                next = next.max(self.on_until) + self.draw(off);
                self.on_until = next + self.draw(on);
            }
        }
        Some(next)
    }

    fn receive(&mut self, packet: &Segment, _: &mut Host<'_>) {
        if self.seen.is_new(packet.seq) {
            self.received += u64::from(packet.len);
        }
    }

    fn delivered(&self) -> u64 {
        self.received
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}
