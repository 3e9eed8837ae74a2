//! What a gateway answers and changes when it is asked.

use super::{Daemon, number};
use crate::enforce::Count;
use crate::gate::Verdicts;
use crate::settings::Settings;
use penstock_appliance::socket::message::Refusal;
use penstock_core::packet::NodeId;
use penstock_core::qdisc::Backlog;
use penstock_core::registry::tree;
use penstock_core::units::Instant;
use penstock_core::wire::HostKey;
use penstock_shaper::direction::Direction;
use penstock_shaper::nodes::Side;
use penstock_shaper::talkers::Entry;
use serde::Serialize;
use serde_json::{Value, json};

/// Number of names of subscribers that one run may have seen: each keeps its number.
const MOST_NAMES: usize = 65_536;

/// One line of `top` by node.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    entry: Entry,
    /// Whether it is a subscriber with a name, if there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    provisioned: Option<bool>,
    #[serde(flatten)]
    held: Option<Held>,
}

/// What budgets say of a node.
#[derive(Debug, Serialize)]
struct Held {
    /// The budget in bits per second; `None` for a host without a session.
    budget_bps: Option<u64>,
    /// What was refused.
    policed: Backlog,
}

/// Returns the subscribers and the other hosts with the highest rates; with their budgets, if they have any.
pub(crate) fn nodes(daemon: &Daemon, most: usize) -> Value {
    let (now, known) = (daemon.now(), &daemon.classifier.table.subscribers);
    let top = daemon.taps.talkers.nodes(Side::Right, most, |address| known.name_at(address, now));
    let some = !daemon.settings.subscribers.is_empty();
    let row = |entry: Entry| {
        let named = known.number_of(&entry.name).filter(|_| some);
        let host = || HostKey::at(entry.name.split('/').next()?.parse().ok()?);
        let node = named.or_else(|| known.known(host()?));
        let held = daemon.taps.enforcer.as_ref().map(|enforcer| {
            let (budget_bps, Count { policed, .. }) = enforcer.of(node);
            Held { budget_bps, policed }
        });
        Row { provisioned: some.then_some(named.is_some()), held, entry }
    };
    let rows: Vec<Row> = top.entries.into_iter().map(row).collect();
    json!({"entries": rows, "known": top.known, "others_bytes": top.others_bytes})
}

/// Whether a direction needs another queue, or queues of other subscribers.
fn differs(direction: Direction, old: &Settings, new: &Settings) -> bool {
    let at = direction.index();
    let tree = old.subscribers.is_tree() || new.subscribers.is_tree();
    old[at].aqm != new[at].aqm || old[at].limit != new[at].limit || (tree && old.subscribers != new.subscribers)
}

impl Daemon {
    /// Gives a direction another queue, or its tree other subscribers.
    fn replace(&mut self, direction: Direction, wanted: &Settings, now: Instant) -> Result<(), Refusal> {
        let way = wanted.way(direction, |name| number(&self.classifier, name));
        let mut verdicts = Verdicts { gate: &mut self.gate, pool: &mut self.pool, taps: &mut self.taps };
        let bottleneck = self.path.direction_mut(direction);
        if !bottleneck.change_tree(&way.aqm, way.limit, now, &mut verdicts) {
            bottleneck.replace(&way.aqm, way.limit, now).map_err(|e| Refusal::new(e.to_string()))?;
            self.classifier.tell_again();
        }
        self.gate.lengthen(direction, wanted.subscribers.room(way.limit));
        Ok(())
    }

    /// Makes these the settings, all of them or none; returns when.
    ///
    /// # Errors
    /// Refuses what cannot change while packets pass.
    pub(crate) fn change(&mut self, wanted: &Settings) -> Result<Instant, Refusal> {
        // Events up to now happen under the old settings.
        let now = self.release();
        if let Some(why) = Direction::BOTH.into_iter().find_map(|d| self.refuses(d, wanted)) {
            return Err(Refusal::new(why));
        }
        if self.settings.subscribers != wanted.subscribers
            && self.classifier.table.subscribers.names() + wanted.subscribers.len() > MOST_NAMES
        {
            return Err(Refusal::new(format!(
                "there were {MOST_NAMES} names of subscribers since the start; start anew"
            )));
        }
        if self.settings.source != wanted.source {
            self.taps.steer.restart(wanted.source.clone(), now).map_err(|e| Refusal::new(e.to_string()))?;
        }
        let replaced = Direction::BOTH.map(|d| differs(d, &self.settings, wanted));
        if self.settings.subscribers != wanted.subscribers {
            self.classifier.table.subscribers.rename(&wanted.subscribers.named());
            self.taps.enforcer.iter_mut().for_each(|enforcer| enforcer.renumber(&self.classifier));
        }
        for direction in Direction::BOTH {
            let at = direction.index();
            if self.settings[at].rate != wanted[at].rate {
                self.path.direction_mut(direction).set_rate(wanted[at].rate, now);
            }
            if replaced[at] {
                self.replace(direction, wanted, now)?;
            }
        }
        self.settings.clone_from(wanted);
        self.share(now);
        Ok(now)
    }

    /// Returns why a direction cannot get this discipline or limit while packets pass; `None` if it can, or has it.
    pub(crate) fn refuses(&self, direction: Direction, wanted: &Settings) -> Option<String> {
        let (at, bottleneck) = (direction.index(), self.path.direction(direction));
        if wanted.subscribers.is_tree()
            && let Some(what) = tree::refused(&wanted[at].aqm)
        {
            return Some(what);
        }
        if !differs(direction, &self.settings, wanted) || (bottleneck.tree().is_some() && wanted.subscribers.is_tree())
        {
            return None;
        }
        let way = wanted.way(direction, |_| NodeId::NOBODY);
        bottleneck.may_replace(&way.aqm, way.limit).err().map(|why| why.to_string())
    }

    /// Compares what packets meet with the settings.
    ///
    /// # Errors
    /// Returns what differs.
    pub(crate) fn compare(&self) -> Result<(), String> {
        for direction in Direction::BOTH {
            let meant = self.settings.way(direction, |name| number(&self.classifier, name));
            self.path.direction(direction).read_back(&meant)?;
        }
        if self.classifier.table.subscribers.are(&self.settings.subscribers.named()) {
            return Ok(());
        }
        Err("the prefixes of subscribers are others than were meant".into())
    }
}
