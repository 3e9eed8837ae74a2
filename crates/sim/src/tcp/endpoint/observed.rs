//! What an endpoint tells those who observe it.

use super::{Endpoint, Half, Role, Sender, State};
use crate::tcp::ecn::{EcnLost, EcnUse};
use crate::tcp::snapshot::{Counters, Snapshot, TcpInfo};
use penstock_core::cc::CongestionControl;
use penstock_core::units::{Instant, Rate, Span};

impl Endpoint {
    /// Returns the state of the handshake.
    pub fn state(&self) -> State {
        self.state
    }

    /// True if both directions are closed and acknowledged, or if the connection was reset.
    pub fn is_done(&self) -> bool {
        match self.state {
            State::Closed => self.greetings > 0 || self.role == Role::Server,
            State::Established => self.all_acked() && self.receiver.finished(),
            _ => false,
        }
    }

    /// Returns the number of payload bytes delivered in order to the application.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Returns the number of payload bytes of this side that the peer has acknowledged.
    pub fn acked(&self) -> u64 {
        self.active().map_or(0, |sender| sender.acked(self.iss))
    }

    /// Returns the number of payload bytes that the application has written and that were not discarded.
    pub fn written(&self) -> u64 {
        self.active().map_or(0, |sender| sender.written(self.iss))
    }

    /// Returns whether the connection was to use ECN, and what the handshake made of it.
    pub fn ecn_use(&self) -> EcnUse {
        let asked = self.config.ecn;
        let why = if self.greetings > 1 { EcnLost::SynRetransmitted } else { EcnLost::Declined };
        let lost = (asked && !self.ecn).then_some(why);
        let (used, accurate) = self.ask(|sender| (sender.ecn, sender.accurate.is_some()));
        let (asked, used) = (asked.into(), used.into());
        EcnUse { asked, used, lost: lost.is_some().into(), why: lost, accurate: accurate.into() }
    }

    /// True if the peer has acknowledged the FIN of this side.
    pub fn all_acked(&self) -> bool {
        self.active().is_some_and(Sender::finished)
    }

    /// Returns the counters of the sending half.
    pub fn counters(&self) -> Counters {
        self.active().map_or_else(Counters::default, |sender| sender.counters)
    }

    /// Returns the congestion window and the slow start threshold, in bytes.
    pub fn windows(&self) -> (u64, u64) {
        self.ask(|sender| (sender.cc.cwnd().get(), sender.cc.ssthresh().get()))
    }

    /// Returns the state of the sending half; `None` until the handshake is complete.
    pub fn snapshot(&self) -> Option<Snapshot> {
        (self.state == State::Established).then(|| self.ask(Sender::snapshot))
    }

    /// Returns the state of the connection as `TCP_INFO` of Linux has it.
    pub fn info(&self) -> TcpInfo {
        let bytes_received = self.receiver.delivered();
        TcpInfo { bytes_received, ..self.ask(|sender| sender.info(&self.config)) }
    }

    /// True if the peer has closed its direction, and everything it sent has arrived.
    pub fn peer_finished(&self) -> bool {
        self.receiver.finished()
    }

    /// Returns the state of the congestion control, for people to read.
    pub fn control_state(&self) -> String {
        self.ask(|sender| sender.cc.state())
    }

    /// Returns the name of the congestion control.
    pub fn cc_name(&self) -> &str {
        self.active().map_or(self.config.cc.name(), |sender| sender.cc.name())
    }

    /// Returns the rate to which the flow keeps because it was advised to; `None` without advice.
    pub fn advised(&self, now: Instant) -> Option<Rate> {
        self.scone().and_then(|scone| scone.rate(now))
    }

    /// Returns the number of bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let sender = self.active().map_or(0, |sender| size_of::<Sender>() + sender.heap_bytes());
        sender + self.receiver.heap_bytes()
    }

    /// Returns the smoothed round trip time; zero before the first sample.
    pub fn srtt(&self) -> Span {
        self.ask(|sender| sender.rtt.srtt())
    }

    /// True if SACK was agreed, or may still be.
    pub(super) fn sack(&self) -> bool {
        match &self.half {
            Half::Active(sender) => sender.sack,
            Half::Silent(silent) => silent.sack,
        }
    }

    /// Returns the segment size in use, in bytes.
    pub(crate) fn mss(&self) -> u64 {
        match &self.half {
            Half::Active(sender) => sender.mss(),
            Half::Silent(silent) => silent.mss(),
        }
    }
}
