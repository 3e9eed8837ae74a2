use super::*;
use crate::packet::{FlowId, PlainSegment, TcpFlags};
use std::collections::VecDeque;

const SEGMENT: u32 = 1448;
const PACKET: u64 = 1500;

/// Uploads that always have something to send, a link behind our shaper with a queue without end, and receivers that acknowledge
/// every second segment.
struct Home {
    estimator: Delivery,
    rate: u64,
    /// Of the link, in bit/s.
    link: u64,
    trip: Span,
    now: Instant,
    free: Instant,
    leaves: Instant,
    sent: Vec<u32>,
    /// Acknowledgments: when they arrive, whose they are, and of how much.
    answers: VecDeque<(Instant, usize, u32)>,
    turn: usize,
    waits: Vec<f64>,
    used: Span,
}

impl Home {
    fn new(link: u64, flows: usize, first: f64) -> Self {
        let known = Known::around(Rate::from_bps((link as f64 * first) as u64));
        let begin = Instant::ZERO + Span::from_millis(1);
        Self {
            estimator: Delivery::new([Known::around(Rate::from_bps(10_000_000)), known]),
            rate: known.first.as_bps(),
            link,
            trip: Span::from_millis(40),
            now: begin,
            free: begin,
            leaves: begin,
            sent: vec![0; flows],
            answers: VecDeque::new(),
            turn: 0,
            waits: Vec::new(),
            used: Span::ZERO,
        }
    }

    fn play(&mut self, until: Span) -> &mut Self {
        (self.waits, self.used) = (Vec::new(), Span::ZERO);
        while self.now < Instant::ZERO + until {
            let answer = self.answers.front().map_or(Instant::MAX, |(at, ..)| *at);
            self.now = answer.min(self.leaves);
            if answer <= self.leaves {
                self.answer()
            } else {
                self.leave()
            }
            if self.now >= self.estimator.due() {
                // The shaper never rests.
                let ours = [Ours::default(), Ours { busy: self.now.since(Instant::ZERO) }];
                let [_, rate] = self.estimator.step(ours, self.now);
                self.rate = rate.as_bps();
            }
        }
        self
    }

    fn leave(&mut self) {
        let flow = self.turn;
        self.turn = (self.turn + 1) % self.sent.len();
        let plain = PlainSegment::new(FlowId(flow as u32), TcpFlags::ACK);
        let segment = PlainSegment { seq: self.sent[flow], payload_len: SEGMENT, ..plain };
        self.sent[flow] += SEGMENT;
        self.estimator.pass(Way::Out, flow as u64, Bytes::new(PACKET), Some(&segment), self.now);
        self.waits.push(self.free.since(self.now).as_millis_f64());
        let takes = Rate::from_bps(self.link).time_for(Bytes::new(PACKET));
        self.used = self.used + takes;
        self.free = self.free.max(self.now) + takes;
        if (self.sent[flow] / SEGMENT).is_multiple_of(2) {
            self.answers.push_back((self.free + self.trip, flow, self.sent[flow]));
        }
        let ours = Rate::from_bps(self.rate).time_for(Bytes::new(PACKET));
        self.leaves = self.now + ours;
    }

    fn answer(&mut self) {
        let Some((_, flow, ack)) = self.answers.pop_front() else { return };
        let segment = PlainSegment { ack, ..PlainSegment::new(FlowId(flow as u32), TcpFlags::ACK) };
        self.estimator.pass(Way::In, flow as u64, Bytes::new(52), Some(&segment), self.now);
    }

    /// The 95th percentile of the queue in milliseconds, and that of three packets and 15 ms.
    fn queue(&mut self) -> (f64, f64) {
        self.waits.sort_by(f64::total_cmp);
        (self.waits[self.waits.len() * 95 / 100], 15.0 + 3.0 * 1e3 * 8.0 * PACKET as f64 / self.link as f64)
    }

    fn capacity(&self) -> f64 {
        self.estimator.capacity()[1].as_bps() as f64 / self.link as f64
    }
}

/// The law before this one took the spacing of our own packets for a queue below 3 Mbit/s, and let a tenth pass.
#[test]
fn links_of_any_rate_are_used_and_nothing_waits_behind_us() {
    for link in [500_000, 1_000_000, 2_000_000, 20_000_000] {
        for (flows, first) in [(1, 1.0), (4, 1.0), (4, 0.1), (4, 10.0)] {
            let mut home = Home::new(link, flows, first);
            home.play(Span::from_secs(20)).play(Span::from_secs(40));
            let ((p95, most), used) = (home.queue(), home.used.as_secs_f64() / 20.0);
            // Flows that begin in a queue of seconds know it only roughly: none of them was alone.
            let most = if first > 1.0 { most + 60.0 } else { most };
            let told = format!("{link} bit/s, {flows} flows, first {first}: p95 {p95:.1} ms, used {used:.3}");
            assert!(
                p95 <= most && used >= 0.95 && (home.capacity() - 1.0).abs() < 0.05,
                "{told}, {:.3}",
                home.capacity()
            );
        }
    }
}

/// Half the rate, then the rate again: DSL that retrains.
#[test]
fn a_link_that_changes_is_followed() {
    let mut home = Home::new(20_000_000, 4, 1.0);
    home.play(Span::from_secs(10));
    home.link = 10_000_000;
    home.play(Span::from_secs(11));
    assert!((home.capacity() - 1.0).abs() < 0.1, "{:.3} of the link after a second", home.capacity());
    home.play(Span::from_secs(20));
    home.link = 20_000_000;
    home.play(Span::from_secs(23));
    assert!((home.capacity() - 1.0).abs() < 0.1, "{:.3} of the link after three seconds", home.capacity());
}

/// A satellite hands over, and the path takes 30 ms more.
#[test]
fn a_path_that_becomes_longer_lowers_nothing_for_long() {
    let mut home = Home::new(20_000_000, 4, 1.0);
    home.play(Span::from_secs(10));
    home.trip = Span::from_millis(70);
    home.play(Span::from_secs(13));
    home.play(Span::from_secs(23));
    let ((p95, most), used) = (home.queue(), home.used.as_secs_f64() / 10.0);
    assert!(used >= 0.95 && p95 <= most, "used {used:.3}, p95 {p95:.1} ms");
}

/// It takes 4 ms more, which is about the queue that we want, and the link is five times as fast. Without a drain that would look like
/// a full link for ever.
#[test]
fn a_path_that_becomes_longer_by_the_target_hides_no_faster_link() {
    let mut home = Home::new(10_000_000, 4, 1.0);
    home.play(Span::from_secs(10));
    (home.trip, home.link) = (Span::from_millis(44), 50_000_000);
    home.play(Span::from_secs(18));
    assert!((home.capacity() - 1.0).abs() < 0.1, "{:.3} of the link after eight seconds", home.capacity());
}
