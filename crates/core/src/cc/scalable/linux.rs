//! Scalable TCP as the Linux kernel computes it (`net/ipv4/tcp_scalable.c`, Linux 6).
//!
//! ```text
//! every min(cwnd, 100) segments acknowledged: cwnd + 1
//! loss: ssthresh = max(cwnd - (cwnd >> 3), 2)
//! ```

use super::super::Ack;
use super::super::linux::{Ops, Socket};

/// TCP_SCALABLE_AI_CNT: segments acknowledged for each additional one, 1/a.
const AI_COUNT: u64 = 100;
/// TCP_SCALABLE_MD_SCALE: a loss takes 1/2^3 of the window.
const MD_SHIFT: u32 = 3;

/// Scalable TCP of the kernel has no state besides the socket's.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalable;

impl Ops for Scalable {
    fn avoid(&mut self, socket: &mut Socket, _: &Ack, acked: u64) {
        let left = socket.slow_start(acked);
        if left > 0 {
            socket.avoid(socket.cwnd.min(AI_COUNT), left);
        }
    }

    fn ssthresh(&mut self, socket: &Socket) -> u64 {
        (socket.cwnd - (socket.cwnd >> MD_SHIFT)).max(2)
    }
}
