//! The positions of the headers in an IP packet: offsets only, no copies. Parsing never reads beyond the buffer and
//! never panics.

/// The version in the first four bits, if the header that follows is consistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// IPv4 (RFC 791).
    V4,
    /// IPv6 (RFC 8200).
    V6,
    /// Another version, or a header which contradicts itself or the length of the buffer.
    Unknown,
}

/// The header after the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A complete TCP header.
    Tcp {
        /// Offset of the TCP header in bytes.
        offset: usize,
        /// Offset of the data after the TCP header in bytes.
        payload: usize,
    },
    /// A complete UDP header.
    Udp {
        /// Offset of the UDP header in bytes.
        offset: usize,
    },
    /// A fragment, another protocol, or an inconsistent header, with the protocol number.
    Other(u8),
}

/// The positions of the headers of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// The IP version.
    pub version: IpVersion,
    /// The header after the IP header.
    pub transport: Transport,
    /// Offset of the end of the IP packet in bytes; what follows in the buffer is padding.
    pub end: usize,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION_OPTIONS: u8 = 60;
const IPV6_HEADER: usize = 40;
/// The largest number of IPv6 extension headers that are skipped. RFC 8200 §4.1 lists each one once, destination
/// options twice.
const MAX_EXTENSIONS: usize = 6;

impl Headers {
    /// Parses a buffer that begins with an IP header.
    pub fn parse(bytes: &[u8]) -> Self {
        let parsed = match bytes.first().map(|b| b >> 4) {
            Some(4) => ipv4(bytes),
            Some(6) => ipv6(bytes),
            _ => None,
        };
        parsed.unwrap_or(Self { version: IpVersion::Unknown, transport: Transport::Other(0), end: bytes.len() })
    }
}

fn ipv4(bytes: &[u8]) -> Option<Headers> {
    if bytes.len() < 20 {
        return None;
    }
    let header = usize::from(bytes[0] & 0xf) * 4;
    let end = usize::from(be16(bytes, 2));
    if header < 20 || end < header || end > bytes.len() {
        return None;
    }
    let fragment = be16(bytes, 6) & 0x3fff != 0; // more fragments, or an offset
    let protocol = bytes[9];
    let transport = if fragment { Transport::Other(protocol) } else { transport(bytes, protocol, header, end) };
    Some(Headers { version: IpVersion::V4, transport, end })
}

fn ipv6(bytes: &[u8]) -> Option<Headers> {
    let end = IPV6_HEADER + usize::from(be16(bytes, 4));
    // Refuses less than a header as well.
    if end > bytes.len() {
        return None;
    }
    let (protocol, offset) = skip_extensions(&bytes[..end], bytes[6]);
    Some(Headers { version: IpVersion::V6, transport: transport(bytes, protocol, offset, end), end })
}

/// The protocol and the offset of the first header after hop-by-hop, routing and destination options. A fragment header
/// ends the walk, so that fragments count as another protocol.
fn skip_extensions(bytes: &[u8], first: u8) -> (u8, usize) {
    let (mut next, mut at) = (first, IPV6_HEADER);
    for _ in 0..MAX_EXTENSIONS {
        if !matches!(next, HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS) || at + 8 > bytes.len() {
            break;
        }
        next = bytes[at];
        at += (usize::from(bytes[at + 1]) + 1) * 8;
    }
    (next, at)
}

fn transport(bytes: &[u8], protocol: u8, offset: usize, end: usize) -> Transport {
    let found = match protocol {
        TCP if offset + 20 <= end => {
            let payload = offset + usize::from(bytes[offset + 12] >> 4) * 4;
            (payload >= offset + 20 && payload <= end).then_some(Transport::Tcp { offset, payload })
        }
        UDP if offset + 8 <= end => Some(Transport::Udp { offset }),
        _ => None,
    };
    found.unwrap_or(Transport::Other(protocol))
}

/// The 16-bit word at `at` in network byte order; 0 beyond the end.
pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some(word) => u16::from_be_bytes([word[0], word[1]]),
        None => 0,
    }
}
