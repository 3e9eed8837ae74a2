//! Cooperation in a run: the gateway at the sending end of a bottleneck, a client at each node behind it, and their messages.
//!
//! The machines are those of [`penstock_core::coop`]. Their bytes travel as UDP datagrams over the links between the hosts
//! and the gateway's router, where they wait and are lost like others. A node's budget is divided among its open sockets
//! and reaches their congestion control; a queue discipline that holds nodes to their budgets is told them as well. Flows whose
//! hosts move may come to the bottleneck, or leave it, and count as long as they cross it.
use super::action::{Action, Context, Socket};
use crate::numbers::{LinkDir, Owner, Source};
use crate::segment::Segment;
use penstock_core::cc::c2ml::Sockets;
use penstock_core::coop::client::{self, Client};
use penstock_core::coop::gateway::{self, Counters, Gateway, Start, To};
use penstock_core::coop::message::{self, Message, Request};
use penstock_core::coop::policy::Policy;
use penstock_core::coop::{Claim, Key, Keyring, NodeId, Signed};
use penstock_core::fact::Fact;
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

/// Where the connection of a flow stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketState {
    /// Not yet opened.
    New,
    /// Open.
    Open,
    /// Closed.
    Closed,
}

/// A flow, as a socket of its node.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its node.
    pub node: u32,
    /// Its part of the node's budget is in proportion to this.
    pub weight: u32,
    /// It crosses the bottleneck. If not, it has no part; that changes when hosts move.
    pub crosses: bool,
    /// The flow itself is no socket: each connection that its sessions open is one.
    pub opens_connections: bool,
    /// Where it stands.
    pub socket: SocketState,
}

/// A client host.
#[derive(Debug)]
struct Node {
    /// Its machine.
    client: Client,
    /// What it divides among whom.
    sockets: Sockets,
    /// Its flows.
    flows: Vec<u32>,
    /// The open connections of its sessions, with their weights.
    connections: Vec<(u32, u32)>,
    /// First entries in the table of routes: to the gateway, from it.
    routes: [u32; 2],
    /// The link, one direction, whose rate it can use at most (CSI). If it was the node's cell it is that of the next.
    csi: Option<LinkDir>,
    /// What it does that it should not.
    lie: Option<Lie>,
    /// What the discipline was last told.
    told: Option<Rate>,
}

/// A flow whose client sends by another route.
#[derive(Debug, Clone)]
pub struct Rerouted {
    /// The flow.
    pub flow: u32,
    /// The first entry of its new route in the table of routes.
    pub route: u32,
    /// The open connections of its sessions.
    pub connections: Vec<u32>,
}

impl Rerouted {
    fn sockets(&self) -> impl Iterator<Item = Socket> + '_ {
        let connections = self.connections.iter().map(|number| Socket::Connection(*number));
        std::iter::once(Socket::Flow(self.flow)).chain(connections)
    }
}

/// The settings of a client host.
#[derive(Debug, Clone)]
pub struct NodeSetup {
    /// Its flows.
    pub flows: Vec<u32>,
    /// As in [`Node`].
    pub routes: [u32; 2],
    /// As in [`Node`].
    pub csi: Option<LinkDir>,
    /// As in [`Node`].
    pub lie: Option<Lie>,
}

/// The gateway and all clients.
#[derive(Debug)]
pub struct Cooperation {
    /// The bottleneck, in the direction that is shared.
    link: LinkDir,
    gateway: Gateway,
    /// When the gateway falls silent; `Instant::MAX` is never.
    silent_from: Instant,
    nodes: Vec<Node>,
    /// Of each flow.
    members: Vec<Member>,
    /// What a client and the gateway have to send; kept so that nothing is allocated anew.
    to_gateway: Vec<Message>,
    from_gateway: Vec<gateway::Outgoing>,
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
    pub fn new(spec: &Spec, bandwidth: Rate, nodes: Vec<NodeSetup>, members: Vec<Member>, streams: &Streams) -> Self {
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
        let node = |(id, setup): (u32, NodeSetup)| Node {
            client: Client::new(client::Config::new(NodeId(id), secrets.bits() >> 1)).expect("defaults are valid"),
            sockets: Sockets::default(),
            flows: setup.flows,
            connections: Vec::new(),
            routes: setup.routes,
            csi: setup.csi,
            lie: setup.lie,
            told: None,
        };
        Self {
            link: LinkDir::forward(spec.link),
            gateway: gateway.expect("the scenario was checked"),
            silent_from: spec.silent_from.map_or(Instant::MAX, |at| Instant::ZERO + at),
            nodes: (0..).zip(nodes).map(node).collect(),
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
    fn pack(&mut self, message: &Message) -> (u32, u16) {
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
    fn unpack(&self, number: u32) -> Option<Message> {
        let bytes = self.datagrams.get(number.wrapping_sub(self.first) as usize)?;
        message::decode(bytes, &self.ring).ok()
    }

    /// What a node that lies sends in place of a message.
    fn twisted(&self, node: usize, message: Message) -> Message {
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

    /// How many nodes take part.
    pub fn nodes(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Where the route of a node to the gateway begins in the table of routes.
    pub fn route_from(&self, node: u32) -> u32 {
        self.nodes[node as usize].routes[0]
    }

    /// A node sends and receives its messages by another route from now on.
    pub fn reroute(&mut self, node: u32, end: usize, route: u32) {
        self.nodes[node as usize].routes[end] = route;
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

// What a run tells it.
impl Cooperation {
    /// Before the run: what nodes can use, and when the gateway speaks first.
    pub fn start(&mut self, context: &mut Context<'_>) {
        (0..self.nodes()).for_each(|node| self.tell_usable(node, context));
        await_source(Source::Gateway, self.gateway.next_timeout(), context);
        if self.silent_from > Instant::ZERO {
            // Nobody has registered yet, and the discipline knows.
            for node in (0..self.nodes()).map(NodeId) {
                context.act(Action::Tell(self.link, Fact::Budget { node, budget: None }));
            }
        }
    }

    /// The connection of a flow, or its source of datagrams, opened.
    pub fn socket_opens(&mut self, flow: u32, context: &mut Context<'_>) {
        self.turn_socket(flow, SocketState::New, SocketState::Open, context);
    }

    /// It closed.
    pub fn socket_closes(&mut self, flow: u32, context: &mut Context<'_>) {
        self.turn_socket(flow, SocketState::Open, SocketState::Closed, context);
    }

    fn turn_socket(&mut self, flow: u32, from: SocketState, to: SocketState, context: &mut Context<'_>) {
        let member = &mut self.members[flow as usize];
        if member.opens_connections || member.socket != from {
            return;
        }
        member.socket = to;
        let Member { node, weight, crosses, .. } = *member;
        if crosses {
            self.count_socket(node, weight, to == SocketState::Open, context);
        }
    }

    /// A session of a flow opened a connection.
    pub fn connection_opens(&mut self, flow: u32, number: u32, context: &mut Context<'_>) {
        let Member { node, weight, crosses, .. } = self.members[flow as usize];
        if crosses {
            self.nodes[node as usize].connections.push((number, weight));
            self.count_socket(node, weight, true, context);
        }
    }

    /// The connection is over.
    pub fn connection_closes(&mut self, flow: u32, number: u32, context: &mut Context<'_>) {
        let Member { node, weight, crosses, .. } = self.members[flow as usize];
        if crosses {
            self.nodes[node as usize].connections.retain(|(open, _)| *open != number);
            self.count_socket(node, weight, false, context);
        }
    }

    /// The clients of flows send by other routes now, each given with its route and its open connections. Some cross the
    /// bottleneck that did not, or no longer.
    pub fn routes_changed(&mut self, flows: &[Rerouted], context: &mut Context<'_>) {
        // A window is a budget times a round trip time, and that is another one now.
        for flow in flows {
            flow.sockets().for_each(|socket| context.act(Action::PathChanged(socket)));
        }
        let crosses = |flow: &Rerouted| context.crosses(flow.route, self.link);
        let turned = |flow: &&Rerouted| self.members[flow.flow as usize].crosses != crosses(flow);
        let mut turned: Vec<(&Rerouted, bool)> =
            flows.iter().filter(turned).map(|flow| (flow, crosses(flow))).collect();
        // Those that come are first: a node that has a socket there before and after does not say goodbye.
        turned.sort_by_key(|(flow, crosses)| (!crosses, flow.flow));
        turned.into_iter().for_each(|(flow, crosses)| self.turn_member(flow, crosses, context));
    }

    /// A flow becomes a socket of its node, or is none any more and on its own; its connections likewise.
    fn turn_member(&mut self, flow: &Rerouted, crosses: bool, context: &mut Context<'_>) {
        let member = &mut self.members[flow.flow as usize];
        member.crosses = crosses;
        let Member { node, weight, socket, .. } = *member;
        let connections = &mut self.nodes[node as usize].connections;
        if crosses {
            connections.extend(flow.connections.iter().map(|number| (*number, weight)));
        } else {
            connections.retain(|(number, _)| !flow.connections.contains(number));
        }
        for _ in 0..flow.connections.len() + usize::from(socket == SocketState::Open) {
            self.count_socket(node, weight, crosses, context);
        }
        if !crosses {
            flow.sockets().for_each(|socket| context.act(Action::Budget(socket, None)));
        }
    }

    /// A node attached to another cell. If its channel is what limits it, that is another one.
    pub fn node_attached(&mut self, node: u32, old: LinkDir, new: LinkDir, context: &mut Context<'_>) {
        let csi = &mut self.nodes[node as usize].csi;
        if csi.is_some_and(|link| link.duplex() == old.duplex()) {
            *csi = Some(new);
        }
        self.tell_usable(node, context);
    }

    /// The rates of links changed.
    pub fn rates_changed(&mut self, context: &mut Context<'_>) {
        let bandwidth = context.rate(self.link);
        if bandwidth != self.gateway.bandwidth() && context.now < self.silent_from {
            self.gateway.set_bandwidth(bandwidth, context.now, &mut self.from_gateway);
            self.after_gateway(context);
        }
        (0..self.nodes()).for_each(|node| self.tell_usable(node, context));
    }

    /// The gateway's timer is due.
    pub fn wake_gateway(&mut self, context: &mut Context<'_>) {
        if context.now < self.silent_from {
            self.gateway.poll(context.now, &mut self.from_gateway);
            self.after_gateway(context);
        }
    }

    /// The timer of a node's client is due.
    pub fn wake_client(&mut self, node: u32, context: &mut Context<'_>) {
        self.nodes[node as usize].client.poll(context.now, &mut self.to_gateway);
        self.after_client(node, context);
        self.hand_out(node, context);
    }

    /// A datagram of a node arrived, at the gateway or at the client.
    pub fn receive(&mut self, node: u32, packet: &Segment, context: &mut Context<'_>) {
        let Some(message) = self.unpack(packet.seq) else { return };
        if !packet.from_client() {
            self.nodes[node as usize].client.handle(&message, context.now, &mut self.to_gateway);
            self.after_client(node, context);
            self.hand_out(node, context);
        } else if context.now < self.silent_from {
            self.gateway.handle(&message, NodeId(node), context.now, &mut self.from_gateway);
            self.after_gateway(context);
        }
    }
}

// What it does then.
impl Cooperation {
    /// A node has one socket more, or one less: the first joins, the last leaves, and the parts of all change.
    fn count_socket(&mut self, node: u32, weight: u32, opens: bool, context: &mut Context<'_>) {
        let Node { client, sockets, lie, .. } = &mut self.nodes[node as usize];
        let changes = if opens { sockets.open(weight) } else { sockets.close(weight) };
        if changes && *lie != Some(Lie::Silent) {
            if opens {
                client.open(context.now, &mut self.to_gateway);
            } else {
                client.close(context.now, &mut self.to_gateway);
            }
            self.after_client(node, context);
        }
        self.hand_out(node, context);
    }

    /// A node learns by CSI what it can use, if that is less than its gateway could give.
    fn tell_usable(&mut self, node: u32, context: &mut Context<'_>) {
        let Node { client, csi, .. } = &mut self.nodes[node as usize];
        if let Some(link) = csi {
            client.set_usable(Some(context.rate(*link)), context.now, &mut self.to_gateway);
            self.after_client(node, context);
            self.hand_out(node, context);
        }
    }

    /// Sends what a client has to send and keeps its timer.
    fn after_client(&mut self, node: u32, context: &mut Context<'_>) {
        let mut messages = std::mem::take(&mut self.to_gateway);
        for message in messages.drain(..) {
            let message = self.twisted(node as usize, message);
            self.send(node, &message, true, context);
        }
        self.to_gateway = messages;
        await_source(Source::Client(node), self.nodes[node as usize].client.next_timeout(), context);
    }

    /// Tells the discipline, sends what the gateway has to send, and keeps its timer.
    fn after_gateway(&mut self, context: &mut Context<'_>) {
        self.tell_discipline(context);
        let mut messages = std::mem::take(&mut self.from_gateway);
        for outgoing in messages.drain(..) {
            match outgoing.to {
                To::Node(node) => self.send(node.0, &outgoing.message, false, context),
                To::Everyone => (0..self.nodes()).for_each(|node| {
                    if self.nodes[node as usize].client.is_active() {
                        self.send(node, &outgoing.message, false, context);
                    }
                }),
            }
        }
        self.from_gateway = messages;
        await_source(Source::Gateway, self.gateway.next_timeout(), context);
    }

    fn send(&mut self, node: u32, message: &Message, from_client: bool, context: &mut Context<'_>) {
        let Some(cursor) = self.nodes.get(node as usize).map(|node| node.routes[usize::from(!from_client)]) else {
            return;
        };
        let (sequence, len) = self.pack(message);
        let mut packet = Segment::udp_of(context.number(Owner::Message(node)), sequence, len, from_client);
        (packet.cursor, packet.at) = (cursor, context.now);
        context.act(Action::Send(packet));
    }

    /// The sockets of a node get their parts of its budget: flows first, then the connections of sessions.
    fn hand_out(&mut self, node: u32, context: &mut Context<'_>) {
        let Node { client, sockets, flows, connections, .. } = &mut self.nodes[node as usize];
        sockets.set_budget(client.budget(context.now));
        for flow in flows {
            let member = &self.members[*flow as usize];
            if member.crosses && member.socket == SocketState::Open {
                context.act(Action::Budget(Socket::Flow(*flow), sockets.part(member.weight)));
            }
        }
        for (number, weight) in connections {
            context.act(Action::Budget(Socket::Connection(*number), sockets.part(*weight)));
        }
    }

    /// A discipline that holds nodes to their budgets learns what changed.
    fn tell_discipline(&mut self, context: &mut Context<'_>) {
        for (node, state) in (0..).map(NodeId).zip(&mut self.nodes) {
            let budget = self.gateway.granted_to(node).map(Rate::from_bps);
            if budget != state.told {
                state.told = budget;
                context.act(Action::Tell(self.link, Fact::Budget { node, budget }));
            }
        }
    }
}

fn await_source(source: Source, next: Option<Instant>, context: &mut Context<'_>) {
    if let Some(at) = next {
        context.act(Action::Await(source, at));
    }
}

/// A lease as the scenario has it if it says nothing.
pub const LEASE: Span = Span::from_secs(10);
/// How often the gateway tells the levels if the scenario says nothing.
pub const ADVERTISE: Span = Span::from_secs(1);
