//! What a real packet tells of the rate of its flow, for RED-ERN: by the header bits of document 003, or by the option
//! alone. Hosts with an agent write the option and cannot set the bits: a segment with the option is then of a flow that
//! announces its rate, and one whose option has a round trip time of 0 announces none.

use penstock_core::packet::{Ern, Packet as _, RateNotice};
use penstock_core::wire::{ERN, RealPacket, TcpOptions, Transport};

/// Returns the bits of a packet, or what its option says if it has none.
pub fn explicit_rate(packet: &RealPacket) -> Ern {
    let said = packet.explicit_rate();
    if said.capable {
        return said;
    }
    let Transport::Tcp { offset, payload } = packet.headers().transport else { return said };
    let options = packet.bytes().get(offset + 20..payload).unwrap_or_default();
    let told = |(kind, data): (u8, &[u8])| data.try_into().ok().filter(|_| kind == ERN);
    let Some(data) = TcpOptions::each(options).find_map(told) else { return said };
    let rate = RateNotice::from_bytes(data);
    Ern { capable: true, tells_rate: rate.is_some(), rate }
}
