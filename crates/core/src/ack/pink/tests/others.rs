//! PINK before one queue for segments that keep to their windows, and a queue for each flow for all else. 10 Mbit/s and
//! 104 ms, literal windows of two flows: 61,750 B each.

use super::*;
use crate::ack::gate::Gate as Before;
use crate::config::{Discipline, LinkFacts};
use crate::qdisc::Qdisc;
use crate::rng::{Rng, Streams};
use crate::units::Limit;

struct Bench {
    gate: Before<Pink, Queue<Seg>>,
    rng: Rng,
    now: Instant,
}

impl Bench {
    /// Two flows send twenty segments and have them acknowledged.
    fn new(queue: Behind) -> Self {
        let config = Config { queue, window: Window::Literal, shrink: Shrink::Immediate, ..paper() };
        let link = LinkFacts { rate: LINK, limit: Limit::Packets(1000) };
        let mut bench = Self { gate: config.build(&link), rng: Streams::new(1).get("t"), now: Instant::ZERO };
        (0..2).for_each(|flow| bench.tcp(Seg::syn(flow, None)));
        bench.now += WAN;
        (0..2).for_each(|flow| bench.back(Seg::syn_ack(flow, None)));
        bench.now += LAN;
        for end in (0..20).map(|round| ISN + 1 + 1000 * round) {
            (0..2).for_each(|flow| bench.tcp(Seg::data(flow, end, 1000)));
            bench.now += WAN;
            (0..2).for_each(|flow| bench.back(Seg::ack(flow, end + 1000, 65_535)));
            bench.now += LAN;
        }
        bench.all();
        bench
    }

    /// The next new byte of either flow.
    const NEXT: u32 = ISN + 20_001;

    fn tcp(&mut self, mut segment: Seg) {
        self.gate.outbound(&mut segment, self.now);
        self.udp(segment);
    }

    /// A packet that PINK is not shown as a segment.
    fn udp(&mut self, packet: Seg) {
        let _ = self.gate.enqueue(packet, self.now, &mut self.rng, &mut ());
    }

    fn back(&mut self, mut segment: Seg) {
        self.gate.inbound(&mut segment, self.now);
    }

    /// The flows of all packets that wait, in the order in which they leave.
    fn all(&mut self) -> Vec<u32> {
        let next = || self.gate.dequeue(self.now, &mut self.rng, &mut ());
        std::iter::from_fn(next).map(|packet| Packet::flow(&packet).0).collect()
    }

    fn burst(&mut self, flow: u32, from: u32, segments: u32) {
        (0..segments).for_each(|i| self.tcp(Seg::data(flow, from + 1000 * i, 1000)));
    }
}

/// In queues of their own the lone segment of flow 1 goes before the burst of flow 0, of which two have gone.
#[test]
fn who_keeps_to_its_window_shares_a_queue() {
    for (queue, order) in [(Behind::Fq, [0, 0, 1, 0, 0, 0]), (Behind::FqOthers, [0, 0, 0, 0, 0, 1])] {
        let mut bench = Bench::new(queue);
        bench.burst(0, Bench::NEXT, 5);
        bench.burst(1, Bench::NEXT, 1);
        assert_eq!(bench.all(), order, "{queue:?}");
    }
}

/// What was sent before, what exceeds the window and what is no segment have the queues of their flows, and go first, as
/// they are sparse.
#[test]
fn who_does_not_keep_to_its_window_has_a_queue_of_its_own() {
    type Send = fn(&mut Bench);
    let others: [(&str, Send); 4] = [
        ("sent again", |bench| bench.tcp(Seg::data(1, Bench::NEXT - 1000, 1000))),
        ("beyond its window", |bench| bench.tcp(Seg::data(1, Bench::NEXT + 65_000, 1000))),
        ("no segment", |bench| bench.udp(Seg::data(1, Bench::NEXT, 1000))),
        ("its handshake was not seen", |bench| bench.tcp(Seg::data(7, 1, 1000))),
    ];
    for (what, send) in others {
        let mut bench = Bench::new(Behind::FqOthers);
        bench.burst(0, Bench::NEXT, 3);
        send(&mut bench);
        let order = bench.all();
        assert!(order[0] != 0 && order[1..] == [0, 0, 0], "{what}: {order:?}");
    }
}

/// What is known of a segment is not said of the packet of another flow.
#[test]
fn a_segment_that_never_came_is_forgotten() {
    let mut bench = Bench::new(Behind::FqOthers);
    bench.burst(0, Bench::NEXT, 3);
    let mut refused = Seg::data(1, Bench::NEXT, 1000);
    bench.gate.outbound(&mut refused, bench.now); // a policer before the queue refuses it
    bench.udp(Seg::data(2, 0, 1000));
    assert_eq!(bench.all(), [2, 0, 0, 0]);
}

/// Its windows move on with each ACK of data that wait, ten round trips long, but of them no more than twice its window are
/// before the lone segment of flow 1, and what leaves its own queue meanwhile: a third of the link.
#[test]
fn a_receiver_that_acknowledges_too_early_gains_no_room() {
    let mut bench = Bench::new(Behind::FqOthers);
    let mut end = Bench::NEXT;
    for _ in 0..10 {
        bench.burst(0, end, 60);
        end += 60_000;
        bench.now += WAN;
        bench.back(Seg::ack(0, end, 65_535));
    }
    bench.burst(1, Bench::NEXT, 1);
    let order = bench.all();
    let before = order.iter().position(|flow| *flow == 1).unwrap();
    let window = 61_750.0 / 1000.0;
    assert!((1.5 * window..=3.2 * window).contains(&(before as f64)), "{before} of {}", order.len());
    assert_eq!(order.len(), 601);
}
