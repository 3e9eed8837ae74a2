//! One direction of a bottleneck in virtual time: a server with a queue discipline and a wire, and a delay line.
//!
//! Sans-IO: the caller passes the time and moves the packets. A late caller delivers packets late but never slows the wire.

use crate::histogram::Spans;
use crate::log::Event;
use crate::records::{Records, Stamped};
use penstock_core::ack::AckPath;
use penstock_core::config::LinkFacts;
use penstock_core::csi::Channel;
use penstock_core::impair::{Arrival, Behind, Impairments, Policer};
use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::{Packet, TcpView};
use penstock_core::qdisc::{Backlog, DropReason, PacketObserver};
use penstock_core::registry::tree::Tree;
use penstock_core::registry::{AnyConfig, AnyQdisc};
use penstock_core::rng::Rng;
use penstock_core::server::{Observer, Server};
use penstock_core::units::{Instant, Limit, Rate, Span};
use std::collections::VecDeque;

/// The settings of a bottleneck.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The discipline; it must have been validated.
    pub aqm: AnyConfig,
    /// Rate of the wire, in bits per second: of IP packets, and of what `layer` adds to them.
    pub rate: Rate,
    /// What the link adds to each packet.
    pub layer: LinkLayer,
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
    /// Too many earlier ones still hold packets.
    #[error("{MOST_REPLACED} earlier queues still hold packets; try again when they are empty")]
    Busy,
}

/// A packet that leaves the bottleneck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery<P> {
    /// When the packet should leave; the caller may be late.
    pub due: Instant,
    /// The packet with its bytes.
    pub packet: P,
    /// True if it arrives twice: a copy follows at once.
    pub twice: bool,
}

/// A queue discipline followed by a wire and a delay line.
#[derive(Debug)]
pub struct Bottleneck<P: Packet> {
    /// The discipline and the wire: to be asked, and told facts. Packets enter by [`Bottleneck::arrive`].
    pub server: Server<Stamped<P>, AnyQdisc<Stamped<P>>>,
    /// What the present discipline was built of.
    built: (AnyConfig, Limit),
    sees_segments: bool,
    /// Drops packets before the queue; `None` for a link that does not police.
    pub policer: Option<Policer>,
    /// What is behind the wire.
    pub line: Line<P>,
}

impl<P: Packet> Bottleneck<P> {
    /// Creates an idle bottleneck.
    pub fn new(config: &Config, rng: Rng) -> Self {
        let rate = config.layer.of_packets(config.rate);
        let qdisc = config.aqm.build(&LinkFacts { rate, limit: config.limit });
        Self {
            sees_segments: qdisc.sees_segments(),
            server: Server::new(qdisc, config.rate, rng).over(config.layer),
            built: (config.aqm.clone(), config.limit),
            policer: None,
            line: Line {
                delay: config.delay,
                impaired: None,
                last: Instant::ZERO,
                carries: None,
                in_flight: VecDeque::new(),
                delivered: Backlog::default(),
                sojourn: Spans::default(),
                records: Records { journal: None, tap: None, log: None },
            },
        }
    }

    /// Gives the stations other channels, one for each, whose time 0 is now. Must be called after [`Bottleneck::poll`] has
    /// returned `None` for this `now`.
    pub fn set_stations<F: PacketObserver<P>>(&mut self, channels: Vec<Channel>, now: Instant, fates: &mut F) {
        self.server.set_channels(channels, now, &mut Fates(fates, &mut self.line));
    }

    /// Changes the rate of the wire at once ([`Server::set_rate`]), and tells the discipline. Must be called after
    /// [`Bottleneck::poll`] has returned `None` for this `now`.
    pub fn set_rate(&mut self, rate: Rate, now: Instant) {
        let end = self.server.set_rate(rate, now);
        self.goes_on(rate, now, end);
    }

    /// Does what [`Bottleneck::set_rate`] does with the next one of many rates that differ little ([`Server::follow_rate`]).
    pub fn follow_rate(&mut self, rate: Rate, now: Instant) {
        let end = self.server.follow_rate(rate, now);
        self.goes_on(rate, now, end);
    }

    /// Changes from now on what the link does to packets before and behind its queue. Packets in flight arrive as they
    /// would have. `rng` is a random stream of its own.
    pub fn impair(&mut self, impairments: &Impairments, rng: Rng, now: Instant) {
        let dropped = self.policed();
        self.policer = impairments.policer_from(now);
        self.policer.iter_mut().for_each(|policer| policer.dropped = dropped);
        self.server.loss.iter_mut().for_each(|loss| loss.set_rows(impairments.gilbert));
        match (impairments.behind(rng), &mut self.line.impaired) {
            (Some(mut next), before) => {
                before.iter().for_each(|before| next.follow(before));
                *before = Some(next);
            }
            (None, Some(before)) => before.end(),
            (None, None) => {}
        }
    }

    /// Sets the probability with which the wire loses a packet, of a link that may lose one.
    pub fn set_loss(&mut self, probability: f64) {
        self.server.loss.iter_mut().for_each(|loss| loss.set(probability));
    }

    /// Returns the number of packets that a policer dropped.
    pub fn policed(&self) -> u64 {
        self.policer.as_ref().map_or(0, |policer| policer.dropped)
    }

    fn goes_on(&mut self, rate: Rate, now: Instant, end: Instant) {
        self.line.ends(end);
        if let Some(log) = &mut self.line.records.log {
            log.events.push((now, Event::Rate(rate, end)));
        }
    }

    /// Lets the link add other bytes to packets from the next one on ([`Server::set_layer`]).
    pub fn set_layer(&mut self, layer: LinkLayer, now: Instant) {
        self.server.set_layer(layer, now);
    }

    /// Puts a new discipline in the place of the present one, without losing a packet: those that wait stay in the old
    /// one, whose parameters hold for them, and leave before all that arrive from now on. Must be called after
    /// [`Bottleneck::poll`] has returned `None` for this time. A new one that keeps state of connections has seen none
    /// of those that are open: for it they are such whose start it did not see. Refuses, and changes nothing, if
    /// [`MOST_REPLACED`] old ones still hold packets.
    pub fn replace(&mut self, aqm: &AnyConfig, limit: Limit, now: Instant) -> Result<(), Irreplaceable> {
        let qdisc = self.successor(aqm, limit)?;
        self.sees_segments = qdisc.sees_segments();
        self.server.replace(qdisc, now);
        self.built = (aqm.clone(), limit);
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
        let (AnyQdisc::Tree(tree), AnyConfig::Tree(config)) = (self.server.qdisc_mut(), aqm) else { return false };
        tree.change(config, limit, now);
        self.built = (aqm.clone(), limit);
        // A ceiling that held all packets may be gone.
        self.server.go_on(now, &mut Fates(fates, &mut self.line));
        true
    }

    /// Returns the discipline if it is a tree of subscribers.
    pub fn tree(&self) -> Option<&Tree<Stamped<P>>> {
        if let AnyQdisc::Tree(tree) = self.server.qdisc() { Some(tree) } else { None }
    }

    /// Reads back what holds for packets that arrive now. The error says what is not as these settings say.
    pub fn read_back(&self, meant: &Config) -> Result<(), String> {
        let (rate, (aqm, limit)) = (self.server.rate(), &self.built);
        if rate != meant.rate {
            return Err(format!("the rate is {rate} and not {}", meant.rate));
        }
        if self.server.layer() != meant.layer {
            return Err("the link adds other bytes to packets than were meant".into());
        }
        if *limit != meant.limit {
            return Err(format!("the limit is {limit} and not {}", meant.limit));
        }
        match (self.server.qdisc(), &meant.aqm) {
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
    pub fn may_replace(&self, aqm: &AnyConfig, limit: Limit) -> Result<(), Irreplaceable> {
        self.successor(aqm, limit).map(drop)
    }

    fn successor(&self, aqm: &AnyConfig, limit: Limit) -> Result<AnyQdisc<Stamped<P>>, Irreplaceable> {
        let rate = self.server.layer().of_packets(self.server.rate());
        let qdisc = aqm.build(&LinkFacts { rate, limit });
        if self.server.replaced() < MOST_REPLACED { Ok(qdisc) } else { Err(Irreplaceable::Busy) }
    }

    /// Returns whether the discipline keeps state of connections, which another one in its place would not have.
    pub fn keeps_connections(&self) -> bool {
        self.sees_segments
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
        if let Some(policer) = &mut self.policer
            && !policer.conforms(packet.size(), now)
        {
            // It is no drop of the queue; its owner takes it back.
            return fates.dropped(packet, DropReason::Overflow, now);
        }
        if self.sees_segments
            && let Some(segment) = packet.tcp()
        {
            self.server.qdisc_mut().outbound(segment, now);
        }
        self.line.records.arrived(&packet, now);
        let mut fates = Fates(fates, &mut self.line);
        self.server.enqueue(Stamped { packet, since, marked: false }, now, &mut fates);
        self.server.ask(now, &mut fates);
    }

    /// Records a packet that another queue before this one has dropped. The queue had it `since` this time; at the latest it
    /// was dropped at `now`. What is dropped on arrival has not waited.
    pub fn note_dropped(&mut self, packet: P, since: Instant, now: Instant, reason: DropReason) -> P {
        let at = if reason == DropReason::Dequeue { now } else { since };
        let stamped = Stamped { packet, since, marked: false };
        self.line.records.dropped(&stamped, reason, at);
        stamped.packet
    }

    /// Shows the discipline a segment that comes back from the far side.
    pub fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        if self.sees_segments {
            self.server.qdisc_mut().inbound(segment, now);
        }
    }

    /// Returns when [`Bottleneck::poll`] next has something to do; the answer changes only when packets come, in
    /// `poll`, and with changes of settings.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        match (self.line.next_due(), self.server.next_event()) {
            (Some(due), Some(event)) => Some(due.min(event)),
            (due, event) => due.or(event),
        }
    }

    /// Returns when the owner must call [`Bottleneck::poll`] at the latest, so that no packet is late. Ends of transmissions
    /// and timers before that may wait: `poll` handles each at its own time and in order.
    pub fn next_due(&self) -> Option<Instant> {
        // The next packet may overtake those in flight, or release them.
        let may_overtake = self.line.impaired.is_some();
        self.line.next_due().filter(|_| !may_overtake).or_else(|| self.next_event())
    }

    /// Handles all events up to `now` or up to the next packet that is due, which it returns. Must be called again
    /// until it returns `None`.
    pub fn poll<F: PacketObserver<P>>(&mut self, now: Instant, fates: &mut F) -> Option<Delivery<P>> {
        loop {
            // A packet that is due goes before what happens in the queue at that time.
            let due = self.line.next_due().unwrap_or(Instant::MAX);
            let end = due.min(now + Span::from_nanos(1));
            if self.server.step(Instant::ZERO, end, &mut Fates(fates, &mut self.line)).is_none() {
                return self.line.deliver(now);
            }
        }
    }

    /// Returns the number of packets that the wire lost.
    pub fn lost(&self) -> u64 {
        self.server.loss.as_ref().map_or(0, |loss| loss.lost)
    }

    /// Checks that the queue and the wire have neither lost nor duplicated packets. The error has the counters that do not
    /// balance.
    pub fn check(&self) -> Result<(), String> {
        let stats = self.server.stats();
        stats.check(self.server.backlog()).map_err(|e| e.to_string())?;
        let (sent, delivered) = (stats.sent.packets, self.line.delivered.packets);
        let (lost, in_flight) = (self.lost(), self.line.in_flight.len() as u64);
        if sent == delivered + lost + in_flight {
            return Ok(());
        }
        let counted = format!("{sent} packets sent, {delivered} delivered, {lost} lost, {in_flight} in flight");
        Err(format!("conservation is broken: {counted}"))
    }
}

/// What is behind the queue: the delay line, and what is kept of packets.
#[derive(Debug)]
pub struct Line<P> {
    /// The delay of the packets whose transmission begins later. They do not overtake those before them.
    pub delay: Span,
    /// What it does to packets beside delaying them; `None` if that is nothing.
    pub impaired: Option<Behind>,
    /// The latest arrival of a packet without what the link does besides.
    last: Instant,
    /// The delay of the packet on the wire, which is the last one in flight; `None` if the wire loses it, or if packets
    /// may overtake others.
    carries: Option<Span>,
    in_flight: VecDeque<Delivery<P>>,
    /// Packets and bytes that [`Bottleneck::poll`] has delivered.
    pub delivered: Backlog,
    /// Sojourn times, from arrival to the first bit on the wire.
    pub sojourn: Spans,
    /// What is kept of packets.
    pub records: Records<P>,
}

impl<P: Packet> Line<P> {
    fn next_due(&self) -> Option<Instant> {
        self.in_flight.front().map(|d| d.due)
    }

    /// The packet on the wire leaves it at `end`, and not when it was said.
    fn ends(&mut self, end: Instant) {
        let Some(delay) = self.carries else { return };
        let mut latest = self.in_flight.iter_mut().rev();
        if let Some(last) = latest.next() {
            let earlier = latest.next().map_or(Instant::ZERO, |d| d.due);
            last.due = earlier.max(end + delay);
            self.last = last.due;
        }
    }

    /// Takes a packet whose last bit is sent at `end`.
    fn carry(&mut self, packet: P, end: Instant) {
        self.last = self.last.max(end + self.delay);
        let Some(impaired) = &mut self.impaired else {
            self.carries = Some(self.delay);
            return self.in_flight.push_back(Delivery { due: self.last, packet, twice: false });
        };
        let Arrival { at: due, earlier, twice } = impaired.arrival(end, self.last.since(end));
        if let Some((from, to)) = earlier {
            self.in_flight.iter_mut().rev().take_while(|other| other.due == from).for_each(|other| other.due = to);
        }
        let later = self.in_flight.iter().rev().take_while(|other| other.due > due).count();
        self.in_flight.insert(self.in_flight.len() - later, Delivery { due, packet, twice });
    }

    /// Takes out the first packet if it is due at `at`.
    fn deliver(&mut self, at: Instant) -> Option<Delivery<P>> {
        let delivery = self.in_flight.pop_front_if(|d| d.due <= at)?;
        self.delivered.add(delivery.packet.size());
        Some(delivery)
    }
}

/// Passes the fates of stamped packets on without the stamp, after recording them, and sent packets to the line.
struct Fates<'a, P, F>(&'a mut F, &'a mut Line<P>);

impl<P: Packet, F: PacketObserver<P>> PacketObserver<Stamped<P>> for Fates<'_, P, F> {
    fn dropped(&mut self, packet: Stamped<P>, reason: DropReason, now: Instant) {
        self.1.records.dropped(&packet, reason, now);
        self.0.dropped(packet.packet, reason, now);
    }
    fn marked(&mut self, packet: &Stamped<P>, now: Instant) {
        self.0.marked(&packet.packet, now);
    }
}

impl<P: Packet, F: PacketObserver<P>> Observer<Stamped<P>> for Fates<'_, P, F> {
    #[inline]
    fn sent(&mut self, stamped: Stamped<P>, lost: bool, end: Instant, now: Instant) {
        let line = &mut *self.1;
        line.records.sent(&stamped, lost, end, now);
        let Stamped { packet, since, .. } = stamped;
        line.sojourn.record(now.since(since));
        line.carries = None;
        if !lost {
            line.carry(packet, end);
        }
    }
}
