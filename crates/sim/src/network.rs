//! From a scenario to links, routes and flows.

mod moves;

use crate::actors::changes::{changes_rate_at_once, directions};
use crate::actors::cooperation::{self, Member, Socket};
use crate::actors::handovers::Move;
use crate::actors::sessions::{Plan, Sessions};
use crate::actors::{Traffic, cbr::Cbr, sizes::Mix, video::Stream, voip::Call};
use crate::flow::{FORGED, Flow, Kind, SynFlood, Transport, UdpSource};
use crate::link::{Capacity, Link, Queue};
use crate::loss::Loss;
use crate::numbers::LinkDir;
use crate::probe::QueueProbe;
use crate::scenario::paths::Graph;
use crate::scenario::{Cooperation, FlowSpec, LinkSpec, QueueSpec, Scenario, StationSpec};
use crate::stations::Stations;
use crate::tcp::{Endpoint, Role};
use penstock_core::config::LinkFacts;
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::qdisc::{Backlog, Qdisc};
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Limit, Rate, Serializer, Span};
use std::collections::BTreeMap;
use std::sync::Arc;

/// In the table of routes: the packet is at its host.
pub const END: u32 = u32::MAX;

/// A queue that is looked at.
#[derive(Debug)]
pub struct Bottleneck {
    /// Its name.
    pub name: String,
    /// Its discipline.
    pub aqm: String,
    /// Its link.
    pub link: usize,
    /// The flows that cross it from client to server.
    pub flows: Vec<u32>,
}

/// Everything a run needs.
pub struct Network {
    /// Links, each one direction.
    pub links: Vec<Link>,
    /// Routes, one after the other, each ended by [`END`].
    pub routes: Vec<u32>,
    /// Flows.
    pub flows: Vec<Flow>,
    /// Those that are floods, in order.
    pub floods: Vec<u32>,
    /// Queues that are looked at.
    pub bottlenecks: Vec<Bottleneck>,
    /// The nodes whose sockets the flows are; empty if nobody asks.
    pub owners: Vec<u32>,
    /// Classes of flows that have one.
    pub classes: BTreeMap<u32, u32>,
    /// Hosts that move, in the order of their times.
    pub moves: Vec<Move>,
    /// The gateway and its clients.
    pub coop: Option<Box<cooperation::Cooperation>>,
}

/// Builds the network of a scenario.
pub fn build(scenario: &Scenario) -> Network {
    let mut builder = Builder {
        scenario,
        streams: Streams::new(scenario.seed),
        network: Network {
            links: Vec::new(),
            routes: Vec::new(),
            flows: Vec::new(),
            floods: Vec::new(),
            bottlenecks: Vec::new(),
            owners: Vec::new(),
            classes: BTreeMap::new(),
            moves: Vec::new(),
            coop: None,
        },
        graph: Graph::new(&scenario.links),
        paths: BTreeMap::new(),
        ends: scenario
            .flows
            .iter()
            .flat_map(|spec| std::iter::repeat_n([spec.from.as_str(), spec.to.as_str()], spec.count as usize))
            .collect(),
    };
    scenario.links.iter().for_each(|spec| builder.add_duplex(spec));
    for (group, spec) in scenario.flows.iter().enumerate() {
        builder.add_group(group, spec);
    }
    builder.add_nodes();
    builder.tell_classes();
    scenario.handovers.iter().for_each(|handover| builder.add_moves(handover));
    builder.network.tell_who_relays();
    for change in scenario.changes.iter().filter(|change| changes_rate_at_once(change)) {
        directions(change).for_each(|link| builder.network.keeps_packets(link));
    }
    builder.network
}

impl Network {
    /// A link relays if no packet that leaves it is looked at before it is on a plain link. Plain links after the first
    /// of a route carry the packets of that route alone.
    fn tell_who_relays(&mut self) {
        for hop in self.routes.windows(2) {
            let plain = self.links.get(hop[1] as usize).is_some_and(|next| next.queue.is_none());
            if let Some(queue) = self.links.get_mut(hop[0] as usize).and_then(|link| link.queue.as_mut()) {
                queue.relays &= plain && queue.ack_path_of.is_none();
            }
        }
    }
}

impl Network {
    /// A link whose rate changes during a transmission does not relay: when packets arrive is not known beforehand.
    fn keeps_packets(&mut self, link: usize) {
        if let Some(queue) = &mut self.links[link].queue {
            queue.relays = false;
        }
    }
}

struct Builder<'a> {
    scenario: &'a Scenario,
    streams: Streams,
    network: Network,
    graph: Graph<'a>,
    /// Paths already found, as links.
    paths: BTreeMap<(&'a str, &'a str), Vec<u32>>,
    /// The routers of the hosts of each flow, as far as they have moved.
    ends: Vec<[&'a str; 2]>,
}

impl<'a> Builder<'a> {
    fn add_duplex(&mut self, spec: &'a LinkSpec) {
        let forward = self.add_link(spec, &spec.queue, &spec.name, (spec.link.limit, spec.link.loss));
        let backward = self.add_link(spec, &spec.reverse_queue, &spec.reverse_name(), (spec.link.reverse_limit, 0.0));
        // What a link delivers has passed the other direction's far end: its discipline may want to see it.
        for (here, there) in [(forward, backward), (backward, forward)] {
            let sees = self.network.links[here as usize].queue.as_ref().is_some_and(|q| q.sees_segments);
            if let Some(queue) = &mut self.network.links[there as usize].queue {
                queue.ack_path_of = sees.then_some(here);
            }
        }
    }

    fn add_link(&mut self, spec: &LinkSpec, queue: &QueueSpec, name: &str, (limit, loss): (Limit, f64)) -> u32 {
        let index = self.network.links.len();
        let facts = LinkFacts { rate: spec.link.rate, limit };
        let mut qdisc = queue.config.build(&facts);
        let loss = self.loss(queue, name, loss);
        if let Some(stations) = &loss.stations {
            stations.tell(|station, loss| qdisc.on_fact(&Fact::Channel { station, loss }, Instant::ZERO));
        }
        let waits = loss.stations.is_some();
        let managed = Queue {
            sees_segments: qdisc.sees_segments(),
            ack_path_of: None,
            relays: true,
            eager: false,
            loss,
            capacity: Capacity::default(),
            told_empty: true,
            waiting: Backlog::default(),
            wakes: qdisc.wakes() || waits,
            qdisc,
            rng: self.streams.get(&format!("{name}/{}", queue.config.name())),
            probe: queue.looked_at.then(|| Box::new(QueueProbe::new(self.scenario.invariants.max_queue))),
            interface: if queue.looked_at { self.network.bottlenecks.len() as u32 } else { u32::MAX },
        };
        if queue.looked_at {
            let aqm = queue.config.name().to_owned();
            self.network.bottlenecks.push(Bottleneck { name: name.into(), aqm, link: index, flows: Vec::new() });
        }
        self.network.links.push(Link::new(Serializer::new(spec.link.rate), spec.link.delay, Some(Box::new(managed))));
        index as u32
    }

    fn loss(&self, queue: &QueueSpec, name: &str, probability: f64) -> Loss {
        let stream = |of| self.streams.get(&format!("{name}/{of}"));
        let channels = queue.stations.iter().map(StationSpec::channel).collect();
        let mut loss = Loss::new(probability, stream("loss"));
        loss.stations = Stations::new(channels, stream("channels"), stream("stations"));
        loss
    }

    fn add_plain(&mut self, rate: Rate, delay: Span) -> u32 {
        self.network.links.push(Link::new(Serializer::new(rate), delay, None));
        self.network.links.len() as u32 - 1
    }

    fn add_group(&mut self, group: usize, spec: &'a FlowSpec) {
        let mut starts = self.streams.get(&format!("flows{group}/start"));
        let tcp = Arc::new(spec.tcp.clone());
        for i in 0..spec.count {
            let spread = Span::from_secs_f64(starts.uniform() * spec.start_spread.as_secs_f64());
            let start = Instant::ZERO + spec.start + spec.start_step * i + spread;
            let id = self.network.flows.len() as u32;
            let routes = self.add_hosts(spec, id);
            let transport = self.transport(spec, &tcp, id);
            self.network.flows.push(Flow {
                kind: kind(&spec.traffic),
                start,
                stop: spec.stop.map_or(Instant::MAX, |s| Instant::ZERO + s),
                transport,
                routes,
                rtt: Default::default(),
                completed: Instant::MAX,
                counted: 0,
            });
        }
    }

    fn transport(&mut self, spec: &FlowSpec, tcp: &Arc<crate::tcp::TcpConfig>, id: u32) -> Transport {
        let sessions = |plan| Transport::Sessions(Box::new(Sessions::new(plan, tcp.clone(), &self.streams, id)));
        match &spec.traffic {
            Traffic::Bulk(_) | Traffic::Transfer(_) => {
                let mut iss = self.streams.get(&format!("flow{id}/iss"));
                let mut end = |role| Endpoint::new(tcp.clone(), id, role, iss.bits() as u32);
                Transport::Tcp(end(Role::Client), end(Role::Server))
            }
            Traffic::SynFlood(flood) => {
                // Its connections are numbered after all flows.
                let flows: u64 = self.scenario.flows.iter().map(|f| f.count).sum();
                let first = flows as u32 + self.network.floods.len() as u32 * FORGED;
                self.network.floods.push(id);
                Transport::Flood(SynFlood::new(flood.per_second, first))
            }
            Traffic::Cbr(cbr) => Transport::Udp(self.udp(cbr, id)),
            Traffic::OnOff(onoff) => Transport::Udp(self.udp(&onoff.on, id)),
            Traffic::Http(http) => sessions(Plan::Http(*http)),
            Traffic::Web(web) => sessions(Plan::Web(*web)),
            Traffic::Voip(voip) => {
                Transport::Voip(Box::new(Call::new(*voip, self.streams.get(&format!("flow{id}/spurts")))))
            }
            Traffic::Video(video) => {
                Transport::Video(Box::new(Stream::new(*video, self.streams.get(&format!("flow{id}/frames")))))
            }
        }
    }

    fn udp(&mut self, spec: &Cbr, id: u32) -> UdpSource {
        let sizes: Vec<u16> = spec.packet_size.iter().map(|size| size.get() as u16).collect();
        let first = sizes.first().copied().unwrap_or_default();
        let source = UdpSource::new(spec.rate, first, self.streams.get(&format!("flow{id}/onoff")));
        if sizes.len() < 2 {
            return source;
        }
        source.with_mix(Mix::new(&sizes, &spec.packet_weights, self.streams.get(&format!("flow{id}/sizes"))))
    }

    /// The nodes whose sockets the flows are, if anybody asks: a gateway, or a name in the scenario.
    fn add_nodes(&mut self) {
        let named = self.scenario.flows.iter().any(|spec| spec.node.is_some());
        if !named && self.scenario.cooperation.is_none() {
            return;
        }
        let specs = self.scenario.flows.iter().flat_map(|spec| std::iter::repeat_n(spec, spec.count as usize));
        let mut known: BTreeMap<&'a str, u32> = BTreeMap::new();
        let (mut owners, mut nodes): (Vec<u32>, Vec<(&'a FlowSpec, Vec<u32>)>) = (Vec::new(), Vec::new());
        for (flow, spec) in (0..).zip(specs) {
            let fresh = nodes.len() as u32;
            let node = spec.node.as_ref().map_or(fresh, |name| *known.entry(name).or_insert(fresh));
            if node == fresh {
                nodes.push((spec, Vec::new()));
            }
            nodes[node as usize].1.push(flow);
            owners.push(node);
        }
        for queue in self.network.links.iter_mut().filter_map(|link| link.queue.as_mut()) {
            for (flow, node) in (0..).zip(&owners) {
                queue.qdisc.on_fact(&Fact::Owner { flow: FlowId(flow), node: NodeId(*node) }, Instant::ZERO);
            }
        }
        if let Some(cooperation) = &self.scenario.cooperation {
            self.cooperate(cooperation, &owners, nodes);
        }
        self.network.owners = owners;
    }

    /// The gateway's and the clients' machines, with routes of their own for what they say. The last links of these
    /// carry other packets besides, so nothing is relayed.
    fn cooperate(&mut self, spec: &'a Cooperation, owners: &[u32], nodes: Vec<(&'a FlowSpec, Vec<u32>)>) {
        let (link, gateway) = (2 * spec.link as u32, self.scenario.links[spec.link].a.as_str());
        let mut plans = Vec::new();
        for (first, flows) in nodes {
            let access = self.network.routes[self.network.flows[flows[0] as usize].routes[0] as usize];
            let there = if first.from == gateway { Vec::new() } else { self.path(&first.from, gateway) };
            let back: Vec<u32> = there.iter().rev().map(|link| other_direction(*link)).collect();
            let routes = [self.add_links(&[&[access], &there[..]]), self.add_links(&[&back[..], &[access + 1]])];
            let special = spec.nodes.iter().find(|node| Some(&node.name) == first.node.as_ref());
            plans.push(cooperation::Plan {
                flows,
                routes,
                csi: special.and_then(|node| node.csi).map(|link| 2 * link as u32),
                lie: special.and_then(|node| node.lie),
            });
        }
        let weights = self.scenario.flows.iter().flat_map(|f| std::iter::repeat_n(f.weight, f.count as usize));
        let member = |((flow, node), weight): ((&Flow, &u32), u32)| {
            let crosses = crosses(&self.network.routes, flow.routes[0], link);
            Member { node: *node, weight, crosses, socket: Socket::New }
        };
        let members = self.network.flows.iter().zip(owners).zip(weights).map(member).collect();
        let bandwidth = self.scenario.links[spec.link].link.rate;
        let machines = cooperation::Cooperation::new(spec, bandwidth, plans, members, &self.streams);
        self.network.coop = Some(Box::new(machines));
        self.network.links.iter_mut().filter_map(|link| link.queue.as_mut()).for_each(|queue| queue.relays = false);
    }

    /// Queues with classes learn those of flows that have one.
    fn tell_classes(&mut self) {
        let specs = self.scenario.flows.iter().flat_map(|spec| std::iter::repeat_n(spec.class, spec.count as usize));
        for (flow, class) in (0..).zip(specs).filter_map(|(flow, class): (u32, _)| Some((flow, class?))) {
            let queues = self.network.links.iter_mut().filter_map(|link| link.queue.as_mut());
            queues.for_each(|queue| queue.qdisc.on_fact(&Fact::Class { flow: FlowId(flow), class }, Instant::ZERO));
            self.network.classes.insert(flow, class);
        }
    }

    fn add_links(&mut self, parts: &[&[u32]]) -> u32 {
        let start = self.network.routes.len() as u32;
        parts.iter().for_each(|part| self.network.routes.extend_from_slice(part));
        self.network.routes.push(END);
        start
    }

    /// A host pair with access links of its own, and the routes between the two.
    fn add_hosts(&mut self, spec: &'a FlowSpec, id: u32) -> [u32; 2] {
        let access = &self.scenario.access;
        let left = spec.access_delay.unwrap_or(access.delay);
        let client = [self.add_plain(access.rate, left), self.add_plain(access.rate, left)];
        let server = [self.add_plain(access.rate, access.delay), self.add_plain(access.rate, access.delay)];
        let there = self.path(&spec.from, &spec.to);
        let back: Vec<u32> = there.iter().rev().map(|link| other_direction(*link)).collect();
        for link in &there {
            let crossed = self.network.bottlenecks.iter_mut().find(|b| b.link == *link as usize);
            if let Some(bottleneck) = crossed {
                bottleneck.flows.push(id);
            }
        }
        [self.add_route(client[0], &there, server[1]), self.add_route(server[0], &back, client[1])]
    }

    fn add_route(&mut self, first: u32, path: &[u32], last: u32) -> u32 {
        let start = self.network.routes.len() as u32;
        self.network.routes.push(first);
        self.network.routes.extend_from_slice(path);
        self.network.routes.extend([last, END]);
        start
    }

    /// Links of the path of least delay. The scenario was checked: it exists.
    fn path(&mut self, from: &'a str, to: &'a str) -> Vec<u32> {
        if let Some(path) = self.paths.get(&(from, to)) {
            return path.clone();
        }
        let path: Vec<u32> = self.graph.shortest(from, to).into_iter().flatten().map(LinkDir::place).collect();
        self.paths.insert((from, to), path.clone());
        path
    }
}

/// True if a link is on the route that begins at a cursor of the table.
pub fn crosses(routes: &[u32], cursor: u32, link: u32) -> bool {
    routes[cursor as usize..].iter().take_while(|hop| **hop != END).any(|hop| *hop == link)
}

/// Links stand in pairs of the two directions.
fn other_direction(link: u32) -> u32 {
    LinkDir::at(link).reverse().place()
}

fn kind(traffic: &Traffic) -> Kind {
    match traffic {
        Traffic::Bulk(_) => Kind::Bulk,
        Traffic::Transfer(transfer) => Kind::Transfer(transfer.size),
        Traffic::Cbr(_) => Kind::Cbr,
        Traffic::OnOff(onoff) => Kind::OnOff(onoff.mean_on, onoff.mean_off),
        Traffic::SynFlood(flood) => Kind::SynFlood(flood.per_second),
        Traffic::Http(_) => Kind::Http,
        Traffic::Web(_) => Kind::Web,
        Traffic::Voip(_) => Kind::Voip,
        Traffic::Video(_) => Kind::Video,
    }
}
