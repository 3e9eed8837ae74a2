//! The keys of a link, which are the same in scenarios and in the configurations of programs: rate, delay, limits of
//! its queues, and the probability of loss.

use crate::range::within;
use penstock_core::config::ConfigError;
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
