//! Named streams of random numbers. Each consumer has a stream of its own, so that a new consumer does not change the
//! numbers which others draw.
//!
//! ```
//! use penstock_core::rng::Streams;
//! let streams = Streams::new(1);
//! let mut red = streams.get("link0/red");
//! assert_eq!(red.uniform(), streams.get("link0/red").uniform());
//! assert_ne!(red.uniform(), streams.get("link1/red").uniform());
//! ```

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The master seed of a run, from which every stream is derived by name.
#[derive(Debug, Clone, Copy)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// Creates the source of all streams of a run with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Creates the stream with this name, from its beginning. Seed and name determine its numbers on every machine.
    pub fn get(&self, name: &str) -> Rng {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(name.as_bytes());
        Rng(Xoshiro256PlusPlus::from_seed(*hasher.finalize().as_bytes()))
    }
}

/// One stream of random numbers (xoshiro256++).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a number which is uniform in [0, 1), with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws a whole number which is uniform in `0..n` (0 if `n` is 0), by multiplication. The bias is below n / 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Draws from the exponential distribution with the given mean. The logarithm is that of `libm`, so that the result
    /// is identical on every machine.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name_only() {
        let first = Streams::new(7).get("a").bits();
        assert_eq!(first, Streams::new(7).get("a").bits());
        assert_ne!(first, Streams::new(8).get("a").bits());
        assert_ne!(first, Streams::new(7).get("b").bits());
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut rng = Streams::new(1).get("moments");
        let n = 200_000;
        let uniform: f64 = (0..n).map(|_| rng.uniform()).sum::<f64>() / f64::from(n);
        let exponential: f64 = (0..n).map(|_| rng.exponential(3.0)).sum::<f64>() / f64::from(n);
        let below: f64 = (0..n).map(|_| rng.below(10) as f64).sum::<f64>() / f64::from(n);
        // Standard errors: 0.29/447, 3/447, 2.87/447; the bounds are five of them.
        assert!((uniform - 0.5).abs() < 0.0033, "{uniform}");
        assert!((exponential - 3.0).abs() < 0.034, "{exponential}");
        assert!((below - 4.5).abs() < 0.033, "{below}");
    }
}
