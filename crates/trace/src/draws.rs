//! Random numbers from a file, in place of those that a discipline would draw from its own stream.
//!
//! Each line holds one number of 64 bits, decimal or with `0x` hexadecimal; the discipline draws them in this order. Empty
//! lines and what follows a `#` are ignored. In place of a file, `splitmix64:STATE` names the generator of that name,
//! which never ends.

use crate::error::ReadError;
use penstock_core::rng::Rng;
use std::io::{BufRead, BufReader, Read};

const GENERATOR: &str = "splitmix64:";

/// Returns the generator that `source` names; `None` if it is the path of a file.
///
/// # Errors
/// Returns [`ReadError::Draws`] if its state is no number.
pub fn generator(source: &str) -> Result<Option<Rng>, ReadError> {
    let Some(state) = source.strip_prefix(GENERATOR) else { return Ok(None) };
    let wrong = || ReadError::Draws { line: 1, text: state.to_owned() };
    number(state).map(|state| Some(Rng::split_mix(state))).ok_or_else(wrong)
}

/// Reads numbers, one from each line.
///
/// # Errors
/// Returns [`ReadError::Draws`] with the line of what is no number.
pub fn read(reader: impl Read) -> Result<Vec<u64>, ReadError> {
    let mut draws = Vec::new();
    for (line, place) in BufReader::new(reader).lines().zip(1..) {
        let line = line.map_err(|source| ReadError::Io { offset: 0, source })?;
        let text = line.split('#').next().unwrap_or_default().trim();
        if !text.is_empty() {
            let short = || text.chars().take(40).collect();
            draws.push(number(text).ok_or_else(|| ReadError::Draws { line: place, text: short() })?);
        }
    }
    Ok(draws)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_both_notations() {
        let text = "# drawn by another program\n0\n 18446744073709551615 \n\n0xFF # the last\n";
        assert_eq!(read(text.as_bytes()).unwrap(), [0, u64::MAX, 255]);
        assert_eq!(generator("splitmix64:0x12D687").unwrap(), Some(Rng::split_mix(1_234_567)));
        assert_eq!(generator("splitmix64.txt").unwrap(), None);
    }

    #[test]
    fn what_is_no_number_is_told_with_its_line() {
        for (text, line) in [("1\n-1\n", 2), ("1.5\n", 1), ("1\n\n2\n18446744073709551616\n", 4)] {
            let message = read(text.as_bytes()).unwrap_err().to_string();
            assert!(message.starts_with(&format!("draws line {line}: ")), "{message}");
        }
        let message = generator("splitmix64:one").unwrap_err().to_string();
        assert_eq!(message, "draws line 1: \"one\"; one number from 0 to 18446744073709551615 per line is allowed");
    }
}
