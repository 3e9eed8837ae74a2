//! Access links: those between a host and its router. They have no limit and no queue, so that a packet's whole future on
//! such a link is known when it is given to the link.
//!
//! Packets in flight are not stored link by link: all links whose packets arrive in about the order in which they are sent
//! share a *lane*, one sequence of packets in the order of arrival. Its memory is used from one end to the other, which
//! processors fetch in advance, and only its first packet has an event: with 10,000 hosts the packets of a link would each
//! lie somewhere else.
//!
//! Links share a lane if they have the same rate and delay, belong to hosts of the same side, whose packets are of about the
//! same size, and are fed by the same link, or all by their hosts. Then a packet overtakes few others. A link whose packet would overtake more than [`REACH`] gets a lane of its own, in which no
//! packet overtakes another.

use crate::event::EventQueue;
use crate::numbers::{Layout, LinkDir, Source};
use crate::segment::Segment;
use penstock_core::packet::Packet;
use penstock_core::units::{Instant, Pace, Rate, Span};
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

/// Number of packets that one may overtake in a lane. A burst of a host overtakes what other hosts send meanwhile.
const REACH: usize = 64;

/// What the links of a lane have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The link that feeds them; `None` for those from hosts.
    pub fed_by: Option<LinkDir>,
    /// True for the links of servers.
    pub of_server: bool,
    /// Their rate.
    pub rate: Rate,
    /// Their delay.
    pub delay: Span,
}

/// The wire of one access link.
#[derive(Debug)]
struct Wire {
    busy_until: Instant,
    /// What the division of the time of the last packet left over.
    remainder: u64,
    lane: u32,
}

/// Packets in flight on some access links, in the order of arrival; those of the same time in the order of their links.
#[derive(Debug)]
struct Lane {
    pace: Pace,
    delay: Span,
    packets: VecDeque<Segment>,
    /// Number of links whose packets are stored here.
    links: u32,
}

/// All access links, which follow those of the scenario in the list of links.
#[derive(Debug)]
pub struct AccessLinks {
    layout: Layout,
    /// The place of the first access link.
    first: u32,
    wires: Vec<Wire>,
    lanes: Vec<Lane>,
}

/// Returns the place of the link on which a packet of a lane is, which stands before its next hop.
#[inline]
fn link_of(packet: &Segment, routes: &[u32]) -> u32 {
    routes[packet.cursor as usize - 1]
}

impl AccessLinks {
    /// Bytes of memory of one access link, without packets.
    pub const BYTES_PER_LINK: usize = size_of::<Wire>();

    /// Creates idle links of these kinds, which follow those between routers.
    pub fn new(layout: Layout, kinds: &[Kind]) -> Self {
        let (mut lanes, mut known) = (Vec::<Lane>::new(), BTreeMap::new());
        let mut wire = |kind: &Kind| {
            let lane = *known.entry(*kind).or_insert_with(|| {
                lanes.push(Lane { pace: Pace::new(kind.rate), delay: kind.delay, packets: VecDeque::new(), links: 0 });
                lanes.len() as u32 - 1
            });
            lanes[lane as usize].links += 1;
            Wire { busy_until: Instant::ZERO, remainder: 0, lane }
        };
        let wires = kinds.iter().map(&mut wire).collect();
        Self { layout, first: layout.between_routers() as u32, wires, lanes }
    }

    /// Returns the number of lanes, which grows when one is divided.
    pub fn lanes(&self) -> u32 {
        self.lanes.len() as u32
    }

    /// Returns the delay of the link at this place.
    pub fn delay(&self, place: u32) -> Span {
        self.lanes[self.wires[(place - self.first) as usize].lane as usize].delay
    }

    /// Takes a packet at `now`, which may be later than the time of the run, and which `write` completes in its place.
    /// The hop at `cursor` is the link.
    #[inline(always)]
    pub fn take(
        &mut self,
        cursor: u32,
        now: Instant,
        (routes, events): (&[u32], &mut EventQueue),
        packet: &Segment,
        write: impl FnOnce(&mut Segment),
    ) {
        let place = routes[cursor as usize];
        let wire = &mut self.wires[(place - self.first) as usize];
        let lane = &mut self.lanes[wire.lane as usize];
        let packet = lane.packets.push_back_mut(*packet);
        write(packet);
        wire.busy_until = wire.busy_until.max(now) + lane.pace.send(packet.size(), &mut wire.remainder);
        let at = wire.busy_until + lane.delay;
        (packet.at, packet.cursor) = (at, cursor + 1);
        let last = lane.packets.len() - 1;
        if last == 0 {
            events.set_as(self.layout.source(Source::Lane(wire.lane)), place, at);
        } else if lane.packets[last - 1].at >= at {
            self.overtake(place, (routes, events));
        }
    }

    /// Moves the last packet of a lane, which is on the link at `place`, forward to its turn.
    #[inline(never)]
    fn overtake(&mut self, place: u32, (routes, events): (&[u32], &mut EventQueue)) {
        let wire = &mut self.wires[(place - self.first) as usize];
        let lane = &mut self.lanes[wire.lane as usize];
        let Some(packet) = lane.packets.pop_back() else { return };
        // Which link a packet is on is asked for only if it arrives at the same time: it lies elsewhere in memory.
        let later = |other: &&Segment| match other.at.cmp(&packet.at) {
            Ordering::Equal => link_of(other, routes) > place,
            order => order.is_gt(),
        };
        let overtaken = lane.packets.iter().rev().take(REACH).take_while(later).count();
        if overtaken == REACH && lane.links > 1 {
            lane.links -= 1;
            let lane = Lane { packets: VecDeque::from([packet]), links: 1, ..*lane };
            wire.lane = self.lanes.len() as u32;
            self.lanes.push(lane);
            events.grow_to(self.layout.sources(0, self.lanes.len() as u32));
            return events.set_as(self.layout.source(Source::Lane(wire.lane)), place, packet.at);
        }
        let turn = match overtaken {
            REACH => lane.packets.partition_point(|other| !later(&other)),
            few => lane.packets.len() - few,
        };
        lane.packets.insert(turn, packet);
        if turn == 0 {
            events.set_as(self.layout.source(Source::Lane(wire.lane)), place, packet.at);
        }
    }

    /// Takes the first packet of a lane out of it, if it arrives by `now`, and sets the event of the next one.
    #[inline]
    pub fn arrive(&mut self, lane: u32, now: Instant, (routes, events): (&[u32], &mut EventQueue)) -> Option<Segment> {
        let packets = &mut self.lanes[lane as usize].packets;
        let arrived = packets.pop_front_if(|packet| packet.at <= now);
        if let Some(next) = packets.front() {
            events.set_as(self.layout.source(Source::Lane(lane)), link_of(next, routes), next.at);
        }
        arrived
    }

    /// Removes the packets of these flows that are in flight on the link at this place; returns how many there were.
    pub fn lose_in_flight(&mut self, place: u32, flows: &[u32], routes: &[u32]) -> u64 {
        let mut lost = 0;
        for lane in &mut self.lanes {
            let before = lane.packets.len();
            lane.packets.retain(|packet| link_of(packet, routes) != place || !flows.contains(&packet.flow));
            lost += (before - lane.packets.len()) as u64;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::END;
    use proptest::prelude::*;

    /// Four links after two others, the first three of one kind. The route of link `n` begins at `2 * n`.
    fn links() -> (AccessLinks, Vec<u32>, EventQueue) {
        let (rate, ms) = (Rate::from_bps(8_000_000), Span::from_millis(1));
        let one = Kind { fed_by: None, of_server: false, rate, delay: ms };
        let kinds = [one, one, one, Kind { fed_by: Some(LinkDir::at(0)), ..one }];
        let routes = (2..6).flat_map(|place| [place, END]).collect();
        let layout = Layout::new(1, 1, 1, 0, None, 0);
        let access = AccessLinks::new(layout, &kinds);
        let events = EventQueue::new(layout.sources(0, access.lanes()), Span::from_micros(100));
        (access, routes, events)
    }

    #[test]
    fn links_of_one_kind_share_a_lane() {
        let (access, ..) = links();
        assert_eq!(access.wires.iter().map(|wire| wire.lane).collect::<Vec<_>>(), [0, 0, 0, 1]);
    }

    /// 100 packets of 1 ms each wait on the first link. One that the second link takes is there before 99 of them, and those
    /// of the second link that follow are as well.
    #[test]
    fn a_link_that_overtakes_many_gets_a_lane_of_its_own() {
        let (mut access, routes, mut events) = links();
        let mut send = |access: &mut AccessLinks, link| {
            let packet = Segment::udp(link, true, crate::segment::Payload { seq: 0, len: 972 });
            access.take(2 * link, Instant::ZERO, (&routes, &mut events), &packet, |_| ());
        };
        (0..100).for_each(|_| send(&mut access, 0));
        (0..3).for_each(|_| send(&mut access, 1));
        assert_eq!(access.wires.iter().map(|wire| wire.lane).collect::<Vec<_>>(), [0, 2, 0, 1]);
        assert_eq!(access.lanes.iter().map(|lane| lane.packets.len()).collect::<Vec<_>>(), [100, 0, 3]);
        assert_eq!(access.lose_in_flight(3, &[1], &routes) + access.lose_in_flight(2, &[7], &routes), 3);
    }

    proptest! {
        /// Packets arrive as on links without lanes: each after those before it on its link, one delay after its
        /// transmission, and those of the same time in the order of their links.
        #[test]
        fn packets_arrive_in_order(sent in prop::collection::vec((0..4u32, 0..400_000u64, 0..1400u16), 1..400)) {
            let (mut access, routes, mut events) = links();
            let (mut busy, mut expected, mut arrived) = ([0; 4], Vec::new(), Vec::new());
            let mut now = 0;
            let run = |access: &mut AccessLinks, events: &mut EventQueue, until: u64| {
                let mut found = Vec::new();
                while let Some((source, at)) = events.pop_until(Instant::from_nanos(until)) {
                    let Source::Lane(lane) = access.layout.decode(source) else { panic!("{source} is a lane") };
                    let packet = access.arrive(lane, at, (&routes, events)).unwrap();
                    found.push((at.as_nanos(), routes[packet.cursor as usize - 1] - 2, packet.seq));
                }
                found
            };
            for (seq, (link, gap, len)) in (0..).zip(sent) {
                // A long burst now and then.
                now += if seq % 90 < 70 { 0 } else { gap };
                arrived.extend(run(&mut access, &mut events, now));
                let packet = Segment::udp(link, true, crate::segment::Payload { seq, len });
                access.take(2 * link, Instant::from_nanos(now), (&routes, &mut events), &packet, |_| ());
                let end: &mut u64 = &mut busy[link as usize];
                *end = now.max(*end) + 1000 * u64::from(len + 28);
                expected.push((*end + 1_000_000, link, seq));
            }
            arrived.extend(run(&mut access, &mut events, u64::MAX));
            expected.sort_unstable();
            prop_assert_eq!(arrived, expected);
        }
    }
}
