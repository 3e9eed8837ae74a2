//! Hosts of real packets, by their addresses.
//!
//! In IPv6 only the first half of the address counts, a /64: the smallest network that a subscriber gets (RFC 6177), in
//! which a host may and should use many addresses (RFC 7934, RFC 8981). If whole addresses counted, one host could be 2^64
//! hosts. The price is that all hosts of one /64 are one, as are all hosts behind one IPv4 address, and that a host with
//! both versions is two.
//!
//! Addresses which are valid on one link only are no hosts: no router forwards their packets (RFC 4291 §2.5.6 and §2.7,
//! RFC 3927 §2.7, RFC 5771 §4). Kernels send such packets by themselves on each interface; as nodes these addresses
//! would get shares that nobody uses.
//!
//! A source address that no router verifies can be forged. Verifying source addresses is the task of the network before
//! the gateway (RFC 2827).

use super::headers::{Headers, IpVersion};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

    /// True for a host of IPv6.
    pub fn is_v6(&self) -> bool {
        self.version == 6
    }

    /// The address of IPv4, or the first 64 bits of that of IPv6.
    pub fn bits(&self) -> u64 {
        self.prefix
    }

    /// The bytes of the key, for hashing.
    pub fn bytes(&self) -> [u8; 9] {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &str) -> HostKey {
        HostKey::at(address.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_host_is_an_address_of_ipv4_and_half_of_one_of_ipv6() {
        assert_eq!(key("2001:db8:0:1::1"), key("2001:db8:0:1:ffff::9"), "another address of its /64");
        assert_ne!(key("2001:db8:0:1::1"), key("2001:db8:0:2::1"), "the next /64");
        assert_ne!(key("10.0.0.1"), key("10.0.0.2"));
        // 0:0:a00:1:: has the bits of 10.0.0.1 in its first half.
        let (v4, v6) = (key("10.0.0.1"), key("0:0:a00:1::"));
        assert_eq!((v4.is_v6(), v6.is_v6(), v4.bits(), v6.bits()), (false, true, 0x0a00_0001, 0x0a00_0001));
        assert!(v4 != v6 && v4.bytes() != v6.bytes(), "the same 64 bits in the other version");
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
}
