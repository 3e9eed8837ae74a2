//! The ranges of parameters that several controls have.

use crate::config::ConfigError;
use crate::units::Span;

/// Refuses what is not a part of a whole: above 0 and below 1.
pub(super) fn fraction(key: &'static str, value: f64) -> Result<(), ConfigError> {
    let inside = value > 0.0 && value < 1.0;
    if inside { Ok(()) } else { Err(ConfigError::new(key, "must be above 0 and below 1")) }
}

/// Refuses what is not a number above zero.
pub(super) fn positive(key: &'static str, value: f64) -> Result<(), ConfigError> {
    let inside = value > 0.0 && value <= 1e9;
    if inside { Ok(()) } else { Err(ConfigError::new(key, "must be above 0 and at most 1e9")) }
}

/// Refuses what is outside of `low..=high`.
pub(super) fn within(key: &'static str, value: f64, low: f64, high: f64) -> Result<(), ConfigError> {
    let inside = (low..=high).contains(&value);
    if inside { Ok(()) } else { Err(ConfigError::new(key, format!("must be from {low} to {high}"))) }
}

/// Refuses no time at all, and more than a day.
pub(super) fn above_zero(key: &'static str, value: Span) -> Result<(), ConfigError> {
    let inside = value > Span::ZERO && value <= Span::from_secs(24 * 3600);
    if inside { Ok(()) } else { Err(ConfigError::new(key, "must be above 0s and at most 24h")) }
}
