//! An element on the ACK path before any discipline: the element sees segments, the discipline keeps packets.
//!
//! PINK alone is the [`Aqm`] of one FIFO. Before a scheduler it cannot be: the scheduler has many queues,
//! and the AQM of one sees a part of the traffic. A [`Gate`] puts it in front instead: it is shown each segment of both
//! directions, each arrival, departure and overflow of the discipline behind, and its backlog as a whole. It judges
//! nothing: verdicts are those of the discipline.

use crate::ack_path::AckPath;
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::packet::{Packet, TcpView};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats, Verdict};
use crate::rng::Rng;
use crate::units::{Instant, Span};

/// An element before a discipline.
#[derive(Debug, Clone)]
pub struct Gate<E, Q> {
    element: E,
    queue: Q,
}

impl<E: Aqm, Q> Gate<E, Q> {
    /// `element` before `queue`.
    pub fn new(element: E, queue: Q) -> Self {
        Self { element, queue }
    }

    /// The element, to read its state.
    pub fn element(&self) -> &E {
        &self.element
    }

    /// The discipline behind it.
    pub fn queue(&self) -> &Q {
        &self.queue
    }
}

/// Passes on what is observed, and remembers whether one was an overflow: it may strike a packet that waited.
struct Overflows<'a, O> {
    observer: &'a mut O,
    overflowed: bool,
}

impl<P, O: PacketObserver<P>> PacketObserver<P> for Overflows<'_, O> {
    fn dropped(&mut self, packet: P, reason: DropReason, now: Instant) {
        self.overflowed |= reason == DropReason::Overflow;
        self.observer.dropped(packet, reason, now);
    }
    fn marked(&mut self, packet: &P, now: Instant) {
        self.observer.marked(packet, now);
    }
}

impl<P: Packet, E: Aqm, Q: Qdisc<P>> Qdisc<P> for Gate<E, Q> {
    const WAKES: bool = E::WAKES || Q::WAKES;

    #[inline]
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued {
        let verdict = self.element.on_enqueue(&Meta::of(&packet), self.queue.backlog(), now, rng);
        debug_assert_eq!(verdict, Verdict::Pass, "an element before a discipline judges nothing");
        let mut overflows = Overflows { observer, overflowed: false };
        let fate = self.queue.enqueue(packet, now, rng, &mut overflows);
        if overflows.overflowed {
            self.element.on_overflow(now);
        }
        fate
    }

    /// The element is told of the departure without the wait: only the discipline knows when a packet came.
    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        let Some(packet) = self.queue.dequeue(now, rng, observer) else {
            self.element.on_empty(now);
            return None;
        };
        let verdict = self.element.on_dequeue(&Meta::of(&packet), Span::ZERO, self.queue.backlog(), now, rng);
        debug_assert_eq!(verdict, Verdict::Pass, "an element before a discipline judges nothing");
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        match (self.element.next_wakeup(), self.queue.next_wakeup()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn on_wakeup(&mut self, now: Instant) {
        if self.element.next_wakeup().is_some_and(|at| at <= now) {
            self.element.on_wakeup(self.queue.backlog(), now);
        }
        if self.queue.next_wakeup().is_some_and(|at| at <= now) {
            self.queue.on_wakeup(now);
        }
    }

    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        self.element.on_fact(fact, now);
        self.queue.on_fact(fact, now);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn stats(&self) -> &Stats {
        self.queue.stats()
    }

    /// What the element tells, and under `queue` what the discipline behind it does.
    fn report(&self) -> Option<serde_json::Value> {
        let mut report = self.element.report()?;
        if let Some(behind) = self.queue.report() {
            report["queue"] = behind;
        }
        Some(report)
    }
}

/// The element sees segments first; a discipline that looks at them as well sees what the element made of them. To what
/// rates that holds nodes the element is told, so that it need not give out what will be refused.
impl<E: AckPath, Q: AckPath> AckPath for Gate<E, Q> {
    const ACTIVE: bool = E::ACTIVE || Q::ACTIVE;

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.element.outbound(segment, now);
        self.queue.outbound(segment, now);
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let budget = self.queue.budget_of(segment.flow());
        self.element.inbound_within(segment, budget, now);
        self.queue.inbound(segment, now);
    }
}
