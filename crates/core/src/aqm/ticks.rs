//! The times of a periodic update, for algorithms that nobody has to wake for each.
//!
//! A sample at time T sees the queue as it was before anything else happens at T. So it can as well be taken later, by
//! the first arrival or departure at or after T, with the queue which that finds. In between nothing changed.

use crate::units::{Instant, Span};

/// An algorithm whose samples still change something asks to be woken after this many. It bounds what one packet has to
/// make up for after an idle time.
const MOST_MISSED: u64 = 4096;

/// A clock that strikes at every multiple of its interval.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ticks {
    interval: Span,
    next: Instant,
}

impl Ticks {
    /// The first tick is one interval after the start. `interval` is above 0.
    pub(super) fn every(interval: Span) -> Self {
        Self { interval, next: Instant::ZERO + interval }
    }

    /// How many ticks there were up to and at `now` that were not yet told.
    #[inline]
    pub(super) fn due(&mut self, now: Instant) -> u64 {
        if now < self.next {
            return 0;
        }
        let ticks = now.since(self.next).as_nanos() / self.interval.as_nanos() + 1;
        self.next += self.interval * ticks;
        ticks
    }

    /// When to make up for missed ticks though no packet came.
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
