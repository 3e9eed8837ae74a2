//! What PINK learns of the segments that open and close a connection.

use super::Pink;
use super::flow::{FROM_INSIDE, Flow, List, Phase};
use crate::packet::{TcpFlags, TcpView};
use crate::units::Instant;

impl Pink {
    /// Ends a flow by an RST which the other side may accept. If it did not, new data will reopen the flow.
    #[cold]
    pub(super) fn on_rst<S: TcpView>(&mut self, id: usize, segment: &S, outbound: bool, now: Instant) {
        let flow = &self.flows[id];
        match flow.phase {
            Phase::Unseen | Phase::Closed => {}
            _ if flow.believes_rst(segment, outbound) => self.end(id, now),
            _ => self.stats.implausible += 1,
        }
    }

    /// Handles a SYN without ACK: a new connection, a retransmission, or the answer of a simultaneous open. Returns
    /// false if nothing more is to be done: the SYN is a late copy, or it is not plausible.
    #[cold]
    pub(super) fn on_syn<S: TcpView>(&mut self, id: usize, segment: &S, from_inside: bool, now: Instant) -> bool {
        let flow = &self.flows[id];
        let same_side = flow.has(FROM_INSIDE) == from_inside;
        match flow.phase {
            Phase::Opening if !same_side => self.answer(id, segment),
            Phase::Opening if flow.isn == segment.seq() => {}
            Phase::Open if same_side && flow.isn == segment.seq() => return false,
            Phase::Open if self.sent_lately(id, now) => {
                self.stats.implausible += 1;
                return false;
            }
            _ => self.open(id, segment, from_inside, now),
        }
        true
    }

    pub(super) fn open<S: TcpView>(&mut self, id: usize, segment: &S, from_inside: bool, now: Instant) {
        self.end(id, now);
        let mut flow = Flow { phase: Phase::Opening, isn: segment.seq(), ..Flow::default() };
        flow.set(FROM_INSIDE, from_inside);
        flow.set_scale(segment.window_scale());
        flow.note_mss(segment.mss());
        self.flows[id] = flow;
        self.list(id, List::Silent, now);
        self.stats.started += 1;
    }

    /// Notes that the opener's SYN was answered; both options are known now.
    #[cold]
    pub(super) fn answer<S: TcpView>(&mut self, id: usize, segment: &S) {
        if self.flows[id].listed.is_some() {
            self.stats.opening -= 1;
        }
        self.flows[id].settle(segment);
    }

    /// Notes a SYN-ACK of the side which did not open the connection.
    pub(super) fn note_answer<S: TcpView>(&mut self, id: usize, segment: &S, outbound: bool) {
        let answers = segment.flags().has(TcpFlags::SYN.with(TcpFlags::ACK));
        if answers && self.flows[id].phase == Phase::Opening && self.flows[id].has(FROM_INSIDE) != outbound {
            self.answer(id, segment);
        }
    }
}
