//! The randomness of the system.

use std::io;

/// Draws `N` random bytes.
///
/// # Errors
/// Returns the error of the system.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_differ() {
        assert_ne!(bytes::<16>().unwrap(), bytes::<16>().unwrap());
    }
}
