use super::*;
use crate::segment::{Payload, Segment};
use penstock_core::packet::{Ecn, TcpFlags};
use penstock_core::qdisc::{Backlog, Stats};
use penstock_core::units::Limit;

const TEXT: &str = "duration = \"2s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"5Mbit/s\"\ndelay = \"10ms\"\nlimit = \"30p\"\n\
                    [aqm]\nname = \"droptail\"\n[[flows]]\nkind = \"bulk\"\ncount = 2\n[[flows]]\nkind = \"cbr\"\nrate = \"1Mbit/s\"\n";

fn scenario() -> Scenario {
    Scenario::parse(TEXT, "test.toml").unwrap()
}

/// An audit of one queue with room for three packets.
fn audit_of(aqm: &str) -> Audit {
    let promises = Promises { limit: Limit::Packets(3), may_idle: false, order_by_kind: aqm == "dualpi2" };
    Audit::new(std::iter::once(("link".to_owned(), promises)), Vec::new(), true)
}

fn audit() -> Audit {
    audit_of("droptail")
}

fn now() -> Instant {
    Instant::ZERO + Span::from_millis(5)
}

/// A packet of 1000 B.
fn packet(flow: u32, seq: u32, ecn: Ecn) -> Segment {
    let mut packet = Segment::udp(flow, true, Payload { seq, len: 972 });
    packet.set_ecn(ecn);
    packet
}

fn plain(seq: u32) -> Segment {
    packet(7, seq, Ecn::NotEct)
}

fn of(packets: u64) -> Backlog {
    Backlog { packets, bytes: 1000 * packets }
}

/// The counters of a discipline to which so many packets of 1000 B came, and that sent and dropped so many of them.
fn counted(arrived: u64, sent: u64, dropped: u64) -> Stats {
    Stats { arrived: of(arrived), sent: of(sent), dropped_early: of(dropped), ..Stats::default() }
}

fn rules(audit: &Audit) -> Vec<Rule> {
    audit.found.iter().map(|one| one.rule).collect()
}

/// Two packets come, one leaves and one is dropped; `fault` happens before the last.
fn lived(fault: impl FnOnce(&mut Audit)) -> Vec<Rule> {
    let mut audit = audit();
    audit.arrived(0, &plain(1));
    audit.settled(0, of(1), &counted(1, 0, 0), now());
    audit.arrived(0, &plain(2));
    audit.settled(0, of(2), &counted(2, 0, 0), now());
    audit.asked(0, Some(&plain(1)), now());
    audit.settled(0, of(1), &counted(2, 1, 0), now());
    fault(&mut audit);
    audit.dropped(0, &plain(2), now());
    audit.settled(0, of(0), &counted(2, 1, 1), now());
    audit.asked(0, None, now());
    audit.drained(0, now());
    rules(&audit)
}

#[test]
fn what_keeps_all_rules_is_not_reported() {
    assert_eq!(lived(|_| ()), []);
}

#[test]
fn a_packet_that_ends_twice_or_never_came_or_was_changed_is_noticed() {
    let twice = lived(|audit| audit.asked(0, Some(&plain(1)), now()));
    assert_eq!(twice, [Rule::Origin, Rule::Books], "and it is one more than is counted");
    let mut longer = plain(2);
    longer.len += 1;
    for wrong in [plain(3), packet(8, 2, Ecn::NotEct), longer] {
        assert_eq!(lived(|audit| audit.dropped(0, &wrong, now()))[0], Rule::Origin, "{wrong:?}");
    }
    let mut audit = audit();
    audit.taken(0, &[], now());
    audit.arrived(0, &plain(1));
    audit.taken(0, &[plain(1)], now());
    assert_eq!(rules(&audit), []);
    audit.arrived(0, &plain(2));
    audit.taken(0, &[plain(1)], now());
    assert_eq!(rules(&audit), [Rule::Origin]);
}

#[test]
fn wrong_counters_are_noticed() {
    let settle = |backlog, stats: Stats| lived(move |audit| audit.settled(0, backlog, &stats, now()));
    assert_eq!(settle(of(1), counted(2, 1, 0)), []);
    let wrong = [
        (of(0), counted(2, 1, 0)),
        (Backlog { bytes: 999, ..of(1) }, counted(2, 1, 0)),
        (of(1), counted(3, 1, 0)),
        (of(1), counted(2, 2, 0)),
        (of(1), counted(2, 1, 1)),
        (of(1), Stats { marked: of(1), ..counted(2, 1, 0) }),
    ];
    for (backlog, stats) in wrong {
        assert_eq!(settle(backlog, stats), [Rule::Books], "{backlog:?} {stats:?}");
    }
    assert_eq!(lived(|audit| audit.marked(0)), [Rule::Books], "a mark that is not counted");
}

#[test]
fn a_queue_above_its_limit_is_noticed() {
    let mut audit = audit();
    for n in 1..=4 {
        audit.arrived(0, &plain(n as u32));
        audit.settled(0, of(n), &counted(n, 0, 0), now());
        assert_eq!(audit.found.len(), usize::from(n > 3), "{n} packets wait");
    }
    assert_eq!(rules(&audit), [Rule::Limit]);
}

/// The packets with these numbers and fields come, and leave in the order of `leave`.
fn order(aqm: &str, come: &[(u32, u32, Ecn)], leave: &[usize]) -> Vec<Rule> {
    let mut audit = audit_of(aqm);
    let packets: Vec<Segment> = come.iter().map(|(flow, seq, ecn)| packet(*flow, *seq, *ecn)).collect();
    packets.iter().for_each(|packet| audit.arrived(0, packet));
    leave.iter().for_each(|place| audit.asked(0, Some(&packets[*place]), now()));
    rules(&audit)
}

#[test]
fn a_flow_that_is_reordered_is_noticed() {
    let (no, l4s) = (Ecn::NotEct, Ecn::Ect1);
    assert_eq!(order("codel", &[(1, 1, no), (2, 1, no), (1, 2, no)], &[1, 0, 2]), [], "other flows may overtake");
    assert_eq!(order("codel", &[(1, 1, no), (1, 2, no)], &[1, 0]), [Rule::Order]);
    assert_eq!(order("codel", &[(1, 1, no), (1, 2, l4s)], &[1, 0]), [Rule::Order]);
    assert_eq!(order("dualpi2", &[(1, 1, no), (1, 2, l4s)], &[1, 0]), [], "it has a queue for each kind");
    assert_eq!(order("dualpi2", &[(1, 1, no), (1, 2, Ecn::Ect0)], &[1, 0]), [], "with any_ect, ECT(0) is with L4S");
    for ecn in [no, Ecn::Ect0, l4s] {
        assert_eq!(order("dualpi2", &[(1, 1, ecn), (1, 2, ecn)], &[1, 0]), [Rule::Order], "{ecn:?}");
    }
}

#[test]
fn a_link_that_is_idle_while_packets_wait_is_noticed() {
    assert_eq!(lived(|audit| audit.asked(0, None, now())), [Rule::Idle]);
    let mut audit = audit();
    audit.queues[0].promises.may_idle = true;
    audit.arrived(0, &plain(1));
    audit.asked(0, None, now());
    audit.drained(0, now());
    assert_eq!(rules(&audit), [], "the channel may be bad");
    audit.queues[0].promises.may_idle = false;
    audit.drained(0, now());
    assert_eq!(rules(&audit), [Rule::Drain]);
}

#[test]
fn a_mark_on_what_is_not_ecn_capable_is_noticed() {
    let become_of = |from: Ecn, to: Ecn, dropped: bool| {
        let mut audit = audit();
        audit.arrived(0, &packet(1, 1, from));
        match dropped {
            true => audit.dropped(0, &packet(1, 1, to), now()),
            false => audit.asked(0, Some(&packet(1, 1, to)), now()),
        }
        rules(&audit)
    };
    let all = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];
    for (from, to) in all.iter().flat_map(|from| all.map(|to| (*from, to))) {
        let right = from == to || (to == Ecn::Ce && from != Ecn::NotEct);
        for dropped in [false, true] {
            assert_eq!(become_of(from, to, dropped), if right { vec![] } else { vec![Rule::Ecn] }, "{from:?} {to:?}");
        }
    }
}

#[test]
fn a_window_that_is_raised_and_any_other_edit_is_noticed() {
    let segment = |window: u16, ack: u32| {
        let mut segment = Segment::tcp(1, false, TcpFlags::ACK);
        (segment.window, segment.ack) = (window, ack);
        segment
    };
    let edit = |from: Segment, to: Segment| {
        let mut audit = audit();
        audit.edited(0, &from, &to, now());
        rules(&audit)
    };
    assert_eq!(edit(segment(100, 1), segment(99, 1)), []);
    assert_eq!(edit(segment(0, 1), segment(0, 1)), []);
    for (from, to) in [((100, 1), (101, 1)), ((100, 1), (0, 1)), ((100, 1), (100, 2)), ((100, 1), (99, 2))] {
        assert_eq!(edit(segment(from.0, from.1), segment(to.0, to.1)), [Rule::Window], "{from:?} {to:?}");
    }
}

#[test]
fn more_delivered_than_sent_is_noticed() {
    // A SYN with number 100, then 1000 bytes twice: what is retransmitted is delivered once.
    let mut left = Left::default();
    let mut syn = Segment::tcp(1, true, TcpFlags::SYN);
    syn.seq = 100;
    let mut data = Segment::tcp(1, true, TcpFlags::ACK);
    (data.seq, data.len) = (101, 1000);
    [syn, data, data].iter().for_each(|segment| left.add(segment));
    assert_eq!((left.bytes, left.deliverable()), (2000, 1000));
    let deliver = |kind: &str, bytes: u64| {
        let mut audit = audit();
        audit.check_delivery(0, 1, kind, bytes, left, now());
        rules(&audit)
    };
    assert_eq!((deliver("bulk", 1000), deliver("cbr", 2000), deliver("http", 9000)), (vec![], vec![], vec![]));
    assert_eq!((deliver("bulk", 1001), deliver("cbr", 2001)), (vec![Rule::Delivered], vec![Rule::Delivered]));
    let mut audit = audit();
    audit.queues[0].payload = 10;
    audit.check_sum(0, 10, now());
    audit.check_ends(0, [5, 6, 7], now());
    audit.check_ends(0, [5, 5, 5], now());
    assert_eq!(rules(&audit), []);
    audit.check_sum(0, 11, now());
    audit.check_ends(0, [7, 6, 7], now());
    audit.check_ends(0, [5, 8, 7], now());
    assert_eq!(rules(&audit), [Rule::Delivered; 3]);
}

fn ran() -> (Simulation, Summary) {
    let scenario = scenario();
    let mut simulation = Simulation::new(&scenario);
    simulation.audit(&scenario);
    simulation.advance(Span::MAX).unwrap();
    let summary = simulation.summary();
    (simulation, summary)
}

#[test]
fn a_whole_run_keeps_all_rules_and_each_contradiction_in_its_results_is_noticed() {
    let check = |change: fn(&mut Summary)| {
        let (simulation, mut summary) = ran();
        let mut audit = simulation.world.outlet.audit.unwrap();
        change(&mut summary);
        audit.check_summary(&summary, now());
        rules(&audit)
    };
    assert_eq!(check(|_| ()), []);
    let changes: [fn(&mut Summary); 16] = [
        |s| s.jain.overall = f64::NAN,
        |s| s.jain.worst_1s = 1.1,
        |s| s.bottlenecks[0].utilization = 1.001,
        |s| s.bottlenecks[0].queue_bytes.mean = 1e9,
        |s| s.bottlenecks[0].queue_delay_ms.p50 = 1e9,
        |s| s.bottlenecks[0].queue_delay_ms.max = 0.0,
        |s| s.bottlenecks[0].packets_all += 1,
        |s| s.bottlenecks[0].bytes_all -= 1,
        |s| s.bottlenecks[0].drops_overflow += 1,
        |s| s.bottlenecks[0].marks += 1,
        |s| s.goodput_1s_bps.p10 = -1.0,
        |s| s.rtt_ms.p99 = 0.0,
        |s| s.flows[0].rtt_ms.min = -1.0,
        |s| s.flows[0].completion_s = Some(2.1),
        |s| s.flows[0].goodput_bps = f64::NAN,
        |s| s.flows[0].start_s = s.duration_s,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(check(change).contains(&Rule::Summary), "change {number}");
    }
    let (mut simulation, summary) = ran();
    let mut audit = audit();
    audit.check_round_trip(&summary.flows[0], 20.0, now());
    audit.check_goodput(&summary.flows[0], 5e6, now());
    assert_eq!(rules(&audit), []);
    audit.check_round_trip(&summary.flows[0], summary.flows[0].rtt_ms.min + 1.0, now());
    audit.check_goodput(&summary.flows[0], summary.flows[0].goodput_bps / 2.0, now());
    assert_eq!(rules(&audit), [Rule::Summary; 2]);
    let audited = simulation.end_audit();
    assert_eq!((audited.violations, audited.packets > 500), (vec![], true));
    assert_eq!(null_in(&serde_json::json!({ "completion_s": null, "a": [1.0, null] })), Some("a/1/".to_owned()));
    assert_eq!(null_in(&serde_json::json!({ "rtt_ms": { "min": null, "p50": null } })), None, "missing as a whole");
    assert_eq!(null_in(&serde_json::json!({ "rtt_ms": { "min": 1.0, "p50": null } })), Some("rtt_ms/p50/".to_owned()));
}

/// What a discipline does behind the back of the audit is noticed in a run.
#[test]
fn faults_in_a_run_are_noticed() {
    use penstock_core::qdisc::Qdisc;
    use penstock_core::rng::Streams;
    let with = |fault: fn(&mut Simulation)| {
        let scenario = scenario();
        let mut simulation = Simulation::new(&scenario);
        simulation.audit(&scenario);
        simulation.advance(Span::from_millis(500)).unwrap();
        while simulation.world.links[0].queue.waiting.packets == 0 {
            assert!(!simulation.advance(Span::from_millis(1)).unwrap(), "no packet waits");
        }
        fault(&mut simulation);
        let _ = simulation.advance(Span::MAX);
        simulation.end_audit().violations.iter().map(|one| one.rule).collect::<Vec<_>>()
    };
    assert_eq!(with(|_| ()), []);
    // A packet vanishes.
    let stolen = with(|simulation| {
        let queue = &mut simulation.world.links[0].queue;
        let mut rng = Streams::new(1).get("thief");
        assert!(queue.qdisc.dequeue(now(), &mut rng, &mut ()).is_some(), "a packet waits");
    });
    assert!(stolen.contains(&Rule::Books) && stolen.contains(&Rule::Drain), "{stolen:?}");
    // A packet appears.
    let forged = with(|simulation| {
        let queue = &mut simulation.world.links[0].queue;
        let mut rng = Streams::new(1).get("thief");
        while queue.qdisc.dequeue(now(), &mut rng, &mut ()).is_some() {}
        let mut packet = plain(1);
        packet.cursor = simulation.actors.flows[2].routes[0] + 1;
        let _ = queue.qdisc.enqueue(packet, now(), &mut rng, &mut ());
    });
    assert!(forged.contains(&Rule::Origin), "{forged:?}");
    // A server claims what nobody has sent.
    let lied = with(|simulation| simulation.world.outlet.audit.as_mut().unwrap().queues[0].left.clear());
    assert!(lied.contains(&Rule::Delivered), "{lied:?}");
}
