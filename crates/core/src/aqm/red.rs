//! RED: drop arriving packets with a probability that grows with the average queue.
//!
//! Source: Floyd and Jacobson, "Random early detection gateways for congestion avoidance", 1993, §4; the gentle form
//! is Floyd's note of 2000; recommended parameters are Floyd's note of 1997.
//!
//! ```text
//! avg  = (1 - w) avg + w q            on an arrival to a queue that is not empty
//! avg  = (1 - w)^m avg, m = idle / s  after an idle time, s the time to send a mean packet
//! pb   = max_p (avg - min) / (max - min)                 min <= avg < max
//! pb   = max_p + (1 - max_p) (avg - max) / max           max <= avg < 2 max, gentle
//! pa   = pb / (1 - count pb)                             gaps uniform in 1..1/pb - 1
//! pa   = pb / (2 - count pb) if count pb >= 1, else 0    `wait`: gaps uniform in 1/pb..2/pb - 1
//! ```
//!
//! `count` is the number of packets since the last mark; -1 below `min`. Above the hard limit (`max`, or `2 max` if
//! gentle) every packet is dropped, ECN-capable or not. One random number is drawn per packet with 0 < pa < 1.
//! Cost: O(1), with one call of `pow` after an idle time.
//!
//! `over_max` names two other readings of what happens there: `"mark"` marks what is ECN-capable, as ns-3 does without
//! UseHardDrop and Linux without harddrop; with `"linear"` there is no hard limit, and the first line of pb goes on to 1.
//!
//! DIFFERENCE: a packet that finds no room restarts `count`, as in ns-2; the paper has no full queues. Pinned by
//! `an_overflow_restarts_the_count`.
//!
//! With `compat = "linux"` the rules are those of the kernel: see `red/linux.rs`.

use super::average::{Average, check_weight, in_unit_of};
use super::{Aqm, Compat, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod linux;

pub use super::average::Mode;
pub use linux::LinuxRed;

/// Parameters of RED. Defaults are those of the paper and of the 1997 note.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Average queue below which nothing is dropped (1997 note: 5 packets).
    pub min_threshold: Limit,
    /// Average queue at which the probability is max_probability (1997 note: three times min_threshold).
    pub max_threshold: Limit,
    /// Probability at max_threshold, max_p (1997 note: 0.1).
    pub max_probability: f64,
    /// Weight w of the newest queue length in the average (§6: 0.002).
    pub weight: f64,
    /// Mean packet size, which converts thresholds and gives the time unit of idle compensation.
    pub mean_packet: Bytes,
    /// What the average counts: "packets" or "bytes".
    pub mode: Mode,
    /// Scale the probability by packet size / mean packet (§4, byte mode of marking).
    pub byte_drop: bool,
    /// Let the probability rise to 1 between max_threshold and twice max_threshold.
    pub gentle: bool,
    /// Space drops at least 1/pb apart, as ns-2 does by default.
    pub wait: bool,
    /// Mark ECN-capable packets instead of dropping them early.
    pub ecn: bool,
    /// What is done above the hard limit, which is max_threshold, or twice that if gentle: "drop", "mark" or "linear".
    pub over_max: OverMax,
    /// Number of packets that wait at least where one is dropped early or forced; 2 in ns-2 and ns-3.
    pub least_waiting: u64,
    /// "paper", or "linux" for the rules of Linux 6.18: weight becomes the nearest 2^-n, mode and gentle have no
    /// effect.
    pub compat: Compat,
    /// Rate from which the kernel's table of idle times follows; null is that of the link (tc, bandwidth: 10 Mbit/s).
    /// Only with compat = "linux".
    pub bandwidth: Option<Rate>,
    /// Cells of the kernel's table of idle times are 2^scell_log microseconds long; null is what tc computes. Only with
    /// compat = "linux".
    pub scell_log: Option<u32>,
    /// The kernel's table of idle times: by how many bits the average is shifted after each cell, up to 256 numbers
    /// from 0 to 31, of which the last stands for all further cells; null is what tc computes. Only with compat =
    /// "linux".
    pub stab: Option<Vec<u8>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            min_threshold: Limit::Packets(5),
            max_threshold: Limit::Packets(15),
            max_probability: 0.1,
            weight: 0.002,
            mean_packet: Bytes::new(1000),
            mode: Mode::Packets,
            byte_drop: false,
            gentle: true,
            wait: false,
            ecn: false,
            over_max: OverMax::Drop,
            least_waiting: 0,
            compat: Compat::Source,
            bandwidth: None,
            scell_log: None,
            stab: None,
        }
    }
}

impl Config {
    /// Converts a threshold to the unit of the average.
    fn threshold(&self, limit: Limit) -> f64 {
        in_unit_of(self.mode, limit, self.mean_packet)
    }
}

impl AqmConfig for Config {
    type Aqm = AnyRed;

    fn validate(&self) -> Result<(), ConfigError> {
        if self.mean_packet == Bytes::ZERO {
            return Err(ConfigError::new("mean_packet", "must be above 0B"));
        }
        if self.threshold(self.min_threshold) >= self.threshold(self.max_threshold) {
            let message = format!("must be above min_threshold ({})", self.min_threshold);
            return Err(ConfigError::new("max_threshold", message));
        }
        if !(self.max_probability > 0.0 && self.max_probability <= 1.0) {
            return Err(ConfigError::new("max_probability", "must be above 0 and at most 1"));
        }
        check_weight(self.weight).map_err(|message| ConfigError::new("weight", message))?;
        match self.compat {
            Compat::Source => linux::check_source(self),
            Compat::Linux => linux::check(self),
        }
    }

    fn aqm(&self, link: &LinkFacts) -> AnyRed {
        match self.compat {
            Compat::Source => AnyRed::Paper(Red::new(self, link)),
            Compat::Linux => AnyRed::Linux(LinuxRed::new(self, link)),
        }
    }
}

/// What RED does above its hard limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OverMax {
    /// Every packet is dropped, ECN-capable or not (§4 of the paper).
    #[default]
    Drop,
    /// ECN-capable packets are marked if `ecn` is set; all others are dropped.
    Mark,
    /// There is no hard limit: the line between the thresholds goes on until its probability is 1, and `gentle` has no
    /// effect.
    Linear,
}

/// How the probability rises between the thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Curve {
    /// In proportion to the average (RED).
    Linear,
    /// With the square of the average (nonlinear RED).
    Quadratic,
}

/// The state of RED by the paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Red {
    min: f64,
    max: f64,
    max_p: f64,
    curve: Curve,
    mean_packet: f64,
    byte_drop: bool,
    gentle: bool,
    /// The probability at which the gentle slope begins, if it is not the current `max_p`.
    slope_from: Option<f64>,
    wait: bool,
    ecn: bool,
    over_max: OverMax,
    least_waiting: u64,
    avg: Average,
    /// Packets since the last mark; `None` stands for the paper's -1.
    count: Option<u64>,
    /// The last drop was above the hard limit.
    forced: bool,
}

impl Red {
    /// Creates the state of an empty, idle queue.
    pub fn new(config: &Config, link: &LinkFacts) -> Self {
        Self {
            min: config.threshold(config.min_threshold),
            max: config.threshold(config.max_threshold),
            max_p: config.max_probability,
            curve: Curve::Linear,
            mean_packet: config.mean_packet.get() as f64,
            byte_drop: config.byte_drop,
            gentle: config.gentle,
            slope_from: None,
            wait: config.wait,
            ecn: config.ecn,
            over_max: config.over_max,
            least_waiting: config.least_waiting,
            avg: Average::new(config.weight, config.mode, config.mean_packet, link),
            count: None,
            forced: false,
        }
    }

    /// Sets the thresholds, in the unit of the average, for algorithms that compute them (ARED).
    pub(super) fn set_thresholds(&mut self, min: f64, max: f64) {
        (self.min, self.max) = (min, max);
    }

    /// Replaces the curve between the thresholds (nonlinear RED).
    pub(super) fn with_curve(self, curve: Curve) -> Self {
        Self { curve, ..self }
    }

    /// Lets the gentle slope begin at this probability, whatever `max_p` becomes (ARED).
    pub(super) fn with_slope_from(self, probability: f64) -> Self {
        Self { slope_from: Some(probability), ..self }
    }

    /// Returns the thresholds in the unit of the average.
    pub(super) fn thresholds(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    /// Returns the current `max_p`.
    pub(super) fn max_p(&self) -> f64 {
        self.max_p
    }

    /// Returns the average queue, in packets or bytes as [`Config::mode`] says.
    pub fn average(&self) -> f64 {
        self.avg.value
    }

    /// Returns `max_p` for algorithms that adapt it (ARED).
    pub(super) fn max_p_mut(&mut self) -> &mut f64 {
        &mut self.max_p
    }

    /// Returns `pb` at the current average: 0 below `min`, 1 above the hard limit.
    pub(super) fn probability(&self) -> f64 {
        let avg = self.avg.value;
        if avg < self.min { 0.0 } else { self.base_probability(avg).unwrap_or(1.0) }
    }

    /// Notes that an arrival was dropped by another algorithm's judgement.
    pub(super) fn refused(&mut self, backlog: Backlog, now: Instant) {
        self.forced = false;
        self.avg.refused(backlog, now);
    }

    /// Returns the base probability at the average `avg`.
    #[cfg(test)]
    pub(super) fn probability_at(&self, avg: f64) -> f64 {
        self.base_probability(avg).unwrap_or(1.0)
    }

    /// Returns true if the average is not above `min`.
    pub(super) fn is_calm(&self) -> bool {
        self.avg.value <= self.min
    }

    /// Makes the first half of an arrival: updates the average.
    #[inline]
    pub(super) fn observe(&mut self, backlog: Backlog, now: Instant) {
        self.avg.arrived(backlog, now);
    }

    /// Makes the second half of an arrival: judges the packet.
    #[inline]
    pub(super) fn decide(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        if backlog.packets < self.least_waiting {
            self.count = None; // as below the lower threshold
            return Verdict::Pass;
        }
        let verdict = self.judge(packet, rng);
        if verdict == Verdict::Drop {
            self.avg.refused(backlog, now);
        }
        verdict
    }

    /// Returns `pb` at the average `avg`; `None` above the hard limit.
    fn base_probability(&self, avg: f64) -> Option<f64> {
        if avg < self.max || self.over_max == OverMax::Linear {
            let pb = match self.curve {
                Curve::Linear => self.max_p * (avg - self.min) / (self.max - self.min),
                Curve::Quadratic => {
                    let x = (avg - self.min) / (self.max - self.min);
                    self.max_p * x * x
                }
            };
            Some(pb.min(1.0))
        } else if self.gentle && avg < 2.0 * self.max {
            let from = self.slope_from.unwrap_or(self.max_p);
            Some(from + (1.0 - from) * (avg - self.max) / self.max)
        } else {
            None
        }
    }

    /// Returns `pa`, which spaces the marks, from `pb` and the packets since the last mark.
    fn spaced_probability(&self, pb: f64, count: u64) -> f64 {
        let x = count as f64 * pb;
        let pa = match (self.wait, x) {
            (true, x) if x < 1.0 => 0.0,
            (true, x) if x < 2.0 => pb / (2.0 - x),
            (false, x) if x < 1.0 => pb / (1.0 - x),
            _ => 1.0,
        };
        pa.min(1.0)
    }

    /// Judges a packet at the current average.
    pub(super) fn judge(&mut self, packet: &Meta, rng: &mut Rng) -> Verdict {
        if self.avg.value < self.min {
            self.count = None;
            return Verdict::Pass;
        }
        let Some(mut pb) = self.base_probability(self.avg.value) else {
            return self.above_the_hard_limit(packet);
        };
        let count = self.count.map_or(0, |n| n + 1);
        self.count = Some(count);
        if self.byte_drop {
            pb *= packet.size.get() as f64 / self.mean_packet;
        }
        let pa = self.spaced_probability(pb, count);
        if pa <= 0.0 || (pa < 1.0 && rng.uniform() >= pa) {
            return Verdict::Pass;
        }
        self.count = Some(0);
        self.forced = false;
        if self.marks(packet) { Verdict::Mark } else { Verdict::Drop }
    }

    fn marks(&self, packet: &Meta) -> bool {
        self.ecn && packet.ecn.is_capable()
    }

    /// Judges a packet where no probability is asked for.
    fn above_the_hard_limit(&mut self, packet: &Meta) -> Verdict {
        self.count = Some(0);
        if self.over_max == OverMax::Mark && self.marks(packet) {
            return Verdict::Mark;
        }
        self.forced = true;
        Verdict::Drop
    }
}

impl Aqm for Red {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.observe(backlog, now);
        self.decide(packet, backlog, now, rng)
    }

    #[inline]
    fn on_dequeue(&mut self, _: &Meta, _: Span, backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        self.avg.departed(backlog, now);
        Verdict::Pass
    }

    fn was_forced(&self) -> bool {
        self.forced
    }

    fn on_overflow(&mut self, _: Instant) {
        self.count = Some(0);
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl AckPath for Red {}

/// RED by the rules that [`Config::compat`] names.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyRed {
    /// RED by the paper, in floating point.
    Paper(Red),
    /// RED by the kernel, in integers.
    Linux(LinuxRed),
}

impl AnyRed {
    /// Returns the average queue: in the unit of [`Config::mode`] by the paper, in bytes by the kernel.
    pub fn average(&self) -> f64 {
        match self {
            Self::Paper(red) => red.average(),
            Self::Linux(red) => red.average(),
        }
    }
}

impl Aqm for AnyRed {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        match self {
            Self::Paper(red) => red.on_enqueue(packet, backlog, now, rng),
            Self::Linux(red) => red.on_enqueue(packet, backlog, now, rng),
        }
    }

    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        match self {
            Self::Paper(red) => red.on_dequeue(packet, sojourn, backlog, now, rng),
            Self::Linux(red) => red.on_dequeue(packet, sojourn, backlog, now, rng),
        }
    }

    fn was_forced(&self) -> bool {
        match self {
            Self::Paper(red) => red.was_forced(),
            Self::Linux(red) => red.was_forced(),
        }
    }

    fn on_overflow(&mut self, now: Instant) {
        match self {
            Self::Paper(red) => red.on_overflow(now),
            Self::Linux(red) => red.on_overflow(now),
        }
    }

    fn on_empty(&mut self, now: Instant) {
        match self {
            Self::Paper(red) => red.on_empty(now),
            Self::Linux(red) => red.on_empty(now),
        }
    }

    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        match self {
            Self::Paper(red) => red.on_fact(fact, now),
            Self::Linux(red) => red.on_fact(fact, now),
        }
    }
}

impl AckPath for AnyRed {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use proptest::prelude::{Just, any, prop_assert, prop_oneof, proptest};

    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) };

    fn red(config: Config) -> Red {
        config.validate().unwrap();
        Red::new(&config, &LINK)
    }

    fn arrive(red: &mut Red, queued: u64, now: Instant, rng: &mut Rng) -> Verdict {
        let packet = Meta { size: Bytes::new(1000), ecn: Ecn::NotEct, flow: FlowId(0) };
        red.on_enqueue(&packet, Backlog { packets: queued, bytes: queued * 1000 }, now, rng)
    }

    #[test]
    fn the_average_is_the_papers() {
        let (mut red, mut rng) = (red(Config { weight: 0.5, ..Config::default() }), Streams::new(1).get("t"));
        arrive(&mut red, 0, Instant::ZERO, &mut rng);
        for (queued, average) in [(4, 2.0), (4, 3.0), (1, 2.0)] {
            arrive(&mut red, queued, Instant::ZERO, &mut rng);
            assert_eq!(red.average(), average);
        }
        // Idle for 3 ms; a mean packet of 1000 B takes 1 ms at 8 Mbit/s: avg = 2 (1 - 0.5)^3 = 0.25.
        red.on_dequeue(
            &Meta { size: Bytes::new(1), ecn: Ecn::NotEct, flow: FlowId(0) },
            Span::ZERO,
            Backlog::default(),
            Instant::ZERO,
            &mut rng,
        );
        arrive(&mut red, 0, Instant::ZERO + Span::from_millis(3), &mut rng);
        assert!((red.average() - 0.25).abs() < 1e-12);
    }

    /// The first packet after a drop has count 1, so with the average held gaps are uniform in 1..1/pb - 1: their mean
    /// is 1/(2 pb). With `wait` they are uniform in 1/pb..2/pb - 1.
    #[test]
    fn gaps_between_drops_are_uniform() {
        for (wait, mean, longest) in [(false, 10.0, 19), (true, 29.5, 39)] {
            // weight 1 makes the average the queue: 10 of 5..15 packets, pb = 0.1 * 0.5 = 0.05.
            let mut red = red(Config { weight: 1.0, wait, ..Config::default() });
            let mut rng = Streams::new(3).get("gaps");
            arrive(&mut red, 0, Instant::ZERO, &mut rng);
            let (mut gap, mut gaps) = (0u32, Vec::new());
            for _ in 0..200_000 {
                gap += 1;
                if arrive(&mut red, 10, Instant::ZERO, &mut rng) == Verdict::Drop {
                    gaps.push(std::mem::take(&mut gap));
                }
            }
            let seen = gaps.iter().map(|g| f64::from(*g)).sum::<f64>() / gaps.len() as f64;
            // The deviation of a uniform gap is 5.8; of the mean of 19,000 or 6,700 gaps below 0.08.
            assert!((seen - mean).abs() < 0.4, "mean gap {seen}, theory {mean}");
            assert!(gaps[1..].iter().all(|g| *g <= longest), "longest {:?}", gaps.iter().max());
        }
    }

    #[test]
    fn gentle_rises_to_one_at_twice_the_threshold_and_plain_jumps() {
        let gentle = red(Config::default());
        assert!((gentle.base_probability(22.5).unwrap() - 0.55).abs() < 1e-12);
        assert_eq!(gentle.base_probability(30.0), None);
        let plain = red(Config { gentle: false, ..Config::default() });
        assert_eq!(plain.base_probability(15.0), None);
    }

    /// Thresholds 5 and 15, max_p 0.1: the line is 0.1 at 15, 0.25 at 30, 0.9 at 95 and 1 from 105 on.
    #[test]
    fn a_linear_probability_has_no_hard_limit() {
        for gentle in [false, true] {
            let red = red(Config { over_max: OverMax::Linear, gentle, ..Config::default() });
            for (avg, pb) in [(10.0, 0.05), (15.0, 0.1), (30.0, 0.25), (95.0, 0.9), (105.0, 1.0), (1000.0, 1.0)] {
                assert!((red.base_probability(avg).unwrap() - pb).abs() < 1e-12, "{avg}");
            }
        }
    }

    /// The average is far above the hard limit, but a queue of less than two packets is left alone.
    #[test]
    fn a_short_queue_is_left_alone_where_that_is_asked_for() {
        for (least_waiting, queued, verdict) in [(0, 0, Verdict::Drop), (2, 1, Verdict::Pass), (2, 2, Verdict::Drop)] {
            let mut red = red(Config { least_waiting, ..Config::default() });
            (red.avg.value, red.avg.idle_since, red.count) = (64.0, None, Some(7));
            assert_eq!(arrive(&mut red, queued, Instant::ZERO, &mut Streams::new(1).get("t")), verdict);
            assert_eq!(red.count, (verdict == Verdict::Drop).then_some(0));
        }
    }

    #[test]
    fn above_the_hard_limit_packets_are_marked_only_where_they_may_be() {
        let above = |over_max, ecn, ect: Ecn| {
            let mut red = red(Config { weight: 1.0, over_max, ecn, ..Config::default() });
            red.avg.value = 31.0;
            let packet = Meta { size: Bytes::new(1000), ecn: ect, flow: FlowId(0) };
            let verdict = red.judge(&packet, &mut Streams::new(1).get("t"));
            (verdict, red.count, red.forced)
        };
        let forced = (Verdict::Drop, Some(0), true);
        assert_eq!(above(OverMax::Mark, true, Ecn::Ect0), (Verdict::Mark, Some(0), false));
        assert_eq!(above(OverMax::Mark, true, Ecn::NotEct), forced);
        assert_eq!(above(OverMax::Mark, false, Ecn::Ect0), forced);
        assert_eq!(above(OverMax::Drop, true, Ecn::Ect0), forced);
    }

    #[test]
    fn a_drop_at_an_empty_queue_does_not_end_the_idle_time() {
        let (mut red, mut rng) = (red(Config { weight: 0.5, ..Config::default() }), Streams::new(1).get("t"));
        red.avg.value = 64.0;
        red.avg.idle_since = Some(Instant::ZERO);
        // 1 ms of idle time at a time halves the average: 32 and above is over the hard limit of 30.
        let verdicts = [1, 2].map(|ms| arrive(&mut red, 0, Instant::ZERO + Span::from_millis(ms), &mut rng));
        assert_eq!(verdicts[0], Verdict::Drop);
        assert!((red.average() - 16.0).abs() < 1e-12, "two halvings of 64, not {}", red.average());
    }

    /// A weight of 1 makes the average the queue. 5 to 15 packets, plain: from 15 on all are dropped, and these are forced.
    #[test]
    fn drops_above_the_hard_limit_are_counted_apart() {
        use crate::qdisc::Qdisc;
        use crate::queue::Fifo;
        use crate::testing::Numbered;
        for compat in [Compat::Source, Compat::Linux] {
            let config = Config { weight: 1.0, gentle: false, max_probability: 0.5, compat, ..Config::default() };
            let mut queue = Fifo::<Numbered, AnyRed>::new(Limit::Packets(1000), config.aqm(&LINK));
            let mut rng = Streams::new(1).get("forced");
            for number in 0..200 {
                queue.enqueue(Numbered::new(number, FlowId(0), Bytes::new(1000)), Instant::ZERO, &mut rng, &mut ());
            }
            let stats = queue.stats();
            let (early, forced) = (stats.dropped_early.packets, stats.dropped_forced.packets);
            // Nothing leaves. The queue fills to 15 packets, with some drops by lot on the way; then every one is forced.
            // The kernel's least weight is 1/2, so that its average needs a few more.
            assert!((1..=30).contains(&(early - forced)), "{compat:?}: {forced} forced of {early}");
            assert!((150..=184).contains(&forced), "{compat:?}: {forced} forced of {early}");
            assert_eq!(stats.dropped_forced.bytes, forced * 1000);
            stats.check(queue.backlog()).unwrap();
        }
    }

    #[test]
    fn the_kernels_table_is_not_for_the_paper() {
        for (config, key) in [
            (Config { bandwidth: Some(LINK.rate), ..Config::default() }, "bandwidth"),
            (Config { scell_log: Some(3), ..Config::default() }, "scell_log"),
            (Config { stab: Some(vec![0]), ..Config::default() }, "stab"),
        ] {
            assert_eq!(config.validate().unwrap_err().key, key);
        }
    }

    #[test]
    fn an_overflow_restarts_the_count() {
        let mut red = red(Config::default());
        red.count = Some(17);
        red.on_overflow(Instant::ZERO);
        assert_eq!(red.count, Some(0));
    }

    #[test]
    fn thresholds_in_the_wrong_order_are_refused_by_name() {
        let config = Config { min_threshold: Limit::Bytes(Bytes::new(20_000)), ..Config::default() };
        assert_eq!(config.validate().unwrap_err().key, "max_threshold");
    }

    proptest! {
        /// The average reaches from the lower threshold, below which no probability is asked for, past the hard limit.
        #[test]
        fn probabilities_are_within_0_and_1(
            (low, width) in (0u64..100, 1u64..100),
            max_probability in 1e-6..=1.0f64,
            above in 0.0..3.0f64,
            // In mean gaps 1/pb: the spacing has its poles at 1 and, with `wait`, at 2.
            gaps in 0.0..2.5f64,
            // A packet of any size for `byte_drop`, as a multiple of the mean.
            scale in prop_oneof![Just(1.0), 0.0..65.0f64],
            (gentle, wait) in any::<(bool, bool)>(),
        ) {
            let (min_threshold, max_threshold) = (Limit::Packets(low), Limit::Packets(low + width));
            let config = Config { min_threshold, max_threshold, max_probability, gentle, wait, ..Config::default() };
            let red = red(config);
            let avg = red.min + above * red.max;
            if let Some(pb) = red.base_probability(avg) {
                prop_assert!((0.0..=1.0).contains(&pb), "pb {pb} at {avg}");
                let pb = pb * scale;
                let count = (gaps / pb) as u64;
                let pa = red.spaced_probability(pb, count);
                prop_assert!((0.0..=1.0).contains(&pa), "pa {pa} for pb {pb}, count {count}");
            }
        }
    }

    /// §4 of the paper, byte mode: p_b in proportion to the size. Of packets four times as large, four times as many die.
    #[test]
    fn a_large_packet_is_dropped_more_often_where_bytes_count() {
        let drops = |size: u64| {
            let mut red = red(Config { weight: 1.0, byte_drop: true, ..Config::default() });
            let mut rng = Streams::new(4).get("bytes");
            let packet = Meta { size: Bytes::new(size), ecn: Ecn::NotEct, flow: FlowId(0) };
            let mut dies = || {
                let backlog = Backlog { packets: 10, bytes: 10_000 };
                red.on_enqueue(&packet, backlog, Instant::ZERO, &mut rng) == Verdict::Drop
            };
            (0..100_000).filter(|_| dies()).count() as f64
        };
        // p_b is 0.05 at a size of 1000: gaps are uniform, with a mean of 1/(2 p_b).
        for (size, expected) in [(500, 5000.0), (1000, 10_000.0), (2000, 20_000.0)] {
            let seen = drops(size);
            assert!((seen / expected - 1.0).abs() < 0.05, "{seen} of {size} B, {expected} by theory");
        }
    }

    /// The kernel's RED learns from `on_empty` that the link is idle; the average of a link that was idle for long is nothing.
    #[test]
    fn the_kernels_red_by_name_ages_while_the_link_is_idle() {
        let average = |idle: bool| {
            let config = Config { compat: Compat::Linux, ..Config::default() };
            let (mut red, mut rng) = (config.aqm(&LINK), Streams::new(1).get("idle"));
            let packet = Meta { size: Bytes::new(1000), ecn: Ecn::NotEct, flow: FlowId(0) };
            for _ in 0..2000 {
                red.on_enqueue(&packet, Backlog { packets: 4, bytes: 4000 }, Instant::ZERO, &mut rng);
            }
            if idle {
                red.on_empty(Instant::ZERO);
            }
            red.on_enqueue(&packet, Backlog { packets: 1, bytes: 1000 }, Instant::ZERO + Span::from_secs(60), &mut rng);
            red.average()
        };
        assert!(average(false) > 2000.0 && average(true) < 100.0, "{} busy, {} idle", average(false), average(true));
    }
}
