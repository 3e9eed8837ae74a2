//! Drives a control without an endpoint, for tests: a fixed round trip time, one ACK per segment, one loss per `1/p`
//! segments.

use super::{Ack, CongestionControl, Loss, Setup};
use crate::units::{Bytes, Instant, Span};

pub const MSS: Bytes = Bytes::new(1000);
pub const SETUP: Setup =
    Setup { mss: MSS, initial_window: Bytes::new(10_000), initial_ssthresh: Bytes::MAX, paced: false, seed: 1 };

pub fn ack(acked: Bytes, rtt_ms: u64) -> Ack {
    let rtt = Span::from_millis(rtt_ms);
    Ack {
        now: Instant::ZERO,
        acked,
        rtt: Some(rtt),
        srtt: rtt,
        min_rtt: rtt,
        in_flight: Bytes::MAX,
        cwnd_limited: true,
        delivered: Bytes::ZERO,
        marked: Bytes::ZERO,
        rate: None,
    }
}

pub fn loss(in_flight: Bytes) -> Loss {
    Loss { now: Instant::ZERO, in_flight, ecn: false }
}

/// Acknowledges one window, spread evenly over a round trip that begins at `now`. Returns the end of the round trip.
pub fn round_trip_from(cc: &mut impl CongestionControl, now: Instant, rtt_ms: u64) -> Instant {
    let cwnd = cc.cwnd();
    let segments = cwnd / MSS;
    let rtt = Span::from_millis(rtt_ms);
    for i in 0..segments {
        cc.on_ack(&Ack { now: now + rtt.div(segments) * i, in_flight: cwnd, ..ack(MSS, rtt_ms) });
    }
    now + rtt
}

pub fn round_trip(cc: &mut impl CongestionControl, rtt_ms: u64) {
    round_trip_from(cc, Instant::ZERO, rtt_ms);
}

const MEASURED: u64 = 40;

/// Mean window over time in segments (the segments delivered per round trip) with one loss after every `1/p` segments.
/// The first `settling` periods between losses are not measured.
pub fn mean_window_after(settling: u64, cc: &mut impl CongestionControl, p: f64, rtt_ms: u64) -> f64 {
    let per_loss = (1.0 / p).round() as u64;
    let rtt = Span::from_millis(rtt_ms).as_secs_f64();
    let (mut now, mut begin) = (Instant::ZERO, Instant::ZERO);
    for period in 0..settling + MEASURED {
        if period == settling {
            begin = now;
        }
        for _ in 0..per_loss {
            let cwnd = cc.cwnd();
            now += Span::from_secs_f64(rtt * MSS.as_f64() / cwnd.as_f64());
            cc.on_ack(&Ack { now, in_flight: cwnd, ..ack(MSS, rtt_ms) });
        }
        cc.on_loss(&Loss { now, ..loss(cc.cwnd()) });
        cc.on_recovered(now);
    }
    (MEASURED * per_loss) as f64 * rtt / now.since(begin).as_secs_f64()
}

pub fn mean_window(cc: &mut impl CongestionControl, p: f64, rtt_ms: u64) -> f64 {
    mean_window_after(20, cc, p, rtt_ms)
}

/// Mean window of AIMD(1, 1/2) in segments by the square root law.
pub fn reno_law(p: f64) -> f64 {
    (1.5 / p).sqrt()
}

pub fn assert_close(got: f64, expected: f64, tolerance: f64) {
    assert!((got / expected - 1.0).abs() < tolerance, "{got} segments, the law says {expected}");
}
