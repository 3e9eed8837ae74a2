//! Enforcement: the discipline of the upload is told the budgets of hosts, so that it holds each to its own.
//!
//! A session tells a budget and the address from which it was begun; a discipline knows numbers of nodes, which the table
//! of connections gives when packets come and takes away when a host is silent. So budgets are told when they change, and
//! again when a host gets its number. The rules are those of [`penstock_core::ack::qrm`].
//!
//! ```text
//! budget of a node   the sum of the budgets of all sessions from its addresses
//! rest               rate of the upload - the sum of all budgets       shared by nodes without a session
//! ```
//!
//! Without enforcement the same is counted and nothing is told: who takes more than its budget is seen, and not held.

use crate::held::Held as HeldPacket;
use crate::tap::{Around, Entries, Known, Tap};
use penstock_budgets::gateway::Grant;
use penstock_core::fact::Fact;
use penstock_core::packet::{NodeId, Packet};
use penstock_core::qdisc::{Backlog, DropReason};
use penstock_core::units::{Bytes, Instant, Rate};
use penstock_core::wire::{End, HostKey, RealPacket};
use penstock_shaper::classify::{Classifier, PacketFacts};
use penstock_shaper::direction::Direction;
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::time::Duration;

/// What came from a node and what of it was refused since it has its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Count {
    /// Packets and bytes that came.
    pub arrived: Backlog,
    /// Packets and bytes that the discipline refused, because they were beyond the budget.
    pub policed: Backlog,
}

/// What came of a node in a second may exceed its budget by this part, which packets of the seconds before and after it
/// make, in percent.
const TOLERANCE_PERCENT: u64 = 5;

/// A node whose budget was told.
#[derive(Debug, Clone, Copy)]
struct Told {
    budget: Rate,
    /// What had come and passed at the last two ticks.
    counts: [Count; 2],
}

/// Holds hosts to their budgets.
#[derive(Debug)]
pub struct Enforcer {
    /// False if hosts are only counted.
    enforces: bool,
    upload: Rate,
    grants: Vec<Grant>,
    /// The budgets of hosts with sessions, by address.
    hosts: HashMap<HostKey, Rate>,
    told: HashMap<NodeId, Told>,
    rest: Option<Rate>,
    /// One for each number of a node, and the last for what belongs to nobody.
    counts: Vec<Count>,
    /// The sums since the start of hosts without and with a session.
    sums: [Count; 2],
    ticked: [Instant; 2],
}

/// What a host with a session used of its budget in the last second, in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Used {
    /// The budget of its address, of all sessions from there.
    pub budget_bps: u64,
    /// What came of it.
    pub offered_bps: u64,
    /// What passed of that.
    pub used_bps: u64,
    /// True if more came than its budget.
    pub over: bool,
}

impl Used {
    /// Compares a budget with what has come between two counts, the newer one first.
    pub(crate) fn within(time: Duration, budget_bps: u64, counts: [Count; 2]) -> Self {
        let rate = |of: fn(&Count) -> u64| {
            let [now, before] = counts.each_ref().map(of);
            (u128::from(now.saturating_sub(before)) * 8_000_000_000 / time.as_nanos().max(1)) as u64
        };
        let offered_bps = rate(|count| count.arrived.bytes);
        let used_bps = rate(|count| count.arrived.bytes.saturating_sub(count.policed.bytes));
        let over = u128::from(offered_bps) * 100 > u128::from(budget_bps) * u128::from(100 + TOLERANCE_PERCENT);
        Self { budget_bps, offered_bps, used_bps, over }
    }
}

/// A host with a session, as the status tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Held {
    /// The number of the node among those with sessions.
    pub node: u32,
    /// The address of its session.
    pub address: IpAddr,
    /// What it used of its budget.
    #[serde(flatten)]
    pub used: Used,
    /// What came and what was refused.
    #[serde(flatten)]
    pub count: Count,
}

/// Who keeps to its budget, as the status tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Enforcement {
    /// False if hosts are not held to budgets, but only counted.
    pub enforces: bool,
    /// What passed of hosts with a session in the last second, in bits per second. Sessions of one address count once.
    pub used_bps: u64,
    /// Number of hosts with a session of which more came than their budgets, in the last second.
    pub over: usize,
    /// What hosts without a session share, in bits per second.
    pub rest_bps: u64,
    /// Hosts with a session.
    pub nodes: Vec<Held>,
    /// What came since the start of hosts while they had a session, and what was refused.
    pub sessions: Count,
    /// The same of hosts while they had none.
    pub strangers: Count,
}

impl Enforcer {
    /// Creates an enforcer that knows no session; the table of connections gives at most `nodes` numbers. Without
    /// `enforces` it counts, and tells nobody.
    pub fn new(enforces: bool, upload: Rate, nodes: usize) -> Self {
        Self {
            enforces,
            upload,
            grants: Vec::new(),
            hosts: HashMap::new(),
            told: HashMap::new(),
            rest: None,
            counts: vec![Count::default(); nodes + 1],
            sums: Default::default(),
            ticked: [Instant::ZERO; 2],
        }
    }

    /// True if hosts are held to budgets, and not only counted.
    pub fn enforces(&self) -> bool {
        self.enforces
    }

    /// The rate of the upload is another one.
    pub fn set_upload(&mut self, upload: Rate, tell: impl FnMut(&Fact)) {
        self.upload = upload;
        self.tell_rest(tell);
    }

    /// Takes the budgets of all sessions, and tells what has changed.
    pub fn set_budgets(&mut self, grants: Vec<Grant>, classifier: &Classifier, mut tell: impl FnMut(&Fact)) {
        let enforces = self.enforces;
        let mut wanted: HashMap<NodeId, Rate> = HashMap::new();
        self.hosts.clear();
        for Grant { address, budget, .. } in &grants {
            let Some(host) = HostKey::at(*address) else { continue };
            add(&mut self.hosts, host, *budget);
            if let Some(node) = classifier.table.subscribers.known(host) {
                add(&mut wanted, node, *budget);
            }
        }
        self.grants = grants;
        for (node, _) in self.told.extract_if(|node, _| !wanted.contains_key(node)) {
            if enforces {
                tell(&Fact::Budget { node, budget: None });
            }
        }
        wanted.into_iter().for_each(|(node, budget)| self.tell_budget(node, budget, &mut tell));
        self.tell_rest(tell);
    }

    /// Numbers of nodes belong to others from now on. For those who only count; what is told would have to be taken back.
    pub fn renumber(&mut self, classifier: &Classifier) {
        self.told.clear();
        self.counts = vec![Count::default(); classifier.table.subscribers.numbers() + 1];
        let grants = std::mem::take(&mut self.grants);
        self.set_budgets(grants, classifier, |_| {});
    }

    fn tell_budget(&mut self, node: NodeId, budget: Rate, mut tell: impl FnMut(&Fact)) {
        let counts = [self.count(node); 2];
        let before = self.told.get(&node).copied();
        if before.is_none_or(|told| told.budget != budget) {
            self.told.insert(node, Told { budget, counts: before.map_or(counts, |told| told.counts) });
            if self.enforces {
                tell(&Fact::Budget { node, budget: Some(budget) });
            }
        }
    }

    fn tell_rest(&mut self, mut tell: impl FnMut(&Fact)) {
        let granted = self.hosts.values().fold(0u64, |sum, budget| sum.saturating_add(budget.as_bps()));
        let rest = Rate::from_bps(self.upload.as_bps().saturating_sub(granted));
        if self.rest.replace(rest) != Some(rest) && self.enforces {
            tell(&Fact::Rest(rest));
        }
    }

    /// A packet of an upload comes, after the discipline was told the facts that come with it. Returns its node.
    pub fn arrives(
        &mut self,
        packet: &RealPacket,
        facts: &PacketFacts,
        classifier: &Classifier,
        tell: impl FnMut(&Fact),
    ) -> NodeId {
        let fresh = facts.owner().filter(|owner| owner.fresh);
        if let (Some(owner), Some(host)) = (fresh, HostKey::of(packet.bytes(), packet.headers(), End::Source)) {
            self.begins(owner.node, host, tell);
        }
        let node = classifier.node_of(Packet::flow(packet));
        self.both(node).into_iter().for_each(|count| count.arrived.add(packet.size()));
        node
    }

    /// A number belongs to this host from now on; the discipline has forgotten the host that had it before.
    fn begins(&mut self, node: NodeId, host: HostKey, tell: impl FnMut(&Fact)) {
        self.told.remove(&node);
        *self.both(node)[0] = Count::default();
        if let Some(budget) = self.hosts.get(&host).copied() {
            self.tell_budget(node, budget, tell);
        }
    }

    fn count(&self, node: NodeId) -> Count {
        self.counts[place(node, &self.counts)]
    }

    /// Returns what is counted of a node, and the sum of which that is a part.
    fn both(&mut self, node: NodeId) -> [&mut Count; 2] {
        let (place, has_session) = (place(node, &self.counts), self.told.contains_key(&node));
        [&mut self.counts[place], &mut self.sums[usize::from(has_session)]]
    }

    /// The discipline has refused a packet of a node.
    pub fn refused(&mut self, node: NodeId, size: Bytes) {
        if self.enforces {
            self.both(node).into_iter().for_each(|count| count.policed.add(size));
        }
    }

    /// Ends a second: what a node used is that of the last one.
    pub fn tick(&mut self, now: Instant) {
        self.ticked = [now, self.ticked[0]];
        for (node, told) in &mut self.told {
            told.counts = [self.counts[place(*node, &self.counts)], told.counts[0]];
        }
    }

    /// Returns the budget of a node with a session in bits per second, and what came of a node.
    pub fn of(&self, node: Option<NodeId>) -> (Option<u64>, Count) {
        let budget = node.and_then(|node| self.told.get(&node)).map(|told| told.budget.as_bps());
        (budget, node.map(|node| self.count(node)).unwrap_or_default())
    }

    /// Returns what the status tells.
    pub fn report(&self, classifier: &Classifier) -> Enforcement {
        let time = Duration::from_nanos(self.ticked[0].since(self.ticked[1]).as_nanos());
        let used = |told: &Told| Used::within(time, told.budget.as_bps(), told.counts);
        let held = |grant: &Grant| {
            let node = HostKey::at(grant.address).and_then(|host| classifier.table.subscribers.known(host));
            let told = node.and_then(|node| self.told.get(&node));
            let unseen = Used { budget_bps: grant.budget.as_bps(), ..Used::default() };
            Held {
                node: grant.node,
                address: grant.address,
                used: told.map_or(unseen, used),
                count: node.map(|node| self.count(node)).unwrap_or_default(),
            }
        };
        let [strangers, sessions] = self.sums;
        Enforcement {
            enforces: self.enforces,
            used_bps: self.told.values().map(|told| used(told).used_bps).sum(),
            over: self.told.values().filter(|told| used(told).over).count(),
            rest_bps: self.rest.unwrap_or(self.upload).as_bps(),
            nodes: self.grants.iter().map(held).collect(),
            sessions,
            strangers,
        }
    }
}

/// The direction in which budgets hold.
pub const UP: Direction = Direction::Reverse;

impl Tap for Enforcer {
    fn arrives(&mut self, direction: Direction, held: &mut HeldPacket, facts: &PacketFacts, around: &mut Around<'_>) {
        if direction == UP {
            let tell = |fact: &Fact| around.path.direction_mut(UP).server.on_fact(fact, around.now);
            let node = self.arrives(held.packet(), facts, around.classifier, tell);
            held.node = Some(node);
        }
    }
    fn refused(&mut self, held: &HeldPacket, reason: DropReason) {
        if let (Some(node), DropReason::Early) = (held.node, reason) {
            self.refused(node, held.packet().size());
        }
    }
    fn tick(&mut self, around: &mut Around<'_>) {
        self.tick(around.now);
    }
    fn status(&self, known: &Known<'_>, told: &mut Entries) {
        told.insert("enforcement".into(), json!(self.report(known.classifier)));
    }
}

/// The last place is for what belongs to nobody.
fn place(node: NodeId, counts: &[Count]) -> usize {
    (node.0 as usize).min(counts.len() - 1)
}

/// Sums saturate.
fn add<K: Eq + Hash>(sums: &mut HashMap<K, Rate>, key: K, rate: Rate) {
    let more = |sum: &mut Rate| *sum = Rate::from_bps(sum.as_bps().saturating_add(rate.as_bps()));
    sums.entry(key).and_modify(more).or_insert(rate);
}
