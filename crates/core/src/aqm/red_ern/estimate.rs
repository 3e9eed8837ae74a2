//! Passive estimation (document 003 §V): the window and the round trip of each flow as a gateway sees them, once per round
//! trip, in place of what its sender would announce. No host takes part.
//!
//! ```text
//! rtt   = WAN half, smoothed (srtt of RFC 6298 §2) + LAN half, smallest      both from `rtt.rs`
//! cwnd  = new bytes that passed in an interval * rtt / length of the interval
//! ```
//!
//! An interval begins with new data and ends with the first new data after `rtt`: that packet carries the rate, as an
//! ERN-packet would. What a sender has in flight it sends once in each round trip, so `cwnd` is its window if it has
//! enough to send, and what it uses of it otherwise. `rtt` includes the queue at this gateway, as the sender's own does.
//!
//! A flow is in slow start, as its sender is, until one sees otherwise:
//!
//! | what is seen | from then on |
//! |---|---|
//! | the connection opens | slow start, without a threshold |
//! | new data after 2 round trips without data: a pause | slow start, up to the threshold before |
//! | old data after 2 round trips without data: a timeout | slow start, up to `max(cwnd / 2, 2 segments)` (RFC 5681 eq. 4) |
//! | `cwnd` is at the threshold, or at most 5/4 of that in the interval before | ERN-capable |
//!
//! Slow start lets a window grow by half (an ACK for two segments, which counts once) or to twice in a round trip,
//! congestion avoidance by a segment: 5/4 is between them for windows from four segments on.
//!
//! State: 104 bytes per flow. Cost: O(1) per segment.

use super::Sort;
use crate::fact::Fact;
use crate::packet::{FlowId, RateNotice, TcpFlags, TcpView};
use crate::rtt::RttProbe;
use crate::units::{Bytes, Instant, Span};

/// Flows beyond this index have no state: they are judged as flows that are not ERN-capable.
const MAX_FLOWS: usize = 1 << 20;
/// Without data for so many round trips a flow has paused, or its sender has waited for a timeout.
const SILENT_TRIPS: u64 = 2;
/// The smoothed round trip time takes this part of a new sample (RFC 6298 §2: alpha is 1/8).
const ALPHA: u64 = 8;

#[derive(Debug, Clone, Default, PartialEq)]
struct Flow {
    probe: RttProbe,
    /// The smoothed WAN half; zero before the first sample.
    wan: Span,
    /// When the interval began; `measuring` tells whether there is one.
    since: Instant,
    /// When data passed last.
    last: Instant,
    /// Sequence number with which the interval began.
    from: u32,
    /// Bytes per round trip in the last interval; 0 if there was none.
    window: u32,
    /// The window in bytes at which slow start ends; 0 if no timeout has told it.
    threshold: u32,
    /// The largest payload in bytes.
    segment: u16,
    measuring: bool,
    /// The flow is not in slow start.
    capable: bool,
}

const _: () = assert!(size_of::<Flow>() <= 104, "the documentation says 104 bytes per flow");

impl Flow {
    /// Returns the round trip time of the sender; `None` until both halves are known.
    fn rtt(&self) -> Option<Span> {
        let (wan, lan) = (self.probe.wan()?, self.probe.lan()?);
        Some(if self.wan == Span::ZERO { wan } else { self.wan } + lan)
    }

    /// Forgets what was measured of the window, for a connection that opens.
    fn open(&mut self) {
        *self = Self { probe: std::mem::take(&mut self.probe), ..Self::default() };
    }

    fn smooth(&mut self, sample: Span) {
        let (old, new) = (self.wan.as_nanos(), sample.as_nanos());
        self.wan = if old == 0 { sample } else { Span::from_nanos(old - old / ALPHA + new / ALPHA) };
    }

    /// Takes data, and returns what the packet is; `new_from` is where they begin if all of them are new.
    fn judge(&mut self, new_from: Option<u32>, now: Instant) -> Sort {
        let silent = now.since(std::mem::replace(&mut self.last, now));
        let Some(rtt) = self.rtt() else { return Sort::Plain };
        if silent.as_nanos() > SILENT_TRIPS * rtt.as_nanos() {
            self.slow_start(new_from.is_none());
        }
        match new_from {
            Some(from) if !self.measuring => {
                (self.since, self.from, self.measuring) = (now, from, true);
                self.between()
            }
            Some(from) if now.since(self.since) >= rtt => self.measure(from, rtt, now),
            _ => self.between(),
        }
    }

    /// Notes that the sender is in slow start again. With a threshold of two segments it leaves that with the first ACK.
    fn slow_start(&mut self, after_timeout: bool) {
        let least = 2 * u32::from(self.segment);
        if after_timeout {
            self.threshold = least.max(self.window / 2);
        }
        self.capable = after_timeout && self.threshold == least;
        (self.measuring, self.window) = (false, 0);
    }

    /// Ends the interval and begins another one.
    fn measure(&mut self, from: u32, rtt: Span, now: Instant) -> Sort {
        let bytes = f64::from(from.wrapping_sub(self.from));
        let window = (bytes * rtt.as_secs_f64() / now.since(self.since).as_secs_f64()) as u32;
        let before = std::mem::replace(&mut self.window, window);
        let at_threshold = self.threshold > 0 && window.saturating_add(u32::from(self.segment) / 2) >= self.threshold;
        self.capable |= at_threshold || before > 0 && window <= before.saturating_add(before / 4);
        (self.since, self.from) = (now, from);
        if self.capable { Sort::Rate(RateNotice::new(Bytes::new(window.into()), rtt)) } else { Sort::Plain }
    }

    /// Returns what a packet is that does not end an interval.
    fn between(&self) -> Sort {
        if self.capable { Sort::Capable } else { Sort::Plain }
    }
}

/// The flows whose rates are estimated.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Estimator {
    flows: Vec<Flow>,
    /// The segment that was shown last, which is about to arrive at the queue.
    shown: Option<(FlowId, Sort)>,
}

impl Estimator {
    pub const BYTES_PER_FLOW: usize = size_of::<Flow>();

    pub fn memory(&self) -> Bytes {
        Bytes::new((self.flows.capacity() * size_of::<Flow>()) as u64)
    }

    fn flow(&mut self, id: FlowId) -> Option<&mut Flow> {
        let index = id.0 as usize;
        if index >= self.flows.len() && index < MAX_FLOWS {
            if index >= self.flows.capacity() {
                // An eighth more than needed; the default growth would double the table.
                self.flows.reserve_exact(index + 1 - self.flows.len() + index / 8);
            }
            self.flows.resize_with(index + 1, Flow::default);
        }
        self.flows.get_mut(index)
    }

    /// Returns what an arriving packet of a flow is. A packet that was not shown is of a flow that is not ERN-capable.
    pub fn sort(&mut self, flow: FlowId) -> Sort {
        self.shown.take().filter(|(shown, _)| *shown == flow).map_or(Sort::Plain, |(_, sort)| sort)
    }

    pub fn outbound<S: TcpView>(&mut self, segment: &S, now: Instant) {
        let Some(flow) = self.flow(segment.flow()) else {
            self.shown = None;
            return;
        };
        if opens(segment) {
            flow.open();
        }
        let sent = flow.probe.outbound_end();
        flow.probe.outbound(segment, now);
        let is_data = segment.payload_len() > 0 && !segment.flags().has(TcpFlags::SYN);
        let first = segment.seq();
        let new_from = sent.is_none_or(|sent| first.wrapping_sub(sent) as i32 >= 0).then_some(first);
        let sort = if is_data {
            flow.segment = flow.segment.max(segment.payload_len().min(u16::MAX.into()) as u16);
            flow.judge(new_from, now)
        } else {
            Sort::Plain
        };
        self.shown = Some((segment.flow(), sort));
    }

    pub fn inbound<S: TcpView>(&mut self, segment: &S, now: Instant) {
        let Some(flow) = self.flow(segment.flow()) else { return };
        if opens(segment) {
            flow.open();
        }
        if let Some(sample) = flow.probe.inbound(segment, now) {
            flow.smooth(sample);
        }
    }

    pub fn on_fact(&mut self, fact: &Fact) {
        match fact {
            Fact::FlowGone(gone) => {
                if let Some(flow) = self.flows.get_mut(gone.0 as usize) {
                    *flow = Flow::default();
                }
            }
            Fact::Opened(opening) => {
                let Some(flow) = self.flow(opening.flow) else { return };
                let (inside, outside) = opening.sides();
                if flow.probe.outbound_end().is_some() {
                    flow.probe.pass_unseen(inside.end, outside.end);
                } else {
                    let (wan, lan) = opening.halves();
                    flow.probe = RttProbe::continued(wan, lan, inside.end, outside.end);
                }
            }
            _ => {}
        }
    }
}

fn opens<S: TcpView>(segment: &S) -> bool {
    segment.flags().has(TcpFlags::SYN) && !segment.flags().has(TcpFlags::ACK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::{Greeting, Opening};
    use crate::packet::PlainSegment;

    const FLOW: FlowId = FlowId(3);
    const MSS: u32 = 1000;
    const MS: u64 = 1_000_000;
    /// Halves of the round trip, before and behind the gateway.
    const LAN: u64 = 30 * MS;
    const WAN: u64 = 70 * MS;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }
    fn segment(flags: TcpFlags, seq: u32, ack: u32, payload_len: u32) -> PlainSegment {
        PlainSegment { seq, ack, payload_len, ..PlainSegment::new(FLOW, flags) }
    }

    /// A sender on one side of the gateway that keeps a window in flight, and a receiver on the other.
    struct Path {
        estimator: Estimator,
        /// Data on the way to the gateway and acknowledgment numbers on the way to it, by time.
        data: Vec<(u64, u32)>,
        acks: Vec<(u64, u32)>,
        sent: u32,
        acked: u32,
        /// An ACK is for this many segments.
        per_ack: u32,
        received: u32,
        told: Vec<(u64, Sort)>,
    }

    impl Path {
        /// After a handshake, which the gateway sees.
        fn new(per_ack: u32) -> Self {
            let mut estimator = Estimator::default();
            let syn_ack = TcpFlags::SYN.with(TcpFlags::ACK);
            estimator.outbound(&segment(TcpFlags::SYN, 0, 0, 0), at(0));
            estimator.inbound(&segment(syn_ack, 0, 1, 0), at(WAN));
            estimator.outbound(&segment(TcpFlags::ACK, 1, 1, 0), at(WAN + LAN));
            Self { estimator, data: vec![], acks: vec![], sent: 1, acked: 1, per_ack, received: 0, told: vec![] }
        }

        /// Sends as the window allows, at `now` at the sender; segments leave 10 us apart.
        fn send(&mut self, window: u32, now: u64) {
            let mut leaves = now;
            while self.sent - self.acked < window * MSS {
                self.data.push((leaves + LAN / 2, self.sent));
                self.sent += MSS;
                leaves += 10_000;
            }
        }

        /// Lets `window(now)` segments be in flight until `end`.
        fn run(&mut self, start: u64, end: u64, window: impl Fn(u64) -> u32) {
            self.send(window(start), start);
            while let Some(now) = self.next().filter(|now| *now < end) {
                if let Some(at_gateway) = self.data.iter().position(|(at, _)| *at == now) {
                    let (_, seq) = self.data.remove(at_gateway);
                    self.estimator.outbound(&segment(TcpFlags::ACK, seq, 1, MSS), at(now));
                    self.told.push((now, self.estimator.sort(FLOW)));
                    self.received += 1;
                    if self.received.is_multiple_of(self.per_ack) {
                        self.acks.push((now + WAN, seq + MSS));
                    }
                } else if let Some(at_gateway) = self.acks.iter().position(|(at, _)| *at == now) {
                    let (_, ack) = self.acks.remove(at_gateway);
                    self.estimator.inbound(&segment(TcpFlags::ACK, 1, ack, 0), at(now));
                    self.acked = ack;
                    self.send(window(now + LAN / 2), now + LAN / 2);
                }
            }
        }

        fn next(&self) -> Option<u64> {
            self.data.iter().chain(&self.acks).map(|(at, _)| *at).min()
        }

        fn rates(&self) -> Vec<(u64, RateNotice)> {
            let rate =
                |(at, sort): &(u64, Sort)| if let Sort::Rate(notice) = sort { Some((*at, *notice)) } else { None };
            self.told.iter().filter_map(rate).collect()
        }
    }

    /// 20 segments of 1000 B in each round trip of 100 ms. Each estimate is within 10 % of that (an interval ends with a
    /// packet, so an ACK for two segments moves it by up to two), their mean within 3 %, and there is one per round trip.
    #[test]
    fn the_rate_of_a_known_flow_is_estimated_once_per_round_trip() {
        for per_ack in [1, 2] {
            let mut path = Path::new(per_ack);
            path.run(LAN + WAN, 10_000 * MS, |_| 20);
            let rates = path.rates();
            assert!((93..=99).contains(&rates.len()), "{} in 99 round trips", rates.len());
            let mut sum = 0.0;
            for (_, notice) in &rates {
                assert!((98..=103).contains(&notice.rtt_ms()), "{notice:?}");
                let rate = notice.cwnd().get() as f64 / f64::from(notice.rtt_ms());
                assert!((180.0..=220.0).contains(&rate), "{rate} and not 200 B/ms");
                sum += rate;
            }
            let mean = sum / rates.len() as f64;
            assert!((mean - 200.0).abs() < 6.0, "{mean} and not 200 B/ms");
        }
    }

    /// Windows of 2, 4, 8, ... 128 segments, one round trip each, then one segment more in each.
    #[test]
    fn slow_start_is_told_from_congestion_avoidance() {
        let trip = |now: u64| (now / (LAN + WAN)) as u32;
        let window = |now: u64| if trip(now) <= 7 { 1 << trip(now) } else { 128 + trip(now) - 7 };
        let mut path = Path::new(1);
        path.run(LAN + WAN, 3000 * MS, window);
        let sorts = |from: u64, to: u64| path.told.iter().filter(move |(at, _)| (from * MS..to * MS).contains(at));
        assert!(sorts(0, 880).all(|(_, sort)| *sort == Sort::Plain), "{:?}", path.rates());
        assert!(sorts(1100, 3000).all(|(_, sort)| *sort != Sort::Plain));
        assert!(path.rates().len() >= 18);
    }

    #[test]
    fn a_flow_that_pauses_is_in_slow_start_again() {
        let mut path = Path::new(1);
        path.run(LAN + WAN, 2000 * MS, |_| 10);
        assert!(path.rates().len() > 10);
        let before = path.told.len();
        (path.data, path.acks) = (vec![], vec![]);
        path.acked = path.sent;
        path.run(5000 * MS, 6000 * MS, |_| 10);
        let again: Vec<_> = path.told[before..].iter().map(|(_, sort)| *sort).collect();
        // The burst after the pause, and an interval before the next one can be compared.
        assert!(again[..20].iter().all(|sort| *sort == Sort::Plain), "{again:?}");
        assert!(matches!(again[20], Sort::Rate(_)), "{again:?}");
    }

    /// What a timeout sends again comes after a silence, and fast retransmissions do not. With a window of up to four
    /// segments the threshold is two, so that the sender leaves slow start with the first ACK.
    #[test]
    fn a_timeout_begins_slow_start_and_a_fast_retransmission_does_not() {
        for (window, silence, sort) in [(10, 150, Sort::Capable), (10, 250, Sort::Plain), (4, 250, Sort::Capable)] {
            let mut path = Path::new(1);
            path.run(LAN + WAN, 2000 * MS, |_| window);
            let last = path.told.last().unwrap().0;
            let again = segment(TcpFlags::ACK, path.acked - MSS, 1, MSS);
            path.estimator.outbound(&again, at(last + silence * MS));
            assert_eq!(path.estimator.sort(FLOW), sort, "after {silence} ms in a round trip of 100");
        }
    }

    /// A timeout with a window of 20 segments; then 2, 4, 8, 16, 17, ...: slow start ends at 10.
    #[test]
    fn slow_start_after_a_timeout_ends_at_half_the_window_before() {
        let mut path = Path::new(1);
        path.run(LAN + WAN, 2000 * MS, |_| 20);
        let lost = segment(TcpFlags::ACK, path.acked - MSS, 1, MSS);
        path.estimator.outbound(&lost, at(3000 * MS - LAN));
        assert_eq!(path.estimator.sort(FLOW), Sort::Plain);
        (path.data, path.acks, path.acked) = (vec![], vec![], path.sent);
        let before = path.told.len();
        let trip = |now: u64| (now.saturating_sub(3000 * MS) / (LAN + WAN)) as u32;
        path.run(3000 * MS, 4000 * MS, |now| if trip(now) < 4 { 2 << trip(now) } else { 16 + trip(now) - 3 });
        let again: Vec<_> = path.told[before..].iter().map(|(_, sort)| *sort).collect();
        // 2 + 4 + 8 + 16 segments; the interval with 16 ends with the next one.
        assert!(again[..30].iter().all(|sort| *sort == Sort::Plain), "{again:?}");
        assert!(matches!(again[30], Sort::Rate(_)), "{again:?}");
    }

    #[test]
    fn retransmissions_carry_no_rate_and_packets_that_were_not_shown_are_plain() {
        let mut path = Path::new(1);
        path.run(LAN + WAN, 2000 * MS, |_| 10);
        let late = at(2050 * MS);
        path.estimator.outbound(&segment(TcpFlags::ACK, path.acked - MSS, 1, MSS), late);
        assert_eq!(path.estimator.sort(FLOW), Sort::Capable);
        assert_eq!(path.estimator.sort(FLOW), Sort::Plain, "the same packet is not judged twice");
        path.estimator.outbound(&segment(TcpFlags::ACK, path.acked - MSS, 1, MSS), late);
        assert_eq!(path.estimator.sort(FlowId(4)), Sort::Plain, "another flow");
        path.estimator.outbound(&segment(TcpFlags::ACK, path.sent, 1, 0), late);
        assert_eq!(path.estimator.sort(FLOW), Sort::Plain, "an ACK");
    }

    #[test]
    fn a_connection_whose_begin_was_told_has_its_round_trip() {
        let mut estimator = Estimator::default();
        let end = |end| Greeting { isn: end - 1, end, ..Greeting::default() };
        let (asked, answered) = (Some(Span::from_nanos(WAN)), Some(Span::from_nanos(LAN)));
        for from_inside in [true, false] {
            let (wan, lan) = if from_inside { (asked, answered) } else { (answered, asked) };
            let opening = Opening { flow: FLOW, from_inside, opener: end(11), other: end(21), asked, answered };
            estimator.on_fact(&Fact::FlowGone(FLOW));
            estimator.on_fact(&Fact::Opened(opening));
            let flow = estimator.flow(FLOW).unwrap();
            assert_eq!((flow.probe.wan(), flow.probe.lan(), flow.rtt()), (wan, lan, Some(Span::from_nanos(WAN + LAN))));
            assert_eq!(flow.probe.outbound_end(), Some(if from_inside { 11 } else { 21 }));
        }
        estimator.on_fact(&Fact::FlowGone(FLOW));
        assert_eq!(estimator.flow(FLOW).unwrap(), &Flow::default());
    }

    /// Sequence numbers wrap in an interval, and indices that no table gives are ignored.
    #[test]
    fn numbers_wrap_and_indices_beyond_the_table_have_no_state() {
        let mut path = Path::new(1);
        let shift = u32::MAX - 100 * MSS;
        path.estimator = Estimator::default();
        let syn_ack = TcpFlags::SYN.with(TcpFlags::ACK);
        path.estimator.outbound(&segment(TcpFlags::SYN, shift.wrapping_sub(1), 0, 0), at(0));
        path.estimator.inbound(&segment(syn_ack, 0, shift, 0), at(10 * MS));
        path.estimator.outbound(&segment(TcpFlags::ACK, shift, 1, 0), at(20 * MS));
        let mut rates = 0;
        for number in 0..400u32 {
            let seq = shift.wrapping_add(number * MSS);
            let now = (21 + 2 * u64::from(number)) * MS;
            path.estimator.outbound(&segment(TcpFlags::ACK, seq, 1, MSS), at(now));
            if let Sort::Rate(notice) = path.estimator.sort(FLOW) {
                assert_eq!((notice.cwnd().get(), notice.rtt_ms()), (10_000, 20), "a segment each 2 ms");
                rates += 1;
            }
        }
        assert!(rates > 30, "{rates}");
        let beyond = PlainSegment { payload_len: MSS, ..PlainSegment::new(FlowId(u32::MAX), TcpFlags::ACK) };
        path.estimator.outbound(&beyond, at(0));
        path.estimator.inbound(&beyond, at(0));
        assert_eq!(path.estimator.sort(FlowId(u32::MAX)), Sort::Plain);
    }
}
