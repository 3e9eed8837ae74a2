//! Round trips of the connections that pass, without probe traffic: how long answers from beyond the WAN take now, and how
//! long they take at least. The difference is the queue behind the WAN: in the modem or at the provider.
//!
//! Times are those of [`RttProbe`]: handshakes, timestamps, acknowledgments, and never a retransmission. The newest sample
//! counts, so a probe begins anew after each. A table of fixed size has a place for each hash; the flow of a place stays
//! until it is silent.

use penstock_core::rtt::RttProbe;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::{FlowKey, RealPacket};
use penstock_shaper::direction::Direction;

/// Number of places, a power of two.
const PLACES: usize = 512;
/// The place of a flow that is silent for so long is free.
const SILENT: Span = Span::from_secs(5);
/// The smallest round trip of the last one to two such times is what a path takes without a queue: a route may change.
const FORGET: Span = Span::from_secs(30);
/// A sample counts for two of the smallest round trips, and at least so long.
const FRESH: Span = Span::from_millis(300);

#[derive(Debug)]
pub struct Trips {
    places: Vec<Option<Flow>>,
    forgotten: Instant,
}

#[derive(Debug)]
struct Flow {
    key: FlowKey,
    probe: RttProbe,
    seen: Instant,
    wan: Half,
    lan: Option<Span>,
}

/// The samples of a half of round trips.
#[derive(Debug, Default)]
struct Half {
    /// The last two, the newest first.
    last: [Option<(Instant, Span)>; 2],
    /// The smallest ones of this [`FORGET`] and of the one before.
    floors: [Option<Span>; 2],
    least: Option<Span>,
}

/// Medians of the flows that have a sample that is fresh: their WAN halves now and at least, their smallest LAN halves.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct View {
    pub flows: usize,
    pub wan: Option<Span>,
    /// Their queues behind the WAN, above the smallest round trip of the last minute.
    pub queue: Option<Span>,
    /// The same above the smallest round trip of each connection.
    pub risen: Option<Span>,
    pub least: Option<Span>,
    pub lan: Option<Span>,
}

impl Half {
    fn add(&mut self, now: Instant, sample: Span) {
        self.last = [Some((now, sample)), self.last[0]];
        self.floors[0] = smaller(self.floors[0], Some(sample));
        self.least = smaller(self.least, Some(sample));
    }

    fn floor(&self) -> Option<Span> {
        smaller(self.floors[0], self.floors[1])
    }

    /// Returns the round trip now: the smaller one of the last two samples, as an answer may have been delayed.
    fn now(&self, now: Instant) -> Option<Span> {
        let fresh = FRESH.max(self.floor()?) + self.floor()?;
        let (at, newest) = self.last[0]?;
        let before = self.last[1].filter(|(at, _)| now.since(*at) <= fresh).map(|(_, sample)| sample);
        (now.since(at) <= fresh).then_some(newest).and_then(|newest| smaller(Some(newest), before))
    }
}

fn smaller(a: Option<Span>, b: Option<Span>) -> Option<Span> {
    a.into_iter().chain(b).min()
}

impl Default for Trips {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| None).collect(), forgotten: Instant::ZERO }
    }
}

impl Trips {
    /// Shows a segment as it leaves to the WAN, or as it comes from there: its connection, and a hash of that.
    pub fn show(&mut self, direction: Direction, (key, hash): (FlowKey, u64), packet: &RealPacket, now: Instant) {
        let place = &mut self.places[hash as usize % PLACES];
        if place.as_ref().is_none_or(|flow| flow.key != key) {
            if place.as_ref().is_some_and(|flow| now.since(flow.seen) < SILENT) {
                return;
            }
            *place = Some(Flow { key, probe: RttProbe::default(), seen: now, wan: Half::default(), lan: None });
        }
        let Some(flow) = place else { return };
        flow.seen = now;
        match direction {
            Direction::Reverse => flow.probe.outbound(packet, now),
            Direction::Forward => {
                flow.probe.inbound(packet, now);
            }
        }
        let Some(wan) = flow.probe.wan() else { return };
        flow.wan.add(now, wan);
        flow.lan = smaller(flow.lan, flow.probe.lan());
        if let (Some(out), Some(back)) = (flow.probe.outbound_end(), flow.probe.inbound_end()) {
            // The next sample is one of its own; only the smallest LAN half is wanted.
            flow.probe = RttProbe::continued(None, flow.lan, out, back);
        }
    }

    pub fn view(&mut self, now: Instant) -> View {
        if now.since(self.forgotten) > FORGET {
            self.forgotten = now;
            self.places.iter_mut().flatten().for_each(|flow| flow.wan.floors = [None, flow.wan.floors[0]]);
        }
        let mut columns: [Vec<Span>; 5] = Default::default();
        for flow in self.places.iter().flatten() {
            let Some(sample) = flow.wan.now(now) else { continue };
            let above = |floor: Option<Span>| floor.map(|floor| sample.saturating_sub(floor));
            let values = [Some(sample), above(flow.wan.floor()), above(flow.wan.least), flow.wan.least, flow.lan];
            columns.iter_mut().zip(values).for_each(|(column, value)| column.extend(value));
        }
        let flows = columns[0].len();
        let [wan, queue, risen, least, lan] = columns.map(median);
        View { flows, wan, queue, risen, least, lan }
    }
}

/// Returns the middle value, the smaller one of two.
fn median(mut values: Vec<Span>) -> Option<Span> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_conntrack::SipHash;
    use penstock_core::packet::FlowId;

    /// A segment of 100 bytes of payload with a timestamp and its echo, between the ports 5000 and `port`.
    fn segment(port: u16, out: bool, seq: u32, val: u32, echo: u32) -> RealPacket {
        let mut bytes = vec![0; 152];
        (bytes[0], bytes[3], bytes[9], bytes[32], bytes[33]) = (0x45, 152, 6, 0x80, 0x10);
        let (from, to) = if out { ([10, 1], [192, 2]) } else { ([192, 2], [10, 1]) };
        bytes[12..14].copy_from_slice(&from);
        bytes[16..18].copy_from_slice(&to);
        let ports = if out { [5000, port] } else { [port, 5000] };
        bytes[20..22].copy_from_slice(&ports[0].to_be_bytes());
        bytes[22..24].copy_from_slice(&ports[1].to_be_bytes());
        bytes[24..28].copy_from_slice(&seq.to_be_bytes());
        bytes[40..44].copy_from_slice(&[1, 1, 8, 10]);
        bytes[44..48].copy_from_slice(&val.to_be_bytes());
        bytes[48..52].copy_from_slice(&echo.to_be_bytes());
        RealPacket::new(bytes, FlowId(1))
    }

    fn named(packet: &RealPacket) -> (FlowKey, u64) {
        let key = FlowKey::of(packet.bytes(), packet.headers()).unwrap();
        (key, SipHash(1, 2).of(key.as_bytes()))
    }

    fn show(trips: &mut Trips, direction: Direction, packet: &RealPacket, now: Instant) {
        trips.show(direction, named(packet), packet, now);
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn ms(ms: u64) -> Option<Span> {
        Some(Span::from_millis(ms))
    }

    /// One segment out each 200 ms from `begin` on, whose answer takes `trips[n]` ms.
    fn play(trips: &mut Trips, port: u16, begin: u64, times: &[u64]) -> u64 {
        for (n, trip) in times.iter().enumerate() {
            let (sent, n) = (begin + 200 * n as u64, begin as u32 + n as u32);
            show(trips, Direction::Reverse, &segment(port, true, 100 * n, 10 + n, 1), at(sent));
            show(trips, Direction::Forward, &segment(port, false, 100 * n, 10 + n, 10 + n), at(sent + trip));
        }
        begin + 200 * times.len() as u64
    }

    #[test]
    fn a_queue_behind_the_wan_is_what_round_trips_take_longer() {
        let mut trips = Trips::default();
        let end = play(&mut trips, 80, 0, &[50, 40, 45, 120, 130]);
        let view = trips.view(at(end));
        assert_eq!((view.flows, view.wan, view.queue, view.least), (1, ms(120), ms(80), ms(40)));
        assert_eq!(trips.view(at(end + 2000)).flows, 0, "a sample is fresh for some time only");
    }

    #[test]
    fn the_median_of_the_flows_counts() {
        let mut trips = Trips::default();
        for (port, late) in [(80, 0), (81, 30), (82, 200)] {
            play(&mut trips, port, 0, &[40, 40, 40 + late, 40 + late]);
        }
        assert_eq!(trips.view(at(850)).queue, ms(30));
    }

    #[test]
    fn a_longer_route_is_no_queue_after_a_minute() {
        let mut trips = Trips::default();
        let end = play(&mut trips, 80, 0, &[40; 5]);
        trips.view(at(end));
        for second in 1..80 {
            let end = play(&mut trips, 80, second * 1000, &[90; 5]);
            let view = trips.view(at(end));
            let [queue, risen] = [view.queue, view.risen];
            assert_eq!(risen, ms(50));
            assert!(queue == ms(50) || second > 29 && queue == ms(0), "{second}: {queue:?}");
            assert!(queue == ms(0) || second < 65, "{second}: {queue:?}");
        }
    }

    /// Two flows want the same place. The one that is there keeps it while it is not silent for five seconds.
    #[test]
    fn a_flow_keeps_its_place_until_it_is_silent() {
        let mut trips = Trips::default();
        let of = |port: u16| named(&segment(port, true, 0, 1, 1));
        let place = |port: u16| of(port).1 as usize % PLACES;
        let rival = (81..).find(|port| place(*port) == place(80)).unwrap();
        let mut shown = |port: u16, ms: u64| {
            show(&mut trips, Direction::Reverse, &segment(port, true, 0, 1, 1), at(ms));
            let holder = trips.places[place(80)].as_ref().unwrap();
            (holder.key == of(80).0, holder.seen)
        };
        assert_eq!(shown(80, 100), (true, at(100)));
        assert_eq!(shown(80, 1000), (true, at(1000)));
        assert_eq!(shown(rival, 5999), (true, at(1000)));
        assert_eq!(shown(rival, 6000), (false, at(6000)));
        assert_eq!(shown(80, 6001), (false, at(6000)));
    }
}
