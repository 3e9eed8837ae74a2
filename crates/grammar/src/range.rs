//! Values with bounds; each violation is reported by the same sentence everywhere.

use penstock_core::config::ConfigError;
use penstock_core::units::Span;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The longest duration of a run, and of anything within a run: sums of such times stay far below 64 bits of
/// nanoseconds.
pub const MAX_DURATION: Span = Span::from_secs(24 * 3600);

/// Checks that a value is within its bounds.
///
/// # Errors
/// Returns an error for `key` such as "`key` is 2h; allowed are 0ns to 600s".
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

/// Returns the sentence about a value outside of its bounds.
pub fn outside(key: &str, value: &impl Display, low: &impl Display, high: &impl Display) -> String {
    format!("{key} is {value}; allowed are {low} to {high}")
}
