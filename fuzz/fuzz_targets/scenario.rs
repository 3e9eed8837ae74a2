//! Any text as a scenario: no panic, and every refusal has a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_sim::scenario::Scenario;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(diagnosis) = Scenario::parse(text, "fuzz.toml") {
        assert!(!diagnosis.to_string().is_empty());
    }
});
