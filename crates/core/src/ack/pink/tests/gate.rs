//! PINK before a discipline that is not a FIFO.

use super::path::*;
use super::*;
use crate::ack::gate::Gate as Before;
use crate::aqm::codel;
use crate::config::LinkFacts;
use crate::qdisc::{Enqueued, Qdisc};
use crate::queue::Fifo;
use crate::rng::Streams;
use crate::units::Limit;

#[test]
fn before_another_discipline_pink_clamps_and_learns_the_rate_from_departures() {
    let link = LinkFacts { rate: LINK, limit: Limit::Packets(1000) };
    let config = Config {
        rate: Some(Rate::from_bps(20_000_000)),
        rate_from: RateFrom::Estimated,
        window: Window::Literal,
        ..paper()
    };
    let codel = Fifo::<Seg, _>::new(link.limit, codel::Config::default().aqm(&link));
    let mut gate = Before::new(Pink::new(&config, link.rate), codel);
    let mut rng = Streams::new(1).get("gate");
    let mut now = Instant::ZERO;
    let mut through = |gate: &mut Before<Pink, _>, mut segment: Seg, now| {
        gate.outbound(&mut segment, now);
        assert_eq!(gate.enqueue(segment, now, &mut rng, &mut ()), Enqueued::Queued);
    };
    through(&mut gate, Seg::syn(0, None), now);
    now += WAN;
    gate.inbound(&mut Seg::syn_ack(0, None), now);
    now += LAN;
    (0..300).for_each(|k| through(&mut gate, Seg::data(0, ISN + 1 + 948 * k, 948), now));
    // 1000 bytes every 800 us are 10 Mbit/s. Less is shared out at first, for the queue to drain.
    let mut rng = Streams::new(1).get("gate");
    while gate.dequeue(now, &mut rng, &mut ()).is_some() {
        now += Span::from_nanos(800_000);
    }
    gate.stats().check(gate.backlog()).unwrap();
    let mut ack = Seg::ack(0, ISN + 949, 65_535);
    gate.inbound(&mut ack, now + WAN);
    assert_eq!(gate.element().stats().acks, 2);
    let rate = gate.element().rate().as_bps();
    assert!((7_500_000..=10_000_000).contains(&rate), "{rate}");
}

#[test]
fn an_overflow_behind_it_starts_the_sampling() {
    let link = LinkFacts { rate: LINK, limit: Limit::Packets(2) };
    let config = Config { sampling: Sampling::AfterDrop, ..paper() };
    let queue = Fifo::<Seg, _>::new(link.limit, crate::aqm::droptail::Config::default().aqm(&link));
    let mut gate = Before::new(Pink::new(&config, link.rate), queue);
    let mut rng = Streams::new(1).get("gate");
    for flow in 0..3 {
        let mut syn = Seg::syn(flow, None);
        gate.outbound(&mut syn, Instant::ZERO);
        let expected = if flow < 2 { 1 + u64::from(flow) } else { 3 };
        assert_eq!(gate.element().active(), expected);
        let _ = gate.enqueue(syn, Instant::ZERO, &mut rng, &mut ());
    }
    assert_eq!((gate.element().active(), gate.element().stats().waiting), (0, 3));
}

#[test]
fn the_small_network_behaves_the_same_for_told_and_estimated_truth() {
    let run = |from| {
        let mut path = Path::new(|c| c.rate_from = from, LINK, greedy(8));
        path.run_until(at_ms(10_000));
        path.utilization(at_ms(2000), at_ms(10_000), LINK)
    };
    let (told, estimated) = (run(RateFrom::Told), run(RateFrom::Estimated));
    assert!((told - estimated).abs() < 0.03, "{told} {estimated}");
}
