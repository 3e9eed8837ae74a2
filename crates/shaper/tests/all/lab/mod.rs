//! Hosts on both sides of an emulated path, in virtual time and with the bytes of real packets: bulk flows with a small TCP,
//! connections that say little, and floods.
//!
//! The TCP sends as many whole segments as the advertised window and slow start let it, and acknowledges each. It does not
//! retransmit: the runs here lose nothing of it, which is checked.

use penstock_conntrack::Gauges;
use penstock_core::link_layer::LinkLayer;
use penstock_core::rng::Streams;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Instant, Limit, Rate, Span};
use penstock_core::wire::RealPacket;
use penstock_shaper::bottleneck::{Config, Delivery};
use penstock_shaper::classify::Classifier;
use penstock_shaper::direction::Direction::{self, Forward, Reverse};
use penstock_shaper::keys::Keys;
use penstock_shaper::nodes::Side;
use penstock_shaper::path::Path;
use penstock_shaper::pool::Pool;
use std::cmp::Reverse as Earliest;
use std::collections::{BinaryHeap, HashMap};

/// Payload of a full segment.
const MSS: u32 = 1448;
const SCALE: u8 = 7;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// A protocol that nobody tracks (RFC 3692).
const OTHER: u8 = 253;
const FIN: u8 = 1;
const SYN: u8 = 2;
pub const ACK: u8 = 16;

pub fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// The addresses and ports of a connection, its client first.
type Ends = [(u32, u16); 2];

/// A packet to be sent: headers only, as its data are zeros.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub direction: Direction,
    pub ends: Ends,
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub len: u32,
    /// The protocol in the IP header: [`TCP`], or [`OTHER`] so that nobody tracks the packet.
    pub protocol: u8,
    /// Its timestamp, and the one that it echoes.
    pub stamps: Option<[u32; 2]>,
}

impl Sent {
    /// Writes the packet into a buffer and returns its length.
    fn write(&self, buffer: &mut [u8]) -> usize {
        let greets = if self.flags & SYN != 0 { 8 } else { 0 };
        let options = greets + if self.stamps.is_some() { 12 } else { 0 };
        let length = 40 + options + self.len as usize;
        buffer[..40 + options].fill(0);
        (buffer[0], buffer[8], buffer[9]) = (0x45, 64, self.protocol);
        buffer[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        for (i, (address, port)) in self.ends.iter().enumerate() {
            buffer[12 + 4 * i..16 + 4 * i].copy_from_slice(&address.to_be_bytes());
            buffer[20 + 2 * i..22 + 2 * i].copy_from_slice(&port.to_be_bytes());
        }
        buffer[24..28].copy_from_slice(&self.seq.to_be_bytes());
        buffer[28..32].copy_from_slice(&self.ack.to_be_bytes());
        (buffer[32], buffer[33]) = (((20 + options) * 4) as u8, self.flags);
        buffer[34..36].copy_from_slice(&60_000u16.to_be_bytes());
        if greets > 0 {
            buffer[40..48].copy_from_slice(&[2, 4, (MSS >> 8) as u8, MSS as u8, 1, 3, 3, SCALE]);
        }
        if let Some([val, echo]) = self.stamps {
            let at = 40 + greets;
            buffer[at..at + 4].copy_from_slice(&[1, 1, 8, 10]);
            buffer[at + 4..at + 8].copy_from_slice(&val.to_be_bytes());
            buffer[at + 8..at + 12].copy_from_slice(&echo.to_be_bytes());
        }
        length
    }
}

/// What a bulk flow got while it was measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measures {
    pub bytes: f64,
    rtts: (f64, u32),
    windows: (f64, u32),
}

impl Measures {
    /// Mean round trip time of data, in seconds.
    pub fn rtt(&self) -> f64 {
        self.rtts.0 / f64::from(self.rtts.1)
    }

    /// Mean window of the ACKs, in bytes.
    pub fn window(&self) -> f64 {
        self.windows.0 / f64::from(self.windows.1)
    }

    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.rtts = (self.rtts.0 + other.rtts.0, self.rtts.1 + other.rtts.1);
        self.windows = (self.windows.0 + other.windows.0, self.windows.1 + other.windows.1);
    }

    /// The largest part by which a measure differs from that of another run.
    pub fn differs(&self, from: &Self) -> f64 {
        let part = |a: f64, b: f64| (a / b - 1.0).abs();
        let parts = [part(self.bytes, from.bytes), part(self.rtt(), from.rtt()), part(self.window(), from.window())];
        parts.into_iter().fold(0.0, f64::max)
    }
}

/// A client on the left that sends to a server on the right as much as it may.
#[derive(Debug)]
struct Bulk {
    ends: Ends,
    measured: [Instant; 2],
    sent: u32,
    acked: u32,
    window: u32,
    congestion_window: u32,
    received: u32,
    /// The newest timestamps of client and server that the other one has seen.
    heard: [u32; 2],
    timed: Option<(u32, Instant)>,
    measures: Measures,
}

enum Event {
    Start(usize),
    Send(Sent),
    Flood(usize),
}

/// Packets at a constant interval: the `n`th of them.
pub struct Flood {
    pub from: Instant,
    pub until: Instant,
    pub every: Span,
    /// If false, the same bytes are sent as packets that nobody tracks.
    pub tracked: bool,
    /// The packets, each with the time after which it is sent.
    pub packets: Box<dyn Fn(u32) -> Vec<(Span, Sent)>>,
    pub sent: u32,
}

/// A path with its hosts.
pub struct Lab {
    pub path: Path<RealPacket>,
    pub classifier: Classifier,
    pool: Pool,
    now: Instant,
    events: BinaryHeap<Earliest<(Instant, u64, usize)>>,
    pending: Vec<Option<Event>>,
    free: Vec<usize>,
    number: u64,
    bulk: Vec<Bulk>,
    by_port: HashMap<(u32, u16), usize>,
    floods: Vec<Flood>,
}

/// One way of the path.
pub fn way(aqm: &str, settings: &[&str], rate: &str, delay_ms: u64) -> Config {
    let settings: Vec<_> = settings.iter().map(|text| (*text).to_owned()).collect();
    let (aqm, rate): (_, Rate) = (config_from_settings(aqm, &settings).unwrap(), rate.parse().unwrap());
    Config { aqm, rate, layer: LinkLayer::default(), delay: Span::from_millis(delay_ms), limit: Limit::Packets(2000) }
}

impl Lab {
    pub fn new(there: &Config, back: &Config, flows: penstock_conntrack::Config) -> Self {
        Self {
            path: Path::new(there, back, Streams::new(1)),
            classifier: Classifier::new(flows, Keys::from_seed(1), Side::Left),
            pool: Pool::new(1500),
            now: Instant::ZERO,
            events: BinaryHeap::new(),
            pending: Vec::new(),
            free: Vec::new(),
            number: 0,
            bulk: Vec::new(),
            by_port: HashMap::new(),
            floods: Vec::new(),
        }
    }

    fn push(&mut self, when: Instant, event: Event) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        self.pending[place] = Some(event);
        self.number += 1;
        self.events.push(Earliest((when, self.number, place)));
    }

    /// Adds a bulk flow, which is measured between two times.
    pub fn bulk(&mut self, start: Instant, measured: [Instant; 2]) {
        let index = self.bulk.len();
        let client = (0x0a00_0001, 20_000 + index as u16);
        let ends = [client, (0xc000_0209, 443)];
        let idle = Bulk {
            ends,
            measured,
            sent: 1000,
            acked: 1000,
            window: 0,
            congestion_window: 10 * MSS,
            received: 0,
            heard: [0; 2],
            timed: None,
            measures: Measures::default(),
        };
        self.bulk.push(idle);
        self.by_port.insert(client, index);
        self.push(start, Event::Start(index));
    }

    pub fn flood(&mut self, flood: Flood) {
        self.push(flood.from, Event::Flood(self.floods.len()));
        self.floods.push(flood);
    }

    /// Sums of what bulk flows got, of those in the range.
    pub fn measures(&self, flows: std::ops::Range<usize>) -> Measures {
        let mut sum = Measures::default();
        self.bulk[flows].iter().for_each(|bulk| sum.add(&bulk.measures));
        sum
    }

    pub fn gauges(&self) -> Gauges {
        self.classifier.table.gauges()
    }

    pub fn drops(&self) -> u64 {
        Direction::BOTH.iter().map(|d| self.path.direction(*d).server.stats().dropped_overflow.packets).sum()
    }

    pub fn run_until(&mut self, end: Instant) {
        while let Some(now) = self.next().filter(|now| *now <= end) {
            self.now = now;
            // All that is due is taken before anything arrives.
            let due: Vec<_> = std::iter::from_fn(|| self.path.poll(now, &mut self.pool)).collect();
            for (direction, Delivery { packet, .. }) in due {
                self.deliver(direction, packet);
            }
            while let Some(Earliest((when, _, place))) = self.events.peek().copied()
                && when <= now
            {
                self.events.pop();
                self.free.push(place);
                match self.pending[place].take() {
                    Some(Event::Send(packet)) => self.arrive(&packet),
                    Some(Event::Start(flow)) => self.start(flow),
                    Some(Event::Flood(flood)) => self.pour(flood),
                    None => {}
                }
            }
        }
    }

    fn next(&self) -> Option<Instant> {
        let event = self.events.peek().map(|Earliest((when, _, _))| *when);
        [event, self.path.next_event()].into_iter().flatten().min()
    }

    fn arrive(&mut self, packet: &Sent) {
        let mut buffer = self.pool.take();
        let len = packet.write(&mut buffer);
        let direction = packet.direction;
        let (packet, news) = self.classifier.packet(direction, buffer, len, self.now, &mut self.pool);
        self.path.tell(&news, self.now);
        self.path.arrive(direction, packet, self.now, &mut self.pool);
    }

    fn pour(&mut self, at: usize) {
        let flood = &mut self.floods[at];
        let (packets, next) = ((flood.packets)(flood.sent), self.now + flood.every);
        flood.sent += 1;
        let (tracked, more) = (flood.tracked, next < flood.until);
        for (after, packet) in packets {
            let protocol = if tracked { packet.protocol } else { OTHER };
            self.push(self.now + after, Event::Send(Sent { protocol, ..packet }));
        }
        if more {
            self.push(next, Event::Flood(at));
        }
    }

    fn start(&mut self, flow: usize) {
        self.send(flow, Forward, SYN, [999, 0], 0);
    }

    /// Sends a segment of a bulk flow with these numbers, with a timestamp as hosts of today have them.
    fn send(&mut self, flow: usize, direction: Direction, flags: u8, [seq, ack]: [u32; 2], len: u32) {
        let Bulk { ends: [client, server], heard, .. } = self.bulk[flow];
        let (ends, echo) =
            if direction == Forward { ([client, server], heard[1]) } else { ([server, client], heard[0]) };
        let stamps = Some([1000 + (self.now.as_nanos() / 1_000_000) as u32, echo]);
        self.arrive(&Sent { direction, ends, flags, seq, ack, len, protocol: TCP, stamps });
    }

    /// Lets the host at the end of the path take a packet.
    fn deliver(&mut self, direction: Direction, packet: RealPacket) {
        let bytes = packet.bytes();
        let word = |at: usize| u32::from_be_bytes(*bytes[at..].first_chunk().unwrap());
        let port = |at: usize| u16::from_be_bytes(*bytes[at..].first_chunk().unwrap());
        let client = if direction == Forward { (word(12), port(20)) } else { (word(16), port(22)) };
        let (flags, seq, ack, window) = (bytes[33], word(24), word(28), u32::from(port(34)));
        let len = u32::from(port(2)) - 20 - u32::from(bytes[32] >> 4) * 4;
        let (protocol, val) = (bytes[9], word(if flags & SYN != 0 { 52 } else { 44 }.min(bytes.len() - 4)));
        self.pool.give(packet.into_bytes());
        let Some(flow) = self.by_port.get(&client).copied().filter(|_| protocol == TCP) else { return };
        self.bulk[flow].heard[direction.index()] = val;
        match direction {
            Forward => self.serve(flow, flags, seq, len),
            Reverse => self.acknowledge(flow, flags, ack, window),
        }
    }

    fn serve(&mut self, flow: usize, flags: u8, seq: u32, len: u32) {
        let bulk = &mut self.bulk[flow];
        if flags & SYN != 0 {
            bulk.received = seq + 1;
            return self.send(flow, Reverse, SYN | ACK, [4999, seq + 1], 0);
        }
        if len > 0 {
            assert_eq!(seq, bulk.received, "flow {flow} lost a segment");
            bulk.received = seq.wrapping_add(len);
            let ack = bulk.received;
            self.send(flow, Reverse, ACK, [5000, ack], 0);
        }
    }

    fn acknowledge(&mut self, flow: usize, flags: u8, ack: u32, window: u32) {
        let now = self.now;
        let bulk = &mut self.bulk[flow];
        let measured = now >= bulk.measured[0] && now < bulk.measured[1];
        let newly = ack.wrapping_sub(bulk.acked);
        bulk.acked = ack;
        if flags & SYN != 0 {
            bulk.window = window;
            self.send(flow, Forward, ACK, [1000, 5000], 0);
        } else {
            bulk.window = window << SCALE;
            bulk.congestion_window = bulk.congestion_window.saturating_add(newly).min(1 << 24);
            if measured {
                bulk.measures.bytes += f64::from(newly);
                bulk.measures.windows = (bulk.measures.windows.0 + f64::from(bulk.window), bulk.measures.windows.1 + 1);
            }
            if let Some((end, sent)) = bulk.timed
                && ack.wrapping_sub(end) < 1 << 31
            {
                bulk.timed = None;
                if measured {
                    let rtts = &mut bulk.measures.rtts;
                    *rtts = (rtts.0 + now.since(sent).as_secs_f64(), rtts.1 + 1);
                }
            }
        }
        self.fill(flow);
    }

    /// Sends as much as the windows let.
    fn fill(&mut self, flow: usize) {
        loop {
            let now = self.now;
            let bulk = &mut self.bulk[flow];
            let in_flight = bulk.sent.wrapping_sub(bulk.acked);
            if in_flight + MSS > bulk.window.min(bulk.congestion_window) {
                return;
            }
            let seq = bulk.sent;
            bulk.sent = bulk.sent.wrapping_add(MSS);
            bulk.timed.get_or_insert((bulk.sent, now));
            self.send(flow, Forward, ACK, [seq, 5000], MSS);
        }
    }
}

/// A forged SYN from a host on the left to a server on the right or the other way round, the `n`th. With `answered` its
/// target answers 25 ms later.
pub fn forged_syn(direction: Direction, n: u32, answered: bool) -> Vec<(Span, Sent)> {
    let near = (0x0b00_0000 | (n.wrapping_mul(0x9e37_79b9) >> 8), 1024 + (n % 60_000) as u16);
    let far = (0xc000_0209, 80);
    let ends = if direction == Forward { [near, far] } else { [far, near] };
    let seq = n.wrapping_mul(0x85eb_ca6b);
    let syn = Sent { direction, ends, flags: SYN, seq, ack: 0, len: 0, protocol: TCP, stamps: None };
    let back = Sent {
        direction: direction.opposite(),
        ends: [ends[1], ends[0]],
        flags: SYN | ACK,
        seq: !seq,
        ack: seq.wrapping_add(1),
        len: 0,
        protocol: TCP,
        stamps: None,
    };
    let mut packets = vec![(Span::ZERO, syn)];
    packets.extend(answered.then_some((Span::from_millis(25), back)));
    packets
}

/// A short connection from one of 50 hosts, the `n`th: a request of `asked` bytes, and an answer of 300 that runs towards the
/// side that is not congested. Every second one is closed, the others are never heard of again.
pub fn short_connection(n: u32, asked: u32) -> Vec<(Span, Sent)> {
    let (client, server) = ((0x0a00_0100 + n % 50, 1024 + (n / 50 % 60_000) as u16), (0xc000_0209, 80));
    let (there, back, isn) = ([client, server], [server, client], n.wrapping_mul(0x85eb_ca6b));
    let next = isn.wrapping_add(1);
    let after = next.wrapping_add(asked);
    let sent = |step: u64, direction: Direction, flags: u8, seq: u32, ack: u32, len: u32| {
        let ends = if direction == Forward { there } else { back };
        (Span::from_millis(30 * step), Sent { direction, ends, flags, seq, ack, len, protocol: TCP, stamps: None })
    };
    let mut packets = vec![
        sent(0, Forward, SYN, isn, 0, 0),
        sent(1, Reverse, SYN | ACK, 6999, next, 0),
        sent(2, Forward, ACK, next, 7000, asked),
        sent(3, Reverse, ACK, 7000, after, 300),
        sent(4, Forward, ACK, after, 7300, 0),
    ];
    if n.is_multiple_of(2) {
        packets.extend([
            sent(5, Reverse, FIN | ACK, 7300, after, 0),
            sent(6, Forward, FIN | ACK, after, 7301, 0),
            sent(7, Reverse, ACK, 7301, after.wrapping_add(1), 0),
        ]);
    }
    packets
}

/// A datagram of 48 bytes from a host on the left to a port of a server.
pub fn datagram(port: u16) -> Vec<(Span, Sent)> {
    let ends = [(0x0a00_0007, 5353), (0xc000_0209, port)];
    vec![(
        Span::ZERO,
        Sent { direction: Forward, ends, flags: 0, seq: 28 << 16, ack: 0, len: 8, protocol: UDP, stamps: None },
    )]
}
