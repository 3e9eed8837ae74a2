//! A pool of buffers of one size. Buffers are used again, so that after some time nothing is allocated any more.

use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::units::Instant;
use penstock_core::wire::RealPacket;

/// The largest IP packet: the header of IPv6 and its largest payload.
pub const LARGEST: usize = 40 + 65_535;
/// Memory in bytes that is kept free, besides half of what the buffers take: queues and tables grow in large steps.
const HEADROOM: usize = 16 << 20;
/// After so many buffers it is checked again whether there is memory.
const BETWEEN_CHECKS: u64 = 256;

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

    /// Takes a buffer, whose content is arbitrary. Returns `None` if none is free and there is no memory for a new one and
    /// for what grows with it: so that the process ends neither here nor soon after.
    pub fn try_take(&mut self) -> Option<Box<[u8]>> {
        if self.has_buffer() { Some(self.take()) } else { None }
    }

    /// Returns whether [`Pool::try_take`] would return a buffer.
    pub fn has_buffer(&self) -> bool {
        !self.free.is_empty() || !self.allocated.is_multiple_of(BETWEEN_CHECKS) || self.has_headroom()
    }

    fn has_headroom(&self) -> bool {
        let held = usize::try_from(self.allocated).unwrap_or(usize::MAX).saturating_mul(self.size);
        Vec::<u8>::new().try_reserve_exact(HEADROOM.saturating_add(held / 2)).is_ok()
    }

    /// Returns the size of the buffers.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Makes all further buffers large enough for packets of `len` bytes. Smaller ones are freed when they come back.
    pub fn grow(&mut self, len: usize) {
        if len > self.size {
            self.size = len.next_power_of_two().min(LARGEST);
            self.free.clear();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_memory_there_is_no_buffer_and_with_a_free_one_there_is() {
        let mut pool = Pool::new(usize::MAX / 2);
        pool.allocated = BETWEEN_CHECKS;
        assert!(pool.try_take().is_none());
        pool.size = 10;
        pool.give(vec![0; 10].into_boxed_slice());
        pool.size = usize::MAX / 2;
        assert_eq!(pool.try_take().unwrap().len(), 10);
    }
}
