//! Buffers of one size that go round: after a while nothing is allocated any more.

use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::units::Instant;
use penstock_core::wire::RealPacket;

/// Free buffers.
#[derive(Debug)]
pub struct Pool {
    free: Vec<Box<[u8]>>,
    size: usize,
    allocated: u64,
}

impl Pool {
    /// An empty pool of buffers of `size` bytes.
    pub fn new(size: usize) -> Self {
        Self { free: Vec::new(), size, allocated: 0 }
    }

    /// A buffer with any content.
    pub fn take(&mut self) -> Box<[u8]> {
        self.free.pop().unwrap_or_else(|| {
            self.allocated += 1;
            vec![0; self.size].into_boxed_slice()
        })
    }

    /// Gives a buffer back; one of another size is thrown away.
    pub fn give(&mut self, buffer: Box<[u8]>) {
        if buffer.len() == self.size {
            self.free.push(buffer);
        }
    }

    /// Buffers made so far.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }
}

/// The buffers of dropped packets come back.
impl PacketObserver<RealPacket> for Pool {
    fn dropped(&mut self, packet: RealPacket, _: DropReason, _: Instant) {
        self.give(packet.into_bytes());
    }
    fn marked(&mut self, _: &RealPacket, _: Instant) {}
}
