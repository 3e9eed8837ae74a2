//! Who a packet belongs to: prefixes, names, hardware addresses, and hosts without a name.

use penstock_conntrack::{Arrived, Config, FlowTable, Mac, Named, Prefix, SipHash, Subscribers};
use penstock_core::packet::NodeId;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::{End, Headers, HostKey};
use std::net::Ipv4Addr;

fn host(address: &str) -> HostKey {
    HostKey::at(address.parse().unwrap()).unwrap()
}

fn named(name: &str, prefixes: &[&str]) -> Named {
    Named { name: name.into(), prefixes: prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect() }
}

fn table(hosts: u32, names: &[Named]) -> FlowTable {
    let config = Config { hosts, entries: 8, half_open: 8, subscribers: names.to_vec(), ..Config::default() };
    FlowTable::new(config, SipHash(5, 6), SipHash(1, 2))
}

fn subscribers(hosts: u32, names: &[Named]) -> Subscribers {
    table(hosts, names).subscribers
}

#[test]
fn a_prefix_has_no_bits_behind_its_length_and_is_no_longer_than_a_host() {
    for right in ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.1", "10.0.0.1/32", "::/0", "2001:db8::/32", "2001:db8:0:1::/64"] {
        assert!(right.parse::<Prefix>().is_ok(), "{right}");
    }
    for wrong in ["10.0.0.1/8", "10.0.0.0/33", "2001:db8::/65", "2001:db8::1:0:0:0:0/32", "10.0.0.0/-1", "x/8", "", "/"]
    {
        let message = wrong.parse::<Prefix>().unwrap_err().to_string();
        assert!(message.contains("10.1.0.0/16") && message.contains(wrong), "{message}");
    }
}

#[test]
fn the_longest_prefix_decides_and_all_of_a_name_is_one() {
    let names = [named("all", &["0.0.0.0/0", "2001:db8::/32"]), named("some", &["10.1.0.0/16", "2001:db8:0:8::/61"])];
    let mut subscribers = subscribers(16, &names);
    let mut number = |address: &str| subscribers.number(host(address), Instant::ZERO);
    for (address, expected) in
        [("10.1.2.3", 2), ("10.2.0.0", 1), ("2001:db8:0:f::1", 2), ("2001:db8:0:10::1", 1), ("10.1.2.3", 2)]
    {
        assert_eq!(number(address), (NodeId(expected), false), "{address}");
    }
    let (alone, fresh) = number("2001:db9::1");
    assert!(alone.0 > 2 && fresh);
    assert_eq!(number("2001:db9::ffff"), (alone, false), "its /64");
    let known = |address: &str| subscribers.known(host(address));
    assert_eq!((known("10.1.9.9"), known("2001:db9::2")), (Some(NodeId(2)), Some(alone)));
    assert_eq!((known("2001:db9:1::"), known("2001:db9:1::")), (None, None), "no number is given");
}

/// A name keeps its number, a new one has one that nobody had, and hosts follow with their next packets.
#[test]
fn names_come_and_go_and_numbers_stay() {
    let mut subscribers = subscribers(16, &[named("a", &["10.1.0.0/16"]), named("b", &["10.2.0.0/16"])]);
    let at = |subscribers: &mut Subscribers, address: &str| subscribers.number(host(address), Instant::ZERO);
    let (alone, _) = at(&mut subscribers, "10.3.0.1");
    assert_eq!((at(&mut subscribers, "10.1.0.1").0, at(&mut subscribers, "10.2.0.1").0), (NodeId(1), NodeId(2)));
    subscribers.rename(&[named("c", &["10.3.0.0/16"]), named("b", &["10.2.0.0/16", "10.1.0.1/32"])]);
    let (new, fresh) = at(&mut subscribers, "10.3.0.1");
    assert!(new == NodeId(1 + 2 + 16) && !fresh && new != alone, "{new:?}");
    assert_eq!(subscribers.number_of("c"), Some(new));
    let names = [0, 1, 2, 3, 18, 19, 20, u32::MAX].map(|number| subscribers.name_of(NodeId(number)));
    assert_eq!(names, [None, Some("a"), Some("b"), None, None, Some("c"), None, None]);
    assert_eq!(at(&mut subscribers, "10.1.0.1"), (NodeId(2), false));
    let (freed, fresh) = at(&mut subscribers, "10.1.0.2");
    assert!(fresh && (3..19).contains(&freed.0), "a host of its own: {freed:?}");
    subscribers.rename(&[named("a", &["10.1.0.0/16"])]);
    assert_eq!(at(&mut subscribers, "10.1.0.2"), (NodeId(1), false));
    let (own, fresh) = at(&mut subscribers, "10.2.0.1");
    assert!(fresh && own.0 > 2, "it had a name, and now a number that may have been another's: {own:?}");
    assert_eq!((subscribers.names(), subscribers.numbers()), (3, 1 + 3 + 16));
}

/// Eight places, and each host speaks at a time of its own. A newcomer gets the place of the host which has been silent for
/// longest, wherever that place is, also after the count of ticks has begun again from 0.
#[test]
fn a_full_table_takes_the_place_of_the_host_that_was_silent_for_longest() {
    for start in [0, u64::from(u32::MAX) - 40] {
        let now = |ticks: u64| Instant::ZERO + Span::from_nanos((start + ticks) << 20);
        for silent in 0..8u32 {
            let mut subscribers = subscribers(8, &[]);
            let at = |n: u32| host(&format!("10.0.0.{}", n + 1));
            let numbers: Vec<_> = (0..8).map(|n| subscribers.number(at(n), now(n.into())).0).collect();
            for (turn, n) in (0..8).filter(|n| *n != silent).enumerate() {
                assert_eq!(subscribers.number(at(n), now(20 + turn as u64)), (numbers[n as usize], false));
            }
            let (newcomer, fresh) = subscribers.number(at(100), now(60));
            assert_eq!((newcomer, fresh), (numbers[silent as usize], true), "{silent}");
            assert_eq!(subscribers.known(at(silent)), None);
            let others = (0..8).filter(|n| *n != silent);
            assert!(others.clone().all(|n| subscribers.known(at(n)) == Some(numbers[n as usize])));
        }
    }
}

#[test]
fn hardware_addresses_are_six_pairs_of_one_interface() {
    let ten = Some(Mac::from([2, 0, 0, 0, 0, 10]));
    assert_eq!(["02:00:00:00:00:0A", "02-00-00-00-00-0a"].map(Mac::read), [ten; 2]);
    for wrong in ["02:00:00:00:00", "02:00:00:00:00:0a:1", "2:0:0:0:0:a", "02:00-00:00:00:0a", "02:00:00:00:00:0g"] {
        assert_eq!(Mac::read(wrong), None, "{wrong}");
    }
    for group in ["01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "", "+2:00:00:00:00:0a"] {
        assert_eq!(Mac::read(group), None, "{group}");
    }
}

/// Subscribers with the hardware addresses that end in 1 and 2.
fn interfaces() -> [Named; 2] {
    [named("a", &["02:00:00:00:00:01"]), named("b", &["02:00:00:00:00:02"])]
}

/// The subscriber of a datagram of a host to a server or from it: of a /64 of IPv6, or of 10.0.0.0/8. `hardware` is the
/// last byte of the address of its frame.
fn owner(table: &mut FlowTable, v6: bool, host: u32, outward: bool, hardware: Option<u8>, s: u64) -> Option<u32> {
    let mut bytes = [0u8; 48];
    let (ours, other) = if outward { (0, 1) } else { (1, 0) };
    if v6 {
        (bytes[0], bytes[5], bytes[6], bytes[45]) = (0x60, 8, 17, 8);
        for (end, net, last) in [(ours, 1, host as u8), (other, 9, 200)] {
            let at = 8 + 16 * end;
            bytes[at..at + 4].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
            (bytes[at + 7], bytes[at + 15]) = (net, last);
        }
    } else {
        (bytes[0], bytes[3], bytes[9], bytes[25]) = (0x45, 28, 17, 8);
        for (end, address) in [(ours, (0x0a00_0000 + host).to_be_bytes()), (other, [192, 0, 2, 1])] {
            bytes[12 + 4 * end..16 + 4 * end].copy_from_slice(&address);
        }
    }
    let bytes = &bytes[..if v6 { 48 } else { 28 }];
    let end = if outward { End::Source } else { End::Destination };
    let hardware = hardware.map(|last| Mac::from([2, 0, 0, 0, 0, last]));
    let packet = Arrived { hardware, ..Arrived::read(bytes, &Headers::parse(bytes), end) };
    table.see(&packet, Instant::ZERO + Span::from_secs(s)).owner.map(|node| node.0)
}

/// Two hosts of one /64, and one of IPv4: what comes to each is of whoever sent from there.
#[test]
fn an_address_is_of_the_interface_that_used_it_last() {
    let t = &mut table(16, &[]);
    assert_eq!(owner(t, true, 1, true, Some(1), 0), None);
    t.subscribers.rename(&interfaces());
    let numbers = ["a", "b"].map(|name| t.subscribers.number_of(name).unwrap().0);
    assert_eq!(owner(t, true, 1, false, None, 0), None, "nothing came from there");
    let uses = [(true, 1, 0), (true, 2, 1), (false, 1, 1)];
    for (v6, host, of) in uses {
        assert_eq!(owner(t, v6, host, true, Some(1 + of as u8), 0), Some(numbers[of]));
    }
    for (v6, host, of) in uses {
        assert_eq!(owner(t, v6, host, false, None, 1), Some(numbers[of]));
    }
    let at = |address: &str| t.subscribers.name_at(address.parse().unwrap(), Instant::ZERO);
    assert_eq!((at("2001:db8:0:1::1"), at("10.0.0.1"), at("10.0.0.2")), (Some("a"), Some("b"), None));
    assert_eq!(owner(t, true, 1, false, Some(2), 1), Some(numbers[1]), "a bridge tells who gets it");
    assert_eq!(owner(t, true, 1, false, None, 1), Some(numbers[0]), "and nothing is learned of that");
    assert_eq!(owner(t, true, 1, true, Some(9), 2), None);
    assert_eq!(owner(t, true, 1, false, None, 2), None, "nobody's now");
    assert_eq!(owner(t, true, 2, false, None, 3599), Some(numbers[1]));
    assert_eq!(owner(t, true, 2, false, None, 3602), None, "too long ago");
}

#[test]
fn the_addresses_of_interfaces_are_bounded_and_learned_again() {
    let t = &mut table(16, &interfaces());
    let all = 1..=100_000;
    all.clone().for_each(|forged| assert!(owner(t, false, forged, true, Some(1), 0).is_some()));
    let known =
        |forged: &u32| t.subscribers.name_at(Ipv4Addr::from(0x0a00_0000 + forged).into(), Instant::ZERO).is_some();
    let (first, count) = (known(&1), all.filter(known).count());
    assert!((16_000..=16_384).contains(&count) && !first, "{count}");
    assert!(owner(t, false, 1, true, Some(2), 0).is_some());
    assert_eq!(owner(t, false, 1, false, None, 0), t.subscribers.number_of("b").map(|node| node.0));
}
