//! COBALT as Linux computes it: times in whole nanoseconds, roots and probabilities in units of 2^-32.
//!
//! Source: Linux 6.18, `net/sched/sch_cake.c`. Names are those of the source. What the algorithm does is told in the
//! file above; here is what differs from it:
//!
//! ```text
//! roots      below 16 from a table, exact to the last bit; from 16 on one Newton step per change of the count
//! fresh      the root of a queue that was never used is 0, so its first signal comes with the second packet over target
//! BLUE       draws a number only for a packet that CoDel does not drop, and drops it if the upper 32 bits are below p
//! idle       an empty queue is told of once, when the link finds it empty: p does not fall any further until then
//! overflow   the packet at the head is dropped, until the queue is within its limit
//! ```
//!
//! The kernel's clock shows the time since its start, and all times of a new queue are 0. Here they are as long ago as
//! need be, so that a run may begin at 0.
//!
//! DIFFERENCE: cake looks at an empty flow again and again while other flows have packets, and not at all while none
//! has. Here the link's question is told to the queue, as in a test of COBALT alone. Pinned by
//! `an_empty_queue_is_told_of_once`.
//! DIFFERENCE: the kernel takes the lower 32 bits of an interval when it computes the time of the next signal, so that an
//! interval above 4.29 s, as tins below 8.5 kbit/s have, becomes another one. Here it stays whole. Pinned by
//! `an_interval_above_four_seconds_stays_whole`.

use super::Config;
use crate::judge::Meta;
use crate::qdisc::Verdict;
use crate::rng::Rng;
use crate::units::{Instant, Rate, Span};

/// `inv_sqrt_cache`: 1 / sqrt(count) in units of 2^-32. Kernels before 6.13 computed it with four Newton steps, which
/// for a count of 2 gave 3035289760.
const INV_SQRT_CACHE: [u32; 16] = [
    u32::MAX,
    u32::MAX,
    3_037_000_500,
    2_479_700_525,
    2_147_483_647,
    1_920_767_767,
    1_753_413_056,
    1_623_345_051,
    1_518_500_250,
    1_431_655_765,
    1_358_187_914,
    1_294_981_364,
    1_239_850_263,
    1_191_209_601,
    1_147_878_294,
    1_108_955_788,
];
/// `MIN_RATE` of `cake_set_rate()`, in bytes per second.
const MIN_RATE: u64 = 64;

/// The time of a byte at some rate, in nanoseconds: `ns` in units of 2^-`shift`, as `cake_set_rate()` computes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    ns: u64,
    shift: u32,
}

impl Pace {
    /// A byte takes no time: the rate has no limit.
    pub const UNLIMITED: Self = Self { ns: 0, shift: 0 };

    /// Computes the pace of a rate in bytes per second, cut to 34 bits.
    pub fn of(bytes_per_second: u64) -> Self {
        let (mut ns, mut shift) = ((1_000_000_000u64 << 34) / bytes_per_second.max(MIN_RATE), 34u32);
        while ns >> 34 != 0 {
            ns >>= 1;
            shift -= 1;
        }
        Self { ns, shift }
    }

    /// Returns the time of a packet of this size in nanoseconds.
    #[inline]
    pub fn time_for(self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.ns)) >> self.shift) as u64
    }
}

/// Returns the pace of the link's rate.
fn pace(rate: Rate) -> Pace {
    Pace::of(rate.as_bps() / 8)
}

/// `cobalt_params`, in nanoseconds and units of 2^-32. `freeze` is `target`, unless it is set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Params {
    pub interval: u64,
    pub target: u64,
    mtu_time: u64,
    freeze: u64,
    p_inc: u32,
    p_dec: u32,
}

impl Params {
    /// Computes the parameters, like `cake_set_rate()`.
    pub fn new(config: &Config, pace: Pace) -> Self {
        let (target_ns, rtt_ns) = (config.target.as_nanos(), config.interval.as_nanos());
        let mtu_time = pace.time_for(config.mtu.get());
        let target = (mtu_time.saturating_mul(3) / 2).max(target_ns);
        let interval = (rtt_ns + (target - target_ns)).max(target.saturating_mul(2));
        let freeze = config.freeze.map_or(target, Span::as_nanos);
        let scaled = |p: f64| (p * (1u64 << 32) as f64) as u32;
        Self { interval, target, mtu_time, freeze, p_inc: scaled(config.increment), p_dec: scaled(config.decrement) }
    }
}

/// `cobalt_newton_step()`: x (3 - count x^2) / 2.
fn newton_step(x: u32, count: u32) -> u32 {
    let square = (u64::from(x) * u64::from(x)) >> 32;
    let factor = (3u64 << 32).wrapping_sub(u64::from(count).wrapping_mul(square)) >> 2;
    (factor.wrapping_mul(u64::from(x)) >> 31) as u32
}

/// `cobalt_vars`: the state of one queue. A time is `None` where the kernel's is still 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Vars {
    count: u32,
    rec_inv_sqrt: u32,
    drop_next: Option<Instant>,
    blue_timer: Option<Instant>,
    p_drop: u32,
    dropping: bool,
}

impl Vars {
    /// The state of a queue that was used before and is at rest: its first signal comes an interval after the delay exceeds the
    /// target, and not with the second packet as in one that was never used.
    pub fn rested() -> Self {
        Self { rec_inv_sqrt: INV_SQRT_CACHE[0], ..Self::default() }
    }

    /// True if nothing is left to decay: an empty queue in this state is like one that was never used.
    #[inline]
    pub fn is_at_rest(&self, now: Instant) -> bool {
        self.p_drop == 0 && self.count == 0 && self.drop_next.is_none_or(|at| now >= at)
    }

    /// `cobalt_invsqrt()`, with the change of the count.
    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.rec_inv_sqrt = match INV_SQRT_CACHE.get(count as usize) {
            Some(root) => *root,
            None => newton_step(self.rec_inv_sqrt, count),
        };
    }

    /// `cobalt_control()`.
    fn control(&self, t: Instant, params: &Params) -> Instant {
        t + Span::from_nanos(((u128::from(params.interval) * u128::from(self.rec_inv_sqrt)) >> 32) as u64)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.count > 0 && self.drop_next.is_none_or(|at| now >= at)
    }

    /// `ktime_to_ns(schedule) > 0`.
    fn is_past(&self, now: Instant) -> bool {
        self.drop_next.is_none_or(|at| now > at)
    }

    fn is_thawed(&self, now: Instant, params: &Params) -> bool {
        self.blue_timer.is_none_or(|at| now.since(at).as_nanos() > params.freeze)
    }

    /// Changes the count by one step, and the time of the next.
    fn step(&mut self, count: u32, params: &Params) {
        self.set_count(count);
        self.drop_next = Some(self.control(self.drop_next.unwrap_or(Instant::ZERO), params));
    }

    /// `cobalt_queue_full()`.
    pub fn queue_full(&mut self, params: &Params, now: Instant) {
        if self.is_thawed(now, params) {
            self.p_drop = self.p_drop.saturating_add(params.p_inc);
            self.blue_timer = Some(now);
        }
        self.dropping = true;
        self.drop_next = Some(now);
        self.count = self.count.max(1);
    }

    /// `cobalt_queue_empty()`.
    pub fn queue_empty(&mut self, params: &Params, now: Instant) {
        if self.p_drop > 0 && self.is_thawed(now, params) {
            self.p_drop = self.p_drop.saturating_sub(params.p_dec);
            self.blue_timer = Some(now);
        }
        self.dropping = false;
        if self.is_due(now) {
            self.step(self.count - 1, params);
        }
    }

    /// The first half of `cobalt_should_drop()`: enters or leaves the dropping state.
    fn watch(&mut self, params: &Params, over_target: bool, now: Instant) {
        if !over_target {
            self.dropping = false;
            return;
        }
        if !self.dropping {
            self.dropping = true;
            self.drop_next = Some(self.control(now, params));
        }
        self.count = self.count.max(1);
    }

    /// `cobalt_should_drop()`, for the head of a queue with these parameters.
    pub fn should_drop(&mut self, params: &Params, head: &Head, now: Instant, rng: &mut Rng) -> Verdict {
        let (next_due, mut is_past) = (self.is_due(now), self.is_past(now));
        self.watch(params, head.is_over_target(params), now);
        let signal = next_due && self.dropping;
        if signal {
            self.step(self.count.saturating_add(1), params);
            is_past = self.is_past(now);
        } else if next_due {
            while self.is_due(now) {
                self.step(self.count - 1, params);
            }
            is_past = self.is_past(now);
        }
        let mark = signal && head.can_be_marked;
        let mut drop = signal && !mark;
        // Simple BLUE implementation. Lack of ECN is deliberate.
        if self.p_drop > 0 && !drop {
            drop = ((rng.bits() >> 32) as u32) < self.p_drop;
        }
        if self.count == 0 {
            self.drop_next = Some(now + Span::from_nanos(params.interval));
        } else if is_past && !drop {
            self.drop_next = Some(now);
        }
        match (drop && !head.is_last, mark) {
            (true, _) => Verdict::Drop,
            (false, true) => Verdict::Mark,
            (false, false) => Verdict::Pass,
        }
    }
}

/// What COBALT sees of the packet at the head of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub sojourn: Span,
    /// It is ECN-capable, and may be marked.
    pub can_be_marked: bool,
    /// No packet waits behind it.
    pub is_last: bool,
    /// How many bulk flows share the link; 0 unless cake shapes what comes in.
    pub bulk_flows: u64,
}

impl Head {
    fn is_over_target(&self, params: &Params) -> bool {
        let (sojourn, packets) = (self.sojourn.as_nanos(), (self.bulk_flows * 2).max(4));
        sojourn > params.target && sojourn > params.mtu_time.saturating_mul(packets)
    }
}

/// COBALT for one queue, with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LinuxCobalt {
    params: Params,
    ecn: bool,
    vars: Vars,
}

impl LinuxCobalt {
    /// Creates the state of an empty queue.
    pub(super) fn new(config: &Config, rate: Rate) -> Self {
        Self { params: Params::new(config, pace(rate)), ecn: config.ecn, vars: Vars::default() }
    }

    /// Takes over another rate of the link.
    pub(super) fn set_rate(&mut self, config: &Config, rate: Rate) {
        self.params = Params::new(config, pace(rate));
    }

    /// Returns BLUE's probability.
    pub(super) fn probability(&self) -> f64 {
        f64::from(self.vars.p_drop) / (1u64 << 32) as f64
    }

    pub(super) fn queue_full(&mut self, now: Instant) {
        self.vars.queue_full(&self.params, now);
    }

    pub(super) fn queue_empty(&mut self, now: Instant) {
        self.vars.queue_empty(&self.params, now);
    }

    /// Judges the head of the queue; `is_last` says that no packet waits behind it.
    pub(super) fn should_drop(
        &mut self,
        packet: &Meta,
        sojourn: Span,
        is_last: bool,
        now: Instant,
        rng: &mut Rng,
    ) -> Verdict {
        let can_be_marked = self.ecn && packet.ecn.is_capable();
        self.vars.should_drop(&self.params, &Head { sojourn, can_be_marked, is_last, bulk_flows: 0 }, now, rng)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cobalt, Config};
    use super::*;
    use crate::aqm::{Aqm, Compat};
    use crate::config::{AqmConfig, LinkFacts};
    use crate::fact::Fact;
    use crate::packet::{Ecn, FlowId};
    use crate::qdisc::Backlog;
    use crate::rng::Streams;
    use crate::units::{Bytes, Limit};

    const FULL: Backlog = Backlog { packets: 100, bytes: 150_000 };
    const FAST: Rate = Rate::from_bps(1_000_000_000);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn config() -> Config {
        Config { compat: Compat::Linux, ..Config::default() }
    }

    fn linux() -> LinuxCobalt {
        LinuxCobalt::new(&config(), FAST)
    }

    fn packet(ecn: Ecn) -> Meta {
        Meta { size: Bytes::new(1500), ecn, flow: FlowId(0) }
    }

    /// The kernel's own table: 2^32 / sqrt(count), to the last bit. Above it there is one step per change of the count.
    #[test]
    fn roots_are_exact_to_the_last_bit() {
        let scale = (1u64 << 32) as f64;
        for (count, root) in INV_SQRT_CACHE.iter().enumerate().skip(1) {
            assert!((f64::from(*root) - scale / (count as f64).sqrt()).abs() <= 1.0, "{count}: {root}");
        }
        assert!((f64::from(newton_step(INV_SQRT_CACHE[15], 16)) / scale * 4.0 - 1.0).abs() < 0.002);
    }

    /// Over target at 20 ms, drop_next is then: the next packet is dropped. Then 70.7 ms later, at 90.7 ms.
    #[test]
    fn a_fresh_queue_in_linux_does_not_wait_an_interval() {
        let (mut cobalt, mut rng) =
            (config().aqm(&LinkFacts { rate: FAST, limit: Limit::Packets(1000) }), Streams::new(1).get("unused"));
        let mut verdict = |cobalt: &mut Cobalt, wait, ms| {
            cobalt.on_dequeue(&packet(Ecn::NotEct), Span::from_millis(wait), FULL, at(ms), &mut rng)
        };
        assert!((0..20).all(|ms| verdict(&mut cobalt, 1, ms) == Verdict::Pass));
        let dropped: Vec<u64> = (20..100).filter(|ms| verdict(&mut cobalt, 10, *ms) == Verdict::Drop).collect();
        assert_eq!(dropped, [21, 91]);
    }

    /// One step of 2^-12 is taken each time the link asks, however long the queue was empty.
    #[test]
    fn an_empty_queue_is_told_of_once() {
        let mut cobalt = linux();
        cobalt.queue_full(at(10));
        assert_eq!(cobalt.vars.p_drop, 1 << 24);
        cobalt.queue_empty(at(20));
        assert_eq!(cobalt.vars.p_drop, (1 << 24) - (1 << 20));
        let unused = Streams::new(1).get("unused");
        let (mut rng, idle) = (unused.clone(), Span::from_secs(60));
        cobalt.should_drop(&packet(Ecn::NotEct), Span::ZERO, false, at(20) + idle, &mut rng);
        assert_eq!(cobalt.vars.p_drop, (1 << 24) - (1 << 20));
        assert_ne!(rng, unused, "BLUE draws");
    }

    /// A queue which is new finds all times long ago: its first overflow counts, even at the start of a run.
    #[test]
    fn the_first_overflow_counts_at_once() {
        let mut cobalt = linux();
        cobalt.queue_full(at(0));
        cobalt.queue_full(at(5));
        assert_eq!(cobalt.vars.p_drop, 1 << 24, "5 ms are not more than the target");
        cobalt.queue_full(at(6));
        assert_eq!((cobalt.vars.p_drop, cobalt.vars.count, cobalt.vars.dropping), (2 << 24, 1, true));
    }

    /// p_drop stays within 32 bits: 255 overflows of 1/256 are still below 1, and then it is the largest number.
    #[test]
    fn the_probability_stays_within_32_bits() {
        let mut cobalt = linux();
        (0..255).for_each(|n| cobalt.queue_full(at(10 * n)));
        assert_eq!(cobalt.vars.p_drop, 255 << 24);
        cobalt.queue_full(at(2550));
        assert_eq!(cobalt.vars.p_drop, u32::MAX);
        assert!(cobalt.probability() < 1.0);
    }

    /// A packet that CoDel drops is not BLUE's: no number is drawn for it. One that is marked is.
    #[test]
    fn blue_draws_only_for_what_codel_leaves() {
        for (ecn, draws) in [(Ecn::NotEct, false), (Ecn::Ect0, true)] {
            let (mut cobalt, unused) = (linux(), Streams::new(1).get("unused"));
            cobalt.queue_full(at(10));
            let mut rng = unused.clone();
            cobalt.should_drop(&packet(ecn), Span::from_millis(10), false, at(20), &mut rng);
            assert_eq!((cobalt.vars.count, rng != unused), (2, draws), "{ecn:?}");
        }
    }

    /// 10 Mbit/s: 2^34 ns of 1.25 MB/s are 800 ns per byte, exactly. 1 Gbit/s: 8 ns. 3 Mbit/s: 2666.66 ns, cut to 34 bits.
    #[test]
    fn the_time_of_a_packet_is_cakes() {
        let of = |bps| pace(Rate::from_bps(bps)).time_for(1514);
        assert_eq!([of(10_000_000), of(1_000_000_000), of(3_000_000)], [1_211_200, 12_112, 4_037_333]);
        assert_eq!(of(8), 1514 * 1_000_000_000 / 64, "64 B/s at least");
        assert_eq!(Params::new(&config(), pace(Rate::from_bps(1_000_000))).target, 18_168_000);
    }

    /// At 1 Mbit/s the target is 18.168 ms, so that a wait of 10 ms is within it; at 1 Gbit/s it is 5 ms.
    #[test]
    fn a_new_rate_moves_the_target() {
        for (rate, first) in [(FAST, Some(21)), (Rate::from_bps(1_000_000), None)] {
            let mut cobalt = config().aqm(&LinkFacts { rate: FAST, limit: Limit::Packets(1000) });
            cobalt.on_fact(&Fact::Rate(rate), at(0));
            let (packet, wait, mut rng) = (packet(Ecn::NotEct), Span::from_millis(10), Streams::new(1).get("unused"));
            let mut judge = |ms| cobalt.on_dequeue(&packet, wait, FULL, at(ms), &mut rng);
            assert_eq!((20..100).find(|ms| judge(*ms) == Verdict::Drop), first, "{rate}");
        }
    }

    /// 8 kbit/s are 1000 B/s: 1514 B take 1.514 s, the target is 2.271 s and the interval 4.542 s, above 2^32 ns.
    #[test]
    fn an_interval_above_four_seconds_stays_whole() {
        let params = Params::new(&config(), Pace::of(1000));
        assert_eq!(params.interval, 4_542_000_000);
        let mut vars = Vars::default();
        vars.queue_full(&params, at(0));
        vars.step(1, &params);
        assert_eq!(vars.drop_next.unwrap().as_nanos(), 4_541_999_998, "1 is 1 - 2^-32 here");
    }
}
