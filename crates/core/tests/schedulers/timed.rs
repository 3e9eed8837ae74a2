//! The bounds of schedulers on a link where time passes: packets arrive at any time, also while another is sent.
//!
//! The link sends a byte in each unit of time. What is measured is exact, as whole numbers:
//!
//! - *lateness*: by how much the end of a packet is after its guaranteed finish, which is that of a fluid system in
//!   which a class has its part of the link and no more. In it, a packet begins when it comes or when the one before is
//!   finished, and takes size / (part of the link).
//! - *WFI*: by how much a class falls behind its part of the link over any interval in which it has packets.
//! - *RFI*: the largest difference in service, divided by weights, over any interval in which two classes have packets.
//!
//! The service of a packet in transmission counts as far as it was sent, and an interval may begin at any time.

use super::{LARGEST, default_of, slot};
use penstock_core::config::Compat;
use penstock_core::rng::{Rng, Streams};
use penstock_core::sched::modular::{Modular, Plan, Weighting};
use penstock_core::sched::table::{AnyScheduler, AnySchedulerConfig};
use penstock_core::sched::{Limits, Scheduled, Setup, Weight, drr, qfq_plus, wf2q_plus};
use penstock_core::units::{Bytes, Limit};
use std::collections::VecDeque;

/// A packet that arrives.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at: u64,
    class: usize,
    size: u64,
}

/// A packet that was sent: the number of its arrival, and when its transmission began.
#[derive(Debug, Clone, Copy)]
struct Sent {
    number: usize,
    began: u64,
}

/// What takes packets and gives them to the link.
trait Queues {
    fn put(&mut self, arrival: &Arrival, number: usize, sent: u64);
    fn take(&mut self) -> Option<usize>;
    /// Number of packets of a class before the last scheduler.
    fn waiting(&self, class: usize) -> u64;
}

/// One scheduler; with `told` it knows how much of a packet was sent.
struct Single {
    queues: Scheduled<usize, AnyScheduler>,
    told: bool,
}

impl Queues for Single {
    fn put(&mut self, arrival: &Arrival, number: usize, sent: u64) {
        let (class, size) = (arrival.class as u32, Bytes::new(arrival.size));
        let put = if self.told {
            self.queues.enqueue_during(class, size, number, || Bytes::new(sent))
        } else {
            self.queues.enqueue(class, size, number)
        };
        put.unwrap();
    }
    fn take(&mut self) -> Option<usize> {
        self.queues.dequeue().map(|served| served.packet)
    }
    fn waiting(&self, class: usize) -> u64 {
        self.queues.class_backlog(class as u32).packets
    }
}

/// Two schedulers.
struct Layers(Modular<usize, AnyScheduler, AnyScheduler>);

impl Queues for Layers {
    fn put(&mut self, arrival: &Arrival, number: usize, sent: u64) {
        let size = Bytes::new(arrival.size);
        self.0.enqueue_during(arrival.class as u32, size, number, || Bytes::new(sent)).unwrap();
    }
    fn take(&mut self) -> Option<usize> {
        self.0.dequeue().map(|served| served.packet)
    }
    fn waiting(&self, class: usize) -> u64 {
        self.0.qos().class_backlog(class as u32).packets
    }
}

fn scheduler(config: &AnySchedulerConfig, weights: &[u32]) -> AnyScheduler {
    let weights: Vec<Weight> = weights.iter().map(|weight| Weight::new(*weight).unwrap()).collect();
    config.build(&Setup { weights: &weights, max_packet: Bytes::new(LARGEST) }).unwrap()
}

fn single(config: &AnySchedulerConfig, weights: &[u32], told: bool) -> Single {
    Single { queues: Scheduled::new(scheduler(config, weights), Limits::default()), told }
}

/// A time at which something happened, for each class: how many bytes were sent so far, and whether it had packets
/// since the time before, in the queues or on the link.
struct Moment {
    at: u64,
    sent: Vec<u64>,
    had: Vec<bool>,
    /// The class whose packet ends at this time.
    ends: Option<usize>,
}

/// A trial: what happened on the link.
struct Trial {
    weights: Vec<u64>,
    arrivals: Vec<Arrival>,
    sent: Vec<Sent>,
    moments: Vec<Moment>,
}

impl Trial {
    /// Sends the arrivals over the link. `counts` says which classes have packets, for the intervals of fairness.
    fn new(
        weights: &[u32],
        arrivals: Vec<Arrival>,
        mut queues: impl Queues,
        counts: impl Fn(&dyn Fn(usize) -> u64, usize, Option<usize>) -> bool,
    ) -> Self {
        let classes = weights.len();
        let (mut sent, mut moments, mut now, mut next) = (Vec::new(), Vec::new(), 0, 0);
        let mut done = vec![0; classes];
        let mut on_link: Option<Sent> = None;
        while next < arrivals.len() || on_link.is_some() {
            let end = on_link.map(|packet: Sent| packet.began + arrivals[packet.number].size);
            let arrives = arrivals.get(next).map(|arrival| arrival.at);
            let at = end.into_iter().chain(arrives).min().unwrap();
            let class = on_link.map(|packet| arrivals[packet.number].class);
            let waiting = |class: usize| queues.waiting(class);
            let had = (0..classes).map(|other| counts(&waiting, other, class)).collect();
            class.into_iter().for_each(|class| done[class] += at - now);
            now = at;
            let ends = end == Some(at);
            moments.push(Moment { at, sent: done.clone(), had, ends: class.filter(|_| ends) });
            if ends {
                on_link = None;
            }
            while let Some(arrival) = arrivals.get(next).filter(|arrival| arrival.at == at) {
                let so_far = on_link.map_or(u64::MAX, |packet| at - packet.began);
                queues.put(arrival, next, so_far);
                next += 1;
            }
            if on_link.is_none() {
                on_link = queues.take().map(|number| Sent { number, began: at });
                sent.extend(on_link);
            }
        }
        assert_eq!(sent.len(), arrivals.len(), "the link is idle though packets wait");
        Self { weights: weights.iter().map(|weight| u64::from(*weight)).collect(), arrivals, sent, moments }
    }

    /// A trial in which a class counts as backlogged while its packets are in the queues or on the link.
    fn of(weights: &[u32], arrivals: Vec<Arrival>, queues: impl Queues) -> Self {
        Self::new(weights, arrivals, queues, |waiting, class, on_link| on_link == Some(class) || waiting(class) > 0)
    }

    fn total(&self) -> u64 {
        self.weights.iter().sum()
    }

    fn share(&self, class: usize) -> f64 {
        self.weights[class] as f64 / self.total() as f64
    }

    /// The largest packet of each class.
    fn largest(&self) -> Vec<f64> {
        let mut largest = vec![0.0f64; self.weights.len()];
        for arrival in &self.arrivals {
            largest[arrival.class] = largest[arrival.class].max(arrival.size as f64);
        }
        largest
    }

    /// For each packet sent: its class, its size, and by how much its end is after its guaranteed finish.
    fn lateness(&self) -> Vec<(usize, f64, f64)> {
        // Times are multiplied by the weight of the class, so that they are whole.
        let total = u128::from(self.total());
        let mut guaranteed: Vec<VecDeque<u128>> = vec![VecDeque::new(); self.weights.len()];
        let mut last = vec![0u128; self.weights.len()];
        for Arrival { at, class, size } in &self.arrivals {
            let arrives = u128::from(*at) * u128::from(self.weights[*class]);
            last[*class] = last[*class].max(arrives) + u128::from(*size) * total;
            guaranteed[*class].push_back(last[*class]);
        }
        let late = |packet: &Sent| {
            let Arrival { class, size, .. } = self.arrivals[packet.number];
            let weight = self.weights[class];
            let end = i128::from(packet.began + size) * i128::from(weight);
            let due = guaranteed[class].pop_front().expect("packets of a class leave in order") as i128;
            (class, size as f64, (end - due) as f64 / weight as f64)
        };
        self.sent.iter().map(late).collect()
    }

    /// The worst-case fairness index of each class in bytes, over intervals that end with a packet of the class, or
    /// with `always` at any time.
    fn wfi(&self, always: bool) -> Vec<f64> {
        let total = i128::from(self.total());
        let mut worst = vec![0i128; self.weights.len()];
        for (class, weight) in self.weights.iter().enumerate() {
            let mut least: Option<i128> = None;
            let mut before = 0;
            for moment in &self.moments {
                let lag = i128::from(*weight) * i128::from(moment.at) - total * i128::from(moment.sent[class]);
                if moment.had[class] {
                    // The class may have become backlogged at the moment before.
                    let from = least.map_or(before, |least| least.min(before));
                    if always || moment.ends == Some(class) {
                        worst[class] = worst[class].max(lag - from);
                    }
                    least = Some(from);
                } else {
                    least = None;
                }
                before = lag;
            }
        }
        worst.into_iter().map(|worst| worst as f64 / total as f64).collect()
    }

    /// The largest difference of service by weight of each pair of classes, over intervals in which both have packets.
    fn rfi(&self) -> Vec<(usize, usize, f64)> {
        let n = self.weights.len();
        let pairs = (0..n).flat_map(|a| (0..a).map(move |b| (a, b)));
        let worst = |(a, b): (usize, usize)| {
            let difference = |moment: &Moment| {
                moment.sent[a] as f64 / self.weights[a] as f64 - moment.sent[b] as f64 / self.weights[b] as f64
            };
            let (mut worst, mut range, mut before) = (0.0f64, None::<(f64, f64)>, 0.0);
            for moment in &self.moments {
                let now = difference(moment);
                if moment.had[a] && moment.had[b] {
                    let (low, high) = range.unwrap_or((before, before));
                    let widened = (low.min(now), high.max(now));
                    worst = worst.max(widened.1 - widened.0);
                    range = Some(widened);
                } else {
                    range = None;
                }
                before = now;
            }
            (a, b, worst)
        };
        pairs.map(worst).collect()
    }
}

/// Arrivals that have found faults: bursts of one class and drips of others, below, at and above the rate of the link,
/// with pauses in which it is idle.
fn adversary(random: &mut Rng, classes: usize, packets: usize) -> Vec<Arrival> {
    const SIZES: [u64; 6] = [64, 200, 576, 1000, 1500, 1500];
    const BURSTS: [&[u64]; 4] = [&[1, 1, 2, 5, 20, 60], &[1], &[1, 1, 2, 5], &[30]];
    let bursts = BURSTS[random.below(4) as usize];
    let (load, largest) = ([0.5, 0.7, 0.9, 1.0, 1.3, 2.0][random.below(6) as usize], random.below(3) == 0);
    let (mut arrivals, mut at) = (Vec::new(), 0);
    while arrivals.len() < packets {
        let class = random.below(classes as u64) as usize;
        let burst = bursts[random.below(bursts.len() as u64) as usize];
        let mut bytes = 0;
        for _ in 0..burst {
            let size = match random.below(4) {
                _ if largest => LARGEST,
                0 => 1 + random.below(LARGEST),
                _ => SIZES[random.below(6) as usize],
            };
            bytes += size;
            arrivals.push(Arrival { at, class, size });
        }
        at += random.exponential(bytes as f64 / load) as u64;
    }
    arrivals
}

/// Weights that are equal, alike, or up to a thousand times each other.
fn weights(random: &mut Rng) -> Vec<u32> {
    let classes = 2 + random.below(9) as usize;
    let kind = random.below(4);
    let weight = |random: &mut Rng| match kind {
        0 => 1,
        1 => 1 << random.below(5),
        2 => 1 + random.below(60) as u32,
        _ => [1, 1, 3, 1000][random.below(4) as usize],
    };
    (0..classes).map(|_| weight(random)).collect()
}

/// Runs trials of 2,000 arrivals, 100,000 in all, and gives each to `check`, with a number that differs.
fn hundred_thousand_arrivals(name: &str, mut check: impl FnMut(&[u32], Vec<Arrival>, usize)) {
    let mut random = Streams::new(7).get(name);
    for number in 0..50 {
        let weights = weights(&mut random);
        let arrivals = adversary(&mut random, weights.len(), 2000);
        check(&weights, arrivals, number);
    }
}

/// The worst lateness of a trial, in largest packets.
fn worst_lateness(trial: &Trial) -> f64 {
    trial.lateness().into_iter().map(|(_, _, late)| late / LARGEST as f64).fold(f64::MIN, f64::max)
}

/// Bennett and Zhang 1997, Theorem 4: WFI of L_k + (L - L_k) phi_k where a packet of the class ends, and by what it may
/// lead, L_k (1 - phi_k), more at any time. Each packet ends L after its guaranteed finish at the latest. W2F2Q is the
/// same while channels are good. Both hold whether the scheduler is told how much was sent or not.
#[test]
fn wf2q_plus_is_a_packet_late_and_a_packet_behind() {
    for name in ["wf2q-plus", "w2f2q"] {
        hundred_thousand_arrivals(name, |weights, arrivals, number| {
            let trial = Trial::of(weights, arrivals, single(&default_of(name), weights, number % 2 == 0));
            let largest = trial.largest();
            let most = largest.iter().copied().fold(0.0, f64::max);
            for (class, size, late) in trial.lateness() {
                assert!(late <= most + 0.01, "{name}: a packet of {size} B of class {class} is {late} late");
            }
            for (always, worst) in [(false, trial.wfi(false)), (true, trial.wfi(true))] {
                for (class, worst) in worst.into_iter().enumerate() {
                    let (own, phi) = (largest[class], trial.share(class));
                    let lead = if always { own * (1.0 - phi) } else { 0.0 };
                    let bound = own + (most - own) * phi + lead;
                    assert!(worst <= bound + 0.01, "{name}: class {class} is {worst} behind, of {bound}");
                }
            }
        });
    }
}

/// The test above can fail: a packet that counts when it begins makes those that come meanwhile late.
#[test]
fn dummynets_clock_is_late() {
    let mut worst = f64::MIN;
    let config = AnySchedulerConfig::Wf2qPlus(wf2q_plus::Config { compat: wf2q_plus::Compat::Dummynet });
    hundred_thousand_arrivals("wf2q-plus", |weights, arrivals, _| {
        worst = worst.max(worst_lateness(&Trial::of(weights, arrivals, single(&config, weights, true))));
    });
    assert!((1.2..2.0).contains(&worst), "{worst}");
}

/// Karsten 2010, and Checconi, Rizzo, Valente 2013: WFI of 3 phi sigma + 2 phi L. KPS sends each packet one slot and a
/// packet after its guaranteed finish at the latest; a WFI of alpha alone gives alpha / phi.
#[test]
fn kps_and_qfq_are_within_three_slots() {
    for name in ["kps", "qfq"] {
        hundred_thousand_arrivals(name, |weights, arrivals, number| {
            let trial = Trial::of(weights, arrivals, single(&default_of(name), weights, number % 2 == 0));
            let bound = |class: usize| 3.0 * slot(trial.weights[class]) + 2.0 * trial.share(class) * LARGEST as f64;
            for (class, worst) in trial.wfi(true).into_iter().enumerate() {
                assert!(worst <= bound(class) + 0.01, "{name}: class {class} is {worst} behind, of {}", bound(class));
            }
            for (class, _, late) in trial.lateness() {
                let phi = trial.share(class);
                let most =
                    if name == "kps" { slot(trial.weights[class]) / phi + LARGEST as f64 } else { bound(class) / phi };
                assert!(late <= most + 0.01, "{name}: class {class} is {late} late, of {most}");
            }
        });
    }
}

/// Valente 2014: QFQ's WFI of an aggregate of M packets, and three packets for DRR within it.
#[test]
fn qfq_plus_adds_what_its_aggregates_add() {
    for aggregate in [1, 2, 8] {
        let config = AnySchedulerConfig::QfqPlus(qfq_plus::Config { aggregate });
        hundred_thousand_arrivals("qfq-plus", |weights, arrivals, number| {
            let trial = Trial::of(weights, arrivals, single(&config, weights, number % 2 == 0));
            for (class, worst) in trial.wfi(true).into_iter().enumerate() {
                let most = qfq_plus_wfi(u64::from(aggregate), trial.weights[class], trial.share(class));
                assert!(worst <= most + 0.01, "M = {aggregate}: class {class} is {worst} behind, of {most}");
            }
        });
    }
}

/// The bound of the WFI of QFQ+ in bytes, with aggregates of so many packets.
fn qfq_plus_wfi(aggregate: u64, weight: u64, phi: f64) -> f64 {
    let inside = if aggregate > 1 { 3 * LARGEST } else { 0 };
    3.0 * slot(weight) + 2.0 * phi * (aggregate * LARGEST) as f64 + inside as f64
}

/// Shreedhar and Varghese 1996, Theorem 3: RFI of quantum + L / w_j + L / w_k. Lenzini, Mingozzi, Stea 2004: with a
/// quantum of the largest packet, a class has its part of the link after (F - Q_k) (1 + L_k / Q_k) + the largest packets
/// of all, with F the sum of all quanta and Q_k that of the class. In Linux a class whose last packet is on the link has no
/// turn any more, so for the RFI its packets must be in the queue.
#[test]
fn drr_is_a_quantum_apart_and_a_round_late() {
    for compat in [Compat::Source, Compat::Linux] {
        let config = AnySchedulerConfig::Drr(drr::Config { compat, ..drr::Config::default() });
        hundred_thousand_arrivals("drr", |weights, arrivals, _| {
            let counts = |waiting: &dyn Fn(usize) -> u64, class, on_link| {
                (compat == Compat::Source && on_link == Some(class)) || waiting(class) > 0
            };
            let trial = Trial::new(weights, arrivals, single(&config, weights, false), counts);
            for (a, b, worst) in trial.rfi() {
                let most = LARGEST as f64 * (1.0 + 1.0 / trial.weights[a] as f64 + 1.0 / trial.weights[b] as f64);
                assert!(worst <= most + 0.01, "{compat:?}: classes {a}, {b} differ by {worst} of {most}");
            }
            let largest = trial.largest();
            let frame = trial.total() as f64 * LARGEST as f64;
            for (class, _, late) in trial.lateness() {
                let quantum = trial.weights[class] as f64 * LARGEST as f64;
                let most = (frame - quantum) * (1.0 + largest[class] / quantum) + largest.iter().sum::<f64>();
                assert!(late <= most + 0.01, "{compat:?}: class {class} is {late} late, of {most}");
            }
        });
    }
}

/// Goyal, Vin, Cheng 1996: RFI of L / w_j + L / w_k (Theorem 1); a packet has been sent when the guaranteed rate would
/// have begun it, and then a largest packet of each other class and itself, at the latest (Theorem 4).
#[test]
fn stfq_is_a_packet_apart_and_one_of_each_late() {
    hundred_thousand_arrivals("stfq", |weights, arrivals, _| {
        let trial = Trial::of(weights, arrivals, single(&default_of("stfq"), weights, false));
        let largest = trial.largest();
        for (a, b, worst) in trial.rfi() {
            let most = largest[a] / trial.weights[a] as f64 + largest[b] / trial.weights[b] as f64;
            assert!(worst <= most + 0.01, "classes {a}, {b} differ by {worst} of {most}");
        }
        for (class, size, late) in trial.lateness() {
            let others: f64 = largest.iter().enumerate().filter(|(other, _)| *other != class).map(|(_, l)| l).sum();
            let most = others + size - size / trial.share(class);
            assert!(late <= most + 0.01, "class {class} is {late} late, of {most}");
        }
    });
}

/// A flow with packets in the QoS layer falls behind by the WFI of that layer, and by what the MAC-SAL may hold: it
/// holds packets of others when the interval begins, and of the flow when it ends.
#[test]
fn hfs_adds_what_the_mac_sal_holds() {
    for (number, buffer) in (0..).zip([0u64, 1, 10, 100]) {
        let mut random = Streams::new(number).get("hfs");
        for _ in 0..12 {
            let weights = weights(&mut random);
            let arrivals = adversary(&mut random, weights.len(), 2000);
            let stations = 3;
            let plan = Plan {
                stations: (0..weights.len() as u32).map(|flow| flow % stations).collect(),
                buffer: Limit::Packets(buffer),
                weighting: Weighting::Analogical,
                per_class: None,
            };
            let (qos, mac) =
                (scheduler(&default_of("qfq-plus"), &weights), scheduler(&default_of("qfq-plus"), &[1; 3]));
            let mut layers = Modular::new(qos, mac, plan).unwrap();
            layers.set_losses(&[0.9, 0.3, 0.0]).unwrap();
            let trial = Trial::new(&weights, arrivals, Layers(layers), |waiting, class, _| waiting(class) > 0);
            let held = (buffer * LARGEST) as f64;
            for (class, worst) in trial.wfi(true).into_iter().enumerate() {
                let phi = trial.share(class);
                let most = qfq_plus_wfi(8, trial.weights[class], phi) + (1.0 + phi) * (held + LARGEST as f64);
                assert!(worst <= most + 0.01, "Q = {buffer}: flow {class} is {worst} behind, of {most}");
            }
        }
    }
}
