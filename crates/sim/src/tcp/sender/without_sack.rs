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
//! A recovery or a timeout is needless if an ACK moves on and echoes a time before the first retransmission of the episode
//! (`tcp_packet_delayed`). The kernel undoes it once nothing that was sent again is in flight, and until then sends only new
//! data (`tcp_try_undo_partial`); after a timeout it takes back that all is lost and stays in the state Loss
//! (`tcp_try_undo_loss`). So do controls with [`Requirements::kernel`](penstock_core::cc::Requirements).

use super::{DUP_THRESH, Delivery, Phase, Sender, TcpConfig};
use crate::tcp::config::WithoutSack;
use crate::tcp::sequence;
use penstock_core::cc::{CongestionControl, Notice};
use penstock_core::units::Instant;

/// The count of segments that duplicate ACKs reported, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EmulatedSack {
    pub(super) bytes: u64,
    /// Counted segments that make a loss (`reordering`).
    threshold: u64,
    /// The number after the last byte that was ever sent again (`TCPCB_EVER_RETRANS`).
    again_end: u64,
    /// When the first retransmission of the episode was sent (`retrans_stamp`).
    first_again: Option<Instant>,
    /// The episode has reduced the window, which was not taken back (`undo_marker`).
    may_undo: bool,
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
    pub(super) fn of(config: &TcpConfig) -> Option<Box<Self>> {
        let new = Self { bytes: 0, threshold: u64::from(DUP_THRESH), again_end: 0, first_again: None, may_undo: false };
        (config.without_sack == WithoutSack::Linux).then(|| Box::new(new))
    }

    /// Records what is sent again.
    pub(super) fn sent_again(&mut self, end: u64, now: Instant) {
        self.again_end = self.again_end.max(end);
        self.first_again.get_or_insert(now);
    }

    /// True if what begins at `una` was never sent again.
    pub(super) fn is_original(&self, una: u64) -> bool {
        una >= self.again_end
    }

    /// True if an ACK up to `una` that moved on shows that the episode, which ends at `recover`, is needless
    /// (`tcp_packet_delayed`).
    fn shows_needless(&self, echo: Option<u32>, una: u64, recover: u64) -> bool {
        let delayed = match self.first_again {
            Some(first) => echo.is_some_and(|echo| sequence::is_before(echo, first)),
            None => una < recover,
        };
        self.may_undo && delayed
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

    /// Forgets when the first retransmission was sent if the flight begins with what was never sent again
    /// (`tcp_retrans_stamp_cleanup`).
    pub(super) fn forget_first_again(&mut self) {
        let una = self.una;
        if let Some(emulated) = self.emulated.as_mut().filter(|emulated| emulated.is_original(una)) {
            emulated.first_again = None;
        }
    }

    /// Notes that the window is reduced, so that it can be undone (`tcp_init_undo`), or that this was done.
    pub(super) fn set_may_undo(&mut self, may_undo: bool) {
        if let Some(emulated) = &mut self.emulated {
            emulated.may_undo = may_undo;
        }
    }

    /// True if this ACK, which moves on, shows that the recovery or the timeout was needless.
    pub(super) fn shows_needless(&self, echo: Option<u32>) -> bool {
        let (kernel, una, recover) = (self.kernel, self.una, self.recover);
        kernel && self.emulated.as_ref().is_some_and(|emulated| emulated.shows_needless(echo, una, recover))
    }

    /// Handles an ACK that shows a recovery to be needless: undoes it, or waits until what was sent again is acknowledged.
    /// What came late raises the threshold (`tcp_check_sack_reordering`, for which the highest SACK is here the first segment).
    pub(super) fn on_needless(&mut self, acked: u64, delivered: u64, config: &TcpConfig, now: Instant) {
        if let Some(emulated) = &mut self.emulated {
            emulated.threshold = emulated.threshold.max(acked.div_ceil(self.mss).min(MAX_REORDERING));
        }
        if self.board.any_again(self.una) {
            self.on_emulated_ack(acked, delivered, config);
            self.forced = false;
            self.count_pipe();
            return;
        }
        self.take_back(now);
        self.detect_loss(delivered, config, now);
    }

    /// Undoes what this episode did, once.
    pub(super) fn take_back(&mut self, now: Instant) {
        self.set_may_undo(false);
        self.undo(now);
    }

    /// Undoes what this episode did, and stays in its state (`tcp_try_undo_loss` in Loss, and what
    /// `tcp_is_non_sack_preventing_reopen` holds).
    pub(super) fn take_back_in_state(&mut self, now: Instant) {
        self.set_may_undo(false);
        self.hold_nothing_for_lost();
        self.cc.on_notice(&Notice::Spurious(now));
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
        let threshold = sender.emulated.as_ref().map(|emulated| emulated.threshold);
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
        let before = (sender.una, sender.edge());
        for ack in [sender.una - 1, sender.nxt + 1] {
            let mut segment = Segment::tcp(0, false, TcpFlags::ACK);
            (segment.ack, segment.window) = (ack as u32, 100);
            assert_eq!(sender.on_ack(&segment, &config, Instant::ZERO), None);
            assert_eq!((sender.una, sender.edge()), before);
        }
    }
}
