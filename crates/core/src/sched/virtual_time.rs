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
///
/// Packets are chosen when the one before has been sent, so [`Clock::now`] may have its value at the end of that
/// transmission from the beginning on. Arrivals come in between: for them V is [`Clock::so_far`].
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clock {
    /// V when the packet in service has been sent; V itself while there is none.
    pub now: u64,
    /// V, as far as the service of the packet is known.
    so_far: u64,
    /// V when the service of the packet began.
    began: u64,
    /// The packet in service and its class; 0 if there is none.
    in_service: Bytes,
    serving: u32,
    remainder: u64,
    total: u64,
}

impl Clock {
    pub fn new(weights: &[Weight]) -> Self {
        Self { now: 0, so_far: 0, began: 0, in_service: Bytes::ZERO, serving: 0, remainder: 0, total: total(weights) }
    }

    /// V at an arrival: what was sent of the packet in service counts, and no more.
    #[inline]
    pub fn so_far(&self) -> u64 {
        self.so_far
    }

    /// The virtual start of a packet that comes to an empty queue of `class`, whose packet before has the finish time
    /// `finish`. A class whose last packet is in service still is backlogged: it goes on at F, and what it lags behind is
    /// not lost. Else [`start`].
    #[inline]
    pub fn start(&self, class: u32, finish: u64, ahead: u64) -> u64 {
        if self.serving == class && self.in_service != Bytes::ZERO { finish } else { start(finish, self.so_far, ahead) }
    }

    /// Moves V to where it is when `sent` bytes of the packet in service have been sent.
    #[inline]
    pub fn progress(&mut self, sent: Bytes) {
        let work = sent.min(self.in_service).get() << SHIFT;
        self.so_far = later(self.so_far, self.began.wrapping_add(work / self.total));
    }

    /// The packet in service has been sent.
    #[inline]
    pub fn finish(&mut self) {
        (self.so_far, self.in_service) = (self.now, Bytes::ZERO);
    }

    /// Begins the service of a packet of `size`.
    #[inline]
    pub fn advance(&mut self, class: u32, size: Bytes) {
        (self.began, self.so_far, self.in_service, self.serving) = (self.now, self.now, size, class);
        let work = (size.get() << SHIFT) + self.remainder;
        self.remainder = work % self.total;
        self.now = self.now.wrapping_add(work / self.total);
    }

    /// Moves the clock forward to `at`, unless it is later already. No packet is in service.
    #[inline]
    pub fn at_least(&mut self, at: u64) {
        if before(self.now, at) {
            (self.now, self.so_far, self.remainder) = (at, at, 0);
        }
    }

    /// Sets V before the first packet.
    #[cfg(test)]
    pub fn begin(&mut self, now: u64) {
        (self.now, self.so_far) = (now, now);
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

    /// Weights of 4 in all: 400 bytes move V by 100 for who chooses, and for an arrival by what has been sent.
    #[test]
    fn an_arrival_sees_what_was_sent_so_far() {
        let mut clock = Clock::new(&[Weight::ONE; 4]);
        clock.advance(0, Bytes::new(400));
        assert_eq!((clock.so_far(), clock.now), (0, 100 * ONE));
        clock.progress(Bytes::new(300));
        assert_eq!((clock.so_far(), clock.now), (75 * ONE, 100 * ONE));
        clock.progress(Bytes::new(200));
        assert_eq!(clock.so_far(), 75 * ONE, "V does not go back");
        clock.progress(Bytes::new(1 << 40));
        assert_eq!(clock.so_far(), 100 * ONE, "not more than the packet");
        clock.advance(0, Bytes::new(400));
        clock.finish();
        clock.progress(Bytes::new(400));
        assert_eq!(clock.so_far(), 200 * ONE);
    }

    /// Classes are late: F = 50 when V is 100. One that is in service goes on there, another begins at V.
    #[test]
    fn a_class_in_service_goes_on_where_it_was() {
        let mut clock = Clock::new(&[Weight::ONE; 4]);
        clock.advance(2, Bytes::new(400));
        clock.progress(Bytes::new(400));
        assert_eq!([2, 3].map(|class| clock.start(class, 50 * ONE, ONE)), [50 * ONE, 100 * ONE]);
        clock.finish();
        assert_eq!(clock.start(2, 50 * ONE, ONE), 100 * ONE);
    }

    #[test]
    fn the_clock_keeps_remainders_and_follows_changes() {
        let of = |weight| Weight::new(weight).unwrap();
        let mut clock = Clock::new(&[of(1), of(2)]);
        (0..3).for_each(|_| clock.advance(0, Bytes::new(100)));
        assert_eq!(clock.now, 100 * ONE);
        assert!(clock.has_reached(100 * ONE) && !clock.has_reached(100 * ONE + 1));
        clock.change(of(2), of(1)).unwrap();
        clock.advance(0, Bytes::new(100));
        assert_eq!(clock.now, 150 * ONE);
        assert_eq!(span(Bytes::new(100), of(4)), 25 * ONE);
        assert!(Clock::new(&[Weight::MAX; 1024]).change(Weight::ONE, Weight::MAX).is_err());
    }
}
