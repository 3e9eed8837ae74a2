//! What became of the windows of TCP.

use crate::held::Held;
use crate::tap::{Entries, Known, Tap};
use penstock_core::units::Instant;
use penstock_shaper::direction::Direction;
use serde::Serialize;

/// Windows of segments as hosts advertised them and as they were written: sums of the fields of the header, which have the
/// unit of their connection. The ratio of the sums tells how much of the windows is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Windows {
    pub segments: u64,
    /// Of these, those whose window was written anew.
    pub rewritten: u64,
    pub advertised: u64,
    pub written: u64,
}

impl Windows {
    pub fn count(&mut self, held: &Held) {
        let Some([came, went]) = held.windows() else { return };
        self.segments += 1;
        self.rewritten += u64::from(came != went);
        self.advertised += u64::from(came);
        self.written += u64::from(went);
    }
}

impl Tap for [Windows; 2] {
    fn leaves(&mut self, direction: Direction, held: &Held, _: Instant) {
        self[direction.index()].count(held);
    }
    fn status(&self, _: &Known<'_>, told: &mut Entries) {
        told.add("windows", self);
    }
}
