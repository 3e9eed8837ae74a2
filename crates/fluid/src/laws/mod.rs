//! Disciplines as equations: the probability with which a packet is dropped or marked, and when.
//!
//! The parameters are those of the algorithms in `penstock-core`; the equations are written here, from the sources that
//! the algorithms name.

mod codel;
mod controllers;
mod red;

pub use codel::{Gaps, drop_time, root_sum_constant};

use crate::model::Discipline;
use codel::Codel;
use controllers::{Adaptive, Controller};
use red::Red;

/// The queue that a law looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queue {
    /// Bytes that wait.
    pub bytes: f64,
    /// How long what leaves now has waited, in seconds.
    pub sojourn: f64,
    /// Rate of the link in bytes per second.
    pub rate: f64,
    /// The average that RED keeps, in its own unit.
    pub average: f64,
}

/// What a discipline does, with its state that changes at instants.
#[derive(Debug, Clone)]
pub(crate) enum Law {
    /// Drops what finds no room, and nothing else.
    Tail,
    /// A probability that is a function of the average queue (eq. 3.1 and 3.2).
    Red(Red),
    /// RED whose slope is adapted at intervals.
    Ared(Red, Adaptive),
    /// A probability that is adapted at intervals.
    Sampled(Controller),
    /// Packets are dropped at instants (eq. 3.5 to 3.11).
    Codel(Codel),
}

impl Law {
    /// Returns the law of a discipline before a link of `rate` bytes per second.
    pub(crate) fn new(discipline: &Discipline, rate: f64) -> Self {
        match discipline {
            Discipline::Tail | Discipline::Pink(_) => Self::Tail,
            Discipline::Red(config) => Self::Red(Red::new(config)),
            Discipline::Ared(config) => {
                let (red, adaptive) = Adaptive::new(config, rate);
                Self::Ared(red, adaptive)
            }
            Discipline::Pi(config) => Self::Sampled(Controller::pi(config)),
            Discipline::Pie(config) => Self::Sampled(Controller::pie(config)),
            Discipline::Codel(config) => Self::Codel(Codel::new(config, Gaps::Root)),
            Discipline::ModifiedCodel(config) => Self::Codel(Codel::modified(config)),
        }
    }

    /// True if packets are dropped one by one, at instants.
    pub(crate) fn drops_singly(&self) -> bool {
        matches!(self, Self::Codel(_))
    }

    /// Returns the slope of the average queue (eq. 3.2).
    pub(crate) fn average_slope(&self, queue: &Queue) -> f64 {
        match self {
            Self::Red(red) | Self::Ared(red, _) => red.average_slope(queue),
            _ => 0.0,
        }
    }

    /// Returns the probability with which an arrival is dropped or marked, for a given average queue.
    pub(crate) fn probability(&self, average: f64) -> f64 {
        match self {
            Self::Red(red) | Self::Ared(red, _) => red.probability(average),
            Self::Sampled(controller) => controller.probability(),
            Self::Tail | Self::Codel(_) => 0.0,
        }
    }

    /// True if what is ECN-capable is marked now, and not dropped.
    pub(crate) fn marks(&self) -> bool {
        match self {
            Self::Sampled(controller) => controller.marks(),
            _ => true,
        }
    }

    /// True if the probability follows from the average queue alone, so that it is known at every time.
    pub(crate) fn is_function_of_average(&self) -> bool {
        matches!(self, Self::Red(_))
    }

    /// Catches up what the law does at intervals until `now`.
    pub(crate) fn sample(&mut self, now: f64, queue: &Queue) {
        match self {
            Self::Ared(red, adaptive) => adaptive.sample(now, queue.average, red),
            Self::Sampled(controller) => controller.sample(now, queue),
            _ => {}
        }
    }

    /// Returns the number of packets that are dropped now, as they leave.
    pub(crate) fn drops(&mut self, now: f64, queue: &Queue) -> u32 {
        match self {
            Self::Codel(codel) => codel.drops(now, queue),
            _ => 0,
        }
    }
}
