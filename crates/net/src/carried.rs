//! A packet on its way through the emulator, and what stands before it in its frame.

use crate::announced;
use crate::lead::Lead;
use crate::pool::Pool;
use penstock_core::packet::{Ecn, Ern, FlowId, Packet};
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::units::{Bytes, Instant};
use penstock_core::wire::{RealPacket, TransportChecksum};

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

    /// Returns the packet.
    pub fn packet(&self) -> &RealPacket {
        &self.packet
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

    /// Returns the buffer.
    pub fn into_bytes(self) -> Box<[u8]> {
        self.packet.into_bytes()
    }
}

impl Packet for Carried {
    type Tcp = RealPacket;

    fn size(&self) -> Bytes {
        self.packet.size()
    }
    fn flow(&self) -> FlowId {
        Packet::flow(&self.packet)
    }
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
    fn mark_ce(&mut self) {
        self.packet.mark_ce();
    }
    fn tcp(&mut self) -> Option<&mut RealPacket> {
        self.packet.tcp()
    }
    fn is_syn(&self) -> bool {
        Packet::is_syn(&self.packet)
    }
    fn explicit_rate(&self) -> Ern {
        announced::explicit_rate(&self.packet)
    }
}

/// Takes the buffers of dropped packets back.
impl PacketObserver<Carried> for Pool {
    fn dropped(&mut self, packet: Carried, _: DropReason, _: Instant) {
        self.give(packet.into_bytes());
    }
    fn marked(&mut self, _: &Carried, _: Instant) {}
}
