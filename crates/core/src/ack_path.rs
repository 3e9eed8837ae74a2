//! The trait of elements that see both directions at a gateway. The elements themselves are in [`ack`](crate::ack).

use crate::packet::{FlowId, TcpView};
use crate::units::{Instant, Rate};

/// Sees every TCP segment at a gateway. `outbound` is the direction of the link whose congestion is to be prevented;
/// `inbound` segments carry the ACKs of that traffic.
pub trait AckPath {
    /// True when the element wants to see segments at all; a gateway skips the calls otherwise.
    const ACTIVE: bool = false;

    /// A segment is about to enter the bottleneck's queue.
    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let _ = (segment, now);
    }

    /// A segment came back from the bottleneck's far side.
    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let _ = (segment, now);
    }

    /// The rate to which the node of this flow is held here; `None` if to none. What its flows send beyond is refused.
    fn budget_of(&self, flow: FlowId) -> Option<Rate> {
        let _ = flow;
        None
    }

    /// As [`AckPath::inbound`], for an element before a discipline that holds the node of this segment to `budget`: the
    /// element need not give out what would be refused.
    fn inbound_within<S: TcpView>(&mut self, segment: &mut S, budget: Option<Rate>, now: Instant) {
        let _ = budget;
        self.inbound(segment, now);
    }
}
