//! What carries a real packet through a discipline: a packet for it, with what its owner needs to let it go.

use penstock_core::wire::RealPacket;

/// What carries a packet of the wire through a discipline, and is one for it ([`carrier!`](crate::carrier!)).
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

/// Makes a [`Carrier`](crate::carrier::Carrier) a packet.
#[macro_export]
macro_rules! carrier {
    ($carrier:ty) => {
        impl penstock_core::packet::Packet for $carrier {
            type Tcp = penstock_core::wire::RealPacket;

            fn size(&self) -> penstock_core::units::Bytes {
                $crate::carrier::Carrier::real(self).size()
            }
            fn flow(&self) -> penstock_core::packet::FlowId {
                penstock_core::packet::Packet::flow($crate::carrier::Carrier::real(self))
            }
            fn ecn(&self) -> penstock_core::packet::Ecn {
                let is_editable = $crate::carrier::Carrier::is_editable(self);
                if is_editable {
                    $crate::carrier::Carrier::real(self).ecn()
                } else {
                    penstock_core::packet::Ecn::NotEct
                }
            }
            fn mark_ce(&mut self) {
                $crate::carrier::Carrier::real_mut(self).mark_ce();
            }
            fn tcp(&mut self) -> Option<&mut Self::Tcp> {
                let is_editable = $crate::carrier::Carrier::is_editable(self);
                $crate::carrier::Carrier::real_mut(self).tcp().filter(|_| is_editable)
            }
            fn is_syn(&self) -> bool {
                penstock_core::packet::Packet::is_syn($crate::carrier::Carrier::real(self))
            }
            fn explicit_rate(&self) -> penstock_core::packet::Ern {
                $crate::announced::explicit_rate($crate::carrier::Carrier::real(self))
            }
        }
    };
}
