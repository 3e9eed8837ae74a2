//! What a packet costs in the table, beside the table that it replaced (a hash map and a list in order of use): nanoseconds
//! per packet, the median of chunks that alternate between both.
//!
//! `cargo run --release -p penstock-conntrack --example lookup_cost`

use penstock_conntrack::{Arrived, Config, FlowTable, Segment, SipHash};
use penstock_core::packet::TcpFlags;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::{End, FlowKey, Headers, HostKey};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::hint::black_box;

const PACKETS: usize = 1_000_000;
/// Packets that are timed at once: so few that most chunks run without an interruption.
const CHUNK: usize = 500;

/// The table before: 38 bytes of key, a hash map of the standard library, and a list.
struct Before {
    hash: SipHash,
    index: HashMap<Hashed, u32, BuildHasherDefault<Given>>,
    keys: Vec<Hashed>,
    nodes: Vec<(u32, u32, Instant)>,
    oldest: u32,
    newest: u32,
}

#[derive(Clone, PartialEq, Eq)]
struct Hashed(u64, FlowKey);

impl Hash for Hashed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

#[derive(Default)]
struct Given(u64);

impl Hasher for Given {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

const NONE: u32 = u32::MAX;

impl Before {
    fn new() -> Self {
        let index = HashMap::with_capacity_and_hasher(1 << 16, BuildHasherDefault::default());
        Self { hash: SipHash(1, 2), index, keys: Vec::new(), nodes: Vec::new(), oldest: NONE, newest: NONE }
    }

    fn see(&mut self, key: FlowKey, now: Instant) -> u32 {
        if self.oldest != NONE {
            black_box(now.since(self.nodes[self.oldest as usize].2) > Span::from_secs(3600));
        }
        let key = Hashed(self.hash.of(key.as_bytes()), key);
        let id = match self.index.get(&key).copied() {
            Some(id) => {
                self.remove(id);
                id
            }
            None => {
                let id = self.keys.len() as u32;
                self.keys.push(key.clone());
                self.nodes.push((NONE, NONE, now));
                self.index.insert(key, id);
                id
            }
        };
        self.push(id, now);
        id
    }

    fn remove(&mut self, id: u32) {
        let (older, newer, _) = self.nodes[id as usize];
        if older == NONE {
            self.oldest = newer
        } else {
            self.nodes[older as usize].1 = newer
        }
        if newer == NONE { self.newest = older } else { self.nodes[newer as usize].0 = older }
    }

    fn push(&mut self, id: u32, now: Instant) {
        self.nodes[id as usize] = (self.newest, NONE, now);
        if self.newest == NONE {
            self.oldest = id
        } else {
            self.nodes[self.newest as usize].1 = id
        }
        self.newest = id;
    }
}

/// The bytes of a segment between 10.x.x.x and 192.0.2.9:443.
fn bytes(client: u32, from_client: bool, segment: &Segment) -> [u8; 40] {
    let mut bytes = [0; 40];
    (bytes[0], bytes[3], bytes[9], bytes[32], bytes[33]) = (0x45, 40, 6, 0x50, segment.flags.0);
    let near = [(0x0a00_0000 | client).to_be_bytes(), [192, 0, 2, 9]];
    let [source, to] = if from_client { near } else { [near[1], near[0]] };
    bytes[12..16].copy_from_slice(&source);
    bytes[16..20].copy_from_slice(&to);
    let ports = [5000u16, 443];
    let [source, to] = if from_client { ports } else { [ports[1], ports[0]] };
    bytes[20..22].copy_from_slice(&source.to_be_bytes());
    bytes[22..24].copy_from_slice(&to.to_be_bytes());
    bytes[24..28].copy_from_slice(&segment.seq.to_be_bytes());
    bytes[28..32].copy_from_slice(&segment.ack.to_be_bytes());
    bytes[34..36].copy_from_slice(&segment.window.to_be_bytes());
    bytes
}

fn segment(flags: u8, seq: u32, ack: u32) -> Segment {
    Segment { flags: TcpFlags(flags), seq, ack, window: 1000, ..Segment::default() }
}

fn arrived(client: u32, from_client: bool, segment: Segment) -> Arrived {
    let bytes = bytes(client, from_client, &segment);
    let (key, from_low) = FlowKey::with_side(&bytes, &Headers::parse(&bytes)).expect("an IP packet");
    let host = HostKey::at((0x0a00_0000 | client).to_be_bytes().into());
    Arrived { key: Some(key), from_low, outward: from_client, segment: Some(segment), host, hardware: None }
}

fn open(table: &mut FlowTable, client: u32) {
    let steps = [
        (true, segment(0x02, 999, 0)),
        (false, segment(0x12, 4999, 1000)),
        (true, Segment { len: 10, ..segment(0x10, 1000, 5000) }),
        (false, segment(0x10, 5000, 1010)),
    ];
    for (from_client, segment) in steps {
        table.see(&arrived(client, from_client, segment), Instant::ZERO);
    }
}

fn ns(count: usize, mut run: impl FnMut()) -> f64 {
    let begin = std::time::Instant::now();
    run();
    begin.elapsed().as_nanos() as f64 / count as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    println!("{:>10}  {:>12}  {:>12}  {:>12}", "flows", "before, ns", "now, ns", "parse, ns");
    for flows in [1u32, 10, 1000, 10_000, 30_000] {
        let (mut before, mut table) = (Before::new(), FlowTable::new(Config::default(), SipHash(1, 2), SipHash(3, 4)));
        (0..flows).for_each(|client| open(&mut table, client));
        // In an order without a pattern, as raw bytes: both parse and hash.
        let ack = segment(0x10, 1010, 5000);
        let order = |i: usize| (i as u32).wrapping_mul(0x9e37_79b9) % flows;
        let packets: Vec<_> = (0..PACKETS).map(|i| bytes(order(i), true, &ack)).collect();
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for (round, packets) in packets.chunks(CHUNK).enumerate() {
            let now = Instant::ZERO + Span::from_millis(round as u64);
            times[0].push(ns(CHUNK, || {
                for bytes in packets {
                    let key = FlowKey::of(bytes, &Headers::parse(bytes)).expect("an IP packet");
                    black_box(before.see(key, now));
                }
            }));
            times[1].push(ns(CHUNK, || {
                for bytes in packets {
                    black_box(table.see(&Arrived::read(bytes, &Headers::parse(bytes), End::Source), now));
                }
            }));
            times[2].push(ns(CHUNK, || {
                for bytes in packets {
                    black_box(Arrived::read(bytes, &Headers::parse(bytes), End::Source));
                }
            }));
        }
        assert_eq!(table.gauges().entries, flows.min(32_768), "all are entries");
        let [before, now, parse] = times.map(median);
        println!("{flows:>10}  {before:>12.1}  {now:>12.1}  {parse:>12.1}");
    }
    let mut table = FlowTable::new(Config::default(), SipHash(1, 2), SipHash(3, 4));
    let syns: Vec<_> = (0..400_000).map(|client| arrived(client, true, segment(0x02, 999, 0))).collect();
    let cost = syns.chunks(CHUNK).map(|syns| {
        ns(CHUNK, || {
            for syn in syns {
                black_box(table.see(syn, Instant::ZERO));
            }
        })
    });
    let cost = median(cost.collect());
    println!("a forged SYN, {} overwritten: {cost:.1} ns", table.gauges().overwritten);
}
