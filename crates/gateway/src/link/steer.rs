//! Puts the parts together: what passes, step by step, becomes rates for the shaper, sentences, and a part of the status.

use crate::error::Error;
use crate::held::Held;
use crate::link::estimate::{Estimator, Seen};
use crate::link::script::Script;
use crate::link::source::{From, Settings, Source, SourceReport, Standing};
use crate::link::timetable;
use crate::link::trips::{Trips, View};
use crate::link::verdict::{Found, Verdict, Way};
use crate::tap::{Around, Entries, Known, Tap};
use penstock_conntrack::SipHash;
use penstock_core::units::{Instant, Rate, Span};
use penstock_core::wire::RealPacket;
use penstock_shaper::classify::PacketFacts;
use penstock_shaper::direction::Direction;
use serde::Serialize;

/// Time between two steps.
pub const STEP: Span = Span::from_millis(100);
/// A direction is the one whose link is full if it fills at least this part of what the fuller one does.
const LOADED: f64 = 0.5;
/// A rate that differs by less than this part is not set anew.
const SAME: f64 = 0.005;

/// What has passed since the start, of both directions: bytes that came from the WAN and that were sent there, and for how
/// long our shaper was occupied.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passed {
    /// Bytes.
    pub bytes: [u64; 2],
    /// Times.
    pub busy: [Span; 2],
}

/// What the status tells of the link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkReport {
    /// Where the rates come from, and how the source stands.
    pub source: SourceReport,
    /// The estimated rates in bits per second, download and upload; `None` unless they are estimated.
    pub estimate_bps: Option<[u64; 2]>,
    /// Whether the link was seen full, so that the estimate is more than a lower bound.
    pub estimate_measured: Option<[bool; 2]>,
    /// What came from the link and what was sent to it in the last 100 ms, in bits per second.
    pub passing_bps: [u64; 2],
    /// Number of connections that show round trips now.
    pub flows: usize,
    /// The half of round trips beyond the WAN, now and at least, in milliseconds: medians of these connections.
    pub wan_ms: Option<f64>,
    /// See `wan_ms`.
    pub wan_least_ms: Option<f64>,
    /// The smallest half of round trips on the side of the LAN, in milliseconds.
    pub lan_least_ms: Option<f64>,
    /// The queue behind the WAN in milliseconds.
    pub queue_ms: Option<f64>,
    /// Where the bottleneck is.
    #[serde(flatten)]
    pub found: Found,
    /// What is worth knowing, as sentences.
    pub remarks: Vec<String>,
}

/// What the gateway knows of its link.
#[derive(Debug)]
pub struct Steer {
    source: Source,
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
    match settings.from {
        From::Command => Script::start(settings.command.clone(), settings.every).map(Some),
        From::File | From::Timetable | From::Estimate => Ok(None),
    }
}

/// Makes the estimates of both directions, if the rates are estimated.
fn estimators(settings: &Settings) -> Option<[Estimator; 2]> {
    let estimator = |at: usize| {
        let up = at == Direction::Reverse.index();
        Estimator::new(settings.rates[at], settings.lowest[at], settings.highest[at], up)
    };
    (settings.from == From::Estimate).then(|| [estimator(0), estimator(1)])
}

impl Steer {
    /// Begins with the settings of the file; starts the script if there is one.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn start(settings: Settings, hash: SipHash) -> Result<Self, Error> {
        Ok(Self {
            estimators: estimators(&settings),
            script: script(&settings)?,
            source: Source::new(settings, Instant::ZERO),
            trips: Trips::new(hash),
            verdict: Verdict::default(),
            view: View::default(),
            last: Default::default(),
            passing: [0.0; 2],
        })
    }

    /// Goes on with other settings; what is known of round trips stays.
    ///
    /// # Errors
    /// Returns the error of the system, and changes nothing then.
    pub fn restart(&mut self, settings: Settings, now: Instant) -> Result<(), Error> {
        self.script = script(&settings)?;
        self.estimators = estimators(&settings);
        self.source = Source::new(settings, now);
        Ok(())
    }

    /// Shows a packet as it leaves to the WAN, or as it comes from there.
    pub fn show(&mut self, direction: Direction, packet: &RealPacket, now: Instant) {
        self.trips.show(direction, packet, now);
    }

    /// Somebody has set a rate (true), or has taken that back (false).
    pub fn by_hand(&mut self, is: bool) {
        self.source.by_hand(is);
    }

    /// What is done once a second.
    pub fn tick(&mut self, now: Instant) {
        self.source.clock(timetable::clock(), now);
        while let Some(told) = self.script.as_ref().and_then(Script::next) {
            self.source.offer(told, now);
        }
    }

    /// Takes a step; returns the rates that the shaper must get, if they are others than `set`.
    pub fn step(&mut self, now: Instant, passed: Passed, set: [Rate; 2]) -> Option<[Rate; 2]> {
        let (before, old) = std::mem::replace(&mut self.last, (now, passed));
        let span = now.since(before).max(Span::from_millis(1));
        let bytes = [0, 1].map(|at| passed.bytes[at].saturating_sub(old.bytes[at]));
        let busy = [0, 1].map(|at| passed.busy[at].saturating_sub(old.busy[at]).as_secs_f64() / span.as_secs_f64());
        self.passing = bytes.map(|bytes| 8.0 * bytes as f64 / span.as_secs_f64());
        self.view = self.trips.view(now);
        let ways = [0, 1].map(|at| Way { bps: self.passing[at], busy: busy[at], set: set[at] });
        self.verdict.step(&ways, self.view.risen, self.view.least, self.source.settings().round_trip);
        let fuller = busy[0].max(busy[1]);
        let seen = [0, 1].map(|at| Seen {
            span,
            bytes: bytes[at],
            busy: busy[at],
            queue: self.view.queue,
            base: self.view.least.unwrap_or_default(),
            loaded: busy[at] > LOADED * fuller,
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

    /// Returns where rates come from.
    pub fn from(&self) -> From {
        self.source.settings().from
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

    /// Returns what the status tells.
    pub fn report(&self, now: Instant) -> LinkReport {
        let ms = |span: Option<Span>| span.map(|span| span.as_millis_f64());
        LinkReport {
            source: self.source.report(now),
            estimate_bps: self.estimators.as_ref().map(|both| [0, 1].map(|at| both[at].estimate().as_bps())),
            estimate_measured: self.estimators.as_ref().map(|both| [0, 1].map(|at| both[at].is_measured())),
            passing_bps: self.passing.map(|bps| bps as u64),
            flows: self.view.flows,
            wan_ms: ms(self.view.wan),
            wan_least_ms: ms(self.view.least),
            lan_least_ms: ms(self.view.lan),
            queue_ms: ms(self.view.queue),
            found: self.verdict.found().clone(),
            remarks: self.verdict.remark().into_iter().collect(),
        }
    }
}

impl Tap for Steer {
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
        self.tick(around.now);
    }
    fn status(&self, known: &Known<'_>, told: &mut Entries) {
        told.add("link", self.report(known.now));
    }
}

fn differ(a: Rate, b: Rate) -> bool {
    a.as_bps().abs_diff(b.as_bps()) as f64 > SAME * b.as_bps() as f64
}
