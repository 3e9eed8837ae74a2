//! The headers and the fate of each packet of a queue, for a capture.

use crate::sheet::{ENTRIES, Sheet};
use penstock_core::packet::Packet;
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Bytes, Instant};

/// Largest number of bytes that are kept of a packet, from its IP header on: the longest headers of IPv4 with TCP have 120,
/// those of IPv6 with TCP and without extensions 100.
pub const SNAP: usize = 128;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was sent.
    Sent,
    /// It was sent, and the AQM had set CE.
    Marked,
    /// It was sent, and the wire lost it.
    Lost,
    /// It was dropped at the queue.
    Dropped(DropReason),
}

/// One packet that has left the queue.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// When it left the queue, sent or dropped.
    pub at: Instant,
    /// Size of the IP packet.
    pub size: Bytes,
    /// What became of it.
    pub fate: Fate,
    kept: u8,
    head: [u8; SNAP],
}

impl Entry {
    /// The first bytes of the packet, from its IP header on.
    pub fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.kept)]
    }
}

/// The packets of one queue, in the order in which they left it. `P` is what the queue holds.
#[derive(Debug)]
pub struct Tap<P> {
    /// The packets.
    pub entries: Vec<Entry>,
    bytes: fn(&P) -> &[u8],
}

impl<P: Packet> Tap<P> {
    /// Creates an empty tap; `bytes` returns the bytes of a packet from its IP header on.
    pub fn new(bytes: fn(&P) -> &[u8]) -> Self {
        Self { entries: Vec::new(), bytes }
    }

    /// Adds a packet that has left the queue at this time.
    pub fn add(&mut self, packet: &P, at: Instant, fate: Fate) {
        let (size, bytes) = (packet.size(), (self.bytes)(packet));
        let kept = bytes.len().min(SNAP).min(usize::try_from(size.get()).unwrap_or(SNAP));
        let mut head = [0; SNAP];
        head[..kept].copy_from_slice(&bytes[..kept]);
        self.entries.push(Entry { at, size, fate, kept: kept as u8, head });
    }
}

/// The packets of both queues within the same time, those of each direction in the order in which they left.
pub type Taps = [Vec<Entry>; 2];

impl Sheet for Taps {
    fn empty() -> Self {
        [(); 2].map(|()| Vec::with_capacity(ENTRIES / 2))
    }
    fn packets(&self) -> usize {
        self.iter().map(Vec::len).sum()
    }
    fn clear(&mut self) {
        self.iter_mut().for_each(Vec::clear);
    }
}
