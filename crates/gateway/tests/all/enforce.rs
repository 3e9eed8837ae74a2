//! Budgets of sessions, told through the gateway's code to the library's QRM, have the same effect as told to QRM by hand.

use penstock_budgets::gateway::Grant;
use penstock_conntrack::{Config as Table, Named};
use penstock_core::fact::Fact;
use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::{FlowId, NodeId, Packet, TcpView};
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::rng::Streams;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Instant, Limit, Rate, Span};
use penstock_core::wire::RealPacket;
use penstock_gateway::enforce::Enforcer;
use penstock_shaper::bottleneck::{Bottleneck, Config};
use penstock_shaper::classify::Classifier;
use penstock_shaper::direction::Direction;
use penstock_shaper::keys::Keys;
use penstock_shaper::nodes::Side;
use penstock_shaper::path::Path;
use penstock_shaper::pool::Pool;
use std::collections::BTreeMap;
use std::net::IpAddr;

const UPLOAD: Rate = Rate::from_bps(8_000_000);
/// The addresses of the script; the last two are the subscriber "house", and so one node.
const HOSTS: [&str; 6] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.9.1", "2001:db8::7"];
/// The node of each address, as told by hand.
const NODES: [u32; 6] = [0, 1, 2, 3, 4, 4];

/// What happens.
#[derive(Debug, Clone, Copy)]
enum Do {
    /// The budgets of sessions are these from now on: address, kbit/s.
    Budgets(&'static [(usize, u64)]),
    /// The upload has another rate: Mbit/s.
    Upload(u64),
    /// An address opens a connection, which takes 30 ms beyond the gateway and 10 ms before it.
    Handshake(usize),
}

/// Each at its time in ms. Host 3 never has a session; host 2 has one before it sends anything.
const SCRIPT: [(u64, Do); 9] = [
    (5, Do::Budgets(&[(0, 2000), (2, 500)])),
    (10, Do::Handshake(0)),
    (100, Do::Budgets(&[(0, 1000), (1, 3000), (2, 500)])),
    (300, Do::Handshake(1)),
    (400, Do::Budgets(&[(0, 1000), (1, 1000), (2, 500), (4, 1500), (5, 500)])),
    (600, Do::Budgets(&[(1, 1000), (2, 1000), (5, 500)])),
    (700, Do::Upload(3)),
    (800, Do::Budgets(&[])),
    (900, Do::Budgets(&[(0, 2000)])),
];

/// When an address sends a datagram of 1000 bytes: every so many ms, from then on.
const SENDS: [(u64, u64); 6] = [(2, 0), (2, 0), (3, 150), (1, 50), (5, 0), (7, 3)];
const END: u64 = 1100;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// A packet between an address and a server; `segment` are the flags, sequence number and acknowledgment of TCP.
fn packet(host: usize, up: bool, segment: Option<(u8, u32, u32)>) -> Vec<u8> {
    let own: IpAddr = HOSTS[host].parse().unwrap();
    let size: u16 = if segment.is_none() {
        1000
    } else if own.is_ipv4() {
        40
    } else {
        60
    };
    let mut bytes = vec![0; size.into()];
    let ends = |own: &[u8], far: &[u8]| if up { [own, far].concat() } else { [far, own].concat() };
    let protocol = if segment.is_some() { 6 } else { 17 };
    let at = match own {
        IpAddr::V4(own) => {
            bytes[0] = 0x45;
            bytes[2..4].copy_from_slice(&size.to_be_bytes());
            bytes[9] = protocol;
            bytes[12..20].copy_from_slice(&ends(&own.octets(), &[192, 0, 2, 9]));
            20
        }
        IpAddr::V6(own) => {
            bytes[0] = 0x60;
            bytes[4..6].copy_from_slice(&(size - 40).to_be_bytes());
            bytes[6] = protocol;
            bytes[8..40].copy_from_slice(&ends(&own.octets(), &[9; 16]));
            40
        }
    };
    let ports = if up { [7, 80] } else { [80, 7u16] };
    (0..2).for_each(|end| bytes[at + 2 * end..at + 2 * end + 2].copy_from_slice(&ports[end].to_be_bytes()));
    match segment {
        Some((flags, seq, ack)) => {
            bytes[at + 4..at + 8].copy_from_slice(&seq.to_be_bytes());
            bytes[at + 8..at + 12].copy_from_slice(&ack.to_be_bytes());
            (bytes[at + 12], bytes[at + 13]) = (0x50, flags);
        }
        None => bytes[at + 4..at + 6].copy_from_slice(&(size - at as u16).to_be_bytes()),
    }
    bytes
}

/// What passes: address, ascending or not, content.
type Passing = (usize, bool, Vec<u8>);

/// The packets of a ms, in order.
fn packets(ms: u64) -> Vec<Passing> {
    let mut passing = Vec::new();
    for (begin, event) in SCRIPT {
        let Do::Handshake(host) = event else { continue };
        let one = |up, flags, seq, ack| (host, up, packet(host, up, Some((flags, seq, ack))));
        match ms.checked_sub(begin) {
            Some(0) => passing.push(one(true, 0x02, 99, 0)),
            Some(30) => passing.push(one(false, 0x12, 499, 100)),
            Some(40) => passing.push(one(true, 0x10, 100, 500)),
            _ => {}
        }
    }
    let sends = |host: &usize| ms >= SENDS[*host].1 && (ms - SENDS[*host].1).is_multiple_of(SENDS[*host].0);
    passing.extend((0..HOSTS.len()).filter(sends).map(|host| (host, true, packet(host, true, None))));
    passing
}

#[derive(Default)]
struct Refused(u64);

impl PacketObserver<RealPacket> for Refused {
    fn dropped(&mut self, _: RealPacket, reason: DropReason, _: Instant) {
        assert_eq!(reason, DropReason::Early);
        self.0 += 1;
    }
    fn marked(&mut self, _: &RealPacket, _: Instant) {}
}

fn config(discipline: &str, settings: &[&str]) -> Config {
    let settings: Vec<String> = settings.iter().map(|one| (*one).to_owned()).collect();
    let aqm = config_from_settings(discipline, &settings).unwrap();
    Config { aqm, rate: UPLOAD, layer: LinkLayer::default(), delay: Span::ZERO, limit: Limit::Packets(10_000) }
}

/// The fates of the script's packets: true for one that passes.
type Fates = Vec<(u64, usize, bool)>;

/// QRM alone, which is told owners, budgets and rest by hand.
fn by_hand() -> Fates {
    let mut fates = Vec::new();
    let mut link = Bottleneck::new(&config("qrm", &[]), Streams::new(1).get("x"));
    for (flow, node) in (0..).zip(NODES) {
        for flow in [FlowId(flow), FlowId(flow + 6)] {
            link.server.on_fact(&Fact::Owner { flow, node: NodeId(node) }, at(0));
        }
    }
    let (mut upload, mut before) = (8_000_000u64, BTreeMap::new());
    for ms in 0..END {
        while link.poll(at(ms), &mut Refused::default()).is_some() {}
        for (_, event) in SCRIPT.iter().filter(|(when, _)| *when == ms) {
            match event {
                Do::Budgets(budgets) => {
                    let mut now = BTreeMap::new();
                    budgets.iter().for_each(|(host, kbit)| *now.entry(NODES[*host]).or_insert(0) += kbit * 1000);
                    for node in 0..5 {
                        if before.get(&node) != now.get(&node) {
                            let budget = now.get(&node).copied().map(Rate::from_bps);
                            link.server.on_fact(&Fact::Budget { node: NodeId(node), budget }, at(ms));
                        }
                    }
                    before = now;
                }
                Do::Upload(mbit) => {
                    upload = mbit * 1_000_000;
                    link.set_rate(Rate::from_bps(upload), at(ms));
                }
                Do::Handshake(_) => continue,
            }
            let rest = upload - before.values().sum::<u64>();
            link.server.on_fact(&Fact::Rest(Rate::from_bps(rest)), at(ms));
        }
        for (host, up, bytes) in packets(ms) {
            // Segments are of another flow than datagrams.
            let segment = bytes.len() < 1000;
            let mut packet = RealPacket::new(bytes, FlowId(host as u32 + if segment { 6 } else { 0 }));
            if !up {
                link.inbound(packet.tcp().unwrap(), at(ms));
                continue;
            }
            let mut refused = Refused::default();
            link.arrive(packet, at(ms), &mut refused);
            fates.push((ms, host, refused.0 == 0));
            while link.poll(at(ms), &mut Refused::default()).is_some() {}
        }
    }
    fates
}

/// Without enforcement nothing is told and nothing refused, but who takes more than its budget is seen all the same.
#[test]
fn who_is_only_counted_is_not_held() {
    let mut gateway = Gateway::new(Table::default(), &config("qrm", &[]));
    gateway.enforcer = Enforcer::new(false, UPLOAD, gateway.classifier.table.subscribers.numbers());
    gateway.budgets(&[(0, 80), (1, 400)], 0);
    gateway.enforcer.tick(at(1000));
    // A packet of 1000 bytes in a second is 8 kbit/s.
    let second = |gateway: &mut Gateway, from: u64, counts: [u64; 2]| {
        for (host, count) in counts.into_iter().enumerate() {
            (0..count).for_each(|n| assert!(gateway.pass(true, &packet(host, true, None), from + n)));
        }
        gateway.enforcer.tick(at(from + 1000));
        gateway.enforcer.report(&gateway.classifier)
    };
    let kept = second(&mut gateway, 1000, [8, 20]);
    assert_eq!((kept.over, kept.enforces), (0, false));
    let told = second(&mut gateway, 2000, [11, 20]);
    assert_eq!((told.over, told.nodes[0].used.over, told.nodes[1].used.over), (1, true, false));
    let used = told.nodes[0].used;
    assert_eq!([used.offered_bps, used.used_bps, told.used_bps], [88_000, 88_000, 248_000]);
    assert_eq!(told.sessions.policed.packets, 0);
}

/// A gateway without sockets: classifier, path and enforcer.
struct Gateway {
    classifier: Classifier,
    path: Path<RealPacket>,
    enforcer: Enforcer,
    pool: Pool,
}

impl Gateway {
    fn new(table: Table, upload: &Config) -> Self {
        let classifier = Classifier::new(table, Keys::from_seed(1), Side::Right);
        // Downloads take no time.
        let down = Config { rate: Rate::from_bps(1_000_000_000_000), ..config("droptail", &[]) };
        let path = Path::new(&down, upload, Streams::new(1));
        Self {
            enforcer: Enforcer::new(true, UPLOAD, classifier.table.subscribers.numbers()),
            classifier,
            path,
            pool: Pool::new(1500),
        }
    }

    fn budgets(&mut self, budgets: &[(usize, u64)], ms: u64) {
        let grant = |(host, kbit): &(usize, u64)| Grant {
            node: 77 + *host as u32,
            address: HOSTS[*host].parse().unwrap(),
            budget: Rate::from_bps(kbit * 1000),
        };
        let link = self.path.direction_mut(Direction::Reverse);
        let grants = budgets.iter().map(grant).collect();
        self.enforcer.set_budgets(grants, &self.classifier, |fact| link.server.on_fact(fact, at(ms)));
    }

    fn upload(&mut self, rate: Rate, ms: u64) {
        let link = self.path.direction_mut(Direction::Reverse);
        link.set_rate(rate, at(ms));
        self.enforcer.set_upload(rate, |fact| link.server.on_fact(fact, at(ms)));
    }

    fn settle(&mut self, ms: u64) {
        while self.path.poll(at(ms), &mut Refused::default()).is_some() {}
    }

    /// Lets a segment pass that goes down; returns the window with which it goes on.
    fn down(&mut self, bytes: &[u8], ms: u64) -> u16 {
        self.settle(ms);
        let mut buffer = self.pool.take();
        buffer[..bytes.len()].copy_from_slice(bytes);
        let (packet, facts) = self.classifier.packet(Direction::Forward, buffer, bytes.len(), at(ms), &mut self.pool);
        self.path.tell(&facts, at(ms));
        self.path.arrive(Direction::Forward, packet, at(ms), &mut Refused::default());
        let (_, delivery) = self.path.poll(at(ms + 1), &mut Refused::default()).unwrap();
        TcpView::window(&delivery.packet)
    }

    /// Returns whether a packet passes.
    fn pass(&mut self, up: bool, bytes: &[u8], ms: u64) -> bool {
        self.settle(ms);
        let direction = if up { Direction::Reverse } else { Direction::Forward };
        let mut buffer = self.pool.take();
        buffer[..bytes.len()].copy_from_slice(bytes);
        let (packet, facts) = self.classifier.packet(direction, buffer, bytes.len(), at(ms), &mut self.pool);
        self.path.tell(&facts, at(ms));
        let (size, mut refused) = (packet.size(), Refused::default());
        let node = up.then(|| {
            let link = self.path.direction_mut(Direction::Reverse);
            self.enforcer.arrives(&packet, &facts, &self.classifier, |fact| link.server.on_fact(fact, at(ms)))
        });
        self.path.arrive(direction, packet, at(ms), &mut refused);
        if let (Some(node), 1) = (node, refused.0) {
            self.enforcer.refused(node, size);
        }
        self.settle(ms);
        refused.0 == 0
    }
}

fn house() -> Vec<Named> {
    let prefixes = ["10.0.9.0/24", "2001:db8::/56"].map(|prefix| prefix.parse().unwrap()).into();
    vec![Named { name: "house".into(), prefixes }]
}

fn by_the_gateway() -> (Fates, Gateway) {
    let mut fates = Vec::new();
    let mut gateway = Gateway::new(Table { subscribers: house(), ..Table::default() }, &config("qrm", &[]));
    for ms in 0..END {
        gateway.settle(ms);
        for (_, event) in SCRIPT.iter().filter(|(when, _)| *when == ms) {
            match event {
                Do::Budgets(budgets) => gateway.budgets(budgets, ms),
                Do::Upload(mbit) => gateway.upload(Rate::from_bps(mbit * 1_000_000), ms),
                Do::Handshake(_) => {}
            }
        }
        for (host, up, bytes) in packets(ms) {
            let passes = gateway.pass(up, &bytes, ms);
            if up {
                fates.push((ms, host, passes));
            }
        }
    }
    (fates, gateway)
}

#[test]
fn budgets_of_sessions_have_the_fates_that_qrm_has_by_itself() {
    let expected = by_hand();
    let (fates, gateway) = by_the_gateway();
    let count = |host: usize, passes: bool| expected.iter().filter(|fate| fate.1 == host && fate.2 == passes).count();
    for host in 0..6 {
        // The script is worth something only if each host has both fates.
        assert!(
            count(host, true) > 20 && count(host, false) > 20,
            "{host}: {} {}",
            count(host, true),
            count(host, false)
        );
    }
    assert_eq!(expected.len(), fates.len());
    for (by_hand, by_gateway) in expected.iter().zip(&fates) {
        assert_eq!(by_hand, by_gateway);
    }
    // Host 0 is the only one with a session at the end.
    let report = gateway.enforcer.report(&gateway.classifier);
    let [held] = &report.nodes[..] else { panic!("{report:?}") };
    assert_eq!((held.node, held.used.budget_bps, report.rest_bps), (77, 2_000_000, 1_000_000));
    assert_eq!(held.count.policed.packets, count(0, false) as u64);
    assert_eq!(held.count.arrived.packets, (count(0, true) + count(0, false)) as u64);
    let both = [report.sessions, report.strangers];
    assert_eq!(both.map(|one| one.arrived.packets).iter().sum::<u64>(), fates.len() as u64);
    // Host 3 never had a session, and the others had one while they were refused now and then.
    let refused = (0..6).map(|host| count(host, false) as u64).sum::<u64>();
    assert_eq!(both.map(|one| one.policed.packets).iter().sum::<u64>(), refused);
    assert!(both[1].policed.packets >= count(3, false) as u64 && both[0].policed.packets > 100, "{both:?}");
}

/// PINK in front of QRM holds a flow to its node's budget: 2 Mbit/s, c = 0.95, 30 + 10 ms and what a segment of 536 bytes
/// takes on the link are 9,627 bytes. Of the link, which the flow has for itself, it would get 38,509.
#[test]
fn pink_in_front_gets_the_budgets() {
    for (budget, expected) in [(Some(2000), 9_627), (None, 38_509)] {
        let pink = config("pink", &["queue=qrm", "c=0.95", "window=literal", "reallocation=paper", "shrink=immediate"]);
        let mut gateway = Gateway::new(Table::default(), &pink);
        gateway.budgets(&budget.map(|kbit| vec![(0, kbit)]).unwrap_or_default(), 0);
        let segment = |up, flags, seq, ack| packet(0, up, Some((flags, seq, ack)));
        assert!(gateway.pass(true, &segment(true, 0x02, 99, 0), 1));
        gateway.pass(false, &segment(false, 0x12, 499, 100), 31);
        let mut data = segment(true, 0x10, 100, 500);
        assert!(gateway.pass(true, &data, 41));
        // A byte of data, its acknowledgment, and once more, as only what is acknowledged counts.
        let mut window = 0;
        for round in 0..4u32 {
            let (ms, seq) = (41 + 40 * u64::from(round), 100 + round);
            data = segment(true, 0x18, seq, 500);
            data[3] = 41;
            data.push(0);
            assert!(gateway.pass(true, &data, ms));
            let mut ack = segment(false, 0x10, 500, seq + 1);
            ack[34..36].copy_from_slice(&u16::MAX.to_be_bytes());
            window = gateway.down(&ack, ms + 30);
        }
        assert_eq!(window, expected);
    }
}

/// Forged hosts take the number of a silent host; when it comes back it has its budget again.
#[test]
fn a_host_that_lost_its_number_has_its_budget_when_it_comes_back() {
    let mut gateway = Gateway::new(Table { hosts: 8, ..Table::default() }, &config("qrm", &["tolerance=0"]));
    gateway.budgets(&[(0, 7000)], 0);
    let own = packet(0, true, None);
    assert!(gateway.pass(true, &own, 1));
    let mut forged = packet(1, true, None);
    for ms in 2..1000u64 {
        forged[12..16].copy_from_slice(&(0x0b00_0000 + ms as u32).to_be_bytes());
        gateway.pass(true, &forged, ms);
    }
    assert_eq!(gateway.enforcer.report(&gateway.classifier).nodes[0].count.arrived.packets, 0, "its number is gone");
    // 7 Mbit/s for 100 ms are 87 packets of 1000 bytes at once; strangers would have 12.
    let burst = (0..200).filter(|_| gateway.pass(true, &own, 1000)).count();
    assert_eq!(burst, 87);
    gateway.budgets(&[], 1001);
    // The bucket is full, and drains at what strangers share: 8 Mbit/s among it and those of the last ten seconds.
    assert!(!gateway.pass(true, &own, 1002));
}
