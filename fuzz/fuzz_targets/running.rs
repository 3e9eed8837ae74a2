//! Any text as a scenario that runs, for as long as its fastest link takes for some thousand packets: no panic, counters that
//! add up, a summary in which every number is one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_core::units::{Rate, Span};
use penstock_sim::scenario::Scenario;
use penstock_sim::{Broken, Simulation};
use serde_json::Value;

/// Bits that the fastest sender or link of a run may carry.
const BITS: u64 = 5_000 * 12_000;
const MOST_FLOWS: u64 = 200;
const MOST_TEXT: usize = 16_384;

/// The highest of all rates that a scenario names.
fn fastest(resolved: &str) -> Rate {
    let rates = resolved.split('"').filter_map(|word| word.parse::<Rate>().ok());
    rates.max().unwrap_or(Rate::from_bps(1))
}

/// Keys of a summary that may have no value. A number that is none becomes `null` in JSON, at any key.
const MAY_BE_NULL: [&str; 7] =
    ["bursts", "completion_s", "cooperation", "ecn_lost_why", "handovers", "policed", "reordered"];

fn numbers_are_numbers(key: &str, value: &Value) {
    match value {
        Value::Null => assert!(MAY_BE_NULL.contains(&key), "{key} is no number"),
        Value::Array(items) => items.iter().for_each(|item| numbers_are_numbers(key, item)),
        Value::Object(keys) => keys.iter().for_each(|(key, value)| numbers_are_numbers(key, value)),
        _ => {}
    }
}

fuzz_target!(|data: &[u8]| {
    let Some(text) = std::str::from_utf8(data).ok().filter(|text| text.len() <= MOST_TEXT) else { return };
    let Ok(mut scenario) = Scenario::parse(text, "fuzz.toml") else { return };
    if scenario.flows.iter().fold(0, |sum: u64, flow| sum.saturating_add(flow.count)) > MOST_FLOWS {
        return;
    }
    let resolved = scenario.resolved();
    let again = Scenario::parse(&resolved, "resolved.toml").expect("what is written is read");
    assert_eq!(again.resolved(), resolved);
    let nanos = BITS.saturating_mul(1_000_000_000) / fastest(&resolved).as_bps().max(1);
    scenario.duration = scenario.duration.min(Span::from_nanos(nanos));
    scenario.warmup = scenario.warmup.min(scenario.duration.div(2));
    let mut simulation = Simulation::new(&scenario);
    match simulation.advance(scenario.duration) {
        Ok(_) | Err(Broken::MaxQueue { .. } | Broken::NoDrops { .. }) => {}
        Err(broken) => panic!("{broken}"),
    }
    numbers_are_numbers("", &serde_json::to_value(simulation.summary()).expect("a summary is JSON"));
});
