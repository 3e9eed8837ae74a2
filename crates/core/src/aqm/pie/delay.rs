//! The two ways in which PIE measures the queueing delay (RFC 8033 §4.3, §5.2).

use crate::config::ConfigError;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// §5.2: a cycle of DQ_THRESHOLD bytes has the weight DQ_THRESHOLD / 2^16 in the average.
const MAX_DQ_THRESHOLD: Bytes = Bytes::new(1 << 16);

/// How the queueing delay is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// The sojourn time of the packet that left last; zero if that packet left the queue empty.
    #[default]
    Timestamps,
    /// Little's law: the backlog divided by the rate at which packets left.
    DepartureRate,
}

/// The state of an estimator of the queueing delay.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Delay {
    Timestamps {
        /// Sojourn time of the packet that left last.
        sojourn: Span,
    },
    DepartureRate(DepartureRate),
}

/// The time that `threshold` bytes take to leave, averaged over measurement cycles.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DepartureRate {
    threshold: u64,
    /// Average time of a cycle in seconds; zero before the end of the first cycle.
    avg_dq_time: f64,
    /// The current cycle: when it began, and the bytes that left since; `None` outside of a cycle.
    cycle: Option<(Instant, u64)>,
}

/// Checks that DQ_THRESHOLD is above zero and at most 2^16 bytes.
pub(crate) fn validate_threshold(threshold: Bytes) -> Result<(), ConfigError> {
    if threshold > Bytes::ZERO && threshold <= MAX_DQ_THRESHOLD {
        return Ok(());
    }
    let message = "must be above 0B and at most 65536B: it is also the weight of a cycle, in 1/65536";
    Err(ConfigError::new("dq_threshold", message))
}

impl Delay {
    pub(crate) fn new(estimator: Estimator, threshold: Bytes) -> Self {
        match estimator {
            Estimator::Timestamps => Self::Timestamps { sojourn: Span::ZERO },
            Estimator::DepartureRate => {
                Self::DepartureRate(DepartureRate { threshold: threshold.get(), avg_dq_time: 0.0, cycle: None })
            }
        }
    }

    /// Notes that a packet left after it waited for `sojourn`, and that `left` bytes stay in the queue.
    #[inline]
    pub(crate) fn departed(&mut self, size: Bytes, sojourn: Span, left: u64, now: Instant) {
        match self {
            Self::Timestamps { sojourn: last } => *last = if left == 0 { Span::ZERO } else { sojourn },
            Self::DepartureRate(rate) => rate.departed(size.get(), left, now),
        }
    }

    /// Returns the delay of a queue of this many bytes, in seconds.
    #[inline]
    pub(crate) fn of(&self, bytes: u64) -> f64 {
        match self {
            Self::Timestamps { sojourn } => sojourn.as_secs_f64(),
            Self::DepartureRate(rate) => bytes as f64 * rate.avg_dq_time / rate.threshold as f64,
        }
    }
}

impl DepartureRate {
    fn departed(&mut self, size: u64, left: u64, now: Instant) {
        if let Some((since, count)) = &mut self.cycle {
            *count += size;
            if *count >= self.threshold {
                let took = now.since(*since).as_secs_f64();
                self.average(took);
                self.cycle = None;
            }
        }
        // §5.2: a cycle needs enough backlog to keep the link busy until it ends.
        if self.cycle.is_none() && left >= self.threshold {
            self.cycle = Some((now, 0));
        }
    }

    fn average(&mut self, dq_time: f64) {
        let weight = self.threshold as f64 / MAX_DQ_THRESHOLD.get() as f64;
        self.avg_dq_time = match self.avg_dq_time {
            0.0 => dq_time,
            avg => dq_time * weight + avg * (1.0 - weight),
        };
    }

    /// Returns the rate of departures in bytes per second, rounded down; zero before the end of the first cycle.
    pub(crate) fn bytes_per_sec(&self) -> u64 {
        if self.avg_dq_time > 0.0 { (self.threshold as f64 / self.avg_dq_time) as u64 } else { 0 }
    }
}
