//! HighSpeed TCP: growth and reduction that depend on the window.
//!
//! Source: RFC 3649. Windows are in segments.
//!
//! ```text
//! cwnd += a(cwnd) per round trip                                       §5
//! ssthresh = (1 - b(flight)) flight                                    §5
//! b(w) = (0.1 - 0.5) (ln w - ln 38)/(ln 83000 - ln 38) + 0.5           §5
//! a(w) = w^2 p(w) 2 b(w)/(2 - b(w)),  p(w) = 1/(12.8 w^1.2)            §5, Appendix B
//! w <= 38: a = 1, b = 1/2                                              as in Reno
//! ```
//!
//! `a` is read from the table in Appendix B (from 1 at 38 segments to 73 at 94,717), `b` is computed. Parameters:
//! Low_Window 38, High_Window 83000, Low_P 10^-3, High_P 10^-7, High_Decrease 0.1. With other parameters there is no
//! table: the formula gives `a`, with `p(w)` as the line through both points on logarithmic axes, constant from
//! High_Window on.
//!
//! Invariants: `row` is the row of the window at its last growth; `ssthresh >= 2`. Cost: O(1) per ACK, since the search
//! begins at the last row; O(rows) after a reduction.
//!
//! DIFFERENCE: between two rows `a` is interpolated, which is within 0.1 of the formula; Linux takes the higher row.
//! Pinned by `growth_is_that_of_the_table_and_between_its_rows_of_the_formula`.
//! DIFFERENCE: beyond the table `a` and `b` keep the values of its last row. Pinned by
//! `beyond_the_table_nothing_changes`.
//!
//! Not implemented: limited slow start (RFC 3742), which §7 leaves open.
//!
//! With `compat = "linux"` the rules are those of the kernel: see `highspeed/linux.rs`.

mod linux;

use super::check::within;
use super::linux::{Form, Linux, constants};
use super::window::{Window, plain_window};
use super::{Ack, CongestionControl, ControlConfig, Loss, Setup};
use crate::config::{Compat, ConfigError};
use crate::units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Windows in segments from which on `a` is 1, 2, 3, ... (Appendix B).
#[rustfmt::skip]
const ROWS: [u32; 73] = [
    38, 118, 221, 347, 495, 663, 851, 1058, 1284, 1529, 1793, 2076, 2378, 2699, 3039, 3399, 3778, 4177, 4596, 5036,
    5497, 5979, 6483, 7009, 7558, 8130, 8726, 9346, 9991, 10661, 11358, 12082, 12834, 13614, 14424, 15265, 16137,
    17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402, 25618, 26881, 28193, 29557, 30975, 32450, 33986, 35586,
    37253, 38992, 40808, 42707, 44694, 46776, 48961, 51258, 53677, 56230, 58932, 61799, 64851, 68113, 71617, 75401,
    79517, 84035, 89053, 94717,
];

/// Parameters of HighSpeed TCP.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Low_Window: up to this many segments growth and reduction are those of Reno (§5: 38).
    pub low_window: f64,
    /// High_Window: the mean window in segments at a loss rate of high_p (§5: 83000).
    pub high_window: f64,
    /// Low_P: the loss rate at which the mean window is low_window (§5: 10^-3).
    pub low_p: f64,
    /// High_P: the loss rate at which the mean window is high_window (§5: 10^-7).
    pub high_p: f64,
    /// High_Decrease: the part of the window by which a loss reduces it at high_window (§5: 0.1).
    pub high_decrease: f64,
    /// Whose rules apply: those of the "source", or those of Linux 6.18 ("linux").
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            low_window: 38.0,
            high_window: 83_000.0,
            low_p: 1e-3,
            high_p: 1e-7,
            high_decrease: 0.1,
            compat: Compat::Source,
        }
    }
}

impl ControlConfig for Config {
    type Control = Form<HighSpeed, Box<Linux<linux::HighSpeed>>>;

    fn validate(&self) -> Result<(), ConfigError> {
        within("low_window", self.low_window, 1.0, 1e6)?;
        within("high_window", self.high_window, self.low_window + 1.0, 1e9)?;
        within("low_p", self.low_p, 1e-9, 1.0)?;
        within("high_p", self.high_p, 1e-12, 0.999 * self.low_p)?;
        within("high_decrease", self.high_decrease, 0.001, 0.5)?;
        match self.compat {
            Compat::Source => Ok(()),
            Compat::Linux => self.kernels_table(),
        }
    }

    fn control(&self, setup: &Setup) -> Self::Control {
        Form::new(self.compat, setup, || HighSpeed::new(self, setup), linux::HighSpeed::new)
    }
}

impl Config {
    /// Checks that the parameters are those of the kernel's table.
    fn kernels_table(&self) -> Result<(), ConfigError> {
        let kernels = Self::default();
        constants(&[
            ("low_window", self.low_window == kernels.low_window),
            ("high_window", self.high_window == kernels.high_window),
            ("low_p", self.low_p == kernels.low_p),
            ("high_p", self.high_p == kernels.high_p),
            ("high_decrease", self.high_decrease == kernels.high_decrease),
        ])
    }

    /// True if Appendix B has the table of `a` for these parameters.
    fn has_table(&self) -> bool {
        *self == Self::default()
    }

    /// The window beyond which `a` and `b` do not change.
    fn last_window(&self) -> f64 {
        if self.has_table() { f64::from(ROWS[ROWS.len() - 1]) } else { self.high_window }
    }

    /// b(w), the part of the flight by which a loss reduces it (RFC 3649 §5).
    fn b(&self, w: f64) -> f64 {
        let w = w.clamp(self.low_window, self.last_window());
        let (low, high) = (libm::log(self.low_window), libm::log(self.high_window));
        (self.high_decrease - 0.5) * (libm::log(w) - low) / (high - low) + 0.5
    }

    /// p(w), the loss rate at which the mean window is w: the inverse of w = (p/Low_P)^S Low_Window (RFC 3649 §5).
    fn p(&self, w: f64) -> f64 {
        let slope = libm::log(self.high_p / self.low_p) / libm::log(self.high_window / self.low_window);
        self.low_p * libm::pow(w / self.low_window, slope)
    }

    /// a(w), the growth in segments per round trip, without the table (RFC 3649 §5).
    fn a(&self, w: f64) -> f64 {
        if w <= self.low_window {
            return 1.0;
        }
        let (w, b) = (w.min(self.high_window), self.b(w));
        (w * w * self.p(w) * 2.0 * b / (2.0 - b)).max(1.0)
    }
}

/// The control of one connection: HighSpeed TCP.
#[derive(Debug, Clone, PartialEq)]
pub struct HighSpeed {
    config: Config,
    /// The table of Appendix B applies.
    tabled: bool,
    window: Window,
    /// Index of the row that the window had at its last growth.
    row: usize,
}

/// The row of a window in the table. The search begins at `row`.
#[inline]
fn follow(mut row: usize, cwnd: f64) -> usize {
    while row > 0 && cwnd < f64::from(ROWS[row]) {
        row -= 1;
    }
    while row + 1 < ROWS.len() && cwnd >= f64::from(ROWS[row + 1]) {
        row += 1;
    }
    row
}

/// a(w) for a window `w` in `row`: the value of the row, which is its index and one, interpolated to the next row.
#[inline]
fn a(row: usize, w: f64) -> f64 {
    let low = f64::from(ROWS[row]);
    let part = ROWS.get(row + 1).map_or(0.0, |high| (w - low).max(0.0) / (f64::from(*high) - low));
    (row + 1) as f64 + part
}

impl HighSpeed {
    /// Creates a control which begins in slow start.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        Self { config: *config, tabled: config.has_table(), window: Window::new(setup), row: 0 }
    }
}

impl CongestionControl for HighSpeed {
    plain_window!();
    without!(pacing, requirements, recovery, bursts);

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let (row, config, tabled) = (&mut self.row, self.config, self.tabled);
        self.window.grow(ack, |cwnd| {
            if !tabled {
                return config.a(cwnd);
            }
            *row = follow(*row, cwnd);
            a(*row, cwnd)
        });
    }

    fn on_loss(&mut self, loss: &Loss) {
        let flight = self.window.segments(loss.in_flight);
        self.window.reduce(loss, 1.0 - self.config.b(flight));
    }

    fn on_recovered(&mut self, _: Instant) {
        self.window.recovered();
    }

    fn on_rto(&mut self, loss: &Loss) {
        let keep = 1.0 - self.config.b(self.window.lost_flight(loss));
        self.window.time_out(loss, keep);
    }

    fn on_idle(&mut self, _: Instant, initial_window: Bytes) {
        self.window.idle(initial_window);
    }
}

#[cfg(test)]
mod tests {
    use super::super::driver::{self, MSS};
    use super::*;

    fn b(w: f64) -> f64 {
        Config::default().b(w)
    }

    fn after_loss(segments: u64) -> HighSpeed {
        let mut cc = HighSpeed::new(&Config::default(), &Setup { initial_window: segments * MSS, ..driver::SETUP });
        cc.on_loss(&driver::loss(segments * MSS));
        cc.on_recovered(Instant::ZERO);
        cc
    }

    /// The rows of Appendix B that the RFC prints, over its whole range.
    #[test]
    fn decrease_is_that_of_the_table() {
        let rows = [
            (38, 0.50),
            (118, 0.44),
            (221, 0.41),
            (347, 0.38),
            (495, 0.37),
            (1058, 0.33),
            (2076, 0.29),
            (5036, 0.25),
            (9991, 0.21),
            (19_965, 0.17),
            (40_808, 0.14),
            (61_799, 0.12),
            (84_035, 0.10),
            (89_053, 0.10),
        ];
        for (w, expected) in rows {
            assert!((b(f64::from(w)) - expected).abs() < 0.005_000_1, "b({w}) = {}", b(f64::from(w)));
        }
    }

    // RFC 3649 §5, with p(w) of Appendix B
    fn formula(w: f64) -> f64 {
        w * w * 2.0 * b(w) / ((2.0 - b(w)) * w.powf(1.2) * 12.8)
    }

    /// Appendix B makes the table: a new row where a(w) is more than one above that of the last row.
    #[test]
    fn the_table_is_that_of_appendix_b() {
        let mut last = 1.0;
        let mut rows = vec![38];
        for w in 38..=94_717 {
            if formula(f64::from(w)) > last + 1.0 {
                last = formula(f64::from(w));
                rows.push(w);
            }
        }
        assert_eq!(rows, ROWS);
    }

    #[test]
    fn growth_is_that_of_the_table_and_between_its_rows_of_the_formula() {
        let rows =
            [(20.0, 1.0), (38.0, 1.0), (78.0, 1.5), (118.0, 2.0), (221.0, 3.0), (10_661.0, 30.0), (89_053.0, 72.0)];
        for (w, expected) in rows {
            assert_eq!(a(follow(0, w), w), expected, "a({w})");
        }
        for w in (120..90_000).map(f64::from) {
            assert!((a(follow(0, w), w) - formula(w)).abs() < 0.1, "a({w})");
        }
    }

    /// With other parameters `a` is computed. On the default line the formula is within 3 % of the table, which rounds
    /// p(w).
    #[test]
    fn without_the_table_growth_is_that_of_the_formula() {
        for w in [118.0, 1058.0, 9991.0, 80_000.0] {
            driver::assert_close(Config::default().a(w), a(follow(0, w), w), 0.03);
        }
        // p(100) = 10^-2 (100/10)^(ln(10^-2)/ln(100)) = 10^-3, b(100) = 0.5 - 0.3/2 = 0.35: a = 10 0.7/1.65 = 4.2424.
        let config = Config {
            low_window: 10.0,
            high_window: 1000.0,
            low_p: 1e-2,
            high_p: 1e-4,
            high_decrease: 0.2,
            compat: Compat::Source,
        };
        let mut cc = HighSpeed::new(&config, &driver::SETUP);
        cc.window.reduce_to(100.0);
        cc.window.recovered();
        cc.on_ack(&driver::ack(MSS, 100));
        assert!(((cc.window.cwnd - 100.0) * 100.0 - 4.242_424).abs() < 1e-5, "{}", cc.window.cwnd);
        assert_eq!(config.a(1e6), config.a(1000.0));
    }

    #[test]
    fn the_row_follows_the_window_up_and_down() {
        let mut cc = after_loss(10);
        for (segments, a) in [(221.0, 3.0), (78.0, 1.5), (94_717.0, 73.0), (20.0, 1.0)] {
            cc.window.cwnd = segments;
            cc.on_ack(&driver::ack(MSS, 100));
            assert!(((cc.window.cwnd - segments) * segments - a).abs() < 1e-4, "at {segments}: {}", cc.window.cwnd);
        }
    }

    #[test]
    fn beyond_the_table_nothing_changes() {
        assert_eq!((a(follow(0, 1e9), 1e9), b(1e9)), (73.0, b(94_717.0)));
        assert!((b(1e9) - 0.093).abs() < 5e-4);
    }

    /// b(9991) = 0.5 - 0.4 ln(9991/38)/ln(83000/38) = 0.5 - 0.4 (5.5719/7.6890) = 0.2101.
    #[test]
    fn a_loss_takes_b_of_the_flight_and_a_small_window_is_halved() {
        let cc = after_loss(9991);
        assert!((cc.window.cwnd - 9991.0 * (1.0 - 0.2101)).abs() < 1.0, "{}", cc.window.cwnd);
        let mut cc = after_loss(30);
        assert_eq!(cc.cwnd(), 15 * MSS);
        cc.on_rto(&driver::loss(10 * MSS));
        assert_eq!((cc.cwnd(), cc.ssthresh()), (MSS, 5 * MSS));
    }

    /// §5, Table 2: 263 segments at p = 1e-4 and 1795 at 1e-5, which is 0.12/p^0.835; Reno's 38 at 1e-3.
    #[test]
    fn the_mean_window_is_that_of_the_response_function() {
        for (p, table) in [(1e-3, 38.0), (1e-4, 263.0), (1e-5, 1795.0)] {
            driver::assert_close(0.12 / f64::powf(p, 0.835), table, 0.02);
            let mean = driver::mean_window_after(100, &mut HighSpeed::new(&Config::default(), &driver::SETUP), p, 100);
            driver::assert_close(mean, table, 0.07);
        }
    }
}
