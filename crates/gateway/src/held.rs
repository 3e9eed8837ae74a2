//! A packet between its arrival and the time at which it is due.

use crate::voice::{Voice, is_call};
use penstock_core::packet::{Carrier, Ecn, Ern, NodeId, Packet as _, TcpView};
use penstock_core::wire::scone::Signal;
use penstock_core::wire::{RealPacket, Transport, TransportChecksum};
use penstock_linux::lead::Lead;
use penstock_linux::nfqueue::Ticket;
use penstock_shaper::announced::explicit_rate;

/// What is needed to let a packet go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The kernel keeps the packet until its verdict.
    Verdict {
        /// The name of the packet in the kernel.
        ticket: Ticket,
        /// False if the kernel gave only the beginning of the packet: then its bytes stay as they are.
        whole: bool,
    },
    /// The packet is here; this stands before it.
    Frame(Lead),
}

/// A packet, and how to let it go on.
#[derive(Debug)]
pub struct Held {
    packet: RealPacket,
    pub(crate) origin: Origin,
    /// What a discipline may edit, as it was on arrival.
    before: (u16, Ecn),
    /// The node that sent it, if that is held to a budget.
    pub(crate) node: Option<NodeId>,
    /// What is known of it if it is a packet of a call.
    pub(crate) call: Option<Voice>,
    /// True if its rate signal was lowered.
    advised: bool,
}

impl Held {
    /// Takes a packet; `voice` is what is to be known of it if it is one of a call.
    pub fn new(packet: RealPacket, origin: Origin, voice: Voice) -> Self {
        let is_pending = matches!(&origin, Origin::Frame(lead) if lead.is_pending());
        let checksum = if is_pending { TransportChecksum::Pending } else { TransportChecksum::Complete };
        let packet = packet.with_checksum(checksum);
        let before = (TcpView::window(&packet), packet.ecn());
        let call = is_call(packet.bytes(), packet.headers()).then_some(voice);
        Self { packet, origin, before, node: None, call, advised: false }
    }

    /// Returns whether the end of the packet is here as well.
    fn is_whole(&self) -> bool {
        !matches!(self.origin, Origin::Verdict { whole: false, .. })
    }

    /// Returns the window fields of a segment as it came and as it is; `None` for other packets.
    pub fn windows(&self) -> Option<[u16; 2]> {
        let tcp = matches!(self.packet.headers().transport, Transport::Tcp { .. });
        tcp.then(|| [self.before.0, TcpView::window(&self.packet)])
    }

    /// Returns the signal of the SCONE packet with which it begins; `None` if there is none, or if it cannot be edited.
    pub fn rate_signal(&self) -> Option<Signal> {
        self.packet.rate_signal().filter(|_| self.is_whole())
    }

    /// Lowers this signal; one that is as low already stays.
    pub fn lower_rate_signal(&mut self, to: Signal) {
        self.advised |= self.is_whole() && self.packet.lower_rate_signal(to);
    }

    pub(crate) fn packet(&self) -> &RealPacket {
        &self.packet
    }

    /// Returns the bytes with which the packet must go on; `None` if the kernel has them already.
    pub fn changed(&self) -> Option<&[u8]> {
        let same = self.before == (TcpView::window(&self.packet), self.packet.ecn());
        (self.is_whole() && (self.advised || !same)).then(|| self.bytes())
    }

    /// Returns the packet without padding.
    fn bytes(&self) -> &[u8] {
        &self.packet.bytes()[..self.packet.headers().end]
    }

    /// Returns the frame with which the packet leaves, in two parts.
    pub fn frame(&self) -> [&[u8]; 2] {
        let lead = if let Origin::Frame(lead) = &self.origin { lead.bytes() } else { &[] };
        [lead, self.bytes()]
    }

    pub(crate) fn into_bytes(self) -> Box<[u8]> {
        self.packet.into_bytes()
    }
}

impl Carrier for Held {
    type Packet = RealPacket;

    fn carried(&self) -> &RealPacket {
        &self.packet
    }
    fn carried_mut(&mut self) -> &mut RealPacket {
        &mut self.packet
    }
    fn is_editable(&self) -> bool {
        self.is_whole()
    }
    fn told_rate(&self) -> Ern {
        explicit_rate(&self.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tap::Tap as _;
    use crate::windows::Windows;
    use penstock_core::packet::FlowId;
    use penstock_core::units::Instant;
    use penstock_shaper::direction::Direction;

    const VOICE: Voice = Voice { direction: Direction::Forward, came: Instant::ZERO, caller: NodeId::NOBODY };

    /// A segment of 40 bytes, ECN-capable, window 1000, in a buffer of 64.
    fn held(whole: bool) -> Held {
        let mut bytes = [0; 64];
        (bytes[0], bytes[1], bytes[3], bytes[9], bytes[32], bytes[33]) = (0x45, 2, 40, 6, 0x50, 0x10);
        bytes[34..36].copy_from_slice(&1000u16.to_be_bytes());
        let origin = Origin::Verdict { ticket: Ticket { queue: 1, id: 2 }, whole };
        Held::new(RealPacket::new(bytes, FlowId(1)), origin, VOICE)
    }

    #[test]
    fn only_a_packet_that_was_edited_has_other_bytes() {
        let mut packet = held(true);
        assert_eq!(packet.changed(), None);
        packet.tcp().unwrap().set_window(900);
        let bytes = packet.changed().unwrap();
        assert_eq!((bytes.len(), &bytes[34..36]), (40, &900u16.to_be_bytes()[..]));
        assert_eq!((packet.windows(), held(true).windows()), (Some([1000, 900]), Some([1000; 2])));
        let mut windows = [Windows::default(); 2];
        [&packet, &held(true)].into_iter().for_each(|held| windows.leaves(Direction::Forward, held, Instant::ZERO));
        assert_eq!(windows[0], Windows { segments: 2, rewritten: 1, advertised: 2000, written: 1900 });
        let mut packet = held(true);
        packet.mark_ce();
        assert_eq!(packet.changed().unwrap()[1] & 3, 3);
    }

    #[test]
    fn a_lowered_signal_goes_on_if_the_packet_is_whole() {
        let mut bytes = [0; 64];
        (bytes[0], bytes[3], bytes[9], bytes[25]) = (0x45, 40, 17, 20);
        bytes[28..33].copy_from_slice(&[0xff, 0xef, 0x7d, 0xc0, 0xfd]);
        for whole in [true, false] {
            let origin = Origin::Verdict { ticket: Ticket { queue: 1, id: 2 }, whole };
            let packet = RealPacket::new(bytes, FlowId(1));
            let mut held = Held::new(packet, origin, VOICE);
            assert_eq!((held.rate_signal(), held.changed()), (whole.then_some(Signal::UNKNOWN), None));
            held.lower_rate_signal(Signal::new(40));
            let first = held.changed().map(|bytes| (bytes.len(), bytes[28], bytes[29]));
            assert_eq!(first, whole.then_some((40, 0xc0 | 20, 0x6f)));
        }
    }

    /// A segment with the option alone, as a host with an agent writes it.
    #[test]
    fn a_rate_that_only_the_option_tells_is_told() {
        let mut bytes = held(true).into_bytes();
        (bytes[3], bytes[32]) = (48, 0x70);
        bytes[40..46].copy_from_slice(&[253, 6, 0x53, 0xc0, 0, 100]);
        let held = Held::new(RealPacket::new(bytes, FlowId(1)), Origin::Frame(Lead::NONE), VOICE);
        assert!(held.explicit_rate().tells_rate && !held.packet.explicit_rate().tells_rate);
    }

    #[test]
    fn a_packet_whose_end_is_not_here_is_never_edited() {
        let mut packet = held(false);
        assert!(packet.tcp().is_none() && !packet.ecn().is_capable() && packet.changed().is_none());
    }
}
