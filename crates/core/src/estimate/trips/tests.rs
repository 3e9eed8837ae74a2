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
