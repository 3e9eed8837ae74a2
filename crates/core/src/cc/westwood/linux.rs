//! Westwood+ as the Linux kernel computes it (`net/ipv4/tcp_westwood.c`, Linux 6).
//!
//! ```text
//! growth   as the kernel's Reno
//! sample   b = bytes / D in whole bytes per tick, once D > max(RTT, HZ/20) ticks have passed; RTT rounded up
//! filter   f1 = (7 f1 + b) >> 3, f2 = (7 f2 + f1) >> 3; the first sample is the value of both
//! loss     ssthresh = max(cwnd >> 1, 2); at the end of recovery ssthresh = cwnd = max(f2 RTT_min / MSS, 2)
//! timeout  ssthresh = max(f2 RTT_min / MSS, 2); the next ACK begins a new RTT_min
//! ```
//!
//! DIFFERENCE: bytes are those delivered, SACKed ones included; the kernel counts a segment for each duplicate ACK, and
//! makes up for it when data is acknowledged. Pinned by `what_is_sacked_counts_once`.

use super::super::Ack;
use super::super::linux::{HZ, Ops, Socket, ticks, ticks_of};
use super::super::newreno::linux::{avoid, half};
use crate::units::Bytes;

/// TCP_WESTWOOD_RTT_MIN: the shortest time of a sample in ticks.
const SHORTEST: u64 = HZ / 20;
/// TCP_WESTWOOD_INIT_RTT in ticks.
const INITIAL_RTT: u64 = 20 * HZ;

/// Westwood+ of the kernel; times are in ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Westwood {
    /// f1 and f2 in bytes per tick: `bw_ns_est`, `bw_est`.
    filters: (u64, u64),
    /// Begin of the sample: `rtt_win_sx`; `None` before the first ACK.
    since: Option<u64>,
    /// Bytes of the sample: `bk`.
    bytes: u64,
    /// What was delivered by the last ACK; `None` before the first.
    delivered: Option<Bytes>,
    rtt: u64,
    rtt_min: u64,
    reset_rtt_min: bool,
}

fn low_pass(old: u64, new: u64) -> u64 {
    (7 * old + new) >> 3
}

impl Westwood {
    pub(super) fn new() -> Self {
        Self {
            filters: (0, 0),
            since: None,
            bytes: 0,
            delivered: None,
            rtt: INITIAL_RTT,
            rtt_min: INITIAL_RTT,
            reset_rtt_min: true,
        }
    }

    /// Ends the sample if it is long enough (`westwood_update_window`).
    fn end_sample(&mut self, now: u64) {
        // The connection began a round trip before its first ACK.
        let since = *self.since.get_or_insert(now.saturating_sub(self.rtt));
        let interval = now - since;
        if self.rtt == 0 || interval <= self.rtt.max(SHORTEST) {
            return;
        }
        let sample = self.bytes / interval;
        let (first, second) = self.filters;
        self.filters = if self.filters == (0, 0) {
            (sample, sample)
        } else {
            let first = low_pass(first, sample);
            (first, low_pass(second, first))
        };
        (self.bytes, self.since) = (0, Some(now));
    }

    /// What the path carries, in segments (`tcp_westwood_bw_rttmin`).
    fn carried(&self, socket: &Socket) -> u64 {
        (self.filters.1 * self.rtt_min / socket.mss.get()).max(2)
    }
}

impl Ops for Westwood {
    const EVERY_ACK: bool = true;

    fn acked(&mut self, _: &mut Socket, ack: &Ack, _: u64) {
        if let Some(rtt) = ack.rtt {
            self.rtt = ticks_of(rtt);
        }
        self.end_sample(ticks(ack.now));
        // The first ACK tells where to begin, and its own bytes do not count.
        let before = self.delivered.replace(ack.delivered).unwrap_or(ack.delivered);
        self.bytes += ack.delivered.saturating_sub(before).get();
        self.rtt_min = if std::mem::take(&mut self.reset_rtt_min) { self.rtt } else { self.rtt_min.min(self.rtt) };
    }

    fn avoid(&mut self, socket: &mut Socket, _: &Ack, acked: u64) {
        avoid(socket, acked);
    }

    fn ssthresh(&mut self, socket: &Socket) -> u64 {
        half(socket)
    }

    fn recovered(&mut self, socket: &mut Socket) {
        socket.ssthresh = self.carried(socket);
        socket.cwnd = socket.ssthresh;
    }

    fn timeout_reduced(&mut self, socket: &mut Socket) {
        socket.ssthresh = self.carried(socket);
        self.reset_rtt_min = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::driver::{self, MSS};
    use super::super::super::{CongestionControl, linux::Linux};
    use super::*;
    use crate::units::{Instant, Span};

    fn ack_at(ms: u64, delivered: u64) -> Ack {
        let now = Instant::ZERO + Span::from_millis(ms);
        Ack { now, delivered: delivered * MSS, ..driver::ack(MSS, 100) }
    }

    /// By hand, 100 ms, a connection that began at 0: the ACK at 100 ms says where to count from (its 100 ticks are not
    /// more than the round trip time). The ACK at 199 ms ends a sample of 199 ticks without a byte; the filters stay empty.
    /// The ACK at 300 ms ends one of 101 ticks with 20,000 bytes, 198 per tick; 198 100/1000 = 19.8 segments. Then 42,000
    /// in 102 ticks, 411: f1 = (7 198 + 411) >> 3 = 224, f2 = (7 198 + 224) >> 3 = 201.
    #[test]
    fn the_filter_by_hand() {
        let mut cc = Linux::with(Westwood::new(), &driver::SETUP);
        for (ms, delivered, filters) in
            [(100, 1, (0, 0)), (199, 11, (0, 0)), (299, 21, (0, 0)), (300, 22, (198, 198)), (400, 63, (198, 198))]
        {
            cc.on_ack(&ack_at(ms, delivered));
            assert_eq!(cc.ops.filters, filters, "{ms} ms");
        }
        cc.on_loss(&driver::loss(30 * MSS));
        assert_eq!(cc.ssthresh(), 7 * MSS, "half of 15 until recovery ends");
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (19 * MSS, 19 * MSS));
        cc.on_ack(&ack_at(402, 64));
        assert_eq!(cc.ops.filters, (224, 201));
    }

    /// Five duplicate ACKs with SACK, then the hole is filled: six segments were delivered, and six are counted.
    #[test]
    fn what_is_sacked_counts_once() {
        let mut cc = Linux::with(Westwood::new(), &driver::SETUP);
        cc.on_ack(&ack_at(1, 1));
        (2..7).for_each(|i| cc.on_recovery_ack(&ack_at(i, i)));
        cc.on_recovery_ack(&Ack { acked: 6 * MSS, ..ack_at(7, 7) });
        assert_eq!(cc.ops.bytes, 6 * MSS.get());
        assert!(cc.requirements().rate, "the endpoint reports ACKs in recovery");
    }
}
