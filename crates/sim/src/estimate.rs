//! A gateway that estimates the rates of its link ([`penstock_core::estimate`]): what it is shown, what it sends to measure delays
//! ([`probes`]), and what becomes of its rates.

pub mod probes;

use crate::link::{Alteration, Link, Outlet};
use crate::numbers::LinkDir;
use crate::segment::Segment;
use penstock_core::estimate::{AnyEstimator, Estimator, Known, Law, Ours, Way};
use penstock_core::fact::Fact;
use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::Packet;
use penstock_core::units::{Instant, Rate, Span};
use probes::Probes;

/// A rate that differs by less than this part is not set anew.
const SAME: f64 = 0.002;
/// The discipline is told of a rate that differs by more than this part from the last that it was told.
const TOLD: f64 = 0.05;

/// How much a shaper has sent, and could have sent, in bits.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    bits: f64,
    capacity: f64,
}

/// What a gateway is told of itself and its link, to the link and back.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// How it finds the rates.
    pub law: Law,
    /// What it knows of them.
    pub rates: [Known; 2],
    /// What the link adds to packets.
    pub layers: [LinkLayer; 2],
    /// The round trip over the link.
    pub trip: Span,
}

/// The gateway before a link.
#[derive(Debug)]
pub struct Gauge {
    estimator: AnyEstimator,
    /// The shapers, the directions of the link, and what these add to packets, in the order of [`Way`].
    shapers: [LinkDir; 2],
    link: [LinkDir; 2],
    layers: [LinkLayer; 2],
    before: [Sent; 2],
    /// The rates of which the disciplines were told, in bit/s.
    told: [f64; 2],
    ours: [Ours; 2],
    at: Instant,
    /// `None` if the law has none.
    probes: Option<Box<Probes>>,
}

/// True if a gateway with this law sends probes.
pub fn has_probes(law: Law) -> bool {
    match law {
        Law::Estimate | Law::Oracle | Law::LateOracle => false,
        Law::Autorate => true,
    }
}

impl Gauge {
    /// Creates the gateway whose shaper is `shaper`, before `link`. With a law that [has probes](has_probes), `routes` lead over both
    /// to the end of the link, and back.
    pub fn new(known: &Told, [shaper, link]: [LinkDir; 2], routes: [u32; 2]) -> Self {
        let (shapers, link) = ([shaper.reverse(), shaper], [link.reverse(), link]);
        let (law, [out, inward], [out_layer, in_layer]) = (known.law, known.rates, known.layers);
        Self {
            estimator: AnyEstimator::new(law, [inward, out], known.trip),
            link,
            layers: [in_layer, out_layer],
            shapers,
            before: Default::default(),
            told: [inward, out].map(|known| known.first.as_bps() as f64),
            ours: Default::default(),
            at: Instant::ZERO,
            probes: has_probes(law).then(|| Box::new(Probes::new(routes))),
        }
    }

    /// Returns when a packet of the gateway's own is to be sent, a probe or its answer; `None` if the gateway has none now.
    pub fn next_probe(&self) -> Option<Instant> {
        let probes = self.probes.as_ref()?;
        Some(probes.due().min(self.estimator.next_ping())).filter(|at| *at < Instant::MAX)
    }

    /// Returns a probe or an answer that is to be sent now. `number` is that of their owner.
    pub fn probe(&mut self, number: u32, now: Instant) -> Option<Segment> {
        let probes = self.probes.as_mut()?;
        if self.estimator.next_ping() <= now {
            self.estimator.sent(now);
            return Some(probes.probe(number, now));
        }
        probes.answer(now)
    }

    /// Takes a probe at the end of the link, or an answer at the gateway. Returns true when a step is due.
    pub fn take_probe(&mut self, packet: &Segment, now: Instant) -> bool {
        match &mut self.probes {
            Some(probes) if packet.from_client() => probes.reflect(packet, now),
            _ => self.estimator.ping(probes::delays(packet, now), now),
        }
        now >= self.estimator.due()
    }

    /// Shows a packet. Returns true when a step is due.
    pub fn pass(&mut self, way: Way, packet: &mut Segment, now: Instant) -> bool {
        let (flow, size) = (u64::from(packet.flow), self.layers[way as usize].on_wire(packet.size()));
        self.estimator.pass(way, flow, size, packet.tcp().map(|segment| &*segment), now);
        now >= self.estimator.due()
    }

    /// Takes a step. Returns the shapers whose rate has changed.
    pub fn step(
        &mut self,
        links: &mut [Link],
        now: Instant,
        outlet: &mut Outlet,
    ) -> impl Iterator<Item = LinkDir> + use<> {
        let span = now.since(self.at).as_secs_f64();
        self.at = now;
        for way in 0..2 {
            let link = &mut links[self.shapers[way].index()];
            link.catch_up(now, outlet);
            let sent = Sent { bits: link.sent_bits(now), capacity: link.capacity_bits(now) };
            let before = std::mem::replace(&mut self.before[way], sent);
            let part = (sent.bits - before.bits) / (sent.capacity - before.capacity).max(1.0);
            self.ours[way].busy = self.ours[way].busy + Span::from_secs_f64(part.clamp(0.0, 1.0) * span);
        }
        self.estimator.tell(self.link.map(|one| links[one.index()].rate()), now);
        let rates = self.estimator.step(self.ours, now);
        let set = |((shaper, rate), told): ((LinkDir, Rate), &mut f64)| {
            let link = &mut links[shaper.index()];
            let before = link.rate().as_bps() as f64;
            if (rate.as_bps() as f64 - before).abs() <= SAME * before {
                return None;
            }
            link.alter(Alteration::Rate(rate), now, outlet);
            if (rate.as_bps() as f64 - *told).abs() > TOLD * *told {
                *told = rate.as_bps() as f64;
                link.tell(&Fact::Rate(rate), now, outlet);
            }
            Some(shaper)
        };
        let changed: [Option<LinkDir>; 2] = {
            let mut pairs = self.shapers.into_iter().zip(rates).zip(&mut self.told).map(set);
            [pairs.next().flatten(), pairs.next().flatten()]
        };
        changed.into_iter().flatten()
    }

    /// Returns what the link is thought to carry in the direction of this shaper; `None` if it is none of this gateway.
    pub fn estimate_of(&self, shaper: LinkDir) -> Option<(Rate, bool)> {
        let way = self.shapers.iter().position(|one| *one == shaper)?;
        Some((self.estimator.capacity()[way], self.estimator.measured()[way]))
    }
}
