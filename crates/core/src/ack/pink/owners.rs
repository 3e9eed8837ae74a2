//! The nodes of flows. For each node it has the number of flows that send, and the rates of those that cannot use their
//! part. The flows of a node share its budget, to which a discipline behind PINK holds it, as all flows share the link:
//! by max-min.

use super::config::Behind;
use super::flow::Flow;
use super::share::{MAX_WINDOW, MILLI, payload_rate, rate_of, window_of};
use super::{AckContext, Pink};
use crate::allocation::rest;
use crate::packet::{FlowId, NodeId};
use crate::units::{Rate, Span};

/// Nodes with this number or a higher one are not known, as in QRM.
const MAX_NODES: u32 = 1 << 20;
const NOBODY: u32 = NodeId::NOBODY.0;

/// The nodes of flows. Empty unless owners are told ([`Fact::Owner`](crate::fact::Fact::Owner)); 12 bytes per flow and
/// 16 per node.
#[derive(Debug, Clone, Default)]
pub(super) struct Owners {
    flows: Vec<Owned>,
    nodes: Vec<Node>,
}

/// A flow of a node.
#[derive(Debug, Clone, Copy)]
struct Owned {
    node: u32,
    /// Bytes per second that the flow can use, if that is less than its part of the node's budget.
    claim: Option<u32>,
}

/// The sums over the flows of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    /// Number of flows that send.
    sending: u32,
    /// Number of flows that send and have a claim.
    lacking: u32,
    /// Sum of these claims, in bytes per second.
    claims: u64,
}

impl Owners {
    /// Sets the node of a flow; `sends` says whether the flow already sends.
    pub fn set(&mut self, flow: usize, node: u32, sends: bool) {
        let node = if node < MAX_NODES { node } else { NOBODY };
        let claim = self.flows.get(flow).and_then(|owned| owned.claim);
        self.claim(flow, None);
        if sends {
            self.note(flow, false);
        }
        if flow >= self.flows.len() {
            self.flows.resize(flow + 1, Owned { node: NOBODY, claim: None });
        }
        if node != NOBODY && node as usize >= self.nodes.len() {
            self.nodes.resize(node as usize + 1, Node::default());
        }
        self.flows[flow].node = node;
        if sends {
            self.note(flow, true);
        }
        self.claim(flow, claim);
    }

    /// Notes that the flow begins to send, or stops. A flow that stops has no claim.
    pub fn note(&mut self, flow: usize, sends: bool) {
        let node = self.flows.get(flow).map(|owned| owned.node as usize);
        if let Some(node) = node.and_then(|node| self.nodes.get_mut(node)) {
            node.sending = if sends { node.sending + 1 } else { node.sending - 1 };
        }
    }

    /// Sets what a flow that sends can use of its node's budget, in bytes per second; `None` if it can use its part.
    pub fn claim(&mut self, flow: usize, claim: Option<u32>) {
        let Some(owned) = self.flows.get_mut(flow) else { return };
        let before = std::mem::replace(&mut owned.claim, claim);
        let Some(node) = self.nodes.get_mut(owned.node as usize) else { return };
        if let Some(before) = before {
            node.lacking -= 1;
            node.claims -= u64::from(before);
        }
        if let Some(claim) = claim {
            node.lacking += 1;
            node.claims += u64::from(claim);
        }
    }

    /// Returns true if the flow is of a node.
    pub fn has_node(&self, flow: usize) -> bool {
        self.flows.get(flow).is_some_and(|owned| owned.node != NOBODY)
    }

    /// Returns true if the flow is of a node and has no claim: if it leaves some of the link to others, that is because
    /// the budget of its node holds it back.
    pub fn could_use_its_part(&self, flow: usize) -> bool {
        self.has_node(flow) && self.flows[flow].claim.is_none()
    }

    /// Returns the rate that the flows of the flow's node share if they have no claim, and their number, this flow
    /// included (at least 1). `budget` is in thousandths of a byte per second.
    pub fn sharing(&self, flow: usize, sends: bool, budget: u64) -> (u64, u64) {
        let Some(owned) = self.flows.get(flow) else { return (budget, 1) };
        let Some(node) = self.nodes.get(owned.node as usize) else { return (budget, 1) };
        let own = owned.claim.map_or((0, 0), |claim| (1, u64::from(claim)));
        let sending = u64::from(node.sending) + u64::from(!sends);
        let lacking = u64::from(node.lacking) - own.0;
        let (rate, good) = rest(budget, sending, lacking, (node.claims - own.1).saturating_mul(MILLI));
        (rate, good.max(1))
    }
}

impl Pink {
    /// Notes the node of a flow. Nodes matter only before a discipline that holds them to budgets (QRM).
    pub(super) fn set_owner(&mut self, flow: FlowId, node: NodeId) {
        if let Some(hosts) = self.hosts.as_mut().filter(|_| flow.0 < self.config.max_flows) {
            hosts.set_node(flow.0 as usize, node);
        }
        if self.config.queue == Behind::Qrm && flow.0 < self.config.max_flows {
            let sends = self.flows.get(flow.0 as usize).is_some_and(Flow::sends);
            self.owners.set(flow.0 as usize, node.0, sends);
        }
    }

    /// Notes that the budget of its node holds a flow back, or does so no more. If the flow is the only one to use the
    /// budget, it keeps all of that: what it left would be for nobody, as QRM gives no node more than its budget.
    pub(super) fn note_budget(&mut self, id: usize, context: &AckContext, rtt: Span) {
        if context.held_back {
            self.set_held_back(id, rate_of(context.taken, rtt));
        } else {
            self.set_lacking(id, None);
        }
    }

    /// Returns the flow's part of its node's budget, as a window in bytes, and how many flows could use what it leaves of
    /// that, itself included. Without a budget the window is the largest.
    pub(super) fn taken(&self, id: usize, budget: Option<Rate>, rtt: Span) -> (u64, u64) {
        let Some(budget) = budget else { return (MAX_WINDOW, 1) };
        let budget = payload_rate(budget, None, self.config.c);
        let (rate, flows) = self.owners.sharing(id, self.flows[id].sends(), budget);
        (window_of(rate, rtt, flows), flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_that_passes_to_a_node_beyond_all_leaves_its_own() {
        let mut owners = Owners::default();
        owners.set(0, 3, true);
        owners.set(1, 3, true);
        assert_eq!(owners.sharing(1, true, 9000), (9000, 2));
        owners.set(0, MAX_NODES, true);
        assert_eq!([owners.sharing(0, true, 9000), owners.sharing(1, true, 9000)], [(9000, 1); 2]);
        owners.set(0, 4, true);
        owners.note(0, false);
        assert_eq!([owners.sharing(0, false, 9000), owners.sharing(1, true, 9000)], [(9000, 1); 2]);
    }

    #[test]
    fn what_a_flow_cannot_use_is_for_the_others_of_its_node() {
        let mut owners = Owners::default();
        (0..3).for_each(|flow| owners.set(flow, 7, true));
        owners.claim(0, Some(2));
        assert_eq!(owners.sharing(1, true, 9000), (7000, 2));
        assert_eq!(owners.sharing(0, true, 9000), (9000, 3), "its own claim plays no part");
        owners.claim(1, Some(4)); // more than its third: together they are taken for two thirds at most
        assert_eq!(owners.sharing(2, true, 9000), (3000, 1));
        owners.set(0, 8, true);
        assert_eq!(owners.sharing(2, true, 9000), (5000, 1));
        assert_eq!(owners.sharing(1, true, 9000), (9000, 2));
        assert!(owners.could_use_its_part(2) && !owners.could_use_its_part(1) && !owners.could_use_its_part(9));
        owners.claim(1, None);
        assert_eq!(owners.sharing(2, true, 9000), (9000, 2));
        assert_eq!(owners.sharing(9, true, 9000), (9000, 1));
    }
}
