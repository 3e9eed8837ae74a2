//! The secret keys of the hashes by which connections and hosts are found.
//!
//! They come from the system, so that a sender who knows this code cannot choose addresses and ports that collide. A run
//! with a seed of its own can be repeated, and so can its collisions: its keys are derived from the seed.

use penstock_conntrack::SipHash;
use penstock_core::rng::Streams;

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
    /// Makes keys of random bytes.
    pub fn from_random(bytes: &[u8; 48]) -> Self {
        let word = |at: usize| bytes[8 * at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let key = |at: usize| SipHash(word(2 * at), word(2 * at + 1));
        Self { connections: key(0), hosts: key(1), talkers: key(2) }
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
