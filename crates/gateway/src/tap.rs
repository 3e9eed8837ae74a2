//! An observer of packets: what it is shown, and what it adds to the status.

use crate::held::Held;
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::RealPacket;
use penstock_shaper::bottleneck::Config;
use penstock_shaper::classify::{Classifier, PacketFacts};
use penstock_shaper::direction::Direction;
use penstock_shaper::path::Path;
use penstock_shaper::talkers::Talkers;
use serde_json::{Map, Value};

pub struct Around<'a> {
    pub classifier: &'a Classifier,
    /// The queues, whose disciplines can be told facts.
    pub path: &'a mut Path<Held>,
    pub now: Instant,
}

/// What the status has beside an observer.
pub struct Known<'a> {
    pub classifier: &'a Classifier,
    /// The round trip without the queues here, as far as it is known.
    pub trip: Option<Span>,
    /// Both directions, as they are set.
    pub ways: &'a [Config; 2],
    pub has_subscribers: bool,
    pub now: Instant,
}

/// An observer. A method that it does not have does nothing.
pub trait Tap {
    /// A packet came; the disciplines have been told the facts that come with it.
    fn arrives(&mut self, _: Direction, _: &mut Held, _: &PacketFacts, _: &mut Around<'_>) {}

    fn leaves(&mut self, _: Direction, _: &Held, _: Instant) {}

    /// A packet passes that is only observed.
    fn passes(&mut self, _: Direction, _: &RealPacket, _: Instant) {}

    fn refused(&mut self, _: &Held, _: DropReason) {}

    fn tick(&mut self, _: &mut Around<'_>) {}

    fn status(&self, _: &Known<'_>, _: &mut Entries) {}
}

/// What observers add to the status, by its keys.
pub type Entries = Map<String, Value>;

/// An observer that the file may ask for.
impl<T: Tap> Tap for Option<T> {
    fn arrives(&mut self, direction: Direction, held: &mut Held, facts: &PacketFacts, around: &mut Around<'_>) {
        self.iter_mut().for_each(|tap| tap.arrives(direction, held, facts, around));
    }
    fn leaves(&mut self, direction: Direction, held: &Held, now: Instant) {
        self.iter_mut().for_each(|tap| tap.leaves(direction, held, now));
    }
    fn passes(&mut self, direction: Direction, packet: &RealPacket, now: Instant) {
        self.iter_mut().for_each(|tap| tap.passes(direction, packet, now));
    }
    fn refused(&mut self, held: &Held, reason: DropReason) {
        self.iter_mut().for_each(|tap| tap.refused(held, reason));
    }
    fn tick(&mut self, around: &mut Around<'_>) {
        self.iter_mut().for_each(|tap| tap.tick(around));
    }
    fn status(&self, known: &Known<'_>, told: &mut Entries) {
        self.iter().for_each(|tap| tap.status(known, told));
    }
}

impl Tap for Talkers {
    fn leaves(&mut self, direction: Direction, held: &Held, now: Instant) {
        self.count(direction, held.packet(), now);
    }
    fn passes(&mut self, direction: Direction, packet: &RealPacket, now: Instant) {
        self.count(direction, packet, now);
    }
    fn tick(&mut self, around: &mut Around<'_>) {
        self.tick(around.now);
    }
}
