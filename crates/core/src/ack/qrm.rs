//! QRM, queue rate management: no node gets packets into the queue at more than the rate of its budget.
//!
//! Source: Grazia, dissertation on public protection networks (Modena, 2016), §3.1.3, Figures 3.4 and 3.5, §3.1.4,
//! Theorem 2; Casoni, Grazia, Klapez, Patriciello, Computer Networks 93 (2015).
//!
//! A gateway that divides its link among nodes (C²ML) trusts them to obey. QRM does not: it counts what each node sends
//! and refuses what is beyond its budget, so a flood takes the share of its own node and no other's.
//!
//! ```text
//! accept a packet of node i   if  its accepted bytes, drained at BW_i, <= (1 + tolerance) BW_i RTT_i + slack
//! so                          Q(t) <= sum BW_i RTT_i <= BW RTT_net      without both        (Theorem 2, eq. 3.1)
//! ```
//!
//! BW_i is the budget of node i and RTT_i the smallest whole round trip time (both halves) of its flows. Their product
//! is the window of a sender which obeys the budget. The account is a bucket: it holds (1 + tolerance) BW_i RTT_i and
//! drains at BW_i. It is kept as the time at which it will be empty, so a change of the budget does not change the time
//! which accepted packets take to drain. `slack` is for senders whose windows are right only on average, as PINK's are.
//!
//! *Nodes*: the owner of the table of flows tells which node a flow belongs to ([`Fact::Owner`]); a node is a
//! subscriber with all its flows. If no owner was ever told, each flow is a node. A number that another node takes over
//! begins anew ([`Fact::Gone`]).
//!
//! *Budgets* are told by the gateway ([`Fact::Budget`]). From then on only packets of nodes with a budget are accepted,
//! and SYNs of other nodes, which they need to register. If no budget was ever told, each node that sent more than SYNs
//! within `idle` has an even part of the link. If the gateway tells a rate for nodes without a budget ([`Fact::Rest`]),
//! these share it in the same way.
//!
//! *SYNs* are not counted in the accounts; `syn_rate` of them pass per second and node, and as many of all flows
//! together whose node is not known: forged addresses have no account of their own.
//!
//! *Round trip times* are measured with one flow per node: the probe follows the flow that opened last, once the one
//! before has given both halves. State is therefore per node and not per flow. A node could answer late to appear far
//! away, which would allow longer bursts (but no higher rate), so its half counts for `max_lan` at most.
//!
//! Invariants, for constant budgets and without SYNs: the queue is at most (1 + tolerance) sum BW_i RTT_i, plus the
//! slack of each node and one packet; the accepted bytes of a node in any time t are at most
//! (1 + tolerance) BW_i RTT_i + BW_i t, plus its slack and one packet.
//! State: 4 bytes per flow, 136 per node. Cost: O(1).
//!
//! DIFFERENCE: the account is a bucket, not a counter that a timer resets each RTT: around a reset a node may send
//! twice its share at once, which breaks the bound of Theorem 2. `account = "window"` is the paper's counter. Pinned by
//! `a_counter_with_resets_breaks_theorem_2_and_a_bucket_does_not`.
//! DIFFERENCE: RTT_i is the whole round trip time; the paper measures the WAN half and adds tolerance. Pinned by
//! `the_window_of_an_obedient_sender_passes`.
//! DIFFERENCE: SYNs are limited; the paper leaves that to "trivial checks". Pinned by `syns_are_limited_by_node`.
//! DIFFERENCE: packets to nodes without a budget pass (Figure 3.4 drops them), because an element sees the other
//! direction but drops nothing there. Pinned by `what_comes_back_is_only_looked_at`.

use crate::ack_path::AckPath;
use crate::allocation::rest;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::packet::{FlowId, NodeId, Packet, TcpFlags, TcpView};
use crate::qdisc::{Backlog, Verdict};
use crate::recency::Recency;
use crate::rng::Rng;
use crate::rtt::RttProbe;
use crate::units::{Bytes, Instant, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes with this number or a higher one have no state, and their packets are refused.
const MAX_NODES: u32 = 1 << 20;
/// For flows with this index or a higher one no owner is kept.
const MAX_FLOWS: usize = 1 << 24;
const NOBODY: u32 = NodeId::NOBODY.0;
const MAX_SLACK: Bytes = Bytes::new(1_000_000);

/// How the bytes of a node are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Account {
    /// A bucket that drains at the budget.
    #[default]
    Bucket,
    /// A counter that a timer of one round trip time resets, as in the paper.
    Window,
}

/// Parameters of QRM. The source gives no values; the defaults are chosen here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How much a node may send at once beyond budget times round trip time, as a part of that product (0 to 10).
    pub tolerance: f64,
    /// How many bytes more a node may send at once, for senders whose windows are right only on average; at most 1MB.
    pub slack: Bytes,
    /// How bytes are counted: "bucket" (Theorem 2 holds) or "window" (the paper's counter with resets).
    pub account: Account,
    /// Round trip time assumed for a node whose round trip time was not measured yet.
    pub rtt: Span,
    /// Largest value of the half between node and gateway in a round trip time.
    pub max_lan: Span,
    /// SYNs that pass per second: of each node, and of all flows together whose node is not known.
    pub syn_rate: u32,
    /// Without told budgets, a node which sent nothing for this long has no part of the link.
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

/// The counters of QRM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct QrmStats {
    /// Packets refused because their node had used up its budget.
    pub over_budget: u64,
    /// Packets refused because their node has no budget, or is not known.
    pub unlisted: u64,
    /// SYNs refused because they were beyond `syn_rate`.
    pub syns: u64,
    /// Nodes that have a budget, told or as an even part of the link.
    pub nodes: u64,
    /// Bound of the queue by Theorem 2 in bytes: the sum of BW_i RTT_i, with tolerance and slack.
    pub bound_bytes: u64,
}

/// The limit of SYNs, as the time at which the next SYN is due at the allowed rate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct SynClock(Instant);

impl SynClock {
    /// Returns true if another SYN may pass; at most the number for a second may pass at once.
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

/// The state of one node: its account, budget and round trip time.
#[derive(Debug, Clone, Default, PartialEq)]
struct Node {
    probe: RttProbe,
    /// Index of the flow which the probe follows.
    followed: u32,
    /// Smallest round trip time of any flow of the node; `None` before the first measurement.
    rtt: Option<Span>,
    /// The budget that a gateway told; `None` without one.
    told: Option<Rate>,
    /// The node is one of those which share evenly what nodes without a told budget have.
    active: bool,
    syns: SynClock,
    /// With a bucket: when it will be empty. With a window: when it began.
    mark: Instant,
    /// With a window: bytes accepted since it began.
    bytes: u64,
}

impl Node {
    fn unknown() -> Self {
        Self { followed: NOBODY, ..Self::default() }
    }

    fn open_account(&mut self, now: Instant) {
        (self.mark, self.bytes) = (now, 0);
    }

    /// Fills the bucket with bytes that drain in the time `takes`. Returns false, and changes nothing, if the bucket
    /// would then drain for longer than `most`.
    fn fill(&mut self, takes: Span, most: Span, now: Instant) -> bool {
        let after = self.mark.max(now) + takes;
        let fits = after.since(now) <= most;
        if fits {
            self.mark = after;
        }
        fits
    }

    /// Counts a packet in the window of one round trip (Figure 3.5). Returns false if the window has reached `most`
    /// bytes.
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

    /// Returns true if the probe follows this flow. The probe turns to a flow that opens once the flow before is
    /// measured.
    fn follows(&mut self, flow: u32, opens: bool) -> bool {
        if opens && flow != self.followed && (self.rtt.is_none() || self.probe.whole().is_some()) {
            (self.followed, self.probe) = (flow, RttProbe::default());
        }
        flow == self.followed
    }
}

/// The state of QRM.
#[derive(Debug, Clone)]
pub struct Qrm {
    config: Config,
    rate: Rate,
    /// The node of each flow; `None` before the first owner is told, while each flow is a node.
    owners: Option<Vec<u32>>,
    nodes: Vec<Node>,
    /// Nodes without a told budget in the order of their last packets.
    recent: Recency<1>,
    /// Number of nodes which share evenly.
    active: u64,
    /// True once a gateway has told a budget, or a rate for nodes without one.
    told: bool,
    /// The rate that a gateway told for nodes without a budget.
    rest: Option<Rate>,
    /// The limit of SYNs of all flows whose node is not known.
    strangers: SynClock,
    /// The flow whose SYN was shown last and is about to be enqueued; `NOBODY` if the last segment was not a SYN.
    syn_of: u32,
    stats: QrmStats,
}

impl Qrm {
    /// Creates the state before the first packet, for a link of this rate.
    pub fn new(config: &Config, rate: Rate) -> Self {
        Self {
            config: config.clone(),
            rate,
            owners: None,
            nodes: Vec::new(),
            recent: Recency::new(),
            active: 0,
            told: false,
            rest: None,
            strangers: SynClock::default(),
            syn_of: NOBODY,
            stats: QrmStats::default(),
        }
    }

    /// Returns the counters, with the current number of nodes and the current bound.
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

    /// Returns the time that a full bucket takes to drain, without slack.
    fn depth(&self, rtt: Span) -> Span {
        rtt + Span::from_nanos((rtt.as_nanos() as f64 * self.config.tolerance) as u64)
    }

    /// Returns what nodes without a told budget share; `None` if they have nothing.
    fn common(&self) -> Option<Rate> {
        if self.told { self.rest } else { Some(self.rate) }
    }

    /// Returns BW_i; `None` for a node which has neither a told budget nor a part of what the others share.
    fn budget(&self, node: &Node) -> Option<Rate> {
        if node.told.is_some() {
            return node.told;
        }
        let (rate, nodes) = rest(self.common()?.as_bps(), self.active.max(1), 0, 0);
        node.active.then(|| Rate::from_bps(rate / nodes))
    }

    /// Notes that a node without a told budget sends; those which sent nothing for `idle` lose their parts.
    fn note_activity(&mut self, id: u32, now: Instant) {
        while let Some(idle) = self.recent.expired(0, now, self.config.idle) {
            self.nodes[idle as usize].active = false;
            self.leave(idle);
        }
        if std::mem::replace(&mut self.node(id).active, true) {
            self.recent.remove(0, id);
        } else {
            self.active += 1;
        }
        self.recent.push(0, id, now);
    }

    /// Judges a packet (Figure 3.5).
    fn judge(&mut self, id: Option<u32>, size: Bytes, syn: bool, now: Instant) -> Verdict {
        let has_budget = id.and_then(|id| self.nodes.get(id as usize)).is_some_and(|node| node.told.is_some());
        let listed = id.is_some() && (has_budget || self.common().is_some());
        if syn {
            return self.judge_syn(id.filter(|_| self.owners.is_some() || self.told && listed), now);
        }
        let Some(id) = id.filter(|_| listed) else {
            self.stats.unlisted += 1;
            return Verdict::Drop;
        };
        if !has_budget {
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
                node.fill(takes, most.max(takes), now) // an empty bucket always has room for one packet
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

    /// Another connection takes over the index: it has no owner until one is told, and no sample of the old one may end
    /// with its segments. If each flow is a node, that node is gone.
    fn forget_flow(&mut self, flow: FlowId) {
        let Some(id) = self.owner(flow) else { return };
        match &mut self.owners {
            None => return self.forget(NodeId(id)),
            Some(owners) => owners[flow.0 as usize] = NOBODY,
        }
        if let Some(node) = self.nodes.get_mut(id as usize)
            && node.followed == flow.0
        {
            (node.followed, node.probe) = (NOBODY, RttProbe::default());
        }
    }

    fn forget(&mut self, node: NodeId) {
        let Some(known) = self.nodes.get_mut(node.0 as usize) else { return };
        if std::mem::replace(known, Node::unknown()).active {
            self.leave(node.0);
        }
    }

    /// The node is none of those which share evenly any more.
    fn leave(&mut self, id: u32) {
        self.recent.remove(0, id);
        self.active -= 1;
    }

    fn set_budget(&mut self, node: NodeId, budget: Option<Rate>, now: Instant) {
        if node.0 >= MAX_NODES {
            return;
        }
        self.told = true;
        let known = self.node(node.0);
        if known.told.is_none() {
            known.open_account(now);
        }
        known.told = budget;
        if budget.is_some() && std::mem::take(&mut known.active) {
            self.leave(node.0);
        }
    }
}

impl Aqm for Qrm {
    /// A SYN counts as one also if it was not shown.
    fn on_arrival<P: Packet>(&mut self, packet: &P, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        if packet.is_syn() {
            self.syn_of = packet.flow().0;
        }
        self.on_enqueue(&Meta::of(packet), backlog, now, rng)
    }

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
            Fact::Rest(rate) => (self.told, self.rest) = (true, Some(rate)),
            Fact::Gone(node) => self.forget(node),
            Fact::FlowGone(flow) => self.forget_flow(flow),
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

    /// For a node which does not send yet and has no told budget, returns the part which it would have.
    fn budget_of(&self, flow: FlowId) -> Option<Rate> {
        let node = self.owner(flow).and_then(|id| self.nodes.get(id as usize));
        let newcomer = || self.common().map(|rate| Rate::from_bps(rate.as_bps() / (self.active + 1)));
        node.and_then(|node| self.budget(node)).or_else(newcomer)
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let (flow, opens) = (segment.flow(), segment.flags().has(TcpFlags::SYN));
        let Some(id) = self.owner(flow) else { return };
        if opens {
            self.node(id);
        }
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
