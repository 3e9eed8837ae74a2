//! Shared queue storage: a FIFO with a limit in packets or bytes, judged by an [`Aqm`].

use crate::ack_path::AckPath;
use crate::allocation::Members;
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::packet::{FlowId, Packet, TcpView};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats, Verdict};
use crate::rng::Rng;
use crate::units::{Instant, Limit, Rate};
use std::collections::VecDeque;

#[derive(Debug, Clone)]
struct Waiting<P> {
    packet: P,
    since: Instant,
}

/// One queue in order of arrival, with a limit and an AQM.
///
/// On arrival the AQM judges first, since its averages need every packet; a packet which it lets pass is still dropped
/// if there is no room, unless the AQM drops from the head. On departure the AQM judges each head packet until it lets one pass.
#[derive(Debug, Clone)]
pub struct Fifo<P, A> {
    waiting: VecDeque<Waiting<P>>,
    limit: Limit,
    backlog: Backlog,
    stats: Stats,
    aqm: A,
}

impl<P: Packet, A: Aqm> Fifo<P, A> {
    /// Creates an empty queue with this limit, judged by `aqm`.
    pub fn new(limit: Limit, aqm: A) -> Self {
        Self { waiting: VecDeque::new(), limit, backlog: Backlog::default(), stats: Stats::default(), aqm }
    }

    /// Returns the AQM, to read its state.
    pub fn aqm(&self) -> &A {
        &self.aqm
    }

    /// Returns the AQM, to show it segments of both directions as an [`AckPath`].
    pub fn aqm_mut(&mut self) -> &mut A {
        &mut self.aqm
    }

    fn drop<O: PacketObserver<P>>(&mut self, packet: P, reason: DropReason, now: Instant, observer: &mut O) {
        self.stats.count_drop(reason, packet.size());
        observer.dropped(packet, reason, now);
    }

    /// Drops heads until the queue is within its limit. The packet that just arrived is the last one.
    #[cold]
    fn shed<O: PacketObserver<P>>(&mut self, now: Instant, observer: &mut O) -> Enqueued {
        while self.backlog.exceeds(self.limit) {
            self.aqm.on_shed(self.backlog, now);
            let Some(Waiting { packet, .. }) = self.waiting.pop_front() else { break };
            self.backlog.remove(packet.size());
            self.drop(packet, DropReason::Overflow, now, observer);
        }
        if self.waiting.is_empty() { Enqueued::Dropped(DropReason::Overflow) } else { Enqueued::Queued }
    }

    fn mark<O: PacketObserver<P>>(&mut self, packet: &mut P, now: Instant, observer: &mut O) {
        debug_assert!(packet.ecn().is_capable(), "an AQM marked a packet that is not ECN-capable");
        packet.mark_ce();
        self.stats.marked.add(packet.size());
        observer.marked(packet, now);
    }
}

impl<P: Packet, A: Aqm> Qdisc<P> for Fifo<P, A> {
    const WAKES: bool = A::WAKES;
    const GIVES_UP: bool = !A::COUNTS;

    #[inline]
    fn enqueue<O: PacketObserver<P>>(
        &mut self,
        mut packet: P,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Enqueued {
        let size = packet.size();
        self.stats.arrived.add(size);
        let verdict = self.aqm.on_arrival(&packet, self.backlog, now, rng);
        let has_room = self.backlog.has_room(size, self.limit);
        let refused = match verdict {
            Verdict::Drop => Some(DropReason::Early),
            _ if !has_room && !self.aqm.drops_head() => Some(DropReason::Overflow),
            _ => None,
        };
        if let Some(reason) = refused {
            match reason {
                DropReason::Overflow => self.aqm.on_overflow(now),
                _ => self.stats.count_forced(self.aqm.was_forced(), size),
            }
            self.drop(packet, reason, now, observer);
            return Enqueued::Dropped(reason);
        }
        if verdict == Verdict::Mark {
            self.mark(&mut packet, now, observer);
        }
        self.backlog.add(size);
        self.waiting.push_back(Waiting { packet, since: now });
        if has_room { Enqueued::Queued } else { self.shed(now, observer) }
    }

    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        // The packet is judged before it is moved out of the queue: if its fields were read after the move, the
        // compiler would move it field by field.
        while let Some(first) = self.waiting.front() {
            let (meta, size, sojourn) = (Meta::of(&first.packet), first.packet.size(), now.since(first.since));
            self.backlog.remove(size);
            let verdict = self.aqm.on_dequeue(&meta, sojourn, self.backlog, now, rng);
            let Some(Waiting { mut packet, .. }) = self.waiting.pop_front() else { break };
            match verdict {
                Verdict::Drop => {
                    self.drop(packet, DropReason::Dequeue, now, observer);
                    continue;
                }
                Verdict::Mark => self.mark(&mut packet, now, observer),
                Verdict::Pass => {}
            }
            self.stats.sent.add(size);
            return Some(packet);
        }
        self.aqm.on_empty(now);
        None
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.aqm.next_wakeup()
    }

    fn on_wakeup(&mut self, now: Instant) {
        self.aqm.on_wakeup(self.backlog, now);
    }

    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        self.aqm.on_fact(fact, now);
    }

    /// The AQM is not asked and not told; it finds a shorter queue at the next packet.
    fn take_out(&mut self, flow: FlowId, taken: &mut Vec<P>) {
        if !Self::GIVES_UP {
            return;
        }
        for _ in 0..self.waiting.len() {
            let Some(waiting) = self.waiting.pop_front() else { break };
            if waiting.packet.flow() != flow {
                self.waiting.push_back(waiting);
                continue;
            }
            let size = waiting.packet.size();
            self.backlog.remove(size);
            self.stats.taken_out.add(size);
            taken.push(waiting.packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn report(&self) -> Option<serde_json::Value> {
        self.aqm.report()
    }
}

impl<P, A: AckPath> AckPath for Fifo<P, A> {
    const ACTIVE: bool = A::ACTIVE;

    fn watches(&self) -> bool {
        self.aqm.watches()
    }

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.aqm.outbound(segment, now);
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.aqm.inbound(segment, now);
    }

    fn budget_of(&self, flow: FlowId) -> Option<Rate> {
        self.aqm.budget_of(flow)
    }

    fn shares(&self) -> Option<(Rate, Members)> {
        self.aqm.shares()
    }
}
