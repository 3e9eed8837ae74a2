//! The headers and the fate of each packet of a queue, for a capture as pcapng.
//!
//! Packets are in the capture of the simulator's form (`penstock_trace::pcapng`): when they left the queue, sent or dropped,
//! with the reason as a comment. The times are those of the calendar, so that captures taken at the hosts fit.

use crate::packets::{ENTRIES, FateFile, Form, Sheet};
use penstock_core::packet::Packet;
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Bytes, Instant, Span};
use penstock_trace::pcapng::{LOSS_COMMENT, MARK_COMMENT, Writer, drop_comment};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

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

impl Fate {
    fn comment(self) -> Option<&'static str> {
        match self {
            Self::Sent => None,
            Self::Marked => Some(MARK_COMMENT),
            Self::Lost => Some(LOSS_COMMENT),
            Self::Dropped(reason) => Some(drop_comment(reason)),
        }
    }
}

/// One packet that has left the queue.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: Instant,
    size: Bytes,
    fate: Fate,
    kept: u8,
    head: [u8; SNAP],
}

/// The packets of one queue, in the order in which they left it. `P` is what the queue holds.
#[derive(Debug)]
pub struct Tap<P> {
    entries: Vec<Entry>,
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

    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is no packet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Exchanges the packets for those of a direction of a sheet.
    pub fn swap(&mut self, sheet: &mut Taps, direction: usize) {
        std::mem::swap(&mut self.entries, &mut sheet.ways[direction]);
    }
}

/// The packets of both queues within the same time.
#[derive(Debug)]
pub struct Taps {
    ways: [Vec<Entry>; 2],
}

impl Taps {
    /// Creates a sheet without room.
    pub fn none() -> Self {
        Self { ways: Default::default() }
    }
}

impl Sheet for Taps {
    fn empty() -> Self {
        Self { ways: [(); 2].map(|()| Vec::with_capacity(ENTRIES / 2)) }
    }
    fn packets(&self) -> usize {
        self.ways.iter().map(Vec::len).sum()
    }
    fn clear(&mut self) {
        self.ways.iter_mut().for_each(Vec::clear);
    }
}

/// The file of `--pcapng`.
pub type CaptureFile = FateFile<Pcapng>;

/// A capture with an interface for each queue.
#[derive(Debug)]
pub struct Pcapng {
    writer: Option<Writer<Vec<u8>>>,
    /// The begin of the run by the calendar.
    zero: Span,
}

impl Pcapng {
    /// Creates the form of a capture. `epoch` is when the run began.
    pub fn since(epoch: std::time::Instant) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let zero = now.saturating_sub(epoch.elapsed());
        Self { writer: None, zero: Span::from_nanos(u64::try_from(zero.as_nanos()).unwrap_or_default()) }
    }
}

impl Form for Pcapng {
    type Sheet = Taps;
    /// They hold a quarter of a million packets in 40 MB.
    const SHEETS: usize = 64;

    fn option(&self) -> &'static str {
        "--pcapng"
    }

    fn head(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        let mut writer = Writer::new(Vec::new())?;
        for name in ["forward", "reverse"] {
            writer.add_interface(name, Bytes::new(SNAP as u64))?;
        }
        text.append(writer.get_mut());
        self.writer = Some(writer);
        Ok(())
    }

    fn write(&mut self, sheet: &Taps, text: &mut Vec<u8>) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let [mut forward, mut reverse] = sheet.ways.each_ref().map(|way| way.iter().peekable());
        loop {
            let earlier = match (forward.peek(), reverse.peek()) {
                (Some(one), Some(other)) => other.at < one.at,
                (one, _) => one.is_none(),
            };
            let next = if earlier { reverse.next() } else { forward.next() };
            let Some(Entry { at, size, fate, kept, head }) = next else { break };
            let head = &head[..usize::from(*kept)];
            writer.packet(u32::from(earlier), *at + self.zero, *size, head, fate.comment())?;
        }
        text.append(writer.get_mut());
        Ok(())
    }
}
