//! The trait of elements which see both directions at a gateway. The elements themselves are in [`ack`](crate::ack).

use crate::allocation::Members;
use crate::packet::{FlowId, TcpView};
use crate::units::{Instant, Rate};

/// An element which sees every TCP segment at a gateway. `outbound` is the direction of the link whose congestion is to
/// be prevented; `inbound` segments carry the ACKs of that traffic.
pub trait AckPath {
    /// True if every element of this type wants to see segments.
    const ACTIVE: bool = false;

    /// True if this element wants to see segments; otherwise a gateway skips the calls. The answer never changes.
    fn watches(&self) -> bool {
        Self::ACTIVE
    }

    /// Shows a segment which is about to enter the bottleneck's queue.
    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let _ = (segment, now);
    }

    /// Shows a segment which came back from the far side of the bottleneck.
    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let _ = (segment, now);
    }

    /// Returns the rate to which this element holds the node of `flow`; `None` if it sets no limit. What is sent beyond that
    /// rate is refused, or waits.
    fn budget_of(&self, flow: FlowId) -> Option<Rate> {
        let _ = flow;
        None
    }

    /// Returns the rate in bits per second that this element divides among flows, and the members among which it does, without
    /// those of [`Fact::Advised`](crate::fact::Fact::Advised); `None` if it divides no rate among flows.
    fn shares(&self) -> Option<(Rate, Members)> {
        None
    }

    /// Shows a segment like [`AckPath::inbound`], to an element before a discipline which holds the node of this
    /// segment to `budget`. The element then need not give out a rate which the discipline would refuse.
    fn inbound_within<S: TcpView>(&mut self, segment: &mut S, budget: Option<Rate>, now: Instant) {
        let _ = budget;
        self.inbound(segment, now);
    }
}
