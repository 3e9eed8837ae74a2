//! The totals of a replay.

use crate::record::{Fate, Record};
use hdrhistogram::Histogram;
use penstock_core::link_layer::LinkLayer;
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Bytes, Instant, Rate, Span};
use serde::Serialize;

/// What became of the packets of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Name of the algorithm.
    pub aqm: String,
    /// Number of packets that arrived.
    pub packets: u64,
    /// Number of bytes that arrived.
    pub bytes: u64,
    /// Number of packets sent.
    pub sent: u64,
    /// Number of bytes sent.
    pub sent_bytes: u64,
    /// Number of packets that the AQM dropped on arrival.
    pub drop_early: u64,
    /// Of those, the packets that were forced: RED's above its upper threshold, where no packet passes.
    pub drop_forced: u64,
    /// Number of packets dropped because there was no room for them, or to make room for others.
    pub drop_overflow: u64,
    /// Number of packets that the AQM dropped from the queue.
    pub drop_dequeue: u64,
    /// Number of packets that the discipline marked CE.
    pub marked: u64,
    /// Seconds from the first arrival to the end of the last transmission, or to the last drop if that is later.
    pub duration_s: f64,
    /// Bits sent per second of `duration_s`; `None` if that is zero, because no packet was transmitted.
    pub throughput_bps: Option<f64>,
    /// Throughput, with what the link adds to packets, as a share of its rate; `None` without one.
    pub utilization: Option<f64>,
    /// Sojourn times in milliseconds of the packets that were sent; missing if none was.
    pub sojourn_ms: Sojourn,
}

/// A distribution of times in milliseconds. Mean and maximum are exact; percentiles are exact to 0.1 %. Of no times all
/// are missing: NaN, which JSON writes as `null`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sojourn {
    /// Mean.
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

impl Sojourn {
    /// The distribution of no times.
    pub const MISSING: Self =
        Self { mean: f64::NAN, p10: f64::NAN, p50: f64::NAN, p90: f64::NAN, p99: f64::NAN, max: f64::NAN };

    fn bits(self) -> [u64; 6] {
        [self.mean, self.p10, self.p50, self.p90, self.p99, self.max].map(f64::to_bits)
    }
}

impl PartialEq for Sojourn {
    /// Equal numbers are equal, and so are missing ones.
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}

/// Collects the numbers of a [`Summary`].
#[derive(Debug)]
pub(crate) struct Tally {
    summary: Summary,
    rate: Rate,
    /// What the link adds to each packet, and what it has sent with that.
    layer: LinkLayer,
    on_wire: Bytes,
    sojourns: Histogram<u64>,
    sojourn_sum_ns: u128,
    sojourn_max_ns: u64,
    first: Option<Instant>,
    end: Instant,
}

impl Tally {
    pub(crate) fn new(aqm: &str, rate: Rate, layer: LinkLayer) -> Self {
        let summary = Summary {
            aqm: aqm.to_owned(),
            packets: 0,
            bytes: 0,
            sent: 0,
            sent_bytes: 0,
            drop_early: 0,
            drop_forced: 0,
            drop_overflow: 0,
            drop_dequeue: 0,
            marked: 0,
            duration_s: 0.0,
            throughput_bps: None,
            utilization: None,
            sojourn_ms: Sojourn::MISSING,
        };
        // The bounds hold any time of a run: from one nanosecond to 2^62 of them, with three digits.
        let sojourns = Histogram::new_with_bounds(1, 1 << 62, 3).expect("the bounds are constants that fit");
        Self {
            summary,
            rate,
            layer,
            on_wire: Bytes::ZERO,
            sojourns,
            sojourn_sum_ns: 0,
            sojourn_max_ns: 0,
            first: None,
            end: Instant::ZERO,
        }
    }

    /// Records that the link is busy until `end`.
    #[inline]
    pub(crate) fn busy_until(&mut self, end: Instant) {
        self.end = self.end.max(end);
    }

    pub(crate) fn count(&mut self, record: &Record) {
        let summary = &mut self.summary;
        self.first.get_or_insert(record.t_arr);
        self.end = self.end.max(record.t_fate);
        summary.packets += 1;
        summary.bytes += u64::from(record.size);
        match record.fate {
            Fate::Dropped(DropReason::Early) => summary.drop_early += 1,
            Fate::Dropped(DropReason::Overflow) => summary.drop_overflow += 1,
            Fate::Dropped(DropReason::Dequeue) => summary.drop_dequeue += 1,
            Fate::Sent => {
                summary.sent += 1;
                summary.sent_bytes += u64::from(record.size);
                self.on_wire += self.layer.on_wire(Bytes::new(record.size.into()));
                let ns = record.sojourn().as_nanos();
                self.sojourns.saturating_record(ns);
                self.sojourn_sum_ns += u128::from(ns);
                self.sojourn_max_ns = self.sojourn_max_ns.max(ns);
            }
        }
    }

    pub(crate) fn finish(mut self, marked: u64, forced: u64) -> Summary {
        (self.summary.marked, self.summary.drop_forced) = (marked, forced);
        let duration = self.end.since(self.first.unwrap_or(self.end));
        self.summary.duration_s = duration.as_secs_f64();
        if duration > Span::ZERO {
            let per_second = |bytes: u64| bytes as f64 * 8.0 / duration.as_secs_f64();
            self.summary.throughput_bps = Some(per_second(self.summary.sent_bytes));
            self.summary.utilization = Some(per_second(self.on_wire.get()) / self.rate.as_bps() as f64);
        }
        self.summary.sojourn_ms = self.sojourn();
        self.summary
    }

    fn sojourn(&self) -> Sojourn {
        // The histogram returns the upper end of a bucket, which may be above every value in it.
        let quantile = |q: f64| self.sojourns.value_at_quantile(q).min(self.sojourn_max_ns) as f64 / 1e6;
        if self.summary.sent == 0 {
            return Sojourn::MISSING;
        }
        Sojourn {
            mean: self.sojourn_sum_ns as f64 / self.summary.sent as f64 / 1e6,
            p10: quantile(0.10),
            p50: quantile(0.50),
            p90: quantile(0.90),
            p99: quantile(0.99),
            max: self.sojourn_max_ns as f64 / 1e6,
        }
    }
}
