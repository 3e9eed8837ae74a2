//! How well a telephone call would sound: an estimate from what the packets of calls wait and lose here, and from the
//! round trips of the link.
//!
//! Packets of calls are UDP with the DSCP of expedited forwarding (EF, RFC 3246) or of admitted voice (RFC 5865), which
//! phones set. The estimate is the E-model of [`penstock_core::emodel`], for G.711. Mouth to ear are a packet of speech,
//! half of both halves of the round trip as TCP shows them (nothing if they are not known), and the delay until which a
//! receiver waits for packets. Later ones are lost to it; the delay is the one that gives the best rating, as in the
//! simulator. So it is an upper bound for real phones, and no measurement of one.

use crate::held::Held;
use crate::tap::{Around, Entries, Known, Tap};
use crate::voice::Voice;
use penstock_core::emodel::{PACKET_TIME, mos, rating};
use penstock_core::packet::NodeId;
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Instant, Span};
use penstock_shaper::direction::Direction;
use serde::Serialize;
use serde_json::{Value, json};

/// The estimate is of the packets of one to two windows.
const WINDOW: Span = Span::from_secs(10);
/// Largest number of subscribers that are told apart in two windows, of which the last is all others.
const MOST_CALLERS: usize = 256;

/// The times in milliseconds for which a receiver may wait for packets that were in the queue here.
const WAITS_MS: [u64; 16] = [1, 2, 5, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 500];

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Counts {
    /// Number of packets that waited up to each of [`WAITS_MS`] and longer than the one before; the last waited longest.
    waited: [u64; WAITS_MS.len() + 1],
    dropped: u64,
}

/// What the status tells of the calls of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Call {
    /// Number of their packets in the last 10 to 20 s.
    pub packets: u64,
    /// Share of these that were dropped here.
    pub lost: f64,
    /// Share that waited too long to be heard.
    pub late: f64,
    /// Estimated delay from mouth to ear in milliseconds.
    pub delay_ms: f64,
    /// Estimated mean opinion score of a call, 1 to 4.5.
    pub mos_estimate: f64,
}

/// The present window and the one before, of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Windows([[Counts; 2]; 2]);

impl Windows {
    fn now(&mut self, direction: Direction) -> &mut Counts {
        &mut self.0[0][direction.index()]
    }

    /// Begins a new window; returns whether anything is in the one before.
    fn turn(&mut self) -> bool {
        self.0 = [Default::default(), self.0[0]];
        self.0[1] != <[Counts; 2]>::default()
    }

    fn estimate(&self, direction: Direction, trip: Option<Span>) -> Option<Call> {
        let [now, before] = self.0.map(|both| both[direction.index()]);
        let waited: [_; WAITS_MS.len() + 1] = std::array::from_fn(|at| now.waited[at] + before.waited[at]);
        let dropped = now.dropped + before.dropped;
        let packets = waited.iter().sum::<u64>() + dropped;
        let share = |part: u64| part as f64 / packets.max(1) as f64;
        let lost = share(dropped);
        let rest = PACKET_TIME + Span::from_nanos(trip.map_or(0, Span::as_nanos) / 2);
        let until = |at: usize| {
            let late = share(waited[at + 1..].iter().sum());
            let delay = rest + Span::from_millis(WAITS_MS[at]);
            (delay, late, rating(delay, lost + late))
        };
        let best = (0..WAITS_MS.len()).map(until).max_by(|a, b| a.2.total_cmp(&b.2));
        let (delay, late, r) = best.filter(|_| packets > 0)?;
        Some(Call { packets, lost, late, delay_ms: delay.as_millis_f64(), mos_estimate: mos(r) })
    }
}

/// Counts the packets of calls, of the whole link and of each subscriber with a name.
#[derive(Debug)]
pub struct Calls {
    all: Windows,
    /// In the order of their numbers. The room is never enlarged.
    callers: Vec<(NodeId, Windows)>,
    due: Instant,
}

impl Default for Calls {
    fn default() -> Self {
        Self { all: Windows::default(), callers: Vec::with_capacity(MOST_CALLERS), due: Instant::ZERO }
    }
}

impl Calls {
    /// A packet of a call went on after this time here.
    pub fn passed(&mut self, voice: Voice, waited: Span) {
        let at = WAITS_MS.partition_point(|bound| Span::from_millis(*bound) < waited);
        self.each(voice, |counts| counts.waited[at] += 1);
    }

    pub fn dropped(&mut self, voice: Voice) {
        self.each(voice, |counts| counts.dropped += 1);
    }

    /// Counts a packet for the link and for its caller. If too many subscribers have calls, it is one of all others.
    fn each(&mut self, Voice { direction, caller, .. }: Voice, count: impl Fn(&mut Counts)) {
        count(self.all.now(direction));
        let place = |callers: &[(NodeId, Windows)], who| callers.binary_search_by_key(&who, |one| one.0);
        // The last place is for all others.
        let full = self.callers.len() + 1 >= MOST_CALLERS;
        let caller = if full && place(&self.callers, caller).is_err() { NodeId::NOBODY } else { caller };
        let at = place(&self.callers, caller).unwrap_or_else(|at| {
            self.callers.insert(at, (caller, Windows::default()));
            at
        });
        count(self.callers[at].1.now(direction));
    }

    /// Estimates the calls of a direction, if there are packets of some. `trip` is the round trip that is known, without the
    /// queue here.
    pub fn estimate(&self, direction: Direction, trip: Option<Span>) -> Option<Call> {
        self.all.estimate(direction, trip)
    }

    /// Returns how calls of subscribers would sound, the worst first; nothing if the file has no subscribers. The name is `None`
    /// for all who are in no list or for whom there was no room.
    fn named(&self, known: &Known<'_>) -> Vec<Value> {
        let worst = |calls: &[Option<Call>; 2]| {
            calls.iter().flatten().map(|call| call.mos_estimate).fold(f64::INFINITY, f64::min)
        };
        let mut all: Vec<_> = self.callers(known.trip).filter(|_| known.has_subscribers).collect();
        all.sort_by(|(_, a), (_, b)| worst(a).total_cmp(&worst(b)));
        let told = |(node, [download, upload]): (NodeId, [Option<Call>; 2])| {
            let name = known.classifier.table.subscribers.name_of(node);
            json!({"name": name, "download": download, "upload": upload})
        };
        all.into_iter().map(told).collect()
    }

    /// Estimates the calls of each subscriber that has some, download and upload; [`NodeId::NOBODY`] is all others.
    pub fn callers(&self, trip: Option<Span>) -> impl Iterator<Item = (NodeId, [Option<Call>; 2])> {
        self.callers.iter().map(move |(node, windows)| (*node, Direction::BOTH.map(|d| windows.estimate(d, trip))))
    }
}

impl Tap for Calls {
    fn leaves(&mut self, _: Direction, held: &Held, now: Instant) {
        held.call.into_iter().for_each(|voice| self.passed(voice, now.since(voice.came)));
    }
    fn refused(&mut self, held: &Held, _: DropReason) {
        held.call.into_iter().for_each(|voice| self.dropped(voice));
    }
    fn tick(&mut self, around: &mut Around<'_>) {
        if around.now >= self.due {
            self.all.turn();
            self.callers.retain_mut(|(_, windows)| windows.turn());
            self.due = around.now + WINDOW;
        }
    }
    fn status(&self, known: &Known<'_>, told: &mut Entries) {
        told.insert("calls".into(), json!(Direction::BOTH.map(|d| self.estimate(d, known.trip))));
        let named = self.named(known);
        if !named.is_empty() {
            told.insert("callers".into(), named.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Forward, Reverse};
    use penstock_core::rng::Streams;
    use penstock_shaper::classify::Classifier;
    use penstock_shaper::keys::Keys;
    use penstock_shaper::nodes::Side;
    use penstock_shaper::path::Path;

    /// A second is over, as each observer is told.
    fn tick(calls: &mut Calls, s: u64) {
        let text = "[interfaces]\nwan = 'w0'\nlan = 'l0'\n[link]\nrate = '10Mbit/s'\n";
        let [down, up] = crate::file::File::parse(text, "f").unwrap().settings.ways;
        let classifier = &Classifier::new(Default::default(), Keys::from_seed(1), Side::Right);
        let path = &mut Path::new(&down, &up, Streams::new(1));
        Tap::tick(calls, &mut Around { classifier, path, now: Instant::ZERO + Span::from_secs(s) });
    }

    fn voice(direction: Direction, caller: u32) -> Voice {
        Voice { direction, came: Instant::ZERO, caller: NodeId(caller) }
    }

    /// Two subscribers, of which one loses every tenth packet: each has its own score, and the link that of both.
    #[test]
    fn each_subscriber_has_a_score_of_its_own() {
        let mut calls = Calls::default();
        for n in 0..100 {
            calls.passed(voice(Forward, 7), Span::from_millis(1));
            let bad = voice(Forward, u32::MAX);
            if n % 10 == 0 { calls.dropped(bad) } else { calls.passed(bad, Span::from_millis(1)) }
        }
        let all: Vec<_> = calls.callers(None).collect();
        let [(NodeId(7), [Some(good), None]), (NodeId::NOBODY, [Some(bad), None])] = all[..] else { panic!("{all:?}") };
        // R = 93.2 - 0.024 * 21, and less 95 * 0.1 / (0.1 + 0.251) with a loss of a tenth: Bpl of G.711 is 25.1.
        assert!((good.mos_estimate - mos(93.2 - 0.504)).abs() < 1e-3, "{good:?}");
        assert!((bad.mos_estimate - mos(93.2 - 0.504 - 95.0 * 10.0 / 35.1)).abs() < 1e-3, "{bad:?}");
        assert_eq!(calls.estimate(Forward, None).map(|both| (both.packets, both.lost)), Some((200, 0.05)));
        [0, 10, 20, 30].into_iter().for_each(|s| tick(&mut calls, s));
        assert_eq!(calls.callers(None).count(), 0, "who has no calls is forgotten");
    }

    #[test]
    fn more_subscribers_than_there_is_room_for_are_all_others() {
        let mut calls = Calls::default();
        (0..1000).for_each(|caller| calls.passed(voice(Reverse, caller), Span::ZERO));
        let packets = |(node, [_, up]): (NodeId, [Option<Call>; 2])| (node, up.map_or(0, |call| call.packets));
        let all: Vec<_> = calls.callers(None).map(packets).collect();
        assert_eq!((all.len(), all[254], all[255]), (MOST_CALLERS, (NodeId(254), 1), (NodeId::NOBODY, 1000 - 255)));
        assert_eq!(calls.callers.capacity(), MOST_CALLERS);
    }

    /// 99 packets within 5 ms and one dropped, 60 ms of round trip: 20 + 30 + 5 ms and 1 % of loss.
    #[test]
    fn the_estimate_is_that_of_the_model() {
        let mut calls = Calls::default();
        (0..99).for_each(|_| calls.passed(voice(Forward, 1), Span::from_millis(4)));
        calls.dropped(voice(Forward, 1));
        let call = calls.estimate(Forward, Some(Span::from_millis(60))).unwrap();
        assert_eq!((call.packets, call.lost, call.late, call.delay_ms), (100, 0.01, 0.0, 55.0));
        // R = 93.2 - 0.024 * 55 - 95 / 26.1 = 88.24
        assert!((call.mos_estimate - mos(88.24)).abs() < 1e-3, "{call:?}");
        assert_eq!(calls.estimate(Reverse, None), None);
        [0, 10, 20, 30].into_iter().for_each(|s| tick(&mut calls, s));
        assert_eq!(calls.estimate(Forward, None), None, "the last window was empty");
    }

    /// To wait 150 ms for half of the packets costs less than to lose them; to wait 2 s for one of a hundred costs more.
    #[test]
    fn a_receiver_waits_for_what_is_worth_it() {
        let mut calls = Calls::default();
        (0..99).for_each(|n| calls.passed(voice(Reverse, 1), Span::from_millis(if n % 2 == 0 { 3 } else { 150 })));
        calls.passed(voice(Reverse, 1), Span::from_millis(1900));
        let call = calls.estimate(Reverse, None).unwrap();
        assert_eq!((call.delay_ms, call.late), (170.0, 0.01));
    }
}
