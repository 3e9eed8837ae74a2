//! Links of the scenario: each is one direction, holds its packets in flight in order of arrival, and has at most one
//! pending event. (Those of hosts are in `access.rs`.)
//!
//! A link has a queue discipline before it, which decides at the end of each transmission. The link catches up with
//! those decisions ([`Link::catch_up`]) before anything else reads or changes its state: each decision is taken at its
//! own time, in order, and before any arrival of the same time. Decisions therefore need no events, and the event queue
//! holds only one event per packet, its arrival.
//!
//! Some links need no event for the arrival either. If every packet that leaves a link goes on to an access link which no
//! other link feeds, such as the last link to its host, then its arrival at the end of that access link is known when its
//! transmission begins. Such a link *relays* ([`Outlet::relay`]). It wakes only to take decisions in time, before the
//! first of their packets can arrive.

use crate::access::AccessLinks;
use crate::advice::Element;
use crate::audit::Audit;
use crate::capture::{Capture, Recorder};
use crate::event::EventQueue;
use crate::probe::{BILLIONTHS, QueueProbe};
use crate::segment::Segment;
use penstock_core::ack::AckPath;
use penstock_core::csi::Loss;
use penstock_core::estimate::Way;
use penstock_core::fact::Fact;
use penstock_core::impair::{Behind, Impairments, Policer};
use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::{FlowId, Packet, TcpFlags};
use penstock_core::qdisc::{Backlog, Qdisc};
use penstock_core::registry::AnyQdisc;
use penstock_core::rng::Rng;
use penstock_core::units::{Bytes, Instant, Rate, Serializer, Span};
use std::collections::VecDeque;

/// What links pass their packets to: the rest of the network.
#[derive(Debug)]
pub struct Outlet {
    /// The capture; `None` if nothing is captured.
    pub capture: Option<Capture>,
    /// The audit; `None` if nobody asked for one.
    pub(crate) audit: Option<Box<Audit>>,
    /// The links of hosts.
    pub access: AccessLinks,
    /// All routes in one table: each is a list of places of links, ended by [`crate::world::END`].
    pub routes: Vec<u32>,
    /// Pending events, at most one for each source.
    pub events: EventQueue,
}

impl Outlet {
    /// Puts a packet that arrives at the end of its link at `at` into flight on the next one, which is an access link.
    #[inline]
    fn relay(&mut self, packet: &Segment, at: Instant) {
        self.put(packet, packet.cursor + 1, at);
    }

    /// Puts a packet into flight at `now` on the access link to which the route leads at `cursor`.
    #[inline]
    pub fn put(&mut self, packet: &Segment, cursor: u32, now: Instant) {
        self.access.take(cursor, now, (&self.routes, &mut self.events), packet, |_| ());
    }

    /// The same for a packet which `write` constructs in its place.
    #[inline]
    pub fn send(&mut self, cursor: u32, now: Instant, write: impl FnOnce(&mut Segment)) {
        let blank = Segment::tcp(0, true, TcpFlags(0));
        self.access.take(cursor, now, (&self.routes, &mut self.events), &blank, write);
    }

    /// Tells the audit that an element was shown a segment, which `came` as it was before; `None` without an audit.
    fn edited(&mut self, queue: u32, came: Option<Segment>, segment: &Segment, now: Instant) {
        if let (Some(audit), Some(came)) = (&mut self.audit, came) {
            audit.edited(queue, &came, segment, now);
        }
    }
}

/// A link whose packets a gateway is shown as they arrive at its end.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// Number of the gateway.
    pub gauge: u32,
    /// The way of the packets.
    pub way: Way,
}

/// A change of a property of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Alteration {
    /// Sets the rate; the packet that is being transmitted keeps the old rate.
    Rate(Rate),
    /// Sets the rate, also for the rest of the packet that is being transmitted. The link must not relay.
    RateAtOnce(Rate),
    /// Sets the delay of the packets whose transmission begins later.
    Delay(Span),
    /// Sets the probability of loss.
    Loss(f64),
}

/// The number of bits that a wire could have sent up to the last change of its rate.
#[derive(Debug, Clone, Copy)]
pub struct Capacity {
    bits: f64,
    /// When the rate last changed for the wire. A packet that is being transmitted may keep its rate, so this time can
    /// lie ahead: at the end of that packet.
    since: Instant,
    /// The rate before that change.
    before: Rate,
}

impl Capacity {
    /// Creates the capacity of a wire at time zero.
    pub fn new(rate: Rate) -> Self {
        Self { bits: 0.0, since: Instant::ZERO, before: rate }
    }

    /// Returns the rate of the wire at `now`, which has `rate` since the last change.
    fn rate_at(&self, rate: Rate, now: Instant) -> Rate {
        if now < self.since { self.before } else { rate }
    }

    /// Returns the capacity in bits up to `now`, with `rate` since the last change.
    fn until(&self, rate: Rate, now: Instant) -> f64 {
        let bits = |rate: Rate, span: Span| rate.as_bps() as f64 * span.as_secs_f64();
        self.bits - bits(self.before, self.since.since(now)) + bits(rate, now.since(self.since))
    }

    /// Changes the rate at `at`, which may lie ahead; up to then it was `rate` since the last change.
    fn change(&mut self, rate: Rate, at: Instant) {
        *self = Self { bits: self.until(rate, at), before: self.rate_at(rate, at - Span::from_nanos(1)), since: at };
    }
}

/// The queue before a link and the state that belongs to it.
#[derive(Debug)]
pub struct Queue {
    /// The queue discipline.
    pub qdisc: AnyQdisc<Segment>,
    /// Random stream of the discipline.
    pub rng: Rng,
    /// Measurements; `None` if this queue is not measured.
    pub probe: Option<Box<QueueProbe>>,
    /// Index of the queue in captures; `u32::MAX` if the queue is not measured.
    pub interface: u32,
    /// True if the discipline wants to see the segments of both directions.
    pub sees_segments: bool,
    /// Random loss of packets on the wire, behind the queue.
    pub loss: Loss,
    /// Gives throughput advice; `None` for a link that does not.
    pub advice: Option<Box<Element>>,
    /// The policer before the queue; `None` without one.
    pub policer: Option<Policer>,
    /// What comes behind the wire and changes when packets arrive; `None` if that is nothing. With it the link does not
    /// relay.
    pub behind: Option<Behind>,
    /// The link of the opposite direction whose discipline sees the segments that this link delivers; `None` if it does
    /// not want to.
    pub ack_path_of: Option<u32>,
    /// The gateway that is shown the packets that this link delivers, to estimate a rate.
    pub watched: Option<Watched>,
    /// True if packets go straight into flight on the next link, see the header of this file.
    pub relays: bool,
    /// Backlog after the last arrival or departure.
    pub waiting: Backlog,
    /// True if the discipline may ask to be woken, or may wait for a channel to change.
    pub wakes: bool,
    /// True if the last `dequeue` returned no packet. The discipline is not asked again before something has changed.
    pub told_empty: bool,
    /// What the link could have sent, for the utilization.
    pub capacity: Capacity,
}

impl Queue {
    /// Tells the discipline a fact.
    pub fn tell(&mut self, fact: &Fact, now: Instant) {
        self.qdisc.on_fact(fact, now);
        self.advice.iter_mut().for_each(|element| element.hear(fact));
        if let (Fact::Class { flow, class }, Some(stations)) = (fact, &mut self.loss.stations) {
            stations.set_class(flow.0, *class);
        }
    }

    /// Shows a packet that comes to the element that gives advice.
    #[cold]
    fn advise(&mut self, packet: &mut Segment, rate: Rate, now: Instant) {
        let members = self.advice.as_mut().and_then(|element| element.pass(packet, rate, &self.qdisc, now));
        members.into_iter().for_each(|members| self.qdisc.on_fact(&Fact::Advised(members), now));
    }

    /// Lets the channels of stations change up to `now`, and tells the discipline those that have.
    fn look_at_channels(&mut self, now: Instant) {
        let (qdisc, told_empty) = (&mut self.qdisc, &mut self.told_empty);
        if let Some(stations) = &mut self.loss.stations {
            stations.advance(now, |station, loss| {
                qdisc.on_fact(&Fact::Channel { station, loss }, now);
                *told_empty = false;
            });
        }
    }

    /// Returns when a channel changes next, at which a discipline that holds packets but returned none is asked again.
    #[inline]
    fn next_channel(&self) -> Option<Instant> {
        let idle = self.told_empty && self.waiting.packets > 0;
        if idle { self.loss.stations.as_ref().and_then(|stations| stations.next_change()) } else { None }
    }
}

/// The transmitter of a link and its propagation delay: packets leave one after another and arrive one delay later.
#[derive(Debug)]
struct Line {
    wire: Serializer,
    /// What the wire adds to each packet.
    layer: LinkLayer,
    /// The bytes that it has added so far.
    added: i64,
    delay: Span,
    busy_until: Instant,
    /// The latest arrival so far. After the delay was reduced, no packet may arrive before it.
    last_arrival: Instant,
    /// What divisions left over when the rate changed, in billionths of a bit: the wire sent it before its time.
    rounded: u128,
}

impl Line {
    /// Puts a packet of this size on the wire; returns for how long it occupies it.
    #[inline]
    fn send(&mut self, size: Bytes) -> Span {
        let on_wire = self.layer.on_wire(size);
        self.added += on_wire.get().wrapping_sub(size.get()) as i64;
        self.wire.send(on_wire)
    }

    /// Sends a packet of this size at `now`, or when the wire becomes free; returns when it arrives.
    #[inline]
    fn transmit(&mut self, size: Bytes, now: Instant) -> Instant {
        self.busy_until = self.busy_until.max(now) + self.send(size);
        self.last_arrival = self.last_arrival.max(self.busy_until + self.delay);
        self.last_arrival
    }
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    line: Line,
    /// The queue before the link.
    pub queue: Queue,
    /// Packets in flight in order of arrival; none if the link relays.
    in_flight: VecDeque<Segment>,
}

impl Link {
    /// Creates an idle link.
    pub fn new(wire: Serializer, layer: LinkLayer, delay: Span, queue: Queue) -> Self {
        let (busy_until, last_arrival) = (Instant::ZERO, Instant::ZERO);
        let line = Line { wire, layer, added: 0, delay, busy_until, last_arrival, rounded: 0 };
        Self { line, queue, in_flight: VecDeque::new() }
    }

    /// Takes a packet that arrives at `now`.
    #[inline]
    pub fn offer(&mut self, packet: &mut Segment, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        self.enqueue(packet, now, outlet);
    }

    #[inline]
    fn enqueue(&mut self, packet: &mut Segment, now: Instant, outlet: &mut Outlet) {
        let queue = &mut self.queue;
        debug_assert_eq!(packet.at, now, "a packet enters a queue when it arrives");
        debug_assert!(
            self.line.busy_until > now || queue.waiting.packets == 0 || queue.told_empty,
            "the link has caught up"
        );
        if queue.policer.as_mut().is_some_and(|policer| !policer.conforms(packet.size(), now)) {
            return;
        }
        if packet.is_marked() {
            packet.clear_marked();
        }
        if queue.advice.is_some() {
            queue.advise(packet, self.line.layer.of_packets(self.line.wire.rate()), now);
        }
        if queue.sees_segments
            && let Some(segment) = packet.tcp()
        {
            let came = outlet.audit.is_some().then_some(*segment);
            queue.qdisc.outbound(segment, now);
            outlet.edited(queue.interface, came, segment, now);
        }
        if let Some(audit) = &mut outlet.audit {
            audit.arrived(queue.interface, packet);
        }
        if let Some(probe) = &mut queue.probe {
            probe.before_change(queue.waiting, now);
        }
        let mut recorder = Recorder::new(&mut outlet.capture, &mut outlet.audit, queue.interface);
        let _ = queue.qdisc.enqueue(*packet, now, &mut queue.rng, &mut recorder);
        queue.waiting = queue.qdisc.backlog();
        if let Some(audit) = &mut outlet.audit {
            audit.settled(queue.interface, queue.waiting, queue.qdisc.stats(), now);
        }
        if let Some(probe) = &mut queue.probe {
            probe.after_arrival(queue.waiting);
        }
        if self.line.busy_until <= now {
            self.start_next(now, outlet);
        }
    }

    /// Asks the discipline for a packet and begins to transmit it.
    fn start_next(&mut self, now: Instant, outlet: &mut Outlet) {
        let queue = &mut self.queue;
        if queue.wakes {
            queue.look_at_channels(now);
        }
        if let Some(probe) = &mut queue.probe {
            probe.before_change(queue.waiting, now);
        }
        let mut recorder = Recorder::new(&mut outlet.capture, &mut outlet.audit, queue.interface);
        let next = queue.qdisc.dequeue(now, &mut queue.rng, &mut recorder);
        recorder.answered(next.as_ref(), now);
        queue.told_empty = next.is_none();
        queue.waiting = queue.qdisc.backlog();
        if let Some(audit) = &mut outlet.audit {
            audit.settled(queue.interface, queue.waiting, queue.qdisc.stats(), now);
        }
        if let Some(packet) = &next {
            if let Some(probe) = &mut queue.probe {
                probe.on_departure(packet, now);
            }
            if queue.loss.strikes(packet.flow().0) {
                self.line.busy_until = now + self.line.send(packet.size());
            } else if queue.relays {
                outlet.relay(packet, self.line.transmit(packet.size(), now));
            } else if let Some(behind) = &mut queue.behind {
                let straight = self.line.transmit(packet.size(), now);
                let end = self.line.busy_until;
                let arrival = behind.arrival(end, straight.since(end));
                arrival.earlier.iter().for_each(|(from, to)| self.hasten(*from, *to));
                (0..=u8::from(arrival.twice)).for_each(|_| self.put(*packet, arrival.at));
            } else {
                let at = self.line.transmit(packet.size(), now);
                let place = self.in_flight.push_back_mut(*packet);
                (place.at, place.cursor) = (at, packet.cursor + 1);
            }
        }
    }

    /// Puts a packet into flight at its place among those that arrive at other times, behind those of the same time.
    fn put(&mut self, mut packet: Segment, at: Instant) {
        (packet.at, packet.cursor) = (at, packet.cursor + 1);
        let later = self.in_flight.iter().rev().take_while(|other| other.at > at).count();
        self.in_flight.insert(self.in_flight.len() - later, packet);
    }

    /// Lets the packets that were to arrive at `from`, which are the last in flight, arrive at `to`, which is not later.
    fn hasten(&mut self, from: Instant, to: Instant) {
        self.in_flight.iter_mut().rev().take_while(|packet| packet.at == from).for_each(|packet| packet.at = to);
    }

    /// Changes from now on what the link does to packets before and behind its queue. Packets in flight arrive as they
    /// would have.
    pub fn impair(&mut self, impairments: &Impairments, rng: Rng, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        let queue = &mut self.queue;
        let dropped = queue.policer.as_ref().map_or(0, |policer| policer.dropped);
        queue.policer = impairments.policer_from(now);
        queue.policer.iter_mut().for_each(|policer| policer.dropped = dropped);
        queue.loss.set_rows(impairments.gilbert);
        match (impairments.behind(rng), &mut queue.behind) {
            (Some(mut next), before) => {
                before.iter().for_each(|before| next.follow(before));
                (queue.behind, queue.relays) = (Some(next), false);
            }
            (None, Some(before)) => before.end(),
            (None, None) => {}
        }
    }

    /// Takes all decisions that were due up to and at `now`, in order: timers of the discipline and the begins of
    /// transmissions.
    #[inline]
    pub fn catch_up(&mut self, now: Instant, outlet: &mut Outlet) {
        if self.queue.wakes {
            return self.catch_up_with_timers(now, outlet);
        }
        while self.line.busy_until <= now && !self.queue.told_empty {
            self.start_next(self.line.busy_until, outlet);
        }
    }

    fn catch_up_with_timers(&mut self, now: Instant, outlet: &mut Outlet) {
        loop {
            let queue = &mut self.queue;
            let wakeup = queue.qdisc.next_wakeup().filter(|at| *at <= now);
            let waiting = self.line.busy_until <= now && !queue.told_empty;
            match wakeup {
                Some(at) if !waiting || at <= self.line.busy_until => {
                    queue.qdisc.on_wakeup(at);
                    // A discipline that shapes has held packets back from an idle link.
                    if queue.told_empty && queue.waiting.packets > 0 {
                        self.start_next(at.max(self.line.busy_until), outlet);
                    }
                }
                _ if waiting => self.start_next(self.line.busy_until, outlet),
                _ => match queue.next_channel().filter(|at| *at <= now) {
                    Some(at) => self.start_next(at.max(self.line.busy_until), outlet),
                    None => break,
                },
            }
        }
    }

    /// Handles the event of the link: it catches up, and returns the first packet in flight if that arrives now.
    #[inline]
    pub fn on_event(&mut self, now: Instant, outlet: &mut Outlet) -> Option<Segment> {
        self.catch_up(now, outlet);
        self.in_flight.pop_front_if(|packet| packet.at <= now)
    }

    /// Returns when the link has something to do next; `None` if it has nothing to do.
    #[inline(never)]
    pub fn next_event(&self) -> Option<Instant> {
        let queue = &self.queue;
        let arrival = self.in_flight.front().map(|packet| packet.at);
        // A packet that is not on the wire yet arrives after all that are: only an empty wire needs an event to
        // transmit. A relayed packet arrives later than one delay after its transmission begins: a decision at that
        // time is early enough. What comes behind the wire may let a packet overtake others, or release them.
        let turn = if queue.relays { self.line.busy_until + self.line.delay } else { self.line.busy_until };
        let transmit = || (queue.waiting.packets > 0 && !queue.told_empty).then_some(turn);
        let next = match &queue.behind {
            None => arrival.or_else(transmit),
            Some(_) => [arrival, transmit()].into_iter().flatten().min(),
        };
        if !queue.wakes {
            debug_assert!(queue.qdisc.next_wakeup().is_none(), "a discipline that wakes said that it would not");
            return next;
        }
        [next, queue.qdisc.next_wakeup(), queue.next_channel()].into_iter().flatten().min()
    }

    /// Shows a segment of the opposite direction, which passes the gateway of this link, to the discipline.
    pub fn inbound(&mut self, segment: &mut Segment, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        let came = outlet.audit.is_some().then_some(*segment);
        self.queue.qdisc.inbound(segment, now);
        outlet.edited(self.queue.interface, came, segment, now);
    }

    /// Applies a change of the link at `now`.
    pub fn alter(&mut self, alteration: Alteration, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        match alteration {
            Alteration::Rate(rate) => self.set_rate(rate, self.line.busy_until.max(now)),
            Alteration::RateAtOnce(rate) => self.set_rate_at_once(rate, now),
            Alteration::Delay(delay) => self.line.delay = delay,
            Alteration::Loss(probability) => self.queue.loss.set(probability),
        }
    }

    /// Tells the discipline a fact at `now`.
    pub fn tell(&mut self, fact: &Fact, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        match fact {
            Fact::Rate(rate) => self.queue.tell(&Fact::Rate(self.line.layer.of_packets(*rate)), now),
            _ => self.queue.tell(fact, now),
        }
    }

    /// Sets the rate of the wire from `at` on, which is now or the end of the packet that is being transmitted.
    fn set_rate(&mut self, rate: Rate, at: Instant) {
        self.queue.capacity.change(self.line.wire.rate(), at);
        if self.line.busy_until >= at {
            self.line.rounded += u128::from(self.line.wire.left_over());
        }
        self.line.wire = Serializer::new(rate);
    }

    fn set_rate_at_once(&mut self, rate: Rate, now: Instant) {
        let before = self.rate_at(now);
        self.set_rate(rate, now);
        let (end, rest) = (self.line.busy_until, self.line.busy_until.since(now));
        if rest == Span::ZERO {
            return;
        }
        let work = u128::from(rest.as_nanos()) * u128::from(before.as_bps());
        self.line.rounded += work % u128::from(rate.as_bps());
        self.line.busy_until = now + Span::from_nanos((work / u128::from(rate.as_bps())) as u64);
        if self.queue.behind.is_some() {
            return; // the packet that is being transmitted arrives when it would have, held or overtaken
        }
        let arrival = self.line.busy_until + self.line.delay;
        let mut in_flight = self.in_flight.iter_mut();
        // The last packet in flight has left the wire already if the wire lost the packet that is being transmitted.
        if let Some(last) = in_flight.next_back().filter(|last| last.at >= end + self.line.delay) {
            last.at = in_flight.next_back().map_or(arrival, |earlier| arrival.max(earlier.at));
            self.line.last_arrival = last.at;
        }
    }

    /// Replaces the probabilities of loss of the stations from `now` on.
    pub fn set_stations(&mut self, losses: &[f64], now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        let queue = &mut self.queue;
        if let Some(stations) = &mut queue.loss.stations {
            stations.replace(losses, |station, loss| queue.qdisc.on_fact(&Fact::Channel { station, loss }, now));
            queue.told_empty = false;
            // The discipline is asked now, not at the time at which it last returned no packet.
            self.line.busy_until = self.line.busy_until.max(now);
        }
    }

    /// Takes the packets of these flows out of the queue and appends them to `taken`, in order within each flow.
    pub fn take_out(
        &mut self,
        flows: impl Iterator<Item = FlowId>,
        now: Instant,
        outlet: &mut Outlet,
        taken: &mut Vec<Segment>,
    ) {
        self.catch_up(now, outlet);
        let queue = &mut self.queue;
        if let Some(probe) = &mut queue.probe {
            probe.before_change(queue.waiting, now);
        }
        let before = taken.len();
        flows.for_each(|flow| queue.qdisc.take_out(flow, taken));
        if let Some(audit) = &mut outlet.audit {
            audit.taken(queue.interface, &taken[before..], now);
        }
        queue.waiting = queue.qdisc.backlog();
    }

    /// Removes the packets of these flows that are in flight; returns how many there were.
    pub fn lose_in_flight(&mut self, flows: &[u32]) -> u64 {
        let before = self.in_flight.len();
        self.in_flight.retain(|packet| !flows.contains(&packet.flow));
        (before - self.in_flight.len()) as u64
    }

    /// Asks the discipline for as many packets as wait, each when the last one has left; returns when it was last asked.
    /// For the end of an audit.
    pub fn drain(&mut self, now: Instant, outlet: &mut Outlet) -> Instant {
        self.catch_up(now, outlet);
        let (mut waiting, mut at) = (self.queue.waiting.packets, now);
        while waiting > 0 {
            at = at.max(self.line.busy_until);
            self.start_next(at, outlet);
            waiting -= 1;
        }
        at
    }

    /// Returns how many bits the link could have sent by `now`.
    pub fn capacity_bits(&self, now: Instant) -> f64 {
        self.queue.capacity.until(self.line.wire.rate(), now)
    }

    /// Returns how much the link has sent by `now`, in billionths of a bit. Of the packet that is being transmitted only
    /// the bits that have left count.
    pub fn sent(&self, now: Instant) -> u128 {
        let bytes = self.queue.qdisc.stats().sent.bytes.saturating_add_signed(self.line.added);
        let begun = u128::from(bytes) * u128::from(8 * BILLIONTHS);
        begun.saturating_sub(self.on_wire(now) + self.line.rounded)
    }

    /// Returns [`Link::sent`] in bits.
    pub fn sent_bits(&self, now: Instant) -> f64 {
        self.sent(now) as f64 / BILLIONTHS as f64
    }

    /// Returns how much of the packet that is being transmitted has not left yet at `now`, in billionths of a bit:
    /// nanoseconds times bits per second.
    fn on_wire(&self, now: Instant) -> u128 {
        let line = &self.line;
        if line.busy_until < now {
            return 0;
        }
        let rate = self.rate_at(now);
        let left_over = if rate == line.wire.rate() { line.wire.left_over() } else { 0 };
        u128::from(line.busy_until.since(now).as_nanos()) * u128::from(rate.as_bps()) + u128::from(left_over)
    }

    /// Returns the rate with which the wire sends at `now`.
    fn rate_at(&self, now: Instant) -> Rate {
        let rate = self.line.wire.rate();
        self.queue.capacity.rate_at(rate, now)
    }

    /// Returns the current rate of the link.
    pub fn rate(&self) -> Rate {
        self.line.wire.rate()
    }

    /// Returns the current propagation delay of the link.
    pub fn delay(&self) -> Span {
        self.line.delay
    }
}
