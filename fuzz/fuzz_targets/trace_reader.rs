//! Any bytes as a trace: no panic, and what is read satisfies the guarantees of `Arrivals`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_core::units::{Bytes, Instant};
use penstock_trace::arrival::{MAX_SIZE, MAX_TIME};
use penstock_trace::packets::Packets;
use penstock_trace::read::read;

fuzz_target!(|data: &[u8]| {
    let Ok(mut arrivals) = read(data) else { return };
    let (mut last, mut flows, mut ended) = (Instant::ZERO, 0, false);
    for arrival in arrivals.by_ref() {
        assert!(!ended, "nothing follows an error");
        let Ok(arrival) = arrival else {
            ended = true;
            continue;
        };
        assert!(last <= arrival.t && arrival.t <= MAX_TIME, "times are in order and within bounds");
        assert!(Bytes::ZERO < arrival.size && arrival.size <= MAX_SIZE, "sizes are within bounds");
        assert!(arrival.flow.0 <= flows, "flows are numbered in order of appearance");
        flows = flows.max(arrival.flow.0 + 1);
        last = arrival.t;
    }
    let notes = arrivals.notes();
    assert!(notes.not_ip + notes.untimed + notes.out_of_order <= notes.frames);
    if let Ok(packets) = read(data).and_then(Packets::of) {
        assert!(packets.columns.iter().all(|column| column.len() == packets.t_ns.len()), "columns are of equal length");
    }
});
