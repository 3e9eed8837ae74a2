//! What was set while packets passed, as reports list it.

use serde::Serialize;

/// Largest number of changes that are listed.
pub const MOST_CHANGES: usize = 256;

/// A value that was set while packets passed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// When, in seconds since the start.
    pub at_s: f64,
    /// The key of `penstock-emulate set`.
    pub key: String,
    /// The new value.
    pub value: String,
}
