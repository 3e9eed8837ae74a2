//! `cake-autorate`: the rates of both shapers by pings, up under load and down when pings are delayed.
//!
//! Source: the program of this name, github.com/lynxthecat/cake-autorate, revision 94238be of 2026-08-19: README ("Theory of
//! Operation"), `INSTALLATION.md` (parameters), `defaults.sh` (their defaults), `cake-autorate.sh` (order and rounding). Written
//! from these; it has none of its code.
//!
//! Probes go to several reflectors in turn. Each answer tells a one-way delay d of each direction. What it is above the baseline b
//! of this reflector is the delta, and several large deltas within the last ones are *bufferbloat*, which lowers the rate R. High
//! load without bufferbloat raises R, and otherwise R decays to the base rate. With P the time of a full packet at R:
//!
//! ```text
//! (1) b      = alpha d + (1 - alpha) b       alpha = alpha_baseline_increase if d >= b, else alpha_baseline_decrease
//! (2) delta  = d - b                         with the new b
//! (3) delayed if delta > owd_delta_delay_thr + P
//! (4) bufferbloat if of the last bufferbloat_detection_window deltas bufferbloat_detection_thr are delayed
//! (5) avg    = mean of the last bufferbloat_detection_window deltas
//! (6) R      = R (min_down - f (min_down - max_down)),  f = (avg - delay_thr) / (max_adjust_down_thr - delay_thr) in 0..1
//! (7) R      = R (min_up + g (max_up - min_up)),        g = (delay_thr - avg) / (delay_thr - max_adjust_up_thr) in 0..1
//! (8) R      = max(base, R adjust_down_load_low) above the base rate, min(base, R adjust_up_load_low) below it
//! ```
//!
//! | state of a direction | what an answer does | if |
//! |---|---|---|
//! | bufferbloat | (6) | more than `bufferbloat_refractory_period` after the last (6) |
//! | high load: achieved rate > `high_load_thr` of R | (7) | the same, and once for each measurement of the achieved rate |
//! | low load or idle | (8) | more than `decay_refractory_period` after the last (6), (7) or (8) |
//!
//! R stays within the lowest and the highest rate. The achieved rate is measured each `monitor_achieved_rates_interval`, or each
//! ten times of a full packet in both directions at the base rates, if that is longer. All thresholds of (6) and (7) have P added.
//! Numbers are whole ones, rounded down, as in the source: microseconds, kbit/s, percent, thousandths of f, g and the factors.
//! Therefore a baseline does not rise by a delta of less than a millisecond, and a load is high from 76 % on.
//!
//! After `sustained_idle_sleep_thr` without load in both directions no probes are sent until there is load. Without an answer
//! for `stall_detection_thr` probes and without load the connection is stalled: then the first answer only ends that.
//!
//! With `shaper_rate_min_adjust_up_load_high` = 1.04, (7) is that of its versions up to 3.2.
//!
//! DIFFERENCE: probes tell one-way delays, as with its pingers `tsping`, `fping-ts` and `irtt`. Its default is `fping`, which halves
//! round trips: [`Pinger::RoundTrips`]. Pinned by `round_trips_cut_both_directions`.
//! DIFFERENCE: answers are those of the reflectors in turn, also when one is lost: one sound reflector stands for all of them. Pinned
//! by `each_reflector_has_a_baseline`.
//! DIFFERENCE: reflectors are never compared, found bad and replaced, so their means of deltas (`alpha_delta_ewma`) are left out.
//! Pinned by `a_reflector_that_is_farther_is_kept`.
//! DIFFERENCE: timestamps do not roll over, so deltas of 50 minutes do not begin a baseline anew. Pinned by
//! `a_delay_of_an_hour_is_a_delay`.
//! DIFFERENCE: answers are judged when they arrive. The source skips those that it reads more than 500 ms later. Pinned by
//! `answers_in_a_row_are_all_judged`.
//! DIFFERENCE: rates are never set to the lowest ones when the connection is idle or stalled (`min_shaper_rates_enforcement`,
//! which is off in the source), and probes do not begin anew. Pinned by `a_stall_leaves_the_rates`.
//! DIFFERENCE: the time without load begins with the first answer without load. In the source it is the second, because it assigns
//! the name of a variable and not its value. Pinned by `after_a_minute_without_load_probes_rest_until_there_is_load`.
//! DIFFERENCE: downloads are counted as they arrive from the link, not as they leave the shaper. Pinned by
//! `downloads_count_as_they_arrive`.
//! DIFFERENCE: `connection_active_thr` is at most the lowest rates, where the source refuses a higher one. Pinned by
//! `load_is_told_from_idleness_at_low_rates`.
//!
//! Cost: O(1) for each packet, O(window) for each answer; no allocation after the start.

use super::{Estimator, Known, Ours, Way};
use crate::packet::TcpView;
use crate::units::{Bytes, Instant, Rate, Span};

/// A baseline before the first answer, in microseconds.
const FIRST_BASELINE_US: i64 = 100_000;
/// The achieved rate is measured over at least this many full packets of both directions.
const MONITORED_PACKETS: u64 = 10;
/// Timestamps of ICMP count the milliseconds of a day, so no delay is longer, in microseconds.
const LONGEST_DELAY_US: u64 = 86_400_000_000;
/// A rate above this one is taken for it, in kbit/s, so that no product overflows.
const HIGHEST_KBPS: u64 = 1_000_000_000_000;

/// What an answer to a probe tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinger {
    /// The delay of each direction, by timestamps of the reflector.
    OneWay,
    /// The round trip: both directions have half of it.
    RoundTrips,
}

/// Parameters, with the names of the source. Thresholds are those of both directions, which are equal in its defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// `base_`, `min_` and `max_shaper_rate`, in the order of [`Way`]: 20, 5 and 80 Mbit/s in, 20, 5 and 35 Mbit/s out.
    pub known: [Known; 2],
    /// `pinger_method`.
    pub pinger: Pinger,
    /// `no_pingers`: how many reflectors there are, at least 1. Default 6.
    pub no_pingers: usize,
    /// Time between two probes to one reflector. Default 300 ms; with 6 reflectors, a probe is sent each 50 ms.
    pub reflector_ping_interval: Span,
    /// Mean delta up to which growth is the largest. Default 10 ms.
    pub avg_owd_delta_max_adjust_up_thr: Span,
    /// An answer with a delta above this is delayed. Default 30 ms.
    pub owd_delta_delay_thr: Span,
    /// Mean delta from which on a cut is the largest. Default 60 ms.
    pub avg_owd_delta_max_adjust_down_thr: Span,
    /// Number of answers among which delayed ones are counted, at least 1. Default 6.
    pub bufferbloat_detection_window: usize,
    /// Number of delayed ones among them that are bufferbloat. Default 3.
    pub bufferbloat_detection_thr: usize,
    /// Part by which a baseline follows a longer delay. Default 0.001.
    pub alpha_baseline_increase: f64,
    /// Part by which a baseline follows a shorter delay. Default 0.9.
    pub alpha_baseline_decrease: f64,
    /// Factor of the smallest cut. Default 0.99.
    pub shaper_rate_min_adjust_down_bufferbloat: f64,
    /// Factor of the largest cut. Default 0.75.
    pub shaper_rate_max_adjust_down_bufferbloat: f64,
    /// Factor of the smallest growth. Default 1.0.
    pub shaper_rate_min_adjust_up_load_high: f64,
    /// Factor of the largest growth. Default 1.04.
    pub shaper_rate_max_adjust_up_load_high: f64,
    /// Factor of the decay down to the base rate. Default 0.99.
    pub shaper_rate_adjust_down_load_low: f64,
    /// Factor of the decay up to the base rate. Default 1.01.
    pub shaper_rate_adjust_up_load_low: f64,
    /// Load is high above this part of the shaper's rate. Default 0.75.
    pub high_load_thr: f64,
    /// Time after a cut without a further one, and without growth. Default 300 ms.
    pub bufferbloat_refractory_period: Span,
    /// Time after a change without a decay. Default 1 s.
    pub decay_refractory_period: Span,
    /// Time over which the achieved rate is measured. Default 200 ms.
    pub monitor_achieved_rates_interval: Span,
    /// A direction with at most this achieved rate is idle. Default 2 Mbit/s.
    pub connection_active_thr: Rate,
    /// Probes stop after so much time without load. Default 60 s; [`Span::MAX`] stands for `enable_sleep_function=0`.
    pub sustained_idle_sleep_thr: Span,
    /// So many times between two probes without an answer may be a stall. Default 5.
    pub stall_detection_thr: u64,
    /// They are one if not both achieved rates are above this. Default 10 kbit/s.
    pub connection_stall_thr: Rate,
    /// Bytes of a full packet, with the overhead of the link. Default 1500.
    pub max_wire_packet_size: Bytes,
}

impl Default for Params {
    fn default() -> Self {
        let [first, lowest] = [20_000_000, 5_000_000].map(Rate::from_bps);
        let known = [80_000_000, 35_000_000].map(|highest| Known { first, lowest, highest: Rate::from_bps(highest) });
        Self {
            known,
            pinger: Pinger::OneWay,
            no_pingers: 6,
            reflector_ping_interval: Span::from_millis(300),
            avg_owd_delta_max_adjust_up_thr: Span::from_millis(10),
            owd_delta_delay_thr: Span::from_millis(30),
            avg_owd_delta_max_adjust_down_thr: Span::from_millis(60),
            bufferbloat_detection_window: 6,
            bufferbloat_detection_thr: 3,
            alpha_baseline_increase: 0.001,
            alpha_baseline_decrease: 0.9,
            shaper_rate_min_adjust_down_bufferbloat: 0.99,
            shaper_rate_max_adjust_down_bufferbloat: 0.75,
            shaper_rate_min_adjust_up_load_high: 1.0,
            shaper_rate_max_adjust_up_load_high: 1.04,
            shaper_rate_adjust_down_load_low: 0.99,
            shaper_rate_adjust_up_load_low: 1.01,
            high_load_thr: 0.75,
            bufferbloat_refractory_period: Span::from_millis(300),
            decay_refractory_period: Span::from_secs(1),
            monitor_achieved_rates_interval: Span::from_millis(200),
            connection_active_thr: Rate::from_bps(2_000_000),
            sustained_idle_sleep_thr: Span::from_secs(60),
            stall_detection_thr: 5,
            connection_stall_thr: Rate::from_bps(10_000),
            max_wire_packet_size: Bytes::new(1500),
        }
    }
}

impl Params {
    /// Returns the defaults with these rates, in the order of [`Way`]: the first one is the base rate.
    pub fn of(known: [Known; 2]) -> Self {
        Self { known, ..Self::default() }
    }

    /// Returns the time between two probes.
    pub fn ping_response_interval(&self) -> Span {
        self.reflector_ping_interval.div(self.no_pingers.max(1) as u64)
    }

    /// Returns the time over which the achieved rate is measured with the base rates.
    fn monitored(&self) -> Span {
        let packets = self.known.map(|known| packet_us(self, kbps(known.first).max(1)));
        let least = Span::from_micros((packets[0] + packets[1]) as u64) * MONITORED_PACKETS;
        self.monitor_achieved_rates_interval.max(least)
    }

    /// Returns the achieved rate up to which a direction is idle, in kbit/s.
    fn active_kbps(&self) -> i64 {
        let lowest = self.known.map(|known| kbps(known.lowest));
        kbps(self.connection_active_thr).min(lowest[0]).min(lowest[1])
    }
}

/// What is carried of what the shaper would let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    Idle,
    Low,
    High,
}

/// An answer in the window.
#[derive(Debug, Clone, Copy, Default)]
struct Answer {
    delta_us: i64,
    delayed: bool,
}

/// One direction.
#[derive(Debug, Clone)]
struct Direction {
    base_kbps: i64,
    bounds_kbps: [i64; 2],
    /// R.
    rate_kbps: i64,
    /// What has passed since the last measurement of the achieved rate.
    bytes: u64,
    achieved_kbps: i64,
    /// True if the rate has not grown since that measurement.
    updated: bool,
    load: Load,
    /// The window, and where its oldest answer is.
    answers: Vec<Answer>,
    oldest: usize,
    last_bufferbloat: Instant,
    last_decay: Instant,
    /// True once there was bufferbloat.
    measured: bool,
}

/// The estimator of both directions.
#[derive(Debug, Clone)]
pub struct Autorate {
    params: Params,
    ways: [Direction; 2],
    /// The baselines of each reflector, in microseconds, and whose answer is the next.
    baselines_us: Vec<[i64; 2]>,
    turn: usize,
    /// When the achieved rates are measured next, and how long that takes.
    monitored: Instant,
    interval: Span,
    next_ping: Instant,
    /// When the last answer came.
    answered: Instant,
    stalled: bool,
    asleep: bool,
    /// Since when both directions are idle.
    idle: Option<Instant>,
    /// True if an answer has come since the last step, or probes are sent again.
    changed: bool,
}

fn kbps(rate: Rate) -> i64 {
    (rate.as_bps() / 1000).min(HIGHEST_KBPS) as i64
}

fn us(span: Span) -> i64 {
    (span.as_nanos() / 1000) as i64
}

fn delay_us(delay: Span) -> i64 {
    (delay.as_nanos() / 1000).min(LONGEST_DELAY_US) as i64
}

/// Returns a parameter as the whole number of parts that the source computes with.
fn parts(parameter: f64, of: f64) -> i64 {
    (parameter * of).round() as i64
}

/// P.
fn packet_us(params: &Params, rate_kbps: i64) -> i64 {
    8000 * params.max_wire_packet_size.get() as i64 / rate_kbps
}

// (1)
fn baseline_us(params: &Params, before_us: i64, delay_us: i64) -> i64 {
    let rises = delay_us >= before_us;
    let alpha = parts(if rises { params.alpha_baseline_increase } else { params.alpha_baseline_decrease }, 1e6);
    (alpha * delay_us + (1_000_000 - alpha) * before_us) / 1_000_000
}

/// Returns the thousandths of the way from `from` to `to` that `at` has gone; all of it if there is no way.
fn thousandths(at: i64, from: i64, to: i64) -> i64 {
    if from == to { 1000 } else { (1000 * (at - from) / (to - from)).clamp(0, 1000) }
}

// (6), (7)
fn adjusted(rate_kbps: i64, part: i64, least: f64, most: f64) -> i64 {
    let (least, most) = (parts(least, 1e3), parts(most, 1e3));
    rate_kbps * (1000 * least - part * (least - most)) / 1_000_000
}

impl Direction {
    fn new(params: &Params, known: &Known) -> Self {
        let base_kbps = kbps(known.first).max(1);
        Self {
            base_kbps,
            bounds_kbps: [kbps(known.lowest).clamp(1, base_kbps), kbps(known.highest).max(base_kbps)],
            rate_kbps: base_kbps,
            bytes: 0,
            achieved_kbps: 0,
            updated: false,
            load: Load::Idle,
            answers: vec![Answer::default(); params.bufferbloat_detection_window.max(1)],
            oldest: 0,
            last_bufferbloat: Instant::ZERO,
            last_decay: Instant::ZERO,
            measured: false,
        }
    }

    /// Measures the achieved rate and classifies the load.
    fn measure(&mut self, params: &Params, interval: Span) {
        let bytes = std::mem::take(&mut self.bytes).min(HIGHEST_KBPS) as i64;
        self.achieved_kbps = 8000 * bytes / us(interval).max(1);
        self.updated = true;
        self.load = if 100 * self.achieved_kbps / self.rate_kbps > parts(params.high_load_thr, 1e2) {
            Load::High
        } else if self.achieved_kbps > params.active_kbps() {
            Load::Low
        } else {
            Load::Idle
        };
    }

    /// Returns a threshold for deltas at the present rate.
    fn threshold_us(&self, params: &Params, threshold: Span) -> i64 {
        us(threshold) + packet_us(params, self.rate_kbps)
    }

    /// Takes the delta of an answer into the window.
    fn answer(&mut self, params: &Params, delta_us: i64) {
        // (3)
        let delayed = delta_us > self.threshold_us(params, params.owd_delta_delay_thr);
        self.answers[self.oldest] = Answer { delta_us, delayed };
        self.oldest = (self.oldest + 1) % self.answers.len();
    }

    // (4)
    fn bufferbloat(&self, params: &Params) -> bool {
        let delayed = self.answers.iter().filter(|answer| answer.delayed).count();
        delayed >= params.bufferbloat_detection_thr
    }

    // (5)
    fn average_us(&self) -> i64 {
        self.answers.iter().map(|answer| answer.delta_us).sum::<i64>() / self.answers.len() as i64
    }

    /// Changes the rate, as the table of states says.
    fn adjust(&mut self, params: &Params, now: Instant) {
        let refractory = now <= self.last_bufferbloat + params.bufferbloat_refractory_period;
        if self.bufferbloat(params) {
            if !refractory {
                self.cut(params, now);
            }
        } else if self.load == Load::High {
            if self.updated && !refractory {
                self.grow(params, now);
            }
        } else if now > self.last_decay + params.decay_refractory_period {
            self.decay(params, now);
        }
        self.rate_kbps = self.rate_kbps.clamp(self.bounds_kbps[0], self.bounds_kbps[1]);
    }

    // (6)
    fn cut(&mut self, params: &Params, now: Instant) {
        let least = params.shaper_rate_min_adjust_down_bufferbloat;
        let most = params.shaper_rate_max_adjust_down_bufferbloat;
        let from = self.threshold_us(params, params.owd_delta_delay_thr);
        let to = self.threshold_us(params, params.avg_owd_delta_max_adjust_down_thr).max(from);
        self.rate_kbps = adjusted(self.rate_kbps, thousandths(self.average_us(), from, to), least, most);
        (self.last_bufferbloat, self.last_decay, self.measured) = (now, now, true);
    }

    // (7)
    fn grow(&mut self, params: &Params, now: Instant) {
        let least = params.shaper_rate_min_adjust_up_load_high;
        let most = params.shaper_rate_max_adjust_up_load_high;
        let from = self.threshold_us(params, params.owd_delta_delay_thr);
        let to = self.threshold_us(params, params.avg_owd_delta_max_adjust_up_thr).min(from);
        self.rate_kbps = adjusted(self.rate_kbps, thousandths(self.average_us(), from, to), least, most);
        (self.last_decay, self.updated) = (now, false);
    }

    // (8)
    fn decay(&mut self, params: &Params, now: Instant) {
        let by = |factor: f64| self.rate_kbps * parts(factor, 1e3) / 1000;
        self.rate_kbps = if self.rate_kbps > self.base_kbps {
            by(params.shaper_rate_adjust_down_load_low).max(self.base_kbps)
        } else {
            by(params.shaper_rate_adjust_up_load_low).min(self.base_kbps)
        };
        self.last_decay = now;
    }

    fn rate(&self) -> Rate {
        Rate::from_bps(1000 * self.rate_kbps as u64)
    }
}

impl Autorate {
    /// Begins with the base rates.
    pub fn new(params: Params) -> Self {
        let interval = params.monitored().max(Span::from_millis(1));
        Self {
            params,
            ways: Way::BOTH.map(|way| Direction::new(&params, &params.known[way as usize])),
            baselines_us: vec![[FIRST_BASELINE_US; 2]; params.no_pingers.max(1)],
            turn: 0,
            monitored: Instant::ZERO + interval,
            interval,
            next_ping: Instant::ZERO,
            answered: Instant::ZERO,
            stalled: false,
            asleep: false,
            idle: None,
            changed: false,
        }
    }

    /// Returns when the next probe is to be sent; [`Instant::MAX`] while there is no load. Changes with [`Autorate::sent`],
    /// [`Autorate::ping`] and [`Estimator::pass`].
    pub fn next_ping(&self) -> Instant {
        if self.asleep { Instant::MAX } else { self.next_ping }
    }

    /// Notes that a probe was sent. Probes keep their spacing if one is late by less than it.
    pub fn sent(&mut self, now: Instant) {
        let spacing = self.params.ping_response_interval();
        let next = self.next_ping + spacing;
        self.next_ping = if next > now { next } else { now + spacing };
    }

    /// Takes an answer: the delays of its two ways, in the order of [`Way`]. They may be by the clock of the reflector, with any
    /// offset that does not change.
    pub fn ping(&mut self, delays: [Span; 2], now: Instant) {
        self.advance(now);
        let reflector = self.turn;
        self.turn = (self.turn + 1) % self.baselines_us.len();
        if self.asleep {
            return;
        }
        self.answered = now;
        if !std::mem::take(&mut self.stalled) {
            self.changed = true;
            self.judge(reflector, delays, now);
            self.rest(now);
        }
    }

    fn judge(&mut self, reflector: usize, delays: [Span; 2], now: Instant) {
        let delays_us = match self.params.pinger {
            Pinger::OneWay => delays.map(delay_us),
            Pinger::RoundTrips => [delay_us(delays[0] + delays[1]) / 2; 2],
        };
        let baselines = &mut self.baselines_us[reflector];
        for (way, direction) in self.ways.iter_mut().enumerate() {
            baselines[way] = baseline_us(&self.params, baselines[way], delays_us[way]);
            // (2)
            direction.answer(&self.params, delays_us[way] - baselines[way]);
            direction.adjust(&self.params, now);
        }
    }

    /// Falls asleep if there was no load for long enough.
    fn rest(&mut self, now: Instant) {
        if self.ways.iter().any(|direction| direction.load != Load::Idle) {
            self.idle = None;
            return;
        }
        let since = *self.idle.get_or_insert(now);
        if now.since(since) > self.params.sustained_idle_sleep_thr {
            (self.asleep, self.idle) = (true, None);
        }
    }

    /// Measures the achieved rates as often as it was due until now.
    fn advance(&mut self, now: Instant) {
        // Two measurements without a packet between them are the same as any number.
        let late = now.since(self.monitored).as_nanos() / self.interval.as_nanos();
        self.monitored += self.interval * late.saturating_sub(2);
        while now >= self.monitored {
            self.ways.iter_mut().for_each(|direction| direction.measure(&self.params, self.interval));
            self.wake_or_stall(self.monitored);
            self.monitored += self.interval;
        }
    }

    fn wake_or_stall(&mut self, now: Instant) {
        let both_above = |kbps: i64| self.ways.iter().all(|direction| direction.achieved_kbps > kbps);
        let carries = both_above(kbps(self.params.connection_stall_thr));
        let patience = self.params.ping_response_interval() * self.params.stall_detection_thr;
        if self.asleep {
            if self.ways.iter().any(|direction| direction.achieved_kbps > self.params.active_kbps()) {
                (self.asleep, self.changed) = (false, true);
                self.next_ping = now;
                self.answered = now + self.params.reflector_ping_interval * 2;
            }
        } else if self.stalled || now.since(self.answered) > patience {
            self.stalled = !carries;
        }
    }
}

impl Estimator for Autorate {
    #[inline]
    fn pass<S: TcpView>(&mut self, way: Way, _: u64, size: Bytes, _: Option<&S>, now: Instant) {
        if now >= self.monitored {
            self.advance(now);
        }
        let bytes = &mut self.ways[way as usize].bytes;
        *bytes = bytes.saturating_add(size.get());
    }

    /// At once after an answer, which may have changed the rates, and when probes are sent again.
    fn due(&self) -> Instant {
        if self.changed { Instant::ZERO } else { self.monitored }
    }

    fn step(&mut self, _: [Ours; 2], now: Instant) -> [Rate; 2] {
        self.advance(now);
        self.changed = false;
        self.capacity()
    }

    /// The rates of the shapers: the law has no other notion of the link.
    fn capacity(&self) -> [Rate; 2] {
        self.ways.each_ref().map(Direction::rate)
    }

    /// True once there was bufferbloat.
    fn measured(&self) -> [bool; 2] {
        self.ways.each_ref().map(|direction| direction.measured)
    }
}

#[cfg(test)]
mod tests;
