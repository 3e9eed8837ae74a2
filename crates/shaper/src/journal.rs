//! A journal of the fate of each packet of a queue, for analyses that need more than a histogram.
//!
//! A journal is a buffer of a few thousand packets: its owner hands full ones to a thread that writes them as CSV,
//! because writing a file would delay packets.

use crate::direction::Direction;
use crate::sheet::{ENTRIES, Sheet};
use penstock_core::packet::FlowId;
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Bytes, Instant, Span};
use std::io::{self, Write};

/// The first line of the CSV. `t_ns` is the start of transmission or the time of the drop, since the start of the run;
/// `bytes` is the size of the IP packet; `fate` is `sent` or the word of a [`DropReason`].
pub const CSV_HEADER: &str = "queue,t_ns,waited_ns,flow,bytes,fate";

/// One packet that has left the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// When it left the queue, sent or dropped.
    pub at: Instant,
    /// How long it was in the queue.
    pub waited: Span,
    /// Flow of the packet.
    pub flow: FlowId,
    /// Size of the IP packet.
    pub size: Bytes,
    /// Reason of its drop; `None` if it was sent.
    pub dropped: Option<DropReason>,
}

/// Packets of one queue, in the order in which they left it.
pub type Journal = Vec<Entry>;

/// Writes one line for each packet, with the `name` of the queue.
pub fn write<W: Write>(journal: &[Entry], name: &str, out: &mut W) -> io::Result<()> {
    for Entry { at, waited, flow, size, dropped } in journal {
        let (t, waited, fate) = (at.as_nanos(), waited.as_nanos(), dropped.map_or("sent", DropReason::fate));
        writeln!(out, "{name},{t},{waited},{},{},{fate}", flow.0, size.get())?;
    }
    Ok(())
}

impl Sheet for (Direction, Journal) {
    fn empty() -> Self {
        (Direction::Forward, Vec::with_capacity(ENTRIES + ENTRIES / 8))
    }
    fn packets(&self) -> usize {
        self.1.len()
    }
    fn clear(&mut self) {
        self.1.clear();
    }
}
