//! Keys of answers, which programs of users read.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Keys of the answers of a session, to be compared with those of a recorded one.
#[derive(Debug, Default)]
pub struct Keys(BTreeSet<String>);

impl Keys {
    /// Adds the keys of an answer. All elements of an array count as one.
    pub fn note(&mut self, what: &str, answer: &Value) {
        match answer {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let path = format!("{what}/{key}");
                    self.note(&path, value);
                    self.0.insert(path);
                }
            }
            Value::Array(elements) => elements.iter().for_each(|element| self.note(&format!("{what}/*"), element)),
            _ => {}
        }
    }

    /// Panics if a key of a recorded session is not there, with all that came.
    pub fn has_all_of(&self, recorded: &str) {
        let missing: Vec<&str> = recorded.lines().filter(|key| !self.0.contains(*key)).collect();
        let text = self.0.iter().fold(String::new(), |mut text, key| {
            let _ = writeln!(text, "{key}");
            text
        });
        assert!(missing.is_empty() && !recorded.is_empty(), "no longer there: {missing:#?}\nall that came:\n{text}");
    }
}
