//! Who carries most: counters of the flows that pass, for `top`.
//!
//! The table has a fixed size, and takes a flow in a few nanoseconds whatever the traffic is. A flow has room in one of
//! `WAYS` places, which its hash tells; if others have all of them, the one that carried least in the last second
//! goes. So the heavy flows of a second are there, whoever floods with light ones; what went is counted as "others".

use crate::direction::Direction;
use crate::nodes::Side;
use penstock_conntrack::SipHash;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::{FlowKey, RealPacket};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Number of places in which a flow may be.
const WAYS: usize = 4;
/// Number of groups of places, a power of two.
const GROUPS: usize = 1024;
/// A flow that has been silent for so long is forgotten.
const SILENT: Span = Span::from_secs(60);

#[derive(Debug, Clone, Copy)]
struct Talker {
    key: FlowKey,
    /// True if the first end in the key is on the left.
    first_is_left: bool,
    /// Packets and bytes of both directions.
    packets: [u64; 2],
    bytes: [u64; 2],
    /// Bytes at the last two ticks.
    ticks: [[u64; 2]; 2],
    seen: Instant,
}

impl Talker {
    /// Bytes since the tick before the last one: what decides who goes.
    fn weight(&self) -> u64 {
        (0..2).map(|way| self.bytes[way] - self.ticks[1][way]).sum()
    }
}

/// The counters of all flows that are known.
#[derive(Debug)]
pub struct Talkers {
    places: Vec<Option<Talker>>,
    hash: SipHash,
    others: [u64; 2],
    /// When the last two ticks were.
    ticked: [Instant; 2],
}

/// One line of `top`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Entry {
    /// The flow, as `left > right`, or the node.
    pub name: String,
    /// The protocol of a flow: tcp, udp or its number; of a node how many flows it has.
    pub kind: String,
    /// Bits per second in the last whole second, from left to right and from right to left.
    pub rate_bps: [u64; 2],
    /// Bytes delivered since the flow is known, in both directions.
    pub bytes: [u64; 2],
    /// Packets delivered since the flow is known, in both directions.
    pub packets: [u64; 2],
}

/// The answer to `top`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Top {
    /// The entries, those with the highest rate first.
    pub entries: Vec<Entry>,
    /// Number of flows or nodes that are known.
    pub known: usize,
    /// Bytes of flows that are not known any more, in both directions.
    pub others_bytes: [u64; 2],
}

impl Talkers {
    /// Creates an empty table.
    pub fn new(hash: SipHash) -> Self {
        Self { places: vec![None; WAYS * GROUPS], hash, others: [0; 2], ticked: [Instant::ZERO; 2] }
    }

    /// Counts a packet that was delivered.
    pub fn count(&mut self, direction: Direction, packet: &RealPacket, now: Instant) {
        let Some((key, from_first)) = FlowKey::with_side(packet.bytes(), packet.headers()) else { return };
        let group = self.hash.of(key.as_bytes()) as usize % GROUPS * WAYS;
        let places = &mut self.places[group..group + WAYS];
        let place = places.iter().position(|place| place.is_some_and(|talker| talker.key == key));
        let place = place.unwrap_or_else(|| {
            let lightest = |(_, place): &(usize, &Option<Talker>)| place.as_ref().map_or(0, |t| t.weight() + 1);
            let (lightest, _) = places.iter().enumerate().min_by_key(lightest).expect("there are places");
            if let Some(gone) = places[lightest].take() {
                (0..2).for_each(|way| self.others[way] += gone.bytes[way]);
            }
            lightest
        });
        let talker = places[place].get_or_insert_with(|| Talker {
            key,
            first_is_left: from_first == (direction == Direction::Forward),
            packets: [0; 2],
            bytes: [0; 2],
            ticks: [[0; 2]; 2],
            seen: now,
        });
        talker.packets[direction.index()] += 1;
        talker.bytes[direction.index()] += packet.headers().end as u64;
        talker.seen = now;
    }

    /// Ends a second: rates are those of the last one. Forgets flows that are silent.
    pub fn tick(&mut self, now: Instant) {
        self.ticked = [now, self.ticked[0]];
        for place in &mut self.places {
            let Some(talker) = place else { continue };
            if now.since(talker.seen) > SILENT {
                (0..2).for_each(|way| self.others[way] += talker.bytes[way]);
                *place = None;
            } else {
                talker.ticks = [talker.bytes, talker.ticks[0]];
            }
        }
    }

    /// Returns the flows with the highest rates.
    pub fn flows(&self, most: usize) -> Top {
        self.top(self.places.iter().flatten().map(|talker| self.entry(talker)).collect(), most)
    }

    /// Returns the nodes with the highest rates: the subscribers and hosts on `side` with all their flows, as `--nodes` has
    /// them. Without a side these are the hosts on the left. `subscriber` returns the name of the subscriber that has an
    /// address.
    pub fn nodes<'a>(&self, side: Side, most: usize, subscriber: impl Fn(IpAddr) -> Option<&'a str>) -> Top {
        let mut nodes: BTreeMap<String, (Entry, u64)> = BTreeMap::new();
        for talker in self.places.iter().flatten() {
            let flow = self.entry(talker);
            let end = usize::from((side == Side::Right) == talker.first_is_left);
            let address = talker.key.end(end).ip();
            let name = subscriber(address).map_or_else(|| node_name(address), str::to_owned);
            let (node, flows) = nodes.entry(name.clone()).or_insert_with(|| (Entry { name, ..Entry::default() }, 0));
            for way in 0..2 {
                node.rate_bps[way] += flow.rate_bps[way];
                node.bytes[way] += flow.bytes[way];
                node.packets[way] += flow.packets[way];
            }
            *flows += 1;
        }
        let kind = |flows| if flows == 1 { "1 flow".to_owned() } else { format!("{flows} flows") };
        self.top(nodes.into_values().map(|(node, flows)| Entry { kind: kind(flows), ..node }).collect(), most)
    }

    fn top(&self, mut entries: Vec<Entry>, most: usize) -> Top {
        let weight = |e: &Entry| (e.rate_bps.iter().sum::<u64>(), e.bytes.iter().sum::<u64>());
        entries.sort_by(|a, b| weight(b).cmp(&weight(a)).then_with(|| a.name.cmp(&b.name)));
        let known = entries.len();
        entries.truncate(most);
        Top { entries, known, others_bytes: self.others }
    }

    fn entry(&self, talker: &Talker) -> Entry {
        let second = self.ticked[0].since(self.ticked[1]).as_nanos().max(1);
        let rate = |way: usize| {
            let bits = u128::from(talker.ticks[0][way] - talker.ticks[1][way]) * 8;
            (bits * 1_000_000_000 / u128::from(second)) as u64
        };
        let has_ports = matches!(talker.key.protocol(), 6 | 17);
        let [first, second] = [0, 1].map(|end| {
            let end = talker.key.end(end);
            if has_ports { end.to_string() } else { end.ip().to_string() }
        });
        let (left, right) = if talker.first_is_left { (first, second) } else { (second, first) };
        Entry {
            name: format!("{left} > {right}"),
            kind: protocol(&talker.key),
            rate_bps: [rate(0), rate(1)],
            bytes: talker.bytes,
            packets: talker.packets,
        }
    }
}

fn protocol(key: &FlowKey) -> String {
    match key.protocol() {
        6 => "tcp".into(),
        17 => "udp".into(),
        1 | 58 => "icmp".into(),
        other => format!("protocol {other}"),
    }
}

/// Returns the name of a node: an IPv4 address or the first 64 bits of an IPv6 address.
fn node_name(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("{}/64", Ipv6Addr::from_bits(v6.to_bits() & !0 << 64)),
    }
}
