//! What can be changed while an appliance runs.

use serde_json::{Map, Value};

/// Values that hold, and that others can take the place of.
pub trait Settings: Clone + PartialEq {
    /// Returns what is another in `new`, by the keys that people set.
    fn difference(&self, new: &Self) -> Map<String, Value> {
        changed(&self.told(), new.told())
    }

    /// Returns the values that hold, as those are told who return to them.
    fn told(&self) -> Map<String, Value>;
}

/// Returns the values that are others than the `old` ones; "none" for one that is no longer there.
pub fn changed(old: &Map<String, Value>, new: Map<String, Value>) -> Map<String, Value> {
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), "none".into()));
    let gone: Vec<(String, Value)> = gone.collect();
    new.into_iter().filter(|(key, value)| old.get(key) != Some(value)).chain(gone).collect()
}

/// An appliance of which nothing can be changed.
impl Settings for () {
    fn told(&self) -> Map<String, Value> {
        Map::new()
    }
}
