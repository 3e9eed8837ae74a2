use super::*;
use crate::rng::{Rng, Streams};
use crate::testing::Numbered;
use crate::units::Rate;
use proptest::prelude::*;

/// A discipline whose packets and times the test sets by hand. It counts the bytes sent and dropped for each flow.
struct Bench {
    queue: LteBearers<Numbered>,
    rng: Rng,
    arrived: u64,
    now: Instant,
    dropped: Dropped,
}

#[derive(Default)]
struct Dropped(Vec<u32>);

impl PacketObserver<Numbered> for Dropped {
    fn dropped(&mut self, packet: Numbered, _: DropReason, _: Instant) {
        self.0.push(packet.flow.0);
    }
    fn marked(&mut self, _: &Numbered, _: Instant) {}
}

fn bench(bearers: &str, limit: Limit) -> Bench {
    let config = Config { bearers: bearers.parse().unwrap(), ..Config::default() };
    config.validate().unwrap();
    let queue = config.build(&LinkFacts { rate: Rate::from_bps(10_000_000), limit });
    Bench { queue, rng: Streams::new(1).get("bearers"), arrived: 0, now: Instant::ZERO, dropped: Dropped::default() }
}

impl Bench {
    fn arrive(&mut self, flow: u32, size: u64) -> Enqueued {
        self.arrived += 1;
        let packet = Numbered::new(self.arrived, FlowId(flow), Bytes::new(size));
        let answer = self.queue.enqueue(packet, self.now, &mut self.rng, &mut self.dropped);
        self.queue.stats().check(self.queue.backlog()).unwrap();
        answer
    }

    fn fill(&mut self, flow: u32, size: u64, packets: usize) {
        (0..packets).for_each(|_| assert_eq!(self.arrive(flow, size), Enqueued::Queued));
    }

    fn depart(&mut self) -> Option<Numbered> {
        let packet = self.queue.dequeue(self.now, &mut self.rng, &mut self.dropped);
        self.queue.stats().check(self.queue.backlog()).unwrap();
        packet
    }

    fn flows(&mut self, packets: usize) -> Vec<u32> {
        (0..packets).map_while(|_| self.depart()).map(|packet| packet.flow.0).collect()
    }

    /// Simulates ten seconds of a link of 10 Mbit/s. Each flow sends packets of 1250 B, 1 ms on the wire, at the given
    /// rate in bits per millisecond. Returns the rate of each flow in kbit/s.
    fn run(&mut self, rates: &[u64]) -> Vec<u64> {
        let (mut owed, mut sent) = (vec![0; rates.len()], vec![0; rates.len()]);
        for ms in 0..10_000 {
            self.now = Instant::ZERO + Span::from_millis(ms);
            for (flow, rate) in rates.iter().enumerate() {
                owed[flow] += rate;
                while owed[flow] >= 10_000 {
                    owed[flow] -= 10_000;
                    self.arrive(flow as u32, 1250);
                }
            }
            if let Some(packet) = self.depart() {
                sent[packet.flow.0 as usize] += 1;
            }
        }
        sent
    }
}

const ROOM: Limit = Limit::Packets(1000);

/// 80 kbit/s: a packet of 1000 B moves z by 100 ms, which is also what a bucket holds.
#[test]
fn a_guarantee_is_met_to_the_packet() {
    let mut bench = bench("9,1:80kbit/s", ROOM);
    bench.fill(0, 1000, 9);
    bench.fill(1, 1000, 9);
    assert_eq!(bench.flows(3), [1, 0, 0], "B is 0 at first: one packet; then the other, as z is at 100 ms");
    bench.now = Instant::from_nanos(99_999_999);
    assert_eq!(bench.flows(1), [0]);
    bench.now = Instant::from_nanos(100_000_000);
    assert_eq!(bench.flows(2), [1, 0]);
    // After a second B would be 9000 B, but the bucket holds 1000: two packets, until B is below 0.
    bench.now = Instant::from_nanos(1_100_000_000);
    assert_eq!(bench.flows(4), [1, 1, 0, 0]);
}

#[test]
fn guarantees_hold_when_civilians_overload_the_cell() {
    let mut bench = bench("1:2Mbit/s,9,9,9", ROOM);
    // 10 Mbit/s of link: 2 are guaranteed and used, and three civilians want 30.
    let sent = bench.run(&[2_000, 10_000, 10_000, 10_000]);
    assert_eq!(sent[0], 2000);
    assert!(sent[1..].iter().all(|civilian| civilian.abs_diff(8000 / 3) <= 2), "{sent:?}");
}

#[test]
fn excess_of_a_guarantee_comes_after_the_others() {
    let mut over = bench("1:2Mbit/s,9", ROOM);
    let sent = over.run(&[9_000, 10_000]);
    // A bucket of 100 ms is 200 kbit, 20 packets; it was full at the start at most.
    assert!((2000..=2021).contains(&sent[0]), "{sent:?}");
    assert_eq!(sent[0] + sent[1], 10_000);
    // With 5 Mbit/s of the other, 5 are left for the guarantee and its excess.
    let sent = bench("1:2Mbit/s,9", ROOM).run(&[9_000, 5_000]);
    assert!(sent[1] >= 4998 && sent[0] + sent[1] >= 9_999, "{sent:?}");
}

#[test]
fn first_responders_go_before_civilians_and_a_floor_keeps_these_alive() {
    let sent = bench("6,9", ROOM).run(&[20_000, 10_000]);
    assert_eq!(sent, [10_000, 0]);
    let sent = bench("6,9:500kbit/s", ROOM).run(&[20_000, 10_000]);
    assert!((500..=506).contains(&sent[1]), "{sent:?}");
    let sent = bench("6,9", ROOM).run(&[4_000, 10_000]);
    assert!(sent[0].abs_diff(4000) <= 1 && sent[0] + sent[1] >= 9_999, "{sent:?}");
}

#[test]
fn guarantees_go_by_priority_when_not_all_can_be_met() {
    // QCI 65, MCPTT (priority 0.7), before QCI 1, a call (2), before QCI 2, video (4): each sends 6 Mbit/s on a link of
    // 10.
    let sent = bench("2:6Mbit/s,65:6Mbit/s,1:6Mbit/s", ROOM).run(&[6_000, 6_000, 6_000]);
    assert!(sent[1].abs_diff(6000) <= 1 && sent[2].abs_diff(4000) <= 60 && sent[0] < 60, "{sent:?}");
}

#[test]
fn bearers_of_one_priority_take_turns_by_bytes() {
    let mut bench = bench("9", Limit::Packets(10_000));
    for _ in 0..1000 {
        bench.arrive(0, 300);
        bench.arrive(1, 1500);
    }
    let sent = bench.flows(600);
    let bytes = |flow: u32, size: u64| sent.iter().filter(|other| **other == flow).count() as u64 * size;
    assert!(bytes(0, 300).abs_diff(bytes(1, 1500)) <= 1514 + 2 * 1500);
}

#[test]
fn the_longest_queue_pays_for_a_full_one() {
    let mut bench = bench("1:100kbit/s,9,9", Limit::Bytes(Bytes::new(10_000)));
    bench.fill(1, 1000, 7);
    bench.fill(2, 1000, 3);
    assert_eq!(bench.arrive(0, 200), Enqueued::Queued);
    assert_eq!(bench.dropped.0, [1]);
    assert_eq!(bench.arrive(1, 1000), Enqueued::Queued, "its oldest packet went, not this one");
    assert_eq!(bench.dropped.0, [1, 1]);
    assert_eq!(bench.arrive(2, 20_000), Enqueued::Dropped(DropReason::Overflow), "more than fits");
}

/// A first responder's picture of 6 kB arrives while two civilians fill the queue: the civilians lose packets, down to
/// one each.
#[test]
fn civilians_pay_for_the_bursts_of_responders() {
    let mut bench = bench("9,6,9", Limit::Bytes(Bytes::new(10_000)));
    bench.fill(0, 1000, 6);
    bench.fill(2, 1000, 4);
    bench.fill(1, 1000, 6);
    assert_eq!(bench.dropped.0, [0, 0, 2, 0, 2, 0]);
    // The civilians have 2000 B each left and the responder 6000 B. Each civilian may keep 1514 B, then the responder
    // loses packets.
    bench.fill(1, 1000, 4);
    assert_eq!(bench.dropped.0[6..], [2, 0, 1, 1]);
}

/// A bucket of 100 ms at 160 kbit/s is 2000 B: that much of the guaranteed bearer stays, and the excess is pushed out
/// first.
#[test]
fn the_excess_of_a_guarantee_is_pushed_out_first() {
    let mut bench = bench("1:160kbit/s,9", Limit::Bytes(Bytes::new(8000)));
    bench.fill(0, 1000, 4);
    bench.fill(1, 1000, 6);
    assert_eq!(bench.dropped.0, [0, 0]);
    bench.fill(1, 1000, 1);
    assert_eq!(bench.dropped.0, [0, 0, 1]);
    assert_eq!(size_of::<Bearer>(), 72, "as the header says");
}

#[test]
fn a_class_says_which_bearer() {
    let mut bench = bench("6,9", ROOM);
    // By index, flow 0 would be the responder and flow 1 the civilian.
    bench.queue.on_fact(&Fact::Class { flow: FlowId(0), class: 1 }, Instant::ZERO);
    bench.queue.on_fact(&Fact::Class { flow: FlowId(1), class: 0 }, Instant::ZERO);
    bench.arrive(0, 1000);
    bench.arrive(1, 1000);
    // A bearer with packets keeps its kind; without packets it may change.
    bench.queue.on_fact(&Fact::Class { flow: FlowId(0), class: 0 }, Instant::ZERO);
    assert_eq!(bench.flows(2), [1, 0]);
    bench.queue.on_fact(&Fact::Class { flow: FlowId(0), class: 0 }, Instant::ZERO);
    bench.queue.on_fact(&Fact::Class { flow: FlowId(1), class: 1 }, Instant::ZERO);
    bench.arrive(1, 1000);
    bench.arrive(0, 1000);
    assert_eq!(bench.flows(2), [0, 1]);
}

/// A bearer without a rate which reuses the place of a bearer with a rate has no guarantee.
#[test]
fn a_place_that_is_used_again_keeps_no_promise() {
    let mut bench = bench("8,9,9:1Mbit/s", ROOM);
    bench.queue.on_fact(&Fact::Class { flow: FlowId(7), class: 2 }, Instant::ZERO);
    bench.arrive(7, 1000);
    assert_eq!(bench.flows(2), [7]);
    bench.queue.on_fact(&Fact::Class { flow: FlowId(7), class: 1 }, Instant::ZERO);
    bench.now = Instant::from_nanos(1_000_000_000);
    bench.arrive(7, 1000);
    bench.arrive(0, 1000);
    assert_eq!(bench.flows(2), [0, 7]);
}

#[test]
fn parameters_that_cannot_be_are_refused() {
    let refused = |config: Config| config.validate().unwrap_err().to_string();
    assert!(refused(Config { bucket: Span::ZERO, ..Config::default() }).contains("bucket: must be 1ms to 60s"));
    assert!(refused(Config { quantum: Bytes::ZERO, ..Config::default() }).contains("quantum: must be 1B"));
    assert!(toml::from_str::<Config>("bearers = \"1\"").unwrap_err().to_string().contains("write it"));
}

proptest! {
    /// Whatever packets arrive and whatever classes change, no packet waits while the link is free, and no flow is
    /// reordered.
    #[test]
    fn it_is_work_conserving_and_keeps_order(
        steps in prop::collection::vec((0..4u8, 0..8u32, 40..1500u64, 0..50_000_000u64), 1..300),
    ) {
        let mut bench = bench("1:300kbit/s,65:1Mbit/s,5,9:200kbit/s,9", Limit::Packets(40));
        let mut last = [0; 8];
        for (step, flow, size, ns) in steps {
            bench.now += Span::from_nanos(ns);
            match step {
                0 => bench.queue.on_fact(&Fact::Class { flow: FlowId(flow), class: size as u32 }, Instant::ZERO),
                1 | 2 => {
                    bench.arrive(flow, size);
                }
                _ => {
                    let waiting = bench.queue.backlog().packets;
                    let packet = bench.depart();
                    prop_assert_eq!(packet.is_some(), waiting > 0);
                    if let Some(packet) = packet {
                        prop_assert!(packet.number > last[packet.flow.0 as usize]);
                        last[packet.flow.0 as usize] = packet.number;
                    }
                }
            }
        }
        let rest = bench.queue.backlog().packets as usize;
        prop_assert_eq!(bench.flows(usize::MAX).len(), rest);
    }
}
