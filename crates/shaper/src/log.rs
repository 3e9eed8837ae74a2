//! What happened on a link, in the order of time.

use crate::sheet::{ENTRIES, Sheet};
use penstock_core::units::{Bytes, Instant, Rate};

/// What happened to a packet, or to the link.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// A packet of this size arrived.
    Arrived(Bytes),
    /// A packet of this size was dropped.
    Dropped(Bytes),
    /// A packet that arrived at the first time begins to leave; its last bit leaves at the second.
    Sent(Bytes, Instant, Instant),
    /// The link has another rate, at which the packet on the wire ends at this time.
    Rate(Rate, Instant),
}

/// The events of one link in the order of time.
#[derive(Debug, Default)]
pub struct LinkLog {
    /// What happened, and when.
    pub events: Vec<(Instant, Event)>,
    /// Up to when the log is complete.
    pub until: Instant,
}

impl LinkLog {
    /// Ends the log at `until`, or else with its last event; further events are in the other one.
    pub fn exchange(&mut self, empty: Self, until: Option<Instant>) -> Self {
        let mut full = std::mem::replace(self, empty);
        full.until = until.or(full.events.last().map(|(at, _)| *at)).unwrap_or_default();
        full
    }
}

impl Sheet for LinkLog {
    fn empty() -> Self {
        Self { events: Vec::with_capacity(ENTRIES + ENTRIES / 8), until: Instant::ZERO }
    }
    fn packets(&self) -> usize {
        self.events.len()
    }
    fn clear(&mut self) {
        self.events.clear();
    }
}
