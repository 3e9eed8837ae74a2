//! Reno as the Linux kernel computes it (`net/ipv4/tcp_cong.c`, Linux 6).
//!
//! ```text
//! every cwnd segments acknowledged: cwnd + 1
//! loss: ssthresh = max(cwnd >> 1, 2), of the window and not of the flight
//! ```

use super::super::Ack;
use super::super::linux::{Ops, Socket};

/// Reno of the kernel has no state besides the socket's.
#[derive(Debug, Clone, PartialEq)]
pub struct Reno;

/// Growth of Reno, also that of other controls (`tcp_reno_cong_avoid`).
pub(in super::super) fn avoid(socket: &mut Socket, acked: u64) {
    let left = socket.slow_start(acked);
    if left > 0 {
        socket.avoid(socket.cwnd, left);
    }
}

/// Half of the window, two segments at least (`tcp_reno_ssthresh`).
pub(in super::super) fn half(socket: &Socket) -> u64 {
    (socket.cwnd >> 1).max(2)
}

impl Ops for Reno {
    fn avoid(&mut self, socket: &mut Socket, _: &Ack, acked: u64) {
        avoid(socket, acked);
    }

    fn ssthresh(&mut self, socket: &Socket) -> u64 {
        half(socket)
    }
}
