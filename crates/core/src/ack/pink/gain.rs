//! By how much more than the link windows give out, so that it is not idle.
//!
//! Windows that add up to what the link holds keep it busy only if packets come one by one. Bursts of flows over long paths leave
//! gaps, and a flow over a short path that waits behind them gives less than its share. How much is lost depends on the flows, so it is
//! measured: an integral controller adds half of the part of the time for which the link was idle, and takes away a little
//! while it is not. If nothing comes for a whole interval nobody had anything to send, and it does not count.
//!
//! ```text
//! each 100 ms   idle > 1/128, and somebody can use more:   G += idle / 2     at most 5/4
//!               else, two packets or fewer waited once     G -= 1/256        at least 1
//!               else                                       G -= 1/64
//! no room for data that windows govern                     G = 1 for a minute
//! ```

use super::hosts::INTERVAL;
use crate::units::{Instant, Span};

/// One, and the largest gain.
const WHOLE: u64 = 1 << 16;
const MOST: u64 = WHOLE / 4 * 5;
/// The part of an interval below which a link counts as busy.
const IDLE: u64 = WHOLE / 128;
/// What a busy interval takes away, and one in which more than this always waited.
const DOWN: u64 = WHOLE / 256;
const DOWN_FAST: u64 = WHOLE / 64;
const STANDING: u64 = 3028;
/// For how long nothing more is given out after the queue had no room.
const REST: Span = Span::from_secs(60);

/// The gain, and the measurement under way.
#[derive(Debug, Clone)]
pub(super) struct Gain {
    part: u64,
    since: Instant,
    idle: Span,
    /// Least backlog in bytes that a packet left behind.
    least: u64,
    /// Since when nothing waits.
    empty: Option<Instant>,
    /// Until when the gain is one.
    rests: Instant,
}

impl Default for Gain {
    fn default() -> Self {
        Self { part: WHOLE, since: Instant::ZERO, idle: Span::ZERO, least: u64::MAX, empty: None, rests: Instant::ZERO }
    }
}

impl Gain {
    /// What is given out of `capacity`.
    pub fn of(&self, capacity: u64) -> u64 {
        (u128::from(capacity) * u128::from(self.part) / u128::from(WHOLE)) as u64
    }

    /// Notes that nothing waits.
    #[inline]
    pub fn empty(&mut self, now: Instant) {
        self.empty.get_or_insert(now);
    }

    /// Notes that a packet leaves `waits` bytes behind; `wanted` if somebody whom windows govern can use more.
    #[inline]
    pub fn busy(&mut self, wanted: bool, waits: u64, now: Instant) {
        self.least = self.least.min(waits);
        if let Some(since) = self.empty.take() {
            self.idle = self.idle + now.since(since);
            if now.since(since) >= INTERVAL {
                (self.since, self.idle) = (now, Span::ZERO);
            }
        }
        if now.since(self.since) >= INTERVAL {
            self.judge(wanted, now);
        }
    }

    /// Notes that there was no room for data that windows govern.
    pub fn overflow(&mut self, now: Instant) {
        (self.part, self.rests) = (WHOLE, now + REST);
    }

    fn judge(&mut self, wanted: bool, now: Instant) {
        let took = now.since(self.since).as_nanos();
        let idle = (u128::from(self.idle.as_nanos()) * u128::from(WHOLE) / u128::from(took)) as u64;
        let down = if self.least > STANDING { DOWN_FAST } else { DOWN };
        let more = wanted && idle > IDLE && now >= self.rests;
        self.part = if more { self.part + idle / 2 } else { self.part - down }.clamp(WHOLE, MOST);
        (self.since, self.idle, self.least) = (now, Span::ZERO, u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// Intervals in each of which the link is idle for `idle` ms of 100 and `waits` bytes wait; returns what is given out of 1000.
    fn after(gain: &mut Gain, intervals: std::ops::Range<u64>, idle: u64, waits: u64, wanted: bool) -> u64 {
        for begin in intervals.map(|interval| 100 * interval) {
            if idle > 0 {
                gain.empty(at(begin + 1));
                gain.empty(at(begin + 2)); // it is asked again while nothing waits
            }
            gain.busy(wanted, waits, at(begin + 1 + idle));
            gain.busy(wanted, 2 * waits, at(begin + 100));
        }
        gain.of(1000)
    }

    #[test]
    fn half_of_the_idle_time_is_added_and_goes_while_the_link_is_busy() {
        let mut gain = Gain::default();
        assert_eq!(after(&mut gain, 0..1, 8, 0, true), 1039);
        assert_eq!(after(&mut gain, 1..3, 8, 0, true), 1119);
        assert_eq!(after(&mut gain, 3..11, 0, 3028, true), 1088, "8/256 less");
        assert_eq!(after(&mut gain, 11..19, 8, 0, false), 1057, "idle, but nobody wants more");
        assert_eq!(after(&mut gain, 19..21, 0, 3029, true), 1026, "a queue stands: 2/64 less");
    }

    #[test]
    fn a_pause_does_not_count() {
        let mut gain = Gain::default();
        gain.empty(at(5));
        gain.busy(true, 0, at(105));
        gain.busy(true, 0, at(204));
        assert_eq!(gain.of(1000), 1000, "no interval has passed since it sends again");
        gain.empty(at(205));
        gain.busy(true, 0, at(225));
        assert_eq!(gain.of(1000), 1083, "20 of 120 ms");
    }

    /// A short queue cannot hold more than the link has.
    #[test]
    fn it_is_one_for_a_minute_after_an_overflow() {
        let mut gain = Gain::default();
        assert_eq!(after(&mut gain, 0..1, 8, 0, true), 1039);
        gain.overflow(at(100));
        assert_eq!(after(&mut gain, 1..600, 8, 0, true), 1000);
        assert_eq!(after(&mut gain, 600..601, 8, 0, true), 1039);
    }

    #[test]
    fn it_is_bounded() {
        let mut gain = Gain::default();
        assert_eq!(after(&mut gain, 0..9, 60, 0, true), 1250);
        assert_eq!(after(&mut gain, 9..90, 0, 0, true), 1000);
        assert_eq!(gain.of(u64::MAX), u64::MAX);
    }
}
