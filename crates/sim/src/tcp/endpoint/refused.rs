//! How an endpoint aborts, and what it does not take: segments without a connection, resets with other numbers, and
//! impossible acknowledgments (RFC 9293 §3.10.7.1, RFC 5961).

use super::{Endpoint, Half, Role, State};
use crate::segment::Segment;
use penstock_core::packet::TcpFlags;
use penstock_core::units::Instant;

impl Endpoint {
    /// Aborts the connection with a reset.
    pub fn abort(&mut self) {
        if !matches!(self.state, State::Closed | State::Listen) {
            let mut reset = self.template(TcpFlags::RST.with(TcpFlags::ACK), Instant::ZERO, self.timestamps);
            reset.seq = self.sequence_number();
            reset.ack = self.receiver.ack_number();
            self.reset(reset);
            self.state = State::Closed;
            self.greetings = self.greetings.max(1);
        }
    }

    /// Answers a segment for which there is no connection with a reset (RFC 9293 §3.10.7.1).
    pub(super) fn refuse(&mut self, segment: &Segment) {
        if segment.flags.has(TcpFlags::RST) {
            return;
        }
        let mut reset = Segment::tcp(self.flow, self.role == Role::Client, TcpFlags::RST);
        if segment.flags.has(TcpFlags::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.flags = reset.flags.with(TcpFlags::ACK);
            reset.ack = segment.seq.wrapping_add(segment.sequence_len());
        }
        self.reset(reset);
    }

    /// Takes a reset where there is a connection (RFC 5961 §3.2): only one with the exact number ends it; one within the window is
    /// answered with a challenge ACK.
    pub(super) fn on_reset(&mut self, reset: &Segment) {
        if reset.seq == self.receiver.ack_number() {
            self.state = State::Closed;
        } else if self.receiver.in_window(reset.seq) {
            self.receiver.ack_now = true;
        }
    }

    /// True if a peer may acknowledge this number: nothing that was not sent, and nothing older than its largest window (RFC 5961 §5.2).
    pub(super) fn can_acknowledge(&self, ack: u32) -> bool {
        match &self.half {
            Half::Active(sender) => sender.can_be_acknowledged(ack),
            Half::Silent(silent) => {
                let old = self.iss.wrapping_add(1).wrapping_sub(ack);
                old == 0 || old <= silent.peer.largest
            }
        }
    }
}
