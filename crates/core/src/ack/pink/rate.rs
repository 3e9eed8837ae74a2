//! The rate of the bottleneck, estimated from the departures of the queue.
//!
//! While packets wait, the time from one departure to the next is the transmission time of a packet: bytes over time of
//! such pairs is the rate of the link, however short the queue. An empty queue only shows that the link is at least as
//! fast as its load. Then the estimate climbs, in steps that double while no queue appears, provided that the load
//! follows the estimate (otherwise it would climb for ever if flows have nothing to send).
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
//! With a standing queue (the least backlog of a round trip) shares are those of a rate that lets half of it drain
//! within a round trip. That also heals round trip times that were measured while the queue stood.

use crate::units::{Bytes, Instant, Rate, Span};

const NS: u128 = 1_000_000_000;
/// Least number of pairs of departures for a measurement.
const PAIRS: u32 = 4;
/// Part of what is given out that must be used before the estimate climbs, in eighths.
const LOADED: u64 = 6;
/// The steps of climbing are 2^-6 to 2^-3.
const STEPS: u32 = 3;
/// Round trip time assumed before one is known; also the default interval of CoDel (RFC 8289 §4.3).
const FIRST_ROUND: Span = Span::from_millis(100);
const SHORTEST_ROUND: Span = Span::from_millis(5);

/// The estimator of the rate of the bottleneck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Estimator {
    bps: u64,
    /// Mean round trip time of the ACKs seen, in nanoseconds; zero before the first.
    round: u64,
    /// When the current measurement began.
    since: Instant,
    /// Time and size in bytes of the last departure, if it left packets behind.
    last: Option<(Instant, u64)>,
    sent: u64,
    busy_bytes: u64,
    busy: Span,
    pairs: u32,
    least: u64,
    /// Least backlog during the last measurement, in bytes.
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

    /// Returns the rate to share out: the estimate, less what drains half of a standing queue within a round trip.
    pub fn rate(&self) -> Rate {
        let in_a_round = u128::from(self.bps) * u128::from(self.round().as_nanos()) / (8 * NS);
        let drain = (self.standing / 2).min(in_a_round as u64 / 4);
        Rate::from_bps(self.bps - (u128::from(drain) * 8 * NS / u128::from(self.round().as_nanos())) as u64)
    }

    /// Notes an ACK of a flow with this round trip time.
    pub fn note_round_trip(&mut self, rtt: Span) {
        let rtt = rtt.as_nanos().min(1 << 40);
        self.round = if self.round == 0 { rtt } else { self.round - self.round / 64 + rtt / 64 };
    }

    /// Notes that a packet left and that `backlog` bytes wait; `c` is the part of the link that is given out. Returns
    /// true if the rate to share out may have changed.
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

    /// Notes that the queue ran empty, so that the next departure does not form a pair with the last.
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
