//! Hybla as the Linux kernel computes it (`net/ipv4/tcp_hybla.c`, Linux 6).
//!
//! ```text
//! rho      in eighths, of the lowest SRTT: 8 SRTT / RTT0, 8 at least
//! an ACK, whatever it acknowledges, opens the window by 1/128 of
//!          128 (2^rho - 1)   slow start, up to ssthresh; 2^rho in 1/128, its fraction from a table of eight
//!          128 rho^2 / cwnd  congestion avoidance, cut off
//! nothing for as long as 128 rho^2 < cwnd: then a segment for every cwnd ACKs
//! loss     ssthresh = max(cwnd >> 1, 2)
//! ```
//!
//! The window is 65,535 segments at most. It begins with rho segments, by the round trip time of the handshake. Cutting
//! off costs up to half of an increment (1 in place of nearly 2), and about a fifth of the window in the long run:
//! `whole_numbers_take_a_fifth_of_the_window`.
//!
//! DIFFERENCE: the first window is that of the endpoint; it becomes rho segments with the first ACK. Pinned by
//! `the_first_ack_makes_the_window_rho`.

use super::super::linux::{Ops, Socket, microseconds};
use super::super::newreno::linux::half;
use super::super::{Ack, check};
use super::Config;
use crate::config::ConfigError;

/// The unit of increments: 1/2^7 of a segment.
const UNIT: u64 = 128;
/// Largest exponent.
const MAX_EXPONENT: u64 = 16;
/// Largest window: `snd_cwnd_clamp`.
const CLAMP: u64 = 65_535;
/// 128 2^(n/8), cut off.
const FRACTIONS: [u64; 8] = [128, 139, 152, 165, 181, 197, 215, 234];

/// Hybla of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Hybla {
    /// RTT0 in microseconds.
    rtt0_us: u64,
    /// Increments that are not yet a segment: `snd_cwnd_cents`.
    cents: u64,
    /// rho in eighths: `rho_3ls`.
    rho_eighths: u64,
    /// The lowest SRTT in eighths of a microsecond: `minrtt_us`; `None` before the first ACK.
    lowest: Option<u64>,
}

/// Checks that the parameters are such as the kernel allows.
pub(super) fn validate(config: &Config) -> Result<(), ConfigError> {
    if config.rtt0.as_nanos().is_multiple_of(1_000_000) {
        return check::above_zero("rtt0", config.rtt0);
    }
    Err(ConfigError::new("rtt0", "must be whole milliseconds with compat = \"linux\""))
}

impl Hybla {
    pub(super) fn new(config: &Config) -> Self {
        Self { rtt0_us: microseconds(config.rtt0).max(1), cents: 0, rho_eighths: 8, lowest: None }
    }

    /// 128 (2^rho - 1): the increment of slow start.
    fn opening(&self) -> u64 {
        let (whole, fraction) = (self.rho_eighths / 8, self.rho_eighths % 8);
        (FRACTIONS[fraction as usize] << whole.min(MAX_EXPONENT)) - UNIT
    }

    /// 128 rho^2 / cwnd: the increment of congestion avoidance.
    fn increment(&self, cwnd: u64) -> u64 {
        2 * self.rho_eighths * self.rho_eighths / cwnd
    }
}

impl Ops for Hybla {
    fn acked(&mut self, socket: &mut Socket, ack: &Ack, _: u64) {
        let srtt = ack.srtt.as_nanos() * 8 / 1000;
        if srtt == 0 || self.lowest.is_some_and(|lowest| srtt >= lowest) {
            return;
        }
        self.rho_eighths = (srtt / self.rtt0_us).max(8);
        if self.lowest.is_none() {
            socket.cwnd = self.rho_eighths / 8;
        }
        self.lowest = Some(srtt);
    }

    fn avoid(&mut self, socket: &mut Socket, _: &Ack, _: u64) {
        let opening = socket.in_slow_start();
        let increment = if opening { self.opening() } else { self.increment(socket.cwnd) };
        if !opening && increment < UNIT {
            socket.credit += 1;
        }
        self.cents += increment % UNIT;
        socket.cwnd += increment / UNIT;
        if self.cents >= UNIT {
            socket.cwnd += self.cents / UNIT;
            (self.cents, socket.credit) = (self.cents % UNIT, 0);
        }
        if increment == 0 && socket.credit >= socket.cwnd {
            (socket.cwnd, socket.credit) = (socket.cwnd + 1, 0);
        }
        if opening {
            socket.cwnd = socket.cwnd.min(socket.ssthresh);
        }
        socket.cwnd = socket.cwnd.min(CLAMP);
    }

    fn ssthresh(&mut self, socket: &Socket) -> u64 {
        half(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::driver::{self, MSS};
    use super::super::super::{CongestionControl, linux::Linux};
    use super::*;

    fn control() -> Linux<Hybla> {
        Linux::with(Hybla::new(&Config::default()), &driver::SETUP)
    }

    /// 100 ms are rho = 4 and a window of 4, which the same ACK opens by 2^4 - 1. 10 ms are rho = 1.
    #[test]
    fn the_first_ack_makes_the_window_rho() {
        for (ms, cwnd) in [(100, 19), (10, 2)] {
            let mut cc = control();
            cc.on_ack(&driver::ack(MSS, ms));
            assert_eq!(cc.cwnd(), cwnd * MSS, "{ms} ms");
        }
    }

    /// `hybla_cong_avoid`: rho follows the SRTT when that is lower than ever, and never back up. 50 ms are rho = 2.
    #[test]
    fn rho_is_that_of_the_lowest_round_trip_time() {
        let mut cc = control();
        let rhos = [100, 50, 200].map(|ms| {
            cc.on_ack(&driver::ack(MSS, ms));
            cc.ops.rho_eighths
        });
        assert_eq!(rhos, [32, 16, 16]);
    }

    /// 110 ms are 35 eighths, rho = 4.375: 2^4 165/128 - 1 = 19.625.
    #[test]
    fn slow_start_opens_by_two_to_the_rho_less_one() {
        let mut cc = control();
        cc.on_ack(&driver::ack(MSS, 110));
        assert_eq!((cc.ops.rho_eighths, cc.ops.opening()), (35, 2512));
        assert_eq!((cc.socket.cwnd, cc.ops.cents), (4 + 19, 80));
    }

    /// At 100 ms 128 rho^2 is 2048, which brings 2 at 1024 segments and 1 at 1025, where the rule says 1.998.
    #[test]
    fn increments_are_cut_off() {
        let mut cc = control();
        cc.on_ack(&driver::ack(MSS, 100));
        assert_eq!([512, 513, 1024, 1025, 2048, 2049].map(|cwnd| cc.ops.increment(cwnd)), [4, 3, 2, 1, 1, 0]);
    }

    /// The rule in real numbers beside the kernel's, 500 rounds with a loss after each of the same six: the kernel's window
    /// is 22 % smaller on average, and up to 31 % at its worst.
    #[test]
    fn whole_numbers_take_a_fifth_of_the_window() {
        for ms in [50_i32, 100, 200] {
            let setup = crate::cc::Setup { initial_ssthresh: 100 * MSS, ..driver::SETUP };
            let mut cc = Linux::with(Hybla::new(&Config::default()), &setup);
            let rho = f64::from(ms) / 25.0;
            let (mut exact, mut threshold) = (rho, 100.0);
            let mut missing = vec![];
            for round in 0..500 {
                let first = if round == 0 { ms as u64 / 25 } else { cc.socket.cwnd };
                (0..first).for_each(|_| cc.on_ack(&driver::ack(MSS, ms as u64)));
                for _ in 0..exact as u64 {
                    exact = if exact < threshold {
                        threshold.min(exact + rho.exp2() - 1.0)
                    } else {
                        exact + rho * rho / exact
                    };
                }
                if [40, 100, 160, 220, 300, 400].contains(&round) {
                    cc.on_loss(&driver::loss(MSS));
                    cc.on_recovered(crate::units::Instant::ZERO);
                    threshold = exact / 2.0;
                    exact = threshold;
                }
                missing.push(1.0 - cc.socket.cwnd as f64 / exact);
            }
            let mean = missing.iter().sum::<f64>() / missing.len() as f64;
            let most = missing.iter().copied().fold(0.0, f64::max);
            assert!((0.21..0.24).contains(&mean) && (0.30..0.33).contains(&most), "{ms} ms: {mean:.3}, {most:.3}");
        }
    }

    /// Beyond 2048 segments nothing is left of the increment, and a segment is added for every window of ACKs.
    #[test]
    fn a_window_beyond_its_units_grows_as_reno_does() {
        let mut cc = control();
        cc.on_ack(&driver::ack(MSS, 100));
        (cc.socket.ssthresh, cc.socket.cwnd, cc.socket.credit) = (2, 3000, 0);
        (0..3000).for_each(|_| cc.on_ack(&driver::ack(MSS, 100)));
        assert_eq!((cc.socket.cwnd, cc.socket.credit), (3001, 0));
    }
}
