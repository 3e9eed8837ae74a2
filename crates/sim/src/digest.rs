//! A small histogram of times for every flow: log-linear buckets of 1/32 of an octave, stored only from the smallest
//! to the largest value seen. (An HDR histogram of two digits takes 3.4 kB; this takes 128 bytes per octave.)

use penstock_core::units::Span;

const MANTISSA_BITS: u32 = 5;
/// Values are counted in units of 1024 ns.
const UNIT_BITS: u32 = 10;

/// Counts of times, with quantiles exact to 1.6 %.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    first_key: u32,
    counts: Vec<u32>,
    total: u64,
    sum_ns: u64,
    min_ns: u64,
}

fn key_of(ns: u64) -> u32 {
    let value = ns >> UNIT_BITS;
    if value < 1 << MANTISSA_BITS {
        return value as u32;
    }
    let exponent = value.ilog2() - MANTISSA_BITS;
    ((exponent + 1) << MANTISSA_BITS) + ((value >> exponent) as u32 - (1 << MANTISSA_BITS))
}

/// The middle of a bucket.
fn value_of(key: u32) -> u64 {
    let (octave, mantissa) = (key >> MANTISSA_BITS, u64::from(key & ((1 << MANTISSA_BITS) - 1)));
    let (low, width) = match octave {
        0 => (mantissa, 1),
        _ => ((mantissa + (1 << MANTISSA_BITS)) << (octave - 1), 1 << (octave - 1)),
    };
    (low << UNIT_BITS) + (width << UNIT_BITS) / 2
}

impl Digest {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let ns = span.as_nanos();
        let key = key_of(ns);
        let index = key.wrapping_sub(self.first_key) as usize;
        match self.counts.get_mut(index) {
            Some(count) => *count += 1,
            None => self.widen(key),
        }
        self.min_ns = if self.total == 0 { ns } else { self.min_ns.min(ns) };
        self.total += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    #[cold]
    fn widen(&mut self, key: u32) {
        if self.counts.is_empty() {
            self.first_key = key;
        } else if key < self.first_key {
            let more = (self.first_key - key) as usize;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first_key = key;
        }
        let index = (key - self.first_key) as usize;
        if index >= self.counts.len() {
            self.counts.reserve_exact(index + 1 - self.counts.len());
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The smallest value; zero if there is none.
    pub fn min(&self) -> Span {
        Span::from_nanos(self.min_ns)
    }

    /// The mean; zero if there is none.
    pub fn mean(&self) -> Span {
        Span::from_nanos(self.sum_ns / self.total.max(1))
    }

    /// The value below or at which a share `q` of all values lies; zero if there is none.
    pub fn quantile(&self, q: f64) -> Span {
        let rank = ((q * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (i, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return Span::from_nanos(value_of(self.first_key + i as u32).max(self.min_ns));
            }
        }
        Span::ZERO
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            }
        }
    }
}
