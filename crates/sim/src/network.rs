//! The network of a run: makes links, routes and flows of a scenario.

mod ends;
mod moves;

use crate::access::{AccessLinks, Kind};
use crate::actors::application::Setup;
use crate::actors::changes::{Before, Changes, changes_rate_at_once, directions};
use crate::actors::connections::Connections;
use crate::actors::cooperation::{Cooperation, Member, NodeSetup, SocketState, Spec};
use crate::actors::handovers::Move;
use crate::estimate::{Gauge, Told, has_probes};
use crate::flow::Flow;
use crate::link::{Capacity, Link, Queue, Watched};
use crate::numbers::{Layout, LinkDir, first_forged};
use crate::probe::QueueProbe;
use crate::scenario::paths::Graph;
use crate::scenario::{FlowSpec, LinkSpec, QueueSpec, Scenario, StationSpec};
use crate::world::{END, crosses};
use ends::{End, Ends};
use penstock_core::config::LinkFacts;
use penstock_core::csi::{Loss, Stations};
use penstock_core::estimate::Way;
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::qdisc::{Backlog, Qdisc};
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Limit, Rate, Serializer, Span};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A queue which is measured, with its link and its flows.
#[derive(Debug)]
pub struct Bottleneck {
    /// Name of the link and direction.
    pub name: String,
    /// Name of the queue discipline.
    pub aqm: String,
    /// The direction of the link before which it stands.
    pub(crate) link: LinkDir,
    /// The direction whose use is told: that link, unless its rate is an estimate of the rate of another.
    pub(crate) carrier: LinkDir,
    /// The place of the link among those of the scenario.
    pub(crate) spec: usize,
    /// The limit of the link's queue.
    pub(crate) limit: Limit,
    /// True if it may be idle although packets wait.
    pub(crate) may_idle: bool,
    /// Numbers of the flows that cross it from client to server.
    pub(crate) flows: Vec<u32>,
}

/// All parts of a run, before its first event.
#[derive(Debug)]
pub struct Network {
    /// The layout of the numbers of sources and owners.
    pub layout: Layout,
    /// The links of the scenario, each one direction, in the order of [`Layout`].
    pub links: Vec<Link>,
    /// The links of hosts, which follow them in the order.
    pub access: AccessLinks,
    /// All routes in one table, each ended by [`END`].
    pub routes: Vec<u32>,
    /// All flows, in the order of their numbers.
    pub flows: Vec<Flow>,
    /// Numbers of the flows that forge connections, in order.
    pub floods: Vec<u32>,
    /// The queues which are measured.
    pub bottlenecks: Vec<Bottleneck>,
    /// Connections of sessions, of which none is open yet.
    pub connections: Connections,
    /// Changes of links during the run.
    pub changes: Changes,
    /// Moves of hosts, in the order of their times.
    pub moves: Vec<Move>,
    /// The gateway and its clients; `None` without `[cooperation]`.
    pub cooperation: Option<Box<Cooperation>>,
    /// The gateways that estimate the rates of their links.
    pub gauges: Vec<Gauge>,
}

/// Builds the network of a scenario, which must have been checked.
pub fn build(scenario: &Scenario) -> Network {
    let mut builder = Builder {
        scenario,
        streams: Streams::new(scenario.seed),
        links: Vec::new(),
        access: Vec::new(),
        routes: Vec::new(),
        flows: Vec::new(),
        floods: Vec::new(),
        bottlenecks: Vec::new(),
        nodes: Vec::new(),
        moves: Vec::new(),
        cooperation: None,
        graph: Graph::new(&scenario.links),
        paths: BTreeMap::new(),
        senders: senders(scenario),
        ends: each_flow(scenario).map(|spec| [spec.from.as_str(), spec.to.as_str()]).collect(),
        gauges: Vec::new(),
        shapers: BTreeMap::new(),
    };
    for (place, spec) in scenario.links.iter().enumerate() {
        match &spec.estimate {
            None => builder.add_duplex(&Ends::told(place, spec)),
            Some(estimate) => builder.add_duplex(&Ends::behind(place, spec, estimate)),
        };
    }
    builder.add_shapers();
    for (group, spec) in scenario.flows.iter().enumerate() {
        builder.add_group(group, spec);
    }
    builder.add_nodes();
    let classes = builder.tell_classes();
    scenario.handovers.iter().for_each(|handover| builder.add_moves(handover));
    builder.tell_which_relay();
    builder.finish(classes)
}

/// Lists the settings of each flow, in the order of their numbers.
fn each_flow(scenario: &Scenario) -> impl Iterator<Item = &FlowSpec> {
    scenario.flows.iter().flat_map(|spec| std::iter::repeat_n(spec, spec.count as usize))
}

/// Returns when the flows of a group begin.
fn starts(group: usize, spec: &FlowSpec, streams: &Streams) -> impl Iterator<Item = Instant> + use<> {
    let mut draws = streams.get(&format!("flows{group}/start"));
    let (count, first, step, spread) = (spec.count, spec.start, spec.start_step, spec.start_spread.as_secs_f64());
    (0..count).map(move |i| Instant::ZERO + first + step * i + Span::from_secs_f64(draws.uniform() * spread))
}

/// Counts the flows up to the last one that begins before the run ends.
fn senders(scenario: &Scenario) -> u32 {
    let (streams, end) = (Streams::new(scenario.seed), Instant::ZERO + scenario.duration);
    let groups = scenario.flows.iter().enumerate();
    let all = groups.flat_map(|(group, spec)| starts(group, spec, &streams));
    all.zip(1..).filter(|(start, _)| *start <= end).last().map_or(0, |(_, number)| number)
}

struct Builder<'a> {
    scenario: &'a Scenario,
    streams: Streams,
    links: Vec<Link>,
    /// Rate and delay of each access link, which follow the links of the scenario.
    access: Vec<(Rate, Span)>,
    routes: Vec<u32>,
    flows: Vec<Flow>,
    /// Number of flows whose packets have numbers: those up to the last one that begins before the run ends.
    senders: u32,
    floods: Vec<u32>,
    bottlenecks: Vec<Bottleneck>,
    /// The node of each flow; empty in a run without nodes.
    nodes: Vec<u32>,
    moves: Vec<Move>,
    cooperation: Option<Box<Cooperation>>,
    gauges: Vec<Gauge>,
    /// The shapers of the links whose rates are estimated: the directions to the link, by the place of the link.
    shapers: BTreeMap<usize, LinkDir>,
    graph: Graph<'a>,
    /// Paths that were computed already, by their two routers.
    paths: BTreeMap<(&'a str, &'a str), Vec<LinkDir>>,
    /// The routers at which the client and the server of each flow are, after the moves handled so far.
    ends: Vec<[&'a str; 2]>,
}

impl<'a> Builder<'a> {
    fn finish(self, classes: BTreeMap<u32, u32>) -> Network {
        let scenario = self.scenario;
        let before = |link: &LinkSpec| Before {
            name: link.name.clone(),
            rates: link.link.rates(),
            delays: link.link.delays(),
            losses: [link.link.loss, 0.0],
        };
        let links: Vec<Before> = scenario.links.iter().map(before).collect();
        let cooperating = self.cooperation.as_ref().map(|cooperation| cooperation.nodes());
        let counts = [self.links.len() / 2, self.flows.len(), self.floods.len()].map(|count| count as u32);
        // All gateways have the number of their probes if one of them sends some.
        let probes = scenario.links.iter().flat_map(|link| &link.estimate).any(|estimate| has_probes(estimate.law));
        let probing = if probes { self.gauges.len() as u32 } else { 0 };
        let layout = Layout::new(counts[0], counts[1], self.senders, counts[2], cooperating, probing);
        debug_assert_eq!(layout.links(), self.links.len() + self.access.len(), "every link has a number");
        let access = self.access_links(layout);
        Network {
            layout,
            connections: Connections::new(classes, self.nodes),
            changes: Changes::new(&scenario.changes, &links, &self.streams, scenario.output.series),
            access,
            links: self.links,
            routes: self.routes,
            flows: self.flows,
            floods: self.floods,
            bottlenecks: self.bottlenecks,
            moves: self.moves,
            cooperation: self.cooperation,
            gauges: self.gauges,
        }
    }

    /// Returns the access links, each with the link that feeds it on its route.
    fn access_links(&self, layout: Layout) -> AccessLinks {
        let mut fed_by: Vec<Option<LinkDir>> = vec![None; self.access.len()];
        for hop in self.routes.windows(2).filter(|hop| (hop[0] as usize) < self.links.len()) {
            let feeder = (hop[1] as usize).checked_sub(self.links.len()).and_then(|place| fed_by.get_mut(place));
            feeder.into_iter().for_each(|feeder| *feeder = Some(LinkDir::at(hop[0])));
        }
        // Each host has a link in both directions; the client comes before the server.
        let kind = |(place, (fed_by, &(rate, delay)))| Kind { fed_by, of_server: place / 2 % 2 == 1, rate, delay };
        let kinds: Vec<Kind> = (0..).zip(fed_by.into_iter().zip(&self.access)).map(kind).collect();
        AccessLinks::new(layout, &kinds)
    }

    /// Decides which links relay. A link relays if nothing reads or changes a packet between its queue and the next
    /// access link. Every access link after the first one of a route carries packets of that route alone. A link whose
    /// rate changes during a transmission does not relay, because the arrival of the packet is not known when its
    /// transmission begins.
    fn tell_which_relay(&mut self) {
        for hop in self.routes.windows(2) {
            let to_host = hop[1] != END && hop[1] as usize >= self.links.len();
            if let Some(Link { queue, .. }) = self.links.get_mut(hop[0] as usize) {
                queue.relays &= to_host && queue.ack_path_of.is_none();
            }
        }
        for change in self.scenario.changes.iter().filter(|change| changes_rate_at_once(change)) {
            for link in directions(change) {
                self.links[link.index()].queue.relays = false;
            }
        }
    }

    /// Iterates over the queues of all links of the scenario.
    fn queues(&mut self) -> impl Iterator<Item = &mut Queue> {
        self.links.iter_mut().map(|link| &mut link.queue)
    }

    /// Adds both directions of a link; returns the first.
    fn add_duplex(&mut self, ends: &Ends) -> LinkDir {
        let [forward, backward] = [true, false].map(|forward| self.add_link(ends, forward));
        // A packet which one direction delivers passes the gateway of the opposite direction, whose discipline may want
        // to see it.
        for (here, there) in [(forward, backward), (backward, forward)] {
            let sees = self.links[here as usize].queue.sees_segments;
            self.links[there as usize].queue.ack_path_of = sees.then_some(here);
        }
        LinkDir::at(forward)
    }

    /// Adds the shapers of the gateways that estimate the rates of their links, behind all links of the scenario. Their
    /// queues come in the list before those of their links.
    fn add_shapers(&mut self) {
        let scenario = self.scenario;
        for (place, spec) in scenario.links.iter().enumerate() {
            let Some(estimate) = &spec.estimate else { continue };
            let shaper = self.add_duplex(&Ends::shaper(place, spec, estimate));
            let link = LinkDir::forward(place);
            for (watched, way) in [(shaper, Way::Out), (link.reverse(), Way::In)] {
                let queue = &mut self.links[watched.index()].queue;
                (queue.watched, queue.relays) = (Some(Watched { gauge: self.gauges.len() as u32, way }), false);
            }
            let there = [shaper, link];
            let routes = if has_probes(estimate.law) {
                [self.add_links(&[&there]), self.add_links(&[&way_back(&there)])]
            } else {
                [END; 2]
            };
            let (layers, [out, back]) = ([spec.queue.layer, spec.reverse_queue.layer], spec.link.delays());
            let told = Told { law: estimate.law, rates: estimate.known, layers, trip: out + back };
            self.gauges.push(Gauge::new(&told, there, routes));
            self.shapers.insert(place, shaper);
        }
        if self.gauges.is_empty() {
            return;
        }
        let shapers = self.shapers.values().map(|shaper| shaper.duplex()).collect::<Vec<_>>();
        self.bottlenecks.sort_by_key(|one| (one.spec, !shapers.contains(&one.link.duplex()), one.link));
        for (number, one) in (0..).zip(&self.bottlenecks) {
            self.links[one.link.index()].queue.interface = number;
        }
    }

    /// Adds one direction of a link.
    fn add_link(&mut self, ends: &Ends, forward: bool) -> u32 {
        let End { name, queue, rate, delay, limit, loss } = &ends.both[usize::from(!forward)];
        let (rate, delay, limit) = (*rate, *delay, *limit);
        let index = self.links.len();
        let facts = LinkFacts { rate: queue.layer.of_packets(rate), limit };
        let mut qdisc = queue.config.build(&facts);
        let loss = self.loss(queue, name, *loss);
        if let Some(stations) = &loss.stations {
            stations.tell(|station, loss| qdisc.on_fact(&Fact::Channel { station, loss }, Instant::ZERO));
        }
        let waits = loss.stations.is_some();
        let behind = queue.impairments.behind(self.streams.get(&format!("{name}/reorder")));
        let managed = Queue {
            sees_segments: qdisc.sees_segments(),
            ack_path_of: None,
            watched: None,
            relays: behind.is_none(),
            loss,
            advice: queue.advice.then(Default::default),
            policer: queue.impairments.policer(),
            behind,
            capacity: Capacity::new(rate),
            told_empty: true,
            waiting: Backlog::default(),
            wakes: qdisc.wakes() || waits,
            qdisc,
            rng: self.streams.of_algorithm(&format!("{name}/"), queue.config.name()),
            probe: queue.looked_at.then(|| Box::new(QueueProbe::new(self.scenario.invariants.max_queue))),
            interface: if queue.looked_at { self.bottlenecks.len() as u32 } else { u32::MAX },
        };
        if queue.looked_at {
            let link = LinkDir::at(index as u32);
            self.bottlenecks.push(Bottleneck {
                name: name.clone(),
                aqm: queue.config.name().to_owned(),
                link,
                carrier: if forward { LinkDir::forward(ends.spec) } else { LinkDir::forward(ends.spec).reverse() },
                spec: ends.spec,
                limit,
                may_idle: waits,
                flows: Vec::new(),
            });
        }
        self.links.push(Link::new(Serializer::new(rate), queue.layer, delay, managed));
        index as u32
    }

    fn loss(&self, queue: &QueueSpec, name: &str, probability: f64) -> Loss {
        let stream = |of| self.streams.get(&format!("{name}/{of}"));
        let channels = queue.stations.iter().map(StationSpec::channel).collect();
        let mut loss = Loss::new(probability, stream("loss"));
        loss.set_rows(queue.impairments.gilbert);
        loss.stations = Stations::new(channels, stream("channels"), stream("stations"));
        loss
    }

    fn add_group(&mut self, group: usize, spec: &'a FlowSpec) {
        let tcp = Arc::new(spec.tcp.clone());
        for start in starts(group, spec, &self.streams) {
            let id = self.flows.len() as u32;
            let routes = self.add_hosts(spec, id);
            let forged = first_forged(self.senders, self.floods.len() as u32);
            let setup = Setup { flow: id, tcp: &tcp, streams: &self.streams, forged };
            let application = spec.traffic.build(&setup);
            if application.get().forges() && id < self.senders {
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
                trailed: Instant::ZERO,
                counted: 0,
            });
        }
    }

    /// Numbers the nodes to which flows belong. Does nothing if there is no gateway and the scenario names no node.
    fn add_nodes(&mut self) {
        let named = each_flow(self.scenario).take(self.senders as usize).any(|spec| spec.node.is_some());
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
        let senders = self.senders;
        for queue in self.queues() {
            for (flow, node) in (0..senders).zip(&of_flows) {
                queue.tell(&Fact::Owner { flow: FlowId(flow), node: NodeId(*node) }, Instant::ZERO);
            }
        }
        self.nodes = of_flows;
        if let Some(cooperation) = &self.scenario.cooperation {
            self.cooperate(cooperation, nodes);
        }
    }

    /// Creates the gateway and its clients, with routes for their messages. The last links of these routes carry
    /// packets of flows as well, so no link relays.
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
                share: special.and_then(|node| node.share),
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

    /// Tells all queues the classes of the flows that have one; returns these classes by flow.
    fn tell_classes(&mut self) -> BTreeMap<u32, u32> {
        let classes = (0..).zip(each_flow(self.scenario)).filter_map(|(flow, spec)| Some((flow, spec.class?)));
        let classes: BTreeMap<u32, u32> = classes.collect();
        for (flow, class) in classes.range(..self.senders) {
            let fact = Fact::Class { flow: FlowId(*flow), class: *class };
            self.queues().for_each(|queue| queue.tell(&fact, Instant::ZERO));
        }
        classes
    }

    /// Adds a route over these links; returns the cursor at which it begins in the table of routes.
    fn add_links(&mut self, parts: &[&[LinkDir]]) -> u32 {
        let start = self.routes.len() as u32;
        self.routes.extend(parts.iter().flat_map(|part| part.iter()).map(|link| link.place()));
        self.routes.push(END);
        start
    }

    /// Returns the first link of a route.
    fn first_link(&self, route: u32) -> LinkDir {
        LinkDir::at(self.routes[route as usize])
    }

    /// Adds a client and a server, each with an access link, and returns their routes to each other.
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

    /// Adds the routes between two hosts with these access links: from the client, then from the server.
    fn add_routes(&mut self, [client, server]: [LinkDir; 2], there: &[LinkDir]) -> [u32; 2] {
        let forth = self.add_links(&[&[client], there, &[server.reverse()]]);
        [forth, self.add_links(&[&[server], &way_back(there), &[client.reverse()]])]
    }

    /// Adds the access link of a host; returns the direction from the host.
    fn add_access(&mut self, rate: Rate, delay: Span) -> LinkDir {
        let from_host = LinkDir::at((self.links.len() + self.access.len()) as u32);
        self.access.extend([(rate, delay); 2]);
        from_host
    }

    /// Returns the links of the path of least delay, which exists because the scenario was checked.
    fn path(&mut self, from: &'a str, to: &'a str) -> Vec<LinkDir> {
        let (graph, shapers) = (&self.graph, &self.shapers);
        let found = || graph.shortest(from, to).unwrap_or_default().into_iter().flat_map(|link| shaped(link, shapers));
        self.paths.entry((from, to)).or_insert_with(|| found().collect()).clone()
    }
}

/// Returns a direction of a link with its shaper, if the gateway at the first end estimates the rate.
fn shaped(link: LinkDir, shapers: &BTreeMap<usize, LinkDir>) -> impl Iterator<Item = LinkDir> + use<> {
    let shaper = shapers.get(&link.duplex()).copied();
    let (before, after) = if link.is_forward() { (shaper, None) } else { (None, shaper.map(LinkDir::reverse)) };
    before.into_iter().chain([link]).chain(after)
}

/// Returns the links of a path in the opposite direction.
fn way_back(path: &[LinkDir]) -> Vec<LinkDir> {
    path.iter().rev().map(|link| link.reverse()).collect()
}
