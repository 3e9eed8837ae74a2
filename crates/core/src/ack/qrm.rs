//! QRM, queue rate management: no node gets more into the queue than the rate it was given.
//!
//! Source: Grazia, dissertation on public protection networks (Modena, 2016), §3.1.3, Figures 3.4 and 3.5, §3.1.4, Theorem
//! 2; Casoni, Grazia, Klapez, Patriciello, Computer Networks 93 (2015).
//!
//! A gateway that divides its link among nodes (C²ML) trusts them to obey. QRM does not: it counts what each node sends
//! and refuses what is beyond its budget, so a flood takes the share of its own node and no other's.
//!
//! ```text
//! accept a packet of node i   if  what it was accepted for, drained at BW_i, <= (1 + tolerance) BW_i RTT_i + slack
//! so                          Q(t) <= sum BW_i RTT_i <= BW RTT_net      without both        (Theorem 2, eq. 3.1)
//! ```
//!
//! BW_i is the budget of node i and RTT_i the smallest round trip time of its flows, both halves: that is the window of a
//! sender which obeys. The account is a bucket: it holds (1 + tolerance) BW_i RTT_i and drains at BW_i. It is kept as the
//! time at which it will be empty, so changes of the budget leave what was accepted before alone. `slack` is for senders
//! whose windows are right on average only, as those are that PINK writes.
//!
//! *Who is a node* the owner of the table of flows says ([`Fact::Owner`]): a client host with all its flows. If nobody
//! ever says, each flow is one. A number that becomes another host's begins anew ([`Fact::Gone`]).
//!
//! *Budgets* are told by the gateway ([`Fact::Budget`]); from then on the nodes told are the white list, and others are
//! refused but for their SYNs, which come before a node can register. If no budget was ever told, every node that sent
//! something but SYNs within `idle` has an even part of the link.
//!
//! *SYNs* pass outside the accounts, `syn_rate` per second and node; as many of all flows together that have no known node:
//! forged addresses have no account of their own.
//!
//! *Round trip times* need one flow per node: the probe follows the flow that opened last, once the one before has given
//! both halves. So memory is per node and not per flow. A node could answer late to look far away, which would let it
//! send longer bursts (never more): its half counts for `max_lan` at most.
//!
//! Invariants: for budgets that do not change, with SYNs aside, the queue is at most (1 + tolerance) sum BW_i RTT_i, the
//! slack of each node and a packet; accepted bytes of a node in any time t are at most (1 + tolerance) BW_i RTT_i + BW_i t,
//! its slack and a packet.
//! State: 4 bytes per flow, 136 per node. Cost: O(1).
//!
//! DIFFERENCE: a bucket, not a counter that a timer resets each RTT: around the reset a node may send twice its share at
//! once, and the bound of Theorem 2 is broken. `account = "window"` is the paper's. Pinned by
//! `a_counter_with_resets_breaks_theorem_2_and_a_bucket_does_not`.
//! DIFFERENCE: the whole round trip, where the paper measures the WAN half and adds tolerance. Pinned by
//! `the_window_of_an_obedient_sender_passes`.
//! DIFFERENCE: SYNs are limited; the paper leaves that to "trivial checks". Pinned by `syns_are_limited_by_node`.
//! DIFFERENCE: packets to nodes that are not listed pass (Figure 3.4 drops them): an element sees the other direction and
//! drops nothing there. Pinned by `what_comes_back_is_only_looked_at`.

use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::packet::{FlowId, NodeId, TcpFlags, TcpView};
use crate::qdisc::{Backlog, Verdict};
use crate::recency::Recency;
use crate::rng::Rng;
use crate::rtt::RttProbe;
use crate::units::{Bytes, Instant, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes and flows beyond these have no state.
const MAX_NODES: u32 = 1 << 20;
const MAX_FLOWS: usize = 1 << 24;
const NOBODY: u32 = NodeId::NOBODY.0;
const MAX_SLACK: Bytes = Bytes::new(1_000_000);

/// How a node's bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Account {
    /// A bucket that drains at the budget.
    #[default]
    Bucket,
    /// A counter that a timer of one round trip time resets, as in the paper.
    Window,
}

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much a node may send at once beyond its budget times its round trip time, as a part of that.
    pub tolerance: f64,
    /// And as bytes, whatever its budget: for windows that are whole segments and right on average.
    pub slack: Bytes,
    /// How bytes are counted: "bucket" (Theorem 2 holds) or "window" (the paper's counter with resets).
    pub account: Account,
    /// Round trip time of a node none of whose connections was seen to open.
    pub rtt: Span,
    /// Most that the half between node and gateway counts for in a round trip time.
    pub max_lan: Span,
    /// SYNs per second of each node, and of all flows together whose node is not known.
    pub syn_rate: u32,
    /// Without a gateway that tells budgets: a node that sent nothing for this long does not count.
    pub idle: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tolerance: 0.05,
            slack: Bytes::ZERO,
            account: Account::Bucket,
            rtt: Span::from_millis(100),
            max_lan: Span::from_millis(500),
            syn_rate: 100,
            idle: Span::from_secs(10),
        }
    }
}

impl AqmConfig for Config {
    type Aqm = Qrm;

    fn validate(&self) -> Result<(), ConfigError> {
        if !(0.0..=10.0).contains(&self.tolerance) {
            return Err(ConfigError::new("tolerance", format!("{} is not within 0 and 10", self.tolerance)));
        }
        if self.slack > MAX_SLACK {
            return Err(ConfigError::new("slack", format!("{} is more than {MAX_SLACK}", self.slack)));
        }
        for (key, span) in [("rtt", self.rtt), ("max_lan", self.max_lan), ("idle", self.idle)] {
            if !(Span::from_millis(1)..=Span::from_secs(3600)).contains(&span) {
                return Err(ConfigError::new(key, format!("{span} is not within 1ms and 3600s")));
            }
        }
        if !(1..=1_000_000).contains(&self.syn_rate) {
            return Err(ConfigError::new("syn_rate", format!("{} is not within 1 and 1000000", self.syn_rate)));
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> Qrm {
        Qrm::new(self, link.rate)
    }
}

/// What QRM counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct QrmStats {
    /// Packets refused because their node had used up its budget.
    pub over_budget: u64,
    /// Packets refused because their node is not listed.
    pub unlisted: u64,
    /// SYNs refused because there were too many.
    pub syns: u64,
    /// Nodes listed, or counted, at the end.
    pub nodes: u64,
    /// Sum of BW_i RTT_i at the end, with the tolerance: Theorem 2's bound.
    pub bound_bytes: u64,
}

/// SYNs let pass: the time at which the next would be due at the rate allowed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct SynClock(Instant);

impl SynClock {
    /// True if another may pass: as many at once as in a second.
    fn lets(&mut self, per_second: u32, now: Instant) -> bool {
        let gap = Span::from_nanos(1_000_000_000 / u64::from(per_second.max(1)));
        let due = self.0.max(now) + gap;
        let lets = due.since(now) <= Span::from_secs(1);
        if lets {
            self.0 = due;
        }
        lets
    }
}

/// What one node was accepted for.
#[derive(Debug, Clone, Default, PartialEq)]
struct Node {
    probe: RttProbe,
    /// The flow that the probe follows.
    followed: u32,
    /// The smallest round trip time of any of its flows.
    rtt: Option<Span>,
    told: Option<Rate>,
    /// It counts among those that share evenly.
    active: bool,
    syns: SynClock,
    /// Bucket: when it will be empty. Window: when it began.
    mark: Instant,
    /// Window: bytes since then.
    bytes: u64,
}

impl Node {
    fn unknown() -> Self {
        Self { followed: NOBODY, ..Self::default() }
    }

    fn open_account(&mut self, now: Instant) {
        (self.mark, self.bytes) = (now, 0);
    }

    /// Bucket: takes what drains in `takes` if `most` is not exceeded.
    fn fill(&mut self, takes: Span, most: Span, now: Instant) -> bool {
        let after = self.mark.max(now) + takes;
        let fits = after.since(now) <= most;
        if fits {
            self.mark = after;
        }
        fits
    }

    /// Figure 3.5: bytes so far over the round trip time, against the budget.
    fn count(&mut self, size: Bytes, rtt: Span, most: f64, now: Instant) -> bool {
        if self.bytes == 0 || now >= self.mark + rtt {
            self.open_account(now);
        }
        let fits = (self.bytes as f64) < most;
        if fits {
            self.bytes += size.get();
        }
        fits
    }

    fn note_rtt(&mut self, max_lan: Span) {
        let (Some(wan), Some(lan)) = (self.probe.wan(), self.probe.lan()) else { return };
        let whole = wan + lan.min(max_lan);
        self.rtt = Some(self.rtt.map_or(whole, |rtt| rtt.min(whole)));
    }

    /// Whether the probe looks at this flow; it turns to one that opens when it knows the one before.
    fn follows(&mut self, flow: u32, opens: bool) -> bool {
        if opens && flow != self.followed && (self.rtt.is_none() || self.probe.whole().is_some()) {
            (self.followed, self.probe) = (flow, RttProbe::default());
        }
        flow == self.followed
    }
}

/// The algorithm.
#[derive(Debug, Clone)]
pub struct Qrm {
    config: Config,
    rate: Rate,
    /// The node of each flow; `None` while each flow is its own.
    owners: Option<Vec<u32>>,
    nodes: Vec<Node>,
    /// Nodes by their last packet, while nobody tells budgets.
    recent: Recency<1>,
    active: u64,
    /// A gateway tells budgets.
    told: bool,
    strangers: SynClock,
    /// The flow whose SYN was just shown and is about to arrive.
    syn_of: u32,
    stats: QrmStats,
}

impl Qrm {
    /// For a link of this rate.
    pub fn new(config: &Config, rate: Rate) -> Self {
        Self {
            config: config.clone(),
            rate,
            owners: None,
            nodes: Vec::new(),
            recent: Recency::new(),
            active: 0,
            told: false,
            strangers: SynClock::default(),
            syn_of: NOBODY,
            stats: QrmStats::default(),
        }
    }

    /// Counters, with what holds now.
    pub fn stats(&self) -> QrmStats {
        let bound = |node: &Node| {
            let budget = self.budget(node)?;
            Some(budget.bytes_in(self.depth(self.rtt(node))).get() + self.config.slack.get())
        };
        let bounds = self.nodes.iter().filter_map(bound);
        let (nodes, bound_bytes) = bounds.fold((0, 0u64), |(n, sum), bytes| (n + 1, sum.saturating_add(bytes)));
        QrmStats { nodes, bound_bytes, ..self.stats }
    }

    fn owner(&self, flow: FlowId) -> Option<u32> {
        let owner = match &self.owners {
            None => flow.0,
            Some(owners) => *owners.get(flow.0 as usize)?,
        };
        (owner < MAX_NODES).then_some(owner)
    }

    fn node(&mut self, id: u32) -> &mut Node {
        if id as usize >= self.nodes.len() {
            self.nodes.resize_with(id as usize + 1, Node::unknown);
        }
        &mut self.nodes[id as usize]
    }

    fn rtt(&self, node: &Node) -> Span {
        node.rtt.unwrap_or(self.config.rtt)
    }

    /// How long a full bucket takes to drain, slack aside.
    fn depth(&self, rtt: Span) -> Span {
        rtt + Span::from_nanos((rtt.as_nanos() as f64 * self.config.tolerance) as u64)
    }

    /// BW_i; `None` for a node that is not listed, or does not count.
    fn budget(&self, node: &Node) -> Option<Rate> {
        if self.told {
            return node.told;
        }
        node.active.then(|| Rate::from_bps(self.rate.as_bps() / self.active.max(1)))
    }

    /// Without told budgets: the node sends, others may have stopped.
    fn note_activity(&mut self, id: u32, now: Instant) {
        while let Some(idle) = self.recent.expired(0, now, self.config.idle) {
            self.recent.remove(0, idle);
            self.nodes[idle as usize].active = false;
            self.active -= 1;
        }
        if std::mem::replace(&mut self.node(id).active, true) {
            self.recent.remove(0, id);
        } else {
            self.active += 1;
        }
        self.recent.push(0, id, now);
    }

    /// Figure 3.5.
    fn judge(&mut self, id: Option<u32>, size: Bytes, syn: bool, now: Instant) -> Verdict {
        let listed = id.is_some_and(|id| !self.told || self.nodes.get(id as usize).is_some_and(|n| n.told.is_some()));
        if syn {
            return self.judge_syn(id.filter(|_| self.owners.is_some() || self.told && listed), now);
        }
        let Some(id) = id.filter(|_| listed) else {
            self.stats.unlisted += 1;
            return Verdict::Drop;
        };
        if !self.told {
            self.note_activity(id, now);
        }
        if self.accept(id, size, now) {
            return Verdict::Pass;
        }
        self.stats.over_budget += 1;
        Verdict::Drop
    }

    fn accept(&mut self, id: u32, size: Bytes, now: Instant) -> bool {
        let Config { tolerance, slack, account, .. } = self.config;
        let Some(node) = self.nodes.get(id as usize) else { return false };
        let Some(budget) = self.budget(node) else { return false };
        let rtt = self.rtt(node);
        let most = self.depth(rtt) + budget.time_for(slack);
        let node = &mut self.nodes[id as usize];
        match account {
            Account::Bucket => {
                let takes = budget.time_for(size);
                node.fill(takes, most.max(takes), now) // or it could never send anything
            }
            Account::Window => {
                let most = budget.bytes_in(rtt).get() as f64 * (1.0 + tolerance) + slack.get() as f64;
                node.count(size, rtt, most, now)
            }
        }
    }

    fn judge_syn(&mut self, known: Option<u32>, now: Instant) -> Verdict {
        let per_second = self.config.syn_rate;
        let lets = match known {
            Some(id) => self.node(id).syns.lets(per_second, now),
            None => self.strangers.lets(per_second, now),
        };
        if lets {
            return Verdict::Pass;
        }
        self.stats.syns += 1;
        Verdict::Drop
    }

    fn set_owner(&mut self, flow: FlowId, node: NodeId) {
        let index = flow.0 as usize;
        if index >= MAX_FLOWS {
            return;
        }
        let owners = self.owners.get_or_insert_default();
        if index >= owners.len() {
            owners.resize(index + 1, NOBODY);
        }
        owners[index] = node.0;
    }

    fn forget(&mut self, node: NodeId) {
        let Some(known) = self.nodes.get_mut(node.0 as usize) else { return };
        if std::mem::replace(known, Node::unknown()).active {
            self.recent.remove(0, node.0);
            self.active -= 1;
        }
    }

    fn set_budget(&mut self, node: NodeId, budget: Option<Rate>, now: Instant) {
        if node.0 >= MAX_NODES {
            return;
        }
        self.told = true;
        let node = self.node(node.0);
        if node.told.is_none() {
            node.open_account(now);
        }
        node.told = budget;
    }
}

impl Aqm for Qrm {
    fn on_enqueue(&mut self, packet: &Meta, _: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        let syn = std::mem::replace(&mut self.syn_of, NOBODY) == packet.flow.0;
        let id = self.owner(packet.flow);
        self.judge(id, packet.size, syn, now)
    }

    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        match *fact {
            Fact::Rate(rate) => self.rate = rate,
            Fact::Owner { flow, node } => self.set_owner(flow, node),
            Fact::Budget { node, budget } => self.set_budget(node, budget, now),
            Fact::Gone(node) => self.forget(node),
            _ => {}
        }
    }

    fn report(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self.stats()).ok()
    }
}

impl AckPath for Qrm {
    const ACTIVE: bool = true;

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let (flow, flags) = (segment.flow(), segment.flags());
        let opens = flags.has(TcpFlags::SYN);
        self.syn_of = if opens { flow.0 } else { NOBODY };
        let Some(id) = self.owner(flow) else { return };
        if opens {
            self.node(id);
        }
        let max_lan = self.config.max_lan;
        if let Some(node) = self.nodes.get_mut(id as usize)
            && node.follows(flow.0, opens)
        {
            node.probe.outbound(segment, now);
            node.note_rtt(max_lan);
        }
    }

    /// Of a node that does not count yet, what it would have.
    fn budget_of(&self, flow: FlowId) -> Option<Rate> {
        let node = self.owner(flow).and_then(|id| self.nodes.get(id as usize));
        let newcomer = || (!self.told).then(|| Rate::from_bps(self.rate.as_bps() / (self.active + 1)));
        node.and_then(|node| self.budget(node)).or_else(newcomer)
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let (flow, opens) = (segment.flow(), segment.flags().has(TcpFlags::SYN));
        let Some(id) = self.owner(flow) else { return };
        let max_lan = self.config.max_lan;
        if let Some(node) = self.nodes.get_mut(id as usize)
            && node.follows(flow.0, opens)
        {
            node.probe.inbound(segment, now);
            node.note_rtt(max_lan);
        }
    }
}

#[cfg(test)]
mod tests;
