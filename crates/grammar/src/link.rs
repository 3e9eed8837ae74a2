//! What a link is, alike in scenarios and in the configurations of programs: rate, delay, what its queue may hold, and how
//! often its wire loses a packet.

use crate::range::within;
use penstock_core::config::ConfigError;
use penstock_core::units::{Limit, Rate, Span};
use serde::{Deserialize, Serialize};

/// The fastest link, 1 Tbit/s.
pub const MAX_RATE: Rate = Rate::from_bps(1_000_000_000_000);
/// The longest delay of a link.
pub const MAX_DELAY: Span = Span::from_secs(600);

/// Keys of a link. Rate and delay hold in both directions, limit and loss from its first end to its second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Rate, each way.
    pub rate: Rate,
    /// Delay, one way.
    pub delay: Span,
    /// What the queue from the first end to the second may hold.
    #[serde(default = "thousand_packets")]
    pub limit: Limit,
    /// What the queue of the other direction may hold.
    #[serde(default = "thousand_packets")]
    pub reverse_limit: Limit,
    /// Probability with which the wire from the first end to the second loses a packet.
    #[serde(default)]
    pub loss: f64,
}

impl Link {
    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        rate("rate", self.rate)?;
        delay("delay", self.delay)?;
        loss("loss", self.loss)
    }
}

/// Returns what a queue may hold if the file says nothing: `"1000p"`.
pub fn thousand_packets() -> Limit {
    Limit::Packets(1000)
}

/// Refuses a rate above [`MAX_RATE`].
///
/// # Errors
/// `key`, with what is allowed.
pub fn rate(key: &'static str, rate: Rate) -> Result<(), ConfigError> {
    if rate.as_bps() <= MAX_RATE.as_bps() {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("{key} is {rate}; allowed is up to 1Tbit/s")))
}

/// Refuses a delay above [`MAX_DELAY`].
///
/// # Errors
/// `key`, with what is allowed.
pub fn delay(key: &'static str, delay: Span) -> Result<(), ConfigError> {
    within(key, &delay, Span::ZERO..=MAX_DELAY)
}

/// Refuses what is no probability below 1.
///
/// # Errors
/// `key`, with what is allowed.
pub fn loss(key: &'static str, loss: f64) -> Result<(), ConfigError> {
    if (0.0..1.0).contains(&loss) {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("{key} is {loss}; allowed is a probability from 0 to less than 1")))
}
