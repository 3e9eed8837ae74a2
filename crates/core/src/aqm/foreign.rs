//! AQMs from outside this crate: those of a user's library, perhaps in another language.
//!
//! A [`Config`] is a name, parameters and a factory. The AQM that the factory makes is one more variant of
//! [`AnyQdisc`](crate::registry::AnyQdisc), and only calls to foreign AQMs go through a pointer. A foreign AQM cannot
//! report a failure to its queue: it repeats its last answer, and the owner of the factory checks for failures after
//! the run.

use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::LinkFacts;
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Instant, Span};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// An AQM from outside this crate. It sees what an [`Aqm`] sees.
pub trait ForeignAqm: fmt::Debug + Send {
    /// Judges a packet that arrives, like [`Aqm::on_enqueue`].
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict;
    /// Judges the head packet, like [`Aqm::on_dequeue`].
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict;
    /// Called when a packet found no room, like [`Aqm::on_overflow`].
    fn on_overflow(&mut self, now: Instant) {
        let _ = now;
    }
    /// Whether the last drop on arrival was forced, like [`Aqm::was_forced`].
    fn was_forced(&self) -> bool {
        false
    }
    /// Whether a full queue makes room at its head, like [`Aqm::drops_head`].
    fn drops_head(&self) -> bool {
        false
    }
    /// Called before a waiting packet is dropped to make room, like [`Aqm::on_shed`].
    fn on_shed(&mut self, backlog: Backlog, now: Instant) {
        let _ = backlog;
        self.on_overflow(now);
    }
    /// Whether the algorithm wants the backlog of all flow queues, like [`Aqm::wants_whole_backlog`].
    fn wants_whole_backlog(&self) -> bool {
        false
    }
    /// Called when the link found the queue empty, like [`Aqm::on_empty`].
    fn on_empty(&mut self, now: Instant) {
        let _ = now;
    }
    /// When the algorithm wants to be woken, like [`Aqm::next_wakeup`].
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }
    /// Called when that time has come, like [`Aqm::on_wakeup`].
    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        let _ = (backlog, now);
    }
    /// Returns numbers for the results of a run, like [`Aqm::report`].
    fn report(&self) -> Option<Value> {
        None
    }
    /// Returns the state of the algorithm, for people to read.
    fn state(&self) -> String {
        format!("{self:?}")
    }
    /// Called when something changed outside the queue, like [`Aqm::on_fact`].
    fn on_fact(&mut self, fact: &Fact, now: Instant);
    /// Creates an independent copy of the algorithm with its current state.
    fn copy(&self) -> Box<dyn ForeignAqm>;
}

/// A factory of foreign AQMs of one kind.
pub trait MakeAqm: fmt::Debug + Send + Sync {
    /// Creates an AQM for a queue before `link`.
    fn make(&self, link: &LinkFacts) -> Box<dyn ForeignAqm>;
}

/// The configuration of an AQM of a library: its name, its factory and its parameters. Two configurations are equal if
/// they share the factory and have equal parameters.
#[derive(Debug, Clone)]
pub struct Config {
    name: Arc<str>,
    parameters: Map<String, Value>,
    /// `None` for a name that was read and not yet looked up.
    factory: Option<Arc<dyn MakeAqm>>,
}

impl Config {
    /// Creates the configuration of the AQM called `name`, which `factory` makes with these parameters.
    pub fn new(name: &str, parameters: Map<String, Value>, factory: Arc<dyn MakeAqm>) -> Self {
        Self { name: name.into(), parameters, factory: Some(factory) }
    }

    /// Creates the configuration of a name that was read and is to be looked up in a library.
    pub(crate) fn unknown(name: &str, parameters: Map<String, Value>) -> Self {
        Self { name: name.into(), parameters, factory: None }
    }

    /// Returns true if a library has the AQM.
    pub(crate) fn is_known(&self) -> bool {
        self.factory.is_some()
    }

    /// Returns the parameters that were set.
    pub fn parameters(&self) -> &Map<String, Value> {
        &self.parameters
    }

    /// Returns the name by which the library was asked for the AQM.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates the AQM for a queue before `link`.
    ///
    /// # Panics
    /// If no library has the AQM, which validation refuses.
    pub fn aqm(&self, link: &LinkFacts) -> AnyForeignAqm {
        AnyForeignAqm(self.factory.as_ref().expect("the configuration was validated").make(link))
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.factory, &other.factory) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => self.name == other.name,
            _ => false,
        };
        same && self.parameters == other.parameters
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.parameters.serialize(serializer)
    }
}

/// A foreign AQM of any kind, as an [`Aqm`].
#[derive(Debug)]
pub struct AnyForeignAqm(Box<dyn ForeignAqm>);

impl Clone for AnyForeignAqm {
    fn clone(&self) -> Self {
        Self(self.0.copy())
    }
}

impl AnyForeignAqm {
    /// Returns the state of the algorithm, for people to read.
    pub fn state(&self) -> String {
        self.0.state()
    }
}

impl Aqm for AnyForeignAqm {
    /// True, since a foreign algorithm may have a timer.
    const WAKES: bool = true;
    /// True, since a foreign algorithm may count the waiting packets.
    const COUNTS: bool = true;

    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        able(packet, self.0.on_enqueue(packet, backlog, now, rng))
    }
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        able(packet, self.0.on_dequeue(packet, sojourn, backlog, now, rng))
    }
    fn on_overflow(&mut self, now: Instant) {
        self.0.on_overflow(now);
    }
    fn was_forced(&self) -> bool {
        self.0.was_forced()
    }
    fn drops_head(&self) -> bool {
        self.0.drops_head()
    }
    fn on_shed(&mut self, backlog: Backlog, now: Instant) {
        self.0.on_shed(backlog, now);
    }
    fn wants_whole_backlog(&self) -> bool {
        self.0.wants_whole_backlog()
    }
    fn on_empty(&mut self, now: Instant) {
        self.0.on_empty(now);
    }
    fn next_wakeup(&self) -> Option<Instant> {
        self.0.next_wakeup()
    }
    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        self.0.on_wakeup(backlog, now);
    }
    fn report(&self) -> Option<Value> {
        self.0.report()
    }
    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        self.0.on_fact(fact, now);
    }
}

impl AckPath for AnyForeignAqm {}

/// Turns a mark of a packet that is not ECN-capable into a drop (RFC 3168 §5).
fn able(packet: &Meta, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Mark if !packet.ecn.is_capable() => Verdict::Drop,
        verdict => verdict,
    }
}

#[cfg(test)]
mod tests;
