//! Puts the parts together: what passes, step by step, becomes rates for the shaper, sentences, and a part of the status.

use crate::error::Error;
use crate::held::Held;
use crate::link::estimate::{Estimator, Seen};
use crate::link::script::Script;
use crate::link::source::{From, Settings, Source, Standing};
use crate::link::timetable;
use crate::link::trips::{Trips, View};
use crate::link::verdict::{Found, Verdict, Ways};
use crate::tap::{Around, Entries, Known, Tap};
use penstock_conntrack::SipHash;
use penstock_core::units::{Instant, Rate, Span};
use penstock_core::wire::RealPacket;
use penstock_shaper::classify::PacketFacts;
use penstock_shaper::direction::Direction;
use serde_json::{Value, json};

pub const STEP: Span = Span::from_millis(100);
/// A direction is the one whose link is full if it fills at least this part of what the fuller one does.
const LOADED: f64 = 0.5;
/// A rate that differs by less than this part is not set anew.
const SAME: f64 = 0.005;

/// What has passed since the start, of both directions: bytes that came from the WAN and that were sent there, and for how
/// long our shaper was occupied.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passed {
    pub bytes: [u64; 2],
    pub busy: [Span; 2],
}

#[derive(Debug)]
pub struct Steer {
    pub source: Source,
    script: Option<Script>,
    estimators: Option<[Estimator; 2]>,
    trips: Trips,
    verdict: Verdict,
    view: View,
    last: (Instant, Passed),
    passing: [f64; 2],
}

/// Starts the script, if the rates come from one.
fn script(settings: &Settings) -> Result<Option<Script>, Error> {
    let start = || Script::start(settings.keys.command.clone(), settings.keys.every);
    (settings.from == From::Command).then(start).transpose()
}

/// Makes the estimates of both directions, if the rates are estimated.
fn estimators(settings: &Settings) -> Option<[Estimator; 2]> {
    let estimator = |d: Direction| {
        let bounds = &settings.bounds[d.index()];
        Estimator::new(settings.rates[d.index()], *bounds.start(), *bounds.end(), d == Direction::Reverse)
    };
    (settings.from == From::Estimate).then(|| Direction::BOTH.map(estimator))
}

impl Steer {
    /// Begins with the settings of the file; starts the script if there is one.
    pub fn start(settings: Settings, hash: SipHash) -> Result<Self, Error> {
        let (script, estimators, source) =
            (script(&settings)?, estimators(&settings), Source::new(settings, Instant::ZERO));
        let (verdict, view, last) = Default::default();
        Ok(Self { source, script, estimators, trips: Trips::new(hash), verdict, view, last, passing: [0.0; 2] })
    }

    /// Goes on with other settings, unless that fails; what is known of round trips stays.
    pub fn restart(&mut self, settings: Settings, now: Instant) -> Result<(), Error> {
        self.script = script(&settings)?;
        self.estimators = estimators(&settings);
        self.source = Source::new(settings, now);
        Ok(())
    }

    /// Takes a step; returns the rates that the shaper must get, if they are others than `set`.
    pub fn step(&mut self, now: Instant, passed: Passed, set: [Rate; 2]) -> Option<[Rate; 2]> {
        let (before, old) = std::mem::replace(&mut self.last, (now, passed));
        let span = now.since(before).max(Span::from_millis(1));
        let bytes = [0, 1].map(|at| passed.bytes[at].saturating_sub(old.bytes[at]));
        let busy = [0, 1].map(|at| passed.busy[at].saturating_sub(old.busy[at]).as_secs_f64() / span.as_secs_f64());
        self.passing = bytes.map(|bytes| 8.0 * bytes as f64 / span.as_secs_f64());
        self.view = self.trips.view(now);
        let ways = Ways { bps: self.passing, busy, set };
        self.verdict.step(&ways, self.view.risen, self.view.least, self.source.settings.keys.round_trip);
        let loaded = loaded(busy);
        let seen = [0, 1].map(|at| Seen {
            span,
            bytes: bytes[at],
            busy: busy[at],
            queue: self.view.queue,
            base: self.view.least.unwrap_or_default(),
            loaded: loaded[at],
        });
        self.wanted(now, &seen).filter(|wanted| (0..2).any(|at| differ(wanted[at], set[at])))
    }

    fn wanted(&mut self, now: Instant, seen: &[Seen; 2]) -> Option<[Rate; 2]> {
        match &mut self.estimators {
            Some(_) if self.source.standing(now) == Standing::ByHand => None,
            Some([down, up]) => Some([down.step(&seen[0]), up.step(&seen[1])]),
            None => self.source.rates(now),
        }
    }

    /// Returns what is wrong, as sentences. A bottleneck that is not here is none while rates are estimated: they follow it.
    pub fn marks(&self, now: Instant) -> impl Iterator<Item = String> {
        let behind = if self.estimators.is_none() { self.verdict.mark() } else { None };
        self.source.mark(now).into_iter().chain(behind)
    }

    /// Returns the round trip without the queues here, as far as it is known: both halves.
    pub fn trip(&self) -> Option<Span> {
        let halves = [self.view.wan, self.view.lan];
        halves.into_iter().flatten().reduce(|all, half| all + half)
    }

    /// Returns what the status tells: rates in bits per second, download and upload, and medians of the connections that show
    /// round trips now.
    fn report(&self, now: Instant) -> Value {
        let ms = |span: Option<Span>| span.map(|span| span.as_millis_f64());
        let Found { behind, risen_ms, accelerator } = &self.verdict.found;
        json!({
            "source": self.source.report(now),
            "estimate_bps": self.estimators.as_ref().map(|both| both.each_ref().map(|one| one.estimate().as_bps())),
            "estimate_measured": self.estimators.as_ref().map(|both| both.each_ref().map(|one| one.measured)),
            // In the last 100 ms.
            "passing_bps": self.passing.map(|bps| bps as u64),
            "flows": self.view.flows,
            "wan_ms": ms(self.view.wan),
            "wan_least_ms": ms(self.view.least),
            "lan_least_ms": ms(self.view.lan),
            "queue_ms": ms(self.view.queue),
            "behind": behind,
            "risen_ms": risen_ms,
            "accelerator": accelerator,
            "remarks": self.verdict.remark().into_iter().collect::<Vec<_>>(),
        })
    }
}

impl Tap for Steer {
    /// Packets are shown as they come from the WAN, and as they leave to it.
    fn arrives(&mut self, direction: Direction, held: &mut Held, _: &PacketFacts, around: &mut Around<'_>) {
        if direction == Direction::Forward {
            self.trips.show(direction, held.packet(), around.now);
        }
    }
    fn leaves(&mut self, direction: Direction, held: &Held, now: Instant) {
        if direction == Direction::Reverse {
            self.trips.show(direction, held.packet(), now);
        }
    }
    fn passes(&mut self, direction: Direction, packet: &RealPacket, now: Instant) {
        self.trips.show(direction, packet, now);
    }
    fn tick(&mut self, around: &mut Around<'_>) {
        self.source.clock(timetable::clock(), around.now);
        while let Some(told) = self.script.as_ref().and_then(Script::next) {
            self.source.offer(told, around.now);
        }
    }
    fn status(&self, known: &Known<'_>, told: &mut Entries) {
        told.insert("link".into(), self.report(known.now));
    }
}

/// Returns which directions are those whose link is full, if it is.
fn loaded(busy: [f64; 2]) -> [bool; 2] {
    busy.map(|part| part > LOADED * busy[0].max(busy[1]))
}

fn differ(a: Rate, b: Rate) -> bool {
    a.as_bps().abs_diff(b.as_bps()) as f64 > SAME * b.as_bps() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_loaded_if_it_fills_at_least_half_of_what_the_fuller_one_does() {
        for (busy, expected) in [([0.2, 0.15], [true; 2]), ([0.2, 0.05], [true, false]), ([0.4, 1.0], [false, true])] {
            assert_eq!(loaded(busy), expected, "{busy:?}");
        }
        assert_eq!(loaded([0.0; 2]), [false; 2]);
    }
}
