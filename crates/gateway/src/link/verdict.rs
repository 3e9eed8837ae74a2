//! Where the bottleneck is. It is behind us when round trips beyond the WAN rise while our own queue is empty: then the rate
//! that is set is above that of the link, and what the link carries is what passes. And whether an accelerator (PEP) in the
//! modem answers in the place of the far ends.

use penstock_core::units::{Rate, Span};
use serde::Serialize;

/// Round trips stand above their least by so much at least, and by a fifth of it.
const RISEN: Span = Span::from_millis(25);
/// Our shaper is occupied for less than this part of the time if the bottleneck is elsewhere.
const OURS: f64 = 0.95;
/// A direction whose shaper is occupied for less than this part of the time fills no link.
const FILLS: f64 = 0.3;
/// So many steps in a row show it, and so many without it end it.
const SURE: u32 = 30;
/// A round trip of less than this part of what the link takes is answered before the link.
const PEP: u64 = 4;
const AVERAGE: f64 = 16.0;

/// What was seen of both directions in a step.
#[derive(Debug, Clone, Copy)]
pub struct Ways {
    /// What passed, in bit/s.
    pub bps: [f64; 2],
    /// The part of the time in which our shaper was occupied.
    pub busy: [f64; 2],
    pub set: [Rate; 2],
}

#[derive(Debug, Default)]
pub struct Found {
    /// The direction whose bottleneck is behind us, the rate that was measured and the one that is set.
    pub behind: Option<Behind>,
    /// By how much round trips beyond the WAN stand above their least, in milliseconds.
    pub risen_ms: Option<f64>,
    /// True if an accelerator in the modem answers for the far ends.
    pub accelerator: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Behind {
    /// `download` or `upload`.
    pub way: &'static str,
    pub measured_bps: u64,
    pub set_bps: u64,
}

#[derive(Debug, Default)]
pub struct Verdict {
    pub found: Found,
    /// Steps in a row that show a bottleneck behind us, up to [`SURE`]; less with each that does not.
    signs: u32,
    bps: [f64; 2],
    busy: [f64; 2],
}

impl Verdict {
    /// Takes a step: both directions, what round trips beyond the WAN stand above their least, that least, and what the
    /// link takes.
    pub fn step(&mut self, ways: &Ways, risen: Option<Span>, least: Option<Span>, link: Option<Span>) {
        for at in 0..2 {
            self.bps[at] += (ways.bps[at] - self.bps[at]) / AVERAGE;
            self.busy[at] += (ways.busy[at] - self.busy[at]) / AVERAGE;
        }
        self.found.risen_ms = risen.map(|risen| risen.as_millis_f64());
        let at = usize::from(self.busy[1] > self.busy[0]);
        // While traffic begins, the average is still low: this step must show it as well.
        let ours = |busy: f64| !(FILLS..OURS).contains(&busy);
        let limit = RISEN.max(Span::from_nanos(least.unwrap_or_default().as_nanos() / 5));
        let sign = risen.is_some_and(|risen| risen > limit) && !ours(self.busy[at]) && !ours(ways.busy[at]);
        self.signs = if sign { (self.signs + 1).min(2 * SURE) } else { self.signs.saturating_sub(1) };
        if self.signs == 0 {
            self.found.behind = None;
        } else if self.signs >= SURE && sign {
            let (way, measured_bps, set_bps) = (["download", "upload"][at], self.bps[at] as u64, ways.set[at].as_bps());
            self.found.behind = Some(Behind { way, measured_bps, set_bps });
        }
        if let (Some(least), Some(link)) = (least, link) {
            self.found.accelerator = least.as_nanos() < link.as_nanos() / PEP;
        }
    }

    pub fn mark(&self) -> Option<String> {
        let Behind { way, measured_bps, set_bps } = self.found.behind?;
        let mbps = |bps: u64| format!("{:.2} Mbit/s", bps as f64 / 1e6);
        Some(format!(
            "the bottleneck is not here: round trips beyond the WAN have risen by {:.0} ms while the queue here is empty; \
             the {way} carries {}, and {} is set",
            self.found.risen_ms.unwrap_or_default(),
            mbps(measured_bps),
            mbps(set_bps)
        ))
    }

    pub fn remark(&self) -> Option<String> {
        self.found.accelerator.then(|| {
            "far ends answer sooner than the link can: an accelerator (PEP) in the modem answers for them, and windows \
             govern only the way up to it"
                .into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(busy: f64, bps: f64) -> Ways {
        Ways { bps: [bps, 1e5], busy: [busy, 0.02], set: [Rate::from_bps(10_000_000); 2] }
    }

    fn ms(ms: u64) -> Option<Span> {
        Some(Span::from_millis(ms))
    }

    fn played(verdict: &mut Verdict, steps: u32, ways: Ways, risen: u64) {
        (0..steps).for_each(|_| verdict.step(&ways, ms(risen), ms(40), None));
    }

    #[test]
    fn round_trips_that_rise_while_our_queue_is_empty_show_a_bottleneck_behind_us() {
        let mut verdict = Verdict::default();
        played(&mut verdict, 200, ways(0.7, 7e6), 85);
        let Behind { way, measured_bps, set_bps } = verdict.found.behind.unwrap();
        assert_eq!((way, set_bps), ("download", 10_000_000));
        assert!((6_900_000..=7_000_000).contains(&measured_bps), "{measured_bps}");
        let mark = verdict.mark().unwrap();
        assert!(mark.contains("risen by 85 ms") && mark.contains("7.00 Mbit/s, and 10.00 Mbit/s is set"), "{mark}");
        played(&mut verdict, 100, ways(0.7, 7e6), 3);
        assert_eq!(verdict.mark(), None, "it goes when round trips are short again");
    }

    #[test]
    fn our_own_queue_an_idle_link_or_a_moment_show_nothing() {
        for (steps, busy, risen) in [(100, 0.97, 85), (100, 0.1, 85), (20, 0.7, 85), (100, 0.7, 20)] {
            let mut verdict = Verdict::default();
            played(&mut verdict, steps, ways(busy, busy * 1e7), risen);
            assert_eq!(verdict.mark(), None, "{steps} {busy} {risen}");
        }
    }

    #[test]
    fn answers_that_come_sooner_than_the_link_can_are_those_of_an_accelerator() {
        let mut verdict = Verdict::default();
        verdict.step(&ways(0.5, 5e6), ms(0), ms(4), ms(500));
        assert!(verdict.remark().unwrap().contains("(PEP)"));
        verdict.step(&ways(0.5, 5e6), ms(0), ms(520), ms(500));
        assert_eq!(verdict.remark(), None);
    }
}
