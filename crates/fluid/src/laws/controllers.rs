//! Controllers that change a probability at intervals: PI, PIE, and ARED's adaptation of RED.

use super::{Queue, red::Red};
use penstock_core::aqm::{ared, pi, pie, red};
use penstock_core::units::Limit;

/// Times at fixed intervals.
#[derive(Debug, Clone)]
struct Ticks {
    interval: f64,
    next: f64,
}

impl Ticks {
    fn every(interval: f64) -> Self {
        Self { interval, next: interval }
    }

    /// True if a tick is due, which it takes.
    fn take(&mut self, now: f64) -> bool {
        let due = now >= self.next;
        if due {
            self.next += self.interval;
        }
        due
    }
}

/// A controller of the probability with a proportional and an integral part.
#[derive(Debug, Clone)]
pub(crate) struct Controller {
    ticks: Ticks,
    alpha: f64,
    beta: f64,
    reference: f64,
    what: What,
    p: f64,
    old: f64,
}

#[derive(Debug, Clone)]
enum What {
    /// PI holds the queue, in units of these bytes.
    Pi(f64),
    /// PIE holds its delay.
    Pie { mean_packet: f64, derandomize: bool, burst: f64, calm: bool, marks_below: f64 },
}

impl Controller {
    /// Hollot, Misra, Towsley and Gong, "On designing improved controllers for AQM routers supporting TCP flows", 2001, §V:
    /// p += a (q - q_ref) - b (q_old - q_ref), written as p += (a - b) (q - q_ref) + b (q - q_old).
    pub(crate) fn pi(config: &pi::Config) -> Self {
        let mean = config.mean_packet.get() as f64;
        let (reference, unit) = match config.reference {
            Limit::Packets(packets) => (packets as f64, 1.0),
            Limit::Bytes(bytes) => (bytes.get() as f64 / mean, mean),
        };
        Self::new(config.interval.as_secs_f64(), config.a - config.b, config.b, reference, What::Pi(unit))
    }

    /// RFC 8033 §4.2 with §4.1, §4.4, §5.4 and §5.5.
    pub(crate) fn pie(config: &pie::Config) -> Self {
        let what = What::Pie {
            mean_packet: config.mean_packet.get() as f64,
            derandomize: config.derandomize,
            burst: config.max_burst.as_secs_f64(),
            calm: true,
            marks_below: config.ecn_threshold,
        };
        let target = config.target.as_secs_f64();
        Self::new(config.tupdate.as_secs_f64(), config.alpha, config.beta, target, what)
    }

    fn new(interval: f64, alpha: f64, beta: f64, reference: f64, what: What) -> Self {
        Self { ticks: Ticks::every(interval), alpha, beta, reference, what, p: 0.0, old: 0.0 }
    }

    /// Sets what PI counts as one packet, if it counts packets.
    pub(crate) fn counting(mut self, packet: f64) -> Self {
        if let What::Pi(unit) = &mut self.what
            && *unit == 1.0
        {
            *unit = packet;
        }
        self
    }

    pub(crate) fn sample(&mut self, now: f64, queue: &Queue) {
        while self.ticks.take(now) {
            let value = match self.what {
                What::Pi(unit) => queue.bytes / unit,
                What::Pie { .. } => queue.bytes / queue.rate,
            };
            let step = self.alpha * (value - self.reference) + self.beta * (value - self.old);
            self.p = match &mut self.what {
                What::Pi(_) => (self.p + step).clamp(0.0, 1.0),
                What::Pie { burst, calm, .. } => {
                    *burst -= self.ticks.interval;
                    *calm = value < self.reference / 2.0;
                    pie_probability(self.p, step, value, self.old)
                }
            };
            self.old = value;
            self.spare(queue);
        }
    }

    /// §4.4: without congestion the next burst may pass again. §4.1: two packets are no queue.
    fn spare(&mut self, queue: &Queue) {
        if let What::Pie { mean_packet, calm, .. } = &mut self.what {
            *calm = (*calm && self.p < 0.2) || queue.bytes <= 2.0 * *mean_packet;
        }
    }

    /// True if what is ECN-capable is marked: PIE drops it from a probability of 10 % on (RFC 8033 §5.1).
    pub(crate) fn marks(&self) -> bool {
        match self.what {
            What::Pi(_) => true,
            What::Pie { marks_below, .. } => self.p < marks_below,
        }
    }

    /// Returns the probability of a drop.
    ///
    /// DIFFERENCE: PIE's de-randomization (RFC 8033 §5.4) lets 0.85 / p packets pass before it draws again, so that one
    /// packet in 1.85 / p is dropped; RFC 8033 gives p. Pinned by `pie_drops_one_packet_in_185_hundredths_of_a_gap`.
    pub(crate) fn probability(&self) -> f64 {
        match self.what {
            What::Pi(_) => self.p,
            What::Pie { burst, calm, .. } if burst > 0.0 || calm => 0.0,
            What::Pie { derandomize: true, .. } => self.p / 1.85,
            What::Pie { .. } => self.p,
        }
    }
}

/// One update of PIE's probability: RFC 8033 §4.2 and §5.5.
fn pie_probability(p: f64, step: f64, delay: f64, old: f64) -> f64 {
    const LADDER: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    let divisor = LADDER.iter().find(|(below, _)| p < *below).map_or(1.0, |(_, divisor)| *divisor);
    let mut step = step / divisor;
    if p >= 0.1 {
        step = step.min(0.02);
    }
    if delay > 0.25 {
        step += 0.02;
    }
    let decay = if delay == 0.0 && old == 0.0 { 0.98 } else { 1.0 };
    ((p + step) * decay).clamp(0.0, 1.0)
}

/// ARED's adaptation of max_p: Floyd, Gummadi and Shenker, "Adaptive RED", 2001, Figure 2 and §3.3.
#[derive(Debug, Clone)]
pub(crate) struct Adaptive {
    ticks: Ticks,
    low: f64,
    high: f64,
}

impl Adaptive {
    pub(crate) fn new(config: &ared::Config, rate: f64) -> (Red, Self) {
        let c = rate / config.mean_packet.get() as f64;
        let min = (config.target.as_secs_f64() * c / 2.0).max(5.0);
        let max = 3.0 * min;
        let base = red::Config {
            max_probability: config.max_probability,
            mean_packet: config.mean_packet,
            wait: config.wait,
            ..red::Config::default()
        };
        let red = Red::new(&base).with(min, max, -libm::expm1(-1.0 / c));
        let part = 0.4 * (max - min);
        (red, Self { ticks: Ticks::every(config.interval.as_secs_f64()), low: min + part, high: max - part })
    }

    pub(crate) fn sample(&mut self, now: f64, average: f64, red: &mut Red) {
        while self.ticks.take(now) {
            let max_p = &mut red.max_probability;
            if average > self.high && *max_p <= 0.5 {
                *max_p += 0.01_f64.min(*max_p / 4.0);
            } else if average < self.low && *max_p >= 0.01 {
                *max_p *= 0.9;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::units::Span;

    fn queue(bytes: f64) -> Queue {
        Queue { bytes, sojourn: bytes / 1_250_000.0, rate: 1_250_000.0, average: 0.0 }
    }

    #[test]
    fn pi_moves_by_a_and_b() {
        let mut pi = Controller::pi(&pi::Config::default()).counting(1000.0);
        pi.sample(0.00625, &queue(60_000.0));
        // a (60 - 50) - b (0 - 50)
        assert!((pi.probability() - (1.822e-5 * 10.0 + 1.816e-5 * 50.0)).abs() < 1e-12);
    }

    #[test]
    fn pie_drops_one_packet_in_185_hundredths_of_a_gap() {
        let config = pie::Config { max_burst: Span::ZERO, ..pie::Config::default() };
        let mut pie = Controller::pie(&config);
        for n in 1..=2000 {
            pie.sample(f64::from(n) * 0.015, &queue(60_000.0));
        }
        let random = pie::Config { derandomize: false, ..config };
        let mut plain = Controller::pie(&random);
        for n in 1..=2000 {
            plain.sample(f64::from(n) * 0.015, &queue(60_000.0));
        }
        assert_eq!(plain.probability(), 1.0);
        assert!((pie.probability() - 1.0 / 1.85).abs() < 1e-12);
    }

    #[test]
    fn pie_marks_while_its_probability_is_low() {
        let mut pie = Controller::pie(&pie::Config::default());
        assert!(pie.marks());
        (1..=2000).for_each(|n| pie.sample(f64::from(n) * 0.015, &queue(60_000.0)));
        assert!(!pie.marks());
    }

    #[test]
    fn pie_steps_by_the_ladder_of_rfc_8033() {
        assert!((pie_probability(0.0, 0.2, 0.03, 0.03) - 0.2 / 2048.0).abs() < 1e-15);
        assert!((pie_probability(0.05, 0.01, 0.03, 0.03) - 0.055).abs() < 1e-15);
        assert!((pie_probability(0.3, 0.5, 0.03, 0.03) - 0.32).abs() < 1e-15);
        assert!((pie_probability(0.5, 0.0, 0.0, 0.0) - 0.49).abs() < 1e-15);
    }
}
