//! The programs that hold hosts to budgets: `bpf/police.bpf.c`.

use crate::bpf::datapath::{Hook, clock};
use crate::bpf::error::Error;
use crate::bpf::object::Object;
use aya::TestRunOptions;
use aya::maps::{Array, HashMap, MapData};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/police.bpf.o"));

/// Number of words of `struct told`, of `struct host` and of `struct sums`.
const TOLD: usize = 11;
const HOST: usize = 11;
const SUMS: usize = 9;

/// What the programs are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Without a sign of life for so long, everything passes.
    pub patience: Duration,
    /// False if hosts are only counted.
    pub enforces: bool,
    /// Index of the interface to the link: only what leaves there counts. 0 stands for all, in tests.
    pub wan: u32,
    /// What each host without a budget has, in bits per second.
    pub each_bps: u64,
    /// The round trip time of hosts of which no handshake was seen.
    pub rtt: Duration,
    /// For how long the half between host and gateway counts at most.
    pub max_lan: Duration,
    /// By which part an account is deeper than a round trip, in thousandths.
    pub tolerance_permille: u64,
    /// SYNs per second and host.
    pub syn_rate: u64,
    /// True if packets of the interface to the LAN have an Ethernet header.
    pub ethernet: bool,
    /// The time in nanoseconds, in tests; 0 stands for that of the kernel.
    pub clock: u64,
}

/// The address by which a host is known: that of IPv4, or the /64 of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key([u8; 16]);

impl From<IpAddr> for Key {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(own) => Self(own.to_ipv6_mapped().octets()),
            IpAddr::V6(own) => {
                let all = own.octets();
                Self(std::array::from_fn(|at| if at < 8 { all[at] } else { 0 }))
            }
        }
    }
}

/// What the programs know of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Host {
    /// When its last packet came that was no SYN, in nanoseconds of the monotonic clock.
    pub seen: u64,
    /// Packets and bytes that came.
    pub arrived: [u64; 2],
    /// Packets and bytes that were dropped.
    pub policed: [u64; 2],
    /// Its smallest round trip time, if one was measured.
    pub rtt: Option<Duration>,
}

impl Host {
    fn read(words: &[u64; HOST]) -> Self {
        let rtt = (words[7] > 0).then(|| Duration::from_nanos(words[7]));
        Self { seen: words[2], arrived: [words[3], words[4]], policed: [words[5], words[6]], rtt }
    }
}

/// Packets and bytes since the start, of hosts without and with a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// What came.
    pub arrived: [[u64; 2]; 2],
    /// What was dropped.
    pub policed: [[u64; 2]; 2],
    /// Packets that passed because there was no sign of life.
    pub stale: u64,
}

/// The programs in the kernel. When this is dropped, or the process dies, everything passes.
pub struct Police {
    object: Object,
    rules: Array<MapData, [u64; TOLD]>,
    budgets: HashMap<MapData, [u8; 16], u64>,
    hosts: HashMap<MapData, [u8; 16], [u64; HOST]>,
    totals: Array<MapData, [u64; SUMS]>,
    told: Rules,
    wanted: BTreeMap<Key, u64>,
}

impl Police {
    /// Loads the programs with room for the budgets of so many hosts. Nothing is dropped before [`Police::beat`]. Fails if
    /// this build has none, or the kernel refuses them.
    pub fn load(rules: Rules, most: u32) -> Result<Self, Error> {
        let mut object = Object::load(OBJECT, &[("budgets", most.max(1))], &["hold", "answer"])?;
        let (words, budgets) = (object.map("rules")?, object.map("budgets")?);
        let (hosts, totals) = (object.map("hosts")?, object.map("totals")?);
        let mut police = Self { object, rules: words, budgets, hosts, totals, told: rules, wanted: BTreeMap::new() };
        police.write(0)?;
        Ok(police)
    }

    /// Attaches the programs to the interface of the LAN, and to no other. Fails where there is no TCX.
    pub fn attach(&mut self, interface: &str) -> Result<(), Error> {
        self.object.detach(|_| true);
        self.object.attach("hold", interface, Hook::Ingress)?;
        self.object.attach("answer", interface, Hook::Egress)
    }

    /// What the programs were told last.
    pub fn told(&self) -> &Rules {
        &self.told
    }

    /// Tells the programs other rules, and gives a sign of life.
    pub fn tell(&mut self, rules: Rules) -> Result<(), Error> {
        self.told = rules;
        self.beat()
    }

    /// Gives a sign of life.
    pub fn beat(&mut self) -> Result<(), Error> {
        self.write(if self.told.clock > 0 { self.told.clock } else { clock() })
    }

    fn write(&mut self, heartbeat: u64) -> Result<(), Error> {
        let Rules { patience, enforces, wan, each_bps, rtt, max_lan, tolerance_permille, syn_rate, ethernet, clock } =
            self.told;
        let nanos = |time: Duration| time.as_nanos() as u64;
        let words = [
            heartbeat,
            nanos(patience),
            enforces.into(),
            wan.into(),
            each_bps.max(1),
            nanos(rtt),
            nanos(max_lan),
            tolerance_permille,
            1_000_000_000 / syn_rate.max(1),
            ethernet.into(),
            clock,
        ];
        self.rules.set(0, words, 0).map_err(Error::refused("a value"))
    }

    /// Tells the budgets of hosts in bits per second, in place of those before. Fails if there are more than there is room
    /// for.
    pub fn set_budgets(&mut self, wanted: BTreeMap<Key, u64>) -> Result<(), Error> {
        for gone in self.wanted.keys().filter(|key| !wanted.contains_key(key)) {
            self.budgets.remove(&gone.0).map_err(Error::refused("a budget"))?;
        }
        for (key, budget) in wanted.iter().filter(|(key, budget)| self.wanted.get(key) != Some(budget)) {
            self.budgets.insert(key.0, budget, 0).map_err(Error::refused("a budget"))?;
        }
        self.wanted = wanted;
        Ok(())
    }

    /// Returns whether the kernel has the budgets that it was told last, and tells them again if it has not.
    pub fn check_budgets(&mut self) -> Result<bool, Error> {
        let found: Result<BTreeMap<Key, u64>, _> =
            self.budgets.iter().map(|one| one.map(|(key, budget)| (Key(key), budget))).collect();
        let found = found.map_err(Error::refused("a read"))?;
        let same = found == self.wanted;
        if !same {
            let wanted = std::mem::replace(&mut self.wanted, found);
            self.set_budgets(wanted)?;
        }
        Ok(same)
    }

    /// Writes a budget behind the back of [`Police::set_budgets`], as another program could.
    #[doc(hidden)]
    pub fn meddle(&mut self, key: Key, budget: u64) -> Result<(), Error> {
        self.budgets.insert(key.0, budget, 0).map_err(Error::refused("a budget"))
    }

    /// What the programs know of a host; `None` if they have not seen it, or not for long.
    pub fn host(&self, key: Key) -> Result<Option<Host>, Error> {
        match self.hosts.get(&key.0, 0) {
            Ok(words) => Ok(Some(Host::read(&words))),
            Err(aya::maps::MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(Error::refused("a read")(error)),
        }
    }

    /// Number of hosts without a budget that have sent within this time.
    pub fn strangers(&self, idle: Duration) -> Result<u64, Error> {
        let since = clock().saturating_sub(idle.as_nanos() as u64).max(1);
        // A host that goes while this looks is none.
        let sends = |(key, words): &([u8; 16], [u64; HOST])| {
            !self.wanted.contains_key(&Key(*key)) && Host::read(words).seen >= since
        };
        Ok(self.hosts.iter().flatten().filter(sends).count() as u64)
    }

    /// Sums since the start.
    pub fn totals(&self) -> Result<Totals, Error> {
        let w = self.totals.get(&0, 0).map_err(Error::refused("a read"))?;
        Ok(Totals { arrived: [[w[0], w[1]], [w[2], w[3]]], policed: [[w[4], w[5]], [w[6], w[7]]], stale: w[8] })
    }

    /// Shows a packet from a host, or to it, to its program; returns whether it passes.
    pub fn test(&mut self, up: bool, packet: &[u8]) -> Result<bool, Error> {
        self.test_merged(up, packet, 0)
    }

    /// The same with a packet that was merged from several with payloads of `segment` bytes.
    pub fn test_merged(&mut self, up: bool, packet: &[u8], segment: u32) -> Result<bool, Error> {
        let mut context = [0; 192]; // struct __sk_buff of include/uapi/linux/bpf.h
        context[GSO_SIZE..GSO_SIZE + 4].copy_from_slice(&segment.to_ne_bytes());
        let options = TestRunOptions { data_in: Some(packet), ctx_in: Some(&context), ..TestRunOptions::new() };
        let result = self.object.test(if up { "hold" } else { "answer" }, options)?;
        Ok(result.return_value != 2)
    }
}

/// Where `gso_size` is in a context.
const GSO_SIZE: usize = 176;
