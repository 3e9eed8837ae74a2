//! From a scenario to links, routes and flows.

mod moves;

use crate::actors::application::Setup;
use crate::actors::changes::{Before, Changes, changes_rate_at_once, directions};
use crate::actors::connections::Connections;
use crate::actors::cooperation::{Cooperation, Member, NodeSetup, SocketState, Spec};
use crate::actors::handovers::Move;
use crate::flow::Flow;
use crate::link::{Capacity, Link, Queue};
use crate::loss::Loss;
use crate::numbers::{Layout, LinkDir, first_forged};
use crate::probe::QueueProbe;
use crate::scenario::paths::Graph;
use crate::scenario::{FlowSpec, LinkSpec, QueueSpec, Scenario, StationSpec};
use crate::stations::Stations;
use crate::world::{END, crosses};
use penstock_core::config::LinkFacts;
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::qdisc::{Backlog, Qdisc};
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Limit, Rate, Serializer, Span};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A queue that is looked at.
#[derive(Debug)]
pub struct Bottleneck {
    /// Its name.
    pub name: String,
    /// Its discipline.
    pub aqm: String,
    /// Its link.
    pub link: LinkDir,
    /// The flows that cross it from client to server.
    pub flows: Vec<u32>,
}

/// Everything a run needs.
#[derive(Debug)]
pub struct Network {
    /// Numbers of sources and owners.
    pub layout: Layout,
    /// Links, each one direction.
    pub links: Vec<Link>,
    /// Routes, one after the other, each ended by [`END`].
    pub routes: Vec<u32>,
    /// Flows.
    pub flows: Vec<Flow>,
    /// Those that forge connections, in order.
    pub floods: Vec<u32>,
    /// Queues that are looked at.
    pub bottlenecks: Vec<Bottleneck>,
    /// Connections of sessions; none is open yet.
    pub connections: Connections,
    /// Changes of links.
    pub changes: Changes,
    /// Hosts that move, in the order of their times.
    pub moves: Vec<Move>,
    /// The gateway and its clients.
    pub cooperation: Option<Box<Cooperation>>,
}

/// Builds the network of a scenario.
pub fn build(scenario: &Scenario) -> Network {
    let mut builder = Builder {
        scenario,
        streams: Streams::new(scenario.seed),
        links: Vec::new(),
        routes: Vec::new(),
        flows: Vec::new(),
        floods: Vec::new(),
        bottlenecks: Vec::new(),
        nodes: Vec::new(),
        moves: Vec::new(),
        cooperation: None,
        graph: Graph::new(&scenario.links),
        paths: BTreeMap::new(),
        ends: each_flow(scenario).map(|spec| [spec.from.as_str(), spec.to.as_str()]).collect(),
    };
    scenario.links.iter().for_each(|spec| builder.add_duplex(spec));
    for (group, spec) in scenario.flows.iter().enumerate() {
        builder.add_group(group, spec);
    }
    builder.add_nodes();
    let classes = builder.tell_classes();
    scenario.handovers.iter().for_each(|handover| builder.add_moves(handover));
    builder.tell_which_relay();
    builder.finish(classes)
}

/// The settings of each flow, in the order of their numbers.
fn each_flow(scenario: &Scenario) -> impl Iterator<Item = &FlowSpec> {
    scenario.flows.iter().flat_map(|spec| std::iter::repeat_n(spec, spec.count as usize))
}

struct Builder<'a> {
    scenario: &'a Scenario,
    streams: Streams,
    links: Vec<Link>,
    routes: Vec<u32>,
    flows: Vec<Flow>,
    floods: Vec<u32>,
    bottlenecks: Vec<Bottleneck>,
    /// The node of each flow; empty in a run without nodes.
    nodes: Vec<u32>,
    moves: Vec<Move>,
    cooperation: Option<Box<Cooperation>>,
    graph: Graph<'a>,
    /// Paths already found.
    paths: BTreeMap<(&'a str, &'a str), Vec<LinkDir>>,
    /// The routers of the hosts of each flow, as far as they have moved.
    ends: Vec<[&'a str; 2]>,
}

impl<'a> Builder<'a> {
    fn finish(self, classes: BTreeMap<u32, u32>) -> Network {
        let scenario = self.scenario;
        let before = |link: &LinkSpec| Before {
            name: link.name.clone(),
            rate: link.link.rate,
            delay: link.link.delay,
            losses: [link.link.loss, 0.0],
        };
        let links: Vec<Before> = scenario.links.iter().map(before).collect();
        let cooperating = self.cooperation.as_ref().map(|cooperation| cooperation.nodes());
        let counts = [scenario.links.len(), self.flows.len(), self.floods.len()].map(|count| count as u32);
        let layout = Layout::new(counts[0], counts[1], counts[2], cooperating);
        debug_assert_eq!(layout.links(), self.links.len(), "every link has a number");
        Network {
            layout,
            connections: Connections::new(classes, self.nodes),
            changes: Changes::new(&scenario.changes, &links, &self.streams, scenario.output.series),
            links: self.links,
            routes: self.routes,
            flows: self.flows,
            floods: self.floods,
            bottlenecks: self.bottlenecks,
            moves: self.moves,
            cooperation: self.cooperation,
        }
    }

    /// A link relays if no packet that leaves it is looked at before it is on a plain link. Plain links after the first
    /// of a route carry the packets of that route alone. A link whose rate changes during a transmission does not relay:
    /// when packets arrive is not known beforehand.
    fn tell_which_relay(&mut self) {
        for hop in self.routes.windows(2) {
            let plain = self.links.get(hop[1] as usize).is_some_and(|next| next.queue.is_none());
            if let Some(queue) = self.links.get_mut(hop[0] as usize).and_then(|link| link.queue.as_mut()) {
                queue.relays &= plain && queue.ack_path_of.is_none();
            }
        }
        for change in self.scenario.changes.iter().filter(|change| changes_rate_at_once(change)) {
            for link in directions(change) {
                self.links[link.index()].queue.iter_mut().for_each(|queue| queue.relays = false);
            }
        }
    }

    /// The queues of all links that have one.
    fn queues(&mut self) -> impl Iterator<Item = &mut Queue> {
        self.links.iter_mut().filter_map(|link| link.queue.as_deref_mut())
    }

    fn add_duplex(&mut self, spec: &'a LinkSpec) {
        let forward = self.add_link(spec, &spec.queue, &spec.name, (spec.link.limit, spec.link.loss));
        let backward = self.add_link(spec, &spec.reverse_queue, &spec.reverse_name(), (spec.link.reverse_limit, 0.0));
        // What a link delivers has passed the other direction's far end: its discipline may want to see it.
        for (here, there) in [(forward, backward), (backward, forward)] {
            let sees = self.links[here as usize].queue.as_ref().is_some_and(|q| q.sees_segments);
            if let Some(queue) = &mut self.links[there as usize].queue {
                queue.ack_path_of = sees.then_some(here);
            }
        }
    }

    fn add_link(&mut self, spec: &LinkSpec, queue: &QueueSpec, name: &str, (limit, loss): (Limit, f64)) -> u32 {
        let index = self.links.len();
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
            interface: if queue.looked_at { self.bottlenecks.len() as u32 } else { u32::MAX },
        };
        if queue.looked_at {
            let aqm = queue.config.name().to_owned();
            self.bottlenecks.push(Bottleneck {
                name: name.into(),
                aqm,
                link: LinkDir::at(index as u32),
                flows: Vec::new(),
            });
        }
        self.links.push(Link::new(Serializer::new(spec.link.rate), spec.link.delay, Some(Box::new(managed))));
        index as u32
    }

    fn loss(&self, queue: &QueueSpec, name: &str, probability: f64) -> Loss {
        let stream = |of| self.streams.get(&format!("{name}/{of}"));
        let channels = queue.stations.iter().map(StationSpec::channel).collect();
        let mut loss = Loss::new(probability, stream("loss"));
        loss.stations = Stations::new(channels, stream("channels"), stream("stations"));
        loss
    }

    fn add_group(&mut self, group: usize, spec: &'a FlowSpec) {
        let mut starts = self.streams.get(&format!("flows{group}/start"));
        let tcp = Arc::new(spec.tcp.clone());
        let flows = self.ends.len() as u32;
        for i in 0..spec.count {
            let spread = Span::from_secs_f64(starts.uniform() * spec.start_spread.as_secs_f64());
            let start = Instant::ZERO + spec.start + spec.start_step * i + spread;
            let id = self.flows.len() as u32;
            let routes = self.add_hosts(spec, id);
            let forged = first_forged(flows, self.floods.len() as u32);
            let setup = Setup { flow: id, tcp: &tcp, streams: &self.streams, forged };
            let application = spec.traffic.build(&setup);
            if application.get().forges() {
                self.floods.push(id);
            }
            self.flows.push(Flow {
                kind: spec.traffic.name(),
                start,
                stop: spec.stop.map_or(Instant::MAX, |s| Instant::ZERO + s),
                application,
                routes,
                rtt: Default::default(),
                completed: Instant::MAX,
                counted: 0,
            });
        }
    }

    /// Numbers the nodes to which flows belong, if there is a gateway or the scenario names a node.
    fn add_nodes(&mut self) {
        let named = self.scenario.flows.iter().any(|spec| spec.node.is_some());
        if !named && self.scenario.cooperation.is_none() {
            return;
        }
        let mut known: BTreeMap<&'a str, u32> = BTreeMap::new();
        let (mut of_flows, mut nodes): (Vec<u32>, Vec<(&'a FlowSpec, Vec<u32>)>) = (Vec::new(), Vec::new());
        for (flow, spec) in (0..).zip(each_flow(self.scenario)) {
            let fresh = nodes.len() as u32;
            let node = spec.node.as_ref().map_or(fresh, |name| *known.entry(name).or_insert(fresh));
            if node == fresh {
                nodes.push((spec, Vec::new()));
            }
            nodes[node as usize].1.push(flow);
            of_flows.push(node);
        }
        for queue in self.queues() {
            for (flow, node) in (0..).zip(&of_flows) {
                queue.tell(&Fact::Owner { flow: FlowId(flow), node: NodeId(*node) }, Instant::ZERO);
            }
        }
        self.nodes = of_flows;
        if let Some(cooperation) = &self.scenario.cooperation {
            self.cooperate(cooperation, nodes);
        }
    }

    /// The gateway's and the clients' machines, with routes of their own for what they say. The last links of these
    /// carry other packets besides, so nothing is relayed.
    fn cooperate(&mut self, spec: &'a Spec, nodes: Vec<(&'a FlowSpec, Vec<u32>)>) {
        let (link, gateway) = (LinkDir::forward(spec.link), self.scenario.links[spec.link].a.as_str());
        let mut setups = Vec::new();
        for (first, flows) in nodes {
            let access = self.first_link(self.flows[flows[0] as usize].routes[0]);
            let there = if first.from == gateway { Vec::new() } else { self.path(&first.from, gateway) };
            let back = way_back(&there);
            let routes = [self.add_links(&[&[access], &there[..]]), self.add_links(&[&back[..], &[access.reverse()]])];
            let special = spec.nodes.iter().find(|node| Some(&node.name) == first.node.as_ref());
            setups.push(NodeSetup {
                flows,
                routes,
                csi: special.and_then(|node| node.csi).map(LinkDir::forward),
                lie: special.and_then(|node| node.lie),
            });
        }
        let members =
            self.flows.iter().zip(&self.nodes).zip(each_flow(self.scenario)).map(|((flow, node), spec)| Member {
                node: *node,
                weight: spec.weight,
                crosses: crosses(&self.routes, flow.routes[0], link),
                opens_connections: flow.application.get().connects_by().is_some(),
                socket: SocketState::New,
            });
        let bandwidth = self.scenario.links[spec.link].link.rate;
        let cooperation = Cooperation::new(spec, bandwidth, setups, members.collect(), &self.streams);
        self.cooperation = Some(Box::new(cooperation));
        self.queues().for_each(|queue| queue.relays = false);
    }

    /// Queues with classes learn those of flows that have one, which are given.
    fn tell_classes(&mut self) -> BTreeMap<u32, u32> {
        let classes = (0..).zip(each_flow(self.scenario)).filter_map(|(flow, spec)| Some((flow, spec.class?)));
        let classes: BTreeMap<u32, u32> = classes.collect();
        for (flow, class) in &classes {
            let fact = Fact::Class { flow: FlowId(*flow), class: *class };
            self.queues().for_each(|queue| queue.tell(&fact, Instant::ZERO));
        }
        classes
    }

    /// Adds a route over these links; where it begins in the table of routes.
    fn add_links(&mut self, parts: &[&[LinkDir]]) -> u32 {
        let start = self.routes.len() as u32;
        self.routes.extend(parts.iter().flat_map(|part| part.iter()).map(|link| link.place()));
        self.routes.push(END);
        start
    }

    /// The link with which a route begins.
    fn first_link(&self, route: u32) -> LinkDir {
        LinkDir::at(self.routes[route as usize])
    }

    /// A host pair with access links of its own, and the routes between the two.
    fn add_hosts(&mut self, spec: &'a FlowSpec, id: u32) -> [u32; 2] {
        let access = &self.scenario.access;
        let client = self.add_access(access.rate, spec.access_delay.unwrap_or(access.delay));
        let server = self.add_access(access.rate, access.delay);
        let there = self.path(&spec.from, &spec.to);
        for link in &there {
            let crossed = self.bottlenecks.iter_mut().find(|bottleneck| bottleneck.link == *link);
            if let Some(bottleneck) = crossed {
                bottleneck.flows.push(id);
            }
        }
        self.add_routes([client, server], &there)
    }

    /// Routes between two hosts with these access links, there and back.
    fn add_routes(&mut self, [client, server]: [LinkDir; 2], there: &[LinkDir]) -> [u32; 2] {
        let forth = self.add_links(&[&[client], there, &[server.reverse()]]);
        [forth, self.add_links(&[&[server], &way_back(there), &[client.reverse()]])]
    }

    /// The access link of a host; the direction from it.
    fn add_access(&mut self, rate: Rate, delay: Span) -> LinkDir {
        let from_host = LinkDir::at(self.links.len() as u32);
        self.links.extend((0..2).map(|_| Link::new(Serializer::new(rate), delay, None)));
        from_host
    }

    /// Links of the path of least delay. The scenario was checked: it exists.
    fn path(&mut self, from: &'a str, to: &'a str) -> Vec<LinkDir> {
        let graph = &self.graph;
        self.paths.entry((from, to)).or_insert_with(|| graph.shortest(from, to).unwrap_or_default()).clone()
    }
}

/// The links of a path in the other direction.
fn way_back(path: &[LinkDir]) -> Vec<LinkDir> {
    path.iter().rev().map(|link| link.reverse()).collect()
}
