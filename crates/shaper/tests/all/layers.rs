//! What a link adds to packets, and the codepoints that packets of the wire have.

use crate::lab::{at, way};
use penstock_core::link_layer::{Framing, LinkLayer};
use penstock_core::packet::{FlowId, Packet};
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::registry::NAMES;
use penstock_core::rng::Streams;
use penstock_core::testing::Numbered;
use penstock_core::units::{Bytes, Rate, Span};
use penstock_core::wire::RealPacket;
use penstock_shaper::bottleneck::{Bottleneck, Config};
use penstock_shaper::classify::Classifier;
use penstock_shaper::direction::Direction::Forward;
use penstock_shaper::keys::Keys;
use penstock_shaper::nodes::Side;
use penstock_shaper::path::Path;
use penstock_shaper::pool::Pool;

const ATM: LinkLayer = LinkLayer { overhead: 44, mpu: 0, framing: Framing::Atm };
const CABLE: LinkLayer = LinkLayer { overhead: 18, mpu: 64, framing: Framing::None };

/// Forgets what was dropped.
struct Nobody;

impl PacketObserver<Numbered> for Nobody {
    fn dropped(&mut self, _: Numbered, _: DropReason, _: penstock_core::units::Instant) {}
    fn marked(&mut self, _: &Numbered, _: penstock_core::units::Instant) {}
}

/// A link of 8 Mbit/s sends a byte in a microsecond. What it sent for all packets that arrived is the sum of what they take:
/// over ATM with 44 bytes 53 each for 9, 53, 106 and 1749 bytes of packets of 4, 5, 40 and 1500.
#[test]
fn every_discipline_charges_what_packets_take() {
    let sizes = [(4, 53, 64), (5, 106, 64), (40, 106, 64), (46, 106, 64), (1000, 1166, 1018), (1500, 1749, 1518)];
    for (layer, cells) in [(ATM, true), (CABLE, false)] {
        for aqm in NAMES {
            let mut link = Bottleneck::<Numbered>::new(
                &Config { layer, ..way(aqm, &[], "8Mbit/s", 0) },
                Streams::new(1).get("test"),
            );
            let mut us = 0;
            let mut live = |link: &mut Bottleneck<Numbered>, now| {
                while let Some(delivery) = link.poll(now, &mut Nobody) {
                    let (_, atm, cable) = sizes[delivery.packet.number as usize % 6];
                    us += if cells { atm } else { cable };
                }
            };
            for number in 0..60 {
                let now = at(number * 7 / 10); // some packets wait, and none too long
                live(&mut link, now);
                let size = Bytes::new(sizes[number as usize % 6].0);
                link.arrive(Numbered::new(number, FlowId(0), size), now, &mut Nobody);
            }
            live(&mut link, at(60_000));
            assert_eq!(link.server.busy(), Span::from_micros(us), "{aqm} {layer}");
            assert!(us > 10_000, "{aqm}: too few packets were sent");
        }
    }
}

/// A change holds for packets that are sent later. 8 Mbit/s are 1 B/us: 1500 us before it, and 1749 us over ATM after it.
#[test]
fn another_layer_holds_from_the_next_packet_on() {
    let mut link = Bottleneck::<Numbered>::new(&way("droptail", &[], "8Mbit/s", 0), Streams::new(1).get("test"));
    (0..3).for_each(|n| link.arrive(Numbered::new(n, FlowId(0), Bytes::new(1500)), at(0), &mut Nobody));
    assert!(link.poll(at(1), &mut Nobody).is_none());
    link.set_layer(ATM, at(1));
    let due: Vec<u64> = std::iter::from_fn(|| link.poll(at(9), &mut Nobody)).map(|d| d.due.as_nanos() / 1000).collect();
    assert_eq!(due, [1500, 1500 + 1749, 1500 + 2 * 1749]);
    assert!(link.read_back(&way("droptail", &[], "8Mbit/s", 0)).is_err_and(|why| why.contains("bytes")));
    assert_eq!(ATM.of_packets(Rate::from_bps(8_000_000)), Rate::from_bps(6_861_063), "8 Mbit/s of 1500 in 1749");
}

/// A datagram of 250 bytes between two ports, with this codepoint.
fn datagram(port: u8, dscp: u8) -> Vec<u8> {
    let mut bytes = vec![0; 250];
    (bytes[0], bytes[1], bytes[3], bytes[9]) = (0x45, dscp << 2, 250, 17);
    bytes[12..20].copy_from_slice(&[10, 1, 0, 1, 192, 0, 2, 1]);
    (bytes[21], bytes[23], bytes[25]) = (port, 53, 230);
    bytes
}

/// Ten calls of best effort and one that is marked EF, 200 kbit/s each, share 1 Mbit/s for 20 s: the voice tin has a quarter of it
/// before others (tc-cake(8)), so of the marked one all packets pass, and of the others 80 of 200 kbit/s. Nothing is re-marked,
/// unless `wash` is set.
#[test]
fn a_marked_call_keeps_its_rate_beside_ten_others() {
    for wash in ["false", "true"] {
        let settings = ["tins=diffserv4", "bandwidth=1Mbit/s", &format!("wash={wash}")];
        let ways = [way("cake", &settings, "100Mbit/s", 0), way("droptail", &[], "100Mbit/s", 0)];
        let mut path = Path::<RealPacket>::new(&ways[0], &ways[1], Streams::new(1));
        let (mut pool, config) = (Pool::new(1500), penstock_conntrack::Config::default());
        let mut classifier = Classifier::new(config, Keys::from_seed(1), Side::Left);
        let (mut sent, mut arrived, mut marks) = (0, [0; 11], 0);
        for tick in 0..2000 {
            let now = at(10 * tick);
            let mut take = |path: &mut Path<RealPacket>, pool: &mut Pool| {
                while let Some((_, delivery)) = path.poll(now, pool) {
                    arrived[usize::from(delivery.packet.bytes()[21])] += 1;
                    marks += u64::from(delivery.packet.dscp() == Some(46));
                }
            };
            take(&mut path, &mut pool);
            for port in 0..11 {
                let bytes = datagram(port, if port == 10 { 46 } else { 0 });
                let (buffer, len) = (bytes.into_boxed_slice(), 250);
                let (packet, facts) = classifier.packet(Forward, buffer, len, now, &mut pool);
                path.tell(&facts, now);
                path.arrive(Forward, packet, now, &mut pool);
            }
            sent += 1;
            take(&mut path, &mut pool);
        }
        assert!(sent - arrived[10] <= 1, "{arrived:?} of {sent}");
        assert!(arrived[..10].iter().all(|n| (720..=880).contains(n)), "40 % of 2000: {arrived:?}");
        assert_eq!(marks, if wash == "true" { 0 } else { arrived[10] });
    }
}
