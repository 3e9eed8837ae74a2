//! Connections that sessions open: the loop connects the flow that owns one with its endpoints.

use super::Simulation;
use crate::actors::action::{Context, Opening, Request};
use crate::actors::application::{ConnectionEvent, Host};
use crate::numbers::{Owner, Source};
use crate::segment::Segment;
use crate::tcp::Role;
use crate::world::World;

impl Simulation {
    /// Opens a connection and gives it a first request to send.
    pub(super) fn open_connection(&mut self, opening: Opening, request: Request) {
        let World { now, layout, .. } = self.world;
        let (flow, number) = (opening.flow, self.actors.connections.take_number(now));
        self.world.outlet.events.grow_to(layout.sources(number + 1, 0));
        let id = layout.number(Owner::Connection(number));
        for link in &mut self.world.links {
            let facts = self.actors.connections.facts(id, flow, link.queue.qdisc.reads_codepoints());
            facts.for_each(|fact| link.queue.tell(&fact, now));
        }
        if let Some(tcp) = self.actors.flows[flow as usize].application.get().connects_by() {
            self.actors.connections.open(number, id, opening, tcp, now);
        }
        self.cooperate(|cooperation, context| cooperation.connection_opens(flow, number, context));
        self.tell_owner(flow, ConnectionEvent::Opened(number));
        self.write(number, request);
    }

    /// Gives an open connection a request to send.
    pub(super) fn write(&mut self, number: u32, request: Request) {
        self.actors.connections.write(number, request, self.world.now);
        self.pump_connection(number, Role::Client);
    }

    /// Closes a connection from the client's side.
    pub(super) fn close_connection(&mut self, number: u32) {
        self.actors.connections.close(number);
        self.pump_connection(number, Role::Client);
    }

    /// Handles a segment of a connection that arrives at one of its ends.
    pub(super) fn on_connection(&mut self, number: u32, packet: &Segment) {
        let (now, side) = (self.world.now, Role::receiver_of(packet));
        let Some(connection) = self.actors.connections.get_mut(number) else { return };
        let owner = connection.owner;
        let rtt = connection.receive(packet, now);
        let progress = (side == Role::Server).then(|| connection.progress());
        if let Some(rtt) = rtt {
            self.actors.flows[owner as usize].rtt.record(rtt);
            self.measured.rtt.record(rtt);
        }
        if let Some(progress) = progress.filter(|progress| progress.delivered > 0) {
            self.tell_owner(owner, ConnectionEvent::Delivered(progress.delivered));
        }
        if let Some((size, began)) = progress.and_then(|progress| progress.complete) {
            self.tell_owner(owner, ConnectionEvent::Complete { size, began });
        }
        self.pump_connection(number, side);
        self.release_if_over(number);
    }

    /// Sends all that an endpoint of a connection may send now and sets its timer.
    pub(super) fn pump_connection(&mut self, number: u32, side: Role) {
        let now = self.world.now;
        let Some(connection) = self.actors.connections.get_mut(number) else { return };
        let cursor = self.actors.flows[connection.owner as usize].routes[side as usize];
        let first = self.world.hop(cursor);
        while let Some(mut packet) =
            self.actors.connections.get_mut(number).and_then(|connection| connection.end(side).transmit(now))
        {
            packet.cursor = cursor;
            self.offer(first, &mut packet);
        }
        let deadline = self.actors.connections.get_mut(number).and_then(|connection| connection.end(side).deadline());
        if let Some(at) = deadline {
            let timer = self.world.layout.source(Source::Connection { number, side });
            self.world.outlet.events.set_at_latest_as(timer, self.world.layout.key(timer), at.max(now));
        }
    }

    /// Handles the event of a connection's timer, which is lazy like the timers of flows.
    #[inline(never)]
    pub(super) fn on_connection_timer(&mut self, number: u32, side: Role) {
        let now = self.world.now;
        let Some(connection) = self.actors.connections.get_mut(number) else { return };
        let end = connection.end(side);
        match end.deadline() {
            Some(at) if at <= now => {
                end.on_timer(now);
                self.pump_connection(number, side);
                self.release_if_over(number);
            }
            Some(at) => self.world.set_event(Source::Connection { number, side }, at),
            None => {}
        }
    }

    /// Removes a connection which both sides have closed or one side has given up.
    fn release_if_over(&mut self, number: u32) {
        let Some(remains) = self.actors.connections.release_if_over(number, self.world.now) else { return };
        self.cooperate(|cooperation, context| cooperation.connection_closes(remains.owner, number, context));
        let over = ConnectionEvent::Over { number, counters: remains.counters, unfinished: remains.unfinished };
        self.tell_owner(remains.owner, over);
    }

    /// Tells the application which opened a connection of an event of it and applies the actions that follow.
    fn tell_owner(&mut self, flow: u32, event: ConnectionEvent) {
        let Self { world, actors, actions, .. } = self;
        let owner = &mut actors.flows[flow as usize];
        let first = actions.len();
        let host = &mut Host::new(Context::new(world, actions), flow, owner.stop, owner.routes);
        let next = owner.application.get_mut().on_connection(event, host);
        if matches!(event, ConnectionEvent::Delivered(_)) {
            owner.note_delivery(world.now);
        }
        self.await_application(flow, next);
        self.apply_from(first);
    }
}
