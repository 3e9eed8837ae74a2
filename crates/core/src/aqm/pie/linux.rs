//! PIE as the Linux kernel computes it (`net/sched/sch_pie.c`, Linux 6), so that results can be compared with a
//! kernel's.
//!
//! Time is in ticks of 64 ns, a probability in 1/2^56, gains in 1/16 per second. Differences from the RFC:
//!
//! ```text
//! prob      may rise above 1; only a sum beyond 2^64 is cut, to 2^56 - 1
//! update    first at 500 ms; the sum of a capped step and that of a high delay is up to 4 %
//! decay     1/64, and not in an update that finds no delay and yet a backlog
//! burst     shrinks at departures, by the time since the one before (or by the time of a measurement cycle)
//! safeguard uses the current delay, not the one before, and fewer than two packets of 1514 B queued
//! restart   burst, accumulation and measurements, in the update; not at arrivals
//! rate      average of rates, 7/8 old and 1/8 new, in 256 bytes per tick, 32 bits
//! ECN       up to a probability of 10 %; a mark forced by the accumulation does not restart it
//! ```
//!
//! DIFFERENCE: the kernel compares 56 random bits; here 53 random bits and three zeros, as in the twin
//! (`python/penstock/reference/pie.py`). Pinned by `test_every_packet_has_the_fate_that_the_twin_gives_it` of
//! `tests/test_twins_delays.py`.
//! DIFFERENCE: `tupdate` is exact, where the kernel rounds up to jiffies (with 250 of them per second, 15 ms is 16 ms
//! there). Pinned by `the_kernels_updates_are_tupdate_apart`.

use super::super::Compat;
use super::{Config, Estimator};
use crate::aqm::Meta;
use crate::aqm::control::{Law, Periodic, before_departure};
use crate::config::ConfigError;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Instant, Span};

/// MAX_PROB of pie.h: the probability 1.
pub(super) const MAX_PROB: u64 = u64::MAX >> 8;
/// PSCHED_SHIFT: a tick is 2^6 ns.
const TICK_SHIFT: u32 = 6;
const TICKS_PER_SEC: u64 = 1_000_000_000 >> TICK_SHIFT;
/// QUEUE_THRESHOLD of pie.h: bytes of a measurement cycle.
const QUEUE_THRESHOLD: u64 = 16_384;
/// PIE_SCALE of pie.h: rates are in units of 2^-8 bytes per tick.
const PIE_SCALE: u32 = 8;
/// Size of a full packet, psched_mtu() of an Ethernet device.
const MTU: u64 = 1514;
/// Time of the first update.
const FIRST_UPDATE: Span = Span::from_millis(500);
/// The gains of the kernel are sixteenths, 0 to 32.
const GAIN_UNIT: f64 = 16.0;

/// Checks that the parameters are such as the kernel allows; some of them are constants there.
pub(super) fn validate(config: &Config) -> Result<(), ConfigError> {
    for (key, gain) in [("alpha", config.alpha), ("beta", config.beta)] {
        let units = gain * GAIN_UNIT;
        if units.fract() != 0.0 || units > 32.0 {
            return Err(ConfigError::new(key, "must be a multiple of 0.0625 up to 2 with compat = \"linux\""));
        }
    }
    let kernels = Config { compat: Compat::Linux, ..Config::default() };
    let constants = [
        ("max_burst", config.max_burst == kernels.max_burst),
        ("mean_packet", config.mean_packet == kernels.mean_packet),
        ("dq_threshold", config.dq_threshold == kernels.dq_threshold),
        ("derandomize", config.derandomize),
        ("high_delay", config.high_delay == kernels.high_delay),
        ("ecn_threshold", config.ecn_threshold == kernels.ecn_threshold),
    ];
    match constants.iter().find(|(_, same)| !same) {
        Some((key, _)) => {
            Err(ConfigError::new(key, "is a constant of the kernel: leave it out with compat = \"linux\""))
        }
        None => Ok(()),
    }
}

const fn ticks(span: Span) -> u64 {
    span.as_nanos() >> TICK_SHIFT
}

/// The state of PIE in the arithmetic of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Linux {
    timer: Periodic<Vars>,
}

/// The fields of the kernel's `pie_params` and `pie_vars`, with their names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vars {
    target: u64,
    alpha: u64,
    beta: u64,
    by_rate: bool,
    bytemode: bool,
    ecn: bool,
    qdelay: u64,
    qdelay_old: u64,
    burst_time: u64,
    dq_tstamp: Option<u64>,
    pub(super) prob: u64,
    accu_prob: u64,
    dq_count: Option<u64>,
    avg_dq_rate: u32,
}

impl Linux {
    pub(super) fn new(config: &Config) -> Self {
        let gain = |per_s: f64| ((per_s * GAIN_UNIT) as u64 * (MAX_PROB / TICKS_PER_SEC)) >> 4;
        let mut vars = Vars {
            target: ticks(config.target),
            alpha: gain(config.alpha),
            beta: gain(config.beta),
            by_rate: config.estimator == Estimator::DepartureRate,
            bytemode: config.bytemode,
            ecn: config.ecn,
            qdelay: 0,
            qdelay_old: 0,
            burst_time: 0,
            dq_tstamp: None,
            prob: 0,
            accu_prob: 0,
            dq_count: None,
            avg_dq_rate: 0,
        };
        vars.restart();
        Self { timer: Periodic::new(vars, FIRST_UPDATE, config.tupdate) }
    }

    #[inline]
    pub(super) fn arrival(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.timer.catch_up(backlog, now);
        self.timer.law.judge(packet, backlog, rng)
    }

    #[inline]
    pub(super) fn departure(&mut self, packet: &Meta, sojourn: Span, left: Backlog, now: Instant) {
        self.timer.catch_up(before_departure(left, packet.size), now);
        let now_ticks = ticks(now.since(Instant::ZERO));
        let vars = &mut self.timer.law;
        if vars.by_rate {
            vars.measure_rate(packet.size.get(), left.bytes, now_ticks);
        } else {
            let since = ticks((now - sojourn).since(Instant::ZERO));
            vars.measure_delay(now_ticks - since, left.bytes, now_ticks);
        }
    }

    pub(super) fn overflow(&mut self) {
        self.timer.law.accu_prob = 0;
    }

    pub(super) fn catch_up(&mut self, backlog: Backlog, now: Instant) {
        self.timer.catch_up(backlog, now);
    }

    #[cfg(test)]
    pub(super) fn vars(&self) -> &Vars {
        &self.timer.law
    }
}

impl Vars {
    #[cfg(test)]
    pub(super) fn set(&mut self, prob: u64, old: Span, last: Span) {
        (self.prob, self.qdelay_old, self.qdelay) = (prob, ticks(old), ticks(last));
    }

    #[cfg(test)]
    pub(super) fn delay_ticks(&self) -> u64 {
        self.qdelay
    }

    #[cfg(test)]
    pub(super) fn burst_left(&self) -> Span {
        Span::from_nanos(self.burst_time << TICK_SHIFT)
    }

    #[cfg(test)]
    pub(super) fn accumulated(&self) -> u64 {
        self.accu_prob
    }

    /// The next packet is dropped or marked without a random number.
    #[cfg(test)]
    pub(super) fn force(&mut self) {
        (self.burst_time, self.accu_prob) = (0, MAX_PROB / 2 * 17);
    }

    /// Sets the state to its start, like `pie_vars_init()`.
    fn restart(&mut self) {
        self.burst_time = ticks(Span::from_millis(150));
        self.dq_tstamp = None;
        self.accu_prob = 0;
        self.dq_count = None;
        self.avg_dq_rate = 0;
    }

    /// Judges an arrival, like `pie_qdisc_enqueue()` without its limit.
    #[inline]
    pub(super) fn judge(&mut self, packet: &Meta, backlog: Backlog, rng: &mut Rng) -> Verdict {
        if !self.drop_early(packet.size.get(), backlog.bytes, rng) {
            return Verdict::Pass;
        }
        if self.ecn && self.prob <= MAX_PROB / 10 && packet.ecn.is_capable() {
            return Verdict::Mark;
        }
        self.accu_prob = 0;
        Verdict::Drop
    }

    /// Draws whether to drop or mark, like `pie_drop_early()`.
    #[inline]
    fn drop_early(&mut self, size: u64, backlog: u64, rng: &mut Rng) -> bool {
        let calm = self.qdelay < self.target / 2 && self.prob < MAX_PROB / 5;
        if self.burst_time > 0 || calm || backlog < 2 * MTU {
            return false;
        }
        let prob = if self.bytemode && size <= MTU { size * (self.prob / MTU) } else { self.prob };
        self.accu_prob = if prob == 0 { 0 } else { self.accu_prob.wrapping_add(prob) };
        if self.accu_prob < MAX_PROB / 100 * 85 {
            return false;
        }
        if self.accu_prob >= MAX_PROB / 2 * 17 {
            return true;
        }
        let hit = (rng.bits() >> 11 << 3) < prob;
        if hit {
            self.accu_prob = 0;
        }
        hit
    }

    /// Notes a departure, like `pie_process_dequeue()` with timestamps.
    fn measure_delay(&mut self, sojourn: u64, left: u64, now: u64) {
        self.qdelay = if left == 0 { 0 } else { sojourn };
        let since = self.dq_tstamp.replace(now).unwrap_or(now);
        self.reduce_burst((now - since) as u32);
    }

    /// Notes a departure, like `pie_process_dequeue()` with the rate of departures.
    fn measure_rate(&mut self, size: u64, left: u64, now: u64) {
        if left >= QUEUE_THRESHOLD && self.dq_count.is_none() {
            self.dq_tstamp = Some(now);
            self.dq_count = Some(0);
        }
        let Some(count) = self.dq_count.as_mut() else { return };
        *count += size;
        let count = *count;
        let took = (now - self.dq_tstamp.unwrap_or(now)) as u32;
        if count < QUEUE_THRESHOLD || took == 0 {
            return;
        }
        let rate = ((count << PIE_SCALE) as u32) / took;
        self.avg_dq_rate = match self.avg_dq_rate {
            0 => rate,
            avg => avg - (avg >> 3) + (rate >> 3),
        };
        if left < QUEUE_THRESHOLD {
            self.dq_count = None;
        } else {
            self.dq_count = Some(0);
            self.dq_tstamp = Some(now);
        }
        self.reduce_burst(took);
    }

    fn reduce_burst(&mut self, by: u32) {
        self.burst_time = self.burst_time.saturating_sub(u64::from(by));
    }

    /// Returns the current delay and that of the update before, in ticks.
    fn delays(&mut self, backlog: u32) -> (u64, u64) {
        if !self.by_rate {
            return (self.qdelay, self.qdelay_old);
        }
        self.qdelay_old = self.qdelay;
        let qdelay = (backlog << PIE_SCALE).checked_div(self.avg_dq_rate).unwrap_or(0);
        (u64::from(qdelay), self.qdelay_old)
    }

    /// Returns the change of the probability, in the kernel's wrapping arithmetic.
    fn delta(&self, qdelay: u64, qdelay_old: u64) -> i64 {
        let shift = self.shift();
        let distance = (self.alpha >> shift).wrapping_mul(qdelay.wrapping_sub(self.target));
        let change = (self.beta >> shift).wrapping_mul(qdelay.wrapping_sub(qdelay_old));
        let mut delta = distance.wrapping_add(change) as i64;
        if delta > (MAX_PROB / 50) as i64 && self.prob >= MAX_PROB / 10 {
            delta = (MAX_PROB / 100 * 2) as i64;
        }
        if qdelay > ticks(Span::from_millis(250)) {
            delta = delta.wrapping_add((MAX_PROB / 50) as i64);
        }
        delta
    }

    /// Returns the right shift of the gains at this probability, which divides them by 1, 2, 8, 32, 128, 512 or 2048.
    fn shift(&self) -> u32 {
        if self.prob >= MAX_PROB / 10 {
            return 0;
        }
        1 + [100, 1_000, 10_000, 100_000, 1_000_000]
            .iter()
            .map(|power| u32::from(self.prob < MAX_PROB / power) * 2)
            .sum::<u32>()
    }
}

impl Law for Vars {
    type Queue = Backlog;

    /// Makes one update, like `pie_calculate_probability()`.
    fn update(&mut self, backlog: Backlog, _: Instant) {
        let (qdelay, qdelay_old) = self.delays(backlog.bytes as u32);
        let mut decays = qdelay != 0 || backlog.bytes == 0;
        let delta = self.delta(qdelay, qdelay_old);
        let sum = self.prob.wrapping_add(delta as u64);
        // Only an overflow of 64 bits is cut; it also prevents the decay below.
        if delta > 0 && sum < self.prob {
            self.prob = MAX_PROB;
            decays = false;
        } else {
            self.prob = if delta <= 0 && sum > self.prob { 0 } else { sum };
        }
        if qdelay == 0 && qdelay_old == 0 && decays {
            self.prob -= self.prob / 64;
        }
        self.qdelay = qdelay;
        let calm = self.qdelay < self.target / 2 && self.qdelay_old < self.target / 2;
        if calm && self.prob == 0 && (!self.by_rate || self.avg_dq_rate > 0) {
            self.restart();
        }
        if !self.by_rate {
            self.qdelay_old = qdelay;
        }
    }
}
