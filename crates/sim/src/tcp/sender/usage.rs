//! How far the flight has used the congestion window, which decides whether the window may grow: nothing is learned about a
//! window that the application leaves empty (`tcp_cwnd_validate` and `tcp_is_cwnd_limited` of Linux 6.12; RFC 9438 §5.8 and RFC
//! 7661 ask for such a rule and leave its form open).
//!
//! The strongest sign of one window of data counts: the window was full when something left or had to wait for it, or else the
//! largest flight. In slow start a window grows up to twice that flight.

use super::{Phase, Sender};
use penstock_core::cc::CongestionControl;

/// No flight is as large.
const FULL: u32 = u32::MAX;

/// What is known of the window of data that is in flight. Numbers are those of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    /// The largest flight, in bytes; [`FULL`] if the congestion window was the limit.
    most: u32,
    /// The end of the flight when this was noted: once that is acknowledged, the next note begins anew.
    end: u32,
}

impl Usage {
    /// Creates the state of a sender whose first byte has the number `first`.
    pub fn new(first: u64) -> Self {
        Self { most: 0, end: first as u32 }
    }

    fn note(&mut self, full: bool, una: u64, nxt: u64) {
        let flight = if full { FULL } else { (nxt - una) as u32 };
        let over = (una as u32).wrapping_sub(self.end) as i32 >= 0;
        if over || full || flight > self.most {
            *self = Self { most: flight, end: nxt as u32 };
        }
    }

    /// True if the window may grow beyond `cwnd` bytes.
    #[inline]
    pub fn lets_grow(&self, cwnd: u64, slow_start: bool) -> bool {
        self.most == FULL || (slow_start && cwnd < 2 * u64::from(self.most))
    }
}

impl Sender {
    /// Notes the flight after new data has left.
    #[inline]
    pub(super) fn note_use(&mut self) {
        let window = match self.phase {
            Phase::Recovery | Phase::Cwr if !self.tells_segments() => self.recovery_window,
            _ => self.cc.cwnd().get(),
        };
        self.usage.note(self.pipe + self.mss > window, self.una, self.nxt);
    }

    /// Notes that there is data which only the congestion window holds back.
    #[inline]
    pub(super) fn note_full(&mut self) {
        self.usage.note(true, self.una, self.nxt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tcp_cwnd_validate and tcp_is_cwnd_limited by hand, with a window of ten segments of 1000 bytes across the wrap of numbers.
    #[test]
    fn a_window_grows_to_twice_its_largest_flight() {
        let first = (1 << 32) - 3000;
        let mut usage = Usage::new(first);
        let grows = |usage: &Usage, slow_start| {
            (1..40).find(|segments| !usage.lets_grow(segments * 1000, slow_start)).unwrap_or(0)
        };
        for segments in 1..=9 {
            usage.note(false, first, first + segments * 1000);
        }
        assert_eq!([grows(&usage, true), grows(&usage, false)], [18, 1]);
        usage.note(false, first + 8000, first + 10_000);
        assert_eq!(grows(&usage, true), 18, "a smaller flight of the same window");
        usage.note(true, first + 8000, first + 18_000);
        assert_eq!([grows(&usage, true), grows(&usage, false)], [0, 0], "no end");
        usage.note(false, first + 17_000, first + 19_000);
        assert_eq!(grows(&usage, true), 0, "the window was full");
        usage.note(false, first + 18_000, first + 19_000);
        assert_eq!(grows(&usage, true), 2, "all of that is acknowledged");
    }
}
