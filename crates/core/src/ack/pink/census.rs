//! Who counts: the lists of flows, their timeouts, and the counters that must add up.
//!
//! | list | stands in it | counts in n | leaves after |
//! |---|---|---|---|
//! | Silent | a flow whose SYN was seen, and no data | only while nobody samples | `silent_timeout` |
//! | Busy | a flow that sends data | yes | `idle_timeout`, to Quiet after [`PAUSE`] with "max-min" |
//! | Quiet | a flow that sent data, but not lately ("max-min") | yes, as one that can use nothing | `idle_timeout` |

use super::Pink;
use super::config::{Reallocation, Sampling};
use super::flow::{Flow, LACKING, List, Phase, SMALL, coarse};
use crate::recency::Recency;
use crate::units::{Instant, Span};
use serde::Serialize;

/// A flow that sent nothing for this long lends out its share: the least retransmission timeout (RFC 6298 §2.4).
pub(super) const PAUSE: Span = Span::from_secs(1);
/// Last use is known to this grain; so most data need not touch the lists.
pub(super) const GRAIN: Span = Span::from_millis(125);
/// `kept` counts in 65536ths and forgets by a 64th per flow.
const ALL: u32 = 1 << 16;

/// Counters of PINK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PinkStats {
    /// Flows that count now: n.
    pub active: u64,
    /// Flows whose SYN was seen and that are waited for to send data: not in n.
    pub waiting: u64,
    /// Flows in n or waited for, whose SYN is not answered yet.
    pub opening: u64,
    /// Flows in n that are left alone because their SYN was not seen.
    pub strangers: u64,
    /// Flows in n that cannot use their share: the paper's state *bad*.
    pub lacking: u64,
    /// Flows that began with a SYN.
    pub started: u64,
    /// Flows that began to count with data: again, or because their SYN was not seen.
    pub woken: u64,
    /// Flows that ended with FIN or RST, or because another connection took their index.
    pub ended: u64,
    /// Flows that stopped counting, or being waited for, because they sent no data.
    pub expired: u64,
    /// ACKs whose window was looked at.
    pub acks: u64,
    /// ACKs whose window was made smaller.
    pub rewritten: u64,
    /// Flows left alone because their SYN was not seen: their window scale is unknown.
    pub left_alone: u64,
    /// Segments left alone because the index of their flow is beyond the table.
    pub beyond_table: u64,
    /// ACKs of flows whose share is below one segment: the window cannot hold them back any further.
    pub below_one_segment: u64,
    /// Flows whose share was below one segment at their last ACK.
    pub below_now: u64,
    /// Segments that cannot be true and changed nothing: acknowledgments of data never sent, RSTs far from the flow's
    /// data, SYNs of another connection amid data.
    pub implausible: u64,
}

impl PinkStats {
    /// Conservation: started + woken = active + waiting + ended + expired.
    ///
    /// # Errors
    /// A sentence with the numbers when they do not add up.
    pub fn check(&self) -> Result<(), String> {
        let (came, went) = (self.started + self.woken, self.ended + self.expired);
        let here = self.active + self.waiting;
        let parts = [self.opening <= here, self.strangers <= self.active, self.lacking <= self.active];
        if came == here + went && parts == [true; 3] && self.rewritten <= self.acks {
            return Ok(());
        }
        Err(format!("PINK's flows do not add up: {came} came, {went} went, {here} are here ({self:?})"))
    }

    /// Part of the ACKs whose flow had a share below one segment.
    pub fn below_fraction(&self) -> f64 {
        if self.acks == 0 { 0.0 } else { self.below_one_segment as f64 / self.acks as f64 }
    }
}

/// The lists and what is counted of them.
#[derive(Debug, Clone)]
pub(super) struct Census {
    recency: Recency<3>,
    silent: u64,
    sending: u64,
    /// Of the flows that opened lately, the part that sent data, in 65536ths.
    kept: u32,
    /// Only flows that transmit count until then.
    sampled_until: Instant,
    sampling: bool,
}

impl Census {
    pub fn new(sampling: Sampling) -> Self {
        let sampling = sampling == Sampling::Always;
        Self { recency: Recency::new(), silent: 0, sending: 0, kept: ALL, sampled_until: Instant::ZERO, sampling }
    }

    /// Flows waited for that may be expected to send: after many SYNs without data, fewer than there are.
    pub fn expected(&self) -> u64 {
        if self.sampling { self.silent * u64::from(self.kept) / u64::from(ALL) } else { 0 }
    }

    fn learn(&mut self, sent_data: bool) {
        self.kept -= self.kept / 64;
        self.kept += if sent_data { ALL / 64 } else { 0 };
        self.kept = self.kept.min(ALL);
    }
}

impl Pink {
    /// A drop: with "after-drop" only flows that transmit count for a while.
    pub(super) fn sample(&mut self, now: Instant) {
        if self.config.sampling == Sampling::AfterDrop {
            self.census.sampled_until = now + self.config.idle_timeout;
            self.census.sampling = true;
            self.recount();
        }
    }

    /// n, after any change.
    fn recount(&mut self) {
        let Census { silent, sending, sampling, .. } = self.census;
        let (counted, waiting) = if sampling { (sending, silent) } else { (sending + silent, 0) };
        (self.stats.active, self.stats.waiting) = (counted, waiting);
        (self.shares.n, self.stats.lacking) = (counted, self.shares.lacking);
    }

    /// True if the flow is one of n.
    pub(super) fn counts(&self, flow: &Flow) -> bool {
        flow.listed.is_some_and(|list| list != List::Silent || !self.census.sampling)
    }

    pub(super) fn list(&mut self, id: usize, list: List, now: Instant) {
        let flow = &mut self.flows[id];
        flow.listed = Some(list);
        self.census.recency.push(list as usize, id as u32, now);
        *(if list == List::Silent { &mut self.census.silent } else { &mut self.census.sending }) += 1;
        self.stats.opening += u64::from(flow.phase == Phase::Opening);
        self.stats.strangers += u64::from(flow.phase == Phase::Stranger);
        self.recount();
    }

    /// Takes a flow off its list, with all that its place there implied; false if it was on none.
    pub(super) fn unlist(&mut self, id: usize) -> bool {
        let Some(list) = self.flows[id].listed else { return false };
        self.set_lacking(id, None);
        self.set_small(id, false);
        let flow = &mut self.flows[id];
        flow.listed = None;
        self.census.recency.remove(list as usize, id as u32);
        *(if list == List::Silent { &mut self.census.silent } else { &mut self.census.sending }) -= 1;
        self.stats.opening -= u64::from(flow.phase == Phase::Opening);
        self.stats.strangers -= u64::from(flow.phase == Phase::Stranger);
        self.recount();
        true
    }

    /// Moves a flow to the front of another list, or of the same.
    fn relist(&mut self, id: usize, list: List, at: Instant) {
        if let Some(from) = self.flows[id].listed.replace(list) {
            self.census.recency.remove(from as usize, id as u32);
            self.census.recency.push(list as usize, id as u32, at);
        }
    }

    /// The flow sends data: it counts, and its time begins anew.
    pub(super) fn note_sending(&mut self, id: usize, now: Instant) {
        match self.flows[id].listed {
            Some(List::Busy) if now.since(self.census.recency.last(id as u32)) < GRAIN => {}
            Some(List::Busy) => self.relist(id, List::Busy, now),
            Some(List::Quiet) => {
                self.relist(id, List::Busy, now);
                self.flows[id].forget_interval();
            }
            Some(List::Silent) => {
                self.census.learn(true);
                self.census.silent -= 1;
                self.census.sending += 1;
                self.relist(id, List::Busy, now);
                self.recount();
            }
            None => {
                self.list(id, List::Busy, now);
                self.stats.woken += 1;
            }
        }
    }

    /// True if data of the flow passed within the last pause.
    pub(super) fn sent_lately(&self, id: usize, now: Instant) -> bool {
        self.flows[id].listed == Some(List::Busy) && now.since(self.census.recency.last(id as u32)) < PAUSE
    }

    /// FIN, RST, or another connection.
    pub(super) fn end(&mut self, id: usize, now: Instant) {
        if self.unlist(id) {
            self.stats.ended += 1;
        }
        self.set_surplus(id, 0);
        self.flows[id].phase = Phase::Closed;
        self.flows[id].since = coarse(now);
        self.flows[id].forget_interval();
    }

    /// Moves on what is due.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.config.sampling == Sampling::Off {
            return;
        }
        if self.config.sampling == Sampling::AfterDrop && self.census.sampling && now > self.census.sampled_until {
            self.census.sampling = false;
            self.recount();
        }
        while let Some(id) = self.census.recency.expired(List::Silent as usize, now, self.config.silent_timeout) {
            self.census.learn(false);
            self.drop_out(id as usize);
        }
        if self.config.reallocation == Reallocation::MaxMin {
            self.pause(now);
            while let Some(id) = self.census.recency.expired(List::Quiet as usize, now, self.quiet_timeout()) {
                self.drop_out(id as usize);
            }
            return;
        }
        while let Some(id) = self.census.recency.expired(List::Busy as usize, now, self.config.idle_timeout) {
            self.drop_out(id as usize);
        }
    }

    /// What is left of the idle timeout after the pause.
    fn quiet_timeout(&self) -> Span {
        self.config.idle_timeout.saturating_sub(PAUSE)
    }

    fn pause(&mut self, now: Instant) {
        while let Some(id) = self.census.recency.expired(List::Busy as usize, now, PAUSE) {
            self.relist(id as usize, List::Quiet, now);
            self.set_lacking(id as usize, Some(0));
        }
    }

    fn drop_out(&mut self, id: usize) {
        self.unlist(id);
        self.set_surplus(id, 0);
        self.stats.expired += 1;
    }

    /// The state of a flow that counts: good, or bad with a claim (Figures 2 to 4).
    pub(super) fn set_lacking(&mut self, id: usize, claim: Option<u32>) {
        let flow = &mut self.flows[id];
        if flow.has(LACKING) {
            self.shares.recover(flow.claim);
        }
        if let Some(claim) = claim {
            self.shares.lack(claim);
            flow.claim = claim;
        }
        flow.set(LACKING, claim.is_some());
        self.stats.lacking = self.shares.lacking;
    }

    pub(super) fn set_small(&mut self, id: usize, small: bool) {
        let flow = &mut self.flows[id];
        if flow.has(SMALL) != small {
            flow.set(SMALL, small);
            self.stats.below_now = if small { self.stats.below_now + 1 } else { self.stats.below_now - 1 };
        }
    }
}
