//! What happened while an appliance ran, as its status tells it.

use serde::Serialize;

/// Number of events that are kept.
const MOST: usize = 64;

/// An event, such as a change of the rules of a firewall.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// When, in seconds since the start.
    pub at_s: f64,
    /// What, as a sentence.
    pub what: String,
}

/// The last events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Events(Vec<Event>);

impl Events {
    /// Adds an event; the oldest one goes if there are too many.
    pub fn add(&mut self, at_s: f64, what: String) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(Event { at_s, what });
    }

    /// Returns the events in the order of time.
    pub fn all(&self) -> &[Event] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_events_are_kept() {
        let mut events = Events::default();
        (0..100).for_each(|n| events.add(f64::from(n), n.to_string()));
        let all = events.all();
        assert_eq!((all.len(), all[0].what.as_str(), all[63].at_s), (MOST, "36", 99.0));
    }
}
