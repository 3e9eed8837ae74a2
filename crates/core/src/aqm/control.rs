//! What the controllers of delay (PIE, Minstrel PIE, PI2, DualPI2) share: the proportional integral law, and a periodic
//! update that needs no timer.
//!
//! Between two calls the queue does not change, so an update that was due in between can be made up for at the next
//! call, with the result it would have had at its time. Once an update changes nothing, all that follow change nothing
//! either, and are skipped: an idle queue costs a few hundred updates at most, however long it is idle, and no wakeups.
//! An update that is due at the very time of an arrival or departure comes before it.

use crate::qdisc::Backlog;
use crate::units::{Bytes, Instant, Span};

/// Most updates made up for at once: four hours of 15 ms without an arrival or a departure. Those beyond are left out,
/// so that a packet that takes years on its link costs no hours here.
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
    /// With gains in 1/s.
    pub(super) fn new(alpha: f64, beta: f64) -> Self {
        Self { alpha, beta, qdelay_old: 0.0 }
    }

    /// alpha (qdelay - target) + beta (qdelay - qdelay_old); times in seconds.
    pub(super) fn step(&mut self, qdelay: f64, target: f64) -> f64 {
        let step = self.alpha * (qdelay - target) + self.beta * (qdelay - self.qdelay_old);
        self.qdelay_old = qdelay;
        step
    }
}

/// What is done at each update.
pub(super) trait Law: Clone + PartialEq {
    /// What it looks at: what does not change between two calls.
    type Queue: Copy;

    /// The update at `at`, with the queue as it is.
    fn update(&mut self, queue: Self::Queue, at: Instant);

    /// True when the time of an update makes no difference to its result.
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
    /// Updates at `first` and every `period` (above zero) after that.
    pub(super) fn new(law: L, first: Span, period: Span) -> Self {
        Self { law, next: Instant::ZERO + first, period }
    }

    /// Makes up for the updates due until `now`, while `queue` stood.
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
        // At the end of time the next update stays there.
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

    /// Passes over the updates due until `now`.
    fn skip_to(&mut self, now: Instant) {
        if now >= self.next {
            let due = now.since(self.next).as_nanos() / self.period.as_nanos() + 1;
            self.next += self.period * due;
        }
    }
}

/// The queue before its head, of `size`, left it.
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
