//! The interface between actors and a run: what actors see, and the actions by which they change it.
//!
//! An actor changes its own state and nothing else. For every other effect it pushes an [`Action`], and the loop
//! ([`crate::run`]) applies the actions one after another, in order. Actions that other actors push while one action is
//! applied come before the next one.

use crate::link::Alteration;
use crate::numbers::{LinkDir, Owner, Source};
use crate::segment::Segment;
use crate::world::World;
use penstock_core::fact::Fact;
use penstock_core::units::{Instant, Rate};

/// A TCP connection that sends for an application: the flow's own connection, or one that its session opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Socket {
    /// The connection of the flow with this number, which lasts as long as the flow.
    Flow(u32),
    /// The connection with this number, which a session opened.
    Connection(u32),
}

/// Data that a session gives to a connection to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Number of bytes.
    pub size: u64,
    /// True if the connection is closed after these bytes.
    pub last: bool,
}

/// The settings of a new connection, besides the TCP settings of its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// Number of the flow whose session opens the connection.
    pub flow: u32,
    /// Initial sequence numbers: the client's, then the server's.
    pub iss: [u32; 2],
}

/// Whose packets are concerned when a host moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mover {
    /// The packets of a flow and of its connections.
    Flow(u32),
    /// The messages between a node and its gateway.
    Node(u32),
}

/// An action: an effect that an actor asks the loop for.
#[derive(Debug, Clone, Copy)]
pub enum Action {
    /// Gives a packet to the link at its cursor in the table of routes.
    Send(Segment),
    /// Sets the event of a source to this time; a time in the past means now.
    Await(Source, Instant),
    /// Lets the client of a connection send what it may send now.
    Pump(Socket),
    /// Gives the client of a connection a part of its node's budget, or none (`None`), and lets it send what it may
    /// send now.
    Budget(Socket, Option<Rate>),
    /// Tells the client of a connection that its path, and with it the round trip time, has changed.
    PathChanged(Socket),
    /// Opens a connection for a session and gives it a request to send.
    Open(Opening, Request),
    /// Gives an open connection a request to send.
    Write(u32, Request),
    /// Closes an open connection from the client's side.
    Close(u32),
    /// Changes a property of a link.
    Alter(LinkDir, Alteration),
    /// Sets the probabilities of loss of the stations behind a link to those at this index of the list in
    /// [`super::changes`].
    Stations(LinkDir, usize),
    /// Sets the next event of a link anew, after all its alterations at this time.
    Review(LinkDir),
    /// Tells the discipline of a link a fact.
    Tell(LinkDir, Fact),
    /// Changes the route by which one end of a flow, of a node or of its gateway sends.
    Reroute {
        /// Whose packets are concerned.
        who: Mover,
        /// The end: 0 for the client, 1 for the server or the gateway.
        end: usize,
        /// Cursor at which the new route begins in the table of routes.
        route: u32,
    },
    /// A host leaves its cell: packets in the queues of the cell's links are taken out and offered to these links
    /// again, which diverts them.
    Leave {
        /// Whose packets are concerned.
        who: Mover,
        /// The links of the cell: from the host, then to the host.
        cell: [LinkDir; 2],
        /// True if packets in flight on the links of the cell are lost.
        loses_air: bool,
    },
    /// Tells the gateway that the client of a node attached to another cell.
    Attached {
        /// Number of the node.
        node: u32,
        /// The link of the old cell, in the direction from the host.
        old: LinkDir,
        /// The link of the new cell, in the direction from the host.
        new: LinkDir,
    },
}

/// What an actor sees of a run, and where it pushes its actions.
#[derive(Debug)]
pub struct Context<'a> {
    /// Simulated time.
    pub now: Instant,
    world: &'a World,
    actions: &'a mut Vec<Action>,
}

impl<'a> Context<'a> {
    /// Creates a view of the current state of the world.
    #[inline]
    pub fn new(world: &'a World, actions: &'a mut Vec<Action>) -> Self {
        Self { now: world.now, world, actions }
    }

    /// Pushes an action, to be applied after those pushed before.
    #[inline]
    pub fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Returns the current rate of a link.
    pub fn rate(&self, link: LinkDir) -> Rate {
        self.world.rate(link)
    }

    /// Returns the place of the link to which a route leads at this cursor.
    pub fn hop(&self, cursor: u32) -> u32 {
        self.world.hop(cursor)
    }

    /// True if a link is on the route that begins at this cursor.
    pub fn crosses(&self, cursor: u32, link: LinkDir) -> bool {
        self.world.crosses(cursor, link)
    }

    /// Returns the number that packets of an owner carry.
    pub fn number(&self, owner: Owner) -> u32 {
        self.world.number(owner)
    }
}
