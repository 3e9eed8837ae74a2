//! Recovery without SACK as Linux has it (`net/ipv4/tcp_input.c` of Linux 6.12): SACK is emulated by counting.
//!
//! A duplicate ACK says that a segment beyond the gap arrived, though not which. So it counts as a SACKed segment
//! (`tcp_add_reno_sack`): what is in flight, the rate samples and proportional rate reduction use the count as they use
//! the scoreboard. A partial ACK covers one gap, and all else that it covers was counted before
//! (`tcp_remove_reno_sacks`). It marks the next segment as lost (`tcp_newreno_mark_lost`), which is retransmitted when
//! the window allows, and restarts the timer: one gap is filled per round trip, the slow-but-steady variant of RFC 6582
//! §4.
//!
//! DIFFERENCE: Linux raises its threshold of three duplicate ACKs when it counts more segments than are in flight, undoes
//! reductions whose retransmission was needless, and sends two new segments before it retransmits after a timeout
//! (RFC 5682). Here the count is bounded, and the rest is left out. Pinned by `more_duplicates_than_segments_do_not_count`.

use super::{Delivery, Sender, TcpConfig};
use crate::tcp::config::WithoutSack;
use penstock_core::cc::CongestionControl;

/// The count of segments that duplicate ACKs reported, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct EmulatedSack {
    pub(super) bytes: u64,
}

impl EmulatedSack {
    /// Creates the count of a new connection; `None` if the options call for another recovery.
    pub(super) fn of(config: &TcpConfig) -> Option<Self> {
        (config.without_sack == WithoutSack::Linux).then(Self::default)
    }

    /// Returns the bytes of the flight that have left the network: those counted, and the segment that is lost and waits
    /// for its retransmission.
    pub(super) fn gone(&self, mss: u64, waiting: bool) -> u64 {
        self.bytes + if waiting { mss } else { 0 }
    }
}

impl Sender {
    /// Counts a duplicate ACK; returns the bytes that it reports. At least one segment of the flight is missing.
    pub(super) fn count_duplicate(&mut self) -> u64 {
        let room = self.flight().saturating_sub(self.mss);
        let Some(emulated) = &mut self.emulated else { return 0 };
        let before = emulated.bytes;
        emulated.bytes = (before + self.mss).min(room).max(before);
        let counted = emulated.bytes - before;
        self.count_pipe();
        counted
    }

    /// Takes off the count what a cumulative ACK of `acked` bytes covers besides the gap; returns it.
    pub(super) fn already_counted(&mut self, acked: u64) -> u64 {
        let covered = acked.saturating_sub(self.mss);
        let room = self.flight().saturating_sub(acked + self.mss);
        let Some(emulated) = &mut self.emulated else { return 0 };
        let counted = emulated.bytes.min(covered);
        emulated.bytes = (emulated.bytes - counted).min(room);
        counted
    }

    /// Begins to count anew, where a recovery ends or new data is acknowledged outside of it.
    pub(super) fn forget_emulated(&mut self) {
        if let Some(emulated) = &mut self.emulated {
            emulated.bytes = 0;
        }
    }

    /// Handles an ACK within recovery: a partial one marks the next segment as lost.
    pub(super) fn on_emulated_ack(&mut self, acked: u64, delivered: u64, config: &TcpConfig) {
        self.forced |= acked > 0;
        self.count_pipe();
        if self.requirements().own_recovery {
            self.recovery_window = self.cc.cwnd().get();
        } else if config.prr {
            self.recovery_window = self.reduced_proportionally(Delivery { bytes: delivered, safe: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;
    use penstock_core::packet::TcpFlags;
    use penstock_core::units::Instant;

    /// Four segments are in flight, one of which is missing: no more than three can have arrived.
    #[test]
    fn more_duplicates_than_segments_do_not_count() {
        let config = TcpConfig { sack: false, without_sack: WithoutSack::Linux, ..TcpConfig::default() };
        let mut sender = Sender::new(&config, 1);
        sender.nxt += 4 * sender.mss;
        let counted: u64 = (0..6).map(|_| sender.count_duplicate()).sum();
        assert_eq!((counted, sender.pipe), (3 * sender.mss, sender.mss));
        assert_eq!(sender.already_counted(2 * sender.mss), sender.mss, "the gap and one counted segment");
        assert_eq!(sender.sacked(), sender.mss, "of the two left, one is missing");
    }

    /// RFC 3042: the first two duplicate ACKs allow a segment each, and no further one does.
    #[test]
    fn two_duplicates_allow_a_segment_each() {
        let config = TcpConfig { sack: false, limited_transmit: true, ..TcpConfig::default() };
        let mut sender = Sender::new(&config, 1);
        let cwnd = sender.window(&config);
        let windows = [1, 2, 3].map(|dupacks| {
            sender.dupacks = dupacks;
            (sender.window(&config) - cwnd) / sender.mss
        });
        assert_eq!(windows, [1, 2, 2]);
    }

    /// RFC 9293 §3.10.7.4: neither an ACK of what was not sent nor one of long ago changes anything, not even the window.
    #[test]
    fn an_ack_that_cannot_be_changes_nothing() {
        let config = TcpConfig::default();
        let mut sender = Sender::new(&config, 1);
        sender.nxt += 4 * sender.mss;
        let before = (sender.una, sender.edge);
        for ack in [sender.una - 1, sender.nxt + 1] {
            let mut segment = Segment::tcp(0, false, TcpFlags::ACK);
            (segment.ack, segment.window) = (ack as u32, 100);
            assert_eq!(sender.on_ack(&segment, &config, Instant::ZERO), None);
            assert_eq!((sender.una, sender.edge), before);
        }
    }
}
