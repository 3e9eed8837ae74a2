//! CUBIC as Linux computes it: whole segments, counts of ACKs, and a curve that is evaluated about thirty times a
//! second.
//!
//! Source: Linux 6, `net/ipv4/tcp_cubic.c` and `tcp_cong.c`. RFC 9438 was written from this implementation;
//! [`cubic`](super::cubic) follows the RFC. Symbols are those of the RFC; windows are whole segments, times are in
//! 1/1024 s, made of whole ticks of 1 ms.
//!
//! ```text
//! target = W_max + (410/1024) (t + RTT_min - K)^3,  K = cbrt((W_max - cwnd) 2^40/410), the kernel's root
//! every cnt segments acknowledged: cwnd + 1;  cnt = cwnd / (target - cwnd), 100 cwnd on the plateau, 20 at most before
//!                                  the first loss, and never less than 2
//! Reno:   W_est + 1 for every 15 cwnd / 8 segments acknowledged;  W_est > cwnd: cnt <= cwnd / (W_est - cwnd)
//! loss:   ssthresh = max(717/1024 cwnd, 2);  W_max = cwnd, or (1 + 717/1024)/2 cwnd if cwnd < W_max
//! timeout: reduces as a loss does, except in recovery; then W_max = 0 and cwnd = 1
//! HyStart (option): slow start ends at 16 segments or more
//!         by the train of ACKs, each within 2 ms of the one before: when it lasts longer than half of RTT_min + d, or all
//!         of it if the endpoint paces; d = 4 65536 B / pacing rate, 1 ms at most
//!         by delay: the lowest of more than 8 round trips of a round > RTT_min + RTT_min/8, which is 4 to 16 ms
//! ```
//!
//! Small windows differ from the RFC: a reduction drops the fraction of a segment, W_est must be a whole segment above
//! `cwnd` before it matters, and it keeps its slope of 8/15 above the window of the last loss, where RFC 9438 §4.3 has
//! 1. The root is that of the kernel, a table and one step of Newton's, up to 0.2 % from the exact one on average.
//!
//! `crates/trace/tests/kernel_controls.rs` compares it with the kernel's own module: equal windows in each of 500 rounds.
//!
//! Invariants: congestion avoidance never lowers `cwnd`; `ssthresh >= 2`. Cost: O(1), one cube root per epoch.
//!
//! DIFFERENCE: the time during which the window was not in use does not count in the epoch; the kernel leaves out only
//! times in which nothing was in flight. Pinned by `a_window_that_is_not_filled_does_not_open`.
//! DIFFERENCE: the pacing rate of HyStart is 2 cwnd / SRTT, whatever is in flight. Pinned by
//! `a_train_of_acks_ends_slow_start_at_half_of_the_round_trip`.

use super::check::within;
use super::linux::{HZ, Linux, Ops, Socket, microseconds, ticks};
use super::start::{self, Start};
use super::{Ack, ControlConfig, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The curve is evaluated at most once in this many ticks while the window does not change.
const LOOK: u64 = HZ / 32;
/// Windows of ACKs per additional segment when the curve is not above the window.
const PLATEAU: u64 = 100;
/// Most segments to acknowledge per additional segment before the first loss: growth of 5 % per round trip.
const FIRST_COUNT: u64 = 20;
/// Fewest segments to acknowledge per additional segment: growth of 50 % per round trip.
const LEAST_COUNT: u64 = 2;

// HyStart's constants, in microseconds where they are times, with the kernel's names.
const HYSTART_LOW_WINDOW: u64 = 16;
const HYSTART_ACK_DELTA_US: u64 = 2000;
const HYSTART_MIN_SAMPLES: u32 = 8;
const HYSTART_DELAY_MIN_US: u64 = 4000;
const HYSTART_DELAY_MAX_US: u64 = 16_000;
/// GSO_MAX_SIZE: the largest burst that a host hands to its interface.
const BURST: u64 = 65_536;

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
    /// Slow start ends by HyStart: by the train of ACKs or by delay (Linux: true).
    pub hystart: bool,
    /// The first slow start ends by SEARCH (draft-chung-ccwg-search-09), in place of HyStart.
    pub search: bool,
    /// The window that an earlier connection had on this path, for Careful Resume (RFC 9959: saved_cwnd); null is none.
    pub resume_cwnd: Option<Bytes>,
    /// The smallest round trip time of that connection (saved_rtt).
    pub resume_rtt: Option<Span>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            beta: 717,
            c: 410,
            fast_convergence: true,
            tcp_friendliness: true,
            hystart: false,
            search: false,
            resume_cwnd: None,
            resume_rtt: None,
        }
    }
}

impl ControlConfig for Config {
    type Control = Linux<CubicLinux>;

    fn validate(&self) -> Result<(), ConfigError> {
        within("beta", self.beta as f64, 1.0, 1023.0)?;
        within("c", self.c as f64, 1.0, 1e6)?;
        start::validate(self.resume_cwnd, self.resume_rtt)
    }

    fn control(&self, setup: &Setup) -> Linux<CubicLinux> {
        Linux::with(CubicLinux::new(self), setup)
    }

    fn start(&self) -> Start {
        Start::of(self.search, self.resume_cwnd, self.resume_rtt)
    }
}

impl Config {
    /// Eighths of a window to acknowledge for each additional segment of W_est: beta_scale of Linux, 15 with its beta.
    fn reno_eighths(&self) -> u64 {
        (8 * (1024 + self.beta) / 3 / (1024 - self.beta)).max(8)
    }

    /// K in 1/1024 s; `distance` is W_max - cwnd in segments.
    fn k(&self, distance: u64) -> u64 {
        cubic_root(((1 << 40) / self.c).saturating_mul(distance))
    }

    /// Distance in segments of the curve from its plateau, `offset` ticks of 1/1024 s before or after K.
    fn height(&self, offset: u64) -> u64 {
        let offset = u128::from(offset);
        u64::try_from((u128::from(self.c) * offset * offset * offset) >> 40).unwrap_or(u64::MAX)
    }
}

/// The kernel's cube root (`cubic_root`): a table for the leading six bits, and one step of Newton's method.
fn cubic_root(a: u64) -> u64 {
    /// 64 times the cube root of the index times 2^18, less 10, refined by hand in the kernel.
    #[rustfmt::skip]
    const V: [u64; 64] = [
          0,  54,  54,  54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156,
        157, 161, 164, 168, 170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199,
        200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222, 224, 225, 227, 229,
        231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
    ];
    let bits = u64::from(u64::BITS - a.leading_zeros());
    if bits < 7 {
        return (V[a as usize] + 35) >> 6;
    }
    let third = ((bits * 84) >> 8) - 1;
    let x = ((V[(a >> (third * 3)) as usize] + 10) << third) >> 6;
    // x = (2 x + a / x^2) / 3, where 341/1024 is a third.
    let x = 2 * x + a / (x * (x - 1));
    (x * 341) >> 10
}

/// One stage of congestion avoidance, which begins with the first ACK after a reduction.
#[derive(Debug, Clone, PartialEq)]
struct Epoch {
    /// Begin of the stage, plus the time during which the window was not in use, in ticks.
    start: u64,
    /// K in 1/1024 s.
    k: u64,
    /// Plateau of the curve in segments: bic_origin_point of Linux.
    origin: u64,
    /// Segments acknowledged which `w_est` does not include yet.
    acked: u64,
    /// W_est, the estimate of Reno's window, in segments.
    w_est: u64,
}

/// HyStart of Linux; times are in microseconds.
#[derive(Debug, Clone, PartialEq)]
struct HyStart {
    /// Slow start has ended once: `found`.
    found: bool,
    /// Bytes acknowledged in all (`snd_una`), and at the end of this round (`end_seq`).
    una: Bytes,
    end: Bytes,
    round_start: u64,
    /// Time of the last ACK of the train.
    last_ack: u64,
    /// The lowest round trip time of this round, and the number of samples.
    lowest: u64,
    samples: u32,
}

impl HyStart {
    fn new() -> Self {
        let end = Bytes::ZERO;
        Self { found: false, una: end, end, round_start: 0, last_ack: 0, lowest: u64::MAX, samples: 0 }
    }

    /// Begins a round with this ACK, which ends when what is now in flight is acknowledged.
    fn begin_round(&mut self, ack: &Ack, now: u64) {
        self.end = self.una + ack.in_flight.saturating_sub(ack.acked);
        (self.round_start, self.last_ack, self.lowest, self.samples) = (now, now, u64::MAX, 0);
    }

    /// Takes an ACK of slow start; true if slow start is over (`hystart_update`).
    fn ends_slow_start(&mut self, socket: &Socket, ack: &Ack, delay: u64, delay_min: u64) -> bool {
        let now = ack.now.as_nanos() / 1000;
        if self.una > self.end {
            self.begin_round(ack, now);
        }
        if socket.cwnd < HYSTART_LOW_WINDOW {
            return false;
        }
        let train = self.train_is_long(socket, ack, now, delay_min);
        self.found = self.delay_rises(delay, delay_min) || train;
        self.found
    }

    fn train_is_long(&mut self, socket: &Socket, ack: &Ack, now: u64, delay_min: u64) -> bool {
        if now - self.last_ack > HYSTART_ACK_DELTA_US {
            return false;
        }
        self.last_ack = now;
        // tcp_update_pacing_rate: twice the window per round trip in slow start.
        let rate = 2.0 * (socket.mss * socket.cwnd).as_f64() / ack.srtt.as_secs_f64().max(1e-6);
        let threshold = delay_min + ((4 * BURST) as f64 * 1e6 / rate).min(1000.0) as u64;
        now - self.round_start > if socket.paced { threshold } else { threshold / 2 }
    }

    fn delay_rises(&mut self, delay: u64, delay_min: u64) -> bool {
        self.lowest = self.lowest.min(delay);
        if self.samples < HYSTART_MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.lowest > delay_min + (delay_min / 8).clamp(HYSTART_DELAY_MIN_US, HYSTART_DELAY_MAX_US)
    }
}

/// What CUBIC as Linux computes it keeps beside the window.
#[derive(Debug, Clone, PartialEq)]
pub struct CubicLinux {
    config: Config,
    /// W_max in segments; 0 before the first loss and after a timeout.
    w_max: u64,
    /// Segments to acknowledge for one additional segment of the window: cnt of Linux.
    count: u64,
    /// RTT_min in microseconds: delay_min of Linux; 0 before the first sample and after a timeout.
    delay_min: u64,
    /// The current stage of congestion avoidance; `None` until its first ACK.
    epoch: Option<Epoch>,
    /// Window and tick of the last evaluation of the curve.
    last_look: Option<(u64, u64)>,
    /// Tick of the last ACK; it tells how long the window was not in use.
    last_ack: u64,
    hystart: Option<Box<HyStart>>,
}

impl CubicLinux {
    /// Creates the state of a new connection.
    pub fn new(config: &Config) -> Self {
        Self {
            config: *config,
            w_max: 0,
            count: 0,
            delay_min: 0,
            epoch: None,
            last_look: None,
            last_ack: 0,
            hystart: (config.hystart && !config.search).then(|| Box::new(HyStart::new())),
        }
    }

    /// Evaluates the curve and sets `count`, at most once per [`LOOK`] while the window stays (bictcp_update).
    fn look(&mut self, cwnd: u64, now: u64, acked: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
        }
        match self.last_look {
            Some((before, at)) if before == cwnd && now - at <= LOOK => return,
            // The curve has the same answer for the whole of a tick; W_est has not.
            Some((_, at)) if at == now && self.epoch.is_some() => {}
            _ => self.follow_curve(cwnd, now, acked),
        }
        if self.config.tcp_friendliness {
            self.follow_reno(cwnd);
        }
        self.count = self.count.max(LEAST_COUNT);
    }

    fn follow_curve(&mut self, cwnd: u64, now: u64, acked: u64) {
        self.last_look = Some((cwnd, now));
        let (w_max, config) = (self.w_max, self.config);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: now,
            k: if w_max > cwnd { config.k(w_max - cwnd) } else { 0 },
            origin: w_max.max(cwnd),
            acked,
            w_est: cwnd,
        });
        // The curve one smallest round trip ahead, as the target of RFC 9438 §4.2.
        let ahead = self.delay_min.div_ceil(1_000_000 / HZ);
        let t = ((now.saturating_sub(epoch.start) + ahead) << 10) / HZ;
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
    }

    /// W_est grows by a segment for each `per_segment` acknowledged, once more than that were (tcp_friendliness).
    fn follow_reno(&mut self, cwnd: u64) {
        let per_segment = (cwnd * self.config.reno_eighths() / 8).max(1);
        let Some(epoch) = &mut self.epoch else { return };
        let grown = epoch.acked.saturating_sub(1) / per_segment;
        epoch.w_est += grown;
        epoch.acked -= grown * per_segment;
        if epoch.w_est > cwnd {
            self.count = self.count.min(cwnd / (epoch.w_est - cwnd));
        }
    }

    /// Takes a round trip time (cubictcp_acked). Those of the first second of an epoch are not looked at.
    fn measure(&mut self, socket: &mut Socket, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        if self.epoch.as_ref().is_some_and(|epoch| ticks(ack.now) < epoch.start + HZ) {
            return;
        }
        let delay = microseconds(rtt).max(1);
        if self.delay_min == 0 || self.delay_min > delay {
            self.delay_min = delay;
        }
        if let Some(hystart) = &mut self.hystart
            && !hystart.found
            && socket.in_slow_start()
            && hystart.ends_slow_start(socket, ack, delay, self.delay_min)
        {
            socket.ssthresh = socket.cwnd;
        }
    }
}

impl Ops for CubicLinux {
    fn acked(&mut self, socket: &mut Socket, ack: &Ack, _: u64) {
        if let Some(hystart) = &mut self.hystart {
            hystart.una += ack.acked;
        }
        self.measure(socket, ack);
        let now = ticks(ack.now);
        if !ack.cwnd_limited
            && let Some(epoch) = &mut self.epoch
        {
            epoch.start += now - self.last_ack;
        }
        self.last_ack = now;
    }

    fn avoid(&mut self, socket: &mut Socket, ack: &Ack, acked: u64) {
        let left = socket.slow_start(acked);
        if left > 0 {
            self.look(socket.cwnd, ticks(ack.now), left);
            socket.avoid(self.count, left);
        }
    }

    /// Sets W_max and returns `ssthresh` after a congestion signal (bictcp_recalc_ssthresh).
    fn ssthresh(&mut self, socket: &Socket) -> u64 {
        let (Config { beta, fast_convergence, .. }, cwnd) = (self.config, socket.cwnd);
        let gives_up = fast_convergence && cwnd < self.w_max;
        self.w_max = if gives_up { cwnd * (1024 + beta) / 2048 } else { cwnd };
        self.epoch = None;
        (cwnd * beta / 1024).max(2)
    }

    /// Forgets everything (bictcp_reset).
    fn timed_out(&mut self) {
        (self.w_max, self.count, self.delay_min, self.epoch, self.last_look) = (0, 0, 0, None, None);
        if let Some(hystart) = &mut self.hystart {
            // The next ACK begins a round.
            **hystart = HyStart { una: hystart.una, end: hystart.una, ..HyStart::new() };
        }
    }

    /// The curve of the epoch began at another window.
    fn moved(&mut self) {
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::super::{CongestionControl, Loss};
    use super::*;
    use crate::units::{Instant, Span};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// A control in congestion avoidance after a loss with `cwnd` segments.
    fn reduced(cwnd: u64) -> Linux<CubicLinux> {
        let mut cc = Config::default().control(&Setup { initial_window: cwnd * MSS, ..driver::SETUP });
        cc.on_loss(&Loss { now: at(0), in_flight: cwnd * MSS, ecn: false });
        cc.on_recovered(at(0));
        cc
    }

    /// ACKs of one segment each, a window of them in each of so many round trips of 75 ms.
    fn rounds(cc: &mut Linux<CubicLinux>, begin_ms: u64, count: u64) {
        for round in 0..count {
            let segments = cc.cwnd() / MSS;
            for i in 1..=segments {
                let now = at(begin_ms + 75 * round) + Span::from_millis(75).div(segments) * i;
                cc.on_ack(&Ack { now, ..driver::ack(MSS, 75) });
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
        assert_eq!((cc.ops.w_max, cc.socket.cwnd), (100, 70));
        cc.on_loss(&Loss { now: at(100), in_flight: 70 * MSS, ecn: false });
        // 70 (1024 + 717) / 2048 = 59.5; 70 717/1024 = 49.01
        assert_eq!((cc.ops.w_max, cc.socket.ssthresh), (59, 49));
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
        cc.on_rto(&Loss { now: at(50), in_flight: 7 * MSS, ecn: false });
        assert_eq!((cc.socket.cwnd, cc.socket.ssthresh, cc.ops.w_max), (8, 49, 0), "tcp_enter_loss: in flight + 1");
    }

    #[test]
    fn a_timeout_in_recovery_does_not_reduce_again() {
        let mut cc = reduced(100);
        cc.on_loss(&Loss { now: at(50), in_flight: 70 * MSS, ecn: false });
        cc.on_rto(&Loss { now: at(300), in_flight: Bytes::ZERO, ecn: false });
        assert_eq!((cc.socket.cwnd, cc.socket.ssthresh), (1, 49));
    }

    fn with_hystart(paced: bool) -> Linux<CubicLinux> {
        Config { hystart: true, ..Config::default() }.control(&Setup { paced, ..driver::SETUP })
    }

    /// A round of ACKs with this round trip time, `apart_us` from each other.
    fn train(cc: &mut Linux<CubicLinux>, begin_ms: u64, apart_us: u64, rtt_ms: u64) {
        let cwnd = cc.cwnd();
        for i in 0..cwnd / MSS {
            let now = at(begin_ms) + Span::from_micros(apart_us * i);
            cc.on_ack(&Ack { now, in_flight: cwnd, ..driver::ack(MSS, rtt_ms) });
        }
    }

    /// 100 ms, then 113: more than an eighth, but the eighth is 12.5 ms, and 112 are not. The ninth sample of the round
    /// tells, if ACKs are too far apart to be a train.
    #[test]
    fn with_hystart_slow_start_ends_by_delay() {
        for (rtt_ms, ssthresh) in [(112, Bytes::MAX), (113, 28 * MSS)] {
            let mut cc = with_hystart(false);
            train(&mut cc, 0, 3000, 100);
            assert_eq!((cc.cwnd(), cc.ssthresh()), (20 * MSS, Bytes::MAX));
            train(&mut cc, 1000, 3000, rtt_ms);
            assert_eq!(cc.ssthresh(), ssthresh, "{rtt_ms} ms");
        }
    }

    /// 10 ms and 20 segments, an ACK each 0.3 ms: half of 10 ms and of 1 ms for bursts is 5.5 ms, which the ACK at 5.7 ms is
    /// the first to pass, the 20th. A sender that paces is allowed 11 ms.
    #[test]
    fn a_train_of_acks_ends_slow_start_at_half_of_the_round_trip() {
        for (paced, ssthresh) in [(false, 39 * MSS), (true, Bytes::MAX)] {
            let mut cc = with_hystart(paced);
            train(&mut cc, 0, 300, 10);
            train(&mut cc, 1000, 300, 10);
            assert_eq!(cc.ssthresh(), ssthresh, "{paced}");
        }
    }

    /// The kernel's table of roots and its step of Newton's: 0.2 % from the exact root on average, and never 2 %.
    #[test]
    fn the_root_is_that_of_the_kernel() {
        assert_eq!([0, 1, 7, 8, 27, 63].map(cubic_root), [0, 1, 2, 2, 3, 4]);
        let errors: Vec<f64> = (1..3000u64)
            .map(|distance| {
                let cube = (1u64 << 40) / 410 * distance;
                (cubic_root(cube) as f64 / (cube as f64).cbrt() - 1.0).abs()
            })
            .collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!(mean < 0.003 && errors.iter().all(|error| *error < 0.02), "{mean}");
    }

    /// HZ/32 is 31 ticks: the curve is looked at again at the 32nd.
    #[test]
    fn the_curve_is_looked_at_every_32_ticks() {
        let mut cc = reduced(100);
        let looks = [1000, 1031, 1032].map(|ms| {
            cc.ops.look(70, ms, 1);
            cc.ops.last_look
        });
        assert_eq!(looks, [Some((70, 1000)), Some((70, 1000)), Some((70, 1032))]);
    }

    /// `tcp_is_cwnd_limited()`: who does not fill the window does not open it, and that time does not count in the epoch.
    #[test]
    fn a_window_that_is_not_filled_does_not_open() {
        let mut cc = reduced(100);
        let before = cc.cwnd();
        for ms in 1..1000 {
            cc.on_ack(&Ack { now: at(100 * ms), cwnd_limited: false, ..driver::ack(MSS, 75) });
        }
        assert_eq!((cc.cwnd(), cc.ops.epoch.is_none()), (before, true));
    }
}
