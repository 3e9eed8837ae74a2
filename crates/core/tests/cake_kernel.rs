//! CAKE gives every packet the fate that the kernel's own code gave it.
//!
//! `cake/kernel.csv` is what `sch_cake.c` of Linux 6.12 did with the traces below, one line for each: how many packets were
//! sent, sent with CE, dropped by COBALT, dropped for want of room and filtered as ACKs, and a digest (FNV-1a, 64 bits) of
//! all lines `id,fate,time in ns`. `cake/fates.csv` has the first packets of each trace that were not simply sent. The
//! kernel's functions were compiled for user space by `tools/measure/kernel-cake`, with this trace, these hashes and these random
//! numbers.

use penstock_core::config::LinkFacts;
use penstock_core::fact::Fact;
use penstock_core::packet::{Ecn, FlowId, NodeId, Packet, PlainSegment, TcpFlags, Timestamps};
use penstock_core::qdisc::{DropReason, PacketObserver, Qdisc};
use penstock_core::registry::{AnyConfig, AnyQdisc};
use penstock_core::rng::Rng;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use serde_json::json;

const TABLE: &str = include_str!("cake/kernel.csv");
const FATES: &str = include_str!("cake/fates.csv");
/// The state of splitmix64 from which the kernel was given its numbers.
const DRAWS: u64 = 0x9e37_79b9_7f4a_7c15;
/// The state from which the trace is made.
const TRACE: u64 = 99;
/// The codepoint of a flow is that of its number modulo 12, its ECN field that of its number modulo 4.
const DSCP: [u32; 12] = [0, 8, 46, 0, 10, 26, 34, 48, 16, 18, 1, 4];
const ECN: [u8; 4] = [2, 0, 1, 0];
const SIZES: [u64; 8] = [1500, 1500, 1500, 1500, 600, 60, 1500, 300];
/// The mean gap changes every 1000 packets, in eighths.
const PHASES: [u64; 6] = [8, 4, 16, 6, 2, 40];

/// Fates by their numbers.
const SENT: usize = 0;
const MARKED: usize = 1;
const DROPPED: usize = 2;
const OVERFLOW: usize = 3;
const FILTERED: usize = 4;

/// A packet of the trace; `segment` is there if the trace is one of ACKs.
#[derive(Debug, Clone, Copy)]
struct Traced {
    id: usize,
    flow: u32,
    size: u64,
    ecn: Ecn,
    was_marked: bool,
    segment: Option<PlainSegment>,
}

impl Packet for Traced {
    type Tcp = PlainSegment;

    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        (self.ecn, self.was_marked) = (Ecn::Ce, true);
    }
    fn tcp(&mut self) -> Option<&mut PlainSegment> {
        self.segment.as_mut()
    }
}

/// What the trace and the link are like.
#[derive(Debug, Clone, Copy)]
struct Load {
    flows: u32,
    /// Flow n belongs to node n modulo this number; 0 if no nodes are known.
    nodes: u32,
    gap: u64,
    /// Time of a byte on the link, in ns.
    byte: u64,
    acks: bool,
}

/// Makes the packets of a trace.
struct Maker {
    load: Load,
    rng: Rng,
    t: u64,
    acks: Vec<u32>,
}

impl Maker {
    fn next(&mut self, id: usize) -> (Instant, Traced) {
        let Load { flows, gap, .. } = self.load;
        let r = self.rng.bits();
        self.t += gap * PHASES[id / 1000 % 6] / 8 * (r & 0xff) / 128;
        if (r >> 8) & 0x1ff == 0 {
            self.t += 20_000_000 * ((r >> 17) & 15);
        }
        let pick = |bits: u64| ((bits & 0xffff) * u64::from(flows)) >> 16;
        let flow = pick(r >> 21).min(pick(r >> 37)) as u32;
        let segment = self.load.acks.then(|| self.ack(flow));
        let size = match segment {
            Some(PlainSegment { payload_len, timestamps, .. }) => {
                40 + u64::from(payload_len) + if timestamps.is_some() { 12 } else { 0 }
            }
            None => SIZES[((r >> 53) & 7) as usize],
        };
        let ecn = Ecn::from_bits(ECN[flow as usize % 4]);
        (Instant::from_nanos(self.t), Traced { id, flow, size, ecn, was_marked: false, segment })
    }

    /// An ACK with a higher number than the last one of its flow, or with the same, or with a lower one; now and then with
    /// payload or other flags. Odd flows have timestamps, and ECE now and then.
    fn ack(&mut self, flow: u32) -> PlainSegment {
        let x = self.rng.bits();
        let last = &mut self.acks[flow as usize];
        let number = match x & 15 {
            0 => *last,
            1 => last.wrapping_sub(1448),
            _ => {
                *last = last.wrapping_add(1448 * (1 + ((x >> 4) & 1) as u32));
                *last
            }
        };
        let mut flags = TcpFlags::ACK;
        for (is_set, flag) in [
            ((x >> 8) & 15 == 0, TcpFlags::PSH),
            ((x >> 28) & 63 == 0, TcpFlags::SYN),
            (flow % 2 == 1 && number / 100_000 % 2 == 1, TcpFlags::ECE),
            ((x >> 34) & 31 == 0, TcpFlags::CWR),
        ] {
            flags = if is_set { flags.with(flag) } else { flags };
        }
        let ms = (self.t / 1_000_000) as u32;
        let timestamps = (flow % 2 == 1).then(|| Timestamps { val: ms, ecr: ms.wrapping_sub(((x >> 40) & 7) as u32) });
        let payload_len = if (x >> 20) & 15 == 0 { 100 } else { 0 };
        PlainSegment { ack: number, payload_len, timestamps, ..PlainSegment::new(FlowId(flow), flags) }
    }
}

/// The fate of each packet, and when it was settled.
struct Fates {
    of: Vec<(usize, u64)>,
    /// A packet arrives: COBALT, which acts on departures, drops none, so what leaves the queue is a filtered ACK.
    is_arrival: bool,
}

impl PacketObserver<Traced> for Fates {
    fn dropped(&mut self, packet: Traced, reason: DropReason, now: Instant) {
        let fate = match reason {
            DropReason::Overflow => OVERFLOW,
            _ if self.is_arrival => FILTERED,
            _ => DROPPED,
        };
        self.of[packet.id] = (fate, now.as_nanos());
    }
    fn marked(&mut self, _: &Traced, _: Instant) {}
}

/// Lets a link of constant rate ask for the packets of a trace. At the same time, timers come first, then the end of a
/// transmission, then an arrival, as in the harness.
struct Run {
    queue: AnyQdisc<Traced>,
    rng: Rng,
    fates: Fates,
    byte: u64,
    free_at: Option<Instant>,
}

impl Run {
    fn ask(&mut self, now: Instant) {
        if self.free_at.is_some() {
            return;
        }
        if let Some(packet) = self.queue.dequeue(now, &mut self.rng, &mut self.fates) {
            let fate = if packet.was_marked { MARKED } else { SENT };
            self.fates.of[packet.id] = (fate, now.as_nanos());
            self.free_at = Some(now + Span::from_nanos(packet.size * self.byte));
        }
    }

    /// Handles timers and departures before an arrival.
    fn advance(&mut self, until: Instant) {
        loop {
            let free = self.free_at.unwrap_or(Instant::MAX);
            let wakeup = self.queue.next_wakeup().unwrap_or(Instant::MAX);
            let now = wakeup.min(free);
            if now > until || now == Instant::MAX {
                return;
            }
            if wakeup <= free {
                self.queue.on_wakeup(now);
            } else {
                self.free_at = None;
            }
            self.ask(now);
        }
    }

    fn arrive(&mut self, now: Instant, packet: Traced) {
        self.fates.is_arrival = true;
        self.queue.enqueue(packet, now, &mut self.rng, &mut self.fates);
        self.fates.is_arrival = false;
        self.ask(now);
    }
}

/// Runs a trace through CAKE with these parameters; returns the fates and what CAKE reports.
fn run(load: Load, parameters: serde_json::Value, packets: usize) -> (Vec<(usize, u64)>, serde_json::Value) {
    let mut parameters = parameters;
    (parameters["perturbation"], parameters["compat"]) = (json!(12345), json!("linux"));
    let config = AnyConfig::deserialize("cake", parameters).unwrap().unwrap();
    config.validate().unwrap();
    let link = LinkFacts { rate: Rate::from_bps(10_000_000), limit: Limit::Packets(u64::MAX) };
    let fates = Fates { of: vec![(usize::MAX, 0); packets], is_arrival: false };
    let mut run = Run { queue: config.build(&link), rng: Rng::split_mix(DRAWS), fates, byte: load.byte, free_at: None };
    for flow in 0..load.flows {
        let class = DSCP[flow as usize % 12];
        run.queue.on_fact(&Fact::Class { flow: FlowId(flow), class }, Instant::ZERO);
        if load.nodes > 0 {
            let node = NodeId(flow % load.nodes);
            run.queue.on_fact(&Fact::Owner { flow: FlowId(flow), node }, Instant::ZERO);
        }
    }
    let mut maker = Maker { load, rng: Rng::split_mix(TRACE), t: 0, acks: vec![0; load.flows as usize] };
    for id in 0..packets {
        let (now, packet) = maker.next(id);
        run.advance(now);
        run.arrive(now, packet);
    }
    run.advance(Instant::MAX);
    run.queue.stats().check(run.queue.backlog()).unwrap();
    (run.fates.of, run.queue.report().unwrap())
}

/// Compares each fate and its time with those of the kernel; returns what CAKE reports.
fn agrees(name: &str, load: Load, parameters: serde_json::Value) -> serde_json::Value {
    let row = TABLE.lines().find(|row| row.starts_with(&format!("{name},"))).unwrap();
    let columns: Vec<&str> = row.split(',').collect();
    let (fates, report) = run(load, parameters, columns[1].parse().unwrap());
    let (mut counts, mut digest) = ([0; 5], 0xcbf2_9ce4_8422_2325u64);
    let mut rows = FATES.lines().filter(|row| row.split(',').next() == Some(name));
    for (id, (fate, t)) in fates.iter().enumerate() {
        counts[*fate] += 1;
        for byte in format!("{id},{fate},{t}\n").bytes() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if *fate != SENT
            && let Some(row) = rows.next()
        {
            assert_eq!(format!("{name},{id},{fate},{t}"), row, "the first packet that has another fate");
        }
    }
    let told = counts.iter().map(ToString::to_string).chain([format!("{digest:016x}")]);
    assert_eq!(told.collect::<Vec<_>>(), columns[2..], "{name}: sent, marked, dropped, overflow, filtered, digest");
    report
}

/// A link of 10 Mbit/s, or of 1 Gbit/s behind a shaper.
fn load(flows: u32, nodes: u32, gap: u64, byte: u64) -> Load {
    Load { flows, nodes, gap, byte, acks: false }
}

fn open(flows: u32, nodes: u32) -> Load {
    load(flows, nodes, 900_000, 800)
}

fn shaped(flows: u32, nodes: u32) -> Load {
    load(flows, nodes, 900_000, 8)
}

#[test]
fn one_queue_and_many_are_the_kernels() {
    agrees("one-flow", open(1, 0), json!({ "tins": "besteffort" }));
    agrees("two-flows", open(2, 0), json!({ "tins": "besteffort" }));
    agrees("many-flows", open(40, 0), json!({ "tins": "besteffort", "isolation": "flows" }));
}

/// Sixty flows of seven hosts.
#[test]
fn every_isolation_is_the_kernels() {
    for (name, isolation) in [
        ("hosts-triple", "triple-isolate"),
        ("hosts-dual-src", "dual-srchost"),
        ("hosts-dual-dst", "dual-dsthost"),
        ("hosts-src", "srchost"),
        ("hosts-dst", "dsthost"),
        ("hosts-pairs", "hosts"),
        ("flowblind", "flowblind"),
    ] {
        agrees(name, open(60, 7), json!({ "tins": "besteffort", "isolation": isolation }));
    }
}

/// Three thousand flows of 500 hosts: sets of eight queues are full again and again.
#[test]
fn collisions_are_the_kernels() {
    let report = agrees("collisions", open(3000, 500), json!({ "tins": "besteffort", "memory_limit": "8MB" }));
    let of = |key: &str| report["tins"][0][key].as_u64().unwrap();
    assert!(of("way_hits") > 1000 && of("way_collisions") > 100, "{report}");
}

/// Twice the rate of the link, and room for 100 kB.
#[test]
fn head_drops_from_the_fattest_queue_are_the_kernels() {
    agrees("overload", load(60, 7, 500_000, 800), json!({ "tins": "diffserv4", "memory_limit": "100kB" }));
    let shaped = json!({ "bandwidth": "10Mbit/s", "ingress": true, "memory_limit": "60kB" });
    agrees("overload-shaped", load(60, 7, 500_000, 8), shaped);
}

#[test]
fn tins_by_deficit_are_the_kernels() {
    agrees("tins3", open(60, 7), json!({}));
    agrees("precedence-open", open(60, 7), json!({ "tins": "precedence" }));
}

#[test]
fn tins_by_threshold_are_the_kernels() {
    for (name, tins) in [
        ("tins3-shaped", "diffserv3"),
        ("tins4-shaped", "diffserv4"),
        ("tins8-shaped", "diffserv8"),
        ("precedence", "precedence"),
    ] {
        agrees(name, shaped(60, 7), json!({ "tins": tins, "bandwidth": "10Mbit/s" }));
    }
}

#[test]
fn the_shaper_is_the_kernels() {
    let slow = load(20, 4, 9_000_000, 8);
    agrees("slow-atm", slow, json!({ "bandwidth": "1Mbit/s", "overhead": 44, "framing": "atm" }));
    let ptm = json!({ "bandwidth": "10Mbit/s", "overhead": -14, "mpu": 84, "framing": "ptm" });
    agrees("ptm-mpu", shaped(20, 4), ptm);
    agrees("ingress", shaped(30, 4), json!({ "tins": "besteffort", "bandwidth": "10Mbit/s", "ingress": true }));
    agrees("rtt-10ms", shaped(30, 4), json!({ "bandwidth": "10Mbit/s", "rtt": "10ms" }));
}

#[test]
fn the_ack_filter_is_the_kernels() {
    let acks = |byte| Load { acks: true, ..load(20, 4, 60_000, byte) };
    agrees("acks", acks(800), json!({ "tins": "besteffort", "ack_filter": "yes" }));
    agrees("acks-aggressive", acks(800), json!({ "tins": "besteffort", "ack_filter": "aggressive" }));
    let one = json!({ "tins": "besteffort", "isolation": "flowblind", "ack_filter": "yes" });
    agrees("acks-one-queue", acks(800), one);
    let shaped = json!({
        "bandwidth": "10Mbit/s", "ack_filter": "aggressive", "ingress": true, "memory_limit": "20kB",
    });
    agrees("acks-shaped", acks(8), shaped);
}
