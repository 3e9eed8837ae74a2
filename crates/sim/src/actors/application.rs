//! Applications: what a flow's hosts do, behind one trait.
//!
//! A flow has one application, which is both its ends. It has one event: when it wakes. It is made of the settings of its
//! kind ([`Traffic`](super::Traffic)).

use super::Measures;
use super::action::{Action, Context};
use crate::segment::Segment;
use crate::tcp::{Counters, TcpConfig};
use penstock_core::rng::Streams;
use penstock_core::units::Instant;
use std::fmt::Debug;
use std::sync::Arc;

/// What happened to a connection that an application opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It has this number.
    Opened(u32),
    /// So many more bytes reached the server.
    Delivered(u64),
    /// A transfer is complete.
    Complete {
        /// Its bytes.
        size: u64,
        /// When it began.
        began: Instant,
    },
    /// It is over.
    Over {
        /// Its number.
        number: u32,
        /// What it counted.
        counters: Counters,
        /// A transfer was under way: the connection was given up.
        unfinished: bool,
    },
}

/// The application of a flow.
pub trait Application: Debug + Send {
    /// It begins; when it wakes next, if it does.
    fn start(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        self.wake(host)
    }

    /// The time it asked for has come; when it wakes next, if it does.
    fn wake(&mut self, host: &mut Host<'_>) -> Option<Instant>;

    /// The flow stops. Told in place of [`Application::wake`], the first time this is due at or after the flow's end.
    fn stop(&mut self, _: &mut Host<'_>) {}

    /// A packet of the flow, or of a connection that it forged, arrived at one of its ends.
    fn receive(&mut self, packet: &Segment, host: &mut Host<'_>);

    /// A connection that it opened has something to tell; when the application wakes next, if that changes.
    fn hear(&mut self, _: News, _: &mut Host<'_>) -> Option<Instant> {
        None
    }

    /// Payload bytes delivered.
    fn delivered(&self) -> u64;

    /// Congestion control; empty without TCP.
    fn cc(&self) -> &str {
        ""
    }

    /// Counters of its connections that are over, or of its only one.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// What it measured, for the summary of its flow.
    fn measures(&self) -> Measures {
        Measures::None
    }

    /// TCP of the connections that it opens, if it does. Each of them is a socket of its own for `[cooperation]`; the flow
    /// itself is none.
    fn connects_by(&self) -> Option<&Arc<TcpConfig>> {
        None
    }

    /// It sends packets of connections that do not exist; each such flow has [`crate::numbers::FORGED`] numbers for them.
    fn forges(&self) -> bool {
        false
    }

    /// Bytes of state, on the heap or not.
    fn bytes(&self) -> usize;
}

/// What an application is made with.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The number of its flow.
    pub flow: u32,
    /// TCP of the flow.
    pub tcp: &'a Arc<TcpConfig>,
    /// Random numbers.
    pub streams: &'a Streams,
    /// The first of the numbers that it has for forged connections, if it needs some.
    pub forged: u32,
}

impl Setup<'_> {
    /// A random stream of the flow, named after what it decides.
    pub fn stream(&self, what: &str) -> penstock_core::rng::Rng {
        self.streams.get(&format!("flow{}/{what}", self.flow))
    }
}

/// The hosts of a flow, as its application sees them.
#[derive(Debug)]
pub struct Host<'a> {
    /// Simulated time.
    pub now: Instant,
    /// The number of the flow.
    pub flow: u32,
    /// When the flow stops; `Instant::MAX` is never.
    pub stop: Instant,
    routes: [u32; 2],
    context: Context<'a>,
}

impl<'a> Host<'a> {
    /// Opens the hosts of a flow, with the first entries of their routes: from the client, from the server.
    #[inline]
    pub fn new(context: Context<'a>, flow: u32, stop: Instant, routes: [u32; 2]) -> Self {
        Self { now: context.now, flow, stop, routes, context }
    }

    /// The client sends a packet.
    #[inline]
    pub fn send(&mut self, mut packet: Segment) {
        (packet.cursor, packet.at) = (self.routes[0], self.now);
        self.context.act(Action::Send(packet));
    }

    /// The server sends a packet.
    pub fn answer(&mut self, mut packet: Segment) {
        (packet.cursor, packet.at) = (self.routes[1], self.now);
        self.context.act(Action::Send(packet));
    }

    /// Does something else.
    pub fn act(&mut self, action: Action) {
        self.context.act(action);
    }
}
