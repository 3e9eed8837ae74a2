//! RED as Linux implements it: in integers, with an average in bytes and one random number per drop.
//!
//! Source: Linux 6.18, `include/net/red.h` and `net/sched/sch_red.c`; the table for idle times is iproute2's,
//! `tc/tc_red.c`. Names are those of the source.
//!
//! ```text
//! qavg    qavg + backlog - (qavg >> Wlog)         W = 2^-Wlog; qavg is in bytes, shifted left by Wlog
//!         qavg >> Stab[us >> Scell_log]           after an idle time of us microseconds, at most 255 cells;
//!         qavg - (qavg us >> Scell_log)           where Stab is 0, but half of qavg if that is not above half
//! mark    ((qavg - qth_min) >> Wlog) qcount >= qR     qth_min <= qavg < qth_max
//! qR      random in 0 .. (qth_max - qth_min) / max_P, drawn anew after each mark and when qcount is 0
//! Stab    i-th: i 2^Scell_log lW, at most 31; lW = -ln(1 - W) / (ticks to send a mean packet)
//! ```
//!
//! From `qth_max` on every packet is dropped, or marked if it is ECN-capable. `qcount` is -1 below `qth_min` and from
//! `qth_max` on. The gap between marks is uniform while the average does not change; there is no gentle form. The queue
//! is idle from the time at which the link finds it empty, and an overflow does not change `qcount`. One random number
//! is drawn per `qR`.
//!
//! `tc` counts ticks of 64 ns and uses ln where a shift needs log2, and the kernel reads the table with microseconds,
//! so the average decays more slowly than intended. This file keeps that, because it is the behaviour of real systems.
//!
//! DIFFERENCE: 2^-Wlog is the power of two nearest to `weight`; `tc` derives Wlog from a burst. The time to send a
//! packet is not rounded, and a table which is too long for `tc` (`Scell_log` above 31) is built nevertheless. `tc`
//! fills the table for 10 Mbit/s unless it is told a bandwidth, here it is filled for the link; `bandwidth`,
//! `scell_log` and `stab` set it as `tc` does. max_P = 1 becomes 1 - 2^-32. Pinned by `the_table_is_that_of_tc`,
//! `the_table_can_be_set_as_tc_sets_it`, `parameters_become_powers_of_two`.

use super::{Config, OverMax};
use crate::ack_path::AckPath;
use crate::aqm::average::Mode;
use crate::aqm::average::in_unit_of;
use crate::config::{ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Rate, Span};

const CELLS: usize = 256;
/// Largest shift in the table: a larger one clears an average of 32 bits as well.
const MOST_SHIFT: f64 = 31.0;
/// Largest Scell_log: 255 cells of this size stay below 2^63.
const MOST_SCELL_LOG: u32 = 55;
/// Number of ticks of 64 ns per second.
const TICKS_PER_SECOND: f64 = 15_625_000.0;

/// The state of RED by the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct LinuxRed {
    qth_min: u64,
    qth_max: u64,
    wlog: u32,
    /// `max_P / (qth_max - qth_min)`, max_P in units of 2^-32.
    max_p_delta: u32,
    table: IdleTable,
    ecn: bool,
    qavg: u64,
    qcount: i64,
    qr: u32,
    idle_since: Option<Instant>,
    /// True if the last arrival found the link idle.
    found_idle: bool,
    /// True if the last signal was above `qth_max`, the kernel's RED_HARD_MARK.
    hard: bool,
}

/// The table by which the average decays during an idle time.
#[derive(Debug, Clone, PartialEq)]
struct IdleTable {
    scell_log: u32,
    /// The shifts by cell of idle time. Boxed, so that it does not enlarge the type of all disciplines.
    stab: Box<[u8; CELLS]>,
}

/// Returns the Wlog nearest to `weight` on a logarithmic scale: the least n with `weight` >= 2^-(n + 1/2), within
/// 1..=31.
fn wlog(weight: f64) -> u32 {
    let mut square = weight * weight;
    for n in 1..31 {
        square *= 4.0;
        if square >= 0.5 {
            return n;
        }
    }
    31
}

/// Converts a threshold to whole bytes.
fn bytes(config: &Config, limit: Limit) -> u64 {
    in_unit_of(Mode::Bytes, limit, config.mean_packet) as u64
}

/// Refuses parameters which only the kernel has.
pub(super) fn check_source(config: &Config) -> Result<(), ConfigError> {
    let told = [
        ("bandwidth", config.bandwidth.is_some()),
        ("scell_log", config.scell_log.is_some()),
        ("stab", config.stab.is_some()),
    ];
    match told.iter().find(|(_, told)| *told) {
        Some((key, _)) => Err(ConfigError::new(key, "is for the kernel's idle time: it needs compat = \"linux\"")),
        None => Ok(()),
    }
}

/// Checks the table of idle times, like `red_check_params`.
fn check_table(config: &Config) -> Result<(), ConfigError> {
    if config.scell_log.is_some_and(|log| log > 31) {
        return Err(ConfigError::new("scell_log", "must be from 0 to 31"));
    }
    let Some(stab) = &config.stab else { return Ok(()) };
    if stab.is_empty() || stab.len() > CELLS || stab.iter().any(|shift| f64::from(*shift) > MOST_SHIFT) {
        return Err(ConfigError::new("stab", "must be 1 to 256 numbers, each from 0 to 31"));
    }
    Ok(())
}

/// Refuses parameters which Linux does not have, and values which it does not allow.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    for (key, set) in [("byte_drop", config.byte_drop), ("wait", config.wait)] {
        if set {
            return Err(ConfigError::new(key, "does not exist in Linux's RED; leave it out with compat = \"linux\""));
        }
    }
    if config.over_max != OverMax::Drop {
        let message = "is for the paper's RED: with compat = \"linux\" the kernel's rule holds";
        return Err(ConfigError::new("over_max", message));
    }
    if config.least_waiting > 0 {
        return Err(ConfigError::new(
            "least_waiting",
            "does not exist in Linux's RED; leave it out with compat = \"linux\"",
        ));
    }
    check_table(config)?;
    let most = (1u64 << (31 - wlog(config.weight))) - 1;
    if bytes(config, config.max_threshold) > most {
        let message = format!("with compat = \"linux\" and this weight it must be at most {}", Bytes::new(most));
        return Err(ConfigError::new("max_threshold", message));
    }
    Ok(())
}

impl IdleTable {
    /// Returns the table that was set, or else that of `tc` for `rate`.
    fn of(config: &Config, wlog: u32, rate: Rate) -> Self {
        let mut table = Self::new(wlog, config.mean_packet, config.bandwidth.unwrap_or(rate), config.scell_log);
        if let Some(told) = &config.stab {
            let last = told.last().copied().unwrap_or_default();
            table.stab.iter_mut().zip(told.iter().chain(std::iter::repeat(&last))).for_each(|(to, from)| *to = *from);
        }
        table
    }

    /// Computes the table, like `tc_red_eval_idle_damping`.
    fn new(wlog: u32, mean_packet: Bytes, rate: Rate, scell_log: Option<u32>) -> Self {
        let xmit_ticks = mean_packet.get() as f64 / rate.bytes_per_sec() * TICKS_PER_SECOND;
        let lw = -libm::log(1.0 - 1.0 / (1u64 << wlog) as f64) / xmit_ticks;
        let longest = MOST_SHIFT / lw;
        let fits = |log: &u32| longest / ((1u64 << log) as f64) < 512.0;
        let scell_log = scell_log.or_else(|| (0..MOST_SCELL_LOG).find(fits)).unwrap_or(MOST_SCELL_LOG);
        let mut stab = Box::new([0; CELLS]);
        for (i, shift) in stab.iter_mut().enumerate().skip(1) {
            *shift = (((i as u64) << scell_log) as f64 * lw).min(MOST_SHIFT) as u8;
        }
        stab[CELLS - 1] = MOST_SHIFT as u8;
        Self { scell_log, stab }
    }

    /// Returns the average after an idle time, like `red_calc_qavg_from_idle_time`.
    fn aged(&self, qavg: u64, idle: Span) -> u64 {
        let us = (idle.as_nanos() / 1000).min(255 << self.scell_log);
        let (shift, half) = (self.stab[(us >> self.scell_log) as usize], qavg >> 1);
        if shift > 0 {
            return qavg >> shift;
        }
        // A short idle time: approximate linearly, and at most halve the average.
        let fall = (u128::from(qavg) * u128::from(us)) >> self.scell_log;
        if fall < u128::from(half) { qavg - fall as u64 } else { half }
    }
}

impl LinuxRed {
    /// Creates the state of an empty, idle queue.
    pub(super) fn new(config: &Config, link: &LinkFacts) -> Self {
        let wlog = wlog(config.weight);
        let (min, max) = (bytes(config, config.min_threshold), bytes(config, config.max_threshold));
        let max_p = (config.max_probability * (1u64 << 32) as f64) as u32;
        Self {
            qth_min: min << wlog,
            qth_max: max << wlog,
            wlog,
            max_p_delta: (u64::from(max_p) / (max - min).max(1)).max(1) as u32,
            table: IdleTable::of(config, wlog, link.rate),
            ecn: config.ecn,
            qavg: 0,
            qcount: -1,
            qr: 0,
            idle_since: Some(Instant::ZERO),
            found_idle: true,
            hard: false,
        }
    }

    /// Returns the average queue in bytes.
    pub fn average(&self) -> f64 {
        self.qavg as f64 / (1u64 << self.wlog) as f64
    }

    /// Updates the average at an arrival, like `red_calc_qavg`.
    fn observe(&mut self, backlog: Backlog, now: Instant) {
        self.qavg = match self.idle_since {
            Some(since) => self.table.aged(self.qavg, now.since(since)),
            None => (self.qavg - (self.qavg >> self.wlog)).saturating_add(backlog.bytes),
        };
        self.found_idle = self.idle_since.take().is_some();
    }

    fn draw(&mut self, rng: &mut Rng) {
        self.qr = (rng.bits() >> 32) as u32 / self.max_p_delta;
    }

    /// Returns true if the packet is to be dropped or marked, like `red_action`.
    fn signals(&mut self, rng: &mut Rng) -> bool {
        if self.qavg < self.qth_min {
            self.qcount = -1;
            return false;
        }
        self.hard = self.qavg >= self.qth_max;
        if self.hard {
            self.qcount = -1;
            return true;
        }
        self.qcount += 1;
        if self.qcount == 0 {
            self.draw(rng);
            return false;
        }
        let above = (self.qavg - self.qth_min) >> self.wlog;
        if above.saturating_mul(self.qcount as u64) < u64::from(self.qr) {
            return false;
        }
        self.qcount = 0;
        self.draw(rng);
        true
    }

    /// Notes that the arriving packet was lost. A driver asks for a packet after each arrival, so an idle time begins
    /// anew.
    fn lost(&mut self, now: Instant) {
        if self.found_idle {
            self.idle_since = Some(now);
        }
    }
}

impl Aqm for LinuxRed {
    #[inline]
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.observe(backlog, now);
        if !self.signals(rng) {
            return Verdict::Pass;
        }
        if self.ecn && packet.ecn.is_capable() {
            return Verdict::Mark;
        }
        self.lost(now);
        Verdict::Drop
    }

    fn was_forced(&self) -> bool {
        self.hard
    }

    fn on_overflow(&mut self, now: Instant) {
        self.lost(now);
    }

    fn on_empty(&mut self, now: Instant) {
        self.idle_since.get_or_insert(now);
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl AckPath for LinuxRed {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AqmConfig;
    use crate::packet::{Ecn, FlowId};
    use crate::rng::Streams;

    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(10_000_000), limit: Limit::Packets(1000) };

    fn config() -> Config {
        Config { compat: super::super::Compat::Linux, ..Config::default() }
    }

    fn linux(config: &Config) -> LinuxRed {
        AqmConfig::validate(config).unwrap();
        LinuxRed::new(config, &LINK)
    }

    fn arrive(red: &mut LinuxRed, ecn: Ecn, bytes: u64, now: Instant, rng: &mut Rng) -> Verdict {
        let packet = Meta { size: Bytes::new(1000), ecn, flow: FlowId(0) };
        red.on_enqueue(&packet, Backlog { packets: bytes.div_ceil(1000), bytes }, now, rng)
    }

    #[test]
    fn parameters_become_powers_of_two() {
        // 2^-9 = 0.00195, 2^-5 = 0.031; the bound between 2 and 3 is 2^-2.5 = 0.17678; 1 is taken as 1/2.
        for (weight, log) in
            [(0.002, 9), (0.03125, 5), (0.1768, 2), (0.1767, 3), (1.0, 1), (0.36, 1), (0.35, 2), (1e-300, 31)]
        {
            assert_eq!(wlog(weight), log, "{weight}");
        }
        // max_P = 0.1 * 2^32 = 429496729, over 10000 B: 42949.
        assert_eq!(linux(&config()).max_p_delta, 42_949);
        assert_eq!(linux(&Config { max_probability: 1.0, ..config() }).max_p_delta, 429_496);
    }

    /// The commit message that brought adaptive RED to Linux shows what `tc` made of "avpkt 1000 bandwidth 10Mbit" and
    /// ewma 5: Scell_log 15. By hand: 12500 ticks, lW = 0.031749 / 12500 = 2.5399e-6, a cell is 32768 lW = 0.08323.
    #[test]
    fn the_table_is_that_of_tc() {
        let table = IdleTable::new(5, Bytes::new(1000), LINK.rate, None);
        assert_eq!(table.scell_log, 15);
        for (cell, shift) in [(0, 0), (12, 0), (13, 1), (24, 1), (25, 2), (100, 8), (254, 21), (255, 31)] {
            assert_eq!(table.stab[cell], shift, "cell {cell}");
        }
        let slow = IdleTable::new(31, Bytes::new(u64::MAX), Rate::from_bps(1), None);
        assert_eq!(slow.scell_log, MOST_SCELL_LOG);
        let fast = IdleTable::new(1, Bytes::new(1), Rate::from_bps(u64::MAX), None);
        assert_eq!((fast.scell_log, fast.stab[1]), (0, 31));
    }

    /// A link of 1 Gbit/s with the table of tc's default bandwidth, 10 Mbit/s; a table and a cell that were set.
    #[test]
    fn the_table_can_be_set_as_tc_sets_it() {
        let rate = Rate::from_bps(1_000_000_000);
        let of = |config: Config| {
            AqmConfig::validate(&config).unwrap();
            IdleTable::of(&config, 5, rate)
        };
        let told = of(Config { bandwidth: Some(LINK.rate), ..config() });
        assert_eq!(told, IdleTable::new(5, Bytes::new(1000), LINK.rate, None));
        assert_ne!(of(config()), told);
        let own = of(Config { scell_log: Some(10), stab: Some(vec![0, 1, 7]), ..config() });
        assert_eq!((own.scell_log, own.stab[..4].to_vec(), own.stab[255]), (10, vec![0, 1, 7, 7], 7));
        assert_eq!(own.aged(1 << 20, Span::from_micros(2048)), 1 << 13);
        // Cells of 2^10 us hold 32 times less than those of 2^15 us: 1024 lW = 0.0026, so cell 254 does not shift yet.
        let fine = of(Config { bandwidth: Some(LINK.rate), scell_log: Some(10), ..config() });
        assert_eq!((fine.stab[254], fine.stab[255]), (0, 31));
        for (config, key) in [
            (Config { scell_log: Some(32), ..config() }, "scell_log"),
            (Config { stab: Some(vec![32]), ..config() }, "stab"),
            (Config { stab: Some(Vec::new()), ..config() }, "stab"),
            (Config { stab: Some(vec![0; 257]), ..config() }, "stab"),
        ] {
            assert_eq!(AqmConfig::validate(&config).unwrap_err().key, key);
        }
    }

    /// Scell_log 15: in the first cell the average falls by us / 32768 of itself, to no less than half; cell 13 halves,
    /// cell 25 quarters.
    #[test]
    fn an_idle_average_ages_by_the_table() {
        let table = IdleTable::new(5, Bytes::new(1000), LINK.rate, None);
        for (us, left) in [(0, 32_768), (1, 32_767), (1000, 31_768), (16_384, 16_384), (400_000, 16_384)] {
            assert_eq!(table.aged(32_768, Span::from_micros(us)), left, "after {us} us");
        }
        assert_eq!(table.aged(32_769, Span::from_micros(20_000)), 16_384, "half of an odd average, rounded down");
        for (cell, left) in [(13, 16_384), (25, 8192), (100, 128), (255, 0), (100_000, 0)] {
            assert_eq!(table.aged(32_768, Span::from_micros(cell << 15)), left, "in cell {cell}");
        }
    }

    /// Wlog 1: qavg = qavg / 2 + q, so the average is (avg + q) / 2.
    #[test]
    fn the_average_counts_bytes() {
        let mut red = linux(&Config { weight: 0.5, ..config() });
        let mut rng = Streams::new(1).get("t");
        arrive(&mut red, Ecn::NotEct, 0, Instant::ZERO, &mut rng);
        for (bytes, average) in [(4000, 2000.0), (4000, 3000.0), (1000, 2000.0)] {
            arrive(&mut red, Ecn::NotEct, bytes, Instant::ZERO, &mut rng);
            assert_eq!(red.average(), average);
        }
        red.on_empty(Instant::ZERO + Span::from_secs(1));
        red.on_empty(Instant::ZERO + Span::from_secs(2)); // idle since the first
        arrive(&mut red, Ecn::NotEct, 0, Instant::ZERO + Span::from_secs(3600), &mut rng);
        assert_eq!(red.average(), 0.0);
    }

    /// The average stands at 10 kB, in the middle: qR is uniform in 0..10^5, a packet adds 5000, so marks come after 1
    /// to 20 packets, each as likely: 10.5 on average.
    #[test]
    fn gaps_between_drops_are_uniform() {
        let mut red = linux(&Config { weight: 0.5, ..config() });
        let mut rng = Streams::new(5).get("gaps");
        let (mut gap, mut gaps) = (0u32, [0u32; 22]);
        for _ in 0..200_000 {
            gap += 1;
            if arrive(&mut red, Ecn::NotEct, 10_000, Instant::ZERO, &mut rng) == Verdict::Drop {
                gaps[std::mem::take(&mut gap) as usize] += 1;
            }
        }
        let marks: u32 = gaps.iter().sum();
        assert!((200_000.0 / f64::from(marks) - 10.5).abs() < 0.25, "{marks} drops");
        // 950 of each length, deviation 30.
        assert!(gaps[2..=20].iter().all(|n| (800..1100).contains(n)), "{gaps:?}");
    }

    #[test]
    fn nothing_is_gentle_at_the_upper_threshold() {
        let mut rng = Streams::new(1).get("t");
        for (ecn, verdict) in [(false, Verdict::Drop), (true, Verdict::Mark)] {
            let mut red = linux(&Config { weight: 0.5, ecn, ..config() });
            red.idle_since = None;
            red.qavg = 15_000 << 1;
            let before = rng.clone();
            assert_eq!(arrive(&mut red, Ecn::Ect0, 15_000, Instant::ZERO, &mut rng), verdict);
            assert_eq!((red.qcount, &rng), (-1, &before));
            assert_eq!(arrive(&mut red, Ecn::NotEct, 15_000, Instant::ZERO, &mut rng), Verdict::Drop);
        }
    }

    /// A loss at an idle link begins the idle time anew; one while a packet is on the wire does not.
    #[test]
    fn a_loss_while_the_link_sends_is_no_idle_time() {
        let (mut red, mut rng) = (linux(&config()), Streams::new(1).get("t"));
        let now = Instant::ZERO + Span::from_millis(7);
        arrive(&mut red, Ecn::NotEct, 0, now, &mut rng);
        red.on_overflow(now);
        assert_eq!(red.idle_since, Some(now));
        arrive(&mut red, Ecn::NotEct, 0, now, &mut rng); // goes to the wire
        arrive(&mut red, Ecn::NotEct, 0, now, &mut rng);
        red.on_overflow(now);
        assert_eq!(red.idle_since, None);
    }

    #[test]
    fn what_linux_has_not_is_refused_by_name() {
        for (config, key) in [
            (Config { wait: true, ..config() }, "wait"),
            (Config { byte_drop: true, ..config() }, "byte_drop"),
            (Config { over_max: OverMax::Mark, ..config() }, "over_max"),
            (Config { least_waiting: 2, ..config() }, "least_waiting"),
            // 22 bits of bytes and 10 of weight make 32.
            (Config { max_threshold: Limit::Bytes(Bytes::new(1 << 22)), weight: 0.001, ..config() }, "max_threshold"),
        ] {
            assert_eq!(AqmConfig::validate(&config).unwrap_err().key, key);
        }
        let most = Limit::Bytes(Bytes::new((1 << 21) - 1));
        assert!(AqmConfig::validate(&Config { max_threshold: most, weight: 0.001, ..config() }).is_ok());
    }
}
