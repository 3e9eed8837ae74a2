//! What the congestion controls of the Linux kernel share: windows of whole segments, the credit with which they grow, and
//! a clock of ticks.
//!
//! Source: Linux 6, `net/ipv4/tcp_cong.c`; `tcp_init_cwnd_reduction`, `tcp_end_cwnd_reduction` and `tcp_enter_loss` of
//! `tcp_input.c`. Each control of the kernel is an [`Ops`], which stands in `NAME/linux.rs` beside the control that
//! follows the literature; `compat = "linux"` selects it.
//!
//! ```text
//! slow start    cwnd += acked, up to ssthresh; what is left counts for congestion avoidance     tcp_slow_start
//! avoidance     credit >= w: credit = 0, cwnd + 1                                                tcp_cong_avoid_ai
//!               credit += acked; cwnd += credit / w; credit %= w
//! loss          ssthresh by the control, from the window; credit = 0; cwnd = ssthresh at the end of recovery
//! timeout       ssthresh as for a loss, unless recovery goes on; cwnd = in flight + 1, credit = 0
//! ```
//!
//! All of this is compared with the kernel's own modules in `crates/trace/tests/kernel_controls.rs`: equal windows in each of 500
//! rounds of a script.
//!
//! DIFFERENCE: after a timeout the kernel is in the state Loss until all is acknowledged that was outstanding, and Open
//! afterwards. Here it is Open at once, as in the harness with which the controls are compared. Only Hybla grows
//! differently (as Reno until then), and BIC counts no ACKs. Pinned by `a_timeout_is_over_at_once`.
//! DIFFERENCE: the clock has 1000 ticks per second (`CONFIG_HZ`), and its zero is that of the simulation. Pinned by
//! `ticks_are_milliseconds`.

use super::{Ack, Advice, CongestionControl, Loss, Notice, Requirements, Setup};
use crate::config::{Compat, ConfigError};
use crate::units::{Bytes, Instant, Rate, Span};
use std::fmt::Debug;

/// Ticks per second of the kernel's clock: `CONFIG_HZ`.
pub(super) const HZ: u64 = 1000;

/// The time in whole ticks: `tcp_jiffies32`.
pub(super) fn ticks(now: Instant) -> u64 {
    now.as_nanos() / (1_000_000_000 / HZ)
}

/// A time in ticks, rounded up: `usecs_to_jiffies`.
pub(super) fn ticks_of(span: Span) -> u64 {
    microseconds(span).div_ceil(1_000_000 / HZ)
}

/// A time in whole microseconds.
pub(super) fn microseconds(span: Span) -> u64 {
    span.as_nanos() / 1000
}

/// Refuses parameters that the kernel has as constants: the first of these that differs.
pub(super) fn constants(equal: &[(&'static str, bool)]) -> Result<(), ConfigError> {
    match equal.iter().find(|(_, same)| !same) {
        Some((key, _)) => {
            Err(ConfigError::new(key, "is a constant of the kernel: leave it out with compat = \"linux\""))
        }
        None => Ok(()),
    }
}

/// Refuses a parameter that the kernel has in whole units of `1/scale` if it is not a multiple of them.
pub(super) fn whole(key: &'static str, value: f64, scale: f64) -> Result<(), ConfigError> {
    if (value * scale).fract() == 0.0 {
        return Ok(());
    }
    let allowed = if scale == 1.0 { "a whole number".to_owned() } else { format!("a multiple of 1/{scale}") };
    Err(ConfigError::new(key, format!("must be {allowed} with compat = \"linux\"")))
}

/// The part of the kernel's `tcp_sock` that controls use, with its names in brackets.
#[derive(Debug, Clone, PartialEq)]
pub struct Socket {
    pub(super) mss: Bytes,
    /// Congestion window in segments (`snd_cwnd`).
    pub(super) cwnd: u64,
    /// Slow start threshold in segments (`snd_ssthresh`); `u64::MAX` is none.
    pub(super) ssthresh: u64,
    /// Segments acknowledged towards the next increment (`snd_cwnd_cnt`).
    pub(super) credit: u64,
    /// The endpoint paces (`sk_pacing_status`).
    pub(super) paced: bool,
    /// Bytes acknowledged that are not yet a whole segment.
    rest: Bytes,
    /// True between a loss and the end of its recovery.
    recovering: bool,
    /// Window and threshold before the last reduction (`prior_cwnd`, `prior_ssthresh`).
    prior_cwnd: u64,
    prior_ssthresh: u64,
}

impl Socket {
    pub(super) fn new(setup: &Setup) -> Self {
        let mss = setup.mss.max(Bytes::new(1));
        Self {
            mss,
            cwnd: (setup.initial_window / mss).max(1),
            ssthresh: if setup.initial_ssthresh == Bytes::MAX { u64::MAX } else { setup.initial_ssthresh / mss },
            credit: 0,
            paced: setup.paced,
            rest: Bytes::ZERO,
            recovering: false,
            prior_cwnd: 0,
            prior_ssthresh: 0,
        }
    }

    /// Remembers window and threshold before a reduction (`tcp_current_ssthresh`).
    fn remember(&mut self) {
        self.prior_cwnd = self.cwnd;
        self.prior_ssthresh = self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2));
    }

    /// Whole segments that this ACK completes; the rest counts with the next ACK.
    fn whole_segments(&mut self, acked: Bytes) -> u64 {
        let bytes = self.rest + acked;
        self.rest = bytes % self.mss;
        bytes / self.mss
    }

    /// True below the threshold (`tcp_in_slow_start`).
    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Opens the window in slow start. Returns the segments that are left for congestion avoidance (`tcp_slow_start`).
    pub(super) fn slow_start(&mut self, acked: u64) -> u64 {
        if !self.in_slow_start() {
            return acked;
        }
        let opened = acked.min(self.ssthresh - self.cwnd);
        self.cwnd += opened;
        acked - opened
    }

    /// Opens the window by a segment for every `w` acknowledged. Credit that was earned at a higher `w` counts for one
    /// segment at most (`tcp_cong_avoid_ai`).
    pub(super) fn avoid(&mut self, w: u64, acked: u64) {
        let w = w.max(1);
        if self.credit >= w {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        self.cwnd += self.credit / w;
        self.credit %= w;
    }
}

/// A control of the kernel: its `tcp_congestion_ops`. The window belongs to the [`Socket`].
pub trait Ops: Debug + Clone + PartialEq {
    /// The endpoint reports ACKs within recovery as well.
    const EVERY_ACK: bool = false;

    /// Takes every ACK, with the segments that it acknowledges (`pkts_acked`, `in_ack_event`).
    fn acked(&mut self, _: &mut Socket, _: &Ack, _: u64) {}
    /// Takes an ACK that may open the window, which is in use; `acked` is at least one segment (`cong_avoid`).
    fn avoid(&mut self, socket: &mut Socket, ack: &Ack, acked: u64);
    /// Returns the threshold after a congestion signal (`ssthresh`).
    fn ssthresh(&mut self, socket: &Socket) -> u64;
    /// Recovery has ended, and the window is `ssthresh` (`CA_EVENT_COMPLETE_CWR`).
    fn recovered(&mut self, _: &mut Socket) {}
    /// A timeout has set `ssthresh` (`CA_EVENT_LOSS`).
    fn timeout_reduced(&mut self, _: &mut Socket) {}
    /// A timeout occurred (`TCP_CA_Loss`).
    fn timed_out(&mut self) {}
    /// The window was set from outside, or the connection was idle.
    fn moved(&mut self) {}
}

/// A control of the kernel as a control of this library.
#[derive(Debug, Clone, PartialEq)]
pub struct Linux<O> {
    pub(super) socket: Socket,
    pub(super) ops: O,
}

impl<O: Ops> Linux<O> {
    pub(super) fn with(ops: O, setup: &Setup) -> Self {
        Self { socket: Socket::new(setup), ops }
    }
}

impl<O: Ops> CongestionControl for Linux<O> {
    super::without!(pacing, bursts);

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.socket.cwnd * self.socket.mss
    }

    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.socket.ssthresh * self.socket.mss
    }

    fn on_ack(&mut self, ack: &Ack) {
        let acked = self.socket.whole_segments(ack.acked);
        self.ops.acked(&mut self.socket, ack, acked);
        if acked > 0 && ack.cwnd_limited {
            self.ops.avoid(&mut self.socket, ack, acked);
        }
    }

    fn on_loss(&mut self, _: &Loss) {
        self.socket.remember();
        self.socket.ssthresh = self.ops.ssthresh(&self.socket);
        (self.socket.credit, self.socket.recovering) = (0, true);
    }

    fn on_recovered(&mut self, _: Instant) {
        if std::mem::take(&mut self.socket.recovering) {
            self.socket.cwnd = self.socket.ssthresh;
            self.ops.recovered(&mut self.socket);
        }
    }

    /// What is in flight is what is not lost ([`Requirements::kernel`]).
    fn on_rto(&mut self, loss: &Loss) {
        // In recovery the loss has set the threshold already.
        if !std::mem::take(&mut self.socket.recovering) {
            self.socket.remember();
            self.socket.ssthresh = self.ops.ssthresh(&self.socket);
            self.ops.timeout_reduced(&mut self.socket);
        }
        self.ops.timed_out();
        (self.socket.cwnd, self.socket.credit) = (loss.in_flight.get().div_ceil(self.socket.mss.get()) + 1, 0);
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.socket.cwnd = self.socket.cwnd.min((initial_window / self.socket.mss).max(1));
        self.ops.moved();
    }

    fn requirements(&self) -> Requirements {
        Requirements { rate: O::EVERY_ACK, kernel: true, ..Requirements::default() }
    }

    fn on_recovery_ack(&mut self, ack: &Ack) {
        let acked = self.socket.whole_segments(ack.acked);
        self.ops.acked(&mut self.socket, ack, acked);
    }

    /// A reduction that was needless is undone (`tcp_undo_cwnd_reduction`, `tcp_reno_undo_cwnd`).
    fn on_notice(&mut self, notice: &Notice) {
        if matches!(notice, Notice::Spurious(_)) {
            let socket = &mut self.socket;
            socket.cwnd = socket.cwnd.max(socket.prior_cwnd);
            socket.ssthresh = socket.ssthresh.max(socket.prior_ssthresh);
            socket.recovering = false;
        }
    }

    fn advise(&mut self, advice: Advice) {
        let Advice::Adopt { cwnd, ssthresh } = advice else { return };
        let none = ssthresh == Bytes::MAX;
        let (cwnd, ssthresh) = (cwnd / self.socket.mss, if none { u64::MAX } else { ssthresh / self.socket.mss });
        if self.socket.cwnd != cwnd {
            self.socket.cwnd = cwnd.max(1);
            self.ops.moved();
        }
        self.socket.ssthresh = ssthresh.max(2);
    }
}

/// A control by the rules that its parameter `compat` names.
#[derive(Debug, Clone, PartialEq)]
pub enum Form<S, L> {
    /// The rules of its source in the literature.
    Source(S),
    /// The rules of the Linux kernel.
    Linux(L),
}

impl<S, O: Ops> Form<S, Box<Linux<O>>> {
    /// Creates the control in the form that `compat` names.
    pub(super) fn new(compat: Compat, setup: &Setup, source: impl FnOnce() -> S, ops: impl FnOnce() -> O) -> Self {
        match compat {
            Compat::Source => Self::Source(source()),
            Compat::Linux => Self::Linux(Box::new(Linux::with(ops(), setup))),
        }
    }
}

macro_rules! either {
    ($self:ident, $cc:ident => $call:expr) => {
        match $self {
            Self::Source($cc) => $call,
            Self::Linux($cc) => $call,
        }
    };
}

impl<S: CongestionControl, L: CongestionControl> CongestionControl for Form<S, Box<L>> {
    #[inline]
    fn cwnd(&self) -> Bytes {
        either!(self, cc => cc.cwnd())
    }
    #[inline]
    fn ssthresh(&self) -> Bytes {
        either!(self, cc => cc.ssthresh())
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        either!(self, cc => cc.on_ack(ack));
    }
    fn on_loss(&mut self, loss: &Loss) {
        either!(self, cc => cc.on_loss(loss));
    }
    fn on_recovered(&mut self, now: Instant) {
        either!(self, cc => cc.on_recovered(now));
    }
    fn on_rto(&mut self, loss: &Loss) {
        either!(self, cc => cc.on_rto(loss));
    }
    fn on_idle(&mut self, now: Instant, initial_window: Bytes) {
        either!(self, cc => cc.on_idle(now, initial_window));
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        either!(self, cc => cc.pacing_rate())
    }
    fn requirements(&self) -> Requirements {
        either!(self, cc => cc.requirements())
    }
    fn on_recovery_ack(&mut self, ack: &Ack) {
        either!(self, cc => cc.on_recovery_ack(ack));
    }
    fn on_notice(&mut self, notice: &Notice) {
        either!(self, cc => cc.on_notice(notice));
    }
    #[inline]
    fn next_burst(&self) -> Instant {
        either!(self, cc => cc.next_burst())
    }
    fn on_burst(&mut self, now: Instant, in_flight: Bytes) {
        either!(self, cc => cc.on_burst(now, in_flight));
    }
    fn advise(&mut self, advice: Advice) {
        either!(self, cc => cc.advise(advice));
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::super::hybla;
    use super::*;

    fn socket(cwnd: u64, ssthresh: u64) -> Socket {
        Socket { cwnd, ssthresh, ..Socket::new(&driver::SETUP) }
    }

    #[test]
    fn slow_start_stops_at_the_threshold_and_leaves_the_rest() {
        let mut socket = socket(10, 12);
        assert_eq!((socket.slow_start(5), socket.cwnd), (3, 12));
        assert_eq!((socket.slow_start(5), socket.cwnd), (5, 12));
    }

    /// By hand: nine towards ten, then one more; credit of nine with a new `w` of four is one segment and nothing else.
    #[test]
    fn credit_of_a_higher_count_opens_by_one_segment() {
        let mut socket = socket(10, 5);
        (0..9).for_each(|_| socket.avoid(10, 1));
        assert_eq!((socket.cwnd, socket.credit), (10, 9));
        socket.avoid(4, 1);
        assert_eq!((socket.cwnd, socket.credit), (11, 1));
        socket.avoid(4, 8);
        assert_eq!((socket.cwnd, socket.credit), (13, 1));
    }

    #[test]
    fn ticks_are_milliseconds() {
        let at = |us: u64| Instant::ZERO + Span::from_micros(us);
        assert_eq!([0, 999, 1000, 31_999].map(|us| ticks(at(us))), [0, 0, 1, 31]);
        assert_eq!([0, 1, 1000, 1001].map(|us| ticks_of(Span::from_micros(us))), [0, 1, 1, 2]);
    }

    /// With 100 ms Hybla's ACK after a timeout opens by 2^4 - 1 segments; in the kernel's state Loss it would be one.
    #[test]
    fn a_timeout_is_over_at_once() {
        let config = hybla::Config { compat: Compat::Linux, ..hybla::Config::default() };
        let mut cc = super::super::ControlConfig::control(&config, &driver::SETUP);
        cc.on_ack(&driver::ack(MSS, 100));
        cc.on_rto(&driver::loss(Bytes::ZERO));
        let before = cc.ssthresh();
        cc.on_ack(&driver::ack(MSS, 100));
        assert_eq!(cc.cwnd(), before.min(16 * MSS));
    }

    /// tcp_undo_cwnd_reduction by hand: a window of 100 is 3 after a timeout with 2 segments in flight, and 100 again with the
    /// threshold that tcp_current_ssthresh remembers, 100/2 + 100/4, or none where there was none.
    #[test]
    fn a_needless_timeout_is_undone() {
        let config =
            super::super::newreno::Config { compat: Compat::Linux, ..super::super::newreno::Config::default() };
        for (first, after) in [(50, 75), (u64::MAX, u64::MAX)] {
            let mut cc = Linux::with(super::super::newreno::linux::Reno, &driver::SETUP);
            (cc.socket.cwnd, cc.socket.ssthresh) = (100, first);
            cc.on_rto(&driver::loss(2 * MSS));
            assert_eq!((cc.socket.cwnd, cc.socket.ssthresh), (3, 50));
            cc.on_notice(&Notice::Spurious(Instant::ZERO));
            assert_eq!((cc.socket.cwnd, cc.socket.ssthresh), (100, after));
        }
        assert!(super::super::ControlConfig::control(&config, &driver::SETUP).requirements().kernel);
    }

    #[test]
    fn whole_numbers_are_those_of_the_kernel() {
        assert_eq!(whole("beta", 819.0 / 1024.0, 1024.0), Ok(()));
        assert!(whole("beta", 0.8, 1024.0).unwrap_err().to_string().contains("a multiple of 1/1024"));
        assert!(whole("s_max", 1.5, 1.0).unwrap_err().to_string().contains("a whole number"));
    }
}
