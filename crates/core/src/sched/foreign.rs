//! Packet schedulers from outside this crate: those of a user's library, perhaps in another language.
//!
//! A [`Config`] is a name, parameters and a factory. Its schedulers are one more variant of
//! [`AnyScheduler`](super::table::AnyScheduler), so they can be used wherever a scheduler is named: before a link, in
//! both layers of the modular architecture, and in TEMPEST.
//!
//! Each of them is guarded ([`AnyForeignScheduler`]): a scheduler that leaves the link idle while packets wait, names a
//! class without packets or a class that does not exist is stopped. Its owner is told the first such [`Fault`]; the
//! waiting packets then leave class by class, so that whoever drives the scheduler finds no gap. While the channel of a
//! class is bad, its packets may wait.

use super::{Scheduler, Setup, Weight};
use crate::config::ConfigError;
use crate::units::Bytes;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// A packet scheduler from outside this crate.
pub trait ForeignScheduler: Scheduler + fmt::Debug + Send {
    /// Creates an independent copy of the scheduler with its current state.
    fn copy(&self) -> Box<dyn ForeignScheduler>;

    /// The name of the method that answers with a class, for messages.
    fn chooser(&self) -> &'static str {
        "dequeue"
    }

    /// Called when the scheduler broke a rule. It is not called again.
    ///
    /// # Panics
    /// The default panics with the sentence of the fault, because a broken invariant of a compiled algorithm is a fault
    /// of the program.
    fn broke(&mut self, fault: &Fault) {
        panic!("{fault}");
    }

    /// Returns the state of the scheduler, for people to read.
    fn state(&self) -> String {
        format!("{self:?}")
    }
}

/// A factory of foreign schedulers of one kind.
pub trait MakeScheduler: fmt::Debug + Send + Sync {
    /// Refuses classes that the scheduler cannot serve.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    fn validate(&self, setup: &Setup<'_>) -> Result<(), ConfigError> {
        setup.validate()
    }

    /// Creates a scheduler. Call only after [`MakeScheduler::validate`].
    fn make(&self, setup: &Setup<'_>) -> Box<dyn ForeignScheduler>;
}

/// The configuration of a scheduler of a library: its name, its factory and its parameters. Two configurations are equal
/// if they share the factory and have equal parameters.
#[derive(Debug, Clone)]
pub struct Config {
    name: Arc<str>,
    parameters: Map<String, Value>,
    factory: Arc<dyn MakeScheduler>,
}

impl Config {
    /// Creates the configuration of the scheduler called `name`, which `factory` makes with these parameters.
    pub fn new(name: &str, parameters: Map<String, Value>, factory: Arc<dyn MakeScheduler>) -> Self {
        Self { name: name.into(), parameters, factory }
    }

    /// Returns the name by which the library was asked for the scheduler.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Refuses classes that the scheduler cannot serve.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    pub fn validate(&self, setup: &Setup<'_>) -> Result<(), ConfigError> {
        self.factory.validate(setup)
    }

    /// Creates the scheduler. Call only after [`Config::validate`].
    pub fn scheduler(&self, setup: &Setup<'_>) -> AnyForeignScheduler {
        AnyForeignScheduler {
            name: self.name.clone(),
            guard: Guard::new(setup.weights.len()),
            scheduler: self.factory.make(setup),
        }
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

/// The rule that a scheduler broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// It named a class that does not exist.
    NoSuchClass {
        /// The class that it named.
        class: u32,
        /// Number of classes.
        classes: usize,
    },
    /// It named a class without packets.
    NoPacket {
        /// The class that it named.
        class: u32,
        /// The number of the last packet that was served of this class; `None` if there was none.
        last: Option<u64>,
    },
    /// It named no class although packets wait whose channel is good.
    Idle {
        /// Number of waiting packets.
        waiting: u64,
        /// The number of the oldest of the packets that could be sent.
        oldest: u64,
        /// The class of that packet.
        class: u32,
    },
}

/// What a scheduler did wrong, as a sentence. Packets are numbered from 0 in the order of their arrival,
/// departures in their own order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name of the scheduler.
    pub name: String,
    /// The method that gave the answer.
    pub method: &'static str,
    /// The number of the departure for which it was asked, from 0.
    pub departures: u64,
    /// The rule that is broken.
    pub rule: Rule,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, method, departures, rule } = self;
        write!(f, "{method} of {name}, asked for departure {departures}, answered ")?;
        match rule {
            Rule::NoSuchClass { class, classes } => {
                write!(f, "class {class}, which does not exist: there are {classes}, from 0 to {}", classes - 1)
            }
            Rule::NoPacket { class, last: Some(last) } => {
                write!(f, "class {class}, which has no packet: its last, packet {last}, has been served already")
            }
            Rule::NoPacket { class, last: None } => write!(f, "class {class}, to which no packet has come"),
            Rule::Idle { waiting, oldest, class } => write!(
                f,
                "no class although {waiting} {} packet {oldest} in class {class}: the link must not be idle",
                if *waiting == 1 { "packet waits," } else { "packets wait, the oldest of them" }
            ),
        }
    }
}

/// The waiting packets, by which the decisions of a foreign scheduler are checked: each packet is served once, and the
/// link is not idle while any waits.
#[derive(Debug, Clone, Default)]
struct Guard {
    /// The numbers of the waiting packets of each class.
    waiting: Vec<VecDeque<u64>>,
    /// The number of the last packet that was served of each class.
    last: Vec<Option<u64>>,
    /// For each class, whether its channel is bad.
    bad: Vec<bool>,
    packets: u64,
    arrivals: u64,
    departures: u64,
    broken: bool,
}

impl Guard {
    fn new(classes: usize) -> Self {
        Self {
            waiting: vec![VecDeque::new(); classes],
            last: vec![None; classes],
            bad: vec![false; classes],
            ..Self::default()
        }
    }

    #[inline]
    fn arrive(&mut self, class: u32) {
        self.waiting[class as usize].push_back(self.arrivals);
        self.arrivals += 1;
        self.packets += 1;
    }

    #[inline]
    fn leave(&mut self, class: u32) {
        self.last[class as usize] = self.waiting[class as usize].pop_front();
        self.packets -= 1;
        self.departures += 1;
    }

    #[inline]
    fn judge(&self, answer: Option<u32>) -> Result<(), Rule> {
        match answer {
            Some(class) => match self.waiting.get(class as usize) {
                Some(packets) if !packets.is_empty() => Ok(()),
                Some(_) => Err(Rule::NoPacket { class, last: self.last[class as usize] }),
                None => Err(Rule::NoSuchClass { class, classes: self.waiting.len() }),
            },
            None if self.packets == 0 => Ok(()),
            None => self.idle(),
        }
    }

    /// Judges an idle link while packets wait: right if the channels of all classes with packets are bad.
    fn idle(&self) -> Result<(), Rule> {
        let first = |class: usize| self.waiting[class].front().map(|packet| (*packet, class as u32));
        let oldest = (0..self.waiting.len()).filter(|class| !self.bad[*class]).filter_map(first).min();
        oldest.map_or(Ok(()), |(oldest, class)| Err(Rule::Idle { waiting: self.packets, oldest, class }))
    }

    /// The first class with packets.
    fn first(&self) -> Option<u32> {
        self.waiting.iter().position(|packets| !packets.is_empty()).map(|class| class as u32)
    }
}

/// A foreign scheduler of any kind, guarded.
#[derive(Debug)]
pub struct AnyForeignScheduler {
    name: Arc<str>,
    guard: Guard,
    scheduler: Box<dyn ForeignScheduler>,
}

impl AnyForeignScheduler {
    /// Returns the state of the scheduler, for people to read.
    pub fn state(&self) -> String {
        self.scheduler.state()
    }

    #[cold]
    fn stop(&mut self, rule: Rule) -> Option<u32> {
        self.guard.broken = true;
        let (name, departures) = (self.name.to_string(), self.guard.departures);
        self.scheduler.broke(&Fault { name, method: self.scheduler.chooser(), departures, rule });
        self.guard.first()
    }
}

impl Clone for AnyForeignScheduler {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), guard: self.guard.clone(), scheduler: self.scheduler.copy() }
    }
}

impl Scheduler for AnyForeignScheduler {
    fn classes(&self) -> usize {
        self.guard.waiting.len()
    }

    fn max_packet(&self) -> Bytes {
        self.scheduler.max_packet()
    }

    fn enqueue(&mut self, class: u32, size: Bytes, idle: bool) {
        self.guard.arrive(class);
        if !self.guard.broken {
            self.scheduler.enqueue(class, size, idle);
        }
    }

    fn dequeue(&mut self) -> Option<u32> {
        if self.guard.broken {
            return self.guard.first();
        }
        let answer = self.scheduler.dequeue();
        match self.guard.judge(answer) {
            Ok(()) => answer,
            Err(rule) => self.stop(rule),
        }
    }

    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>) {
        self.guard.leave(class);
        if !self.guard.broken {
            self.scheduler.served(class, size, head);
        }
    }

    fn progress(&mut self, sent: Bytes) {
        if !self.guard.broken {
            self.scheduler.progress(sent);
        }
    }

    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        if class as usize >= self.classes() {
            return Err(super::no_class(class, self.classes()));
        }
        if self.guard.broken { Ok(()) } else { self.scheduler.set_weight(class, weight) }
    }

    fn set_channel(&mut self, class: u32, good: bool) {
        if let Some(bad) = self.guard.bad.get_mut(class as usize) {
            *bad = !good;
            if !self.guard.broken {
                self.scheduler.set_channel(class, good);
            }
        }
    }
}

#[cfg(test)]
mod tests;
