//! The place of a flow in its list: its neighbours, and when it was last used.

use crate::units::{Instant, Span};

/// No flow.
pub(super) const NONE: u32 = u32::MAX;

/// A flow's place in its list. It fills 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The flow that was last used before it; [`NONE`] for the oldest.
    pub older: u32,
    /// The flow that was last used after it; [`NONE`] for the newest.
    pub newer: u32,
    /// When the flow was last used, in nanoseconds modulo 2^48 (78 hours); remains valid when the flow leaves the list.
    last_low: u32,
    last_high: u16,
    /// When the flow's round began; `flow::beat` says in which unit. It is here because there is room.
    pub round_at: u16,
}

impl Default for Place {
    fn default() -> Self {
        Self { older: NONE, newer: NONE, last_low: 0, last_high: 0, round_at: 0 }
    }
}

impl Place {
    /// Notes that the flow is used now.
    pub fn set_last(&mut self, now: Instant) {
        (self.last_low, self.last_high) = (now.as_nanos() as u32, (now.as_nanos() >> 32) as u16);
    }

    /// Returns how long the flow has been unused.
    pub fn unused(&self, now: Instant) -> Span {
        let last = u64::from(self.last_high) << 32 | u64::from(self.last_low);
        Span::from_nanos(now.as_nanos().wrapping_sub(last) & ((1 << 48) - 1))
    }
}
