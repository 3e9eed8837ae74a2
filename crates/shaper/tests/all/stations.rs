//! Stations behind a wire in virtual time: who loses what, what disciplines are told, and when an idle wire goes on.

use penstock_core::csi::{Channel, Loss, Stations};
use penstock_core::fact::Fact;
use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::FlowId;
use penstock_core::rng::Streams;
use penstock_core::settings::config_from_settings;
use penstock_core::testing::Numbered;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use penstock_shaper::bottleneck::{Bottleneck, Config, Delivery};

/// 1500 bytes take a millisecond.
const RATE: Rate = Rate::from_bps(12_000_000);
const FAR: Instant = Instant::from_nanos(u64::MAX / 2);

/// A packet of a flow.
fn of(flow: u32) -> Numbered {
    Numbered::new(0, FlowId(flow), Bytes::new(1500))
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn discipline(name: &str, settings: &[&str]) -> penstock_core::registry::AnyConfig {
    let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
    config_from_settings(name, &settings).unwrap()
}

fn bottleneck(name: &str, settings: &[&str], channels: Vec<Channel>) -> Bottleneck<Numbered> {
    let config = Config {
        aqm: discipline(name, settings),
        rate: RATE,
        layer: LinkLayer::default(),
        delay: Span::ZERO,
        limit: Limit::Packets(100_000),
    };
    let streams = Streams::new(1);
    let mut bottleneck = Bottleneck::new(&config, streams.get("test"));
    let mut loss = Loss::new(0.0, streams.get("loss"));
    loss.stations = Stations::new(channels, streams.get("channels"), streams.get("stations"));
    bottleneck.server.loss = Some(loss);
    bottleneck.server.tell_channels(Instant::ZERO);
    bottleneck
}

/// Returns the flows whose packets are due up to `now`, with their times.
fn drain(bottleneck: &mut Bottleneck<Numbered>, now: Instant) -> Vec<(u32, Instant)> {
    std::iter::from_fn(|| bottleneck.poll(now, &mut ()))
        .map(|Delivery { due, packet, .. }| (packet.flow.0, due))
        .collect()
}

#[test]
fn each_flow_loses_what_its_station_loses() {
    let losses = [0.0, 0.3, 1.0].map(Channel::Fixed).to_vec();
    let mut link = bottleneck("droptail", &[], losses);
    (0..30_000).for_each(|n| link.arrive(of(n % 6), Instant::ZERO, &mut ()));
    let mut arrived = [0u32; 6];
    let got = drain(&mut link, FAR);
    got.iter().for_each(|(flow, _)| arrived[*flow as usize] += 1);
    assert_eq!((arrived[0], arrived[3], arrived[2], arrived[5]), (5000, 5000, 0, 0));
    // Each count is binomial with mean 3500 and a standard deviation of 32.4; the bound is five of them.
    assert!([arrived[1], arrived[4]].iter().all(|n| n.abs_diff(3500) < 162), "{arrived:?}");
    assert_eq!(link.lost() + got.len() as u64, 30_000);
    link.check().unwrap();
}

/// W²F²Q sends nothing to a station whose channel is bad. The channel is good from 50 ms on: the wire, which was idle,
/// goes on then, though nothing arrives.
#[test]
fn an_idle_wire_goes_on_when_a_channel_becomes_good() {
    let steps = Channel::Steps(vec![(Instant::ZERO, 1.0), (at(50), 0.0)]);
    let mut link = bottleneck("w2f2q", &["stations=1"], vec![steps]);
    drain(&mut link, at(1));
    (0..3).for_each(|_| link.arrive(of(0), at(2), &mut ()));
    assert_eq!((drain(&mut link, at(49)), link.next_event()), (vec![], Some(at(50))));
    assert_eq!(drain(&mut link, FAR), [(0, at(51)), (0, at(52)), (0, at(53))]);
    assert_eq!(link.lost(), 0);
}

#[test]
fn channels_that_are_set_hold_at_once_and_their_time_begins() {
    let mut link = bottleneck("w2f2q", &["stations=1"], vec![Channel::Fixed(1.0)]);
    (0..2).for_each(|_| link.arrive(of(0), at(2), &mut ()));
    assert_eq!((drain(&mut link, at(100)), link.next_event()), (vec![], None), "there is no change to wait for");
    link.set_stations(vec![Channel::Fixed(0.0)], at(100), &mut ());
    assert_eq!(drain(&mut link, at(200)), [(0, at(101)), (0, at(102))]);
    link.set_stations(vec![Channel::Steps(vec![(at(10), 1.0)])], at(200), &mut ());
    link.arrive(of(0), at(205), &mut ());
    assert_eq!(drain(&mut link, at(206)), [(0, at(206))]);
    link.arrive(of(0), at(211), &mut ());
    assert_eq!(drain(&mut link, FAR), [], "the channel is bad from 210 ms on");
}

/// What is lost up to `good_loss` is good: a station that loses three quarters gets nothing with the default of 0.2.
#[test]
fn the_largest_loss_of_a_good_channel_can_be_set() {
    for (settings, sent) in [(&["stations=1"][..], 0), (&["stations=1", "good_loss=0.75"], 100)] {
        let mut link = bottleneck("w2f2q", settings, vec![Channel::Fixed(0.75)]);
        (0..100).for_each(|_| link.arrive(of(0), Instant::ZERO, &mut ()));
        let got = drain(&mut link, FAR).len() as u64;
        assert_eq!(got + link.lost(), sent, "{settings:?}");
    }
}

/// The second of two stations loses all, and W²F²Q sends it nothing. A discipline in the place of another one is told so,
/// and packets for the good station pass it although the one before still holds some for the bad one. When that is good,
/// the packets that waited longest go first.
#[test]
fn a_discipline_in_place_of_another_knows_the_channels() {
    let settings = ["stations=2", "flows=2"];
    let mut link = bottleneck("w2f2q", &settings, [0.0, 1.0].map(Channel::Fixed).to_vec());
    let burst = |link: &mut Bottleneck<Numbered>, now: Instant| {
        (0..4).flat_map(|_| [1, 0]).for_each(|flow| link.arrive(of(flow), now, &mut ()));
    };
    burst(&mut link, at(0));
    assert_eq!(drain(&mut link, at(50)).len(), 4);
    link.replace(&discipline("w2f2q", &settings), Limit::Packets(50), at(50)).unwrap();
    burst(&mut link, at(50));
    let got = drain(&mut link, at(99));
    assert!(got.len() == 4 && got.iter().all(|(flow, _)| *flow == 0), "{got:?}");
    assert_eq!((link.server.backlog().packets, link.lost()), (8, 0));
    link.set_stations([0.0, 0.0].map(Channel::Fixed).to_vec(), at(100), &mut ());
    assert_eq!((drain(&mut link, FAR).len(), link.server.backlog().packets, link.lost()), (8, 0, 0));
    link.check().unwrap();
}

/// Class 1 is at the station that loses all, whatever the number of the flow.
#[test]
fn a_flow_is_at_the_station_of_its_class() {
    let mut link = bottleneck("w2f2q", &["stations=2", "flows=2"], [0.0, 1.0].map(Channel::Fixed).to_vec());
    for (flow, class) in [(4, 1), (7, 0)] {
        link.server.on_fact(&Fact::Class { flow: FlowId(flow), class }, Instant::ZERO);
    }
    [4, 7, 4, 7].into_iter().for_each(|flow| link.arrive(of(flow), Instant::ZERO, &mut ()));
    let flows: Vec<u32> = drain(&mut link, FAR).into_iter().map(|(flow, _)| flow).collect();
    assert_eq!((flows, link.lost(), link.server.backlog().packets), (vec![7, 7], 0, 2));
    let mut blind = bottleneck("droptail", &[], [0.0, 1.0].map(Channel::Fixed).to_vec());
    blind.server.on_fact(&Fact::Class { flow: FlowId(4), class: 1 }, Instant::ZERO);
    (0..3).for_each(|_| blind.arrive(of(4), Instant::ZERO, &mut ()));
    assert_eq!((drain(&mut blind, FAR), blind.lost()), (vec![], 3), "the wire knows the class as well");
}
