//! Accurate ECN in the form of Linux 7.2 (`include/net/tcp_ecn.h`, `net/ipv4/tcp_input.c`, `tcp_output.c`): which option a segment
//! has, when an ACK leaves at once, and how often ACE came round.

use super::{Acknowledged, DIV_ACE, DIV_OPTION, Feedback, Marks, Options, SAFETY_FACTOR};
use crate::segment::Segment;
use penstock_core::packet::{AccEcn, ByteCounters, Ecn, Packet};

/// When Linux acknowledges at once, and which option it sends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LinuxFeedback {
    /// An option of the peer has arrived; before that none is sent (`saw_accecn_opt`).
    pub(super) seen: bool,
    /// ECN field of the last packet (`prev_ecnfield`).
    pub(super) last: Ecn,
    /// The fields that the next option must have at least (`accecn_minlen`).
    pub(super) least: u8,
    /// The number that the last option came with as arrived twice; once more, and options are lost (`accecn_opt_sent_w_dsack`).
    pub(super) twice: Option<u32>,
    /// Options were lost, and none is sent any more.
    pub(super) lost: bool,
}

impl LinuxFeedback {
    /// Takes a packet; true if an ACK must leave now, because its ECN field is not that of the last one
    /// (`tcp_ecn_received_counters`).
    pub(super) fn count(&mut self, segment: &Segment) -> bool {
        self.seen |= segment.accecn().is_some();
        let least = match segment.ecn() {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ce => 2,
            Ecn::Ect0 => 3,
        };
        if segment.len > 0 {
            self.least = self.least.max(least);
        }
        let changes = std::mem::replace(&mut self.last, segment.ecn()) != segment.ecn();
        changes && segment.sequence_len() > 0
    }

    /// Returns how many counters an option has in a segment with its other options; `None` without an option
    /// (`tcp_options_fit_accecn`). SACK blocks beyond the second give way to what it must tell.
    pub(super) fn fields(&self, segment: &Segment) -> Option<u8> {
        if !self.seen || self.lost {
            return None;
        }
        let blocks = segment.sacks().len();
        let fits = |blocks: usize| {
            let others = if segment.has_timestamps() { 12 } else { 0 } + if blocks > 0 { 4 + 8 * blocks } else { 0 };
            let saved = if blocks > 0 { 2 } else { 0 };
            let size = |fields: usize| {
                let raw = 2 + 3 * fields;
                if raw % 4 > saved { raw.next_multiple_of(4) } else { raw / 4 * 4 }
            };
            (self.least..=3).rev().find(|fields| others + size(usize::from(*fields)) <= 40)
        };
        let fields = fits(blocks).or_else(|| fits(2).filter(|_| blocks > 2 && self.least > 0))?;
        (fields > 0).then_some(fields)
    }
}

impl Feedback {
    /// Takes that what begins at this number arrived once more: if it was told with an option before, options are lost.
    pub fn arrived_twice(&mut self, start: u32) {
        if let Some(linux) = &mut self.linux {
            linux.lost |= linux.twice == Some(start);
        }
    }

    /// Counts a packet that brings only what was there, if the form of Linux takes it for acceptable (`tcp_sequence`): it ends no
    /// earlier than what the last ACK told.
    pub fn count_again(&mut self, segment: &Segment, told: u32) {
        let end = segment.seq.wrapping_add(segment.sequence_len());
        if self.linux.is_some() && end.wrapping_sub(told) as i32 >= 0 {
            self.count(segment, false);
        }
    }
}

/// What Linux keeps to tell how often ACE came round (`__tcp_accecn_process` of Linux 7.2).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LinuxMarks {
    /// Packets that an ACK covers on average, in 1/64 (`pkts_acked_ewma`).
    pub(super) covered: u64,
    /// The only counter of bytes that changes at present (`est_ecnfield`).
    pub(super) changing: Option<Ecn>,
    /// This side sends no options.
    pub(super) silent: bool,
}

impl LinuxMarks {
    pub(super) fn cover(&mut self, packets: u64) {
        if packets > 0 {
            let before = self.covered;
            self.covered = if before == 0 { packets << 6 } else { (before * 63 + (packets << 6)) >> 6 }.min(0xffff);
        }
    }

    /// Returns the packets with CE of an ACK, of which `least` is the smallest number that fits ACE: `marked` bytes came with CE, if
    /// the counters tell it.
    pub(super) fn packets(&self, least: u64, marked: Option<u64>, packets: u64, acknowledged: Acknowledged) -> u64 {
        if packets < DIV_ACE {
            return least;
        }
        let safer = packets - (packets - least) % DIV_ACE;
        let Acknowledged { bytes, mss } = acknowledged;
        match marked {
            Some(0) => least,
            Some(marked) if packets >= 2 * DIV_ACE && bytes <= marked => safer,
            Some(marked) if packets >= 2 * DIV_ACE => {
                let likely = (marked * packets).div_ceil(bytes);
                safer.min(least + likely / DIV_ACE * DIV_ACE)
            }
            Some(marked) if marked > least * mss => safer,
            Some(marked) if marked < safer * mss / SAFETY_FACTOR => least,
            Some(_) => safer,
            None if self.covered > 4 << 6 => least,
            None => safer,
        }
    }
}

impl Marks {
    /// Returns how many bytes more came with CE in the form of Linux, which trusts the counters if the one that changed before is
    /// the only one that changes; without an option it goes on with that one (`tcp_accecn_process_option`).
    pub(super) fn told_bytes(&mut self, option: Option<&AccEcn>, before: &ByteCounters, delivered: u64) -> Option<u64> {
        let mut linux = self.linux?;
        let known = linux.changing;
        let mut marked = None;
        if option.is_none() {
            if self.options == Options::Arrive {
                let counter = match known? {
                    Ecn::Ect0 => &mut self.bytes.ect0,
                    Ecn::Ect1 => &mut self.bytes.ect1,
                    _ => &mut self.bytes.ce,
                };
                *counter = (*counter + delivered as u32) % DIV_OPTION;
                marked = Some(if known == Some(Ecn::Ce) { delivered } else { 0 });
            }
            return marked;
        }
        let ByteCounters { ect0, ce, ect1 } = self.bytes;
        let changed = [(Ecn::Ect0, ect0, before.ect0), (Ecn::Ce, ce, before.ce), (Ecn::Ect1, ect1, before.ect1)]
            .map(|(ecn, now, before)| (now != before).then_some(ecn));
        let mut others = changed.into_iter().flatten().filter(|ecn| Some(*ecn) != known);
        match (others.next(), others.next()) {
            (_, Some(_)) => linux.changing = None,
            (other, None) => {
                linux.changing = other.or(known);
                marked = known.map(|_| u64::from((ce + DIV_OPTION - before.ce) % DIV_OPTION));
            }
        }
        self.linux = Some(linux);
        marked
    }

    /// True if the peer's options arrive, so that in the form of Linux all segments have one.
    pub fn has_options(&self) -> bool {
        self.linux.is_some_and(|linux| !linux.silent) && self.options == Options::Arrive
    }

    /// Says whether this side sends options at all.
    pub fn send_option(&mut self, option: bool) {
        if let Some(linux) = &mut self.linux {
            linux.silent = !option;
        }
    }
}
