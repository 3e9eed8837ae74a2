//! Hosts that move from one cell to another while the run goes on: `[[handovers]]`.

use penstock_core::units::Span;

/// The procedure of a handover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Procedure {
    /// Between neighbours; nothing is lost.
    X2Lossless,
    /// Between neighbours; what is in the air is lost.
    X2Seamless,
    /// Through the core network; nothing is lost.
    S1,
}

impl Procedure {
    /// All of them, with their words.
    pub const ALL: [(&'static str, Self); 3] =
        [("x2-lossless", Self::X2Lossless), ("x2-seamless", Self::X2Seamless), ("s1", Self::S1)];

    /// The word of scenarios.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, one)| *one == self).map_or("s1", |(name, _)| name)
    }
}

/// Hosts that move.
#[derive(Debug, Clone, PartialEq)]
pub struct Handover {
    /// When they leave their cell.
    pub at: Span,
    /// Its router.
    pub from: String,
    /// The router of the cell to which they go.
    pub to: String,
    /// How.
    pub procedure: Procedure,
    /// How long they exchange nothing.
    pub interruption: Span,
    /// The numbers of their flows.
    pub flows: Vec<u32>,
}

impl Handover {
    /// What is in the air when they leave is lost.
    pub fn loses_air(&self) -> bool {
        self.procedure == Procedure::X2Seamless
    }
}
