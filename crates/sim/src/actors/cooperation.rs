//! Cooperation in a run: the gateway at the sending end of a bottleneck, a client at each node behind it, and their messages.
//!
//! The machines are those of [`penstock_core::coop`]. Their bytes travel as UDP datagrams over the links between the hosts
//! and the gateway's router, where they wait and are lost like others. A node's budget is divided among its open sockets
//! and reaches their congestion control; a queue discipline that holds nodes to their budgets is told them as well. Flows whose
//! hosts move may come to the bottleneck, or leave it, and count as long as they cross it.
//!
//! This file keeps the state; `sim/cooperation.rs` moves it.

use penstock_core::cc::c2ml::Sockets;
use penstock_core::coop::client::{self, Client};
use penstock_core::coop::gateway::{self, Counters, Gateway, Start};
use penstock_core::coop::message::{self, Message, Request};
use penstock_core::coop::policy::Policy;
use penstock_core::coop::{Claim, Key, Keyring, NodeId, Signed};
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Rate, Span};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The most datagrams that are on their way; older ones were lost.
const ON_THE_WAY: usize = 1 << 16;

/// What a node does that it should not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lie {
    /// It never registers.
    Silent,
    /// It says that it can use ten times the bottleneck.
    Claims,
    /// It sends what the gateway told others, and goodbye in their name.
    Replays,
}

impl Lie {
    /// All of them, with their words.
    pub const ALL: [(&'static str, Self); 3] =
        [("silent", Self::Silent), ("claims", Self::Claims), ("replays", Self::Replays)];
}

/// What is special about a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpec {
    /// As flows name it.
    pub name: String,
    /// The link whose rate it can use at most.
    pub csi: Option<usize>,
    /// What it does that it should not.
    pub lie: Option<Lie>,
}

/// A gateway at the sending end of a link, and clients at all nodes whose flows cross it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The index of the link among those of the scenario; its first end is where the gateway is.
    pub link: usize,
    /// Who gets how much.
    pub policy: Policy,
    /// How long a budget is believed.
    pub lease: Span,
    /// How often budgets are told.
    pub advertise: Span,
    /// When the gateway falls silent.
    pub silent_from: Option<Span>,
    /// Nodes about which something is special.
    pub nodes: Vec<NodeSpec>,
}

/// What of a flow its node knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Socket {
    /// Not yet opened.
    New,
    /// Open.
    Open,
    /// Closed.
    Closed,
}

/// A flow as a socket of its node. One with sessions is none: each of its connections is.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its node.
    pub node: u32,
    /// Its part of the node's budget is in proportion to this.
    pub weight: u32,
    /// It crosses the bottleneck. If not, it has no part; that changes when hosts move.
    pub crosses: bool,
    /// Where it stands.
    pub socket: Socket,
}

/// A client host.
#[derive(Debug)]
pub struct Node {
    /// Its machine.
    pub client: Client,
    /// What it divides among whom.
    pub sockets: Sockets,
    /// Its flows.
    pub flows: Vec<u32>,
    /// The open connections of its sessions, with their weights.
    pub connections: Vec<(u32, u32)>,
    /// First entries in the table of routes: to the gateway, from it.
    pub routes: [u32; 2],
    /// The link, one direction, whose rate it can use at most (CSI). If it was the node's cell it is that of the next.
    pub csi: Option<u32>,
    /// What it does that it should not.
    pub lie: Option<Lie>,
    /// What the discipline was last told.
    pub told: Option<Rate>,
}

/// A node before its machine is made.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its flows.
    pub flows: Vec<u32>,
    /// As in [`Node`].
    pub routes: [u32; 2],
    /// As in [`Node`].
    pub csi: Option<u32>,
    /// As in [`Node`].
    pub lie: Option<Lie>,
}

/// All of it.
#[derive(Debug)]
pub struct Cooperation {
    /// The bottleneck's link, in the direction that is shared.
    pub link: usize,
    /// Its machine.
    pub gateway: Gateway,
    /// When it falls silent; `Instant::MAX` is never.
    pub silent_from: Instant,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Of each flow.
    pub members: Vec<Member>,
    /// Messages of both kinds, kept so that none is allocated anew.
    pub to_gateway: Vec<Message>,
    /// What the gateway sends.
    pub from_gateway: Vec<gateway::Outgoing>,
    ring: Keyring,
    datagrams: VecDeque<Vec<u8>>,
    first: u32,
    sent: u64,
    bytes: u64,
    bandwidth: Rate,
    overheard: Option<(NodeId, Signed)>,
}

/// What cooperation came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Clients that hold a budget at the end.
    pub clients: u32,
    /// What they hold together.
    pub granted_bps: u64,
    /// The rate that is shared.
    pub bandwidth_bps: u64,
    /// Datagrams sent.
    pub messages: u64,
    /// Their bytes, without headers.
    pub message_bytes: u64,
    /// Clients let in.
    pub joined: u64,
    /// Clients that said goodbye.
    pub left: u64,
    /// Clients of which nothing was heard for a lease.
    pub lapsed: u64,
    /// Requests whose answer was given again.
    pub repeated: u64,
    /// Requests that were too old to count.
    pub stale: u64,
    /// States of others, or not signed by the gateway.
    pub forged: u64,
    /// Messages that were none for a gateway, or spoke for another node.
    pub ignored: u64,
}

impl Cooperation {
    /// Machines for a scenario that was checked; each flow crosses the bottleneck or not.
    pub fn new(spec: &Spec, bandwidth: Rate, plans: Vec<Plan>, members: Vec<Member>, streams: &Streams) -> Self {
        let mut secrets = streams.get("cooperation/keys");
        let mut key = [0; 32];
        key.chunks_mut(8).for_each(|word| word.copy_from_slice(&secrets.bits().to_le_bytes()));
        let ring = Keyring::new(1, &Key::new(key));
        let config = gateway::Config {
            lease: spec.lease,
            advertise: spec.advertise,
            ..gateway::Config::new(bandwidth, spec.policy)
        };
        let gateway = Gateway::new(config, ring.clone(), 1, Start::Fresh, Instant::ZERO);
        let node = |(id, plan): (u32, Plan)| Node {
            client: Client::new(client::Config::new(NodeId(id), secrets.bits() >> 1)).expect("defaults are valid"),
            sockets: Sockets::default(),
            flows: plan.flows,
            connections: Vec::new(),
            routes: plan.routes,
            csi: plan.csi,
            lie: plan.lie,
            told: None,
        };
        Self {
            link: 2 * spec.link,
            gateway: gateway.expect("the scenario was checked"),
            silent_from: spec.silent_from.map_or(Instant::MAX, |at| Instant::ZERO + at),
            nodes: (0..).zip(plans).map(node).collect(),
            members,
            to_gateway: Vec::new(),
            from_gateway: Vec::new(),
            ring,
            datagrams: VecDeque::new(),
            first: 0,
            sent: 0,
            bytes: 0,
            bandwidth,
            overheard: None,
        }
    }

    /// Puts a message into a datagram: its number and its length.
    pub fn pack(&mut self, message: &Message) -> (u32, u16) {
        if let Message::AckHello(answer) | Message::AckUsed(answer) = message {
            self.overheard = Some((answer.node, answer.state));
        }
        let bytes = message::encode(message, &self.ring);
        let len = bytes.len() as u16;
        if self.datagrams.len() == ON_THE_WAY {
            self.datagrams.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        self.datagrams.push_back(bytes);
        (self.sent, self.bytes) = (self.sent + 1, self.bytes + u64::from(len));
        (self.first.wrapping_add(self.datagrams.len() as u32 - 1), len)
    }

    /// The message in the datagram of that number.
    pub fn unpack(&self, number: u32) -> Option<Message> {
        let bytes = self.datagrams.get(number.wrapping_sub(self.first) as usize)?;
        message::decode(bytes, &self.ring).ok()
    }

    /// What a node that lies sends in place of a message.
    pub fn twisted(&self, node: usize, message: Message) -> Message {
        match (self.nodes[node].lie, message) {
            (Some(Lie::Claims), Message::UsedBw(request, _)) => {
                Message::UsedBw(request, Claim::bps(self.bandwidth.as_bps().saturating_mul(10)))
            }
            (Some(Lie::Replays), Message::UsedBw(request, claim)) => match self.overheard {
                // In turn: another's state as one's own, and goodbye in another's name.
                Some((_, state)) if request.ask % 2 == 0 => Message::UsedBw(Request { state, ..request }, claim),
                Some((victim, state)) => Message::ClientBye(Request { node: victim, state, ..request }),
                None => message,
            },
            _ => message,
        }
    }

    /// What each open socket of a node may use now.
    pub fn parts(&self, node: usize) -> impl Iterator<Item = (u32, Option<Rate>)> + '_ {
        let node = &self.nodes[node];
        node.flows.iter().filter_map(|flow| {
            let member = &self.members[*flow as usize];
            (member.crosses && member.socket == Socket::Open).then(|| (*flow, node.sockets.part(member.weight)))
        })
    }

    /// The same for the open connections of its sessions.
    pub fn parts_of_connections(&self, node: usize) -> impl Iterator<Item = (u32, Option<Rate>)> + '_ {
        let node = &self.nodes[node];
        node.connections.iter().map(|(number, weight)| (*number, node.sockets.part(*weight)))
    }

    /// What came of it.
    pub fn summary(&self) -> Summary {
        let Counters { joined, left, lapsed, repeated, stale, forged, ignored, .. } = *self.gateway.counters();
        Summary {
            clients: self.gateway.clients(),
            granted_bps: self.gateway.granted(),
            bandwidth_bps: self.gateway.bandwidth().as_bps(),
            messages: self.sent,
            message_bytes: self.bytes,
            joined,
            left,
            lapsed,
            repeated,
            stale,
            forged,
            ignored,
        }
    }
}

/// A lease as the scenario has it if it says nothing.
pub const LEASE: Span = Span::from_secs(10);
/// How often the gateway tells the levels if the scenario says nothing.
pub const ADVERTISE: Span = Span::from_secs(1);
