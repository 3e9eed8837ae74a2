//! Hosts that move from one cell to another during a run: `[[handovers]]`.

use penstock_core::units::Span;

/// The procedure of a handover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Procedure {
    /// X2 between neighbouring cells; no packet is lost.
    X2Lossless,
    /// X2 between neighbouring cells; packets in flight on the radio link are lost.
    X2Seamless,
    /// S1 through the core network; no packet is lost.
    S1,
}

impl Procedure {
    /// All procedures with their words in scenarios.
    pub const ALL: [(&'static str, Self); 3] =
        [("x2-lossless", Self::X2Lossless), ("x2-seamless", Self::X2Seamless), ("s1", Self::S1)];

    /// Returns the word of the procedure in scenarios.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, one)| *one == self).map_or("s1", |(name, _)| name)
    }
}

/// A move of hosts from one cell to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Handover {
    /// When the hosts leave the old cell.
    pub at: Span,
    /// Router of the old cell.
    pub from: String,
    /// Router of the new cell.
    pub to: String,
    /// Procedure of the handover.
    pub procedure: Procedure,
    /// How long the hosts can neither send nor receive.
    pub interruption: Span,
    /// Numbers of the flows that move.
    pub flows: Vec<u32>,
}

impl Handover {
    /// True if packets in flight on the radio link are lost when the hosts leave.
    pub fn loses_air(&self) -> bool {
        self.procedure == Procedure::X2Seamless
    }
}
