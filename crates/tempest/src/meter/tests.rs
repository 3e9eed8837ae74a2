//! Compares every measure with its definition, computed literally.

use super::*;
use crate::pairs::{EXACT, Pairs};
use proptest::prelude::*;

/// The state between two events.
#[derive(Debug, Clone)]
struct Moment {
    all: u64,
    of: Vec<u64>,
    /// Flows that were busy through the whole event before this moment.
    busy: Vec<bool>,
}

/// The log of a run: moments, and for each packet that left its flow, D at its arrival, Q at its arrival, and D at its
/// departure.
#[derive(Default)]
struct Log {
    moments: Vec<Moment>,
    packets: Vec<(usize, u64, u64, u64)>,
}

/// Random events: `Ok(flow)` arrives, `Err(flow)` leaves if the flow has a packet.
fn events(flows: usize) -> impl Strategy<Value = Vec<Result<usize, usize>>> {
    let one = (any::<bool>(), 0..flows).prop_map(|(comes, flow)| if comes { Ok(flow) } else { Err(flow) });
    prop::collection::vec(one, 1..60)
}

const MOST: usize = 64;

fn play(weights: &[u32], events: &[Result<usize, usize>]) -> (Log, Vec<Given>, Indices) {
    let n = weights.len();
    let mut meter = Fairness::new(weights, MOST);
    let mut log = Log::default();
    let mut queues = vec![std::collections::VecDeque::new(); n];
    let (mut all, mut of, mut free) = (0, vec![0; n], (0..MOST as u32).collect::<Vec<_>>());
    log.moments.push(Moment { all, of: of.clone(), busy: vec![false; n] });
    for event in events {
        let busy: Vec<bool> = queues.iter().map(|queue| !queue.is_empty()).collect();
        match *event {
            Ok(flow) => {
                let packet = free.pop().unwrap();
                let waiting = queues[flow].len() as u32 + 1;
                queues[flow].push_back((packet, all, u64::from(waiting)));
                meter.arrived(flow as u32, packet, waiting);
            }
            Err(flow) => {
                let Some((packet, came, waiting)) = queues[flow].pop_front() else { continue };
                free.push(packet);
                all += 1;
                of[flow] += 1;
                log.packets.push((flow, came, waiting, all));
                meter.left(flow as u32, packet, queues[flow].len() as u32);
            }
        }
        log.moments.push(Moment { all, of: of.clone(), busy });
    }
    let (given, indices) = meter.finish();
    (log, given, indices)
}

/// Every interval [t1, t2] in which these flows are never empty; t1 = t2 counts if a busy period contains it.
fn intervals<'a>(log: &'a Log, flows: &'a [usize]) -> impl Iterator<Item = (&'a Moment, &'a Moment)> {
    let last = log.moments.len();
    (0..last).flat_map(move |i| {
        let busy = move |&j: &usize| flows.iter().all(|&flow| log.moments[j].busy[flow]);
        (i + 1..last).take_while(busy).map(move |j| (&log.moments[i], &log.moments[j]))
    })
}

fn b_wfi(log: &Log, k: usize, phi: f64) -> f64 {
    let lag = |a: &Moment, b: &Moment| phi * (b.all - a.all) as f64 - (b.of[k] - a.of[k]) as f64;
    intervals(log, &[k]).map(|(a, b)| lag(a, b)).fold(0.0, f64::max)
}

/// The B-WFI with t1 only at moments at which flow k stops being empty.
fn lag(log: &Log, k: usize, phi: f64) -> f64 {
    let behind = |a: &Moment, b: &Moment| phi * (b.all - a.all) as f64 - (b.of[k] - a.of[k]) as f64;
    let begins = |a: &Moment| {
        log.moments.iter().position(|moment| std::ptr::eq(moment, a)).is_some_and(|i| !log.moments[i].busy[k])
    };
    intervals(log, &[k]).filter(|(a, _)| begins(a)).map(|(a, b)| behind(a, b)).fold(0.0, f64::max)
}

fn rfi(log: &Log, k: usize, h: usize, phi: &[f64]) -> f64 {
    let given = |a: &Moment, b: &Moment, flow: usize| (b.of[flow] - a.of[flow]) as f64 / phi[flow];
    intervals(log, &[k, h]).map(|(a, b)| (given(a, b, h) - given(a, b, k)).abs()).fold(0.0, f64::max)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * (1.0 + a.abs())
}

fn compare(weights: &[u32], events: &[Result<usize, usize>]) {
    let (log, given, indices) = play(weights, events);
    let total: u32 = weights.iter().sum();
    let phi: Vec<f64> = weights.iter().map(|&weight| f64::from(weight) / f64::from(total)).collect();
    let n = weights.len();
    let mut worst = vec![0.0_f64; n];
    for (k, h) in (0..n).flat_map(|k| (0..n).map(move |h| (k, h))).filter(|(k, h)| k != h) {
        worst[k] = worst[k].max(rfi(&log, k, h, &phi));
    }
    for (k, found) in given.iter().enumerate() {
        assert!(close(found.b_wfi.unwrap_or(0.0), b_wfi(&log, k, phi[k])), "B-WFI of {k}: {found:?}");
        let own = || log.packets.iter().filter(|packet| packet.0 == k);
        assert!(close(found.lag.unwrap_or(0.0), lag(&log, k, phi[k])), "lag of {k}: {found:?}");
        assert_eq!(found.delay, own().map(|&(_, came, _, left)| left - came).max(), "{k}");
        let late = own().map(|&(_, came, waiting, left)| (left - came) as f64 - waiting as f64 / phi[k]);
        let late = late.fold(f64::NEG_INFINITY, f64::max);
        assert!(
            found.t_wfi.map_or(late == f64::NEG_INFINITY, |wfi| close(wfi, late)),
            "T-WFI of {k}: {found:?}, {late}"
        );
        if n > 1 {
            assert!(close(found.rfi.unwrap(), worst[k]), "RFI of {k}: {found:?}, {}", worst[k]);
        }
    }
    let all = worst.iter().copied().fold(0.0, f64::max);
    assert!(close(indices.at_least, all) && close(indices.at_most, all), "{indices:?}, {all}");
    // The bound that is reported if there are more flows than rows.
    let ranges: Vec<f64> = (0..n).map(|k| range(&log, k, phi[k])).collect();
    let mut sorted = ranges.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    assert!(sorted.iter().take(2).sum::<f64>() >= all - 1e-9);
}

/// The largest range of S_k - D in a busy period.
fn range(log: &Log, k: usize, phi: f64) -> f64 {
    let moved = |a: &Moment, b: &Moment| ((b.of[k] - a.of[k]) as f64 / phi - (b.all - a.all) as f64).abs();
    intervals(log, &[k]).map(|(a, b)| moved(a, b)).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_measure_is_what_its_definition_says(
        (weights, events) in prop::collection::vec(1u32..6, 1..5)
            .prop_flat_map(|weights| { let n = weights.len(); (Just(weights), events(n)) })
    ) {
        compare(&weights, &events);
    }
}

/// Every pair after every event, by the definition of RFI: rows that are updated late and partly still find every
/// range.
#[test]
fn rows_miss_no_pair_of_many_flows() {
    let mut rng = penstock_core::rng::Streams::new(1).get("pairs");
    let weights: Vec<u32> = (0..40).map(|k| 1 + k % 7).collect();
    let total = f64::from(weights.iter().sum::<u32>());
    let n = weights.len();
    let mut pairs = Pairs::new(&weights);
    let (mut waiting, mut service) = (vec![0_u32; n], vec![0.0; n]);
    let mut z = vec![None::<(f64, f64)>; n * n];
    let mut worst = vec![0.0_f64; n];
    for _ in 0..20_000 {
        let k = rng.below(n as u64) as usize;
        if rng.uniform() < 0.5 && waiting[k] < 6 {
            waiting[k] += 1;
            if waiting[k] == 1 {
                pairs.begins(k);
            }
        } else if waiting[k] > 0 {
            waiting[k] -= 1;
            service[k] += total / f64::from(weights[k]);
            pairs.serves(k, waiting[k] == 0);
        }
        for (i, h) in (0..n).flat_map(|i| (0..n).map(move |h| (i, h))).filter(|(i, h)| i != h) {
            let now = service[i] - service[h];
            let (least, most) = z[i * n + h].unwrap_or((now, now));
            // The service which empties a flow is the last of the common time.
            let range = (least.min(now), most.max(now));
            if z[i * n + h].is_some() {
                worst[i] = worst[i].max(range.1 - range.0);
            }
            z[i * n + h] = (waiting[i] > 0 && waiting[h] > 0).then_some(range);
        }
    }
    let indices = pairs.finish(&vec![0.0; n]);
    for (k, worst) in worst.iter().enumerate() {
        assert!(close(indices.of_flow(k).unwrap(), *worst), "{k}: {:?}, {worst}", indices.of_flow(k));
    }
}

#[test]
fn a_flow_alone_waits_for_nobody() {
    let (_, given, indices) = play(&[7], &[Ok(0), Ok(0), Err(0), Err(0)]);
    let [flow] = given[..] else { panic!("one flow") };
    assert_eq!((flow.packets, flow.delay), (2, Some(2)));
    assert_eq!((flow.b_wfi, flow.t_wfi, flow.rfi), (Some(0.0), Some(0.0), None));
    assert_eq!((indices.at_least, indices.at_most), (0.0, 0.0));
}

#[test]
fn two_packets_of_another_first_are_counted_by_hand() {
    // Weights 1 and 3: phi = 1/4, 3/4. Flow 0 goes twice before flow 1.
    let (_, given, indices) = play(&[1, 3], &[Ok(0), Ok(0), Ok(1), Err(0), Err(0), Err(1)]);
    // Flow 1: lag 3/4 * 2. Its packet leaves third, and in a fair system after 1 / (3/4).
    assert_eq!(given[1].b_wfi, Some(1.5));
    assert!(close(given[1].t_wfi.unwrap(), 3.0 - 4.0 / 3.0));
    assert_eq!(given[1].delay, Some(3));
    // Flow 0 is never behind: its second packet leaves after 2, fair were 2 / (1/4).
    assert_eq!((given[0].b_wfi, given[0].t_wfi), (Some(0.0), Some(-3.0)));
    // Both busy until flow 0 is empty: 2 / (1/4) - 0.
    assert_eq!((indices.at_least, indices.at_most), (8.0, 8.0));
}

#[test]
fn a_flow_that_is_never_served_falls_behind_all_others() {
    let events: Vec<_> = std::iter::once(Ok(1)).chain((0..10).flat_map(|_| [Ok(0), Err(0)])).collect();
    let (_, given, _) = play(&[1, 1], &events);
    assert_eq!((given[1].packets, given[1].b_wfi, given[1].t_wfi, given[1].delay), (0, Some(5.0), None, None));
}

#[test]
fn above_so_many_flows_the_index_is_between_two_bounds() {
    let mut meter = Fairness::new(&vec![1; 2 * EXACT], 4 * EXACT);
    for flow in 0..2 * EXACT as u32 {
        meter.arrived(flow, flow, 1);
    }
    (0..2 * EXACT as u32).for_each(|flow| meter.left(flow, flow, 0));
    let (given, indices) = meter.finish();
    // Flows are served once each in turn: the difference of a pair is at most 1 / phi.
    let exact = 2.0 * EXACT as f64;
    assert!(close(indices.at_least, exact), "{indices:?}");
    assert!(indices.at_most >= exact && indices.at_most <= 2.0 * exact, "{indices:?}");
    assert_eq!(given.iter().filter(|flow| flow.rfi.is_some()).count(), EXACT);
}
