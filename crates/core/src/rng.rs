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
        Rng::named(self.seed, name)
    }

    /// Creates the stream of an algorithm. One of a file is named by its path, of which only the part after the last
    /// slash counts, so that its numbers do not depend on the directory.
    pub fn of_algorithm(&self, place: &str, name: &str) -> Rng {
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
        self.get(&format!("{place}{name}"))
    }
}

/// One stream of random numbers: xoshiro256++, or numbers that were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    numbers: Numbers,
    /// What the streams that branch off this one have in common.
    stem: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Numbers {
    Generated(Xoshiro256PlusPlus),
    Given(Box<Given>),
    /// The state of SplitMix64.
    SplitMix(u64),
}

/// Numbers from outside, and how many were asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    draws: Vec<u64>,
    asked: usize,
}

impl Rng {
    fn named(seed: u64, name: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&seed.to_le_bytes());
        hasher.update(name.as_bytes());
        let state = *hasher.finalize().as_bytes();
        let [a, b, c, d, e, f, g, h, ..] = state;
        let stem = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Self { numbers: Numbers::Generated(Xoshiro256PlusPlus::from_seed(state)), stem }
    }

    /// Returns the stream `name` of the owner of this stream, from its beginning. It takes no number from this stream
    /// and does not depend on how many were taken.
    pub fn branch(&self, name: &str) -> Self {
        Self::named(self.stem, name)
    }

    /// Creates a stream that consists of these numbers, such as those that another program has drawn. When they have
    /// run out it draws zeros; [`Rng::missing`] says so, because whoever draws has no way to report an error.
    pub fn given(draws: Vec<u64>) -> Self {
        Self { numbers: Numbers::Given(Box::new(Given { draws, asked: 0 })), stem: 0 }
    }

    /// Creates the stream of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014) with
    /// this state at its beginning. Test programs have it because it takes three lines in any language.
    pub fn split_mix(state: u64) -> Self {
        Self { numbers: Numbers::SplitMix(state), stem: state }
    }

    /// How many numbers were asked for after the given ones had run out.
    #[inline]
    pub fn missing(&self) -> usize {
        match &self.numbers {
            Numbers::Generated(_) | Numbers::SplitMix(_) => 0,
            Numbers::Given(given) => given.asked.saturating_sub(given.draws.len()),
        }
    }

    /// How many of the given numbers were drawn; `None` for a stream that has no end.
    pub fn drawn(&self) -> Option<usize> {
        match &self.numbers {
            Numbers::Generated(_) | Numbers::SplitMix(_) => None,
            Numbers::Given(given) => Some(given.asked.min(given.draws.len())),
        }
    }

    /// Draws 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        match &mut self.numbers {
            Numbers::Generated(generator) => generator.next_u64(),
            Numbers::Given(given) => given.next(),
            Numbers::SplitMix(state) => split_mix(state),
        }
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

#[cold]
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Given {
    #[cold]
    fn next(&mut self) -> u64 {
        let draw = self.draws.get(self.asked).copied();
        self.asked += 1;
        draw.unwrap_or(0)
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
    fn a_branch_depends_on_its_stream_and_its_name_only() {
        let (mut stream, streams) = (Streams::new(7).get("a"), Streams::new(7));
        let first = stream.branch("x").bits();
        stream.bits();
        assert_eq!(stream.branch("x").bits(), first);
        for mut other in [stream.branch("y"), streams.get("b").branch("x"), streams.get("a")] {
            assert_ne!(other.bits(), first);
        }
        let mut again = streams.get("a");
        again.bits();
        assert_eq!(stream, again, "a branch takes no number");
    }

    #[test]
    fn given_numbers_are_drawn_in_order_and_their_end_is_noticed() {
        let mut rng = Rng::given(vec![7, 1 << 63, u64::MAX]);
        assert_eq!((rng.bits(), rng.uniform(), rng.below(10)), (7, 0.5, 9));
        assert_eq!((rng.drawn(), rng.missing()), (Some(3), 0));
        assert_eq!((rng.bits(), rng.bits()), (0, 0));
        assert_eq!((rng.drawn(), rng.missing()), (Some(3), 2));
        assert_eq!(Streams::new(1).get("a").drawn(), None);
    }

    /// The first numbers of Vigna's reference program (splitmix64.c) with the state 1234567.
    #[test]
    fn split_mix_is_that_of_the_reference_program() {
        let mut rng = Rng::split_mix(1_234_567);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([rng.bits(), rng.bits(), rng.bits()], first);
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
