//! Links: one direction each, with the packets in flight in order of arrival and at most one pending event.
//!
//! A plain link has no limit: when a packet is given to it, its whole future on the link is known, and it is put
//! straight into flight. A managed link has a queue discipline before it that decides at the end of each transmission.
//! The link catches up with those decisions before anything else looks at it ([`Link::catch_up`]), each at its own time and in order, before
//! any arrival of the same time; so they need no events, and one arrival per packet is all the event queue sees.
//!
//! Not even that is needed where every packet goes on to a plain link that no other link feeds, the last one to its host:
//! when its transmission begins, its arrival there is known as well. Such a link *relays* ([`Outlet::relayed`]); it wakes
//! only to make decisions in time, before the first of their packets can arrive.

use crate::capture::{Capture, Recorder};
use crate::loss::Loss;
use crate::probe::QueueProbe;
use crate::segment::Segment;
use penstock_core::ack::AckPath;
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, Packet, TcpFlags};
use penstock_core::qdisc::{Backlog, Qdisc};
use penstock_core::registry::AnyQdisc;
use penstock_core::rng::Rng;
use penstock_core::units::{Bytes, Instant, Rate, Serializer, Span};
use std::collections::VecDeque;

/// Where links put what concerns others.
#[derive(Debug, Default)]
pub struct Outlet {
    /// The capture, if there is one.
    pub capture: Option<Capture>,
    /// Packets that go on to the next link, each with the time at which it gets there.
    pub relayed: Vec<(Segment, Instant)>,
}

/// What changes about a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Alteration {
    /// The rate; what is being transmitted keeps the old one.
    Rate(Rate),
    /// The rate; the rest of what is being transmitted goes at the new one. The link must not relay.
    RateAtOnce(Rate),
    /// The delay of what begins to be transmitted later.
    Delay(Span),
    /// The probability of loss.
    Loss(f64),
}

/// What a wire could have sent up to its last change of rate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Capacity {
    bits: f64,
    since: Instant,
}

impl Capacity {
    /// In bits, up to `now`, with `rate` since the last change.
    fn until(&self, rate: Rate, now: Instant) -> f64 {
        self.bits + rate.as_bps() as f64 * now.since(self.since).as_secs_f64()
    }

    /// At `now`, `rate` ends.
    fn change(&mut self, rate: Rate, now: Instant) {
        *self = Self { bits: self.until(rate, now), since: now };
    }
}

/// What stands before a managed link.
#[derive(Debug)]
pub struct Queue {
    /// The discipline.
    pub qdisc: AnyQdisc<Segment>,
    /// Its random stream.
    pub rng: Rng,
    /// What is measured there, if it is looked at.
    pub probe: Option<Box<QueueProbe>>,
    /// Index in captures.
    pub interface: u32,
    /// It is captured: decisions are made at their time, so that the packets of all queues are written in order.
    pub eager: bool,
    /// The discipline wants to see the segments of both directions.
    pub sees_segments: bool,
    /// What the wire loses of the packets put on it.
    pub loss: Loss,
    /// The link of the other direction whose discipline sees what this one delivers.
    pub ack_path_of: Option<u32>,
    /// Packets go straight into flight on the next link.
    pub relays: bool,
    /// What waits, as of the last arrival or departure.
    pub waiting: Backlog,
    /// The discipline may ask to be woken, or waits for a channel.
    pub wakes: bool,
    /// The discipline was told that it is empty.
    pub told_empty: bool,
    /// What the link could have sent.
    pub capacity: Capacity,
}

impl Queue {
    /// The discipline is told a fact.
    pub fn tell(&mut self, fact: &Fact, now: Instant) {
        self.qdisc.on_fact(fact, now);
    }

    /// The discipline is told of channels that have changed.
    fn look_at_channels(&mut self, now: Instant) {
        let (qdisc, told_empty) = (&mut self.qdisc, &mut self.told_empty);
        if let Some(stations) = &mut self.loss.stations {
            stations.advance(now, |station, loss| {
                qdisc.on_fact(&Fact::Channel { station, loss }, now);
                *told_empty = false;
            });
        }
    }

    /// When a discipline that has packets and gives none is to be asked again.
    #[inline]
    fn next_channel(&self) -> Option<Instant> {
        let idle = self.told_empty && self.waiting.packets > 0;
        if idle { self.loss.stations.as_ref().and_then(|stations| stations.next_change()) } else { None }
    }
}

/// What sends: packets leave it one after another and arrive a delay later.
#[derive(Debug)]
struct Line {
    wire: Serializer,
    delay: Span,
    busy_until: Instant,
    /// The latest arrival so far: after a cut of the delay, none may come before it.
    last_arrival: Instant,
}

impl Line {
    /// Sends a packet of this size at `now`, or when it can; when it arrives.
    #[inline]
    fn transmit(&mut self, size: Bytes, now: Instant) -> Instant {
        self.busy_until = self.busy_until.max(now) + self.wire.send(size);
        self.last_arrival = self.last_arrival.max(self.busy_until + self.delay);
        self.last_arrival
    }

    /// Sends a packet that waits in its place, from the hop of `cursor`.
    #[inline]
    fn carry(&mut self, packet: &mut Segment, cursor: u32, now: Instant) {
        packet.at = self.transmit(packet.size(), now);
        packet.cursor = cursor + 1;
    }
}

/// One direction of a link: two cache lines, the state of the wire and the packet on it.
///
/// Packets in flight stand in order of arrival. The first is kept in place: on the access links of many thousand hosts
/// it is the only one, and a buffer elsewhere would cost a cache miss each time.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    line: Line,
    /// The discipline of a managed link.
    pub queue: Option<Box<Queue>>,
    #[allow(clippy::box_collection)] // a pointer instead of four words keeps the link within two cache lines
    others: Option<Box<VecDeque<Segment>>>,
    /// The first packet in flight; none if its time is [`EMPTY`], and then there are no others.
    first: Segment,
}

const EMPTY: Instant = Instant::MAX;

impl Link {
    /// An idle link.
    pub fn new(wire: Serializer, delay: Span, queue: Option<Box<Queue>>) -> Self {
        let mut first = Segment::tcp(0, true, TcpFlags(0));
        first.at = EMPTY;
        let line = Line { wire, delay, busy_until: Instant::ZERO, last_arrival: Instant::ZERO };
        Self { line, queue, others: None, first }
    }

    /// Takes a packet; true if the link's event may have changed.
    #[inline]
    pub fn offer(&mut self, packet: &mut Segment, now: Instant, outlet: &mut Outlet) -> bool {
        if self.queue.is_some() {
            self.catch_up(now, outlet);
            self.enqueue(packet, now, outlet);
            return true;
        }
        self.take(packet, now)
    }

    /// Takes a packet on a plain link at `now`, which may be later than the time of the run; true if it is the first.
    #[inline]
    pub fn take(&mut self, packet: &Segment, now: Instant) -> bool {
        self.take_as(packet, packet.cursor, now)
    }

    /// Like [`Link::take`], of a packet whose cursor is not what it says but `cursor`.
    #[inline(always)]
    pub fn take_as(&mut self, packet: &Segment, cursor: u32, now: Instant) -> bool {
        let is_first = self.first.at == EMPTY;
        // Written in place: writing a few bytes before the copy of the whole would stall it (store forwarding).
        let place = match is_first {
            true => {
                self.first = *packet;
                &mut self.first
            }
            false => self.others.get_or_insert_default().push_back_mut(*packet),
        };
        self.line.carry(place, cursor, now);
        is_first
    }

    /// Takes a packet on a plain link, which `write` makes in place; true if it is the first.
    #[inline]
    pub fn send(&mut self, cursor: u32, now: Instant, write: impl FnOnce(&mut Segment)) -> bool {
        let is_first = self.first.at == EMPTY;
        let place = match is_first {
            true => &mut self.first,
            false => self.others.get_or_insert_default().push_back_mut(Segment::tcp(0, true, TcpFlags(0))),
        };
        write(place);
        self.line.carry(place, cursor, now);
        is_first
    }

    #[inline]
    fn enqueue(&mut self, packet: &mut Segment, now: Instant, outlet: &mut Outlet) {
        let Some(queue) = &mut self.queue else { return };
        debug_assert_eq!(packet.at, now, "a packet enters a queue when it arrives");
        debug_assert!(
            self.line.busy_until > now || queue.waiting.packets == 0 || queue.told_empty,
            "the link has caught up"
        );
        if packet.is_marked() {
            packet.clear_marked();
        }
        if queue.sees_segments
            && let Some(segment) = packet.tcp()
        {
            queue.qdisc.outbound(segment, now);
        }
        if let Some(probe) = &mut queue.probe {
            probe.before_change(queue.waiting, now);
        }
        let _ =
            queue.qdisc.enqueue(*packet, now, &mut queue.rng, &mut Recorder::new(&mut outlet.capture, queue.interface));
        queue.waiting = queue.qdisc.backlog();
        if let Some(probe) = &mut queue.probe {
            probe.after_arrival(queue.waiting);
        }
        if self.line.busy_until <= now {
            self.start_next(now, outlet);
        }
    }

    /// Asks the discipline for a packet and begins to transmit it.
    fn start_next(&mut self, now: Instant, outlet: &mut Outlet) {
        let Some(queue) = &mut self.queue else { return };
        if queue.wakes {
            queue.look_at_channels(now);
        }
        if let Some(probe) = &mut queue.probe {
            probe.before_change(queue.waiting, now);
        }
        let mut recorder = Recorder::new(&mut outlet.capture, queue.interface);
        let next = queue.qdisc.dequeue(now, &mut queue.rng, &mut recorder);
        queue.told_empty = next.is_none();
        queue.waiting = queue.qdisc.backlog();
        if let Some(packet) = &next {
            if let Some(probe) = &mut queue.probe {
                probe.on_departure(packet, now);
            }
            recorder.sent(packet, now);
            if queue.loss.strikes(packet.flow()) {
                self.line.busy_until = now + self.line.wire.send(packet.size());
            } else if queue.relays {
                let arrival = self.line.transmit(packet.size(), now);
                outlet.relayed.push((*packet, arrival));
            } else {
                self.take(packet, now);
            }
        }
    }

    /// Makes the decisions that were due up to and at `now`: timers of the discipline, then the next transmission.
    #[inline]
    pub fn catch_up(&mut self, now: Instant, outlet: &mut Outlet) {
        let Some(queue) = &self.queue else { return };
        if queue.wakes {
            return self.catch_up_with_timers(now, outlet);
        }
        while self.line.busy_until <= now && self.queue.as_ref().is_some_and(|queue| !queue.told_empty) {
            self.start_next(self.line.busy_until, outlet);
        }
    }

    fn catch_up_with_timers(&mut self, now: Instant, outlet: &mut Outlet) {
        while let Some(queue) = &mut self.queue {
            let wakeup = queue.qdisc.next_wakeup().filter(|at| *at <= now);
            let waiting = self.line.busy_until <= now && !queue.told_empty;
            match wakeup {
                Some(at) if !waiting || at <= self.line.busy_until => queue.qdisc.on_wakeup(at),
                _ if waiting => self.start_next(self.line.busy_until, outlet),
                _ => match queue.next_channel().filter(|at| *at <= now) {
                    Some(at) => self.start_next(at.max(self.line.busy_until), outlet),
                    None => break,
                },
            }
        }
    }

    /// The link's event is due: it catches up, and gives what was first in flight, which arrives unless its time is
    /// later. (An option of so large a value would be copied again and again.)
    #[inline]
    pub fn on_event(&mut self, now: Instant, outlet: &mut Outlet) -> Segment {
        if self.queue.is_some() {
            self.catch_up(now, outlet);
        }
        let first = self.first;
        if first.at <= now {
            match self.others.as_mut().and_then(|others| others.pop_front()) {
                Some(next) => self.first = next,
                None => self.first.at = EMPTY,
            }
        }
        first
    }

    #[inline]
    fn first_arrival(&self) -> Option<Instant> {
        (self.first.at != EMPTY).then_some(self.first.at)
    }

    /// When the link next has something to do.
    #[inline(always)]
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.first_arrival();
        match &self.queue {
            Some(queue) => self.next_of_queue(queue, arrival),
            None => arrival,
        }
    }

    #[inline(never)]
    fn next_of_queue(&self, queue: &Queue, arrival: Option<Instant>) -> Option<Instant> {
        // What is not yet on the wire arrives after what is: only an empty wire must be woken to transmit. A relayed
        // packet arrives later than the delay after its turn: that is early enough to decide.
        let turn =
            if queue.relays && !queue.eager { self.line.busy_until + self.line.delay } else { self.line.busy_until };
        let transmit = || (queue.waiting.packets > 0 && !queue.told_empty).then_some(turn);
        let next = match arrival {
            Some(arrival) if queue.eager => Some(transmit().map_or(arrival, |at| at.min(arrival))),
            Some(arrival) => Some(arrival),
            None => transmit(),
        };
        if !queue.wakes {
            debug_assert!(queue.qdisc.next_wakeup().is_none(), "a discipline that wakes said that it would not");
            return next;
        }
        [next, queue.qdisc.next_wakeup(), queue.next_channel()].into_iter().flatten().min()
    }

    /// A segment of the other direction passes this link's gateway: its discipline sees it.
    pub fn inbound(&mut self, segment: &mut Segment, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        if let Some(queue) = &mut self.queue {
            queue.qdisc.inbound(segment, now);
        }
    }

    /// Something about the link changes at `now`.
    pub fn alter(&mut self, alteration: Alteration, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        match alteration {
            Alteration::Rate(rate) => self.set_rate(rate, now),
            Alteration::RateAtOnce(rate) => self.set_rate_at_once(rate, now),
            Alteration::Delay(delay) => self.line.delay = delay,
            Alteration::Loss(probability) => {
                if let Some(queue) = &mut self.queue {
                    queue.loss.set(probability);
                }
            }
        }
    }

    /// The discipline is told a fact at `now`.
    pub fn tell(&mut self, fact: &Fact, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        if let Some(queue) = &mut self.queue {
            queue.tell(fact, now);
        }
    }

    fn set_rate(&mut self, rate: Rate, now: Instant) {
        if let Some(queue) = &mut self.queue {
            queue.capacity.change(self.line.wire.rate(), now);
        }
        self.line.wire = Serializer::new(rate);
    }

    fn set_rate_at_once(&mut self, rate: Rate, now: Instant) {
        let before = self.line.wire.rate();
        self.set_rate(rate, now);
        let (end, rest) = (self.line.busy_until, self.line.busy_until.since(now));
        if rest == Span::ZERO {
            return;
        }
        let work = u128::from(rest.as_nanos()) * u128::from(before.as_bps());
        self.line.busy_until = now + Span::from_nanos((work / u128::from(rate.as_bps())) as u64);
        let arrival = self.line.busy_until + self.line.delay;
        let mut in_flight = std::iter::once(&mut self.first).chain(self.others.iter_mut().flat_map(|o| o.iter_mut()));
        // The last one is on its way already if the wire lost the packet that is being transmitted.
        if let Some(last) = in_flight.next_back().filter(|last| last.at != EMPTY && last.at >= end + self.line.delay) {
            last.at = in_flight.next_back().map_or(arrival, |earlier| arrival.max(earlier.at));
            self.line.last_arrival = last.at;
        }
    }

    /// Stations lose other shares of their packets from `now` on.
    pub fn set_stations(&mut self, losses: &[f64], now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        if let Some(queue) = &mut self.queue
            && let Some(stations) = &mut queue.loss.stations
        {
            stations.replace(losses, |station, loss| queue.qdisc.on_fact(&Fact::Channel { station, loss }, now));
            queue.told_empty = false;
            // Asked at once, not from when it last gave nothing.
            self.line.busy_until = self.line.busy_until.max(now);
        }
    }

    /// Takes out what waits of these flows, in order for each.
    pub fn take_out(
        &mut self,
        flows: impl Iterator<Item = FlowId>,
        now: Instant,
        outlet: &mut Outlet,
        taken: &mut Vec<Segment>,
    ) {
        self.catch_up(now, outlet);
        let Some(queue) = &mut self.queue else { return };
        if let Some(probe) = &mut queue.probe {
            probe.before_change(queue.waiting, now);
        }
        flows.for_each(|flow| queue.qdisc.take_out(flow, taken));
        queue.waiting = queue.qdisc.backlog();
    }

    /// What is in flight of these flows is gone; tells how many packets that were.
    pub fn lose_in_flight(&mut self, flows: &[u32]) -> u64 {
        let goes = |packet: &Segment| packet.at != EMPTY && flows.contains(&packet.flow);
        let mut lost = u64::from(goes(&self.first));
        if lost > 0 {
            self.first.at = EMPTY;
        }
        let Some(others) = &mut self.others else { return lost };
        let before = others.len();
        others.retain(|packet| !goes(packet));
        lost += (before - others.len()) as u64;
        if self.first.at == EMPTY
            && let Some(next) = others.pop_front()
        {
            self.first = next;
        }
        lost
    }

    /// What a managed link could have sent by `now`, in bits.
    pub fn capacity_bits(&self, now: Instant) -> f64 {
        self.queue.as_ref().map_or(0.0, |queue| queue.capacity.until(self.line.wire.rate(), now))
    }

    /// Rate of the link.
    pub fn rate(&self) -> Rate {
        self.line.wire.rate()
    }

    /// Delay of the link.
    pub fn delay(&self) -> Span {
        self.line.delay
    }
}
