//! AQMs that are not in this crate: somebody's own, perhaps in another language.
//!
//! A [`Config`] is a name, parameters and a factory, and what the factory makes stands as one more variant in
//! [`AnyQdisc`](crate::registry::AnyQdisc). Only calls to foreign AQMs go through a pointer. An AQM that fails has no way to
//! say so to its queue: it keeps its last answer, and whoever gave the factory asks it after the run whether all went well.

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

/// An AQM from outside. It sees what [`Aqm`] sees and has no timers.
pub trait ForeignAqm: fmt::Debug + Send {
    /// As [`Aqm::on_enqueue`].
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict;
    /// As [`Aqm::on_dequeue`].
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict;
    /// As [`Aqm::on_overflow`].
    fn on_overflow(&mut self, now: Instant) {
        let _ = now;
    }
    /// As [`Aqm::on_empty`].
    fn on_empty(&mut self, now: Instant) {
        let _ = now;
    }
    /// As [`Aqm::on_fact`].
    fn on_fact(&mut self, fact: &Fact, now: Instant);
    /// An algorithm with the same state.
    fn copy(&self) -> Box<dyn ForeignAqm>;
}

/// Makes AQMs.
pub trait MakeAqm: fmt::Debug + Send + Sync {
    /// An AQM for a queue before `link`.
    fn make(&self, link: &LinkFacts) -> Box<dyn ForeignAqm>;
}

/// An AQM of a library: its name, its factory and its parameters. Two are equal if they share the factory.
#[derive(Debug, Clone)]
pub struct Config {
    name: Arc<str>,
    parameters: Map<String, Value>,
    factory: Arc<dyn MakeAqm>,
}

impl Config {
    /// `factory` makes what is called `name`, with these parameters.
    pub fn new(name: &str, parameters: Map<String, Value>, factory: Arc<dyn MakeAqm>) -> Self {
        Self { name: name.into(), parameters, factory }
    }

    /// The name with which it was found.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The AQM for a queue before `link`.
    pub fn aqm(&self, link: &LinkFacts) -> AnyForeignAqm {
        AnyForeignAqm(self.factory.make(link))
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.factory, &other.factory) && self.parameters == other.parameters
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.parameters.serialize(serializer)
    }
}

/// Any foreign AQM, for the queue that it judges.
#[derive(Debug)]
pub struct AnyForeignAqm(Box<dyn ForeignAqm>);

impl Clone for AnyForeignAqm {
    fn clone(&self) -> Self {
        Self(self.0.copy())
    }
}

impl Aqm for AnyForeignAqm {
    /// Nobody knows whether it does.
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
    fn on_empty(&mut self, now: Instant) {
        self.0.on_empty(now);
    }
    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        self.0.on_fact(fact, now);
    }
}

impl AckPath for AnyForeignAqm {}

/// A mark for a packet that cannot carry one is a drop (RFC 3168 §5), whatever the foreign algorithm thought of it.
fn able(packet: &Meta, verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Mark if !packet.ecn.is_capable() => Verdict::Drop,
        verdict => verdict,
    }
}

#[cfg(test)]
mod tests;
