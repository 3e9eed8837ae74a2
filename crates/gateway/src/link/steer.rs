//! Puts the parts together: what passes, step by step, becomes rates for the shaper, sentences, and a part of the status.

use crate::error::Error;
use crate::held::Held;
use crate::link::script::Script;
use crate::link::source::{From, Settings, Source, Standing};
use crate::link::timetable;
use crate::link::trips::{Trips, View};
use crate::link::verdict::{Found, Verdict, Ways};
use crate::short;
use crate::tap::{Around, Entries, Known, Tap};
use penstock_conntrack::SipHash;
use penstock_core::estimate::{self, AnyEstimator, Estimator, Law, Ours, Way};
use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::Packet as _;
use penstock_core::units::{Instant, Rate, Span};
use penstock_core::wire::{FlowKey, RealPacket, Transport};
use penstock_shaper::classify::PacketFacts;
use penstock_shaper::direction::Direction;
use serde_json::{Value, json};

/// How often the source is asked, and where the bottleneck is. An estimator has steps of its own.
const STEP: Span = Span::from_millis(100);
/// A rate that differs by less than this part is not set anew.
const SAME: f64 = 0.002;

/// What has passed since the start, of both directions: bytes that came from the WAN and that were sent there, for how
/// long our shaper was occupied, and what the link adds to packets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passed {
    pub bytes: [u64; 2],
    pub busy: [Span; 2],
    pub layers: [LinkLayer; 2],
}

#[derive(Debug)]
pub struct Steer {
    pub source: Source,
    script: Option<Script>,
    estimator: Option<AnyEstimator>,
    hash: SipHash,
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

/// Makes the estimator, if the rates are estimated.
fn estimator(settings: &Settings) -> Option<AnyEstimator> {
    let known = |way: Way| {
        let (first, bounds) = (settings.rates[way as usize], &settings.bounds[way as usize]);
        estimate::Known { first, lowest: *bounds.start(), highest: *bounds.end() }
    };
    (settings.from == From::Estimate).then(|| AnyEstimator::new(Law::Estimate, Way::BOTH.map(known), Span::ZERO))
}

impl Steer {
    /// Begins with the settings of the file; starts the script if there is one.
    pub fn start(settings: Settings, hash: SipHash) -> Result<Self, Error> {
        let (script, estimator, source) =
            (script(&settings)?, estimator(&settings), Source::new(settings, Instant::ZERO));
        let (verdict, view, last) = Default::default();
        Ok(Self { source, script, estimator, hash, trips: Trips::default(), verdict, view, last, passing: [0.0; 2] })
    }

    /// Goes on with other settings, unless that fails; what is known of round trips stays.
    pub fn restart(&mut self, settings: Settings, now: Instant) -> Result<(), Error> {
        self.script = script(&settings)?;
        self.estimator = estimator(&settings);
        self.source = Source::new(settings, now);
        Ok(())
    }

    /// Returns when [`Steer::step`] is to be called next. An estimator rests while somebody has set the rates.
    pub fn due(&self) -> Instant {
        let look = self.last.0 + STEP;
        let estimator = self.estimator.as_ref().filter(|_| !self.source.by_hand);
        estimator.map_or(look, |estimator| estimator.due().min(look))
    }

    /// Takes a step; returns the rates that the shaper must get, if they are others than `set`.
    pub fn step(&mut self, now: Instant, passed: Passed, set: [Rate; 2]) -> Option<[Rate; 2]> {
        if now >= self.last.0 + STEP {
            self.look(now, passed, set);
        }
        let wanted = match &mut self.estimator {
            Some(_) if self.source.standing(now) == Standing::ByHand => None,
            Some(estimator) => Some(estimator.step(passed.busy.map(|busy| Ours { busy }), now)),
            None => self.source.rates(now),
        };
        wanted.filter(|wanted| (0..2).any(|at| differ(wanted[at], set[at])))
    }

    /// Looks where the bottleneck is.
    fn look(&mut self, now: Instant, passed: Passed, set: [Rate; 2]) {
        let (before, old) = std::mem::replace(&mut self.last, (now, passed));
        let span = now.since(before).max(Span::from_millis(1));
        let bytes = [0, 1].map(|at| passed.bytes[at].saturating_sub(old.bytes[at]));
        let busy = [0, 1].map(|at| passed.busy[at].saturating_sub(old.busy[at]).as_secs_f64() / span.as_secs_f64());
        self.passing = bytes.map(|bytes| 8.0 * bytes as f64 / span.as_secs_f64());
        self.view = self.trips.view(now);
        let ways = Ways { bps: self.passing, busy, set };
        self.verdict.step(&ways, self.view.risen, self.view.least, self.source.settings.keys.round_trip);
    }

    /// Shows a packet as it leaves to the WAN, or as it comes from there.
    fn show(&mut self, direction: Direction, packet: &RealPacket, now: Instant) {
        let tcp = matches!(packet.headers().transport, Transport::Tcp { .. });
        let key = if tcp { FlowKey::of(packet.bytes(), packet.headers()) } else { None };
        let hash = key.as_ref().map(|key| self.hash.of(key.as_bytes()));
        if let (Some(key), Some(hash)) = (key, hash) {
            self.trips.show(direction, (key, hash), packet, now);
        }
        if let Some(estimator) = &mut self.estimator {
            let way = Way::BOTH[direction.index()];
            let size = self.last.1.layers[direction.index()].on_wire(packet.size());
            estimator.pass(way, hash.unwrap_or_default(), size, hash.map(|_| packet), now);
        }
    }

    /// Returns what is wrong, as sentences. A bottleneck that is not here is none while rates are estimated: they follow it.
    pub fn marks(&self, now: Instant) -> impl Iterator<Item = String> {
        let behind = if self.estimator.is_none() { self.verdict.mark() } else { None };
        self.source.mark(now).into_iter().chain(behind)
    }

    /// Returns the round trip without the queues here, as far as it is known: both halves.
    pub fn trip(&self) -> Option<Span> {
        let halves = [self.view.wan, self.view.lan];
        halves.into_iter().flatten().reduce(|all, half| all + half)
    }

    /// Returns what the status tells: rates in bits per second, download and upload, and medians of the connections that show
    /// round trips now.
    fn report(&self, &Known { ways, trip, now, .. }: &Known<'_>) -> Value {
        let ms = |span: Option<Span>| span.map(|span| span.as_millis_f64());
        let Found { behind, risen_ms, accelerator } = &self.verdict.found;
        json!({
            "source": self.source.report(now),
            "estimate_bps": self.estimator.as_ref().map(|one| one.capacity().map(Rate::as_bps)),
            "estimate_measured": self.estimator.as_ref().map(Estimator::measured),
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
            "remarks": self.verdict.remark().into_iter().chain(short::remark(ways, trip)).collect::<Vec<_>>(),
        })
    }
}

impl Tap for Steer {
    /// Packets are shown as they come from the WAN, and as they leave to it.
    fn arrives(&mut self, direction: Direction, held: &mut Held, _: &PacketFacts, around: &mut Around<'_>) {
        if direction == Direction::Forward {
            self.show(direction, held.packet(), around.now);
        }
    }
    fn leaves(&mut self, direction: Direction, held: &Held, now: Instant) {
        if direction == Direction::Reverse {
            self.show(direction, held.packet(), now);
        }
    }
    fn passes(&mut self, direction: Direction, packet: &RealPacket, now: Instant) {
        self.show(direction, packet, now);
    }
    fn tick(&mut self, around: &mut Around<'_>) {
        self.source.clock(timetable::clock(), around.now);
        while let Some(told) = self.script.as_ref().and_then(Script::next) {
            self.source.offer(told, around.now);
        }
    }
    fn status(&self, known: &Known<'_>, told: &mut Entries) {
        told.insert("link".into(), self.report(known));
    }
}

fn differ(a: Rate, b: Rate) -> bool {
    a.as_bps().abs_diff(b.as_bps()) as f64 > SAME * b.as_bps() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steer() -> Steer {
        let mbps = |n: u64| Rate::from_bps(n * 1_000_000);
        let keys = serde_json::from_str(r#"{"rate_from": "estimate"}"#).unwrap();
        let bounds = [(); 2].map(|()| mbps(1)..=mbps(100));
        let settings = Settings { from: From::Estimate, rates: [mbps(20), mbps(2)], bounds, keys };
        Steer::start(settings, SipHash(1, 2)).unwrap()
    }

    /// A step that is always due would keep a processor busy.
    #[test]
    fn after_each_step_the_next_one_is_later_whoever_sets_the_rates() {
        let (mut steer, rates) = (steer(), [Rate::from_bps(5_000_000); 2]);
        for by_hand in [false, true, false] {
            steer.source.by_hand = by_hand;
            let begin = steer.due();
            for _ in 0..20 {
                let now = steer.due();
                let set = steer.step(now, Passed::default(), rates);
                assert_eq!(set.is_some(), !by_hand, "what somebody has set stays");
                assert!(steer.due() > now, "{now:?}, by hand: {by_hand}");
            }
            assert!(steer.due() > begin + STEP);
        }
    }
}
