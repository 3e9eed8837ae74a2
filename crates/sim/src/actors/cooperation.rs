//! Cooperation in a run: the gateway at the sending end of a bottleneck, a client at each node behind it, and their
//! messages.
//!
//! The state machines are those of [`penstock_core::coop`]. Their messages travel as UDP datagrams over the links
//! between the hosts and the gateway's router, where they wait and are lost like other packets. The budget of a node is
//! divided among its open sockets and limits their congestion control. A queue discipline that holds nodes to their
//! budgets is told the budgets as well. When hosts move, their flows may begin or cease to cross the bottleneck; they
//! count while they cross it.
use super::action::{Action, Context, Socket};
use crate::numbers::{LinkDir, Owner, Source};
use crate::segment::{Payload, Segment};
use penstock_core::cc::c2ml::Sockets;
use penstock_core::coop::client::{self, Client};
use penstock_core::coop::gateway::{self, Counters, Gateway, Start, To};
use penstock_core::coop::message::{self, Message, Request};
use penstock_core::coop::policy::Policy;
use penstock_core::coop::{Claim, Key, Keyring, NodeId, Share, Signed, State};
use penstock_core::fact::Fact;
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Rate, Span};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The largest number of datagrams that are kept as in transit; older ones count as lost.
const ON_THE_WAY: usize = 1 << 16;

/// A way in which a node violates the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lie {
    /// The node never registers.
    Silent,
    /// The node claims that it can use ten times the rate of the bottleneck.
    Claims,
    /// The node sends states which the gateway gave to others, and says goodbye in the name of others.
    Replays,
}

impl Lie {
    /// All variants with their words in scenarios.
    pub const ALL: [(&'static str, Self); 3] =
        [("silent", Self::Silent), ("claims", Self::Claims), ("replays", Self::Replays)];
}

/// The special settings of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpec {
    /// Name of the node, as flows give it.
    pub name: String,
    /// The link whose rate limits what the node can use (CSI); `None` without such a link.
    pub csi: Option<usize>,
    /// How the node violates the protocol; `None` if it does not.
    pub lie: Option<Lie>,
    /// The share in the ticket that the node begins with; `None` if it has none.
    pub share: Option<Share>,
}

/// The settings of `[cooperation]`: a gateway at the sending end of a link, and clients at all nodes whose flows cross
/// the link.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Index of the link among those of the scenario; the gateway is at its first end.
    pub link: usize,
    /// The policy by which the gateway divides the rate.
    pub policy: Policy,
    /// How long a client may use a budget before it must be renewed.
    pub lease: Span,
    /// Interval at which the gateway advertises budgets.
    pub advertise: Span,
    /// When the gateway ceases to send; `None` if it does not.
    pub silent_from: Option<Span>,
    /// Nodes with special settings.
    pub nodes: Vec<NodeSpec>,
}

/// The state of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketState {
    /// The socket was not opened yet.
    New,
    /// The socket is open.
    Open,
    /// The socket was closed.
    Closed,
}

/// A flow as a socket of its node.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Number of its node.
    pub node: u32,
    /// Weight of the socket: its part of the node's budget is proportional to it.
    pub weight: u32,
    /// True if the flow crosses the bottleneck; otherwise it has no part of the budget. This changes when hosts move.
    pub crosses: bool,
    /// True if each connection that its sessions open is a socket. The flow itself is then not a socket.
    pub opens_connections: bool,
    /// State of the socket.
    pub socket: SocketState,
}

/// A client host and what is known of it.
#[derive(Debug)]
struct Node {
    /// The state machine of the client.
    client: Client,
    /// The budget and the sockets among which it is divided.
    sockets: Sockets,
    /// Numbers of its flows.
    flows: Vec<u32>,
    /// The open connections of its sessions, each with its weight.
    connections: Vec<(u32, u32)>,
    /// Cursors of its routes in the table of routes: to the gateway, from the gateway.
    routes: [u32; 2],
    /// The direction of the link whose rate limits what the node can use (CSI). If this was the node's cell, it becomes
    /// the new cell after a move.
    csi: Option<LinkDir>,
    /// How the node violates the protocol; `None` if it does not.
    lie: Option<Lie>,
    /// The budget that the discipline was last told.
    told: Option<Rate>,
}

/// A flow whose client now sends by another route.
#[derive(Debug, Clone)]
pub struct Rerouted {
    /// Number of the flow.
    pub flow: u32,
    /// Cursor of the new route in the table of routes.
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
    /// Numbers of its flows.
    pub flows: Vec<u32>,
    /// Cursors of its routes in the table of routes: to the gateway, from the gateway.
    pub routes: [u32; 2],
    /// The direction of the link whose rate limits what the node can use (CSI).
    pub csi: Option<LinkDir>,
    /// How the node violates the protocol; `None` if it does not.
    pub lie: Option<Lie>,
    /// The share in the ticket that the node begins with; `None` if it has none.
    pub share: Option<Share>,
}

/// The gateway and all clients of a run.
#[derive(Debug)]
pub struct Cooperation {
    /// The bottleneck, in the direction whose rate is divided.
    link: LinkDir,
    gateway: Gateway,
    /// When the gateway ceases to send; `Instant::MAX` means never.
    silent_from: Instant,
    nodes: Vec<Node>,
    /// Every flow, in the order of their numbers.
    members: Vec<Member>,
    /// Messages that a client or the gateway has to send; the buffers are kept so that nothing is allocated anew.
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

/// The results of cooperation at the end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Summary {
    /// Number of clients that hold a budget at the end.
    pub clients: u32,
    /// Sum of their budgets, in bits per second.
    pub granted_bps: u64,
    /// The rate that is divided, in bits per second.
    pub bandwidth_bps: u64,
    /// Number of datagrams sent.
    pub messages: u64,
    /// Bytes of these datagrams, without headers.
    pub message_bytes: u64,
    /// Number of clients admitted.
    pub joined: u64,
    /// Number of clients that said goodbye.
    pub left: u64,
    /// Number of clients removed because the gateway had heard nothing of them for one lease.
    pub lapsed: u64,
    /// Number of requests that were repeated and got the same answer again.
    pub repeated: u64,
    /// Number of requests that were ignored because they were too old.
    pub stale: u64,
    /// Number of requests with the state of another node, or with a state that the gateway had not signed.
    pub forged: u64,
    /// Number of messages that are not meant for a gateway, or that speak for another node.
    pub ignored: u64,
}

impl Cooperation {
    /// Creates the state machines for a scenario that was checked.
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
            client: Client::new(client::Config {
                ticket: setup.share.map(|share| State::ticket(NodeId(id), share).sign(&ring)),
                ..client::Config::new(NodeId(id), secrets.bits())
            })
            .expect("defaults are valid"),
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

    /// Stores a message as a datagram in transit; returns the payload that stands for it.
    fn pack(&mut self, message: &Message) -> Payload {
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
        Payload { seq: self.first.wrapping_add(self.datagrams.len() as u32 - 1), len }
    }

    /// Returns the message in the datagram with this number; `None` if it is no longer kept or cannot be decoded.
    fn unpack(&self, number: u32) -> Option<Message> {
        let bytes = self.datagrams.get(number.wrapping_sub(self.first) as usize)?;
        message::decode(bytes, &self.ring).ok()
    }

    /// Returns the message that a node sends instead, if the node violates the protocol; otherwise the message itself.
    fn twisted(&self, node: usize, message: Message) -> Message {
        match (self.nodes[node].lie, message) {
            (Some(Lie::Claims), Message::UsedBw(request, _)) => {
                Message::UsedBw(request, Claim::bps(self.bandwidth.as_bps().saturating_mul(10)))
            }
            (Some(Lie::Replays), Message::UsedBw(request, claim)) => match self.overheard {
                // The node alternates: it sends the state of another node as its own, then says goodbye in the name of
                // that node.
                Some((_, state)) if request.ask % 2 == 0 => Message::UsedBw(Request { state, ..request }, claim),
                Some((victim, state)) => Message::ClientBye(Request { node: victim, state, ..request }),
                None => message,
            },
            _ => message,
        }
    }

    /// Returns the number of nodes that take part.
    pub fn nodes(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Returns the cursor of the route from a node to the gateway.
    pub fn route_from(&self, node: u32) -> u32 {
        self.nodes[node as usize].routes[0]
    }

    /// Changes the route by which one end of a node's messages sends: 0 is the client, 1 the gateway.
    pub fn reroute(&mut self, node: u32, end: usize, route: u32) {
        self.nodes[node as usize].routes[end] = route;
    }

    /// Returns the results up to now.
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

// The inputs from the run.
impl Cooperation {
    /// Starts the machines before the run: tells clients what they can use, and sets the gateway's timer.
    pub fn start(&mut self, context: &mut Context<'_>) {
        (0..self.nodes()).for_each(|node| self.tell_usable(node, context));
        await_source(Source::Gateway, self.gateway.next_timeout(), context);
        if self.silent_from > Instant::ZERO {
            // No node has registered yet, so the discipline is told that no node has a budget.
            for node in (0..self.nodes()).map(NodeId) {
                context.act(Action::Tell(self.link, Fact::Budget { node, budget: None }));
            }
        }
    }

    /// Handles a flow whose TCP connection or source of datagrams opens.
    pub fn socket_opens(&mut self, flow: u32, context: &mut Context<'_>) {
        self.turn_socket(flow, SocketState::New, SocketState::Open, context);
    }

    /// Handles a flow whose TCP connection or source of datagrams closes.
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

    /// Handles a connection that a session of a flow opens.
    pub fn connection_opens(&mut self, flow: u32, number: u32, context: &mut Context<'_>) {
        let Member { node, weight, crosses, .. } = self.members[flow as usize];
        if crosses {
            self.nodes[node as usize].connections.push((number, weight));
            self.count_socket(node, weight, true, context);
        }
    }

    /// Handles a connection of a session that has ended.
    pub fn connection_closes(&mut self, flow: u32, number: u32, context: &mut Context<'_>) {
        let Member { node, weight, crosses, .. } = self.members[flow as usize];
        if crosses {
            self.nodes[node as usize].connections.retain(|(open, _)| *open != number);
            self.count_socket(node, weight, false, context);
        }
    }

    /// Handles flows whose clients send by other routes now, each with its route and its open connections. Some of them
    /// may have begun or ceased to cross the bottleneck.
    pub fn routes_changed(&mut self, flows: &[Rerouted], context: &mut Context<'_>) {
        // A window is the budget times the round trip time, which has changed.
        for flow in flows {
            flow.sockets().for_each(|socket| context.act(Action::PathChanged(socket)));
        }
        let crosses = |flow: &Rerouted| context.crosses(flow.route, self.link);
        let turned = |flow: &&Rerouted| self.members[flow.flow as usize].crosses != crosses(flow);
        let mut turned: Vec<(&Rerouted, bool)> =
            flows.iter().filter(turned).map(|flow| (flow, crosses(flow))).collect();
        // Flows which begin to cross come first: then a node that has a socket before and after does not say goodbye in
        // between.
        turned.sort_by_key(|(flow, crosses)| (!crosses, flow.flow));
        turned.into_iter().for_each(|(flow, crosses)| self.turn_member(flow, crosses, context));
    }

    /// Makes a flow and its connections sockets of their node, or takes them out of the node's budget.
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

    /// Handles a node that has attached to another cell. If the link of its cell limits what it can use, the new cell's
    /// link does so from now on.
    pub fn node_attached(&mut self, node: u32, old: LinkDir, new: LinkDir, context: &mut Context<'_>) {
        let csi = &mut self.nodes[node as usize].csi;
        if csi.is_some_and(|link| link.duplex() == old.duplex()) {
            *csi = Some(new);
        }
        self.tell_usable(node, context);
    }

    /// Handles a change of the rates of links: the gateway and the clients learn the new rates.
    pub fn rates_changed(&mut self, context: &mut Context<'_>) {
        let bandwidth = context.rate(self.link);
        if bandwidth != self.gateway.bandwidth() && context.now < self.silent_from {
            self.gateway.set_bandwidth(bandwidth, context.now, &mut self.from_gateway);
            self.after_gateway(context);
        }
        (0..self.nodes()).for_each(|node| self.tell_usable(node, context));
    }

    /// Handles the timer of the gateway.
    pub fn wake_gateway(&mut self, context: &mut Context<'_>) {
        if context.now < self.silent_from {
            self.gateway.poll(context.now, &mut self.from_gateway);
            self.after_gateway(context);
        }
    }

    /// Handles the timer of a node's client.
    pub fn wake_client(&mut self, node: u32, context: &mut Context<'_>) {
        self.nodes[node as usize].client.poll(context.now, &mut self.to_gateway);
        self.after_client(node, context);
        self.hand_out(node, context);
    }

    /// Handles a datagram of a node that arrives at the gateway or at the client.
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

// The effects of these inputs.
impl Cooperation {
    /// Counts a socket that opens or closes at a node. With the first socket the node joins, with the last one it
    /// leaves; the parts of all sockets change.
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

    /// Tells a client what its node can use according to CSI, if that is less than the rate of the bottleneck.
    fn tell_usable(&mut self, node: u32, context: &mut Context<'_>) {
        let Node { client, csi, .. } = &mut self.nodes[node as usize];
        if let Some(link) = csi {
            client.set_usable(Some(context.rate(*link)), context.now, &mut self.to_gateway);
            self.after_client(node, context);
            self.hand_out(node, context);
        }
    }

    /// Sends the messages of a client, if it has any, and sets its timer.
    fn after_client(&mut self, node: u32, context: &mut Context<'_>) {
        let mut messages = std::mem::take(&mut self.to_gateway);
        for message in messages.drain(..) {
            let message = self.twisted(node as usize, message);
            self.send(node, &message, true, context);
        }
        self.to_gateway = messages;
        await_source(Source::Client(node), self.nodes[node as usize].client.next_timeout(), context);
    }

    /// Tells the discipline the budgets, sends the messages of the gateway, and sets its timer.
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
        let payload = self.pack(message);
        let mut packet = Segment::udp(context.number(Owner::Message(node)), from_client, payload);
        (packet.cursor, packet.at) = (cursor, context.now);
        context.act(Action::Send(packet));
    }

    /// Gives the sockets of a node their parts of its budget: first flows, then the connections of sessions.
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

    /// Tells a discipline that holds nodes to their budgets which budgets have changed.
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

/// Default of the lease of a budget.
pub const LEASE: Span = Span::from_secs(10);
/// Default of the interval at which the gateway advertises its levels.
pub const ADVERTISE: Span = Span::from_secs(1);
