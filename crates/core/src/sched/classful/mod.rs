//! Packet schedulers as queue disciplines: a queue for each class of flows, and no AQM.
//!
//! Source: document 002 §4.1.2.1 (the packet classifier and the scheduler behind it), Figure 4.3. The class of a flow
//! is its index or its hash. [`Single`] serves the classes with one scheduler; [`Layers`] and [`ByName`] serve them
//! with two schedulers and a prefetcher between them (the modular wireless architecture). A packet is refused if its
//! class or the whole queue is full.
//!
//! The loss probabilities of stations ([`Fact::Channel`]) become a good or bad channel for the scheduler of a
//! [`Single`], with the threshold of 20 % of §4.2.3.3 (only w2f2q uses it), and weights for the MAC-SAL of [`Layers`].
//!
//! DIFFERENCE: a packet larger than `max_packet` is scheduled as one of `max_packet`, so that a parameter of the
//! scheduler does not cause losses. Pinned by `a_packet_that_is_too_large_is_sent`.

mod config;
pub mod foreign;
#[cfg(test)]
mod tests;

pub use config::{Classes, Classify, Config};

use super::modular::{Buffer, Modular, Plan, Weighting};
use super::table::{AnyScheduler, AnySchedulerConfig, NAMES};
use super::{Limits, Refused, Scheduled, Scheduler, SchedulerConfig, Served, Setup};
use crate::ack_path::AckPath;
use crate::classify::Classifier;
use crate::config::{ConfigError, LinkFacts};
use crate::csi::linear;
use crate::fact::Fact;
use crate::packet::{FlowId, Packet};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// One of the stations that receive from a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station {
    /// The number of the station, from 0 on.
    pub number: u32,
    /// How many stations there are. Class `c` is sent to station `c` modulo this number.
    pub of: u32,
    /// Whether its channel is good.
    pub good: bool,
}

/// Queues of classes, together with what decides which packet is sent next.
pub trait Container<P> {
    /// Puts a packet of `size` into the queue of `class`. `sent` is how much of the packet taken last has been sent.
    ///
    /// # Errors
    /// The packet comes back when there is no room.
    fn enqueue(&mut self, class: u32, size: Bytes, packet: P, sent: impl Fn() -> Bytes) -> Result<(), Refused<P>>;

    /// Takes the packet to send next; `None` if no packet may be sent.
    fn dequeue(&mut self) -> Option<Served<P>>;

    /// Sets the probability with which the channel to `station` loses packets.
    fn set_loss(&mut self, station: Station, loss: f64);
}

impl<P, S: Scheduler> Container<P> for Scheduled<P, S> {
    #[inline]
    fn enqueue(&mut self, class: u32, size: Bytes, packet: P, sent: impl Fn() -> Bytes) -> Result<(), Refused<P>> {
        self.enqueue_during(class, size, packet, sent)
    }
    #[inline]
    fn dequeue(&mut self) -> Option<Served<P>> {
        Scheduled::dequeue(self)
    }
    fn set_loss(&mut self, station: Station, _: f64) {
        for class in (station.number..self.scheduler().classes() as u32).step_by(station.of as usize) {
            self.scheduler_mut().set_channel(class, station.good);
        }
    }
}

impl<P, Q: Scheduler, M: Scheduler> Container<P> for Modular<P, Q, M> {
    #[inline]
    fn enqueue(&mut self, class: u32, size: Bytes, packet: P, sent: impl Fn() -> Bytes) -> Result<(), Refused<P>> {
        self.enqueue_during(class, size, packet, sent)
    }
    #[inline]
    fn dequeue(&mut self) -> Option<Served<P>> {
        Modular::dequeue(self)
    }
    fn set_loss(&mut self, station: Station, loss: f64) {
        let set = Modular::set_loss(self, station.number, loss);
        debug_assert!(set.is_ok(), "the weights of the policy were validated");
    }
}

/// The scheduler or schedulers that serve the classes, as a configuration which builds its [`Container`].
pub trait Arrangement: Default + Clone + Serialize + DeserializeOwned + JsonSchema {
    /// The type that this arrangement builds.
    type Container<P: Packet>: Container<P>;

    /// Refuses parameters that do not work with the classes of `setup` and `stations` stations.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    fn validate(&self, setup: &Setup<'_>, stations: u32) -> Result<(), ConfigError>;

    /// Builds the container. Call it only after [`Arrangement::validate`].
    fn build<P: Packet>(&self, setup: &Setup<'_>, stations: u32, per_class: Limit) -> Self::Container<P>;
}

/// An arrangement of one scheduler.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Single<C>(pub C);

/// Uses the schema of the scheduler's configuration itself; a derived schema would only refer to it.
impl<C: JsonSchema> JsonSchema for Single<C> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        C::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        C::json_schema(generator)
    }
}

impl<C: SchedulerConfig> Arrangement for Single<C> {
    type Container<P: Packet> = Scheduled<P, C::Scheduler>;

    fn validate(&self, setup: &Setup<'_>, _: u32) -> Result<(), ConfigError> {
        self.0.validate(setup)
    }

    fn build<P: Packet>(&self, setup: &Setup<'_>, _: u32, per_class: Limit) -> Self::Container<P> {
        Scheduled::new(self.0.scheduler(setup), Limits { total: None, per_class: Some(per_class) })
    }
}

/// Two schedulers in the modular architecture, `Q` for flows and `M` for stations, both with their default parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound = "")]
#[schemars(bound = "Q: JsonSchema, M: JsonSchema")]
pub struct Layers<Q, M> {
    /// Q, the limit of the MAC-SAL, in packets or bytes; 0p uses the scheduler of flows alone.
    pub buffer: Buffer,
    /// How the weights of stations follow from their losses: "constant", "linear", "exponential" or "analogical".
    pub weighting: Weighting,
    /// The types of the two schedulers.
    #[serde(skip)]
    of: PhantomData<(Q, M)>,
}

impl<Q, M> Default for Layers<Q, M> {
    /// Q = 100 packets and analogical weights, as the document recommends (§4.2.5.4, §4.2.4.2).
    fn default() -> Self {
        Self { buffer: Buffer(Limit::Packets(100)), weighting: Weighting::Analogical, of: PhantomData }
    }
}

impl<Q, M> Layers<Q, M> {
    fn plan(&self, flows: usize, stations: u32, per_class: Option<Limit>) -> Plan {
        Plan {
            stations: (0..flows as u32).map(|flow| flow % stations).collect(),
            buffer: self.buffer.0,
            weighting: self.weighting,
            per_class,
        }
    }
}

impl<Q: SchedulerConfig, M: SchedulerConfig> Arrangement for Layers<Q, M> {
    type Container<P: Packet> = Modular<P, Q::Scheduler, M::Scheduler>;

    fn validate(&self, setup: &Setup<'_>, stations: u32) -> Result<(), ConfigError> {
        Q::default().validate(setup)?;
        let weights = self.weighting.weights(&linear(stations as usize, 1.0..=0.0));
        M::default().validate(&Setup { weights: &weights, ..*setup }).map_err(|error| {
            ConfigError::new("weighting", format!("cannot be \"{}\" here: {error}", self.weighting.name()))
        })?;
        self.plan(setup.weights.len(), stations, None).validate(setup.weights.len(), stations as usize)
    }

    fn build<P: Packet>(&self, setup: &Setup<'_>, stations: u32, per_class: Limit) -> Self::Container<P> {
        let weights = self.weighting.weights(&vec![0.0; stations as usize]);
        let mac = M::default().scheduler(&Setup { weights: &weights, ..*setup });
        let plan = self.plan(setup.weights.len(), stations, Some(per_class));
        Modular::new(Q::default().scheduler(setup), mac, plan).expect("the configuration was validated")
    }
}

/// Two schedulers in the modular architecture, chosen by name, both with their default parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ByName {
    /// The scheduler of flows, such as "qfq-plus".
    pub qos: String,
    /// The scheduler of stations, such as "qfq-plus".
    pub mac: String,
    /// Q, the limit of the MAC-SAL, in packets or bytes; 0p uses the scheduler of flows alone.
    pub buffer: Buffer,
    /// How the weights of stations follow from their losses: "constant", "linear", "exponential" or "analogical".
    pub weighting: Weighting,
    /// The schedulers of a library that `qos` and `mac` name.
    #[serde(skip)]
    pub foreign: [Option<super::foreign::Config>; 2],
}

impl Default for ByName {
    /// The two schedulers of HFS.
    fn default() -> Self {
        let qfq_plus = || "qfq-plus".to_owned();
        let Layers { buffer, weighting, .. } = Layers::<(), ()>::default();
        Self { qos: qfq_plus(), mac: qfq_plus(), buffer, weighting, foreign: [None, None] }
    }
}

/// The keys of the two schedulers, in the order of [`ByName::foreign`].
const LAYERS: [&str; 2] = ["qos", "mac"];

impl ByName {
    /// Looks for the schedulers that are not in the table with `find`, which returns `None` for an unknown name.
    ///
    /// # Errors
    /// Names the key whose scheduler cannot be used, with the message of `find`.
    pub fn find_foreign<E: fmt::Display>(
        &mut self,
        mut find: impl FnMut(&str) -> Option<Result<super::foreign::Config, E>>,
    ) -> Result<(), ConfigError> {
        for (layer, key) in LAYERS.into_iter().enumerate() {
            let name = if layer == 0 { &self.qos } else { &self.mac };
            if AnySchedulerConfig::default_of(name).is_none() {
                self.foreign[layer] =
                    find(name).transpose().map_err(|error| ConfigError::new(key, error.to_string()))?;
            }
        }
        Ok(())
    }

    fn scheduler(&self, layer: usize, setup: &Setup<'_>) -> Result<AnyScheduler, ConfigError> {
        let name = if layer == 0 { &self.qos } else { &self.mac };
        let foreign = || self.foreign[layer].clone().map(AnySchedulerConfig::Foreign);
        let Some(config) = AnySchedulerConfig::default_of(name).or_else(foreign) else {
            return Err(ConfigError::new(LAYERS[layer], format!("is no scheduler; it may be {}", NAMES.join(", "))));
        };
        config.build(setup)
    }

    fn layers(&self) -> Layers<(), ()> {
        Layers { buffer: self.buffer, weighting: self.weighting, of: PhantomData }
    }
}

impl Arrangement for ByName {
    type Container<P: Packet> = Modular<P, AnyScheduler, AnyScheduler>;

    fn validate(&self, setup: &Setup<'_>, stations: u32) -> Result<(), ConfigError> {
        self.scheduler(0, setup)?;
        let weights = self.weighting.weights(&linear(stations as usize, 1.0..=0.0));
        self.scheduler(1, &Setup { weights: &weights, ..*setup })?;
        self.layers().plan(setup.weights.len(), stations, None).validate(setup.weights.len(), stations as usize)
    }

    fn build<P: Packet>(&self, setup: &Setup<'_>, stations: u32, per_class: Limit) -> Self::Container<P> {
        let weights = self.weighting.weights(&vec![0.0; stations as usize]);
        let mac = self.scheduler(1, &Setup { weights: &weights, ..*setup });
        let plan = self.layers().plan(setup.weights.len(), stations, Some(per_class));
        self.scheduler(0, setup).and_then(|qos| Modular::new(qos, mac?, plan)).expect("the configuration was validated")
    }
}

/// A queue discipline made of queues of classes.
#[derive(Debug, Clone)]
pub struct Classful<P, C> {
    limit: Limit,
    flows: u32,
    stations: u32,
    good_loss: f64,
    max_packet: Bytes,
    /// The classifier by hash; `None` if classes follow from indices.
    hash: Option<Classifier>,
    /// The classes that were set by [`Fact::Class`], by flow.
    told: Vec<u32>,
    /// Boxed, so that the enum of all disciplines stays small.
    container: Box<C>,
    rate: Rate,
    /// When the packet that left last began to be sent.
    began: Instant,
    backlog: Backlog,
    stats: Stats,
    of: PhantomData<P>,
}

impl<P: Packet, C: Container<P>> Classful<P, C> {
    /// Creates empty queues. The parameters must be valid.
    pub fn new(link: &LinkFacts, classes: &Classes, container: C) -> Self {
        let hash = || Classifier::new(classes.flows, 1, classes.perturbation);
        Self {
            limit: link.limit,
            flows: classes.flows,
            stations: classes.stations,
            good_loss: classes.good_loss,
            max_packet: classes.max_packet,
            hash: (classes.classify == Classify::Hash).then(hash),
            told: Vec::new(),
            container: Box::new(container),
            rate: link.rate,
            began: Instant::ZERO,
            backlog: Backlog::default(),
            stats: Stats::default(),
            of: PhantomData,
        }
    }

    /// The container of the packets, to read its state.
    pub fn container(&self) -> &C {
        &self.container
    }

    #[cold]
    fn refuse<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, observer: &mut O) -> Enqueued {
        self.stats.count_drop(DropReason::Overflow, packet.size());
        observer.dropped(packet, DropReason::Overflow, now);
        Enqueued::Dropped(DropReason::Overflow)
    }

    /// Sets the class of a flow; ignored if classes are found by hash. The class of a flow with packets should not
    /// change, because its packets might be reordered.
    fn set_class(&mut self, flow: FlowId, class: u32) {
        let at = flow.0 as usize;
        if at >= self.told.len() {
            self.told.extend(self.told.len() as u32..=flow.0);
        }
        self.told[at] = class;
    }
}

impl<P: Packet, C: Container<P>> Qdisc<P> for Classful<P, C> {
    #[inline]
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued {
        let size = packet.size();
        self.stats.arrived.add(size);
        if !self.backlog.has_room(size, self.limit) {
            return self.refuse(packet, now, observer);
        }
        let class = match &mut self.hash {
            Some(hash) => hash.queue_of(packet.flow(), rng, |_| false) as u32,
            None => self.told.get(packet.flow().0 as usize).copied().unwrap_or(packet.flow().0) % self.flows,
        };
        let scheduled_as = size.clamp(Bytes::new(1), self.max_packet);
        let (rate, began) = (self.rate, self.began);
        match self.container.enqueue(class, scheduled_as, packet, || rate.bytes_in(now.since(began))) {
            Ok(()) => {
                self.backlog.add(size);
                Enqueued::Queued
            }
            Err(refused) => self.refuse(refused.packet, now, observer),
        }
    }

    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, _: &mut Rng, _: &mut O) -> Option<P> {
        let packet = self.container.dequeue()?.packet;
        self.began = now;
        let size = packet.size();
        self.backlog.remove(size);
        self.stats.sent.add(size);
        Some(packet)
    }

    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        match *fact {
            Fact::Channel { station, loss } if station < self.stations => {
                let good = loss <= self.good_loss;
                self.container.set_loss(Station { number: station, of: self.stations, good }, loss);
            }
            Fact::Class { flow, class } => self.set_class(flow, class),
            Fact::Rate(rate) => self.rate = rate,
            _ => {}
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

/// There is no AQM, and ACKs are not inspected.
impl<P, C> AckPath for Classful<P, C> {}
