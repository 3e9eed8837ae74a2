//! The state of a run at one time, for programs that show it while it goes on.
//!
//! As with [`crate::tcp_trace`], whoever looks advances the run to the time of interest and reads its state. A run at
//! which nobody looks pays nothing, and one at which somebody looks has the same results.

use crate::flow::Flow;
use crate::network::Bottleneck;
use crate::probe::BILLIONTHS;
use crate::run::Simulation;
use crate::tcp::Snapshot;
use crate::world::END;
use penstock_core::qdisc::{Backlog, Qdisc};
use penstock_core::units::{Rate, Span};

/// The state of a measured queue and of its link. Counters count from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueNow {
    /// The packets and bytes that wait in the queue.
    pub backlog: Backlog,
    /// The packets and bytes that have arrived at the queue, those that were dropped included.
    pub arrived: Backlog,
    /// Number of packets whose delay was measured: all that left the queue to be sent.
    pub left: u64,
    /// Sum of the queueing delays of these packets, in nanoseconds.
    pub delays_ns: u128,
    /// Number of packets dropped, for any reason.
    pub dropped: u64,
    /// Number of packets marked CE.
    pub marked: u64,
    /// Number of packets lost on the wire.
    pub lost: u64,
    /// Number of bits that have left the link.
    pub sent_bits: f64,
    /// Rate of the link.
    pub rate: Rate,
    /// One-way delay of the link.
    pub delay: Span,
}

/// The state of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowNow {
    /// True if the flow has begun.
    pub begun: bool,
    /// The sending half of its connection; `None` for a flow without a connection that lasts, before the handshake and
    /// after the end.
    pub tcp: Option<Snapshot>,
    /// Number of payload bytes delivered to the application since the start of the run.
    pub delivered: u64,
}

impl Simulation {
    /// Returns the measured queues, in the order of the summary.
    pub fn queues(&self) -> &[Bottleneck] {
        &self.measured.bottlenecks
    }

    /// Returns the flows in the order of their numbers: each is its kind of traffic and the name of its congestion
    /// control, which is empty without TCP.
    pub fn flows(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.actors.flows.iter().map(|flow| (flow.kind, flow.application.get().cc()))
    }

    /// Returns the state of each measured queue now.
    pub fn queues_now(&self) -> impl Iterator<Item = QueueNow> {
        self.measured.bottlenecks.iter().filter_map(|bottleneck| self.queue_now(bottleneck))
    }

    fn queue_now(&self, bottleneck: &Bottleneck) -> Option<QueueNow> {
        let link = &self.world.links[bottleneck.link.index()];
        let queue = &link.queue;
        let probe = queue.probe.as_ref()?;
        let stats = queue.qdisc.stats();
        Some(QueueNow {
            backlog: queue.qdisc.backlog(),
            arrived: stats.arrived,
            left: probe.delay.count(),
            delays_ns: probe.delay.sum_ns(),
            dropped: stats.dropped_by_aqm() + stats.dropped_overflow.packets,
            marked: stats.marked.packets,
            lost: queue.loss.lost,
            sent_bits: link.sent(self.now()) as f64 / BILLIONTHS as f64,
            rate: link.rate(),
            delay: link.delay(),
        })
    }

    /// Returns the state of each flow now.
    pub fn flows_now(&self) -> impl Iterator<Item = FlowNow> {
        self.actors.flows.iter().map(|flow| self.flow_now(flow))
    }

    /// Returns the round trip time of a flow's path without queues, and without the times that its packets take to be sent.
    pub fn base_rtt(&self, flow: usize) -> Span {
        let Some(flow) = self.actors.flows.get(flow) else { return Span::ZERO };
        let hops = |cursor: u32| self.world.outlet.routes[cursor as usize..].iter().take_while(|hop| **hop != END);
        flow.routes
            .iter()
            .flat_map(|cursor| hops(*cursor))
            .map(|hop| self.world.delay(*hop))
            .fold(Span::ZERO, |a, b| a + b)
    }

    /// Returns the state of the congestion control of a flow, field by field, for people to read; `None` for a flow
    /// without a connection that lasts.
    pub fn control_now(&self, flow: usize) -> Option<String> {
        Some(self.actors.flows.get(flow)?.tcp()?.client.control_state())
    }

    fn flow_now(&self, flow: &Flow) -> FlowNow {
        let tcp = flow.tcp().filter(|tcp| !tcp.client.is_done()).and_then(|tcp| tcp.client.snapshot());
        FlowNow { begun: flow.start <= self.now(), tcp, delivered: flow.delivered() }
    }
}
