//! The trait of elements which see both directions at a gateway. The elements themselves are in [`ack`](crate::ack).

use crate::allocation::Members;
use crate::packet::{FlowId, TcpView};
use crate::units::{Bytes, Instant, Rate};

/// A segment that keeps to the window of its flow, and which was not sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Its flow.
    pub flow: FlowId,
    /// The window that its flow was given last.
    pub window: Bytes,
    /// Number of flows that have windows, at least 1.
    pub flows: u64,
}

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

    /// Tells, once after each [`AckPath::outbound`], whether that segment keeps to the window that this element gave its
    /// flow.
    fn kept(&mut self) -> Option<Kept> {
        None
    }

    /// Hears what the element before this one tells of the packet that comes next ([`AckPath::kept`]).
    fn keep(&mut self, kept: Option<Kept>) {
        let _ = kept;
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
