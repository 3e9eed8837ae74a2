//! HighSpeed TCP as the Linux kernel computes it (`net/ipv4/tcp_highspeed.c`, Linux 6).
//!
//! ```text
//! row: the first of the table whose window is not below cwnd; a = row + 1
//! every ACK, whatever it acknowledges: credit += a; credit >= cwnd: credit -= cwnd, cwnd + 1
//! loss: ssthresh = max(cwnd - (cwnd md(row) >> 8), 2), md = 256 b of the row's window, cut off
//! ```
//!
//! The row moves only when the window grows: a loss in slow start takes that of the growth before. The table ends at
//! 89,053 segments.

use super::super::Ack;
use super::super::linux::{Ops, Socket};
use super::{Config, ROWS};

/// Rows of the kernel's table.
const LAST: usize = ROWS.len() - 2;

/// HighSpeed TCP of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct HighSpeed {
    /// Row of the table: `ai`.
    row: usize,
}

impl HighSpeed {
    pub(super) fn new() -> Self {
        Self { row: 0 }
    }

    /// Brings the row to the window: ROWS[row - 1] < cwnd <= ROWS[row].
    fn follow(&mut self, cwnd: u64) {
        while cwnd > u64::from(ROWS[self.row]) && self.row < LAST {
            self.row += 1;
        }
        while self.row > 0 && cwnd <= u64::from(ROWS[self.row - 1]) {
            self.row -= 1;
        }
    }
}

/// The part of the window that a loss takes, in 1/256.
fn md(row: usize) -> u64 {
    (256.0 * Config::default().b(f64::from(ROWS[row]))) as u64
}

impl Ops for HighSpeed {
    fn avoid(&mut self, socket: &mut Socket, _: &Ack, acked: u64) {
        if socket.in_slow_start() {
            socket.slow_start(acked);
            return;
        }
        self.follow(socket.cwnd);
        socket.credit += self.row as u64 + 1;
        if socket.credit >= socket.cwnd {
            socket.credit -= socket.cwnd;
            socket.cwnd += 1;
        }
    }

    fn ssthresh(&mut self, socket: &Socket) -> u64 {
        (socket.cwnd - ((socket.cwnd * md(self.row)) >> 8)).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The column `md` of the kernel's table, as its source has it.
    #[test]
    fn the_decrease_is_that_of_the_kernels_table() {
        let kernels = [
            128, 112, 104, 98, 93, 89, 86, 83, 81, 78, 76, 74, 72, 71, 69, 68, 66, 65, 64, 62, 61, 60, 59, 58, 57, 56,
            55, 54, 53, 52, 52, 51, 50, 49, 48, 48, 47, 46, 45, 45, 44, 43, 43, 42, 41, 41, 40, 39, 39, 38, 38, 37, 36,
            36, 35, 35, 34, 33, 33, 32, 32, 31, 30, 30, 29, 28, 28, 27, 26, 26, 25, 24,
        ];
        assert_eq!((0..=LAST).map(md).collect::<Vec<_>>(), kernels);
    }

    /// Linux has the higher row where the RFC's table changes: at 38 segments still 1, at 39 already 2.
    #[test]
    fn the_row_is_the_first_that_is_not_below_the_window() {
        let mut ops = HighSpeed::new();
        for (cwnd, row) in [(38, 0), (39, 1), (118, 1), (119, 2), (90_000, LAST), (2, 0)] {
            ops.follow(cwnd);
            assert_eq!(ops.row, row, "{cwnd} segments");
        }
    }
}
