//! Bytes as what the table of connections sees: segments of a few connections with numbers that fit or nearly fit, forged
//! ones from the wrong side, any bytes as a packet, and time. No panic; an index belongs to one connection at a time; every
//! entry belongs to a subscriber within its quota; what was counted in and out is what is there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_core::packet::{FlowId, NodeId, TcpFlags};
use penstock_core::units::{Instant, Span};
use penstock_core::wire::{End, FlowKey, Headers, HostKey};
use penstock_conntrack::{Arrived, Config, FlowTable, Named, Seen, Segment, SipHash, State};
use std::collections::{BTreeMap, BTreeSet};

const CLIENTS: u8 = 4;
const PORTS: u8 = 8;
const SHOWN: u32 = 4;
const FLAGS: [u8; 12] = [0x02, 0x12, 0x10, 0x10, 0x18, 0x11, 0x04, 0x14, 0x00, 0x01, 0x06, 0x13];

/// A connection of 10.0.0.`client` with a port to 10.9.9.9:80, as its packets are numbered; `forged` if they come from the
/// other side of the gateway, so that they are of another connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Name {
    client: u8,
    port: u8,
    forged: bool,
}

impl Name {
    fn packet(self, from_client: bool, segment: Segment) -> Arrived {
        let mut bytes = [0; 40];
        (bytes[0], bytes[3], bytes[9], bytes[32]) = (0x45, 40, 6, 0x50);
        let ends = [([10, 0, 0, self.client], [0, self.port]), ([10, 9, 9, 9], [0, 80])];
        let (source, target) = if from_client { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
        bytes[12..16].copy_from_slice(&source.0);
        bytes[16..20].copy_from_slice(&target.0);
        bytes[20..22].copy_from_slice(&source.1);
        bytes[22..24].copy_from_slice(&target.1);
        let (key, from_low) = FlowKey::with_side(&bytes, &Headers::parse(&bytes)).expect("it is an IP packet");
        let outward = from_client != self.forged;
        let host = if outward == from_client { ends[0].0 } else { ends[1].0 };
        Arrived { key: Some(key), from_low, outward, segment: Some(segment), host: HostKey::at(host.into()), hardware: None }
    }
}

struct World {
    table: FlowTable,
    config: Config,
    now: Instant,
    /// The next sequence number of both ends of each connection.
    next: BTreeMap<Name, [u32; 2]>,
    /// The connection to which each shown index belonged last: its key, and on which side its ends are.
    owners: BTreeMap<FlowId, (FlowKey, bool)>,
    any_bytes: bool,
}

impl World {
    fn new(first: u8) -> Self {
        let named = Named { name: "two".into(), prefixes: vec!["10.0.0.0/31".parse().expect("it is a prefix")] };
        let config = Config {
            entries: 8 << (first & 1),
            half_open: 16,
            shown: SHOWN,
            hosts: 16,
            others: 8,
            quota: 1 + u32::from(first >> 1) % 8,
            idle: Span::from_secs(60),
            opening: Span::from_secs(10),
            subscribers: if first & 0x80 == 0 { Vec::new() } else { vec![named] },
        };
        let table = FlowTable::new(config.clone(), SipHash(5, 6), SipHash(7, 8));
        let (next, owners) = (BTreeMap::new(), BTreeMap::new());
        Self { table, config, now: Instant::ZERO, next, owners, any_bytes: false }
    }

    /// A segment whose numbers differ by `seq` and `ack` from those that come next.
    fn segment(&mut self, who: u8, what: u8, seq: i8, ack: i8) {
        let name = Name { client: who % CLIENTS, port: who / CLIENTS % PORTS, forged: who & 0x40 != 0 };
        let (from_client, flags) = (who & 0x20 == 0, TcpFlags(FLAGS[usize::from(what) % FLAGS.len()]));
        let role = usize::from(!from_client);
        let next = self.next.entry(name).or_insert([1000, u32::MAX - 3]);
        // A number far away for the last of its byte's values.
        let moved = |from: u32, by: i8| from.wrapping_add_signed(if by == i8::MIN { i32::MIN + 5 } else { by.into() });
        let len = if what & 0x80 == 0 { 0 } else { u32::from(what >> 4) };
        let segment = Segment {
            flags,
            seq: moved(next[role], seq),
            ack: moved(next[1 - role], ack),
            len,
            window: u16::from(what) << (what % 8),
            window_scale: (what & 0x40 == 0).then_some(what % 16),
            mss: Some(1000),
            signed: false,
        };
        if seq == 0 {
            let extra = u32::from(flags.has(TcpFlags::SYN)) + u32::from(flags.has(TcpFlags::FIN));
            next[role] = segment.seq.wrapping_add(len).wrapping_add(extra);
        }
        self.arrive(&name.packet(from_client, segment));
    }

    fn bytes(&mut self, outward: bool, bytes: &[u8]) {
        self.any_bytes = true;
        let end = if outward { End::Source } else { End::Destination };
        self.arrive(&Arrived::read(bytes, &Headers::parse(bytes), end));
    }

    fn arrive(&mut self, packet: &Arrived) {
        let seen = self.table.see(packet, self.now);
        if let Some(key) = packet.key.filter(|_| seen.shown) {
            let connection = (key, packet.from_low == packet.outward);
            let before = self.owners.insert(seen.flow, connection);
            assert!(seen.fresh || before.is_none_or(|before| before == connection), "{seen:?} was of {before:?}");
        }
        self.holds(seen);
    }

    fn holds(&mut self, seen: Seen) {
        assert!(seen.flow.0 < self.table.indices());
        assert_eq!(self.table.has_index(&seen), seen.flow.0 < self.config.entries + SHOWN);
        assert!(!seen.shown || self.table.has_index(&seen), "{seen:?}");
        assert_eq!(seen.owner.is_some(), seen.state == State::Entry);
        assert!(seen.opening.is_none_or(|opening| seen.state == State::Entry && opening.flow == seen.flow));
        let gauges = self.table.gauges();
        let left = gauges.evicted_full + gauges.evicted_quota + gauges.replaced + gauges.expired;
        let closed = gauges.closed_fin + gauges.closed_rst;
        assert!(gauges.entries <= self.config.entries && gauges.half_open <= 16 && gauges.refused == 0);
        assert!(left + u64::from(gauges.entries) <= gauges.promoted, "{gauges:?}");
        assert!(gauges.promoted <= left + closed + u64::from(gauges.entries), "{gauges:?}");
    }

    /// All entries are of their subscribers, none of which has more than its quota.
    fn owned(&mut self) {
        let hosts = (0..CLIENTS).map(|client| [10, 0, 0, client]).chain([[10, 9, 9, 9]]);
        let nodes: BTreeSet<NodeId> = hosts
            .map(|host| self.table.subscribers.number(HostKey::at(host.into()).expect("it is a host"), self.now).0)
            .collect();
        let held: Vec<u32> = nodes.iter().map(|node| self.table.subscribers.entries_of(*node)).collect();
        assert!(held.iter().all(|held| *held <= self.config.quota), "{held:?}");
        let entries = self.table.gauges().entries;
        assert!(held.iter().sum::<u32>() == entries || self.any_bytes, "{held:?} of {entries}");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((first, mut rest)) = data.split_first() else { return };
    let mut world = World::new(*first);
    while let Some(([who, what, a, b], others)) = rest.split_first_chunk::<4>() {
        rest = others;
        match who >> 7 {
            0 => world.segment(*who, *what, *a as i8, *b as i8),
            _ if who & 0x40 == 0 => world.now += Span::from_nanos(1 << (what % 38)), // up to 137 s
            _ => {
                let (bytes, others) = rest.split_at(usize::from(*what).min(rest.len()));
                world.bytes(who & 1 == 0, bytes);
                rest = others;
            }
        }
    }
    world.owned();
});
