//! A tree of subscribers: who is served next, with a guaranteed rate, a ceiling and a weight for each.
//!
//! Sources: guarantees and ceilings of a tree as Linux sch_htb has them (Devera 2002); the guarantee by earliest deadline,
//! apart from what is shared, as the two criteria of Stoica, Zhang and Ng 1997 (HFSC) with linear curves; the rest by the
//! least virtual start (Goyal, Vin, Cheng 1996).
//!
//! ```text
//! descend    from the root on: of the children that may be served now,
//!            the earliest deadline among those whose guaranteed bytes are due       due <= now; due + L / guaranteed
//!            else the least virtual start
//! serve      by guarantee: due += size / guaranteed;  by weight: start += size / weight
//!            with a ceiling: free = max(free, now - 2 L / ceiling) + size / ceiling; not served before `free`
//! ```
//!
//! So a child gets its guarantee, and what all guarantees leave is divided by weight up to the ceilings. A group has at
//! least the sum of its members' guarantees, whoever of them is active. If guarantees are more than the link has, all are
//! cut in proportion.
//!
//! Bounds, with L the largest packet: two siblings that wait without a pause and below their ceilings get a rest whose
//! difference is at most `L / w_i + L / w_j` per unit of weight. Served bytes exceed a ceiling by at most three packets in any
//! interval. A guarantee is late by at most a packet at the rate of each node from the root down, and one at its own rate,
//! plus the pause of a ceiling above it. Nothing that may be served waits while the link is idle.
//!
//! Invariants: a node is ready if it has work (a leaf) or a ready child (a group) and its ceiling does not hold it; exactly
//! the ready children are in the orders of their parent. Cost: O(depth log n), no allocation per packet.

use super::Weight;
use super::tournament::Tournament;
use super::virtual_time::{ONE, span, start};
use crate::units::{Bytes, Instant, Rate, Serializer};

/// L for deadlines and for what a ceiling lets through at once: a frame of Ethernet.
const PACKET: Bytes = Bytes::new(1514);
/// Virtual time by which the start of a node can be ahead of its parent's: a packet of 2^20 bytes at the least weight.
const AHEAD: u64 = ONE << 20;
/// The root, which is the link.
const ROOT: usize = 0;

/// What is known of a node before packets come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// The branch above, by its place in the list; `None` below the link itself.
    pub parent: Option<usize>,
    /// Its part of what is left beyond guarantees.
    pub weight: Weight,
    /// What it gets in any case while it has packets; for a group at least the sum of its members.
    pub guaranteed: Option<Rate>,
    /// The most that it gets.
    pub ceiling: Option<Rate>,
}

/// A rate and the time to which it has been used.
#[derive(Debug, Clone)]
struct Clock {
    rate: Serializer,
    next: Instant,
}

impl Clock {
    fn new(rate: Rate) -> Self {
        Self { rate: Serializer::new(rate), next: Instant::ZERO }
    }

    fn use_up(&mut self, size: Bytes) {
        let took = self.rate.send(size);
        self.next += took;
    }

    /// What was used ahead of its time is used at the rate `before`, and from `now` on at that of this clock.
    fn go_on(&mut self, next: Instant, before: Rate, now: Instant) {
        self.next = if next > now { now + next.since(now).at_rate(before, self.rate.rate()) } else { next };
    }

    fn deadline(&self) -> Instant {
        self.next + self.rate.rate().time_for(PACKET)
    }
}

/// The children of a node, and the orders of those that may be served now.
#[derive(Debug, Clone)]
struct Below {
    children: Vec<u32>,
    /// By virtual start.
    shared: Tournament,
    /// Those whose guaranteed bytes are not known to be due, by the time at which they are.
    early: Tournament,
    /// Those whose guaranteed bytes are due, by deadline.
    due: Tournament,
    /// The start of the child that was served last by its weight.
    virtual_now: u64,
}

impl Below {
    fn new(children: Vec<u32>) -> Self {
        let order = || Tournament::new(children.len());
        Self { shared: order(), early: order(), due: order(), virtual_now: 0, children }
    }
}

#[derive(Debug, Clone)]
struct Node {
    parent: usize,
    /// Its place among the children of its parent.
    place: u32,
    weight: Weight,
    guaranteed: Option<Clock>,
    ceiling: Option<Clock>,
    start: u64,
    /// True while the ceiling holds it.
    held: bool,
    /// Number of children with packets below them, held or not; of a leaf, whether it has some.
    working: u32,
    /// Number of children that are ready; of a leaf, whether it has packets.
    able: u32,
    /// True while it is in the orders of its parent.
    ready: bool,
    /// True if it goes on where it was in another order.
    resumes: bool,
}

/// Whether a node was chosen to keep its guarantee or by its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Guarantee,
    Weight,
}

/// The order in which the leaves of a tree are served. Branches are known by their places in the list of
/// [`Order::new`].
#[derive(Debug, Clone)]
pub struct Order {
    /// The root, then the branches.
    nodes: Vec<Node>,
    below: Vec<Below>,
    branches: Vec<Branch>,
    /// Nodes that a ceiling holds, by the time at which they are free.
    held: Tournament,
    /// The nodes that were chosen last, from the top down.
    path: Vec<(usize, By)>,
}

/// Returns what each branch has guaranteed: its own, or the sum of its members if that is more.
pub fn guaranteed(branches: &[Branch]) -> Vec<u64> {
    let mut sums = vec![0u64; branches.len()];
    // A member comes after its group or before it: each adds itself to all that are above it.
    let own = |at: usize| branches[at].guaranteed.map_or(0, Rate::as_bps);
    let mut order: Vec<usize> = (0..branches.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(depth(branches, *at)));
    for at in order {
        sums[at] = sums[at].max(own(at));
        if let Some(parent) = branches[at].parent {
            sums[parent] = sums[parent].saturating_add(sums[at]);
        }
    }
    sums
}

/// Returns how many branches are above this one; at most their number, also if they go round in a circle.
pub fn depth(branches: &[Branch], at: usize) -> usize {
    std::iter::successors(branches[at].parent, |above| branches[*above].parent).take(branches.len()).count()
}

impl Order {
    /// Creates the order of a tree without packets, before a link of this rate. Parents must exist and must not go round in
    /// a circle. Branches without children are leaves.
    pub fn new(branches: Vec<Branch>, rate: Rate) -> Self {
        let mut children = vec![Vec::new(); branches.len() + 1];
        for (at, branch) in (1..).zip(&branches) {
            children[branch.parent.map_or(ROOT, |parent| parent + 1)].push(at);
        }
        let mut places = vec![0; branches.len() + 1];
        children.iter().for_each(|siblings| (0..).zip(siblings).for_each(|(n, at)| places[*at as usize] = n));
        let node = |at: usize| {
            let branch = at.checked_sub(1).map(|at| branches[at]);
            Node {
                parent: branch.and_then(|branch| branch.parent).map_or(ROOT, |parent| parent + 1),
                place: places[at],
                weight: branch.map_or(Weight::ONE, |branch| branch.weight),
                guaranteed: None,
                ceiling: branch.and_then(|branch| branch.ceiling).map(Clock::new),
                start: 0,
                held: false,
                working: 0,
                able: 0,
                ready: false,
                resumes: false,
            }
        };
        let nodes: Vec<Node> = (0..=branches.len()).map(node).collect();
        let (held, below) = (Tournament::new(nodes.len()), children.into_iter().map(Below::new).collect());
        let mut order = Self { nodes, below, branches, held, path: Vec::new() };
        order.set_rate(rate, Instant::ZERO);
        order
    }

    /// A branch goes on where it was as another branch of another order, which it replaces: what it used of its rates, and
    /// how far it is before its siblings. Call it before the leaves of this order get work.
    pub fn resume(&mut self, branch: usize, old: &Self, was: usize, now: Instant) {
        let (before, after) = (&old.nodes[was + 1], &mut self.nodes[branch + 1]);
        let ahead = before.start.wrapping_sub(old.below[before.parent].virtual_now);
        after.start = if ahead <= AHEAD { ahead } else { 0 };
        after.resumes = before.working > 0;
        for (new, old) in [(&mut after.guaranteed, &before.guaranteed), (&mut after.ceiling, &before.ceiling)] {
            if let (Some(new), Some(old)) = (new, old) {
                new.go_on(old.next, old.rate.rate(), now);
            }
        }
        if let (true, Some(ceiling)) = (before.held, &after.ceiling) {
            after.held = true;
            self.held.set(branch as u32 + 1, ceiling.next.as_nanos());
        }
    }

    /// The link has this rate from now on.
    pub fn set_rate(&mut self, rate: Rate, now: Instant) {
        let sums = guaranteed(&self.branches);
        let top = self.branches.iter().zip(&sums).filter(|(branch, _)| branch.parent.is_none());
        let promised = top.fold(0u64, |sum, (_, own)| sum.saturating_add(*own)).max(1);
        let cut = |own: u64| u128::from(own) * u128::from(rate.as_bps().min(promised)) / u128::from(promised);
        for (node, sum) in self.nodes.iter_mut().skip(1).zip(sums).filter(|(_, sum)| *sum > 0) {
            let mut clock = Clock::new(Rate::from_bps(cut(sum) as u64));
            if let Some(old) = &node.guaranteed {
                clock.go_on(old.next, old.rate.rate(), now);
            }
            if node.ready && clock.next > now {
                self.below[node.parent].early.set(node.place, clock.next.as_nanos());
            }
            node.guaranteed = Some(clock);
        }
    }

    /// The branches of which the tree was made.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// Tells whether a leaf has packets that can be sent.
    pub fn set_work(&mut self, leaf: usize, work: bool, now: Instant) {
        self.work(leaf + 1, u32::from(work), now);
    }

    fn work(&mut self, at: usize, working: u32, now: Instant) {
        let before = std::mem::replace(&mut self.nodes[at].working, working);
        if (before > 0) != (working > 0) && at != ROOT {
            let resumes = std::mem::take(&mut self.nodes[at].resumes);
            if let (true, false, Some(due)) = (working > 0, resumes, &mut self.nodes[at].guaranteed) {
                due.next = due.next.max(now);
            }
            let parent = self.nodes[at].parent;
            let others = self.nodes[parent].working;
            self.work(parent, if working > 0 { others + 1 } else { others - 1 }, now);
        }
        if self.below[at].children.is_empty() {
            self.nodes[at].able = working;
            self.settle(at);
        }
    }

    /// Puts a node into the orders of its parent, or takes it out, as its state says.
    fn settle(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let is = node.able > 0 && !node.held;
        if node.ready == is || at == ROOT {
            return;
        }
        node.ready = is;
        let (parent, place, siblings) = (node.parent, node.place, &mut self.below[node.parent]);
        if is {
            node.start = start(node.start, siblings.virtual_now, AHEAD);
            siblings.shared.set(place, node.start);
            if let Some(due) = &node.guaranteed {
                siblings.early.set(place, due.next.as_nanos());
            }
            self.nodes[parent].able += 1;
        } else {
            [&mut siblings.shared, &mut siblings.early, &mut siblings.due]
                .into_iter()
                .for_each(|in_it| in_it.remove(place));
            self.nodes[parent].able -= 1;
        }
        self.settle(parent);
    }

    /// Lets those go that their ceilings hold no longer.
    fn release(&mut self, now: Instant) {
        while let Some(first) = self.held.first().filter(|first| first.at <= now.as_nanos()) {
            self.held.remove(first.class);
            self.nodes[first.class as usize].held = false;
            self.settle(first.class as usize);
        }
    }

    /// Returns when a ceiling lets go the first of those that wait, if nobody can be served before.
    pub fn next_release(&self) -> Option<Instant> {
        let wait = self.nodes[ROOT].able == 0 && self.nodes[ROOT].working > 0;
        self.held.first().filter(|_| wait).map(|first| Instant::from_nanos(first.at))
    }

    /// Returns the leaf to serve next; `None` if none may be served now. [`Order::served`] or [`Order::set_work`] for this
    /// leaf must be the next call.
    pub fn next(&mut self, now: Instant) -> Option<usize> {
        self.release(now);
        self.path.clear();
        let mut at = ROOT;
        loop {
            let (child, by) = self.pick(at, now)?;
            self.path.push((child, by));
            if self.below[child].children.is_empty() {
                return Some(child - 1);
            }
            at = child;
        }
    }

    fn pick(&mut self, at: usize, now: Instant) -> Option<(usize, By)> {
        let below = &mut self.below[at];
        while let Some(first) = below.early.first().filter(|first| first.at <= now.as_nanos()) {
            below.early.remove(first.class);
            let child = &self.nodes[below.children[first.class as usize] as usize];
            let deadline = child.guaranteed.as_ref().map_or(now, Clock::deadline);
            below.due.set(first.class, deadline.as_nanos());
        }
        let (first, by) = match below.due.first() {
            Some(first) => (first, By::Guarantee),
            None => (below.shared.first()?, By::Weight),
        };
        Some((below.children[first.class as usize] as usize, by))
    }

    /// The leaf that [`Order::next`] returned sent a packet of this size.
    pub fn served(&mut self, size: Bytes, now: Instant) {
        for step in 0..self.path.len() {
            let (at, by) = self.path[step];
            let node = &mut self.nodes[at];
            let siblings = &mut self.below[node.parent];
            match (by, &mut node.guaranteed) {
                (By::Guarantee, Some(due)) => {
                    due.use_up(size);
                    siblings.due.remove(node.place);
                    siblings.early.set(node.place, due.next.as_nanos());
                }
                _ => {
                    siblings.virtual_now = node.start;
                    node.start = node.start.wrapping_add(span(size.min(Bytes::new(1 << 20)), node.weight));
                    siblings.shared.set(node.place, node.start);
                }
            }
        }
        for step in 0..self.path.len() {
            self.hold(self.path[step].0, size, now);
        }
    }

    /// Lets the ceiling of a node hold it after a packet, if it has one.
    fn hold(&mut self, at: usize, size: Bytes, now: Instant) {
        let node = &mut self.nodes[at];
        let Some(ceiling) = &mut node.ceiling else { return };
        let at_once = ceiling.rate.rate().time_for(PACKET * 2);
        ceiling.next = ceiling.next.max(Instant::from_nanos(now.as_nanos().saturating_sub(at_once.as_nanos())));
        ceiling.use_up(size);
        if ceiling.next > now {
            node.held = true;
            self.held.set(at as u32, ceiling.next.as_nanos());
            self.settle(at);
        }
    }
}
