//! What was set and what happened while an appliance ran, as its status and its report list it.

use serde::Serialize;
use serde_json::{Map, Value};

/// Largest number of changes that are listed, and of events that are kept.
const MOST: (usize, usize) = (256, 64);

/// A value that holds from a time on: somebody set it, a file says so, or it returned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// When, in seconds since the start.
    pub at_s: f64,
    /// The key, as people set it.
    pub key: String,
    /// The new value.
    pub value: String,
}

/// An event, such as a change of the rules of a firewall.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// When, in seconds since the start.
    pub at_s: f64,
    /// What, as a sentence.
    pub what: String,
}

/// The first changes and the last events in the order of time: who sets values for ever fills no memory.
#[derive(Debug, Default)]
pub struct Chronicle {
    /// What changed.
    pub changes: Vec<Change>,
    /// What happened.
    pub events: Vec<Event>,
}

impl Chronicle {
    /// Adds values that hold from this time on.
    pub fn set(&mut self, at_s: f64, values: &Map<String, Value>) {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let listed = values.iter().map(|(key, value)| Change { at_s, key: key.clone(), value: text(value) });
        self.changes.extend(listed.take(MOST.0 - self.changes.len()));
    }

    /// Adds an event.
    pub fn note(&mut self, at_s: f64, what: String) {
        if self.events.len() == MOST.1 {
            self.events.remove(0);
        }
        self.events.push(Event { at_s, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        let mut chronicle = Chronicle::default();
        let two = ["limit", "rate"].map(|key| (key.to_owned(), Value::from("1"))).into_iter().collect();
        (0..1000).for_each(|at| chronicle.set(f64::from(at), &two));
        (0..100).for_each(|n| chronicle.note(f64::from(n), n.to_string()));
        let Chronicle { changes, events } = chronicle;
        assert_eq!((changes.len(), changes[255].at_s, changes[255].key.as_str()), (256, 127.0, "rate"));
        assert_eq!((events.len(), events[0].what.as_str(), events[63].at_s), (64, "36", 99.0));
    }
}
