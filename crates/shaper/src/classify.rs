//! The classifier: makes a packet with a flow from bytes. Which connections have a flow of their own, and which are shown
//! to elements on the ACK path, is decided by the table of `penstock-conntrack`.

use crate::direction::Direction;
use crate::keys::Keys;
use crate::nodes::{FlowOwner, Nodes, Side};
use crate::numbered::{ClassOf, Host, Numbered};
use crate::pool::Pool;
use penstock_conntrack::{Arrived, Config, FlowTable, Gauges, Mac, Named, STRANGERS, Seen, State};
use penstock_core::fact::{Fact, Opening};
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::units::Instant;
use penstock_core::wire::{Headers, HostKey, IpVersion, RealPacket, Transport};
use serde::Serialize;
use std::net::IpAddr;

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
        let class = self.class.filter(|class| class.is_written || !codepoints).map(|class| class.fact());
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
    table: FlowTable,
    numbered: Numbered,
    nodes: Nodes,
    unclassified: Unclassified,
    warned: bool,
}

impl Classifier {
    /// Creates a classifier that has seen no packet. The hosts on `side` are the nodes.
    pub fn new(config: Config, keys: Keys, side: Side) -> Self {
        let table = FlowTable::new(config, keys.connections, keys.hosts);
        let (numbered, nodes) = (Numbered::default(), Nodes::default());
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
            (Some(host), None) => self.table.subscriber(host, now),
            (None, _) => (if arrived.key.is_none() { STRANGERS } else { NodeId::NOBODY }, false),
        };
        if seen.fresh {
            self.nodes.forget(seen.flow);
        }
        self.nodes.note(seen.flow, node, fresh)
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
        self.nodes.of(flow)
    }

    /// Returns the node to which a host belongs; `None` if it has no number, because no packet of it came lately.
    pub fn node_at(&self, host: HostKey) -> Option<NodeId> {
        self.table.known_subscriber(host)
    }

    /// Returns the name of the subscriber to whom this address belongs now; `None` if it is in no list.
    pub fn name_at(&self, address: IpAddr, now: Instant) -> Option<&str> {
        self.table.name_at(address, now)
    }

    /// Returns the name of the subscriber with this number; `None` for a host without a name.
    pub fn name_of(&self, node: NodeId) -> Option<&str> {
        self.table.name_of(node)
    }

    /// From now on these are the subscribers with names; their numbers stay.
    pub fn rename(&mut self, names: &[Named]) {
        self.table.rename(names);
    }

    /// Returns whether these are the subscribers with names.
    pub fn has_subscribers(&self, names: &[Named]) -> bool {
        self.table.has_subscribers(names)
    }

    /// Returns the number of the subscriber with this name; `None` if there never was one.
    pub fn number_of(&self, name: &str) -> Option<NodeId> {
        self.table.number_of(name)
    }

    /// Returns how many names of subscribers there were since the start.
    pub fn names(&self) -> usize {
        self.table.names()
    }

    /// Tells the owner and the class of each flow again with its next packet, because a discipline is new.
    pub fn tell_again(&mut self) {
        self.nodes.forget_all();
        self.numbered.forget_all();
    }

    /// Returns how many numbers of nodes there are: all but [`NodeId::NOBODY`] are below.
    pub fn nodes(&self) -> usize {
        self.table.subscribers()
    }

    /// Returns the numbers of packets that were not shown to elements on the ACK path.
    pub fn unclassified(&self) -> Unclassified {
        self.unclassified
    }

    /// Returns the counters of the table of connections.
    pub fn gauges(&self) -> Gauges {
        self.table.gauges()
    }

    /// Returns a warning the first time that the table of connections is nearly full.
    pub fn warning(&mut self) -> Option<String> {
        if self.warned || !self.table.is_nearly_full() {
            return None;
        }
        self.warned = true;
        let Gauges { entries, capacity, .. } = self.gauges();
        Some(format!(
            "warning: {entries} of {capacity} connections are tracked; when all are, the one that was silent for longest \
             goes, of the host with most"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::packet::Packet;

    fn classifier() -> Classifier {
        Classifier::new(Config::default(), Keys::from_seed(1), Side::Left)
    }

    /// A TCP segment of 41 bytes from 10.0.0.1:1 to 10.0.0.2:2, with one byte of data and without checksums.
    fn segment(flags: u8) -> [u8; 41] {
        let mut bytes = [0; 41];
        (bytes[0], bytes[3], bytes[9]) = (0x45, 41, 6);
        bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        (bytes[21], bytes[23], bytes[32], bytes[33]) = (1, 2, 0x50, flags);
        bytes
    }

    fn classify(classifier: &mut Classifier, pool: &mut Pool, content: &[u8]) -> RealPacket {
        let mut buffer = pool.take();
        buffer[..content.len()].copy_from_slice(content);
        classifier.packet(Direction::Forward, buffer, content.len(), Instant::ZERO, pool).0
    }

    #[test]
    fn a_packet_ends_where_its_header_says_and_not_with_its_buffer() {
        let (mut classifier, mut pool) = (classifier(), Pool::new(1500));
        let mut packet = classify(&mut classifier, &mut pool, &segment(0x02));
        assert_eq!(packet.size().get(), 41);
        assert!(packet.tcp().is_some(), "the SYN of a connection is shown");
        assert_eq!(packet.into_bytes().len(), 1500, "the buffer itself was used");
    }

    #[test]
    fn a_connection_met_in_the_middle_is_forwarded_but_not_shown() {
        let (mut classifier, mut pool) = (classifier(), Pool::new(1500));
        let mut packet = classify(&mut classifier, &mut pool, &segment(0x10));
        assert!(packet.tcp().is_none());
        assert_eq!(classifier.unclassified(), Unclassified { not_from_syn: 1, ..Unclassified::default() });
    }

    /// A signed SYN, and signed segments on the ends of a connection without signatures.
    #[test]
    fn signed_segments_are_forwarded_but_not_shown() {
        let (mut classifier, mut pool) = (classifier(), Pool::new(1500));
        let signed = |flags: u8| {
            let mut bytes = segment(flags).to_vec();
            (bytes[3], bytes[32]) = (61, 0xa0);
            bytes.splice(40..40, [1, 1, 19, 18].into_iter().chain([7; 16]));
            bytes
        };
        assert!(classify(&mut classifier, &mut pool, &signed(0x02)).tcp().is_none());
        assert_eq!(classifier.gauges().half_open, 0, "no connection of the table");
        assert!(classify(&mut classifier, &mut pool, &segment(0x02)).tcp().is_some());
        assert!(classify(&mut classifier, &mut pool, &signed(0x10)).tcp().is_none());
        assert_eq!(classifier.unclassified(), Unclassified { signed: 2, ..Unclassified::default() });
    }

    #[test]
    fn stale_bytes_of_a_buffer_never_leave_with_a_broken_packet() {
        let (mut classifier, mut pool) = (classifier(), Pool::new(1500));
        pool.give(vec![0xaa; 1500].into_boxed_slice());
        // The header claims 41 bytes, but only 30 arrived.
        let packet = classify(&mut classifier, &mut pool, &segment(0x02)[..30]);
        assert_eq!(packet.bytes(), &segment(0x02)[..30]);
        assert_eq!(classifier.unclassified().malformed, 1);
        assert_eq!(pool.allocated(), 0, "the pooled buffer was reused");
    }

    /// SYNs of 200,000 forged addresses: none has an entry, as many as may are shown, and each has a node of its own.
    #[test]
    fn forged_addresses_are_nodes_and_no_connections() {
        let (mut classifier, mut pool) = (classifier(), Pool::new(1500));
        let mut hidden = 0;
        for forged in 0..200_000u32 {
            let mut buffer = pool.take();
            buffer[..41].copy_from_slice(&segment(0x02));
            buffer[12..16].copy_from_slice(&(0x0b00_0000 + forged).to_be_bytes());
            let (mut packet, facts) = classifier.packet(Direction::Forward, buffer, 41, Instant::ZERO, &mut pool);
            hidden += u64::from(packet.tcp().is_none());
            assert!(packet.is_syn(), "QRM limits SYNs that are hidden as well");
            let owner = facts.owner().unwrap();
            assert!(owner.node != STRANGERS && owner.fresh && owner.flow == packet.flow());
            pool.give(packet.into_bytes());
        }
        let Gauges { entries, half_open_most, overwritten, refused, .. } = classifier.gauges();
        assert_eq!((entries, refused), (0, 0));
        assert_eq!(u64::from(half_open_most) + overwritten, 200_000, "no SYN was refused");
        // The ring has 131,072 places; few sets are full before most others.
        assert!((120_000..=131_072).contains(&half_open_most), "{half_open_most}");
        let shown = 200_000 - hidden;
        assert!((1024..10_000).contains(&shown) && classifier.unclassified().untracked == hidden, "{shown}");
    }

    /// 65,536 ports in one direction and the answers: no connection, a range of indices of their own, one node.
    #[test]
    fn a_sweep_of_datagrams_makes_no_state() {
        let (mut classifier, mut pool) = (classifier(), Pool::new(1500));
        let mut flows = std::collections::BTreeSet::new();
        let mut told = 0;
        for port in 0..=u16::MAX {
            let mut bytes = [0; 28];
            (bytes[0], bytes[3], bytes[9], bytes[25]) = (0x45, 28, 17, 8);
            bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            bytes[22..24].copy_from_slice(&port.to_be_bytes());
            let mut buffer = pool.take();
            buffer[..28].copy_from_slice(&bytes);
            let (packet, facts) = classifier.packet(Direction::Forward, buffer, 28, Instant::ZERO, &mut pool);
            told += usize::from(facts.owner().is_some());
            assert!(facts.owner().is_none_or(|owner| owner.node.0 == facts.owner().unwrap().node.0));
            flows.insert(packet.flow().0);
            pool.give(packet.into_bytes());
        }
        let gauges = classifier.gauges();
        assert_eq!((gauges.entries, gauges.half_open), (0, 0));
        // 65,536 throws into as many boxes hit 1 - 1/e of them: 41,427, with a standard deviation of 76.
        assert!((41_047..41_807).contains(&flows.len()) && told == flows.len(), "{} {told}", flows.len());
        assert!(flows.first().is_some_and(|first| *first >= gauges.capacity), "apart from connections");
    }
}
