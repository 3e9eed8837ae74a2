//! Cooperation: sockets that open and close, messages on their way, budgets that reach congestion controls and queues.
//!
//! Sources of events: the gateway, then one per node, after the changes of links. A datagram has the number of its node
//! after those of flows and forged SYNs; which message it is, its sequence number says.

use super::Simulation;
use crate::actors::cooperation::{Cooperation, Member, Node, Socket};
use crate::flow::{FORGED, Transport};
use crate::network;
use crate::scenario::Lie;
use crate::segment::Segment;
use penstock_core::coop::gateway::To;
use penstock_core::coop::message::Message;
use penstock_core::fact::Fact;
use penstock_core::packet::NodeId;
use penstock_core::qdisc::Qdisc;
use penstock_core::units::{Instant, Rate};

impl Simulation {
    /// How many nodes take part.
    pub(super) fn cooperating(&self) -> u32 {
        self.coop.as_ref().map_or(0, |coop| coop.nodes.len() as u32)
    }
    pub(super) fn first_message(&self) -> u32 {
        self.flows.len() as u32 + self.floods.len() as u32 * FORGED
    }
    fn gateway_source(&self) -> u32 {
        self.changes_source() + 1
    }
    fn client_source(&self, node: usize) -> u32 {
        self.gateway_source() + 1 + node as u32
    }

    /// The socket of a flow opened.
    pub(super) fn socket_opens(&mut self, flow: usize) {
        self.turn_socket(flow, Socket::New, Socket::Open);
    }

    /// It closed.
    pub(super) fn socket_closes(&mut self, flow: usize) {
        self.turn_socket(flow, Socket::Open, Socket::Closed);
    }

    /// The client of a flow may have nothing left to send.
    pub(super) fn review_socket(&mut self, flow: usize) {
        if let Transport::Tcp(client, _) = &self.flows[flow].transport
            && client.all_acked()
        {
            self.socket_closes(flow);
        }
    }

    fn turn_socket(&mut self, flow: usize, from: Socket, to: Socket) {
        if matches!(self.flows[flow].transport, Transport::Sessions(_)) {
            return;
        }
        let Some(coop) = &mut self.coop else { return };
        let member = &mut coop.members[flow];
        if member.socket != from {
            return;
        }
        member.socket = to;
        let Member { node, weight, crosses, .. } = *member;
        if crosses {
            self.count_socket(node as usize, weight, to == Socket::Open);
        }
    }

    /// A session of a flow opened a connection.
    pub(super) fn connection_opens(&mut self, flow: usize, number: u32) {
        let Some(coop) = &mut self.coop else { return };
        let Member { node, weight, crosses, .. } = coop.members[flow];
        if crosses {
            coop.nodes[node as usize].connections.push((number, weight));
            self.count_socket(node as usize, weight, true);
        }
    }

    /// The connection is over.
    pub(super) fn connection_closes(&mut self, flow: usize, number: u32) {
        let Some(coop) = &mut self.coop else { return };
        let Member { node, weight, crosses, .. } = coop.members[flow];
        if crosses {
            coop.nodes[node as usize].connections.retain(|(open, _)| *open != number);
            self.count_socket(node as usize, weight, false);
        }
    }

    /// The clients of these flows send by other ways now. Some cross the bottleneck that did not, or no longer.
    pub(super) fn ways_changed(&mut self, flows: &[u32]) {
        let Some(coop) = &self.coop else { return };
        let link = coop.link as u32;
        let turned = |flow: &u32| {
            let crosses = network::crosses(&self.routes, self.flows[*flow as usize].routes[0], link);
            (coop.members[*flow as usize].crosses != crosses).then_some((*flow, crosses))
        };
        let mut turned: Vec<(u32, bool)> = flows.iter().filter_map(turned).collect();
        // Who comes is first: a node that has a socket there before and after does not say goodbye.
        turned.sort_by_key(|(flow, crosses)| (!crosses, *flow));
        flows.iter().for_each(|flow| self.measure_anew(*flow));
        turned.into_iter().for_each(|(flow, crosses)| self.turn_member(flow, crosses));
    }

    /// A window is a budget times a round trip time, and that is another one now.
    fn measure_anew(&mut self, flow: u32) {
        let now = self.now;
        if let Transport::Tcp(client, _) = &mut self.flows[flow as usize].transport {
            client.path_changed(now);
        }
        for number in self.numbers_of(flow) {
            self.connections.path_changed(number, now);
        }
    }

    /// A flow becomes a socket of its node, or is none any more and on its own; its connections likewise.
    fn turn_member(&mut self, flow: u32, crosses: bool) {
        let numbers = self.numbers_of(flow);
        let Some(coop) = &mut self.coop else { return };
        let member = &mut coop.members[flow as usize];
        member.crosses = crosses;
        let Member { node, weight, socket, .. } = *member;
        let connections = &mut coop.nodes[node as usize].connections;
        if crosses {
            connections.extend(numbers.iter().map(|number| (*number, weight)));
        } else {
            connections.retain(|(number, _)| !numbers.contains(number));
        }
        for _ in 0..numbers.len() + usize::from(socket == Socket::Open) {
            self.count_socket(node as usize, weight, crosses);
        }
        if !crosses {
            self.release(flow, &numbers);
        }
    }

    /// A flow and its connections have no budget any more.
    fn release(&mut self, flow: u32, numbers: &[u32]) {
        if let Transport::Tcp(client, _) = &mut self.flows[flow as usize].transport
            && client.set_budget(None)
        {
            self.pump(flow as usize, false);
        }
        for number in numbers {
            if self.connections.set_budget(*number, None) {
                self.pump_connection(*number, false);
            }
        }
    }

    /// A node has attached to another cell. If its channel is what limits it, that is another one.
    pub(super) fn node_attached(&mut self, id: usize, old: u32, new: u32) {
        let Some(coop) = &mut self.coop else { return };
        let csi = &mut coop.nodes[id].csi;
        if csi.is_some_and(|link| link / 2 == old / 2) {
            *csi = Some(new);
        }
        self.tell_usable(id);
    }

    /// A node has one socket more, or one less: the first joins, the last leaves, and the parts of all change.
    fn count_socket(&mut self, id: usize, weight: u32, opens: bool) {
        let now = self.now;
        let Some(coop) = &mut self.coop else { return };
        let Node { client, sockets, lie, .. } = &mut coop.nodes[id];
        let changes = if opens { sockets.open(weight) } else { sockets.close(weight) };
        if changes && *lie != Some(Lie::Silent) {
            let out = &mut coop.to_gateway;
            if opens {
                client.open(now, out)
            } else {
                client.close(now, out)
            }
            self.after_client(id);
        }
        self.hand_out(id);
    }

    /// Timer number `index` of those of the gateway and its clients.
    pub(super) fn on_cooperation_timer(&mut self, index: usize) {
        let now = self.now;
        let Some(coop) = &mut self.coop else { return };
        let Some(id) = index.checked_sub(1) else {
            if now < coop.silent_from {
                coop.gateway.poll(now, &mut coop.from_gateway);
                self.after_gateway();
            }
            return;
        };
        coop.nodes[id].client.poll(now, &mut coop.to_gateway);
        self.after_client(id);
        self.hand_out(id);
    }

    /// A datagram arrived, at the gateway or at a client.
    pub(super) fn on_message(&mut self, packet: &Segment) {
        let now = self.now;
        let id = (packet.flow - self.first_message()) as usize;
        let Some(coop) = &mut self.coop else { return };
        let Some(message) = coop.unpack(packet.seq) else { return };
        if !packet.from_client() {
            coop.nodes[id].client.handle(&message, now, &mut coop.to_gateway);
            self.after_client(id);
            self.hand_out(id);
        } else if now < coop.silent_from {
            coop.gateway.handle(&message, NodeId(id as u32), now, &mut coop.from_gateway);
            self.after_gateway();
        }
    }

    /// True for the number of a datagram of cooperation.
    pub(super) fn is_message(&self, flow: u32) -> bool {
        flow.checked_sub(self.first_message()).is_some_and(|node| node < self.cooperating())
    }

    /// The rates of links changed.
    pub(super) fn links_changed(&mut self) {
        let now = self.now;
        let Some(coop) = &mut self.coop else { return };
        let bandwidth = self.links[coop.link].rate();
        if bandwidth != coop.gateway.bandwidth() && now < coop.silent_from {
            coop.gateway.set_bandwidth(bandwidth, now, &mut coop.from_gateway);
            self.after_gateway();
        }
        for id in 0..self.cooperating() as usize {
            self.tell_usable(id);
        }
    }

    /// A node learns by CSI what it can use, if that is less than its gateway could give.
    fn tell_usable(&mut self, id: usize) {
        let now = self.now;
        let Some(coop) = &mut self.coop else { return };
        if let Some(link) = coop.nodes[id].csi {
            let usable = self.links[link as usize].rate();
            coop.nodes[id].client.set_usable(Some(usable), now, &mut coop.to_gateway);
            self.after_client(id);
            self.hand_out(id);
        }
    }

    /// Sends what a client has to send and keeps its timer.
    fn after_client(&mut self, id: usize) {
        let Some(coop) = &mut self.coop else { return };
        let messages = std::mem::take(&mut coop.to_gateway);
        let next = coop.nodes[id].client.next_timeout();
        for message in &messages {
            let Some(coop) = &self.coop else { return };
            let message = coop.twisted(id, *message);
            self.send_message(id, &message, true);
        }
        if let Some(coop) = &mut self.coop {
            coop.to_gateway = messages;
            coop.to_gateway.clear();
        }
        self.await_source(self.client_source(id), next);
    }

    /// Sends what the gateway has to send, tells the discipline, and keeps its timer.
    fn after_gateway(&mut self) {
        self.tell_discipline();
        let Some(coop) = &mut self.coop else { return };
        let messages = std::mem::take(&mut coop.from_gateway);
        let next = coop.gateway.next_timeout();
        for outgoing in &messages {
            match outgoing.to {
                To::Node(node) => self.send_message(node.0 as usize, &outgoing.message, false),
                To::Everyone => (0..self.cooperating()).for_each(|id| {
                    if self.coop.as_ref().is_some_and(|coop| coop.nodes[id as usize].client.is_active()) {
                        self.send_message(id as usize, &outgoing.message, false);
                    }
                }),
            }
        }
        if let Some(coop) = &mut self.coop {
            coop.from_gateway = messages;
            coop.from_gateway.clear();
        }
        self.await_source(self.gateway_source(), next);
    }

    fn await_source(&mut self, source: u32, next: Option<Instant>) {
        if let Some(at) = next {
            self.events.set(source, at.max(self.now));
        }
    }

    fn send_message(&mut self, id: usize, message: &Message, from_client: bool) {
        let number = self.first_message() + id as u32;
        let Some(coop) = &mut self.coop else { return };
        let Some(node) = coop.nodes.get(id) else { return };
        let cursor = node.routes[usize::from(!from_client)];
        let (sequence, len) = coop.pack(message);
        let mut packet = Segment::udp_of(number, sequence, len, from_client);
        (packet.cursor, packet.at) = (cursor, self.now);
        self.offer(self.routes[cursor as usize] as usize, &mut packet);
    }

    /// The sockets of a node get their parts of its budget, and send what they may send now.
    fn hand_out(&mut self, id: usize) {
        let now = self.now;
        let Some(coop) = &mut self.coop else { return };
        let node = &mut coop.nodes[id];
        node.sockets.set_budget(node.client.budget(now));
        let parts: Vec<(u32, Option<Rate>)> = coop.parts(id).collect();
        for (flow, part) in parts {
            if let Transport::Tcp(client, _) = &mut self.flows[flow as usize].transport
                && client.set_budget(part)
            {
                self.pump(flow as usize, false);
            }
        }
        let Some(coop) = &self.coop else { return };
        let parts: Vec<(u32, Option<Rate>)> = coop.parts_of_connections(id).collect();
        for (number, part) in parts {
            if self.connections.set_budget(number, part) {
                self.pump_connection(number, false);
            }
        }
    }

    /// A discipline that holds nodes to their budgets learns what changed.
    fn tell_discipline(&mut self) {
        let now = self.now;
        let Some(coop) = &mut self.coop else { return };
        let Cooperation { gateway, nodes, link, .. } = &mut **coop;
        let link = &mut self.links[*link];
        for (id, node) in (0..).zip(nodes) {
            let granted = gateway.granted_to(NodeId(id)).map(Rate::from_bps);
            if granted == node.told {
                continue;
            }
            node.told = granted;
            link.catch_up(now, &mut self.outlet);
            if let Some(queue) = &mut link.queue {
                queue.qdisc.on_fact(&Fact::Budget { node: NodeId(id), budget: granted }, now);
            }
        }
        self.relay();
    }

    /// Before the run: what nodes can use, and the gateway's first words.
    pub(super) fn start_cooperation(&mut self) {
        for id in 0..self.cooperating() as usize {
            self.tell_usable(id);
        }
        let Some(coop) = &self.coop else { return };
        let (next, link, speaks) = (coop.gateway.next_timeout(), coop.link, coop.silent_from > Instant::ZERO);
        self.await_source(self.gateway_source(), next);
        if let Some(queue) = self.links[link].queue.as_mut().filter(|_| speaks) {
            // Nobody is listed yet, and that is known.
            (0..self.coop.as_ref().map_or(0, |coop| coop.nodes.len() as u32))
                .for_each(|id| queue.qdisc.on_fact(&Fact::Budget { node: NodeId(id), budget: None }, Instant::ZERO));
        }
    }
}
