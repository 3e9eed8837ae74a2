//! CoDel: drop from the head, ever more often, while packets wait longer than a target for longer than an interval.
//!
//! Source: RFC 8289 §5. A queue that is above TARGET for one INTERVAL is a standing queue, not a burst. In the
//! dropping state the time between drops is INTERVAL / sqrt(count), which makes a TCP flow's rate fall linearly.
//!
//! ```text
//! ok_to_drop  sojourn >= TARGET and bytes left > MTU, for a whole INTERVAL                       §5.5, dodequeue()
//! drop_next   t + INTERVAL / sqrt(count)                                                         §5.5, control_law()
//! re-entry    count = count - lastcount, if that is above 1 and drop_next is < 16 INTERVALs ago  §5.5, deque()
//! ```
//!
//! | state | head is ok_to_drop | head is not |
//! |---|---|---|
//! | not dropping | drop one, enter; the next head goes out whatever it is | pass |
//! | dropping | at `drop_next`: drop, count up, look at the next | leave |
//!
//! The RFC's `deque()` is one call that may drop several packets; here the discipline shows one head at a time, and
//! `Step` remembers where in that call the last verdict left off. The listing of CoDel in Patil's thesis (Algorithm 2),
//! which drops at the first packet above target, is wrong; `a_burst_shorter_than_the_interval_passes` pins the RFC's
//! rule.
//!
//! With `ecn`, an ECN-capable packet is marked where it would be dropped and ends the departure (§5.5, last paragraph).
//!
//! `ce_threshold` is Linux's (codel_impl.h): apart from all that, an ECN-capable packet that goes out is marked if it
//! waited longer than this, whatever `ecn` says; with a mask, only if its ECN field under the mask is the selector.
//! Cost: O(1) per packet; one square root per drop.
//!
//! DIFFERENCE: `compat = "linux"` follows the kernel (include/net/codel.h, codel_impl.h). Time is counted in ticks of
//! 1024 ns. 1 / sqrt(count) has 16 bits, starts at 65535 / 65536 and is improved by one Newton step per change of the
//! count, which at count 2 gives 50 ms instead of 70.7 ms. A drop needs a time after, not at, the end of the interval.
//! An empty queue ends the dropping state but not a running interval, so a flow that sends a packet now and then loses
//! some: this is Linux 6.18. "linux-7.0" ends the interval as the RFC does (commit 815980fe6dbb, "codel: fix stale state
//! for empty flows in fq_codel", also in 6.19.11). As the AQM of a flow queue the algorithm sees the bytes of all queues,
//! and packets dropped to make room count as drops. Pinned by
//! `linux_takes_one_newton_step_per_drop`, `an_empty_queue_ends_the_interval_since_linux_7_0` and by a twin.
//! DIFFERENCE: the kernel's times are 32 bits wide and wrap after 73 minutes; here they do not. Pinned by
//! `time_does_not_wrap_after_73_minutes`.

use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, CompatVersion, ConfigError, FlowQueues, LinkFacts};
use crate::fact::Fact;
use crate::packet::Ecn;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// §5.5: for so many intervals after the last drop, re-entry continues from the earlier count.
const REENTRY_INTERVALS: u64 = 16;
/// codel.h, CODEL_SHIFT: the kernel's clock counts in units of 2^10 ns.
const KERNEL_SHIFT: u32 = 10;
/// The largest value of the ECN field.
const ECN_BITS: u8 = 3;

/// Parameters of CoDel. Defaults are those of RFC 8289.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Acceptable standing queueing delay (RFC 8289 §4.3: 5ms).
    pub target: Span,
    /// How long the delay may stay above the target; about the largest round trip time (§4.3: 100ms).
    pub interval: Span,
    /// Nothing is dropped if at most this many bytes stay in the queue (§5.5: the largest packet).
    pub mtu: Bytes,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Mark ECN-capable packets that waited longer than this, with or without `ecn`; null for never (Linux).
    pub ce_threshold: Option<Span>,
    /// With a mask above 0, ce_threshold is for packets whose ECN field under the mask is this: 1 with mask 3 is ECT(1).
    pub ce_threshold_selector: u8,
    /// The bits of the ECN field to which ce_threshold_selector refers, 0 to 3; 0 is every ECN-capable packet.
    pub ce_threshold_mask: u8,
    /// "source" for the RFC, "linux" for the clock and the square root of Linux 6.18, "linux-7.0" for those of Linux 7.0,
    /// where an empty queue ends the interval.
    pub compat: CompatVersion,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            mtu: Bytes::new(1514),
            ecn: false,
            ce_threshold: None,
            ce_threshold_selector: 0,
            ce_threshold_mask: 0,
            compat: CompatVersion::Source,
        }
    }
}

impl AqmConfig for Config {
    type Aqm = Codel;

    fn validate(&self) -> Result<(), ConfigError> {
        if self.target == Span::ZERO {
            return Err(ConfigError::new("target", "must be above 0"));
        }
        if self.interval <= self.target {
            return Err(ConfigError::new("interval", format!("must be above target ({})", self.target)));
        }
        self.validate_step()
    }

    fn aqm(&self, _: &LinkFacts) -> Codel {
        Codel::new(self.clone())
    }

    /// RFC 8290 §5.2: ECN is on by default.
    fn per_flow(_: &mut FlowQueues) -> Self {
        Self { ecn: true, ..Self::default() }
    }
}

impl Config {
    /// Checks the threshold of marks and the packets that it is for.
    fn validate_step(&self) -> Result<(), ConfigError> {
        if self.ce_threshold_mask > ECN_BITS {
            return Err(ConfigError::new("ce_threshold_mask", "must be from 0 to 3: the two bits of the ECN field"));
        }
        if self.ce_threshold_selector & !self.ce_threshold_mask != 0 {
            return Err(ConfigError::new("ce_threshold_selector", "must have no bits outside of ce_threshold_mask"));
        }
        Ok(())
    }

    /// Returns true if a packet that goes out after `sojourn` is marked for having waited too long.
    #[inline]
    fn is_above_step(&self, ecn: Ecn, sojourn: Span) -> bool {
        self.ce_threshold.is_some_and(|most| sojourn > most)
            && ecn.is_capable()
            && (ecn as u8 & self.ce_threshold_mask) == self.ce_threshold_selector
    }
}

/// The control law: how the time between drops follows from their count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Law {
    /// INTERVAL / sqrt(count), in floating point.
    Root,
    /// INTERVAL / sqrt(count), in the kernel's integer arithmetic.
    Kernel,
    /// INTERVAL / count, the law of Modified CoDel.
    Count,
}

/// Where in the RFC's `deque()` the last verdict left off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The next head begins a new call.
    Fresh,
    /// The packet that began the dropping state was dropped; the next head goes out.
    Entered,
    /// A packet was dropped in the dropping state; the next head decides whether it goes on.
    Dropping,
}

/// The state of CoDel for one queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Codel {
    config: Config,
    law: Law,
    /// The RFC's first_above_time: the end of the interval that began when the delay rose above target. `None` while
    /// the delay is below target.
    first_above: Option<Instant>,
    drop_next: Instant,
    count: u32,
    last_count: u32,
    /// The kernel's 1 / sqrt(count) in units of 2^-16.
    rec_inv_sqrt: u16,
    dropping: bool,
    step: Step,
}

/// Rounds a time down to a tick of the kernel's clock (codel.h, codel_get_time()).
fn tick(ns: u64) -> u64 {
    ns >> KERNEL_SHIFT << KERNEL_SHIFT
}

/// Improves an estimate x of 1 / sqrt(count) as `codel_Newton_step()` does: x (3 - count x^2) / 2, in integers of the
/// kernel's widths, so that overflows are the kernel's as well.
fn newton_step(rec_inv_sqrt: u16, count: u32) -> u16 {
    let x = u64::from(rec_inv_sqrt) << 16;
    let square = (x * x) >> 32;
    let factor = (3u64 << 32).wrapping_sub(u64::from(count).wrapping_mul(square)) >> 2;
    ((factor.wrapping_mul(x) >> 31) >> 16) as u16
}

/// Computes INTERVAL / sqrt(count) in whole ticks, as `codel_control_law()` does.
fn kernel_interval(interval: Span, rec_inv_sqrt: u16) -> Span {
    let ticks = u128::from(interval.as_nanos() >> KERNEL_SHIFT);
    Span::from_nanos((((ticks * (u128::from(rec_inv_sqrt) << 16)) >> 32) as u64) << KERNEL_SHIFT)
}

impl Codel {
    /// Creates the state of an empty queue, which is not dropping.
    pub fn new(config: Config) -> Self {
        let law = if config.compat.is_linux() { Law::Kernel } else { Law::Root };
        Self::with_law(config, law)
    }

    pub(super) fn with_law(config: Config, law: Law) -> Self {
        let mut codel = Self {
            config,
            law,
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            rec_inv_sqrt: 0,
            dropping: false,
            step: Step::Fresh,
        };
        if law == Law::Kernel {
            codel.config.target = Span::from_nanos(tick(codel.config.target.as_nanos()));
            codel.config.interval = Span::from_nanos(tick(codel.config.interval.as_nanos()));
            codel.config.ce_threshold = codel.config.ce_threshold.map(|most| Span::from_nanos(tick(most.as_nanos())));
        }
        codel
    }

    /// Returns the time of the next drop after `t`: `control_law(t, count)` of §5.5.
    fn after(&self, t: Instant) -> Instant {
        let interval = self.config.interval;
        t + match self.law {
            Law::Root => Span::from_secs_f64(interval.as_secs_f64() / f64::from(self.count).sqrt()),
            Law::Count => Span::from_secs_f64(interval.as_secs_f64() / f64::from(self.count)),
            Law::Kernel => kernel_interval(interval, self.rec_inv_sqrt),
        }
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        if self.law == Law::Kernel {
            self.rec_inv_sqrt = if count == 1 { u16::MAX } else { newton_step(self.rec_inv_sqrt, count) };
        }
    }

    /// Returns the `ok_to_drop` of `dodequeue()`: true if the delay has been above target for a whole interval.
    fn ok_to_drop(&mut self, sojourn: Span, left: Backlog, now: Instant) -> bool {
        if sojourn < self.config.target || left.bytes <= self.config.mtu.get() {
            // The delay went below target, or the queue is too short to be a standing one.
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                // The delay just rose above target; if it stays there until this time, dropping is ok.
                self.first_above = Some(now + self.config.interval);
                false
            }
            Some(at) => now > at || (now == at && self.law != Law::Kernel),
        }
    }

    /// Enters the dropping state (§5.5, deque()). If the last drop is recent, the drop rate that controlled the queue
    /// then is a good start: the count continues from the drops of the last dropping state.
    fn enter(&mut self, now: Instant) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        // last_count is 0 before the first dropping state: then there is no last drop.
        let recent = self.last_count > 0 && now.since(self.drop_next) < self.config.interval * REENTRY_INTERVALS;
        self.set_count(if delta > 1 && recent { delta } else { 1 });
        self.drop_next = self.after(now);
        self.last_count = self.count;
    }

    fn advance_drop_next(&mut self) {
        self.drop_next = self.after(self.drop_next);
    }

    /// Drops or marks a head in the dropping state whose `drop_next` has come.
    fn drop_or_mark(&mut self, mark: bool) -> Verdict {
        self.set_count(self.count.saturating_add(1));
        if mark {
            self.advance_drop_next();
            self.step = Step::Fresh;
            return Verdict::Mark;
        }
        self.step = Step::Dropping;
        Verdict::Drop
    }

    /// Continues `deque()` with the next head (§5.5).
    fn judge(&mut self, ok: bool, mark: bool, now: Instant) -> Verdict {
        let step = std::mem::replace(&mut self.step, Step::Fresh);
        match (step, self.dropping) {
            // After the drop that began the dropping state, the next head goes out whatever its delay.
            (Step::Entered, _) => Verdict::Pass,
            // Not dropping, and the delay was above target for an interval: drop one packet and enter.
            (Step::Fresh, false) if ok => {
                self.enter(now);
                if mark {
                    return Verdict::Mark;
                }
                self.step = Step::Entered;
                Verdict::Drop
            }
            (Step::Fresh, false) => Verdict::Pass,
            // Dropping, and the delay is below target: leave.
            _ if !ok => {
                self.dropping = false;
                Verdict::Pass
            }
            // Dropping: drop if it is time. A large backlog may need several drops in one call, each `drop_next` later.
            (step, _) => {
                if step == Step::Dropping {
                    self.advance_drop_next(); // from the time that was planned, not from now
                }
                if now >= self.drop_next { self.drop_or_mark(mark) } else { Verdict::Pass }
            }
        }
    }
}

impl Aqm for Codel {
    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        let (now, sojourn) = if self.law == Law::Kernel { in_ticks(now, sojourn) } else { (now, sojourn) };
        let ok = self.ok_to_drop(sojourn, backlog, now);
        match self.judge(ok, self.config.ecn && packet.ecn.is_capable(), now) {
            Verdict::Pass if self.config.is_above_step(packet.ecn, sojourn) => Verdict::Mark,
            verdict => verdict,
        }
    }

    fn on_shed(&mut self, _: Backlog, _: Instant) {
        // fq_codel_drop() counts packets dropped for want of room as CoDel's own.
        if self.law == Law::Kernel {
            self.count = self.count.saturating_add(1);
        }
    }

    fn wants_whole_backlog(&self) -> bool {
        self.law == Law::Kernel
    }

    fn on_empty(&mut self, _: Instant) {
        let step = std::mem::replace(&mut self.step, Step::Fresh);
        // The kernel before 7.0 ends the interval only if this call already dropped a packet.
        if self.config.compat != CompatVersion::Linux || step != Step::Fresh {
            self.first_above = None;
        }
        if step != Step::Entered {
            self.dropping = false;
        }
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

/// Converts a departure and its sojourn time to what the kernel's clock gives: both times are rounded down to ticks.
fn in_ticks(now: Instant, sojourn: Span) -> (Instant, Span) {
    let came = tick(now.as_nanos().saturating_sub(sojourn.as_nanos()));
    let now = tick(now.as_nanos());
    (Instant::from_nanos(now), Span::from_nanos(now - came))
}

impl AckPath for Codel {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowId;
    use crate::rng::Streams;

    const FULL: Backlog = Backlog { packets: 100, bytes: 150_000 };

    /// A queue whose head has always waited 10 ms, served every millisecond from `from_ms` to `to_ms`; gives the times
    /// of drops in ms.
    fn drops(codel: &mut Codel, ecn: Ecn, from_ms: u64, to_ms: u64) -> Vec<u64> {
        let mut rng = Streams::new(1).get("unused");
        let packet = Meta { size: Bytes::new(1500), ecn, flow: FlowId(0) };
        let mut dropped = Vec::new();
        for ms in from_ms..to_ms {
            let now = Instant::ZERO + Span::from_millis(ms);
            while codel.on_dequeue(&packet, Span::from_millis(10), FULL, now, &mut rng) == Verdict::Drop {
                dropped.push(ms);
            }
        }
        dropped
    }

    /// First above at 0, so the first drop at 100 ms; then 100/sqrt(1), 100/sqrt(2), ... later:
    /// 200, 270.7, 328.4, 378.4, 423.1, 464.0 ms, each seen at the next whole millisecond.
    #[test]
    fn drops_come_at_the_interval_over_the_root_of_their_count() {
        let mut codel = Codel::new(Config::default());
        assert_eq!(drops(&mut codel, Ecn::NotEct, 0, 470), [100, 200, 271, 329, 379, 424, 464]);
    }

    #[test]
    fn a_burst_shorter_than_the_interval_passes() {
        let mut codel = Codel::new(Config::default());
        assert!(drops(&mut codel, Ecn::NotEct, 0, 100).is_empty());
        codel.on_empty(Instant::ZERO);
        assert!(drops(&mut codel, Ecn::NotEct, 120, 220).is_empty());
    }

    #[test]
    fn codel_leaves_dropping_when_sojourn_falls() {
        let mut codel = Codel::new(Config::default());
        drops(&mut codel, Ecn::NotEct, 0, 250);
        let (mut rng, packet) =
            (Streams::new(1).get("unused"), Meta { size: Bytes::new(1), ecn: Ecn::NotEct, flow: FlowId(0) });
        let now = Instant::ZERO + Span::from_millis(260);
        assert_eq!(codel.on_dequeue(&packet, Span::from_millis(4), FULL, now, &mut rng), Verdict::Pass);
        assert!(!codel.dropping);
    }

    /// Seven drops by 470 ms leave count 7 and lastcount 1. Above target again from 480 ms, the state is entered at
    /// 580 ms with count 6: the next drop is 100/sqrt(6) = 40.8 ms later, not 100.
    #[test]
    fn coming_back_soon_goes_on_where_it_left_off() {
        let mut codel = Codel::new(Config::default());
        assert_eq!(drops(&mut codel, Ecn::NotEct, 0, 470).len(), 7);
        codel.on_empty(Instant::ZERO);
        assert_eq!(drops(&mut codel, Ecn::NotEct, 480, 625), [580, 621]);
    }

    #[test]
    fn coming_back_late_starts_over() {
        let mut codel = Codel::new(Config::default());
        drops(&mut codel, Ecn::NotEct, 0, 470);
        codel.on_empty(Instant::ZERO);
        // drop_next was 501.8 ms; 16 intervals later is 2101.8 ms.
        assert_eq!(drops(&mut codel, Ecn::NotEct, 2010, 2215), [2110, 2210]);
    }

    #[test]
    fn ecn_capable_packets_are_marked_at_the_same_times() {
        let mut codel = Codel::new(Config { ecn: true, ..Config::default() });
        assert!(drops(&mut codel, Ecn::Ect0, 0, 470).is_empty());
        assert_eq!(codel.count, 7);
    }

    /// Worked by hand from codel_impl.h with e = 2^-16. 100 ms are 97656 ticks of 1.024 us.
    /// count 1: 1 - e: 97654 ticks.
    /// count 2: (1 - e) (3 - 2 (1 - e)^2) / 2 = (1 + 3e) / 2 = 32769.5 e, cut to 32769: 48829 ticks = 50.00 ms.
    /// count 3: at 0.5 + e, x (3 - 3x^2) / 2 = 0.5625 + 0.375 e, cut to 36864: 54931 ticks = 56.25 ms.
    /// count 4: 0.5625 (3 - 4 * 0.31640625) / 2 = 0.48779296875 = 31968 e: 47635 ticks = 48.78 ms.
    #[test]
    fn linux_takes_one_newton_step_per_drop() {
        let steps = [(65535, 2, 32769), (32769, 3, 36864), (36864, 4, 31968)];
        for (before, count, after) in steps {
            assert_eq!(newton_step(before, count), after, "count {count}");
        }
        let interval = Span::from_millis(100);
        for (rec, ticks) in [(65535, 97654), (32769, 48829), (36864, 54931), (31968, 47635)] {
            assert_eq!(kernel_interval(interval, rec), Span::from_nanos(ticks * 1024));
        }
        // Above from 20 ms = tick 19531. At 120 ms the clock shows tick 117187, the end of the interval but not after
        // it: the first drop is at 121 ms = tick 118164. Due then at ticks 215818, 264647, 319578 and 367213: 220.998,
        // 270.999, 327.25 and 376.03 ms.
        let mut codel = Codel::new(Config { compat: CompatVersion::Linux, ..Config::default() });
        assert_eq!(drops(&mut codel, Ecn::NotEct, 20, 380), [121, 221, 271, 328, 377]);
    }

    /// codel_impl.h: `ldelay` after, not at, `ce_threshold`; ticks of 1024 ns in the kernel's arithmetic. Packets that are
    /// not ECN-capable pass, and with the selector 1 under the mask 3 so does ECT(0).
    #[test]
    fn packets_that_waited_too_long_are_marked_without_a_drop() {
        let marked = |config: &Config, ecn, us| {
            AqmConfig::validate(config).unwrap();
            let (mut codel, mut rng) = (Codel::new(config.clone()), Streams::new(1).get("unused"));
            let packet = Meta { size: Bytes::new(1500), ecn, flow: FlowId(0) };
            let now = Instant::ZERO + Span::from_millis(1024);
            codel.on_dequeue(&packet, Span::from_micros(us), FULL, now, &mut rng) == Verdict::Mark
        };
        let step = Config { ce_threshold: Some(Span::from_millis(1)), ..Config::default() };
        for (us, expected) in [(999, false), (1000, false), (1001, true), (50_000, true)] {
            assert_eq!(marked(&step, Ecn::Ect0, us), expected, "{us} us");
        }
        // 1 ms are 976 ticks; 1024 ms are a whole number of ticks, so 1000 us before it are 977 by the clock.
        let kernel = Config { compat: CompatVersion::Linux, ..step.clone() };
        for (us, expected) in [(999, false), (1000, true), (1001, true)] {
            assert_eq!(marked(&kernel, Ecn::Ect0, us), expected, "{us} us in Linux");
        }
        let l4s = Config { ce_threshold_selector: 1, ce_threshold_mask: 3, ..step.clone() };
        let every = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
        assert_eq!(every.map(|ecn| marked(&step, ecn, 2000)), [false, true, true, true]);
        assert_eq!(every.map(|ecn| marked(&l4s, ecn, 2000)), [false, true, false, false]);
        assert_eq!(every.map(|ecn| marked(&Config::default(), ecn, 2000)), [false; 4]);
        for (selector, mask, key) in [(0, 4, "ce_threshold_mask"), (2, 1, "ce_threshold_selector")] {
            let wrong = Config { ce_threshold_selector: selector, ce_threshold_mask: mask, ..step.clone() };
            assert_eq!(AqmConfig::validate(&wrong).unwrap_err().key, key);
        }
    }

    /// codel_dequeue() finds an empty queue after a packet that waited 10 ms. Before Linux 7.0 the interval that this packet
    /// began goes on, and the next such packet, 200 ms later, is dropped: every second one is lost.
    #[test]
    fn an_empty_queue_ends_the_interval_since_linux_7_0() {
        let (mut rng, packet) =
            (Streams::new(1).get("unused"), Meta { size: Bytes::new(1500), ecn: Ecn::NotEct, flow: FlowId(0) });
        for (compat, lost) in [(CompatVersion::Linux, 20), (CompatVersion::Linux70, 0), (CompatVersion::Source, 0)] {
            let mut codel = Codel::new(Config { compat, ..Config::default() });
            let mut is_dropped = |ms| {
                let now = Instant::ZERO + Span::from_millis(ms);
                let verdict = codel.on_dequeue(&packet, Span::from_millis(10), FULL, now, &mut rng);
                codel.on_empty(now);
                verdict == Verdict::Drop
            };
            assert_eq!((1..=40).filter(|n| is_dropped(200 * n)).count(), lost, "{compat:?}");
        }
    }

    #[test]
    fn linux_counts_packets_shed_by_a_flow_queue() {
        let mut codel = Codel::new(Config { compat: CompatVersion::Linux, ..Config::default() });
        codel.on_shed(FULL, Instant::ZERO);
        assert_eq!((codel.count, codel.wants_whole_backlog()), (1, true));
        let mut codel = Codel::new(Config::default());
        codel.on_shed(FULL, Instant::ZERO);
        assert_eq!((codel.count, codel.wants_whole_backlog()), (0, false));
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        let mut codel = Codel::new(Config::default());
        let (mut rng, packet) =
            (Streams::new(1).get("unused"), Meta { size: Bytes::new(1), ecn: Ecn::NotEct, flow: FlowId(0) });
        for ms in 0..1000 {
            let now = Instant::ZERO + Span::from_millis(ms);
            let left = Backlog { packets: 1, bytes: 1514 };
            assert_eq!(codel.on_dequeue(&packet, Span::from_millis(50), left, now, &mut rng), Verdict::Pass);
        }
    }

    /// The kernel's clock of 2^32 ticks is over after 4398.047 s. Around this time drops come as they do at the begin:
    /// 4397.952 s are a whole number of ticks.
    #[test]
    fn time_does_not_wrap_after_73_minutes() {
        let begin = 4_397_952;
        assert_eq!(begin * 1_000_000 % 1024, 0);
        let mut codel = Codel::new(Config { compat: CompatVersion::Linux, ..Config::default() });
        let dropped = drops(&mut codel, Ecn::NotEct, begin + 20, begin + 380);
        assert_eq!(dropped, [121, 221, 271, 328, 377].map(|ms| begin + ms));
    }
}
