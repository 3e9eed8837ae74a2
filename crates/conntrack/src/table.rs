//! The table: what it answers to each packet.

use crate::config::Config;
use crate::entry::Entry;
use crate::gauges::Gauges;
use crate::half::{Half, NONE, Stage, Step};
use crate::pool::Pool;
use crate::segment::{Arrived, Segment};
use crate::sets::{Sets, most};
use crate::subscribers::{STRANGERS, Subscribers};
use penstock_core::fact::Opening;
use penstock_core::packet::{FlowId, NodeId, TcpFlags};
use penstock_core::siphash::SipHash;
use penstock_core::units::{Instant, Span};

/// Share of the lines in use from which on a warning is due, in percent.
const WARN_PERCENT: u64 = 80;

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
    /// Who has connections.
    pub subscribers: Subscribers,
    pool: Pool,
    /// Number of half-open connections that have an index.
    shown: u32,
    /// The first index of packets that are not shown.
    others: u32,
    /// Counts packets up to eight, for the hands.
    turn: u8,
    gauges: Gauges,
}

/// A segment that may be of a connection, and when it came.
#[derive(Clone, Copy)]
struct Came<'a> {
    packet: &'a Arrived,
    segment: &'a Segment,
    hash: u64,
    /// The subscriber of the interface by which it comes or goes.
    device: Option<NodeId>,
    now: Instant,
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
        u64::from(self.entries.len()) * 100 >= u64::from(self.entries.capacity()) * WARN_PERCENT
    }

    /// Takes a packet. Times must not decrease.
    pub fn see(&mut self, packet: &Arrived, now: Instant) -> Seen {
        self.sweep(now);
        let device = self.subscribers.of_hardware(packet, now);
        let seen = self.connection(packet, device, now);
        Seen { owner: seen.owner.or(device), ..seen }
    }

    /// Finds the connection of a packet; `device` is the subscriber of its interface.
    #[inline]
    fn connection(&mut self, packet: &Arrived, device: Option<NodeId>, now: Instant) -> Seen {
        let Some(identity) = packet.identity() else { return self.other(0) };
        let hash = self.hash.of(&identity);
        let Some(segment) = packet.segment.as_ref().filter(|segment| !segment.signed) else { return self.other(hash) };
        let came = Came { packet, segment, hash, device, now };
        let entry = self.entry(hash, now);
        let opens = segment.is(TcpFlags::SYN) && !segment.is(TcpFlags::ACK) && !segment.is(TcpFlags::RST);
        if opens {
            entry.into_iter().for_each(|at| self.entries.line_mut(at).reopens = true);
            return self.on_syn(&came);
        }
        if entry.is_none_or(|at| self.entries.line(at).reopens)
            && let Some(seen) = self.on_half(&came)
        {
            return seen;
        }
        match entry {
            Some(at) => self.on_entry(at, &came),
            None => self.other(hash),
        }
    }

    /// Frees what was silent for too long, in one set of entries and in one of half-open connections with every eighth
    /// packet.
    #[inline]
    fn sweep(&mut self, now: Instant) {
        self.turn = (self.turn + 1) % 8;
        let Config { idle, opening, .. } = self.config;
        match self.turn {
            0 => self.entries.swept(idle, now, |_| idle).into_iter().for_each(|at| self.expire(at)),
            4 => {
                let old = self.halves.swept(opening.min(idle), now, |half| patience(&self.config, half));
                old.into_iter().for_each(|at| self.abandon(at));
            }
            _ => {}
        }
    }

    /// Returns the place of a half-open connection that did not time out.
    fn half_at(&mut self, hash: u64, now: Instant) -> Option<usize> {
        let at = self.halves.find(hash)?;
        if !self.halves.is_over(at, patience(&self.config, self.halves.line(at)), now) {
            return Some(at);
        }
        self.abandon(at);
        None
    }

    /// Returns the place of a live entry.
    fn entry(&mut self, hash: u64, now: Instant) -> Option<usize> {
        let at = self.entries.find(hash)?;
        if !self.entries.is_over(at, self.config.idle, now) {
            return Some(at);
        }
        self.expire(at);
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

    fn on_syn(&mut self, came: &Came<'_>) -> Seen {
        let Came { packet, segment: syn, hash, now, .. } = *came;
        let Some(at) = self.half_at(hash, now) else { return self.remember(came) };
        let half = self.halves.line_mut(at);
        let (role, flow) = (half.role(packet.from_low), half.flow);
        let same = half.on_syn(role, syn, now);
        if !same {
            *half = Half::new(packet.from_low, syn, flow, now);
        }
        self.halves.touch(at, now);
        self.half(hash, flow, !same)
    }

    /// Remembers a new half-open connection, in the place of the oldest one if there is no other.
    fn remember(&mut self, came: &Came<'_>) -> Seen {
        let Came { packet, segment: syn, hash, now, .. } = *came;
        let at = self.halves.vacancy(hash).unwrap_or_else(|| {
            let oldest = most(self.halves.rivals(hash), |at| self.halves.unused(at, now)).unwrap_or_default();
            self.forget(oldest);
            self.gauges.overwritten += 1;
            oldest
        });
        let (flow, used) = if self.shown < self.config.shown { self.pool.take() } else { (NONE, false) };
        self.shown += u32::from(flow != NONE);
        self.halves.put(at, hash, Half::new(packet.from_low, syn, flow, now), now);
        self.gauges.half_open_most = self.gauges.half_open_most.max(self.halves.len());
        self.half(hash, flow, used)
    }

    /// Takes the segment of a half-open connection; `None` if there is none with this hash, or if the segment is not of
    /// it but may be of an entry.
    fn on_half(&mut self, came: &Came<'_>) -> Option<Seen> {
        let Came { packet, segment, hash, now, .. } = *came;
        let at = self.half_at(hash, now)?;
        let half = self.halves.line_mut(at);
        let flow = half.flow;
        match half.step(half.role(packet.from_low), segment, now) {
            Step::Ignored if self.entries.find(hash).is_some() => return None,
            Step::Ignored => self.gauges.implausible += 1,
            Step::Noted => self.halves.touch(at, now),
            Step::Closed(how) => {
                self.forget(at);
                self.count_end(how);
            }
            Step::Acknowledged => return Some(self.promote(at, came)),
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

    /// Drops a half-open connection that was silent for too long.
    fn abandon(&mut self, at: usize) {
        self.forget(at);
        self.gauges.abandoned += 1;
    }

    /// Makes a half-open connection an entry.
    fn promote(&mut self, at: usize, came: &Came<'_>) -> Seen {
        let Came { packet, segment, hash, now, .. } = *came;
        let half = self.halves.take(at);
        if let Some(old) = self.entries.find(hash) {
            self.free(old);
            self.gauges.replaced += 1;
        }
        let (owner, owner_fresh) = self.owner(came).unwrap_or((STRANGERS, false));
        let place = self.room(hash, owner, now);
        let unseen = half.flow == NONE;
        self.shown -= u32::from(!unseen);
        let (flow, used) = if unseen { self.pool.take() } else { (half.flow, false) };
        self.entries.put(place, hash, Entry::new(&half, flow, owner, packet.from_low, segment), now);
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
    fn room(&mut self, hash: u64, owner: NodeId, now: Instant) -> usize {
        let old = |all: &Self| all.entries.rivals(hash).find(|at| all.entries.is_over(*at, all.config.idle, now));
        while let Some(at) = old(self) {
            self.expire(at);
        }
        if self.subscribers.entries_of(owner) >= self.config.quota {
            let own = self.own(hash, owner, now);
            own.into_iter().for_each(|at| self.free(at));
            self.gauges.evicted_quota += u64::from(own.is_some());
        }
        self.entries.vacancy(hash).unwrap_or_else(|| {
            let entries = |at: usize| self.subscribers.entries_of(NodeId(self.entries.line(at).owner));
            let worth = |at: usize| (entries(at), self.entries.unused(at, now));
            let least = most(self.entries.rivals(hash), worth).unwrap_or_default();
            self.free(least);
            self.gauges.evicted_full += 1;
            least
        })
    }

    fn own(&self, hash: u64, owner: NodeId, now: Instant) -> Option<usize> {
        let (first, sets) = (self.entries.sets_of(hash)[0], self.entries.sets());
        let mine = |set: usize| self.entries.in_set(set).filter(|at| self.entries.line(*at).owner == owner.0);
        (0..sets).find_map(|i| most(mine((first + i) % sets), |at| self.entries.unused(at, now)))
    }

    /// Frees an entry and its index.
    fn free(&mut self, at: usize) {
        let Entry { flow, owner, .. } = self.entries.take(at);
        self.pool.give(flow);
        self.subscribers.lose(NodeId(owner));
    }

    /// Frees an entry that was silent for too long.
    fn expire(&mut self, at: usize) {
        self.free(at);
        self.gauges.expired += 1;
    }

    fn on_entry(&mut self, at: usize, came: &Came<'_>) -> Seen {
        let moved = came.device.is_some_and(|device| device.0 != self.entries.line(at).owner);
        let owner_fresh = (moved || self.subscribers.is_renamed()) && self.own_anew(at, came);
        let entry = self.entries.line_mut(at);
        let (flow, owner) = (FlowId(entry.flow), Some(NodeId(entry.owner)));
        match entry.step(came.packet.from_low, came.segment) {
            Step::Ignored => self.gauges.implausible += 1,
            Step::Noted | Step::Acknowledged => self.entries.touch(at, came.now),
            Step::Closed(how) => {
                self.free(at);
                self.count_end(how);
            }
        }
        Seen { flow, state: State::Entry, shown: true, fresh: false, owner, owner_fresh, opening: None }
    }

    /// Returns the number of the subscriber to which a packet belongs, by its interface or else by its host, and whether
    /// the number was another's until now.
    fn owner(&mut self, came: &Came<'_>) -> Option<(NodeId, bool)> {
        let device = came.device.map(|device| (device, false));
        device.or_else(|| came.packet.host.map(|host| self.subscribers.number(host, came.now)))
    }

    /// Gives an entry to the subscriber that its host has now. Returns whether the number was another's until now.
    fn own_anew(&mut self, at: usize, came: &Came<'_>) -> bool {
        let Some((owner, fresh)) = self.owner(came) else { return false };
        let before = std::mem::replace(&mut self.entries.line_mut(at).owner, owner.0);
        self.subscribers.lose(NodeId(before));
        self.subscribers.gain(owner);
        fresh
    }
}

/// Returns for how long a half-open connection may be silent.
fn patience(config: &Config, half: &Half) -> Span {
    if half.stage == Stage::Proven { config.idle } else { config.opening }
}
