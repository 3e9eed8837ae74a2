//! Lists of flows in order of last use, linked through the flows themselves: moving a flow changes only its neighbours,
//! and whether a timeout is due is one comparison.

use super::flow::{Flow, List};
use super::place::{NONE, Place};
use crate::units::{Instant, Span};

/// Number of lists, the variants of [`List`].
pub(super) const LISTS: usize = 4;

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
