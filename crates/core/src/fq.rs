//! Flow queueing: each flow has a queue and an AQM of its own, and the queues take turns.
//!
//! Source: RFC 8290 §3 to §5 (FQ-CoDel); Patil 2020, chapter 5 (FQ-PIE), whose lists and rounds are those of the RFC.
//! The flow of a packet is hashed to one of N queues. A queue that becomes active goes before the queues that were
//! active already, so that sparse flows have no queueing delay; otherwise turns are equal in bytes
//! (`sched/new_old.rs`).
//!
//! ```text
//! enqueue   queue = hash(flow, key); its AQM judges; store; if in no list: to the new list with one quantum      §4.1
//! no room   from the head of the queue with most bytes drop drop_batch packets, or half of its bytes if less     §4.1
//! dequeue   the queue whose turn it is; its AQM judges heads until one passes                                    §4.2
//! ```
//!
//! Invariants: the packets of all queues add up to the backlog; a queue with packets is in one of the two lists;
//! packets of a flow leave in the order of their arrival. Memory: packets are in one array with a list of free places;
//! each queue has about 50 bytes and the state of its AQM. Cost: O(1), plus a search through the queues for each batch
//! of drops.
//!
//! **A crowd.** Packets of many flows may share one queue, which has the turns of so many queues (`fq/crowd.rs`).
//!
//! **Limits.** The limit of the queue before the link (RFC: 10240 packets) and, in addition, `memory_limit` in bytes.
//!
//! **Timers.** One timer serves all queues. When it is due, every AQM that has been used and wants to be woken is
//! woken, whether its queue has packets or not: state that ages while a queue is empty (PIE's probability) ages here
//! too, as in Linux. Queues that have not been used share one AQM, which is woken with the others and from which they
//! start. An AQM that catches up on its updates later (PIE) needs no timer and ages equally.
//!
//! DIFFERENCE: memory is the sum of packet sizes on the link, not of buffers (Linux: truesize). Pinned by
//! `memory_is_limited_in_bytes`.
//! DIFFERENCE: with `ways` above 1 collisions are avoided as in cake, see `classify.rs`. Plain hashing is that of the
//! RFC. Pinned by `flows_of_a_set_get_queues_of_their_own`.
//! DIFFERENCE: with `overflow = "arrival"` (Patil, Algorithm 7) the arriving packet is refused and no packet of another
//! flow is dropped. If `compat = "linux"` is also set, exceeding `memory_limit` is only counted, as in sch_fq_pie.
//! Pinned by `memory_overruns_are_only_counted_as_in_linux`.
//! DIFFERENCE: FQ-PIE drops from the fattest queue, as all flow queueing here, and not the arrival as Patil and Linux:
//! a flow that does not listen would fill the room of all others. `compat = "linux"` refuses the arrival. Pinned by
//! `the_pie_family_refuses_the_packet_that_comes_in_linux`, `a_flood_takes_no_room_from_others_in_fq_pie`.

pub mod cake;
mod config;
mod crowd;
#[cfg(test)]
mod tests;

pub use crate::config::{FlowQueues as Parameters, Overflow};
pub use config::Config;
use crowd::Crowd;

use crate::ack_path::AckPath;
use crate::classify::Classifier;
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::packet::{FlowId, Packet};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats, Verdict};
use crate::rng::Rng;
use crate::sched::new_old::NewOld;
use crate::slab::{List, Position, Slab, Taken};
use crate::units::{Instant, Limit};

/// A flow queue with its AQM.
#[derive(Debug, Clone)]
struct Queue<A> {
    list: List,
    packets: u32,
    used: bool,
    aqm: A,
}

/// Flow queues, each with an AQM of its own.
#[derive(Debug, Clone)]
pub struct FlowQueue<P, A> {
    parameters: Parameters,
    limit: Limit,
    classifier: Classifier,
    turns: NewOld,
    queues: Vec<Queue<A>>,
    /// The bytes in each queue, kept in an array of their own so that the search for the fattest queue reads little
    /// memory.
    bytes: Vec<u64>,
    slab: Slab<P, Instant>,
    backlog: Backlog,
    stats: Stats,
    /// The queues that have been used, in order of their first use.
    used: Vec<u32>,
    /// The AQM from which the queues start that have not been used.
    unused: A,
    crowd: Option<Box<Crowd>>,
    wakeup: Option<Instant>,
    whole_backlog: bool,
    memory_overruns: u64,
}

impl<P: Packet, A: Aqm + Clone> FlowQueue<P, A> {
    /// Creates empty queues, each with a copy of `aqm`. The parameters must be valid.
    pub fn new(limit: Limit, parameters: &Parameters, aqm: A) -> Self {
        let n = parameters.flows as usize;
        let queue = Queue { list: List::default(), packets: 0, used: false, aqm: aqm.clone() };
        Self {
            limit,
            classifier: Classifier::new(parameters.flows, parameters.ways, parameters.perturbation),
            turns: NewOld::new(n, parameters.quantum),
            queues: vec![queue; n],
            bytes: vec![0; n],
            slab: Slab::new(),
            backlog: Backlog::default(),
            stats: Stats::default(),
            used: Vec::new(),
            crowd: None,
            wakeup: aqm.next_wakeup(),
            whole_backlog: aqm.wants_whole_backlog(),
            unused: aqm,
            memory_overruns: 0,
            parameters: parameters.clone(),
        }
    }

    /// The AQM of a queue, to read its state; `None` if there is no such queue.
    pub fn aqm(&self, queue: usize) -> Option<&A> {
        self.queues.get(queue).map(|q| &q.aqm)
    }

    /// Number of packets that were accepted beyond the memory limit. Always 0 where that limit is enforced.
    pub fn memory_overruns(&self) -> u64 {
        self.memory_overruns
    }

    /// The backlog that the AQM of a queue sees.
    #[inline]
    fn shown(&self, at: usize) -> Backlog {
        if self.whole_backlog {
            return self.backlog;
        }
        Backlog { packets: u64::from(self.queues[at].packets), bytes: self.bytes[at] }
    }

    #[inline]
    fn begin_use(&mut self, at: usize) {
        if !self.queues[at].used {
            self.queues[at].used = true;
            self.queues[at].aqm.clone_from(&self.unused);
            self.used.push(at as u32);
        }
    }

    /// Updates the timer after an AQM was called, which may want to be woken earlier than before.
    #[inline]
    fn note_timer(&mut self, at: usize) {
        if let Some(due) = self.queues[at].aqm.next_wakeup() {
            self.wakeup = Some(self.wakeup.map_or(due, |before| before.min(due)));
        }
    }

    fn drop<O: PacketObserver<P>>(&mut self, packet: P, reason: DropReason, now: Instant, observer: &mut O) {
        self.stats.count_drop(reason, packet.size());
        observer.dropped(packet, reason, now);
    }

    fn mark<O: PacketObserver<P>>(&mut self, packet: &mut P, now: Instant, observer: &mut O) {
        debug_assert!(packet.ecn().is_capable(), "an AQM marked a packet that is not ECN-capable");
        packet.mark_ce();
        self.stats.marked.add(packet.size());
        observer.marked(packet, now);
    }

    #[inline]
    fn push(&mut self, at: usize, packet: P, now: Instant) -> Result<Position, P> {
        let (size, flow) = (packet.size(), packet.flow());
        let position = self.slab.push(&mut self.queues[at].list, packet, now)?;
        if let Some(crowd) = &mut self.crowd {
            crowd.joined(at, flow, size);
        }
        self.queues[at].packets += 1;
        self.bytes[at] += size.get();
        self.backlog.add(size);
        self.turns.activate(at);
        Ok(position)
    }

    #[inline]
    fn pop(&mut self, at: usize) -> Option<Taken<P, Instant>> {
        let taken = self.slab.pop(&mut self.queues[at].list)?;
        let size = taken.packet.size();
        self.queues[at].packets -= 1;
        self.bytes[at] -= size.get();
        if let Some(crowd) = &mut self.crowd {
            crowd.left(at, taken.packet.flow(), size);
        }
        self.backlog.remove(size);
        Some(taken)
    }

    /// True if `more` would exceed a limit.
    #[inline]
    fn exceeds(&self, more: Backlog) -> bool {
        let Backlog { packets, bytes } = self.backlog;
        let all = Backlog { packets: packets + more.packets, bytes: bytes + more.bytes };
        all.exceeds(self.limit) || (self.memory_is_enforced() && self.exceeds_memory(more))
    }

    fn exceeds_memory(&self, more: Backlog) -> bool {
        self.backlog.bytes + more.bytes > self.parameters.memory_limit.get()
    }

    fn memory_is_enforced(&self) -> bool {
        !(self.parameters.overflow == Overflow::Arrival && self.parameters.compat.is_linux())
    }

    /// Refuses a packet for which there is no room.
    fn refuse<O: PacketObserver<P>>(&mut self, at: usize, packet: P, now: Instant, observer: &mut O) -> Enqueued {
        self.queues[at].aqm.on_overflow(now);
        self.note_timer(at);
        self.drop(packet, DropReason::Overflow, now, observer);
        Enqueued::Dropped(DropReason::Overflow)
    }

    /// Drops packets from the fattest queues until the limits hold; true if the packet at `position` was among them.
    fn shed<O: PacketObserver<P>>(&mut self, position: Position, now: Instant, observer: &mut O) -> bool {
        let mut gone = false;
        while self.exceeds(Backlog::default()) {
            let mut fattest = self.fattest();
            if self.queues[fattest].packets == 0 {
                // All packets are without bytes.
                fattest = self.queues.iter().position(|queue| queue.packets > 0).unwrap_or(fattest);
            }
            gone |= self.shed_from(fattest, position, now, observer);
            self.note_timer(fattest);
        }
        gone
    }

    /// Drops one batch from a queue: `drop_batch` packets or half of its bytes, whichever comes first.
    fn shed_from<O: PacketObserver<P>>(
        &mut self,
        at: usize,
        position: Position,
        now: Instant,
        observer: &mut O,
    ) -> bool {
        let (enough, mut gone, mut shed) = (self.bytes[at] / 2, false, 0);
        for _ in 0..self.parameters.drop_batch {
            let shown = self.shown(at);
            let Some(taken) = self.pop(at) else { break };
            shed += taken.packet.size().get();
            gone |= taken.position == position;
            self.queues[at].aqm.on_shed(shown, now);
            self.drop(taken.packet, DropReason::Overflow, now, observer);
            if shed >= enough {
                break;
            }
        }
        gone
    }

    /// Takes the first packet of a queue that its AQM passes; `None` if the queue runs empty.
    #[inline]
    fn passing_head<O: PacketObserver<P>>(
        &mut self,
        at: usize,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Option<P> {
        while let Some(Taken { mut packet, note: since, .. }) = self.pop(at) {
            let shown = self.shown(at);
            match self.queues[at].aqm.on_dequeue(&Meta::of(&packet), now.since(since), shown, now, rng) {
                Verdict::Drop => {
                    self.drop(packet, DropReason::Dequeue, now, observer);
                    continue;
                }
                Verdict::Mark => self.mark(&mut packet, now, observer),
                Verdict::Pass => {}
            }
            return Some(packet);
        }
        self.queues[at].aqm.on_empty(now);
        None
    }

    /// The queue of a flow.
    #[inline]
    fn own_queue(&mut self, flow: FlowId, rng: &mut Rng) -> usize {
        let turns = &self.turns;
        self.classifier.queue_of(flow, rng, |queue| turns.is_active(queue))
    }

    #[inline]
    fn enqueue_at<O: PacketObserver<P>>(
        &mut self,
        at: usize,
        mut packet: P,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Enqueued {
        let size = packet.size();
        self.stats.arrived.add(size);
        self.begin_use(at);
        let shown = self.shown(at);
        let verdict = self.queues[at].aqm.on_arrival(&packet, shown, now, rng);
        self.note_timer(at);
        if verdict == Verdict::Drop {
            self.stats.count_forced(self.queues[at].aqm.was_forced(), size);
            self.drop(packet, DropReason::Early, now, observer);
            return Enqueued::Dropped(DropReason::Early);
        }
        // FQ-PIE (Patil, Algorithm 7) refuses the arriving packet; FQ-CoDel makes room below (RFC 8290 §4.1).
        if self.parameters.overflow == Overflow::Arrival {
            let more = Backlog { packets: 1, bytes: size.get() };
            if self.exceeds(more) {
                return self.refuse(at, packet, now, observer);
            }
            self.memory_overruns += u64::from(self.exceeds_memory(more));
        }
        if verdict == Verdict::Mark {
            self.mark(&mut packet, now, observer);
        }
        let position = match self.push(at, packet, now) {
            Ok(position) => position,
            Err(packet) => return self.refuse(at, packet, now, observer),
        };
        if self.exceeds(Backlog::default()) && self.shed(position, now, observer) {
            return Enqueued::Dropped(DropReason::Overflow);
        }
        Enqueued::Queued
    }
}

/// The first of the queues with the most bytes.
fn fattest(bytes: &[u64]) -> usize {
    let mut fattest = 0;
    for (at, size) in bytes.iter().enumerate() {
        if *size > bytes[fattest] {
            fattest = at;
        }
    }
    fattest
}

impl<P: Packet, A: Aqm + Clone> Qdisc<P> for FlowQueue<P, A> {
    const WAKES: bool = A::WAKES;

    #[inline]
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued {
        let at = self.own_queue(packet.flow(), rng);
        self.enqueue_at(at, packet, now, rng, observer)
    }

    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        while let Some(at) = self.turns.turn() {
            let head = self.passing_head(at, now, rng, observer);
            self.note_timer(at);
            if let Some(packet) = head {
                let size = packet.size();
                self.turns.spend(at, size);
                self.stats.sent.add(size);
                return Some(packet);
            }
            // RFC 8290 §4.2: the queue has no packet left for its turn.
            self.turns.found_empty();
        }
        None
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.wakeup
    }

    fn on_wakeup(&mut self, now: Instant) {
        wake(&mut self.unused, Backlog::default(), now);
        let mut next = self.unused.next_wakeup();
        for i in 0..self.used.len() {
            let at = self.used[i] as usize;
            let shown = self.shown(at);
            let aqm = &mut self.queues[at].aqm;
            wake(aqm, shown, now);
            next = [next, aqm.next_wakeup()].into_iter().flatten().min();
        }
        self.wakeup = next;
    }

    /// Passes the fact to the AQMs of all used queues, and to the AQM from which unused queues start.
    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        self.unused.on_fact(fact, now);
        for at in &self.used {
            self.queues[*at as usize].aqm.on_fact(fact, now);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

/// Wakes an AQM whose wake-up time has come.
fn wake<A: Aqm>(aqm: &mut A, backlog: Backlog, now: Instant) {
    if aqm.next_wakeup().is_some_and(|due| due <= now) {
        aqm.on_wakeup(backlog, now);
    }
}

/// Elements that edit ACKs need to see all flows and cannot be the AQM of one flow: [`Config`] refuses them.
impl<P, A> AckPath for FlowQueue<P, A> {}
