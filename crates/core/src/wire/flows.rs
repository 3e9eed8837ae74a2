//! The key of a connection: addresses, ports, protocol and version, equal for both directions.

use super::headers::{Headers, IpVersion, Transport, be16};
use std::net::{IpAddr, SocketAddr};

/// Length of a key in bytes: two addresses of 16 bytes, two ports, protocol, version.
pub const KEY_LEN: usize = 38;

/// The key of a connection, which is equal for both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey([u8; KEY_LEN]);

impl FlowKey {
    /// The key of a packet; the ports are zero if the packet shows none. `None` if it is no IP packet.
    pub fn of(bytes: &[u8], headers: &Headers) -> Option<Self> {
        Self::with_side(bytes, headers).map(|(key, _)| key)
    }

    /// The key of a packet, and whether the packet comes from the lower end of the key.
    pub fn with_side(bytes: &[u8], headers: &Headers) -> Option<(Self, bool)> {
        let (addresses, width, version) = match headers.version {
            IpVersion::V4 => (bytes.get(12..20)?, 4, 4),
            IpVersion::V6 => (bytes.get(8..40)?, 16, 6),
            IpVersion::Unknown => return None,
        };
        let (protocol, ports) = match headers.transport {
            Transport::Tcp { offset, .. } => (6, [be16(bytes, offset), be16(bytes, offset + 2)]),
            Transport::Udp { offset } => (17, [be16(bytes, offset), be16(bytes, offset + 2)]),
            Transport::Other(protocol) => (protocol, [0, 0]),
        };
        let end = |address: &[u8], port: u16| {
            let mut end = [0; 18];
            end[..width].copy_from_slice(address);
            end[16..].copy_from_slice(&port.to_be_bytes());
            end
        };
        let (a, b) = (end(&addresses[..width], ports[0]), end(&addresses[width..], ports[1]));
        let from_low = a <= b;
        let (low, high) = if from_low { (a, b) } else { (b, a) };
        let mut key = [0; KEY_LEN];
        key[..18].copy_from_slice(&low);
        key[18..36].copy_from_slice(&high);
        key[36..].copy_from_slice(&[protocol, version]);
        Some((Self(key), from_low))
    }

    /// The address and the port at the lower end of the key (0) or at the upper one (1).
    pub fn end(&self, end: usize) -> SocketAddr {
        let at = 18 * end;
        let ip: IpAddr = match self.0[KEY_LEN - 1] {
            4 => <[u8; 4]>::into(std::array::from_fn(|byte| self.0[at + byte])),
            _ => <[u8; 16]>::into(std::array::from_fn(|byte| self.0[at + byte])),
        };
        SocketAddr::new(ip, be16(&self.0, at + 16))
    }

    /// The number of the protocol.
    pub fn protocol(&self) -> u8 {
        self.0[KEY_LEN - 2]
    }

    /// The bytes of the key, for hashing.
    pub fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}
