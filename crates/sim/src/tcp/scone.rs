//! Throughput advice at the two ends of a flow that stands for one of QUIC: the sender asks for it by SCONE packets, the
//! receiver reports what network elements made of their signals, and the sender keeps to the lowest.
//!
//! Source: draft-ietf-scone-protocol, sections "Monitoring Period", "Following Throughput Advice", "Providing
//! Opportunities to Apply Throughput Advice Signals", "Feedback To Sender About Signals".
//!
//! ```text
//! ask      with the first data segments, then with the first data segment after each interval
//! report   what came with a signal, in the next ACKs; a signal of 127 says nothing and is not reported
//! keep to  the lowest signal that was reported in the last monitoring period; without one, to nothing
//! ```
//!
//! The advice is a budget as in C²ML: the window of the congestion control is at most rate x round trip time.
//!
//! DIFFERENCE: the flow is TCP inside, with the recovery, the control and the header of 40 bytes and options of TCP. No
//! element of the network sees that header, so no window is rewritten and its SYN is not counted. Pinned by
//! `an_opaque_flow_shows_no_header`.
//! DIFFERENCE: a SCONE packet makes its datagram longer by [`SCONE_PACKET`] bytes; a sender of QUIC would shorten the data in it.
//! Pinned by `a_scone_packet_makes_its_datagram_longer`.
//! DIFFERENCE: the draft leaves to applications how advice comes back. Here the next [`REPORTS`] ACKs tell it, with
//! [`REPORT`] bytes each. Pinned by `a_report_survives_the_loss_of_an_ack`.
//! DIFFERENCE: the rate is held over each round trip and not only over the monitoring period, which the draft allows
//! ("over any time period up to 67 seconds"). Pinned by `the_lowest_advice_of_a_period_holds`.

use crate::segment::Segment;
#[cfg(doc)]
use crate::segment::{REPORT, SCONE_PACKET};
use penstock_core::advice::PERIOD;
use penstock_core::units::{Instant, Rate, Span};
use penstock_core::wire::scone::Signal;
use std::collections::VecDeque;

/// Number of data segments at the begin that carry a SCONE packet ("the first few UDP datagrams").
const FIRST: u8 = 3;
/// Number of ACKs that report a signal.
const REPORTS: u8 = 3;
/// Shortest and longest time between two SCONE packets: at least two in each monitoring period.
pub const INTERVALS: std::ops::RangeInclusive<Span> = Span::from_millis(100)..=Span::from_millis(33_500);

/// Both halves of an end of a flow with advice.
#[derive(Debug, Clone)]
pub struct Scone {
    interval: Span,
    /// Number of SCONE packets sent at the begin.
    begun: u8,
    /// When the next one is due.
    due: Instant,
    /// The last signal that came, its number, and how many more ACKs report it.
    heard: (Signal, u16),
    reports: u8,
    /// Number of the last report that came.
    reported: u16,
    /// What was reported in the last monitoring period, each with its time. Signals that are not below a later one are left
    /// out, so they rise.
    advice: VecDeque<(Instant, Signal)>,
}

impl Scone {
    /// Creates an end that asks every `interval`.
    pub fn new(interval: Span) -> Self {
        Self {
            interval,
            begun: 0,
            due: Instant::ZERO,
            heard: (Signal::UNKNOWN, 0),
            reports: 0,
            reported: 0,
            advice: VecDeque::new(),
        }
    }

    /// Adds to a segment that leaves at `now` what it is to carry, before its SACK blocks.
    pub fn leave(&mut self, segment: &mut Segment, now: Instant) {
        if segment.len > 0 && (self.begun < FIRST || now >= self.due) {
            self.begun = (self.begun + 1).min(FIRST);
            self.due = now + self.interval;
            segment.ask_for_advice();
        } else if segment.len == 0 && self.reports > 0 {
            self.reports -= 1;
            segment.report_advice(self.heard);
        }
    }

    /// Takes what a segment carries that arrived at `now`.
    pub fn arrive(&mut self, segment: &Segment, now: Instant) {
        if let Some(signal) = segment.rate_signal().filter(|signal| *signal != Signal::UNKNOWN) {
            self.heard = (signal, self.heard.1.wrapping_add(1));
            self.reports = REPORTS;
        }
        if let Some((signal, number)) = segment.reported_advice().filter(|(_, number)| *number != self.reported) {
            self.reported = number;
            while self.advice.pop_front_if(|(at, _)| now.since(*at) >= PERIOD).is_some() {}
            while self.advice.pop_back_if(|(_, before)| *before >= signal).is_some() {}
            self.advice.push_back((now, signal));
        }
    }

    /// Returns the rate to which the sender keeps; `None` if no advice holds.
    pub fn rate(&self, now: Instant) -> Option<Rate> {
        let lowest = self.advice.iter().find(|(at, _)| now.since(*at) < PERIOD);
        lowest.and_then(|(_, signal)| signal.rate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{REPORT, SCONE_PACKET};
    use penstock_core::packet::{Packet, TcpFlags};

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn data(len: u16) -> Segment {
        let mut segment = Segment::tcp(0, true, TcpFlags::ACK);
        segment.len = len;
        segment
    }

    /// A segment that leaves one end, is lowered to this signal on its way, and arrives at the other.
    fn goes(from: &mut Scone, to: &mut Scone, len: u16, lowered: u8, now: Instant) -> bool {
        let mut segment = data(len);
        from.leave(&mut segment, now);
        let asked = segment.rate_signal().is_some();
        segment.lower_rate_signal(Signal::new(lowered));
        to.arrive(&segment, now);
        asked
    }

    fn ends() -> [Scone; 2] {
        [Scone::new(Span::from_secs(20)), Scone::new(Span::from_secs(20))]
    }

    #[test]
    fn it_asks_at_the_begin_and_then_after_each_interval() {
        let [mut sender, mut receiver] = ends();
        let mut asked = Vec::new();
        for ms in (0..65_000).step_by(100) {
            if goes(&mut sender, &mut receiver, 1000, 127, at(ms)) {
                asked.push(ms);
            }
        }
        assert_eq!(asked, [0, 100, 200, 20_200, 40_200, 60_200]);
        assert!(!goes(&mut sender, &mut receiver, 0, 127, at(99_000)), "not without data");
    }

    /// Only the third of the ACKs arrives.
    #[test]
    fn a_report_survives_the_loss_of_an_ack() {
        let [mut sender, mut receiver] = ends();
        goes(&mut sender, &mut receiver, 1000, 40, at(0));
        let mut acks = [data(0), data(0), data(0), data(0)];
        acks.iter_mut().for_each(|ack| receiver.leave(ack, at(1)));
        assert_eq!(acks.map(|ack| ack.reported_advice().is_some()), [true, true, true, false]);
        sender.arrive(&acks[2], at(2));
        assert_eq!(sender.rate(at(2)), Some(Rate::from_bps(10_000_000)));
    }

    #[test]
    fn the_lowest_advice_of_a_period_holds() {
        let [mut sender, mut receiver] = ends();
        let mut told = |signal: u8, s: u64| {
            goes(&mut sender, &mut receiver, 1000, signal, at(1000 * s));
            let mut ack = data(0);
            receiver.leave(&mut ack, at(1000 * s));
            sender.arrive(&ack, at(1000 * s));
            sender.rate(at(1000 * s)).map(|rate| rate.as_bps() / 100_000)
        };
        assert_eq!(told(127, 0), None, "127 says nothing");
        assert_eq!([told(40, 1), told(20, 2), told(40, 22)], [Some(100), Some(10), Some(10)]);
        assert_eq!([told(40, 42), told(60, 68)], [Some(10), Some(10)]);
        assert_eq!(told(60, 88), Some(100), "67 s after the low one");
        assert_eq!(told(127, 134), Some(1000));
        assert_eq!(sender.rate(at(154_999)), Some(Rate::from_bps(100_000_000)));
        assert_eq!(sender.rate(at(155_000)), None, "a period without news is the end");
    }

    #[test]
    fn a_scone_packet_makes_its_datagram_longer() {
        let (mut asking, mut reporting) = (data(1448), data(0));
        asking.ask_for_advice();
        reporting.report_advice((Signal::new(7), 3));
        assert_eq!(asking.size().get(), data(1448).size().get() + u64::from(SCONE_PACKET));
        assert_eq!(reporting.size().get(), data(0).size().get() + u64::from(REPORT));
        assert_eq!(reporting.reported_advice(), Some((Signal::new(7), 3)));
        assert_eq!((asking.rate_signal(), asking.reported_advice()), (Some(Signal::UNKNOWN), None));
    }

    #[test]
    fn an_opaque_flow_shows_no_header() {
        let mut segment = data(1000);
        assert!(segment.tcp().is_some());
        segment.set_opaque();
        assert!(segment.tcp().is_none() && !segment.is_udp());
    }
}
