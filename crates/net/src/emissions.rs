//! What the emulator measures when it writes the packets of one direction.

use crate::histogram::Spans;

/// Counters of the packets that left a bottleneck for the receiving interface.
#[derive(Debug, Default)]
pub struct Emissions {
    /// How much later than due each packet was written.
    pub lateness: Spans,
    /// Packets which the receiving interface refused.
    pub refused: u64,
}
