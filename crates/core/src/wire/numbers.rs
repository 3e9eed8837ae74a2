//! A table that assigns dense numbers to keys, in bounded memory.
//!
//! A hash map finds the number of a key; a list in order of last use makes expiry O(1). If all numbers are in use, a
//! new key gets none, and no live key loses its number. The caller passes in hashes, which should be keyed by a secret.
//!
//! Invariants: `len() <= capacity`; a number belongs to one key at a time; it passes to another key only after its idle
//! time.

use crate::recency::Recency;
use crate::units::{Instant, Span};
#[expect(
    clippy::disallowed_types,
    reason = "keys are looked up and removed, and never iterated; the hash comes from outside"
)]
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A hasher which returns the hash that the caller computed.
#[derive(Debug, Clone, Copy, Default)]
struct Given(u64);

impl Hasher for Given {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        debug_assert!(false, "a hashed key writes one u64, not {bytes:?}");
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Hashed<K> {
    hash: u64,
    key: K,
}

impl<K> Hash for Hashed<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The number of each key, found by the hash that the caller computed.
#[expect(
    clippy::disallowed_types,
    reason = "keys are looked up and removed, and never iterated; the hash comes from outside"
)]
type Index<K> = HashMap<Hashed<K>, u32, BuildHasherDefault<Given>>;

/// Keys with their numbers.
#[derive(Debug, Clone)]
pub(super) struct Numbers<K> {
    idle: Span,
    capacity: u32,
    keys: Vec<Hashed<K>>,
    free: Vec<u32>,
    index: Index<K>,
    recency: Recency<1>,
}

impl<K: Clone + Eq> Numbers<K> {
    /// Creates a table for at most `capacity` keys. The number of a key is reassigned after `idle` without use.
    pub fn new(capacity: u32, idle: Span) -> Self {
        let room = (capacity as usize).min(1 << 16);
        Self {
            idle,
            capacity: capacity.min(u32::MAX - 1),
            keys: Vec::new(),
            free: Vec::new(),
            index: Index::with_capacity_and_hasher(room, BuildHasherDefault::default()),
            recency: Recency::new(),
        }
    }

    /// Number of keys which have a number now.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// The number of `key` and whether it was assigned just now; marks the key as used. `None` if no number is left.
    pub fn number(&mut self, hash: u64, key: K, now: Instant) -> Option<(u32, bool)> {
        self.expire(now);
        let key = Hashed { hash, key };
        let known = self.index.get(&key).copied();
        match known {
            Some(number) => self.recency.remove(0, number),
            None if self.free.is_empty() && self.keys.len() as u32 >= self.capacity => return None,
            None => {}
        }
        let number = known.unwrap_or_else(|| self.claim(key));
        self.recency.push(0, number, now);
        Some((number, known.is_none()))
    }

    /// Marks the key with this number as used; the number must be assigned.
    pub fn touch(&mut self, number: u32, now: Instant) {
        self.recency.remove(0, number);
        self.recency.push(0, number, now);
    }

    /// Assigns the number that was freed last, or a new one.
    fn claim(&mut self, key: Hashed<K>) -> u32 {
        let number = match self.free.pop() {
            Some(number) => {
                self.keys[number as usize] = key.clone();
                number
            }
            None => {
                self.keys.push(key.clone());
                self.keys.len() as u32 - 1
            }
        };
        self.index.insert(key, number);
        number
    }

    /// Frees the numbers of keys that were idle for too long. Each key is freed once, so the cost is O(1) amortized.
    fn expire(&mut self, now: Instant) {
        while let Some(number) = self.recency.expired(0, now, self.idle) {
            self.recency.remove(0, number);
            self.index.remove(&self.keys[number as usize]);
            self.free.push(number);
        }
    }
}
