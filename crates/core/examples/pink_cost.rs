//! The cost of PINK without a simulator around it: nanoseconds per ACK and per data packet, and bytes per flow, with
//! 1,000 and with 100,000 flows, as one JSON object (Corollaries 2 and 3).
//!
//! `cargo run --release -p penstock-core --example pink_cost -- [packets=N] [KEY=VALUE...]`: settings are those of the
//! algorithm, for example `reallocation=max-min`; `packets` (default 4000000) is the number of data packets for each
//! number of flows.
//!
//! Every 20 ms each flow sends two segments back to back, as a delayed ACK releases them, and two segments of 100 ms
//! ago are acknowledged by one ACK. Flows come in an order without locality: with 100,000 flows the state of each is
//! outside the inner caches.

use penstock_core::ack::AckPath;
use penstock_core::ack::pink::{Config, Pink};
use penstock_core::packet::{FlowId, PlainSegment, TcpFlags, Timestamps};
use penstock_core::registry::AnyConfig;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Instant, Rate, Span};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::{Duration, Instant as Clock};

const MSS: u32 = 1448;
const TURN: Span = Span::from_millis(20);
/// Number of turns in a round trip.
const ROUND: u32 = 5;
/// A step through the flows, coprime to both numbers of flows.
const STRIDE: u64 = 611_953;
/// Rate per flow in bits per second: a share of 12.5 kB, nine segments.
const RATE_PER_FLOW: u64 = 1_000_000;

struct Bench {
    pink: Pink,
    flows: u32,
    now: Instant,
    turn: u32,
    /// The time of each pass of data packets over all flows.
    data: Vec<Duration>,
    acks: Vec<Duration>,
}

impl Bench {
    fn new(config: &Config, flows: u32) -> Self {
        let config = Config { max_flows: flows, ..config.clone() };
        let pink = Pink::new(&config, Rate::from_bps(RATE_PER_FLOW * u64::from(flows)));
        let mut bench = Self { pink, flows, now: Instant::ZERO, turn: 0, data: Vec::new(), acks: Vec::new() };
        let syn = |flags: TcpFlags, ack| {
            let asks = flags.has(TcpFlags::SYN);
            let (window_scale, mss, timestamps) =
                (asks.then_some(7), asks.then_some(1460), Some(Timestamps { val: 1, ecr: 1 }));
            let first = PlainSegment { ack, window_scale, mss, timestamps, ..PlainSegment::new(FlowId(0), flags) };
            move |flow, _: u32| PlainSegment { flow: FlowId(flow), ..first }
        };
        bench.pass(true, 1, syn(TcpFlags::SYN, 0));
        bench.now += TURN * u64::from(ROUND);
        bench.pass(false, 1, syn(TcpFlags::SYN.with(TcpFlags::ACK), 1));
        bench.now += Span::from_millis(2);
        let first = syn(TcpFlags::ACK, 1);
        bench.pass(true, 1, move |flow, k| PlainSegment { seq: 1, ..first(flow, k) });
        bench
    }

    /// Sends `burst` segments of each flow and returns the time that this took.
    fn pass(&mut self, outbound: bool, burst: u32, segment: impl Fn(u32, u32) -> PlainSegment) -> Duration {
        let flows = u64::from(self.flows);
        let mut flow = 0;
        let start = Clock::now();
        for _ in 0..flows {
            for k in 0..burst {
                let mut segment = segment(flow as u32, k);
                if outbound {
                    self.pink.outbound(&mut segment, self.now);
                } else {
                    self.pink.inbound(&mut segment, self.now);
                }
                black_box(segment.window);
            }
            flow = (flow + STRIDE) % flows;
        }
        start.elapsed()
    }

    fn turn(&mut self) {
        let (turn, base) = (self.turn, 1u32);
        let timestamps = Some(Timestamps { val: turn + 2, ecr: turn.saturating_sub(ROUND) + 2 });
        let plain = PlainSegment { timestamps, ..PlainSegment::new(FlowId(0), TcpFlags::ACK) };
        let data = move |flow, k: u32| {
            let seq = base.wrapping_add((2 * turn + k).wrapping_mul(MSS));
            PlainSegment { flow: FlowId(flow), seq, ack: 1, payload_len: MSS, window: 502, ..plain }
        };
        let took = self.pass(true, 2, data);
        self.data.push(took / 2);
        if turn >= ROUND {
            let ack = base.wrapping_add((2 * (turn - ROUND) + 2).wrapping_mul(MSS));
            let took = self.pass(false, 1, move |flow, _| PlainSegment {
                flow: FlowId(flow),
                seq: 1,
                ack,
                window: 40_000,
                ..plain
            });
            self.acks.push(took);
        }
        self.turn += 1;
        self.now += TURN;
    }

    /// Nanoseconds per packet of a pass: the median, and the smallest, which other load on the machine prolonged least.
    fn median_and_best(&self, mut passes: Vec<Duration>) -> [f64; 2] {
        passes.sort_unstable();
        [passes.len() / 2, 0].map(|at| passes[at].as_nanos() as f64 / f64::from(self.flows))
    }

    fn report(config: &Config, flows: u32, packets: u64) -> (Value, [f64; 2]) {
        let mut bench = Self::new(config, flows);
        (0..2 * ROUND).for_each(|_| bench.turn()); // windows settle
        (bench.data, bench.acks) = (Vec::new(), Vec::new());
        let turns = (packets / (2 * u64::from(flows))).max(10);
        (0..turns).for_each(|_| bench.turn());
        let (acks, data) = (std::mem::take(&mut bench.acks), std::mem::take(&mut bench.data));
        let [ack, best_ack] = bench.median_and_best(acks);
        let [packet, best_packet] = bench.median_and_best(data);
        let stats = bench.pink.stats();
        let json = json!({
            "flows": flows,
            "active": stats.active,
            "ns_per_ack": ack,
            "ns_per_data_packet": packet,
            "ns_per_ack_best": best_ack,
            "ns_per_data_packet_best": best_packet,
            "bytes_per_flow": Pink::BYTES_PER_FLOW,
            "bytes_held_per_flow": bench.pink.memory().get() as f64 / f64::from(flows),
            "rewritten_fraction": stats.rewritten as f64 / stats.acks as f64,
        });
        (json, [best_ack, best_packet])
    }
}

fn main() {
    let (own, settings): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|a| a.starts_with("packets="));
    let packets = own.iter().filter_map(|text| text["packets=".len()..].parse().ok()).next_back().unwrap_or(4_000_000);
    let config = match config_from_settings("pink", &settings) {
        Ok(AnyConfig::Pink(config)) => config,
        Ok(_) => return,
        Err(wrong) => {
            eprintln!("{wrong}");
            std::process::exit(2);
        }
    };
    let (few, few_best) = Bench::report(&config, 1_000, packets);
    let (many, many_best) = Bench::report(&config, 100_000, packets);
    let ratio = [0, 1].map(|i| many_best[i] / few_best[i]);
    let out = json!({
        "config": config,
        "sizes": [few, many],
        "ack_ratio": ratio[0],
        "data_ratio": ratio[1],
    });
    println!("{out:#}");
}
