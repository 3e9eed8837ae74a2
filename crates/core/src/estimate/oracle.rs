//! Laws that are told the true rates, at once or later, to compare laws with that have to find them.
//!
//! Who hears of a change only by what it does to packets hears of it after a round trip, and needs a few packets to believe it: the
//! late oracle is late by both. It sets the rate of the link and drains no queue that has come by then, so a law that does may have
//! shorter delays where rates change all the time.

use super::{Estimator, Ours, Way};
use crate::packet::TcpView;
use crate::units::{Bytes, Instant, Rate, Span};
use std::collections::VecDeque;

/// The length of a step.
const STEP: Span = Span::from_millis(25);
/// What the late oracle needs besides a round trip.
pub const LATE: Span = Span::from_millis(100);

/// An oracle.
#[derive(Debug)]
pub struct Oracle {
    late: Span,
    rates: [Rate; 2],
    /// What was told and does not hold yet, and when it was told.
    told: VecDeque<(Instant, [Rate; 2])>,
    stepped: Instant,
}

impl Oracle {
    /// Begins with the first rates, in the order of [`Way`]; others hold after this time.
    pub fn new(first: [Rate; 2], late: Span) -> Self {
        Self { late, rates: first, told: VecDeque::new(), stepped: Instant::ZERO }
    }

    /// Tells what the link carries now.
    pub fn tell(&mut self, rates: [Rate; 2], now: Instant) {
        let newest = self.told.back().map_or(self.rates, |(_, rates)| *rates);
        if newest != rates {
            self.told.push_back((now, rates));
        }
    }
}

impl Estimator for Oracle {
    fn pass<S: TcpView>(&mut self, _: Way, _: u64, _: Bytes, _: Option<&S>, _: Instant) {}

    fn due(&self) -> Instant {
        self.stepped + STEP
    }

    fn step(&mut self, _: [Ours; 2], now: Instant) -> [Rate; 2] {
        self.stepped = now;
        while let Some((at, rates)) = self.told.front()
            && *at + self.late <= now
        {
            self.rates = *rates;
            self.told.pop_front();
        }
        self.rates
    }

    fn capacity(&self) -> [Rate; 2] {
        self.rates
    }

    fn measured(&self) -> [bool; 2] {
        [true; 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_holds_after_its_time() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let rates = |mbps: u64| [Rate::from_bps(1_000_000 * mbps); 2];
        let mut oracle = Oracle::new(rates(1), Span::from_millis(140));
        let mut seen = Vec::new();
        for (ms, link) in [(0, 1), (25, 5), (50, 5), (75, 3), (150, 3), (165, 3), (200, 3), (215, 3), (240, 3)] {
            oracle.tell(rates(link), at(ms));
            seen.push(oracle.step(Default::default(), at(ms))[1].as_bps() / 1_000_000);
        }
        assert_eq!(seen, [1, 1, 1, 1, 1, 5, 5, 3, 3]);
        assert_eq!((oracle.due(), oracle.told.len()), (at(265), 0));
    }
}
