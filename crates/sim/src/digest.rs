//! A small histogram of times for every flow, with log-linear buckets of 1/64 of an octave. It stores only the buckets
//! from the smallest to the largest value seen, in 16 bits each until one of them overflows. (An HDR histogram of two
//! digits takes 3.4 kB; this one takes 128 or 256 bytes per octave.)
//!
//! Quantiles are those of pairs of buckets, of 1/32 of an octave, as summaries have had them from the beginning;
//! distributions have all buckets.

use penstock_core::units::Span;

/// Of the buckets that are counted, and of those of quantiles.
const FINE: u32 = 6;
const COARSE: u32 = 5;
/// Values are counted in units of 1024 ns.
const UNIT_BITS: u32 = 10;

/// One counter per bucket, of 16 or 64 bits.
#[derive(Debug, Clone)]
enum Counts {
    Short(Box<[u16]>),
    Long(Box<[u32]>),
}

impl Default for Counts {
    fn default() -> Self {
        Self::Short(Box::default())
    }
}

/// Returns the counts with `before` more buckets at the front, and at least `len` in total.
fn widened<T: Copy + Default>(counts: &[T], before: usize, len: usize) -> Box<[T]> {
    let after = len.saturating_sub(before + counts.len());
    let zeros = |n| std::iter::repeat_n(T::default(), n);
    zeros(before).chain(counts.iter().copied()).chain(zeros(after)).collect()
}

impl Counts {
    /// Adds one to a bucket; returns false if the bucket does not exist or its counter is full.
    #[inline]
    fn add(&mut self, index: usize) -> bool {
        match self {
            Self::Short(counts) => match counts.get_mut(index).map(|n| (n.checked_add(1), n)) {
                Some((Some(more), n)) => *n = more,
                _ => return false,
            },
            Self::Long(counts) => match counts.get_mut(index) {
                Some(n) => *n = n.saturating_add(1),
                None => return false,
            },
        }
        true
    }

    fn lengthen(&mut self) {
        if let Self::Short(counts) = self {
            *self = Self::Long(counts.iter().map(|n| u32::from(*n)).collect());
        }
    }

    /// Makes room for `before` more buckets at the front, and for `len` in total.
    fn widen(&mut self, before: usize, len: usize) {
        match self {
            Self::Short(counts) => *counts = widened(counts, before, len),
            Self::Long(counts) => *counts = widened(counts, before, len),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Short(counts) => counts.len(),
            Self::Long(counts) => counts.len(),
        }
    }

    fn get(&self, index: usize) -> u64 {
        match self {
            Self::Short(counts) => counts[index].into(),
            Self::Long(counts) => counts[index].into(),
        }
    }
}

/// A histogram of times, with quantiles exact to 1.6 %, and a distribution exact to 0.8 %.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    first_key: u32,
    counts: Counts,
    total: u64,
    sum_ns: u64,
    min_ns: u64,
}

fn key_of<const BITS: u32>(ns: u64) -> u32 {
    let value = ns >> UNIT_BITS;
    if value < 1 << BITS {
        return value as u32;
    }
    let exponent = value.ilog2() - BITS;
    ((exponent + 1) << BITS) + ((value >> exponent) as u32 - (1 << BITS))
}

/// Returns the least time of a bucket and its width, in units of 1024 ns.
fn range_of<const BITS: u32>(key: u32) -> (u64, u64) {
    let (octave, mantissa) = (key >> BITS, u64::from(key & ((1 << BITS) - 1)));
    match octave {
        0 => (mantissa, 1),
        _ => ((mantissa + (1 << BITS)) << (octave - 1), 1 << (octave - 1)),
    }
}

/// Returns the middle of a bucket in nanoseconds.
fn value_of<const BITS: u32>(key: u32) -> u64 {
    let (low, width) = range_of::<BITS>(key);
    (low << UNIT_BITS) + (width << UNIT_BITS) / 2
}

/// Returns the bucket of quantiles in which a bucket is.
fn coarse(key: u32) -> u32 {
    key_of::<COARSE>(range_of::<FINE>(key).0 << UNIT_BITS)
}

impl Digest {
    /// Adds one time.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let ns = span.as_nanos();
        let key = key_of::<FINE>(ns);
        let index = key.wrapping_sub(self.first_key) as usize;
        if !self.counts.add(index) {
            self.make_room(key);
        }
        self.min_ns = if self.total == 0 { ns } else { self.min_ns.min(ns) };
        self.total += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Adds a time whose bucket does not exist or is full.
    #[cold]
    fn make_room(&mut self, key: u32) {
        if self.total == 0 {
            self.first_key = key;
        }
        let before = self.first_key.saturating_sub(key);
        self.first_key -= before;
        let index = (key - self.first_key) as usize;
        self.counts.widen(before as usize, index + 1);
        if !self.counts.add(index) {
            self.counts.lengthen();
            self.counts.add(index);
        }
    }

    /// Returns the number of times added.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Returns the sum of all times in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the smallest time; zero if there are no times.
    pub fn min(&self) -> Span {
        Span::from_nanos(self.min_ns)
    }

    /// Returns the mean; zero if there are no times.
    pub fn mean(&self) -> Span {
        Span::from_nanos(self.sum_ns / self.total.max(1))
    }

    /// Returns the time at or below which a share `q` of all times lies; zero if there are no times.
    pub fn quantile(&self, q: f64) -> Span {
        let rank = ((q * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for i in 0..self.counts.len() {
            seen += self.counts.get(i);
            if seen >= rank {
                return self.middle::<COARSE>(coarse(self.first_key + i as u32));
            }
        }
        Span::ZERO
    }

    /// Returns the buckets of quantiles in use, from the smallest: the middle of each and the number of times in it.
    pub fn buckets(&self) -> Vec<(Span, u64)> {
        let mut found: Vec<(u32, u64)> = Vec::new();
        for (key, count) in self.counted() {
            match found.last_mut() {
                Some(last) if last.0 == coarse(key) => last.1 += count,
                _ => found.push((coarse(key), count)),
            }
        }
        found.into_iter().map(|(key, count)| (self.middle::<COARSE>(key), count)).collect()
    }

    /// Iterates over all buckets in use, from the smallest: the middle of each, which is at most 0.8 % and 512 ns from
    /// each time in it, and their number.
    pub fn distribution(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        self.counted().map(|(key, count)| (self.middle::<FINE>(key), count))
    }

    fn counted(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let counts = (0..self.counts.len()).map(|i| (self.first_key + i as u32, self.counts.get(i)));
        counts.filter(|(_, count)| *count > 0)
    }

    fn middle<const BITS: u32>(&self, key: u32) -> Span {
        Span::from_nanos(value_of::<BITS>(key).max(self.min_ns))
    }

    /// Returns the number of bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.counts {
            Counts::Short(counts) => size_of_val::<[u16]>(counts),
            Counts::Long(counts) => size_of_val::<[u32]>(counts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bucket_counts_beyond_sixteen_bits() {
        let mut digest = Digest::default();
        (0..70_000).for_each(|_| digest.record(Span::from_millis(1)));
        digest.record(Span::from_millis(500));
        digest.record(Span::from_micros(2));
        assert_eq!(
            (digest.counts.get((key_of::<FINE>(1_000_000) - digest.first_key) as usize), digest.count()),
            (70_000, 70_002)
        );
        assert!((990..1010).contains(&(digest.quantile(0.999).as_nanos() / 1000)));
        assert_eq!(digest.quantile(1.0).as_nanos() / 8_000_000, 500 / 8);
    }

    /// 64 buckets of an octave: 128 bytes, and 256 bytes once a counter goes beyond 16 bits.
    #[test]
    fn an_octave_takes_128_or_256_bytes() {
        let mut digest = Digest::default();
        assert_eq!(digest.heap_bytes(), 0);
        (64..128).for_each(|part| digest.record(Span::from_nanos(part << 19)));
        assert_eq!(digest.heap_bytes(), 128);
        (0..70_000).for_each(|_| digest.record(Span::from_nanos(80 << 19)));
        assert_eq!(digest.heap_bytes(), 256);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_list(values in prop::collection::vec(1_000u64..10_000_000_000, 1..300)) {
            let mut left = Digest::default();
            values.iter().for_each(|ns| left.record(Span::from_nanos(*ns)));
            let mut sorted = values.clone();
            sorted.sort_unstable();
            prop_assert_eq!(left.count(), values.len() as u64);
            prop_assert_eq!(left.min().as_nanos(), sorted[0]);
            for q in [0.1, 0.5, 0.9, 0.99, 1.0] {
                let exact = sorted[((q * sorted.len() as f64).ceil() as usize).max(1) - 1];
                let got = left.quantile(q).as_nanos();
                prop_assert!(got.abs_diff(exact) <= exact / 62 + 1024, "q {} exact {} got {}", q, exact, got);
                let mut below = 0;
                let rank = (q * sorted.len() as f64).ceil() as u64;
                let fine = left.distribution().find(|(_, count)| { below += count; below >= rank.max(1) });
                let fine = fine.unwrap().0.as_nanos();
                prop_assert!(fine.abs_diff(exact) <= exact / 100 + 512, "q {} exact {} fine {}", q, exact, fine);
            }
            let coarse: u64 = left.buckets().iter().map(|(_, count)| count).sum();
            prop_assert_eq!(coarse, left.count());
        }
    }
}
