//! A packet on its way through the emulator, and what stands before it in its frame.

use penstock_core::packet::Packet;
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::units::Instant;
use penstock_core::wire::{RealPacket, TransportChecksum};
use penstock_linux::lead::Lead;
use penstock_shaper::carrier::Carrier;
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
    fn real(&self) -> &RealPacket {
        &self.packet
    }
    fn real_mut(&mut self) -> &mut RealPacket {
        &mut self.packet
    }
}

penstock_shaper::carrier!(Carried);

/// Takes the buffers of dropped packets back.
impl PacketObserver<Carried> for Pool {
    fn dropped(&mut self, packet: Carried, _: DropReason, _: Instant) {
        self.give(packet.into_bytes());
    }
    fn marked(&mut self, _: &Carried, _: Instant) {}
}
