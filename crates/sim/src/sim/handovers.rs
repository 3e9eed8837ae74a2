//! Handovers: hosts leave cells and attach to others; packets are forwarded, held, or lost in the air.

use super::Simulation;
use crate::flow::FORGED;
use crate::handover::{Move, Step, Way};
use crate::segment::Segment;
use penstock_core::packet::FlowId;

impl Simulation {
    /// The steps that are due.
    pub(super) fn on_handovers(&mut self) {
        while let Some((step, one)) = self.handovers.as_mut().and_then(|handovers| handovers.take_step(self.now)) {
            match step {
                Step::Leave => self.leave_cell(&one),
                Step::Attach => self.attach(one.flow),
                Step::Switch => {
                    let other = usize::from(!one.server);
                    self.flows[one.flow as usize].routes[other] = one.routes[other];
                }
            }
        }
    }

    fn leave_cell(&mut self, one: &Move) {
        let ids: Vec<u32> = std::iter::once(one.flow).chain(self.connections_of(one.flow)).collect();
        let waiting = one.old.map(|link| self.take_out(link as usize, &ids));
        if one.loses_air {
            let lost: u64 = one.old.iter().map(|link| self.links[*link as usize].lose_in_flight(&ids)).sum();
            if let Some(handovers) = &mut self.handovers {
                handovers.counters.lost_in_air += lost;
            }
        }
        let own = one.routes[usize::from(one.server)];
        self.flows[one.flow as usize].routes[usize::from(one.server)] = own;
        if let Some(handovers) = &mut self.handovers {
            handovers.leave(one, own + 1);
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

    fn attach(&mut self, flow: u32) {
        let held = self.handovers.as_mut().map(|handovers| handovers.attach(flow)).unwrap_or_default();
        held.into_iter().for_each(|packet| self.offer_again(packet));
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

    /// The flow to which a packet belongs, be it that of a connection.
    fn owner(&self, number: u32) -> Option<u32> {
        if (number as usize) < self.flows.len() {
            return Some(number);
        }
        let forged = self.floods.len() as u32 * FORGED;
        let connection = number.checked_sub(self.flows.len() as u32 + forged + self.cooperating())?;
        self.connections.owner(connection)
    }
}
