//! Flow control: the peer's window, avoidance of silly windows, probes of a closed window (RFC 9293 §3.8.6), and the
//! restart after an idle time (RFC 5681 §4.1).

use super::{Kind, Next, Sender, SillyWindow, TcpConfig};
use crate::segment::Segment;
use penstock_core::cc::CongestionControl;
use penstock_core::units::{Bytes, Instant};

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
            self.note_full();
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
