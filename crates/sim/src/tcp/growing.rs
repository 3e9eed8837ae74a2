//! The receive window of Linux, which grows with what arrives (`net/ipv4/tcp_input.c`, `tcp_output.c`, Linux 6.12).
//!
//! ```text
//! start     half of tcp_rmem[1], 131072 bytes, in whole segments: 64240 of 1460        tcp_select_initial_window
//! segment   window + 2 segments, up to half of the buffer                              tcp_grow_window
//! each RTT  copied > copied before:  w = 2 copied + 16 segments,
//!           w += 2 w (copied - before) / before;  buffer >= 2 w, at most tcp_rmem[2]    tcp_rcv_space_adjust
//! RTT       mean of the times since the timestamps that full segments echo, an eighth of each new one; without
//!           timestamps the least time in which a window of data came                    tcp_rcv_rtt_update
//! ```
//!
//! A buffer lets half of its size be advertised (`TCP_DEFAULT_SCALING_RATIO`); `receive_buffer` is the largest window, so
//! `tcp_rmem[2]` is twice as much. While the window grows, the next segment is acknowledged at once.
//!
//! DIFFERENCE: the ratio of window and buffer stays one half; the kernel adapts it to the memory of the segments that arrive, which
//! is a matter of drivers. Pinned by `a_bulk_transfer_doubles_the_window_until_the_buffer_is_full`.
//!
//! Invariant: the window never becomes smaller.

use super::config::{ReceiveWindow, TIMESTAMPS, TcpConfig};
use super::sequence::timestamp;
use crate::segment::Segment;
use penstock_core::units::{Instant, Span};

/// `tcp_rmem[1]`.
const FIRST_BUFFER: u64 = 131_072;
/// Segments of which the first measurement begins (`TCP_INIT_CWND`).
const FIRST_SEGMENTS: u64 = 10;

/// The state of a receiver whose window grows.
#[derive(Debug, Clone, PartialEq)]
pub struct Growing {
    /// The largest payload of a segment without options (`advmss`).
    segment: u64,
    /// The window that is advertised at most (`rcv_ssthresh`).
    window: u64,
    /// The window that the buffer allows now (`window_clamp`), and at most.
    clamp: u64,
    most: u64,
    /// The bytes of the last measurement, and where and when the present one began (`rcvq_space`).
    space: u64,
    from: u64,
    since: Instant,
    /// Eight times the round trip time in microseconds; 0 if it is not known (`rcv_rtt_est`).
    rtt8_us: u64,
    /// The last timestamp that was echoed.
    echoed: u32,
    /// Without timestamps: the number at whose arrival a window of data has come, and since when it comes.
    whole: (u64, Instant),
}

impl Growing {
    /// Creates the state of a new connection that expects the number `next`, if the options ask for it.
    pub fn of(config: &TcpConfig, next: u64) -> Option<Self> {
        let segment = config.advertised_mss();
        let most = config.receive_buffer.get();
        let clamp = (FIRST_BUFFER / 2).min(most);
        let window = if clamp > segment { clamp / segment * segment } else { clamp };
        let new = Self {
            segment,
            window,
            clamp,
            most,
            space: window.min(FIRST_SEGMENTS * segment),
            from: next,
            since: Instant::ZERO,
            rtt8_us: 0,
            echoed: 0,
            whole: (0, Instant::ZERO),
        };
        (config.receive_window == ReceiveWindow::Linux).then_some(new)
    }

    /// Returns the largest window to advertise now.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Takes a segment with payload, after which `next` is expected; returns true if the window has grown for it.
    pub fn took(&mut self, segment: &Segment, next: u64, now: Instant) -> bool {
        self.measure(segment, next, now);
        let room = self.clamp.saturating_sub(self.window);
        self.window += room.min(2 * self.segment.max(segment.len.into()));
        self.adjust(next, now);
        room > 0
    }

    /// Measures the round trip time of this side, which may have sent no data.
    fn measure(&mut self, segment: &Segment, next: u64, now: Instant) {
        if segment.has_timestamps() {
            // A short segment may have waited for more.
            if segment.tsecr != self.echoed && u64::from(segment.len) + TIMESTAMPS >= self.segment {
                self.echoed = segment.tsecr;
                let us = u64::from(timestamp(now).wrapping_sub(segment.tsecr)).max(1);
                self.rtt8_us = if self.rtt8_us > 0 { self.rtt8_us - self.rtt8_us / 8 + us } else { 8 * us };
            }
            return;
        }
        let (end, since) = self.whole;
        if end > 0 && next < end {
            return;
        }
        if end > 0 {
            let us8 = 8 * (now.since(since).as_nanos() / 1000).max(1);
            self.rtt8_us = if self.rtt8_us > 0 { self.rtt8_us.min(us8) } else { us8 };
        }
        self.whole = (next + self.window, now);
    }

    /// Once in a round trip: enlarges the buffer if more was read than in the one before.
    fn adjust(&mut self, next: u64, now: Instant) {
        if self.rtt8_us == 0 || now.since(self.since) < Span::from_micros(self.rtt8_us / 8) {
            return;
        }
        let copied = next - self.from;
        if copied > self.space {
            let steady = 2 * copied + 16 * self.segment;
            let wanted = steady + 2 * (steady * (copied - self.space) / self.space.max(1));
            self.clamp = self.clamp.max(wanted.min(self.most));
            self.space = copied;
        }
        (self.from, self.since) = (next, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::packet::TcpFlags;
    use penstock_core::units::Bytes;

    fn config() -> TcpConfig {
        let receive_buffer = Bytes::new(3_145_728);
        TcpConfig { receive_window: ReceiveWindow::Linux, receive_buffer, ..TcpConfig::default() }
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// Lets segments arrive at `at`, each of which echoes what was sent `rtt_ms` before; returns the number then expected.
    fn arrive(growing: &mut Growing, count: u64, next: u64, at: u64, rtt_ms: u64) -> u64 {
        (1..=count).fold(next, |_, n| {
            let mut segment = Segment::tcp(0, true, TcpFlags(0));
            segment.len = 1448;
            segment.set_timestamps(penstock_core::packet::Timestamps { val: 1, ecr: timestamp(ms(at - rtt_ms)) });
            growing.took(&segment, next + 1448 * n, ms(at));
            next + 1448 * n
        })
    }

    #[test]
    fn a_fixed_window_has_no_such_state() {
        assert_eq!(Growing::of(&TcpConfig::default(), 1), None);
    }

    /// 65536 bytes are 44 segments of 1460; ten of them are the first measure.
    #[test]
    fn the_first_window_is_that_of_every_linux() {
        let growing = Growing::of(&config(), 1).unwrap();
        assert_eq!((growing.window(), growing.space), (64_240, 14_600));
    }

    /// Flights of 10, 20, 40, 80 and 160 segments, one in each round trip of 100 ms. The first is not more than the ten segments
    /// before. Of the second 28960 bytes came since the first: 2 x 28960 + 16 x 1460 = 81280 bytes, and for the growth by
    /// 14360 from 14600 twice 81280 x 14360 / 14600 = 79943 more: 241166. Then each flight lets the window be at least
    /// twice the next one, until `receive_buffer`.
    #[test]
    fn a_bulk_transfer_doubles_the_window_until_the_buffer_is_full() {
        let mut growing = Growing::of(&config(), 1).unwrap();
        let mut next = 1;
        let mut clamps = Vec::new();
        for flight in 0..8 {
            next = arrive(&mut growing, 10 << flight, next, 1000 + 100 * flight, 100);
            clamps.push(growing.clamp);
        }
        assert_eq!(clamps[..4], [65_536, 65_536, 241_166, 417_600]);
        assert_eq!(clamps[7], 3_145_728);
        assert_eq!(growing.window(), 3_145_728);
    }

    #[test]
    fn the_window_grows_by_two_segments_for_each_that_arrives() {
        let mut growing = Growing::of(&config(), 1).unwrap();
        growing.clamp = 1_000_000;
        arrive(&mut growing, 3, 1, 1000, 100);
        assert_eq!(growing.window(), 64_240 + 3 * 2920);
    }

    /// A stream of one rate reads as much in each round trip: after the first growth the buffer stays.
    #[test]
    fn a_steady_stream_keeps_its_buffer() {
        let mut growing = Growing::of(&config(), 1).unwrap();
        let mut next = 1;
        let mut clamps = Vec::new();
        for round in 0..20 {
            next = arrive(&mut growing, 20, next, 1000 + 100 * round, 100);
            clamps.push(growing.clamp);
        }
        assert_eq!(clamps[3..].iter().collect::<std::collections::BTreeSet<_>>().len(), 1, "{clamps:?}");
    }
}
