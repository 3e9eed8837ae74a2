//! The cost of every scheduler, as JSON: nanoseconds for one `enqueue` and one `dequeue`, with the loop around them.
//! Build with `--release`.
//!
//! Each flow gets a packet in turn until 10 packets of each wait, then all are dequeued (the smooth pattern of 002
//! §4.3.2.2). Packets have 1700 B. Of several such rounds the fastest counts, because other load on the machine only
//! adds time.
//!
//! `sched_cost [name] [flows]` measures one scheduler.

use penstock_core::sched::table::{AnySchedulerConfig, NAMES, WithScheduler};
use penstock_core::sched::{Limits, Scheduled, Scheduler, Setup, Weight};
use penstock_core::units::Bytes;
use std::hint::black_box;
use std::time::Instant;

const SIZE: Bytes = Bytes::new(1700);
const DEPTH: u64 = 10;
const EVENTS: u64 = 4_000_000;

/// Fills and drains queues of a scheduler whose type is known.
struct Measure;

impl WithScheduler for Measure {
    type Out = f64;

    fn with<S: Scheduler + Clone>(self, scheduler: S) -> f64 {
        let flows = scheduler.classes() as u32;
        let packets = u64::from(flows) * DEPTH;
        let mut queues: Scheduled<u32, S> = Scheduled::new(scheduler, Limits::default());
        let mut fastest = f64::INFINITY;
        for _ in 0..(EVENTS / packets).max(6) {
            let start = Instant::now();
            for packet in 0..DEPTH as u32 {
                for class in 0..flows {
                    let _ = black_box(queues.enqueue(class, SIZE, packet));
                }
            }
            while let Some(served) = queues.dequeue() {
                black_box(served);
            }
            fastest = fastest.min(start.elapsed().as_nanos() as f64 / packets as f64);
        }
        assert_eq!(queues.check(), Ok(()));
        fastest
    }
}

fn weights(set: &str, flows: usize) -> Vec<Weight> {
    let weight = |class: usize| match set {
        "mix" if class >= flows * 6 / 7 => 8,
        "mix" if class >= flows * 4 / 7 => 2,
        _ => 1,
    };
    (0..flows).map(|class| Weight::new(weight(class)).expect("1, 2 or 8")).collect()
}

fn main() {
    let mut args = std::env::args().skip(1);
    let (only, flows) = (args.next(), args.next().and_then(|flows| flows.parse().ok()));
    let sizes = flows.map_or(vec![1_000, 32_000, 100_000], |flows| vec![flows]);
    let mut rows = Vec::new();
    for name in NAMES.iter().filter(|name| only.as_deref().is_none_or(|only| only == **name)) {
        for flows in &sizes {
            for set in ["one", "mix"] {
                let weights = weights(set, *flows);
                let setup = Setup { weights: &weights, max_packet: SIZE };
                let config = AnySchedulerConfig::default_of(name).expect("it is in the table");
                let ns = config.build_with(&setup, Measure).expect("the setup is valid");
                let ns = (ns * 10.0).round() / 10.0;
                rows.push(serde_json::json!({ "name": name, "flows": flows, "weights": set, "ns_per_packet": ns }));
            }
        }
    }
    println!("{}", serde_json::to_string_pretty(&rows).expect("rows are plain data"));
}
