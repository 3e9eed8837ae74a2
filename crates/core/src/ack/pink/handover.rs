//! What the owner of the table of flows tells PINK: that an index passes to another connection, and how a connection began
//! which was not shown.

use super::Pink;
use super::flow::{DEFAULT_MSS, FROM_INSIDE, Flow, KNOWN, List, Phase};
use crate::fact::Opening;
use crate::packet::FlowId;
use crate::rtt::RttProbe;
use crate::units::Instant;

impl Pink {
    /// Forgets a flow whose index another connection takes over. One that sent no data is counted as if it had timed out, so
    /// that a flood of SYNs does not make PINK expect data.
    pub(super) fn forget(&mut self, flow: FlowId, now: Instant) {
        let id = flow.0 as usize;
        let Some(known) = self.flows.get(id) else { return };
        if known.listed == Some(List::Silent) {
            self.give_up(id);
        }
        self.end(id, now);
        self.flows[id] = Flow::default();
    }

    /// Takes over a flow whose first data were not shown. If its handshake was, all that is new is how much it has sent.
    /// It counts like one that has sent no data yet; its next data change that.
    pub(super) fn take_over(&mut self, opening: &Opening, now: Instant) {
        let Some(id) = self.index_of(opening.flow) else { return };
        let known = &mut self.flows[id];
        let (inside, outside) = opening.sides();
        if known.phase == Phase::Open && known.isn == opening.opener.isn {
            return known.probe.pass_unseen(inside.end, outside.end);
        }
        self.end(id, now);
        let (wan, lan) = opening.halves();
        let mut flow = Flow {
            phase: Phase::Open,
            isn: opening.opener.isn,
            probe: RttProbe::continued(wan, lan, inside.end, outside.end),
            // Until an ACK says more, the window is the largest that a SYN can tell.
            edge: inside.end.wrapping_add(0xffff),
            ..Flow::default()
        };
        flow.set(FROM_INSIDE, opening.from_inside);
        flow.set(KNOWN, true);
        flow.set_scale(outside.window_scale.filter(|_| inside.window_scale.is_some()));
        flow.note_mss(inside.mss);
        flow.note_mss(outside.mss);
        if flow.mss == 0 {
            flow.mss = DEFAULT_MSS;
        }
        self.flows[id] = flow;
        self.list(id, List::Silent, now);
        self.stats.started += 1;
    }
}
