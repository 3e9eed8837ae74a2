//! The trait of active queue management (AQM): an algorithm which judges packets and never owns a queue. The algorithms
//! are in [`aqm`](crate::aqm), one in each file.

use crate::ack_path::AckPath;
use crate::fact::Fact;
use crate::packet::{Ecn, FlowId, Packet};
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Span};

/// What an AQM may know of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Size of the packet on the link.
    pub size: Bytes,
    /// ECN field of the packet. An AQM answers [`Verdict::Mark`] only if it is capable.
    pub ecn: Ecn,
    /// The flow to which the packet belongs.
    pub flow: FlowId,
}

impl Meta {
    /// Reads size, ECN field and flow of a packet.
    #[inline]
    pub fn of<P: Packet>(packet: &P) -> Self {
        Self { size: packet.size(), ecn: packet.ecn(), flow: packet.flow() }
    }
}

/// An algorithm that judges packets on arrival, on departure, or both.
///
/// An AQM which also needs to see the other direction (GREEN for round trip times, PINK to rewrite windows) does so as
/// an [`AckPath`]; all others leave the default methods of that trait in place.
pub trait Aqm: AckPath {
    /// True for an algorithm which may ask to be woken. If false, [`Aqm::next_wakeup`] is not called.
    const WAKES: bool = false;

    /// True for an algorithm which itself counts the waiting packets, so that none may leave the queue unseen.
    const COUNTS: bool = false;

    /// Judges a packet that arrives, with access to all of the packet. A discipline calls this method; an algorithm
    /// which needs no more than [`Meta`] implements [`Aqm::on_enqueue`] alone.
    #[inline]
    fn on_arrival<P: Packet>(&mut self, packet: &P, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.on_enqueue(&Meta::of(packet), backlog, now, rng)
    }

    /// Judges a packet that arrives; `backlog` does not include it. Every arrival is judged, even if the queue is full.
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        let _ = (packet, backlog, now, rng);
        Verdict::Pass
    }

    /// Judges the head packet after it waited for `sojourn`; `backlog` no longer includes it. After a [`Verdict::Drop`]
    /// the next head is judged within the same departure; if there is none, [`Aqm::on_empty`] is called.
    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        let _ = (packet, sojourn, backlog, now, rng);
        Verdict::Pass
    }

    /// Called when a packet which the AQM let pass found no room and was dropped.
    fn on_overflow(&mut self, now: Instant) {
        let _ = now;
    }

    /// Returns true if the last drop on arrival was forced: the algorithm left the packet no chance and did not mark it.
    fn was_forced(&self) -> bool {
        false
    }

    /// Returns true if a single queue that is full makes room at its head instead of refusing the arrival. Each packet
    /// that goes is told by [`Aqm::on_shed`].
    fn drops_head(&self) -> bool {
        false
    }

    /// Called before flow queueing drops a waiting packet from the head of the queue to make room for others; `backlog`
    /// still includes the packet.
    fn on_shed(&mut self, backlog: Backlog, now: Instant) {
        let _ = backlog;
        self.on_overflow(now);
    }

    /// Returns true if the algorithm, as the AQM of one flow queue, wants the backlog of all flow queues together.
    fn wants_whole_backlog(&self) -> bool {
        false
    }

    /// Called when the link asked for a packet and the queue had none, or had none left after drops.
    fn on_empty(&mut self, now: Instant) {
        let _ = now;
    }

    /// Returns the time at which [`Aqm::on_wakeup`] is to be called; `None` for never. The time changes only inside the
    /// methods of this trait.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// Called when the time told by [`Aqm::next_wakeup`] has come.
    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        let _ = (backlog, now);
    }

    /// Returns numbers of the algorithm for the results of a run; `None` if there are none.
    fn report(&self) -> Option<serde_json::Value> {
        None
    }

    /// Called when something changed outside the queue. Most algorithms use no facts; an algorithm which wraps others
    /// passes on all facts.
    fn on_fact(&mut self, fact: &Fact, now: Instant);
}
