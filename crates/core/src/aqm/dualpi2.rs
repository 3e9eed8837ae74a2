//! DualPI2: two queues, one for L4S traffic, marked by a ramp at a shallow delay, and one for classic traffic with PI2.
//! The p' of the classic queue is coupled into the marks of the L4S queue, so that flows of both kinds get similar
//! rates.
//!
//! Source: RFC 9332 §2.4, §4.2, Appendix A (A.1 and A.2).
//!
//! ```text
//! L queue: ECT(1) and CE; C queue: not-ECT and ECT(0)                                                     §2.3
//! p'   = p' + alpha (qdelay - target) + beta (qdelay - qdelay_old), within 0..1, every tupdate            A.1
//! p_C  = p'^2                                 classic: drop, or mark ECT(0)
//! p_CL = k p'                                 coupled
//! p'_L = (sojourn - min_th) / range, within 0..1; 0 if at most th_len packets stood in the L queue
//! p_L  = max(p'_L, p_CL)                      L4S: mark
//! recur: count = count + p; if count > 1: count - 1, and act
//! ```
//!
//! `alpha` = 0.1 tupdate / rtt_max^2, `beta` = 0.3 / rtt_max, `tupdate` = min(target, rtt_max / 3), unless they are
//! given. Packets are judged at departure. Overload is k p' >= 1: then L4S packets are dropped with p_C and otherwise
//! marked, and classic packets are dropped with p_C, ECN-capable or not (§4.2.2, A.2). No random numbers are drawn:
//! `recur` spaces signals evenly.
//!
//! The RFC leaves open, and this file chooses: the *scheduler* is Linux's weighted round robin by credit (the L queue
//! first, `classic_weight` percent of the bytes for the C queue while both wait). Its credit starts anew when a
//! departure empties both queues; in Linux it does when the link finds both queues empty, which depends on when the
//! link asks. *qdelay* is how long the older of the two heads has waited, as in Linux. `th_len` includes the packet
//! itself. With `compat = "linux"` everything is as in the kernel: see `dualpi2/linux.rs`.
//!
//! DIFFERENCE: `recur` keeps separate counts for drops and for marks of L4S traffic in overload; with one count, drops
//! would come in the place of marks and marks in that of drops. Pinned by `overload_drops_from_both_queues`.
//! DIFFERENCE: the limit is exact; the RFC keeps room for one MTU. Pinned by `both_queues_share_one_limit`.
//!
//! Updates come at multiples of `tupdate`, without wakeups: see `control.rs`. Cost: O(1) per packet.

use super::control::{Law, Periodic};
use super::pi2::{Base, is_scalable, validate_coupling};
use super::pie::validate_controller;
use crate::ack_path::AckPath;
use crate::config::{Compat, ConfigError, Discipline, LinkFacts};
use crate::fact::Fact;
use crate::packet::Packet;
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

mod linux;
#[cfg(test)]
mod tests;

pub use linux::LinuxDualPi2;

/// The sum of the scheduler's two weights, which are in percent.
const WHOLE: u32 = 100;

/// Parameters of DualPI2. Defaults are those of RFC 9332, Appendix A.1, and of Linux.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Queueing delay of the classic queue to hold (RFC 9332 A.1: 15ms).
    pub target: Span,
    /// Longest usual round trip time (A.1: 100ms).
    pub rtt_max: Span,
    /// Time between updates; by default the target or a third of rtt_max, whichever is less (A.1; Linux: 16ms).
    pub tupdate: Option<Span>,
    /// Gain on the distance from the target, in 1/s; by default 0.1 tupdate / rtt_max^2 (A.1; Linux: 41/256).
    pub alpha: Option<f64>,
    /// Gain on the change of the delay, in 1/s; by default 0.3 / rtt_max (A.1; Linux: 819/256).
    pub beta: Option<f64>,
    /// Coupling factor k: L4S traffic is marked with k p' (§2.1: 2).
    pub coupling: f64,
    /// Delay in the L queue at which the ramp of marks begins (A.1: 800us).
    pub min_th: Span,
    /// Delay over which the ramp goes from 0 to 1 (A.1: 400us).
    pub range: Span,
    /// The ramp does not apply while the L queue has at most this many packets (A.1: 1).
    pub th_len: u64,
    /// Percentage of the bytes for the classic queue while both queues wait (Linux: 10).
    pub classic_weight: u32,
    /// Largest packet, from which the initial credit of the scheduler follows (Linux: 1514 B). In Linux nothing is
    /// signalled while less than two of them wait.
    pub mtu: Bytes,
    /// "source" for the RFC; "linux" for the rolls of chance, the step and the gains of Linux 6.18. The parameters below
    /// are for "linux" alone, rtt_max, min_th, range and th_len for "source".
    pub compat: Compat,
    /// A packet of the L queue that waited longer than this is marked (Linux: 1ms).
    pub step_thresh: Span,
    /// Mark when more than this many packets wait in the L queue, in place of step_thresh (tc: step_thresh in packets).
    pub step_packets: Option<u64>,
    /// The step is for packets which found at least this many packets in the L queue (Linux: 0).
    pub min_qlen_step: u64,
    /// Judge packets on arrival and not at departure (tc: drop_enqueue).
    pub drop_early: bool,
    /// In overload drop packets, also of the L queue; else only mark them, until the queue is full (tc:
    /// drop_on_overload).
    pub drop_overload: bool,
    /// ECT(0) belongs to the L queue as well (tc: any_ect).
    pub any_ect: bool,
    /// Bytes that both queues may hold, beside the limit of the link's queue; null is twice mtu per packet of that
    /// limit (Linux).
    pub memory_limit: Option<Bytes>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            rtt_max: Span::from_millis(100),
            tupdate: None,
            alpha: None,
            beta: None,
            coupling: 2.0,
            min_th: Span::from_micros(800),
            range: Span::from_micros(400),
            th_len: 1,
            classic_weight: 10,
            mtu: Bytes::new(1514),
            compat: Compat::Source,
            step_thresh: Span::from_millis(1),
            step_packets: None,
            min_qlen_step: 0,
            drop_early: false,
            drop_overload: true,
            any_ect: false,
            memory_limit: None,
        }
    }
}

impl Config {
    fn tupdate(&self) -> Span {
        self.tupdate.unwrap_or_else(|| self.target.min(self.rtt_max.div(3)))
    }

    /// Returns the gain on the distance from the target, in 1/s.
    fn alpha(&self) -> f64 {
        let rtt_max = self.rtt_max.as_secs_f64();
        self.alpha.unwrap_or_else(|| 0.1 * self.tupdate().as_secs_f64() / (rtt_max * rtt_max))
    }

    /// Returns the gain on the change of the delay, in 1/s.
    fn beta(&self) -> f64 {
        self.beta.unwrap_or_else(|| 0.3 / self.rtt_max.as_secs_f64())
    }
}

impl Discipline for Config {
    type Queue<P: Packet> = AnyDualPi2<P>;

    fn validate(&self) -> Result<(), ConfigError> {
        if self.rtt_max < Span::from_millis(1) {
            return Err(ConfigError::new("rtt_max", "must be at least 1ms"));
        }
        let (tupdate, gains) = match self.compat {
            Compat::Source => (self.tupdate(), [("alpha", self.alpha()), ("beta", self.beta())]),
            Compat::Linux => (linux::tupdate(self), linux::gains(self)),
        };
        validate_controller(self.target, tupdate, gains)?;
        validate_coupling(self.coupling)?;
        if !(1..WHOLE).contains(&self.classic_weight) {
            return Err(ConfigError::new("classic_weight", "must be from 1 to 99 (percent)"));
        }
        if self.mtu == Bytes::ZERO || self.mtu > Bytes::new(1 << 20) {
            return Err(ConfigError::new("mtu", "must be above 0B and at most 1MiB"));
        }
        match self.compat {
            Compat::Source => linux::check_source(self),
            Compat::Linux => linux::check(self),
        }
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> AnyDualPi2<P> {
        match self.compat {
            Compat::Source => AnyDualPi2::Rfc(DualPi2::new(self, link)),
            Compat::Linux => AnyDualPi2::Linux(LinuxDualPi2::new(self, link)),
        }
    }
}

/// The class of a packet, which is also the name of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    L4s,
    Classic,
}

/// One of the two queues; each packet stands with the time of its arrival.
#[derive(Debug, Clone)]
struct Queue<P> {
    waiting: VecDeque<(P, Instant)>,
    backlog: Backlog,
}

impl<P> Default for Queue<P> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), backlog: Backlog::default() }
    }
}

impl<P> Queue<P> {
    fn push(&mut self, packet: P, size: Bytes, now: Instant) {
        self.backlog.add(size);
        self.waiting.push_back((packet, now));
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn head_since(&self) -> Option<Instant> {
        self.waiting.front().map(|(_, since)| *since)
    }
}

/// Turns a likelihood into evenly spaced events without random numbers: `recur()` of A.1.
#[derive(Debug, Clone, PartialEq)]
struct Recur(f64);

impl Recur {
    /// Adds the likelihood of one packet; returns true if the packet gets the signal.
    fn strikes(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let strikes = self.0 > 1.0;
        if strikes {
            self.0 -= 1.0;
        }
        strikes
    }
}

/// The native AQM of the L queue: `laqm()` of A.1.
#[derive(Debug, Clone, PartialEq)]
struct Ramp {
    min_th: Span,
    range: Span,
    th_len: u64,
}

impl Ramp {
    /// Returns p'_L for a packet that waited for `sojourn` in a queue of `packets`, the packet itself included.
    fn at(&self, sojourn: Span, packets: u64) -> f64 {
        if packets <= self.th_len || sojourn <= self.min_th {
            return 0.0;
        }
        let above = sojourn.saturating_sub(self.min_th);
        if above >= self.range { 1.0 } else { above.as_secs_f64() / self.range.as_secs_f64() }
    }
}

/// Weighted round robin by credit, in hundredths of a byte: bytes served from one queue while the other waits are
/// credited to the other queue.
#[derive(Debug, Clone, PartialEq)]
struct Scheduler {
    classic_weight: i64,
    start: i64,
    /// If above zero, the classic queue has the next turn.
    credit: i64,
}

impl Scheduler {
    fn new(classic_weight: u32, mtu: Bytes) -> Self {
        let classic_weight = i64::from(classic_weight);
        let start = mtu.get() as i64 * (2 * classic_weight - i64::from(WHOLE));
        Self { classic_weight, start, credit: start }
    }

    fn reset(&mut self) {
        self.credit = self.start;
    }

    /// Returns the queue that is served next; `None` if neither has a packet.
    fn turn(&self, l_waits: bool, c_waits: bool) -> Option<Class> {
        match (l_waits, c_waits) {
            (true, true) if self.credit > 0 => Some(Class::Classic),
            (true, _) => Some(Class::L4s),
            (false, true) => Some(Class::Classic),
            (false, false) => None,
        }
    }

    /// Notes that a packet of this class left while the other queue had packets.
    fn served(&mut self, class: Class, size: Bytes) {
        let size = size.get() as i64;
        match class {
            Class::L4s => self.credit += size * self.classic_weight,
            Class::Classic => self.credit -= size * (i64::from(WHOLE) - self.classic_weight),
        }
    }
}

/// The PI controller. Its input is how long the older head has waited, so the time of an update matters.
#[derive(Debug, Clone, PartialEq)]
struct Control(Base);

impl Law for Control {
    type Queue = Option<Instant>;

    fn update(&mut self, oldest: Option<Instant>, at: Instant) {
        self.0.update(oldest.map_or(0.0, |since| at.since(since).as_secs_f64()));
    }

    fn is_timeless(oldest: Option<Instant>) -> bool {
        oldest.is_none()
    }
}

/// The two queues with their packets, the controller and the scheduler.
#[derive(Debug, Clone)]
pub struct DualPi2<P> {
    l: Queue<P>,
    c: Queue<P>,
    limit: Limit,
    stats: Stats,
    timer: Periodic<Control>,
    scheduler: Scheduler,
    ramp: Ramp,
    l_marks: Recur,
    l_drops: Recur,
    c_signals: Recur,
}

impl<P: Packet> DualPi2<P> {
    /// Creates empty queues before `link`.
    pub fn new(config: &Config, link: &LinkFacts) -> Self {
        let base = Base::new(config.alpha(), config.beta(), config.target, config.coupling);
        Self {
            l: Queue::default(),
            c: Queue::default(),
            limit: link.limit,
            stats: Stats::default(),
            timer: Periodic::new(Control(base), config.tupdate(), config.tupdate()),
            scheduler: Scheduler::new(config.classic_weight, config.mtu),
            ramp: Ramp { min_th: config.min_th, range: config.range, th_len: config.th_len },
            l_marks: Recur(0.0),
            l_drops: Recur(0.0),
            c_signals: Recur(0.0),
        }
    }

    fn catch_up(&mut self, now: Instant) {
        let oldest = match (self.l.head_since(), self.c.head_since()) {
            (Some(l), Some(c)) => Some(l.min(c)),
            (l, c) => l.or(c),
        };
        self.timer.catch_up(oldest, now);
    }

    fn pop(&mut self, class: Class) -> Option<(P, Instant)> {
        let queue = match class {
            Class::L4s => &mut self.l,
            Class::Classic => &mut self.c,
        };
        let (packet, since) = queue.waiting.pop_front()?;
        queue.backlog.remove(packet.size());
        Some((packet, since))
    }

    /// Resets the credit of the scheduler if both queues are empty.
    fn rest(&mut self) {
        if self.l.is_empty() && self.c.is_empty() {
            self.scheduler.reset();
        }
    }

    /// Judges a head of the L queue (A.1; overload: A.2).
    fn judge_l4s(&mut self, sojourn: Span) -> Verdict {
        let base = &self.timer.law.0;
        // A.2: in overload, L4S packets are dropped as often as classic ones; the others are still marked.
        if base.is_overloaded() && self.l_drops.strikes(base.prob * base.prob) {
            return Verdict::Drop;
        }
        let native = self.ramp.at(sojourn, self.l.backlog.packets + 1);
        let p = native.max(base.scalable()).min(1.0);
        if self.l_marks.strikes(p) { Verdict::Mark } else { Verdict::Pass }
    }

    /// Judges a head of the C queue with p_C = p'^2 (A.1; overload: A.2).
    fn judge_classic(&mut self, capable: bool) -> Verdict {
        let base = &self.timer.law.0;
        match self.c_signals.strikes(base.prob * base.prob) {
            true if capable && !base.is_overloaded() => Verdict::Mark,
            true => Verdict::Drop,
            false => Verdict::Pass,
        }
    }

    fn judge(&mut self, class: Class, packet: &P, sojourn: Span) -> Verdict {
        match class {
            Class::L4s => self.judge_l4s(sojourn),
            Class::Classic => self.judge_classic(packet.ecn().is_capable()),
        }
    }
}

impl<P: Packet> Qdisc<P> for DualPi2<P> {
    #[inline]
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, _: &mut Rng, observer: &mut O) -> Enqueued {
        self.catch_up(now);
        let size = packet.size();
        self.stats.arrived.add(size);
        if !self.backlog().has_room(size, self.limit) {
            self.stats.count_drop(DropReason::Overflow, size);
            observer.dropped(packet, DropReason::Overflow, now);
            return Enqueued::Dropped(DropReason::Overflow);
        }
        let queue = if is_scalable(packet.ecn()) { &mut self.l } else { &mut self.c };
        queue.push(packet, size, now);
        Enqueued::Queued
    }

    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, _: &mut Rng, observer: &mut O) -> Option<P> {
        self.catch_up(now);
        while let Some(class) = self.scheduler.turn(!self.l.is_empty(), !self.c.is_empty()) {
            let contended = !self.l.is_empty() && !self.c.is_empty();
            let (mut packet, since) = self.pop(class)?;
            let size = packet.size();
            match self.judge(class, &packet, now.since(since)) {
                Verdict::Drop => {
                    self.stats.count_drop(DropReason::Dequeue, size);
                    observer.dropped(packet, DropReason::Dequeue, now);
                    continue;
                }
                Verdict::Mark => {
                    packet.mark_ce();
                    self.stats.marked.add(size);
                    observer.marked(&packet, now);
                }
                Verdict::Pass => {}
            }
            if contended {
                self.scheduler.served(class, size);
            }
            self.stats.sent.add(size);
            self.rest();
            return Some(packet);
        }
        self.rest();
        None
    }

    fn on_wakeup(&mut self, now: Instant) {
        self.catch_up(now);
    }

    fn backlog(&self) -> Backlog {
        self.l.backlog + self.c.backlog
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl<P> AckPath for DualPi2<P> {}

/// DualPI2 by the rules that [`Config::compat`] names.
#[derive(Debug, Clone)]
pub enum AnyDualPi2<P> {
    /// DualPI2 by the RFC, in floating point.
    Rfc(DualPi2<P>),
    /// DualPI2 by the kernel, in integers.
    Linux(LinuxDualPi2<P>),
}

impl<P: Packet> Qdisc<P> for AnyDualPi2<P> {
    #[inline]
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued {
        match self {
            Self::Rfc(queue) => queue.enqueue(packet, now, rng, observer),
            Self::Linux(queue) => queue.enqueue(packet, now, rng, observer),
        }
    }

    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        match self {
            Self::Rfc(queue) => queue.dequeue(now, rng, observer),
            Self::Linux(queue) => queue.dequeue(now, rng, observer),
        }
    }

    fn on_wakeup(&mut self, now: Instant) {
        match self {
            Self::Rfc(queue) => queue.on_wakeup(now),
            Self::Linux(queue) => queue.catch_up(now),
        }
    }

    fn backlog(&self) -> Backlog {
        match self {
            Self::Rfc(queue) => queue.backlog(),
            Self::Linux(queue) => queue.backlog(),
        }
    }

    fn stats(&self) -> &Stats {
        match self {
            Self::Rfc(queue) => queue.stats(),
            Self::Linux(queue) => &queue.stats,
        }
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl<P> AckPath for AnyDualPi2<P> {}
