//! What a data packet of a hosted stack costs: `cargo run --release -p penstock-stacks --example stack_cost`.
//!
//! 50 connections of quinn and 50 of TCP share a link of 1 Gbit/s for a second; then TCP has it alone. Printed are CPU
//! seconds per data packet, the median of five runs each.

use penstock_core::foreign::Own;
use penstock_core::units::Span;
use penstock_sim::{Scenario, Simulation};
use penstock_stacks::quinn::Quinn;
use std::time::Instant;

const HEAD: &str = "duration = \"2s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"1Gbit/s\"\ndelay = \"5ms\"\nlimit = \"1000p\"\n\
                    [aqm]\nname = \"fq-codel\"\n[tcp]\ncc = \"cubic\"\n";
const THEIRS: &str = "[[flows]]\nkind = \"stack\"\nstack = \"quinn\"\ncount = 50\n";
const OURS: &str = "[[flows]]\nkind = \"bulk\"\ncount = 50\n";

/// Returns the seconds that a run takes, and its data packets: of hosted stacks, and of all.
fn run(flows: &str) -> (f64, u64, u64) {
    let own = Own::new().with_stack("quinn", Quinn::default());
    let scenario = Scenario::parse_with(&format!("{HEAD}{flows}"), "cost.toml", &own).unwrap_or_else(|e| panic!("{e}"));
    let mut run = Simulation::new(&scenario);
    let begun = Instant::now();
    run.advance(Span::MAX).unwrap_or_else(|e| panic!("{e}"));
    let took = begun.elapsed().as_secs_f64();
    let summary = run.summary();
    let of_stacks = summary.flows.iter().filter(|flow| flow.kind == "stack").map(|flow| flow.delivered_bytes / 1400);
    (took, of_stacks.sum(), summary.bottlenecks[0].packets)
}

fn median(flows: &str) -> (f64, u64, u64) {
    let mut runs: Vec<_> = (0..5).map(|_| run(flows)).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    runs[2]
}

fn main() {
    let (ours_took, _, ours_packets) = median(&OURS.repeat(2));
    let ours = 1e6 * ours_took / ours_packets as f64;
    println!("TCP alone, 100 connections: {ours:.2} us per data packet ({ours_packets} in {ours_took:.3} s)");
    let (took, theirs, packets) = median(&format!("{THEIRS}{OURS}"));
    let both = 1e6 * took / packets as f64;
    let of_theirs = (took * 1e6 - ours * (packets - theirs) as f64) / theirs as f64;
    println!("50 of quinn and 50 of TCP: {both:.2} us per data packet ({packets} in {took:.3} s)");
    println!("a packet of quinn, with its part of an ACK: {of_theirs:.2} us");
}
