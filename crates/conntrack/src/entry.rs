//! A connection of the table: which segments are credible, and when it ends.
//!
//! A segment is credible if it lies in the window that its receiver announced and acknowledges nothing beyond what its
//! receiver may have sent. Others change nothing and do not keep a connection alive. An RST must have the exact next
//! number of its sender (RFC 5961 §3.2), which who does not see the connection has to guess: as acknowledged last, or as
//! sent last. FINs end a connection when both are acknowledged.

use crate::half::{Half, Step};
use crate::segment::{Segment, advance, after};
use penstock_core::packet::{NodeId, TcpFlags};

/// How far before what is acknowledged a segment may begin, and how far before the last acknowledgment number another may
/// be: retransmissions that were not needed, probes of keep-alive, and packets that overtook others.
const BACK: i32 = 1 << 16;

/// An entry. Pairs are for the low and the high end of the key, as senders.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry {
    pub flow: u32,
    /// The number of its subscriber.
    pub owner: u32,
    /// Highest acknowledgment number of what this end sent.
    acked: [u32; 2],
    /// Sequence number after what this end sent.
    end: [u32; 2],
    /// Right edge of the window in which this end may send.
    edge: [u32; 2],
    /// Sequence number after the FIN of this end.
    fin: [u32; 2],
    scale: [u8; 2],
    fin_seen: [bool; 2],
    /// A SYN with this key was seen since: another connection may be about to take its place.
    pub reopens: bool,
}

const _: () = assert!(size_of::<(u64, Entry)>() <= 64, "an entry has a cache line, with its hash");

impl Entry {
    /// Makes an entry of a connection whose data are acknowledged by this segment.
    pub fn new(half: &Half, flow: u32, owner: NodeId, from_low: bool, segment: &Segment) -> Self {
        let numbers = half.numbers();
        // Until it tells, an end may have announced as much as a SYN can.
        let edge = |(first, mut end, _): (u32, u32, u8)| {
            advance(&mut end, first.wrapping_add(0xffff));
            end
        };
        let mut entry = Self {
            flow,
            owner: owner.0,
            acked: numbers.map(|(first, _, _)| first),
            end: numbers.map(|(_, end, _)| end),
            edge: numbers.map(edge),
            scale: numbers.map(|(_, _, scale)| scale),
            fin_seen: half.fins(),
            ..Self::default()
        };
        entry.fin = entry.end;
        entry.note(usize::from(!from_low), segment);
        entry
    }

    /// Takes a segment of the connection.
    pub fn step(&mut self, from_low: bool, segment: &Segment) -> Step {
        let side = usize::from(!from_low);
        if segment.is(TcpFlags::RST) {
            let exact = segment.seq == self.acked[side] || segment.seq == self.end[side];
            return if exact { Step::Closed(TcpFlags::RST) } else { Step::Ignored };
        }
        if segment.is(TcpFlags::SYN) || !segment.is(TcpFlags::ACK) || !self.is_credible(side, segment) {
            return Step::Ignored;
        }
        self.note(side, segment);
        if self.is_over() { Step::Closed(TcpFlags::FIN) } else { Step::Noted }
    }

    fn is_credible(&self, side: usize, segment: &Segment) -> bool {
        let other = 1 - side;
        let begins = segment.seq.wrapping_sub(self.acked[side]) as i32;
        let acks = segment.ack.wrapping_sub(self.acked[other]) as i32;
        // One byte beyond the window may be a probe of a window of zero (RFC 9293 §3.8.6.1).
        let fits = !after(segment.end(), self.edge[side].wrapping_add(1));
        begins >= -BACK && fits && acks >= -BACK && !after(segment.ack, self.edge[other].wrapping_add(1))
    }

    fn note(&mut self, side: usize, segment: &Segment) {
        let other = 1 - side;
        advance(&mut self.end[side], segment.end());
        advance(&mut self.acked[other], segment.ack);
        advance(&mut self.end[other], segment.ack); // fragments pass unseen
        advance(&mut self.edge[other], segment.ack.wrapping_add(u32::from(segment.window) << self.scale[side]));
        if segment.is(TcpFlags::FIN) {
            (self.fin_seen[side], self.fin[side]) = (true, segment.end());
        }
    }

    fn is_over(&self) -> bool {
        [0, 1].iter().all(|side| self.fin_seen[*side] && !after(self.fin[*side], self.acked[*side]))
    }
}
