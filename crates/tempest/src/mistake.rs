//! Mistakes in a request, which its author can correct.

/// A flag with a value that is not allowed; the text names the flag, the value and the allowed values.
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

    /// A flag that is only allowed together with others.
    pub(crate) fn alone(flag: &str, allowed: impl ToString) -> Self {
        Self::new(flag, "", allowed)
    }
}
