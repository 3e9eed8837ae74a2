//! Random sizes: Pareto distributions, lognormal factors, and mixes of given sizes.
//!
//! All functions use `libm`, so that every machine draws the same values.

use penstock_core::rng::Rng;
use penstock_core::units::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::f64::consts::TAU;

/// One size, or a list of them.
#[derive(Debug, Clone)]
pub struct OneOrMore(
    /// The sizes, at least one.
    pub Vec<Bytes>,
);

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeOrList;
        impl<'de> serde::de::Visitor<'de> for SizeOrList {
            type Value = OneOrMore;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a size in quotes with its unit, like \"1200B\", or a list of sizes")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneOrMore, E> {
                text.parse().map(|size| OneOrMore(vec![size])).map_err(E::custom)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMore, A::Error> {
                let mut sizes = Vec::new();
                while let Some(size) = list.next_element()? {
                    sizes.push(size);
                }
                Ok(OneOrMore(sizes))
            }
        }
        deserializer.deserialize_any(SizeOrList)
    }
}

impl schemars::JsonSchema for OneOrMore {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OneOrMore".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (one, more) = (generator.subschema_for::<Bytes>(), generator.subschema_for::<Vec<Bytes>>());
        schemars::json_schema!({ "anyOf": [one, more] })
    }
}

impl Serialize for OneOrMore {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [size] => size.serialize(serializer),
            sizes => sizes.serialize(serializer),
        }
    }
}

/// The Pareto distribution `P(X > x) = (least / x)^shape` for `x >= least`. With a shape up to 2 its variance is
/// infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pareto {
    least: f64,
    shape: f64,
}

impl Pareto {
    /// Creates the distribution with this mean, which equals `shape least / (shape - 1)`; the shape must be above 1.
    pub fn with_mean(mean: f64, shape: f64) -> Self {
        Self { least: mean * (shape - 1.0) / shape, shape }
    }

    /// Draws one value: `least U^(-1/shape)` with `U` uniform in (0, 1].
    pub fn draw(&self, rng: &mut Rng) -> f64 {
        self.least * libm::pow(1.0 - rng.uniform(), -1.0 / self.shape)
    }
}

/// Draws a factor `exp(sigma Z - sigma^2 / 2)` with `Z` standard normal; the mean of the factor is 1.
pub fn lognormal(rng: &mut Rng, sigma: f64) -> f64 {
    // Box-Muller transform. The second value of the pair is not kept, so that each draw takes two random numbers.
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.uniform()));
    let normal = radius * libm::cos(TAU * rng.uniform());
    libm::exp(sigma * normal - sigma * sigma / 2.0)
}

/// A mix of sizes, each of which is drawn as often as its weight says.
#[derive(Debug, Clone)]
pub struct Mix {
    /// The cumulative weight up to each size, and the size.
    steps: Vec<(f64, u16)>,
    rng: Rng,
}

impl Mix {
    /// Creates a mix of sizes with as many weights.
    pub fn new(sizes: &[u16], weights: &[f64], rng: Rng) -> Self {
        let sums = weights.iter().scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Self { steps: sums.zip(sizes.iter().copied()).collect(), rng }
    }

    /// Draws one of the sizes.
    pub fn draw(&mut self) -> u16 {
        let Some((total, last)) = self.steps.last().copied() else { return 0 };
        let at = self.rng.uniform() * total;
        self.steps.iter().find(|(sum, _)| at < *sum).map_or(last, |(_, size)| *size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::rng::Streams;

    const N: u32 = 200_000;

    fn stream(name: &str) -> Rng {
        Streams::new(1).get(name)
    }

    /// With shape 2.5 the variance is finite: `mean^2 / (shape (shape - 2))`, here 0.8 of the squared mean.
    #[test]
    fn a_pareto_has_the_mean_it_is_made_for() {
        let (pareto, mut rng) = (Pareto::with_mean(50_000.0, 2.5), stream("pareto"));
        let mean = (0..N).map(|_| pareto.draw(&mut rng)).sum::<f64>() / f64::from(N);
        let error = 50_000.0 * 0.8f64.sqrt() / f64::from(N).sqrt();
        assert!((mean - 50_000.0).abs() < 5.0 * error, "{mean}");
    }

    /// The web traffic of large delay networks has shape 1.3 and mean 50 kB, hence no size below 11,538 B.
    #[test]
    fn a_pareto_has_the_tail_it_is_named_for() {
        let (pareto, mut rng) = (Pareto::with_mean(50_000.0, 1.3), stream("tail"));
        assert!((pareto.least - 11_538.46).abs() < 0.01);
        let drawn: Vec<f64> = (0..N).map(|_| pareto.draw(&mut rng)).collect();
        assert!(drawn.iter().all(|x| *x >= pareto.least));
        for factor in [2.0f64, 10.0, 100.0] {
            let expected = factor.powf(-1.3);
            let above = drawn.iter().filter(|x| **x > factor * pareto.least).count() as f64 / f64::from(N);
            let error = (expected * (1.0 - expected) / f64::from(N)).sqrt();
            assert!((above - expected).abs() < 5.0 * error, "beyond {factor}: {above} against {expected}");
        }
    }

    /// The mean is 1 and the logarithm is normal with mean `-sigma^2/2` and standard deviation sigma.
    #[test]
    fn a_lognormal_factor_keeps_the_mean() {
        let (sigma, mut rng) = (0.5f64, stream("lognormal"));
        let drawn: Vec<f64> = (0..N).map(|_| lognormal(&mut rng, sigma)).collect();
        let mean = |f: fn(f64) -> f64| drawn.iter().map(|x| f(*x)).sum::<f64>() / f64::from(N);
        let deviation = ((sigma * sigma).exp() - 1.0).sqrt();
        assert!((mean(|x| x) - 1.0).abs() < 5.0 * deviation / f64::from(N).sqrt());
        let log = mean(f64::ln);
        assert!((log + 0.125).abs() < 5.0 * sigma / f64::from(N).sqrt(), "{log}");
        let variance = mean(|x| x.ln() * x.ln()) - log * log;
        assert!((variance - 0.25).abs() < 5.0 * 0.25 * (2.0 / f64::from(N)).sqrt(), "{variance}");
        assert_eq!(lognormal(&mut rng, 0.0), 1.0, "without spread there is none");
    }

    /// The IMIX of packet sizes has weights 7 : 4 : 1.
    #[test]
    fn a_mix_draws_each_size_as_often_as_its_weight_says() {
        let mut mix = Mix::new(&[12, 548, 1472], &[7.0, 4.0, 1.0], stream("mix"));
        let drawn: Vec<u16> = (0..N).map(|_| mix.draw()).collect();
        for (size, share) in [(12, 7.0 / 12.0), (548, 4.0 / 12.0), (1472, 1.0 / 12.0)] {
            let seen = drawn.iter().filter(|s| **s == size).count() as f64 / f64::from(N);
            let error: f64 = (share * (1.0 - share) / f64::from(N)).sqrt();
            assert!((seen - share).abs() < 5.0 * error, "{size}: {seen} against {share}");
        }
    }
}
