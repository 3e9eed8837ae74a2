//! Which flows count in n: the lists of flows, their timeouts, and the counters that must add up.
//!
//! | list | which flows are in it | counts in n | leaves after |
//! |---|---|---|---|
//! | Silent | a flow whose SYN was seen, and no data | only without sampling | `silent_timeout` |
//! | Busy | a flow that sends data | yes | `idle_timeout`, to Quiet after [`PAUSE`] with "demand" and "max-min" |
//! | Far | a flow that sends data over a long round trip ("demand") | yes | to Quiet after [`LONG_PAUSE`] |
//! | Quiet | a flow that sent data, but not lately | yes, as one that can use nothing | `idle_timeout` |

use super::Pink;
use super::config::{Config, Reallocation, Sampling};
use super::flow::{ASLEEP, Flight, Flow, LACKING, List, Phase, SMALL, coarse};
use super::lists::{LISTS, Lists};
use crate::units::{Instant, Span};
use serde::Serialize;

/// With "max-min", a flow which sent nothing for this long leaves its share to others. It is the least retransmission
/// timeout (RFC 6298 §2.4).
pub(super) const PAUSE: Span = Span::from_secs(1);
/// With "demand", the same for a flow whose round trip time is [`FAR`] or more: some of its timeouts.
pub(super) const LONG_PAUSE: Span = Span::from_secs(4);
const FAR: Span = Span::from_millis(250);
/// Resolution of the time of last use, so that most data do not change the lists.
pub(super) const GRAIN: Span = Span::from_millis(250);
/// The value of `kept` if all flows sent data: it is in 65536ths, and each flow has the weight 1/64 in it.
const ALL: u32 = 1 << 16;

/// The counters of PINK, and the numbers of flows in its states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PinkStats {
    /// Flows that count now: n.
    pub active: u64,
    /// Flows whose SYN was seen and whose first data are expected; they are not in n.
    pub waiting: u64,
    /// Flows in `active` or `waiting` whose SYN is not answered yet.
    pub opening: u64,
    /// Flows in n that are left alone because their SYN was not seen.
    pub strangers: u64,
    /// Flows in n that cannot use their share: the paper's state *bad*.
    pub lacking: u64,
    /// Flows that began with a SYN.
    pub started: u64,
    /// Flows that began to count because of data: after a pause, or because their SYN was not seen.
    pub woken: u64,
    /// Flows that ended with FIN or RST, or because another connection took over their index.
    pub ended: u64,
    /// Flows that left `active` or `waiting` because they sent no data until their timeout.
    pub expired: u64,
    /// Number of ACKs whose window was compared with the share.
    pub acks: u64,
    /// Number of ACKs whose window was made smaller.
    pub rewritten: u64,
    /// Number of flows left alone because their SYN was not seen: their window scale is unknown.
    pub left_alone: u64,
    /// Number of segments left alone because the index of their flow is beyond the table.
    pub beyond_table: u64,
    /// ACKs of flows whose share is below one segment, the smallest window that PINK writes.
    pub below_one_segment: u64,
    /// Flows whose share was below one segment at their last ACK.
    pub below_now: u64,
    /// Segments that cannot be true and changed nothing: acknowledgments of data never sent, RSTs far from the flow's
    /// data, SYNs of another connection amid data.
    pub implausible: u64,
}

/// The counters of PINK's flows contradict each other: its code has a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PINK's flows do not add up: {came} came, {went} went, {here} are here ({stats:?})")]
pub struct CensusError {
    came: u64,
    went: u64,
    here: u64,
    stats: Box<PinkStats>,
}

impl PinkStats {
    /// Checks conservation: started + woken = active + waiting + ended + expired.
    ///
    /// # Errors
    /// Returns the numbers if they do not add up.
    pub fn check(&self) -> Result<(), CensusError> {
        let (came, went) = (self.started + self.woken, self.ended + self.expired);
        let here = self.active + self.waiting;
        let parts = [self.opening <= here, self.strangers <= self.active, self.lacking <= self.active];
        if came == here + went && parts == [true; 3] && self.rewritten <= self.acks {
            return Ok(());
        }
        Err(CensusError { came, went, here, stats: Box::new(*self) })
    }

    /// Returns the part of the ACKs whose flow had a share below one segment, 0 to 1.
    pub fn below_fraction(&self) -> f64 {
        if self.acks == 0 { 0.0 } else { self.below_one_segment as f64 / self.acks as f64 }
    }
}

/// The lists of flows and the numbers of flows in them.
#[derive(Debug, Clone)]
pub(super) struct Census {
    lists: Lists,
    /// Number of flows in the list Silent.
    silent: u64,
    /// Number of flows in the lists Busy and Quiet.
    sending: u64,
    /// Number of open flows that are idle and in no list ("demand").
    pub asleep: u64,
    /// Part of the recently opened flows that sent data, in 65536ths.
    kept: u32,
    /// With "after-drop": the time at which sampling ends.
    sampled_until: Instant,
    /// True while only flows that transmit count.
    sampling: bool,
}

impl Census {
    pub fn new(config: &Config) -> Self {
        let (idle, silent) = (config.idle_timeout, config.silent_timeout);
        let timeouts = match (config.sampling, config.reallocation) {
            (Sampling::Off, Reallocation::MaxMin | Reallocation::Demand) => [Span::MAX, PAUSE, Span::MAX, LONG_PAUSE],
            (Sampling::Off, _) => [Span::MAX; LISTS],
            (_, Reallocation::MaxMin | Reallocation::Demand) => [silent, PAUSE, idle.saturating_sub(PAUSE), LONG_PAUSE],
            _ => [silent, idle, Span::MAX, Span::MAX],
        };
        Self {
            lists: Lists::new(timeouts),
            silent: 0,
            asleep: 0,
            sending: 0,
            kept: ALL,
            sampled_until: Instant::ZERO,
            sampling: config.sampling == Sampling::Always,
        }
    }

    /// Returns the number of silent flows which are expected to send: after many SYNs without data, only a part of
    /// them.
    pub fn expected(&self) -> u64 {
        if self.sampling { self.silent * u64::from(self.kept) / u64::from(ALL) } else { 0 }
    }

    /// Updates `kept` with a flow that sent its first data, or that timed out without data.
    fn learn(&mut self, sent_data: bool) {
        self.kept -= self.kept / 64;
        self.kept += if sent_data { ALL / 64 } else { 0 };
        self.kept = self.kept.min(ALL);
    }
}

impl Pink {
    /// Notes a drop: with "after-drop" only flows that transmit count for the next `idle_timeout`.
    pub(super) fn sample(&mut self, now: Instant) {
        if self.config.sampling == Sampling::AfterDrop {
            self.census.sampled_until = now + self.config.idle_timeout;
            self.census.sampling = true;
            self.recount();
        }
    }

    /// Updates n and the counters that follow from the lists, after any change.
    fn recount(&mut self) {
        let Census { silent, sending, sampling, .. } = self.census;
        let (counted, waiting) = if sampling { (sending, silent) } else { (sending + silent, 0) };
        (self.stats.active, self.stats.waiting) = (counted, waiting);
        (self.shares.n, self.stats.lacking) = (counted, self.shares.lacking);
    }

    /// Returns true if the flow counts in n.
    pub(super) fn counts(&self, flow: &Flow) -> bool {
        flow.listed.is_some_and(|list| list != List::Silent || !self.census.sampling)
    }

    pub(super) fn list(&mut self, id: usize, list: List, now: Instant) {
        self.census.lists.push(&mut self.flows, list, id as u32, now);
        if list == List::Silent {
            self.census.silent += 1;
        } else {
            self.census.sending += 1;
            self.owners.note(id, true);
        }
        self.stats.opening += u64::from(self.flows[id].phase == Phase::Opening);
        self.stats.strangers += u64::from(self.flows[id].phase == Phase::Stranger);
        self.recount();
        self.note_wants(id);
    }

    /// Removes a flow from its list and from all counts that follow from it. Returns false if the flow was in no list.
    pub(super) fn unlist(&mut self, id: usize) -> bool {
        let Some(list) = self.flows[id].listed else { return false };
        self.set_lacking(id, None);
        self.set_small(id, false);
        self.census.lists.remove(&mut self.flows, id as u32);
        if list == List::Silent {
            self.census.silent -= 1;
        } else {
            self.census.sending -= 1;
            self.owners.note(id, false);
        }
        self.stats.opening -= u64::from(self.flows[id].phase == Phase::Opening);
        self.stats.strangers -= u64::from(self.flows[id].phase == Phase::Stranger);
        self.recount();
        self.note_wants(id);
        true
    }

    /// Moves a flow to the newest place of `list`, which may be the list in which it is.
    fn relist(&mut self, id: usize, list: List, at: Instant) {
        self.census.lists.remove(&mut self.flows, id as u32);
        self.census.lists.push(&mut self.flows, list, id as u32, at);
    }

    /// Notes that the flow sent data: it counts, and its timeout begins anew.
    #[inline]
    pub(super) fn note_sending(&mut self, id: usize, now: Instant) {
        let flow = &self.flows[id];
        if !flow.is_busy() || flow.place.unused(now) >= GRAIN {
            self.renew(id, now);
        }
    }

    fn renew(&mut self, id: usize, now: Instant) {
        let busy = self.busy(id);
        match self.flows[id].listed {
            Some(List::Busy | List::Far) => self.relist(id, busy, now),
            Some(List::Quiet) => {
                self.relist(id, busy, now);
                self.flows[id].forget_interval();
            }
            Some(List::Silent) => {
                self.census.learn(true);
                self.census.silent -= 1;
                self.census.sending += 1;
                self.owners.note(id, true);
                self.relist(id, busy, now);
                self.recount();
                self.note_wants(id);
            }
            None => {
                if self.demands() && self.flows[id].flight() == Flight::Later {
                    self.flows[id].wake();
                }
                self.set_asleep(id, false);
                self.list(id, busy, now);
                self.stats.woken += 1;
            }
        }
    }

    /// Returns the list of a flow that sends.
    fn busy(&self, id: usize) -> List {
        let far = self.flows[id].round_trip().is_some_and(|rtt| rtt >= FAR);
        if far && self.demands() { List::Far } else { List::Busy }
    }

    fn set_asleep(&mut self, id: usize, asleep: bool) {
        let flow = &mut self.flows[id];
        if flow.is(ASLEEP) != asleep {
            flow.mark(ASLEEP, asleep);
            self.census.asleep = if asleep { self.census.asleep + 1 } else { self.census.asleep - 1 };
        }
    }

    /// Returns true if data of the flow passed less than [`PAUSE`] ago.
    pub(super) fn sent_lately(&self, id: usize, now: Instant) -> bool {
        let flow = &self.flows[id];
        flow.is_busy() && flow.place.unused(now) < PAUSE
    }

    /// Ends a flow because of a FIN, an RST or another connection with its index.
    pub(super) fn end(&mut self, id: usize, now: Instant) {
        if self.unlist(id) {
            self.stats.ended += 1;
        }
        self.set_asleep(id, false);
        self.set_surplus(id, 0);
        self.set_growing(id, false);
        self.note_death(id);
        self.flows[id].phase = Phase::Closed;
        self.flows[id].since = coarse(now);
        self.flows[id].forget_interval();
    }

    /// Applies the timeouts that are due.
    #[inline]
    pub(super) fn expire(&mut self, now: Instant) {
        if self.census.lists.is_due(now) {
            self.move_on(now);
        }
        if self.config.sampling == Sampling::AfterDrop && self.census.sampling && now > self.census.sampled_until {
            self.census.sampling = false;
            self.recount();
        }
    }

    fn move_on(&mut self, now: Instant) {
        while let Some(id) = self.census.lists.expired(&self.flows, List::Silent, now) {
            self.give_up(id as usize);
        }
        for list in [List::Busy, List::Far] {
            while let Some(id) = self.census.lists.expired(&self.flows, list, now) {
                if matches!(self.config.reallocation, Reallocation::MaxMin | Reallocation::Demand) {
                    self.relist(id as usize, List::Quiet, now);
                    self.set_lacking(id as usize, Some(0));
                } else {
                    self.drop_out(id as usize);
                }
            }
        }
        while let Some(id) = self.census.lists.expired(&self.flows, List::Quiet, now) {
            self.drop_out(id as usize);
            let open = self.flows[id as usize].phase == Phase::Open;
            self.set_asleep(id as usize, open && self.demands());
        }
    }

    /// Expects no data any more of a flow that has sent none.
    pub(super) fn give_up(&mut self, id: usize) {
        self.census.learn(false);
        self.drop_out(id);
    }

    fn drop_out(&mut self, id: usize) {
        self.unlist(id);
        self.set_surplus(id, 0);
        self.set_growing(id, false);
        self.stats.expired += 1;
    }

    /// Sets the state of a flow that counts: good without a claim, bad with a claim in bytes per second (Figures 2 to
    /// 4).
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
        if self.demands() {
            self.owners.claim(id, claim);
        }
        self.note_wants(id);
    }

    /// Sets that the budget of its node, of which the flow can use its part, leaves it no more than `claim` bytes per second
    /// of the link ("demand").
    pub(super) fn set_held_back(&mut self, id: usize, claim: u32) {
        self.set_lacking(id, Some(claim));
        self.owners.claim(id, None);
    }

    /// Returns true if the flow cannot use its share. With "demand" that is not because the budget of its node holds it back.
    pub(super) fn wants_less(&self, id: usize) -> bool {
        self.flows[id].has(LACKING) && !(self.demands() && self.owners.could_use_its_part(id))
    }

    pub(super) fn set_small(&mut self, id: usize, small: bool) {
        let flow = &mut self.flows[id];
        if flow.has(SMALL) != small {
            flow.set(SMALL, small);
            self.stats.below_now = if small { self.stats.below_now + 1 } else { self.stats.below_now - 1 };
        }
    }
}
