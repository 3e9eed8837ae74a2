//! The shared parts of the controllers of delay (PIE, Minstrel PIE, PI2, DualPI2): the proportional integral law, and a
//! periodic update that needs no timer.
//!
//! Between two calls the queue does not change, so an update that was due in between can be caught up at the next call,
//! with the result that it would have had at its own time. Once an update changes nothing, all later ones change
//! nothing either and are skipped. An idle queue therefore costs a few hundred updates at most, however long it is
//! idle, and needs no wakeups. An update that is due at the time of an arrival or departure comes before it.

use crate::qdisc::Backlog;
use crate::units::{Bytes, Instant, Span};

/// Largest number of updates that one call catches up: four hours of 15 ms without an arrival or a departure. Later
/// ones are left out, which bounds the cost after an extremely long pause.
const MOST_AT_ONCE: u32 = 1 << 20;

/// The proportional integral law (RFC 8033 §4.2, RFC 9332 §2.4).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pi {
    alpha: f64,
    beta: f64,
    /// The delay at the last update, in seconds.
    pub(super) qdelay_old: f64,
}

impl Pi {
    /// Creates the law with gains in 1/s and a previous delay of zero.
    pub(super) fn new(alpha: f64, beta: f64) -> Self {
        Self { alpha, beta, qdelay_old: 0.0 }
    }

    /// Returns alpha (qdelay - target) + beta (qdelay - qdelay_old), with times in seconds, and remembers `qdelay`.
    pub(super) fn step(&mut self, qdelay: f64, target: f64) -> f64 {
        let step = self.alpha * (qdelay - target) + self.beta * (qdelay - self.qdelay_old);
        self.qdelay_old = qdelay;
        step
    }
}

/// What an algorithm does at each update.
pub(super) trait Law: Clone + PartialEq {
    /// The state of the queue that an update reads; it does not change between two calls.
    type Queue: Copy;

    /// Makes the update which was due at `at`, with the queue as it was then.
    fn update(&mut self, queue: Self::Queue, at: Instant);

    /// Returns true if the result of an update does not depend on its time.
    fn is_timeless(queue: Self::Queue) -> bool {
        let _ = queue;
        true
    }
}

/// A law and the time of its next update.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Periodic<L> {
    pub(super) law: L,
    next: Instant,
    period: Span,
}

impl<L: Law> Periodic<L> {
    /// Creates a timer with updates at `first` and every `period` (above zero) after that.
    pub(super) fn new(law: L, first: Span, period: Span) -> Self {
        Self { law, next: Instant::ZERO + first, period }
    }

    /// Catches up the updates that were due until `now`, all with the state `queue`.
    #[inline]
    pub(super) fn catch_up(&mut self, queue: L::Queue, now: Instant) {
        if now >= self.next {
            self.make_up(queue, now);
        }
    }

    #[cold]
    fn make_up(&mut self, queue: L::Queue, now: Instant) {
        self.update(queue);
        let mut made = 1;
        // Times saturate: at `Instant::MAX` the next update can be no later.
        while now >= self.next && self.next < Instant::MAX {
            let before = self.law.clone();
            self.update(queue);
            made += 1;
            if made == MOST_AT_ONCE || (L::is_timeless(queue) && self.law == before) {
                self.skip_to(now);
            }
        }
    }

    fn update(&mut self, queue: L::Queue) {
        self.law.update(queue, self.next);
        self.next += self.period;
    }

    /// Skips the updates that were due until `now`.
    fn skip_to(&mut self, now: Instant) {
        if now >= self.next {
            let due = now.since(self.next).as_nanos() / self.period.as_nanos() + 1;
            self.next += self.period * due;
        }
    }
}

/// Returns the backlog before the head packet, of `size`, left the queue.
#[inline]
pub(super) fn before_departure(left: Backlog, size: Bytes) -> Backlog {
    let mut backlog = left;
    backlog.add(size);
    backlog
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts down to zero, then stands still.
    #[derive(Debug, Clone, PartialEq)]
    struct CountDown(u64);

    impl Law for CountDown {
        type Queue = Backlog;

        fn update(&mut self, _: Backlog, _: Instant) {
            self.0 = self.0.saturating_sub(1);
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn an_update_comes_at_its_time_and_before_what_else_happens_then() {
        let mut timer = Periodic::new(CountDown(100), Span::from_millis(500), Span::from_millis(15));
        for (ms, updates) in [(499, 0), (500, 1), (514, 1), (515, 2), (559, 4), (560, 5)] {
            timer.catch_up(Backlog::default(), at(ms));
            assert_eq!(timer.law, CountDown(100 - updates), "at {ms} ms");
        }
    }

    #[test]
    fn updates_made_up_for_are_those_that_a_timer_would_have_made() {
        for gap in [1, 14, 15, 16, 100, 1_000_000, 999_999_999] {
            let (mut late, mut timed) =
                (Periodic::new(CountDown(20), Span::from_millis(15), Span::from_millis(15)), 20);
            late.catch_up(Backlog::default(), at(gap));
            timed -= (gap / 15).min(20);
            assert_eq!(late.law, CountDown(timed));
            assert_eq!(late.next, at((gap / 15 + 1) * 15), "the phase is kept over {gap} ms");
        }
    }

    #[test]
    fn years_on_a_link_cost_no_more_than_a_million_updates() {
        let most = u64::from(MOST_AT_ONCE);
        let mut timer = Periodic::new(CountDown(most + 5), Span::from_millis(1), Span::from_millis(1));
        timer.catch_up(Backlog::default(), at(most + 1_000_000));
        assert_eq!(timer.law, CountDown(5));
        assert_eq!(timer.next, at(most + 1_000_001));
    }

    #[test]
    fn the_end_of_time_is_reached() {
        let mut timer = Periodic::new(CountDown(1000), Span::from_millis(15), Span::from_nanos(u64::MAX / 3));
        timer.catch_up(Backlog::default(), Instant::MAX);
        timer.catch_up(Backlog::default(), Instant::MAX);
        assert_eq!(timer.next, Instant::MAX);
    }

    #[test]
    fn the_law_weighs_distance_and_change() {
        let mut pi = Pi::new(0.125, 1.25);
        // 5 ms above the target of 15 ms after 0: 0.125 * 0.005 + 1.25 * 0.02 = 0.025625.
        assert!((pi.step(0.02, 0.015) - 0.025_625).abs() < 1e-15);
        // Still there: 0.125 * 0.005.
        assert!((pi.step(0.02, 0.015) - 0.000_625).abs() < 1e-15);
    }
}
