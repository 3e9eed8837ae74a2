//! Conservation in bytes for every discipline: its counters agree with a ledger that the test keeps independently.

use penstock_core::config::LinkFacts;
use penstock_core::packet::{Ecn, FlowId};
use penstock_core::qdisc::{Backlog, DropReason, PacketObserver, Qdisc, Stats};
use penstock_core::registry::{AnyConfig, AnyQdisc, NAMES};
use penstock_core::rng::Streams;
use penstock_core::testing::Numbered;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};

/// The ledger: counts the packets that the observer reports and that the discipline returns, and never asks the
/// discipline.
#[derive(Default)]
struct Ledger(Stats);

impl PacketObserver<Numbered> for Ledger {
    fn dropped(&mut self, packet: Numbered, reason: DropReason, _: Instant) {
        let counter = match reason {
            DropReason::Early => &mut self.0.dropped_early,
            DropReason::Overflow => &mut self.0.dropped_overflow,
            DropReason::Dequeue => &mut self.0.dropped_dequeue,
        };
        count(counter, &packet);
    }
    fn marked(&mut self, packet: &Numbered, _: Instant) {
        count(&mut self.0.marked, packet);
    }
}

/// Whether a drop was forced only the discipline knows: no more can be than were early.
fn with_forced(ledger: &Ledger, told: &Stats) -> Stats {
    let forced = told.dropped_forced;
    assert!(forced.packets <= told.dropped_early.packets && forced.bytes <= told.dropped_early.bytes, "{told:?}");
    Stats { dropped_forced: forced, ..ledger.0 }
}

fn count(counter: &mut Backlog, packet: &Numbered) {
    counter.packets += 1;
    counter.bytes += packet.size.get();
}

/// Sends at twice the rate of the link for two seconds, in packets of 40 to 1540 B; twice a flow is taken out of the
/// queue.
fn overloaded(config: &AnyConfig, limit: Limit) -> (AnyQdisc<Numbered>, Ledger) {
    let link = LinkFacts { rate: Rate::from_bps(6_320_000), limit };
    let (mut queue, mut ledger) = (config.build::<Numbered>(&link), Ledger::default());
    let (mut sizes, mut rng) = (Streams::new(1).get("sizes"), Streams::new(1).get("judge"));
    for tick in 0..4000u32 {
        let now = Instant::ZERO + Span::from_micros(500) * u64::from(tick);
        while queue.next_wakeup().is_some_and(|due| due <= now) {
            queue.on_wakeup(now);
        }
        let size = 40 + (sizes.uniform() * 1500.0) as u64;
        let flow = (sizes.uniform() * 8.0) as u32;
        let ecn = if flow.is_multiple_of(2) { Ecn::Ect0 } else { Ecn::NotEct };
        let packet = Numbered::new(tick.into(), FlowId(flow), Bytes::new(size)).with_ecn(ecn);
        count(&mut ledger.0.arrived, &packet);
        queue.enqueue(packet, now, &mut rng, &mut ledger);
        if tick % 2 == 0
            && let Some(packet) = queue.dequeue(now, &mut rng, &mut ledger)
        {
            count(&mut ledger.0.sent, &packet);
        }
        if tick % 2000 == 1999 {
            let mut taken = Vec::new();
            queue.take_out(FlowId(3), &mut taken);
            taken.iter().for_each(|packet| count(&mut ledger.0.taken_out, packet));
        }
    }
    (queue, ledger)
}

#[test]
fn every_counter_has_the_bytes_of_the_packets_it_counts() {
    for name in NAMES {
        for limit in [Limit::Packets(60), Limit::Bytes(Bytes::new(40_000)), Limit::Packets(100_000)] {
            let config = AnyConfig::default_of(name).expect("every name has a default");
            let (mut queue, mut ledger) = overloaded(&config, limit);
            assert_eq!(*queue.stats(), with_forced(&ledger, queue.stats()), "{name} with {limit:?}");
            // The backlog is what arrived and has neither left nor been dropped, and it leaves with its bytes.
            let backlog = queue.backlog();
            let (now, mut rng) = (Instant::ZERO + Span::from_secs(3), Streams::new(2).get("rest"));
            let ended = ledger.0;
            assert_eq!(ended.check(backlog), Ok(()), "{name} with {limit:?}");
            for _ in 0..backlog.packets {
                if let Some(packet) = queue.dequeue(now, &mut rng, &mut ledger) {
                    count(&mut ledger.0.sent, &packet);
                }
            }
            assert_eq!(*queue.stats(), with_forced(&ledger, queue.stats()), "{name} with {limit:?}, emptied");
        }
    }
}
