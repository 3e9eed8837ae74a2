//! One queue for packets of many flows: they wait in the order of arrival, and the queue has the turns of all of them.
//!
//! Who may share it, the caller decides for each packet. No flow has more than a given number of bytes in it; further packets
//! wait in the queue of the flow, and so does a packet that would pass others of its flow that wait there.
//! The queue joins the old list, so that sparse flows go before it, and a flow whose queue runs empty does not begin anew
//! while the crowd has packets. When packets must be dropped, the part of one of its flows counts.

use super::{FlowQueue, fattest};
use crate::judge::Aqm;
use crate::packet::{FlowId, Packet};
use crate::qdisc::{Enqueued, PacketObserver};
use crate::rng::Rng;
use crate::units::{Bytes, Instant};

/// The state of the queue that flows share.
#[derive(Debug, Clone)]
pub(super) struct Crowd {
    /// Its number among the queues: the last.
    at: usize,
    /// Number of flows whose turns it has.
    flows: u64,
    /// The bytes of each flow in it.
    waiting: Vec<u64>,
}

impl Crowd {
    /// Notes a packet that joined the queue `at`.
    pub fn joined(&mut self, at: usize, flow: FlowId, size: Bytes) {
        if at == self.at {
            self.waiting[flow.0 as usize] += size.get();
        }
    }

    /// Notes a packet that left the queue `at`.
    pub fn left(&mut self, at: usize, flow: FlowId, size: Bytes) {
        if at == self.at {
            self.waiting[flow.0 as usize] -= size.get();
        }
    }

    /// True if no flow has bytes here.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.waiting.iter().all(|bytes| *bytes == 0)
    }

    /// Returns the bytes of a flow.
    fn of(&mut self, flow: FlowId) -> u64 {
        let at = flow.0 as usize;
        if at >= self.waiting.len() {
            self.waiting.resize(at + 1 + at / 8, 0);
        }
        self.waiting[at]
    }
}

impl<P: Packet, A: Aqm + Clone> FlowQueue<P, A> {
    /// Adds a queue that flows share ([`FlowQueue::enqueue_in_crowd`]).
    pub fn with_crowd(mut self) -> Self {
        let at = self.queues.len();
        self.queues.push(self.queues[0].clone());
        self.bytes.push(0);
        self.turns.grow_to(at + 1);
        self.crowd = Some(Box::new(Crowd { at, flows: 1, waiting: Vec::new() }));
        self
    }

    /// Takes a packet into the queue that flows share, which from now on has the turns of `flows` flows, if its flow has at
    /// most `most` bytes there with it, and none in its own queue. Otherwise it joins its own. The memory grows with the
    /// largest index of a flow. Without [`FlowQueue::with_crowd`] this is `enqueue`.
    pub fn enqueue_in_crowd<O: PacketObserver<P>>(
        &mut self,
        packet: P,
        flows: u64,
        most: Bytes,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Enqueued {
        let own = self.own_queue(packet.flow(), rng);
        let Some(crowd) = &mut self.crowd else { return self.enqueue_at(own, packet, now, rng, observer) };
        crowd.flows = flows.max(1);
        self.turns.crowd(crowd.at, flows);
        let fits = crowd.of(packet.flow()) + packet.size().get() <= most.get();
        let at = if fits && self.queues[own].packets == 0 { crowd.at } else { own };
        self.enqueue_at(at, packet, now, rng, observer)
    }

    /// Returns the queue that gives way when there is no room: the one with the most bytes of a flow.
    pub(super) fn fattest(&self) -> usize {
        let Some(crowd) = &self.crowd else { return fattest(&self.bytes) };
        let own = fattest(&self.bytes[..crowd.at]);
        if self.bytes[crowd.at] / crowd.flows > self.bytes[own] { crowd.at } else { own }
    }
}
