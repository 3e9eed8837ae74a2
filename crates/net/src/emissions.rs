//! Measurements of the emulator when it writes the packets of one direction.

use crate::histogram::Spans;

/// Counters of the packets that left a bottleneck for the receiving interface.
#[derive(Debug, Default)]
pub struct Emissions {
    /// How much later than it was due each packet was written.
    pub lateness: Spans,
    /// Number of packets that the receiving interface refused.
    pub refused: u64,
}
