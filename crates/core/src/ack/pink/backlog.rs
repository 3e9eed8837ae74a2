//! For how long data wait in the queue behind PINK, from what waits whenever a packet leaves.
//!
//! A window of rate times smallest round trip time gives less than that rate while data wait. Windows make up for the
//! time that [`BORNE`] packets take, without which a link that bursts keep busy would be idle for a percent or two of
//! the time. Beyond that a queue makes flows slower, which is what drains it (Theorem 1).

use super::share::time_of;
use crate::units::{Rate, Span};

/// Number of full segments whose time in the queue windows make up for.
const BORNE: u64 = 2;
/// Weights of the two means: one packet counts 1/16, or 1/128.
const FAST: u64 = 16;
const SLOW: u64 = 128;

/// Means of the bytes that wait, times the inverse of the weight of one packet.
#[derive(Debug, Clone, Default)]
pub(super) struct Backlogs {
    fast: u64,
    slow: u64,
}

/// The wait in the queue as it concerns windows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waits {
    /// The part of the wait which makes flows slower.
    pub beyond: Span,
    /// The part for which windows make up.
    pub borne: Span,
}

impl Backlogs {
    /// Notes that `bytes` wait when a packet leaves.
    pub fn note(&mut self, bytes: u64) {
        self.fast = self.fast - self.fast / FAST + bytes;
        self.slow = self.slow - self.slow / SLOW + bytes;
    }

    /// Returns the waits for a flow whose full segments have this payload, on a link of this rate.
    pub fn waits(&self, full: u64, rate: Rate) -> Waits {
        let borne = BORNE * full;
        Waits {
            beyond: time_of((self.fast / FAST).saturating_sub(borne), rate),
            borne: time_of((self.slow / SLOW).min(borne), rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_two_packets_is_borne_and_what_is_beyond_is_not() {
        let mut backlogs = Backlogs::default();
        let rate = Rate::from_bps(10_000_000);
        let waits = |backlogs: &Backlogs| backlogs.waits(1000, rate);
        assert_eq!(waits(&backlogs).borne, Span::ZERO);
        (0..2000).for_each(|_| backlogs.note(1000)); // 1000 bytes take 0.8 ms
        assert!(waits(&backlogs).borne > Span::from_micros(790) && waits(&backlogs).beyond == Span::ZERO);
        (0..2000).for_each(|_| backlogs.note(5000));
        assert_eq!(waits(&backlogs).borne, Span::from_micros(1600));
        assert!(waits(&backlogs).beyond > Span::from_micros(2390), "{:?}", waits(&backlogs));
    }
}
