//! Virtual time as 64-bit integers: the bytes that a class of weight 1 was sent, in units of 2^-36 bytes.
//!
//! Virtual time wraps. Timestamps which are compared lie within 2^62 of each other: a packet has at most 2^20 bytes, so
//! one packet moves a timestamp by at most 2^56.

use super::{Setup, Weight};
use crate::config::ConfigError;
use crate::units::Bytes;

/// The number of fractional bits of a byte.
const SHIFT: u32 = 36;
/// The virtual time that one byte takes at weight 1.
pub(super) const ONE: u64 = 1 << SHIFT;

/// The virtual time that `size` bytes take at `weight`, rounded down.
#[inline]
pub(super) fn span(size: Bytes, weight: Weight) -> u64 {
    (size.get() << SHIFT) / u64::from(weight.get())
}

/// True if `a` is earlier than `b`.
#[inline]
pub(super) fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// The later of two times.
#[inline]
pub(super) fn later(a: u64, b: u64) -> u64 {
    if before(a, b) { b } else { a }
}

/// The virtual start S = max(F, V) of a class that becomes backlogged at `now` (V) and whose last packet had the finish
/// time `finish` (F). F is at most `ahead` after V when a packet is sent, and V catches up afterwards. If F seems
/// further ahead, virtual time has wrapped since the class was served last, and the class starts at V. `ahead` is that of
/// the least weight, since the class may have had another weight when F was set.
#[inline]
pub(super) fn start(finish: u64, now: u64, ahead: u64) -> u64 {
    if finish.wrapping_sub(now) <= ahead { finish } else { now }
}

/// The virtual clock V of all classes: `size` bytes move it by size / (sum of all weights). The remainder of each
/// division is kept, so that V is never behind a class which receives exactly its share.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clock {
    pub now: u64,
    remainder: u64,
    total: u64,
}

impl Clock {
    pub fn new(weights: &[Weight]) -> Self {
        Self { now: 0, remainder: 0, total: total(weights) }
    }

    /// Moves the clock after `size` bytes were sent.
    #[inline]
    pub fn advance(&mut self, size: Bytes) {
        let work = (size.get() << SHIFT) + self.remainder;
        self.remainder = work % self.total;
        self.now = self.now.wrapping_add(work / self.total);
    }

    /// Moves the clock forward to `at`, unless it is later already.
    #[inline]
    pub fn at_least(&mut self, at: u64) {
        if before(self.now, at) {
            (self.now, self.remainder) = (at, 0);
        }
    }

    /// True if a packet with the virtual start `start` may be served.
    #[inline]
    pub fn has_reached(&self, start: u64) -> bool {
        !before(self.now, start)
    }

    /// Replaces one weight in the sum of weights.
    ///
    /// # Errors
    /// The sum would exceed [`Setup::MAX_TOTAL`].
    pub fn change(&mut self, from: Weight, to: Weight) -> Result<(), ConfigError> {
        self.total = changed(self.total, from, to)?;
        self.remainder = 0;
        Ok(())
    }
}

/// The sum of the weights, at least 1.
pub(super) fn total(weights: &[Weight]) -> u64 {
    weights.iter().map(|weight| u64::from(weight.get())).sum::<u64>().max(1)
}

/// The sum of the weights after one weight changed from `from` to `to`.
///
/// # Errors
/// The sum would exceed [`Setup::MAX_TOTAL`].
pub(super) fn changed(total: u64, from: Weight, to: Weight) -> Result<u64, ConfigError> {
    let total = total - u64::from(from.get()) + u64::from(to.get());
    if total > Setup::MAX_TOTAL {
        return Err(ConfigError::new("weight", "the sum of all weights must be at most 2^30"));
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_beyond_the_end_of_the_integers() {
        let end = u64::MAX - 5;
        assert!(before(end, end.wrapping_add(10)) && !before(end.wrapping_add(10), end) && !before(end, end));
        assert_eq!(later(end, 4), 4);
        assert_eq!(start(4, end, 10), 4);
        assert_eq!(start(4, end, 9), end);
        assert_eq!(start(end, 4, 10), 4);
    }

    #[test]
    fn the_clock_keeps_remainders_and_follows_changes() {
        let of = |weight| Weight::new(weight).unwrap();
        let mut clock = Clock::new(&[of(1), of(2)]);
        (0..3).for_each(|_| clock.advance(Bytes::new(100)));
        assert_eq!(clock.now, 100 * ONE);
        assert!(clock.has_reached(100 * ONE) && !clock.has_reached(100 * ONE + 1));
        clock.change(of(2), of(1)).unwrap();
        clock.advance(Bytes::new(100));
        assert_eq!(clock.now, 150 * ONE);
        assert_eq!(span(Bytes::new(100), of(4)), 25 * ONE);
        assert!(Clock::new(&[Weight::MAX; 1024]).change(Weight::ONE, Weight::MAX).is_err());
    }
}
