//! Measurements at a queue: the delay of each packet that leaves, the bytes waiting over time, and invariants.

use crate::segment::Segment;
use hdrhistogram::Histogram;
use penstock_core::qdisc::Backlog;
use penstock_core::units::{Bytes, Instant, Span};

const MICROSECOND: u64 = 1_000;
const HOUR: u64 = 3_600_000_000_000;

/// What a link has sent is counted in billionths of a bit, nanoseconds times bits per second: this many are a bit.
pub const BILLIONTHS: u64 = 1_000_000_000;

/// A histogram of times, with quantiles exact to three digits and an exact mean, minimum and maximum.
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
    /// Adds one time.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let ns = span.as_nanos();
        self.counts.saturating_record(ns);
        self.sum_ns += u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Returns the number of times added.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Returns the sum of all times in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Returns the mean in nanoseconds; zero if there are no times.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count().max(1) as f64
    }

    /// Returns the smallest time in nanoseconds; `u64::MAX` if there are no times.
    pub fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// Returns the largest time in nanoseconds; zero if there are no times.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the time in nanoseconds at or below which a share `q` of all times lies; zero if there are no times.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        if self.count() == 0 { 0 } else { self.counts.value_at_quantile(q).clamp(self.min_ns, self.max_ns) }
    }
}

/// Neighbouring times are counted together up to this factor, so that a distribution is short.
const BUCKET: f64 = 1.009;

impl TimeHistogram {
    /// Returns the distribution: pairs of a time in nanoseconds and the number of times above the pair before and up to
    /// it. A time is at most 1 % and 512 ns, the width of the narrowest count, above the smallest that it stands for.
    pub fn distribution(&self) -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut from = 0;
        for bucket in self.counts.iter_recorded() {
            let (value, count) = (bucket.value_iterated_to(), bucket.count_since_last_iteration());
            match found.last_mut() {
                Some(last) if value as f64 <= from as f64 * BUCKET => *last = (value, last.1 + count),
                _ => {
                    from = value;
                    found.push((value, count));
                }
            }
        }
        found.iter_mut().for_each(|(value, _)| *value = (*value).min(self.max_ns));
        found
    }
}

/// What a queue did in an interval of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Bits that left the link in the window: of a packet that was being transmitted at its begin or end, a part.
    pub sent_bits: f64,
    /// Length of the window in seconds.
    pub seconds: f64,
    /// Largest number of bytes waiting.
    pub max_bytes: u64,
    /// Mean of the bytes waiting, over time.
    pub mean_bytes: f64,
    /// Mean queueing delay of the packets that left; NaN if none did.
    pub mean_delay_ns: f64,
}

/// The measurements of one queue.
#[derive(Debug)]
pub struct QueueProbe {
    /// Queueing delay of the packets that were sent.
    pub delay: TimeHistogram,
    /// Integral of bytes waiting over time, in byte-nanoseconds.
    area: u128,
    last_change: Instant,
    /// Largest number of bytes waiting in the whole run.
    pub max_bytes: u64,
    /// Largest number of bytes waiting since the last [`QueueProbe::take_window`].
    window_max: u64,
    /// When the window began, and at that time: what the link had sent, `area`, the sum of delays, the number of delays.
    window_begin: (Instant, u128, u128, u128, u64),
    /// Number of TCP segments with payload and UDP datagrams sent.
    pub data_packets: u64,
    /// The invariant on the bytes waiting; `None` without one.
    max_allowed: Option<Bytes>,
    /// When the invariant was first violated, and how many bytes waited then.
    pub broken: Option<(Instant, u64)>,
}

impl QueueProbe {
    /// Creates a probe without measurements; `max_allowed` is the invariant on the bytes waiting.
    pub fn new(max_allowed: Option<Bytes>) -> Self {
        Self {
            delay: TimeHistogram::default(),
            area: 0,
            last_change: Instant::ZERO,
            max_bytes: 0,
            window_max: 0,
            window_begin: (Instant::ZERO, 0, 0, 0, 0),
            data_packets: 0,
            max_allowed,
            broken: None,
        }
    }

    /// Adds the time since the last change. Must be called before each change; `backlog` is what has waited since the
    /// last one.
    #[inline]
    pub fn before_change(&mut self, backlog: Backlog, now: Instant) {
        self.area += u128::from(backlog.bytes) * u128::from(now.since(self.last_change).as_nanos());
        self.last_change = now;
    }

    /// Records an arrival, whether it was enqueued or dropped; `backlog` is what waits after it.
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

    /// Records a packet which leaves the queue to be sent.
    #[inline]
    pub fn on_departure(&mut self, packet: &Segment, now: Instant) {
        self.delay.record(now.since(packet.at));
        if packet.len > 0 || packet.is_udp() {
            self.data_packets += 1;
        }
    }

    /// Returns the mean of the bytes waiting over `[0, now]`; `backlog` is what waits now.
    pub fn mean_bytes(&self, backlog: Backlog, now: Instant) -> f64 {
        self.area_until(backlog, now) as f64 / now.as_nanos().max(1) as f64
    }

    fn area_until(&self, backlog: Backlog, now: Instant) -> u128 {
        self.area + u128::from(backlog.bytes) * u128::from(now.since(self.last_change).as_nanos())
    }

    /// Returns the measurements since the last call and begins a new window; `backlog` is what waits now, `sent` what
    /// the link has sent, in billionths of a bit.
    pub fn take_window(&mut self, backlog: Backlog, sent: u128, now: Instant) -> Window {
        let (begin, sent_before, area, delays_ns, packets) = self.window_begin;
        let (until, left) = (self.area_until(backlog, now), self.delay.count() - packets);
        let sent = sent.max(sent_before); // what a division left over can reach into the time before its packet
        let window = Window {
            sent_bits: (sent - sent_before) as f64 / BILLIONTHS as f64,
            seconds: now.since(begin).as_secs_f64(),
            max_bytes: self.window_max.max(backlog.bytes),
            mean_bytes: (until - area) as f64 / now.since(begin).as_nanos().max(1) as f64,
            mean_delay_ns: (self.delay.sum_ns - delays_ns) as f64 / left as f64,
        };
        self.window_begin = (now, sent, until, self.delay.sum_ns, self.delay.count());
        self.window_max = backlog.bytes;
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Payload;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    const BITS: u128 = BILLIONTHS as u128;

    fn waiting(bytes: u64) -> Backlog {
        Backlog { packets: u64::from(bytes > 0), bytes }
    }

    /// Of the times 1 to 10,000 us, as many lie up to each time of the distribution as the time is in microseconds.
    #[test]
    fn a_distribution_counts_every_time_once() {
        let mut histogram = TimeHistogram::default();
        (1..=10_000).for_each(|us| histogram.record(Span::from_micros(us)));
        let found = histogram.distribution();
        assert_eq!(found.iter().map(|(_, count)| count).sum::<u64>(), 10_000);
        assert!(found.is_sorted_by(|a, b| a.0 < b.0), "{found:?}");
        assert!(found.len() < 700, "{}", found.len());
        let (mut below, mut before) = (0, 0);
        for (ns, count) in found {
            below += count;
            // The smallest time that it stands for is 1 us above the time before it.
            assert!(ns as f64 <= 1.011 * (before + 1000) as f64 + 512.0, "{ns} ns after {before} ns");
            before = ns;
            assert!((below as f64 - ns as f64 / 1e3).abs() <= 1.0 + 0.002 * below as f64, "{below} up to {ns} ns");
        }
        assert_eq!(TimeHistogram::default().distribution(), []);
    }

    /// 1000 B wait from 250 to 750 ms and from 1900 to 2100 ms, which is 500, 100 and 100 B on average. The first
    /// packet is sent 500 ms after its arrival, the second 200 ms after.
    #[test]
    fn a_window_is_a_mean_over_its_own_time() {
        let mut probe = QueueProbe::new(None);
        let mut packet = Segment::udp(0, true, Payload { seq: 0, len: 972 });
        let windows = [(250, 750), (1900, 2100)].map(|(come, go)| {
            probe.before_change(waiting(0), at(come));
            probe.after_arrival(waiting(1000));
            packet.at = at(come);
            let full = (come == 1900).then(|| probe.take_window(waiting(1000), 8000 * BITS, at(2000)));
            probe.before_change(waiting(1000), at(go));
            probe.on_departure(&packet, at(go));
            let (end, bits) = if go == 750 { (1000, 8000) } else { (3000, 16_000) };
            (full, probe.take_window(waiting(0), bits * BITS, at(end)))
        });
        let [(None, first), (Some(second), third)] = windows else { panic!("one window ends with a full queue") };
        assert_eq!([first, second, third].map(|w| w.mean_bytes), [500.0, 100.0, 100.0]);
        assert_eq!([first, second, third].map(|w| w.max_bytes), [1000; 3]);
        assert_eq!(
            [first, second, third].map(|w| (w.sent_bits, w.seconds)),
            [(8000.0, 1.0), (0.0, 1.0), (8000.0, 1.0)]
        );
        assert_eq!((first.mean_delay_ns, third.mean_delay_ns), (500e6, 200e6));
        assert!(second.mean_delay_ns.is_nan(), "nothing left in it");
    }
}
