//! A pool of buffers of one size. Buffers are used again, so that after some time nothing is allocated any more.

use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::units::Instant;
use penstock_core::wire::RealPacket;

/// The buffers that are free.
#[derive(Debug)]
pub struct Pool {
    free: Vec<Box<[u8]>>,
    size: usize,
    allocated: u64,
}

impl Pool {
    /// Creates an empty pool of buffers of `size` bytes.
    pub fn new(size: usize) -> Self {
        Self { free: Vec::new(), size, allocated: 0 }
    }

    /// Takes a buffer, whose content is arbitrary; allocates one if none is free.
    pub fn take(&mut self) -> Box<[u8]> {
        self.free.pop().unwrap_or_else(|| {
            self.allocated += 1;
            vec![0; self.size].into_boxed_slice()
        })
    }

    /// Gives a buffer back; a buffer of another size is freed.
    pub fn give(&mut self, buffer: Box<[u8]>) {
        if buffer.len() == self.size {
            self.free.push(buffer);
        }
    }

    /// Returns the number of buffers allocated so far.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }
}

/// Takes the buffers of dropped packets back.
impl PacketObserver<RealPacket> for Pool {
    fn dropped(&mut self, packet: RealPacket, _: DropReason, _: Instant) {
        self.give(packet.into_bytes());
    }
    fn marked(&mut self, _: &RealPacket, _: Instant) {}
}
