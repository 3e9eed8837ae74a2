//! Which queue a packet waits in, and which hosts a queue belongs to: set-associative hashing.
//!
//! Source: Høiland-Jørgensen, Täht, Morton 2018, §III-B; `cake_hash()` of sch_cake.c. A hash selects one of 1024 queues
//! and with it a set of 8. A flow takes, in this order: the queue of its set that it has already, the first one that is
//! not in use, the queue of its hash. Hosts have places in a table of the same form.
//!
//! ```text
//! isolation        the flow of a packet is            its queue is shared among the bulk flows of
//! flowblind        all traffic                        nobody
//! srchost          its node                           nobody
//! dsthost          its node                           nobody
//! hosts            its node                           nobody
//! flows            its connection                     nobody
//! dual-srchost     its connection                     its node
//! dual-dsthost     its connection                     its node
//! triple-isolate   its connection                     its node; its far end has no other flow
//! ```

use super::QUEUES;
use super::chains::Set;
use crate::classify::hash32;
use crate::packet::{FlowId, NodeId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of queues in a set.
const WAYS: usize = 8;

/// What gets an equal share of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Nothing: all packets of a tin are in one queue.
    Flowblind,
    /// Each source host.
    Srchost,
    /// Each destination host.
    Dsthost,
    /// Each pair of hosts.
    Hosts,
    /// Each flow.
    Flows,
    /// Each source host, and each of its flows alike.
    DualSrchost,
    /// Each destination host, and each of its flows alike.
    DualDsthost,
    /// Each host, whether source or destination, and each of its flows alike.
    #[default]
    TripleIsolate,
}

impl Isolation {
    /// True if a packet's flow is its connection.
    fn by_connection(self) -> bool {
        matches!(self, Self::Flows | Self::DualSrchost | Self::DualDsthost | Self::TripleIsolate)
    }

    fn is_fair_to_sources(self) -> bool {
        matches!(self, Self::DualSrchost | Self::TripleIsolate)
    }

    fn is_fair_to_destinations(self) -> bool {
        matches!(self, Self::DualDsthost | Self::TripleIsolate)
    }
}

/// The hashes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hashes {
    pub flow: u32,
    pub source: u32,
    pub destination: u32,
}

impl Hashes {
    /// The hashes of a packet of `flow`, which belongs to `node` if that is known.
    pub fn of(isolation: Isolation, flow: FlowId, node: NodeId, key: u64) -> Self {
        // The far end of a flow is not known, nor is the near end of a flow without a node: a host of its own.
        let far = || hash32(u64::from(flow.0) | 2 << 32, key);
        let near = if node == NodeId::NOBODY { far() } else { hash32(u64::from(node.0) | 1 << 32, key) };
        let (source, destination) = match isolation {
            Isolation::Dsthost | Isolation::DualDsthost => (0, near),
            Isolation::TripleIsolate => (near, far()),
            _ => (near, 0),
        };
        let flow = if isolation.by_connection() { hash32(flow.0.into(), key) } else { source ^ destination };
        Self { flow, source, destination }
    }
}

/// Two places of a table of hosts, one for a source and one for a destination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Host {
    source: u32,
    destination: u32,
    bulk_from: u16,
    bulk_to: u16,
}

/// The places of a queue's hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ends {
    source: u16,
    destination: u16,
}

/// How often a packet found its queue in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Found {
    /// Flows that took a queue not in use.
    pub misses: u64,
    /// Packets whose queue is not that of their hash.
    pub hits: u64,
    /// Packets of flows that took a queue in use, because the whole set was.
    pub collisions: u64,
}

/// The flows and hosts that have the queues of a tin.
#[derive(Debug, Clone)]
pub(super) struct Owners {
    isolation: Isolation,
    tags: Vec<u32>,
    hosts: Vec<Host>,
    ends: Vec<Ends>,
    pub found: Found,
}

/// The places of the set of a hash, from the place of the hash on.
fn places(hash: u32) -> impl Iterator<Item = usize> {
    let home = hash as usize % QUEUES;
    let (first, inner) = (home - home % WAYS, home % WAYS);
    (0..WAYS).map(move |way| first + (inner + way) % WAYS)
}

impl Owners {
    pub fn new(isolation: Isolation) -> Self {
        let (tags, hosts, ends) = (vec![0; QUEUES], vec![Host::default(); QUEUES], vec![Ends::default(); QUEUES]);
        Self { isolation, tags, hosts, ends, found: Found::default() }
    }

    /// Returns the queue of a packet and assigns it, if the flow has none; `set` tells in which set a queue is.
    #[inline]
    pub fn queue_of(&mut self, hashes: &Hashes, set: impl Fn(usize) -> Set) -> usize {
        if self.isolation == Isolation::Flowblind {
            return 0;
        }
        let home = hashes.flow as usize % QUEUES;
        if self.tags[home] == hashes.flow && set(home) != Set::None {
            return home;
        }
        self.queue_in_set(hashes, home, set)
    }

    fn queue_in_set(&mut self, hashes: &Hashes, home: usize, set: impl Fn(usize) -> Set) -> usize {
        let own = places(hashes.flow).find(|at| self.tags[*at] == hashes.flow);
        let free = || places(hashes.flow).find(|at| set(*at) == Set::None);
        let (queue, is_taken) = match own {
            Some(own) => {
                self.found.hits += u64::from(own != home);
                (own, set(own) == Set::None)
            }
            None => match free() {
                Some(free) => {
                    self.found.misses += 1;
                    (free, true)
                }
                None => {
                    self.found.collisions += 1;
                    if set(home) == Set::Bulk {
                        self.one_bulk_less(home);
                    }
                    (home, true)
                }
            },
        };
        self.tags[queue] = hashes.flow;
        if is_taken {
            self.assign(queue, hashes);
            if set(queue) == Set::Bulk {
                self.one_bulk_more(queue);
            }
        }
        queue
    }

    /// Notes to which hosts a queue belongs.
    fn assign(&mut self, queue: usize, hashes: &Hashes) {
        if self.isolation.is_fair_to_sources() {
            let (tag, hosts) = (hashes.source, &mut self.hosts);
            let known = places(tag).find(|at| hosts[*at].source == tag);
            let place = known.or_else(|| places(tag).find(|at| hosts[*at].bulk_from == 0));
            let place = place.unwrap_or(tag as usize % QUEUES);
            hosts[place].source = tag;
            self.ends[queue].source = place as u16;
        }
        if self.isolation.is_fair_to_destinations() {
            let (tag, hosts) = (hashes.destination, &mut self.hosts);
            let known = places(tag).find(|at| hosts[*at].destination == tag);
            let place = known.or_else(|| places(tag).find(|at| hosts[*at].bulk_to == 0));
            let place = place.unwrap_or(tag as usize % QUEUES);
            hosts[place].destination = tag;
            self.ends[queue].destination = place as u16;
        }
    }

    /// Notes that a queue has become a bulk flow.
    pub fn one_bulk_more(&mut self, queue: usize) {
        let Ends { source, destination } = self.ends[queue];
        let most = QUEUES as u16;
        if self.isolation.is_fair_to_sources() {
            let count = &mut self.hosts[usize::from(source)].bulk_from;
            *count = most.min(*count + 1);
        }
        if self.isolation.is_fair_to_destinations() {
            let count = &mut self.hosts[usize::from(destination)].bulk_to;
            *count = most.min(*count + 1);
        }
    }

    /// Notes that a queue is no bulk flow any more.
    pub fn one_bulk_less(&mut self, queue: usize) {
        let Ends { source, destination } = self.ends[queue];
        if self.isolation.is_fair_to_sources() {
            let count = &mut self.hosts[usize::from(source)].bulk_from;
            *count = count.saturating_sub(1);
        }
        if self.isolation.is_fair_to_destinations() {
            let count = &mut self.hosts[usize::from(destination)].bulk_to;
            *count = count.saturating_sub(1);
        }
    }

    /// Returns among how many bulk flows the share of a queue's host is divided, 1 at least.
    #[inline]
    pub fn host_load(&self, queue: usize) -> u16 {
        let Ends { source, destination } = self.ends[queue];
        let from = if self.isolation.is_fair_to_sources() { self.hosts[usize::from(source)].bulk_from } else { 0 };
        let to =
            if self.isolation.is_fair_to_destinations() { self.hosts[usize::from(destination)].bulk_to } else { 0 };
        from.max(to).max(1)
    }
}
