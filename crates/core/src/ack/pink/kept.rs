//! What data show on their way to the queue: whether they keep to the window of their flow, and whether they fill it.

use super::flow::{Flight, Phase, after};
use super::{Behind, Pink};
use crate::ack_path::Kept;
use crate::packet::FlowId;
use crate::units::Bytes;

impl Pink {
    /// Notes data that are new, if `before` was the end of those seen before, and within the window. Those of the first flight,
    /// which come as one burst, do not count.
    pub(super) fn note_kept(&mut self, id: usize, before: Option<u32>) {
        let flow = &self.flows[id];
        if self.config.queue != Behind::FqOthers || flow.phase != Phase::Open || flow.flight() != Flight::Later {
            return;
        }
        let is_kept = |end| before.is_some_and(|before| after(end, before)) && !after(end, flow.edge);
        if let Some(window) = flow.held().filter(|_| flow.probe.outbound_end().is_some_and(is_kept)) {
            let (flow, window) = (FlowId(id as u32), Bytes::new(window));
            self.kept = Some(Kept { flow, window, flows: self.shares.n.max(1) });
        }
    }

    /// Notes data of a flow which leaves something to others: if it has filled its window it can use more. Whether the
    /// budget of its node lets it, shows with the next ACK, and until then it claims no more of the link than before.
    pub(super) fn note_held(&mut self, id: usize, stamped: bool) {
        let flow = &self.flows[id];
        if self.demands() && self.wants_less(id) && flow.is_held(stamped) {
            if self.owners.has_node(id) {
                self.set_held_back(id, flow.claim);
            } else {
                self.set_lacking(id, None);
            }
            self.flows[id].wake();
        }
    }
}
