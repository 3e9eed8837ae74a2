//! BIC as the Linux kernel computes it (`net/ipv4/tcp_bic.c`, Linux 6).
//!
//! ```text
//! every cnt segments acknowledged: cwnd + 1; cnt is found anew when cwnd has changed, or after HZ/32
//! cnt = cwnd                          cwnd <= low_window
//!       cwnd / s_max                  below W_max, (W_max - cwnd) / 4 > s_max
//!       cwnd smooth / 4               below W_max, (W_max - cwnd) / 4 <= 1
//!       cwnd / ((W_max - cwnd) / 4)   below W_max, otherwise
//!       cwnd smooth / 4               below W_max + 4
//!       3 cwnd / (cwnd - W_max)       below W_max + 3 s_max
//!       cwnd / s_max                  beyond;  20 at most while W_max = 0
//! cnt = 16 cnt / ratio, 1 at least;   ratio += segments of the ACK - ratio / 16, 32 at the beginning
//! loss: W_max and ssthresh as in bic.rs, of the window;  timeout: W_max = 0, ratio = 32
//! ```
//!
//! The ratio is that of segments to ACKs, in sixteenths, to make up for delayed ACKs. With an ACK for each segment it
//! should be 16, but falls from 32 to 31 and stays there, because 31/16 is 1 in whole numbers: the kernel's BIC then grows
//! 31/16 = 1.94 times as fast as its own rule.

use super::super::Ack;
use super::super::linux::{HZ, Ops, Socket, constants, ticks, whole};
use super::Config;
use crate::config::ConfigError;

/// BICTCP_B: the search covers a quarter of the distance.
const B: u64 = 4;
/// BICTCP_BETA_SCALE.
const BETA_SCALE: u64 = 1024;
/// Most segments to acknowledge per additional one while W_max is not known.
const FIRST_COUNT: u64 = 20;
/// ACK_RATIO_SHIFT: the ratio is in sixteenths.
const RATIO_SHIFT: u32 = 4;
/// The ratio at the beginning: two segments per ACK.
const FIRST_RATIO: u64 = 2 << RATIO_SHIFT;

/// The module's parameters, as whole numbers.
#[derive(Debug, Clone, PartialEq)]
struct Parameters {
    beta: u64,
    s_max: u64,
    low_window: u64,
    smooth: u64,
    fast_convergence: bool,
}

/// BIC of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Bic {
    parameters: Parameters,
    /// Segments to acknowledge for one additional segment: `cnt`.
    count: u64,
    /// W_max in segments: `last_max_cwnd`; 0 before the first loss and after a timeout.
    w_max: u64,
    /// Window and time in ticks when `count` was found: `last_cwnd`, `last_time`.
    found: Option<(u64, u64)>,
    /// Segments per ACK in sixteenths: `delayed_ack`.
    ratio: u64,
}

/// Checks that the parameters are such as the kernel allows.
pub(super) fn validate(config: &Config) -> Result<(), ConfigError> {
    constants(&[("b", config.b == B as f64)])?;
    whole("beta", config.beta, BETA_SCALE as f64)?;
    whole("s_max", config.s_max, 1.0)?;
    whole("low_window", config.low_window, 1.0)?;
    whole("smooth", config.smooth, 1.0)
}

impl Parameters {
    /// Segments to acknowledge for one more, without the ratio (`bictcp_update`).
    fn count(&self, cwnd: u64, w_max: u64) -> u64 {
        let Self { s_max, low_window, smooth, .. } = *self;
        if cwnd <= low_window {
            return cwnd;
        }
        if cwnd < w_max {
            let way = (w_max - cwnd) / B;
            return match way {
                0 | 1 => cwnd * smooth / B,
                _ => cwnd / way.min(s_max),
            };
        }
        let beyond = cwnd - w_max;
        let count = if beyond < B {
            cwnd * smooth / B
        } else if beyond < s_max * (B - 1) {
            cwnd * (B - 1) / beyond
        } else {
            cwnd / s_max
        };
        if w_max == 0 { count.min(FIRST_COUNT) } else { count }
    }
}

impl Bic {
    /// Creates the control of a configuration that is valid.
    pub(super) fn new(config: &Config) -> Self {
        let parameters = Parameters {
            beta: (config.beta * BETA_SCALE as f64) as u64,
            s_max: config.s_max as u64,
            low_window: config.low_window as u64,
            smooth: config.smooth as u64,
            fast_convergence: config.fast_convergence,
        };
        Self { parameters, count: 0, w_max: 0, found: None, ratio: FIRST_RATIO }
    }

    /// Finds `count` anew, unless it was found for this window a moment ago.
    fn look(&mut self, cwnd: u64, now: u64) {
        if self.found.is_some_and(|(at, since)| at == cwnd && now - since <= HZ / 32) {
            return;
        }
        self.found = Some((cwnd, now));
        let count = self.parameters.count(cwnd, self.w_max);
        // Up to low_window the kernel returns before it comes to the ratio.
        self.count =
            if cwnd <= self.parameters.low_window { count } else { ((count << RATIO_SHIFT) / self.ratio).max(1) };
    }
}

impl Ops for Bic {
    fn acked(&mut self, _: &mut Socket, _: &Ack, acked: u64) {
        if acked > 0 {
            self.ratio = (self.ratio + acked - (self.ratio >> RATIO_SHIFT)).max(1);
        }
    }

    fn avoid(&mut self, socket: &mut Socket, ack: &Ack, acked: u64) {
        let left = socket.slow_start(acked);
        if left > 0 {
            self.look(socket.cwnd, ticks(ack.now));
            socket.avoid(self.count, left);
        }
    }

    fn ssthresh(&mut self, socket: &Socket) -> u64 {
        let Parameters { beta, low_window, fast_convergence, .. } = self.parameters;
        let cwnd = socket.cwnd;
        let gives_up = fast_convergence && cwnd < self.w_max;
        self.w_max = if gives_up { cwnd * (BETA_SCALE + beta) / (2 * BETA_SCALE) } else { cwnd };
        if cwnd <= low_window { (cwnd >> 1).max(2) } else { (cwnd * beta / BETA_SCALE).max(2) }
    }

    fn timed_out(&mut self) {
        (self.count, self.w_max, self.found, self.ratio) = (0, 0, None, FIRST_RATIO);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::driver::{self, MSS};
    use super::super::super::{CongestionControl, Setup, linux::Linux};
    use super::*;
    use crate::config::Compat;

    fn control(cwnd: u64) -> Linux<Bic> {
        let config = Config { compat: Compat::Linux, ..Config::default() };
        Linux::with(Bic::new(&config), &Setup { initial_window: cwnd * MSS, ..driver::SETUP })
    }

    /// `bictcp_acked` by hand: 32 - 2 + 1 = 31, then 31 - 1 + 1 for ever; with two segments per ACK it stays at 32.
    #[test]
    fn the_ratio_of_acks_sticks_at_31_sixteenths() {
        for (per_ack, expected) in [(1, 31), (2, 32)] {
            let mut cc = control(100);
            (0..1000).for_each(|_| cc.on_ack(&driver::ack(per_ack * MSS, 100)));
            assert_eq!(cc.ops.ratio, expected);
        }
    }

    /// Far beyond W_max the rule is 16 segments per round trip: a count of 1000/16 = 62. The stuck ratio makes
    /// 16 62/31 = 32 of it, so that a round trip brings 31 segments: 1.94 times as many.
    #[test]
    fn it_grows_nearly_twice_as_fast_as_its_own_rule() {
        let mut cc = control(1000);
        (cc.socket.ssthresh, cc.ops.w_max) = (500, 500);
        (0..1000).for_each(|_| cc.on_ack(&driver::ack(MSS, 100)));
        assert_eq!(cc.ops.parameters.count(1000, 500), 62);
        assert_eq!(cc.socket.cwnd, 1031);
    }

    /// The rows of the table in the header with the kernel's parameters: B = 4, s_max = 16, smooth = 20, low_window = 14.
    #[test]
    fn a_count_is_that_of_its_row() {
        let parameters = control(100).ops.parameters;
        let rows = [
            (14, 1000, 14),          // up to low_window
            (900, 1000, 900 / 16),   // (1000 - 900) / 4 = 25 segments, which is more than s_max
            (960, 1000, 960 / 10),   // (1000 - 960) / 4 = 10
            (992, 1000, 992 / 2),    // (1000 - 992) / 4 = 2
            (993, 1000, 993 * 5),    // 7 / 4 = 1: cwnd smooth / 4
            (1003, 1000, 1003 * 5),  // below W_max + 4
            (1004, 1000, 3012 / 4),  // 3 cwnd / (cwnd - W_max)
            (1047, 1000, 3141 / 47), // the last before W_max + 3 s_max
            (1060, 1000, 1060 / 16), // beyond; 3 cwnd / 60 would be 53
            (1000, 0, 20),           // without W_max
        ];
        for (cwnd, w_max, count) in rows {
            assert_eq!(parameters.count(cwnd, w_max), count, "{cwnd} of {w_max}");
        }
    }

    /// `bictcp_update` returns early if the window is the same and HZ/32 = 31 ticks have not passed. 500 segments beyond
    /// W_max the count is 1000/16 = 62, without W_max it is 20, each by a ratio of 2.
    #[test]
    fn a_count_is_found_anew_after_31_ticks_or_with_another_window() {
        let mut bic = control(100).ops;
        bic.w_max = 500;
        bic.look(1000, 100);
        assert_eq!(bic.count, 31);
        bic.w_max = 0;
        bic.look(1000, 131);
        assert_eq!(bic.count, 31, "31 ticks later");
        bic.look(1000, 132);
        assert_eq!(bic.count, 10, "32 ticks later");
        bic.w_max = 500;
        bic.look(1008, 132);
        assert_eq!(bic.count, 31, "another window");
    }

    #[test]
    fn a_timeout_forgets_the_plateau_and_the_ratio() {
        let mut cc = control(100);
        (0..5).for_each(|_| cc.on_ack(&driver::ack(MSS, 100)));
        cc.on_loss(&driver::loss(100 * MSS));
        cc.on_recovered(crate::units::Instant::ZERO);
        assert!(cc.ops.w_max > 0 && cc.ops.ratio == 31);
        cc.on_rto(&driver::loss(crate::units::Bytes::ZERO));
        assert_eq!((cc.socket.cwnd, cc.ops.w_max, cc.ops.ratio), (1, 0, 32));
    }
}
