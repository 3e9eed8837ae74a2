//! Histograms of the times of many packets in constant memory, to three significant digits.

use hdrhistogram::Histogram;
use penstock_core::units::Span;
use serde::Serialize;

/// One hour; longer times are counted as one hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A histogram of time spans.
#[derive(Debug, Clone)]
pub struct Spans {
    spans: Histogram<u64>,
    /// Their sum in nanoseconds: the mean is asked for while packets pass, and the histogram would go through all its bins.
    sum: u128,
}

/// The statistics of a histogram, in a unit that its field tells. Of no spans all are missing: NaN, `null` in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest value.
    pub max: f64,
}

impl Default for Spans {
    fn default() -> Self {
        let spans = Histogram::new_with_bounds(1_000, LONGEST_NS, 3);
        Self { spans: spans.expect("the bounds are constants and in order"), sum: 0 }
    }
}

impl Spans {
    /// Adds one span.
    #[inline]
    pub fn record(&mut self, span: Span) {
        self.spans.saturating_record(span.as_nanos());
        self.sum += u128::from(span.as_nanos());
    }

    /// Returns the number of spans added.
    pub fn len(&self) -> u64 {
        self.spans.len()
    }

    /// True if no span was added.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the sum of all spans in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    /// Returns how many spans do not exceed each of `bounds`, which are in order; to the precision of the histogram.
    pub fn up_to<const N: usize>(&self, bounds: [Span; N]) -> [u64; N] {
        let mut counts = [0; N];
        for bin in self.spans.iter_recorded() {
            let at = bounds.partition_point(|bound| bound.as_nanos() < bin.value_iterated_to());
            if let Some(count) = counts.get_mut(at) {
                *count += bin.count_since_last_iteration();
            }
        }
        (1..N).for_each(|at| counts[at] += counts[at - 1]);
        counts
    }

    /// Returns the statistics in multiples of `unit`.
    pub fn percentiles(&self, unit: Span) -> Percentiles {
        let scaled = |ns: f64| if self.is_empty() { f64::NAN } else { ns / unit.as_nanos() as f64 };
        let at = |percent: f64| scaled(self.spans.value_at_percentile(percent) as f64);
        Percentiles {
            mean: scaled(self.sum as f64 / self.len() as f64),
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            max: scaled(self.spans.max() as f64),
        }
    }
}

/// Returns numbers for a table, with their unit and so many decimal places; a dash for each that is missing.
pub fn shown<const N: usize>(numbers: [f64; N], places: usize, unit: &str) -> String {
    numbers.map(|one| if one.is_nan() { "-".into() } else { format!("{one:.places$} {unit}") }).join(", ")
}
