//! The secret keys of the hashes by which connections and hosts are found.
//!
//! They come from the system, so that a sender who knows this code cannot choose addresses and ports that collide. A run
//! with a seed of its own can be repeated, and so can its collisions: its keys are derived from the seed.

use penstock_core::rng::Streams;
use penstock_flows::SipHash;
use std::io;

/// The keys of the hashes by which the emulator and the gateway find connections and hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// The key of the hash of connections.
    pub connections: SipHash,
    /// The key of the hash of hosts.
    pub hosts: SipHash,
    /// The key of the hash of those who carry most.
    pub talkers: SipHash,
}

impl Keys {
    /// Draws keys from the randomness of the system.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn from_system() -> io::Result<Self> {
        let mut bytes = [0; 48];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let word = |at: usize| bytes[8 * at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let key = |at: usize| SipHash(word(2 * at), word(2 * at + 1));
        Ok(Self { connections: key(0), hosts: key(1), talkers: key(2) })
    }

    /// Derives keys from a seed.
    pub fn from_seed(seed: u64) -> Self {
        let key = |name| {
            let mut stream = Streams::new(seed).get(name);
            SipHash(stream.bits(), stream.bits())
        };
        Self { connections: key("flows/hash"), hosts: key("nodes/hash"), talkers: key("talkers/hash") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_system_differ_and_those_of_a_seed_do_not() {
        let (one, other) = (Keys::from_system().unwrap(), Keys::from_system().unwrap());
        assert!(one != other && one.connections != one.hosts);
        assert_eq!(Keys::from_seed(7), Keys::from_seed(7));
        assert_ne!(Keys::from_seed(7), Keys::from_seed(8));
    }
}
