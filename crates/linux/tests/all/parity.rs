//! The program of the kernel and the PINK of the core see the same segments and write the same windows.
//!
//! Test runs of the program need BPF; where that is not permitted, or the program was not built, the test says so and is
//! skipped. `PENSTOCK_PARITY=100000 cargo test --release -p penstock-linux --test all parity -- --nocapture` is the long form.

use crate::traffic::{self, Frame, Traffic};
use penstock_core::ack::AckPath;
use penstock_core::ack::pink::{Config, Pink};
use penstock_core::aqm::{Aqm, Meta};
use penstock_core::packet::{FlowId, Packet, TcpFlags, TcpView};
use penstock_core::qdisc::Backlog;
use penstock_core::rng::{Rng, Streams};
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use penstock_core::wire::{FlowKey, Headers, RealPacket, Transport};
use penstock_linux::bpf::{Control, Datapath, MISSING, Way};
use penstock_linux::testing::bpf;
use std::collections::BTreeMap;

/// Segments of the short form.
const SHORT: u64 = 4000;
const RATES: [u64; 2] = [2_000_000, 40_000_000_000];
const SETS: u32 = 256;

/// What the table of the program knows of a connection, by its rules in `bpf/table.h`.
#[derive(Debug, Default)]
struct Line {
    number: u32,
    opener: bool,
    answer: Option<(u32, u32)>,
    proven: bool,
}

impl Line {
    /// Follows the handshake; returns whether the segment is shown to PINK.
    fn follow(&mut self, segment: &RealPacket, outward: bool) -> bool {
        let (flags, payload) = (TcpView::flags(segment), segment.payload_len());
        let rst = flags.has(TcpFlags::RST);
        if !self.proven && outward != self.opener && !rst {
            if flags.has(TcpFlags::SYN.with(TcpFlags::ACK)) {
                let answer = segment.seq().wrapping_add(1);
                self.answer = Some((answer, answer.wrapping_add(payload)));
            } else if let Some((_, end)) = &mut self.answer
                && segment.seq() == *end
            {
                *end = end.wrapping_add(payload);
            }
        } else if let Some((answer, end)) = self.answer {
            let exact = segment.ack().wrapping_sub(answer) <= end.wrapping_sub(answer);
            self.proven |= flags.has(TcpFlags::ACK) && !rst && exact;
        }
        self.proven || payload == 0 || flags.has(TcpFlags::SYN)
    }
}

/// The two instances of the core, with what stands before them.
struct Model {
    pinks: [Pink; 2],
    lines: BTreeMap<(FlowKey2, bool), Line>,
    backlogs: [u64; 2],
    signed: u64,
}

type FlowKey2 = [u8; 38];

impl Model {
    fn new(config: &Config, room: Limit) -> Self {
        Self {
            pinks: RATES.map(|bps| Pink::new(config, Rate::from_bps(bps)).before(room)),
            lines: BTreeMap::new(),
            backlogs: [0; 2],
            signed: 0,
        }
    }

    /// Returns whether the packet is shown, and the packet as it leaves.
    fn pass(&mut self, ip: &[u8], outward: bool, now: Instant) -> (bool, Vec<u8>) {
        let headers = Headers::parse(ip);
        let untouched = (false, ip.to_vec());
        let (Transport::Tcp { .. }, Some((key, low))) = (headers.transport, FlowKey::with_side(ip, &headers)) else {
            return untouched;
        };
        let identity = (*key.as_bytes(), low == outward);
        let mut packet = RealPacket::new(ip, FlowId(0));
        if packet.tcp().is_none() {
            self.signed += 1;
            return untouched;
        }
        let flags = TcpView::flags(&packet);
        let opens = flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK) && !flags.has(TcpFlags::RST);
        let number = self.lines.len() as u32;
        if opens {
            self.lines.entry(identity).or_insert(Line { number, opener: outward, ..Line::default() });
        }
        let Some(line) = self.lines.get_mut(&identity) else { return untouched };
        if !line.follow(&packet, outward) {
            return untouched;
        }
        packet = RealPacket::new(ip, FlowId(line.number));
        let [up, down] = &mut self.pinks;
        let (with, against) = if outward { (up, down) } else { (down, up) };
        let segment = packet.tcp().unwrap();
        with.outbound(segment, now);
        against.inbound(segment, now);
        (true, packet.bytes().to_vec())
    }

    /// A queue of `bytes` waits while packets leave.
    fn wait(&mut self, way: usize, bytes: u64, now: Instant, rng: &mut Rng) {
        let meta = Meta::of(&RealPacket::new(vec![0x45; 20], FlowId(0)));
        for _ in 0..40 {
            let backlog = Backlog { packets: bytes / 1500, bytes };
            self.pinks[way].on_dequeue(&meta, Span::ZERO, backlog, now, rng);
            self.backlogs[way] = self.backlogs[way] - self.backlogs[way] / 16 + bytes;
        }
    }
}

fn loaded(config: &Config, room: Limit) -> Option<Datapath> {
    bpf()?;
    let (bytes, in_packets) = match room {
        Limit::Bytes(bytes) => (bytes.get(), false),
        Limit::Packets(packets) => (packets, true),
    };
    let way = |bps| Way {
        rate_bps: bps,
        capacity: config.capacity(Rate::from_bps(bps)),
        room: bytes,
        in_packets,
        backlog: 0,
    };
    let never = u64::MAX / 4;
    let control = Control {
        opening: never,
        closed: never,
        idle: never,
        patience: never,
        ..Control::new(SETS, [0x1234_5678_9abc_def0, 42], RATES.map(way))
    };
    Some(Datapath::load(control).unwrap())
}

/// The sums of the program are those of the core.
fn compare_sums(path: &Datapath, model: &Model, step: u64) {
    for (sums, pink) in path.sums().unwrap().iter().zip(&model.pinks) {
        let stats = pink.stats();
        stats.check().unwrap();
        let here = [
            sums.active,
            sums.waiting,
            sums.lacking,
            sums.opening,
            sums.strangers,
            sums.started,
            sums.woken,
            sums.ended,
            sums.expired,
            sums.acks,
            sums.rewritten,
            sums.below_one_segment,
            sums.below_now,
            sums.implausible,
        ];
        let there = [
            stats.active,
            stats.waiting,
            stats.lacking,
            stats.opening,
            stats.strangers,
            stats.started,
            stats.woken,
            stats.ended,
            stats.expired,
            stats.acks,
            stats.rewritten,
            stats.below_one_segment,
            stats.below_now,
            stats.implausible,
        ];
        assert_eq!(here, there, "after {step} segments: {sums:?} {stats:?}");
    }
}

fn window(frame: &Frame, bytes: &[u8]) -> Option<(u16, usize)> {
    let ip = &bytes[frame.link..];
    match Headers::parse(ip).transport {
        Transport::Tcp { offset, .. } => Some((u16::from_be_bytes([ip[offset + 14], ip[offset + 15]]), offset)),
        _ => None,
    }
}

/// Runs the packets of a seed through both; returns how many windows were written.
fn compare(seed: u64, segments: u64, room: Limit) -> Option<u64> {
    let config = Config::default();
    let mut path = loaded(&config, room)?;
    let mut model = Model::new(&config, room);
    let mut rng = Streams::new(seed).get("parity");
    let mut traffic = Traffic::new(seed);
    let (mut now, mut rewritten) = (1_000_000_000u64, 0);
    for step in 0..segments {
        now += traffic.pause();
        let mut control = path.told().clone();
        (control.clock, control.heartbeat) = (now, now);
        if rng.below(200) == 0 {
            let way = rng.below(2) as usize;
            let bytes = [0, 3000, 60_000, 400_000][rng.below(4) as usize];
            model.wait(way, bytes, Instant::from_nanos(now), &mut rng);
            control.ways[way].backlog = model.backlogs[way] / 16;
        }
        path.tell(control).unwrap();
        let frame = traffic.next(now);
        let before = frame.bytes.clone();
        let (shown, expected) = model.pass(&before[frame.link..], frame.outward, Instant::from_nanos(now));
        if shown {
            path.sweep().unwrap(); // the core applies timeouts when a segment comes
        }
        let mut after = before.clone();
        let program = if frame.outward { "outward" } else { "inward" };
        path.test(program, &mut after, 1).unwrap_or_else(|e| panic!("{e}: {} bytes {before:02x?}", before.len()));
        assert_eq!(after[..frame.link], before[..frame.link]);
        assert!(
            after[frame.link..] == expected,
            "seed {seed}, segment {step}: {:?} instead of {:?} (it came with {:?})\n{:02x?}",
            window(&frame, &after),
            window(&frame, &[&before[..frame.link], &expected[..]].concat()),
            window(&frame, &before),
            before
        );
        if let (Some((old, _)), Some((new, at))) = (window(&frame, &before), window(&frame, &after)) {
            rewritten += u64::from(new < old);
            assert!(new <= old && (new > 0 || old == 0), "never raised, never zero");
            let sum = |bytes: &[u8]| traffic::tcp_sum(&bytes[frame.link..], at);
            assert!(frame.wrong_sum || sum(&before) != 0xffff || sum(&after) == 0xffff, "a wrong checksum");
        }
        if step % 500 == 499 {
            compare_sums(&path, &model, step + 1);
        }
    }
    compare_sums(&path, &model, segments);
    let gauges = path.gauges().unwrap();
    assert_eq!((gauges.evicted, gauges.refused, gauges.unwritten, gauges.contended), (0, 0, 0, 0), "{gauges:?}");
    assert_eq!(gauges.signed, model.signed);
    assert!(model.signed > segments / 100, "the traffic has {} signed segments", model.signed);
    Some(rewritten)
}

#[test]
fn the_program_and_the_core_write_the_same_windows() {
    let segments = std::env::var("PENSTOCK_PARITY").ok().and_then(|text| text.parse().ok()).unwrap_or(SHORT);
    let rooms = [Limit::Packets(1000), Limit::Bytes(Bytes::new(60_000))];
    let mut total = 0;
    for (seed, room) in rooms.into_iter().enumerate() {
        let Some(rewritten) = compare(seed as u64 + 1, segments / 2, room) else { return };
        total += rewritten;
    }
    println!("{segments} segments, {total} windows written, all alike");
    assert!(total > segments / 20, "the traffic tests little: {total} windows of {segments} segments were written");
}

/// Where clang is, the program must be there: an error of it is no reason to skip.
#[test]
fn clang_builds_the_programs() {
    let there = std::process::Command::new("clang").arg("--version").output().is_ok_and(|out| out.status.success());
    assert!(!there || MISSING.is_empty(), "{MISSING}");
}

/// Two processors see the same connections at the same time, with forged segments between: then what the sums hold is
/// at most what their flows could use of the link, and nothing of it is left when the flows are gone.
/// `PENSTOCK_FORGED=1000000 cargo test --release -p penstock-linux --test all forged -- --nocapture` is the long form.
#[test]
fn forged_segments_leave_the_sums_within_the_link() {
    let segments = std::env::var("PENSTOCK_FORGED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000u64);
    let config = Config::default();
    let Some(mut path) = loaded(&config, Limit::Packets(1000)) else { return };
    let capacity = RATES.map(|rate| config.capacity(Rate::from_bps(rate)) / 1000 + 1);
    let run = |path: &Datapath, jumps: bool| {
        let (mut traffic, mut largest) = (Traffic::new(7), 0);
        for step in 0..segments / 2 {
            let mut frame = traffic.next(step * 1_000_000);
            if jumps && step % 5 == 0 && frame.bytes.len() > frame.link + 60 {
                frame.bytes[frame.link + 24] ^= 0x20; // the number jumps, or the address is another one
            }
            path.test(if frame.outward { "outward" } else { "inward" }, &mut frame.bytes, 1).unwrap();
            if step % 64 == 0 {
                let (sums, lines) = (path.sums().unwrap(), path.gauges().unwrap().lines);
                for (sums, most) in sums.iter().zip(capacity) {
                    assert!(sums.surplus <= lines * most && sums.claims <= lines * most, "{lines} lines: {sums:?}");
                    assert!(sums.active.max(sums.lacking).max(sums.waiting).max(sums.growing) <= lines, "{sums:?}");
                    largest = largest.max(sums.surplus / most);
                }
            }
        }
        largest
    };
    let largest = std::thread::scope(|threads| {
        let other = threads.spawn(|| run(&path, true));
        run(&path, false).max(other.join().unwrap())
    });
    assert!(largest > 0, "no segment claimed the whole link");
    let gone = Control { opening: 0, closed: 0, idle: 0, ..path.told().clone() };
    path.tell(gone).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(5));
    path.sweep().unwrap();
    let gauges = path.gauges().unwrap();
    println!("{gauges:?}");
    assert_eq!(gauges.lines, 0);
    for sums in path.sums().unwrap() {
        let left = [sums.active, sums.lacking, sums.claims, sums.waiting, sums.asleep, sums.surplus, sums.growing];
        assert_eq!((left, sums.opening, sums.strangers, sums.below_now), ([0; 7], 0, 0, 0), "{sums:?}");
    }
}
