//! Elements on the ACK path from outside this crate: those of a user's library, perhaps in another language.
//!
//! An element is shown a [`Segment`], a copy of what it may know of a TCP segment, and may lower the window of it. The
//! rules of PINK hold for every element: a window is never raised and never zeroed. A segment enforces them, so that an
//! element which breaks a rule changes nothing; its owner is told the first such [`Fault`].
//!
//! The shift of a window is known from the SYNs of a connection, as RFC 7323 §2.2 has it: it is 0 if one of the two SYNs
//! has no option, and unknown if a SYN was not seen.

use crate::ack_path::AckPath;
use crate::config::{ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::packet::{FlowId, PlainSegment, TcpFlags, TcpView, Timestamps};
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Instant, Span};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// For flows with this index or a higher one no shift is kept.
const MAX_FLOWS: usize = 1 << 24;

/// What an element sees of a TCP segment; its window may be lowered.
#[derive(Debug, Clone)]
pub struct Segment {
    shown: PlainSegment,
    shift: Option<u8>,
    backlog: Backlog,
    /// The window that the element may not raise, and whether it tried to.
    came_with: u16,
    refused: Option<u16>,
}

impl Segment {
    fn of<S: TcpView>(segment: &S, shift: Option<u8>, backlog: Backlog) -> Self {
        Self { shown: PlainSegment::of(segment), shift, backlog, came_with: segment.window(), refused: None }
    }

    /// Returns by how many bits the window field is shifted to give bytes; `None` if that is not known, since a SYN of
    /// the connection was not seen. The window of a SYN is never shifted.
    pub fn shift(&self) -> Option<u8> {
        self.shift
    }

    /// Returns what waits in the queue behind the element.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Returns the window with which the segment came.
    pub fn came_with(&self) -> u16 {
        self.came_with
    }
}

impl TcpView for Segment {
    fn flow(&self) -> FlowId {
        self.shown.flow
    }
    fn flags(&self) -> TcpFlags {
        self.shown.flags
    }
    fn seq(&self) -> u32 {
        self.shown.seq
    }
    fn ack(&self) -> u32 {
        self.shown.ack
    }
    fn payload_len(&self) -> u32 {
        self.shown.payload_len
    }
    fn window(&self) -> u16 {
        self.shown.window
    }
    /// Lowers the window. A window that is larger than that with which the segment came, or zero where that was not, is
    /// refused and noted.
    fn set_window(&mut self, window: u16) {
        if window > self.came_with || (window == 0 && self.came_with > 0) {
            self.refused.get_or_insert(window);
        } else {
            self.shown.window = window;
        }
    }
    fn window_scale(&self) -> Option<u8> {
        self.shown.window_scale
    }
    fn mss(&self) -> Option<u16> {
        self.shown.mss
    }
    fn timestamps(&self) -> Option<Timestamps> {
        self.shown.timestamps
    }
}

/// The rule that an element broke, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name of the element.
    pub name: String,
    /// The method: `outbound` or `inbound`.
    pub method: &'static str,
    /// The flow of the segment.
    pub flow: FlowId,
    /// The acknowledgment number of the segment.
    pub ack: u32,
    /// The window with which the segment came.
    pub came_with: u16,
    /// The window that the element set.
    pub set: u16,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, method, flow, ack, came_with, set } = self;
        let rule = if *set == 0 { "never zeroed" } else { "never raised" };
        write!(
            f,
            "{method} of {name} set the window of flow {} at ACK {ack} to {set}, and it came with {came_with}: a window \
             is lowered, {rule}",
            flow.0
        )
    }
}

/// An element on the ACK path from outside this crate.
pub trait ForeignElement: fmt::Debug + Send {
    /// Shows a segment that is about to enter the queue, like [`AckPath::outbound`].
    fn outbound(&mut self, segment: &mut Segment, now: Instant);
    /// Shows a segment that came back from the far side, like [`AckPath::inbound`].
    fn inbound(&mut self, segment: &mut Segment, now: Instant);
    /// Called when something changed outside the queue.
    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        let _ = (fact, now);
    }
    /// Creates an independent copy of the element with its current state.
    fn copy(&self) -> Box<dyn ForeignElement>;

    /// Called when the element broke a rule; the segment goes on with the window that it had before.
    ///
    /// # Panics
    /// The default panics with the sentence of the fault, because a broken invariant of a compiled algorithm is a fault
    /// of the program.
    fn broke(&mut self, fault: &Fault) {
        panic!("{fault}");
    }

    /// Returns the state of the element, for people to read.
    fn state(&self) -> String {
        format!("{self:?}")
    }
}

/// A factory of foreign elements of one kind.
pub trait MakeElement: fmt::Debug + Send + Sync {
    /// Creates an element before the queue of `link`.
    fn make(&self, link: &LinkFacts) -> Box<dyn ForeignElement>;
}

/// The configuration of an element of somebody's own crate, which is also its factory: what
/// [`AqmConfig`](crate::config::AqmConfig) is to an AQM.
pub trait ElementConfig: Default + Clone + Serialize + DeserializeOwned + JsonSchema {
    /// The element that [`ElementConfig::element`] creates.
    type Element: AckPath;

    /// Checks that every parameter is within its range.
    ///
    /// # Errors
    /// Returns the first parameter that is out of its range.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Creates the element before the queue of `link`. Call only after [`ElementConfig::validate`].
    fn element(&self, link: &LinkFacts) -> Self::Element;
}

/// The configuration of an element of a library: its name, its factory and its parameters. Two configurations are equal
/// if they share the factory and have equal parameters.
#[derive(Debug, Clone)]
pub struct Config {
    name: Arc<str>,
    parameters: Map<String, Value>,
    factory: Arc<dyn MakeElement>,
}

impl Config {
    /// Creates the configuration of the element called `name`, which `factory` makes with these parameters.
    pub fn new(name: &str, parameters: Map<String, Value>, factory: Arc<dyn MakeElement>) -> Self {
        Self { name: name.into(), parameters, factory }
    }

    /// Returns the name by which the library was asked for the element.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates the element before the queue of `link`.
    pub fn element(&self, link: &LinkFacts) -> AnyForeignElement {
        AnyForeignElement {
            name: self.name.clone(),
            element: self.factory.make(link),
            shifts: Vec::new(),
            backlog: Backlog::default(),
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

/// The window scale options in the two SYNs of a flow, by direction: `None` before the SYN, `Some(None)` without option.
type Scales = [Option<Option<u8>>; 2];

/// A foreign element of any kind.
#[derive(Debug)]
pub struct AnyForeignElement {
    name: Arc<str>,
    element: Box<dyn ForeignElement>,
    /// Of each flow, the options of its SYNs, outbound and inbound.
    shifts: Vec<Scales>,
    backlog: Backlog,
}

impl AnyForeignElement {
    /// Returns the state of the element, for people to read.
    pub fn state(&self) -> String {
        self.element.state()
    }

    /// Notes what waits in the queue, for the next segments.
    pub fn note_backlog(&mut self, backlog: Backlog) {
        self.backlog = backlog;
    }

    /// Returns the shift of the window of a segment, after reading the option of a SYN.
    fn shift<S: TcpView>(&mut self, segment: &S, direction: usize) -> Option<u8> {
        let at = segment.flow().0 as usize;
        if segment.flags().has(TcpFlags::SYN) {
            if at < MAX_FLOWS {
                if at >= self.shifts.len() {
                    self.shifts.resize(at + 1, [None, None]);
                }
                self.shifts[at][direction] = Some(segment.window_scale());
            }
            return Some(0);
        }
        let scales = self.shifts.get(at)?;
        let (own, other) = (scales[direction]?, scales[1 - direction]?);
        Some(other.and(own).unwrap_or(0))
    }

    fn show<S: TcpView>(&mut self, segment: &mut S, direction: usize, now: Instant) {
        let mut shown = Segment::of(segment, self.shift(segment, direction), self.backlog);
        match direction {
            0 => self.element.outbound(&mut shown, now),
            _ => self.element.inbound(&mut shown, now),
        }
        if let Some(set) = shown.refused {
            let (name, method) = (self.name.to_string(), ["outbound", "inbound"][direction]);
            let Segment { shown: PlainSegment { flow, ack, .. }, came_with, .. } = shown;
            self.element.broke(&Fault { name, method, flow, ack, came_with, set });
        }
        if shown.window() != shown.came_with {
            segment.set_window(shown.window());
        }
    }
}

impl Clone for AnyForeignElement {
    fn clone(&self) -> Self {
        let (name, element) = (self.name.clone(), self.element.copy());
        Self { name, element, shifts: self.shifts.clone(), backlog: self.backlog }
    }
}

impl AckPath for AnyForeignElement {
    const ACTIVE: bool = true;

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.show(segment, 0, now);
    }
    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.show(segment, 1, now);
    }
}

/// The element judges nothing.
impl Aqm for AnyForeignElement {
    fn on_enqueue(&mut self, _: &Meta, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
        Verdict::Pass
    }
    fn on_dequeue(&mut self, _: &Meta, _: Span, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
        Verdict::Pass
    }
    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        self.element.on_fact(fact, now);
    }
}

#[cfg(test)]
mod tests;
