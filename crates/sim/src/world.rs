//! The network which moves packets: links, routes, pending events, and the time.

use crate::access::AccessLinks;
use crate::estimate::Gauge;
use crate::event::EventQueue;
use crate::link::{Link, Outlet, Watched};
use crate::numbers::{Layout, LinkDir, Owner, Source};
use crate::segment::Segment;
use penstock_core::packet::FlowId;
use penstock_core::units::{Instant, Rate, Span};

/// The entry in the table of routes which ends a route: the packet is at its host.
pub const END: u32 = u32::MAX;

/// The state of the network at one time of a run.
#[derive(Debug)]
pub struct World {
    /// Simulated time.
    pub now: Instant,
    /// The layout of the numbers of sources and owners.
    pub layout: Layout,
    /// The links of the scenario, each one direction, in the order of [`Layout`].
    pub links: Vec<Link>,
    /// The gateways that estimate the rates of their links.
    pub gauges: Vec<Gauge>,
    /// The rest of the network: the links of hosts, routes and pending events.
    pub outlet: Outlet,
}

/// Estimates the time between two events: each packet of 1000 bytes on a link of the scenario causes three events, its ACK
/// included.
fn event_gap(links: &[Link]) -> Span {
    let bps: u64 = links.iter().map(|link| link.rate().as_bps()).sum();
    Span::from_nanos(8_000_000_000_000 / 3 / bps.max(1))
}

impl World {
    /// Creates a network at time zero, with no event pending.
    pub fn new(layout: Layout, links: Vec<Link>, access: AccessLinks, routes: Vec<u32>) -> Self {
        let events = EventQueue::new(layout.sources(0, access.lanes()), event_gap(&links));
        Self {
            now: Instant::ZERO,
            layout,
            links,
            gauges: Vec::new(),
            outlet: Outlet { capture: None, audit: None, access, routes, events },
        }
    }

    /// Returns the current delay of the link at a place.
    pub fn delay(&self, place: u32) -> Span {
        self.links.get(place as usize).map_or_else(|| self.outlet.access.delay(place), Link::delay)
    }

    /// Returns the current rate of a link of the scenario.
    pub fn rate(&self, link: LinkDir) -> Rate {
        self.links[link.index()].rate()
    }

    /// Returns the place of the link to which a route leads at this cursor; [`END`] if the packet is at its host.
    #[inline]
    pub fn hop(&self, cursor: u32) -> u32 {
        self.outlet.routes[cursor as usize]
    }

    /// Returns the links between routers on the route that begins at this cursor, in order.
    pub fn path(&self, cursor: u32) -> impl Iterator<Item = LinkDir> {
        let hops = self.outlet.routes[cursor as usize..].iter().take_while(|hop| **hop != END);
        hops.map(|hop| LinkDir::at(*hop)).filter(|link| link.index() < self.layout.between_routers())
    }

    /// True if a link is on the route that begins at this cursor.
    pub fn crosses(&self, cursor: u32, link: LinkDir) -> bool {
        crosses(&self.outlet.routes, cursor, link)
    }

    /// Returns the number that packets of an owner carry.
    pub fn number(&self, owner: Owner) -> u32 {
        self.layout.number(owner)
    }

    /// Sets the event of a source; a time in the past means now.
    pub fn set_event(&mut self, source: Source, at: Instant) {
        let id = self.layout.source(source);
        self.outlet.events.set_as(id, self.layout.key(id), at.max(self.now));
    }

    /// Gives a packet to a link.
    #[inline(always)]
    pub fn offer(&mut self, place: u32, packet: &mut Segment) {
        let Some(link) = self.links.get_mut(place as usize) else {
            return self.outlet.put(packet, packet.cursor, self.now);
        };
        link.offer(packet, self.now, &mut self.outlet);
        if let Some(next) = link.next_event() {
            self.outlet.events.set_at_latest(place, next);
        }
    }

    /// Shows a packet to the gateway that watches the link at whose end it arrives.
    #[cold]
    pub fn watch(&mut self, watched: Watched, packet: &mut Segment) {
        let Self { now, links, outlet, gauges, .. } = self;
        let gauge = &mut gauges[watched.gauge as usize];
        if gauge.pass(watched.way, packet, *now) {
            for shaper in gauge.step(links, *now, outlet) {
                self.review(shaper);
            }
        }
    }

    /// Returns what a gateway estimates in the direction of its shaper, and whether that was measured; `None` if the link is
    /// no shaper of one that estimates.
    pub fn estimate_of(&self, shaper: LinkDir) -> Option<(Rate, bool)> {
        self.gauges.iter().find_map(|gauge| gauge.estimate_of(shaper))
    }

    /// Sets the event of a link whose state was changed from outside.
    pub fn review(&mut self, link: LinkDir) {
        if let Some(next) = self.links[link.index()].next_event() {
            self.outlet.events.set_at_latest(link.place(), next.max(self.now));
        }
    }

    /// Lets a link catch up: its discipline takes the decisions that were due until now, each at its own time.
    pub fn catch_up(&mut self, link: LinkDir) {
        self.links[link.index()].catch_up(self.now, &mut self.outlet);
    }

    /// Takes the packets of these owners out of the queue of a link, if it has one, and appends them to `taken`.
    pub fn take_out(&mut self, link: LinkDir, numbers: &[u32], taken: &mut Vec<Segment>) {
        if let Some(at) = self.links.get_mut(link.index()) {
            let flows = numbers.iter().map(|number| FlowId(*number));
            at.take_out(flows, self.now, &mut self.outlet, taken);
            self.review(link);
        }
    }

    /// Removes the packets of these owners that are in flight on a link; returns how many there were.
    pub fn lose_in_flight(&mut self, link: LinkDir, numbers: &[u32]) -> u64 {
        match self.links.get_mut(link.index()) {
            Some(at) => at.lose_in_flight(numbers),
            None => self.outlet.access.lose_in_flight(link.place(), numbers, &self.outlet.routes),
        }
    }
}

/// True if a link is on the route that begins at this cursor of a table of routes.
pub fn crosses(routes: &[u32], cursor: u32, link: LinkDir) -> bool {
    routes[cursor as usize..].iter().take_while(|hop| **hop != END).any(|hop| *hop == link.place())
}
