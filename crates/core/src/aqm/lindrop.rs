//! LINDROP: drops every dr-th packet; the spacing dr shrinks while the average queue grows. Draws no random numbers.
//!
//! Source: 001 (Brachman and Chrost, "On the search of efficient AQM for large delay networks", 2010) §3, Algorithm 1;
//! parameters from §3 and Table 2.
//!
//! ```text
//! f(avg)  0 up to avg_min, 1 from avg_max on, a line between                        Figure 1
//! dr      dr n_pu if f(avg) grew since the last packet, else dr n_pd; then clipped to dr_min..dr_max
//! drop    if n_drops > dr, then n_drops = 1; else n_drops grows by 1
//! ```
//!
//! The document calls `dr` a rate, but it is a spacing: `n_pu` < 1 makes drops more frequent, `n_pd` > 1 less frequent.
//! Below `avg_min` and above `avg_max` f is constant, so drops become less frequent there. They also do while the
//! average only fluctuates, because n_pu n_pd > 1, so a standing queue fills up, which the document's Table 5 shows. By
//! Algorithm 1 `floor(dr)` packets pass between two drops, one more than "every dr-th packet" of the text. `n_drops`
//! counts every arrival, including one that finds no room: overflow plays no part.
//!
//! DIFFERENCE: the document gives no weight of the average; RED's 0.002 is the default. The average is RED's, including
//! its rule for idle times. Pinned by `the_average_is_reds`.
//! DIFFERENCE: `ecn` marks where the document, which has no ECN, drops. Pinned by `marks_come_where_drops_would`.
//!
//! Whether `avg_max` is below the size of the buffer is not checked, since the limit belongs to the link.
//!
//! Cost: O(1) per packet, with one call of `pow` after an idle time.

use super::average::Mode;
use super::average::{Average, check_weight};
use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of LINDROP. Defaults are those of 001 §3 and Table 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Average queue, in packets, up to which f is 0 (001 Table 2: 0).
    pub avg_min: f64,
    /// Average queue, in packets, from which on f is 1; should be below the limit of the queue (001 Table 2: 50).
    pub avg_max: f64,
    /// Factor of the spacing at each packet while f grows, n_pu, below 1 (001 Table 2: 0.98).
    pub n_pu: f64,
    /// Factor of the spacing at each packet while f does not grow, n_pd, above 1 (001 Table 2: 1.05).
    pub n_pd: f64,
    /// Initial spacing of drops, in packets (001 §3: 500000).
    pub dr_init: f64,
    /// Least spacing of drops, in packets (001 §3: 5).
    pub dr_min: f64,
    /// Largest spacing of drops, in packets (001 §3: 1000000).
    pub dr_max: f64,
    /// Weight of the newest queue length in the average (not in 001; RED's 0.002).
    pub weight: f64,
    /// Mean packet size, which gives the time unit of idle compensation of the average.
    pub mean_packet: Bytes,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            avg_min: 0.0,
            avg_max: 50.0,
            n_pu: 0.98,
            n_pd: 1.05,
            dr_init: 500_000.0,
            dr_min: 5.0,
            dr_max: 1_000_000.0,
            weight: 0.002,
            mean_packet: Bytes::new(1000),
            ecn: false,
        }
    }
}

impl Config {
    /// Returns the first parameter out of its range: by the conditions of Algorithm 1, of f and of the clipping.
    fn mistake(&self) -> Option<(&'static str, String)> {
        let finite = |x: f64| x.is_finite();
        if !(self.avg_min >= 0.0 && finite(self.avg_min)) {
            return Some(("avg_min", "must be 0 or more packets".into()));
        }
        if !(self.avg_max > self.avg_min && finite(self.avg_max)) {
            return Some(("avg_max", format!("must be above avg_min ({})", self.avg_min)));
        }
        if !(self.n_pu > 0.0 && self.n_pu < 1.0) {
            return Some(("n_pu", "must be above 0 and below 1".into()));
        }
        if !(self.n_pd > 1.0 && finite(self.n_pd)) {
            return Some(("n_pd", "must be above 1".into()));
        }
        if !(self.dr_min >= 1.0 && finite(self.dr_min)) {
            return Some(("dr_min", "must be 1 or more packets".into()));
        }
        if !(self.dr_max >= self.dr_min && finite(self.dr_max)) {
            return Some(("dr_max", format!("must be at least dr_min ({})", self.dr_min)));
        }
        if !(self.dr_min..=self.dr_max).contains(&self.dr_init) {
            return Some(("dr_init", format!("must be within dr_min ({}) and dr_max ({})", self.dr_min, self.dr_max)));
        }
        if self.mean_packet == Bytes::ZERO {
            return Some(("mean_packet", "must be above 0B".into()));
        }
        check_weight(self.weight).err().map(|message| ("weight", message.into()))
    }
}

impl AqmConfig for Config {
    type Aqm = Lindrop;

    fn validate(&self) -> Result<(), ConfigError> {
        self.mistake().map_or(Ok(()), |(key, message)| Err(ConfigError::new(key, message)))
    }

    fn aqm(&self, link: &LinkFacts) -> Lindrop {
        Lindrop::new(self.clone(), link)
    }
}

/// The state of LINDROP.
#[derive(Debug, Clone, PartialEq)]
pub struct Lindrop {
    config: Config,
    average: Average,
    /// Value of f at the previous packet.
    f: f64,
    /// Spacing of drops in packets.
    dr: f64,
    /// Arrivals since the last drop, that of the drop included.
    n_drops: u64,
}

/// Computes f(avg) of Figure 1.
fn dropping_function(avg: f64, avg_min: f64, avg_max: f64) -> f64 {
    ((avg - avg_min) / (avg_max - avg_min)).clamp(0.0, 1.0)
}

impl Lindrop {
    /// Creates the state of an empty, idle queue.
    pub fn new(config: Config, link: &LinkFacts) -> Self {
        let average = Average::new(config.weight, Mode::Packets, config.mean_packet, link);
        Self { average, f: 0.0, dr: config.dr_init, n_drops: 1, config }
    }

    /// Returns the average queue in packets.
    pub fn average(&self) -> f64 {
        self.average.value
    }

    /// Returns the current spacing of drops in packets.
    pub fn spacing(&self) -> f64 {
        self.dr
    }

    /// Moves the spacing of drops (Algorithm 1): denser while f grows, less dense otherwise.
    fn adapt(&mut self) {
        let c = &self.config;
        let f = dropping_function(self.average.value, c.avg_min, c.avg_max);
        let factor = if f > self.f { c.n_pu } else { c.n_pd };
        self.dr = (self.dr * factor).clamp(c.dr_min, c.dr_max);
        self.f = f;
    }

    /// Counts this packet and returns true if it is the one to drop.
    fn is_due(&mut self) -> bool {
        let due = self.n_drops as f64 > self.dr;
        self.n_drops = if due { 1 } else { self.n_drops + 1 };
        due
    }
}

impl Aqm for Lindrop {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        self.average.arrived(backlog, now);
        self.adapt();
        if !self.is_due() {
            return Verdict::Pass;
        }
        if self.config.ecn && packet.ecn.is_capable() {
            return Verdict::Mark;
        }
        self.average.refused(backlog, now);
        Verdict::Drop
    }

    #[inline]
    fn on_dequeue(&mut self, _: &Meta, _: Span, backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        self.average.departed(backlog, now);
        Verdict::Pass
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl AckPath for Lindrop {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::red::{self, Red};
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;
    use crate::units::{Limit, Rate};
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) };

    fn lindrop(config: Config) -> Lindrop {
        config.validate().unwrap();
        Lindrop::new(config, &LINK)
    }

    /// A packet that finds `queued` packets, all at one time.
    fn arrive(lindrop: &mut Lindrop, queued: u64, ecn: Ecn) -> Verdict {
        let packet = Meta { size: Bytes::new(1000), ecn, flow: FlowId(0) };
        let backlog = Backlog { packets: queued, bytes: queued * 1000 };
        lindrop.on_enqueue(&packet, backlog, Instant::ZERO, &mut Streams::new(1).get("t"))
    }

    /// Weight 1: the average is the queue. The first arrival, to an idle queue, finds an average of 0.
    fn at_once() -> Config {
        Config { weight: 1.0, ..Config::default() }
    }

    #[test]
    fn f_is_flat_linear_and_flat() {
        for (avg, f) in [(0.0, 0.0), (10.0, 0.0), (20.0, 0.25), (50.0, 1.0), (90.0, 1.0)] {
            assert_eq!(dropping_function(avg, 10.0, 50.0), f);
        }
    }

    /// Algorithm 1 by hand, with factors 1/2 and 2. f is avg / 8:
    ///
    /// ```text
    /// avg   f grew   dr
    ///   0   no       16
    ///   2   yes       8
    ///   2   no       16    (equal is not grown)
    ///   4   yes       8
    ///   8   yes       4
    ///   9   no        8    (f stays at 1)
    ///   1   no       16
    /// ```
    #[test]
    fn the_spacing_shrinks_while_the_average_grows_and_grows_otherwise() {
        let mut lindrop = lindrop(Config { avg_max: 8.0, n_pu: 0.5, n_pd: 2.0, dr_init: 8.0, ..at_once() });
        lindrop.config.dr_min = 1.0;
        for (queued, dr) in [(0, 16.0), (2, 8.0), (2, 16.0), (4, 8.0), (8, 4.0), (9, 8.0), (1, 16.0)] {
            arrive(&mut lindrop, queued, Ecn::NotEct);
            assert_eq!(lindrop.spacing(), dr, "after a queue of {queued}");
        }
    }

    #[test]
    fn the_spacing_stays_within_its_range() {
        let mut lindrop = lindrop(Config { avg_max: 10_000.0, ..at_once() });
        // 500000 * 0.98^570 is 4.99 and * 0.98^569 is 5.09: the least spacing is reached at the 570th growth.
        arrive(&mut lindrop, 0, Ecn::NotEct); // times 1.05, so 2.42 growths more
        for queued in 1..=572 {
            arrive(&mut lindrop, queued, Ecn::NotEct);
        }
        assert!(lindrop.spacing() > 5.0);
        arrive(&mut lindrop, 573, Ecn::NotEct);
        assert_eq!(lindrop.spacing(), 5.0);
        // 1000000 / 5 = 200000 = 1.05^250.2.
        for _ in 0..250 {
            arrive(&mut lindrop, 1, Ecn::NotEct);
        }
        assert!(lindrop.spacing() < 1_000_000.0);
        arrive(&mut lindrop, 1, Ecn::NotEct);
        assert_eq!(lindrop.spacing(), 1_000_000.0);
    }

    /// An average that grows without end keeps dr at 5: n_drops = 1..5 are not above it, 6 is.
    #[test]
    fn at_the_least_spacing_five_pass_and_the_sixth_is_dropped() {
        let mut lindrop = lindrop(Config { avg_max: 10_000.0, dr_init: 5.0, n_pu: 0.9, n_pd: 1.01, ..at_once() });
        arrive(&mut lindrop, 0, Ecn::NotEct); // the idle queue: dr 5.05, n_drops 2
        let fates: Vec<bool> = (1..=24).map(|q| arrive(&mut lindrop, q, Ecn::NotEct) == Verdict::Drop).collect();
        let dropped: Vec<usize> = (1..=24).filter(|n| fates[n - 1]).collect();
        assert_eq!(dropped, [5, 11, 17, 23]);
    }

    #[test]
    fn marks_come_where_drops_would() {
        let config = Config { avg_max: 10_000.0, dr_init: 5.0, ecn: true, ..at_once() };
        let (mut capable, mut not) = (lindrop(config.clone()), lindrop(config));
        for queued in 0..100 {
            let verdict = arrive(&mut capable, queued, Ecn::Ect0);
            let drop = arrive(&mut not, queued, Ecn::NotEct) == Verdict::Drop;
            assert_eq!(verdict, if drop { Verdict::Mark } else { Verdict::Pass });
        }
    }

    #[test]
    fn an_overflow_changes_nothing() {
        let mut lindrop = lindrop(Config::default());
        arrive(&mut lindrop, 40, Ecn::NotEct);
        let before = lindrop.clone();
        lindrop.on_overflow(Instant::ZERO);
        assert_eq!(lindrop, before);
    }

    #[test]
    fn values_that_cannot_work_are_refused_by_name() {
        let d = Config::default;
        let wrong = [
            (Config { avg_max: 0.0, ..d() }, "avg_max"),
            (Config { avg_min: f64::NAN, ..d() }, "avg_min"),
            (Config { n_pu: 1.0, ..d() }, "n_pu"),
            (Config { n_pd: 1.0, ..d() }, "n_pd"),
            (Config { dr_min: 0.5, ..d() }, "dr_min"),
            (Config { dr_max: 4.0, ..d() }, "dr_max"),
            (Config { dr_init: 4.0, ..d() }, "dr_init"),
            (Config { weight: 0.0, ..d() }, "weight"),
            (Config { mean_packet: Bytes::ZERO, ..d() }, "mean_packet"),
        ];
        for (config, key) in wrong {
            assert_eq!(config.validate().unwrap_err().key, key);
        }
    }

    proptest! {
        /// The random numbers it is given stay unused; the spacing stays in its range.
        #[test]
        fn draws_no_random_number(
            life in prop::collection::vec((0u64..200, 0u64..20_000_000, any::<bool>()), 1..500),
            dr_init in 5.0..50.0f64,
            ecn in any::<bool>(),
        ) {
            let mut lindrop = lindrop(Config { weight: 0.1, dr_init, ecn, ..Config::default() });
            let mut rng = Streams::new(1).get("unused");
            let (unused, mut now) = (rng.clone(), Instant::ZERO);
            for (queued, gap, departs) in life {
                now += Span::from_nanos(gap);
                let packet = Meta { size: Bytes::new(1000), ecn: Ecn::Ect0, flow: FlowId(0) };
                let backlog = Backlog { packets: queued, bytes: queued * 1000 };
                if departs {
                    lindrop.on_dequeue(&packet, Span::ZERO, backlog, now, &mut rng);
                } else {
                    lindrop.on_enqueue(&packet, backlog, now, &mut rng);
                }
                prop_assert!((5.0..=1e6).contains(&lindrop.spacing()));
            }
            prop_assert_eq!(rng, unused);
        }

        /// Idle times, a weight: all as RED averages the same queue when neither drops.
        #[test]
        fn the_average_is_reds(life in prop::collection::vec((0u64..4, 0u64..20_000_000, any::<bool>()), 1..200)) {
            let mut lindrop = lindrop(Config { weight: 0.1, ..Config::default() });
            let mut red = Red::new(&red::Config { weight: 0.1, ..red::Config::default() }, &LINK);
            let (mut rng, mut now) = (Streams::new(1).get("t"), Instant::ZERO);
            let packet = Meta { size: Bytes::new(1000), ecn: Ecn::NotEct, flow: FlowId(0) };
            for (queued, gap, departs) in life {
                now += Span::from_nanos(gap);
                let backlog = Backlog { packets: queued, bytes: queued * 1000 };
                if departs {
                    red.on_dequeue(&packet, Span::ZERO, backlog, now, &mut rng);
                    lindrop.on_dequeue(&packet, Span::ZERO, backlog, now, &mut rng);
                } else {
                    red.on_enqueue(&packet, backlog, now, &mut rng);
                    lindrop.on_enqueue(&packet, backlog, now, &mut rng);
                }
                prop_assert_eq!(lindrop.average(), red.average());
            }
        }
    }
}
