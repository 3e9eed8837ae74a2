//! The equations by hand, who is notified how, and when a category is updated.

use super::*;
use crate::packet::{FlowId, NoTcp, PlainSegment, TcpFlags};
use crate::registry::AnyConfig;
use crate::rng::Streams;
use crate::units::Rate;
use proptest::prelude::{any, prop_assert, proptest};

const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) };
const MS: fn(u64) -> Span = Span::from_millis;

#[derive(Debug, Clone, Copy)]
struct Told {
    ecn: Ecn,
    said: Ern,
}

impl Packet for Told {
    type Tcp = NoTcp;

    fn size(&self) -> Bytes {
        Bytes::new(1000)
    }
    fn flow(&self) -> FlowId {
        FlowId(0)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn tcp(&mut self) -> Option<&mut NoTcp> {
        None
    }
    fn explicit_rate(&self) -> Ern {
        self.said
    }
}

fn notice(cwnd: u64, rtt_ms: u64) -> RateNotice {
    RateNotice::new(Bytes::new(cwnd), MS(rtt_ms))
}

/// An ECT(0) packet with bits 11 and the option.
fn telling(cwnd: u64, rtt_ms: u64) -> Told {
    Told { ecn: Ecn::Ect0, said: Ern { capable: true, tells_rate: true, rate: Some(notice(cwnd, rtt_ms)) } }
}

fn with_bits(ecn: Ecn, byte_12: u8) -> Told {
    Told { ecn, said: Ern::new(byte_12, None) }
}

/// Thresholds 5 and 15 packets, max_p 0.1; the average is the queue as it is (weight 1).
fn config() -> Config {
    Config { weight: 1.0, ..Config::default() }
}

struct Queue {
    aqm: RedErn,
    rng: Rng,
}

impl Queue {
    fn new(config: Config) -> Self {
        AqmConfig::validate(&config).unwrap();
        let mut queue = Self { aqm: config.aqm(&LINK), rng: Streams::new(5).get("red-ern") };
        queue.arrive(&with_bits(Ecn::NotEct, 0), 0, 0); // ends the idle time
        queue
    }

    /// Arrives at `ms` when `packets` wait.
    fn arrive(&mut self, packet: &Told, packets: u64, ms: u64) -> Verdict {
        let backlog = Backlog { packets, bytes: packets * 1000 };
        self.aqm.on_arrival(packet, backlog, Instant::ZERO + MS(ms), &mut self.rng)
    }

    fn probabilities(&self) -> [f64; 5] {
        self.aqm.categories.each_ref().map(|c| c.probability)
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

#[test]
fn equations_1_4_and_6_by_hand() {
    // 10 segments of 1000 B in 100 ms are 100 B/ms; 30,000 B in 60 ms are 500 B/ms.
    assert_eq!((rate(notice(10_000, 100)), rate(notice(30_000, 60))), (100.0, 500.0));
    // 0.98 * 100 + 0.02 * 500 = 108; 0.98 * 108 + 0.02 * 8 = 106.
    assert!(near(averaged(100.0, 500.0, 0.02), 108.0));
    assert!(near(averaged(108.0, 8.0, 0.02), 106.0));
    // Twice the fair rate is marked twice as often as the fair one, a quarter of it a quarter.
    assert!(near(mark_probability(0.04, 200.0, 100.0), 0.08));
    assert!(near(mark_probability(0.04, 25.0, 100.0), 0.01));
    assert_eq!(mark_probability(0.5, 300.0, 100.0), 1.0, "clipped");
    assert_eq!(mark_probability(0.5, 0.0, 0.0), 0.0, "nothing sent, nothing marked");
}

/// (3): with 9 packets in thresholds 5 and 15, 0.1 (9 - 5) / (15 - 5) = 0.04; with 15, 0.1; below 5, 0.
#[test]
fn equation_3_by_hand() {
    for (packets, pb) in [(9, 0.04), (14, 0.09), (5, 0.0), (4, 0.0), (0, 0.0)] {
        let mut queue = Queue::new(config());
        queue.arrive(&telling(10_000, 100), packets, 1);
        assert!(near(queue.probabilities()[2], pb), "{packets} packets: {:?}", queue.probabilities());
    }
}

/// The gentle slope at 22.5 of 15..30 would be 0.55; at 21 it is 0.1 + 0.9 * 6 / 15 = 0.46. Without it: 1 from 15 on.
#[test]
fn above_the_thresholds_the_probability_is_that_of_red() {
    for (gentle, packets, pb) in [(true, 21, 0.46), (true, 30, 1.0), (false, 15, 1.0)] {
        let mut queue = Queue::new(Config { gentle, ..config() });
        let verdict = queue.arrive(&telling(10_000, 100), packets, 1);
        assert!(near(queue.probabilities()[2], pb), "{:?}", queue.probabilities());
        assert!(pb < 1.0 || verdict == Verdict::Mark, "the first rate is the fair one, so it is marked");
    }
}

/// Of thresholds 5 and 15 with max_p 0.1 the line is 0.25 at 30, 0.95 at 100, and 1 from 105 on. The plain packet at 30
/// is dropped for certain by RED, and now with 0.25.
#[test]
fn eq_3_as_written_has_no_upper_end() {
    let literal = Config { over_max: OverMax::Linear, ..config() };
    for (packets, pb) in [(15, 0.1), (30, 0.25), (100, 0.95), (105, 1.0), (800, 1.0)] {
        let mut queue = Queue::new(literal.clone());
        queue.arrive(&telling(10_000, 100), packets, 1);
        assert!(near(queue.probabilities()[2], pb), "{packets} packets: {:?}", queue.probabilities());
    }
    let mut queue = Queue::new(literal);
    let passed = (2..1002).filter(|ms| queue.arrive(&with_bits(Ecn::NotEct, 0), 30, *ms) == Verdict::Pass).count();
    // Gaps are uniform in 1..3, so half of the packets die.
    assert!((400..=600).contains(&passed), "{passed} of 1000");
}

/// `ecn` with "mark": the packets of a flow in slow start, which tells no rate, are marked where RED would drop all.
#[test]
fn packets_without_a_rate_can_be_marked_above_the_hard_limit() {
    let mut queue = Queue::new(Config { over_max: OverMax::Mark, ecn: true, ..config() });
    assert_eq!(queue.arrive(&with_bits(Ecn::Ect0, 0), 30, 1), Verdict::Mark);
    assert_eq!(queue.arrive(&with_bits(Ecn::NotEct, 0), 30, 2), Verdict::Drop);
}

#[test]
fn the_fair_rate_begins_with_the_first_and_follows_equation_4() {
    let mut queue = Queue::new(config());
    assert_eq!(queue.aqm.fair_rate(), None);
    queue.arrive(&telling(10_000, 100), 0, 1);
    assert_eq!(queue.aqm.fair_rate(), Some(100.0));
    queue.arrive(&telling(30_000, 60), 0, 2);
    assert!(near(queue.aqm.fair_rate().unwrap(), 108.0));
    // Only rates count: not the packets between them.
    queue.arrive(&with_bits(Ecn::Ect0, Ern::ERC), 0, 3);
    queue.arrive(&with_bits(Ecn::NotEct, 0), 0, 4);
    assert!(near(queue.aqm.fair_rate().unwrap(), 108.0));
}

#[test]
fn categories_double_from_40_ms() {
    let of = [1, 39, 40, 79, 80, 159, 160, 319, 320, 4095].map(category);
    assert_eq!(of, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
}

/// An update at 10 ms; the next ones are due after 40, 80, 160, 320 and 640 ms.
#[test]
fn each_category_is_updated_once_in_its_own_time() {
    for (at, (rtt, period)) in [(20, 40), (60, 80), (100, 160), (200, 320), (400, 640)].into_iter().enumerate() {
        let mut queue = Queue::new(config());
        let mut seen = |packets, ms| {
            queue.arrive(&telling(1000, rtt), packets, ms);
            queue.probabilities()
        };
        let mut expected = [0.0; 5];
        expected[at] = 0.1 * (9.0 - 5.0) / 10.0;
        assert_eq!(seen(9, 10), expected, "the first rate updates its category and no other");
        assert_eq!(seen(14, 10 + period - 1), expected, "category {at} keeps it for {period} ms");
        expected[at] = 0.1 * (14.0 - 5.0) / 10.0;
        assert_eq!(seen(14, 10 + period), expected);
    }
}

#[test]
fn flows_are_counted_by_the_rates_of_a_period() {
    let mut queue = Queue::new(config());
    // Three flows of 50 ms and one of 500 ms, until the second update of the former at 90 ms.
    for ms in [10, 20, 30, 60, 70, 80, 90] {
        queue.arrive(&telling(1000, 50), 0, ms);
        if ms == 30 {
            queue.arrive(&telling(1000, 500), 0, ms);
        }
    }
    assert_eq!(queue.aqm.flows(), [0, 6, 0, 0, 0], "each told twice in 80 ms");
}

/// Rates of 600 and 200 B/ms in turn: the fair rate stays within 2 % of 400, so at pb = 0.04 eq. (6) marks the one with
/// 0.06 and the other with 0.02: 1200 and 400 of 20,000. Five deviations (33 and 20) are 165 and 100.
#[test]
fn marks_come_in_proportion_to_the_rates() {
    let mut queue = Queue::new(config());
    let (mut fast, mut slow) = (0u32, 0u32);
    for _ in 0..20_000 {
        fast += u32::from(queue.arrive(&telling(60_000, 100), 9, 1) == Verdict::Mark);
        slow += u32::from(queue.arrive(&telling(20_000, 100), 9, 1) == Verdict::Mark);
    }
    assert!((1035..=1365).contains(&fast), "{fast} of 1200");
    assert!((300..=500).contains(&slow), "{slow} of 400");
}

#[test]
fn capable_flows_are_notified_on_their_rates_only() {
    // 30 packets are above the hard limit: RED drops everything, each rate at the fair rate is marked.
    let mut queue = Queue::new(config());
    assert_eq!(queue.arrive(&telling(10_000, 100), 30, 1), Verdict::Mark);
    assert_eq!(queue.arrive(&with_bits(Ecn::Ect0, Ern::ERC), 30, 2), Verdict::Pass);
    // 11 without an option that can be read tells nothing.
    assert_eq!(queue.arrive(&with_bits(Ecn::Ect0, Ern::ERC | Ern::ENR), 30, 3), Verdict::Pass);
    // 00 and 01 are not ERN-capable, whatever else is there.
    assert_eq!(queue.arrive(&with_bits(Ecn::Ect0, 0), 30, 4), Verdict::Drop);
    let mut odd = telling(10_000, 100);
    odd.said.capable = false;
    assert_eq!(queue.arrive(&odd, 30, 5), Verdict::Drop);
}

#[test]
fn a_rate_that_cannot_be_marked_is_dropped() {
    let mut queue = Queue::new(config());
    let packet = Told { ecn: Ecn::NotEct, ..telling(10_000, 100) };
    assert_eq!(queue.arrive(&packet, 30, 1), Verdict::Drop);
}

/// Section V: ECT(1) is the bit, and the option is looked for behind ECT(1) and CE only.
#[test]
fn ect1_takes_the_place_of_the_bits() {
    let said = Ern { rate: Some(notice(10_000, 100)), ..Ern::default() };
    let verdict =
        |ecn, said| Queue::new(Config { identify: Identify::Ect1, ..config() }).arrive(&Told { ecn, said }, 30, 1);
    assert_eq!(verdict(Ecn::Ect1, said), Verdict::Mark);
    assert_eq!(verdict(Ecn::Ce, said), Verdict::Mark);
    assert_eq!(verdict(Ecn::Ect0, said), Verdict::Drop);
    assert_eq!(verdict(Ecn::NotEct, said), Verdict::Drop);
    assert_eq!(verdict(Ecn::Ect1, Ern::default()), Verdict::Pass);
    assert_eq!(verdict(Ecn::Ce, Ern::default()), Verdict::Drop);
    let bits = Ern { capable: true, ..Ern::default() };
    assert_eq!(verdict(Ecn::Ect0, bits), Verdict::Drop, "bits mean nothing here");
    // And ECT(1) means nothing where the bits count.
    assert_eq!(Queue::new(config()).arrive(&Told { ecn: Ecn::Ect1, said }, 30, 1), Verdict::Drop);
}

/// The same packets, none of them ERN-capable, through RED and RED-ERN with the same random numbers.
#[test]
fn without_ern_it_is_red() {
    for ecn in [false, true] {
        let config = Config { weight: 0.1, ecn, ..Config::default() };
        let (mut ern, mut red) = (config.aqm(&LINK), Red::new(&config.red(), &LINK));
        let (mut one, mut two) = (Streams::new(9).get("same"), Streams::new(9).get("same"));
        let mut signals = 0;
        for i in 0..5000u64 {
            let now = Instant::ZERO + MS(i);
            let packet = with_bits(if i % 3 == 0 { Ecn::Ect0 } else { Ecn::NotEct }, 0);
            let backlog = Backlog { packets: i * 7 % 29, bytes: 0 };
            let expected = red.on_enqueue(&Meta::of(&packet), backlog, now, &mut two);
            assert_eq!(ern.on_arrival(&packet, backlog, now, &mut one), expected);
            assert_eq!(ern.red, red);
            signals += u32::from(expected != Verdict::Pass);
        }
        assert!(signals > 100, "{signals}");
    }
}

/// The average belongs to the queue: rates and other packets of capable flows count in it, and a dropped rate at an
/// empty queue does not end the idle time. Weight 0.5, 1 ms of idle time at a time halves the average.
#[test]
fn every_arrival_counts_in_the_average() {
    let mut queue = Queue::new(Config { weight: 0.5, ..Config::default() });
    for (packet, average) in
        [(telling(1, 1), 2.0), (with_bits(Ecn::Ect0, Ern::ERC), 3.0), (with_bits(Ecn::Ect0, 0), 3.5)]
    {
        queue.arrive(&packet, 4, 0);
        assert_eq!(queue.aqm.red.average(), average);
    }
    for _ in 0..12 {
        queue.arrive(&with_bits(Ecn::Ect0, Ern::ERC), 500, 0);
    }
    queue.aqm.red.refused(Backlog::default(), Instant::ZERO);
    let refused = Told { ecn: Ecn::NotEct, ..telling(1000, 50) };
    let before = queue.aqm.red.average();
    assert_eq!([1, 2].map(|ms| queue.arrive(&refused, 0, ms)), [Verdict::Drop; 2]);
    assert!(near(queue.aqm.red.average(), before / 4.0));
}

/// A segment each 2 ms in a round trip of 20 ms, above the hard limit: from the third round trip on each rate is marked and
/// all other packets pass; before that, and what was not shown, RED drops. What packets announce does not matter.
#[test]
fn estimated_rates_take_the_place_of_announced_ones() {
    let mut queue = Queue::new(Config { rates: Rates::Estimated, ..config() });
    assert!(queue.aqm.watches() && !Queue::new(config()).aqm.watches());
    let segment = |flags, seq, ack| PlainSegment { seq, ack, ..PlainSegment::new(FlowId(0), flags) };
    let at = |ms| Instant::ZERO + MS(ms);
    queue.aqm.outbound(&mut segment(TcpFlags::SYN, 0, 0), at(0));
    queue.aqm.inbound(&mut segment(TcpFlags::SYN.with(TcpFlags::ACK), 0, 1), at(15));
    queue.aqm.outbound(&mut segment(TcpFlags::ACK, 1, 1), at(20));
    let mut verdicts = Vec::new();
    for number in 0..60u32 {
        let now = 21 + 2 * u64::from(number);
        let data = PlainSegment { payload_len: 1000, ..segment(TcpFlags::ACK, 1 + 1000 * number, 1) };
        queue.aqm.outbound(&mut data.clone(), at(now));
        let packet = if number % 2 == 0 { with_bits(Ecn::Ect0, 0) } else { telling(1, 1) };
        verdicts.push(queue.arrive(&packet, 30, now));
    }
    let counted = |verdict, of: &[Verdict]| of.iter().filter(|one| **one == verdict).count();
    assert_eq!(counted(Verdict::Drop, &verdicts[..20]), 20, "{verdicts:?}");
    assert_eq!((counted(Verdict::Mark, &verdicts[20..]), counted(Verdict::Pass, &verdicts[20..])), (4, 36));
    // Ten segments of 1000 B in each round trip of 20 ms.
    assert!(near(queue.aqm.fair_rate().unwrap(), 500.0));
    assert_eq!(queue.arrive(&telling(10_000, 20), 30, 200), Verdict::Drop, "it was not shown");
    assert_eq!(queue.aqm.memory().get(), RedErn::BYTES_PER_FLOW as u64);
}

#[test]
fn an_estimator_cannot_judge_one_of_several_queues() {
    let of = |rates: &str| {
        let parameters = serde_json::json!({ "per_flow": { "name": "red-ern", "rates": rates } });
        AnyConfig::deserialize("fq", parameters).unwrap().unwrap().validate()
    };
    assert!(of("announced").is_ok());
    let refused = of("estimated").unwrap_err().to_string();
    assert!(refused.contains("looks at the ACKs of all flows"), "{refused}");
}

#[test]
fn values_that_cannot_work_are_refused_by_name() {
    let refused = |config: Config| AqmConfig::validate(&config).unwrap_err().key;
    assert_eq!(refused(Config { rate_weight: 0.0, ..config() }), "rate_weight");
    assert_eq!(refused(Config { rate_weight: f64::NAN, ..config() }), "rate_weight");
    assert_eq!(refused(Config { last_period: MS(319), ..config() }), "last_period");
    assert_eq!(refused(Config { max_threshold: Limit::Packets(5), ..config() }), "max_threshold");
    assert_eq!(refused(Config { max_probability: 2.0, ..config() }), "max_probability");
}

proptest! {
    #[test]
    fn probabilities_are_within_0_and_1(told in proptest::collection::vec((any::<[u8; 4]>(), 0u64..100), 1..200)) {
        let mut queue = Queue::new(config());
        for (bytes, packets) in told {
            if let Some(notice) = RateNotice::from_bytes(bytes) {
                queue.aqm.red.observe(Backlog { packets, bytes: 0 }, Instant::ZERO);
                let pa = queue.aqm.take_rate(notice, Instant::ZERO);
                prop_assert!((0.0..=1.0).contains(&pa), "{pa}");
                prop_assert!(queue.aqm.fair_rate().unwrap().is_finite());
            }
        }
    }
}
