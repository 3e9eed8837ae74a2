//! What stands at both ends of a duplex link: its queues. A link whose rates are told has the disciplines of the scenario. One
//! whose rates the gateway at its first end estimates has two links in their place: the link itself, with the queues of the
//! modem and of the provider, and before its first end the shapers of the gateway, with the disciplines.

use crate::scenario::{Estimate, Link as Keys, LinkSpec, QueueSpec};
use penstock_core::impair::Impairments;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Limit, Rate, Span};

/// One direction of a link.
#[derive(Debug)]
pub(super) struct End {
    pub name: String,
    pub queue: QueueSpec,
    pub rate: Rate,
    pub delay: Span,
    pub limit: Limit,
    pub loss: f64,
}

/// Both directions of a link: from its first end to its second, and back.
#[derive(Debug)]
pub(super) struct Ends {
    /// The place of the link among those of the scenario.
    pub spec: usize,
    pub both: [End; 2],
}

impl Ends {
    /// A link whose rates are told. All its keys are taken apart here, so that none is forgotten.
    pub fn told(place: usize, spec: &LinkSpec) -> Self {
        let Keys { rate, delay, reverse_rate, reverse_delay, limit, reverse_limit, loss } = spec.link;
        let (name, queue) = (spec.name.clone(), spec.queue.clone());
        let there = End { name, queue, rate, delay, limit, loss };
        let (rate, delay) = (reverse_rate.unwrap_or(rate), reverse_delay.unwrap_or(delay));
        let (name, queue) = (spec.reverse_name(), spec.reverse_queue.clone());
        let back = End { name, queue, rate, delay, limit: reverse_limit, loss: 0.0 };
        Self { spec: place, both: [there, back] }
    }

    /// The link itself, behind a gateway that estimates its rates.
    pub fn behind(place: usize, spec: &LinkSpec, estimate: &Estimate) -> Self {
        let Self { both, .. } = Self::told(place, spec);
        let names = spec.names_behind().unwrap_or_default();
        let mut parts = both.into_iter().zip(names).zip(estimate.limits).map(|((end, name), limit)| {
            let config = AnyConfig::default_of("droptail").expect("droptail is in the registry");
            End { name, limit, queue: QueueSpec { config, advice: false, ..end.queue }, ..end }
        });
        let both = [parts.next(), parts.next()].map(|end| end.expect("a link has two ends"));
        Self { spec: place, both }
    }

    /// The shapers of that gateway, which begin with the first rates.
    pub fn shaper(place: usize, spec: &LinkSpec, estimate: &Estimate) -> Self {
        let Self { both: [there, back], .. } = Self::told(place, spec);
        let of = |end: End, rate: Rate| {
            let queue = QueueSpec { stations: Vec::new(), impairments: Impairments::default(), ..end.queue };
            End { queue, rate, delay: Span::ZERO, loss: 0.0, ..end }
        };
        let [first, reverse] = estimate.known.map(|known| known.first);
        Self { spec: place, both: [of(there, first), of(back, reverse)] }
    }
}
