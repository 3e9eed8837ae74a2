//! A connection of a transport stack that somebody else wrote ([`penstock_core::stack`]): the stack decides what is sent
//! when, and the network carries its datagrams, which it gets back with their bytes, their order and their marks as they
//! come.
//!
//! The client sends `size` bytes, or as many as it can. A flow that is stopped closes its connection as an application
//! does that ends.

use super::action::Action;
use super::application::{Application, Host, Setup};
use super::settings::{FlowFacts, Settings, file_size};
use super::{AnyApplication, Measures, media};
use crate::numbers::Source;
use crate::quantiles::{MISSING, Quantiles, Times, round, same};
use crate::segment::{Payload, Segment};
use crate::tcp::Role;
use flight::Flight;
use penstock_core::config::ConfigError;
use penstock_core::packet::Packet;
use penstock_core::stack::{self, Config, Figures, Side, Stack};
use penstock_core::units::{Bytes, Instant, Span};
use serde::{Deserialize, Serialize};

mod flight;

/// A stack that sends more datagrams than this at one time, without a wait, is taken as broken.
const MOST_AT_ONCE: u32 = 100_000;
/// A stack that asks to be woken this often within a millisecond is taken as broken.
const MOST_WAKES: u32 = 10_000;
/// What an endless flow offers its stack.
const ENDLESS: u64 = 1 << 62;

/// The settings of `stack`: whose, and how much is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Hosted {
    /// The stack.
    pub stack: Config,
    /// Number of bytes to send; `None` for a flow without an end.
    pub size: Option<Bytes>,
}

/// The keys of `kind = "stack"`.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Keys {
    /// Name of the stack, such as `quinn:cubic`.
    stack: String,
    /// Number of bytes to send; without it the flow has no end.
    size: Option<Bytes>,
}

impl Settings for Hosted {
    type Keys = Keys;
    const NEEDED: &'static [&'static str] = &["stack"];

    fn read(keys: Keys, facts: &FlowFacts<'_>) -> Result<Self, ConfigError> {
        let refused = |message: String| ConfigError::new("stack", message);
        let found = facts.library.stack(&keys.stack).ok_or_else(|| {
            refused(format!("there is no stack {:?} here; `penstock docs stacks` says how one is hosted", keys.stack))
        })?;
        let size = keys.size.map(|size| file_size("size", size)).transpose()?;
        Ok(Self { stack: found.map_err(|e| refused(e.to_string()))?, size })
    }
    fn keys(&self) -> Keys {
        Keys { stack: self.stack.name().to_string(), size: self.size }
    }
}

impl Hosted {
    /// Makes both ends of the connection. If there is none, the run ends with the reason.
    pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
        let mut rng = setup.stream("stack");
        let mut seed = [0; 32];
        seed.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&rng.bits().to_le_bytes()));
        let (ends, fault) = match self.stack.make().make(&stack::Setup { number: setup.flow, seed }) {
            Ok([client, server]) => (vec![End::new(client, Side::Client), End::new(server, Side::Server)], None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        let left = self.size.map_or(ENDLESS, Bytes::get);
        let (name, version) = (self.stack.name().to_string(), self.stack.make().version());
        AnyApplication::other(Connection {
            name,
            version,
            size: self.size.map(Bytes::get),
            left,
            finished: false,
            closed: false,
            ends,
            fault,
            delivered: 0,
            began: None,
            connected: None,
            last_wake: (0, 0),
            datagram: Vec::new(),
            delay: Times::default(),
            figures: Figures::default(),
            round_trip: None,
        })
    }
}

/// One end, and its datagrams that are in the network.
#[derive(Debug)]
struct End {
    stack: Box<dyn Stack>,
    side: Side,
    sent: u64,
    bytes_sent: u64,
    received: u64,
    flight: Flight,
    /// When the stack wants to be woken.
    deadline: Option<Instant>,
}

impl End {
    fn new(stack: Box<dyn Stack>, side: Side) -> Self {
        Self { stack, side, sent: 0, bytes_sent: 0, received: 0, flight: Flight::default(), deadline: None }
    }

    /// Sends all that the stack has for the network; returns a sentence if it does not end, or a datagram is none.
    fn pump(&mut self, datagram: &mut Vec<u8>, host: &mut Host<'_>) -> Result<(), String> {
        for _ in 0..MOST_AT_ONCE {
            datagram.clear();
            let Some(ecn) = self.stack.transmit(datagram, host.now) else {
                self.deadline = self.stack.deadline();
                return Ok(());
            };
            let len = u16::try_from(datagram.len())
                .ok()
                .filter(|len| (1..=65_000).contains(len))
                .ok_or_else(|| format!("it sent a datagram of {} bytes; a datagram has 1 to 65,000", datagram.len()))?;
            let seq = self.flight.send(datagram);
            let mut packet = Segment::udp(host.flow, self.side == Side::Client, Payload { seq, len });
            packet.set_ecn(ecn);
            media::stamp(&mut packet, host.now);
            self.sent += 1;
            self.bytes_sent += u64::from(len);
            match self.side {
                Side::Client => host.send(packet),
                Side::Server => host.answer(packet),
            }
        }
        Err(format!("it sent {MOST_AT_ONCE} datagrams at one time and had more; a stack paces or has a window"))
    }
}

/// A hosted connection.
#[derive(Debug)]
struct Connection {
    name: String,
    version: String,
    size: Option<u64>,
    /// Bytes that the stack of the client has not taken.
    left: u64,
    finished: bool,
    closed: bool,
    /// The client and the server; empty if they could not be made.
    ends: Vec<End>,
    fault: Option<String>,
    delivered: u64,
    /// When the flow began and when its handshake was complete.
    began: Option<Instant>,
    connected: Option<Instant>,
    /// The millisecond in which it was woken last, and how often in it.
    last_wake: (u64, u32),
    /// Memory for the datagram that is being moved.
    datagram: Vec<u8>,
    /// One-way delays of the client's datagrams.
    delay: Times,
    /// What the client's stack last told.
    figures: Figures,
    /// Its round trip time, if that is new.
    round_trip: Option<Span>,
}

/// What a hosted connection counted.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct StackSummary {
    /// Name and version of the stack as it calls itself.
    pub version: String,
    /// Time in milliseconds until its handshake was complete; missing if it was not.
    #[schemars(with = "Option<f64>")]
    pub handshake_ms: f64,
    /// Number of datagrams that the client sent.
    pub sent: u64,
    /// Bytes of these datagrams, with the headers of the stack and without those of UDP and IP.
    pub sent_bytes: u64,
    /// Number of these datagrams that the server received; one that came twice counts twice.
    pub received: u64,
    /// Number of datagrams that the client's stack believed lost.
    pub believed_lost: u64,
    /// Number of datagrams that the server sent.
    pub answers: u64,
    /// Why the connection ended, in the words of the stack; absent if it has not, or if the flow was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// One-way delays of the client's datagrams in milliseconds.
    pub delay_ms: Quantiles,
}

impl PartialEq for StackSummary {
    fn eq(&self, other: &Self) -> bool {
        let counts = |one: &Self| [one.sent, one.sent_bytes, one.received, one.believed_lost, one.answers];
        (&self.version, &self.ended) == (&other.version, &other.ended)
            && same(self.handshake_ms, other.handshake_ms)
            && counts(self) == counts(other)
            && self.delay_ms == other.delay_ms
    }
}

impl Connection {
    /// Moves what one end can move after something happened to it, and asks to be woken when an end wants it.
    fn turn(&mut self, side: Side, host: &mut Host<'_>) {
        if self.fault.is_some() {
            return;
        }
        match side {
            Side::Client => self.write(host.now),
            Side::Server => self.take(host.now),
        }
        let Some(end) = self.ends.get_mut(side as usize) else { return };
        let pumped = end.pump(&mut self.datagram, host);
        let failed = pumped.err().or_else(|| end.stack.failure().map(str::to_owned));
        self.fault = failed.or(self.fault.take());
        if side == Side::Client {
            self.look(host.now);
        }
        if let Some(at) = self.next_wake(host) {
            host.act(Action::Await(Source::Application(host.flow), at));
        }
    }

    /// Gives the client's stack what it takes.
    fn write(&mut self, now: Instant) {
        let Some(client) = self.ends.first_mut().filter(|_| !self.closed && !self.finished) else { return };
        if self.left > 0 {
            self.left -= client.stack.write(self.left, now).min(self.left);
        }
        if self.left == 0 && self.size.is_some() {
            client.stack.finish(now);
            self.finished = true;
        }
    }

    /// Takes what has arrived at the server.
    fn take(&mut self, now: Instant) {
        if let Some(server) = self.ends.get_mut(1) {
            self.delivered = self.delivered.saturating_add(server.stack.read(now));
        }
        let written = self.size.unwrap_or(ENDLESS) - self.left;
        if self.delivered > written {
            self.fault = Some(format!("its server read {} bytes, and its client wrote {written}", self.delivered));
        }
    }

    /// Notes what the client's stack tells of its connection.
    fn look(&mut self, now: Instant) {
        let Some(client) = self.ends.first() else { return };
        let figures = client.stack.figures();
        if figures.connected && self.connected.is_none() {
            self.connected = Some(now);
        }
        if figures.round_trip != self.figures.round_trip {
            self.round_trip = figures.round_trip;
        }
        self.figures = figures;
    }

    /// Returns when one of the stacks wants to be woken, at the latest when the flow stops.
    fn next_wake(&self, host: &Host<'_>) -> Option<Instant> {
        let wanted = self.ends.iter().filter_map(|end| end.deadline).min();
        let stop = Some(host.stop).filter(|stop| *stop > host.now && *stop != Instant::MAX);
        wanted.into_iter().chain(stop).min().map(|at| at.max(host.now))
    }

    /// Notes a wake-up; returns false if there were too many in this millisecond.
    fn may_wake(&mut self, now: Instant) -> bool {
        let (last, count) = self.last_wake;
        let millisecond = now.as_nanos() / 1_000_000;
        self.last_wake = (millisecond, if last == millisecond { count + 1 } else { 0 });
        self.last_wake.1 < MOST_WAKES
    }

    fn wake_ends(&mut self, host: &mut Host<'_>) {
        if !self.may_wake(host.now) {
            self.fault = Some(format!(
                "it asked {MOST_WAKES} times to be woken within a millisecond; a deadline moves on when it is served"
            ));
            return;
        }
        for side in [Side::Client, Side::Server] {
            let Some(end) = self.ends.get_mut(side as usize) else { return };
            if end.deadline.is_some_and(|at| at <= host.now) {
                end.stack.wake(host.now);
                self.turn(side, host);
            }
        }
    }

    fn summary(&self) -> StackSummary {
        let figures = |end: usize| self.ends.get(end).map(|end| (end.sent, end.bytes_sent, end.received));
        let (sent, sent_bytes, _) = figures(0).unwrap_or_default();
        let (answers, _, received) = figures(1).unwrap_or_default();
        let took = self.began.zip(self.connected).map(|(began, connected)| connected.since(began));
        StackSummary {
            version: self.version.clone(),
            handshake_ms: took.map_or(MISSING, |took| round(took.as_millis_f64())),
            sent,
            sent_bytes,
            received,
            believed_lost: self.figures.lost,
            answers,
            ended: self.ends.iter().filter(|_| !self.closed).find_map(|end| end.stack.ended()).map(str::to_owned),
            delay_ms: self.delay.quantiles_ms(),
        }
    }
}

impl Application for Connection {
    fn start(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        if self.began.is_some() {
            return self.wake(host); // it asked to be woken at the time at which the flow began
        }
        self.began = Some(host.now);
        self.turn(Side::Client, host);
        self.turn(Side::Server, host);
        None
    }

    fn wake(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        self.wake_ends(host);
        None
    }

    fn stop(&mut self, host: &mut Host<'_>) {
        if !self.closed {
            self.closed = true;
            self.ends.iter_mut().take(1).for_each(|client| client.stack.close(host.now));
            self.turn(Side::Client, host);
        }
        self.wake_ends(host);
    }

    fn receive(&mut self, packet: &Segment, host: &mut Host<'_>) {
        let [client, server] = &mut self.ends[..] else { return };
        let (from, to) = match Role::receiver_of(packet) {
            Role::Server => (client, server),
            Role::Client => (server, client),
        };
        if !from.flight.arrive(packet.seq, &mut self.datagram) {
            return;
        }
        to.received += 1;
        if to.side == Side::Server {
            self.delay.record(host.now.since(media::sent_at(packet)));
        }
        let side = to.side;
        to.stack.receive(&self.datagram, packet.ecn(), host.now);
        self.turn(side, host);
    }

    fn delivered(&self) -> u64 {
        self.delivered
    }

    fn cc(&self) -> &str {
        &self.name
    }

    fn fills_a_window(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        self.figures.window
    }

    fn round_trip(&mut self) -> Option<Span> {
        self.round_trip.take()
    }

    fn is_complete(&self) -> bool {
        self.size.is_some_and(|size| self.delivered >= size)
    }

    fn fault(&self) -> Option<String> {
        self.fault.as_ref().map(|reason| format!("{}: {reason}", self.name))
    }

    fn measures(&self) -> Measures {
        Measures::Stack(self.summary())
    }

    fn bytes(&self) -> usize {
        let ends = self.ends.iter().map(|end| size_of::<End>() + end.stack.bytes() + end.flight.bytes());
        size_of::<Self>() + ends.sum::<usize>() + self.delay.digest.heap_bytes()
    }
}
