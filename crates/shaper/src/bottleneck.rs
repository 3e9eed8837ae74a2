//! One direction of a bottleneck in virtual time: a queue discipline, a wire with a rate, and a delay line.
//!
//! Sans-IO: the caller passes the time and moves the packets. A transmission begins when the previous one has ended,
//! not when the caller finds time to call, so a late caller delivers packets late but never slows the wire.

mod queue;

use crate::histogram::Spans;
use crate::journal::Journal;
use crate::log::LinkLog;
use crate::records::{Records, Stamped, Unstamped};
use crate::tap::Tap;
use penstock_core::ack::AckPath;
use penstock_core::config::LinkFacts;
use penstock_core::csi::{Channel, Loss, Stations};
use penstock_core::fact::Fact;
use penstock_core::packet::{Packet, TcpView};
use penstock_core::qdisc::{Backlog, DropReason, PacketObserver, Qdisc, Stats};
use penstock_core::registry::{AnyConfig, AnyQdisc, tree};
use penstock_core::rng::Rng;
use penstock_core::units::{Instant, Limit, Rate, Serializer, Span};
use queue::Queue;
use std::collections::VecDeque;

/// The settings of a bottleneck.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The discipline; it must have been validated.
    pub aqm: AnyConfig,
    /// Rate of the wire, in bits of IP packets per second.
    pub rate: Rate,
    /// One-way delay after the last bit of a packet was sent.
    pub delay: Span,
    /// Limit of the queue, without the packet in transmission.
    pub limit: Limit,
}

/// Largest number of replaced disciplines that may hold packets at a time.
pub const MOST_REPLACED: usize = 16;

/// Why a discipline cannot be replaced while packets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Irreplaceable {
    /// The discipline keeps state of connections.
    #[error("the discipline keeps state of each connection, which a new one would not have; start a new run")]
    Connections,
    /// Too many earlier ones still hold packets.
    #[error("{MOST_REPLACED} earlier queues still hold packets; try again when they are empty")]
    Busy,
}

/// Packets were lost or duplicated: the counters do not balance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unbalanced {
    /// The counters of the queue do not balance; the text is that of the discipline.
    #[error("{0}")]
    Queue(String),
    /// The counters of the wire do not balance.
    #[error("conservation is broken: {sent} packets sent, {delivered} delivered, {lost} lost, {in_flight} in flight")]
    Wire {
        /// Number of packets that left the queue.
        sent: u64,
        /// Number of packets that were delivered.
        delivered: u64,
        /// Number of packets that the wire lost.
        lost: u64,
        /// Number of packets between the two.
        in_flight: u64,
    },
}

/// A packet that leaves the bottleneck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery<P> {
    /// When the packet should leave; the caller may be late.
    pub due: Instant,
    /// The packet with its bytes.
    pub packet: P,
}

/// A queue discipline followed by a wire and a delay line.
#[derive(Debug)]
pub struct Bottleneck<P: Packet> {
    queue: Queue<P>,
    /// Queues that were replaced and still hold packets, the oldest first. Their packets leave before all others.
    replaced: VecDeque<Queue<P>>,
    /// The counters of queues that were replaced and are empty.
    past: Stats,
    sees_segments: bool,
    rng: Rng,
    wire: Serializer,
    loss: Option<Loss>,
    delay: Span,
    /// True while a packet is on the wire, which is until `busy_until`.
    transmitting: bool,
    busy_until: Instant,
    /// The delay of the packet on the wire, which is the last one in flight; `None` if the wire loses it.
    carries: Option<Span>,
    /// The time for which the wire has been occupied.
    busy: Span,
    in_flight: VecDeque<Delivery<P>>,
    delivered: Backlog,
    sojourn: Spans,
    records: Records<P>,
}

impl<P: Packet> Bottleneck<P> {
    /// Creates an idle bottleneck.
    pub fn new(config: &Config, rng: Rng) -> Self {
        let qdisc = config.aqm.build(&LinkFacts { rate: config.rate, limit: config.limit });
        Self {
            sees_segments: qdisc.sees_segments(),
            queue: Queue::new(qdisc, &config.aqm, config.limit),
            replaced: VecDeque::new(),
            past: Stats::default(),
            rng,
            wire: Serializer::new(config.rate),
            loss: None,
            delay: config.delay,
            transmitting: false,
            busy_until: Instant::ZERO,
            carries: None,
            busy: Span::ZERO,
            in_flight: VecDeque::new(),
            delivered: Backlog::default(),
            sojourn: Spans::new(),
            records: Records { journal: None, tap: None, log: None },
        }
    }

    /// Keeps a journal of the fate of each packet from now on, which costs 40 bytes of memory per packet.
    pub fn keep_journal(&mut self) {
        self.records.journal.get_or_insert_default();
    }

    /// Keeps the headers and the fate of each packet from now on, which costs 160 bytes of memory per packet. `bytes` returns
    /// the bytes of a packet from its IP header on.
    pub fn keep_tap(&mut self, bytes: fn(&P) -> &[u8]) {
        self.records.tap = Some(Tap::new(bytes));
    }

    /// Keeps a log of the link from now on, in which each packet has up to three entries of 40 bytes.
    pub fn keep_log(&mut self) {
        self.records.log.get_or_insert_default();
    }

    /// Returns the log, to take events out; `None` if none is kept.
    pub fn log_mut(&mut self) -> Option<&mut LinkLog> {
        self.records.log.as_mut()
    }

    /// Returns the tap, to take packets out; `None` if none is kept.
    pub fn tap_mut(&mut self) -> Option<&mut Tap<P>> {
        self.records.tap.as_mut()
    }

    /// Loses each packet on the wire with this probability, within [0, 1], from now on. `rng` is a random stream of its
    /// own.
    pub fn lose(&mut self, probability: f64, rng: Rng) {
        let (lost, stations) = self.loss.take().map_or((0, None), |loss| (loss.lost, loss.stations));
        let loss = self.loss.insert(Loss::new(probability, rng));
        (loss.lost, loss.stations) = (lost, stations);
    }

    /// Puts stations behind the wire, and tells the discipline their channels. A lost packet was sent and took its time.
    /// Must be called after [`Bottleneck::lose`], and before the first packet.
    pub fn serve(&mut self, stations: Option<Box<Stations>>) {
        if let Some(loss) = &mut self.loss {
            loss.stations = stations;
        }
        self.tell_channels(Instant::ZERO);
    }

    /// Returns how many stations are behind the wire.
    pub fn stations(&self) -> usize {
        self.loss.as_ref().and_then(|loss| loss.stations.as_ref()).map_or(0, |stations| stations.count())
    }

    /// Gives the stations other channels, one for each, whose time 0 is now. Must be called after [`Bottleneck::poll`] has
    /// returned `None` for this `now`.
    pub fn set_stations<F: PacketObserver<P>>(&mut self, channels: Vec<Channel>, now: Instant, fates: &mut F) {
        if let Some(stations) = self.loss.as_mut().and_then(|loss| loss.stations.as_mut()) {
            stations.begin(channels, now);
        }
        self.tell_channels(now);
        // A discipline may have waited for a better channel.
        if !self.transmitting && self.backlog().packets > 0 {
            self.start_next(now, fates);
        }
    }

    /// Tells all disciplines all channels.
    fn tell_channels(&mut self, now: Instant) {
        let (replaced, queue) = (&mut self.replaced, &mut self.queue);
        if let Some(stations) = self.loss.as_ref().and_then(|loss| loss.stations.as_ref()) {
            stations.tell(|station, loss| {
                let queues = replaced.iter_mut().chain(std::iter::once(&mut *queue));
                queues.for_each(|queue| queue.qdisc.on_fact(&Fact::Channel { station, loss }, now));
            });
        }
    }

    /// Lets the channels of stations change up to `now`, and tells the disciplines those that have. An owner whose wire may
    /// be idle for long calls it now and then, so that little is left to do when a packet comes.
    pub fn look_at_channels(&mut self, now: Instant) {
        let Some(stations) = self.loss.as_mut().and_then(|loss| loss.stations.as_mut()) else { return };
        let (replaced, queue) = (&mut self.replaced, &mut self.queue);
        stations.advance(now, |station, loss| {
            let queues = replaced.iter_mut().chain(std::iter::once(&mut *queue));
            queues.for_each(|queue| queue.qdisc.on_fact(&Fact::Channel { station, loss }, now));
        });
    }

    /// Returns when a channel changes next, at which a discipline that holds packets from an idle wire is asked again.
    fn next_channel(&self) -> Option<Instant> {
        let stations = self.loss.as_ref()?.stations.as_ref()?;
        if self.transmitting || self.backlog().packets == 0 { None } else { stations.next_change() }
    }

    /// Changes the probability of loss. Does nothing before [`Bottleneck::lose`] has told the random stream.
    pub fn set_loss(&mut self, probability: f64) {
        if let Some(loss) = &mut self.loss {
            loss.set(probability);
        }
    }

    /// Returns the probability with which the wire loses a packet.
    pub fn loss(&self) -> f64 {
        self.loss.as_ref().map_or(0.0, Loss::probability)
    }

    /// Changes the rate of the wire, and tells the discipline. What is left of a packet that is being transmitted is sent at
    /// the new rate: one that kept the rate of an outage would block the wire for long after it. Must be called after
    /// [`Bottleneck::poll`] has returned `None` for this `now`.
    pub fn set_rate(&mut self, rate: Rate, now: Instant) {
        let before = std::mem::replace(&mut self.wire, Serializer::new(rate)).rate();
        if self.transmitting {
            self.send_rest(before, now);
        }
        if let Some(log) = &mut self.records.log {
            log.rate(rate, self.busy_until, now);
        }
        self.queues().for_each(|queue| queue.qdisc.on_fact(&Fact::Rate(rate), now));
    }

    /// Sends what is left of the packet on the wire, whose rate was `before`, at the present rate.
    fn send_rest(&mut self, before: Rate, now: Instant) {
        let rest = self.busy_until.since(now);
        let left = rest.at_rate(before, self.wire.rate()).max(Span::from_nanos(1)); // nothing is due at `now`
        (self.busy_until, self.busy) = (now + left, self.busy - rest + left);
        let Some(delay) = self.carries else { return };
        let mut latest = self.in_flight.iter_mut().rev();
        if let Some(last) = latest.next() {
            let earlier = latest.next().map_or(Instant::ZERO, |d| d.due);
            last.due = earlier.max(self.busy_until + delay);
        }
    }

    /// Changes the delay of the packets whose transmission begins later. They do not overtake those before them.
    pub fn set_delay(&mut self, delay: Span) {
        self.delay = delay;
    }

    /// Puts a new discipline in the place of the present one, without losing a packet: those that wait stay in the old
    /// one, whose parameters hold for them, and leave before all that arrive from now on. Must be called after
    /// [`Bottleneck::poll`] has returned `None` for this time.
    ///
    /// # Errors
    /// Refuses, and changes nothing, if the old or the new discipline keeps state of connections, which would be lost,
    /// or if [`MOST_REPLACED`] old ones still hold packets.
    pub fn replace(&mut self, aqm: &AnyConfig, limit: Limit, now: Instant) -> Result<(), Irreplaceable> {
        let qdisc = self.successor(aqm, limit)?;
        let old = std::mem::replace(&mut self.queue, Queue::new(qdisc, aqm, limit));
        self.replaced.push_back(old);
        self.tell_channels(now);
        self.forget_empty();
        Ok(())
    }

    /// Goes on with other subscribers, if the discipline is a tree and is to be one; returns whether it was. No packet is lost.
    /// Must be called after [`Bottleneck::poll`] has returned `None` for this `now`.
    pub fn change_tree<F: PacketObserver<P>>(
        &mut self,
        aqm: &AnyConfig,
        limit: Limit,
        now: Instant,
        fates: &mut F,
    ) -> bool {
        let (AnyQdisc::Tree(tree), AnyConfig::Tree(config)) = (&mut self.queue.qdisc, aqm) else { return false };
        tree.change(config, limit, now);
        self.queue.built = (aqm.clone(), limit);
        self.queue.woken = None;
        // A ceiling that held all packets may be gone.
        if !self.transmitting {
            self.start_next(now, fates);
        }
        true
    }

    /// Returns the settings of the subscribers, and what each has; `None` if the discipline is no tree.
    pub fn tree(&self) -> Option<(&tree::Config, impl Iterator<Item = tree::Account<'_>>)> {
        let AnyQdisc::Tree(tree) = &self.queue.qdisc else { return None };
        Some((tree.config(), tree.accounts()))
    }

    /// Reads back what holds for packets that arrive now.
    ///
    /// # Errors
    /// Returns what is not as these settings say, as a sentence.
    pub fn read_back(&self, meant: &Config) -> Result<(), String> {
        let (rate, (aqm, limit)) = (self.wire.rate(), &self.queue.built);
        if rate != meant.rate {
            return Err(format!("the rate is {rate} and not {}", meant.rate));
        }
        if *limit != meant.limit {
            return Err(format!("the limit is {limit} and not {}", meant.limit));
        }
        match (&self.queue.qdisc, &meant.aqm) {
            (AnyQdisc::Tree(tree), AnyConfig::Tree(config)) => tree
                .differs_from(config, meant.limit)
                .map_or(Ok(()), |name| Err(format!("the subscriber {name:?} has other settings than were meant"))),
            (_, wanted) if aqm == wanted => Ok(()),
            (_, wanted) => {
                Err(format!("the discipline is {} with other parameters, or not {}", aqm.name(), wanted.name()))
            }
        }
    }

    /// Checks whether [`Bottleneck::replace`] would put this discipline in the place of the present one.
    ///
    /// # Errors
    /// Refuses what it would refuse.
    pub fn may_replace(&self, aqm: &AnyConfig, limit: Limit) -> Result<(), Irreplaceable> {
        self.successor(aqm, limit).map(drop)
    }

    fn successor(&self, aqm: &AnyConfig, limit: Limit) -> Result<AnyQdisc<Stamped<P>>, Irreplaceable> {
        let qdisc = aqm.build(&LinkFacts { rate: self.wire.rate(), limit });
        if self.sees_segments || qdisc.sees_segments() {
            return Err(Irreplaceable::Connections);
        }
        if self.replaced.len() < MOST_REPLACED { Ok(qdisc) } else { Err(Irreplaceable::Busy) }
    }

    /// Returns the rate of the wire.
    pub fn rate(&self) -> Rate {
        self.wire.rate()
    }

    /// Returns whether the discipline keeps state of connections, so that it cannot be replaced.
    pub fn keeps_connections(&self) -> bool {
        self.sees_segments
    }

    /// Returns whether there is room for one more replaced discipline with packets.
    pub fn can_replace(&self) -> bool {
        self.replaced.len() < MOST_REPLACED
    }

    /// Forgets the oldest replaced queues that are empty, except their counters.
    fn forget_empty(&mut self) {
        while let Some(old) = self.replaced.pop_front_if(|old| old.qdisc.backlog().packets == 0) {
            self.past = sum(&self.past, old.qdisc.stats());
        }
    }

    fn queues(&mut self) -> impl Iterator<Item = &mut Queue<P>> {
        self.replaced.iter_mut().chain(std::iter::once(&mut self.queue))
    }

    /// Returns what the discipline divides its rate among.
    pub fn elements(&self) -> &impl AckPath {
        &self.queue.qdisc
    }

    /// Returns the journal; `None` if none is kept.
    pub fn journal(&self) -> Option<&Journal> {
        self.records.journal.as_ref()
    }

    /// Returns the journal, to take entries out; `None` if none is kept.
    pub fn journal_mut(&mut self) -> Option<&mut Journal> {
        self.records.journal.as_mut()
    }

    /// Tells the discipline a fact.
    pub fn on_fact(&mut self, fact: &Fact, now: Instant) {
        let stations = self.loss.as_mut().and_then(|loss| loss.stations.as_mut());
        if let (Fact::Class { flow, class }, Some(stations)) = (fact, stations) {
            stations.set_class(flow.0, *class);
        }
        self.queues().for_each(|queue| queue.qdisc.on_fact(fact, now));
    }

    /// True if the discipline takes classes for codepoints of Diffserv.
    pub fn reads_codepoints(&self) -> bool {
        self.queue.qdisc.reads_codepoints()
    }

    /// Takes a packet. Must be called after [`Bottleneck::poll`] has returned `None` for this `now`, so that events
    /// stay in order.
    pub fn arrive<F: PacketObserver<P>>(&mut self, packet: P, now: Instant, fates: &mut F) {
        self.arrive_since(packet, now, now, fates);
    }

    /// Does what [`Bottleneck::arrive`] does with a packet that has waited in another queue `since` this time, which counts
    /// for its sojourn.
    pub fn arrive_since<F: PacketObserver<P>>(&mut self, mut packet: P, since: Instant, now: Instant, fates: &mut F) {
        debug_assert!(self.next_event().is_none_or(|at| at > now), "poll until there is nothing due, then arrive");
        if self.sees_segments
            && let Some(segment) = packet.tcp()
        {
            self.queue.qdisc.outbound(segment, now);
        }
        self.records.arrived(&packet, now);
        // The verdict is counted in the statistics and passed to `fates`.
        let mut fate = Unstamped(fates, &mut self.records);
        let _ = self.queue.qdisc.enqueue(Stamped { packet, since, marked: false }, now, &mut self.rng, &mut fate);
        if !self.transmitting {
            self.start_next(now, fates);
        }
    }

    /// Records a packet that another queue before this one has dropped. The queue had it `since` this time; at the latest it
    /// was dropped at `now`. What is dropped on arrival has not waited.
    pub fn note_dropped(&mut self, packet: P, since: Instant, now: Instant, reason: DropReason) -> P {
        let at = if reason == DropReason::Dequeue { now } else { since };
        let stamped = Stamped { packet, since, marked: false };
        self.records.dropped(&stamped, reason, at);
        stamped.packet
    }

    /// Shows the discipline a segment that comes back from the far side.
    pub fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        if self.sees_segments {
            self.queue.qdisc.inbound(segment, now);
        }
    }

    /// Returns when [`Bottleneck::poll`] next has something to do; the answer changes only when packets come, in
    /// `poll`, and with changes of settings.
    pub fn next_event(&self) -> Option<Instant> {
        let delivery = self.in_flight.front().map(|d| d.due);
        let transmitted = self.transmitting.then_some(self.busy_until);
        [delivery, transmitted, self.next_wakeup(), self.next_channel()].into_iter().flatten().min()
    }

    /// Returns when the owner must call [`Bottleneck::poll`] at the latest, so that no packet is late. Ends of transmissions
    /// and timers before that may wait: `poll` handles each at its own time and in order.
    pub fn next_due(&self) -> Option<Instant> {
        self.in_flight.front().map(|d| d.due).or_else(|| self.next_event())
    }

    /// Handles all events up to `now` or up to the next packet that is due, which it returns. Must be called again
    /// until it returns `None`.
    pub fn poll<F: PacketObserver<P>>(&mut self, now: Instant, fates: &mut F) -> Option<Delivery<P>> {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            if self.in_flight.front().is_some_and(|d| d.due <= at) {
                let delivery = self.in_flight.pop_front();
                delivery.iter().for_each(|d| self.delivered.add(d.packet.size()));
                return delivery;
            }
            self.step(at, fates);
        }
        None
    }

    /// Handles the timer of the discipline, the end of a transmission, or both.
    fn step<F: PacketObserver<P>>(&mut self, at: Instant, fates: &mut F) {
        // Every queue that is due is woken, so `any` would be wrong.
        let woken = self.queues().filter_map(|queue| queue.wake(at).then_some(())).count() > 0;
        let woken = woken || self.next_channel().is_some_and(|change| change <= at);
        if woken && !self.transmitting && self.backlog().packets > 0 {
            self.start_next(at, fates);
        }
        if self.transmitting && self.busy_until <= at {
            self.start_next(at, fates);
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let replaced = self.replaced.iter().filter_map(Queue::next_wakeup).min();
        [replaced, self.queue.next_wakeup()].into_iter().flatten().min()
    }

    /// Asks the discipline for a packet and begins to transmit it.
    fn start_next<F: PacketObserver<P>>(&mut self, now: Instant, fates: &mut F) {
        self.look_at_channels(now);
        let next = self.dequeue(now, fates);
        self.transmitting = next.is_some();
        if let Some(stamped) = next {
            let lost = self.loss.as_mut().is_some_and(|loss| loss.strikes(stamped.flow().0));
            let transmission = self.wire.send(stamped.size());
            self.busy_until = now + transmission;
            self.busy = self.busy + transmission;
            self.records.sent(&stamped, lost, self.busy_until, now);
            let Stamped { packet, since, .. } = stamped;
            self.sojourn.record(now.since(since));
            self.carries = (!lost).then_some(self.delay);
            if !lost {
                let last = self.in_flight.back().map_or(Instant::ZERO, |d| d.due);
                self.in_flight.push_back(Delivery { due: last.max(self.busy_until + self.delay), packet });
            }
        }
    }

    /// Takes the next packet out of the oldest queue that gives one. One that holds its packets back until a time is waited
    /// for; one that refuses because of the channels is passed over.
    fn dequeue<F: PacketObserver<P>>(&mut self, now: Instant, fates: &mut F) -> Option<Stamped<P>> {
        let mut next = None;
        for queue in self.replaced.iter_mut().chain(std::iter::once(&mut self.queue)) {
            next = queue.qdisc.dequeue(now, &mut self.rng, &mut Unstamped(fates, &mut self.records));
            if next.is_some() || queue.qdisc.backlog().packets > 0 && queue.qdisc.next_wakeup().is_some() {
                break;
            }
        }
        self.forget_empty();
        next
    }

    /// Returns the counters of the discipline, with those of disciplines that it replaced.
    pub fn stats(&self) -> Stats {
        let past = self.replaced.iter().fold(self.past, |all, old| sum(&all, old.qdisc.stats()));
        sum(&past, self.queue.qdisc.stats())
    }

    /// Returns what waits in the queue.
    pub fn backlog(&self) -> Backlog {
        self.replaced.iter().fold(self.queue.qdisc.backlog(), |all, old| plus(all, old.qdisc.backlog()))
    }

    /// Returns since when the wire has been idle; `None` while it transmits.
    pub fn idle_since(&self) -> Option<Instant> {
        (!self.transmitting).then_some(self.busy_until)
    }

    /// Returns the time for which the wire has been occupied, up to the end of the present transmission.
    pub fn busy(&self) -> Span {
        self.busy
    }

    /// Returns the number of packets and bytes that `poll` has delivered.
    pub fn delivered(&self) -> Backlog {
        self.delivered
    }

    /// Returns the number of packets that the wire lost.
    pub fn lost(&self) -> u64 {
        self.loss.as_ref().map_or(0, |loss| loss.lost)
    }

    /// Returns the sojourn times, from arrival to the first bit on the wire.
    pub fn sojourn(&self) -> &Spans {
        &self.sojourn
    }

    /// Checks that the queue and the wire have neither lost nor duplicated packets.
    ///
    /// # Errors
    /// Returns the counters that do not balance.
    pub fn check(&self) -> Result<(), Unbalanced> {
        self.stats().check(self.backlog()).map_err(|e| Unbalanced::Queue(e.to_string()))?;
        let (sent, delivered) = (self.stats().sent.packets, self.delivered.packets);
        let (lost, in_flight) = (self.lost(), self.in_flight.len() as u64);
        if sent == delivered + lost + in_flight {
            return Ok(());
        }
        Err(Unbalanced::Wire { sent, delivered, lost, in_flight })
    }
}

fn plus(a: Backlog, b: Backlog) -> Backlog {
    Backlog { packets: a.packets + b.packets, bytes: a.bytes + b.bytes }
}

/// Returns the counters of two disciplines together.
fn sum(a: &Stats, b: &Stats) -> Stats {
    Stats {
        arrived: plus(a.arrived, b.arrived),
        sent: plus(a.sent, b.sent),
        dropped_early: plus(a.dropped_early, b.dropped_early),
        dropped_forced: plus(a.dropped_forced, b.dropped_forced),
        dropped_overflow: plus(a.dropped_overflow, b.dropped_overflow),
        dropped_dequeue: plus(a.dropped_dequeue, b.dropped_dequeue),
        marked: plus(a.marked, b.marked),
        taken_out: plus(a.taken_out, b.taken_out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::aqm::Meta;
    use penstock_core::aqm::foreign::{Config as Foreign, ForeignAqm, MakeAqm};
    use penstock_core::qdisc::Verdict;
    use penstock_core::rng::Streams;
    use penstock_core::units::Bytes;
    use penstock_core::wire::RealPacket;
    use serde_json::Map;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// An AQM of somebody's own that wants to be woken at 1 ms and does not note that it was. It counts how often it is woken
    /// and how often its empty queue is asked.
    #[derive(Debug, Clone, Default)]
    struct Sleeper(Arc<[AtomicU32; 2]>);

    impl ForeignAqm for Sleeper {
        fn on_enqueue(&mut self, _: &Meta, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
            Verdict::Pass
        }
        fn on_dequeue(&mut self, _: &Meta, _: Span, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
            Verdict::Pass
        }
        fn on_empty(&mut self, _: Instant) {
            self.0[1].fetch_add(1, Ordering::Relaxed);
        }
        fn next_wakeup(&self) -> Option<Instant> {
            Some(Instant::ZERO + Span::from_millis(1))
        }
        fn on_wakeup(&mut self, _: Backlog, _: Instant) {
            self.0[0].fetch_add(1, Ordering::Relaxed);
        }
        fn on_fact(&mut self, _: &Fact, _: Instant) {}
        fn copy(&self) -> Box<dyn ForeignAqm> {
            Box::new(self.clone())
        }
    }

    impl MakeAqm for Sleeper {
        fn make(&self, _: &LinkFacts) -> Box<dyn ForeignAqm> {
            Box::new(self.clone())
        }
    }

    fn bottleneck(aqm: AnyConfig) -> Bottleneck<RealPacket> {
        let rate = Rate::from_bps(1_000_000);
        let config = Config { aqm, rate, delay: Span::ZERO, limit: Limit::Packets(10) };
        Bottleneck::new(&config, Streams::new(1).get("test"))
    }

    #[test]
    fn a_discipline_is_woken_once_for_each_time_and_not_asked_while_it_is_empty() {
        let sleeper = Sleeper::default();
        let config = Foreign::new("sleeper", Map::new(), Arc::new(sleeper.clone()));
        let mut bottleneck = bottleneck(AnyConfig::Foreign(config));
        let at = Instant::ZERO + Span::from_millis(1);
        assert!(bottleneck.queue.wake(at) && !bottleneck.queue.wake(at));
        bottleneck.queue.woken = None;
        bottleneck.step(at, &mut ());
        let counted = [0, 1].map(|i| sleeper.0[i].load(Ordering::Relaxed));
        assert_eq!(counted, [2, 0], "woken, asked");
    }

    #[test]
    fn a_packet_too_many_or_too_few_is_noticed() {
        let mut bottleneck = bottleneck(penstock_core::settings::config_from_settings("droptail", &[]).unwrap());
        assert_eq!(bottleneck.check(), Ok(()));
        bottleneck.delivered.add(Bytes::new(1500));
        let wrong = Unbalanced::Wire { sent: 0, delivered: 1, lost: 0, in_flight: 0 };
        assert_eq!(bottleneck.check(), Err(wrong));
    }
}
