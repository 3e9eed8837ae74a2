//! What most controls share: a window in segments with slow start, restart and timeout of RFC 5681, and the detection
//! of the end of a round trip. A control adds its growth in congestion avoidance and its reduction.
//!
//! Slow start has the byte limits of RFC 3465, as in [`newreno`](super::newreno). Congestion avoidance begins at
//! `cwnd = ssthresh`, and one ACK counts for at most one window; the headers of `newreno` and `cubic` give the reasons.

use super::newreno::L;
use super::{Ack, Advice, Loss, Setup};
use crate::units::{Bytes, Span};

/// A congestion window with its slow start threshold, in segments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Window {
    /// Bytes per segment.
    pub mss: f64,
    /// Congestion window in segments.
    pub cwnd: f64,
    /// Slow start threshold in segments; infinite before the first signal if [`Setup`] has none.
    pub ssthresh: f64,
    /// A timeout occurred, and neither congestion avoidance nor a loss has followed it: L is 1 (RFC 3465 §2.3).
    after_timeout: bool,
}

impl Window {
    /// Creates the window of a new connection.
    pub fn new(setup: &Setup) -> Self {
        let mss = setup.mss.max(Bytes::new(1)).as_f64();
        let cwnd = setup.initial_window.as_f64() / mss;
        Self { mss, cwnd, ssthresh: setup.first_threshold(mss), after_timeout: false }
    }

    /// Takes window and threshold from [`Advice::Adopt`]. A window that does not change keeps its part of a byte.
    pub fn adopt(&mut self, advice: Advice) {
        let Advice::Adopt { cwnd, ssthresh } = advice else { return };
        if self.bytes(self.cwnd) != cwnd {
            self.cwnd = self.segments(cwnd);
        }
        self.ssthresh = self.segments(ssthresh).max(2.0);
    }

    /// Converts segments to bytes. Rounds to the nearest byte, so that a sum of fractions which is ten segments but for
    /// its rounding errors is not one byte less.
    #[inline]
    pub fn bytes(&self, segments: f64) -> Bytes {
        Bytes::new((segments * self.mss + 0.5) as u64)
    }

    /// Converts bytes to segments.
    #[inline]
    pub fn segments(&self, bytes: Bytes) -> f64 {
        bytes.as_f64() / self.mss
    }

    /// True below the slow start threshold.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Segments by which an ACK opens the window in slow start: min(N, L SMSS) of RFC 3465 §2.2.
    #[inline]
    pub fn slow_start_segments(&self, acked: Bytes) -> f64 {
        self.segments(acked).min(if self.after_timeout { 1.0 } else { L as f64 })
    }

    /// The part of this window that an ACK covers, at most 1: a window that grows by `x` segments per round trip grows
    /// by `x * share` with this ACK.
    #[inline]
    pub fn share(&mut self, acked: Bytes) -> f64 {
        self.share_of(acked, self.cwnd)
    }

    /// The part of `whole` segments that an ACK covers, at most 1, for a control whose window is more than `cwnd`.
    #[inline]
    pub fn share_of(&mut self, acked: Bytes, whole: f64) -> f64 {
        self.after_timeout = false;
        (self.segments(acked) / whole).min(1.0)
    }

    /// Grows a window that is in use: in slow start as RFC 5681 says, in congestion avoidance by `per_round(cwnd)`
    /// segments per round trip.
    #[inline]
    pub fn grow(&mut self, ack: &Ack, per_round: impl FnOnce(f64) -> f64) {
        if !ack.cwnd_limited {
            return;
        }
        if self.in_slow_start() {
            self.cwnd += self.slow_start_segments(ack.acked);
        } else {
            let increment = per_round(self.cwnd) * self.share(ack.acked);
            self.cwnd += increment;
        }
    }

    /// Reduces `ssthresh` to the part `keep` of the flight, at least two segments (RFC 5681 eq. (4)).
    pub fn reduce(&mut self, loss: &Loss, keep: f64) {
        self.reduce_to(self.segments(loss.in_flight) * keep);
    }

    /// Reduces `ssthresh` to `segments`, at least two.
    pub fn reduce_to(&mut self, segments: f64) {
        self.ssthresh = segments.max(2.0);
        self.after_timeout = false;
    }

    /// Ends recovery: `cwnd` becomes `ssthresh`. Without an earlier signal there is no threshold, and `cwnd` stays.
    pub fn recovered(&mut self) {
        if self.ssthresh.is_finite() {
            self.cwnd = self.ssthresh;
        }
    }

    /// The segments that a timeout reduces: the flight, or the window if that is smaller. In a long recovery the flight
    /// includes many windows of SACKed data; a control that keeps most of its flight would never get smaller.
    pub fn lost_flight(&self, loss: &Loss) -> f64 {
        self.segments(loss.in_flight).min(self.cwnd)
    }

    /// Takes a timeout: `ssthresh` becomes the part `keep` of [`Window::lost_flight`], at least two segments, and
    /// `cwnd` one segment.
    pub fn time_out(&mut self, loss: &Loss, keep: f64) {
        self.reduce_to(self.lost_flight(loss) * keep);
        self.timed_out();
    }

    /// Sets the window of a timeout whose reduction is done: one segment (RFC 5681 §3.1).
    pub fn timed_out(&mut self) {
        self.cwnd = 1.0;
        self.after_timeout = true;
    }

    /// Restarts an idle connection: the window is at most the initial window (RFC 5681 §4.1).
    pub fn idle(&mut self, initial_window: Bytes) {
        self.cwnd = self.cwnd.min(self.segments(initial_window));
    }
}

/// Counts round trips by the bytes acknowledged.
///
/// A round trip begins with an ACK. It ends when as many bytes as were in flight before that ACK have been acknowledged
/// after it: the rest of the data that was in flight, and as much new data as the first ACK acknowledged. In congestion
/// avoidance that new data is all that the first ACK released; in slow start the ACK released more, whose end is not
/// awaited.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Round {
    /// Bytes still to be acknowledged in this round; `None` before the first ACK.
    left: Option<Bytes>,
}

impl Round {
    /// True for the ACK that ends a round trip and begins the next one. The first ACK only begins a round trip.
    #[inline]
    pub fn ends(&mut self, ack: &Ack) -> bool {
        let left = self.left.map(|left| left.saturating_sub(ack.acked));
        self.left = left.filter(|left| *left > Bytes::ZERO).or(Some(ack.in_flight));
        left == Some(Bytes::ZERO)
    }
}

/// Estimates once per round trip which part of the window waits in queues, by the smallest round trip time of the
/// round.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct QueueShare {
    round: Round,
    /// BaseRTT: the smallest sample so far. The minimum of the endpoint includes the handshake, whose short segments
    /// have shorter round trip times than data.
    pub base: Option<Span>,
    /// The smallest sample of this round; `None` before the first one.
    lowest: Option<Span>,
}

impl QueueShare {
    /// Returns 1 - BaseRTT/RTT at the end of a round that had a sample: the part of the window that waits in queues.
    #[inline]
    pub fn at_end_of_round(&mut self, ack: &Ack) -> Option<f64> {
        if let Some(rtt) = ack.rtt {
            let least = |known: Option<Span>| Some(known.map_or(rtt, |known| known.min(rtt)));
            (self.base, self.lowest) = (least(self.base), least(self.lowest));
        }
        if !self.round.ends(ack) {
            return None;
        }
        let (base, rtt) = (self.base?.as_nanos() as f64, self.lowest.take()?.as_nanos().max(1) as f64);
        Some(1.0 - base / rtt)
    }

    /// Begins a new round after a recovery or an idle time, and keeps BaseRTT.
    pub fn restart(&mut self) {
        *self = Self { base: self.base, ..Self::default() };
    }
}

/// Writes the methods of [`CongestionControl`](super::CongestionControl) that only read or set a [`Window`], for a
/// control with a field `window`; with `read`, only those that read it.
macro_rules! plain_window {
    (read) => {
        #[inline]
        fn cwnd(&self) -> crate::units::Bytes {
            self.window.bytes(self.window.cwnd)
        }
        #[inline]
        fn ssthresh(&self) -> crate::units::Bytes {
            self.window.bytes(self.window.ssthresh)
        }
    };
    () => {
        plain_window!(read);
        fn advise(&mut self, advice: super::Advice) {
            self.window.adopt(advice);
        }
    };
}
pub(super) use plain_window;

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    #[test]
    fn slow_start_opens_by_two_segments_per_ack_at_most_and_by_one_after_a_timeout() {
        let mut window = Window::new(&driver::SETUP);
        window.grow(&driver::ack(8 * MSS, 100), |_| unreachable!("this is slow start"));
        assert_eq!(window.cwnd, 12.0);
        window.reduce(&driver::loss(12 * MSS), 0.5);
        window.timed_out();
        assert_eq!((window.cwnd, window.ssthresh), (1.0, 6.0));
        window.grow(&driver::ack(8 * MSS, 100), |_| unreachable!("this is slow start"));
        assert_eq!(window.cwnd, 2.0);
        window.reduce(&driver::loss(40 * MSS), 0.5);
        window.grow(&driver::ack(8 * MSS, 100), |_| unreachable!("this is slow start"));
        assert_eq!(window.cwnd, 4.0, "the limit of a timeout ends with the next loss");
    }

    #[test]
    fn congestion_avoidance_grows_by_the_share_of_the_window_and_by_one_round_at_most() {
        let mut window = Window::new(&driver::SETUP);
        window.reduce_to(10.0);
        window.grow(&driver::ack(MSS, 100), |w| w / 2.0);
        assert_eq!(window.cwnd, 10.5);
        window.grow(&driver::ack(5000 * MSS, 100), |_| 3.0);
        assert_eq!(window.cwnd, 13.5);
        window.grow(&Ack { cwnd_limited: false, ..driver::ack(MSS, 100) }, |_| unreachable!("it is not in use"));
    }

    #[test]
    fn a_reduction_leaves_two_segments_and_idleness_the_initial_window() {
        let mut window = Window::new(&driver::SETUP);
        window.recovered();
        assert_eq!(window.cwnd, 10.0, "there was no signal");
        window.idle(4 * MSS);
        assert_eq!(window.cwnd, 4.0);
        window.idle(20 * MSS);
        assert_eq!(window.cwnd, 4.0);
        window.reduce(&driver::loss(3 * MSS), 0.5);
        window.recovered();
        assert_eq!(window.cwnd, 2.0);
    }

    #[test]
    fn a_timeout_reduces_no_more_than_the_window() {
        for (flight, ssthresh) in [(8, 6.4), (10, 8.0), (500, 8.0), (2, 2.0)] {
            let mut window = Window::new(&driver::SETUP);
            window.time_out(&driver::loss(flight * MSS), 0.8);
            assert_eq!((window.cwnd, window.ssthresh), (1.0, ssthresh));
        }
    }

    /// Ten segments in flight: the first ACK begins a round, the tenth after it is for what it let go.
    #[test]
    fn a_round_ends_with_the_ack_for_what_its_first_ack_let_go() {
        let mut round = Round::default();
        let ack = Ack { in_flight: 10 * MSS, ..driver::ack(MSS, 100) };
        let ends: Vec<bool> = (0..20).map(|_| round.ends(&ack)).collect();
        let expected: Vec<bool> = (0..20).map(|i| i == 10).collect();
        assert_eq!(ends, expected);
    }

    /// A path of 100 ms; the lowest sample of the round is 125 ms: a fifth of the window waits in the queue.
    #[test]
    fn the_part_of_the_window_that_waits_is_that_of_the_lowest_sample() {
        let mut share = QueueShare::default();
        let sample = |ms| Ack { in_flight: 4 * MSS, min_rtt: Span::from_millis(90), ..driver::ack(MSS, ms) };
        for ms in [100, 200, 300, 400] {
            assert_eq!(share.at_end_of_round(&sample(ms)), None);
        }
        assert_eq!(share.at_end_of_round(&sample(400)), Some(0.0));
        for ms in [400, 125, 150] {
            assert_eq!(share.at_end_of_round(&sample(ms)), None);
        }
        let end = share.at_end_of_round(&sample(300));
        assert!(end.is_some_and(|x| (x - 0.2).abs() < 1e-12), "{end:?}");
        let silent = Ack { rtt: None, ..sample(100) };
        let silence: Vec<_> = (0..6).map(|_| share.at_end_of_round(&silent)).collect();
        assert_eq!(silence, [None; 6], "without a sample nothing is told");
    }
}
