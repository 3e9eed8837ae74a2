//! The run: the loop which takes events in order, moves packets between links and hosts, and applies the actions of
//! actors.
//!
//! Each event is one call of `Simulation::dispatch`. Most events concern TCP, which the loop drives directly: a segment
//! arrives at its endpoint, and the endpoint sends what it may send now. Every other actor pushes
//! [`Action`]s, which `run/apply.rs` applies.

mod apply;
mod delays;
mod sessions;
mod steer;

use crate::access::AccessLinks;
use crate::actors::AnyApplication;
use crate::actors::action::{Action, Context, Mover};
use crate::actors::application::Host;
use crate::actors::changes::Changes;
use crate::actors::connections::Connections;
use crate::actors::cooperation::Cooperation;
use crate::actors::handovers::{Diversion, Handovers};
use crate::capture::{Capture, Sink};
use crate::event::EventQueue;
use crate::flow::Flow;
use crate::network::{self, Bottleneck};
use crate::numbers::{LinkDir, Owner, Source};
use crate::probe::TimeHistogram;
use crate::scenario::Scenario;
use crate::seconds::Seconds;
use crate::segment::Segment;
use crate::table::Table;
use crate::tcp::Role;
use crate::world::{END, World};
use penstock_core::packet::Packet;
use penstock_core::qdisc::Qdisc;
use penstock_core::units::{Bytes, Instant, Span};

/// A violation which [`Simulation::advance`] found in a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A hosted stack, or its connection, failed.
    #[error("flow {flow}: {reason}")]
    Stack {
        /// Number of the flow.
        flow: usize,
        /// The stack and what happened.
        reason: String,
    },
    /// The counters of a queue do not balance.
    #[error("queue {queue:?}: {message}")]
    Books {
        /// Name of the queue.
        queue: String,
        /// Which counters do not balance.
        message: String,
    },
    /// A queue held more bytes than the invariant `max_queue` of the scenario allows.
    #[error("invariant max_queue: {} bytes waited at {queue:?} at {:.6} s", bytes.get(), at.as_secs_f64())]
    MaxQueue {
        /// Name of the queue.
        queue: String,
        /// Number of bytes that waited.
        bytes: Bytes,
        /// When the queue first exceeded the bound.
        at: Instant,
    },
    /// A queue dropped packets although the scenario has the invariant `no_drops`.
    #[error("invariant no_drops: {packets} packets were dropped at {queue:?}")]
    NoDrops {
        /// Name of the queue.
        queue: String,
        /// Number of packets dropped.
        packets: u64,
    },
}

/// A capture keeps the packets of this time in memory before it writes them.
const CAPTURED_AT_ONCE: Span = Span::from_millis(10);

/// The parameters of a run, which stay constant.
#[derive(Debug)]
pub(crate) struct Plan {
    pub name: String,
    pub seed: u64,
    pub end: Instant,
    pub warmup: Instant,
    no_drops: bool,
}

/// Everything that acts in a run.
#[derive(Debug)]
pub(crate) struct Actors {
    pub flows: Vec<Flow>,
    /// Numbers of the flows which forge connections.
    floods: Vec<u32>,
    /// The connections which sessions open.
    pub connections: Connections,
    pub changes: Changes,
    /// Hosts that move; `None` in most runs.
    pub handovers: Option<Box<Handovers>>,
    /// The gateway and its clients; `None` in most runs.
    pub cooperation: Option<Box<Cooperation>>,
}

/// The counters and measures of a run.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Number of events handled.
    pub events: u64,
    pub bottlenecks: Vec<Bottleneck>,
    /// Round trip times of all flows.
    pub rtt: TimeHistogram,
    pub seconds: Seconds,
}

/// One run of one scenario.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) plan: Plan,
    pub(crate) world: World,
    pub(crate) actors: Actors,
    pub(crate) measured: Measured,
    /// Pushed actions which are not applied yet; empty between events.
    actions: Vec<Action>,
}

impl Simulation {
    /// Builds the network and the flows of a scenario, at time zero.
    pub fn new(scenario: &Scenario) -> Self {
        let network = network::build(scenario);
        let mut simulation = Self {
            plan: Plan {
                name: scenario.name.clone(),
                seed: scenario.seed,
                end: Instant::ZERO + scenario.duration,
                warmup: Instant::ZERO + scenario.warmup,
                no_drops: scenario.invariants.no_drops,
            },
            world: World {
                gauges: network.gauges,
                ..World::new(network.layout, network.links, network.access, network.routes)
            },
            actors: Actors {
                flows: network.flows,
                floods: network.floods,
                connections: network.connections,
                changes: network.changes,
                handovers: Handovers::new(network.moves),
                cooperation: network.cooperation,
            },
            measured: Measured {
                events: 0,
                bottlenecks: network.bottlenecks,
                rtt: TimeHistogram::default(),
                seconds: Seconds::new(scenario.output.series),
            },
            actions: Vec::new(),
        };
        simulation.start();
        simulation
    }

    fn start(&mut self) {
        for (id, flow) in (0..).zip(&self.actors.flows).filter(|(_, flow)| flow.start <= self.plan.end) {
            self.world.set_event(Source::Application(id), flow.start);
        }
        self.world.set_event(Source::Clock, Instant::ZERO + Span::from_secs(1));
        (0..self.world.gauges.len() as u32).for_each(|gauge| self.world.await_probe(gauge));
        self.await_change();
        self.cooperate(|cooperation, context| cooperation.start(context));
    }

    /// Writes the packets of the queues named in `[output] pcapng` to `out` as pcapng; if none is named, those of all
    /// bottlenecks. Must be called before the run begins.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn capture_to(&mut self, out: Sink, scenario: &Scenario) -> std::io::Result<()> {
        self.begin_capture(scenario, |names| Capture::new(out, names))
    }

    /// Writes the packets that [`Simulation::capture_to`] would write as CSV, with the columns of
    /// [`crate::capture::CSV_HEADER`].
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn capture_csv_to(&mut self, out: Sink, scenario: &Scenario) -> std::io::Result<()> {
        self.begin_capture(scenario, |names| Capture::csv(out, names))
    }

    fn begin_capture(
        &mut self,
        scenario: &Scenario,
        open: impl FnOnce(&[Option<String>]) -> std::io::Result<Capture>,
    ) -> std::io::Result<()> {
        let wanted = &scenario.output.pcapng;
        let chosen = |b: &Bottleneck| (wanted.is_empty() || wanted.contains(&b.name)).then(|| b.name.clone());
        let names: Vec<_> = self.measured.bottlenecks.iter().map(chosen).collect();
        self.world.outlet.capture = Some(open(&names)?);
        Ok(())
    }

    /// Ends the capture and flushes its file.
    ///
    /// # Errors
    /// Returns the first error of any write to the capture.
    pub fn finish_capture(&mut self) -> std::io::Result<()> {
        self.world.outlet.capture.take().map_or(Ok(()), Capture::finish)
    }

    /// Returns the simulated time that has passed.
    pub fn now(&self) -> Instant {
        self.world.now
    }

    /// Returns the simulated time at which the run ends, counted from zero.
    pub fn duration(&self) -> Span {
        self.plan.end.since(Instant::ZERO)
    }

    /// Simulates at most `by` more of simulated time; returns true when the run is over.
    ///
    /// # Errors
    /// Fails if an invariant of the scenario is violated or the counters of a queue do not balance.
    pub fn advance(&mut self, by: Span) -> Result<bool, Broken> {
        let limit = (self.world.now + by).min(self.plan.end);
        while self.world.outlet.capture.is_some() && limit.since(self.world.now) > CAPTURED_AT_ONCE {
            self.work_until(self.world.now + CAPTURED_AT_ONCE);
        }
        self.work_until(limit);
        self.check()?;
        Ok(self.world.now == self.plan.end)
    }

    /// Handles the events up to `limit`, lets the measured queues catch up and writes what they captured.
    fn work_until(&mut self, limit: Instant) {
        while let Some((source, now)) = self.world.outlet.events.pop_until(limit) {
            self.world.now = now;
            self.measured.events += 1;
            self.dispatch(source);
        }
        self.world.now = limit;
        self.catch_up();
        self.world.outlet.capture.as_mut().into_iter().for_each(Capture::flush);
        if limit == self.plan.end && self.measured.seconds.closed_at() < limit {
            self.close_second(); // the run ends within a second
        }
    }

    #[inline]
    fn dispatch(&mut self, source: u32) {
        match self.world.layout.decode(source) {
            Source::Link(link) => self.on_link(link),
            Source::Lane(lane) => self.on_lane(lane),
            Source::Timer { flow, side } => self.on_timer(flow as usize, side),
            Source::Application(flow) => self.on_application(flow),
            Source::Clock => self.on_second(),
            Source::Changes => self.on_change(),
            Source::Gateway => self.on_gateway(),
            Source::Client(node) => self.on_client(node),
            Source::Probes(gauge) => self.on_probes(gauge),
            Source::Connection { number, side } => self.on_connection_timer(number, side),
        }
    }

    /// Lets the queues that are measured catch up to now.
    fn catch_up(&mut self) {
        for bottleneck in &self.measured.bottlenecks {
            self.world.catch_up(bottleneck.link);
        }
    }

    fn check(&self) -> Result<(), Broken> {
        let mut faults = self.actors.flows.iter().map(|flow| flow.application.get().fault());
        if let Some(flow) = faults.position(|fault| fault.is_some()) {
            let reason = self.actors.flows[flow].application.get().fault().unwrap_or_default();
            return Err(Broken::Stack { flow, reason });
        }
        for bottleneck in &self.measured.bottlenecks {
            let queue = &self.world.links[bottleneck.link.index()].queue;
            let (name, stats) = (|| bottleneck.name.clone(), queue.qdisc.stats());
            stats.check(queue.qdisc.backlog()).map_err(|e| Broken::Books { queue: name(), message: e.to_string() })?;
            if let Some((at, bytes)) = queue.probe.as_ref().and_then(|probe| probe.broken) {
                return Err(Broken::MaxQueue { queue: name(), bytes: Bytes::new(bytes), at });
            }
            let policed = queue.policer.as_ref().map_or(0, |policer| policer.dropped);
            let packets = stats.dropped_by_aqm() + stats.dropped_overflow.packets + policed;
            if self.plan.no_drops && packets > 0 {
                return Err(Broken::NoDrops { queue: name(), packets });
            }
        }
        Ok(())
    }

    // Links.

    #[inline(never)]
    fn on_link(&mut self, place: LinkDir) {
        let World { now, links, outlet, .. } = &mut self.world;
        let link = &mut links[place.index()];
        let arrived = link.on_event(*now, outlet);
        if let Some(next) = link.next_event() {
            outlet.events.set(place.place(), next);
        }
        let watched = link.queue.watched;
        let Some(mut packet) = arrived else { return };
        if let Some(watched) = watched {
            self.world.watch(watched, &mut packet);
        }
        let World { now, links, outlet, .. } = &mut self.world;
        let link = &links[place.index()];
        // An element on the ACK path of the opposite direction sees the packet first.
        if let Some(forward) = link.queue.ack_path_of
            && let Some(segment) = packet.tcp()
        {
            links[forward as usize].inbound(segment, *now, outlet);
        }
        self.deliver(&mut packet);
    }

    /// Handles the event of a lane of access links: its first packet arrives.
    #[inline(always)]
    fn on_lane(&mut self, lane: u32) {
        let World { now, outlet, .. } = &mut self.world;
        if let Some(mut packet) = outlet.access.arrive(lane, *now, (&outlet.routes, &mut outlet.events)) {
            self.deliver(&mut packet);
        }
    }

    /// Handles a packet at the end of a link: the packet goes to its next link or host.
    #[inline(always)]
    fn deliver(&mut self, packet: &mut Segment) {
        match self.world.hop(packet.cursor) {
            END => self.on_host(packet),
            link => self.offer(link, packet),
        }
    }

    /// Gives a packet to the link at this place, or diverts the packet if its host has moved.
    #[inline(never)]
    fn offer(&mut self, place: u32, packet: &mut Segment) {
        if self.actors.handovers.is_some() && self.is_diverted(LinkDir::at(place), packet) {
            return;
        }
        self.world.offer(place, packet);
    }

    /// Gives a packet to the link at its cursor.
    fn send(&mut self, packet: &mut Segment) {
        self.offer(self.world.hop(packet.cursor), packet);
    }

    /// Diverts a packet that comes to a link if its host has moved; returns true if the link must not take the packet.
    #[inline(never)]
    fn is_diverted(&mut self, link: LinkDir, packet: &Segment) -> bool {
        let mover = match self.world.layout.owner(packet.flow) {
            Owner::Flow(flow) => Some(Mover::Flow(flow)),
            Owner::Message(node) => Some(Mover::Node(node)),
            Owner::Connection(number) => self.actors.connections.owner(number).map(Mover::Flow),
            Owner::Forged { .. } | Owner::Probe(_) => None,
        };
        let (Some(mover), Some(handovers)) = (mover, &mut self.actors.handovers) else { return false };
        match handovers.divert(mover, link, packet) {
            Diversion::None => false,
            Diversion::Held => true,
            Diversion::By(cursor) => {
                let mut packet = *packet;
                (packet.cursor, packet.at) = (cursor, self.world.now);
                self.send(&mut packet);
                true
            }
        }
    }

    // Hosts.

    #[inline(never)]
    fn on_host(&mut self, packet: &Segment) {
        let (index, now) = (packet.flow as usize, self.world.now);
        let flow = self.actors.flows.get_mut(index).filter(|_| self.world.layout.sends(packet.flow));
        let Some(flow) = flow else { return self.on_other_owner(packet) };
        let side = Role::receiver_of(packet);
        let AnyApplication::Tcp(tcp) = &mut flow.application else { return self.on_application_packet(index, packet) };
        match side {
            Role::Server => {
                tcp.server.on_segment(packet, now);
                flow.note_complete(now);
            }
            Role::Client => {
                if let Some(rtt) = tcp.client.on_segment(packet, now) {
                    flow.rtt.record(rtt);
                    self.measured.rtt.record(rtt);
                }
            }
        }
        self.pump(index, side);
        if side == Role::Client && self.actors.cooperation.is_some() {
            self.review_socket(index);
        }
    }

    /// Handles a packet whose number is not that of a flow.
    #[inline(never)]
    fn on_other_owner(&mut self, packet: &Segment) {
        match self.world.layout.owner(packet.flow) {
            Owner::Flow(flow) => self.on_application_packet(flow as usize, packet),
            Owner::Forged { flood, .. } => {
                let flow = self.actors.floods[flood as usize];
                self.on_application_packet(flow as usize, packet);
            }
            Owner::Message(node) => self.cooperate(|cooperation, context| cooperation.receive(node, packet, context)),
            Owner::Probe(gauge) => self.world.take_probe(gauge, packet),
            Owner::Connection(number) => self.on_connection(number, packet),
        }
    }

    /// Sends all that an endpoint may send now and sets its timer.
    #[inline]
    fn pump(&mut self, index: usize, side: Role) {
        let World { now, layout, outlet, .. } = &mut self.world;
        let now = *now;
        let flow = &mut self.actors.flows[index];
        let cursor = flow.routes[side as usize];
        let Some(tcp) = flow.tcp_mut() else { return };
        let endpoint = tcp.end(side);
        while let Some(next) = endpoint.next(now) {
            outlet.send(cursor, now, |segment| endpoint.emit(segment, next, now));
        }
        if let Some(at) = endpoint.deadline() {
            let timer = layout.source(Source::Timer { flow: index as u32, side });
            outlet.events.set_at_latest_as(timer, layout.key(timer), at.max(now));
        }
    }

    /// Returns one endpoint of a flow's connection; `None` for a flow without a connection of its own.
    fn endpoint(&mut self, index: usize, side: Role) -> Option<&mut crate::tcp::Endpoint> {
        self.actors.flows[index].tcp_mut().map(|tcp| tcp.end(side))
    }

    fn on_timer(&mut self, index: usize, side: Role) {
        let now = self.world.now;
        let Some(endpoint) = self.endpoint(index, side) else { return };
        let Some(at) = endpoint.deadline() else { return };
        if at <= now {
            endpoint.on_timer(now);
            self.pump(index, side);
        } else {
            // The timer is lazy: its deadline was moved after the event had been set.
            self.world.set_event(Source::Timer { flow: index as u32, side }, at);
        }
    }

    // Applications.

    /// Starts, stops or wakes the application of a flow, whichever is due now.
    #[inline(never)]
    fn on_application(&mut self, id: u32) {
        let flow = &mut self.actors.flows[id as usize];
        let (starts, stops) = (flow.start == self.world.now, flow.stop <= self.world.now);
        if self.actors.cooperation.is_some() {
            self.turn_socket(id, stops);
        }
        let Self { world, actors, actions, .. } = self;
        let flow = &mut actors.flows[id as usize];
        let host = &mut Host::new(Context::new(world, actions), id, flow.stop, flow.routes);
        let application = flow.application.get_mut();
        let next = match (stops, starts) {
            (true, _) => {
                application.stop(host);
                None
            }
            (false, true) => application.start(host),
            (false, false) => application.wake(host),
        };
        flow.note_complete(self.world.now);
        self.await_application(id, next);
        self.apply();
    }

    fn await_application(&mut self, id: u32, next: Option<Instant>) {
        if let Some(at) = next {
            let id = self.world.layout.source(Source::Application(id));
            self.world.outlet.events.set_as(id, self.world.layout.key(id), at);
        }
    }

    /// Hands a packet to an application that is not a TCP connection.
    #[inline(never)]
    fn on_application_packet(&mut self, index: usize, packet: &Segment) {
        let Self { world, actors, actions, .. } = self;
        let flow = &mut actors.flows[index];
        let host = &mut Host::new(Context::new(world, actions), index as u32, flow.stop, flow.routes);
        let application = flow.application.get_mut();
        application.receive(packet, host);
        if let Some(rtt) = application.round_trip() {
            flow.rtt.record(rtt);
            self.measured.rtt.record(rtt);
        }
        flow.note_delivery(self.world.now);
        self.apply();
    }

    // The gateway and its clients. These functions are not inlined, so that the loop stays small.

    #[inline(never)]
    fn on_gateway(&mut self) {
        self.cooperate(|cooperation, context| cooperation.wake_gateway(context));
    }

    #[inline(never)]
    fn on_client(&mut self, node: u32) {
        self.cooperate(|cooperation, context| cooperation.wake_client(node, context));
    }

    /// Sends what a gateway that estimates the rates of its link sends to measure delays.
    #[inline(never)]
    fn on_probes(&mut self, gauge: u32) {
        while let Some(mut packet) = self.world.probe(gauge) {
            self.send(&mut packet);
        }
        self.world.await_probe(gauge);
    }

    // Changes of links and moves of hosts.

    fn await_change(&mut self) {
        let moves = self.actors.handovers.as_ref().and_then(|handovers| handovers.next());
        if let Some(at) = self.actors.changes.next().into_iter().chain(moves).min() {
            self.world.set_event(Source::Changes, at);
        }
    }

    #[inline(never)]
    fn on_change(&mut self) {
        self.actors.changes.step(&mut Context::new(&self.world, &mut self.actions));
        self.apply();
        self.cooperate(|cooperation, context| cooperation.rates_changed(context));
        while let Some(handovers) = &mut self.actors.handovers
            && handovers.step(&mut Context::new(&self.world, &mut self.actions))
        {
            self.apply();
        }
        self.tell_of_routes();
        self.await_change();
    }

    // Measurement.

    #[inline(never)]
    fn on_second(&mut self) {
        self.catch_up();
        self.close_second();
        self.world.set_event(Source::Clock, self.world.now + Span::from_secs(1));
    }

    fn close_second(&mut self) {
        let Self { world, actors, measured, plan, .. } = self;
        measured.seconds.close(world.now, plan.warmup, &mut actors.flows, &mut world.links, &measured.bottlenecks);
    }

    /// Returns the tables of the run by seconds, of delays, and of the changes of links; without `[output] series` only
    /// the last.
    pub fn tables(&self) -> Vec<Table> {
        let seconds = self.measured.seconds.tables();
        let delays = if seconds.is_empty() { Vec::new() } else { delays::tables(self) };
        seconds.into_iter().chain(delays).chain(self.actors.changes.table()).collect()
    }

    /// Returns how many numbers of connections `http` and `web` flows occupy. A number stays occupied for a minute
    /// after its connection has ended.
    pub fn connection_numbers(&self) -> usize {
        self.actors.connections.numbers()
    }

    /// Returns the mean number of bytes of state for each flow: endpoints, four access links, pending events and
    /// measurements. Packets in flight and the connections that sessions open are not counted.
    pub fn bytes_per_flow(&self) -> usize {
        let flows = &self.actors.flows;
        let heap: usize = flows.iter().map(Flow::heap_bytes).sum();
        let access_links = 4 * AccessLinks::BYTES_PER_LINK;
        let events = 3 * EventQueue::BYTES_PER_SOURCE;
        size_of::<Flow>() + access_links + events + heap / flows.len().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second flow adds sources of events, and its memory has room for them. The sources are those of numbers.rs.
    #[test]
    fn the_memory_of_a_flow_has_all_its_events() {
        let [one, two] = [1, 2].map(|count| {
            let text = format!(
                "[topology]\nkind = \"dumbbell\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\nlimit = \"9p\"\n[[flows]]\nkind = \"bulk\"\ncount = {count}\n"
            );
            Simulation::new(&Scenario::parse(&format!("duration = \"1s\"\n{text}"), "test.toml").unwrap_or_else(|e| panic!("{e}")))
        });
        let events = (two.world.layout.sources(0, 0) - one.world.layout.sources(0, 0)) * EventQueue::BYTES_PER_SOURCE;
        let links = 4 * AccessLinks::BYTES_PER_LINK;
        assert_eq!(one.bytes_per_flow(), size_of::<Flow>() + one.actors.flows[0].heap_bytes() + links + events);
    }

    /// The bound is for flows that have lost packets, so that they have lists of what arrived out of order.
    #[test]
    fn the_memory_of_a_flow_is_bounded() {
        let text = "duration = \"6s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"30p\"\n\
             [tcp]\ncc = \"newreno\"\n[[flows]]\nkind = \"bulk\"\ncount = 8\n";
        let mut run = Simulation::new(&Scenario::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}")));
        run.advance(Span::MAX).unwrap();
        assert!(run.actors.flows.iter().any(|flow| flow.application.get().counters().retransmits > 0));
        assert!(run.bytes_per_flow() <= 1350, "{} bytes", run.bytes_per_flow());
    }
}
