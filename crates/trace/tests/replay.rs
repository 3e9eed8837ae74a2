//! Replays whose results can be computed by hand.

use penstock_core::config::LinkFacts;
use penstock_core::link_layer::{Framing, LinkLayer};
use penstock_core::registry::AnyConfig;
use penstock_core::rng::{Rng, Streams};
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Limit, Rate, Span};
use penstock_trace::read::read;
use penstock_trace::record::{COLUMNS, Record};
use penstock_trace::replay::{Conditions, replay, replay_under};
use proptest::prelude::*;

/// At this rate 1000 bytes take a millisecond.
const RATE: Rate = Rate::from_bps(8_000_000);

fn droptail_csv(trace: &str, limit: Limit) -> String {
    let config = AnyConfig::default_of("droptail").unwrap();
    let outcome = replay(read(trace.as_bytes()).unwrap(), &config, LinkFacts { rate: RATE, limit }, 1).unwrap();
    let mut csv = Vec::new();
    outcome.write_csv(&mut csv).unwrap();
    String::from_utf8(csv).unwrap()
}

/// Four packets arrive at once before a queue of two: one is sent, two wait, one is dropped. The fifth arrives when the
/// link becomes free, which makes room for it. The sixth finds an idle link.
#[test]
fn droptail_sends_what_fits_in_order() {
    let trace = "t_ns,flow,size,ecn\n\
        0,70,1000,2\n0,70,1000,0\n0,8,500,1\n0,8,1000,3\n1000000,70,1000,0\n9000000,70,1000,0\n";
    let expected = "id,t_arr_ns,flow,size,fate,t_fate_ns,sojourn_ns,ecn_out\n\
        0,0,70,1000,sent,0,0,2\n\
        1,0,70,1000,sent,1000000,1000000,0\n\
        2,0,8,500,sent,2000000,2000000,1\n\
        3,0,8,1000,drop_overflow,0,0,3\n\
        4,1000000,70,1000,sent,2500000,1500000,0\n\
        5,9000000,70,1000,sent,9000000,0,0\n";
    assert_eq!(droptail_csv(trace, Limit::Packets(2)), expected);
    assert!(expected.starts_with(COLUMNS));
}

#[test]
fn the_summary_adds_up_by_hand() {
    let trace = "t_ns,flow,size,ecn\n0,0,1000,0\n0,0,1000,0\n0,0,1000,0\n0,0,1000,0\n";
    let config = AnyConfig::default_of("droptail").unwrap();
    let link = LinkFacts { rate: RATE, limit: Limit::Packets(2) };
    let s = replay(read(trace.as_bytes()).unwrap(), &config, link, 1).unwrap().summary;
    assert_eq!((s.packets, s.sent, s.drop_overflow, s.bytes, s.sent_bytes), (4, 3, 1, 4000, 3000));
    assert_eq!((s.duration_s, s.throughput_bps, s.utilization), (0.003, Some(8e6), Some(1.0)));
    let sojourn = s.sojourn_ms;
    assert_eq!((sojourn.mean, sojourn.p10, sojourn.max), (1.0, 0.0, 2.0));
    assert!((sojourn.p50 - 1.0).abs() < 0.001, "{sojourn:?}");
}

/// A trace without a packet has no time in which anything could be sent, so that there is no throughput, and no delay.
#[test]
fn of_no_packets_there_is_no_throughput_no_use_and_no_delay() {
    let config = AnyConfig::default_of("droptail").unwrap();
    let link = LinkFacts { rate: RATE, limit: Limit::Packets(2) };
    let none = replay(std::iter::empty(), &config, link, 1).unwrap().summary;
    assert_eq!((none.packets, none.throughput_bps, none.utilization), (0, None, None));
    assert!(none.sojourn_ms.p90.is_nan(), "{none:?}");
}

/// Packets of 1000 bytes every 0.8 ms before a link that takes 1 ms for each: RED has something to decide.
fn crowd() -> String {
    let rows: Vec<String> = (0..2000).map(|i| format!("{},0,1000,0\n", i * 800_000)).collect();
    format!("t_ns,flow,size,ecn\n{}", rows.concat())
}

fn under(aqm: &str, trace: &str, conditions: &Conditions) -> Result<String, String> {
    let config = AnyConfig::default_of(aqm).unwrap();
    let link = LinkFacts { rate: RATE, limit: Limit::Packets(100) };
    let (mut csv, mut id) = (Vec::new(), 0);
    let each = |packet: &Record| {
        packet.write_csv(id, &mut csv).unwrap();
        id += 1;
    };
    let arrivals = read(trace.as_bytes()).unwrap();
    replay_under(arrivals, &config, link, conditions, each).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(csv).unwrap())
}

/// The numbers of the discipline's own stream, written down and given back, make the same replay; too few are an error
/// that says when they ran out.
#[test]
fn given_draws_take_the_place_of_the_stream() {
    let seeded = Conditions::seeded(7);
    let mut stream = Streams::new(7).get("replay/red");
    let numbers: Vec<u64> = (0..4000).map(|_| stream.bits()).collect();
    let given = |numbers: &[u64]| Conditions { draws: Some(Rng::given(numbers.to_vec())), ..seeded.clone() };
    let expected = under("red", &crowd(), &seeded).unwrap();
    assert!(expected.contains("drop_early"));
    assert_eq!(under("red", &crowd(), &given(&numbers)), Ok(expected.clone()));
    assert_ne!(under("red", &crowd(), &Conditions { draws: Some(Rng::split_mix(1)), ..seeded.clone() }), Ok(expected));
    let message = under("red", &crowd(), &given(&numbers[..3])).unwrap_err();
    assert!(message.contains("the draws have run out") && message.contains("there are 3"), "{message}");
}

/// A clock that is a second ahead changes no time of a record, and nothing at all where the discipline has no clock.
#[test]
fn the_clock_offset_is_the_disciplines_alone() {
    let ahead = Conditions { clock_offset: Span::from_secs(1), ..Conditions::seeded(1) };
    for aqm in ["droptail", "codel"] {
        assert_eq!(under(aqm, &crowd(), &ahead), under(aqm, &crowd(), &Conditions::seeded(1)), "{aqm}");
    }
    // PIE looks at the queue at multiples of 15 ms of its clock, of which 1 ms is none.
    let shifted = Conditions { clock_offset: Span::from_millis(1), ..Conditions::seeded(1) };
    assert_ne!(under("pie", &crowd(), &shifted), under("pie", &crowd(), &Conditions::seeded(1)));
}

/// Two flows, of which either comes first, have the same classes: those of their numbers in the file. A hundred packets of
/// each wait before a link that sends them one by one, and class 0 weighs nine times class 1.
#[test]
fn the_class_of_a_flow_does_not_depend_on_who_comes_first() {
    let link = LinkFacts { rate: RATE, limit: Limit::Packets(1000) };
    for (flows, classify, shares) in [
        ([0u64, 1], "index", [54, 6]),
        ([1, 0], "index", [6, 54]),
        ([65_536, 65_537], "index", [54, 6]),
        ([4_000_000_001, 4_000_000_000], "index", [6, 54]),
        ([3, 8], "hash", [54, 6]), // with this key 3 is in class 0 and 8 in class 1
    ] {
        let settings = ["flows=2", "weights=9::1,1::1", "class_limit=1000p", "perturbation=1"].map(str::to_owned);
        let settings = [settings.as_slice(), &[format!("classify={classify}")]].concat();
        let config = config_from_settings("wf2q-plus", &settings).unwrap();
        for first in [0, 1] {
            let mut trace = format!("t_ns,flow,size,ecn\n0,{},1000,0\n", flows[first]);
            for _ in 0..100 {
                flows.iter().for_each(|flow| trace += &format!("1000,{flow},1000,0\n"));
            }
            let mut packets = replay(read(trace.as_bytes()).unwrap(), &config, link, 1).unwrap().packets;
            packets.sort_by_key(|packet| packet.t_fate);
            let share = flows.map(|flow| packets[1..61].iter().filter(|packet| packet.flow == flow).count());
            assert_eq!(share, shares, "{flows:?} by {classify}, {} first", flows[first]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any arrivals, every discipline accounts for each packet once, in order of arrival, and does so again in the
    /// same way.
    #[test]
    fn every_discipline_accounts_for_every_packet(
        packets in proptest::collection::vec((0u64..3_000_000, 0u64..5, 40u64..2000, 0u8..4), 1..200),
        limit in 1u64..50,
        seed: u64,
    ) {
        let mut trace = String::from("t_ns,flow,size,ecn\n");
        let mut t = 0;
        for (gap, flow, size, ecn) in &packets {
            t += gap;
            trace += &format!("{t},{flow},{size},{ecn}\n");
        }
        for name in penstock_core::registry::NAMES {
            let config = AnyConfig::default_of(name).unwrap();
            let link = LinkFacts { rate: RATE, limit: Limit::Packets(limit) };
            let run = || replay(read(trace.as_bytes()).unwrap(), &config, link, seed);
            let outcome = run().map_err(|e| TestCaseError::fail(format!("{name}: {e}")))?;
            prop_assert_eq!(outcome.packets.len(), packets.len());
            for (record, (_, flow, size, _)) in outcome.packets.iter().zip(&packets) {
                prop_assert_eq!((record.flow, u64::from(record.size)), (*flow, *size));
            }
            let s = &outcome.summary;
            prop_assert_eq!(s.sent + s.drop_early + s.drop_overflow + s.drop_dequeue, s.packets);
            prop_assert!(s.utilization.is_none_or(|part| part <= 1.0 + 1e-9));
            prop_assert_eq!(&outcome, &run().unwrap(), "the same seed gives the same result");
        }
    }
}

const ATM: LinkLayer = LinkLayer { overhead: 44, mpu: 0, framing: Framing::Atm };

/// Three packets of 1500, 40 and 5 bytes come at once to a link of 8 Mbit/s, which adds 44 bytes and sends cells: they take 1749,
/// 106 and 106 us. The link is used for all of the time, and packets have 1545 of its 1961 bytes.
#[test]
fn a_link_layer_takes_time_for_what_it_adds() {
    let conditions = Conditions { layer: ATM, ..Conditions::seeded(1) };
    let trace = "t_ns,flow,size,ecn\n0,0,1500,0\n0,0,40,0\n0,0,5,0\n";
    let link = LinkFacts { rate: RATE, limit: Limit::Packets(100) };
    for aqm in ["droptail", "fq-codel", "pie", "cake"] {
        let mut left = Vec::new();
        let each = |packet: &Record| left.push(packet.sojourn().as_nanos() / 1000);
        let config = AnyConfig::default_of(aqm).unwrap();
        let summary = replay_under(read(trace.as_bytes()).unwrap(), &config, link, &conditions, each).unwrap();
        assert_eq!(left, [0, 1749, 1855], "{aqm}");
        assert_eq!(summary.duration_s, 1961e-6);
        assert!((summary.utilization.unwrap() - 1.0).abs() < 1e-9, "{aqm}: {summary:?}");
        assert!((summary.throughput_bps.unwrap() / 8e6 - 1545.0 / 1961.0).abs() < 1e-9, "{aqm}: {summary:?}");
    }
}
