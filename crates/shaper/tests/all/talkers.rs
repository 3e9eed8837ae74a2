//! Who carries most, by the counters of flows.

use penstock_conntrack::SipHash;
use penstock_core::packet::FlowId;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::RealPacket;
use penstock_shaper::direction::Direction;
use penstock_shaper::nodes::Side;
use penstock_shaper::talkers::{Talkers, Top};
use std::net::{IpAddr, Ipv6Addr};

/// A UDP packet of `size` bytes in all.
fn packet(from: [u8; 4], to: [u8; 4], port: u16, size: u16) -> RealPacket {
    let mut bytes = vec![0; usize::from(size)];
    (bytes[0], bytes[9]) = (0x45, 17);
    bytes[2..4].copy_from_slice(&size.to_be_bytes());
    bytes[12..16].copy_from_slice(&from);
    bytes[16..20].copy_from_slice(&to);
    bytes[20..22].copy_from_slice(&port.to_be_bytes());
    bytes[22..24].copy_from_slice(&[0, 53]);
    RealPacket::new(bytes, FlowId(0))
}

fn at(s: u64) -> Instant {
    Instant::ZERO + Span::from_secs(s)
}

const LEFT: [u8; 4] = [10, 0, 0, 9];
const RIGHT: [u8; 4] = [10, 0, 0, 2];

#[test]
fn a_flow_is_one_line_with_both_its_directions() {
    let mut talkers = Talkers::new(SipHash(1, 2));
    talkers.tick(at(1));
    talkers.count(Direction::Forward, &packet(LEFT, RIGHT, 1000, 1000), at(1));
    let mut answer = packet(RIGHT, LEFT, 53, 500).into_bytes();
    answer[22..24].copy_from_slice(&1000u16.to_be_bytes());
    talkers.count(Direction::Reverse, &RealPacket::new(answer, FlowId(0)), at(1));
    talkers.count(Direction::Forward, &packet([10, 0, 0, 8], RIGHT, 7, 100), at(1));
    talkers.tick(at(3));
    let top = talkers.flows(10);
    assert_eq!(top.known, 2);
    let flow = &top.entries[0];
    assert_eq!((flow.name.as_str(), flow.kind.as_str()), ("10.0.0.9:1000 > 10.0.0.2:53", "udp"));
    assert_eq!((flow.bytes, flow.packets, flow.rate_bps), ([1000, 500], [1, 1], [4000, 2000]));
    talkers.tick(at(4));
    assert_eq!(talkers.flows(1).entries[0].rate_bps, [0, 0], "the last second was silent");
    assert_eq!(talkers.flows(1).entries.len(), 1);
    talkers.tick(at(100));
    assert_eq!(talkers.flows(9), Top { entries: vec![], known: 0, others_bytes: [1100, 500] });
}

/// Of 2000 flows in 1024 groups of four places, by the law of Poisson 3.5 % find all four taken.
#[test]
fn two_thousand_flows_find_room() {
    let mut talkers = Talkers::new(SipHash(1, 2));
    (0..2000).for_each(|port| talkers.count(Direction::Forward, &packet(LEFT, RIGHT, port, 100), at(0)));
    let Top { known, others_bytes, .. } = talkers.flows(1);
    assert!((1900..2000).contains(&known), "{known}");
    assert_eq!(others_bytes, [100 * (2000 - known as u64), 0]);
}

#[test]
fn the_flows_of_a_host_are_one_node() {
    let mut talkers = Talkers::new(SipHash(1, 2));
    (0..5).for_each(|port| talkers.count(Direction::Forward, &packet(LEFT, RIGHT, port, 100), at(0)));
    talkers.count(Direction::Forward, &packet([10, 0, 0, 1], RIGHT, 5, 100), at(0));
    let left = talkers.nodes(Side::Left, 10, |_| None).entries;
    assert_eq!((left.len(), left[0].name.as_str(), left[0].kind.as_str()), (2, "10.0.0.9", "5 flows"));
    assert_eq!((left[0].bytes, left[1].bytes), ([500, 0], [100, 0]));
    let right = talkers.nodes(Side::Right, 10, |_| None).entries;
    assert_eq!((right.len(), right[0].name.as_str(), right[0].bytes), (1, "10.0.0.2", [600, 0]));
    let house = |address: IpAddr| (address == IpAddr::from([10, 0, 0, 9])).then_some("house");
    let named = talkers.nodes(Side::Left, 10, house).entries;
    assert_eq!([named[0].name.as_str(), named[1].name.as_str()], ["house", "10.0.0.1"]);
}

/// A node has the rates of its flows: 300 and 500 bytes of one second are 2400 + 4000 bit/s.
#[test]
fn the_rate_of_a_node_is_that_of_its_flows() {
    let mut talkers = Talkers::new(SipHash(1, 2));
    talkers.tick(at(1));
    for (port, size) in [(1, 300), (2, 500)] {
        talkers.count(Direction::Forward, &packet(LEFT, RIGHT, port, size), at(1));
    }
    talkers.tick(at(2));
    let [node] = &talkers.nodes(Side::Left, 10, |_| None).entries[..] else { panic!("one node") };
    assert_eq!(node.rate_bps, [6400, 0]);
}

/// The first end in a key is the lower one, whichever side that is on.
#[test]
fn a_flow_of_ipv6_is_named_from_left_to_right() {
    let [low, high] = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse::<Ipv6Addr>().unwrap());
    for (left, right) in [(low, high), (high, low)] {
        let mut bytes = vec![0; 48];
        (bytes[0], bytes[5], bytes[6]) = (0x60, 8, 17);
        bytes[8..24].copy_from_slice(&left.octets());
        bytes[24..40].copy_from_slice(&right.octets());
        (bytes[41], bytes[43], bytes[45]) = (7, 53, 8);
        let mut talkers = Talkers::new(SipHash(1, 2));
        talkers.count(Direction::Forward, &RealPacket::new(bytes, FlowId(0)), at(0));
        assert_eq!(talkers.flows(1).entries[0].name, format!("[{left}]:7 > [{right}]:53"));
        assert_eq!(talkers.nodes(Side::Left, 1, |_| None).entries[0].name, "2001:db8::/64");
    }
}

/// A hundred heavy flows stay while a million light ones pass, and no byte is forgotten.
#[test]
fn heavy_flows_stay_in_a_flood_of_light_ones() {
    let mut talkers = Talkers::new(SipHash(3, 4));
    let mut all = 0;
    for second in 0..3 {
        for round in 0..100u16 {
            for heavy in 0..100 {
                talkers.count(Direction::Forward, &packet([10, 1, 0, heavy], RIGHT, 1, 1500), at(second));
                all += 1500;
            }
            for light in 0..2000u16 {
                let [high, low] = (light % 256 + 256 * (round % 50)).to_be_bytes();
                talkers.count(Direction::Forward, &packet([10, 2, high, low], RIGHT, light, 28), at(second));
                all += 28;
            }
        }
        talkers.tick(at(second + 1));
    }
    let top = talkers.flows(100);
    assert!(top.entries.iter().all(|entry| entry.name.starts_with("10.1.0.")), "{:?}", top.entries[99]);
    let known: u64 = talkers.flows(usize::MAX).entries.iter().map(|entry| entry.bytes[0]).sum();
    assert_eq!(known + top.others_bytes[0], all);
}
