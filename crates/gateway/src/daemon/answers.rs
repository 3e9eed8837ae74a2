//! What a gateway answers and changes when it is asked.

use super::{Daemon, number};
use crate::enforce::{Count, Enforcer, UP};
use crate::settings::Settings;
use penstock_appliance::socket::message::Refusal;
use penstock_core::packet::NodeId;
use penstock_core::registry::tree;
use penstock_core::units::Instant;
use penstock_core::wire::HostKey;
use penstock_shaper::direction::Direction;
use penstock_shaper::nodes::Side;
use penstock_shaper::talkers::Entry;
use serde_json::{Value, json};

/// Whether a direction needs another queue, or queues of other subscribers.
pub(super) fn differs(direction: Direction, old: &Settings, new: &Settings) -> bool {
    let at = direction.index();
    let tree = old.subscribers.tree || new.subscribers.tree;
    old.ways[at].aqm != new.ways[at].aqm
        || old.ways[at].limit != new.ways[at].limit
        || (tree && old.subscribers != new.subscribers)
}

impl Daemon {
    /// Returns the subscribers and the other hosts with the highest rates; with their budgets, if they have any.
    pub(super) fn nodes(&self, most: usize) -> Value {
        let (now, classifier, taps) = (self.now(), &self.classifier, &self.traffic.taps);
        let top = taps.talkers.nodes(Side::Right, most, |address| classifier.table.subscribers.name_at(address, now));
        let some = !self.settings.subscribers.list.is_empty();
        let row = |entry: Entry| {
            let named = classifier.table.subscribers.number_of(&entry.name).filter(|_| some);
            let host = || HostKey::at(entry.name.split('/').next()?.parse().ok()?);
            let node = named.or_else(|| classifier.table.subscribers.known(host()?));
            let mut row = json!(entry);
            if some {
                row["provisioned"] = named.is_some().into();
            }
            if let Some((budget_bps, Count { policed, .. })) = taps.enforcer.as_ref().map(|enforcer| enforcer.of(node))
            {
                (row["budget_bps"], row["policed"]) = (json!(budget_bps), json!(policed));
            }
            row
        };
        let rows: Vec<Value> = top.entries.into_iter().map(row).collect();
        json!({"entries": rows, "known": top.known, "others_bytes": top.others_bytes})
    }

    /// Gives a direction another queue, or its tree other subscribers.
    pub(super) fn replace(&mut self, direction: Direction, wanted: &Settings, now: Instant) -> Result<(), Refusal> {
        let way = wanted.way(direction, |name| number(&self.classifier, name));
        let bottleneck = self.path.direction_mut(direction);
        if !bottleneck.change_tree(&way.aqm, way.limit, now, &mut self.traffic) {
            bottleneck.replace(&way.aqm, way.limit, now).map_err(|e| Refusal::of(&e))?;
            self.classifier.tell_again();
        }
        self.traffic.gate.lengthen(direction, wanted.subscribers.room(way.limit));
        Ok(())
    }

    /// Returns why a direction cannot get this discipline or limit while packets pass; `None` if it can, or has it.
    pub(super) fn refuses(&self, direction: Direction, wanted: &Settings) -> Option<String> {
        let (at, bottleneck) = (direction.index(), self.path.direction(direction));
        let tree = wanted.subscribers.tree;
        if let Some(what) = tree::refused(&wanted.ways[at].aqm).filter(|_| tree) {
            return Some(what);
        }
        if !differs(direction, &self.settings, wanted) || (tree && bottleneck.tree().is_some()) {
            return None;
        }
        let enforces = direction == UP && self.traffic.taps.enforcer.as_ref().is_some_and(Enforcer::enforces);
        if enforces {
            return Some(
                "the discipline of the upload holds hosts to budgets, of which a new one knows none; start a new run"
                    .into(),
            );
        }
        let way = wanted.way(direction, |_| NodeId::NOBODY);
        bottleneck.may_replace(&way.aqm, way.limit).err().map(|why| why.to_string())
    }
}
