//! The classifier: makes a packet with a flow from bytes. Which connections have a flow of their own, and which are shown
//! to elements on the ACK path, is decided by the table of `penstock-conntrack`.

use crate::direction::Direction;
use crate::keys::Keys;
use crate::nodes::{FlowOwner, Side};
use crate::numbered::{ClassOf, Host, Numbered};
use crate::pool::Pool;
use crate::told::Told;
use penstock_conntrack::{Arrived, Config, FlowTable, Gauges, Mac, STRANGERS, Seen, State};
use penstock_core::fact::{Fact, Opening};
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::units::Instant;
use penstock_core::wire::{Headers, IpVersion, RealPacket, Transport};
use serde::Serialize;

/// Numbers of packets that are not shown to elements on the ACK path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Unclassified {
    /// Number of packets that are not complete IP packets.
    pub malformed: u64,
    /// Number of packets of connections that are not shown yet, because too many are half-open.
    pub untracked: u64,
    /// Number of packets that are not TCP, or whose connection's SYN was not seen. They are forwarded and queued like
    /// any other.
    pub not_from_syn: u64,
    /// Number of segments with a signature (TCP-MD5, TCP-AO). It covers the window, so they pass untouched.
    pub signed: u64,
}

/// The facts that disciplines must be told before a packet arrives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PacketFacts {
    /// The direction of the packet.
    direction: Direction,
    /// The flow whose index belonged to another connection until now.
    gone: Option<FlowId>,
    owner: Option<FlowOwner>,
    class: Option<ClassOf>,
    /// The begin of the packet's connection, with respect to its direction.
    opening: Option<Opening>,
}

impl PacketFacts {
    /// Returns the facts for the discipline of a direction, in the order in which they must be told. One that takes classes
    /// for `codepoints` is told only those that somebody wrote.
    pub fn told(&self, queue: Direction, codepoints: bool) -> impl Iterator<Item = Fact> {
        let node = self.owner.filter(|owner| owner.fresh).map(|owner| Fact::Gone(owner.node));
        let owner = self.owner.map(|FlowOwner { flow, node, .. }| Fact::Owner { flow, node });
        let class = self.class.filter(|class| class.is_written || !codepoints);
        let class = class.map(|ClassOf { flow, class, .. }| Fact::Class { flow, class });
        let same = queue == self.direction;
        let opening = self.opening.map(|o| Fact::Opened(Opening { from_inside: o.from_inside == same, ..o }));
        [self.gone.map(Fact::FlowGone), node, owner, class, opening].into_iter().flatten()
    }

    /// Returns the owner of the packet's flow, if disciplines have not been told of it.
    pub fn owner(&self) -> Option<FlowOwner> {
        self.owner
    }
}

/// Assigns a flow to each packet.
#[derive(Debug)]
pub struct Classifier {
    side: Side,
    /// The connections, and who has them.
    pub table: FlowTable,
    numbered: Numbered,
    /// The nodes that disciplines were told.
    nodes: Told<NodeId>,
    unclassified: Unclassified,
    warned: bool,
}

impl Classifier {
    /// Creates a classifier that has seen no packet. The hosts on `side` are the nodes.
    pub fn new(config: Config, keys: Keys, side: Side) -> Self {
        let table = FlowTable::new(config, keys.connections, keys.hosts);
        let (numbered, nodes) = (Numbered::default(), Told::default());
        Self { side, table, numbered, nodes, unclassified: Unclassified::default(), warned: false }
    }

    /// Numbers flows by these hosts from now on. Call it before the first packet.
    pub fn with_hosts(self, hosts: &[Host]) -> Self {
        Self { numbered: Numbered::new(hosts), ..self }
    }

    /// Makes a packet of the first `len` bytes of `buffer`, which travels in `direction`. Returns the facts that
    /// disciplines must be told before it arrives as well.
    pub fn packet(
        &mut self,
        direction: Direction,
        buffer: Box<[u8]>,
        len: usize,
        now: Instant,
        pool: &mut Pool,
    ) -> (RealPacket, PacketFacts) {
        self.packet_of(None, direction, buffer, len, now, pool)
    }

    /// Does what [`Classifier::packet`] does with a packet whose frame has this hardware address at the end of the nodes.
    pub fn packet_of(
        &mut self,
        hardware: Option<Mac>,
        direction: Direction,
        buffer: Box<[u8]>,
        len: usize,
        now: Instant,
        pool: &mut Pool,
    ) -> (RealPacket, PacketFacts) {
        let bytes = &buffer[..len.min(buffer.len())];
        let headers = Headers::parse(bytes);
        let arrived = Arrived { hardware, ..Arrived::read(bytes, &headers, self.side.end(direction)) };
        let seen = self.table.see(&arrived, now);
        self.count(&headers, arrived.segment.is_some_and(|segment| segment.signed), &seen);
        let (seen, class) = self.numbered.number(bytes, &headers, seen);
        let owner = self.owner(&arrived, &seen, now);
        let facts =
            PacketFacts { direction, gone: seen.fresh.then_some(seen.flow), owner, class, opening: seen.opening };
        let packet = if headers.version == IpVersion::Unknown {
            // A packet has the length of its buffer, so the buffer must fit: these bytes are copied into a new one.
            let packet = RealPacket::new(bytes, seen.flow);
            pool.give(buffer);
            packet
        } else {
            RealPacket::new(buffer, seen.flow)
        };
        (if seen.shown { packet } else { packet.hide_tcp() }, facts)
    }

    fn owner(&mut self, arrived: &Arrived, seen: &Seen, now: Instant) -> Option<FlowOwner> {
        if self.side == Side::None {
            return None;
        }
        let (node, fresh) = match (arrived.host, seen.owner) {
            (Some(_), Some(owner)) => (owner, seen.owner_fresh),
            (Some(host), None) => self.table.subscribers.number(host, now),
            (None, _) => (if arrived.key.is_none() { STRANGERS } else { NodeId::NOBODY }, false),
        };
        if seen.fresh {
            self.nodes.forget(seen.flow);
        }
        // Packets of several hosts may have one index, if they are not shown.
        let is_new = self.nodes.note(seen.flow, node);
        (fresh || is_new).then_some(FlowOwner { flow: seen.flow, node, fresh })
    }

    fn count(&mut self, headers: &Headers, signed: bool, seen: &Seen) {
        let tcp = matches!(headers.transport, Transport::Tcp { .. });
        let counter = match (headers.version, seen.state) {
            (IpVersion::Unknown, _) => &mut self.unclassified.malformed,
            _ if signed => &mut self.unclassified.signed,
            (_, State::Other) => &mut self.unclassified.not_from_syn,
            (_, State::HalfOpen) if tcp && !self.table.has_index(seen) => &mut self.unclassified.untracked,
            _ => return,
        };
        *counter += 1;
    }

    /// Returns the node of a flow, as it was told last.
    pub fn node_of(&self, flow: FlowId) -> NodeId {
        self.nodes.of(flow).unwrap_or(NodeId::NOBODY)
    }

    /// Tells the owner and the class of each flow again with its next packet, because a discipline is new.
    pub fn tell_again(&mut self) {
        self.nodes.forget_all();
        self.numbered.told.forget_all();
    }

    /// Returns the numbers of packets that were not shown to elements on the ACK path.
    pub fn unclassified(&self) -> Unclassified {
        self.unclassified
    }

    /// Returns a warning the first time that the table of connections is nearly full.
    pub fn warning(&mut self) -> Option<String> {
        if self.warned || !self.table.is_nearly_full() {
            return None;
        }
        self.warned = true;
        let Gauges { entries, capacity, .. } = self.table.gauges();
        Some(format!(
            "warning: {entries} of {capacity} connections are tracked; when all are, the one that was silent for longest \
             goes, of the host with most"
        ))
    }
}
