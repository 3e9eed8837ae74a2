//! The rate of the bottleneck, from what leaves the queue.
//!
//! While packets wait, the time from one departure to the next is the time the link took: bytes over time of such pairs
//! is its rate, however short the queue. A queue that is empty says nothing but that the link is at least as fast as its
//! load; then the estimate climbs, in steps that double while nothing contradicts, provided that the load follows it
//! (flows that have nothing to send would let it climb for ever).
//!
//! Once per round trip (of all flows, on average):
//!
//! | departures seen | estimate |
//! |---|---|
//! | at least [`PAIRS`] pairs, busy for half the time or more | the measured rate, upwards by half at most |
//! | at least [`PAIRS`] pairs | upwards the same; downwards a quarter of the way |
//! | fewer, and load above [`LOADED`] of what is given out | + 1/64, 1/32, 1/16, 1/8, 1/8, ... |
//! | fewer, and less load | kept |
//!
//! With a standing queue (the least backlog of a round trip) shares are those of a rate that lets half of it drain within
//! a round trip. That also heals round trip times that were measured while the queue stood.

use crate::units::{Bytes, Instant, Rate, Span};

const NS: u128 = 1_000_000_000;
/// Pairs of departures that make a measurement.
const PAIRS: u32 = 4;
/// Part of what is given out that must be used before more is tried, in eighths.
const LOADED: u64 = 6;
/// The steps of climbing are 2^-6 to 2^-3.
const STEPS: u32 = 3;
/// Before any round trip is known; RFC 8289's and many others' idea of a path.
const FIRST_ROUND: Span = Span::from_millis(100);
const SHORTEST_ROUND: Span = Span::from_millis(5);

/// The estimator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Estimator {
    bps: u64,
    /// Mean round trip of the ACKs seen, in nanoseconds; zero if none was.
    round: u64,
    /// When this look began.
    since: Instant,
    /// The last departure, and its size if others waited behind it.
    last: Option<(Instant, u64)>,
    sent: u64,
    busy_bytes: u64,
    busy: Span,
    pairs: u32,
    least: u64,
    /// The least backlog of the last look.
    standing: u64,
    steps: u32,
}

impl Estimator {
    pub fn new(start: Rate) -> Self {
        Self {
            bps: start.as_bps(),
            round: 0,
            since: Instant::ZERO,
            last: None,
            sent: 0,
            busy_bytes: 0,
            busy: Span::ZERO,
            pairs: 0,
            least: u64::MAX,
            standing: 0,
            steps: 0,
        }
    }

    /// The rate to share out.
    pub fn rate(&self) -> Rate {
        let in_a_round = u128::from(self.bps) * u128::from(self.round().as_nanos()) / (8 * NS);
        let drain = (self.standing / 2).min(in_a_round as u64 / 4);
        Rate::from_bps(self.bps - (u128::from(drain) * 8 * NS / u128::from(self.round().as_nanos())) as u64)
    }

    /// An ACK of a flow with this round trip.
    pub fn note_round_trip(&mut self, rtt: Span) {
        let rtt = rtt.as_nanos().min(1 << 40);
        self.round = if self.round == 0 { rtt } else { self.round - self.round / 64 + rtt / 64 };
    }

    /// A packet leaves and `backlog` bytes stay; `c` is the part of the link that is given out. True if the rate to share
    /// out may have changed.
    pub fn note_departure(&mut self, size: Bytes, backlog: u64, c: f64, now: Instant) -> bool {
        if let Some((at, bytes)) = self.last {
            self.busy_bytes += bytes;
            self.busy = self.busy + now.since(at);
            self.pairs += 1;
        }
        self.last = (backlog > 0).then_some((now, size.get()));
        self.sent += size.get();
        self.least = self.least.min(backlog);
        let elapsed = now.since(self.since);
        // A quarter of a round trip is enough to see a queue grow.
        let grows = backlog > self.bytes_in(self.round()) / 8 && elapsed >= self.round().div(4);
        if elapsed < self.round() && !grows {
            return false;
        }
        self.judge(elapsed, c);
        (self.since, self.sent, self.least) = (now, 0, u64::MAX);
        (self.busy_bytes, self.busy, self.pairs) = (0, Span::ZERO, 0);
        true
    }

    /// The queue ran empty: what leaves next says nothing of the time before.
    pub fn note_empty(&mut self) {
        self.last = None;
        self.least = 0;
    }

    fn round(&self) -> Span {
        let round = if self.round == 0 { FIRST_ROUND } else { Span::from_nanos(self.round) };
        round.max(SHORTEST_ROUND)
    }

    fn bytes_in(&self, span: Span) -> u64 {
        (u128::from(self.bps) * u128::from(span.as_nanos()) / (8 * NS)).min(u64::MAX.into()) as u64
    }

    fn judge(&mut self, elapsed: Span, c: f64) {
        self.standing = self.least;
        let busy = u128::from(self.busy.as_nanos());
        if self.pairs >= PAIRS && busy > 0 {
            let measured = (u128::from(self.busy_bytes) * 8 * NS / busy).clamp(1, u64::MAX as u128 >> 16) as u64;
            let mostly = self.busy.as_nanos() >= elapsed.as_nanos() / 2;
            self.bps = match measured {
                more if more > self.bps => more.min(self.bps + (self.bps / 2).max(1)),
                less if mostly => less,
                less => self.bps - (self.bps - less) / 4,
            };
            self.steps = 0;
        } else if self.sent * 8 >= (self.bytes_in(elapsed) as f64 * c) as u64 * LOADED {
            self.bps += (self.bps >> (6 - self.steps)).max(1);
            self.steps = (self.steps + 1).min(STEPS);
        } else {
            self.steps = 0;
        }
    }
}
