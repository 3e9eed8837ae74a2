//! The rate of a link that nobody tells, in both directions, from the packets that pass a shaper before it: *delivery rate at a
//! small queue*.
//!
//! A gateway shapes what it sends to a link, and what it takes from it, a little below the rate of the link, so that the queue
//! is in the gateway. An estimator is shown each packet as it leaves the shaper to the link and as it arrives from the link, and
//! tells the rates of both shapers. The files, in the order in which a packet meets them: [`trips`] finds the queues beyond the
//! shaper, [`law`] makes a rate of them, [`delivery`] joins both. Beside it stand a published law, to compare: [`autorate`], which
//! needs probes of its own, and who is told the true rates: [`oracle`].
//!
//! Ideas and where they are from:
//! - The model of a path is its largest delivery rate and its smallest round trip: BBR (Cardwell et al., ACM Queue 14(5), 2016).
//! - A queue is what stands for an interval, which is its minimum and no peak: CoDel (RFC 8289 §3).
//! - A rate is the capacity, less what drains the queue above a target within a time: ABC (Goyal et al., NSDI 2020, eq. 1).
//! - The two directions are told apart by the clocks of far ends, as LEDBAT does (RFC 6817 §2.2), and `cake-autorate` with
//!   timestamps of ICMP.
//!
//! Sans-IO: the caller passes time, packets and what it knows of its shapers. Cost: O(1) for each packet, no allocation; a step
//! is O(flows that answered in it).

pub mod autorate;
pub mod delivery;
pub mod law;
pub mod oracle;
pub mod trips;

use crate::packet::TcpView;
use crate::units::{Bytes, Instant, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use autorate::Autorate;
pub use delivery::Delivery;
pub use oracle::Oracle;

/// A direction over the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the link to the gateway: downloads.
    In = 0,
    /// From the gateway to the link: uploads.
    Out = 1,
}

impl Way {
    /// Both directions, in the order of arrays.
    pub const BOTH: [Self; 2] = [Self::In, Self::Out];
}

/// What the caller knows of the rates of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// The rate to begin with.
    pub first: Rate,
    /// The lowest rate that the shaper ever gets.
    pub lowest: Rate,
    /// The highest rate that the shaper ever gets.
    pub highest: Rate,
}

impl Known {
    /// Without bounds, rates up to so many times lower or higher than the first are right.
    pub const FACTOR: u64 = 20;

    /// Returns the bounds around a first rate that nobody has given.
    pub fn around(first: Rate) -> Self {
        let bps = first.as_bps();
        let (lowest, highest) = (bps / Self::FACTOR, bps.saturating_mul(Self::FACTOR));
        Self { first, lowest: Rate::from_bps(lowest.max(1)), highest: Rate::from_bps(highest) }
    }
}

/// What the shaper of one direction did since the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ours {
    /// For how long it has transmitted.
    pub busy: Span,
}

/// An estimator of a link.
pub trait Estimator {
    /// Shows a packet that passes between the gateway and the link: as it leaves the shaper, or as it arrives. `flow` is a number
    /// or a hash of its connection, the same in both directions; `segment` is its TCP header, if it has one that can be seen.
    fn pass<S: TcpView>(&mut self, way: Way, flow: u64, size: Bytes, segment: Option<&S>, now: Instant);

    /// Returns when [`Estimator::step`] is to be called next. A call that comes later, with the next packet, is right as well.
    fn due(&self) -> Instant;

    /// Takes a step; returns the rates for the shapers, in the order of [`Way`].
    fn step(&mut self, ours: [Ours; 2], now: Instant) -> [Rate; 2];

    /// Returns what the link is thought to carry, in the order of [`Way`].
    fn capacity(&self) -> [Rate; 2];

    /// True for each direction in which a full link was seen. Until then its capacity is a lower bound, or the first rate.
    fn measured(&self) -> [bool; 2];
}

/// The laws by which rates are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// [`Delivery`].
    Estimate,
    /// [`Autorate`], with its published parameters.
    Autorate,
    /// [`Oracle`]: the true rates at once.
    Oracle,
    /// [`Oracle`]: the true rates a round trip and [`oracle::LATE`] later.
    LateOracle,
}

/// An estimator of any law.
#[derive(Debug)]
pub enum AnyEstimator {
    /// [`Delivery`].
    Estimate(Box<Delivery>),
    /// [`Autorate`].
    Autorate(Box<Autorate>),
    /// [`Oracle`].
    Oracle(Oracle),
}

impl AnyEstimator {
    /// Creates the estimator of a law, with what is known of both directions, in the order of [`Way`]. `trip` is the round trip over
    /// the link, which only an oracle needs.
    pub fn new(law: Law, known: [Known; 2], trip: Span) -> Self {
        let oracle = |late: Span| Self::Oracle(Oracle::new(known.map(|known| known.first), late));
        match law {
            Law::Estimate => Self::Estimate(Box::new(Delivery::new(known))),
            Law::Autorate => Self::Autorate(Box::new(Autorate::new(autorate::Params::of(known)))),
            Law::Oracle => oracle(Span::ZERO),
            Law::LateOracle => oracle(trip + oracle::LATE),
        }
    }

    /// Returns when the next probe is to be sent; [`Instant::MAX`] with a law that has none, or needs none now. Changes with each
    /// call of the other methods.
    #[inline]
    pub fn next_ping(&self) -> Instant {
        match self {
            Self::Estimate(_) | Self::Oracle(_) => Instant::MAX,
            Self::Autorate(one) => one.next_ping(),
        }
    }

    /// Tells what the link carries now, in the order of [`Way`]; only an oracle listens.
    pub fn tell(&mut self, rates: [Rate; 2], now: Instant) {
        if let Self::Oracle(one) = self {
            one.tell(rates, now);
        }
    }

    /// Notes that a probe was sent.
    pub fn sent(&mut self, now: Instant) {
        if let Self::Autorate(one) = self {
            one.sent(now);
        }
    }

    /// Takes the answer to a probe: the delays of its two ways, in the order of [`Way`].
    pub fn ping(&mut self, delays: [Span; 2], now: Instant) {
        if let Self::Autorate(one) = self {
            one.ping(delays, now);
        }
    }
}

impl Estimator for AnyEstimator {
    #[inline]
    fn pass<S: TcpView>(&mut self, way: Way, flow: u64, size: Bytes, segment: Option<&S>, now: Instant) {
        match self {
            Self::Estimate(one) => one.pass(way, flow, size, segment, now),
            Self::Autorate(one) => one.pass(way, flow, size, segment, now),
            Self::Oracle(one) => one.pass(way, flow, size, segment, now),
        }
    }

    #[inline]
    fn due(&self) -> Instant {
        match self {
            Self::Estimate(one) => one.due(),
            Self::Autorate(one) => one.due(),
            Self::Oracle(one) => one.due(),
        }
    }

    fn step(&mut self, ours: [Ours; 2], now: Instant) -> [Rate; 2] {
        match self {
            Self::Estimate(one) => one.step(ours, now),
            Self::Autorate(one) => one.step(ours, now),
            Self::Oracle(one) => one.step(ours, now),
        }
    }

    fn capacity(&self) -> [Rate; 2] {
        match self {
            Self::Estimate(one) => one.capacity(),
            Self::Autorate(one) => one.capacity(),
            Self::Oracle(one) => one.capacity(),
        }
    }

    fn measured(&self) -> [bool; 2] {
        match self {
            Self::Estimate(one) => one.measured(),
            Self::Autorate(one) => one.measured(),
            Self::Oracle(one) => one.measured(),
        }
    }
}
