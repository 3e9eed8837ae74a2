//! Noordwijk: a timer sends bursts, for satellite links with bandwidth on demand.
//!
//! Source: Roseti, Kristiansen, "TCP Noordwijk: optimize TCP-based transport over DAMA in satellite networks" (2008),
//! and the author's implementation for ns-3 that the dissertation on public protection networks (Modena, §2.2) used.
//! Burst sizes are in segments.
//!
//! ```text
//! every TX_TMR: send BURST segments, less the segments retransmitted since the last burst
//! from the train of ACKs of each burst: D = last - first, delta = D / BURST, dRTT = largest - smallest RTT
//! every second train:
//!   dRTT > beta   rate adjustment  BURST = BURST D/(D + dRTT),  TX_TMR = lambda B0 delta
//!   else          rate tracking    BURST += (B0 - BURST)/2,     TX_TMR = B0 delta
//! lambda = 1 if BURST > 3, else 2;  delta of the last train of B0 segments
//! while TX_TMR > 1 s: TX_TMR and BURST are halved;  BURST >= 3, rounded up
//! loss      BURST = B0, TX_TMR = T0
//! timeout   T0 = 2 T0, 0.9 s if that is more than 1 s;  TX_TMR = T0
//! ```
//!
//! | parameter | value | where from |
//! |---|---|---|
//! | B0 | the initial window; 20 in the dissertation, 5 with C2ML | `initial_window` of the endpoint |
//! | T0 | 500 ms | `timer` |
//! | T0 with C2ML | 50 ms | `limited_timer` |
//! | beta | 200 ms | `threshold` |
//! | least BURST | 3 | `min_burst` |
//! | trains per evaluation | 2 | `stability` |
//!
//! The window of the endpoint is the flight and the rest of the burst: ACKs close it, the timer opens it. The
//! measurement of trains needs an ACK per segment ([`Requirements::ack_per_segment`]).
//!
//! *With C2ML* ([`Advice::LimitBursts`]; dissertation §2.2.3.3) a burst is the data that the budget BW carries in
//! `limited_timer`, at least three segments, and the timer is never shorter than the transmission of a burst at that
//! rate: `BURST = BW TX_TMR / (8 MSS)`, `TX_TMR = 8 MSS BURST / BW`. Adjustment and tracking may use less.
//!
//! Invariants: 3 <= `BURST` <= max(B0, 3); `TX_TMR <= 1 s` after the first evaluation without a limit. The window may
//! be zero between bursts. Cost: O(1).
//!
//! DIFFERENCE: three duplicate ACKs signal a loss (the rule of the endpoint), six in the source; and a loss does not
//! double T0. Pinned by `a_loss_restores_the_first_burst_and_a_timeout_doubles_the_timer`.
//! DIFFERENCE: at most 16 bursts in flight are measured; a seventeenth counts as a part of the sixteenth. Pinned by
//! `the_seventeenth_burst_in_flight_is_measured_with_the_sixteenth`.
//! DIFFERENCE: the end of a recovery drops all trains, since the endpoint does not report ACKs during recovery; in the
//! source recovery distorts their timing as well. Pinned by `a_recovery_forgets_the_trains`.

use super::check::{above_zero, within};
use super::{Ack, Advice, BurstLimit, CongestionControl, ControlConfig, Loss, Requirements, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Least TX_TMR. It is shorter than any burst and prevents an endless loop of bursts at a timer of zero.
const MIN_TIMER: Span = Span::from_micros(1);
/// Largest TX_TMR and T0.
const MAX_TIMER: Span = Span::from_secs(1);
/// T0 after a timeout that would raise it above [`MAX_TIMER`].
const MAX_FIRST_TIMER: Span = Span::from_millis(900);
/// Most bursts in flight that are measured.
const MAX_TRAINS: usize = 16;

/// Parameters of Noordwijk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// T0, the first TX_TMR (dissertation §2.2: 500 ms).
    pub timer: Span,
    /// T0 with C²ML: a burst is the data that the budget carries in this time (dissertation §2.2.3.3: 50 ms).
    pub limited_timer: Span,
    /// beta: a larger variation of the round trip time within a train means congestion (ns-3 code of the author: 200
    /// ms).
    pub threshold: Span,
    /// Least BURST in segments (3).
    pub min_burst: u64,
    /// Trains of ACKs per evaluation (2).
    pub stability: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            timer: Span::from_millis(500),
            limited_timer: Span::from_millis(50),
            threshold: Span::from_millis(200),
            min_burst: 3,
            stability: 2,
        }
    }
}

impl ControlConfig for Config {
    type Control = Noordwijk;

    fn validate(&self) -> Result<(), ConfigError> {
        above_zero("timer", self.timer)?;
        above_zero("limited_timer", self.limited_timer)?;
        above_zero("threshold", self.threshold)?;
        within("min_burst", self.min_burst as f64, 1.0, 1e4)?;
        within("stability", self.stability.into(), 1.0, 1e3)
    }

    fn control(&self, setup: &Setup) -> Noordwijk {
        Noordwijk::new(self, setup)
    }
}

/// The ACKs of the oldest burst in flight.
#[derive(Debug, Clone, PartialEq, Default)]
struct Train {
    /// Time of the first ACK.
    first: Option<Instant>,
    /// Bytes acknowledged so far.
    acked: Bytes,
    /// Smallest and largest round trip time.
    rtt: Option<(Span, Span)>,
}

/// Sizes of the bursts in flight, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
struct Bursts {
    sizes: [Bytes; MAX_TRAINS],
    len: usize,
}

impl Bursts {
    fn push(&mut self, size: Bytes) {
        if self.len == MAX_TRAINS {
            self.sizes[MAX_TRAINS - 1] += size;
        } else {
            self.sizes[self.len] = size;
            self.len += 1;
        }
    }

    /// Takes from the latest burst what was not sent of it.
    fn shorten(&mut self, unsent: Bytes) {
        if let Some(last) = self.sizes[..self.len].last_mut() {
            *last = last.saturating_sub(unsent);
        }
    }

    fn first(&self) -> Option<Bytes> {
        self.sizes[..self.len].first().copied()
    }

    fn pop(&mut self) {
        self.sizes.copy_within(1.., 0);
        self.len -= 1;
    }
}

/// The Noordwijk control of one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Noordwijk {
    config: Config,
    mss: Bytes,
    /// B0 without a limit, in segments.
    initial_burst: u64,
    /// B0 in force, in segments.
    first_burst: u64,
    /// T0 in force.
    first_timer: Span,
    /// BURST in segments.
    burst: u64,
    /// TX_TMR.
    timer: Span,
    /// When the next burst is due.
    next: Instant,
    /// The flight and the rest of the burst.
    cwnd: Bytes,
    /// One burst, for recovery; [`Bytes::MAX`] before the first loss.
    ssthresh: Bytes,
    /// Retransmitted segments, by which the next burst is smaller.
    debt: u64,
    bursts: Bursts,
    /// Size of the latest burst; zero if it is not measured.
    latest: Bytes,
    /// Flight before the latest burst.
    before: Bytes,
    /// Bytes acknowledged since the latest burst.
    acked: Bytes,
    train: Train,
    /// Trains since the last evaluation.
    trains: u32,
    /// delta of the last full burst; zero before the first train.
    dispersion: Span,
    /// Limit of the bursts by C²ML, if there is one.
    limit: Option<BurstLimit>,
}

impl Noordwijk {
    /// Creates a control whose first burst is due at once.
    pub fn new(config: &Config, setup: &Setup) -> Self {
        let mss = setup.mss.max(Bytes::new(1));
        let first_burst = (setup.initial_window / mss).max(1);
        Self {
            config: *config,
            mss,
            initial_burst: first_burst,
            first_burst,
            first_timer: config.timer,
            burst: first_burst,
            timer: config.timer,
            next: Instant::ZERO,
            cwnd: setup.initial_window,
            ssthresh: Bytes::MAX,
            debt: 0,
            bursts: Bursts::default(),
            latest: Bytes::ZERO,
            before: Bytes::ZERO,
            acked: Bytes::ZERO,
            train: Train::default(),
            trains: 0,
            dispersion: Span::ZERO,
            limit: None,
        }
    }

    /// BURST in segments and TX_TMR.
    pub fn burst(&self) -> (u64, Span) {
        (self.burst, self.timer)
    }

    /// Drops all measurements of bursts in flight.
    fn forget_trains(&mut self) {
        self.bursts = Bursts::default();
        self.latest = Bytes::ZERO;
        self.train = Train::default();
    }

    /// Takes from the train of the latest burst what was not sent of it, because the receiver's window was smaller. As in the
    /// source, a burst of which nothing was sent keeps its size.
    fn shorten_burst(&mut self, in_flight: Bytes) {
        let sent = (in_flight + self.acked).saturating_sub(self.before);
        if sent > Bytes::ZERO {
            self.bursts.shorten(self.latest.saturating_sub(sent));
        }
        (self.before, self.acked) = (in_flight, Bytes::ZERO);
    }

    /// Adds an ACK to the train of the oldest burst, and evaluates the train when the whole burst is acknowledged. What the
    /// ACK covers beyond it belongs to the train of the next burst.
    fn follow_train(&mut self, ack: &Ack) {
        let mut acked = ack.acked;
        while acked > Bytes::ZERO {
            let Some(size) = self.bursts.first() else { return };
            let train = &mut self.train;
            let first = *train.first.get_or_insert(ack.now);
            if let Some(rtt) = ack.rtt {
                let (low, high) = train.rtt.unwrap_or((rtt, rtt));
                train.rtt = Some((low.min(rtt), high.max(rtt)));
            }
            let part = acked.min(size.saturating_sub(train.acked));
            train.acked += part;
            acked -= part;
            if train.acked >= size {
                let (low, high) = train.rtt.unwrap_or_default();
                self.bursts.pop();
                self.train = Train::default();
                let segments = size.get().div_ceil(self.mss.get());
                self.end_train(segments, ack.now.since(first), high.saturating_sub(low));
            }
        }
    }

    /// Notes delta of a train, and adjusts or tracks the rate after every `stability` trains.
    fn end_train(&mut self, size: u64, dispersion: Span, rtt_variation: Span) {
        let delta = dispersion.div(size.max(1));
        // Only a full burst measures the rate: a queue drains between smaller ones.
        if delta != Span::ZERO && (size == self.first_burst || self.dispersion == Span::ZERO) {
            self.dispersion = delta;
        }
        self.trains += 1;
        if self.trains < self.config.stability {
            return;
        }
        self.trains = 0;
        if dispersion == Span::ZERO || rtt_variation == Span::ZERO {
            return;
        }
        if rtt_variation > self.config.threshold {
            self.adjust_rate(dispersion, rtt_variation);
        } else {
            self.track_rate();
        }
    }

    /// Rate adjustment: BURST = BURST D/(D + dRTT).
    fn adjust_rate(&mut self, dispersion: Span, rtt_variation: Span) {
        let (whole, part) = (u128::from((dispersion + rtt_variation).as_nanos()), u128::from(dispersion.as_nanos()));
        self.burst = (u128::from(self.burst) * part).div_ceil(whole.max(1)) as u64;
        let lambda = if self.burst > self.config.min_burst { 1 } else { 2 };
        self.set_timer(lambda);
    }

    /// Rate tracking: BURST += (B0 - BURST)/2.
    fn track_rate(&mut self) {
        self.burst += self.first_burst.saturating_sub(self.burst).div_ceil(2);
        self.set_timer(1);
    }

    /// Sets TX_TMR = lambda B0 delta, T0 if delta is unknown; keeps TX_TMR at most a second and BURST at least three.
    fn set_timer(&mut self, lambda: u64) {
        self.timer = self.dispersion * (lambda * self.first_burst);
        if self.timer == Span::ZERO {
            self.timer = self.first_timer;
        }
        while self.timer > MAX_TIMER {
            self.timer = self.timer.div(2);
            self.burst = self.burst.div_ceil(2);
        }
        self.burst = self.burst.max(self.config.min_burst);
        self.keep_limit();
    }

    /// Raises TX_TMR to 8 MSS BURST / BW if there is a limit BW.
    fn keep_limit(&mut self) {
        if let Some(BurstLimit { rate, frame }) = self.limit {
            self.timer = self.timer.max(rate.time_for(self.burst * frame));
        }
    }

    /// Restores the first burst and timer after a loss or a timeout.
    fn restore(&mut self) {
        (self.burst, self.timer) = (self.first_burst, self.first_timer);
        self.keep_limit();
        self.ssthresh = (self.burst * self.mss).max(2 * self.mss);
        self.debt += 1;
    }
}

impl CongestionControl for Noordwijk {
    without!(pacing, recovery);

    #[inline]
    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    /// One burst, the data that recovery may keep in flight.
    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.ssthresh
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.cwnd = self.cwnd.saturating_sub(ack.acked);
        self.acked += ack.acked;
        self.follow_train(ack);
    }

    fn on_loss(&mut self, _: &Loss) {
        self.restore();
    }

    fn on_recovered(&mut self, _: Instant) {
        self.cwnd = Bytes::ZERO;
        self.forget_trains();
    }

    fn on_rto(&mut self, _: &Loss) {
        self.first_timer = self.first_timer * 2;
        if self.first_timer > MAX_TIMER {
            self.first_timer = MAX_FIRST_TIMER;
        }
        self.restore();
        self.cwnd = self.mss;
        self.forget_trains();
    }

    fn on_idle(&mut self, now: Instant, _: Bytes) {
        self.next = now;
        self.forget_trains();
    }

    fn requirements(&self) -> Requirements {
        Requirements { ack_per_segment: true, ..Requirements::default() }
    }

    #[inline]
    fn next_burst(&self) -> Instant {
        self.next
    }

    fn on_burst(&mut self, now: Instant, in_flight: Bytes) {
        self.shorten_burst(in_flight);
        let size = self.burst.saturating_sub(self.debt);
        self.debt = self.debt.saturating_sub(self.burst);
        self.latest = size * self.mss;
        self.cwnd = in_flight + self.latest;
        self.next = now + self.timer.max(MIN_TIMER);
        if size > 0 {
            self.bursts.push(self.latest);
        }
    }

    /// Takes a limit of bursts; a window to adopt does not apply to a control that sends by a timer.
    fn advise(&mut self, advice: Advice) {
        let Advice::LimitBursts(limit) = advice else { return };
        self.limit = limit;
        (self.first_burst, self.first_timer) = match limit {
            Some(BurstLimit { rate, frame }) => {
                let carried = rate.bytes_in(self.config.limited_timer) / frame.max(Bytes::new(1));
                let burst = carried.max(self.config.min_burst);
                (burst, rate.time_for(burst * frame))
            }
            None => (self.initial_burst, self.config.timer),
        };
        (self.burst, self.timer) = (self.first_burst, self.first_timer);
        self.ssthresh = self.ssthresh.max(self.burst * self.mss);
    }
}

#[cfg(test)]
mod tests;
