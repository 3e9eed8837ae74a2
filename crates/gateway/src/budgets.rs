//! What the loop does with budgets: it tells them to the discipline of the upload, and rates to whoever gives budgets.

use crate::daemon::Daemon;
use penstock_core::fact::Fact;
use penstock_core::packet::NodeId;
use penstock_core::units::Instant;
use penstock_core::wire::RealPacket;
use penstock_shaper::classify::PacketFacts;
use penstock_shaper::direction::Direction;

/// The direction in which budgets hold.
const UP: Direction = Direction::Reverse;

impl Daemon {
    /// Tells the role that gives budgets to hosts, and who enforces them, the rate of the upload.
    pub(crate) fn share(&mut self, now: Instant) {
        let upload = self.settings[UP.index()].rate;
        if let Some((keys, served)) = &mut self.c2ml {
            served.set_rate(keys.shared(upload));
        }
        if let Some(enforcer) = &mut self.enforcer {
            enforcer.set_upload(upload, |fact| self.path.direction_mut(UP).on_fact(fact, now));
        }
    }

    /// Tells the discipline of the upload the budgets that have changed.
    pub(crate) fn enforce(&mut self, now: Instant) {
        let (Some(enforcer), Some((_, served))) = (&mut self.enforcer, &self.c2ml) else { return };
        if let Some(grants) = served.grants() {
            enforcer.set_budgets(grants, &self.classifier, |fact| self.path.direction_mut(UP).on_fact(fact, now));
        }
    }

    /// Counts a packet of an upload, after the discipline was told the facts that come with it; returns its node, if nodes
    /// are held to budgets.
    pub(crate) fn node(&mut self, packet: &RealPacket, facts: &PacketFacts, now: Instant) -> Option<NodeId> {
        let tell = |fact: &Fact| self.path.direction_mut(UP).on_fact(fact, now);
        Some(self.enforcer.as_mut()?.arrives(packet, facts, &self.classifier, tell))
    }
}
