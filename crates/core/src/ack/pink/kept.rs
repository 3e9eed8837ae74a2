//! What data show on their way to the queue: whether they keep to the window of their flow, and whether they fill it.

use super::flow::{Flight, Phase, SHORT, after};
use super::share::{rate_of, time_of};
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

    /// Notes data of a flow in its first flight: if the last segment is a short one, the flow has nothing more to send. It
    /// leaves to others at once what it does not use, so that many short flows cost what they send.
    pub(super) fn note_short(&mut self, id: usize, stamped: bool) {
        let flow = &self.flows[id];
        let new = flow.flight() == Flight::First && flow.is_busy() && flow.is(SHORT);
        if !self.demands() || !new || self.wants_less(id) {
            return;
        }
        if let (Some(rtt), Some(end)) = (flow.round_trip(), flow.probe.outbound_end()) {
            let full = time_of(flow.segment(stamped), self.rate);
            let claim = rate_of(u64::from(end.wrapping_sub(flow.acked)), rtt + full);
            self.set_lacking(id, Some(claim));
        }
    }
}
