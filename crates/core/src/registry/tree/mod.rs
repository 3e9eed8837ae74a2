//! A tree of subscribers as a queue discipline: each subscriber has a queue with a discipline of its own, and
//! [`Order`] says whose packet goes next.
//!
//! Subscribers are the nodes that [`Fact::Owner`] tells; whoever is in no list shares one queue. Settings change while
//! packets wait ([`Tree::change`]): members are the same if their names are, those who stay keep packets and clocks, and
//! the packets of those who go are sent as if they were a subscriber of weight 1.
//!
//! Each queue has the limit of the link. All together hold at most [`QUEUES`] times as much: a queue takes no packet while it
//! holds more than what is left of this room (Choudhury and Hahne 1998), so that a newcomer finds room.
//!
//! A discipline that returns no packet although it holds some (a shaper of its own) is passed over until it is woken or a
//! packet comes.

mod config;
mod parts;
#[cfg(test)]
mod tests;

pub use config::{Config, Member, Wrong, refused};

use super::{AnyConfig, AnyQdisc};
use crate::ack_path::AckPath;
use crate::config::LinkFacts;
use crate::fact::{Fact, Whom};
use crate::packet::{FlowId, NodeId, Packet};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats};
use crate::rng::Rng;
use crate::sched::Tournament;
use crate::sched::tree::Order;
use crate::succession::Succession;
use crate::units::{Instant, Limit, Rate};
use parts::Parts;
use std::collections::BTreeMap;

/// The name of a tree among disciplines. It is no name of the registry: a tree has subscribers, which no key of a
/// discipline tells.
pub const NAME: &str = "tree";

/// The limit of all queues together is so many times that of one.
pub const QUEUES: u64 = 16;

/// The queue of a subscriber.
#[derive(Debug, Clone)]
pub(crate) struct Queue<P: Packet> {
    name: String,
    discipline: AnyConfig,
    qdiscs: Succession<P, AnyQdisc<P>>,
    limit: Limit,
    backlog: Backlog,
    stats: Stats,
    /// True if it holds packets and gave none when it was asked last.
    stalled: bool,
}

impl<P: Packet> Queue<P> {
    fn new(name: &str, discipline: &AnyConfig, link: &LinkFacts) -> Self {
        Self {
            name: name.to_owned(),
            qdiscs: Succession::new(discipline.build(link)),
            discipline: discipline.clone(),
            limit: link.limit,
            backlog: Backlog::default(),
            stats: Stats::default(),
            stalled: false,
        }
    }

    /// Puts another discipline in the place of this one, unless it is the same.
    fn change(&mut self, discipline: &AnyConfig, link: &LinkFacts) {
        if self.discipline != *discipline || self.limit != link.limit {
            self.qdiscs.replace(discipline.build(link));
            (self.discipline, self.limit) = (discipline.clone(), link.limit);
        }
    }
}

/// Counts what disciplines drop and mark, for the tree and for one subscriber. The observer is of any type, so that a
/// discipline of the registry may stand in a tree of the same registry.
struct Counting<'a, P> {
    observer: &'a mut dyn PacketObserver<P>,
    counters: [&'a mut Stats; 2],
}

impl<P: Packet> PacketObserver<P> for Counting<'_, P> {
    fn dropped(&mut self, packet: P, reason: DropReason, now: Instant) {
        self.counters.iter_mut().for_each(|stats| stats.count_drop(reason, packet.size()));
        self.observer.dropped(packet, reason, now);
    }
    fn marked(&mut self, packet: &P, now: Instant) {
        self.counters.iter_mut().for_each(|stats| stats.marked.add(packet.size()));
        self.observer.marked(packet, now);
    }
}

/// A branch before a change.
struct Old<P: Packet> {
    at: usize,
    /// `None` for a group.
    queue: Option<Box<Queue<P>>>,
}

/// What a subscriber has now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Account<'a> {
    /// Its name; that of all others is empty.
    pub name: &'a str,
    /// Its discipline.
    pub discipline: &'a AnyConfig,
    /// What came, was sent and dropped.
    pub stats: &'a Stats,
    /// What waits.
    pub backlog: Backlog,
}

/// Queues of subscribers before a link.
#[derive(Debug, Clone)]
pub struct Tree<P: Packet> {
    config: Config,
    link: LinkFacts,
    order: Order,
    parts: Parts,
    /// The queue of each branch; `None` for groups. After the members stand all others, and those who are gone and have
    /// packets.
    queues: Vec<Option<Box<Queue<P>>>>,
    /// The branch of each subscriber, by its number.
    branches: Vec<u32>,
    /// The subscriber of each flow.
    owners: Vec<NodeId>,
    /// When queues want to be woken.
    timers: Tournament,
    backlog: Backlog,
    stats: Stats,
}

impl<P: Packet> Tree<P> {
    fn new(config: &Config, link: &LinkFacts) -> Self {
        let mut tree = Self {
            config: config.clone(),
            link: *link,
            order: Order::new(Vec::new(), link.rate),
            parts: Parts::default(),
            queues: Vec::new(),
            branches: Vec::new(),
            owners: Vec::new(),
            timers: Tournament::new(1),
            backlog: Backlog::default(),
            stats: Stats::default(),
        };
        tree.change(config, link.limit, Instant::ZERO);
        tree
    }

    /// Goes on with other settings, which are valid. No packet is lost.
    pub fn change(&mut self, config: &Config, limit: Limit, now: Instant) {
        self.link.limit = limit;
        let mut branches = config.branches();
        let mut before = self.take_queues();
        let (mut was, mut gone) = (Vec::new(), Vec::new());
        for at in 0..branches.len() {
            let link = LinkFacts { rate: Config::told(&branches, at, self.link.rate), limit };
            let (name, discipline) = config.queue(at);
            let old = before.remove(name);
            was.extend(old.as_ref().map(|old| (at, old.at)));
            self.queues.push(match (discipline, old) {
                (Some(discipline), Some(Old { queue: Some(mut queue), .. })) => {
                    queue.change(discipline, &link);
                    queue.qdiscs.each().for_each(|qdisc| qdisc.on_fact(&Fact::Rate(link.rate), now));
                    Some(queue)
                }
                (Some(discipline), _) => Some(Box::new(Queue::new(name, discipline, &link))),
                (None, old) => {
                    gone.extend(old);
                    None
                }
            });
        }
        gone.extend(before.into_values());
        for Old { at, queue } in gone {
            if queue.as_ref().is_some_and(|queue| queue.backlog.packets > 0) {
                was.push((branches.len(), at));
                branches.push(config::ALONE);
                self.queues.push(queue);
            }
        }
        self.reorder(Order::new(branches, self.link.rate), &was, now);
        self.number(config);
        self.config = config.clone();
    }

    /// Takes the queues of all branches out, by name.
    fn take_queues(&mut self) -> BTreeMap<String, Old<P>> {
        let named = |(at, queue): (usize, Option<Box<Queue<P>>>)| {
            let name = queue.as_ref().map_or_else(|| self.config.queue(at).0, |queue| &queue.name);
            (name.to_owned(), Old { at, queue })
        };
        std::mem::take(&mut self.queues).into_iter().enumerate().map(named).collect()
    }

    /// Goes on in another order, in which the branches of `was` (new, old) are where they were.
    fn reorder(&mut self, order: Order, was: &[(usize, usize)], now: Instant) {
        let old = std::mem::replace(&mut self.order, order);
        was.iter().for_each(|(new, before)| self.order.resume(*new, &old, *before, now));
        self.parts = Parts::new(self.order.branches(), self.link.rate, &self.parts, was);
        self.timers = Tournament::new(self.queues.len());
        for at in 0..self.queues.len() {
            if self.queues[at].is_some() {
                self.settle(at, now);
            }
        }
    }

    fn number(&mut self, config: &Config) {
        let others = config.members.len() as u32;
        self.branches.clear();
        for (at, member) in (0..).zip(&config.members) {
            if let Some((NodeId(number), _)) = &member.queue {
                let number = *number as usize;
                self.branches.resize(self.branches.len().max(number + 1), others);
                self.branches[number] = at;
            }
        }
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Reads back what holds: the place and the rates of each member, its number, and the discipline and limit of its queue.
    /// Returns the name of the first that is not as these settings say; that of all others is empty.
    pub fn differs_from<'a>(&'a self, config: &'a Config, limit: Limit) -> Option<&'a str> {
        let branches = config.branches();
        let differs = |at: usize| {
            let (name, discipline) = config.queue(at);
            let queue = self.queues.get(at).and_then(Option::as_deref);
            let as_meant = match (queue, discipline) {
                (Some(queue), Some(discipline)) => {
                    queue.name == name && queue.discipline == *discipline && queue.limit == limit
                }
                (None, None) => self.config.members.get(at).is_some_and(|member| member.name == name),
                _ => false,
            };
            let number = config.members.get(at).and_then(|member| member.queue.as_ref()).map(|(number, _)| *number);
            let numbered = number.is_none_or(|number| self.branch_of(number) == at);
            (!as_meant || !numbered || self.order.branches().get(at) != branches.get(at)).then_some(name)
        };
        (0..branches.len()).find_map(differs)
    }

    /// Returns what each subscriber has, and all others at the end.
    pub fn accounts(&self) -> impl Iterator<Item = Account<'_>> {
        let here = self.queues.iter().take(self.config.members.len() + 1).flatten();
        here.map(|queue| Account {
            name: &queue.name,
            discipline: &queue.discipline,
            stats: &queue.stats,
            backlog: queue.backlog,
        })
    }

    /// Returns the branch of a subscriber; that of all others if it is in no list.
    fn branch_of(&self, node: NodeId) -> usize {
        self.branches.get(node.0 as usize).map_or(self.config.members.len(), |at| *at as usize)
    }

    fn branch_of_flow(&self, flow: FlowId) -> usize {
        self.branch_of(self.owners.get(flow.0 as usize).copied().unwrap_or(NodeId::NOBODY))
    }

    /// True if a queue with this backlog may take one more packet of `size`.
    fn has_room(&self, held: Backlog, size: u64) -> bool {
        match self.link.limit {
            Limit::Packets(one) => held.packets < one.saturating_mul(QUEUES).saturating_sub(self.backlog.packets),
            Limit::Bytes(one) => {
                held.bytes + size <= one.get().saturating_mul(QUEUES).saturating_sub(self.backlog.bytes)
            }
        }
    }

    /// Counts what a queue holds after a change, and tells the order whether it has work.
    fn settle(&mut self, at: usize, now: Instant) {
        let Some(queue) = &mut self.queues[at] else { return };
        let before = queue.backlog;
        queue.backlog = queue.qdiscs.backlog();
        self.backlog.packets = self.backlog.packets + queue.backlog.packets - before.packets;
        self.backlog.bytes = self.backlog.bytes + queue.backlog.bytes - before.bytes;
        self.order.set_work(at, queue.backlog.packets > 0 && !queue.stalled, now);
        match queue.qdiscs.next_wakeup() {
            Instant::MAX => self.timers.remove(at as u32),
            wakeup => self.timers.set(at as u32, wakeup.as_nanos()),
        }
    }

    /// Tells the discipline of a branch a fact.
    fn tell(&mut self, at: usize, fact: &Fact, now: Instant) {
        if let Some(queue) = self.queues.get_mut(at).and_then(Option::as_mut) {
            queue.qdiscs.each().for_each(|qdisc| qdisc.on_fact(fact, now));
            queue.stalled = false;
            self.settle(at, now);
        }
    }

    fn set_rate(&mut self, rate: Rate, now: Instant) {
        self.link.rate = rate;
        self.order.set_rate(rate, now);
        self.parts.rank(self.order.branches(), rate);
        for at in 0..self.queues.len() {
            let told = Config::told(self.order.branches(), at, rate);
            self.tell(at, &Fact::Rate(told), now);
        }
    }

    fn own(&mut self, flow: FlowId, node: NodeId) {
        let at = flow.0 as usize;
        if at >= self.owners.len() {
            self.owners.resize(at + 1, NodeId::NOBODY);
        }
        self.owners[at] = node;
    }
}

impl<P: Packet> Qdisc<P> for Tree<P> {
    const WAKES: bool = true;

    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued {
        let sent = |at: usize| self.queues[at].as_ref().map_or(0, |queue| queue.stats.sent.bytes);
        self.parts.look(self.order.branches(), self.link.rate, sent, now);
        let (size, at) = (packet.size(), self.branch_of_flow(packet.flow()));
        self.stats.arrived.add(size);
        let held = self.queues[at].as_ref().map(|queue| queue.backlog).unwrap_or_default();
        let has_room = self.has_room(held, size.get());
        let Some(queue) = self.queues[at].as_mut() else { return Enqueued::Dropped(DropReason::Overflow) };
        queue.stats.arrived.add(size);
        let Queue { qdiscs, stats, .. } = &mut **queue;
        let qdisc = qdiscs.present_mut();
        let mut observer = Counting { observer, counters: [&mut self.stats, stats] };
        if !has_room {
            observer.dropped(packet, DropReason::Overflow, now);
            return Enqueued::Dropped(DropReason::Overflow);
        }
        let forced = qdisc.stats().dropped_forced.packets;
        let fate = qdisc.enqueue(packet, now, rng, &mut observer);
        let forced = qdisc.stats().dropped_forced.packets > forced;
        observer.counters.into_iter().for_each(|stats| stats.count_forced(forced, size));
        queue.stalled = false;
        self.settle(at, now);
        fate
    }

    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        loop {
            let at = self.order.next(now)?;
            let queue = self.queues[at].as_mut()?;
            let mut own = std::mem::take(&mut queue.stats);
            let mut counting = Counting { observer: &mut *observer, counters: [&mut self.stats, &mut own] };
            let packet = queue.qdiscs.dequeue(now, rng, &mut counting);
            if let Some(size) = packet.as_ref().map(Packet::size) {
                [&mut self.stats, &mut own].into_iter().for_each(|stats| stats.sent.add(size));
                self.order.served(size, now);
            }
            queue.stats = own;
            queue.stalled = packet.is_none();
            self.settle(at, now);
            if packet.is_some() {
                return packet;
            }
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|first| Instant::from_nanos(first.at));
        [timer, self.order.next_release()].into_iter().flatten().min()
    }

    fn on_wakeup(&mut self, now: Instant) {
        while let Some(first) = self.timers.first().filter(|first| first.at <= now.as_nanos()) {
            let at = first.class as usize;
            self.timers.remove(first.class);
            if let Some(queue) = &mut self.queues[at] {
                queue.qdiscs.wake(now);
                queue.stalled = false;
                self.settle(at, now);
            }
        }
    }

    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        match *fact {
            Fact::Rate(rate) => return self.set_rate(rate, now),
            Fact::Owner { flow, node } => self.own(flow, node),
            _ => {}
        }
        match fact.concerns() {
            Whom::All => (0..self.queues.len()).for_each(|at| self.tell(at, fact, now)),
            Whom::Flow(flow) => self.tell(self.branch_of_flow(flow), fact, now),
            Whom::Node(node) => self.tell(self.branch_of(node), fact, now),
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

/// No subscriber has a discipline that reads segments.
impl<P: Packet> AckPath for Tree<P> {
    /// What the subscriber of a flow could have, given what the others use.
    fn budget_of(&self, flow: FlowId) -> Option<Rate> {
        let at = self.branch_of_flow(flow);
        (at < self.queues.len()).then(|| self.parts.of(self.order.branches(), at, self.link.rate))
    }
}
