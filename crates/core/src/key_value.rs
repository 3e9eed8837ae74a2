//! One `key=value` text, as a command line gives it.

use serde_json::{Number, Value};

/// A text that is not of the form `key=value`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a setting; write key=value, such as target=5ms")]
pub struct NotASetting {
    /// The text.
    pub text: String,
}

/// Splits `key=value` at the first equals sign.
///
/// # Errors
/// A text without one, or with nothing before it.
pub fn split_setting(text: &str) -> Result<(String, String), NotASetting> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(NotASetting { text: text.to_owned() }),
    }
}

/// What a text stands for: a truth value or a number if it looks like one, else itself.
pub fn value_of(text: &str) -> Value {
    if let Ok(flag) = text.parse() {
        return Value::Bool(flag);
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Value::Number(whole.into());
    }
    // `nan` and `inf` also parse as floats, but are no values of any parameter.
    let decimal = text.parse().ok().and_then(Number::from_f64);
    decimal.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_the_values_they_look_like() {
        for (text, value) in [
            ("5ms", Value::from("5ms")),
            ("0.25", Value::from(0.25)),
            ("1e-3", Value::from(0.001)),
            ("12", Value::from(12)),
            ("-1", Value::from(-1)),
            ("true", Value::Bool(true)),
            ("nan", Value::from("nan")),
            ("inf", Value::from("inf")),
        ] {
            assert_eq!(value_of(text), value, "{text}");
        }
    }
}
