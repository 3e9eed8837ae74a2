//! What was set while packets passed, as reports list it.

use serde::Serialize;

/// Largest number of changes that are listed.
const MOST: usize = 256;

/// A value that was set while packets passed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// When, in seconds since the start.
    pub at_s: f64,
    /// The key, as it was set.
    pub key: String,
    /// The new value.
    pub value: String,
}

/// What was set since the start, at most 256 entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes(Vec<Change>);

impl Changes {
    /// Adds values that were set at this time. There is a limit, so that who sets values for ever fills no memory.
    pub fn add(&mut self, at_s: f64, values: &[(String, String)]) {
        let listed = values.iter().map(|(key, value)| Change { at_s, key: key.clone(), value: value.clone() });
        self.0.extend(listed.take(MOST - self.0.len()));
    }

    /// Returns them in the order of time.
    pub fn all(&self) -> &[Change] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        let mut changes = Changes::default();
        let two = ["rate", "limit"].map(|key| (key.to_owned(), "1".to_owned()));
        (0..1000).for_each(|at| changes.add(f64::from(at), &two));
        let all = changes.all();
        assert_eq!((all.len(), all[MOST - 1].at_s, all[MOST - 1].key.as_str()), (MOST, 127.0, "limit"));
    }
}
