//! A packet on its way through the emulator, and what stands before it in its frame.

use penstock_core::packet::{Carrier, Ern, Packet as _};
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::units::Instant;
use penstock_core::wire::{RealPacket, TransportChecksum};
use penstock_linux::lead::Lead;
use penstock_shaper::announced::explicit_rate;
use penstock_shaper::pool::Pool;

/// What stands in a buffer before the bytes of a frame that is not IP, so that they are never taken for an IP header.
pub const BEFORE: [u8; 1] = [0];

/// A packet of a TUN interface, which has no frame, or of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    packet: RealPacket,
    lead: Lead,
}

impl Carried {
    /// Takes a packet, and what stood before it.
    pub fn new(packet: RealPacket, lead: Lead) -> Self {
        let checksum = if lead.is_pending() { TransportChecksum::Pending } else { TransportChecksum::Complete };
        Self { packet: packet.with_checksum(checksum), lead }
    }

    /// Returns a copy, in a buffer of the pool; `None` without memory for one.
    pub fn copy(&self, pool: &mut Pool) -> Option<Self> {
        let packet = self.packet.copied_into(pool.try_take()?);
        Some(Self { packet, lead: self.lead })
    }

    /// Returns the packet from its IP header on, without padding.
    pub fn bytes(&self) -> &[u8] {
        let bytes = self.packet.bytes();
        let begin = if self.lead.is_ip() { 0 } else { BEFORE.len() };
        bytes.get(begin..bytes.len().min(self.packet.size().get() as usize)).unwrap_or_default()
    }

    /// Returns the frame with which the packet leaves, in two parts.
    pub fn frame(&self) -> [&[u8]; 2] {
        [self.lead.bytes(), self.bytes()]
    }

    pub fn into_bytes(self) -> Box<[u8]> {
        self.packet.into_bytes()
    }
}

impl Carrier for Carried {
    type Packet = RealPacket;

    fn carried(&self) -> &RealPacket {
        &self.packet
    }
    fn carried_mut(&mut self) -> &mut RealPacket {
        &mut self.packet
    }
    fn told_rate(&self) -> Ern {
        explicit_rate(&self.packet)
    }
}

/// Takes the buffers of dropped packets back.
impl PacketObserver<Carried> for Pool {
    fn dropped(&mut self, packet: Carried, _: DropReason, _: Instant) {
        self.give(packet.into_bytes());
    }
    fn marked(&mut self, _: &Carried, _: Instant) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::packet::FlowId;

    /// A segment with the option alone, as a host with an agent writes it.
    #[test]
    fn a_rate_that_only_the_option_tells_is_told() {
        let mut bytes = vec![0; 48];
        (bytes[0], bytes[3], bytes[9], bytes[32]) = (0x45, 48, 6, 0x70);
        bytes[40..46].copy_from_slice(&[253, 6, 0x53, 0xc0, 0, 100]);
        let carried = Carried::new(RealPacket::new(bytes, FlowId(0)), Lead::NONE);
        assert!(carried.explicit_rate().tells_rate && !carried.packet.explicit_rate().tells_rate);
    }
}
