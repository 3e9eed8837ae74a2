//! Lists of flows in order of last use, linked through the flows themselves: moving a flow changes only its neighbours,
//! and whether a timeout is due is one comparison.

use super::flow::{Flow, List};
use crate::units::{Instant, Span};

const NONE: u32 = u32::MAX;

/// A flow's place in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    older: u32,
    newer: u32,
    /// When the flow was last used; remains valid when the flow leaves the list.
    pub last: Instant,
}

impl Default for Place {
    fn default() -> Self {
        Self { older: NONE, newer: NONE, last: Instant::ZERO }
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

/// The three lists. A flow is in at most one, which its field `listed` names.
#[derive(Debug, Clone)]
pub(super) struct Lists {
    ends: [Ends; 3],
    /// Earliest time at which a flow may expire.
    due: Instant,
}

impl Lists {
    /// Creates empty lists with these timeouts, in the order of [`List`].
    pub fn new(timeouts: [Span; 3]) -> Self {
        Self { ends: timeouts.map(|timeout| Ends { oldest: NONE, newest: NONE, timeout }), due: Instant::MAX }
    }

    /// Adds a flow as the newest of `list`. The flow must be in no list, and `now` must not be before the newest there.
    pub fn push(&mut self, flows: &mut [Flow], list: List, id: u32, now: Instant) {
        let ends = &mut self.ends[list as usize];
        let flow = &mut flows[id as usize];
        flow.listed = Some(list);
        flow.place = Place { older: ends.newest, newer: NONE, last: now };
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
        (ends.oldest != NONE && now.since(flows[ends.oldest as usize].place.last) > ends.timeout).then_some(ends.oldest)
    }

    fn look(&mut self, flows: &[Flow]) {
        let due = |ends: &Ends| match ends.oldest {
            NONE => Instant::MAX,
            oldest => flows[oldest as usize].place.last + ends.timeout,
        };
        self.due = self.ends.iter().map(due).min().unwrap_or(Instant::MAX);
    }
}
