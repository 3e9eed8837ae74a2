//! What the sender does with the feedback of Accurate ECN (RFC 9768), whose counters are in `accecn.rs`.

use super::{Phase, Sender};
use crate::segment::Segment;
use crate::tcp::accecn::Acknowledged;
use penstock_core::cc::{CongestionControl, Loss};
use penstock_core::packet::TcpFlags;
use penstock_core::units::Instant;

impl Sender {
    /// Notes whether an ACK tells of congestion; `delivered` bytes were acknowledged or SACKed for the first time.
    #[inline]
    pub(super) fn hear(&mut self, segment: &Segment, delivered: u64) {
        let Some(marks) = &mut self.accurate else {
            self.echoed = segment.flags.has(TcpFlags::ECE);
            return;
        };
        self.echoed = marks.take(segment, Acknowledged { bytes: delivered, mss: self.mss });
        if self.phase != Phase::Open {
            marks.forget(); // a control counts marks outside of recovery, as it counts acknowledged bytes
        }
    }

    /// False if Accurate ECN has found that ECT must not be sent.
    #[inline]
    pub(in crate::tcp) fn sends_ect(&self) -> bool {
        self.accurate.as_ref().is_none_or(|marks| marks.sends_ect())
    }

    /// Reduces the first window, because the SYN or SYN-ACK of this side was marked (RFC 9768 §3.2.2.2).
    pub(in crate::tcp) fn greeting_was_marked(&mut self, now: Instant) {
        self.counters.reductions += 1;
        self.reduced_at = self.nxt;
        self.cc.on_loss(&Loss { now, in_flight: self.cc.cwnd(), ecn: true });
        self.cc.on_recovered(now);
    }
}
