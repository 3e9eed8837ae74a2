//! Quantiles in the form of summaries, and the rounding of numbers for files.

use crate::digest::Digest;
use penstock_core::units::Span;
use serde::Serialize;

/// Quantiles of a quantity, in the unit of the field that holds them.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Quantiles {
    /// Arithmetic mean.
    pub mean: f64,
    /// 10th percentile.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest value.
    pub max: f64,
}

impl Quantiles {
    /// Computes nearest-rank quantiles of a list; all are zero for an empty list.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |q: f64| {
            let rank = ((q * sorted.len() as f64).ceil() as usize).max(1) - 1;
            round(sorted.get(rank).copied().unwrap_or(0.0))
        };
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
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

    /// Returns the quantiles in milliseconds.
    pub fn quantiles_ms(&self) -> Quantiles {
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
        assert_eq!(Quantiles::of(&[]).p50, 0.0);
    }
}
