//! Links: each is one direction, holds its packets in flight in order of arrival, and has at most one pending event.
//!
//! A plain link has no limit. When a packet is given to it, the packet's whole future on the link is known, and the
//! packet is put straight into flight. A managed link has a queue discipline before it, which decides at the end of
//! each transmission. The link catches up with those decisions ([`Link::catch_up`]) before anything else reads or
//! changes its state: each decision is taken at its own time, in order, and before any arrival of the same time.
//! Decisions therefore need no events, and the event queue holds only one event per packet, its arrival.
//!
//! Some links need no event for the arrival either. If every packet that leaves a managed link goes on to a plain link
//! which no other link feeds, such as the last link to its host, then its arrival at the end of that plain link is
//! known when its transmission begins. Such a link *relays* ([`Outlet::relayed`]). It wakes only to take decisions in
//! time, before the first of their packets can arrive.

use crate::audit::Audit;
use crate::capture::{Capture, Recorder};
use crate::loss::Loss;
use crate::probe::{BILLIONTHS, QueueProbe};
use crate::segment::Segment;
use penstock_core::ack::AckPath;
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, Packet, TcpFlags};
use penstock_core::qdisc::{Backlog, Qdisc};
use penstock_core::registry::AnyQdisc;
use penstock_core::rng::Rng;
use penstock_core::units::{Bytes, Instant, Rate, Serializer, Span};
use std::collections::VecDeque;

/// Packets which links pass to the rest of the network.
#[derive(Debug, Default)]
pub struct Outlet {
    /// The capture; `None` if nothing is captured.
    pub capture: Option<Capture>,
    /// The audit; `None` if nobody asked for one.
    pub(crate) audit: Option<Box<Audit>>,
    /// Packets that go on to the next link, each with the time at which it arrives there.
    pub relayed: Vec<(Segment, Instant)>,
}

impl Outlet {
    /// Tells the audit that an element was shown a segment, which `came` as it was before; `None` without an audit.
    fn edited(&mut self, queue: u32, came: Option<Segment>, segment: &Segment, now: Instant) {
        if let (Some(audit), Some(came)) = (&mut self.audit, came) {
            audit.edited(queue, &came, segment, now);
        }
    }
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

/// The queue before a managed link and the state that belongs to it.
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
    /// The link of the opposite direction whose discipline sees the segments that this link delivers; `None` if it does
    /// not want to.
    pub ack_path_of: Option<u32>,
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
    delay: Span,
    busy_until: Instant,
    /// The latest arrival so far. After the delay was reduced, no packet may arrive before it.
    last_arrival: Instant,
}

impl Line {
    /// Sends a packet of this size at `now`, or when the wire becomes free; returns when it arrives.
    #[inline]
    fn transmit(&mut self, size: Bytes, now: Instant) -> Instant {
        self.busy_until = self.busy_until.max(now) + self.wire.send(size);
        self.last_arrival = self.last_arrival.max(self.busy_until + self.delay);
        self.last_arrival
    }

    /// Sends a packet that is stored in its place already; the hop at `cursor` is this link.
    #[inline]
    fn carry(&mut self, packet: &mut Segment, cursor: u32, now: Instant) {
        packet.at = self.transmit(packet.size(), now);
        packet.cursor = cursor + 1;
    }
}

/// One direction of a link. Its two cache lines hold the state of the wire and the first packet in flight.
///
/// Packets in flight are stored in order of arrival, the first one within the link itself: on the access links of many
/// thousand hosts it is the only one, and a separate buffer would cost a cache miss each time.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    line: Line,
    /// The queue of a managed link; `None` for a plain link.
    pub queue: Option<Box<Queue>>,
    #[allow(clippy::box_collection)] // a pointer instead of four words keeps the link within two cache lines
    others: Option<Box<VecDeque<Segment>>>,
    /// The first packet in flight. If its time is [`EMPTY`], no packet is in flight.
    first: Segment,
}

const EMPTY: Instant = Instant::MAX;

impl Link {
    /// Creates an idle link; a plain one if `queue` is `None`.
    pub fn new(wire: Serializer, delay: Span, queue: Option<Box<Queue>>) -> Self {
        let mut first = Segment::tcp(0, true, TcpFlags(0));
        first.at = EMPTY;
        let line = Line { wire, delay, busy_until: Instant::ZERO, last_arrival: Instant::ZERO };
        Self { line, queue, others: None, first }
    }

    /// Takes a packet that arrives at `now`; returns true if the link's event may have changed.
    #[inline]
    pub fn offer(&mut self, packet: &mut Segment, now: Instant, outlet: &mut Outlet) -> bool {
        if self.queue.is_some() {
            self.catch_up(now, outlet);
            self.enqueue(packet, now, outlet);
            return true;
        }
        self.take(packet, now)
    }

    /// Takes a packet on a plain link at `now`, which may be later than the time of the run; returns true if no other
    /// packet is in flight.
    #[inline]
    pub fn take(&mut self, packet: &Segment, now: Instant) -> bool {
        self.take_as(packet, packet.cursor, now)
    }

    /// Takes a packet on a plain link at `now`, with `cursor` in place of the packet's own; returns true if no other
    /// packet is in flight.
    #[inline(always)]
    pub fn take_as(&mut self, packet: &Segment, cursor: u32, now: Instant) -> bool {
        let is_first = self.first.at == EMPTY;
        // The packet is copied before its fields change: a write of a few bytes before the copy of all would stall the
        // copy (store forwarding).
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

    /// Takes a packet on a plain link which `write` constructs in its place; returns true if no other packet is in
    /// flight.
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
        let Some(queue) = &mut self.queue else { return };
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

    /// Takes all decisions that were due up to and at `now`, in order: timers of the discipline and the begins of
    /// transmissions.
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

    /// Handles the event of the link: it catches up, and returns the first packet in flight. The packet arrives now
    /// only if its time is not later than `now`; otherwise it stays in flight. (An `Option` of so large a value would
    /// be copied several times.)
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

    /// Returns when the link has something to do next; `None` if it has nothing to do.
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
        // A packet that is not on the wire yet arrives after all that are: only an empty wire needs an event to
        // transmit. A relayed packet arrives later than one delay after its transmission begins: a decision at that
        // time is early enough.
        let turn = if queue.relays { self.line.busy_until + self.line.delay } else { self.line.busy_until };
        let transmit = || (queue.waiting.packets > 0 && !queue.told_empty).then_some(turn);
        let next = arrival.or_else(transmit);
        if !queue.wakes {
            debug_assert!(queue.qdisc.next_wakeup().is_none(), "a discipline that wakes said that it would not");
            return next;
        }
        [next, queue.qdisc.next_wakeup(), queue.next_channel()].into_iter().flatten().min()
    }

    /// Shows a segment of the opposite direction, which passes the gateway of this link, to the discipline.
    pub fn inbound(&mut self, segment: &mut Segment, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        if let Some(queue) = &mut self.queue {
            let came = outlet.audit.is_some().then_some(*segment);
            queue.qdisc.inbound(segment, now);
            outlet.edited(queue.interface, came, segment, now);
        }
    }

    /// Applies a change of the link at `now`.
    pub fn alter(&mut self, alteration: Alteration, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        match alteration {
            Alteration::Rate(rate) => self.set_rate(rate, self.line.busy_until.max(now)),
            Alteration::RateAtOnce(rate) => self.set_rate_at_once(rate, now),
            Alteration::Delay(delay) => self.line.delay = delay,
            Alteration::Loss(probability) => {
                if let Some(queue) = &mut self.queue {
                    queue.loss.set(probability);
                }
            }
        }
    }

    /// Tells the discipline a fact at `now`.
    pub fn tell(&mut self, fact: &Fact, now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        if let Some(queue) = &mut self.queue {
            queue.tell(fact, now);
        }
    }

    /// Sets the rate of the wire from `at` on, which is now or the end of the packet that is being transmitted.
    fn set_rate(&mut self, rate: Rate, at: Instant) {
        if let Some(queue) = &mut self.queue {
            queue.capacity.change(self.line.wire.rate(), at);
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
        self.line.busy_until = now + Span::from_nanos((work / u128::from(rate.as_bps())) as u64);
        let arrival = self.line.busy_until + self.line.delay;
        let mut in_flight = std::iter::once(&mut self.first).chain(self.others.iter_mut().flat_map(|o| o.iter_mut()));
        // The last packet in flight has left the wire already if the wire lost the packet that is being transmitted.
        if let Some(last) = in_flight.next_back().filter(|last| last.at != EMPTY && last.at >= end + self.line.delay) {
            last.at = in_flight.next_back().map_or(arrival, |earlier| arrival.max(earlier.at));
            self.line.last_arrival = last.at;
        }
    }

    /// Replaces the probabilities of loss of the stations from `now` on.
    pub fn set_stations(&mut self, losses: &[f64], now: Instant, outlet: &mut Outlet) {
        self.catch_up(now, outlet);
        if let Some(queue) = &mut self.queue
            && let Some(stations) = &mut queue.loss.stations
        {
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
        let Some(queue) = &mut self.queue else { return };
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

    /// Asks the discipline for as many packets as wait, each when the last one has left; returns when it was last asked.
    /// For the end of an audit.
    pub fn drain(&mut self, now: Instant, outlet: &mut Outlet) -> Instant {
        self.catch_up(now, outlet);
        let (mut waiting, mut at) = (self.queue.as_ref().map_or(0, |queue| queue.waiting.packets), now);
        while waiting > 0 {
            at = at.max(self.line.busy_until);
            self.start_next(at, outlet);
            waiting -= 1;
        }
        at
    }

    /// Returns how many bits a managed link could have sent by `now`; zero for a plain link.
    pub fn capacity_bits(&self, now: Instant) -> f64 {
        self.queue.as_ref().map_or(0.0, |queue| queue.capacity.until(self.line.wire.rate(), now))
    }

    /// Returns how much a managed link has sent by `now`, in billionths of a bit; zero for a plain link. Of the packet
    /// that is being transmitted only the bits that have left count.
    pub fn sent(&self, now: Instant) -> u128 {
        let Some(queue) = &self.queue else { return 0 };
        let begun = u128::from(queue.qdisc.stats().sent.bytes) * u128::from(8 * BILLIONTHS);
        begun.saturating_sub(self.on_wire(now))
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
        self.queue.as_ref().map_or(rate, |queue| queue.capacity.rate_at(rate, now))
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
