//! A packet on its way through the emulator, and what stands before it in its frame.

use crate::lead::Lead;
use crate::pool::Pool;
use penstock_core::packet::Packet;
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::units::Instant;
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

/// What carries a packet of the wire through a discipline, and is one for it ([`carrier!`](crate::carrier)).
pub trait Carrier {
    /// Returns the packet.
    fn real(&self) -> &RealPacket;

    /// Returns the packet, to edit its headers.
    fn real_mut(&mut self) -> &mut RealPacket;

    /// False if its bytes stay as they are: then it is told as one that is not ECN-capable and shows no segment.
    fn is_editable(&self) -> bool {
        true
    }
}

/// Makes a [`Carrier`](crate::carried::Carrier) a packet.
#[macro_export]
macro_rules! carrier {
    ($carrier:ty) => {
        impl penstock_core::packet::Packet for $carrier {
            type Tcp = penstock_core::wire::RealPacket;

            fn size(&self) -> penstock_core::units::Bytes {
                $crate::carried::Carrier::real(self).size()
            }
            fn flow(&self) -> penstock_core::packet::FlowId {
                penstock_core::packet::Packet::flow($crate::carried::Carrier::real(self))
            }
            fn ecn(&self) -> penstock_core::packet::Ecn {
                let is_editable = $crate::carried::Carrier::is_editable(self);
                if is_editable {
                    $crate::carried::Carrier::real(self).ecn()
                } else {
                    penstock_core::packet::Ecn::NotEct
                }
            }
            fn mark_ce(&mut self) {
                $crate::carried::Carrier::real_mut(self).mark_ce();
            }
            fn tcp(&mut self) -> Option<&mut Self::Tcp> {
                let is_editable = $crate::carried::Carrier::is_editable(self);
                $crate::carried::Carrier::real_mut(self).tcp().filter(|_| is_editable)
            }
            fn is_syn(&self) -> bool {
                penstock_core::packet::Packet::is_syn($crate::carried::Carrier::real(self))
            }
            fn explicit_rate(&self) -> penstock_core::packet::Ern {
                $crate::announced::explicit_rate($crate::carried::Carrier::real(self))
            }
        }
    };
}

impl Carrier for Carried {
    fn real(&self) -> &RealPacket {
        &self.packet
    }
    fn real_mut(&mut self) -> &mut RealPacket {
        &mut self.packet
    }
}

crate::carrier!(Carried);

/// Takes the buffers of dropped packets back.
impl PacketObserver<Carried> for Pool {
    fn dropped(&mut self, packet: Carried, _: DropReason, _: Instant) {
        self.give(packet.into_bytes());
    }
    fn marked(&mut self, _: &Carried, _: Instant) {}
}
