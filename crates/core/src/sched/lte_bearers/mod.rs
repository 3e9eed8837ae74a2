//! Bearers of an LTE cell: guaranteed rates first, then the other bearers by priority, then the traffic beyond
//! guarantees.
//!
//! Source: document 002 §2.1.2.2 (bearers with and without a guaranteed bit rate, first responders before civilians);
//! 3GPP TS 36.321 §5.4.3.1, logical channel prioritization, for the two steps; TS 23.203 Table 6.1.7 for the
//! priorities. Each flow is a bearer with a queue of its own; the class of the flow selects the kind of bearer
//! ([`Fact::Class`]).
//!
//! ```text
//! B(t) = rate (t - z), at most rate * bucket        the bucket of a bearer with a rate; z moves, not B
//! step 1: by priority, bearers with B >= 0           the one furthest behind its rate first; z += size / rate
//! step 2: no guarantee, by priority; then excess of guarantees      equal ones take turns (DRR); z stays
//! full:   in the reverse order of step 2, the bearer furthest beyond its allowance loses its oldest packet;
//!         the allowance is rate * bucket, or a quantum if that is more
//! ```
//!
//! State of a bearer: 72 bytes. Cost: O(1), for bearers with a rate O(log n) with n bearers of equal priority; pushing
//! out a packet visits all bearers.
//!
//! DIFFERENCE: step 2 of the standard serves strictly by priority, so that a bearer beyond its guarantee starves
//! others. Here the traffic beyond a guaranteed bit rate comes last. Pinned by
//! `excess_of_a_guarantee_comes_after_the_others`.
//! DIFFERENCE: the standard's bucket fills at whole milliseconds and may go into debt when it is above 0; here it fills
//! continuously and may go into debt from 0 on. Pinned by `a_guarantee_is_met_to_the_packet`.

mod bearers;
#[cfg(test)]
mod tests;

pub use bearers::{Bearers, BearersError, Qci};

use super::heap::{Entry, Heap};
use super::new_old::NewOld;
use crate::ack_path::AckPath;
use crate::config::{ConfigError, Discipline, LinkFacts};
use crate::fact::Fact;
use crate::packet::{FlowId, Packet};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats};
use crate::rng::Rng;
use crate::slab::{List, Position, Slab, Taken};
use crate::units::{Bytes, Instant, Limit, Serializer, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the bearers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The bearer of each class: a QCI, optionally with its rate after a colon: "1:100kbit/s,6,9". QCIs 1 to 4 and 65
    /// to 67 need a rate, which is guaranteed; for other QCIs it is a floor. Class k has the bearer k modulo their
    /// number.
    pub bearers: Bearers,
    /// How long a bearer saves its rate while it sends nothing (the bucket size duration).
    pub bucket: Span,
    /// Bytes per turn among bearers of equal priority.
    pub quantum: Bytes,
}

impl Default for Config {
    /// A voice call, a first responder and a civilian. 100 ms is among the values of TS 36.331; the quantum is an
    /// Ethernet frame.
    fn default() -> Self {
        let bearers = Bearers::new(&[(1, Some(100_000)), (6, None), (9, None)]);
        Self { bearers, bucket: Span::from_millis(100), quantum: Bytes::new(1514) }
    }
}

impl Discipline for Config {
    type Queue<P: Packet> = LteBearers<P>;

    fn validate(&self) -> Result<(), ConfigError> {
        if !(Span::from_millis(1)..=Span::from_secs(60)).contains(&self.bucket) {
            return Err(ConfigError::new("bucket", "must be 1ms to 60s"));
        }
        if !(1..=1 << 20).contains(&self.quantum.get()) {
            return Err(ConfigError::new("quantum", "must be 1B to 1MiB"));
        }
        Ok(())
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> LteBearers<P> {
        LteBearers::new(self, link.limit)
    }
}

/// The queue of a flow and the state of its bucket.
#[derive(Debug, Clone)]
struct Bearer {
    list: List,
    packets: u32,
    bytes: u64,
    /// The time z at which the bucket was or will be empty.
    z: Instant,
    /// The rate of the bearer, if it has one.
    wire: Option<Serializer>,
    /// The bytes that the bearer keeps when packets are pushed out, as long as bearers later in order exceed their
    /// allowances.
    allowance: u64,
    /// True if the bearer is in the heap [`Band::behind`].
    waits: bool,
}

/// The bearers of one priority.
#[derive(Debug, Clone)]
struct Band {
    turns: NewOld,
    /// Bearers with a rate and packets, sorted by `z`; an entry may be stale and its bearer without packets.
    behind: Heap,
    bearers: Vec<Bearer>,
    /// Places of bearers whose flows are gone.
    free: Vec<u32>,
}

/// The place of a flow's bearer: its class, band and index.
#[derive(Debug, Clone, Copy)]
struct Place {
    class: u32,
    band: u32,
    index: u32,
}

const NOWHERE: Place = Place { class: u32::MAX, band: 0, index: 0 };

/// The queues before a link, one for each bearer.
#[derive(Debug, Clone)]
pub struct LteBearers<P> {
    limit: Limit,
    bucket: Span,
    quantum: u64,
    /// For each class, its band and its rate.
    kinds: Vec<(u32, Option<Serializer>)>,
    /// The bands, in the order of step 2.
    bands: Vec<Band>,
    /// The bands, in the order of step 1.
    by_priority: Vec<u32>,
    flows: Vec<Place>,
    slab: Slab<P, ()>,
    backlog: Backlog,
    stats: Stats,
}

impl<P: Packet> LteBearers<P> {
    fn new(config: &Config, limit: Limit) -> Self {
        let kinds = config.bearers.kinds();
        let mut order: Vec<Qci> = kinds.iter().map(|(qci, _)| *qci).collect();
        order.sort_by_key(Qci::after_guarantees);
        order.dedup_by_key(|qci| qci.after_guarantees());
        let band_of = |qci: &Qci| order.partition_point(|other| other.after_guarantees() < qci.after_guarantees());
        let band = || Band {
            turns: NewOld::new(0, config.quantum),
            behind: Heap::default(),
            bearers: Vec::new(),
            free: Vec::new(),
        };
        let mut by_priority: Vec<u32> = (0..order.len() as u32).collect();
        by_priority.sort_by_key(|band| order[*band as usize].priority());
        Self {
            limit,
            bucket: config.bucket,
            quantum: config.quantum.get(),
            kinds: kinds.iter().map(|(qci, rate)| (band_of(qci) as u32, rate.map(Serializer::new))).collect(),
            bands: order.iter().map(|_| band()).collect(),
            by_priority,
            flows: Vec::new(),
            slab: Slab::new(),
            backlog: Backlog::default(),
            stats: Stats::default(),
        }
    }

    /// The bearer of a flow, created if the flow has none.
    #[inline]
    fn place(&mut self, flow: FlowId) -> Place {
        match self.flows.get(flow.0 as usize) {
            Some(place) if place.class != NOWHERE.class => *place,
            _ => self.establish(flow, flow.0),
        }
    }

    #[cold]
    fn establish(&mut self, flow: FlowId, class: u32) -> Place {
        let at = flow.0 as usize;
        if self.flows.len() <= at {
            self.flows.resize(at + 1, NOWHERE);
        }
        let class = class % self.kinds.len() as u32;
        let (band, wire) = self.kinds[class as usize].clone();
        let here = &mut self.bands[band as usize];
        let saved = wire.as_ref().map_or(0, |wire| wire.rate().bytes_in(self.bucket).get());
        let bearer = Bearer {
            list: List::default(),
            packets: 0,
            bytes: 0,
            z: Instant::ZERO,
            wire,
            allowance: saved.max(self.quantum),
            waits: false,
        };
        let index = match here.free.pop() {
            Some(index) => {
                let place = &mut here.bearers[index as usize];
                *place = Bearer { waits: place.waits, z: place.z, ..bearer };
                index
            }
            None => {
                here.bearers.push(bearer);
                here.turns.grow_to(here.bearers.len());
                here.bearers.len() as u32 - 1
            }
        };
        self.flows[at] = Place { class, band, index };
        self.flows[at]
    }

    #[inline]
    fn pop(&mut self, band: usize, index: usize) -> Option<Taken<P, ()>> {
        let bearer = &mut self.bands[band].bearers[index];
        let taken = self.slab.pop(&mut bearer.list)?;
        let size = taken.packet.size();
        bearer.packets -= 1;
        bearer.bytes -= size.get();
        self.backlog.remove(size);
        Some(taken)
    }

    /// Step 1: takes a packet of a bearer that is behind its rate.
    #[inline]
    fn behind(&mut self, now: Instant) -> Option<P> {
        for at in 0..self.by_priority.len() {
            let band = self.by_priority[at] as usize;
            while let Some(first) = self.bands[band].behind.first().filter(|first| first.at <= now.as_nanos()) {
                if let Some(packet) = self.on_behalf(band, first, now) {
                    return Some(packet);
                }
                self.bands[band].behind.pop();
            }
        }
        None
    }

    /// Takes a packet of the first bearer in the heap of a band; `None` if that bearer has no packet or no rate any
    /// more.
    #[inline]
    fn on_behalf(&mut self, band: usize, first: Entry, now: Instant) -> Option<P> {
        let index = first.class as usize;
        let bearer = &mut self.bands[band].bearers[index];
        bearer.waits = bearer.packets > 0 && bearer.wire.is_some();
        if !bearer.waits {
            return None;
        }
        let packet = self.pop(band, index)?.packet;
        let Band { behind, bearers, .. } = &mut self.bands[band];
        let bearer = &mut bearers[index];
        let sent = bearer.wire.as_mut().map_or(Span::ZERO, |wire| wire.send(packet.size()));
        bearer.z = bearer.z.max(now - self.bucket) + sent;
        behind.replace_first(Entry { at: bearer.z.as_nanos(), ..first });
        Some(packet)
    }

    /// Step 2: takes a packet of the first band that has any.
    #[inline]
    fn in_turn(&mut self) -> Option<P> {
        for band in 0..self.bands.len() {
            while let Some(index) = self.bands[band].turns.turn() {
                if let Some(Taken { packet, .. }) = self.pop(band, index) {
                    self.bands[band].turns.spend(index, packet.size());
                    return Some(packet);
                }
                self.bands[band].turns.found_empty();
            }
        }
        None
    }

    /// The bearer, by band and index, which loses a packet when the queue exceeds its limit.
    fn furthest_beyond(&self) -> Option<(usize, usize)> {
        let worst = |bearers: &[Bearer], beyond: fn(&Bearer) -> u64| {
            let of_band = bearers.iter().map(beyond).enumerate().map(|(index, bytes)| (bytes, index));
            of_band.max().filter(|(bytes, _)| *bytes > 0)
        };
        let last = |beyond: fn(&Bearer) -> u64| {
            let mut bands = self.bands.iter().enumerate().rev();
            bands.find_map(|(at, band)| worst(&band.bearers, beyond).map(|(_, index)| (at, index)))
        };
        last(|bearer| bearer.bytes.saturating_sub(bearer.allowance)).or_else(|| last(|bearer| bearer.bytes))
    }

    /// Pushes out packets until the queue is within its limit; true if the packet at `position` was among them.
    #[cold]
    fn shed<O: PacketObserver<P>>(&mut self, position: Position, now: Instant, observer: &mut O) -> bool {
        let mut gone = false;
        while self.backlog.exceeds(self.limit) {
            let Some(taken) = self.furthest_beyond().and_then(|(band, index)| self.pop(band, index)) else { break };
            gone |= taken.position == position;
            self.drop(taken.packet, now, observer);
        }
        gone
    }

    fn drop<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, observer: &mut O) {
        self.stats.count_drop(DropReason::Overflow, packet.size());
        observer.dropped(packet, DropReason::Overflow, now);
    }

    /// Sets the class of a flow. A bearer that has packets keeps its kind.
    fn set_class(&mut self, flow: FlowId, class: u32) {
        if let Some(place) = self.flows.get(flow.0 as usize).copied().filter(|place| place.class != NOWHERE.class) {
            let band = &mut self.bands[place.band as usize];
            if place.class == class % self.kinds.len() as u32 || band.bearers[place.index as usize].packets > 0 {
                return;
            }
            band.free.push(place.index);
        }
        self.establish(flow, class);
    }
}

impl<P: Packet> Qdisc<P> for LteBearers<P> {
    const GIVES_UP: bool = true;

    #[inline]
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, _: &mut Rng, observer: &mut O) -> Enqueued {
        let size = packet.size();
        self.stats.arrived.add(size);
        let Place { band, index, .. } = self.place(packet.flow());
        let Band { turns, behind, bearers, .. } = &mut self.bands[band as usize];
        let bearer = &mut bearers[index as usize];
        let position = match self.slab.push(&mut bearer.list, packet, ()) {
            Ok(position) => position,
            Err(packet) => {
                self.drop(packet, now, observer);
                return Enqueued::Dropped(DropReason::Overflow);
            }
        };
        bearer.packets += 1;
        bearer.bytes += size.get();
        self.backlog.add(size);
        turns.activate(index as usize);
        if bearer.wire.is_some() && !bearer.waits {
            bearer.waits = true;
            behind.push(Entry { at: bearer.z.as_nanos(), class: index });
        }
        if self.backlog.exceeds(self.limit) && self.shed(position, now, observer) {
            return Enqueued::Dropped(DropReason::Overflow);
        }
        Enqueued::Queued
    }

    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, _: &mut Rng, _: &mut O) -> Option<P> {
        let packet = self.behind(now).or_else(|| self.in_turn())?;
        self.stats.sent.add(packet.size());
        Some(packet)
    }

    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        if let Fact::Class { flow, class } = *fact {
            self.set_class(flow, class);
        }
    }

    fn take_out(&mut self, flow: FlowId, taken: &mut Vec<P>) {
        let place = self.flows.get(flow.0 as usize).copied().filter(|place| place.class != NOWHERE.class);
        let Some(Place { band, index, .. }) = place else { return };
        while let Some(Taken { packet, .. }) = self.pop(band as usize, index as usize) {
            self.stats.taken_out.add(packet.size());
            taken.push(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

/// There is no AQM, and ACKs are not inspected.
impl<P> AckPath for LteBearers<P> {}
