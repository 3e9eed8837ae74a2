//! The times of a periodic update, for algorithms which need no timer for each update.
//!
//! A sample at time T sees the queue before any other event at T. It can therefore be taken later, at the first arrival
//! or departure at or after T, with the queue before that event: in between the queue does not change.

use crate::units::{Instant, Span};

/// An algorithm whose samples still change its state asks to be woken after this many samples. That bounds the number
/// of samples which one packet has to catch up after an idle time.
const MOST_MISSED: u64 = 4096;

/// A clock with a tick at every multiple of its interval.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ticks {
    interval: Span,
    next: Instant,
}

impl Ticks {
    /// Creates the clock; its first tick is one interval after the start. `interval` must be above 0.
    pub(super) fn every(interval: Span) -> Self {
        Self { interval, next: Instant::ZERO + interval }
    }

    /// Returns the number of ticks up to and including `now` since the last call.
    #[inline]
    pub(super) fn due(&mut self, now: Instant) -> u64 {
        if now < self.next {
            return 0;
        }
        let ticks = now.since(self.next).as_nanos() / self.interval.as_nanos() + 1;
        self.next += self.interval * ticks;
        ticks
    }

    /// Returns the time at which missed ticks are to be caught up even if no packet arrives.
    pub(super) fn latest(&self) -> Instant {
        self.next + self.interval * (MOST_MISSED - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tick_is_told_once() {
        let mut ticks = Ticks::every(Span::from_millis(6));
        let told = [5, 6, 6, 11, 12, 60].map(|ms| ticks.due(Instant::ZERO + Span::from_millis(ms)));
        assert_eq!(told, [0, 1, 0, 0, 1, 8]);
        assert_eq!(ticks.latest(), Instant::ZERO + Span::from_millis(60 + 6 * 4096));
        assert_eq!(ticks.due(ticks.latest()), 4096);
    }
}
