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
//! The RFC's `deque()` is one call that may drop several packets; here the discipline shows one head at a time and
//! `Step` remembers where in that call the last verdict left off. Erratum: a thesis's listing that drops at the first
//! packet above target is wrong; `a_burst_shorter_than_the_interval_passes` holds the RFC's rule.
//!
//! With `ecn`, an ECN-capable packet is marked where it would be dropped and ends the departure (§5.5, last paragraph).
//! Cost: O(1) per packet; one square root per drop.

use super::{Aqm, Meta};
use crate::ack::AckPath;
use crate::qdisc::{Backlog, Verdict};
use crate::registry::{AqmConfig, ConfigError, LinkFacts};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// §5.5: how long after the last drop an earlier count still means something.
const REENTRY_INTERVALS: u64 = 16;

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Acceptable standing queueing delay (RFC 8289 §4.3: 5ms).
    pub target: Span,
    /// How long the delay may stay above the target; about the largest round trip time (§4.3: 100ms).
    pub interval: Span,
    /// With no more bytes than this left behind, nothing is dropped (§5.5: the largest packet).
    pub mtu: Bytes,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { target: Span::from_millis(5), interval: Span::from_millis(100), mtu: Bytes::new(1514), ecn: false }
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
        Ok(())
    }

    fn aqm(&self, _: &LinkFacts) -> Codel {
        Codel::new(self.clone())
    }
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

/// The algorithm. It judges the heads of any queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Codel {
    config: Config,
    first_above: Option<Instant>,
    drop_next: Instant,
    count: u32,
    last_count: u32,
    dropping: bool,
    step: Step,
}

/// `control_law(t, count)` of §5.5.
fn control_law(t: Instant, interval: Span, count: u32) -> Instant {
    t + Span::from_secs_f64(interval.as_secs_f64() / f64::from(count).sqrt())
}

impl Codel {
    /// Not dropping.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
            step: Step::Fresh,
        }
    }

    /// The judgement of `dodequeue()`: has the delay been above target for a whole interval?
    fn ok_to_drop(&mut self, sojourn: Span, left: Backlog, now: Instant) -> bool {
        if sojourn < self.config.target || left.bytes <= self.config.mtu.get() {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.config.interval);
                false
            }
            Some(at) => now >= at,
        }
    }

    fn enter(&mut self, now: Instant) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next) < self.config.interval * REENTRY_INTERVALS;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = control_law(now, self.config.interval, self.count);
        self.last_count = self.count;
    }

    fn advance_drop_next(&mut self) {
        self.drop_next = control_law(self.drop_next, self.config.interval, self.count);
    }

    /// The head is due to be dropped in the dropping state.
    fn drop_or_mark(&mut self, mark: bool) -> Verdict {
        self.count = self.count.saturating_add(1);
        if mark {
            self.advance_drop_next();
            self.step = Step::Fresh;
            return Verdict::Mark;
        }
        self.step = Step::Dropping;
        Verdict::Drop
    }

    fn judge(&mut self, ok: bool, mark: bool, now: Instant) -> Verdict {
        let step = std::mem::replace(&mut self.step, Step::Fresh);
        match (step, self.dropping) {
            (Step::Entered, _) => Verdict::Pass,
            (Step::Fresh, false) if ok => {
                self.enter(now);
                if mark {
                    return Verdict::Mark;
                }
                self.step = Step::Entered;
                Verdict::Drop
            }
            (Step::Fresh, false) => Verdict::Pass,
            _ if !ok => {
                self.dropping = false;
                Verdict::Pass
            }
            (step, _) => {
                if step == Step::Dropping {
                    self.advance_drop_next();
                }
                if now >= self.drop_next { self.drop_or_mark(mark) } else { Verdict::Pass }
            }
        }
    }
}

impl Aqm for Codel {
    #[inline]
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        let ok = self.ok_to_drop(sojourn, backlog, now);
        self.judge(ok, self.config.ecn && packet.ecn.is_capable(), now)
    }

    fn on_empty(&mut self, _: Instant) {
        self.first_above = None;
        if std::mem::replace(&mut self.step, Step::Fresh) != Step::Entered {
            self.dropping = false;
        }
    }
}

impl AckPath for Codel {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, FlowId};
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
}
