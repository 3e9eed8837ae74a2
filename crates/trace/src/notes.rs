//! What was left out or changed while a trace was read.

use std::collections::BTreeMap;

/// What was left out or changed while a capture was read; all zero for CSV, whose mistakes are errors.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Notes {
    /// Number of frames in the file, with those of link types that cannot be read.
    pub frames: u64,
    /// Number of frames left out because they hold no IP packet or too little of it was captured.
    pub not_ip: u64,
    /// What those frames hold, with the number of frames of each.
    pub unread: BTreeMap<String, u64>,
    /// Number of frames left out because the capture has no time for them.
    pub untimed: u64,
    /// Number of packets with an earlier time than a packet before them, without those behind a clock that was set.
    pub out_of_order: u64,
    /// Of those the packets that were put into their place; the others are taken to arrive together with the one before.
    pub restored: u64,
    /// Number of packets left out because they are there a second time, as `-i any` has those that a router forwards.
    pub copies: u64,
    /// Number of frames that were split, and of the packets that they became.
    pub split: Split,
    /// How often the clock was set while the capture was made.
    pub clock_set: ClockSet,
    /// Number of records left out because they break the format.
    pub odd: u64,
    /// What is wrong with the first of them.
    pub first_odd: Option<String>,
    /// Where the file ends within a packet, or cannot be read further; `None` if it is whole. All packets before are whole.
    pub cut_short: Option<Cut>,
}

/// Frames of several segments, which the network card or the kernel had joined or was to split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Split {
    /// Number of frames.
    pub frames: u64,
    /// Number of packets.
    pub packets: u64,
}

/// Steps of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct ClockSet {
    /// How often the clock was set.
    pub times: u64,
    /// Number of packets behind the first step.
    pub packets: u64,
    /// The largest step in seconds; below zero if the clock was set back.
    pub seconds: f64,
}

impl Eq for ClockSet {}

/// The place at which a capture ends within a packet, or from which on it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Cut {
    /// Number of the packet, beginning with 1.
    pub packet: u64,
    /// Offset at which its record or block begins.
    pub byte: u64,
    /// What is missing or wrong there.
    pub what: String,
}

impl Notes {
    /// Counts a frame without an IP packet that can be read.
    pub(crate) fn unread(&mut self, why: impl ToString) {
        self.not_ip += 1;
        *self.unread.entry(why.to_string()).or_default() += 1;
    }

    /// Says why there is no packet, for a capture without one.
    pub(crate) fn nothing(&self) -> String {
        let of = |(what, frames): (&String, &u64)| format!("{frames} of {what}");
        let mut parts: Vec<String> = self.unread.iter().map(of).collect();
        if self.untimed > 0 {
            parts.push(format!("{} without a time", self.untimed));
        }
        if let Some(first) = &self.first_odd {
            parts.push(format!("{} odd records, the first: {first}", self.odd));
        }
        if let Some(cut) = &self.cut_short {
            parts.push(format!("it ends at byte {}: {}", cut.byte, cut.what));
        }
        let told = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        format!("there is no IP packet in its {} frames{told}", self.frames)
    }
}
