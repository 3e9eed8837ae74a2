//! Packets of calls: UDP with the code point of expedited forwarding or of admitted voice.

use penstock_core::packet::NodeId;
use penstock_core::units::Instant;
use penstock_core::wire::{Headers, IpVersion, Transport};
use penstock_shaper::direction::Direction;

/// The code points of calls: expedited forwarding, and voice that was admitted.
const CALLS: [u8; 2] = [46, 44];

/// Returns whether a packet is one of a call.
pub fn is_call(bytes: &[u8], headers: &Headers) -> bool {
    let class = match (headers.version, bytes) {
        (IpVersion::V4, [_, class, ..]) => *class,
        (IpVersion::V6, [first, second, ..]) => first << 4 | second >> 4,
        _ => return false,
    };
    matches!(headers.transport, Transport::Udp { .. }) && CALLS.contains(&(class >> 2))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Voice {
    pub direction: Direction,
    pub came: Instant,
    /// The subscriber with a name to whom it belongs; [`NodeId::NOBODY`] if it is in no list.
    pub caller: NodeId,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(first: u8, second: u8, protocol: u8) -> Vec<u8> {
        let mut bytes = vec![0; 60];
        (bytes[0], bytes[1]) = (first, second);
        // Where the lengths of the packet and of the datagram stand, and the protocol.
        let (at, lengths) = if first >> 4 == 4 { ([3, 9, 25], [60, 40]) } else { ([5, 6, 45], [20, 20]) };
        (bytes[at[0]], bytes[at[1]], bytes[at[2]]) = (lengths[0], protocol, lengths[1]);
        bytes
    }

    #[test]
    fn packets_of_calls_are_known_by_their_code_point() {
        let is = |first, second, protocol| {
            let bytes = datagram(first, second, protocol);
            is_call(&bytes, &Headers::parse(&bytes))
        };
        assert!(is(0x45, 46 << 2, 17) && is(0x45, 46 << 2 | 3, 17) && is(0x45, 44 << 2, 17));
        assert!(is(0x60 | 46 >> 2, (46 & 3) << 6, 17), "the class of IPv6 stands across two bytes");
        assert!(!is(0x45, 0, 17) && !is(0x45, 46 << 2, 47) && !is(0x60, 46 << 2, 17));
        assert!(!is_call(&[0x45], &Headers::parse(&[0x45])));
    }
}
