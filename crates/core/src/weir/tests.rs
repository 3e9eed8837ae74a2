//! What the parts of WEIR promise, and what they promise together.

use super::fattest::{Fattest, Heavy, Weighed};
use super::pace::Pace;
use super::queues::{Queues, Way};
use super::turns::{Member, Scheduled, Turns};
use super::*;
use crate::config::{Discipline, LinkFacts};
use crate::packet::{Ecn, FlowId, NodeId};
use crate::rng::Streams;
use crate::testing::Numbered;
use crate::units::{Bytes, Limit};

const RATE: Rate = Rate::from_bps(10_000_000);

fn rng() -> Rng {
    Streams::new(1).get("weir")
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Span::from_micros(us)
}

fn packet(flow: u32, size: u64, number: u32) -> Numbered {
    Numbered::new(number.into(), FlowId(flow), Bytes::new(size))
}

/// Serves members with so many packets of these sizes, in turns of `quantum` bytes; returns who was served.
fn serve<const N: usize>(
    turns: &mut Turns,
    all: &mut [Member; N],
    queued: &mut [u32; N],
    sizes: [u64; N],
    quantum: i64,
    packets: usize,
) -> Vec<u32> {
    let mut served = Vec::new();
    while served.len() < packets {
        let Some(who) = turns.turn(all, |_| quantum) else { break };
        if queued[who as usize] == 0 {
            turns.leave(all, who);
            continue;
        }
        queued[who as usize] -= 1;
        all[who as usize].spend(sizes[who as usize]);
        served.push(who);
    }
    served
}

impl Scheduled for Member {
    fn member(&mut self) -> &mut Member {
        self
    }
}

/// RFC 8290's member that comes and goes loses its place for a round. Here two packets that fit a quantum go before all who
/// stay, in each round.
#[test]
fn who_sends_less_than_its_turn_goes_first() {
    let (mut turns, mut all, mut queued) = (Turns::default(), [Member::default(); 4], [0, 100, 100, 100]);
    (1..4).for_each(|who| turns.come(&mut all, who, 1000, 0));
    serve(&mut turns, &mut all, &mut queued, [1000; 4], 1000, 3); // now they are old
    for round in 0..20 {
        for _ in 0..2 {
            queued[0] = 1;
            turns.come(&mut all, 0, 1000, 0);
            let served = serve(&mut turns, &mut all, &mut queued, [400, 1000, 1000, 1000], 1000, 3);
            assert_eq!(served.iter().position(|who| *who == 0), Some(0), "round {round}: {served:?}");
        }
    }
}

/// A member that comes whenever it was served is served as often as those who stay, and no more.
#[test]
fn who_comes_again_and_again_gets_no_more_than_who_stays() {
    let (mut turns, mut all, mut queued) = (Turns::default(), [Member::default(); 3], [0, 9999, 9999]);
    (1..3).for_each(|who| turns.come(&mut all, who, 1000, 0));
    let mut counts = [0; 3];
    for _ in 0..300 {
        if queued[0] == 0 {
            queued[0] = 1;
            turns.come(&mut all, 0, 1000, 0);
        }
        for who in serve(&mut turns, &mut all, &mut queued, [700; 3], 1000, 1) {
            counts[who as usize] += 1;
        }
    }
    assert!(counts.iter().all(|count| (97..=103).contains(count)), "{counts:?}");
}

/// 200 bytes at a time in turns of 300, while a round takes as long as five packets of 1500: after the first packet it is owed 100,
/// after the second it owes 100 and waits. What it may always send first keeps it from that.
#[test]
fn who_is_owed_a_least_rate_goes_first_however_long_a_round_takes() {
    for (least, first) in [(0, 1), (250, 10)] {
        let (mut turns, mut all, mut queued) = (Turns::default(), [Member::default(); 9], [99; 9]);
        (1..9).for_each(|who| turns.come(&mut all, who, 300, 0));
        let sizes: [u64; 9] = std::array::from_fn(|who| if who == 0 { 200 } else { 1500 });
        serve(&mut turns, &mut all, &mut queued, sizes, 300, 20);
        let mut before = 0;
        for _ in 0..10 {
            queued[0] = 1;
            turns.come(&mut all, 0, 300, least);
            let served = serve(&mut turns, &mut all, &mut queued, sizes, 300, 2);
            before += usize::from(served[0] == 0);
        }
        assert!(if first == 10 { before == 10 } else { before < 9 }, "owed {least}: {before} of 10");
    }
}

#[derive(Debug, Clone, Default)]
struct Weight(Weighed);

impl Heavy for Weight {
    fn weighed(&mut self) -> &mut Weighed {
        &mut self.0
    }
}

#[test]
fn the_queue_that_gives_way_holds_more_than_half_of_the_fattest() {
    let (mut fattest, mut all, mut bytes, mut rng) =
        (Fattest::default(), vec![Weight::default(); 50], [0u64; 50], rng());
    assert_eq!(fattest.top(), None);
    for _ in 0..20_000 {
        let who = (rng.bits() % 50) as usize;
        bytes[who] = if rng.bits() % 4 == 0 { 0 } else { rng.bits() % 100_000 };
        fattest.note(&mut all, who as u32, bytes[who]);
        let most = bytes.iter().max().copied().unwrap();
        match fattest.top() {
            Some(top) => assert!(2 * bytes[top as usize] > most && bytes[top as usize] > 0),
            None => assert_eq!(most, 0),
        }
    }
}

/// A link told as 10 Mbit/s that sends a packet of 1250 B each 2 ms has 5 Mbit/s; gaps without a queue tell nothing.
#[test]
fn departures_show_a_rate_that_nobody_told() {
    let (mut pace, size) = (Pace::new(RATE), Bytes::new(1250));
    assert!((0..100).all(|n| pace.departed(size, true, at(1000 * n)).is_none()), "1 ms is 10 Mbit/s");
    let mut pace = Pace::new(RATE);
    let seen: Vec<Rate> = (0..100).filter_map(|n| pace.departed(size, true, at(2000 * n))).collect();
    assert_eq!(seen, [Rate::from_bps(5_000_000)], "once, after 20 ms");
    let mut pace = Pace::new(RATE);
    assert!((0..100).all(|n| pace.departed(size, false, at(5000 * n)).is_none()), "nothing waits");
    assert!(pace.departed(size, true, at(600_000)).is_none());
    pace.empty();
    assert!((700..720).all(|ms| pace.departed(size, true, at(1000 * ms)).is_none()), "an empty queue ends a pair");
}

/// Hosts with 1 and 4 flows, all backlogged: each host has half.
#[test]
fn hosts_come_first_and_their_flows_second() {
    let (mut queues, mut rng) = (Queues::new(Limit::Packets(10_000), RATE, true), rng());
    for flow in 0..5 {
        queues.set_owner(FlowId(flow), NodeId(u32::from(flow > 0)));
        for n in 0..400 {
            let _ = queues.enqueue(packet(flow, 1000, n), Way::Judged, at(0), &mut ());
        }
    }
    let mut counts = [0; 5];
    (0..400).for_each(|_| counts[queues.dequeue(at(1), &mut rng, &mut ()).unwrap().packet.flow.0 as usize] += 1);
    assert!((198..=202).contains(&counts[0]), "{counts:?}");
    assert!(counts[1..].iter().all(|count| (48..=52).contains(count)), "{counts:?}");
}

/// What keeps to its window waits in one queue, which has the turns of as many hosts as it is told, and whatever exceeds
/// the room of its flow waits in the flow's own.
#[test]
fn the_common_queue_has_the_turns_of_its_hosts_and_bounds_each_flow() {
    let (mut queues, mut rng) = (Queues::new(Limit::Packets(10_000), RATE, true), rng());
    queues.set_common(3 * 1024);
    for n in 0..400 {
        let way = Way::Common { most: u64::MAX };
        let _ = queues.enqueue(packet(n % 7, 1000, n), way, at(0), &mut ());
        let _ = queues.enqueue(packet(9, 1000, n), Way::Judged, at(0), &mut ());
    }
    assert_eq!(queues.governed(), 400_000);
    let mut ids = Vec::new();
    for _ in 0..400 {
        let left = queues.dequeue(at(1), &mut rng, &mut ()).unwrap();
        if left.packet.flow == FlowId(9) {
            assert!(left.free);
        } else {
            assert!(!left.free);
            ids.push(left.packet.number);
        }
    }
    assert!((295..=305).contains(&ids.len()), "{}", ids.len());
    assert!(ids.windows(2).all(|two| two[0] < two[1]), "in the order of arrival");
    let mut queues = Queues::new(Limit::Packets(10_000), RATE, true);
    for n in 0..4 {
        let _ = queues.enqueue(packet(0, 1000, n), Way::Common { most: 2000 }, at(0), &mut ());
    }
    let order: Vec<u64> = (0..4).map(|_| queues.dequeue(at(1), &mut rng, &mut ()).unwrap().packet.number).collect();
    assert_eq!(order, [0, 1, 2, 3], "what exceeds the room waits behind what is in it");
    assert_eq!(queues.backlog(), Backlog::default());
}

/// What windows govern is never judged, whatever it waited; all else is, and what can be marked is marked.
#[test]
fn the_aqm_judges_what_no_window_governs() {
    let fates = |way, ecn| {
        let (mut queues, mut rng) = (Queues::new(Limit::Packets(10_000), RATE, true), rng());
        let _ = (0..4000).map(|n| queues.enqueue(packet(1, 1000, n).with_ecn(ecn), way, at(0), &mut ())).count();
        let (mut now, mut passed) = (at(0), 0);
        while queues.dequeue(now, &mut rng, &mut ()).is_some() {
            now += Span::from_micros(800);
            passed += 1;
        }
        let stats = queues.stats();
        stats.check(queues.backlog()).unwrap();
        (passed, stats.dropped_dequeue.packets, stats.marked.packets)
    };
    for way in [Way::Own, Way::Crowd, Way::Young] {
        assert_eq!(fates(way, Ecn::NotEct), (4000, 0, 0));
        assert_eq!(fates(way, Ecn::Ect1), (4000, 0, 0));
    }
    let (_, dropped, marked) = fates(Way::Judged, Ecn::NotEct);
    assert!(dropped > 20 && marked == 0, "{dropped}");
    let (passed, dropped, marked) = fates(Way::Judged, Ecn::Ect0);
    assert!(passed == 4000 && dropped == 0 && marked > 20 && marked < 2000, "{marked}");
    // ECT(1) is marked beyond the time of two packets: 2.4 ms at this rate.
    let (passed, _, marked) = fates(Way::Judged, Ecn::Ect1);
    assert!(passed == 4000 && marked >= 3995, "{marked}");
}

/// Thirty packets that come at once wait for up to 36 ms and lose none; CAKE drops the second that waited too long in a queue that
/// was never used.
#[test]
fn a_burst_that_is_over_soon_loses_nothing() {
    let (mut queues, mut rng) = (Queues::new(Limit::Packets(100), RATE, true), rng());
    for n in 0..30 {
        let _ = queues.enqueue(packet(1, 1500, n), Way::Judged, at(0), &mut ());
    }
    let sent = (0..30).filter(|n| queues.dequeue(at(1200 * n), &mut rng, &mut ()).is_some()).count();
    assert_eq!((sent, queues.stats().dropped_dequeue.packets), (30, 0));
}

/// A flow whose own queue ran empty is still in its host's round; what comes then, behind packets of it in the common queue, does not
/// pass them.
#[test]
fn what_comes_behind_packets_in_the_common_queue_does_not_pass_them() {
    let (mut queues, mut rng) = (Queues::new(Limit::Packets(100), RATE, true), rng());
    let ways = [Way::Own, Way::Common { most: 9000 }, Way::Common { most: 9000 }, Way::Judged];
    let mut sent = Vec::new();
    for (n, way) in (0..).zip(ways) {
        let _ = queues.enqueue(packet(1, 100, n), way, at(0), &mut ());
        if n == 0 {
            sent.extend(queues.dequeue(at(0), &mut rng, &mut ()).map(|left| left.packet.number));
        }
    }
    while let Some(left) = queues.dequeue(at(1), &mut rng, &mut ()) {
        sent.push(left.packet.number);
    }
    assert_eq!(sent, [0, 1, 2, 3]);
}

/// A flow passes to another host when nothing of it waits.
#[test]
fn a_flow_that_changes_hosts_takes_its_packets_along_when_none_waits() {
    let (mut queues, mut rng) = (Queues::new(Limit::Packets(100), RATE, true), rng());
    for (node, n) in [(1, 0), (2, 1), (3, 2)] {
        queues.set_owner(FlowId(0), NodeId(node));
        let _ = queues.enqueue(packet(0, 1000, n), Way::Judged, at(0), &mut ());
    }
    let ids: Vec<u64> = (0..3).map(|_| queues.dequeue(at(1), &mut rng, &mut ()).unwrap().packet.number).collect();
    assert_eq!(ids, [0, 1, 2]);
    assert!(queues.dequeue(at(1), &mut rng, &mut ()).is_none());
}

/// Room is made in the fattest queue: a flood takes none from others.
#[test]
fn a_flood_takes_no_room_from_others() {
    let (mut queues, mut rng) = (Queues::new(Limit::Bytes(Bytes::new(20_000)), RATE, true), rng());
    for n in 0..3 {
        let _ = queues.enqueue(packet(1, 1000, n), Way::Own, at(0), &mut ());
        let _ = queues.enqueue(packet(2, 1000, n), Way::Common { most: 9000 }, at(0), &mut ());
    }
    for n in 0..1000 {
        let _ = queues.enqueue(packet(3, 1000, n), Way::Judged, at(0), &mut ());
    }
    assert_eq!(queues.stats().dropped_overflow.packets, 986);
    let mut counts = [0; 4];
    while let Some(left) = queues.dequeue(at(1), &mut rng, &mut ()) {
        counts[left.packet.flow.0 as usize] += 1;
    }
    assert_eq!(counts[1..3], [3, 3]);
}

/// Without windows all is judged; each part can be left out, and its name is written.
#[test]
fn parts_can_be_left_out() {
    let link = LinkFacts { rate: RATE, limit: Limit::Packets(100) };
    let config: Config = serde_json::from_value(serde_json::json!({ "without": ["windows", "hosts"] })).unwrap();
    config.validate().unwrap();
    let weir: Weir<Numbered> = config.build(&link);
    assert!(weir.parts.without(Part::Windows) && weir.parts.without(Part::Hosts));
    assert!(!weir.parts.without(Part::Common) && !weir.parts.without(Part::Others));
    assert!(serde_json::from_value::<Config>(serde_json::json!({ "without": ["nothing"] })).is_err());
}

/// Of a host with several flows whose shares are less than a segment, the queue is that host's own: others do not wait for it.
#[test]
fn what_a_crowd_waits_for_makes_no_other_slower() {
    let mut queues = Queues::new(Limit::Packets(100), RATE, true);
    for (n, way) in (0..).zip([Way::Own, Way::Crowd, Way::Common { most: 9000 }, Way::Judged]) {
        let _ = queues.enqueue(packet(n, 1000, n), way, at(0), &mut ());
    }
    assert_eq!(queues.governed(), 2000, "what waits beside the crowd");
}

#[test]
fn a_queue_without_room_says_so_if_windows_govern_what_it_drops() {
    for (way, told) in
        [(Way::Judged, false), (Way::Young, false), (Way::Own, true), (Way::Common { most: 99_999 }, true)]
    {
        let mut queues = Queues::new(Limit::Packets(10), RATE, true);
        for n in 0..11 {
            assert!(!queues.had_no_room(), "{n}");
            let _ = queues.enqueue(packet(1, 1000, n), way, at(0), &mut ());
        }
        assert_eq!((queues.had_no_room(), queues.had_no_room()), (told, false), "{way:?}");
    }
}
