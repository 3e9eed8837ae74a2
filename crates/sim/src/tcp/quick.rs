//! When the receiver of the Linux kernel acknowledges at once, and when it waits for more (`net/ipv4/tcp_input.c`, Linux 6.12).
//!
//! ```text
//! quick ACKs   the first 16 segments, 16 after a pause longer than its timeout, 16 after a segment that it has already,
//!              2 with the first CE mark                        tcp_event_data_recv, tcp_enter_quickack_mode
//! compression  from the fourth ACK on for the same gap, what arrives out of order is acknowledged together, after
//!              min(1 ms, RTT/20) and 100 us, or 44 segments     __tcp_ack_snd_check
//! ```
//!
//! All else is RFC 5681 §4.2: every second segment, a gap that closes, a delayed ACK. The 100 us are the slack of the kernel's timer
//! (`tcp_comp_sack_slack_ns`), which it takes if nothing else wakes the machine.

use super::config::{Acknowledging, TcpConfig};
use super::growing::Growing;
use penstock_core::units::{Instant, Span};

/// Segments that are acknowledged at once at the beginning (`TCP_MAX_QUICKACKS`).
pub const MAX_QUICK: u8 = 16;
/// ACKs for one gap that are not held back (`TCP_FASTRETRANS_THRESH`).
const UNCOMPRESSED: u8 = 3;
/// Segments that one compressed ACK reports at most (`tcp_comp_sack_nr`).
const MOST_COMPRESSED: u8 = 44;
/// `tcp_comp_sack_delay_ns`.
const LONGEST_COMPRESSION: Span = Span::from_millis(1);
/// `tcp_comp_sack_slack_ns`.
const SLACK: Span = Span::from_micros(100);

/// The state of a receiver that acknowledges as Linux, or whose window grows as there.
#[derive(Debug, Clone, PartialEq)]
pub struct QuickAcks {
    /// False for a receiver that follows RFC 5681, and has only the window of Linux.
    acknowledges: bool,
    /// The window that grows; `None` for one that is always the buffer.
    pub window: Option<Growing>,
    /// ACKs that are sent at once (`icsk_ack.quick`).
    left: u8,
    /// When in-order data arrived last; `None` before the first.
    arrived: Option<Instant>,
    /// ACKs for the gap at `gap` (`dup_ack_counter`), and segments that wait for a compressed one.
    duplicates: u8,
    compressed: u8,
    gap: u64,
    /// Round trip time and timeout of this side.
    rtt: Span,
    rto: Span,
}

impl QuickAcks {
    /// Creates the state of a new connection that expects the number `next`, if the options ask for it.
    pub fn of(config: &TcpConfig, next: u64) -> Option<Box<Self>> {
        let new = Self {
            acknowledges: config.acknowledging == Acknowledging::Linux,
            window: Growing::of(config, next),
            left: 0,
            arrived: None,
            duplicates: 0,
            compressed: 0,
            gap: 0,
            rtt: Span::ZERO,
            rto: Span::from_secs(1),
        };
        (new.acknowledges || new.window.is_some()).then(|| Box::new(new))
    }

    /// True if the receiver acknowledges as Linux.
    pub fn acknowledges(&self) -> bool {
        self.acknowledges
    }

    /// Takes the round trip time and the timeout of this side.
    pub fn measured(&mut self, rtt: Span, rto: Span) {
        (self.rtt, self.rto) = (rtt, rto);
    }

    /// Acknowledges the next `n` segments at once.
    pub fn begin(&mut self, n: u8) {
        self.left = self.left.max(n);
    }

    /// True if data has arrived.
    pub fn has_heard(&self) -> bool {
        self.arrived.is_some()
    }

    /// Takes a segment in order; true if it is acknowledged at once.
    pub fn in_order(&mut self, now: Instant) -> bool {
        if self.arrived.is_none_or(|before| now.since(before) > self.rto) {
            self.begin(MAX_QUICK);
        }
        self.arrived = Some(now);
        self.acknowledges && self.left > 0
    }

    /// Takes a segment out of order, where `next` is expected: `None` if it is acknowledged at once, else when the ACK is due.
    pub fn out_of_order(&mut self, next: u64, sack: bool, now: Instant) -> Option<Instant> {
        if !self.acknowledges || self.left > 0 || !sack || self.compressed >= MOST_COMPRESSED {
            return None;
        }
        if self.gap != next {
            (self.gap, self.duplicates) = (next, 0);
        }
        if self.duplicates < UNCOMPRESSED {
            self.duplicates += 1;
            return None;
        }
        self.compressed += 1;
        let delay = self.rtt.div(20).min(LONGEST_COMPRESSION) + SLACK;
        Some(if self.compressed == 1 { now + delay } else { Instant::MAX })
    }

    /// Records that an ACK was sent.
    pub fn acknowledged(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.compressed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Span::from_micros(us)
    }

    fn quick() -> Box<QuickAcks> {
        let config = TcpConfig { acknowledging: Acknowledging::Linux, ..TcpConfig::default() };
        let mut quick = QuickAcks::of(&config, 1).expect("asked for");
        quick.measured(Span::from_millis(40), Span::from_millis(240));
        quick
    }

    /// Which of these segments in order are acknowledged at once, each of those with an ACK.
    fn at_once(quick: &mut QuickAcks, times: impl IntoIterator<Item = u64>) -> usize {
        let one = |us| {
            let now = quick.in_order(at(us));
            if now {
                quick.acknowledged();
            }
            usize::from(now)
        };
        times.into_iter().map(one).sum()
    }

    /// `tcp_event_data_recv`: TCP_MAX_QUICKACKS at the beginning, and again after a pause longer than the timeout.
    #[test]
    fn the_first_sixteen_segments_and_those_after_a_pause_are_acknowledged_at_once() {
        let mut quick = quick();
        assert_eq!(at_once(&mut quick, (0..30).map(|n| n * 1000)), 16);
        assert_eq!(at_once(&mut quick, [29_000 + 240_000]), 0, "no longer than the timeout");
        assert_eq!(at_once(&mut quick, (0..30).map(|n| 600_000 + n * 1000)), 16);
    }

    /// `__tcp_ack_snd_check`: three ACKs for a gap, then one after RTT/20, which is 1 ms at 20 ms or more, and 100 us.
    #[test]
    fn out_of_order_segments_are_acknowledged_together_from_the_fourth_on() {
        let mut quick = quick();
        at_once(&mut quick, (0..16).map(|n| n * 10));
        for _ in 0..3 {
            assert_eq!(quick.out_of_order(5000, true, at(1000)), None);
            quick.acknowledged();
        }
        assert_eq!(quick.out_of_order(5000, true, at(1100)), Some(at(2200)));
        assert_eq!(quick.out_of_order(5000, true, at(1200)), Some(Instant::MAX), "the timer runs");
        quick.acknowledged();
        assert_eq!(quick.out_of_order(5000, true, at(2200)), Some(at(3300)));
        assert_eq!(quick.out_of_order(7000, true, at(2300)), None, "another gap");
        quick.measured(Span::from_millis(10), Span::from_millis(210));
        (0..2).for_each(|_| assert_eq!(quick.out_of_order(7000, true, at(3000)), None));
        quick.acknowledged();
        assert_eq!(quick.out_of_order(7000, true, at(3000)), Some(at(3600)), "RTT/20 and 100 us");
    }

    #[test]
    fn forty_four_wait_and_no_more_and_without_sack_none() {
        let mut quick = quick();
        at_once(&mut quick, (0..16).map(|n| n * 10));
        (0..3).for_each(|_| assert_eq!(quick.out_of_order(5000, true, at(0)), None));
        (0..44).for_each(|_| assert!(quick.out_of_order(5000, true, at(0)).is_some()));
        assert_eq!(quick.out_of_order(5000, true, at(0)), None);
        quick.acknowledged();
        assert_eq!(quick.out_of_order(5000, false, at(0)), None);
    }
}
