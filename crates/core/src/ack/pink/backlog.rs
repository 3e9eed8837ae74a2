//! For how long data wait in the queue behind PINK, from what waits whenever a packet leaves.
//!
//! A window of rate times smallest round trip time gives less than that rate while data wait. Windows make up for the
//! time that [`BORNE`] packets take, without which a link that bursts keep busy would be idle for a percent or two of
//! the time. Beyond that a queue makes flows slower, which is what drains it (Theorem 1).

use super::share::time_of;
use crate::units::{Rate, Span};

/// Number of full segments whose time in the queue windows make up for.
const BORNE: u64 = 3;
/// The same if a unit of the window field is coarse: steps are larger then, and so are the bursts that they make.
const BORNE_COARSE: u64 = 2;
/// Weight of the mean: one packet counts 1/16.
const FAST: u64 = 16;

/// The mean of the bytes that wait, times the inverse of the weight of one packet.
#[derive(Debug, Clone, Default)]
pub(super) struct Backlogs(u64);

impl Backlogs {
    /// Notes that `bytes` wait when a packet leaves.
    pub fn note(&mut self, bytes: u64) {
        self.0 = self.0 - self.0 / FAST + bytes;
    }

    /// Returns the bytes that waited lately.
    pub fn lately(&self) -> u64 {
        self.0 / FAST
    }

    /// Returns the part of the wait that makes flows slower, if full segments have this payload, and the unit of the window
    /// field is `coarse` or not.
    pub fn beyond(&self, full: u64, coarse: bool, rate: Rate) -> Span {
        let borne = if coarse { BORNE_COARSE } else { BORNE };
        time_of(self.lately().saturating_sub(borne * full), rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_three_packets_is_borne_and_what_is_beyond_is_not() {
        let mut backlogs = Backlogs::default();
        let rate = Rate::from_bps(10_000_000);
        let beyond = |backlogs: &Backlogs| backlogs.beyond(1000, false, rate);
        (0..2000).for_each(|_| backlogs.note(3000));
        assert_eq!((backlogs.lately(), beyond(&backlogs)), (3000, Span::ZERO));
        (0..2000).for_each(|_| backlogs.note(5000)); // 1000 bytes take 0.8 ms
        let wait = beyond(&backlogs);
        assert!(wait > Span::from_micros(1590) && wait <= Span::from_micros(1600), "{wait}");
        let wait = backlogs.beyond(1000, true, rate); // with coarse units that of two
        assert!(wait > Span::from_micros(2390) && wait <= Span::from_micros(2400), "{wait}");
    }
}
