//! DualPI2 as Linux has it: rolls of chance, probabilities in units of 2^-32, a step in place of the ramp.
//!
//! Source: Linux 6.18, `net/sched/sch_dualpi2.c`. Names are those of the source.
//!
//! ```text
//! prob     prob + ((qdelay - target) alpha + (qdelay - last_qdelay) beta) / 64, 32 bits, every tupdate
//! no less  nothing is signalled while less than two MTU wait in both queues, without the packet that goes
//! C queue  two rolls below prob: drop what is Not-ECT, mark the rest; in overload drop all
//! L queue  one roll below k prob: mark; in overload two rolls below prob: drop, else mark
//! step     a packet of the L queue that waited longer than step_thresh is marked
//! overload k prob > 1
//! ```
//!
//! One number is drawn for each roll, of which the upper 32 bits count, and the second only if the first was below. The
//! credit of the scheduler starts anew when the link finds both queues empty. What is not in the source is not here:
//! filters and GSO.
//!
//! DIFFERENCE: a gain is rounded to the nearest multiple of 1/256, as the defaults of the kernel are; `tc` cuts it. The
//! memory limit counts the sizes of packets on the link, not of buffers. Pinned by `the_gains_are_the_kernels`,
//! `both_queues_share_one_limit_in_linux`.

use super::{Class, Config, Queue, Scheduler};
use crate::aqm::control::{Law, Periodic};
use crate::config::{ConfigError, LinkFacts};
use crate::packet::{Ecn, Packet};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Stats, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Span};

/// The probability 1.
const MAX_PROB: u32 = u32::MAX;
/// Gains are told in 1/256 Hz.
const ALPHA_BETA_SHIFT: u32 = 8;
/// Gains are kept for times in units of 2^6 ns.
const ALPHA_BETA_GRANULARITY: u32 = 6;
/// Largest gain, in 1/256 Hz.
const ALPHA_BETA_MAX: f64 = ((1u32 << 31) - 1) as f64;
/// alpha of dualpi2_reset_default(), about 0.16 Hz.
const ALPHA: u32 = 41;
/// beta of dualpi2_reset_default(), about 3.2 Hz.
const BETA: u32 = 819;
/// pi2_tupdate of dualpi2_reset_default().
const TUPDATE: Span = Span::from_millis(16);

/// Refuses parameters that only the kernel has.
pub(super) fn check_source(config: &Config) -> Result<(), ConfigError> {
    let default = Config::default();
    let told = [
        ("step_thresh", config.step_thresh != default.step_thresh),
        ("step_packets", config.step_packets.is_some()),
        ("min_qlen_step", config.min_qlen_step != default.min_qlen_step),
        ("drop_early", config.drop_early),
        ("drop_overload", !config.drop_overload),
        ("any_ect", config.any_ect),
        ("memory_limit", config.memory_limit.is_some()),
    ];
    match told.iter().find(|(_, told)| *told) {
        Some((key, _)) => Err(ConfigError::new(key, "is the kernel's: it needs compat = \"linux\"")),
        None => Ok(()),
    }
}

/// Refuses parameters that only the RFC has, and values that the kernel does not allow.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let default = Config::default();
    let told = [
        ("rtt_max", config.rtt_max != default.rtt_max),
        ("min_th", config.min_th != default.min_th),
        ("range", config.range != default.range),
        ("th_len", config.th_len != default.th_len),
    ];
    if let Some((key, _)) = told.iter().find(|(_, told)| *told) {
        return Err(ConfigError::new(key, "does not exist in Linux's DualPI2; leave it out with compat = \"linux\""));
    }
    for (key, gain) in [("alpha", config.alpha), ("beta", config.beta)] {
        if gain.is_some_and(|gain| !(1.0..=ALPHA_BETA_MAX).contains(&in_256ths(gain))) {
            return Err(ConfigError::new(key, "must be 1/256 or more with compat = \"linux\""));
        }
    }
    if config.coupling.fract() != 0.0 {
        return Err(ConfigError::new("coupling", "must be a whole number with compat = \"linux\""));
    }
    if config.memory_limit == Some(Bytes::ZERO) {
        return Err(ConfigError::new("memory_limit", "must be above 0B"));
    }
    Ok(())
}

/// Returns the time between updates.
pub(super) fn tupdate(config: &Config) -> Span {
    config.tupdate.unwrap_or(TUPDATE)
}

/// Returns the gains in 1/s, for checks which are the same for both forms.
pub(super) fn gains(config: &Config) -> [(&'static str, f64); 2] {
    let of = |told: Option<f64>, default: u32| told.unwrap_or(f64::from(default) / 256.0);
    [("alpha", of(config.alpha, ALPHA)), ("beta", of(config.beta, BETA))]
}

fn in_256ths(gain: f64) -> f64 {
    (gain * f64::from(1 << ALPHA_BETA_SHIFT)).round()
}

/// `dualpi2_scale_alpha_beta()`.
fn scale_alpha_beta(param: u32) -> u32 {
    let scaled = (u64::from(param) * u64::from(MAX_PROB)) >> (ALPHA_BETA_SHIFT - ALPHA_BETA_GRANULARITY);
    (scaled / 1_000_000_000) as u32
}

/// `__scale_delta()`.
fn scale_delta(diff: u64) -> u64 {
    diff >> ALPHA_BETA_GRANULARITY
}

/// The controller: the fields of `dualpi2_sched_data` with the PI2 parameters.
#[derive(Debug, Clone, PartialEq)]
struct Pi2 {
    target: u64,
    alpha: u32,
    beta: u32,
    prob: u32,
    last_qdelay: u64,
    coupling_factor: u8,
    drop_overload: bool,
}

impl Pi2 {
    fn new(config: &Config) -> Self {
        let gain = |told: Option<f64>, default| scale_alpha_beta(told.map_or(default, |gain| in_256ths(gain) as u32));
        Self {
            target: config.target.as_nanos(),
            alpha: gain(config.alpha, ALPHA),
            beta: gain(config.beta, BETA),
            prob: 0,
            last_qdelay: 0,
            coupling_factor: config.coupling as u8,
            drop_overload: config.drop_overload,
        }
    }

    /// `calculate_probability()`, in the widths of the kernel.
    fn calculate_probability(&mut self, qdelay: u64) {
        let weighed = |from: u64, gain: u32| (qdelay.wrapping_sub(from) as i64).wrapping_mul(i64::from(gain));
        let delta = weighed(self.target, self.alpha).wrapping_add(weighed(self.last_qdelay, self.beta));
        self.last_qdelay = qdelay;
        let change = scale_delta(delta.unsigned_abs()) as u32;
        let mut prob;
        if delta > 0 {
            prob = self.prob.wrapping_add(change);
            if prob < self.prob {
                prob = MAX_PROB;
            }
        } else {
            prob = self.prob.wrapping_sub(change);
            if prob > self.prob {
                prob = 0;
            }
        }
        let most = if self.drop_overload { MAX_PROB } else { MAX_PROB / u32::from(self.coupling_factor.max(1)) };
        self.prob = prob.min(most);
    }

    /// `dualpi2_classic_marking()`.
    fn classic(&self, ecn: Ecn, overload: bool, rng: &mut Rng) -> Verdict {
        if !(roll(self.prob, rng) && roll(self.prob, rng)) {
            Verdict::Pass
        } else if overload || !ecn.is_capable() {
            Verdict::Drop
        } else {
            Verdict::Mark
        }
    }

    /// `dualpi2_scalable_marking()`, for packets that are ECN-capable.
    fn scalable(&self, l_prob: u64, overload: bool, rng: &mut Rng) -> Verdict {
        if overload {
            let drop = self.drop_overload && roll(self.prob, rng) && roll(self.prob, rng);
            return if drop { Verdict::Drop } else { Verdict::Mark };
        }
        if roll(l_prob as u32, rng) { Verdict::Mark } else { Verdict::Pass }
    }

    /// `must_drop()`, for a queue that is long enough.
    fn judge(&self, class: Class, ecn: Ecn, rng: &mut Rng) -> Verdict {
        let l_prob = u64::from(self.prob) * u64::from(self.coupling_factor);
        let overload = l_prob > u64::from(MAX_PROB);
        match class {
            Class::Classic => self.classic(ecn, overload, rng),
            Class::L4s => self.scalable(l_prob, overload, rng),
        }
    }
}

impl Law for Pi2 {
    /// When the older of the two heads came.
    type Queue = Option<Instant>;

    fn update(&mut self, oldest: Option<Instant>, at: Instant) {
        self.calculate_probability(oldest.map_or(0, |since| at.since(since).as_nanos()));
    }

    fn is_timeless(oldest: Option<Instant>) -> bool {
        oldest.is_none()
    }
}

/// `dualpi2_roll()`.
fn roll(prob: u32, rng: &mut Rng) -> bool {
    (rng.bits() >> 32) as u32 <= prob
}

/// The step of the L queue.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Time(Span),
    Packets(u64),
}

/// What waits: a packet, and whether the step is for it (`apply_step`).
type Waiting<P> = (P, bool);

/// The two queues with their packets, the controller and the scheduler.
#[derive(Debug, Clone)]
pub struct LinuxDualPi2<P> {
    l: Queue<Waiting<P>>,
    c: Queue<Waiting<P>>,
    limit: Limit,
    memory_limit: Bytes,
    timer: Periodic<Pi2>,
    scheduler: Scheduler,
    step: Step,
    min_qlen_step: u64,
    /// Twice `psched_mtu()`.
    spared: u64,
    drop_early: bool,
    any_ect: bool,
    pub(super) stats: Stats,
}

/// `get_memory_limit()`, for a limit in packets.
fn memory_limit(config: &Config, limit: Limit) -> Bytes {
    let default = match limit {
        Limit::Packets(packets) => Bytes::new(packets.saturating_mul(2 * config.mtu.get()).min(u32::MAX.into())),
        Limit::Bytes(_) => Bytes::MAX,
    };
    config.memory_limit.unwrap_or(default)
}

impl<P: Packet> LinuxDualPi2<P> {
    /// Creates empty queues before `link`.
    pub(super) fn new(config: &Config, link: &LinkFacts) -> Self {
        let tupdate = tupdate(config);
        Self {
            l: Queue::default(),
            c: Queue::default(),
            limit: link.limit,
            memory_limit: memory_limit(config, link.limit),
            timer: Periodic::new(Pi2::new(config), tupdate, tupdate),
            scheduler: Scheduler::new(config.classic_weight, config.mtu),
            step: config.step_packets.map_or(Step::Time(config.step_thresh), Step::Packets),
            min_qlen_step: config.min_qlen_step,
            spared: 2 * config.mtu.get(),
            drop_early: config.drop_early,
            any_ect: config.any_ect,
            stats: Stats::default(),
        }
    }

    /// Makes the updates that are due.
    pub(super) fn catch_up(&mut self, now: Instant) {
        let oldest = match (self.l.head_since(), self.c.head_since()) {
            (Some(l), Some(c)) => Some(l.min(c)),
            (l, c) => l.or(c),
        };
        self.timer.catch_up(oldest, now);
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.l.backlog + self.c.backlog
    }

    /// `dualpi2_skb_classify()`, without filters.
    fn class(&self, ecn: Ecn) -> Class {
        match ecn {
            Ecn::Ect1 | Ecn::Ce => Class::L4s,
            Ecn::Ect0 if self.any_ect => Class::L4s,
            _ => Class::Classic,
        }
    }

    /// `must_drop()`: nothing is signalled while less than two MTU wait.
    fn must_drop(&self, class: Class, ecn: Ecn, rng: &mut Rng) -> Verdict {
        if self.backlog().bytes < self.spared {
            return Verdict::Pass;
        }
        self.timer.law.judge(class, ecn, rng)
    }

    fn has_room(&self, size: Bytes) -> bool {
        let backlog = self.backlog();
        backlog.has_room(size, self.limit) && backlog.bytes + size.get() <= self.memory_limit.get()
    }

    fn drop<O: PacketObserver<P>>(&mut self, packet: P, reason: DropReason, now: Instant, observer: &mut O) {
        self.stats.count_drop(reason, packet.size());
        observer.dropped(packet, reason, now);
    }

    fn mark<O: PacketObserver<P>>(&mut self, packet: &mut P, now: Instant, observer: &mut O) {
        packet.mark_ce();
        self.stats.marked.add(packet.size());
        observer.marked(packet, now);
    }

    /// `dualpi2_enqueue_skb()`.
    pub(super) fn enqueue<O: PacketObserver<P>>(
        &mut self,
        mut packet: P,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Enqueued {
        self.catch_up(now);
        let (size, class) = (packet.size(), self.class(packet.ecn()));
        self.stats.arrived.add(size);
        let verdict = match self.has_room(size) {
            false => Err(DropReason::Overflow),
            true if !self.drop_early => Ok(Verdict::Pass),
            true => match self.must_drop(class, packet.ecn(), rng) {
                Verdict::Drop => Err(DropReason::Early),
                verdict => Ok(verdict),
            },
        };
        match verdict {
            Err(reason) => {
                self.drop(packet, reason, now, observer);
                return Enqueued::Dropped(reason);
            }
            Ok(Verdict::Mark) => self.mark(&mut packet, now, observer),
            Ok(_) => {}
        }
        let apply_step = class == Class::L4s && self.l.backlog.packets >= self.min_qlen_step;
        let queue = if class == Class::L4s { &mut self.l } else { &mut self.c };
        queue.push((packet, apply_step), size, now);
        Enqueued::Queued
    }

    /// `dequeue_packet()`: the packet, its class and when it came. Whether the other queue waits is told before it is taken.
    fn take(&mut self) -> Option<(Waiting<P>, Class, Instant, bool)> {
        let (l_waits, c_waits) = (!self.l.is_empty(), !self.c.is_empty());
        let class = self.scheduler.turn(l_waits, c_waits)?;
        let queue = if class == Class::L4s { &mut self.l } else { &mut self.c };
        let (waiting, since) = queue.waiting.pop_front()?;
        queue.backlog.remove(waiting.0.size());
        Some((waiting, class, since, l_waits && c_waits))
    }

    /// `do_step_aqm()`: true if the step marks a packet that waited for `sojourn`.
    fn is_above_step(&self, sojourn: Span) -> bool {
        match self.step {
            Step::Time(thresh) => sojourn > thresh,
            Step::Packets(thresh) => self.l.backlog.packets > thresh,
        }
    }

    /// `dualpi2_qdisc_dequeue()`.
    pub(super) fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        self.catch_up(now);
        while let Some(((mut packet, apply_step), class, since, contended)) = self.take() {
            let (ecn, size) = (packet.ecn(), packet.size());
            let verdict = if self.drop_early { Verdict::Pass } else { self.must_drop(class, ecn, rng) };
            if verdict == Verdict::Drop {
                self.drop(packet, DropReason::Dequeue, now, observer);
                continue;
            }
            if verdict == Verdict::Mark || (apply_step && self.is_above_step(now.since(since))) {
                self.mark(&mut packet, now, observer);
            }
            if contended {
                self.scheduler.served(class, size);
            }
            self.stats.sent.add(size);
            return Some(packet);
        }
        self.scheduler.reset();
        None
    }
}

#[cfg(test)]
mod tests;
