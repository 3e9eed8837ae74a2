//! The channels to the stations behind a link: `stations = [...]`.

use crate::range::MAX_DURATION;
use penstock_core::config::ConfigError;
use penstock_core::csi::Channel;
use penstock_core::csi::snr::Technology;
use penstock_core::units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// The largest number of stations behind a link.
const MOST: usize = 10_000;
const MAX_DISTANCE_M: f64 = 1e6;
/// Size of the packet from which a signal-to-noise ratio gives the loss.
const PACKET: Bytes = Bytes::new(1500);

/// The channel to one station, in the form of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "a station is a probability of loss, or a table { good, bad, mean_good, mean_bad }, { technology, snr_db } \
                 or { technology, near_m, far_m, period }"
)]
pub enum StationSpec {
    /// A constant probability of loss.
    Loss(f64),
    /// Two states, good and bad, which alternate.
    Markov(Markov),
    /// A constant signal-to-noise ratio.
    Signal(Signal),
    /// A station that moves towards the antenna and away.
    Moving(Moving),
}

/// The channel with two alternating states.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Markov {
    good: f64,
    bad: f64,
    mean_good: Span,
    mean_bad: Span,
}

/// The channel with a signal-to-noise ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    technology: Technology,
    snr_db: f64,
}

/// The channel of a moving station.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moving {
    technology: Technology,
    near_m: f64,
    far_m: f64,
    period: Span,
}

impl StationSpec {
    /// Returns the model of the channel.
    pub fn channel(&self) -> Channel {
        match self {
            Self::Loss(loss) => Channel::Fixed(*loss),
            Self::Markov(Markov { good, bad, mean_good, mean_bad }) => {
                Channel::Markov { good: *good, bad: *bad, mean_good: *mean_good, mean_bad: *mean_bad }
            }
            Self::Signal(Signal { technology, snr_db }) => Channel::Fixed(technology.loss(*snr_db, PACKET)),
            Self::Moving(Moving { technology, near_m, far_m, period }) => {
                Channel::Moving { technology: *technology, near_m: *near_m, far_m: *far_m, period: *period }
            }
        }
    }

    /// Returns the shortest mean time of a state of the channel; `None` if it has no states.
    pub fn shortest(&self) -> Option<Span> {
        match self {
            Self::Markov(Markov { mean_good, mean_bad, .. }) => Some(*mean_good.min(mean_bad)),
            _ => None,
        }
    }

    /// Returns what is wrong with the numbers of the channel; `None` if they are allowed.
    fn mistake(&self) -> Option<String> {
        let no_probability = |loss: f64| !(0.0..=1.0).contains(&loss);
        match self {
            Self::Loss(loss) if no_probability(*loss) => {
                Some(format!("a station's loss is {loss}; allowed is a probability from 0 to 1"))
            }
            Self::Markov(Markov { good, bad, .. }) if no_probability(*good) || no_probability(*bad) => {
                Some(format!("losses of a station are {good} and {bad}; allowed are probabilities from 0 to 1"))
            }
            Self::Markov(Markov { mean_good, mean_bad, .. }) => {
                let short = [*mean_good, *mean_bad].into_iter().find(|mean| *mean < Span::from_micros(1));
                short.map(|mean| format!("a state that lasts {mean}; allowed is a mean of 1us or more"))
            }
            Self::Signal(Signal { snr_db, .. }) if !snr_db.is_finite() => Some("snr_db must be finite".into()),
            Self::Moving(Moving { near_m, far_m, period, .. }) => {
                let in_order = (1.0..=MAX_DISTANCE_M).contains(near_m) && (*near_m..=MAX_DISTANCE_M).contains(far_m);
                let allowed = in_order && (Span::from_millis(1)..=MAX_DURATION).contains(period);
                (!allowed).then(|| "near_m and far_m are 1 to 1e6 metres, in order, and the period 1ms or more".into())
            }
            _ => None,
        }
    }
}

/// Checks the channels of the stations behind a link.
///
/// # Errors
/// Says which number is not allowed, and what is.
pub fn validate(stations: &[StationSpec]) -> Result<(), ConfigError> {
    if stations.len() > MOST {
        let message = format!("a link has up to {MOST} stations, not {}", stations.len());
        return Err(ConfigError::new("stations", message));
    }
    stations.iter().find_map(StationSpec::mistake).map_or(Ok(()), |what| Err(ConfigError::new("stations", what)))
}

/// Checks the losses that a change gives to the `known` stations of a link.
///
/// # Errors
/// Says which number is not allowed, and what is.
pub fn new_losses(losses: &[f64], known: usize) -> Result<(), ConfigError> {
    if losses.len() != known {
        let message = format!("{} losses for the {known} stations of the link", losses.len());
        return Err(ConfigError::new("stations", message));
    }
    let allowed = |loss: &f64| (0.0..=1.0).contains(loss);
    losses.iter().find(|loss| !allowed(loss)).map_or(Ok(()), |loss| {
        Err(ConfigError::new("stations", format!("a loss is {loss}; allowed is a probability from 0 to 1")))
    })
}
