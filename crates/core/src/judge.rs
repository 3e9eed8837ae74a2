//! The trait of active queue management: an algorithm that judges packets and never owns a queue. The algorithms are in
//! [`aqm`](crate::aqm), one to a file.

use crate::ack_path::AckPath;
use crate::fact::Fact;
use crate::packet::{Ecn, FlowId, Packet};
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Span};

/// What an AQM may know of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Size on the link.
    pub size: Bytes,
    /// ECN field; an AQM answers [`Verdict::Mark`] only if this is capable.
    pub ecn: Ecn,
    /// Flow.
    pub flow: FlowId,
}

impl Meta {
    /// The facts of a packet.
    #[inline]
    pub fn of<P: Packet>(packet: &P) -> Self {
        Self { size: packet.size(), ecn: packet.ecn(), flow: packet.flow() }
    }
}

/// An algorithm that judges packets on arrival, on departure, or both.
///
/// An AQM that needs to see the other direction as well (GREEN for round trip times, PINK to rewrite windows) does so
/// as an [`AckPath`]; the others leave that trait's methods as they are.
pub trait Aqm: AckPath {
    /// True for an algorithm that ever asks to be woken; the others are not asked when.
    const WAKES: bool = false;

    /// True for an algorithm that counts by itself what waits: nothing may leave the queue without its knowledge.
    const COUNTS: bool = false;

    /// Judges a packet that arrives, by all that it shows. This is what a discipline calls; an algorithm that needs no
    /// more than [`Meta`] writes [`Aqm::on_enqueue`] only.
    #[inline]
    fn on_arrival<P: Packet>(&mut self, packet: &P, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.on_enqueue(&Meta::of(packet), backlog, now, rng)
    }

    /// Judges a packet that arrives; `backlog` does not count it. Every arrival is shown, even when the queue is full.
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        let _ = (packet, backlog, now, rng);
        Verdict::Pass
    }

    /// Judges the head packet after it waited for `sojourn`; `backlog` no longer counts it. After a
    /// [`Verdict::Drop`] the next head, if any, is shown within the same departure; [`Aqm::on_empty`] if there is none.
    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        let _ = (packet, sojourn, backlog, now, rng);
        Verdict::Pass
    }

    /// A packet that the AQM let pass found no room.
    fn on_overflow(&mut self, now: Instant) {
        let _ = now;
    }

    /// A packet that waits is to be dropped from the head to make room for others (flow queueing); `backlog` still
    /// counts it.
    fn on_shed(&mut self, backlog: Backlog, now: Instant) {
        let _ = backlog;
        self.on_overflow(now);
    }

    /// True for an algorithm that, as the AQM of one flow queue, wants to be shown the backlog of all of them.
    fn wants_whole_backlog(&self) -> bool {
        false
    }

    /// The link asked for a packet and there was none (or none was left after drops).
    fn on_empty(&mut self, now: Instant) {
        let _ = now;
    }

    /// When [`Aqm::on_wakeup`] wants to be called; changes only inside the methods of this trait.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// The time told by [`Aqm::next_wakeup`] has come.
    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        let _ = (backlog, now);
    }

    /// What it has to tell at the end of a run.
    fn report(&self) -> Option<serde_json::Value> {
        None
    }

    /// Something changed outside the queue. Most algorithms use no facts; one that wraps others passes on all.
    fn on_fact(&mut self, fact: &Fact, now: Instant);
}
