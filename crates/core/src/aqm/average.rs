//! The average queue of RED, which the variants of RED and LINDROP share. It judges no packets.
//!
//! Source: Floyd and Jacobson, "Random early detection gateways for congestion avoidance", 1993, §4 and §11.
//!
//! ```text
//! avg = (1 - w) avg + w q             on an arrival to a queue that is not empty
//! avg = (1 - w)^m avg, m = idle / s   after an idle time; s: the time to send a mean packet
//! ```
//!
//! A queue is idle from the departure of its last packet on. Cost: O(1), with one call of `pow` after an idle time.

use crate::config::LinkFacts;
use crate::qdisc::Backlog;
use crate::units::{Bytes, Instant, Limit, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit in which the average counts the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The queue is counted in packets.
    #[default]
    Packets,
    /// The queue is counted in bytes.
    Bytes,
}

/// An exponentially weighted moving average of the queue, updated at arrivals.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Average {
    /// The average, in the unit of [`Mode`].
    pub value: f64,
    /// When the queue became empty; `None` while a packet waits.
    pub idle_since: Option<Instant>,
    weight: f64,
    mode: Mode,
    mean_time: Span,
}

impl Average {
    /// Creates the average of an empty, idle queue before `link`.
    pub fn new(weight: f64, mode: Mode, mean_packet: Bytes, link: &LinkFacts) -> Self {
        let mean_time = link.rate.time_for(mean_packet).max(Span::from_nanos(1));
        Self { value: 0.0, idle_since: Some(Instant::ZERO), weight, mode, mean_time }
    }

    /// Updates the average for a packet that arrives and finds `backlog`.
    #[inline]
    pub fn arrived(&mut self, backlog: Backlog, now: Instant) {
        let q = match self.mode {
            Mode::Packets => backlog.packets as f64,
            Mode::Bytes => backlog.bytes as f64,
        };
        match self.idle_since.take() {
            Some(since) => {
                // §11: as if m packets had arrived to an empty queue.
                let m = now.since(since).as_nanos() as f64 / self.mean_time.as_nanos() as f64;
                self.value *= libm::pow(1.0 - self.weight, m);
            }
            None => self.value += self.weight * (q - self.value),
        }
    }

    /// Notes that the packet which arrived was dropped. An empty queue then stays idle: otherwise the average would not
    /// decay before the next departure, and an average above the hard limit would refuse every packet for ever.
    #[inline]
    pub fn refused(&mut self, backlog: Backlog, now: Instant) {
        self.departed(backlog, now);
    }

    /// Notes that a packet left the queue and that `backlog` still waits.
    #[inline]
    pub fn departed(&mut self, backlog: Backlog, now: Instant) {
        if backlog.packets == 0 {
            self.idle_since = Some(now);
        }
    }
}

/// Converts `limit` to the unit of an average.
pub(super) fn in_unit_of(mode: Mode, limit: Limit, mean_packet: Bytes) -> f64 {
    let mean = mean_packet.get() as f64;
    match (limit, mode) {
        (Limit::Packets(n), Mode::Packets) => n as f64,
        (Limit::Packets(n), Mode::Bytes) => n as f64 * mean,
        (Limit::Bytes(b), Mode::Packets) => b.get() as f64 / mean,
        (Limit::Bytes(b), Mode::Bytes) => b.get() as f64,
    }
}

/// Checks that `weight` can be the weight of an average; the error says what is allowed.
pub(super) fn check_weight(weight: f64) -> Result<(), &'static str> {
    if weight > 0.0 && weight <= 1.0 { Ok(()) } else { Err("must be above 0 and at most 1") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) };

    /// §11: the idle time counts in packets that could have been sent, with its fraction. A packet of 1000 B takes 1
    /// ms.
    #[test]
    fn the_idle_time_is_not_rounded_to_whole_packets() {
        for (idle_us, left) in [(2500, 0.176_776_695), (500, std::f64::consts::FRAC_1_SQRT_2), (1, 0.999_307_093)] {
            let mut average = Average::new(0.5, Mode::Packets, Bytes::new(1000), &LINK);
            average.value = 1.0;
            average.departed(Backlog::default(), Instant::ZERO);
            average.arrived(Backlog::default(), Instant::ZERO + Span::from_micros(idle_us));
            assert!((average.value - left).abs() < 1e-9, "{} after {idle_us} us", average.value);
        }
    }
}
