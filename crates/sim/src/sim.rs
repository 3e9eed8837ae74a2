//! The run: pops events in order and moves packets between hosts, links and queues.

mod connections;
mod cooperation;
mod handovers;

use crate::actors::changes::Changes;
use crate::actors::cooperation::Cooperation;
use crate::actors::handovers::Handovers;
use crate::capture::{Capture, Sink};
use crate::event::EventQueue;
use crate::flow::{FORGED, Flow, Kind, SynFlood, Transport};
use crate::link::{Link, Outlet};
use crate::network::{self, END};
use crate::probe::TimeHistogram;
use crate::scenario::Scenario;
use crate::seconds::Seconds;
use crate::segment::Segment;
use crate::summary::{self, Summary};
use crate::table::Table;
use connections::Connections;
use penstock_core::packet::Packet;
use penstock_core::qdisc::Qdisc;
use penstock_core::units::{Instant, Span};
use std::collections::BTreeMap;

/// How much a bulk application has to send: more than any run can.
const ENDLESS: u64 = 1 << 60;

/// A rough guess of the time between events: each packet of 1000 bytes on each managed link, and its ACK, make three.
fn event_gap(links: &[Link]) -> Span {
    let bps: u64 = links.iter().filter(|link| link.queue.is_some()).map(|link| link.rate().as_bps()).sum();
    Span::from_nanos(8_000_000_000_000 / 3 / bps.max(1))
}

/// An invariant of the scenario that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

/// One run of one scenario.
#[derive(Debug)]
pub struct Simulation {
    now: Instant,
    end: Instant,
    pub(crate) warmup: Instant,
    pub(crate) seed: u64,
    pub(crate) name: String,
    no_drops: bool,
    events: EventQueue,
    /// Events handled.
    pub(crate) handled: u64,
    pub(crate) links: Vec<Link>,
    /// So many of the links are between routers; they come first.
    routers: usize,
    /// Classes of flows that have one.
    classes: BTreeMap<u32, u32>,
    /// The nodes whose sockets the flows are; empty if nobody asks.
    owners: Vec<u32>,
    routes: Vec<u32>,
    pub(crate) flows: Vec<Flow>,
    /// The flows that are floods.
    floods: Vec<u32>,
    /// Those of flows with sessions.
    pub(crate) connections: Connections,
    pub(crate) bottlenecks: Vec<network::Bottleneck>,
    outlet: Outlet,
    changes: Changes,
    /// Hosts that move; nothing in most runs.
    pub(crate) handovers: Option<Box<Handovers>>,
    /// The gateway and its clients; nothing in most runs.
    pub(crate) coop: Option<Box<Cooperation>>,
    /// Round trip times of all flows.
    pub(crate) rtt: TimeHistogram,
    pub(crate) seconds: Seconds,
}

// Sources of events: links, then two timers and one application per flow, then the clock of whole
// seconds, and the changes and handovers, then the gateway and its clients, if any, then the connections of sessions.
impl Simulation {
    fn timer_source(&self, flow: usize, server: bool) -> u32 {
        (self.links.len() + 2 * flow + usize::from(server)) as u32
    }
    fn app_source(&self, flow: usize) -> u32 {
        (self.links.len() + 2 * self.flows.len() + flow) as u32
    }
    fn clock_source(&self) -> u32 {
        (self.links.len() + 3 * self.flows.len()) as u32
    }
    fn changes_source(&self) -> u32 {
        self.clock_source() + 1
    }
}

impl Simulation {
    /// Builds the network and the flows.
    pub fn new(scenario: &Scenario) -> Self {
        let network = network::build(scenario);
        let (links, flows) = (network.links, network.flows);
        let end = Instant::ZERO + scenario.duration;
        let mut simulation = Self {
            now: Instant::ZERO,
            end,
            warmup: Instant::ZERO + scenario.warmup,
            seed: scenario.seed,
            name: scenario.name.clone(),
            no_drops: scenario.invariants.no_drops,
            events: EventQueue::new(links.len() + 3 * flows.len() + 2, event_gap(&links)),
            handled: 0,
            seconds: Seconds::new(scenario.output.series),
            links,
            routers: 2 * scenario.links.len(),
            classes: network.classes,
            owners: network.owners,
            routes: network.routes,
            flows,
            floods: network.floods,
            connections: Connections::default(),
            bottlenecks: network.bottlenecks,
            outlet: Outlet::default(),
            changes: Changes::new(scenario),
            handovers: Handovers::new(network.moves),
            coop: network.coop,
            rtt: TimeHistogram::default(),
        };
        for flow in 0..simulation.flows.len() {
            let start = simulation.flows[flow].start;
            if start <= end {
                simulation.events.set(simulation.app_source(flow), start);
            }
        }
        simulation.events.set(simulation.clock_source(), Instant::ZERO + Span::from_secs(1));
        simulation.await_change();
        if simulation.coop.is_some() {
            let sources = simulation.changes_source() + 2 + simulation.cooperating();
            simulation.events.grow_to(sources as usize);
            simulation.start_cooperation();
        }
        simulation
    }

    /// Writes the packets of the queues named in `[output] pcapng` to `out`; of all bottlenecks if none is named.
    /// Call before the run begins.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn capture_to(&mut self, out: Sink, scenario: &Scenario) -> std::io::Result<()> {
        self.begin_capture(scenario, |names| Capture::new(out, names))
    }

    /// The same as CSV, with the columns of [`crate::capture::CSV_HEADER`].
    ///
    /// # Errors
    /// Those of the writer.
    pub fn capture_csv_to(&mut self, out: Sink, scenario: &Scenario) -> std::io::Result<()> {
        self.begin_capture(scenario, |names| Capture::csv(out, names))
    }

    fn begin_capture(
        &mut self,
        scenario: &Scenario,
        open: impl FnOnce(&[Option<String>]) -> std::io::Result<Capture>,
    ) -> std::io::Result<()> {
        let wanted = &scenario.output.pcapng;
        let chosen = |b: &network::Bottleneck| (wanted.is_empty() || wanted.contains(&b.name)).then(|| b.name.clone());
        let names: Vec<_> = self.bottlenecks.iter().map(chosen).collect();
        self.outlet.capture = Some(open(&names)?);
        for (bottleneck, _) in self.bottlenecks.iter().zip(names).filter(|(_, name)| name.is_some()) {
            if let Some(queue) = &mut self.links[bottleneck.link].queue {
                queue.eager = true;
            }
        }
        Ok(())
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// The first error of any write to it.
    pub fn finish_capture(&mut self) -> std::io::Result<()> {
        self.outlet.capture.take().map_or(Ok(()), Capture::finish)
    }

    /// Simulated time so far.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Simulated time at the end of the run.
    pub fn duration(&self) -> Span {
        self.end.since(Instant::ZERO)
    }

    /// Simulates up to `by` more; true when the run is over.
    ///
    /// # Errors
    /// An invariant of the scenario broke, or the books of a queue do not balance.
    pub fn advance(&mut self, by: Span) -> Result<bool, Broken> {
        let limit = (self.now + by).min(self.end);
        while let Some((source, now)) = self.events.pop_until(limit) {
            self.now = now;
            self.handled += 1;
            self.dispatch(source as usize);
        }
        self.now = limit;
        self.catch_up();
        self.check()?;
        Ok(self.now == self.end)
    }

    #[inline]
    fn dispatch(&mut self, source: usize) {
        let (links, flows) = (self.links.len(), self.flows.len());
        if source < links {
            self.on_link(source);
        } else if source < links + 2 * flows {
            let index = source - links;
            self.on_timer(index / 2, index % 2 == 1);
        } else if source < links + 3 * flows {
            self.on_app(source - links - 2 * flows);
        } else if source == links + 3 * flows {
            self.on_second();
        } else if source == links + 3 * flows + 1 {
            self.on_change();
        } else {
            self.on_other_timer(source - links - 3 * flows - 2);
        }
    }

    /// Timers of cooperation, then those of connections.
    #[inline(never)]
    fn on_other_timer(&mut self, index: usize) {
        let cooperation = self.coop.as_ref().map_or(0, |coop| coop.nodes.len() + 1);
        match index.checked_sub(cooperation) {
            None => self.on_cooperation_timer(index),
            Some(connection) => self.on_connection_timer(connection),
        }
    }

    fn await_change(&mut self) {
        let moves = self.handovers.as_ref().and_then(|handovers| handovers.next());
        if let Some(at) = self.changes.next().into_iter().chain(moves).min() {
            self.events.set(self.changes_source(), at);
        }
    }

    fn on_change(&mut self) {
        let mut touched = Vec::new();
        self.changes.apply(&mut self.links, self.now, &mut self.outlet, |link| touched.push(link));
        for link in touched {
            if let Some(next) = self.links[link].next_event() {
                self.events.set_at_latest(link as u32, next.max(self.now));
            }
        }
        self.relay();
        self.links_changed();
        self.on_handovers();
        self.await_change();
    }

    /// Brings the queues that are looked at up to now.
    fn catch_up(&mut self) {
        for bottleneck in &self.bottlenecks {
            self.links[bottleneck.link].catch_up(self.now, &mut self.outlet);
        }
        self.relay();
    }

    fn check(&self) -> Result<(), Broken> {
        for bottleneck in &self.bottlenecks {
            let Some(queue) = &self.links[bottleneck.link].queue else { continue };
            let (name, stats) = (&bottleneck.name, queue.qdisc.stats());
            stats.check(queue.qdisc.backlog()).map_err(|e| Broken(format!("queue {name:?}: {e}")))?;
            if let Some((at, bytes)) = queue.probe.as_ref().and_then(|p| p.broken) {
                let at = at.as_secs_f64();
                return Err(Broken(format!("invariant max_queue: {bytes} bytes waited at {name:?} at {at:.6} s")));
            }
            let drops = stats.dropped_by_aqm() + stats.dropped_overflow.packets;
            if self.no_drops && drops > 0 {
                return Err(Broken(format!("invariant no_drops: {drops} packets were dropped at {name:?}")));
            }
        }
        Ok(())
    }

    // Links.

    #[inline]
    fn on_link(&mut self, index: usize) {
        let now = self.now;
        let link = &mut self.links[index];
        let mut first = link.on_event(now, &mut self.outlet);
        if let Some(next) = link.next_event() {
            self.events.set(index as u32, next);
        }
        let mut ack_path_of = None;
        if let Some(queue) = &link.queue {
            ack_path_of = queue.ack_path_of;
            self.relay();
        }
        if first.at <= now {
            self.deliver(&mut first, ack_path_of);
        }
    }

    /// A packet reached the end of a link: an element on the ACK path sees it, then it goes on.
    #[inline]
    fn deliver(&mut self, packet: &mut Segment, ack_path_of: Option<u32>) {
        if let Some(forward) = ack_path_of
            && let Some(segment) = packet.tcp()
        {
            self.links[forward as usize].inbound(segment, self.now, &mut self.outlet);
            self.relay();
        }
        match self.routes[packet.cursor as usize] {
            END => self.on_host(packet),
            link => self.offer(link as usize, packet),
        }
    }

    #[inline]
    fn offer(&mut self, index: usize, packet: &mut Segment) {
        if self.handovers.is_some() && self.is_diverted(index, packet) {
            return;
        }
        let link = &mut self.links[index];
        if link.offer(packet, self.now, &mut self.outlet)
            && let Some(next) = link.next_event()
        {
            self.events.set_at_latest(index as u32, next);
        }
        if link.queue.is_some() {
            self.relay();
        }
    }

    /// Puts what links relayed into flight on the next.
    #[inline]
    fn relay(&mut self) {
        if !self.outlet.relayed.is_empty() {
            self.relay_all();
        }
    }

    #[inline(never)]
    fn relay_all(&mut self) {
        for (packet, at) in &self.outlet.relayed {
            let cursor = packet.cursor + 1;
            let index = self.routes[cursor as usize];
            let link = &mut self.links[index as usize];
            if link.take_as(packet, cursor, *at)
                && let Some(arrival) = link.next_event()
            {
                self.events.set(index, arrival);
            }
        }
        self.outlet.relayed.clear();
    }

    // Hosts.

    fn on_host(&mut self, packet: &Segment) {
        let (index, now) = (packet.flow as usize, self.now);
        let Some(flow) = self.flows.get_mut(index) else { return self.on_connection(packet) };
        let server = packet.from_client();
        match &mut flow.transport {
            Transport::Udp(source) => return source.receive(packet),
            Transport::Flood(_) | Transport::Sessions(_) => return,
            Transport::Voip(call) => return call.receive(packet, now),
            Transport::Video(stream) => return stream.receive(packet, now),
            Transport::Tcp(_, endpoint) if server => {
                endpoint.on_segment(packet, now);
                if let Kind::Transfer(size) = flow.kind
                    && flow.completed == Instant::MAX
                    && endpoint.delivered() >= size.get()
                {
                    flow.completed = now;
                }
            }
            Transport::Tcp(endpoint, _) => {
                endpoint.on_segment(packet, now);
                if let Some(rtt) = endpoint.take_rtt_sample() {
                    flow.rtt.record(rtt);
                    self.rtt.record(rtt);
                }
            }
        }
        self.pump(index, server);
        if !server && self.coop.is_some() {
            self.review_socket(index);
        }
    }

    /// A SYN of a flood, which its victim answers, or the answer, which nobody takes.
    #[cold]
    fn on_forged(&mut self, packet: &Segment) {
        let flood = ((packet.flow - self.flows.len() as u32) / FORGED) as usize;
        let Some(back) = self.floods.get(flood).map(|flow| self.flows[*flow as usize].routes[1]) else { return };
        if packet.from_client() {
            let mut answer = SynFlood::answer(packet);
            answer.cursor = back;
            self.offer(self.routes[back as usize] as usize, &mut answer);
        }
    }

    /// Sends what an endpoint has to send and keeps its timer.
    #[inline]
    fn pump(&mut self, index: usize, server: bool) {
        let now = self.now;
        let timer = self.timer_source(index, server);
        let flow = &mut self.flows[index];
        let cursor = flow.routes[usize::from(server)];
        let first = self.routes[cursor as usize];
        let Some(endpoint) = flow.endpoint(server) else { return };
        let link = &mut self.links[first as usize];
        if link.queue.is_some() {
            return self.pump_managed(index, server);
        }
        let mut is_first = false;
        while let Some(next) = endpoint.next(now) {
            is_first |= link.send(cursor, now, |segment| endpoint.emit(segment, next, now));
        }
        if is_first && let Some(next) = link.next_event() {
            self.events.set_at_latest(first, next);
        }
        if let Some(at) = endpoint.deadline() {
            self.events.set_at_latest(timer, at.max(now));
        }
    }

    /// The same for a host whose first link has a queue.
    #[inline(never)]
    fn pump_managed(&mut self, index: usize, server: bool) {
        let cursor = self.flows[index].routes[usize::from(server)];
        while let Some(mut packet) = self.flows[index].endpoint(server).and_then(|e| e.transmit(self.now)) {
            packet.cursor = cursor;
            self.offer(self.routes[cursor as usize] as usize, &mut packet);
        }
        if let Some(at) = self.flows[index].endpoint(server).and_then(|e| e.deadline()) {
            self.events.set_at_latest(self.timer_source(index, server), at.max(self.now));
        }
    }

    fn on_timer(&mut self, index: usize, server: bool) {
        let now = self.now;
        let Some(endpoint) = self.flows[index].endpoint(server) else { return };
        if endpoint.deadline().is_some_and(|at| at <= now) {
            endpoint.on_timer(now);
            self.pump(index, server);
        } else if let Some(at) = endpoint.deadline() {
            // A lazy timer: what it was set for has moved.
            self.events.set(self.timer_source(index, server), at);
        }
    }

    /// The application begins, stops, or sends its next datagram.
    fn on_app(&mut self, index: usize) {
        let now = self.now;
        let source = self.app_source(index);
        let stopping = self.flows[index].stop <= now;
        if self.coop.is_some() {
            let tcp = matches!(self.flows[index].transport, Transport::Tcp(..));
            match stopping {
                false => self.socket_opens(index),
                true if tcp => {} // once its FIN is acknowledged
                true => self.socket_closes(index),
            }
        }
        let flow = &mut self.flows[index];
        match &mut flow.transport {
            transport if stopping && !matches!(transport, Transport::Tcp(..)) => {}
            Transport::Udp(udp) => {
                let (mut packet, next) = udp.send(flow.kind, index as u32, now);
                let cursor = flow.routes[0];
                packet.cursor = cursor;
                self.events.set(source, next);
                self.offer(self.routes[cursor as usize] as usize, &mut packet);
            }
            Transport::Sessions(_) => self.on_session(index),
            Transport::Voip(call) => {
                let (packet, next) = call.send(index as u32, now);
                self.events.set(source, next);
                self.send_from(index, packet);
            }
            Transport::Video(stream) => {
                let (frame, next) = stream.send(index as u32, now);
                self.events.set(source, next);
                frame.for_each(|packet| self.send_from(index, packet));
            }
            Transport::Flood(flood) => {
                let (mut syn, next) = flood.send(now);
                let cursor = flow.routes[0];
                (syn.cursor, syn.at) = (cursor, now);
                self.events.set(source, next);
                self.offer(self.routes[cursor as usize] as usize, &mut syn);
            }
            Transport::Tcp(client, _) => {
                if stopping {
                    client.stop();
                } else {
                    client.open();
                    match flow.kind {
                        Kind::Transfer(size) => {
                            client.write(size.get());
                            client.close();
                        }
                        _ => client.write(ENDLESS),
                    }
                    if flow.stop != Instant::MAX {
                        self.events.set(source, flow.stop);
                    }
                }
                self.pump(index, false);
            }
        }
    }

    /// The client of a flow sends a datagram.
    fn send_from(&mut self, flow: usize, mut packet: Segment) {
        let cursor = self.flows[flow].routes[0];
        packet.cursor = cursor;
        self.offer(self.routes[cursor as usize] as usize, &mut packet);
    }

    // Measurement.

    fn on_second(&mut self) {
        self.catch_up();
        self.seconds.close(self.now, self.warmup, &mut self.flows, &mut self.links, &self.bottlenecks);
        self.events.set(self.clock_source(), self.now + Span::from_secs(1));
    }

    /// What the run measured so far.
    pub fn summary(&self) -> Summary {
        summary::of(self)
    }

    /// The run second by second, and what changed on links; empty without `[output] series`.
    pub fn tables(&self) -> Vec<Table> {
        self.seconds.tables().into_iter().chain(self.changes.table()).collect()
    }

    /// Numbers that connections of `http` and `web` flows have, or had until a minute ago.
    pub fn connection_numbers(&self) -> usize {
        self.connections.numbers()
    }

    /// Bytes of state kept for each flow: endpoints, its four access links, its pending events, its measurements;
    /// packets in flight and the connections that sessions open are not counted.
    pub fn bytes_per_flow(&self) -> usize {
        let heap: usize = self.flows.iter().map(Flow::heap_bytes).sum();
        let access_links = 4 * (size_of::<Link>() - size_of::<Segment>()); // each has room for one packet in flight
        let events = 7 * EventQueue::BYTES_PER_SOURCE;
        size_of::<Flow>() + access_links + events + heap / self.flows.len().max(1)
    }
}
