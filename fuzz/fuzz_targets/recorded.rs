//! Any text as a recorded link: no panic, every refusal has a message, and a series that is read is in order and within
//! bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_core::units::{Rate, Span};
use penstock_trace::recorded::{mahimahi, table};
use penstock_trace::series::{Series, Way};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // Bins and periods have many different lengths.
    let length = Span::from_millis(1 + data.len() as u64 * 7 % 1000);
    let tables = [(Some(length), Way::Forward), (None, Way::Reverse), (None, Way::Both)];
    let tables = tables.map(|(every, way)| table(text, "fuzz", every, way));
    for read in [mahimahi(text, "fuzz", length)].into_iter().chain(tables) {
        match read {
            Ok(series) => holds(series, length),
            Err(mistake) => assert!(mistake.to_string().starts_with("fuzz:"), "{mistake}"),
        }
    }
});

fn holds(series: Series, since: Span) {
    for series in [series.clone(), series.entered(since)] {
        assert!(!series.points().is_empty(), "there is something to play");
        assert!(series.points().is_sorted_by(|a, b| a.at < b.at), "times are in order");
        for point in series.points() {
            assert!(series.every().is_none_or(|every| point.at < every), "a round ends after its last point");
            assert!(point.values.rate.is_none_or(|rate| rate <= Rate::from_bps(1_000_000_000_000)));
            assert!(point.values.delay.is_none_or(|delay| delay <= Span::from_secs(600)));
            assert!(point.values.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)));
        }
    }
}
