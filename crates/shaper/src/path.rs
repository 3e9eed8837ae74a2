//! The path between left and right in both directions. The discipline of each direction stands before its link and can
//! also see the segments which the opposite direction delivers there: the ACKs of its own traffic.

use crate::bottleneck::{Bottleneck, Config, Delivery};
use crate::classify::PacketFacts;
use crate::direction::Direction;
use crate::tap::Taps;
use penstock_core::csi::{Channel, Stations};
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
        let mut path = Self([
            Bottleneck::new(forward, streams.get("forward/aqm")),
            Bottleneck::new(reverse, streams.get("reverse/aqm")),
        ]);
        path.0[0].lose(0.0, streams.get("forward/loss"));
        path.0[1].lose(0.0, streams.get("reverse/loss"));
        path
    }

    /// Puts stations with these channels behind the wire from left to right. Call it before the first packet.
    pub fn serve(&mut self, channels: Vec<Channel>, streams: Streams) {
        let stream = |of: &str| streams.get(&format!("forward/{of}"));
        self.0[0].serve(Stations::new(channels, stream("channels"), stream("stations")));
    }

    /// Returns the bottleneck of a direction.
    pub fn direction(&self, direction: Direction) -> &Bottleneck<P> {
        &self.0[direction.index()]
    }

    /// Returns the bottleneck of a direction, to change its settings.
    pub fn direction_mut(&mut self, direction: Direction) -> &mut Bottleneck<P> {
        &mut self.0[direction.index()]
    }

    /// Keeps a journal of the fate of each packet from now on, in both directions.
    pub fn keep_journals(&mut self) {
        self.0.iter_mut().for_each(Bottleneck::keep_journal);
    }

    /// Keeps the headers and the fate of each packet from now on, in both directions.
    pub fn keep_taps(&mut self, bytes: fn(&P) -> &[u8]) {
        self.0.iter_mut().for_each(|bottleneck| bottleneck.keep_tap(bytes));
    }

    /// Returns the number of packets that the taps of both directions hold; `None` if there are none.
    pub fn tapped(&mut self) -> Option<usize> {
        self.0.iter_mut().map(|bottleneck| bottleneck.tap_mut().map(|tap| tap.len())).sum()
    }

    /// Exchanges what the taps hold for what the sheet holds.
    pub fn swap_taps(&mut self, sheet: &mut Taps) {
        for (at, bottleneck) in self.0.iter_mut().enumerate() {
            bottleneck.tap_mut().iter_mut().for_each(|tap| tap.swap(sheet, at));
        }
    }

    /// Tells both disciplines the facts that come with a packet. Call this before the packet arrives.
    pub fn tell(&mut self, facts: &PacketFacts, now: Instant) {
        for direction in Direction::BOTH {
            let bottleneck = &mut self.0[direction.index()];
            let codepoints = bottleneck.reads_codepoints();
            facts.told(direction, codepoints).for_each(|fact| bottleneck.on_fact(&fact, now));
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
                    self.0[direction.opposite().index()].inbound(segment, delivery.due);
                }
                return Some((direction, delivery));
            }
        }
    }
}
