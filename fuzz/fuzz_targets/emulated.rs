//! Bytes as what passes the emulator: any two disciplines of the registry, packets that are made or taken as they come,
//! changes of the link, and time. No panic; every packet is delivered once, dropped or still there; only windows, marks and
//! their checksums change; no window rises or becomes zero; the counters of PINK and of the table add up.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_conntrack::Config as Flows;
use penstock_core::link_layer::{Framing, LinkLayer};
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::registry::{AnyConfig, NAMES};
use penstock_core::rng::Streams;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use penstock_core::wire::RealPacket;
use penstock_shaper::bottleneck::{Config, Delivery};
use penstock_shaper::classify::Classifier;
use penstock_shaper::direction::Direction;
use penstock_shaper::keys::Keys;
use penstock_shaper::nodes::Side;
use penstock_shaper::path::Path;
use penstock_shaper::pool::Pool;

const MTU: usize = 1500;
const MOST_STEPS: usize = 400;

/// Gives out the bytes of an input one by one; zeros after its end.
struct Input<'a>(std::slice::Iter<'a, u8>);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn direction(&mut self) -> Direction {
        Direction::BOTH[usize::from(self.byte() % 2)]
    }

    fn rate(&mut self) -> Rate {
        Rate::from_bps(1000 << (self.byte() % 24))
    }

    fn limit(&mut self) -> Limit {
        match self.byte() {
            few @ 0..128 => Limit::Packets(u64::from(few) + 1),
            more => Limit::Bytes(Bytes::new(u64::from(more) * 1500)),
        }
    }

    fn config(&mut self) -> Config {
        let name = NAMES[usize::from(self.byte()) % NAMES.len()];
        let aqm = AnyConfig::default_of(name).expect("it is in the registry");
        let framing = [Framing::None, Framing::Atm, Framing::Ptm][usize::from(self.byte() % 3)];
        let layer = LinkLayer { overhead: i32::from(self.byte()) - 64, mpu: self.byte().into(), framing };
        Config { aqm, rate: self.rate(), layer, delay: Span::from_millis(u64::from(self.byte())), limit: self.limit() }
    }

    /// A segment of one of eight connections, between an end with two hosts and one with one, with this number in its
    /// IPv4 identification.
    fn segment(&mut self, direction: Direction, number: u16) -> Vec<u8> {
        let (which, flags, options) = (self.byte() % 8, self.byte(), self.byte());
        let (near, far) = ([10, 0, 0, 1 + which % 2], [192, 168, 0, 9]);
        let ports = [1000 + u16::from(which), 443];
        let (seq, ack, window) = (u32::from(self.word()), u32::from(self.word()), self.word());
        let payload = usize::from(self.byte()) * 6 % 1400;
        let options: &[u8] = match options % 4 {
            0 => &[],
            1 => &[2, 4, 5, 180, 1, 3, 3, 7],
            2 => &[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 3],
            _ => &[1, 1, 1, 253],
        };
        let header = 20 + options.len();
        let mut bytes = vec![0; 20 + header + payload];
        let total = bytes.len() as u16;
        bytes[..2].copy_from_slice(&[0x45, which % 4]);
        bytes[2..4].copy_from_slice(&total.to_be_bytes());
        bytes[4..6].copy_from_slice(&number.to_be_bytes());
        bytes[8..10].copy_from_slice(&[64, 6]);
        let forward = direction == Direction::Forward;
        let (source, to) = if forward { (near, far) } else { (far, near) };
        bytes[12..16].copy_from_slice(&source);
        bytes[16..20].copy_from_slice(&to);
        let ports = if forward { ports } else { [ports[1], ports[0]] };
        bytes[20..22].copy_from_slice(&ports[0].to_be_bytes());
        bytes[22..24].copy_from_slice(&ports[1].to_be_bytes());
        bytes[24..28].copy_from_slice(&seq.to_be_bytes());
        bytes[28..32].copy_from_slice(&ack.to_be_bytes());
        bytes[32] = (header as u8 / 4) << 4;
        bytes[33] = flags;
        bytes[34..36].copy_from_slice(&window.to_be_bytes());
        bytes[40..20 + header].copy_from_slice(options);
        bytes
    }
}

/// Counts the packets that were dropped.
#[derive(Default)]
struct Fates {
    dropped: u64,
}

impl PacketObserver<RealPacket> for Fates {
    fn dropped(&mut self, _: RealPacket, _: DropReason, _: Instant) {
        self.dropped += 1;
    }

    fn marked(&mut self, _: &RealPacket, _: Instant) {}
}

struct World {
    path: Path<RealPacket>,
    classifier: Classifier,
    pool: Pool,
    fates: Fates,
    now: Instant,
    /// The made segments by their numbers, as they arrived.
    made: Vec<Vec<u8>>,
    arrived: u64,
    delivered: u64,
}

impl World {
    fn arrive(&mut self, direction: Direction, bytes: &[u8]) {
        let mut buffer = self.pool.take();
        let len = bytes.len().min(buffer.len());
        buffer[..len].copy_from_slice(&bytes[..len]);
        let (packet, news) = self.classifier.packet(direction, buffer, len, self.now, &mut self.pool);
        self.path.tell(&news, self.now);
        self.path.arrive(direction, packet, self.now, &mut self.fates);
        self.arrived += 1;
    }

    fn poll(&mut self) {
        while let Some((_, Delivery { packet, .. })) = self.path.poll(self.now, &mut self.fates) {
            self.delivered += 1;
            let bytes = packet.into_bytes();
            if bytes.len() >= 40 && bytes[0] == 0x45 && bytes[9] == 6 {
                let number = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
                if let Some(before) = self.made.get(number).filter(|made| made.len() == bytes.len()) {
                    compare(before, &bytes);
                }
            }
        }
    }
}

/// Of a made segment only the mark, the window and the checksums of both may differ; the window is not larger, nor zero.
fn compare(before: &[u8], after: &[u8]) {
    let may = [1, 10, 11, 34, 35, 36, 37];
    let other = (0..before.len()).find(|at| before[*at] != after[*at] && !may.contains(at));
    assert_eq!(other, None, "a byte that nobody may change");
    let window = |bytes: &[u8]| u16::from_be_bytes([bytes[34], bytes[35]]);
    assert!(window(after) <= window(before), "a window was raised");
    assert!(window(before) == 0 || window(after) > 0, "a window was closed");
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data.iter());
    let (forward, reverse) = (input.config(), input.config());
    let side = [Side::Left, Side::Right, Side::None][usize::from(input.byte() % 3)];
    let flows = Flows { entries: 64, half_open: 32, shown: 8, hosts: 64, others: 64, quota: 16, ..Flows::default() };
    let mut world = World {
        path: Path::new(&forward, &reverse, Streams::new(1)),
        classifier: Classifier::new(flows, Keys::from_seed(1), side),
        pool: Pool::new(MTU),
        fates: Fates::default(),
        now: Instant::ZERO,
        made: Vec::new(),
        arrived: 0,
        delivered: 0,
    };
    for _ in 0..MOST_STEPS {
        if input.0.len() == 0 {
            break;
        }
        match input.byte() % 16 {
            0..8 => {
                let direction = input.direction();
                let segment = input.segment(direction, world.made.len() as u16);
                world.arrive(direction, &segment);
                world.made.push(segment);
            }
            8 | 9 => {
                let (direction, len) = (input.direction(), usize::from(input.byte()));
                let bytes = input.0.as_slice();
                let (raw, rest) = bytes.split_at(len.min(bytes.len()));
                let mut raw = raw.to_vec();
                if let Some(number) = raw.get_mut(4..6) {
                    number.fill(0xff); // beyond those of made segments: it is compared with none
                }
                world.arrive(direction, &raw);
                input.0 = rest.iter();
            }
            10 => {
                let (direction, rate) = (input.direction(), input.rate());
                world.path.direction_mut(direction).set_rate(rate, world.now);
            }
            11 => {
                let (direction, delay) = (input.direction(), Span::from_millis(u64::from(input.byte())));
                world.path.direction_mut(direction).line.delay = delay;
            }
            12 => {
                let (direction, config) = (input.direction(), input.config());
                let _ = world.path.direction_mut(direction).replace(&config.aqm, config.limit, world.now);
            }
            _ => {
                world.now += Span::from_nanos(1 << (input.byte() % 36)); // up to 34 s
                world.poll();
            }
        }
        world.poll();
    }
    let mut waiting = 0;
    for direction in Direction::BOTH {
        let bottleneck = world.path.direction(direction);
        bottleneck.check().expect("its counters add up");
        let on_the_wire =
            bottleneck.server.stats().sent.packets - bottleneck.line.delivered.packets - bottleneck.lost();
        waiting += bottleneck.server.backlog().packets + on_the_wire;
    }
    assert_eq!(world.arrived, world.delivered + world.fates.dropped + waiting, "no packet is lost or doubled");
});
