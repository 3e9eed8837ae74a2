//! Hosts as nodes, from bytes to shares of the link: in virtual time, without a kernel.

use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::Packet;
use penstock_core::rng::Streams;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Instant, Limit, Rate, Span};
use penstock_shaper::bottleneck::{Config, Delivery};
use penstock_shaper::classify::Classifier;
use penstock_shaper::direction::Direction;
use penstock_shaper::keys::Keys;
use penstock_shaper::nodes::Side;
use penstock_shaper::path::Path;
use penstock_shaper::pool::Pool;
use std::net::{IpAddr, Ipv6Addr};

/// Both hosts send 1250 bytes each millisecond, which would take all of a link of 10 Mbit/s.
const SIZE: usize = 1250;
const RATE: Rate = Rate::from_bps(10_000_000);
const TICKS: u64 = 10_000;
/// Flows of the greedy host, which sends on them in turn.
const MANY: u8 = 9;

/// Makes a datagram of [`SIZE`] bytes.
fn datagram(from: IpAddr, to: IpAddr, port: u8) -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    let header = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            (bytes[0], bytes[9]) = (0x45, 17);
            bytes[2..4].copy_from_slice(&(SIZE as u16).to_be_bytes());
            bytes[12..16].copy_from_slice(&from.octets());
            bytes[16..20].copy_from_slice(&to.octets());
            20
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            (bytes[0], bytes[6]) = (0x60, 17);
            bytes[4..6].copy_from_slice(&(SIZE as u16 - 40).to_be_bytes());
            bytes[8..24].copy_from_slice(&from.octets());
            bytes[24..40].copy_from_slice(&to.octets());
            40
        }
        _ => panic!("two versions in one packet"),
    };
    (bytes[header + 1], bytes[header + 3]) = (port, 53);
    let length = (SIZE - header) as u16;
    bytes[header + 4..header + 6].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// The case of a pair of hosts whose shares are measured.
struct Case {
    aqm: &'static str,
    settings: &'static [&'static str],
    side: Side,
    direction: Direction,
    /// Address of the greedy host, by its flow.
    greedy: fn(u8) -> IpAddr,
    /// Address of the host with one flow.
    modest: IpAddr,
}

impl Case {
    fn config(aqm: &str, settings: &[&str]) -> Config {
        let settings: Vec<_> = settings.iter().map(|text| (*text).to_owned()).collect();
        let aqm = config_from_settings(aqm, &settings).unwrap();
        Config { aqm, rate: RATE, layer: LinkLayer::default(), delay: Span::ZERO, limit: Limit::Packets(1000) }
    }

    /// Returns how many packets of the greedy and of the modest host were delivered in ten seconds, of 10,000 each.
    fn shares(&self) -> (u64, u64) {
        let (here, other) = (Self::config(self.aqm, self.settings), Self::config("droptail", &[]));
        let mut path = match self.direction {
            Direction::Forward => Path::new(&here, &other, Streams::new(1)),
            Direction::Reverse => Path::new(&other, &here, Streams::new(1)),
        };
        let (mut classifier, mut pool) =
            (Classifier::new(penstock_conntrack::Config::default(), Keys::from_seed(1), self.side), Pool::new(1500));
        let (server, (mut many, mut one)) = (self.server(), (0, 0));
        let mut count = |Delivery { packet, .. }: Delivery<penstock_core::wire::RealPacket>| {
            assert_eq!(packet.size().get(), SIZE as u64);
            *(if self.is_modest(packet.bytes()) { &mut one } else { &mut many }) += 1;
        };
        for tick in 0..TICKS {
            let now = Instant::ZERO + Span::from_millis(tick);
            let flow = (tick % u64::from(MANY)) as u8;
            for bytes in [self.datagram((self.greedy)(flow), flow, server), self.datagram(self.modest, 200, server)] {
                std::iter::from_fn(|| path.poll(now, &mut pool)).for_each(|(_, delivery)| count(delivery));
                let mut buffer = pool.take();
                buffer[..SIZE].copy_from_slice(&bytes);
                let (packet, news) = classifier.packet(self.direction, buffer, SIZE, now, &mut pool);
                path.tell(&news, now);
                path.arrive(self.direction, packet, now, &mut pool);
            }
        }
        let end = Instant::ZERO + Span::from_secs(60);
        std::iter::from_fn(|| path.poll(end, &mut pool)).for_each(|(_, delivery)| count(delivery));
        (many, one)
    }

    fn server(&self) -> IpAddr {
        if self.modest.is_ipv4() { [10, 9, 0, 1].into() } else { Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1).into() }
    }

    /// From a client, or to it on the way back.
    fn datagram(&self, client: IpAddr, port: u8, server: IpAddr) -> Vec<u8> {
        match self.direction {
            Direction::Forward => datagram(client, server, port),
            Direction::Reverse => datagram(server, client, port),
        }
    }

    fn is_modest(&self, bytes: &[u8]) -> bool {
        let modest = self.datagram(self.modest, 200, self.server());
        bytes[8..40] == modest[8..40]
    }
}

fn v4(host: u8) -> IpAddr {
    [10, 0, 0, host].into()
}

/// Another address of one /64 each time, as temporary addresses are (RFC 8981).
fn temporary(flow: u8) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0xabcd, 0x1234, 0, u16::from(flow) + 1).into()
}

fn qrm() -> Case {
    let (side, direction) = (Side::Left, Direction::Forward);
    Case { aqm: "qrm", settings: &[], side, direction, greedy: |_| v4(1), modest: v4(2) }
}

/// Each of two nodes has 5 Mbit/s, so that a packet takes 2 ms of its account, which holds 105 ms (a round trip of 100 ms,
/// 5% of tolerance) and is full at the end to within the two packets that the next would be one too many for. In the
/// 9999 ms to the last arrival that is (9999 + 105) / 2 = 5052 packets; the very first took half, for there was one node.
fn is_half(packets: u64) -> bool {
    (5050..=5053).contains(&packets)
}

#[test]
fn a_host_with_nine_flows_has_what_a_host_with_one_has() {
    let (many, one) = qrm().shares();
    assert!(is_half(many) && is_half(one), "{many} and {one}");
}

/// Towards the clients as well: nodes are the hosts on the left, wherever their packets go.
#[test]
fn the_way_back_knows_the_same_nodes() {
    let (many, one) = Case { direction: Direction::Reverse, ..qrm() }.shares();
    assert!(is_half(many) && is_half(one), "{many} and {one}");
    // All packets go to one host on the right. There is nobody to divide the link with, so it has all of it: a packet takes
    // 1 ms, and what comes beyond that in turn is refused whosever it is.
    let (many, one) = Case { side: Side::Right, ..qrm() }.shares();
    assert!((10_102..=10_105).contains(&(many + one)), "{many} and {one}");
}

#[test]
fn addresses_of_one_64_are_one_host() {
    let modest = Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 1).into();
    let (many, one) = Case { greedy: temporary, modest, ..qrm() }.shares();
    assert!(is_half(many) && is_half(one), "{many} and {one}");
}

/// Without nodes ten flows have a tenth each. A packet takes 10 ms, less while not all have begun, in the first 9 ms:
/// (9999 + 105) / 10 = 1010, and at most nine more.
#[test]
fn without_nodes_who_opens_more_gets_more() {
    let (many, one) = Case { side: Side::None, ..qrm() }.shares();
    assert!((1008..=1020).contains(&one), "{one}");
    assert!((9 * 1008..=9 * 1020).contains(&many), "{many}");
}

/// PINK only edits ACKs, of which there are none. Behind it accounts are three segments deeper: 4500 bytes, 7 ms more.
#[test]
fn qrm_behind_pink_knows_the_nodes() {
    let (many, one) = Case { aqm: "pink", settings: &["queue=qrm"], ..qrm() }.shares();
    for packets in [many, one] {
        assert!((5053..=5057).contains(&packets), "(9999 + 105 + 7.2) / 2 = 5055, not {packets}");
    }
}

/// Disciplines that ignore nodes do the same with and without them.
#[test]
fn other_disciplines_do_not_care() {
    for aqm in ["droptail", "codel", "red", "fq-codel", "pink", "pie"] {
        let of = |side| Case { aqm, side, ..qrm() }.shares();
        let shares = of(Side::None);
        assert!(shares.0 > 0 && of(Side::Left) == shares && of(Side::Right) == shares, "{aqm}");
    }
}
