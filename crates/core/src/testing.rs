//! Packets for tests of disciplines. Other crates use them with the feature `testing`.

use crate::packet::{Ecn, FlowId, NoTcp, Packet};
use crate::units::Bytes;

/// A packet with a number by which a test identifies it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbered {
    /// The number that identifies the packet.
    pub number: u64,
    /// The packet's flow.
    pub flow: FlowId,
    /// The size of the packet on the link.
    pub size: Bytes,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
}

impl Numbered {
    /// Creates a packet that is not ECN-capable.
    pub fn new(number: u64, flow: FlowId, size: Bytes) -> Self {
        Self { number, flow, size, ecn: Ecn::NotEct }
    }

    /// Replaces the ECN field.
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }
}

impl Packet for Numbered {
    type Tcp = NoTcp;

    fn size(&self) -> Bytes {
        self.size
    }
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        assert!(self.ecn.is_capable(), "a packet that is not ECN-capable was marked");
        self.ecn = Ecn::Ce;
    }
    fn tcp(&mut self) -> Option<&mut NoTcp> {
        None
    }
}
