//! The classifier: makes a packet with a flow from bytes.

use crate::direction::Direction;
use crate::nodes::{FlowOwner, Nodes, ParsedPacket, Side};
use crate::pool::Pool;
use penstock_core::packet::FlowId;
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::flows::SipHash;
use penstock_core::wire::{FlowTable, Headers, IpVersion, RealPacket, Tracking};
use serde::Serialize;

/// Number of connections that can be tracked at a time.
const CAPACITY: u32 = 65_536;
/// The flow of all packets without a tracked connection: one past the last index.
const UNTRACKED: FlowId = FlowId(CAPACITY);
/// Idle time after which a connection is forgotten: longer than any element of the registry remembers one by default.
const IDLE: Span = Span::from_secs(3600);

/// Numbers of packets that are not shown to elements on the ACK path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Unclassified {
    /// Number of packets that are not complete IP packets.
    pub malformed: u64,
    /// Number of packets of connections for which the table had no room.
    pub untracked: u64,
    /// Number of packets that are not TCP, or whose connection's SYN was not seen. They are forwarded and queued like
    /// any other.
    pub not_from_syn: u64,
}

/// Assigns a flow to each packet.
#[derive(Debug)]
pub struct Classifier {
    flows: FlowTable<SipHash>,
    nodes: Nodes,
    unclassified: Unclassified,
}

impl Classifier {
    /// Creates a classifier that has seen no packet. The hosts on `side` are the nodes.
    pub fn new(streams: Streams, side: Side) -> Self {
        let secret = |name| {
            let mut secret = streams.get(name);
            SipHash(secret.bits(), secret.bits())
        };
        Self {
            flows: FlowTable::new(CAPACITY, IDLE, secret("flows/hash")),
            nodes: Nodes::new(side, CAPACITY, IDLE, secret("nodes/hash")),
            unclassified: Unclassified::default(),
        }
    }

    /// Makes a packet of the first `len` bytes of `buffer`, which travels in `direction`. Returns the owner of its flow
    /// as well, if disciplines must be told of the owner before the packet arrives.
    pub fn packet(
        &mut self,
        direction: Direction,
        buffer: Box<[u8]>,
        len: usize,
        now: Instant,
        pool: &mut Pool,
    ) -> (RealPacket, Option<FlowOwner>) {
        let bytes = &buffer[..len.min(buffer.len())];
        let headers = Headers::parse(bytes);
        let tracking = self.flows.lookup(bytes, &headers, now);
        let (flow, shown) = match tracking {
            Tracking::Tracked { flow, from_syn, .. } => (flow, from_syn),
            Tracking::Untracked => (UNTRACKED, false),
        };
        let owner = self.nodes.note(&ParsedPacket { direction, bytes, headers: &headers }, tracking, UNTRACKED, now);
        let packet = if headers.version == IpVersion::Unknown {
            // A packet has the length of its buffer, so the buffer must fit: these bytes are copied into a new one.
            self.unclassified.malformed += 1;
            let packet = RealPacket::new(bytes, flow);
            pool.give(buffer);
            packet
        } else {
            self.unclassified.untracked += u64::from(flow == UNTRACKED);
            self.unclassified.not_from_syn += u64::from(flow != UNTRACKED && !shown);
            RealPacket::new(buffer, flow)
        };
        (if shown { packet } else { packet.hide_tcp() }, owner)
    }

    /// Returns the numbers of packets that were not shown to elements on the ACK path.
    pub fn unclassified(&self) -> Unclassified {
        self.unclassified
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::STRANGERS;
    use penstock_core::packet::{NodeId, Packet};

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
        let (mut classifier, mut pool) = (Classifier::new(Streams::new(1), Side::Left), Pool::new(1500));
        let mut packet = classify(&mut classifier, &mut pool, &segment(0x02));
        assert_eq!(packet.size().get(), 41);
        assert!(packet.tcp().is_some(), "the SYN of a connection is shown");
        assert_eq!(packet.into_bytes().len(), 1500, "the buffer itself was used");
    }

    #[test]
    fn a_connection_met_in_the_middle_is_forwarded_but_not_shown() {
        let (mut classifier, mut pool) = (Classifier::new(Streams::new(1), Side::Left), Pool::new(1500));
        let mut packet = classify(&mut classifier, &mut pool, &segment(0x10));
        assert!(packet.tcp().is_none());
        assert_eq!(classifier.unclassified(), Unclassified { not_from_syn: 1, ..Unclassified::default() });
    }

    #[test]
    fn stale_bytes_of_a_buffer_never_leave_with_a_broken_packet() {
        let (mut classifier, mut pool) = (Classifier::new(Streams::new(1), Side::Left), Pool::new(1500));
        pool.give(vec![0xaa; 1500].into_boxed_slice());
        // The header claims 41 bytes, but only 30 arrived.
        let packet = classify(&mut classifier, &mut pool, &segment(0x02)[..30]);
        assert_eq!(packet.bytes(), &segment(0x02)[..30]);
        assert_eq!(classifier.unclassified().malformed, 1);
        assert_eq!(pool.allocated(), 0, "the pooled buffer was reused");
    }

    #[test]
    fn forged_addresses_are_nodes_until_there_are_as_many_as_connections() {
        let (mut classifier, mut pool) = (Classifier::new(Streams::new(1), Side::Left), Pool::new(1500));
        let mut told = |forged: u32| {
            let mut buffer = pool.take();
            buffer[..41].copy_from_slice(&segment(0x02));
            buffer[12..16].copy_from_slice(&(0x0b00_0000 + forged).to_be_bytes());
            classifier.packet(Direction::Forward, buffer, 41, Instant::ZERO, &mut pool).1
        };
        for forged in 0..CAPACITY {
            let node = NodeId(forged + 1);
            assert_eq!(told(forged), Some(FlowOwner { flow: FlowId(forged), node, fresh: true }));
        }
        assert_eq!(told(CAPACITY), Some(FlowOwner { flow: UNTRACKED, node: STRANGERS, fresh: false }));
        assert!((CAPACITY + 1..2 * CAPACITY).all(|forged| told(forged).is_none()), "strangers were told of");
        assert_eq!(told(0), None, "who was there first still is");
        assert_eq!(classifier.unclassified().untracked, u64::from(CAPACITY));
    }
}
