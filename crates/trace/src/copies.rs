//! Packets that a capture has more than once: `-i any` on a router sees each packet when it comes and when it leaves, and
//! bridges and containers add further ones.
//!
//! A packet is a copy if it has the same contents as one that was seen less than [`LATEST`] ago at another place, where a place
//! is an interface and a direction. What may change on the way does not count: time to live,
//! codepoint, window, checksums, and, behind a translator of addresses, one of the two ends. The first of them stays,
//! with the addresses that the hosts behind the translator know.

use crate::encapsulation::LinkType;
use crate::window::Found;
use penstock_core::units::{Instant, Span};
#[expect(clippy::disallowed_types, reason = "keys are looked up, and never iterated")]
use std::collections::HashMap;
use std::collections::VecDeque;
use std::net::IpAddr;

/// How long a packet waits in a router at most.
const LATEST: Span = Span::from_secs(3);
/// Within this time a packet with the same identification at the same place is a copy: cooked captures of version 1 do
/// not tell interfaces apart.
const AT_ONCE: Span = Span::from_millis(1);
/// Number of packets that are remembered at most.
const MOST: usize = 65_536;

/// Where a packet was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    interface: u32,
    way: u32,
}

/// What copies of a packet have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Contents {
    protocol: u8,
    id: u16,
    size: u64,
    /// Sequence and acknowledgment number, flags and timestamps of TCP.
    numbers: [u32; 5],
    /// The captured bytes behind the headers.
    payload: u64,
}

/// A packet that was seen first.
#[derive(Debug)]
struct First {
    t: Instant,
    record: u64,
    ends: (IpAddr, IpAddr),
    places: Vec<Place>,
}

/// The packets that were seen lately.
#[derive(Debug, Default)]
pub struct Copies {
    #[expect(clippy::disallowed_types, reason = "keys are looked up, and never iterated")]
    seen: HashMap<Contents, VecDeque<First>>,
    order: VecDeque<(Instant, Contents)>,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is seen for the first time.
    New,
    /// It was seen before, as this record, with the same addresses.
    Copy,
    /// It was seen before, as this record, with other addresses.
    Translated(u64),
}

impl Copies {
    /// Tells what a packet of a capture is; `bytes` are those behind its IP header.
    pub fn of(&mut self, link: LinkType, found: &Found, bytes: &[u8]) -> Kind {
        if !matches!(link, LinkType::Cooked | LinkType::Cooked2 | LinkType::Ethernet) {
            return Kind::New;
        }
        let place = Place { interface: found.interface, way: found.way as u32 };
        let (key, t, ends) = (contents(found, bytes), found.t, (found.source, found.destination));
        self.forget(t);
        let firsts = self.seen.entry(key).or_default();
        let repeats = |first: &First| {
            let at_once = link == LinkType::Cooked && key.id != 0 && t.since(first.t) <= AT_ONCE && first.ends == ends;
            at_once || !first.places.contains(&place)
        };
        let same = |first: &First| first.ends.0 == ends.0 || first.ends.1 == ends.1;
        match firsts.iter_mut().find(|first| same(first) && repeats(first)) {
            Some(first) => {
                first.places.push(place);
                if first.ends == ends { Kind::Copy } else { Kind::Translated(first.record) }
            }
            None => {
                firsts.push_back(First { t, record: found.record, ends, places: vec![place] });
                self.order.push_back((t, key));
                Kind::New
            }
        }
    }

    /// Forgets what is too old to be seen again.
    fn forget(&mut self, now: Instant) {
        while let Some((t, key)) = self.order.front() {
            if now.since(*t) < LATEST && self.order.len() < MOST {
                return;
            }
            if let Some(firsts) = self.seen.get_mut(key) {
                firsts.pop_front();
                if firsts.is_empty() {
                    self.seen.remove(key);
                }
            }
            self.order.pop_front();
        }
    }
}

fn contents(found: &Found, bytes: &[u8]) -> Contents {
    let [flags, seq, ack, _, _, val, ecr, ..] = found.fields;
    // Ports and checksums are in the first bytes; of other protocols than TCP and UDP a checksum may be.
    let header = if flags == 0 { 8 } else { bytes.get(12).map_or(20, |byte| usize::from(byte >> 4) * 4) };
    let payload = bytes.get(header.min(bytes.len())..).unwrap_or_default();
    let mut hash = 0xcbf2_9ce4_8422_2325u64; // FNV-1a
    for byte in payload {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let (protocol, id, size) = (found.protocol, found.id, found.size.get());
    Contents { protocol, id, size, numbers: [flags & 0xff, seq, ack, val, ecr], payload: hash }
}
