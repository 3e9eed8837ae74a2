//! What holds whatever packets come.

use penstock_conntrack::{Arrived, Config, FlowTable, Named, STRANGERS, Seen, Segment, SipHash, State};
use penstock_core::packet::TcpFlags;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::{FlowKey, Headers, HostKey};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;

fn config(entries: u32) -> Config {
    let small = Config { entries, half_open: 16, shown: 4, hosts: 16, others: 8, quota: entries, ..Config::default() };
    Config { idle: Span::from_secs(60), opening: Span::from_secs(10), ..small }
}

fn table(config: Config) -> FlowTable {
    FlowTable::new(config, SipHash(5, 6), SipHash(7, 8))
}

/// A connection of 10.0.0.`client` with a port to 10.9.9.9:80: its segments from the client (`true`) or to it.
#[derive(Debug, Clone, Copy)]
struct Connection {
    client: u8,
    port: u16,
    isn: [u32; 2],
}

impl Connection {
    fn new(client: u8, port: u16) -> Self {
        Self { client, port, isn: [u32::from(port) * 1000, 77_000] }
    }

    fn packet(&self, from_client: bool, segment: Segment) -> Arrived {
        let mut bytes = [0; 40];
        (bytes[0], bytes[3], bytes[9], bytes[32]) = (0x45, 40, 6, 0x50);
        bytes[12..20].copy_from_slice(&[10, 0, 0, self.client, 10, 9, 9, 9]);
        bytes[20..22].copy_from_slice(&self.port.to_be_bytes());
        bytes[23] = 80;
        if !from_client {
            let (there, back): (Vec<u8>, Vec<u8>) = (bytes[12..16].into(), bytes[16..20].into());
            bytes[12..20].copy_from_slice(&[back, there].concat());
            bytes[20..24].rotate_left(2);
        }
        let (key, from_low) = FlowKey::with_side(&bytes, &Headers::parse(&bytes)).unwrap();
        let host = HostKey::at([10, 0, 0, self.client].into());
        Arrived { key: Some(key), from_low, outward: from_client, segment: Some(segment), host, hardware: None }
    }

    /// SYN, SYN-ACK, ACK, ten bytes and their acknowledgment; what the table answers to the last.
    fn open(&self, table: &mut FlowTable, now: Instant) -> Seen {
        let [near, far] = self.isn.map(|isn| isn.wrapping_add(1));
        let segment = |flags, seq, ack, len| Segment { flags, seq, ack, len, window: 1000, ..Segment::default() };
        table.see(&self.packet(true, segment(SYN, self.isn[0], 0, 0)), now);
        table.see(&self.packet(false, segment(SYN.with(ACK), self.isn[1], near, 0)), now);
        table.see(&self.packet(true, segment(ACK, near, far, 0)), now);
        table.see(&self.packet(true, segment(ACK, near, far, 10)), now);
        table.see(&self.packet(false, segment(ACK, far, near.wrapping_add(10), 0)), now)
    }

    /// Sends ten bytes more.
    fn data(&self, table: &mut FlowTable, now: Instant) -> Seen {
        let [near, far] = self.isn.map(|isn| isn.wrapping_add(1));
        let segment =
            Segment { flags: ACK, seq: near.wrapping_add(10), ack: far, len: 10, window: 1000, ..Segment::default() };
        table.see(&self.packet(true, segment), now)
    }
}

fn segments() -> impl Strategy<Value = Segment> {
    let numbers = prop_oneof![0..4u32, 995..1015u32, any::<u32>()];
    let flags = prop::sample::select(vec![0x02, 0x12, 0x10, 0x10, 0x10, 0x11, 0x04, 0x14, 0x18, 0x00, 0x03, 0x06]);
    (flags, numbers.clone(), numbers, 0..12u32, any::<u16>()).prop_map(|(flags, seq, ack, len, window)| Segment {
        flags: TcpFlags(flags),
        seq,
        ack,
        len,
        window,
        window_scale: Some(window as u8),
        mss: Some(1000),
        signed: false,
    })
}

proptest! {
    /// Any segments at any times: an index that is shown is told as fresh when it passes to another connection, the number
    /// of entries is that of their owners, and nothing is lost from the counters.
    #[test]
    fn an_index_has_one_connection_at_a_time(
        packets in prop::collection::vec((0..6u16, 0..3u8, any::<bool>(), segments(), 0..9_000u64), 1..400),
    ) {
        let mut table = table(config(8));
        let (mut owners, mut now) = (BTreeMap::new(), Instant::ZERO);
        for (port, client, from_client, segment, wait) in packets {
            now += Span::from_millis(wait);
            let connection = Connection::new(client, port);
            let seen = table.see(&connection.packet(from_client, segment), now);
            prop_assert!(seen.flow.0 < table.indices());
            prop_assert!(!seen.shown || seen.flow.0 < 12, "{:?}", seen);
            if seen.shown {
                let before = owners.insert(seen.flow, (client, port));
                prop_assert!(seen.fresh || before.is_none_or(|before| before == (client, port)));
            }
            prop_assert_eq!(seen.opening.is_some() && seen.state != State::Entry, false);
            let gauges = table.gauges();
            let left = gauges.evicted_full + gauges.evicted_quota + gauges.replaced + gauges.expired;
            prop_assert!(gauges.promoted >= u64::from(gauges.entries) && gauges.entries <= 8 && gauges.half_open <= 16);
            prop_assert!(left + u64::from(gauges.entries) <= gauges.promoted && gauges.refused == 0);
            let mut of = |client: u8| {
                let number = table.subscribers.number(HostKey::at([10, 0, 0, client].into()).unwrap(), now).0;
                table.subscribers.entries_of(number)
            };
            prop_assert_eq!((0..3).map(&mut of).sum::<u32>(), table.gauges().entries);
        }
    }

    /// Who does not see the answers gets no entry, and takes none away: guesses of 32 bits that happen to be wrong.
    #[test]
    fn who_is_blind_makes_no_entry_and_ends_none(
        guesses in prop::collection::vec((any::<bool>(), segments(), any::<u32>(), any::<u32>()), 1..300),
    ) {
        let mut table = table(config(8));
        let (victim, other) = (Connection { isn: [1 << 31, 1 << 30], ..Connection::new(1, 1) }, Connection::new(2, 2));
        let flow = victim.open(&mut table, Instant::ZERO).flow;
        for (from_client, guess, seq, ack) in guesses {
            let far = |guess: u32, from: [u32; 2]| from.iter().all(|isn| guess.abs_diff(*isn) > 1 << 20);
            prop_assume!(far(seq, victim.isn) && far(ack, victim.isn));
            let guess = Segment { seq, ack, ..guess };
            // It sends from the side of the client, also what pretends to be of the server.
            table.see(&Arrived { outward: true, ..victim.packet(from_client, guess) }, Instant::ZERO);
            // The SYN of the forged connection is answered, but its sender does not see what with.
            let answer = Segment { flags: SYN.with(ACK), seq: !seq, ack: seq.wrapping_add(1), ..Segment::default() };
            table.see(&other.packet(true, Segment { flags: SYN, ..guess }), Instant::ZERO);
            table.see(&other.packet(false, answer), Instant::ZERO);
            prop_assume!(ack != (!seq).wrapping_add(1) && seq.abs_diff(ack) > 20);
            table.see(&other.packet(true, Segment { seq: seq.wrapping_add(1), flags: ACK, ..guess }), Instant::ZERO);
        }
        prop_assert_eq!(table.gauges().entries, 1);
        let seen = victim.data(&mut table, Instant::ZERO);
        prop_assert_eq!((seen.flow, seen.state), (flow, State::Entry));
    }

    /// One host opens far more connections than there is room for. Another has three, which stay, and opens one more at any
    /// time.
    #[test]
    fn one_host_takes_nothing_from_another(count in 1..1500u16, late in 0..1500u16, quota in 4..64u32) {
        let mut table = table(Config { quota, ..config(64) });
        let honest: Vec<_> = (0..4).map(|port| Connection::new(2, port)).collect();
        honest[..3].iter().for_each(|connection| admitted(connection.open(&mut table, Instant::ZERO)));
        for port in 0..count {
            let now = Instant::ZERO + Span::from_millis(port.into());
            admitted(Connection::new(1, port).open(&mut table, now));
            if port == late.min(count - 1) {
                admitted(honest[3].open(&mut table, now));
            }
        }
        let end = Instant::ZERO + Span::from_secs(2);
        for connection in &honest {
            prop_assert_eq!(connection.data(&mut table, end).state, State::Entry);
        }
        let host = table.subscribers.number(HostKey::at([10, 0, 0, 1].into()).unwrap(), end).0;
        prop_assert!(table.subscribers.entries_of(host) <= quota && table.gauges().refused == 0);
    }
}

fn admitted(seen: Seen) {
    assert_eq!(seen.state, State::Entry, "the newest is never refused");
}

/// An entry of RFC 5961's kind of attack: an RST anywhere in the window but at its exact place.
#[test]
fn no_rst_within_the_window_ends_a_connection_but_the_exact_one() {
    let mut table = table(config(8));
    let victim = Connection::new(1, 1);
    victim.open(&mut table, Instant::ZERO);
    let rst = |seq| victim.packet(true, Segment { flags: TcpFlags::RST, seq, ..Segment::default() });
    let next = victim.isn[0] + 11;
    for seq in (next - 200..next + 70_000).filter(|seq| *seq != next) {
        table.see(&rst(seq), Instant::ZERO);
    }
    assert_eq!((table.gauges().entries, table.gauges().implausible), (1, 70_199));
    table.see(&rst(next), Instant::ZERO);
    assert_eq!((table.gauges().entries, table.gauges().closed_rst), (0, 1));
}

/// A connection belongs to the subscriber that its host has now, and is counted there.
#[test]
fn a_connection_follows_its_host_to_another_subscriber() {
    let mut table = table(config(8));
    let (connection, now) = (Connection::new(1, 7), Instant::ZERO);
    let alone = connection.open(&mut table, now).owner.unwrap();
    assert_eq!(table.subscribers.entries_of(alone), 1);
    let prefixes = vec!["10.0.0.0/30".parse().unwrap()];
    table.subscribers.rename(&[Named { name: "house".into(), prefixes }]);
    let house = table.subscribers.number_of("house").unwrap();
    let seen = connection.data(&mut table, now);
    assert_eq!((seen.owner, seen.owner_fresh, seen.state), (Some(house), false, State::Entry));
    assert_eq!((table.subscribers.entries_of(alone), table.subscribers.entries_of(house)), (0, 1));
    table.subscribers.rename(&[]);
    let seen = connection.data(&mut table, now);
    assert_eq!(
        (seen.owner, seen.owner_fresh),
        (Some(alone), true),
        "its own number again, which may have been another's"
    );
    assert_eq!((table.subscribers.entries_of(alone), table.subscribers.entries_of(house)), (1, 0));
}

/// Eight places for hosts. One of them has a connection, and keeps its place among a thousand that are forged.
#[test]
fn a_host_with_entries_keeps_its_number_and_the_others_pass_theirs_on() {
    let mut table = table(Config { hosts: 8, ..config(8) });
    let host = |address: u32| HostKey::at(address.to_be_bytes().into()).unwrap();
    let (honest, begin) = (host(0x0a00_0001), Instant::ZERO);
    let number = Connection::new(1, 1).open(&mut table, begin).owner.unwrap();
    let at = |s: u32| begin + Span::from_secs(s.into());
    let mut forged: Vec<_> = (0..1000).map(|n| table.subscribers.number(host(0x0b00_0000 + n), at(n))).collect();
    assert!(forged.iter().all(|(other, fresh)| *fresh && *other != number && *other != STRANGERS));
    forged.sort();
    forged.dedup();
    assert_eq!(forged.len(), 7, "the other places");
    assert_eq!(table.subscribers.number(honest, at(1000)), (number, false));
    (1..=8).for_each(|client| assert_ne!(Connection::new(client, 2).open(&mut table, at(1000)).owner, Some(STRANGERS)));
    assert_eq!(table.subscribers.number(host(0x0a00_0009), at(1000)), (STRANGERS, false), "all places are held");
}

/// The host that was silent for longest has a connection, so the next one goes.
#[test]
fn a_silent_host_with_a_connection_stays_and_the_next_silent_one_goes() {
    let mut table = table(Config { hosts: 8, ..config(8) });
    let at = |s: u64| Instant::ZERO + Span::from_secs(s);
    let number = |table: &mut FlowTable, client: u8, s: u64| {
        table.subscribers.number(HostKey::at([10, 0, 0, client].into()).unwrap(), at(s))
    };
    let first = Connection::new(1, 1);
    let silent = first.open(&mut table, at(0)).owner.unwrap();
    let numbers: Vec<_> = (2..=8).map(|client| number(&mut table, client, client.into()).0).collect();
    assert_eq!(number(&mut table, 100, 20), (numbers[0], true));
    table.see(
        &first.packet(true, Segment { flags: TcpFlags::RST, seq: first.isn[0] + 11, ..Segment::default() }),
        at(21),
    );
    assert_eq!(number(&mut table, 101, 22), (silent, true));
}
