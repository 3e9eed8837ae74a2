//! The results of a run: as one JSON object, or as a table for people.

use crate::bottleneck::{Bottleneck, Config};
use crate::classify::Unclassified;
use crate::cli::Plan;
use crate::direction::Direction;
use crate::emissions::Emissions;
use crate::histogram::Percentiles;
use crate::path::Path;
use penstock_core::packet::Packet;
use penstock_core::qdisc::Backlog;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Limit, Span};
use serde::Serialize;
use std::fmt;

/// Bound of the lateness of packets. If more than one packet of a hundred was later than this, the run is disturbed:
/// its numbers depend on the machine as much as on the discipline.
pub const DISTURBED_ABOVE: Span = Span::from_millis(1);

const MILLISECOND: Span = Span::from_millis(1);
const MICROSECOND: Span = Span::from_micros(1);

/// The results of a whole run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Duration of the run in seconds.
    pub elapsed_s: f64,
    /// Seed of every random stream.
    pub seed: u64,
    /// True if the 99th percentile of the lateness in a direction was above `disturbed_above_us`.
    pub disturbed: bool,
    /// The bound [`DISTURBED_ABOVE`] in microseconds.
    pub disturbed_above_us: f64,
    /// Numbers of packets that were not shown to elements on the ACK path.
    pub unclassified: Unclassified,
    /// Results from left to right.
    pub forward: DirectionReport,
    /// Results from right to left.
    pub reverse: DirectionReport,
}

/// The results of one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionReport {
    /// Name of the discipline.
    pub aqm: String,
    /// Parameters of the discipline.
    pub parameters: AnyConfig,
    /// Rate of the wire in bits per second.
    pub rate_bps: u64,
    /// One-way delay in milliseconds.
    pub delay_ms: f64,
    /// Limit of the queue.
    pub limit: Limit,
    /// Packets and bytes that the sending interface gave.
    pub arrived: Backlog,
    /// Packets and bytes that were given to the receiving interface.
    pub delivered: Backlog,
    /// Packets dropped, by cause.
    pub dropped: Dropped,
    /// Number of packets marked CE.
    pub marked: u64,
    /// Packets and bytes that waited in the queue at the end.
    pub waiting: Backlog,
    /// Number of packets that were sent and that the wire lost.
    pub lost: u64,
    /// Number of packets on the wire or in the delay line at the end.
    pub in_flight: u64,
    /// Number of packets that were due but refused by the receiving interface.
    pub refused: u64,
    /// Sojourn times in milliseconds of the packets that were not dropped.
    pub sojourn_ms: Percentiles,
    /// How much later than they were due packets were written, in microseconds.
    pub lateness_us: Percentiles,
}

/// Numbers of packets dropped at the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Number of packets that the AQM dropped on arrival.
    pub early: u64,
    /// Of those, the packets that were forced: RED's above its upper threshold, where no packet passes.
    pub forced: u64,
    /// Number of packets dropped because there was no room.
    pub overflow: u64,
    /// Number of packets that the AQM dropped from the queue.
    pub dequeue: u64,
}

impl Dropped {
    /// Returns the number of all packets dropped.
    pub fn total(&self) -> u64 {
        self.early + self.overflow + self.dequeue
    }
}

impl Report {
    /// Creates the report from the counters at the end of a run.
    pub fn new<P: Packet>(
        plan: &Plan,
        path: &Path<P>,
        emissions: &[Emissions; 2],
        unclassified: Unclassified,
        elapsed: Span,
    ) -> Self {
        let one =
            |d: Direction| DirectionReport::new(&plan.bottlenecks[d.index()], path.direction(d), &emissions[d.index()]);
        Self {
            elapsed_s: elapsed.as_secs_f64(),
            seed: plan.seed,
            disturbed: emissions.iter().any(|e| e.lateness.percentile(99.0) > DISTURBED_ABOVE),
            disturbed_above_us: DISTURBED_ABOVE.as_nanos() as f64 / 1e3,
            unclassified,
            forward: one(Direction::Forward),
            reverse: one(Direction::Reverse),
        }
    }
}

impl DirectionReport {
    fn new<P: Packet>(config: &Config, bottleneck: &Bottleneck<P>, emissions: &Emissions) -> Self {
        let stats = bottleneck.stats();
        debug_assert_eq!(bottleneck.check(), Ok(()));
        Self {
            aqm: config.aqm.name().to_owned(),
            parameters: config.aqm.clone(),
            rate_bps: config.rate.as_bps(),
            delay_ms: config.delay.as_millis_f64(),
            limit: config.limit,
            arrived: stats.arrived,
            delivered: bottleneck.delivered(),
            dropped: Dropped {
                early: stats.dropped_early.packets,
                forced: stats.dropped_forced.packets,
                overflow: stats.dropped_overflow.packets,
                dequeue: stats.dropped_dequeue.packets,
            },
            marked: stats.marked.packets,
            waiting: bottleneck.backlog(),
            lost: bottleneck.lost(),
            in_flight: stats.sent.packets.saturating_sub(bottleneck.delivered().packets + bottleneck.lost()),
            refused: emissions.refused,
            sojourn_ms: bottleneck.sojourn().percentiles(MILLISECOND),
            lateness_us: emissions.lateness.percentiles(MICROSECOND),
        }
    }

    /// Lists each number with its name, in the order of the table.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let Percentiles { mean, p50, p90, p99, max } = self.sojourn_ms;
        let late = &self.lateness_us;
        vec![
            ("queue", format!("{} {}", self.aqm, self.limit)),
            ("arrived packets", self.arrived.packets.to_string()),
            ("delivered packets", self.delivered.packets.to_string()),
            ("delivered bytes", self.delivered.bytes.to_string()),
            ("dropped on arrival", self.dropped.early.to_string()),
            ("dropped, no room", self.dropped.overflow.to_string()),
            ("dropped from queue", self.dropped.dequeue.to_string()),
            ("marked CE", self.marked.to_string()),
            ("lost on the wire", self.lost.to_string()),
            ("still on the way", (self.waiting.packets + self.in_flight).to_string()),
            ("refused by interface", self.refused.to_string()),
            ("queueing mean, p50", format!("{mean:.2} ms, {p50:.2} ms")),
            ("queueing p90, p99", format!("{p90:.2} ms, {p99:.2} ms")),
            ("queueing max", format!("{max:.2} ms")),
            ("lateness mean, p99", format!("{:.0} us, {:.0} us", late.mean, late.p99)),
            ("lateness max", format!("{:.0} us", late.max)),
        ]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<22}{:>24}{:>24}", format!("{:.3} s", self.elapsed_s), "left to right", "right to left")?;
        for ((name, forward), (_, reverse)) in self.forward.rows().into_iter().zip(self.reverse.rows()) {
            writeln!(f, "{name:<22}{forward:>24}{reverse:>24}")?;
        }
        let Unclassified { malformed, untracked, not_from_syn } = self.unclassified;
        writeln!(
            f,
            "forwarded unseen: {malformed} malformed, {untracked} untracked, {not_from_syn} without a TCP start"
        )?;
        if self.disturbed {
            writeln!(
                f,
                "DISTURBED: more than 1% of the packets were over {DISTURBED_ABOVE} late; try --realtime, or a \
                 quieter machine"
            )?;
        }
        Ok(())
    }
}
