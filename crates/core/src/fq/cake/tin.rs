//! A tin of CAKE: its queues, the lists in which they take turns, and which of them are sparse or bulk flows.

use super::QUEUES;
use super::chains::{Chain, Chains, Set};
use super::config::Config;
use super::hashing::Owners;
use super::shaper::Threshold;
use super::tins::Share;
use crate::aqm::cobalt;
use crate::aqm::cobalt::linux::{Pace, Params, Vars};
use crate::packet::Packet;
use crate::rng::Rng;
use crate::slab::{List, Slab};
use crate::units::Instant;
use serde::Serialize;

/// Least and largest quantum of a flow, in bytes.
const QUANTUM: (u64, u64) = (300, 1514);
/// A queue with its AQM.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    pub list: List,
    pub deficit: i64,
    pub set: Set,
    pub aqm: Vars,
}

impl Queue {
    pub fn is_empty<P: Packet>(&self, slab: &Slab<P, Note>) -> bool {
        slab.front(&self.list).is_none()
    }
}

/// What is noted beside a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Note {
    pub since: Instant,
    /// What it takes of the link below, in bytes.
    pub adjusted: u64,
}

/// Counters of a tin, as `tc -s qdisc` shows them.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Counts {
    pub sent: u64,
    pub dropped: u64,
    pub marked: u64,
    pub acks_filtered: u64,
}

/// The queues of a tin.
#[derive(Debug, Clone)]
pub(super) struct Tin {
    pub queues: Vec<Queue>,
    pub chains: Chains,
    pub owners: Owners,
    pub params: Params,
    pub threshold: Threshold,
    /// Bytes of a flow's turn, before they are divided among the flows of its host.
    pub flow_quantum: u64,
    pub quantum: i64,
    pub deficit: i64,
    pub backlog: u64,
    pub sparse: u32,
    pub bulk: u32,
    pub counts: Counts,
}

impl Tin {
    pub fn new(config: &Config, share: &Share) -> Self {
        let pace = if share.rate == 0 { Pace::UNLIMITED } else { Pace::of(share.rate) };
        let (least, most) = QUANTUM;
        let (target, interval, mtu) = (config.target(), config.rtt, config.mtu);
        let aqm = cobalt::Config { target, interval, mtu, ..cobalt::Config::default() };
        Self {
            queues: vec![Queue::default(); QUEUES],
            chains: Chains::new(),
            owners: Owners::new(config.isolation),
            params: Params::new(&aqm, pace),
            threshold: Threshold::new(pace),
            flow_quantum: if share.rate == 0 { most } else { (share.rate >> 12).clamp(least, most) },
            quantum: share.quantum as i64,
            deficit: 0,
            backlog: 0,
            sparse: 0,
            bulk: 0,
            counts: Counts::default(),
        }
    }

    /// True if a queue of the tin may have packets.
    pub fn is_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// Draws the quantum of a queue: rounding errors average out.
    #[inline]
    pub fn quantum_of(&self, at: usize, rng: &mut Rng) -> i64 {
        let share = u64::from(u16::MAX / self.owners.host_load(at));
        ((self.flow_quantum * share + (rng.bits() >> 48)) >> 16) as i64
    }

    /// Puts a queue with a new packet into its list.
    #[inline]
    pub fn activate(&mut self, at: usize, rng: &mut Rng) {
        match self.queues[at].set {
            Set::None | Set::Decaying => {
                self.chains.join(at, Chain::New);
                self.queues[at].set = Set::Sparse;
                self.sparse += 1;
                self.queues[at].deficit = self.quantum_of(at, rng);
            }
            Set::SparseWait => {
                self.sparse -= 1;
                self.become_bulk(at);
            }
            Set::Sparse | Set::Bulk => {}
        }
    }

    pub fn become_bulk(&mut self, at: usize) {
        self.queues[at].set = Set::Bulk;
        self.bulk += 1;
        self.owners.one_bulk_more(at);
    }

    /// Ends the turn of a queue that has used it up.
    pub fn end_turn(&mut self, at: usize, is_empty: bool, rng: &mut Rng) {
        if self.queues[at].set == Set::Sparse {
            if is_empty {
                self.queues[at].set = Set::SparseWait;
            } else {
                self.sparse -= 1;
                self.become_bulk(at);
            }
        }
        self.queues[at].deficit += self.quantum_of(at, rng);
        self.chains.join(at, Chain::Old);
    }

    /// Lets a queue that was found empty leave, or decay.
    pub fn found_empty(&mut self, at: usize, now: Instant) {
        let queue = &mut self.queues[at];
        queue.aqm.queue_empty(&self.params, now);
        let is_at_rest = queue.aqm.is_at_rest(now);
        match queue.set {
            Set::Sparse | Set::SparseWait => self.sparse -= 1,
            Set::Bulk => {
                self.bulk -= 1;
                self.owners.one_bulk_less(at);
            }
            Set::Decaying | Set::None => {}
        }
        if is_at_rest {
            self.chains.leave(at);
            self.queues[at].set = Set::None;
        } else {
            self.chains.join(at, Chain::Decaying);
            self.queues[at].set = Set::Decaying;
        }
    }

    /// The queue whose turn it may be: a decaying one only at the `first` look.
    #[inline]
    pub fn first(&self, first: bool) -> Option<usize> {
        let chains = &self.chains;
        let decaying = || chains.first(Chain::Decaying);
        let early = if first { decaying() } else { None };
        early.or_else(|| chains.first(Chain::New)).or_else(|| chains.first(Chain::Old)).or_else(decaying)
    }
}
