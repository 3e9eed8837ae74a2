//! Checks of ranges that parameters of several controls share.

use crate::config::ConfigError;
use crate::units::Span;

/// Refuses a value that is not above 0 and below 1.
pub(super) fn fraction(key: &'static str, value: f64) -> Result<(), ConfigError> {
    let inside = value > 0.0 && value < 1.0;
    if inside { Ok(()) } else { Err(ConfigError::new(key, "must be above 0 and below 1")) }
}

/// Refuses a value that is not above 0 and at most 10^9.
pub(super) fn positive(key: &'static str, value: f64) -> Result<(), ConfigError> {
    let inside = value > 0.0 && value <= 1e9;
    if inside { Ok(()) } else { Err(ConfigError::new(key, "must be above 0 and at most 1e9")) }
}

/// Refuses a value outside `low..=high`.
pub(super) fn within(key: &'static str, value: f64, low: f64, high: f64) -> Result<(), ConfigError> {
    let inside = (low..=high).contains(&value);
    if inside { Ok(()) } else { Err(ConfigError::new(key, format!("must be from {low} to {high}"))) }
}

/// Refuses a time of zero or of more than a day.
pub(super) fn above_zero(key: &'static str, value: Span) -> Result<(), ConfigError> {
    let inside = value > Span::ZERO && value <= Span::from_secs(24 * 3600);
    if inside { Ok(()) } else { Err(ConfigError::new(key, "must be above 0s and at most 24h")) }
}
