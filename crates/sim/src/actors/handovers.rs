//! Handovers: hosts move from cell to cell, and this file decides what becomes of their packets.
//!
//! A cell is the first link on the path from a host's router. When a host leaves its cell, the packets that wait there
//! for it are forwarded through the network to the new cell, and the packets that it has yet to send stay with it.
//! Until the host has attached to the new cell, both wait there. Packets that still come to the old cell are forwarded
//! as well, until the other end of the flow has learnt of the new route. Messages between a node of `[cooperation]` and
//! its gateway are treated in the same way.

use super::action::{Action, Context, Mover};
use crate::numbers::LinkDir;
use crate::segment::Segment;
use penstock_core::units::Instant;
use serde::Serialize;
use std::collections::BTreeMap;

/// A move of one host from a cell to another: of one end of a flow, or of a node's client.
#[derive(Debug, Clone)]
pub struct Move {
    /// Whose packets are concerned.
    pub who: Mover,
    /// True if the host is the flow's server.
    pub server: bool,
    /// True if packets in flight on the cell's links are lost when the host leaves.
    pub loses_air: bool,
    /// When the host leaves its cell.
    pub leaves: Instant,
    /// When the host has attached to the new cell.
    pub attaches: Instant,
    /// When the other end begins to send by the new route.
    pub switches: Instant,
    /// The links of the old cell: from the host, then to the host.
    pub old: [LinkDir; 2],
    /// The links of the new cell: from the host, then to the host.
    pub new: [LinkDir; 2],
    /// Cursors of the new routes: from the client, then from the server or the gateway.
    pub routes: [u32; 2],
    /// Cursor of the route from the base station of the old cell to the host.
    pub forward: u32,
}

/// A step of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The host leaves its cell.
    Leave,
    /// The host attaches to the new cell.
    Attach,
    /// The other end learns of the new route.
    Switch,
}

/// A cell which a host has left.
#[derive(Debug, Clone, Copy)]
struct Past {
    links: [LinkDir; 2],
    forward: u32,
    /// Routes which begin at this cursor or later were made when the host left: a packet on one of them only passes
    /// this cell.
    since: u32,
}

/// Where a packet that comes to a link goes instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diversion {
    /// The packet goes on over the link.
    None,
    /// The packet is held until the host has attached.
    Held,
    /// The packet takes the route that begins at this cursor.
    By(u32),
}

/// Counters of handovers and of the packets of moved hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Counters {
    /// Number of moves, one for each flow; moves of a node's client are not counted.
    pub moves: u64,
    /// Number of packets forwarded from a cell whose host had left.
    pub forwarded: u64,
    /// Number of packets that were held until a host had attached, on either side of the link.
    pub held: u64,
    /// Number of packets that were in flight when their host left, and were lost.
    pub lost_in_air: u64,
}

/// The state of a host that has moved.
#[derive(Debug)]
struct Host {
    attached: bool,
    /// The links of its current cell: from the host, then to the host.
    links: [LinkDir; 2],
    /// The cursor of the cell's link on the host's newest route.
    again: u32,
    past: Vec<Past>,
    /// The newest move of which the other end has learnt; `None` before the first.
    known: Option<usize>,
    held: [Vec<Segment>; 2],
}

impl Host {
    /// Creates the state of a host in its first cell.
    fn new(cell: [LinkDir; 2]) -> Self {
        Self { attached: true, links: cell, again: 0, past: Vec::new(), known: None, held: [const { Vec::new() }; 2] }
    }

    /// Leaves the old cell for the new one; `up` is the cursor at which the new route reaches the link of the new cell.
    fn leave(&mut self, one: &Move, up: u32) {
        self.past.retain(|past| past.links != one.old && past.links != one.new);
        self.past.push(Past { links: one.old, forward: one.forward, since: one.routes[0] });
        (self.attached, self.links, self.again) = (false, one.new, up);
    }

    /// Decides about a packet that comes to `link` with this cursor. A packet that is turned back takes a route which
    /// was made later, so no packet is turned back for ever.
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

/// All moves of a run, and the hosts that have moved.
#[derive(Debug, Default)]
pub struct Handovers {
    moves: Vec<Move>,
    /// The steps of all moves in order of time: when, which step, and the index of the move.
    steps: Vec<(Instant, Step, usize)>,
    done: usize,
    hosts: BTreeMap<Mover, Host>,
    rerouted: Vec<u32>,
    /// What became of packets so far.
    pub counters: Counters,
}

impl Handovers {
    /// Plans the steps of these moves; returns `None` without a move.
    pub fn new(moves: Vec<Move>) -> Option<Box<Self>> {
        let steps_of = |(index, one): (usize, &Move)| {
            [(one.leaves, Step::Leave, index), (one.attaches, Step::Attach, index), (one.switches, Step::Switch, index)]
        };
        let mut steps: Vec<_> = moves.iter().enumerate().flat_map(steps_of).collect();
        steps.sort_by_key(|(at, step, index)| (*at, *index, *step));
        (!moves.is_empty()).then(|| Box::new(Self { moves, steps, ..Self::default() }))
    }

    /// Returns when the next step is due; `None` after the last.
    pub fn next(&self) -> Option<Instant> {
        self.steps.get(self.done).map(|(at, ..)| *at)
    }

    /// Returns the next step that is due, if there is one. When messages about two moves arrive in the wrong order, the
    /// older one has no effect.
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

    /// Takes the next step that is due; returns false if none is due.
    pub fn step(&mut self, context: &mut Context<'_>) -> bool {
        let Some((step, index)) = self.take_step(context.now) else { return false };
        let one = self.moves[index].clone();
        match step {
            Step::Leave => self.leave(&one, context),
            Step::Attach => self.attach(&one, context),
            Step::Switch => reroute(&one, usize::from(!one.server), context),
        }
        // A client sends by a new route when it has attached itself, or when it has learnt of the server's move.
        let sends = if one.server { Step::Switch } else { Step::Attach };
        if let (Mover::Flow(flow), true) = (one.who, step == sends) {
            self.rerouted.push(flow);
        }
        true
    }

    /// Returns the flows whose clients began to send by another route since the last call.
    pub fn take_rerouted(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.rerouted)
    }

    /// Leaves the old cell: packets that wait there are diverted, and new packets of the host take the new route.
    fn leave(&mut self, one: &Move, context: &mut Context<'_>) {
        self.counters.moves += u64::from(matches!(one.who, Mover::Flow(_)));
        let end = usize::from(one.server);
        let own = one.routes[end];
        // The cell's link comes after the access link of the host, unless the access link is the cell.
        let up = own + u32::from(context.hop(own) != one.new[0].place());
        self.hosts.entry(one.who).or_insert_with(|| Host::new(one.old)).leave(one, up);
        reroute(one, end, context);
        context.act(Action::Leave { who: one.who, cell: one.old, loses_air: one.loses_air });
    }

    /// Attaches to the new cell: packets that were held go on, those from the host first.
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

    /// Decides about a packet of `who` that comes to `link`, and keeps the packet if it has to wait.
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
}

/// Lets one end of a move take its new route.
fn reroute(one: &Move, end: usize, context: &mut Context<'_>) {
    context.act(Action::Reroute { who: one.who, end, route: one.routes[end] });
}
