//! One TCP connection: an endless stream, or a file.

use penstock_core::units::Bytes;

/// As much as TCP lets it send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bulk;

/// One file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Its bytes.
    pub size: Bytes,
}
