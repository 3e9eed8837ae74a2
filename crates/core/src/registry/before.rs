//! An element on the ACK path from outside this crate, before any discipline of the registry or of the same library.

use super::{AnyConfig, AnyQdisc};
use crate::ack::foreign::{self, AnyForeignElement};
use crate::ack::gate::Gate;
use crate::ack_path::AckPath;
use crate::config::LinkFacts;
use crate::config::tables::{table, written};
use crate::fact::Fact;
use crate::packet::{Packet, TcpView};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats};
use crate::rng::Rng;
use crate::units::Instant;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// The key of the discipline behind an element.
pub const QUEUE: &str = "queue";

/// The configuration of an element and of the discipline behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The element.
    pub element: foreign::Config,
    /// The discipline behind it.
    pub queue: AnyConfig,
}

impl Config {
    /// Builds both. Call only after validation.
    pub fn build<P: Packet>(&self, link: &LinkFacts) -> Queue<P> {
        Queue(Gate::new(self.element.element(link), Behind(self.queue.build(link))))
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut queue = Map::from_iter([("name".to_owned(), Value::from(self.queue.name()))]);
        queue.append(&mut written(&self.queue));
        let mut all = table(&self.element);
        all.insert(QUEUE.to_owned(), Value::Object(queue));
        all.serialize(serializer)
    }
}

/// An observer of any type, so that a discipline may stand behind an element of the same enum.
struct Any<'a, P>(&'a mut dyn PacketObserver<P>);

impl<P> PacketObserver<P> for Any<'_, P> {
    fn dropped(&mut self, packet: P, reason: DropReason, now: Instant) {
        self.0.dropped(packet, reason, now);
    }
    fn marked(&mut self, packet: &P, now: Instant) {
        self.0.marked(packet, now);
    }
}

/// The discipline behind an element.
#[derive(Debug, Clone)]
pub struct Behind<P: Packet>(AnyQdisc<P>);

impl<P: Packet> Qdisc<P> for Behind<P> {
    const WAKES: bool = true;

    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued {
        self.0.enqueue(packet, now, rng, &mut Any(observer))
    }
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        self.0.dequeue(now, rng, &mut Any(observer))
    }
    fn next_wakeup(&self) -> Option<Instant> {
        self.0.next_wakeup()
    }
    fn on_wakeup(&mut self, now: Instant) {
        self.0.on_wakeup(now);
    }
    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        self.0.on_fact(fact, now);
    }
    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
    fn stats(&self) -> &Stats {
        self.0.stats()
    }
    fn report(&self) -> Option<Value> {
        self.0.report()
    }
}

impl<P: Packet> AckPath for Behind<P> {
    const ACTIVE: bool = true;

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.0.outbound(segment, now);
    }
    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.0.inbound(segment, now);
    }
}

/// A foreign element before a discipline, which shows the element the backlog after each change.
#[derive(Debug, Clone)]
pub struct Queue<P: Packet>(Gate<AnyForeignElement, Behind<P>>);

impl<P: Packet> Queue<P> {
    /// Returns the states of the element and of the discipline behind it, for people to read.
    pub fn state(&self) -> String {
        format!("{}; behind it {}", self.0.element().state(), self.0.queue().0.state())
    }

    fn note_backlog(&mut self) {
        let backlog = self.0.backlog();
        self.0.element_mut().note_backlog(backlog);
    }
}

impl<P: Packet> Qdisc<P> for Queue<P> {
    const WAKES: bool = true;

    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued {
        let fate = self.0.enqueue(packet, now, rng, observer);
        self.note_backlog();
        fate
    }
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        let packet = self.0.dequeue(now, rng, observer);
        self.note_backlog();
        packet
    }
    fn next_wakeup(&self) -> Option<Instant> {
        self.0.next_wakeup()
    }
    fn on_wakeup(&mut self, now: Instant) {
        self.0.on_wakeup(now);
    }
    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        self.0.on_fact(fact, now);
    }
    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
    fn stats(&self) -> &Stats {
        self.0.stats()
    }
    fn report(&self) -> Option<Value> {
        self.0.queue().report()
    }
}

impl<P: Packet> AckPath for Queue<P> {
    const ACTIVE: bool = true;

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.0.outbound(segment, now);
    }
    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.0.inbound(segment, now);
    }
}
