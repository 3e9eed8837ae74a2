//! The results of one direction, as reports and statuses have them.

use crate::bottleneck::{Bottleneck, Config};
use crate::emissions::Emissions;
use crate::histogram::{Percentiles, shown};
pub use crate::intake::DISTURBED_ABOVE;
use crate::intake::Intake;
use penstock_core::csi::Loss;
use penstock_core::packet::Packet;
use penstock_core::qdisc::Backlog;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Limit, Span};
use serde::Serialize;
use std::fmt;

const MILLISECOND: Span = Span::from_millis(1);
const MICROSECOND: Span = Span::from_micros(1);

/// The results of one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionReport {
    /// Name of the discipline.
    pub aqm: String,
    /// Parameters of the discipline.
    pub parameters: AnyConfig,
    /// Rate of the wire in bits per second.
    pub rate_bps: u64,
    /// What the link adds to each packet.
    pub link_layer: String,
    /// The probability with which the wire loses a packet.
    pub loss: f64,
    /// One-way delay in milliseconds.
    pub delay_ms: f64,
    /// Limit of the queue.
    pub limit: Limit,
    /// For how long the wire was occupied, in seconds.
    pub busy_s: f64,
    /// For how long the wire was idle although a packet waited in the kernel to be read, in seconds.
    pub starved_s: f64,
    /// Number of packets that the kernel dropped because they were not read in time. They did not arrive.
    pub unread: u64,
    /// Number of packets larger than the MTU with which the run began, which were forwarded whole.
    pub oversize: u64,
    /// What became of frames that were not packets as they came to a port; `None` if no port is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// What became of packets in the queue of the kernel before this one (`--through`); not in the JSON without one. What
    /// was dropped there has not arrived here; `sojourn_ms` has the time in both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<Lent>,
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
    /// What the link did to packets besides; a number that is 0 is not in the JSON.
    #[serde(flatten)]
    pub impaired: Impaired,
    /// Number of packets on the wire or in the delay line at the end.
    pub in_flight: u64,
    /// Number of packets that were due but refused by the receiving interface.
    pub refused: u64,
    /// Sojourn times in milliseconds of the packets that were not dropped; missing if there are none.
    pub sojourn_ms: Percentiles,
    /// How much later than they were due packets were written, in microseconds.
    pub lateness_us: Percentiles,
}

/// What a link did to packets besides queueing, transmitting, delaying and losing them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Impaired {
    /// Number of packets that a policer dropped before the queue. They did not arrive there.
    #[serde(skip_serializing_if = "none")]
    pub policed: u64,
    /// Number of bursts in which the link released packets.
    #[serde(skip_serializing_if = "none")]
    pub bursts: u64,
    /// Number of packets that the link delayed, so that others overtake them.
    #[serde(skip_serializing_if = "none")]
    pub reordered: u64,
    /// Number of packets that arrived twice.
    #[serde(skip_serializing_if = "none")]
    pub duplicated: u64,
}

fn none(number: &u64) -> bool {
    *number == 0
}

impl Impaired {
    fn of<P: Packet>(bottleneck: &Bottleneck<P>) -> Self {
        let policed = bottleneck.policed();
        bottleneck.line.impaired.as_ref().map_or(Self { policed, ..Self::default() }, |line| Self {
            policed,
            bursts: line.bursts,
            reordered: line.reordered,
            duplicated: line.duplicated,
        })
    }
}

/// What became of frames that are not packets as they came to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Frames {
    /// Number of frames that offloads had merged of several packets, which arrived one by one.
    pub taken_apart: u64,
    /// Number of merged frames that cannot be taken apart, or are too short for Ethernet: they did not arrive.
    pub refused: u64,
    /// Number of frames for the port itself, which are the kernel's.
    pub own: u64,
}

/// What became of packets that were given to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Lent {
    /// Packets and bytes that went into the namespace.
    pub lent: Backlog,
    /// Packets and bytes that came back.
    pub returned: Backlog,
    /// Packets and bytes that were dropped there, as far as later packets of their connections showed it.
    pub dropped: Backlog,
    /// Number of packets that came back with CE and had gone without.
    pub marked: u64,
    /// Number of packets that came out and were of nobody: the namespace's own, or such as overtook others of their connection.
    pub strange: u64,
}

impl Lent {
    /// Returns the number of packets of which nothing is known yet: they wait in the kernel, or were dropped as the last of
    /// their connections.
    pub fn away(&self) -> u64 {
        self.lent.packets - self.returned.packets - self.dropped.packets
    }
}

impl fmt::Display for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lent, returned, dropped, marked, strange } = self;
        write!(f, "{} lent, {} returned, {} dropped", lent.packets, returned.packets, dropped.packets)?;
        write!(f, ", {marked} marked CE, {strange} strange, {} not seen again", self.away())
    }
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

impl DirectionReport {
    /// Creates the results of one direction from its counters.
    pub fn new<P: Packet>(config: &Config, bottleneck: &Bottleneck<P>, emissions: &Emissions, intake: &Intake) -> Self {
        let (server, line) = (&bottleneck.server, &bottleneck.line);
        let stats = server.stats();
        debug_assert_eq!(bottleneck.check(), Ok(()));
        Self {
            aqm: config.aqm.name().to_owned(),
            parameters: config.aqm.clone(),
            rate_bps: config.rate.as_bps(),
            link_layer: config.layer.to_string(),
            loss: server.loss.as_ref().map_or(0.0, Loss::probability),
            delay_ms: config.delay.as_millis_f64(),
            limit: config.limit,
            busy_s: server.busy().as_secs_f64(),
            starved_s: intake.starved.as_secs_f64(),
            unread: intake.unread,
            oversize: intake.oversize,
            frames: None,
            through: None,
            arrived: stats.arrived,
            delivered: line.delivered,
            dropped: Dropped {
                early: stats.dropped_early.packets,
                forced: stats.dropped_forced.packets,
                overflow: stats.dropped_overflow.packets,
                dequeue: stats.dropped_dequeue.packets,
            },
            marked: stats.marked.packets,
            waiting: server.backlog(),
            lost: bottleneck.lost(),
            impaired: Impaired::of(bottleneck),
            in_flight: stats.sent.packets.saturating_sub(line.delivered.packets + bottleneck.lost()),
            refused: emissions.refused,
            sojourn_ms: line.sojourn.percentiles(MILLISECOND),
            lateness_us: emissions.lateness.percentiles(MICROSECOND),
        }
    }

    /// Lists each number with its name, in the order of the table.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
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
            ("policed, reordered", format!("{} {}", self.impaired.policed, self.impaired.reordered)),
            ("arrived twice", self.impaired.duplicated.to_string()),
            ("still on the way", (self.waiting.packets + self.in_flight).to_string()),
            ("refused by interface", self.refused.to_string()),
            ("not read in time", self.unread.to_string()),
            ("larger than the MTU", self.oversize.to_string()),
            ("merged, taken apart", self.frames.map_or("-".into(), |frames| frames.taken_apart.to_string())),
            ("merged, refused", self.frames.map_or("-".into(), |frames| frames.refused.to_string())),
            ("queueing mean, p50", shown([mean, p50], 2, "ms")),
            ("queueing p90, p99", shown([p90, p99], 2, "ms")),
            ("queueing max", shown([max], 2, "ms")),
            ("lateness mean, p99", shown([late.mean, late.p99], 0, "us")),
            ("lateness max", shown([late.max], 0, "us")),
        ]
    }
}
