//! The emulator's links do to packets what the simulator's do: what `penstock_core::impair` decides for each packet, at the
//! time at which its transmission ends.

use penstock_core::impair::{
    Aggregate, Behind, Distribution, Gilbert, Impairments, Jitter, Losses, Police, Policer, Reorder,
};
use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::FlowId;
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::registry::AnyConfig;
use penstock_core::rng::{Rng, Streams};
use penstock_core::testing::Numbered;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use penstock_shaper::bottleneck::{Bottleneck, Config, Delivery};

/// A packet takes a millisecond.
const RATE: Rate = Rate::from_bps(8_000_000);
/// Shorter than the jitter: a packet that is not on the wire yet may arrive before all that are.
const DELAY: Span = Span::from_millis(3);
const SIZE: Bytes = Bytes::new(1000);

struct Taken(Vec<u64>);

impl PacketObserver<Numbered> for Taken {
    fn dropped(&mut self, packet: Numbered, _: DropReason, _: Instant) {
        self.0.push(packet.number);
    }
    fn marked(&mut self, _: &Numbered, _: Instant) {}
}

fn us(us: u64) -> Instant {
    Instant::ZERO + Span::from_micros(us)
}

fn stream(name: &str) -> Rng {
    Streams::new(7).get(name)
}

fn link(impairments: &Impairments) -> Bottleneck<Numbered> {
    let aqm = AnyConfig::default_of("droptail").unwrap();
    let layer = LinkLayer::default();
    let config = Config { aqm, rate: RATE, layer, delay: DELAY, limit: Limit::Packets(1000) };
    let mut link = Bottleneck::new(&config, stream("aqm"));
    link.server.loss = Some(penstock_core::csi::Loss::new(0.0, stream("loss")));
    link.impair(impairments, stream("reorder"), Instant::ZERO);
    link
}

/// Packets at random times at nine tenths of the rate; returns their times.
fn arrivals() -> Vec<Instant> {
    let mut rng = stream("arrivals");
    let mut at = Instant::ZERO;
    let mut next = || {
        at += Span::from_nanos((rng.exponential(1.11e6) as u64).max(1));
        at
    };
    (0..20_000).map(|_| next()).collect()
}

/// Numbers and times in the order in which packets arrive, and the numbers of those that were taken back. The owner looks
/// when it must, and no more often.
fn emulated(impairments: &Impairments) -> (Vec<(u64, Instant)>, Vec<u64>) {
    let (mut link, mut taken, mut got) = (link(impairments), Taken(Vec::new()), Vec::new());
    let mut live = |link: &mut Bottleneck<Numbered>, until: Instant, taken: &mut Taken| {
        while let Some(at) = link.next_due().filter(|at| *at <= until) {
            while let Some(Delivery { due, packet, twice }) = link.poll(at, taken) {
                assert_eq!(due, at, "packet {} is late", packet.number);
                (0..=u8::from(twice)).for_each(|_| got.push((packet.number, due)));
            }
        }
        while let Some(Delivery { due, packet, twice }) = link.poll(until, taken) {
            (0..=u8::from(twice)).for_each(|_| got.push((packet.number, due)));
        }
    };
    for (number, at) in (0..).zip(arrivals()) {
        live(&mut link, at, &mut taken);
        link.arrive(Numbered::new(number, FlowId(0), SIZE), at, &mut taken);
    }
    live(&mut link, us(3_600_000_000), &mut taken);
    link.check().unwrap();
    (got, taken.0)
}

/// The same from the parts: a queue without a limit before a wire of one millisecond a packet.
fn expected(impairments: &Impairments) -> (Vec<(u64, Instant)>, Vec<u64>) {
    let mut policer: Option<Policer> = impairments.policer();
    let mut behind: Option<Behind> = impairments.behind(stream("reorder"));
    let mut losses = impairments.gilbert.map(|model| Losses::new(model, stream("loss").branch("gilbert")));
    let (mut got, mut taken, mut free) = (Vec::<(u64, Instant)>::new(), Vec::new(), Instant::ZERO);
    for (number, at) in (0..).zip(arrivals()) {
        if policer.as_mut().is_some_and(|policer| !policer.conforms(SIZE, at)) {
            taken.push(number);
            continue;
        }
        free = free.max(at) + Span::from_millis(1);
        if losses.as_mut().is_some_and(Losses::strikes) {
            continue;
        }
        let Some(behind) = &mut behind else {
            got.push((number, free + DELAY));
            continue;
        };
        let arrival = behind.arrival(free, DELAY);
        if let Some((from, to)) = arrival.earlier {
            got.iter_mut().filter(|(_, at)| *at == from).for_each(|(_, at)| *at = to);
        }
        (0..=u8::from(arrival.twice)).for_each(|_| got.push((number, arrival.at)));
    }
    got.sort_by_key(|(_, at)| *at);
    (got, taken)
}

fn all() -> Vec<Impairments> {
    let none = Impairments::default();
    let jitter =
        Jitter { by: Span::from_millis(9), correlation: 0.0, distribution: Distribution::Uniform, keep_order: false };
    let reorder = Some(Reorder { share: 0.1, by: Span::from_millis(7) });
    let gilbert = Some(Gilbert { to_bad: 0.05, to_good: 0.3, bad: 0.9, good: 0.01 });
    let correlated = Jitter { correlation: 0.7, distribution: Distribution::Normal, ..jitter };
    vec![
        none,
        Impairments { police: Some(Police { rate: Rate::from_bps(6_000_000), burst: Bytes::new(9000) }), ..none },
        Impairments { aggregate: Some(Aggregate { interval: Span::from_millis(12), packets: Some(5) }), ..none },
        Impairments { reorder, ..none },
        Impairments { jitter: Some(jitter), ..none },
        Impairments {
            jitter: Some(Jitter { keep_order: true, distribution: Distribution::Pareto, ..correlated }),
            ..none
        },
        Impairments { duplicate: 0.1, ..none },
        Impairments { gilbert, ..none },
        Impairments { reorder, jitter: Some(correlated), duplicate: 0.2, gilbert, ..none },
    ]
}

/// With `next_due`, by which the owner sleeps, no packet is late.
#[test]
fn each_packet_arrives_when_the_impairments_say() {
    for impairments in all() {
        let (found, wanted) = (emulated(&impairments), expected(&impairments));
        assert_eq!(found.1, wanted.1, "{impairments:?}");
        assert_eq!(found.0.len(), wanted.0.len(), "{impairments:?}");
        let first = found.0.iter().zip(&wanted.0).find(|(a, b)| a != b);
        assert_eq!(first, None, "{impairments:?}");
        let busy = found.0.len() + found.1.len();
        assert!(busy > 10_000, "{busy}");
    }
}

/// A new rate while a packet is on a wire that reorders moves no arrival, as in the simulator.
#[test]
fn what_ends_goes_on_as_it_was() {
    let late = Impairments { reorder: Some(Reorder { share: 1.0, by: Span::from_millis(50) }), ..Default::default() };
    let mut link = link(&late);
    let mut taken = Taken(Vec::new());
    link.arrive(Numbered::new(0, FlowId(0), SIZE), us(0), &mut taken);
    assert!(link.poll(us(1), &mut taken).is_none());
    link.impair(&Impairments::default(), stream("other"), us(1));
    link.arrive(Numbered::new(1, FlowId(0), SIZE), us(2), &mut taken);
    let got: Vec<_> =
        std::iter::from_fn(|| link.poll(us(200_000), &mut taken)).map(|d| (d.packet.number, d.due)).collect();
    assert_eq!(got, [(1, us(5_000)), (0, us(54_000))]);
}
