//! Transport stacks that somebody else wrote, as a simulation hosts them: both ends of one connection, each without a
//! socket, a clock and random numbers of its own.
//!
//! A stack exchanges datagrams with its peer and bytes with its application. It is told the time with each call and says
//! when it wants to be woken. After any call it is asked for datagrams until it has none. What the bytes are is the stack's
//! affair; they are counted here, and a stack that is asked to write makes them up.

use crate::packet::Ecn;
use crate::units::{Instant, Span};
use std::fmt::{self, Debug};
use std::sync::Arc;

/// Which end of a connection a stack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end that opens the connection and sends data.
    Client,
    /// The end that accepts the connection and reads data.
    Server,
}

/// What a stack tells of its connection. A figure that a stack does not know stays at its default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// True once the handshake is complete.
    pub connected: bool,
    /// Congestion window in bytes.
    pub window: u64,
    /// Smoothed round trip time.
    pub round_trip: Option<Span>,
    /// Number of datagrams that the stack believes lost.
    pub lost: u64,
}

/// One end of a connection.
pub trait Stack: Debug + Send {
    /// Takes a datagram from the network, with the ECN codepoint with which it arrived.
    fn receive(&mut self, datagram: &[u8], ecn: Ecn, now: Instant);

    /// Writes the next datagram to be sent into the empty `datagram` and returns its ECN codepoint; `None` if there is
    /// nothing to send now. It has 1 to 65,000 bytes.
    fn transmit(&mut self, datagram: &mut Vec<u8>, now: Instant) -> Option<Ecn>;

    /// Returns when the stack wants to be woken; `None` if it waits for a datagram.
    fn deadline(&mut self) -> Option<Instant>;

    /// Acts because its deadline has come.
    fn wake(&mut self, now: Instant);

    /// Takes up to `bytes` of new data for the peer; returns how many it took. It takes fewer if its buffers are full or the
    /// connection is not open, and is offered the rest again after its next call.
    fn write(&mut self, bytes: u64, now: Instant) -> u64;

    /// Learns that all data has been written.
    fn finish(&mut self, now: Instant);

    /// Returns the number of bytes that arrived in order from the peer since the last call.
    fn read(&mut self, now: Instant) -> u64;

    /// Closes the connection, whatever is still on the way.
    fn close(&mut self, now: Instant);

    /// Returns what the stack tells of its connection.
    fn figures(&self) -> Figures;

    /// Returns why the connection ended, in words of the stack such as `timed out`; `None` while it is open, or if an
    /// application closed it.
    fn ended(&self) -> Option<&str> {
        None
    }

    /// Returns why the stack is broken, as a sentence without a full stop; the run ends with it. A connection that ends is
    /// no reason.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Returns the number of bytes of its state, as far as they are known.
    fn bytes(&self) -> usize {
        0
    }
}

/// What is given to a new connection.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Number of the connection in its run.
    pub number: u32,
    /// Where all random numbers and keys of the connection come from: equal seeds, equal bytes.
    pub seed: [u8; 32],
}

/// Makes the connections of a stack.
pub trait MakeStack: Debug + Send + Sync {
    /// Makes both ends of a connection: the client, which begins the handshake when it is first asked for a datagram, and
    /// the server.
    ///
    /// # Errors
    /// Returns a sentence without a full stop that says why there is no connection.
    fn make(&self, setup: &Setup) -> Result<[Box<dyn Stack>; 2], String>;

    /// Returns the name and version of the stack as it calls itself, such as `quinn-proto 0.11.19`.
    fn version(&self) -> String;
}

/// A stack that a library found.
#[derive(Clone)]
pub struct Config {
    name: Arc<str>,
    make: Arc<dyn MakeStack>,
}

impl Config {
    /// Takes a stack with the name by which it was found.
    pub fn new(name: &str, make: Arc<dyn MakeStack>) -> Self {
        Self { name: name.into(), make }
    }

    /// Returns the name by which it was found.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns what makes its connections.
    pub fn make(&self) -> &dyn MakeStack {
        &*self.make
    }
}

impl Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stack").field(&self.name).finish()
    }
}

/// Stacks are equal if their names are: a scenario names its stacks and knows no more of them.
impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
