//! What became of each packet of a queue, for those who want to look closer than a histogram.
//!
//! Kept in memory while packets run, since writing a file would make them late, and written as CSV at the end.

use penstock_core::packet::FlowId;
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Bytes, Instant, Span};
use std::io::{self, Write};

/// The first line. `t_ns` is the start of transmission or the time of the drop, since the start of the run; `bytes` are
/// those of the IP packet; `fate` is `sent` or the word of a [`DropReason`].
pub const CSV_HEADER: &str = "queue,t_ns,waited_ns,flow,bytes,fate";

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// When it left the queue, alive or not.
    pub at: Instant,
    /// How long it was there.
    pub waited: Span,
    /// Its connection.
    pub flow: FlowId,
    /// Its size.
    pub size: Bytes,
    /// Why it died, if it did.
    pub dropped: Option<DropReason>,
}

/// All packets of one queue, in the order in which they left it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journal(Vec<Entry>);

impl Journal {
    /// One more.
    pub fn add(&mut self, entry: Entry) {
        self.0.push(entry);
    }

    /// Those so far.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// A line per packet, each with the `name` of the queue.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write<W: Write>(&self, name: &str, out: &mut W) -> io::Result<()> {
        for Entry { at, waited, flow, size, dropped } in &self.0 {
            let (t, waited, fate) = (at.as_nanos(), waited.as_nanos(), dropped.map_or("sent", DropReason::fate));
            writeln!(out, "{name},{t},{waited},{},{},{fate}", flow.0, size.get())?;
        }
        Ok(())
    }
}
