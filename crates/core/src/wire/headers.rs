//! Where things are in an IP packet: offsets only, no copies. Never reads beyond the buffer, never panics.

/// What the first four bits say, if the header behind them makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
    /// Something else, or a header that contradicts itself or the buffer.
    Unknown,
}

/// What follows the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A whole TCP header at `offset`; its data begin at `payload`.
    Tcp {
        /// Of the TCP header.
        offset: usize,
        /// Of its data.
        payload: usize,
    },
    /// A whole UDP header at this offset.
    Udp {
        /// Of the UDP header.
        offset: usize,
    },
    /// A fragment, another protocol, or a header that contradicts itself. Holds the protocol number.
    Other(u8),
}

/// The layout of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// IP version.
    pub version: IpVersion,
    /// What the IP packet carries.
    pub transport: Transport,
    /// Past the last byte of the IP packet; what follows in the buffer is padding.
    pub end: usize,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION_OPTIONS: u8 = 60;
const IPV6_HEADER: usize = 40;
/// RFC 8200 §4.1 lists each extension header once, destination options twice; a longer chain is not followed.
const MAX_EXTENSIONS: usize = 6;

impl Headers {
    /// Reads a buffer that begins with an IP header.
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
    if bytes.len() < IPV6_HEADER {
        return None;
    }
    let end = IPV6_HEADER + usize::from(be16(bytes, 4));
    if end > bytes.len() {
        return None;
    }
    let (protocol, offset) = skip_extensions(&bytes[..end], bytes[6]);
    Some(Headers { version: IpVersion::V6, transport: transport(bytes, protocol, offset, end), end })
}

/// The first header that is not hop-by-hop, routing or destination options, and where it is. A fragment header ends
/// the walk, so fragments count as another protocol.
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

/// The 16 bits at `at`; zero beyond the end.
pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some(word) => u16::from_be_bytes([word[0], word[1]]),
        None => 0,
    }
}
