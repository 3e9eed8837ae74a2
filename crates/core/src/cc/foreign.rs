//! Congestion controls that are not in this crate: somebody's own, perhaps in another language.
//!
//! A [`Control`] is a name and a factory, and what the factory makes stands as one more variant in
//! [`AnyCc`](super::AnyCc). Only calls to foreign controls go through a pointer. A control that fails has no way to say so
//! to its sender: it keeps its last answer, and whoever gave the factory asks it after the run whether all went well.

use super::{Ack, Advice, CongestionControl, Loss, Requirements, Setup};
use crate::units::{Bytes, Instant, Rate};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// A congestion control from outside.
pub trait ForeignCc: CongestionControl + fmt::Debug + Send {
    /// A control with the same state.
    fn copy(&self) -> Box<dyn ForeignCc>;
}

/// Makes controls.
pub trait MakeCc: fmt::Debug + Send + Sync {
    /// A control for a new connection; `seed` differs from connection to connection and is the same in every run with the
    /// same scenario and seed.
    fn make(&self, setup: &Setup, seed: u64) -> Box<dyn ForeignCc>;
    /// What all of them require of their endpoints.
    fn requirements(&self) -> Requirements;
}

/// A control of a library: its name, its parameters and its factory. Two are equal if they share the factory and have the
/// same parameters.
#[derive(Debug, Clone)]
pub struct Control {
    name: Arc<str>,
    parameters: Map<String, Value>,
    factory: Arc<dyn MakeCc>,
}

impl Control {
    /// `factory` makes what is called `name`, with these parameters.
    pub fn new(name: &str, parameters: Map<String, Value>, factory: Arc<dyn MakeCc>) -> Self {
        Self { name: name.into(), parameters, factory }
    }

    /// The name with which it was found.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameters that were given.
    pub fn parameters(&self) -> &Map<String, Value> {
        &self.parameters
    }

    /// The control of a new connection.
    pub fn make(&self, setup: &Setup, seed: u64) -> Running {
        Running { name: self.name.clone(), control: self.factory.make(setup, seed) }
    }

    /// What all that it makes require.
    pub fn requirements(&self) -> Requirements {
        self.factory.requirements()
    }
}

impl PartialEq for Control {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.factory, &other.factory) && self.parameters == other.parameters
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
    fn cwnd(&self) -> Bytes {
        self.control.cwnd()
    }
    fn ssthresh(&self) -> Bytes {
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
    fn on_idle(&mut self, now: Instant, initial_window: Bytes) {
        self.control.on_idle(now, initial_window);
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.control.pacing_rate()
    }
    fn requirements(&self) -> Requirements {
        self.control.requirements()
    }
    fn on_recovery_ack(&mut self, ack: &Ack) {
        self.control.on_recovery_ack(ack);
    }
    fn next_burst(&self) -> Instant {
        self.control.next_burst()
    }
    fn on_burst(&mut self, now: Instant, in_flight: Bytes) {
        self.control.on_burst(now, in_flight);
    }
    fn advise(&mut self, advice: Advice) {
        self.control.advise(advice);
    }
}

#[cfg(test)]
mod tests;
