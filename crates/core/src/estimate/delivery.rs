//! The estimator of both directions: what [`Trips`] sees in each step, by the [law](super::law).

use super::law::{Govern, Step};
use super::trips::Trips;
use super::{Estimator, Known, Ours, Way};
use crate::packet::TcpView;
use crate::units::{Bytes, Instant, Rate, Span};

/// The length of a step.
pub const STEP: Span = Span::from_millis(25);
/// A direction may be the one with the queue if it is occupied for at least this part of the time of the other one.
const LOADED: f64 = 0.5;

/// An estimator by delivery rate at a small queue.
#[derive(Debug)]
pub struct Delivery {
    trips: Trips,
    ways: [Govern; 2],
    stepped: Instant,
    ours: [Ours; 2],
}

impl Delivery {
    /// Begins with the first rates.
    pub fn new(known: [Known; 2]) -> Self {
        let ways = Way::BOTH.map(|way| Govern::new(way, &known[way as usize]));
        let mut trips = Trips::default();
        Way::BOTH.into_iter().for_each(|way| trips.carries(way, known[way as usize].first, false));
        Self { trips, ways, stepped: Instant::ZERO, ours: Default::default() }
    }
}

impl Estimator for Delivery {
    fn pass<S: TcpView>(&mut self, way: Way, flow: u64, size: Bytes, segment: Option<&S>, now: Instant) {
        self.trips.pass(way, flow, size, segment, now);
    }

    fn due(&self) -> Instant {
        self.stepped + STEP
    }

    fn step(&mut self, ours: [Ours; 2], now: Instant) -> [Rate; 2] {
        let span = now.since(self.stepped);
        let busy = [0, 1].map(|at| {
            let before = self.ours[at].busy;
            ours[at].busy.saturating_sub(before).as_secs_f64() / span.as_secs_f64().max(1e-9)
        });
        (self.stepped, self.ours) = (now, ours);
        let loaded = busy.map(|part| part > LOADED * busy[0].max(busy[1]));
        let (seen, bytes) = (self.trips.take(loaded, now), self.trips.bytes());
        for way in Way::BOTH {
            let at = way as usize;
            let (sample, trip) = (seen[at].sample, seen[at].trip);
            let step = Step { now, span, sample, busy: busy[at], bytes: bytes[at], trip };
            self.trips.carries(way, self.ways[at].capacity(), self.ways[at].measured());
            if let Some(by) = self.ways[at].step(&step) {
                self.trips.longer(way, by);
            }
        }
        self.ways.each_ref().map(Govern::rate)
    }

    fn capacity(&self) -> [Rate; 2] {
        self.ways.each_ref().map(Govern::capacity)
    }

    fn measured(&self) -> [bool; 2] {
        self.ways.each_ref().map(Govern::measured)
    }
}

#[cfg(test)]
mod tests;
