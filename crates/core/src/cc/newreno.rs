//! NewReno: slow start and additive increase, halving on loss.
//!
//! Source: RFC 5681 §3.1 and §4.1, RFC 3465 (byte counting), RFC 6582 (recovery, which the endpoint implements).
//!
//! ```text
//! slow start            cwnd += min(N, L SMSS)                   RFC 5681 eq. (2), RFC 3465 §2.2
//! congestion avoidance  cwnd += SMSS per cwnd bytes              RFC 5681 §3.1, RFC 3465 §2.1
//! loss                  ssthresh = max(beta FlightSize, 2 SMSS)  RFC 5681 eq. (4)
//! timeout               ssthresh as for a loss; cwnd = 1 SMSS    RFC 5681 §3.1
//! idle                  cwnd = min(IW, cwnd)                     RFC 5681 §4.1
//! ```
//!
//! | parameter | value | source |
//! |---|---|---|
//! | beta | 1/2 | RFC 5681 eq. (4) |
//! | abc_limit, L | 2 | RFC 3465 §2.3 |
//!
//! With `growth = "acks"` congestion avoidance adds SMSS²/cwnd for each ACK, whatever it acknowledges: RFC 5681 eq. (3),
//! the form of older simulators, which delayed ACKs slow down.
//!
//! In the slow start after a timeout L is 1 (RFC 3465 §2.3, RFC 5681 eq. (2)).
//!
//! | state | meaning |
//! |---|---|
//! | `cwnd`, `ssthresh` | bytes |
//! | `acked` | bytes acknowledged towards the next increment |
//! | `after_timeout` | L is 1 in this slow start |
//!
//! Invariants: `cwnd >= SMSS` if the initial window is, `ssthresh >= 2 SMSS`. Cost: O(1) per event.
//!
//! DIFFERENCE: an ACK in congestion avoidance counts for at most one window. After a timeout, the ACK of a
//! retransmission that fills a hole covers many windows of data which left the network long before. Pinned by
//! `an_ack_that_fills_a_hole_counts_for_one_window`.
//!
//! With `compat = "linux"` the rules are those of the kernel: see `newreno/linux.rs`.

pub(super) mod linux;

use super::check::{fraction, within};
use super::linux::{Form, Linux, constants};
use super::start::{self, Start};
use super::{Ack, Advice, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::{Compat, ConfigError};
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// L of RFC 3465 §2.3: the most segments by which one ACK may open the window in slow start.
pub(super) const L: u64 = 2;

/// What lets the window grow in congestion avoidance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Growth {
    /// Acknowledged bytes (RFC 3465 §2.1).
    #[default]
    Bytes,
    /// ACKs (RFC 5681 eq. (3)).
    Acks,
}

/// Parameters of NewReno.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Part of the data in flight that stays after a loss (RFC 5681 eq. (4): 1/2).
    pub beta: f64,
    /// Segments by which one ACK may open the window in slow start, L of RFC 3465 §2.3; after a timeout it is 1.
    pub abc_limit: u64,
    /// What lets the window grow in congestion avoidance: acknowledged "bytes" (RFC 3465), or "acks" (RFC 5681 eq. (3)).
    pub growth: Growth,
    /// Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    pub compat: Compat,
    /// The first slow start ends by SEARCH (draft-chung-ccwg-search-09).
    pub search: bool,
    /// The window that an earlier connection had on this path, for Careful Resume (RFC 9959: saved_cwnd); null is none.
    pub resume_cwnd: Option<Bytes>,
    /// The smallest round trip time of that connection (saved_rtt).
    pub resume_rtt: Option<Span>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            beta: 0.5,
            abc_limit: L,
            growth: Growth::Bytes,
            compat: Compat::Source,
            search: false,
            resume_cwnd: None,
            resume_rtt: None,
        }
    }
}

impl ControlConfig for Config {
    type Control = Form<NewReno, Box<Linux<linux::Reno>>>;

    fn validate(&self) -> Result<(), ConfigError> {
        fraction("beta", self.beta)?;
        within("abc_limit", self.abc_limit as f64, 1.0, 1e3)?;
        start::validate(self.resume_cwnd, self.resume_rtt)?;
        match self.compat {
            Compat::Source => Ok(()),
            Compat::Linux => constants(&[
                ("beta", self.beta == 0.5),
                ("abc_limit", self.abc_limit == L),
                ("growth", self.growth == Growth::Bytes),
            ]),
        }
    }

    fn control(&self, setup: &Setup) -> Self::Control {
        Form::new(self.compat, setup, || NewReno::new(self, setup), || linux::Reno)
    }

    fn start(&self) -> Start {
        Start::of(self.search, self.resume_cwnd, self.resume_rtt)
    }
}

/// The NewReno control of one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct NewReno {
    /// See [`Config::beta`].
    beta: f64,
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    /// Bytes acknowledged towards the next increment of congestion avoidance.
    acked: Bytes,
    /// See [`Config::abc_limit`].
    abc_limit: u16,
    growth: Growth,
    /// A timeout occurred, and neither congestion avoidance nor a loss has followed it: L is 1.
    after_timeout: bool,
}

/// The slow start threshold after a loss: RFC 5681 eq. (4).
fn ssthresh(beta: f64, flight_size: Bytes, smss: Bytes) -> Bytes {
    Bytes::new((flight_size.as_f64() * beta) as u64).max(2 * smss)
}

impl NewReno {
    /// Creates a control which begins in slow start. Call it only with a valid `config`.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        let mss = setup.mss.max(Bytes::new(1));
        Self {
            beta: config.beta,
            mss,
            cwnd: setup.initial_window,
            ssthresh: setup.initial_ssthresh,
            acked: Bytes::ZERO,
            abc_limit: u16::try_from(config.abc_limit).unwrap_or(u16::MAX),
            growth: config.growth,
            after_timeout: false,
        }
    }

    /// Sets `ssthresh`; a new window begins to earn its increment from zero.
    fn reduce(&mut self, in_flight: Bytes) {
        self.ssthresh = ssthresh(self.beta, in_flight, self.mss);
        self.acked = Bytes::ZERO;
    }

    /// One segment per window of acknowledged bytes (RFC 3465 §2.1); `acked` is what is left over. Or SMSS²/cwnd per
    /// ACK (RFC 5681 eq. (3)), at least one byte as its note says.
    #[inline]
    fn avoid_congestion(&mut self, acked: Bytes) {
        self.after_timeout = false;
        if self.growth == Growth::Acks {
            self.cwnd += Bytes::new((self.mss.get() * self.mss.get() / self.cwnd.get().max(1)).max(1));
            return;
        }
        self.acked += acked.min(self.cwnd);
        if self.acked >= self.cwnd {
            self.acked -= self.cwnd;
            self.cwnd += self.mss;
        }
    }
}

impl CongestionControl for NewReno {
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.cwnd_limited {
            return; // RFC 7661: a window that is not in use does not grow
        }
        if self.cwnd < self.ssthresh {
            let limit = if self.after_timeout { 1 } else { u64::from(self.abc_limit) };
            self.cwnd += ack.acked.min(limit * self.mss);
        } else {
            self.avoid_congestion(ack.acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.reduce(loss.in_flight);
        self.after_timeout = false;
    }

    fn on_recovered(&mut self, _: Instant) {
        // Without an earlier signal there is no threshold, and the window stays.
        if self.ssthresh < Bytes::MAX {
            self.cwnd = self.ssthresh;
        }
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.reduce(loss.in_flight);
        self.cwnd = self.mss;
        self.after_timeout = true;
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.cwnd = self.cwnd.min(initial_window);
        self.acked = Bytes::ZERO;
    }

    fn advise(&mut self, advice: Advice) {
        let Advice::Adopt { cwnd, ssthresh } = advice else { return };
        (self.cwnd, self.ssthresh) = (cwnd, ssthresh.max(2 * self.mss));
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    /// In congestion avoidance with a window of `segments`.
    fn avoiding(segments: u64) -> NewReno {
        let mut cc = NewReno::new(&Config::default(), &driver::SETUP);
        cc.on_loss(&driver::loss(2 * segments * MSS));
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (segments * MSS, segments * MSS));
        cc
    }

    #[test]
    fn slow_start_doubles_the_window_each_round_trip() {
        let mut cc = NewReno::new(&Config::default(), &driver::SETUP);
        for expected in [20, 40, 80] {
            driver::round_trip(&mut cc, 100);
            assert_eq!(cc.cwnd(), expected * MSS);
        }
    }

    #[test]
    fn congestion_avoidance_adds_one_segment_each_round_trip() {
        let mut cc = avoiding(10);
        for expected in [11, 12, 13] {
            driver::round_trip(&mut cc, 100);
            assert_eq!(cc.cwnd(), expected * MSS);
        }
    }

    /// RFC 3465: bytes count, not ACKs, so a receiver that acknowledges every second segment slows nobody down.
    #[test]
    fn delayed_acks_slow_neither_phase_down() {
        let mut cc = NewReno::new(&Config::default(), &driver::SETUP);
        (0..5).for_each(|_| cc.on_ack(&driver::ack(2 * MSS, 100)));
        assert_eq!(cc.cwnd(), 20 * MSS);
        let mut cc = avoiding(10);
        (0..5).for_each(|_| cc.on_ack(&driver::ack(2 * MSS, 100)));
        assert_eq!(cc.cwnd(), 11 * MSS);
    }

    /// RFC 5681 eq. (3) by hand: ten ACKs of a window of ten segments add a little less than one segment, since the window
    /// grows meanwhile; five ACKs of two segments each add half of that.
    #[test]
    fn delayed_acks_halve_a_growth_that_counts_acks() {
        let grown = |acks: u64, size: u64| {
            let mut cc = NewReno::new(&Config { growth: Growth::Acks, ..Config::default() }, &driver::SETUP);
            cc.on_loss(&driver::loss(20 * MSS));
            cc.on_recovered(Instant::ZERO);
            (0..acks).for_each(|_| cc.on_ack(&driver::ack(size * MSS, 100)));
            (cc.cwnd().as_f64() - 10.0 * MSS.as_f64()) / MSS.as_f64()
        };
        let by_hand = |acks: u64| (0..acks).fold(10.0, |w: f64, _| w + 1.0 / w) - 10.0;
        assert!((grown(10, 1) - by_hand(10)).abs() < 0.01, "{}", grown(10, 1));
        assert!((grown(5, 2) - by_hand(5)).abs() < 0.01, "{}", grown(5, 2));
    }

    #[test]
    fn one_ack_opens_the_window_by_two_segments_at_most_and_by_one_after_a_timeout() {
        let mut cc = NewReno::new(&Config::default(), &driver::SETUP);
        cc.on_ack(&driver::ack(8 * MSS, 100));
        assert_eq!(cc.cwnd(), 12 * MSS);
        cc.on_rto(&driver::loss(12 * MSS));
        cc.on_ack(&driver::ack(8 * MSS, 100));
        assert_eq!(cc.cwnd(), 2 * MSS);
        cc.on_loss(&driver::loss(40 * MSS));
        cc.on_recovered(Instant::ZERO);
        cc.on_idle(Instant::ZERO, 10 * MSS);
        cc.on_ack(&driver::ack(8 * MSS, 100));
        assert_eq!(cc.cwnd(), 12 * MSS, "the limit of a timeout ends with the next loss");
    }

    #[test]
    fn the_limit_of_a_timeout_ends_with_congestion_avoidance() {
        let mut cc = NewReno::new(&Config::default(), &driver::SETUP);
        cc.on_rto(&driver::loss(20 * MSS));
        while cc.cwnd() <= cc.ssthresh() {
            driver::round_trip(&mut cc, 100);
        }
        cc.on_idle(Instant::ZERO, 4 * MSS);
        cc.on_ack(&driver::ack(8 * MSS, 100));
        assert_eq!(cc.cwnd(), 6 * MSS);
    }

    #[test]
    fn an_ack_that_fills_a_hole_counts_for_one_window() {
        let mut cc = avoiding(10);
        cc.on_ack(&driver::ack(500 * MSS, 100));
        assert_eq!(cc.cwnd(), 11 * MSS);
        (0..10).for_each(|_| cc.on_ack(&driver::ack(MSS, 100)));
        assert_eq!(cc.cwnd(), 11 * MSS, "nothing of it is left over");
    }

    /// Nine tenths of an increment, earned with the old window, are not carried over to a smaller one.
    #[test]
    fn a_smaller_window_earns_its_increment_anew() {
        let cuts: [fn(&mut NewReno); 2] = [
            |cc| {
                cc.on_loss(&driver::loss(10 * MSS));
                cc.on_recovered(Instant::ZERO);
            },
            |cc| {
                cc.on_idle(Instant::ZERO, 5 * MSS);
                (0..5).for_each(|_| cc.on_ack(&driver::ack(MSS, 100))); // back in congestion avoidance
            },
        ];
        for cut in cuts {
            let mut cc = avoiding(10);
            (0..9).for_each(|_| cc.on_ack(&driver::ack(MSS, 100)));
            cut(&mut cc);
            let before = cc.cwnd();
            (1..before / MSS).for_each(|_| cc.on_ack(&driver::ack(MSS, 100)));
            assert_eq!(cc.cwnd(), before);
            cc.on_ack(&driver::ack(MSS, 100));
            assert_eq!(cc.cwnd(), before + MSS);
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_the_threshold_is_at_least_two() {
        let mut cc = NewReno::new(&Config::default(), &driver::SETUP);
        cc.on_rto(&driver::loss(20 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (MSS, 10 * MSS));
        cc.on_rto(&driver::loss(3 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (MSS, 2 * MSS));
    }

    #[test]
    fn a_loss_halves_the_flight_and_not_the_window() {
        let mut cc = avoiding(50);
        cc.on_loss(&driver::loss(30 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (50 * MSS, 15 * MSS), "the endpoint brings the window down");
        cc.on_recovered(Instant::ZERO);
        assert_eq!(cc.cwnd(), 15 * MSS);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        for mut cc in [NewReno::new(&Config::default(), &driver::SETUP), avoiding(10)] {
            (0..20).for_each(|_| cc.on_ack(&Ack { cwnd_limited: false, ..driver::ack(MSS, 100) }));
            assert_eq!(cc.cwnd(), 10 * MSS);
        }
    }

    #[test]
    fn an_idle_connection_restarts_from_the_initial_window_at_most() {
        let mut cc = avoiding(50);
        cc.on_idle(Instant::ZERO, 10 * MSS);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (10 * MSS, 50 * MSS));
        let mut cc = avoiding(5);
        cc.on_idle(Instant::ZERO, 10 * MSS);
        assert_eq!(cc.cwnd(), 5 * MSS);
    }

    #[test]
    fn the_end_of_a_recovery_without_a_signal_changes_nothing() {
        let mut cc = NewReno::new(&Config::default(), &driver::SETUP);
        cc.on_recovered(Instant::ZERO);
        assert_eq!((cc.cwnd(), cc.ssthresh()), (10 * MSS, Bytes::MAX));
    }

    /// AIMD(1, 1/2) with one loss per 1/p segments: the window runs from W/2 to W in W/2 round trips, 3/8 W^2
    /// segments, so W = sqrt(8/(3p)) and the mean is 3/4 W = sqrt(3/(2p)), the law of RFC 9438 §4.3 eq. (3).
    #[test]
    fn the_mean_window_is_that_of_the_square_root_law() {
        for (p, rtt_ms) in [(1e-3, 10), (1e-3, 300), (1e-4, 100)] {
            let mean = driver::mean_window(&mut NewReno::new(&Config::default(), &driver::SETUP), p, rtt_ms);
            driver::assert_close(mean, driver::reno_law(p), 0.03);
        }
    }
}
