use super::*;
use crate::packet::{Ecn, FlowId};
use crate::rng::Streams;
use crate::testing::Numbered;
use crate::units::Rate;

const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) };

/// Numbers of dropped packets with the reason.
#[derive(Default)]
struct Drops(Vec<(u64, DropReason)>);

impl PacketObserver<Numbered> for Drops {
    fn dropped(&mut self, packet: Numbered, reason: DropReason, _: Instant) {
        self.0.push((packet.number, reason));
    }
    fn marked(&mut self, _: &Numbered, _: Instant) {}
}

/// A queue whose average is its length, with packets of these flows in it.
fn queue_of(config: Config, flows: impl IntoIterator<Item = u32>) -> Choke<Numbered> {
    let mut queue = Choke::new(&Config { weight: 1.0, ..config }, &LINK);
    for (number, flow) in (0..).zip(flows) {
        queue.backlog.add(Bytes::new(1000));
        queue.stats.arrived.add(Bytes::new(1000));
        queue.line.push_back(Numbered::new(number, FlowId(flow), Bytes::new(1000)));
    }
    // The queue is no longer idle.
    queue.red.observe(queue.backlog, Instant::ZERO);
    queue
}

fn arrival(flow: u32) -> Numbered {
    Numbered::new(1_000_000, FlowId(flow), Bytes::new(1000)).with_ecn(Ecn::Ect0)
}

/// Without a chance for RED to drop below the upper threshold.
fn mild() -> Config {
    Config { max_probability: 1e-12, ..Config::default() }
}

#[test]
fn two_packets_of_one_flow_die_together() {
    let (mut queue, mut rng, mut drops) = (queue_of(mild(), [7; 101]), Streams::new(1).get("t"), Drops::default());
    let answer = queue.enqueue(arrival(7), Instant::ZERO, &mut rng, &mut drops);
    assert_eq!(answer, Enqueued::Dropped(DropReason::Early));
    assert_eq!(queue.backlog(), Backlog { packets: 100, bytes: 100_000 });
    let [(drawn, DropReason::Dequeue), (1_000_000, DropReason::Early)] = drops.0[..] else { panic!("{:?}", drops.0) };
    queue.stats().check(queue.backlog()).unwrap();
    // The others leave in order, without the one that was drawn.
    let left = std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut rng, &mut ()).map(|packet| packet.number));
    assert_eq!(left.collect::<Vec<_>>(), (0..101).filter(|n| *n != drawn).collect::<Vec<_>>());
}

/// An average of 100 is not above the threshold of 100: nothing is drawn, nor anything else.
#[test]
fn up_to_the_lower_threshold_nothing_happens() {
    let (mut queue, mut rng) = (queue_of(mild(), [7; 100]), Streams::new(1).get("t"));
    let before = rng.clone();
    assert_eq!(queue.enqueue(arrival(7), Instant::ZERO, &mut rng, &mut ()), Enqueued::Queued);
    assert_eq!(rng, before);
}

/// A flow with 45 of 150 packets is drawn in 0.3 of 10,000 cases, with a deviation of 46.
#[test]
fn a_flow_dies_at_the_rate_of_its_share_of_the_queue() {
    let (queue, mut rng) = (queue_of(mild(), (0..150).map(|n| u32::from(n % 10 < 3))), Streams::new(1).get("t"));
    let dies = |_: &u32| queue.clone().enqueue(arrival(1), Instant::ZERO, &mut rng, &mut ()) != Enqueued::Queued;
    let died = (0..10_000).filter(dies).count();
    assert!((2770..=3230).contains(&died), "{died}");
}

/// Every place is drawn: 20,000 draws of 101 packets are 198 each, with a deviation of 14.
#[test]
fn each_packet_is_drawn_equally_often() {
    let (queue, mut rng, mut drops) = (queue_of(mild(), [7; 101]), Streams::new(1).get("t"), Drops::default());
    for _ in 0..20_000 {
        queue.clone().enqueue(arrival(7), Instant::ZERO, &mut rng, &mut drops);
    }
    let mut drawn = [0; 101];
    drops.0.iter().filter(|d| d.1 == DropReason::Dequeue).for_each(|d| drawn[d.0 as usize] += 1);
    assert!(drawn.iter().all(|n| (128..=268).contains(n)), "{drawn:?}");
}

/// Below the upper threshold RED drops a tenth: at 150 of 100..200, max_p = 0.2 and count 0 give pa = 0.1.
#[test]
fn what_does_not_match_is_judged_by_red() {
    let config = Config { max_probability: 0.2, ..Config::default() };
    for (ecn, packet_ecn, dies) in [(false, Ecn::Ect0, true), (true, Ecn::Ect0, false), (true, Ecn::NotEct, true)] {
        let queue = queue_of(Config { ecn, ..config.clone() }, [7; 150]);
        let (mut rng, mut signals) = (Streams::new(1).get("t"), 0);
        for _ in 0..10_000 {
            let mut queue = queue.clone();
            let packet = arrival(1).with_ecn(packet_ecn);
            let answer = queue.enqueue(packet, Instant::ZERO, &mut rng, &mut ());
            signals += queue.stats().marked.packets + u64::from(answer != Enqueued::Queued);
            assert!(dies || answer == Enqueued::Queued);
        }
        assert!((850..=1150).contains(&signals), "1000 expected, five deviations are 150: {signals}");
    }
    let (mut full, mut rng) = (queue_of(Config { ecn: true, ..config }, [7; 200]), Streams::new(1).get("t"));
    let answer = full.enqueue(arrival(1), Instant::ZERO, &mut rng, &mut ());
    assert_eq!(answer, Enqueued::Dropped(DropReason::Early), "at the upper threshold all are dropped");
}

/// With max_p = 1, 125 or 126 of 100..200 are a pb of 0.25 or 0.26. The fourth packet since the last drop has count 3 and
/// pa = 0.26 / (1 - 3 * 0.26) > 1. Had a match in between restarted the count, pa would be 0.26 / (1 - 0.26).
#[test]
fn a_match_is_no_drop_of_red() {
    let (config, mut seen) = (Config { max_probability: 1.0, ..Config::default() }, 0);
    for seed in 0..300 {
        let (mut queue, mut rng) = (queue_of(config.clone(), [7; 125]), Streams::new(seed).get("t"));
        let answers = [1, 2, 7, 3, 7, 4].map(|flow| queue.enqueue(arrival(flow), Instant::ZERO, &mut rng, &mut ()));
        let passed = [0, 1, 3].iter().all(|n| answers[*n] == Enqueued::Queued);
        // Nearly all that waits is of flow 7: its two arrivals nearly always match.
        if passed && queue.stats().dropped_dequeue.packets == 2 {
            assert_eq!(answers[5], Enqueued::Dropped(DropReason::Early));
            seen += 1;
        }
    }
    // 0.75 * 0.65 * 0.46 of 300 are 67, with a deviation of 7.
    assert!((32..=102).contains(&seen), "{seen}");
}

/// The second arrival finds one packet, an average of 0.5, and takes it along. From then on the average ages: after the
/// time of three packets it is 0.5 * 0.5^3. Had it not, the third arrival would see (0.5 + 0) / 2.
#[test]
fn a_match_that_empties_the_queue_begins_an_idle_time() {
    let config = Config { min_threshold: Limit::Bytes(Bytes::new(1)), weight: 0.5, ..mild() };
    let (mut queue, mut rng) = (Choke::new(&config, &LINK), Streams::new(1).get("t"));
    let answers = [0, 0, 3].map(|ms| {
        let now = Instant::ZERO + Span::from_millis(ms);
        (queue.enqueue(arrival(7), now, &mut rng, &mut ()), queue.average(), queue.backlog().packets)
    });
    let died = Enqueued::Dropped(DropReason::Early);
    assert_eq!(answers, [(Enqueued::Queued, 0.0, 1), (died, 0.5, 0), (Enqueued::Queued, 0.0625, 1)]);
}

#[test]
fn without_room_packets_overflow() {
    for limit in [Limit::Packets(2), Limit::Bytes(Bytes::new(2999))] {
        let link = LinkFacts { limit, ..LINK };
        let (mut queue, mut rng) = (Choke::new(&Config::default(), &link), Streams::new(1).get("t"));
        let answers = [0, 1, 2].map(|flow| queue.enqueue(arrival(flow), Instant::ZERO, &mut rng, &mut ()));
        assert_eq!(answers, [Enqueued::Queued, Enqueued::Queued, Enqueued::Dropped(DropReason::Overflow)]);
    }
}

/// A flow of 1.6 times the rate of the link and one of a fifth of it. FIFO would give them 8/9 and 1/9. The small one
/// passes nearly whole: where it has a share h of the queue, it loses about h of its packets.
#[test]
fn a_flood_does_not_crowd_out_a_small_flow() {
    let config = Config { min_threshold: Limit::Packets(10), max_threshold: Limit::Packets(500), ..mild() };
    let (mut queue, mut rng) = (Choke::new(&Config { weight: 0.1, ..config }, &LINK), Streams::new(1).get("t"));
    let (mut sent, mut phase) = ([0u32; 2], 0);
    for ms in 0..20_000 {
        let now = Instant::ZERO + Span::from_millis(ms);
        phase += 8;
        while phase >= 5 {
            queue.enqueue(arrival(0), now, &mut rng, &mut ());
            phase -= 5;
        }
        if ms % 5 == 0 {
            queue.enqueue(arrival(1), now, &mut rng, &mut ());
        }
        if let Some(packet) = queue.dequeue(now, &mut rng, &mut ()) {
            sent[packet.flow.0 as usize] += 1;
        }
    }
    assert!(sent[1] > 3000, "of 4000 packets of the small flow {} passed", sent[1]);
    assert!(sent[0] + sent[1] > 15_000, "the link is busy: {sent:?}");
}

#[test]
fn thresholds_in_the_wrong_order_are_refused_by_name() {
    let config = Config { min_threshold: Limit::Packets(300), ..Config::default() };
    assert_eq!(config.validate().unwrap_err().key, "max_threshold");
}
