//! An hour of 1,000 new connections per second beside four transfers over 20 Mbit/s through PINK with its defaults, in virtual
//! time, compared with the same bytes as packets that nobody tracks. Every second connection is never closed.
//!
//! `cargo run --release -p penstock-shaper --example hostile [seconds] [bytes of each request]`; docs/results/hostile.md has the result.

#[path = "../tests/all/lab/mod.rs"]
#[allow(dead_code)]
mod lab;

use lab::{Flood, Lab, Measures, at, short_connection, way};
use penstock_conntrack::Gauges;
use penstock_core::units::Span;

/// What the four transfers got that were there, and those that began in the last quarter, and the counters.
fn run(tracked: bool, seconds: u64, asked: u32) -> ([Measures; 2], Gauges) {
    let reserve = format!("reserve={}kbit/s", 2000 + 8 * asked);
    let there = way("pink", &[&reserve], "20Mbit/s", 20);
    let mut lab = Lab::new(&there, &way("droptail", &[], "1Gbit/s", 20), penstock_conntrack::Config::default());
    let (end, late) = (at(1000 * seconds), at(750 * seconds));
    (0..4).for_each(|flow| lab.bulk(at(10 * flow), [at(2000), end]));
    (0..4).for_each(|flow| lab.bulk(late + Span::from_secs(1) * flow, [late + Span::from_secs(1) * flow, end]));
    let packets = Box::new(move |n| short_connection(n, asked));
    lab.flood(Flood { from: at(1000), until: end, every: Span::from_millis(1), tracked, packets, sent: 0 });
    lab.run_until(end);
    assert_eq!(lab.drops(), 0, "packets were dropped");
    ([lab.measures(0..4), lab.measures(4..8)], lab.gauges())
}

fn main() {
    let number = |at: usize| std::env::args().nth(at).and_then(|text| text.parse().ok());
    let (seconds, asked) = (number(1).unwrap_or(3600), number(2).unwrap_or(0) as u32);
    let ((tracked, gauges), (reference, _)) = (run(true, seconds, asked), run(false, seconds, asked));
    println!("{:<10}{:>14}{:>14}{:>14}{:>10}", format!("{seconds} s"), "Mbyte", "RTT, ms", "window, B", "differs");
    let mut most = 0f64;
    for (who, (tracked, reference)) in ["existing", "new"].iter().zip(tracked.iter().zip(&reference)) {
        for (what, of) in [("tracked", tracked), ("not", reference)] {
            let (bytes, rtt) = (of.bytes / 1e6, 1e3 * of.rtt());
            print!("{who:<10}{bytes:>14.1}{rtt:>14.3}{:>14.0}", of.window());
            println!("{:>9.2}% {what}", 100.0 * of.differs(reference));
        }
        most = most.max(tracked.differs(reference));
    }
    println!("{gauges:?}");
    assert_eq!(gauges.refused, 0, "a connection was refused");
    assert!(most < 0.02, "transfers changed by {:.2} %", 100.0 * most);
}
