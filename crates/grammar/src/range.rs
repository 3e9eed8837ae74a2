//! Values within bounds, each refused with the same sentence everywhere.

use penstock_core::config::ConfigError;
use penstock_core::units::Span;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The longest time of a run, and of anything that happens in one: sums of such times stay far below 64 bits of nanoseconds.
pub const MAX_DURATION: Span = Span::from_secs(24 * 3600);

/// Refuses a value outside its bounds.
///
/// # Errors
/// `key` with "`key` is 2h; allowed are 0ns to 600s".
pub fn within<T: PartialOrd + Display>(
    key: &'static str,
    value: &T,
    allowed: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    if allowed.contains(value) {
        return Ok(());
    }
    Err(ConfigError::new(key, outside(key, value, allowed.start(), allowed.end())))
}

/// The sentence about a value outside its bounds.
pub fn outside(key: &str, value: &impl Display, low: &impl Display, high: &impl Display) -> String {
    format!("{key} is {value}; allowed are {low} to {high}")
}
