//! SEARCH: slow start that ends when less is delivered than was sent a round trip before.
//!
//! Source: draft-chung-ccwg-search-09 (SEARCH 4), which replaces a comparison of what is delivered with what was delivered a
//! round trip before (SEARCH 3, threshold 0.35). An option of NewReno and CUBIC for the first slow start.
//!
//! ```text
//! WINDOW_SIZE = 3.5 INITIAL_RTT, W = 10 bins of BIN_DURATION = WINDOW_SIZE / W;  EXTRA_BINS = 15 more of what was sent
//! when an ACK passes the end of a bin:
//!   prev_idx  = curr_idx - rtt / BIN_DURATION, fraction = the rest of that division
//!   with prev_idx > W and curr_idx - prev_idx < EXTRA_BINS
//!     curr_delv = bytes acknowledged in the last W bins
//!     prev_sent = bytes sent in W bins that end one rtt ago, between bins by fraction
//!     norm_diff = (prev_sent - curr_delv) / prev_sent >= THRESH = 0.26: the first slow start is over
//! target = bytes acknowledged in the last ceil(INITIAL_RTT / BIN_DURATION) bins, at least the initial window
//! drain:  cwnd = max(flight + 1 segment per 3 acknowledged, target), until it is target; then ssthresh = cwnd
//! ```
//!
//! While slow start doubles the window, what is acknowledged in a round trip is what was sent in the one before, and norm_diff
//! is 0. On a path that is full it is less, by a half at the end of a window. Cost: O(1) per ACK.
//!
//! DIFFERENCE: between two bins the draft takes the bin after the one in question, which lies on the other side; here it is the
//! bin before. Pinned by `what_was_sent_is_taken_between_two_bins`.
//! DIFFERENCE: bins hold 64 bits, so that none has to be scaled down (optional in the draft). Pinned by
//! `a_bin_holds_more_than_32_bits`.
//! DIFFERENCE: a pause of more than W bins begins anew with the next ACK (an option of the draft, whose limit is 2 round trips).
//! Pinned by `a_pause_of_more_than_a_window_begins_anew`.
//! DIFFERENCE: only until the first sign of congestion; slow start after a timeout is that of the control. Pinned by
//! `a_loss_ends_search` of `start`.

use super::Ack;
use crate::units::{Bytes, Instant, Span};

// Constants of the draft, with its names.
/// 3.5 round trips, in tenths.
const WINDOW_SIZE_TENTHS: u64 = 35;
const W: usize = 10;
const EXTRA_BINS: usize = 15;
const NUM_ACKED_BINS: usize = W + 1;
const NUM_SENT_BINS: usize = NUM_ACKED_BINS + EXTRA_BINS;
const THRESH: f64 = 0.26;
/// Segments acknowledged for each one that may leave while the queue drains.
const DRAIN_SEGMENTS: u64 = 3;

/// What was acknowledged and sent by the end of each bin, in bytes since the connection began.
#[derive(Debug, Clone, PartialEq)]
struct Bins {
    initial_rtt: Span,
    /// BIN_DURATION.
    duration: Span,
    /// bin_end.
    end: Instant,
    /// curr_idx.
    index: usize,
    acked: [u64; NUM_ACKED_BINS],
    sent: [u64; NUM_SENT_BINS],
}

/// The state of SEARCH before slow start is over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Search {
    /// Bytes acknowledged since the connection began.
    acked: u64,
    initial_window: Bytes,
    /// `None` before the first ACK, and after a pause.
    bins: Option<Bins>,
}

/// The drain phase: the window follows the flight down to `target`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drain {
    pub target: Bytes,
    /// Bytes acknowledged that did not let a segment go yet.
    credit: Bytes,
}

/// The normalized difference of what was sent and what is delivered; `None` if nothing was sent.
fn norm_diff(prev_sent: f64, curr_delv: u64) -> Option<f64> {
    (prev_sent > 0.0).then(|| (prev_sent - curr_delv as f64) / prev_sent)
}

impl Bins {
    /// Begins with the first ACK; `None` without a round trip time.
    fn new(initial_rtt: Span, now: Instant, acked: u64, sent: u64) -> Option<Self> {
        let duration = (initial_rtt * WINDOW_SIZE_TENTHS).div(10 * W as u64);
        let bins = Self {
            initial_rtt,
            duration,
            end: now + duration,
            index: 0,
            acked: [acked; NUM_ACKED_BINS],
            sent: [sent; NUM_SENT_BINS],
        };
        (duration > Span::ZERO).then_some(bins)
    }

    fn acked(&self, index: usize) -> u64 {
        self.acked[index % NUM_ACKED_BINS]
    }

    fn sent(&self, index: usize) -> u64 {
        self.sent[index % NUM_SENT_BINS]
    }

    /// Ends the bins that have passed by `now`: in those of them in which no ACK came, nothing was acknowledged or sent. False
    /// if more than a window has passed.
    fn update(&mut self, now: Instant, acked: u64, sent: u64) -> bool {
        let passed = now.since(self.end).as_nanos() / self.duration.as_nanos() + 1;
        if passed > W as u64 {
            return false;
        }
        let (acked_before, sent_before) = (self.acked(self.index), self.sent(self.index));
        for passing in 1..=passed {
            self.index += 1;
            let last = passing == passed;
            self.acked[self.index % NUM_ACKED_BINS] = if last { acked } else { acked_before };
            self.sent[self.index % NUM_SENT_BINS] = if last { sent } else { sent_before };
        }
        self.end += self.duration * passed;
        true
    }

    /// prev_sent for the window of bins that ends `rtt` ago; `None` if the bins do not reach back as far.
    fn prev_sent(&self, rtt: Span) -> Option<f64> {
        let (rtt, duration) = (rtt.as_nanos(), self.duration.as_nanos());
        let back = usize::try_from(rtt / duration).unwrap_or(usize::MAX);
        let previous = self.index.checked_sub(back).filter(|previous| *previous > W && back < EXTRA_BINS)?;
        let fraction = (rtt % duration) as f64 / duration as f64;
        let window = |end: usize| self.sent(end).saturating_sub(self.sent(end - W)) as f64;
        Some(window(previous - 1) * fraction + window(previous) * (1.0 - fraction))
    }

    /// True if slow start is over.
    fn is_full(&self, rtt: Span) -> bool {
        let Some(prev_sent) = self.prev_sent(rtt) else { return false };
        let curr_delv = self.acked(self.index).saturating_sub(self.acked(self.index - W));
        norm_diff(prev_sent, curr_delv).is_some_and(|difference| difference >= THRESH)
    }

    /// What the path carries in a round trip without a queue.
    fn target(&self) -> Bytes {
        let back = self.initial_rtt.as_nanos().div_ceil(self.duration.as_nanos()) as usize;
        Bytes::new(self.acked(self.index).saturating_sub(self.acked(self.index.saturating_sub(back.min(W)))))
    }
}

impl Search {
    /// Creates the state at the beginning of a connection.
    pub fn new(initial_window: Bytes) -> Self {
        Self { acked: 0, initial_window, bins: None }
    }

    /// Takes an ACK in slow start. Returns the drain phase with which slow start ends, if this ACK shows that the path is full.
    pub fn on_ack(&mut self, ack: &Ack) -> Option<Drain> {
        // In flight is what was sent and not acknowledged before this ACK, and without a loss there is nothing else.
        let sent = self.acked.saturating_add(ack.in_flight.get());
        self.acked = self.acked.saturating_add(ack.acked.get());
        let rtt = ack.rtt.unwrap_or(ack.srtt);
        let Some(bins) = &mut self.bins else {
            self.bins = Bins::new(rtt, ack.now, self.acked, sent);
            return None;
        };
        if ack.now <= bins.end {
            return None;
        }
        if !bins.update(ack.now, self.acked, sent) {
            self.bins = None;
            return None;
        }
        let target = bins.is_full(rtt).then(|| bins.target().max(self.initial_window))?;
        Some(Drain { target, credit: Bytes::ZERO })
    }

    /// Forgets the bins, after a time in which nothing was sent.
    pub fn reset(&mut self) {
        self.bins = None;
    }
}

impl Drain {
    /// Takes an ACK; returns the window, which was `cwnd` and never grows.
    pub fn on_ack(&mut self, ack: &Ack, cwnd: Bytes, mss: Bytes) -> Bytes {
        self.credit += ack.acked;
        let each = DRAIN_SEGMENTS * mss;
        let leaves = (self.credit / each) * mss;
        self.credit = self.credit % each;
        (ack.in_flight.saturating_sub(ack.acked) + leaves).max(self.target).min(cwnd)
    }
}

#[cfg(test)]
mod tests;
