//! CUBIC as Linux computes it: whole segments, counts of ACKs, and a curve that is evaluated about thirty times a
//! second.
//!
//! Source: Linux 6.x, `net/ipv4/tcp_cubic.c` and `tcp_cong.c`. RFC 9438 was written from this implementation;
//! [`cubic`](super::cubic) follows the RFC. Symbols are those of the RFC; windows are whole segments, times are in
//! 1/1024 s.
//!
//! ```text
//! target = W_max + (410/1024) (t + RTT_min - K)^3,  K = cbrt((W_max - cwnd) 1024/410)
//! every cnt segments acknowledged: cwnd + 1;  cnt = cwnd / (target - cwnd), 100 cwnd on the plateau, 20 at most before
//!                                  the first loss, and never less than 2
//! Reno:   W_est + 1 for every 15 cwnd / 8 segments acknowledged;  W_est > cwnd: cnt <= cwnd / (W_est - cwnd)
//! loss:   ssthresh = max(717/1024 cwnd, 2);  W_max = cwnd, or (1 + 717/1024)/2 cwnd if cwnd < W_max
//! timeout: reduces as a loss does, except in recovery; then W_max = 0 and cwnd = 1
//! ```
//!
//! Small windows differ from the RFC: a reduction drops the fraction of a segment, W_est must be a whole segment above
//! `cwnd` before it matters, and it keeps its slope of 8/15 above the window of the last loss, where RFC 9438 §4.3 has
//! 1.
//!
//! Invariants: congestion avoidance never lowers `cwnd`; `ssthresh >= 2`. Cost: O(1), one cube root per epoch.
//!
//! DIFFERENCE: `hystart` is the HyStart++ of RFC 9406, not the older HyStart of Linux. Pinned by
//! `with_hystart_slow_start_ends_by_delay`.
//! DIFFERENCE: time is not rounded to ticks of the kernel, and the root is exact. Pinned by
//! `the_root_is_exact_and_time_is_not_rounded`.

use super::check::within;
use super::hystart::HyStart;
use super::{Ack, Advice, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The curve is evaluated at most once in this time while the window does not change: HZ/32.
const LOOK: Span = Span::from_micros(31_250);
/// Windows of ACKs per additional segment when the curve is not above the window.
const PLATEAU: u64 = 100;
/// Most segments to acknowledge per additional segment before the first loss: growth of 5 % per round trip.
const FIRST_COUNT: u64 = 20;
/// Fewest segments to acknowledge per additional segment: growth of 50 % per round trip.
const LEAST_COUNT: u64 = 2;

/// Parameters of CUBIC as Linux computes it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Part of the window that stays after a loss, in 1/1024 (Linux: 717).
    pub beta: u64,
    /// C, how fast the curve rises, in 1/1024 segments per cubic second (Linux: bic_scale 41, ten times that).
    pub c: u64,
    /// Fast convergence: a flow which has a loss below its last W_max releases part of its share.
    pub fast_convergence: bool,
    /// The window is at least the estimate of Reno's window, W_est.
    pub tcp_friendliness: bool,
    /// The first slow start is HyStart++ (RFC 9406).
    pub hystart: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { beta: 717, c: 410, fast_convergence: true, tcp_friendliness: true, hystart: false }
    }
}

impl ControlConfig for Config {
    type Control = CubicLinux;

    fn validate(&self) -> Result<(), ConfigError> {
        within("beta", self.beta as f64, 1.0, 1023.0)?;
        within("c", self.c as f64, 1.0, 1e6)
    }

    fn control(&self, setup: &Setup) -> CubicLinux {
        CubicLinux::new(self, setup)
    }
}

impl Config {
    /// Eighths of a window to acknowledge for each additional segment of W_est: beta_scale of Linux, 15 with its beta.
    fn reno_eighths(&self) -> u64 {
        8 * (1024 + self.beta) / 3 / (1024 - self.beta)
    }

    /// K in 1/1024 s; `distance` is W_max - cwnd in segments.
    fn k(&self, distance: u64) -> u64 {
        libm::cbrt((distance << 40) as f64 / self.c as f64) as u64
    }

    /// Distance in segments of the curve from its plateau, `offset` ticks of 1/1024 s before or after K.
    fn height(&self, offset: u64) -> u64 {
        let offset = u128::from(offset);
        u64::try_from((u128::from(self.c) * offset * offset * offset) >> 40).unwrap_or(u64::MAX)
    }
}

/// One stage of congestion avoidance, which begins with the first ACK after a reduction.
#[derive(Debug, Clone, PartialEq)]
struct Epoch {
    /// Begin of the stage, plus the time during which the window was not in use.
    start: Instant,
    /// K in 1/1024 s.
    k: u64,
    /// Plateau of the curve in segments: bic_origin_point of Linux.
    origin: u64,
    /// Segments acknowledged which `w_est` does not include yet.
    acked: u64,
    /// W_est, the estimate of Reno's window, in segments.
    w_est: u64,
}

/// The control of one connection: CUBIC as Linux computes it.
#[derive(Debug, Clone, PartialEq)]
pub struct CubicLinux {
    config: Config,
    mss: Bytes,
    /// Congestion window in segments.
    cwnd: u64,
    /// Slow start threshold in segments; `u64::MAX` is none.
    ssthresh: u64,
    /// W_max in segments; 0 before the first loss and after a timeout.
    w_max: u64,
    /// Segments to acknowledge for one additional segment of the window: cnt of Linux.
    count: u64,
    /// Segments acknowledged towards `count`: snd_cwnd_cnt of Linux.
    counted: u64,
    /// Bytes acknowledged that are not yet a whole segment.
    rest: Bytes,
    /// The current stage of congestion avoidance; `None` until its first ACK.
    epoch: Option<Epoch>,
    /// Window and time at the last evaluation of the curve.
    last_look: Option<(u64, Instant)>,
    /// Time of the last ACK; it tells how long the window was not in use.
    last_ack: Instant,
    /// HyStart++ during the first slow start; `None` after it, or if the option is off.
    hystart: Option<Box<HyStart>>,
    /// Fraction of a segment by which HyStart++ opened the window, not yet in `cwnd`.
    opened: f64,
    /// True between a loss and the end of its recovery.
    recovering: bool,
}

/// Converts a time to ticks of 1/1024 s, rounded down.
fn ticks(span: Span) -> u64 {
    (u128::from(span.as_nanos()) * 1024 / 1_000_000_000) as u64
}

impl CubicLinux {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        let mss = setup.mss.max(Bytes::new(1));
        Self {
            config: *config,
            mss,
            cwnd: (setup.initial_window / mss).max(1),
            ssthresh: if setup.initial_ssthresh == Bytes::MAX { u64::MAX } else { setup.initial_ssthresh / mss },
            w_max: 0,
            count: 0,
            counted: 0,
            rest: Bytes::ZERO,
            epoch: None,
            last_look: None,
            last_ack: Instant::ZERO,
            hystart: config.hystart.then(|| Box::new(HyStart::new())),
            opened: 0.0,
            recovering: false,
        }
    }

    /// Whole segments that this ACK completes; the rest counts with the next ACK.
    fn whole_segments(&mut self, acked: Bytes) -> u64 {
        let bytes = self.rest + acked;
        self.rest = bytes % self.mss;
        bytes / self.mss
    }

    /// Slow start. Returns the segments acknowledged that are left for congestion avoidance (tcp_slow_start).
    fn slow_start(&mut self, ack: &Ack, acked: u64) -> u64 {
        if let Some(hystart) = &mut self.hystart {
            match hystart.on_ack(ack, acked as f64) {
                Some(opened) => {
                    self.opened += opened;
                    self.cwnd += self.opened as u64;
                    self.opened = self.opened.fract();
                }
                None => (self.ssthresh, self.hystart) = (self.cwnd, None),
            }
            return 0;
        }
        let opened = acked.min(self.ssthresh - self.cwnd);
        self.cwnd += opened;
        acked - opened
    }

    /// Evaluates the curve and sets `count`, at most once per [`LOOK`] while the window stays (bictcp_update).
    fn look(&mut self, ack: &Ack, acked: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        if self.last_look.is_some_and(|(cwnd, at)| cwnd == self.cwnd && ack.now.since(at) <= LOOK) {
            return;
        }
        self.last_look = Some((self.cwnd, ack.now));
        let (cwnd, w_max, config) = (self.cwnd, self.w_max, self.config);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: ack.now,
            k: config.k(w_max.saturating_sub(cwnd)),
            origin: w_max.max(cwnd),
            acked,
            w_est: cwnd,
        });
        // The curve one smallest round trip ahead, as the target of RFC 9438 §4.2.
        let t = ticks(ack.now.since(epoch.start) + ack.min_rtt);
        let target = if t < epoch.k {
            epoch.origin.saturating_sub(config.height(epoch.k - t))
        } else {
            epoch.origin.saturating_add(config.height(t - epoch.k))
        };
        self.count = if target > cwnd { cwnd / (target - cwnd) } else { PLATEAU * cwnd };
        // Before the first loss, and after a timeout, the window grows by at least 5 % per round trip.
        if w_max == 0 {
            self.count = self.count.min(FIRST_COUNT);
        }
        if config.tcp_friendliness {
            // tcp_friendliness: W_est grows by a segment for each `per_segment` acknowledged.
            let per_segment = (cwnd * config.reno_eighths() / 8).max(1);
            epoch.w_est += epoch.acked / per_segment;
            epoch.acked %= per_segment;
            if epoch.w_est > cwnd {
                self.count = self.count.min(cwnd / (epoch.w_est - cwnd));
            }
        }
        self.count = self.count.max(LEAST_COUNT);
    }

    /// One segment for each `count` acknowledged (tcp_cong_avoid_ai).
    fn grow(&mut self, acked: u64) {
        if self.counted >= self.count {
            self.counted = 0;
            self.cwnd += 1;
        }
        self.counted += acked;
        self.cwnd += self.counted / self.count;
        self.counted %= self.count;
    }

    /// Sets `ssthresh` and W_max after a congestion signal (bictcp_recalc_ssthresh).
    fn reduce(&mut self) {
        let Config { beta, fast_convergence, .. } = self.config;
        let gives_up = fast_convergence && self.cwnd < self.w_max;
        self.w_max = if gives_up { self.cwnd * (1024 + beta) / 2048 } else { self.cwnd };
        self.ssthresh = (self.cwnd * beta / 1024).max(2);
        self.epoch = None;
        self.hystart = None;
    }
}

impl CongestionControl for CubicLinux {
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.cwnd * self.mss
    }

    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.ssthresh * self.mss
    }

    fn on_ack(&mut self, ack: &Ack) {
        let acked = self.whole_segments(ack.acked);
        if !ack.cwnd_limited {
            if let Some(epoch) = &mut self.epoch {
                epoch.start += ack.now.since(self.last_ack);
            }
            self.last_ack = ack.now;
            return;
        }
        self.last_ack = ack.now;
        let left = if self.cwnd < self.ssthresh { self.slow_start(ack, acked) } else { acked };
        if left > 0 {
            self.look(ack, left);
            self.grow(left);
        }
    }

    fn on_loss(&mut self, _: &Loss) {
        self.reduce();
        self.recovering = true;
    }

    fn on_recovered(&mut self, _: Instant) {
        if std::mem::take(&mut self.recovering) {
            self.cwnd = self.ssthresh;
        }
    }

    fn on_rto(&mut self, _: &Loss) {
        // In recovery the loss has set the threshold already.
        if !std::mem::take(&mut self.recovering) {
            self.reduce();
        }
        (self.cwnd, self.w_max, self.count, self.counted, self.last_look) = (1, 0, 0, 0, None);
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.cwnd = self.cwnd.min((initial_window / self.mss).max(1));
        self.epoch = None;
    }

    fn advise(&mut self, advice: Advice) {
        let Advice::Adopt { cwnd, ssthresh } = advice else { return };
        let (cwnd, ssthresh) = (cwnd / self.mss, ssthresh / self.mss);
        if self.cwnd != cwnd {
            self.cwnd = cwnd.max(1);
            self.epoch = None; // the curve of this epoch began at another window
        }
        self.ssthresh = ssthresh.max(2);
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// A control in congestion avoidance after a loss with `cwnd` segments.
    fn reduced(cwnd: u64) -> CubicLinux {
        let mut cc = CubicLinux::new(&Config::default(), &Setup { initial_window: cwnd * MSS, ..driver::SETUP });
        cc.on_loss(&Loss { now: at(0), in_flight: cwnd * MSS, ecn: false });
        cc.on_recovered(at(0));
        cc
    }

    /// ACKs of one segment each, a window of them in each of so many round trips of 75 ms.
    fn rounds(cc: &mut CubicLinux, begin_ms: u64, count: u64) {
        for round in 0..count {
            let segments = cc.cwnd() / MSS;
            for i in 1..=segments {
                let now = at(begin_ms + 75 * round) + Span::from_millis(75).div(segments) * i;
                let rtt = Span::from_millis(75);
                cc.on_ack(&Ack { now, srtt: rtt, min_rtt: rtt, ..driver::ack(MSS, 1) });
            }
        }
    }

    #[test]
    fn fractions_of_a_segment_are_cut_off() {
        // 717/1024 of 16 are 11.2.
        assert_eq!(reduced(16).cwnd(), 11 * MSS);
        // 717/1024 of 2 are 1.4, but two segments are the least.
        assert_eq!(reduced(2).ssthresh(), 2 * MSS);
    }

    #[test]
    fn the_curve_is_that_of_the_rfc() {
        // K = cbrt(30 / 0.4004) = 4.2159 s, in 1/1024 s.
        let config = Config::default();
        assert!((4316..=4318).contains(&config.k(30)), "{}", config.k(30));
        // One second from the plateau it is 0.4 segments lower, two seconds 3.2, ten seconds 400.
        assert_eq!([1024, 2048, 10_240].map(|ticks| config.height(ticks)), [0, 3, 400]);
    }

    #[test]
    fn fast_convergence_gives_up_part_of_the_share() {
        let mut cc = reduced(100);
        assert_eq!((cc.w_max, cc.cwnd), (100, 70));
        cc.on_loss(&Loss { now: at(100), in_flight: 70 * MSS, ecn: false });
        // 70 (1024 + 717) / 2048 = 59.5; 70 717/1024 = 49.01
        assert_eq!((cc.w_max, cc.ssthresh), (59, 49));
    }

    /// K is cbrt(5 / 0.4004) = 2.32 s. With the first ACK, t is the round trip: the curve is 0.4004 2.245^3 = 4.53
    /// below 16, of which 4 count, so the target is 12 and eleven ACKs bring a segment. At 16 - 3 = 13 the curve rests
    /// until 1.96 s are left of K, when W_est has long taken over: 11 and 8/15 per round trip.
    #[test]
    fn a_small_window_takes_the_rounded_curve_and_then_renos_estimate() {
        let mut cc = reduced(16);
        rounds(&mut cc, 1, 1);
        assert_eq!(cc.cwnd(), 12 * MSS);
        rounds(&mut cc, 76, 1);
        assert_eq!(cc.cwnd(), 13 * MSS);
        let mut cc = reduced(16);
        rounds(&mut cc, 1, 10);
        // 10 round trips bring W_est to 16; the last segment of it is not in use yet.
        assert!((15 * MSS..=16 * MSS).contains(&cc.cwnd()), "{}", cc.cwnd());
    }

    /// RFC 9438 grows by a segment per round trip above the window of the last loss; Linux keeps 8/15.
    #[test]
    fn above_the_last_window_it_keeps_its_slope() {
        let mut cc = reduced(16);
        rounds(&mut cc, 1, 12);
        let before = cc.cwnd() / MSS;
        rounds(&mut cc, 1 + 12 * 75, 8);
        let grown = cc.cwnd() / MSS - before;
        assert!((3..=5).contains(&grown), "{grown} segments in eight round trips, of which 8/15 are 4.3");
    }

    #[test]
    fn a_timeout_forgets_the_last_window() {
        let mut cc = reduced(100);
        cc.on_rto(&Loss { now: at(50), in_flight: 70 * MSS, ecn: false });
        assert_eq!((cc.cwnd, cc.ssthresh, cc.w_max), (1, 49, 0));
    }

    #[test]
    fn a_timeout_in_recovery_does_not_reduce_again() {
        let mut cc = reduced(100);
        cc.on_loss(&Loss { now: at(50), in_flight: 70 * MSS, ecn: false });
        cc.on_rto(&Loss { now: at(300), in_flight: 10 * MSS, ecn: false });
        assert_eq!((cc.cwnd, cc.ssthresh), (1, 49));
    }

    #[test]
    fn with_hystart_slow_start_ends_by_delay() {
        let config = Config { hystart: true, ..Config::default() };
        let mut cc = CubicLinux::new(&config, &driver::SETUP);
        for round in 0..20u64 {
            let rtt = Span::from_millis(50 + 20 * round);
            for _ in 0..cc.cwnd() / MSS {
                let now = at(1000 * round);
                cc.on_ack(&Ack { now, rtt: Some(rtt), in_flight: cc.cwnd(), ..driver::ack(MSS, 1) });
            }
        }
        assert!(cc.ssthresh() < Bytes::MAX, "twenty milliseconds more in each round");
    }

    /// The root is the whole part of the exact one, where the kernel's is up to 0.2 % away. The curve is looked at
    /// again when 31.25 ms are over, to the nanosecond and not to the tick.
    #[test]
    fn the_root_is_exact_and_time_is_not_rounded() {
        let config = Config::default();
        for distance in 1..3000u64 {
            let (root, cube) = (u128::from(config.k(distance)), |x: u128| x * x * x * u128::from(config.c));
            assert!(cube(root) <= u128::from(distance) << 40, "K of {distance} is too large");
            assert!(cube(root + 1) > u128::from(distance) << 40, "K of {distance} is too small");
        }
        let mut cc = reduced(100);
        cc.look(&Ack { now: at(1000), ..driver::ack(MSS, 1) }, 1);
        let looks = [LOOK, LOOK + Span::from_nanos(1)].map(|later| {
            cc.look(&Ack { now: at(1000) + later, ..driver::ack(MSS, 1) }, 1);
            cc.last_look.unwrap().1
        });
        assert_eq!(looks, [at(1000), at(1000) + LOOK + Span::from_nanos(1)]);
    }

    /// `tcp_is_cwnd_limited()`: who does not fill the window does not open it, and that time does not count in the epoch.
    #[test]
    fn a_window_that_is_not_filled_does_not_open() {
        let mut cc = reduced(100);
        let before = cc.cwnd();
        for ms in 1..1000 {
            cc.on_ack(&Ack { now: at(100 * ms), cwnd_limited: false, ..driver::ack(MSS, 75) });
        }
        assert_eq!((cc.cwnd(), cc.epoch.is_none()), (before, true));
    }
}
