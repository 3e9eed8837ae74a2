//! A network element before a link that gives throughput advice ([`penstock_core::advice`]), and the nodes to which flows
//! belong.

use crate::segment::Segment;
use penstock_core::ack::AckPath;
use penstock_core::advice::{AdviceStats, Advisor};
use penstock_core::allocation::Members;
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, NodeId, Packet};
use penstock_core::units::{Instant, Rate};

/// The element of one direction of a link.
#[derive(Debug, Clone, Default)]
pub struct Element {
    advisor: Advisor,
    /// The node of each flow that has one.
    nodes: Vec<NodeId>,
}

impl Element {
    /// Hears what the discipline is told.
    pub fn hear(&mut self, fact: &Fact) {
        if let Fact::Owner { flow, node } = *fact {
            let at = flow.0 as usize;
            self.nodes.resize(self.nodes.len().max(at + 1), NodeId::NOBODY);
            self.nodes[at] = node;
        }
    }

    /// A flow without a node is its own, as QRM has it.
    fn node_of(&self, flow: FlowId) -> NodeId {
        self.nodes.get(flow.0 as usize).copied().unwrap_or(NodeId(flow.0))
    }

    /// Sees a packet that comes to a discipline before a link of this rate, and lowers its signal. Returns the members of which
    /// the discipline is to be told.
    pub fn pass(&mut self, packet: &mut Segment, link: Rate, queue: &impl AckPath, now: Instant) -> Option<Members> {
        let (told, flow) = (self.advisor.tick(link, queue, now), Packet::flow(packet));
        if let Some(is) = packet.rate_signal() {
            let signal = self.advisor.advise((flow, self.node_of(flow)), is, link, queue, now);
            signal.into_iter().for_each(|signal| packet.lower_rate_signal(signal));
        }
        self.advisor.count(flow, packet.size());
        told
    }

    /// Returns the counters.
    pub fn stats(&self) -> AdviceStats {
        self.advisor.stats()
    }
}
