//! How well a telephone call would sound: an estimate from what the packets of calls wait and lose here, and from the
//! round trips of the link.
//!
//! Packets of calls are UDP with the DSCP of expedited forwarding (EF, RFC 3246) or of admitted voice (RFC 5865), which
//! phones set. The estimate is the E-model of [`penstock_core::emodel`], for G.711. Mouth to ear are a packet of speech,
//! half of both halves of the round trip as TCP shows them (nothing if they are not known), and the delay until which a
//! receiver waits for packets. Later ones are lost to it; the delay is the one that gives the best rating, as in the
//! simulator. So it is an upper bound for real phones, and no measurement of one.

use penstock_core::emodel::{PACKET_TIME, mos, rating};
use penstock_core::units::{Instant, Span};
use penstock_core::wire::{Headers, IpVersion, Transport};
use penstock_net::direction::Direction;
use serde::Serialize;

/// The estimate is of the packets of one to two windows.
const WINDOW: Span = Span::from_secs(10);
/// The code points of calls: expedited forwarding, and voice that was admitted.
const CALLS: [u8; 2] = [46, 44];

/// The times in milliseconds for which a receiver may wait for packets that were in the queue here.
const WAITS_MS: [u64; 16] = [1, 2, 5, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 500];

/// Returns whether a packet is one of a call.
pub fn is_call(bytes: &[u8], headers: &Headers) -> bool {
    let class = match (headers.version, bytes) {
        (IpVersion::V4, [_, class, ..]) => *class,
        (IpVersion::V6, [first, second, ..]) => first << 4 | second >> 4,
        _ => return false,
    };
    matches!(headers.transport, Transport::Udp { .. }) && CALLS.contains(&(class >> 2))
}

/// What became of packets of calls in a window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Counts {
    /// Number of packets that waited up to each of [`WAITS_MS`] and longer than the one before; the last waited longest.
    waited: [u64; WAITS_MS.len() + 1],
    dropped: u64,
}

impl Counts {
    fn and(&self, other: &Self) -> Self {
        Self {
            waited: std::array::from_fn(|at| self.waited[at] + other.waited[at]),
            dropped: self.dropped + other.dropped,
        }
    }
}

/// What the status tells of the calls of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Call {
    /// Number of their packets in the last 10 to 20 s.
    pub packets: u64,
    /// Share of these that were dropped here.
    pub lost: f64,
    /// Share that waited too long to be heard.
    pub late: f64,
    /// Estimated delay from mouth to ear in milliseconds.
    pub delay_ms: f64,
    /// Estimated mean opinion score of a call, 1 to 4.5.
    pub mos_estimate: f64,
}

/// Counts the packets of calls.
#[derive(Debug, Default)]
pub struct Calls {
    /// The present window and the one before, of both directions.
    windows: [[Counts; 2]; 2],
    due: Instant,
}

impl Calls {
    /// A packet of a call went on after this time here.
    pub fn passed(&mut self, direction: Direction, waited: Span) {
        let at = WAITS_MS.partition_point(|bound| Span::from_millis(*bound) < waited);
        self.windows[0][direction.index()].waited[at] += 1;
    }

    /// A packet of a call was dropped here.
    pub fn dropped(&mut self, direction: Direction) {
        self.windows[0][direction.index()].dropped += 1;
    }

    /// Begins a new window if it is time.
    pub fn tick(&mut self, now: Instant) {
        if now >= self.due {
            self.windows = [Default::default(), self.windows[0]];
            self.due = now + WINDOW;
        }
    }

    /// Estimates the calls of a direction, if there are packets of some. `trip` is the round trip that is known, without the
    /// queue here.
    pub fn estimate(&self, direction: Direction, trip: Option<Span>) -> Option<Call> {
        let [now, before] = &self.windows;
        let counts = now[direction.index()].and(&before[direction.index()]);
        let packets = counts.waited.iter().sum::<u64>() + counts.dropped;
        let share = |part: u64| part as f64 / packets.max(1) as f64;
        let lost = share(counts.dropped);
        let rest = PACKET_TIME + Span::from_nanos(trip.map_or(0, Span::as_nanos) / 2);
        let until = |at: usize| {
            let late = share(counts.waited[at + 1..].iter().sum());
            let delay = rest + Span::from_millis(WAITS_MS[at]);
            (delay, late, rating(delay, lost + late))
        };
        let best = (0..WAITS_MS.len()).map(until).max_by(|a, b| a.2.total_cmp(&b.2));
        let told = |(delay, late, r): (Span, f64, f64)| Call {
            packets,
            lost,
            late,
            delay_ms: delay.as_millis_f64(),
            mos_estimate: mos(r),
        };
        best.filter(|_| packets > 0).map(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Forward, Reverse};

    fn datagram(first: u8, second: u8, protocol: u8) -> Vec<u8> {
        let mut bytes = vec![0; 60];
        (bytes[0], bytes[1]) = (first, second);
        if first >> 4 == 4 {
            (bytes[3], bytes[9], bytes[25]) = (60, protocol, 40);
        } else {
            (bytes[5], bytes[6], bytes[45]) = (20, protocol, 20);
        }
        bytes
    }

    #[test]
    fn packets_of_calls_are_known_by_their_code_point() {
        let is = |first, second, protocol| {
            let bytes = datagram(first, second, protocol);
            is_call(&bytes, &Headers::parse(&bytes))
        };
        assert!(is(0x45, 46 << 2, 17) && is(0x45, 46 << 2 | 3, 17) && is(0x45, 44 << 2, 17));
        assert!(is(0x60 | 46 >> 2, (46 & 3) << 6, 17), "the class of IPv6 stands across two bytes");
        assert!(!is(0x45, 0, 17) && !is(0x45, 46 << 2, 47) && !is(0x60, 46 << 2, 17));
        assert!(!is_call(&[0x45], &Headers::parse(&[0x45])));
    }

    /// 99 packets within 5 ms and one dropped, 60 ms of round trip: 20 + 30 + 5 ms and 1 % of loss.
    #[test]
    fn the_estimate_is_that_of_the_model() {
        let mut calls = Calls::default();
        (0..99).for_each(|_| calls.passed(Forward, Span::from_millis(4)));
        calls.dropped(Forward);
        let call = calls.estimate(Forward, Some(Span::from_millis(60))).unwrap();
        assert_eq!((call.packets, call.lost, call.late, call.delay_ms), (100, 0.01, 0.0, 55.0));
        // R = 93.2 - 0.024 * 55 - 95 / 26.1 = 88.24
        assert!((call.mos_estimate - mos(88.24)).abs() < 1e-3, "{call:?}");
        assert_eq!(calls.estimate(Reverse, None), None);
        for s in [0, 10, 20, 30] {
            calls.tick(Instant::ZERO + Span::from_secs(s));
        }
        assert_eq!(calls.estimate(Forward, None), None, "the last window was empty");
    }

    /// To wait 150 ms for half of the packets costs less than to lose them; to wait 2 s for one of a hundred costs more.
    #[test]
    fn a_receiver_waits_for_what_is_worth_it() {
        let mut calls = Calls::default();
        (0..99).for_each(|n| calls.passed(Reverse, Span::from_millis(if n % 2 == 0 { 3 } else { 150 })));
        calls.passed(Reverse, Span::from_millis(1900));
        let call = calls.estimate(Reverse, None).unwrap();
        assert_eq!((call.delay_ms, call.late), (170.0, 0.01));
    }
}
