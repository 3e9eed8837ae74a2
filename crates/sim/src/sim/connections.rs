//! Connections of `http` and `web` flows: opened and closed while the run goes on.
//!
//! Each has a number of its own beyond those of flows, forged SYNs and nodes, so that every queue sees a new flow, and two timers
//! beyond all other sources of events. It travels between the hosts of the flow that opened it. Numbers of connections
//! that are over rest as long as TIME-WAIT does on Linux before they are used again: until then a stray segment finds
//! nobody, and memory is bounded by what is open and what was opened in the last minute.

use super::Simulation;
use crate::actors::sessions::Plan;
use crate::flow::{FORGED, Transport};
use crate::segment::Segment;
use crate::tcp::{Endpoint, Role, State};
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::qdisc::Qdisc;
use penstock_core::units::{Instant, Rate, Span};
use std::collections::VecDeque;

/// How long the number of a connection is not used again.
const TIME_WAIT: Span = Span::from_secs(60);

/// An open connection.
#[derive(Debug)]
struct Connection {
    client: Endpoint,
    server: Endpoint,
    /// The flow that opened it.
    owner: u32,
    /// The transfer under way: its size, when it began, and how much the server will have got at its end, or
    /// `u64::MAX` if there is none.
    size: u64,
    began: Instant,
    until: u64,
    /// Bytes of it that its flow has counted.
    counted: u64,
}

impl Connection {
    fn end(&mut self, server: bool) -> &mut Endpoint {
        if server { &mut self.server } else { &mut self.client }
    }

    fn write(&mut self, size: u64, now: Instant) {
        self.client.write(size);
        (self.size, self.began) = (size, now);
        self.until = self.server.delivered() + size;
    }

    fn is_over(&self) -> bool {
        let (client, server) = (&self.client, &self.server);
        // Once one side has given up, the other may wait for ever: a reset can be lost.
        let given_up = client.state() == State::Closed || server.state() == State::Closed && client.all_acked();
        given_up || client.is_done() && server.is_done()
    }
}

/// All connections that are open, by their numbers.
#[derive(Debug, Default)]
pub struct Connections {
    open: Vec<Option<Box<Connection>>>,
    /// Numbers not in use, and since when.
    resting: VecDeque<(Instant, u32)>,
}

impl Connections {
    /// A number for a new connection.
    fn take_number(&mut self, now: Instant) -> u32 {
        if let Some((since, number)) = self.resting.front().copied()
            && since + TIME_WAIT <= now
        {
            self.resting.pop_front();
            return number;
        }
        self.open.push(None);
        self.open.len() as u32 - 1
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Connection> {
        self.open.get_mut(number as usize)?.as_deref_mut()
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

    /// Counters of the connections of a flow that are open.
    pub fn counters(&self, flow: u32) -> impl Iterator<Item = crate::tcp::Counters> + '_ {
        self.open.iter().flatten().filter(move |c| c.owner == flow).map(|c| c.client.counters())
    }
}

// Connection n: packets have the number `first_connection() + n`, timers are the sources `connection_source(n, _)`.
impl Simulation {
    /// The numbers of the open connections of a flow.
    pub(super) fn numbers_of(&self, flow: u32) -> Vec<u32> {
        let open = (0..).zip(&self.connections.open);
        open.filter(|(_, connection)| connection.as_ref().is_some_and(|c| c.owner == flow)).map(|(n, _)| n).collect()
    }
    /// What their packets have as numbers.
    pub(super) fn connections_of(&self, flow: u32) -> impl Iterator<Item = u32> {
        let first = self.first_connection();
        self.numbers_of(flow).into_iter().map(move |number| first + number)
    }
    fn first_connection(&self) -> u32 {
        self.flows.len() as u32 + self.floods.len() as u32 * FORGED + self.cooperating()
    }
    fn connection_source(&self, number: u32, server: bool) -> u32 {
        let cooperation = self.coop.as_ref().map_or(0, |coop| coop.nodes.len() as u32 + 1);
        self.changes_source() + 1 + cooperation + 2 * number + u32::from(server)
    }
}

impl Simulation {
    /// The application of a flow with sessions wakes: a transfer begins, or the time until the first does.
    pub(super) fn on_session(&mut self, flow: usize) {
        let now = self.now;
        let Transport::Sessions(sessions) = &mut self.flows[flow].transport else { return };
        let (size, next) = sessions.wake(now);
        let open = sessions.connection;
        if let Some(at) = next {
            self.events.set(self.app_source(flow), at);
        }
        let Some(size) = size else { return };
        let number = open.unwrap_or_else(|| self.open_connection(flow));
        let Transport::Sessions(sessions) = &mut self.flows[flow].transport else { return };
        let stays = matches!(sessions.plan, Plan::Http(http) if http.same_connection);
        sessions.connection = stays.then_some(number);
        if let Some(connection) = self.connections.get_mut(number) {
            connection.write(size, now);
            if !stays {
                connection.client.close();
            }
            self.pump_connection(number, false);
        }
    }

    fn open_connection(&mut self, flow: usize) -> u32 {
        let number = self.connections.take_number(self.now);
        self.events.grow_to(self.connection_source(number, true) as usize + 1);
        let id = self.first_connection() + number;
        let Transport::Sessions(sessions) = &mut self.flows[flow].transport else { return number };
        sessions.open += 1;
        let mut end = |role| Endpoint::new(sessions.tcp.clone(), id, role, sessions.iss.bits() as u32);
        let (mut client, server) = (end(Role::Client), end(Role::Server));
        client.open();
        self.tell_of(id, flow);
        let connection =
            Connection { client, server, owner: flow as u32, size: 0, began: self.now, until: u64::MAX, counted: 0 };
        self.connections.open[number as usize] = Some(Box::new(connection));
        self.connection_opens(flow, number);
        number
    }

    /// Queues learn what a new connection has of its flow.
    fn tell_of(&mut self, id: u32, flow: usize) {
        let (class, node) = (self.classes.get(&(flow as u32)), self.owners.get(flow));
        if class.is_none() && node.is_none() {
            return;
        }
        let (flow, now) = (FlowId(id), self.now);
        for queue in self.links[..self.routers].iter_mut().filter_map(|link| link.queue.as_mut()) {
            class.iter().for_each(|class| queue.qdisc.on_fact(&Fact::Class { flow, class: **class }, now));
            node.iter().for_each(|node| queue.qdisc.on_fact(&Fact::Owner { flow, node: NodeId(**node) }, now));
        }
    }

    /// A packet whose number is none of a flow: of a connection, or of a flood.
    #[inline(never)]
    pub(super) fn on_connection(&mut self, packet: &Segment) {
        let Some(number) = packet.flow.checked_sub(self.first_connection()) else {
            return if self.is_message(packet.flow) { self.on_message(packet) } else { self.on_forged(packet) };
        };
        let (now, server) = (self.now, packet.from_client());
        let Some(connection) = self.connections.get_mut(number) else { return };
        let end = connection.end(server);
        end.on_segment(packet, now);
        if server {
            self.count(number);
        } else if let Some(rtt) = end.take_rtt_sample() {
            let owner = connection.owner as usize;
            self.flows[owner].rtt.record(rtt);
            self.rtt.record(rtt);
        }
        self.pump_connection(number, server);
        self.release_if_over(number);
    }

    /// Counts what the server got; a transfer may be complete.
    fn count(&mut self, number: u32) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(number) else { return };
        let flow = connection.owner as usize;
        let Transport::Sessions(sessions) = &mut self.flows[flow].transport else { return };
        let delivered = connection.server.delivered();
        sessions.delivered += delivered - connection.counted;
        connection.counted = delivered;
        if delivered >= connection.until {
            connection.until = u64::MAX;
            sessions.complete(connection.size, connection.began, now);
            let next = sessions.next_after(now);
            self.await_next(flow, next);
        }
    }

    /// The next transfer of a session begins at `next`, unless the flow stops before.
    fn await_next(&mut self, flow: usize, next: Option<Instant>) {
        if let Some(at) = next.filter(|at| *at < self.flows[flow].stop) {
            self.events.set(self.app_source(flow), at);
        } else if let Transport::Sessions(sessions) = &self.flows[flow].transport
            && let Some(number) = sessions.connection
        {
            if let Some(connection) = self.connections.get_mut(number) {
                connection.client.close();
            }
            self.pump_connection(number, false);
        }
    }

    /// Like [`Simulation::pump`].
    pub(super) fn pump_connection(&mut self, number: u32, server: bool) {
        let now = self.now;
        let Some(connection) = self.connections.get_mut(number) else { return };
        let cursor = self.flows[connection.owner as usize].routes[usize::from(server)];
        let first = self.routes[cursor as usize] as usize;
        while let Some(mut packet) = self.connections.get_mut(number).and_then(|c| c.end(server).transmit(now)) {
            packet.cursor = cursor;
            self.offer(first, &mut packet);
        }
        if let Some(at) = self.connections.get_mut(number).and_then(|c| c.end(server).deadline()) {
            self.events.set_at_latest(self.connection_source(number, server), at.max(now));
        }
    }

    /// The timer of a connection, lazy as those of flows are.
    pub(super) fn on_connection_timer(&mut self, index: usize) {
        let (number, server, now) = ((index / 2) as u32, index % 2 == 1, self.now);
        let Some(connection) = self.connections.get_mut(number) else { return };
        let end = connection.end(server);
        match end.deadline() {
            Some(at) if at <= now => {
                end.on_timer(now);
                self.pump_connection(number, server);
                self.release_if_over(number);
            }
            Some(at) => self.events.set(self.connection_source(number, server), at),
            None => {}
        }
    }

    /// Forgets a connection that both sides closed, or one gave up.
    fn release_if_over(&mut self, number: u32) {
        let now = self.now;
        let Some(slot) = self.connections.open.get_mut(number as usize) else { return };
        let Some(connection) = slot.take_if(|c| c.is_over()) else { return };
        self.connections.resting.push_back((now, number));
        let flow = connection.owner as usize;
        self.connection_closes(flow, number);
        let Transport::Sessions(sessions) = &mut self.flows[flow].transport else { return };
        sessions.open -= 1;
        sessions.absorb(connection.client.counters());
        if sessions.connection == Some(number) {
            sessions.connection = None;
        }
        if connection.until != u64::MAX {
            sessions.fail();
            let next = sessions.next_after(now);
            self.await_next(flow, next);
        }
    }
}
