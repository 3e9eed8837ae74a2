//! What can be changed while an appliance runs.

use serde_json::{Map, Value};

/// Values that hold, and that others can take the place of.
pub trait Settings: Clone + PartialEq {
    /// Returns what is another in `new`, by the keys that people set.
    fn difference(&self, new: &Self) -> Map<String, Value> {
        let old = self.told();
        new.told().into_iter().filter(|(key, value)| old.get(key) != Some(value)).collect()
    }

    /// Returns the values that hold, as those are told who return to them.
    fn told(&self) -> Map<String, Value>;
}

/// An appliance of which nothing can be changed.
impl Settings for () {
    fn told(&self) -> Map<String, Value> {
        Map::new()
    }
}
