//! Connections that sessions open and close during a run.
//!
//! Each connection has a number of its own, so that every queue sees a new flow, and two timers. Its segments travel
//! between the hosts of the flow that opened it. The number of a connection that has ended is not used again for the
//! time of TIME-WAIT on Linux: until then a stray segment finds no connection. Memory is bounded by the connections
//! that are open or were opened in the last minute.

use super::action::{Opening, Request};
use crate::segment::Segment;
use crate::tcp::{Counters, EcnUse, Endpoint, Role, State, TcpConfig};
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::units::{Instant, Rate, Span};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// For how long after the end of a connection its number is not used again.
const TIME_WAIT: Span = Span::from_secs(60);

/// An open connection with both its endpoints.
#[derive(Debug)]
pub struct Connection {
    client: Endpoint,
    server: Endpoint,
    /// Number of the flow that opened it.
    pub owner: u32,
    /// Bytes of the transfer under way.
    size: u64,
    began: Instant,
    /// Number of bytes that the server will have received at the end of the transfer; `u64::MAX` if no transfer is
    /// under way.
    until: u64,
    /// Number of bytes that were reported as delivered.
    reported: u64,
}

/// What the last segments brought to the server of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of bytes delivered.
    pub delivered: u64,
    /// Size in bytes and begin of the transfer which is now complete; `None` if none is.
    pub complete: Option<(u64, Instant)>,
}

/// What remains to be reported of a connection that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remains {
    /// Number of the flow that opened it.
    pub owner: u32,
    /// What its client counted.
    pub counters: Counters,
    /// True if a transfer was under way.
    pub unfinished: bool,
}

impl Connection {
    fn new(opening: Opening, tcp: &Arc<TcpConfig>, id: u32, now: Instant) -> Self {
        let end = |role| Endpoint::new(tcp.clone(), id, role, opening.iss[role as usize]);
        let (mut client, server) = (end(Role::Client), end(Role::Server));
        client.open();
        Self { client, server, owner: opening.flow, size: 0, began: now, until: u64::MAX, reported: 0 }
    }

    /// Returns one of the two endpoints.
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

    /// Takes a segment at the end where it arrives; returns the round trip time that the client measured with it, if it
    /// did.
    pub fn receive(&mut self, packet: &Segment, now: Instant) -> Option<Span> {
        let side = Role::receiver_of(packet);
        let rtt = self.end(side).on_segment(packet, now);
        rtt.filter(|_| side == Role::Client)
    }

    /// Returns what the server received since the last call.
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
        // After one side has given up, the other may wait for ever, because a reset can be lost.
        let given_up = client.state() == State::Closed || server.state() == State::Closed && client.all_acked();
        given_up || client.is_done() && server.is_done()
    }
}

/// The open connections by their numbers, and the facts that queues are told of new ones.
#[derive(Debug, Default)]
pub struct Connections {
    open: Vec<Option<Box<Connection>>>,
    /// Numbers that rest before they are used again, each with the time since when.
    resting: VecDeque<(Instant, u32)>,
    /// The classes of the flows that have one.
    classes: BTreeMap<u32, u32>,
    /// The node of each flow; empty in a run without nodes.
    nodes: Vec<u32>,
    /// Use of ECN by the connections of each flow that have ended; empty in a run without ECN.
    ended: BTreeMap<u32, EcnUse>,
}

impl Connections {
    /// Creates an empty table. A connection will have the class and the node of its flow.
    pub fn new(classes: BTreeMap<u32, u32>, nodes: Vec<u32>) -> Self {
        Self { classes, nodes, ..Self::default() }
    }

    /// Takes a number for a new connection.
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

    /// Opens the connection with a number that was taken; its packets carry `id`.
    pub fn open(&mut self, number: u32, id: u32, opening: Opening, tcp: &Arc<TcpConfig>, now: Instant) {
        self.open[number as usize] = Some(Box::new(Connection::new(opening, tcp, id, now)));
    }

    /// Returns the facts that disciplines with classes or nodes are told of a new connection of a flow, whose packets
    /// carry `id`. Its class is that of the flow, by default the number of the flow, which is no codepoint.
    pub fn facts(&self, id: u32, flow: u32, codepoints: bool) -> impl Iterator<Item = Fact> + use<> {
        let class = self.classes.get(&flow).copied().or((!codepoints).then_some(flow));
        let class = class.map(|class| Fact::Class { flow: FlowId(id), class });
        let node = self.nodes.get(flow as usize).map(|node| Fact::Owner { flow: FlowId(id), node: NodeId(*node) });
        class.into_iter().chain(node)
    }

    /// Gives an open connection a request to send.
    pub fn write(&mut self, number: u32, request: Request, now: Instant) {
        if let Some(connection) = self.get_mut(number) {
            connection.write(request, now);
        }
    }

    /// Closes a connection from the client's side, after all it has to send.
    pub fn close(&mut self, number: u32) {
        if let Some(connection) = self.get_mut(number) {
            connection.client.close();
        }
    }

    /// Returns an open connection; `None` if this number is not in use.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Connection> {
        self.open.get_mut(number as usize)?.as_deref_mut()
    }

    /// Removes a connection which both sides have closed or one side has given up; `None` if it goes on.
    pub fn release_if_over(&mut self, number: u32, now: Instant) -> Option<Remains> {
        let connection = self.open.get_mut(number as usize)?.take_if(|connection| connection.is_over())?;
        self.resting.push_back((now, number));
        let ecn = connection.client.ecn_use();
        if ecn.asked > 0 {
            *self.ended.entry(connection.owner).or_default() += ecn;
        }
        let unfinished = connection.until != u64::MAX;
        Some(Remains { owner: connection.owner, counters: connection.client.counters(), unfinished })
    }

    /// Sets the part of a budget that a connection may use; returns true if the connection may now send what it could
    /// not send before.
    pub fn set_budget(&mut self, number: u32, budget: Option<Rate>) -> bool {
        self.get_mut(number).is_some_and(|connection| connection.client.set_budget(budget))
    }

    /// Calls [`Endpoint::path_changed`] of the client.
    pub fn path_changed(&mut self, number: u32, now: Instant) {
        if let Some(connection) = self.get_mut(number) {
            connection.client.path_changed(now);
        }
    }

    /// Returns how many numbers exist, in use or resting.
    pub fn numbers(&self) -> usize {
        self.open.len()
    }

    /// Returns the flow that opened an open connection.
    pub fn owner(&self, number: u32) -> Option<u32> {
        self.open.get(number as usize)?.as_ref().map(|connection| connection.owner)
    }

    /// Lists the numbers of the open connections of a flow.
    pub fn of_flow(&self, flow: u32) -> Vec<u32> {
        let open = (0..).zip(&self.open);
        open.filter(|(_, slot)| slot.as_ref().is_some_and(|c| c.owner == flow)).map(|(number, _)| number).collect()
    }

    /// Adds the counters of open connections to those of their flows.
    pub fn add_counters(&self, of_flows: &mut [Counters]) {
        for connection in self.open.iter().flatten() {
            of_flows[connection.owner as usize] += connection.client.counters();
        }
    }

    /// Adds the use of ECN by all connections, open or ended, to that of their flows.
    pub fn add_ecn_use(&self, of_flows: &mut [EcnUse]) {
        for connection in self.open.iter().flatten() {
            of_flows[connection.owner as usize] += connection.client.ecn_use();
        }
        for (flow, ended) in &self.ended {
            of_flows[*flow as usize] += *ended;
        }
    }
}
