//! Connections that sessions open and close while the run goes on.
//!
//! Each has a number of its own, so that every queue sees a new flow, and two timers. It travels between the hosts of the
//! flow that opened it. Numbers of connections that are over rest as long as TIME-WAIT does on Linux before they are used
//! again: until then a stray segment finds no connection, and memory is bounded by what is open and what was opened in the last
//! minute.

use super::action::{Opening, Request};
use crate::segment::Segment;
use crate::tcp::{Counters, Endpoint, Role, State, TcpConfig};
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::units::{Instant, Rate, Span};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How long the number of a connection is not used again.
const TIME_WAIT: Span = Span::from_secs(60);

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    client: Endpoint,
    server: Endpoint,
    /// The flow that opened it.
    pub owner: u32,
    /// Bytes of the transfer under way, and when it began.
    size: u64,
    began: Instant,
    /// What the server will have got at its end; `u64::MAX` if no transfer is under way.
    until: u64,
    /// Bytes that were reported as delivered.
    reported: u64,
}

/// What a segment brought to the server of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes delivered.
    pub delivered: u64,
    /// A transfer that is complete: its size, and when it began.
    pub complete: Option<(u64, Instant)>,
}

/// What is left of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remains {
    /// The flow that opened it.
    pub owner: u32,
    /// What its client counted.
    pub counters: Counters,
    /// A transfer was under way.
    pub unfinished: bool,
}

impl Connection {
    fn new(opening: Opening, tcp: &Arc<TcpConfig>, id: u32, now: Instant) -> Self {
        let end = |role| Endpoint::new(tcp.clone(), id, role, opening.iss[role as usize]);
        let (mut client, server) = (end(Role::Client), end(Role::Server));
        client.open();
        Self { client, server, owner: opening.flow, size: 0, began: now, until: u64::MAX, reported: 0 }
    }

    /// One of the ends.
    pub fn end(&mut self, side: Role) -> &mut Endpoint {
        match side {
            Role::Client => &mut self.client,
            Role::Server => &mut self.server,
        }
    }

    fn write(&mut self, request: Request, now: Instant) {
        self.client.write(request.size);
        (self.size, self.began) = (request.size, now);
        self.until = self.server.delivered() + request.size;
        if request.last {
            self.client.close();
        }
    }

    /// A segment arrives at its end; the round trip time that the client measured by it, if it did.
    pub fn receive(&mut self, packet: &Segment, now: Instant) -> Option<Span> {
        let side = Role::receiver_of(packet);
        let end = self.end(side);
        end.on_segment(packet, now);
        if side == Role::Client { end.take_rtt_sample() } else { None }
    }

    /// What the server got since it was last asked.
    pub fn progress(&mut self) -> Progress {
        let total = self.server.delivered();
        let delivered = total - std::mem::replace(&mut self.reported, total);
        let is_complete = total >= self.until;
        if is_complete {
            self.until = u64::MAX;
        }
        Progress { delivered, complete: is_complete.then_some((self.size, self.began)) }
    }

    fn is_over(&self) -> bool {
        let (client, server) = (&self.client, &self.server);
        // Once one side has given up, the other may wait for ever: a reset can be lost.
        let given_up = client.state() == State::Closed || server.state() == State::Closed && client.all_acked();
        given_up || client.is_done() && server.is_done()
    }
}

/// All connections that are open, by their numbers, and what queues are told of new ones.
#[derive(Debug, Default)]
pub struct Connections {
    open: Vec<Option<Box<Connection>>>,
    /// Numbers not in use, and since when.
    resting: VecDeque<(Instant, u32)>,
    /// The classes of flows that have one.
    classes: BTreeMap<u32, u32>,
    /// The node of each flow; empty in a run without nodes.
    nodes: Vec<u32>,
}

impl Connections {
    /// Opens none yet; the connections of a flow will be of its class and of its node.
    pub fn new(classes: BTreeMap<u32, u32>, nodes: Vec<u32>) -> Self {
        Self { classes, nodes, ..Self::default() }
    }

    /// A number for a new connection.
    pub fn take_number(&mut self, now: Instant) -> u32 {
        if let Some((since, number)) = self.resting.front().copied()
            && since + TIME_WAIT <= now
        {
            self.resting.pop_front();
            return number;
        }
        self.open.push(None);
        self.open.len() as u32 - 1
    }

    /// Opens the connection of a number that was taken; its packets carry `id`.
    pub fn open(&mut self, number: u32, id: u32, opening: Opening, tcp: &Arc<TcpConfig>, now: Instant) {
        self.open[number as usize] = Some(Box::new(Connection::new(opening, tcp, id, now)));
    }

    /// What disciplines with classes or nodes are told of a new connection of a flow, whose packets carry `id`.
    pub fn facts(&self, id: u32, flow: u32) -> impl Iterator<Item = Fact> + Clone + use<> {
        let class = self.classes.get(&flow).map(|class| Fact::Class { flow: FlowId(id), class: *class });
        let node = self.nodes.get(flow as usize).map(|node| Fact::Owner { flow: FlowId(id), node: NodeId(*node) });
        class.into_iter().chain(node)
    }

    /// Gives an open connection something to send.
    pub fn write(&mut self, number: u32, request: Request, now: Instant) {
        if let Some(connection) = self.get_mut(number) {
            connection.write(request, now);
        }
    }

    /// The client has no more to send.
    pub fn close(&mut self, number: u32) {
        if let Some(connection) = self.get_mut(number) {
            connection.client.close();
        }
    }

    /// An open connection.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Connection> {
        self.open.get_mut(number as usize)?.as_deref_mut()
    }

    /// Forgets a connection that both sides closed, or one gave up.
    pub fn release_if_over(&mut self, number: u32, now: Instant) -> Option<Remains> {
        let connection = self.open.get_mut(number as usize)?.take_if(|connection| connection.is_over())?;
        self.resting.push_back((now, number));
        let unfinished = connection.until != u64::MAX;
        Some(Remains { owner: connection.owner, counters: connection.client.counters(), unfinished })
    }

    /// The part of a budget that a connection may use; true if it may now send what it might not before.
    pub fn set_budget(&mut self, number: u32, budget: Option<Rate>) -> bool {
        self.get_mut(number).is_some_and(|connection| connection.client.set_budget(budget))
    }

    /// As [`Endpoint::path_changed`].
    pub fn path_changed(&mut self, number: u32, now: Instant) {
        if let Some(connection) = self.get_mut(number) {
            connection.client.path_changed(now);
        }
    }

    /// How many numbers there are, in use or resting.
    pub fn numbers(&self) -> usize {
        self.open.len()
    }

    /// The flow that opened an open connection.
    pub fn owner(&self, number: u32) -> Option<u32> {
        self.open.get(number as usize)?.as_ref().map(|connection| connection.owner)
    }

    /// The numbers of the open connections of a flow.
    pub fn of_flow(&self, flow: u32) -> Vec<u32> {
        let open = (0..).zip(&self.open);
        open.filter(|(_, slot)| slot.as_ref().is_some_and(|c| c.owner == flow)).map(|(number, _)| number).collect()
    }

    /// Adds what open connections counted to the counters of their flows.
    pub fn add_counters(&self, of_flows: &mut [Counters]) {
        for connection in self.open.iter().flatten() {
            of_flows[connection.owner as usize] += connection.client.counters();
        }
    }
}
