//! What is measured at a queue: delay of each packet that leaves, bytes waiting over time, invariants.

use crate::segment::Segment;
use hdrhistogram::Histogram;
use penstock_core::packet::Packet;
use penstock_core::qdisc::Backlog;
use penstock_core::units::{Bytes, Instant, Span};

const MICROSECOND: u64 = 1_000;
const HOUR: u64 = 3_600_000_000_000;

/// Times of one kind, with quantiles to three digits and an exact mean, smallest and largest.
#[derive(Debug)]
pub struct TimeHistogram {
    counts: Histogram<u64>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Default for TimeHistogram {
    fn default() -> Self {
        let counts = Histogram::new_with_bounds(MICROSECOND, HOUR, 3).expect("the bounds are a histogram's");
        Self { counts, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl TimeHistogram {
    /// Counts one time.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let ns = span.as_nanos();
        self.counts.saturating_record(ns);
        self.sum_ns += u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Their mean; zero if there is none.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count().max(1) as f64
    }

    /// The smallest.
    pub fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// The largest; zero if there is none.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The time at or below which a share `q` of all lies; zero if there is none.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        if self.count() == 0 { 0 } else { self.counts.value_at_quantile(q).clamp(self.min_ns, self.max_ns) }
    }
}

/// Measurements of one queue.
#[derive(Debug)]
pub struct QueueProbe {
    /// Queueing delay of packets sent.
    pub delay: TimeHistogram,
    /// Integral of bytes waiting over time, in byte-nanoseconds.
    area: u128,
    last_change: Instant,
    /// Most bytes ever waiting.
    pub max_bytes: u64,
    /// Most bytes waiting since [`QueueProbe::take_window`].
    window_max: u64,
    window_sent: u64,
    /// TCP segments with payload and UDP datagrams sent.
    pub data_packets: u64,
    /// The invariant on bytes waiting.
    max_allowed: Option<Bytes>,
    /// When and by how much the invariant was first broken.
    pub broken: Option<(Instant, u64)>,
}

impl QueueProbe {
    /// Nothing measured yet; `max_allowed` is the invariant on bytes waiting.
    pub fn new(max_allowed: Option<Bytes>) -> Self {
        Self {
            delay: TimeHistogram::default(),
            area: 0,
            last_change: Instant::ZERO,
            max_bytes: 0,
            window_max: 0,
            window_sent: 0,
            data_packets: 0,
            max_allowed,
            broken: None,
        }
    }

    /// The backlog, as it stood since the last change, is about to change.
    #[inline]
    pub fn before_change(&mut self, backlog: Backlog, now: Instant) {
        self.area += u128::from(backlog.bytes) * u128::from(now.since(self.last_change).as_nanos());
        self.last_change = now;
    }

    /// A packet was taken or refused; `backlog` is what waits now.
    #[inline]
    pub fn after_arrival(&mut self, backlog: Backlog) {
        self.max_bytes = self.max_bytes.max(backlog.bytes);
        self.window_max = self.window_max.max(backlog.bytes);
        if let Some(allowed) = self.max_allowed
            && backlog.bytes > allowed.get()
            && self.broken.is_none()
        {
            self.broken = Some((self.last_change, backlog.bytes));
        }
    }

    /// A packet leaves the queue.
    #[inline]
    pub fn on_departure(&mut self, packet: &Segment, now: Instant) {
        self.delay.record(now.since(packet.at));
        self.window_sent += packet.size().get();
        if packet.len > 0 || packet.is_udp() {
            self.data_packets += 1;
        }
    }

    /// Mean of bytes waiting over `[0, now]`, given what waits now.
    pub fn mean_bytes(&self, backlog: Backlog, now: Instant) -> f64 {
        let last = u128::from(backlog.bytes) * u128::from(now.since(self.last_change).as_nanos());
        (self.area + last) as f64 / now.as_nanos().max(1) as f64
    }

    /// Bytes sent and most bytes waiting since the last call.
    pub fn take_window(&mut self, backlog: Backlog) -> (u64, u64) {
        let window = (self.window_sent, self.window_max.max(backlog.bytes));
        (self.window_sent, self.window_max) = (0, backlog.bytes);
        window
    }
}
