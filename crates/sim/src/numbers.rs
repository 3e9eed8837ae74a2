//! The layout of numbers: sources of events, owners of packets, directions of links. Only this file computes with them.
//!
//! **Sources of events** have numbers. Events which are due at the same time are handled in this order:
//!
//! | source | how many |
//! |---|---|
//! | links of the scenario | both directions of each |
//! | lanes of access links, each in the place of the link whose packet arrives | at most as many as access links, both directions of each |
//! | timers of the flows' connections | two for each flow: client, server |
//! | applications of flows | one for each flow |
//! | the clock of whole seconds, changes of links and moves of hosts | one each |
//! | the gateway of `[cooperation]`, then its clients | one, and one for each node; none without a gateway |
//! | the probes of gateways that estimate the rates of their links | one for each such gateway, if their law has probes |
//! | timers of the connections that sessions open | two for each connection, as many as there are |
//!
//! Their numbers are in this order as well, apart from those of lanes. There may be as many lanes as access links, but most runs
//! have a handful of them. So their numbers stand at the end, each behind those of the connection with the same number: both may
//! become more during a run. [`Layout::key`] is the turn of a source among events of the same time.
//!
//! **Owners of packets** have the number that a packet carries as its flow:
//!
//! | owner | how many |
//! |---|---|
//! | flows, up to the last one that begins before the run ends | one each |
//! | forged connections | [`FORGED`] for each flood |
//! | nodes of `[cooperation]`, for what they and the gateway say to each other | one each |
//! | gateways that estimate the rates of their links, for their probes | one each, if their law has probes |
//! | connections that sessions open | as many as there are |
//!
//! Algorithms draw and hash by these numbers, and disciplines have tables with a place for each. A flow that begins after
//! the end of the run sends nothing. If the flows behind it do not either, it has no number, so that it does not change the
//! numbers of others.
//!
//! Invariant: decoding the number of a source or an owner gives that source or owner, and encoding that gives the
//! number (tested for all numbers).

use crate::tcp::Role;

/// Number of connections that a flood forges before it starts over: a table of flows with this many entries would take
/// each of them for a new flow.
pub const FORGED: u32 = 1 << 15;

/// Returns the number of the first connection that a flood forges, in a run in which this many flows have numbers.
pub const fn first_forged(senders: u32, flood: u32) -> u32 {
    senders + flood * FORGED
}

/// Number of sources in a group: the two timers of a connection, and a lane.
const GROUP: u32 = 3;

/// One direction of a duplex link, as its place in the list of all links. The two directions of a link stand side by
/// side. The links of the scenario come first, each with forward before reverse. The access links of hosts follow, each
/// with the direction from the host before the direction to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkDir(u32);

impl LinkDir {
    /// Returns the forward direction of the duplex link with this number.
    pub const fn forward(duplex: usize) -> Self {
        Self(2 * duplex as u32)
    }

    /// Returns the direction at this place in the list of all links.
    #[inline]
    pub const fn at(place: u32) -> Self {
        Self(place)
    }

    /// Returns the opposite direction of the same link.
    #[inline]
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// True for the direction from the first end to the second; on an access link, for the direction from the host.
    pub const fn is_forward(self) -> bool {
        self.0 & 1 == 0
    }

    /// Returns what belongs to this direction of two values, forward first.
    pub fn of<T>(self, both: [T; 2]) -> T {
        let [forward, reverse] = both;
        if self.is_forward() { forward } else { reverse }
    }

    /// Returns the number of the duplex link.
    pub const fn duplex(self) -> usize {
        self.0 as usize / 2
    }

    /// Returns the place of this direction in the list of all links.
    #[inline]
    pub const fn place(self) -> u32 {
        self.0
    }

    /// Returns the place of this direction in the list of all links, as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A source of events: what an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// One direction of a link of the scenario.
    Link(LinkDir),
    /// The lane with this number, on which packets are in flight on access links.
    Lane(u32),
    /// The timer of one side of a flow's connection.
    Timer {
        /// Number of the flow.
        flow: u32,
        /// Side of the connection whose timer it is.
        side: Role,
    },
    /// The application of the flow with this number.
    Application(u32),
    /// The clock which ticks at every whole second.
    Clock,
    /// The next change of a link or move of a host.
    Changes,
    /// The gateway of `[cooperation]`.
    Gateway,
    /// The client of the node with this number.
    Client(u32),
    /// The probes of the gateway with this number, which estimates the rate of its link.
    Probes(u32),
    /// The timer of one side of a connection that a session opened.
    Connection {
        /// Number of the connection.
        number: u32,
        /// Side of the connection whose timer it is.
        side: Role,
    },
}

/// The owner of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The packet belongs to the flow with this number.
    Flow(u32),
    /// The packet belongs to a connection that a flood forged.
    Forged {
        /// Index of the flood among the flows that are floods.
        flood: u32,
        /// Number of the connection within the flood, below [`FORGED`].
        connection: u32,
    },
    /// The packet is a message between the node with this number and its gateway.
    Message(u32),
    /// The packet is a probe of the gateway with this number, or the answer.
    Probe(u32),
    /// The packet belongs to the connection with this number, which a session opened.
    Connection(u32),
}

/// The first number of each kind of source and owner in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    // The first number of each kind of source.
    timers: u32,
    applications: u32,
    clock: u32,
    gateway: u32,
    probes: u32,
    /// The first of the groups of a connection's two timers and a lane.
    groups: u32,
    /// Number of flows.
    flows: u32,
    // The first number of each kind of owner; that of flows is 0.
    forged: u32,
    messages: u32,
    probed: u32,
    connections: u32,
    /// Number of directions of the scenario's links.
    between_routers: u32,
}

impl Layout {
    /// Lays out the numbers of a run: `duplex_links` between routers, `flows` with two duplex access links each, of which
    /// the first `senders` have packets, `floods` among these, the cooperating `nodes`, which are `None` without a gateway,
    /// and `probing` gateways that send probes to estimate rates.
    pub const fn new(
        duplex_links: u32,
        flows: u32,
        senders: u32,
        floods: u32,
        nodes: Option<u32>,
        probing: u32,
    ) -> Self {
        let between_routers = 2 * duplex_links;
        let timers = between_routers;
        let applications = timers + 2 * flows;
        let clock = applications + flows;
        let gateway = clock + 2;
        let (cooperating, nodes) = match nodes {
            Some(nodes) => (1 + nodes, nodes),
            None => (0, 0),
        };
        let messages = first_forged(senders, floods);
        let (probes, probed) = (gateway + cooperating, messages + nodes);
        Self {
            timers,
            applications,
            clock,
            gateway,
            probes,
            groups: probes + probing,
            flows,
            forged: senders,
            messages,
            probed,
            connections: probed + probing,
            between_routers,
        }
    }

    /// True if the flow with this index may have packets.
    #[inline(always)]
    pub const fn sends(&self, flow: u32) -> bool {
        flow < self.forged
    }

    /// Returns the number of directions of the scenario's links, which precede those of hosts.
    pub const fn between_routers(&self) -> usize {
        self.between_routers as usize
    }

    /// Returns the number of directions of access links.
    const fn access_links(&self) -> u32 {
        4 * self.flows
    }

    /// Returns the number of directions of all links.
    pub const fn links(&self) -> usize {
        (self.between_routers + self.access_links()) as usize
    }

    /// Returns the number of sources of events while this many numbers of connections and this many lanes are in use.
    pub const fn sources(&self, connections: u32, lanes: u32) -> usize {
        let groups = if connections > lanes { connections } else { lanes };
        self.groups as usize + GROUP as usize * groups as usize
    }

    /// Returns the turn of a source among events of the same time. That of a lane is the place of a link.
    #[inline(always)]
    pub const fn key(&self, source: u32) -> u32 {
        if source < self.between_routers { source } else { source + self.access_links() }
    }

    /// Returns the number of a source of events.
    #[inline(always)]
    pub const fn source(&self, source: Source) -> u32 {
        match source {
            Source::Link(link) => link.0,
            Source::Lane(lane) => self.groups + GROUP * lane + 2,
            Source::Timer { flow, side } => self.timers + 2 * flow + side as u32,
            Source::Application(flow) => self.applications + flow,
            Source::Clock => self.clock,
            Source::Changes => self.clock + 1,
            Source::Gateway => self.gateway,
            Source::Client(node) => self.gateway + 1 + node,
            Source::Probes(gauge) => self.probes + gauge,
            Source::Connection { number, side } => self.groups + GROUP * number + side as u32,
        }
    }

    /// Returns the source of events with this number.
    #[inline(always)]
    pub const fn decode(&self, number: u32) -> Source {
        if number < self.between_routers {
            Source::Link(LinkDir(number))
        } else if number >= self.groups {
            match ((number - self.groups) / GROUP, (number - self.groups) % GROUP) {
                (lane, 2) => Source::Lane(lane),
                (number, index) => Source::Connection { number, side: side(index) },
            }
        } else if number < self.applications {
            let index = number - self.timers;
            Source::Timer { flow: index / 2, side: side(index) }
        } else if number < self.clock {
            Source::Application(number - self.applications)
        } else if number >= self.probes {
            Source::Probes(number - self.probes)
        } else if number > self.gateway {
            Source::Client(number - self.gateway - 1)
        } else if number == self.gateway {
            Source::Gateway
        } else if number == self.clock {
            Source::Clock
        } else {
            Source::Changes
        }
    }

    /// Returns the number that the packets of an owner carry.
    #[inline]
    pub const fn number(&self, owner: Owner) -> u32 {
        match owner {
            Owner::Flow(flow) => flow,
            Owner::Forged { flood, connection } => first_forged(self.forged, flood) + connection,
            Owner::Message(node) => self.messages + node,
            Owner::Probe(gauge) => self.probed + gauge,
            Owner::Connection(number) => self.connections + number,
        }
    }

    /// Returns the owner of the packets that carry this number.
    #[inline]
    pub const fn owner(&self, number: u32) -> Owner {
        if self.sends(number) {
            Owner::Flow(number)
        } else if number >= self.connections {
            Owner::Connection(number - self.connections)
        } else if number >= self.probed {
            Owner::Probe(number - self.probed)
        } else if number >= self.messages {
            Owner::Message(number - self.messages)
        } else {
            let index = number - self.forged;
            Owner::Forged { flood: index / FORGED, connection: index % FORGED }
        }
    }
}

/// Tells the side of a connection from the index of its timer: even for the client, odd for the server.
#[inline(always)]
const fn side(index: u32) -> Role {
    if index.is_multiple_of(2) { Role::Client } else { Role::Server }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIDES: [Role; 2] = [Role::Client, Role::Server];

    /// Lists all sources of a run in the order of their numbers. Without lanes, events of the same time are handled in this order.
    fn sources(layout: &Layout, flows: u32, nodes: Option<u32>, probing: u32, groups: u32) -> Vec<Source> {
        let between = layout.between_routers() as u32;
        let links = (0..between).map(|place| Source::Link(LinkDir::at(place)));
        let timers = (0..flows).flat_map(|flow| SIDES.map(|side| Source::Timer { flow, side }));
        let gateway = nodes.map(|_| Source::Gateway);
        let of_connection = |number| SIDES.map(|side| Source::Connection { number, side });
        let grouped = (0..groups).flat_map(|number| of_connection(number).into_iter().chain([Source::Lane(number)]));
        links
            .chain(timers)
            .chain((0..flows).map(Source::Application))
            .chain([Source::Clock, Source::Changes])
            .chain(gateway)
            .chain((0..nodes.unwrap_or(0)).map(Source::Client))
            .chain((0..probing).map(Source::Probes))
            .chain(grouped)
            .collect()
    }

    proptest! {
        /// Every number belongs to one source, in the order of the table in the header, and decodes to that source. The places
        /// of access links, which are the turns of lanes, come after those of links and before those of all others.
        #[test]
        fn sources_and_their_numbers_go_round(
            duplex in 1..20u32, flows in 0..20u32, floods in 0..3u32, nodes in prop::option::of(0..9u32), probing in 0..3u32,
            open in 0..9u32,
        ) {
            let layout = Layout::new(duplex, flows, flows / 2, floods, nodes, probing);
            let all = sources(&layout, flows, nodes, probing, open);
            prop_assert_eq!(all.len(), layout.sources(open, open / 2));
            prop_assert_eq!(all.len(), layout.sources(open / 2, open));
            let between = layout.between_routers() as u32;
            for (number, source) in (0..).zip(all) {
                prop_assert_eq!(layout.source(source), number);
                prop_assert_eq!(layout.decode(number), source);
                let turn = if number < between { number } else { number + layout.links() as u32 - between };
                prop_assert_eq!(layout.key(number), turn);
            }
        }

        /// Every number belongs to one owner and decodes to it. Of the forged connections the first and the last are
        /// tested.
        #[test]
        fn owners_and_their_numbers_go_round(
            flows in 0..20u32, late in 0..3u32, floods in 0..3u32, nodes in prop::option::of(0..9u32), probing in 0..3u32,
            open in 0..9u32,
        ) {
            let layout = Layout::new(1, flows + late, flows, floods, nodes, probing);
            let mut next = 0;
            let mut is_next = |owner, count: u32| {
                let number = layout.number(owner);
                let fits = number == next && layout.owner(number) == owner;
                next += count;
                fits
            };
            for flow in 0..flows {
                prop_assert!(is_next(Owner::Flow(flow), 1), "flow {}", flow);
            }
            for flood in 0..floods {
                for (connection, count) in [(0, FORGED - 1), (FORGED - 1, 1)] {
                    prop_assert!(is_next(Owner::Forged { flood, connection }, count), "flood {}", flood);
                }
            }
            for node in 0..nodes.unwrap_or(0) {
                prop_assert!(is_next(Owner::Message(node), 1));
            }
            for gauge in 0..probing {
                prop_assert!(is_next(Owner::Probe(gauge), 1));
            }
            for number in 0..open {
                prop_assert!(is_next(Owner::Connection(number), 1));
            }
        }

        #[test]
        fn the_reverse_of_the_reverse_is_the_same_direction(duplex in 0..1_000_000usize) {
            let forward = LinkDir::forward(duplex);
            let reverse = forward.reverse();
            prop_assert_eq!((forward.duplex(), reverse.duplex()), (duplex, duplex));
            prop_assert_eq!((forward.is_forward(), reverse.is_forward()), (true, false));
            prop_assert_eq!((reverse.reverse(), LinkDir::at(reverse.place())), (forward, reverse));
        }
    }
}
