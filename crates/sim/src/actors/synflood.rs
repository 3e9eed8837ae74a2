//! SYNs of forged sources, never followed by anything.

/// A flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynFlood {
    /// SYNs per second.
    pub per_second: u32,
}
