//! What tests of disciplines share.

use crate::packet::{Ecn, FlowId, NoTcp, Packet};
use crate::units::Bytes;

/// A packet that can be told from others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbered {
    pub number: u64,
    pub flow: u32,
    pub size: u64,
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
