//! The programs that hold hosts to budgets give the verdicts of the library's QRM.
//!
//! Test runs need BPF; where that is not permitted, or the programs were not built, the tests say so and are skipped.

use penstock_core::ack::AckPath as _;
use penstock_core::ack::qrm::{Config, Qrm};
use penstock_core::aqm::Aqm as _;
use penstock_core::fact::Fact;
use penstock_core::packet::{FlowId, NodeId, Packet as _};
use penstock_core::qdisc::{Backlog, Verdict};
use penstock_core::rng::{Rng, Streams};
use penstock_core::units::{Instant, Rate};
use penstock_core::wire::RealPacket;
use penstock_linux::bpf::police::{Key, Police, Rules};
use penstock_linux::testing::bpf;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

const HOSTS: [&str; 4] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8:1:2::7"];
const REST: u64 = 300_000;
const MS: u64 = 1_000_000;
const SYN: u8 = 2;
const ACK: u8 = 16;

fn rules(config: &Config) -> Rules {
    Rules {
        patience: Duration::from_secs(1),
        enforces: true,
        wan: 0,
        each_bps: REST,
        rtt: Duration::from_nanos(config.rtt.as_nanos()),
        max_lan: Duration::from_nanos(config.max_lan.as_nanos()),
        tolerance_permille: (config.tolerance * 1000.0) as u64,
        syn_rate: config.syn_rate.into(),
        ethernet: true,
        clock: 1_000_000 * MS,
    }
}

fn police(rules: Rules) -> Option<Police> {
    bpf()?;
    Some(Police::load(rules, 16).unwrap())
}

/// A packet of a host, or to it, with an Ethernet header; `flags` are those of TCP, and without them it is a datagram.
fn frame(host: usize, up: bool, size: u16, flags: Option<u8>) -> Vec<u8> {
    let own: IpAddr = HOSTS[host].parse().unwrap();
    let mut ip = vec![0; size.into()];
    let ends = |own: &[u8], far: &[u8]| if up { [own, far].concat() } else { [far, own].concat() };
    let protocol = if flags.is_some() { 6 } else { 17 };
    let (at, kind) = match own {
        IpAddr::V4(own) => {
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&size.to_be_bytes());
            ip[9] = protocol;
            ip[12..20].copy_from_slice(&ends(&own.octets(), &[192, 0, 2, 9]));
            (20, [8, 0])
        }
        IpAddr::V6(own) => {
            ip[0] = 0x60;
            ip[4..6].copy_from_slice(&(size - 40).to_be_bytes());
            ip[6] = protocol;
            ip[8..40].copy_from_slice(&ends(&own.octets(), &[9; 16]));
            (40, [0x86, 0xdd])
        }
    };
    let ports = if up { [7u16, 80] } else { [80, 7] };
    (0..2).for_each(|end| ip[at + 2 * end..at + 2 * end + 2].copy_from_slice(&ports[end].to_be_bytes()));
    if let Some(flags) = flags {
        let (seq, ack): (u32, u32) = match (up, flags & SYN > 0) {
            (true, true) => (99, 0),
            (false, _) => (499, 100),
            (true, false) => (100, 500),
        };
        ip[at + 4..at + 8].copy_from_slice(&seq.to_be_bytes());
        ip[at + 8..at + 12].copy_from_slice(&ack.to_be_bytes());
        (ip[at + 12], ip[at + 13]) = (0x50, flags);
    }
    [vec![2; 12], kind.to_vec(), ip].concat()
}

/// The programs and QRM of the library, side by side.
struct Both {
    police: Police,
    qrm: Qrm,
    now: u64,
    rng: Rng,
    passed: [[u64; 2]; 4],
    /// Hosts without a budget that have sent; none is idle for long enough to be left out.
    strangers: BTreeSet<usize>,
    listed: BTreeSet<usize>,
}

impl Both {
    fn new() -> Option<Self> {
        let config = Config::default();
        let mut qrm = Qrm::new(&config, Rate::from_bps(8_000_000));
        let at = Instant::from_nanos(rules(&config).clock);
        for host in 0..HOSTS.len() as u32 {
            qrm.on_fact(&Fact::Owner { flow: FlowId(host), node: NodeId(host) }, at);
        }
        qrm.on_fact(&Fact::Rest(Rate::from_bps(REST)), at);
        let rng = Streams::new(1).get("police");
        let mut police = police(rules(&config))?;
        police.beat().unwrap();
        Some(Self {
            police,
            qrm,
            now: rules(&config).clock,
            rng,
            passed: [[0; 2]; 4],
            strangers: BTreeSet::new(),
            listed: BTreeSet::new(),
        })
    }

    fn budgets(&mut self, kbit: &[(usize, u64)]) {
        let wanted = kbit.iter().map(|(host, kbit)| (Key::from(HOSTS[*host].parse::<IpAddr>().unwrap()), kbit * 1000));
        let before = std::mem::replace(&mut self.listed, kbit.iter().map(|(host, _)| *host).collect());
        self.strangers.retain(|host| !self.listed.contains(host));
        self.police.set_budgets(wanted.collect::<BTreeMap<_, _>>()).unwrap();
        let gone = before.difference(&self.listed).map(|host| (*host, None));
        let told = kbit.iter().map(|(host, kbit)| (*host, Some(Rate::from_bps(kbit * 1000))));
        for (host, budget) in gone.chain(told) {
            self.qrm.on_fact(&Fact::Budget { node: NodeId(host as u32), budget }, Instant::from_nanos(self.now));
        }
    }

    fn wait(&mut self, nanos: u64) {
        self.now += nanos;
        self.police.tell(Rules { clock: self.now, ..*self.police.told() }).unwrap();
    }

    /// Shows a packet to both, and returns whether it passes.
    fn pass(&mut self, host: usize, up: bool, size: u16, flags: Option<u8>) -> bool {
        let frame = frame(host, up, size, flags);
        if up && flags != Some(SYN) && !self.listed.contains(&host) {
            self.strangers.insert(host);
        }
        // The daemon tells this once a second.
        let each_bps = REST / self.strangers.len().max(1) as u64;
        self.police.tell(Rules { each_bps, ..*self.police.told() }).unwrap();
        let now = Instant::from_nanos(self.now);
        let mut packet = RealPacket::new(frame[14..].to_vec(), FlowId(host as u32));
        let there = self.police.test(up, &frame).unwrap();
        if !up {
            self.qrm.inbound(packet.tcp().unwrap(), now);
            assert!(there, "what comes back passes");
            return true;
        }
        if let Some(segment) = packet.tcp() {
            self.qrm.outbound(segment, now);
        }
        let here = self.qrm.on_arrival(&packet, Backlog::default(), now, &mut self.rng) == Verdict::Pass;
        assert_eq!(there, here, "host {host}, {size} B at {}", self.now);
        self.passed[host][usize::from(here)] += 1;
        here
    }

    fn handshake(&mut self, host: usize, wan: u64, lan: u64) {
        self.pass(host, true, 60, Some(SYN));
        self.wait(wan * MS);
        self.pass(host, false, 60, Some(SYN | ACK));
        self.wait(lan * MS);
        self.pass(host, true, 60, Some(ACK));
    }
}

/// Three hosts with budgets, one of IPv6, and one without: 6000 packets of random sizes at random times, with measured round
/// trip times and without, while budgets change.
#[test]
fn the_programs_and_the_library_give_the_same_verdicts() {
    let Some(mut both) = Both::new() else { return };
    both.budgets(&[(0, 2000), (1, 500), (3, 1000)]);
    both.handshake(0, 30, 10);
    both.handshake(3, 5, 700);
    let mut dice = Streams::new(7).get("packets");
    for step in 0..6000 {
        match step {
            1500 => both.budgets(&[(0, 500), (1, 1500)]),
            3000 => both.handshake(1, 20, 20),
            4000 => {
                // QRM empties the account of a host that gets a budget; the programs let it drain.
                both.wait(1500 * MS);
                both.budgets(&[(1, 1500), (3, 200)]);
            }
            5000 => assert_eq!((0..150).filter(|_| both.pass(2, true, 60, Some(SYN))).count(), 100),
            _ => {}
        }
        both.wait(dice.below(3_000_000));
        let size = 60 + dice.below(1440) as u16;
        let tcp = dice.below(2) == 0;
        both.pass(dice.below(4) as usize, true, size, tcp.then_some(ACK));
    }
    for (host, [refused, passed]) in both.passed.into_iter().enumerate() {
        assert!(refused > 20 && passed > 100, "host {host}: {passed} passed, {refused} refused");
        let known = both.police.host(Key::from(HOSTS[host].parse::<IpAddr>().unwrap())).unwrap().unwrap();
        assert_eq!((known.arrived[0], known.policed[0]), (refused + passed, refused), "host {host}");
    }
    let of = |host: usize| both.police.host(Key::from(HOSTS[host].parse::<IpAddr>().unwrap())).unwrap().unwrap().rtt;
    let ms = |ms| Some(Duration::from_millis(ms));
    // The half between host and gateway counts for half a second at most.
    assert_eq!([0, 1, 2, 3].map(of), [ms(40), ms(40), None, ms(505)]);
    let totals = both.police.totals().unwrap();
    let all = |of: [[u64; 2]; 2]| of[0][0] + of[1][0];
    let sums = both.passed.iter().fold((0, 0), |(all, refused), one| (all + one[0] + one[1], refused + one[0]));
    assert_eq!((all(totals.arrived), all(totals.policed), totals.stale), (sums.0, sums.1, 0));
}

/// What the kernel has is read back, and told again if it is not what was told.
#[test]
fn budgets_are_read_back() {
    let Some(mut police) = police(rules(&Config::default())) else { return };
    let key = |host: usize| Key::from(HOSTS[host].parse::<IpAddr>().unwrap());
    police.set_budgets(BTreeMap::from([(key(0), 1000), (key(3), 2000)])).unwrap();
    assert!(police.check_budgets().unwrap());
    police.meddle(key(0), 9_000_000).unwrap();
    police.meddle(key(1), 5).unwrap();
    assert!(!police.check_budgets().unwrap());
    assert!(police.check_budgets().unwrap(), "they were told again");
    police.set_budgets(BTreeMap::new()).unwrap();
    assert!(police.check_budgets().unwrap());
    let full: BTreeMap<Key, u64> = (0..17u8).map(|n| (Key::from(IpAddr::from([10, 1, 1, n])), 1)).collect();
    assert!(police.set_budgets(full).is_err(), "there is room for 16");
}

/// They share the rest, so each that still sends must be counted, and nobody else.
#[test]
fn hosts_without_a_budget_that_have_just_sent_are_counted() {
    let Some(mut police) = police(Rules { clock: 0, ..rules(&Config::default()) }) else { return };
    let strangers = |police: &Police, idle| police.strangers(idle).unwrap();
    let [hour, none] = [Duration::from_secs(3600), Duration::ZERO];
    assert_eq!(strangers(&police, hour), 0);
    police.set_budgets(BTreeMap::from([(Key::from(HOSTS[1].parse::<IpAddr>().unwrap()), 1000)])).unwrap();
    police.beat().unwrap();
    for host in [0, 1, 3] {
        police.test(true, &frame(host, true, 100, None)).unwrap();
    }
    assert_eq!((strangers(&police, hour), strangers(&police, none)), (2, 0));
}

/// Without a sign of life everything passes, and without `enforces` as well.
#[test]
fn nothing_is_dropped_without_a_sign_of_life_or_an_order() {
    let Some(mut police) = police(rules(&Config::default())) else { return };
    let flood =
        |police: &mut Police| (0..200).filter(|_| !police.test(true, &frame(0, true, 1500, None)).unwrap()).count();
    assert_eq!(flood(&mut police), 0, "before the first");
    assert_eq!(police.totals().unwrap().stale, 200);
    police.beat().unwrap();
    assert!(flood(&mut police) > 100);
    let before = police.totals().unwrap();
    police.tell(Rules { enforces: false, ..*police.told() }).unwrap();
    assert_eq!(flood(&mut police), 0);
    let after = police.totals().unwrap();
    assert_eq!((after.arrived[0][0] - before.arrived[0][0], after.policed), (200, before.policed));
}

/// Eight segments of 100 B that were merged are eight packets of 140 B. A budget of 0.1 Mbit/s and 100 ms have room for 1312
/// B, so another such packet is dropped whole; one that is larger than the account passes if that is empty, and then nothing
/// does until it has drained to that depth. A test run takes no packet that is larger than a page.
#[test]
fn a_merged_packet_counts_as_what_it_becomes_and_passes_whole_or_not() {
    for (host, header) in [(0, 40), (3, 60)] {
        let Some(mut police) = police(rules(&Config::default())) else { return };
        let key = Key::from(HOSTS[host].parse::<IpAddr>().unwrap());
        police.set_budgets(BTreeMap::from([(key, 100_000)])).unwrap();
        police.beat().unwrap();
        let begin = police.told().clock;
        let merged = |segments: u16| frame(host, true, header + segments * 100, Some(ACK));
        let wire = |segments: u64| segments * (100 + u64::from(header));
        let drains = |bytes: u64| bytes * 80_000;
        let mut pass = |at: u64, packet: &[u8]| {
            police.tell(Rules { clock: begin + at, ..*police.told() }).unwrap();
            police.test_merged(true, packet, 100).unwrap()
        };
        assert!(pass(0, &merged(8)));
        assert!(!pass(0, &merged(8)), "{} B are more than 1312", 2 * wire(8));
        let empty = drains(wire(8));
        assert!(!pass(empty - 1000, &merged(30)), "not before the account is empty");
        assert!(pass(empty, &merged(30)));
        let room = empty + drains(wire(30) + wire(1)) - 105 * MS;
        assert!(!pass(room - 1000, &merged(1)));
        assert!(pass(room, &merged(1)));
        let known = police.host(key).unwrap().unwrap();
        assert_eq!(known.arrived, [8 + 8 + 30 + 30 + 1 + 1, 2 * wire(8) + 2 * wire(30) + 2 * wire(1)]);
        assert_eq!(known.policed, [8 + 30 + 1, wire(8) + wire(30) + wire(1)]);
    }
}
