//! Reception of a stream of datagrams: one-way delay, jitter and loss.
//!
//! Source: RFC 3550 (§6.4.1 and A.8 for the interarrival jitter, A.3 for loss). A datagram carries the time at which it
//! was sent, in the fields which hold the timestamps of a TCP segment.
//!
//! A datagram that was sent after the last one that arrived may still be in transit; it does not count as lost (A.3
//! counts up to the highest number received).

use crate::quantiles::{MISSING, Quantiles, Times, equal_or_missing, round, same};
use crate::segment::{Payload, Segment};
use penstock_core::units::{Instant, Span};
use serde::Serialize;

/// Creates a datagram from the client that carries the time at which it was sent.
pub fn datagram(flow: u32, payload: Payload, now: Instant) -> Segment {
    let mut packet = Segment::udp(flow, true, payload);
    stamp(&mut packet, now);
    packet
}

/// Writes the time at which it is sent into a datagram.
pub fn stamp(datagram: &mut Segment, now: Instant) {
    (datagram.tsval, datagram.tsecr) = ((now.as_nanos() >> 32) as u32, now.as_nanos() as u32);
}

/// Returns the time at which a datagram was sent.
pub fn sent_at(packet: &Segment) -> Instant {
    Instant::from_nanos(u64::from(packet.tsval) << 32 | u64::from(packet.tsecr))
}

/// Knows a datagram again that comes twice. A link delivers a copy directly behind the datagram, so a few numbers are enough.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The number after the highest one.
    next: u64,
    /// The numbers before it that have come, the highest in the lowest bit.
    recent: u64,
    /// The last number that came.
    last: Option<u32>,
}

impl Seen {
    /// Notes a number; returns whether it is new.
    pub fn is_new(&mut self, seq: u32) -> bool {
        let again = self.last.replace(seq) == Some(seq);
        let number = u64::from(seq);
        if number >= self.next {
            self.recent = shifted(self.recent, number + 1 - self.next) | 1;
            self.next = number + 1;
            return true;
        }
        let place = self.next - 1 - number;
        let bit = shifted(1, place);
        let is_new = !again && self.recent & bit == 0;
        self.recent |= bit;
        is_new
    }
}

fn shifted(bits: u64, by: u64) -> u64 {
    if by < 64 { bits << by } else { 0 }
}

/// The receiving end of a stream of datagrams.
#[derive(Debug, Clone, Default)]
pub struct Reception {
    /// Number of datagrams that arrived.
    pub received: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// Their one-way delays.
    pub delay: Times,
    /// The times between two that arrived one after the other.
    pub gaps: Times,
    last_arrival: Instant,
    /// Number of datagrams up to the highest number that arrived.
    expected: u64,
    seen: Seen,
    last_transit: Span,
    /// Estimate J of RFC 3550, in nanoseconds.
    jitter_ns: f64,
    jitter_sum_ns: f64,
    jitter_max_ns: f64,
}

/// Interarrival jitter in milliseconds; missing if fewer than two packets arrived.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Jitter {
    /// Mean of the estimate J over all packets.
    #[schemars(with = "Option<f64>")]
    pub mean: f64,
    /// Largest value of the estimate.
    #[schemars(with = "Option<f64>")]
    pub max: f64,
    /// Value of the estimate at the end, which a receiver would report.
    #[schemars(with = "Option<f64>")]
    pub last: f64,
}

equal_or_missing!(Jitter: mean, max, last);

/// What became of the datagrams of a stream.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Delivery {
    /// Number of datagrams sent.
    pub sent: u64,
    /// Number of datagrams that arrived.
    pub received: u64,
    /// Number of datagrams lost, among those up to the last one that arrived.
    pub lost: u64,
    /// Share of datagrams lost, among those up to the last one that arrived; missing if none arrived.
    #[schemars(with = "Option<f64>")]
    pub loss: f64,
    /// One-way delays in milliseconds.
    pub delay_ms: Quantiles,
    /// Interarrival jitter in milliseconds.
    pub jitter_ms: Jitter,
}

impl PartialEq for Delivery {
    fn eq(&self, other: &Self) -> bool {
        let counts = |one: &Self| (one.sent, one.received, one.lost);
        counts(self) == counts(other)
            && same(self.loss, other.loss)
            && self.delay_ms == other.delay_ms
            && self.jitter_ms == other.jitter_ms
    }
}

impl Reception {
    /// Takes a datagram that arrived; returns its one-way delay, or `None` if it had arrived before.
    pub fn receive(&mut self, packet: &Segment, now: Instant) -> Option<Span> {
        if !self.seen.is_new(packet.seq) {
            return None;
        }
        let transit = now.since(sent_at(packet));
        if self.received > 0 {
            // RFC 3550 A.8; D is the difference of two transit times.
            let d = transit.as_nanos().abs_diff(self.last_transit.as_nanos()) as f64;
            self.jitter_ns += (d - self.jitter_ns) / 16.0;
            self.jitter_sum_ns += self.jitter_ns;
            self.jitter_max_ns = self.jitter_max_ns.max(self.jitter_ns);
            self.gaps.record(now.since(self.last_arrival));
        }
        self.last_arrival = now;
        self.last_transit = transit;
        self.received += 1;
        self.bytes += u64::from(packet.len);
        self.expected = self.expected.max(u64::from(packet.seq) + 1);
        self.delay.record(transit);
        Some(transit)
    }

    /// Returns the number of datagrams up to the highest number that arrived.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Returns what became of the datagrams, of which `sent` were sent.
    pub fn delivery(&self, sent: u64) -> Delivery {
        let lost = self.expected.saturating_sub(self.received);
        let ms = |ns: f64| if self.received > 1 { round(ns / 1e6) } else { MISSING };
        Delivery {
            sent,
            received: self.received,
            lost,
            loss: if self.expected > 0 { round(lost as f64 / self.expected as f64) } else { MISSING },
            delay_ms: self.delay.quantiles_ms(),
            jitter_ms: Jitter {
                mean: ms(self.jitter_sum_ns / self.received.saturating_sub(1).max(1) as f64),
                max: ms(self.jitter_max_ns),
                last: ms(self.jitter_ns),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Span::from_millis(n)
    }

    /// Datagrams are sent at 0, 20, 40, 60 and 80 ms, and the fourth is lost. With delays of 10, 26, 10 and 10 ms, D is
    /// 16, 16, 0 ms, so that J is 1, 1 + 15/16 and 31/16 - 31/256 ms.
    #[test]
    fn jitter_is_that_of_rfc_3550_and_loss_counts_the_gap() {
        let mut reception = Reception::default();
        for (seq, sent, arrived) in [(0, 0, 10), (1, 20, 46), (2, 40, 50), (4, 80, 90)] {
            reception.receive(&datagram(0, Payload { seq, len: 172 }, ms(sent)), ms(arrived));
        }
        let delivery = reception.delivery(5);
        assert_eq!((delivery.sent, delivery.received, delivery.lost, delivery.loss), (5, 4, 1, 0.2));
        let last = 31.0 / 16.0 - 31.0 / 256.0;
        assert_eq!(delivery.jitter_ms.last, round(last));
        assert_eq!(delivery.jitter_ms.max, round(31.0 / 16.0));
        assert_eq!(delivery.jitter_ms.mean, round((1.0 + 31.0 / 16.0 + last) / 3.0));
        assert_eq!((delivery.delay_ms.mean, delivery.delay_ms.max), (14.0, 26.0));
    }

    /// Each number comes twice: in order, after an overtaking, and one that is far behind.
    #[test]
    fn a_datagram_counts_once() {
        let mut seen = Seen::default();
        let came = [0, 0, 2, 2, 1, 1, 3, 1, 2, 200, 200, 150, 150, 4, 4];
        let new: Vec<u32> = came.into_iter().filter(|seq| seen.is_new(*seq)).collect();
        assert_eq!(new, [0, 2, 1, 3, 200, 150, 4]);
    }

    #[test]
    fn what_is_under_way_is_not_lost() {
        let mut reception = Reception::default();
        reception.receive(&datagram(0, Payload { seq: 0, len: 172 }, ms(0)), ms(10));
        assert_eq!((reception.delivery(3).lost, reception.delivery(3).sent), (0, 3));
        assert_eq!(reception.delivery(3).jitter_ms, Jitter { mean: MISSING, max: MISSING, last: MISSING });
        let silence = Reception::default().delivery(7);
        assert!(silence.loss.is_nan() && silence.delay_ms == Quantiles::MISSING, "{silence:?}");
    }

    /// The time survives even if it needs more than 32 bits of nanoseconds (4.3 s).
    #[test]
    fn a_datagram_knows_when_it_was_sent() {
        let late = Instant::from_nanos(86_400_000_000_123);
        assert_eq!(sent_at(&datagram(0, Payload { seq: 0, len: 1 }, late)), late);
    }
}
