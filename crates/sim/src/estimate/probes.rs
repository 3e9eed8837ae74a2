//! The probes of a gateway whose law measures delays by itself: datagrams to a reflector behind the link, and its answers. They are
//! packets like others, and wait in the queues of shapers, modem and provider.
//!
//! Each carries what a timestamp of ICMP or of `irtt` tells, in microseconds: an answer has the delay of the probe, and when it
//! was sent itself.

use crate::segment::{Payload, Segment};
use penstock_core::units::{Instant, Span};
use std::collections::VecDeque;

/// Payload of a probe: with the headers of IP and UDP it has 64 bytes.
const PAYLOAD: u16 = 36;
/// From the end of the link to the reflector, and the same back.
const BEYOND: Span = Span::from_millis(10);

/// The probes of one gateway.
#[derive(Debug)]
pub struct Probes {
    /// Routes to the end of the link, and from there.
    routes: [u32; 2],
    /// Probes that were sent.
    sent: u32,
    /// Answers that are on their way to the link, and when they come to it.
    answers: VecDeque<(Instant, Segment)>,
}

fn micros(at: Instant) -> u32 {
    (at.as_nanos() / 1000) as u32
}

impl Probes {
    /// Creates the probes for these routes: to the end of the link, and from there.
    pub fn new(routes: [u32; 2]) -> Self {
        Self { routes, sent: 0, answers: VecDeque::new() }
    }

    /// Makes the next probe, which carries this number of its owner.
    pub fn probe(&mut self, number: u32, now: Instant) -> Segment {
        self.sent = self.sent.wrapping_add(1);
        let mut packet = Segment::udp(number, true, Payload { seq: self.sent, len: PAYLOAD });
        (packet.cursor, packet.at, packet.tsval) = (self.routes[0], now, micros(now));
        packet
    }

    /// Takes a probe at the end of the link; the reflector answers.
    pub fn reflect(&mut self, probe: &Segment, now: Instant) {
        let there = now + BEYOND;
        let mut packet = Segment::udp(probe.flow, false, Payload { seq: probe.seq, len: PAYLOAD });
        (packet.cursor, packet.at) = (self.routes[1], there + BEYOND);
        (packet.tsval, packet.tsecr) = (micros(there), micros(there).wrapping_sub(probe.tsval));
        self.answers.push_back((packet.at, packet));
    }

    /// Returns when the next answer comes to the link; [`Instant::MAX`] if none is on its way.
    pub fn due(&self) -> Instant {
        self.answers.front().map_or(Instant::MAX, |(at, _)| *at)
    }

    /// Returns an answer that comes to the link now.
    pub fn answer(&mut self, now: Instant) -> Option<Segment> {
        if self.due() > now {
            return None;
        }
        self.answers.pop_front().map(|(_, packet)| packet)
    }
}

/// Returns the delays that an answer tells: of its own way in, and of the probe's way out.
pub fn delays(answer: &Segment, now: Instant) -> [Span; 2] {
    [micros(now).wrapping_sub(answer.tsval), answer.tsecr].map(|us| Span::from_micros(u64::from(us)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::packet::Packet;

    /// A probe waits for 7 ms before the end of the link, its answer for 5 ms: with the way to the reflector these are 17 and 15 ms.
    #[test]
    fn an_answer_tells_both_delays() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut probes = Probes::new([3, 8]);
        let probe = probes.probe(2, at(1000));
        assert_eq!((probe.size().get(), probe.cursor, probe.flow, probe.from_client()), (64, 3, 2, true));
        probes.reflect(&probe, at(1007));
        assert_eq!((probes.due(), probes.answer(at(1026))), (at(1027), None));
        let answer = probes.answer(at(1027)).unwrap();
        assert_eq!((answer.size().get(), answer.cursor, answer.seq, answer.from_client()), (64, 8, 1, false));
        assert_eq!(delays(&answer, at(1032)), [15, 17].map(Span::from_millis));
        assert_eq!(probes.due(), Instant::MAX);
    }

    /// After 4295 s the microseconds begin again.
    #[test]
    fn delays_are_right_when_timestamps_begin_anew() {
        let start = Instant::ZERO + Span::from_micros((1 << 32) - 5_000);
        let mut probes = Probes::new([0, 0]);
        let probe = probes.probe(0, start);
        probes.reflect(&probe, start + Span::from_millis(3));
        let answer = probes.answer(Instant::MAX).unwrap();
        assert_eq!(delays(&answer, start + Span::from_millis(24)), [11, 13].map(Span::from_millis));
    }
}
