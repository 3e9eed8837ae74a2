//! The IP packet inside a captured frame: its length, its ECN field and the five values that identify its flow.

use crate::arrival::MAX_SIZE;
pub use crate::encapsulation::{LinkType, Unread, UnsupportedLinkType};
use penstock_core::packet::{Ecn, Ern};
use penstock_core::units::Bytes;
use penstock_core::wire::TcpOptions;
use std::net::{IpAddr, Ipv6Addr};

/// Whether the capturing machine received or sent a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// The capture does not say.
    #[default]
    Unknown,
    /// Received.
    In,
    /// Sent.
    Out,
}

/// An Ethernet address.
pub type Mac = [u8; 6];

/// What the link header says of the sender of a frame: its Ethernet address, and whether it is the capturing machine.
pub fn sender(link: LinkType, frame: &[u8]) -> (Option<Mac>, Way) {
    let way = |kind| if kind == 4 { Way::Out } else { Way::In };
    match link {
        LinkType::Ethernet => (frame.get(6..12).and_then(|mac| mac.try_into().ok()), Way::Unknown),
        LinkType::Cooked => (None, be16(frame, 0).map_or(Way::Unknown, way)),
        LinkType::Cooked2 => (None, frame.get(10).map_or(Way::Unknown, |kind| way((*kind).into()))),
        LinkType::PppWithDirection => {
            (None, frame.first().map_or(Way::Unknown, |first| if *first == 0 { Way::In } else { Way::Out }))
        }
        _ => (None, Way::Unknown),
    }
}

/// The number of the interface in the header of a cooked capture, version 2.
pub fn interface(link: LinkType, frame: &[u8]) -> Option<u32> {
    let at = frame.get(4..8).filter(|_| link == LinkType::Cooked2)?;
    Some(u32::from_be_bytes(at.try_into().ok()?))
}

/// The five values that identify a flow, with the smaller end first, so that both directions have the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey {
    ends: [(IpAddr, u16); 2],
    protocol: u8,
}

/// What a trace must know of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpPacket {
    /// Key of the flow. Fragments have no ports: all fragments between two hosts share one key per protocol.
    pub key: FlowKey,
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Protocol after the IP header and its extensions.
    pub protocol: u8,
    /// Ports of sender and receiver; zeros without ports.
    pub ports: (u16, u16),
    /// Where the captured frame has the transport header; `None` for a fragment.
    pub transport: Option<usize>,
    /// Where the captured frame has what follows the IP header and its extensions.
    pub inside: usize,
    /// Identification of IPv4, which tells packets of a sender apart; 0 for IPv6.
    pub id: u16,
    /// Length of the IP header and its extensions in bytes.
    pub header: usize,
    /// Length of the packet according to its own header.
    pub size: Bytes,
    /// False if the frame on the wire was shorter than that.
    pub fits: bool,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Diffserv codepoint of the IP header.
    pub dscp: u8,
    /// Explicit rate notification in the TCP header, as far as it was captured.
    pub ern: Ern,
}

/// Finds the IP packet in a captured frame of `original_len` bytes on the wire.
///
/// # Errors
/// Returns why there is none, or why too little of it was captured to identify its flow.
pub fn ip_packet(link: LinkType, frame: &[u8], original_len: u32) -> Result<IpPacket, Unread> {
    let at = link.ip_offset(frame)?;
    let ip = frame.get(at..).ok_or(Unread::Cut)?;
    let on_wire = u64::from(original_len).saturating_sub(at as u64);
    let found = match ip.first().ok_or(Unread::Cut)? >> 4 {
        4 if ip[0] & 0x0f >= 5 => ipv4(ip, on_wire),
        6 => ipv6(ip, on_wire),
        _ => return Err(Unread::Malformed),
    };
    let mut packet = found.ok_or(Unread::Cut)?;
    packet.inside += at;
    packet.fits = packet.size.get() <= on_wire;
    packet.transport = packet.transport.map(|inside| at + inside);
    let fits = (packet.header as u64).max(1) <= packet.size.get() && packet.size <= MAX_SIZE;
    if fits { Ok(packet) } else { Err(Unread::Malformed) }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn key(src: IpAddr, dst: IpAddr, protocol: u8, ports: (u16, u16)) -> FlowKey {
    let mut ends = [(src, ports.0), (dst, ports.1)];
    ends.sort_unstable();
    FlowKey { ends, protocol }
}

/// Returns the ports of TCP, UDP, DCCP, SCTP and UDP-Lite, whose headers begin with them; zeros for other protocols.
fn ports(protocol: u8, transport: &[u8]) -> Option<(u16, u16)> {
    match protocol {
        6 | 17 | 33 | 132 | 136 => Some((be16(transport, 0)?, be16(transport, 2)?)),
        _ => Some((0, 0)),
    }
}

/// Reads the explicit rate notification of a TCP header; empty for other protocols, or if less than the fixed part was
/// captured.
fn explicit_rate(protocol: u8, transport: &[u8]) -> Ern {
    match transport.get(12) {
        Some(byte_12) if protocol == 6 && transport.len() >= 20 => {
            let end = (usize::from(byte_12 >> 4) * 4).clamp(20, transport.len());
            Ern::new(*byte_12, TcpOptions::parse(&transport[20..end]).rate)
        }
        _ => Ern::default(),
    }
}

/// Returns the size of a packet. If its header says zero, as in captures of packets that the network card was to split,
/// it is the length on the wire.
fn size(header_says: u64, on_wire: u64) -> Bytes {
    Bytes::new(if header_says == 0 { on_wire } else { header_says })
}

fn ipv4(ip: &[u8], on_wire: u64) -> Option<IpPacket> {
    let header_len = usize::from(ip[0] & 0x0f) * 4;
    let header = ip.get(..header_len).filter(|h| h.len() >= 20)?;
    let protocol = header[9];
    let is_fragment = be16(header, 6)? & 0x3fff != 0;
    let rest = &ip[header_len..];
    let (ports, ern) =
        if is_fragment { Default::default() } else { (ports(protocol, rest)?, explicit_rate(protocol, rest)) };
    let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(header.get(at..at + 4)?).ok()?));
    let (source, destination) = (address(12)?, address(16)?);
    Some(IpPacket {
        key: key(source, destination, protocol, ports),
        source,
        destination,
        protocol,
        ports,
        transport: (!is_fragment).then_some(header_len),
        inside: header_len,
        id: be16(header, 4)?,
        header: header_len,
        size: size(u64::from(be16(header, 2)?), on_wire),
        fits: true,
        ecn: Ecn::from_bits(header[1]),
        dscp: header[1] >> 2,
        ern,
    })
}

fn ipv6(ip: &[u8], on_wire: u64) -> Option<IpPacket> {
    let header = ip.get(..40)?;
    let Found { protocol, ports, ern, rest, is_fragment } = ipv6_transport(header[6], &ip[40..])?;
    let header_len = ip.len() - rest;
    let address = |at: usize| Some(IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(header.get(at..at + 16)?).ok()?)));
    let payload = u64::from(be16(header, 4)?);
    let (source, destination) = (address(8)?, address(24)?);
    Some(IpPacket {
        key: key(source, destination, protocol, ports),
        source,
        destination,
        protocol,
        ports,
        transport: (!is_fragment).then_some(header_len),
        inside: header_len,
        id: 0,
        header: header_len,
        size: size(if payload == 0 && on_wire > 40 { 0 } else { payload + 40 }, on_wire),
        fits: true,
        ecn: Ecn::from_bits(header[1] >> 4),
        dscp: (be16(header, 0)? >> 6) as u8 & 0x3f,
        ern,
    })
}

/// What follows the extension headers of IPv6.
struct Found {
    protocol: u8,
    ports: (u16, u16),
    ern: Ern,
    /// Number of captured bytes from the transport header on.
    rest: usize,
    is_fragment: bool,
}

/// Skips the extension headers (at most eight).
fn ipv6_transport(mut next: u8, mut rest: &[u8]) -> Option<Found> {
    for _ in 0..8 {
        let (left, ern) = (rest.len(), Ern::default());
        match next {
            0 | 43 | 60 => {
                next = *rest.first()?;
                rest = rest.get((usize::from(*rest.get(1)?) + 1) * 8..)?;
            }
            44 => return Some(Found { protocol: *rest.first()?, ports: (0, 0), ern, rest: left, is_fragment: true }),
            _ => {
                let (ports, ern) = (ports(next, rest)?, explicit_rate(next, rest));
                return Some(Found { protocol: next, ports, ern, rest: left, is_fragment: false });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::{Ip, Tcp, tcp};
    use penstock_core::packet::Timestamps;
    use penstock_core::packet::{RateNotice, TcpFlags};
    use penstock_core::units::Span;
    use proptest::prelude::*;

    /// An IPv4 UDP packet of 1000 bytes from 192.0.2.1:1000 to 192.0.2.2:53, ECT(0), of which 28 were captured.
    pub(crate) fn udp4(src: u8, dst: u8, sport: u16, dport: u16) -> Vec<u8> {
        let mut ip = vec![0x45, 0x02, 0x03, 0xe8, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, src, 192, 0, 2, dst];
        ip.extend_from_slice(&sport.to_be_bytes());
        ip.extend_from_slice(&dport.to_be_bytes());
        ip.extend_from_slice(&[0x03, 0xd4, 0, 0]);
        ip
    }

    fn framed(header: &[u8]) -> Vec<u8> {
        [header, &udp4(1, 2, 1000, 53)].concat()
    }

    #[test]
    fn every_link_type_finds_the_same_packet() {
        let mac = [0u8; 12];
        let frames = [
            (101, framed(&[])),
            (12, framed(&[])),
            (14, framed(&[])),
            (0, framed(&[2, 0, 0, 0])),
            (108, framed(&[0, 0, 0, 2])),
            (1, framed(&[&mac[..], &[8, 0]].concat())),
            (1, framed(&[&mac[..], &[0x81, 0, 0, 7, 8, 0]].concat())),
            (1, framed(&[&mac[..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0]].concat())),
            (113, framed(&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0])),
            (276, framed(&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0])),
            // Cooked captures of an interface with VLANs have the tag behind their header.
            (113, framed(&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 7, 8, 0])),
            (276, framed(&[0x81, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 8, 0])),
            // PPPoE (RFC 2516 §4), alone, in a tag, and in two.
            (1, framed(&[&mac[..], &[0x88, 0x64, 0x11, 0, 0, 7, 3, 0xea, 0, 0x21]].concat())),
            (1, framed(&[&mac[..], &[0x81, 0, 0, 7, 0x88, 0x64, 0x11, 0, 0, 7, 3, 0xea, 0, 0x21]].concat())),
            (
                1,
                framed(
                    &[&mac[..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 0x88, 0x64, 0x11, 0, 0, 7, 3, 0xea, 0, 0x21]]
                        .concat(),
                ),
            ),
            (113, framed(&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x64, 0x11, 0, 0, 7, 3, 0xea, 0, 0x21])),
            (51, framed(&[0x11, 0, 0, 7, 3, 0xea, 0, 0x21])),
            // PPP (RFC 1661 §2, RFC 1662 §3.1): whole, without address and control, with a short protocol; Cisco's HDLC.
            (9, framed(&[0xff, 3, 0, 0x21])),
            (9, framed(&[0, 0x21])),
            (50, framed(&[0x21])),
            (104, framed(&[0x0f, 0, 8, 0])),
            (204, framed(&[1, 0xff, 3, 0, 0x21])),
            // One label of MPLS, two of them, below PPP, and Ethernet below a label (RFC 4385 §3).
            (1, framed(&[&mac[..], &[0x88, 0x47, 0, 1, 1, 64]].concat())),
            (1, framed(&[&mac[..], &[0x81, 0, 0, 7, 0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]].concat())),
            (9, framed(&[0xff, 3, 2, 0x81, 0, 1, 1, 64])),
            (219, framed(&[0, 1, 1, 64])),
            (1, framed(&[&mac[..], &[0x88, 0x47, 0, 1, 1, 64, 0, 0, 0, 0], &mac, &[8, 0]].concat())),
            // IEEE 802.3 with SNAP (RFC 1042).
            (1, framed(&[&mac[..], &[3, 0xf0, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat())),
        ];
        for (number, frame) in frames {
            let link = LinkType::from_number(number).unwrap();
            let packet = ip_packet(link, &frame, 2000).unwrap_or_else(|why| panic!("link type {number}: {why}"));
            assert_eq!((packet.size, packet.ecn), (Bytes::new(1000), Ecn::Ect0), "link type {number}");
        }
    }

    #[test]
    fn the_codepoint_is_that_of_the_header_in_both_versions() {
        let dscp = |frame: &[u8]| ip_packet(LinkType::RawIp, frame, 2000).unwrap().dscp;
        let mut four = udp4(1, 2, 1000, 53);
        four[1] = 46 << 2 | 2;
        // In IPv6 the traffic class begins in the middle of the first byte.
        let mut six = vec![0; 48];
        (six[0], six[1], six[5], six[6], six[7]) = (0x6b, 0x90, 8, 17, 64);
        assert_eq!((dscp(&four), dscp(&six)), (46, 0b10_1110));
    }

    #[test]
    fn both_directions_share_a_key_and_other_ports_do_not() {
        let key = |frame: Vec<u8>| ip_packet(LinkType::RawIp, &frame, 1000).unwrap().key;
        assert_eq!(key(udp4(1, 2, 1000, 53)), key(udp4(2, 1, 53, 1000)));
        assert_ne!(key(udp4(1, 2, 1000, 53)), key(udp4(1, 2, 1001, 53)));
        assert_ne!(key(udp4(1, 2, 1000, 53)), key(udp4(2, 1, 1000, 53)));
    }

    #[test]
    fn fragments_have_no_ports() {
        let mut first = udp4(1, 2, 1000, 53);
        first[6] = 0x20;
        let mut later = udp4(1, 2, 7, 7);
        later[7] = 0xb9;
        let key = |frame: Vec<u8>| ip_packet(LinkType::RawIp, &frame, 1000).unwrap().key;
        assert_eq!(key(first), key(later));
    }

    #[test]
    fn a_length_of_zero_is_taken_from_the_wire() {
        let mut offloaded = framed(&[&[0u8; 12][..], &[8, 0]].concat());
        offloaded[16] = 0;
        offloaded[17] = 0;
        assert_eq!(ip_packet(LinkType::Ethernet, &offloaded, 9014).unwrap().size, Bytes::new(9000));
    }

    #[test]
    fn ipv6_is_read_through_extension_headers() {
        let mut ip = vec![0x60, 0x30, 0, 0, 0, 28, 0, 64];
        ip.extend_from_slice(&[0x20; 32]);
        ip.extend_from_slice(&[6, 0, 0, 0, 0, 0, 0, 0]);
        ip.extend_from_slice(&[0x13, 0x88, 0, 80]);
        let packet = ip_packet(LinkType::RawIp, &ip, 68).unwrap();
        assert_eq!((packet.size, packet.ecn), (Bytes::new(68), Ecn::Ce));
        assert_eq!(packet.key.protocol, 6);
        assert_eq!(packet.key.ends.map(|(_, port)| port), [80, 5000]);
    }

    #[test]
    fn rates_are_read_from_tcp_headers_as_far_as_they_were_captured() {
        let rate = RateNotice::new(Bytes::new(10_720), Span::from_millis(100));
        let told = Ern { capable: true, tells_rate: true, rate: Some(rate) };
        let ip = Ip { src: 1, dst: 2, ecn: Ecn::Ect0 };
        let telling = |payload| Tcp {
            ip,
            src_port: 1,
            dst_port: 2,
            seq: 0,
            ack: 0,
            flags: TcpFlags::ACK,
            window: 0,
            payload: Bytes::new(payload),
            mss: None,
            window_scale: None,
            sack_permitted: false,
            timestamps: Some(Timestamps { val: 1, ecr: 2 }),
            ern: told,
            ae: false,
            accecn: None,
            sack: &[],
        };
        // 20 bytes of IP, 20 of TCP, 12 of timestamps, 8 of the rate.
        let v4 = tcp(&telling(1000)).bytes;
        let ern = |frame: &[u8]| ip_packet(LinkType::RawIp, frame, 1060).unwrap().ern;
        assert_eq!(ern(&v4), told);
        assert_eq!(ern(&v4[..59]), Ern { rate: None, ..told }, "the option was cut");
        assert_eq!(ern(&v4[..39]), Ern::default(), "the header was cut");
        let mut v6 = vec![0x60, 0x20, 0, 0, 0x04, 0x10, 6, 64];
        v6.extend_from_slice(&[0x20; 32]);
        v6.extend_from_slice(&v4[20..]);
        assert_eq!(ern(&v6), told);
        let mut fragment = v4.clone();
        fragment[6] |= 0x20;
        assert_eq!(ern(&fragment), Ern::default());
        let mut sctp = v4;
        sctp[9] = 132;
        assert_eq!(ern(&sctp), Ern::default());
    }

    #[test]
    fn what_is_not_ip_says_what_it_is() {
        let ethernet = |rest: &[u8]| [&[0u8; 12][..], rest].concat();
        let cooked = |protocol: u16| [&[0u8; 14][..], &protocol.to_be_bytes(), &[0; 30]].concat();
        let long = [0; 30];
        for (link, frame, why) in [
            (1, ethernet(&[&[8, 6][..], &long].concat()), "ARP"),
            (1, ethernet(&[&[0x81, 0, 0, 7, 0x88, 0x63][..], &long].concat()), "PPPoE discovery"),
            (
                1,
                ethernet(&[&[0x88, 0x64, 0x11, 0, 0, 7, 0, 40, 0xc0, 0x21][..], &long].concat()),
                "PPP protocol 0xc021",
            ),
            (1, ethernet(&[&[0x12, 0x34][..], &long].concat()), "EtherType 0x1234"),
            (1, ethernet(&[&[0, 38, 0x42, 0x42, 3][..], &long].concat()), "LLC"),
            (1, ethernet(&[0x81, 0, 0]), "cut before the end of the headers"),
            (1, ethernet(&[0x88, 0x47, 0, 0, 0x10, 64]), "cut before the end of the headers"),
            (1, ethernet(&[&[0x88, 0x47, 0, 0, 1, 64, 0x90][..], &long].concat()), "malformed"),
            (1, ethernet(&[&[8, 0, 0x41][..], &long].concat()), "malformed"),
            (1, ethernet(&[8, 0, 0x45, 0, 0]), "cut before the end of the headers"),
            (9, [&[0xff, 3, 0x80, 0x21][..], &long].concat(), "PPP protocol 0x8021"),
            (113, cooked(0x0806), "ARP"),
            (113, cooked(4), "LLC"),
            (101, vec![], "cut before the end of the headers"),
        ] {
            let found = ip_packet(LinkType::from_number(link).unwrap(), &frame, 60).unwrap_err();
            assert_eq!(found.to_string(), why, "{frame:02x?}");
        }
        let told = |number| LinkType::from_number(number).unwrap_err().to_string();
        assert_eq!((told(105), told(4711)), ("link type 105 (IEEE 802.11)".into(), "link type 4711".into()));
        assert_eq!(Unread::LinkType(105).to_string(), told(105));
    }

    proptest! {
        #[test]
        fn no_frame_makes_it_panic(link in 0u32..300, frame in proptest::collection::vec(any::<u8>(), 0..120), wire: u32) {
            if let Ok(link) = LinkType::from_number(link) {
                let _ = ip_packet(link, &frame, wire);
            }
        }
    }
}
