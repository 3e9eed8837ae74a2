//! Properties of any two schedulers in a row: document 002 §4.2.1 and §4.2.2.

use penstock_core::sched::modular::{Modular, Plan, Weighting};
use penstock_core::sched::table::{AnyScheduler, AnySchedulerConfig, NAMES};
use penstock_core::sched::{Limits, Scheduled, Setup, Weight};
use penstock_core::units::{Bytes, Limit};
use proptest::prelude::*;

const FLOWS: usize = 6;
const STATIONS: usize = 3;
const MAX_PACKET: Bytes = Bytes::new(1500);
const ONE_TO_ONE: [u32; FLOWS] = [0, 1, 2, 0, 1, 2];

fn scheduler(name: &str, weights: &[u32]) -> AnyScheduler {
    let weights: Vec<Weight> = weights.iter().map(|w| Weight::new(*w).unwrap()).collect();
    let setup = Setup { weights: &weights, max_packet: MAX_PACKET };
    AnySchedulerConfig::default_of(name).unwrap().build(&setup).unwrap()
}

type Layers<P> = Modular<P, AnyScheduler, AnyScheduler>;

fn layers<P>(qos: &str, mac: &str, weights: &[u32], losses: &[f64], buffer: Limit) -> Layers<P> {
    let plan = Plan { stations: ONE_TO_ONE.to_vec(), buffer, weighting: Weighting::Analogical, per_class: None };
    let mut layers = Modular::new(scheduler(qos, weights), scheduler(mac, &[1; STATIONS]), plan).unwrap();
    layers.set_losses(losses).unwrap();
    layers
}

fn names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(NAMES)
}

fn weights() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1..=20u32, FLOWS)
}

fn losses() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0..=20u32).prop_map(|n| f64::from(n) / 20.0), STATIONS)
}

fn buffers() -> impl Strategy<Value = Limit> {
    prop_oneof![(1..40u64).prop_map(Limit::Packets), (1..30_000u64).prop_map(|n| Limit::Bytes(Bytes::new(n)))]
}

/// Arrivals `Some((flow, size))` and departures `None`.
fn lives() -> impl Strategy<Value = Vec<Option<(u32, u64)>>> {
    let arrival = (0..FLOWS as u32, 40..=1500u64).prop_map(Some);
    prop::collection::vec(prop_oneof![3 => arrival, 2 => Just(None)], 1..400)
}

/// A packet that left: its flow, its number, and the bytes sent before it and including it.
#[derive(Debug, Clone, Copy)]
struct Sent {
    flow: u32,
    number: usize,
    size: u64,
    end: u64,
}

/// Enqueues all packets at once and serves them.
fn send_all(mut layers: Layers<usize>, packets: &[(u32, u64)]) -> Vec<Sent> {
    for (number, (flow, size)) in packets.iter().enumerate() {
        layers.enqueue(*flow, Bytes::new(*size), number).unwrap();
    }
    let mut end = 0;
    let mut sent = Vec::new();
    while let Some(served) = layers.dequeue() {
        let size = served.size.get();
        end += size;
        sent.push(Sent { flow: served.class, number: served.packet, size, end });
    }
    layers.check().unwrap();
    sent
}

/// Bytes of `flow` sent up to `until`, with the sent part of a packet in transmission.
fn service(sent: &[Sent], flow: u32, until: u64) -> u64 {
    let of_flow = sent.iter().filter(|packet| packet.flow == flow);
    of_flow.map(|packet| until.min(packet.end).saturating_sub(packet.end - packet.size)).sum()
}

/// The byte delay: the most bytes that entered the MAC-SAL after a packet of `flow` and left before it. `entered` is
/// the order in which packets entered the MAC-SAL, which is the order of the QoS layer.
fn byte_delay(entered: &[Sent], left: &[Sent], flow: u32) -> u64 {
    let mut place = vec![0; entered.len()];
    entered.iter().enumerate().for_each(|(at, packet)| place[packet.number] = at);
    let overtaking = |at: usize| {
        let before = left[..at].iter().filter(|other| place[other.number] > place[left[at].number]);
        before.map(|other| other.size).sum::<u64>()
    };
    (0..left.len()).filter(|at| left[*at].flow == flow).map(overtaking).max().unwrap_or(0)
}

/// The most bytes that may be in the MAC-SAL.
fn most_held(buffer: Limit) -> u64 {
    match buffer {
        Limit::Packets(n) => n * MAX_PACKET.get(),
        Limit::Bytes(n) => n.get() + MAX_PACKET.get(),
    }
}

/// All packets of a run; they arrive at once, so that flows stay backlogged until their last packet.
fn packets() -> impl Strategy<Value = Vec<(u32, u64)>> {
    prop::collection::vec((0..FLOWS as u32, 40..=1500u64), 20..250)
}

proptest! {
    /// With Q = 0 it equals the wired scheduler packet by packet.
    #[test]
    fn without_a_buffer_it_is_the_wired_scheduler(life in lives(), weights in weights(), losses in losses()) {
        for name in NAMES {
            let mut wired = Scheduled::new(scheduler(name, &weights), Limits::default());
            let mut both = layers(name, "drr", &weights, &losses, Limit::Packets(0));
            for (number, step) in life.iter().enumerate() {
                match step {
                    Some((flow, size)) => {
                        wired.enqueue(*flow, Bytes::new(*size), number).unwrap();
                        both.enqueue(*flow, Bytes::new(*size), number).unwrap();
                    }
                    None => prop_assert_eq!(wired.dequeue(), both.dequeue(), "{}", name),
                }
                prop_assert_eq!(wired.backlog(), both.backlog());
            }
            both.check().map_err(|error| TestCaseError::fail(error.to_string()))?;
        }
    }

    /// For any arrivals, no packet is lost, no flow is reordered, the MAC-SAL never holds more than allowed, and it
    /// holds less than Q only if the QoS layer has no packet for it.
    #[test]
    fn random_lives_keep_order_and_buffer(
        life in lives(), qos in names(), mac in names(), weights in weights(), losses in losses(), buffer in buffers(),
    ) {
        let mut both = layers(qos, mac, &weights, &losses, buffer);
        let mut last = [None; FLOWS];
        for (number, step) in life.iter().enumerate() {
            if let Some((flow, size)) = step {
                both.enqueue(*flow, Bytes::new(*size), number).unwrap();
            } else if let Some(served) = both.dequeue() {
                let before = last[served.class as usize].replace(served.packet);
                prop_assert!(before < Some(served.packet), "flow {} was reordered by {} over {}", served.class, qos, mac);
            } else {
                prop_assert_eq!(both.backlog().packets, 0, "{} over {} idles with packets", qos, mac);
            }
            let held = both.prefetched();
            prop_assert!(held.bytes < most_held(buffer) + MAX_PACKET.get());
            let full = match buffer {
                Limit::Packets(n) => held.packets == n,
                Limit::Bytes(n) => held.bytes >= n.get(),
            };
            prop_assert!(full || both.qos().backlog().packets == 0, "{} prefetches too little", qos);
            both.check().map_err(|error| TestCaseError::fail(error.to_string()))?;
        }
    }

    /// Theorem 6, from the start of the backlog: a flow is sent at least what it would be sent if the MAC-SAL kept the
    /// order of the QoS layer, less its byte delay. Theorem 7 is this statement divided by time.
    #[test]
    fn a_flow_loses_at_most_its_byte_delay(
        packets in packets(), qos in names(), mac in names(), weights in weights(), losses in losses(),
        buffer in buffers(),
    ) {
        let in_order = send_all(layers(qos, "fifo", &weights, &losses, buffer), &packets);
        let actual = send_all(layers(qos, mac, &weights, &losses, buffer), &packets);
        for flow in 0..FLOWS as u32 {
            let delay = byte_delay(&in_order, &actual, flow);
            for until in actual.iter().map(|packet| packet.end) {
                let (guaranteed, ours) = (service(&in_order, flow, until), service(&actual, flow, until));
                prop_assert!(
                    ours + delay >= guaranteed,
                    "{qos} over {mac}, {buffer:?}: flow {flow} was sent {ours} of {guaranteed} B, byte delay {delay}"
                );
                // B = 1 byte per unit of time; alpha is the part of it that the QoS scheduler gives the flow.
                let time = until as f64;
                let (alpha, rate) = (guaranteed as f64 / time, ours as f64 / time);
                prop_assert!(rate >= alpha - delay as f64 / time - 1e-12);
            }
        }
    }

    /// Over any interval a flow loses at most its byte delay plus what it was sent too early before, which is at most
    /// what the MAC-SAL holds. The additional service lag is therefore bounded (§4.2.2.2).
    #[test]
    fn over_any_interval_a_flow_loses_what_the_buffer_holds_too(
        packets in packets(), mac in names(), losses in losses(), buffer in buffers(),
    ) {
        let weights = [1; FLOWS];
        let in_order = send_all(layers("drr", "fifo", &weights, &losses, buffer), &packets);
        let actual = send_all(layers("drr", mac, &weights, &losses, buffer), &packets);
        let times: Vec<u64> = actual.iter().map(|packet| packet.end).collect();
        for flow in 0..FLOWS as u32 {
            let slack = byte_delay(&in_order, &actual, flow) + most_held(buffer) + MAX_PACKET.get();
            let served = |sent| times.iter().map(|t| service(sent, flow, *t)).collect::<Vec<u64>>();
            let (guaranteed, ours) = (served(&in_order), served(&actual));
            for from in 0..times.len() {
                for until in from..times.len() {
                    let (g, o) = (guaranteed[until] - guaranteed[from], ours[until] - ours[from]);
                    prop_assert!(o + slack >= g, "flow {flow}: {o} of {g} B, slack {slack}");
                }
            }
        }
    }
}

#[test]
fn every_scheduler_may_be_in_either_place() {
    for qos in NAMES {
        for mac in NAMES {
            let packets: Vec<(u32, u64)> = (0..60).map(|n| (n % FLOWS as u32, 1000)).collect();
            let weights = [20, 10, 1, 1, 1, 1];
            let sent = send_all(layers(qos, mac, &weights, &[0.9, 0.5, 0.1], Limit::Packets(10)), &packets);
            assert_eq!(sent.len(), 60, "{qos} over {mac}");
        }
    }
}
