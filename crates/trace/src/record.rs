//! One packet of a replay: when it came, and what became of it.

use penstock_core::packet::Ecn;
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Instant, Span};
use std::io::{self, Write};

/// The columns of a table of packets, whose rows [`Record::write_csv`] writes.
pub const COLUMNS: &str = "id,t_arr_ns,flow,size,fate,t_fate_ns,sojourn_ns,ecn_out";

/// How a packet ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It left the queue for the link.
    Sent,
    /// It was dropped.
    Dropped(DropReason),
}

impl Fate {
    /// The word used in traces and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Dropped(reason) => reason.fate(),
        }
    }
}

/// One packet of a replay. Its place in the trace, from 0, is its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it arrived.
    pub t_arr: Instant,
    /// When it left the queue or was dropped.
    pub t_fate: Instant,
    /// The flow as the trace calls it.
    pub flow: u64,
    /// Bytes.
    pub size: u32,
    /// How it ended.
    pub fate: Fate,
    /// Its ECN field at the end.
    pub ecn_out: Ecn,
}

impl Record {
    /// Time from arrival to fate.
    pub fn sojourn(&self) -> Span {
        self.t_fate.since(self.t_arr)
    }

    /// Writes the packet as a row under [`COLUMNS`].
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_csv(&self, id: u64, out: &mut impl Write) -> io::Result<()> {
        let (arr, fate_at, sojourn) = (self.t_arr.as_nanos(), self.t_fate.as_nanos(), self.sojourn().as_nanos());
        let (flow, size, fate, ecn) = (self.flow, self.size, self.fate.name(), self.ecn_out as u8);
        writeln!(out, "{id},{arr},{flow},{size},{fate},{fate_at},{sojourn},{ecn}")
    }
}
