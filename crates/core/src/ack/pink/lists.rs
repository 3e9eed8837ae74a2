//! Lists of flows in order of last use, linked through the flows themselves: moving a flow changes only its neighbours,
//! and whether a timeout is due is one comparison.

use super::flow::{Flow, List};
use crate::units::{Instant, Span};

const NONE: u32 = u32::MAX;
/// Number of lists, the variants of [`List`].
pub(super) const LISTS: usize = 4;

/// A flow's place in its list. It fills 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    older: u32,
    newer: u32,
    /// When the flow was last used, in nanoseconds modulo 2^48 (78 hours); remains valid when the flow leaves the list.
    last_low: u32,
    last_high: u16,
    /// When the flow's round began; see [`super::flow::beat`]. It is here because there is room.
    pub round_at: u16,
}

impl Default for Place {
    fn default() -> Self {
        Self { older: NONE, newer: NONE, last_low: 0, last_high: 0, round_at: 0 }
    }
}

impl Place {
    fn set_last(&mut self, now: Instant) {
        (self.last_low, self.last_high) = (now.as_nanos() as u32, (now.as_nanos() >> 32) as u16);
    }

    /// Returns how long the flow has been unused.
    pub fn unused(&self, now: Instant) -> Span {
        let last = u64::from(self.last_high) << 32 | u64::from(self.last_low);
        Span::from_nanos(now.as_nanos().wrapping_sub(last) & ((1 << 48) - 1))
    }
}

/// The ends of one list.
#[derive(Debug, Clone, Copy)]
struct Ends {
    oldest: u32,
    newest: u32,
    /// How long a flow may stay in the list without being used.
    timeout: Span,
}

/// The lists. A flow is in at most one, which its field `listed` names.
#[derive(Debug, Clone)]
pub(super) struct Lists {
    ends: [Ends; LISTS],
    /// Earliest time at which a flow may expire.
    due: Instant,
    /// Time of the last use of any flow.
    latest: Instant,
}

impl Lists {
    /// Creates empty lists with these timeouts, in the order of [`List`].
    pub fn new(timeouts: [Span; LISTS]) -> Self {
        let ends = timeouts.map(|timeout| Ends { oldest: NONE, newest: NONE, timeout });
        Self { ends, due: Instant::MAX, latest: Instant::ZERO }
    }

    /// Adds a flow as the newest of `list`. The flow must be in no list, and `now` must not be before the newest there.
    pub fn push(&mut self, flows: &mut [Flow], list: List, id: u32, now: Instant) {
        let ends = &mut self.ends[list as usize];
        let flow = &mut flows[id as usize];
        flow.listed = Some(list);
        (flow.place.older, flow.place.newer) = (ends.newest, NONE);
        flow.place.set_last(now);
        self.latest = now;
        match std::mem::replace(&mut ends.newest, id) {
            NONE => {
                ends.oldest = id;
                self.due = self.due.min(now + ends.timeout);
            }
            newest => flows[newest as usize].place.newer = id,
        }
    }

    /// Removes a flow from its list, if it is in one.
    pub fn remove(&mut self, flows: &mut [Flow], id: u32) {
        let Some(list) = flows[id as usize].listed.take() else { return };
        let Place { older, newer, .. } = flows[id as usize].place;
        match newer {
            NONE => self.ends[list as usize].newest = older,
            _ => flows[newer as usize].place.older = older,
        }
        match older {
            NONE => {
                self.ends[list as usize].oldest = newer;
                self.look(flows);
            }
            _ => flows[older as usize].place.newer = newer,
        }
    }

    /// Returns true if a flow may have been unused for longer than the timeout of its list.
    pub fn is_due(&self, now: Instant) -> bool {
        now > self.due
    }

    /// Returns the oldest flow of `list` if it is past the timeout.
    pub fn expired(&self, flows: &[Flow], list: List, now: Instant) -> Option<u32> {
        let ends = &self.ends[list as usize];
        (ends.oldest != NONE && flows[ends.oldest as usize].place.unused(now) > ends.timeout).then_some(ends.oldest)
    }

    fn look(&mut self, flows: &[Flow]) {
        let due = |ends: &Ends| match ends.oldest {
            NONE => Instant::MAX,
            oldest => self.latest - flows[oldest as usize].place.unused(self.latest) + ends.timeout,
        };
        self.due = self.ends.iter().map(due).min().unwrap_or(Instant::MAX);
    }
}
