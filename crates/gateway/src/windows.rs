//! What became of the windows of TCP.

use crate::held::Held;
use crate::tap::{Entries, Known, Tap};
use penstock_core::units::Instant;
use penstock_shaper::direction::Direction;
use serde::Serialize;
use serde_json::json;

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

impl Tap for [Windows; 2] {
    fn leaves(&mut self, direction: Direction, held: &Held, _: Instant) {
        let Some([came, went]) = held.windows() else { return };
        let windows = &mut self[direction.index()];
        windows.segments += 1;
        windows.rewritten += u64::from(came != went);
        windows.advertised += u64::from(came);
        windows.written += u64::from(went);
    }
    fn status(&self, _: &Known<'_>, told: &mut Entries) {
        told.insert("windows".into(), json!(self));
    }
}
