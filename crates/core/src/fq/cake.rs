//! CAKE: a shaper, tins by Diffserv, and in each tin a queue with COBALT for each flow, with fairness among hosts first
//! and among their flows second.
//!
//! Source: Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: A Comprehensive Queue Management Solution for Home Gateways",
//! 2018; tc-cake(8); net/sched/sch_cake.c of Linux 6.12. The paper tells the ideas, the kernel's code every number, so the
//! arithmetic here is that of the kernel (`aqm/cobalt/linux.rs` for COBALT).
//!
//! ```text
//! enqueue    tin = that of the DSCP; queue = set-associative hash (`cake/hashing.rs`); store; filter ACKs (`cake/acks.rs`)
//!            a queue in no list, or decaying: to the new list as sparse, deficit = quantum
//! no room    drop the head of the fattest queue of all tins (`cake/fattest.rs`), which COBALT is told
//! dequeue    wait until the shaper allows (`cake/shaper.rs`)
//!            tin   shaped: the last one that is behind its threshold, else the one whose packet is due first
//!                  unlimited: DRR by the quanta of the tins
//!            queue first of the decaying list, once; else of the new, else of the old one
//!              deficit <= 0:  deficit += quantum, to the end of the old list; a sparse queue with packets becomes bulk
//!              empty:         COBALT is told; to the end of the decaying list until COBALT is at rest, else it leaves
//!              else:          COBALT judges heads until one passes; deficit -= adjusted size
//! quantum    (clamp(rate / 4096 s, 300 B, 1514 B) * (65535 / host load) + a random number of 16 bits) / 65536
//! host load  the bulk flows of the host of the queue, source or destination, whichever has more; 1 at least
//! ```
//!
//! **Limits.** `memory_limit`, by default four times the bytes of `rtt` at `bandwidth`, at least 4 MiB and at most 10,240
//! packets of `mtu`; and the limit of the queue before the link, in packets or bytes. Both make room from the head.
//!
//! Invariants: packets of all queues add up to the backlog; a queue with packets is in one of the lists of its tin; the bulk
//! flows of a host are queues of the set *bulk*. Cost: O(1) per packet, plus O(log n) while packets are dropped for want
//! of room, plus the length of the queue for an ACK that is filtered. No allocation per packet.
//!
//! DIFFERENCE: a packet shows no addresses. The node of a flow stands for the host of the side that `isolation` asks for,
//! and the far end of each flow is a host of its own; so is a flow without a node. Pinned by
//! `flows_of_a_node_share_what_one_host_gets`, `a_flow_without_a_node_is_a_host_of_its_own`.
//! DIFFERENCE: where somebody wrote the class of a flow, that is the codepoint, and not the DSCP of its packets. Packets that show
//! no DSCP, as those of the simulator, and classes above 63 are DF. There is no `fwmark`, `nat` or filter of tc. Pinned by
//! `the_class_of_a_flow_is_its_codepoint`, `a_packet_goes_into_the_tin_of_its_codepoint`.
//! DIFFERENCE: the size of a packet is that of its IP packet, so nothing is subtracted for a link layer before `overhead` is
//! added. Packets are no GSO packets, so `split-gso` has no meaning. Pinned by `the_shaper_charges_overhead_and_cells`.
//! DIFFERENCE: memory is the sum of packet sizes, not of buffers (Linux: truesize). Pinned by
//! `room_is_made_at_the_head_of_the_fattest_queue`.
//! DIFFERENCE: the ACK filter sees no SACK blocks and no options beyond timestamps and those of a SYN. Linux keeps an ACK
//! that tells SACK blocks which the next one does not tell, and drops one of two with the same number if the later one
//! tells more; here the number decides. Pinned by `the_ack_filter_goes_by_the_number`.
//! DIFFERENCE: BLUE draws no number for a packet that COBALT drops anyway, as in Linux since 6.13; 6.12 does. No fate depends
//! on it. Pinned by `blue_draws_only_for_what_codel_leaves`.
//! DIFFERENCE: the kernel's heap does not always have the fattest queue on top. `compat = "linux"` does as the kernel. Pinned
//! by `in_the_kernel_a_queue_sinks_by_one_level`.
//! DIFFERENCE: a limit in packets or bytes before the link holds as well, which a qdisc of Linux has only by `memlimit`.
//! Pinned by `packets_without_bytes_make_room`.
//! DIFFERENCE: `autorate-ingress` is not there: with a rate that changes, `bandwidth` stays as it is. Pinned by
//! `the_rate_of_the_link_does_not_matter`.

mod acks;
mod chains;
mod config;
mod fattest;
mod hashing;
mod shaper;
#[cfg(test)]
mod tests;
mod tin;
mod tins;

pub use acks::AckFilter;
pub use config::Config;
pub use hashing::Isolation;
pub use tins::Tins;

use crate::ack_path::AckPath;
use crate::aqm::cobalt::linux::{Head, Pace};
use crate::classify::drawn_key;
use crate::fact::Fact;
use crate::link_layer::LinkLayer;
use crate::packet::{FlowId, NodeId, Packet};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats, Verdict};
use crate::rng::Rng;
use crate::slab::{Position, Slab, Taken};
use crate::units::{Bytes, Instant, Limit};
use fattest::Fattest;
use hashing::Hashes;
use shaper::Shaper;
use tin::{Counts, Note, Tin};
use tins::CODEPOINTS;

/// Number of queues of a tin.
const QUEUES: usize = 1024;
/// Largest number of tins.
const MOST_TINS: usize = 8;
/// What is known of a flow.
#[derive(Debug, Clone, Copy)]
struct Known {
    node: NodeId,
    /// The tin of the class that somebody wrote.
    tin: Option<u8>,
}

const UNKNOWN: Known = Known { node: NodeId::NOBODY, tin: None };

/// CAKE with its packets.
#[derive(Debug, Clone)]
pub struct Cake<P> {
    tins: Vec<Tin>,
    fattest: Fattest,
    slab: Slab<P, Note>,
    shaper: Option<Shaper>,
    limit: Limit,
    memory: u64,
    model: Tins,
    isolation: Isolation,
    layer: LinkLayer,
    wash: bool,
    ack_filter: AckFilter,
    ingress: bool,
    key: Option<u64>,
    /// What was told of flows, by their index.
    flows: Vec<Known>,
    /// The tin that is served.
    current: usize,
    wakeup: Option<Instant>,
    backlog: Backlog,
    stats: Stats,
}

impl<P: Packet> Cake<P> {
    /// Creates empty queues. The parameters must be valid.
    pub fn new(config: &Config, limit: Limit) -> Self {
        let shares = config.tins.shares(config.rate());
        Self {
            tins: shares.iter().map(|share| Tin::new(config, share)).collect(),
            fattest: Fattest::new(config.compat),
            slab: Slab::new(),
            shaper: config.bandwidth.map(|_| Shaper::new(Pace::of(config.rate()))),
            limit,
            memory: config.memory(),
            model: config.tins,
            isolation: config.isolation,
            layer: config.layer(),
            wash: config.wash,
            ack_filter: config.ack_filter,
            ingress: config.ingress,
            key: config.perturbation,
            flows: Vec::new(),
            current: 0,
            wakeup: None,
            backlog: Backlog::default(),
            stats: Stats::default(),
        }
    }

    /// What is known of a flow.
    #[inline]
    fn known(&self, flow: FlowId) -> Known {
        self.flows.get(flow.0 as usize).copied().unwrap_or(UNKNOWN)
    }

    fn learn(&mut self, flow: FlowId, change: impl FnOnce(&mut Known)) {
        let mut known = self.known(flow);
        change(&mut known);
        let at = flow.0 as usize;
        if at >= self.flows.len() {
            self.flows.resize(at + 1, UNKNOWN);
        }
        self.flows[at] = known;
    }

    /// Begins shapers anew that have been idle.
    #[inline]
    fn refresh(&mut self, tin: usize, now: Instant) {
        if self.tins[tin].backlog == 0 {
            self.tins[tin].threshold.refresh(now);
            if let Some(shaper) = self.shaper.as_mut().filter(|_| self.backlog.packets == 0) {
                shaper.refresh(now);
            }
        }
    }

    /// Charges a packet to the shaper and to its tin.
    #[inline]
    fn charge(&mut self, tin: usize, adjusted: u64, is_dropped: bool, now: Instant) {
        if let Some(shaper) = &mut self.shaper {
            shaper.charge(adjusted, is_dropped);
            self.tins[tin].threshold.charge(adjusted, now);
        }
    }

    fn drop<O: PacketObserver<P>>(&mut self, packet: P, reason: DropReason, now: Instant, observer: &mut O) {
        self.stats.count_drop(reason, packet.size());
        observer.dropped(packet, reason, now);
    }

    fn mark<O: PacketObserver<P>>(&mut self, packet: &mut P, now: Instant, observer: &mut O) {
        debug_assert!(packet.ecn().is_capable(), "COBALT marked a packet that is not ECN-capable");
        packet.mark_ce();
        self.stats.marked.add(packet.size());
        observer.marked(packet, now);
    }

    #[inline]
    fn push(&mut self, tin: usize, at: usize, packet: P, now: Instant) -> Result<Position, P> {
        let size = packet.size();
        let note = Note { since: now, adjusted: self.layer.on_wire(size).get() };
        let position = self.slab.push(&mut self.tins[tin].queues[at].list, packet, note)?;
        self.tins[tin].backlog += size.get();
        self.fattest.add(tin * QUEUES + at, size.get());
        self.backlog.add(size);
        Ok(position)
    }

    /// Notes that a packet has left its queue.
    #[inline]
    fn left(&mut self, tin: usize, at: usize, size: Bytes) {
        self.tins[tin].backlog -= size.get();
        self.fattest.remove(tin * QUEUES + at, size.get());
        self.backlog.remove(size);
    }

    #[inline]
    fn pop(&mut self, tin: usize, at: usize) -> Option<Taken<P, Note>> {
        let taken = self.slab.pop(&mut self.tins[tin].queues[at].list)?;
        self.left(tin, at, taken.packet.size());
        self.fattest.shrank(tin * QUEUES + at);
        Some(taken)
    }

    /// Removes an ACK which the last packet of a queue makes redundant.
    #[inline]
    fn filter<O: PacketObserver<P>>(&mut self, tin: usize, at: usize, now: Instant, observer: &mut O) {
        if self.ack_filter == AckFilter::No {
            return;
        }
        let aggressive = self.ack_filter == AckFilter::Aggressive;
        let list = &mut self.tins[tin].queues[at].list;
        let Some(before) = acks::redundant(&mut self.slab, list, aggressive) else { return };
        let Some(taken) = self.slab.remove_behind(list, before) else { return };
        self.left(tin, at, taken.packet.size());
        self.tins[tin].counts.acks_filtered += 1;
        if self.ingress {
            self.charge(tin, taken.note.adjusted, true, now);
        }
        self.drop(taken.packet, DropReason::Dequeue, now, observer);
    }

    /// Drops heads of the fattest queues until the limits hold; true if the packet at `position` was among them.
    #[cold]
    fn shed<O: PacketObserver<P>>(&mut self, position: Position, now: Instant, observer: &mut O) -> bool {
        let mut gone = false;
        while self.exceeds() {
            let top = self.fattest.top();
            let (tin, at) = (top / QUEUES, top % QUEUES);
            // A tin that is not in use has no queues, and a queue on top may be empty: the heap is out of date.
            let is_empty = self.tins.get(tin).is_none_or(|tin| tin.queues[at].is_empty(&self.slab));
            let (tin, at) = if is_empty { self.any_with_packets() } else { (tin, at) };
            let Some(taken) = self.pop(tin, at) else { return gone };
            gone |= taken.position == position;
            let Tin { queues, params, counts, .. } = &mut self.tins[tin];
            queues[at].aqm.queue_full(params, now);
            counts.dropped += 1;
            if self.ingress {
                self.charge(tin, taken.note.adjusted, true, now);
            }
            self.drop(taken.packet, DropReason::Overflow, now, observer);
        }
        gone
    }

    /// Finds a queue with packets after the one on top had none: in a new heap, or anywhere if no packet has bytes.
    #[cold]
    fn any_with_packets(&mut self) -> (usize, usize) {
        self.fattest.went_wrong();
        let top = self.fattest.top();
        let has_packets = |queue: &usize| {
            let tin = self.tins.get(queue / QUEUES);
            tin.is_some_and(|tin| !tin.queues[queue % QUEUES].is_empty(&self.slab))
        };
        let any = std::iter::once(top).chain(0..MOST_TINS * QUEUES).find(has_packets).unwrap_or(top);
        (any / QUEUES % self.tins.len(), any % QUEUES)
    }

    #[inline]
    fn exceeds(&self) -> bool {
        self.backlog.exceeds(self.limit) || self.backlog.bytes > self.memory
    }

    /// The tin whose turn it is; `None` if none has packets.
    #[inline]
    fn choose_tin(&mut self, now: Instant) -> Option<usize> {
        if self.shaper.is_some() { self.tin_by_threshold(now) } else { self.tin_by_deficit() }
    }

    /// The last of the tins that are behind their thresholds, else the one whose packet is due first.
    fn tin_by_threshold(&mut self, now: Instant) -> Option<usize> {
        let mut best = None;
        for (at, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.is_active()) {
            let due_in = tin.threshold.due_in(now);
            if due_in <= 0 || best.is_none_or(|(_, least)| due_in <= least) {
                best = Some((at, due_in));
            }
        }
        self.current = best.map_or(0, |(at, _)| at);
        best.map(|(at, _)| at)
    }

    /// The tin of a round by bytes.
    fn tin_by_deficit(&mut self) -> Option<usize> {
        if !self.tins.iter().any(Tin::is_active) {
            return None;
        }
        loop {
            let tin = &mut self.tins[self.current];
            if tin.deficit >= 0 && tin.is_active() {
                return Some(self.current);
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.quantum;
            }
            self.current = (self.current + 1) % self.tins.len();
        }
    }

    /// The packet of the next turn in a tin; `None` if the tin must be chosen anew.
    fn turn<O: PacketObserver<P>>(
        &mut self,
        tin: usize,
        first: &mut bool,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Option<(P, Note)> {
        loop {
            let at = self.tins[tin].first(std::mem::take(first))?;
            if self.tins[tin].queues[at].deficit <= 0 {
                let is_empty = self.tins[tin].queues[at].is_empty(&self.slab);
                self.tins[tin].end_turn(at, is_empty, rng);
                continue;
            }
            match self.passing_head(tin, at, now, rng, observer) {
                Passing::Sent(packet, note) => return Some((packet, note)),
                Passing::Charged => {}
                Passing::Empty => {
                    self.tins[tin].found_empty(at, now);
                    return None;
                }
            }
        }
    }

    /// Takes the first packet of a queue that COBALT passes.
    #[inline]
    fn passing_head<O: PacketObserver<P>>(
        &mut self,
        tin: usize,
        at: usize,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Passing<P> {
        while let Some(Taken { mut packet, note, .. }) = self.pop(tin, at) {
            let Tin { queues, params, bulk, counts, .. } = &mut self.tins[tin];
            let head = Head {
                sojourn: now.since(note.since),
                can_be_marked: packet.ecn().is_capable(),
                is_last: queues[at].is_empty(&self.slab),
                bulk_flows: if self.ingress { u64::from(*bulk) } else { 0 },
            };
            match queues[at].aqm.should_drop(params, &head, now, rng) {
                Verdict::Drop => {
                    counts.dropped += 1;
                    self.drop(packet, DropReason::Dequeue, now, observer);
                    if self.ingress {
                        self.charge(tin, note.adjusted, true, now);
                        self.spend(tin, at, note.adjusted);
                        return Passing::Charged;
                    }
                    continue;
                }
                Verdict::Mark => {
                    counts.marked += 1;
                    self.mark(&mut packet, now, observer);
                }
                Verdict::Pass => {}
            }
            self.charge(tin, note.adjusted, false, now);
            self.spend(tin, at, note.adjusted);
            return Passing::Sent(packet, note);
        }
        Passing::Empty
    }

    #[inline]
    fn spend(&mut self, tin: usize, at: usize, adjusted: u64) {
        self.tins[tin].queues[at].deficit -= adjusted as i64;
        self.tins[tin].deficit -= adjusted as i64;
    }
}

/// How the turn of a queue ended.
enum Passing<P> {
    /// With a packet.
    Sent(P, Note),
    /// With a packet that was dropped and charged.
    Charged,
    /// The queue has no packet left.
    Empty,
}

impl<P: Packet> Qdisc<P> for Cake<P> {
    const WAKES: bool = true;

    #[inline]
    fn enqueue<O: PacketObserver<P>>(
        &mut self,
        mut packet: P,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Enqueued {
        self.stats.arrived.add(packet.size());
        let (flow, key) = (packet.flow(), *self.key.get_or_insert_with(|| drawn_key(rng)));
        let Known { node, tin } = self.known(flow);
        let tin = usize::from(tin.unwrap_or_else(|| self.model.of(packet.dscp().unwrap_or(0))));
        if self.wash {
            packet.wash();
        }
        let hashes = Hashes::of(self.isolation, flow, node, key);
        let Tin { queues, owners, .. } = &mut self.tins[tin];
        let at = owners.queue_of(&hashes, |queue| queues[queue].set);
        self.refresh(tin, now);
        let position = match self.push(tin, at, packet, now) {
            Ok(position) => position,
            Err(packet) => {
                self.drop(packet, DropReason::Overflow, now, observer);
                return Enqueued::Dropped(DropReason::Overflow);
            }
        };
        self.filter(tin, at, now, observer);
        self.fattest.grew(tin * QUEUES + at);
        self.tins[tin].activate(at, rng);
        if self.exceeds() && self.shed(position, now, observer) {
            return Enqueued::Dropped(DropReason::Overflow);
        }
        Enqueued::Queued
    }

    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        self.wakeup = None;
        let mut first = true;
        while self.backlog.packets > 0 {
            if let Some(until) = self.shaper.and_then(|shaper| shaper.blocked_until(now)) {
                self.wakeup = Some(until);
                return None;
            }
            let tin = self.choose_tin(now)?;
            if let Some((packet, _)) = self.turn(tin, &mut first, now, rng, observer) {
                self.stats.sent.add(packet.size());
                self.tins[tin].counts.sent += 1;
                self.fattest.departed();
                return Some(packet);
            }
        }
        None
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.wakeup
    }

    fn on_wakeup(&mut self, _: Instant) {
        self.wakeup = None;
    }

    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        match *fact {
            Fact::Owner { flow, node } => self.learn(flow, |known| known.node = node),
            Fact::Class { flow, class } => {
                let tin = self.model.of(if class < CODEPOINTS { class as u8 } else { 0 });
                self.learn(flow, |known| known.tin = Some(tin));
            }
            Fact::FlowGone(flow) => self.learn(flow, |known| *known = UNKNOWN),
            _ => {}
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The counters of each tin.
    fn report(&self) -> Option<serde_json::Value> {
        let of = |tin: &Tin| {
            let Counts { sent, dropped, marked, acks_filtered } = tin.counts;
            let found = tin.owners.found;
            serde_json::json!({
                "sent": sent, "dropped": dropped, "marked": marked, "acks_filtered": acks_filtered,
                "way_hits": found.hits, "way_misses": found.misses, "way_collisions": found.collisions,
            })
        };
        Some(serde_json::json!({ "tins": self.tins.iter().map(of).collect::<Vec<_>>() }))
    }
}

/// The ACK filter reads packets that wait, and none of the other direction.
impl<P> AckPath for Cake<P> {}
