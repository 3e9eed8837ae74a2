//! Actions: what actors ask the loop to do, applied one after another.

use super::Simulation;
use crate::actors::action::{Action, Context, Mover, Socket};
use crate::actors::cooperation::{Cooperation, Rerouted};
use crate::numbers::{LinkDir, Owner};
use crate::segment::Segment;
use crate::tcp::Role;
use penstock_core::units::Rate;

impl Simulation {
    /// Applies all pending actions.
    #[inline]
    pub(super) fn apply(&mut self) {
        if !self.actions.is_empty() {
            self.apply_from(0);
        }
    }

    /// Applies the pending actions from index `first` on. Actions that are pushed while one action is applied come
    /// before the next one, so that the order is that of nested calls.
    pub(super) fn apply_from(&mut self, first: usize) {
        let mut next = first;
        while next < self.actions.len() {
            match &self.actions[next] {
                Action::Send(packet) => {
                    let mut packet = *packet;
                    self.send(&mut packet);
                }
                other => self.apply_other(*other),
            }
            next += 1;
        }
        self.actions.truncate(first);
    }

    #[inline(never)]
    fn apply_other(&mut self, action: Action) {
        match action {
            Action::Send(mut packet) => self.send(&mut packet),
            Action::Await(source, at) => self.world.set_event(source, at),
            Action::Pump(socket) => self.pump_socket(socket),
            Action::Budget(socket, budget) => self.set_budget(socket, budget),
            Action::PathChanged(socket) => self.path_changed(socket),
            Action::Open(opening, request) => self.open_connection(opening, request),
            Action::Write(number, request) => self.write(number, request),
            Action::Close(number) => self.close_connection(number),
            Action::Alter(link, what) => {
                self.world.links[link.index()].alter(what, self.world.now, &mut self.world.outlet);
            }
            Action::Stations(link, place) => {
                let losses = self.actors.changes.losses(place);
                self.world.links[link.index()].set_stations(losses, self.world.now, &mut self.world.outlet);
            }
            Action::Review(link) => self.world.review(link),
            Action::Tell(link, fact) => {
                self.world.links[link.index()].tell(&fact, self.world.now, &mut self.world.outlet);
            }
            Action::Reroute { who, end, route } => self.reroute(who, end, route),
            Action::Leave { who, cell, loses_air } => self.leave(who, cell, loses_air),
            Action::Attached { node, old, new } => {
                self.cooperate(|cooperation, context| cooperation.node_attached(node, old, new, context));
            }
        }
    }

    /// Calls `tell` with the gateway and its clients, if the run has any, and applies the actions they push.
    pub(super) fn cooperate(&mut self, tell: impl FnOnce(&mut Cooperation, &mut Context<'_>)) {
        let Some(cooperation) = &mut self.actors.cooperation else { return };
        let first = self.actions.len();
        tell(cooperation, &mut Context::new(&self.world, &mut self.actions));
        self.apply_from(first);
    }

    // Sockets.

    fn pump_socket(&mut self, socket: Socket) {
        match socket {
            Socket::Flow(flow) => self.pump(flow as usize, Role::Client),
            Socket::Connection(number) => self.pump_connection(number, Role::Client),
        }
    }

    fn set_budget(&mut self, socket: Socket, budget: Option<Rate>) {
        let heeds = match socket {
            Socket::Flow(flow) => {
                self.actors.flows[flow as usize].tcp_mut().is_some_and(|tcp| tcp.client.set_budget(budget))
            }
            Socket::Connection(number) => self.actors.connections.set_budget(number, budget),
        };
        if heeds {
            self.pump_socket(socket);
        }
    }

    fn path_changed(&mut self, socket: Socket) {
        let now = self.world.now;
        match socket {
            Socket::Flow(flow) => {
                if let Some(tcp) = self.actors.flows[flow as usize].tcp_mut() {
                    tcp.client.path_changed(now);
                }
            }
            Socket::Connection(number) => self.actors.connections.path_changed(number, now),
        }
    }

    /// Opens or closes the socket of a flow in the view of the gateway. It opens when the application begins and closes
    /// when the application stops; that of a TCP connection stays open until all data is acknowledged.
    pub(super) fn turn_socket(&mut self, flow: u32, stops: bool) {
        let waits_for_acks = self.actors.flows[flow as usize].tcp().is_some();
        self.cooperate(|cooperation, context| match stops {
            false => cooperation.socket_opens(flow, context),
            true if waits_for_acks => {}
            true => cooperation.socket_closes(flow, context),
        });
    }

    /// Closes the socket of a flow if its client has nothing left to send or to have acknowledged.
    pub(super) fn review_socket(&mut self, index: usize) {
        if self.actors.flows[index].tcp().is_some_and(|tcp| tcp.client.all_acked()) {
            self.cooperate(|cooperation, context| cooperation.socket_closes(index as u32, context));
        }
    }

    // Hosts that move.

    fn reroute(&mut self, who: Mover, end: usize, route: u32) {
        match who {
            Mover::Flow(flow) => self.actors.flows[flow as usize].routes[end] = route,
            Mover::Node(node) => {
                if let Some(cooperation) = &mut self.actors.cooperation {
                    cooperation.reroute(node, end, route);
                }
            }
        }
    }

    fn leave(&mut self, who: Mover, cell: [LinkDir; 2], loses_air: bool) {
        let numbers = self.numbers_of(who);
        let mut waiting: Vec<Segment> = Vec::new();
        cell.into_iter().for_each(|link| self.world.take_out(link, &numbers, &mut waiting));
        if loses_air {
            let lost = cell.map(|link| self.world.lose_in_flight(link, &numbers));
            if let Some(handovers) = &mut self.actors.handovers {
                handovers.counters.lost_in_air += lost.iter().sum::<u64>();
            }
        }
        // The cursors of these packets still point to the links of the old cell; the packets are diverted from there.
        for mut packet in waiting {
            packet.at = self.world.now;
            self.send(&mut packet);
        }
    }

    /// Lists the numbers that the packets of a host carry.
    fn numbers_of(&self, who: Mover) -> Vec<u32> {
        match who {
            Mover::Flow(flow) => {
                let connections = self.actors.connections.of_flow(flow).into_iter().map(Owner::Connection);
                let own = self.world.layout.sends(flow).then_some(Owner::Flow(flow));
                own.into_iter().chain(connections).map(|owner| self.world.number(owner)).collect()
            }
            Mover::Node(node) => vec![self.world.number(Owner::Message(node))],
        }
    }

    /// Tells the gateway and its clients which flows send by a new route since their hosts moved.
    pub(super) fn tell_of_routes(&mut self) {
        let Some(handovers) = &mut self.actors.handovers else { return };
        let flows = handovers.take_rerouted();
        let connections = &self.actors.connections;
        let rerouted = |flow: u32| Rerouted {
            flow,
            route: self.actors.flows[flow as usize].routes[0],
            connections: connections.of_flow(flow),
        };
        let rerouted: Vec<Rerouted> = flows.into_iter().map(rerouted).collect();
        self.cooperate(|cooperation, context| cooperation.routes_changed(&rerouted, context));
    }
}
