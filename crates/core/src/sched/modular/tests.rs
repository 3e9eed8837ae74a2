use super::*;
use crate::sched::drr;
use crate::sched::fifo::Fifo;
use crate::sched::{SchedulerConfig, Setup, Weight};

const SIZE: Bytes = Bytes::new(1000);

fn plan(stations: &[u32], buffer: Limit) -> Plan {
    Plan { stations: stations.to_vec(), buffer, weighting: Weighting::Analogical, per_class: None }
}

/// FIFO in both layers, and two flows, each with a station of its own.
fn plain(buffer: Limit) -> Modular<u32, Fifo, Fifo> {
    let fifo = || Fifo::new(2, SIZE);
    Modular::new(fifo(), fifo(), plan(&[0, 1], buffer)).unwrap()
}

fn drr(weights: &[u32]) -> drr::Drr {
    let weights: Vec<Weight> = weights.iter().map(|w| Weight::new(*w).unwrap()).collect();
    drr::Config::default().scheduler(&Setup { weights: &weights, max_packet: SIZE })
}

fn offer<Q: Scheduler, M: Scheduler>(layers: &mut Modular<u32, Q, M>, packets: &[(u32, u64, u32)]) {
    for (class, size, packet) in packets {
        layers.enqueue(*class, Bytes::new(*size), *packet).unwrap();
        layers.check().unwrap();
    }
}

fn drain<Q: Scheduler, M: Scheduler>(layers: &mut Modular<u32, Q, M>) -> Vec<u32> {
    let order = std::iter::from_fn(|| layers.dequeue()).map(|served| served.packet).collect();
    layers.check().unwrap();
    order
}

/// A packet that enters the MAC-SAL but never left the QoS layer is found.
#[test]
fn conservation_is_checked_between_the_layers() {
    let mut layers = plain(Limit::Packets(2));
    offer(&mut layers, &[(0, 100, 1)]);
    assert!(layers.mac.enqueue(1, SIZE, Prefetched { packet: 2, class: 1 }).is_ok());
    let error = layers.check().unwrap_err();
    assert!(matches!(error, ConservationError::BetweenLayers { .. }), "{error}");
}

/// Q = 2: the first two packets enter the MAC-SAL at once, the third when one of them was sent.
#[test]
fn packets_are_prefetched_while_there_are_fewer_than_q() {
    let mut layers = plain(Limit::Packets(2));
    offer(&mut layers, &[(0, 100, 1), (0, 200, 2), (1, 300, 3), (1, 400, 4)]);
    assert_eq!(layers.prefetched(), Backlog { packets: 2, bytes: 300 });
    assert_eq!(layers.qos().backlog(), Backlog { packets: 2, bytes: 700 });
    let first = layers.dequeue().unwrap();
    assert_eq!((first.packet, first.class, first.size), (1, 0, Bytes::new(100)));
    assert_eq!(layers.prefetched(), Backlog { packets: 2, bytes: 500 });
    assert_eq!(layers.station_backlog(1), Backlog { packets: 1, bytes: 300 });
    assert_eq!(layers.backlog(), Backlog { packets: 3, bytes: 900 });
    assert_eq!(drain(&mut layers), [2, 3, 4]);
}

/// Q = 1000 B: with 600 B in the MAC-SAL one more packet is prefetched, whatever its size; with 1200 B none is. After
/// the first was sent, 600 B are left and the third is prefetched; if that one is small, so is the fourth.
#[test]
fn q_in_bytes_is_passed_by_one_packet_at_most() {
    let mut layers = plain(Limit::Bytes(SIZE));
    offer(&mut layers, &[(0, 600, 1), (0, 600, 2), (0, 300, 3), (1, 700, 4), (1, 100, 5)]);
    assert_eq!(layers.prefetched(), Backlog { packets: 2, bytes: 1200 });
    layers.dequeue();
    assert_eq!(layers.prefetched(), Backlog { packets: 3, bytes: 1600 });
    layers.dequeue();
    assert_eq!(layers.prefetched(), Backlog { packets: 2, bytes: 1000 });
    assert_eq!(drain(&mut layers), [3, 4, 5]);
}

/// §4.2.1: a separate queue of Q / 2 for each station would hold back packets of a station whose queue is full.
#[test]
fn one_station_may_fill_the_buffer() {
    let mut layers = plain(Limit::Packets(4));
    offer(&mut layers, &[(0, 100, 1), (0, 100, 2), (0, 100, 3), (0, 100, 4), (1, 100, 5)]);
    assert_eq!(layers.station_backlog(0).packets, 4);
    assert_eq!(layers.station_backlog(1).packets, 0);
}

#[test]
fn without_a_buffer_the_qos_layer_feeds_the_link() {
    for nothing in [Limit::Packets(0), Limit::Bytes(Bytes::ZERO)] {
        let mut layers = plain(nothing);
        offer(&mut layers, &[(0, 100, 1), (1, 100, 2)]);
        assert_eq!(layers.prefetched(), Backlog::default());
        assert_eq!(drain(&mut layers), [1, 2]);
    }
}

/// DRR in both layers; flows of weight 1, losses 0.75 and 0.25: weights 250 and 750. With turns of 250 and 750 packets
/// the eight packets in the MAC-SAL leave station by station.
#[test]
fn the_mac_sal_reorders_what_it_holds() {
    let mut layers = Modular::new(drr(&[1, 1]), drr(&[1, 1]), plan(&[0, 1], Limit::Packets(8))).unwrap();
    layers.set_losses(&[0.75, 0.25]).unwrap();
    offer(&mut layers, &[0, 1, 0, 1, 0, 1, 0, 1].map(|class| (class, 1000, 10 * class)));
    assert_eq!(drain(&mut layers), [0, 0, 0, 0, 10, 10, 10, 10]);
    // Without a MAC-SAL the QoS layer alternates between the flows.
    let mut wired = Modular::new(drr(&[1, 1]), drr(&[1, 1]), plan(&[0, 1], Limit::Packets(0))).unwrap();
    offer(&mut wired, &[0, 1, 0, 1, 0, 1, 0, 1].map(|class| (class, 1000, 10 * class)));
    assert_eq!(drain(&mut wired), [0, 10, 0, 10, 0, 10, 0, 10]);
}

/// Linear weights 1 and 2: one packet of station 0, two of station 1.
#[test]
fn weights_follow_from_losses() {
    let plan = Plan { weighting: Weighting::Linear, ..plan(&[0, 1], Limit::Packets(6)) };
    let mut layers = Modular::new(drr(&[1, 1]), drr(&[1, 1]), plan).unwrap();
    layers.set_losses(&[0.9, 0.1]).unwrap();
    let arrivals = [0, 1, 0, 1, 0, 1].map(|class| (class, 1000, class));
    offer(&mut layers, &arrivals);
    assert_eq!(drain(&mut layers), [0, 1, 1, 0, 1, 0]);
    layers.set_loss(1, 0.95).unwrap();
    offer(&mut layers, &arrivals);
    assert_eq!(drain(&mut layers), [0, 0, 1, 0, 1, 1]);
    layers.set_loss(7, 0.5).unwrap();
}

/// Flows 0 and 1 belong to one station: their packets share one queue in the MAC-SAL.
#[test]
fn flows_of_one_station_keep_the_order_of_the_qos_layer() {
    let mut layers = Modular::new(drr(&[1, 1, 1]), drr(&[1, 1]), plan(&[0, 0, 1], Limit::Packets(9))).unwrap();
    offer(&mut layers, &[(1, 1000, 1), (0, 1000, 2), (2, 1000, 3), (0, 1000, 4), (1, 1000, 5)]);
    let order = drain(&mut layers);
    assert_eq!(order.into_iter().filter(|packet| *packet != 3).collect::<Vec<_>>(), [1, 2, 4, 5]);
}

/// A flow with one packet in each layer has a backlog of two packets.
#[test]
fn a_flow_is_limited_in_both_layers_together() {
    for limit in [Limit::Packets(2), Limit::Bytes(Bytes::new(299))] {
        let plan = Plan { per_class: Some(limit), ..plan(&[0, 1], Limit::Packets(1)) };
        let mut layers = Modular::new(Fifo::new(2, SIZE), Fifo::new(2, SIZE), plan).unwrap();
        offer(&mut layers, &[(0, 100, 1), (0, 100, 2), (1, 100, 3)]);
        let refused = layers.enqueue(0, Bytes::new(100), 4).unwrap_err();
        assert_eq!((refused.packet, refused.reason), (4, Reason::ClassFull));
        layers.dequeue();
        offer(&mut layers, &[(0, 100, 5)]);
        assert_eq!(drain(&mut layers), [2, 3, 5]);
        assert_eq!(layers.enqueue(9, Bytes::new(100), 6).unwrap_err().reason, Reason::Class);
    }
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let fifo = |classes| Fifo::new(classes, SIZE);
    let refused = |plan| Modular::<u32, _, _>::new(fifo(2), fifo(2), plan).unwrap_err().key;
    assert_eq!(refused(plan(&[0], Limit::Packets(1))), "stations");
    assert_eq!(refused(plan(&[0, 2], Limit::Packets(1))), "stations");
    assert_eq!(refused(plan(&[0, 1], Limit::Packets(MOST_BUFFER + 1))), "buffer");
    let small = Fifo::new(2, Bytes::new(999));
    let error = Modular::<u32, _, _>::new(fifo(2), small, plan(&[0, 1], Limit::Packets(1))).unwrap_err();
    assert_eq!(error.key, "max_packet");
}
