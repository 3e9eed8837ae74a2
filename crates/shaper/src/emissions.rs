//! Measurements of the emulator when it writes the packets of one direction, and of the time that an algorithm of
//! somebody's own takes.

use crate::histogram::{Percentiles, Spans};
use penstock_core::units::{Bytes, Rate, Span};
use serde::Serialize;

/// Counters of the packets that left a bottleneck for the receiving interface.
#[derive(Debug, Default)]
pub struct Emissions {
    /// How much later than it was due each packet was written.
    pub lateness: Spans,
    /// Number of packets that the receiving interface refused.
    pub refused: u64,
}

/// An algorithm may take this part of the time which a packet takes on the wire; the rest is for reading and writing it.
const BUDGET: f64 = 0.5;

/// The time that disciplines take, measured when one of them is of somebody's own crate.
#[derive(Debug, Default)]
pub struct Stopwatch {
    packets: Spans,
    /// Time since the last arrival, which counts for the next one.
    pending: Span,
}

/// What the disciplines of both directions take for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AlgorithmTime {
    /// Time for a packet, from its arrival to its departure, in microseconds.
    pub packet_us: Percentiles,
    /// The budget in microseconds: half of the time that a mean packet takes on the faster wire; missing without one.
    pub budget_us: f64,
}

impl Stopwatch {
    /// Adds time in which no packet arrived.
    pub fn add(&mut self, took: Span) {
        self.pending = self.pending + took;
    }

    /// Adds the time of an arrival.
    pub fn arrived(&mut self, took: Span) {
        self.packets.record(std::mem::take(&mut self.pending) + took);
    }

    /// Returns the statistics; `mean` is the mean size of a packet, and `rate` that of the faster wire.
    pub fn read(&self, mean: Bytes, rate: Rate) -> AlgorithmTime {
        let wire_us = mean.as_f64() * 8e6 / rate.as_bps().max(1) as f64;
        let budget_us = if self.packets.is_empty() { f64::NAN } else { BUDGET * wire_us };
        AlgorithmTime { packet_us: self.packets.percentiles(Span::from_micros(1)), budget_us }
    }
}

impl AlgorithmTime {
    /// True if a mean packet takes longer than the budget.
    pub fn is_over(&self) -> bool {
        self.packet_us.mean > self.budget_us
    }
}
