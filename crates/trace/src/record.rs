//! One packet of a replay: when it arrived, and what became of it.

use penstock_core::packet::Ecn;
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Instant, Span};
use std::io::{self, Write};

/// The columns of the table of packets whose rows [`Record::write_csv`] writes.
pub const COLUMNS: &str = "id,t_arr_ns,flow,size,fate,t_fate_ns,sojourn_ns,ecn_out";

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The packet left the queue for the link.
    Sent,
    /// The packet was dropped for this reason.
    Dropped(DropReason),
}

impl Fate {
    /// Returns the word for this fate in traces and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Dropped(reason) => reason.fate(),
        }
    }
}

/// One packet of a replay. Its id is its place in the trace, beginning with 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When the packet arrived.
    pub t_arr: Instant,
    /// When the packet left the queue or was dropped.
    pub t_fate: Instant,
    /// Number of the flow in the trace.
    pub flow: u64,
    /// Size in bytes.
    pub size: u32,
    /// Fate of the packet.
    pub fate: Fate,
    /// ECN field of the packet at the end.
    pub ecn_out: Ecn,
}

impl Record {
    /// Returns the time from arrival to fate.
    pub fn sojourn(&self) -> Span {
        self.t_fate.since(self.t_arr)
    }

    /// Writes the packet as a row under [`COLUMNS`].
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_csv(&self, id: u64, out: &mut impl Write) -> io::Result<()> {
        let (arr, fate_at, sojourn) = (self.t_arr.as_nanos(), self.t_fate.as_nanos(), self.sojourn().as_nanos());
        let (flow, size, fate, ecn) = (self.flow, self.size, self.fate.name(), self.ecn_out as u8);
        writeln!(out, "{id},{arr},{flow},{size},{fate},{fate_at},{sojourn},{ecn}")
    }
}
