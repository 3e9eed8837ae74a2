//! CoDel and Modified CoDel: drops at the instants of eq. (3.5) and (3.10) of document 004, in the dropping state of RFC
//! 8289 §5.

use super::Queue;
use penstock_core::aqm::{codel, modified_codel};

/// How the time between drops follows from their count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gaps {
    /// interval / sqrt(count): CoDel, eq. (3.5).
    Root,
    /// interval / count: Modified CoDel, eq. (3.10).
    Harmonic,
}

impl Gaps {
    /// Returns the gap after drop number `count`, in units of the interval.
    fn after(self, count: f64) -> f64 {
        match self {
            Self::Root => 1.0 / count.sqrt(),
            Self::Harmonic => 1.0 / count,
        }
    }
}

/// Returns the time of drop number `n` after the dropping state began, by the closed forms of eq. (3.6) and (3.11):
/// interval (2 sqrt(n) + k), and interval (ln n + gamma + 1 / 2n).
///
/// DIFFERENCE: document 004 puts k at -43. The constant is the limit of the sum of 1 / sqrt(i) minus 2 sqrt(n), which is
/// zeta(1/2) = -1.4604; 43.27 is what the sum has over one sqrt(2000), for n = 2000. Pinned by
/// `the_constant_is_zeta_of_one_half`.
pub fn drop_time(gaps: Gaps, interval: f64, n: f64, k: f64) -> f64 {
    const GAMMA: f64 = 0.577_215_664_901_532_9;
    match gaps {
        Gaps::Root => interval * (2.0 * n.sqrt() + k),
        Gaps::Harmonic => interval * (libm::log(n) + GAMMA + 1.0 / (2.0 * n)),
    }
}

/// Returns the constant k of eq. (3.6), zeta(1/2).
pub fn root_sum_constant() -> f64 {
    -1.460_354_508_809_586_8
}

/// The dropping state.
#[derive(Debug, Clone)]
pub(crate) struct Codel {
    gaps: Gaps,
    target: f64,
    interval: f64,
    mtu: f64,
    first_above: Option<f64>,
    dropping: bool,
    next: f64,
    count: f64,
    last_count: f64,
}

impl Codel {
    pub(crate) fn new(config: &codel::Config, gaps: Gaps) -> Self {
        let times = (config.target.as_secs_f64(), config.interval.as_secs_f64());
        Self::with(gaps, times, config.mtu.get() as f64)
    }

    pub(crate) fn modified(config: &modified_codel::Config) -> Self {
        let times = (config.target.as_secs_f64(), config.interval.as_secs_f64());
        Self::with(Gaps::Harmonic, times, config.mtu.get() as f64)
    }

    fn with(gaps: Gaps, (target, interval): (f64, f64), mtu: f64) -> Self {
        Self { gaps, target, interval, mtu, first_above: None, dropping: false, next: 0.0, count: 0.0, last_count: 0.0 }
    }

    fn is_ok_to_drop(&mut self, now: f64, queue: &Queue) -> bool {
        if queue.sojourn < self.target || queue.bytes <= self.mtu {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + self.interval)
    }

    /// Returns how many packets are dropped at `now`: those whose times have come since the last call.
    pub(crate) fn drops(&mut self, now: f64, queue: &Queue) -> u32 {
        if !self.is_ok_to_drop(now, queue) {
            self.dropping = false;
            return 0;
        }
        if !self.dropping {
            self.enter(now);
            return 1;
        }
        let mut dropped = 0;
        while now >= self.next {
            self.count += 1.0;
            self.next += self.interval * self.gaps.after(self.count);
            dropped += 1;
        }
        dropped
    }

    /// RFC 8289 §5.5: after a recent dropping state the count goes on from the drops of that state.
    fn enter(&mut self, now: f64) {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let recent = self.last_count > 0.0 && now - self.next < 16.0 * self.interval;
        self.count = if delta > 1.0 && recent { delta } else { 1.0 };
        self.last_count = self.count;
        self.next = now + self.interval * self.gaps.after(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late() -> Queue {
        Queue { bytes: 100_000.0, sojourn: 0.1, rate: 1e6, average: 0.0 }
    }

    /// The instants at which `law` drops a packet of a queue that stays too long, until `end`.
    fn instants(law: &mut Codel, end: f64) -> Vec<f64> {
        let step = 1e-4;
        let times = (0..(end / step) as u64).map(|n| n as f64 * step);
        times.flat_map(|t| std::iter::repeat_n(t, law.drops(t, &late()) as usize)).collect()
    }

    #[test]
    fn drops_come_at_the_sums_of_eq_3_5_and_3_10() {
        for gaps in [Gaps::Root, Gaps::Harmonic] {
            let mut law = Codel::with(gaps, (0.005, 0.1), 1514.0);
            let found = instants(&mut law, 1.0);
            let mut due = 0.1; // the delay is above target from 0 on
            for (n, at) in found.iter().enumerate() {
                assert!((at - due).abs() < 2e-4, "{gaps:?}: drop {n} at {at}, due {due}");
                due += 0.1 * gaps.after(n as f64 + 1.0);
            }
            assert!(found.len() > 10);
        }
    }

    #[test]
    fn the_constant_is_zeta_of_one_half() {
        let sum = |n: u32| (1..=n).map(|i| 1.0 / f64::from(i).sqrt()).sum::<f64>();
        assert!((sum(1_000_000) - 2.0 * 1000.0 - root_sum_constant()).abs() < 1e-3);
        // What document 004 calls the difference: against one square root, at 2000 packets.
        assert!((sum(2000) - 2000_f64.sqrt() - 43.27).abs() < 0.01);
        let by_law = drop_time(Gaps::Root, 0.1, 2000.0, root_sum_constant());
        assert!((by_law - 0.1 * sum(2000)).abs() < 0.1 * 0.012);
        let harmonic = (1..=2000).map(|i| 1.0 / f64::from(i)).sum::<f64>();
        assert!((drop_time(Gaps::Harmonic, 1.0, 2000.0, 0.0) - harmonic).abs() < 1e-6);
    }

    #[test]
    fn a_delay_below_target_ends_the_dropping() {
        let mut law = Codel::with(Gaps::Root, (0.005, 0.1), 1514.0);
        assert_eq!(law.drops(0.0, &late()), 0);
        assert_eq!(law.drops(0.1, &late()), 1);
        assert_eq!(law.drops(0.15, &Queue { sojourn: 0.004, ..late() }), 0);
        assert_eq!(law.drops(0.2, &late()), 0, "a whole interval above target again");
        // Another queue of one packet is no standing queue.
        assert_eq!(law.drops(0.4, &Queue { bytes: 1000.0, ..late() }), 0);
    }
}
