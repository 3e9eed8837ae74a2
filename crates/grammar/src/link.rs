//! The keys of a link, which are the same in scenarios and in the configurations of programs: rate, delay, limits of
//! its queues, and the probability of loss.

use crate::range::within;
use penstock_core::config::ConfigError;
use penstock_core::link_layer::{Framing, LinkLayer};
use penstock_core::suggest::unknown_name;
use penstock_core::units::{Limit, Rate, Span};
use serde::{Deserialize, Serialize};

/// The highest rate of a link, 1 Tbit/s.
pub const MAX_RATE: Rate = Rate::from_bps(1_000_000_000_000);
/// The longest propagation delay of a link, 10 minutes.
pub const MAX_DELAY: Span = Span::from_secs(600);

/// The keys of a link. Rate and delay hold in both directions, unless the other direction has its own; limit and loss
/// hold from its first end to its second.
///
/// Each program that reads a link takes all fields apart without `..`. So a new key does not compile until each of them
/// uses it or refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Link {
    /// Rate from the first end to the second, and back without `reverse_rate`.
    pub rate: Rate,
    /// One-way propagation delay from the first end to the second, and back without `reverse_delay`.
    pub delay: Span,
    /// Rate from the second end to the first; without it `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_rate: Option<Rate>,
    /// One-way propagation delay from the second end to the first; without it `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_delay: Option<Span>,
    /// Limit of the queue from the first end to the second.
    #[serde(default = "thousand_packets")]
    pub limit: Limit,
    /// Limit of the queue from the second end to the first.
    #[serde(default = "thousand_packets")]
    pub reverse_limit: Limit,
    /// Probability that the wire from the first end to the second loses a packet; with 1 it loses all.
    #[serde(default)]
    pub loss: f64,
}

impl Link {
    /// Checks that all values are allowed.
    ///
    /// # Errors
    /// Returns the first key whose value is not allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        rate("rate", self.rate)?;
        delay("delay", self.delay)?;
        self.reverse_rate.map_or(Ok(()), |reverse| rate("reverse_rate", reverse))?;
        self.reverse_delay.map_or(Ok(()), |reverse| delay("reverse_delay", reverse))?;
        loss("loss", self.loss)
    }

    /// Returns the rates from the first end to the second, and back.
    pub fn rates(&self) -> [Rate; 2] {
        [self.rate, self.reverse_rate.unwrap_or(self.rate)]
    }

    /// Returns the propagation delays from the first end to the second, and back.
    pub fn delays(&self) -> [Span; 2] {
        [self.delay, self.reverse_delay.unwrap_or(self.delay)]
    }
}

/// What a link adds to each packet. Without a key it adds nothing; the keys of the way back hold in place of the others there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LayerKeys {
    /// A preset of tc-cake(8) for the keys overhead, mpu and framing, such as "pppoe-ptm" or "docsis"; those that are written
    /// hold before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    link_layer: Option<String>,
    /// Bytes that the link adds to each IP packet, from -64 to 256.
    #[serde(skip_serializing_if = "Option::is_none")]
    overhead: Option<i32>,
    /// The least size of a packet with its overhead on the link, in bytes, up to 256.
    #[serde(skip_serializing_if = "Option::is_none")]
    mpu: Option<u32>,
    /// "ethernet", "ptm" (65 B for 64 B, as in VDSL2) or "atm" (cells of 53 B with 48 B of payload, as in ADSL).
    #[serde(skip_serializing_if = "Option::is_none")]
    framing: Option<Framing>,
    /// A preset from the second end to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_link_layer: Option<String>,
    /// Bytes that the link adds to each IP packet from the second end to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_overhead: Option<i32>,
    /// The least size of a packet from the second end to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_mpu: Option<u32>,
    /// The framing from the second end to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_framing: Option<Framing>,
}

impl LayerKeys {
    /// The keys of one direction.
    pub const KEYS: [&str; 4] = ["link_layer", "overhead", "mpu", "framing"];

    /// Returns the keys that say what the link adds from its first end to its second, and back.
    pub fn of([forward, back]: [LinkLayer; 2]) -> Self {
        let mut keys = Self::default();
        if !forward.is_plain() {
            (keys.overhead, keys.mpu, keys.framing) =
                (Some(forward.overhead), Some(forward.mpu), Some(forward.framing));
        }
        if back != forward {
            (keys.reverse_overhead, keys.reverse_mpu, keys.reverse_framing) =
                (Some(back.overhead), Some(back.mpu), Some(back.framing));
        }
        keys
    }

    /// Reads what a link adds in one direction from texts `key=value`.
    ///
    /// # Errors
    /// Returns the first that is no such text, or whose value is not allowed.
    pub fn read(written: &[String]) -> Result<LinkLayer, ConfigError> {
        let mut keys = Self::default();
        for text in written {
            let set = text.split_once('=').and_then(|(key, value)| keys.set(key, value));
            let form = || format!("{text:?} is not KEY=VALUE with one of the keys {}", Self::KEYS.join(", "));
            set.unwrap_or_else(|| Err(ConfigError::new("link_layer", form())))?;
        }
        keys.over(LinkLayer::default())
    }

    /// Sets a key of one direction, written as text without a prefix; `None` if it is not one of [`LayerKeys::KEYS`].
    pub fn set(&mut self, key: &str, value: &str) -> Option<Result<(), ConfigError>> {
        fn number<T: std::str::FromStr>(key: &'static str, value: &str) -> Result<Option<T>, ConfigError> {
            let wrong = |_| ConfigError::new(key, format!("{value:?} is no whole number of bytes"));
            value.parse().map(Some).map_err(wrong)
        }
        Some(match key {
            "link_layer" => preset_of("link_layer", value).map(|_| self.link_layer = Some(value.to_owned())),
            "overhead" => number("overhead", value).map(|bytes| self.overhead = bytes),
            "mpu" => number("mpu", value).map(|bytes| self.mpu = bytes),
            "framing" => {
                value.parse().map(|one| self.framing = Some(one)).map_err(|e: String| ConfigError::new("framing", e))
            }
            _ => return None,
        })
    }

    /// Returns what a link adds in one direction, which adds `present` without a key. The prefix of the way back has no
    /// meaning here.
    ///
    /// # Errors
    /// Returns the first key whose value is not allowed.
    pub fn over(&self, present: LinkLayer) -> Result<LinkLayer, ConfigError> {
        layer(["link_layer", "overhead", "mpu"], present, (&self.link_layer, self.overhead, self.mpu, self.framing))
    }

    /// Returns what the link adds from its first end to its second, and back.
    ///
    /// # Errors
    /// Returns the first key whose value is not allowed.
    pub fn layers(&self) -> Result<[LinkLayer; 2], ConfigError> {
        let forward = self.over(LinkLayer::default())?;
        let back = (&self.reverse_link_layer, self.reverse_overhead, self.reverse_mpu, self.reverse_framing);
        Ok([forward, layer(["reverse_link_layer", "reverse_overhead", "reverse_mpu"], forward, back)?])
    }
}

/// The values of the four keys of a direction.
type Written<'a> = (&'a Option<String>, Option<i32>, Option<u32>, Option<Framing>);

/// Returns the layer of a direction, whose keys have these names, and which without them is `otherwise`.
fn layer(keys: [&'static str; 3], otherwise: LinkLayer, written: Written<'_>) -> Result<LinkLayer, ConfigError> {
    let (preset, overhead, mpu, framing) = written;
    let preset = preset.as_deref().map_or(Ok(otherwise), |name| preset_of(keys[0], name))?;
    let layer = LinkLayer {
        overhead: overhead.unwrap_or(preset.overhead),
        mpu: mpu.unwrap_or(preset.mpu),
        framing: framing.unwrap_or(preset.framing),
    };
    match layer.mistake() {
        Some((key, message)) => Err(ConfigError::new(if key == "mpu" { keys[2] } else { keys[1] }, message)),
        None => Ok(layer),
    }
}

fn preset_of(key: &'static str, name: &str) -> Result<LinkLayer, ConfigError> {
    let known: Vec<&str> = LinkLayer::presets().collect();
    LinkLayer::preset(name).ok_or_else(|| ConfigError::new(key, unknown_name("preset", name, &known)))
}

/// Returns the default limit of a queue, `"1000p"`.
pub fn thousand_packets() -> Limit {
    Limit::Packets(1000)
}

/// Checks that a rate is not above [`MAX_RATE`].
///
/// # Errors
/// Names `key` and says what is allowed.
pub fn rate(key: &'static str, rate: Rate) -> Result<(), ConfigError> {
    if rate.as_bps() <= MAX_RATE.as_bps() {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("{key} is {rate}; allowed is up to 1Tbit/s")))
}

/// Checks that a delay is not above [`MAX_DELAY`].
///
/// # Errors
/// Names `key` and says what is allowed.
pub fn delay(key: &'static str, delay: Span) -> Result<(), ConfigError> {
    within(key, &delay, Span::ZERO..=MAX_DELAY)
}

/// Checks that a loss is a probability.
///
/// # Errors
/// Names `key` and says what is allowed.
pub fn loss(key: &'static str, loss: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&loss) {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("{key} is {loss}; allowed is a probability from 0 to 1")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Overhead, mpu and framing of both directions, or the key that is wrong and why.
    type Read = Result<[(i32, u32, Framing); 2], (&'static str, String)>;

    fn layers(text: &str) -> Read {
        let keys: LayerKeys = toml::from_str(text).map_err(|e| ("toml", e.to_string()))?;
        let layers = keys.layers().map_err(|e| (e.key, e.message))?;
        let again = LayerKeys::of(layers).layers();
        assert_eq!(again, Ok(layers), "what is written back means the same");
        Ok(layers.map(|layer| (layer.overhead, layer.mpu, layer.framing)))
    }

    #[test]
    fn a_preset_is_a_start_and_written_keys_hold_before_it() {
        assert_eq!(layers(""), Ok([(0, 0, Framing::None); 2]));
        assert_eq!(layers("overhead = 44\nframing = \"atm\""), Ok([(44, 0, Framing::Atm); 2]));
        assert_eq!(layers("link_layer = \"docsis\"\noverhead = 22"), Ok([(22, 64, Framing::None); 2]));
    }

    #[test]
    fn the_way_back_has_what_the_way_there_has_unless_it_says_otherwise() {
        let text = "link_layer = \"pppoe-ptm\"\nreverse_framing = \"ethernet\"";
        assert_eq!(layers(text), Ok([(30, 0, Framing::Ptm), (30, 0, Framing::None)]));
        let text = "reverse_link_layer = \"pppoa-llc\"";
        assert_eq!(layers(text), Ok([(0, 0, Framing::None), (14, 0, Framing::Atm)]));
        let text = "link_layer = \"conservative\"\nreverse_overhead = 0\nreverse_framing = \"none\"";
        assert_eq!(layers(text), Ok([(48, 0, Framing::Atm), (0, 0, Framing::None)]));
    }

    #[test]
    fn mistakes_name_their_key() {
        for (text, key, what) in [
            ("link_layer = \"pppoe-ptn\"", "link_layer", "did you mean \"pppoe-ptm\"?"),
            ("reverse_link_layer = \"dsl\"", "reverse_link_layer", "no preset \"dsl\""),
            ("overhead = 257", "overhead", "-64 and 256"),
            ("reverse_overhead = -65", "reverse_overhead", "-64 and 256"),
            ("mpu = 257", "mpu", "at most 256"),
            ("reverse_mpu = 300", "reverse_mpu", "at most 256"),
        ] {
            let (of, message) = layers(text).unwrap_err();
            assert!(of == key && message.contains(what), "{text}: {of}: {message}");
        }
    }
}
