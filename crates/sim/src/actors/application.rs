//! Applications: what the two hosts of a flow do, behind one trait.
//!
//! A flow has one application, which acts at both ends. The application has at most one pending event, its next
//! wake-up. It is made from the settings of its kind ([`Traffic`](super::Traffic)).

use super::Measures;
use super::action::{Action, Context};
use crate::quantiles::Times;
use crate::segment::Segment;
use crate::tcp::{Counters, TcpConfig};
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Span};
use std::fmt::Debug;
use std::sync::Arc;

/// What happened to a connection that an application opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The connection was opened and has this number.
    Opened(u32),
    /// This number of further bytes reached the server.
    Delivered(u64),
    /// A transfer over the connection is complete.
    Complete {
        /// Size of the transfer in bytes.
        size: u64,
        /// When the transfer began.
        began: Instant,
    },
    /// The connection has ended.
    Over {
        /// Number of the connection.
        number: u32,
        /// What its client counted.
        counters: Counters,
        /// True if a transfer was under way, which means that the connection was given up.
        unfinished: bool,
    },
}

/// A transfer that an application is going to begin, as far as it does not depend on what the network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coming {
    /// Time before it: since the begin of the transfer before (`web`), or since the end of that (`http`); for the first
    /// transfer since the start of the flow.
    pub wait: Span,
    /// Its size in bytes.
    pub size: u64,
}

/// The application of a flow. Its methods return the time of the next wake-up, or `None` to keep the pending one, if
/// any.
pub trait Application: Debug + Send {
    /// Begins; returns when to wake next.
    fn start(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        self.wake(host)
    }

    /// Acts at the time it asked for; returns when to wake next.
    fn wake(&mut self, host: &mut Host<'_>) -> Option<Instant>;

    /// Ends, because the flow stops. Called in place of [`Application::wake`] at the first wake-up at or after the
    /// flow's stop.
    fn stop(&mut self, _: &mut Host<'_>) {}

    /// Takes a packet of the flow, or of a connection it forged, which arrived at one of its ends.
    fn receive(&mut self, packet: &Segment, host: &mut Host<'_>);

    /// Takes an event of a connection that it opened; returns when to wake next, or `None` if that does not change.
    fn on_connection(&mut self, _: ConnectionEvent, _: &mut Host<'_>) -> Option<Instant> {
        None
    }

    /// Returns the number of payload bytes delivered.
    fn delivered(&self) -> u64;

    /// Returns the name of the congestion control; empty without TCP.
    fn cc(&self) -> &str {
        ""
    }

    /// True if it is one connection that sends as much as its window allows: fairness is among such flows.
    fn fills_a_window(&self) -> bool {
        false
    }

    /// Returns the congestion window of its client in bytes; zero without one.
    fn window(&self) -> u64 {
        0
    }

    /// Returns a round trip time that its client learned since the last call.
    fn round_trip(&mut self) -> Option<Span> {
        None
    }

    /// True if all its data was delivered; false for an application without an end.
    fn is_complete(&self) -> bool {
        false
    }

    /// Returns why the run cannot go on, because of a stack that the application hosts.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Returns the counters of its connections that have ended, or of its only connection.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// Returns what the application measured, for the summary of its flow.
    fn measures(&self) -> Measures {
        Measures::None
    }

    /// Returns the distributions of what people feel of it.
    fn felt(&self) -> Vec<Felt> {
        Vec::new()
    }

    /// Returns the TCP settings of the connections that the application opens; `None` if it opens none. For
    /// `[cooperation]` each of these connections is a socket, and the flow itself is not.
    fn connects_by(&self) -> Option<&Arc<TcpConfig>> {
        None
    }

    /// Returns the transfers that it would begin within a time, if it has begun none; empty for an application without
    /// transfers. Nothing is drawn from its own random numbers.
    fn coming(&self, _within: Span) -> Vec<Coming> {
        Vec::new()
    }

    /// True if the application sends packets of connections that do not exist. Each such flow has
    /// [`crate::numbers::FORGED`] numbers for them.
    fn forges(&self) -> bool {
        false
    }

    /// Returns the number of bytes of its state, on the heap or not.
    fn bytes(&self) -> usize;
}

/// A distribution of what people feel: values, in milliseconds where they are times, and how many there are of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Felt {
    /// What it is of.
    pub what: Feeling,
    /// Values and their numbers, from the smallest value.
    pub counted: Vec<(f64, u64)>,
}

/// What people feel of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feeling {
    /// The one-way delay of a packet of a call.
    CallDelay,
    /// The mean opinion score of ten seconds of a call.
    CallScore,
    /// The time of a page.
    PageTime,
    /// The time between packets of a call, or frames of a video that are played.
    Gap,
}

impl Felt {
    /// Takes the distribution of times.
    pub fn of(what: Feeling, times: &Times) -> Self {
        Self { what, counted: times.distribution_ms() }
    }
}

/// What is needed to create an application.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Number of its flow.
    pub flow: u32,
    /// TCP settings of the flow.
    pub tcp: &'a Arc<TcpConfig>,
    /// The random streams of the run.
    pub streams: &'a Streams,
    /// The first number for forged connections, for an application which forges them.
    pub forged: u32,
}

impl Setup<'_> {
    /// Returns the random stream of the flow with this name, which says what the stream decides.
    pub fn stream(&self, what: &str) -> penstock_core::rng::Rng {
        self.streams.get(&format!("flow{}/{what}", self.flow))
    }
}

/// The two hosts of a flow, as its application sees them.
#[derive(Debug)]
pub struct Host<'a> {
    /// Simulated time.
    pub now: Instant,
    /// Number of the flow.
    pub flow: u32,
    /// When the flow stops; `Instant::MAX` means never.
    pub stop: Instant,
    routes: [u32; 2],
    context: Context<'a>,
}

impl<'a> Host<'a> {
    /// Creates the view of a flow's hosts. `routes` are the places in the table of routes at which the routes from the
    /// client and from the server begin.
    #[inline]
    pub fn new(context: Context<'a>, flow: u32, stop: Instant, routes: [u32; 2]) -> Self {
        Self { now: context.now, flow, stop, routes, context }
    }

    /// Sends a packet from the client.
    #[inline]
    pub fn send(&mut self, mut packet: Segment) {
        (packet.cursor, packet.at) = (self.routes[0], self.now);
        self.context.act(Action::Send(packet));
    }

    /// Sends a packet from the server.
    pub fn answer(&mut self, mut packet: Segment) {
        (packet.cursor, packet.at) = (self.routes[1], self.now);
        self.context.act(Action::Send(packet));
    }

    /// Pushes any other action.
    pub fn act(&mut self, action: Action) {
        self.context.act(action);
    }
}
