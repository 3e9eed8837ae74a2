//! The wires of the emulator and of replay give each packet the same fate at the same time, with every discipline.
//!
//! Where arrivals, ends of transmissions and timers fall on the same time, their order decides; so each discipline is
//! tried with arrivals on the grid of transmissions and beside it.

use penstock_core::config::LinkFacts;
use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::{Ecn, Ern, FlowId};
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::registry::{AnyConfig, NAMES};
use penstock_core::rng::{Rng, Streams};
use penstock_core::testing::Numbered;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use penstock_shaper::bottleneck::{Bottleneck, Config, Delivery};
use penstock_trace::arrival::Arrival;
use penstock_trace::record::Fate;
use penstock_trace::replay::replay;

const SEED: u64 = 5;
/// 1500 bytes take a millisecond.
const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(12_000_000), limit: Limit::Packets(60) };

/// The fate of a packet: when it was dropped, or when its transmission ended.
type Ended = Option<(Instant, Option<DropReason>, Ecn)>;

struct Log(Vec<Ended>);

impl PacketObserver<Numbered> for Log {
    fn dropped(&mut self, packet: Numbered, reason: DropReason, now: Instant) {
        self.0[packet.number as usize] = Some((now, Some(reason), packet.ecn));
    }
    fn marked(&mut self, _: &Numbered, _: Instant) {}
}

/// Eight flows at one and a half times the rate of the link, and pauses in which the queue runs empty. On the grid packets
/// have 1500 B and come at whole and half milliseconds, several at once.
fn arrivals(on_grid: bool) -> Vec<Arrival> {
    let mut rng: Rng = Streams::new(SEED).get("arrivals");
    let (mut t, mut flows, mut out) = (Instant::ZERO, 0, Vec::new());
    for number in 0..3000u32 {
        let gap_us = if number % 500 == 499 { 300_000.0 } else { 1333.0 * rng.uniform() };
        let gap = if on_grid {
            Span::from_micros(500) * ((gap_us / 500.0) as u64)
        } else {
            Span::from_nanos((gap_us * 1e3) as u64)
        };
        t += gap;
        let flow = FlowId(((rng.uniform() * 8.0) as u32).min(flows));
        flows = flows.max(flow.0 + 1).min(7);
        let size = Bytes::new(if on_grid { 1500 } else { 40 + (rng.uniform() * 1460.0) as u64 });
        let ecn = if flow.0.is_multiple_of(2) { Ecn::Ect0 } else { Ecn::NotEct };
        out.push(Arrival { t, flow, label: flow.0.into(), node: None, size, ecn, ern: Ern::default(), dscp: None });
    }
    out
}

/// Passes the packets through the emulator in virtual time.
fn emulated(config: &AnyConfig, arrivals: &[Arrival]) -> Vec<Ended> {
    let config = Config {
        aqm: config.clone(),
        rate: LINK.rate,
        layer: LinkLayer::default(),
        delay: Span::ZERO,
        limit: LINK.limit,
    };
    let rng = Streams::new(SEED).get(&format!("replay/{}", config.aqm.name()));
    let (mut bottleneck, mut log) = (Bottleneck::new(&config, rng), Log(vec![None; arrivals.len()]));
    let live = |bottleneck: &mut Bottleneck<Numbered>, until: Instant, log: &mut Log| {
        while let Some(Delivery { due, packet, .. }) = bottleneck.poll(until, log) {
            log.0[packet.number as usize] = Some((due, None, packet.ecn));
        }
    };
    for (number, arrival) in (0..).zip(arrivals) {
        live(&mut bottleneck, arrival.t, &mut log);
        let packet = Numbered::new(number, arrival.flow, arrival.size).with_ecn(arrival.ecn);
        bottleneck.arrive(packet, arrival.t, &mut log);
    }
    let end = arrivals.last().map_or(Instant::ZERO, |arrival| arrival.t) + Span::from_secs(100);
    live(&mut bottleneck, end, &mut log);
    bottleneck.check().unwrap();
    log.0
}

/// Passes the packets through replay, which reports a packet when its transmission begins.
fn replayed(config: &AnyConfig, arrivals: &[Arrival]) -> Vec<Ended> {
    let outcome = replay(arrivals.iter().map(|arrival| Ok(*arrival)), config, LINK, SEED).unwrap();
    let time = |size: u32| LINK.rate.time_for(Bytes::new(size.into()));
    let ended = outcome.packets.iter().map(|packet| match packet.fate {
        Fate::Sent => Some((packet.t_fate + time(packet.size), None, packet.ecn_out)),
        Fate::Dropped(reason) => Some((packet.t_fate, Some(reason), packet.ecn_out)),
    });
    ended.collect()
}

#[test]
fn every_packet_has_the_same_fate_through_both_wires() {
    let (mut dropped, mut sent) = (0, 0);
    for on_grid in [true, false] {
        let arrivals = arrivals(on_grid);
        for name in NAMES {
            let config = AnyConfig::default_of(name).expect("every name has a default");
            let both = emulated(&config, &arrivals).into_iter().zip(replayed(&config, &arrivals));
            for (id, (ours, theirs)) in both.enumerate() {
                let (Some(ours), Some(theirs)) = (ours, theirs) else { panic!("{name}: packet {id} never ended") };
                // The remainder of a division may shift the end of a transmission by a nanosecond.
                let apart = ours.0.as_nanos().abs_diff(theirs.0.as_nanos());
                let same = (ours.1, ours.2) == (theirs.1, theirs.2) && apart <= u64::from(ours.1.is_none());
                assert!(same, "{name}, packet {id}, on the grid {on_grid}: emulator {ours:?}, replay {theirs:?}");
                *(if ours.1.is_some() { &mut dropped } else { &mut sent }) += 1;
            }
        }
    }
    assert!(dropped > 10_000 && sent > 50_000, "{dropped} dropped, {sent} sent");
}
