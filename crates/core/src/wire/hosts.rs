//! Hosts of real packets as dense indices: a table from address to [`NodeId`] in bounded memory.
//!
//! A node is a host, identified by its address. In IPv6 only the first half of the address counts, a /64: the smallest
//! network that a subscriber gets (RFC 6177), in which a host may and should use many addresses (RFC 7934, RFC 8981).
//! If whole addresses counted, one host could be 2^64 nodes. The price is that all hosts of one /64 are one node, as
//! are all hosts behind one IPv4 address, and that a host with both versions is two nodes.
//!
//! Addresses which are valid on one link only are no hosts: no router forwards their packets (RFC 4291 §2.5.6 and §2.7,
//! RFC 3927 §2.7, RFC 5771 §4). Kernels send such packets by themselves on each interface; as nodes these addresses
//! would get shares that nobody uses.
//!
//! A source address that no router verifies can be forged. Therefore the table is bounded, as the table of connections
//! is, and its hash is keyed. Verifying source addresses is the task of the network before the gateway (RFC 2827).

use super::flows::SipHash;
use super::headers::{Headers, IpVersion};
use super::numbers::Numbers;
use crate::packet::NodeId;
use crate::units::{Instant, Span};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One of the two ends of a packet's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The sender of the packet.
    Source,
    /// The receiver of the packet.
    Destination,
}

/// The part of an address that identifies a host: all of IPv4, the first 64 bits of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostKey {
    version: u8,
    prefix: u64,
}

impl HostKey {
    /// The host with this address; `None` for an address which is valid on its own link only.
    pub fn at(address: IpAddr) -> Option<Self> {
        let (version, prefix, on_link) = match address {
            IpAddr::V4(v4) => (4, v4.to_bits().into(), v4.is_link_local() || v4.is_broadcast() || is_link_group(v4)),
            IpAddr::V6(v6) => (6, (v6.to_bits() >> 64) as u64, v6.is_unicast_link_local() || has_link_scope(v6)),
        };
        (!on_link && !address.is_unspecified()).then_some(Self { version, prefix })
    }

    /// The host at one end of a packet; `None` if it is no IP packet or [`HostKey::at`] returns `None` for its address.
    pub fn of(bytes: &[u8], headers: &Headers, end: End) -> Option<Self> {
        let second = usize::from(end == End::Destination);
        let address: IpAddr = match headers.version {
            IpVersion::V4 => <[u8; 4]>::try_from(bytes.get(12 + 4 * second..)?.get(..4)?).ok()?.into(),
            IpVersion::V6 => <[u8; 16]>::try_from(bytes.get(8 + 16 * second..)?.get(..16)?).ok()?.into(),
            IpVersion::Unknown => return None,
        };
        Self::at(address)
    }

    fn bytes(self) -> [u8; 9] {
        let mut bytes = [self.version; 9];
        bytes[1..].copy_from_slice(&self.prefix.to_be_bytes());
        bytes
    }
}

/// True for 224.0.0.0/24, the multicast groups of the local link.
fn is_link_group(v4: Ipv4Addr) -> bool {
    v4.octets()[..3] == [224, 0, 0]
}

/// True for multicast addresses with the scope of the interface or the link: ff01 and ff02, with any flags.
fn has_link_scope(v6: Ipv6Addr) -> bool {
    v6.is_multicast() && v6.octets()[1] & 0xf <= 2
}

/// Hosts with their indices.
#[derive(Debug, Clone)]
pub struct NodeTable {
    hash: SipHash,
    nodes: Numbers<HostKey>,
}

impl NodeTable {
    /// Creates an empty table of at most `capacity` hosts. The index of a host is reassigned after `idle` without a
    /// packet.
    ///
    /// Call [`NodeTable::touch`] for each packet of a node's flows, and choose `idle` at least as long as that of the
    /// table of flows. Then the node of a live flow is never reassigned, and there are never more nodes than flows.
    pub fn new(capacity: u32, idle: Span, hash: SipHash) -> Self {
        Self { hash, nodes: Numbers::new(capacity, idle) }
    }

    /// Number of hosts which have an index now.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if no host has an index.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index of `host`, and whether it was assigned just now, in which case any state stored under it belongs to
    /// another host. `None` if there is no room.
    pub fn number(&mut self, host: HostKey, now: Instant) -> Option<(NodeId, bool)> {
        let (number, fresh) = self.nodes.number(self.hash.of(&host.bytes()), host, now)?;
        Some((NodeId(number), fresh))
    }

    /// Marks a node as used by a packet of one of its flows. The index must be assigned.
    pub fn touch(&mut self, node: NodeId, now: Instant) {
        self.nodes.touch(node.0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &str) -> HostKey {
        HostKey::at(address.parse().unwrap()).unwrap()
    }

    fn at(s: u64) -> Instant {
        Instant::ZERO + Span::from_secs(s)
    }

    fn table(capacity: u32) -> NodeTable {
        NodeTable::new(capacity, Span::from_secs(10), SipHash(1, 2))
    }

    #[test]
    fn a_node_is_an_address_of_ipv4_and_half_of_one_of_ipv6() {
        let mut table = table(8);
        let mut number = |address| table.number(key(address), at(0)).unwrap();
        assert_eq!(number("10.0.0.1"), (NodeId(0), true));
        assert_eq!(number("10.0.0.2"), (NodeId(1), true));
        assert_eq!(number("10.0.0.1"), (NodeId(0), false));
        assert_eq!(number("2001:db8:0:1::1"), (NodeId(2), true));
        assert_eq!(number("2001:db8:0:1:ffff::9"), (NodeId(2), false), "another address of its /64");
        assert_eq!(number("2001:db8:0:2::1"), (NodeId(3), true), "the next /64");
        // 0:0:a00:1:: has the bits of 10.0.0.1 in its first half.
        assert_eq!(number("0:0:a00:1::"), (NodeId(4), true), "the same 64 bits in the other version");
        assert_eq!(table.len(), 5);
    }

    #[test]
    fn what_is_known_on_its_link_only_is_no_host() {
        let is_host = |address: &str| HostKey::at(address.parse().unwrap()).is_some();
        for address in ["fe80::1", "febf::1", "::", "ff02::16", "ff12::1", "0.0.0.0", "169.254.9.9", "224.0.0.251"] {
            assert!(!is_host(address), "{address}");
        }
        assert!(!is_host("255.255.255.255"));
        for address in ["fd00::1", "fec0::1", "::1:0:0:1", "ff05::2", "10.255.255.255", "224.0.1.1", "239.1.2.3"] {
            assert!(is_host(address), "{address}");
        }
    }

    #[test]
    fn both_ends_of_a_packet_are_found_and_none_of_what_is_no_packet() {
        let mut v4 = [0; 20];
        (v4[0], v4[3]) = (0x45, 20);
        v4[12..].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let mut v6 = [0; 40];
        (v6[0], v6[6]) = (0x60, 59);
        v6[8..16].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 1]);
        v6[24..32].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 2]);
        let of = |bytes: &[u8], end| HostKey::of(bytes, &Headers::parse(bytes), end);
        assert_eq!(of(&v4, End::Source), Some(key("10.0.0.1")));
        assert_eq!(of(&v4, End::Destination), Some(key("10.0.0.2")));
        assert_eq!(of(&v6, End::Source), Some(key("2001:db8:0:1::")));
        assert_eq!(of(&v6, End::Destination), Some(key("2001:db8:0:2::")));
        for cut in 0..20 {
            assert_eq!(of(&v4[..cut], End::Source), None);
            assert_eq!(of(&v6[..2 * cut], End::Destination), None);
        }
    }

    #[test]
    fn forged_addresses_fill_the_table_and_no_more() {
        let mut table = table(2);
        assert_eq!(table.number(key("10.0.0.1"), at(0)), Some((NodeId(0), true)));
        assert_eq!(table.number(key("10.0.0.2"), at(0)), Some((NodeId(1), true)));
        for forged in 0..1000u32 {
            let address = IpAddr::from((0x0b00_0000 + forged).to_be_bytes());
            assert_eq!(table.number(HostKey::at(address).unwrap(), at(5)), None);
        }
        table.touch(NodeId(0), at(9));
        assert_eq!(table.number(key("10.0.0.3"), at(11)), Some((NodeId(1), true)), "the second was idle for 11 s");
        assert_eq!(table.number(key("10.0.0.1"), at(11)), Some((NodeId(0), false)), "the first was touched");
        assert_eq!(table.number(key("10.0.0.2"), at(12)), None);
        assert_eq!(table.len(), 2);
    }
}
