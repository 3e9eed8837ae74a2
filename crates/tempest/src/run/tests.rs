use super::*;
use crate::request::Request;

fn report(flags: &str) -> Report {
    run(&Plan::of(&request(flags)).unwrap()).unwrap()
}

/// Parses `flag value` pairs, as a request in JSON would contain them.
fn request(flags: &str) -> Request {
    let words: Vec<&str> = flags.split(' ').collect();
    let object = words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].into())).collect();
    serde_json::from_value(serde_json::Value::Object(object)).unwrap()
}

#[test]
fn fifo_delays_by_what_waits_in_front() {
    // Four flows, 20 packets at most, the dequeue phase to the end: the last packet waits for all 20.
    let report = report("alg fifo flows 4 qmax 20 n 4000 measure fairness");
    assert_eq!((report.events, report.enqueues, report.dequeues), (4000, 2000, 2000));
    assert_eq!(report.worst.unwrap().max_delay_dequeues, Some(20));
    assert!(report.ns_per_packet.is_none() && report.energy.is_none());
    assert_eq!(report.throughput, Some(1.0));
}

#[test]
fn drr_of_equal_weights_takes_turns() {
    let report = report("alg drr flows 5 qmax 50 n 10k measure fairness");
    // In turn: a flow waits for 4 others, then is served. B-WFI = 4/5 at most, RFI = 1 / (1/5).
    let worst = report.worst.unwrap();
    assert!((worst.b_wfi_packets.unwrap() - 0.8).abs() < 1e-9, "{worst:?}");
    assert!((report.rfi.unwrap() - 5.0).abs() < 1e-9, "{:?}", report.rfi);
    assert!(report.flows_detail.iter().all(|flow| flow.packets == 1000));
}

#[test]
fn time_is_that_of_a_packet_and_the_harness_is_part_of_it() {
    let report = report("alg drr flows 100 n 200k repeat 2 measure time");
    let (whole, bare) = (report.ns_per_packet.unwrap(), report.ns_harness.unwrap());
    assert!(whole > 0.0 && bare > 0.0);
    assert!((report.ns_scheduler.unwrap() - (whole - bare)).abs() < 1e-9);
    assert!((report.mpps.unwrap() * whole - 1e3).abs() < 1e-6);
    assert!(report.flows_detail.is_empty() && report.rfi.is_none());
    assert_eq!(report.counters.instructions.is_some(), report.counters.missing.is_none());
    let energy = report.energy.unwrap();
    assert_eq!(energy.kind == "rapl", energy.nanojoules.is_some());
}

#[test]
fn time_in_ms_is_that_of_the_link() {
    let report = report("alg fifo flowsets 3::1,1::1 n 100 qmax 10 len 1250 rate 10Mbit/s measure fairness");
    for flow in report.flows_detail {
        assert!((flow.t_wfi_ms.unwrap() - flow.t_wfi_packets.unwrap()).abs() < 1e-9, "1250 B take 1 ms");
    }
}

#[test]
fn throughput_is_weighted_by_what_was_sent() {
    // Two stations: all packets to one are lost, none to the other. FIFO sends equally many to each.
    let report = report("alg fifo flows 4 qmax 40 n 8000 ploss 1:0 measure fairness");
    assert!((report.throughput.unwrap() - 0.5).abs() < 1e-9, "{:?}", report.throughput);
    assert_eq!(report.flows_detail.iter().map(|flow| flow.station).collect::<Vec<_>>(), [0, 1, 0, 1].map(Some));
}

/// The index compares two flows.
#[test]
fn one_flow_has_no_index_of_fairness() {
    let alone = report("alg drr flows 1 qmax 10 n 1k measure fairness");
    assert_eq!((alone.rfi, alone.rfi_between), (None, None));
    assert_eq!(report("alg drr flows 2 qmax 10 n 1k measure fairness").rfi_between, Some((2.0, 2.0)));
}

#[test]
fn the_same_request_gives_the_same_measures() {
    let flags = "alg drr flowsets 20::2,1::6 n 20k qmax 80 burst 2 qsing 1 measure fairness";
    let json = |flags| serde_json::to_string(&report(flags)).unwrap();
    assert_eq!(json(flags), json(flags));
    assert_ne!(json(flags), json(&format!("{flags} seed 2")));
}

#[test]
fn the_harness_can_be_measured_alone() {
    let report = report("alg drr flows 10 n 20k repeat 1 measure harness");
    assert!(report.ns_harness.is_some() && report.ns_per_packet.is_none() && report.flows_detail.is_empty());
}

/// Weights 20, 10 and 1 at 20 stations; the scenario of the document.
const EMERGENCY: &str = "flowsets 20::20,10::20,1::60 qmax 300 burst 1 n 100k measure fairness";

#[test]
fn without_a_buffer_the_second_scheduler_has_no_say() {
    let wired = report(&format!("alg drr {EMERGENCY} flowsmac 20"));
    let layered = report(&format!("mode double qos drr mac drr qmac 0 {EMERGENCY}"));
    assert_eq!((layered.alg.as_str(), layered.mode), ("double-drr", "double"));
    assert_eq!(layered.throughput, wired.throughput);
    let delays = |report: &Report| report.flows_detail.iter().map(|f| f.max_delay_dequeues).collect::<Vec<_>>();
    assert_eq!(delays(&wired), delays(&layered));
}

/// Losses from 1 to 0.0001 in equal steps: half of the packets arrive if the scheduler ignores the channel. If stations
/// with packets are served by weights 1 - p, the part that arrives is the mean of (1 - p)^2 over the mean of 1 - p:
/// 0.342 / 0.5 = 0.684. Bad stations fill the buffer and good ones run empty, so the result stays below. With equal
/// steps of the exponent the losses are a geometric series of ratio 0.61585: they sum up to 2.6030 and their squares to
/// 1.6110, so 17.397 / 20 = 0.870 arrive, or (20 - 2 * 2.6030 + 1.6110) / 17.397 = 0.943.
#[test]
fn a_buffer_and_a_law_of_weights_raise_throughput() {
    for (losses, nobody, most) in [("steps", 0.5, 0.684), ("powers", 0.8699, 0.9430)] {
        let layers = format!("mode double qos drr mac qfq+ {EMERGENCY} ploss {losses}");
        let throughput = |flags: &str| report(&format!("{layers} {flags}")).throughput.unwrap();
        let blind = throughput("qmac 250 wdistr 0");
        assert!((blind - nobody).abs() < 0.02, "{blind}");
        let (small, large) = (throughput("qmac 5"), throughput("qmac 250"));
        assert!(blind + 0.05 < large && large < most + 1e-3, "{large}");
        assert!(small < large, "{small} {large}");
    }
}

/// If the thresholds count the packets in both layers, a phase sends every packet that came, so the packets sent are
/// those that came.
#[test]
fn the_second_scheduler_gives_no_more_than_it_was_given() {
    let sent = |qmac: u32| report(&format!("mode double alg hfs {EMERGENCY} qcount both qmac {qmac}")).throughput;
    let blind = sent(0).unwrap();
    assert!((blind - 0.8699).abs() < 0.02, "{blind}");
    for qmac in [50, 250] {
        assert!((sent(qmac).unwrap() - blind).abs() < 1e-3, "{qmac}: {:?}, {blind}", sent(qmac));
    }
}

#[test]
fn only_wireless_schedulers_look_at_the_channel() {
    let drr = report(&format!("mode integrated alg drr {EMERGENCY} ploss steps"));
    assert!((drr.throughput.unwrap() - 0.5).abs() < 0.02, "{:?}", drr.throughput);
}

/// With equal steps the last four of twenty stations exceed 80 %: 1 - 0.9999 (19 - i) / 19 of the packets arrive at i =
/// 16..20, 0.921 on average. By powers the stations i = 4..20 do, and (0.6158^4 - 0.6158^20) / 0.38415 / 16 = 0.0234 of
/// the packets are lost. A threshold of weight 80 excludes two stations with equal steps, whose losses are 1 and 0.947;
/// the others reach 0.5526. By powers it excludes the station with a loss of 1: 1 - 1.6030 / 19 = 0.9156.
#[test]
fn a_wireless_scheduler_serves_good_stations_only() {
    for (losses, threshold, first, arrives) in [
        ("steps", "80%", 16, 0.921),
        ("powers", "80%", 4, 0.9766),
        ("steps", "80", 2, 0.5526),
        ("powers", "80", 1, 0.9156),
    ] {
        for flags in [EMERGENCY, "flowsets 1::40 qmax 300 n 100k measure fairness"] {
            let report = report(&format!("mode integrated alg w2f2q ploss {losses} intgr_th {threshold} {flags}"));
            let served = report.flows_detail.iter().filter(|flow| flow.packets > 0).filter_map(|flow| flow.station);
            assert_eq!(served.min(), Some(first), "{losses} {threshold}");
            assert!((report.throughput.unwrap() - arrives).abs() < 0.005, "{losses}: {:?}", report.throughput);
        }
    }
}
