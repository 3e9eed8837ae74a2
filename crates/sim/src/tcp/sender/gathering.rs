//! How the kernel gathers segments that leave as one packet and are segmented late (GSO): how many, and when it waits for the next
//! ACK because it could then send more at once (`tcp_tso_autosize`, `tcp_tso_should_defer` of `net/ipv4/tcp_output.c`, Linux 6.12).
//!
//! It sends at once if one of these holds, and else waits:
//!
//! - it repairs losses, or has sent nothing for a millisecond;
//! - the windows have room for all segments of a packet, or for a third of the window;
//! - the ACK of the oldest segment is more than a millisecond away, or more than half a round trip.
//!
//! DIFFERENCE: without RACK nobody knows when the oldest segment was sent, and the sender never waits. Pinned by
//! `without_the_times_of_segments_nothing_waits`.
//! DIFFERENCE: senders that pace do not wait. With it, BBR on drawn paths kept more packets waiting than on a kernel (30 % instead of
//! 9 % on path 28, 12 % instead of 0 % on path 10 of docs/results/verify-tcp-linux.md); why is not known. Pinned by
//! `who_paces_does_not_wait`.

use super::{Phase, Sender, TcpConfig};
use crate::tcp::needs::together;
use penstock_core::cc::CongestionControl;
use penstock_core::units::{Instant, Rate, Span};

const MILLISECOND: Span = Span::from_millis(1);
const SMALLEST: u64 = 536; // TCP_MSS_DEFAULT
const LEAST: u64 = 68 - 32; // what the smallest packet carries (RFC 791) behind a header with timestamps
const ACCECN_OPTION: u64 = 12; // three counters, padded
const MIN_SEGMENTS: u64 = 2; // sysctl_tcp_min_tso_segs
const WINDOW_DIVISOR: u64 = 3; // sysctl_tcp_tso_win_divisor

impl Sender {
    /// Returns the largest segment: with the kernel no more than half of the largest window that the peer ever had, or all of a
    /// window of up to 536 bytes (`tcp_bound_to_half_wnd`).
    ///
    /// DIFFERENCE: the congestion window counts full segments all the same; that of the kernel counts these. Windows that are so
    /// small leave it no say. Pinned by `segments_are_half_of_a_tiny_window`.
    #[inline]
    pub(super) fn segment_size(&self) -> u64 {
        let largest = u64::from(self.peer.largest);
        // The option of Accurate ECN takes its room from the payload (`tcp_current_mss`).
        let option = if self.accurate.as_ref().is_some_and(|marks| marks.has_options()) { ACCECN_OPTION } else { 0 };
        let mss = self.mss.saturating_sub(option).max(LEAST);
        if !self.kernel || largest >= 2 * self.mss || largest == 0 {
            return mss;
        }
        let half = if largest > SMALLEST { largest / 2 } else { largest };
        mss.min(half.max(LEAST))
    }

    /// Returns the rate of `tcp_update_pacing_rate`, which sizes packets also where nothing paces: 120 % of a window in each round
    /// trip, 200 % in the first half of slow start.
    fn rate_of_the_window(&self) -> Rate {
        let cwnd = self.cc.cwnd().get();
        let percent = if cwnd < self.cc.ssthresh().get() / 2 { 200 } else { 120 };
        let bits = u128::from(cwnd.max(self.flight())) * 8 * percent / 100;
        let per_second = bits * 1_000_000_000 / u128::from(self.rtt.srtt().as_nanos().max(1));
        Rate::from_bps(u64::try_from(per_second).unwrap_or(u64::MAX))
    }

    /// Returns how many segments the kernel sends as one packet where nothing paces.
    fn most_together(&self) -> u64 {
        together(self.rate_of_the_window(), self.rtt.min_rtt(), self.segment_size()).max(MIN_SEGMENTS)
    }

    /// Counts a segment that leaves: `new` ones go on with the group of the last one, or begin the next.
    #[cold]
    pub(super) fn note_group(&mut self, new: bool, now: Instant) {
        self.group = match (new, self.group) {
            (false, _) => 0,
            (true, left @ 1..) if self.last_sent == now => left - 1,
            (true, _) => {
                let half = (self.cc.cwnd().get() / (2 * self.mss)).max(1);
                (self.most_together().min(half) - 1) as u16
            }
        };
    }

    /// True if the kernel waits for the next ACK instead of sending what the windows have room for: `usable` bytes of the peer's.
    pub(super) fn waits_for_more(&mut self, usable: u64, config: &TcpConfig, now: Instant) -> bool {
        let repairs = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let paces = self.cc.pacing_rate().is_some();
        if repairs || paces || self.ends_a_group() || now.since(self.last_sent) > MILLISECOND {
            return false;
        }
        let Some(oldest) = self.board.rack.as_ref().and_then(|rack| rack.oldest()) else { return false };
        let (cwnd, left) = (self.cc.cwnd().get(), self.app_end - self.nxt);
        let room = self.window(config).saturating_sub(self.pipe);
        let limit = usable.min(room);
        let window = cwnd.min(self.edge().saturating_sub(self.una));
        let packet = self.most_together() * self.segment_size();
        if left <= self.segment_size() || limit >= packet.min(left).min(window / WINDOW_DIVISOR) {
            return false;
        }
        let srtt = self.rtt.srtt();
        let soon = MILLISECOND.min(srtt.div(2));
        let waits = oldest + srtt <= now + soon;
        if waits && room < usable {
            self.note_full();
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::cc::{AnyControlConfig, Begin, Notice};

    fn config(rack: bool) -> TcpConfig {
        let cc = AnyControlConfig::default_of("cubic-linux").expect("there is one");
        TcpConfig { cc, rack, ..TcpConfig::default() }
    }

    /// A sender with ten segments in flight since time 0 and a round trip of 10 ms, that has sent something at 9.6 ms; the window has
    /// room for `room` bytes more.
    fn sender(config: &TcpConfig, room: u64) -> Sender {
        let mut sender = Sender::new(config, 1);
        let flight = 10 * sender.mss;
        sender.rtt.sample(Span::from_millis(10), Instant::ZERO);
        sender.app_end += 1_000_000;
        if let Some(rack) = &mut sender.board.rack {
            rack.sent(sender.nxt..sender.nxt + flight, Instant::ZERO);
        }
        sender.nxt += flight;
        sender.pipe = sender.cc.cwnd().get() - room;
        sender.peer.largest = 1 << 20;
        sender.peer.edge = (sender.nxt + (1 << 20)) as u32;
        sender.last_sent = at(9_600);
        sender
    }

    fn at(us: u64) -> Instant {
        Instant::ZERO + Span::from_micros(us)
    }

    /// tcp_tso_should_defer by hand, one condition after the other.
    #[test]
    fn a_sender_waits_where_the_kernel_does() {
        let config = config(true);
        let mss = config.mss.get();
        let waits = |room: u64, now: u64, change: fn(&mut Sender)| {
            let mut sender = sender(&config, room);
            change(&mut sender);
            let usable = sender.edge() - sender.nxt;
            let waits = sender.waits_for_more(usable, &config, at(now));
            let full = sender.usage.lets_grow(u64::MAX, false);
            assert_eq!(full, waits, "the congestion window is what limits it");
            waits
        };
        let as_it_is: fn(&mut Sender) = |_| ();
        assert!(waits(mss, 10_000, as_it_is), "room for one of two segments, and the ACK is due");
        assert!(!waits(2 * mss, 10_000, as_it_is), "room for both");
        assert!(!waits(mss, 10_601, as_it_is), "nothing was sent for a millisecond");
        assert!(!waits(mss, 10_000, |sender| sender.phase = Phase::Recovery), "losses are repaired");
        assert!(!waits(mss, 10_000, |sender| sender.app_end = sender.nxt + sender.mss), "it is the last segment");
        let third: fn(&mut Sender) = |sender| {
            sender.una = sender.nxt - sender.mss;
            sender.peer.edge = (sender.nxt + sender.mss) as u32;
        };
        assert!(!waits(mss, 10_000, third), "room for more than a third of the window");
        let early: fn(&mut Sender) = |sender| sender.last_sent = at(8_500);
        assert!(waits(mss, 9_000, early) && !waits(mss, 8_999, early), "the ACK is due within a millisecond");
        assert!(
            !waits(mss, 10_000, |sender| (sender.group, sender.last_sent) = (1, at(10_000))),
            "the second of a packet"
        );
    }

    #[test]
    fn without_the_times_of_segments_nothing_waits() {
        let config = config(false);
        let mut sender = sender(&config, config.mss.get());
        assert!(!sender.waits_for_more(1 << 20, &config, at(10_000)));
    }

    /// tcp_tso_autosize and tcp_cwnd_test by hand: 120 % of ten segments in 10 ms are 1.7 segments in 1/1024 s, but two leave at least; in
    /// 1 ms they are 17, and no more than half of the window leaves together. A retransmission ends a group.
    #[test]
    fn a_group_is_what_the_kernel_sends_as_one_packet() {
        let config = config(true);
        for (rtt_ms, group) in [(10, 2), (1, 5)] {
            let mut sender = Sender::new(&config, 1);
            sender.rtt.sample(Span::from_millis(rtt_ms), Instant::ZERO);
            let mut left = Vec::new();
            for _ in 0..=group {
                sender.note_group(true, at(0));
                sender.last_sent = at(0);
                left.push(u64::from(sender.group));
            }
            assert_eq!(left, (0..group).rev().chain([group - 1]).collect::<Vec<_>>(), "{rtt_ms} ms");
            sender.note_group(false, at(0));
            assert_eq!(sender.group, 0);
        }
    }

    /// is_cwnd_limited by hand: who waits although the window has room uses all of it, and the window grows.
    #[test]
    fn the_window_of_who_waits_grows() {
        let config = config(true);
        let grown = |gathers: bool| {
            let mut sender = sender(&config, 0);
            let cwnd = sender.cc.cwnd().get();
            if gathers {
                sender.note_full();
            }
            sender.grow(2 * sender.mss, cwnd / 2 - sender.mss, Some(Span::from_millis(10)), false, at(20_000));
            sender.cc.cwnd().get() > cwnd
        };
        assert_eq!([grown(false), grown(true)], [false, true]);
    }

    #[test]
    fn who_paces_does_not_wait() {
        let paces = AnyControlConfig::default_of("bbr3").expect("there is one");
        let config = TcpConfig { cc: paces, ..config(true) };
        let mut sender = sender(&config, config.mss.get());
        sender.kernel = true;
        let (now, srtt, sack) = (Instant::ZERO, sender.rtt.srtt(), true);
        sender.cc.on_notice(&Notice::Begin(Begin { now, srtt, sack }));
        assert!(sender.cc.pacing_rate().is_some());
        assert!(!sender.waits_for_more(1 << 20, &config, at(10_000)));
    }

    /// tcp_bound_to_half_wnd by hand; the congestion window stays one of ten full segments.
    #[test]
    fn segments_are_half_of_a_tiny_window() {
        let config = config(true);
        let mut sender = sender(&config, 0);
        let mss = sender.mss;
        for (window, size) in [(0, mss), (20, 36), (500, 500), (537, 268), (1460, 730), (1 << 16, mss)] {
            sender.peer.largest = window;
            assert_eq!(sender.segment_size(), size, "a window of {window}");
        }
        sender.peer.largest = 1460;
        assert_eq!(sender.cc.cwnd().get(), 10 * mss);
        sender.kernel = false;
        assert_eq!(sender.segment_size(), mss, "RFC 9293 says nothing of it");
    }
}
