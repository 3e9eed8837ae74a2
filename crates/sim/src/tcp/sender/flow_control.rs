//! Flow control: the peer's window, avoidance of silly windows, probes of a closed window (RFC 9293 §3.8.6), and the
//! restart after an idle time (RFC 5681 §4.1).

use super::{Kind, Next, Sender, SillyWindow, TcpConfig};
use crate::segment::Segment;
use crate::tcp::sequence;
use penstock_core::cc::CongestionControl;
use penstock_core::units::{Bytes, Instant};

/// The window that the peer advertises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerWindow {
    /// The number up to which the peer takes data, in the form of the header.
    pub(super) edge: u32,
    /// The largest window so far, in bytes: below 2^30, as windows and their scale are.
    pub largest: u32,
    /// Header number of the segment that told the window; of no meaning until one did after the handshake.
    seq: u32,
    told: bool,
    scale: u8,
}

impl PeerWindow {
    /// Creates a window whose edge is `first`, without room for the data that begins there.
    pub fn new(first: u64) -> Self {
        Self { edge: first as u32, largest: 0, seq: 0, told: false, scale: 0 }
    }

    /// Creates the window of the peer's SYN or SYN-ACK, which is unscaled, for data that begins at `first`. Later ones have
    /// this scale.
    pub fn of_greeting(first: u64, window: u16, scale: u8) -> Self {
        Self { largest: window.into(), scale, ..Self::new(first + u64::from(window)) }
    }

    /// Returns the number up to which the peer takes data; `near` is within the flight.
    #[inline]
    pub fn edge(&self, near: u64) -> u64 {
        sequence::unwrap(self.edge, near)
    }

    /// Takes the window of a segment which acknowledges up to `ack`, unless it was sent before the one that told the window.
    #[inline]
    pub fn update(&mut self, segment: &Segment, ack: u64) {
        if self.told && (segment.seq.wrapping_sub(self.seq) as i32) < 0 {
            return;
        }
        let window = u32::from(segment.window) << self.scale;
        (self.told, self.seq) = (true, segment.seq);
        self.edge = (ack as u32).wrapping_add(window);
        self.largest = self.largest.max(window);
    }
}

impl Sender {
    /// Returns the number up to which the peer takes data.
    #[inline]
    pub(super) fn edge(&self) -> u64 {
        self.peer.edge(self.una)
    }

    pub(super) fn update_window(&mut self, segment: &Segment, ack: u64) {
        self.peer.update(segment, ack);
        if self.edge() > self.nxt {
            self.persist_at = Instant::MAX;
        }
    }

    /// Reduces the window after an idle time longer than the RTO (RFC 5681 §4.1).
    pub(super) fn restart_if_idle(&mut self, config: &TcpConfig, now: Instant) {
        let idle = self.flight() == 0 && self.counters.segments > 0 && now.since(self.last_sent) > self.rtt.rto();
        if idle && self.persist_at == Instant::MAX && !self.probe_due {
            self.cc.on_idle(now, Bytes::new(self.mss * u64::from(config.initial_window)));
            self.last_sent = now;
        }
    }

    /// Returns how many bytes of new data, FIN included, all rules together allow now; 0 if none.
    #[inline]
    pub(super) fn sendable(&mut self, config: &TcpConfig, now: Instant) -> u64 {
        let left = (self.app_end - self.nxt.min(self.app_end)).min(self.segment_size());
        let fin = u64::from(self.closing && self.nxt + left == self.app_end);
        if left == 0 {
            return fin;
        }
        if self.window(config).saturating_sub(self.pipe) < left {
            return 0;
        }
        let buffer = (self.una + config.send_buffer.get()).saturating_sub(self.nxt);
        let usable = self.edge().saturating_sub(self.nxt).min(buffer);
        if self.kernel && self.waits_for_more(usable, config, now) {
            return 0;
        }
        if usable >= left {
            return left + if usable > left { fin } else { 0 };
        }
        let allowed = match config.silly_window {
            SillyWindow::Minshall if self.kernel => self.short_end <= self.una && self.ends_a_group(),
            SillyWindow::Minshall => self.short_end <= self.una || self.flight() == 0,
            SillyWindow::Strict => self.flight() == 0 && 2 * usable >= u64::from(self.peer.largest),
        };
        if allowed { usable } else { 0 }
    }

    /// True if a short segment that the peer's window leaves room for may leave with the full one before it, as one packet of the
    /// kernel that is segmented late. Alone it may not (`tcp_snd_wnd_test`, `tcp_mss_split_point`).
    pub(super) fn ends_a_group(&self) -> bool {
        match &self.needs {
            Some(needs) if self.cc.pacing_rate().is_some() => needs.is_within_group(),
            _ => self.group > 0,
        }
    }

    /// Handles a sender with nothing in flight that may send nothing: if only the peer's window forbids it, the persist
    /// timer is set and then the window is probed.
    pub(super) fn probe_or_wait(&mut self, config: &TcpConfig, now: Instant) -> Option<Next> {
        if self.window(config) < self.mss {
            return None;
        }
        if !std::mem::take(&mut self.probe_due) {
            self.persist_at = self.persist_at.min(now + self.rtt.rto());
            return None;
        }
        let start = self.nxt;
        let usable = self.edge().saturating_sub(start).min(self.app_end - start);
        if usable > 0 {
            return Some(Next::new((start, start + usable.min(self.segment_size())), Kind::New));
        }
        self.persist_at = now + self.rtt.rto();
        Some(Next::new((start, start + 1), Kind::Probe))
    }

    /// Handles the persist timer: the bytes that the window allows are sent now, or a probe of one byte.
    pub fn on_persist(&mut self) {
        self.persist_at = Instant::MAX;
        self.probe_due = true;
        self.rtt.back_off();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::packet::TcpFlags;

    /// RFC 9293 §3.8.6.1: a closed window is probed until it opens.
    #[test]
    fn a_window_that_opens_ends_the_probes() {
        let mut sender = Sender::new(&TcpConfig::default(), 1);
        let (timer, una) = (Instant::from_nanos(1_000_000_000), sender.una);
        sender.persist_at = timer;
        let mut segment = Segment::tcp(0, false, TcpFlags::ACK);
        for (window, persist_at) in [(0, timer), (1, Instant::MAX)] {
            segment.window = window;
            sender.update_window(&segment, una);
            assert_eq!(sender.persist_at, persist_at, "a window of {window}");
        }
    }

    /// A FIN takes one number, for which the window must have room. It goes with the last data if there is room for both.
    #[test]
    fn a_fin_goes_with_the_last_data_if_the_window_has_room() {
        let config = TcpConfig::default();
        let mut sender = Sender::new(&config, 1);
        (sender.app_end, sender.closing) = (sender.nxt + 500, true);
        for (window, sendable) in [(500, 500), (501, 501), (9999, 501)] {
            sender.peer.edge = (sender.nxt + window) as u32;
            assert_eq!(sender.sendable(&config, Instant::ZERO), sendable, "a window of {window}");
        }
    }
}
