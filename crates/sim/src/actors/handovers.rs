//! Hosts that move from cell to cell: what becomes of their packets.
//!
//! A cell is the first link on the way from a host's router. When a host leaves its cell, what waits for it there goes on
//! to the new cell by way of the network; what waits to be sent by it stays with it. Until it has attached to the new cell
//! both wait there. What still comes to the old cell is forwarded as well, until the other end of the flow has learnt of
//! the new way. What a node of `[cooperation]` and its gateway say to each other is treated alike. This file keeps the state;
//! `sim/handovers.rs` moves packets.

use crate::segment::Segment;
use penstock_core::units::Instant;
use serde::Serialize;
use std::collections::BTreeMap;

/// Whose packets a host's are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mover {
    /// Those of a flow and its connections.
    Flow(u32),
    /// What a node and its gateway say to each other.
    Node(u32),
}

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
    pub old: [u32; 2],
    /// Those of the new one.
    pub new: [u32; 2],
    /// The routes of its packets from now on.
    pub routes: [u32; 2],
    /// The route from the old cell's base station to the host.
    pub forward: u32,
}

/// What happens next to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
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
    links: [u32; 2],
    forward: u32,
    /// Routes from this cursor on were made when it left: who is on one of them only passes by.
    since: u32,
}

/// Where a packet goes instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Nowhere else.
    On,
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
#[derive(Debug, Default)]
pub struct Host {
    attached: bool,
    /// Links of its cell.
    links: [u32; 2],
    /// The cursor of its first link, on its newest route.
    again: u32,
    past: Vec<Past>,
    /// The move of which the other end has learnt.
    known: Option<usize>,
    held: [Vec<Segment>; 2],
}

impl Host {
    /// It left a cell for another; `up` is where its new route comes to the cell's link.
    fn leave(&mut self, one: &Move, up: u32) {
        self.past.retain(|past| past.links != one.old && past.links != one.new);
        self.past.push(Past { links: one.old, forward: one.forward, since: one.routes[0] });
        (self.attached, self.links, self.again) = (false, one.new, up);
    }

    /// What becomes of a packet that comes to `link` at `cursor` of the table of routes. Who is turned back goes on by a later
    /// route, so nobody is turned back without end.
    fn way(&self, link: u32, cursor: u32) -> Way {
        if self.links.contains(&link) {
            return if self.attached { Way::On } else { Way::Held };
        }
        match self.past.iter().find(|past| past.links.contains(&link) && cursor < past.since) {
            Some(past) if past.links[1] == link => Way::By(past.forward),
            Some(_) => Way::By(self.again),
            None => Way::On,
        }
    }

    fn hold(&mut self, link: u32, packet: Segment) {
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
    /// What became of packets.
    pub counters: Counters,
}

impl Handovers {
    /// Nothing if nobody moves.
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

    /// The next step that is due at `now`. News that were overtaken by later ones are none.
    pub fn take_step(&mut self, now: Instant) -> Option<(Step, Move)> {
        while let Some((_, step, index)) = self.steps.get(self.done).copied().filter(|(at, ..)| *at <= now) {
            self.done += 1;
            let one = &self.moves[index];
            let known = self.hosts.get_mut(&one.who).map(|host| &mut host.known);
            match known {
                Some(known) if step == Step::Switch && *known > Some(index) => continue,
                Some(known) if step == Step::Switch => *known = Some(index),
                _ => {}
            }
            return Some((step, one.clone()));
        }
        None
    }

    /// The host of a move left its cell; its new route comes to the cell's link at the cursor `up`.
    pub fn leave(&mut self, one: &Move, up: u32) {
        self.counters.moves += u64::from(matches!(one.who, Mover::Flow(_)));
        self.hosts.entry(one.who).or_default().leave(one, up);
    }

    /// A host has attached: what waited, from it and then for it, each with its link.
    pub fn attach(&mut self, who: Mover) -> Vec<Segment> {
        let Some(host) = self.hosts.get_mut(&who) else { return Vec::new() };
        host.attached = true;
        std::mem::take(&mut host.held).into_iter().flatten().collect()
    }

    /// What becomes of a packet of `who` that comes to `link`. One that is to wait is kept.
    pub fn divert(&mut self, who: Mover, link: u32, packet: &Segment) -> Way {
        let Some(host) = self.hosts.get_mut(&who) else { return Way::On };
        let way = host.way(link, packet.cursor);
        match way {
            Way::Held => {
                self.counters.held += 1;
                host.hold(link, *packet);
            }
            Way::By(cursor) if cursor != host.again => self.counters.forwarded += 1,
            _ => {}
        }
        way
    }

    /// Packets that wait for their hosts to attach.
    pub fn waiting(&self) -> usize {
        self.hosts.values().flat_map(|host| &host.held).map(Vec::len).sum()
    }
}
