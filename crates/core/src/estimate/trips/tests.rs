use super::*;
use crate::packet::{FlowId, PlainSegment, Timestamps};

const FLOW: u64 = 7;
const SEGMENT: u32 = 1448;
/// Of the way out alone: who has no clock of a far end has to guess the direction.
const OUT: [bool; 2] = [false, true];

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(1000 + ms)
}

/// To the nearest millisecond: the smallest times grow a little as time passes.
fn in_ms(ns: i64) -> i64 {
    (ns + 500_000) / 1_000_000
}

/// The segment with this number, counted from 0.
fn data(number: u32) -> PlainSegment {
    let plain = PlainSegment::new(FlowId(0), TcpFlags::ACK);
    PlainSegment { seq: number * SEGMENT, payload_len: SEGMENT, ..plain }
}

/// An acknowledgment of so many segments.
fn ack(segments: u32) -> PlainSegment {
    PlainSegment { ack: segments * SEGMENT, ..PlainSegment::new(FlowId(0), TcpFlags::ACK) }
}

struct Ladder(Trips);

impl Ladder {
    /// A link of 100 Mbit/s, and a round trip of 40 ms that two segments have shown which were alone.
    fn begun() -> Self {
        let mut ladder = Self(Trips::default());
        Way::BOTH.into_iter().for_each(|way| ladder.0.carries(way, Rate::from_bps(100_000_000), true));
        ladder.out(0, &data(0)).back(40, &ack(1)).out(41, &data(1)).back(81, &ack(2));
        assert_eq!(ladder.queue_ms(90), Some(0));
        ladder
    }

    fn out(&mut self, ms: u64, segment: &PlainSegment) -> &mut Self {
        self.out_of(FLOW, ms, segment)
    }

    fn out_of(&mut self, flow: u64, ms: u64, segment: &PlainSegment) -> &mut Self {
        let size = Bytes::new(u64::from(segment.payload_len) + 52);
        self.0.pass(Way::Out, flow, size, Some(segment), at(ms));
        self
    }

    fn back(&mut self, ms: u64, segment: &PlainSegment) -> &mut Self {
        self.back_of(FLOW, ms, segment)
    }

    fn back_of(&mut self, flow: u64, ms: u64, segment: &PlainSegment) -> &mut Self {
        let size = Bytes::new(u64::from(segment.payload_len) + 52);
        self.0.pass(Way::In, flow, size, Some(segment), at(ms));
        self
    }

    fn queue_ms(&mut self, ms: u64) -> Option<i64> {
        let [_, out] = self.0.take(OUT, at(ms));
        out.sample.map(|sample| in_ms(sample.queue))
    }
}

/// Our shaper sends a segment each 24 ms, and the receiver acknowledges every second one. The acknowledgment takes 40 ms from
/// the second, and would take 64 ms from the first.
#[test]
fn our_own_spacing_is_no_queue() {
    let mut ladder = Ladder::begun();
    ladder.out(100, &data(2)).out(124, &data(3)).back(164, &ack(4));
    assert_eq!(ladder.queue_ms(200), Some(0));
    ladder.out(200, &data(4)).out(224, &data(5)).back(294, &ack(6));
    assert_eq!(ladder.queue_ms(300), Some(30), "70 ms from the second, and 40 without a queue");
}

/// Segment 2 was dropped by our discipline, so it never left. 3 and 4 wait for it at the receiver, whose answer comes 40 ms after
/// the copy has left.
#[test]
fn what_waits_for_a_segment_that_we_dropped_is_no_queue() {
    let mut ladder = Ladder::begun();
    ladder.out(100, &data(3)).out(101, &data(4)).back(140, &ack(2)).back(141, &ack(2));
    assert_eq!(ladder.queue_ms(150), None);
    ladder.out(180, &data(2)).back(220, &ack(5));
    assert_eq!(ladder.queue_ms(230), Some(0));
    assert_eq!(ladder.0.take(OUT, at(240))[1].lost, 0, "nothing was lost beyond us");
}

#[test]
fn a_segment_that_leaves_twice_shows_nothing_but_a_loss_beyond_us() {
    let mut ladder = Ladder::begun();
    ladder.out(100, &data(2)).out(101, &data(3)).out(180, &data(2)).back(185, &ack(4));
    let [_, out] = ladder.0.take(OUT, at(190));
    assert_eq!((out.sample, out.lost), (None, 1500), "5 ms would be the least round trip for ever");
}

/// At 0.5 Mbit/s a packet of 1500 B takes 24 ms: the handshake of 40 ms says nothing of it.
#[test]
fn the_least_round_trip_of_small_packets_is_not_that_of_full_ones() {
    let mut ladder = Ladder(Trips::default());
    let syn = PlainSegment { seq: u32::MAX, ..PlainSegment::new(FlowId(0), TcpFlags::SYN) };
    ladder.out(0, &syn).back(40, &ack(0));
    assert_eq!(ladder.queue_ms(50), Some(0));
    ladder.out(100, &data(0)).out(100, &data(1)).back(164, &ack(2));
    assert_eq!(ladder.queue_ms(200), Some(0), "a full packet takes 24 ms longer");
}

/// The receiver waits for a second segment for 40 ms, and then acknowledges the one that it has.
#[test]
fn an_acknowledgment_that_was_held_back_is_no_queue() {
    let mut ladder = Ladder::begun();
    ladder.out(100, &data(2)).back(180, &ack(3));
    assert_eq!(ladder.queue_ms(200), Some(0));
    ladder.out(200, &data(3)).out(201, &data(4)).back(281, &ack(5));
    assert_eq!(ladder.queue_ms(300), Some(40), "of two segments nothing is held back");
}

/// The first packet of a second flow waits for 50 ms, so its 90 ms are no least. The first flow is sure of its 40.
#[test]
fn a_flow_that_begins_in_a_queue_is_told_of_it_by_the_others() {
    let mut ladder = Ladder::begun();
    let mut begin = 100;
    for pair in 0..60 {
        let segments = [2 * pair, 2 * pair + 1];
        for (flow, first) in [(FLOW, 2), (FLOW + 1, 0)] {
            segments.iter().for_each(|n| {
                ladder.out_of(flow, begin, &data(first + n));
            });
        }
        for (flow, first) in [(FLOW, 2), (FLOW + 1, 0)] {
            ladder.back_of(flow, begin + 90, &ack(first + 2 * pair + 2));
        }
        begin += 100;
        // The smallest time grows by 0.1 ms in a second.
        assert!(ladder.queue_ms(begin).is_some_and(|queue| (49..=50).contains(&queue)), "pair {pair}");
    }
    // The second flow alone knows it by now.
    ladder.out_of(FLOW + 1, begin, &data(120)).out_of(FLOW + 1, begin, &data(121)).back_of(
        FLOW + 1,
        begin + 90,
        &ack(122),
    );
    assert!(ladder.queue_ms(begin + 95).is_some_and(|queue| (45..=50).contains(&queue)));
}

/// The clock of the far end says when it answered: the way in has the queue, or the way out.
#[test]
fn clocks_of_far_ends_tell_the_directions_apart() {
    let mut ladder = Ladder::begun();
    let (mut n, mut now) = (2, 100);
    // One way takes 20 ms. The far end's clock shows 5000 ms at ours of 0.
    let mut round = |ladder: &mut Ladder, out: u64, inward: u64| {
        let arrives = now + 20 + out;
        let stamps = Some(Timestamps { val: 5000 + arrives as u32, ecr: 0 });
        ladder.out(now, &data(n)).out(now, &data(n + 1));
        ladder.back(arrives + 20 + inward, &PlainSegment { timestamps: stamps, ..ack(n + 2) });
        (n, now) = (n + 2, now + 200);
        ladder.0.take([true; 2], at(now)).map(|seen| seen.sample.map(|sample| in_ms(sample.queue)))
    };
    (0..3).for_each(|_| assert_eq!(round(&mut ladder, 0, 0)[1], Some(0)));
    assert_eq!(round(&mut ladder, 30, 0), [Some(0), Some(30)]);
    assert_eq!(round(&mut ladder, 0, 25), [Some(25), Some(0)]);
    assert_eq!(round(&mut ladder, 10, 15), [Some(15), Some(10)]);
}

/// The far end answers a request after 160 ms. That is the time of its program, and no queue. While data comes without a pause the
/// echo of an acknowledgment tells the round trip. The clock of the far end has ticks of 10 ms, so it does not tell the directions apart.
#[test]
fn the_time_in_which_the_far_end_has_nothing_to_send_is_no_queue() {
    let stamped = |val: u32, ecr: u32, segment| PlainSegment { timestamps: Some(Timestamps { val, ecr }), ..segment };
    let mut ladder = Ladder(Trips::default());
    let plain = PlainSegment::new(FlowId(0), TcpFlags::ACK);
    ladder.out(0, &stamped(1, 0, plain)).back(40, &stamped(94, 1, data(0)));
    ladder.out(60, &stamped(2, 94, plain)).back(220, &stamped(112, 2, data(1)));
    assert_eq!(ladder.queue_ms(230), None);
    ladder.out(300, &stamped(3, 112, plain));
    for (n, ms) in [(2, 320), (3, 340), (4, 360)] {
        ladder.back(ms, &stamped(120 + n, 2, data(n)));
    }
    ladder.back(390, &stamped(129, 3, data(5)));
    assert_eq!(ladder.queue_ms(400), Some(50), "90 ms, and data came 30 ms before");
}

/// A flow began in a queue of 100 ms, and its handshake did not. Once the rate of the link is known, 1 Mbit/s, a full packet takes
/// 12 ms longer than one of the handshake.
#[test]
fn the_handshake_tells_what_full_packets_take() {
    let begun = || {
        let mut ladder = Ladder(Trips::default());
        let syn = PlainSegment { seq: u32::MAX, ..PlainSegment::new(FlowId(0), TcpFlags::SYN) };
        ladder.out(0, &syn).back(40, &ack(0)).queue_ms(50);
        ladder
    };
    for (measured, queue) in [(false, 0), (true, 100)] {
        let mut ladder = begun();
        ladder.0.carries(Way::Out, Rate::from_bps(1_000_000), measured);
        for n in 0..3 {
            let left = 100 + 200 * u64::from(n);
            ladder.out(left, &data(2 * n)).out(left, &data(2 * n + 1)).back(left + 152, &ack(2 * n + 2));
            assert_eq!(ladder.queue_ms(left + 160), Some(queue), "measured {measured}, pair {n}");
        }
    }
}

/// A queue of 200 ms was seen. A connection that begins then and answers within 41 ms was not in it.
#[test]
fn a_flow_that_begins_has_waited_for_no_longer_than_the_fastest_allows() {
    let mut ladder = Ladder::begun();
    ladder.out(100, &data(2)).out(100, &data(3)).back(340, &ack(4));
    assert_eq!(ladder.queue_ms(350), Some(200));
    for n in 0..3 {
        let left = 400 + 100 * u64::from(n);
        let [first, second] = [data(2 * n), data(2 * n + 1)];
        ladder.out_of(FLOW + 1, left, &first).out_of(FLOW + 1, left, &second);
        ladder.back_of(FLOW + 1, left + 41, &ack(2 * n + 2));
        let queue = ladder.queue_ms(left + 50).unwrap();
        assert!(queue <= 1, "{queue} ms, pair {n}");
    }
}

#[test]
fn records_are_thinned_out_and_never_grow() {
    let mut ladder = Ladder::begun();
    for n in 2..2002 {
        ladder.out(100 + u64::from(n), &data(n));
    }
    let records = &ladder.0.places[FLOW as usize % PLACES].records;
    assert!(records.len <= RECORDS && records.len >= RECORDS / 2, "{}", records.len);
    // 2000 ms in 64 records: the one that an acknowledgment finds left less than 64 ms before the last segment.
    ladder.back(100 + 2001 + 40, &ack(2002));
    assert!(ladder.queue_ms(2200).is_some_and(|queue| queue < 64));
}
