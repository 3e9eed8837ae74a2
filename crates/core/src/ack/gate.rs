//! An element on the ACK path before any discipline: the element sees segments, the discipline keeps packets.
//!
//! PINK alone is the [`Aqm`] of one FIFO. It cannot be the AQM of a scheduler's queues, because each AQM there sees
//! only a part of the traffic. A [`Gate`] puts PINK in front of the scheduler instead: PINK is shown each segment of
//! both directions, each arrival, departure and overflow of the discipline behind, and the whole backlog of that
//! discipline. The element judges no packets; all verdicts are those of the discipline.

use crate::ack_path::AckPath;
use crate::allocation::Members;
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::packet::{FlowId, Packet, TcpView};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats, Verdict};
use crate::rng::Rng;
use crate::units::{Instant, Rate, Span};

/// An element before a discipline.
#[derive(Debug, Clone)]
pub struct Gate<E, Q> {
    element: E,
    queue: Q,
}

impl<E: Aqm, Q> Gate<E, Q> {
    /// Puts `element` before the discipline `queue`.
    pub fn new(element: E, queue: Q) -> Self {
        Self { element, queue }
    }

    /// Returns the element, to read its state.
    pub fn element(&self) -> &E {
        &self.element
    }

    /// Returns the element, to tell it what it cannot see.
    pub fn element_mut(&mut self) -> &mut E {
        &mut self.element
    }

    /// Returns the discipline behind the element.
    pub fn queue(&self) -> &Q {
        &self.queue
    }
}

/// Passes on all drops and marks, and remembers whether one drop was an overflow, which may be that of a waiting
/// packet.
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

    /// The element is told of a departure with a sojourn time of zero, since only the discipline knows when a packet
    /// arrived.
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

    /// Returns the numbers of the element, with those of the discipline behind it under the key `queue`.
    fn report(&self) -> Option<serde_json::Value> {
        let mut report = self.element.report()?;
        if let Some(behind) = self.queue.report() {
            report["queue"] = behind;
        }
        Some(report)
    }
}

/// The element sees segments first; the discipline sees them as the element changed them. The element is told the rates
/// to which the discipline holds nodes, so that it need not give out what the discipline would refuse.
impl<E: AckPath, Q: AckPath> AckPath for Gate<E, Q> {
    const ACTIVE: bool = E::ACTIVE || Q::ACTIVE;

    fn watches(&self) -> bool {
        self.element.watches() || self.queue.watches()
    }

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.element.outbound(segment, now);
        self.queue.keep(self.element.kept());
        self.queue.outbound(segment, now);
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let budget = self.queue.budget_of(segment.flow());
        self.element.inbound_within(segment, budget, now);
        self.queue.inbound(segment, now);
    }

    fn budget_of(&self, flow: FlowId) -> Option<Rate> {
        self.queue.budget_of(flow)
    }

    fn shares(&self) -> Option<(Rate, Members)> {
        self.element.shares()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Fifo;
    use crate::testing::Numbered;
    use crate::units::Limit;

    /// Wants to be woken at a time, and counts how often it is.
    #[derive(Debug, Clone)]
    struct Alarm {
        at: Option<Instant>,
        woken: u32,
    }

    impl AckPath for Alarm {}

    impl Aqm for Alarm {
        const WAKES: bool = true;

        fn next_wakeup(&self) -> Option<Instant> {
            self.at
        }
        fn on_wakeup(&mut self, _: Backlog, _: Instant) {
            self.woken += 1;
        }
        fn on_fact(&mut self, _: &Fact, _: Instant) {}
    }

    /// The one timer of a gate is that of the element and of the discipline behind it; it wakes the one whose time has come.
    #[test]
    fn the_timer_wakes_who_is_due() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let alarm = |ms: Option<u64>| Alarm { at: ms.map(at), woken: 0 };
        for (element, behind, woken) in [
            (Some(5), Some(6), (1, 0)),
            (Some(6), Some(5), (0, 1)),
            (Some(5), Some(5), (1, 1)),
            (Some(5), None, (1, 0)),
            (None, Some(5), (0, 1)),
        ] {
            let queue = Fifo::<Numbered, Alarm>::new(Limit::Packets(1), alarm(behind));
            let mut gate = Gate::new(alarm(element), queue);
            assert_eq!(gate.next_wakeup(), Some(at(5)));
            gate.on_wakeup(at(5));
            let seen = (gate.element().woken, gate.queue().aqm().woken);
            assert_eq!(seen, woken, "the element at {element:?} ms, the discipline at {behind:?} ms");
        }
    }
}
