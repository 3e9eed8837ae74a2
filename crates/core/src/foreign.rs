//! Algorithms that are not in this crate: somebody's own, perhaps in another language.
//!
//! A [`Library`] finds them by name when a name is not in the registry; what it gives is a factory, and what that makes
//! stands as one more variant in [`AnyCc`](crate::cc::AnyCc) and [`AnyQdisc`](crate::registry::AnyQdisc). The variant is
//! the cold one: nothing that is built in becomes slower, and only calls to foreign algorithms go through a pointer.
//!
//! Nothing here knows a language. An algorithm that fails has no way to say so to a queue or a sender: it keeps its last
//! answer, and whoever gave the library asks it after the run whether all went well.

use crate::ack::AckPath;
use crate::aqm::{Aqm, Meta};
use crate::cc::{Ack, CongestionControl, Loss, Setup, Wants};
use crate::qdisc::{Backlog, Verdict};
use crate::registry::LinkFacts;
use crate::rng::Rng;
use crate::units::{Instant, Rate, Span};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// A congestion control from outside.
pub trait ForeignCc: CongestionControl + fmt::Debug + Send {
    /// A control with the same state.
    fn copy(&self) -> Box<dyn ForeignCc>;
}

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
    /// As [`Aqm::set_rate`].
    fn set_rate(&mut self, rate: Rate, now: Instant) {
        let _ = (rate, now);
    }
    /// An algorithm with the same state.
    fn copy(&self) -> Box<dyn ForeignAqm>;
}

/// Makes controls.
pub trait MakeCc: fmt::Debug + Send + Sync {
    /// A control for a new connection; `seed` differs from connection to connection and is the same in every run with the
    /// same scenario and seed.
    fn make(&self, setup: &Setup, seed: u64) -> Box<dyn ForeignCc>;
    /// What all of them want.
    fn wants(&self) -> Wants;
}

/// Makes AQMs.
pub trait MakeAqm: fmt::Debug + Send + Sync {
    /// An AQM for a queue before `link`.
    fn make(&self, link: &LinkFacts) -> Box<dyn ForeignAqm>;
}

/// Where names are looked up that are not in the registry, and files that a scenario names. `()` knows none.
pub trait Library {
    /// The control of this name: `None` if it is none of this library's, a sentence if it cannot be used.
    fn control(&self, name: &str) -> Option<Result<Control, String>>;
    /// The AQM of this name with these parameters, likewise.
    fn aqm(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Config, String>>;
    /// The text of the file of this name: `None` if this library has no files, a sentence if it cannot be had.
    fn file(&self, name: &str) -> Option<Result<String, String>> {
        let _ = name;
        None
    }
}

impl Library for () {
    fn control(&self, _: &str) -> Option<Result<Control, String>> {
        None
    }
    fn aqm(&self, _: &str, _: &Map<String, Value>) -> Option<Result<Config, String>> {
        None
    }
}

/// A control of a library: its name and its factory. Two are equal if they share the factory.
#[derive(Debug, Clone)]
pub struct Control {
    name: Arc<str>,
    factory: Arc<dyn MakeCc>,
}

impl Control {
    /// `factory` makes what is called `name`.
    pub fn new(name: &str, factory: Arc<dyn MakeCc>) -> Self {
        Self { name: name.into(), factory }
    }

    /// The control of a new connection.
    pub fn make(&self, setup: &Setup, seed: u64) -> Running {
        Running { name: self.name.clone(), control: self.factory.make(setup, seed) }
    }

    /// What all that it makes want.
    pub fn wants(&self) -> Wants {
        self.factory.wants()
    }
}

impl PartialEq for Control {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.factory, &other.factory)
    }
}

/// A foreign control at work, with its name.
#[derive(Debug)]
pub struct Running {
    name: Arc<str>,
    control: Box<dyn ForeignCc>,
}

impl Running {
    /// The name with which it was found.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Clone for Running {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), control: self.control.copy() }
    }
}

/// Nobody can look into a foreign control: it equals itself only.
impl PartialEq for Running {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(&raw const *self.control, &raw const *other.control)
    }
}

impl CongestionControl for Running {
    fn cwnd(&self) -> u64 {
        self.control.cwnd()
    }
    fn ssthresh(&self) -> u64 {
        self.control.ssthresh()
    }
    fn on_ack(&mut self, ack: &Ack) {
        self.control.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.control.on_loss(loss);
    }
    fn on_recovered(&mut self, now: Instant) {
        self.control.on_recovered(now);
    }
    fn on_rto(&mut self, loss: &Loss) {
        self.control.on_rto(loss);
    }
    fn on_idle(&mut self, now: Instant, initial_window: u64) {
        self.control.on_idle(now, initial_window);
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.control.pacing_rate()
    }
    fn wants(&self) -> Wants {
        self.control.wants()
    }
    fn on_recovery_ack(&mut self, ack: &Ack) {
        self.control.on_recovery_ack(ack);
    }
    fn next_burst(&self) -> Instant {
        self.control.next_burst()
    }
    fn on_burst(&mut self, now: Instant, in_flight: u64) {
        self.control.on_burst(now, in_flight);
    }
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
    fn set_rate(&mut self, rate: Rate, now: Instant) {
        self.0.set_rate(rate, now);
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
