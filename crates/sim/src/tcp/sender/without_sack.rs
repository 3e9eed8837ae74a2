//! Recovery without SACK as Linux has it (`net/ipv4/tcp_input.c` of Linux 6.12): SACK is emulated by counting.
//!
//! A duplicate ACK says that a segment beyond the gap arrived, though not which. So it counts as a SACKed segment
//! (`tcp_add_reno_sack`): what is in flight, the rate samples and proportional rate reduction use the count as they use
//! the scoreboard. A partial ACK covers one gap, and all else that it covers was counted before
//! (`tcp_remove_reno_sacks`). It marks the next segment as lost (`tcp_newreno_mark_lost`), which is retransmitted when
//! the window allows, and restarts the timer: one gap is filled per round trip, the slow-but-steady variant of RFC 6582
//! §4.
//!
//! More duplicates than segments can have arrived are taken for reordering: the count stays within the flight less what is
//! lost, and from then on only as many duplicates as the flight had segments, 300 at most, make a loss
//! (`tcp_check_reno_reordering`). The kernel never lowers that threshold again without SACK. Recovery ends with the first ACK
//! above its flight, not at its end (`tcp_is_non_sack_preventing_reopen`). After a timeout duplicates count only if new data
//! was sent (`tcp_process_loss`).
//!
//! DIFFERENCE: Linux undoes a recovery whose retransmission was needless; here only a timeout is undone. Pinned by the
//! ladder `new data comes before retransmissions after a timeout`.

use super::{DUP_THRESH, Delivery, Phase, Sender, TcpConfig};
use crate::tcp::config::WithoutSack;
use penstock_core::cc::CongestionControl;

/// The count of segments that duplicate ACKs reported, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EmulatedSack {
    pub(super) bytes: u64,
    /// Counted segments that make a loss (`reordering`).
    threshold: u64,
}

/// The largest threshold (`tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;

impl EmulatedSack {
    /// Bounds the count where `flight` bytes are in flight, of which `lost` are lost; more is reordering, and `acked` bytes
    /// were just acknowledged.
    fn bound(&mut self, flight: u64, lost: u64, acked: u64, mss: u64) {
        let holes = lost.max(mss).min(flight);
        if self.bytes + holes > flight {
            self.bytes = flight - holes;
            self.threshold = ((flight + acked) / mss).min(MAX_REORDERING);
        }
    }

    /// True if enough is counted for a loss (`tcp_newreno_mark_lost`).
    pub(super) fn shows_loss(&self, mss: u64) -> bool {
        self.bytes >= self.threshold * mss
    }
}

impl EmulatedSack {
    /// Creates the count of a new connection; `None` if the options call for another recovery.
    pub(super) fn of(config: &TcpConfig) -> Option<Self> {
        let new = Self { bytes: 0, threshold: u64::from(DUP_THRESH) };
        (config.without_sack == WithoutSack::Linux).then_some(new)
    }

    /// Returns the bytes of the flight that have left the network: those counted, and the segment that is lost and waits
    /// for its retransmission.
    pub(super) fn gone(&self, mss: u64, waiting: bool) -> u64 {
        self.bytes + if waiting { mss } else { 0 }
    }
}

impl Sender {
    /// Returns the bytes that count as lost until they are acknowledged (`lost_out`).
    fn lost_without_sack(&self) -> u64 {
        match self.phase {
            Phase::Open | Phase::Cwr => 0,
            Phase::Recovery => self.mss,
            Phase::Loss => self.board.lost_edge().saturating_sub(self.una),
        }
    }

    /// Counts a duplicate ACK; returns the bytes that it reports. At least one segment of the flight is missing.
    pub(super) fn count_duplicate(&mut self) -> u64 {
        let (flight, lost, mss) = (self.flight(), self.lost_without_sack(), self.mss);
        let counts = self.phase != Phase::Loss || self.nxt > self.recover;
        let Some(emulated) = self.emulated.as_mut().filter(|_| counts) else { return 0 };
        let before = emulated.bytes;
        emulated.bytes += mss;
        emulated.bound(flight, lost, 0, mss);
        let counted = emulated.bytes.saturating_sub(before);
        self.count_pipe();
        if let Some(ledger) = self.ledger() {
            ledger.counted(counted);
        }
        counted
    }

    /// Takes off the count what a cumulative ACK of `acked` bytes covers besides the gap; returns it (`tcp_remove_reno_sacks`).
    pub(super) fn already_counted(&mut self, acked: u64) -> u64 {
        let covered = acked.saturating_sub(self.mss);
        let (flight, lost) = (self.flight().saturating_sub(acked), self.lost_without_sack().saturating_sub(acked));
        let mss = self.mss;
        let Some(emulated) = &mut self.emulated else { return 0 };
        let counted = emulated.bytes.min(covered);
        emulated.bytes -= counted;
        if flight > 0 || emulated.bytes > 0 {
            emulated.bound(flight, lost, acked, mss);
        }
        counted
    }

    /// True if an ACK at the end of the recovery changes nothing yet (`tcp_is_non_sack_preventing_reopen`).
    pub(super) fn holds_its_state(&self) -> bool {
        self.emulated.is_some() && self.una == self.recover && matches!(self.phase, Phase::Recovery | Phase::Loss)
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
        let threshold = sender.emulated.map(|emulated| emulated.threshold);
        assert_eq!(threshold, Some(4), "tcp_check_reno_reordering: as many as were in flight");
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
