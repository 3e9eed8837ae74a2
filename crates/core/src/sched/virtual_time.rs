//! Virtual time in 64-bit integers: what a class of weight 1 was sent, in units of 2^-36 bytes.
//!
//! It wraps. Timestamps that are compared lie within 2^62 of each other: a packet has at most 2^20 bytes, so that one
//! never moves a timestamp by more than 2^56.

use super::{Setup, Weight};
use crate::config::ConfigError;
use crate::units::Bytes;

/// Bits below the byte.
const SHIFT: u32 = 36;
/// One byte for weight 1.
pub(super) const ONE: u64 = 1 << SHIFT;

/// How far `size` bytes move a class of this weight.
#[inline]
pub(super) fn span(size: Bytes, weight: Weight) -> u64 {
    (size.get() << SHIFT) / u64::from(weight.get())
}

/// True when `a` is earlier than `b`.
#[inline]
pub(super) fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// The later of two.
#[inline]
pub(super) fn later(a: u64, b: u64) -> u64 {
    if before(a, b) { b } else { a }
}

/// Where a class begins that comes at `now` and was last sent until `finish`: max(F, V). F is at most `ahead` after V
/// when a packet is sent, and less later: one that is further ahead is that of a class which was away for so long that
/// time has wrapped.
#[inline]
pub(super) fn start(finish: u64, now: u64, ahead: u64) -> u64 {
    if finish.wrapping_sub(now) <= ahead { finish } else { now }
}

/// The clock of all classes together: `size` bytes move it by size / (sum of all weights). Divisions keep their
/// remainder, so that it is never behind a class that has exactly its share.
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

    /// `size` bytes were sent.
    #[inline]
    pub fn advance(&mut self, size: Bytes) {
        let work = (size.get() << SHIFT) + self.remainder;
        self.remainder = work % self.total;
        self.now = self.now.wrapping_add(work / self.total);
    }

    /// Not earlier than `at`.
    #[inline]
    pub fn at_least(&mut self, at: u64) {
        if before(self.now, at) {
            (self.now, self.remainder) = (at, 0);
        }
    }

    /// True when a packet that starts at `start` may be served.
    #[inline]
    pub fn has_reached(&self, start: u64) -> bool {
        !before(self.now, start)
    }

    /// One weight changes.
    ///
    /// # Errors
    /// The sum would be too large.
    pub fn change(&mut self, from: Weight, to: Weight) -> Result<(), ConfigError> {
        self.total = changed(self.total, from, to)?;
        self.remainder = 0;
        Ok(())
    }
}

/// The sum of weights.
pub(super) fn total(weights: &[Weight]) -> u64 {
    weights.iter().map(|weight| u64::from(weight.get())).sum::<u64>().max(1)
}

/// The sum when one weight changes.
///
/// # Errors
/// It would be too large.
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
