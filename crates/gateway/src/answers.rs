//! What a gateway answers at its control socket.

use crate::apply::{self, Own};
use crate::daemon::{Daemon, number};
use crate::enforce::Count;
use crate::gate::Verdicts;
use crate::history::Settings;
use crate::setting::{self, Adjustable, Records};
use penstock_appliance::socket::message::{Answer, By, Refusal, Request};
use penstock_appliance::socket::server::{Asker, Peer};
use penstock_core::packet::NodeId;
use penstock_core::qdisc::Backlog;
use penstock_core::registry::tree;
use penstock_core::units::{Instant, Rate, Span};
use penstock_core::wire::HostKey;
use penstock_shaper::direction::Direction;
use penstock_shaper::nodes::Side;
use penstock_shaper::talkers::Entry;
use serde::Serialize;

/// A status is computed anew after this time; who asks more often gets the last one.
const FRESH: Span = Span::from_millis(100);

/// Number of names of subscribers that one run may have seen: each keeps its number.
const MOST_NAMES: usize = 65_536;

/// Carries out a request from the control socket and returns the answer to it; `None` if a file must be read before.
pub fn answer(daemon: &mut Daemon, asker: Asker, request: Request) -> Option<Answer> {
    match request {
        Request::Apply(file) => {
            let may = daemon.history.may_set().and_then(|()| daemon.reader.read(Some((asker, file))));
            may.err().map(Err)
        }
        other => Some(answer_now(daemon, asker.peer, other)),
    }
}

/// Applies the files that were read since.
pub(crate) fn apply_what_was_read(daemon: &mut Daemon) {
    let finished: Vec<_> = daemon.reader.finished().collect();
    for (asker, read) in finished {
        let Some(asker) = asker else {
            apply::apply_again(daemon, read);
            continue;
        };
        let answer = read.and_then(|read| apply::apply(daemon, Some(asker.peer), &read));
        daemon.tell(asker, &answer);
    }
}

fn answer_now(daemon: &mut Daemon, peer: Peer, request: Request) -> Answer {
    match request {
        Request::Status => status(daemon),
        Request::Top { by: By::Flow, most } => text(&daemon.talkers.flows(most)),
        Request::Top { by: By::Node, most } => nodes(daemon, most),
        Request::Set(set) => setting::set(daemon, peer, &set),
        Request::Apply(_) => Err(Refusal::new("a file is read before it is applied")),
        Request::Keep => {
            daemon.snapshot = None;
            setting::keep(daemon, peer)
        }
        Request::Rollback => setting::rollback(daemon, peer),
    }
}

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
fn nodes(daemon: &Daemon, most: usize) -> Answer {
    let (now, classifier) = (daemon.now(), &daemon.classifier);
    let top = daemon.talkers.nodes(Side::Right, most, |address| classifier.name_at(address, now));
    let some = !daemon.settings.subscribers.is_empty();
    let row = |entry: Entry| {
        let named = classifier.number_of(&entry.name).filter(|_| some);
        let host = || HostKey::at(entry.name.split('/').next()?.parse().ok()?);
        let node = named.or_else(|| classifier.node_at(host()?));
        let held = daemon.enforcer.as_ref().map(|enforcer| {
            let (budget_bps, Count { policed, .. }) = enforcer.of(node);
            Held { budget_bps, policed }
        });
        Row { provisioned: some.then_some(named.is_some()), held, entry }
    };
    let rows: Vec<Row> = top.entries.into_iter().map(row).collect();
    text(&serde_json::json!({"entries": rows, "known": top.known, "others_bytes": top.others_bytes}))
}

fn status(daemon: &mut Daemon) -> Answer {
    let now = daemon.now();
    if let Some((at, text)) = &daemon.snapshot
        && now.since(*at) < FRESH
    {
        return Ok(text.clone());
    }
    let text = text(&daemon.status())?;
    daemon.snapshot = Some((now, text.clone()));
    Ok(text)
}

fn text(value: &impl Serialize) -> Answer {
    serde_json::to_string(value).map_err(|e| Refusal::new(format!("the answer cannot be written: {e}")))
}

/// The source of the rates has others; only the rates change.
pub(crate) fn steer(daemon: &mut Daemon, rates: [Rate; 2]) {
    let now = daemon.release();
    for direction in Direction::BOTH {
        let (at, bottleneck) = (direction.index(), daemon.path.direction_mut(direction));
        bottleneck.set_rate(rates[at], now);
        daemon.settings[at].rate = rates[at];
    }
    daemon.share(now);
    daemon.snapshot = None;
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
        let enforcer = self.enforcer.as_mut();
        let mut verdicts = Verdicts { gate: &mut self.gate, pool: &mut self.pool, enforcer, calls: &mut self.calls };
        let bottleneck = self.path.direction_mut(direction);
        if !bottleneck.change_tree(&way.aqm, way.limit, now, &mut verdicts) {
            bottleneck.replace(&way.aqm, way.limit, now).map_err(|e| Refusal::new(e.to_string()))?;
            self.classifier.tell_again();
        }
        self.gate.lengthen(direction, wanted.subscribers.room(way.limit));
        Ok(())
    }
}

impl Adjustable for Daemon {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn keeps_connections(&self, direction: Direction) -> bool {
        self.path.direction(direction).keeps_connections()
    }

    fn go_to(&mut self, wanted: &Settings) -> Result<Instant, Refusal> {
        // Events up to now happen under the old settings.
        let now = self.release();
        if let Some(why) = Direction::BOTH.into_iter().find_map(|d| self.refuses(d, wanted)) {
            return Err(Refusal::new(why));
        }
        if self.settings.subscribers != wanted.subscribers
            && self.classifier.names() + wanted.subscribers.len() > MOST_NAMES
        {
            return Err(Refusal::new(format!(
                "there were {MOST_NAMES} names of subscribers since the start; start anew"
            )));
        }
        if self.settings.source != wanted.source {
            self.steer.restart(wanted.source.clone(), now).map_err(|e| Refusal::new(e.to_string()))?;
        }
        let replaced = Direction::BOTH.map(|d| differs(d, &self.settings, wanted));
        if self.settings.subscribers != wanted.subscribers {
            self.classifier.rename(&wanted.subscribers.named());
            self.enforcer.iter_mut().for_each(|enforcer| enforcer.renumber(&self.classifier));
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
        self.snapshot = None;
        Ok(now)
    }

    fn refuses(&self, direction: Direction, wanted: &Settings) -> Option<String> {
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

    fn read_back(&self) -> Result<(), String> {
        for direction in Direction::BOTH {
            let meant = self.settings.way(direction, |name| number(&self.classifier, name));
            self.path.direction(direction).read_back(&meant)?;
        }
        if self.classifier.has_subscribers(&self.settings.subscribers.named()) {
            return Ok(());
        }
        Err("the prefixes of subscribers are others than were meant".into())
    }

    fn own(&self) -> &Own {
        &self.own
    }

    fn by_hand(&mut self, by_hand: bool) {
        self.steer.by_hand(by_hand);
    }

    fn now(&self) -> Instant {
        self.now()
    }

    fn note(&mut self, now: Instant, what: String) {
        self.note(now, what);
    }

    fn records(&mut self) -> Records<'_> {
        Records { history: &mut self.history, changes: &mut self.changes, log: &mut self.log }
    }
}
