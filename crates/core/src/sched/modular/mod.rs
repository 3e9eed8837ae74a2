//! The modular wireless architecture: one scheduler for guarantees, a small buffer, and a second scheduler that knows
//! the channel.
//!
//! Source: document 002 §4.1.2 (architecture), §4.2.1 (packet prefetcher), §4.2.2 (guarantees), §4.2.4 (HFS). The QoS
//! layer schedules flows as on a wired link. The prefetcher moves packets into the MAC-SAL as long as the MAC-SAL holds
//! less than Q; the MAC-SAL schedules stations by weights which follow from the state of their channels. Any scheduler
//! may be in either place; HFS uses QFQ+ in both.
//!
//! ```text
//! S = bytes or packets in the MAC-SAL
//! a packet arrives:             into the QoS layer; while S < Q: prefetch                                      §4.2.1
//! the MAC-SAL sends a packet:   while S < Q: prefetch                                                          §4.2.1
//! prefetch:                     the packet whose turn it is in the QoS layer joins its station's queue
//! Q = 0:                        the QoS layer feeds the link
//! ```
//!
//! The MAC-SAL is a shared buffer with virtual queues: only S is limited, never a single station. It drops no packet.
//!
//! Guarantees, with Delta_i the most bytes that are prefetched after a packet of flow i and sent before it: flow i is
//! sent at least what the QoS scheduler would have sent it, less Delta_i (Theorem 6); Theorem 7 bounds the delay of a
//! packet accordingly. `tests/modular.rs` checks both. Invariants: while S < Q the QoS layer is empty or, if its
//! scheduler is wireless, may serve no class; S < Q + the largest packet; packets of a flow leave in the order of
//! arrival, as each layer keeps that order. Cost: that of the two schedulers.
//!
//! **Why throughput grows.** A MAC-SAL of finite size sends, in the long run, what it is given: the packets which it
//! holds back are sent later. It can favour good stations only if flows to bad stations offer less. They do, because
//! the backlog of each flow is limited in both layers together, as a sender's window or TEMPEST's controller limits it.
//!
//! DIFFERENCE: the queues of the MAC-SAL have no schedulers of their own (Figure 4.3 draws some): such a scheduler
//! would reorder the flows of one station against the QoS layer. Pinned by
//! `flows_of_one_station_keep_the_order_of_the_qos_layer`.

mod buffer;
mod weighting;

#[cfg(test)]
mod tests;

pub use buffer::Buffer;
pub use weighting::Weighting;

use super::{Limits, Reason, Refused, Scheduled, Scheduler, Served};
use crate::config::ConfigError;
use crate::qdisc::{Backlog, ConservationError};
use crate::units::{Bytes, Limit};

/// The largest limit of a MAC-SAL, in bytes or packets, which its queues can count.
pub const MOST_BUFFER: u64 = 1 << 31;

/// A packet in the MAC-SAL, with its flow.
#[derive(Debug, Clone, Copy)]
struct Prefetched<P> {
    packet: P,
    class: u32,
}

/// The two layers with the prefetcher between them. `Q` schedules flows, `M` schedules stations.
#[derive(Debug, Clone)]
pub struct Modular<P, Q, M> {
    qos: Scheduled<P, Q>,
    mac: Scheduled<Prefetched<P>, M>,
    /// The station of each flow.
    stations: Vec<u32>,
    /// Q as a number of packets and of bytes: the MAC-SAL is filled while it holds less than both.
    buffer: Backlog,
    /// The limit of each flow in both layers together, as a number of packets and of bytes.
    per_class: Backlog,
    waiting: Vec<Backlog>,
    weighting: Weighting,
    /// The loss probability of each station.
    losses: Vec<f64>,
}

/// What the two layers are built from, besides their schedulers.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The station of each flow.
    pub stations: Vec<u32>,
    /// Q, the limit of the MAC-SAL; 0 packets means that the QoS layer feeds the link.
    pub buffer: Limit,
    /// How the weights of stations follow from their losses.
    pub weighting: Weighting,
    /// The limit of each flow in both layers together; `None` is no limit.
    pub per_class: Option<Limit>,
}

impl Plan {
    /// Refuses a plan that does not work with `flows` flows and `stations` stations: a flow has no station, or the buffer is
    /// larger than [`MOST_BUFFER`].
    pub(crate) fn validate(&self, flows: usize, stations: usize) -> Result<(), ConfigError> {
        if self.stations.len() != flows || self.stations.iter().any(|s| *s as usize >= stations) {
            let message = format!("each of the {flows} flows needs one of the {stations} stations");
            return Err(ConfigError::new("stations", message));
        }
        match self.buffer {
            Limit::Packets(n) if n <= MOST_BUFFER => Ok(()),
            Limit::Bytes(n) if n.get() <= MOST_BUFFER => Ok(()),
            _ => Err(ConfigError::new("buffer", format!("must be at most {MOST_BUFFER} packets or bytes"))),
        }
    }
}

/// A limit as a number of packets and of bytes, of which one is unlimited. Q = 0 is 0 of both.
fn both(limit: Limit) -> Backlog {
    match limit {
        Limit::Packets(0) => Backlog::default(),
        Limit::Packets(packets) => Backlog { packets, bytes: u64::MAX },
        Limit::Bytes(Bytes::ZERO) => Backlog::default(),
        Limit::Bytes(bytes) => Backlog { packets: u64::MAX, bytes: bytes.get() },
    }
}

impl<P, Q: Scheduler, M: Scheduler> Modular<P, Q, M> {
    /// Creates empty layers. All loss probabilities are 0 until [`Modular::set_loss`] changes them, and the stations
    /// keep the weights with which `mac` was built.
    ///
    /// # Errors
    /// A parameter of the plan is out of its range, or the MAC-SAL's scheduler cannot account for the largest packet of the QoS layer.
    pub fn new(qos: Q, mac: M, plan: Plan) -> Result<Self, ConfigError> {
        plan.validate(qos.classes(), mac.classes())?;
        if mac.max_packet() < qos.max_packet() {
            return Err(ConfigError::new("max_packet", "the MAC-SAL must account for every packet of the QoS layer"));
        }
        Ok(Self {
            losses: vec![0.0; mac.classes()],
            per_class: both(plan.per_class.unwrap_or(Limit::Packets(u64::MAX))),
            waiting: vec![Backlog::default(); qos.classes()],
            qos: Scheduled::new(qos, Limits::default()),
            mac: Scheduled::new(mac, Limits::default()),
            stations: plan.stations,
            buffer: both(plan.buffer),
            weighting: plan.weighting,
        })
    }

    /// Puts a packet of `size` into the queue of the flow `class`.
    ///
    /// # Errors
    /// The packet comes back when its flow has no room or there is no such flow.
    #[inline]
    pub fn enqueue(&mut self, class: u32, size: Bytes, packet: P) -> Result<(), Refused<P>> {
        self.enqueue_during(class, size, packet, || Bytes::ZERO)
    }

    /// Puts a packet into the queue of a flow as [`Modular::enqueue`] does; `sent` is how much of the packet dequeued
    /// last has been sent. The QoS layer feeds the MAC-SAL in whole packets, so that only the layer before the link
    /// needs it.
    ///
    /// # Errors
    /// Those of [`Modular::enqueue`].
    #[inline]
    pub fn enqueue_during(
        &mut self,
        class: u32,
        size: Bytes,
        packet: P,
        sent: impl Fn() -> Bytes,
    ) -> Result<(), Refused<P>> {
        let waiting = self.waiting.get(class as usize).copied().unwrap_or_default();
        if waiting.packets >= self.per_class.packets || waiting.bytes + size.get() > self.per_class.bytes {
            return Err(Refused { packet, reason: Reason::ClassFull });
        }
        if self.buffer.packets == 0 {
            self.qos.enqueue_during(class, size, packet, sent)?;
            self.waiting[class as usize].add(size);
            return Ok(());
        }
        self.qos.enqueue(class, size, packet)?;
        self.waiting[class as usize].add(size);
        self.prefetch(sent);
        Ok(())
    }

    /// Takes the packet to send next; its class is the flow. `None` if no packet may be sent.
    #[inline]
    pub fn dequeue(&mut self) -> Option<Served<P>> {
        if self.buffer.packets == 0 {
            let served = self.qos.dequeue()?;
            self.waiting[served.class as usize].remove(served.size);
            return Some(served);
        }
        let Served { packet: Prefetched { packet, class }, size, .. } = self.mac.dequeue()?;
        self.waiting[class as usize].remove(size);
        self.prefetch(|| Bytes::ZERO);
        Some(Served { packet, class, size })
    }

    /// Moves packets into the MAC-SAL while it holds less than Q. `sent` is how much of the packet on the link has been
    /// sent.
    #[inline]
    fn prefetch(&mut self, sent: impl Fn() -> Bytes) {
        while self.wants_more() {
            let Some(Served { packet, class, size }) = self.qos.dequeue() else { return };
            let station = self.stations[class as usize];
            let taken = self.mac.enqueue_during(station, size, Prefetched { packet, class }, &sent);
            debug_assert!(taken.is_ok(), "the MAC-SAL has room for every packet, as the plan was validated");
        }
    }

    #[inline]
    fn wants_more(&self) -> bool {
        let held = self.mac.backlog();
        held.packets < self.buffer.packets && held.bytes < self.buffer.bytes
    }

    /// Sets the probability with which the channel to `station` loses packets, and adjusts the weights of the stations.
    /// The QoS scheduler is not affected. A station that does not exist is ignored.
    ///
    /// # Errors
    /// The MAC-SAL's scheduler refuses a weight; the other weights are set.
    pub fn set_loss(&mut self, station: u32, loss: f64) -> Result<(), ConfigError> {
        match self.losses.get_mut(station as usize) {
            Some(known) => *known = loss,
            None => return Ok(()),
        }
        self.set_weights()
    }

    /// Sets the loss probabilities of all stations at once, and adjusts their weights.
    ///
    /// # Errors
    /// Those of [`Modular::set_loss`].
    pub fn set_losses(&mut self, losses: &[f64]) -> Result<(), ConfigError> {
        for (known, loss) in self.losses.iter_mut().zip(losses) {
            *known = *loss;
        }
        self.set_weights()
    }

    fn set_weights(&mut self) -> Result<(), ConfigError> {
        let mut result = Ok(());
        for (station, weight) in (0..).zip(self.weighting.weights(&self.losses)) {
            result = result.and(self.mac.scheduler_mut().set_weight(station, weight));
        }
        result
    }

    /// The queues of the QoS layer, to read their state.
    pub fn qos(&self) -> &Scheduled<P, Q> {
        &self.qos
    }

    /// The scheduler of flows, to change weights.
    pub fn qos_scheduler_mut(&mut self) -> &mut Q {
        self.qos.scheduler_mut()
    }

    /// The scheduler of stations, to read its state.
    pub fn mac_scheduler(&self) -> &M {
        self.mac.scheduler()
    }

    /// Number of stations.
    pub fn stations(&self) -> usize {
        self.losses.len()
    }

    /// The backlog of the MAC-SAL, S.
    pub fn prefetched(&self) -> Backlog {
        self.mac.backlog()
    }

    /// The backlog of one station in the MAC-SAL.
    pub fn station_backlog(&self, station: u32) -> Backlog {
        self.mac.class_backlog(station)
    }

    /// The backlog of both layers together.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.qos.backlog() + self.mac.backlog()
    }

    /// Verifies conservation in both layers, and that the MAC-SAL dropped no packet.
    ///
    /// # Errors
    /// Contains the numbers when they do not add up.
    pub fn check(&self) -> Result<(), ConservationError> {
        self.qos.check()?;
        self.mac.check()?;
        let (given, taken) = (self.qos.stats().sent, self.mac.stats().arrived);
        if self.buffer.packets > 0 && given != taken {
            return Err(ConservationError::BetweenLayers { given, taken });
        }
        match self.mac.stats().dropped_overflow.packets {
            0 => Ok(()),
            packets => Err(ConservationError::DroppedBelow { packets }),
        }
    }
}
