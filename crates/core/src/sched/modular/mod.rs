//! The modular wireless architecture: one scheduler for guarantees, a small buffer, and a second one that knows the channel.
//!
//! Source: document 002 §4.1.2 (architecture), §4.2.1 (packet prefetcher), §4.2.2 (guarantees), §4.2.4 (HFS). The QoS
//! layer schedules flows as on a wire. The prefetcher moves packets on into the MAC-SAL as long as that holds less
//! than Q; the MAC-SAL schedules stations by weights that follow from what is known of their channels. Any scheduler may be in
//! either place; HFS is QFQ+ in both.
//!
//! ```text
//! S = bytes or packets in the MAC-SAL
//! a packet arrives:             into the QoS layer; while S < Q: prefetch                                      §4.2.1
//! the MAC-SAL sends a packet:   while S < Q: prefetch                                                          §4.2.1
//! prefetch:                     the packet whose turn it is in the QoS layer joins its station's queue
//! Q = 0:                        the QoS layer feeds the link
//! ```
//!
//! The MAC-SAL is a shared buffer with virtual queues: only S is limited, never one station. It drops nothing.
//!
//! Guarantees, with Delta_i the most bytes that are prefetched after a packet of flow i and sent before it: flow i is
//! sent at least what the QoS scheduler would have sent it, less Delta_i (Theorem 6), and the same by time (Theorem 7).
//! `tests/modular.rs` holds both. Invariants: while S < Q the QoS layer is empty (or, wireless, may serve nobody);
//! S < Q + the largest packet; packets of a flow leave in the order in which they came, as each layer keeps it. Cost: that
//! of the two schedulers.
//!
//! **What makes the throughput grow.** A MAC-SAL of finite size sends, in the long run, what it is given: packets that it
//! holds back it sends later. It can favour good stations only if flows to bad ones offer less, and they do: what each
//! flow may have waiting is limited in both layers together, as a sender's window or TEMPEST's controller does.
//!
//! DIFFERENCE: no schedulers inside the queues of the MAC-SAL (Figure 4.3 draws them): they would reorder flows of one
//! station against the QoS layer. Pinned by `flows_of_one_station_keep_the_order_of_the_qos_layer`.

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

/// The most that a MAC-SAL may hold, in bytes or packets: what its queues can count.
pub const MOST_BUFFER: u64 = 1 << 31;

/// A packet in the MAC-SAL, and its flow.
#[derive(Debug, Clone, Copy)]
struct Prefetched<P> {
    packet: P,
    class: u32,
}

/// The two layers with the prefetcher between them. `Q` schedules flows, `M` stations.
#[derive(Debug, Clone)]
pub struct Modular<P, Q, M> {
    qos: Scheduled<P, Q>,
    mac: Scheduled<Prefetched<P>, M>,
    /// The station of each flow.
    stations: Vec<u32>,
    /// Q as two numbers: the MAC-SAL is filled while it holds less than both.
    buffer: Backlog,
    /// What each flow may have waiting, and has, in both layers.
    per_class: Backlog,
    waiting: Vec<Backlog>,
    weighting: Weighting,
    /// Of each station.
    losses: Vec<f64>,
}

/// What two layers are made of, beside their schedulers.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The station of each flow.
    pub stations: Vec<u32>,
    /// Q.
    pub buffer: Limit,
    /// How weights of stations follow from their losses.
    pub weighting: Weighting,
    /// How much each flow may have waiting in both layers.
    pub per_class: Option<Limit>,
}

impl Plan {
    /// Refuses what cannot be.
    ///
    /// # Errors
    /// A flow without a station, or a buffer that cannot be counted.
    pub fn validate(&self, flows: usize, stations: usize) -> Result<(), ConfigError> {
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

/// A limit as two numbers, of which one is no limit. Q = 0 is 0 of both.
fn both(limit: Limit) -> Backlog {
    match limit {
        Limit::Packets(0) => Backlog::default(),
        Limit::Packets(packets) => Backlog { packets, bytes: u64::MAX },
        Limit::Bytes(Bytes::ZERO) => Backlog::default(),
        Limit::Bytes(bytes) => Backlog { packets: u64::MAX, bytes: bytes.get() },
    }
}

impl<P, Q: Scheduler, M: Scheduler> Modular<P, Q, M> {
    /// Empty layers. Stations are taken to lose nothing until [`Modular::set_loss`] says otherwise, and have the weights
    /// with which `mac` was made.
    ///
    /// # Errors
    /// Those of [`Plan::validate`], or a MAC-SAL that cannot account for the packets of the QoS layer.
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

    /// Takes a packet of `size` for flow `class`.
    ///
    /// # Errors
    /// The packet comes back when its flow has no room or there is no such flow.
    #[inline]
    pub fn enqueue(&mut self, class: u32, size: Bytes, packet: P) -> Result<(), Refused<P>> {
        let waiting = self.waiting.get(class as usize).copied().unwrap_or_default();
        if waiting.packets >= self.per_class.packets || waiting.bytes + size.get() > self.per_class.bytes {
            return Err(Refused { packet, reason: Reason::ClassFull });
        }
        self.qos.enqueue(class, size, packet)?;
        self.waiting[class as usize].add(size);
        self.prefetch();
        Ok(())
    }

    /// The packet whose turn it is; its class is the flow.
    #[inline]
    pub fn dequeue(&mut self) -> Option<Served<P>> {
        if self.buffer.packets == 0 {
            let served = self.qos.dequeue()?;
            self.waiting[served.class as usize].remove(served.size);
            return Some(served);
        }
        let Served { packet: Prefetched { packet, class }, size, .. } = self.mac.dequeue()?;
        self.waiting[class as usize].remove(size);
        self.prefetch();
        Some(Served { packet, class, size })
    }

    /// Fills the MAC-SAL as far as Q asks for.
    #[inline]
    fn prefetch(&mut self) {
        while self.wants_more() {
            let Some(Served { packet, class, size }) = self.qos.dequeue() else { return };
            let station = self.stations[class as usize];
            let taken = self.mac.enqueue(station, size, Prefetched { packet, class });
            debug_assert!(taken.is_ok(), "the MAC-SAL has room for every packet, as the plan was validated");
        }
    }

    #[inline]
    fn wants_more(&self) -> bool {
        let held = self.mac.backlog();
        held.packets < self.buffer.packets && held.bytes < self.buffer.bytes
    }

    /// The channel to `station` loses packets with this probability: weights follow, and the QoS scheduler is told
    /// nothing. A station that does not exist is ignored.
    ///
    /// # Errors
    /// The MAC-SAL's scheduler cannot have such a weight; the others are set.
    pub fn set_loss(&mut self, station: u32, loss: f64) -> Result<(), ConfigError> {
        match self.losses.get_mut(station as usize) {
            Some(known) => *known = loss,
            None => return Ok(()),
        }
        self.set_weights()
    }

    /// The same for all stations at once.
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

    /// The QoS layer.
    pub fn qos(&self) -> &Scheduled<P, Q> {
        &self.qos
    }

    /// The scheduler of flows, to change their weights.
    pub fn qos_scheduler_mut(&mut self) -> &mut Q {
        self.qos.scheduler_mut()
    }

    /// The scheduler of stations.
    pub fn mac_scheduler(&self) -> &M {
        self.mac.scheduler()
    }

    /// How many stations there are.
    pub fn stations(&self) -> usize {
        self.losses.len()
    }

    /// What waits in the MAC-SAL: S.
    pub fn prefetched(&self) -> Backlog {
        self.mac.backlog()
    }

    /// What the MAC-SAL holds for one station.
    pub fn station_backlog(&self, station: u32) -> Backlog {
        self.mac.class_backlog(station)
    }

    /// What waits in both layers.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        let (above, below) = (self.qos.backlog(), self.mac.backlog());
        Backlog { packets: above.packets + below.packets, bytes: above.bytes + below.bytes }
    }

    /// Conservation in both layers, and that the MAC-SAL dropped nothing.
    ///
    /// # Errors
    /// The numbers when they do not add up.
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
