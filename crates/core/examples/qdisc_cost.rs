//! The cost of every discipline of the registry per packet, as JSON: nanoseconds for one `enqueue` and one `dequeue`
//! with a standing backlog. Build with `--release`.
//!
//! Each packet finds 1000 packets of one flow, or of 1024 flows in random order. For each dropped packet one more
//! arrives, at most one at a time; `backlog` is the backlog that the discipline allows. The link has 10 Gbit/s, so a
//! packet waits about 1.2 ms, which AQMs with a delay target tolerate. Timers that fall due are part of the cost. Of 80
//! short runs the fastest counts, because other load on the machine only adds time.
//!
//! `qdisc_cost [name] [flows] [runs]` measures one discipline.

use penstock_core::config::LinkFacts;
use penstock_core::packet::{Ecn, FlowId, NoTcp, Packet};
use penstock_core::qdisc::{Enqueued, Qdisc};
use penstock_core::registry::{AnyConfig, AnyQdisc, NAMES, entries};
use penstock_core::rng::{Rng, Streams};
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use std::hint::black_box;
use std::time;

const BACKLOG: u64 = 1000;
const PACKETS: usize = 1 << 14;
const RUNS: usize = 80;
const RATE: Rate = Rate::from_bps(10_000_000_000);
const SIZE: Bytes = Bytes::new(1500);

/// A packet as large in memory as a simulated segment.
#[derive(Debug, Clone, Copy)]
struct Filled {
    flow: FlowId,
    ecn: Ecn,
    _rest: [u64; 7],
}

impl Packet for Filled {
    type Tcp = NoTcp;

    fn size(&self) -> Bytes {
        SIZE
    }
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn tcp(&mut self) -> Option<&mut NoTcp> {
        None
    }
}

/// A discipline with its backlog, and the flows of the next packets.
struct Load {
    queue: AnyQdisc<Filled>,
    flows: Vec<FlowId>,
    rng: Rng,
    now: Instant,
    step: Span,
}

impl Load {
    fn new(config: &AnyConfig, flows: u64) -> Self {
        let mut random = Streams::new(1).get("flows");
        let queue = config.build(&LinkFacts { rate: RATE, limit: Limit::Packets(10_240) });
        let flows = (0..PACKETS).map(|_| FlowId(random.below(flows) as u32)).collect();
        let rng = Streams::new(1).get("cost");
        let mut load = Self { queue, flows, rng, now: Instant::ZERO, step: RATE.time_for(SIZE) };
        for at in 0..2 * BACKLOG as usize {
            if load.queue.backlog().packets < BACKLOG {
                load.enqueue(load.flows[at]);
            }
        }
        load
    }

    #[inline]
    fn enqueue(&mut self, flow: FlowId) -> Enqueued {
        self.now += self.step;
        while self.queue.next_wakeup().is_some_and(|due| due <= self.now) {
            self.queue.on_wakeup(self.now);
        }
        let packet = Filled { flow, ecn: Ecn::NotEct, _rest: [0; 7] };
        self.queue.enqueue(packet, self.now, &mut self.rng, &mut ())
    }

    /// Enqueues and dequeues each packet, and enqueues one more if the backlog is short. Returns nanoseconds per pair
    /// of calls.
    fn run(&mut self) -> f64 {
        let (start, mut more) = (time::Instant::now(), 0);
        for at in 0..PACKETS {
            black_box(self.enqueue(self.flows[at]));
            if self.queue.backlog().packets <= BACKLOG {
                black_box(self.enqueue(self.flows[PACKETS - 1 - at]));
                more += 1;
            }
            black_box(self.queue.dequeue(self.now, &mut self.rng, &mut ()));
        }
        let pairs = (2 * PACKETS + more) as f64 / 2.0;
        start.elapsed().as_nanos() as f64 / pairs
    }
}

fn measure(name: &str, kind: &str, flows: u64, runs: usize) -> serde_json::Value {
    let config = AnyConfig::default_of(name).expect("it is in the registry");
    let mut load = Load::new(&config, flows);
    let fastest = (0..runs).map(|_| load.run()).fold(f64::INFINITY, f64::min);
    let backlog = load.queue.backlog().packets;
    let ns = (fastest * 10.0).round() / 10.0;
    serde_json::json!({ "name": name, "kind": kind, "flows": flows, "backlog": backlog, "ns_per_packet": ns })
}

fn main() {
    let mut args = std::env::args().skip(1);
    let only = args.next();
    let mut number = || args.next().and_then(|number| number.parse().ok());
    let (flows, runs) = (number().map_or(vec![1, 1024], |flows| vec![flows]), number().map_or(RUNS, |n| n as usize));
    let kinds = entries();
    let rows: Vec<serde_json::Value> = NAMES
        .iter()
        .filter(|name| only.as_deref().is_none_or(|only| only == **name))
        .flat_map(|name| {
            let kind = kinds.iter().find(|entry| entry.name == *name).map_or("", |entry| entry.kind);
            flows.iter().map(move |flows| measure(name, kind, *flows, runs))
        })
        .collect();
    println!("{}", serde_json::to_string_pretty(&rows).expect("rows are plain data"));
}
