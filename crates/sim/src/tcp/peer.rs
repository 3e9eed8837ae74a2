//! What the peer tells: its greeting, and its window (RFC 9293 §3.8.6).

use super::sequence;
use crate::segment::Segment;

/// What a SYN or SYN-ACK of the peer tells the sending half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// SACK is permitted.
    pub sack: bool,
    /// Payload of a full segment, which both sides agree on, in bytes.
    pub mss: u16,
    /// The first window in bytes.
    pub window: u16,
    /// Scale of later windows.
    pub scale: u8,
}

/// The window that the peer advertises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerWindow {
    /// The number up to which the peer takes data, in the form of the header.
    pub edge: u32,
    /// The largest window so far, in bytes: below 2^30, as windows and their scale are.
    pub largest: u32,
    /// Header number of the segment that told the window; of no meaning until one did after the handshake.
    seq: u32,
    told: bool,
    scale: u8,
}

impl PeerWindow {
    /// Creates a window whose edge is `first`, without room for the data that begins there.
    pub fn new(first: u64) -> Self {
        Self { edge: first as u32, largest: 0, seq: 0, told: false, scale: 0 }
    }

    /// Creates the window of the peer's SYN or SYN-ACK, which is unscaled, for data that begins at `first`. Later ones have
    /// this scale.
    pub fn of_greeting(first: u64, window: u16, scale: u8) -> Self {
        Self { largest: window.into(), scale, ..Self::new(first + u64::from(window)) }
    }

    /// Returns the number up to which the peer takes data; `near` is within the flight.
    #[inline]
    pub fn edge(&self, near: u64) -> u64 {
        sequence::unwrap(self.edge, near)
    }

    /// Takes the window of a segment which acknowledges up to `ack`, unless it was sent before the one that told the window.
    #[inline]
    pub fn update(&mut self, segment: &Segment, ack: u64) {
        if self.told && (segment.seq.wrapping_sub(self.seq) as i32) < 0 {
            return;
        }
        let window = u32::from(segment.window) << self.scale;
        (self.told, self.seq) = (true, segment.seq);
        self.edge = (ack as u32).wrapping_add(window);
        self.largest = self.largest.max(window);
    }
}
