//! The cost of whole disciplines per data packet: `outbound`, `enqueue`, `dequeue`, and `inbound` of its part of an ACK, with
//! 1,000 and with 100,000 flows, as one JSON object. WEIR is measured beside FQ-CoDel, CAKE and PINK in turns of the same run.
//!
//! `cargo run --release -p penstock-core --example weir_cost -- [packets=N] [flows=N]`: `packets` (default 2000000) is the
//! number of data packets for each discipline and number of flows; `flows=N` measures with this number alone.
//!
//! Every 20 ms each flow sends up to two segments back to back, as far as its window lets it, and those of 100 ms ago are
//! acknowledged by one ACK. The link is busy for up to 75 % of the time. Flows come in an order without locality, four from each
//! host. The time includes that of the senders.

use penstock_core::ack::AckPath as _;
use penstock_core::config::LinkFacts;
use penstock_core::fact::Fact;
use penstock_core::packet::{Ecn, FlowId, NodeId, Packet, PlainSegment, TcpFlags, Timestamps};
use penstock_core::qdisc::Qdisc;
use penstock_core::registry::{AnyConfig, AnyQdisc};
use penstock_core::rng::{Rng, Streams};
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant as Clock;

const MSS: u32 = 1448;
const SIZE: Bytes = Bytes::new(1500);
/// The scale of the receivers' windows.
const SCALE: u8 = 7;
const TURN: Span = Span::from_millis(20);
/// Number of turns in a round trip.
const ROUND: u32 = 5;
/// After so many turns the windows are those of connections that have grown up.
const SETTLED: u32 = 10 * ROUND;
/// A step through the flows, coprime to both numbers of flows.
const STRIDE: u64 = 611_953;
/// Rate per flow in bits per second: a share of 20 kB in a round trip, of which a flow has 12 segments in flight.
const RATE_PER_FLOW: u64 = 1_600_000;
const NAMES: [&str; 4] = ["fq-codel", "weir", "pink", "cake"];

#[derive(Debug, Clone)]
struct Carried(PlainSegment);

impl Packet for Carried {
    type Tcp = PlainSegment;

    fn size(&self) -> Bytes {
        if self.0.payload_len > 0 { SIZE } else { Bytes::new(52) }
    }
    fn flow(&self) -> FlowId {
        self.0.flow
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {}
    fn tcp(&mut self) -> Option<&mut PlainSegment> {
        Some(&mut self.0)
    }
}

/// A sender that keeps to its window. Numbers are those of bytes, from 1 on.
#[derive(Debug, Clone, Copy)]
struct Sender {
    next: u32,
    /// The right edge of its window.
    edge: u32,
    /// What it had sent after each of the last turns.
    sent: [u32; ROUND as usize],
}

struct Bench {
    queue: AnyQdisc<Carried>,
    rng: Rng,
    sees: bool,
    senders: Vec<Sender>,
    /// Number of data packets so far.
    data: u64,
    now: Instant,
    turn: u32,
}

impl Bench {
    fn new(name: &str, flows: u32) -> Self {
        let config = AnyConfig::default_of(name).expect("it is in the registry");
        let rate = Rate::from_bps(RATE_PER_FLOW * u64::from(flows));
        let queue: AnyQdisc<Carried> = config.build(&LinkFacts { rate, limit: Limit::Packets(100_000_000) });
        let (sees, rng) = (queue.sees_segments(), Streams::new(1).get("cost"));
        let senders = vec![Sender { next: 1, edge: 1, sent: [1; ROUND as usize] }; flows as usize];
        let mut bench = Self { queue, rng, sees, senders, data: 0, now: Instant::ZERO, turn: 0 };
        let (window_scale, mss) = (Some(SCALE), Some(1460));
        let plain = |flow, flags| PlainSegment {
            timestamps: Some(Timestamps { val: 1, ecr: 1 }),
            window: 65_535,
            ..PlainSegment::new(FlowId(flow), flags)
        };
        for flow in 0..flows {
            bench.queue.on_fact(&Fact::Owner { flow: FlowId(flow), node: NodeId(flow / 4) }, bench.now);
            bench.forward(PlainSegment { window_scale, mss, ..plain(flow, TcpFlags::SYN) });
        }
        bench.now += TURN * u64::from(ROUND);
        let both = TcpFlags::SYN.with(TcpFlags::ACK);
        (0..flows).for_each(|flow| bench.back(PlainSegment { ack: 1, window_scale, mss, ..plain(flow, both) }));
        bench.now += Span::from_millis(2);
        (0..flows).for_each(|flow| bench.forward(PlainSegment { seq: 1, ack: 1, ..plain(flow, TcpFlags::ACK) }));
        bench
    }

    /// Gives the discipline a packet, and takes the next one out.
    fn forward(&mut self, mut segment: PlainSegment) {
        if self.sees {
            self.queue.outbound(&mut segment, self.now);
        }
        let _ = black_box(self.queue.enqueue(Carried(segment), self.now, &mut self.rng, &mut ()));
        black_box(self.queue.dequeue(self.now, &mut self.rng, &mut ()));
    }

    /// Shows the discipline a segment of the other direction; the sender gets its window.
    fn back(&mut self, mut segment: PlainSegment) {
        if self.sees {
            self.queue.inbound(&mut segment, self.now);
        }
        let scale = if segment.flags.has(TcpFlags::SYN) { 0 } else { SCALE };
        let sender = &mut self.senders[segment.flow.0 as usize];
        sender.edge = sender.edge.max(segment.ack + (u32::from(segment.window) << scale));
    }

    /// An ACK of each flow, and up to two segments. Returns nanoseconds per segment.
    fn turn(&mut self) -> f64 {
        let (turn, flows) = (self.turn, self.senders.len() as u64);
        let timestamps = Some(Timestamps { val: turn + 2, ecr: turn.saturating_sub(ROUND) + 2 });
        let plain = PlainSegment { timestamps, ..PlainSegment::new(FlowId(0), TcpFlags::ACK) };
        let step = Span::from_nanos(TURN.as_nanos() / flows);
        let (mut flow, before, start) = (0u64, self.data, Clock::now());
        for _ in 0..flows {
            self.now += step;
            if self.queue.next_wakeup().is_some_and(|due| due <= self.now) {
                self.queue.on_wakeup(self.now);
            }
            let own = PlainSegment { flow: FlowId(flow as u32), ..plain };
            let (at, place) = (flow as usize, (turn % ROUND) as usize);
            let ack = self.senders[at].sent[place];
            if ack > 1 {
                self.back(PlainSegment { seq: 1, ack, window: 40_000, ..own });
            }
            for _ in 0..2 {
                let Sender { next, edge, .. } = &mut self.senders[at];
                if edge.saturating_sub(*next) >= MSS {
                    let seq = std::mem::replace(next, *next + MSS);
                    self.data += 1;
                    self.forward(PlainSegment { seq, ack: 1, payload_len: MSS, window: 502, ..own });
                }
            }
            self.senders[at].sent[place] = self.senders[at].next;
            flow = (flow + STRIDE) % flows;
        }
        self.turn += 1;
        start.elapsed().as_nanos() as f64 / (self.data - before).max(1) as f64
    }
}

/// Nanoseconds per data packet of each discipline: the median of its turns.
fn measure(flows: u32, packets: u64) -> BTreeMap<&'static str, f64> {
    let mut benches: Vec<Bench> = NAMES.iter().map(|name| Bench::new(name, flows)).collect();
    let turns = (packets / (2 * u64::from(flows))).clamp(10, 20_000) as u32;
    let mut took: Vec<Vec<f64>> = vec![Vec::new(); NAMES.len()];
    for turn in 0..turns + SETTLED {
        for (bench, took) in benches.iter_mut().zip(&mut took) {
            let ns = bench.turn();
            took.extend((turn >= SETTLED).then_some(ns));
        }
    }
    let most = benches.iter().map(|bench| bench.data).max().unwrap_or_default();
    for (name, bench) in NAMES.iter().zip(&benches) {
        assert!(bench.data * 10 > most * 9, "{name} let {} of {most} packets pass", bench.data);
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    NAMES.into_iter().zip(took).map(|(name, times)| (name, median(times))).collect()
}

/// Returns the number that an argument gives.
fn given(name: &str) -> Option<u32> {
    let text =
        std::env::args().skip(1).find_map(|text| Some(text.strip_prefix(name)?.strip_prefix('=')?.to_owned()))?;
    let number = text.parse().map_err(|error| eprintln!("error: {name}: {error}; write for example {name}=100000"));
    Some(number.unwrap_or_else(|()| std::process::exit(2)))
}

fn main() {
    let packets = given("packets").unwrap_or(2_000_000).into();
    let flows = given("flows").map_or(vec![1_000, 100_000], |flows| vec![flows.max(1)]);
    let row = |flows: u32| {
        let ns = measure(flows, packets);
        let round = |ns: f64| (ns * 10.0).round() / 10.0;
        json!({
            "flows": flows,
            "ns_per_data_packet": ns.iter().map(|(name, ns)| (*name, round(*ns))).collect::<BTreeMap<_, _>>(),
            "weir_beyond_40_ns_per_fq_codel": ((ns["weir"] - 40.0) / ns["fq-codel"] * 100.0).round() / 100.0,
        })
    };
    let rows: Vec<Value> = flows.into_iter().map(row).collect();
    println!("{}", serde_json::to_string_pretty(&rows).expect("rows are plain data"));
}
