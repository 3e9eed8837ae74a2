//! Handovers: hosts leave cells and attach to others; packets are forwarded, held, or lost in the air.

use super::Simulation;
use crate::actors::handovers::{Move, Mover, Step, Way};
use crate::segment::Segment;
use penstock_core::packet::FlowId;

impl Simulation {
    /// The steps that are due.
    pub(super) fn on_handovers(&mut self) {
        let mut turned = Vec::new();
        while let Some((step, one)) = self.handovers.as_mut().and_then(|handovers| handovers.take_step(self.now)) {
            match step {
                Step::Leave => self.leave_cell(&one),
                Step::Attach => self.attach(&one),
                Step::Switch => {
                    self.take_route(&one, usize::from(!one.server));
                }
            }
            // From when on a client sends by the new way: its host is there, or it has learnt of the server's move.
            let sends = if one.server { Step::Switch } else { Step::Attach };
            if let (Mover::Flow(flow), true) = (one.who, step == sends) {
                turned.push(flow);
            }
        }
        self.ways_changed(&turned);
    }

    /// One end takes its new route; where that begins.
    fn take_route(&mut self, one: &Move, end: usize) -> u32 {
        let routes = match one.who {
            Mover::Flow(flow) => Some(&mut self.flows[flow as usize].routes),
            Mover::Node(id) => self.coop.as_mut().map(|coop| &mut coop.nodes[id as usize].routes),
        };
        routes.into_iter().for_each(|routes| routes[end] = one.routes[end]);
        one.routes[end]
    }

    fn leave_cell(&mut self, one: &Move) {
        let ids: Vec<u32> = match one.who {
            Mover::Flow(flow) => std::iter::once(flow).chain(self.connections_of(flow)).collect(),
            Mover::Node(id) => vec![self.first_message() + id],
        };
        let waiting = one.old.map(|link| self.take_out(link as usize, &ids));
        if one.loses_air {
            let lost: u64 = one.old.iter().map(|link| self.links[*link as usize].lose_in_flight(&ids)).sum();
            if let Some(handovers) = &mut self.handovers {
                handovers.counters.lost_in_air += lost;
            }
        }
        let own = self.take_route(one, usize::from(one.server));
        // A cell's link comes after that of the host itself, if these are not the same.
        let up = own + u32::from(self.routes[own as usize] != one.new[0]);
        if let Some(handovers) = &mut self.handovers {
            handovers.leave(one, up);
        }
        // Their cursors are still those of the old cell's links, from where they go on elsewhere.
        waiting.into_iter().flatten().for_each(|packet| self.offer_again(packet));
    }

    /// What waits before a link of these flows.
    fn take_out(&mut self, link: usize, ids: &[u32]) -> Vec<Segment> {
        let mut taken = Vec::new();
        self.links[link].take_out(ids.iter().map(|id| FlowId(*id)), self.now, &mut self.outlet, &mut taken);
        self.relay();
        if let Some(next) = self.links[link].next_event() {
            self.events.set_at_latest(link as u32, next.max(self.now));
        }
        taken
    }

    fn attach(&mut self, one: &Move) {
        let held = self.handovers.as_mut().map(|handovers| handovers.attach(one.who)).unwrap_or_default();
        held.into_iter().for_each(|packet| self.offer_again(packet));
        if let Mover::Node(id) = one.who {
            self.node_attached(id as usize, one.old[0], one.new[0]);
        }
    }

    /// A packet comes to the link at its cursor, now.
    fn offer_again(&mut self, mut packet: Segment) {
        packet.at = self.now;
        self.offer(self.routes[packet.cursor as usize] as usize, &mut packet);
    }

    /// True if a packet that comes to a link goes elsewhere, as its host has moved.
    #[inline(never)]
    pub(super) fn is_diverted(&mut self, link: usize, packet: &Segment) -> bool {
        let owner = self.owner(packet.flow);
        let (Some(owner), Some(handovers)) = (owner, &mut self.handovers) else { return false };
        match handovers.divert(owner, link as u32, packet) {
            Way::On => false,
            Way::Held => true,
            Way::By(cursor) => {
                let mut packet = *packet;
                packet.cursor = cursor;
                self.offer_again(packet);
                true
            }
        }
    }

    /// To whom a packet belongs, be it that of a connection.
    fn owner(&self, number: u32) -> Option<Mover> {
        if (number as usize) < self.flows.len() {
            return Some(Mover::Flow(number));
        }
        let (message, nodes) = (number.checked_sub(self.first_message())?, self.cooperating());
        if message < nodes {
            return Some(Mover::Node(message));
        }
        self.connections.owner(message - nodes).map(Mover::Flow)
    }
}
