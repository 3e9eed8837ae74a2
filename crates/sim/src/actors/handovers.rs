//! Hosts that move from cell to cell: what becomes of their packets.
//!
//! A cell is the first link on the way from a host's router. When a host leaves its cell, what waits for it there goes on
//! to the new cell by way of the network; what waits to be sent by it stays with it. Until it has attached to the new cell
//! both wait there. What still comes to the old cell is forwarded as well, until the other end of the flow has learnt of
//! the new way. What a node of `[cooperation]` and its gateway say to each other is treated alike.

use super::action::{Action, Context, Mover};
use crate::numbers::LinkDir;
use crate::segment::Segment;
use penstock_core::units::Instant;
use serde::Serialize;
use std::collections::BTreeMap;

/// A host moves, of one flow or of a node's client.
#[derive(Debug, Clone)]
pub struct Move {
    /// Whose packets are concerned.
    pub who: Mover,
    /// It is the flow's server.
    pub server: bool,
    /// What is in the air when it leaves is lost.
    pub loses_air: bool,
    /// When it leaves its cell.
    pub leaves: Instant,
    /// When it has attached to the new one.
    pub attaches: Instant,
    /// When the other end sends by the new way.
    pub switches: Instant,
    /// The links of the old cell: from the host, to it.
    pub old: [LinkDir; 2],
    /// Those of the new one.
    pub new: [LinkDir; 2],
    /// The routes of its packets from now on.
    pub routes: [u32; 2],
    /// The route from the old cell's base station to the host.
    pub forward: u32,
}

/// What happens next to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// It leaves its cell.
    Leave,
    /// It attaches to the new one.
    Attach,
    /// The other end learns of the new way.
    Switch,
}

/// A cell in which a host was.
#[derive(Debug, Clone, Copy)]
struct Past {
    links: [LinkDir; 2],
    forward: u32,
    /// Routes from this cursor on were made when it left: a packet on one of them only passes this cell.
    since: u32,
}

/// Where a packet goes instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diversion {
    /// Nowhere else: it goes on.
    None,
    /// It waits until the host has attached.
    Held,
    /// By the route that begins at this cursor.
    By(u32),
}

/// What became of the packets of moved flows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Hosts that left a cell, a flow each; a node's client is not counted.
    pub moves: u64,
    /// Packets sent on from a cell whose host had left.
    pub forwarded: u64,
    /// Packets that waited for a host to attach, at either side.
    pub held: u64,
    /// Packets that were in the air when their host left, and were lost.
    pub lost_in_air: u64,
}

/// A host that has moved.
#[derive(Debug)]
struct Host {
    attached: bool,
    /// Links of its cell.
    links: [LinkDir; 2],
    /// The cursor of its first link, on its newest route.
    again: u32,
    past: Vec<Past>,
    /// The move of which the other end has learnt.
    known: Option<usize>,
    held: [Vec<Segment>; 2],
}

impl Host {
    /// It is about to leave its first cell.
    fn new(cell: [LinkDir; 2]) -> Self {
        Self { attached: true, links: cell, again: 0, past: Vec::new(), known: None, held: [const { Vec::new() }; 2] }
    }

    /// It left a cell for another; `up` is where its new route comes to the cell's link.
    fn leave(&mut self, one: &Move, up: u32) {
        self.past.retain(|past| past.links != one.old && past.links != one.new);
        self.past.push(Past { links: one.old, forward: one.forward, since: one.routes[0] });
        (self.attached, self.links, self.again) = (false, one.new, up);
    }

    /// What becomes of a packet that comes to `link` at `cursor` of the table of routes. A packet that is turned back goes on
    /// by a later route, so none is turned back without end.
    fn diversion(&self, link: LinkDir, cursor: u32) -> Diversion {
        if self.links.contains(&link) {
            return if self.attached { Diversion::None } else { Diversion::Held };
        }
        match self.past.iter().find(|past| past.links.contains(&link) && cursor < past.since) {
            Some(past) if past.links[1] == link => Diversion::By(past.forward),
            Some(_) => Diversion::By(self.again),
            None => Diversion::None,
        }
    }

    fn hold(&mut self, link: LinkDir, packet: Segment) {
        self.held[usize::from(link == self.links[1])].push(packet);
    }
}

/// All moves of a run.
#[derive(Debug, Default)]
pub struct Handovers {
    moves: Vec<Move>,
    /// In order of time.
    steps: Vec<(Instant, Step, usize)>,
    done: usize,
    hosts: BTreeMap<Mover, Host>,
    rerouted: Vec<u32>,
    /// What became of packets.
    pub counters: Counters,
}

impl Handovers {
    /// Plans the steps of these moves; `None` without a move.
    pub fn new(moves: Vec<Move>) -> Option<Box<Self>> {
        let steps_of = |(index, one): (usize, &Move)| {
            [(one.leaves, Step::Leave, index), (one.attaches, Step::Attach, index), (one.switches, Step::Switch, index)]
        };
        let mut steps: Vec<_> = moves.iter().enumerate().flat_map(steps_of).collect();
        steps.sort_by_key(|(at, step, index)| (*at, *index, *step));
        (!moves.is_empty()).then(|| Box::new(Self { moves, steps, ..Self::default() }))
    }

    /// When the next step is due.
    pub fn next(&self) -> Option<Instant> {
        self.steps.get(self.done).map(|(at, ..)| *at)
    }

    /// The next step that is due, if one is. A message that was overtaken by a later one has no effect.
    fn take_step(&mut self, now: Instant) -> Option<(Step, usize)> {
        while let Some((_, step, index)) = self.steps.get(self.done).copied().filter(|(at, ..)| *at <= now) {
            self.done += 1;
            let known = self.hosts.get_mut(&self.moves[index].who).map(|host| &mut host.known);
            match known {
                Some(known) if step == Step::Switch && *known > Some(index) => continue,
                Some(known) if step == Step::Switch => *known = Some(index),
                _ => {}
            }
            return Some((step, index));
        }
        None
    }

    /// Takes the next step that is due; false if none is.
    pub fn step(&mut self, context: &mut Context<'_>) -> bool {
        let Some((step, index)) = self.take_step(context.now) else { return false };
        let one = self.moves[index].clone();
        match step {
            Step::Leave => self.leave(&one, context),
            Step::Attach => self.attach(&one, context),
            Step::Switch => reroute(&one, usize::from(!one.server), context),
        }
        // From when on a client sends by the new way: its host is there, or it has learnt of the server's move.
        let sends = if one.server { Step::Switch } else { Step::Attach };
        if let (Mover::Flow(flow), true) = (one.who, step == sends) {
            self.rerouted.push(flow);
        }
        true
    }

    /// The flows whose clients send by another way since this was last asked.
    pub fn take_rerouted(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.rerouted)
    }

    /// What waits in the old cell goes on from there; new packets of the host take the new route.
    fn leave(&mut self, one: &Move, context: &mut Context<'_>) {
        self.counters.moves += u64::from(matches!(one.who, Mover::Flow(_)));
        let end = usize::from(one.server);
        let own = one.routes[end];
        // A cell's link comes after that of the host itself, if these are not the same.
        let up = own + u32::from(context.hop(own) != one.new[0].place());
        self.hosts.entry(one.who).or_insert_with(|| Host::new(one.old)).leave(one, up);
        reroute(one, end, context);
        context.act(Action::Leave { who: one.who, cell: one.old, loses_air: one.loses_air });
    }

    /// What waited, from the host and then for it, goes on.
    fn attach(&mut self, one: &Move, context: &mut Context<'_>) {
        if let Some(host) = self.hosts.get_mut(&one.who) {
            host.attached = true;
            for mut packet in std::mem::take(&mut host.held).into_iter().flatten() {
                packet.at = context.now;
                context.act(Action::Send(packet));
            }
        }
        if let Mover::Node(node) = one.who {
            context.act(Action::Attached { node, old: one.old[0], new: one.new[0] });
        }
    }

    /// What becomes of a packet of `who` that comes to `link`. One that is to wait is kept.
    pub fn divert(&mut self, who: Mover, link: LinkDir, packet: &Segment) -> Diversion {
        let Some(host) = self.hosts.get_mut(&who) else { return Diversion::None };
        let diversion = host.diversion(link, packet.cursor);
        match diversion {
            Diversion::Held => {
                self.counters.held += 1;
                host.hold(link, *packet);
            }
            Diversion::By(cursor) if cursor != host.again => self.counters.forwarded += 1,
            _ => {}
        }
        diversion
    }

    /// Packets that wait for their hosts to attach.
    pub fn waiting(&self) -> usize {
        self.hosts.values().flat_map(|host| &host.held).map(Vec::len).sum()
    }
}

/// One end takes its new route.
fn reroute(one: &Move, end: usize, context: &mut Context<'_>) {
    context.act(Action::Reroute { who: one.who, end, route: one.routes[end] });
}
