//! Drives a control alone: a fixed round trip time, one ACK per segment, one loss per `1/p` segments.

use super::{Ack, CongestionControl, Loss, Setup};
use crate::units::{Instant, Span};

pub const MSS: u64 = 1000;
pub const SETUP: Setup = Setup { mss: MSS, initial_window: 10 * MSS };

pub fn ack(acked: u64, rtt_ms: u64) -> Ack {
    let rtt = Span::from_millis(rtt_ms);
    Ack { now: Instant::ZERO, acked, rtt: Some(rtt), srtt: rtt, min_rtt: rtt, in_flight: u64::MAX, cwnd_limited: true }
}

pub fn loss(in_flight: u64) -> Loss {
    Loss { now: Instant::ZERO, in_flight, ecn: false }
}

/// Acknowledges one window, spread evenly over a round trip that begins at `now`; gives its end.
pub fn round_trip_from(cc: &mut impl CongestionControl, now: Instant, rtt_ms: u64) -> Instant {
    let segments = cc.cwnd() / MSS;
    let rtt = Span::from_millis(rtt_ms);
    for i in 0..segments {
        cc.on_ack(&Ack { now: now + rtt.div(segments) * i, ..ack(MSS, rtt_ms) });
    }
    now + rtt
}

pub fn round_trip(cc: &mut impl CongestionControl, rtt_ms: u64) {
    round_trip_from(cc, Instant::ZERO, rtt_ms);
}

/// The mean window in segments over many losses, one after every `1/p` segments, without the first ten.
pub fn mean_window(cc: &mut impl CongestionControl, p: f64, rtt_ms: u64) -> f64 {
    let per_loss = (1.0 / p) as u64;
    let (mut now, mut sent, mut losses) = (Instant::ZERO, 0, 0);
    let (mut windows, mut rounds) = (0.0, 0.0);
    while losses < 60 {
        let segments = cc.cwnd() / MSS;
        now = round_trip_from(cc, now, rtt_ms);
        if losses >= 10 {
            windows += segments as f64;
            rounds += 1.0;
        }
        sent += segments;
        if sent >= per_loss {
            sent -= per_loss;
            losses += 1;
            let signal = Loss { now, ..loss(cc.cwnd()) };
            cc.on_loss(&signal);
            cc.on_recovered(now);
        }
    }
    windows / rounds
}
