//! The cost of RED-ERN without a simulator around it: nanoseconds per data packet and per ACK, with rates that senders
//! announce and with rates that it estimates, with 1,000 and with 100,000 flows, as one JSON object.
//!
//! `cargo run --release -p penstock-core --example ern_cost -- [KEY=VALUE...]`: settings are those of the algorithm.
//!
//! Every 20 ms each flow sends two segments back to back, and two segments of 100 ms ago are acknowledged by one ACK. A
//! data packet is shown and judged, an ACK is shown. The packets announce nothing: with "announced" they cost what
//! packets between two rates cost.

use penstock_core::ack::AckPath;
use penstock_core::aqm::Aqm;
use penstock_core::aqm::red_ern::{Config, Rates, RedErn};
use penstock_core::config::{AqmConfig, LinkFacts};
use penstock_core::packet::{Ecn, Ern, FlowId, NoTcp, Packet, PlainSegment, TcpFlags, Timestamps};
use penstock_core::qdisc::Backlog;
use penstock_core::registry::AnyConfig;
use penstock_core::rng::{Rng, Streams};
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::{Duration, Instant as Clock};

const MSS: u32 = 1448;
const TURN: Span = Span::from_millis(20);
/// Number of turns in a round trip.
const ROUND: u32 = 5;
/// A step through the flows, coprime to both numbers of flows.
const STRIDE: u64 = 611_953;
const DATA_PACKETS: u32 = 4_000_000;

/// A data packet of an ERN-capable flow.
struct Data(FlowId);

impl Packet for Data {
    type Tcp = NoTcp;

    fn size(&self) -> Bytes {
        Bytes::new(1500)
    }
    fn flow(&self) -> FlowId {
        self.0
    }
    fn ecn(&self) -> Ecn {
        Ecn::Ect0
    }
    fn mark_ce(&mut self) {}
    fn tcp(&mut self) -> Option<&mut NoTcp> {
        None
    }
    fn explicit_rate(&self) -> Ern {
        Ern { capable: true, ..Ern::default() }
    }
}

struct Bench {
    aqm: RedErn,
    rng: Rng,
    flows: u32,
    now: Instant,
    turn: u32,
}

impl Bench {
    fn new(config: &Config, flows: u32) -> Self {
        let link = LinkFacts { rate: Rate::from_bps(1_000_000 * u64::from(flows)), limit: Limit::Packets(1000) };
        let rng = Streams::new(1).get("red-ern");
        let mut bench = Self { aqm: config.aqm(&link), rng, flows, now: Instant::ZERO, turn: 0 };
        let syn_ack = TcpFlags::SYN.with(TcpFlags::ACK);
        for (outbound, flags, ack) in [(true, TcpFlags::SYN, 0), (false, syn_ack, 1), (true, TcpFlags::ACK, 1)] {
            let seq = u32::from(!flags.has(TcpFlags::SYN));
            bench.pass(outbound, 1, |_| PlainSegment { seq, ack, ..PlainSegment::new(FlowId(0), flags) });
            bench.now += TURN * 3;
        }
        bench
    }

    /// Shows a burst of segments of each flow, and lets data arrive at the queue. Returns the time that this took.
    fn pass(&mut self, outbound: bool, burst: u32, segment: impl Fn(u32) -> PlainSegment) -> Duration {
        let flows = u64::from(self.flows);
        let (mut flow, backlog) = (0, Backlog { packets: 3, bytes: 4500 });
        let start = Clock::now();
        for _ in 0..flows {
            for k in 0..burst {
                let mut segment = PlainSegment { flow: FlowId(flow as u32), ..segment(k) };
                if outbound {
                    self.aqm.outbound(&mut segment, self.now);
                    black_box(self.aqm.on_arrival(&Data(segment.flow), backlog, self.now, &mut self.rng));
                } else {
                    self.aqm.inbound(&mut segment, self.now);
                    black_box(segment.ack);
                }
            }
            flow = (flow + STRIDE) % flows;
        }
        start.elapsed()
    }

    /// Returns the times of both passes, divided by their packets for each flow.
    fn turn(&mut self) -> [Duration; 2] {
        let turn = self.turn;
        let timestamps = Some(Timestamps { val: turn + 2, ecr: turn.saturating_sub(ROUND) + 2 });
        let plain = PlainSegment { timestamps, ack: 1, seq: 1, ..PlainSegment::new(FlowId(0), TcpFlags::ACK) };
        let seq = |segments: u32| 1u32.wrapping_add(segments.wrapping_mul(MSS));
        let data = self.pass(true, 2, |k| PlainSegment { seq: seq(2 * turn + k), payload_len: MSS, ..plain });
        let acked = seq(2 * turn.saturating_sub(ROUND) + 2);
        let acks = self.pass(false, 1, |_| PlainSegment { ack: acked, ..plain });
        self.turn += 1;
        self.now += TURN;
        [data / 2, acks]
    }

    fn report(config: &Config, flows: u32) -> Value {
        let mut bench = Self::new(config, flows);
        (0..3 * ROUND).for_each(|_| {
            bench.turn();
        });
        let turns: Vec<[Duration; 2]> = (0..(DATA_PACKETS / 2 / flows).max(10)).map(|_| bench.turn()).collect();
        let [data, acks] = [0, 1].map(|which| {
            let mut times: Vec<f64> = turns.iter().map(|turn| turn[which].as_nanos() as f64).collect();
            times.sort_unstable_by(f64::total_cmp);
            [times[times.len() / 2], times[0]].map(|ns| ns / f64::from(flows))
        });
        json!({
            "flows": flows,
            "ns_per_data_packet": data[0],
            "ns_per_data_packet_best": data[1],
            "ns_per_ack": acks[0],
            "ns_per_ack_best": acks[1],
            "bytes_held_per_flow": bench.aqm.memory().get() as f64 / f64::from(flows),
            "fair_rate_bytes_per_ms": bench.aqm.fair_rate(),
        })
    }
}

fn main() {
    let settings: Vec<String> = std::env::args().skip(1).collect();
    let config = match config_from_settings("red-ern", &settings) {
        Ok(AnyConfig::RedErn(config)) => config,
        Ok(_) => return,
        Err(wrong) => {
            eprintln!("{wrong}");
            std::process::exit(2);
        }
    };
    let of = |rates| {
        let config = Config { rates, ..config.clone() };
        [1_000, 100_000].map(|flows| Bench::report(&config, flows))
    };
    let out = json!({ "announced": of(Rates::Announced), "estimated": of(Rates::Estimated) });
    println!("{out:#}");
}
