//! The rate of the link as departures show it, if it is not the one that was told.
//!
//! While packets wait, the time from one departure to the next is the time of a packet on the link. A link whose rate is told
//! rightly shows that rate; one that is slower or faster than told shows how much.

use crate::units::{Bytes, Instant, Rate, Span};

/// How long the link must have been seen busy for a measurement.
const WINDOW: Span = Span::from_millis(20);
/// What is measured counts if it differs from what is used by more than one part in this many.
const DIFFERS: u64 = 16;

/// The rate that is used, and the measurement under way.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    rate: Rate,
    /// Time and size of the last departure, if it left packets behind.
    last: Option<(Instant, Bytes)>,
    bytes: u64,
    busy: Span,
}

impl Pace {
    pub fn new(rate: Rate) -> Self {
        Self { rate, last: None, bytes: 0, busy: Span::ZERO }
    }

    /// Notes a departure that leaves packets behind, or none. Returns the rate from now on, if it is another one.
    pub fn departed(&mut self, size: Bytes, waits: bool, now: Instant) -> Option<Rate> {
        if let Some((at, before)) = self.last {
            self.bytes += before.get();
            self.busy = self.busy + now.since(at);
        }
        self.last = waits.then_some((now, size));
        if self.busy < WINDOW {
            return None;
        }
        let nanos = u128::from(self.busy.as_nanos().max(1));
        let seen = (u128::from(self.bytes) * 8_000_000_000 / nanos).min(u64::MAX.into()) as u64;
        (self.bytes, self.busy) = (0, Span::ZERO);
        let used = self.rate.as_bps();
        if seen == 0 || seen.abs_diff(used) <= used / DIFFERS {
            return None;
        }
        self.rate = Rate::from_bps(seen);
        Some(self.rate)
    }

    /// Notes that the queue is empty.
    pub fn empty(&mut self) {
        self.last = None;
    }
}
