//! How fast windows grow: at the pace of the new share, with bursts for which the queue has room, and not into the part
//! of the link which data of flows with longer round trips still use.

use super::flow::{GROWS, beat};
use super::share::{CREDIT, MAX_WINDOW, MILLI, rate_of, window_of};
use super::{AckContext, Pink};
use crate::units::{Instant, Limit, Span};

impl Pink {
    pub(super) fn set_surplus(&mut self, id: usize, rate: u32) {
        let old = std::mem::replace(&mut self.flows[id].surplus, rate);
        self.surplus = self.surplus - u64::from(old) + u64::from(rate);
    }

    /// Updates the surplus of a flow; returns the surplus of all others in bytes per round trip of this flow.
    #[inline]
    pub(super) fn note_surplus(&mut self, id: usize, ack: u32, context: &AckContext, now: Instant) -> u64 {
        let flow = &self.flows[id];
        let beyond = flow.beyond(ack, context.share.unwrap_or(0) + CREDIT * context.full);
        if beyond == 0 && self.surplus == 0 {
            return 0;
        }
        let rtt = context.rtt.unwrap_or(Span::ZERO);
        let rate = rate_of(beyond, rtt);
        self.set_surplus(id, rate);
        if rate > 0 {
            self.surplus_until = self.surplus_until.max(now + rtt);
        }
        if now >= self.surplus_until {
            return 0;
        }
        let others = self.surplus - u64::from(self.flows[id].surplus);
        window_of(others.saturating_mul(MILLI), rtt, 1).min(MAX_WINDOW)
    }

    pub(super) fn set_growing(&mut self, id: usize, growing: bool) {
        let flow = &mut self.flows[id];
        if flow.has(GROWS) != growing {
            flow.set(GROWS, growing);
            self.growing = if growing { self.growing + 1 } else { self.growing - 1 };
        }
    }

    /// Returns the largest growth of a window in a round beyond what ACKs clock, in bytes: half of the bandwidth-delay
    /// product, or half of the queue if that is smaller, divided by the number of growing flows.
    pub(super) fn burst(&self, full: u64, rtt: Span) -> u64 {
        self.burst_room(full, rtt) / (2 * self.growing.max(1))
    }

    /// Returns the window in bytes up to which a flow of "demand" may send although it was not seen to use so much: what
    /// it claims, two segments at least, and a part of half of the queue. Of k flows which leave something to others the
    /// k-th gets 1 / k (k + 1) of that half. These parts add up to less than the whole, however many flows there are.
    pub(super) fn allowance(&self, id: usize, full: u64, rtt: Span) -> u64 {
        let others = self.shares.lacking + self.census.asleep;
        let part = self.burst_room(full, rtt) / (2 * others.max(1) * (others + 1));
        let least = if self.hosts.is_some() { (10 * full).min(self.queue_room(full) / 8) } else { 0 };
        (window_of(MILLI * u64::from(self.flows[id].claim), rtt, 1) + part).max(2 * full).max(least)
    }

    /// Returns the bandwidth-delay product, or the size of the queue if that is smaller.
    pub(super) fn burst_room(&self, full: u64, rtt: Span) -> u64 {
        self.queue_room(full).min(window_of(self.shares.capacity, rtt, 1))
    }

    /// Returns the size of the queue in bytes.
    pub(super) fn queue_room(&self, full: u64) -> u64 {
        match self.room {
            Limit::Bytes(bytes) => bytes.get(),
            Limit::Packets(packets) => packets.saturating_mul(full),
        }
    }

    /// Returns how much of the window `wanted` may be given at an ACK of `newly` bytes. `before` is the window before
    /// this ACK, if there was one; `free` is the share less the surplus of others, if they have any.
    #[inline]
    pub(super) fn grow(
        &mut self,
        id: usize,
        before: Option<u64>,
        newly: u64,
        wanted: u64,
        free: Option<u64>,
        context: &AckContext,
    ) -> u64 {
        let Some(before) = before else { return free.unwrap_or(wanted) };
        let target = free.map_or(wanted, |free| free.min(wanted)).min(context.told);
        let grew = self.flows[id].has(GROWS);
        // Without growth, dithering moves a window this far from the share, and at most twice as far at once.
        let dithers = match free {
            Some(_) => 0,
            None if grew => CREDIT * context.full,
            None => 2 * CREDIT * context.full,
        };
        let grows = target > before + dithers;
        if grows && !grew {
            self.flows[id].round_end = self.flows[id].edge; // what the round owes is counted from here
            self.flows[id].place.round_at = beat(context.now);
        }
        self.set_growing(id, grows);
        match (grows, free) {
            (true, _) => {
                let burst = self.burst(context.full, context.rtt.unwrap_or(Span::ZERO));
                before + self.flows[id].unclocked(before, newly, target, burst)
            }
            (false, Some(_)) => before,
            (false, None) => wanted,
        }
    }
}
