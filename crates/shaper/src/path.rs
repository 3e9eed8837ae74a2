//! The path between left and right in both directions. The discipline of each direction stands before its link and can
//! also see the segments which the opposite direction delivers there: the ACKs of its own traffic.

use crate::bottleneck::{Bottleneck, Config, Delivery};
use crate::classify::PacketFacts;
use crate::direction::Direction;
use crate::tap::Taps;
use penstock_core::csi::{Channel, Loss, Stations};
use penstock_core::fact::Fact;
use penstock_core::impair::Impairments;
use penstock_core::packet::Packet;
use penstock_core::qdisc::PacketObserver;
use penstock_core::rng::Streams;
use penstock_core::units::Instant;

/// A bottleneck for each direction.
#[derive(Debug)]
pub struct Path<P: Packet>([Bottleneck<P>; 2]);

impl<P: Packet> Path<P> {
    /// Creates an idle path.
    pub fn new(forward: &Config, reverse: &Config, streams: Streams) -> Self {
        Self([("forward", forward), ("reverse", reverse)].map(|(name, config)| {
            let mut bottleneck = Bottleneck::new(config, streams.get(&format!("{name}/aqm")));
            bottleneck.server.loss = Some(Loss::new(0.0, streams.get(&format!("{name}/loss"))));
            bottleneck
        }))
    }

    /// Puts stations with these channels behind the wire from left to right. Call it before the first packet. A lost packet
    /// was sent and took its time.
    pub fn serve(&mut self, channels: Vec<Channel>, streams: Streams) {
        let stream = |of: &str| streams.get(&format!("forward/{of}"));
        let server = &mut self.0[0].server;
        if let Some(loss) = &mut server.loss {
            loss.stations = Stations::new(channels, stream("channels"), stream("stations"));
        }
        server.tell_channels(Instant::ZERO);
    }

    /// Changes what the link does to packets of a direction besides. `streams` has the random numbers, `of` names them.
    pub fn impair(
        &mut self,
        direction: Direction,
        impairments: &Impairments,
        streams: Streams,
        of: &str,
        now: Instant,
    ) {
        let name = ["forward", "reverse"][direction.index()];
        self.0[direction.index()].impair(impairments, streams.get(&format!("{name}/{of}")), now);
    }

    /// Returns the bottleneck of a direction.
    pub fn direction(&self, direction: Direction) -> &Bottleneck<P> {
        &self.0[direction.index()]
    }

    /// Returns the bottleneck of a direction, to change its settings.
    pub fn direction_mut(&mut self, direction: Direction) -> &mut Bottleneck<P> {
        &mut self.0[direction.index()]
    }

    /// Exchanges what the taps of both directions hold for what the sheet holds, if that is at least so many packets.
    pub fn swap_taps(&mut self, sheet: &mut Taps, least: usize) -> bool {
        let mut taps = self.0.each_mut().map(|bottleneck| bottleneck.line.records.tap.as_mut());
        let swaps = taps.iter().flatten().map(|tap| tap.entries.len()).sum::<usize>() >= least;
        if swaps {
            let both = taps.iter_mut().flatten().zip(sheet);
            both.for_each(|(tap, way)| std::mem::swap(&mut tap.entries, way));
        }
        swaps
    }

    /// Tells both disciplines the facts that come with a packet. Call this before the packet arrives.
    pub fn tell(&mut self, facts: &PacketFacts, now: Instant) {
        for direction in Direction::BOTH {
            let delay = self.0[direction.opposite().index()].line.delay;
            let server = &mut self.0[direction.index()].server;
            let codepoints = server.qdisc().reads_codepoints();
            facts.told(direction, codepoints).for_each(|fact| match fact {
                // Who took the times saw packets as they came in; the discipline sees those of the other direction as they arrive.
                Fact::Opened(opening) => server.on_fact(&Fact::Opened(opening.shown_later(delay)), now),
                fact => server.on_fact(&fact, now),
            });
        }
    }

    /// Takes a packet that travels in `direction`. Must be called after [`Path::poll`] has returned `None` for this
    /// `now`.
    pub fn arrive<F: PacketObserver<P>>(&mut self, direction: Direction, packet: P, now: Instant, fates: &mut F) {
        self.0[direction.index()].arrive(packet, now, fates);
    }

    /// Returns when [`Path::poll`] next has something to do; `None` if nothing is pending.
    pub fn next_event(&self) -> Option<Instant> {
        self.0.iter().filter_map(Bottleneck::next_event).min()
    }

    /// True if [`Path::poll`] has something to do at `now`.
    pub fn is_due(&self, now: Instant) -> bool {
        self.next_event().is_some_and(|at| at <= now)
    }

    /// Returns when [`Path::poll`] must be called at the latest, so that no packet is late; `None` if nothing is pending.
    pub fn next_due(&self) -> Option<Instant> {
        self.0.iter().filter_map(Bottleneck::next_due).min()
    }

    /// Handles the events of both directions in order, up to `now` or up to the next packet that is due, which it
    /// returns. Must be called again until it returns `None`.
    pub fn poll<F: PacketObserver<P>>(&mut self, now: Instant, fates: &mut F) -> Option<(Direction, Delivery<P>)> {
        loop {
            let next = |d: Direction| self.direction(d).next_event().map(|at| (at, d));
            let (at, direction) = Direction::BOTH.into_iter().filter_map(next).min_by_key(|(at, _)| *at)?;
            if at > now {
                return None;
            }
            if let Some(mut delivery) = self.0[direction.index()].poll(at, fates) {
                if let Some(segment) = delivery.packet.tcp() {
                    let other = &mut self.0[direction.opposite().index()];
                    (0..=u8::from(delivery.twice)).for_each(|_| other.inbound(segment, delivery.due));
                }
                return Some((direction, delivery));
            }
        }
    }
}
