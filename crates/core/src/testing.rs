//! Packets for tests of disciplines. Other crates get them with the feature `testing`.

use crate::packet::{Ecn, FlowId, NoTcp, Packet};
use crate::units::Bytes;

/// A packet that can be told from others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbered {
    /// What tells it from the others.
    pub number: u64,
    /// The index of its flow.
    pub flow: u32,
    /// Its size on the link, in bytes.
    pub size: u64,
    /// Its ECN field.
    pub ecn: Ecn,
}

impl Numbered {
    /// Not capable of ECN.
    pub fn new(number: u64, flow: u32, size: u64) -> Self {
        Self { number, flow, size, ecn: Ecn::NotEct }
    }
}

impl Packet for Numbered {
    type Tcp = NoTcp;

    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn tcp(&mut self) -> Option<&mut NoTcp> {
        None
    }
}
