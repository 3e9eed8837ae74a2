//! RED: eq. (3.1) and (3.2), after Misra, Gong and Towsley, "Fluid-based analysis of a network of AQM routers supporting
//! TCP flows with an application to RED", 2000.

use super::Queue;
use penstock_core::aqm::red::{Config, Mode};
use penstock_core::units::Limit;

/// RED as a function of the average queue.
#[derive(Debug, Clone)]
pub(crate) struct Red {
    min: f64,
    max: f64,
    /// Probability at `max`.
    pub(crate) max_probability: f64,
    weight: f64,
    /// Bytes that the average counts as one.
    unit: f64,
    mean_packet: f64,
    gentle: bool,
    wait: bool,
}

/// Returns a threshold in units of `unit` bytes.
fn in_units(limit: Limit, mean_packet: f64, unit: f64) -> f64 {
    match limit {
        Limit::Packets(packets) => packets as f64 * mean_packet / unit,
        Limit::Bytes(bytes) => bytes.get() as f64 / unit,
    }
}

impl Red {
    pub(crate) fn new(config: &Config) -> Self {
        let mean_packet = config.mean_packet.get() as f64;
        let unit = if config.mode == Mode::Bytes { 1.0 } else { mean_packet };
        Self {
            min: in_units(config.min_threshold, mean_packet, unit),
            max: in_units(config.max_threshold, mean_packet, unit),
            max_probability: config.max_probability,
            weight: config.weight,
            unit,
            mean_packet,
            gentle: config.gentle,
            wait: config.wait,
        }
    }

    /// Replaces thresholds and weight, as ARED does; thresholds are in the unit of the average.
    pub(crate) fn with(mut self, min: f64, max: f64, weight: f64) -> Self {
        (self.min, self.max, self.weight) = (min, max, weight);
        self
    }

    /// Eq. (3.2): dx/dt = ln(1 - w) / delta (x - q), where a packet arrives every delta, the time that the link needs for
    /// one. An empty queue decays at the same pace (RED's idle compensation).
    pub(crate) fn average_slope(&self, queue: &Queue) -> f64 {
        let delta = self.mean_packet / queue.rate;
        libm::log1p(-self.weight) / delta * (queue.average - queue.bytes / self.unit)
    }

    /// The probability p(x). RED spaces its drops, so that the mean gap is not 1 / pb.
    ///
    /// DIFFERENCE: eq. (3.1) takes pb. Gaps uniform in 1 .. 1/pb have the mean (1 + 1/pb) / 2, and with `wait` those
    /// uniform in 1/pb .. 2/pb - 1 the mean (3/pb - 1) / 2; what is dropped is one packet in a mean gap. Pinned by
    /// `red_drops_one_packet_in_a_mean_gap`.
    pub(crate) fn probability(&self, average: f64) -> f64 {
        let pb = self.base(average);
        if self.wait { 2.0 * pb / (3.0 - pb) } else { 2.0 * pb / (1.0 + pb) }
    }

    fn base(&self, average: f64) -> f64 {
        let (min, max, top) = (self.min, self.max, self.max_probability);
        match average {
            x if x < min => 0.0,
            x if x < max => top * (x - min) / (max - min),
            x if self.gentle && x < 2.0 * max => top + (1.0 - top) * (x - max) / max,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn red_drops_one_packet_in_a_mean_gap() {
        let red = Red::new(&Config { wait: false, ..Config::default() });
        // At the upper threshold pb = 0.1: gaps are 1 to 10 packets, 5.5 in the mean.
        assert!((red.probability(15.0 - 1e-9) - 1.0 / 5.5).abs() < 1e-6);
        let red = Red::new(&Config { wait: true, ..Config::default() });
        // Gaps of 10 to 19 packets.
        assert!((red.probability(15.0 - 1e-9) - 1.0 / 14.5).abs() < 1e-6);
        assert_eq!(red.probability(4.0), 0.0);
        assert_eq!(red.probability(30.0), 1.0);
    }
}
