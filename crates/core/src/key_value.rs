//! Splits and interprets one `key=value` text, as on a command line.

use serde_json::{Number, Value};

/// The error for a text that is not of the form `key=value`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a setting; write key=value, such as target=5ms")]
pub struct NotASetting {
    /// The text as it was given.
    pub text: String,
}

/// Splits `key=value` at the first equals sign.
///
/// # Errors
/// The text has no equals sign, or nothing before it.
pub fn split_setting(text: &str) -> Result<(String, String), NotASetting> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(NotASetting { text: text.to_owned() }),
    }
}

/// The value of a text: a truth value, a number, or a list such as `["a", "b"]` if the text has that form, else the text
/// itself.
pub fn value_of(text: &str) -> Value {
    if let Ok(list @ Value::Array(_)) = serde_json::from_str(text) {
        return list;
    }
    if let Ok(flag) = text.parse() {
        return Value::Bool(flag);
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Value::Number(whole.into());
    }
    // `nan` and `inf` also parse as floats, but no parameter has such a value.
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
            (r#"["a", "b"]"#, Value::from(vec!["a", "b"])),
            ("[a]", Value::from("[a]")),
            ("null", Value::from("null")),
        ] {
            assert_eq!(value_of(text), value, "{text}");
        }
    }
}
