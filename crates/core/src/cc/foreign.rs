//! Congestion controls from outside this crate, for example written in Python.
//!
//! A [`Control`] is a name and a factory; [`AnyCc`](super::AnyCc) has a variant for the controls that factories create.
//! Only calls to foreign controls go through a pointer to a trait object. A control that fails cannot report it to its
//! sender: it keeps its last window, and the owner of the factory checks for failures after the run.

use super::{Ack, Advice, CongestionControl, Loss, Notice, Requirements, Setup};
use crate::units::{Bytes, Instant, Rate};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// A congestion control from outside this crate.
pub trait ForeignCc: CongestionControl + fmt::Debug + Send {
    /// Copies the control with its state.
    fn copy(&self) -> Box<dyn ForeignCc>;

    /// Returns the state of the control, for people to read.
    fn state(&self) -> String {
        format!("{self:?}")
    }
}

/// A factory of foreign controls.
pub trait MakeCc: fmt::Debug + Send + Sync {
    /// Creates the control of a new connection. `seed` differs from connection to connection and is equal in all runs
    /// with equal scenario and seed.
    fn make(&self, setup: &Setup, seed: u64) -> Box<dyn ForeignCc>;
    /// What all controls of this factory require of their endpoints.
    fn requirements(&self) -> Requirements;
}

/// The configuration of a foreign control: its name, its parameters and its factory. Two are equal if they share the
/// factory and have equal parameters.
#[derive(Debug, Clone)]
pub struct Control {
    name: Arc<str>,
    parameters: Map<String, Value>,
    factory: Arc<dyn MakeCc>,
}

impl Control {
    /// Creates the configuration of the control `name` with the parameters that `factory` uses.
    pub fn new(name: &str, parameters: Map<String, Value>, factory: Arc<dyn MakeCc>) -> Self {
        Self { name: name.into(), parameters, factory }
    }

    /// The name by which scenarios select the control.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The parameters that were set.
    pub fn parameters(&self) -> &Map<String, Value> {
        &self.parameters
    }

    /// Creates the control of a new connection.
    pub fn make(&self, setup: &Setup, seed: u64) -> Running {
        Running { name: self.name.clone(), control: self.factory.make(setup, seed) }
    }

    /// What its controls require of their endpoints.
    pub fn requirements(&self) -> Requirements {
        self.factory.requirements()
    }
}

impl PartialEq for Control {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.factory, &other.factory) && self.parameters == other.parameters
    }
}

/// The foreign control of one connection, with its name.
#[derive(Debug)]
pub struct Running {
    name: Arc<str>,
    control: Box<dyn ForeignCc>,
}

impl Running {
    /// The name by which scenarios select the control.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the state of the control, for people to read.
    pub fn state(&self) -> String {
        self.control.state()
    }
}

impl Clone for Running {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), control: self.control.copy() }
    }
}

/// The state of a foreign control cannot be compared, so it is equal only to itself.
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
    fn on_notice(&mut self, notice: &Notice) {
        self.control.on_notice(notice);
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
