//! Quantiles in the form of summaries, and the rounding of numbers for files.
//!
//! A number that does not exist, such as a quantile of no values, is NaN ([`MISSING`]), which JSON writes as `null`. It
//! is never zero, which would be a value; and every comparison with it is false, so that no test passes because of it.

use crate::digest::Digest;
use penstock_core::units::Span;
use serde::Serialize;

/// A number of a summary that does not exist.
pub const MISSING: f64 = f64::NAN;

/// True if two numbers are the same, or if both are missing.
pub fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// Implements equality of a struct of numbers, of which one that is missing equals another that is.
macro_rules! equal_or_missing {
    ($name:ident: $($field:ident),+) => {
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                $($crate::quantiles::same(self.$field, other.$field))&&+
            }
        }
    };
}
pub(crate) use equal_or_missing;

/// Implements equality of a struct that is written: what is written alike is equal, also where numbers are missing.
macro_rules! equal_as_written {
    ($name:ident) => {
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                let written = |one: &Self| serde_json::to_value(one).expect("a summary is plain data");
                written(self) == written(other)
            }
        }
    };
}
pub(crate) use equal_as_written;

/// Quantiles of a quantity, in the unit of the field that holds them; all are missing without values.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Quantiles {
    /// Arithmetic mean.
    #[schemars(with = "Option<f64>")]
    pub mean: f64,
    /// 10th percentile.
    #[schemars(with = "Option<f64>")]
    pub p10: f64,
    /// Median.
    #[schemars(with = "Option<f64>")]
    pub p50: f64,
    /// 90th percentile.
    #[schemars(with = "Option<f64>")]
    pub p90: f64,
    /// 99th percentile.
    #[schemars(with = "Option<f64>")]
    pub p99: f64,
    /// Largest value.
    #[schemars(with = "Option<f64>")]
    pub max: f64,
}

equal_or_missing!(Quantiles: mean, p10, p50, p90, p99, max);

impl Quantiles {
    /// The quantiles of no values.
    pub const MISSING: Self =
        Self { mean: MISSING, p10: MISSING, p50: MISSING, p90: MISSING, p99: MISSING, max: MISSING };

    /// Computes nearest-rank quantiles of a list; all are missing for an empty list.
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::MISSING;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |q: f64| {
            let rank = ((q * sorted.len() as f64).ceil() as usize).max(1) - 1;
            round(sorted[rank])
        };
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Self { mean: round(mean), p10: at(0.1), p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1.0) }
    }
}

/// Rounds to six decimal places: more than any of these numbers is accurate to, while files stay small.
pub fn round(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

/// A digest of times which also knows the exact largest time.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// Digest of the times.
    pub digest: Digest,
    max: Span,
}

impl Times {
    /// Adds one time.
    pub fn record(&mut self, span: Span) {
        self.digest.record(span);
        self.max = self.max.max(span);
    }

    /// Returns the times in milliseconds, to 0.8 %, and how many there are of each.
    pub fn distribution_ms(&self) -> Vec<(f64, u64)> {
        self.digest.distribution().map(|(time, count)| (time.min(self.max).as_millis_f64(), count)).collect()
    }

    /// Returns the quantiles in milliseconds; all are missing if there are no times.
    pub fn quantiles_ms(&self) -> Quantiles {
        if self.digest.count() == 0 {
            return Quantiles::MISSING;
        }
        let ms = |span: Span| round(span.as_millis_f64());
        // The middle of the last bucket may lie above the largest time.
        let at = |q: f64| ms(self.digest.quantile(q).min(self.max));
        Quantiles {
            mean: ms(self.digest.mean()),
            p10: at(0.1),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: ms(self.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_nearest_rank() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let q = Quantiles::of(&values);
        assert_eq!((q.mean, q.p10, q.p50, q.p90, q.max), (5.5, 1.0, 5.0, 9.0, 10.0));
    }

    #[test]
    fn quantiles_of_nothing_are_missing_and_null_in_files() {
        let nothing = [Quantiles::of(&[]), Times::default().quantiles_ms()];
        assert_eq!(nothing, [Quantiles::MISSING, Quantiles::MISSING]);
        assert_ne!(nothing[0], Quantiles::of(&[0.0]));
        let told = serde_json::to_value(&nothing[0]).unwrap();
        assert!(told.as_object().unwrap().values().all(serde_json::Value::is_null), "{told}");
    }
}
