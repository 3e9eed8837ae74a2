//! What a person can put right in what was asked.

/// A flag whose value cannot be; the text names the flag, the value and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{flag}{}{value}: {allowed}", if value.is_empty() { "" } else { " " })]
pub struct Mistake {
    flag: String,
    value: String,
    allowed: String,
}

impl Mistake {
    pub(crate) fn new(flag: &str, value: impl ToString, allowed: impl ToString) -> Self {
        Self { flag: flag.to_owned(), value: value.to_string(), allowed: allowed.to_string() }
    }

    /// A flag that goes with others only.
    pub(crate) fn alone(flag: &str, allowed: impl ToString) -> Self {
        Self::new(flag, "", allowed)
    }
}
