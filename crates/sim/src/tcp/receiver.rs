//! The receiving half of a connection: reassembly, when to acknowledge, which window to advertise, and what to report
//! as SACK.
//!
//! Sources: RFC 9293 §3.8.6 (window, silly window avoidance), RFC 5681 §4.2 (delayed ACK), RFC 2018 §4 (SACK blocks),
//! RFC 2883 (D-SACK, for senders with RACK), RFC 7323 §4.3 (the timestamp to echo), RFC 3168 §6.1.3 (ECN echo),
//! RFC 9768 (accurate ECN, `accecn.rs`).

use super::accecn::Feedback;
use super::config::TcpConfig;
use super::quick::{MAX_QUICK, QuickAcks};
use super::ranges::Ranges;
use super::sequence;
use crate::segment::{MAX_SACK, Segment};
use penstock_core::cc::Requirements;
use penstock_core::packet::{Ecn, Packet, TcpFlags};
use penstock_core::units::Instant;
use std::ops::Range;

/// The state of the receiving half.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// The next sequence number expected.
    next: u64,
    /// The right edge of the last window advertised, which never decreases.
    edge: u64,
    /// What arrived out of order or twice; `None` until something did.
    odd: Option<Box<Odd>>,
    /// Number of the peer's SYN.
    irs: u32,
    /// Number of bytes in order that the application has not read: at most a window.
    unread: u32,
    /// Size of the buffer: at most 2^30 bytes.
    buffer: u32,
    scale: u8,
    /// Number of segments since the last ACK was sent.
    unacked: u8,
    pub(super) ack_now: bool,
    /// When a delayed ACK is due; `Instant::MAX` means never.
    pub(super) ack_at: Instant,
    ts_recent: u32,
    /// The last ACK number sent, in the form of the header; at most a window before `next`.
    last_ack_sent: u32,
    /// The number of the peer's FIN, once it is known.
    fin_at: u64,
    /// True if congestion must be echoed until the sender responds with CWR (ECN).
    echo: bool,
    /// True if each ACK echoes the mark of its own segment (RFC 8257 §3.2).
    accurate_ecn: bool,
    /// The counters of Accurate ECN; `None` if it was not agreed.
    pub(super) accurate: Option<Box<Feedback>>,
    /// True if every segment is acknowledged at once.
    every_segment: bool,
    /// True if the application reads all data at once.
    auto_read: bool,
    /// Number of bytes that the receiver acknowledges beyond what it has (`optimistic_ack`); 0 for an honest receiver.
    ahead: u32,
    /// True if D-SACK reports ranges that arrived twice.
    dsack: bool,
    /// State of the kernel's receiver; `None` for one that follows RFC 5681.
    pub(super) quick: Option<Box<QuickAcks>>,
}

/// What did not arrive once and in order.
#[derive(Debug, Clone, Default)]
struct Odd {
    /// The ranges that arrived beyond a gap.
    early: Ranges,
    /// Header numbers within ranges that changed recently, most recent first; they give the order of SACK blocks.
    recent: [u32; MAX_SACK],
    /// A range that arrived twice and was not reported yet; empty if there is none.
    twice: (u32, u32),
}

impl Odd {
    /// Puts the range that contains `at` first in the order of SACK blocks; `next` is the next number expected.
    fn remember(&mut self, at: u64, next: u64) {
        let same = |r: &u32| {
            let containing = self.early.containing(sequence::unwrap(*r, next));
            containing.is_some_and(|(s, e)| (s..e).contains(&at))
        };
        let position = self.recent.iter().position(same).unwrap_or(MAX_SACK - 1);
        self.recent[..=position].rotate_right(1);
        self.recent[0] = at as u32;
    }

    /// Writes SACK blocks into an outgoing segment if SACK was agreed; `next` is the next number expected.
    fn report(&mut self, segment: &mut Segment, sack: bool, next: u64) {
        let twice = std::mem::take(&mut self.twice);
        let reports = usize::from(sack && twice.0 != twice.1);
        if reports > 0 {
            segment.add_sack(twice); // RFC 2883 §4: the first block, also if another contains it
        }
        if sack && !self.early.is_empty() {
            for at in self.recent {
                if let Some((start, end)) = self.early.containing(sequence::unwrap(at, next))
                    && !segment.sacks()[reports..].iter().any(|b| b.0 == start as u32)
                {
                    segment.add_sack((start as u32, end as u32));
                }
            }
        }
    }
}

impl Receiver {
    /// Creates a receiver. The peer's SYN had the number `irs`; `scale` is the window scale of this side.
    pub fn new(config: &TcpConfig, irs: u32, scale: u8) -> Self {
        let first = sequence::initial(irs) + 1;
        // A multiple of the unit of the window field, so that rounding never moves the right edge.
        let buffer = (config.receive_buffer.get() >> scale) << scale;
        let quick = QuickAcks::of(config, first);
        let growing = quick.as_ref().and_then(|quick| quick.window.as_ref());
        let window = growing.map_or(buffer, |growing| growing.window());
        Self {
            next: first,
            edge: first + window.min(0xffff),
            odd: None,
            irs,
            unread: 0,
            buffer: u32::try_from(buffer).unwrap_or(u32::MAX),
            scale,
            unacked: 0,
            ack_now: false,
            ack_at: Instant::MAX,
            ts_recent: 0,
            last_ack_sent: first as u32,
            fin_at: u64::MAX,
            echo: false,
            accurate_ecn: false,
            accurate: None,
            every_segment: config.ack_every_segment,
            auto_read: true,
            ahead: config.optimistic_ack.get() as u32,
            dsack: config.rack || config.accurate_ecn, // RFC 9768 §3.1.1 wants it beside SACK
            quick,
        }
    }

    /// Sets what the control needs of the peer's receiver; both ends have the same control.
    pub fn set_wants(&mut self, requirements: Option<Requirements>) {
        self.accurate_ecn = requirements.is_some_and(|requirements| requirements.accurate_ecn);
        self.every_segment |= requirements.is_some_and(|requirements| requirements.ack_per_segment);
    }

    /// Returns the number of bytes of memory on the heap for what arrived out of order.
    pub fn heap_bytes(&self) -> usize {
        self.odd.as_ref().map_or(0, |odd| size_of::<Odd>() + odd.early.heap_bytes())
    }

    /// Returns the number of payload bytes received in order.
    pub fn delivered(&self) -> u64 {
        let fin = u64::from(self.finished());
        self.next - (sequence::initial(self.irs) + 1) - fin
    }

    /// True if everything up to and including the peer's FIN has arrived.
    pub fn finished(&self) -> bool {
        self.next > self.fin_at
    }

    /// Returns the next number expected, in the form of the header.
    pub fn ack_number(&self) -> u32 {
        self.next as u32
    }

    /// True if a number is within the advertised window.
    pub fn in_window(&self, wire: u32) -> bool {
        (self.next..self.edge.max(self.next)).contains(&sequence::unwrap(wire, self.next))
    }

    /// Lets the application read only by [`Receiver::read`] from now on.
    pub fn read_by_hand(&mut self) {
        self.auto_read = false;
        self.unread = 0;
    }

    /// Reads up to `n` bytes for the application. If the window opens far enough, it is advertised at once (RFC 9293
    /// §3.8.6.2.2).
    pub fn read(&mut self, n: u64, mss: u64) {
        self.unread -= n.min(self.unread.into()) as u32;
        let (told, free) = (self.edge.saturating_sub(self.next), self.room() - self.next);
        self.ack_now |= match self.quick {
            // `tcp_cleanup_rbuf`: the window doubles at least.
            Some(_) => 2 * told <= u64::from(self.buffer) && free >= (2 * told).max(self.least_opening(mss)),
            None => self.room().saturating_sub(self.edge) >= self.least_opening(mss),
        };
    }

    /// Returns the number up to which the buffer has room, or the window that grows.
    fn room(&self) -> u64 {
        let growing = self.quick.as_ref().and_then(|quick| quick.window.as_ref());
        let window = growing.map_or(self.buffer.into(), |growing| (growing.window() >> self.scale) << self.scale);
        self.next + window.saturating_sub(self.unread.into())
    }

    /// Returns the least number of bytes by which the window opens: a full segment or half the buffer (RFC 9293 §3.8.6.2.2).
    fn least_opening(&self, mss: u64) -> u64 {
        mss.min(u64::from(self.buffer) / 2)
    }

    /// Takes payload, FIN, timestamp and ECN of the peer's segment; returns false if no part of it was acceptable.
    pub fn on_segment(&mut self, segment: &Segment, config: &TcpConfig, now: Instant) -> bool {
        let start = sequence::unwrap(segment.seq, self.next);
        let end = start + u64::from(segment.sequence_len());
        if self.accurate.is_none() {
            self.note_ecn(segment);
        }
        let window_end = self.edge.max(self.next);
        let in_window = if start == end {
            (self.next..=window_end).contains(&start)
        } else {
            start < window_end && end > self.next
        };
        let stale = segment.has_timestamps() && (segment.tsval.wrapping_sub(self.ts_recent) as i32) < 0; // PAWS
        if !in_window || stale {
            self.note_twice(start..end.min(self.next));
            if let Some(feedback) = self.accurate.as_mut().filter(|_| start < self.next) {
                feedback.count_again(segment, self.last_ack_sent);
            }
            if end > start {
                self.acknowledge_quickly(MAX_QUICK); // `tcp_send_dupack`, and `tcp_data_queue` for what has arrived
            }
            self.ack_now = true; // RFC 9293 §3.10.7.4: an unacceptable segment is answered with an ACK
            return false;
        }
        if let Some(feedback) = &mut self.accurate {
            self.ack_now |= feedback.count(segment, self.unacked > 0);
        }
        if segment.has_timestamps() && start <= sequence::unwrap(self.last_ack_sent, self.next) {
            self.ts_recent = segment.tsval;
        }
        if start == end {
            return true;
        }
        if segment.flags.has(TcpFlags::FIN) {
            self.fin_at = end - 1;
        }
        self.take(start, end.min(window_end), config, now, segment.flags.has(TcpFlags::FIN));
        let growing = self.quick.as_mut().and_then(|quick| quick.window.as_mut()).filter(|_| segment.len > 0);
        if growing.is_some_and(|growing| growing.took(segment, self.next, now)) {
            self.acknowledge_quickly(1); // `tcp_grow_window`
        }
        true
    }

    fn take(&mut self, start: u64, end: u64, config: &TcpConfig, now: Instant, fin: bool) {
        if start > self.next && self.ahead > 0 {
            self.advance(start); // a misbehaving receiver treats lost data as received
        }
        if start > self.next {
            let odd = self.odd.get_or_insert_default();
            if self.dsack
                && let Some((_, known)) = odd.early.containing(start)
            {
                odd.twice = (start as u32, end.min(known) as u32);
            }
            odd.early.insert(start..end);
            odd.remember(start, self.next);
            match &mut self.quick {
                Some(quick) => match quick.out_of_order(self.next, config.sack, now) {
                    None => self.ack_now = true,
                    Some(at) => self.ack_at = self.ack_at.min(at),
                },
                None => self.ack_now = true, // RFC 5681 §4.2: out of order
            }
            return;
        }
        self.note_twice(start..self.next);
        let filled_gap = match self.odd.as_mut().filter(|odd| !odd.early.is_empty()) {
            Some(odd) => {
                // What is in order may bring again what came before it; the first range is reported.
                if self.dsack
                    && let Some((known, until)) = odd.early.as_slice().first().filter(|(known, _)| *known < end)
                {
                    odd.twice = (*known as u32, end.min(*until) as u32);
                }
                let reach = odd.early.containing(end).map_or(end, |(_, reach)| reach);
                odd.early.remove_below(reach);
                self.advance(reach);
                true
            }
            None => {
                self.advance(end);
                false
            }
        };
        if self.quick.is_some() && self.finished() {
            self.odd = None; // `tcp_fin`: nothing more is reported
        }
        let segments = (end - start).div_ceil(config.mss.get().max(1));
        self.unacked = self.unacked.saturating_add(segments.clamp(1, 255) as u8);
        // A FIN alone behind data is acknowledged with what this side says (`tcp_fin`: `inet_csk_enter_pingpong_mode`).
        let alone = fin && end - start == 1 && self.quick.as_ref().is_some_and(|quick| quick.has_heard());
        let at_once = self.quick.as_mut().filter(|_| !alone).is_some_and(|quick| quick.in_order(now));
        if at_once || self.every_segment || filled_gap || (fin && !alone) || self.unacked >= 2 {
            self.ack_now = true;
        } else if self.ack_at == Instant::MAX {
            self.ack_at = now + config.delayed_ack_timeout;
        }
    }

    /// Moves the next number expected to `next`.
    fn advance(&mut self, next: u64) {
        if !self.auto_read {
            self.unread += (next - self.next) as u32;
        }
        self.next = next;
    }

    /// Records these bytes, if there are any, as received twice (RFC 2883 §4).
    fn note_twice(&mut self, bytes: Range<u64>) {
        if let Some(feedback) = self.accurate.as_mut().filter(|_| !bytes.is_empty()) {
            feedback.arrived_twice(bytes.start as u32);
        }
        if self.dsack && !bytes.is_empty() {
            self.odd.get_or_insert_default().twice = (bytes.start as u32, bytes.end as u32);
        }
    }

    fn note_ecn(&mut self, segment: &Segment) {
        if self.accurate_ecn {
            if segment.len > 0 {
                self.echo = segment.ecn() == Ecn::Ce;
            }
            return;
        }
        if segment.flags.has(TcpFlags::CWR) {
            self.echo = false;
            self.ack_now |= self.quick.as_ref().is_some_and(|quick| quick.acknowledges()) && segment.len > 0; // `tcp_ecn_accept_cwr`
        }
        if segment.ecn() == Ecn::Ce {
            if !self.echo {
                self.acknowledge_quickly(2); // `__tcp_ecn_check_ce`
            }
            self.echo = true;
        }
    }

    /// Acknowledges the next `n` segments at once, if this is the kernel's receiver.
    fn acknowledge_quickly(&mut self, n: u8) {
        if let Some(quick) = &mut self.quick {
            quick.begin(n);
        }
    }

    /// Writes ACK number, window, ECN echo and SACK blocks into an outgoing segment, which thereby serves as the ACK.
    pub fn fill(&mut self, segment: &mut Segment, sack: bool, mss: u64) {
        segment.ack = self.next as u32;
        if self.ahead > 0 && self.delivered() > 0 && !self.finished() {
            segment.ack = segment.ack.wrapping_add(self.ahead);
        }
        segment.flags = segment.flags.with(TcpFlags::ACK);
        segment.window = self.window(mss);
        if self.echo {
            segment.flags = segment.flags.with(TcpFlags::ECE);
        }
        if let Some(odd) = &mut self.odd {
            odd.report(segment, sack, self.next);
        }
        if let Some(feedback) = &mut self.accurate {
            feedback.write(segment);
        }
        if let Some(quick) = &mut self.quick {
            quick.acknowledged();
        }
        self.unacked = 0;
        self.ack_now = false;
        self.ack_at = Instant::MAX;
        self.last_ack_sent = self.next as u32;
    }

    /// True if a pure ACK must leave first, which tells how the SYN-ACK arrived.
    #[inline]
    pub fn owes_code(&self) -> bool {
        self.accurate.as_ref().is_some_and(|feedback| feedback.owes_code())
    }

    /// Returns the timestamp to echo.
    pub fn ts_recent(&self) -> u32 {
        self.ts_recent
    }

    /// Stores the timestamp of the peer's SYN.
    pub fn set_ts_recent(&mut self, tsval: u32) {
        self.ts_recent = tsval;
    }

    /// Returns the window field. Rounding to the scale never decreases the right edge (RFC 7323 §2.4).
    fn window(&mut self, mss: u64) -> u16 {
        let room = self.room();
        if room.saturating_sub(self.edge) >= self.least_opening(mss) {
            self.edge = room;
        }
        let told = self.edge.saturating_sub(self.next).div_ceil(1 << self.scale).min(0xffff);
        self.edge = self.edge.max(self.next + (told << self.scale));
        told as u16
    }
}
