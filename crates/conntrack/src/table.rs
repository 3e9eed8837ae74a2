//! The table: what it answers to each packet.

use crate::config::Config;
use crate::entry::{Credit, Entry};
use crate::gauges::Gauges;
use crate::half::{Half, NONE, Stage, Step};
use crate::pool::Pool;
use crate::segment::{Arrived, Segment};
use crate::sets::{Sets, ticks, ticks_of};
use crate::subscribers::{Named, STRANGERS, Subscribers};
use penstock_core::fact::Opening;
use penstock_core::packet::{FlowId, NodeId, TcpFlags};
use penstock_core::siphash::SipHash;
use penstock_core::units::Instant;
use penstock_core::wire::HostKey;
use std::net::IpAddr;

/// What the table knows of the connection of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has a line: data were acknowledged.
    Entry,
    /// Its SYN was seen, but no acknowledgment of data.
    HalfOpen,
    /// Not TCP, or its SYN was not seen, or it has ended.
    Other,
}

/// The answer to a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// The index of its flow. Packets which are not shown have an index of a range of their own, by hash.
    pub flow: FlowId,
    /// What is known of the connection.
    pub state: State,
    /// True if elements on the ACK path may see the TCP header: the index belongs to this connection alone, and elements
    /// know its begin. Data of a half-open connection are not shown.
    pub shown: bool,
    /// True if the index belonged to another connection until now: what is known of it is void.
    pub fresh: bool,
    /// The subscriber of an entry, or that of the interface by which the packet comes or goes; `None` if only its host
    /// can tell.
    pub owner: Option<NodeId>,
    /// True if the number of this subscriber belonged to another one until now, as names have changed.
    pub owner_fresh: bool,
    /// The begin of a connection that becomes an entry, with the first data, which elements have not seen.
    pub opening: Option<Opening>,
}

/// The connections that pass a gateway. See the documentation of the crate for the rules.
#[derive(Debug, Clone)]
pub struct FlowTable {
    config: Config,
    hash: SipHash,
    entries: Sets<Entry>,
    halves: Sets<Half>,
    subscribers: Subscribers,
    pool: Pool,
    /// Number of half-open connections that have an index.
    shown: u32,
    /// The first index of packets that are not shown.
    others: u32,
    /// Counts packets up to eight, for the hands.
    turn: u8,
    gauges: Gauges,
}

impl FlowTable {
    /// Creates an empty table. The hashes of connections and of hosts have these keys, which must be secret.
    pub fn new(config: Config, connections: SipHash, hosts: SipHash) -> Self {
        let (entries, halves) = (Sets::new(config.entries), Sets::new(config.half_open));
        let others = entries.capacity() + config.shown;
        Self {
            subscribers: Subscribers::new(hosts, config.hosts, &config.subscribers),
            gauges: Gauges { capacity: entries.capacity(), ..Gauges::default() },
            pool: Pool::new(others),
            hash: connections,
            shown: 0,
            turn: 0,
            others,
            entries,
            halves,
            config,
        }
    }

    /// The indices that the table gives are below this number.
    pub fn indices(&self) -> u32 {
        self.others + self.config.others
    }

    /// True if the index of an answer belongs to one connection alone.
    pub fn has_index(&self, seen: &Seen) -> bool {
        seen.flow.0 < self.others
    }

    /// Returns the counters.
    pub fn gauges(&self) -> Gauges {
        Gauges { entries: self.entries.len(), half_open: self.halves.len(), ..self.gauges }
    }

    /// True if so many lines are in use that a warning is due.
    pub fn is_nearly_full(&self) -> bool {
        u64::from(self.entries.len()) * 100 >= u64::from(self.entries.capacity()) * u64::from(Gauges::WARN_PERCENT)
    }

    /// Returns the number of the subscriber to which a host belongs, and whether the number belonged to another one until
    /// now.
    pub fn subscriber(&mut self, host: HostKey, now: Instant) -> (NodeId, bool) {
        self.subscribers.number(host, ticks(now))
    }

    /// Returns the number of the subscriber to which a host belongs, without giving one; `None` for a host without.
    pub fn known_subscriber(&self, host: HostKey) -> Option<NodeId> {
        self.subscribers.known(host)
    }

    /// Returns the name of the subscriber to whom this address belongs now; `None` if it is in no list.
    pub fn name_at(&self, address: IpAddr, now: Instant) -> Option<&str> {
        self.subscribers.name_at(address, ticks(now))
    }

    /// Returns the name of the subscriber with this number; `None` for a host without a name.
    pub fn name_of(&self, number: NodeId) -> Option<&str> {
        self.subscribers.name_of(number)
    }

    /// Returns how many numbers of subscribers there are: all are below.
    pub fn subscribers(&self) -> usize {
        self.subscribers.len()
    }

    /// Returns the number of entries of a subscriber.
    pub fn entries_of(&self, subscriber: NodeId) -> u32 {
        self.subscribers.entries_of(subscriber)
    }

    /// Takes a packet. Times must not decrease.
    pub fn see(&mut self, packet: &Arrived, now: Instant) -> Seen {
        self.sweep(ticks(now));
        let device = self.subscribers.of_hardware(packet, ticks(now));
        let seen = self.connection(packet, device, now);
        Seen { owner: seen.owner.or(device), ..seen }
    }

    /// Finds the connection of a packet; `device` is the subscriber of its interface.
    #[inline]
    fn connection(&mut self, packet: &Arrived, device: Option<NodeId>, now: Instant) -> Seen {
        let Some(identity) = packet.identity() else { return self.other(0) };
        let hash = self.hash.of(&identity);
        let Some(segment) = packet.segment.as_ref().filter(|segment| !segment.signed) else { return self.other(hash) };
        let entry = self.entry(hash, ticks(now));
        let opens = segment.is(TcpFlags::SYN) && !segment.is(TcpFlags::ACK) && !segment.is(TcpFlags::RST);
        if opens {
            entry.into_iter().for_each(|at| self.entries.line_mut(at).reopens = true);
            return self.on_syn(hash, packet.from_low, segment, now);
        }
        if entry.is_none_or(|at| self.entries.line(at).reopens)
            && let Some(seen) = self.on_half(hash, packet, segment, device, now)
        {
            return seen;
        }
        match entry {
            Some(at) => self.on_entry(at, packet, segment, device, ticks(now)),
            None => self.other(hash),
        }
    }

    /// Frees what was silent for too long, in one set of entries and in one of half-open connections with every eighth
    /// packet.
    #[inline]
    fn sweep(&mut self, now: u32) {
        self.turn = (self.turn + 1) % 8;
        match self.turn {
            0 => self.sweep_entries(now),
            4 => self.sweep_halves(now),
            _ => {}
        }
    }

    fn sweep_entries(&mut self, now: u32) {
        let idle = ticks_of(self.config.idle);
        if let Some(at) = self.entries.swept(idle, now, |_| idle) {
            self.free(at);
            self.gauges.expired += 1;
        }
    }

    fn sweep_halves(&mut self, now: u32) {
        let idle = ticks_of(self.config.idle);
        let opening = ticks_of(self.config.opening);
        let limit = |half: &Half| if half.stage == Stage::Proven { idle } else { opening };
        if let Some(at) = self.halves.swept(opening.min(idle), now, limit) {
            self.forget(at);
            self.gauges.abandoned += 1;
        }
    }

    /// Returns the place of a half-open connection that did not time out.
    fn half_at(&mut self, hash: u64, now: u32) -> Option<usize> {
        let at = self.halves.find(hash)?;
        let proven = self.halves.line(at).stage == Stage::Proven;
        if self.halves.unused(at, now) <= ticks_of(if proven { self.config.idle } else { self.config.opening }) {
            return Some(at);
        }
        self.forget(at);
        self.gauges.abandoned += 1;
        None
    }

    /// Returns the place of a live entry.
    fn entry(&mut self, hash: u64, now: u32) -> Option<usize> {
        let at = self.entries.find(hash)?;
        if self.entries.unused(at, now) <= ticks_of(self.config.idle) {
            return Some(at);
        }
        self.free(at);
        self.gauges.expired += 1;
        None
    }

    fn other(&self, hash: u64) -> Seen {
        let index = (u64::from(hash as u32) * u64::from(self.config.others)) >> 32;
        let flow = FlowId(self.others + index as u32);
        Seen { flow, state: State::Other, shown: false, fresh: false, owner: None, owner_fresh: false, opening: None }
    }

    /// The answer for a half-open connection with this index.
    fn half(&self, hash: u64, flow: u32, fresh: bool) -> Seen {
        let seen = Seen { state: State::HalfOpen, ..self.other(hash) };
        if flow == NONE { seen } else { Seen { flow: FlowId(flow), shown: true, fresh, ..seen } }
    }

    fn on_syn(&mut self, hash: u64, from_low: bool, syn: &Segment, now: Instant) -> Seen {
        let Some(at) = self.half_at(hash, ticks(now)) else { return self.remember(hash, from_low, syn, now) };
        let half = self.halves.line_mut(at);
        let (role, flow) = (half.role(from_low), half.flow);
        let same = half.on_syn(role, syn, now);
        if !same {
            *half = Half::new(hash, from_low, syn, flow, now);
        }
        self.halves.touch(at, ticks(now));
        self.half(hash, flow, !same)
    }

    /// Remembers a new half-open connection, in the place of the oldest one if there is no other.
    fn remember(&mut self, hash: u64, from_low: bool, syn: &Segment, now: Instant) -> Seen {
        if self.halves.vacancy(hash).is_none() {
            let oldest = oldest(self.halves.rivals(hash), |at| self.halves.unused(at, ticks(now)));
            self.forget(oldest);
            self.gauges.overwritten += 1;
        }
        let (flow, used) = if self.shown < self.config.shown { self.pool.take() } else { (NONE, false) };
        self.shown += u32::from(flow != NONE);
        if let Some(at) = self.halves.vacancy(hash) {
            self.halves.put(at, Half::new(hash, from_low, syn, flow, now), ticks(now));
        }
        self.gauges.half_open_most = self.gauges.half_open_most.max(self.halves.len());
        self.half(hash, flow, used)
    }

    /// Takes the segment of a half-open connection; `None` if there is none with this hash, or if the segment is not of
    /// it but may be of an entry.
    fn on_half(
        &mut self,
        hash: u64,
        packet: &Arrived,
        segment: &Segment,
        device: Option<NodeId>,
        now: Instant,
    ) -> Option<Seen> {
        let at = self.half_at(hash, ticks(now))?;
        let half = self.halves.line_mut(at);
        let flow = half.flow;
        match half.step(half.role(packet.from_low), segment, now) {
            Step::Ignored if self.entries.find(hash).is_some() => return None,
            Step::Ignored => self.gauges.implausible += 1,
            Step::Noted => self.halves.touch(at, ticks(now)),
            Step::Closed(how) => {
                self.forget(at);
                self.count_end(how);
            }
            Step::Acknowledged => return Some(self.promote(at, packet, segment, device, now)),
        }
        let seen = self.half(hash, flow, false);
        Some(Seen { shown: seen.shown && segment.len == 0, ..seen })
    }

    fn count_end(&mut self, how: TcpFlags) {
        match how {
            TcpFlags::RST => self.gauges.closed_rst += 1,
            _ => self.gauges.closed_fin += 1,
        }
    }

    /// Drops a half-open connection.
    fn forget(&mut self, at: usize) {
        let flow = self.halves.take(at).flow;
        if flow != NONE {
            self.pool.give(flow);
            self.shown -= 1;
        }
    }

    /// Makes a half-open connection an entry.
    fn promote(
        &mut self,
        at: usize,
        packet: &Arrived,
        segment: &Segment,
        device: Option<NodeId>,
        now: Instant,
    ) -> Seen {
        let half = self.halves.take(at);
        let hash = crate::sets::Line::hash(&half);
        if let Some(old) = self.entries.find(hash) {
            self.free(old);
            self.gauges.replaced += 1;
        }
        let (owner, owner_fresh) = self.owner(packet, device, ticks(now)).unwrap_or((STRANGERS, false));
        let place = self.room(hash, owner, ticks(now));
        let unseen = half.flow == NONE;
        self.shown -= u32::from(!unseen);
        let (flow, used) = if unseen { self.pool.take() } else { (half.flow, false) };
        let entry = Entry::new(&half, flow, owner, packet.from_low, segment);
        self.entries.put(place, entry, ticks(now));
        self.subscribers.gain(owner);
        self.gauges.promoted += 1;
        self.gauges.promoted_unseen += u64::from(unseen);
        self.gauges.entries_most = self.gauges.entries_most.max(self.entries.len());
        let flow = FlowId(flow);
        let opening = Some(half.opening(flow, half.role(packet.from_low) == 0));
        Seen { flow, state: State::Entry, shown: true, fresh: used, owner: Some(owner), owner_fresh, opening }
    }

    /// Returns a free place for the entry of a subscriber. What was silent for too long in both sets goes. If the subscriber
    /// has its quota, one of its own entries goes: the one that was silent for longest in the first set with one of them,
    /// from the set of the hash on. If there still is no place, the entry goes that was silent for longest, of the
    /// subscriber with most entries among those in both sets.
    fn room(&mut self, hash: u64, owner: NodeId, now: u32) -> usize {
        let idle = ticks_of(self.config.idle);
        loop {
            let old = self.entries.rivals(hash).find(|at| self.entries.unused(*at, now) > idle);
            let Some(at) = old else { break };
            self.free(at);
            self.gauges.expired += 1;
        }
        if self.subscribers.entries_of(owner) >= self.config.quota {
            let own = self.own(hash, owner, now);
            own.into_iter().for_each(|at| self.free(at));
            self.gauges.evicted_quota += u64::from(own.is_some());
        }
        if let Some(at) = self.entries.vacancy(hash) {
            return at;
        }
        let worth = |at: usize| (self.entries_of(self.entries.line(at).owner.into()), self.entries.unused(at, now));
        let least = oldest(self.entries.rivals(hash), worth);
        self.free(least);
        self.gauges.evicted_full += 1;
        least
    }

    fn own(&self, hash: u64, owner: NodeId, now: u32) -> Option<usize> {
        let (first, sets) = (self.entries.sets_of(hash)[0], self.entries.sets());
        let mine =
            |set: usize| self.entries.in_set(set).filter(|at| NodeId::from(self.entries.line(*at).owner) == owner);
        let set = (0..sets).map(|i| (first + i) % sets).find(|set| mine(*set).next().is_some())?;
        Some(oldest(mine(set), |at| self.entries.unused(at, now)))
    }

    /// Frees an entry and its index.
    fn free(&mut self, at: usize) {
        let Entry { flow, owner, .. } = self.entries.take(at);
        self.pool.give(flow);
        self.subscribers.lose(owner.into());
    }

    fn on_entry(&mut self, at: usize, packet: &Arrived, segment: &Segment, device: Option<NodeId>, now: u32) -> Seen {
        let moved = device.is_some_and(|device| device != self.entries.line(at).owner.into());
        let owner_fresh = (moved || self.subscribers.is_renamed()) && self.own_anew(at, packet, device, now);
        let entry = self.entries.line_mut(at);
        let (flow, owner) = (FlowId(entry.flow), NodeId::from(entry.owner));
        match entry.step(packet.from_low, segment) {
            Credit::Implausible => self.gauges.implausible += 1,
            Credit::Plausible => self.entries.touch(at, now),
            Credit::Closes(how) => {
                self.free(at);
                self.count_end(how);
            }
        }
        let owner = Some(owner);
        Seen { flow, state: State::Entry, shown: true, fresh: false, owner, owner_fresh, opening: None }
    }

    /// Returns the number of the subscriber to which a packet belongs, by its interface or else by its host, and whether
    /// the number was another's until now.
    fn owner(&mut self, packet: &Arrived, device: Option<NodeId>, now: u32) -> Option<(NodeId, bool)> {
        let device = device.map(|device| (device, false));
        device.or_else(|| packet.host.map(|host| self.subscribers.number(host, now)))
    }

    /// Gives an entry to the subscriber that its host has now. Returns whether the number was another's until now.
    fn own_anew(&mut self, at: usize, packet: &Arrived, device: Option<NodeId>, now: u32) -> bool {
        let Some((owner, fresh)) = self.owner(packet, device, now) else { return false };
        let before = std::mem::replace(&mut self.entries.line_mut(at).owner, owner.into());
        self.subscribers.lose(before.into());
        self.subscribers.gain(owner);
        fresh
    }

    /// From now on these are the subscribers with names. A name that was there before keeps its number, and a connection
    /// has the subscriber of its host from its next packet on.
    pub fn rename(&mut self, names: &[Named]) {
        self.subscribers.rename(names);
    }

    /// Returns whether these are the subscribers with names.
    pub fn has_subscribers(&self, names: &[Named]) -> bool {
        self.subscribers.are(names)
    }

    /// Returns the number of the subscriber with this name; `None` if there never was one.
    pub fn number_of(&self, name: &str) -> Option<NodeId> {
        self.subscribers.number_of(name)
    }

    /// Returns how many names of subscribers there were since the start.
    pub fn names(&self) -> usize {
        self.subscribers.names()
    }
}

/// Returns the first of the places with the largest value; there must be one.
fn oldest<T: PartialOrd>(places: impl Iterator<Item = usize>, value: impl Fn(usize) -> T) -> usize {
    let first = |best: usize, at: usize| if value(at) > value(best) { at } else { best };
    places.reduce(first).unwrap_or_default()
}
