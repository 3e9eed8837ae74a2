//! Connections of real packets as dense indices: a table from 5-tuple to [`FlowId`] in bounded memory.
//!
//! Both directions of a connection have one key. A full table returns [`Tracking::Untracked`] and does not take an
//! index from a live connection. The caller provides the key of the hash, so that a sender who chooses ports and
//! addresses cannot choose collisions, and so that this module draws no random numbers.
//!
//! Invariants: `len() <= capacity`; a [`FlowId`] belongs to one key at a time; an index passes to another key only
//! after its idle time.

use super::headers::{Headers, IpVersion, Transport, be16};
use super::numbers::Numbers;
use crate::packet::{FlowId, TcpFlags};
use crate::units::{Instant, Span};

/// Length of a key in bytes: two addresses of 16 bytes, two ports, protocol, version.
pub const KEY_LEN: usize = 38;

/// The key of a connection, which is equal for both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey([u8; KEY_LEN]);

impl FlowKey {
    /// The key of a packet; the ports are zero if the packet shows none. `None` if it is no IP packet.
    pub fn of(bytes: &[u8], headers: &Headers) -> Option<Self> {
        let (addresses, width, version) = match headers.version {
            IpVersion::V4 => (bytes.get(12..20)?, 4, 4),
            IpVersion::V6 => (bytes.get(8..40)?, 16, 6),
            IpVersion::Unknown => return None,
        };
        let (protocol, ports) = match headers.transport {
            Transport::Tcp { offset, .. } => (6, [be16(bytes, offset), be16(bytes, offset + 2)]),
            Transport::Udp { offset } => (17, [be16(bytes, offset), be16(bytes, offset + 2)]),
            Transport::Other(protocol) => (protocol, [0, 0]),
        };
        let end = |address: &[u8], port: u16| {
            let mut end = [0; 18];
            end[..width].copy_from_slice(address);
            end[16..].copy_from_slice(&port.to_be_bytes());
            end
        };
        let (a, b) = (end(&addresses[..width], ports[0]), end(&addresses[width..], ports[1]));
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        let mut key = [0; KEY_LEN];
        key[..18].copy_from_slice(&low);
        key[18..36].copy_from_slice(&high);
        key[36..].copy_from_slice(&[protocol, version]);
        Some(Self(key))
    }

    /// The bytes of the key, for hashing.
    pub fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

/// The result of a lookup in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// The packet's connection has an index.
    Tracked {
        /// The index of the connection.
        flow: FlowId,
        /// True if the table saw the connection's first SYN. Otherwise window scale and round trip time are unknown,
        /// and the index may have belonged to another connection before: the TCP header of the packet must stay hidden.
        from_syn: bool,
        /// True if the index was assigned just now: any state stored under it belongs to another connection.
        fresh: bool,
    },
    /// There is no index: the table is full, or the packet is no IP packet.
    Untracked,
}

/// The keyed hash of a connection, supplied by the owner of the table.
pub trait KeyHash {
    /// The hash of `key`.
    fn hash(&self, key: &FlowKey) -> u64;
}

impl<F: Fn(&FlowKey) -> u64> KeyHash for F {
    fn hash(&self, key: &FlowKey) -> u64 {
        self(key)
    }
}

/// SipHash-2-4 with a 128-bit secret key (Aumasson and Bernstein 2012), recommended for gateways.
#[derive(Debug, Clone, Copy)]
pub struct SipHash(pub u64, pub u64);

impl SipHash {
    /// The hash of any bytes.
    pub fn of(&self, bytes: &[u8]) -> u64 {
        let mut v = [
            self.0 ^ 0x736f_6d65_7073_6575,
            self.1 ^ 0x646f_7261_6e64_6f6d,
            self.0 ^ 0x6c79_6765_6e65_7261,
            self.1 ^ 0x7465_6462_7974_6573,
        ];
        let mut words = bytes.chunks_exact(8);
        let mut absorb = |word: u64| {
            v[3] ^= word;
            sip_rounds(&mut v, 2);
            v[0] ^= word;
        };
        for chunk in &mut words {
            absorb(chunk.iter().rev().fold(0, |word, b| word << 8 | u64::from(*b)));
        }
        let tail = words.remainder().iter().rev().fold(0, |word, b| word << 8 | u64::from(*b));
        absorb(tail | (bytes.len() as u64) << 56);
        v[2] ^= 0xff;
        sip_rounds(&mut v, 4);
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

impl KeyHash for SipHash {
    fn hash(&self, key: &FlowKey) -> u64 {
        self.of(key.as_bytes())
    }
}

fn sip_rounds(v: &mut [u64; 4], rounds: usize) {
    for _ in 0..rounds {
        v[0] = v[0].wrapping_add(v[1]);
        v[2] = v[2].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[1]);
        v[0] = v[0].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].rotate_left(32);
    }
}

/// Connections with their indices.
#[derive(Debug, Clone)]
pub struct FlowTable<H> {
    hash: H,
    numbers: Numbers<FlowKey>,
    /// For each index, whether the SYN of its connection was seen.
    from_syn: Vec<bool>,
}

impl<H: KeyHash> FlowTable<H> {
    /// Creates an empty table of at most `capacity` connections. The index of a connection is reassigned after `idle`
    /// without a packet.
    ///
    /// `idle` must be longer than any idle time of the elements which use the indices, so that they have forgotten a
    /// connection before its index is reassigned.
    pub fn new(capacity: u32, idle: Span, hash: H) -> Self {
        Self { hash, numbers: Numbers::new(capacity, idle), from_syn: Vec::new() }
    }

    /// Number of connections which have an index now.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// True if no connection has an index.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index of the packet in `bytes`, which has these `headers`. A new connection gets an index if there is room.
    pub fn lookup(&mut self, bytes: &[u8], headers: &Headers, now: Instant) -> Tracking {
        let Some(key) = FlowKey::of(bytes, headers) else { return Tracking::Untracked };
        let syn = match headers.transport {
            Transport::Tcp { offset, .. } => {
                let flags = TcpFlags(bytes.get(offset + 13).copied().unwrap_or(0));
                flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK)
            }
            _ => false,
        };
        self.lookup_key(key, syn, now)
    }

    /// The index of a connection whose key is already computed; `syn` is true if the packet opens a connection.
    pub fn lookup_key(&mut self, key: FlowKey, syn: bool, now: Instant) -> Tracking {
        let hash = self.hash.hash(&key);
        let Some((number, fresh)) = self.numbers.number(hash, key, now) else { return Tracking::Untracked };
        let index = number as usize;
        if index >= self.from_syn.len() {
            self.from_syn.resize(index + 1, false);
        }
        let from_syn = syn || self.from_syn[index] && !fresh;
        self.from_syn[index] = from_syn;
        Tracking::Tracked { flow: FlowId(number), from_syn, fresh }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const SECRET: SipHash = SipHash(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);

    fn key(n: u8) -> FlowKey {
        FlowKey([n; KEY_LEN])
    }

    fn at(s: u64) -> Instant {
        Instant::ZERO + Span::from_secs(s)
    }

    fn tracked(flow: u32, from_syn: bool) -> Tracking {
        Tracking::Tracked { flow: FlowId(flow), from_syn, fresh: false }
    }

    fn fresh(flow: u32, from_syn: bool) -> Tracking {
        Tracking::Tracked { flow: FlowId(flow), from_syn, fresh: true }
    }

    #[test]
    fn siphash_agrees_with_its_authors() {
        // Appendix A of the paper: key 00..0f, message 00..0e.
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(SECRET.of(&message), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn a_full_table_says_so_and_a_slot_returns_after_its_idle_time() {
        let mut table = FlowTable::new(2, Span::from_secs(10), SECRET);
        assert_eq!(table.lookup_key(key(1), true, at(0)), fresh(0, true));
        assert_eq!(table.lookup_key(key(2), true, at(5)), fresh(1, true));
        assert_eq!(table.lookup_key(key(3), true, at(10)), Tracking::Untracked);
        assert_eq!(table.lookup_key(key(3), true, at(11)), fresh(0, true), "the first was idle for 11 s");
        assert_eq!(table.lookup_key(key(1), false, at(12)), Tracking::Untracked);
        assert_eq!(table.len(), 2);
        assert_eq!(table.lookup_key(key(4), false, at(30)), fresh(0, false), "the SYN was that of another connection");
    }

    #[test]
    fn a_connection_met_in_the_middle_is_marked_until_its_next_syn() {
        let mut table = FlowTable::new(2, Span::from_secs(10), SECRET);
        assert_eq!(table.lookup_key(key(1), false, at(0)), fresh(0, false));
        assert_eq!(table.lookup_key(key(1), true, at(1)), tracked(0, true));
        assert_eq!(table.lookup_key(key(1), false, at(2)), tracked(0, true));
    }

    proptest! {
        /// Against a map that is scanned on every step.
        #[test]
        fn behaves_like_a_plain_map(steps in prop::collection::vec((0..12u8, 0..6u64), 1..200), hash_bits in 0..64u32) {
            // A hash of few bits forces collisions.
            let hash = |k: &FlowKey| SECRET.hash(k) >> hash_bits;
            let mut table = FlowTable::new(4, Span::from_secs(10), hash);
            let mut model: BTreeMap<u8, (u64, u32)> = BTreeMap::new();
            let mut now = 0;
            for (n, wait) in steps {
                now += wait;
                model.retain(|_, (last, _)| now - *last <= 10);
                let got = table.lookup_key(key(n), true, at(now));
                match (got, model.get(&n).copied()) {
                    (Tracking::Untracked, known) => prop_assert!(known.is_none() && model.len() == 4),
                    (Tracking::Tracked { flow, fresh, .. }, Some((_, id))) => prop_assert_eq!((flow.0, fresh), (id, false)),
                    (Tracking::Tracked { flow, fresh, .. }, None) => {
                        prop_assert!(fresh && flow.0 < 4);
                        prop_assert!(model.values().all(|(_, id)| *id != flow.0), "an index in use was given away");
                    }
                }
                if let Tracking::Tracked { flow, .. } = got {
                    model.insert(n, (now, flow.0));
                }
                prop_assert_eq!(table.len(), model.len());
            }
        }
    }
}
