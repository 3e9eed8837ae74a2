//! What actors see of a run and what they do to it.
//!
//! An actor changes its own state and nothing else. What it wants done to others it pushes as [`Action`]s, which the loop
//! ([`crate::run`]) applies one after another, in their order. What an action makes other actors do is applied before the
//! next one.

use crate::link::Alteration;
use crate::numbers::{LinkDir, Owner, Source};
use crate::segment::Segment;
use crate::world::World;
use penstock_core::fact::Fact;
use penstock_core::units::{Instant, Rate};

/// A TCP connection that sends for an application: a flow's own, or one that its session opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Socket {
    /// The connection of a flow that has one for as long as it lasts.
    Flow(u32),
    /// A connection opened by a session.
    Connection(u32),
}

/// What a session gives to a connection to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Bytes.
    pub size: u64,
    /// The connection is closed after them.
    pub last: bool,
}

/// What a new connection is made of, besides the TCP of its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The flow whose session opens it.
    pub flow: u32,
    /// Initial sequence numbers: the client's, the server's.
    pub iss: [u32; 2],
}

/// Whose packets a host's are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mover {
    /// Those of a flow and its connections.
    Flow(u32),
    /// What a node and its gateway say to each other.
    Node(u32),
}

/// What an actor wants done.
#[derive(Debug, Clone, Copy)]
pub enum Action {
    /// A packet goes to the link at its cursor in the table of routes.
    Send(Segment),
    /// The event of a source is due at this time, or now if that has passed.
    Await(Source, Instant),
    /// The client of a connection sends what it has.
    Pump(Socket),
    /// The client of a connection gets a part of its node's budget, or none any more, and sends what it may send now.
    Budget(Socket, Option<Rate>),
    /// The path of a connection is another one, and so is its round trip time.
    PathChanged(Socket),
    /// A session opens a connection and gives it something to send.
    Open(Opening, Request),
    /// A session gives an open connection something to send.
    Write(u32, Request),
    /// A session closes an open connection.
    Close(u32),
    /// Something about a link changes.
    Alter(LinkDir, Alteration),
    /// The stations behind a link lose the shares in this place of the list in [`super::changes`].
    Stations(LinkDir, usize),
    /// All alterations of a link at this time are made: its next event may be another.
    Review(LinkDir),
    /// The discipline of a link is told a fact.
    Tell(LinkDir, Fact),
    /// One end of a flow, or of what a node and its gateway say to each other, sends by another route.
    Reroute {
        /// Whose packets.
        who: Mover,
        /// The end: 0 is the client, 1 the server or the gateway.
        end: usize,
        /// Where the route begins in the table of routes.
        route: u32,
    },
    /// A host left its cell: what waits before its links there comes to them once more, and so goes elsewhere.
    Leave {
        /// Whose packets.
        who: Mover,
        /// The links of the cell: from the host, to it.
        cell: [LinkDir; 2],
        /// What is in the air is lost.
        loses_air: bool,
    },
    /// The client of a node attached to another cell.
    Attached {
        /// The node.
        node: u32,
        /// The link of the old cell, from the host.
        old: LinkDir,
        /// The link of the new cell, from the host.
        new: LinkDir,
    },
}

/// What an actor sees, and where it puts its actions.
#[derive(Debug)]
pub struct Context<'a> {
    /// Simulated time.
    pub now: Instant,
    world: &'a World,
    actions: &'a mut Vec<Action>,
}

impl<'a> Context<'a> {
    /// Opens a view of the world as it stands.
    #[inline]
    pub fn new(world: &'a World, actions: &'a mut Vec<Action>) -> Self {
        Self { now: world.now, world, actions }
    }

    /// Does something, after what was done before.
    #[inline]
    pub fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// The rate of a link.
    pub fn rate(&self, link: LinkDir) -> Rate {
        self.world.rate(link)
    }

    /// The place of the link to which a route leads at this cursor.
    pub fn hop(&self, cursor: u32) -> u32 {
        self.world.hop(cursor)
    }

    /// True if a link is on the route that begins at a cursor.
    pub fn crosses(&self, cursor: u32, link: LinkDir) -> bool {
        self.world.crosses(cursor, link)
    }

    /// The number that packets of an owner carry.
    pub fn number(&self, owner: Owner) -> u32 {
        self.world.number(owner)
    }
}
